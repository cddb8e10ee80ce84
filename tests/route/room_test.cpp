// What a cache has room for: whose wait counts how much, what new blocks push out, and where prompts wait for KV.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "route/prompts.hpp"
#include "warmroute/replica/fading_sum.hpp"
#include "warmroute/route/cost.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::room_tests {
namespace {

using test::prompt;
using test::request;

constexpr Rates kRates{12'000'000, 42'000'000, 800, 17'000, 1'000'000};  // 70b on eight H100

TEST(FadingSum, HalvesInEqualTimes) {
  FadingSum sum;
  const std::int64_t start = 5'000'000'000'000;
  EXPECT_EQ(sum.at(start), 0);
  sum.add(6'000, start);
  EXPECT_EQ(sum.at(start), 6'000);
  EXPECT_EQ(sum.at(start - 1'000'000'000), 6'000) << "time that goes backwards is no time";
  const std::int64_t half = 32'768'000'000;
  EXPECT_EQ(sum.at(start + half / 2), 4'500) << "in a straight line between";
  EXPECT_EQ(sum.at(start + half), 3'000);
  EXPECT_EQ(sum.at(start + 2 * half), 1'500);
  EXPECT_EQ(sum.at(start + 100 * half), 0);
  sum.add(1'000, start + half);
  EXPECT_EQ(sum.at(start + half), 4'000);
}

TEST(FadingSum, IsWhatCameInItsTimeUnderSteadyTraffic) {
  FadingSum sum;
  for (std::int64_t ms = 0; ms < 1'000'000; ms += 10) sum.add(10'000, ms * 1'000'000);  // 1,000 each ms
  EXPECT_NEAR(static_cast<double>(sum.at(1'000'000'000'000)), 1'000.0 * FadingSum::kSteadyMs, 200'000.0);
}

TEST(FadingSum, NeverLeavesItsBounds) {
  FadingSum sum;
  for (int i = 0; i < 100; ++i) sum.add(std::numeric_limits<std::int64_t>::max(), i);
  EXPECT_EQ(sum.at(100), FadingSum::kMost);
  sum.add(std::numeric_limits<std::int64_t>::min(), 100);
  EXPECT_EQ(sum.at(100), FadingSum::kMost) << "nothing is taken away";
}

TEST(Tail, TheWaitCountsMoreTheLongerThePromptIs) {
  CostWeights w;
  w.tail = 400;
  CostRequest q{10'000, 0, 8};
  q.tail_scale = tail_scale_of(w, kRates.prefill_ns(10'000));
  CostReplica busy;
  busy.pending_ns = 1'000'000'000;
  const CostTerms mean = cost_of(w, q, kRates, busy);
  EXPECT_NEAR(static_cast<double>(mean.tail), 0.4e9, 1e6) << "a prompt as long as the mean: tail times its wait";
  q.input_tokens = 20'000;
  const double longer = static_cast<double>(kRates.prefill_ns(20'000)) / static_cast<double>(kRates.prefill_ns(10'000));
  EXPECT_NEAR(static_cast<double>(cost_of(w, q, kRates, busy).tail), 0.4e9 * longer, 2e6)
      << "twice as long: in proportion";
  busy.cached_tokens = 20'000;
  EXPECT_EQ(cost_of(w, q, kRates, busy).tail, 0) << "where everything is cached it has nothing to compute";
  EXPECT_EQ(cost_of(w, q, kRates, {}).tail, 0) << "no wait, nothing to count";
}

TEST(Tail, NoMeanAndNoWeightCountNothing) {
  CostWeights w;
  EXPECT_EQ(tail_scale_of(w, 1'000'000), 0);
  w.tail = 400;
  EXPECT_EQ(tail_scale_of(w, 0), 0);
  EXPECT_EQ(tail_scale_of(w, -1), 0);
}

TEST(Tail, IsThatOf32MeansAtMostAndNeverOverflows) {
  CostWeights w;
  w.tail = 10'000;  // the most that a policy may have
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t mean : std::array<std::int64_t, 4>{1, 1'024, 1'000'000'000, most}) {
    CostRequest q{Rates::kMaxTokens, 0, 8};
    q.tail_scale = tail_scale_of(w, mean);
    const std::int64_t milli = tail_milli(w, q, Rates::kMaxNs);
    EXPECT_GE(milli, 0);
    EXPECT_LE(milli, 320'000);
  }
}

TEST(Evict, IsTheShareOfTheCacheThatIsNewWithinTheTimeOfReuse) {
  Policy policy;
  policy.reuse = milliseconds(FadingSum::kSteadyMs / 2);
  const CostWeights w = CostWeights::from(policy);
  CostReplica r;
  r.turnover_milli = 600;  // of the capacity within the time of a FadingSum
  const CostTerms t = cost_of(w, {10'000, 0, 8}, kRates, r);
  EXPECT_EQ(t.evict, t.prefill / 1'000 * 300) << "within half of that time, half of it";
  r.turnover_milli = 5'000;
  EXPECT_EQ(cost_of(w, {10'000, 0, 8}, kRates, r).evict, t.prefill / 1'000 * kMostLost)
      << "not all would have been asked for";
  r.cached_tokens = 10'000;
  EXPECT_EQ(cost_of(w, {10'000, 0, 8}, kRates, r).evict, 0) << "what is there already pushes nothing out";
  policy.reuse = Nanos{0};
  r.cached_tokens = 0;
  EXPECT_EQ(cost_of(CostWeights::from(policy), {10'000, 0, 8}, kRates, r).evict, 0);
}

TEST(Full, IsTheShareByWhichTheCacheIsBookedBeyondNineTenthsOfTheTimeOfAnswers) {
  CostWeights w;
  w.kv = 1'000;
  CostRequest q{10'000, 200, 8};
  CostReplica r;
  r.capacity_tokens = 100'000;
  r.requests = 9;
  r.held_tokens = 79'000;  // and 10,000 of this prompt, and half of ten answers: 90,000
  EXPECT_EQ(full_ns(w, q, kRates, r), 0);
  r.held_tokens += 10'000;
  EXPECT_EQ(full_ns(w, q, kRates, r), answer_ns(q, kRates, 9, 0) / 10) << "a tenth beyond";
  r.cached_tokens = 10'000;
  EXPECT_EQ(full_ns(w, q, kRates, r), 0) << "what is cached there takes no more room";
  r.cached_tokens = 0;
  r.held_tokens = 1'000'000;
  EXPECT_EQ(full_ns(w, q, kRates, r), answer_ns(q, kRates, 9, 0)) << "the time of one answer at most";
  r.capacity_tokens = 0;
  EXPECT_EQ(full_ns(w, q, kRates, r), 0) << "unknown capacity, no guess";
}

ReplicaSpec spec_of(const char* name, std::int64_t capacity) {
  ReplicaSpec spec{.name = name};
  spec.rates = kRates;
  spec.capacity_tokens = capacity;
  return spec;
}

std::int64_t held(const Router& router, ReplicaId id) {
  for (const auto& r : router.statistics().replicas) {
    if (r.id == id) return r.held_tokens;
  }
  return -1;
}
// A prompt of its own on that replica, a millisecond after the last one; it decodes from the next millisecond on.
Ticket decoding(Router& router, ReplicaId id, std::uint32_t number, std::int64_t& now) {
  const auto tokens = prompt(number * 10'000);
  Request r = request(tokens);
  r.pinned = id;
  const Decision d = router.route(r, Nanos{now += 1'000'000});
  router.first_token(d.ticket, Nanos{now += 1'000'000});
  return d.ticket;
}

TEST(Room, PromptsInFlightHoldTheirTokensUntilTheyEnd) {
  Router router;
  const ReplicaId id = *router.add_replica(spec_of("r", 100'000), Nanos{1});
  std::vector<Ticket> tickets;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto tokens = prompt(i * 10'000);
    tickets.push_back(router.route(request(tokens), Nanos{2 + i}).ticket);
  }
  EXPECT_EQ(held(router, id), 3 * 4'000);
  router.first_token(tickets[0], Nanos{10});
  EXPECT_EQ(held(router, id), 3 * 4'000) << "while they decode, too";
  router.finish(tickets[0], {4'000, 0, 10}, Nanos{20});
  router.fail(tickets[1], Outcome::replica_error, Nanos{21});
  EXPECT_EQ(held(router, id), 4'000);
  router.finish(tickets[2], {4'000, 0, 10}, Nanos{22});
  EXPECT_EQ(held(router, id), 0);
}

TEST(Room, APrefixThatSeveralInFlightShareIsHeldOnce) {
  Router router;
  const ReplicaId id = *router.add_replica(spec_of("r", 100'000), Nanos{1});
  const auto tokens = prompt(0);
  std::vector<Ticket> tickets;
  for (std::int64_t i = 0; i < 5; ++i) tickets.push_back(router.route(request(tokens), Nanos{2 + i}).ticket);
  const std::int64_t once = held(router, id);
  EXPECT_GE(once, 4'000);
  EXPECT_LT(once, 4'000 + 4 * 600) << "4,000 tokens, and what lies behind each one's last checkpoint";
  for (const Ticket t : tickets) router.finish(t, {4'000, 0, 10}, Nanos{20});
  EXPECT_EQ(held(router, id), 0);
}

TEST(Room, AColdPromptGoesWhereTheCacheIsRenewedMoreSlowly) {
  Router router;
  const ReplicaId small = *router.add_replica(spec_of("small", 20'000), Nanos{1});
  const ReplicaId large = *router.add_replica(spec_of("large", 2'000'000), Nanos{1});
  std::int64_t now = 1'000'000'000;
  for (std::uint32_t i = 0; i < 8; ++i) {  // the same work on both, and nothing in flight afterwards
    for (const ReplicaId id : {small, large}) {
      const Ticket done = decoding(router, id, i * 2 + (id == small), now);
      router.finish(done, {4'000, 0, 1}, Nanos{now += 1'000'000});
    }
  }
  const auto cold = prompt(4'000'000'000);
  const Explanation e = router.explain(request(cold), Nanos{now});
  EXPECT_EQ(e.decision.replica, large);
  const auto& lost = e.candidates[e.candidates[0].chosen ? 1 : 0];
  EXPECT_EQ(lost.id, small);
  EXPECT_EQ(lost.lost_because, "its cache is renewed more quickly");
  Policy off;
  off.reuse = Nanos{0};
  ASSERT_TRUE(router.set_policy(off));
  const Explanation without = router.explain(request(cold), Nanos{now});
  EXPECT_EQ(without.candidates[0].cost.evict, 0);
  EXPECT_EQ(without.candidates[1].cost.evict, 0);
}

TEST(Room, AFullKvCacheRepels) {
  Router router;
  const ReplicaId small = *router.add_replica(spec_of("small", 10'000), Nanos{1});
  const ReplicaId large = *router.add_replica(spec_of("large", 2'000'000), Nanos{1});
  std::int64_t now = 1'000'000'000;
  for (std::uint32_t i = 0; i < 2; ++i) {  // two that decode on each
    for (const ReplicaId id : {small, large}) {
      (void)decoding(router, id, i * 2 + (id == small), now);
    }
  }
  Policy policy;
  policy.reuse = Nanos{0};
  ASSERT_TRUE(router.set_policy(policy));
  const auto cold = prompt(4'000'000'000);
  const Explanation e = router.explain(request(cold), Nanos{now});
  EXPECT_EQ(e.decision.replica, large);
  const auto& lost = e.candidates[e.candidates[0].chosen ? 1 : 0];
  EXPECT_EQ(lost.lost_because, "its KV cache is fuller");
  EXPECT_GT(lost.cost.full, 0);
}

TEST(Room, WhatPeersHaveInFlightFillsNoCacheSinceTheyMayShareIt) {
  Router router;
  ASSERT_TRUE(router.add_replica(spec_of("r", 20'000), Nanos{1}));
  const std::vector<PeerLoad> loads{{"r", 0, 100, 0, 0, 400'000, 0}};
  ASSERT_EQ(*router.peer_loads(1, loads, Nanos{2}), 1u);
  const auto tokens = prompt(0);
  const Explanation e = router.explain(request(tokens), Nanos{3});
  EXPECT_GT(e.candidates[0].cost.decode, 0);
  Router alone;
  ASSERT_TRUE(alone.add_replica(spec_of("r", 2'000'000), Nanos{1}));
  EXPECT_GT(e.candidates[0].cost.decode, alone.explain(request(tokens), Nanos{3}).candidates[0].cost.decode);
  EXPECT_EQ(e.candidates[0].cost.full, 0) << "4,000 tokens and half of 101 answers are below 0.9 of 20,000";
}

TEST(Room, AnEngineThatSaysHowLargeItsCacheIsIsBelieved) {
  Router router;
  ReplicaSpec spec{.name = "r"};  // says nothing of its capacity
  const ReplicaId id = *router.add_replica(std::move(spec), Nanos{1});
  const auto tokens = prompt(0);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto other = prompt(static_cast<std::uint32_t>(i + 1) * 10'000);
    (void)router.route(request(other), Nanos{2 + i});
  }
  EXPECT_EQ(router.explain(request(tokens), Nanos{10}).candidates[0].cost.full, 0);
  ASSERT_TRUE(router.signal(id, Signal::block_tokens, 16, Nanos{11}));
  ASSERT_TRUE(router.signal(id, Signal::block_count, 500, Nanos{11}));
  EXPECT_GT(router.explain(request(tokens), Nanos{12}).candidates[0].cost.full, 0);
}

}  // namespace
}  // namespace warmroute::room_tests
