// The fleet: cases worked out on paper, the same run twice, and the real router's books at the end of a trace.
// Cases of one replica (chunks, attention, hits, evictions, preemption, watermark, budget, limits) are in
// replica_model_test.cpp. Toy machine: a step takes max(1 ms, 1 ms per token), blocks are 4 tokens.
#include "warmroute/trace/simulator.hpp"

#include <gtest/gtest.h>

#include "support/sanitized.hpp"
#include "trace/recorder.hpp"
#include "trace/toy_workload.hpp"

namespace warmroute::trace {
namespace {

using Ids = std::vector<std::uint64_t>;

/// Sends request i where it is told, and keeps what it saw.
struct Scripted final : RoutingRule {
  struct Log {
    std::vector<std::uint32_t> targets;
    std::vector<std::vector<ReplicaSight>> seen;
    std::vector<std::int64_t> at_us;
    std::vector<std::string> calls;
  };
  explicit Scripted(Log& l) : log(&l) {}
  std::size_t choose(const RoutedRequest& request, std::span<const ReplicaSight> sights, SplitMix64&) override {
    log->seen.emplace_back(sights.begin(), sights.end());
    log->at_us.push_back(request.now_us);
    const std::uint32_t target = request.index < log->targets.size() ? log->targets[request.index] : 0;
    for (std::size_t i = 0; i < sights.size(); ++i) {
      if (sights[i].replica == target) return i;
    }
    return 0;
  }
  void first_token(const RoutedRequest& r, std::uint32_t on) override { call("first", r.index, on, r.now_us); }
  void finished(const RoutedRequest& r, std::uint32_t on, std::int64_t, std::int64_t) override {
    call("finished", r.index, on, r.now_us);
  }
  void lost(const RoutedRequest& r, std::uint32_t on) override { call("lost", r.index, on, r.now_us); }
  void joined(std::uint32_t on, std::int64_t at) override { call("joined", 0, on, at); }
  void left(std::uint32_t on, std::int64_t at) override { call("left", 0, on, at); }
  void call(const char* what, std::uint32_t index, std::uint32_t on, std::int64_t at) {
    log->calls.push_back(std::string(what) + " " + std::to_string(index) + " on " + std::to_string(on) + " @" +
                         std::to_string(at / kMs));
  }
  Log* log;
};

SimulationConfig toy_config(std::int64_t replicas, Scripted::Log* log = nullptr) {
  SimulationConfig config;
  config.replica = toy();
  config.replicas = replicas;
  config.rule = "least";
  config.keep_requests = true;
  if (log != nullptr) config.own_rule = [log](const RuleSetting&) { return std::make_unique<Scripted>(*log); };
  return config;
}

SimulationFigures run(const SimulationConfig& config, const Workload& workload) {
  auto figures = simulate(config, workload);
  EXPECT_TRUE(figures) << (figures ? "" : figures.error().message);
  return figures ? *figures : SimulationFigures{};
}

TEST(Simulator, ServesOneRequestAsTheReplicaModelDoes) {
  const auto figures = run(toy_config(1), toy_workload({{5 * kMs, {0, 1}, 9, 3}}));
  ASSERT_EQ(figures.per_request.size(), 1u);
  EXPECT_EQ(figures.per_request[0].first_token_us, 14 * kMs);
  EXPECT_EQ(figures.per_request[0].end_us, 16 * kMs);
  EXPECT_EQ(figures.ttft.p50_us, 9 * kMs);
  EXPECT_EQ(figures.itl.p99_us, 1 * kMs);
  EXPECT_EQ(figures.e2e.max_us, 11 * kMs);
}

TEST(Simulator, EndsAStepBeforeTheArrivalOfThatInstantAndStartsTheNextOneAfterIt) {
  // Request 0 computes 9 tokens until 9 ms. Request 1 arrives at 9, finds both blocks and joins the step that starts then:
  // one decode and one prompt token, 2 ms.
  const auto figures = run(toy_config(1), toy_workload({{0, {0, 1}, 9, 2}, {9 * kMs, {0, 1}, 9, 1}}));
  EXPECT_EQ(figures.per_request[1].cached_tokens, 8);
  EXPECT_EQ(figures.per_request[0].end_us, 11 * kMs);
  EXPECT_EQ(figures.per_request[1].end_us, 11 * kMs);
  EXPECT_DOUBLE_EQ(figures.hit_ratio, 8.0 / 18);
  EXPECT_DOUBLE_EQ(figures.bound_ratio, 8.0 / 18);
}

/// Is told what engines say of themselves, as a router that keeps its own books.
struct Told final : RoutingRule {
  explicit Told(std::vector<EngineLoad>& l) : log(&l) {}
  [[nodiscard]] bool reads_sights() const noexcept override { return false; }
  std::size_t choose(const RoutedRequest&, std::span<const ReplicaSight>, SplitMix64&) override { return 0; }
  void load_seen(std::uint32_t, const EngineLoad& load, std::int64_t) override { log->push_back(load); }
  std::vector<EngineLoad>* log;
};

TEST(Simulator, EnginesTellTheTokensOfQueuedPromptsThatAreNotCached) {
  // The prompt of request 0 is cached when request 2 asks for it again behind request 1: its last block is all that is to compute.
  const Workload workload = toy_workload({{0, {0, 1, 2, 3, 4}, 20, 2},
                                          {1'000 * kMs, {5, 6}, 8, 2},
                                          {1'001 * kMs, {0, 1, 2, 3, 4}, 20, 2},
                                          {1'002 * kMs, {7}, 4, 1}});
  std::vector<EngineLoad> seen;
  auto config = toy_config(1);
  config.replica.max_running = 1;
  config.own_rule = [&](const RuleSetting&) { return std::make_unique<Told>(seen); };
  (void)run(config, workload);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_FALSE(seen[3].waiting_tokens.has_value());
  seen.clear();
  config.view.waiting_tokens = true;
  (void)run(config, workload);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[2].waiting_tokens, 8);
  EXPECT_EQ(seen[3].waiting, 1);
  EXPECT_EQ(seen[3].waiting_tokens, 8 + 4);
}

TEST(Simulator, SpreadsArrivalsOfOneTimestamp) {
  std::vector<TraceRecord> records(5);
  for (std::size_t i = 0; i < 5; ++i) {
    records[i].arrival_us = i < 3 ? 0 : 3'000;
    records[i].input_tokens = records[i].output_tokens = 1;
  }
  const Workload workload = open_loop(records);
  std::vector<std::int64_t> arrivals;
  for (const auto& r : workload.requests) arrivals.push_back(r.arrival_us);
  EXPECT_EQ(arrivals, (std::vector<std::int64_t>{0, 1'000, 2'000, 3'000, 4'500}));  // the last group: the gap before it
}

TEST(Simulator, ShowsBlocksWhenTheirEventsAreDAndPredictsThemUntilThen) {
  // Request 0 goes to replica 0 and commits at 9 ms. D = 5 ms: its events are visible from 14 ms on. Its prediction ends at
  // 9 + 5 = 14 ms, too, so with prediction there is no gap.
  const Workload workload =
      toy_workload({{0, {0, 1}, 9, 1}, {1 * kMs, {0, 1}, 9, 1}, {13 * kMs, {0, 1}, 9, 1}, {14 * kMs, {0, 1}, 9, 1}});
  for (const bool predicts : {false, true}) {
    Scripted::Log log;
    log.targets = {0, 1, 1, 1};
    auto config = toy_config(3, &log);
    config.view = *find_view(predicts ? "stale-pred" : "stale");
    config.view.event_delay_us = 5 * kMs;
    run(config, workload);
    ASSERT_EQ(log.seen.size(), 4u);
    const std::int64_t early = predicts ? 8 : 0;
    EXPECT_EQ(log.seen[1][0].matched_tokens, early);
    EXPECT_EQ(log.seen[2][0].matched_tokens, early);
    EXPECT_EQ(log.seen[3][0].matched_tokens, 8);
    EXPECT_EQ(log.seen[3][2].matched_tokens, 0);
  }
}

TEST(Simulator, LosesEventsAtTheRateItIsTold) {
  Scripted::Log log;
  auto config = toy_config(1, &log);
  config.view = *find_view("stale");
  config.view.event_delay_us = 0;
  config.view.event_loss_permille = 1000;
  run(config, toy_workload({{0, {0, 1}, 9, 1}, {20 * kMs, {0, 1}, 9, 1}}));
  EXPECT_EQ(log.seen[1][0].matched_tokens, 0);
}

TEST(Simulator, AddsOwnDispatchesToASnapshot) {
  // S = 10 ms. The snapshot of 10 ms knows request 0, whose 20 tokens are pending until their step ends at 20. Requests 1 and 2
  // arrive at 12 and 13; the uncorrected view still shows one request.
  const Workload workload =
      toy_workload({{0, {}, 20, 5}, {12 * kMs, {}, 7, 1}, {13 * kMs, {}, 7, 1}, {20 * kMs, {}, 7, 1}});
  for (const char* name : {"stale", "stale-fix"}) {
    Scripted::Log log;
    auto config = toy_config(1, &log);
    config.view = *find_view(name);
    config.view.snapshot_us = 10 * kMs;
    run(config, workload);
    const bool fixed = std::string(name) == "stale-fix";
    EXPECT_EQ(log.seen[1][0].requests, 1);
    EXPECT_EQ(log.seen[1][0].pending_tokens, 20);
    EXPECT_EQ(log.seen[2][0].requests, fixed ? 2 : 1);
    EXPECT_EQ(log.seen[2][0].pending_tokens, fixed ? 27 : 20);
    EXPECT_EQ(log.seen[2][0].pending_ps, (fixed ? 27 : 20) * std::int64_t{1'000'000'000});
    EXPECT_EQ(log.seen[3][0].requests, 3);  // at 20 the step ends first, then the snapshot is taken
    EXPECT_EQ(log.seen[3][0].pending_tokens, 14);
  }
}

TEST(Simulator, KeepsOwnTicketsFromRoutingToTheEnd) {
  Scripted::Log log;
  log.targets = {0, 0, 0, 0};
  auto config = toy_config(2, &log);
  config.view = *find_view("own-approx");
  // Request 0: first token at 9, end at 12. Request 1 (at 1 ms) is believed to find 8 of its 9 tokens.
  run(config, toy_workload({{0, {0, 1}, 9, 4}, {1 * kMs, {0, 1}, 9, 1}, {2 * kMs, {2}, 5, 1}, {60 * kMs, {2}, 5, 1}}));
  EXPECT_EQ(log.seen[1][0].requests, 1);
  EXPECT_EQ(log.seen[1][0].pending_tokens, 9);
  EXPECT_EQ(log.seen[1][0].matched_tokens, 8);
  EXPECT_EQ(log.seen[2][0].requests, 2);
  EXPECT_EQ(log.seen[2][0].waiting, 2);
  EXPECT_EQ(log.seen[2][0].pending_tokens, 10);
  EXPECT_EQ(log.seen[2][0].tokens_in_flight, 18);
  EXPECT_EQ(log.seen[2][0].used_blocks, 6);
  EXPECT_EQ(log.seen[2][1].requests, 0);
  EXPECT_EQ(log.seen[3][0].requests, 0);
  EXPECT_EQ(log.seen[3][0].pending_tokens + log.seen[3][0].tokens_in_flight + log.seen[3][0].used_blocks, 0);
  EXPECT_EQ(log.seen[3][0].matched_tokens, 4);
}

TEST(Simulator, SendsTheRequestsOfADeadReplicaAgain) {
  // Request 0 runs on replica 0 until it dies at 5 ms; it starts anew on replica 1: 5 + 9 = 14 ms, counted from its arrival at 0.
  Scripted::Log log;
  auto config = toy_config(2, &log);
  config.churn = {{5 * kMs, ChurnEvent::Kind::remove, 0, 1000}};
  const auto figures = run(config, toy_workload({{0, {0, 1}, 9, 2}, {20 * kMs, {0, 1}, 9, 1}}));
  EXPECT_EQ(log.calls, (std::vector<std::string>{"joined 0 on 0 @0", "joined 0 on 1 @0", "lost 0 on 0 @5",
                                                 "left 0 on 0 @5", "first 0 on 1 @14", "finished 0 on 1 @15",
                                                 "first 1 on 1 @21", "finished 1 on 1 @21"}));
  EXPECT_EQ(figures.per_request[0].first_token_us, 14 * kMs);
  EXPECT_EQ(figures.ttft.max_us, 14 * kMs);
  EXPECT_EQ(figures.sent_again, 1);
  EXPECT_EQ(figures.per_request[1].cached_tokens, 8);
  ASSERT_EQ(log.seen[1].size(), 1u);
}

TEST(Simulator, DrainsRestartsAddsAndSlowsReplicas) {
  Scripted::Log log;
  log.targets = {0, 0, 0, 2, 0};
  auto config = toy_config(2, &log);
  config.churn = *parse_churn("0.001 flap 0 0.019, 0.030 restart 0\n 0.040 add, 0.05 speed 0 500");
  const auto figures = run(config, toy_workload({{0, {0, 1}, 9, 1},
                                                 {10 * kMs, {0, 1}, 9, 1},     // 0 drains: goes to 1
                                                 {25 * kMs, {0, 1}, 9, 1},     // 0 is back, warm
                                                 {45 * kMs, {0, 1}, 9, 1},     // the third replica
                                                 {60 * kMs, {0, 1}, 9, 1}}));  // 0 is cold and slow
  EXPECT_EQ(figures.per_request[0].end_us, 9 * kMs);
  EXPECT_EQ(figures.per_request[1].replica, 1u);
  EXPECT_EQ(figures.per_request[2].replica, 0u);
  EXPECT_EQ(figures.per_request[2].end_us, 26 * kMs);
  EXPECT_EQ(figures.per_request[3].replica, 2u);
  EXPECT_EQ(figures.per_request[4].cached_tokens, 0);
  EXPECT_EQ(figures.per_request[4].end_us, (60 + 18) * kMs);
}

TEST(Simulator, KeepsRequestsThatNobodyCanTakeUntilSomebodyCan) {
  auto config = toy_config(1);
  config.churn = *parse_churn("0 drain 0, 0.02 resume 0");
  const auto figures = run(config, toy_workload({{5 * kMs, {}, 3, 1}}));
  EXPECT_EQ(figures.per_request[0].end_us, 23 * kMs);
  EXPECT_EQ(figures.ttft.max_us, 18 * kMs);
  config.churn = *parse_churn("0 drain 0");
  EXPECT_EQ(run(config, toy_workload({{5 * kMs, {}, 3, 1}})).unplaced, 1);
}

TEST(Simulator, LetsATurnFollowTheEndOfTheOneBefore) {
  // Turn 1: 0..9 ms, one decode: ends at 10. Turn 2 thinks 5 ms, arrives at 15, finds 8 tokens, computes 4: 19.
  // A sub-agent starts when turn 1 ends: at 10, 3 tokens: 13. Request 3 can never fit and its follower goes on at once.
  Workload workload =
      toy_workload({{0, {0, 1}, 9, 2}, {0, {0, 1, 2}, 12, 1}, {0, {}, 3, 1}, {1 * kMs, {}, 5'000, 1}, {0, {}, 2, 1}});
  const auto follow = [&](std::uint32_t before, std::uint32_t after, std::int64_t delay) {
    workload.requests[after].follows = true;
    workload.requests[after].delay_us = delay;
    workload.requests[after].next_sibling = workload.requests[before].first_follower;
    workload.requests[before].first_follower = after;
  };
  follow(0, 1, 5 * kMs);
  follow(0, 2, 0);
  follow(3, 4, 2 * kMs);
  auto config = toy_config(1);
  config.replica.capacity_tokens = 4'000;
  const auto figures = run(config, workload);
  EXPECT_EQ(figures.per_request[0].end_us, 12 * kMs);  // shares its decode step with request 4, which waited since 3 ms
  EXPECT_EQ(figures.per_request[4].arrival_us, 3 * kMs);
  EXPECT_EQ(figures.per_request[2].arrival_us, 12 * kMs);
  EXPECT_EQ(figures.per_request[2].end_us, 15 * kMs);
  EXPECT_EQ(figures.per_request[1].arrival_us, 17 * kMs);
  EXPECT_EQ(figures.per_request[1].cached_tokens, 8);
  EXPECT_EQ(figures.per_request[1].end_us, 21 * kMs);
  EXPECT_TRUE(figures.per_request[3].rejected);
  EXPECT_EQ(figures.rejected, 1);
}

TEST(Simulator, DropsArrivalsBehindTheHorizonAndDoesNotCountTheWarmUp) {
  auto config = toy_config(1);
  config.warm_up_us = 10 * kMs;
  config.horizon_us = 30 * kMs;
  const auto figures = run(config, toy_workload({{0, {}, 3, 1}, {20 * kMs, {}, 4, 1}, {40 * kMs, {}, 5, 1}}));
  EXPECT_EQ(figures.requests, 1);
  EXPECT_EQ(figures.ttft.max_us, 4 * kMs);
  EXPECT_EQ(figures.input_tokens, 4);
}

TEST(Simulator, LooksAheadWhereTheOracleDoes) {
  // Replica 0 and 1 are idle. Request 0 warms {0, 1} on one of them and is over. Request 1 shares nothing and comes just before
  // request 2, which hits 8 of 9 tokens where request 0 was. Looking one ahead, request 1 leaves that replica free:
  // then the TTFTs are 40 + 1 ms. On the warm one they would be 40 and min(39 + 1, 9).
  const Workload workload = toy_workload({{0, {0, 1}, 9, 1}, {20 * kMs, {2}, 40, 1}, {21 * kMs, {0, 1}, 9, 1}});
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    auto config = toy_config(2);
    config.seed = seed;
    config.rule = "oracle:K=1:beta=0:b2=0";
    const auto figures = run(config, workload);
    EXPECT_NE(figures.per_request[1].replica, figures.per_request[0].replica);
    EXPECT_EQ(figures.per_request[2].replica, figures.per_request[0].replica);
    EXPECT_EQ(figures.per_request[2].first_token_us, 22 * kMs);
  }
}

TEST(Simulator, HitsAnywhereWhatWasComputedAnywhereWhenPooled) {
  Scripted::Log log;
  log.targets = {0, 1};
  auto config = toy_config(2, &log);
  config.pooled = true;
  const auto figures = run(config, toy_workload({{0, {0, 1}, 9, 1}, {9 * kMs, {0, 1}, 9, 1}}));
  EXPECT_EQ(log.seen[1][1].matched_tokens, 8);
  EXPECT_EQ(figures.per_request[1].cached_tokens, 8);
  EXPECT_EQ(figures.per_request[1].end_us, 10 * kMs);
}

TEST(Simulator, StepsTheRanksOfOneEngineTogether) {
  // Two ranks. Rank 0 computes 9 tokens until 9 ms; rank 1 has its 2 tokens done at 2 ms, but its step ends at 9, too.
  // Request 2 arrives on rank 1 at 3 ms and waits for the next common step.
  Scripted::Log log;
  log.targets = {0, 1, 1};
  auto config = toy_config(2, &log);
  config.replica.hardware.group_ranks = 2;
  const auto figures = run(config, toy_workload({{0, {}, 9, 1}, {0, {}, 2, 1}, {3 * kMs, {}, 4, 1}}));
  EXPECT_EQ(figures.per_request[0].end_us, 9 * kMs);
  EXPECT_EQ(figures.per_request[1].end_us, 9 * kMs);
  EXPECT_EQ(figures.per_request[2].end_us, 13 * kMs);
}

TEST(Simulator, AgreesWithTheQueueOfPoissonArrivalsAndFixedService) {
  // M/D/1 at utilisation 0.7 with a service time of 3 ms: mean sojourn 3 * (1 + 0.7 / (2 * 0.3)) = 6.5 ms.
  SplitMix64 random{1};
  std::vector<Asked> asked;
  double clock = 0;
  for (int i = 0; i < 100'000; ++i) {
    clock += random.exponential() * 3 * kMs / 0.7;
    asked.push_back({static_cast<std::int64_t>(clock), {}, 3, 1});
  }
  auto config = toy_config(1);
  config.replica.max_running = 1;
  const auto figures = run(config, toy_workload(asked));
  EXPECT_NEAR(figures.e2e.mean_us / kMs, 6.5, 0.13);
  EXPECT_NEAR(figures.utilisation, 0.7, 0.01);
}

TEST(Simulator, PutsAPriceOnTokens) {
  auto config = toy_config(2);
  config.replica.hardware.cents_per_hour = 360'000;  // a dollar per replica-second
  const auto figures = run(config, toy_workload({{0, {}, 900, 101}}));
  EXPECT_EQ(figures.makespan_us, 1'000 * kMs);
  EXPECT_DOUBLE_EQ(figures.dollars, 2.0);
  EXPECT_DOUBLE_EQ(figures.tokens_per_dollar, 1'001 / 2.0);
}

TEST(Simulator, RefusesWhatMakesNoSense) {
  const Workload workload = toy_workload({{0, {}, 3, 1}});
  auto config = toy_config(1);
  config.rule = "cheapest";
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  config.rule = "gaie:q=two:z=1";
  const auto refused = simulate(config, workload);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("q must be a number"), std::string::npos);
  EXPECT_NE(refused.error().message.find("no option z"), std::string::npos);
  config.rule = "warmroute:beta=x";
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  config = toy_config(0);
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  config = toy_config(1);
  config.churn = {{0, ChurnEvent::Kind::drain, 1, 1000}};
  EXPECT_EQ(simulate(config, workload).code(), Code::invalid_argument);
  for (const char* text :
       {"x drain 0", "1 explode 0", "1 drain", "1 speed 0 0", "1 flap 0", "1 rolling 3-1 5", "-1 add"}) {
    EXPECT_FALSE(parse_churn(text)) << text;
  }
}

/// The public slice in open loop.
Workload slice(std::int64_t replicas, std::int64_t load_permille, std::size_t limit = 0) {
  auto records =
      read_mooncake_trace(std::string(WARMROUTE_BENCHMARK_DATA) + "/mooncake_conversation_1200.jsonl", limit);
  EXPECT_TRUE(records);
  Workload workload = open_loop(std::move(*records));
  scale_arrivals(workload,
                 speed_permille_for_load(workload, *find_hardware_profile("70b-8xh100"), replicas, load_permille));
  return workload;
}

SimulationConfig real_config(std::string rule) {
  SimulationConfig config;
  config.replica.hardware = *find_hardware_profile("70b-8xh100");
  config.replicas = 4;
  config.rule = std::move(rule);
  config.keep_requests = true;
  return config;
}

TEST(Simulator, GivesTheSameRunTwice) {
  constexpr std::int64_t kRequests = test::rounds(500, 5);
  const Workload workload = slice(4, 800, kRequests);
  for (const std::string_view rule : routing_rule_names()) {
    auto config = real_config(std::string(rule));
    config.view = *find_view("stale-fix");
    config.view.event_loss_permille = 10;
    config.routers = 2;
    config.churn = *parse_churn("10 remove 3, 15 add, 20 rolling 0-1 5");
    const auto first = run(config, workload), second = run(config, workload);
    ASSERT_EQ(first.per_request.size(), second.per_request.size());
    for (std::size_t i = 0; i < first.per_request.size(); ++i) {
      ASSERT_EQ(first.per_request[i].replica, second.per_request[i].replica) << rule << " " << i;
      ASSERT_EQ(first.per_request[i].end_us, second.per_request[i].end_us) << rule << " " << i;
    }
    EXPECT_EQ(first.completed + first.rejected, kRequests) << rule;
    EXPECT_EQ(first.booked_at_end, 0) << rule;
  }
}

TEST(Simulator, GivesTheseFiguresOnEveryPlatform) {
  struct Golden {
    const char* rule;
    std::int64_t p50_us, p99_us, max_us, hits;
  };
  const Workload workload = slice(4, 800);
  for (const Golden& g : {Golden{"rr", 2'463'077, 17'991'150, 209'248'949, 1'346'560},
                          Golden{"dynamo", 964'866, 9'918'051, 121'424'167, 1'888'256},
                          Golden{"gaie", 776'078, 8'854'718, 87'931'710, 3'075'072},
                          Golden{"H", 569'686, 8'779'001, 119'059'656, 2'854'400}}) {
    const auto f = run(real_config(g.rule), workload);
    EXPECT_EQ(f.ttft.p50_us, g.p50_us) << g.rule;
    EXPECT_EQ(f.ttft.p99_us, g.p99_us) << g.rule;
    EXPECT_EQ(f.e2e.max_us, g.max_us) << g.rule;
    EXPECT_EQ(f.cached_tokens, g.hits) << g.rule;
  }
}

TEST(Simulator, LeavesNothingOnTheRealRoutersBooksInAnyView) {
  constexpr std::int64_t kRequests = test::rounds(1'200, 3);
  const Workload workload = slice(4, 800, kRequests);
  for (const View& view : views()) {
    auto config = real_config("warmroute");
    config.view = view;
    config.churn = *parse_churn("10 flap 1 3, 20 restart 2");
    const auto figures = run(config, workload);
    EXPECT_EQ(figures.completed, kRequests) << view.name;
    EXPECT_EQ(figures.booked_at_end, 0) << view.name;
    EXPECT_GT(figures.hit_ratio, test::kSanitized ? 0.1 : 0.15) << view.name;
    EXPECT_LE(figures.hit_ratio, figures.bound_ratio) << view.name;
  }
}

TEST(Simulator, SeveralRoutersSeeHowLongOthersPromptsAreWhereEnginesTellIt) {
  const Workload workload = slice(4, 800);
  auto config = real_config("warmroute");
  config.view = *find_view("fix-approx");
  config.routers = 4;
  config.gateway_ring = true;
  const auto counts = run(config, workload);
  config.view.waiting_tokens = true;
  const auto tokens = run(config, workload);
  EXPECT_LT(tokens.ttft.mean_us, 0.9 * counts.ttft.mean_us);
  EXPECT_EQ(tokens.completed, counts.completed);
  EXPECT_EQ(tokens.booked_at_end, 0);
}

TEST(Simulator, RanksRulesAsTheWholeTraceDoes) {
  const Workload workload = slice(4, 800);
  const auto ttft = [&](const char* rule, bool pooled = false) {
    auto config = real_config(rule);
    config.pooled = pooled;
    return run(config, workload).ttft.mean_us;
  };
  const double random = ttft("random"), least = ttft("least"), real = ttft("warmroute"), bound = ttft("ttft", true);
  EXPECT_LT(bound, real);
  EXPECT_LT(real, least);
  EXPECT_LT(least, random);
}

TEST(Simulator, GivesReplicasTheirCapacitiesInTurn) {
  // Two requests of four blocks, one to each replica: the first replica has room for three blocks.
  Scripted::Log log;
  log.targets = {0, 1};
  auto config = toy_config(2, &log);
  config.capacities = {12, 400};
  const auto workload = toy_workload({{0, {0, 1, 2}, 14, 1}, {20 * kMs, {3, 4, 5}, 14, 1}});
  const auto figures = run(config, workload);
  EXPECT_TRUE(figures.per_request[0].rejected);
  EXPECT_FALSE(figures.per_request[1].rejected);
  EXPECT_EQ(figures.completed, 1);
  config.capacities = {0};
  EXPECT_FALSE(simulate(config, workload).ok());
}

}  // namespace
}  // namespace warmroute::trace
