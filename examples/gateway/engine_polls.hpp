/// What the model servers say of themselves on their metrics pages, asked for by a thread of the library's (warmroute::MetricsPoller).
/// Replicas behind one address are ranks of one server: their page is asked for once. A replica may have two: metrics, and loads apart.
/// Does not: take a replica down whose page stays away; /replicas and /metrics show since when.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/config.hpp"
#include "gateway/fleet.hpp"
#include "warmroute/ingest/metrics_poller.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

/// threads: start and stop one at a time; the rest any.
class EnginePolls {
 public:
  /// Nothing is started where the configuration says nothing of it. errors: as MetricsPoller::start and add.
  /// lifetime: `router` until stop().
  Status start(Router& router, const Fleet& fleet, const Config& config, LogSink log);
  /// Joins the thread. Calls after the first one do nothing.
  void stop() { poller_.reset(); }

  /// returns: by target; nothing without polling.
  [[nodiscard]] std::vector<MetricsTargetStatus> statuses() const;

 private:
  std::unique_ptr<MetricsPoller> poller_;
};

/// returns: where the pages of a replica are, each with its name in the configuration.
std::vector<std::pair<std::string_view, std::string>> polled_urls(const ReplicaConfig& replica);
/// Appends `,"metrics":{...}`, and `,"loads":{...}` if it has such a page, to a replica's JSON object if its server is polled.
void append_polls_json(const std::vector<MetricsTargetStatus>& statuses, const ReplicaConfig& replica,
                       std::string& out);
/// Appends the families `warmroute_gateway_poll*` to a Prometheus page; none without polling.
void append_polls_prometheus(const std::vector<MetricsTargetStatus>& statuses, std::string& out);

}  // namespace warmroute::gateway
