// Readers beside writers. What the readers check was sealed before they look: a chain held throughout is matched in full,
// a replica cleared and not stored to again is never credited.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "support/sanitized.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute {
namespace {

constexpr std::uint64_t kRounds = test::kSanitized ? 1'500 : 8'000;

/// `common` blocks of the trunk, then blocks of the family.
std::vector<BlockHash> chain(std::uint64_t trunk, std::size_t common, std::uint64_t family, std::size_t length) {
  std::vector<BlockHash> path(length);
  for (std::size_t i = 0; i < length; ++i) {
    path[i] = BlockHash{((i < common ? trunk : family) << 20 | (i + 1)) * 0x9E3779B97F4A7C15ULL};
  }
  return path;
}

/// What the engine of a source calls the blocks of a path.
std::vector<EngineHash> names(const std::vector<BlockHash>& path, std::uint64_t source) {
  std::vector<EngineHash> ids;
  std::uint64_t h = source;
  for (const auto b : path) ids.push_back(EngineHash{h = (h ^ to_u64(b)) * 0xD6E8FEB86659FD93ULL + (h >> 31)});
  return ids;
}

constexpr ReplicaId kSealed{0, 1}, kChurn{1, 1}, kOther{2, 1};
constexpr std::size_t kCommon = 37, kLength = 120;

std::vector<BlockHash> sealed_chain(std::uint64_t round) { return chain(round, kCommon, 1'000'000 + round, kLength); }

/// Every round hangs a sealed chain beside another replica's, then takes the other away, so that the sealed one is merged into the trunk
/// while readers are inside. Chains stay sealed for kWindow rounds.
struct MergeUnderReaders {
  static constexpr std::uint64_t kWindow = 32;
  PrefixIndex index;
  std::atomic<std::uint64_t> newest{0};   // rounds up to here are sealed
  std::atomic<std::uint64_t> retired{0};  // rounds up to here may be gone
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> looked{0};

  void write() {
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const auto other = chain(round, kCommon, 2'000'000 + round, kLength + round % 50);
      const auto sealed = sealed_chain(round);
      ASSERT_TRUE(index.store(kChurn, Tier::device, other));
      const bool named = round % 2 == 1;
      ASSERT_TRUE(named ? index.store_event(kSealed, Tier::device, nullptr, names(sealed, 1), sealed).ok()
                        : index.store(kSealed, Tier::device, sealed).ok());
      newest.store(round, std::memory_order_release);
      ASSERT_EQ(index.remove(kChurn, Tier::device, other), other.size());
      // more of the same trunk: branches, growth, holes, and holders that come and go
      for (std::uint32_t r = 2; r < 12; ++r)
        ASSERT_TRUE(index.store({r, 1}, Tier::device, std::span(sealed).first(10 * r)));
      ASSERT_EQ(index.remove(kOther, Tier::device, std::span(sealed).first(8), 4), 4U);
      for (std::uint32_t r = 2; r < 12; r += 2) index.remove({r, 1}, Tier::device, sealed);
      if (round % 16 == 0) index.clear({3, 1});
      if (round <= kWindow) continue;
      retired.store(round - kWindow, std::memory_order_seq_cst);
      index.remove(kSealed, Tier::device, sealed_chain(round - kWindow));
    }
    over.store(true);
  }
  void read(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    PrefixMatch match;
    while (!over.load(std::memory_order_relaxed)) {
      const std::uint64_t last = newest.load(std::memory_order_acquire);
      if (last == 0) continue;
      const std::uint64_t round = last - random() % std::min<std::uint64_t>(last, kWindow / 2);
      index.match(sealed_chain(round), match);
      if (round <= retired.load(std::memory_order_seq_cst)) continue;  // it was not sealed all the time
      ASSERT_EQ(match.device()[0], kLength) << "round " << round;
      looked.fetch_add(1, std::memory_order_relaxed);
    }
  }
};

TEST(PrefixIndexConcurrency, AChainHeldThroughoutIsMatchedInFullWhileRunsMerge) {
  MergeUnderReaders world;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 1; i <= 3; ++i) threads.emplace_back([&world, i] { world.read(i); });
  world.write();
  world.over = true;
  for (auto& t : threads) t.join();
  EXPECT_GT(world.looked.load(), 100U);
}

