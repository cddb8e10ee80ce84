/// The arrays behind a HashRing and how they are made: from nothing in one bucket sort, or from an older ring by
/// copying the runs between the points of the one member that changed. Both ways give the same bytes.
///
/// Invariant: `hashes` is sorted by (hash, owner); owners are numbered in the order of their ring_id bytes, so that
/// this is the order (hash, ring_id). Four entries of padding let `locate` read past the end without a test.
/// Does not: check anything; HashRing has validated members and options before it calls.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "warmroute/detail/xxh3.hpp"

namespace warmroute::detail {

__extension__ typedef unsigned __int128 uint128;

inline constexpr std::size_t kRingPadding = 4;  // hashes that locate reads at once
inline constexpr std::size_t kRingWindow = 16;  // points whose distinct owners a point knows
inline constexpr unsigned kNoShift = 63;

/// A point's owner, and which of the points from this one on are the first of their owner: bit j is set when none of
/// the j points before point i + j, back to i, has its owner. The first distinct owners are then the lowest set bits,
/// with no comparison and no branch per point.
struct RingPoint {
  std::uint16_t owner;
  std::uint16_t firsts;

  friend bool operator==(RingPoint, RingPoint) = default;
};

struct RingTables {
  std::vector<std::uint64_t> hashes;   ///< `points` sorted hashes, then kRingPadding times 2^64-1
  std::vector<RingPoint> entries;      ///< of each point; then the first ones again: the ring is closed
  std::vector<std::uint32_t> buckets;  ///< [b] = first point with hash >> shift >= b; one entry more than buckets
  unsigned shift = kNoShift;

  [[nodiscard]] std::size_t points() const noexcept { return hashes.empty() ? 0 : hashes.size() - kRingPadding; }
  friend bool operator==(const RingTables&, const RingTables&) = default;

  /// returns: the first point with hash >= key, or points() (whose entry is the first point's again).
  /// cost: three cache lines. Counting four points at once instead of stepping saves the branch that would be
  /// mispredicted on every other key: 6.6 -> 2.3 ns per home at 8 members, 7.5 -> 3.2 at 64 (bench_ring).
  [[nodiscard]] std::size_t locate(std::uint64_t key) const noexcept {
    const std::uint64_t* const hash = hashes.data();
    std::size_t i = buckets[key >> shift];
    // The caller's next read, a few points on at most. Overlapping the two misses saves a third of a cold pick
    // (home_latency at 4,096 members, 460 -> 310 ns) and costs a warm one 0.2 ns.
    __builtin_prefetch(entries.data() + i);
    for (;;) {
      const auto below = static_cast<std::size_t>(hash[i] < key) + static_cast<std::size_t>(hash[i + 1] < key) +
                         static_cast<std::size_t>(hash[i + 2] < key) + static_cast<std::size_t>(hash[i + 3] < key);
      i += below;
      if (below < kRingPadding) return i;
    }
  }
};

/// Appends the hashes of the points first .. last-1 of a member. The placement rule itself: XXH3-64 of the ring_id's
/// bytes followed by the point's number as u32 little-endian, with the ring's seed.
inline void append_ring_points(std::string_view ring_id, std::uint32_t first, std::uint32_t last, std::uint64_t seed,
                               std::vector<std::uint64_t>& out) {
  std::string bytes(ring_id);
  const std::size_t at = bytes.size();
  bytes.resize(at + 4);
  for (std::uint32_t i = first; i < last; ++i) {
    for (unsigned b = 0; b < 4; ++b) bytes[at + b] = static_cast<char>((i >> (8 * b)) & 0xFF);
    out.push_back(XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed));
  }
}

/// returns: how far to shift a key for its bucket: 2^ceil(log2(points)) buckets, at least two.
inline unsigned ring_shift(std::size_t points) noexcept {
  return points <= 2 ? kNoShift : 64U - static_cast<unsigned>(std::bit_width(points - 1));
}

/// Fills shift and buckets from the hashes, in any order. Counting, not scanning for borders: no branch per point.
inline void index_ring_buckets(std::span<const std::uint64_t> hashes, RingTables& tables) {
  tables.shift = ring_shift(hashes.size());
  tables.buckets.assign((std::size_t{1} << (64U - tables.shift)) + 1, 0);
  for (const std::uint64_t hash : hashes) ++tables.buckets[(hash >> tables.shift) + 1];
  std::uint32_t sum = 0;
  for (std::uint32_t& entry : tables.buckets) entry = sum += entry;
}

