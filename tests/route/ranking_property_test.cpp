// A large fleet is not priced in full for every decision; whoever is left out could not have won. Beside every decision stands the
// explanation, which prices every candidate.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

class RankingProperty : public testing::TestWithParam<std::uint64_t> {
 protected:
  std::uint64_t draw(std::uint64_t n) { return mix(state_++) % n; }

  std::vector<BlockHash> prompt() {
    std::vector<BlockHash> path(1 + draw(60));
    const std::uint64_t family = draw(8);
    for (std::size_t i = 0; i < path.size(); ++i) path[i] = BlockHash{mix(family << 32 | i)};
    return path;
  }
  /// The chosen and the fallbacks cost what the cheapest cost, in that order.
  void check(const Router& router, const Request& request, Nanos now) {
    const Decision d = router.peek(request, now);
    const Explanation e = router.explain(request, now);
    ASSERT_EQ(d.verdict, Verdict::routed);
    ASSERT_EQ(d.replica, e.decision.replica);
    std::vector<std::int64_t> all, taken;
    for (const CandidateExplanation& c : e.candidates) all.push_back(c.cost.total);
    std::sort(all.begin(), all.end());
    std::vector<ReplicaId> order{d.replica};
    for (std::size_t i = 0; i < d.fallback_count; ++i) order.push_back(d.fallback_ids[i]);
    for (const ReplicaId id : order) {
      const auto at =
          std::find_if(e.candidates.begin(), e.candidates.end(), [id](const auto& c) { return c.id == id; });
      ASSERT_NE(at, e.candidates.end());
      taken.push_back(at->cost.total);
    }
    all.resize(taken.size());
    ASSERT_EQ(taken, all);
  }

 private:
  std::uint64_t state_ = GetParam() * 1'000'000;
};

TEST_P(RankingProperty, NobodyLeftOutWouldHaveBeenCheaper) {
  Router router({.max_replicas = 64, .max_tickets = 4'096});
  Policy policy;
  policy.session_bonus = milliseconds(static_cast<std::int64_t>(draw(500)));
  ASSERT_TRUE(router.set_policy(policy));
  Nanos now{seconds(1)};
  std::vector<ReplicaId> replicas;
  for (int i = 0; i < 48; ++i) {
    ReplicaSpec spec{.name = "r" + std::to_string(i)};
    if (i % 3 == 0) spec.rates.context_ps = 200'000;
    if (i % 5 == 0) spec.rates.floor_ns = 20'000'000;
    replicas.push_back(*router.add_replica(spec, now));
  }
  std::vector<Ticket> open;
  for (int step = 0; step < 600; ++step) {
    now += milliseconds(static_cast<std::int64_t>(draw(20)));
    const std::vector<BlockHash> path = prompt();
    const std::string session = "s" + std::to_string(draw(6));
    Request request;
    request.blocks = path;
    if (draw(3) == 0) request.session = session;
    ASSERT_NO_FATAL_FAILURE(check(router, request, now)) << step;
    if (draw(4) == 0) request.pinned = replicas[draw(replicas.size())];  // loads that the formula itself would not make
    open.push_back(router.route(request, now).ticket);
    if (draw(2) == 0) router.first_token(open[draw(open.size())], now);
    if (draw(3) == 0) router.finish(open[draw(open.size())], {}, now);
    if (draw(4) != 0) continue;  // what the engine knows of other routers' work
    const ReplicaId id = replicas[draw(replicas.size())];
    ASSERT_TRUE(router.signal(id, Signal::running, static_cast<double>(draw(40)), now));
    ASSERT_TRUE(router.signal(id, Signal::waiting, static_cast<double>(draw(10)), now));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RankingProperty, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace warmroute
