/// What one router sees of the fleet: the views of simulator.hpp, made of the truth, of late events, and of what this
/// router has sent itself.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "trace/block_cache.hpp"
#include "trace/holders.hpp"
#include "warmroute/trace/routing_rule.hpp"
#include "warmroute/trace/simulator.hpp"

namespace warmroute::trace {

/// The load of one replica, as somebody sees it.
struct Load {
  std::int64_t requests = 0;
  std::int64_t waiting = 0;
  std::int64_t pending_tokens = 0;
  std::int64_t pending_ps = 0;
  std::int64_t tokens_in_flight = 0;
  std::int64_t used_blocks = 0;
  std::int64_t cached_blocks = 0;

  Load& operator+=(const Load& o) noexcept;
  Load& operator-=(const Load& o) noexcept;
};

/// What all routers look at.
struct FleetState {
  std::vector<ReplicaModel> models;
  Holders truth;               ///< committed and not evicted
  Holders reported;            ///< the same, as late and as complete as events are
  std::vector<Load> snapshot;  ///< by replica, at the last multiple of S
  std::vector<Load> hits;      ///< pending work that queued requests will not need, if they hit what they were promised
  [[nodiscard]] Load now(std::uint32_t replica) const noexcept;
};

/// The cache of one replica as a router imagines it: a leaf-first LRU of what it has sent there.
class RoutedCache {
 public:
  explicit RoutedCache(std::int64_t capacity) : cache_(capacity) {}
  void touch(std::uint32_t replica, std::span<const std::uint64_t> blocks, Holders& holders);
  void clear() { cache_.clear(); }
  [[nodiscard]] std::int64_t blocks() const noexcept { return cache_.cached(); }

 private:
  BlockCache cache_;
  std::vector<BlockCache::Node> path_;
};

class RouterView {
 public:
  RouterView(const View& view, const RuleSetting& setting, std::uint64_t distinct_blocks);

  /// Forgets predictions that are over by now.
  void advance(std::int64_t now_us);
  /// Fills `sights` for the replicas named in them.
  void look(const FleetState& fleet, const RoutedRequest& request, std::span<ReplicaSight> sights);

  void routed(const RoutedRequest& request, const ReplicaSight& sight);
  void first_token(const RoutedRequest& request);
  /// The end of a request, whether it was served or lost.
  void ended(const RoutedRequest& request, bool lost);
  void snapshot_taken();
  void cache_lost(std::uint32_t replica);
  /// returns: null when this view predicts nothing.
  [[nodiscard]] const Holders* predicted() const noexcept { return view_.predicts ? &predicted_.holders() : nullptr; }

 private:
  struct Ticket {
    std::uint32_t replica = kNoRequest;
    bool prefills = false;
    bool predicted = false;
    Load booked;   // requests, tokens, blocks until the end
    Load prefill;  // waiting, pending until the first token
  };
  struct Expiry {
    std::int64_t due_us = 0;
    std::uint32_t replica = 0;
    std::uint32_t request = 0;
    std::span<const std::uint64_t> blocks;
  };
  Ticket& ticket(std::uint32_t request);

  View view_;
  HardwareProfile hardware_;
  std::int64_t block_tokens_;
  std::vector<Load> own_;    // tickets in flight, by replica
  std::vector<Load> since_;  // dispatches since the snapshot
  std::vector<Ticket> tickets_;
  CountedHolders predicted_;
  std::deque<Expiry> expiring_;
  Holders routed_;
  std::vector<RoutedCache> caches_;
  std::vector<std::int64_t> depth_;
};

}  // namespace warmroute::trace
