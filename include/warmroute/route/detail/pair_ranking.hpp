/// The best few as the only replica of a request, and the best pair beside them, without pricing all of a large fleet in full.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "warmroute/route/detail/cost_ranking.hpp"
#include "warmroute/route/detail/pairing.hpp"

namespace warmroute::detail {

/// As CostRanking, for three costs of each candidate at once. cost: three cache lines and the divisions of its decode per eligible candidate, 40 ns.
template <bool Told>
class PairRanking {
 public:
  PairRanking(const Prepared& p, const Request& r, Scratch& scratch, Ranking& ranking) noexcept
      : p_(p), r_(r), scratch_(scratch), ranking_(ranking), loads_(p) {}

  void rank() {
    draw_lines();
    if (scratch_.eligible.size() <= kTried + 2 * kTriedParts) {
      for (const std::uint32_t i : scratch_.eligible) price_all(i);
    } else {
      rank_by_lines();
    }
    for (const Candidate& c : p_.pool->prefillers) {  // those who do nothing else; the others were priced above
      if (p_.pool->by_slot[c.id.slot] != kNone || c.health != Health::up || !may_take(p_, c, r_)) continue;
      const PairLine* const line = line_of(c);
      if (line == nullptr || !prompts.beyond(read(*line, c).least.prompt, tie_of(c)))
        offer_prompt(c, pair_reading(p_, scratch_, c));
    }
  }

  BestTwo prompts, decodes;

 private:
  static constexpr std::size_t kTried = std::tuple_size_v<decltype(Ranking::places)> + 3;
  static constexpr std::size_t kTriedParts = std::tuple_size_v<decltype(BestTwo::places)> + 2;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  void draw_lines() {
    const std::size_t kinds = scratch_.rates.size();
    scratch_.pair_cold.resize(kinds);
    scratch_.pair_deeper.resize(kinds);
    for (std::size_t k = 0; k < kinds; ++k) {
      scratch_.pair_cold[k] = line(k, held_tokens(p_, scratch_, {}));
      scratch_.pair_deeper[k].clear();
    }
  }
  [[nodiscard]] PairLine line(std::size_t hardware, const CostReplica& held) const noexcept {
    return pair_line(p_.topology->pairs, p_.cost, scratch_.rates[hardware], scratch_.whole_prefill_ns[hardware], held,
                     p_.apart);
  }
  /// returns: nullptr where the candidate has to be priced.
  [[nodiscard]] const PairLine* line_of(const Candidate& c) {
    if (p_.apart && quicker(c)) return nullptr;
    if (c.id.slot == p_.homes[0] || c.id.slot == p_.homes[1] || c.id.slot == p_.session_replica.slot) return nullptr;
    const HeldBlocks held = held_blocks(p_, scratch_, c.id.slot);
    if (held.disk == 0) return &scratch_.pair_cold[c.hardware];
    if (held.device != held.disk) return nullptr;
    return scratch_.pair_deeper[c.hardware].of(held.disk,
                                               [&] { return line(c.hardware, held_tokens(p_, scratch_, held)); });
  }
  struct Reading {
    CostReplica cost;  // its load alone
    PairReplica more;
    PairLeast least;
  };
  [[nodiscard]] Reading read(const PairLine& line, const Candidate& c) const noexcept {
    const ReplicaLoad load = loads_.of(c);
    Reading out{{}, pair_replica(p_, c, line.work_ns), {}};
    out.cost.requests = load.requests;
    out.cost.pending_ns = load.pending_ns;
    out.cost.context_tokens = load.context_tokens;
    out.least = pair_least(line, p_.topology->pairs, p_.cost, scratch_.rates[c.hardware], out.cost, out.more);
    return out;
  }
  [[nodiscard]] std::int64_t least_whole(const Reading& r, const Candidate& c) const noexcept {
    return r.least.prompt + decode_terms(p_.topology->pairs, p_.cost, scratch_.rates[c.hardware], r.cost, r.more,
                                         r.more.share_with_milli)
                                .total;
  }
  [[nodiscard]] std::uint64_t tie_of(const Candidate& c) const noexcept { return mix(p_.draw ^ c.id.slot); }
  [[nodiscard]] bool may_prefill(const Candidate& c) const noexcept {
    return !p_.pool->prefillers.empty() && p_.pool->prefiller_by_slot[c.id.slot] != kNone;
  }

