#include "warmroute/prefix/detail/compare.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace warmroute::detail {
namespace {

std::vector<CommonPrefix> kernels() {
  std::vector<CommonPrefix> all{common_prefix_portable, common_prefix_kernel()};
#if WARMROUTE_X86_KERNELS
  if (__builtin_cpu_supports("avx2")) all.push_back(common_prefix_avx2);
  if (__builtin_cpu_supports("avx512f")) all.push_back(common_prefix_avx512);
#endif
  return all;
}

TEST(PrefixCompare, FindsTheFirstDifferenceAtEveryLengthAndPlace) {
  for (const auto kernel : kernels()) {
    for (std::size_t count = 0; count < 140; ++count) {
      std::vector<BlockHash> a(count), b;
      for (std::size_t i = 0; i < count; ++i) a[i] = BlockHash{i * 0x9E3779B97F4A7C15ULL};
      b = a;
      ASSERT_EQ(kernel(a.data(), b.data(), count), count);
      for (std::size_t at = 0; at < count; ++at) {
        b[at] = BlockHash{to_u64(a[at]) ^ (at % 2 ? 1ULL << 63 : 1ULL)};  // one bit, in the upper or the lower half
        ASSERT_EQ(kernel(a.data(), b.data(), count), at) << count;
        b[at] = a[at];
      }
    }
  }
}

}  // namespace
}  // namespace warmroute::detail
