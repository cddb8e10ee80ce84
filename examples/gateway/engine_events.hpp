/// What the model servers say of their own caches: a subscription per replica that has an address for it, read by a thread of the
/// library's (warmroute::KvSubscriber). A replica whose engine has spoken is no longer guessed at.
/// In a build without ZeroMQ the class is the same; start() says what is missing.
/// Does not: stop routing to a replica whose events stay away; /replicas and /metrics show since when.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/fleet.hpp"
#include "warmroute/ingest/kv_subscriber.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

/// threads: start and stop one at a time; the rest any.
class EngineEvents {
 public:
  EngineEvents();
  ~EngineEvents();
  EngineEvents(const EngineEvents&) = delete;
  EngineEvents& operator=(const EngineEvents&) = delete;

  /// Subscribes for every replica of the configuration that names an address; nothing is started when none does.
  /// errors: as KvSubscriber::start and add; unsupported in a build without ZeroMQ. lifetime: `router` until stop().
  Status start(Router& router, const Fleet& fleet, const Config& config, LogSink log);
  /// Joins the thread. Calls after the first one do nothing.
  void stop();

  /// returns: by replica, a tenth of a second old at most; nothing for those without a subscription.
  [[nodiscard]] std::vector<KvEndpointStatus> statuses() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Appends `,"events":{...}` to a replica's JSON object if it has a subscription.
void append_events_json(const std::vector<KvEndpointStatus>& statuses, ReplicaId replica, Nanos now, std::string& out);
/// Appends the families `warmroute_gateway_events_*` to a Prometheus page; none without subscriptions.
void append_events_prometheus(const std::vector<KvEndpointStatus>& statuses, const Fleet& fleet, Nanos now,
                              std::string& out);

}  // namespace warmroute::gateway
