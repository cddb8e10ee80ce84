/// Router::blocks_stored and blocks_removed: what engines say of their caches, written into the pool's index.
/// Locks: the index's own; `placing` once per replica, when its first event ends what was believed. Readers see one Topology.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/cache_events.hpp"
#include "warmroute/route/detail/router_core.hpp"

namespace warmroute::detail {

// The pool whose index takes this replica's blocks, reported from now on.
inline Result<PoolState*> RouterCore::reported_pool(const Topology& topology, ReplicaId id) {
  const ReplicaRow* row = find_row(topology.rows, id);
  if (row == nullptr) {
    return Error{Code::stale, "events of a replica that was removed: nothing was stored", kNoOffset};
  }
  if (row->spec.role == Role::prefill && topology.policy.disaggregate == Disaggregate::never) {
    return Error{Code::unsupported,
                 "replica '" + row->spec.name + "' only prefills, and policy forms no pairs: its cache is not modelled",
                 kNoOffset};
  }
  PoolState& pool = *topology.exact_pool(row->spec.pool)->state;
  ModelledCache& cache = pool.caches[id.slot];
  if (cache.reported_generation.load(std::memory_order_acquire) == id.generation) return &pool;
  const std::lock_guard placing(pool.placing);
  if (cache.id == id && cache.residency != nullptr) cache.residency->clear();
  if (cache.id == id && cache.slots != nullptr) {
    cache.slots->clear();
    cache.slots_seen.publish(domain_, nullptr);  // what the index says holds from now on
  }
  pool.predicted.begin(id);
  cache.reported_generation.store(id.generation, std::memory_order_release);
  return &pool;
}

inline Status RouterCore::blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now) {
  clamp(now);
  const auto guard = domain_.pin();
  const Topology& topology = topology_.read(guard);
  const Policy& policy = topology.policy;
  const std::size_t count = stored.ids.size();
  const bool hashed = !stored.blocks.empty() || count == 0;
  if (hashed
          ? stored.blocks.size() != count
          : stored.token_ids.size() / policy.block_size != count || stored.token_ids.size() % policy.block_size != 0) {
    return Error{Code::invalid_argument,
                 std::to_string(count) + " ids need as many blocks, or " + std::to_string(policy.block_size) +
                     " token ids each (the policy's block_size): got " + std::to_string(stored.blocks.size()) +
                     " blocks and " + std::to_string(stored.token_ids.size()) + " token ids",
                 kNoOffset};
  }
  auto pool = reported_pool(topology, id);
  if (!pool) return pool.error();
  const HashSpace space{policy.hash_seed, stored.adapter, stored.cache_salt,
                        isolation_key(policy.isolation, stored.tenant)};
  const std::uint64_t seed = hashed ? 0 : block_seed(space);
  std::array<BlockHash, 128> hashes;  // token ids are hashed piece by piece, so that no event is too long for the stack
  std::optional<EngineHash> parent = stored.parent;
  std::size_t at = 0;
  do {  // once for an event without blocks, too: it says that the engine reports
    const std::size_t n = hashed ? count : std::min(count - at, hashes.size());
    std::span<const BlockHash> blocks = stored.blocks;
    if (!hashed) {
      const auto tokens = stored.token_ids.subspan(at * policy.block_size, n * policy.block_size);
      blocks = {hashes.data(), hash_token_blocks(tokens, policy.block_size, seed, hashes)};
    }
    const EngineHash* const before = parent ? &*parent : nullptr;
    const auto ids = stored.ids.subspan(at, n);
    bool gap = false;
    const Status done = stored.tier == Tier::shared
                            ? (*pool)->shared.store((*pool)->index, id, before, ids, blocks)
                            : (*pool)->index.store_event(id, stored.tier, before, ids, blocks, &gap);
    if (done.code() == Code::not_found) bump(counters_.event_orphans, n);
    if (gap || (done.code() == Code::not_found && stored.tier != Tier::shared)) note_gap(**pool, id, topology);
    if (!done) return done;
    bump(counters_.event_blocks_stored, n);
    at += n;
    if (n != 0) parent = stored.ids[at - 1];
  } while (at < count);
  return {};
}

inline Result<std::size_t> RouterCore::blocks_removed(ReplicaId id, Tier tier, std::span<const EngineHash> ids,
                                                      Nanos now) {
  clamp(now);
  const auto guard = domain_.pin();
  auto pool = reported_pool(topology_.read(guard), id);
  if (!pool) return pool.error();
  if (tier == Tier::shared) {
    const std::size_t removed = (*pool)->shared.remove(ids);
    bump(counters_.event_blocks_removed, removed);
    return removed;
  }
  if ((*pool)->predicted.any()) contradict(**pool, id, ids, Nanos{last_now_.load(std::memory_order_relaxed)});
  const std::size_t removed = (*pool)->index.remove_event(id, tier, ids);
  bump(counters_.event_blocks_removed, removed);
  return removed;
}

inline Result<std::size_t> RouterCore::blocks_also_on(ReplicaId id, Tier tier, std::span<const EngineHash> ids,
                                                      Nanos now) {
  clamp(now);
  const auto guard = domain_.pin();
  auto pool = reported_pool(topology_.read(guard), id);
  if (!pool) return pool.error();
  return tier == Tier::shared ? (*pool)->shared.also((*pool)->index, id, ids)
                              : (*pool)->index.hold_event(id, tier, ids);
}

inline Status RouterCore::clear_shared_store(std::string_view pool) {
  const std::lock_guard lock(control_);
  for (const auto& p : pools_) {
    if (p->name != pool) continue;
    p->shared.clear();
    return {};
  }
  return Error{Code::not_found, "no replica has ever been in pool '" + std::string(pool) + "'", kNoOffset};
}

}  // namespace warmroute::detail
