/// The arrays behind a HashRing and how they are made: from nothing in one bucket sort, or from an older ring by
/// moving the runs between the points of the one member that changed. Both ways give the same bytes.
///
/// Invariant: `hashes` is sorted by (hash, owner); owners are numbered in the order of their ring_id bytes, so that this
/// is the order (hash, ring_id). Four entries of padding let `locate` read past the end without a test.
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

inline constexpr std::size_t kRingPadding = 4;
inline constexpr unsigned kNoShift = 63;

struct RingTables {
  std::vector<std::uint64_t> hashes;   ///< `points` sorted hashes, then kRingPadding times 2^64-1
  std::vector<std::uint16_t> owners;   ///< owner of each; then the first owner again, since the ring is closed
  std::vector<std::uint32_t> buckets;  ///< [b] = first point with hash >> shift >= b; one entry more than buckets
  unsigned shift = kNoShift;

  [[nodiscard]] std::size_t points() const noexcept {
    return hashes.empty() ? 0 : hashes.size() - kRingPadding;
  }
  friend bool operator==(const RingTables&, const RingTables&) = default;

  /// returns: the first point with hash >= key, or points() (whose owner entry is the first point's).
  /// cost: three cache lines. Counting four points at once instead of stepping saves the branch that would be
  /// mispredicted on every other key.
  [[nodiscard]] std::size_t locate(std::uint64_t key) const noexcept {
    const std::uint64_t* const hash = hashes.data();
    std::size_t i = buckets[key >> shift];
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

/// Fills shift and buckets from the hashes, in any order. Counting instead of scanning for borders: no branch per point.
inline void index_ring_buckets(std::span<const std::uint64_t> hashes, RingTables& tables) {
  tables.shift = ring_shift(hashes.size());
  tables.buckets.assign((std::size_t{1} << (64U - tables.shift)) + 1, 0);
  for (const std::uint64_t hash : hashes) ++tables.buckets[(hash >> tables.shift) + 1];
  std::uint32_t sum = 0;
  for (std::uint32_t& entry : tables.buckets) entry = sum += entry;
}

inline void pad_ring(std::size_t points, RingTables& tables) {
  tables.hashes.resize(points + kRingPadding, ~std::uint64_t{0});
  tables.owners.resize(points + kRingPadding, tables.owners.front());
}

/// Orders one bucket by (hash, owner). Buckets hold one point on average; the long way is for unlucky ring_ids only.
inline void sort_ring_bucket(std::uint64_t* hashes, std::uint16_t* owners, std::size_t count) {
  if (count > 32) {
    std::vector<std::pair<std::uint64_t, std::uint16_t>> pairs(count);
    for (std::size_t i = 0; i < count; ++i) pairs[i] = {hashes[i], owners[i]};
    std::sort(pairs.begin(), pairs.end());
    for (std::size_t i = 0; i < count; ++i) std::tie(hashes[i], owners[i]) = pairs[i];
    return;
  }
  for (std::size_t i = 1; i < count; ++i) {
    const std::uint64_t hash = hashes[i];
    const std::uint16_t owner = owners[i];
    std::size_t j = i;
    for (; j > 0 && (hashes[j - 1] > hash || (hashes[j - 1] == hash && owners[j - 1] > owner)); --j) {
      hashes[j] = hashes[j - 1];
      owners[j] = owners[j - 1];
    }
    hashes[j] = hash;
    owners[j] = owner;
  }
}

/// shape: `unsorted` holds the points of owner 0, then of owner 1, ...; owner o's end at points_before[o + 1].
/// cost: O(points): the bucket index doubles as the table of a counting sort.
inline RingTables sort_ring(std::span<const std::uint64_t> unsorted, std::span<const std::uint32_t> points_before) {
  RingTables tables;
  index_ring_buckets(unsorted, tables);
  tables.hashes.resize(unsorted.size());
  tables.owners.resize(unsorted.size());
  std::vector<std::uint32_t> next(tables.buckets.begin(), tables.buckets.end() - 1);
  for (std::size_t owner = 0; owner + 1 < points_before.size(); ++owner) {
    for (std::size_t i = points_before[owner]; i < points_before[owner + 1]; ++i) {
      const std::uint32_t at = next[unsorted[i] >> tables.shift]++;
      tables.hashes[at] = unsorted[i];
      tables.owners[at] = static_cast<std::uint16_t>(owner);
    }
  }
  for (std::size_t b = 0; b + 1 < tables.buckets.size(); ++b) {
    const std::size_t begin = tables.buckets[b];
    const std::size_t count = tables.buckets[b + 1] - begin;
    if (count > 1) sort_ring_bucket(tables.hashes.data() + begin, tables.owners.data() + begin, count);
  }
  pad_ring(unsorted.size(), tables);
  return tables;
}

/// What happens to the points of one member. Exactly one of the two lists is used; both are sorted.
struct RingChange {
  std::vector<std::uint64_t> gone;   ///< hashes that leave
  std::vector<std::uint64_t> fresh;  ///< hashes that come
  std::uint16_t owner = 0;           ///< whose: gone in the old numbering, fresh in the new one
  int renumber = 0;                  ///< added to owners >= `owner` (fresh) or > `owner` (gone): +1, 0, -1
};

/// Copies `old` with the change. cost: O(points) copying in runs; no sorting.
inline RingTables change_ring(const RingTables& old, const RingChange& change) {
  RingTables tables;
  const std::size_t points = old.points() + change.fresh.size() - change.gone.size();
  tables.hashes.reserve(points + kRingPadding);
  tables.owners.reserve(points + kRingPadding);
  const bool adding = !change.fresh.empty();
  const std::uint32_t first_moved = change.owner + (adding ? 0U : 1U);
  const auto renumbered = [&](std::uint16_t owner) {
    return static_cast<std::uint16_t>(owner + (owner >= first_moved ? change.renumber : 0));
  };
  std::size_t from = 0;
  const auto copy_until = [&](std::size_t to) {
    tables.hashes.insert(tables.hashes.end(), old.hashes.data() + from, old.hashes.data() + to);
    const std::size_t at = tables.owners.size();
    tables.owners.resize(at + (to - from));
    std::transform(old.owners.data() + from, old.owners.data() + to, tables.owners.data() + at, renumbered);
    from = to;
  };
  const std::size_t end = old.points();
  for (const std::uint64_t hash : change.gone) {
    std::size_t at = std::max(old.locate(hash), from);
    while (old.owners[at] != change.owner) ++at;
    copy_until(at);
    ++from;
  }
  for (const std::uint64_t hash : change.fresh) {
    std::size_t at = std::max(old.locate(hash), from);
    while (at < end && old.hashes[at] == hash && renumbered(old.owners[at]) < change.owner) ++at;
    copy_until(at);
    tables.hashes.push_back(hash);
    tables.owners.push_back(change.owner);
  }
  copy_until(end);
  index_ring_buckets(tables.hashes, tables);
  pad_ring(points, tables);
  return tables;
}

}  // namespace warmroute::detail
