/// PrefixTree, part three: runs grow, end, go and are merged. Each step leaves something that a look-up may read at any moment.
#pragma once

#include "warmroute/prefix/detail/tree.hpp"

namespace warmroute::detail {

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
  run->named = named ? std::max(old.named, 1U) : 0;
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
  if (!room(arena_.bytes_to_add() + Run::bytes(count, named) + branches_.room_to_add(at, hashes[0]), at))
    return nullptr;
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
  forget_names(node, keep);
  blocks_ -= run.length.load(std::memory_order_relaxed) - keep;
  run.length.store(keep, std::memory_order_release);
  // halves at least, so that cutting block by block stays cheap; not when the copy itself would break the cap
  if (keep != 0 && run.capacity > 32 && keep < run.capacity / 2 && memory_.fits(Run::bytes(keep, run.named != 0))) {
    replace_run(node, keep, run.named != 0);
  }
}

inline void PrefixTree::free_node(Node& node) {
  NodeInfo& info = arena_.info(node);
  branches_.remove(info.parent == kRoot ? nullptr : &arena_.node(info.parent), info.offset, node);
  unlist(node);
  Run& run = run_of(node);
  forget_names(node, 0);
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
  if (b->shift != 0 || b->mask >= 2 * kFewBranches) return;
  Node* child = nullptr;
  for (std::uint32_t i = 0; i <= b->mask; ++i) {
    const std::uint64_t w = b->words()[i].load(std::memory_order_relaxed);
    if (w > Branches::kRemoved && Branches::offset(w) == b->deepest) child = Branches::node(w);
  }
  const Branches* below = child->branches.load(std::memory_order_relaxed);
  const bool rename = run_of(*child).named != 0 && length(*child) > kFewNames;
  if (rename || length(node) + length(*child) > std::min(kMaxRun, kCheapCopy) ||
      (below != nullptr && (below->shift != 0 || below->mask >= 2 * kFewBranches)))
    return;
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
  const std::size_t need =
      Run::bytes(total, named) + branches_.room_to_add(&parent, BlockHash{0}) * (below == nullptr ? 1 : below->live) +
      moved_.size() * PrefixHolding::room_to_hold(parent, total) + (named ? ids_.room_to_add(total - joint) : 0);
  if (!memory_.fits(need)) return;
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
    const std::uint64_t id = lower.ids()[i];
    if (id == 0) continue;
    run_of(parent).ids()[joint + i] = id;
    ++run_of(parent).named;
    ids_.add(id, parent.number, joint + i);
  }
  const std::uint32_t used = arena_.info(child).used;
  free_node(child);
  unlist(parent);
  arena_.info(parent).used = used;
  tidy(&parent);
}

}  // namespace warmroute::detail
