/// Engines name blocks by hashes of their own; here such an id leads to the block's place in the tree.
/// The id of a block lies beside its hash in the run, once for all replicas that agree on it. This table only finds the place: 8 bytes per
/// block (node, offset, 16 bits of the id), checked against the run, so an entry whose block is gone is simply not believed and
/// falls out when its shard is rebuilt. A replica that calls a block otherwise gets an alias to the first name.
/// Does not: lock, ask for room (`room_to_add`), or serve readers; only the writer looks here.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "warmroute/detail/prefix_arena.hpp"
#include "warmroute/detail/prefix_memory.hpp"
#include "warmroute/detail/prefix_node.hpp"

namespace warmroute {

/// What an engine calls a block in its events. Opaque: equal within one engine means the same block after the same prefix.
enum class EngineHash : std::uint64_t {};

}  // namespace warmroute

namespace warmroute::detail {

/// From one engine's own name of a block to the name that the tree keeps. Names of blocks that the engine gave up stay until the
/// map is full: only then it is asked which still matter.
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
    if ((count_ + 1) * 4 > capacity_ * 3) rebuild(matters);
    Pair& pair = pairs_[place(id)];
    count_ += pair.id == 0;
    pair = {id, name};
  }
  [[nodiscard]] std::size_t room_to_add(std::size_t ids) const noexcept {
    return count_ + ids < capacity_ / 4 * 3 ? 0 : std::bit_ceil((count_ + ids) * 3 / 2 + 16) * 2 * sizeof(Pair);
  }

 private:
  struct Pair {
    std::uint64_t id = 0, name = 0;
  };
  [[nodiscard]] std::size_t place(std::uint64_t id) const noexcept {
    std::size_t i = static_cast<std::size_t>((id * 0x9E3779B97F4A7C15ULL) >> 32);
    while (pairs_[i & (capacity_ - 1)].id != 0 && pairs_[i & (capacity_ - 1)].id != id) ++i;
    return i & (capacity_ - 1);
  }
  template <class Matters>
  void rebuild(Matters&& matters) {
    Pair* old = pairs_;
    const std::size_t before = capacity_;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < before; ++i) {
      if (old[i].id != 0 && !matters(old[i].name)) old[i].id = 0;
      kept += old[i].id != 0;
    }
    capacity_ = std::bit_ceil(kept * 3 / 2 + 16);
    pairs_ = static_cast<Pair*>(memory_->allocate(capacity_ * sizeof(Pair)));
    std::fill_n(pairs_, capacity_, Pair{});
    count_ = kept;
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
};

class EngineIds {
 public:
  /// A block's place; `node` null: unknown.
  struct Place {
    Node* node = nullptr;
    std::uint32_t offset = 0;
  };
  static constexpr std::size_t kMostShards = 1024;  // a rebuild moves one of them: 10,000 entries among 10^7 blocks

  EngineIds(PrefixMemory& memory, NodeArena& arena)
      : memory_(&memory), arena_(&arena), shard_count_(std::bit_floor(std::clamp<std::size_t>(memory.max_bytes() >> 17, 1, kMostShards))) {}
  EngineIds(const EngineIds&) = delete;
  EngineIds& operator=(const EngineIds&) = delete;
  ~EngineIds() {
    for (const Shard& s : shards_) {
      if (s.words != nullptr) memory_->release_line(s.words, s.bytes());
    }
  }

  /// returns: the place of the block called `id`, of several the first that `prefer(node, offset)` likes, else the first.
  template <class Prefer>
  [[nodiscard]] Place find(std::uint64_t id, Prefer&& prefer) const {
    Place found;
    if (id == 0 || shards_.empty()) return found;
    const std::uint64_t mixed = mix(id);
    const Shard& shard = shards_[shard_of(mixed)];
    if (shard.lines == 0) return found;
    for (std::uint32_t line = shard.home(mixed);; line = shard.next(line)) {
      const std::uint64_t* words = shard.words + std::size_t{line} * kLine;
      for (unsigned same = same_tag(words, mixed); same != 0; same &= same - 1) {
        const Place place = place_of(words[std::countr_zero(same)]);
        if (place.node == nullptr || id_at(place) != id) continue;
        if (prefer(*place.node, place.offset)) return place;
        if (found.node == nullptr) found = place;
      }
      if (words[kLine - 1] == 0) return found;
    }
  }

  /// Fetches what `find` or `add` of that id will look at first.
  void prefetch(std::uint64_t id) const noexcept {
    if (shards_.empty()) return;
    const std::uint64_t mixed = mix(id);
    const Shard& shard = shards_[shard_of(mixed)];
    if (shard.lines != 0) __builtin_prefetch(shard.words + std::size_t{shard.home(mixed)} * kLine, 1);
  }

  /// The block at that place, whose run says so already, is called `id`. `blocks`: how many the tree has; the table is cleaned of
  /// untrue entries when it has a quarter more.
  void add(std::uint64_t id, std::uint32_t number, std::uint32_t offset, std::uint64_t blocks) {
    if (shards_.empty()) shards_.resize(shard_count_);
    const std::uint64_t mixed = mix(id);
    Shard& shard = shards_[shard_of(mixed)];
    if (shard.used >= shard.lines * (kLine * 5 / 8)) rebuild(shard, used_ > blocks + blocks / 4);
    put(shard, word_of(mixed, number, offset));
  }

