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

inline PairReading pair_reading(const Prepared& p, const Scratch& scratch, const Candidate& c) noexcept {
  PairReading out;
  out.cost = cost_replica(p, scratch, c);
  const PrefillShare& share = p.pool->state->shares[c.id.slot];
  out.more.decoding = c.book->decoding.load(std::memory_order_relaxed);
  const Rates& rates = scratch.rates[c.hardware];
  out.more.prompt_ns = p.mean_prefill_ns;
  out.more.share_milli = share.milli(p.now.value);
  const std::int64_t whole = scratch.whole_prefill_ns[c.hardware];
  const std::int64_t work =
      std::max<std::int64_t>(0, whole - (out.cost.cached_tokens == 0 ? 0 : rates.prefill_ns(out.cost.cached_tokens)));
  out.more.share_with_milli = share.milli(p.now.value, work);
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
inline PairPart prompt_part(const Prepared& p, const Scratch& scratch, const Candidate& c) noexcept {
  const PairReading r = pair_reading(p, scratch, c);
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

  void offer(std::int64_t cost, std::uint64_t tie, const Candidate* candidate, const PairPart& part) noexcept {
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

inline BestTwo best_prompts(const Prepared& p, const Request& r, const Scratch& scratch) noexcept {
  BestTwo out;
  for (const Candidate& c : p.pool->prefillers) {
    if (c.health != Health::up || !may_take(p, c, r)) continue;
    const PairPart part = prompt_part(p, scratch, c);
    const std::int64_t ttft = part.ready_ns + transfer_ns(p.topology->pairs, p.input_tokens, 0);
    out.offer(part.rest + late_ns(p, ttft, part.worth_milli), mix(p.draw ^ c.id.slot), &c, part);
  }
  return out;
}

/// Ranks the eligible as the only replica of the request, by the terms of pairs; and finds the best pair beside them.
/// returns: the pair, or why there is none. The ranking is filled in any case.
inline PairChoice rank_with_pairs(const Prepared& p, const Request& r, const Scratch& scratch,
                                  Ranking& ranking) noexcept {
  const Policy& policy = p.topology->policy;
  BestTwo decodes;
  for (const std::uint32_t i : scratch.eligible) {
    const Candidate& c = p.pool->candidates[i];
    const PairReading reading = pair_reading(p, scratch, c);
    const std::int64_t total = ramped(p, i, unified_total(p, scratch, c, reading));
    ranking.offer(total, 0, p.draw, c.id.slot, i);
    ranking.held(reading.cost.cached_tokens, total, i);
    if (receives_kv(policy, c)) {
      const PairPart part = decode_part(p, scratch, i, reading);
      const std::int64_t cost = part.rest + late_ns(p, part.ready_ns, part.worth_milli);
      decodes.offer(cost, mix(p.draw ^ c.id.slot), &c, part);
    }
  }
  if (r.pinned.valid() || p.fail_open) return {};
  if (decodes.first() == nullptr) return {.split = Split::no_decode};
  const BestTwo prompts = best_prompts(p, r, scratch);
  if (prompts.first() == nullptr) return {.split = Split::no_prefill};
  PairChoice pair = cheapest_pair(p, prompts, decodes);
  if (pair.prefill == nullptr) return {.split = Split::no_decode};  // one replica is all there is
  if (policy.disaggregate == Disaggregate::always) return pair;
  const Candidate& whole = p.pool->candidates[ranking.places[0].candidate];
  const std::int64_t uncached = p.input_tokens - cost_replica(p, scratch, whole).cached_tokens;
  if (uncached < policy.pair_min_tokens) pair.split = Split::short_prompt;
  else if (ranking.places[0].first <= pair.total) pair.split = Split::unified_cheaper;
  return pair;
}

}  // namespace warmroute::detail
