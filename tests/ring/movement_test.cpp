#include "warmroute/ring/movement.hpp"

#include <gtest/gtest.h>

#include "ring/naive_ring.hpp"

namespace warmroute {
namespace {

using namespace test;

/// Cuts the key space at every point of both rings and asks both naive rings about each piece.
std::map<std::pair<std::string, std::string>, detail::uint128> naive_flows(const NaiveRing& before,
                                                                           const NaiveRing& after) {
  std::set<std::uint64_t> ends{~std::uint64_t{0}};
  for (const std::uint64_t hash : before.hashes()) ends.insert(hash);
  for (const std::uint64_t hash : after.hashes()) ends.insert(hash);
  std::map<std::pair<std::string, std::string>, detail::uint128> flows;
  detail::uint128 begin = 0;
  for (const std::uint64_t end : ends) {
    const std::string& from = before.home_id(end);
    const std::string& to = after.home_id(end);
    if (from != to) flows[{from, to}] += detail::uint128{end} + 1 - begin;
    begin = detail::uint128{end} + 1;
  }
  return flows;
}

Members random_fleet(std::mt19937_64& random) {
  Members members;
  for (std::uint32_t i = 0; i < 8; ++i) {
    if (random() % 4 == 0) continue;
    members.push_back({slot("m", i), static_cast<std::uint32_t>(random()) / 2 * 2 + i % 2,
                       static_cast<double>(1 + random() % 16) / 8});
  }
  if (members.empty()) members.push_back({"m0", 0, 1.0});
  return members;
}

TEST(Movement, AgreesWithAskingBothRingsAboutEveryArc) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 60; ++round) {
    const Members a = random_fleet(random);
    const Members b = random_fleet(random);
    const RingOptions one{.seed = random() % 2, .points_per_unit = 16};
    const RingOptions two{.seed = random() % 2, .points_per_unit = 16};
    const Movement movement = movement_between(ring_of(a, one), ring_of(b, two));
    std::map<std::pair<std::string, std::string>, detail::uint128> flows;
    KeySpan sum;
    for (const KeyFlow& flow : movement.flows) {
      flows[{flow.from, flow.to}] = flow.span.keys;
      sum += flow.span;
    }
    ASSERT_EQ(flows.size(), movement.flows.size()) << "a pair twice";
    ASSERT_TRUE(flows == naive_flows(NaiveRing(a, one), NaiveRing(b, two)));
    ASSERT_EQ(sum, movement.moved);
    ASSERT_FALSE(movement.key_rule_changed);
  }
}

TEST(Movement, OfARemovalIsExactlyTheRemovedShare) {
  const HashRing before = ring_of(fleet(16));
  const Movement movement = movement_between(before, *before.with_removed("replica-3"));
  EXPECT_EQ(movement.moved, before.shares()[before.find("replica-3")]);
  for (const auto& flow : movement.flows) EXPECT_EQ(flow.from, "replica-3");
}

TEST(Movement, OfAnAdditionIsExactlyTheNewShareAndBackAgain) {
  const HashRing before = ring_of(fleet(16));
  const HashRing after = *before.with_added({"new", 1, 2.0});
  const Movement there = movement_between(before, after);
  const Movement back = movement_between(after, before);
  EXPECT_EQ(there.moved, after.shares()[after.find("new")]);
  EXPECT_EQ(back.moved, there.moved);
  for (const auto& flow : there.flows) EXPECT_EQ(flow.to, "new");
}

TEST(Movement, OfAWeightChangeIsTheDifferenceOfTheShares) {
  const HashRing before = ring_of(fleet(16));
  const HashRing after = *before.with_weight("replica-5", 1.75);
  const auto index = before.find("replica-5");
  EXPECT_EQ(movement_between(before, after).moved.keys, after.shares()[index].keys - before.shares()[index].keys);
}

TEST(Movement, IsNothingBetweenEqualRingsAndWhenOnlyTheReplicaBehindASlotChanged) {
  const HashRing ring = ring_of(fleet(9));
  EXPECT_EQ(movement_between(ring, ring).moved, KeySpan{});
  const Movement rollout = movement_between(ring, *ring.with_member("replica-3", 3));
  EXPECT_EQ(rollout.moved, KeySpan{});
  EXPECT_TRUE(rollout.flows.empty());
  EXPECT_EQ(rollout.fraction(), 0.0);
}

TEST(Movement, IsEverythingWhenTheKeyRuleChanged) {
  const HashRing before = ring_of(fleet(9), {.key_rule = 1});
  const HashRing after = ring_of(fleet(9), {.key_rule = 2});
  const Movement movement = movement_between(before, after);
  EXPECT_TRUE(movement.key_rule_changed);
  EXPECT_EQ(movement.moved, KeySpan::everything());
  EXPECT_EQ(movement.fraction(), 1.0);
  EXPECT_TRUE(movement.flows.empty());
}

TEST(Movement, FromAndToNobodyIsEverything) {
  const HashRing ring = ring_of(fleet(2));
  const Movement start = movement_between(HashRing{}, ring);
  EXPECT_EQ(start.moved, KeySpan::everything());
  ASSERT_EQ(start.flows.size(), 2U);
  EXPECT_EQ(start.flows[0].from, "");
  EXPECT_EQ(start.flows[0].span, ring.shares()[0]);
  const Movement stop = movement_between(ring, HashRing{});
  EXPECT_EQ(stop.moved, KeySpan::everything());
  EXPECT_EQ(stop.flows[1].from, "replica-1");
  EXPECT_EQ(stop.flows[1].to, "");
  EXPECT_EQ(movement_between(HashRing{}, HashRing{}).moved, KeySpan{});
}

}  // namespace
}  // namespace warmroute
