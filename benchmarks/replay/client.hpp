/// An asynchronous client of one OpenAI-compatible server: streaming completions over a pool of kept connections.
/// Threads: all on the io_context's one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/asio.hpp"
#include "common/text.hpp"

namespace warmroute::replay {

using Clock = std::chrono::steady_clock;

/// What became of one request. Unknown counts are -1.
struct Exchange {
  [[nodiscard]] bool ok() const noexcept { return error.empty(); }

  std::string error;       ///< empty, or a class such as "connect", "http 503", "cut stream", "short answer"
  Clock::time_point due;   ///< when it was to be sent: latencies count from here
  Clock::time_point sent;  ///< when this program got to it
  Clock::time_point first_token;
  Clock::time_point end;
  std::vector<std::int64_t> gaps_us;  ///< between tokens, real time
  std::int64_t tokens = 0;            ///< content events
  std::int64_t prompt_tokens = -1;
  std::int64_t completion_tokens = -1;
  std::int64_t cached_tokens = -1;
  std::int64_t expected_cached_tokens = -1;  ///< header x-warmroute-expected-cached-tokens: what the gateway foresaw
  std::int64_t attempts = 1;
  std::string replica;  ///< header x-warmroute-replica
  std::string text;     ///< of the answer, when it was asked for
};

class Client {
 public:
  Client(examples::asio::io_context& context, examples::BaseUrl url, std::chrono::milliseconds timeout, int retries);

  /// Resolves the host and waits until something listens there. errors: io after `patience`.
  [[nodiscard]] Status wait_until_up(std::chrono::milliseconds patience);

  /// Posts a chat completion and reads its stream. Refused and failed requests are tried again `retries` times while no
  /// token has come.
  /// shape: `due` is where latencies start; `max_tokens` tokens are expected.
  examples::Awaitable<Exchange> complete(std::string body, Clock::time_point due, std::int64_t max_tokens,
                                         bool keep_text);

 private:
  struct Connection {
    explicit Connection(examples::asio::io_context& context) : stream(context) {}
    examples::beast::tcp_stream stream;
    examples::beast::flat_buffer buffer;
    bool is_reused = false;
  };
  examples::Awaitable<std::unique_ptr<Connection>> connect(examples::error_code& error);
  examples::Awaitable<void> attempt(const std::string& body, bool keep_text, Exchange& exchange, bool& is_stale);
  examples::Awaitable<void> read_answer(std::unique_ptr<Connection> connection, bool keep_text, Exchange& exchange,
                                        bool& is_stale);

  examples::asio::io_context& context_;
  examples::BaseUrl url_;
  std::chrono::milliseconds timeout_;
  int retries_;
  std::vector<examples::tcp::endpoint> endpoints_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace warmroute::replay
