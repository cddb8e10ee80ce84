// Books of pairs: random calls against a naive ledger, with either side lost at any moment; and all of it at once on many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "route/naive_books.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::disaggregate_books_test {
namespace {

struct Open {
  Decision decision;
  bool first = false;
  bool fetched = false;
  std::int64_t lease_until = 0;
  std::int64_t fetch_until = 0;  // 0: no time-out runs
};

class PairBooks : public testing::TestWithParam<std::uint64_t> {
 protected:
  std::uint64_t draw(std::uint64_t n) { return mix(state++) % n; }
  std::uint64_t state = GetParam() * 7'000'000;

  static void check(const Router& router, const std::vector<Open>& open) {
    test::NaiveBooks naive;
    for (const Open& o : open) {
      const Decision& d = o.decision;
      const std::int64_t input = d.input_tokens.value;
      if (!d.is_pair() || !o.fetched) {
        const ReplicaId at = d.is_pair() ? d.prefill_replica : d.replica;
        LoadReading& prompt = naive[{at.slot, at.generation}];
        prompt.requests += 1;
        prompt.context_tokens += input;
        if (o.first) {
          prompt.decoding += 1;
        } else {
          prompt.pending_tokens += d.uncached_tokens().value;
          prompt.pending_ns += d.expected_prefill.value;
        }
      }
      if (!d.is_pair()) continue;
      LoadReading& decode = naive[{d.replica.slot, d.replica.generation}];
      decode.requests += 1;
      decode.decoding += 1;
      decode.context_tokens += input;
    }
    test::expect_books(router, naive, open.size());
  }
};

TEST_P(PairBooks, EqualTheSumOfTheirPartsAtEveryStep) {
  Router router({.max_replicas = 16, .max_tickets = 512});
  Policy policy;
  policy.lease = seconds(50);
  policy.transfer_timeout = seconds(5);
  policy.disaggregate = Disaggregate::decided;
  ASSERT_TRUE(router.set_policy(policy));
  std::vector<ReplicaId> alive;
  std::vector<Open> open;
  Nanos now{seconds(1)};
  std::size_t pairs = 0;
  const char* rounds = std::getenv("WARMROUTE_TEST_ROUNDS");
  const int steps = 6'000 * (rounds != nullptr ? std::max(1, std::atoi(rounds)) : 1);
  const auto add = [&] {
    ReplicaSpec spec{.name = "r" + std::to_string(draw(9))};
    spec.role = static_cast<Role>(draw(3));
    if (auto id = router.add_replica(spec, now)) alive.push_back(*id);
  };
  for (int i = 0; i < 6; ++i) add();
  for (int step = 0; step < steps; ++step) {
    now += milliseconds(static_cast<std::int64_t>(draw(40)));
    Open* some = open.empty() ? nullptr : &open[draw(open.size())];
    const auto over = [&](const Open& o) { return o.lease_until <= now.value; };
    switch (draw(14)) {
      case 0: add(); break;
      case 1: {  // either side of somebody's pair is lost
        if (alive.empty() || draw(3) != 0) break;
        const std::size_t at = draw(alive.size());
        ASSERT_TRUE(router.remove_replica(alive[at], now));
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      case 2: {
        policy.disaggregate = draw(6) == 0   ? Disaggregate::never
                              : draw(2) == 0 ? Disaggregate::always
                                             : Disaggregate::decided;
        policy.unified_pairs = draw(2) == 0;
        policy.pair_min_tokens = static_cast<std::int64_t>(draw(2) * 300);
        ASSERT_TRUE(router.set_policy(policy));
        break;
      }
      case 3:
      case 4:
      case 5: {
        if (some == nullptr || over(*some)) break;
        const bool first = draw(2) == 0;
        if (first) {
          const bool told = some->first && some->lease_until != 0;
          // After an early fetch the first token is still to come.
          const bool expected = !told || (some->decision.is_pair() && some->fetch_until == -1);
          ASSERT_EQ(router.first_token(some->decision.ticket, now), expected);
          if (!expected) break;
          some->first = true;
          some->lease_until = (now + policy.lease).value;
          some->fetch_until = some->decision.is_pair() && !some->fetched ? (now + policy.transfer_timeout).value : 0;
        } else {
          const bool expected =
              some->decision.is_pair() && !some->fetched && (some->fetch_until <= 0 || some->fetch_until > now.value);
          if (some->decision.is_pair() && !some->fetched && !expected) break;  // the time-out may be found or not yet
          ASSERT_EQ(router.transfer_done(some->decision.ticket, now), expected);
          if (!expected) break;
          some->fetched = true;
          some->fetch_until = some->first ? 0 : -1;
          some->first = true;
          some->lease_until = (now + policy.lease).value;
        }
        break;
      }
      case 6:
      case 7:
      case 8: {
        if (some == nullptr || over(*some)) break;
        const Ticket ticket = some->decision.ticket;
        const std::int64_t input = some->decision.input_tokens.value;
        if (draw(2) == 0) {
          ASSERT_TRUE(router.finish(
              ticket, {input, static_cast<std::int64_t>(draw(2'000)), static_cast<std::int64_t>(draw(500))}, now));
        } else {
          ASSERT_TRUE(router.fail(ticket, static_cast<Outcome>(draw(7)), now));
        }
        ASSERT_FALSE(router.transfer_done(ticket, now));
        open.erase(open.begin() + (some - open.data()));
        break;
      }
      default: {
        std::vector<std::uint32_t> prompt(16 * (1 + draw(60)));
        const auto family = static_cast<std::uint32_t>(draw(5));
        for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = family * 100'000 + static_cast<std::uint32_t>(i);
        Request r;
        r.token_ids = prompt;
        const Decision d = router.route(r, now);
        if (!d.routed()) break;
        pairs += d.is_pair() ? 1 : 0;
        open.push_back({d, false, false, (now + policy.lease).value, 0});
        break;
      }
    }
    if (step % 16 == 0) {
      router.advance(now);
      router.advance(now);  // a time-out and the lease behind it are two findings
      std::erase_if(open, over);
      for (Open& o : open) {
        if (o.fetch_until > 0 && o.fetch_until <= now.value) {
          o.fetched = true;
          o.fetch_until = 0;
        }
      }
      check(router, open);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(pairs, 100u);
  for (const Open& o : open) router.finish(o.decision.ticket, {}, now);
  router.advance(now + seconds(1'000));
  check(router, {});
}
INSTANTIATE_TEST_SUITE_P(Seeds, PairBooks, testing::Values(1, 2, 3));

TEST(PairConcurrency, ComesBackToZeroWithEitherSideLostAtAnyMoment) {
  Router router({.max_replicas = 32, .max_tickets = 4'096});
  Policy policy;
  policy.disaggregate = Disaggregate::always;
  policy.unified_pairs = true;
  policy.transfer_timeout = milliseconds(1);
  ASSERT_TRUE(router.set_policy(policy));
  std::atomic<std::int64_t> clock{seconds(1).value};
  const auto now = [&] { return Nanos{clock.fetch_add(1'000, std::memory_order_relaxed)}; };
  const auto spec = [](std::string name, std::uint64_t role) {
    ReplicaSpec s{.name = std::move(name)};
    s.role = static_cast<Role>(role % 3);
    return s;
  };
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(router.add_replica(spec("fixed-" + std::to_string(i), i), now()));
  constexpr int kWorkers = 3;
  std::atomic<int> working{kWorkers};
  std::atomic<std::uint64_t> pairs{0};
  const auto work = [&](std::uint64_t seed) {
    std::vector<std::uint32_t> prompt(640);
    std::vector<Ticket> open;
    for (std::uint64_t round = 0; round < 1'500; ++round) {
      const std::uint64_t d = mix(seed * 1'000'000 + round);
      for (std::size_t i = 0; i < prompt.size(); ++i)
        prompt[i] = static_cast<std::uint32_t>(i + (i > 320 ? (d % 50) * 10'000 : 0));
      Request r;
      r.token_ids = prompt;
      const Decision decision = router.route(r, now());
      if (decision.routed()) open.push_back(decision.ticket);
      if (decision.is_pair()) pairs.fetch_add(1, std::memory_order_relaxed);
      if (d % 5 == 0) (void)router.explain(r, now());
      if (open.size() <= d % 8) continue;
      const Ticket t = open.back();
      open.pop_back();
      if (d % 3 != 0) router.first_token(t, now());
      if (d % 4 != 0) router.transfer_done(t, now());
      if (d % 3 == 0) router.first_token(t, now());
      if (d % 7 == 0) router.fail(t, Outcome::replica_error, now());
      else router.finish(t, {640, static_cast<std::int64_t>(d % 640), 30}, now());
      EXPECT_FALSE(router.transfer_done(t, now()));
    }
    for (const Ticket t : open) router.finish(t, {}, now());
    working.fetch_sub(1);
  };
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kWorkers; ++i) threads.emplace_back(work, i + 1);
  threads.emplace_back([&] {
    for (std::uint64_t i = 0; working.load() > 0; ++i) {
      auto id = router.add_replica(spec("moving-" + std::to_string(i % 5), i), now());
      Policy p = router.policy();
      p.disaggregate = i % 8 == 0 ? Disaggregate::never : i % 2 == 1 ? Disaggregate::always : Disaggregate::decided;
      EXPECT_TRUE(router.set_policy(p));
      if (id) {
        EXPECT_TRUE(router.remove_replica(*id, now()));
      }
      router.advance(now());
      (void)router.statistics();
    }
  });
  for (auto& t : threads) t.join();
  router.advance(now());
  const RouterStatistics s = router.statistics();
  EXPECT_EQ(s.tickets_in_flight, 0u);
  EXPECT_GT(pairs.load(), 0u);
  for (const auto& r : s.replicas) {
    EXPECT_EQ(r.load.requests, 0) << r.name;
    EXPECT_EQ(r.load.pending_tokens, 0) << r.name;
    EXPECT_EQ(r.load.pending_ns, 0) << r.name;
    EXPECT_EQ(r.load.context_tokens, 0) << r.name;
    EXPECT_EQ(r.load.decoding, 0) << r.name;
  }
}

}  // namespace
}  // namespace warmroute::disaggregate_books_test
