#include "warmroute/ring/hash_ring.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ring/naive_ring.hpp"

namespace warmroute {
namespace {

using namespace test;

TEST(HashRing, AnswersNobodyWhenItIsEmpty) {
  const HashRing ring;
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.home(42), kNoMember);
  EXPECT_TRUE(successors(ring, 42, 4).empty());
  EXPECT_EQ(RingWalk(ring, 42).next(), kNoMember);
  EXPECT_EQ(RingWalk(ring, 42, SpillOrder::permuted).next(), kNoMember);
  EXPECT_TRUE(ring.shares().empty());
  EXPECT_EQ(*HashRing::build({}), ring);
}

TEST(HashRing, AgreesWithALinearScanAtEveryBorder) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 12; ++round) {
    Members members = fleet(1 + random() % (round % 4 == 3 ? 50 : 12));
    for (auto& m : members) m.weight = 0.01 + static_cast<double>(random() % 100) / 100;
    const RingOptions options{.seed = random(), .points_per_unit = static_cast<std::uint32_t>(1 + random() % 30)};
    const HashRing ring = ring_of(members, options);
    const NaiveRing naive(members, options);
    for (const std::uint64_t key : naive.borders()) {
      const auto expected = naive.owners(key);
      ASSERT_EQ(ring.home(key), expected.front());
      for (const std::size_t k : {std::size_t{2}, std::size_t{4}, std::size_t{5}, members.size()}) {
        const std::size_t n = std::min(k, expected.size());
        const std::vector<std::uint32_t> wanted(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(n));
        ASSERT_EQ(successors(ring, key, k), wanted);
      }
    }
  }
}

TEST(HashRing, WorksWithOneAndTwoAndThreePoints) {
  for (const std::size_t n : {1U, 2U, 3U}) {
    const Members members = fleet(n, 1e-9);  // one point each, whatever the weight
    const HashRing ring = ring_of(members);
    const NaiveRing naive(members);
    EXPECT_EQ(ring.points(), n);
    for (const std::uint64_t key : naive.borders()) EXPECT_EQ(successors(ring, key, 9), naive.owners(key));
  }
  EXPECT_EQ(ring_of(fleet(1, 1e-9)).shares()[0], KeySpan::everything());
}

// '9u2' point 151 and '_V}b' point 2167 have the same hash under seed 0: the rule's second sort key decides.
TEST(HashRing, GivesAPointThatTwoMembersShareToTheSmallerRingId) {
  constexpr std::uint64_t kShared = 13884406969005057638U;
  const RingMember small{"9u2", 7, 1.0};
  const RingMember large{"_V}b", 3, 9.0};
  const Members both{large, small};
  const HashRing ring = ring_of(both);
  EXPECT_EQ(ring.home(kShared), 7U);
  EXPECT_EQ(successors(ring, kShared, 2), (std::vector<std::uint32_t>{7, 3}));
  EXPECT_EQ(*ring.with_removed("9u2"), ring_of({large}));
  EXPECT_EQ(*ring.with_removed("_V}b"), ring_of({small}));
  EXPECT_EQ(ring_of({large}).with_added(small).value(), ring);
  EXPECT_EQ(ring_of({small}).with_added(large).value(), ring);
  EXPECT_EQ(ring_of({large}).home(kShared), 3U);
  const auto light = ring.with_weight("_V}b", 1.0);
  EXPECT_EQ(light->home(kShared), 7U);
  EXPECT_EQ(light->with_weight("_V}b", 9.0).value(), ring);
}

TEST(HashRing, IsTheSameInWhateverOrderMembersCome) {
  Members members = fleet(40);
  const HashRing ring = ring_of(members);
  std::mt19937_64 random(2);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(members.begin(), members.end(), random);
    EXPECT_EQ(ring_of(members), ring);
  }
}

TEST(HashRing, IsEqualByteForByteAfterAnyHistoryOfChanges) {
  std::mt19937_64 random(3);
  const RingOptions options{.seed = 11, .points_per_unit = 64};
  Members members;
  HashRing ring = ring_of({}, options);
  for (int step = 0; step < 400; ++step) {
    const std::string id = slot("m", random() % 30);
    const auto at = std::find_if(members.begin(), members.end(), [&](const auto& m) { return m.ring_id == id; });
    const double weight = static_cast<double>(1 + random() % 64) / 16;
    Result<HashRing> next = Error{};
    if (at == members.end()) {
      members.push_back({id, static_cast<std::uint32_t>(step), weight});
      next = ring.with_added(members.back());
    } else if (random() % 3 == 0) {
      next = ring.with_removed(id);
      members.erase(at);
    } else if (random() % 4 == 0) {
      at->member = static_cast<std::uint32_t>(step);
      next = ring.with_member(id, at->member);
    } else {
      at->weight = weight;
      next = ring.with_weight(id, weight);
    }
    ASSERT_TRUE(next) << next.error().message;
    ring = std::move(*next);
    ASSERT_EQ(ring, ring_of(members, options)) << "step " << step;
  }
}

