// Names, pools, quotas and classes in front of a router.
#include "warmroute/route/models.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace warmroute {
namespace {

constexpr Nanos kStart = seconds(1'000);

struct Models : testing::Test {
  Router router;
  ModelRouter models{router};
  std::vector<std::uint32_t> prompt = std::vector<std::uint32_t>(64, 7);

  ReplicaId add(std::string name, std::string pool) {
    auto id = router.add_replica({.name = std::move(name), .pool = std::move(pool)}, kStart);
    EXPECT_TRUE(id);
    return *id;
  }
  Request ask(std::string_view model) {
    Request r;
    r.model = model;
    r.token_ids = prompt;
    r.max_output_tokens = 36;  // 100 tokens with the prompt
    return r;
  }
};

TEST_F(Models, AnAliasLeadsToItsPoolAndSaysWhatToAskTheServerFor) {
  const ReplicaId gpu = add("gpu", "70b");
  add("any", "");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat", .targets = {{.pool = "70b", .model = "llama-70b"}}}}}));
  const ModelDecision d = models.route(ask("chat"), kStart);
  ASSERT_TRUE(d.routed());
  EXPECT_EQ(d.decision.replica, gpu);
  EXPECT_EQ(d.pool, "70b");
  EXPECT_EQ(d.model, "llama-70b");
  EXPECT_FALSE(d.external);
  EXPECT_TRUE(models.first_token(d.ticket, kStart));
  EXPECT_TRUE(models.finish(d.ticket, {64, 0, 5}, kStart));
  EXPECT_FALSE(models.finish(d.ticket, {64, 0, 5}, kStart));
}

TEST_F(Models, WeightsShareRequestsAndASessionStaysWhereItIs) {
  add("a", "stable");
  add("b", "canary");
  ASSERT_TRUE(models.set_map(
      {.models = {{.name = "chat", .targets = {{.pool = "stable", .weight = 90}, {.pool = "canary", .weight = 10}}}}}));
  int canary = 0;
  for (int i = 0; i < 5'000; ++i) canary += models.route(ask("chat"), kStart).pool == "canary";
  EXPECT_NEAR(canary, 500, 80);  // four standard deviations
  std::map<std::string, std::string_view> homes;
  int canary_sessions = 0;
  for (int turn = 0; turn < 3; ++turn) {
    for (int s = 0; s < 1'000; ++s) {
      Request r = ask("chat");
      const std::string session = "session-" + std::to_string(s);
      r.session = session;
      const ModelDecision d = models.route(r, kStart);
      ASSERT_EQ(homes.try_emplace(session, d.pool).first->second, d.pool);
      canary_sessions += turn == 0 && d.pool == "canary";
    }
  }
  EXPECT_NEAR(canary_sessions, 100, 40);
}

TEST_F(Models, FallbacksAreTriedInOrderWhenNoTargetTakesIt) {
  const ReplicaId gpu = add("gpu", "70b");
  add("small", "8b");
  add("api", "api");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat",
                                          .targets = {{.pool = "70b"}},
                                          .fallbacks = {{.pool = "gone"}, {.pool = "8b"}, {.pool = "api"}}}},
                              .pools = {{.name = "api", .external = true}}}));
  EXPECT_EQ(models.route(ask("chat"), kStart).pool, "70b");
  Policy policy;
  policy.route_when_all_down = false;
  ASSERT_TRUE(router.set_policy(policy));
  ASSERT_TRUE(router.set_health(gpu, Health::down, "probe", kStart));
  const ModelDecision d = models.route(ask("chat"), kStart);
  EXPECT_EQ(d.pool, "8b");
  EXPECT_EQ(d.target, 2);
  EXPECT_EQ(d.refused, 2);
}

TEST_F(Models, NoNameFallsThroughToTheCatchAllPool) {
  add("any", "");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat", .targets = {{.pool = "70b"}}}}}));
  EXPECT_EQ(models.route(ask("chat"), kStart).decision.verdict, Verdict::no_pool);
  EXPECT_EQ(models.route(ask("other"), kStart).decision.verdict, Verdict::no_pool);
  EXPECT_TRUE(models.route(ask(""), kStart).routed());  // that is its name
  ASSERT_TRUE(models.set_map({.models = {{.name = "", .targets = {{.pool = ""}}}}}));
  EXPECT_TRUE(models.route(ask("other"), kStart).routed());  // said so
  ASSERT_TRUE(models.set_map({.unknown_names_are_pools = false}));
  EXPECT_EQ(models.route(ask(""), kStart).decision.verdict, Verdict::no_pool);
}

