/// What tickets do to the model of a replica that keeps slots (prefix/slot_residency.hpp): a request takes a slot, and lets it go when it is
/// over, however it ended. Locks: move_slots and model_slots run under PoolState::placing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "warmroute/route/detail/router_core.hpp"

namespace warmroute::detail {

// The generation tells a late note of a ticket from the next one in its place.
inline std::uint64_t slot_key(const TicketSlot& ticket) noexcept {
  return (ticket.state.load(std::memory_order_relaxed) >> 8) << 32 | ticket.index;
}

inline void RouterCore::move_slots(PoolState& pool, const TicketSlot& slot, std::uint64_t note) {
  ModelledCache& cache = pool.caches[slot.replica.slot];
  if (cache.id != slot.replica || cache.slots == nullptr || cache.hash_rule != slot.hash_rule) return;
  SlotResidency& model = *cache.slots;
  const std::uint64_t key = slot_key(slot);
  if ((note & kSlotFreed) == 0) {
    if (model
            .all_busy()) {  // a note that found the queue full is made up for: its ticket has gone to somebody else since
      model.withdraw_if([this](std::uint64_t k) { return slot_key(tickets_.at(static_cast<std::uint32_t>(k))) != k; });
    }
    model.arrive(key, slot.path, slot.input_tokens, std::max<std::int64_t>(1, slot.tokens_per_block_milli));
  } else if (!slot.computed) {
    model.withdraw(key);
  } else {
    free_slot(model, slot);
  }
  cache.slots_seen.publish(domain_, &model);
}

inline void RouterCore::free_slot(SlotResidency& model, const TicketSlot& slot) {
  const std::uint64_t key = slot_key(slot);
  const std::int64_t block = std::max<std::int64_t>(1, slot.tokens_per_block_milli);
  // One block of slack: text blocks are estimates, and a tail or an answer is taken for what the next turn begins with.
  if (slot.really_cached >= 0 && (model.found(key) - slot.really_cached) * 1'000 > block) {
    model.correct(key, static_cast<std::size_t>(slot.really_cached * 1'000 / block));
  }
  model.finish(key, slot.held_after);
}

// The caller owns the ticket.
inline void RouterCore::note_slot_freed(TicketSlot& slot, Outcome outcome, const UsageCounts* usage, TicketPhase was,
                                        Nanos now) {
  const UsageCounts counts = usage == nullptr ? UsageCounts{} : within_reason(*usage);
  slot.computed = usage != nullptr || was != TicketPhase::prefill || !never_computed(outcome);
  slot.really_cached = counts.cached_tokens;
  const std::int64_t prompt = counts.input_tokens >= 0 ? counts.input_tokens : slot.input_tokens;
  slot.held_after = prompt + std::max<std::int64_t>(0, counts.output_tokens - 1);  // the last one is never computed
  slot.holders.fetch_add(1, std::memory_order_relaxed);
  enqueue(*slot.pool, slot.index, kSlotFreed | slot.index, now);
}

// Under `placing`. returns: whether the replica keeps slots; then its model is made, or made anew where its settings changed.
inline bool RouterCore::model_slots(PoolState& pool, ReplicaId id, const ReplicaSpec& spec, const Policy& policy) {
  ModelledCache& cache = pool.caches[id.slot];
  const bool same = cache.id == id;
  if (spec.cache_kind != CacheKind::slots) {
    if (same && cache.slots != nullptr) {  // a paged one from now on
      cache.slots.reset();
      cache.slots_seen.publish(domain_, nullptr);
      cache.id = kNoReplica;
      pool.index.clear(id);
    }
    return false;
  }
  SlotCacheOptions options;
  options.slots = spec.slots.count;
  options.unified = spec.slots.unified;
  options.ram_bytes = spec.slots.ram_tokens;  // a token counts for a byte
  if (same && cache.slots != nullptr) {
    const SlotCacheOptions& now = cache.slots->options();
    if (now.slots == options.slots && now.unified == options.unified && now.ram_bytes == options.ram_bytes) return true;
  }
  if (same) pool.index.clear(id);
  cache.id = id;
  cache.hash_rule = hash_rule_of(policy);
  cache.residency.reset();
  cache.slots = std::make_unique<SlotResidency>(pool.index, id, options);
  cache.slots_seen.publish(domain_, cache.slots.get());
  return true;
}

}  // namespace warmroute::detail
