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

#include "warmroute/prefix/detail/arena.hpp"
#include "warmroute/prefix/detail/memory.hpp"
#include "warmroute/prefix/detail/node.hpp"

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
      : memory_(&memory),
        arena_(&arena),
        shard_count_(std::bit_floor(std::clamp<std::size_t>(memory.max_bytes() >> 17, 1, kMostShards))) {}
  EngineIds(const EngineIds&) = delete;
  EngineIds& operator=(const EngineIds&) = delete;
  ~EngineIds() {
    for (const Shard& s : shards_) {
      if (s.lines != nullptr) memory_->release_line(s.lines, s.bytes());
    }
  }

  /// returns: the place of the block called `id`; of several, one that `prefer(node, offset)` likes.
  template <class Prefer>
  [[nodiscard]] Place find(std::uint64_t id, Prefer&& prefer) const {
    Place found;
    if (id == 0 || shards_.empty()) return found;
    const std::uint64_t mixed = mix(id);
    const Shard& shard = shards_[shard_of(mixed)];
    if (shard.count == 0) return found;
    const std::uint16_t tag = tag_of(mixed);
    for (std::uint32_t at = shard.home(tag);; at = shard.next(at)) {
      const Line& line = shard.lines[at];
      for (unsigned same = line.equal(tag); same != 0; same &= same - 1) {
        const Place place = place_of(line, static_cast<unsigned>(std::countr_zero(same)));
        if (place.node == nullptr || id_at(place) != id) continue;
        // engines that do not chain their hashes call several blocks the same
        if (found.node != nullptr && prefer(*place.node, place.offset)) return place;
        if (found.node == nullptr) found = place;
      }
      if (line.tags[Line::kWays - 1] == 0) return found;
    }
  }

  /// returns: that place, if it is a live block of that name.
  [[nodiscard]] Place check(std::uint64_t id, std::uint32_t number, std::uint32_t offset) const noexcept {
    if (id == 0 || !arena_->live(number)) return {};
    Node& node = arena_->node(number);
    const Run& run = *node.run.load(std::memory_order_relaxed);
    const bool there = run.named != 0 && offset < run.length.load(std::memory_order_relaxed) && run.ids()[offset] == id;
    return there ? Place{&node, offset} : Place{};
  }

  /// Fetches what `find` or `add` of that id will look at first.
  void prefetch(std::uint64_t id) const noexcept {
    if (shards_.empty()) return;
    const std::uint64_t mixed = mix(id);
    const Shard& shard = shards_[shard_of(mixed)];
    if (shard.count != 0) __builtin_prefetch(shard.lines + shard.home(tag_of(mixed)), 1);
  }

  /// The block at that place, whose run says so already, is called `id`. `blocks`: how many the tree has; the table is cleaned of
  /// untrue entries when it has a quarter more.
  void add(std::uint64_t id, std::uint32_t number, std::uint32_t offset, std::uint64_t blocks) {
    if (shards_.empty()) shards_.resize(shard_count_);
    const std::uint64_t mixed = mix(id);
    Shard& shard = shards_[shard_of(mixed)];
    if (shard.used >= shard.count * (Line::kWays * 5 / 8)) rebuild(shard, used_ > blocks + blocks / 4);
    if (shard.count == 0) rebuild(shard, false);  // nothing in it was true
    put(shard, tag_of(mixed), number, static_cast<std::uint16_t>(offset));
  }

  /// Where most entries are untrue because blocks went, cleans a few shards: what they took comes back call by call.
  void clean_some(std::uint64_t blocks) {
    for (int n = 0; n < 8 && used_ > blocks + blocks / 4 + shards_.size(); ++n) {
      Shard& shard = shards_[clean_at_++ % shards_.size()];
      if (shard.used != 0 && memory_->fits(shard.bytes())) rebuild(shard, true);
    }
  }

  /// returns: an estimate from above of what `ids` additions ask for.
  [[nodiscard]] std::size_t room_to_add(std::size_t ids) const noexcept {
    const std::size_t growing =
        std::min({ids, shard_count_, 4 + ids * 16 / (largest_ + 1)});  // shards that are full by then
    return growing * ((largest_ + ids / shard_count_ + 8) * 26 + 256);
  }

 private:
  /// Eight places in one cache line, filled from the front. The tag (16 bits of the mixed id, 0 = free) also says to which line a place
  /// belongs, so that a rebuild needs no more than the lines; what does not fit goes to the next line.
  struct alignas(64) Line {
    static constexpr unsigned kWays = 8;
    std::uint16_t tags[kWays];
    std::uint32_t numbers[kWays];
    std::uint16_t offsets[kWays];

    void set(unsigned way, std::uint16_t tag, std::uint32_t number, std::uint16_t offset) noexcept {
      tags[way] = tag;
      numbers[way] = number;
      offsets[way] = offset;
    }
    /// returns: one bit per way that has that tag.
    [[nodiscard]] unsigned equal(std::uint16_t tag) const noexcept {
#if WARMROUTE_X86_KERNELS
      typedef short Tags __attribute__((vector_size(16), may_alias));
      typedef char Bytes __attribute__((vector_size(16)));
      const Tags same = *reinterpret_cast<const Tags*>(tags) == (Tags{} + static_cast<short>(tag));
      const auto pairs = static_cast<unsigned>(__builtin_ia32_pmovmskb128(reinterpret_cast<Bytes>(same))) & 0x5555U;
      unsigned bits = (pairs | pairs >> 1) & 0x3333U;
      bits = (bits | bits >> 2) & 0x0F0FU;
      return (bits | bits >> 4) & 0xFFU;
#else
      unsigned bits = 0;
      for (unsigned k = 0; k < kWays; ++k) bits |= static_cast<unsigned>(tags[k] == tag) << k;
      return bits;
#endif
    }
  };
  struct Shard {
    Line* lines = nullptr;
    std::uint32_t count = 0, used = 0;

    [[nodiscard]] std::uint32_t home(std::uint16_t tag) const noexcept {
      return static_cast<std::uint32_t>((std::uint64_t{tag} * count) >> 16);
    }
    [[nodiscard]] std::uint32_t next(std::uint32_t line) const noexcept { return line + 1 == count ? 0 : line + 1; }
    [[nodiscard]] std::size_t bytes() const noexcept { return count * sizeof(Line); }
  };

  [[nodiscard]] static std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
    return x ^ (x >> 32);
  }
  [[nodiscard]] std::size_t shard_of(std::uint64_t mixed) const noexcept { return (mixed >> 54) & (shard_count_ - 1); }
  [[nodiscard]] static std::uint16_t tag_of(std::uint64_t mixed) noexcept {
    return static_cast<std::uint16_t>((mixed & 0xFFFF) != 0 ? mixed & 0xFFFF : 1);
  }
  /// returns: the live place that one way of a line names, if there is one.
  [[nodiscard]] Place place_of(const Line& line, unsigned way) const noexcept {
    const std::uint32_t number = line.numbers[way];
    if (!arena_->live(number)) return {};
    Node& node = arena_->node(number);
    const Run& run = *node.run.load(std::memory_order_relaxed);
    if (run.named == 0 || line.offsets[way] >= run.length.load(std::memory_order_relaxed)) return {};
    return {&node, line.offsets[way]};
  }
  [[nodiscard]] static std::uint64_t id_at(const Place& p) noexcept {
    return p.node->run.load(std::memory_order_relaxed)->ids()[p.offset];
  }

  void put(Shard& shard, std::uint16_t tag, std::uint32_t number, std::uint16_t offset) noexcept {
    for (std::uint32_t at = shard.home(tag);; at = shard.next(at)) {
      Line& line = shard.lines[at];
      for (unsigned same = line.equal(tag); same != 0; same &= same - 1) {
        const auto way = static_cast<unsigned>(std::countr_zero(same));
        if (line.numbers[way] == number && line.offsets[way] == offset) return;  // the same place had this name before
      }
      const unsigned free = line.equal(0);
      if (free == 0) continue;
      const auto way = static_cast<unsigned>(std::countr_zero(free));
      line.set(way, tag, number, offset);
      ++shard.used;
      ++used_;
      return;
    }
  }

  /// Twice as large as it must be, of those entries that are still true if `clean`.
  void rebuild(Shard& shard, bool clean) {
    const Shard old = shard;
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < old.count; ++i) {
      for (unsigned way = 0; way < Line::kWays; ++way) {
        if (clean && old.lines[i].tags[way] != 0 && !is_true(old.lines[i], way, shard)) old.lines[i].tags[way] = 0;
        kept += old.lines[i].tags[way] != 0;
      }
    }
    shard.count = kept == 0 && clean ? 0 : std::max<std::uint32_t>(2, kept * 16 / 5 / Line::kWays);
    shard.lines = shard.count == 0 ? nullptr : static_cast<Line*>(memory_->allocate_line(shard.bytes()));
    if (shard.count != 0) std::memset(static_cast<void*>(shard.lines), 0, shard.bytes());
    used_ -= shard.used - kept;
    shard.used = kept;
    filled_.assign(shard.count, 0);  // asking the line itself would wait for the tag just written to it
    for (std::uint32_t i = 0; i < old.count; ++i) {
      for (unsigned way = 0; way < Line::kWays; ++way) {
        const Line& line = old.lines[i];
        if (line.tags[way] == 0) continue;
        std::uint32_t at = shard.home(line.tags[way]);
        while (filled_[at] == Line::kWays) at = shard.next(at);
        shard.lines[at].set(filled_[at]++, line.tags[way], line.numbers[way], line.offsets[way]);
      }
    }
    if (old.lines != nullptr) memory_->release_line(old.lines, old.bytes());
    largest_ = std::max(largest_, shard.count * Line::kWays);
  }
  [[nodiscard]] bool is_true(const Line& line, unsigned way, const Shard& shard) const {
    const Place place = place_of(line, way);
    if (place.node == nullptr) return false;
    const std::uint64_t mixed = mix(id_at(place));
    return &shards_[shard_of(mixed)] == &shard && tag_of(mixed) == line.tags[way];
  }

  PrefixMemory* memory_;
  NodeArena* arena_;
  std::size_t
      shard_count_;  // a power of two; few where the cap is low, since each has a line or two from its first name on
  std::vector<Shard> shards_;
  std::size_t clean_at_ = 0;
  std::vector<std::uint8_t> filled_;  // scratch of rebuild
  std::uint64_t used_ = 0;
  std::uint32_t largest_ = 0;
};

}  // namespace warmroute::detail
