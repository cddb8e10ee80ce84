/// Prefill on one replica and decode on another: what a pair costs against one replica that does both, and how many of each a pool needs.
///
///   prompt(p)  = wait + (1 + beta) * (P - rebate) + interference * q * P + lost    (cost.hpp with another gamma)
///   decode(d)  = delta * E[out] * step / (1 - u + u * step / (step + mean P)) + lost
///   unified(r) = prompt(r) + decode(r)
///   pair(p, d) = prompt(p) + latency + per token * (input - held by d) + wait(d) + decode(d)
///
/// u is the share of time that a replica has spent on prefill of late: decodes there advance in the rest, and by one token in each step that
/// computes a prompt, of the mean length of late, beside them. So replicas that prefill much repel decodes, those that decode much repel
/// prompts, and a fleet whose replicas can do both parts itself into as many of each as the traffic needs. lost: requests that are pushed beyond a limit, each worth the time of its answer:
///
///   of x = expected / limit:   to ttft_limit              (x - 0.6) / 0.4         the whole way: wait, P, transfer, wait(d)
///                              to itl_limit, by a prompt  (x - 0.7) / 0.4         a fifth of those who decode there
///                              to itl_limit, by a decode  ((x - 0.65) / 0.4)^2    itself, and a quarter of those
///
/// cut at 0 and 1. A prompt is kept away early and evenly, so that replicas part before the limit is near; a decode is
/// refused late and then steeply: where only decodes are, the expectation is good. Without these limits
/// whatever is expected to take everybody least time wins. Measured in benchmarks/README.md ("Prefill and decode
/// apart"): interference 0.05 to 0.2 is flat; with 0 the replicas do not part, with 0.6 too few of them prefill.
/// Does not: move KV, which engines do among themselves; look at the topology of links.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "warmroute/observe/statistics.hpp"
#include "warmroute/route/cost.hpp"
#include "warmroute/route/detail/prefill_share.hpp"
#include "warmroute/route/policy.hpp"

namespace warmroute {

/// The policy's knobs of pairs, ready for integer arithmetic.
struct PairWeights {
  CostWeights cost;  ///< of the policy, with `interference` in gamma's place
  std::int64_t token_ns = 0;
  std::int64_t latency_ns = 0;
  std::int64_t ttft_limit_ns = 0;
  std::int64_t itl_limit_ns = 0;

