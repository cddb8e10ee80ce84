// Look-ups allocate nothing once their result has been used; nor does a store of what is there already.
#include <gtest/gtest.h>

#include <vector>

#include "support/counting_new.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/prefix/residency.hpp"

namespace warmroute {
namespace {

std::vector<BlockHash> chain(std::uint64_t family, std::size_t length) {
  std::vector<BlockHash> path(length);
  for (std::size_t i = 0; i < length; ++i) path[i] = BlockHash{(family << 32 | (i + 1)) * 0x9E3779B97F4A7C15ULL};
  return path;
}

std::size_t allocations_of(auto&& call) {
  const std::size_t before = test::allocations();
  call();
  return test::allocations() - before;
}

TEST(Allocations, NoneInHashing) {
  const std::vector<std::uint32_t> tokens(10'000, 7);
  std::vector<BlockHash> blocks(tokens.size());
  std::vector<SequenceHash> sequence(tokens.size());
  EXPECT_EQ(allocations_of([&] {
              for (const std::uint32_t size : {1U, 16U, 64U, 512U}) {
                hash_token_blocks(tokens, size, 1, blocks);
                hash_eagle_blocks(tokens, size, 1, blocks);
                hash_token_blocks_chained(tokens, size, 1, blocks, sequence);
              }
              sequence_hashes(blocks, sequence);
            }),
            0U);
}

TEST(Allocations, NoneInAMatch) {
  PrefixIndex index;
  const auto long_path = chain(1, 800), miss = chain(99, 800), other = chain(7, 100);
  for (std::uint32_t r = 0; r < 40; ++r) {
    ASSERT_TRUE(index.store({r, 1}, Tier::device, std::span(long_path).first(20 * (r + 1))));
    ASSERT_TRUE(index.store({r, 1}, Tier::host, chain(2 + r, 100)));
  }
  PrefixMatch match;
  index.match(long_path, match);
  EXPECT_EQ(allocations_of([&] {
              for (int i = 0; i < 100; ++i) {
                index.match(long_path, match);
                index.match(miss, match);
                index.match(other, match);
              }
            }),
            0U);
}

TEST(Allocations, NoneInStoringOrTouchingWhatIsThere) {
  PrefixIndex index;
  Residency residency(index, {0, 1});
  const auto path = chain(1, 625);
  residency.insert(path, Nanos{1});
  residency.insert(path, Nanos{2});
  EXPECT_EQ(allocations_of([&] {
              for (int i = 3; i < 100; ++i) residency.insert(path, Nanos{i});
              EXPECT_TRUE(index.store({0, 1}, Tier::device, path));
              index.clear({0, 1});
            }),
            0U);
}

TEST(Allocations, AreWhatTheIndexSaysItUses) {
  const std::size_t before = test::live_bytes();
  PrefixIndex index;
  for (std::uint64_t family = 0; family < 2'000; ++family) {
    const auto path = chain(family % 500, 50 + family % 90);
    std::vector<EngineHash> ids;
    for (const auto b : path) ids.push_back(EngineHash{to_u64(b) ^ family % 3});
    const ReplicaId r{static_cast<std::uint32_t>(family % 12), 1};
    ASSERT_TRUE(family % 2 == 0 ? index.store(r, family % 5 == 0 ? Tier::host : Tier::device, path, family % 7).ok()
                                : index.store_event(r, Tier::device, nullptr, ids, path).ok());
  }
  index.advance();
  const double asked = static_cast<double>(index.statistics().bytes);
  const double used = static_cast<double>(test::live_bytes() - before);
  EXPECT_GT(asked, 500'000.0);
  EXPECT_NEAR(used / asked, 1.0, 0.05) << used << " used, " << asked << " said";
}

TEST(Allocations, AreSeenByThisTest) {
  PrefixIndex index;
  const auto path = chain(1, 625);
  EXPECT_GT(allocations_of([&] { static_cast<void>(index.store({0, 1}, Tier::device, path)); }), 0U);
}

}  // namespace
}  // namespace warmroute
