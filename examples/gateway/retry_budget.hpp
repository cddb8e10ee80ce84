/// Keeps retries from multiplying an overload: every request pays a share of a retry in, every retry takes a whole one out.
/// Over time retries are at most `percent` of the traffic, plus the few that the account starts with.
/// threads: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace warmroute::gateway {

class RetryBudget {
 public:
  /// `start` retries are there at once, so that a young gateway can retry at all; `burst` bounds what is saved up.
  RetryBudget(std::int64_t percent, std::int64_t start, std::int64_t burst)
      : percent_(percent), most_(std::max(start, burst) * kWhole), account_(start * kWhole) {}

  void request() noexcept {
    std::int64_t have = account_.load(std::memory_order_relaxed);
    while (have < most_ && !account_.compare_exchange_weak(have, std::min(have + percent_, most_))) {}
  }
  /// returns: whether the retry may be done; it is paid for then.
  [[nodiscard]] bool take() noexcept {
    std::int64_t have = account_.load(std::memory_order_relaxed);
    while (have >= kWhole) {
      if (account_.compare_exchange_weak(have, have - kWhole)) return true;
    }
    return false;
  }
  [[nodiscard]] std::int64_t left() const noexcept { return account_.load(std::memory_order_relaxed) / kWhole; }

 private:
  static constexpr std::int64_t kWhole = 100;  // units of the account per retry: a request pays `percent` of it
  const std::int64_t percent_;
  const std::int64_t most_;
  std::atomic<std::int64_t> account_;
};

}  // namespace warmroute::gateway
