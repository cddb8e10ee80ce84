// Rates that were declared four times off, on the public conversation slice: after 200 requests per replica the fleet must be as quick as
// one that knows its rates.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "warmroute/trace/simulator.hpp"
#include "warmroute/trace/trace.hpp"
#include "warmroute/trace/workload.hpp"

namespace warmroute::trace {
namespace {

constexpr std::int64_t kReplicas = 2;
constexpr std::size_t kLearning = 200 * kReplicas;

struct Means {
  double ttft = 0, e2e = 0;
};

// Ten runs whose arrivals differ by up to 50 ms: one run alone is off by some percent either way, whatever the rates.
Means means_of(const std::string& rule) {
  const HardwareProfile& hardware = *find_hardware_profile("70b-8xh100");
  auto records = read_mooncake_trace(WARMROUTE_BENCHMARK_DATA "/mooncake_conversation_1200.jsonl", 0);
  EXPECT_TRUE(records);
  const Workload whole = open_loop(std::move(*records));
  Means out;
  constexpr int kRuns = 10;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    Workload workload = whole;
    scale_arrivals(workload, speed_permille_for_load(workload, hardware, kReplicas, 700));
    SplitMix64 random{seed};
    for (auto& r : workload.requests) r.arrival_us += random.between(0, 50'000);
    SimulationConfig config;
    config.replica.hardware = hardware;
    config.replicas = kReplicas;
    config.rule = rule;
    config.seed = seed;
    config.warm_up_us = workload.requests[kLearning].arrival_us;
    const auto figures = simulate(config, workload);
    EXPECT_TRUE(figures) << (figures ? "" : figures.error().message);
    if (!figures) return {};
    out.ttft += figures->ttft.mean_us / kRuns;
    out.e2e += figures->e2e.mean_us / kRuns;
  }
  return out;
}

TEST(LearnedRatesInAFleet, AreWithinFivePercentOfPerfectOnes) {
  const Means perfect = means_of("warmroute:learn_rates=false");
  ASSERT_GT(perfect.ttft, 0);
  for (const char* off : {"1", "4", "0.25", "4/0.25/4/0.25", "0.25/4/0.25/4"}) {
    std::string rule = "warmroute:rates=";
    const Means learned = means_of(rule.append(off));
    EXPECT_LE(learned.ttft, perfect.ttft * 1.05) << off;
    EXPECT_LE(learned.e2e, perfect.e2e * 1.05) << off;
  }
  const Means as_declared = means_of("warmroute:learn_rates=false:rates=4/0.25/4/0.25");
  EXPECT_GT(as_declared.ttft, perfect.ttft * 1.03);  // what there is to learn
}

}  // namespace
}  // namespace warmroute::trace