TEST(HashRing, IsEqualByteForByteWhenTheChangeIsSmallBesideTheRing) {  // windows are then mended, not made anew
  std::mt19937_64 random(13);
  for (int round = 0; round < 12; ++round) {
    const RingOptions options{.seed = random(), .points_per_unit = static_cast<std::uint32_t>(3 + random() % 30)};
    const Members members = fleet(200);
    const RingMember extra{slot("replica-", 1 + random() % 100).append("x"), 5, 1.0};
    Members more = members;
    more.push_back(extra);
    const HashRing ring = ring_of(members, options);
    const HashRing larger = ring_of(more, options);
    ASSERT_EQ(ring.with_added(extra).value(), larger);
    ASSERT_EQ(larger.with_removed(extra.ring_id).value(), ring);
    more.back().weight = 0.3;
    ASSERT_EQ(larger.with_weight(extra.ring_id, 0.3).value(), ring_of(more, options));
    ASSERT_EQ(ring_of(more, options).with_weight(extra.ring_id, 1.0).value(), larger);
  }
}

TEST(HashRing, BecomesEmptyAndComesBack) {
  const RingOptions options{.seed = 5};
  const HashRing one = ring_of(fleet(1), options);
  const auto none = one.with_removed("replica-0");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(none->home(1), kNoMember);
  EXPECT_EQ(*none, ring_of({}, options));
  EXPECT_EQ(none->with_added(fleet(1)[0]).value(), one);
}

TEST(HashRing, MovesKeysOnlyToTheMemberThatCameAndBackWhenItLeaves) {
  const HashRing before = ring_of(fleet(20));
  const HashRing after = *before.with_added({"new", 5, 1.5});
  std::mt19937_64 random(4);
  std::size_t moved = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t key = random();
    if (before.home(key) == after.home(key)) continue;
    ++moved;
    ASSERT_EQ(after.home(key), 5U);
  }
  EXPECT_GT(moved, 0U);
  EXPECT_EQ(after.with_removed("new").value(), before);
}

TEST(HashRing, MovesKeysOnlyFromTheMemberThatGotLighter) {
  const HashRing before = ring_of(fleet(20));
  const HashRing after = *before.with_weight("replica-7", 0.25);
  std::mt19937_64 random(5);
  std::size_t moved = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t key = random();
    if (before.home(key) == after.home(key)) continue;
    ++moved;
    ASSERT_EQ(before.home(key), 1007U);
  }
  EXPECT_GT(moved, 0U);
  EXPECT_EQ(after.with_weight("replica-7", 1.0).value(), before);
}

TEST(HashRing, MovesNothingWhenAnotherReplicaTakesASlot) {
  const HashRing before = ring_of(fleet(20));
  const HashRing after = *before.with_member("replica-7", 77);
  std::mt19937_64 random(6);
  for (int i = 0; i < 5'000; ++i) {
    const std::uint64_t key = random();
    const std::uint32_t home = before.home(key);
    ASSERT_EQ(after.home(key), home == 1007 ? 77 : home);
  }
}

TEST(HashRing, GivesShorterListsAsPrefixesOfLongerOnes) {
  Members members = fleet(50);
  for (std::size_t i = 0; i < members.size(); ++i) members[i].weight = i % 5 == 0 ? 0.004 : 1.0;
  const HashRing ring = ring_of(members);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t key = random();
    const auto all = successors(ring, key, 60);
    ASSERT_EQ(all.size(), 50U);
    ASSERT_EQ(std::set(all.begin(), all.end()).size(), 50U);
    ASSERT_EQ(ring.home(key), all.front());
    RingWalk walk(ring, key);
    for (std::size_t k = 1; k <= all.size(); ++k) {
      const auto some = successors(ring, key, k);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << k;
      ASSERT_EQ(walk.next(), all[k - 1]);
    }
    ASSERT_EQ(walk.next(), kNoMember);
  }
}

TEST(HashRing, DeletesARemovedMemberFromEveryListAndChangesNothingElse) {
  const HashRing ring = ring_of(fleet(30));
  const HashRing less = *ring.with_removed("replica-12");
  std::mt19937_64 random(8);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t key = random();
    auto list = successors(ring, key, 30);
    std::erase(list, 1012U);
    ASSERT_EQ(successors(less, key, 30), list);
  }
}

