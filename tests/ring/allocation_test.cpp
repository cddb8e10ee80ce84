/// Look-ups must not allocate, however long they walk: this program's operator new counts.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>

#include "ring/naive_ring.hpp"
#include "warmroute/ring/load_bound.hpp"

namespace {
thread_local std::size_t allocations = 0;
}  // namespace

// Not inlined: g++ 12 would take free for a mismatch of a new that it did not inline.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

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
  const std::size_t before = allocations;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t key = i * 0x9E3779B97F4A7C15U;
    sum += ring.home(key) + ring.successors(key, few) + ring.successors(key, all);
    sum += bounded_pick(ring, key, clockwise, 1, 5, full).probes;
    sum += bounded_pick(ring, key, permuted, 1, 5, full).probes;
    sum += bounded_pick_among(ring, key, clockwise, 1, full, even).member;
  }
  const std::size_t after = allocations;
  EXPECT_EQ(after, before);
  EXPECT_GT(sum, 0U);
  const std::size_t counted = allocations;  // and the counter counts:
  const Members some = fleet(3);
  EXPECT_GT(allocations, counted) << some.size();
}

}  // namespace
}  // namespace warmroute
