// Health from outcomes, and the probes of what is down.
#include "gateway/fleet.hpp"

#include <algorithm>
#include <cstdio>

#include "gateway/ticket_guard.hpp"
#include "gateway/upstream.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace http = examples::http;
using examples::error_code;
using examples::into;

Fleet::Fleet(Router& router, const Config& config, asio::io_context& prober)
    : router_(router), config_(config), prober_(prober) {}

Status Fleet::add_all() {
  for (const auto& replica : config_.replicas) {
    auto id = router_.add_replica(replica.spec, now());
    if (!id) return id.error();
    auto upstream = std::make_unique<Upstream>();
    upstream->number = upstreams_.size();
    upstream->id = *id;
    upstream->name = replica.spec.name;
    upstream->host = replica.host;
    upstream->port = replica.port;
    upstream->authority =
        replica.host_name.empty() ? replica.host + ":" + std::to_string(replica.port) : replica.host_name;
    upstream->path = replica.path;
    upstream->key = replica.key;
    upstream->external = replica.external;
    upstream->meter = replica.meter;
    upstream->reports = !replica.events.empty();
    if (replica.ranked) upstream->dp_rank = replica.spec.dp_rank;
    upstreams_.push_back(std::move(upstream));
  }
  return {};
}

const Upstream* Fleet::find(ReplicaId id) const noexcept {
  for (const auto& upstream : upstreams_) {
    if (upstream->id == id) return upstream.get();
  }
  return nullptr;
}

void Fleet::report(const Upstream& which, const Report& report) {
  const std::lock_guard lock(mutex_);
  Upstream& upstream = *upstreams_[which.number];
  switch (report.outcome) {
    case Outcome::finished:
      upstream.failures = 0;
      if (upstream.down) take_up(upstream);
      return;
    case Outcome::backpressure:
      upstream.failures = 0;
      upstream.busy_until = now() + report.retry_after;
      return;
    case Outcome::connect_error:
    case Outcome::replica_error:
    case Outcome::timeout:
      upstream.failures += 1;
      if (report.refused) note_refusal(upstream);
      if (!upstream.down && (report.refused || upstream.failures >= config_.failures_to_down))
        take_down(upstream, report.reason);
      return;
    case Outcome::cancelled:
    case Outcome::client_error:
    case Outcome::lease_expired: return;
  }
}

void Fleet::append_busy(std::vector<ReplicaId>& out) const {
  const std::lock_guard lock(mutex_);
  for (const auto& upstream : upstreams_) {
    if (upstream->busy_until > now()) out.push_back(upstream->id);
  }
}

const Upstream* Fleet::any_up(const std::vector<ReplicaId>& excluded) {
  const std::lock_guard lock(mutex_);
  const std::size_t first = turn_++;
  const Upstream* last_resort = nullptr;
  for (std::size_t i = 0; i < upstreams_.size(); ++i) {
    const Upstream* upstream = upstreams_[(first + i) % upstreams_.size()].get();
    if (upstream->external || std::find(excluded.begin(), excluded.end(), upstream->id) != excluded.end()) continue;
    if (!upstream->down) return upstream;
    if (last_resort == nullptr) last_resort = upstream;
  }
  return last_resort;
}

std::size_t Fleet::up_count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(upstreams_.begin(), upstreams_.end(), [](const auto& u) { return !u->down; }));
}

// A new process may have spoken to the subscriber before it is found to be up: clearing then would forget what it said.
void Fleet::note_refusal(Upstream& upstream) {
  if (!upstream.refused && upstream.reports) (void)router_.clear_cache(upstream.id, now());
  upstream.refused = true;
}

void Fleet::take_down(Upstream& upstream, const std::string& reason) {
  upstream.down = true;
  upstream.reason = reason;
  (void)router_.set_health(upstream.id, Health::down, reason, now());
  std::fprintf(stderr, "replica %s is down: %s\n", upstream.name.c_str(), reason.c_str());
  asio::post(prober_, [this, &upstream] { asio::co_spawn(prober_, probe(upstream), asio::detached); });
}

void Fleet::take_up(Upstream& upstream) {
  if (upstream.refused && !upstream.reports) (void)router_.clear_cache(upstream.id, now());
  std::fprintf(stderr, "replica %s is up again%s\n", upstream.name.c_str(),
               upstream.refused ? ", restarted: its cache is empty" : "");
  upstream.down = upstream.refused = false;
  upstream.failures = 0;
  upstream.reason.clear();
  (void)router_.set_health(upstream.id, Health::up, {}, now());
}

// Half-open: one request of our own decides, so that no client's has to.
Awaitable<void> Fleet::probe(Upstream& upstream) {
  asio::steady_timer timer(prober_);
  auto interval = config_.probe_interval;
  for (;;) {
    error_code ignored;
    timer.expires_after(interval);
    co_await timer.async_wait(into(ignored));
    interval = std::min(interval * 2, config_.probe_interval * 10);
    const Report result = co_await probe_once(upstream);
    const std::lock_guard lock(mutex_);
    if (!upstream.down) co_return;  // a request that was sent there all the same came through
    if (result.refused) note_refusal(upstream);
    if (result.outcome == Outcome::finished) {
      take_up(upstream);
      co_return;
    }
  }
}

Awaitable<Report> Fleet::probe_once(const Upstream& upstream) {
  Connection connection(prober_.get_executor());
  const auto deadline = std::chrono::steady_clock::now() + config_.connect_timeout;
  error_code error = co_await connection.connect(upstream.host, upstream.port, deadline);
  Report result{Outcome::connect_error, error == asio::error::connection_refused, Nanos{0}, error.message()};
  if (error) co_return result;
  http::request<http::empty_body> request{http::verb::get, "/health", 11};
  request.set(http::field::host, upstream.authority);
  request.set(http::field::connection, "close");
  http::response<http::string_body> response;
  connection.stream.expires_at(deadline);
  co_await http::async_write(connection.stream, request, into(error));
  if (!error) co_await http::async_read(connection.stream, connection.buffer, response, into(error));
  // A model server without /health answers 404 and lives.
  result.outcome = !error && response.result_int() < 500 ? Outcome::finished : Outcome::replica_error;
  co_return result;
}

}  // namespace warmroute::gateway
