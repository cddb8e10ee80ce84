/// The blocks that one replica is believed to hold, as a value: taken from a Residency, put back into another one.
/// Runs of blocks that were used last at the same moment, most recently used first. A block is used whenever one behind it is, so this
/// order also puts every run behind the run that it continues, and the order itself is the LRU order: nothing else is stored.
/// Does not: share anything with the cache it was taken from. Its hashes are not keyed: it stays within the process
/// (route/cache_export.hpp encrypts it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "warmroute/types.hpp"

namespace warmroute {

inline constexpr std::uint32_t kNoParentRun = std::numeric_limits<std::uint32_t>::max();
/// Longest path that a tree may hold. units: blocks. As long as the longest that a router can be told to keep.
inline constexpr std::size_t kMaxCachedDepth = std::size_t{1} << 18;

struct CachedRun {
  std::uint32_t parent =
      kNoParentRun;  ///< index of the run that this one continues, below its own; kNoParentRun: from block 0
  std::uint32_t parent_end = 0;  ///< behind so many blocks of that run: 1..its count; 0 without a parent
  std::uint32_t count = 0;       ///< units: blocks, at least 1
  Nanos last_use{};              ///< on the clock of whoever it was taken from; never later than the run before
};

struct CachedTree {
  std::vector<CachedRun> runs;    ///< most recently used first
  std::vector<BlockHash> blocks;  ///< of all runs, in their order

  /// Drops all but so many blocks, least recently used first: what eviction down to that capacity would leave. The tree must be a valid one.
  void keep_newest(std::size_t most) {
    if (blocks.size() <= most) return;
    std::size_t left = most, run = 0;
    for (; left >= runs[run].count; ++run) left -= runs[run].count;
    runs[run].count =
        static_cast<std::uint32_t>(left);  // its head; nothing hangs behind the rest, or it would be newer
    runs.resize(left == 0 ? run : run + 1);
    blocks.resize(most);
  }
};

/// Paths from block 0 through a tree, and the check that there are any.
/// lifetime: `tree` must outlive this and stay as it is. alloc: 16 bytes per run.
class CachedPaths {
 public:
  explicit CachedPaths(const CachedTree& tree) : tree_(&tree) {
    if (tree.runs.size() >= kNoParentRun) return;
    places_.reserve(tree.runs.size());
    std::size_t first = 0;
    for (std::size_t i = 0; i < tree.runs.size(); ++i) {
      const CachedRun& run = tree.runs[i];
      std::size_t depth = 0;
      if (run.parent != kNoParentRun) {
        if (run.parent >= i || run.parent_end == 0 || run.parent_end > tree.runs[run.parent].count) return;
        depth = places_[run.parent].depth + run.parent_end;
      } else if (run.parent_end != 0) {
        return;
      }
      if (run.count == 0 || run.count > tree.blocks.size() - first || depth + run.count > kMaxCachedDepth) return;
      if (i != 0 && run.last_use > tree.runs[i - 1].last_use) return;
      places_.push_back({first, depth});
      first += run.count;
    }
    valid_ = first == tree.blocks.size();
  }

  /// returns: whether the tree is what its members' comments say. Only then may paths be asked for.
  [[nodiscard]] bool valid() const noexcept { return valid_; }
  /// returns: the blocks before run `i`, then the first `count` of its own. lifetime: until the next call. cost: its length.
  [[nodiscard]] std::span<const BlockHash> path(std::size_t i, std::size_t count) {
    path_.resize(places_[i].depth + count);
    while (true) {
      const auto* from = tree_->blocks.data() + places_[i].first;
      for (std::size_t b = 0; b < count; ++b) path_[places_[i].depth + b] = from[b];
      const CachedRun& run = tree_->runs[i];
      if (run.parent == kNoParentRun) return path_;
      i = run.parent;
      count = run.parent_end;
    }
  }

 private:
  struct Place {
    std::size_t first;  // of its blocks in tree.blocks
    std::size_t depth;  // blocks before it
  };
  const CachedTree* tree_;
  std::vector<Place> places_;
  std::vector<BlockHash> path_;
  bool valid_ = false;
};

}  // namespace warmroute
