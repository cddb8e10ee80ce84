/// LruTree::copy: the tree as runs of equal last use, for a restart (see prefix/cached_tree.hpp).
/// Cost: one pass over segments and blocks; finding the segment that a run hangs on is a binary search, so many branches off one
/// long run do not make it quadratic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "warmroute/prefix/cached_tree.hpp"
#include "warmroute/prefix/detail/lru_tree.hpp"

namespace warmroute::detail {

inline void LruTree::copy(CachedTree& out) const {
  std::vector<Index> turn(segments_.size(), kNone);  // of each segment, in the order of `out.runs`
  Index count = 0;
  for (Index s = segments_[0].older; s != 0; s = segments_[s].older) turn[s] = count++;
  // the segments of each run together, shallowest first; only the list tells which nodes are in use
  std::vector<Index> by_node, first_of(nodes_.size(), 0), end_of(nodes_.size(), 0);
  by_node.reserve(count);
  for (Index s = segments_[0].older; s != 0; s = segments_[s].older) {
    if (segments_[s].shallower != kNone) continue;
    first_of[segments_[s].node] = static_cast<Index>(by_node.size());
    for (Index d = s; d != kNone; d = segments_[d].deeper) by_node.push_back(d);
    end_of[segments_[s].node] = static_cast<Index>(by_node.size());
  }
  const auto start_of = [this](const Segment& s) { return s.shallower == kNone ? 0 : segments_[s.shallower].end; };

  out.runs.clear();
  out.blocks.clear();
  out.runs.reserve(count);
  out.blocks.reserve(blocks_);
  for (Index s = segments_[0].older; s != 0; s = segments_[s].older) {
    const Segment& segment = segments_[s];
    const Node& node = nodes_[segment.node];
    const std::uint32_t start = start_of(segment);
    CachedRun run{.count = segment.end - start, .last_use = segment.touched};
    if (start != 0) {
      run.parent = turn[segment.shallower];
      run.parent_end = start - start_of(segments_[segment.shallower]);
    } else if (node.parent != 0) {
      const Index parent =
          *std::lower_bound(by_node.begin() + first_of[node.parent], by_node.begin() + end_of[node.parent], node.offset,
                            [this](Index a, std::uint32_t offset) { return segments_[a].end < offset; });
      run.parent = turn[parent];
      run.parent_end = node.offset - start_of(segments_[parent]);
    }
    out.runs.push_back(run);
    out.blocks.insert(out.blocks.end(), node.run.begin() + start, node.run.begin() + segment.end);
  }
}

}  // namespace warmroute::detail
