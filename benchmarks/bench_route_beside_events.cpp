// The tail of routing while engines' events pour in: one thread decodes, hashes and applies them through KvSource, another one routes prompts
// of 10,000 tokens over 8 replicas; each call is timed. Args: events' blocks per second (0: none come; -1: as many as go).
// `kblocks_per_s` is what went in meanwhile; the same loop that only reads the clock is timed beside it, since a virtual machine itself pauses.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "call_times.hpp"
#include "kv_payloads.hpp"
#include "warmroute/ingest/kv_source.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

constexpr std::size_t kReplicas = 8;
constexpr std::size_t kPrompts = 64;        // of which each replica holds half
constexpr std::size_t kPromptBlocks = 625;  // 10,000 tokens

// One replica's engine: stores prompts piece by piece and evicts the one it stored longest ago, over and over.
class Feed {
 public:
  Feed(Router& router, ReplicaId id, std::uint64_t first) : source_(router, id, KvSourceOptions{}), next_(first) {
    for (std::uint64_t p = 0; p < kPrompts; ++p) {
      stored_.push_back(bench::payload_of(p, kPromptBlocks, 1));
      removed_.push_back(bench::removal_of(p, kPromptBlocks));
    }
  }
  // returns: blocks stored.
  std::size_t step() {
    push(stored_[next_ % kPrompts]);
    if (++held_ > kPrompts / 2) push(removed_[(next_ - kPrompts / 2) % kPrompts]);
    ++next_;
    return kPromptBlocks;
  }

 private:
  void push(const std::string& payload) {
    KvMessage message;
    message.seq = seq_++;
    message.payload = payload;
    source_.live(message, Nanos{bench::clock_ns()});
  }
  KvSource source_;
  std::vector<std::string> stored_, removed_;
  std::uint64_t next_, seq_ = 0;
  std::size_t held_ = 0;
};

void RouteBesideEvents(benchmark::State& state) {
  const std::int64_t rate = state.range(0);
  constexpr std::size_t kCalls = 200'000;
  Router router({.max_replicas = 16});
  std::vector<ReplicaId> ids;
  std::vector<std::unique_ptr<Feed>> feeds;
  for (std::size_t i = 0; i < kReplicas; ++i) {
    ids.push_back(*router.add_replica({.name = "replica-" + std::to_string(i)}, Nanos{bench::clock_ns()}));
    feeds.push_back(std::make_unique<Feed>(router, ids.back(), i * kPrompts / kReplicas));
    for (std::size_t p = 0; p < kPrompts / 2; ++p) feeds.back()->step();
  }
  std::vector<std::vector<std::uint32_t>> prompts(kPrompts);
  for (std::size_t p = 0; p < kPrompts; ++p) {
    for (std::size_t t = 0; t <= kPromptBlocks * bench::kBlockTokens; ++t) prompts[p].push_back(bench::token_of(p, t));
  }
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> blocks{0};
  std::thread feeder([&] {
    const std::int64_t start = bench::clock_ns();
    for (std::size_t i = 0; rate != 0 && !stop.load(std::memory_order_relaxed); ++i) {
      const std::uint64_t done = blocks.load(std::memory_order_relaxed);
      if (rate > 0 && static_cast<double>(done) * 1e9 >
                          static_cast<double>(rate) * static_cast<double>(bench::clock_ns() - start)) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        continue;
      }
      blocks.store(done + feeds[i % kReplicas]->step(), std::memory_order_relaxed);
    }
  });
  std::vector<std::int64_t> route_ns, close_ns, idle_ns;
  std::int64_t cached = 0, tokens = 0, spent = 0;
  for (auto _ : state) {
    const std::int64_t begin = bench::clock_ns();
    std::vector<Ticket> open;
    for (std::size_t call = 0; call < kCalls; ++call) {
      Request r;
      r.token_ids = prompts[bench::mix(call) % kPrompts];
      std::int64_t start = bench::clock_ns();
      const Decision d = router.route(r, Nanos{start});
      route_ns.push_back(bench::clock_ns() - start);
      cached += d.total_cached().value;
      tokens += d.input_tokens.value;
      open.push_back(d.ticket);
      if (open.size() > 64) {
        std::swap(open[bench::mix(call + kCalls) % open.size()], open.back());
        start = bench::clock_ns();
        router.first_token(open.back(), Nanos{start});
        router.finish(open.back(), {}, Nanos{start});
        close_ns.push_back(bench::clock_ns() - start);
        open.pop_back();
      }
      start = bench::clock_ns();
      benchmark::ClobberMemory();
      idle_ns.push_back(bench::clock_ns() - start);
    }
    spent += bench::clock_ns() - begin;
  }
  stop.store(true);
  feeder.join();
  bench::report_times(state, route_ns, "route", "_p999_us", 0.999);
  bench::report_times(state, close_ns, "close", "_p999_us", 0.999);
  bench::report_times(state, idle_ns, "idle", "_p999_us", 0.999);
  state.counters["kblocks_per_s"] = static_cast<double>(blocks.load()) * 1e6 / static_cast<double>(spent);
  state.counters["cached_share"] = static_cast<double>(cached) / static_cast<double>(tokens);
}
BENCHMARK(RouteBesideEvents)
    ->ArgName("blocks_per_s")
    ->Arg(0)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Arg(-1)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace warmroute