TEST(PrefixIndexConcurrency, AClearedReplicaIsNeverCredited) {
  PrefixIndex index;
  std::atomic<std::uint32_t> cleared{0};  // generations up to here hold nothing
  std::atomic<bool> over{false};
  const auto trunk = chain(1, 200, 1, 200);
  ASSERT_TRUE(index.store(kSealed, Tier::device, trunk));
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      PrefixMatch match;
      while (!over.load(std::memory_order_relaxed)) {
        const std::uint32_t generation = cleared.load(std::memory_order_acquire);
        // generation g stores chains of family g only: what an older one stored must not be credited any more
        index.match(chain(1, 100, 10 + generation, 200), match);
        ASSERT_LE(match.slots() > 1 ? match.device()[1] : 0, 100U) << generation;
        ASSERT_EQ(match.device()[0], 100U);
      }
    });
  }
  threads.emplace_back([&] {
    while (!over.load(std::memory_order_relaxed)) index.advance(3);
  });
  for (std::uint32_t g = 1; g <= kRounds; ++g) {
    ASSERT_TRUE(index.store({1, g}, Tier::device, chain(1, 100, 10 + g, 200)));
    if (g % 2 == 0) index.clear({1, g});
    else ASSERT_TRUE(index.store({1, g + 1}, Tier::device, std::span(trunk).first(50)));
    cleared.store(g, std::memory_order_release);
  }
  over = true;
  for (auto& t : threads) t.join();
}

TEST(PrefixIndexConcurrency, TheEndOfARunIsReplacedUnderReaders) {
  PrefixIndex index;
  std::atomic<bool> over{false};
  const auto trunk = chain(1, 400, 1, 400);
  ASSERT_TRUE(index.store(kSealed, Tier::device, trunk));
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      PrefixMatch match;
      for (std::uint64_t n = i; !over.load(std::memory_order_relaxed); ++n) {
        index.match(chain(1, 400, 10 + n % 4, 450), match);
        ASSERT_EQ(match.device()[0], 400U);
        ASSERT_LE(match.slots() > 1 ? match.device()[1] : 0, 450U);
      }
    });
  }
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const auto path = chain(1, 400, 10 + round % 4, 450);
    ASSERT_TRUE(index.store(kChurn, Tier::device, path));
    ASSERT_EQ(index.remove(kChurn, Tier::device, path), 450U);
  }
  over = true;
  for (auto& t : threads) t.join();
  EXPECT_EQ(index.statistics().nodes, 1U);
}

TEST(PrefixIndexConcurrency, WritersOfManySourcesMeet) {
  PrefixIndex index({.max_replicas = 64, .max_bytes = std::size_t{8} << 20});
  std::vector<std::thread> threads;
  for (std::uint32_t w = 0; w < 3; ++w) {
    threads.emplace_back([&index, w] {
      std::mt19937_64 random(w);
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        const auto path = chain(random() % 8, 20 + random() % 60, random() % 50, 100);
        const ReplicaId r{w, 1};
        const auto ids = names(path, random() % 2 == 0 ? 5 : w);
        switch (random() % 6) {
          case 0: index.remove(r, Tier::device, path, random() % 100); break;
          case 1: index.remove_event(r, Tier::device, std::span(ids).subspan(random() % 100)); break;
          case 2: ASSERT_TRUE(index.store_event(r, Tier::device, nullptr, ids, path)); break;
          default: ASSERT_TRUE(index.store(r, Tier::device, path));
        }
        if (i % 512 == 511) index.clear(r);
      }
      index.clear({w, 1});
    });
  }
  PrefixMatch match;
  for (std::uint64_t i = 0; i < kRounds; ++i) index.match(chain(i % 8, 50, i % 50, 100), match);
  for (auto& t : threads) t.join();
  index.advance(1'000'000);
  EXPECT_EQ(index.statistics().memberships, 0U);
  EXPECT_EQ(index.statistics().blocks, 0U);
}

}  // namespace
}  // namespace warmroute
