/// The little of ZeroMQ's C interface that is used here, owned and checked.
#pragma once

#include <zmq.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "warmroute/result.hpp"

namespace warmroute::zmq {

inline Error error_of(std::string_view what) {
  return {Code::io, std::string(what) + ": " + zmq_strerror(zmq_errno()), kNoOffset};
}

struct CloseSocket {
  void operator()(void* socket) const noexcept { zmq_close(socket); }
};
struct EndContext {
  void operator()(void* context) const noexcept { zmq_ctx_term(context); }
};
using Socket = std::unique_ptr<void, CloseSocket>;
using Context = std::unique_ptr<void, EndContext>;

/// returns: a socket that does not linger, or nothing (zmq_errno says why).
inline Socket open(void* context, int type) {
  Socket socket(zmq_socket(context, type));
  const int none = 0;
  if (socket != nullptr) zmq_setsockopt(socket.get(), ZMQ_LINGER, &none, sizeof none);
  return socket;
}
inline void set(void* socket, int option, int value) noexcept { zmq_setsockopt(socket, option, &value, sizeof value); }

/// The frames of one message. threads: one at a time. lifetime of views: until the next receive.
class Message {
 public:
  static constexpr std::size_t kMost = 8;  // no message of ours has more; further ones are read and dropped

  Message() {
    for (zmq_msg_t& frame : frames_) zmq_msg_init(&frame);
  }
  ~Message() {
    for (zmq_msg_t& frame : frames_) zmq_msg_close(&frame);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// returns: whether there was one.
  bool receive(void* socket) noexcept {
    count_ = 0;
    overlong_ = false;
    while (true) {
      zmq_msg_t& frame = frames_[std::min(count_, kMost - 1)];
      if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) return false;
      views_[std::min(count_, kMost - 1)] = {static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame)};
      overlong_ = ++count_ > kMost || overlong_;
      if (zmq_msg_more(&frame) == 0) return true;
    }
  }
  [[nodiscard]] std::span<const std::string_view> frames() const noexcept {
    return {views_.data(), overlong_ ? 0 : count_};
  }

 private:
  std::array<zmq_msg_t, kMost> frames_;
  std::array<std::string_view, kMost> views_;
  std::size_t count_ = 0;
  bool overlong_ = false;
};

}  // namespace warmroute::zmq
