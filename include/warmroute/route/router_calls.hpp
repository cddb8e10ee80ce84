/// The calls of a Router as an interface: whoever implements it can stand behind a Router, which then hands every call on to it. So
/// whatever works with a Router (a KvSource, a MetricsPoller, a ModelRouter, the C and Python surfaces) works with it unchanged.
/// trace/decision_recorder.hpp is one: a router that writes down what it is told and what it decides.
/// Invariant: each call means what it means in route/router.hpp. threads: any, as there.
/// Does not: cost a Router without one more than a comparison per call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "warmroute/observe/statistics.hpp"
#include "warmroute/replica/table.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/cache_events.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/explain.hpp"
#include "warmroute/route/learned.hpp"
#include "warmroute/route/peer_load.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/replica_cache.hpp"
#include "warmroute/route/request.hpp"

namespace warmroute {

struct UsageCounts;

class RouterCalls {
 public:
  RouterCalls() = default;
  RouterCalls(const RouterCalls&) = delete;
  RouterCalls& operator=(const RouterCalls&) = delete;
  virtual ~RouterCalls() = default;

  virtual Status set_policy(const Policy& policy) = 0;
  [[nodiscard]] virtual Policy policy() const = 0;
  virtual Result<ReplicaId> add_replica(ReplicaSpec spec, Nanos now) = 0;
  virtual Status remove_replica(ReplicaId id, Nanos now) = 0;
  virtual Status set_health(ReplicaId id, Health health, std::string_view reason, Nanos now) = 0;
  virtual Status drain(ReplicaId id, Nanos until, Nanos now) = 0;
  virtual Status update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now) = 0;
  virtual Status clear_cache(ReplicaId id, Nanos now) = 0;
  virtual Status signal(ReplicaId id, Signal kind, double value, Nanos now) = 0;
  virtual Status prefix_counters(ReplicaId id, const PrefixCounters& counters, Nanos now) = 0;
  virtual Status blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now) = 0;
  virtual Result<std::size_t> blocks_removed(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now) = 0;
  virtual Result<std::size_t> blocks_also_on(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now) = 0;
  virtual Status clear_shared_store(std::string_view pool) = 0;
  [[nodiscard]] virtual std::vector<ReplicaRow> replicas() const = 0;
  [[nodiscard]] virtual Result<ReplicaSpec> replica(ReplicaId id) const = 0;
  [[nodiscard]] virtual Result<ReplicaId> find_replica(std::string_view name, std::uint32_t dp_rank) const = 0;
  [[nodiscard]] virtual std::int64_t requests_in_flight(std::string_view pool) const = 0;
  virtual void loads(std::vector<PeerLoad>& out, Nanos now) const = 0;
  virtual Result<std::size_t> peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads, Nanos now) = 0;
  virtual Status peer_placed(ReplicaId id, const Request& request, Nanos now) = 0;
  virtual Decision route(const Request& request, Nanos now) = 0;
  [[nodiscard]] virtual Decision peek(const Request& request, Nanos now) const = 0;
  [[nodiscard]] virtual Explanation explain(const Request& request, Nanos now) const = 0;
  virtual bool first_token(Ticket ticket, Nanos now) = 0;
  virtual bool transfer_done(Ticket ticket, Nanos now) = 0;
  virtual bool finish(Ticket ticket, const UsageCounts& usage, Nanos now) = 0;
  virtual bool fail(Ticket ticket, Outcome outcome, Nanos now) = 0;
  virtual void advance(Nanos now) = 0;
  [[nodiscard]] virtual Result<ReplicaCache> cached(ReplicaId id, Nanos now) const = 0;
  virtual Result<RestoredCache> restore_cached(ReplicaId id, const ReplicaCache& cache, Nanos now, Nanos away) = 0;
  [[nodiscard]] virtual Result<LearnedPool> learned(std::string_view pool) const = 0;
  virtual Result<RestoredLearned> restore_learned(std::string_view pool, const LearnedPool& learned) = 0;
  [[nodiscard]] virtual RouterStatistics statistics() const = 0;
};

}  // namespace warmroute
