/// What a router has done so far, as plain numbers: a copy that is consistent per number, not across numbers.
/// The Prometheus form is in observe/prometheus.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "warmroute/replica/load.hpp"
#include "warmroute/replica/replica.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// How a request ended, as the caller reports it to `fail`. Numbers are fixed and only appended.
enum class Outcome : std::uint8_t {
  finished = 0,       ///< a whole answer
  cancelled = 1,      ///< the client went away
  client_error = 2,   ///< 4xx: says nothing about the replica
  backpressure = 3,   ///< 429 or 503: busy, not broken
  replica_error = 4,  ///< 5xx, reset, malformed answer
  connect_error = 5,
  timeout = 6,
  lease_expired = 7,  ///< set by the router alone
};
inline constexpr std::size_t kOutcomeCount = 8;
constexpr std::string_view outcome_name(Outcome o) noexcept {
  constexpr std::array<std::string_view, kOutcomeCount> names{"finished",     "cancelled",     "client_error",
                                                              "backpressure", "replica_error", "connect_error",
                                                              "timeout",      "lease_expired"};
  const auto i = static_cast<std::size_t>(o);
  return i < names.size() ? names[i] : "unknown";
}

namespace detail {
// Failures after which a prompt without a first token is in no cache. A client that went away says nothing either way.
inline bool never_computed(Outcome outcome) noexcept {
  return outcome == Outcome::connect_error || outcome == Outcome::backpressure || outcome == Outcome::client_error ||
         outcome == Outcome::replica_error;
}
}  // namespace detail

/// Upper bounds of the TTFT histograms, in milliseconds; one more bucket holds what is above.
inline constexpr std::array<std::int64_t, 14> kTtftBucketsMs{5,     10,    25,    50,    100,    250,    500,
                                                             1'000, 2'000, 4'000, 8'000, 16'000, 32'000, 64'000};

struct TtftStatistics {
  std::array<std::uint64_t, kTtftBucketsMs.size() + 1> buckets{};  ///< not cumulative
  std::uint64_t count = 0;
  std::int64_t sum_ns = 0;
};

struct ReplicaStatistics {
  ReplicaId id;
  std::string name;
  std::uint32_t dp_rank = 0;
  std::string pool;
  Health health = Health::up;
  LoadReading load;
  std::uint64_t believed_blocks = 0;  ///< in the residency model
  std::uint64_t capacity_blocks = 0;  ///< effective, after feedback
  bool reported = false;              ///< its engine sends events: nothing is believed beside them
  std::int64_t input_tokens = 0;      ///< of requests whose prefill ended there
  std::int64_t matched_tokens = 0;    ///< of those, believed to be in its cache when they were routed
  PrefixGains engine_prefix{};        ///< the same as its engine counts it, requests of others included
  std::int64_t held_tokens = 0;       ///< of its KV cache, by prompts in flight; what several of them share counts once
  Role role = Role::unified;
  std::int64_t peer_requests = 0;    ///< in flight there for other routers, as they told (Router::peer_loads)
  std::int64_t peer_pending_ns = 0;  ///< prefill time of their prompts, as told
  double prefill_share = 0;          ///< of its time of late, by the work booked there; where pairs can be formed
  double slowness = 1;  ///< learned: 2 takes twice as long as replicas of equal declared rates; used from 1.17 on
  Rates declared{};     ///< its kind of hardware: rates_of finds what was learned of it
};

/// One kind of hardware in a pool: replicas of equal declared rates.
struct LearnedRates {
  Rates declared;
  Rates used;                 ///< by decisions: as declared until what was learned explains what is seen
  bool learned = false;       ///< it does
  std::uint64_t samples = 0;  ///< observed times
};

struct PoolStatistics {
  std::string name;
  std::uint64_t blocks = 0;       ///< distinct blocks in the index
  std::uint64_t memberships = 0;  ///< (replica, block) pairs
  std::uint64_t bytes = 0;
  std::uint64_t max_bytes = 0;
  double bytes_per_token = 0;       ///< learned
  double output_tokens = 0;         ///< learned mean
  std::uint64_t shared_blocks = 0;  ///< in the store that all replicas share, as events say
  std::vector<LearnedRates> rates;  ///< by kind of hardware, kinds that left included
};

struct RouterStatistics {
  std::uint64_t policy_version = 0;
  std::string algorithm;
  std::array<std::uint64_t, 9> verdicts{};            ///< by Verdict
  std::array<std::uint64_t, kReasonCount> reasons{};  ///< of routed requests, by Reason
  std::array<std::uint64_t, kOutcomeCount> outcomes{};
  std::array<std::uint64_t, kSplitCount> splits{};  ///< by Split, of requests routed in pools that could form pairs
  std::uint64_t transfers_done = 0;
  std::uint64_t transfers_timed_out = 0;  ///< their prefill replicas were freed without having been asked for the KV
  std::int64_t transfer_ns = 0;           ///< sum over those done, from the first token on
  std::uint64_t late_calls = 0;           ///< tickets that were already over, or never were
  std::uint64_t placements_dropped = 0;   ///< the placement queue was full
  std::uint64_t clock_clamped = 0;        ///< `now` went backwards
  std::uint64_t scratch_allocated = 0;    ///< more threads inside at once than scratch areas
  std::uint64_t tickets_in_flight = 0;
  std::uint32_t peers =
      0;  ///< other routers that tell what they have in flight, and did within Policy::signals_max_age

  std::int64_t input_tokens = 0;             ///< of finished requests whose usage was reported
  std::int64_t predicted_cached_tokens = 0;  ///< of those
  std::int64_t reported_cached_tokens = 0;   ///< of those whose cached tokens were reported
  std::int64_t output_tokens = 0;
  std::uint64_t cached_reports = 0;  ///< requests whose cached tokens were reported
  std::uint64_t cached_exact = 0;    ///< of those, predicted to within one block

  TtftStatistics observed_ttft;
  TtftStatistics predicted_ttft;
  std::int64_t predicted_wait_ns = 0;  ///< sums over requests with a first token
  std::int64_t predicted_prefill_ns = 0;
  std::int64_t saved_prefill_ns = 0;  ///< prefill time that predicted hits did not need

  std::uint64_t event_blocks_stored = 0;   ///< as engines reported them, those held already included
  std::uint64_t event_blocks_removed = 0;  ///< of those reported as removed, the ones that were held
  std::uint64_t event_orphans = 0;         ///< blocks whose parent was unknown: not stored
  std::uint64_t event_gaps =
      0;  ///< events behind a block that their replica is not known to hold: others before were lost, or the index was full

  std::vector<PoolStatistics> pools;
  std::vector<ReplicaStatistics> replicas;
};

/// returns: what was learned of the kind of hardware that this replica is of; null: nothing is known of its pool.
inline const LearnedRates* rates_of(const RouterStatistics& s, const ReplicaStatistics& replica) noexcept {
  for (const PoolStatistics& pool : s.pools) {
    if (pool.name != replica.pool) continue;
    for (const LearnedRates& kind : pool.rates) {
      if (kind.declared == replica.declared) return &kind;
    }
  }
  return nullptr;
}

}  // namespace warmroute
