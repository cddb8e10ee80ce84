// Calls timed one by one, and what is told of them: the tail is what matters.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace warmroute::bench {

inline std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Sorts `samples`; counts p50, p99 and one further share under its own name, in us.
inline void report_times(benchmark::State& state, std::vector<std::int64_t>& samples, const std::string& name,
                         const char* tail_name, double tail) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return static_cast<double>(samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))]) /
           1e3;
  };
  state.counters[name + "_p50_us"] = at(0.5);
  state.counters[name + "_p99_us"] = at(0.99);
  state.counters[name + tail_name] = at(tail);
}

}  // namespace warmroute::bench
