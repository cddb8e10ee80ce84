/// From a request and a topology to what is the same for all candidates: who may take it, its blocks, who holds how many of them. Reads only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/route/affinity.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/detail/peer_books.hpp"
#include "warmroute/route/detail/scratch.hpp"
#include "warmroute/route/detail/topology.hpp"
#include "warmroute/route/request.hpp"

namespace warmroute::detail {

// Where even the replicas that are chosen let prompts wait for seconds, the fleet has more to do than it can: then what is computed again costs
// everybody, and gamma rises with the wait, twice as high at kStallWait.
inline constexpr std::int64_t kStallWait = 2'000'000'000;
inline constexpr std::int64_t kMostStallWait = 14'000'000'000;
// And caches are full everywhere then: nobody should compute again elsewhere what lies where there is no room. Half as much counts at this wait.
inline constexpr std::int64_t kKvPatience = 333'000'000;
inline constexpr std::int64_t kMostGamma = 100'000;  // thousandths, as the policy's: no product overflows

/// One request, made ready for scoring.
struct Prepared {
  const Topology* topology = nullptr;
  const PoolView* pool = nullptr;
  std::span<const BlockHash> path;
  BlockKind kind = BlockKind::tokens;
  std::int64_t tokens_per_block_milli = 0;
  std::int64_t input_tokens = 0;
  std::uint32_t most_blocks = 0;  // the last token is always computed: more blocks than these are never a hit
  CostRequest cost;
  CostWeights weights;        // the policy's, gamma raised where prompts wait for long
  std::uint64_t session = 0;  // key, 0 = none
  ReplicaId session_replica;
  std::uint64_t draw = 0;  // breaks exact ties
  Nanos now{0};
  std::array<std::uint32_t, 2> homes{kNoReplica.slot, kNoReplica.slot};  // on the ring, where there are several routers
  std::int64_t prior_milli = 0;
  std::uint32_t known_blocks = 0;   // of the path, by any replica; only with a prior
  const PeerBook* peers = nullptr;  // by slot; null: no other router has told of anything in flight
  bool told = false;                // engines or other routers have ever told of requests that are not this router's
  std::int64_t mean_input_tokens = 0, mean_prefill_ns = 0;  // of this router's requests: others' are taken for such
  const Rates* rates = nullptr;                             // by kind of hardware: learned, or as declared
  bool apart = false;                                       // some replica is slower or quicker than its kind
  bool fail_open = false;                                   // nobody is up and policy says to try all the same

