// Random calls against a naive ledger: after every step each replica's book equals what its open tickets add up to.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "route/naive_books.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

struct OpenTicket {
  Ticket ticket;
  ReplicaId replica;
  std::int64_t input = 0;
  std::int64_t uncached = 0;
  std::int64_t pending_ns = 0;
  bool first = false;
  std::int64_t lease_until = 0;
};

class BooksProperty : public testing::TestWithParam<std::uint64_t> {
 protected:
  std::uint64_t draw(std::uint64_t n) { return mix(state++) % n; }
  std::uint64_t state = GetParam() * 1'000'000;

  void check(const Router& router, const std::vector<OpenTicket>& open) {
    test::NaiveBooks naive;
    for (const OpenTicket& t : open) {
      LoadReading& l = naive[{t.replica.slot, t.replica.generation}];
      l.requests += 1;
      l.context_tokens += t.input;
      if (t.first) {
        l.decoding += 1;
      } else {
        l.pending_tokens += t.uncached;
        l.pending_ns += t.pending_ns;
      }
    }
    test::expect_books(router, naive, open.size());
  }
};

TEST_P(BooksProperty, EqualTheSumOfTheirOpenTicketsAtEveryStep) {
  Router router({.max_replicas = 8, .max_tickets = 512});
  Policy policy;
  policy.lease = seconds(50);
  ASSERT_TRUE(router.set_policy(policy));
  std::vector<ReplicaId> alive;
  std::vector<OpenTicket> open;
  Nanos now{seconds(1)};
  const char* rounds = std::getenv("WARMROUTE_TEST_ROUNDS");
  const int steps = 4'000 * (rounds != nullptr ? std::max(1, std::atoi(rounds)) : 1);
  for (int step = 0; step < steps; ++step) {
    now += milliseconds(static_cast<std::int64_t>(draw(40)));
    switch (draw(12)) {
      case 0: {
        if (auto id = router.add_replica(
                {.name = "r" + std::to_string(draw(6)), .weight = 1.0 + static_cast<double>(draw(3))}, now)) {
          alive.push_back(*id);
        }
        break;
      }
      case 1: {
        if (alive.empty() || draw(3) != 0) break;
        const std::size_t at = draw(alive.size());
        ASSERT_TRUE(router.remove_replica(alive[at], now));
        alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      case 2: {
        if (alive.empty()) break;
        const auto health = static_cast<Health>(draw(3));
        ASSERT_TRUE(router.set_health(alive[draw(alive.size())], health, "drawn", now));
        break;
      }
      case 3: {
        policy.algorithm = static_cast<Algorithm>(draw(kAlgorithmNames.size()));
        ASSERT_TRUE(router.set_policy(policy));
        break;
      }
      case 4:
      case 5: {
        if (open.empty()) break;
        OpenTicket& t = open[draw(open.size())];
        if (t.lease_until <= now.value) break;
        ASSERT_EQ(router.first_token(t.ticket, now), !t.first);
        if (!t.first) t.lease_until = (now + policy.lease).value;
        t.first = true;
        break;
      }
      case 6:
      case 7: {
        if (open.empty()) break;
        const std::size_t at = draw(open.size());
        const OpenTicket t = open[at];
        if (t.lease_until <= now.value) break;
        if (draw(2) == 0) {
          ASSERT_TRUE(router.finish(
              t.ticket, {t.input, static_cast<std::int64_t>(draw(2'000)), static_cast<std::int64_t>(draw(500))}, now));
        } else {
          ASSERT_TRUE(router.fail(t.ticket, static_cast<Outcome>(draw(7)), now));
        }
        ASSERT_FALSE(router.fail(t.ticket, Outcome::cancelled, now));
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
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
        open.push_back({d.ticket, d.replica, d.input_tokens.value, d.uncached_tokens().value, d.expected_prefill.value,
                        false, (now + policy.lease).value});
        break;
      }
    }
    if (step % 16 == 0) {
      router.advance(now);  // every lease that is over is found
      std::erase_if(open, [&](const OpenTicket& t) { return t.lease_until <= now.value; });
      check(router, open);
      if (HasFatalFailure()) return;
    }
  }
  for (const OpenTicket& t : open) router.finish(t.ticket, {}, now);
  router.advance(now + seconds(1'000));
  check(router, {});
}

INSTANTIATE_TEST_SUITE_P(Seeds, BooksProperty, testing::Values(1, 2, 3));

}  // namespace
}  // namespace warmroute
