/// Every knob of routing, as one validated, immutable value. A router swaps it atomically while it routes.
/// Knobs are in the field's units; integers enter the decision (shares are turned into thousandths), so that the
/// same calls give the same decisions on every machine. JSON form: lib (`policy_from_json`, `policy_to_json`).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "warmroute/replica/load.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// How a replica is picked. `cost` is the default; the others are baselines to compare with and ways out.
enum class Algorithm : std::uint8_t {
  cost = 0,             ///< least expected time to everybody, formula in route/cost.hpp
  random = 1,           ///< uniform
  round_robin = 2,      ///< cyclic over the eligible replicas
  least_requests = 3,   ///< fewest requests in flight
  least_tokens = 4,     ///< fewest uncached input tokens still to prefill
  power_of_two = 5,     ///< two distinct draws, the one with fewer requests (Mitzenmacher 2001)
  longest_match = 6,    ///< most cached tokens, then fewest requests
  consistent_hash = 7,  ///< the ring's home of the key
  bounded_hash = 8,     ///< first distinct successor within the load bound (Mirrokni et al., arXiv 1608.01350)
};
inline constexpr std::array<std::string_view, 9> kAlgorithmNames{"cost",           "random",          "round_robin",
                                                                 "least_requests", "least_tokens",    "power_of_two",
                                                                 "longest_match",  "consistent_hash", "bounded_hash"};
constexpr std::string_view algorithm_name(Algorithm a) noexcept {
  const auto i = static_cast<std::size_t>(a);
  return i < kAlgorithmNames.size() ? kAlgorithmNames[i] : "unknown";
}
constexpr std::optional<Algorithm> algorithm_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kAlgorithmNames.size(); ++i) {
    if (kAlgorithmNames[i] == name) return static_cast<Algorithm>(i);
  }
  return std::nullopt;
}

/// What the ring's key is made of. Part of the policy's identity: a change re-homes everything.
enum class RingKey : std::uint8_t {
  prefix = 0,             ///< the sequence hash at `ring_key_tokens`
  session_or_prefix = 1,  ///< the session where there is one
};
/// Which tenants may share cached blocks. A cache salt always separates, as it does in the engines.
enum class Isolation : std::uint8_t {
  none = 0,  ///< tenants share
  salt = 1,  ///< the tenant enters every block hash: no block of one matches another's
  pool = 2,  ///< as salt, and a tenant's requests go to the pool named "<tenant>/<model>" only
};
/// returns: what of the tenant enters block hashes.
constexpr std::string_view isolation_key(Isolation isolation, std::string_view tenant) noexcept {
  return isolation == Isolation::none ? std::string_view{} : tenant;
}
/// What an engine signal that is older than `signals_max_age` means.
enum class StaleSignals : std::uint8_t {
  ignore = 0,   ///< route by own books alone (fails open)
  exclude = 1,  ///< a replica that stopped reporting takes no requests (fails closed)
};

/// Whether prefill and decode of one request may run on different replicas (route/disaggregate.hpp). With the algorithm `cost` alone.
enum class Disaggregate : std::uint8_t {
  never = 0,    ///< one replica serves the whole request; those of role prefill take nothing
  always = 1,   ///< a pair wherever one can be formed, one replica where not
  decided = 2,  ///< per request, whichever is expected to cost everybody less
};

struct Policy {
  Algorithm algorithm = Algorithm::cost;

