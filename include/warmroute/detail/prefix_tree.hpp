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
#include "warmroute/detail/prefix_arena.hpp"
#include "warmroute/detail/prefix_branches.hpp"
#include "warmroute/detail/prefix_holding.hpp"
#include "warmroute/detail/prefix_ids.hpp"
#include "warmroute/detail/prefix_memory.hpp"
#include "warmroute/detail/prefix_node.hpp"

namespace warmroute::detail {

class PrefixTree {
 public:
  PrefixTree(EpochDomain& domain, std::uint32_t max_replicas, std::size_t max_bytes)
      : memory_(domain), arena_(memory_), holding_(memory_, arena_), branches_(memory_, arena_), ids_(memory_, arena_), max_bytes_(max_bytes),
        lanes_((max_replicas + Holders::kLanes - 1) / Holders::kLanes * Holders::kLanes),
        cleared_at_(std::make_unique<std::atomic<std::uint32_t>[]>(lanes_)), held_(lanes_, 0) {}
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
  bool store_below(EngineIds::Place place, std::uint32_t slot, unsigned tier, std::span<const BlockHash> blocks, std::size_t first,
                   std::span<const EngineHash> ids);
  /// returns: the place of the block that the slot's engine calls `id`, rather one that the slot holds.
  [[nodiscard]] EngineIds::Place find(std::uint32_t slot, EngineHash id);
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
    to_sweep_ = arena_.end();  // one whole round from wherever the last one stands
  }
  /// Looks at up to `limit` nodes for replicas that were cleared. returns: whether there is more to do.
  bool sweep(std::size_t limit);
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
  [[nodiscard]] static std::uint32_t length(Node& node) noexcept { return run_of(node).length.load(std::memory_order_relaxed); }
  [[nodiscard]] static std::uint32_t deepest_branch(Node& node) noexcept {
    const Branches* b = node.branches.load(std::memory_order_relaxed);
    return b == nullptr ? 0 : b->deepest;
  }
  void clean(Node& node) {
    if (holding_.clean(node, cleared_at_.get(), clears_.load(std::memory_order_relaxed))) postponed_.push_back(node.number);
  }
  void tidy_postponed();
  bool hold(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t from, std::uint32_t to);
  std::size_t release(std::span<const Part> parts, std::uint32_t slot, unsigned tier);
  Part place_blocks(Node* at, std::uint32_t offset, std::span<const BlockHash> rest, bool named);
  Node* create(Node* at, std::uint32_t offset, std::span<const BlockHash> hashes, bool named);
  std::uint32_t extend(Node& node, std::span<const BlockHash> hashes);
  [[nodiscard]] bool holds(Node& node, std::uint32_t slot, std::uint32_t offset);
  [[nodiscard]] EngineIds::Place find_name(std::uint32_t slot, std::uint64_t name);
  /// Each name falls on another cache line: have kAhead of them on their way. Call with i = 0, 1, 2...
  void prefetch_names(std::span<const EngineHash> ids, std::size_t i) const noexcept {
    constexpr std::size_t kAhead = 20;
    for (std::size_t k = i == 0 ? 0 : i + kAhead - 1; k < std::min(i + kAhead, ids.size()); ++k) ids_.prefetch(static_cast<std::uint64_t>(ids[k]));
  }
  bool name(Node& node, std::uint32_t from, std::span<const EngineHash> ids, std::uint32_t slot);
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
  bool evict_oldest();
  void finish_memory(bool collect_now);

  PrefixMemory memory_;
  NodeArena arena_;
  PrefixHolding holding_;
  PrefixBranches branches_;
  EngineIds ids_;
  std::size_t max_bytes_;
  std::uint32_t lanes_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> cleared_at_;
  std::atomic<std::uint32_t> clears_{0};
  CommonPrefix compare_ = common_prefix_kernel();
  CreditLanes credit_ = credit_lanes_kernel();
  std::vector<std::uint64_t> held_;  // memberships per slot
  std::vector<std::unique_ptr<AliasMap>> aliases_;  // per slot, where its engine's ids differ from those in the runs
  std::vector<Part> parts_;          // scratch of remove
  std::vector<Moved> moved_;         // scratch of merge
  Node* keep_ = nullptr;             // the node that a store stands on: eviction goes around it
  std::vector<std::uint32_t> postponed_;  // nodes to tidy when the change is over
  std::vector<std::uint32_t> mergeable_;
  std::uint32_t tick_ = 0;
  std::uint32_t to_sweep_ = 0, sweep_at_ = 0;
  std::uint64_t blocks_ = 0, memberships_ = 0, evicted_ = 0, evicted_blocks_ = 0;
};

