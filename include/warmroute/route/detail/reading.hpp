/// What the formula reads of one candidate, and what it makes of that.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>

#include "warmroute/route/affinity.hpp"
#include "warmroute/route/detail/peer_books.hpp"
#include "warmroute/route/detail/selection.hpp"

namespace warmroute::detail {

/// What candidates have to do. Told: by everything that is known: this router's books, what peers told, and of the requests that its engine
/// counted those that are nobody's who tells. These look like this router's: as long, and with as much to prefill where they still wait and the
/// engine does not say how many tokens they have to compute.
/// Otherwise by this router's own books alone, which is all there is where nobody told of others' requests.
/// cost: one cache line, two where peers tell. What is the same for all is read once.
template <bool Told>
class LoadReader {
 public:
  explicit LoadReader(const Prepared& p) noexcept
      : peers_(p.peers),
        now_(p.now.value),
        fresh_from_(std::max<std::int64_t>(1, p.now.value - p.topology->policy.signals_max_age.value)),
        mean_input_tokens_(p.mean_input_tokens),
        mean_prefill_ns_(p.mean_prefill_ns),
        rates_(p.rates),
        apart_(p.apart) {}

  [[gnu::always_inline]] ReplicaLoad of(const Candidate& c) const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const LoadBook& book = *c.book;
    ReplicaLoad out{book.requests.load(relaxed), book.pending_ns.load(relaxed), book.context_tokens.load(relaxed)};
    std::int64_t prompts = out.requests - book.decoding.load(relaxed);
    std::int64_t since = book.prefill_since.load(relaxed);
    std::int64_t foreign = 0, waiting_ns = 0;
    if constexpr (Told) {
      std::int64_t waiting = 0, tokens = LoadBook::kUntold;
      if (book.signals_at.load(relaxed) >= fresh_from_) {
        foreign = book.foreign_requests.load(relaxed);
        waiting = std::min<std::int64_t>(book.foreign_waiting.load(relaxed), kMaxRequests);
        tokens = book.foreign_tokens.load(relaxed);
      }
      if (tokens > 0) waiting_ns = work_ns(tokens, c.hardware, book);
      if (peers_ != nullptr) {
        // What peers account for of the requests that the engine counted beyond this router's own is not counted twice.
        const PeerBook& peers = peers_[c.id.slot];
        const std::int64_t theirs = peers.requests.load(relaxed), their_prompts = peers.prompts.load(relaxed);
        foreign = std::max<std::int64_t>(0, foreign - theirs);
        waiting = std::min(foreign, std::max<std::int64_t>(0, waiting - their_prompts));
        const std::int64_t their_ns = peers.pending_ns.load(relaxed);
        waiting_ns = std::max<std::int64_t>(0, waiting_ns - their_ns);
        out.requests += theirs;
        out.pending_ns += their_ns;
        out.context_tokens += peers.context_tokens.load(relaxed);
        // The engine takes all routers' prompts in turn: it has worked on the first of them since anyone's last first token.
        prompts = std::max<std::int64_t>(0, prompts) + their_prompts;
        since = std::max(since, peers.turn_at.load(relaxed));
      }
      if (tokens < 0 && waiting > 0)
        waiting_ns = waiting * mean_prefill_ns_ + mean_prefill_ns_ / 2;  // those before them are half done
    }
    out.pending_ns = still_pending(out.pending_ns, prompts, since, now_) + waiting_ns;
    if (foreign > 0) {
      out.requests += foreign;
      out.context_tokens += foreign * mean_input_tokens_;
    }
    return out;
  }

