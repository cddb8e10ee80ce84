/// Engines name blocks by hashes of their own; here such an id leads to the block's place in the tree.
/// The id of a block lies beside its hash in the run, once for all replicas that agree on it. This table only finds the place: 8 bytes per
/// block (node, offset, 16 bits of the id), checked against the run. An entry goes with its block; where that would take long it stays
/// behind, is not believed, and falls out when its shard is rebuilt. A replica that calls a block otherwise gets an alias to the first name.
/// Invariant: after enough calls of `settle` the table takes exactly the bytes that adding the names it still has would ask for.
/// Does not: lock, ask for room (`room_to_add`), or serve readers; only the writer looks here.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "warmroute/prefix/detail/arena.hpp"
#include "warmroute/prefix/detail/memory.hpp"
#include "warmroute/prefix/detail/name_shard.hpp"
#include "warmroute/prefix/detail/node.hpp"

namespace warmroute {

/// What an engine calls a block in its events. Opaque: equal within one engine means the same block after the same prefix.
enum class EngineHash : std::uint64_t {};

}  // namespace warmroute

namespace warmroute::detail {

class EngineIds {
 public:
  /// A block's place; `node` null: unknown.
  struct Place {
    Node* node = nullptr;
    std::uint32_t offset = 0;
  };

  EngineIds(PrefixMemory& memory, NodeArena& arena) : memory_(&memory), arena_(&arena) {}
  EngineIds(const EngineIds&) = delete;
  EngineIds& operator=(const EngineIds&) = delete;
  ~EngineIds() {
    for (Group& g : groups_) {
      g.one.clear(*memory_);
      if (g.parts != nullptr) drop_parts(g);
    }
  }

  /// returns: the place of the block called `id`; of several, one that `prefer(node, offset)` likes.
  template <class Prefer>
  [[nodiscard]] Place find(std::uint64_t id, Prefer&& prefer) const {
    Place found;
    if (id == 0) return found;
    const auto take = [&, this](std::uint32_t number, std::uint32_t offset) {
      const Place place = check(id, number, offset);
      if (place.node == nullptr) return false;
      // engines that do not chain their hashes call several blocks the same
      const bool better = found.node != nullptr && prefer(*place.node, place.offset);
      if (found.node == nullptr || better) found = place;
      return better;
    };
    const std::uint64_t mixed = mix(id);
    for (const Late& late : late_) {
      if (late.mixed == mixed && late.added && take(late.number, late.offset)) return found;
    }
    shard_of(mixed).find(tag_of(mixed), [&take](const NameLine& line, unsigned way) {
      return take(line.numbers[way], line.offsets[way]);
    });
    return found;
  }

  /// returns: that place, if it is a live block of that name.
  [[nodiscard]] Place check(std::uint64_t id, std::uint32_t number, std::uint32_t offset) const noexcept {
    if (id == 0 || !arena_->live(number)) return {};
    Node& node = arena_->node(number);
    const Run& run = *node.run.load(std::memory_order_relaxed);
    const bool there = run.named != 0 && offset < run.length.load(std::memory_order_relaxed) && run.ids()[offset] == id;
    return there ? Place{&node, offset} : Place{};
  }

  /// The block at that place, which had no name until its run was given this one, is called `id`.
  void add(std::uint64_t id, std::uint32_t number, std::uint32_t offset) {
    later({mix(id), number, static_cast<std::uint16_t>(offset), true});
  }

  /// The blocks [from, to) of a named run are about to go from that node. cost: as many cache lines as they have names, kForget at most
  /// between two calls of `end_change`; names beyond stay behind in the table.
  void forget(std::uint32_t number, Run& run, std::uint32_t from, std::uint32_t to) {
    const std::uint64_t* names = run.ids();
    std::uint32_t gone = 0, at = from;
    for (; at < to && to_forget_ != 0; ++at, --to_forget_) {
      if (names[at] == 0) continue;
      later({mix(names[at]), number, static_cast<std::uint16_t>(at), false});
      ++gone;
    }
    run.named -= gone;
    if (at == to) return;
    catch_up();
    std::uint32_t stay = run.named - 1;  // all that are left, without looking, where the whole run goes
    if (from != 0) stay = static_cast<std::uint32_t>(to - at - std::count(names + at, names + to, 0));
    run.named -= stay;
    true_ -= stay;
  }

  /// Ends a change of the tree. Every few changes one shard is looked at: what has become much too large shrinks without a timer.
  void end_change() {
    constexpr std::uint32_t kChangesPerShard = 8;
    to_forget_ = kForget;
    if (to_split_ != 0) catch_up();
    for (; to_split_ != 0; to_split_ &= to_split_ - 1)
      split(groups_[static_cast<unsigned>(std::countr_zero(to_split_))]);
    if (++changes_ % kChangesPerShard == 0 || stale() > used_ / 4) static_cast<void>(settle_next(4));
  }
  /// Shrinks to what the names need, and drops entries whose blocks went: about a thousand entries a call.
  void settle() {
    catch_up();
    std::size_t work = 0;
    for (std::size_t n = 0; n < 256 && work < kSettle; ++n) work += settle_next(1);
  }

