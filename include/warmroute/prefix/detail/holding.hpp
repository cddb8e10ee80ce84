/// The writer's side of who holds what in one node. A replica that holds a plain device prefix of the run is one cut-off;
/// one with holes or lower tiers also has a `Ragged` record, from which its cut-offs follow.
/// Invariant: what look-ups read of a slot is always its true leading count per cumulated tier, before or after a change.
/// Does not: walk the tree or ask for room; callers do (`room_to_hold`).
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "warmroute/prefix/detail/arena.hpp"
#include "warmroute/prefix/detail/credit.hpp"
#include "warmroute/prefix/detail/memory.hpp"
#include "warmroute/prefix/detail/node.hpp"

namespace warmroute::detail {

class PrefixHolding {
 public:
  PrefixHolding(PrefixMemory& memory, NodeArena& arena) : memory_(&memory), arena_(&arena) {}

  /// Slot `slot` now holds blocks [from, to) of the node's run on `tier`. returns: how many it did not hold there before.
  std::uint32_t hold(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t from, std::uint32_t to) {
    Ragged* record = ragged(node, slot);
    if (record == nullptr) {
      const std::uint32_t end = get(node, slot).at[0];
      if (tier == 0 && from <= end) {
        if (to <= end) return 0;
        set(node, slot, plain(to));
        return to - end;
      }
      if (from >= to) return 0;
      record = make_ragged(node, slot, end, std::max(end, to));
    }
    record = widen(node, record, to);
    const std::uint32_t added = assign(record, tier, from, to, true);
    follow(node, record);
    return added;
  }

  /// The opposite. returns: how many of them it held.
  std::uint32_t release(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t from, std::uint32_t to) {
    Ragged* record = ragged(node, slot);
    if (record == nullptr) {
      const std::uint32_t end = get(node, slot).at[0];
      if (tier != 0 || from >= end || from >= to) return 0;
      if (to >= end) {
        set(node, slot, plain(from));
        return end - from;
      }
      record = make_ragged(node, slot, end, end);
    }
    const std::uint32_t removed = assign(record, tier, from, std::min(to, record->words * 64), false);
    if (removed != 0) follow(node, record);
    return removed;
  }

  /// The slot gives up all from block `keep` of the run on, on every tier. alloc: none. returns: how many blocks it held there.
  std::size_t cut(Node& node, std::uint32_t slot, std::uint32_t keep) {
    Ragged* record = ragged(node, slot);
    if (record == nullptr) {
      const std::uint32_t end = get(node, slot).at[0];
      if (keep >= end) return 0;
      set(node, slot, plain(keep));
      return end - keep;
    }
    std::size_t removed = 0;
    for (unsigned t = 0; t < kTierCount; ++t) removed += assign(record, t, keep, record->words * 64, false);
    follow(node, record);
    return removed;
  }

  /// returns: how many of blocks [from, to) the slot holds on the tier.
  [[nodiscard]] std::uint32_t count(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t from,
                                    std::uint32_t to) {
    std::uint32_t held = 0;
    for_each_stretch(node, slot, [&](unsigned t, std::uint32_t begin, std::uint32_t end) {
      if (t == tier && std::max(begin, from) < std::min(end, to)) held += std::min(end, to) - std::max(begin, from);
    });
    return held;
  }

  /// returns: whether the slot holds that block of the run on the tier.
  [[nodiscard]] bool holds(Node& node, std::uint32_t slot, unsigned tier, std::uint32_t at) {
    Ragged* record = ragged(node, slot);
    if (record == nullptr) return tier == 0 && at < get(node, slot).at[0];
    return at < record->words * 64 && (record->bits(tier)[at / 64] >> (at % 64) & 1) != 0;
  }

  /// returns: leading blocks of the run beyond which nobody holds anything.
  [[nodiscard]] std::uint32_t extent(Node& node) {
    std::uint32_t most = 0;
    if (Holders* more = node.holders.load(std::memory_order_relaxed); more != nullptr && more->planes != 0) {
      const Holders::Lane* ends = more->plane(2);
      for (std::uint32_t i = 0; i < more->capacity; ++i)
        most = std::max<std::uint32_t>(most, ends[i].load(std::memory_order_relaxed));
    } else {
      for_each_word(node, [&](Holders::Word& w) {
        most = std::max<std::uint32_t>(most, CutOffs::of(w.load(std::memory_order_relaxed)).at[2]);
      });
    }
    for (Ragged* r = arena_->info(node).ragged; r != nullptr; r = r->next) {
      for (std::uint32_t i = r->words; i-- > most / 64;) {
        const std::uint64_t any = r->bits(0)[i] | r->bits(1)[i] | r->bits(2)[i];
        if (any == 0) continue;
        most = std::max(most, i * 64 + 64 - static_cast<std::uint32_t>(std::countl_zero(any)));
        break;
      }
    }
    return most;
  }

