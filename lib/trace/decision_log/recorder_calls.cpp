#include "trace/decision_log/recorder_calls.hpp"

#include <utility>

namespace warmroute::trace::decisions {
namespace {

class RecorderCalls final : public RouterCalls {
 public:
  explicit RecorderCalls(DecisionRecorder recorder) : recorder_(std::move(recorder)) {}

  Status set_policy(const Policy& policy) override { return recorder_.set_policy(policy); }
  Policy policy() const override { return recorder_.policy(); }
  Result<ReplicaId> add_replica(ReplicaSpec spec, Nanos now) override {
    return recorder_.add_replica(std::move(spec), now);
  }
  Status remove_replica(ReplicaId id, Nanos now) override { return recorder_.remove_replica(id, now); }
  Status set_health(ReplicaId id, Health health, std::string_view reason, Nanos now) override {
    return recorder_.set_health(id, health, reason, now);
  }
  Status drain(ReplicaId id, Nanos until, Nanos now) override { return recorder_.drain(id, until, now); }
  Status update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now) override {
    return recorder_.update_replica(id, spec, now);
  }
  Status clear_cache(ReplicaId id, Nanos now) override { return recorder_.clear_cache(id, now); }
  Status signal(ReplicaId id, Signal kind, double value, Nanos now) override {
    return recorder_.signal(id, kind, value, now);
  }
  Status prefix_counters(ReplicaId id, const PrefixCounters& counters, Nanos now) override {
    return recorder_.prefix_counters(id, counters, now);
  }
  Status blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now) override {
    return recorder_.blocks_stored(id, stored, now);
  }
  Result<std::size_t> blocks_removed(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now) override {
    return recorder_.blocks_removed(id, tier, ids, now);
  }
  Result<std::size_t> blocks_also_on(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now) override {
    return recorder_.blocks_also_on(id, tier, ids, now);
  }
  Status clear_shared_store(std::string_view pool) override { return recorder_.clear_shared_store(pool); }
  std::vector<ReplicaRow> replicas() const override { return recorder_.router().replicas(); }
  Result<ReplicaSpec> replica(ReplicaId id) const override { return recorder_.router().replica(id); }
  Result<ReplicaId> find_replica(std::string_view name, std::uint32_t dp_rank) const override {
    return recorder_.router().find_replica(name, dp_rank);
  }
  std::int64_t requests_in_flight(std::string_view pool) const override {
    return recorder_.router().requests_in_flight(pool);
  }
  void loads(std::vector<PeerLoad>& out, Nanos now) const override { recorder_.router().loads(out, now); }
  Result<std::size_t> peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads, Nanos now) override {
    return recorder_.peer_loads(peer, loads, now);
  }
  Status peer_placed(ReplicaId id, const Request& request, Nanos now) override {
    return recorder_.peer_placed(id, request, now);
  }
  Decision route(const Request& request, Nanos now) override { return recorder_.route(request, now); }
  Decision peek(const Request& request, Nanos now) const override { return recorder_.peek(request, now); }
  Explanation explain(const Request& request, Nanos now) const override { return recorder_.explain(request, now); }
  bool first_token(Ticket ticket, Nanos now) override { return recorder_.first_token(ticket, now); }
  bool transfer_done(Ticket ticket, Nanos now) override { return recorder_.transfer_done(ticket, now); }
  bool finish(Ticket ticket, const UsageCounts& usage, Nanos now) override {
    return recorder_.finish(ticket, usage, now);
  }
  bool fail(Ticket ticket, Outcome outcome, Nanos now) override { return recorder_.fail(ticket, outcome, now); }
  void advance(Nanos now) override { return recorder_.advance(now); }
  Result<ReplicaCache> cached(ReplicaId /*id*/, Nanos /*now*/) const override { return carried_over(); }
  Result<RestoredCache> restore_cached(ReplicaId /*id*/, const ReplicaCache& /*cache*/, Nanos /*now*/,
                                       Nanos /*away*/) override {
    return carried_over();
  }
  Result<LearnedPool> learned(std::string_view pool) const override { return recorder_.router().learned(pool); }
  Result<RestoredLearned> restore_learned(std::string_view pool, const LearnedPool& learned) override {
    return recorder_.restore_learned(pool, learned);
  }
  RouterStatistics statistics() const override { return recorder_.router().statistics(); }

 private:
  // Whoever takes such a cache compares its hashes with the policy that was set, and takes it under the same key (DecisionRecorder's calls).
  static Error carried_over() {
    return {Code::unsupported,
            "a router that records keeps its hashes under the log's key: its caches are not carried over", kNoOffset};
  }
  DecisionRecorder recorder_;
};

}  // namespace

std::unique_ptr<RouterCalls> calls_of(DecisionRecorder recorder) {
  return std::make_unique<RecorderCalls>(std::move(recorder));
}

}  // namespace warmroute::trace::decisions
