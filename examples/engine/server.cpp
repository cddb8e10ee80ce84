#include "engine/server.hpp"

#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "common/text.hpp"
#include "common/toy_tokenizer.hpp"

namespace warmroute::examples {
namespace {

constexpr std::uint64_t kMaxBodyBytes = std::uint64_t{32} << 20;

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Waits for the client to hang up while its answer is made, and frees the job then. Bytes of a next request end the
/// watch.
Awaitable<void> watch_client(tcp::socket& socket, Engine& engine, std::shared_ptr<Job> job,
                             std::shared_ptr<bool> answered) {
  error_code error;
  co_await socket.async_wait(tcp::socket::wait_read, into(error));
  if (*answered) co_return;  // the socket may be gone
  char byte = 0;
  if (error || ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) engine.cancel(job);
}

/// Ends the watch of one answer when it leaves the scope.
class ClientWatch {
 public:
  ClientWatch(tcp::socket& socket, Engine& engine, const std::shared_ptr<Job>& job) : socket_(socket) {
    asio::co_spawn(socket.get_executor(), watch_client(socket, engine, job, answered_), asio::detached);
  }
  ClientWatch(const ClientWatch&) = delete;
  ClientWatch& operator=(const ClientWatch&) = delete;
  ~ClientWatch() {
    *answered_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  }

 private:
  tcp::socket& socket_;
  std::shared_ptr<bool> answered_ = std::make_shared<bool>(false);
};

Server::HttpResponse make_response(const Server::HttpRequest& request, http::status status, const char* content_type,
                                   bool keep_alive) {
  Server::HttpResponse response{status, request.version()};
  response.set(http::field::server, "warmroute-engine");
  response.set(http::field::content_type, content_type);
  response.keep_alive(keep_alive);
  return response;
}

CompletionKind kind_of(BodyApi api) {
  if (api == BodyApi::chat || api == BodyApi::responses || api == BodyApi::messages) return CompletionKind::chat;
  return api == BodyApi::embeddings ? CompletionKind::embedding : CompletionKind::text;
}

AnswerUsage usage_of(const Job& job, const AnswerShape& shape) {
  const bool is_embedding = shape.kind == CompletionKind::embedding;
  return {job.input_tokens, is_embedding ? 0 : job.generated * static_cast<std::int64_t>(shape.choices),
          job.cached_tokens};
}

}  // namespace

Result<std::uint16_t> Server::listen(const std::string& address, std::uint16_t port) {
  error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return Error{Code::invalid_value, "\"" + address + "\" is not an IP address", kNoOffset};
  const tcp::endpoint endpoint{ip, port};
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return Error{Code::io, "cannot listen on " + address + ":" + std::to_string(port) + ": " + error.message(),
                 kNoOffset};
  asio::co_spawn(context_, accept_connections(), asio::detached);
  endpoint_ = acceptor_.local_endpoint();
  return endpoint_.port();
}

void Server::shut_down(std::chrono::seconds drain) {
  is_draining_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  asio::co_spawn(context_, drain_then_stop(drain), asio::detached);
}

Awaitable<void> Server::drain_then_stop(std::chrono::seconds drain) {
  const auto deadline = std::chrono::steady_clock::now() + drain;
  asio::steady_timer pause{context_};
  error_code ignored;
  do {  // at least one pause: what was answered just now gets written
    pause.expires_after(std::chrono::milliseconds(50));
    co_await pause.async_wait(into(ignored));
  } while (engine_.jobs() > 0 && std::chrono::steady_clock::now() < deadline);
  context_.stop();
}

Awaitable<void> Server::accept_connections() {
  while (acceptor_.is_open()) {
    error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(into(error));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // out of descriptors, most likely: wait for some to come back
      asio::steady_timer pause{context_, std::chrono::milliseconds(100)};
      co_await pause.async_wait(into(error));
      continue;
    }
    socket.set_option(tcp::no_delay(true), error);
    asio::co_spawn(context_, serve_connection(std::move(socket)), asio::detached);
  }
}

