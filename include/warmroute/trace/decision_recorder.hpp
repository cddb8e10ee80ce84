/// A router that writes down what it is told and what it decides (trace/decision_log.hpp): the same calls as Router, around one of its own.
/// A program that does not record uses Router itself and pays nothing.
///
/// Invariant: the router inside sees what the log holds and nothing else. Hashes, sessions and tenants reach it under the log's key, so ring
/// places, ties and every table that hashes them are the same when the log is played again. They are other ones than without a recorder:
/// equally good draws, but routers that must agree on homes (Policy::routers, ring keys) must all record, with one key.
/// Does not: make a request fail for the log's sake. A log that is full or cannot be written ends; the calls go on. Share a file: a second
/// recorder of it, or a child of fork that goes on recording, damages the log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::trace {

using DecisionLogKey = std::array<std::uint8_t, 16>;

struct DecisionLogOptions {
  /// Random bytes; none: drawn here and gone with the recorder, so that nobody can ever confirm a guess. Never in the log.
  std::optional<DecisionLogKey> key{};
  std::uint64_t max_bytes = std::uint64_t{1} << 30;      ///< of the file; recording ends before it would grow beyond
  std::size_t buffer_bytes = std::size_t{1} << 18;       ///< written at once; what a crash may lose
  std::size_t max_record_bytes = std::size_t{64} << 20;  ///< recording ends before a larger one (restore_cached)
};

struct DecisionLogStatistics {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::uint64_t unrecorded = 0;  ///< calls behind its end
  bool ended = false;
  std::string reason;  ///< why it ended
};

/// threads: any; calls take turns, reads (peek, explain) too. alloc: as Router, and one buffer. cost: besides the call itself 0.25 us, and 15 ns
/// and 8 bytes for each block of a prompt (bench_decision_log).
class DecisionRecorder {
 public:
  /// An existing file is replaced. errors: io; internal: no random bytes.
  [[nodiscard]] static Result<DecisionRecorder> open(const std::string& path, const RouterOptions& router = {},
                                                     const DecisionLogOptions& options = {});
  DecisionRecorder(DecisionRecorder&&) noexcept;
  DecisionRecorder& operator=(DecisionRecorder&&) noexcept;
  /// Writes what is left.
  ~DecisionRecorder();

  // As in Router. What Router refuses for itself is recorded as refused.
  Status set_policy(const Policy& policy);
  [[nodiscard]] Policy policy() const;  ///< as it was set: the router's own has another hash seed
  Result<ReplicaId> add_replica(ReplicaSpec spec, Nanos now);
  Status remove_replica(ReplicaId id, Nanos now);
  Status set_health(ReplicaId id, Health health, std::string_view reason, Nanos now);
  Status drain(ReplicaId id, Nanos until, Nanos now);
  Status update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now);
  Status clear_cache(ReplicaId id, Nanos now);
  Status signal(ReplicaId id, Signal kind, double value, Nanos now);
  Status prefix_counters(ReplicaId id, const PrefixCounters& counters, Nanos now);
  Status blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now);
  Result<std::size_t> blocks_removed(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now);
  Result<std::size_t> blocks_also_on(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now);
  Status clear_shared_store(std::string_view pool);
  Result<std::size_t> peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads, Nanos now);
  Status peer_placed(ReplicaId id, const Request& request, Nanos now);
  Decision route(const Request& request, Nanos now);
  void route_batch(std::span<const Request> requests, std::span<Decision> decisions, Nanos now);
  [[nodiscard]] Decision peek(const Request& request, Nanos now) const;
  [[nodiscard]] Explanation explain(const Request& request, Nanos now) const;
  bool first_token(Ticket ticket, Nanos now);
  bool transfer_done(Ticket ticket, Nanos now);
  bool finish(Ticket ticket, const UsageCounts& usage, Nanos now);
  bool fail(Ticket ticket, Outcome outcome, Nanos now);
  void advance(Nanos now);
  /// A cache that a recorder's router gave (Router::cached), under the same key.
  Result<RestoredCache> restore_cached(ReplicaId id, const ReplicaCache& cache, Nanos now, Nanos away = Nanos{0});
  Result<RestoredLearned> restore_learned(std::string_view pool, const LearnedPool& learned);

  /// For `Router router(recorder->calls());`: a Router whose every call is recorded, also those of a KvSource, a MetricsPoller or a ModelRouter
  /// that use it. Its caches are not exported (cached, restore_cached: unsupported): their hashes are the log's.
  /// lifetime: this recorder's; a move does not end it.
  [[nodiscard]] RouterCalls& calls() noexcept;

  /// The router inside, for what changes nothing: statistics, replicas, cached.
  [[nodiscard]] const Router& router() const noexcept;
  [[nodiscard]] DecisionLogStatistics log_statistics() const;
  /// Hands what is buffered to the operating system. errors: io: recording has ended.
  Status flush();

 private:
  struct State;
  explicit DecisionRecorder(std::shared_ptr<State> state) noexcept;
  std::shared_ptr<State> state_;  // shared with nobody but its own `calls`, which do not own it
};

}  // namespace warmroute::trace
