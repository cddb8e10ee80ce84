// PrefixIndex fed the way engines report: parents and removals by the engine's own opaque names, some shared between replicas, some not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "prefix/naive_index.hpp"
#include "support/sanitized.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute {
namespace {

using Path = test::NaiveIndex::Path;
constexpr std::uint32_t kReplicas = 4;

/// Replicas 0 and 1 agree on names; 2 and 3 have their own.
EngineHash name_by_engine(std::uint32_t slot, std::uint32_t generation, const Path& path, std::size_t end) {
  std::uint64_t h = slot < 2 ? 17 : slot * 1'000 + generation;
  for (std::size_t i = 0; i < end; ++i) h = (h ^ to_u64(path[i])) * 0x9E3779B97F4A7C15ULL + (h >> 29);
  return EngineHash{h};
}

struct NamedWorld {
  explicit NamedWorld(std::uint64_t seed, std::uint64_t stay, std::size_t longest)
      : random(seed), stay_percent(stay), longest_path(longest) {}

  std::mt19937_64 random;
  std::uint64_t stay_percent;
  std::size_t longest_path;
  PrefixIndex index;
  test::NaiveIndex naive;
  std::uint32_t generation[kReplicas] = {1, 1, 1, 1};
  std::set<Path> named[kReplicas][2];  // prefixes that the replica stored by name and holds still, per tier

  Path random_path() {
    Path path(1 + random() % longest_path);
    std::uint64_t family = random() % 3;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (random() % 100 >= stay_percent) family = random() % 3;
      path[i] = BlockHash{(family * 1'000 + i + 1) * 0x9E3779B97F4A7C15ULL};
    }
    return path;
  }
  static Path prefix(const Path& path, std::size_t end) {
    return Path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(end));
  }

