// Threads, listeners and the end of it all.
#include "gateway/gateway.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/toy_tokenizer.hpp"
#include "gateway/admin.hpp"
#include "gateway/client.hpp"
#include "gateway/exchange.hpp"
#include "gateway/fleet.hpp"
#include "gateway/heads.hpp"
#include "gateway/worker.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace http = examples::http;
using examples::error_code;
using examples::into;
using examples::tcp;

RequestBodyOptions Shared::body_options() const {
  RequestBodyOptions options = warmroute::body_options(router.policy());
  options.max_bytes = static_cast<std::size_t>(config.max_body_bytes);
  if (config.tokenizer == "toy") options.tokenizer = {nullptr, examples::toy_encode};
  return options;
}

namespace {

void log_to_stderr(void*, LogLevel level, std::string_view message) {
  if (level == LogLevel::debug) return;
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(log_level_name(level).size()), log_level_name(level).data(),
               static_cast<int>(message.size()), message.data());
}

RouterOptions router_options() {
  RouterOptions options;
  options.log = {nullptr, log_to_stderr};
  return options;
}

Status listen(tcp::acceptor& acceptor, const std::string& address, std::uint16_t port) {
  error_code error;
  const tcp::endpoint endpoint(asio::ip::make_address(address, error), port);
  if (!error) acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  return Error{Code::io, "cannot listen on " + address + ":" + std::to_string(port) + ": " + error.message(),
               kNoOffset};
}

}  // namespace

// Order matters: what is declared first is destroyed last, and frames of coroutines, which hold tickets and connections, die with
// their worker's io_context.
struct Gateway::Impl {
  explicit Impl(Config given)
      : config(std::move(given)),
        router(router_options()),
        retries(config.retry_percent, config.retry_start, config.retry_burst),
        upkeep_io(1),
        fleet(router, config, upkeep_io),
        acceptor(upkeep_io),
        admin_acceptor(upkeep_io) {}

  Status open();
  Status open_books();
  void keep_books();
  Awaitable<void> accept(tcp::acceptor& from, bool serves_clients, bool serves_admin);
  Awaitable<void> serve(Worker& worker, std::shared_ptr<Client> client, bool serves_clients, bool serves_admin);
  Awaitable<bool> answer(Worker& worker, Client& client, const ClientRequest& request, bool serves_clients,
                         bool serves_admin);
  Awaitable<void> upkeep();
  void close_clients(bool idle_only);
  Farewell stop();

  const Config config;
  Router router;
  std::optional<ModelRouter> models;
  Counters counters;
  RetryBudget retries;
  std::atomic<bool> stopping{false};
  std::atomic<bool> closed{false};
  std::unique_ptr<Accounting> books;
  std::unique_ptr<ControlFeed> control;          // writes into books and router
  std::vector<std::unique_ptr<Worker>> workers;  // outlive the acceptors, which hold a socket of theirs
  asio::io_context upkeep_io;                    // accepts, probes, and keeps the router tidy
  Fleet fleet;
  std::unique_ptr<Peers> peers;
  std::unique_ptr<PeerShares> shares;  // a reader of peers
  EngineEvents events;                 // writes into the router, on a thread of its own
  EnginePolls polls;                   // the same
  tcp::acceptor acceptor;
  tcp::acceptor admin_acceptor;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> work;
  std::vector<std::thread> threads;
};

