/// PrefixTree, part two: what comes in and what goes out. A store walks from the root or from a named block and takes one node's worth
/// of blocks at a time; a removal first lets go of everything it names, then tidies from the deepest node up.
#pragma once

#include "warmroute/prefix/detail/tree.hpp"

namespace warmroute::detail {

/// returns: where the next blocks of `rest` lie below (at, offset), as many as one node takes; added if they are new. node null: no room.
inline PrefixTree::Part PrefixTree::place_blocks(Node* at, std::uint32_t offset, std::span<const BlockHash> rest,
                                                 bool named) {
  const auto agree = [&rest, this](Node& node, std::uint32_t from) {
    return from + static_cast<std::uint32_t>(compare_(run_of(node).hashes() + from, rest.data(),
                                                      std::min<std::size_t>(length(node) - from, rest.size())));
  };
  if (at != nullptr && offset < length(*at)) {  // only where a caller starts inside a run
    if (const std::uint32_t to = agree(*at, offset); to != offset) return {at, offset, to};
  }
  if (Node* child = child_of(at, offset, rest[0])) return {child, 0, agree(*child, 0)};
  if (at != nullptr && offset == length(*at)) {
    if (const std::uint32_t more = extend(*at, rest); more != 0) return {at, offset, offset + more};
  }
  Node* fresh = create(at, offset, rest, named);
  return {fresh, 0, fresh == nullptr ? 0 : length(*fresh)};
}

inline bool PrefixTree::store_below(EngineIds::Place place, std::uint32_t slot, unsigned tier,
                                    std::span<const BlockHash> blocks, std::size_t first,
                                    std::span<const EngineHash> ids) {
  ++tick_;
  Node* at = place.node;
  std::uint32_t offset = at == nullptr ? 0 : place.offset + 1;
  bool done = true;
  for (std::size_t pos = 0; pos < blocks.size() && done;) {
    const Part part = place_blocks(at, offset, blocks.subspan(pos), !ids.empty());
    if (part.node == nullptr) {
      done = false;
      break;
    }
    const std::size_t count = part.to - part.from;
    if (!ids.empty()) done = name(*part.node, part.from, ids.subspan(pos, count), slot);
    if (done && pos + count > first) {
      const std::uint32_t begin = pos >= first ? part.from : part.from + static_cast<std::uint32_t>(first - pos);
      done = hold(*part.node, slot, tier, begin, part.to);
    }
    pos += count;
    at = part.node;
    offset = part.to;
  }
  keep_ = nullptr;
  if (at != nullptr && !ids.empty()) note_hint(slot, *at, offset - 1);
  if (at != nullptr && (offset > deepest_branch(*at) || offset == length(*at))) touch(*at);
  if (!done && at != nullptr) postponed_.push_back(at->number);
  tidy_postponed();
  return done;
}

/// Writes the engine's ids beside the hashes. returns: false: no room.
inline bool PrefixTree::name(Node& node, std::uint32_t from, std::span<const EngineHash> ids, std::uint32_t slot) {
  if (run_of(node).named == 0) {
    if (!room(Run::bytes(run_of(node).capacity, true), &node)) return false;
    replace_run(node, run_of(node).capacity, true);
  }
  if (std::memcmp(run_of(node).ids() + from, ids.data(), ids.size() * sizeof(EngineHash)) == 0)
    return true;  // as others call them
  std::size_t fresh = 0, different = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t known = run_of(node).ids()[from + i];
    fresh += known == 0;
    different += known != 0 && ids[i] != EngineHash{0} && known != static_cast<std::uint64_t>(ids[i]);
  }
  if (different != 0 && aliases_.empty()) aliases_.resize(lanes_);
  if (different != 0 && !aliases_[slot]) aliases_[slot] = std::make_unique<AliasMap>(memory_);
  const std::size_t need = ids_.room_to_add(fresh) + (different != 0 ? aliases_[slot]->room_to_add(different) : 0);
  if (!room(need, &node)) return false;
  std::uint64_t* names = run_of(node).ids();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<std::uint32_t>(from + i);
    const auto id = static_cast<std::uint64_t>(ids[i]);
    if (names[at] == id || id == 0) continue;
    if (names[at] == 0) {
      names[at] = id;
      ++run_of(node).named;
      ids_.add(id, node.number, at);
      continue;
    }
    aliases_[slot]->add(id, names[at], [&, this](std::uint64_t known) {
      const EngineIds::Place place = find_name(slot, known);
      const bool being_stored = place.node == &node && place.offset >= from && place.offset < from + ids.size();
      return being_stored || (place.node != nullptr && holds(*place.node, slot, place.offset));
    });
  }
  return true;
}

