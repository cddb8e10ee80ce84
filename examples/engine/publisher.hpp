/// Sends batches of KV events over ZeroMQ as vLLM and SGLang do: PUB for what happens, [topic, seq, payload] with seq from 0, and ROUTER
/// for what happened, from a ring of the last 10,000 batches. Either replay form: without the topic (vLLM up to 0.25) or with it.
/// A build without ZeroMQ has the same class; open() says what is missing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "warmroute/result.hpp"

namespace warmroute::examples {

struct PublisherOptions {
  std::string events;  ///< where to bind, e.g. "tcp://*:5557"; port 0 (or *) takes a free one
  std::string replay;  ///< empty: no replay
  std::string topic;
  bool topic_in_replay = false;
  double drop_rate = 0.0;     ///< share of batches that are not sent; a replay has them
  double reorder_rate = 0.0;  ///< share of batches that are sent behind the next one
  std::uint64_t seed = 1;     ///< of the dropped and reordered ones
};

/// threads: one at a time; replays are answered on a thread of its own.
class Publisher {
 public:
  /// errors: io (an address that cannot be bound), unsupported (a build without ZeroMQ).
  static Result<std::unique_ptr<Publisher>> open(const PublisherOptions& options);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  void publish(std::string payload);
  /// What a new process would do: numbers begin at 0, and nothing is left to replay.
  void restart();
  /// returns: what was bound, with the port. lifetime: the publisher's.
  [[nodiscard]] const std::string& events() const noexcept;
  [[nodiscard]] const std::string& replay() const noexcept;

 private:
  struct Impl;
  explicit Publisher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute::examples
