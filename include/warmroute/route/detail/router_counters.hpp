/// The counters behind RouterStatistics: atomics, grouped by who writes them. Relaxed: each number is exact, sets of them are not.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/observe/statistics.hpp"

namespace warmroute::detail {

using Counter = std::atomic<std::uint64_t>;
using Sum = std::atomic<std::int64_t>;

template <class Atomic, class Value>
void bump(Atomic& counter, Value value) noexcept {
  counter.fetch_add(value, std::memory_order_relaxed);
}

struct TtftHistogram {
  std::array<Counter, kTtftBucketsMs.size() + 1> buckets{};
  Sum sum_ns{0};

  void observe(std::int64_t ns) noexcept {
    std::size_t i = 0;
    while (i < kTtftBucketsMs.size() && ns > kTtftBucketsMs[i] * 1'000'000) ++i;
    bump(buckets[i], 1u);
    bump(sum_ns, ns);
  }
  [[nodiscard]] TtftStatistics read() const noexcept {
    TtftStatistics out;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      out.buckets[i] = buckets[i].load(std::memory_order_relaxed);
      out.count += out.buckets[i];
    }
    out.sum_ns = sum_ns.load(std::memory_order_relaxed);
    return out;
  }
};

struct RouterCounters {
  alignas(kCacheLine) std::array<Counter, 9> verdicts{};  // written by route
  std::array<Counter, kReasonCount> reasons{};
  std::array<Counter, kSplitCount> splits{};
  Counter placements_dropped{0};
  Counter clock_clamped{0};
  mutable Counter scratch_allocated{0};
  alignas(kCacheLine) std::array<Counter, kOutcomeCount> outcomes{};  // written by finish and fail
  Counter late_calls{0};
  Counter transfers_done{0};
  Counter transfers_timed_out{0};
  Sum transfer_ns{0};
  Sum input_tokens{0};
  Sum predicted_cached_tokens{0};
  Sum reported_cached_tokens{0};
  Sum output_tokens{0};
  Counter cached_reports{0};
  Counter cached_exact{0};
  alignas(kCacheLine) TtftHistogram observed_ttft;  // written by first_token
  TtftHistogram predicted_ttft;
  Sum predicted_wait_ns{0};
  Sum predicted_prefill_ns{0};
  Sum saved_prefill_ns{0};
  alignas(kCacheLine) Counter event_blocks_stored{0};  // written by blocks_stored and blocks_removed
  Counter event_blocks_removed{0};
  Counter event_orphans{0};
  Counter event_gaps{0};
};

}  // namespace warmroute::detail
