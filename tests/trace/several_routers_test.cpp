// Several routers before one fleet: the ring that gives each prompt one of them, and what they tell one another.
#include <gtest/gtest.h>

#include <cstdint>

#include "warmroute/trace/simulator.hpp"

namespace warmroute::trace::several_routers_tests {
namespace {

/// Conversations that grow, each from a first prompt of its own: 24 of 6 turns, started 40 ms apart.
Workload conversations() {
  HotPrefixOptions options;
  options.agents = 24;
  options.turns = 6;
  options.system_tokens = 4'096;
  return hot_prefix(options);
}

SimulationConfig fleet(std::int64_t routers) {
  SimulationConfig config;
  config.replica.hardware = *find_hardware_profile("8b-a100");
  config.replicas = 4;
  config.routers = routers;
  config.view = *find_view("fix-approx");
  config.keep_requests = true;
  return config;
}

SimulationFigures run(const SimulationConfig& config, const Workload& workload) {
  auto figures = simulate(config, workload);
  EXPECT_TRUE(figures.ok()) << figures.error().message;
  return figures ? std::move(*figures) : SimulationFigures{};
}

TEST(SeveralRouters, TheRingForwardsAllButWhatAlreadyCameToItsOwner) {
  const Workload workload = conversations();
  auto config = fleet(4);
  EXPECT_EQ(run(config, workload).forwarded, 0);
  config.gateway_ring = true;
  const auto f = run(config, workload);
  EXPECT_EQ(f.completed, f.requests);
  EXPECT_GT(f.forwarded, f.requests / 2) << "three of four come to another one first";
  EXPECT_LT(f.forwarded, f.requests);
  EXPECT_EQ(f.booked_at_end, 0);
  config.routers = 1;
  EXPECT_EQ(run(config, workload).forwarded, 0);
}

TEST(SeveralRouters, ForwardingTakesItsTime) {
  const Workload workload = conversations();
  auto config = fleet(4);
  config.gateway_ring = true;
  config.forward_us = 0;
  const auto at_once = run(config, workload);
  config.forward_us = 400'000;
  const auto late = run(config, workload);
  EXPECT_GT(late.ttft.mean_us, at_once.ttft.mean_us + 200'000);
}

TEST(SeveralRouters, ARingOfOneKeepsAConversationsCache) {
  const Workload workload = conversations();
  auto config = fleet(4);
  const double sprayed = run(config, workload).hit_ratio;
  config.gateway_ring = true;
  EXPECT_GT(run(config, workload).hit_ratio, sprayed);
}

TEST(SeveralRouters, WhoTellWhatTheySentWhereFindWhatOneRouterFinds) {
  const Workload workload = conversations();
  const auto one = run(fleet(1), workload);
  auto config = fleet(4);
  const auto silent = run(config, workload);
  EXPECT_EQ(silent.shared_bytes, 0);
  config.share_loads_us = 100'000;
  const auto loads = run(config, workload);
  EXPECT_GT(loads.shared_bytes, 0);
  config.share_placements = true;
  const auto all = run(config, workload);
  EXPECT_GT(all.shared_bytes, loads.shared_bytes);
  EXPECT_LT(silent.hit_ratio, one.hit_ratio - 0.02);
  EXPECT_NEAR(all.hit_ratio, one.hit_ratio, 0.02);
  EXPECT_LT(all.ttft.mean_us, silent.ttft.mean_us);
  EXPECT_EQ(all.booked_at_end, 0);
}

TEST(SeveralRouters, OneAloneHasNobodyToTell) {
  const Workload workload = conversations();
  auto config = fleet(1);
  const auto silent = run(config, workload);
  config.share_loads_us = 100'000;
  const auto telling = run(config, workload);
  EXPECT_EQ(telling.shared_bytes, 0);
  EXPECT_EQ(telling.completed, silent.completed);
  EXPECT_EQ(telling.makespan_us, silent.makespan_us);
}

TEST(SeveralRouters, TellIsTheSameTwiceAndSurvivesChurn) {
  const Workload workload = conversations();
  auto config = fleet(3);
  config.gateway_ring = true;
  config.share_loads_us = 50'000;
  config.share_placements = true;
  config.churn = *parse_churn("2 remove 3, 4 add, 6 rolling 0-1 2");
  for (const char* view : {"fix-approx", "own-approx", "stale-fix"}) {
    config.view = *find_view(view);
    const auto first = run(config, workload), second = run(config, workload);
    EXPECT_EQ(first.completed, first.requests) << view;
    EXPECT_EQ(first.booked_at_end, 0) << view;
    EXPECT_EQ(first.shared_bytes, second.shared_bytes) << view;
    ASSERT_EQ(first.per_request.size(), second.per_request.size());
    for (std::size_t i = 0; i < first.per_request.size(); ++i)
      ASSERT_EQ(first.per_request[i].end_us, second.per_request[i].end_us) << view << " " << i;
  }
}

TEST(SeveralRouters, NoTimeIsNegative) {
  const Workload workload = conversations();
  auto config = fleet(2);
  config.forward_us = -1;
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  config.forward_us = 0;
  config.share_loads_us = -1;
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  config.share_loads_us = 100;
  config.forward_us = 400;
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument) << "told before the last was heard";
}

}  // namespace
}  // namespace warmroute::trace::several_routers_tests
