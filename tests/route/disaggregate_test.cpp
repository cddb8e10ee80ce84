// Prefill and decode apart: decisions worked out by hand, what each call books and frees, faults of either side.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "route/prompts.hpp"
#include "support/every_size.hpp"
#include "warmroute/route/detail/pair_line.hpp"
#include "warmroute/route/detail/prefill_share.hpp"
#include "warmroute/route/disaggregate.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::disaggregate_test {
namespace {

// 0.1 ms a token, 10 ms a step, nothing else: a prompt of 1,000 tokens takes 100 ms, 256 tokens of an answer 2.56 s.
constexpr Rates kRates{10'000'000, 100'000'000, 0, 0, 0};

class Pairs : public testing::Test {
 protected:
  Pairs() {
    policy.disaggregate = Disaggregate::decided;
    policy.beta = policy.hot = policy.gamma = 0;
    policy.delta = 0.5;
    policy.interference = 0.5;
    policy.session_bonus = Nanos{0};
    policy.learn_rates = false;
    policy.kv_transfer_per_token = Nanos{10'000};
    policy.kv_transfer_latency = milliseconds(2);
    policy.transfer_timeout = seconds(5);
    use();
  }
  void use() { ASSERT_TRUE(router.set_policy(policy)); }
  ReplicaId add(std::string name, Role role, std::uint32_t rank = 0) {
    ReplicaSpec spec{.name = std::move(name), .dp_rank = rank};
    spec.role = role;
    spec.rates = kRates;
    auto id = router.add_replica(std::move(spec), now);
    EXPECT_TRUE(id);
    return *id;
  }
  Nanos tick(Nanos by = milliseconds(1)) { return now += by; }
  LoadReading load(ReplicaId id) {
    for (const auto& r : router.statistics().replicas) {
      if (r.id == id) return r.load;
    }
    return {};
  }
  void expect_load(ReplicaId id, std::int64_t requests, std::int64_t pending, std::int64_t context,
                   std::int64_t decoding) {
    const LoadReading l = load(id);
    EXPECT_EQ(l.requests, requests);
    EXPECT_EQ(l.pending_tokens, pending);
    EXPECT_EQ(l.pending_ns, pending * 100'000);
    EXPECT_EQ(l.context_tokens, context);
    EXPECT_EQ(l.decoding, decoding);
  }
  void always() {
    policy.disaggregate = Disaggregate::always;
    use();
  }

  Policy policy;
  Router router;
  Nanos now{seconds(100)};
  std::vector<std::uint32_t> prompt = test::prompt(0, 1'000);
};

TEST_F(Pairs, CostWhatTheHandSays) {
  add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  policy.itl_limit = milliseconds(16);
  use();
  Request first = test::request(prompt);  // runs on d by itself
  first.pinned = d;
  const Decision alone = router.route(first, now);
  ASSERT_EQ(alone.replica, d);
  EXPECT_EQ(alone.split, Split::off);
  ASSERT_TRUE(router.first_token(alone.ticket, tick()));

  const auto other = test::prompt(50'000, 2'000);
  const Explanation e = router.explain(test::request(other), now);
  ASSERT_TRUE(e.pairs);
  ASSERT_TRUE(e.pair.possible);
  // Prefill: 2,000 tokens of 0.1 ms, nobody there.
  EXPECT_EQ(e.pair.terms.prompt.cost.prefill, milliseconds(200).value);
  EXPECT_EQ(e.pair.terms.prompt.cost.stall, 0);
  EXPECT_EQ(e.pair.terms.prompt.pushed, 0);
  EXPECT_EQ(e.pair.terms.prompt.total, milliseconds(200).value);
  // 2 ms and 2,000 times 10 us.
  EXPECT_EQ(e.pair.terms.transfer, milliseconds(22).value);
  // d spent 100 ms of the last ten seconds on a prompt, 9 of a thousand after the millisecond that passed. The token that it brought
  // to decodes beside it is less than one of a thousand.
  EXPECT_EQ(e.pair.terms.decode.itl, 10'000'000LL * 1'000 / 991);
  EXPECT_EQ(e.pair.terms.decode.decode, e.pair.terms.decode.itl * 256 / 1'000 * 500);
  // Of the limit of 16 ms, 10.08 are 0.630: below 0.65 none is lost.
  EXPECT_EQ(e.pair.terms.decode.crowded, 0);
  EXPECT_EQ(e.pair.terms.total, e.pair.terms.prompt.total + e.pair.terms.transfer + e.pair.terms.decode.total);
  // By itself on d: 200 ms that stall one request by half, and a share of 29 of a thousand, of which two bring tokens.
  EXPECT_EQ(e.pair.unified_prompt.cost.stall, milliseconds(100).value);
  EXPECT_EQ(e.pair.unified_decode.itl, 10'000'000LL * 1'000 / 973);
  EXPECT_GT(e.pair.unified_total, e.pair.terms.total);
  EXPECT_EQ(e.decision.split, Split::pair);
}

TEST(PairTerms, WeighWhatALimitLosesByHand) {
  PairWeights w;
  w.cost.gamma = 0;
  w.itl_limit_ns = milliseconds(12).value;
  w.ttft_limit_ns = milliseconds(250).value;
  const CostRequest q{.input_tokens = 2'000, .output_tokens = 100};  // an answer is worth 1.2 s
  CostReplica r;
  r.requests = 8;
  const PairReplica more{.share_milli = 100, .share_with_milli = 150, .decoding = 8, .prompt_ns = seconds(1'000).value};
  const PromptTerms prompt = prompt_terms(w, q, kRates, milliseconds(200).value, r, more);
  EXPECT_EQ(prompt.late, 500 * 1'200'000);  // 200 ms are 0.8 of the limit, half way from 0.6 to all of it
  // 11.11 and 11.76 ms are 0.925 and 0.980 of the limit: 562 and 700 of a thousand between 0.7 and 1.1, a fifth of 8 requests.
  EXPECT_EQ(prompt.pushed, (700 - 562) * 8 / 5 * 1'200'000);
  // A decode: 275 of 400 above 0.65 are 687 of a thousand, squared 471. A step of nine takes no longer than one of eight.
  EXPECT_EQ(decode_terms(w, q, kRates, r, more, 100).crowded, 471 * 1'200'000);
  w.itl_limit_ns = w.ttft_limit_ns = 0;
  EXPECT_EQ(prompt_terms(w, q, kRates, milliseconds(200).value, r, more).late, 0);
  EXPECT_EQ(prompt_terms(w, q, kRates, milliseconds(200).value, r, more).pushed, 0);
  EXPECT_EQ(decode_terms(w, q, kRates, r, more, 100).crowded, 0);
}

TEST_F(Pairs, AreNotFormedWhereTheWayOfTheKvWouldMissTheTimeToTheFirstToken) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  const Decision first = router.route(test::request(test::prompt(30'000, 100)), now);
  ASSERT_EQ(first.replica, d);
  ASSERT_TRUE(router.first_token(first.ticket, tick()));  // decodes: prompts there would stall it
  policy.kv_transfer_per_token = Nanos{30'000};
  use();
  EXPECT_EQ(router.peek(test::request(prompt), now).prefill_replica, p);  // 32 ms of transfer instead of a stall of 50
  policy.ttft_limit = milliseconds(140);
  use();
  EXPECT_EQ(router.peek(test::request(prompt), now).split, Split::unified_cheaper);  // 132 of 140 ms, instead of 100
}

TEST_F(Pairs, AreFormedWhereTheyCostLess) {
  policy.kv_transfer_latency = milliseconds(4);
  use();
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  const Decision whole = router.route(test::request(prompt), now);
  ASSERT_EQ(whole.split,
            Split::unified_cheaper);  // 14 ms of transfer against 1.28 s at 9 of a thousand less pace: 11.6 ms
  EXPECT_EQ(whole.replica, d);
  EXPECT_FALSE(whole.is_pair());
  ASSERT_TRUE(router.first_token(whole.ticket, tick()));
  const Decision second =
      router.route(test::request(test::prompt(5'000, 1'000)), now);  // would stall the first by 50 ms
  ASSERT_EQ(second.split, Split::pair);
  EXPECT_EQ(second.replica, d);
  EXPECT_EQ(second.prefill_replica, p);
  EXPECT_EQ(second.expected_prefill, milliseconds(100));
  EXPECT_EQ(second.expected_transfer, milliseconds(14));
  EXPECT_EQ(second.expected_ttft(), milliseconds(114));
}

TEST_F(Pairs, AreNotFormedByDefaultNorByOtherAlgorithmsNorForPinnedRequests) {
  add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  always();
  EXPECT_TRUE(router.peek(test::request(prompt), now).is_pair());
  Request pinned = test::request(prompt);
  pinned.pinned = d;
  EXPECT_EQ(router.peek(pinned, now).split, Split::off);
  policy.algorithm = Algorithm::least_requests;
  use();
  EXPECT_EQ(router.peek(test::request(prompt), now).split, Split::off);
  policy = {};
  use();
  const Decision whole = router.peek(test::request(prompt), now);
  EXPECT_EQ(whole.split, Split::off);
  EXPECT_EQ(whole.replica, d);
}

TEST_F(Pairs, BookEachPartWhereItRunsAndFreeItOnce) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  always();
  const Decision pair = router.route(test::request(prompt), now);
  ASSERT_TRUE(pair.is_pair());
  expect_load(p, 1, 1'000, 1'000, 0);
  expect_load(d, 1, 0, 1'000, 1);
  EXPECT_EQ(router.statistics().tickets_in_flight, 1u);
  EXPECT_TRUE(router.first_token(pair.ticket, tick()));
  expect_load(p, 1, 0, 1'000, 1);
  EXPECT_FALSE(router.first_token(pair.ticket, tick()));
  EXPECT_TRUE(router.transfer_done(pair.ticket, tick()));
  expect_load(p, 0, 0, 0, 0);
  expect_load(d, 1, 0, 1'000, 1);
  EXPECT_FALSE(router.transfer_done(pair.ticket, tick()));
  EXPECT_TRUE(router.finish(pair.ticket, {1'000, 0, 20}, tick()));
  expect_load(d, 0, 0, 0, 0);
  EXPECT_FALSE(router.finish(pair.ticket, {}, tick()));
  const RouterStatistics s = router.statistics();
  EXPECT_EQ(s.tickets_in_flight, 0u);
  EXPECT_EQ(s.transfers_done, 1u);
  EXPECT_EQ(s.transfer_ns, milliseconds(2).value);
  EXPECT_EQ(s.splits[static_cast<std::size_t>(Split::pair)], 1u);
  EXPECT_EQ(s.late_calls, 3u);
}

TEST_F(Pairs, MayBeFetchedBeforeTheFirstTokenIsTold) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  always();
  const Decision pair = router.route(test::request(prompt), now);
  EXPECT_TRUE(router.transfer_done(pair.ticket, tick()));
  expect_load(p, 0, 0, 0, 0);
  EXPECT_TRUE(router.first_token(pair.ticket, tick()));
  expect_load(p, 0, 0, 0, 0);
  expect_load(d, 1, 0, 1'000, 1);
  EXPECT_EQ(router.statistics().observed_ttft.count, 1u);
  EXPECT_TRUE(router.fail(pair.ticket, Outcome::replica_error, tick()));
  expect_load(d, 0, 0, 0, 0);
}

TEST_F(Pairs, FreeThePrefillReplicaOfKvThatNobodyFetches) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  always();
  const Decision pair = router.route(test::request(prompt), now);
  ASSERT_TRUE(router.first_token(pair.ticket, tick()));
  router.advance(tick(milliseconds(4'900)));
  expect_load(p, 1, 0, 1'000, 1);
  router.advance(tick(milliseconds(200)));
  expect_load(p, 0, 0, 0, 0);
  expect_load(d, 1, 0, 1'000, 1);
  EXPECT_EQ(router.statistics().transfers_timed_out, 1u);
  EXPECT_FALSE(router.transfer_done(pair.ticket, tick()));
  EXPECT_TRUE(router.finish(pair.ticket, {}, tick()));
  expect_load(d, 0, 0, 0, 0);

  const Decision lost = router.route(test::request(prompt), tick());
  ASSERT_TRUE(router.first_token(lost.ticket, tick()));
  router.advance(tick(policy.lease + seconds(10)));  // time-out first, the lease behind it
  router.advance(tick());
  expect_load(p, 0, 0, 0, 0);
  expect_load(d, 0, 0, 0, 0);
  EXPECT_EQ(router.statistics().tickets_in_flight, 0u);
}

TEST_F(Pairs, AreFormedAnewWithoutTheSideThatWasLost) {
  const ReplicaId p0 = add("p0", Role::prefill);
  const ReplicaId p1 = add("p1", Role::prefill);
  const ReplicaId d0 = add("d0", Role::decode);
  const ReplicaId d1 = add("d1", Role::decode);
  always();
  const Decision first = router.route(test::request(prompt), now);
  ASSERT_TRUE(first.is_pair());
  ASSERT_TRUE(router.first_token(first.ticket, tick()));
  // The decode replica is gone: the prompt is still where it was computed.
  ASSERT_TRUE(router.remove_replica(first.replica, tick()));
  ASSERT_TRUE(router.fail(first.ticket, Outcome::connect_error, tick()));
  const ReplicaId other_decode = first.replica == d0 ? d1 : d0;
  Request again = test::request(prompt);
  again.excluded = {&first.replica, 1};
  const Decision second = router.route(again, tick());
  ASSERT_TRUE(second.is_pair());
  EXPECT_EQ(second.replica, other_decode);
  EXPECT_EQ(second.prefill_replica, first.prefill_replica);
  EXPECT_EQ(second.total_cached().value, 992);
  // And now the prefill replica, before its prompt was computed.
  ASSERT_TRUE(router.remove_replica(second.prefill_replica, tick()));
  ASSERT_TRUE(router.fail(second.ticket, Outcome::connect_error, tick()));
  again.excluded = {&second.prefill_replica, 1};
  const Decision third = router.route(again, tick());
  ASSERT_TRUE(third.is_pair());
  EXPECT_EQ(third.prefill_replica, first.prefill_replica == p0 ? p1 : p0);
  EXPECT_EQ(third.replica, other_decode);
  EXPECT_EQ(third.decode_cached_tokens.value, 0);  // nothing had arrived there
  ASSERT_TRUE(router.finish(third.ticket, {}, tick()));
  for (const auto& r : router.statistics().replicas) EXPECT_EQ(r.load.requests, 0) << r.name;
}

TEST_F(Pairs, GiveWayToOneReplicaWhenAPoolIsGoneAndSayWhy) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  const ReplicaId u = add("u", Role::unified);
  always();
  ASSERT_TRUE(router.set_health(p, Health::down, "gone", tick()));
  Decision whole = router.peek(test::request(prompt), now);
  EXPECT_EQ(whole.split, Split::no_prefill);
  EXPECT_TRUE(whole.routed());
  ASSERT_TRUE(router.remove_replica(p, tick()));
  EXPECT_EQ(router.route(test::request(prompt), now).split, Split::no_prefill);
  EXPECT_EQ(router.statistics().splits[static_cast<std::size_t>(Split::no_prefill)], 1u);
  add("p", Role::prefill);
  ASSERT_TRUE(router.set_health(d, Health::draining, "", tick()));
  whole = router.peek(test::request(prompt), now);
  EXPECT_EQ(whole.split, Split::no_decode);
  EXPECT_EQ(whole.replica, u);
}

TEST_F(Pairs, GiveWayToThePrefillReplicaWhenNobodyIsUpWhoDecodes) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  always();
  ASSERT_TRUE(router.set_health(d, Health::down, "gone", tick()));
  const Decision whole = router.route(test::request(prompt), now);
  EXPECT_EQ(whole.replica, p);
  EXPECT_EQ(whole.split, Split::no_decode);
  EXPECT_FALSE(whole.is_pair());
  ASSERT_TRUE(router.set_health(d, Health::up, "", tick()));
  const Decision pair = router.route(test::request(prompt), now);
  EXPECT_TRUE(pair.is_pair());
  EXPECT_TRUE(router.finish(whole.ticket, {}, tick()));
  EXPECT_TRUE(router.finish(pair.ticket, {}, tick()));
  ASSERT_TRUE(router.remove_replica(d, tick()));
  EXPECT_EQ(router.peek(test::request(prompt), now).replica, p);
  ASSERT_TRUE(router.set_health(p, Health::down, "gone", tick()));
  EXPECT_EQ(router.peek(test::request(prompt), now).verdict, Verdict::no_replica);
  ASSERT_TRUE(router.set_health(p, Health::up, "", tick()));
  policy.disaggregate = Disaggregate::never;
  use();
  EXPECT_EQ(router.peek(test::request(prompt), now).verdict, Verdict::no_replica)
      << "policy wants no pairs: it has nothing to do";
}

TEST_F(Pairs, AreFormedOfRanksOfOneEngine) {
  const ReplicaId p = add("engine", Role::prefill, 0);
  const ReplicaId d = add("engine", Role::decode, 1);
  always();
  const Decision pair = router.route(test::request(prompt), now);
  EXPECT_EQ(pair.prefill_replica, p);
  EXPECT_EQ(pair.replica, d);
  const Explanation e = router.explain(test::request(prompt), now);
  EXPECT_EQ(e.pair.prefill, "engine");
  EXPECT_EQ(e.pair.decode, "engine/1");
}

TEST_F(Pairs, AreFormedAmongUnifiedReplicasOnlyWhenPolicySaysSo) {
  add("a", Role::unified);
  add("b", Role::unified);
  always();
  EXPECT_EQ(router.peek(test::request(prompt), now).split, Split::off);
  policy.unified_pairs = true;
  use();
  const Decision pair = router.route(test::request(prompt), now);
  ASSERT_TRUE(pair.is_pair());
  EXPECT_NE(pair.replica, pair.prefill_replica);
}

TEST_F(Pairs, NeedTwoReplicas) {
  const ReplicaId a = add("a", Role::unified);
  policy.unified_pairs = true;
  always();
  const Decision whole = router.route(test::request(prompt), now);
  EXPECT_EQ(whole.split, Split::no_decode);
  EXPECT_EQ(whole.replica, a);
}

TEST_F(Pairs, SendOnlyWhatTheDecodeReplicaDoesNotHold) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  always();
  const Decision first = router.route(test::request(prompt), now);
  router.first_token(first.ticket, tick());
  router.transfer_done(first.ticket, tick());
  router.finish(first.ticket, {1'000, 0, 20}, tick());
  const auto longer = test::prompt(0, 1'500);
  const Decision second = router.route(test::request(longer), tick());
  EXPECT_EQ(second.total_cached().value, 992);  // at p, 62 blocks
  EXPECT_EQ(second.decode_cached_tokens.value, 992);
  EXPECT_EQ(second.expected_prefill, Nanos{508 * 100'000});
  EXPECT_EQ(second.expected_transfer, milliseconds(2) + Nanos{508 * 10'000});
  router.finish(second.ticket, {1'500, 0, 20}, tick());  // p had lost it: what is believed of d stays
  const Decision third = router.peek(test::request(longer), tick());
  EXPECT_EQ(third.decode_cached_tokens.value, 1'488);
  EXPECT_EQ(third.prefill_replica, p);
  policy.disaggregate = Disaggregate::decided;
  use();
  EXPECT_EQ(router.peek(test::request(longer), now).replica, d);
  EXPECT_EQ(router.peek(test::request(longer), now).split, Split::unified_cheaper);

  policy.decode_keeps_cache = false;
  always();
  const Decision fresh = router.route(test::request(test::prompt(90'000, 1'000)), tick());
  router.finish(fresh.ticket, {1'000, 0, 20}, tick());
  EXPECT_EQ(router.peek(test::request(test::prompt(90'000, 1'000)), tick()).decode_cached_tokens.value, 0);
}

TEST_F(Pairs, BelieveWhatEnginesOfBothSidesReport) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  always();
  std::vector<EngineHash> names;
  for (std::uint64_t i = 1; i <= 10; ++i) names.push_back(EngineHash{i});
  StoredBlocks stored;
  stored.ids = names;
  const auto start = test::prompt(0, 160);
  stored.token_ids = start;
  ASSERT_TRUE(router.blocks_stored(p, stored, tick()));
  stored.ids = std::span(names).first(5);
  stored.token_ids = std::span(start).first(80);
  ASSERT_TRUE(router.blocks_stored(d, stored, tick()));
  const Decision pair = router.route(test::request(prompt), tick());
  EXPECT_EQ(pair.total_cached().value, 160);
  EXPECT_EQ(pair.decode_cached_tokens.value, 80);
  const Decision foreseen = router.peek(test::request(prompt), tick());  // its blocks are on their way to both
  EXPECT_EQ(foreseen.total_cached().value, 992);
  EXPECT_EQ(foreseen.decode_cached_tokens.value, 992);
  ASSERT_TRUE(router.fail(pair.ticket, Outcome::replica_error, tick()));
  EXPECT_EQ(router.peek(test::request(prompt), tick()).total_cached().value, 160);
  EXPECT_EQ(router.peek(test::request(prompt), tick()).decode_cached_tokens.value, 80);
}

TEST_F(Pairs, AreNotFormedForFewUncachedTokens) {
  add("p", Role::prefill);
  add("d", Role::decode);
  policy.pair_min_tokens = 1'001;
  use();
  EXPECT_EQ(router.peek(test::request(prompt), now).split, Split::short_prompt);
}

TEST_F(Pairs, GiveWayWhenWhoWouldPrefillIsPastThePolicysLimits) {
  const ReplicaId p = add("p", Role::prefill);
  const ReplicaId d = add("d", Role::decode);
  policy.saturation_wait = milliseconds(250);
  always();
  const Decision first = router.route(test::request(prompt), now);  // 100 ms
  EXPECT_EQ(first.prefill_replica, p);
  EXPECT_TRUE(router.route(test::request(test::prompt(20'000, 1'000)), now).is_pair());
  const Decision third = router.route(test::request(test::prompt(40'000, 1'000)), now);  // 300 ms at p, 100 at d
  EXPECT_EQ(third.split, Split::no_prefill);
  EXPECT_EQ(third.replica, d);
  const Decision large = router.route(test::request(test::prompt(60'000, 3'000)), now);
  EXPECT_EQ(large.verdict, Verdict::saturated);
}

TEST(PrefillShareTest, FadesWithTimeAndIsBounded) {
  PrefillShare share;
  EXPECT_EQ(share.milli(0), 0);
  share.add(seconds(2).value, seconds(10).value);
  EXPECT_EQ(share.milli(seconds(10).value), 200);
  EXPECT_EQ(share.milli(seconds(20).value), 100);  // half after one window
  EXPECT_EQ(share.milli(seconds(1'000).value), 0);
  share.add(seconds(1'000'000).value, seconds(20).value);
  EXPECT_EQ(share.milli(seconds(20).value), 900);
  EXPECT_EQ(share.milli(seconds(5).value), 900);  // a clock that went back
  EXPECT_EQ(share.milli_with(seconds(20).value, seconds(10).value).second, 900);
}

TEST(PairTerms, APromptBringsTheDecodesBesideItATokenEach) {
  const std::int64_t step = milliseconds(10).value;
  EXPECT_EQ(detail::stretched(step, 0, milliseconds(100).value), step);
  // Half of the time in steps of 100 ms, 5 of them a second, half in steps of 10, 50 of them: 55 tokens.
  EXPECT_NEAR(static_cast<double>(detail::stretched(step, 500, milliseconds(90).value)), 1e9 / 55, 1e5);
  EXPECT_EQ(detail::stretched(step, 500, milliseconds(100'000).value), 2 * step) << "very long prompts bring nothing";
  EXPECT_LE(detail::stretched(step, 500, 0), step * 1'002 / 1'000) << "short ones hold nobody up";
}

TEST(PoolRatioTest, SplitsReplicasByTheBusierPart) {
  // 10 requests a second of 1,000 new tokens at 0.1 ms: one second of prefill a second. 10 x 100 answer tokens at 20 ms in batches of
  // 100 (0.1 ms a token in a step of 10 + 0 .. 20 ms, no context): 0.2 replicas.
  Rates rates = kRates;
  rates.context_ps = 1;
  const ServedTokens served{600'000, 600'000, 60'000, 600, 60};
  const PoolRatio ratio = advise_ratio(served, rates, milliseconds(20).value, 6);
  EXPECT_EQ(ratio.prefill, 5);
  EXPECT_EQ(ratio.decode, 1);
  EXPECT_EQ(ratio.prefill_busy_milli, 200);
  EXPECT_NEAR(static_cast<double>(ratio.decode_busy_milli), 100, 1);
  ServedTokens chatty = served;
  chatty.output_tokens = 1'200'000;
  EXPECT_EQ(advise_ratio(chatty, rates, milliseconds(20).value, 6).prefill, 2);
  EXPECT_EQ(advise_ratio({}, rates, milliseconds(20).value, 6).prefill, 0);
  EXPECT_EQ(advise_ratio(served, rates, milliseconds(20).value, 1).prefill, 0);
}

TEST(PairLeast, IsNeverAboveWhatAPairOrOneReplicaCosts) {
  test::EverySize draw;
  int all_lost = 0;
  for (int i = 0; i < 50'000; ++i) {
    Policy policy;
    policy.interference = static_cast<double>(draw(2'000)) / 1'000;
    policy.kv_transfer_per_token = Nanos{draw(100'000)};
    policy.kv_transfer_latency = Nanos{draw(100'000'000)};
    policy.ttft_limit = Nanos{draw(1) * draw(100'000'000'000)};
    policy.itl_limit = Nanos{draw(100'000'000)};  // often below any step: all is lost before the prompt comes
    const PairWeights w = PairWeights::from(policy);
    const Rates rates{draw(100'000'000), draw(100'000'000), draw(10'000), draw(1'000'000), draw(10'000'000)};
    const CostRequest q{1 + draw(200'000), draw(kMaxOutput), 1 + draw(100)};
    const std::int64_t whole_prefill = rates.prefill_ns(q.input_tokens);
    CostReplica r;
    r.cached_tokens = draw(1) == 0 ? 0 : draw(q.input_tokens);
    r.host_tokens = draw(r.cached_tokens);
    const bool apart = draw(1) == 0;
    const detail::PairLine line = detail::pair_line(w, q, rates, whole_prefill, r, apart);
    r.requests = draw(300);
    r.pending_ns = draw(100'000'000'000);
    r.context_tokens = draw(10'000'000);
    if (apart) r.slowness += static_cast<std::int32_t>(draw(3'072));
    PairReplica more{.share_milli = draw(PrefillShare::kMostMilli), .decoding = draw(r.requests)};
    more.share_with_milli = more.share_milli + draw(PrefillShare::kMostMilli - more.share_milli);
    more.prompt_ns = draw(100'000'000'000);

    const PromptTerms prompt = prompt_terms(w, q, rates, whole_prefill, r, more);
    const DecodeTerms here = decode_terms(w, q, rates, r, more, more.share_with_milli);
    const DecodeTerms from_elsewhere = decode_terms(w, q, rates, r, more, more.share_milli);
    const detail::PairLeast least = detail::pair_least(line, w, q, rates, r, more);
    ASSERT_LE(least.prompt, prompt.total) << i;
    ASSERT_LE(least.whole(), prompt.total + here.total) << i;
    ASSERT_LE(least.decode, r.pending_ns + transfer_ns(w, q.input_tokens, r.cached_tokens) + from_elsewhere.total) << i;
    all_lost += here.crowded < from_elsewhere.crowded ? 1 : 0;
  }
  EXPECT_GT(all_lost, 50);  // where more prefill loses less of those who decode there
}

}  // namespace
}  // namespace warmroute::disaggregate_test
