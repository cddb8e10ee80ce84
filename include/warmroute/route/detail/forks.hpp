/// Where many prompts part: prefixes that are followed by many different blocks, as a system prompt is. Counted from this router's own
/// traffic: a prompt whose longest known prefix ends before it does adds one successor there. So the key of a prompt on the ring can begin
/// just behind the deepest such place on its way, where prompts of one conversation agree and those of others do not.
/// A fixed table; the entry that was counted least gives way, nothing grows. threads: any, lock-free; a lost count is one successor less.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "warmroute/types.hpp"

namespace warmroute::detail {

class ForkTable {
 public:
  /// alloc: 132 KiB, once.
  ForkTable()
      : table_(std::make_unique<Entry[]>(kEntries)), depths_(std::make_unique<std::atomic<std::uint64_t>[]>(kWords)) {}

  /// The prompt's first `depth` blocks were known, the next one was not. `from` successors on it is a fork.
  void note(std::span<const BlockHash> path, std::size_t depth, std::uint32_t from) noexcept {
    if (depth == 0 || depth >= path.size() || depth >= kDepths) return;
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < depth; ++i) hash = step(hash, path[i]);
    Entry* least = nullptr;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      Entry& e = table_[(hash + probe) % kEntries];
      const std::uint64_t seen = e.load(std::memory_order_relaxed);
      if ((seen & kTag) == (hash & kTag)) {
        const std::uint64_t count = seen & kCount;
        if (count != kCount) e.store(seen + 1, std::memory_order_relaxed);
        if (count + 1 >= from)
          depths_[depth / 64].fetch_or(std::uint64_t{1} << (depth % 64), std::memory_order_relaxed);
        return;
      }
      if (least == nullptr || (seen & kCount) < (least->load(std::memory_order_relaxed) & kCount)) least = &e;
    }
    const std::uint64_t old = least->load(std::memory_order_relaxed) & kCount;
    // One who comes takes a count from the least before it takes its place: what is common outlives what came once.
    least->store(old > 1 ? least->load(std::memory_order_relaxed) - 1 : (hash & kTag) | 1, std::memory_order_relaxed);
  }

  /// returns: the deepest prefix of the path with at least `from` successors, in blocks; 0: none. cost: a multiplication per block.
  [[nodiscard]] std::size_t deepest(std::span<const BlockHash> path, std::uint32_t from) const noexcept {
    std::size_t found = 0;
    std::uint64_t hash = 0;
    const std::size_t end = path.size() < kDepths ? path.size() : kDepths - 1;
    for (std::size_t depth = 1; depth <= end; ++depth) {
      hash = step(hash, path[depth - 1]);
      if ((depths_[depth / 64].load(std::memory_order_relaxed) >> (depth % 64) & 1) == 0) continue;
      for (std::size_t probe = 0; probe < kProbes; ++probe) {
        const std::uint64_t seen = table_[(hash + probe) % kEntries].load(std::memory_order_relaxed);
        if ((seen & kTag) != (hash & kTag)) continue;
        if ((seen & kCount) >= from) found = depth;
        break;
      }
    }
    return found;
  }

 private:
  using Entry = std::atomic<std::uint64_t>;
  static constexpr std::size_t kEntries = 16'384, kProbes = 4, kDepths = 32'768, kWords = kDepths / 64;
  static constexpr std::uint64_t kCount = 0xFFFF, kTag = ~kCount;
  static std::uint64_t step(std::uint64_t hash, BlockHash block) noexcept {
    const std::uint64_t mixed = (hash ^ to_u64(block)) * 0x9E37'79B9'7F4A'7C15ULL;
    return mixed ^ mixed >> 29;
  }

  std::unique_ptr<Entry[]> table_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> depths_;
};

}  // namespace warmroute::detail
