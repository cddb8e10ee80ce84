/// The ring written down as its rule says, by linear scans, to run beside the real one; and helpers of its tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/ring/hash_ring.hpp"

namespace warmroute::test {

using Members = std::vector<RingMember>;

inline std::string slot(std::string prefix, std::uint64_t i) { return prefix.append(std::to_string(i)); }

/// members replica-0 .. replica-(n-1), numbered 1000, 1001, ... so that numbers and indices differ.
inline Members fleet(std::size_t n, double weight = 1.0) {
  Members members;
  for (std::size_t i = 0; i < n; ++i) {
    members.push_back({slot("replica-", i), static_cast<std::uint32_t>(1000 + i), weight});
  }
  return members;
}

inline HashRing ring_of(const Members& members, RingOptions options = {}) {
  auto ring = HashRing::build(members, options);
  if (!ring) throw std::runtime_error(ring.error().message);
  return std::move(*ring);
}

class NaiveRing {
 public:
  explicit NaiveRing(const Members& members, RingOptions options = {}) {
    for (const RingMember& m : members) {
      const double wanted = std::floor(options.points_per_unit * m.weight + 0.5);
      const auto count = static_cast<std::uint32_t>(std::max(1.0, wanted));
      for (std::uint32_t i = 0; i < count; ++i) {
        std::string bytes = m.ring_id;
        for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(i >> shift));
        points_.push_back({XXH3_64bits_withSeed(bytes.data(), bytes.size(), options.seed), m.ring_id, m.member});
      }
    }
    std::sort(points_.begin(), points_.end());
  }

  /// All distinct owners in the key's order, home first.
  [[nodiscard]] std::vector<std::uint32_t> owners(std::uint64_t key) const {
    std::size_t first = 0;
    while (first < points_.size() && points_[first].hash < key) ++first;
    std::vector<std::uint32_t> found;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const std::uint32_t m = points_[(first + i) % points_.size()].member;
      if (std::find(found.begin(), found.end(), m) == found.end()) found.push_back(m);
    }
    return found;
  }
  /// Keys worth asking: every border and both its neighbours.
  [[nodiscard]] std::vector<std::uint64_t> borders() const {
    std::vector<std::uint64_t> keys{0, 1, ~std::uint64_t{0}};
    for (const auto& p : points_) keys.insert(keys.end(), {p.hash - 1, p.hash, p.hash + 1});
    return keys;
  }
  /// The home's ring_id of a key, and the hash of the point that decides it.
  [[nodiscard]] const std::string& home_id(std::uint64_t key) const {
    for (const auto& p : points_) {
      if (p.hash >= key) return p.ring_id;
    }
    return points_.front().ring_id;
  }
  [[nodiscard]] std::vector<std::uint64_t> hashes() const {
    std::vector<std::uint64_t> all;
    for (const auto& p : points_) all.push_back(p.hash);
    return all;
  }

 private:
  struct Point {
    std::uint64_t hash;
    std::string ring_id;
    std::uint32_t member;
    friend bool operator<(const Point& a, const Point& b) {
      return std::pair(a.hash, a.ring_id) < std::pair(b.hash, b.ring_id);
    }
  };
  std::vector<Point> points_;
};

inline std::vector<std::uint32_t> successors(const HashRing& ring, std::uint64_t key, std::size_t k) {
  std::vector<std::uint32_t> out(k, kNoMember);
  out.resize(ring.successors(key, out));
  return out;
}

inline Members without(Members members, const std::string& ring_id) {
  std::erase_if(members, [&](const RingMember& m) { return m.ring_id == ring_id; });
  return members;
}

}  // namespace warmroute::test
