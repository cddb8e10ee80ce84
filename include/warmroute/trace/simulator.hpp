/// The fleet simulator: N replica models behind routers, under a virtual clock. One engine step is one event.
///
///   auto figures = simulate(config, workload);   // config.rule = "warmroute", "dynamo", "chwbl:c=1.25:k=2", ...
///
/// Invariant: integer time, no libm in a decision; one configuration and one workload give the same figures, byte for
/// byte. Events of one instant: step ends (by replica), ends of KV transfers (by request), churn (as listed), load
/// snapshots, arrivals (by request), step starts (by replica). Views are brought up to date at each arrival, so an event
/// of age exactly D is visible.
/// Does not: model networks beyond the links of KV, tokenizers, host tiers or noise; price what it does not know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/trace/replica_model.hpp"
#include "warmroute/trace/routing_rule.hpp"
#include "warmroute/trace/workload.hpp"

namespace warmroute::trace {

/// Where a router's idea of load comes from.
enum class LoadView : std::uint8_t {
  now = 0,                 ///< the replicas' state at this instant
  snapshot = 1,            ///< their state at the last multiple of S
  snapshot_corrected = 2,  ///< the same, and what this router has sent since
  own_tickets = 3,  ///< what this router has sent: uncached tokens until the first token, one decode until the end
};
/// Where its idea of caches comes from.
enum class CacheView : std::uint8_t {
  now = 0,
  events = 1,       ///< commits and evictions, D later, some lost
  own_routing = 2,  ///< a leaf-first LRU per replica of what this router has sent there
};
struct View {
  std::string_view name = "perfect";
  LoadView load = LoadView::now;
  CacheView cache = CacheView::now;
  bool predicts = true;  ///< blocks of a request count as held from its routing until its first token (+ D)
  std::int64_t snapshot_us = 100'000;            ///< S
  std::int64_t event_delay_us = 50'000;          ///< D
  std::int64_t event_loss_permille = 0;          ///< p: share of commits and evictions that never arrive
  std::int64_t capacity_factor_permille = 1000;  ///< own_routing: believed capacity / true one
  bool waiting_tokens = false;  ///< snapshots of engines also say how many prompt tokens are still to be computed
};
/// perfect, perfect-nopred, stale, stale-pred, stale-fix, own-events, own-approx, stale-approx, fix-approx.
[[nodiscard]] std::vector<View> views();
[[nodiscard]] std::optional<View> find_view(std::string_view name);

/// What happens to the fleet besides requests.
struct ChurnEvent {
  enum class Kind : std::uint8_t {
    add,      ///< a new replica, cold, joins; `replica` is the next free number
    remove,   ///< it dies for good; its requests are sent again at that instant
    restart,  ///< it dies and is back at once, cold; its requests are sent again
    drain,    ///< it takes nothing new and finishes what it has
    resume,   ///< it takes requests again; its cache is as it was
    speed,    ///< steps take 1000 / value as long, from the next one on
  };
  std::int64_t at_us = 0;
  Kind kind = Kind::drain;
  std::uint32_t replica = 0;
  std::int64_t value = 1000;
};
/// Text form: events separated by commas or new lines, each "<seconds> <kind> <replica> [<value>]", and two that stand
/// for several: "<s> flap <r> <seconds>" (drain, resume after so long) and "<s> rolling <first>-<last> <seconds>"
/// (each in turn drains for so long, then restarts, cold).
/// errors: invalid_argument naming the event. returns: in order of time.
[[nodiscard]] Result<std::vector<ChurnEvent>> parse_churn(std::string_view text);

struct SimulationConfig {
  ReplicaModelConfig replica;  ///< of all; block_tokens is the workload's
  std::int64_t replicas = 8;
  std::vector<std::int64_t> capacities;  ///< KV tokens of the replicas in turn, where they differ; empty: `replica`'s
  std::string rule = "warmroute";        ///< see parse_rule
  RuleFactory own_rule{};                ///< instead of `rule`: a rule of one's own
  Policy policy{};                       ///< of the rule warmroute
  View view{};
  std::int64_t routers = 1;        ///< requests are sprayed over them
  bool pin_conversations = false;  ///< instead: a conversation, or the prompt's first two blocks, keep their router
  bool gateway_ring =
      false;  ///< sprayed; whoever gets a request that is another's on the GatewayRing forwards it, once
  std::int64_t forward_us = 500;      ///< from one router to another
  std::int64_t share_loads_us = 0;    ///< > 0: routers tell one another at such intervals what they have in flight
  bool share_placements = false;      ///< and at the same intervals, what they have sent where
  std::int64_t prefill_replicas = 0;  ///< of `replicas`, the first so many only prefill,
  std::int64_t decode_replicas = 0;   ///< and the next so many only decode, or serve whole requests if the rule says so
  std::int64_t transfer_token_ps = 0;  ///< KV of one token on the link of the replica that sends; transfers queue there
  std::int64_t transfer_latency_us = 5'000;  ///< of each transfer, beside that
  bool pooled = false;                       ///< every block computed anywhere is a hit anywhere: the bound from above
  std::vector<ChurnEvent> churn;
  std::uint64_t seed = 1;                ///< ties, draws of rules, lost events, spraying
  std::int64_t warm_up_us = 0;           ///< requests that arrive before it do not count
  std::int64_t horizon_us = 0;           ///< arrivals behind it are dropped; 0: none
  std::int64_t sample_us = 0;            ///< > 0: the load of each replica at such intervals
  std::int64_t slo_ttft_us = 2'000'000;  ///< of the goodput
  std::int64_t slo_itl_us = 0;           ///< the same, of a request's mean time between tokens; 0: none
  bool keep_requests = false;            ///< per-request figures
};

/// units: microseconds, by nearest rank; the mean is of double precision.
struct LatencyFigures {
  double mean_us = 0;
  std::int64_t p50_us = 0, p90_us = 0, p99_us = 0, max_us = 0;
};
struct RequestFigures {
  std::int64_t arrival_us = -1;
  std::int64_t first_token_us = -1;
  std::int64_t end_us = -1;
  std::int64_t cached_tokens = 0;  ///< at its first admission
  std::uint32_t replica = kNoRequest;
  std::uint32_t prefill_replica = kNoRequest;  ///< kNoRequest: the same
  std::uint32_t attempts = 0;
  bool rejected = false;
};
/// One reading of the fleet: state of replica r at `at_us`.
struct LoadSample {
  std::int64_t at_us = 0;
  std::vector<std::int64_t> tokens_in_flight;     ///< by replica
  std::int64_t hit_tokens = 0, input_tokens = 0;  ///< of first admissions since the last sample
};

struct SimulationFigures {
  std::int64_t requests = 0;   ///< that arrived and count
  std::int64_t completed = 0;  ///< of those
  std::int64_t rejected = 0;
  std::int64_t sent_again = 0;  ///< by churn
  std::int64_t unplaced = 0;    ///< no replica was available, or the rule's verdict was no
  LatencyFigures ttft, itl, e2e;
  double goodput = 0;       ///< share of requests that met the objectives
  double goodput_rate = 0;  ///< requests a second and replica that did, while requests arrived
  std::int64_t pairs = 0;   ///< completed requests whose prompt was computed elsewhere
  std::int64_t transferred_tokens = 0;
  LatencyFigures transfer;  ///< from the end of the prefill to the KV's arrival
  std::int64_t input_tokens = 0, cached_tokens = 0, output_tokens = 0;
  double hit_ratio = 0, bound_ratio = 0;
  double busy_imbalance = 0, prefill_imbalance = 0, token_imbalance = 0;  ///< max / mean over replicas
  double utilisation = 0;                                                 ///< mean share of time in a step
  double spill_ratio = 0;  ///< requests sent where at least max(512, 2 blocks) fewer tokens were held than elsewhere
  double duplicates = 0;   ///< cached copies / distinct blocks at the end
  std::int64_t evictions = 0, preemptions = 0;
  std::int64_t forwarded = 0;      ///< requests
  std::int64_t shared_bytes = 0;   ///< of all that routers told one another of their loads
  std::int64_t booked_at_end = 0;  ///< requests that the rule still believes in flight
  std::int64_t makespan_us = 0;    ///< from time 0 to the last end
  double dollars = 0;              ///< replica-hours at the profile's price; 0: no price
  double tokens_per_dollar = 0;    ///< input and output tokens of completed requests
  std::vector<RequestFigures> per_request;
  std::vector<LoadSample> samples;
};

/// errors: invalid_argument (no replicas, a capacity below 1, unknown rule or option, a churn event of no replica, a profile whose steps
/// take no time). threads: any number of simulations at once.
/// cost: 0.05 to 0.1 us per output token; 12,031 requests of the public conversation trace on 8 replicas 0.2 to 0.4 s.
[[nodiscard]] Result<SimulationFigures> simulate(const SimulationConfig& config, const Workload& workload);

}  // namespace warmroute::trace
