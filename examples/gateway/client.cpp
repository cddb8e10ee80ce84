// The client's side of an exchange, see client.hpp.
#include "gateway/client.hpp"

#include <sys/socket.h>

#include <utility>

#include "common/text.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace beast = examples::beast;
namespace http = examples::http;
using examples::error_code;
using examples::into;

Client::Client(examples::tcp::socket socket, Counters& counters)
    : stream_(std::move(socket)), counters_(counters), gauge_(counters.client_connections) {
  error_code ignored;
  stream_.socket().set_option(examples::tcp::no_delay(true), ignored);
}

Awaitable<std::optional<ClientRequest>> Client::read(std::chrono::milliseconds patience, std::uint64_t max_body_bytes) {
  http::request_parser<http::string_body> parser;
  parser.body_limit(max_body_bytes);
  error_code error;
  stream_.expires_after(patience);
  idle_ = buffer_.size() == 0;
  status_ = 0;
  co_await http::async_read_header(stream_, buffer_, parser, into(error));
  idle_ = false;
  if (!error) {
    version_ = parser.get().version();
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      http::response<http::empty_body> go_on{http::status::continue_, 11};
      co_await http::async_write(stream_, go_on, into(error));
    }
  }
  if (!error) co_await http::async_read(stream_, buffer_, parser, into(error));
  if (!error) co_return parser.release();

  const bool too_large = error == http::error::body_limit;
  const bool malformed = error.category() == make_error_code(http::error::bad_method).category() &&
                         error != http::error::end_of_stream && error != http::error::partial_message;
  if (too_large || malformed) {
    stream_.expires_after(patience);
    co_await refuse(error, max_body_bytes);
  }
  co_return std::nullopt;
}

/// Answers what could not be read, then takes a little of what still comes: a connection that is closed with bytes unread is reset,
/// and the answer would be lost with it.
Awaitable<void> Client::refuse(const error_code& error, std::uint64_t max_body_bytes) {
  const bool too_large = error == http::error::body_limit;
  const unsigned status = too_large ? 413 : 400;
  keep_alive_ = false;
  head_only_ = false;
  counters_.answered(status);
  // Beware: GCC 12 destroys the temporaries of a conditional expression inside a co_await expression twice.
  std::string message = "not an HTTP request: " + error.message();
  if (too_large) message = "the body is larger than " + std::to_string(max_body_bytes) + " bytes";
  const std::string body =
      examples::openai_error(message, "invalid_request_error", too_large ? "too_large" : "malformed");
  co_await send(status, "application/json", body);
  error_code read_error;
  stream_.socket().shutdown(examples::tcp::socket::shutdown_send, read_error);
  stream_.expires_after(std::chrono::seconds(1));
  std::string rest(65'536, '\0');
  while (!read_error) co_await stream_.async_read_some(asio::buffer(rest), into(read_error));
}

void Client::begin_exchange(const ClientRequest& request, TimePoint deadline, std::function<void()> on_gone) {
  stream_.expires_at(deadline);
  keep_alive_ = request.keep_alive();
  head_only_ = request.method() == http::verb::head;
  chunked_ = false;
  status_ = 0;
  on_gone_ = std::move(on_gone);
  watching_ = true;
  if (buffer_.size() == 0) wait_for_close();
}

bool Client::end_exchange() {
  watching_ = false;
  on_gone_ = nullptr;
  error_code ignored;
  if (stream_.socket().is_open()) stream_.socket().cancel(ignored);
  return keep_alive_ && !gone_;
}

// A socket becomes readable when its peer closes it, and when it sends its next request early: then there is nothing to see
// until that one is read.
void Client::wait_for_close() {
  stream_.socket().async_wait(examples::tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
    if (error || !self->watching_ || self->gone_) return;
    char byte = 0;
    const auto got = ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) self->failed(asio::error::eof);
  });
}

void Client::failed(const error_code& error) {
  if (!error || gone_) return;
  gone_ = true;
  watching_ = false;
  if (on_gone_) on_gone_();
}

Awaitable<void> Client::begin(const ResponseHead& head) {
  http::response<http::empty_body> response{head};
  status_ = response.result_int();
  response.version(version_);
  const bool no_body = head_only_ || status_ == 204 || status_ == 304;
  if (!no_body && response.count(http::field::content_length) == 0) {
    chunked_ = version_ == 11;
    if (chunked_) response.chunked(true);
    if (!chunked_) keep_alive_ = false;  // HTTP/1.0: the end of the connection is the end of the body
  }
  response.keep_alive(keep_alive_);
  http::response_serializer<http::empty_body> serializer{response};
  error_code error;
  co_await http::async_write_header(stream_, serializer, into(error));
  failed(error);
}

Awaitable<void> Client::write(std::string_view piece) {
  if (piece.empty() || gone_ || head_only_) co_return;
  error_code error;
  if (chunked_) {
    co_await asio::async_write(stream_, http::make_chunk(asio::buffer(piece)), into(error));
  } else {
    co_await asio::async_write(stream_, asio::buffer(piece), into(error));
  }
  failed(error);
}

Awaitable<void> Client::end() {
  if (!chunked_ || gone_) co_return;
  error_code error;
  co_await asio::async_write(stream_, http::make_chunk_last(), into(error));
  failed(error);
}

Awaitable<void> Client::send(unsigned status, std::string_view type, const std::string& body,
                             const std::vector<std::pair<std::string, std::string>>& headers) {
  http::response<http::string_body> response;
  response.result(status);
  response.version(version_);
  response.set(http::field::content_type, beast::string_view(type.data(), type.size()));
  for (const auto& [name, value] : headers) response.set(name, value);
  response.body() = body;
  response.keep_alive(keep_alive_);
  response.prepare_payload();
  if (head_only_) response.body().clear();  // the head still says how long it would be
  status_ = status;
  error_code error;
  http::response_serializer<http::string_body> serializer{response};
  co_await http::async_write(stream_, serializer, into(error));
  failed(error);
}

asio::ip::address Client::address() const {
  error_code ignored;
  return stream_.socket().remote_endpoint(ignored).address();
}

void Client::cut() {
  keep_alive_ = false;
  error_code ignored;
  // Where the end of the connection is the end of the body, only a reset says that something is missing.
  if (!chunked_) stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

void Client::abort() {
  failed(asio::error::operation_aborted);
  close();
}

void Client::close() {
  error_code ignored;
  if (stream_.socket().is_open()) stream_.socket().shutdown(examples::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace warmroute::gateway