Status Gateway::Impl::open() {
  Policy policy = config.policy;
  if (config.models) policy.route_when_all_down = false;  // a pool that is down gives way to the next one
  if (auto set = router.set_policy(policy); !set) return set;
  if (auto added = fleet.add_all(); !added) return added;
  if (config.models) {
    models.emplace(router);
    if (auto set = models->set_map(*config.models); !set) return set;
  }
  if (auto opened = open_books(); !opened) return opened;
  if (config.peers.on()) {
    auto opened = Peers::open(config, fleet.size(), upkeep_io);
    if (!opened) return opened.error();
    peers = std::move(*opened);
    shares = std::make_unique<PeerShares>(router, fleet, *peers, config, upkeep_io);
  }
  if (auto started = events.start(router, fleet, config, router_options().log); !started) return started;
  if (auto started = polls.start(router, fleet, config, router_options().log); !started) return started;
  if (config.tokenizer == "none" && !events.statuses().empty()) {
    std::fprintf(stderr,
                 "warning: KV events name blocks of token ids and there is no --tokenizer: "
                 "only prompts that come as token ids will be matched\n");
  }
  if (auto open = listen(acceptor, config.address, config.port); !open) return open;
  const bool apart = config.admin_port >= 0;
  if (apart) {
    if (auto open = listen(admin_acceptor, config.address, static_cast<std::uint16_t>(config.admin_port)); !open)
      return open;
  }
  for (const auto& replica : config.replicas) {
    if (replica.spec.role == Role::prefill && policy.disaggregate == Disaggregate::never)
      std::fprintf(
          stderr,
          "warning: replica %s has the role prefill and will get nothing: policy \"disaggregate\" is \"never\"\n",
          replica.spec.name.c_str());
  }
  const Shared shared{config,  router,      models ? &*models : nullptr,
                      fleet,   counters,    retries,
                      events,  polls,       *books,
                      control, peers.get(), shares.get(),
                      stopping};
  for (std::int64_t i = 0; i < config.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(shared, fleet.size() + config.peers.members.size()));
    work.emplace_back(workers.back()->io.get_executor());
  }
  asio::co_spawn(upkeep_io, accept(acceptor, true, !apart), asio::detached);
  if (apart) asio::co_spawn(upkeep_io, accept(admin_acceptor, false, true), asio::detached);
  asio::co_spawn(upkeep_io, upkeep(), asio::detached);
  if (peers) peers->start();
  if (shares) shares->start();
  for (auto& worker : workers) threads.emplace_back([&io = worker->io] { io.run(); });
  threads.emplace_back([this] { upkeep_io.run(); });
  threads.emplace_back([this] { keep_books(); });
  return {};
}

/// Prices and journal first, then control, whose limits the journal's past is charged to.
Status Gateway::Impl::open_books() {
  std::vector<std::string> names;
  for (const auto& replica : config.replicas) names.push_back(replica.spec.pool);
  if (config.models) {
    for (const auto& model : config.models->models) names.push_back(model.name);
  }
  const Nanos max_request{(config.total_timeout.count()) * 1'000'000 + config.usage.hangup.max_drain.value};
  auto opened = Accounting::open(config.usage, names, max_request, router_options().log);
  if (!opened) return opened.error();
  books = std::move(*opened);
  if (!config.usage.control.empty()) {
    auto started = ControlFeed::start(config.usage, *books, router, router_options().log);
    if (!started) return started.error();
    control = std::move(*started);
  }
  return books->begin_serving();
}

/// Hands connections to the workers in turn; from then on each stays on its worker's thread.
Awaitable<void> Gateway::Impl::accept(tcp::acceptor& from, bool serves_clients, bool serves_admin) {
  for (std::size_t next = 0; !stopping; next = (next + 1) % workers.size()) {
    Worker& worker = *workers[next];
    tcp::socket socket(worker.io);
    error_code error;
    co_await from.async_accept(socket, into(error));
    if (stopping) co_return;
    if (error) {  // most likely out of file descriptors: some will come back
      std::fprintf(stderr, "accept: %s\n", error.message().c_str());
      asio::steady_timer pause(upkeep_io, std::chrono::milliseconds(100));
      co_await pause.async_wait(into(error));
      continue;
    }
    auto client = std::make_shared<Client>(std::move(socket), counters);
    // Coroutines begin on the thread that runs them.
    asio::post(worker.io, [this, &worker, client, serves_clients, serves_admin] {
      asio::co_spawn(worker.io, serve(worker, client, serves_clients, serves_admin), asio::detached);
    });
  }
}

/// One connection: request after request, until either side has had enough.
Awaitable<void> Gateway::Impl::serve(Worker& worker, std::shared_ptr<Client> client, bool serves_clients,
                                     bool serves_admin) {
  worker.clients.insert(client.get());
  for (bool keep = true; keep && !stopping;) {
    const auto request =
        co_await client->read(config.client_timeout, static_cast<std::uint64_t>(config.max_body_bytes));
    if (!request) break;
    try {
      keep = co_await answer(worker, *client, *request, serves_clients, serves_admin);
    } catch (const std::exception& e) {  // no memory, say: this client loses its connection, nobody else loses anything
      std::fprintf(stderr, "error: a request ended by an exception: %s\n", e.what());
      client->end_exchange();
      keep = false;
    }
  }
  worker.clients.erase(client.get());
  client->close();
}