  // The cost formula: units of thousandths are derived from these.
  double beta = 1.0;    ///< what a miss costs those who come later, as a multiple of its prefill time
  double gamma = 0.06;  ///< share of a prefill's time by which it stalls each request running there
  double delta = 0.5;   ///< weight of this request's own decode time
  double hot = 2.0;     ///< strength of the hot-prefix rebate; 0 = off
  double tail = 0.4;    ///< how much more the wait counts for a prompt of mean length, for others in proportion
  Nanos reuse = seconds(
      30);  ///< within which prefixes are asked for again: caches renewed as quickly lose by what is new; 0 = off
  Nanos session_bonus =
      milliseconds(20);  ///< what the session's last replica is worth; load beyond it breaks the affinity
  Nanos host_transfer_per_token{2'000};     ///< loading one token's KV from host memory
  Nanos disk_transfer_per_token{10'000};    ///< from disk
  Nanos shared_transfer_per_token{20'000};  ///< from a store that all replicas share

  // The ring and its bound.
  RingKey ring_key = RingKey::prefix;
  std::int64_t ring_key_tokens = 1'024;  ///< depth of the prefix key
  std::uint32_t ring_points = 256;       ///< points per unit of weight
  std::uint64_t ring_seed = 0;
  std::uint32_t routers =
      1;  ///< that send to the same replicas and tell one another nothing; above 1 a prompt's ring home is a prior
  double bound_factor = 1.5;  ///< c: no replica beyond c times its fair share of tokens in flight

  // What is believed of the engines' caches.
  std::uint32_t block_size = 16;           ///< tokens per block, 1..512
  std::uint64_t hash_seed = 1337;          ///< Dynamo's; a secret one where prompts come from strangers
  Isolation isolation = Isolation::salt;   ///< what keeps tenants apart
  std::int64_t capacity_tokens = 400'000;  ///< of a replica's KV cache while neither it nor its spec says otherwise
  Nanos residency_ttl{0};                  ///< believed blocks expire after so long without use; 0 = never

  // Time and faults.
  Nanos lease = seconds(600);  ///< a ticket that is never finished releases its load after so long
  Nanos session_ttl = seconds(3'600);
  Nanos signals_max_age = seconds(2);
  StaleSignals stale_signals = StaleSignals::ignore;
  bool route_when_all_down = true;  ///< try a replica all the same when none is up (fails open)

  // Saturation: a replica is saturated when a request is expected to wait longer than this for its first token there, or when the engine
  // tells that its KV cache is fuller. Saturated replicas are passed over; where all are, requests of at most shed_priority are refused.
  Nanos saturation_wait{0};        ///< 0 = never
  double saturation_kv = 0;        ///< share of KV blocks in use, as the engine last said; 0 = not looked at
  std::int32_t shed_priority = 0;  ///< what is more urgent queues where it is cheapest

  std::uint64_t seed = 0;     ///< breaks exact ties; equal seeds and equal calls give equal decisions
  std::uint64_t version = 0;  ///< the operator's number, shown in statistics

  bool learn_rates =
      true;  ///< replicas' rates follow observed times, from the declared ones on; false: these are the truth

  // Prefill and decode apart.
  Disaggregate disaggregate = Disaggregate::never;
  bool unified_pairs =
      false;  ///< replicas of role unified take either part of a pair, too: engines that send and receive KV
  std::int64_t pair_min_tokens = 0;  ///< `decided`: no pair while fewer tokens are uncached
  Nanos kv_transfer_per_token{
      2'600};  ///< bytes of KV per token / bandwidth of the link; an 8B model's 128 KiB at 400 Gbit/s
  Nanos kv_transfer_latency = milliseconds(5);  ///< of one transfer, whatever its size
  Nanos transfer_timeout = seconds(30);  ///< a prefill replica whose KV is not fetched after so long is free of it
  bool decode_keeps_cache = true;        ///< what was transferred is in the decode replica's prefix cache afterwards
  double interference =
      0.1;  ///< share of a prefill's time by which it stalls each request running there, where pairs can be formed
  Nanos ttft_limit{0};  ///< objective: first tokens later than this have failed anyway; 0 = none
  Nanos itl_limit{0};   ///< objective: what pushes a replica's mean time between tokens beyond it costs extra; 0 = none

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// errors: invalid_argument; the message lists every fault at once.
inline Status validate(const Policy& p) {
  std::string faults;
  const auto require = [&](bool fine, std::string_view text) {
    if (!fine) faults.append(faults.empty() ? "" : "; ").append(text);
  };
  const auto within = [](double v, double low, double high) { return std::isfinite(v) && v >= low && v <= high; };
  const auto time = [](Nanos t, Nanos high) { return t >= Nanos{0} && t <= high; };
  require(static_cast<std::size_t>(p.algorithm) < kAlgorithmNames.size(), "algorithm is not one of the known ones");
  require(within(p.beta, 0, 100), "beta must lie in 0..100");
  require(within(p.gamma, 0, 100), "gamma must lie in 0..100");
  require(within(p.delta, 0, 100), "delta must lie in 0..100");
  require(within(p.hot, 0, 100), "hot must lie in 0..100");
  require(within(p.tail, 0, 10), "tail must lie in 0..10");
  require(time(p.reuse, seconds(86'400)), "reuse must lie in 0..1 day");
  require(time(p.session_bonus, seconds(3600)), "session_bonus must lie in 0..1 h");
  require(time(p.host_transfer_per_token, seconds(1)), "host_transfer_per_token must lie in 0..1 s");
  require(time(p.disk_transfer_per_token, seconds(1)), "disk_transfer_per_token must lie in 0..1 s");
  require(time(p.shared_transfer_per_token, seconds(1)), "shared_transfer_per_token must lie in 0..1 s");
  require(static_cast<int>(p.ring_key) <= 1, "ring_key is not one of prefix, session_or_prefix");
  require(p.ring_key_tokens >= 1 && p.ring_key_tokens <= 1'000'000, "ring_key_tokens must lie in 1..1000000");
  require(p.ring_points >= 1 && p.ring_points <= 4096, "ring_points must lie in 1..4096");
  require(p.routers >= 1 && p.routers <= 1024, "routers must lie in 1..1024");
  require(within(p.bound_factor, 1.0, 100), "bound_factor must lie in 1..100");
  require(p.block_size >= 1 && p.block_size <= 512, "block_size must lie in 1..512");
  require(static_cast<int>(p.isolation) <= 2, "isolation is not one of none, salt, pool");
  require(p.capacity_tokens >= 1 && p.capacity_tokens <= 1'000'000'000'000, "capacity_tokens must lie in 1..10^12");
  require(time(p.residency_ttl, seconds(31'536'000)), "residency_ttl must lie in 0..1 year");
  require(p.lease >= milliseconds(1) && p.lease <= seconds(604'800), "lease must lie in 1 ms..7 days");
  require(time(p.session_ttl, seconds(31'536'000)), "session_ttl must lie in 0..1 year");
  require(time(p.signals_max_age, seconds(3'600)), "signals_max_age must lie in 0..1 h");
  require(static_cast<int>(p.stale_signals) <= 1, "stale_signals is not one of ignore, exclude");
  require(time(p.saturation_wait, seconds(86'400)), "saturation_wait must lie in 0..1 day");
  require(within(p.saturation_kv, 0, 1), "saturation_kv must lie in 0..1");
  require(static_cast<int>(p.disaggregate) <= 2, "disaggregate is not one of never, always, decided");
  require(p.pair_min_tokens >= 0 && p.pair_min_tokens <= 16'000'000, "pair_min_tokens must lie in 0..16000000");
  require(time(p.kv_transfer_per_token, seconds(1)), "kv_transfer_per_token must lie in 0..1 s");
  require(time(p.kv_transfer_latency, seconds(60)), "kv_transfer_latency must lie in 0..60 s");
  require(p.transfer_timeout >= milliseconds(1) && p.transfer_timeout <= seconds(86'400),
          "transfer_timeout must lie in 1 ms..1 day");
  require(within(p.interference, 0, 100), "interference must lie in 0..100");
  require(time(p.ttft_limit, seconds(3'600)), "ttft_limit must lie in 0..1 h");
  require(time(p.itl_limit, seconds(60)), "itl_limit must lie in 0..60 s");
  if (faults.empty()) return {};
  return Error{Code::invalid_argument, "policy: " + faults, kNoOffset};
}

}  // namespace warmroute
