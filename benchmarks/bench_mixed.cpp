// The tail of everything at once: warm and new prompts, evictions, cleared caches, replicas that come and go. Each call is timed;
// beside it an idle loop that does nothing but read the clock, since a virtual machine itself pauses.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <vector>

#include "call_times.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace {
using namespace warmroute;

void mixed_tail(benchmark::State& state) {
  constexpr std::size_t kReplicas = 64;
  constexpr std::size_t kCalls = 400'000;
  Router router({.max_replicas = 128});
  Policy policy;
  policy.capacity_tokens = 320'000;  // 20,000 blocks each: a quarter of the run evicts
  if (!router.set_policy(policy)) std::abort();
  Nanos now{1'000'000'000};
  std::vector<ReplicaId> ids;
  for (std::size_t i = 0; i < kReplicas; ++i)
    ids.push_back(*router.add_replica({.name = "replica-" + std::to_string(i)}, now));
  std::vector<std::int64_t> route_ns;
  std::vector<std::int64_t> finish_ns;
  std::vector<std::int64_t> clear_ns;
  std::vector<std::int64_t> idle_ns;
  for (auto _ : state) {
    std::vector<BlockHash> path(625);
    std::vector<Ticket> open;
    for (std::size_t call = 0; call < kCalls; ++call) {
      const std::uint64_t draw = mix(call);
      const std::uint64_t family = draw % 10 < 8 ? draw % 997 : call;  // 20 % of the prompts are new
      for (std::size_t i = 0; i < path.size(); ++i) path[i] = BlockHash{mix((i < 100 ? family % 8 : family) << 20 | i)};
      Request r;
      r.blocks = path;
      now += Nanos{20'000};
      std::int64_t start = bench::clock_ns();
      const Decision d = router.route(r, now);
      route_ns.push_back(bench::clock_ns() - start);
      open.push_back(d.ticket);
      if (open.size() > 200) {
        std::swap(open[draw % open.size()], open.back());
        start = bench::clock_ns();
        router.first_token(open.back(), now);
        router.finish(open.back(), {10'000, static_cast<std::int64_t>(draw % 7 == 0 ? 0 : 9'984), 50}, now);
        finish_ns.push_back(bench::clock_ns() - start);
        open.pop_back();
      }
      if (call % 5'000 == 4'999) {
        start = bench::clock_ns();
        (void)router.clear_cache(ids[call / 5'000 % kReplicas], now);
        clear_ns.push_back(bench::clock_ns() - start);
      }
      start = bench::clock_ns();
      benchmark::ClobberMemory();
      idle_ns.push_back(bench::clock_ns() - start);
    }
    for (const Ticket t : open) router.finish(t, {}, now);
  }
  bench::report_times(state, route_ns, "route", "_p9999_us", 0.9999);
  bench::report_times(state, finish_ns, "finish", "_p9999_us", 0.9999);
  bench::report_times(state, clear_ns, "clear_cache", "_p9999_us", 0.9999);
  bench::report_times(state, idle_ns, "idle", "_p9999_us", 0.9999);
}
BENCHMARK(mixed_tail)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
