// PrefixIndex against the naive tree, under seeded random stores, removals, holes, clears and tenants.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "prefix/naive_index.hpp"
#include "support/sanitized.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute {
namespace {

using Path = test::NaiveIndex::Path;

constexpr int kPart = test::kSanitized ? 8 : 1;  // one thread: a sanitizer needs no more than every kind of step

/// WARMROUTE_TEST_ROUNDS=n asks for n times as many seeds, in the long runs.
std::uint64_t seeds(std::uint64_t usual) {
  const char* more = std::getenv("WARMROUTE_TEST_ROUNDS");
  return more == nullptr ? usual : usual * std::strtoull(more, nullptr, 10);
}

struct Shape {
  const char* name;
  std::size_t replicas;
  std::size_t tiers;
  std::size_t max_length;
  std::uint64_t stay_percent;  ///< how likely a path goes on as its neighbour does: long runs or bushy trees
  std::uint32_t slot_stride;   ///< slots far apart keep their holders in words, near ones in windows
  int steps;
};

class World {
 public:
  World(const Shape& shape, std::uint64_t seed, PrefixIndexOptions options = {})
      : shape_(shape), random_(seed), index_(options) {}

  void step() {
    const std::uint64_t dice = random_() % 100;
    const Path path = random_path();
    const ReplicaId r = random_replica();
    const Tier tier = static_cast<Tier>(random_() % shape_.tiers);
    if (dice < 55) {
      const std::size_t first = random_() % 4 == 0 ? random_() % path.size() : 0;
      const bool naive = naive_.store(r, tier, path, first);
      ASSERT_EQ(index_.store(r, tier, path, first).code(), naive ? Code::ok : Code::stale);
    } else if (dice < 75) {
      const std::size_t first = random_() % path.size();  // the tail, as engines evict
      ASSERT_EQ(index_.remove(r, tier, path, first), naive_.remove(r, tier, path, first));
    } else if (dice < 85) {
      const std::size_t first = random_() % path.size();  // a hole
      const auto part = std::span(path).first(first + 1 + random_() % (path.size() - first));
      ASSERT_EQ(index_.remove(r, tier, part, first), naive_.remove(r, tier, part, first));
    } else if (dice < 95) {
      ASSERT_EQ(index_.remove(r, tier, path, 0), naive_.remove(r, tier, path, 0));
    } else if (dice < 96) {
      if (random_() % 4 == 0) generations_[r.slot / shape_.slot_stride] += static_cast<std::uint32_t>(random_() % 2);
      index_.clear(r);
      naive_.clear(r);
    } else {
      index_.advance(random_() % 8);
    }
  }

  void check() {
    ASSERT_EQ(index_.statistics().memberships, naive_.memberships());
    PrefixMatch& match = match_;
    for (int i = 0; i < 6; ++i) {
      const Path path = random_path();
      index_.match(path, match);
      for (std::uint32_t n = 0; n < shape_.replicas; ++n) {
        const std::uint32_t slot = n * shape_.slot_stride;
        const auto expected = naive_.match(path, slot);
        ASSERT_EQ(slot < match.slots() ? match.device()[slot] : 0, expected[0])
            << "slot " << slot << " of " << path.size();
        ASSERT_EQ(slot < match.slots() ? match.host()[slot] : 0, expected[1])
            << "slot " << slot << " of " << path.size();
        ASSERT_EQ(slot < match.slots() ? match.disk()[slot] : 0, expected[2])
            << "slot " << slot << " of " << path.size();
      }
    }
  }
  void check_size() {
    index_.advance(1'000'000);
    ASSERT_EQ(index_.statistics().blocks, naive_.blocks());
  }
  void empty() {
    for (auto& g : generations_) ++g;
    for (std::uint32_t n = 0; n < shape_.replicas; ++n) index_.clear({n * shape_.slot_stride, generations_[n]});
    index_.advance(1'000'000);
    ASSERT_EQ(index_.statistics().blocks, 0U);
    ASSERT_EQ(index_.statistics().nodes, 0U);
    ASSERT_LE(index_.statistics().bytes, 64U << 10) << "what stays is a few empty chunks of nodes";
  }
  PrefixIndex& index() { return index_; }
  test::NaiveIndex& naive() { return naive_; }
  std::mt19937_64& random() { return random_; }