 private:
  // What is not cached is the end of a prompt: there each token attends to nearly all of it. An eighth more, since the steps that compute it do
  // decodes, too (from 1.1 to 1.3 is flat, 1 is 1 % worse; benchmarks/README.md, "Several routers").
  [[nodiscard]] std::int64_t work_ns(std::int64_t tokens, std::uint32_t hardware, const LoadBook& book) const noexcept {
    const Rates& rates = rates_[hardware];
    const std::int64_t each_ns = (rates.token_ps + rates.pair_ps * mean_input_tokens_) / 1'000;
    const std::int64_t alone = std::min(std::min(tokens, Rates::kMaxTokens) * each_ns, Rates::kMaxNs);
    const std::int64_t ns = alone + alone / 8;
    return apart_ ? slowed(ns, book.slowness.load(std::memory_order_relaxed)) : ns;
  }

  const PeerBook* peers_;
  std::int64_t now_, fresh_from_, mean_input_tokens_, mean_prefill_ns_;
  const Rates* rates_;
  bool apart_;
};

/// By the last look-up; no more than can be a hit.
inline HeldBlocks held_blocks(const Prepared& p, const Scratch& scratch, std::uint32_t slot) noexcept {
  const std::uint32_t device = std::min(scratch.match.device_depth(slot), p.most_blocks);
  if (!scratch.match.has_lower_tiers()) return {device, device, device};
  return {device, std::min(scratch.match.host_depth(slot), p.most_blocks),
          std::min(scratch.match.disk_depth(slot), p.most_blocks)};
}

/// What the formula reads of one candidate.
inline CostReplica cost_replica(const Prepared& p, const Scratch& scratch, const Candidate& c) noexcept {
  CostReplica out = held_tokens(p, scratch, held_blocks(p, scratch, c.id.slot));
  const ReplicaLoad load = p.told ? LoadReader<true>(p).of(c) : LoadReader<false>(p).of(c);
  out.requests = load.requests;
  out.pending_ns = load.pending_ns;
  out.context_tokens = load.context_tokens;
  constexpr auto relaxed = std::memory_order_relaxed;
  out.capacity_tokens = c.cache->capacity_tokens.load(relaxed);
  out.held_tokens = c.cache->held_tokens.load(relaxed);
  out.turnover_milli = c.cache->turnover.at(p.now.value) / 1'000;
  if (p.apart) out.slowness = c.book->slowness.load(relaxed);
  if (p.prior_milli != 0 && (c.id.slot == p.homes[0] || c.id.slot == p.homes[1]) &&
      p.pool->state->caches[c.id.slot].reported_generation.load(std::memory_order_relaxed) != c.id.generation) {
    out.prior_milli = c.id.slot == p.homes[0] ? p.prior_milli : p.prior_milli * kSuccessorOf8 / 8;
  }
  out.session_here = p.session != 0 && SessionTable::same_replica(p.session_replica, c.id);
  return out;
}
inline CostTerms cost_terms(const Prepared& p, const Scratch& scratch, const Candidate& c,
                            const CostReplica& reading) noexcept {
  return cost_of(p.weights, p.cost, scratch.rates[c.hardware], scratch.whole_prefill_ns[c.hardware], reading);
}
inline CostTerms cost_terms(const Prepared& p, const Scratch& scratch, const Candidate& c) noexcept {
  return cost_terms(p, scratch, c, cost_replica(p, scratch, c));
}
inline CostLine cost_line(const Prepared& p, const Scratch& scratch, std::size_t hardware,
                          const CostReplica& held) noexcept {
  return cost_line(p.weights, p.cost, scratch.rates[hardware], scratch.whole_prefill_ns[hardware], held);
}

/// What a candidate costs while it is in slow start, as if it did all but a share of what it does for others.
inline std::int64_t ramped(const Prepared& p, std::uint32_t candidate, std::int64_t total) noexcept {
  for (const Ramp& ramp : p.pool->ramps) {
    if (ramp.candidate != candidate) continue;
    const std::int64_t weight = ramp.weight_milli(p.now.value);
    return total <= 0 || weight >= 1'000 ? total : total + total / weight * (1'000 - weight);
  }
  return total;
}

}  // namespace warmroute::detail