/// returns: whether the connection can take another request.
Awaitable<bool> Gateway::Impl::answer(Worker& worker, Client& client, const ClientRequest& request, bool serves_clients,
                                      bool serves_admin) {
  const auto target = view(request.target());
  const bool own = is_admin_path(target) || (shares && PeerShares::is_path(target));
  // What these ask for is not a proxy's to pass on: the one would show what other hops added, the other opens tunnels.
  const bool unserved = request.method() == http::verb::trace || request.method() == http::verb::connect;
  if (serves_clients && !own && !unserved) {
    Exchange exchange(worker, client, request);
    co_await exchange.run();
    co_return client.end_exchange();
  }
  client.begin_exchange(request, std::chrono::steady_clock::now() + config.client_timeout, nullptr);
  if (shares && serves_clients && PeerShares::is_path(target)) {
    co_await client.send(shares->take(request), "text/plain", "");
    co_return client.end_exchange();
  }
  const bool may = serves_admin || target == "/health";  // that one is for load balancers in front
  // Policy and books are for operators: on a port that strangers reach, they are neither shown nor changed.
  const bool strangers = serves_clients && !asio::ip::make_address(config.address).is_loopback();
  AdminAnswer answer;
  answer.status = 404;
  const bool private_page =
      target.substr(0, 7) == "/admin/" || target.substr(0, 6) == "/usage" || target.substr(0, 9) == "/gateways";
  if (unserved) {
    answer = {405, "application/json",
              "{\"error\":{\"message\":\"TRACE and CONNECT are not served\",\"code\":\"method_not_allowed\"}}\n"};
  } else if (may && strangers && private_page) {
    answer = {403, "application/json",
              "{\"error\":{\"message\":\"set admin_port to reach this\",\"code\":\"not_permitted\"}}\n"};
  } else if (may) {
    answer = answer_admin(worker, request);
  }
  co_await client.send(answer.status, answer.type, answer.body);
  co_return client.end_exchange();
}

/// Leases of tickets, TTLs, queued placements: what the router leaves for idle times.
Awaitable<void> Gateway::Impl::upkeep() {
  asio::steady_timer timer(upkeep_io);
  for (;;) {
    error_code error;
    timer.expires_after(std::chrono::milliseconds(100));
    co_await timer.async_wait(into(error));
    router.advance(now());
  }
}

/// On a thread of its own: what waits for the disk must hold up nobody.
void Gateway::Impl::keep_books() {
  while (!closed) {
    books->upkeep();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void Gateway::Impl::close_clients(bool idle_only) {
  for (auto& worker : workers) {
    asio::post(worker->io, [&clients = worker->clients, idle_only] {
      for (Client* client : clients) {
        if (!idle_only || client->idle()) client->abort();
      }
    });
  }
}

Farewell Gateway::Impl::stop() {
  Farewell farewell;
  farewell.open_at_stop = counters.requests_in_flight.load();
  stopping = true;
  asio::post(upkeep_io, [this] {
    error_code ignored;
    acceptor.close(ignored);
    admin_acceptor.close(ignored);
  });
  close_clients(true);
  const auto wait_for = [&](std::chrono::steady_clock::time_point deadline) {
    while (counters.client_connections.load() > 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  wait_for(std::chrono::steady_clock::now() + config.shutdown_timeout);
  farewell.cut = counters.requests_in_flight.load();
  close_clients(false);
  wait_for(std::chrono::steady_clock::now() + std::chrono::seconds(2));
  for (auto& worker : workers) worker->io.stop();
  upkeep_io.stop();
  closed = true;
  for (auto& thread : threads) thread.join();
  threads.clear();
  events.stop();
  polls.stop();
  books->close(seconds(2));
  return farewell;
}

Gateway::Gateway(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Gateway::~Gateway() {
  if (!impl_->threads.empty()) impl_->stop();
}

Result<std::unique_ptr<Gateway>> Gateway::start(Config config) {
  auto impl = std::make_unique<Impl>(std::move(config));
  if (auto open = impl->open(); !open) return open.error();
  return std::unique_ptr<Gateway>(new Gateway(std::move(impl)));
}

std::uint16_t Gateway::port() const noexcept { return impl_->acceptor.local_endpoint().port(); }
std::uint16_t Gateway::admin_port() const noexcept {
  return impl_->config.admin_port < 0 ? port() : impl_->admin_acceptor.local_endpoint().port();
}
const Counters& Gateway::counters() const noexcept { return impl_->counters; }
Router& Gateway::router() noexcept { return impl_->router; }
Farewell Gateway::stop() { return impl_->stop(); }

}  // namespace warmroute::gateway
