/// What tickets tell of a replica whose engine reports its cache: foreseen, not believed (prediction.hpp).
/// Locks: note_first_token and end_predictions none or by trying; an event's `contradict` and `note_gap` take PoolState::placing; everything else runs
/// under it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "warmroute/route/detail/router_core.hpp"

namespace warmroute::detail {

inline bool RouterCore::reports(const PoolState& pool, const TicketSlot& slot) noexcept {
  return pool.caches[slot.replica.slot].reported_generation.load(std::memory_order_acquire) == slot.replica.generation;
}

inline bool RouterCore::in_prefill(const TicketSlot& slot) noexcept {
  const auto phase = static_cast<TicketPhase>(slot.state.load(std::memory_order_acquire) & 0xFF);
  return phase == TicketPhase::prefill;
}

// The same notes for a replica whose engine reports: what they say of its cache is foreseen, not believed (prediction.hpp).
// returns: whether the ticket is kept, to be foreseen again while its first token is still to come.
inline bool RouterCore::predict(PoolState& pool, const TicketSlot& slot, std::uint64_t note, Nanos now) {
  if (slot.hash_rule != pool.caches[slot.replica.slot].hash_rule || (note & kSlotFreed) != 0) return false;
  if ((note & kWithdrawal) != 0) {
    if (!slot.prefill_over) contradict(pool, slot.replica, slot.path, blocks_kept(slot), now);
  } else if ((note & kCorrection) != 0) {
    const auto really = static_cast<std::size_t>((note & ~kCorrection) >> 32);
    const auto believed = static_cast<std::size_t>(slot.cached_tokens * 1'000 / slot.tokens_per_block_milli);
    if (really < believed) contradict(pool, slot.replica, slot.path, really, now);
    if (pool.predicted.stands_in(slot.replica)) {  // as `correct` does
      note_feedback(pool.caches[slot.replica.slot], really < believed);
      fit_capacity(pool, pool.caches[slot.replica.slot]);
      if (really < believed) foresee(pool, slot.replica, slot.path, slot.tokens_per_block_milli, now);
    }
  } else {
    foresee(pool, slot.replica, slot.path, slot.tokens_per_block_milli, now);
    if ((note & kFirstToken) == 0 && in_prefill(slot)) {
      pool.predicted.wait(slot.index, now);
      return true;
    }
  }
  return false;
}

// Foresees a prompt. What stands in for lost events is a cache of the replica's capacity, and follows what its blocks hold as `place` does.
inline void RouterCore::foresee(PoolState& pool, ReplicaId id, std::span<const BlockHash> path,
                                std::int64_t tokens_per_block_milli, Nanos now) {
  ModelledCache& cache = pool.caches[id.slot];
  const bool stands_in = pool.predicted.stands_in(id) && cache.id == id && cache.residency != nullptr;
  if (stands_in && cache.tokens_per_block_milli == 0) cache.tokens_per_block_milli = tokens_per_block_milli;
  if (stands_in) fit_capacity(pool, cache);
  const std::size_t added = pool.predicted.foresee(id, path, now);
  if (stands_in) follow_block_tokens(cache, added, tokens_per_block_milli);
}

// What is not there is not foreseen any more, but for prompts whose first token is still to come: they bring it back.
inline void RouterCore::contradict(PoolState& pool, ReplicaId id, std::span<const BlockHash> path, std::size_t keep,
                                   Nanos now) {
  if (pool.predicted.contradict(id, path, keep)) foresee_waiting(pool, id, path.first(keep + 1), now);
}

// The engine removed blocks: they contradict what is foreseen of it.
inline void RouterCore::contradict(PoolState& pool, ReplicaId id, std::span<const EngineHash> removed, Nanos now) {
  const std::lock_guard placing(pool.placing);
  if (!pool.predicted.any_of(id)) return;
  pool.index.paths_to(id, removed, pool.removed_path,
                      [&](std::span<const BlockHash> path) { contradict(pool, id, path, path.size() - 1, now); });
}

// Events before this one never came, or the index was full: of what the engine holds behind them, it will never know.
inline void RouterCore::note_gap(PoolState& pool, ReplicaId id, const Topology& topology) {
  bump(counters_.event_gaps, 1u);
  const Nanos now{last_now_.load(std::memory_order_relaxed)};
  {
    const std::lock_guard placing(pool.placing);
    const ModelledCache& cache = pool.caches[id.slot];
    if (cache.id != id || cache.residency == nullptr) return;  // one that keeps slots: nothing says how much fits
    if (!pool.predicted.stand_in(id, topology.policy.residency_ttl, now)) return;
  }
  options_.log(
      LogLevel::warning,
      "replica " + find_row(topology.rows, id)->spec.name +
          ": an event came behind a block that is not known, so others were lost or the index is full: what is "
          "routed there stands in for them");
}

inline void RouterCore::foresee_waiting(PoolState& pool, ReplicaId id, std::span<const BlockHash> gone, Nanos now) {
  pool.predicted.for_each_waiting([&](std::uint32_t ticket) {
    const TicketSlot& slot = tickets_.at(ticket);
    if (slot.replica == id && in_prefill(slot) && slot.path.size() >= gone.size() &&
        slot.path[gone.size() - 1] == gone.back() && std::equal(gone.begin(), gone.end(), slot.path.begin()))
      pool.predicted.foresee(id, slot.path, now);
  });
}

// The caller owns the ticket. Its prompt is computed now: foreseen from here on for as long as events may take.
inline void RouterCore::note_first_token(TicketSlot& slot, Nanos now) {
  if (slot.path.empty() || !reports(*slot.pool, slot)) return;
  slot.holders.fetch_add(1, std::memory_order_relaxed);
  enqueue(*slot.pool, slot.index, kFirstToken | slot.index, now);
}

// Nothing was foreseen for as long as predictions live: a router that was idle forgets them before it decides.
inline void RouterCore::end_predictions(PoolState& pool, Nanos now) {
  const std::unique_lock lock(pool.placing, std::try_to_lock);
  if (!lock.owns_lock()) return;
  renew_predictions(pool, now);
  pool.predicted.advance(now);
}

// Under `placing`. Prompts that wait for their first token longer than a prediction lives, a few per call.
inline void RouterCore::renew_predictions(PoolState& pool, Nanos now) {
  for (std::uint32_t i = 0; i < kDrainPerCall; ++i) {
    const auto* due = pool.predicted.due(now);
    if (due == nullptr) break;
    const std::uint32_t index = due->ticket;
    const TicketSlot& slot = tickets_.at(index);
    pool.predicted.pop();
    if (in_prefill(slot) && reports(pool, slot)) {
      pool.predicted.foresee(slot.replica, slot.path, now);
      pool.predicted.wait(index, now);
    } else {
      tickets_.release(index);
    }
  }
  pool.predicted.advance_one(now);
}

}  // namespace warmroute::detail
