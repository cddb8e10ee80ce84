/// How far two runs of block hashes agree, with the widest vectors this CPU has.
/// A hot look-up is little more than this: 5 KB of hashes per 10,000 tokens. The kernel is chosen once per owner
/// (`common_prefix_kernel`), because the library is built for the baseline CPU. Does not: touch memory beyond `count`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "warmroute/types.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define WARMROUTE_X86_KERNELS 1
#else
#define WARMROUTE_X86_KERNELS 0
#endif

namespace warmroute::detail {

/// returns: the number of leading elements that are equal, at most `count`.
using CommonPrefix = std::size_t (*)(const BlockHash* a, const BlockHash* b, std::size_t count) noexcept;

/// Four at a time: one branch per 32 bytes, 140 ns for 625 equal blocks.
inline std::size_t common_prefix_portable(const BlockHash* a, const BlockHash* b, std::size_t count) noexcept {
  const auto differing = [a, b](std::size_t i) { return to_u64(a[i]) ^ to_u64(b[i]); };
  std::size_t i = 0;
  while (i + 4 <= count && (differing(i) | differing(i + 1) | differing(i + 2) | differing(i + 3)) == 0) i += 4;
  while (i < count && a[i] == b[i]) ++i;
  return i;
}

#if WARMROUTE_X86_KERNELS
// The compiler's own vectors: <immintrin.h> alone is 36,000 preprocessed lines and a quarter of the time to compile a file
// that includes warmroute; the loops cost the same (46 ns for 625 equal blocks either way).
typedef long long Lanes4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long Lanes8 __attribute__((vector_size(64), aligned(8), may_alias));

// A mismatch inside a group of vectors is located by the narrow loop behind; it happens at most once per call.
__attribute__((target("avx2"))) inline std::size_t common_prefix_avx2(const BlockHash* a, const BlockHash* b,
                                                                      std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const Lanes4* x = reinterpret_cast<const Lanes4*>(a + i);
    const Lanes4* y = reinterpret_cast<const Lanes4*>(b + i);
    const Lanes4 differing = (x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]);
    if (__builtin_ia32_ptestz256(differing, differing) == 0) break;
  }
  while (i < count && a[i] == b[i]) ++i;
  return i;
}

__attribute__((target("avx512f"))) inline std::size_t common_prefix_avx512(const BlockHash* a, const BlockHash* b,
                                                                           std::size_t count) noexcept {
  std::size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const Lanes8* x = reinterpret_cast<const Lanes8*>(a + i);
    const Lanes8* y = reinterpret_cast<const Lanes8*>(b + i);
    const Lanes8 differing = (x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3]);
    const Lanes4 half = __builtin_shufflevector(differing, differing, 0, 1, 2, 3) |
                        __builtin_shufflevector(differing, differing, 4, 5, 6, 7);
    if (__builtin_ia32_ptestz256(half, half) == 0) break;
  }
  while (i < count && a[i] == b[i]) ++i;
  return i;
}
#endif

/// returns: the fastest kernel this CPU runs. cost: a few loads; keep the result. threads: any.
inline CommonPrefix common_prefix_kernel() noexcept {
#if WARMROUTE_X86_KERNELS
  if (__builtin_cpu_supports("avx512f")) return common_prefix_avx512;
  if (__builtin_cpu_supports("avx2")) return common_prefix_avx2;
#endif
  return common_prefix_portable;
}

}  // namespace warmroute::detail
