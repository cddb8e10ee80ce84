/// What a store that every replica of a pool can load KV blocks from holds, as the engines' events say (media STORAGE, OBJ, EXTERNAL...).
/// One set per pool: stored by whom ever, removed by whom ever. The engines find blocks there by their own names for them, so those agree;
/// where a parent was never stored there, the replica's own names say where it lies.
/// threads: `any` and `depth` any; changes serialise inside.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

class SharedStore {
 public:
  SharedStore(EpochDomain& domain, std::size_t max_bytes)
      : index_(domain, PrefixIndexOptions{.max_replicas = 1, .max_bytes = max_bytes}) {}

  [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
  /// returns: leading blocks of the path that can be loaded from there.
  [[nodiscard]] std::uint32_t depth(std::span<const BlockHash> path, PrefixMatch& scratch,
                                    const EpochDomain::Guard& guard) const {
    index_.match(path, scratch, guard);
    return scratch.slots() == 0 ? 0 : scratch.device()[0];
  }

  /// `blocks` follow `parent` (none: they start at block 0). `own` knows what else the replica calls by name.
  /// errors: not_found (unknown parent), capacity.
  Status store(PrefixIndex& own, ReplicaId by, const EngineHash* parent, std::span<const EngineHash> ids,
               std::span<const BlockHash> blocks) {
    const std::lock_guard lock(mutex_);
    path_.clear();
    if (parent != nullptr && !path_of(own, by, *parent)) {
      return Error{Code::not_found, "the parent block is neither in the shared store nor known of the replica",
                   kNoOffset};
    }
    const std::size_t first = path_.size();
    path_.insert(path_.end(), blocks.begin(), blocks.end());
    return put(first, ids);
  }
  /// Blocks that the replica named before are there too. returns: how many are known.
  std::size_t also(PrefixIndex& own, ReplicaId by, std::span<const EngineHash> ids) {
    const std::lock_guard lock(mutex_);
    std::size_t known = 0;
    for (const EngineHash& id : ids) {
      if (path_of(own, by, id) && put(path_.size() - 1, {&id, 1})) ++known;
    }
    return known;
  }
  std::size_t remove(std::span<const EngineHash> ids) {
    const std::lock_guard lock(mutex_);
    const std::size_t removed = index_.remove_event(kStore, Tier::device, ids);
    count();
    return removed;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    index_.clear(kStore);
    count();
  }
  void advance() { index_.advance(); }
  [[nodiscard]] std::uint64_t blocks() const { return index_.statistics().memberships; }

 private:
  static constexpr ReplicaId kStore{0, 0};

  bool path_of(PrefixIndex& own, ReplicaId by, EngineHash id) {
    return index_.path_to(kStore, id, path_) || own.path_to(by, id, path_);
  }
  Status put(std::size_t first, std::span<const EngineHash> ids) {
    const Status done = index_.store_named(kStore, Tier::device, path_, first, ids);
    count();
    return done;
  }
  void count() { any_.store(blocks() != 0, std::memory_order_release); }

  PrefixIndex index_;
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<BlockHash> path_;
};

}  // namespace warmroute::detail
