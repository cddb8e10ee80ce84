/// Bounded load on the ring, in whatever unit the caller counts (tokens, requests, microseconds of prefill): a member
/// whose load has reached `factor` times its fair share is passed over, and the request spills to the next one.
///
/// Invariant: the shares are whole units that add up to exactly ceil(factor * (total + request)), split by the ring's
/// points; a member is taken only while its load is below its share. So after an arrival its load is below share + the
/// request itself, and when `total` is the sum of the loads somebody always passes. A share is never below one unit,
/// whatever the weight: a member with nothing in flight always passes (a floor of one request).
/// Does not: move running requests. The bound holds at arrival, not after others have finished.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "warmroute/result.hpp"
#include "warmroute/ring/hash_ring.hpp"

namespace warmroute {

struct LoadBound {
  /// Times the fair share, 1 .. 1000, rounded to thousandths. 1.25 sends a third of a Zipf(1.0) load away from home at
  /// 64 members, 1.5 a quarter, at 3 % against 12 % with 8 members.
  double factor = 1.5;
  SpillOrder order = SpillOrder::clockwise;
  std::uint64_t spill_seed = 0;  ///< of SpillOrder::permuted
  std::uint32_t max_probes = 0;  ///< members looked at before the least loaded of these is taken; 0 = all

  /// errors: invalid_argument.
  [[nodiscard]] Status validate() const {
    if (factor >= 1.0 && factor <= 1000.0) return {};
    std::string message("load bound: factor must be 1 .. 1000, not ");
    return Error{Code::invalid_argument, message.append(std::to_string(factor)), kNoOffset};
  }
};

struct BoundedPick {
  std::uint32_t member = kNoMember;  ///< kNoMember: the ring is empty or nobody is eligible
  std::uint32_t probes = 0;          ///< members whose load was read
  bool diverted = false;             ///< not the first eligible member of the key's order
  bool over_bound = false;           ///< nobody passed: the least loaded for its share, this request included

  friend bool operator==(const BoundedPick&, const BoundedPick&) = default;
};

/// The allowed load of each member for one arrival.
/// threads: a value. alloc: none. cost: one multiplication and division to make, two multiplications per question.
class LoadShares {
 public:
  /// units: `total` and `request` are the caller's; total without this request; negative values count as 0, a request
  /// as at least 1, so that shares exceed the total and somebody passes even when this one costs nothing.
  /// `eligible_points`: of the members that may be chosen, where these are not all; 0 = all of the ring's.
  LoadShares(const HashRing& ring, double factor, std::int64_t request, std::int64_t total,
             std::uint32_t eligible_points = 0) noexcept
      : ring_(&ring), allowed_(allowed(factor, request, total)), points_(ring.points()) {
    if (eligible_points != 0 && eligible_points < points_) {
      points_ = eligible_points;
      partial_ = true;
    }
  }

  /// returns: the whole units that this member may hold, at least 1. With all members eligible the remainder that does
  /// not divide is handed out by cumulative points: share = floor(allowed * upto / points) - floor(allowed * before /
  /// points), so that the shares add up exactly. With a part of the members every share is rounded up instead.
  [[nodiscard]] std::int64_t share(std::uint32_t index) const noexcept {
    const std::uint64_t weight = ring_->points_of(index);
    const std::uint64_t whole = allowed_ / points_;
    const std::uint64_t rest = allowed_ % points_;  // < 2^30, as the points: the products below fit
    const std::uint64_t before = partial_ ? 0 : ring_->points_before(index);
    const std::uint64_t extra = partial_ ? (rest * weight + points_ - 1) / points_
                                         : rest * (before + weight) / points_ - rest * before / points_;
    const detail::uint128 units = detail::uint128{whole} * weight + extra;
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(std::clamp<detail::uint128>(units, 1, kMost)));
  }

  /// returns: load < share(index). Three divisions are needed only when the load is within one unit of the share.
  [[nodiscard]] bool passes(std::uint32_t index, std::int64_t load) const noexcept {
    if (load <= 0) return true;
    const auto units = static_cast<std::uint64_t>(load);
    const detail::uint128 budget = detail::uint128{allowed_} * ring_->points_of(index);
    if (detail::uint128{units + 1} * points_ <= budget) return true;
    if (detail::uint128{units} * points_ >= budget) return false;
    return load < share(index);
  }

  /// returns: whether member a with load_a stands better than b with load_b, relative to their shares.
  [[nodiscard]] bool lighter(std::uint32_t a, std::int64_t load_a, std::uint32_t b,
                             std::int64_t load_b) const noexcept {
    const auto units = [](std::int64_t load) { return load < 0 ? 0 : static_cast<std::uint64_t>(load); };
    return detail::uint128{units(load_a)} * ring_->points_of(b) < detail::uint128{units(load_b)} * ring_->points_of(a);
  }

