/// Connections to model servers and the pool that keeps idle ones open. One pool per thread: nothing here is shared or locked.
/// A kept-alive connection may be closed by the other side at any moment. What can be seen is discarded on taking; what cannot,
/// shows as a failure before the first byte of an answer, and the caller tries once more on a fresh connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/asio.hpp"
#include "gateway/counters.hpp"
#include "gateway/fleet.hpp"

namespace warmroute::gateway {

using TimePoint = std::chrono::steady_clock::time_point;

struct Connection {
  explicit Connection(const examples::asio::any_io_executor& executor) : stream(executor) {}

  /// returns: no error, or why it failed: beast::error::timeout after the deadline, operation_aborted after close().
  /// lifetime: `host` until then.
  Awaitable<examples::error_code> connect(const std::string& host, std::uint16_t port, TimePoint deadline);
  /// Ends whatever operation is under way.
  void close();
  /// returns: false when the other side has closed it, or sent what nobody asked for.
  [[nodiscard]] bool idle_and_open();

  examples::beast::tcp_stream stream;
  examples::beast::flat_buffer buffer;
  TimePoint idle_since{};
  bool broken_write = false;  ///< the request did not go out whole: never used again
  bool reused = false;
};

class Pool {
 public:
  Pool(examples::asio::io_context& io, std::size_t upstreams, Counters& counters)
      : io_(io), idle_(upstreams), counters_(counters) {}
  ~Pool();

  /// returns: an idle connection to that replica, or null.
  [[nodiscard]] std::shared_ptr<Connection> take(const Upstream& upstream);
  /// returns: a connection that is not connected yet. Every one counts in the gauge until it is gone.
  [[nodiscard]] std::shared_ptr<Connection> make();
  /// Keeps a connection whose answer was read to its end.
  void give_back(const Upstream& upstream, std::shared_ptr<Connection> connection);

 private:
  static constexpr std::size_t kMostIdle = 256;  // per replica and thread
  static constexpr auto kLongestIdle = std::chrono::seconds(60);

  examples::asio::io_context& io_;
  std::vector<std::vector<std::shared_ptr<Connection>>> idle_;
  Counters& counters_;
};

}  // namespace warmroute::gateway
