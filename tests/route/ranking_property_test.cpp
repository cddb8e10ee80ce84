// A large fleet is not priced in full for every decision; whoever is left out could not have won. Beside every decision stands the
// explanation, which prices every candidate.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

class RankingProperty : public testing::TestWithParam<std::uint64_t> {
 protected:
  std::uint64_t draw(std::uint64_t n) { return mix(state_++) % n; }

  /// Eight families; with instructions, two thirds of the prompts begin with one of two, which in time every replica holds.
  std::vector<BlockHash> prompt() {
    std::vector<BlockHash> path(1 + draw(60));
    const std::uint64_t family = 1 + draw(8);
    const std::uint64_t instruction = instructions_ ? draw(3) : 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
      const bool common = i < 10 * instruction;
      path[i] = BlockHash{mix((common ? 100 + instruction : family + 10 * instruction) << 32 | i)};
    }
    return path;
  }
  /// A quarter of the replicas take half to twice the time of their kind.
  void set_apart(Router& router, std::size_t replicas) {
    LearnedPool learned;
    for (std::size_t i = 0; i < replicas; i += 4)
      learned.replicas.push_back(
          {"r" + std::to_string(i), 0, (std::int64_t{1} << 19) + static_cast<std::int64_t>(draw(3 << 19))});
    ASSERT_EQ(router.restore_learned("", learned)->replicas, learned.replicas.size());
  }
  /// The chosen and the fallbacks cost what the cheapest cost, in that order.
  void check(const Router& router, const Request& request, Nanos now) {
    const Decision d = router.peek(request, now);
    const Explanation e = router.explain(request, now);
    ASSERT_EQ(d.verdict, Verdict::routed);
    ASSERT_EQ(d.replica, e.decision.replica);
    std::vector<std::int64_t> all, taken;
    std::int64_t most_cached = 0;
    for (const CandidateExplanation& c : e.candidates) {
      all.push_back(c.cost.total);
      most_cached = std::max(most_cached, c.cached_tokens[0] + c.cached_tokens[1] + c.cached_tokens[2]);
    }
    ASSERT_EQ(d.best_cached_tokens.value, most_cached);
    std::sort(all.begin(), all.end());
    std::vector<ReplicaId> order{d.replica};
    for (std::size_t i = 0; i < d.fallback_count; ++i) order.push_back(d.fallback_ids[i]);
    for (const ReplicaId id : order) {
      const auto at =
          std::find_if(e.candidates.begin(), e.candidates.end(), [id](const auto& c) { return c.id == id; });
      ASSERT_NE(at, e.candidates.end());
      taken.push_back(at->cost.total);
    }
    ASSERT_EQ(taken.size(), kMaxFallbacks + 1);
    all.resize(taken.size());
    ASSERT_EQ(taken, all);
  }

  bool instructions_ = false;

 private:
  std::uint64_t state_ = GetParam() * 1'000'000;
};

