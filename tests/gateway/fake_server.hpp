/// A model server whose every move is scripted: resets, silence, broken answers, dripping streams. One thread per connection.
/// And a blocking client, and a wait for conditions with a deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/asio.hpp"

namespace warmroute::testing {

/// returns: whether the condition came true before the deadline.
bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within = std::chrono::seconds(10));

/// One request as the script sees it.
struct FakeCall {
  int number = 0;                ///< of the server, from 1
  int number_on_connection = 0;  ///< from 1
  bool is_reset = false;
  examples::http::request<examples::http::string_body> request;
  examples::tcp::socket& socket;

  void write(std::string_view raw);
  /// A whole answer with Content-Length.
  void answer(int status, std::string_view body, std::string_view more_heads = {});
  void begin_stream();                 ///< the head of an answer in chunks
  void piece(std::string_view bytes);  ///< one chunk
  void end_stream();
  void reset();  ///< RST, not FIN, as soon as the script returns
  void close();
  /// returns: whether the gateway closed the connection in time.
  bool closed_by_peer(std::chrono::milliseconds within = std::chrono::seconds(10));
};

class FakeServer {
 public:
  using Script = std::function<void(FakeCall&)>;
  /// Listens on a free port, or on a given one. GET /health is answered with `health`, without the script.
  explicit FakeServer(Script script, std::uint16_t port = 0);
  ~FakeServer();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::atomic<int> calls{0};
  std::atomic<int> connections{0};
  /// 200 and this body; empty: 503. threads: any.
  void set_health(std::string body) {
    const std::lock_guard lock(mutex_);
    health_ = std::move(body);
  }

 private:
  struct Peer;
  void accept();
  void serve(Peer& peer);

  Script script_;
  std::uint16_t port_ = 0;
  examples::asio::io_context io_;
  examples::tcp::acceptor acceptor_;
  std::mutex mutex_;
  bool stopping_ = false;
  std::string health_ = "{}";
  std::vector<std::unique_ptr<Peer>> peers_;
  std::thread thread_;
};

struct Answer {
  unsigned status = 0;  ///< 0: no answer came
  bool complete = false;
  std::string body;
  examples::http::fields heads;
  [[nodiscard]] std::string head(std::string_view name) const;
};

/// One connection of a client.
class TestClient {
 public:
  explicit TestClient(std::uint16_t port);
  [[nodiscard]] bool connected() const noexcept { return connected_; }
  void send(std::string_view method, std::string_view target, std::string_view body, std::string_view more_heads = {});
  Answer receive(bool head_request = false);
  /// Reads until `text` was seen. returns: all that was read.
  std::string read_until(std::string_view text);
  void close();

 private:
  examples::asio::io_context io_;
  examples::tcp::socket socket_;
  examples::beast::flat_buffer buffer_;
  bool connected_ = false;
};

Answer call(std::uint16_t port, std::string_view method, std::string_view target, std::string_view body = {},
            std::string_view more_heads = {});

std::string chat_body(std::string_view text, bool stream = false, std::string_view model = "m");
/// One event of a stream of chat completions.
std::string chat_event(std::string_view content);

/// A port that nobody listens on.
std::uint16_t free_port();

}  // namespace warmroute::testing
