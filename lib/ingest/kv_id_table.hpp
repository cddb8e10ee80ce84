// Small facts about blocks by the engine's name for them: open addressing, bounded in size and in probes, so that ids that were chosen to
// collide cost little. What does not fit is forgotten: users of the table must be right, if poorer, without any one entry.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "warmroute/prefix/index.hpp"

namespace warmroute::ingest {

// Value: `empty()` says that there is none; a default-made one is.
template <class Value, std::size_t kMaxEntries>
class IdTable {
 public:
  // returns: null if unknown. lifetime: until the next change.
  [[nodiscard]] const Value* find(EngineHash id) const noexcept {
    if (used_ == 0) return nullptr;
    const std::size_t at = locate(to_bits(id));
    return at == kNowhere || slots_[at].value.empty() ? nullptr : &slots_[at].value;
  }
  // returns: whether there was room. `old`: what was there, or empty.
  bool put(EngineHash id, const Value& value, Value& old) {
    old = Value{};
    if (used_ * 2 >= slots_.size()) grow();
    const std::size_t at = locate(to_bits(id));
    if (at == kNowhere || (slots_[at].value.empty() && used_ >= kMaxEntries)) return false;
    old = slots_[at].value;
    if (old.empty()) ++used_;
    slots_[at] = {to_bits(id), value};
    return true;
  }
  // returns: what was there, or empty.
  Value erase(EngineHash id) noexcept {
    if (used_ == 0) return {};
    std::size_t at = locate(to_bits(id));
    if (at == kNowhere || slots_[at].value.empty()) return {};
    const Value old = slots_[at].value;
    const std::size_t mask = slots_.size() - 1;
    // Those behind it move up, so that no search ends too early. Ids that were chosen to lie in one row would make that row move at every
    // removal: after so many steps those behind are out of reach instead, which is as if there had been no room for them.
    std::size_t steps = 0;
    for (std::size_t next = (at + 1) & mask; !slots_[next].value.empty() && steps < kMostSteps;
         next = (next + 1) & mask) {
      ++steps;
      if (((next - home(slots_[next].id)) & mask) >= ((next - at) & mask)) {
        slots_[at] = slots_[next];
        at = next;
      }
    }
    slots_[at] = {};
    --used_;
    return old;
  }
  // A small table is emptied, a large one given back: clears may come in any number, and each must cost little.
  void clear() noexcept {
    constexpr std::size_t kSmall = 4096;
    if (slots_.size() > kSmall) {
      slots_ = {};
    } else if (used_ != 0) {
      std::fill(slots_.begin(), slots_.end(), Slot{});
    }
    used_ = 0;
  }
  [[nodiscard]] std::size_t size() const noexcept { return used_; }

 private:
  struct Slot {
    std::uint64_t id = 0;
    Value value{};
  };
  static constexpr std::size_t kMostProbes = 64;
  static constexpr std::size_t kMostSteps = 4096;
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  static std::uint64_t to_bits(EngineHash id) noexcept { return static_cast<std::uint64_t>(id); }
  [[nodiscard]] std::size_t home(std::uint64_t id) const noexcept {
    return (id * 0x9E37'79B9'7F4A'7C15u) >> (64 - std::countr_zero(slots_.size()));
  }
  // returns: its slot, or the free one where it would go.
  [[nodiscard]] std::size_t locate(std::uint64_t id) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = home(id);
    for (std::size_t probes = 0; probes < kMostProbes; ++probes, at = (at + 1) & mask) {
      if (slots_[at].value.empty() || slots_[at].id == id) return at;
    }
    return kNowhere;
  }
  void grow() {
    if (slots_.size() >= 2 * kMaxEntries) return;  // full as it may be: known ids can still change
    std::vector<Slot> old(std::max<std::size_t>(256, slots_.size() * 2));
    old.swap(slots_);
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.value.empty()) continue;
      const std::size_t at = locate(slot.id);
      if (at == kNowhere) continue;
      slots_[at] = slot;
      ++used_;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::size_t used_ = 0;
};

// Under which salt the blocks of salted prompts are: vLLM names it at block 0 only, and later blocks must inherit it from their parent.
// Without an entry a block matches nothing, rather than the wrong thing.
class SaltTrail {
 public:
  static constexpr std::size_t kMaxBlocks = std::size_t{1} << 18;
  // returns: what the salt adds to the seed; 0 if the block has none.
  [[nodiscard]] std::uint64_t find(EngineHash id) const noexcept {
    const Salt* salt = table_.find(id);
    return salt == nullptr ? 0 : salt->seed;
  }
  void put(std::span<const EngineHash> ids, std::uint64_t seed) {
    Salt old;
    if (seed == 0) return;
    for (const EngineHash id : ids) table_.put(id, {seed}, old);
  }
  void erase(std::span<const EngineHash> ids) noexcept {
    for (const EngineHash id : ids) table_.erase(id);
  }
  void clear() noexcept { table_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return table_.size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }

 private:
  struct Salt {
    std::uint64_t seed = 0;
    [[nodiscard]] bool empty() const noexcept { return seed == 0; }
  };
  IdTable<Salt, kMaxBlocks> table_;
};

}  // namespace warmroute::ingest
