#include "poll/scrape.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace warmroute::poll {
namespace {

constexpr auto kNameAge =
    std::chrono::seconds(60);      // a host's addresses may change; a new connection asks again after that
constexpr int kReadsPerTurn = 16;  // of 64 KiB: then the other targets have their turn

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;  // SO_NOSIGPIPE below
#endif

std::string error_text(int error) { return std::generic_category().message(error); }
bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Scrape::Scrape(Url url, std::size_t max_bytes, bool keep_alive)
    : url_(std::move(url)), answer_(max_bytes), keep_alive_(keep_alive) {
  request_ =
      "GET " + url_.path + " HTTP/1.1\r\nHost: " + url_.authority +
      "\r\nUser-Agent: warmroute\r\nAccept: text/plain;version=0.0.4, */*;q=0.1\r\nAccept-Encoding: identity\r\n" +
      (keep_alive_ ? "" : "Connection: close\r\n") + "\r\n";
}

void Scrape::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

short Scrape::events() const noexcept { return state_ == State::receiving ? POLLIN : POLLOUT; }

void Scrape::fail(std::string why) {
  close();
  state_ = State::failed;
  fault_ = std::move(why);
}

void Scrape::rest() {
  if (state_ == State::done && !(keep_alive_ && answer_.keeps_alive())) close();
  state_ = State::idle;
}

// A kept connection on which something came, the end included, is none any more.
bool Scrape::has_gone() const noexcept {
  char byte = 0;
  return ::recv(fd_, &byte, 1, MSG_PEEK) >= 0 || !would_block(errno);
}

void Scrape::begin(Clock::duration timeout) {
  answer_.begin();
  fault_.clear();
  if (fd_ >= 0 && has_gone()) close();
  reused_ = fd_ >= 0;
  std::string why;
  if (!reused_ && (addresses_.empty() || Clock::now() - looked_up_at_ > kNameAge)) why = look_up();
  began_ = Clock::now();
  deadline_ = began_ + timeout;
  if (!why.empty()) fail(why);
  else if (reused_) connected();
  else connect();
}

// returns: what is wrong; empty = nothing.
std::string Scrape::look_up() {
  addresses_.clear();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  int error = ::getaddrinfo(url_.host.c_str(), url_.port.c_str(), &hints, &list);
  const bool numeric = error == 0;
  if (!numeric) {
    hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
    error = ::getaddrinfo(url_.host.c_str(), url_.port.c_str(), &hints, &list);
  }
  if (error != 0) return "the name '" + url_.host + "' is not found: " + ::gai_strerror(error);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    if (a->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address& address = addresses_.emplace_back();
    std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    address.size = a->ai_addrlen;
  }
  looked_up_at_ = numeric ? Clock::time_point::max() - kNameAge : Clock::now();
  return addresses_.empty() ? "the name '" + url_.host + "' has no addresses" : std::string();
}

void Scrape::connect() {
  next_ = 0;
  connect_next({});
}

void Scrape::connect_next(const std::string& why) {
  std::string last = why;
  close();
  while (next_ < addresses_.size()) {
    if (!open(addresses_[next_++], last)) continue;
    state_ = State::connecting;
    return;
  }
  looked_up_at_ = std::min(looked_up_at_, Clock::now() - kNameAge);  // the name may have moved
  fail("cannot connect to " + url_.authority + ": " + last);
}

// returns: whether a connection is on its way; why not, if it is not.
bool Scrape::open(const Address& address, std::string& why) {
  fd_ = ::socket(address.storage.ss_family, SOCK_STREAM, 0);
  const int on = 1;
  if (fd_ >= 0) {
    ::fcntl(fd_, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) | O_NONBLOCK);
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
#ifdef SO_NOSIGPIPE
    ::setsockopt(fd_, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) return true;
    if (errno == EINPROGRESS || errno == EINTR) return true;
  }
  why = error_text(errno);
  close();
  return false;
}

void Scrape::connected() {
  sent_ = 0;
  state_ = State::sending;
  send();
}

void Scrape::turn(short ready) {
  if (state_ == State::connecting && ready != 0) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return connect_next(error_text(error));
    ++connects_;
    return connected();
  }
  if (state_ == State::sending && ready != 0) return send();
  if (state_ == State::receiving && ready != 0) receive();
}

void Scrape::send() {
  while (sent_ < request_.size()) {
    const ssize_t n = ::send(fd_, request_.data() + sent_, request_.size() - sent_, kNoSignal);
    if (n < 0 && would_block(errno)) return;
    if (n < 0) return broke(error_text(errno));
    sent_ += static_cast<std::size_t>(n);
  }
  state_ = State::receiving;
}

// A server may close a connection that it kept as the next request is on its way: then it has not seen it, and a new one is worth a try.
void Scrape::broke(const std::string& why) {
  if (!reused_ || answer_.began()) return fail("the connection broke: " + why);
  reused_ = false;
  close();
  connect();
}

void Scrape::receive() {
  std::array<char, std::size_t{64} << 10> bytes;
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (n < 0 && would_block(errno)) return;
    if (n < 0) return broke(error_text(errno));
    if (n == 0 && reused_ && !answer_.began()) return broke("it was closed");
    const auto state = n == 0 ? answer_.end() : answer_.feed({bytes.data(), static_cast<std::size_t>(n)});
    if (state == HttpAnswer::State::failed) return fail(answer_.fault());
    if (state == HttpAnswer::State::done) {
      state_ = State::done;
      return;
    }
  }
}

bool Scrape::expire(Clock::time_point now) {
  if (!running() || now < deadline_) return false;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - began_).count();
  const std::string in_time = " within " + std::to_string(ms) + " ms";
  if (state_ == State::connecting) {
    // An address that swallows everything must not keep the ones behind it from being tried.
    std::rotate(addresses_.begin(), addresses_.begin() + static_cast<std::ptrdiff_t>(next_), addresses_.end());
    fail("no connection to " + url_.authority + in_time);
    return true;
  }
  if (!answer_.began()) fail("no answer" + in_time);
  else if (!answer_.has_head()) fail("no whole head of an answer" + in_time);
  else fail("no whole page" + in_time + ": " + std::to_string(answer_.body().size()) + " bytes came");
  return true;
}

}  // namespace warmroute::poll