TEST(RingWalk, DrawsEveryMemberOnceInAnOrderOfItsOwnPerKeyAndSeed) {
  const HashRing ring = ring_of(fleet(100));
  std::map<std::uint32_t, int> second;  // who is asked after home of one hot arc
  const std::uint32_t home = ring.home(1);
  std::size_t differ = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RingWalk walk(ring, 1, SpillOrder::permuted, seed);
    RingWalk again(ring, 1, SpillOrder::permuted, seed);
    std::vector<std::uint32_t> order;
    for (std::uint32_t m = walk.next(); m != kNoMember; m = walk.next()) {
      order.push_back(m);
      ASSERT_EQ(again.next(), m);
    }
    ASSERT_EQ(order.front(), home);
    ASSERT_EQ(std::set(order.begin(), order.end()).size(), 100U);
    ++second[order[1]];
    differ += order != successors(ring, 1, 100);
  }
  EXPECT_EQ(differ, 400U);
  EXPECT_GT(second.size(), 80U);  // spread over nearly all of 99; clockwise it is one
}

/// Rendezvous hashing, the baseline for balance: limited by key sampling alone.
std::uint32_t rendezvous(const Members& members, std::uint64_t key) {
  std::uint64_t best = 0;
  std::uint32_t winner = kNoMember;
  for (const auto& m : members) {
    const std::uint64_t score = XXH3_64bits_withSeed(m.ring_id.data(), m.ring_id.size(), key);
    if (winner == kNoMember || score > best) {
      best = score;
      winner = m.member;
    }
  }
  return winner;
}

TEST(HashRing, BalancesWithinFourSigmaOfItsPointsWhereRendezvousIsExact) {
  const Members members = fleet(64);
  const HashRing ring = ring_of(members);
  for (const KeySpan share : ring.shares()) EXPECT_NEAR(share.fraction() * 64, 1.0, 4.0 / std::sqrt(256.0));

  constexpr int kKeys = 64 * 1000;
  std::map<std::uint32_t, int> by_ring, by_rendezvous;
  std::mt19937_64 random(9);
  for (int i = 0; i < kKeys; ++i) {
    const std::uint64_t key = random();
    ++by_ring[ring.home(key)];
    ++by_rendezvous[rendezvous(members, key)];
  }
  const double sampling = 4.0 / std::sqrt(1000.0);
  for (std::uint32_t i = 0; i < ring.size(); ++i) {
    const RingMember& m = ring.members()[i];
    EXPECT_NEAR(by_rendezvous[m.member] / 1000.0, 1.0, sampling);
    EXPECT_NEAR(by_ring[m.member] / (kKeys * ring.shares()[i].fraction()), 1.0, sampling * 1.2);
  }
}

TEST(HashRing, SharesFollowTheWeightsAndAddUpToTheWholeKeySpace) {
  std::mt19937_64 random(10);
  for (int round = 0; round < 5; ++round) {
    Members members = fleet(40);
    double sum = 0;
    for (auto& m : members) sum += m.weight = static_cast<double>(1 + random() % 32) / 8;
    const HashRing ring = ring_of(members, {.seed = random()});
    KeySpan total;
    for (std::uint32_t i = 0; i < ring.size(); ++i) {
      const KeySpan share = ring.shares()[i];
      total += share;
      const double expected = ring.members()[i].weight / sum;
      EXPECT_NEAR(share.fraction() / expected, 1.0, 4.0 / std::sqrt(ring.points_of(i)));
    }
    EXPECT_EQ(total, KeySpan::everything());
    EXPECT_EQ(total.decimal(), "18446744073709551616");
  }
}

TEST(HashRing, RefusesBadMembersAndNamesEveryFault) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Members members{{"a", 1, 1.0}, {"b", 2, 0.0},  {"a", 3, 1.0},       {"c", 1, -2.0},    {"", 5, 1.0},
                        {"d", 6, nan}, {"e", 7, 1e12}, {"f", kNoMember, 1}, {"g", 9, infinity}};
  const auto ring = HashRing::build(members);
  ASSERT_FALSE(ring);
  EXPECT_EQ(ring.code(), Code::invalid_argument);
  for (const char* part :
       {"member 1 ('b'): weight", "member 2 ('a'): same ring_id as member 0", "member 3 ('c'): weight",
        "member 3 ('c'): same number as member 0", "member 4 (''): ring_id is empty", "member 5 ('d'): weight",
        "member 6 ('e'): weight", "too large", "member 7 ('f'): number", "member 8 ('g'): weight"}) {
    EXPECT_NE(ring.error().message.find(part), std::string::npos) << part << "\n" << ring.error().message;
  }
  EXPECT_EQ(HashRing::build(fleet(1), {.points_per_unit = 0}).code(), Code::invalid_argument);
  EXPECT_EQ(HashRing::build(fleet(1), {.max_points = 0}).code(), Code::invalid_argument);
  EXPECT_EQ(HashRing::build(fleet(1), {.max_points = ~0U}).code(), Code::invalid_argument);
}

