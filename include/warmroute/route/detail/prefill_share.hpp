/// What prefill takes of a replica's time, for the formulas of pairs. Own books only; forgets by itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace warmroute {

/// How much of its time a replica spends on prefill, from the work booked there; older work fades over kWindow.
/// threads: any. Two calls at once may lose one of two amounts: it is a mean, not a book.
class PrefillShare {
 public:
  static constexpr std::int64_t kMostMilli = 900;        // decodes advance in every step
  static constexpr std::int64_t kWindowUs = 10'000'000;  // about the time that a request decodes

  void add(std::int64_t work_ns, std::int64_t now_ns) noexcept {
    const std::int64_t work = work_us(now_ns) + std::clamp<std::int64_t>(work_ns / 1'000, 0, kMostUs);
    work_us_.store(std::min(work, kMostUs), std::memory_order_relaxed);
    at_us_.store(now_ns / 1'000, std::memory_order_relaxed);
  }
  /// returns: thousandths of the time, kMostMilli at most; and the same with `more_ns` of further work.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> milli_with(std::int64_t now_ns,
                                                                 std::int64_t more_ns) const noexcept {
    const std::int64_t work = work_us(now_ns), more = std::clamp<std::int64_t>(more_ns / 1'000, 0, kMostUs);
    return {std::min(kMostMilli, work * 1'000 / kWindowUs), std::min(kMostMilli, (work + more) * 1'000 / kWindowUs)};
  }
  [[nodiscard]] std::int64_t milli(std::int64_t now_ns) const noexcept { return milli_with(now_ns, 0).first; }

 private:
  static constexpr std::int64_t kMostUs = 100'000'000'000;
  [[nodiscard]] std::int64_t work_us(std::int64_t now_ns) const noexcept {
    const std::int64_t work = work_us_.load(std::memory_order_relaxed);
    const std::int64_t passed = now_ns / 1'000 - at_us_.load(std::memory_order_relaxed);
    if (work == 0 || passed <= 0) return work;
    return passed > 16 * kWindowUs ? 0 : work / 16 * kWindowUs / (kWindowUs + passed) * 16;
  }
  std::atomic<std::int64_t> work_us_{0};
  std::atomic<std::int64_t> at_us_{0};
};

}  // namespace warmroute
