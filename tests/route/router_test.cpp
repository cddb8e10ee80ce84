#include "warmroute/route/router.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/baselines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace warmroute {
namespace {

std::vector<std::uint32_t> ids(std::uint32_t first, std::size_t count) {
  std::vector<std::uint32_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

class RouterTest : public testing::Test {
 protected:
  ReplicaId add(const std::string& name, const std::string& pool = "") {
    return *router.add_replica({.name = name, .pool = pool}, now);
  }
  Request tokens(const std::vector<std::uint32_t>& token_ids) {
    Request r;
    r.token_ids = token_ids;
    return r;
  }
  // Routes, answers at once and reports the predicted truth.
  Decision serve(const Request& r) {
    const Decision d = router.route(r, tick());
    if (!d.routed()) return d;
    EXPECT_TRUE(router.first_token(d.ticket, tick()));
    EXPECT_TRUE(router.finish(d.ticket, {d.input_tokens.value, d.total_cached().value, 10}, tick()));
    return d;
  }
  Nanos tick() { return now += milliseconds(1); }
  LoadReading load(ReplicaId id) {
    for (const auto& r : router.statistics().replicas) {
      if (r.id == id) return r.load;
    }
    return {};
  }
  void use(Algorithm a) {
    Policy p = router.policy();
    p.algorithm = a;
    ASSERT_TRUE(router.set_policy(p));
  }

  Nanos now{seconds(1)};
  Router router;
  const std::vector<std::uint32_t> prompt = ids(1, 1'600);
};

TEST_F(RouterTest, SendsARequestWhereItsPromptIsHeld) {
  add("a");
  add("b");
  const Decision first = serve(tokens(prompt));
  EXPECT_EQ(first.reason, Reason::no_match);
  for (int i = 0; i < 5; ++i) {
    const Decision again = serve(tokens(prompt));
    EXPECT_EQ(again.replica, first.replica);
    EXPECT_EQ(again.reason, Reason::best_match);
    EXPECT_EQ(again.total_cached(), Tokens{1'584});  // never the last token
    EXPECT_EQ(again.uncached_tokens(), Tokens{16});
  }
}

TEST_F(RouterTest, NamesTheReasonWhenNobodyCanServe) {
  Request r = tokens(prompt);
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_pool);
  const ReplicaId a = add("a", "llama");
  r.model = "qwen";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_pool);
  r.model = "llama";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::routed);
  r.excluded = {&a, 1};
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::all_excluded);
  r.excluded = {};
  ReplicaSpec only{.name = "a", .pool = "llama"};
  only.any_adapter = false;
  only.adapters = {"sql"};
  ASSERT_TRUE(router.update_replica(a, only, tick()));
  r.adapter = "chess";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_adapter);
  r.adapter = "sql";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::routed);
  ASSERT_TRUE(router.remove_replica(a, tick()));
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_replica);
}

