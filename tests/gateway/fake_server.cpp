#include "gateway/fake_server.hpp"

#include <poll.h>
#include <sys/socket.h>

namespace warmroute::testing {

namespace asio = examples::asio;
namespace http = examples::http;
namespace beast = examples::beast;
using examples::error_code;
using examples::tcp;

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

void FakeCall::write(std::string_view raw) {
  error_code ignored;
  asio::write(socket, asio::buffer(raw), ignored);
}

void FakeCall::answer(int status, std::string_view body, std::string_view more_heads) {
  write("HTTP/1.1 " + std::to_string(status) + " Scripted\r\nContent-Type: application/json\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n" + std::string(more_heads) + "\r\n" + std::string(body));
}

void FakeCall::begin_stream() {
  write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
}

void FakeCall::piece(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  write(size + std::string(bytes) + "\r\n");
}

void FakeCall::end_stream() { write("0\r\n\r\n"); }

void FakeCall::reset() {
  error_code ignored;
  socket.set_option(asio::socket_base::linger(true, 0), ignored);
  is_reset = true;  // closed by the server's own loop, which the destructor knows of
}

void FakeCall::close() {
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_both, ignored);
}

bool FakeCall::closed_by_peer(std::chrono::milliseconds within) {
  pollfd fd{socket.native_handle(), POLLIN, 0};
  if (::poll(&fd, 1, static_cast<int>(within.count())) <= 0) return false;
  char byte = 0;
  return ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

struct FakeServer::Peer {
  explicit Peer(tcp::socket accepted) : socket(std::move(accepted)) {}
  tcp::socket socket;
  std::thread thread;
};

FakeServer::FakeServer(Script script, std::uint16_t port)
    : script_(std::move(script)), acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), port)) {
  port_ = acceptor_.local_endpoint().port();
  thread_ = std::thread([this] { accept(); });
}

FakeServer::~FakeServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& peer : peers_) {
      if (peer->socket.is_open()) ::shutdown(peer->socket.native_handle(), SHUT_RDWR);
    }
  }
  ::shutdown(acceptor_.native_handle(), SHUT_RDWR);  // ends the blocking accept
  thread_.join();
  for (auto& peer : peers_) peer->thread.join();
}

void FakeServer::accept() {
  for (;;) {
    tcp::socket socket(io_);
    error_code error;
    acceptor_.accept(socket, error);
    const std::lock_guard lock(mutex_);
    if (stopping_ || error) return;
    connections += 1;
    peers_.push_back(std::make_unique<Peer>(std::move(socket)));
    Peer& peer = *peers_.back();
    peer.thread = std::thread([this, &peer] { serve(peer); });
  }
}

void FakeServer::serve(Peer& peer) {
  beast::flat_buffer buffer;
  for (int here = 1;; ++here) {
    error_code error;
    FakeCall one{0, here, false, {}, peer.socket};
    http::read(peer.socket, buffer, one.request, error);
    if (error) break;
    if (one.request.target() == "/health") {
      std::unique_lock lock(mutex_);
      const std::string health = health_;
      lock.unlock();
      one.answer(health.empty() ? 503 : 200, health);
      continue;
    }
    one.number = ++calls;
    script_(one);
    if (!one.is_reset) continue;
    const std::lock_guard lock(mutex_);
    peer.socket.close(error);
    return;
  }
  const std::lock_guard lock(mutex_);
  error_code ignored;
  if (!stopping_) peer.socket.shutdown(tcp::socket::shutdown_both, ignored);
}

std::string Answer::head(std::string_view name) const {
  const auto value = heads[beast::string_view(name.data(), name.size())];
  return {value.data(), value.size()};
}

TestClient::TestClient(std::uint16_t port) : socket_(io_) {
  error_code error;
  socket_.connect({asio::ip::address_v4::loopback(), port}, error);
  connected_ = !error;
}

void TestClient::send(std::string_view method, std::string_view target, std::string_view body,
                      std::string_view more_heads) {
  std::string raw(method);
  raw.append(" ").append(target).append(" HTTP/1.1\r\nHost: test\r\n").append(more_heads);
  if (!body.empty())
    raw.append("Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n");
  raw.append("\r\n").append(body);
  error_code ignored;
  asio::write(socket_, asio::buffer(raw), ignored);
}

Answer TestClient::receive(bool head_request) {
  http::response_parser<http::string_body> parser;
  parser.body_limit(std::size_t{1} << 30);
  if (head_request) parser.skip(true);
  error_code error;
  http::read_header(socket_, buffer_, parser, error);
  Answer answer;
  if (error) return answer;
  http::read(socket_, buffer_, parser, error);
  answer.status = parser.get().result_int();
  answer.complete = !error;
  answer.body = parser.get().body();
  answer.heads = parser.get().base();
  return answer;
}

std::string TestClient::read_until(std::string_view text) {
  std::string all;
  char bytes[4096];
  error_code error;
  while (!error && all.find(text) == std::string::npos) {
    const auto got = socket_.read_some(asio::buffer(bytes), error);
    all.append(bytes, got);
  }
  return all;
}

void TestClient::close() {
  error_code ignored;
  socket_.close(ignored);
}

Answer call(std::uint16_t port, std::string_view method, std::string_view target, std::string_view body,
            std::string_view more_heads) {
  TestClient client(port);
  client.send(method, target, body, more_heads);
  return client.receive(method == "HEAD");
}

std::string chat_body(std::string_view text, bool stream, std::string_view model) {
  return "{\"model\":\"" + std::string(model) + "\",\"messages\":[{\"role\":\"user\",\"content\":\"" +
         std::string(text) + "\"}],\"stream\":" + (stream ? "true" : "false") + "}";
}

std::string chat_event(std::string_view content) {
  return "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + std::string(content) + "\"}}]}\n\n";
}

std::uint16_t free_port() {
  asio::io_context io;
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  return acceptor.local_endpoint().port();
}

}  // namespace warmroute::testing
