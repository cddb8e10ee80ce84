// The hand-computed cases of one replica: the expected times are worked out on paper, in the comments.
#include "warmroute/trace/replica_model.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "trace/recorder.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute::trace {
namespace {

using Ids = std::vector<std::uint64_t>;
using Times = std::vector<std::int64_t>;

Ids run_of_ids(std::uint64_t first, std::size_t count) {
  Ids ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(ReplicaModel, CutsAPromptIntoChunksOfTheStepBudget) {
  auto config = toy();
  config.step_token_budget = 64;
  ReplicaModel model{config};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, run_of_ids(1, 25), 100, 2, 0));
  model.start(0, seen);
  EXPECT_EQ(model.next_event_us(), 64 * kMs);
  model.advance(64 * kMs, seen);
  EXPECT_TRUE(seen.tokens.empty());
  EXPECT_EQ(model.pending_prefill_tokens(), 36);
  drain(model, seen, 64 * kMs);
  EXPECT_EQ(seen.tokens[1], (Times{100 * kMs, 101 * kMs}));  // 64 + 36 tokens, then one decode
  EXPECT_EQ(model.steps(), 3);
  EXPECT_EQ(model.busy_us(), 101 * kMs);
}

TEST(ReplicaModel, ChargesAttentionContextAndOverhead) {
  // Prefill of 7: max(1, 7) + 0.25 * 7*8/2 + overhead 7 = 21 ms. Decode: max(1, 1) + 1 * (7 + 1) + 7 = 16 ms.
  auto config = toy();
  config.hardware.per_pair_ps = 250'000'000;
  config.hardware.per_context_ps = 1'000'000'000;
  config.hardware.overhead_ps = 7'000'000'000;
  ReplicaModel model{config};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, Ids{1}, 7, 2, 0));
  drain(model, seen, 0);
  EXPECT_EQ(seen.tokens[1], (Times{21 * kMs, (21 + 16) * kMs}));
}

TEST(ReplicaModel, RoundsAStepOnceToTheNearestMicrosecond) {
  ReplicaModelConfig config;
  config.hardware = *find_hardware_profile("70b-8xh100");
  ReplicaModel model{config};
  Recorder seen;
  // 1,000 tokens: 42,000 us + 500,500 pairs * 800 ps = 400.4 us + 1,000 us = 43,400.4 us.
  // Decode: 12,000 us + 1,001 * 17,000 ps = 17.017 us + 1,000 us = 13,017.017 us.
  ASSERT_TRUE(model.submit(1, Ids{1}, 1'000, 2, 0));
  drain(model, seen, 0);
  EXPECT_EQ(seen.tokens[1], (Times{43'400, 43'400 + 13'017}));
}

TEST(ReplicaModel, CountsAttentionThatDoesNotDependOnTheChunks) {
  EXPECT_EQ(HardwareProfile::pairs(100, 0), HardwareProfile::pairs(64, 0) + HardwareProfile::pairs(36, 64));
  EXPECT_EQ(find_hardware_profile("8b-a100")->prefill_ps(10, 5), 10 * 67'000'000LL + (50 + 55) * 2'800LL);
  EXPECT_EQ(find_hardware_profile("9b-a100"), nullptr);
  EXPECT_EQ(hardware_profiles().size(), 7u);
}

TEST(ReplicaModel, NeverMatchesTheLastToken) {
  ReplicaModel model{toy()};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, Ids{1, 2}, 8, 1, 0));
  EXPECT_EQ(drain(model, seen, 0), 8 * kMs);
  EXPECT_EQ(model.match_blocks(Ids{1, 2}, 8), 1);  // both blocks are cached, but the 8th token must be computed
  EXPECT_EQ(model.match_blocks(Ids{1, 2}, 9), 2);
  ASSERT_TRUE(model.submit(2, Ids{1, 2}, 8, 1, 10 * kMs));
  ASSERT_TRUE(model.submit(3, Ids{1, 2}, 9, 1, 10 * kMs));
  drain(model, seen, 10 * kMs);
  EXPECT_EQ(seen.cached_tokens[2], 4);
  EXPECT_EQ(seen.cached_tokens[3], 8);
  EXPECT_EQ(seen.tokens[2], (Times{15 * kMs}));  // 4 + 1 tokens in one step
}

TEST(ReplicaModel, SharesABlockFromTheEndOfTheStepThatComputedIt) {
  ReplicaModel model{toy()};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, Ids{1, 2}, 9, 3, 0));
  ASSERT_TRUE(model.submit(2, Ids{1, 2}, 9, 1, 0));
  model.start(0, seen);
  EXPECT_EQ(model.next_event_us(), 18 * kMs);  // both compute everything: nothing was committed when they were admitted
  model.advance(18 * kMs, seen);
  EXPECT_EQ(seen.commits, (Ids{1, 2}));  // the second copy is dropped
  EXPECT_EQ(model.cached_blocks(), 2);
  ASSERT_TRUE(model.submit(3, Ids{1, 2}, 9, 1, 18 * kMs));  // arrives at that very instant and joins the next step
  model.start(18 * kMs, seen);
  EXPECT_EQ(seen.cached_tokens[3], 8);
  EXPECT_EQ(model.next_event_us(), 20 * kMs);  // one decode and one prompt token
}

TEST(ReplicaModel, EvictsLeavesFirstThenTheLeastRecentlyUsed) {
  ReplicaModel model{toy(4)};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, Ids{1, 2, 3}, 12, 1, 0));
  drain(model, seen, 0);
  EXPECT_EQ(model.cached_blocks(), 3);
  ASSERT_TRUE(model.submit(2, Ids{9}, 6, 1, 20 * kMs));  // two blocks: one is free, the leaf of 1-2-3 goes
  drain(model, seen, 20 * kMs);
  EXPECT_EQ(seen.evictions, (Ids{3}));
  ASSERT_TRUE(model.submit(3, Ids{1, 5}, 9, 1, 40 * kMs));  // refreshes 1, needs two more: 2 is the oldest idle block
  drain(model, seen, 40 * kMs);
  EXPECT_EQ(seen.cached_tokens[3], 4);
  EXPECT_EQ(seen.evictions, (Ids{3, 2}));
  ASSERT_TRUE(
      model.submit(4, Ids{7, 8, 6, 4}, 15, 1, 60 * kMs));  // everything goes: 9 first, then 5 before its parent 1
  drain(model, seen, 60 * kMs);
  EXPECT_EQ(seen.evictions, (Ids{3, 2, 9, 5, 1}));
  EXPECT_EQ(model.evictions(), 5);
}

