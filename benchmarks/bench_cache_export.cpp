// A warm restart: copying, exporting and importing what a router believes of its replicas' caches.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <string>

#include "prefix_workloads.hpp"
#include "warmroute/route/cache_export.hpp"

namespace warmroute {
namespace {

constexpr std::array<std::uint8_t, 32> kKey{7};

void add_replicas(Router& router, std::int64_t replicas, std::int64_t blocks) {
  for (std::int64_t r = 0; r < replicas; ++r) {
    if (!router.add_replica({.name = "replica-" + std::to_string(r), .capacity_tokens = blocks / replicas * 16},
                            Nanos{0}))
      std::abort();
  }
}

// Conversations in families that share a head of 100 blocks, of `own` more each, in five turns; over all replicas.
Nanos fill(Router& router, std::int64_t blocks, std::size_t own) {
  Nanos now{0};
  const auto rows = router.replicas();
  const auto believed = [&] {
    std::uint64_t sum = 0;
    for (const auto& r : router.statistics().replicas) sum += r.believed_blocks;
    return static_cast<std::int64_t>(sum);
  };
  for (std::uint64_t conversation = 0; conversation % 64 != 0 || believed() < blocks; ++conversation) {
    bench::Path path = bench::chain(conversation % 100, 100);
    for (std::size_t b = 100; b < 100 + own; ++b) path.push_back(bench::local(1'000 + conversation, b));
    for (std::size_t turn = 100 + own / 5; turn <= 100 + own; turn += own / 5) {
      Request request;
      request.blocks = std::span(path).first(turn);
      request.pinned = rows[conversation % rows.size()].id;
      router.fail(router.route(request, now += microseconds(10)).ticket, Outcome::cancelled, now);
    }
  }
  router.advance(now);
  return now;
}

RouterOptions large() {
  RouterOptions options;
  options.index_max_bytes = std::size_t{8} << 30;
  return options;
}

// Args: blocks over all replicas, replicas, blocks of a conversation.
void arguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"blocks", "replicas", "own"})->Unit(benchmark::kMillisecond);
  b->Args({1'000'000, 1, 500})->Args({1'000'000, 8, 500})->Args({1'000'000, 8, 20});
}

void copy_caches(benchmark::State& state) {
  Router router(large());
  add_replicas(router, state.range(1), state.range(0));
  const Nanos now = fill(router, state.range(0), static_cast<std::size_t>(state.range(2)));
  std::size_t runs = 0;
  for (auto _ : state) {
    runs = 0;
    for (const auto& row : router.replicas()) runs += router.cached(row.id, now)->tree.runs.size();
  }
  state.counters["runs"] = static_cast<double>(runs);
}
BENCHMARK(copy_caches)->Apply(arguments);

void export_all(benchmark::State& state) {
  Router router(large());
  add_replicas(router, state.range(1), state.range(0));
  const Nanos now = fill(router, state.range(0), static_cast<std::size_t>(state.range(2)));
  std::size_t bytes = 0;
  for (auto _ : state) bytes = export_caches(router, kKey, now)->size();
  state.counters["bytes_per_block"] = static_cast<double>(bytes) / static_cast<double>(state.range(0));
}
BENCHMARK(export_all)->Apply(arguments);

void import_all(benchmark::State& state) {
  std::string bytes;
  {
    Router router(large());
    add_replicas(router, state.range(1), state.range(0));
    bytes = *export_caches(router, kKey, fill(router, state.range(0), static_cast<std::size_t>(state.range(2))));
  }
  std::uint64_t restored = 0;
  for (auto _ : state) {
    Router router(large());
    add_replicas(router, state.range(1), state.range(0));
    const auto start = std::chrono::steady_clock::now();
    restored = import_caches(router, bytes, kKey, Nanos{1})->blocks_restored;
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  state.counters["blocks"] = static_cast<double>(restored);
}
BENCHMARK(import_all)->Apply(arguments)->UseManualTime();

}  // namespace
}  // namespace warmroute
