/// What a pool with terms may still be asked for: two rates, a number in flight (the Router counts those), and a time until which it wants to be left alone.
/// Rates are GCRA over one minute (ITU-T I.371): one atomic each, the theoretical time at which all that was charged has drained.
/// threads: any; nothing waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "warmroute/types.hpp"

namespace warmroute::detail {

class MinuteRate {
 public:
  static constexpr std::int64_t kMinute = 60'000'000'000;

  void set(std::int64_t per_minute) noexcept { per_minute_.store(per_minute, std::memory_order_relaxed); }

  /// Charges `amount`, or says when to come back. More than a minute's worth passes when nothing else is charged.
  /// returns: 0 when charged, else ns to wait.
  std::int64_t charge(std::int64_t amount, std::int64_t now) noexcept {
    const std::int64_t per_minute = per_minute_.load(std::memory_order_relaxed);
    if (per_minute <= 0 || amount <= 0) return 0;
    const std::int64_t cost = cost_of(amount, per_minute);
    std::int64_t drained = drained_at_.load(std::memory_order_relaxed);
    for (;;) {
      const std::int64_t from = std::max(drained, now);
      const std::int64_t wait = from + std::min(cost, kMinute) - (now + kMinute);
      if (wait > 0) return wait;
      if (drained_at_.compare_exchange_weak(drained, from + cost, std::memory_order_relaxed)) return 0;
    }
  }
  /// The truth was `more` (or less, where negative) than what was charged. What has drained since stays drained.
  void settle(std::int64_t more, std::int64_t now) noexcept {
    const std::int64_t per_minute = per_minute_.load(std::memory_order_relaxed);
    if (per_minute <= 0 || more == 0) return;
    const std::int64_t cost = more > 0 ? cost_of(more, per_minute) : -cost_of(-more, per_minute);
    std::int64_t drained = drained_at_.load(std::memory_order_relaxed);
    while (!drained_at_.compare_exchange_weak(drained, std::max(drained, now) + cost, std::memory_order_relaxed)) {}
  }

 private:
  static std::int64_t cost_of(std::int64_t amount, std::int64_t per_minute) noexcept {
    constexpr std::int64_t kMost = 1'000'000'000;  // tokens or requests; a product with a minute in ns would not fit
    const double share = static_cast<double>(std::min(amount, kMost)) / static_cast<double>(per_minute);
    return static_cast<std::int64_t>(std::min(share, 1e6) * static_cast<double>(kMinute));
  }
  std::atomic<std::int64_t> per_minute_{0};
  std::atomic<std::int64_t> drained_at_{0};
};

struct PoolQuota {
  MinuteRate requests;
  MinuteRate tokens;
  std::atomic<std::int64_t> max_in_flight{0};
  std::atomic<std::int64_t> blocked_until{0};
  std::atomic<std::uint64_t> routed{0};
  std::atomic<std::uint64_t> over{0};

  /// `in_flight`: as the Router's books have it. returns: 0 when taken, else ns to wait (at least 1).
  std::int64_t take(std::int64_t token_count, std::int64_t in_flight, std::int64_t now) noexcept {
    const std::int64_t blocked = blocked_until.load(std::memory_order_relaxed);
    if (blocked > now) return blocked - now;
    const std::int64_t most = max_in_flight.load(std::memory_order_relaxed);
    if (most > 0 && in_flight >= most) return 1'000'000'000;  // nobody knows; a second is what such APIs answer
    if (const std::int64_t wait = requests.charge(1, now); wait != 0) return wait;
    const std::int64_t wait = tokens.charge(token_count, now);
    if (wait != 0) requests.settle(-1, now);
    return wait;
  }
  void give_back(std::int64_t token_count, std::int64_t now) noexcept {
    requests.settle(-1, now);
    tokens.settle(-token_count, now);
  }
};

}  // namespace warmroute::detail
