// Policy JSON, explanations and the Prometheus page.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <limits>
#include <map>
#include <numeric>

#include "warmroute/observe/prometheus.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/policy_json.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

TEST(PolicyJson, ReadsBackWhatItWrote) {
  EXPECT_EQ(*policy_from_json(policy_to_json(Policy{})), Policy{});
  for (std::uint64_t i = 0; i < 200; ++i) {
    Policy p;
    p.algorithm = static_cast<Algorithm>(mix(i) % kAlgorithmNames.size());
    p.beta = static_cast<double>(mix(i + 1) % 100'000) / 1009;
    p.gamma = static_cast<double>(mix(i + 2) % 1'000) / 31;
    p.hash_seed = mix(i + 3);
    p.seed = mix(i + 4);
    p.lease = Nanos{static_cast<std::int64_t>(mix(i + 5) % 100'000'000'000) + 1'000'000};
    p.host_transfer_per_token = Nanos{static_cast<std::int64_t>(mix(i + 6) % 1'000'000)};
    p.ring_key = static_cast<RingKey>(mix(i + 7) % 2);
    p.isolation = static_cast<Isolation>(mix(i + 8) % 3);
    p.stale_signals = static_cast<StaleSignals>(mix(i + 9) % 2);
    p.block_size = static_cast<std::uint32_t>(1 + mix(i + 10) % 512);
    p.route_when_all_down = i % 2 == 0;
    p.version = i;
    const auto back = policy_from_json(policy_to_json(p));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, p);
  }
}

TEST(PolicyJson, KeepsTheBaseWhereAMemberIsAbsent) {
  Policy base;
  base.beta = 3;
  const auto p = policy_from_json(R"({"algorithm": "round_robin"})", base);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->algorithm, Algorithm::round_robin);
  EXPECT_EQ(p->beta, 3);
}

TEST(PolicyJson, NamesEveryFaultAtOnce) {
  const auto p =
      policy_from_json(R"({"algorithm": "best", "beta": "x", "gama": 1, "block_size": 4096, "lease_ms": -1})");
  ASSERT_FALSE(p);
  EXPECT_EQ(p.error().code, Code::invalid_argument);
  for (const char* word : {"algorithm", "beta", "gama", "block_size", "lease"}) {
    EXPECT_NE(p.error().message.find(word), std::string::npos) << p.error().message;
  }
}

TEST(PolicyJson, RefusesWhatIsNoObject) {
  EXPECT_EQ(policy_from_json("[1]").code(), Code::not_an_object);
  EXPECT_EQ(policy_from_json("{\"beta\":").code(), Code::invalid_json);
  EXPECT_EQ(policy_from_json("").code(), Code::invalid_json);
  EXPECT_EQ(policy_from_json(std::string(100'000, ' ')).code(), Code::too_large);
  EXPECT_EQ(policy_from_json(R"({"block_size": 99999999999999})").code(), Code::invalid_argument);
}

class FormatsTest : public testing::Test {
 protected:
  FormatsTest() : prompt(1'600) {
    std::iota(prompt.begin(), prompt.end(), 1u);
    EXPECT_TRUE(router.add_replica({.name = "a\"quoted\\name"}, Nanos{1}));
    EXPECT_TRUE(router.add_replica({.name = "b", .dp_rank = 1}, Nanos{1}));
    request.token_ids = prompt;
  }
  Router router;
  std::vector<std::uint32_t> prompt;
  Request request;
};

TEST_F(FormatsTest, ExplanationsAreValidJsonWhoseTermsAddUp) {
  const Decision d = router.route(request, Nanos{2});
  router.finish(d.ticket, {1'600, 0, 5}, Nanos{3});
  const std::string json = to_json(router.explain(request, Nanos{4}));
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_EQ(parser.parse(json).get(root), simdjson::SUCCESS) << json;
  EXPECT_EQ(std::string_view(root["reason"]), "best_match");
  EXPECT_EQ(std::int64_t(root["cached_tokens"]), 1'584);
  std::size_t chosen = 0;
  for (const auto c : simdjson::dom::array(root["candidates"])) {
    const double sum = double(c["wait_ms"]) + double(c["miss_ms"]) - double(c["hot_rebate_ms"]) +
                       double(c["stall_ms"]) + double(c["decode_ms"]) + double(c["transfer_ms"]) -
                       double(c["session_bonus_ms"]);
    EXPECT_NEAR(sum, double(c["cost_ms"]), 0.01);
    chosen += bool(c["chosen"]) ? 1 : 0;
    EXPECT_EQ(std::string_view(c["lost_because"]).empty(), bool(c["chosen"]));
  }
  EXPECT_EQ(chosen, 1u);
}

TEST_F(FormatsTest, ExplanationsSayWhyNobodyMatches) {
  EXPECT_NE(router.explain(request, Nanos{2}).no_match.find("nothing is known"), std::string_view::npos);
  const Decision d = router.route(request, Nanos{3});
  router.finish(d.ticket, {}, Nanos{4});
  EXPECT_TRUE(router.explain(request, Nanos{5}).no_match.empty());
  Request other = request;
  other.adapter = "sql";
  EXPECT_NE(router.explain(other, Nanos{5}).no_match.find("adapter"), std::string_view::npos);
  Request tiny;
  const std::vector<std::uint32_t> few{1, 2, 3};
  tiny.token_ids = few;
  EXPECT_NE(router.explain(tiny, Nanos{5}).no_match.find("shorter than one block"), std::string_view::npos);
  EXPECT_NE(router.explain(Request{}, Nanos{5}).no_match.find("no prompt blocks"), std::string_view::npos);
  EXPECT_NE(to_text(router.explain(other, Nanos{5})).find("no match: "), std::string::npos);
}

TEST_F(FormatsTest, ExplanationsSayWhyAReplicaWasNotAsked) {
  const auto rows = router.replicas();
  ASSERT_TRUE(router.set_health(rows[0].id, Health::down, "probe", Nanos{2}));
  Request r = request;
  r.excluded = {&rows[1].id, 1};
  const Explanation e = router.explain(r, Nanos{3});
  EXPECT_EQ(e.decision.verdict, Verdict::all_excluded);
  ASSERT_EQ(e.candidates.size(), 2u);
  EXPECT_EQ(e.candidates[0].lost_because, "down");
  EXPECT_EQ(e.candidates[1].lost_because, "excluded by the caller");
}

TEST_F(FormatsTest, PrometheusPageHasEachFamilyOnceAndEscapesNames) {
  const Decision d = router.route(request, Nanos{2});
  router.first_token(d.ticket, milliseconds(70));
  router.finish(d.ticket, {1'600, 0, 5}, milliseconds(90));
  std::string page;
  append_prometheus(router.statistics(), page);
  std::map<std::string, int> types;
  std::size_t begin = 0;
  while (begin < page.size()) {
    const std::size_t end = page.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    const std::string line = page.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("# TYPE ")) {
      ++types[line.substr(7, line.find(' ', 7) - 7)];
    } else if (!line.starts_with("#")) {
      EXPECT_TRUE(line.starts_with("warmroute_")) << line;
    }
  }
  for (const auto& [name, count] : types) EXPECT_EQ(count, 1) << name;
  EXPECT_NE(page.find(R"(replica="a\"quoted\\name")"), std::string::npos);
  EXPECT_NE(page.find("warmroute_decisions_total{verdict=\"routed\"} 1\n"), std::string::npos);
  EXPECT_NE(page.find("warmroute_ttft_observed_seconds_bucket{le=\"0.1\"} 1\n"), std::string::npos);
  EXPECT_NE(page.find("warmroute_ttft_observed_seconds_bucket{le=\"0.05\"} 0\n"), std::string::npos);
  EXPECT_NE(page.find("warmroute_ttft_observed_seconds_count 1\n"), std::string::npos);
  EXPECT_NE(page.find("warmroute_outcomes_total{outcome=\"finished\"} 1\n"), std::string::npos);
  EXPECT_NE(page.find("kind=\"0\",source=\"used\",rate=\"token\"} 2.4"), std::string::npos) << page;
  EXPECT_NE(page.find("warmroute_replica_slowness{replica=\"b\",dp_rank=\"1\",pool=\"\"} 1\n"), std::string::npos)
      << page;
}

TEST_F(FormatsTest, PrometheusPageTellsForeignPromptTokensOfEnginesThatTellThem) {
  const auto page = [&] {
    std::string out;
    append_prometheus(router.statistics(), out);
    return out;
  };
  EXPECT_EQ(page().find("\nwarmroute_replica_foreign_prompt_tokens{"), std::string::npos);
  for (const auto& row : router.replicas()) {
    if (row.spec.name != "b") continue;
    ASSERT_TRUE(router.signal(row.id, Signal::waiting_tokens, 700, Nanos{2}));
  }
  const std::string now = page();
  EXPECT_NE(now.find("\nwarmroute_replica_foreign_prompt_tokens{replica=\"b\",dp_rank=\"1\",pool=\"\"} 700\n"),
            std::string::npos)
      << now;
  EXPECT_EQ(now.find("warmroute_replica_foreign_prompt_tokens{replica=\"a"), std::string::npos);
}

}  // namespace
}  // namespace warmroute
