/// Seeded randomness and summary figures for replays and simulations, the same on every platform: no libm, no
/// standard-library distributions (their results differ between implementations).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace warmroute::trace {

/// splitmix64: one 64-bit state, passes BigCrush, any seed is good.
class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// returns: a value below `bound` (bound >= 1), by the high half of the product: the bias is below bound / 2^64.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  /// returns: first .. last, both included.
  constexpr std::int64_t between(std::int64_t first, std::int64_t last) noexcept {
    return first + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(last - first) + 1));
  }

  /// returns: an exponential variate of mean 1, by von Neumann's comparison of uniform draws: a falling run u1 >= u2 >=
  /// ... of odd length accepts u1 as the fraction; each rejected run adds one. Exact up to the 53 bits of the fraction.
  constexpr double exponential() noexcept {
    for (double whole = 0.0;; whole += 1.0) {
      const std::uint64_t first = next() >> 11;
      std::uint64_t last = first;
      bool accepted = true;  // a run of length 1 is odd
      for (std::uint64_t u = next() >> 11; u < last; u = next() >> 11) {
        last = u;
        accepted = !accepted;
      }
      if (accepted) return whole + static_cast<double>(first) * 0x1.0p-53;
    }
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  std::uint64_t state_;
};

/// returns: the value at `permille` / 1000 by nearest rank (the smallest value that at least that share does not
/// exceed); 0 for no values. shape: `sorted` ascending.
template <class T>
constexpr T percentile(std::span<const T> sorted, std::size_t permille) noexcept {
  if (sorted.empty()) return T{};
  const std::size_t rank = (permille * sorted.size() + 999) / 1000;
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace warmroute::trace
