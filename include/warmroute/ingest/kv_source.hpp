/// Keeps a router right about one engine's cache while its events get lost, come twice or begin anew: sequence numbers are checked, a gap
/// is filled from the engine's replay or ends in a cleared cache, a restart clears at once, blocks whose parent is missing wait for it.
/// One source per publisher, i.e. per data-parallel rank. The caller brings the messages, over ZeroMQ or its own transport, and asks
/// `wants_replay` whether to request one; nothing in here opens a socket or reads a clock.
/// Invariant: events reach the router in the order of their numbers, each once; what may have been missed is never credited.
/// Does not: decode frames (ingest/kv_events.hpp does), or decide how long a replica may be unsure: its status says since when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "warmroute/ingest/kv_events.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/router.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// What happened to a source that an operator may want to know. Numbers are fixed and only appended.
enum class KvNoticeKind : std::uint8_t {
  gap = 0,              ///< messages from..to did not come
  replay_complete = 1,  ///< from..to are applied, the gap is closed
  resync = 2,           ///< the cache was cleared, since from..to are lost for good; `reason` says why
  restart = 3,          ///< numbers went back from `from` to `to`: the engine is a new one, the cache was cleared
  cleared = 4,          ///< the engine dropped its cache
  orphan = 5,           ///< block `block` waits for its parent `parent`
  orphan_attached = 6,  ///< its parent came
  orphan_dropped = 7,   ///< too many wait, or it waited too long
  bad_event = 8,        ///< one event was refused: `fault`
  bad_message = 9,      ///< message `from` could not be decoded: `fault`; the cache was cleared
  block_size = 10,      ///< blocks of `from` tokens where `to` are expected: refused
  unknown_block = 11,   ///< `block` was said to be on another tier, but nobody knows what it is
};
inline constexpr std::size_t kKvNoticeCount = 12;
enum class KvResync : std::uint8_t {
  none = 0,
  gap_without_replay = 1,  ///< there is nobody to ask
  replay_overrun = 2,      ///< the engine no longer has them, or never published them
  replay_timeout = 3,
  too_much_held = 4,  ///< more live messages came meanwhile than max_held_bytes
  bad_message = 5,
};
struct KvNotice {
  KvNoticeKind kind = KvNoticeKind::gap;
  KvResync reason = KvResync::none;
  KvFault fault = KvFault::none;
  std::uint64_t from = 0, to = 0;
  EngineHash block{}, parent{};
};

struct KvSourceOptions {
  KvEventOptions events{};  ///< kv_event_options(policy): seed and block size must be the router's
  bool replay = false;      ///< the engine answers replay requests
  /// Replays are lossy (vLLM before 0.33, SGLang): a hole is asked for again, so often in a row; then it counts as lost for good.
  std::uint32_t replay_attempts = 3;
  Nanos replay_timeout = seconds(2);                   ///< per attempt, from the last message of it
  std::size_t max_held_bytes = std::size_t{16} << 20;  ///< of live messages that wait for a replay
  std::size_t max_orphan_blocks = 4096;
  Nanos orphan_age = seconds(30);
  void* user = nullptr;
  void (*notice)(void* user,
                 const KvNotice& notice) = nullptr;  ///< on the thread that calls; must not call back into the source
};
/// What would otherwise show as a source that refuses every message, or waits for ever. errors: invalid_argument.
Status validate(const KvSourceOptions& options);

enum class KvSourceState : std::uint8_t {
  waiting = 0,    ///< no message yet
  live = 1,       ///< every message since the start, or since the last resync, is applied
  replaying = 2,  ///< unsure: a gap is being filled
};
struct KvSourceStatus {
  KvSourceState state = KvSourceState::waiting;
  std::uint64_t next = 0;  ///< the number that is expected
  Nanos unsure_since{0};   ///< while replaying
  Nanos last_event{0};     ///< when the last message came
  std::uint64_t messages = 0, replayed = 0, duplicates = 0;
  std::uint64_t gaps = 0, resyncs = 0, restarts = 0, bad_messages = 0, bad_events = 0;
  std::uint64_t unknown_removes = 0;  ///< blocks said to be removed that were not known there
  std::size_t orphan_blocks = 0, held_bytes = 0;
};

/// threads: one at a time. alloc: while orphans or held messages wait; else as the decoder. lifetime: `router` must outlive it.
class KvSource {
 public:
  KvSource(Router& router, ReplicaId replica, const KvSourceOptions& options);
  ~KvSource();
  KvSource(KvSource&&) noexcept;
  KvSource& operator=(KvSource&&) noexcept;

  /// A message from the publisher, in the order in which they came. lifetime: what must wait is copied.
  void live(const KvMessage& message, Nanos now);
  /// A message from the replay socket, its end included. Those that nobody waits for are dropped.
  void replayed(const KvMessage& message, Nanos now);
  /// returns: the number to request a replay from, once per attempt; nothing while none is needed.
  [[nodiscard]] std::optional<std::uint64_t> wants_replay() noexcept;
  /// Timeouts of replays and orphans. Call it about as often as replay_timeout.
  void advance(Nanos now);
  [[nodiscard]] KvSourceStatus status() const noexcept;
  [[nodiscard]] const KvCounters& counters() const noexcept;
  [[nodiscard]] ReplicaId replica() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
