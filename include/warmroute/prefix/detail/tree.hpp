/// The run-compressed radix tree behind PrefixIndex: its structure and all changes to it. One writer at a time (the index's lock);
/// readers walk it at any moment (see prefix_node.hpp for what they may rely on).
/// How it keeps its shape: new blocks extend a run in place or hang a branch at an offset; a run ends where nobody holds and nothing
/// hangs any further; a node without holders and branches goes; an only child at a run's end is taken into the run.
/// When bytes run out, the end parts of runs that nobody hangs below go, the one stored to longest ago first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/prefix/detail/aliases.hpp"
#include "warmroute/prefix/detail/arena.hpp"
#include "warmroute/prefix/detail/branches.hpp"
#include "warmroute/prefix/detail/holding.hpp"
#include "warmroute/prefix/detail/ids.hpp"
#include "warmroute/prefix/detail/memory.hpp"
#include "warmroute/prefix/detail/node.hpp"

namespace warmroute::detail {

class PrefixTree {
 public:
  PrefixTree(EpochDomain& domain, std::uint32_t max_replicas, std::size_t max_bytes)
      : memory_(domain, max_bytes),
        arena_(memory_),
        holding_(memory_, arena_),
        branches_(memory_, arena_),
        ids_(memory_, arena_),
        lanes_((max_replicas + Holders::kLanes - 1) / Holders::kLanes * Holders::kLanes),
        cleared_at_(std::make_unique<std::atomic<std::uint32_t>[]>(lanes_)),
        held_(lanes_, 0) {
    parts_.reserve(8);  // so that the first removal asks for nothing
  }
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;
  ~PrefixTree();

