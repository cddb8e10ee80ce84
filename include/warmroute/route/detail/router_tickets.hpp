/// From a decision to the end of its request: what a ticket books, releases and teaches.
/// Locks: none. Each ticket's plain fields belong to whoever claimed it (ticket_table.hpp).
#pragma once

#include <algorithm>
#include <cstdint>

#include "warmroute/route/detail/router_core.hpp"

namespace warmroute::detail {

// Fills a ticket, books its load, remembers the session, and hands the placement on. The guard of the caller is still held, so
// the slot of the replica cannot get a new tenant meanwhile.
inline Ticket RouterCore::book(const Prepared& p, const Request& r, const Decision& d, const Scratch& scratch,
                               Nanos now) {
  const std::uint32_t index = tickets_.acquire();
  if (index == TicketTable::kFull) return kNoTicket;
  TicketSlot& slot = tickets_.at(index);
  PoolState& pool = *p.pool->state;
  slot.pool = &pool;
  slot.replica = d.is_pair() ? d.prefill_replica : d.replica;
  slot.decode_replica = d.is_pair() ? d.replica : kNoReplica;
  slot.prefill_over = slot.fetched = false;
  slot.input_tokens = p.input_tokens;
  slot.cached_tokens = d.total_cached().value;
  slot.uncached_tokens = p.input_tokens - slot.cached_tokens;
  slot.pending_ns = d.expected_prefill.value;
  slot.expected_wait_ns = d.expected_wait.value;
  const Candidate& chosen = p.pool->computes(d);
  slot.keeps_slots = chosen.spec->cache_kind == CacheKind::slots;
  const std::int64_t slowness = p.apart ? chosen.book->slowness.load(std::memory_order_relaxed) : LoadBook::kAsItsKind;
  slot.saved_ns =
      std::max<std::int64_t>(0, slowed(scratch.whole_prefill_ns[chosen.hardware], slowness) - d.expected_prefill.value);
  slot.pace = pace_note(p, chosen, d);
  slot.prompt_bytes = r.prompt_bytes;
  slot.routed_at = now.value;
  slot.lease_ns = p.topology->policy.lease.value;
  slot.hash_rule = hash_rule_of(p.topology->policy);
  slot.tokens_per_block_milli = p.tokens_per_block_milli;
  slot.path.assign(p.path.begin(), p.path.end());

  constexpr auto relaxed = std::memory_order_relaxed;
  book_prompt(p, slot, now);
  if (d.is_pair()) book_decode(p, slot, d);
  pool.waits.add(d.expected_wait.value);
  in_flight_.fetch_add(1, relaxed);
  pool.turn.fetch_add(1, relaxed);
  slot.shared_tokens = 0;
  InflightPrefixes::Cursor cursor;
  while (slot.hot_count < kMaxCheckpoints && cursor.next(p.path)) {
    bool others = false;
    slot.hot_entries[slot.hot_count++] = pool.hot.enter(cursor.hash, others);
    if (others) slot.shared_tokens = p.tokens_of(static_cast<std::uint32_t>(cursor.depth));
  }
  table_.cache_book(slot.replica.slot).held_tokens.fetch_add(held_by(slot), relaxed);
  sessions_.remember(p.session, d.replica, now);
  if (p.prior_milli != 0) pool.forks.note(p.path, p.known_blocks, fork_from(p));

  slot.lease_until.store(now.value + slot.lease_ns, relaxed);
  const bool placed = !slot.path.empty() || slot.keeps_slots;  // the shortest prompt takes a slot, too
  if (placed) slot.holders.store(2, relaxed);                  // the queue is the second
  const Ticket ticket = tickets_.publish(index);
  if (placed) enqueue(pool, index, index, now);
  return ticket;
}

// A prompt whose start another one in flight has too, and which finds it there, holds what is behind it alone.
inline std::int64_t RouterCore::held_by(const TicketSlot& slot) noexcept {
  return slot.input_tokens - std::min(slot.shared_tokens, slot.cached_tokens);
}

inline void RouterCore::book_prompt(const Prepared& p, TicketSlot& slot, Nanos now) noexcept {
  LoadBook& book = table_.book(slot.replica.slot);
  PoolState& pool = *slot.pool;
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::int64_t there = book.requests.fetch_add(1, relaxed);
  const std::int64_t decoding = book.decoding.load(relaxed);
  slot.pace.alone = there == decoding;
  slot.pace.beside_decodes = decoding > 0;
  if (there == decoding && (p.peers == nullptr || p.peers[slot.replica.slot].prompts.load(relaxed) == 0))
    book.prefill_since.store(now.value, relaxed);  // no prompt before this one
  book.pending_tokens.fetch_add(slot.uncached_tokens, relaxed);
  book.pending_ns.fetch_add(slot.pending_ns, relaxed);
  book.context_tokens.fetch_add(slot.input_tokens, relaxed);
  if (book.signals_at.load(relaxed) != 0) {  // what other routers' requests there are taken for
    pool.input_tokens.add(slot.input_tokens * 1'000);
  }
  pool.prefill_ns.add(slot.pending_ns);
  table_.cache_book(slot.replica.slot).fill(slot.uncached_tokens, now.value);
  if (p.pool->pairs) pool.shares[slot.replica.slot].add(slot.pending_ns, now.value);
}

// Its turn comes soon and it computes no prompt there: one more that decodes, from now on.
inline void RouterCore::book_decode(const Prepared& p, TicketSlot& slot, const Decision& d) noexcept {
  const Policy& policy = p.topology->policy;
  slot.decode_keeps = policy.decode_keeps_cache;
  slot.decode_cached_tokens = d.decode_cached_tokens.value;
  slot.transfer_timeout_ns = policy.transfer_timeout.value;
  constexpr auto relaxed = std::memory_order_relaxed;
  LoadBook& book = table_.book(slot.decode_replica.slot);
  book.requests.fetch_add(1, relaxed);
  book.decoding.fetch_add(1, relaxed);
  book.context_tokens.fetch_add(slot.input_tokens, relaxed);
  table_.cache_book(slot.decode_replica.slot).held_tokens.fetch_add(slot.input_tokens, relaxed);
}

inline PaceNote RouterCore::pace_note(const Prepared& p, const Candidate& c, const Decision& d) noexcept {
  PaceNote note;
  if (!p.topology->policy.learn_rates) return note;
  note.learner = p.pool->learners[c.hardware];
  note.generation = note.learner->generation();
  note.kilopairs = kilopairs_of(p.input_tokens, d.total_cached().value);
  const CostWeights& w = p.topology->weights;
  const auto tokens = [&](Tier tier) { return d.cached_tokens[static_cast<std::size_t>(tier)].value; };
  note.transfer_ns = tokens(Tier::host) * w.host_transfer_ns + tokens(Tier::disk) * w.disk_transfer_ns +
                     tokens(Tier::shared) * w.shared_transfer_ns;
  return note;
}

inline bool RouterCore::first_token(Ticket ticket, Nanos now) {
  now = clamp(now);
  TicketPhase was{};
  TicketSlot* slot = tickets_.claim(ticket, true, was);
  if (slot == nullptr) {
    bump(counters_.late_calls, 1u);
    return false;
  }
  if (!slot->prefill_over) {  // else its KV was fetched already
    end_prefill(*slot, now);
    LoadBook& book = table_.book(slot->replica.slot);
    const ReplicaPace::Prompt prompt{slot->replica, slot->routed_at, slot->uncached_tokens};
    slot->pool->paces[slot->replica.slot].first_token(prompt, slot->pace, book, now.value);
    note_apart(*slot->pool, book);
    note_first_token(*slot, now);
  }
  counters_.observed_ttft.observe(std::max<std::int64_t>(0, now.value - slot->routed_at));
  counters_.predicted_ttft.observe(slot->expected_wait_ns + slot->pending_ns);
  bump(counters_.predicted_wait_ns, slot->expected_wait_ns);
  bump(counters_.predicted_prefill_ns, slot->pending_ns);
  bump(counters_.saved_prefill_ns, slot->saved_ns);
  slot->lease_end = now.value + slot->lease_ns;
  slot->lease_until.store(slot->decode_replica.valid() && !slot->fetched
                              ? std::min(slot->lease_end, now.value + slot->transfer_timeout_ns)
                              : slot->lease_end,
                          std::memory_order_relaxed);
  TicketTable::set_phase(*slot, TicketPhase::decode);
  return true;
}

inline bool RouterCore::transfer_done(Ticket ticket, Nanos now) {
  now = clamp(now);
  TicketPhase was{};
  TicketSlot* slot = tickets_.claim(ticket, false, was);
  if (slot == nullptr || !slot->decode_replica.valid() || slot->fetched) {
    if (slot != nullptr) TicketTable::set_phase(*slot, was);
    bump(counters_.late_calls, 1u);
    return false;
  }
  if (!slot->prefill_over) {  // when it was over is not known
    slot->pool->paces[slot->replica.slot].broke_off(slot->pace);
    end_prefill(*slot, now);
    note_first_token(*slot, now);
  }
  bump(counters_.transfers_done, 1u);
  bump(counters_.transfer_ns, now.value - slot->prefilled_at);
  release_prompt(*slot);
  slot->lease_until.store(now.value + slot->lease_ns, std::memory_order_relaxed);
  TicketTable::set_phase(*slot, was);
  return true;
}

// The caller owns the ticket.
inline void RouterCore::end_prefill(TicketSlot& slot, Nanos now) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  LoadBook& book = table_.book(slot.replica.slot);
  book.pending_tokens.fetch_sub(slot.uncached_tokens, relaxed);
  book.pending_ns.fetch_sub(slot.pending_ns, relaxed);
  book.decoding.fetch_add(1, relaxed);
  book.prefill_since.store(now.value, relaxed);  // the next one's turn
  slot.prefill_over = true;
  slot.prefilled_at = now.value;
  note_match(slot);
}

// Written once: what every decision reads should not change hands for nothing.
inline void RouterCore::note_apart(PoolState& pool, const LoadBook& book) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (book.slowness.load(relaxed) != LoadBook::kAsItsKind && !pool.apart.load(relaxed)) pool.apart.store(true, relaxed);
}

