/// Blocks whose parent was not known when they were stored: kept for a while, found by that parent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "warmroute/route/cache_events.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

struct Orphan {
  EngineHash parent;
  Tier tier;
  Nanos since;
  std::vector<EngineHash> ids;
  std::vector<BlockHash> hashes;

  [[nodiscard]] StoredBlocks blocks() const noexcept {
    StoredBlocks out;
    out.tier = tier;
    out.parent = parent;
    out.ids = ids;
    out.blocks = hashes;
    return out;
  }
};

class Orphans {
 public:
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  void clear() {
    list_.clear();
    by_parent_.clear();
    blocks_ = 0;
  }
  /// `stored` must carry a parent and block hashes. returns: blocks of older ones that went, to stay within `most`.
  std::size_t add(const StoredBlocks& stored, Nanos now, std::size_t most) {
    if (stored.ids.size() > most || stored.blocks.size() != stored.ids.size()) return stored.ids.size();
    std::size_t dropped = 0;
    while (blocks_ + stored.ids.size() > most) dropped += drop(list_.begin());
    list_.push_back({*stored.parent,
                     stored.tier,
                     now,
                     {stored.ids.begin(), stored.ids.end()},
                     {stored.blocks.begin(), stored.blocks.end()}});
    by_parent_.emplace(key(*stored.parent), std::prev(list_.end()));
    blocks_ += stored.ids.size();
    return dropped;
  }
  /// One that waits for `parent`, if there is any.
  std::optional<Orphan> take(EngineHash parent) {
    const auto found = by_parent_.find(key(parent));
    if (found == by_parent_.end()) return std::nullopt;
    Orphan out = std::move(*found->second);
    blocks_ -= out.ids.size();
    list_.erase(found->second);
    by_parent_.erase(found);
    return out;
  }
  /// The engine gave these up: an orphan ends before the first of them. cost: looks at all that wait; mostly there are none.
  void remove(std::span<const EngineHash> ids) {
    for (auto at = list_.begin(); at != list_.end();) {
      const auto cut = std::find_first_of(at->ids.begin(), at->ids.end(), ids.begin(), ids.end());
      const auto keep = static_cast<std::size_t>(cut - at->ids.begin());
      const auto next = std::next(at);
      if (keep == 0) {
        drop(at);
      } else {
        blocks_ -= at->ids.size() - keep;
        at->ids.resize(keep);
        at->hashes.resize(keep);
      }
      at = next;
    }
  }
  /// returns: blocks of those older than `oldest`, which went.
  std::size_t expire(Nanos oldest) {
    std::size_t dropped = 0;
    while (!list_.empty() && list_.front().since < oldest) dropped += drop(list_.begin());
    return dropped;
  }

 private:
  using List = std::list<Orphan>;  // oldest first
  static std::uint64_t key(EngineHash h) noexcept { return static_cast<std::uint64_t>(h); }
  std::size_t drop(List::iterator at) {
    const auto [from, to] = by_parent_.equal_range(key(at->parent));
    for (auto i = from; i != to; ++i) {
      if (i->second != at) continue;
      by_parent_.erase(i);
      break;
    }
    const std::size_t count = at->ids.size();
    blocks_ -= count;
    list_.erase(at);
    return count;
  }

  List list_;
  std::unordered_multimap<std::uint64_t, List::iterator> by_parent_;
  std::size_t blocks_ = 0;
};

}  // namespace warmroute
