/// One client's connection: reads its requests, writes answers piece by piece, and notices when it goes away meanwhile.
/// An answer is begun once and ended once; whether anything was sent decides whether a request may still go elsewhere.
/// threads: one, the one that runs its io_context.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/asio.hpp"
#include "gateway/counters.hpp"
#include "gateway/upstream.hpp"

namespace warmroute::gateway {

using ClientRequest = examples::http::request<examples::http::string_body>;
using ResponseHead = examples::http::response_header<>;

class Client : public std::enable_shared_from_this<Client> {
 public:
  Client(examples::tcp::socket socket, Counters& counters);

  /// Waits for the next request; answers what no request can be made of (too large, not HTTP).
  /// returns: nothing when the connection is over.
  Awaitable<std::optional<ClientRequest>> read(std::chrono::milliseconds patience, std::uint64_t max_body_bytes);

  /// From here on writes give up at `deadline`, and `on_gone` is called at once when the client closes its connection.
  void begin_exchange(const ClientRequest& request, TimePoint deadline, std::function<void()> on_gone);
  /// returns: whether the connection can take another request.
  bool end_exchange();

  /// Starts an answer whose body follows in pieces. Its length is as the head says, else it is sent in chunks.
  Awaitable<void> begin(const ResponseHead& head);
  Awaitable<void> write(std::string_view piece);
  /// The body is complete.
  Awaitable<void> end();
  /// A whole answer of the gateway's own.
  Awaitable<void> send(unsigned status, std::string_view type, const std::string& body,
                       const std::vector<std::pair<std::string, std::string>>& headers = {});
  /// The answer cannot be completed: the connection is closed, so that the client does not take half for the whole.
  void cut();

  /// Of whoever is connected. Unspecified when it has gone.
  [[nodiscard]] examples::asio::ip::address address() const;

  [[nodiscard]] bool gone() const noexcept { return gone_; }
  [[nodiscard]] bool begun() const noexcept { return status_ != 0; }
  [[nodiscard]] unsigned status() const noexcept { return status_; }
  [[nodiscard]] bool idle() const noexcept { return idle_; }
  /// The answer under way is the last one on this connection, and its head says so.
  void close_after_answer() noexcept { keep_alive_ = false; }
  void close();
  /// Ends the connection, whatever it is at, as if the client had gone.
  void abort();

 private:
  Awaitable<void> refuse(const examples::error_code& error, std::uint64_t max_body_bytes);
  void wait_for_close();
  void failed(const examples::error_code& error);

  examples::beast::tcp_stream stream_;
  examples::beast::flat_buffer buffer_;
  Counters& counters_;
  Gauge gauge_;
  std::function<void()> on_gone_;
  unsigned status_ = 0;  // of the answer that was begun; 0 = none
  unsigned version_ = 11;
  bool idle_ = true;
  bool watching_ = false;
  bool gone_ = false;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool chunked_ = false;
};

}  // namespace warmroute::gateway
