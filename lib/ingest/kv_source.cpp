// Sequence numbers, gaps, replays, restarts and orphans of one publisher. No sockets, no clock.
#include "warmroute/ingest/kv_source.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "kv_orphans.hpp"

namespace warmroute {

struct KvSource::Impl {
  Impl(Router& r, ReplicaId id, const KvSourceOptions& o) : router(&r), replica(id), options(o) {
    options.replay_attempts = std::max<std::uint32_t>(1, options.replay_attempts);
  }

  struct Held {
    std::uint64_t seq;
    std::string payload;
  };

  Router* router;
  ReplicaId replica;
  KvSourceOptions options;
  KvEventDecoder decoder;
  Orphans orphans;
  KvSourceStatus status;

  std::deque<Held> held;  // live messages since the gap, by number
  std::uint64_t gap_from = 0;
  std::uint64_t asked_from = 0;  // where the last request began
  std::uint32_t attempts = 0;
  bool ask = false;
  bool hole = false;  // this attempt skipped `status.next`: the rest of it is of no use
  Nanos last_replayed{0};

  void say(KvNotice notice) const {
    if (options.notice != nullptr) options.notice(options.user, notice);
  }
  void forget(Nanos now) {
    (void)router->clear_cache(replica, now);
    orphans.clear();
  }
  static KvMessage view_of(const Held& message) noexcept {
    KvMessage out;
    out.seq = message.seq;
    out.payload = message.payload;
    return out;
  }
  void drop_held() {
    held.clear();
    status.held_bytes = 0;
  }

