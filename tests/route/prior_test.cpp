// Several routers in front of the same replicas: the ring home as a prior.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "route/prompts.hpp"
#include "warmroute/route/detail/forks.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

using test::prompt;
using test::request;

std::vector<BlockHash> path_of(std::initializer_list<std::uint64_t> blocks) {
  std::vector<BlockHash> out;
  for (const std::uint64_t b : blocks) out.push_back(BlockHash{b});
  return out;
}

TEST(ForkTable, FindsThePlaceWhereManyPromptsPart) {
  detail::ForkTable forks;
  for (std::uint64_t i = 0; i < 16; ++i) forks.note(path_of({1, 2, 100 + i}), 2, 16);
  EXPECT_EQ(forks.deepest(path_of({1, 2, 999, 5}), 16), 2u);
  EXPECT_EQ(forks.deepest(path_of({1, 3, 999, 5}), 16), 0u) << "another prefix";
  EXPECT_EQ(forks.deepest(path_of({1, 2, 999, 5}), 17), 0u);
}

TEST(ForkTable, GivesTheDeepestOfSeveral) {
  detail::ForkTable forks;
  for (std::uint64_t i = 0; i < 8; ++i) {
    forks.note(path_of({1, 100 + i}), 1, 8);
    forks.note(path_of({1, 2, 3, 100 + i}), 3, 8);
  }
  EXPECT_EQ(forks.deepest(path_of({1, 2, 3, 4}), 8), 3u);
  EXPECT_EQ(forks.deepest(path_of({1, 9, 3, 4}), 8), 1u);
}

TEST(ForkTable, KeepsWhatIsCommonUnderAFloodOfPromptsThatPartOnce) {
  detail::ForkTable forks;
  for (std::uint64_t i = 0; i < 200; ++i) forks.note(path_of({1, 2, 100 + i}), 2, 16);
  for (std::uint64_t i = 0; i < 100'000; ++i) forks.note(path_of({7, i, 1}), 2, 16);
  EXPECT_EQ(forks.deepest(path_of({1, 2, 5}), 16), 2u);
}

TEST(ForkTable, TakesNoPathThatIsKnownWhole) {
  detail::ForkTable forks;
  for (int i = 0; i < 100; ++i) forks.note(path_of({1, 2}), 2, 1);
  for (int i = 0; i < 100; ++i) forks.note({}, 0, 1);
  EXPECT_EQ(forks.deepest(path_of({1, 2, 3}), 1), 0u);
}

class RingPrior : public testing::Test {
 protected:
  std::unique_ptr<Router> router(std::uint32_t routers, std::uint64_t seed) {
    auto out = std::make_unique<Router>();
    Policy policy;
    policy.routers = routers;
    policy.seed = seed;
    EXPECT_TRUE(out->set_policy(policy));
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(out->add_replica({.name = "r" + std::to_string(i)}, now));
    return out;
  }
  Nanos now = seconds(1);
};

TEST_F(RingPrior, RoutersThatNeverMetSendAPromptToTheSameReplica) {
  const auto one = router(8, 1), two = router(8, 2);
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto tokens = prompt(i * 100'000);
    EXPECT_EQ(one->peek(request(tokens), now).replica.slot, two->peek(request(tokens), now).replica.slot) << i;
  }
}

TEST_F(RingPrior, IsOffWithOneRouter) {
  const auto one = router(1, 1), two = router(1, 2);
  int same = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto tokens = prompt(i * 100'000);
    same += one->peek(request(tokens), now).replica == two->peek(request(tokens), now).replica;
  }
  EXPECT_LT(same, 25) << "idle replicas are an exact tie: drawn by each router's own seed";
}

TEST_F(RingPrior, IsOffForReplicasThatReportTheirCaches) {
  const auto one = router(8, 1), two = router(8, 2);
  for (Router* r : {one.get(), two.get()}) {
    for (const auto& row : r->replicas()) ASSERT_TRUE(r->blocks_stored(row.id, {}, now));
  }
  int same = 0;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto tokens = prompt(i * 100'000);
    same += one->peek(request(tokens), now).replica.slot == two->peek(request(tokens), now).replica.slot;
  }
  EXPECT_LT(same, 25);
}

TEST_F(RingPrior, PromptsThatShareASystemPromptHaveHomesOfTheirOwnOnceItIsKnownToBeShared) {
  const auto r = router(8, 1);
  const auto system = prompt(1, 6'400);
  std::map<std::uint32_t, int> early, late;
  for (std::uint32_t i = 0; i < 200; ++i) {
    auto tokens = system;
    const auto own = prompt(1'000'000 + i * 10'000, 1'000);
    tokens.insert(tokens.end(), own.begin(), own.end());
    const Explanation e = r->explain(request(tokens), now);
    const auto home = std::max_element(e.candidates.begin(), e.candidates.end(),
                                       [](const auto& x, const auto& y) { return x.cost.prior < y.cost.prior; });
    ++(i < 10 ? early : late)[home->id.slot];
    const Decision d = r->route(request(tokens), now);
    r->first_token(d.ticket, now += seconds(1));
    r->finish(d.ticket, {}, now += seconds(20));
  }
  EXPECT_LE(early.size(), 2u)
      << "the home and its successor: its first 1,024 tokens are the key as long as nothing is known";
  EXPECT_GE(late.size(), 6u);
  for (const auto& [slot, count] : late) EXPECT_LT(count, 60) << slot;
}

TEST_F(RingPrior, BooksAllTheWorkThatItOnlyHopesToBeSpared) {
  const auto r = router(8, 1);
  const auto tokens = prompt(7);
  const Decision d = r->route(request(tokens), now);
  const auto s = r->statistics();
  EXPECT_EQ(s.replicas[d.replica.slot].load.pending_tokens, 4'000);
  EXPECT_EQ(d.total_cached().value, 0) << "a hope is no match";
}

TEST_F(RingPrior, IsATermOfTheExplanation) {
  const auto r = router(2, 1);
  const auto tokens = prompt(7);
  const Explanation e = r->explain(request(tokens), now);
  int with = 0;
  for (const auto& c : e.candidates) with += c.cost.prior > 0;
  EXPECT_EQ(with, 2) << "the home and its successor";
}

}  // namespace
}  // namespace warmroute
