/// The cost of serving one request on one replica, as time to everybody. Lowest wins, exact ties are drawn.
///
///   cost(r) = W + (1 + beta) * (P - rebate) + gamma * q * P + delta * E[out] * (max(F, a * (q + 1)) + k * ctx)
///             + tail * W * P / mean P + P * renewed(reuse) + full + transfer - session bonus
///
/// W prefill time booked there before this request; P prefill time of this request's uncached tokens; q requests in flight;
/// ctx their input tokens; E[out] expected output tokens; F, a, k the replica's rates. beta prices the delay that a miss
/// puts on later requests, gamma the stall that this prefill puts on the requests running there, delta this request's own decode.
/// The rebate spreads hot prefixes: a missing block that p >= 2 requests in flight contain is charged 1/(1 + hot*p/N) of its
/// work, since a copy here will serve p/N of them. W counts the first prompt's work as done at the rate at which time passes (LoadBook).
///
/// tail: a long prompt behind a queue makes the busy time of that replica long, and all who come meanwhile wait for it: the size-aware value of
/// a queue's backlog has the same product (M/G/1, first in first out: lambda/(1 - rho) * W * P; Hyytia, Penttinen and Aalto, EJOR 2012).
/// renewed: the share of this replica's KV cache that is computed anew within `reuse`, 0.4 at most; what comes in pushes as much out, and who
/// has a larger or quieter cache loses less. Caches of 2.2 and 0.3 million tokens side by side, utilisation 0.9: TTFT is 4 % lower with it, p99 14 %.
/// full: the share by which the cache is booked beyond 0.9 of its capacity, of the time that an answer takes there.
///
/// Constants: measured over the public conversation trace in a discrete-event fleet (benchmarks/README.md, "The default policy"). beta 0.5..1.5 and
/// delta 0.25..0.6 are flat. gamma trades: at 0.2 the mean end-to-end time is 2 % lower, but the p99 of TTFT is 15 % higher at utilisation
/// 0.9 and 2.5 times as high at 1.1. tail trades the other way: 0.4 takes 3 % from that p99 at 0.9, 15 % at 1.1, and adds 1 and 5 % to the
/// mean end-to-end time. hot 2 keeps 50 agents with one prompt at 1.05x the mean on the busiest of 8 replicas (1: 1.35x); without the rebate all
/// of them stay on one.
///
/// gamma is the policy's while the replicas that are chosen make prompts wait for little; it rises with that wait, twice as high at two seconds,
/// eight times at fourteen: a fleet that has more to do than it can should compute nothing twice. 16 x 8b-a100 at utilisation 0.9 and 1.1: TTFT 10.7 and
/// 75 s instead of 24.7 and 132.
///
/// F, a, b and k are learned (detail/learned_rates.hpp), P also per replica. Its own decode is not priced by that: with two of eight at half
/// speed, utilisation 0.7, TTFT is 10 % and E2E 10 % higher with it, since the rest are then given more than they can do.
///
/// All terms are integers in nanoseconds: no libm, no floating point, equal inputs give equal costs on every machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "warmroute/replica/load.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// A stretch of the prompt that `requests` requests in flight share: from the previous step's end (or 0) to `end_tokens`.
/// Steps are ordered; the counts fall.
struct SharedStep {
  std::int64_t end_tokens = 0;
  std::int64_t requests = 0;
};

/// How much the decode time that is missing where the KV cache is too full counts, thousandths.
inline constexpr std::int64_t kKvWeight = 3'000;
/// Of what is pushed out of a cache no more than this share would have been asked for again, thousandths.
inline constexpr std::int64_t kMostLost = 400;
/// Beyond this share of a KV cache booked, thousandths, some requests will wait for room in it.
inline constexpr std::int64_t kKvFull = 900;

/// The policy's shares in thousandths, ready for integer arithmetic.
struct CostWeights {
  std::int64_t one_plus_beta = 2'000;
  std::int64_t gamma = 200;
  std::int64_t delta = 500;
  std::int64_t hot = 1'000;
  std::int64_t session_bonus_ns = 0;
  std::int64_t host_transfer_ns = 0;
  std::int64_t disk_transfer_ns = 0;
  std::int64_t shared_transfer_ns = 0;
  std::int64_t tail = 0;
  std::int64_t reuse = 0;  ///< of FadingSum's kSteadyMs
  std::int64_t kv = 0;     ///< kKvWeight, less where prompts wait for long

