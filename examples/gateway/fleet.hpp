/// The replicas and how they are, judged by what happens to requests: there is no polling of healthy replicas.
///   success                       forgets earlier failures; ends a downtime
///   client_error (4xx), cancelled say nothing about the replica
///   backpressure (429, 503, 529)  busy, not broken: passed over until its retry-after, if there is anybody else
///   connection refused            nobody listens: down at once
///   connect_error, replica_error, timeout   down after `failures_to_down` in a row
/// A replica that is down is probed (GET /health) at growing intervals and taken up again by the first answer. What the router
/// believes of its cache stays over a flap; where a connection was refused, the process was gone and its cache with it. That is
/// forgotten when the replica is back, or at once where KV events tell what a new process holds.
/// threads: any. Does not: add or remove replicas while it runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/asio.hpp"
#include "gateway/config.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

using examples::Awaitable;

/// One model server. The first part never changes after the start; the second is guarded by Fleet's mutex.
struct Upstream {
  std::size_t number = 0;  ///< place in the fleet, 0..size-1
  ReplicaId id;
  std::string name, host;
  std::uint16_t port = 0;
  std::string authority;  ///< for the Host header
  std::string path;       ///< of its base URL
  std::string key;        ///< what it is sent as key; empty: the common one
  bool external = false;  ///< somebody else's: it is told nothing of the client, and gets what is routed there alone
  std::optional<std::uint32_t> dp_rank;  ///< told to the model server where the configuration names it
  MeterProfile meter;                    ///< of its answers
  bool reports = false;                  ///< its engine publishes KV events

  bool down = false;
  bool refused = false;       ///< a connection was refused in this downtime
  std::int64_t failures = 0;  ///< in a row
  Nanos busy_until{0};
  std::string reason;
};

/// How one attempt ended, as far as the replica's health goes.
struct Report {
  Outcome outcome = Outcome::finished;
  bool refused = false;
  Nanos retry_after{0};
  std::string reason;
};

class Fleet {
 public:
  /// `prober` runs the probes. lifetime: router, config and prober outlive the fleet.
  Fleet(Router& router, const Config& config, examples::asio::io_context& prober);

  /// Puts every replica of the configuration into the router's table. errors: as Router::add_replica.
  Status add_all();

  [[nodiscard]] const Upstream* find(ReplicaId id) const noexcept;
  /// shape: `number` is the replica's place in the configuration.
  [[nodiscard]] const Upstream& at(std::size_t number) const noexcept { return *upstreams_[number]; }
  [[nodiscard]] std::size_t size() const noexcept { return upstreams_.size(); }

  void report(const Upstream& upstream, const Report& report);

  /// Appends the replicas that asked to be left alone for a while.
  void append_busy(std::vector<ReplicaId>& out) const;
  /// returns: some replica of our own that is up, in turn, for requests that are not routed; null when none is left.
  [[nodiscard]] const Upstream* any_up(const std::vector<ReplicaId>& excluded);

  /// returns: how many are not down.
  [[nodiscard]] std::size_t up_count() const;

 private:
  void note_refusal(Upstream& upstream);
  void take_down(Upstream& upstream, const std::string& reason);
  void take_up(Upstream& upstream);
  Awaitable<void> probe(Upstream& upstream);
  Awaitable<Report> probe_once(const Upstream& upstream);

  Router& router_;
  const Config& config_;
  examples::asio::io_context& prober_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Upstream>> upstreams_;
  std::atomic<std::size_t> turn_{0};
};

}  // namespace warmroute::gateway