TEST_F(Models, AClassThatMayNotLeaveNeverReachesAnExternalPoolWhateverIsDown) {
  const ReplicaId gpu = add("gpu", "70b");
  add("api", "api");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat", .targets = {{.pool = "70b"}}, .fallbacks = {{.pool = "api"}}},
                                         {.name = "cloud", .targets = {{.pool = "api"}}}},
                              .pools = {{.name = "api", .external = true}},
                              .classes = {{.class_id = 7, .may_leave = false}, {.class_id = 8, .may_leave = true}}}));
  Policy policy;
  policy.route_when_all_down = false;
  ASSERT_TRUE(router.set_policy(policy));
  ASSERT_TRUE(router.set_health(gpu, Health::down, "probe", kStart));
  for (const std::string_view model : {"chat", "cloud", "api"}) {
    Request r = ask(model);
    r.class_id = 8;
    EXPECT_EQ(models.route(r, kStart).decision.verdict, Verdict::routed) << model;
    r.class_id = 7;
    const ModelDecision d = models.route(r, kStart);
    EXPECT_EQ(d.decision.verdict, model == "chat" ? Verdict::no_replica : Verdict::no_permitted_pool) << model;
    EXPECT_EQ(d.forbidden, 1) << model;
    EXPECT_EQ(d.decision.class_id, 7U);
  }
}

TEST_F(Models, AQuotaSendsOnToTheNextTargetAndSaysWhenToComeBack) {
  add("one", "one");
  add("two", "two");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat", .targets = {{.pool = "one"}}, .fallbacks = {{.pool = "two"}}},
                                         {.name = "lone", .targets = {{.pool = "one"}}}},
                              .pools = {{.name = "one", .external = true, .requests_per_minute = 3}}}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(models.route(ask("chat"), kStart).pool, "one");
  const ModelDecision over = models.route(ask("chat"), kStart);
  EXPECT_EQ(over.pool, "two");
  const ModelDecision refused = models.route(ask("lone"), kStart);
  EXPECT_EQ(refused.decision.verdict, Verdict::saturated);
  EXPECT_EQ(refused.decision.retry_after, seconds(20));
  EXPECT_EQ(models.route(ask("lone"), kStart + seconds(20) - Nanos{1}).decision.verdict, Verdict::saturated);
  EXPECT_TRUE(models.route(ask("lone"), kStart + seconds(20)).routed());
  const auto readings = models.readings();
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].routed, 4U);
  EXPECT_EQ(readings[0].over_quota, 3U);
  EXPECT_EQ(readings[0].in_flight, 4);
}

TEST_F(Models, ATokenQuotaIsSettledByTheUsageOnce) {
  add("one", "one");
  const ModelMap map{.models = {{.name = "chat", .targets = {{.pool = "one"}}}},
                     .pools = {{.name = "one", .external = true, .tokens_per_minute = 300}}};
  ASSERT_TRUE(models.set_map(map));
  std::vector<ModelTicket> open;
  for (int i = 0; i < 3; ++i) open.push_back(models.route(ask("chat"), kStart).ticket);  // 64 + 36 each
  EXPECT_FALSE(models.route(ask("chat"), kStart).routed());
  ASSERT_TRUE(models.finish(open[0], {64, 0, 0}, kStart));  // 36 less than charged
  EXPECT_FALSE(models.route(ask("chat"), kStart).routed());
  EXPECT_FALSE(models.finish(open[0], {64, 0, 0}, kStart));
  ASSERT_TRUE(models.fail(open[1], Outcome::connect_error, kStart));  // 100 less: it was never computed
  EXPECT_TRUE(models.route(ask("chat"), kStart).routed());
  EXPECT_FALSE(models.route(ask("chat"), kStart).routed());
  ASSERT_TRUE(models.set_map(map));  // what was charged stays charged
  EXPECT_FALSE(models.route(ask("chat"), kStart).routed());
  ASSERT_TRUE(models.finish(open[2], {64, 0, 636}, kStart));  // 600 more
  EXPECT_FALSE(models.route(ask("chat"), kStart + seconds(120)).routed());
  EXPECT_TRUE(models.route(ask("chat"), kStart + seconds(160)).routed());
}

TEST_F(Models, ARequestLargerThanAMinutesTokensPassesAloneAndIsPaidFor) {
  add("one", "one");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat", .targets = {{.pool = "one"}}}},
                              .pools = {{.name = "one", .tokens_per_minute = 50}}}));
  EXPECT_TRUE(models.route(ask("chat"), kStart).routed());
  EXPECT_EQ(models.route(ask("chat"), kStart).decision.retry_after, seconds(120));
}

