/// A blocking HTTP client of few lines, and an engine on a thread of its own.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "common/asio.hpp"
#include "engine/engine.hpp"
#include "engine/server.hpp"

namespace warmroute::examples {

/// A machine on which a token takes `token_us`, with blocks of 16 tokens.
inline EngineOptions test_options(std::int64_t token_us = 10) {
  EngineOptions options;
  options.name = "t";
  options.model = "toy";
  options.service.hardware = {"test", token_us * 1'000'000, token_us * 1'000'000, 0, 0, 0, 16'000};
  options.service.block_tokens = 16;
  return options;
}

class RunningEngine {
 public:
  explicit RunningEngine(const EngineOptions& options, const std::function<void(Engine&)>& prepare = {})
      : engine_(context_, options), server_(context_, engine_) {
    if (prepare) prepare(engine_);
    const auto port = server_.listen("127.0.0.1", 0);
    port_ = port ? *port : std::uint16_t{0};
    thread_ = std::thread([this] { context_.run(); });
  }
  RunningEngine(const RunningEngine&) = delete;
  RunningEngine& operator=(const RunningEngine&) = delete;
  ~RunningEngine() {
    context_.stop();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  void shut_down(std::chrono::seconds drain) {
    asio::post(context_, [this, drain] { server_.shut_down(drain); });
  }
  /// returns: how many blocks its cache holds, between two steps.
  [[nodiscard]] std::int64_t cached_blocks() {
    return between_steps([](Engine& engine) { return engine.cached_blocks(); });
  }
  /// returns: what `look` does, called on the engine's thread.
  template <class Look>
  std::invoke_result_t<Look, Engine&> between_steps(Look&& look) {
    std::promise<std::invoke_result_t<Look, Engine&>> answer;
    asio::post(context_, [&] { answer.set_value(look(engine_)); });
    return answer.get_future().get();
  }
  /// Waits until the server has ended by itself.
  void join() {
    thread_.join();
    thread_ = std::thread([] {});
  }

 private:
  asio::io_context context_{1};
  Engine engine_;
  Server server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

struct Answer {
  unsigned status = 0;
  std::string body;
  bool keeps_alive = false;
  std::string content_type;
};

class BlockingClient {
 public:
  explicit BlockingClient(std::uint16_t port) : socket_(context_) {
    socket_.connect({asio::ip::make_address("127.0.0.1"), port});
  }

  void send(http::verb method, const std::string& target, const std::string& body, unsigned version = 11) {
    http::request<http::string_body> request{method, target, version};
    request.set(http::field::host, "test");
    request.body() = body;
    request.prepare_payload();
    http::write(socket_, request);
  }
  Answer read() {
    http::response_parser<http::string_body> parser;
    parser.body_limit(std::uint64_t{1} << 30);
    error_code error;
    http::read(socket_, buffer_, parser, error);
    if (error) return {};
    const auto type = parser.get()[http::field::content_type];
    return {parser.get().result_int(), parser.get().body(), parser.get().keep_alive(),
            std::string(type.data(), type.size())};
  }
  Answer get(const std::string& target) {
    send(http::verb::get, target, "");
    return read();
  }
  Answer post(const std::string& target, const std::string& body) {
    send(http::verb::post, target, body);
    return read();
  }
  void hang_up() { socket_.close(); }

 private:
  asio::io_context context_;
  tcp::socket socket_;
  beast::flat_buffer buffer_;
};

}  // namespace warmroute::examples