/// The names of blocks from `from` on go with the blocks.
inline void PrefixTree::forget_names(Node& node, std::uint32_t from) {
  if (run_of(node).named != 0) ids_.forget(node.number, run_of(node), from, length(node));
}

/// The table, and one replica's own names.
inline void PrefixTree::settle_names() {
  constexpr std::size_t kNames = 256;
  ids_.settle();
  if (aliases_.empty()) return;
  for (std::uint32_t looked = 0; looked < 64; ++looked) {
    const std::uint32_t slot = settle_at_ = settle_at_ + 1 < lanes_ ? settle_at_ + 1 : 0;
    if (!aliases_[slot]) continue;
    aliases_[slot]->settle(kNames, [this, slot](std::uint64_t name) {
      const EngineIds::Place place = find_name(slot, name);
      return place.node != nullptr && holds(*place.node, slot, place.offset);
    });
    if (aliases_[slot]->empty()) aliases_[slot].reset();
    break;
  }
  if (std::none_of(aliases_.begin(), aliases_.end(), [](const auto& map) { return map != nullptr; }))
    aliases_ = decltype(aliases_)();
}

inline bool PrefixTree::holds(Node& node, std::uint32_t slot, std::uint32_t offset) {
  return node.clears.load(std::memory_order_relaxed) >= cleared_at_[slot].load(std::memory_order_relaxed) &&
         (holding_.holds(node, slot, 0, offset) || holding_.holds(node, slot, 1, offset) ||
          holding_.holds(node, slot, 2, offset));
}

inline void PrefixTree::note_hint(std::uint32_t slot, const Node& node, std::uint32_t offset) {
  if (hints_.empty()) hints_.resize(lanes_);
  hints_[slot] = {node.number, offset};
}

inline EngineIds::Place PrefixTree::find_name(std::uint32_t slot, std::uint64_t name) {
  return ids_.find(name, [this, slot](Node& node, std::uint32_t offset) { return holds(node, slot, offset); });
}

inline EngineIds::Place PrefixTree::find(std::uint32_t slot, EngineHash id) {
  const auto own = static_cast<std::uint64_t>(id);
  if (slot <
      hints_
          .size()) {  // saves a cold line of the table: a parent is where the last event ended, a removal goes on below it
    const Hint hint = hints_[slot];
    if (const EngineIds::Place place = ids_.check(own, hint.number, hint.offset); place.node != nullptr) return place;
    if (const EngineIds::Place place = ids_.check(own, hint.number, hint.offset - 1); place.node != nullptr)
      return place;
  }
  if (slot < aliases_.size() && aliases_[slot]) {
    // an alias may be older than the block, which then got this engine's own name when it came back
    const std::uint64_t name = aliases_[slot]->find(own);
    const EngineIds::Place place = name == own ? EngineIds::Place{} : find_name(slot, name);
    if (place.node != nullptr) return place;
  }
  return find_name(slot, own);
}

inline void PrefixTree::path_to(EngineIds::Place place, std::vector<BlockHash>& out) {
  out.clear();  // from the end to the front, then turned around
  std::uint32_t count = place.offset + 1;
  for (Node* node = place.node;;) {
    const BlockHash* run = run_of(*node).hashes();
    for (std::uint32_t i = count; i-- > 0;) out.push_back(run[i]);
    const NodeInfo& info = arena_.info(*node);
    if (info.parent == kRoot) break;
    count = info.offset;
    node = &arena_.node(info.parent);
  }
  std::reverse(out.begin(), out.end());
}

inline void PrefixTree::tidy_postponed() {
  while (!postponed_.empty()) {
    const std::uint32_t number = postponed_.back();
    postponed_.pop_back();
    if (arena_.live(number)) tidy(&arena_.node(number));
  }
}