// --- store and remove ---------------------------------------------------------------------------------------------

/// returns: where the next blocks of `rest` lie below (at, offset), as many as one node takes; added if they are new. node null: no room.
inline PrefixTree::Part PrefixTree::place_blocks(Node* at, std::uint32_t offset, std::span<const BlockHash> rest, bool named) {
  const auto agree = [&rest, this](Node& node, std::uint32_t from) {
    return from + static_cast<std::uint32_t>(
                      compare_(run_of(node).hashes() + from, rest.data(), std::min<std::size_t>(length(node) - from, rest.size())));
  };
  if (at != nullptr && offset < length(*at)) {  // only where a caller starts inside a run
    if (const std::uint32_t to = agree(*at, offset); to != offset) return {at, offset, to};
  }
  if (Node* child = child_of(at, offset, rest[0])) return {child, 0, agree(*child, 0)};
  if (at != nullptr && offset == length(*at)) {
    if (const std::uint32_t more = extend(*at, rest); more != 0) return {at, offset, offset + more};
  }
  Node* fresh = create(at, offset, rest, named);
  return {fresh, 0, fresh == nullptr ? 0 : length(*fresh)};
}

inline bool PrefixTree::store_below(EngineIds::Place place, std::uint32_t slot, unsigned tier, std::span<const BlockHash> blocks,
                                    std::size_t first, std::span<const EngineHash> ids) {
  ++tick_;
  Node* at = place.node;
  std::uint32_t offset = at == nullptr ? 0 : place.offset + 1;
  bool done = true;
  for (std::size_t pos = 0; pos < blocks.size() && done;) {
    const Part part = place_blocks(at, offset, blocks.subspan(pos), !ids.empty());
    if (part.node == nullptr) { done = false; break; }
    const std::size_t count = part.to - part.from;
    if (!ids.empty()) done = name(*part.node, part.from, ids.subspan(pos, count), slot);
    if (done && pos + count > first) {
      const std::uint32_t begin = pos >= first ? part.from : part.from + static_cast<std::uint32_t>(first - pos);
      done = hold(*part.node, slot, tier, begin, part.to);
    }
    pos += count;
    at = part.node;
    offset = part.to;
  }
  keep_ = nullptr;
  if (at != nullptr && (offset > deepest_branch(*at) || offset == length(*at))) touch(*at);
  if (!done && at != nullptr) postponed_.push_back(at->number);
  tidy_postponed();
  return done;
}

/// Writes the engine's ids beside the hashes. returns: false: no room.
inline bool PrefixTree::name(Node& node, std::uint32_t from, std::span<const EngineHash> ids, std::uint32_t slot) {
  if (run_of(node).named == 0) {
    if (!room(Run::bytes(run_of(node).capacity, true), &node)) return false;
    replace_run(node, run_of(node).capacity, true);
  }
  if (std::memcmp(run_of(node).ids() + from, ids.data(), ids.size() * sizeof(EngineHash)) == 0) return true;  // as others call them
  std::unique_ptr<AliasMap>* aliases = slot < aliases_.size() ? &aliases_[slot] : nullptr;
  const std::size_t alias_room = aliases != nullptr && *aliases ? (*aliases)->room_to_add() : 512;
  if (!room(ids_.room_to_add(ids.size()) + alias_room + ids.size() * 48, &node)) return false;
  std::uint64_t* names = run_of(node).ids();
  prefetch_names(ids, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(from + i);
    const auto id = static_cast<std::uint64_t>(ids[i]);
    if (names[at] == id || id == 0) continue;
    if (names[at] == 0) {
      names[at] = id;
      prefetch_names(ids, i + 1);
      ids_.add(id, node.number, at, blocks_);
      continue;
    }
    if (aliases == nullptr) {
      aliases_.resize(lanes_);
      aliases = &aliases_[slot];
    }
    if (!*aliases) *aliases = std::make_unique<AliasMap>(memory_);
    (*aliases)->add(id, names[at], [&, this](std::uint64_t known) {
      const EngineIds::Place place = find_name(slot, known);
      const bool being_stored = place.node == &node && place.offset >= from && place.offset < from + ids.size();
      return being_stored || (place.node != nullptr && holds(*place.node, slot, place.offset));
    });
  }
  return true;
}