// Once per request, when its prefill is over, as engines count theirs. Before the load is released: the slot keeps its tenant until then.
inline void RouterCore::note_match(const TicketSlot& slot) noexcept {
  CacheBook& book = table_.cache_book(slot.replica.slot);
  bump(book.input_tokens, slot.input_tokens);
  bump(book.matched_tokens, slot.cached_tokens);
}

// Where the prompt was computed, once.
inline void RouterCore::release_prompt(TicketSlot& slot) noexcept {
  LoadBook& book = table_.book(slot.replica.slot);
  constexpr auto relaxed = std::memory_order_relaxed;
  if (!slot.prefill_over) {
    book.pending_tokens.fetch_sub(slot.uncached_tokens, relaxed);
    book.pending_ns.fetch_sub(slot.pending_ns, relaxed);
    book.prefill_since.store(last_now_.load(relaxed), relaxed);  // whose turn it was is not known
  } else {
    book.decoding.fetch_sub(1, relaxed);
  }
  book.context_tokens.fetch_sub(slot.input_tokens, relaxed);
  table_.cache_book(slot.replica.slot).held_tokens.fetch_sub(held_by(slot), relaxed);
  slot.fetched = true;
  book.requests.fetch_sub(1, std::memory_order_release);  // last: a book with no requests may get a new tenant
}

