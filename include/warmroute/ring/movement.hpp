/// What a change of the ring does to the keys: the exact part of the key space that gets another home, and from whom
/// to whom, before it is published.
///
/// Invariant: spans are exact (2^64 keys, no sampling) and the flows add up to `moved`. Members are told apart by
/// ring_id; a slot that another replica serves has not moved. Does not: weigh keys by traffic; a hot key is one key.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "warmroute/ring/hash_ring.hpp"

namespace warmroute {

/// Keys that leave one member for another. An empty ring_id stands for nobody: the ring was or becomes empty.
struct KeyFlow {
  std::string from;
  std::string to;
  KeySpan span;

  friend bool operator==(const KeyFlow&, const KeyFlow&) = default;
};

struct Movement {
  KeySpan moved;
  bool key_rule_changed = false;  ///< the same request has another key now: all is moved and flows mean nothing (empty)
  std::vector<KeyFlow> flows;     ///< sorted by (from, to)

  [[nodiscard]] double fraction() const noexcept { return moved.fraction(); }
};

namespace detail {

/// Adds up the arcs between two owners; an owner is an index into the ring's members, kNoMember for an empty ring.
class FlowSum {
 public:
  void add(std::uint32_t from, std::uint32_t to, uint128 keys) {
    if (!arcs_.empty() && arcs_.back().from == from && arcs_.back().to == to) arcs_.back().keys += keys;
    else arcs_.push_back({from, to, keys});
  }
  [[nodiscard]] Movement finish(const HashRing& before, const HashRing& after) {
    const auto order = [](const Arc& a, const Arc& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); };
    std::sort(arcs_.begin(), arcs_.end(), order);
    Movement movement;
    for (std::size_t i = 0; i < arcs_.size(); ++i) {
      movement.moved.keys += arcs_[i].keys;
      if (i != 0 && !order(arcs_[i - 1], arcs_[i])) {
        movement.flows.back().span.keys += arcs_[i].keys;
      } else {
        movement.flows.push_back({name(before, arcs_[i].from), name(after, arcs_[i].to), {arcs_[i].keys}});
      }
    }
    return movement;
  }

 private:
  struct Arc {
    std::uint32_t from;
    std::uint32_t to;
    uint128 keys;
  };
  static std::string name(const HashRing& ring, std::uint32_t index) {
    return index == kNoMember ? std::string{} : ring.members()[index].ring_id;
  }
  std::vector<Arc> arcs_;
};

/// One ring's side of the common walk over both rings' points.
struct RingCursor {
  const HashRing* ring;
  std::size_t at = 0;

  [[nodiscard]] bool done() const noexcept { return at == ring->points(); }
  [[nodiscard]] std::uint64_t hash() const noexcept { return done() ? ~std::uint64_t{0} : ring->point_hash(at); }
  /// returns: who owns the keys up to the next point; after the last point, the first one's owner.
  [[nodiscard]] std::uint32_t owner() const noexcept {
    return ring->empty() ? kNoMember : ring->point_index(done() ? 0 : at);
  }
  void pass(std::uint64_t border) noexcept {
    while (!done() && ring->point_hash(at) <= border) ++at;
  }
};

}  // namespace detail

/// returns: what moves when `after` replaces `before`. A different key_rule in their options moves everything.
/// threads: any. cost: O(points of both), plus sorting the arcs that move; off the path.
inline Movement movement_between(const HashRing& before, const HashRing& after) {
  if (before.empty() && after.empty()) return {};
  if (before.options().key_rule != after.options().key_rule) return {KeySpan::everything(), true, {}};
  std::vector<std::uint32_t> same(before.size());  // where the member of `before` is in `after`
  for (std::size_t i = 0; i < same.size(); ++i) same[i] = after.find(before.members()[i].ring_id);

  detail::FlowSum sum;
  detail::RingCursor old_side{&before};
  detail::RingCursor new_side{&after};
  const auto add = [&](detail::uint128 keys) {
    const std::uint32_t from = old_side.owner();
    const std::uint32_t to = new_side.owner();
    const bool stays = from != kNoMember && to != kNoMember && same[from] == to;
    if (!stays && keys != 0) sum.add(from, to, keys);
  };
  detail::uint128 begin = 0;  // first key not yet accounted for
  while (!old_side.done() || !new_side.done()) {
    const std::uint64_t border = std::min(old_side.hash(), new_side.hash());  // 2^64-1 where a side is done
    add(detail::uint128{border} + 1 - begin);
    begin = detail::uint128{border} + 1;
    old_side.pass(border);
    new_side.pass(border);
  }
  add(KeySpan::everything().keys - begin);
  return sum.finish(before, after);
}

}  // namespace warmroute