inline bool PrefixTree::holds(Node& node, std::uint32_t slot, std::uint32_t offset) {
  return node.clears.load(std::memory_order_relaxed) >= cleared_at_[slot].load(std::memory_order_relaxed) &&
         (holding_.holds(node, slot, 0, offset) || holding_.holds(node, slot, 1, offset) || holding_.holds(node, slot, 2, offset));
}

inline EngineIds::Place PrefixTree::find_name(std::uint32_t slot, std::uint64_t name) {
  return ids_.find(name, [this, slot](Node& node, std::uint32_t offset) { return holds(node, slot, offset); });
}

inline EngineIds::Place PrefixTree::find(std::uint32_t slot, EngineHash id) {
  const auto own = static_cast<std::uint64_t>(id);
  if (slot < aliases_.size() && aliases_[slot]) {
    // an alias may be older than the block, which then got this engine's own name when it came back
    const std::uint64_t name = aliases_[slot]->find(own);
    const EngineIds::Place place = name == own ? EngineIds::Place{} : find_name(slot, name);
    if (place.node != nullptr) return place;
  }
  return find_name(slot, own);
}

inline void PrefixTree::tidy_postponed() {
  while (!postponed_.empty()) {
    const std::uint32_t number = postponed_.back();
    postponed_.pop_back();
    if (arena_.live(number)) tidy(&arena_.node(number));
  }
}

inline bool PrefixTree::hold(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t from, std::uint32_t to) {
  if (!room(PrefixHolding::room_to_hold(node, to), &node)) return false;
  clean(node);
  const std::uint32_t added = holding_.hold(node, slot, tier, from, to);
  memberships_ += added;
  held_[slot] += added;
  return true;
}

inline std::size_t PrefixTree::remove(std::uint32_t slot, unsigned tier, std::span<const BlockHash> path, std::size_t first) {
  static_cast<void>(room(kRoomForHoles, nullptr));
  parts_.clear();
  Node* at = nullptr;
  std::uint32_t offset = 0;
  for (std::size_t pos = 0; pos < path.size();) {
    const auto rest = path.subspan(pos);
    at = child_of(at, offset, rest[0]);
    if (at == nullptr) break;
    offset = static_cast<std::uint32_t>(compare_(run_of(*at).hashes(), rest.data(), std::min<std::size_t>(length(*at), rest.size())));
    if (pos + offset > first) parts_.push_back({at, pos >= first ? 0 : static_cast<std::uint32_t>(first - pos), offset});
    pos += offset;
  }
  return release(parts_, slot, tier);
}

/// Neighbouring blocks are released together, whether they are named from leaf to root or the other way.
inline std::size_t PrefixTree::remove_named(std::uint32_t slot, unsigned tier, std::span<const EngineHash> ids) {
  static_cast<void>(room(kRoomForHoles, nullptr));
  std::size_t removed = 0;
  Part part{nullptr, 0, 0};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    prefetch_names(ids, i);
    const EngineHash id = ids[i];
    const EngineIds::Place place = find(slot, id);
    if (place.node == nullptr) continue;
    if (place.node == part.node && place.offset + 1 == part.from) { part.from = place.offset; continue; }
    if (place.node == part.node && place.offset == part.to) { ++part.to; continue; }
    if (part.node != nullptr) removed += release({&part, 1}, slot, tier);
    // what was just released may have taken this node with it, or moved its blocks
    const EngineIds::Place again = part.node == nullptr ? place : find(slot, id);
    part = again.node == nullptr ? Part{nullptr, 0, 0} : Part{again.node, again.offset, again.offset + 1};
  }
  if (part.node != nullptr) removed += release({&part, 1}, slot, tier);
  return removed;
}

