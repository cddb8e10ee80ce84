// What recording costs: a router's calls for one request, plain and recorded, by the prompt's blocks; and playing a log again.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "warmroute/trace/decision_log.hpp"
#include "warmroute/trace/decision_recorder.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute::trace {
namespace {

constexpr int kReplicas = 8;
const char* const kPath = "/tmp/warmroute_bench.decisions";

std::vector<std::vector<BlockHash>> prompts(std::size_t blocks) {
  SplitMix64 random{1};
  std::vector<std::vector<BlockHash>> out(64, std::vector<BlockHash>(blocks));
  for (auto& prompt : out) {
    for (BlockHash& hash : prompt) hash = BlockHash{random.next()};
  }
  return out;
}

template <class R>
void requests(benchmark::State& state, R& router) {
  for (int i = 0; i < kReplicas; ++i) {
    ReplicaSpec spec;
    spec.name = "replica-" + std::to_string(i);
    static_cast<void>(router.add_replica(spec, Nanos{0}));
  }
  const auto all = prompts(static_cast<std::size_t>(state.range(0)));
  Nanos now{1};
  std::size_t i = 0;
  for (auto _ : state) {
    Request request;
    request.blocks = all[i++ % all.size()];
    now += microseconds(100);
    const Decision d = router.route(request, now);
    router.first_token(d.ticket, now);
    router.finish(d.ticket, {.cached_tokens = d.total_cached().value, .output_tokens = 10}, now);
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_Plain(benchmark::State& state) {
  Router router;
  requests(state, router);
}
void BM_Recorded(benchmark::State& state) {
  DecisionLogOptions options;
  options.max_bytes = std::uint64_t{1} << 32;
  auto recorder = DecisionRecorder::open(kPath, {}, options);
  if (!recorder) return state.SkipWithError("no file");
  requests(state, *recorder);
  state.counters["bytes/request"] = benchmark::Counter(static_cast<double>(recorder->log_statistics().bytes) /
                                                       static_cast<double>(state.iterations()));
  std::remove(kPath);
}
BENCHMARK(BM_Plain)->Arg(16)->Arg(128)->Arg(1024);
BENCHMARK(BM_Recorded)->Arg(16)->Arg(128)->Arg(1024);

}  // namespace
}  // namespace warmroute::trace
