#include "warmroute/prefix/index.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace warmroute {
namespace {

std::vector<BlockHash> chain(std::uint64_t family, std::size_t length, std::size_t shared = 0) {
  std::vector<BlockHash> path(length);
  for (std::size_t i = 0; i < length; ++i) {
    path[i] = BlockHash{((i < shared ? 0 : family) * 1'000'003 + i + 1) * 0x9E3779B97F4A7C15ULL};
  }
  return path;
}
constexpr ReplicaId replica(std::uint32_t slot, std::uint32_t generation = 1) { return {slot, generation}; }

struct PrefixIndexTest : testing::Test {
  PrefixIndex index;
  PrefixMatch found;

  std::uint32_t device(const std::vector<BlockHash>& path, std::uint32_t slot) {
    index.match(path, found);
    return slot < found.slots() ? found.device()[slot] : 0;
  }
};

TEST_F(PrefixIndexTest, CreditsTheLeadingBlocksThatAReplicaStored) {
  const auto path = chain(1, 10);
  ASSERT_TRUE(index.store(replica(3), Tier::device, path));
  EXPECT_EQ(device(path, 3), 10U);
  EXPECT_EQ(found.slots(), 4U);
  EXPECT_EQ(found.device()[0], 0U);
  EXPECT_EQ(found.best(), 10U);
  EXPECT_EQ(device(chain(1, 20), 3), 10U);
  EXPECT_EQ(device(chain(1, 4), 3), 4U);
  EXPECT_EQ(device(chain(2, 10), 3), 0U);
  EXPECT_EQ(device({}, 3), 0U);
}

TEST_F(PrefixIndexTest, FollowsBranches) {
  const auto a = chain(1, 20, 8), b = chain(2, 20, 8), c = chain(3, 8, 8);
  ASSERT_TRUE(index.store(replica(0), Tier::device, a));
  ASSERT_TRUE(index.store(replica(1), Tier::device, b));
  ASSERT_TRUE(index.store(replica(2), Tier::device, c));
  EXPECT_EQ(device(a, 0), 20U);
  EXPECT_EQ(device(a, 1), 8U);
  EXPECT_EQ(device(a, 2), 8U);
  EXPECT_EQ(device(b, 0), 8U);
  EXPECT_EQ(device(b, 1), 20U);
}

TEST_F(PrefixIndexTest, StopsAtAHoleAndGoesOnWhenItIsFilled) {
  const auto path = chain(1, 30);
  ASSERT_TRUE(index.store(replica(0), Tier::device, path));
  EXPECT_EQ(index.remove(replica(0), Tier::device, std::span(path).first(11), 10), 1U);
  EXPECT_EQ(device(path, 0), 10U);
  EXPECT_EQ(index.statistics().memberships, 29U);
  ASSERT_TRUE(index.store(replica(0), Tier::device, std::span(path).first(11), 10));
  EXPECT_EQ(device(path, 0), 30U);
}

TEST_F(PrefixIndexTest, AddsUpTiersBlockByBlock) {
  const auto path = chain(1, 30);
  ASSERT_TRUE(index.store(replica(0), Tier::device, std::span(path).first(10)));
  EXPECT_EQ(device(path, 0), 10U);
  EXPECT_FALSE(found.has_lower_tiers());
  ASSERT_TRUE(index.store(replica(0), Tier::host, std::span(path).first(20), 8));
  ASSERT_TRUE(index.store(replica(0), Tier::disk, path, 20));
  EXPECT_EQ(device(path, 0), 10U);
  EXPECT_TRUE(found.has_lower_tiers());
  EXPECT_EQ(found.host()[0], 20U);
  EXPECT_EQ(found.disk()[0], 30U);
  EXPECT_EQ(found.best(), 30U);
  EXPECT_EQ(index.remove(replica(0), Tier::host, path), 12U);
  EXPECT_EQ(device(path, 0), 10U);
  EXPECT_EQ(found.host()[0], 10U);
  EXPECT_EQ(found.disk()[0], 10U);
}

TEST_F(PrefixIndexTest, ForgetsAReplicaWhenItIsCleared) {
  const auto path = chain(1, 30);
  ASSERT_TRUE(index.store(replica(0), Tier::device, path));
  ASSERT_TRUE(index.store(replica(1), Tier::device, path));
  index.clear(replica(0));
  EXPECT_EQ(device(path, 0), 0U);
  EXPECT_EQ(device(path, 1), 30U);
  EXPECT_EQ(index.statistics().memberships, 30U);
  ASSERT_TRUE(index.store(replica(0), Tier::device, std::span(path).first(5)));
  EXPECT_EQ(device(path, 0), 5U);
}

TEST_F(PrefixIndexTest, NeverMixesTheTenantsOfASlot) {
  const auto path = chain(1, 30);
  ASSERT_TRUE(index.store(replica(0, 1), Tier::device, path));
  ASSERT_TRUE(index.store(replica(0, 2), Tier::device, std::span(path).first(3)));
  EXPECT_EQ(device(path, 0), 3U);
  EXPECT_EQ(index.store(replica(0, 1), Tier::device, path).code(), Code::stale);
  EXPECT_EQ(index.remove(replica(0, 1), Tier::device, path), 0U);
  index.clear(replica(0, 1));
  EXPECT_EQ(device(path, 0), 3U);
  EXPECT_EQ(index.statistics().refused_stores, 1U);
}

TEST_F(PrefixIndexTest, RefusesSlotsBeyondItsSize) {
  EXPECT_EQ(index.store(replica(1024), Tier::device, chain(1, 3)).code(), Code::out_of_range);
  EXPECT_EQ(index.store(kNoReplica, Tier::device, chain(1, 3)).code(), Code::out_of_range);
  index.clear(kNoReplica);
}

TEST_F(PrefixIndexTest, KeepsNothingOfWhatNobodyHolds) {
  const auto a = chain(1, 30, 10), b = chain(2, 30, 10);
  ASSERT_TRUE(index.store(replica(0), Tier::device, a));
  ASSERT_TRUE(index.store(replica(1), Tier::device, b));
  EXPECT_EQ(index.statistics().blocks, 50U);
  EXPECT_EQ(index.remove(replica(0), Tier::device, a), 30U);
  EXPECT_EQ(index.statistics().blocks, 30U);
  EXPECT_EQ(index.remove(replica(1), Tier::device, b), 30U);
  EXPECT_EQ(index.statistics().blocks, 0U);
  EXPECT_EQ(index.statistics().memberships, 0U);
}

TEST_F(PrefixIndexTest, TakesEventsByTheEnginesOwnNames) {
  const auto path = chain(1, 6);
  const EngineHash ids[] = {EngineHash{11}, EngineHash{12}, EngineHash{13},
                            EngineHash{14}, EngineHash{15}, EngineHash{16}};
  ASSERT_TRUE(index.store_event(replica(0), Tier::device, nullptr, std::span(ids).first(2), std::span(path).first(2)));
  ASSERT_TRUE(
      index.store_event(replica(0), Tier::device, &ids[1], std::span(ids).subspan(2), std::span(path).subspan(2)));
  EXPECT_EQ(device(path, 0), 6U);
  EXPECT_TRUE(index.knows(replica(0), EngineHash{14}));
  EXPECT_EQ(index.remove_event(replica(0), Tier::device, std::span(ids).subspan(3)), 3U);
  EXPECT_EQ(device(path, 0), 3U);
  EXPECT_FALSE(index.knows(replica(0), EngineHash{14}));
}

TEST_F(PrefixIndexTest, RefusesAnEventWhoseParentIsUnknown) {
  const auto path = chain(1, 2);
  const EngineHash ids[] = {EngineHash{11}, EngineHash{12}}, parent{99};
  EXPECT_EQ(index.store_event(replica(0), Tier::device, &parent, ids, path).code(), Code::not_found);
  EXPECT_EQ(index.store_event(replica(0), Tier::device, nullptr, std::span(ids).first(1), path).code(),
            Code::invalid_argument);
  EXPECT_EQ(index.statistics().blocks, 0U);
}

TEST_F(PrefixIndexTest, SharesBlocksBetweenEnginesThatNameThemDifferently) {
  const auto path = chain(1, 2);
  const EngineHash a[] = {EngineHash{11}, EngineHash{12}}, b[] = {EngineHash{21}, EngineHash{22}};
  ASSERT_TRUE(index.store_event(replica(0), Tier::device, nullptr, a, path));
  ASSERT_TRUE(index.store_event(replica(1), Tier::device, nullptr, std::span(b).first(1), std::span(path).first(1)));
  ASSERT_TRUE(index.store_event(replica(1), Tier::device, &b[0], std::span(b).subspan(1), std::span(path).subspan(1)));
  EXPECT_EQ(index.statistics().blocks, 2U);
  EXPECT_EQ(device(path, 1), 2U);
  EXPECT_EQ(index.remove_event(replica(1), Tier::device, std::span(b).subspan(1)), 1U);
  EXPECT_EQ(device(path, 1), 1U);
  EXPECT_EQ(device(path, 0), 2U);
}

TEST_F(PrefixIndexTest, HoldsManyConversationsUnderOneSystemPrompt) {
  constexpr std::uint32_t kConversations = 5'000;
  for (std::uint32_t c = 1; c <= kConversations; ++c)
    ASSERT_TRUE(index.store(replica(c % 3), Tier::device, chain(c, 12, 10)));
  for (std::uint32_t c = 1; c <= kConversations; ++c) ASSERT_EQ(device(chain(c, 12, 10), c % 3), 12U) << c;
  EXPECT_EQ(device(chain(kConversations + 1, 12, 10), 0), 10U);
  EXPECT_EQ(index.statistics().blocks, 10 + 2 * kConversations);
  for (std::uint32_t c = 1; c < kConversations; ++c) {
    ASSERT_EQ(index.remove(replica(c % 3), Tier::device, chain(c, 12, 10), 10), 2U) << c;
    ASSERT_EQ(c % 64 != 0 ? 12U : device(chain(kConversations, 12, 10), kConversations % 3), 12U) << c;
  }
  EXPECT_EQ(index.statistics().blocks, 12U);
  EXPECT_EQ(index.statistics().nodes, 1U);
  index.advance();
  EXPECT_LT(index.statistics().bytes, 64U << 10);
}

TEST(PrefixIndexAtItsCap, GivesUpWhatWasStoredToLongestAgo) {
  PrefixIndex index({.max_bytes = std::size_t{128} << 10});
  PrefixMatch found;
  constexpr std::uint64_t kFamilies = 400;
  for (std::uint64_t family = 1; family <= kFamilies; ++family) {
    ASSERT_TRUE(index.store(replica(0), Tier::device, chain(family, 100)));
    ASSERT_TRUE(index.store(replica(1), Tier::device, chain(1, 100)));  // the first one is used all the time
    ASSERT_TRUE(index.store(replica(0), Tier::device, chain(std::max<std::uint64_t>(family - family % 7, 1), 100)));
  }
  EXPECT_GT(index.statistics().evicted_memberships, 0U);
  index.match(chain(1, 100), found);
  EXPECT_EQ(found.device()[1], 100U);
  bool given_up = false;
  for (std::uint64_t family = kFamilies - kFamilies % 7 - 1; family > 1; --family) {
    if (family % 7 == 0) continue;  // stored to again later
    index.match(chain(family, 100), found);
    EXPECT_TRUE(found.device()[0] == 0 || !given_up) << family << " is held, a younger one is not";
    given_up |= found.device()[0] == 0;
  }
  EXPECT_TRUE(given_up);
}

}  // namespace
}  // namespace warmroute
