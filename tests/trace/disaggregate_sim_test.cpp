// Prefill and decode apart in the simulator: a pair by hand, links, deaths of either side, and the real router on pools.
// Toy machine as in simulator_test.cpp: a step takes max(1 ms, 1 ms per token), blocks are 4 tokens.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trace/recorder.hpp"
#include "trace/toy_workload.hpp"
#include "warmroute/trace/simulator.hpp"

namespace warmroute::trace::disaggregate_sim_test {
namespace {

HardwareProfile toy_hardware() {
  HardwareProfile hw;
  hw.name = "toy";
  hw.floor_ps = hw.per_token_ps = 1'000'000'000;
  hw.kv_tokens = 4'000;
  return hw;
}

// Every request is prefilled on the first replica that is up and decoded on the last one.
struct FirstToLast final : RoutingRule {
  explicit FirstToLast(std::vector<std::string>* c) : calls(c) {}
  [[nodiscard]] bool knows_pools() const noexcept override { return true; }
  std::size_t choose(const RoutedRequest&, std::span<const ReplicaSight> sights, SplitMix64&) override {
    prefill = sights.size() > 1 ? 0 : kNobody;
    return sights.size() - 1;
  }
  [[nodiscard]] std::size_t chosen_prefill() const noexcept override { return prefill; }
  void first_token(const RoutedRequest& r, std::uint32_t on) override { call("first", r, on); }
  void transferred(const RoutedRequest& r, std::uint32_t on) override { call("transferred", r, on); }
  void finished(const RoutedRequest& r, std::uint32_t on, std::int64_t, std::int64_t) override {
    call("finished", r, on);
  }
  void lost(const RoutedRequest& r, std::uint32_t on) override { call("lost", r, on); }
  void call(const char* what, const RoutedRequest& r, std::uint32_t on) const {
    calls->push_back(std::string(what) + " " + std::to_string(r.index) + " on " + std::to_string(on) + " @" +
                     std::to_string(r.now_us / kMs));
  }
  std::vector<std::string>* calls;
  std::size_t prefill = kNobody;
};

SimulationConfig toy_fleet(std::int64_t prefill, std::int64_t decode, std::vector<std::string>* calls = nullptr) {
  SimulationConfig config;
  config.replica.hardware = toy_hardware();
  config.replicas = prefill + decode;
  config.prefill_replicas = prefill;
  config.decode_replicas = decode;
  config.transfer_token_ps = 1'000'000'000;
  config.transfer_latency_us = 5 * kMs;
  config.keep_requests = true;
  if (calls != nullptr) config.own_rule = [calls](const RuleSetting&) { return std::make_unique<FirstToLast>(calls); };
  return config;
}

SimulationFigures run(const SimulationConfig& config, const Workload& workload) {
  auto figures = simulate(config, workload);
  EXPECT_TRUE(figures) << (figures ? "" : figures.error().message);
  return figures ? *figures : SimulationFigures{};
}

TEST(ReplicaModelThatReceives, ComputesOnlyTheLastTokenAndHoldsWhatCame) {
  ReplicaModelConfig config;
  config.hardware = toy_hardware();
  config.block_tokens = 4;
  ReplicaModel model(config);
  const std::vector<std::uint64_t> blocks{7, 8};
  ASSERT_TRUE(model.submit(1, blocks, 9, 2, 0, 8));
  EXPECT_EQ(model.pending_prefill_tokens(), 1);
  Recorder seen;
  drain(model, seen, 0);
  EXPECT_EQ(seen.tokens[1], (std::vector<std::int64_t>{1 * kMs, 2 * kMs}));
  EXPECT_EQ(seen.commits, blocks);
  EXPECT_EQ(model.match_blocks(blocks, 9), 2);
  ASSERT_TRUE(model.submit(2, blocks, 9, 1, 2 * kMs, 1'000));  // the last token is always computed
  EXPECT_EQ(model.pending_prefill_tokens(), 1);
  ASSERT_TRUE(model.cancel(2));
  EXPECT_EQ(model.pending_prefill_tokens(), 0);
}

TEST(SimulatorOfPairs, TakesPrefillThenTransferThenDecode) {
  // Prefill 9 ms, 9 tokens of 1 ms on the link and 5 ms more: 23; the last token again: 24; two more: 26.
  // Request 1 finds 8 tokens on both sides: 1 ms, 1 token on the link: 30 + 1 + 1 + 5 = 37, answers at 38.
  std::vector<std::string> calls;
  const auto figures = run(toy_fleet(1, 1, &calls), toy_workload({{0, {0, 1}, 9, 3}, {30 * kMs, {0, 1}, 9, 1}}));
  EXPECT_EQ(calls, (std::vector<std::string>{"first 0 on 0 @9", "transferred 0 on 1 @24", "finished 0 on 1 @26",
                                             "first 1 on 0 @31", "transferred 1 on 1 @38", "finished 1 on 1 @38"}));
  EXPECT_EQ(figures.per_request[0].first_token_us, 24 * kMs);
  EXPECT_EQ(figures.per_request[0].end_us, 26 * kMs);
  EXPECT_EQ(figures.per_request[1].cached_tokens, 8);
  EXPECT_EQ(figures.pairs, 2);
  EXPECT_EQ(figures.transferred_tokens, 10);
  EXPECT_EQ(figures.transfer.max_us, 14 * kMs);
}

TEST(SimulatorOfPairs, QueuesTransfersOnTheLinkOfTheSender) {
  // Both prompts end their prefill in one step at 8 ms; the second one's 4 tokens wait for the first one's.
  std::vector<std::string> calls;
  run(toy_fleet(1, 1, &calls), toy_workload({{0, {}, 4, 1}, {0, {}, 4, 1}}));
  EXPECT_EQ(calls, (std::vector<std::string>{"first 0 on 0 @8", "first 1 on 0 @8", "transferred 0 on 1 @18",
                                             "finished 0 on 1 @18", "transferred 1 on 1 @22", "finished 1 on 1 @22"}));
}

TEST(SimulatorOfPairs, SendsAgainWhatLostEitherSide) {
  std::vector<std::string> calls;
  auto config = toy_fleet(2, 2, &calls);
  const Workload workload = toy_workload({{0, {}, 9, 3}});
  config.churn = {{4 * kMs, ChurnEvent::Kind::remove, 0, 1000}};  // prefill at work
  auto figures = run(config, workload);
  EXPECT_EQ(calls.front(), "lost 0 on 0 @4");
  EXPECT_EQ(figures.per_request[0].prefill_replica, 1u);
  EXPECT_EQ(figures.per_request[0].first_token_us, 28 * kMs);
  config.churn = {{12 * kMs, ChurnEvent::Kind::restart, 0, 1000}};  // on the link: seen when it should have come
  figures = run(config, workload);
  EXPECT_EQ(figures.per_request[0].first_token_us, (23 + 24) * kMs);
  config.churn = {{12 * kMs, ChurnEvent::Kind::remove, 3, 1000}};
  figures = run(config, workload);
  EXPECT_EQ(figures.per_request[0].replica, 2u);
  EXPECT_EQ(figures.sent_again, 1);
  config.churn = {{25 * kMs, ChurnEvent::Kind::remove, 3, 1000}};  // decoding
  figures = run(config, workload);
  EXPECT_EQ(figures.per_request[0].replica, 2u);
  EXPECT_EQ(figures.completed, 1);
}

TEST(SimulatorOfPairs, RefusesRulesThatKnowNoPoolsAndFleetsWithoutAnswers) {
  auto config = toy_fleet(1, 1);
  const Workload workload = toy_workload({{0, {}, 9, 3}});
  config.rule = "least";
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  config.rule = "pd:decided";
  EXPECT_TRUE(simulate(config, workload));
  config.rule = "pd:sometimes";
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  EXPECT_EQ(simulate(toy_fleet(2, 0), workload).code(), Code::invalid_argument);
  config = toy_fleet(1, 1);
  config.replicas = 1;
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
}

TEST(SimulatorOfPairs, CountsRequestsWithinBothLimits) {
  // Alone on one replica: first token at 2 ms, 1 ms each; with the prompt of 20 in between, 21 ms once: mean 11 of two gaps.
  SimulationConfig config = toy_fleet(0, 0);
  config.replicas = 1;
  config.rule = "least";
  config.slo_ttft_us = 30 * kMs;
  config.slo_itl_us = 10 * kMs;
  const Workload workload = toy_workload({{0, {}, 2, 3}, {2 * kMs, {}, 20, 1}, {100 * kMs, {}, 1, 1}});
  auto figures = run(config, workload);
  EXPECT_DOUBLE_EQ(figures.goodput, 2.0 / 3);
  EXPECT_DOUBLE_EQ(figures.goodput_rate, 2 / 0.1);
  config.slo_itl_us = 11 * kMs;
  EXPECT_DOUBLE_EQ(run(config, workload).goodput, 1.0);
}

TEST(SimulatorOfPairs, DrivesTheRealRouterWhoseBooksEndEmpty) {
  auto records = read_mooncake_trace(std::string(WARMROUTE_BENCHMARK_DATA) + "/mooncake_conversation_1200.jsonl", 400);
  ASSERT_TRUE(records);
  Workload workload = open_loop(std::move(*records));
  SimulationConfig config;
  config.replica.hardware = *find_hardware_profile("70b-8xh100");
  config.transfer_token_ps = 6'553'600;
  config.slo_itl_us = 40 * kMs;
  scale_arrivals(workload, speed_permille_for_load(workload, config.replica.hardware, 8, 700));
  config.churn = *parse_churn("5 remove 1, 8 restart 6, 12 add, 14 flap 2 1");
  const auto pairs = [&](const char* rule, std::int64_t prefill, std::int64_t decode) {
    config.rule = rule;
    config.prefill_replicas = prefill;
    config.decode_replicas = decode;
    const auto figures = run(config, workload);
    EXPECT_EQ(figures.completed, 400) << rule;
    EXPECT_EQ(figures.booked_at_end, 0) << rule;
    const auto again = run(config, workload);
    EXPECT_EQ(again.ttft.mean_us, figures.ttft.mean_us) << rule;
    EXPECT_EQ(again.pairs, figures.pairs) << rule;
    return figures.pairs;
  };
  EXPECT_EQ(pairs("pd:unified", 0, 0), 0);
  EXPECT_EQ(pairs("pd:always", 4, 4), 400);
  EXPECT_EQ(pairs("pd:always", 0, 0), 400);
  const std::int64_t decided = pairs("pd:decided", 4, 4);
  EXPECT_GT(decided, 0);
  EXPECT_LT(decided, 400);
  EXPECT_GT(pairs("pd:decided:pair_min_tokens=100", 0, 0), 0);
}

}  // namespace
}  // namespace warmroute::trace::disaggregate_sim_test