  static PairWeights from(const Policy& p) noexcept {
    PairWeights w;
    w.cost = CostWeights::from(p);
    w.cost.tail = w.cost.reuse = w.cost.kv = 0;
    w.cost.gamma = static_cast<std::int64_t>(std::llround(p.interference * 1'000));
    w.token_ns = p.kv_transfer_per_token.value;
    w.latency_ns = p.kv_transfer_latency.value;
    w.ttft_limit_ns = p.ttft_limit.value;
    w.itl_limit_ns = p.itl_limit.value;
    return w;
  }
};

/// What one replica has beside CostReplica.
struct PairReplica {
  std::int64_t share_milli = 0;       ///< PrefillShare
  std::int64_t share_with_milli = 0;  ///< the same with this request's prefill
  std::int64_t decoding = 0;          ///< requests that decode there
  std::int64_t prompt_ns = 0;         ///< mean prefill of the pool's requests
};

/// units: ns, weighted as they enter a total.
struct PromptTerms {
  CostTerms
      cost;  ///< wait, prefill, miss, rebate, stall, transfer from lower tiers, session, prior; its decode does not count
  std::int64_t late = 0;    ///< what is lost of it to ttft_limit
  std::int64_t pushed = 0;  ///< what is lost of those who decode there to itl_limit
  std::int64_t total = 0;
};
struct DecodeTerms {
  std::int64_t itl = 0;      ///< expected time between tokens, unweighted
  std::int64_t decode = 0;   ///< own decode, prefills there included
  std::int64_t crowded = 0;  ///< what is lost to itl_limit, of it and of those who decode there
  std::int64_t total = 0;
};
struct PairTerms {
  PromptTerms prompt;
  DecodeTerms decode;
  std::int64_t transfer = 0;
  std::int64_t decode_wait = 0;  ///< prefill work booked on the decode replica
  std::int64_t total = 0;        ///< what is lost to ttft_limit on the whole way instead of the prompt's own part
};

namespace detail {

// Thousandths of a limit: none is lost up to the first, all are from the second on.
struct LossRamp {
  std::int64_t from = 0;
  std::int64_t to = 0;
};
inline constexpr LossRamp kLate{600, 1'000};
inline constexpr LossRamp kPushed{700, 1'100};
inline constexpr LossRamp kCrowded{650, 1'050};
// One in so many of those who decode there is lost as a new one would be, by a prompt and by a decode.
inline constexpr std::int64_t kPushedShare = 5;
inline constexpr std::int64_t kCrowdedShare = 4;

/// The time between tokens where prompts of `prompt_ns` take a share of the time, and each brings a token beside it. units: step_ns 1,000 at least.
inline std::int64_t stretched(std::int64_t step_ns, std::int64_t share_milli, std::int64_t prompt_ns) noexcept {
  if (share_milli == 0) return step_ns;
  const std::int64_t step_us = step_ns / 1'000;
  const std::int64_t beside = share_milli * step_us / (step_us + prompt_ns / 1'000 + 1);
  return step_ns * 1'000 / (1'000 - share_milli + beside);
}
inline constexpr std::int64_t kLongestStep = 10'000'000'000;  // no limit is longer
inline std::int64_t step_ns(const Rates& rates, std::int64_t requests, std::int64_t context_tokens) noexcept {
  const std::int64_t batch = std::clamp<std::int64_t>(requests, 1, kMaxRequests);
  const std::int64_t step = std::max(rates.floor_ns, rates.token_ps * batch / 1'000) + rates.overhead_ns +
                            rates.context_ps * std::min(context_tokens, kMaxContext) / 1'000;
  return std::min(step, kLongestStep);
}
/// returns: thousandths of a request that are lost to a limit when this is what is expected; 0 without a limit.
inline std::int64_t lost_milli(std::int64_t expected_ns, std::int64_t limit_ns, const LossRamp& ramp) noexcept {
  if (limit_ns <= 0) return 0;
  const std::int64_t share = std::min(expected_ns / std::max<std::int64_t>(1, limit_ns / 1'000), ramp.to);
  return std::max<std::int64_t>(0, share - ramp.from) * 1'000 / (ramp.to - ramp.from);
}
inline std::int64_t late_milli(std::int64_t ttft_ns, std::int64_t limit_ns) noexcept {
  return lost_milli(ttft_ns, limit_ns, kLate);
}
/// The risk of a decode grows with the square.
inline std::int64_t crowded_milli(std::int64_t itl_ns, std::int64_t limit_ns) noexcept {
  const std::int64_t lost = lost_milli(itl_ns, limit_ns, kCrowded);
  return lost * lost / 1'000;
}

}  // namespace detail

/// What a request that keeps its limits is worth: the time of its answer.
inline std::int64_t worth_ns(const PairWeights& w, const CostRequest& q, const Rates& rates) noexcept {
  const std::int64_t itl = w.itl_limit_ns > 0 ? w.itl_limit_ns : rates.floor_ns + rates.overhead_ns;
  return std::min<std::int64_t>(itl, 1'000'000'000) * std::min(q.output_tokens, kMaxOutput);
}

inline PromptTerms prompt_terms(const PairWeights& w, const CostRequest& q, const Rates& rates,
                                std::int64_t whole_prefill_ns, const CostReplica& r, const PairReplica& more) noexcept {
  PromptTerms t;
  t.cost = cost_of(w.cost, q, rates, whole_prefill_ns, r);
  const std::int64_t worth_milli = worth_ns(w, q, rates) / 1'000;
  t.late = detail::late_milli(t.cost.wait + t.cost.prefill, w.ttft_limit_ns) * worth_milli;
  if (w.itl_limit_ns > 0 && more.decoding > 0) {
    const std::int64_t step = detail::step_ns(rates, more.decoding, r.context_tokens);
    const auto lost_at = [&](std::int64_t share_milli) {
      const std::int64_t itl = detail::stretched(step, share_milli, more.prompt_ns);
      return detail::lost_milli(itl, w.itl_limit_ns, detail::kPushed);
    };
    const std::int64_t more_lost = lost_at(more.share_with_milli) - lost_at(more.share_milli);
    t.pushed = more_lost * std::min(more.decoding, kMaxRequests) / detail::kPushedShare * worth_milli;
  }
  t.total = t.cost.total - t.cost.decode + t.late + t.pushed;
  return t;
}

/// `share_milli`: of the time that goes to prefill there while it decodes.
inline DecodeTerms decode_terms(const PairWeights& w, const CostRequest& q, const Rates& rates, const CostReplica& r,
                                const PairReplica& more, std::int64_t share_milli) noexcept {
  DecodeTerms t;
  const std::int64_t output = std::min(q.output_tokens, kMaxOutput);
  const std::int64_t there = std::min(r.requests, kMaxRequests);
  t.itl = detail::stretched(detail::step_ns(rates, there + 1, r.context_tokens + q.input_tokens), share_milli,
                            more.prompt_ns);
  t.decode = t.itl * output / 1'000 * w.cost.delta;
  if (w.itl_limit_ns > 0) {
    const std::int64_t without =
        detail::stretched(detail::step_ns(rates, there, r.context_tokens), share_milli, more.prompt_ns);
    const std::int64_t lost = detail::crowded_milli(t.itl, w.itl_limit_ns);
    const std::int64_t by_it = std::max<std::int64_t>(0, lost - detail::crowded_milli(without, w.itl_limit_ns));
    const std::int64_t others = by_it * std::min(more.decoding, kMaxRequests) / detail::kCrowdedShare;
    t.crowded = (lost + others) * (worth_ns(w, q, rates) / 1'000);
  }
  t.total = t.decode + t.crowded;
  return t;
}

/// `held`: leading tokens that the decode replica has already: they are not sent.
inline std::int64_t transfer_ns(const PairWeights& w, std::int64_t input_tokens, std::int64_t held) noexcept {
  return w.latency_ns + w.token_ns * std::max<std::int64_t>(0, input_tokens - held);
}

/// What was served in a stretch of time, as statistics count it: differences of two readings.
struct ServedTokens {
  std::int64_t uncached_input_tokens = 0;  ///< computed
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t requests = 0;
  std::int64_t seconds = 0;
};
/// returns: what lies between two readings of a router's statistics (later less earlier) that are `seconds` apart.
inline ServedTokens served_between(const RouterStatistics& earlier, const RouterStatistics& later,
                                   std::int64_t seconds) noexcept {
  const auto of = [](const RouterStatistics& s) {
    ServedTokens t;
    for (const ReplicaStatistics& r : s.replicas) {
      t.input_tokens += r.input_tokens;
      t.uncached_input_tokens += r.input_tokens - r.matched_tokens;
    }
    t.output_tokens = s.output_tokens;
    t.requests = static_cast<std::int64_t>(s.outcomes[static_cast<std::size_t>(Outcome::finished)]);
    return t;
  };
  const ServedTokens a = of(earlier), b = of(later);
  return {b.uncached_input_tokens - a.uncached_input_tokens, b.input_tokens - a.input_tokens,
          b.output_tokens - a.output_tokens, b.requests - a.requests, seconds};
}
struct PoolRatio {
  std::int64_t prefill = 0;  ///< replicas; both 0 where nothing was served
  std::int64_t decode = 0;
  std::int64_t prefill_busy_milli =
      0;  ///< of each of those, thousandths of the time; above 1,000: too few replicas in all
  std::int64_t decode_busy_milli = 0;
};
/// returns: how to divide `replicas` of equal rates so that the busier part is least busy; each part has one at least. A decode replica is
/// busy by the share of its steps' time that its batch needs at `itl_ns`, the time between tokens that is aimed at (> 0).
/// Pure: a decode step of B requests with contexts of c tokens takes max(F, a B) + k B c + o, and B must be so that it stays below itl_ns.
inline PoolRatio advise_ratio(const ServedTokens& served, const Rates& rates, std::int64_t itl_ns,
                              std::int64_t replicas) noexcept {
  PoolRatio best;
  if (replicas < 2 || served.seconds <= 0 || served.requests <= 0 || itl_ns <= 0) return best;
  const auto real = [](std::int64_t v) { return static_cast<double>(v); };
  const double seconds = real(served.seconds);
  const double mean_input = real(served.input_tokens) / real(served.requests);
  const double uncached = real(served.uncached_input_tokens) / real(served.requests);
  // Attention pairs of the uncached part lie behind the cached one.
  const double pairs = uncached * (mean_input - uncached) + uncached * (uncached + 1) / 2;
  const double prompt_s = (real(rates.token_ps) * uncached + real(rates.pair_ps) * pairs) / 1e12;
  const double context = mean_input + real(served.output_tokens) / real(served.requests) / 2;
  const double room_ps = real(itl_ns - rates.overhead_ns) * 1e3;
  const double memory_bound = (room_ps - real(rates.floor_ns) * 1e3) / (real(rates.context_ps) * context);
  const double compute_bound = room_ps / (real(rates.token_ps) + real(rates.context_ps) * context);
  const double batch = std::max(1.0, std::min(memory_bound, compute_bound));
  const double prefill_load = real(served.requests) / seconds * prompt_s;                        // replicas
  const double decode_load = real(served.output_tokens) / seconds * real(itl_ns) / 1e9 / batch;  // replicas
  double least = 0;
  for (std::int64_t p = 1; p < replicas; ++p) {
    const double busiest = std::max(prefill_load / real(p), decode_load / real(replicas - p));
    if (best.prefill != 0 && busiest >= least) continue;
    least = busiest;
    best = {p, replicas - p, std::llround(prefill_load / real(p) * 1e3),
            std::llround(decode_load / real(replicas - p) * 1e3)};
  }
  return best;
}

}  // namespace warmroute