  /// Drops replicas that were cleared since the node was last looked at. returns: whether anyone was dropped.
  bool clean(Node& node, ClearedAt cleared_at, std::uint32_t clears_now) {
    const std::uint32_t seen = node.clears.load(std::memory_order_relaxed);
    if (seen == clears_now) return false;
    const auto cleared = [&](std::uint32_t slot) { return cleared_at[slot].load(std::memory_order_relaxed) > seen; };
    bool dropped = false;
    for (Ragged** link = &arena_->info(node).ragged; *link != nullptr;) {
      Ragged* r = *link;
      if (!cleared(r->slot)) {
        link = &r->next;
        continue;
      }
      *link = r->next;
      memory_->release(r, Ragged::bytes(r->words));
      dropped = true;
    }
    if (Holders* more = node.holders.load(std::memory_order_relaxed); more != nullptr && more->planes != 0) {
      for (std::uint32_t i = 0; i < more->capacity; ++i) {
        if (more->plane(2)[i].load(std::memory_order_relaxed) == 0 || !cleared(more->first + i)) continue;
        for (unsigned t = 0; t < more->planes; ++t) more->plane(t)[i].store(0, std::memory_order_relaxed);
        dropped = true;
      }
    } else {
      for_each_word(node, [&](Holders::Word& w) {
        const std::uint64_t word = w.load(std::memory_order_relaxed);
        if (word == 0 || !cleared(static_cast<std::uint32_t>(word & 0xFFFF))) return;
        w.store(0, std::memory_order_relaxed);
        dropped = true;
      });
    }
    node.clears.store(clears_now, std::memory_order_release);
    return dropped;
  }

  /// Calls visit(slot) for everyone who holds anything in the node. It may change that slot's holding.
  template <class Visit>
  void for_each_holder(Node& node, Visit&& visit) {
    slots_.clear();
    for_each_slot(node, [&](std::uint32_t slot) {
      if (!get(node, slot).none()) slots_.push_back(slot);
    });
    for (Ragged* r = arena_->info(node).ragged; r != nullptr; r = r->next) {
      if (get(node, r->slot).none()) slots_.push_back(r->slot);
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) visit(slots_[i]);
  }

  /// Calls visit(tier, from, to) for every stretch that the slot holds.
  template <class Visit>
  void for_each_stretch(Node& node, std::uint32_t slot, Visit&& visit) {
    Ragged* record = ragged(node, slot);
    if (record == nullptr) {
      if (const std::uint32_t end = get(node, slot).at[0]; end != 0) visit(0U, 0U, end);
      return;
    }
    for (unsigned tier = 0; tier < kTierCount; ++tier) {
      std::uint32_t from = 0;
      for (std::uint32_t i = 0; i <= record->words * 64; ++i) {
        const bool on = i < record->words * 64 && (record->bits(tier)[i / 64] >> (i % 64) & 1) != 0;
        if (on) continue;
        if (i != from) visit(tier, from, i);
        from = i + 1;
      }
    }
  }

  /// The node leaves the tree: its records go at once (only the writer reads them), its holders when readers have left.
  void retire(Node& node) {
    for (Ragged* r = arena_->info(node).ragged; r != nullptr;) {
      Ragged* next = r->next;
      memory_->release(r, Ragged::bytes(r->words));
      r = next;
    }
    arena_->info(node).ragged = nullptr;
    if (Holders* more = node.holders.load(std::memory_order_relaxed))
      memory_->retire(more, Holders::bytes(more->capacity, more->planes));
  }

  /// returns: an upper bound of the bytes that one `hold` up to block `to` can ask for.
  [[nodiscard]] static std::size_t room_to_hold(const Node& node, std::uint32_t to) noexcept {
    const Holders* more = node.holders.load(std::memory_order_relaxed);
    const std::size_t holders = more == nullptr ? Node::kFew : more->capacity;
    return 512 + 32 * holders + Ragged::bytes(to / 64 + 2);
  }