  /// returns: an estimate from above of what `ids` additions ask for. What finds no room after all loses its name.
  [[nodiscard]] std::size_t room_to_add(std::size_t ids) const noexcept {
    const std::size_t growing =
        std::min({ids, kGroups * kParts, 4 + ids * 2 / (largest_ + 1)});  // shards that are full by then
    return growing * (2 * std::size_t{largest_} + ids / 1024 + 2) * sizeof(NameLine) +
           (used_ + ids <= kSplit ? 0 : kRoomToSplit);
  }

 private:
  static constexpr std::size_t kGroups = 16, kParts = 64;
  static constexpr std::uint32_t kSplit = 512;  // names of a group that is still one shard
  static constexpr std::size_t kRoomToSplit = kParts * (sizeof(NameShard) + 2 * sizeof(NameLine)) + 4 * kSplit * 8;
  static constexpr std::uint32_t kForget = 1024;  // 15 ns each
  static constexpr std::size_t kSettle = 1024;
  static constexpr std::uint32_t kLate = 16;

  /// Few names are one shard; many are kParts of them, so that no resize is long: 10,000 entries among 10^7 blocks.
  struct Group {
    NameShard one;
    NameShard* parts = nullptr;
  };

  /// A name to be added to the table or taken out of it.
  struct Late {
    std::uint64_t mixed = 0;  // 0: nothing
    std::uint32_t number = 0;
    std::uint16_t offset = 0;
    bool added = false;
  };

