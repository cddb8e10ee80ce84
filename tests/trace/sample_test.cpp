#include "warmroute/trace/sample.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace warmroute::trace {
namespace {

TEST(Sample, TakesPercentilesByNearestRank) {
  const std::vector<int> five{15, 20, 35, 40, 50};
  const std::span<const int> values{five};
  EXPECT_EQ(percentile(values, 50), 15);
  EXPECT_EQ(percentile(values, 300), 20);
  EXPECT_EQ(percentile(values, 400), 20);
  EXPECT_EQ(percentile(values, 500), 35);
  EXPECT_EQ(percentile(values, 990), 50);
  EXPECT_EQ(percentile(values, 1000), 50);
  EXPECT_EQ(percentile(values, 0), 15);
  EXPECT_EQ(percentile(std::span<const int>{}, 500), 0);
}

TEST(Sample, GivesTheReferenceSequenceOfSplitMix64) {
  SplitMix64 random{1234567};  // reference values of the algorithm's C source
  EXPECT_EQ(random.next(), 6457827717110365317ULL);
  EXPECT_EQ(random.next(), 3203168211198807973ULL);
  EXPECT_EQ(random.next(), 9817491932198370423ULL);
}

TEST(Sample, DrawsExponentialVariatesOfMeanAndVarianceOne) {
  SplitMix64 random{7};
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0;
  int above_one = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.exponential();
    ASSERT_GE(x, 0.0);
    sum += x;
    squares += x * x;
    above_one += x > 1.0 ? 1 : 0;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 1.0, 0.01);
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.0, 0.03);
  EXPECT_NEAR(static_cast<double>(above_one) / kDraws, 0.36788, 0.005);
}

TEST(Sample, KeepsBoundedDrawsInside) {
  SplitMix64 random{3};
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 7'000; ++i) ++seen[static_cast<std::size_t>(random.between(10, 16) - 10)];
  for (const int count : seen) EXPECT_NEAR(count, 1'000, 150);
}

}  // namespace
}  // namespace warmroute::trace