Awaitable<void> Server::serve_connection(tcp::socket socket) {
  beast::flat_buffer buffer;
  while (true) {
    HttpRequest request;
    const bool has_request = co_await read_request(socket, buffer, request);
    if (!has_request) break;
    const bool goes_on = co_await serve_request(socket, request);
    if (!goes_on) break;
  }
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

Awaitable<bool> Server::read_request(tcp::socket& socket, beast::flat_buffer& buffer, HttpRequest& request) {
  http::request_parser<http::string_body> parser;
  parser.body_limit(kMaxBodyBytes);
  error_code error;
  co_await http::async_read_header(socket, buffer, parser, into(error));
  if (!error && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    http::response<http::empty_body> go_on{http::status::continue_, parser.get().version()};
    co_await http::async_write(socket, go_on, into(error));
  }
  if (!error) co_await http::async_read(socket, buffer, parser, into(error));
  if (error) {
    const bool too_large = error == http::error::body_limit;
    if (too_large || (error.category() == http::make_error_code(http::error::bad_method).category() &&
                      error != http::error::end_of_stream && error != http::error::partial_message)) {
      HttpRequest refused{parser.get().method(), parser.get().target(), 11};
      refused.keep_alive(false);
      const auto status = too_large ? http::status::payload_too_large : http::status::bad_request;
      co_await send(socket, refused, status, openai_error(error.message(), "invalid_request_error", ""));
    }
    co_return false;
  }
  request = parser.release();
  co_return true;
}

Awaitable<bool> Server::send(tcp::socket& socket, const HttpRequest& request, http::status status, std::string body,
                             const char* content_type) {
  const bool keep_alive = keeps_alive(request);
  HttpResponse response = make_response(request, status, content_type, keep_alive);
  response.body() = std::move(body);
  response.prepare_payload();
  error_code error;
  co_await http::async_write(socket, response, into(error));
  co_return keep_alive && !error;
}

Awaitable<bool> Server::serve_request(tcp::socket& socket, const HttpRequest& request) {
  const std::string target{request.target()};
  const std::string path = target.substr(0, target.find('?'));
  const bool is_get = request.method() == http::verb::get;
  const bool is_post = request.method() == http::verb::post;
  if (is_get && path == "/health") co_return co_await send(socket, request, http::status::ok, "", "text/plain");
  if (is_get && path == "/v1/models") co_return co_await send(socket, request, http::status::ok, models());
  if (is_get && (path == "/metrics" || path == "/prometheus/metrics")) {  // the latter is TensorRT-LLM's
    std::string page = engine_.metrics_text();
    co_return co_await send(socket, request, http::status::ok, std::move(page),
                            "text/plain; version=0.0.4; charset=utf-8");
  }
  if (is_get && path == "/v1/loads" && engine_.options().metrics_names == MetricsNames::sglang) {
    const bool as_page = target.find("format=prometheus", path.size()) != std::string::npos;
    std::string answer = engine_.loads_text(as_page, unix_seconds());
    co_return co_await send(socket, request, http::status::ok, std::move(answer),
                            as_page ? "text/plain; version=0.0.4; charset=utf-8" : "application/json");
  }
  if (is_post && path == "/reset_prefix_cache") {
    const bool is_clear = engine_.clear_cache();
    const auto status = is_clear ? http::status::ok : http::status::conflict;
    std::string body = is_clear ? "" : openai_error("requests are running", "invalid_request_error", "busy");
    co_return co_await send(socket, request, status, std::move(body));
  }
  if (is_post && path == "/tokenize") {
    auto answer = tokenize(request.body());
    const auto status = answer ? http::status::ok : http::status::bad_request;
    std::string body =
        answer ? *answer : openai_error(answer.error().message, "invalid_request_error", code_name(answer.code()));
    co_return co_await send(socket, request, status, std::move(body));
  }
  if (is_post && path == "/v1/chat/completions") co_return co_await serve_completion(socket, request, BodyApi::chat);
  if (is_post && path == "/v1/completions") co_return co_await serve_completion(socket, request, BodyApi::completions);
  if (is_post && path == "/v1/responses") co_return co_await serve_completion(socket, request, BodyApi::responses);
  if (is_post && path == "/v1/messages") co_return co_await serve_completion(socket, request, BodyApi::messages);
  if (is_post && path == "/v1/embeddings") co_return co_await serve_completion(socket, request, BodyApi::embeddings);
  if (is_post) {
    if (auto named = read_model_path(target)) co_return co_await serve_model_path(socket, request, std::move(*named));
  }
  co_return co_await send(socket, request, http::status::not_found,
                          openai_error("no such endpoint", "invalid_request_error", "not_found"));
}

RequestBodyOptions Server::body_options() const {
  RequestBodyOptions options;
  options.block_size = static_cast<std::uint32_t>(engine_.options().service.block_tokens);
  options.tokenizer = {nullptr, &toy_encode};
  return options;
}

// Everything that is needed later is copied: the parser is used again while this answer is still being sent.
Server::Order Server::read_order(BodyApi api, const ParsedBody& body) const {
  const EngineOptions& options = engine_.options();
  Order order;
  order.shape.kind = kind_of(api);
  order.shape.model = options.model;
  order.shape.created = unix_seconds();
  order.shape.choices = body.prompt_count;
  order.shape.include_usage = body.include_usage;
  order.shape.usage_form = options.usage_form;
  const bool is_embedding = order.shape.kind == CompletionKind::embedding;
  order.is_stream = body.stream && !is_embedding;
  order.input_tokens = body.input_tokens;
  order.output_tokens = is_embedding ? 1 : body.max_output_tokens.value_or(options.default_output_tokens);
  std::vector<SequenceHash> chain(body.blocks.size());
  sequence_hashes(body.blocks, chain);
  order.prompt.blocks.reserve(chain.size());
  for (const SequenceHash hash : chain) order.prompt.blocks.push_back(to_u64(hash));
  if (engine_.reports_cache()) {
    order.prompt.token_ids.assign(body.token_ids.begin(), body.token_ids.end());
    order.prompt.adapter = body.adapter;
    order.prompt.cache_salt = body.cache_salt;
  }
  for (std::size_t i = 0; is_embedding && i < body.prompt_ends.size(); ++i) {
    const std::size_t begin = i == 0 ? 0 : body.prompt_ends[i - 1];
    const auto ids = body.all_token_ids.subspan(begin, body.prompt_ends[i] - begin);
    order.embedding_seeds.push_back(XXH3_64bits(ids.data(), ids.size_bytes()));
  }
  return order;
}

namespace {

http::status status_of(const Error& error) {
  return error.code == Code::too_large ? http::status::payload_too_large : http::status::bad_request;
}

const char* id_prefix(const AnswerShape& shape, AnswerForm form) {
  if (form == AnswerForm::responses) return "resp_";
  if (form == AnswerForm::messages) return "msg_";
  return shape.kind == CompletionKind::chat ? "chatcmpl-" : "cmpl-";
}

}  // namespace

Awaitable<bool> Server::serve_completion(tcp::socket& socket, const HttpRequest& request, BodyApi api) {
  const auto parsed = parser_.parse(api, request.body(), body_options());
  if (!parsed) {
    const Error& error = parsed.error();
    std::string body = openai_error(error.message, "invalid_request_error", code_name(error.code));
    co_return co_await send(socket, request, status_of(error), std::move(body));
  }
  if (!parsed->model.empty() && parsed->model != engine_.options().model) {
    co_return co_await send(socket, request, http::status::not_found,
                            openai_error("the model does not exist here", "invalid_request_error", "model_not_found"));
  }
  Order order = read_order(api, *parsed);
  if (api == BodyApi::responses) order.form = AnswerForm::responses;
  if (api == BodyApi::messages) order.form = AnswerForm::messages;
  if (api == BodyApi::chat || api == BodyApi::completions) order.transfer = read_kv_transfer(request.body());
  co_return co_await serve_order(socket, request, std::move(order));
}

Awaitable<bool> Server::serve_model_path(tcp::socket& socket, const HttpRequest& request, ModelPath path) {
  const auto chat = chat_body_of(path, request.body());
  const auto parsed = chat ? parser_.parse(BodyApi::chat, *chat, body_options()) : Result<ParsedBody>(chat.error());
  if (!parsed) {
    const Error& error = parsed.error();
    std::string body = openai_error(error.message, "invalid_request_error", code_name(error.code));
    co_return co_await send(socket, request, status_of(error), std::move(body));
  }
  if (path.model != engine_.options().model) {
    co_return co_await send(socket, request, http::status::not_found,
                            openai_error("the model does not exist here", "invalid_request_error", "model_not_found"));
  }
  Order order = read_order(BodyApi::chat, *parsed);
  order.form = path.form;
  co_return co_await serve_order(socket, request, std::move(order));
}

Awaitable<bool> Server::serve_order(tcp::socket& socket, const HttpRequest& request, Order order) {
  const EngineOptions& options = engine_.options();
  const Fate fate = engine_.draw_fate();
  if (fate == Fate::fail) {
    co_return co_await send(socket, request, http::status::internal_server_error,
                            openai_error("injected failure", "server_error", "injected"));
  }
  std::shared_ptr<Job> job;
  if (fate == Fate::hang) {
    job = std::make_shared<Job>(context_);  // never queued: it changes only when the client leaves
  } else {
    job = engine_.submit(std::move(order.prompt), order.input_tokens, order.output_tokens,
                         order.transfer.received_blocks * options.service.block_tokens);
  }
  if (job == nullptr) {
    const std::string message = "this model's maximum context length is " + std::to_string(engine_.max_model_tokens()) +
                                " tokens, the request asks for " + std::to_string(order.input_tokens) +
                                " in the prompt and " + std::to_string(order.output_tokens) + " in the completion";
    co_return co_await send(socket, request, http::status::bad_request,
                            openai_error(message, "invalid_request_error", "context_length_exceeded"));
  }
  order.shape.id = id_prefix(order.shape, order.form) + options.name + "-" + std::to_string(job->id);
  const ClientWatch watch{socket, engine_, job};
  if (order.is_stream) co_return co_await send_stream(socket, request, job, std::move(order));
  co_return co_await send_whole(socket, request, job, std::move(order));
}

Awaitable<bool> Server::send_whole(tcp::socket& socket, const HttpRequest& request, std::shared_ptr<Job> job,
                                   Order order) {
  error_code ignored;
  while (!job->is_over()) co_await job->changed.async_wait(into(ignored));
  if (job->is_cancelled) co_return false;
  const AnswerUsage usage = usage_of(*job, order.shape);
  std::string body = order.shape.kind == CompletionKind::embedding
                         ? embedding_answer(order.shape, usage, order.embedding_seeds)
                         : make_writer(order.form, order.shape)->whole(usage, job->generated);
  if (order.transfer.sends) {
    const EngineOptions& options = engine_.options();
    const std::int64_t blocks = (order.input_tokens + options.service.block_tokens - 1) / options.service.block_tokens;
    append_kv_transfer(body, options.name, endpoint_.address().to_string(), endpoint_.port(), blocks);
  }
  co_return co_await send(socket, request, http::status::ok, std::move(body));
}

// The header goes out at once, as with vLLM; tokens follow as steps end. A slow client gets several tokens in one
// chunk.
Awaitable<bool> Server::send_stream(tcp::socket& socket, const HttpRequest& request, std::shared_ptr<Job> job,
                                    Order order) {
  const bool is_chunked = request.version() >= 11;  // HTTP/1.0 ends a body of unknown length by closing
  const bool keep_alive = is_chunked && keeps_alive(request);
  http::response<http::empty_body> response{http::status::ok, request.version()};
  response.set(http::field::server, "warmroute-engine");
  const std::unique_ptr<AnswerWriter> events = make_writer(order.form, order.shape);
  response.set(http::field::content_type, events->stream_type());
  response.set(http::field::cache_control, "no-cache");
  response.keep_alive(keep_alive);
  response.chunked(is_chunked);
  http::response_serializer<http::empty_body> serializer{response};
  error_code error;
  co_await http::async_write_header(socket, serializer, into(error));

  std::string out;
  std::int64_t sent = 0;
  bool is_complete = false;
  while (!error && !is_complete) {
    if (sent == job->generated && !job->is_over()) {
      error_code ignored;
      co_await job->changed.async_wait(into(ignored));
      continue;
    }
    if (job->is_cancelled) co_return false;
    out.clear();
    const AnswerUsage usage = usage_of(*job, order.shape);
    if (sent == 0) events->append_opening(out, usage);
    while (sent < job->generated) events->append_token(out, ++sent, usage);
    is_complete = job->is_finished;
    if (is_complete) events->append_end(out, usage);
    if (is_chunked) {
      const auto chunk = http::make_chunk(asio::buffer(out));
      co_await asio::async_write(socket, chunk, into(error));
    } else {
      co_await asio::async_write(socket, asio::buffer(out), into(error));
    }
  }
  if (!error && is_chunked) {
    const auto last = http::make_chunk_last();
    co_await asio::async_write(socket, last, into(error));
  }
  if (error) engine_.cancel(job);
  co_return keep_alive && !error;
}

std::string Server::models() const {
  return "{\"object\":\"list\",\"data\":[{\"id\":" + json_quoted(engine_.options().model) +
         ",\"object\":\"model\",\"created\":0,\"owned_by\":\"warmroute\",\"max_model_len\":" +
         std::to_string(engine_.max_model_tokens()) + "}]}";
}

Result<std::string> Server::tokenize(std::string_view body) {
  auto parsed = parser_.parse(BodyApi::completions, body, body_options());
  if (parsed.code() == Code::missing_field) parsed = parser_.parse(BodyApi::chat, body, body_options());
  if (!parsed) return parsed.error();
  std::string out = "{\"count\":" + std::to_string(parsed->token_ids.size()) +
                    ",\"max_model_len\":" + std::to_string(engine_.max_model_tokens()) + ",\"tokens\":[";
  for (std::size_t i = 0; i < parsed->token_ids.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(parsed->token_ids[i]);
  }
  return out + "]}";
}

}  // namespace warmroute::examples
