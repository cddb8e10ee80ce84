/// The prefix index: which replica holds which leading blocks of a prompt, for all replicas at once and per tier.
/// A run-compressed radix tree over block hashes (prefix/detail/tree.hpp); a position in the tree stands for all blocks before it, so no
/// chained hash is needed. Fed by residency models (prefix/residency.hpp), by engine events, or both.
/// Invariants: look-ups write nothing shared, take no lock and never wait; the index never asks for more than `max_bytes`; what a cleared
/// replica held is never credited again.
/// Does not: read a clock, start a thread, or know how old an entry is but by the order of stores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/prefix/detail/credit.hpp"
#include "warmroute/prefix/detail/tree.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

struct PrefixIndexOptions {
  std::uint32_t max_replicas = 1024;             ///< slots at or above are refused (Code::out_of_range); at most 65,504
  std::size_t max_bytes = std::size_t{1} << 30;  ///< hard cap on the memory of the tree, enforced on insert
};

struct PrefixIndexStatistics {
  std::uint64_t blocks = 0;  ///< distinct blocks in the tree, those of cleared replicas until they are swept included
  std::uint64_t memberships = 0;  ///< (replica, tier, block) triples held
  std::uint64_t nodes = 0;        ///< runs
  std::uint64_t bytes = 0;        ///< units: bytes asked from the allocator and not yet given back
  std::uint64_t max_bytes = 0;
  std::uint64_t evicted_memberships = 0;  ///< given up for the byte cap, since the start
  std::uint64_t evicted_blocks = 0;
  std::uint64_t refused_stores = 0;  ///< stores refused or cut short: stale, out of range, or no room
  std::uint64_t clears = 0;          ///< clears, those by a newer tenant of a slot included
};

/// The answer to one look-up; the caller keeps and reuses it.
/// threads: one at a time. alloc: 12 bytes per possible replica at the first look-up, then none. lifetime: spans until the next match.
class PrefixMatch {
 public:
  /// units: leading blocks, contiguous from block 0, that each replica slot holds on the device. shape: one per slot seen so far.
  [[nodiscard]] std::span<const std::uint32_t> device() const noexcept { return {depth_.data(), slots_}; }
  /// As device(), on the device or in host memory, block by block: never less than device().
  [[nodiscard]] std::span<const std::uint32_t> host() const noexcept { return {depth(1), slots_}; }
  /// As host(), disk included.
  [[nodiscard]] std::span<const std::uint32_t> disk() const noexcept { return {depth(2), slots_}; }
  /// As device(), host() and disk(), of one slot below the index's `max_replicas`, seen or not. Only after a look-up.
  [[nodiscard]] std::uint32_t device_depth(std::uint32_t slot) const noexcept { return depth(0)[slot]; }
  [[nodiscard]] std::uint32_t host_depth(std::uint32_t slot) const noexcept { return depth(1)[slot]; }
  [[nodiscard]] std::uint32_t disk_depth(std::uint32_t slot) const noexcept { return depth(2)[slot]; }
  /// As disk_depth, of them all. shape: one per slot below `max_replicas`.
  [[nodiscard]] const std::uint32_t* disk_lanes() const noexcept { return depth(2); }
  /// returns: whether any lower tier was ever stored; if not, the three are the same.
  [[nodiscard]] bool has_lower_tiers() const noexcept { return has_lower_; }
  [[nodiscard]] std::size_t slots() const noexcept { return slots_; }
  /// returns: the deepest match of any replica on any tier. units: blocks. cost: O(replicas that hold the first block).
  [[nodiscard]] std::uint32_t best() const noexcept {
    std::uint32_t best = 0;
    for (std::size_t i = low_; i < high_; ++i) best = std::max(best, depth(2)[i]);
    return best;
  }
  /// Somebody who knows better says how many leading blocks that replica has on the device, lower tiers with it.
  void set(std::uint32_t slot, std::uint32_t blocks) noexcept {
    if (slot >= lanes_ || (blocks == 0 && slot >= slots_)) return;
    slots_ = std::max<std::size_t>(slots_, std::size_t{slot} + 1);
    touch(slot, 1);
    for (unsigned t = 0; t < (has_lower_ ? kTierCount : 1); ++t) depth(t)[slot] = blocks;
  }
  /// Credits each slot with what `more`, of an index with as many replicas, says it holds on the device, where that is deeper.
  /// cost: O(replicas that hold the first block there).
  void raise(const PrefixMatch& more) noexcept {
    if (more.low_ >= more.high_ || more.lanes_ != lanes_) return;
    slots_ = std::max(slots_, more.slots_);
    touch(static_cast<std::uint32_t>(more.low_), static_cast<std::uint32_t>(more.high_ - more.low_));
    for (unsigned t = 0; t < (has_lower_ ? kTierCount : 1); ++t) {
      for (std::size_t i = more.low_; i < more.high_; ++i) depth(t)[i] = std::max(depth(t)[i], more.depth(0)[i]);
    }
  }

