/// How many requests in flight contain a given prefix: the count p of the hot rebate.
/// Counted at checkpoints only: every block up to depth 8, then four per doubling of the depth, so a prompt of 8,192 blocks
/// has 48. Counts fall along a chain, so a look-up ends at the first checkpoint with fewer than two.
/// Invariant: an entry with a count above 0 keeps its key; a leaver decrements exactly the entry it entered.
/// Does not: count when its neighbourhood of the table is full (then the rebate is smaller, nothing else).
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

inline constexpr std::size_t kMaxCheckpoints = 72;  // 8 + 4 per octave covers 2^18 blocks

/// returns: the next checkpoint's depth in blocks behind `depth`; 1, 2, ... 8, 10, ... 16, 20, ...
constexpr std::size_t next_checkpoint(std::size_t depth) noexcept {
  const std::size_t step = std::bit_floor(depth) / 4;
  return depth + (step == 0 ? 1 : step);
}

class InflightPrefixes {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// `entries` is rounded up to a power of two. alloc: 8 bytes each, once.
  explicit InflightPrefixes(std::size_t entries = 1u << 16)
      : mask_(std::bit_ceil(entries) - 1), table_(std::make_unique<std::atomic<std::uint64_t>[]>(mask_ + 1)) {}

  /// Walks the checkpoints of a chain. `hash` starts at 0 and identifies all blocks before `depth`.
  struct Cursor {
    std::size_t depth = 0;
    std::uint64_t hash = 0;
    /// returns: false when no whole checkpoint is left.
    bool next(std::span<const BlockHash> path) noexcept {
      const std::size_t to = next_checkpoint(depth);
      if (to > path.size()) return false;
      hash = XXH3_64bits_withSeed(path.data() + depth, (to - depth) * sizeof(BlockHash), hash);
      depth = to;
      return true;
    }
  };

  /// Counts one request in. returns: the entry to leave with, kNone when it was not counted. `others` is set when
  /// another request was counted there already. threads: any.
  std::uint32_t enter(std::uint64_t hash, bool& others) noexcept {
    others = false;
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      const auto at = static_cast<std::uint32_t>((hash + probe) & mask_);
      std::uint64_t seen = table_[at].load(std::memory_order_relaxed);
      while (true) {
        const bool ours = (seen & kTagMask) == (hash & kTagMask);
        if (!ours && (seen & kCountMask) != 0) break;  // somebody else's
        if ((seen & kCountMask) == kCountMask) return kNone;
        const std::uint64_t next = ours ? seen + 1 : (hash & kTagMask) | 1;
        if (table_[at].compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
          others = (next & kCountMask) > 1;
          return at;
        }
      }
    }
    return kNone;
  }
  /// threads: any. `entry` comes from `enter` and is used once.
  void leave(std::uint32_t entry) noexcept {
    if (entry != kNone) table_[entry].fetch_sub(1, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t count(std::uint64_t hash) const noexcept {
    std::int64_t found = 0;
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
      const std::uint64_t seen = table_[(hash + probe) & mask_].load(std::memory_order_relaxed);
      if ((seen & kTagMask) == (hash & kTagMask)) found += static_cast<std::int64_t>(seen & kCountMask);
    }
    return found;  // two racing first enterers may hold two entries: both count
  }

 private:
  static constexpr std::uint32_t kProbes = 8;
  static constexpr std::uint64_t kCountMask = 0xFFFF;
  static constexpr std::uint64_t kTagMask = ~kCountMask;
  std::size_t mask_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> table_;
};

}  // namespace warmroute::detail
