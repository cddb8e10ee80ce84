// A window's index is guessed from the civil difference to the anchor, which is off by one at most, and then corrected.
#include "usage/limits_calendar.hpp"

#include <algorithm>

namespace warmroute::usage {
namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The anchor `months` later, on the last day of a month that is too short.
absl::CivilSecond plus_months(const absl::CivilSecond& anchor, std::int64_t months) {
  const absl::CivilMonth month = absl::CivilMonth(anchor) + months;
  const absl::CivilDay last = absl::CivilDay(month + 1) - 1;
  return absl::CivilSecond(month.year(), month.month(), std::min(anchor.day(), last.day()), anchor.hour(),
                           anchor.minute(), anchor.second());
}

}  // namespace

Result<BudgetCalendar> BudgetCalendar::make(const CalendarWindow& window) {
  if (window.count < 1 || window.count > 100'000)
    return Error{Code::invalid_argument, "window.count: 1 to 100000", kNoOffset};
  if (static_cast<std::uint8_t>(window.unit) > static_cast<std::uint8_t>(CalendarUnit::year))
    return Error{Code::invalid_argument, "window.unit: unknown", kNoOffset};
  if (window.anchor_local_seconds < -100'000'000'000 || window.anchor_local_seconds > 100'000'000'000)
    return Error{Code::invalid_argument, "window.anchor_local_seconds: beyond 3000 years", kNoOffset};
  BudgetCalendar c;
  c.unit_ = window.unit;
  c.count_ = window.count;
  c.anchor_ = absl::CivilSecond(1970) + window.anchor_local_seconds;
  if (window.unit == CalendarUnit::week && window.anchor_local_seconds == 0) c.anchor_ = absl::CivilDay(1970, 1, 5);
  c.zone_ = absl::UTCTimeZone();
  if (window.time_zone != "UTC" && !absl::LoadTimeZone(std::string(window.time_zone), &c.zone_))
    return Error{Code::invalid_argument, "window.time_zone: " + window.time_zone + " is not installed", kNoOffset};
  return c;
}

std::int64_t BudgetCalendar::start_of(std::int64_t index) const {
  const std::int64_t n = index * count_;
  absl::CivilSecond civil = anchor_;
  switch (unit_) {
    case CalendarUnit::minute:
    case CalendarUnit::hour: {
      const absl::Duration step = unit_ == CalendarUnit::hour ? absl::Hours(n) : absl::Minutes(n);
      return absl::ToUnixNanos(absl::FromCivil(anchor_, zone_) + step);
    }
    case CalendarUnit::day: civil += n * 86'400; break;
    case CalendarUnit::week: civil += n * 7 * 86'400; break;
    case CalendarUnit::month: civil = plus_months(anchor_, n); break;
    case CalendarUnit::year: civil = plus_months(anchor_, n * 12); break;
  }
  return absl::ToUnixNanos(absl::FromCivil(civil, zone_));
}

BudgetWindow BudgetCalendar::at(WallNanos now) const {
  const absl::Time time = absl::FromUnixNanos(now.value);
  const absl::CivilSecond civil = absl::ToCivilSecond(time, zone_);
  std::int64_t units = 0;
  switch (unit_) {
    case CalendarUnit::minute: units = floor_divide(civil - anchor_, 60); break;
    case CalendarUnit::hour: units = floor_divide(civil - anchor_, 3'600); break;
    case CalendarUnit::day: units = floor_divide(civil - anchor_, 86'400); break;
    case CalendarUnit::week: units = floor_divide(civil - anchor_, 7 * 86'400); break;
    case CalendarUnit::month: units = absl::CivilMonth(civil) - absl::CivilMonth(anchor_); break;
    case CalendarUnit::year: units = civil.year() - anchor_.year(); break;
  }
  std::int64_t index = floor_divide(units, count_);
  BudgetWindow w{start_of(index), start_of(index + 1)};
  while (now.value < w.start) w = {start_of(--index), w.start};
  while (now.value >= w.end && w.end > w.start) {
    ++index;
    w = {w.end, start_of(index + 1)};
  }
  return w;
}

}  // namespace warmroute::usage