inline bool PrefixTree::hold(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t from, std::uint32_t to) {
  if (!room(PrefixHolding::room_to_hold(node, to), &node)) return false;
  clean(node);
  const std::uint32_t added = holding_.hold(node, slot, tier, from, to);
  memberships_ += added;
  held_[slot] += added;
  return true;
}

inline std::size_t PrefixTree::hold_named(std::uint32_t slot, unsigned tier, std::span<const EngineHash> ids) {
  ++tick_;
  std::size_t known = 0;
  for (const EngineHash id : ids) {
    const EngineIds::Place place = find(slot, id);
    if (place.node == nullptr) continue;
    if (!hold(*place.node, slot, tier, place.offset, place.offset + 1)) break;
    note_hint(slot, *place.node, place.offset);
    ++known;
  }
  keep_ = nullptr;
  tidy_postponed();
  return known;
}

inline std::size_t PrefixTree::remove(std::uint32_t slot, unsigned tier, std::span<const BlockHash> path,
                                      std::size_t first) {
  static_cast<void>(room(kRoomForHoles, nullptr));
  parts_.clear();
  Node* at = nullptr;
  std::uint32_t offset = 0;
  for (std::size_t pos = 0; pos < path.size();) {
    const auto rest = path.subspan(pos);
    at = child_of(at, offset, rest[0]);
    if (at == nullptr) break;
    offset = static_cast<std::uint32_t>(
        compare_(run_of(*at).hashes(), rest.data(), std::min<std::size_t>(length(*at), rest.size())));
    if (pos + offset > first)
      parts_.push_back({at, pos >= first ? 0 : static_cast<std::uint32_t>(first - pos), offset});
    pos += offset;
  }
  return release(parts_, slot, tier);
}

/// Neighbouring blocks are released together, whether they are named from leaf to root or the other way; the run itself tells whether
/// the next name is a neighbour's, so that the table is asked once per stretch.
inline std::size_t PrefixTree::remove_named(std::uint32_t slot, unsigned tier, std::span<const EngineHash> ids) {
  static_cast<void>(room(kRoomForHoles, nullptr));
  const AliasMap* aliases = slot < aliases_.size() ? aliases_[slot].get() : nullptr;
  std::size_t removed = 0;
  Part part{nullptr, 0, 0};
  for (const EngineHash id : ids) {
    if (part.node != nullptr) {
      const std::uint64_t own = static_cast<std::uint64_t>(id), name = aliases == nullptr ? own : aliases->find(own);
      const std::uint64_t* names = run_of(*part.node).ids();
      if (part.from != 0 && names[part.from - 1] == name && name != 0) {
        --part.from;
        continue;
      }
      if (part.to < length(*part.node) && names[part.to] == name && name != 0) {
        ++part.to;
        continue;
      }
      note_hint(slot, *part.node, part.from);
      removed += release({&part, 1}, slot, tier);
    }
    const EngineIds::Place place = find(slot, id);  // only now: the release may have moved or freed nodes
    part = place.node == nullptr ? Part{nullptr, 0, 0} : Part{place.node, place.offset, place.offset + 1};
  }
  if (part.node == nullptr) return removed;
  note_hint(slot, *part.node, part.from);
  return removed + release({&part, 1}, slot, tier);
}

inline std::size_t PrefixTree::release(std::span<const Part> parts, std::uint32_t slot, unsigned tier) {
  std::size_t removed = 0, given_up = 0;
  for (const Part& p : parts) {
    clean(*p.node);
    if (memory_.fits(PrefixHolding::room_to_hold(*p.node, length(*p.node)))) {
      removed += holding_.release(*p.node, slot, tier, p.from, p.to);
    } else {  // no room to note a hole: give up what lies behind it too, an early miss at worst
      const std::size_t asked = holding_.count(*p.node, slot, tier, p.from, p.to);
      removed += asked;
      given_up += holding_.cut(*p.node, slot, p.from) - asked;
    }
  }
  evicted_ += given_up;
  memberships_ -= removed + given_up;
  held_[slot] -= removed + given_up;
  for (std::size_t i = parts.size(); i-- > 0;) {  // deepest first: a node goes only after what hangs below it
    if (arena_.live(parts[i].node->number) && parts[i].to == length(*parts[i].node)) tidy(parts[i].node);
  }
  tidy_postponed();
  return removed;
}

}  // namespace warmroute::detail
