// Limits: reserve and settle over 4 scopes with 5 limits, alone and on threads that share a team or everything.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "warmroute/usage/limits.hpp"

namespace {

using namespace warmroute;

LimitSpec limit(const char* name, LimitKind kind, LimitUnit unit) {
  LimitSpec s;
  s.name = name;
  s.kind = kind;
  s.unit = unit;
  s.amount = 1'000'000'000'000'000;
  return s;
}

Limits& shared_limits() {
  static Limits limits;
  return limits;
}

enum Sharing { kTeam, kAll };

void reserve_and_settle(benchmark::State& state, Sharing sharing) {
  Limits& limits = shared_limits();
  const std::string own = sharing == kAll ? "one" : "own-" + std::to_string(state.thread_index());
  const ScopeId ids[] = {*limits.scope("key", own), *limits.scope("model", own), *limits.scope("label", own),
                         *limits.scope("team", "blue")};
  if (state.thread_index() == 0 || sharing == kTeam) {
    const std::vector<LimitSpec> key{limit("rpm", LimitKind::rate, LimitUnit::requests),
                                     limit("tpm", LimitKind::rate, LimitUnit::total_tokens)};
    const std::vector<LimitSpec> one{limit("at-once", LimitKind::concurrency, LimitUnit::requests)};
    const std::vector<LimitSpec> money{limit("month", LimitKind::budget, LimitUnit::cost_nanos)};
    const std::vector<LimitSpec> input{limit("itpm", LimitKind::rate, LimitUnit::input_tokens)};
    const bool ok = limits.set_limits(ids[0], key) && limits.set_limits(ids[1], input) &&
                    limits.set_limits(ids[2], one) && limits.set_limits(ids[3], money);
    if (!ok) state.SkipWithError("limits");
  }
  const LimitUse estimate{2'000, 0, 500, 5'000'000};
  const LimitUse actual{2'010, 1'000, 200, 3'000'000};
  std::int64_t now = 0;
  for (auto _ : state) {
    now += 1'000;
    const UsageTime time{Nanos{now}, WallNanos{now}};
    const LimitDecision d = limits.reserve(ids, estimate, time);
    benchmark::DoNotOptimize(limits.settle(d.ticket, actual, time));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(reserve_and_settle, alone_or_team_shared, kTeam)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK_CAPTURE(reserve_and_settle, all_shared, kAll)->Threads(2)->UseRealTime();

}  // namespace