 private:
  friend class PrefixIndex;
  [[nodiscard]] const std::uint32_t* depth(unsigned tier) const noexcept {
    return depth_.data() + (has_lower_ ? tier * lanes_ : 0);
  }
  [[nodiscard]] std::uint32_t* depth(unsigned tier) noexcept {
    return depth_.data() + (has_lower_ ? tier * lanes_ : 0);
  }
  /// All depths 0: only those that the last look-up touched are written.
  void begin(std::size_t lanes, std::size_t slots, bool has_lower) {
    if (depth_.size() < kTierCount * lanes) {
      depth_.assign(kTierCount * lanes, 0);
    } else if (low_ < high_) {
      for (unsigned t = 0; t < (has_lower_ ? kTierCount : 1); ++t) std::fill(depth(t) + low_, depth(t) + high_, 0);
    }
    lanes_ = lanes;
    slots_ = slots;
    has_lower_ = has_lower;
    low_ = lanes;
    high_ = 0;
  }
  void touch(std::uint32_t first, std::uint32_t count) noexcept {
    low_ = std::min<std::size_t>(low_, first);
    high_ = std::max<std::size_t>(high_, std::size_t{first} + count);
  }

  std::vector<std::uint32_t> depth_;  // kTierCount planes of lanes_; one is used while there are no lower tiers
  std::size_t lanes_ = 0, slots_ = 0;
  std::size_t low_ = 0, high_ = 0;  // slots that may be other than 0
  bool has_lower_ = false;
};

class PrefixIndex {
 public:
  /// lifetime: `domain` must outlive the index.
  explicit PrefixIndex(detail::EpochDomain& domain, PrefixIndexOptions options = {})
      : domain_(&domain),
        options_(options),
        tree_(domain, std::min(options.max_replicas, kMaxReplicas), options.max_bytes),
        generations_(tree_.lanes(), 0) {
    options_.max_replicas = std::min(options.max_replicas, kMaxReplicas);
  }
  /// With an epoch domain of its own.
  explicit PrefixIndex(PrefixIndexOptions options = {})
      : PrefixIndex(std::make_unique<detail::EpochDomain>(), options) {}
  PrefixIndex(const PrefixIndex&) = delete;
  PrefixIndex& operator=(const PrefixIndex&) = delete;

  /// Blocks [first, path.size()) are now held by `r` on `tier`, those held already included.
  /// shape: `path` is the chain of block hashes from block 0. A newer generation of a slot clears the older one first.
  /// errors: out_of_range (slot; a tier that is not a replica's own), stale (an older generation), capacity (no room, and nothing older to give up: the leading part is kept).
  /// threads: any; serialised inside. cost: compares the path, then about 10 ns per block stored (bench_index).
  Status store(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first = 0);

  /// Blocks [first, path.size()) are no longer held by `r` on `tier`; what it holds behind them stays held, but out of reach.
  /// returns: memberships removed; 0 for an older generation. threads: as store.
  std::size_t remove(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first = 0);

  /// As store, the way engines say it: `blocks` follow the block that the replica's engine calls `parent` (null: they start at block 0)
  /// and are called `ids`. Opaque to us; replicas whose ids differ for the same blocks still share them. Id 0 names nothing.
  /// shape: ids.size() == blocks.size(). errors: as store; invalid_argument (sizes), not_found (parent: never stored, or given up).
  /// `gap`, if given, says whether the parent is known but not held by `r` on any tier. cost: does not depend on how deep the parent lies.
  Status store_event(ReplicaId r, Tier tier, const EngineHash* parent, std::span<const EngineHash> ids,
                     std::span<const BlockHash> blocks, bool* gap = nullptr);

