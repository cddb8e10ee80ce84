/// How far two runs of block hashes agree, with the widest vectors this CPU has.
/// A hot look-up is little more than this: 5 KB of hashes per 10,000 tokens. The kernel is chosen once per owner
/// (`common_prefix_kernel`), because the library is built for the baseline CPU. Does not: touch memory beyond `count`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "warmroute/types.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define WARMROUTE_X86_KERNELS 1
#include <immintrin.h>
#else
#define WARMROUTE_X86_KERNELS 0
#endif

namespace warmroute::detail {

/// returns: the number of leading elements that are equal, at most `count`.
using CommonPrefix = std::size_t (*)(const BlockHash* a, const BlockHash* b, std::size_t count) noexcept;

inline std::size_t common_prefix_portable(const BlockHash* a, const BlockHash* b, std::size_t count) noexcept {
  std::size_t i = 0;
  while (i < count && a[i] == b[i]) ++i;
  return i;
}

#if WARMROUTE_X86_KERNELS
// A mismatch inside a group of vectors is located by the narrow loop behind; it happens at most once per call.
inline std::size_t common_prefix_sse2(const BlockHash* a, const BlockHash* b, std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const auto load = [](const BlockHash* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
    const __m128i low = _mm_cmpeq_epi32(load(a + i), load(b + i));
    const __m128i high = _mm_cmpeq_epi32(load(a + i + 2), load(b + i + 2));
    if (_mm_movemask_epi8(_mm_and_si128(low, high)) != 0xFFFF) break;
  }
  while (i < count && a[i] == b[i]) ++i;
  return i;
}

__attribute__((target("avx2"))) inline std::size_t common_prefix_avx2(const BlockHash* a, const BlockHash* b,
                                                                      std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    __m256i differing = _mm256_setzero_si256();
    for (std::size_t k = 0; k < 16; k += 4) {
      differing = _mm256_or_si256(differing, _mm256_xor_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i + k)),
                                                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i + k))));
    }
    if (!_mm256_testz_si256(differing, differing)) break;
  }
  for (; i + 4 <= count; i += 4) {
    const __m256i equal = _mm256_cmpeq_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i)),
                                             _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + i)));
    const auto mask = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
    if (mask != 0xF) return i + static_cast<std::size_t>(std::countr_one(mask));
  }
  while (i < count && a[i] == b[i]) ++i;
  return i;
}

__attribute__((target("avx512f"))) inline std::size_t common_prefix_avx512(const BlockHash* a, const BlockHash* b,
                                                                           std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    __m512i differing = _mm512_setzero_si512();
    for (std::size_t k = 0; k < 32; k += 8) {  // 0xBE: c | (a ^ b)
      differing = _mm512_ternarylogic_epi64(_mm512_loadu_si512(a + i + k), _mm512_loadu_si512(b + i + k), differing, 0xBE);
    }
    if (_mm512_test_epi64_mask(differing, differing) != 0) break;
  }
  for (; i < count; i += 8) {
    const std::size_t left = count - i;
    const auto lanes = static_cast<__mmask8>(left >= 8 ? 0xFFU : (1U << left) - 1U);
    const auto unequal = static_cast<unsigned>(_mm512_mask_cmpneq_epi64_mask(
        lanes, _mm512_maskz_loadu_epi64(lanes, a + i), _mm512_maskz_loadu_epi64(lanes, b + i)));
    if (unequal != 0) return i + static_cast<std::size_t>(std::countr_zero(unequal));
  }
  return count;
}
#endif

/// returns: the fastest kernel this CPU runs. cost: a few loads; keep the result. threads: any.
inline CommonPrefix common_prefix_kernel() noexcept {
#if WARMROUTE_X86_KERNELS
  if (__builtin_cpu_supports("avx512f")) return common_prefix_avx512;
  if (__builtin_cpu_supports("avx2")) return common_prefix_avx2;
  return common_prefix_sse2;
#else
  return common_prefix_portable;
#endif
}

}  // namespace warmroute::detail