  [[nodiscard]] std::int64_t tokens_of(std::uint32_t blocks) const noexcept {
    return std::int64_t{blocks} * tokens_per_block_milli / 1'000;
  }
};

// Blocks of the prompt: prepared ones as they are, token ids hashed here.
inline void prepare_path(Prepared& p, const Request& r, Scratch& scratch, std::size_t max_blocks) {
  const Policy& policy = p.topology->policy;
  if (!r.blocks.empty() || r.token_ids.empty()) {
    p.path = r.blocks.first(std::min(r.blocks.size(), max_blocks));
    p.kind = r.block_kind;
  } else {
    const std::size_t count = std::min(r.token_ids.size() / policy.block_size, max_blocks);
    if (scratch.blocks.size() < count) scratch.blocks.resize(count);
    const HashSpace space{policy.hash_seed, r.adapter, r.cache_salt, isolation_key(policy.isolation, r.tenant)};
    hash_token_blocks(r.token_ids, policy.block_size, block_seed(space), {scratch.blocks.data(), count});
    p.path = {scratch.blocks.data(), count};
    p.kind = BlockKind::tokens;
  }
  const std::int64_t bytes_per_token = p.pool->state->bytes_per_token();
  p.tokens_per_block_milli = p.kind == BlockKind::tokens
                                 ? std::int64_t{policy.block_size} * 1'000
                                 : static_cast<std::int64_t>(kTextBlockBytes) * 1'000'000 / bytes_per_token;
  if (r.input_tokens > 0) {
    p.input_tokens = r.input_tokens;
  } else if (!r.token_ids.empty()) {
    p.input_tokens = static_cast<std::int64_t>(r.token_ids.size());
  } else if (r.prompt_bytes > 0) {
    p.input_tokens = std::min(r.prompt_bytes, Rates::kMaxTokens * 64) * 1'000 / bytes_per_token;
  } else {
    p.input_tokens = p.tokens_of(static_cast<std::uint32_t>(p.path.size()));
  }
  p.input_tokens = std::min(p.input_tokens, Rates::kMaxTokens);
  p.most_blocks =
      p.input_tokens <= 0
          ? 0
          : static_cast<std::uint32_t>(std::min<std::int64_t>((p.input_tokens - 1) * 1'000 / p.tokens_per_block_milli,
                                                              static_cast<std::int64_t>(p.path.size())));
}

/// Successors that make a fork: twice as many as there are replicas, so that what lies behind it can be spread.
inline std::uint32_t fork_from(const Prepared& p) noexcept {
  return static_cast<std::uint32_t>(std::min<std::size_t>(2 * p.pool->candidates.size(), 60'000));
}

// How many requests in flight share how much of this prompt: falling counts, ended by the first below two.
inline void prepare_shared(Prepared& p, Scratch& scratch) {
  InflightPrefixes::Cursor cursor;
  std::size_t steps = 0;
  while (cursor.next(p.path) && steps < kMaxCheckpoints) {
    const std::int64_t requests = p.pool->state->hot.count(cursor.hash) * p.topology->policy.routers;
    if (requests < 2) break;
    const std::int64_t end = p.tokens_of(static_cast<std::uint32_t>(cursor.depth));
    if (steps > 0 && scratch.shared[steps - 1].requests <= requests) {
      scratch.shared[steps - 1].end_tokens = end;
    } else {
      scratch.shared[steps++] = {end, requests};
    }
  }
  p.cost.shared = {scratch.shared.data(), steps};
}

inline bool may_take(const Prepared& p, const Candidate& c, const Request& r) noexcept {
  if (!r.excluded.empty() && std::find(r.excluded.begin(), r.excluded.end(), c.id) != r.excluded.end()) return false;
  if (r.pinned.valid() && r.pinned != c.id) return false;
  if (c.health != Health::up && !p.fail_open) return false;
  if (!c.takes_any_adapter && !r.adapter.empty() && !c.spec->carries(r.adapter)) return false;
  if (p.topology->policy.stale_signals == StaleSignals::exclude && !p.fail_open) {
    const std::int64_t at = c.book->signals_at.load(std::memory_order_relaxed);
    if (at != 0 && p.now.value - at > p.topology->policy.signals_max_age.value) return false;
  }
  return true;
}

/// Finds the eligible candidates: the pool's own list where the request asks for nothing special.
/// returns: routed, or why there is none.
inline Verdict find_eligible(Prepared& p, const Request& r, Scratch& scratch) {
  const auto& candidates = p.pool->candidates;
  const Policy& policy = p.topology->policy;
  const bool plain = r.excluded.empty() && !r.pinned.valid() && policy.stale_signals == StaleSignals::ignore &&
                     (r.adapter.empty() || p.pool->any_adapter);
  if (plain && !p.pool->plain.empty()) {
    scratch.eligible = p.pool->plain;
    return Verdict::routed;
  }
  p.fail_open = !p.pool->any_up && policy.route_when_all_down;
  if (scratch.filtered.capacity() < candidates.size()) scratch.filtered.reserve(candidates.size());
  scratch.filtered.clear();
  for (std::uint32_t i = 0; i < candidates.size(); ++i) {
    if (may_take(p, candidates[i], r)) scratch.filtered.push_back(i);
  }
  scratch.eligible = scratch.filtered;
  if (!scratch.eligible.empty()) return Verdict::routed;
  bool carried = false;
  bool up = false;
  for (const Candidate& c : candidates) {
    const bool carries = c.spec->carries(r.adapter);
    carried = carried || carries;
    up = up || (carries && c.health == Health::up);
  }
  if (candidates.empty()) return Verdict::no_replica;
  if (!carried) return Verdict::no_adapter;
  return up || p.fail_open ? Verdict::all_excluded : Verdict::no_replica;
}

inline constexpr std::int64_t kHomeMilli = 900;
inline constexpr std::int64_t kSuccessorOf8 = 3;  // of a home's likelihood

/// Several routers that tell one another nothing still agree on a prompt's home: the ring's, for the prompt down to just behind the deepest
/// fork on its way. What others sent there is likely held there, less likely at its successor (kSuccessorOf8). Shares: benchmarks/README.md
/// ("Several routers"); with R routers a share of 1 - 1/R of the traffic was sent by others.
inline void prepare_prior(Prepared& p, std::uint32_t known) noexcept {
  const Policy& policy = p.topology->policy;
  if (policy.routers <= 1 || policy.algorithm != Algorithm::cost || p.path.empty() || p.pool->ring == nullptr) return;
  const std::size_t least = std::max<std::size_t>(
      2,
      static_cast<std::size_t>(policy.ring_key_tokens * 1'000 / std::max<std::int64_t>(1, p.tokens_per_block_milli)));
  const std::size_t fork = p.pool->state->forks.deepest(p.path, fork_from(p));
  const std::size_t depth = std::min(std::max(least, fork + 1), p.path.size());
  const std::uint64_t key = mix(XXH3_64bits(p.path.data(), depth * sizeof(BlockHash)));
  static_cast<void>(p.pool->ring->successors(key, p.homes));
  p.prior_milli = kHomeMilli - kHomeMilli / policy.routers;
  p.known_blocks = known;
}

/// A replica that keeps slots holds more than a request can find there, and what it finds includes an answer whose blocks nobody told. So what
/// its own rules would give replaces what the index says. cost: a look at each of its sequences, one or two.
inline void look_into_slots(const Prepared& p, Scratch& scratch, const EpochDomain::Guard& guard) {
  for (const Candidate& c : p.pool->candidates) {
    if (c.spec->cache_kind != CacheKind::slots) continue;
    const ModelledCache& cache = p.pool->state->caches[c.id.slot];
    const SlotsSeen::Model* seen = cache.slots_seen.read(guard);
    if (seen == nullptr || seen->id != c.id) continue;
    const std::int64_t found = seen->cache.would_find({p.path, p.input_tokens, p.tokens_per_block_milli});
    const std::int64_t blocks = p.tokens_per_block_milli > 0 ? found * 1'000 / p.tokens_per_block_milli : 0;
    scratch.match.set(c.id.slot,
                      static_cast<std::uint32_t>(std::min(blocks, static_cast<std::int64_t>(p.path.size()))));
  }
}

/// Leading blocks of the prompt that a replica holds, each tier with those above it.
struct HeldBlocks {
  std::uint32_t device = 0, host = 0, disk = 0;
};
/// returns: the tokens of a reading; what the store that all replicas share has beyond them is loaded from there.
inline CostReplica held_tokens(const Prepared& p, const Scratch& scratch, const HeldBlocks& held) noexcept {
  CostReplica out;
  out.cached_tokens = p.tokens_of(held.disk);
  out.host_tokens = p.tokens_of(held.host - held.device);
  out.disk_tokens = p.tokens_of(held.disk - held.host);
  if (const std::int64_t shared = p.tokens_of(scratch.store_blocks); shared > out.cached_tokens) {
    out.shared_tokens = shared - out.cached_tokens;
    out.cached_tokens = shared;
  }
  return out;
}

/// Everything that is the same for all candidates. returns: routed when somebody may take the request.
inline Verdict prepare(Prepared& p, const Topology& topology, const Request& r, Nanos now, std::uint64_t sequence,
                       const SessionTable& sessions, std::size_t max_blocks, Scratch& scratch,
                       const EpochDomain::Guard& guard, const PoolView* pool) {
  p.topology = &topology;
  p.pool = pool;
  p.now = now;
  if (pool == nullptr) return Verdict::no_pool;
  const Verdict verdict = find_eligible(p, r, scratch);
  prepare_path(p, r, scratch, max_blocks);
  pool->state->index.match(p.path, scratch.match, guard);
  if (pool->state->predicted.any()) {
    pool->state->predicted.match(p.path, scratch.predicted, guard);
    scratch.match.raise(scratch.predicted);
  }
  const SharedStore& shared = pool->state->shared;
  scratch.store_blocks =
      shared.any() ? std::min(shared.depth(p.path, scratch.in_store, guard), p.most_blocks) : std::uint32_t{0};
  if (pool->any_slots) look_into_slots(p, scratch, guard);
  prepare_shared(p, scratch);
  prepare_prior(p, topology.policy.routers > 1 ? scratch.match.best() : 0);
  p.weights = topology.weights;
  p.weights.gamma = std::min(
      kMostGamma, p.weights.gamma + p.weights.gamma * std::min(pool->state->waits.ns(), kMostStallWait) / kStallWait);
  p.weights.kv = p.weights.kv * kKvPatience / (kKvPatience + std::min(pool->state->waits.ns(), kMostStallWait));
  p.mean_input_tokens = pool->state->input_tokens.milli() / 1'000;
  p.mean_prefill_ns = pool->state->prefill_ns.milli();
  p.cost.tail_scale = tail_scale_of(p.weights, p.mean_prefill_ns);
  const std::int64_t expected = pool->state->output_tokens.milli() / 1'000;
  p.cost.input_tokens = p.input_tokens;
  p.cost.output_tokens = r.max_output_tokens >= 0 ? std::min(expected, r.max_output_tokens) : expected;
  p.cost.replicas = std::max<std::int64_t>(1, static_cast<std::int64_t>(pool->candidates.size()));
  p.apart = topology.policy.learn_rates && pool->state->apart.load(std::memory_order_relaxed);
  scratch.rates.resize(pool->hardware.size());
  scratch.whole_prefill_ns.resize(pool->hardware.size());
  for (std::size_t k = 0; k < pool->hardware.size(); ++k) {
    scratch.rates[k] = topology.policy.learn_rates ? pool->learners[k]->rates() : pool->hardware[k];
    scratch.whole_prefill_ns[k] = scratch.rates[k].prefill_ns(p.input_tokens);
  }
  p.rates = scratch.rates.data();
  p.session = session_key(r.session, r.tenant, pool->name);
  p.session_replica = sessions.find(p.session, now, topology.policy.session_ttl);
  const std::uint64_t content = p.path.empty() ? static_cast<std::uint64_t>(p.input_tokens) : to_u64(p.path.back());
  p.draw = mix(topology.policy.seed ^ mix(content ^ mix(sequence)));
  return verdict;
}

/// The key of the request on the ring: its session where policy wants that, else the prefix down to a fixed depth.
inline std::uint64_t ring_key(const Prepared& p) noexcept {
  if (p.topology->policy.ring_key == RingKey::session_or_prefix && p.session != 0) return p.session;
  const std::int64_t blocks =
      std::max<std::int64_t>(1, p.topology->policy.ring_key_tokens * 1'000 / p.tokens_per_block_milli);
  const auto depth = std::min(p.path.size(), static_cast<std::size_t>(blocks));
  return depth == 0 ? p.draw : mix(XXH3_64bits(p.path.data(), depth * sizeof(BlockHash)));
}

}  // namespace warmroute::detail
