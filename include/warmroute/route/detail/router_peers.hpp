/// What a Router tells its peers of its books, and hears of theirs. Off the path of requests. Locks: PeerBooks' own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "warmroute/route/detail/router_core.hpp"

namespace warmroute::detail {

inline void RouterCore::loads(std::vector<PeerLoad>& out, Nanos now) const {
  now = clamped(now);
  out.clear();
  const auto guard = domain_.pin();
  constexpr auto relaxed = std::memory_order_relaxed;
  for (const ReplicaRow& row : table_.view(guard).rows) {
    const LoadBook& book = table_.book(row.id.slot);
    PeerLoad load;
    load.requests = book.requests.load(relaxed);
    if (load.requests <= 0) continue;
    load.name = row.spec.name;
    load.dp_rank = row.spec.dp_rank;
    load.prompts = std::clamp<std::int64_t>(load.requests - book.decoding.load(relaxed), 0, load.requests);
    load.pending_ns = std::max<std::int64_t>(0, book.pending_ns.load(relaxed));
    load.context_tokens = std::max<std::int64_t>(0, book.context_tokens.load(relaxed));
    load.turn_age_ns = std::max<std::int64_t>(0, now.value - book.prefill_since.load(relaxed));
    out.push_back(std::move(load));
  }
}

inline Result<std::size_t> RouterCore::peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads, Nanos now) {
  now = clamp(now);
  if (peer >= kMaxPeers) {
    return Error{Code::invalid_argument, "a peer's number must be below " + std::to_string(kMaxPeers), kNoOffset};
  }
  std::vector<PeerBooks::Line> known;
  known.reserve(loads.size());
  // Membership stands still meanwhile: a replica that leaves takes what is said of it along.
  const std::lock_guard lock(control_);
  const Topology& topology = topology_.latest();
  const auto& rows = topology.rows;
  auto next = rows.begin();  // peers name them in their order of slots, which is mostly this one's, too
  for (const PeerLoad& load : loads) {
    if (!load.sound()) continue;
    const auto named = [&](const ReplicaRow& r) { return r.spec.dp_rank == load.dp_rank && r.spec.name == load.name; };
    auto row = std::find_if(next, rows.end(), named);
    if (row == rows.end() && (row = std::find_if(rows.begin(), next, named)) == next) continue;
    known.push_back({row->id, load});
    next = row + 1;
  }
  const std::size_t count = known.size();
  peers_.take(peer, std::move(known), now, topology.policy.signals_max_age);
  return count;
}

// As the placement of a request of one's own: believed where nothing is reported, foreseen where the engine's events will say it.
inline Status RouterCore::peer_placed(ReplicaId id, const Request& request, Nanos now) {
  now = clamp(now);
  const auto guard = domain_.pin();
  const Topology& topology = topology_.read(guard);
  const ReplicaRow* row = find_row(topology.rows, id);
  if (row == nullptr) return Error{Code::stale, "that replica was removed", kNoOffset};
  if (row->spec.cache_kind != CacheKind::paged) {
    return Error{Code::unsupported, "of a replica that keeps slots only its own router's requests are modelled",
                 kNoOffset};
  }
  ScratchPool::Lease lease(scratch_, counters_.scratch_allocated);
  Prepared p;
  p.topology = &topology;
  p.pool = topology.exact_pool(row->spec.pool);
  prepare_path(p, request, *lease, options_.max_path_blocks);
  sessions_.remember(session_key(request.session, request.tenant, p.pool->name), id, now);
  if (p.path.empty()) return {};
  PoolState& pool = *p.pool->state;
  const std::lock_guard placing(pool.placing);
  ModelledCache& cache = pool.caches[id.slot];
  if (cache.id != id || cache.hash_rule != hash_rule_of(topology.policy)) return {};
  if (cache.reported()) foresee(pool, id, p.path, p.tokens_per_block_milli, now);
  else if (cache.residency != nullptr) place(pool, cache, p.path, p.tokens_per_block_milli, now);
  return {};
}

}  // namespace warmroute::detail