  /// As store, with the engine's names for the blocks [first, path.size()). shape: `ids` as many as those. errors: as store_event.
  Status store_named(ReplicaId r, Tier tier, std::span<const BlockHash> path, std::size_t first,
                     std::span<const EngineHash> ids);

  /// As remove, by the engine's names in any order; unknown names are skipped. returns: memberships removed.
  std::size_t remove_event(ReplicaId r, Tier tier, std::span<const EngineHash> ids);

  /// Blocks that the replica's engine calls by these names are held on `tier` too, as it says when it copies some without naming their
  /// content again. Unknown names are skipped. returns: how many are known. threads: as store.
  std::size_t hold_event(ReplicaId r, Tier tier, std::span<const EngineHash> ids);

  /// Calls visit(path) for blocks that the replica's engine calls by these names, each path from block 0 to the block and it included: one
  /// path per stretch of names that lie in one run, to the shallowest of them; unknown names are skipped. `scratch` holds the path.
  /// threads: as store; `visit` must not call the index. cost: the paths' lengths.
  template <class Visit>
  void paths_to(ReplicaId r, std::span<const EngineHash> ids, std::vector<BlockHash>& scratch, Visit&& visit);

  /// The blocks from block 0 to the one that the replica's engine calls `id`, it included.
  /// returns: whether that one is known; `out` is empty if not. threads: as store. cost: the path's length.
  bool path_to(ReplicaId r, EngineHash id, std::vector<BlockHash>& out);

  /// returns: whether the index knows a block by that replica's name for it. threads: as store.
  [[nodiscard]] bool knows(ReplicaId r, EngineHash id);

  /// Forgets all that the slot held, whatever its generation up to r.generation; later stores of an older one are stale.
  /// threads: as store. cost: constant; the memory comes back with later changes and `advance`.
  void clear(ReplicaId r);

  /// For every replica, how many leading blocks of `path` it holds. threads: any number, beside writers; writes nothing shared. alloc: none
  /// once `out` has been used. cost: bench_index.
  void match(std::span<const BlockHash> path, PrefixMatch& out, const detail::EpochDomain::Guard& pinned) const;
  void match(std::span<const BlockHash> path, PrefixMatch& out) const { match(path, out, domain_->pin()); }

  /// threads: as store.
  [[nodiscard]] PrefixIndexStatistics statistics() const;

  /// Gives back memory: of cleared replicas, looking at no more than `max_nodes` runs, and what readers have left. threads: as store.
  void advance(std::size_t max_nodes = 256) {
    const std::scoped_lock lock(mutex_);
    tree_.sweep(max_nodes);
    tree_.settle_names();
    tree_.finish(true);
  }

 private:
  static constexpr std::uint32_t kMaxReplicas = 65'504;
  static constexpr std::size_t kSweepPerChange = 4;

  PrefixIndex(std::unique_ptr<detail::EpochDomain> own, PrefixIndexOptions options) : PrefixIndex(*own, options) {
    own_domain_ = std::move(own);
  }
  /// A shared store belongs to a whole pool (route/detail/shared_store.hpp).
  [[nodiscard]] static constexpr bool own(Tier tier) noexcept { return static_cast<std::size_t>(tier) < kTierCount; }
  Status refuse(Code code, const char* why) {
    ++refused_;
    return Error{code, why, kNoOffset};
  }
  /// Whether a store of that replica on that tier may begin, and what it changes by itself. errors: as store.
  Status take(ReplicaId r, Tier tier);
  /// returns: whether `r` is the tenant of its slot now; a newer one clears the older.
  bool admit(ReplicaId r);
  void end_change() {
    tree_.sweep(kSweepPerChange);
    tree_.finish();
  }
  void match_from(const detail::Node* node, std::span<const BlockHash> path, PrefixMatch& out) const;

  // declared first: the tree gives its memory back before the domain goes
  std::unique_ptr<detail::EpochDomain> own_domain_;
  detail::EpochDomain* domain_;
  PrefixIndexOptions options_;
  std::atomic<std::uint32_t> slots_{0};
  std::atomic<bool> has_lower_{false};
  mutable std::mutex mutex_;
  detail::PrefixTree tree_;
  std::vector<std::uint32_t> generations_;
  std::vector<EngineHash> names_;  // working memory of store_named
  std::uint64_t refused_ = 0;
};

}  // namespace warmroute

#include "warmroute/prefix/detail/index_inl.hpp"
