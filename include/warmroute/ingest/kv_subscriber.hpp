/// Subscribes to the KV events of many engines over ZeroMQ, on one thread of its own, and keeps a router right about their caches: one
/// KvSource per engine, replays requested where there is an endpoint for them. In the target warmroute::zmq (WARMROUTE_WITH_ZMQ).
/// Invariant: routing never waits for it; what an engine says reaches the router in its order.
/// Does not: decide what happens to a replica whose events stay away: its status says so, and the embedder (or policy) acts.
/// Callers with a transport of their own use KvSource instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "warmroute/ingest/kv_source.hpp"
#include "warmroute/observe/log.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {

/// Where one publisher, i.e. one data-parallel rank, is found.
struct KvEndpoint {
  ReplicaId replica;
  std::string events;        ///< e.g. "tcp://10.0.0.1:5557"; rank r of vLLM and SGLang: that port + r
  std::string replay{};      ///< e.g. "tcp://10.0.0.1:5558"; empty: gaps clear the replica's cache
  std::string topic{};       ///< prefix of the topics wanted; empty: all
  KvSourceOptions source{};  ///< `events` of it must be the policy's; `replay` and `notice` are set by the subscriber
};

struct KvSubscriberOptions {
  /// The router's clock. lifetime: `clock_user` as long as the subscriber. Without one: the system's monotonic clock.
  Nanos (*clock)(void* user) = nullptr;
  void* clock_user = nullptr;
  LogSink log{};                                          ///< called on the subscriber's thread
  std::size_t max_message_bytes = std::size_t{16} << 20;  ///< larger ones end the connection; it comes back with a gap
  int queue_messages = 100'000;  ///< per engine, within this process; beyond: the engine's are lost, which is a gap
  Nanos reconnect_from = milliseconds(100), reconnect_to = seconds(5);
};

struct KvEndpointStatus {
  ReplicaId replica;
  bool connected = false;
  std::uint64_t connects = 0;
  std::uint64_t bad_frames = 0;  ///< messages that were no [topic, seq, payload]
  KvSourceStatus source;
  std::uint64_t blocks_stored = 0, blocks_removed = 0;  ///< in events for this router
};

/// threads: any for every call. lifetime: `router` must outlive it; its end joins the thread.
class KvSubscriber {
 public:
  /// errors: io (ZeroMQ has no sockets or threads left).
  static Result<KvSubscriber> start(Router& router, KvSubscriberOptions options = {});
  ~KvSubscriber();
  KvSubscriber(KvSubscriber&&) noexcept;
  KvSubscriber& operator=(KvSubscriber&&) noexcept;

  /// Begins to listen; an engine that is not there yet is tried again with growing pauses.
  /// errors: already_exists (that replica has one), invalid_argument (no ZeroMQ endpoint, source options), io.
  Status add(const KvEndpoint& endpoint);
  /// Nothing of that replica is applied once this returns. errors: not_found.
  Status remove(ReplicaId replica);
  /// errors: not_found. At most a tenth of a second old.
  [[nodiscard]] Result<KvEndpointStatus> status(ReplicaId replica) const;
  [[nodiscard]] std::vector<KvEndpointStatus> statuses() const;

 private:
  struct Impl;
  explicit KvSubscriber(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
