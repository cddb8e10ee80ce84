/// PrefixTree, part four: the byte cap, the order of eviction, cleared replicas, and the end of a change.
#pragma once

#include "warmroute/prefix/detail/tree.hpp"

namespace warmroute::detail {

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
  if (memory_.fits(bytes)) return true;
  finish_memory(true);
  const std::size_t most = memory_.max_bytes();
  if (bytes > most) return false;
  // one in 64 is freed beyond the need, so that a full index does not pay for a reclamation with every store
  const std::size_t target = most - std::min(most / 64, most - bytes);
  bool more = true;
  while (!memory_.fits(bytes) && more) {
    for (int batch = 0; batch < 64 && memory_.bytes() - memory_.waiting_bytes() + bytes > target && more; ++batch)
      more = evict_oldest();
    const std::size_t before = memory_.bytes();
    finish_memory(true);
    if (memory_.bytes() == before) break;  // a reader is inside: its view is not taken from it
  }
  return memory_.fits(bytes);
}

/// returns: the node to give up next, or null. Puts right on the way what touches left out of place.
inline Node* PrefixTree::oldest() {
  for (;;) {
    std::uint32_t number = arena_.info(kRoot).newer;
    if (keep_ != nullptr && number == keep_->number) number = arena_.info(number).newer;
    if (number == kRoot) return nullptr;
    Node& node = arena_.node(number);
    const NodeInfo& info = arena_.info(node);
    if (info.used == info.listed) return &node;
    const std::uint32_t before = info.older;
    unlist(node);
    list_by_age(node, before, kLate + 1);
  }
}

inline bool PrefixTree::evict_oldest() {
  Node* found = oldest();
  if (found == nullptr) return false;
  Node& node = *found;
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
  ids_.end_change();
  finish_memory(collect_now);
  if (!collect_now) return;
  arena_.trim();
  memory_.trim_list();
}

inline bool PrefixTree::sweep(std::size_t limit) {
  const std::uint32_t now = clears_.load(std::memory_order_relaxed);
  for (; to_sweep_ != 0 && limit != 0; --limit) {
    // a round starts anywhere and wraps at the end of the last clear: numbers added since name nodes that know of it
    sweep_at_ = sweep_at_ + 1 < sweep_end_ ? sweep_at_ + 1 : 0;
    --to_sweep_;
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
