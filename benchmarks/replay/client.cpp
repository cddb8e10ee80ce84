#include "replay/client.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <thread>
#include <utility>

#include "simdjson.h"

namespace warmroute::replay {

using namespace examples;  // the asio aliases

namespace {

/// Reads the events of one streamed answer.
class StreamReader {
 public:
  StreamReader(Exchange& exchange, bool keep_text) : exchange_(exchange), keep_text_(keep_text) {}

  void feed(std::string_view bytes) {
    const auto now = Clock::now();
    splitter_.feed(bytes, [&](std::string_view data) { on_event(data, now); });
  }
  [[nodiscard]] bool is_done() const noexcept { return is_done_; }

 private:
  void on_event(std::string_view data, Clock::time_point now) {
    if (data == "[DONE]") {
      is_done_ = true;
      return;
    }
    // Thousands of these a second: the common event is recognised without parsing it.
    constexpr std::string_view kContent = "\"content\":\"";
    if (const auto at = data.find(kContent);
        at != std::string_view::npos && data.substr(at + kContent.size(), 1) != "\"") {
      on_token(data, at + kContent.size(), now);
    } else if (data.find("\"usage\":{") != std::string_view::npos) {
      read_usage(data);
    } else if (data.find("\"error\":{") != std::string_view::npos) {
      exchange_.error = "error event";
    }
  }

  void on_token(std::string_view data, std::size_t begin, Clock::time_point now) {
    if (++exchange_.tokens == 1) {
      exchange_.first_token = now;
    } else {
      exchange_.gaps_us.push_back(std::chrono::duration_cast<std::chrono::microseconds>(now - last_token_).count());
    }
    last_token_ = now;
    if (keep_text_) exchange_.text += data.substr(begin, data.find('"', begin) - begin);
  }

  void read_usage(std::string_view data) {
    simdjson::dom::parser parser;
    simdjson::dom::element document, usage;
    if (parser.parse(data.data(), data.size()).get(document) != simdjson::SUCCESS) return;
    if (document["usage"].get(usage) != simdjson::SUCCESS) return;
    std::int64_t count = 0;
    if (usage["prompt_tokens"].get(count) == simdjson::SUCCESS) exchange_.prompt_tokens = count;
    if (usage["completion_tokens"].get(count) == simdjson::SUCCESS) exchange_.completion_tokens = count;
    if (usage["prompt_tokens_details"]["cached_tokens"].get(count) == simdjson::SUCCESS)
      exchange_.cached_tokens = count;
  }

  Exchange& exchange_;
  bool keep_text_;
  bool is_done_ = false;
  Clock::time_point last_token_;
  SseSplitter splitter_;
};

}  // namespace

Client::Client(asio::io_context& context, BaseUrl url, std::chrono::milliseconds timeout, int retries)
    : context_(context), url_(std::move(url)), timeout_(timeout), retries_(retries) {}

Status Client::wait_until_up(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  error_code error;
  do {
    tcp::resolver resolver{context_};
    endpoints_.clear();
    for (const auto& entry : resolver.resolve(url_.host, std::to_string(url_.port), error))
      endpoints_.push_back(entry.endpoint());
    for (const auto& endpoint : endpoints_) {
      tcp::socket socket{context_};
      socket.connect(endpoint, error);
      if (!error) return {};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (Clock::now() < deadline);
  return Error{Code::io, url_.host + ":" + std::to_string(url_.port) + ": " + error.message(), kNoOffset};
}

Awaitable<std::unique_ptr<Client::Connection>> Client::connect(error_code& error) {
  if (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    connection->is_reused = true;
    co_return connection;
  }
  auto connection = std::make_unique<Connection>(context_);
  connection->stream.expires_after(timeout_);
  co_await connection->stream.async_connect(endpoints_, into(error));
  if (!error) {
    error_code ignored;
    connection->stream.socket().set_option(tcp::no_delay(true), ignored);
  }
  co_return connection;
}

// A kept connection that the server closed meanwhile fails before the first byte of an answer: that is no failed
// request.
Awaitable<void> Client::attempt(const std::string& body, bool keep_text, Exchange& exchange, bool& is_stale) {
  error_code error;
  std::unique_ptr<Connection> connection = co_await connect(error);
  if (error) {
    exchange.error = "connect";
    co_return;
  }
  http::request<http::span_body<const char>> request{http::verb::post, url_.path + "/v1/chat/completions", 11};
  request.set(http::field::host, url_.host + ":" + std::to_string(url_.port));
  request.set(http::field::content_type, "application/json");
  request.set(http::field::user_agent, "warmroute-replay");
  request.body() = beast::span<const char>{body.data(), body.size()};
  request.prepare_payload();
  connection->stream.expires_after(timeout_);
  co_await http::async_write(connection->stream, request, into(error));
  if (error) {
    is_stale = connection->is_reused;
    exchange.error = error == beast::error::timeout ? "timeout" : "send";
    co_return;
  }
  co_await read_answer(std::move(connection), keep_text, exchange, is_stale);
}

Awaitable<void> Client::read_answer(std::unique_ptr<Connection> connection, bool keep_text, Exchange& exchange,
                                    bool& is_stale) {
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // Boost 1.74 takes "none" for zero
  error_code error;
  co_await http::async_read_header(connection->stream, connection->buffer, parser, into(error));
  if (error) {
    is_stale = connection->is_reused && error != beast::error::timeout;
    exchange.error = error == beast::error::timeout ? "timeout" : "no answer";
    co_return;
  }
  const auto replica = parser.get()["x-warmroute-replica"];
  exchange.replica.assign(replica.data(), replica.size());
  const auto expected = parser.get()["x-warmroute-expected-cached-tokens"];
  std::from_chars(expected.data(), expected.data() + expected.size(), exchange.expected_cached_tokens);
  const unsigned status = parser.get().result_int();
  if (status != 200) exchange.error = "http " + std::to_string(status);

  StreamReader reader{exchange, keep_text};
  std::array<char, 16'384> chunk;
  while (!parser.is_done()) {
    parser.get().body().data = chunk.data();
    parser.get().body().size = chunk.size();
    co_await http::async_read_some(connection->stream, connection->buffer, parser, into(error));
    if (error == http::error::need_buffer) error = {};
    const std::size_t got = chunk.size() - parser.get().body().size;
    if (status == 200) reader.feed({chunk.data(), got});
    if (error) break;
  }
  if (error || (status == 200 && !reader.is_done())) {
    if (exchange.ok()) exchange.error = error == beast::error::timeout ? "timeout" : "cut stream";
    co_return;
  }
  if (parser.get().keep_alive()) {
    connection->stream.expires_never();
    idle_.push_back(std::move(connection));
  }
}

Awaitable<Exchange> Client::complete(std::string body, Clock::time_point due, std::int64_t max_tokens, bool keep_text) {
  Exchange exchange;
  exchange.due = due;
  exchange.sent = Clock::now();
  while (true) {
    bool is_stale = false;
    exchange.error.clear();
    co_await attempt(body, keep_text, exchange, is_stale);
    if (exchange.ok() || exchange.tokens > 0) break;
    if (is_stale) continue;
    if (exchange.attempts > retries_) break;
    ++exchange.attempts;
  }
  exchange.end = Clock::now();
  if (exchange.ok() && exchange.tokens != max_tokens) exchange.error = "short answer";
  co_return exchange;
}

}  // namespace warmroute::replay
