/// The rest of Router's bodies: membership, policy, upkeep. None of it is on the path of a request; explanations and statistics are in
/// router_report.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "warmroute/route/detail/router_caches.hpp"
#include "warmroute/route/detail/router_core.hpp"
#include "warmroute/route/detail/router_events.hpp"
#include "warmroute/route/detail/router_report.hpp"
#include "warmroute/route/detail/router_slots.hpp"

namespace warmroute::detail {

inline RouterCore::RouterCore(RouterOptions options)
    : options_(options),
      table_(domain_, std::clamp<std::uint32_t>(options.max_replicas, 1, kMaxRingMembers)),
      peers_(table_.max_replicas()),
      topology_(domain_, std::make_unique<Topology>()),
      tickets_(std::max<std::uint32_t>(options.max_tickets, 1)),
      sessions_(options.session_entries),
      up_since_(table_.max_replicas(), 0) {
  options_.max_path_blocks = std::clamp<std::size_t>(options.max_path_blocks, 1, std::size_t{1} << 18);
}

inline PoolState& RouterCore::pool_state(std::string_view name) {
  for (const auto& pool : pools_) {
    if (pool->name == name) return *pool;
  }
  pools_.push_back(std::make_unique<PoolState>(domain_, std::string(name), table_.max_replicas(),
                                               options_.index_max_bytes, options_.shared_prefix_entries,
                                               options_.placement_queue));
  return *pools_.back();
}

// Slow start counts from when a replica came up; one that starts with the router does so, too: its cache is as cold.
inline void RouterCore::ramp_up(PoolView& pool) const {
  const std::int64_t now = last_now_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < pool.candidates.size(); ++i) {
    const ReplicaSpec& spec = *pool.candidates[i].spec;
    if (spec.slow_start <= Nanos{0} || spec.health != Health::up || spec.slow_start_weight >= 1) continue;
    const std::int64_t from = up_since_[pool.candidates[i].id.slot];
    if (now - from >= spec.slow_start.value) continue;
    pool.ramps.push_back({i, from, from + spec.slow_start.value,
                          std::max<std::int64_t>(1, std::llround(spec.slow_start_weight * 1'000))});
  }
}

inline Status RouterCore::drain(ReplicaId id, Nanos until, Nanos now) {
  if (Status draining = set_health(id, Health::draining, "drains", now); !draining) return draining;
  const std::lock_guard lock(control_);
  if (Status noted = table_.edit(id, [&](ReplicaSpec& s) { s.drain_until = until; }); !noted) return noted;
  if (until > Nanos{0} && (next_drain_end_ == 0 || until.value < next_drain_end_)) next_drain_end_ = until.value;
  return {};
}

// Under control_.
inline void RouterCore::end_drains(Nanos now) {
  if (next_drain_end_ == 0 || now.value < next_drain_end_) return;
  next_drain_end_ = 0;
  bool any = false;
  for (const ReplicaRow& row : table_.copy().rows) {
    if (row.spec.health != Health::draining || row.spec.drain_until == Nanos{0}) continue;
    if (row.spec.drain_until > now) {
      if (next_drain_end_ == 0 || row.spec.drain_until.value < next_drain_end_)
        next_drain_end_ = row.spec.drain_until.value;
      continue;
    }
    any = table_.set_health(row.id, Health::down, "its time to drain is over").ok() || any;
    options_.log(LogLevel::warning,
                 "replica " + row.spec.name + " is down: its time to drain is over with " +
                     std::to_string(table_.book(row.id.slot).requests.load(std::memory_order_relaxed)) +
                     " requests in flight");
  }
  if (any) (void)rebuild(topology_.latest().policy);  // health alone changed: no ring is built
}

// Under control_. On failure nothing is published.
inline Status RouterCore::rebuild(const Policy& policy) {
  const Topology& before = topology_.latest();
  auto next = std::make_unique<Topology>();
  next->policy = policy;
  next->weights = CostWeights::from(policy);
  next->pairs = PairWeights::from(policy);
  next->rows = table_.copy().rows;
  for (const ReplicaRow& row : next->rows) {
    if (next->exact_pool(row.spec.pool) != nullptr) continue;
    PoolView pool;
    pool.state = &pool_state(row.spec.pool);
    pool.name = pool.state->name;
    next->pools.insert(std::lower_bound(next->pools.begin(), next->pools.end(), pool.name,
                                        [](const PoolView& a, std::string_view name) { return a.name < name; }),
                       std::move(pool));
  }
  for (PoolView& pool : next->pools) {
    add_candidates(pool, policy, next->rows, table_);
    ramp_up(pool);
    auto ring = ring_of(pool, policy, before.exact_pool(pool.name), &before.policy);
    if (!ring) return ring.error();
    pool.ring = std::move(*ring);
  }
  // A pool whose last replica left stays known, so that its requests are told "no replica" and not "no pool".
  for (const auto& state : pools_) {
    if (next->exact_pool(state->name) != nullptr) continue;
    PoolView empty;
    empty.state = state.get();
    empty.name = state->name;
    next->pools.insert(std::lower_bound(next->pools.begin(), next->pools.end(), empty.name,
                                        [](const PoolView& a, std::string_view name) { return a.name < name; }),
                       std::move(empty));
  }
  topology_.publish(std::move(next));
  return {};
}

inline Status RouterCore::set_policy(const Policy& policy) {
  if (auto valid = validate(policy); !valid) return valid;
  const std::lock_guard lock(control_);
  const Policy before = topology_.latest().policy;
  if (auto built = rebuild(policy); !built) return built;
  for (const ReplicaRow& row : topology_.latest().rows) {
    // Blocks of another size or seed can never match again: what is believed starts anew.
    if (before.block_size != policy.block_size || before.hash_seed != policy.hash_seed || !has_model(row.spec))
      forget_cache(row.id, row.spec, false);
    else model_cache(row.id, row.spec);  // capacity and time to live may have changed
  }
  std::string line = "policy " + std::to_string(policy.version) + ": ";
  options_.log(LogLevel::info, line.append(algorithm_name(policy.algorithm)));
  return {};
}

inline Result<ReplicaSpec> RouterCore::replica(ReplicaId id) const {
  const auto guard = domain_.pin();
  const ReplicaRow* row = table_.view(guard).find(id);
  if (row == nullptr) return Error{Code::stale, "no such replica: it was removed", kNoOffset};
  return row->spec;
}

inline Result<ReplicaId> RouterCore::find_replica(std::string_view name, std::uint32_t dp_rank) const {
  const auto guard = domain_.pin();
  const ReplicaRow* row = table_.view(guard).find(name, dp_rank);
  if (row == nullptr) return Error{Code::not_found, "no replica of that name and rank is in the table", kNoOffset};
  return row->id;
}

inline std::int64_t RouterCore::requests_in_flight(std::string_view pool) const {
  const auto guard = domain_.pin();
  const PoolView* view = topology_.read(guard).exact_pool(pool);
  std::int64_t sum = 0;
  if (view == nullptr) return 0;
  for (const Candidate& c : view->candidates) sum += c.book->requests.load(std::memory_order_relaxed);
  return sum;
}

inline Policy RouterCore::policy() const {
  const auto guard = domain_.pin();
  return topology_.read(guard).policy;
}

inline Result<ReplicaId> RouterCore::add_replica(ReplicaSpec spec, Nanos now) {
  now = clamp(now);
  const std::lock_guard lock(control_);
  const std::string line = "replica " + spec.name + " added";
  const ReplicaSpec copy = spec;
  auto id = table_.add(std::move(spec));
  if (!id) return id;
  up_since_[id->slot] = now.value;
  if (auto built = rebuild(topology_.latest().policy); !built) {
    (void)table_.remove(*id);
    return built.error();
  }
  model_cache(*id, copy);
  options_.log(LogLevel::info, line);
  return id;
}

inline Status RouterCore::remove_replica(ReplicaId id, Nanos now) {
  clamp(now);
  const std::lock_guard lock(control_);
  const ReplicaView view = table_.copy();
  const ReplicaRow* row = view.find(id);
  if (auto removed = table_.take_out(id); !removed) return removed;
  peers_.forget(id);
  const Status built = rebuild(topology_.latest().policy);
  if (built) table_.let_again(id);  // only now no new reader finds it in a topology
  forget_cache(id, row->spec, true);
  options_.log(LogLevel::info, "replica " + row->spec.name + " removed");
  return built;
}

inline Status RouterCore::update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now) {
  clamp(now);
  const std::lock_guard lock(control_);
  const ReplicaView view = table_.copy();
  const ReplicaRow* row = view.find(id);
  const auto edit = [&](ReplicaSpec& s) {
    ReplicaSpec next = spec;
    next.health = s.health;
    next.health_reason = std::move(s.health_reason);
    next.drain_until = s.drain_until;
    s = std::move(next);
  };
  if (auto edited = table_.edit(id, edit); !edited) return edited;
  if (auto built = rebuild(topology_.latest().policy); !built) {
    (void)table_.edit(id, [&](ReplicaSpec& s) { s = row->spec; });
    return built;
  }
  if (!has_model(spec)) forget_cache(id, row->spec, true);
  else model_cache(id, spec);  // the role or the capacity may have changed
  return {};
}

inline Status RouterCore::set_health(ReplicaId id, Health health, std::string_view reason, Nanos now) {
  now = clamp(now);
  const std::lock_guard lock(control_);
  const ReplicaView view = table_.copy();
  const ReplicaRow* row = view.find(id);
  if (auto edited = table_.set_health(id, health, reason); !edited) return edited;
  if (row->spec.health == health) return {};
  if (row->spec.health == Health::down && health == Health::up) up_since_[id.slot] = now.value;
  std::string line = "replica " + row->spec.name + " is ";
  line.append(health_name(health)).append(reason.empty() ? "" : ": ").append(reason);
  options_.log(health == Health::down ? LogLevel::warning : LogLevel::info, line);
  return rebuild(topology_.latest().policy);
}

inline Status RouterCore::clear_cache(ReplicaId id, Nanos now) {
  clamp(now);
  const std::lock_guard lock(control_);
  const ReplicaView view = table_.copy();
  const ReplicaRow* row = view.find(id);
  if (row == nullptr) return Error{Code::stale, "that replica was removed: its cache is forgotten already", kNoOffset};
  forget_cache(id, row->spec, false);
  options_.log(LogLevel::info, "replica " + row->spec.name + " lost its cache");
  return {};
}

inline Status RouterCore::signal(ReplicaId id, Signal kind, double value, Nanos now) {
  now = clamp(now);
  const Nanos max_age = [&] {
    const auto guard = domain_.pin();
    return topology_.read(guard).policy.signals_max_age;
  }();
  if (auto taken = table_.signal(id, kind, value, now, max_age); !taken) return taken;
  const bool load = kind == Signal::running || kind == Signal::waiting || kind == Signal::waiting_tokens;
  if (load && !loads_reported_.load(std::memory_order_relaxed)) loads_reported_.store(true, std::memory_order_relaxed);
  if (kind != Signal::block_tokens && kind != Signal::block_count) return {};
  const std::lock_guard lock(control_);
  const ReplicaView view = table_.copy();
  const ReplicaRow* row = view.find(id);
  if (row != nullptr) model_cache(id, row->spec);
  return {};
}

// A replica that only prefills has one where pairs are formed: what it holds need not be computed again.
inline bool RouterCore::has_model(const ReplicaSpec& spec) const noexcept {
  return spec.role != Role::prefill || topology_.latest().policy.disaggregate != Disaggregate::never;
}

// Makes the model of a replica's cache, or brings its capacity up to date: engine's signals, else the spec, else the policy.
inline void RouterCore::model_cache(ReplicaId id, const ReplicaSpec& spec) {
  if (!has_model(spec)) return;
  const Policy& policy = topology_.latest().policy;
  const SignalReading tokens = table_.reading(id, Signal::block_tokens);
  const SignalReading count = table_.reading(id, Signal::block_count);
  PoolState& pool = pool_state(spec.pool);
  const std::lock_guard lock(pool.placing);
  ModelledCache& cache = pool.caches[id.slot];
  if (model_slots(pool, id, spec, policy)) return;
  std::int64_t known = spec.capacity_tokens;
  if (tokens.known && count.known && tokens.value * count.value >= 1) {
    known = static_cast<std::int64_t>(std::min(tokens.value * count.value, 1e12));
  }
  table_.cache_book(id.slot).capacity_tokens.store(known, std::memory_order_relaxed);
  cache.capacity_tokens = known > 0 ? known : policy.capacity_tokens;
  pool.predicted.set_ttl(id, policy.residency_ttl);
  if (cache.id == id && cache.residency != nullptr) {  // fit_capacity follows at the next placement
    cache.residency->set_ttl(policy.residency_ttl);
    return;
  }
  cache.id = id;
  cache.trust_milli = 1'000;
  cache.tokens_per_block_milli = 0;
  cache.hash_rule = hash_rule_of(policy);
  cache.capacity_blocks =
      static_cast<std::size_t>(std::max<std::int64_t>(1, cache.capacity_tokens / policy.block_size));
  cache.residency = std::make_unique<Residency>(
      pool.index, id, Tier::device,
      ResidencyOptions{.capacity_blocks = cache.capacity_blocks, .ttl = policy.residency_ttl});
}

inline void RouterCore::forget_cache(ReplicaId id, const ReplicaSpec& spec, bool gone) {
  PoolState& pool = pool_state(spec.pool);
  {
    const std::lock_guard lock(pool.placing);
    ModelledCache& cache = pool.caches[id.slot];
    if (cache.id == id) {
      cache.residency.reset();
      cache.slots.reset();
      cache.slots_seen.publish(domain_, nullptr);
      cache.id = kNoReplica;
    }
    if (gone) {
      pool.predicted.end(id);
      std::uint32_t reported = id.generation;  // the next event of one that comes back to its role begins again
      cache.reported_generation.compare_exchange_strong(reported, 0);
    } else {
      pool.predicted.clear(id);
    }
    pool.index.clear(id);
  }
  if (!gone) model_cache(id, spec);
}

inline void RouterCore::advance(Nanos now) {
  now = clamp(now);
  sweep_leases(1'024, now);
  const std::lock_guard lock(control_);
  end_drains(now);
  peers_.advance(now, topology_.latest().policy.signals_max_age);
  for (const PoolView& pool : topology_.latest().pools) {
    const bool apart = std::any_of(pool.candidates.begin(), pool.candidates.end(), [](const Candidate& c) {
      return c.book->slowness.load(std::memory_order_relaxed) != LoadBook::kAsItsKind;
    });
    pool.state->apart.store(apart, std::memory_order_relaxed);
  }
  for (const auto& pool : pools_) {
    drain(*pool, 4'096, now);
    const std::unique_lock placing(pool->placing, std::try_to_lock);
    if (!placing.owns_lock()) continue;
    for (ModelledCache& cache : pool->caches) {
      if (cache.residency == nullptr) continue;
      fit_capacity(*pool, cache);
      cache.residency->advance(now);
    }
    pool->predicted.advance(now);
    pool->shared.advance();
    pool->index.advance();
  }
  domain_.collect();
}

}  // namespace warmroute::detail
