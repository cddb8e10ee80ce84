/// The best few of the candidates, in order.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>

#include "warmroute/route/baselines.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

/// The best few of the eligible, best first: least (first, second), exact ties drawn; and who holds most of the prompt.
struct Ranking {
  struct Place {
    std::int64_t first = 0;
    std::int64_t second = 0;
    std::uint64_t tie = 0;
    std::uint32_t candidate = 0;
    friend constexpr auto operator<=>(const Place&, const Place&) noexcept = default;
  };
  std::array<Place, kMaxFallbacks + 1> places{};
  std::size_t count = 0;
  std::int64_t most_cached = 0;
  std::uint32_t holder = 0;  // of most_cached; among equals the cheapest, where costs were asked for
  std::int64_t holder_cost = std::numeric_limits<std::int64_t>::max();

  [[nodiscard]] bool full() const noexcept { return count == places.size(); }
  /// Whether a candidate of at least this cost can no longer come in.
  [[nodiscard]] bool beyond(std::int64_t first) const noexcept { return full() && first > places[count - 1].first; }
  /// The draw is made only for those who may come in: most candidates end at one comparison.
  void offer(std::int64_t first, std::int64_t second, std::uint64_t draw, std::uint32_t slot,
             std::uint32_t candidate) noexcept {
    if (beyond(first)) return;
    const Place place{first, second, mix(draw ^ slot), candidate};
    if (count == places.size() && !(place < places[count - 1])) return;
    std::size_t at = count < places.size() ? count++ : count - 1;
    while (at > 0 && place < places[at - 1]) {
      places[at] = places[at - 1];
      --at;
    }
    places[at] = place;
  }
  void held(std::int64_t cached, std::int64_t cost, std::uint32_t candidate) noexcept {
    if (cached < most_cached || (cached == most_cached && cost >= holder_cost)) return;
    most_cached = cached;
    holder_cost = cost;
    holder = candidate;
  }
};

}  // namespace warmroute::detail
