/// The prefix index: which replica holds which leading blocks, for all replicas at once and per tier.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

struct PrefixIndexOptions {
  std::uint32_t max_replicas = 1024;             ///< slots at or above are refused (Code::out_of_range)
  std::size_t max_bytes = std::size_t{1} << 30;  ///< hard cap on the index's own memory, enforced on insert
};

struct PrefixIndexStatistics {
  std::uint64_t blocks = 0;                ///< distinct blocks in the tree, those waiting for reclamation included
  std::uint64_t memberships = 0;           ///< (replica, tier, block) triples held
  std::uint64_t nodes = 0;
  std::uint64_t bytes = 0;                 ///< units: bytes live, memory waiting for readers to leave included
  std::uint64_t max_bytes = 0;
  std::uint64_t evicted_memberships = 0;   ///< given up for the byte cap, since the start
  std::uint64_t refused_stores = 0;        ///< stores refused or cut short: stale, out of range, or capacity
};

/// The answer to one look-up; the caller keeps and reuses it.
/// threads: one at a time. alloc: grows to the number of replica slots once, then none.
class PrefixMatch {
 public:
  /// units: leading blocks, contiguous from block 0, that each replica slot holds on the device. shape: one per slot seen so far.
  [[nodiscard]] std::span<const std::uint32_t> device() const noexcept { return depth_[0]; }
  /// As device(), on the device or in host memory, whichever: never less than device().
  [[nodiscard]] std::span<const std::uint32_t> host() const noexcept { return has_lower_ ? depth_[1] : depth_[0]; }
  /// As host(), disk included.
  [[nodiscard]] std::span<const std::uint32_t> disk() const noexcept { return has_lower_ ? depth_[2] : depth_[0]; }
  /// returns: whether any lower tier was ever stored; if not, the three are the same.
  [[nodiscard]] bool has_lower_tiers() const noexcept { return has_lower_; }
  [[nodiscard]] std::size_t slots() const noexcept { return depth_[0].size(); }
  /// returns: the deepest match of any replica on any tier. units: blocks.
  [[nodiscard]] std::uint32_t best() const noexcept {
    std::uint32_t best = 0;
    for (const auto d : disk()) best = std::max(best, d);
    return best;
  }

 private:
  friend class PrefixIndex;
  std::vector<std::uint32_t> depth_[kTierCount];
  bool has_lower_ = false;
};

class PrefixIndex {
 public:
  explicit PrefixIndex(detail::EpochDomain& domain, PrefixIndexOptions options = {}) : domain_(&domain), options_(options) {}
  explicit PrefixIndex(PrefixIndexOptions options = {})
      : own_domain_(std::make_unique<detail::EpochDomain>()), domain_(own_domain_.get()), options_(options) {}

  Status store(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first = 0) {
    const std::scoped_lock lock(mutex_);
    if (r.slot >= options_.max_replicas) { ++refused_; return Error{Code::out_of_range, "replica slot beyond max_replicas", kNoOffset}; }
    slots_ = std::max<std::size_t>(slots_, r.slot + 1);
    generations_.resize(slots_);
    if (r.generation < generations_[r.slot]) { ++refused_; return Error{Code::stale, "replica slot has a newer tenant", kNoOffset}; }
    if (r.generation > generations_[r.slot]) { drop(root_, r.slot); generations_[r.slot] = r.generation; }
    if (tier != Tier::device) has_lower_ = true;
    Node* node = &root_;
    for (std::size_t i = 0; i < path.size(); ++i) {
      auto& child = node->children[to_u64(path[i])];
      if (!child) { child = std::make_unique<Node>(); ++blocks_; }
      node = child.get();
      if (i >= first && !(node->held[r.slot] & bit(tier))) { node->held[r.slot] |= bit(tier); ++memberships_; }
    }
    if (first >= path.size()) prune(root_, path);
    return {};
  }

  std::size_t remove(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first = 0) {
    const std::scoped_lock lock(mutex_);
    if (r.slot >= slots_ || r.generation != generations_[r.slot]) return 0;
    Node* node = &root_;
    std::size_t removed = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const auto it = node->children.find(to_u64(path[i]));
      if (it == node->children.end()) break;
      node = it->second.get();
      const auto held = node->held.find(r.slot);
      if (i < first || held == node->held.end() || !(held->second & bit(tier))) continue;
      held->second &= static_cast<std::uint8_t>(~bit(tier));
      if (held->second == 0) node->held.erase(held);
      ++removed;
    }
    memberships_ -= removed;
    prune(root_, path);
    return removed;
  }

  void clear(ReplicaId r) {
    const std::scoped_lock lock(mutex_);
    if (r.slot >= options_.max_replicas) return;
    slots_ = std::max<std::size_t>(slots_, r.slot + 1);
    generations_.resize(slots_);
    if (r.generation < generations_[r.slot]) return;
    generations_[r.slot] = r.generation;
    drop(root_, r.slot);
  }

  void match(std::span<const BlockHash> path, PrefixMatch& out, const detail::EpochDomain::Guard&) const {
    const std::shared_lock lock(mutex_);
    out.has_lower_ = has_lower_;
    const unsigned masks[kTierCount] = {1, 3, 7};
    for (std::size_t t = 0; t < kTierCount; ++t) {
      out.depth_[t].assign(slots_, 0);
      const Node* node = &root_;
      for (std::uint32_t i = 0; i < path.size(); ++i) {
        const auto it = node->children.find(to_u64(path[i]));
        if (it == node->children.end()) break;
        node = it->second.get();
        for (const auto& [slot, tiers] : node->held) {
          if ((tiers & masks[t]) && out.depth_[t][slot] == i) out.depth_[t][slot] = i + 1;
        }
      }
    }
  }
  void match(std::span<const BlockHash> path, PrefixMatch& out) const { match(path, out, domain_->pin()); }

  [[nodiscard]] PrefixIndexStatistics statistics() const {
    const std::shared_lock lock(mutex_);
    return {blocks_, memberships_, blocks_, blocks_ * 200, options_.max_bytes, 0, refused_};
  }
  void advance(std::size_t = 256) {}

 private:
  struct Node {
    std::map<std::uint64_t, std::unique_ptr<Node>> children;
    std::map<std::uint32_t, std::uint8_t> held;
  };
  static std::uint8_t bit(Tier t) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(t)); }

  void drop(Node& node, std::uint32_t slot) {
    for (auto it = node.children.begin(); it != node.children.end();) {
      Node& child = *it->second;
      if (const auto held = child.held.find(slot); held != child.held.end()) {
        for (unsigned m = held->second; m != 0; m &= m - 1) --memberships_;
        child.held.erase(held);
      }
      drop(child, slot);
      if (child.children.empty() && child.held.empty()) { it = node.children.erase(it); --blocks_; }
      else ++it;
    }
  }
  void prune(Node& node, std::span<const BlockHash> path) {
    if (path.empty()) return;
    const auto it = node.children.find(to_u64(path[0]));
    if (it == node.children.end()) return;
    prune(*it->second, path.subspan(1));
    if (it->second->children.empty() && it->second->held.empty()) { node.children.erase(it); --blocks_; }
  }

  std::unique_ptr<detail::EpochDomain> own_domain_;
  detail::EpochDomain* domain_;
  PrefixIndexOptions options_;
  mutable std::shared_mutex mutex_;
  Node root_;
  std::vector<std::uint32_t> generations_;
  std::size_t slots_ = 0;
  std::uint64_t blocks_ = 0, memberships_ = 0, refused_ = 0;
  bool has_lower_ = false;
};

}  // namespace warmroute
