// PrefixIndex fed the way engines report: parents and removals by the engine's own opaque names, some shared between replicas, some not.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <set>

#include "prefix/naive_index.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute {
namespace {

using Path = test::NaiveIndex::Path;
constexpr std::uint32_t kReplicas = 4;

/// Replicas 0 and 1 agree on names; 2 and 3 have their own.
EngineHash engine_name(std::uint32_t slot, std::uint32_t generation, const Path& path, std::size_t end) {
  std::uint64_t h = slot < 2 ? 17 : slot * 1'000 + generation;
  for (std::size_t i = 0; i < end; ++i) h = (h ^ to_u64(path[i])) * 0x9E3779B97F4A7C15ULL + (h >> 29);
  return EngineHash{h};
}

struct World {
  explicit World(std::uint64_t seed, std::uint64_t stay, std::size_t longest)
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
      ids.push_back(engine_name(slot, generation[slot], path, end));
      named[slot][tier].insert(prefix(path, end));
    }
    const EngineHash parent = engine_name(slot, generation[slot], path, from);
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
      ids.push_back(engine_name(slot, generation[slot], path, end));
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

TEST(PrefixEventsProperty, NamesLeadToTheRightBlocksWhateverHappensToTheTree) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kSteps = 200;
#else
  constexpr int kSteps = 1500;
#endif
  const char* more = std::getenv("WARMROUTE_TEST_ROUNDS");
  for (std::uint64_t seed = 1; seed <= 8 * (more == nullptr ? 1 : std::strtoull(more, nullptr, 10)); ++seed) {
    World world(seed, seed % 2 == 0 ? 40 : 95, seed % 2 == 0 ? 10 : 70);
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_NO_FATAL_FAILURE(world.step()) << "seed " << seed << " step " << step;
      ASSERT_NO_FATAL_FAILURE(world.check()) << "seed " << seed << " step " << step;
    }
    for (std::uint32_t slot = 0; slot < 10; ++slot) world.index.clear({slot, 1'000'000});
    world.index.advance(1'000'000);
    EXPECT_EQ(world.index.statistics().blocks, 0U);
    for (int calls = 0; calls < 256; ++calls) world.index.advance();
    EXPECT_LE(world.index.statistics().bytes, 96U << 10) << "names of blocks that went are given back as well";
  }
}

}  // namespace
}  // namespace warmroute
