/// The HTTP front of the simulated engine: the endpoints of OpenAI, Anthropic, Gemini and Bedrock (forms.hpp), vLLM's /tokenize,
/// /health and /metrics; with SGLang's names its /v1/loads, too.
/// Threads: all on the io_context's one thread; a connection is a coroutine. A client that goes away frees its work at
/// once.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/asio.hpp"
#include "engine/engine.hpp"
#include "engine/forms.hpp"
#include "engine/kv_transfer.hpp"
#include "engine/responses.hpp"
#include "warmroute/ingest/request_body.hpp"

namespace warmroute::examples {

class Server {
 public:
  using HttpRequest = http::request<http::string_body>;
  using HttpResponse = http::response<http::string_body>;

  Server(asio::io_context& context, Engine& engine) : context_(context), engine_(engine), acceptor_(context) {}

  /// Binds and begins to accept. shape: port 0 takes any free one. returns: the port; errors: io.
  [[nodiscard]] Result<std::uint16_t> listen(const std::string& address, std::uint16_t port);
  /// Takes no new connections, lets running answers end (at most `drain`), then stops the io_context.
  void shut_down(std::chrono::seconds drain);

 private:
  /// What one completion request asks for, apart from its body.
  struct Order {
    AnswerShape shape;
    AnswerForm form = AnswerForm::openai;
    Prompt prompt;  ///< the first one
    std::int64_t input_tokens = 0;
    std::int64_t output_tokens = 0;
    std::vector<std::uint64_t> embedding_seeds;  ///< one per prompt
    bool is_stream = false;
    KvTransfer transfer;
  };

  Awaitable<void> accept_connections();
  Awaitable<void> serve_connection(tcp::socket socket);
  Awaitable<bool> read_request(tcp::socket& socket, beast::flat_buffer& buffer, HttpRequest& request);
  /// returns: whether the connection can go on.
  Awaitable<bool> serve_request(tcp::socket& socket, const HttpRequest& request);
  Awaitable<bool> serve_completion(tcp::socket& socket, const HttpRequest& request, BodyApi api);
  /// Of a path that names its model: Gemini, Bedrock.
  Awaitable<bool> serve_model_path(tcp::socket& socket, const HttpRequest& request, ModelPath path);
  Awaitable<bool> serve_order(tcp::socket& socket, const HttpRequest& request, Order order);
  Awaitable<bool> send_stream(tcp::socket& socket, const HttpRequest& request, std::shared_ptr<Job> job, Order order);
  Awaitable<bool> send_whole(tcp::socket& socket, const HttpRequest& request, std::shared_ptr<Job> job, Order order);
  Awaitable<bool> send(tcp::socket& socket, const HttpRequest& request, http::status status, std::string body,
                       const char* content_type = "application/json");
  Awaitable<void> drain_then_stop(std::chrono::seconds drain);

  [[nodiscard]] RequestBodyOptions body_options() const;
  [[nodiscard]] Order read_order(BodyApi api, const ParsedBody& body) const;
  [[nodiscard]] Result<std::string> tokenize(std::string_view body);
  [[nodiscard]] std::string models() const;
  [[nodiscard]] bool keeps_alive(const HttpRequest& request) const { return request.keep_alive() && !is_draining_; }

  asio::io_context& context_;
  Engine& engine_;
  tcp::acceptor acceptor_;
  RequestBodyParser parser_;
  bool is_draining_ = false;
  tcp::endpoint endpoint_;  ///< where it listens
};

}  // namespace warmroute::examples
