/// A scripted HTTP server on the loopback, for tests of what polls it: one thread per connection, any bytes at any pace.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace warmroute::test {

/// returns: whether the condition came true before the deadline.
inline bool soon(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// returns: an answer of that page with its length.
inline std::string with_length(std::string_view page, std::string_view more_fields = {}) {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(page.size()) + "\r\n" +
         std::string(more_fields) + "\r\n" + std::string(page);
}

class PageServer {
 public:
  /// One request as the script sees it.
  struct Call {
    int fd;
    int number;           ///< of the server, from 1
    std::string request;  ///< its head
    bool goes_on = true;  ///< false: the connection is closed after this

    /// returns: whether the peer took it.
    bool write(std::string_view bytes) const {
      while (!bytes.empty()) {
        const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
      }
      return true;
    }
    /// Waits until the peer, or the server's end, closes the connection.
    void wait_for_end() const {
      char byte = 0;
      while (::recv(fd, &byte, 1, 0) > 0) {}
    }
  };
  using Script = std::function<void(Call&)>;

  /// Listens on a free port, or on that one.
  explicit PageServer(Script script, std::uint16_t port = 0) : script_(std::move(script)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    socklen_t size = sizeof address;
    good_ = ::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0 && ::listen(fd_, 64) == 0;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept(); });
  }
  ~PageServer() {
    stopping_ = true;
    thread_.join();
    for (const auto& peer : peers_) ::shutdown(peer->fd, SHUT_RDWR);
    for (const auto& peer : peers_) {
      peer->thread.join();
      ::close(peer->fd);
    }
    ::close(fd_);
  }
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::atomic<int> calls{0};

 private:
  struct Peer {
    int fd = -1;
    std::thread thread;
  };

  void accept() {
    while (!stopping_) {
      pollfd item{fd_, POLLIN, 0};
      if (::poll(&item, 1, 10) <= 0) continue;
      const int fd = ::accept(fd_, nullptr, nullptr);
      if (fd < 0) continue;
      auto& peer = *peers_.emplace_back(std::make_unique<Peer>());
      peer.fd = fd;
      peer.thread = std::thread([this, fd] { serve(fd); });
    }
  }
  void serve(int fd) {
    std::string seen;
    for (bool goes_on = true; goes_on;) {
      std::size_t end = 0;
      while ((end = seen.find("\r\n\r\n")) == std::string::npos) {
        char bytes[1024];
        const auto n = ::recv(fd, bytes, sizeof bytes, 0);
        if (n <= 0) break;
        seen.append(bytes, static_cast<std::size_t>(n));
      }
      if (end == std::string::npos) break;
      Call call{fd, ++calls, seen.substr(0, end + 4)};
      seen.erase(0, end + 4);
      script_(call);
      goes_on = call.goes_on;
    }
    ::shutdown(fd, SHUT_RDWR);  // closed in the end, when nobody can have got its number
  }

  Script script_;
  int fd_ = -1;
  bool good_ = false;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Peer>> peers_;  // the accepting thread's, until it has ended
  std::thread thread_;
};

}  // namespace warmroute::test