/// Makes room first, so that padding does not copy what it pads.
inline void reserve_ring(std::size_t points, RingTables& tables) {
  tables.hashes.reserve(points + kRingPadding);
  tables.entries.reserve(points + kRingWindow);
}

/// Adds the padding and fills in `firsts`. From the last point to the first: a point's window is its successor's, moved
/// by one, less the bit of its own owner's next point. `members`: owners are below it.
inline void finish_ring(std::size_t points, std::size_t members, RingTables& tables) {
  tables.hashes.resize(points + kRingPadding, ~std::uint64_t{0});
  tables.entries.resize(points + kRingWindow);
  for (std::size_t i = 0; i < kRingWindow; ++i) tables.entries[points + i] = tables.entries[i % points];
  std::vector<std::size_t> next(members, ~std::size_t{0} / 2);  // where each owner's next point is
  std::uint32_t firsts = 0;
  for (std::size_t i = points + kRingWindow; i-- > 0;) {
    RingPoint& entry = tables.entries[i];
    const std::size_t distance = std::min(next[entry.owner] - i, kRingWindow);
    next[entry.owner] = i;
    firsts = ((firsts << 1) | 1) & ~(1U << distance) & 0xFFFFU;
    entry.firsts = static_cast<std::uint16_t>(firsts);
  }
  for (std::size_t i = 0; i < kRingWindow; ++i) tables.entries[points + i] = tables.entries[i % points];
}

/// Orders one bucket by (hash, owner). Buckets hold one point on average; the long way is for unlucky ring_ids only.
/// They arrive owner by owner, so a stable sort by hash is enough.
inline void sort_ring_bucket(std::uint64_t* hashes, RingPoint* entries, std::size_t count) {
  if (count > 32) {
    std::vector<std::pair<std::uint64_t, std::uint16_t>> pairs(count);
    for (std::size_t i = 0; i < count; ++i) pairs[i] = {hashes[i], entries[i].owner};
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t i = 0; i < count; ++i) std::tie(hashes[i], entries[i].owner) = pairs[i];
    return;
  }
  for (std::size_t i = 1; i < count; ++i) {
    const std::uint64_t hash = hashes[i];
    const RingPoint entry = entries[i];
    std::size_t j = i;
    for (; j > 0 && hashes[j - 1] > hash; --j) {
      hashes[j] = hashes[j - 1];
      entries[j] = entries[j - 1];
    }
    hashes[j] = hash;
    entries[j] = entry;
  }
}

/// shape: `unsorted` holds the points of owner 0, then of owner 1, ...; owner o's end at points_before[o + 1].
/// cost: O(points): the bucket index doubles as the table of a counting sort.
inline RingTables sort_ring(std::span<const std::uint64_t> unsorted, std::span<const std::uint32_t> points_before) {
  RingTables tables;
  index_ring_buckets(unsorted, tables);
  reserve_ring(unsorted.size(), tables);
  tables.hashes.resize(unsorted.size());
  tables.entries.resize(unsorted.size());
  std::vector<std::uint32_t> next(tables.buckets.begin(), tables.buckets.end() - 1);
  for (std::size_t owner = 0; owner + 1 < points_before.size(); ++owner) {
    for (std::size_t i = points_before[owner]; i < points_before[owner + 1]; ++i) {
      const std::uint32_t at = next[unsorted[i] >> tables.shift]++;
      tables.hashes[at] = unsorted[i];
      tables.entries[at].owner = static_cast<std::uint16_t>(owner);
    }
  }
  for (std::size_t b = 0; b + 1 < tables.buckets.size(); ++b) {
    const std::size_t begin = tables.buckets[b];
    const std::size_t count = tables.buckets[b + 1] - begin;
    if (count > 1) sort_ring_bucket(tables.hashes.data() + begin, tables.entries.data() + begin, count);
  }
  finish_ring(unsorted.size(), points_before.size() - 1, tables);
  return tables;
}

/// What happens to the points of one member.
struct RingChange {
  std::vector<std::uint64_t> hashes;  ///< sorted, not empty
  bool adding = false;                ///< they come; else they leave
  std::uint16_t owner = 0;            ///< whose: in the new numbering when they come, in the old one when they leave
  int renumber = 0;  ///< added to the owners behind: +1 for a new member, -1 for one that is gone, or 0
};

