/// PrefixIndex: the bodies. Writers lock and hand on to the tree; a look-up walks it by itself.
#pragma once

#include "warmroute/prefix/index.hpp"

namespace warmroute {

inline bool PrefixIndex::admit(ReplicaId r) {
  if (r.slot >= slots_.load(std::memory_order_relaxed)) slots_.store(r.slot + 1, std::memory_order_release);
  std::uint32_t& generation = generations_[r.slot];
  if (r.generation < generation) return false;
  if (r.generation > generation) {
    if (tree_.ever_held(r.slot)) tree_.clear(r.slot);
    generation = r.generation;
  }
  return true;
}

inline Status PrefixIndex::take(ReplicaId r, Tier tier) {
  if (r.slot >= options_.max_replicas) return refuse(Code::out_of_range, "replica slot at or beyond max_replicas");
  if (!own(tier)) return refuse(Code::out_of_range, "a shared store is no tier of one replica");
  if (!admit(r)) return refuse(Code::stale, "the replica slot has a newer tenant");
  if (tier != Tier::device) has_lower_.store(true, std::memory_order_release);
  return {};
}

inline Status PrefixIndex::store(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first) {
  const std::scoped_lock lock(mutex_);
  if (const Status fine = take(r, tier); !fine) return fine;
  const bool done = tree_.store(r.slot, static_cast<unsigned>(tier), path, first);
  end_change();
  if (!done) return refuse(Code::capacity, "the prefix index is at max_bytes and has nothing older to give up");
  return {};
}

inline std::size_t PrefixIndex::remove(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first) {
  const std::scoped_lock lock(mutex_);
  if (!own(tier) || r.slot >= options_.max_replicas || r.generation < generations_[r.slot] || !admit(r)) return 0;
  const std::size_t removed = tree_.remove(r.slot, static_cast<unsigned>(tier), path, first);
  end_change();
  return removed;
}

inline Status PrefixIndex::store_event(ReplicaId r, Tier tier, const EngineHash* parent,
                                       std::span<const EngineHash> ids, std::span<const BlockHash> blocks, bool* gap) {
  const std::scoped_lock lock(mutex_);
  if (gap != nullptr) *gap = false;
  if (ids.size() != blocks.size()) return refuse(Code::invalid_argument, "as many ids as blocks are needed");
  if (const Status fine = take(r, tier); !fine) return fine;
  detail::EngineIds::Place place;
  if (parent != nullptr) {
    place = tree_.find(r.slot, *parent);
    if (place.node == nullptr) return refuse(Code::not_found, "the parent block is not in the index");
    if (gap != nullptr) *gap = !tree_.held(place, r.slot);
  }
  const bool done = blocks.empty() || tree_.store_below(place, r.slot, static_cast<unsigned>(tier), blocks, 0, ids);
  end_change();
  if (!done) return refuse(Code::capacity, "the prefix index is at max_bytes and has nothing older to give up");
  return {};
}

inline Status PrefixIndex::store_named(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first,
                                       std::span<const EngineHash> ids) {
  const std::scoped_lock lock(mutex_);
  if (first > path.size() || ids.size() != path.size() - first)
    return refuse(Code::invalid_argument, "as many ids as blocks from `first` on are needed");
  if (const Status fine = take(r, tier); !fine) return fine;
  names_.assign(first, EngineHash{0});
  names_.insert(names_.end(), ids.begin(), ids.end());
  const bool done = tree_.store_below({}, r.slot, static_cast<unsigned>(tier), path, first, names_);
  end_change();
  if (!done) return refuse(Code::capacity, "the prefix index is at max_bytes and has nothing older to give up");
  return {};
}

inline std::size_t PrefixIndex::remove_event(ReplicaId r, Tier tier, std::span<const EngineHash> ids) {
  const std::scoped_lock lock(mutex_);
  if (!own(tier) || r.slot >= options_.max_replicas || r.generation < generations_[r.slot] || !admit(r)) return 0;
  const std::size_t removed = tree_.remove_named(r.slot, static_cast<unsigned>(tier), ids);
  end_change();
  return removed;
}

inline std::size_t PrefixIndex::hold_event(ReplicaId r, Tier tier, std::span<const EngineHash> ids) {
  const std::scoped_lock lock(mutex_);
  if (!own(tier) || r.slot >= options_.max_replicas || r.generation < generations_[r.slot] || !admit(r)) return 0;
  if (tier != Tier::device) has_lower_.store(true, std::memory_order_release);
  const std::size_t known = tree_.hold_named(r.slot, static_cast<unsigned>(tier), ids);
  end_change();
  return known;
}

template <class Visit>
void PrefixIndex::paths_to(ReplicaId r, std::span<const EngineHash> ids, std::vector<BlockHash>& scratch,
                           Visit&& visit) {
  const std::scoped_lock lock(mutex_);
  if (r.slot >= options_.max_replicas || r.generation != generations_[r.slot]) return;
  detail::EngineIds::Place at;
  const auto give = [&] {
    if (at.node == nullptr) return;
    tree_.path_to(at, scratch);
    visit(std::span<const BlockHash>(scratch));
  };
  for (const EngineHash id : ids) {
    const detail::EngineIds::Place place = tree_.find(r.slot, id);
    if (place.node == nullptr) continue;
    if (place.node == at.node) {
      at.offset = std::min(at.offset, place.offset);
      continue;
    }
    give();
    at = place;
  }
  give();
}

inline bool PrefixIndex::path_to(ReplicaId r, EngineHash id, std::vector<BlockHash>& out) {
  const std::scoped_lock lock(mutex_);
  out.clear();
  if (r.slot >= options_.max_replicas || r.generation != generations_[r.slot]) return false;
  const detail::EngineIds::Place place = tree_.find(r.slot, id);
  if (place.node == nullptr) return false;
  tree_.path_to(place, out);
  return true;
}

inline bool PrefixIndex::knows(ReplicaId r, EngineHash id) {
  const std::scoped_lock lock(mutex_);
  return r.slot < options_.max_replicas && tree_.find(r.slot, id).node != nullptr;
}

inline void PrefixIndex::clear(ReplicaId r) {
  const std::scoped_lock lock(mutex_);
  if (r.slot >= options_.max_replicas || r.generation < generations_[r.slot]) return;
  if (r.slot >= slots_.load(std::memory_order_relaxed)) slots_.store(r.slot + 1, std::memory_order_release);
  generations_[r.slot] = r.generation;
  if (tree_.ever_held(r.slot)) tree_.clear(r.slot);
}

inline PrefixIndexStatistics PrefixIndex::statistics() const {
  const std::scoped_lock lock(mutex_);
  return {tree_.blocks(),  tree_.memberships(),    tree_.nodes(), tree_.bytes(), options_.max_bytes,
          tree_.evicted(), tree_.evicted_blocks(), refused_,      tree_.clears()};
}

inline void PrefixIndex::match(std::span<const BlockHash> path, PrefixMatch& out,
                               const detail::EpochDomain::Guard&) const {
  const bool lower = has_lower_.load(std::memory_order_acquire);
  out.begin(tree_.lanes(), slots_.load(std::memory_order_acquire), lower);
  if (path.empty()) return;
  const detail::Node* node = tree_.first_node(path[0]);
  if (node == nullptr) return;
  match_from(node, path, out);
  if (!lower) return;
  // cut-offs of one replica change one by one: a look-up in between must not say less for more tiers
  for (std::size_t i = out.low_; i < out.high_; ++i) {
    out.depth(1)[i] = std::max(out.depth(1)[i], out.depth(0)[i]);
    out.depth(2)[i] = std::max(out.depth(2)[i], out.depth(1)[i]);
  }
}

inline void PrefixIndex::match_from(const detail::Node* node, std::span<const BlockHash> path, PrefixMatch& out) const {
  const detail::Credit credit = tree_.credit();
  const unsigned tiers = out.has_lower_ ? kTierCount : 1;
  const std::uint32_t clears = tree_.clears();
  const auto compare = tree_.compare();
  std::uint32_t base = 0;
  while (node != nullptr) {
    const std::uint32_t seen = node->clears.load(std::memory_order_acquire);
    const detail::Run* run = node->run.load(std::memory_order_acquire);
    const std::uint32_t length = run->length.load(std::memory_order_acquire);
    const auto matched = static_cast<std::uint32_t>(
        compare(run->hashes(), path.data() + base, std::min<std::size_t>(length, path.size() - base)));
    if (base == 0) credit.touched(*node, [&out](std::uint32_t first, std::uint32_t count) { out.touch(first, count); });
    bool through = false;
    for (unsigned t = 0; t < tiers; ++t) through |= credit(*node, t, out.depth(t), base, matched, seen, seen < clears);
    const std::uint32_t depth = base + matched;
    if (depth == path.size() || !through) return;
    const detail::Node* next =
        detail::find_branch(node->branches.load(std::memory_order_acquire), matched, path[depth]);
    if (next == nullptr) {
      // A writer may just have taken the child into this run, which may have gone on otherwise when we compared it: it shows
      // the run with the child's blocks before it takes the child away.
      const detail::Run* now = node->run.load(std::memory_order_acquire);
      if (now->length.load(std::memory_order_acquire) <= matched || now->hashes()[matched] != path[depth]) return;
      for (unsigned t = 0; t < tiers; ++t) credit.undo(*node, out.depth(t), base);
      continue;
    }
    node = next;
    base = depth;
  }
}

}  // namespace warmroute