 private:
  // ceil((total + request) * factor), exact, in thousandths so that 1.1 is 11/10 on every machine.
  static std::uint64_t allowed(double factor, std::int64_t request, std::int64_t total) noexcept {
    const double clamped = factor >= 1.0 ? std::min(factor, 1000.0) : 1.0;
    const auto thousandths = static_cast<std::uint64_t>(clamped * 1000.0 + 0.5);
    const std::uint64_t sum = static_cast<std::uint64_t>(std::max<std::int64_t>(total, 0)) +
                              static_cast<std::uint64_t>(std::max<std::int64_t>(request, 1));
    if (sum < (std::uint64_t{1} << 43)) return (sum * thousandths + 999) / 1000;
    const detail::uint128 units = (detail::uint128{sum} * thousandths + 999) / 1000;
    return static_cast<std::uint64_t>(std::min<detail::uint128>(units, std::numeric_limits<std::uint64_t>::max()));
  }

  const HashRing* ring_;
  std::uint64_t allowed_;
  std::uint64_t points_;
  bool partial_ = false;
};

namespace detail {

template <class LoadOf, class Eligible>
BoundedPick walk_bounded(const HashRing& ring, std::uint64_t key, const LoadBound& bound, const LoadShares& shares,
                         std::int64_t request, LoadOf&& load_of, Eligible&& eligible) {
  BoundedPick pick;
  std::uint32_t best = kNoMember;
  std::int64_t best_load = 0;
  std::uint32_t first = kNoMember;
  RingWalk walk(ring, key, bound.order, bound.spill_seed);
  for (std::uint32_t index = walk.next_index(); index != kNoMember; index = walk.next_index()) {
    const std::uint32_t member = ring.member_at(index);
    if (!eligible(member)) continue;
    if (first == kNoMember) first = member;
    const std::int64_t load = load_of(member);
    ++pick.probes;
    if (shares.passes(index, load)) {
      pick.member = member;
      pick.diverted = member != first;
      return pick;
    }
    const std::int64_t room = std::numeric_limits<std::int64_t>::max() - std::max<std::int64_t>(load, 0);
    const std::int64_t with_request =
        std::max<std::int64_t>(load, 0) + std::min(std::max<std::int64_t>(request, 0), room);
    if (best == kNoMember || shares.lighter(index, with_request, best, best_load)) {
      best = index;
      best_load = with_request;
    }
    if (pick.probes == bound.max_probes) break;
  }
  if (best == kNoMember) return pick;
  pick.member = ring.member_at(best);
  pick.diverted = pick.member != first;
  pick.over_bound = true;
  return pick;
}

}  // namespace detail

/// The first member in the key's order whose load is below its share; if none is, the least loaded for its share.
/// `load_of(member) -> std::int64_t`: in flight there now, without this request. `total`: the sum of these.
/// threads: reads only; concurrent bookings make `total` and loads disagree by what is in motion, no more. alloc: none.
/// cost: a home pick while nobody is full; expected O(1/(factor-1)) probes beyond it otherwise.
template <class LoadOf>
BoundedPick bounded_pick(const HashRing& ring, std::uint64_t key, const LoadBound& bound, std::int64_t request,
                         std::int64_t total, LoadOf&& load_of) {
  if (ring.empty()) return {};
  const LoadShares shares(ring, bound.factor, request, total);
  const std::uint32_t home = ring.home_index(key);
  const std::uint32_t member = ring.member_at(home);
  if (shares.passes(home, load_of(member))) return {member, 1, false, false};  // nearly always: no walk is set up
  return detail::walk_bounded(ring, key, bound, shares, request, load_of, [](std::uint32_t) { return true; });
}

/// The same among those for which `eligible(member)` holds (adapter, health, excluded for a retry). Fair shares are of
/// the eligible members' load and weight, which this adds up itself. cost: O(size) more than bounded_pick.
template <class LoadOf, class Eligible>
BoundedPick bounded_pick_among(const HashRing& ring, std::uint64_t key, const LoadBound& bound, std::int64_t request,
                               LoadOf&& load_of, Eligible&& eligible) {
  std::int64_t total = 0;
  std::uint32_t points = 0;
  for (std::uint32_t index = 0; index < ring.size(); ++index) {
    const std::uint32_t member = ring.member_at(index);
    if (!eligible(member)) continue;
    points += ring.points_of(index);
    const std::int64_t load = std::max<std::int64_t>(load_of(member), 0);
    total += std::min(load, std::numeric_limits<std::int64_t>::max() - total);
  }
  if (points == 0) return {};
  const LoadShares shares(ring, bound.factor, request, total, points);
  return detail::walk_bounded(ring, key, bound, shares, request, load_of, eligible);
}

}  // namespace warmroute