 private:
  static CutOffs plain(std::uint32_t end) noexcept {
    const auto e = static_cast<std::uint16_t>(end);
    return {{e, e, e}};
  }

  template <class Visit>
  static void for_each_word(Node& node, Visit&& visit) {
    Holders* more = node.holders.load(std::memory_order_relaxed);
    Holders::Word* words = more != nullptr ? more->words() : node.few;
    const std::size_t count = more != nullptr ? more->capacity : Node::kFew;
    for (std::size_t i = 0; i < count; ++i) visit(words[i]);
  }

  [[nodiscard]] CutOffs get(Node& node, std::uint32_t slot) const noexcept {
    Holders* more = node.holders.load(std::memory_order_relaxed);
    if (more != nullptr && more->planes != 0) {
      CutOffs c;
      if (slot < more->first || slot - more->first >= more->capacity) return c;
      for (unsigned t = 0; t < kTierCount; ++t)
        c.at[t] = more->plane(t)[slot - more->first].load(std::memory_order_relaxed);
      return c;
    }
    const Holders::Word* word = find_word(node, slot);
    return word == nullptr ? CutOffs{} : CutOffs::of(word->load(std::memory_order_relaxed));
  }

  /// returns: the word of that slot, or null. A free word (0) is not slot 0's.
  static Holders::Word* find_word(Node& node, std::uint32_t slot) noexcept {
    Holders* more = node.holders.load(std::memory_order_relaxed);
    Holders::Word* words = more != nullptr ? more->words() : node.few;
    const std::size_t count = more != nullptr ? more->capacity : Node::kFew;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t w = words[i].load(std::memory_order_relaxed);
      if (w != 0 && (w & 0xFFFF) == slot) return &words[i];
    }
    return nullptr;
  }

  void set(Node& node, std::uint32_t slot, CutOffs cut) {
    Holders* more = node.holders.load(std::memory_order_relaxed);
    if (more != nullptr && more->planes != 0) {
      const bool inside = slot >= more->first && slot - more->first < more->capacity;
      if (!inside && cut.none()) return;
      if (!inside || (more->planes == 1 && !cut.one_plane())) return rebuild(node, slot, cut);
      for (unsigned t = 0; t < more->planes; ++t)
        more->plane(t)[slot - more->first].store(cut.at[t], std::memory_order_relaxed);
      return;
    }
    Holders::Word* word = find_word(node, slot);
    if (word == nullptr) {
      if (cut.none()) return;
      for_each_word(node, [&](Holders::Word& w) {
        if (word == nullptr && w.load(std::memory_order_relaxed) == 0) word = &w;
      });
      if (word == nullptr) return rebuild(node, slot, cut);
    }
    word->store(cut.none() ? 0 : cut.word(slot), std::memory_order_relaxed);
  }