TEST_F(Models, AServerThatAsksForPeaceIsLeftAlone) {
  add("one", "one");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat", .targets = {{.pool = "one"}}}}, .pools = {{.name = "one"}}}));
  const ModelDecision d = models.route(ask("chat"), kStart);
  ASSERT_TRUE(models.fail(d.ticket, Outcome::backpressure, kStart, seconds(5)));
  const ModelDecision blocked = models.route(ask("chat"), kStart + seconds(2));
  EXPECT_EQ(blocked.decision.verdict, Verdict::saturated);
  EXPECT_EQ(blocked.decision.retry_after, seconds(3));
  EXPECT_TRUE(models.route(ask("chat"), kStart + seconds(5)).routed());
}

TEST_F(Models, OnlySoManyAreInFlightAndALeaseThatEndsFreesItsPlace) {
  add("one", "one");
  ASSERT_TRUE(models.set_map(
      {.models = {{.name = "chat", .targets = {{.pool = "one"}}}}, .pools = {{.name = "one", .max_in_flight = 2}}}));
  EXPECT_TRUE(models.route(ask("chat"), kStart).routed());
  EXPECT_TRUE(models.route(ask("chat"), kStart).routed());
  EXPECT_EQ(models.route(ask("chat"), kStart).decision.verdict, Verdict::saturated);
  router.advance(kStart + seconds(601));
  EXPECT_TRUE(models.route(ask("chat"), kStart + seconds(601)).routed());
}

TEST_F(Models, TheCheapestTargetCountsWhatItsCacheIsBelievedToHold) {
  add("a", "a");
  add("b", "b");
  ASSERT_TRUE(models.set_map(
      {.models = {{.name = "chat", .targets = {{.pool = "a"}, {.pool = "b"}}, .choice = TargetChoice::cheapest},
                  {.name = "dear", .targets = {{.pool = "a"}}}},
       .pools = {{.name = "a", .external = true, .input_price = 1'100'000, .cached_input_price = 110'000},
                 {.name = "b", .external = true, .input_price = 1'000'000, .cached_input_price = 1'000'000}}}));
  EXPECT_EQ(models.route(ask("chat"), kStart).pool, "b");
  const ModelDecision warm = models.route(ask("dear"), kStart);
  ASSERT_TRUE(models.first_token(warm.ticket, kStart));
  ASSERT_TRUE(models.finish(warm.ticket, {64, 0, 5}, kStart));
  router.advance(kStart);
  EXPECT_EQ(models.route(ask("chat"), kStart).pool, "a");
  for (auto& id : prompt) id = 9;
  EXPECT_EQ(models.route(ask("chat"), kStart).pool, "b");
}

TEST_F(Models, AFaultyMapChangesNothingAndNamesEveryFault) {
  add("gpu", "70b");
  ASSERT_TRUE(models.set_map({.models = {{.name = "chat", .targets = {{.pool = "70b"}}}}}));
  const Status s = models.set_map({.models = {{.name = "x"}, {.name = "x", .targets = {{.pool = "70b", .weight = 0}}}},
                                   .pools = {{.name = "p", .requests_per_minute = -1}}});
  ASSERT_FALSE(s);
  for (const std::string_view part :
       {"model 'x' has no targets", "'x' is there twice", "weights", "requests_per_minute"})
    EXPECT_NE(s.error().message.find(part), std::string::npos) << part << " in " << s.error().message;
  EXPECT_TRUE(models.route(ask("chat"), kStart).routed());
}

TEST_F(Models, MapsMayBeSwappedWhileRequestsAreRouted) {
  add("a", "a");
  add("b", "b");
  const auto map_to = [](std::string pool) {
    return ModelMap{.models = {{.name = "chat", .targets = {{.pool = pool}}}},
                    .pools = {{.name = pool, .external = true}}};
  };
  ASSERT_TRUE(models.set_map(map_to("a")));
  std::vector<std::thread> threads;
  std::atomic<int> lost{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        const ModelDecision d = models.route(ask("chat"), kStart);
        if (!d.routed() || (d.pool != "a" && d.pool != "b") || !models.finish(d.ticket, {64, 0, 1}, kStart)) ++lost;
      }
    });
  }
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(models.set_map(map_to(i % 2 == 0 ? "b" : "a")));
  for (auto& t : threads) t.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_EQ(router.requests_in_flight("a") + router.requests_in_flight("b"), 0);
}

}  // namespace
}  // namespace warmroute
