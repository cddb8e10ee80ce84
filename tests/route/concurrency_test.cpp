// Routing, finishing, membership, health, policy and statistics at once. Run under ThreadSanitizer, this is the proof that readers
// need no lock; in every build the books must come back to zero.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

TEST(RouterConcurrency, ComesBackToZeroAfterRoutingFinishingAndTopologyChangesAtOnce) {
  Router router({.max_replicas = 16, .max_tickets = 4'096});
  std::atomic<std::int64_t> clock{seconds(1).value};
  const auto now = [&] { return Nanos{clock.fetch_add(1'000, std::memory_order_relaxed)}; };
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(router.add_replica({.name = "fixed-" + std::to_string(i)}, now()));
  constexpr int kWorkers = 4;
  constexpr int kRounds = 2'500;
  std::atomic<int> working{kWorkers};
  std::atomic<std::uint64_t> routed{0};
  const auto work = [&](std::uint64_t seed) {
    std::vector<std::uint32_t> prompt(640);
    std::vector<Ticket> open;
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t d = mix(seed * 1'000'000 + static_cast<std::uint64_t>(round));
      for (std::size_t i = 0; i < prompt.size(); ++i) {
        prompt[i] = static_cast<std::uint32_t>(i + (i > 320 ? (d % 50) * 10'000 : 0));
      }
      Request r;
      r.token_ids = prompt;
      r.session = d % 2 == 0 ? "even" : "odd";
      const Decision decision = router.route(r, now());
      if (decision.routed()) {
        routed.fetch_add(1, std::memory_order_relaxed);
        open.push_back(decision.ticket);
      }
      if (d % 5 == 0) (void)router.peek(r, now());
      if (open.size() > d % 8) {
        const Ticket t = open.back();
        open.pop_back();
        router.first_token(t, now());
        if (d % 7 == 0) router.fail(t, Outcome::cancelled, now());
        else router.finish(t, {640, static_cast<std::int64_t>(d % 640), 30}, now());
        EXPECT_FALSE(router.finish(t, {}, now()));
      }
    }
    for (const Ticket t : open) router.finish(t, {}, now());
    working.fetch_sub(1);
  };
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kWorkers; ++i) threads.emplace_back(work, i + 1);
  threads.emplace_back([&] {  // control: names come and go, health flaps, policies change
    for (std::uint64_t i = 0; working.load() > 0; ++i) {
      auto id = router.add_replica({.name = "moving-" + std::to_string(i % 5)}, now());
      Policy p = router.policy();
      p.algorithm = static_cast<Algorithm>(i % kAlgorithmNames.size());
      p.version = i;
      EXPECT_TRUE(router.set_policy(p));
      const auto rows = router.replicas();
      const ReplicaRow& row = rows[i % rows.size()];
      (void)router.set_health(row.id, static_cast<Health>(i % 3), "flap", now());
      (void)router.signal(row.id, Signal::waiting, static_cast<double>(i % 9), now());
      if (i % 2 == 0) (void)router.signal(row.id, Signal::waiting_tokens, static_cast<double>(i % 7'000), now());
      if (i % 11 == 0) (void)router.clear_cache(row.id, now());
      if (id) {
        EXPECT_TRUE(router.remove_replica(*id, now()));
      }
      router.advance(now());
    }
  });
  threads.emplace_back([&] {
    while (working.load() > 0) {
      const RouterStatistics s = router.statistics();
      for (const auto& r : s.replicas) EXPECT_GE(r.load.requests, 0);
      std::this_thread::yield();
    }
  });
  for (auto& t : threads) t.join();
  router.advance(now());
  const RouterStatistics s = router.statistics();
  EXPECT_EQ(s.tickets_in_flight, 0u);
  EXPECT_GT(routed.load(), 0u);
  std::uint64_t over = 0;
  for (const auto n : s.outcomes) over += n;
  EXPECT_EQ(over, routed.load());
  for (const auto& r : s.replicas) {
    EXPECT_EQ(r.load.requests, 0) << r.name;
    EXPECT_EQ(r.load.pending_tokens, 0) << r.name;
    EXPECT_EQ(r.load.pending_ns, 0) << r.name;
    EXPECT_EQ(r.load.context_tokens, 0) << r.name;
    EXPECT_EQ(r.load.decoding, 0) << r.name;
  }
}

TEST(RouterConcurrency, ReleasesATicketOnceWhenManyThreadsFinishIt) {
  Router router;
  ASSERT_TRUE(router.add_replica({.name = "a"}, Nanos{1}));
  Request r;
  r.input_tokens = 100;
  for (int round = 0; round < 300; ++round) {
    const Ticket t = router.route(r, Nanos{round + 2}).ticket;
    std::atomic<int> won{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (i == 0) router.first_token(t, Nanos{round + 2});
        else if (router.finish(t, {}, Nanos{round + 2})) won.fetch_add(1);
      });
    }
    for (auto& thread : threads) thread.join();
    ASSERT_EQ(won.load(), 1);
  }
  EXPECT_EQ(router.statistics().tickets_in_flight, 0u);
  EXPECT_EQ(router.statistics().replicas[0].load.pending_tokens, 0);
}

}  // namespace
}  // namespace warmroute
