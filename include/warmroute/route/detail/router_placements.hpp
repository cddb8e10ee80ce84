/// What tickets tell the models of the caches, through a queue that whoever holds `placing` empties: placements, corrections, withdrawals.
/// Locks: enqueue and drain try PoolState::placing; everything else runs under it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "warmroute/route/detail/router_core.hpp"

namespace warmroute::detail {

inline void RouterCore::enqueue(PoolState& pool, std::uint32_t ticket_index, std::uint64_t note, Nanos now) {
  if (!pool.queue.push(note)) {
    bump(counters_.placements_dropped, 1u);
    tickets_.release(ticket_index);
  }
  drain(pool, kDrainPerCall, now);
}

inline void RouterCore::drain(PoolState& pool, std::uint32_t limit, Nanos now) {
  const std::unique_lock lock(pool.placing, std::try_to_lock);
  if (!lock.owns_lock()) return;  // whoever holds it, or the next caller, takes the rest
  std::uint64_t note = 0;
  for (std::uint32_t i = 0; i < limit && pool.queue.pop(note); ++i) {
    const auto index = static_cast<std::uint32_t>(note);
    const TicketSlot& slot = tickets_.at(index);
    if (slot.decode_replica.valid()) place_transferred(pool, slot, note, now);
    if (reports(pool, slot)) {
      if (predict(pool, slot, note, now)) continue;  // the ticket is held until its first token
    } else if (slot.keeps_slots) {
      move_slots(pool, slot, note);
    } else if ((note & kWithdrawal) != 0) {
      withdraw(pool, slot);
    } else if ((note & kCorrection) != 0) {
      correct(pool, slot, static_cast<std::size_t>((note & ~kCorrection) >> 32), now);
    } else if ((note & kFirstToken) == 0) {
      place(pool, slot, slot.replica, now);
    }
    tickets_.release(index);
  }
  renew_predictions(pool, now);
}

// nullptr: that replica is gone, its engine reports its cache by itself, or its blocks are hashed by another rule since: what the
// ticket holds can never match again.
inline ModelledCache* RouterCore::cache_of(PoolState& pool, const TicketSlot& slot, ReplicaId where) const noexcept {
  ModelledCache& cache = pool.caches[where.slot];
  const bool same = cache.id == where && cache.residency != nullptr && cache.hash_rule == slot.hash_rule;
  return same && !cache.reported() ? &cache : nullptr;
}

// The decode replica of a pair holds the prompt too once it was fetched. Its own engine's events say so where there are any.
inline void RouterCore::place_transferred(PoolState& pool, const TicketSlot& slot, std::uint64_t note, Nanos now) {
  if (!slot.decode_keeps || (note & kCorrection) != 0) return;
  const bool withdrawn = (note & kWithdrawal) != 0;
  const std::int64_t held = slot.decode_cached_tokens * 1'000 / slot.tokens_per_block_milli;
  if (pool.caches[slot.decode_replica.slot].reported_generation.load(std::memory_order_acquire) ==
      slot.decode_replica.generation) {
    if (slot.hash_rule != pool.caches[slot.decode_replica.slot].hash_rule) return;
    if (withdrawn) contradict(pool, slot.decode_replica, slot.path, static_cast<std::size_t>(held), now);
    else foresee(pool, slot.decode_replica, slot.path, slot.tokens_per_block_milli, now);
  } else if (!withdrawn) {
    if ((note & kFirstToken) == 0) place(pool, slot, slot.decode_replica, now);
  } else if (ModelledCache* cache = cache_of(pool, slot, slot.decode_replica); cache != nullptr) {
    const auto keep = static_cast<std::size_t>(std::max(slot.decode_cached_tokens, slot.shared_tokens) * 1'000 /
                                               slot.tokens_per_block_milli);
    if (keep < slot.path.size()) cache->residency->truncate(slot.path, keep);
  }
}

inline void RouterCore::place(PoolState& pool, const TicketSlot& slot, ReplicaId where, Nanos now) {
  ModelledCache* cache = cache_of(pool, slot, where);
  if (cache != nullptr) place(pool, *cache, slot.path, slot.tokens_per_block_milli, now);
}

inline void RouterCore::place(PoolState& pool, ModelledCache& cache, std::span<const BlockHash> path,
                              std::int64_t tokens_per_block_milli, Nanos now) {
  if (cache.tokens_per_block_milli == 0) cache.tokens_per_block_milli = tokens_per_block_milli;
  fit_capacity(pool, cache);
  Residency& model = *cache.residency;
  const std::uint64_t before = model.blocks() + model.evicted();
  model.insert(path, now);
  follow_block_tokens(cache, model.blocks() + model.evicted() - before, tokens_per_block_milli);
}

// Text and token blocks hold different numbers of tokens: the mean of what came in is followed, not what is only touched.
inline void RouterCore::follow_block_tokens(ModelledCache& cache, std::size_t blocks,
                                            std::int64_t tokens_per_block_milli) noexcept {
  const auto added = static_cast<std::int64_t>(blocks);
  const auto quarter = static_cast<std::int64_t>(cache.capacity_blocks / 4 + 1);
  cache.tokens_per_block_milli += (tokens_per_block_milli - cache.tokens_per_block_milli) * added / (added + quarter);
}

// The engine had only `really` leading blocks of what was believed: what lies behind is gone there, siblings included. Since then it has
// computed the prompt, so its own path is back. A shortfall also says that the cache is smaller than declared: trust shrinks by
// 1/32 down to a quarter, and comes back by 1/512 per request that was predicted well.
inline void RouterCore::correct(PoolState& pool, const TicketSlot& slot, std::size_t really, Nanos now) {
  ModelledCache* cache = cache_of(pool, slot, slot.replica);
  if (cache == nullptr) return;
  const auto believed = static_cast<std::size_t>(slot.cached_tokens * 1'000 / slot.tokens_per_block_milli);
  note_feedback(*cache, really < believed);
  if (really < believed) cache->residency->truncate(slot.path, really);
  fit_capacity(pool, *cache);
  if (really < believed) cache->residency->insert(slot.path, now);
}

inline void RouterCore::note_feedback(ModelledCache& cache, bool shortfall) noexcept {
  cache.trust_milli = shortfall ? std::max<std::int64_t>(250, cache.trust_milli - cache.trust_milli / 32)
                                : std::min<std::int64_t>(1'000, cache.trust_milli + 2);
}

// The request failed before its first token: what it would have added was never computed. What others in flight share stays.
inline void RouterCore::withdraw(PoolState& pool, const TicketSlot& slot) {
  if (slot.prefill_over) return;  // of a pair: only what was to be fetched is not there
  ModelledCache* cache = cache_of(pool, slot, slot.replica);
  if (cache == nullptr) return;
  const std::size_t blocks = blocks_kept(slot);
  if (blocks < slot.path.size()) cache->residency->truncate(slot.path, blocks);
}

inline std::size_t RouterCore::blocks_kept(const TicketSlot& slot) noexcept {
  const std::int64_t kept = std::max(slot.cached_tokens, slot.shared_tokens);
  return static_cast<std::size_t>((kept * 1'000 + slot.tokens_per_block_milli - 1) / slot.tokens_per_block_milli);
}

// The trusted capacity in blocks of the kinds that come in; follows in steps of 3 %.
inline void RouterCore::follow_capacity(ModelledCache& cache) noexcept {
  const std::int64_t tokens = cache.capacity_tokens * cache.trust_milli / 1'000;
  const auto want = static_cast<std::size_t>(std::max<std::int64_t>(1, tokens * 1'000 / cache.tokens_per_block_milli));
  const std::size_t have = cache.capacity_blocks;
  if (want > have + have / 32 || want + want / 32 < have) cache.capacity_blocks = want;
}

// Room for as much as the cache can hold and, beside it, for what prompts will bring that still wait: they have pushed nothing out yet. (8b at
// utilisation 1.1 without events: mean TTFT 90 s instead of 96.) No more than as much again: callers who tell of no first tokens seem to wait.
inline std::size_t RouterCore::room_in(ModelledCache& cache) const noexcept {
  follow_capacity(cache);
  const std::int64_t waiting = table_.book(cache.id.slot).pending_tokens.load(std::memory_order_relaxed);
  const auto blocks =
      static_cast<std::size_t>(std::max<std::int64_t>(0, waiting) * 1'000 / cache.tokens_per_block_milli);
  return cache.capacity_blocks + std::min(blocks, cache.capacity_blocks);
}

// Of the model that counts: what is believed, or what stands in for lost events of an engine that reports.
inline void RouterCore::fit_capacity(PoolState& pool, ModelledCache& cache) const {
  if (cache.tokens_per_block_milli == 0 || cache.residency == nullptr) return;
  if (cache.reported()) pool.predicted.fit(cache.id, room_in(cache));
  else cache.residency->set_capacity(room_in(cache));
}

}  // namespace warmroute::detail
