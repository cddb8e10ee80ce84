/// A radix tree of block runs under exact leaf-first LRU, for one replica (see prefix/residency.hpp).
/// A run is never split: a path that diverges inside a run hangs its own node at that offset. Recency along a path can only
/// fall with depth, so a run is cut into a few segments of equal recency, and ALL segments of the tree form one list in order of
/// their last touch, deeper before shallower within one touch. The list's old end is therefore always a leaf: eviction needs no search.
/// Cost: touching a path costs its nodes and the segments it unites, not its blocks beyond comparing them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "warmroute/prefix/detail/compare.hpp"
#include "warmroute/types.hpp"

namespace warmroute {
struct CachedTree;
}

namespace warmroute::detail {

class LruTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = std::numeric_limits<Index>::max();

  LruTree() { clear(); }

  /// Touches what is there of `path`, adds the rest. returns: how many blocks were there.
  std::size_t insert(std::span<const BlockHash> path, Nanos now) {
    const std::size_t known = walk(path);
    if (known < path.size()) extend(path, known);
    // deepest first: within one touch the shallower block must outlive the deeper one
    for (std::size_t i = stack_.size(); i-- > 0;) touch(stack_[i].node, stack_[i].end, now);
    return known;
  }

  /// returns: leading blocks of `path` that are there. Touches nothing.
  [[nodiscard]] std::size_t held(std::span<const BlockHash> path) const {
    std::size_t done = 0;
    for (Step at{0, 0}; done < path.size();) {
      const Index child = find_child(at.node, at.end, path[done]);
      if (child == kNone) break;
      const auto& run = nodes_[child].run;
      const std::size_t equal = compare_(run.data(), path.data() + done, std::min(run.size(), path.size() - done));
      done += equal;
      at = {child, static_cast<std::uint32_t>(equal)};
    }
    return done;
  }

  /// Gives up at most `limit` blocks of the segment touched longest ago. Calls gone(path, first): blocks [first, path.size()) go.
  /// returns: how many; 0 when the tree is empty.
  template <class Gone>
  std::size_t evict(std::size_t limit, Gone&& gone) {
    const Index oldest = segments_[0].newer;
    if (oldest == 0 || limit == 0) return 0;
    const Segment& segment = segments_[oldest];
    const Index node = segment.node;
    const std::uint32_t start = segment.shallower == kNone ? 0 : segments_[segment.shallower].end;
    const std::uint32_t keep = segment.end - start > limit ? segment.end - static_cast<std::uint32_t>(limit) : start;
    const std::size_t count = segment.end - keep;
    const Index parent = nodes_[node].parent;
    cut(node, keep, gone);
    take_in_only_child(keep == 0 ? parent : node);
    return count;
  }

  /// Drops block path[keep] and everything below it, where it is there. returns: blocks dropped.
  template <class Gone>
  std::size_t truncate(std::span<const BlockHash> path, std::size_t keep, Gone&& gone) {
    if (keep >= path.size() || walk(path.first(keep + 1)) <= keep) return 0;
    const std::size_t before = blocks_;
    const Index node = stack_.back().node, parent = nodes_[node].parent;
    const std::uint32_t end = stack_.back().end - 1;
    cut_with_subtree(node, end, gone);
    take_in_only_child(end == 0 ? parent : node);
    return before - blocks_;
  }

  void clear() {
    nodes_.assign(1, Node{});
    segments_.assign(1, Segment{});
    segments_[0].newer = segments_[0].older = 0;
    slots_.assign(16, kNone);
    free_node_ = free_segment_ = kNone;
    children_ = blocks_ = 0;
  }

