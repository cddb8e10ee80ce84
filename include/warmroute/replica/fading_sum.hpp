/// What came of late: a sum that fades as time passes. Half is left of it 32.8 s after the last amount, a quarter after another 32.8 s; under
/// steady traffic it is what came in kSteadyMs.
/// Reads of the same moment are equal on every machine: integers, no libm, and no division, since each replica that is priced asks for one.
/// Does not: keep an exact book. Two calls at once may lose one of two amounts: it is a mean of traffic.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace warmroute {

/// threads: any, lock-free. alloc: none. cost: 16 bytes; a read is two loads, two shifts and a product.
class FadingSum {
  static constexpr int kHalfLog2Ms = 15;  // 32.768 s

 public:
  static constexpr std::int64_t kMost = 1'000'000'000'000;
  /// units: ms. What is taken from the sum of amounts that come all the time, 1/65,536 in each.
  static constexpr std::int64_t kSteadyMs = std::int64_t{2} << kHalfLog2Ms;

  void add(std::int64_t amount, std::int64_t now_ns) noexcept {
    const std::int64_t sum = at(now_ns) + std::clamp<std::int64_t>(amount, 0, kMost);
    sum_.store(std::min(sum, kMost), std::memory_order_relaxed);
    at_ms_.store(now_ns / 1'000'000, std::memory_order_relaxed);
  }
  /// returns: what is left of all that was added. Time that goes backwards is no time.
  [[nodiscard]] std::int64_t at(std::int64_t now_ns) const noexcept {
    const std::int64_t passed = std::max<std::int64_t>(0, now_ns / 1'000'000 - at_ms_.load(std::memory_order_relaxed));
    const std::int64_t halves = passed >> kHalfLog2Ms;
    if (halves > 62) return 0;
    const std::int64_t sum = sum_.load(std::memory_order_relaxed) >> halves;
    const std::int64_t rest = passed & ((std::int64_t{1} << kHalfLog2Ms) - 1);
    return sum - (sum * rest >> (kHalfLog2Ms + 1));
  }
  void clear() noexcept { sum_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> sum_{0};
  std::atomic<std::int64_t> at_ms_{0};
};

}  // namespace warmroute
