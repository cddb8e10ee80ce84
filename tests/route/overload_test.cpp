// A fleet that has more to do than it can: what a prefill does to those that run there weighs more.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "route/prompts.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::overload_tests {
namespace {

using test::prompt;

// What a prompt of 4,000 tokens is charged for the stall of one request that decodes there, after `others` that still wait.
std::int64_t stall_after(int others, double gamma = 0.06) {
  Router router;
  Policy policy;
  policy.gamma = gamma;
  EXPECT_TRUE(router.set_policy(policy));
  EXPECT_TRUE(router.add_replica({.name = "r"}, Nanos{1}));
  std::int64_t now = 2;
  for (int i = 0; i < others; ++i) {
    const auto tokens = prompt(static_cast<std::uint32_t>(i) * 100'000, 60'000);
    Request r;
    r.token_ids = tokens;
    (void)router.route(r, Nanos{++now});
  }
  const auto tokens = prompt(4'000'000'000, 4'000);
  Request r;
  r.token_ids = tokens;
  const Explanation e = router.explain(r, Nanos{++now});
  const std::int64_t requests = e.candidates[0].load.requests;
  return requests == 0 ? 0 : e.candidates[0].cost.stall / requests;
}

TEST(Overload, AStallCostsMoreTheLongerPromptsWait) {
  const std::int64_t idle = stall_after(1);
  const std::int64_t busy = stall_after(4), full = stall_after(200);
  EXPECT_GT(idle, 0);
  EXPECT_GT(busy, idle);
  EXPECT_GT(full, busy);
  EXPECT_LE(full, 8 * idle + 8);
  EXPECT_EQ(stall_after(200, 0), 0) << "none where policy wants none";
}

TEST(Overload, NoProductOverflowsWhereGammaIsTheLargest) {
  EXPECT_EQ(stall_after(200, 100), stall_after(1, 100)) << "it is as high as it can be already";
}

TEST(Overload, ItIsForgottenWhenPromptsWaitNoMore) {
  Router router;
  EXPECT_TRUE(router.add_replica({.name = "r"}, Nanos{1}));
  std::int64_t now = 2;
  std::vector<Ticket> tickets;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto tokens = prompt(i * 100'000, 60'000);
    Request r;
    r.token_ids = tokens;
    tickets.push_back(router.route(r, Nanos{++now}).ticket);
  }
  const auto stall = [&] {
    const auto tokens = prompt(4'000'000'000, 4'000);
    Request r;
    r.token_ids = tokens;
    const Decision d = router.route(r, Nanos{++now});  // one that runs there
    const Explanation e = router.explain(r, Nanos{++now});
    const std::int64_t out = e.candidates[0].cost.stall / e.candidates[0].load.requests;
    router.fail(d.ticket, Outcome::replica_error, Nanos{++now});
    return out;
  };
  const std::int64_t full = stall();
  for (const Ticket t : tickets) router.fail(t, Outcome::replica_error, Nanos{++now});
  std::int64_t after = 0;
  for (int i = 0; i < 400; ++i) after = stall();
  EXPECT_LT(after, full);
}

}  // namespace
}  // namespace warmroute::overload_tests