  void store_by_name(std::uint32_t slot, unsigned tier) {
    const Path path = random_path();
    std::size_t from = random() % path.size();
    while (from != 0 && !named[slot][0].contains(prefix(path, from)) && !named[slot][1].contains(prefix(path, from)))
      --from;
    std::vector<EngineHash> ids;
    for (std::size_t end = from + 1; end <= path.size(); ++end) {
      ids.push_back(name_by_engine(slot, generation[slot], path, end));
      named[slot][tier].insert(prefix(path, end));
    }
    const EngineHash parent = name_by_engine(slot, generation[slot], path, from);
    ASSERT_TRUE(index.store_event({slot, generation[slot]}, static_cast<Tier>(tier), from == 0 ? nullptr : &parent, ids,
                                  std::span(path).subspan(from)));
    naive.store({slot, generation[slot]}, static_cast<Tier>(tier), path, from);
  }
  void remove_by_name(std::uint32_t slot, unsigned tier) {
    const Path path = random_path();
    const std::size_t first = random() % path.size();
    std::vector<EngineHash> ids;
    std::size_t expected = 0;
    for (std::size_t end = path.size(); end > first; --end) {  // leaf to root
      if (!named[slot][tier].contains(prefix(path, end))) continue;
      ids.push_back(name_by_engine(slot, generation[slot], path, end));
      expected += naive.remove({slot, generation[slot]}, static_cast<Tier>(tier), std::span(path).first(end), end - 1);
      named[slot][tier].erase(prefix(path, end));
    }
    if (random() % 4 == 0) std::shuffle(ids.begin(), ids.end(), random);
    if (random() % 4 == 0) ids.insert(ids.begin(), EngineHash{random()});  // never heard of
    ASSERT_EQ(index.remove_event({slot, generation[slot]}, static_cast<Tier>(tier), ids), expected);
  }
  void step() {
    const auto slot = static_cast<std::uint32_t>(random() % kReplicas);
    const unsigned tier = random() % 4 == 0 ? 1 : 0;
    const std::uint64_t dice = random() % 100;
    if (dice < 50) return store_by_name(slot, tier);
    if (dice < 85) return remove_by_name(slot, tier);
    if (dice < 95) {  // the same tree, fed by path: slot 9 knows no names
      const Path path = random_path();
      if (dice < 90) {
        ASSERT_TRUE(index.store({9, 1}, Tier::device, path));
        naive.store({9, 1}, Tier::device, path, 0);
      } else {
        ASSERT_EQ(index.remove({9, 1}, Tier::device, path), naive.remove({9, 1}, Tier::device, path, 0));
      }
      return;
    }
    if (dice > 96) return index.advance(16);
    index.clear({slot, ++generation[slot]});
    naive.clear({slot, generation[slot]});
    named[slot][0].clear();
    named[slot][1].clear();
  }
  /// What stays: a chain of slot 8, known by name.
  void store_base(std::size_t blocks) {
    Path path(blocks);
    std::vector<EngineHash> ids(blocks);
    for (std::size_t i = 0; i < blocks; ++i) {
      path[i] = BlockHash{(1'000'000 + i) * 0x9E3779B97F4A7C15ULL};
      ids[i] = EngineHash{(2'000'000 + i) * 0xD6E8FEB86659FD93ULL};
    }
    ASSERT_TRUE(index.store_event({8, 1}, Tier::device, nullptr, ids, path));
    naive.store({8, 1}, Tier::device, path, 0);
    index.advance();  // the last few names reach the table with later changes
  }
  /// Long chains of few families, stored and removed by name without looking: `round` makes them others.
  void churn(std::uint32_t round) {
    const auto slot = static_cast<std::uint32_t>(random() % kReplicas);
    Path path(1 + random() % longest_path);
    const std::uint64_t family = 10 + 12 * round + random() % 12;
    for (std::size_t i = 0; i < path.size(); ++i) path[i] = BlockHash{(family << 32 | i) * 0x9E3779B97F4A7C15ULL};
    const std::size_t first = random() % 2 == 0 ? 0 : random() % path.size();
    std::vector<EngineHash> ids;
    std::uint64_t h = slot < 2 ? 17 : slot;
    for (const BlockHash b : path) ids.push_back(EngineHash{h = (h ^ to_u64(b)) * 0x9E3779B97F4A7C15ULL + (h >> 29)});
    const std::uint64_t dice = random() % 10;
    const ReplicaId r{slot, round + 1};
    if (dice < 6) {
      ASSERT_TRUE(index.store_event(r, Tier::device, nullptr, ids, path));
    } else if (dice < 9) {
      std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
      index.remove_event(r, Tier::device, std::span(ids).subspan(first));
    } else {
      index.advance();
    }
  }
  void check() {
    ASSERT_EQ(index.statistics().memberships, naive.memberships());
    PrefixMatch match;
    for (int i = 0; i < 4; ++i) {
      const Path path = random_path();
      index.match(path, match);
      for (const std::uint32_t slot : {0U, 1U, 2U, 3U, 9U}) {
        const auto expected = naive.match(path, slot);
        ASSERT_EQ(slot < match.slots() ? match.device()[slot] : 0, expected[0]) << slot;
        ASSERT_EQ(slot < match.slots() ? match.host()[slot] : 0, expected[1]) << slot;
      }
    }
  }
};

/// returns: the bytes that are left when all but slot 8 forgot everything, after as many calls of `advance` as it takes.
std::size_t bytes_at_rest(NamedWorld& world, std::uint32_t generation) {
  for (std::uint32_t slot = 0; slot < 10; ++slot) {
    if (slot != 8) world.index.clear({slot, generation});
  }
  world.index.advance(1'000'000);
  for (int calls = 0; calls < 1000; ++calls) world.index.advance();
  return world.index.statistics().bytes;
}

TEST(PrefixEventsProperty, NamesLeadToTheRightBlocksWhateverHappensToTheTree) {
  constexpr int kSteps = test::kSanitized ? 200 : 1'500;
  const char* more = std::getenv("WARMROUTE_TEST_ROUNDS");
  for (std::uint64_t seed = 1; seed <= 8 * (more == nullptr ? 1 : std::strtoull(more, nullptr, 10)); ++seed) {
    NamedWorld world(seed, seed % 2 == 0 ? 40 : 95, seed % 2 == 0 ? 10 : 70);
    world.store_base(seed % 3 * 700);
    const std::size_t base = world.index.statistics().bytes;
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_NO_FATAL_FAILURE(world.step()) << "seed " << seed << " step " << step;
      ASSERT_NO_FATAL_FAILURE(world.check()) << "seed " << seed << " step " << step;
    }
    EXPECT_EQ(bytes_at_rest(world, 1'000'000), base) << "seed " << seed;
    EXPECT_EQ(world.index.statistics().blocks, seed % 3 * 700);
  }
}

// Names of long runs are not forgotten at once; the table splits and is joined again, aliases come and go.
TEST(PrefixEventsProperty, NamesTakeNoByteAfterTheirBlocks) {
  constexpr int kSteps = test::kSanitized ? 40 : 300;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    NamedWorld world(seed, 99, seed % 2 == 0 ? 6'000 : 600);
    const std::size_t blocks = seed % 3 * 5'000;
    world.store_base(blocks);
    const std::size_t base = world.index.statistics().bytes;
    for (std::uint32_t round = 0; round < 3; ++round) {
      for (int step = 0; step < kSteps; ++step)
        ASSERT_NO_FATAL_FAILURE(world.churn(round)) << "seed " << seed << " step " << step;
      EXPECT_GT(world.index.statistics().bytes, base);
      EXPECT_EQ(bytes_at_rest(world, round + 2), base) << "seed " << seed << " round " << round;
      EXPECT_EQ(world.index.statistics().blocks, blocks);
    }
  }
}

}  // namespace
}  // namespace warmroute
