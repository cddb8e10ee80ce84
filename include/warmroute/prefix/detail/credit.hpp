/// How a look-up credits the holders of one node: depth[slot] is base + min(cut-off, matched) for every slot that held everything
/// before, that is, whose depth is `base` so far. The array of depths is at once the set of replicas still in the race, so no
/// other set is kept. Dense holders are credited 16 at a time, sparse ones one by one.
/// Does not: write anything but the caller's depths.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "warmroute/prefix/detail/node.hpp"

// ThreadSanitizer sees a vector load as a plain load beside the writer's atomic 16-bit stores; under it the portable loop runs.
#if defined(__SANITIZE_THREAD__)
#define WARMROUTE_VECTOR_CREDIT 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WARMROUTE_VECTOR_CREDIT 0
#endif
#endif
#ifndef WARMROUTE_VECTOR_CREDIT
#define WARMROUTE_VECTOR_CREDIT WARMROUTE_X86_KERNELS
#endif

namespace warmroute::detail {

/// Credits `lanes` (a multiple of 16) neighbouring slots. returns: whether any of them holds all `matched` blocks.
using CreditLanes = bool (*)(const Holders::Lane* ends, std::uint32_t lanes, std::uint32_t* depth, std::uint32_t base,
                             std::uint32_t matched) noexcept;

inline bool credit_lanes_portable(const Holders::Lane* ends, std::uint32_t lanes, std::uint32_t* depth,
                                  std::uint32_t base, std::uint32_t matched) noexcept {
  bool through = false;
  for (std::uint32_t i = 0; i < lanes; ++i) {
    const std::uint32_t end = ends[i].load(std::memory_order_relaxed);
    if (depth[i] != base) continue;
    depth[i] = base + (end < matched ? end : matched);
    through |= end >= matched;
  }
  return through;
}

#if WARMROUTE_VECTOR_CREDIT
// The lanes are atomics of 16 bits; x86 never tears an aligned 16-bit part of a vector load.
typedef unsigned short Ends16 __attribute__((vector_size(32), aligned(2), may_alias));
typedef unsigned short Ends8 __attribute__((vector_size(16), aligned(2), may_alias));
typedef unsigned Depths16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef unsigned Depths8 __attribute__((vector_size(32), aligned(4), may_alias));

__attribute__((target("avx2"))) inline bool credit_lanes_avx2(const Holders::Lane* ends, std::uint32_t lanes,
                                                              std::uint32_t* depth, std::uint32_t base,
                                                              std::uint32_t matched) noexcept {
  const Depths8 bases = Depths8{} + base, most = Depths8{} + matched;
  Depths8 through{};
  for (std::uint32_t i = 0; i < lanes; i += 8) {
    const Depths8 end = __builtin_convertvector(*reinterpret_cast<const Ends8*>(ends + i), Depths8);
    const Depths8 full = reinterpret_cast<Depths8>(end >= most);
    Depths8* d = reinterpret_cast<Depths8*>(depth + i);
    const Depths8 active = reinterpret_cast<Depths8>(*d == bases);
    *d += active & ((most & full) | (end & ~full));
    through |= active & full;
  }
  typedef long long Wide __attribute__((vector_size(32)));
  const Wide w = reinterpret_cast<Wide>(through);
  return __builtin_ia32_ptestz256(w, w) == 0;
}

__attribute__((target("avx512f"))) inline bool credit_lanes_avx512(const Holders::Lane* ends, std::uint32_t lanes,
                                                                   std::uint32_t* depth, std::uint32_t base,
                                                                   std::uint32_t matched) noexcept {
  const Depths16 bases = Depths16{} + base, most = Depths16{} + matched;
  Depths16 through{};
  for (std::uint32_t i = 0; i < lanes; i += 16) {
    const Depths16 end = __builtin_convertvector(*reinterpret_cast<const Ends16*>(ends + i), Depths16);
    const Depths16 full = reinterpret_cast<Depths16>(end >= most);
    Depths16* d = reinterpret_cast<Depths16*>(depth + i);
    const Depths16 active = reinterpret_cast<Depths16>(*d == bases);
    *d += active & ((most & full) | (end & ~full));
    through |= active & full;
  }
  typedef long long Wide __attribute__((vector_size(64)));
  typedef long long Half __attribute__((vector_size(32)));
  const Wide w = reinterpret_cast<Wide>(through);
  const Half h = __builtin_shufflevector(w, w, 0, 1, 2, 3) | __builtin_shufflevector(w, w, 4, 5, 6, 7);
  return __builtin_ia32_ptestz256(h, h) == 0;
}
#endif

inline CreditLanes credit_lanes_kernel() noexcept {
#if WARMROUTE_VECTOR_CREDIT
  if (__builtin_cpu_supports("avx512f")) return credit_lanes_avx512;
  if (__builtin_cpu_supports("avx2")) return credit_lanes_avx2;
#endif
  return credit_lanes_portable;
}

/// Calls visit(slot) for every slot that the node names, or whose window covers it.
template <class Visit>
void for_each_slot(const Node& node, Visit&& visit) {
  const Holders* more = node.holders.load(std::memory_order_acquire);
  if (more != nullptr && more->planes != 0) {
    for (std::uint32_t i = 0; i < more->capacity; ++i) visit(more->first + i);
    return;
  }
  const Holders::Word* words = more != nullptr ? more->words() : node.few;
  const std::size_t count = more != nullptr ? more->capacity : Node::kFew;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = words[i].load(std::memory_order_relaxed);
    if (word != 0) visit(static_cast<std::uint32_t>(word & 0xFFFF));
  }
}