  /// Everything, most recently used first (prefix/detail/lru_copy.hpp).
  void copy(CachedTree& out) const;

  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] bool empty() const noexcept { return segments_[0].newer == 0; }
  /// When the block that would be evicted next was touched last. Only if not empty().
  [[nodiscard]] Nanos oldest() const noexcept { return segments_[segments_[0].newer].touched; }

 private:
  /// Blocks [end of shallower, end) of a node's run, touched last by the same insert. Entry 0 is the list's head.
  struct Segment {
    Index node = 0;
    std::uint32_t end = 0;
    Index shallower = kNone, deeper = kNone;  // within the run
    Index newer = 0, older = 0;               // over the whole tree
    Nanos touched{};
  };
  /// A run that continues its parent's run at `offset`. Node 0 is the root and has no run.
  struct Node {
    std::vector<BlockHash> run;
    Index parent = kNone;
    std::uint32_t offset = 0;
    std::uint32_t base = 0;  // blocks before this run
    Index first_child = kNone, next_sibling = kNone, previous_sibling = kNone;
    Index first_segment = kNone, last_segment = kNone;
  };
  struct Step {
    Index node;
    std::uint32_t end;  // how much of the run the path covers
  };

  // --- the path -----------------------------------------------------------------------------------------------
  std::size_t walk(std::span<const BlockHash> path) {
    stack_.clear();
    std::size_t done = 0;
    Step at{0, 0};
    while (done < path.size()) {
      const Index child = find_child(at.node, at.end, path[done]);
      if (child == kNone) break;
      const auto& run = nodes_[child].run;
      const std::size_t equal = compare_(run.data(), path.data() + done, std::min(run.size(), path.size() - done));
      done += equal;
      at = {child, static_cast<std::uint32_t>(equal)};
      stack_.push_back(at);
    }
    return done;
  }

  void extend(std::span<const BlockHash> path, std::size_t known) {
    const auto rest = path.subspan(known);
    if (!stack_.empty() && stack_.back().end == nodes_[stack_.back().node].run.size()) {
      auto& run = nodes_[stack_.back().node].run;
      run.insert(run.end(), rest.begin(), rest.end());
      stack_.back().end = static_cast<std::uint32_t>(run.size());
    } else {
      const Step at = stack_.empty() ? Step{0, 0} : stack_.back();
      const Index node = add_node(at.node, at.end, static_cast<std::uint32_t>(known));
      nodes_[node].run.assign(rest.begin(), rest.end());
      link_child(node);
      stack_.push_back({node, static_cast<std::uint32_t>(rest.size())});
    }
    blocks_ += rest.size();
  }

  void touch(Index node, std::uint32_t end, Nanos now) {
    Index first = nodes_[node].first_segment;
    while (first != kNone && segments_[first].end < end) {  // united into the one that reaches `end`
      const Index next = segments_[first].deeper;
      free_segment(first);
      first = next;
    }
    if (first == kNone || segments_[first].end != end) {
      const Index fresh = new_segment(node, end);
      segments_[fresh].deeper = first;
      if (first != kNone) segments_[first].shallower = fresh;
      else nodes_[node].last_segment = fresh;
      first = fresh;
    } else {
      unlink(first);
    }
    segments_[first].shallower = kNone;
    segments_[first].touched = now;
    nodes_[node].first_segment = first;
    link_newest(first);
  }

  // --- giving up ----------------------------------------------------------------------------------------------
  template <class Gone>
  void cut(Index node, std::uint32_t keep, Gone&& gone) {
    Node& n = nodes_[node];
    path_of(node, static_cast<std::uint32_t>(n.run.size()));
    gone(std::span<const BlockHash>(path_), std::size_t{n.base} + keep);
    blocks_ -= n.run.size() - keep;
    while (n.last_segment != kNone) {
      const Index last = n.last_segment;
      const Index before = segments_[last].shallower;
      if ((before == kNone ? 0 : segments_[before].end) < keep) {
        segments_[last].end = keep;
        break;
      }
      n.last_segment = before;
      if (before != kNone) segments_[before].deeper = kNone;
      else n.first_segment = kNone;
      free_segment(last);
    }
    if (keep == 0) {
      unlink_child(node);
      free_node(node);
      return;
    }
    n.run.resize(keep);
    if (n.run.capacity() > 64 && n.run.capacity() / 4 > n.run.size()) n.run.shrink_to_fit();
  }

  template <class Gone>
  void cut_with_subtree(Index node, std::uint32_t keep, Gone&& gone) {
    std::vector<Index> order;  // parents before children; a truncation is a rare repair, so it may allocate
    const auto push_children = [&](Index parent, std::uint32_t from) {
      for (Index c = nodes_[parent].first_child; c != kNone; c = nodes_[c].next_sibling) {
        if (nodes_[c].offset > from) order.push_back(c);
      }
    };
    push_children(node, keep);
    for (std::size_t i = 0; i < order.size(); ++i) push_children(order[i], 0);
    for (std::size_t i = order.size(); i-- > 0;) cut(order[i], 0, gone);
    cut(node, keep, gone);
  }

  /// A run whose own continuation went and that one child continues is one run again: a conversation whose every turn differs in its last
  /// blocks would else cost a step per turn.
  void take_in_only_child(Index node) {
    constexpr std::size_t kCheapCopy = 4096;
    const Index child = nodes_[node].first_child;
    if (node == 0 || child == kNone || nodes_[child].next_sibling != kNone) return;
    const auto joint = static_cast<std::uint32_t>(nodes_[node].run.size());
    if (nodes_[child].offset != joint || nodes_[child].run.size() > kCheapCopy) return;
    for (Index c = nodes_[child].first_child; c != kNone; c = nodes_[c].next_sibling) unlink_child(c);
    unlink_child(child);
    Node& n = nodes_[node];
    Node& below = nodes_[child];
    n.run.insert(n.run.end(), below.run.begin(), below.run.end());
    for (Index s = below.first_segment; s != kNone; s = segments_[s].deeper) {
      segments_[s].node = node;
      segments_[s].end += joint;
    }
    segments_[n.last_segment].deeper = below.first_segment;
    segments_[below.first_segment].shallower = n.last_segment;
    n.last_segment = below.last_segment;
    n.first_child = below.first_child;
    for (Index c = n.first_child; c != kNone; c = nodes_[c].next_sibling) {
      nodes_[c].parent = node;
      nodes_[c].offset += joint;
      link_child(c);
    }
    std::vector<BlockHash>().swap(below.run);
    below.next_sibling = free_node_;
    free_node_ = child;
  }

  void path_of(Index node, std::uint32_t end) {
    path_.resize(std::size_t{nodes_[node].base} + end);
    for (; node != 0; end = nodes_[node].offset, node = nodes_[node].parent) {
      const auto& n = nodes_[node];
      std::copy(n.run.begin(), n.run.begin() + end, path_.begin() + n.base);
    }
  }

  // --- nodes and their table: open addressing, linear probing, backward-shift deletion ----------------------------
  [[nodiscard]] std::size_t home(Index parent, std::uint32_t offset, BlockHash hash) const noexcept {
    const std::uint64_t key = to_u64(hash) ^ (std::uint64_t{parent} << 32 | offset) * 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>((key * 0xD6E8FEB86659FD93ULL) >> 32) & (slots_.size() - 1);
  }
  [[nodiscard]] Index find_child(Index parent, std::uint32_t offset, BlockHash hash) const noexcept {
    for (std::size_t i = home(parent, offset, hash);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i] == kNone) return kNone;
      const Node& n = nodes_[slots_[i]];
      if (n.parent == parent && n.offset == offset && n.run[0] == hash) return slots_[i];
    }
  }
  Index add_node(Index parent, std::uint32_t offset, std::uint32_t base) {
    Index node = free_node_;
    if (node != kNone) free_node_ = nodes_[node].next_sibling;
    else {
      node = static_cast<Index>(nodes_.size());
      nodes_.emplace_back();
    }
    Node& n = nodes_[node];
    n.parent = parent;
    n.offset = offset;
    n.base = base;
    n.first_child = n.first_segment = n.last_segment = n.previous_sibling = kNone;
    n.next_sibling = nodes_[parent].first_child;
    if (n.next_sibling != kNone) nodes_[n.next_sibling].previous_sibling = node;
    nodes_[parent].first_child = node;
    return node;
  }
  void link_child(Index node) {
    if ((++children_) * 2 > slots_.size()) {
      std::vector<Index> old(slots_.size() * 2, kNone);
      old.swap(slots_);
      for (const Index c : old) {
        if (c != kNone) place(c);
      }
    }
    place(node);
  }
  void place(Index node) {
    std::size_t i = home(nodes_[node].parent, nodes_[node].offset, nodes_[node].run[0]);
    while (slots_[i] != kNone) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = node;
  }
  void unlink_child(Index node) {
    const Node& n = nodes_[node];
    const std::size_t mask = slots_.size() - 1;
    std::size_t hole = home(n.parent, n.offset, n.run[0]);
    while (slots_[hole] != node) hole = (hole + 1) & mask;
    for (std::size_t i = (hole + 1) & mask; slots_[i] != kNone; i = (i + 1) & mask) {
      const Node& m = nodes_[slots_[i]];
      if (((i - home(m.parent, m.offset, m.run[0])) & mask) >= ((i - hole) & mask)) {
        slots_[hole] = slots_[i];
        hole = i;
      }
    }
    slots_[hole] = kNone;
    --children_;
  }
  void free_node(Index node) {
    Node& n = nodes_[node];
    if (n.previous_sibling != kNone) nodes_[n.previous_sibling].next_sibling = n.next_sibling;
    else nodes_[n.parent].first_child = n.next_sibling;
    if (n.next_sibling != kNone) nodes_[n.next_sibling].previous_sibling = n.previous_sibling;
    std::vector<BlockHash>().swap(n.run);
    n.next_sibling = free_node_;
    free_node_ = node;
  }

  // --- the list of segments -------------------------------------------------------------------------------------
  Index new_segment(Index node, std::uint32_t end) {
    Index s = free_segment_;
    if (s != kNone) free_segment_ = segments_[s].newer;
    else {
      s = static_cast<Index>(segments_.size());
      segments_.emplace_back();
    }
    segments_[s] = Segment{};
    segments_[s].node = node;
    segments_[s].end = end;
    return s;
  }
  void free_segment(Index s) {
    unlink(s);
    segments_[s].newer = free_segment_;
    free_segment_ = s;
  }
  void unlink(Index s) {
    segments_[segments_[s].older].newer = segments_[s].newer;
    segments_[segments_[s].newer].older = segments_[s].older;
  }
  void link_newest(Index s) {  // entry 0: newer = the oldest segment, older = the newest one
    segments_[s].older = segments_[0].older;
    segments_[s].newer = 0;
    segments_[segments_[0].older].newer = s;
    segments_[0].older = s;
  }

  CommonPrefix compare_ = common_prefix_kernel();
  std::vector<Node> nodes_;
  std::vector<Segment> segments_;
  std::vector<Index> slots_;  // power of two; at most half full
  std::vector<Step> stack_;
  std::vector<BlockHash> path_;
  Index free_node_ = kNone, free_segment_ = kNone;
  std::size_t children_ = 0, blocks_ = 0;
};

}  // namespace warmroute::detail
