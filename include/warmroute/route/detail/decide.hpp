/// The last step of a decision: rank the eligible by the policy's rule, and say why the first one is first.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warmroute/route/detail/cost_ranking.hpp"
#include "warmroute/route/detail/pair_ranking.hpp"
#include "warmroute/route/detail/ranking.hpp"
#include "warmroute/route/detail/reading.hpp"

namespace warmroute::detail {

inline void rank_by_baseline(const Prepared& p, const Scratch& scratch, Ranking& ranking) noexcept {
  BaselineView v;
  v.eligible = static_cast<std::uint32_t>(scratch.eligible.size());
  v.turn = p.pool->state->turn.load(std::memory_order_relaxed);
  v.draw = p.draw;
  const Algorithm rule = p.topology->policy.algorithm;
  for (const std::uint32_t i : scratch.eligible) {
    const Candidate& c = p.pool->candidates[i];
    const CostReplica r = cost_replica(p, scratch, c);
    if (rule == Algorithm::random) v.tie = mix(p.draw ^ c.id.slot);
    v.requests = r.requests;
    v.pending_tokens = c.book->pending_tokens.load(std::memory_order_relaxed);
    v.cached_tokens = r.cached_tokens;
    BaselineRank rank;
    switch (rule) {
      case Algorithm::random: rank = random_rank(v); break;
      case Algorithm::round_robin: rank = round_robin_rank(v); break;
      case Algorithm::least_tokens: rank = least_tokens_rank(v); break;
      case Algorithm::power_of_two: rank = power_of_two_rank(v); break;
      case Algorithm::longest_match: rank = longest_match_rank(v); break;
      default: rank = least_requests_rank(v); break;
    }
    ranking.offer(rank.first, rank.second, p.draw, c.id.slot, i);
    ranking.held(r.cached_tokens, 0, i);
    ++v.ordinal;
  }
}

/// The ring's order from the key's home on, over the eligible. With a bound, the first within it is moved to the front.
/// returns: whether the choice left the home for its load.
inline bool rank_by_ring(const Prepared& p, const Scratch& scratch, Ranking& ranking) {
  const std::uint64_t key = ring_key(p);
  const auto eligible = [&](std::uint32_t slot) {
    return std::binary_search(scratch.eligible.begin(), scratch.eligible.end(), p.pool->by_slot[slot]);
  };
  const auto load = [&](std::uint32_t slot) {
    return p.pool->candidates[p.pool->by_slot[slot]].book->context_tokens.load(std::memory_order_relaxed);
  };
  BoundedPick pick;
  if (p.topology->policy.algorithm == Algorithm::bounded_hash) {
    LoadBound bound;
    bound.factor = p.topology->policy.bound_factor;
    pick = bounded_pick_among(*p.pool->ring, key, bound, p.input_tokens, load, eligible);
    if (pick.member != kNoMember) ranking.offer(-1, 0, 0, 0, p.pool->by_slot[pick.member]);
  }
  RingWalk walk(*p.pool->ring, key);
  std::int64_t place = 0;
  const std::size_t wanted = std::min(ranking.places.size(), scratch.eligible.size());
  for (std::uint32_t slot = walk.next(); slot != kNoMember && ranking.count < wanted; slot = walk.next()) {
    if (slot != pick.member && eligible(slot)) ranking.offer(place++, 0, 0, 0, p.pool->by_slot[slot]);
  }
  for (const std::uint32_t i : scratch.eligible)
    ranking.held(cost_replica(p, scratch, p.pool->candidates[i]).cached_tokens, 0, i);
  return pick.diverted;
}

/// Leaving at least this much behind counts as a spill.
inline std::int64_t spill_threshold(const Prepared& p) noexcept { return std::max<std::int64_t>(512, p.tokens_of(2)); }

/// Why the cheapest is not the best holder: the term that differs most.
inline Reason cost_reason(const Prepared& p, const Scratch& scratch, const CostReplica& chosen,
                          const CostTerms& chosen_terms, const Ranking& ranking) noexcept {
  const std::int64_t best_cached = ranking.most_cached;
  if (best_cached == 0) return chosen.session_here ? Reason::session : Reason::no_match;
  if (chosen.cached_tokens + spill_threshold(p) > best_cached) {
    return chosen.session_here && chosen.cached_tokens < best_cached ? Reason::session : Reason::best_match;
  }
  const CostTerms best = cost_terms(p, scratch, p.pool->candidates[ranking.holder]);
  const std::int64_t wait = best.wait + best.tail - chosen_terms.wait - chosen_terms.tail;
  const std::int64_t decode =
      best.decode + best.stall + best.full - chosen_terms.decode - chosen_terms.stall - chosen_terms.full;
  const std::int64_t hot = chosen_terms.rebate - best.rebate;
  if (hot >= wait && hot >= decode) return Reason::spill_hot;
  return wait >= decode ? Reason::spill_wait : Reason::spill_decode;
}

inline Reason reason_of(const Prepared& p, const Request& r, const Scratch& scratch, const CostReplica& chosen,
                        const CostTerms& terms, const Ranking& ranking, bool diverted) noexcept {
  if (p.fail_open) return Reason::fail_open;
  if (r.pinned.valid()) return Reason::pinned;
  if (scratch.eligible.size() == 1) return Reason::only_candidate;
  switch (p.topology->policy.algorithm) {
    case Algorithm::cost: return cost_reason(p, scratch, chosen, terms, ranking);
    case Algorithm::longest_match: return ranking.most_cached == 0 ? Reason::no_match : Reason::best_match;
    case Algorithm::consistent_hash: return Reason::home;
    case Algorithm::bounded_hash: return diverted ? Reason::spill_bound : Reason::home;
    default: return Reason::baseline;
  }
}

/// By how much the first token is expected to be later there than the policy allows; 0 where it is not saturated. Where the KV cache is too
/// full, nobody knows for how long: a second at least.
inline std::int64_t over_limit_ns(const Prepared& p, const Scratch& scratch, const Candidate& c) noexcept {
  const Policy& policy = p.topology->policy;
  std::int64_t over = 0;
  if (policy.saturation_wait > Nanos{0}) {
    const CostTerms terms = cost_terms(p, scratch, c);
    over = std::max<std::int64_t>(0, terms.wait + terms.prefill - policy.saturation_wait.value);
  }
  if (policy.saturation_kv > 0) {
    const std::int64_t at = c.cache->kv_at.load(std::memory_order_relaxed);
    const bool fresh = at != 0 && p.now.value - at <= policy.signals_max_age.value;
    const double share = static_cast<double>(c.cache->kv_permille.load(std::memory_order_relaxed)) / 1'000;
    if (fresh && share >= policy.saturation_kv) over = std::max<std::int64_t>(over, 1'000'000'000);
  }
  return over;
}

/// Leaves a choice that is past the policy's limits for the cheapest that is not. cost: all the eligible once more, and only then.
/// returns: 0, or where all are past them the time until the first is not.
inline std::int64_t avoid_saturated(const Prepared& p, const Scratch& scratch, Ranking& ranking, bool& moved) noexcept {
  const std::int64_t chosen = over_limit_ns(p, scratch, p.pool->candidates[ranking.places[0].candidate]);
  if (chosen == 0) return 0;
  std::int64_t soonest = chosen, least = std::numeric_limits<std::int64_t>::max();
  std::uint32_t best = 0;
  for (const std::uint32_t i : scratch.eligible) {
    const std::int64_t over = over_limit_ns(p, scratch, p.pool->candidates[i]);
    soonest = std::min(soonest, over);
    if (over != 0) continue;
    const std::int64_t total = ramped(p, i, cost_terms(p, scratch, p.pool->candidates[i]).total);
    if (total >= least) continue;
    least = total;
    best = i;
  }
  if (soonest != 0) return soonest;
  std::size_t at = 0;
  while (at < ranking.count && ranking.places[at].candidate != best) ++at;
  if (at == ranking.count) ranking.places[at == ranking.places.size() ? --at : ranking.count++].candidate = best;
  std::rotate(ranking.places.begin(), ranking.places.begin() + static_cast<std::ptrdiff_t>(at),
              ranking.places.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  moved = true;
  return 0;
}

/// Makes the decision about one replica one about two.
inline void split(const Prepared& p, const Scratch& scratch, const PairChoice& pair, Decision& d) noexcept {
  d.split = pair.split;
  if (pair.split != Split::pair) return;
  const CostReplica from = cost_replica(p, scratch, *pair.prefill);
  const CostReplica to = cost_replica(p, scratch, *pair.decode);
  const CostTerms terms = cost_terms(p, scratch, *pair.prefill, from);
  d.replica = pair.decode->id;
  d.prefill_replica = pair.prefill->id;
  d.cached_tokens = {Tokens{from.cached_tokens - from.host_tokens - from.disk_tokens - from.shared_tokens},
                     Tokens{from.host_tokens}, Tokens{from.disk_tokens}, Tokens{from.shared_tokens}};
  d.decode_cached_tokens = Tokens{to.cached_tokens};
  d.best_cached_tokens = Tokens{std::max(d.best_cached_tokens.value, from.cached_tokens)};
  d.expected_wait = Nanos{terms.wait};
  d.expected_prefill = Nanos{terms.prefill};
  d.expected_transfer = Nanos{transfer_ns(p.topology->pairs, p.input_tokens, to.cached_tokens)};
  std::uint8_t kept = 0;
  for (std::uint8_t i = 0; i < d.fallback_count; ++i) {
    if (d.fallback_ids[i] != d.replica) d.fallback_ids[kept++] = d.fallback_ids[i];
  }
  d.fallback_count = kept;
}

/// Ranks and fills the decision; `p` is prepared with verdict routed. The verdict may be saturated.
inline Decision decide(const Prepared& p, const Request& r, Scratch& scratch) {
  Ranking ranking;
  PairChoice pair;
  bool diverted = false;
  switch (p.topology->policy.algorithm) {
    case Algorithm::cost:
      if (p.pool->pairs) pair = rank_with_pairs(p, r, scratch, ranking);
      else rank_by_cost(p, scratch, ranking);
      break;
    case Algorithm::consistent_hash:
    case Algorithm::bounded_hash: diverted = rank_by_ring(p, scratch, ranking); break;
    default: rank_by_baseline(p, scratch, ranking); break;
  }
  bool moved = false;
  const Policy& policy = p.topology->policy;
  const bool limited = (policy.saturation_wait > Nanos{0} || policy.saturation_kv > 0) && !r.pinned.valid();
  if (limited && (pair.split != Split::pair || over_limit_ns(p, scratch, *pair.prefill) > 0)) {
    if (pair.split == Split::pair) pair.split = Split::no_prefill;  // the best of them is past the limits
    const std::int64_t wait = avoid_saturated(p, scratch, ranking, moved);
    if (wait > 0 && r.priority <= policy.shed_priority) {
      Decision refused;
      refused.verdict = Verdict::saturated;
      refused.input_tokens = Tokens{p.input_tokens};
      refused.best_cached_tokens = Tokens{ranking.most_cached};
      refused.retry_after = Nanos{wait};
      refused.class_id = r.class_id;
      refused.priority = r.priority;
      return refused;
    }
  }
  const Candidate& chosen = p.pool->candidates[ranking.places[0].candidate];
  const CostReplica reading = cost_replica(p, scratch, chosen);
  const CostTerms terms = cost_terms(p, scratch, chosen, reading);
  Decision d;
  d.verdict = Verdict::routed;
  d.replica = chosen.id;
  for (std::size_t i = 1; i < ranking.count; ++i) {
    d.fallback_ids[d.fallback_count++] = p.pool->candidates[ranking.places[i].candidate].id;
  }
  d.input_tokens = Tokens{p.input_tokens};
  d.cached_tokens = {Tokens{reading.cached_tokens - reading.host_tokens - reading.disk_tokens - reading.shared_tokens},
                     Tokens{reading.host_tokens}, Tokens{reading.disk_tokens}, Tokens{reading.shared_tokens}};
  d.best_cached_tokens = Tokens{ranking.most_cached};
  d.expected_wait = Nanos{terms.wait};
  d.expected_prefill = Nanos{terms.prefill};
  d.reason = moved ? Reason::spill_saturated : reason_of(p, r, scratch, reading, terms, ranking, diverted);
  d.class_id = r.class_id;
  d.priority = r.priority;
  if (p.pool->pairs) split(p, scratch, pair, d);
  return d;
}

}  // namespace warmroute::detail
