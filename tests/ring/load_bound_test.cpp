#include "warmroute/ring/load_bound.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <unordered_map>

#include "ring/naive_ring.hpp"

namespace warmroute {
namespace {

using namespace test;

using Loads = std::unordered_map<std::uint32_t, std::int64_t>;

std::int64_t sum(const Loads& loads) {
  std::int64_t total = 0;
  for (const auto& [member, load] : loads) total += load;
  return total;
}

/// The split in wide arithmetic and with no short cuts: cumulative floors of ceil((total + request) * percent / 100).
std::vector<std::int64_t> naive_shares(const HashRing& ring, std::int64_t percent, std::int64_t request,
                                       std::int64_t total) {
  const detail::uint128 slots =
      (static_cast<detail::uint128>(total + request) * static_cast<detail::uint128>(percent) + 99) / 100;
  std::vector<std::int64_t> shares;
  detail::uint128 before = 0;
  for (std::uint32_t i = 0; i < ring.size(); ++i) {
    const detail::uint128 upto = before + ring.points_of(i);
    shares.push_back(static_cast<std::int64_t>(slots * upto / ring.points() - slots * before / ring.points()));
    before = upto;
  }
  return shares;
}

HashRing weighted_ring(std::mt19937_64& random, std::size_t n) {
  Members members = fleet(n);
  for (auto& m : members) m.weight = std::exp2(static_cast<double>(random() % 1000) / 100.0 - 7.0);  // 1/128 .. 8
  return ring_of(members, {.seed = random(), .points_per_unit = 64});
}

TEST(LoadShares, SplitEveryUnitExactlyByWeight) {
  std::mt19937_64 random(30);
  for (int round = 0; round < 300; ++round) {
    const HashRing ring = weighted_ring(random, 1 + random() % 12);
    const std::int64_t percent = 100 + static_cast<std::int64_t>(random() % 200);
    const auto total = static_cast<std::int64_t>(random() >> (2 + random() % 62));
    const auto request = static_cast<std::int64_t>(1 + random() % 1000);
    const LoadShares shares(ring, static_cast<double>(percent) / 100, request, total);
    const auto expected = naive_shares(ring, percent, request, total);
    for (std::uint32_t i = 0; i < ring.size(); ++i) {
      ASSERT_EQ(shares.share(i), std::max<std::int64_t>(1, expected[i]));
      for (const std::int64_t near : {-2, -1, 0, 1, 2}) {
        const std::int64_t load = expected[i] + near;
        ASSERT_EQ(shares.passes(i, load), load < shares.share(i)) << load << " of " << expected[i];
      }
    }
  }
}

TEST(LoadShares, TakeTheFactorAsADecimalNumber) {
  const HashRing ring = ring_of(fleet(1));
  EXPECT_EQ(LoadShares(ring, 1.1, 1, 9).share(0), 11);   // 10 * 1.1 is a hair above 11 in binary
  EXPECT_EQ(LoadShares(ring, 1.25, 1, 9).share(0), 13);  // 12.5 rounded up
  EXPECT_EQ(LoadShares(ring, 0.5, 1, 9).share(0), 10);   // never below the load itself
  EXPECT_EQ(LoadShares(ring, std::numeric_limits<double>::quiet_NaN(), 1, 9).share(0), 10);
}

TEST(LoadShares, SurviveHugeAndNegativeLoads) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const HashRing ring = ring_of(fleet(3));
  const LoadShares shares(ring, 1000.0, kMost, kMost);
  EXPECT_TRUE(shares.passes(0, kMost / 2));
  EXPECT_GT(shares.share(0), kMost / 2);
  const LoadShares nothing(ring, 1.5, -5, -5);
  EXPECT_TRUE(nothing.passes(1, -1));
  EXPECT_TRUE(nothing.passes(1, 0));
  EXPECT_FALSE(nothing.passes(1, 1));
}

struct Case {
  double factor;
  std::int64_t largest;  // request size in the caller's units
  SpillOrder order;
};
class BoundAtArrival : public testing::TestWithParam<Case> {};

TEST_P(BoundAtArrival, IsNeverExceededForRandomWeightsWhileRequestsComeAndGo) {
  const auto [factor, largest, order] = GetParam();
  std::mt19937_64 random(31);
  for (int round = 0; round < 8; ++round) {
    const HashRing ring = weighted_ring(random, 2 + random() % 30);
    const LoadBound bound{.factor = factor, .order = order};
    Loads loads;
    std::vector<std::pair<std::uint32_t, std::int64_t>> running;
    for (int step = 0; step < 2'000; ++step) {
      if (running.size() > 200 || (!running.empty() && random() % 3 == 0)) {
        std::swap(running[random() % running.size()], running.back());
        loads[running.back().first] -= running.back().second;
        running.pop_back();
        continue;
      }
      const std::int64_t request = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(largest));
      const std::uint64_t key = random() % 5 == 0 ? random() : 77;  // one key is most of the traffic
      const std::int64_t total = sum(loads);
      const auto pick = bounded_pick(ring, key, bound, request, total, [&](std::uint32_t m) { return loads[m]; });
      const auto expected = naive_shares(ring, static_cast<std::int64_t>(std::lround(factor * 100)), request, total);
      const auto index = ring.find(slot("replica-", pick.member - 1000));
      const std::int64_t share = std::max<std::int64_t>(1, expected[index]);
      ASSERT_LT(loads[pick.member], share);
      ASSERT_FALSE(pick.over_bound);
      if (largest == 1) {
        ASSERT_LE(loads[pick.member] + 1, share);
      }
      loads[pick.member] += request;
      running.emplace_back(pick.member, request);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Units, BoundAtArrival,
                         testing::Values(Case{1.0, 1, SpillOrder::clockwise}, Case{1.25, 1, SpillOrder::permuted},
                                         Case{1.5, 100'000, SpillOrder::clockwise},
                                         Case{1.05, 5'000, SpillOrder::permuted}, Case{2.0, 1, SpillOrder::clockwise}));

TEST(BoundedPick, IsTheFirstSuccessorBelowItsShare) {
  std::mt19937_64 random(32);
  for (int round = 0; round < 50; ++round) {
    const HashRing ring = weighted_ring(random, 1 + random() % 20);
    Loads loads;
    for (const auto& m : ring.members()) loads[m.member] = static_cast<std::int64_t>(random() % 100);
    const std::int64_t total = sum(loads);
    const auto shares = naive_shares(ring, 150, 20, total);
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t key = random();
      BoundedPick expected;
      for (const std::uint32_t m : successors(ring, key, ring.size())) {
        ++expected.probes;
        const auto index = ring.find(slot("replica-", m - 1000));
        if (loads[m] >= std::max<std::int64_t>(1, shares[index])) continue;
        expected.member = m;
        break;
      }
      expected.diverted = expected.member != ring.home(key);
      ASSERT_EQ(bounded_pick(ring, key, LoadBound{}, 20, total, [&](std::uint32_t m) { return loads[m]; }), expected);
    }
  }
}

TEST(BoundedPick, StaysHomeWhenNothingRunsAndWhenTheRequestIsLargerThanAllElse) {
  const HashRing ring = ring_of(fleet(8));
  const auto idle = bounded_pick(ring, 5, LoadBound{}, 1'000'000, 0, [](std::uint32_t) { return std::int64_t{0}; });
  EXPECT_EQ(idle, (BoundedPick{ring.home(5), 1, false, false}));
}

TEST(BoundedPick, LetsALightMemberWithNothingInFlightPass) {
  const Members members{{"heavy", 1, 16.0}, {"light", 2, 0.01}};
  const HashRing ring = ring_of(members);
  const std::uint64_t key = ring.point_hash([&] {
    std::size_t i = 0;
    while (ring.members()[ring.point_index(i)].member != 2) ++i;
    return i;
  }());
  const auto pick = bounded_pick(ring, key, LoadBound{}, 1, 3, [](std::uint32_t m) { return m == 1 ? 3 : 0; });
  EXPECT_EQ(pick.member, 2U);
  const auto second = bounded_pick(ring, key, LoadBound{}, 1, 4, [](std::uint32_t m) { return m == 1 ? 3 : 1; });
  EXPECT_EQ(second, (BoundedPick{1, 2, true, false}));
}

TEST(BoundedPick, TakesTheLeastLoadedForItsShareWhenNobodyPasses) {
  const Members members{{"a", 1, 1.0}, {"b", 2, 4.0}, {"c", 3, 1.0}};
  const HashRing ring = ring_of(members);
  const auto load_of = [](std::uint32_t m) { return std::int64_t{m == 2 ? 300 : 100}; };
  // A total that is too small (a snapshot that lags) leaves everybody over its share.
  for (const std::uint64_t key : {1ULL, 1ULL << 62, 3ULL << 62}) {
    const auto pick = bounded_pick(ring, key, LoadBound{}, 1, 10, load_of);
    EXPECT_EQ(pick.member, 2U);
    EXPECT_EQ(pick.probes, 3U);
    EXPECT_TRUE(pick.over_bound);
    EXPECT_EQ(pick.diverted, ring.home(key) != 2);
  }
}

TEST(BoundedPick, StopsAfterTheAllowedProbes) {
  const HashRing ring = ring_of(fleet(50));
  const auto order = successors(ring, 9, 3);
  const auto load_of = [&](std::uint32_t m) { return std::int64_t{m == order[2] ? 5 : 50}; };
  const auto pick = bounded_pick(ring, 9, LoadBound{.max_probes = 3}, 1, 1, load_of);
  EXPECT_EQ(pick, (BoundedPick{order[2], 3, true, true}));
}

TEST(BoundedPick, SpreadsTheOverflowOfOneHotHomeWhenTheOrderIsPermuted) {
  const HashRing ring = ring_of(fleet(32));
  const std::uint32_t home = ring.home(0);
  const std::uint64_t span = ring.point_hash(0);  // keys 0 .. span live on the home
  const auto load_of = [&](std::uint32_t m) { return std::int64_t{m == home ? 100 : 0}; };
  std::set<std::uint32_t> clockwise, permuted;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t key = span / 200 * i;
    clockwise.insert(bounded_pick(ring, key, LoadBound{}, 1, 100, load_of).member);
    permuted.insert(bounded_pick(ring, key, LoadBound{.order = SpillOrder::permuted}, 1, 100, load_of).member);
  }
  EXPECT_EQ(clockwise.size(), 1U);
  EXPECT_GT(permuted.size(), 25U);
  EXPECT_FALSE(permuted.contains(home));
}

TEST(BoundedPickAmong, SplitsTheLoadOverTheEligibleOnly) {
  std::mt19937_64 random(33);
  const HashRing ring = ring_of(fleet(10));
  const auto eligible = [](std::uint32_t m) { return m % 5 == 0; };  // 1000 and 1005
  Loads loads{{1000, 40}, {1005, 30}};
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t key = random();
    const auto order = successors(ring, key, 10);
    const auto first = *std::find_if(order.begin(), order.end(), eligible);
    const auto load_of = [&](std::uint32_t m) { return loads[m]; };
    // (70 + 1) * 1.5 / 2 = 54: both pass, although a tenth of the allowance would be 11.
    EXPECT_EQ(bounded_pick_among(ring, key, LoadBound{}, 1, load_of, eligible), (BoundedPick{first, 1, false, false}));
  }
  const auto none = bounded_pick_among(
      ring, 1, LoadBound{}, 1, [](auto) { return 0; }, [](auto) { return false; });
  EXPECT_EQ(none, BoundedPick{});
}

TEST(BoundedPickAmong, AlwaysFindsSomebodyBelowItsShare) {
  std::mt19937_64 random(34);
  for (int round = 0; round < 200; ++round) {
    const HashRing ring = weighted_ring(random, 2 + random() % 10);
    Loads loads;
    for (const auto& m : ring.members()) loads[m.member] = static_cast<std::int64_t>(random() % 4);
    const std::uint64_t mask = random() | 1;
    const auto eligible = [&](std::uint32_t m) { return (mask >> (m % 64) & 1) != 0; };
    if (std::none_of(ring.members().begin(), ring.members().end(), [&](const auto& m) { return eligible(m.member); }))
      continue;
    const auto pick = bounded_pick_among(
        ring, random(), LoadBound{.factor = 1.0}, 1, [&](auto m) { return loads[m]; }, eligible);
    ASSERT_TRUE(eligible(pick.member));
    ASSERT_FALSE(pick.over_bound);
  }
}

TEST(BoundedPick, AnswersNobodyOnAnEmptyRing) {
  EXPECT_EQ(bounded_pick(HashRing{}, 1, LoadBound{}, 1, 0, [](auto) { return 0; }), BoundedPick{});
}

TEST(LoadBound, RefusesFactorsThatBoundNothingOrEverything) {
  EXPECT_TRUE(LoadBound{}.validate());
  EXPECT_TRUE(LoadBound{.factor = 1.0}.validate());
  for (const double factor : {0.99, -1.0, 1001.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(LoadBound{.factor = factor}.validate().code(), Code::invalid_argument);
  }
}

}  // namespace
}  // namespace warmroute
