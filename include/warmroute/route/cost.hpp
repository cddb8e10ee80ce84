/// The cost of serving one request on one replica, as time to everybody. Lowest wins, exact ties are drawn.
///
///   cost(r) = W + (1 + beta) * (P - rebate) + gamma * q * P + delta * E[out] * (max(F, a * (q + 1)) + k * ctx)
///             + transfer - session bonus
///
/// W prefill time booked there before this request; P prefill time of this request's uncached tokens; q requests in flight;
/// ctx their input tokens; E[out] expected output tokens; F, a, k the replica's rates. beta prices the delay that a miss
/// puts on later requests, gamma the stall that this prefill puts on the requests running there, delta this request's own decode.
/// The rebate spreads hot prefixes: a missing block that p >= 2 requests in flight contain is charged 1/(1 + hot*p/N) of its
/// work, since a copy here will serve p/N of them. W counts the first prompt's work as done at the rate at which time passes (LoadBook).
///
/// Constants: measured over the public conversation trace in a discrete-event fleet (benchmarks/README.md, "Policies"). beta 0.5..1.5 and
/// delta 0.25..0.6 are flat. gamma trades: at 0.2 the mean end-to-end time is 2 % lower, but the p99 of TTFT is 15 % higher at utilisation
/// 0.9 and 2.5 times as high at 1.1, since whoever holds long prompts is waited for. hot 2 keeps 50 agents with one prompt at 1.05x the mean
/// on the busiest of 8 replicas (1: 1.35x); without the rebate all of them stay on one.
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

  static CostWeights from(const Policy& p) noexcept {
    const auto milli = [](double share) { return static_cast<std::int64_t>(std::llround(share * 1'000)); };
    return {1'000 + milli(p.beta),
            milli(p.gamma),
            milli(p.delta),
            milli(p.hot),
            p.session_bonus.value,
            p.host_transfer_per_token.value,
            p.disk_transfer_per_token.value,
            p.shared_transfer_per_token.value};
  }
};

/// What the formula needs to know of the request, the same for every replica.
struct CostRequest {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;        ///< expected
  std::int64_t replicas = 1;             ///< N, eligible or not: who could hold a copy
  std::span<const SharedStep> shared{};  ///< empty when fewer than two requests in flight share block 0
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
  std::int64_t prior_milli = 0;  ///< how likely others' requests left it here what this router does not know of
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

/// This request's own decode beside `requests` others of `context_tokens` together; rises with both.
inline std::int64_t decode_ns(const CostWeights& w, const CostRequest& q, const Rates& rates, std::int64_t requests,
                              std::int64_t context_tokens) noexcept {
  const std::int64_t step = std::max(rates.floor_ns, rates.token_ps * (requests + 1) / 1'000) +
                            rates.context_ps * std::min(context_tokens, kMaxContext) / 1'000;
  return std::min(step, kMaxStepNs) * std::min(q.output_tokens, kMaxOutput) / 1'000 * w.delta;
}

/// Exactly `ns` for a replica that is as quick as its kind, never less for a slower one.
inline std::int64_t slowed(std::int64_t ns, std::int64_t slowness) noexcept {
  return ns + ns / LoadBook::kAsItsKind * (slowness - LoadBook::kAsItsKind);
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
  t.stall = prefill / 1'000 * w.gamma * requests;
  t.decode = decode_ns(w, q, rates, requests, r.context_tokens);
  t.transfer =
      r.host_tokens * w.host_transfer_ns + r.disk_tokens * w.disk_transfer_ns + r.shared_tokens * w.shared_transfer_ns;
  t.session = r.session_here ? w.session_bonus_ns : 0;
  t.prior = r.prior_milli == 0 ? 0 : (t.miss - t.rebate + t.stall) / 1'000 * r.prior_milli;
  t.total = t.wait + t.miss - t.rebate + t.stall + t.decode + t.transfer - t.session - t.prior;
  return t;
}

inline CostTerms cost_of(const CostWeights& w, const CostRequest& q, const Rates& rates,
                         const CostReplica& r) noexcept {
  return cost_of(w, q, rates, rates.prefill_ns(q.input_tokens), r);
}

}  // namespace warmroute
