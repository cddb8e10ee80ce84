/// Router::cached and Router::restore_cached: what is believed of one replica's cache, out and in again.
/// Locks as in router_members.hpp: `control_`, so that the policy whose hashes these are cannot change meanwhile, then `placing`.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>

#include "warmroute/route/detail/router_core.hpp"
#include "warmroute/route/replica_cache.hpp"

namespace warmroute::detail {

// Under control_. A Residency is there for every replica in the table but those that keep slots and, without pairs, those of role prefill.
inline Result<PoolState*> RouterCore::pool_with_model(ReplicaId id) const {
  const ReplicaView view = table_.copy();
  const ReplicaRow* row = view.find(id);
  if (row == nullptr)
    return Error{Code::stale, "that replica was removed: nothing is believed of its cache", kNoOffset};
  if (!has_model(row->spec)) {
    return Error{Code::unsupported,
                 "replica '" + row->spec.name + "' only prefills, and policy forms no pairs: its cache is not modelled",
                 kNoOffset};
  }
  if (row->spec.cache_kind == CacheKind::slots) {
    return Error{Code::unsupported,
                 "replica '" + row->spec.name + "' keeps slots: what is believed of them is not carried over",
                 kNoOffset};
  }
  for (const auto& pool : pools_) {
    if (pool->name == row->spec.pool) return pool.get();
  }
  return Error{Code::internal, "replica '" + row->spec.name + "' has no pool", kNoOffset};
}

inline Result<ReplicaCache> RouterCore::cached(ReplicaId id, Nanos now) const {
  const std::lock_guard lock(control_);
  auto found = pool_with_model(id);
  if (!found) return found.error();
  PoolState& pool = **found;
  const Policy& policy = topology_.latest().policy;
  ReplicaCache out;
  out.block_size = policy.block_size;
  out.seed_digest = hash_seed_digest(policy.hash_seed);
  out.bytes_per_token = {pool.bytes_per_token_milli.milli(), pool.bytes_per_token_milli.count()};
  out.output_tokens = {pool.output_tokens.milli(), pool.output_tokens.count()};
  const std::lock_guard placing(pool.placing);
  ModelledCache& cache = pool.caches[id.slot];
  if (cache.id != id || cache.residency == nullptr) {
    return Error{Code::stale, "that replica was removed: nothing is believed of its cache", kNoOffset};
  }
  fit_capacity(pool, cache);
  out.taken_at = std::max(now, Nanos{last_now_.load(std::memory_order_relaxed)});
  out.capacity_tokens = cache.capacity_tokens;
  out.capacity_blocks = cache.capacity_blocks;
  out.trust_milli = cache.trust_milli;
  out.tokens_per_block_milli = cache.tokens_per_block_milli;
  cache.residency->copy(out.tree);
  out.tree.keep_newest(out.capacity_blocks);  // prompts that wait have more room than that
  return out;
}

// The hashes must be of the policy in force, and times far from where adding them could overflow.
inline Status fits(const ReplicaCache& cache, const CachedPaths& paths, const Policy& policy) {
  if (cache.block_size != policy.block_size) {
    return Error{Code::invalid_argument,
                 "the blocks hold " + std::to_string(cache.block_size) + " tokens, the policy's " +
                     std::to_string(policy.block_size) + ": nothing of them could match",
                 kNoOffset};
  }
  if (cache.seed_digest != hash_seed_digest(policy.hash_seed)) {
    return Error{Code::invalid_argument,
                 "the blocks were hashed with another hash_seed than the policy's: nothing could match", kNoOffset};
  }
  constexpr std::int64_t kFar = std::int64_t{1} << 61;
  const auto near = [](Nanos t) { return t.value > -kFar && t.value < kFar; };
  const auto& runs = cache.tree.runs;
  if (!paths.valid() || !near(cache.taken_at) ||
      (!runs.empty() && (!near(runs.front().last_use) || !near(runs.back().last_use)))) {
    return Error{Code::invalid_argument, "that is no tree of runs, most recently used first", kNoOffset};
  }
  return {};
}

inline Result<RestoredCache> RouterCore::restore_cached(ReplicaId id, const ReplicaCache& from, Nanos now, Nanos away) {
  now = clamp(now);
  CachedPaths paths(from.tree);
  const std::lock_guard lock(control_);
  auto found = pool_with_model(id);
  if (!found) return found.error();
  if (auto fit = fits(from, paths, topology_.latest().policy); !fit) return fit.error();
  PoolState& pool = **found;
  const std::lock_guard placing(pool.placing);
  ModelledCache& cache = pool.caches[id.slot];
  if (cache.id != id || cache.residency == nullptr) {
    return Error{Code::stale, "that replica was removed: nothing is believed of its cache", kNoOffset};
  }
  if (cache.reported()) return RestoredCache{from.tree.blocks.size(), 0};  // its engine says by itself what it holds
  const auto in_range = [](const LearnedMean& mean, std::int64_t most) {
    return mean.milli >= 0 && mean.milli <= most;
  };
  if (in_range(from.bytes_per_token, 64'000'000)) {
    pool.bytes_per_token_milli.begin_with(from.bytes_per_token.milli, from.bytes_per_token.count);
  }
  if (in_range(from.output_tokens, 10'000'000'000)) {
    pool.output_tokens.begin_with(from.output_tokens.milli, from.output_tokens.count);
  }
  const std::size_t before = cache.residency->blocks();
  if (before == 0 && from.capacity_tokens > 0 && from.capacity_blocks > 0) {
    // Blocks per token and trust are learned; the capacity declared here and now is what they apply to.
    cache.trust_milli = std::clamp<std::int64_t>(from.trust_milli, 250, 1'000);
    const double scale = static_cast<double>(cache.capacity_tokens) / static_cast<double>(from.capacity_tokens);
    const double blocks = static_cast<double>(from.capacity_blocks) * scale;
    cache.capacity_blocks = static_cast<std::size_t>(std::clamp(blocks, 1.0, 1e12));
    cache.residency->set_capacity(cache.capacity_blocks);
    cache.tokens_per_block_milli = std::clamp<std::int64_t>(from.tokens_per_block_milli, 0, 1'000'000'000);
  }
  constexpr Nanos kOldest = seconds(10LL * 365 * 86'400);
  away = std::clamp(away, Nanos{0}, kOldest);
  cache.residency->restore(from.tree, paths, now - from.taken_at - away, now - kOldest);
  return RestoredCache{from.tree.blocks.size(),
                       cache.residency->blocks() - std::min(before, cache.residency->blocks())};
}

}  // namespace warmroute::detail
