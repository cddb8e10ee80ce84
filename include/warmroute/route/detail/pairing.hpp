/// One replica or two: ranks the parts of a pair beside the whole, where a pool has replicas that prefill for others. Reads only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "warmroute/route/detail/ranking.hpp"
#include "warmroute/route/detail/reading.hpp"
#include "warmroute/route/disaggregate.hpp"

namespace warmroute::detail {

/// What the formulas read of one candidate.
struct PairReading {
  CostReplica cost;
  PairReplica more;
  PromptTerms prompt;
};

/// `work_ns`: of this request's prefill.
inline PairReplica pair_replica(const Prepared& p, const Candidate& c, std::int64_t work_ns) noexcept {
  const auto [share, share_with] = p.pool->state->shares[c.id.slot].milli_with(p.now.value, work_ns);
  return {share, share_with, c.book->decoding.load(std::memory_order_relaxed), p.mean_prefill_ns};
}

inline PairReading pair_reading(const Prepared& p, const Scratch& scratch, const Candidate& c) noexcept {
  PairReading out;
  out.cost = cost_replica(p, scratch, c);
  const Rates& rates = scratch.rates[c.hardware];
  const std::int64_t whole = scratch.whole_prefill_ns[c.hardware];
  const std::int64_t work =
      std::max<std::int64_t>(0, whole - (out.cost.cached_tokens == 0 ? 0 : rates.prefill_ns(out.cost.cached_tokens)));
  out.more = pair_replica(p, c, work);
  out.prompt = prompt_terms(p.topology->pairs, p.cost, rates, whole, out.cost, out.more);
  return out;
}
inline DecodeTerms decode_terms_of(const Prepared& p, const Scratch& scratch, const Candidate& c, const PairReading& r,
                                   std::int64_t share_milli) noexcept {
  return decode_terms(p.topology->pairs, p.cost, scratch.rates[c.hardware], r.cost, r.more, share_milli);
}
inline std::int64_t unified_total(const Prepared& p, const Scratch& scratch, const Candidate& c,
                                  const PairReading& r) noexcept {
  return r.prompt.total + decode_terms_of(p, scratch, c, r, r.more.share_with_milli).total;
}

/// One part of a pair. Whether the first token comes in time depends on both, so what is lost of it is kept apart.
struct PairPart {
  std::int64_t rest = 0;         ///< its cost without that
  std::int64_t ready_ns = 0;     ///< its part of the time to the first token
  std::int64_t worth_milli = 0;  ///< of an answer in time, a thousandth
};
inline std::int64_t late_ns(const Prepared& p, std::int64_t ttft_ns, std::int64_t worth_milli) noexcept {
  return late_milli(ttft_ns, p.topology->pairs.ttft_limit_ns) * worth_milli;
}
inline PairPart prompt_part(const Prepared& p, const Scratch& scratch, const Candidate& c,
                            const PairReading& r) noexcept {
  return {r.prompt.total - r.prompt.late, r.prompt.cost.wait + r.prompt.cost.prefill,
          worth_ns(p.topology->pairs, p.cost, scratch.rates[c.hardware]) / 1'000};
}
/// The KV's way there and the prompts before it in the queue included.
inline PairPart decode_part(const Prepared& p, const Scratch& scratch, std::uint32_t candidate,
                            const PairReading& r) noexcept {
  const Candidate& c = p.pool->candidates[candidate];
  const PairWeights& w = p.topology->pairs;
  const std::int64_t before = r.cost.pending_ns + transfer_ns(w, p.input_tokens, r.cost.cached_tokens);
  const std::int64_t total = before + decode_terms_of(p, scratch, c, r, r.more.share_milli).total;
  return {ramped(p, candidate, total), before, worth_ns(w, p.cost, scratch.rates[c.hardware]) / 1'000};
}

/// The best two of one part: the other part may want the same replica.
struct BestTwo {
  struct Place {
    std::int64_t cost = std::numeric_limits<std::int64_t>::max();
    std::uint64_t tie = 0;
    const Candidate* candidate = nullptr;
    PairPart part;
  };
  std::array<Place, 2> places{};

  /// Whether one that costs at least so much, with its draw, can no longer come in.
  [[nodiscard]] bool beyond(std::int64_t least, std::uint64_t tie) const noexcept {
    return least > places[1].cost || (least == places[1].cost && tie > places[1].tie);
  }
  /// Offered again, one changes nothing.
  void offer(std::int64_t cost, std::uint64_t tie, const Candidate* candidate, const PairPart& part) noexcept {
    if (places[0].candidate == candidate || places[1].candidate == candidate) return;
    const auto before = [&](const Place& at) {
      return at.candidate == nullptr || cost < at.cost || (cost == at.cost && tie < at.tie);
    };
    if (before(places[0])) {
      places[1] = places[0];
      places[0] = {cost, tie, candidate, part};
    } else if (before(places[1])) {
      places[1] = {cost, tie, candidate, part};
    }
  }
  [[nodiscard]] const Candidate* first() const noexcept { return places[0].candidate; }
};

struct PairChoice {
  Split split = Split::off;
  const Candidate* prefill = nullptr;
  const Candidate* decode = nullptr;
  std::int64_t total = std::numeric_limits<std::int64_t>::max();
};

/// The cheapest two different replicas.
inline PairChoice cheapest_pair(const Prepared& p, const BestTwo& prompts, const BestTwo& decodes) noexcept {
  PairChoice best;
  for (const auto& a : prompts.places) {
    for (const auto& b : decodes.places) {
      if (a.candidate == nullptr || b.candidate == nullptr || a.candidate->id == b.candidate->id) continue;
      const std::int64_t total =
          a.part.rest + b.part.rest + late_ns(p, a.part.ready_ns + b.part.ready_ns, b.part.worth_milli);
      if (total >= best.total) continue;
      best = {Split::pair, a.candidate, b.candidate, total};
    }
  }
  return best;
}

inline bool sends_kv(const Policy& policy, const Candidate& c) noexcept {
  return c.spec->cache_kind == CacheKind::paged &&
         (c.spec->role == Role::prefill || (policy.unified_pairs && c.spec->role == Role::unified));
}
inline bool receives_kv(const Policy& policy, const Candidate& c) noexcept {
  return c.spec->cache_kind == CacheKind::paged &&
         (c.spec->role == Role::decode || (policy.unified_pairs && c.spec->role == Role::unified));
}

}  // namespace warmroute::detail
