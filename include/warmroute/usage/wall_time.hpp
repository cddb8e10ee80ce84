/// The two clocks of accounting, both the caller's: the steady one for rates, leases and ages, the wall clock for validity
/// dates and calendar budgets. Invariant: they are of different types, so that mixing them up does not compile.
/// Does not: read a clock, know a calendar (usage/limits.hpp does).
#pragma once

#include "warmroute/types.hpp"

namespace warmroute {

/// units: nanoseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
using WallNanos = detail::Quantity<struct WallNanosUnit>;

constexpr WallNanos wall_seconds(std::int64_t n) noexcept { return WallNanos{n * 1'000'000'000}; }

/// One moment on both clocks.
struct UsageTime {
  Nanos steady{};
  WallNanos wall{};
};

}  // namespace warmroute