  void offer_prompt(const Candidate& c, const PairReading& reading) noexcept {
    const PairPart part = prompt_part(p_, scratch_, c, reading);
    const std::int64_t ttft = part.ready_ns + transfer_ns(p_.topology->pairs, p_.input_tokens, 0);
    prompts.offer(part.rest + late_ns(p_, ttft, part.worth_milli), tie_of(c), &c, part);
  }
  /// All that this candidate may be. Priced again, it changes nothing.
  void price_all(std::uint32_t i) noexcept {
    const Candidate& c = p_.pool->candidates[i];
    const PairReading reading = pair_reading(p_, scratch_, c);
    if (!ranking_.has(i)) {
      const std::int64_t total = ramped(p_, i, unified_total(p_, scratch_, c, reading));
      ranking_.offer(total, 0, p_.draw, c.id.slot, i);
      ranking_.held(reading.cost.cached_tokens, total, i);
    }
    if (receives_kv(p_.topology->policy, c)) {
      const PairPart part = decode_part(p_, scratch_, i, reading);
      const std::int64_t cost = part.rest + late_ns(p_, part.ready_ns, part.worth_milli);
      decodes.offer(cost, tie_of(c), &c, part);
    }
    if (may_prefill(c)) offer_prompt(c, reading);
  }

  void rank_by_lines() {
    const Policy& policy = p_.topology->policy;
    Lowest<kTried> whole;
    Lowest<kTriedParts> prompt, decode;
    each_least([&](const Reading& r, const Candidate& c, std::uint32_t i) {
      const std::uint32_t depth = scratch_.match.disk_depth(c.id.slot);
      if (depth != 0)
        ranking_.held(p_.tokens_of(std::max(std::min(depth, p_.most_blocks), scratch_.store_blocks)), r.least.whole(),
                      i);
      if (whole.takes(r.least.whole())) whole.offer(least_whole(r, c), p_.draw, c.id.slot, i);
      if (receives_kv(policy, c)) decode.offer(r.least.decode, p_.draw, c.id.slot, i);
      if (may_prefill(c)) prompt.offer(r.least.prompt, p_.draw, c.id.slot, i);
    });
    // Once the last of a list is above the limit, so is everybody who is not on it.
    bool open = try_lowest(whole, [&](const auto& at) { return at.value > ranking_.limit(); });
    open = try_lowest(decode, [&](const auto& at) { return decodes.beyond(at.value, at.tie); }) || open;
    open = try_lowest(prompt, [&](const auto& at) { return prompts.beyond(at.value, at.tie); }) || open;
    if (!open) return;
    each_least([&](const Reading& r, const Candidate& c, std::uint32_t i) {
      const std::uint64_t tie = tie_of(c);
      if (r.least.whole() <= ranking_.limit() || (!decodes.beyond(r.least.decode, tie) && receives_kv(policy, c)) ||
          (!prompts.beyond(r.least.prompt, tie) && may_prefill(c)))
        price_all(i);
    });
  }
  /// returns: whether others could still come in.
  template <std::size_t N, class Beyond>
  bool try_lowest(const Lowest<N>& lowest, Beyond&& beyond) noexcept {
    for (const auto& at : lowest.all()) {
      if (beyond(at)) return false;
      price_all(at.candidate);
    }
    return lowest.full();
  }
  /// offer(what it costs at least, candidate, its index), or priced at once where that is not known.
  template <class Offer>
  void each_least(Offer&& offer) {
    for (const std::uint32_t i : scratch_.eligible) {
      const Candidate& c = p_.pool->candidates[i];
      const PairLine* const line = line_of(c);
      if (line == nullptr) price_all(i);
      else offer(read(*line, c), c, i);
    }
  }

  const Prepared& p_;
  const Request& r_;
  Scratch& scratch_;
  Ranking& ranking_;
  LoadReader<Told> loads_;
};

/// Ranks the eligible as the only replica of the request, by the terms of pairs; and finds the best pair beside them.
/// returns: the pair, or why there is none. The ranking is filled in any case.
template <bool Told>
PairChoice rank_with_pairs(const Prepared& p, const Request& r, Scratch& scratch, Ranking& ranking) {
  const Policy& policy = p.topology->policy;
  PairRanking<Told> parts(p, r, scratch, ranking);
  parts.rank();
  if (r.pinned.valid() || p.fail_open) return {};
  if (parts.decodes.first() == nullptr) return {.split = Split::no_decode};
  if (parts.prompts.first() == nullptr) return {.split = Split::no_prefill};
  PairChoice pair = cheapest_pair(p, parts.prompts, parts.decodes);
  if (pair.prefill == nullptr) return {.split = Split::no_decode};  // one replica is all there is
  if (policy.disaggregate == Disaggregate::always) return pair;
  const Candidate& whole = p.pool->candidates[ranking.places[0].candidate];
  const std::int64_t uncached = p.input_tokens - cost_replica(p, scratch, whole).cached_tokens;
  if (uncached < policy.pair_min_tokens) pair.split = Split::short_prompt;
  else if (ranking.places[0].first <= pair.total) pair.split = Split::unified_cheaper;
  return pair;
}
inline PairChoice rank_with_pairs(const Prepared& p, const Request& r, Scratch& scratch, Ranking& ranking) {
  return p.told ? rank_with_pairs<true>(p, r, scratch, ranking) : rank_with_pairs<false>(p, r, scratch, ranking);
}

}  // namespace warmroute::detail
