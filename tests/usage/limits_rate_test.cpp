// Rates whose charges are corrected afterwards, beside a model that knows the truth from the start.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "warmroute/usage/limits.hpp"

namespace warmroute {
namespace limits_rate_tests {

constexpr std::int64_t kUnitMs = 10;  // what one token takes to drain

LimitUse tokens(std::int64_t n) { return {n, 0, 0, 0}; }
UsageTime at_ms(std::int64_t ms) { return {milliseconds(ms), {}}; }

LimitSpec rate(std::int64_t amount) {
  LimitSpec s;
  s.name = "rate";
  s.unit = LimitUnit::input_tokens;
  s.amount = amount;
  s.period = milliseconds(amount * kUnitMs);
  return s;
}

struct Rated {
  explicit Rated(std::int64_t amount, const LimitOptions& options = {})
      : limits(options), id(*limits.scope("key", "a")) {
    EXPECT_TRUE(limits.set_limits(id, std::vector{rate(amount)}));
  }
  LimitDecision reserve(std::int64_t n, std::int64_t ms) { return limits.reserve({&id, 1}, tokens(n), at_ms(ms)); }
  std::int64_t used(std::int64_t ms) { return *limits.used(id, "rate", at_ms(ms)); }
  Limits limits;
  ScopeId id;
};

TEST(LimitsRate, ARefundIsNotLostBecauseLaterRequestsAreCharged) {
  Rated one(2'000);
  const LimitDecision first = one.reserve(1'000, 0);
  ASSERT_TRUE(one.reserve(1'000, 5'000).allowed());
  EXPECT_EQ(one.used(12'000), 800);
  // Had the first one not been, the second would stand alone: 700 of it have drained since 5 s.
  ASSERT_TRUE(one.limits.settle(first.ticket, tokens(0), at_ms(12'000)));
  EXPECT_EQ(one.used(12'000), 300);
}

TEST(LimitsRate, RefundsThatComeLateGiveNothingOfLaterRequests) {
  Rated one(2'000);
  const LimitDecision first = one.reserve(1'000, 0);
  const LimitDecision second = one.reserve(1'000, 0);
  ASSERT_TRUE(one.limits.settle(first.ticket, tokens(0), at_ms(0)));
  ASSERT_TRUE(one.reserve(1'000, 10'000).allowed());  // both have drained, had they been used or not
  ASSERT_TRUE(one.limits.settle(second.ticket, tokens(0), at_ms(10'000)));
  EXPECT_EQ(one.used(10'000), 1'000);
}

TEST(LimitsRate, ASlowerOrFasterRateKeepsWhatIsChargedAsUnits) {
  Rated one(1'000);
  const LimitDecision held = one.reserve(600, 0);
  LimitSpec slower = rate(1'000);
  slower.period = milliseconds(2'000 * kUnitMs);
  ASSERT_TRUE(one.limits.set_limits(one.id, {&slower, 1}));
  EXPECT_EQ(one.used(0), 600);
  EXPECT_EQ(one.used(2'000), 500);
  ASSERT_TRUE(one.limits.settle(held.ticket, tokens(200), at_ms(2'000)));
  EXPECT_EQ(one.used(2'000), 100);
}

// What a limit would be if every request had been charged what it used, when it came.
struct Truth {
  struct Charge {
    std::int64_t ms = 0;
    std::int64_t units = 0;
  };
  std::vector<Charge> charges;
  std::int64_t now = 0;

  [[nodiscard]] std::int64_t ahead_ms() const {
    std::int64_t end = now, after = 0;
    for (std::size_t i = charges.size(); i-- > 0;) {
      after += charges[i].units * kUnitMs;
      if (charges[i].units != 0) end = std::max(end, charges[i].ms + after);
    }
    return end - now;
  }
  std::size_t charge(std::int64_t units) {
    charges.push_back({now, units});
    return charges.size() - 1;
  }
};

TEST(LimitsRate, RandomRefundsGiveWhatTheTruthWouldHaveGiven) {
  constexpr std::int64_t kAmount = 2'000;
  std::int64_t refunds_while_busy = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    struct Open {
      LimitTicket ticket;
      std::size_t charge;
      std::int64_t estimate;
    };
    LimitOptions options;
    options.lease = seconds(1'000'000);
    Rated one(kAmount, options);
    Truth truth;
    std::vector<Open> open;
    std::int64_t clock = 0;
    const std::int64_t stride = 1 + 700 * static_cast<std::int64_t>(seed % 4);  // from always full to mostly idle
    for (int step = 0; step < 1'500; ++step) {
      clock += below(50) == 0 ? below(60'000) - 20'000 : below(stride);  // jumps, also backwards: held
      clock = std::max<std::int64_t>(clock, 0);
      truth.now = std::max(truth.now, clock);
      if (open.empty() || below(2) == 0) {
        const std::int64_t estimate = below(8) == 0 ? 0 : below(400);
        const bool fits = estimate == 0 || truth.ahead_ms() + estimate * kUnitMs <= kAmount * kUnitMs;
        const LimitDecision d = one.reserve(estimate, clock);
        ASSERT_EQ(d.allowed(), fits) << "seed " << seed << " step " << step;
        if (fits) open.push_back({d.ticket, truth.charge(estimate), estimate});
      } else {
        const auto n = static_cast<std::size_t>(below(static_cast<std::int64_t>(open.size())));
        const Open o = open[n];
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(n));
        const std::int64_t actual = below(4) == 0 ? o.estimate + below(100) : below(o.estimate + 1);
        if (actual < o.estimate && truth.ahead_ms() > 0) ++refunds_while_busy;
        if (actual > o.estimate) truth.charge(actual - o.estimate);  // more than reserved counts when it is known
        truth.charges[o.charge].units = std::min(actual, o.estimate);
        ASSERT_TRUE(one.limits.settle(o.ticket, tokens(actual), at_ms(clock)));
      }
      ASSERT_EQ(one.used(clock), (truth.ahead_ms() + kUnitMs - 1) / kUnitMs) << "seed " << seed << " step " << step;
    }
  }
  EXPECT_GT(refunds_while_busy, 1'000);
}

TEST(LimitsRate, ManyThreadsLoseNoRefund) {
  Rated one(100'000);
  std::atomic<std::int64_t> settled{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < 16; ++t) {
    clients.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::pair<LimitTicket, std::int64_t>> open;
      for (int i = 0; i < 400; ++i) {
        const std::int64_t estimate = 1 + random() % 300;
        if (const LimitDecision d = one.reserve(estimate, 1'000); d.allowed()) open.emplace_back(d.ticket, estimate);
        if (open.size() < 4 && i + 1 != 400) continue;
        std::shuffle(open.begin(), open.end(), random);
        for (const auto& [ticket, most] : open) {
          const std::int64_t actual = static_cast<std::int64_t>(random()) % (most + 1) / 8;
          settled.fetch_add(actual);
          if (!one.limits.settle(ticket, tokens(actual), at_ms(1'000))) std::abort();
        }
        open.clear();
      }
    });
  }
  for (std::thread& c : clients) c.join();
  EXPECT_EQ(one.used(1'000), settled.load());
  EXPECT_GT(settled.load(), 1'000);
}

}  // namespace limits_rate_tests
}  // namespace warmroute