/// Copies the points in runs. returns: where in the new ring each hash came in or left, ascending.
inline std::vector<std::size_t> change_ring_points(const RingTables& old, const RingChange& change,
                                                   RingTables& tables) {
  std::vector<std::size_t> places;
  places.reserve(change.hashes.size());
  const std::uint32_t first_moved = change.owner + (change.adding ? 0U : 1U);
  const auto renumbered = [first_moved, by = change.renumber](RingPoint entry) {
    return static_cast<std::uint16_t>(entry.owner + by * static_cast<int>(entry.owner >= first_moved));  // no branch
  };
  std::size_t from = 0;
  const auto copy_until = [&](std::size_t to) {
    tables.hashes.insert(tables.hashes.end(), old.hashes.data() + from, old.hashes.data() + to);
    tables.entries.insert(tables.entries.end(), old.entries.data() + from, old.entries.data() + to);
    if (change.renumber != 0) {
      RingPoint* const copied = tables.entries.data() + tables.entries.size() - (to - from);
      for (std::size_t i = 0; i < to - from; ++i) copied[i].owner = renumbered(copied[i]);
    }
    from = to;
    places.push_back(tables.hashes.size());
  };
  const std::size_t end = old.points();
  for (const std::uint64_t hash : change.hashes) {
    std::size_t at = std::max(old.locate(hash), from);
    if (change.adding) {
      while (at < end && old.hashes[at] == hash && renumbered(old.entries[at]) < change.owner) ++at;
      copy_until(at);
      tables.hashes.push_back(hash);
      tables.entries.push_back({change.owner, 0});
    } else {
      while (old.entries[at].owner != change.owner) ++at;
      copy_until(at);
      ++from;
    }
  }
  copy_until(end);
  places.pop_back();
  return places;
}

/// Does finish_ring's work where only the points at `places` came or left: a window reaches 16 points, so only the 16
/// points before each place see a difference. From the last place to the first, since a window is made from the next.
inline void finish_changed_ring(std::size_t points, std::span<const std::size_t> places, RingTables& tables) {
  tables.hashes.resize(points + kRingPadding, ~std::uint64_t{0});
  tables.entries.resize(points + kRingWindow);
  std::copy_n(tables.entries.begin(), kRingWindow, tables.entries.begin() + static_cast<std::ptrdiff_t>(points));
  for (std::size_t p = places.size(); p-- > 0;) {
    std::size_t i = places[p] + 1 >= points ? 0 : places[p] + 1;
    std::uint32_t firsts = tables.entries[i].firsts;
    for (std::size_t step = 0; step <= kRingWindow; ++step) {
      i = i == 0 ? points - 1 : i - 1;
      RingPoint* const entry = tables.entries.data() + i;
      std::uint32_t distance = 1;
      while (distance < kRingWindow && entry[distance].owner != entry->owner) ++distance;
      firsts = ((firsts << 1) | 1) & ~(1U << distance) & 0xFFFFU;
      entry->firsts = static_cast<std::uint16_t>(firsts);
    }
  }
  std::copy_n(tables.entries.begin(), kRingWindow, tables.entries.begin() + static_cast<std::ptrdiff_t>(points));
}

/// Copies `old` with the change, after which there are `members`. cost: O(points) of plain copying, no sorting.
inline RingTables change_ring(const RingTables& old, const RingChange& change, std::size_t members) {
  RingTables tables;
  const std::size_t points = change.adding ? old.points() + change.hashes.size() : old.points() - change.hashes.size();
  reserve_ring(points, tables);
  const std::vector<std::size_t> places = change_ring_points(old, change, tables);
  if (ring_shift(points) != old.shift) {
    index_ring_buckets(tables.hashes, tables);
  } else {
    tables.shift = old.shift;
    tables.buckets = old.buckets;
    std::uint32_t* const buckets = tables.buckets.data();
    for (std::size_t i = 0; i < change.hashes.size(); ++i) {  // all behind i + 1 hashes move by as many
      const std::size_t end =
          i + 1 < change.hashes.size() ? change.hashes[i + 1] >> old.shift : tables.buckets.size() - 1;
      const auto moved = static_cast<std::uint32_t>(change.adding ? i + 1 : ~i);
      for (std::size_t b = (change.hashes[i] >> old.shift) + 1; b <= end; ++b) buckets[b] += moved;
    }
  }
  if (change.hashes.size() * kRingWindow < points / 8) finish_changed_ring(points, places, tables);
  else finish_ring(points, members, tables);
  return tables;
}

}  // namespace warmroute::detail
