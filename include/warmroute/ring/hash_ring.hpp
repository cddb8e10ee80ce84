/// An immutable consistent-hash ring: a key's home, the ordered list of its distinct successors, weights, and changes
/// of one member that move only that member's share.
///
/// Invariant: a member's points depend on (ring_id, point number, seed) alone, never on the other members, so adding,
/// removing, re-adding or re-weighting one moves keys to or from that one only, and rings made in different ways from
/// the same members are equal byte for byte. Does not: hash keys (pass uniformly distributed 64-bit hashes), know loads
/// (ring/load_bound.hpp), or publish itself (a Snapshot does).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/ring/detail/tables.hpp"

namespace warmroute {

/// Returned where no member answers: the ring is empty, or nobody is eligible.
inline constexpr std::uint32_t kNoMember = std::numeric_limits<std::uint32_t>::max();
/// Members of one ring at most.
inline constexpr std::size_t kMaxRingMembers = 16'384;

struct RingMember {
  std::string ring_id;       ///< a stable slot name, apart from host and pod names; unique, not empty
  std::uint32_t member = 0;  ///< the caller's number for it, returned by look-ups; unique, not kNoMember
  double weight = 1.0;       ///< its share of the keys, relative to the others; > 0

  friend bool operator==(const RingMember&, const RingMember&) = default;
};

struct RingOptions {
  std::uint64_t seed = 0;               ///< of the point positions; routers that must agree use the same
  std::uint32_t points_per_unit = 256;  ///< points of weight 1: shares deviate by 1/sqrt(points), 6.3 % here
  std::uint32_t max_points = 1U << 22;  ///< a ring that would need more is refused, never rescaled (that moves keys)
  std::uint64_t key_rule = 0;           ///< identity of how the caller makes keys; only `movement_between` reads it

  friend bool operator==(const RingOptions&, const RingOptions&) = default;
};

/// A part of the key space. Wider than 64 bits, since one member alone owns all 2^64 keys.
struct KeySpan {
  detail::uint128 keys = 0;

  static constexpr KeySpan everything() noexcept { return {detail::uint128{1} << 64}; }
  /// returns: the part as 0 .. 1, rounded once.
  [[nodiscard]] constexpr double fraction() const noexcept { return static_cast<double>(keys) * 0x1p-64; }
  [[nodiscard]] std::string decimal() const;
  constexpr KeySpan& operator+=(KeySpan other) noexcept {
    keys += other.keys;
    return *this;
  }
  friend constexpr bool operator==(KeySpan, KeySpan) noexcept = default;
};

/// threads: const calls from any number of threads; nothing in them writes. lifetime: owns all it needs.
class HashRing {
 public:
  /// The empty ring: look-ups answer kNoMember.
  HashRing() = default;

  /// shape: members in any order; the ring is the same. No members give an empty ring.
  /// errors: every fault at once in the message, the first one's code: invalid_argument (ring_id empty, weight not
  /// > 0, option out of range), already_exists (ring_id or member twice), capacity (too many members or points).
  /// cost: O(points), 6 ms for 1,024 members of weight 1.
  static Result<HashRing> build(std::span<const RingMember> members, RingOptions options = {});

  /// These give the changed ring and leave this one as it is. errors: as build; not_found. cost: O(points) copied in
  /// runs, no sorting: 0.2 to 0.8 ms at 1,024 members. Chaining them or building anew gives equal rings.
  [[nodiscard]] Result<HashRing> with_added(const RingMember& added) const;
  [[nodiscard]] Result<HashRing> with_removed(std::string_view ring_id) const;
  [[nodiscard]] Result<HashRing> with_weight(std::string_view ring_id, double weight) const;
  /// The same slot served by another member, as after a rollout: no key moves.
  [[nodiscard]] Result<HashRing> with_member(std::string_view ring_id, std::uint32_t member) const;

  /// returns: the member whose point comes first at or after `key`. alloc: none. cost: four cache lines.
  [[nodiscard]] std::uint32_t home(std::uint64_t key) const noexcept {
    if (members_.empty()) return kNoMember;
    return numbers_[home_index(key)];
  }

  /// returns: its index instead (see members). The ring must not be empty.
  [[nodiscard]] std::uint32_t home_index(std::uint64_t key) const noexcept {
    return tables_.entries[tables_.locate(key)].owner;
  }

  /// Fills `out` with the first distinct members clockwise from `key`, home first.
  /// returns: how many, min(out.size(), size()). A shorter list is a prefix of a longer one; without member X every
  /// list is the same less X. alloc: none. cost: as
  /// home while the 16 points from the key on have enough owners, else a RingWalk.
  std::size_t successors(std::uint64_t key, std::span<std::uint32_t> out) const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] bool empty() const noexcept { return members_.empty(); }
  [[nodiscard]] const RingOptions& options() const noexcept { return options_; }
  /// In the order of their ring_id's bytes; an index into this list is what `*_index` and `points_of` mean.
  [[nodiscard]] std::span<const RingMember> members() const noexcept { return members_; }
  /// returns: the index of a ring_id, or kNoMember. cost: O(log size).
  [[nodiscard]] std::uint32_t find(std::string_view ring_id) const noexcept;
  /// returns: members()[index].member. cost: one read in a dense array.
  [[nodiscard]] std::uint32_t member_at(std::uint32_t index) const noexcept { return numbers_[index]; }
  [[nodiscard]] std::uint32_t points() const noexcept { return static_cast<std::uint32_t>(tables_.points()); }
  [[nodiscard]] std::uint32_t points_of(std::uint32_t index) const noexcept {
    return points_before_[index + 1] - points_before_[index];
  }
  /// returns: the points of all members before this index: where its part of an exact split begins.
  [[nodiscard]] std::uint32_t points_before(std::uint32_t index) const noexcept { return points_before_[index]; }
  /// returns: the exact part of the key space of each member, by index. cost: O(points).
  [[nodiscard]] std::vector<KeySpan> shares() const;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

