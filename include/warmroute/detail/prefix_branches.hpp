/// The writer's side of a prefix tree's branches: the table of one node's children, and the root's, which is cut into shards so that
/// no single growth is long. Tables are replaced when they grow or shrink; readers keep the old one until they leave.
/// Invariant: a child is in its new table before it leaves the old one. Does not: ask for room; callers do (`room_to_add`).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "warmroute/detail/prefix_arena.hpp"
#include "warmroute/detail/prefix_memory.hpp"
#include "warmroute/detail/prefix_node.hpp"

namespace warmroute::detail {

class PrefixBranches {
 public:
  using Table = std::atomic<Branches*>;
  static constexpr std::size_t kShards = 1024;

  PrefixBranches(PrefixMemory& memory, NodeArena& arena) : memory_(&memory), arena_(&arena) {}

  [[nodiscard]] Node* find_root(BlockHash hash) const noexcept {
    return find_branch(root_[shard(hash)].load(std::memory_order_acquire), 0, hash);
  }

  /// `parent` null: the root.
  void add(Node* parent, std::uint32_t offset, Node& child) {
    Table& table = table_of(parent, first_hash(child));
    Branches* b = table.load(std::memory_order_relaxed);
    if (b == nullptr || (b->used + 1) * 4 > (b->mask + 1) * 3) b = rebuild(table, b == nullptr ? 1 : b->live + 1);
    put(*b, offset, child);
  }

  void remove(Node* parent, std::uint32_t offset, Node& child) {
    Table& table = table_of(parent, first_hash(child));
    Branches& b = *table.load(std::memory_order_relaxed);
    std::size_t place = 0;
    static_cast<void>(b.find(offset, first_hash(child), &place));
    const bool run_ends = b.words()[(place + 1) & b.mask].load(std::memory_order_relaxed) == Branches::kFree;
    b.words()[place].store(run_ends ? Branches::kFree : Branches::kRemoved, std::memory_order_release);
    if (run_ends) --b.used;
    --b.live;
    if (b.live == 0) {
      table.store(nullptr, std::memory_order_release);
      return retire(&b);
    }
    if (b.mask >= 16 && b.live * 8 <= b.mask) return static_cast<void>(rebuild(table, b.live));
    if (offset == b.deepest && --b.at_deepest == 0) find_deepest(b);
  }

  /// Hangs all of `from`'s children under `to` as well, `by` blocks deeper; they stay reachable through `from`.
  void move_all(Node& from, Node& to, std::uint32_t by) {
    const Branches* b = from.branches.load(std::memory_order_relaxed);
    if (b == nullptr) return;
    for (std::uint32_t i = 0; i <= b->mask; ++i) {
      const std::uint64_t w = b->words()[i].load(std::memory_order_relaxed);
      if (w <= Branches::kRemoved) continue;
      Node& child = *Branches::node(w);
      add(&to, Branches::offset(w) + by, child);
      arena_->info(child).parent = to.number;
      arena_->info(child).offset = static_cast<std::uint16_t>(Branches::offset(w) + by);
    }
  }

  /// The node's table goes when readers have left; its children are the caller's.
  void retire(Node& node) { retire(node.branches.load(std::memory_order_relaxed)); }
  void retire_root() {
    for (Table& t : root_) retire(t.load(std::memory_order_relaxed));
  }

  /// returns: an upper bound of what the next `add` asks for.
  [[nodiscard]] std::size_t room_to_add(Node* parent, BlockHash hash) noexcept {
    const Branches* b = table_of(parent, hash).load(std::memory_order_relaxed);
    return Branches::bytes(b == nullptr ? 4 : 4 * (std::size_t{b->mask} + 1));
  }

 private:
  [[nodiscard]] static std::size_t shard(BlockHash hash) noexcept { return to_u64(hash) >> 54; }
  static_assert(kShards == 1024);
  [[nodiscard]] static BlockHash first_hash(const Node& node) noexcept { return node.run.load(std::memory_order_relaxed)->hashes()[0]; }
  [[nodiscard]] Table& table_of(Node* parent, BlockHash hash) noexcept { return parent == nullptr ? root_[shard(hash)] : parent->branches; }

  static void put(Branches& b, std::uint32_t offset, Node& child) noexcept {
    const std::uint64_t mixed = Branches::mix(offset, first_hash(child));
    std::uint64_t i = mixed >> 32;
    while (b.words()[i & b.mask].load(std::memory_order_relaxed) > Branches::kRemoved) ++i;
    if (b.words()[i & b.mask].load(std::memory_order_relaxed) == Branches::kFree) ++b.used;
    b.words()[i & b.mask].store(Branches::word(&child, offset, mixed), std::memory_order_release);
    ++b.live;
    if (b.live == 1 || offset > b.deepest) { b.deepest = offset; b.at_deepest = 1; }
    else if (offset == b.deepest) ++b.at_deepest;
  }

  Branches* rebuild(Table& table, std::uint32_t live) {
    const std::size_t capacity = std::max<std::size_t>(4, std::bit_ceil(std::size_t{live} * 2));
    auto* fresh = new (memory_->allocate(Branches::bytes(capacity))) Branches;
    std::memset(static_cast<void*>(fresh->words()), 0, capacity * sizeof(Branches::Word));
    fresh->mask = static_cast<std::uint32_t>(capacity - 1);
    Branches* old = table.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; old != nullptr && i <= old->mask; ++i) {
      const std::uint64_t w = old->words()[i].load(std::memory_order_relaxed);
      if (w > Branches::kRemoved) put(*fresh, Branches::offset(w), *Branches::node(w));
    }
    table.store(fresh, std::memory_order_release);
    retire(old);
    return fresh;
  }

  static void find_deepest(Branches& b) noexcept {
    b.deepest = b.at_deepest = 0;
    for (std::uint32_t i = 0; i <= b.mask; ++i) {
      const std::uint64_t w = b.words()[i].load(std::memory_order_relaxed);
      if (w <= Branches::kRemoved) continue;
      const std::uint32_t offset = Branches::offset(w);
      if (b.at_deepest == 0 || offset > b.deepest) { b.deepest = offset; b.at_deepest = 1; }
      else if (offset == b.deepest) ++b.at_deepest;
    }
  }

  void retire(Branches* b) {
    if (b != nullptr) memory_->retire(b, Branches::bytes(std::size_t{b->mask} + 1));
  }

  PrefixMemory* memory_;
  NodeArena* arena_;
  std::array<Table, kShards> root_{};
};

}  // namespace warmroute::detail
