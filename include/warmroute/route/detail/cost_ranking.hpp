/// The best few by the formula of route/cost.hpp, without pricing all of a large fleet in full.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "warmroute/route/detail/ranking.hpp"
#include "warmroute/route/detail/reading.hpp"

namespace warmroute::detail {

inline bool quicker(const Candidate& c) noexcept {
  return c.book->slowness.load(std::memory_order_relaxed) < LoadBook::kAsItsKind;
}

/// One candidate in full. All that it calls is inlined by force: 8 replicas 0.64 us a decision, not 0.76.
[[gnu::flatten, gnu::noinline]] inline void price(const Prepared& p, const Scratch& scratch, std::uint32_t candidate,
                                                  Ranking& ranking) noexcept {
  const Candidate& c = p.pool->candidates[candidate];
  const CostReplica reading = cost_replica(p, scratch, c);
  const std::int64_t total = ramped(p, candidate, cost_terms(p, scratch, c, reading).total);
  ranking.offer(total, 0, p.draw, c.id.slot, candidate);
  ranking.held(reading.cached_tokens, total, candidate);
}

/// The line of those who are like this candidate; nullptr where it has to be priced.
[[gnu::noinline]] inline const CostLine* line_of(const Prepared& p, Scratch& scratch, const Candidate& c,
                                                 std::uint32_t depth) {
  if (p.apart && quicker(c)) return nullptr;
  if (depth == 0) return &scratch.cold[c.hardware];
  const HeldBlocks held = held_blocks(p, scratch, c.id.slot);
  if (held.device != depth) return nullptr;
  return scratch.deeper[c.hardware].of(
      depth, [&] { return cost_line(p, scratch, c.hardware, held_tokens(p, scratch, held)); });
}

/// What each costs at least; the lowest few by that, in full; and whoever could still be among the best few, for whom all are gone through again
/// only where more than `kTried` are that close. Nothing that could win is skipped.
/// cost: one cache line of books (two where peers tell) and one match per eligible candidate. A body of its own for fleets of which nobody told.
template <bool Told>
class CostRanking {
 public:
  CostRanking(const Prepared& p, Scratch& scratch, Ranking& ranking) noexcept
      : p_(p), scratch_(scratch), ranking_(ranking), loads_(p) {}

  void rank() {
    draw_lines();
    Lowest<kTried> lowest;
    each_least([&](std::int64_t least, std::uint32_t depth, std::uint32_t candidate) {
      if (depth != 0) ranking_.held(p_.tokens_of(std::max(depth, scratch_.store_blocks)), least, candidate);
      lowest.offer(least, p_.draw, p_.pool->candidates[candidate].id.slot, candidate);
    });
    // From the costs of these something is subtracted that the line knows nothing of.
    for (const std::uint32_t slot : {p_.homes[0], p_.homes[1], p_.session_replica.slot}) {
      if (slot >= p_.pool->by_slot.size()) continue;
      const std::uint32_t candidate = p_.pool->by_slot[slot];
      if (std::binary_search(scratch_.eligible.begin(), scratch_.eligible.end(), candidate)) price_once(candidate);
    }
    for (const auto& at : lowest.all()) {
      if (at.value > ranking_.limit()) return;
      price_once(at.candidate);
    }
    if (!lowest.full()) return;
    each_least([&](std::int64_t least, std::uint32_t, std::uint32_t candidate) {
      if (least <= ranking_.limit()) price_once(candidate);
    });
  }

 private:
  void draw_lines() {
    const std::size_t kinds = scratch_.rates.size();
    scratch_.cold.resize(kinds);
    scratch_.deeper.resize(kinds);
    for (std::size_t k = 0; k < kinds; ++k) {
      scratch_.cold[k] = cost_line(p_, scratch_, k, held_tokens(p_, scratch_, {}));
      scratch_.deeper[k].clear();
    }
  }
  static constexpr std::size_t kTried = std::tuple_size_v<decltype(Ranking::places)> + 3;

  void price_once(std::uint32_t candidate) noexcept {
    if (!ranking_.has(candidate)) price(p_, scratch_, candidate, ranking_);
  }
  /// offer(the least that it costs, blocks it holds, candidate), or priced at once where that is not known.
  template <class Offer>
  [[gnu::always_inline]] void each_least(Offer&& offer) {
    const Candidate* const candidates = p_.pool->candidates.data();
    const CostLine* const cold = scratch_.cold.data();
    const std::uint32_t* const depths = scratch_.match.disk_lanes();
    const std::uint32_t most_blocks = p_.most_blocks;
    const bool apart = p_.apart;
    const LoadReader<Told> loads = loads_;
    for (const std::uint32_t i : scratch_.eligible) {
      const Candidate& c = candidates[i];
      const std::uint32_t depth = std::min(depths[c.id.slot], most_blocks);
      const CostLine* line = cold + c.hardware;
      if (depth != 0 || apart) {
        line = line_of(p_, scratch_, c, depth);
        if (line == nullptr) {
          price_once(i);
          continue;
        }
      }
      offer(line->at(loads.of(c)), depth, i);
    }
  }

  const Prepared& p_;
  Scratch& scratch_;
  Ranking& ranking_;
  LoadReader<Told> loads_;
};

inline void rank_by_cost(const Prepared& p, Scratch& scratch, Ranking& ranking) {
  if (scratch.eligible.size() <= 2 * ranking.places.size()) {
    for (const std::uint32_t i : scratch.eligible) price(p, scratch, i, ranking);
  } else if (p.told) {
    CostRanking<true>(p, scratch, ranking).rank();
  } else {
    CostRanking<false>(p, scratch, ranking).rank();
  }
}

}  // namespace warmroute::detail
