// A publisher of KV events as vLLM and SGLang have one: PUB for what happens, ROUTER for what happened, numbers from 0.
#pragma once

#include <zmq.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace warmroute::test {

class Publisher {
 public:
  /// `topic_in_replay`: the form since vLLM 0.26.
  Publisher(std::string events, std::string replay, bool topic_in_replay)
      : events_(std::move(events)), replay_(std::move(replay)), topic_in_replay_(topic_in_replay) {
    open();
  }
  ~Publisher() {
    close();
    zmq_ctx_term(context_);
  }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// `lost`: it is not sent, but a replay has it.
  void publish(const std::string& payload, bool lost = false) {
    std::uint64_t seq = 0;
    {
      const std::lock_guard lock(mutex_);
      seq = log_.size();
      log_.push_back(payload);
    }
    if (lost) return;
    const auto number = big_endian(seq);
    zmq_send(pub_, "kv", 2, ZMQ_SNDMORE);
    zmq_send(pub_, number.data(), number.size(), ZMQ_SNDMORE);
    zmq_send(pub_, payload.data(), payload.size(), 0);
  }
  /// A new engine at the same address: numbers begin anew, nothing of the old one is left.
  void restart() {
    close();
    log_.clear();
    open();
  }
  [[nodiscard]] std::uint64_t next() {
    const std::lock_guard lock(mutex_);
    return log_.size();
  }

 private:
  static std::array<unsigned char, 8> big_endian(std::uint64_t v) {
    std::array<unsigned char, 8> out{};
    for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<unsigned char>(v >> (56 - 8 * i));
    return out;
  }
  static void* bound(void* context, int type, const std::string& where) {
    void* socket = zmq_socket(context, type);
    const int none = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof none);  // unbounded: a test loses what it means to lose
    for (int i = 0; i < 200 && zmq_bind(socket, where.c_str()) != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // the port of the last life
    }
    return socket;
  }
  void open() {
    pub_ = bound(context_, ZMQ_PUB, events_);
    router_ = bound(context_, ZMQ_ROUTER, replay_);
    stop_ = false;
    server_ = std::thread([this] { serve(); });
  }
  void close() {
    stop_ = true;
    server_.join();
    zmq_close(pub_);
    zmq_close(router_);
  }
  void serve() {
    while (!stop_) {
      zmq_pollitem_t item{router_, 0, ZMQ_POLLIN, 0};
      if (zmq_poll(&item, 1, 20) <= 0) continue;
      std::array<char, 256> peer{}, ignored{};
      std::array<unsigned char, 16> start{};
      const int peer_size = zmq_recv(router_, peer.data(), peer.size(), 0);
      zmq_recv(router_, ignored.data(), ignored.size(), 0);  // the delimiter
      zmq_recv(router_, start.data(), start.size(), 0);
      std::uint64_t from = 0;
      for (std::size_t i = 0; i < 8; ++i) from = from << 8 | start[i];
      const std::uint64_t end = next();
      for (std::uint64_t seq = from; seq < end; ++seq) {
        std::string payload;
        {
          const std::lock_guard lock(mutex_);
          payload = log_[seq];
        }
        answer(peer.data(), peer_size, seq, payload, "kv");
      }
      answer(peer.data(), peer_size, ~std::uint64_t{0}, "", "");
    }
  }
  void answer(const char* peer, int peer_size, std::uint64_t seq, const std::string& payload, std::string_view topic) {
    const auto number = big_endian(seq);
    zmq_send(router_, peer, static_cast<std::size_t>(peer_size), ZMQ_SNDMORE);
    zmq_send(router_, "", 0, ZMQ_SNDMORE);
    if (topic_in_replay_) zmq_send(router_, topic.data(), topic.size(), ZMQ_SNDMORE);
    zmq_send(router_, number.data(), number.size(), ZMQ_SNDMORE);
    zmq_send(router_, payload.data(), payload.size(), 0);
  }

  std::string events_, replay_;
  bool topic_in_replay_;
  void* context_ = zmq_ctx_new();
  void *pub_ = nullptr, *router_ = nullptr;
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::atomic<bool> stop_{false};
  std::thread server_;
};

}  // namespace warmroute::test
