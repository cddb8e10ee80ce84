/// What prefill takes of a replica's time, for the formulas of pairs. Own books only; forgets by itself.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace warmroute {

/// How much of its time a replica spends on prefill, from the work booked there; older work fades over kWindow.
/// threads: any. Two calls at once may lose one of two amounts: it is a mean, not a book.
class PrefillShare {
 public:
  static constexpr std::int64_t kWindowUs = 10'000'000;  // about the time that a request decodes

  void add(std::int64_t work_ns, std::int64_t now_ns) noexcept {
    const std::int64_t work = std::clamp<std::int64_t>(work_ns / 1'000, 0, kMostUs);
    const std::int64_t before = faded(work_us_, now_ns);
    const std::int64_t prompts = faded(prompts_, now_ns) + (work > 0 ? kPrompt : 0);
    work_us_.store(std::min(before + work, kMostUs), std::memory_order_relaxed);
    prompts_.store(std::min(prompts, kMostUs), std::memory_order_relaxed);
    at_us_.store(now_ns / 1'000, std::memory_order_relaxed);
  }
  /// returns: thousandths of the time. 900 at most: decodes advance in every step.
  [[nodiscard]] std::int64_t milli(std::int64_t now_ns) const noexcept {
    return std::min<std::int64_t>(900, faded(work_us_, now_ns) * 1'000 / kWindowUs);
  }
  /// returns: the same of the time by which it holds up decodes whose step takes `step_ns` without it, one more prompt of
  /// `more_ns` included: W * W / (W + n * step) for n prompts of W together, since the step that computes a prompt brings each
  /// decode a token. A prompt that takes several steps counts as one.
  [[nodiscard]] std::int64_t stall_milli(std::int64_t now_ns, std::int64_t step_ns,
                                         std::int64_t more_ns = 0) const noexcept {
    const std::int64_t more = std::clamp<std::int64_t>(more_ns / 1'000, 0, kMostUs);
    const std::int64_t work = faded(work_us_, now_ns) + more;
    if (work <= 0) return 0;
    const std::int64_t prompts = faded(prompts_, now_ns) + (more > 0 ? kPrompt : 0);
    const std::int64_t steps = prompts / kPrompt * (step_ns / 1'000) + prompts % kPrompt * (step_ns / 1'000) / kPrompt;
    return std::min<std::int64_t>(900, work * 1'000 / kWindowUs * work / (work + steps));
  }

 private:
  static constexpr std::int64_t kMostUs = 10'000'000'000;  // squares of it fit
  static constexpr std::int64_t kPrompt = 1'024;           // one prompt, so that fading keeps its fractions
  [[nodiscard]] std::int64_t faded(const std::atomic<std::int64_t>& what, std::int64_t now_ns) const noexcept {
    const std::int64_t amount = what.load(std::memory_order_relaxed);
    const std::int64_t passed = now_ns / 1'000 - at_us_.load(std::memory_order_relaxed);
    if (amount == 0 || passed <= 0) return amount;
    return passed > 16 * kWindowUs ? 0 : amount / 16 * kWindowUs / (kWindowUs + passed) * 16;
  }
  std::atomic<std::int64_t> work_us_{0};
  std::atomic<std::int64_t> prompts_{0};
  std::atomic<std::int64_t> at_us_{0};
};

}  // namespace warmroute
