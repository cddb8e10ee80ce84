// Connections and their pool, see upstream.hpp.
#include "gateway/upstream.hpp"

#include <sys/socket.h>

#include <utility>

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace beast = examples::beast;
using examples::error_code;
using examples::into;
using examples::tcp;

Awaitable<error_code> Connection::connect(const std::string& host, std::uint16_t port, TimePoint deadline) {
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  stream.expires_at(deadline);
  if (!error) {
    co_await stream.async_connect(tcp::endpoint(address, port), into(error));
  } else {
    tcp::resolver resolver(stream.get_executor());
    const auto found = co_await resolver.async_resolve(host, std::to_string(port), into(error));
    if (!error) co_await stream.async_connect(found, into(error));
  }
  if (!error) stream.socket().set_option(tcp::no_delay(true), error);
  co_return error;
}

void Connection::close() { stream.close(); }

bool Connection::idle_and_open() {
  if (!stream.socket().is_open() || buffer.size() != 0) return false;
  char byte = 0;
  const auto got = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

Pool::~Pool() = default;

std::shared_ptr<Connection> Pool::take(const Upstream& upstream) {
  auto& idle = idle_[upstream.number];
  const auto oldest = std::chrono::steady_clock::now() - kLongestIdle;
  while (!idle.empty()) {
    auto connection = std::move(idle.back());  // the one used last: the others may go cold and be closed
    idle.pop_back();
    if (connection->idle_since > oldest && connection->idle_and_open()) {
      connection->reused = true;
      counters_.upstream_reused.fetch_add(1, std::memory_order_relaxed);
      return connection;
    }
    counters_.upstream_stale.fetch_add(1, std::memory_order_relaxed);
  }
  return nullptr;
}

std::shared_ptr<Connection> Pool::make() {
  counters_.upstream_opened.fetch_add(1, std::memory_order_relaxed);
  counters_.upstream_connections.fetch_add(1, std::memory_order_relaxed);
  return {new Connection(io_.get_executor()), [&gauge = counters_.upstream_connections](Connection* connection) {
            gauge.fetch_sub(1, std::memory_order_relaxed);
            delete connection;
          }};
}

void Pool::give_back(const Upstream& upstream, std::shared_ptr<Connection> connection) {
  auto& idle = idle_[upstream.number];
  if (idle.size() >= kMostIdle) return;
  connection->stream.expires_never();
  connection->idle_since = std::chrono::steady_clock::now();
  idle.push_back(std::move(connection));
}

}  // namespace warmroute::gateway