  /// The sorted points, for those who walk them: hash and member index of point i < points().
  [[nodiscard]] std::uint64_t point_hash(std::size_t i) const noexcept { return tables_.hashes[i]; }
  [[nodiscard]] std::uint32_t point_index(std::size_t i) const noexcept { return tables_.entries[i].owner; }
  /// returns: the first point at or after `key`, 0 when there is none. The ring must not be empty.
  [[nodiscard]] std::size_t point_at(std::uint64_t key) const noexcept {
    const std::size_t i = tables_.locate(key);
    return i < points() ? i : 0;
  }

  friend bool operator==(const HashRing&, const HashRing&) = default;

 private:
  friend class RingWalk;
  [[nodiscard]] std::size_t place_of(std::string_view ring_id) const noexcept;
  [[nodiscard]] Result<HashRing> with_points(std::size_t index, std::uint32_t points, RingMember member) const;
  void number_members();
  std::size_t walk_successors(std::uint64_t key, std::span<std::uint32_t> out) const noexcept;

  RingOptions options_;
  std::vector<RingMember> members_;              // sorted by ring_id
  std::vector<std::uint32_t> numbers_;           // members_[i].member, dense for look-ups
  std::vector<std::uint32_t> points_before_{0};  // cumulative, size() + 1 entries
  detail::RingTables tables_;
};

/// The order in which a walk leaves the home.
enum class SpillOrder : std::uint8_t {
  clockwise,  ///< the ring's own successors: a key's spill set is stable, so its prefix is warm there
  permuted,   ///< places drawn per key and seed: one hot member's overflow spreads over all instead of its neighbours
};

/// Gives the distinct members of a ring one by one, home first, each once.
/// threads: one walk belongs to one thread. alloc: none; 2 KiB on the stack that only long walks touch. lifetime: the
/// ring must outlive it. cost: a few ns per member; the whole of N equal members takes about N ln N points.
class RingWalk {
 public:
  RingWalk(const HashRing& ring, std::uint64_t key, SpillOrder order = SpillOrder::clockwise,
           std::uint64_t seed = 0) noexcept
      : ring_(&ring), draw_(key ^ seed) {
    if (ring.empty()) return;
    at_ = ring.point_at(key);
    firsts_ = ring.tables_.entries[at_].firsts;
    if (order == SpillOrder::clockwise) return;
    // Drawing finds 86 % of N equal members in 2N draws; the rest, and rare light ones, come clockwise.
    draws_left_ = 2 * static_cast<std::uint32_t>(ring.size()) + 16;
    firsts_ = 1;
  }

  /// returns: the index (HashRing::members) of the next member, or kNoMember after the last.
  std::uint32_t next_index() noexcept {
    if (firsts_ != 0) {
      const auto offset = static_cast<std::uint32_t>(std::countr_zero(firsts_));
      firsts_ &= firsts_ - 1;
      ++given_;
      return ring_->point_index(at_ + offset);
    }
    return given_ == ring_->size() ? kNoMember : next_beyond_window();
  }
  /// returns: the next member's number, or kNoMember after the last.
  std::uint32_t next() noexcept {
    const std::uint32_t index = next_index();
    return index == kNoMember ? kNoMember : ring_->member_at(index);
  }

 private:
  // Bits are cleared only here, since most walks end within the window and must not pay for it.
  std::uint32_t next_beyond_window() noexcept {
    if (!marking_) {
      marking_ = true;
      std::fill_n(seen_.begin(), (ring_->size() + 63) / 64, std::uint64_t{0});
      const std::size_t window = draws_left_ == 0 ? detail::kRingWindow : 1;
      for (std::size_t i = 0; i < window; ++i) mark(ring_->point_index(at_ + i));
    }
    for (; draws_left_ != 0; --draws_left_) {
      const std::uint32_t index = ring_->home_index(next_draw());
      if (mark(index)) return give(index);
    }
    for (;;) {
      const std::uint32_t index = ring_->point_index(at_);
      at_ = at_ + 1 == ring_->points() ? 0 : at_ + 1;
      if (mark(index)) return give(index);
    }
  }
  std::uint32_t give(std::uint32_t index) noexcept {
    ++given_;
    return index;
  }
  /// returns: whether it is new.
  bool mark(std::uint32_t index) noexcept {
    std::uint64_t& word = seen_[index / 64];
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    const bool fresh = (word & bit) == 0;
    word |= bit;
    return fresh;
  }
  // splitmix64: a fixed, seedable sequence that is the same everywhere.
  std::uint64_t next_draw() noexcept {
    std::uint64_t x = draw_ += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }

  const HashRing* ring_;
  std::uint64_t draw_;
  std::size_t at_ = 0;        // a point; in clockwise order all before it, from the key's on, are given or seen
  std::uint32_t firsts_ = 0;  // what is left of the window at `at_`
  std::uint32_t draws_left_ = 0;
  std::uint32_t given_ = 0;
  bool marking_ = false;  // seen_ is in use
  std::array<std::uint64_t, kMaxRingMembers / 64> seen_;
};

}  // namespace warmroute

#include "warmroute/ring/detail/inl.hpp"
