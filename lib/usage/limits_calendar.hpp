// Calendar windows of budgets. Private to lib.
#pragma once

#include <absl/time/time.h>

#include <cstdint>

#include "warmroute/result.hpp"
#include "warmroute/usage/limits.hpp"

namespace warmroute::usage {

// One window. units: nanoseconds of the wall clock. `end` is exclusive.
struct BudgetWindow {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

class BudgetCalendar {
 public:
  // errors: invalid_argument: count, or a time zone that is not installed.
  static Result<BudgetCalendar> make(const CalendarWindow& window);
  [[nodiscard]] BudgetWindow at(WallNanos now) const;

 private:
  [[nodiscard]] std::int64_t start_of(std::int64_t index) const;

  CalendarUnit unit_ = CalendarUnit::month;
  std::int64_t count_ = 1;
  absl::CivilSecond anchor_;
  absl::TimeZone zone_;
};

}  // namespace warmroute::usage