  /// One to one: different names stay different.
  [[nodiscard]] static std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
    return x ^ (x >> 32);
  }
  [[nodiscard]] static std::uint16_t tag_of(std::uint64_t mixed) noexcept {
    return static_cast<std::uint16_t>((mixed & 0xFFFF) != 0 ? mixed & 0xFFFF : 1);
  }
  [[nodiscard]] const NameShard& shard_of(std::uint64_t mixed) const noexcept {
    const Group& g = groups_[mixed >> 60];
    return g.parts == nullptr ? g.one : g.parts[(mixed >> 54) % kParts];
  }
  [[nodiscard]] NameShard& shard_of(std::uint64_t mixed) noexcept {
    return const_cast<NameShard&>(static_cast<const EngineIds*>(this)->shard_of(mixed));
  }
  /// returns: the live place that one way of a line names, if there is one.
  [[nodiscard]] Place place_of(const NameLine& line, unsigned way) const noexcept {
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
  /// returns: the mixed name of the block that an entry of `shard` stands for, or 0 if it is not there.
  [[nodiscard]] std::uint64_t true_name(const NameLine& line, unsigned way, const NameShard& shard) const noexcept {
    const Place place = place_of(line, way);
    const std::uint64_t id = place.node == nullptr ? 0 : id_at(place);
    const std::uint64_t mixed = mix(id);
    return id != 0 && tag_of(mixed) == line.tags[way] && &shard_of(mixed) == &shard ? mixed : 0;
  }
  [[nodiscard]] std::uint64_t stale() const noexcept { return used_ - true_; }

  /// Every name is a cold cache line of the table. It is asked for here and changed kLate names later, in the order of the calls: one
  /// block an event then costs 85 ns to store and 76 to remove, where waiting for the line makes it 107 and 119.
  void later(const Late& late) {
    shard_of(late.mixed).prefetch(tag_of(late.mixed));
    Late& place = late_[late_at_++ % kLate];
    const Late before = std::exchange(place, late);
    if (before.mixed != 0) change(before);
  }
  void catch_up() {
    for (std::uint32_t i = 0; i < kLate; ++i) {
      const Late late = std::exchange(late_[late_at_++ % kLate], {});
      if (late.mixed != 0) change(late);
    }
  }
  void change(const Late& late) {
    NameShard& shard = shard_of(late.mixed);
    const std::uint16_t tag = tag_of(late.mixed);
    if (!late.added) {
      const bool gone = shard.erase(tag, late.number, late.offset);
      used_ -= gone;
      true_ -= gone;
    } else if (shard.full() && !grow(shard)) {
      unname(late);
    } else {
      used_ += shard.put(tag, late.number, late.offset);
      ++true_;
      if (shard.used() > kSplit && groups_[late.mixed >> 60].parts == nullptr) to_split_ |= 1U << (late.mixed >> 60);
    }
  }
  /// The table has no room: the block, if it still is there, is one without a name.
  void unname(const Late& late) noexcept {
    if (!arena_->live(late.number)) return;
    Run& run = *arena_->node(late.number).run.load(std::memory_order_relaxed);
    if (run.named != 0 && late.offset < run.length.load(std::memory_order_relaxed) &&
        mix(run.ids()[late.offset]) == late.mixed) {
      run.ids()[late.offset] = 0;
      --run.named;
    }
  }
  /// Makes room for one more. returns: false: there is none.
  bool grow(NameShard& shard) {
    const std::uint32_t lines = NameShard::lines_for(shard.used() + 1);
    if (!memory_->fits(NameShard::bytes(lines) + lines)) return shard.takes_one();
    shard.resize(*memory_, lines);
    largest_ = std::max(largest_, lines);
    round_largest_ = std::max(round_largest_, lines);
    return true;
  }
  /// Drops entries whose blocks went, in the next lines of the shard. returns: whether it was the last of them.
  bool clean(NameShard& shard) {
    constexpr std::uint32_t kLines = 32;  // 5 us where every block's run is cold
    const auto keep = [&](const NameLine& line, unsigned way) { return true_name(line, way, shard) != 0; };
    used_ -= shard.erase_unless(line_at_, line_at_ + kLines, keep);
    line_at_ = line_at_ + kLines < shard.lines() ? line_at_ + kLines : 0;
    return line_at_ == 0;
  }
  /// The names are read for it: the tags do not say to which part they belong.
  void split(Group& group) {
    if (group.parts != nullptr || !memory_->fits(kRoomToSplit + group.one.used() * 32)) return;
    auto* parts = static_cast<NameShard*>(memory_->allocate(kParts * sizeof(NameShard)));
    for (std::size_t i = 0; i < kParts; ++i) new (parts + i) NameShard;
    std::uint32_t moved = 0;
    group.one.for_each([&](const NameLine& line, unsigned way) {
      const std::uint64_t mixed = true_name(line, way, group.one);
      if (mixed == 0) return;
      NameShard& part = parts[(mixed >> 54) % kParts];
      if (part.full()) part.resize(*memory_, NameShard::lines_for(part.used() + 1));
      part.put(line.tags[way], line.numbers[way], line.offsets[way]);
      ++moved;
    });
    used_ -= group.one.used() - moved;
    group.one.clear(*memory_);
    group.parts = parts;
  }
  void drop_parts(Group& group) noexcept {
    for (std::size_t i = 0; i < kParts; ++i) group.parts[i].clear(*memory_);
    memory_->release(std::exchange(group.parts, nullptr), kParts * sizeof(NameShard));
  }
  /// One shard again, where it is small enough for that.
  std::size_t join(Group& group, std::uint32_t most) {
    std::uint32_t names = 0;
    for (std::size_t i = 0; i < kParts; ++i) names += group.parts[i].used();
    if (names > most || !memory_->fits(NameShard::bytes(NameShard::lines_for(names)))) return 0;
    group.one.resize(*memory_, NameShard::lines_for(names));
    for (std::size_t i = 0; i < kParts; ++i) {
      group.parts[i].for_each([&group](const NameLine& line, unsigned way) {
        group.one.put(line.tags[way], line.numbers[way], line.offsets[way]);
      });
    }
    drop_parts(group);
    return names + kParts;
  }

  /// Looks at the next shard: shrinks it if it is more than `slack` times as large as it must be. returns: entries looked at.
  std::size_t settle_next(std::uint32_t slack) {
    Group& group = groups_[group_at_];
    std::size_t work = 1;
    if (group.parts != nullptr && part_at_ == 0) work += join(group, kSplit / slack);
    NameShard& shard = group.parts == nullptr ? group.one : group.parts[part_at_];
    if (stale() > (slack == 1 ? 0 : used_ / 4)) {
      work += 256;
      catch_up();  // what is late would be taken for gone, and be counted twice
      if (!clean(shard)) return work;
    }
    const std::uint32_t wanted = NameShard::lines_for(shard.used());
    const std::uint32_t lines = slack == 1 ? wanted : wanted * 2;
    if (wanted * slack <= shard.lines() && lines < shard.lines() && memory_->fits(NameShard::bytes(lines) + lines)) {
      work += shard.used();
      shard.resize(*memory_, lines);
    }
    round_largest_ = std::max(round_largest_, shard.lines());
    if (group.parts != nullptr && ++part_at_ < kParts) return work;
    part_at_ = 0;
    if (++group_at_ < kGroups) return work;
    group_at_ = 0;
    largest_ = std::exchange(round_largest_, 0);
    return work;
  }

  PrefixMemory* memory_;
  NodeArena* arena_;
  std::array<Group, kGroups> groups_{};
  std::uint64_t used_ = 0, true_ = 0;              // entries; those whose block is there
  std::uint32_t largest_ = 0, round_largest_ = 0;  // lines of a shard
  std::array<Late, kLate> late_{};                 // the oldest stands where the next one goes
  std::uint32_t late_at_ = 0;
  std::uint32_t to_forget_ = kForget, changes_ = 0;
  std::uint32_t to_split_ = 0;              // a bit per group
  std::size_t group_at_ = 0, part_at_ = 0;  // the shard that settle_next looks at
  std::uint32_t line_at_ = 0;               // how far it was cleaned
};

}  // namespace warmroute::detail
