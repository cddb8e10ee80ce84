/// Where usage goes: a thread of its own reads the journal from its acknowledged cursor on, hands batches to a sink, and
/// acknowledges what the sink has taken. The journal itself is the sink that needs nobody: it keeps all until then.
/// Invariants: serving never waits for a sink; every event is delivered at least once, in order, across restarts; a batch is
/// acknowledged after the sink said ok and never before. Consumers drop what they have seen: event_id is unique for ever.
/// Does not: speak a network protocol, drop events that a sink refuses, write the journal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "warmroute/observe/log.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/journal.hpp"

namespace warmroute {

/// Takes what was used: ends, and what recovery found incomplete. threads: called on the hand-over's thread alone.
class UsageSink {
 public:
  virtual ~UsageSink() = default;
  /// All of them, or an error: then the same records come again, later. lifetime of views: until it returns.
  virtual Status deliver(std::span<const JournalRecord> records) = 0;
};

/// A function as a sink.
class CallbackSink final : public UsageSink {
 public:
  using Function = Status (*)(void* user, std::span<const JournalRecord> records);
  CallbackSink(Function function, void* user) noexcept : function_(function), user_(user) {}
  Status deliver(std::span<const JournalRecord> records) override { return function_(user_, records); }

 private:
  Function function_;
  void* user_;
};

/// Appends to a file, for whatever ships files: a line of JSON per event (append_json_line), on the disk before it says ok.
/// A half-written line of a killed process is ended, so that the next one begins a line: readers skip it, its event comes
/// again. Somebody may rename the file away: the next batch makes a new one.
class JsonLinesSink final : public UsageSink {
 public:
  explicit JsonLinesSink(std::string path);
  ~JsonLinesSink() override;
  JsonLinesSink(const JsonLinesSink&) = delete;
  JsonLinesSink& operator=(const JsonLinesSink&) = delete;
  /// errors: io.
  Status deliver(std::span<const JournalRecord> records) override;

 private:
  const std::string path_;
  std::string text_;
};

struct HandoverOptions {
  std::size_t batch = 256;             ///< events at most, 1 to 65,536
  Nanos interval = milliseconds(200);  ///< between looks at a journal that has nothing new: 1 ms to 1 min
  Nanos backoff_from = milliseconds(100);
  Nanos backoff_to = seconds(30);  ///< failures in a row double the pause up to this
  LogSink log{};                   ///< on its thread: the first failure in a row, and that it goes on
};

struct HandoverStatus {
  std::uint64_t delivered = 0;  ///< events that the sink took, since the start
  std::uint64_t batches = 0;
  std::uint64_t failures = 0;         ///< of the sink, the journal or the acknowledgement
  std::uint64_t failures_in_row = 0;  ///< 0: all is well
  bool drained = false;               ///< at the last look nothing was left
  JournalCursor acknowledged;
  std::string last_error;  ///< of the last failure; stays
};

/// threads: any for every call. lifetime: journal and sink outlive it. Its end stops the thread after a delivery that is running;
/// what is left is delivered by the next one.
class HandoverThread {
 public:
  /// `directory`: the journal's. errors: invalid_argument (every fault named), io (no thread).
  static Result<HandoverThread> start(Journal& journal, std::string directory, UsageSink& sink,
                                      HandoverOptions options = {});
  ~HandoverThread();
  HandoverThread(HandoverThread&&) noexcept;
  HandoverThread& operator=(HandoverThread&&) noexcept;

  /// Waits until what is in the journal now is acknowledged, at most so long. returns: whether it is.
  bool drain(Nanos timeout);
  [[nodiscard]] HandoverStatus status() const;

 private:
  struct Impl;
  explicit HandoverThread(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Appends families `warmroute_handover_*`. In lib.
void append_prometheus(const HandoverStatus& status, std::string& out);

}  // namespace warmroute