inline void RouterCore::release_load(TicketSlot& slot) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  for (std::uint32_t i = 0; i < slot.hot_count; ++i) slot.pool->hot.leave(slot.hot_entries[i]);
  in_flight_.fetch_sub(1, relaxed);
  if (!slot.fetched) release_prompt(slot);
  if (!slot.decode_replica.valid()) return;
  LoadBook& book = table_.book(slot.decode_replica.slot);
  book.decoding.fetch_sub(1, relaxed);
  book.context_tokens.fetch_sub(slot.input_tokens, relaxed);
  table_.cache_book(slot.decode_replica.slot).held_tokens.fetch_sub(slot.input_tokens, relaxed);
  book.requests.fetch_sub(1, std::memory_order_release);
}

inline void RouterCore::learn(const TicketSlot& slot, const UsageCounts& usage) noexcept {
  if (usage.output_tokens >= 0) {
    slot.pool->output_tokens.add(std::min<std::int64_t>(usage.output_tokens, 10'000'000) * 1'000);
    bump(counters_.output_tokens, usage.output_tokens);
  }
  if (usage.input_tokens < 0) return;
  bump(counters_.input_tokens, usage.input_tokens);
  bump(counters_.predicted_cached_tokens, slot.cached_tokens);
  if (slot.prompt_bytes > 0 && usage.input_tokens > 0) {
    const std::int64_t milli = std::min<std::int64_t>(slot.prompt_bytes, 1'000'000'000) * 1'000 / usage.input_tokens;
    slot.pool->bytes_per_token_milli.add(std::clamp<std::int64_t>(milli, 250, 64'000) * 1'000);
  }
}

// `cached_tokens` tells the truth about one request on one replica. Unknown repairs nothing.
inline void RouterCore::compare_cached(TicketSlot& slot, const UsageCounts& usage, Nanos now) {
  if (usage.cached_tokens < 0) return;
  bump(counters_.reported_cached_tokens, usage.cached_tokens);
  bump(counters_.cached_reports, 1u);
  const std::int64_t block = std::max<std::int64_t>(1, slot.tokens_per_block_milli / 1'000);
  const std::int64_t off = slot.cached_tokens - usage.cached_tokens;
  if (off <= block && off >= -block) bump(counters_.cached_exact, 1u);
  if (slot.path.empty() || slot.keeps_slots) return;
  // What another request was still computing at that moment may have come too late to be a hit: that is no eviction.
  if (off > block && usage.cached_tokens < slot.shared_tokens) return;
  // One block of slack: engines round differently, and text blocks are estimates.
  const auto blocks = static_cast<std::uint64_t>(std::min<std::int64_t>(usage.cached_tokens, slot.input_tokens)) *
                      1'000 / static_cast<std::uint64_t>(slot.tokens_per_block_milli);
  const std::uint64_t really = std::min<std::uint64_t>(blocks + (off > block ? 0 : 1), slot.path.size());
  slot.holders.fetch_add(1, std::memory_order_relaxed);
  enqueue(*slot.pool, slot.index, kCorrection | really << 32 | slot.index, now);
}

inline bool RouterCore::close(Ticket ticket, Outcome outcome, const UsageCounts* usage, Nanos now) {
  TicketPhase was{};
  TicketSlot* slot = tickets_.claim(ticket, false, was);
  if (slot == nullptr) {
    bump(counters_.late_calls, 1u);
    return false;
  }
  if (outcome == Outcome::lease_expired && slot->lease_until.load(std::memory_order_relaxed) > now.value) {
    TicketTable::set_phase(*slot, was);  // renewed between the look and the claim
    return false;
  }
  const bool pair = slot->decode_replica.valid();
  if (outcome == Outcome::lease_expired && pair && slot->prefill_over && !slot->fetched &&
      slot->lease_end > now.value) {  // nobody fetched its KV; the answer may come all the same
    release_prompt(*slot);
    bump(counters_.transfers_timed_out, 1u);
    slot->lease_until.store(slot->lease_end, std::memory_order_relaxed);
    TicketTable::set_phase(*slot, was);
    return false;
  }
  const bool computed = slot->prefill_over;
  if (usage != nullptr && !computed) note_match(*slot);
  ReplicaPace& pace = slot->pool->paces[slot->replica.slot];
  if (!computed) {
    pace.broke_off(slot->pace);
  } else if (usage != nullptr && !pair) {  // of a pair, what was decoded beside is not known
    LoadBook& book = table_.book(slot->replica.slot);
    pace.finished(slot->replica, slot->pace, book, usage->output_tokens, now.value);
    note_apart(*slot->pool, book);
  }
  const bool transferred = pair && slot->fetched;
  release_load(*slot);
  bump(counters_.outcomes[static_cast<std::size_t>(outcome) % kOutcomeCount], 1u);
  if (usage != nullptr) {
    const UsageCounts counts = within_reason(*usage);
    learn(*slot, counts);
    if (!computed) note_first_token(*slot, now);  // a caller who tells of no first tokens
    compare_cached(*slot, counts, now);
  }
  if (slot->keeps_slots) {
    note_slot_freed(*slot, outcome, usage, was, now);
  } else if (usage == nullptr && never_computed(outcome) && !slot->path.empty() &&
             (!computed || (pair && !transferred))) {
    slot->holders.fetch_add(1, std::memory_order_relaxed);
    enqueue(*slot->pool, slot->index, kWithdrawal | slot->index, now);
  }
  TicketTable::set_phase(*slot, TicketPhase::free);
  tickets_.release(slot->index);
  return true;
}

inline bool RouterCore::finish(Ticket ticket, const UsageCounts& usage, Nanos now) {
  now = clamp(now);
  const bool done = close(ticket, Outcome::finished, &usage, now);
  sweep_leases(kSweepPerCall, now);
  return done;
}

inline bool RouterCore::fail(Ticket ticket, Outcome outcome, Nanos now) {
  now = clamp(now);
  const bool done = close(ticket, outcome, nullptr, now);
  sweep_leases(kSweepPerCall, now);
  return done;
}

// A few tickets per call, in turn: a lease that ended is found after at most known/2 calls, or at the next `advance`.
inline void RouterCore::sweep_leases(std::uint32_t tickets, Nanos now) {
  const std::uint32_t known = tickets_.known();
  if (known == 0) return;
  const std::uint32_t count = std::min(tickets, known);
  const std::uint32_t start = sweep_at_.fetch_add(count, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Ticket over = tickets_.expired((start + i) % known, now);
    if (over != kNoTicket) close(over, Outcome::lease_expired, nullptr, now);
  }
}

}  // namespace warmroute::detail