TEST(HashRing, RefusesPointsOverTheCapAndNeverRescales) {
  const RingOptions options{.max_points = 4 * 256};
  EXPECT_EQ(HashRing::build(fleet(5), options).code(), Code::capacity);
  const HashRing full = ring_of(fleet(4), options);
  EXPECT_EQ(full.points(), 1024U);
  EXPECT_EQ(full.with_added({"x", 1, 1.0}).code(), Code::capacity);
  EXPECT_EQ(full.with_weight("replica-0", 1.01).code(), Code::capacity);
  EXPECT_TRUE(full.with_weight("replica-0", 0.5)->with_added({"x", 1, 0.5}));
  EXPECT_EQ(HashRing::build(fleet(kMaxRingMembers + 1), {.points_per_unit = 1}).code(), Code::capacity);
}

TEST(HashRing, RefusesChangesThatMakeNoSense) {
  const HashRing ring = ring_of(fleet(3));
  EXPECT_EQ(ring.with_added({"replica-1", 9, 1.0}).code(), Code::already_exists);
  EXPECT_EQ(ring.with_added({"x", 1001, 1.0}).code(), Code::already_exists);
  EXPECT_EQ(ring.with_added({"", 9, 1.0}).code(), Code::invalid_argument);
  EXPECT_EQ(ring.with_added({"x", 9, 0.0}).code(), Code::invalid_argument);
  EXPECT_EQ(ring.with_removed("x").code(), Code::not_found);
  EXPECT_EQ(ring.with_weight("x", 1).code(), Code::not_found);
  EXPECT_EQ(ring.with_weight("replica-1", -1).code(), Code::invalid_argument);
  EXPECT_EQ(ring.with_member("x", 1).code(), Code::not_found);
  EXPECT_EQ(ring.with_member("replica-1", 1002).code(), Code::already_exists);
  EXPECT_EQ(ring.with_member("replica-1", kNoMember).code(), Code::invalid_argument);
  EXPECT_EQ(ring.with_member("replica-1", 1001).value(), ring);
}

TEST(HashRing, FindsItsMembersByRingId) {
  const HashRing ring = ring_of(fleet(30));
  for (const auto& m : fleet(30)) {
    ASSERT_NE(ring.find(m.ring_id), kNoMember);
    EXPECT_EQ(ring.members()[ring.find(m.ring_id)], m);
  }
  EXPECT_EQ(ring.find("replica-"), kNoMember);
  EXPECT_EQ(ring.find("z"), kNoMember);
}

TEST(HashRing, RoundsWeightsHalfUpToPointsAndNeverBelowOne) {
  const Members members{{"a", 1, 1.5 / 256}, {"b", 2, 2.5 / 256}, {"c", 3, 2.4999 / 256}, {"d", 4, 0.1 / 256}};
  const HashRing ring = ring_of(members);
  EXPECT_EQ(ring.points_of(0), 2U);
  EXPECT_EQ(ring.points_of(1), 3U);
  EXPECT_EQ(ring.points_of(2), 2U);
  EXPECT_EQ(ring.points_of(3), 1U);
  EXPECT_EQ(ring.points_before(3), 7U);
  EXPECT_EQ(ring.points(), 8U);
}

TEST(HashRing, SortsBucketsThatAreFuller) {  // the long way of sort_ring_bucket
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t i = 0; i < 100; ++i) hashes.push_back((i * 37 % 50) << 3);  // all in bucket 0, each twice
  const std::vector<std::uint32_t> before{0, 50, 100};
  const auto tables = detail::sort_ring(hashes, before);
  for (std::size_t i = 1; i < 100; ++i) {
    ASSERT_LT(std::pair(tables.hashes[i - 1], tables.entries[i - 1].owner),
              std::pair(tables.hashes[i], tables.entries[i].owner));
  }
  EXPECT_EQ(tables.locate(0), 0U);
  EXPECT_EQ(tables.locate(1), 2U);
  EXPECT_EQ(tables.locate((49U << 3) + 1), 100U);
  EXPECT_EQ(tables.entries[100].owner, 0U);
}

}  // namespace
}  // namespace warmroute
