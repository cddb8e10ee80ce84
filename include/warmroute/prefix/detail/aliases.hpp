/// Where replicas of one model name blocks differently: from one engine's own name of a block to the name that the tree keeps.
/// Names of blocks that the engine gave up stay until the map is full or `settle` comes by: only then it is asked which still matter.
/// Does not: lock, ask for room (`room_to_add`), or serve readers; only the writer looks here.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "warmroute/prefix/detail/memory.hpp"

namespace warmroute::detail {

class AliasMap {
 public:
  explicit AliasMap(PrefixMemory& memory) : memory_(&memory) {}
  AliasMap(const AliasMap&) = delete;
  AliasMap& operator=(const AliasMap&) = delete;
  ~AliasMap() { give_back(pairs_, capacity_); }

  /// returns: the other name, or `id` itself.
  [[nodiscard]] std::uint64_t find(std::uint64_t id) const noexcept {
    if (id == 0 || count_ == 0) return id;
    const Pair& pair = pairs_[place(id)];
    return pair.id == id ? pair.name : id;
  }
  /// `matters(name)`: whether the engine still holds the block of that name.
  template <class Matters>
  void add(std::uint64_t id, std::uint64_t name, Matters&& matters) {
    if (count_ + 1 > most(capacity_)) {
      for (std::size_t i = 0; i < capacity_; ++i) {
        if (pairs_[i].id == 0 || matters(pairs_[i].name)) continue;
        pairs_[i].id = 0;
        --count_;
      }
      resize(capacity_for(count_ + 1 + count_ / 8));  // room for a while, or every addition would ask about all of them
    }
    Pair& pair = pairs_[place(id)];
    count_ += pair.id == 0;
    pair = {id, name};
  }
  [[nodiscard]] std::size_t room_to_add(std::size_t ids) const noexcept {
    return count_ + ids <= most(capacity_) ? 0 : capacity_for(count_ + ids) * 2 * sizeof(Pair);
  }

  /// Asks of the next `names` places which still matter, and gives back what those left took: exactly what adding the rest alone had
  /// asked for, once all places were visited; a large map only when it has become much too large. cost: O(names), a resize at most.
  template <class Matters>
  void settle(std::size_t names, Matters&& matters) {
    for (; names != 0 && count_ != 0; --names) {
      next_ = next_ + 1 < capacity_ ? next_ + 1 : 0;
      while (pairs_[next_].id != 0 && !matters(pairs_[next_].name)) erase(next_);
    }
    const std::size_t wanted = capacity_for(count_);
    if (wanted < capacity_ && (capacity_ <= 1024 || wanted * 4 <= capacity_) && memory_->fits(wanted * sizeof(Pair)))
      resize(wanted);
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

 private:
  struct Pair {
    std::uint64_t id = 0, name = 0;
  };
  [[nodiscard]] static std::size_t most(std::size_t capacity) noexcept { return capacity / 4 * 3; }
  [[nodiscard]] static std::size_t capacity_for(std::size_t count) noexcept {
    return count == 0 ? 0 : std::max<std::size_t>(32, std::bit_ceil((count * 4 + 2) / 3));
  }
  [[nodiscard]] static std::size_t home(std::uint64_t id) noexcept {
    return static_cast<std::size_t>((id * 0x9E3779B97F4A7C15ULL) >> 32);
  }
  [[nodiscard]] std::size_t place(std::uint64_t id) const noexcept {
    std::size_t i = home(id);
    while (pairs_[i & (capacity_ - 1)].id != 0 && pairs_[i & (capacity_ - 1)].id != id) ++i;
    return i & (capacity_ - 1);
  }
  /// Empties a place and moves up what stands behind it for want of it.
  void erase(std::size_t hole) noexcept {
    const std::size_t mask = capacity_ - 1;
    for (std::size_t i = (hole + 1) & mask; pairs_[i].id != 0; i = (i + 1) & mask) {
      if (((i - home(pairs_[i].id)) & mask) < ((i - hole) & mask)) continue;
      pairs_[hole] = pairs_[i];
      hole = i;
    }
    pairs_[hole] = {};
    --count_;
  }
  void resize(std::size_t capacity) {
    Pair* old = pairs_;
    const std::size_t before = capacity_;
    pairs_ = capacity == 0 ? nullptr : static_cast<Pair*>(memory_->allocate(capacity * sizeof(Pair)));
    capacity_ = capacity;
    if (capacity != 0) std::fill_n(pairs_, capacity, Pair{});
    for (std::size_t i = 0; i < before; ++i) {
      if (old[i].id != 0) pairs_[place(old[i].id)] = old[i];
    }
    give_back(old, before);
  }
  void give_back(Pair* pairs, std::size_t capacity) noexcept {
    if (pairs != nullptr) memory_->release(pairs, capacity * sizeof(Pair));
  }

  PrefixMemory* memory_;
  Pair* pairs_ = nullptr;
  std::size_t capacity_ = 0, count_ = 0;
  std::size_t next_ = 0;  // the place that settle looked at last
};

}  // namespace warmroute::detail