  Path random_path() {
    Path path(1 + random_() % shape_.max_length);
    std::uint64_t family = random_() % 3;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (random_() % 100 >= shape_.stay_percent) family = random_() % 3;
      path[i] = BlockHash{(family * 1'000 + i + 1) * 0x9E3779B97F4A7C15ULL};
    }
    return path;
  }
  ReplicaId random_replica() {
    const std::size_t n = random_() % shape_.replicas;
    const std::uint32_t generation =
        generations_[n] - static_cast<std::uint32_t>(generations_[n] > 1 && random_() % 20 == 0);
    return {static_cast<std::uint32_t>(n) * shape_.slot_stride, generation};
  }

 private:
  Shape shape_;
  std::mt19937_64 random_;
  PrefixIndex index_;
  test::NaiveIndex naive_;
  PrefixMatch match_;
  std::vector<std::uint32_t> generations_ = std::vector<std::uint32_t>(shape_.replicas, 1);
};

class PrefixIndexProperty : public testing::TestWithParam<Shape> {};

TEST_P(PrefixIndexProperty, EqualsTheNaiveTreeUnderRandomChanges) {
  for (std::uint64_t seed = 1; seed <= seeds(4); ++seed) {
    World world(GetParam(), seed);
    for (int step = 0; step < GetParam().steps / kPart; ++step) {
      ASSERT_NO_FATAL_FAILURE(world.step()) << "seed " << seed << " step " << step;
      ASSERT_NO_FATAL_FAILURE(world.check()) << "seed " << seed << " step " << step;
      if (step % 16 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(world.check_size()) << "seed " << seed << " step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(world.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PrefixIndexProperty,
                         testing::Values(Shape{"bushy", 4, 1, 12, 30, 1, 1500}, Shape{"runs", 4, 1, 200, 99, 1, 600},
                                         Shape{"tiers", 3, 3, 40, 90, 1, 1000}, Shape{"spread", 12, 2, 30, 85, 70, 600},
                                         Shape{"crowd", 60, 1, 20, 80, 1, 500},
                                         Shape{"crowd_of_tiers", 40, 3, 20, 80, 2, 400}),
                         [](const auto& instance) { return std::string(instance.param.name); });

std::vector<EngineHash> names(const Path& path) {
  std::vector<EngineHash> ids;
  std::uint64_t h = 1;
  for (const auto b : path) ids.push_back(EngineHash{h = (h ^ to_u64(b)) * 0xD6E8FEB86659FD93ULL + (h >> 31)});
  return ids;
}

TEST(PrefixIndexCap, IsNeverExceededAndWhatIsAnsweredIsTrue) {
  for (const Shape& shape : {Shape{"runs", 4, 1, 400, 97, 1, 0}, Shape{"tiers", 3, 3, 120, 90, 1, 0}}) {
    for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
      constexpr std::size_t kCap = 64 << 10;
      World world(shape, seed, {.max_replicas = 64, .max_bytes = kCap});
      PrefixMatch match;
      std::size_t refused = 0, events = 0, short_of_room = 0;
      for (int step = 0; step < 3000 / kPart; ++step) {
        const Path path = world.random_path();
        const ReplicaId r = world.random_replica();
        const Tier tier = static_cast<Tier>(world.random()() % shape.tiers);
        if (world.random()() % 10 < 2) {  // by name; a parent that was given up is an orphan's
          const std::size_t from = world.random()() % 2 == 0 ? 0 : world.random()() % path.size();
          const auto ids = names(path);
          const bool known = from == 0 || world.index().knows(r, ids[from - 1]);
          const auto status = world.index().store_event(r, tier, from == 0 ? nullptr : &ids[from - 1],
                                                        std::span(ids).subspan(from), std::span(path).subspan(from));
          // the cap is low for the table of names: some events find no room for them
          ASSERT_TRUE(status.code() == (known ? Code::ok : Code::not_found) ||
                      (known && status.code() == Code::capacity));
          short_of_room += status.code() == Code::capacity;
          events += known;
          if (known) world.naive().store(r, tier, path, from);
        } else if (world.random()() % 10 < 1) {
          const auto ids = names(path);
          const std::size_t first = world.random()() % path.size();
          std::size_t most = 0;
          for (std::size_t end = path.size(); end > first; --end) {
            if (world.index().knows(r, ids[end - 1]))
              most += world.naive().remove(r, tier, std::span(path).first(end), end - 1);
          }
          EXPECT_LE(world.index().remove_event(r, tier, std::span(ids).subspan(first)), most);
        } else if (world.random()() % 10 < 7) {
          refused += !world.index().store(r, tier, path).ok();
          world.naive().store(r, tier, path, 0);
        } else {
          const std::size_t first = world.random()() % path.size();
          const auto part = std::span(path).first(first + 1 + world.random()() % (path.size() - first));
          EXPECT_LE(world.index().remove(r, tier, part, first), world.naive().remove(r, tier, part, first));
        }
        const auto stats = world.index().statistics();
        ASSERT_LE(stats.bytes, kCap) << step;
        world.index().match(path, match);
        for (std::uint32_t slot = 0; slot < match.slots(); ++slot) {
          const auto most = world.naive().match(path, slot);
          ASSERT_LE(match.device()[slot], most[0]);
          ASSERT_LE(match.disk()[slot], most[2]);
          ASSERT_LE(match.device()[slot], match.host()[slot]);
        }
      }
      EXPECT_GT(world.index().statistics().evicted_memberships, 0U);
      EXPECT_EQ(refused, 0U);
      EXPECT_LT(short_of_room, events);
      ASSERT_NO_FATAL_FAILURE(world.empty());
    }
  }
}

}  // namespace
}  // namespace warmroute
