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

#include "warmroute/prefix/detail/arena.hpp"
#include "warmroute/prefix/detail/memory.hpp"
#include "warmroute/prefix/detail/node.hpp"

namespace warmroute::detail {

class PrefixBranches {
 public:
  using Table = Branches::Table;
  static constexpr std::size_t kShards = 1024;

  PrefixBranches(PrefixMemory& memory, NodeArena& arena) : memory_(&memory), arena_(&arena) {}

  [[nodiscard]] Node* find_root(BlockHash hash) const noexcept {
    return find_branch(root_[shard(hash)].load(std::memory_order_acquire), 0, hash);
  }

  /// `parent` null: the root.
  void add(Node* parent, std::uint32_t offset, Node& child) {
    add_to(table_of(parent, first_hash(child)), kFirstShift, offset, child, Branches::mix(offset, first_hash(child)));
  }
  void remove(Node* parent, std::uint32_t offset, Node& child) {
    remove_from(table_of(parent, first_hash(child)), offset, child, Branches::mix(offset, first_hash(child)));
  }

  /// Hangs all of `from`'s children under `to` as well, `by` blocks deeper; they stay reachable through `from`.
  void move_all(Node& from, Node& to, std::uint32_t by) {
    for_each(from.branches.load(std::memory_order_relaxed), [&, this](std::uint32_t offset, Node& child) {
      add(&to, offset + by, child);
      arena_->info(child).parent = to.number;
      arena_->info(child).offset = static_cast<std::uint16_t>(offset + by);
    });
  }

  /// The node's table goes when readers have left; its children are the caller's.
  void retire(Node& node) { retire_all(node.branches.load(std::memory_order_relaxed)); }
  void retire_root() {
    for (Table& t : root_) retire_all(t.load(std::memory_order_relaxed));
  }

  /// returns: an upper bound of what the next `add` asks for.
  [[nodiscard]] std::size_t room_to_add(Node* parent, BlockHash hash) noexcept {
    const Branches* b = table_of(parent, hash).load(std::memory_order_relaxed);
    if (b == nullptr) return Branches::bytes(4);
    if (b->shift != 0 || b->live + 1 >= kMany)
      return Branches::bytes(Branches::kParts) + 2 * Branches::kParts * Branches::bytes(8);
    return Branches::bytes(4 * (std::size_t{b->mask} + 1));
  }

 private:
  static constexpr std::uint32_t kMany =
      1024;  // a flat table of more becomes a directory: 0.2 ms of cold lines at most
  static constexpr std::uint32_t kFirstShift = 56, kLastShift = 40, kBitsPerLevel = 8;
  static_assert(Branches::kParts == 1U << kBitsPerLevel);

  [[nodiscard]] static std::size_t shard(BlockHash hash) noexcept { return to_u64(hash) >> 54; }
  static_assert(kShards == 1024);
  [[nodiscard]] static BlockHash first_hash(const Node& node) noexcept {
    return node.run.load(std::memory_order_relaxed)->hashes()[0];
  }
  [[nodiscard]] Table& table_of(Node* parent, BlockHash hash) noexcept {
    return parent == nullptr ? root_[shard(hash)] : parent->branches;
  }
  [[nodiscard]] static Table& part(Branches& b, std::uint64_t mixed) noexcept {
    return const_cast<Table&>(b.part_of(mixed));
  }

  static void note_deepest(Branches& b, std::uint32_t offset, std::uint32_t count) noexcept {
    if (b.at_deepest == 0 || offset > b.deepest) {
      b.deepest = offset;
      b.at_deepest = count;
    } else if (offset == b.deepest) b.at_deepest += count;
  }

  void add_to(Table& table, std::uint32_t shift, std::uint32_t offset, Node& child, std::uint64_t mixed) {
    Branches* b = table.load(std::memory_order_relaxed);
    if (b == nullptr || (b->shift == 0 && (b->used + 1) * 4 > (b->mask + 1) * 3)) {
      const std::uint32_t live = b == nullptr ? 1 : b->live + 1;
      b = live > kMany && shift >= kLastShift ? replace(table, new_directory(shift)) : replace(table, new_table(live));
    }
    if (b->shift == 0) return put(*b, offset, child, mixed);
    add_to(part(*b, mixed), shift - kBitsPerLevel, offset, child, mixed);
    ++b->live;
    note_deepest(*b, offset, 1);
  }