inline std::size_t PrefixTree::release(std::span<const Part> parts, std::uint32_t slot, unsigned tier) {
  std::size_t removed = 0, given_up = 0;
  for (const Part& p : parts) {
    clean(*p.node);
    if (memory_.bytes() + PrefixHolding::room_to_hold(*p.node, length(*p.node)) <= max_bytes_) {
      removed += holding_.release(*p.node, slot, tier, p.from, p.to);
    } else {  // no room to note a hole: give up what lies behind it too, an early miss at worst
      const std::size_t asked = holding_.count(*p.node, slot, tier, p.from, p.to);
      removed += asked;
      given_up += holding_.cut(*p.node, slot, p.from) - asked;
    }
  }
  evicted_ += given_up;
  memberships_ -= removed + given_up;
  held_[slot] -= removed + given_up;
  for (std::size_t i = parts.size(); i-- > 0;) {  // deepest first: a node goes only after what hangs below it
    if (arena_.live(parts[i].node->number) && parts[i].to == length(*parts[i].node)) tidy(parts[i].node);
  }
  tidy_postponed();
  return removed;
}

// --- structure ------------------------------------------------------------------------------------------------------

inline Run* PrefixTree::new_run(std::size_t capacity, bool named) {
  Run* run = new (memory_.allocate(Run::bytes(capacity, named))) Run;
  run->capacity = static_cast<std::uint32_t>(capacity);
  run->named = named ? 1 : 0;
  if (named) std::memset(run->ids(), 0, capacity * sizeof(std::uint64_t));
  return run;
}

inline Run* PrefixTree::copy_run(const Run& old, std::size_t capacity, bool named) {
  const std::uint32_t count = old.length.load(std::memory_order_relaxed);
  Run* run = new_run(capacity, named);
  std::memcpy(run->hashes(), old.hashes(), count * sizeof(BlockHash));
  if (old.named != 0) std::memcpy(run->ids(), old.ids(), count * sizeof(std::uint64_t));
  run->length.store(count, std::memory_order_relaxed);
  run->shown = count;
  return run;
}

inline void PrefixTree::replace_run(Node& node, std::size_t capacity, bool named) {
  Run* old = &run_of(node);
  node.run.store(copy_run(*old, capacity, named), std::memory_order_release);
  memory_.retire(old, old->bytes());
}

