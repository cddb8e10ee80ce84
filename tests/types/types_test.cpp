#include "warmroute/types.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <type_traits>

namespace warmroute {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Multiplicable = requires(A a, B b) {
  a* b;
};

// What must not compile.
static_assert(Addable<Nanos, Nanos> && Addable<Tokens, Tokens>);
static_assert(!Addable<Nanos, Tokens> && !Addable<Nanos, int>, "units do not mix");
static_assert(!Comparable<Nanos, Tokens> && !Comparable<Nanos, std::int64_t>);
static_assert(Multiplicable<Tokens, std::int64_t> && !Multiplicable<Nanos, Nanos>, "there are no square nanoseconds");
static_assert(!std::is_convertible_v<std::int64_t, Nanos>, "a bare number has no unit");
static_assert(!std::is_convertible_v<BlockHash, SequenceHash> && !std::is_convertible_v<BlockHash, std::uint64_t>);
static_assert(!std::is_convertible_v<std::uint64_t, Ticket>);

// Passed in registers, copied for nothing.
static_assert(sizeof(Nanos) == 8 && std::is_trivially_copyable_v<Nanos>);
static_assert(sizeof(ReplicaId) == 8 && std::is_trivially_copyable_v<ReplicaId>);
static_assert(sizeof(Ticket) == 8 && sizeof(BlockHash) == 8 && sizeof(SequenceHash) == 8);

TEST(Quantity, StartsAtZeroAndAddsUpInItsUnit) {
  constexpr Tokens none;
  EXPECT_EQ(none.value, 0);
  Tokens sum = Tokens{40} + Tokens{2};
  EXPECT_EQ(sum, Tokens{42});
  EXPECT_EQ(sum - Tokens{50}, Tokens{-8}) << "a difference may be negative";
  EXPECT_EQ(sum * 3, Tokens{126});
  sum += Tokens{8};
  sum -= Tokens{20};
  EXPECT_EQ(sum, Tokens{30});
  EXPECT_EQ(&(sum += Tokens{1}), &sum);
}

TEST(Quantity, OrdersLikeItsNumbers) {
  EXPECT_LT(Nanos{-1}, Nanos{0});
  EXPECT_LE(Nanos{7}, Nanos{7});
  EXPECT_GT(Nanos{std::numeric_limits<std::int64_t>::max()}, Nanos{std::numeric_limits<std::int64_t>::min()});
  EXPECT_NE(Tokens{1}, Tokens{2});
}

TEST(Nanos, AreMadeFromLargerUnits) {
  EXPECT_EQ(microseconds(3).value, 3'000);
  EXPECT_EQ(milliseconds(-2).value, -2'000'000);
  EXPECT_EQ(seconds(1), milliseconds(1'000));
  EXPECT_EQ(milliseconds(1), microseconds(1'000));
  EXPECT_EQ(seconds(9'000'000'000).value, 9'000'000'000'000'000'000) << "285 years fit";
}

TEST(Hashes, KeepAll64Bits) {
  constexpr std::uint64_t bits = 0xfedc'ba98'7654'3210u;
  EXPECT_EQ(to_u64(BlockHash{bits}), bits);
  EXPECT_EQ(to_u64(SequenceHash{~bits}), ~bits);
}

TEST(Tier, NumbersAreDenseAndCounted) {
  EXPECT_EQ(static_cast<int>(Tier::device), 0);
  EXPECT_EQ(static_cast<int>(Tier::host), 1);
  EXPECT_EQ(static_cast<int>(Tier::disk), 2);
  EXPECT_EQ(kTierCount, 3u);
}

TEST(ReplicaId, IsInvalidUntilItIsGiven) {
  EXPECT_FALSE(ReplicaId{}.valid());
  EXPECT_FALSE(kNoReplica.valid());
  EXPECT_EQ(kNoReplica, ReplicaId{});
  EXPECT_TRUE((ReplicaId{0, 0}.valid()));
}

TEST(ReplicaId, TellsTheTenantsOfASlotApart) {
  const ReplicaId first{3, 1};
  const ReplicaId second{3, 2};
  EXPECT_NE(first, second);
  EXPECT_EQ((std::set<ReplicaId>{first, second, first}.size()), 2u);
  EXPECT_LT((ReplicaId{2, 9}), first) << "ordered by slot";
}

}  // namespace
}  // namespace warmroute