TEST_F(RouterTest, KeepsTheHealthOfAReplicaWhenItsSpecIsUpdated) {
  const ReplicaId a = add("a");
  const ReplicaId b = add("b");
  ASSERT_TRUE(router.set_health(a, Health::down, "probe failed", tick()));
  ReplicaSpec spec{.name = "a"};
  spec.weight = 2;
  spec.health_reason = "none";
  ASSERT_TRUE(router.update_replica(a, spec, tick()));
  const ReplicaSpec after = *router.replica(a);
  EXPECT_EQ(after.health, Health::down);
  EXPECT_EQ(after.health_reason, "probe failed");
  EXPECT_EQ(after.weight, 2);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(router.peek(tokens(ids(static_cast<std::uint32_t>(1 + 1'000 * i), 64)), now).replica, b);
  spec = {.name = "b"};
  spec.health = Health::down;
  ASSERT_TRUE(router.update_replica(b, spec, tick()));
  EXPECT_EQ(router.replica(b)->health, Health::up);
  EXPECT_EQ(router.replica(b)->health_reason, "");
}

TEST_F(RouterTest, FindsReplicasByNameAndRank) {
  EXPECT_EQ(router.find_replica("a").code(), Code::not_found);
  const ReplicaId a = add("a");
  const ReplicaId rank = *router.add_replica({.name = "a", .dp_rank = 3}, now);
  EXPECT_EQ(*router.find_replica("a"), a);
  EXPECT_EQ(*router.find_replica("a", 3), rank);
  EXPECT_EQ(router.find_replica("a", 1).code(), Code::not_found);
  EXPECT_EQ(router.find_replica("A").code(), Code::not_found);
  ASSERT_TRUE(router.remove_replica(a, tick()));
  EXPECT_EQ(router.find_replica("a").code(), Code::not_found);
  const ReplicaId again = add("a");
  EXPECT_EQ(*router.find_replica("a"), again);
  EXPECT_NE(again, a);
}

TEST_F(RouterTest, FailsOpenOrClosedAsPolicySaysWhenAllAreDown) {
  const ReplicaId a = add("a");
  ASSERT_TRUE(router.set_health(a, Health::down, "probe failed", tick()));
  const Decision open = router.route(tokens(prompt), tick());
  EXPECT_EQ(open.verdict, Verdict::routed);
  EXPECT_EQ(open.reason, Reason::fail_open);
  Policy p;
  p.route_when_all_down = false;
  ASSERT_TRUE(router.set_policy(p));
  EXPECT_EQ(router.route(tokens(prompt), tick()).verdict, Verdict::no_replica);
}

TEST_F(RouterTest, KeepsADrainingReplicaOutAndItsBlocksIn) {
  const ReplicaId a = add("a");
  add("b");
  Request pinned = tokens(prompt);
  pinned.pinned = a;
  serve(pinned);
  ASSERT_TRUE(router.set_health(a, Health::draining, "rollout", tick()));
  EXPECT_NE(router.route(tokens(prompt), tick()).replica, a);
  ASSERT_TRUE(router.set_health(a, Health::up, "", tick()));
  Request back = tokens(prompt);
  back.pinned = a;
  EXPECT_EQ(router.peek(back, now).total_cached(), Tokens{1'584});
}

TEST_F(RouterTest, BooksAtOnceAndReleasesExactlyOnce) {
  const ReplicaId a = add("a");
  const Decision d = router.route(tokens(prompt), tick());
  LoadReading l = load(a);
  EXPECT_EQ(l.requests, 1);
  EXPECT_EQ(l.pending_tokens, 1'600);
  EXPECT_GT(l.pending_ns, 0);
  EXPECT_EQ(l.context_tokens, 1'600);
  EXPECT_TRUE(router.first_token(d.ticket, tick()));
  EXPECT_FALSE(router.first_token(d.ticket, tick()));
  l = load(a);
  EXPECT_EQ(l.pending_tokens, 0);
  EXPECT_EQ(l.pending_ns, 0);
  EXPECT_EQ(l.decoding, 1);
  EXPECT_TRUE(router.finish(d.ticket, {}, tick()));
  EXPECT_FALSE(router.finish(d.ticket, {}, tick()));
  EXPECT_FALSE(router.fail(d.ticket, Outcome::timeout, tick()));
  EXPECT_FALSE(router.finish(kNoTicket, {}, tick()));
  EXPECT_FALSE(router.finish(Ticket{~std::uint64_t{0}}, {}, tick()));
  l = load(a);
  EXPECT_EQ(l.requests, 0);
  EXPECT_EQ(l.decoding, 0);
  EXPECT_EQ(l.context_tokens, 0);
  const RouterStatistics s = router.statistics();
  EXPECT_EQ(s.tickets_in_flight, 0u);
  EXPECT_EQ(s.late_calls, 5u);
  EXPECT_EQ(s.outcomes[static_cast<std::size_t>(Outcome::finished)], 1u);
}

TEST_F(RouterTest, ReleasesATicketThatFailsBeforeItsFirstToken) {
  const ReplicaId a = add("a");
  const Decision d = router.route(tokens(prompt), tick());
  EXPECT_TRUE(router.fail(d.ticket, Outcome::connect_error, tick()));
  const LoadReading l = load(a);
  EXPECT_EQ(l.requests + l.pending_tokens + l.pending_ns + l.context_tokens + l.decoding, 0);
}

TEST_F(RouterTest, TakesBackWhatARequestThatFailedEarlyWouldHaveCached) {
  const ReplicaId a = add("a");
  add("b");
  Request r = tokens(prompt);
  r.pinned = a;
  for (const Outcome outcome :
       {Outcome::connect_error, Outcome::backpressure, Outcome::replica_error, Outcome::client_error}) {
    const Decision d = router.route(r, tick());
    ASSERT_TRUE(router.fail(d.ticket, outcome, tick()));
    EXPECT_EQ(router.peek(r, now).total_cached(), Tokens{0}) << outcome_name(outcome);
  }
  serve(r);
  const Decision later = router.route(r, tick());  // what was there before stays
  ASSERT_TRUE(router.fail(later.ticket, Outcome::connect_error, tick()));
  EXPECT_EQ(router.peek(r, now).total_cached(), Tokens{1'584});
  const auto other = ids(70'000, 1'600);
  const Decision streaming = router.route(tokens(other), tick());  // computed: its first token came
  router.first_token(streaming.ticket, tick());
  ASSERT_TRUE(router.fail(streaming.ticket, Outcome::replica_error, tick()));
  EXPECT_EQ(router.peek(tokens(other), now).best_cached_tokens, Tokens{1'584});
}

TEST_F(RouterTest, TakesAListOfAdaptersForTheWholeList) {
  ReplicaSpec spec{.name = "a"};
  spec.adapters = {"sql"};
  const ReplicaId a = *router.add_replica(spec, now);
  Request r = tokens(prompt);
  r.adapter = "legal";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_adapter);
  r.adapter = "sql";
  EXPECT_EQ(router.route(r, tick()).replica, a);
  EXPECT_EQ(router.replica(a)->name, "a");
  EXPECT_EQ(router.replica(kNoReplica).code(), Code::stale);
}

TEST_F(RouterTest, ReleasesWhatACallerForgotWhenTheLeaseEnds) {
  const ReplicaId a = add("a");
  const Decision forgotten = router.route(tokens(prompt), tick());
  const Decision running = router.route(tokens(prompt), tick());
  now += seconds(500);
  EXPECT_TRUE(router.first_token(running.ticket, now));  // starts its lease anew
  now += seconds(101);
  router.advance(now);
  EXPECT_EQ(load(a).requests, 1);
  EXPECT_FALSE(router.finish(forgotten.ticket, {}, now));
  EXPECT_TRUE(router.finish(running.ticket, {}, now));
  const RouterStatistics s = router.statistics();
  EXPECT_EQ(s.outcomes[static_cast<std::size_t>(Outcome::lease_expired)], 1u);
  EXPECT_EQ(s.tickets_in_flight, 0u);
}

TEST_F(RouterTest, NeverMixesTheBooksOfANameThatComesBack) {
  const ReplicaId old_a = add("a");
  const Decision old_request = router.route(tokens(prompt), tick());
  ASSERT_TRUE(router.remove_replica(old_a, tick()));
  EXPECT_EQ(router.remove_replica(old_a, tick()).code(), Code::stale);
  const ReplicaId new_a = add("a");
  EXPECT_NE(new_a, old_a);
  EXPECT_NE(new_a.slot, old_a.slot);  // the old slot still has a request on its books
  EXPECT_EQ(load(new_a).requests, 0);
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{0});
  EXPECT_TRUE(router.finish(old_request.ticket, {1'600, 0, 5}, tick()));
  EXPECT_EQ(load(new_a).requests, 0);
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{0});
  const ReplicaId b = add("b");
  EXPECT_EQ(b.slot, old_a.slot);  // free now
  EXPECT_GT(b.generation, old_a.generation);
}

TEST_F(RouterTest, ForgetsACacheThatWasCleared) {
  const ReplicaId a = add("a");
  serve(tokens(prompt));
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{1'584});
  ASSERT_TRUE(router.clear_cache(a, tick()));
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{0});
  serve(tokens(prompt));
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{1'584});
}

TEST_F(RouterTest, ChangesNothingWhenPeekingOrExplaining) {
  add("a");
  add("b");
  use(Algorithm::round_robin);
  serve(tokens(prompt));
  const RouterStatistics before = router.statistics();
  const Decision peeked = router.peek(tokens(prompt), now);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(router.peek(tokens(prompt), now).replica, peeked.replica);
    EXPECT_EQ(router.explain(tokens(prompt), now).decision.replica, peeked.replica);
  }
  const RouterStatistics after = router.statistics();
  EXPECT_EQ(before.verdicts, after.verdicts);
  EXPECT_EQ(before.pools[0].memberships, after.pools[0].memberships);
  EXPECT_EQ(router.route(tokens(prompt), now).replica, peeked.replica);
}

TEST_F(RouterTest, OffersDistinctFallbacksInOrderOfCost) {
  std::vector<ReplicaId> all;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) all.push_back(add(name));
  for (std::size_t i = 0; i < all.size(); ++i) {  // the i-th gets i requests
    for (std::size_t k = 0; k < i; ++k) {
      const auto own = ids(static_cast<std::uint32_t>(10'000 * (i + 1) + 2'000 * k), 1'600);
      Request r = tokens(own);
      r.pinned = all[i];
      router.route(r, tick());
    }
  }
  const Decision d = router.route(tokens(prompt), tick());
  EXPECT_EQ(d.replica, all[0]);
  ASSERT_EQ(d.fallbacks().size(), kMaxFallbacks);
  for (std::size_t i = 0; i < kMaxFallbacks; ++i) EXPECT_EQ(d.fallbacks()[i], all[i + 1]);
}

TEST_F(RouterTest, RoutesABatchAsItWouldOneByOne) {
  Router other;
  for (const char* name : {"a", "b", "c"}) {
    add(name);
    ASSERT_TRUE(other.add_replica({.name = name}, now));
  }
  std::vector<std::vector<std::uint32_t>> prompts;
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i < 12; ++i) prompts.push_back(ids(i % 5 * 10'000, 1'600));
  for (const auto& p : prompts) requests.push_back(tokens(p));
  std::vector<Decision> decisions(requests.size());
  router.route_batch(requests, decisions, now);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Decision one = other.route(requests[i], now);
    EXPECT_EQ(decisions[i].replica, one.replica);
    EXPECT_EQ(decisions[i].total_cached(), one.total_cached());
    EXPECT_NE(decisions[i].ticket, kNoTicket);
  }
}

// The decision skips replicas that cannot win; the explanation computes every one. They must name the same winner.
TEST_F(RouterTest, FindsTheLeastCostOfAllWhateverItSkips) {
  for (int i = 0; i < 40; ++i) {
    ReplicaSpec spec{.name = std::to_string(i)};
    if (i % 3 == 0) spec.rates.token_ps *= 2;
    ASSERT_TRUE(router.add_replica(spec, now));
  }
  for (std::uint32_t i = 0; i < 600; ++i) {
    const auto p = ids(static_cast<std::uint32_t>(mix(i) % 20) * 5'000, 320 + mix(i + 7) % 3'000);
    Request r = tokens(p);
    const std::string session = "s" + std::to_string(mix(i + 3) % 30);
    r.session = session;
    const Explanation e = router.explain(r, now);
    std::int64_t least = e.candidates[0].cost.total;
    for (const auto& c : e.candidates) least = std::min(least, c.cost.total);
    const auto chosen = std::find_if(e.candidates.begin(), e.candidates.end(), [](const auto& c) { return c.chosen; });
    ASSERT_NE(chosen, e.candidates.end());
    ASSERT_EQ(chosen->cost.total, least);
    const Decision d = router.route(r, tick());
    if (i % 3 != 0) router.first_token(d.ticket, tick());
    if (i % 2 != 0) router.finish(d.ticket, {d.input_tokens.value, d.total_cached().value, 20}, tick());
  }
}

TEST_F(RouterTest, HonoursExclusionAndPins) {
  const ReplicaId a = add("a");
  const ReplicaId b = add("b");
  Request r = tokens(prompt);
  r.excluded = {&a, 1};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(serve(r).replica, b);
  Request p = tokens(prompt);
  p.pinned = a;
  const Decision d = serve(p);
  EXPECT_EQ(d.replica, a);
  EXPECT_EQ(d.reason, Reason::pinned);
}

TEST_F(RouterTest, KeepsASessionTogetherUntilLoadOvercomesIt) {
  add("a");
  add("b");
  Request r;  // no prompt blocks: only the session speaks
  r.session = "s-1";
  r.input_tokens = 100;
  const Decision first = serve(r);
  for (int i = 0; i < 6; ++i) {
    const Decision again = serve(r);
    EXPECT_EQ(again.replica, first.replica);
    EXPECT_EQ(again.reason, Reason::session);
  }
  const auto heavy = ids(500'000, 20'000);
  Request load_it = tokens(heavy);
  load_it.pinned = first.replica;
  router.route(load_it, tick());
  EXPECT_NE(serve(r).replica, first.replica);
}

TEST_F(RouterTest, TellsSessionsApartThatBeginAlike) {
  for (const char* name : {"a", "b", "c", "d"}) add(name);
  std::set<std::uint32_t> homes;
  for (int i = 0; i < 24; ++i) {
    const std::string session = "session-" + std::to_string(i);
    Request r;
    r.session = session;
    r.input_tokens = 100;
    homes.insert(serve(r).replica.slot);
  }
  EXPECT_EQ(homes.size(), 4u);
}

TEST_F(RouterTest, NeverMatchesAcrossAdapterSaltOrTenant) {
  add("a");
  serve(tokens(prompt));
  const auto cached = [&](auto&& change) {
    Request r = tokens(prompt);
    change(r);
    return router.peek(r, now).total_cached().value;
  };
  EXPECT_EQ(cached([](Request&) {}), 1'584);
  EXPECT_EQ(cached([](Request& r) { r.adapter = "sql"; }), 0);
  EXPECT_EQ(cached([](Request& r) { r.cache_salt = "x"; }), 0);
  EXPECT_EQ(cached([](Request& r) { r.tenant = "acme"; }), 0);
  Policy p;
  p.isolation = Isolation::none;
  ASSERT_TRUE(router.set_policy(p));
  EXPECT_EQ(cached([](Request& r) { r.tenant = "acme"; }), 1'584);
  EXPECT_EQ(cached([](Request& r) { r.cache_salt = "x"; }), 0);
}

TEST_F(RouterTest, SendsATenantToItsOwnPoolWhenIsolationIsByPool) {
  add("shared", "llama");
  const ReplicaId own = add("own", "acme/llama");
  Policy p;
  p.isolation = Isolation::pool;
  ASSERT_TRUE(router.set_policy(p));
  Request r = tokens(prompt);
  r.model = "llama";
  r.tenant = "acme";
  EXPECT_EQ(router.route(r, tick()).replica, own);
  r.tenant = "other";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_pool);
}

TEST_F(RouterTest, LearnsBytesPerTokenFromFinishedRequests) {
  add("a");
  Request r;
  r.prompt_bytes = 6'000;
  EXPECT_EQ(router.peek(r, now).input_tokens, Tokens{1'500});
  for (int i = 0; i < 3'000; ++i) {
    const Decision d = router.route(r, tick());
    router.finish(d.ticket, {3'000, kUnknown, 1}, tick());
  }
  EXPECT_NEAR(static_cast<double>(router.peek(r, now).input_tokens.value), 3'000, 60);
}

TEST_F(RouterTest, CountsTextBlocksAtTheLearnedRate) {
  add("a");
  const std::string text(64 * 100, 'x');
  std::vector<BlockHash> blocks(100);
  HashSpace space;
  space.text = true;
  ASSERT_EQ(hash_text_blocks(text, block_seed(space), blocks), 100u);
  Request r;
  r.blocks = blocks;
  r.block_kind = BlockKind::text;
  r.prompt_bytes = 6'400;
  serve(r);
  const Decision d = router.peek(r, now);
  EXPECT_EQ(d.input_tokens, Tokens{1'600});
  EXPECT_EQ(d.total_cached(), Tokens{99 * 16});
}

TEST_F(RouterTest, BelievesTheEngineAboutWhatWasCached) {
  const ReplicaId a = add("a");
  add("b");
  Request r = tokens(prompt);
  r.pinned = a;
  serve(r);
  const auto sibling = [&] {  // shares 50 blocks with the prompt, then goes its own way
    auto other = ids(1, 800);
    const auto tail = ids(900'000, 800);
    other.insert(other.end(), tail.begin(), tail.end());
    return other;
  }();
  Request s = tokens(sibling);
  s.pinned = a;
  serve(s);
  ASSERT_EQ(router.peek(s, now).total_cached(), Tokens{1'584});
  // The engine had only 20 blocks of the prompt: everything behind is gone there, the sibling's tail as well ...
  const Decision d = router.route(r, tick());
  ASSERT_TRUE(router.finish(d.ticket, {1'600, 320, 5}, tick()));
  EXPECT_EQ(router.peek(r, now).total_cached(), Tokens{1'584});  // ... but the prompt itself was just computed
  EXPECT_EQ(router.peek(s, now).total_cached(), Tokens{800});
  // Unknown repairs nothing.
  const Decision u = router.route(r, tick());
  ASSERT_TRUE(router.finish(u.ticket, {1'600, kUnknown, 5}, tick()));
  EXPECT_EQ(router.peek(r, now).total_cached(), Tokens{1'584});
}

TEST_F(RouterTest, DoesNotTakeASimultaneousTwinForAnEviction) {
  const ReplicaId a = add("a");
  const auto tail = [&](std::uint32_t first) {
    auto p = ids(1, 800);
    const auto own = ids(first, 800);
    p.insert(p.end(), own.begin(), own.end());
    return p;
  };
  const auto p1 = tail(100'000);
  const auto p2 = tail(200'000);
  const Decision d1 = router.route(tokens(p1), tick());
  const Decision d2 = router.route(tokens(p2), tick());  // counts on blocks that the first is only computing
  EXPECT_EQ(d2.total_cached(), Tokens{800});
  router.finish(d2.ticket, {1'600, 0, 5}, tick());  // both ran in one step: no hit
  router.finish(d1.ticket, {1'600, 0, 5}, tick());
  EXPECT_EQ(router.peek(tokens(p1), now).total_cached(), Tokens{1'584});
  (void)a;
}

TEST_F(RouterTest, TakesTheCapacityFromTheEnginesOwnFigures) {
  const ReplicaId a = add("a");
  ASSERT_TRUE(router.signal(a, Signal::block_tokens, 16, tick()));
  ASSERT_TRUE(router.signal(a, Signal::block_count, 150, tick()));
  const auto second = ids(50'000, 1'600);
  serve(tokens(prompt));
  serve(tokens(second));
  EXPECT_EQ(router.peek(tokens(second), now).total_cached(), Tokens{1'584});
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(),
            Tokens{800});  // 50 of its 100 blocks had to go, leaf first
}

TEST_F(RouterTest, BelievesThatAPromptPushesOthersOutWhenItIsComputedAndNotWhileItWaits) {
  ReplicaSpec spec{.name = "a", .capacity_tokens = 2'400};
  ASSERT_TRUE(router.add_replica(spec, tick()));
  serve(tokens(prompt));
  const auto second = ids(50'000, 1'600);
  const Ticket ticket = router.route(tokens(second), tick()).ticket;
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{1'584});
  EXPECT_EQ(router.peek(tokens(second), now).total_cached(), Tokens{1'584});
  ASSERT_TRUE(router.first_token(ticket, tick()));
  ASSERT_TRUE(router.finish(ticket, {1'600, 0, 1}, tick()));
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{800}) << "50 of its 100 blocks had to go";
  EXPECT_EQ(router.peek(tokens(second), now).total_cached(), Tokens{1'584});
}

TEST_F(RouterTest, BelievesNoMoreThanTwiceTheCapacityOfCallersWhoTellOfNoFirstTokens) {
  ReplicaSpec spec{.name = "a", .capacity_tokens = 2'400};
  ASSERT_TRUE(router.add_replica(spec, tick()));
  for (std::uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(router.route(tokens(ids(i * 10'000, 1'600)), tick()).routed());
  EXPECT_EQ(router.statistics().replicas[0].believed_blocks, 300u);
}

TEST_F(RouterTest, KeepsItsBeliefWhenTextAndTokenRequestsShareAPool) {
  const ReplicaId a = add("a");
  Policy p;
  p.capacity_tokens = 40'000;
  ASSERT_TRUE(router.set_policy(p));
  const auto large = ids(1, 32'000);
  serve(tokens(large));
  const std::string text(64 * 4, 'x');
  std::vector<BlockHash> blocks(4);
  hash_text_blocks(text, block_seed({.text = true}), blocks);
  Request small;
  small.blocks = blocks;
  small.block_kind = BlockKind::text;
  small.prompt_bytes = 256;
  for (int i = 0; i < 200; ++i) {  // 1 byte per token: a text block of 64 bytes becomes 64 tokens
    const Decision d = router.route(small, tick());
    router.finish(d.ticket, {256, kUnknown, 1}, tick());
  }
  EXPECT_GE(router.peek(tokens(large), now).total_cached(), Tokens{31'000});
  (void)a;
}

TEST_F(RouterTest, DropsThePlacementOfATicketWhoseHashRuleIsGone) {
  const ReplicaId a = add("a");
  Policy p;
  p.block_size = 512;
  ASSERT_TRUE(router.set_policy(p));
  const auto large = ids(1, 100'000);
  const Decision old = router.route(tokens(large), tick());
  p.block_size = 16;
  ASSERT_TRUE(router.set_policy(p));
  serve(tokens(prompt));
  const std::uint64_t before = router.statistics().replicas[0].believed_blocks;
  ASSERT_EQ(before, 100u);
  EXPECT_TRUE(router.finish(old.ticket, {100'000, 0, 5}, tick()));
  EXPECT_EQ(router.statistics().replicas[0].believed_blocks, before);
  EXPECT_EQ(load(a).requests, 0);
}

TEST_F(RouterTest, ModelsTheCacheOfAReplicaThatTakesRequestsFromNowOn) {
  ReplicaSpec spec{.name = "a"};
  spec.role = Role::prefill;
  const ReplicaId a = *router.add_replica(spec, now);
  EXPECT_EQ(router.route(tokens(prompt), tick()).verdict, Verdict::no_replica);
  spec.role = Role::unified;
  ASSERT_TRUE(router.update_replica(a, spec, tick()));
  serve(tokens(prompt));
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{1'584});
}

TEST_F(RouterTest, LetsNoSpellingOfAModelReachATenantsPool) {
  add("own", "a/b/c");
  Policy p;
  p.isolation = Isolation::pool;
  ASSERT_TRUE(router.set_policy(p));
  Request r = tokens(prompt);
  r.model = "a/b/c";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_pool);
  r.tenant = "a/b";
  r.model = "c";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::no_pool);
  r.tenant = "a";
  r.model = "b/c";
  EXPECT_EQ(router.route(r, tick()).verdict, Verdict::routed);
}

TEST_F(RouterTest, SurvivesAbsurdNumbers) {
  const ReplicaId a = add("a");
  add("b");
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  ReplicaSpec huge{.name = "huge"};
  huge.capacity_tokens = kMost;
  EXPECT_EQ(router.add_replica(huge, now).code(), Code::invalid_argument);
  EXPECT_TRUE(router.signal(a, Signal::running, 1e300, now));
  EXPECT_TRUE(router.signal(a, Signal::waiting, 9e18, now));
  EXPECT_TRUE(router.signal(a, Signal::waiting_tokens, 1e300, now));
  for (int i = 0; i < 8; ++i) EXPECT_NE(router.peek(tokens(prompt), now).replica, a);
  const Decision d = router.route(tokens(prompt), Nanos{kLeast});
  EXPECT_TRUE(router.first_token(d.ticket, Nanos{kMost}));
  EXPECT_TRUE(router.finish(d.ticket, {kMost, kMost, kMost}, now));
  const Decision e = router.route(tokens(prompt), tick());  // the clock did not stick
  router.advance(tick());
  EXPECT_TRUE(router.finish(e.ticket, {kLeast, kLeast, kLeast}, tick()));
  const RouterStatistics s = router.statistics();
  EXPECT_EQ(s.output_tokens, 0);
  EXPECT_EQ(s.input_tokens, 0);
  EXPECT_EQ(s.clock_clamped, 2u);
  EXPECT_EQ(s.tickets_in_flight, 0u);
}

TEST_F(RouterTest, SwapsThePolicyForTheNextCall) {
  const ReplicaId a = add("a");
  const ReplicaId b = add("b");
  serve(tokens(prompt));
  use(Algorithm::round_robin);
  std::multiset<std::uint32_t> seen;
  for (int i = 0; i < 10; ++i) {
    const Decision d = serve(tokens(prompt));
    EXPECT_EQ(d.reason, Reason::baseline);
    seen.insert(d.replica.slot);
  }
  EXPECT_EQ(seen.count(a.slot), 5u);
  EXPECT_EQ(seen.count(b.slot), 5u);
}

TEST_F(RouterTest, FollowsAPolicyThatChangesCapacityOrTimeToLive) {
  add("a");
  serve(tokens(prompt));
  Policy p;
  p.residency_ttl = seconds(5);
  ASSERT_TRUE(router.set_policy(p));
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{1'584});  // a new knob forgets nothing
  now += seconds(6);
  router.advance(now);
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{0});
  p.capacity_tokens = 800;
  ASSERT_TRUE(router.set_policy(p));
  serve(tokens(prompt));
  EXPECT_EQ(router.peek(tokens(prompt), now).total_cached(), Tokens{800});
  p.block_size = 32;
  ASSERT_TRUE(router.set_policy(p));
  EXPECT_EQ(router.statistics().replicas[0].believed_blocks, 0u);
}

TEST_F(RouterTest, RefusesAPolicyWithEveryFaultNamedAndKeepsTheOldOne) {
  Policy p;
  p.beta = -1;
  p.block_size = 0;
  p.bound_factor = 0.5;
  const Status s = router.set_policy(p);
  ASSERT_FALSE(s);
  EXPECT_EQ(s.code(), Code::invalid_argument);
  for (const char* word : {"beta", "block_size", "bound_factor"})
    EXPECT_NE(s.error().message.find(word), std::string::npos);
  EXPECT_EQ(router.policy(), Policy{});
}

TEST_F(RouterTest, SeesOtherRoutersLoadInTheEnginesSignalsUntilTheyAreOld) {
  const ReplicaId a = add("a");
  const ReplicaId b = add("b");
  ASSERT_TRUE(router.signal(a, Signal::waiting, 30, tick()));
  ASSERT_TRUE(router.signal(a, Signal::running, 40, now));
  EXPECT_EQ(load(a).foreign_requests, 70);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(router.peek(tokens(ids(1'000u * static_cast<unsigned>(i + 10), 320)), now).replica, b);
  now += seconds(3);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 64; ++i)
    seen.insert(router.peek(tokens(ids(1'000u * static_cast<unsigned>(i + 10), 320)), now).replica.slot);
  EXPECT_EQ(seen.size(), 2u);
  Policy p;
  p.stale_signals = StaleSignals::exclude;
  ASSERT_TRUE(router.set_policy(p));
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(router.peek(tokens(ids(1'000u * static_cast<unsigned>(i + 10), 320)), now).replica, b);
  EXPECT_EQ(router.signal(a, Signal::waiting, -1, now).code(), Code::invalid_argument);
}

TEST_F(RouterTest, PricesPromptTokensThatEnginesTellByTheirRatesInPlaceOfPromptsThatWait) {
  Policy p;
  p.learn_rates = false;
  ASSERT_TRUE(router.set_policy(p));
  ReplicaSpec slow{.name = "slow"};
  slow.rates = Rates{10'000'000, 80'000'000, 0, 0, 0};
  ReplicaSpec quick{.name = "quick"};
  quick.rates = Rates{10'000'000, 40'000'000, 0, 0, 0};
  const ReplicaId a = *router.add_replica(slow, now), b = *router.add_replica(quick, now);
  const auto wait_at = [&](ReplicaId id) {
    Request r = tokens(prompt);
    r.pinned = id;
    return router.peek(r, now).expected_wait;
  };
  tick();
  ASSERT_TRUE(router.signal(a, Signal::waiting, 1, now));
  ASSERT_TRUE(router.signal(a, Signal::waiting_tokens, 50'000, now));
  ASSERT_TRUE(router.signal(b, Signal::waiting, 30, now));
  ASSERT_TRUE(router.signal(b, Signal::waiting_tokens, 1'000, now));
  EXPECT_EQ(wait_at(a), milliseconds(4'500));  // 50,000 x 80 us, and an eighth for the decodes beside
  EXPECT_EQ(wait_at(b), milliseconds(45));
  EXPECT_EQ(router.peek(tokens(prompt), now).replica, b);
  EXPECT_EQ(load(a).foreign_tokens, 50'000);
  ASSERT_TRUE(router.signal(a, Signal::waiting_tokens, 0, tick()));
  EXPECT_EQ(wait_at(a), Nanos{0}) << "what waits has nothing left to compute";
  now += seconds(3);
  EXPECT_EQ(wait_at(b), Nanos{0}) << "too old to count";
}

TEST_F(RouterTest, ClampsAClockThatGoesBackwards) {
  const ReplicaId a = add("a");
  now = seconds(100);
  const Decision d = router.route(tokens(prompt), now);
  EXPECT_TRUE(router.first_token(d.ticket, seconds(50)));
  EXPECT_TRUE(router.finish(d.ticket, {}, seconds(40)));
  EXPECT_EQ(router.statistics().clock_clamped, 2u);
  EXPECT_EQ(router.statistics().observed_ttft.sum_ns, 0);
  EXPECT_EQ(load(a).requests, 0);
}

TEST(RouterLimits, SaysSoWhenTheTicketTableIsFull) {
  Router router({.max_tickets = 256});
  ASSERT_TRUE(router.add_replica({.name = "a"}, Nanos{1}));
  Request r;
  r.input_tokens = 10;
  Ticket last = kNoTicket;
  for (int i = 0; i < 256; ++i) last = router.route(r, Nanos{2}).ticket;
  const Decision full = router.route(r, Nanos{3});
  EXPECT_EQ(full.verdict, Verdict::ticket_table_full);
  EXPECT_EQ(full.ticket, kNoTicket);
  EXPECT_TRUE(router.finish(last, {}, Nanos{4}));
  EXPECT_TRUE(router.route(r, Nanos{5}).routed());
}

TEST(RouterLimits, RefusesMoreReplicasThanItHasRoomFor) {
  Router router({.max_replicas = 2});
  ASSERT_TRUE(router.add_replica({.name = "a"}, Nanos{1}));
  EXPECT_EQ(router.add_replica({.name = "a"}, Nanos{1}).code(), Code::already_exists);
  ASSERT_TRUE(router.add_replica({.name = "a", .dp_rank = 1}, Nanos{1}));
  EXPECT_EQ(router.add_replica({.name = "c"}, Nanos{1}).code(), Code::capacity);
  EXPECT_EQ(router.replicas().size(), 2u);
}

TEST(RouterLimits, RefusesASecondReplicaOnTheSameRingSlotAndKeepsTheFirst) {
  Router router;
  ASSERT_TRUE(router.add_replica({.name = "a", .ring_id = "slot-0"}, Nanos{1}));
  EXPECT_FALSE(router.add_replica({.name = "b", .ring_id = "slot-0"}, Nanos{1}));
  EXPECT_EQ(router.replicas().size(), 1u);
  EXPECT_TRUE(router.add_replica({.name = "b", .ring_id = "slot-1"}, Nanos{1}));
}

TEST(RouterDeterminism, GivesTheSameDecisionsForTheSameCalls) {
  const auto run = [](std::uint64_t seed) {
    Router router;
    Policy p;
    p.seed = seed;
    EXPECT_TRUE(router.set_policy(p));
    for (const char* name : {"a", "b", "c", "d"}) EXPECT_TRUE(router.add_replica({.name = name}, Nanos{1}));
    std::vector<std::uint32_t> chosen;
    std::vector<Ticket> open;
    for (std::uint32_t i = 0; i < 400; ++i) {
      const auto p1 = ids((i % 7) * 10'000, 160 + (i % 13) * 100);
      Request r;
      r.token_ids = p1;
      const Decision d = router.route(r, Nanos{i + 2});
      chosen.push_back(d.replica.slot);
      open.push_back(d.ticket);
      if (i % 3 == 0) router.finish(open[i / 3], {kUnknown, kUnknown, 20}, Nanos{i + 2});
    }
    return chosen;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

}  // namespace
}  // namespace warmroute
