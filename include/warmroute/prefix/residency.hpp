/// What we believe one replica's engine holds when it sends no events: a model of its cache, fed by our own routing.
/// An LRU over the replica's radix tree of blocks: leaf first, least recently used first, deepest first at equal recency, with the
/// engine's capacity and an optional time to live. What enters and leaves is written to a PrefixIndex.
/// Invariant: a block is held only with everything before it, and never more than `capacity()` blocks are.
/// Does not: read a clock, or lock: its owner serialises calls. `cached_tokens` feedback is applied by the owner with `truncate`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "warmroute/prefix/cached_tree.hpp"
#include "warmroute/prefix/detail/lru_copy.hpp"
#include "warmroute/prefix/detail/lru_tree.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

struct ResidencyOptions {
  std::size_t capacity_blocks = 0;  ///< 0 = unlimited
  Nanos ttl{0};                     ///< a block not touched for so long is gone; 0 = never
};

class Residency {
 public:
  /// lifetime: `index` must outlive this. Destruction leaves the index as it is; the owner clears the replica there.
  Residency(PrefixIndex& index, ReplicaId replica, Tier tier = Tier::device, ResidencyOptions options = {})
      : index_(&index), replica_(replica), tier_(tier), options_(options) {}
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  /// The engine just computed or used `path`: touches what is there, adds the rest, then evicts what overflows. A path longer than the
  /// capacity keeps its head. units: `now` monotonic; a step backwards counts as no step.
  /// cost: compares the path twice (here and in the index): under 1 us for 625 warm blocks (bench_residency).
  void insert(std::span<const BlockHash> path, Nanos now) {
    if (options_.capacity_blocks != 0) path = path.first(std::min(path.size(), options_.capacity_blocks));
    if (path.empty()) return;
    now_ = std::max(now_, now);
    tree_.insert(path, now_);
    shrink();
    // always the whole path: what the index gave up for its byte cap comes back when it is used again
    (void)index_->store(replica_, tier_, path);
  }

  /// returns: leading blocks of `path` believed to be there. Touches nothing.
  [[nodiscard]] std::size_t held(std::span<const BlockHash> path) const { return tree_.held(path); }

  /// The truth about `path`: only `keep` leading blocks are there. Drops block `keep` and all that hangs below it.
  void truncate(std::span<const BlockHash> path, std::size_t keep) {
    dropped_ += tree_.truncate(path, keep, [this](auto whole, std::size_t first) { forget(whole, first); });
  }

  /// units: blocks, 0 = unlimited. Shrinks by evicting.
  void set_capacity(std::size_t blocks) {
    options_.capacity_blocks = blocks;
    shrink();
  }

  /// units: ns, 0 = never. What is already older goes at the next `advance`.
  void set_ttl(Nanos ttl) { options_.ttl = ttl; }

  /// Lets blocks whose time to live is over go, oldest first, at most `max_blocks` of them.
  void advance(Nanos now, std::size_t max_blocks = 256) {
    now_ = std::max(now_, now);
    if (options_.ttl.value <= 0) return;
    while (max_blocks != 0 && !tree_.empty() && now_ - tree_.oldest() >= options_.ttl) max_blocks -= evict(max_blocks);
  }

  /// Forgets everything, and clears the replica in the index (all its tiers), in constant time there.
  void clear() {
    tree_.clear();
    index_->clear(replica_);
  }

  /// All that is held and its LRU order. cost: 8 bytes copied per block, 24 per run (bench_cache_export).
  void copy(CachedTree& out) const { tree_.copy(out); }

  /// What another model of this replica's cache held (or this one, earlier) is believed again, behind all that is held by now: whatever
  /// was used since then is younger. What does not fit into the capacity goes as ever, least recently used first.
  /// shape: `paths` must be valid(), and over `earlier`. units: last uses become last_use + shift, within [not_before, `oldest own`].
  /// cost: for each run, as insert of its path: together no more than the requests cost that made it.
  void restore(const CachedTree& earlier, CachedPaths& paths, Nanos shift, Nanos not_before) {
    CachedTree own;
    tree_.copy(own);
    CachedPaths own_paths(own);
    constexpr Nanos kEver{std::numeric_limits<std::int64_t>::max()};
    const Nanos not_after = own.runs.empty() ? kEver : own.runs.back().last_use;
    const auto moved = [&](Nanos last_use) { return std::min(std::max(last_use + shift, not_before), not_after); };
    tree_.clear();  // the index keeps what is held meanwhile
    replay(earlier, paths, moved);
    replay(own, own_paths, [](Nanos last_use) { return last_use; });
  }

  [[nodiscard]] std::size_t blocks() const noexcept { return tree_.blocks(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return options_.capacity_blocks; }
  [[nodiscard]] ReplicaId replica() const noexcept { return replica_; }
  /// Blocks that left by capacity or time to live, and those dropped by truncate, since the start.
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  /// Inserts the runs, least recently used first: each block is touched last by its own run, since all behind it are older.
  template <class Moved>
  void replay(const CachedTree& tree, CachedPaths& paths, Moved&& moved) {
    // newest first until the capacity is full is just what eviction would leave: of the last run, its head
    std::size_t runs = 0, room = options_.capacity_blocks != 0 ? options_.capacity_blocks : tree.blocks.size();
    for (; runs < tree.runs.size() && room >= tree.runs[runs].count; ++runs) room -= tree.runs[runs].count;
    const auto touch = [&](std::size_t run, std::size_t count) {
      const auto path = paths.path(run, count);
      const Nanos last_use = moved(tree.runs[run].last_use);
      now_ = std::max(now_,
                      last_use);  // a placement that took its time before this must not look older than what it touches
      tree_.insert(path, last_use);
      shrink();
      (void)index_->store(replica_, tier_, path);
    };
    if (runs < tree.runs.size() && room != 0) touch(runs, room);
    while (runs-- > 0) touch(runs, tree.runs[runs].count);
  }
  void shrink() {
    if (options_.capacity_blocks == 0) return;
    while (tree_.blocks() > options_.capacity_blocks) evict(tree_.blocks() - options_.capacity_blocks);
  }
  std::size_t evict(std::size_t limit) {
    const std::size_t count = tree_.evict(limit, [this](auto whole, std::size_t first) { forget(whole, first); });
    evicted_ += count;
    return count;
  }
  void forget(std::span<const BlockHash> path, std::size_t first) { index_->remove(replica_, tier_, path, first); }

  PrefixIndex* index_;
  ReplicaId replica_;
  Tier tier_;
  ResidencyOptions options_;
  Nanos now_{};
  std::uint64_t evicted_ = 0, dropped_ = 0;
  detail::LruTree tree_;
};

}  // namespace warmroute