  static CostWeights from(const Policy& p) noexcept {
    const auto milli = [](double share) { return static_cast<std::int64_t>(std::llround(share * 1'000)); };
    return {1'000 + milli(p.beta),
            milli(p.gamma),
            milli(p.delta),
            milli(p.hot),
            p.session_bonus.value,
            p.host_transfer_per_token.value,
            p.disk_transfer_per_token.value,
            p.shared_transfer_per_token.value,
            milli(p.tail),
            p.reuse.value / (FadingSum::kSteadyMs * 1'000),
            kKvWeight};
  }
};

/// What the formula needs to know of the request, the same for every replica.
struct CostRequest {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;        ///< expected
  std::int64_t replicas = 1;             ///< N, eligible or not: who could hold a copy
  std::span<const SharedStep> shared{};  ///< empty when fewer than two requests in flight share block 0
  std::int64_t tail_scale = 0;           ///< tail_scale_of
};
/// What it needs to know of one replica for this request.
struct CostReplica {
  std::int64_t cached_tokens = 0;  ///< on any tier, the shared store included
  std::int64_t host_tokens = 0;    ///< of those, to be loaded from host memory
  std::int64_t disk_tokens = 0;    ///< of those, to be loaded from disk
  std::int64_t shared_tokens = 0;  ///< of those, to be loaded from the store that all replicas share
  std::int64_t requests = 0;
  std::int64_t pending_ns = 0;
  std::int64_t context_tokens = 0;
  std::int64_t held_tokens = 0;  ///< KV of this router's requests in flight: how much of others' is shared nobody tells
  std::int64_t capacity_tokens = 0;  ///< of its KV cache; 0 = unknown
  std::int64_t turnover_milli = 0;   ///< of the capacity, computed anew of late (CacheBook)
  std::int64_t prior_milli = 0;      ///< how likely others' requests left it here what this router does not know of
  std::int64_t slowness = LoadBook::kAsItsKind;  ///< multiplies its prefill (LoadBook)
  bool session_here = false;
};

/// units: ns. `total` is what decides; the others are its parts, weighted as they enter it.
struct CostTerms {
  std::int64_t wait = 0;
  std::int64_t prefill = 0;  ///< P alone, unweighted: what the request will feel
  std::int64_t miss = 0;     ///< (1 + beta) * P
  std::int64_t rebate = 0;   ///< (1 + beta) * rebate, subtracted
  std::int64_t stall = 0;
  std::int64_t decode = 0;
  std::int64_t tail = 0;   ///< what the wait counts more, for this prompt's length
  std::int64_t evict = 0;  ///< what is computed anew here pushes out what others will ask for
  std::int64_t full = 0;   ///< the wait for room in the KV cache
  std::int64_t transfer = 0;
  std::int64_t session = 0;  ///< subtracted
  std::int64_t prior = 0;    ///< subtracted: what the prompt's ring home is expected to hold
  std::int64_t total = 0;
};

// Bounds that no real fleet reaches; with them every product below fits 63 bits.
inline constexpr std::int64_t kMaxRequests = 4'096;
inline constexpr std::int64_t kMaxContext = 1'000'000'000;
inline constexpr std::int64_t kMaxStepNs = 100'000'000'000;
inline constexpr std::int64_t kMaxOutput = 100'000;

/// Work of the missing blocks that a copy here would save others: sum over shared stretches behind the match.
inline std::int64_t hot_rebate_ns(const CostRequest& q, const Rates& rates, std::int64_t cached,
                                  std::int64_t hot) noexcept {
  std::int64_t saved = 0;
  std::int64_t from = cached;
  for (const SharedStep& step : q.shared) {
    const std::int64_t to = std::min(step.end_tokens, q.input_tokens);
    if (to <= from) continue;
    const std::int64_t work = rates.prefill_ns(to) - rates.prefill_ns(from);
    const std::int64_t weight = hot * step.requests;  // thousandths of p * hot
    saved += work / (q.replicas * 1'000 + weight) *
             weight;  // work * (1 - 1/(1 + hot*p/N)); off by less than the divisor in ns
    from = to;
  }
  return saved;
}

/// The time of an answer beside `requests` others of `context_tokens` together; rises with both.
inline std::int64_t answer_ns(const CostRequest& q, const Rates& rates, std::int64_t requests,
                              std::int64_t context_tokens) noexcept {
  const std::int64_t step = std::max(rates.floor_ns, rates.token_ps * (requests + 1) / 1'000) +
                            rates.context_ps * std::min(context_tokens, kMaxContext) / 1'000;
  return std::min(step, kMaxStepNs) * std::min(q.output_tokens, kMaxOutput);
}
/// This request's own decode, as it enters the cost.
inline std::int64_t decode_ns(const CostWeights& w, const CostRequest& q, const Rates& rates, std::int64_t requests,
                              std::int64_t context_tokens) noexcept {
  return answer_ns(q, rates, requests, context_tokens) / 1'000 * w.delta;
}

/// Exactly `ns` for a replica that is as quick as its kind, never less for a slower one.
inline std::int64_t slowed(std::int64_t ns, std::int64_t slowness) noexcept {
  return ns + ns / LoadBook::kAsItsKind * (slowness - LoadBook::kAsItsKind);
}

/// The policy's `tail` over the mean prefill of late, so that no candidate needs a division: thousandths per 1,024 ns, times 2^20.
inline std::int64_t tail_scale_of(const CostWeights& w, std::int64_t mean_prefill_ns) noexcept {
  return mean_prefill_ns <= 0 ? 0 : (w.tail << 20) / std::max<std::int64_t>(1, mean_prefill_ns >> 10);
}
/// returns: how much more the wait counts for a prompt of that much prefill, thousandths; as for 32 means at most.
inline std::int64_t tail_milli(const CostWeights& w, const CostRequest& q, std::int64_t prefill_ns) noexcept {
  constexpr std::int64_t kMostPrefill = 100'000'000;  // 1,024 ns each
  return std::min(std::min(prefill_ns >> 10, kMostPrefill) * q.tail_scale >> 20, 32 * w.tail);
}
inline std::int64_t tail_ns(std::int64_t wait_ns, std::int64_t milli) noexcept {
  return std::min(wait_ns, Rates::kMaxNs) / 1'000 * milli;
}

/// The wait for room in a KV cache that is booked beyond kKvFull of its capacity, this request's prompt and half of each answer included:
/// that share of the time that an answer takes there.
inline std::int64_t full_ns(const CostWeights& w, const CostRequest& q, const Rates& rates,
                            const CostReplica& r) noexcept {
  if (r.capacity_tokens <= 0 || w.kv == 0) return 0;
  const std::int64_t requests = std::min(r.requests, kMaxRequests);
  const std::int64_t output = std::min(q.output_tokens, kMaxOutput);
  const std::int64_t booked = r.held_tokens + q.input_tokens - r.cached_tokens + (requests + 1) * output / 2;
  const std::int64_t over = booked - r.capacity_tokens / 1'000 * kKvFull;
  if (over <= 0) return 0;
  const std::int64_t over_milli = std::min<std::int64_t>(over * 1'000 / r.capacity_tokens, 1'000);
  return answer_ns(q, rates, requests, r.context_tokens) / 1'000 * w.kv / 1'000 * over_milli;
}

/// What this prefill puts on the requests that run there.
inline std::int64_t stall_ns(const CostWeights& w, std::int64_t prefill_ns, std::int64_t requests) noexcept {
  return std::min(prefill_ns, Rates::kMaxNs) / 1'000 * w.gamma * requests;  // a slower one's may be four times as long
}

/// `whole_prefill_ns` is rates.prefill_ns(q.input_tokens), computed once per kind of hardware.
/// cost: a few multiplications; the shared steps only where there are any. alloc: none.
inline CostTerms cost_of(const CostWeights& w, const CostRequest& q, const Rates& rates, std::int64_t whole_prefill_ns,
                         const CostReplica& r) noexcept {
  CostTerms t;
  const std::int64_t requests = std::min(r.requests, kMaxRequests);
  std::int64_t prefill = r.cached_tokens == 0
                             ? whole_prefill_ns
                             : std::max<std::int64_t>(0, whole_prefill_ns - rates.prefill_ns(r.cached_tokens));
  if (r.slowness != LoadBook::kAsItsKind) prefill = slowed(prefill, r.slowness);
  t.wait = r.pending_ns;
  t.prefill = prefill;
  t.miss = prefill * w.one_plus_beta / 1'000;
  if (w.hot > 0 && !q.shared.empty()) {
    t.rebate = slowed(hot_rebate_ns(q, rates, r.cached_tokens, w.hot), r.slowness) * w.one_plus_beta / 1'000;
  }
  t.stall = stall_ns(w, prefill, requests);
  t.decode = decode_ns(w, q, rates, requests, r.context_tokens);
  t.tail = tail_ns(t.wait, tail_milli(w, q, prefill));
  t.evict = prefill / 1'000 * std::min(kMostLost, std::min<std::int64_t>(r.turnover_milli, 100'000) * w.reuse / 1'000);
  t.full = full_ns(w, q, rates, r);
  t.transfer =
      r.host_tokens * w.host_transfer_ns + r.disk_tokens * w.disk_transfer_ns + r.shared_tokens * w.shared_transfer_ns;
  t.session = r.session_here ? w.session_bonus_ns : 0;
  t.prior = r.prior_milli == 0 ? 0 : (t.miss - t.rebate + t.stall) / 1'000 * r.prior_milli;
  t.total =
      t.wait + t.tail + t.miss - t.rebate + t.stall + t.decode + t.evict + t.full + t.transfer - t.session - t.prior;
  return t;
}

inline CostTerms cost_of(const CostWeights& w, const CostRequest& q, const Rates& rates,
                         const CostReplica& r) noexcept {
  return cost_of(w, q, rates, rates.prefill_ns(q.input_tokens), r);
}

}  // namespace warmroute
