/// What a Router tells of itself: why a decision is as it is, and its statistics. Locks: explain none; statistics the writers' ones, for moments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "warmroute/route/detail/router_core.hpp"

namespace warmroute::detail {

// Why nobody holds any of it: the first of these that applies.
inline std::string_view no_match_reason(const Prepared& p, const Request& r, const Scratch& scratch) {
  if (scratch.match.best() > 0) return {};
  if (p.path.empty())
    return r.blocks.empty() && r.token_ids.empty() && r.prompt_bytes <= 0 ? "the request carries no prompt blocks"
                                                                          : "the prompt is shorter than one block";
  if (p.pool->state->index.statistics().memberships == 0) return "nothing is known of any cache in this pool yet";
  return "no replica has seen this first block under this adapter, salt and tenant, or it was evicted";
}

inline std::string_view lost_because(const Prepared& p, const Request& r, const Candidate& c, bool eligible) {
  if (!eligible) {
    if (r.pinned.valid() && r.pinned != c.id) return "the request is pinned elsewhere";
    if (std::find(r.excluded.begin(), r.excluded.end(), c.id) != r.excluded.end()) return "excluded by the caller";
    if (!c.spec->carries(r.adapter)) return "does not carry the adapter";
    if (c.health == Health::down && !p.fail_open) return "down";
    if (c.health == Health::draining && !p.fail_open) return "draining";
    return "its engine stopped reporting";
  }
  return {};
}

// The weighted term by which a loser is worse most.
inline std::string_view worst_term(const CostTerms& loser, const CostTerms& winner) {
  const std::int64_t wait = loser.wait + loser.tail - winner.wait - winner.tail;
  const std::int64_t miss = (loser.miss - loser.rebate) - (winner.miss - winner.rebate);
  const std::int64_t stall = loser.stall - winner.stall;
  const std::int64_t decode = loser.decode - winner.decode;
  const std::int64_t prior = winner.prior - loser.prior;
  const std::int64_t room = loser.full + loser.evict - winner.full - winner.evict;
  if (loser.total == winner.total) return "an exact tie, drawn";
  if (prior > wait && prior > miss && prior > stall && prior > decode) return "not the prompt's home on the ring";
  if (room > wait && room > miss && room > stall && room > decode) {
    return loser.full - winner.full >= loser.evict - winner.evict ? "its KV cache is fuller"
                                                                  : "its cache is renewed more quickly";
  }
  if (miss >= wait && miss >= stall && miss >= decode) return "more to prefill";
  if (wait >= stall && wait >= decode) return "longer queue of prefill work";
  return stall >= decode ? "would stall more running requests" : "slower decode";
}

inline std::string rank_name(const Candidate& c) {
  return c.spec->dp_rank == 0 ? c.spec->name : c.spec->name + "/" + std::to_string(c.spec->dp_rank);
}

inline PairExplanation explain_pair(const Prepared& p, const Request& r, Scratch& scratch) {
  PairExplanation out;
  Ranking ranking;
  const PairChoice pair = rank_with_pairs(p, r, scratch, ranking);
  if (ranking.count != 0) {
    const Candidate& whole = p.pool->candidates[ranking.places[0].candidate];
    const PairReading reading = pair_reading(p, scratch, whole);
    out.unified = rank_name(whole);
    out.unified_prompt = reading.prompt;
    out.unified_decode = decode_terms_of(p, scratch, whole, reading, reading.more.share_with_milli);
    out.unified_total = ranking.places[0].first;
  }
  if (pair.prefill == nullptr) return out;
  const PairReading from = pair_reading(p, scratch, *pair.prefill);
  const PairReading to = pair_reading(p, scratch, *pair.decode);
  out.possible = true;
  out.prefill = rank_name(*pair.prefill);
  out.decode = rank_name(*pair.decode);
  out.transferred_tokens = std::max<std::int64_t>(0, p.input_tokens - to.cost.cached_tokens);
  out.terms.prompt = from.prompt;
  out.terms.decode = decode_terms_of(p, scratch, *pair.decode, to, to.more.share_milli);
  out.terms.transfer = transfer_ns(p.topology->pairs, p.input_tokens, to.cost.cached_tokens);
  out.terms.decode_wait = to.cost.pending_ns;
  out.terms.total = pair.total;
  return out;
}

inline Explanation RouterCore::explain(const Request& request, Nanos now) const {
  now = clamped(now);
  const auto guard = domain_.pin();
  const Topology& topology = topology_.read(guard);
  ScratchPool::Lease lease(scratch_, counters_.scratch_allocated);
  Prepared p = begin(now);
  Explanation out;
  out.algorithm = algorithm_name(topology.policy.algorithm);
  out.decision.verdict = prepare(p, topology, request, now, sequence_.load(std::memory_order_relaxed), sessions_,
                                 options_.max_path_blocks, *lease, guard, pool_of(topology, request));
  if (p.pool == nullptr) return out;
  if (out.decision.verdict == Verdict::routed) {
    out.decision = decide(p, request, *lease);
    out.pairs = p.pool->pairs;
    if (out.pairs) out.pair = explain_pair(p, request, *lease);
  }
  out.pool = p.pool->name;
  out.blocks = p.path.size();
  out.tokens_per_block_milli = p.tokens_per_block_milli;
  out.shared_requests = p.cost.shared.empty() ? 0 : p.cost.shared.front().requests;
  out.no_match = no_match_reason(p, request, *lease);
  CostTerms winner;
  for (const Candidate& c : p.pool->candidates) {
    if (c.id == out.decision.replica) winner = cost_terms(p, *lease, c);
  }
  for (const Candidate& c : p.pool->candidates) {
    CandidateExplanation e;
    e.id = c.id;
    e.name = c.spec->name;
    e.dp_rank = c.spec->dp_rank;
    e.eligible = may_take(p, c, request);
    e.chosen = out.decision.routed() && c.id == out.decision.replica;
    const CostReplica reading = cost_replica(p, *lease, c);
    e.cached_tokens = {reading.cached_tokens - reading.host_tokens - reading.disk_tokens - reading.shared_tokens,
                       reading.host_tokens, reading.disk_tokens, reading.shared_tokens};
    e.load = read(*c.book);
    e.cost = cost_terms(p, *lease, c);
    e.lost_because = lost_because(p, request, c, e.eligible);
    if (e.eligible && !e.chosen) {
      e.lost_because =
          topology.policy.algorithm == Algorithm::cost ? worst_term(e.cost, winner) : "not the rule's choice";
    }
    out.candidates.push_back(std::move(e));
  }
  return out;
}

inline RouterStatistics RouterCore::statistics() const {
  RouterStatistics s;
  const auto get = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  for (std::size_t i = 0; i < s.verdicts.size(); ++i) s.verdicts[i] = get(counters_.verdicts[i]);
  for (std::size_t i = 0; i < s.reasons.size(); ++i) s.reasons[i] = get(counters_.reasons[i]);
  for (std::size_t i = 0; i < s.outcomes.size(); ++i) s.outcomes[i] = get(counters_.outcomes[i]);
  for (std::size_t i = 0; i < s.splits.size(); ++i) s.splits[i] = get(counters_.splits[i]);
  s.transfers_done = get(counters_.transfers_done);
  s.transfers_timed_out = get(counters_.transfers_timed_out);
  s.transfer_ns = get(counters_.transfer_ns);
  s.late_calls = get(counters_.late_calls);
  s.placements_dropped = get(counters_.placements_dropped);
  s.clock_clamped = get(counters_.clock_clamped);
  s.scratch_allocated = get(counters_.scratch_allocated);
  s.tickets_in_flight = static_cast<std::uint64_t>(std::max<std::int64_t>(0, get(in_flight_)));
  s.input_tokens = get(counters_.input_tokens);
  s.predicted_cached_tokens = get(counters_.predicted_cached_tokens);
  s.reported_cached_tokens = get(counters_.reported_cached_tokens);
  s.output_tokens = get(counters_.output_tokens);
  s.cached_reports = get(counters_.cached_reports);
  s.cached_exact = get(counters_.cached_exact);
  s.observed_ttft = counters_.observed_ttft.read();
  s.predicted_ttft = counters_.predicted_ttft.read();
  s.predicted_wait_ns = get(counters_.predicted_wait_ns);
  s.predicted_prefill_ns = get(counters_.predicted_prefill_ns);
  s.saved_prefill_ns = get(counters_.saved_prefill_ns);
  s.event_blocks_stored = get(counters_.event_blocks_stored);
  s.event_blocks_removed = get(counters_.event_blocks_removed);
  s.event_orphans = get(counters_.event_orphans);
  s.event_gaps = get(counters_.event_gaps);
  const std::lock_guard lock(control_);
  const Topology& topology = topology_.latest();
  s.policy_version = topology.policy.version;
  s.algorithm = algorithm_name(topology.policy.algorithm);
  for (const auto& pool : pools_) {
    const PrefixIndexStatistics index = pool->index.statistics();
    s.pools.push_back({pool->name, index.blocks, index.memberships, index.bytes, index.max_bytes,
                       static_cast<double>(pool->bytes_per_token()) / 1'000,
                       static_cast<double>(pool->output_tokens.milli()) / 1'000, pool->shared.blocks(),
                       pool->learned_rates()});
  }
  const Nanos last{get(last_now_)};
  const PeerBook* told = peers_.lines(last);
  s.peers = peers_.telling(last, topology.policy.signals_max_age);
  for (const ReplicaRow& row : topology.rows) {
    ReplicaStatistics r{
        row.id, row.spec.name, row.spec.dp_rank, row.spec.pool, row.spec.health, read(table_.book(row.id.slot)), 0, 0};
    r.input_tokens = get(table_.cache_book(row.id.slot).input_tokens);
    r.matched_tokens = get(table_.cache_book(row.id.slot).matched_tokens);
    r.held_tokens = get(table_.cache_book(row.id.slot).held_tokens);
    r.engine_prefix = table_.prefix_gains(row.id);
    r.role = row.spec.role;
    if (told != nullptr) {
      r.peer_requests = get(told[row.id.slot].requests);
      r.peer_pending_ns = get(told[row.id.slot].pending_ns);
    }
    r.declared = row.spec.rates;
    r.slowness = static_cast<double>(get(table_.book(row.id.slot).slowness)) / LoadBook::kAsItsKind;
    for (const auto& pool : pools_) {
      if (pool->name != row.spec.pool) continue;
      r.prefill_share =
          static_cast<double>(pool->shares[row.id.slot].milli(last_now_.load(std::memory_order_relaxed))) / 1e3;
      const std::lock_guard placing(pool->placing);
      const ModelledCache& cache = pool->caches[row.id.slot];
      if (cache.id == row.id && cache.residency != nullptr) {
        r.believed_blocks = cache.residency->blocks();
        r.capacity_blocks = cache.capacity_blocks;
        r.reported = cache.reported();
      } else if (cache.id == row.id && cache.slots != nullptr) {
        r.believed_blocks = cache.slots->blocks();
        r.reported = cache.reported();
      }
    }
    s.replicas.push_back(std::move(r));
  }
  return s;
}

}  // namespace warmroute::detail
