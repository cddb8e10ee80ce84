// Look-ups must not allocate, however long they walk: this program's operator new counts.
#include <gtest/gtest.h>

#include <array>

#include "ring/naive_ring.hpp"
#include "support/counting_new.hpp"
#include "warmroute/ring/load_bound.hpp"

namespace warmroute {
namespace {

using namespace test;

TEST(RingLookUps, AllocateNothing) {
  const HashRing ring = ring_of(fleet(100));
  std::array<std::uint32_t, 4> few{};
  std::array<std::uint32_t, 100> all{};
  const LoadBound clockwise;
  const LoadBound permuted{.order = SpillOrder::permuted};
  const auto full = [](std::uint32_t) { return std::int64_t{1000}; };
  const auto even = [](std::uint32_t member) { return member % 2 == 0; };
  std::uint64_t sum = 0;
  const std::size_t before = allocations();
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t key = i * 0x9E3779B97F4A7C15U;
    sum += ring.home(key) + ring.successors(key, few) + ring.successors(key, all);
    sum += bounded_pick(ring, key, clockwise, 1, 5, full).probes;
    sum += bounded_pick(ring, key, permuted, 1, 5, full).probes;
    sum += bounded_pick_among(ring, key, clockwise, 1, full, even).member;
  }
  const std::size_t after = allocations();
  EXPECT_EQ(after, before);
  EXPECT_GT(sum, 0U);
  const std::size_t counted = allocations();  // and the counter counts:
  const Members some = fleet(3);
  EXPECT_GT(allocations(), counted) << some.size();
}

}  // namespace
}  // namespace warmroute