TEST(ReplicaModel, PreemptsTheNewestWhenDecodesRunOutOfBlocks) {
  ReplicaModel model{toy(4)};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, Ids{1}, 7, 4, 0));
  ASSERT_TRUE(model.submit(2, Ids{2}, 7, 4, 0));
  drain(model, seen, 0);
  // 14: both first tokens. 16: both second ones. Then the older needs a third block and the newer gives way. 17, 18:
  // the older ends. The newer finds its first block still cached and computes 5 of 9 tokens until 23; 24: it ends.
  EXPECT_EQ(seen.tokens[1], (Times{14 * kMs, 16 * kMs, 17 * kMs, 18 * kMs}));
  EXPECT_EQ(seen.preemptions[2], (Times{16 * kMs}));
  EXPECT_EQ(seen.admissions[2], (Times{0, 18 * kMs}));
  EXPECT_EQ(seen.tokens[2], (Times{14 * kMs, 16 * kMs, 23 * kMs, 24 * kMs}));
  EXPECT_EQ(seen.cached_tokens[2], 0);  // what counts is the first admission
  EXPECT_EQ(model.preemptions(), 1);
}

TEST(ReplicaModel, KeepsAWatermarkFreeUnlessNothingRuns) {
  ReplicaModel model{toy(200)};  // watermark: 2 blocks
  Recorder seen;
  ASSERT_TRUE(model.submit(1, {}, 100 * 4, 2, 0));     // 100 blocks, 101 with its second token
  ASSERT_TRUE(model.submit(2, {}, 99 * 4 - 1, 1, 0));  // 99 blocks: 100 + 99 + 2 > 200
  model.start(0, seen);
  EXPECT_EQ(model.running(), 1);
  EXPECT_EQ(model.waiting(), 1);
  drain(model, seen, 0);
  EXPECT_EQ(seen.admissions[2], (Times{401 * kMs}));
  ASSERT_TRUE(model.submit(3, {}, 200 * 4 - 1, 1, 2'000 * kMs));  // 200 blocks: fits because nothing runs
  drain(model, seen, 2'000 * kMs);
  EXPECT_EQ(seen.admissions[3], (Times{2'000 * kMs}));

  ASSERT_TRUE(model.submit(4, {}, 100 * 4, 1, 9'000 * kMs));
  ASSERT_TRUE(model.submit(5, {}, 98 * 4 - 1, 1, 9'000 * kMs));  // 98 + 2 blocks fit beside 100
  model.start(9'000 * kMs, seen);
  EXPECT_EQ(model.running(), 2);
  EXPECT_DOUBLE_EQ(model.kv_usage(), 0.99);
}

TEST(ReplicaModel, SharesTheBudgetOfAStep) {
  auto config = toy();
  config.step_token_budget = 64;
  ReplicaModel model{config};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, {}, 40, 3, 0));
  ASSERT_TRUE(model.submit(2, {}, 50, 1, 0));
  ASSERT_TRUE(model.submit(3, {}, 60, 1, 0));
  drain(model, seen, 0);
  // 64: 40 + 24. 128: 1 decode + 26 + 37. 152: 1 decode + 23.
  EXPECT_EQ(seen.tokens[1], (Times{64 * kMs, 128 * kMs, 152 * kMs}));
  EXPECT_EQ(seen.tokens[2], (Times{128 * kMs}));
  EXPECT_EQ(seen.tokens[3], (Times{152 * kMs}));
  EXPECT_EQ(seen.admissions[3], (Times{64 * kMs}));
}

TEST(ReplicaModel, LimitsRunningRequestsAndRejectsWhatCanNeverFit) {
  auto config = toy(4);
  config.max_running = 1;
  ReplicaModel model{config};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, {}, 4, 2, 0));
  EXPECT_FALSE(model.submit(2, {}, 14, 3, 0));  // 17 tokens in 16
  EXPECT_FALSE(model.submit(3, {}, INT64_MAX, INT64_MAX, 0));
  EXPECT_FALSE(model.submit(1, {}, 4, 2, 0));  // that id is inside
  ASSERT_TRUE(model.submit(4, {}, 4, 12, 0));  // 16 in 16
  model.start(0, seen);
  EXPECT_EQ(model.running(), 1);
  drain(model, seen, 0);
  EXPECT_EQ(seen.tokens[1], (Times{4 * kMs, 5 * kMs}));
  EXPECT_EQ(seen.admissions[4], (Times{5 * kMs}));
  EXPECT_EQ(seen.finish[4], 20 * kMs);
  EXPECT_EQ(model.rejected(), 3);
}

TEST(ReplicaModel, LosesRequestsAndCacheInACrash) {
  ReplicaModel model{toy()};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, Ids{1, 2}, 9, 5, 0));
  drain(model, seen, 0);
  ASSERT_TRUE(model.submit(2, Ids{1, 2}, 9, 5, 20 * kMs));
  model.start(20 * kMs, seen);
  ASSERT_TRUE(model.submit(3, Ids{1, 2}, 9, 5, 20 * kMs));
  EXPECT_EQ(model.crash(), (Ids{2, 3}));
  EXPECT_EQ(model.next_event_us(), std::nullopt);
  EXPECT_EQ(model.cached_blocks() + model.private_blocks() + model.running() + model.waiting(), 0);
  EXPECT_EQ(model.pending_prefill_tokens() + model.tokens_in_flight(), 0);
  ASSERT_TRUE(model.submit(4, Ids{1, 2}, 9, 1, 30 * kMs));  // starts cold
  drain(model, seen, 30 * kMs);
  EXPECT_EQ(seen.tokens[4], (Times{39 * kMs}));
  EXPECT_EQ(seen.tokens.count(2), 0u);
}

TEST(ReplicaModel, CatchesUpOverSeveralStepsInOneCall) {
  Recorder stepwise, at_once;
  for (Recorder* seen : {&stepwise, &at_once}) {
    ReplicaModel model{toy()};
    ASSERT_TRUE(model.submit(1, Ids{1}, 7, 4, 5 * kMs));
    if (seen == &stepwise) {
      drain(model, *seen, 5 * kMs);
    } else {
      model.advance(1'000 * kMs, *seen);  // starts by itself what could have started before
      EXPECT_EQ(model.next_event_us(), std::nullopt);
    }
  }
  EXPECT_EQ(stepwise.log, at_once.log);
}

TEST(ReplicaModel, FreesWhatACancelledRequestHeld) {
  ReplicaModel model{toy(8)};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, Ids{1}, 16, 8, 0));
  ASSERT_TRUE(model.submit(2, Ids{2}, 16, 8, 0));  // 4 + 4 blocks fit exactly
  model.start(0, seen);
  EXPECT_EQ(model.running(), 2);
  EXPECT_TRUE(model.cancel(1));
  EXPECT_FALSE(model.cancel(1));
  EXPECT_EQ(model.private_blocks(), 4);
  EXPECT_EQ(model.next_event_us(), 32 * kMs);  // the step that runs keeps its length
  drain(model, seen, 0);
  EXPECT_EQ(seen.tokens.count(1), 0u);
  EXPECT_EQ(seen.tokens[2].size(), 8u);
  EXPECT_EQ(seen.commits, (Ids{2}));
  EXPECT_EQ(model.private_blocks() + model.referenced_blocks() + model.tokens_in_flight(), 0);

  ASSERT_TRUE(model.submit(3, {}, 28, 4, 1'000 * kMs));
  ASSERT_TRUE(model.submit(4, {}, 8, 4, 1'000 * kMs));
  model.start(1'000 * kMs, seen);
  EXPECT_EQ(model.waiting(), 1);
  EXPECT_TRUE(model.cancel(4));  // from the queue
  EXPECT_EQ(model.waiting(), 0);
  EXPECT_EQ(model.pending_prefill_tokens(), 28);
}

TEST(ReplicaModel, CountsWhatIsCachedOfQueuedPromptsApart) {
  auto config = toy();
  config.max_running = 1;
  ReplicaModel model{config};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, run_of_ids(1, 5), 20, 2, 0));
  drain(model, seen, 0);
  ASSERT_TRUE(model.submit(2, run_of_ids(50, 2), 8, 2, 1'000 * kMs));
  model.start(1'000 * kMs, seen);
  ASSERT_TRUE(model.submit(3, run_of_ids(1, 5), 20, 2, 1'000 * kMs));
  ASSERT_TRUE(model.submit(4, run_of_ids(1, 5), 20, 2, 1'000 * kMs, 18));
  EXPECT_EQ(model.waiting(), 2);
  EXPECT_EQ(model.pending_prefill_tokens(), 8 + 20 + 2);
  EXPECT_EQ(model.uncached_prefill_tokens(), 8 + 4 + 2);  // four blocks of four: the last token is computed
}

TEST(ReplicaModel, SlowsDownByItsSpeed) {
  auto config = toy();
  config.speed_permille = 500;
  ReplicaModel model{config};
  Recorder seen;
  ASSERT_TRUE(model.submit(1, {}, 10, 2, 0));
  drain(model, seen, 0);
  EXPECT_EQ(seen.tokens[1], (Times{20 * kMs, 22 * kMs}));
}

TEST(ReplicaModel, AgreesWithTheQueueOfPoissonArrivalsAndFixedService) {
  // M/D/1 at utilisation 0.7 with a service time of 3 ms: mean sojourn 3 * (1 + 0.7 / (2 * 0.3)) = 6.5 ms.
  auto config = toy();
  config.max_running = 1;
  ReplicaModel model{config};
  Recorder seen;
  SplitMix64 random{1};
  constexpr std::uint64_t kRequests = 200'000;
  std::vector<std::int64_t> arrival(kRequests);
  double clock = 0;
  for (std::uint64_t id = 0; id < kRequests; ++id) {
    clock += random.exponential() * 3 * kMs / 0.7;
    arrival[id] = static_cast<std::int64_t>(clock);
    model.advance(arrival[id], seen);
    ASSERT_TRUE(model.submit(id, {}, 3, 1, arrival[id]));
    model.start(arrival[id], seen);
    seen.log.clear();
  }
  drain(model, seen, arrival.back());
  double sum = 0;
  for (std::uint64_t id = 0; id < kRequests; ++id) sum += static_cast<double>(seen.finish[id] - arrival[id]);
  EXPECT_NEAR(sum / kRequests / kMs, 6.5, 0.13);
}

}  // namespace
}  // namespace warmroute::trace
