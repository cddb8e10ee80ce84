/// The router: decides in the caller's process which replica serves a request, and books what that causes.
///
///   warmroute::Router router;
///   auto id = router.add_replica({.name = "gpu-0"}, now);
///   auto decision = router.route(request, now);           // which replica, what it holds, why; load is booked
///   router.first_token(decision.ticket, now);             // prefill is over
///   router.finish(decision.ticket, {.cached_tokens = 512}, now);  // load released, the truth corrects the model
///
/// Invariant: what `route` books is released exactly once, by finish, fail or the end of the lease.
/// threads: every call from any thread. route, peek, first_token, finish and fail never wait for a writer; membership and policy calls
/// serialise. alloc: once warm, these allocate for what is new alone: blocks never seen (nodes of the index), more requests in flight or
/// longer prompts than ever before; and to repair the model of a cache (fewer cached_tokens than predicted, a prefill that failed).
/// Does not: read a clock, open a socket, start a thread, keep prompt text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "warmroute/observe/log.hpp"
#include "warmroute/observe/statistics.hpp"
#include "warmroute/replica/table.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/cache_events.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/explain.hpp"
#include "warmroute/route/learned.hpp"
#include "warmroute/route/peer_load.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/replica_cache.hpp"
#include "warmroute/route/request.hpp"
#include "warmroute/route/router_calls.hpp"

namespace warmroute {

/// Sizes that are fixed when the router is made.
struct RouterOptions {
  std::uint32_t max_replicas = 1'024;                  ///< at most 16,384
  std::uint32_t max_tickets = 65'536;                  ///< requests in flight, rounded up to a multiple of 256
  std::size_t index_max_bytes = std::size_t{1} << 30;  ///< hard cap per pool
  std::size_t session_entries = std::size_t{1} << 16;
  std::size_t shared_prefix_entries = std::size_t{1} << 17;  ///< per pool, for the hot rebate
  std::size_t placement_queue = 4'096;                       ///< placements that wait for the writer
  std::size_t max_path_blocks = 32'768;  ///< of a prompt; what is behind is neither matched nor kept
  LogSink log{};
};

/// What a response's `usage` said. kUnknown where it did not: unknown is not zero.
struct UsageCounts {
  std::int64_t input_tokens = kUnknown;
  std::int64_t cached_tokens = kUnknown;
  std::int64_t output_tokens = kUnknown;
};

namespace detail {
class RouterCore;
}

class Router {
 public:
  explicit Router(RouterOptions options = {});
  /// Hands every call on to `calls` and decides nothing itself: one that records, say. lifetime: `calls` is longer.
  explicit Router(RouterCalls& calls);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Swaps the policy for all calls that start afterwards. Tickets in flight keep what they booked.
  /// errors: invalid_argument, all faults at once; the old policy then stays.
  Status set_policy(const Policy& policy);
  [[nodiscard]] Policy policy() const;

