// When every replica is past the policy's limits; replicas that come up slowly, and that have so long to drain.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

constexpr Nanos kBegin = seconds(5'000);

struct Limited : testing::Test {
  Router router;
  std::vector<ReplicaId> ids;
  Policy policy;

  void fleet(int count, Nanos slow_start = Nanos{0}) {
    for (int i = 0; i < count; ++i) {
      ReplicaSpec spec{.name = "r" + std::to_string(i),
                       .rates = {.floor_ns = 1'000'000, .token_ps = 1'000'000, .pair_ps = 0}};
      spec.slow_start = slow_start;
      ids.push_back(*router.add_replica(std::move(spec), kBegin));
    }
    policy.learn_rates = false;
    set();
  }
  void set() { ASSERT_TRUE(router.set_policy(policy)); }
  // 1,000 tokens are 1 ms.
  static Request tokens(std::int64_t count, std::int32_t priority = 0) {
    Request r;
    r.input_tokens = count;
    r.max_output_tokens = 1;
    r.priority = priority;
    return r;
  }
};

TEST_F(Limited, NothingIsRefusedWhileThePolicyNamesNoLimit) {
  fleet(2);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(router.route(tokens(1'000'000), kBegin).routed());
}

TEST_F(Limited, WhenEveryReplicaWouldMakeItWaitTooLongARequestIsToldWhenToComeBack) {
  policy.saturation_wait = milliseconds(3'000);
  fleet(2);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(router.route(tokens(1'000'000), kBegin).routed()) << i;  // a second each
  const Decision d = router.route(tokens(1'000'000), kBegin);
  EXPECT_EQ(d.verdict, Verdict::saturated);
  EXPECT_EQ(d.retry_after, seconds(1));
  EXPECT_EQ(d.ticket, kNoTicket);
  EXPECT_EQ(router.peek(tokens(1'000'000), kBegin).verdict, Verdict::saturated);
  EXPECT_EQ(router.explain(tokens(1'000'000), kBegin).decision.verdict, Verdict::saturated);
  EXPECT_FALSE(router.route(tokens(1'000), kBegin).routed());
  EXPECT_TRUE(router.route(tokens(1'000), kBegin + milliseconds(2)).routed());          // so much of it is done
  EXPECT_TRUE(router.route(tokens(1'000'000), kBegin + milliseconds(1'005)).routed());  // a second of it is done
  EXPECT_EQ(router.statistics().verdicts[static_cast<std::size_t>(Verdict::saturated)], 2U);
}

TEST_F(Limited, WhatIsMoreUrgentQueuesWhereItIsCheapest) {
  policy.saturation_wait = milliseconds(500);
  policy.shed_priority = 0;
  fleet(2);
  EXPECT_EQ(router.route(tokens(1'000'000, -3), kBegin).verdict, Verdict::saturated);
  EXPECT_EQ(router.route(tokens(1'000'000, 0), kBegin).verdict, Verdict::saturated);
  const Decision urgent = router.route(tokens(1'000'000, 1), kBegin);
  EXPECT_TRUE(urgent.routed());
  policy.shed_priority = -1;
  set();
  EXPECT_TRUE(router.route(tokens(1'000'000, 0), kBegin).routed());
  EXPECT_EQ(router.route(tokens(1'000'000, -1), kBegin).verdict, Verdict::saturated);
}

TEST_F(Limited, AReplicaWhoseCacheIsFullIsPassedOverWhileItSaysSo) {
  policy.saturation_kv = 0.95;
  fleet(2);
  ASSERT_TRUE(router.signal(ids[0], Signal::kv_usage, 0.97, kBegin));
  for (int i = 0; i < 20; ++i) {
    const Decision d = router.route(tokens(1'000), kBegin);
    ASSERT_EQ(d.replica, ids[1]);
    ASSERT_TRUE(d.fallback_count == 1 && d.fallback_ids[0] == ids[0]);
  }
  EXPECT_GT(router.statistics().reasons[static_cast<std::size_t>(Reason::spill_saturated)], 0U);
  ASSERT_TRUE(router.signal(ids[1], Signal::kv_usage, 0.95, kBegin));
  const Decision refused = router.route(tokens(1'000), kBegin);
  EXPECT_EQ(refused.verdict, Verdict::saturated);
  EXPECT_EQ(refused.retry_after, seconds(1));
  ASSERT_TRUE(router.signal(ids[0], Signal::kv_usage, 0.90, kBegin));
  EXPECT_EQ(router.route(tokens(1'000), kBegin).replica, ids[0]);
  EXPECT_TRUE(router.route(tokens(1'000), kBegin + seconds(3)).routed());  // old news is none
}

TEST_F(Limited, APinnedRequestIsNotRefusedForItsReplicasLoad) {
  policy.saturation_wait = milliseconds(1);
  fleet(1);
  Request r = tokens(1'000'000);
  r.pinned = ids[0];
  EXPECT_TRUE(router.route(r, kBegin).routed());
}

TEST_F(Limited, AReplicaThatComesUpTakesLessAtFirst) {
  fleet(2);
  ReplicaSpec spec = *router.replica(ids[1]);
  spec.slow_start = seconds(100);
  spec.slow_start_weight = 0.1;
  ASSERT_TRUE(router.update_replica(ids[1], spec, kBegin));
  ASSERT_TRUE(router.set_health(ids[1], Health::down, "restart", kBegin + seconds(200)));
  ASSERT_TRUE(router.set_health(ids[1], Health::up, "", kBegin + seconds(300)));
  const auto share = [&](Nanos at) {  // of ten that are in flight together
    int fresh = 0;
    std::vector<Ticket> open;
    for (int i = 0; i < 11; ++i) {
      const Decision d = router.route(tokens(1'000'000), at);
      fresh += d.replica == ids[1];
      open.push_back(d.ticket);
    }
    for (const Ticket t : open) router.fail(t, Outcome::cancelled, at);
    return fresh;
  };
  EXPECT_LE(share(kBegin + seconds(301)), 1);
  const int half = share(kBegin + seconds(350));
  EXPECT_GE(half, 2);
  EXPECT_LE(half, 4);
  EXPECT_GE(share(kBegin + seconds(400)), 5);
}

TEST_F(Limited, FallsBackOnAReplicaInSlowStartWhenThereIsNoOther) {
  fleet(1, seconds(100));
  EXPECT_TRUE(router.route(tokens(1'000), kBegin).routed());
}

TEST_F(Limited, ADrainThatTakesTooLongEndsAndSaysWhatIsLeft) {
  std::vector<std::string> lines;
  RouterOptions options;
  options.log.write = [](void* user, LogLevel, std::string_view line) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(line);
  };
  options.log.user = &lines;
  Router logged(options);
  const ReplicaId a = *logged.add_replica({.name = "a"}, kBegin);
  const ReplicaId b = *logged.add_replica({.name = "b"}, kBegin);
  Request r = tokens(1'000);
  r.pinned = a;
  const Decision open = logged.route(r, kBegin);
  ASSERT_TRUE(logged.drain(a, kBegin + seconds(30), kBegin));
  EXPECT_EQ(logged.replica(a)->health, Health::draining);
  EXPECT_EQ(logged.replica(a)->drain_until, kBegin + seconds(30));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(logged.route(tokens(1'000), kBegin).replica, b);
  logged.advance(kBegin + seconds(30) - Nanos{1});
  EXPECT_EQ(logged.replica(a)->health, Health::draining);
  logged.advance(kBegin + seconds(30));
  EXPECT_EQ(logged.replica(a)->health, Health::down);
  EXPECT_NE(lines.back().find("with 1 requests in flight"), std::string::npos) << lines.back();
  EXPECT_TRUE(logged.finish(open.ticket, {}, kBegin + seconds(31)));  // late, but counted
  ASSERT_TRUE(logged.set_health(a, Health::up, "back", kBegin + seconds(40)));
  EXPECT_EQ(logged.replica(a)->drain_until, Nanos{0});
  logged.advance(kBegin + seconds(90));
  EXPECT_EQ(logged.replica(a)->health, Health::up);
  ASSERT_TRUE(logged.drain(b, Nanos{0}, kBegin + seconds(90)));  // as long as it takes
  logged.advance(kBegin + seconds(9'000));
  EXPECT_EQ(logged.replica(b)->health, Health::draining);
}

}  // namespace
}  // namespace warmroute
