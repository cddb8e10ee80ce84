// The model of one replica's cache: touching a warm prefix, and turnover at capacity, among up to 10^6 blocks.
#include <benchmark/benchmark.h>

#include "prefix_workloads.hpp"
#include "warmroute/prefix/residency.hpp"

namespace warmroute {
namespace {

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

// Args: blocks in the replica, blocks of the prefix touched.
void touch_warm(benchmark::State& state) {
  PrefixIndex index({.max_bytes = std::size_t{8} << 30});
  Residency residency(index, {0, 1});
  const std::size_t length = size(state.range(1)), chains = std::max<std::size_t>(size(state.range(0)) / length, 64);
  for (std::size_t c = 0; c < chains; ++c) residency.insert(bench::chain(c, length), Nanos{1});
  std::vector<bench::Path> hot;
  for (std::size_t c = 0; c < 64; ++c) hot.push_back(bench::chain(c * (chains / 64), length));
  std::int64_t now = 2;
  bench::Stopwatch watch;
  for (auto _ : state) {
    residency.insert(hot[size(now) % hot.size()], Nanos{now});
    ++now;
  }
  for (int n = 0; n < 50'000; ++n, ++now)
    watch.time([&] { residency.insert(hot[size(now) % hot.size()], Nanos{now}); });
  state.counters["p50_ns"] = watch.percentile(0.5);
  state.counters["p99_ns"] = watch.percentile(0.99);
}
BENCHMARK(touch_warm)->ArgNames({"blocks", "prefix"})->ArgsProduct({{10'000, 1'000'000}, {64, 625}});

// A full cache: every insert of a new conversation of 200 blocks under a shared 100-block head evicts as many. Args: capacity.
void turnover(benchmark::State& state) {
  PrefixIndex index({.max_bytes = std::size_t{8} << 30});
  Residency residency(index, {0, 1}, Tier::device, {.capacity_blocks = size(state.range(0))});
  std::uint64_t family = 0;
  bench::Path path = bench::chain(1, 100);
  path.resize(300);
  const auto next = [&] {
    for (std::size_t b = 100; b < path.size(); ++b) path[b] = bench::local(1'000 + family, b);
    residency.insert(path, Nanos{static_cast<std::int64_t>(++family)});
  };
  while (residency.evicted() == 0) next();
  for (auto _ : state) next();
  state.counters["ns_per_block"] = benchmark::Counter(200e-9 * static_cast<double>(state.iterations()),
                                                      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(turnover)->ArgName("capacity")->Arg(10'000)->Arg(1'000'000);

}  // namespace
}  // namespace warmroute
