#include "warmroute/prefix/residency.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace warmroute {
namespace {

using Path = std::vector<BlockHash>;
constexpr ReplicaId kReplica{0, 1};

/// The same cache, block by block: last touch per block, eviction by searching for the oldest leaf.
class NaiveResidency {
 public:
  explicit NaiveResidency(std::size_t capacity) : capacity_(capacity) {}
  void insert(Path path, Nanos now) {
    if (capacity_ != 0 && path.size() > capacity_) path.resize(capacity_);
    ++turn_;
    for (std::size_t i = 1; i <= path.size(); ++i)
      blocks_[Path(path.begin(), path.begin() + static_cast<long>(i))] = {turn_, now};
    shrink();
  }
  std::size_t held(const Path& path) const {
    std::size_t n = 0;
    while (n < path.size() && blocks_.contains(Path(path.begin(), path.begin() + static_cast<long>(n + 1)))) ++n;
    return n;
  }
  void truncate(const Path& path, std::size_t keep) {
    if (keep >= path.size()) return;
    const Path cut(path.begin(), path.begin() + static_cast<long>(keep + 1));
    std::erase_if(blocks_, [&](const auto& b) {
      return b.first.size() >= cut.size() && std::equal(cut.begin(), cut.end(), b.first.begin());
    });
  }
  void set_capacity(std::size_t capacity) {
    capacity_ = capacity;
    shrink();
  }
  void expire(Nanos before) {
    std::erase_if(blocks_, [&](const auto& b) { return b.second.second <= before; });
  }
  std::size_t size() const { return blocks_.size(); }
  const auto& blocks() const { return blocks_; }

 private:
  void shrink() {
    while (capacity_ != 0 && blocks_.size() > capacity_) {
      auto victim = blocks_.begin();
      for (auto b = blocks_.begin(); b != blocks_.end(); ++b) {
        const bool older = b->second.first < victim->second.first;
        const bool deeper = b->second.first == victim->second.first && b->first.size() > victim->first.size();
        if (older || deeper) victim = b;
      }
      blocks_.erase(victim);
    }
  }
  std::size_t capacity_;
  std::uint64_t turn_ = 0;
  std::map<Path, std::pair<std::uint64_t, Nanos>> blocks_;
};

Path random_path(std::mt19937_64& random) {
  Path path(1 + random() % 12);
  for (auto& h : path) h = BlockHash{(1 + random() % 8 % 3) * 0x9E3779B97F4A7C15ULL};
  return path;
}

void expect_equal(const NaiveResidency& naive, const Residency& residency, PrefixIndex& index,
                  std::mt19937_64& random) {
  ASSERT_EQ(residency.blocks(), naive.size());
  ASSERT_EQ(index.statistics().memberships, naive.size());
  ASSERT_EQ(index.statistics().blocks, naive.size());
  PrefixMatch match;
  for (int i = 0; i < 4; ++i) {
    const Path path = random_path(random);
    ASSERT_EQ(residency.held(path), naive.held(path));
    index.match(path, match);
    ASSERT_EQ(match.slots() == 0 ? 0 : match.device()[0], naive.held(path));
  }
}

TEST(Residency, EqualsTheNaiveCacheUnderRandomUse) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t capacity = 5 + random() % 60;
    PrefixIndex index;
    Residency residency(index, kReplica, Tier::device, {.capacity_blocks = capacity, .ttl = Nanos{200}});
    NaiveResidency naive(capacity);
    Nanos now{1'000};
    for (int step = 0; step < 1500; ++step) {
      now += Nanos{static_cast<std::int64_t>(random() % 5)};
      const Path path = random_path(random);
      switch (random() % 16) {
        case 0: {
          const std::size_t keep = random() % 12;
          residency.truncate(path, keep);
          naive.truncate(path, keep);
          break;
        }
        case 1: {
          const std::size_t blocks = 1 + random() % 80;
          residency.set_capacity(blocks);
          naive.set_capacity(blocks);
          break;
        }
        case 2:
          now += Nanos{static_cast<std::int64_t>(random() % 150)};
          residency.advance(now, 1'000'000);
          naive.expire(now - Nanos{200});
          break;
        default: residency.insert(path, now); naive.insert(path, now);
      }
      ASSERT_NO_FATAL_FAILURE(expect_equal(naive, residency, index, random)) << "seed " << seed << " step " << step;
    }
  }
}

Path root_path(std::uint64_t family, std::size_t length) {
  Path path(length);
  for (std::size_t i = 0; i < length; ++i) path[i] = BlockHash{family << 32 | (i + 1)};
  return path;
}

TEST(Residency, KeepsTheHeadOfAPathLongerThanTheCache) {
  PrefixIndex index;
  Residency residency(index, kReplica, Tier::device, {.capacity_blocks = 10});
  residency.insert(root_path(1, 5), Nanos{1});
  residency.insert(root_path(2, 25), Nanos{2});
  EXPECT_EQ(residency.held(root_path(2, 25)), 10U);
  EXPECT_EQ(residency.held(root_path(1, 5)), 0U);
  EXPECT_EQ(residency.evicted(), 5U);
}

TEST(Residency, ExpiresABoundedNumberOfBlocksPerCall) {
  PrefixIndex index;
  Residency residency(index, kReplica, Tier::device, {.ttl = Nanos{10}});
  residency.insert(root_path(1, 100), Nanos{0});
  residency.advance(Nanos{9}, 30);
  EXPECT_EQ(residency.blocks(), 100U);
  residency.advance(Nanos{10}, 30);
  EXPECT_EQ(residency.blocks(), 70U);
  EXPECT_EQ(residency.held(root_path(1, 100)), 70U);
}

TEST(Residency, OutlivesAThousandTurnsThatEachReplaceTheirLastBlocks) {
  PrefixIndex index;
  Residency residency(index, kReplica, Tier::device, {.capacity_blocks = 4'000});
  Path path = root_path(1, 10);
  for (std::uint64_t turn = 0; turn < 1'000; ++turn) {
    const Path answer = root_path(100 + turn, 2), again = root_path(10'000 + turn, 3);
    Path with_answer = path;
    with_answer.insert(with_answer.end(), answer.begin(), answer.end());
    residency.insert(with_answer, Nanos{static_cast<std::int64_t>(turn)});
    path.insert(path.end(), again.begin(), again.end());  // the next prompt spells the answer otherwise
    residency.insert(path, Nanos{static_cast<std::int64_t>(turn)});
  }
  EXPECT_EQ(residency.held(path), path.size());
  residency.set_capacity(path.size());
  EXPECT_EQ(residency.held(path), path.size());
  EXPECT_EQ(residency.blocks(), path.size());
  EXPECT_LE(index.statistics().nodes, 2U) << "one chain is left, and it is one run";
}

TEST(Residency, ForgetsEverythingWhenItIsCleared) {
  PrefixIndex index;
  Residency residency(index, kReplica);
  residency.insert(root_path(1, 100), Nanos{0});
  residency.clear();
  EXPECT_EQ(residency.blocks(), 0U);
  EXPECT_EQ(index.statistics().memberships, 0U);
  residency.insert(root_path(1, 3), Nanos{0});
  EXPECT_EQ(residency.held(root_path(1, 100)), 3U);
}

}  // namespace
}  // namespace warmroute
