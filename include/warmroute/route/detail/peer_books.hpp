/// What other routers have in flight on each replica, as they said last (route/peer_load.hpp): per replica the sum over peers on one cache
/// line, which decisions read, and behind it each peer's last word.
/// A peer that has said nothing for `max_age` has nothing in flight: its requests are over, or the engine counts them anyway.
/// Locks: one for writers; readers none. alloc: the lines at the first message, so that who has no peers pays one load and a branch.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "warmroute/replica/load.hpp"
#include "warmroute/route/cost.hpp"
#include "warmroute/route/peer_load.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

struct alignas(64) PeerBook {
  std::atomic<std::int64_t> requests{0};
  std::atomic<std::int64_t> prompts{0};
  std::atomic<std::int64_t> pending_ns{0};
  std::atomic<std::int64_t> context_tokens{0};
  std::atomic<std::int64_t> turn_at{0};  // when a prompt's turn came last, of anyone's; this router's clock
};
static_assert(sizeof(PeerBook) == 64);

class PeerBooks {
 public:
  struct Line {
    ReplicaId id;
    PeerLoad load;
  };

  explicit PeerBooks(std::uint32_t max_replicas) : slots_(max_replicas) {}

  /// shape: by slot. returns: nullptr while no peer has anything in flight. threads: any.
  [[nodiscard]] const PeerBook* lines(Nanos now) const noexcept {
    const PeerBook* lines = lines_.load(std::memory_order_acquire);
    return lines == nullptr || now.value > until_.load(std::memory_order_relaxed) ? nullptr : lines;
  }

  /// The whole of what this peer has in flight, in place of what it said before.
  void take(std::uint32_t peer, std::vector<Line> said, Nanos now, Nanos max_age) {
    const std::lock_guard lock(mutex_);
    if (books_ == nullptr && !said.empty()) books_ = std::make_unique<PeerBook[]>(slots_);
    if (peer >= peers_.size()) peers_.resize(peer + 1);
    for (Line& line : said) line.load = within_reason(line.load);
    peers_[peer] = {now, std::move(said)};
    if (books_ != nullptr) add_up(now, max_age);
  }
  /// returns: how many peers said anything lately, if only that they have nothing.
  [[nodiscard]] std::uint32_t telling(Nanos now, Nanos max_age) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(std::count_if(peers_.begin(), peers_.end(), [&](const Peer& p) {
      return p.at.value != 0 && now.value - p.at.value <= max_age.value;
    }));
  }
  /// Forgets peers that are silent for too long.
  void advance(Nanos now, Nanos max_age) {
    const std::lock_guard lock(mutex_);
    if (books_ != nullptr) add_up(now, max_age);
  }
  /// The replica left: its slot may get another tenant.
  void forget(ReplicaId id) {
    const std::lock_guard lock(mutex_);
    for (Peer& p : peers_) std::erase_if(p.said, [&](const Line& line) { return line.id == id; });
    if (books_ != nullptr) write(id.slot, {});
  }

 private:
  struct Peer {
    Nanos at{0};
    std::vector<Line> said;
  };

  // Numbers come from other machines: no sum of those of kMaxPeers overflows, and no replica has 10^5 requests of one router.
  static PeerLoad within_reason(PeerLoad l) noexcept {
    l.requests = std::min<std::int64_t>(l.requests, 100'000);
    l.prompts = std::min(l.prompts, l.requests);
    l.pending_ns = l.prompts == 0 ? 0 : std::min(l.pending_ns, Rates::kMaxNs);
    l.context_tokens = std::min(l.context_tokens, kMaxContext);
    l.turn_age_ns = std::min(l.turn_age_ns, Rates::kMaxNs);
    return l;
  }

  // Under the lock. cost: replicas x peers, some ten times a second and peer.
  void add_up(Nanos now, Nanos max_age) {
    sums_.assign(slots_, {});
    bool any = false;
    std::int64_t until = 0;
    for (Peer& p : peers_) {
      until = std::max(until, p.at.value + max_age.value);
      if (now.value - p.at.value > max_age.value) p.said.clear();
      for (const Line& line : p.said) {
        Sum& sum = sums_[line.id.slot];
        sum.requests += line.load.requests;
        sum.prompts += line.load.prompts;
        sum.pending_ns += line.load.pending_ns;
        sum.context_tokens += line.load.context_tokens;
        sum.turn_at = std::max(sum.turn_at, p.at.value - line.load.turn_age_ns);
        any = true;
      }
    }
    for (std::uint32_t slot = 0; slot < slots_; ++slot) write(slot, sums_[slot]);
    until_.store(until, std::memory_order_relaxed);
    lines_.store(any ? books_.get() : nullptr, std::memory_order_release);
  }

  struct Sum {
    std::int64_t requests = 0, prompts = 0, pending_ns = 0, context_tokens = 0, turn_at = 0;
  };
  void write(std::uint32_t slot, const Sum& sum) noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    PeerBook& book = books_[slot];
    book.requests.store(sum.requests, relaxed);
    book.prompts.store(sum.prompts, relaxed);
    book.pending_ns.store(sum.pending_ns, relaxed);
    book.context_tokens.store(sum.context_tokens, relaxed);
    book.turn_at.store(sum.turn_at, relaxed);
  }

  std::uint32_t slots_ = 0;
  mutable std::mutex mutex_;
  std::unique_ptr<PeerBook[]> books_;
  std::vector<Peer> peers_;
  std::vector<Sum> sums_;
  std::atomic<const PeerBook*> lines_{nullptr};
  std::atomic<std::int64_t> until_{0};  // when the last of them is silent for too long
};

}  // namespace warmroute::detail