/// When each slot was cleared last, counted in clears of the index; null where no clear can matter.
using ClearedAt = const std::atomic<std::uint32_t>*;

/// What one look-up knows while it walks.
struct Credit {
  CreditLanes lanes;
  ClearedAt cleared_at;  ///< shape: one per slot

  /// Credits the holders of `node` on one cumulated tier. `clears`: the node's own count, read before; `stale`: whether the index has seen
  /// more. returns: whether any replica in the race holds all `matched` blocks.
  bool operator()(const Node& node, unsigned tier, std::uint32_t* depth, std::uint32_t base, std::uint32_t matched,
                  std::uint32_t clears, bool stale) const noexcept {
    const Holders* more = node.holders.load(std::memory_order_acquire);
    if (more != nullptr && more->planes != 0) {
      const Holders::Lane* ends = more->plane(tier);
      if (!stale) return lanes(ends, more->capacity, depth + more->first, base, matched);
      bool through = false;
      for (std::uint32_t i = 0; i < more->capacity; ++i) {
        through |= one(more->first + i, ends[i].load(std::memory_order_relaxed), depth, base, matched, clears, true);
      }
      return through;
    }
    const Holders::Word* words = more != nullptr ? more->words() : node.few;
    const std::size_t count = more != nullptr ? more->capacity : Node::kFew;
    bool through = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t word = words[i].load(std::memory_order_relaxed);
      through |= one(static_cast<std::uint32_t>(word & 0xFFFF), static_cast<std::uint16_t>(word >> (16 + 16 * tier)),
                     depth, base, matched, clears, stale);
    }
    return through;
  }

  /// Calls touch(first slot, count) for the slots whose depths this node may change.
  template <class Touch>
  static void touched(const Node& node, Touch&& touch) noexcept {
    const Holders* more = node.holders.load(std::memory_order_acquire);
    if (more != nullptr && more->planes != 0) return touch(more->first, more->capacity);
    for_each_slot(node, [&](std::uint32_t slot) { touch(slot, 1); });
  }

  /// Takes back what the node credited beyond `base`; nothing deeper was credited yet.
  static void undo(const Node& node, std::uint32_t* depth, std::uint32_t base) noexcept {
    for_each_slot(node, [&](std::uint32_t slot) {
      if (depth[slot] > base) depth[slot] = base;
    });
  }

 private:
  /// A free word is slot 0 with cut-off 0: it credits nothing.
  bool one(std::uint32_t slot, std::uint32_t end, std::uint32_t* depth, std::uint32_t base, std::uint32_t matched,
           std::uint32_t clears, bool stale) const noexcept {
    if (depth[slot] != base || end == 0) return false;
    if (stale && cleared_at[slot].load(std::memory_order_relaxed) > clears) return false;
    depth[slot] = base + (end < matched ? end : matched);
    return end >= matched;
  }
};

}  // namespace warmroute::detail