  // --- what readers use ------------------------------------------------------------------------------------------
  [[nodiscard]] Node* first_node(BlockHash hash) const noexcept { return branches_.find_root(hash); }
  [[nodiscard]] Credit credit() const noexcept { return {credit_, cleared_at_.get()}; }
  [[nodiscard]] std::uint32_t clears() const noexcept { return clears_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint32_t lanes() const noexcept { return lanes_; }
  [[nodiscard]] CommonPrefix compare() const noexcept { return compare_; }

  // --- changes: one writer at a time -------------------------------------------------------------------------------
  /// returns: whether all of [first, path.size()) is held now; false: no room, and nothing left to give up.
  bool store(std::uint32_t slot, unsigned tier, std::span<const BlockHash> path, std::size_t first) {
    return first >= path.size() || store_below({}, slot, tier, path, first, {});
  }
  /// As store, for `blocks` below a place (none: the root), with the engine's ids for them.
  bool store_below(EngineIds::Place place, std::uint32_t slot, unsigned tier, std::span<const BlockHash> blocks,
                   std::size_t first, std::span<const EngineHash> ids);
  /// Blocks that the slot's engine calls so are held on `tier` (too). returns: how many are known by name; it ends where there is no room.
  std::size_t hold_named(std::uint32_t slot, unsigned tier, std::span<const EngineHash> ids);
  /// returns: the place of the block that the slot's engine calls `id`, rather one that the slot holds.
  [[nodiscard]] EngineIds::Place find(std::uint32_t slot, EngineHash id);
  /// returns: whether the replica holds the block at that place, on any tier.
  [[nodiscard]] bool held(EngineIds::Place place, std::uint32_t slot) { return holds(*place.node, slot, place.offset); }
  /// All blocks from block 0 to that place, it included. cost: the path's length.
  void path_to(EngineIds::Place place, std::vector<BlockHash>& out);
  /// returns: memberships removed.
  std::size_t remove(std::uint32_t slot, unsigned tier, std::span<const BlockHash> path, std::size_t first);
  std::size_t remove_named(std::uint32_t slot, unsigned tier, std::span<const EngineHash> ids);
  /// Nothing that the slot held until now counts any more. cost: constant; `sweep` gives the memory back.
  void clear(std::uint32_t slot) {
    memberships_ -= held_[slot];
    held_[slot] = 0;
    const std::uint32_t now = clears_.load(std::memory_order_relaxed) + 1;
    cleared_at_[slot].store(now, std::memory_order_release);
    clears_.store(now, std::memory_order_release);
    if (slot < aliases_.size()) aliases_[slot].reset();
    to_sweep_ = sweep_end_ = arena_.end();  // one whole round from wherever the last one stands
  }
  /// Looks at up to `limit` nodes for replicas that were cleared. returns: whether there is more to do.
  bool sweep(std::size_t limit);
  /// Gives back what engines' names of blocks that went still take, a little per call.
  void settle_names();
  /// Ends a change: merges what became mergeable, stamps what was retired and frees what readers have left.
  void finish(bool collect_now = false);

  /// returns: whether anything of that slot may still be in the tree.
  [[nodiscard]] bool ever_held(std::uint32_t slot) const noexcept { return held_[slot] != 0; }
  [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::uint64_t memberships() const noexcept { return memberships_; }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }
  [[nodiscard]] std::uint64_t evicted_blocks() const noexcept { return evicted_blocks_; }
  [[nodiscard]] std::size_t nodes() const noexcept { return arena_.live(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.bytes(); }

 private:
  static constexpr std::uint32_t kRoot = NodeArena::kRoot;
  static constexpr std::size_t kRoomForHoles = 4096;
  static constexpr std::uint32_t kLate = 256;
  struct Part {
    Node* node;
    std::uint32_t from, to;
  };
  struct Moved {
    std::uint32_t slot;
    unsigned tier;
    std::uint32_t from, to;
  };

  [[nodiscard]] Node* child_of(Node* at, std::uint32_t offset, BlockHash hash) const noexcept {
    return at == nullptr ? branches_.find_root(hash)
                         : find_branch(at->branches.load(std::memory_order_relaxed), offset, hash);
  }
  [[nodiscard]] static Run& run_of(Node& node) noexcept { return *node.run.load(std::memory_order_relaxed); }
  [[nodiscard]] static std::uint32_t length(Node& node) noexcept {
    return run_of(node).length.load(std::memory_order_relaxed);
  }
  [[nodiscard]] static std::uint32_t deepest_branch(Node& node) noexcept {
    const Branches* b = node.branches.load(std::memory_order_relaxed);
    return b == nullptr ? 0 : b->deepest;
  }
  void clean(Node& node) {
    if (holding_.clean(node, cleared_at_.get(), clears_.load(std::memory_order_relaxed)))
      postponed_.push_back(node.number);
  }
  void tidy_postponed();
  bool hold(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t from, std::uint32_t to);
  std::size_t release(std::span<const Part> parts, std::uint32_t slot, unsigned tier);
  Part place_blocks(Node* at, std::uint32_t offset, std::span<const BlockHash> rest, bool named);
  Node* create(Node* at, std::uint32_t offset, std::span<const BlockHash> hashes, bool named);
  std::uint32_t extend(Node& node, std::span<const BlockHash> hashes);
  [[nodiscard]] bool holds(Node& node, std::uint32_t slot, std::uint32_t offset);
  void note_hint(std::uint32_t slot, const Node& node, std::uint32_t offset);
  [[nodiscard]] EngineIds::Place find_name(std::uint32_t slot, std::uint64_t name);
  bool name(Node& node, std::uint32_t from, std::span<const EngineHash> ids, std::uint32_t slot);
  void forget_names(Node& node, std::uint32_t from);
  void append(Node& node, std::span<const BlockHash> hashes);
  Run* new_run(std::size_t capacity, bool named);
  Run* copy_run(const Run& old, std::size_t capacity, bool named);
  void replace_run(Node& node, std::size_t capacity, bool named);
  void tidy(Node* node);
  void trim(Node& node, std::uint32_t keep);
  void free_node(Node& node);
  void merge_child(std::uint32_t number);
  void note_moved(Node& child, std::uint32_t joint);
  void merge(Node& parent, Node& child);

  // the order of eviction: a list of nodes that have an end part, by `used`; the root's notes are its head
  void list_newest(Node& node);
  void list_by_age(Node& node, std::uint32_t before, std::uint32_t steps);
  void unlist(Node& node);
  void touch(Node& node);
  bool room(std::size_t bytes, Node* keep);
  [[nodiscard]] Node* oldest();
  bool evict_oldest();
  void finish_memory(bool collect_now);

  PrefixMemory memory_;
  NodeArena arena_;
  PrefixHolding holding_;
  PrefixBranches branches_;
  EngineIds ids_;
  std::uint32_t lanes_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> cleared_at_;
  std::atomic<std::uint32_t> clears_{0};
  CommonPrefix compare_ = common_prefix_kernel();
  CreditLanes credit_ = credit_lanes_kernel();
  std::vector<std::uint64_t> held_;  // memberships per slot
  struct Hint {
    std::uint32_t number = 0, offset = 0;
  };
  std::vector<Hint> hints_;  // per slot: the block that its engine named last; the next one is mostly its neighbour
  std::vector<std::unique_ptr<AliasMap>> aliases_;  // per slot, where its engine's ids differ from those in the runs
  std::vector<Part> parts_;                         // scratch of remove
  std::vector<Moved> moved_;                        // scratch of merge
  Node* keep_ = nullptr;                            // the node that a store stands on: eviction goes around it
  std::vector<std::uint32_t> postponed_;            // nodes to tidy when the change is over
  std::vector<std::uint32_t> mergeable_;
  std::uint32_t tick_ = 0;
  std::uint32_t settle_at_ = 0;  // the slot whose own names were looked at last
  std::uint32_t to_sweep_ = 0, sweep_at_ = 0, sweep_end_ = 0;
  std::uint64_t blocks_ = 0, memberships_ = 0, evicted_ = 0, evicted_blocks_ = 0;
};

}  // namespace warmroute::detail

#include "warmroute/prefix/detail/tree_change.hpp"
#include "warmroute/prefix/detail/tree_memory.hpp"
#include "warmroute/prefix/detail/tree_shape.hpp"