  void apply(std::uint64_t seq, std::string_view payload, Nanos now);
  void apply_event(const KvEvent& event, Nanos now);
  void store(const KvEvent& event, Nanos now);
  void attach(std::span<const EngineHash> parents, Nanos now);
  void on_gap(const KvMessage& message, Nanos now);
  void hold(Held message, Nanos now);
  void end_replay(Nanos now);
  void try_again(Nanos now);
  void resync(KvResync reason, std::uint64_t missing_to, Nanos now);
  void take_held(Nanos now);
};

// ---------------------------------------------------------------- events

void KvSource::Impl::apply(std::uint64_t seq, std::string_view payload, Nanos now) {
  status.next = seq + 1;
  const auto batch = decoder.decode(payload, options.events);
  if (!batch) {
    ++status.bad_messages;
    forget(now);
    say({.kind = KvNoticeKind::bad_message, .reason = KvResync::bad_message, .fault = decoder.fault(), .from = seq});
    return;
  }
  std::size_t refused = 0;  // in the order sent, among the events
  const auto say_refused_before = [&](std::uint32_t index) {
    for (; refused < batch->rejected.size() && batch->rejected[refused].index < index; ++refused) {
      say({.kind = KvNoticeKind::bad_event, .fault = batch->rejected[refused].fault, .from = seq});
    }
  };
  for (const KvEvent& event : batch->events) {
    say_refused_before(event.index);
    apply_event(event, now);
  }
  say_refused_before(~std::uint32_t{0});
  status.bad_events += batch->rejected_count;
}

void KvSource::Impl::apply_event(const KvEvent& event, Nanos now) {
  if (event.use == KvUse::block_size) {
    say({.kind = KvNoticeKind::block_size, .from = event.block_size, .to = options.events.block_size});
    return;
  }
  if (event.use == KvUse::placeholder && event.type == KvEventType::stored) {
    const auto known = router->blocks_also_on(replica, event.tier, event.ids, now);
    if (known && *known < event.ids.size()) {
      say({.kind = KvNoticeKind::unknown_block, .block = event.ids.empty() ? EngineHash{} : event.ids.front()});
    }
    return;
  }
  if (event.use != KvUse::apply) return;
  switch (event.type) {
    case KvEventType::stored: store(event, now); break;
    case KvEventType::removed: {
      orphans.remove(event.ids);
      const auto removed = router->blocks_removed(replica, event.tier, event.ids, now);
      if (removed) status.unknown_removes += event.ids.size() - std::min(*removed, event.ids.size());
      break;
    }
    case KvEventType::cleared:
      forget(now);
      say({.kind = KvNoticeKind::cleared});
      break;
  }
}

void KvSource::Impl::store(const KvEvent& event, Nanos now) {
  const StoredBlocks blocks = event.stored_blocks();
  const Status done = router->blocks_stored(replica, blocks, now);
  if (done.code() == Code::not_found && blocks.parent && !blocks.ids.empty()) {
    const std::size_t dropped = orphans.add(blocks, now, options.max_orphan_blocks);
    say({.kind = KvNoticeKind::orphan, .block = blocks.ids.front(), .parent = *blocks.parent});
    if (dropped != 0) say({.kind = KvNoticeKind::orphan_dropped, .from = dropped});
    return;
  }
  if (done) attach(blocks.ids, now);
}

// Those that waited for one of `parents`, and those that waited for them.
void KvSource::Impl::attach(std::span<const EngineHash> parents, Nanos now) {
  if (orphans.empty()) return;
  std::vector<EngineHash> arrived(parents.begin(), parents.end());
  for (std::size_t i = 0; i < arrived.size() && !orphans.empty(); ++i) {
    while (auto orphan = orphans.take(arrived[i])) {
      if (!router->blocks_stored(replica, orphan->blocks(), now)) continue;
      say({.kind = KvNoticeKind::orphan_attached, .block = orphan->ids.front()});
      arrived.insert(arrived.end(), orphan->ids.begin(), orphan->ids.end());
    }
  }
}

// ---------------------------------------------------------------- numbers

void KvSource::Impl::on_gap(const KvMessage& message, Nanos now) {
  ++status.gaps;
  say({.kind = KvNoticeKind::gap, .from = status.next, .to = message.seq - 1});
  if (!options.replay) {
    resync(KvResync::gap_without_replay, message.seq - 1, now);
    apply(message.seq, message.payload, now);
    return;
  }
  status.state = KvSourceState::replaying;
  status.unsure_since = now;
  gap_from = asked_from = status.next;
  attempts = 0;
  hold({message.seq, std::string(message.payload)}, now);
  try_again(now);
}

void KvSource::Impl::hold(Held message, Nanos now) {
  status.held_bytes += message.payload.size();
  held.push_back(std::move(message));
  if (status.held_bytes > options.max_held_bytes) resync(KvResync::too_much_held, held.front().seq - 1, now);
}

void KvSource::Impl::try_again(Nanos now) {
  if (status.next > asked_from) attempts = 0;  // it came further: the next hole is another one
  asked_from = status.next;
  if (attempts == options.replay_attempts) {
    const std::uint64_t first = held.empty() ? status.next : held.front().seq;
    resync(KvResync::replay_timeout, std::max(first, status.next + 1) - 1, now);
    return;
  }
  ++attempts;
  ask = true;
  hole = false;
  last_replayed = now;
}

// What is missing is lost: nothing that was known before it counts. What is held goes on from there.
void KvSource::Impl::resync(KvResync reason, std::uint64_t missing_to, Nanos now) {
  ++status.resyncs;
  forget(now);
  say({.kind = KvNoticeKind::resync, .reason = reason, .from = status.next, .to = missing_to});
  status.next = missing_to + 1;
  ask = false;
  status.state = KvSourceState::live;
  take_held(now);
}

// returns with everything held applied, or in a replay of what is missing between them.
void KvSource::Impl::take_held(Nanos now) {
  status.state = KvSourceState::live;
  std::deque<Held> waiting = std::exchange(held, {});
  status.held_bytes = 0;
  while (!waiting.empty()) {
    Held message = std::move(waiting.front());
    waiting.pop_front();
    if (message.seq < status.next) continue;  // the replay had it
    if (message.seq > status.next && status.state == KvSourceState::live) {
      on_gap(view_of(message), now);
      continue;
    }
    if (status.state == KvSourceState::replaying) hold(std::move(message), now);
    else apply(message.seq, message.payload, now);
  }
}

void KvSource::Impl::end_replay(Nanos now) {
  const std::uint64_t first = held.empty() ? status.next : held.front().seq;
  if (hole || status.next < first) {  // it ended too early, or left some out
    try_again(now);
    return;
  }
  ask = false;
  const std::uint64_t from = gap_from;
  const std::uint64_t gaps = status.gaps;
  take_held(now);
  if (status.gaps == gaps) say({.kind = KvNoticeKind::replay_complete, .from = from, .to = status.next - 1});
}

// ---------------------------------------------------------------- the interface

Status validate(const KvSourceOptions& options) {
  const auto bad = [](const char* what) { return Error{Code::invalid_argument, what, kNoOffset}; };
  const KvEventOptions& events = options.events;
  const std::uint32_t ours = events.block_size;
  const std::uint32_t theirs = events.engine_block_size != 0 ? events.engine_block_size : ours;
  if (ours == 0 || ours > kMaxBlockTokens) return bad("block_size must lie in 1..512");
  if ((theirs % ours != 0 && ours % theirs != 0) || theirs / ours > kMaxEngineParts) {
    return bad("engine_block_size must be a divisor of the block size or a multiple of it, at most 128 times");
  }
  if (events.max_bytes == 0 || events.max_bytes > 0xffff'ffff) return bad("max_message_bytes must lie in 1..2^32 - 1");
  if (options.replay_attempts == 0 || options.replay_timeout < Nanos{0} || options.orphan_age < Nanos{0}) {
    return bad("replay_attempts must be at least 1, and no time negative");
  }
  return {};
}

KvSource::KvSource(Router& router, ReplicaId replica, const KvSourceOptions& options)
    : impl_(std::make_unique<Impl>(router, replica, options)) {}
KvSource::~KvSource() = default;
KvSource::KvSource(KvSource&&) noexcept = default;
KvSource& KvSource::operator=(KvSource&&) noexcept = default;

void KvSource::live(const KvMessage& message, Nanos now) {
  Impl& s = *impl_;
  KvSourceStatus& status = s.status;
  ++status.messages;
  status.last_event = now;
  const bool first = status.state == KvSourceState::waiting;
  // The number that a live message must not be below: of the last one held, or of the last one applied.
  const std::uint64_t above = s.held.empty() ? status.next : s.held.back().seq + 1;
  if (!first && message.seq < above) {
    ++status.restarts;
    s.forget(now);
    s.decoder.reset();
    s.drop_held();
    s.ask = false;
    s.say({.kind = KvNoticeKind::restart, .from = above - 1, .to = message.seq});
    status.next = s.options.replay ? 0 : message.seq;
    status.state = KvSourceState::live;
  } else if (status.state == KvSourceState::replaying) {
    s.hold({message.seq, std::string(message.payload)}, now);
    return;
  }
  status.state = KvSourceState::live;
  if (message.seq == status.next) s.apply(message.seq, message.payload, now);
  else s.on_gap(message, now);
}

void KvSource::replayed(const KvMessage& message, Nanos now) {
  Impl& s = *impl_;
  if (s.status.state != KvSourceState::replaying) return;
  if (message.replay_end) {
    s.end_replay(now);
    return;
  }
  ++s.status.replayed;
  s.last_replayed = now;
  if (message.seq < s.status.next) {
    ++s.status.duplicates;
    return;
  }
  if (message.seq > s.status.next) {
    s.hole = true;
    if (s.attempts < s.options.replay_attempts || s.status.next > s.asked_from) return;  // asked for again at its end
    s.resync(KvResync::replay_overrun, message.seq - 1, now);
    if (message.seq != s.status.next || s.status.state != KvSourceState::live) return;
  }
  s.apply(message.seq, message.payload, now);
}

std::optional<std::uint64_t> KvSource::wants_replay() noexcept {
  if (!std::exchange(impl_->ask, false)) return std::nullopt;
  return impl_->status.next;
}

void KvSource::advance(Nanos now) {
  Impl& s = *impl_;
  if (const std::size_t dropped = s.orphans.expire(now - s.options.orphan_age); dropped != 0) {
    s.say({.kind = KvNoticeKind::orphan_dropped, .from = dropped});
  }
  if (s.status.state == KvSourceState::replaying && now - s.last_replayed > s.options.replay_timeout) s.try_again(now);
}

KvSourceStatus KvSource::status() const noexcept {
  KvSourceStatus status = impl_->status;
  status.orphan_blocks = impl_->orphans.blocks();
  return status;
}
const KvCounters& KvSource::counters() const noexcept { return impl_->decoder.counters(); }
ReplicaId KvSource::replica() const noexcept { return impl_->replica; }

}  // namespace warmroute
