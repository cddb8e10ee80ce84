/// The plain rules to compare with and to fall back on, each as the order in which it would take the candidates.
/// A rule gives two numbers per candidate; least wins, exact ties are drawn from the policy's seed. Sources are named at each.
/// Does not: look at health, adapters or exclusions; only eligible candidates are asked.
#pragma once

#include <cstdint>

namespace warmroute {

/// splitmix64's finaliser (Steele, Lea, Flood 2014) of x + golden gamma: a fixed, seedable permutation of 64-bit numbers.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// What a rule may look at.
struct BaselineView {
  std::uint32_t ordinal = 0;        ///< among the eligible
  std::uint32_t eligible = 1;       ///< how many there are
  std::uint64_t turn = 0;           ///< requests routed in this pool so far
  std::uint64_t tie = 0;            ///< this candidate's draw
  std::uint64_t draw = 0;           ///< the request's draw
  std::int64_t requests = 0;        ///< in flight there
  std::int64_t pending_tokens = 0;  ///< uncached input tokens still to prefill there
  std::int64_t cached_tokens = 0;   ///< of this request, held there
};
struct BaselineRank {
  std::int64_t first = 0;
  std::int64_t second = 0;
};

constexpr BaselineRank random_rank(const BaselineView& v) noexcept {
  return {static_cast<std::int64_t>(v.tie >> 1), 0};
}

constexpr BaselineRank round_robin_rank(const BaselineView& v) noexcept {
  const std::uint64_t now = v.turn % v.eligible;
  return {static_cast<std::int64_t>((v.ordinal + v.eligible - now) % v.eligible), 0};
}

constexpr BaselineRank least_requests_rank(const BaselineView& v) noexcept { return {v.requests, 0}; }

constexpr BaselineRank least_tokens_rank(const BaselineView& v) noexcept { return {v.pending_tokens, 0}; }

/// Two distinct draws, the less loaded of them, the first on a tie (Mitzenmacher 2001). The rest follow by load.
constexpr BaselineRank power_of_two_rank(const BaselineView& v) noexcept {
  const std::uint64_t first = v.draw % v.eligible;
  const std::uint64_t second = v.eligible < 2 ? first : (first + 1 + mix(v.draw) % (v.eligible - 1)) % v.eligible;
  if (v.ordinal == first) return {0, v.requests * 2};
  if (v.ordinal == second) return {0, v.requests * 2 + 1};
  return {1, v.requests};
}

/// Most of the prompt, then fewest requests: pure affinity, which piles everything with a common prefix onto one replica.
constexpr BaselineRank longest_match_rank(const BaselineView& v) noexcept { return {-v.cached_tokens, v.requests}; }

}  // namespace warmroute