  /// errors: invalid_argument, already_exists, capacity.
  Result<ReplicaId> add_replica(ReplicaSpec spec, Nanos now);
  /// The replica and everything believed of its cache go at once; its tickets stay valid until they are released.
  /// errors: stale.
  Status remove_replica(ReplicaId id, Nanos now);
  /// down and draining take no new requests; entries in the index stay. errors: stale.
  Status set_health(ReplicaId id, Health health, std::string_view reason, Nanos now);
  /// It takes no new requests and finishes what it has until `until` (the caller's clock; 0 = no end); then `advance` takes it for down, and
  /// whoever forwards should cut what still runs there: requests_in_flight and its row in the statistics say how much. errors: stale.
  Status drain(ReplicaId id, Nanos until, Nanos now);
  /// Changes weight, labels, adapters, rates, role, ring_id, capacity in place. Health and its reason stay, whatever `spec` says: they come
  /// from probes, `spec` from configuration, and set_health alone changes them. errors: stale, invalid_argument.
  Status update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now);
  /// The engine restarted or dropped its cache: what is believed of it goes, its load stays. cost: O(1) in the index; the
  /// model of its cache is freed here. errors: stale.
  Status clear_cache(ReplicaId id, Nanos now);
  /// A reading of the engine's metrics; block_tokens and block_count set the capacity of its residency. errors: stale, invalid_argument.
  Status signal(ReplicaId id, Signal kind, double value, Nanos now);
  /// A reading of the engine's prefix-cache counters, for the statistics alone: its own hit ratio stands beside what was matched here.
  /// apply_engine_reading calls it. errors: stale, invalid_argument.
  Status prefix_counters(ReplicaId id, const PrefixCounters& counters, Nanos now);
  /// An engine's event: these blocks are held now (route/cache_events.hpp). The first one makes the replica a reported one.
  /// errors: stale; unsupported (role prefill); invalid_argument (sizes); not_found (unknown parent: nothing stored, counted);
  /// capacity (the index is full: the leading part is kept). alloc: none but the index's own. cost: bench_index, ingest.
  Status blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now);
  /// An engine's event: these are gone, in any order; unknown names are skipped. returns: how many were held. errors: stale, unsupported.
  Result<std::size_t> blocks_removed(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now);
  /// An engine's event: blocks that it named before are on `tier` (too); their content is not named again. returns: how many are known.
  /// errors: stale, unsupported.
  Result<std::size_t> blocks_also_on(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now);
  /// The store that all replicas of that pool share (Tier::shared) is empty: it was wiped or replaced. errors: not_found.
  Status clear_shared_store(std::string_view pool);
  [[nodiscard]] std::vector<ReplicaRow> replicas() const;
  /// What is known of one replica: its name, address labels, health. Copies. errors: stale.
  [[nodiscard]] Result<ReplicaSpec> replica(ReplicaId id) const;
  /// errors: not_found. cost: O(replicas), nothing is copied.
  [[nodiscard]] Result<ReplicaId> find_replica(std::string_view name, std::uint32_t dp_rank = 0) const;

  /// Requests in flight on all replicas of exactly that pool; 0 when there is none. Hot: a look at each one's book.
  [[nodiscard]] std::int64_t requests_in_flight(std::string_view pool) const;

  /// What this router has in flight, for its peers (route/peer_load.hpp): a line for each replica with requests, in order of slot. `out` is
  /// replaced. threads: any. cost: O(replicas).
  void loads(std::vector<PeerLoad>& out, Nanos now) const;
  /// What the peer of that number (its place in the GatewayRing; not this router's own) has in flight, in place of what it said before.
  /// Decisions count it as their own load until the next message, or for Policy::signals_max_age. Engines' counts then tell of the rest alone.
  /// errors: invalid_argument (no number below kMaxPeers). returns: how many lines name a replica that is known here.
  Result<std::size_t> peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads, Nanos now);
  /// A peer sent this request to that replica: its prompt is believed there as if it had been this router's own (nothing is booked). Prompts
  /// of which a peer tells token ids or blocks; hash seeds must be equal. errors: stale; unsupported (a replica that keeps slots).
  /// cost: hashing and an insert, waiting for the pool's placing lock.
  Status peer_placed(ReplicaId id, const Request& request, Nanos now);

  /// Picks a replica and books the request there. Hot. cost: one index look-up plus a few multiplications per replica.
  Decision route(const Request& request, Nanos now);
  /// The same decision without booking anything; nothing changes, not even the turn of round robin. Hot.
  [[nodiscard]] Decision peek(const Request& request, Nanos now) const;
  /// The same decision with every candidate's terms. Allocates.
  [[nodiscard]] Explanation explain(const Request& request, Nanos now) const;

  /// Routes requests in order, each seeing what the ones before it booked; decisions[i] answers requests[i].
  /// shape: the shorter of the two spans counts. Hot, as route.
  void route_batch(std::span<const Request> requests, std::span<Decision> decisions, Nanos now);

  /// The first token came (of a pair: the prefill leg has answered): prefill load is released, the lease starts anew. Hot.
  /// returns: false for a ticket that is over or that had its first token already (counted, harmless).
  bool first_token(Ticket ticket, Nanos now);
  /// Of a pair: the decode replica has the KV, so the prefill replica is free of the request. May come before first_token, which then
  /// tells of the answer's first token alone. Without it, that replica is free transfer_timeout after the first token, or at the end.
  /// Hot. returns: false for a ticket that is over, whose KV was fetched already, or that is no pair (counted, harmless).
  bool transfer_done(Ticket ticket, Nanos now);
  /// The request is over; cached_tokens repairs what is believed of that replica's cache (of a pair: the one that prefilled, as its own
  /// answer says). Hot. returns: as first_token.
  bool finish(Ticket ticket, const UsageCounts& usage, Nanos now);
  /// The request is over without a whole answer; of a pair, both parts are released, whichever was lost: route again with the lost one
  /// in `excluded`, what the other one holds is remembered. Before its first token, an error also takes back what its prompt was
  /// believed to add to that replica's cache. Hot. returns: as first_token.
  bool fail(Ticket ticket, Outcome outcome, Nanos now);

  /// Bounded upkeep for idle times: leases, TTLs, queued placements, reclamation. Every mutating call does some of it by itself.
  void advance(Nanos now);

  /// A copy of what is believed of one replica's cache, so that a restarted router starts warm (route/cache_export.hpp).
  /// Placements that still wait in the queue are not in it: `advance` takes them in.
  /// errors: stale; unsupported (a replica of role prefill has no model). cost: 8 bytes copied per block and 24 per run, under the pool's
  /// placing lock: requests go on meanwhile and their placements queue (bench_cache_export); membership calls wait.
  [[nodiscard]] Result<ReplicaCache> cached(ReplicaId id, Nanos now) const;
  /// Believes it again: the same blocks in the same order of last use, behind what was used since. `away` is the time that passed
  /// between the copy and now, for the TTL. Capacity holds as ever; what this router has learned by itself stays.
  /// errors: stale, unsupported as above; invalid_argument (not a tree, or blocks of another size or hash seed). Nothing changes then.
  /// cost: less than the requests cost that made it; locks as above.
  Result<RestoredCache> restore_cached(ReplicaId id, const ReplicaCache& cache, Nanos now, Nanos away = Nanos{0});

  /// What requests have taught of a pool's hardware, for a restart; export_caches calls it. To read it: statistics().pools[i].rates.
  /// errors: not_found. cost: a few numbers per kind and replica; membership calls wait.
  [[nodiscard]] Result<LearnedPool> learned(std::string_view pool) const;
  /// Begins with it: kinds (equal declared rates) and replicas that are here by now and have learned nothing by themselves; others are
  /// passed over. errors: not_found; invalid_argument: numbers that nobody learns. Nothing changes then.
  Result<RestoredLearned> restore_learned(std::string_view pool, const LearnedPool& learned);

  /// Allocates; takes writers' locks for moments.
  [[nodiscard]] RouterStatistics statistics() const;

 private:
  std::unique_ptr<detail::RouterCore> core_;  // null where calls_ is not
  RouterCalls* calls_ = nullptr;
};

}  // namespace warmroute

// The bodies: in this header, or in the library, for who links it (its CMake target says so). A file that uses the router then compiles in a third of
// the time; a decision costs one call more.
#ifndef WARMROUTE_ROUTER_IN_LIBRARY
#include "warmroute/route/detail/router_core.hpp"
#endif
