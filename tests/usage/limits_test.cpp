// Limits: each kind by itself, all scopes or none, settling into what was charged, leases, clocks that jump, and threads.
#include "warmroute/usage/limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace warmroute {
namespace {

UsageTime at(std::int64_t s) { return {seconds(s), wall_seconds(s)}; }
LimitUse tokens(std::int64_t input, std::int64_t output, std::int64_t cached = 0) { return {input, cached, output, 0}; }
LimitUse cost(std::int64_t nanos) { return {0, 0, 0, nanos * 1'000}; }

LimitSpec rate(LimitUnit unit, std::int64_t amount, Nanos period = seconds(60)) {
  LimitSpec s;
  s.name = "rate";
  s.unit = unit;
  s.amount = amount;
  s.period = period;
  return s;
}
LimitSpec budget(LimitUnit unit, std::int64_t amount, CalendarUnit every = CalendarUnit::day) {
  LimitSpec s;
  s.name = "budget";
  s.kind = LimitKind::budget;
  s.unit = unit;
  s.amount = amount;
  s.window.unit = every;
  return s;
}
LimitSpec concurrency(std::int64_t amount) {
  LimitSpec s;
  s.name = "at-once";
  s.kind = LimitKind::concurrency;
  s.amount = amount;
  return s;
}

struct OneScope {
  explicit OneScope(const LimitSpec& spec, const LimitOptions& options = {})
      : limits(options), id(*limits.scope("key", "a")), name(spec.name) {
    const Status s = limits.set_limits(id, {&spec, 1});
    EXPECT_TRUE(s) << s.error().message;
  }
  LimitDecision reserve(const LimitUse& use, UsageTime now) { return limits.reserve({&id, 1}, use, now); }
  std::int64_t used(UsageTime now) { return *limits.used(id, name, now); }
  Limits limits;
  ScopeId id;
  std::string name;
};

TEST(Limits, ARateLetsItsBurstThroughAndThenOneByOne) {
  OneScope one(rate(LimitUnit::requests, 7));  // 60 s / 7 is no whole number of nanoseconds
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(one.reserve({}, at(100)).allowed()) << i;
  const LimitDecision d = one.reserve({}, at(100));
  EXPECT_EQ(d.outcome, LimitOutcome::rate_exceeded);
  EXPECT_EQ(d.scope, one.id);
  EXPECT_EQ(limit_status(d.outcome), 429);
  EXPECT_NEAR(static_cast<double>(d.retry_after.value), 60e9 / 7, 2);
  UsageTime then = at(100);
  then.steady += d.retry_after - Nanos{2};
  EXPECT_FALSE(one.reserve({}, then).allowed());
  then.steady += Nanos{2};
  EXPECT_TRUE(one.reserve({}, then).allowed());
  EXPECT_FALSE(one.reserve({}, then).allowed());
}

TEST(Limits, ARateAdmitsItsAmountAndNoMore) {
  OneScope one(rate(LimitUnit::total_tokens, 1'000'000'007));
  std::int64_t passed = 0;
  for (std::int64_t ms = 0; ms < 600'000; ms += 10) {
    const std::int64_t n = 1 + ms % 3'000'017;
    const LimitDecision d = one.reserve(tokens(n, 0), {milliseconds(ms), {}});
    if (!d.allowed()) continue;
    passed += n;
    ASSERT_TRUE(one.limits.settle(d.ticket, tokens(n, 0), {milliseconds(ms), {}}));
  }
  EXPECT_LE(passed, 11 * 1'000'000'007LL);
  EXPECT_GT(passed, 9 * 1'000'000'007LL);
}

TEST(Limits, WhatExceedsALimitAloneNeverPasses) {
  OneScope rated(rate(LimitUnit::input_tokens, 1'000));
  LimitDecision d = rated.reserve(tokens(1'001, 0), at(1));
  EXPECT_EQ(d.outcome, LimitOutcome::larger_than_limit);
  EXPECT_EQ(d.retry_after.value, -1);
  OneScope budgeted(budget(LimitUnit::cost_nanos, 1'000));
  EXPECT_EQ(budgeted.reserve(cost(1'001), at(1)).outcome, LimitOutcome::larger_than_limit);
  EXPECT_TRUE(budgeted.reserve(cost(1'000), at(1)).allowed());
}

TEST(Limits, AllScopesAreChargedOrNone) {
  Limits limits;
  const ScopeId key = *limits.scope("key", "k");
  const ScopeId team = *limits.scope("team", "t");
  const ScopeId model = *limits.scope("model", "m");
  const ScopeId free_scope = *limits.scope("label", "none");
  ASSERT_TRUE(limits.set_limits(key, std::vector{budget(LimitUnit::input_tokens, 1'000)}));
  ASSERT_TRUE(limits.set_limits(team, std::vector{budget(LimitUnit::input_tokens, 500), concurrency(3)}));
  ASSERT_TRUE(limits.set_limits(model, std::vector{rate(LimitUnit::requests, 100)}));
  const std::vector<ScopeId> all{team, key, free_scope, model, key};
  const LimitDecision first = limits.reserve(all, tokens(400, 0), at(1));
  ASSERT_TRUE(first.allowed());
  const LimitDecision second = limits.reserve(all, tokens(200, 0), at(1));
  EXPECT_EQ(second.outcome, LimitOutcome::budget_exceeded);
  EXPECT_EQ(second.scope, team);
  EXPECT_EQ(second.limit, 0u);
  EXPECT_EQ(limits.name(second.scope), (std::pair<std::string, std::string>{"team", "t"}));
  EXPECT_EQ(limits.limits(second.scope)[second.limit].name, "budget");
  EXPECT_EQ(second.retry_after.value, -1);
  EXPECT_EQ(second.reset, seconds(86'399));
  EXPECT_EQ(limit_status(second.outcome), 402);
  EXPECT_EQ(limit_status(second.outcome, 403), 403);
  EXPECT_EQ(*limits.used(key, "budget", at(1)), 400);
  EXPECT_EQ(*limits.used(team, "budget", at(1)), 400);
  EXPECT_EQ(*limits.used(team, "at-once", at(1)), 1);
  EXPECT_EQ(*limits.used(model, "rate", at(1)), 1);
  ASSERT_TRUE(limits.release(first.ticket, at(1)));
  EXPECT_EQ(*limits.used(key, "budget", at(1)), 0);
  EXPECT_EQ(*limits.used(team, "at-once", at(1)), 0);
  EXPECT_EQ(*limits.used(model, "rate", at(1)), 0);
  EXPECT_EQ(limits.reserve(std::vector{ScopeId{99}}, {}, at(1)).outcome, LimitOutcome::invalid);
  EXPECT_EQ(limits.reserve(std::vector<ScopeId>(9, key), {}, at(1)).outcome, LimitOutcome::invalid);
}

TEST(Limits, SettlingChargesTheTruthOnce) {
  OneScope one(budget(LimitUnit::total_tokens, 10'000));
  const LimitDecision d = one.reserve(tokens(1'000, 4'000), at(1));
  EXPECT_EQ(d.left[static_cast<std::size_t>(LimitUnit::total_tokens)].remaining, 5'000);
  EXPECT_EQ(one.used(at(2)), 5'000);
  ASSERT_TRUE(one.limits.settle(d.ticket, tokens(1'100, 50), at(2)));
  EXPECT_EQ(one.used(at(2)), 1'150);
  EXPECT_EQ(one.limits.settle(d.ticket, tokens(1'100, 50), at(2)).code(), Code::stale);
  EXPECT_EQ(one.limits.release(d.ticket, at(2)).code(), Code::stale);
  EXPECT_EQ(one.used(at(2)), 1'150);
  const LimitDecision cut = one.reserve(tokens(1'000, 4'000), at(3));
  ASSERT_TRUE(one.limits.settle(cut.ticket, {900, {}, {}, {}}, at(3)));  // the output is not known: as estimated
  EXPECT_EQ(one.used(at(3)), 1'150 + 900 + 4'000);
  const LimitDecision over = one.reserve(tokens(10, 10), at(4));
  ASSERT_TRUE(one.limits.settle(over.ticket, tokens(10, 9'000), at(4)));
  EXPECT_EQ(one.used(at(4)), 1'150 + 4'900 + 9'010);  // beyond the budget: the truth
  EXPECT_EQ(one.reserve(tokens(1, 0), at(5)).outcome, LimitOutcome::budget_exceeded);
}

TEST(Limits, ARefundGoesIntoTheWindowThatWasCharged) {
  OneScope one(budget(LimitUnit::input_tokens, 1'000));
  const LimitDecision late = one.reserve(tokens(900, 0), at(86'399));
  ASSERT_TRUE(one.reserve(tokens(1'000, 0), at(86'400)).allowed());  // a new day
  ASSERT_TRUE(one.limits.settle(late.ticket, tokens(100, 0), at(86'401)));
  EXPECT_EQ(one.used(at(86'401)), 1'000);
  EXPECT_FALSE(one.reserve(tokens(1, 0), at(86'401)).allowed());
  EXPECT_EQ(one.used(at(86'399)), 100);  // the day before, had the clock gone back

  OneScope rated(rate(LimitUnit::input_tokens, 1'000, seconds(10)));
  const LimitDecision first = rated.reserve(tokens(1'000, 0), at(0));
  ASSERT_TRUE(rated.reserve(tokens(1'000, 0), at(10)).allowed());  // all of the first has drained
  ASSERT_TRUE(rated.limits.settle(first.ticket, tokens(0, 0), at(10)));
  EXPECT_FALSE(rated.reserve(tokens(1, 0), at(10)).allowed());
  OneScope soon(rate(LimitUnit::input_tokens, 1'000, seconds(10)));
  const LimitDecision half = soon.reserve(tokens(1'000, 0), at(0));
  ASSERT_TRUE(soon.limits.settle(half.ticket, tokens(100, 0), at(5)));
  EXPECT_EQ(soon.used(at(5)), 0);
  EXPECT_TRUE(soon.reserve(tokens(1'000, 0), at(5)).allowed());
  EXPECT_FALSE(soon.reserve(tokens(1, 0), at(5)).allowed());
}

TEST(Limits, CachedInputWeighsWhatPolicySays) {
  for (const auto& [permille, expected] : std::map<int, std::int64_t>{{0, 400}, {100, 460}, {1'000, 1'000}}) {
    LimitSpec spec = budget(LimitUnit::input_tokens, 100'000);
    spec.cached_weight_permille = permille;
    OneScope one(spec);
    const LimitDecision d = one.reserve(tokens(1'000, 0, 0), at(1));
    EXPECT_EQ(one.used(at(1)), 1'000);
    ASSERT_TRUE(one.limits.settle(d.ticket, tokens(1'000, 0, 600), at(1)));
    EXPECT_EQ(one.used(at(1)), expected);
  }
}

TEST(Limits, AShadowCountsAndSaysSoButNeverDenies) {
  LimitSpec spec = budget(LimitUnit::requests, 1);
  spec.shadow = true;
  OneScope one(spec);
  EXPECT_FALSE(one.reserve({}, at(1)).shadow_denied);
  const LimitDecision d = one.reserve({}, at(1));
  EXPECT_TRUE(d.allowed());
  EXPECT_TRUE(d.shadow_denied);
  EXPECT_EQ(d.shadow_scope, one.id);
  EXPECT_EQ(one.used(at(1)), 2);
  EXPECT_EQ(one.limits.statistics().shadow_denied, 1u);
  EXPECT_TRUE(limit_headers(d).empty());
}

TEST(Limits, LeasesFreeWhatAnOrphanHeld) {
  for (const OrphanCharge orphans : {OrphanCharge::keep, OrphanCharge::refund}) {
    LimitOptions options;
    options.lease = seconds(30);
    options.orphans = orphans;
    Limits limits(options);
    const ScopeId id = *limits.scope("key", "a");
    ASSERT_TRUE(limits.set_limits(id, std::vector{concurrency(2), budget(LimitUnit::input_tokens, 1'000)}));
    const LimitDecision orphan = limits.reserve({&id, 1}, tokens(100, 0), at(0));
    const LimitDecision alive = limits.reserve({&id, 1}, tokens(100, 0), at(0));
    const LimitDecision denied = limits.reserve({&id, 1}, tokens(100, 0), at(10));
    EXPECT_EQ(denied.outcome, LimitOutcome::too_many_at_once);
    EXPECT_EQ(denied.retry_after, options.concurrency_retry);
    ASSERT_TRUE(limits.extend(alive.ticket, seconds(20)));
    EXPECT_EQ(limits.advance(at(29)), 0u);
    EXPECT_EQ(limits.advance(at(30)), 1u);
    EXPECT_EQ(*limits.used(id, "at-once", at(30)), 1);
    EXPECT_EQ(*limits.used(id, "budget", at(30)), orphans == OrphanCharge::keep ? 200 : 100);
    EXPECT_EQ(limits.settle(orphan.ticket, tokens(1, 0), at(31)).code(), Code::stale);  // late: nothing twice
    EXPECT_EQ(*limits.used(id, "at-once", at(31)), 1);
    EXPECT_TRUE(limits.settle(alive.ticket, tokens(100, 0), at(49)));
    EXPECT_EQ(limits.statistics().expired, 1u);
    EXPECT_EQ(limits.statistics().open, 0u);
    for (int i = 0; i < 1'000; ++i) {  // nothing leaks, and calls end leases by themselves
      const UsageTime now = at(1'000 + i * 16);
      ASSERT_TRUE(limits.reserve({&id, 1}, {}, now).allowed()) << i;
    }
    EXPECT_LE(limits.statistics().open, 2u);
  }
}

TEST(Limits, AHardStopEndsWhatIsBeyondItsReservation) {
  LimitSpec spec = budget(LimitUnit::output_tokens, 1'000);
  spec.hard_stop = true;
  OneScope one(spec);
  const LimitDecision a = one.reserve(tokens(0, 400), at(1));
  const LimitDecision b = one.reserve(tokens(0, 500), at(1));
  EXPECT_EQ(one.limits.progress(a.ticket, tokens(0, 400), at(2)), LimitProgress::go_on);
  EXPECT_EQ(one.limits.progress(a.ticket, tokens(0, 500), at(2)), LimitProgress::go_on);  // 100 were left
  EXPECT_EQ(one.limits.progress(a.ticket, tokens(0, 501), at(2)), LimitProgress::stop);
  EXPECT_EQ(one.limits.progress(b.ticket, tokens(0, 500), at(2)), LimitProgress::go_on);  // was promised
  ASSERT_TRUE(one.limits.settle(a.ticket, tokens(0, 501), at(3)));
  ASSERT_TRUE(one.limits.settle(b.ticket, tokens(0, 500), at(3)));
  EXPECT_EQ(one.used(at(3)), 1'001);
  EXPECT_EQ(one.limits.progress(b.ticket, {}, at(3)), LimitProgress::stale);
}

TEST(Limits, HeadersSayWhatClientsExpect) {
  Limits limits;
  const ScopeId key = *limits.scope("key", "a");
  const ScopeId team = *limits.scope("team", "a");
  ASSERT_TRUE(limits.set_limits(key, std::vector{rate(LimitUnit::requests, 60)}));
  ASSERT_TRUE(limits.set_limits(team, std::vector{rate(LimitUnit::total_tokens, 10'000, seconds(6'000))}));
  const std::vector<ScopeId> both{key, team};
  using Headers = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(limit_headers(limits.reserve(both, tokens(600, 0), at(1))),
            (Headers{{"x-ratelimit-limit-requests", "60"},
                     {"x-ratelimit-remaining-requests", "59"},
                     {"x-ratelimit-reset-requests", "1s"},
                     {"x-ratelimit-limit-tokens", "10000"},
                     {"x-ratelimit-remaining-tokens", "9400"},
                     {"x-ratelimit-reset-tokens", "6m0s"}}));
  const Headers denied = limit_headers(limits.reserve(both, tokens(9'401, 0), at(1)));
  ASSERT_EQ(denied.size(), 7u);
  EXPECT_EQ(denied.back(), (std::pair<std::string, std::string>{"retry-after", "1"}));
  EXPECT_EQ(denied[1].second, "59");
}

TEST(Limits, CalendarWindowsFollowTheirZone) {
  LimitSpec spec = budget(LimitUnit::requests, 1, CalendarUnit::day);
  spec.window.time_zone = "Europe/Berlin";
  OneScope berlin(spec);
  const std::int64_t noon = 1'774'695'600;  // 2026-03-28 12:00 in Berlin
  EXPECT_TRUE(berlin.reserve({}, at(noon)).allowed());
  LimitDecision d = berlin.reserve({}, at(noon));
  EXPECT_EQ(d.reset, seconds(12 * 3'600));
  EXPECT_TRUE(berlin.reserve({}, at(noon + 12 * 3'600)).allowed());  // the 29th, a day of 23 hours
  d = berlin.reserve({}, at(noon + 12 * 3'600));
  EXPECT_EQ(d.reset, seconds(23 * 3'600));
  LimitSpec month = budget(LimitUnit::requests, 1, CalendarUnit::month);
  month.window.anchor_local_seconds = 30 * 86'400;  // the 31st, or the last
  OneScope monthly(month);
  EXPECT_TRUE(monthly.reserve({}, at(1'769'817'600)).allowed());  // 2026-01-31
  EXPECT_EQ(monthly.reserve({}, at(1'769'817'600)).reset, seconds(28 * 86'400));
  OneScope weekly(budget(LimitUnit::requests, 1, CalendarUnit::week));
  EXPECT_TRUE(weekly.reserve({}, at(1'774'828'800)).allowed());  // 2026-03-30, a Monday
  EXPECT_EQ(weekly.reserve({}, at(1'774'828'800)).reset, seconds(7 * 86'400));
  OneScope before(budget(LimitUnit::requests, 1, CalendarUnit::year));
  EXPECT_TRUE(before.reserve({}, at(-1)).allowed());
  EXPECT_EQ(before.reserve({}, at(-1)).reset, seconds(1));
}

TEST(Limits, ClocksThatJumpNeverGiveMore) {
  OneScope one(budget(LimitUnit::requests, 10));
  const auto spend = [&](std::int64_t day) {
    int n = 0;
    while (one.reserve({}, at(day * 86'400 + 5)).allowed()) ++n;
    return n;
  };
  EXPECT_EQ(spend(100), 10);
  EXPECT_EQ(spend(99), 0);    // back into a window never seen: what was used goes along
  EXPECT_EQ(spend(100), 0);   // and forth again
  EXPECT_EQ(spend(101), 10);  // a new day
  EXPECT_EQ(spend(5'000), 10);
  EXPECT_EQ(spend(101), 0);  // the far day was a mistake
  EXPECT_EQ(spend(102), 10);
  OneScope rated(rate(LimitUnit::requests, 1, seconds(10)));
  EXPECT_TRUE(rated.reserve({}, at(1'000)).allowed());
  const LimitDecision d = rated.reserve({}, at(10));  // the steady clock goes back: held
  EXPECT_EQ(d.retry_after, seconds(10));
  EXPECT_TRUE(rated.reserve({}, at(1'010)).allowed());
}

TEST(Limits, DefaultsReachEveryValueAndChangesKeepCounters) {
  Limits limits;
  const ScopeId early = *limits.scope("key", "early");
  ASSERT_TRUE(limits.set_default_limits("key", std::vector{budget(LimitUnit::requests, 2)}));
  const ScopeId late = *limits.scope("key", "late");
  EXPECT_EQ(*limits.scope("key", "late"), late);
  for (const ScopeId id : {early, late}) {
    const LimitDecision held = limits.reserve({&id, 1}, {}, at(1));
    EXPECT_TRUE(held.allowed());
    EXPECT_TRUE(limits.reserve({&id, 1}, {}, at(1)).allowed());
    EXPECT_FALSE(limits.reserve({&id, 1}, {}, at(1)).allowed());
    ASSERT_TRUE(limits.set_limits(id, std::vector{concurrency(9), budget(LimitUnit::requests, 3)}));
    EXPECT_EQ(*limits.used(id, "budget", at(1)), 2);
    EXPECT_TRUE(limits.release(held.ticket, at(1)));  // what is charged before a change is given back after it
    EXPECT_EQ(*limits.used(id, "budget", at(1)), 1);
    EXPECT_EQ(*limits.used(id, "at-once", at(1)), 0);
  }
  ASSERT_TRUE(limits.set_default_limits("key", std::vector{budget(LimitUnit::requests, 0)}));
  EXPECT_TRUE(limits.reserve({&late, 1}, {}, at(1)).allowed());  // has its own
  const ScopeId closed = *limits.scope("key", "closed");
  EXPECT_EQ(limits.reserve({&closed, 1}, {}, at(1)).outcome, LimitOutcome::budget_exceeded);
}

TEST(Limits, FaultsAreNamedAndChangeNothing) {
  Limits limits;
  const ScopeId id = *limits.scope("key", "a");
  std::vector<LimitSpec> bad(10, rate(LimitUnit::requests, 5));
  bad[0].name.clear();
  bad[1].amount = 0;
  bad[2].period = Nanos{5};
  bad[3].cached_weight_permille = 1'001;
  bad[4].hard_stop = true;
  bad[5].burst = -1;
  bad[6] = budget(LimitUnit::requests, 5);
  bad[6].window.time_zone = "Mars/Olympus";
  bad[7] = budget(LimitUnit::requests, 5);
  bad[7].window.count = 0;
  bad[8] = concurrency(4);
  bad[8].unit = LimitUnit::output_tokens;
  bad[9].kind = static_cast<LimitKind>(7);
  for (const LimitSpec& spec : bad) EXPECT_EQ(limits.set_limits(id, {&spec, 1}).code(), Code::invalid_argument);
  EXPECT_EQ(limits.set_limits(id, std::vector(2, concurrency(1))).code(), Code::invalid_argument);
  EXPECT_EQ(limits.set_limits(ScopeId{5}, {}).code(), Code::not_found);
  EXPECT_EQ(limits.scope("", "x").code(), Code::invalid_argument);
  EXPECT_TRUE(limits.limits(id).empty());
  LimitOptions small;
  small.max_scopes = 1;
  small.max_reservations = 64;
  OneScope tight(concurrency(100), small);
  EXPECT_EQ(tight.limits.scope("key", "b").code(), Code::capacity);
  EXPECT_TRUE(tight.reserve({}, at(1)).allowed());
  EXPECT_EQ(tight.reserve({}, at(1)).outcome, LimitOutcome::no_room);
  EXPECT_EQ(tight.used(at(1)), 1);  // what was charged for it is given back
}

// Budgets and concurrency as plain numbers, one day after another.
TEST(Limits, RandomRequestsGiveWhatASequentialModelGives) {
  std::mt19937_64 random(5);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  struct Sequential {
    std::map<std::int64_t, std::int64_t> used;  // by day
    std::int64_t in_flight = 0;
  };
  struct Open {
    LimitTicket ticket;
    std::vector<std::size_t> scopes;
    std::int64_t day = 0;
    std::int64_t estimate = 0;
  };
  Limits limits;
  std::vector<ScopeId> ids;
  std::vector<Sequential> models(6);
  for (int i = 0; i < 6; ++i) {
    ids.push_back(*limits.scope("label", std::to_string(i)));
    ASSERT_TRUE(limits.set_limits(ids.back(), std::vector{budget(LimitUnit::total_tokens, 5'000), concurrency(8)}));
  }
  std::vector<Open> open;
  std::int64_t now = 0;
  for (int step = 0; step < 6'000; ++step) {
    now += below(300);  // two steps in flight cross a day now and then, and no lease ends
    const std::int64_t day = now / 86'400;
    if (open.empty() || below(2) == 0) {
      Open o{kNoLimitTicket, {}, day, below(1'500)};
      std::vector<ScopeId> scopes;
      bool fits = true;
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (below(2) == 0) continue;
        o.scopes.push_back(i);
        scopes.push_back(ids[i]);
        const bool budget_fits = o.estimate == 0 || models[i].used[day] + o.estimate <= 5'000;
        fits = fits && budget_fits && models[i].in_flight < 8;
      }
      std::shuffle(scopes.begin(), scopes.end(), random);
      const LimitDecision d = limits.reserve(scopes, tokens(o.estimate, 0), {Nanos{0}, wall_seconds(now)});
      ASSERT_EQ(d.allowed(), fits) << step;
      if (!fits) continue;
      for (const std::size_t i : o.scopes) models[i].used[day] += o.estimate;
      for (const std::size_t i : o.scopes) ++models[i].in_flight;
      o.ticket = d.ticket;
      open.push_back(o);
    } else {
      const std::size_t n = static_cast<std::size_t>(below(static_cast<std::int64_t>(open.size())));
      const Open o = open[n];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(n));
      const bool give_back = below(4) == 0;
      const std::int64_t actual = give_back ? 0 : below(1'700);
      const UsageTime t{Nanos{0}, wall_seconds(now)};
      ASSERT_TRUE(give_back ? limits.release(o.ticket, t) : limits.settle(o.ticket, tokens(0, actual), t));
      for (const std::size_t i : o.scopes) models[i].used[o.day] += actual - o.estimate;
      for (const std::size_t i : o.scopes) --models[i].in_flight;
    }
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(*limits.used(ids[i], "budget", {Nanos{0}, wall_seconds(now)}), models[i].used[day]) << step;
      ASSERT_EQ(*limits.used(ids[i], "at-once", at(0)), models[i].in_flight) << step;
    }
  }
}

// The usage that was admitted at any time, reservations counted in full, never exceeds the budget; at the end exactly what
// was settled is charged, so no refund is lost.
TEST(Limits, ManyThreadsNeverOvershootOneBudget) {
  constexpr std::int64_t kBudget = 300'000;
  OneScope one(budget(LimitUnit::total_tokens, kBudget));
  std::atomic<std::int64_t> reserved{0};
  std::atomic<std::int64_t> settled{0};
  std::atomic<std::int64_t> worst{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < 64; ++t) {
    clients.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 200; ++i) {
        const std::int64_t estimate = 1 + random() % 500;
        const LimitDecision d = one.reserve(tokens(0, estimate), at(1));
        if (!d.allowed()) continue;
        // Counted before it is given back, and given back here before it is there: this sum is never above the limits' own.
        const std::int64_t sum = reserved.fetch_add(estimate) + estimate;
        for (std::int64_t w = worst.load(); sum > w && !worst.compare_exchange_weak(w, sum);) continue;
        const std::int64_t actual = static_cast<std::int64_t>(random()) % (estimate + 1);
        reserved.fetch_sub(estimate - actual);
        settled.fetch_add(actual);
        if (!one.limits.settle(d.ticket, tokens(0, actual), at(1))) std::abort();
      }
    });
  }
  for (std::thread& c : clients) c.join();
  EXPECT_LE(worst.load(), kBudget);
  EXPECT_GT(worst.load(), kBudget / 2);
  EXPECT_EQ(one.used(at(1)), settled.load());
  EXPECT_EQ(one.limits.statistics().open, 0u);
  EXPECT_EQ(one.limits.statistics().allowed + one.limits.statistics().denied, 64u * 200u);
}

TEST(Limits, ManyThreadsThatMeetNewScopesAtOnceGetTheSameIds) {
  constexpr std::size_t kScopes = 500;
  Limits limits;
  std::vector<std::vector<std::uint32_t>> seen(8);
  std::vector<std::thread> clients;
  for (std::vector<std::uint32_t>& mine : seen) {
    clients.emplace_back([&limits, &mine] {
      for (std::size_t i = 0; i < kScopes; ++i)
        mine.push_back(static_cast<std::uint32_t>(*limits.scope("key", std::to_string(i))));
    });
  }
  for (std::thread& c : clients) c.join();
  for (const auto& one : seen) EXPECT_EQ(one, seen.front());
  EXPECT_EQ(std::set<std::uint32_t>(seen[0].begin(), seen[0].end()).size(), kScopes);
}

}  // namespace
}  // namespace warmroute