  /// Another array for the node's holders, `slot` with `cut` among them: a window where they stand close, words otherwise.
  void rebuild(Node& node, std::uint32_t slot, CutOffs cut) {
    entries_.clear();
    for_each_slot(node, [&](std::uint32_t s) {
      if (const CutOffs c = get(node, s); s != slot && !c.none()) entries_.push_back(c.word(s));
    });
    entries_.push_back(cut.word(slot));
    std::uint32_t low = slot, high = slot;
    bool one_plane = true;
    for (const std::uint64_t e : entries_) {
      low = std::min(low, static_cast<std::uint32_t>(e & 0xFFFF));
      high = std::max(high, static_cast<std::uint32_t>(e & 0xFFFF));
      one_plane &= CutOffs::of(e).one_plane();
    }
    low -= low % Holders::kLanes;
    const std::uint32_t lanes = (high - low) / Holders::kLanes * Holders::kLanes + Holders::kLanes;
    const unsigned planes = one_plane ? 1 : 3;
    const std::size_t words = std::bit_ceil(entries_.size() + 1);
    const bool dense = Holders::bytes(lanes, planes) <= 2 * Holders::bytes(words, 0);
    const std::size_t bytes = dense ? Holders::bytes(lanes, planes) : Holders::bytes(words, 0);
    Holders* fresh = new (memory_->allocate(bytes)) Holders;
    std::memset(static_cast<void*>(fresh + 1), 0, bytes - sizeof(Holders));
    fresh->capacity = dense ? lanes : static_cast<std::uint32_t>(words);
    fresh->planes = static_cast<std::uint16_t>(dense ? planes : 0);
    fresh->first = static_cast<std::uint16_t>(dense ? low : 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!dense) {
        fresh->words()[i].store(entries_[i], std::memory_order_relaxed);
        continue;
      }
      const CutOffs c = CutOffs::of(entries_[i]);
      for (unsigned t = 0; t < planes; ++t)
        fresh->plane(t)[(entries_[i] & 0xFFFF) - low].store(c.at[t], std::memory_order_relaxed);
    }
    Holders* old = node.holders.exchange(fresh, std::memory_order_acq_rel);
    if (old != nullptr) memory_->retire(old, Holders::bytes(old->capacity, old->planes));
  }

  // --- ragged holders ---------------------------------------------------------------------------------------------
  [[nodiscard]] Ragged* ragged(Node& node, std::uint32_t slot) noexcept {
    Ragged* r = arena_->info(node).ragged;
    while (r != nullptr && r->slot != slot) r = r->next;
    return r;
  }
  Ragged* new_record(std::uint32_t slot, std::uint32_t blocks) {
    const std::uint32_t words = blocks / 64 + 1;
    Ragged* r = new (memory_->allocate(Ragged::bytes(words))) Ragged;
    r->slot = slot;
    r->words = words;
    std::memset(r->bits(0), 0, kTierCount * words * 8);
    return r;
  }
  Ragged* make_ragged(Node& node, std::uint32_t slot, std::uint32_t device_end, std::uint32_t blocks) {
    Ragged* r = new_record(slot, blocks);
    assign(r, 0, 0, device_end, true);
    r->next = arena_->info(node).ragged;
    arena_->info(node).ragged = r;
    return r;
  }
  Ragged* widen(Node& node, Ragged* old, std::uint32_t blocks) {
    if (blocks <= old->words * 64) return old;
    Ragged* r = new_record(old->slot, blocks + blocks / 4);
    for (unsigned t = 0; t < kTierCount; ++t) {
      std::memcpy(r->bits(t), old->bits(t), old->words * 8);
      r->held[t] = old->held[t];
    }
    r->next = old->next;
    Ragged** link = &arena_->info(node).ragged;
    while (*link != old) link = &(*link)->next;
    *link = r;
    memory_->release(old, Ragged::bytes(old->words));
    return r;
  }
  /// returns: how many bits changed.
  static std::uint32_t assign(Ragged* r, unsigned tier, std::uint32_t from, std::uint32_t to, bool on) noexcept {
    std::uint32_t changed = 0;
    for (std::uint32_t i = from / 64; i * 64 < to; ++i) {
      std::uint64_t mask = ~std::uint64_t{0};
      if (i * 64 < from) mask &= ~std::uint64_t{0} << (from % 64);
      if (to - i * 64 < 64) mask &= (std::uint64_t{1} << (to % 64)) - 1;
      std::uint64_t& word = r->bits(tier)[i];
      changed += static_cast<std::uint32_t>(std::popcount((on ? ~word : word) & mask));
      word = on ? word | mask : word & ~mask;
    }
    r->held[tier] = on ? r->held[tier] + changed : r->held[tier] - changed;
    return changed;
  }
  /// Writes the cut-offs that follow from the record, and lets a record go that has become a plain prefix.
  void follow(Node& node, Ragged* r) {
    CutOffs cut;
    for (unsigned t = 0; t < kTierCount; ++t) {
      std::uint32_t end = 0;
      for (std::uint32_t i = 0; i < r->words; ++i) {
        std::uint64_t bits = 0;
        for (unsigned k = 0; k <= t; ++k) bits |= r->bits(k)[i];
        const auto ones = static_cast<std::uint32_t>(std::countr_one(bits));
        end += ones;
        if (ones != 64) break;
      }
      cut.at[t] = static_cast<std::uint16_t>(end);
    }
    set(node, r->slot, cut);
    if (r->held[0] != cut.at[0] || r->held[1] != 0 || r->held[2] != 0) return;
    Ragged** link = &arena_->info(node).ragged;
    while (*link != r) link = &(*link)->next;
    *link = r->next;
    memory_->release(r, Ragged::bytes(r->words));
  }

  PrefixMemory* memory_;
  NodeArena* arena_;
  std::vector<std::uint32_t> slots_;    // scratch
  std::vector<std::uint64_t> entries_;  // scratch
};

}  // namespace warmroute::detail
