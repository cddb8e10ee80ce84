/// Router's calls: to its core, or to whoever stands behind it (route/router_calls.hpp).
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "warmroute/route/detail/router_core.hpp"

// Empty in the one file of the library that has the bodies.
#ifndef WARMROUTE_ROUTER_BODY
#define WARMROUTE_ROUTER_BODY inline
#endif

namespace warmroute {

WARMROUTE_ROUTER_BODY Router::Router(RouterOptions options) : core_(std::make_unique<detail::RouterCore>(options)) {}
WARMROUTE_ROUTER_BODY Router::Router(RouterCalls& calls) : calls_(&calls) {}
WARMROUTE_ROUTER_BODY Router::~Router() = default;
WARMROUTE_ROUTER_BODY Status Router::set_policy(const Policy& policy) {
  return calls_ == nullptr ? core_->set_policy(policy) : calls_->set_policy(policy);
}
WARMROUTE_ROUTER_BODY Policy Router::policy() const { return calls_ == nullptr ? core_->policy() : calls_->policy(); }
WARMROUTE_ROUTER_BODY Result<ReplicaId> Router::add_replica(ReplicaSpec spec, Nanos now) {
  return calls_ == nullptr ? core_->add_replica(std::move(spec), now) : calls_->add_replica(std::move(spec), now);
}
WARMROUTE_ROUTER_BODY Status Router::remove_replica(ReplicaId id, Nanos now) {
  return calls_ == nullptr ? core_->remove_replica(id, now) : calls_->remove_replica(id, now);
}
WARMROUTE_ROUTER_BODY Status Router::set_health(ReplicaId id, Health health, std::string_view reason, Nanos now) {
  return calls_ == nullptr ? core_->set_health(id, health, reason, now) : calls_->set_health(id, health, reason, now);
}
WARMROUTE_ROUTER_BODY Status Router::drain(ReplicaId id, Nanos until, Nanos now) {
  return calls_ == nullptr ? core_->drain(id, until, now) : calls_->drain(id, until, now);
}
WARMROUTE_ROUTER_BODY Status Router::update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now) {
  return calls_ == nullptr ? core_->update_replica(id, spec, now) : calls_->update_replica(id, spec, now);
}
WARMROUTE_ROUTER_BODY Status Router::clear_cache(ReplicaId id, Nanos now) {
  return calls_ == nullptr ? core_->clear_cache(id, now) : calls_->clear_cache(id, now);
}
WARMROUTE_ROUTER_BODY Status Router::signal(ReplicaId id, Signal kind, double value, Nanos now) {
  return calls_ == nullptr ? core_->signal(id, kind, value, now) : calls_->signal(id, kind, value, now);
}
WARMROUTE_ROUTER_BODY Status Router::prefix_counters(ReplicaId id, const PrefixCounters& counters, Nanos now) {
  return calls_ == nullptr ? core_->prefix_counters(id, counters, now) : calls_->prefix_counters(id, counters, now);
}
WARMROUTE_ROUTER_BODY Status Router::blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now) {
  return calls_ == nullptr ? core_->blocks_stored(id, stored, now) : calls_->blocks_stored(id, stored, now);
}
WARMROUTE_ROUTER_BODY Result<std::size_t> Router::blocks_removed(ReplicaId id, Tier tier,
                                                                 std::span<const EngineHash> ids, Nanos now) {
  return calls_ == nullptr ? core_->blocks_removed(id, tier, ids, now) : calls_->blocks_removed(id, tier, ids, now);
}
WARMROUTE_ROUTER_BODY Result<std::size_t> Router::blocks_also_on(ReplicaId id, Tier tier,
                                                                 std::span<const EngineHash> ids, Nanos now) {
  return calls_ == nullptr ? core_->blocks_also_on(id, tier, ids, now) : calls_->blocks_also_on(id, tier, ids, now);
}
WARMROUTE_ROUTER_BODY Status Router::clear_shared_store(std::string_view pool) {
  return calls_ == nullptr ? core_->clear_shared_store(pool) : calls_->clear_shared_store(pool);
}
WARMROUTE_ROUTER_BODY std::vector<ReplicaRow> Router::replicas() const {
  return calls_ == nullptr ? core_->replicas() : calls_->replicas();
}
WARMROUTE_ROUTER_BODY Result<ReplicaSpec> Router::replica(ReplicaId id) const {
  return calls_ == nullptr ? core_->replica(id) : calls_->replica(id);
}
WARMROUTE_ROUTER_BODY Result<ReplicaId> Router::find_replica(std::string_view name, std::uint32_t dp_rank) const {
  return calls_ == nullptr ? core_->find_replica(name, dp_rank) : calls_->find_replica(name, dp_rank);
}
WARMROUTE_ROUTER_BODY std::int64_t Router::requests_in_flight(std::string_view pool) const {
  return calls_ == nullptr ? core_->requests_in_flight(pool) : calls_->requests_in_flight(pool);
}
WARMROUTE_ROUTER_BODY void Router::loads(std::vector<PeerLoad>& out, Nanos now) const {
  return calls_ == nullptr ? core_->loads(out, now) : calls_->loads(out, now);
}
WARMROUTE_ROUTER_BODY Result<std::size_t> Router::peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads,
                                                             Nanos now) {
  return calls_ == nullptr ? core_->peer_loads(peer, loads, now) : calls_->peer_loads(peer, loads, now);
}
WARMROUTE_ROUTER_BODY Status Router::peer_placed(ReplicaId id, const Request& request, Nanos now) {
  return calls_ == nullptr ? core_->peer_placed(id, request, now) : calls_->peer_placed(id, request, now);
}
WARMROUTE_ROUTER_BODY Decision Router::route(const Request& request, Nanos now) {
  return calls_ == nullptr ? core_->route(request, now) : calls_->route(request, now);
}
WARMROUTE_ROUTER_BODY void Router::route_batch(std::span<const Request> requests, std::span<Decision> decisions,
                                               Nanos now) {
  const std::size_t count = std::min(requests.size(), decisions.size());
  for (std::size_t i = 0; i < count; ++i) decisions[i] = route(requests[i], now);
}
WARMROUTE_ROUTER_BODY Decision Router::peek(const Request& request, Nanos now) const {
  return calls_ == nullptr ? core_->peek(request, now) : calls_->peek(request, now);
}
WARMROUTE_ROUTER_BODY Explanation Router::explain(const Request& request, Nanos now) const {
  return calls_ == nullptr ? core_->explain(request, now) : calls_->explain(request, now);
}
WARMROUTE_ROUTER_BODY bool Router::first_token(Ticket ticket, Nanos now) {
  return calls_ == nullptr ? core_->first_token(ticket, now) : calls_->first_token(ticket, now);
}
WARMROUTE_ROUTER_BODY bool Router::transfer_done(Ticket ticket, Nanos now) {
  return calls_ == nullptr ? core_->transfer_done(ticket, now) : calls_->transfer_done(ticket, now);
}
WARMROUTE_ROUTER_BODY bool Router::finish(Ticket ticket, const UsageCounts& usage, Nanos now) {
  return calls_ == nullptr ? core_->finish(ticket, usage, now) : calls_->finish(ticket, usage, now);
}
WARMROUTE_ROUTER_BODY bool Router::fail(Ticket ticket, Outcome outcome, Nanos now) {
  return calls_ == nullptr ? core_->fail(ticket, outcome, now) : calls_->fail(ticket, outcome, now);
}
WARMROUTE_ROUTER_BODY void Router::advance(Nanos now) {
  return calls_ == nullptr ? core_->advance(now) : calls_->advance(now);
}
WARMROUTE_ROUTER_BODY Result<ReplicaCache> Router::cached(ReplicaId id, Nanos now) const {
  return calls_ == nullptr ? core_->cached(id, now) : calls_->cached(id, now);
}
WARMROUTE_ROUTER_BODY Result<RestoredCache> Router::restore_cached(ReplicaId id, const ReplicaCache& cache, Nanos now,
                                                                   Nanos away) {
  return calls_ == nullptr ? core_->restore_cached(id, cache, now, away) : calls_->restore_cached(id, cache, now, away);
}
WARMROUTE_ROUTER_BODY Result<LearnedPool> Router::learned(std::string_view pool) const {
  return calls_ == nullptr ? core_->learned(pool) : calls_->learned(pool);
}
WARMROUTE_ROUTER_BODY Result<RestoredLearned> Router::restore_learned(std::string_view pool,
                                                                      const LearnedPool& learned) {
  return calls_ == nullptr ? core_->restore_learned(pool, learned) : calls_->restore_learned(pool, learned);
}
WARMROUTE_ROUTER_BODY RouterStatistics Router::statistics() const {
  return calls_ == nullptr ? core_->statistics() : calls_->statistics();
}

}  // namespace warmroute
