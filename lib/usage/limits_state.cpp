// GCRA in 128 bits, so that no rounding adds up; budgets know their window and the one before.
#include "usage/limits_state.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace warmroute::usage {
namespace {

constexpr std::int64_t kMostUnits = 1'000'000'000'000'000;  // of one request
constexpr std::int64_t kMostAmount = std::numeric_limits<std::int64_t>::max() / 4;
constexpr Ticks kMostTicks = Ticks{1} << 110;

Ticks ticks(Nanos t) noexcept { return Ticks{t.value} << 32; }
Nanos nanos_up(Ticks t) noexcept {
  const Ticks n = (t + ((Ticks{1} << 32) - 1)) >> 32;
  return Nanos{n > kMostAmount ? kMostAmount : static_cast<std::int64_t>(n)};
}
std::int64_t count_of(const UsageCount& count) noexcept {
  return std::clamp<std::int64_t>(count.value_or(0), 0, kMostUnits);
}
Ticks drain_time(const LimitState& limit, std::int64_t amount) noexcept {
  return amount > limit.most ? kMostTicks : limit.interval * amount;
}

BudgetCount* count_in(LimitState& limit, std::int64_t window) noexcept {
  if (limit.current.window.start == window) return &limit.current;
  if (limit.previous.window.start == window) return &limit.previous;
  return nullptr;
}

Error bad_limit(const LimitSpec& spec, const char* what) {
  return Error{Code::invalid_argument, "limit \"" + spec.name + "\": " + what, kNoOffset};
}

}  // namespace

std::int64_t counted(const LimitSpec& spec, const LimitUse& use) noexcept {
  const auto input = [&] {
    const std::int64_t all = count_of(use.input_tokens);
    if (spec.cached_weight_permille == 1'000) return all;
    const std::int64_t cached = std::min(count_of(use.cached_input_tokens), all);
    return all - cached + (cached * spec.cached_weight_permille + 999) / 1'000;
  };
  switch (spec.unit) {
    case LimitUnit::requests: return 1;
    case LimitUnit::input_tokens: return input();
    case LimitUnit::output_tokens: return count_of(use.output_tokens);
    case LimitUnit::total_tokens: return input() + count_of(use.output_tokens);
    case LimitUnit::cost_nanos: {
      const std::int64_t picos = std::max<std::int64_t>(use.cost_picos.value_or(0), 0);
      return picos / 1'000 + (picos % 1'000 != 0 ? 1 : 0);
    }
  }
  return 0;
}