/// returns: the new child with as much of `hashes` as one run takes and nobody holding it; null: no room.
inline Node* PrefixTree::create(Node* at, std::uint32_t offset, std::span<const BlockHash> hashes, bool named) {
  const std::size_t count = std::min<std::size_t>(hashes.size(), kMaxRun);
  if (!room(arena_.bytes_to_add() + Run::bytes(count, named) + branches_.room_to_add(at, hashes[0]), at)) return nullptr;
  Node& node = arena_.add();
  Run* run = new_run(count, named);
  std::memcpy(run->hashes(), hashes.data(), count * sizeof(BlockHash));
  run->length.store(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
  run->shown = static_cast<std::uint32_t>(count);
  node.run.store(run, std::memory_order_relaxed);
  node.clears.store(clears_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  NodeInfo& info = arena_.info(node);
  info.parent = at == nullptr ? kRoot : at->number;
  info.offset = static_cast<std::uint16_t>(offset);
  blocks_ += count;
  branches_.add(at, offset, node);
  if (at != nullptr && deepest_branch(*at) == length(*at)) unlist(*at);
  list_newest(node);
  return &node;
}

/// Goes on at the end of a run in place. returns: blocks added; 0: not possible here, a child will do.
inline std::uint32_t PrefixTree::extend(Node& node, std::span<const BlockHash> hashes) {
  Run& run = run_of(node);
  const std::uint32_t length_now = run.length.load(std::memory_order_relaxed);
  const std::size_t count = std::min<std::size_t>(hashes.size(), kMaxRun - length_now);
  if (count == 0) return 0;
  // Readers may still be comparing what stood behind the end before it was cut; such places are not written again.
  const std::size_t shown = std::min<std::size_t>(run.shown > length_now ? run.shown - length_now : 0, count);
  const bool overwrites = std::memcmp(run.hashes() + length_now, hashes.data(), shown * sizeof(BlockHash)) != 0;
  if (overwrites && length_now > 512) return 0;
  std::size_t capacity = run.capacity;
  if (overwrites || length_now + count > capacity) {
    capacity = std::min<std::size_t>(length_now + count + length_now / 4, kMaxRun);
    const bool named = run.named != 0;
    if (!room(Run::bytes(capacity, named), &node)) return 0;
    replace_run(node, capacity, named);
  }
  append(node, hashes.first(count));
  return static_cast<std::uint32_t>(count);
}

inline void PrefixTree::append(Node& node, std::span<const BlockHash> hashes) {
  Run& run = run_of(node);
  const std::uint32_t begin = run.length.load(std::memory_order_relaxed);
  const auto end = static_cast<std::uint32_t>(begin + hashes.size());
  if (end > run.shown) {
    const std::uint32_t from = std::max(begin, run.shown);
    std::memcpy(run.hashes() + from, hashes.data() + (from - begin), (end - from) * sizeof(BlockHash));
    run.shown = end;
  }
  if (run.named != 0) std::memset(run.ids() + begin, 0, hashes.size() * sizeof(std::uint64_t));
  run.length.store(end, std::memory_order_release);
  blocks_ += hashes.size();
  if ((arena_.info(node).flags & NodeInfo::kListed) == 0) list_newest(node);
}

/// Brings a node and its ancestors back into shape after holders or branches went.
inline void PrefixTree::tidy(Node* node) {
  for (;;) {
    if (node == keep_) return postponed_.push_back(node->number);
    const std::uint32_t keep = std::max(holding_.extent(*node), deepest_branch(*node));
    if (keep < length(*node)) trim(*node, keep);
    if (keep != 0) break;
    const std::uint32_t parent = arena_.info(*node).parent;
    free_node(*node);
    if (parent == kRoot) return;
    node = &arena_.node(parent);
  }
  NodeInfo& info = arena_.info(*node);
  const Branches* b = node->branches.load(std::memory_order_relaxed);
  const bool has_end_part = deepest_branch(*node) < length(*node);
  if (has_end_part && (info.flags & NodeInfo::kListed) == 0) list_by_age(*node, kRoot, 16);
  if (!has_end_part) unlist(*node);
  if (b != nullptr && b->at_deepest == 1 && !has_end_part && (info.flags & NodeInfo::kMergeable) == 0) {
    info.flags |= NodeInfo::kMergeable;
    mergeable_.push_back(node->number);
  }
}

inline void PrefixTree::trim(Node& node, std::uint32_t keep) {
  Run& run = run_of(node);
  blocks_ -= run.length.load(std::memory_order_relaxed) - keep;
  run.length.store(keep, std::memory_order_release);
  // halves at least, so that cutting block by block stays cheap; not when the copy itself would break the cap
  if (keep != 0 && run.capacity > 32 && keep < run.capacity / 2 && memory_.bytes() + Run::bytes(keep, run.named != 0) <= max_bytes_) {
    replace_run(node, keep, run.named != 0);
  }
}

inline void PrefixTree::free_node(Node& node) {
  NodeInfo& info = arena_.info(node);
  branches_.remove(info.parent == kRoot ? nullptr : &arena_.node(info.parent), info.offset, node);
  unlist(node);
  Run& run = run_of(node);
  blocks_ -= run.length.load(std::memory_order_relaxed);
  holding_.retire(node);
  branches_.retire(node);
  memory_.retire(&run, run.bytes());
  arena_.bury(node.number);
  memory_.retire_node(node.number);
}

/// Takes an only child at the run's end into the run, where that is cheap.
inline void PrefixTree::merge_child(std::uint32_t number) {
  if (!arena_.live(number)) return;
  Node& node = arena_.node(number);
  arena_.info(node).flags &= static_cast<std::uint8_t>(~NodeInfo::kMergeable);
  const Branches* b = node.branches.load(std::memory_order_relaxed);
  if (b == nullptr || b->at_deepest != 1 || b->deepest != length(node)) return;
  constexpr std::uint32_t kFewBranches = 32, kCheapCopy = 4096, kFewNames = 1024;
  if (b->mask >= 2 * kFewBranches) return;
  Node* child = nullptr;
  for (std::uint32_t i = 0; i <= b->mask; ++i) {
    const std::uint64_t w = b->words()[i].load(std::memory_order_relaxed);
    if (w > Branches::kRemoved && Branches::offset(w) == b->deepest) child = Branches::node(w);
  }
  const Branches* below = child->branches.load(std::memory_order_relaxed);
  const bool rename = run_of(*child).named != 0 && length(*child) > kFewNames;
  if (rename || length(node) + length(*child) > std::min(kMaxRun, kCheapCopy) || (below != nullptr && below->mask >= 2 * kFewBranches)) return;
  merge(node, *child);
}

/// Fills moved_ with what is held in a child, as seen from its parent's run.
inline void PrefixTree::note_moved(Node& child, std::uint32_t joint) {
  moved_.clear();
  holding_.for_each_holder(child, [this, &child, joint](std::uint32_t slot) {
    holding_.for_each_stretch(child, slot, [this, slot, joint](unsigned tier, std::uint32_t from, std::uint32_t to) {
      moved_.push_back({slot, tier, joint + from, joint + to});
    });
  });
}

/// Order matters to readers: cut-offs first, then the longer run, then the child leaves. Whoever finds the child gone sees the longer run.
inline void PrefixTree::merge(Node& parent, Node& child) {
  const std::uint32_t joint = length(parent), total = joint + length(child);
  clean(parent);
  clean(child);
  note_moved(child, joint);
  const Branches* below = child.branches.load(std::memory_order_relaxed);
  Run& lower = run_of(child);
  const bool named = run_of(parent).named != 0 || lower.named != 0;
  const std::size_t need = Run::bytes(total, named) + branches_.room_to_add(&parent, BlockHash{0}) * (below == nullptr ? 1 : below->live) +
                           moved_.size() * PrefixHolding::room_to_hold(parent, total) + (named ? ids_.room_to_add(total - joint) : 0);
  if (memory_.bytes() + need > max_bytes_) return;
  for (const Moved& m : moved_) static_cast<void>(holding_.hold(parent, m.slot, m.tier, m.from, m.to));
  branches_.move_all(child, parent, joint);
  const std::span<const BlockHash> hashes(lower.hashes(), total - joint);
  if (run_of(parent).capacity < total || run_of(parent).shown > joint || (named && run_of(parent).named == 0)) {
    Run* old = &run_of(parent);
    Run* run = copy_run(*old, total, named);
    std::memcpy(run->hashes() + joint, hashes.data(), hashes.size() * sizeof(BlockHash));
    run->length.store(total, std::memory_order_relaxed);
    run->shown = total;
    parent.run.store(run, std::memory_order_release);
    memory_.retire(old, old->bytes());
    blocks_ += hashes.size();
  } else {
    append(parent, hashes);
  }
  for (std::uint32_t i = 0; lower.named != 0 && i < total - joint; ++i) {
    if (lower.ids()[i] == 0) continue;
    run_of(parent).ids()[joint + i] = lower.ids()[i];
    ids_.add(lower.ids()[i], parent.number, joint + i, blocks_);
  }
  const std::uint32_t used = arena_.info(child).used;
  free_node(child);
  unlist(parent);
  arena_.info(parent).used = used;
  tidy(&parent);
}

// --- memory -----------------------------------------------------------------------------------------------------------

inline void PrefixTree::list_newest(Node& node) {
  NodeInfo& info = arena_.info(node);
  NodeInfo& head = arena_.info(kRoot);
  info.used = info.listed = tick_;
  info.flags |= NodeInfo::kListed;
  info.older = head.older;
  info.newer = kRoot;
  arena_.info(head.older).newer = node.number;
  head.older = node.number;
}

/// From `before` towards the new end, to where the node belongs. From the old end (kRoot) when an end part comes back because what hung
/// below it was evicted or removed: it mostly is among the oldest, and is put there if it is not found within `steps`.
inline void PrefixTree::list_by_age(Node& node, std::uint32_t before, std::uint32_t steps) {
  NodeInfo& info = arena_.info(node);
  info.listed = info.used;
  for (; steps != 0; --steps) {
    const std::uint32_t next = arena_.info(before).newer;
    if (next == kRoot || static_cast<std::int32_t>(arena_.info(next).used - info.used) >= 0) break;
    before = next;
  }
  info.flags |= NodeInfo::kListed;
  info.older = before;
  info.newer = arena_.info(before).newer;
  arena_.info(info.newer).older = node.number;
  arena_.info(before).newer = node.number;
}

inline void PrefixTree::unlist(Node& node) {
  NodeInfo& info = arena_.info(node);
  if ((info.flags & NodeInfo::kListed) == 0) return;
  info.flags &= static_cast<std::uint8_t>(~NodeInfo::kListed);
  arena_.info(info.older).newer = info.newer;
  arena_.info(info.newer).older = info.older;
}

inline void PrefixTree::touch(Node& node) {
  NodeInfo& info = arena_.info(node);
  info.used = tick_;
  // Moving it costs three other nodes' lines; eviction puts right what is at most kLate stores out of place.
  if ((info.flags & NodeInfo::kListed) == 0 || tick_ - info.listed < kLate) return;
  unlist(node);
  list_newest(node);
}

/// returns: whether `bytes` more may be asked for, after giving up what is oldest. `keep` is not touched.
inline bool PrefixTree::room(std::size_t bytes, Node* keep) {
  keep_ = keep;
  if (memory_.bytes() + bytes <= max_bytes_) return true;
  finish_memory(true);
  if (bytes > max_bytes_) return false;
  // one in 64 is freed beyond the need, so that a full index does not pay for a reclamation with every store
  const std::size_t target = max_bytes_ - std::min(max_bytes_ / 64, max_bytes_ - bytes);
  bool more = true;
  while (memory_.bytes() + bytes > max_bytes_ && more) {
    for (int batch = 0; batch < 64 && memory_.bytes() - memory_.waiting_bytes() + bytes > target && more; ++batch) more = evict_oldest();
    const std::size_t before = memory_.bytes();
    finish_memory(true);
    if (memory_.bytes() == before) break;  // a reader is inside: its view is not taken from it
  }
  return memory_.bytes() + bytes <= max_bytes_;
}

inline bool PrefixTree::evict_oldest() {
  std::uint32_t number = arena_.info(kRoot).newer;
  if (keep_ != nullptr && number == keep_->number) number = arena_.info(number).newer;
  if (number == kRoot) return false;
  Node& node = arena_.node(number);
  if (const NodeInfo& info = arena_.info(node); info.used != info.listed) {
    const std::uint32_t before = info.older;
    unlist(node);
    list_by_age(node, before, kLate + 1);
    return true;
  }
  clean(node);
  const std::uint32_t keep = deepest_branch(node);
  holding_.for_each_holder(node, [&](std::uint32_t slot) {
    const std::size_t gone = holding_.cut(node, slot, keep);
    held_[slot] -= gone;
    memberships_ -= gone;
    evicted_ += gone;
  });
  evicted_blocks_ += length(node) - keep;
  tidy(&node);
  return true;
}

inline void PrefixTree::finish_memory(bool collect_now) {
  memory_.close();
  if (collect_now || memory_.waiting() >= 64) memory_.collect([this](std::uint32_t number) { arena_.recycle(number); });
}

inline void PrefixTree::finish(bool collect_now) {
  while (!mergeable_.empty()) {
    const std::uint32_t number = mergeable_.back();
    mergeable_.pop_back();
    merge_child(number);
    tidy_postponed();
  }
  finish_memory(collect_now);
}

inline bool PrefixTree::sweep(std::size_t limit) {
  const std::uint32_t now = clears_.load(std::memory_order_relaxed);
  for (; to_sweep_ != 0 && limit != 0; --limit, --to_sweep_) {
    sweep_at_ = sweep_at_ + 1 < arena_.end() ? sweep_at_ + 1 : 0;
    if (sweep_at_ == kRoot || !arena_.live(sweep_at_)) continue;
    Node& node = arena_.node(sweep_at_);
    if (holding_.clean(node, cleared_at_.get(), now)) tidy(&node);
  }
  return to_sweep_ != 0;
}

inline PrefixTree::~PrefixTree() {
  for (std::uint32_t number = 1; number < arena_.end(); ++number) {
    if (!arena_.live(number)) continue;
    Node& node = arena_.node(number);
    holding_.retire(node);
    branches_.retire(node);
    memory_.retire(&run_of(node), run_of(node).bytes());
  }
  branches_.retire_root();
}

}  // namespace warmroute::detail
