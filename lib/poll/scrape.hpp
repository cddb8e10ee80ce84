// One target's connection, and the scrape that is going on over it: a small state machine that never waits, but for a host's name.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "poll/http_answer.hpp"
#include "poll/url.hpp"

namespace warmroute::poll {

using Clock = std::chrono::steady_clock;

class Scrape {
 public:
  enum class State : std::uint8_t { idle, connecting, sending, receiving, done, failed };

  Scrape(Url url, std::size_t max_bytes, bool keep_alive);
  ~Scrape() { close(); }
  Scrape(const Scrape&) = delete;
  Scrape& operator=(const Scrape&) = delete;

  // Begins a scrape over the connection that is open, or a new one. `timeout` counts once the host's name is known.
  void begin(Clock::duration timeout);
  // Goes on after poll() found something. `ready`: its revents.
  void turn(short ready);
  // returns: whether the scrape has just failed since its time is over.
  bool expire(Clock::time_point now);
  // The result was read.
  void rest();

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool running() const noexcept { return state_ > State::idle && state_ < State::done; }
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] short events() const noexcept;
  [[nodiscard]] Clock::time_point began() const noexcept { return began_; }
  [[nodiscard]] Clock::time_point deadline() const noexcept { return deadline_; }
  [[nodiscard]] std::uint64_t connects() const noexcept { return connects_; }
  [[nodiscard]] const std::string& page() const noexcept { return answer_.body(); }
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

 private:
  struct Address {
    sockaddr_storage storage;
    socklen_t size;
  };

  void connect();
  // Tries the next address. A connection that was refused leaves its reason in `why`.
  void connect_next(const std::string& why);
  bool open(const Address& address, std::string& why);
  std::string look_up();
  void connected();
  void send();
  void receive();
  void broke(const std::string& why);
  void fail(std::string why);
  void close() noexcept;
  [[nodiscard]] bool has_gone() const noexcept;

  Url url_;
  std::string request_;
  HttpAnswer answer_;
  State state_ = State::idle;
  int fd_ = -1;
  bool keep_alive_;
  bool reused_ = false;  // the connection served an earlier scrape: it may have ended meanwhile
  std::size_t sent_ = 0;
  Clock::time_point began_{}, deadline_{}, looked_up_at_{};
  std::vector<Address> addresses_;
  std::size_t next_ = 0;  // address to try
  std::uint64_t connects_ = 0;
  std::string fault_;
};

}  // namespace warmroute::poll