  /// returns: an estimate from above of what `ids` additions ask for.
  [[nodiscard]] std::size_t room_to_add(std::size_t ids) const noexcept {
    const std::size_t growing = std::min({ids, shard_count_, 4 + ids * 16 / (largest_ + 1)});  // shards that are full by then
    return growing * ((largest_ + ids / shard_count_ + 8) * 20 + 256);
  }

 private:
  static constexpr std::uint32_t kLine = 8;  // words of a cache line: looked at together, without a branch per word

  /// Words: node (32 bits), offset (16), tag (16). The tag also says to which line a word belongs, so that a rebuild needs no more than
  /// the words. A line is filled from its front; what does not fit goes to the next.
  struct Shard {
    std::uint64_t* words = nullptr;
    std::uint32_t lines = 0, used = 0;

    [[nodiscard]] std::uint32_t home(std::uint64_t tag) const noexcept {
      return static_cast<std::uint32_t>(((tag & 0xFFFF) * std::uint64_t{lines}) >> 16);
    }
    [[nodiscard]] std::uint32_t next(std::uint32_t line) const noexcept { return line + 1 == lines ? 0 : line + 1; }
    [[nodiscard]] std::size_t bytes() const noexcept { return std::size_t{lines} * kLine * sizeof(std::uint64_t); }
  };
  [[nodiscard]] static unsigned same_tag(const std::uint64_t* words, std::uint64_t tag) noexcept {
    unsigned same = 0;
    for (unsigned k = 0; k < kLine; ++k) same |= static_cast<unsigned>(((words[k] ^ tag) & 0xFFFF) == 0 && words[k] != 0) << k;
    return same;
  }

  [[nodiscard]] static std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
    return x ^ (x >> 32);
  }
  [[nodiscard]] std::size_t shard_of(std::uint64_t mixed) const noexcept { return (mixed >> 54) & (shard_count_ - 1); }
  [[nodiscard]] static std::uint64_t word_of(std::uint64_t mixed, std::uint32_t number, std::uint32_t offset) noexcept {
    return std::uint64_t{number} << 32 | std::uint64_t{offset} << 16 | (mixed & 0xFFFF);
  }
  /// returns: the live place that a word names, if there is one.
  [[nodiscard]] Place place_of(std::uint64_t word) const noexcept {
    const auto number = static_cast<std::uint32_t>(word >> 32);
    const auto offset = static_cast<std::uint32_t>(word >> 16) & 0xFFFF;
    if (!arena_->live(number)) return {};
    Node& node = arena_->node(number);
    const Run& run = *node.run.load(std::memory_order_relaxed);
    if (run.named == 0 || offset >= run.length.load(std::memory_order_relaxed)) return {};
    return {&node, offset};
  }
  [[nodiscard]] static std::uint64_t id_at(const Place& p) noexcept { return p.node->run.load(std::memory_order_relaxed)->ids()[p.offset]; }

  void put(Shard& shard, std::uint64_t word) noexcept {
    for (std::uint32_t line = shard.home(word);; line = shard.next(line)) {
      std::uint64_t* words = shard.words + std::size_t{line} * kLine;
      unsigned full = 0;
      bool there = false;  // the same place had this name before
      for (unsigned k = 0; k < kLine; ++k) {
        full += words[k] != 0;
        there |= words[k] == word;
      }
      if (there) return;
      if (full == kLine) continue;
      words[full] = word;
      ++shard.used;
      ++used_;
      return;
    }
  }

  /// Half as large again as it must be, of those entries that are still true if `clean`.
  void rebuild(Shard& shard, bool clean) {
    const Shard old = shard;
    const std::size_t before = std::size_t{old.lines} * kLine;
    std::uint32_t kept = 0;
    for (std::size_t i = 0; i < before; ++i) {
      if (clean && old.words[i] != 0 && !is_true(old.words[i], shard)) old.words[i] = 0;
      kept += old.words[i] != 0;
    }
    shard.lines = std::max<std::uint32_t>(2, kept * 5 / 2 / kLine);
    shard.words = static_cast<std::uint64_t*>(memory_->allocate_line(shard.bytes()));
    std::memset(shard.words, 0, shard.bytes());
    used_ -= shard.used;
    shard.used = 0;
    for (std::size_t i = 0; i < before; ++i) {
      if (old.words[i] != 0) put(shard, old.words[i]);
    }
    if (old.words != nullptr) memory_->release_line(old.words, old.bytes());
    largest_ = std::max(largest_, shard.lines * kLine);
  }
  [[nodiscard]] bool is_true(std::uint64_t word, const Shard& shard) const {
    const Place place = place_of(word);
    if (place.node == nullptr) return false;
    const std::uint64_t mixed = mix(id_at(place));
    return &shards_[shard_of(mixed)] == &shard && ((mixed ^ word) & 0xFFFF) == 0;
  }

  PrefixMemory* memory_;
  NodeArena* arena_;
  std::size_t shard_count_;  // a power of two; few where the cap is low, since each has a line or two from its first name on
  std::vector<Shard> shards_;
  std::uint64_t used_ = 0;
  std::uint32_t largest_ = 0;
};

}  // namespace warmroute::detail