Result<std::unique_ptr<LimitState>> make_limit(const LimitSpec& spec) {
  if (spec.name.empty()) return bad_limit(spec, "a name is needed");
  if (static_cast<std::uint8_t>(spec.kind) > 2) return bad_limit(spec, "kind: unknown");
  if (static_cast<std::size_t>(spec.unit) >= kLimitUnitCount) return bad_limit(spec, "unit: unknown");
  if (spec.amount < 0 || spec.amount > kMostAmount) return bad_limit(spec, "amount: 0 to 2^61");
  if (spec.cached_weight_permille < 0 || spec.cached_weight_permille > 1'000)
    return bad_limit(spec, "cached_weight_permille: 0 to 1000");
  if (spec.hard_stop && spec.kind != LimitKind::budget) return bad_limit(spec, "hard_stop: of budgets only");
  auto limit = std::make_unique<LimitState>();
  limit->spec = spec;
  if (spec.kind == LimitKind::rate) {
    const std::int64_t burst = spec.burst == 0 ? spec.amount : spec.burst;
    if (spec.amount < 1) return bad_limit(spec, "amount: a rate of 1 at least");
    if (spec.period < milliseconds(1) || spec.period > seconds(366LL * 86'400))
      return bad_limit(spec, "period: 1 ms to 366 days");
    if (burst < 1 || burst / 1'000'000 > spec.amount) return bad_limit(spec, "burst: 1 to a million times the amount");
    limit->spec.burst = burst;
    limit->interval = std::max<Ticks>(ticks(spec.period) / spec.amount, 1);
    limit->burst = limit->interval * burst;
    // Divided once, here: in 128 bits that is as slow as all else of a charge.
    limit->most = static_cast<std::int64_t>(std::min<Ticks>(kMostTicks / limit->interval, kMostAmount));
    limit->units_per_tick = 1.0 / static_cast<double>(limit->interval);
    while ((limit->burst >> limit->shift) > kMostAmount) ++limit->shift;
  }
  if (spec.kind == LimitKind::budget) {
    auto calendar = BudgetCalendar::make(spec.window);
    if (!calendar) return bad_limit(spec, calendar.error().message.c_str());
    limit->calendar = *calendar;
  }
  if (spec.kind == LimitKind::concurrency && spec.unit != LimitUnit::requests)
    return bad_limit(spec, "unit: concurrency counts requests");
  return limit;
}

void change_rate(LimitState& limit, const LimitState& next, Nanos steady) noexcept {
  limit.charges.rescale(limit.interval, next.interval, ticks(steady));
  limit.interval = next.interval;
  limit.burst = next.burst;
  limit.most = next.most;
  limit.units_per_tick = next.units_per_tick;
  limit.shift = next.shift;
}

// A clock that jumps never gives more than a window's amount: back into the window before, its count is still there; back
// further, what was used since goes along.
void roll(LimitState& limit, WallNanos now) {
  BudgetCount& current = limit.current;
  if (now.value >= current.window.start && now.value < current.window.end) return;
  const bool first = current.window.end == current.window.start;
  if (!first && now.value >= limit.previous.window.start && now.value < limit.previous.window.end) {
    std::swap(limit.current, limit.previous);
    return;
  }
  const bool backwards = !first && now.value < current.window.start;
  const BudgetCount next{limit.calendar.at(now), backwards ? current.used : 0};
  limit.previous = current;
  limit.current = next;
}

LimitAnswer ask(LimitState& limit, std::int64_t amount, Nanos steady, WallNanos wall) {
  LimitAnswer a;
  switch (limit.spec.kind) {
    case LimitKind::rate: {
      if (amount > limit.spec.burst) return {false, true, {}, {}};
      if (amount == 0) return a;
      const Ticks now = ticks(steady);
      const Ticks ahead = std::max(limit.charges.arrival(), now) + drain_time(limit, amount) - now - limit.burst;
      a.fits = ahead <= 0;
      if (!a.fits) a.retry_after = nanos_up(ahead);
      return a;
    }
    case LimitKind::budget:
      roll(limit, wall);
      a.fits = amount == 0 || limit.current.used <= limit.spec.amount - amount;
      a.never = amount > limit.spec.amount;
      a.reset = Nanos{limit.current.window.end - wall.value};
      return a;
    case LimitKind::concurrency:
      a.fits = limit.in_flight < limit.spec.amount;
      a.never = limit.spec.amount == 0;
      return a;
  }
  return a;
}

LimitCharge charge(LimitState& limit, std::int64_t amount, Nanos steady) {
  LimitCharge c{&limit, amount, 0, 0};
  switch (limit.spec.kind) {
    case LimitKind::rate: c.order = limit.charges.add(drain_time(limit, amount), ticks(steady)); break;
    case LimitKind::budget:
      limit.current.used += amount;
      c.window = limit.current.window.start;
      break;
    case LimitKind::concurrency: ++limit.in_flight; break;
  }
  return c;
}

void recharge(LimitCharge& c, std::int64_t amount, Nanos steady) {
  LimitState& limit = *c.limit;
  if (limit.spec.kind == LimitKind::rate) {
    const Ticks now = ticks(steady);
    if (amount > c.amount) limit.charges.add_final(drain_time(limit, amount - c.amount), now);
    if (amount < c.amount) limit.charges.give_back(c.order, drain_time(limit, c.amount - amount), now);
  } else if (limit.spec.kind == LimitKind::budget) {
    // Windows older than the one before are closed: nobody asks them any more.
    if (BudgetCount* const count = count_in(limit, c.window)) count->used += amount - c.amount;
  }
  c.amount = amount;
}

void leave(const LimitCharge& c) noexcept {
  if (c.limit->spec.kind == LimitKind::concurrency) --c.limit->in_flight;
  if (c.limit->spec.kind == LimitKind::rate) c.limit->charges.close(c.order);
}

std::int64_t charged(const LimitState& limit, Nanos steady) noexcept {
  const Ticks ahead = std::max<Ticks>(limit.charges.arrival() - ticks(steady), 0);
  const double units = std::ceil(static_cast<double>(ahead) * limit.units_per_tick - 1e-6);
  return static_cast<std::int64_t>(std::min(units, static_cast<double>(kMostAmount)));
}

LimitLeft left(const LimitState& limit, Nanos steady, WallNanos wall) noexcept {
  LimitLeft l;
  l.amount = limit.spec.amount;
  if (limit.spec.kind == LimitKind::rate) {
    const Ticks ahead = std::max<Ticks>(limit.charges.arrival() - ticks(steady), 0);
    // In 64 bits: 128 become a double by a call that costs as much as a lock.
    const auto free = static_cast<std::int64_t>(std::max<Ticks>(limit.burst - ahead, 0) >> limit.shift);
    const double scale = static_cast<double>(std::uint64_t{1} << limit.shift) * limit.units_per_tick;
    l.remaining = static_cast<std::int64_t>(static_cast<double>(free) * scale + 1e-6);
    l.reset = nanos_up(ahead);
  } else if (limit.spec.kind == LimitKind::budget) {
    l.remaining = std::max<std::int64_t>(limit.spec.amount - limit.current.used, 0);
    l.reset = Nanos{limit.current.window.end - wall.value};
  }
  return l;
}

}  // namespace warmroute::usage
