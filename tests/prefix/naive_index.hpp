/// The prefix index as a plain tree of blocks: what PrefixIndex must answer, without any of its structure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "warmroute/types.hpp"

namespace warmroute::test {

class NaiveIndex {
 public:
  using Path = std::vector<BlockHash>;

  bool store(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first) {
    if (!admit(r)) return false;
    if (first >= path.size()) return true;
    Node* node = &root_;
    for (std::size_t i = 0; i < path.size(); ++i) {
      auto& child = node->children[to_u64(path[i])];
      if (!child) child = std::make_unique<Node>();
      node = child.get();
      if (i >= first) node->held[r.slot] |= bit(tier);
    }
    return true;
  }
  std::size_t remove(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first) {
    if (r.generation < generations_[r.slot] || !admit(r)) return 0;
    return remove(root_, r.slot, tier, path, first);
  }
  void clear(ReplicaId r) {
    if (r.generation < generations_[r.slot]) return;
    generations_[r.slot] = r.generation;
    drop(root_, r.slot);
  }
  /// returns: per cumulated tier, the leading blocks that the slot holds.
  std::array<std::uint32_t, kTierCount> match(std::span<const BlockHash> path, std::uint32_t slot) const {
    std::array<std::uint32_t, kTierCount> depth{};
    const Node* node = &root_;
    for (std::uint32_t i = 0; i < path.size(); ++i) {
      const auto it = node->children.find(to_u64(path[i]));
      if (it == node->children.end()) break;
      node = it->second.get();
      const auto held = node->held.find(slot);
      if (held == node->held.end()) break;
      for (std::size_t t = 0; t < kTierCount; ++t) {
        if (depth[t] == i && (held->second & ((2U << t) - 1)) != 0) depth[t] = i + 1;
      }
    }
    return depth;
  }
  std::size_t blocks() const { return count(root_) - 1; }
  std::size_t memberships() const { return memberships(root_); }

 private:
  struct Node {
    std::map<std::uint64_t, std::unique_ptr<Node>> children;
    std::map<std::uint32_t, unsigned> held;
  };
  static unsigned bit(Tier t) { return 1U << static_cast<unsigned>(t); }
  bool admit(ReplicaId r) {
    auto& g = generations_[r.slot];
    if (r.generation < g) return false;
    if (r.generation > g) drop(root_, r.slot);
    g = r.generation;
    return true;
  }
  static bool idle(const Node& n) { return n.children.empty() && n.held.empty(); }
  static std::size_t remove(Node& node, std::uint32_t slot, Tier tier, std::span<const BlockHash> path,
                            std::size_t first) {
    if (path.empty()) return 0;
    const auto it = node.children.find(to_u64(path[0]));
    if (it == node.children.end()) return 0;
    Node& child = *it->second;
    std::size_t removed = remove(child, slot, tier, path.subspan(1), first == 0 ? 0 : first - 1);
    if (const auto held = child.held.find(slot);
        first == 0 && held != child.held.end() && (held->second & bit(tier)) != 0) {
      ++removed;
      if ((held->second &= ~bit(tier)) == 0) child.held.erase(held);
    }
    if (idle(child)) node.children.erase(it);
    return removed;
  }
  static void drop(Node& node, std::uint32_t slot) {
    for (auto it = node.children.begin(); it != node.children.end();) {
      it->second->held.erase(slot);
      drop(*it->second, slot);
      it = idle(*it->second) ? node.children.erase(it) : std::next(it);
    }
  }
  static std::size_t count(const Node& node) {
    std::size_t n = 1;
    for (const auto& [h, child] : node.children) n += count(*child);
    return n;
  }
  static std::size_t memberships(const Node& node) {
    std::size_t n = 0;
    for (const auto& [slot, tiers] : node.held) n += static_cast<std::size_t>(__builtin_popcount(tiers));
    for (const auto& [h, child] : node.children) n += memberships(*child);
    return n;
  }

  Node root_;
  std::map<std::uint32_t, std::uint32_t> generations_;
};

}  // namespace warmroute::test