  void remove_from(Table& table, std::uint32_t offset, Node& child, std::uint64_t mixed) {
    Branches& b = *table.load(std::memory_order_relaxed);
    if (b.shift != 0) {
      remove_from(part(b, mixed), offset, child, mixed);
    } else {
      std::size_t place = 0;
      static_cast<void>(b.find(offset, first_hash(child), &place));
      const bool run_ends = b.words()[(place + 1) & b.mask].load(std::memory_order_relaxed) == Branches::kFree;
      b.words()[place].store(run_ends ? Branches::kFree : Branches::kRemoved, std::memory_order_release);
      if (run_ends) --b.used;
    }
    if (--b.live == 0) {
      table.store(nullptr, std::memory_order_release);
      return retire_all(&b);
    }
    const bool too_large = b.shift != 0 ? b.live < kMany / 4 : b.mask >= 16 && b.live * 8 <= b.mask;
    if (too_large && memory_->fits(Branches::bytes(std::size_t{b.live} * 4 + 4)))
      return static_cast<void>(replace(table, new_table(b.live)));
    if (offset == b.deepest && --b.at_deepest == 0) find_deepest(b);
  }

  static void put(Branches& b, std::uint32_t offset, Node& child, std::uint64_t mixed) noexcept {
    std::uint64_t i = mixed >> 32;
    while (b.words()[i & b.mask].load(std::memory_order_relaxed) > Branches::kRemoved) ++i;
    if (b.words()[i & b.mask].load(std::memory_order_relaxed) == Branches::kFree) ++b.used;
    b.words()[i & b.mask].store(Branches::word(&child, offset, mixed), std::memory_order_release);
    ++b.live;
    note_deepest(b, offset, 1);
  }

  Branches* new_table(std::uint32_t live) {
    const std::size_t capacity = std::max<std::size_t>(4, std::bit_ceil(std::size_t{live} * 2));
    auto* fresh = new (memory_->allocate(Branches::bytes(capacity))) Branches;
    std::memset(static_cast<void*>(fresh->words()), 0, capacity * sizeof(Branches::Word));
    fresh->mask = static_cast<std::uint32_t>(capacity - 1);
    return fresh;
  }
  Branches* new_directory(std::uint32_t shift) {
    auto* fresh = new (memory_->allocate(Branches::bytes(Branches::kParts))) Branches;
    std::memset(static_cast<void*>(fresh->parts()), 0, Branches::kParts * sizeof(Table));
    fresh->mask = Branches::kParts - 1;
    fresh->shift = shift;
    return fresh;
  }
  /// Moves everything into `fresh` and shows it to readers in place of the old table.
  Branches* replace(Table& table, Branches* fresh) {
    Branches* old = table.load(std::memory_order_relaxed);
    for_each(old, [&, this](std::uint32_t offset, Node& child) {
      const std::uint64_t mixed = Branches::mix(offset, first_hash(child));
      if (fresh->shift == 0) return put(*fresh, offset, child, mixed);
      add_to(part(*fresh, mixed), fresh->shift - kBitsPerLevel, offset, child, mixed);
      ++fresh->live;
      note_deepest(*fresh, offset, 1);
    });
    table.store(fresh, std::memory_order_release);
    retire_all(old);
    return fresh;
  }

  template <class Visit>
  static void for_each(Branches* b, Visit&& visit) {
    for (std::uint32_t i = 0; b != nullptr && i <= b->mask; ++i) {
      if (b->shift != 0) {
        for_each(b->parts()[i].load(std::memory_order_relaxed), visit);
        continue;
      }
      const std::uint64_t w = b->words()[i].load(std::memory_order_relaxed);
      if (w > Branches::kRemoved) visit(Branches::offset(w), *Branches::node(w));
    }
  }

  static void find_deepest(Branches& b) noexcept {
    b.deepest = b.at_deepest = 0;
    if (b.shift == 0) return for_each(&b, [&b](std::uint32_t offset, Node&) { note_deepest(b, offset, 1); });
    for (std::size_t i = 0; i < Branches::kParts; ++i) {
      const Branches* p = b.parts()[i].load(std::memory_order_relaxed);
      if (p != nullptr) note_deepest(b, p->deepest, p->at_deepest);
    }
  }

  void retire_all(Branches* b) {
    if (b == nullptr) return;
    for (std::size_t i = 0; b->shift != 0 && i < Branches::kParts; ++i)
      retire_all(b->parts()[i].load(std::memory_order_relaxed));
    memory_->retire(b, Branches::bytes(std::size_t{b->mask} + 1));
  }

  PrefixMemory* memory_;
  NodeArena* arena_;
  std::array<Table, kShards> root_{};
};

}  // namespace warmroute::detail
