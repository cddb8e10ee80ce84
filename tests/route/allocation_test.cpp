// Its own program: operator new is counted (support/counting_new.cpp). Hot calls allocate nothing once warm.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "support/counting_new.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

class RouterAllocation : public testing::TestWithParam<std::size_t> {};

TEST_P(RouterAllocation, IsZeroOnWarmHotCalls) {
  Router router;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(router.add_replica({.name = "replica-" + std::to_string(i)}, Nanos{1}));
  Policy policy;
  policy.algorithm = static_cast<Algorithm>(GetParam());
  ASSERT_TRUE(router.set_policy(policy));
  const std::vector<PeerLoad> told{{"replica-3", 0, 2, 1, 5'000'000, 20'000, 0}};
  ASSERT_TRUE(router.peer_loads(1, told, Nanos{1}));
  std::vector<std::vector<std::uint32_t>> prompts(40, std::vector<std::uint32_t>(10'000));
  for (std::size_t i = 0; i < prompts.size(); ++i)
    std::iota(prompts[i].begin(), prompts[i].end(), static_cast<std::uint32_t>(i % 4 * 7'000));
  std::int64_t t = 2;
  const auto round = [&] {
    for (const auto& prompt : prompts) {
      Request r;
      r.token_ids = prompt;
      r.session = "conversation";
      (void)router.peek(r, Nanos{++t});
      const Decision d = router.route(r, Nanos{++t});
      router.first_token(d.ticket, Nanos{++t});
      router.finish(d.ticket, {10'000, d.total_cached().value, 50}, Nanos{++t});
    }
  };
  for (int i = 0; i < 20; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(test::allocations() - before, 0u) << algorithm_name(policy.algorithm);
}

TEST(RouterAllocationOfPairs, IsZeroOnWarmHotCalls) {
  Router router;
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    ASSERT_TRUE(router.add_replica({.name = "p" + n, .role = Role::prefill}, Nanos{1}));
    ASSERT_TRUE(router.add_replica({.name = "d" + n, .role = Role::decode}, Nanos{1}));
  }
  Policy policy;
  policy.disaggregate = Disaggregate::always;
  ASSERT_TRUE(router.set_policy(policy));
  std::vector<std::vector<std::uint32_t>> prompts(40, std::vector<std::uint32_t>(10'000));
  for (std::size_t i = 0; i < prompts.size(); ++i)
    std::iota(prompts[i].begin(), prompts[i].end(), static_cast<std::uint32_t>(i % 4 * 7'000));
  std::int64_t t = 2;
  const auto round = [&] {
    for (const auto& prompt : prompts) {
      Request r;
      r.token_ids = prompt;
      (void)router.peek(r, Nanos{++t});
      const Decision d = router.route(r, Nanos{++t});
      ASSERT_TRUE(d.is_pair());
      router.first_token(d.ticket, Nanos{++t});
      router.transfer_done(d.ticket, Nanos{++t});
      router.finish(d.ticket, {10'000, d.total_cached().value, 50}, Nanos{++t});
    }
  };
  for (int i = 0; i < 20; ++i) round();
  const std::size_t before = test::allocations();
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(test::allocations() - before, 0u);
}

INSTANTIATE_TEST_SUITE_P(EveryAlgorithm, RouterAllocation, testing::Range<std::size_t>(0, kAlgorithmNames.size()));

}  // namespace
}  // namespace warmroute