// Each seed has some of all that a router can be told of: other routers' requests or their number, engines that report blocks on every tier,
// replicas that are slower or quicker than their kind, small caches, a new replica in slow start.
TEST_P(RankingProperty, NobodyLeftOutWouldHaveBeenCheaper) {
  const bool told = draw(2) == 0, tiers = draw(3) == 0, apart = draw(3) == 0, ramps = draw(3) == 0;
  instructions_ = draw(3) != 0;
  Router router({.max_replicas = 64, .max_tickets = 4'096});
  Policy policy;
  policy.session_bonus = milliseconds(static_cast<std::int64_t>(draw(500)));
  policy.routers = draw(2) == 0 ? 1 : 4;
  policy.capacity_tokens = draw(2) == 0 ? 20'000 : 2'000'000;
  policy.host_transfer_per_token = Nanos{2'000};
  ASSERT_TRUE(router.set_policy(policy));
  Nanos now{seconds(1)};
  std::vector<ReplicaId> replicas;
  for (int i = 0; i < 48; ++i) {
    ReplicaSpec spec{.name = "r" + std::to_string(i)};
    if (i % 3 == 0) spec.rates.context_ps = 200'000;
    if (i % 5 == 0) spec.rates.floor_ns = 20'000'000;
    if (ramps && i == 40) spec.slow_start = seconds(100);
    replicas.push_back(*router.add_replica(spec, now));
  }
  if (apart) {
    ASSERT_NO_FATAL_FAILURE(set_apart(router, replicas.size()));
  }
  std::vector<Ticket> open;
  std::vector<EngineHash> names;
  for (int step = 0; step < 600; ++step) {
    now += milliseconds(static_cast<std::int64_t>(draw(20)));
    const std::vector<BlockHash> path = prompt();
    const std::string session = "s" + std::to_string(draw(6));
    Request request;
    request.blocks = path;
    if (draw(3) == 0) request.session = session;
    if (draw(8) == 0) request.excluded = std::span(replicas).subspan(draw(40), 3);
    if (request.excluded.empty()) {
      ASSERT_NO_FATAL_FAILURE(check(router, request, now)) << step;
    }
    if (draw(4) == 0) request.pinned = replicas[draw(replicas.size())];  // loads that the formula itself would not make
    open.push_back(router.route(request, now).ticket);
    if (draw(2) == 0) router.first_token(open[draw(open.size())], now);
    if (draw(3) == 0) router.finish(open[draw(open.size())], {}, now);
    const ReplicaId id = replicas[draw(replicas.size())];
    if (tiers && draw(3) == 0) {
      names.resize(path.size());
      for (std::size_t i = 0; i < path.size(); ++i) names[i] = EngineHash{mix(std::uint64_t(path[i]) ^ id.slot)};
      StoredBlocks stored;
      stored.tier = static_cast<Tier>(draw(3));
      stored.ids = names;
      stored.blocks = path;
      ASSERT_TRUE(router.blocks_stored(id, stored, now));
    }
    if (draw(4) != 0) continue;  // what the engine knows of other routers' work
    ASSERT_TRUE(router.signal(id, Signal::running, static_cast<double>(draw(40)), now));
    ASSERT_TRUE(router.signal(id, Signal::waiting, static_cast<double>(draw(10)), now));
    if (draw(2) == 0) {
      ASSERT_TRUE(router.signal(id, Signal::waiting_tokens, static_cast<double>(draw(60'000)), now));
    }
    if (!told || draw(4) != 0) continue;  // and what these say of it themselves
    std::vector<PeerLoad> loads;
    for (int i = 0; i < 48; i += 1 + static_cast<int>(draw(3))) {
      const auto requests = static_cast<std::int64_t>(1 + draw(20));
      const auto prompts = static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(requests) + 1));
      loads.push_back({"r" + std::to_string(i), 0, requests, prompts, prompts * 70'000'000, requests * 5'000,
                       static_cast<std::int64_t>(draw(200'000'000))});
    }
    ASSERT_TRUE(router.peer_loads(static_cast<std::uint32_t>(1 + draw(3)), loads, now));
  }
}

// A fleet of at most 16 is priced in full, and so is what is left of a larger one when all others are excluded: the best of all pairs, and of all
// single replicas, is that of some sixteen.
TEST_P(RankingProperty, NoPairLeftOutWouldHaveBeenCheaper) {
  const bool limits = draw(2) == 0, told = draw(2) == 0, apart = draw(3) == 0;
  instructions_ = draw(2) == 0;
  Router router({.max_replicas = 64, .max_tickets = 4'096});
  Policy policy;
  policy.disaggregate = Disaggregate::decided;
  policy.unified_pairs = draw(2) == 0;
  policy.routers = draw(2) == 0 ? 1 : 4;
  policy.session_bonus = milliseconds(static_cast<std::int64_t>(draw(500)));
  policy.kv_transfer_per_token = Nanos{1'000};
  if (limits) policy.ttft_limit = milliseconds(2'000);
  if (limits) policy.itl_limit = milliseconds(30);
  ASSERT_TRUE(router.set_policy(policy));
  Nanos now{seconds(1)};
  constexpr std::size_t kGroup = 8, kGroups = 6;
  std::vector<ReplicaId> replicas;
  for (std::size_t i = 0; i < kGroup * kGroups; ++i) {
    ReplicaSpec spec{.name = "r" + std::to_string(i)};
    spec.role = i % 6 == 0 ? Role::prefill : i % 6 == 1 ? Role::decode : Role::unified;
    if (i % 4 == 0) spec.rates.floor_ns = 12'000'000;
    replicas.push_back(*router.add_replica(spec, now));
  }
  if (apart) {
    ASSERT_NO_FATAL_FAILURE(set_apart(router, replicas.size()));
  }
  std::vector<Ticket> open;
  std::size_t pairs = 0;
  for (int step = 0; step < 400; ++step) {
    now += milliseconds(static_cast<std::int64_t>(draw(60)));
    const std::vector<BlockHash> path = prompt();
    const std::string session = "s" + std::to_string(draw(6));
    Request request;
    request.blocks = path;
    request.input_tokens = static_cast<std::int64_t>(path.size() * 16 + draw(4'000));
    if (draw(3) == 0) request.session = session;
    if (step % 4 == 0) {
      const Explanation all = router.explain(request, now);
      std::int64_t pair = std::numeric_limits<std::int64_t>::max(), unified = pair;
      for (std::size_t a = 0; a < kGroups; ++a) {
        for (std::size_t b = a + 1; b < kGroups; ++b) {
          std::vector<ReplicaId> others;
          for (std::size_t i = 0; i < replicas.size(); ++i)
            if (i / kGroup != a && i / kGroup != b) others.push_back(replicas[i]);
          request.excluded = others;
          const PairExplanation part = router.explain(request, now).pair;
          request.excluded = {};
          if (part.possible) pair = std::min(pair, part.terms.total);
          unified = std::min(unified, part.unified_total);
        }
      }
      ASSERT_TRUE(all.pair.possible) << step;
      ASSERT_EQ(all.pair.terms.total, pair) << step;
      ASSERT_EQ(all.pair.unified_total, unified) << step;
    }
    const Decision d = router.route(request, now);
    pairs += d.is_pair() ? 1u : 0u;
    open.push_back(d.ticket);
    if (draw(3) != 0) router.transfer_done(open[draw(open.size())], now);
    if (draw(3) != 0) router.first_token(open[draw(open.size())], now);
    if (draw(3) == 0) router.finish(open[draw(open.size())], {}, now);
    if (!told || draw(3) != 0) continue;
    const ReplicaId id = replicas[draw(replicas.size())];
    ASSERT_TRUE(router.signal(id, Signal::running, static_cast<double>(draw(40)), now));
    ASSERT_TRUE(router.signal(id, Signal::waiting, static_cast<double>(draw(10)), now));
    if (draw(2) == 0) {
      ASSERT_TRUE(router.signal(id, Signal::waiting_tokens, static_cast<double>(draw(60'000)), now));
    }
  }
  EXPECT_GT(pairs, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RankingProperty, testing::Range<std::uint64_t>(1, 25));

}  // namespace
}  // namespace warmroute
