/// The best few of the candidates, in order.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "warmroute/route/baselines.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

/// Keeps the N best of what comes, best first: the last makes room for a better one.
template <class Place, std::size_t N>
void insert_place(std::array<Place, N>& places, std::size_t& count, const Place& place) noexcept {
  if (count == N && !(place < places[N - 1])) return;
  std::size_t at = count < N ? count++ : N - 1;
  for (; at > 0 && place < places[at - 1]; --at) places[at] = places[at - 1];
  places[at] = place;
}

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

  /// A candidate that costs more than this can no longer come in.
  [[nodiscard]] std::int64_t limit() const noexcept {
    return count == places.size() ? places[count - 1].first : std::numeric_limits<std::int64_t>::max();
  }
  [[nodiscard]] bool has(std::uint32_t candidate) const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (places[i].candidate == candidate) return true;
    }
    return false;
  }
  /// The draw is made only for those who may come in: most candidates end at one comparison.
  void offer(std::int64_t first, std::int64_t second, std::uint64_t draw, std::uint32_t slot,
             std::uint32_t candidate) noexcept {
    if (first <= limit()) insert_place(places, count, Place{first, second, mix(draw ^ slot), candidate});
  }
  void held(std::int64_t cached, std::int64_t cost, std::uint32_t candidate) noexcept {
    if (cached < most_cached || (cached == most_cached && cost >= holder_cost)) return;
    most_cached = cached;
    holder_cost = cost;
    holder = candidate;
  }
};

/// The N lowest of what is offered, ascending, exact ties drawn as Ranking draws them.
template <std::size_t N>
class Lowest {
 public:
  struct Place {
    std::int64_t value = std::numeric_limits<std::int64_t>::max();
    std::uint64_t tie = 0;
    std::uint32_t candidate = 0;
    friend constexpr auto operator<=>(const Place&, const Place&) noexcept = default;
  };
  [[nodiscard]] bool takes(std::int64_t value) const noexcept { return value <= places_[N - 1].value; }
  void offer(std::int64_t value, std::uint64_t draw, std::uint32_t slot, std::uint32_t candidate) noexcept {
    if (takes(value)) insert_place(places_, count_, Place{value, mix(draw ^ slot), candidate});
  }
  [[nodiscard]] std::span<const Place> all() const noexcept { return {places_.data(), count_}; }
  [[nodiscard]] bool full() const noexcept { return count_ == N; }

 private:
  std::array<Place, N> places_{};
  std::size_t count_ = 0;
};

}  // namespace warmroute::detail
