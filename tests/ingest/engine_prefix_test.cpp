// The hit ratio that an engine counts beside the one that the router believes: counters that begin anew, ranks that share them.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/observe/prometheus.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

class EnginePrefixTest : public testing::Test {
 protected:
  ReplicaId add(const std::string& name, std::uint32_t rank = 0) {
    ReplicaSpec spec;
    spec.name = name;
    spec.dp_rank = rank;
    return *router.add_replica(spec, Nanos{1});
  }
  [[nodiscard]] ReplicaStatistics of(ReplicaId id) const {
    for (const auto& r : router.statistics().replicas) {
      if (r.id == id) return r;
    }
    ADD_FAILURE() << "no such replica";
    return {};
  }
  [[nodiscard]] std::string page() const {
    std::string out;
    append_prometheus(router.statistics(), out);
    return out;
  }
  [[nodiscard]] bool says(const std::string& line) const {
    return page().find("\n" + line + "\n") != std::string::npos;
  }
  AppliedReading apply(const std::string& text, const std::vector<RankReplica>& replicas) {
    const auto reading = parser.parse(text);
    EXPECT_TRUE(reading) << reading.error().message;
    return apply_engine_reading(router, *reading, replicas, Nanos{++now});
  }

  Router router;
  EngineMetricsParser parser;
  std::int64_t now = 10;
  PrefixCounters last;
};

TEST_F(EnginePrefixTest, CountsFromTheFirstReadingOnAndThroughRestarts) {
  const ReplicaId id = add("a");
  const auto read = [&](std::int64_t queries, std::int64_t hits) {
    EXPECT_TRUE(router.prefix_counters(id, {queries, hits}, Nanos{++now}));
    return of(id).engine_prefix;
  };
  EXPECT_FALSE(of(id).engine_prefix.known);
  EXPECT_FALSE(read(1'000, 400).known) << "what was before is not this router's";
  PrefixGains gains = read(1'100, 430);
  EXPECT_TRUE(gains.known);
  EXPECT_EQ(gains.gained.queries, 100);
  EXPECT_EQ(gains.gained.hits, 30);
  EXPECT_EQ(gains.at, Nanos{now});
  gains = read(50, 20);  // began anew
  EXPECT_EQ(gains.gained.queries, 150);
  EXPECT_EQ(gains.gained.hits, 50);
  gains = read(60, 10);  // again, and it has looked up more since than before: its hits tell
  EXPECT_EQ(gains.gained.queries, 210);
  EXPECT_EQ(gains.gained.hits, 60);
  EXPECT_TRUE(router.prefix_counters(id, {5'000, 1'000, true}, Nanos{++now}));
  EXPECT_FALSE(of(id).engine_prefix.known) << "blocks are no tokens";
  EXPECT_EQ(router.prefix_counters(id, {5, 6}, Nanos{++now}).code(), Code::invalid_argument);
  EXPECT_EQ(router.prefix_counters(id, {5, -1}, Nanos{++now}).code(), Code::invalid_argument);
  ASSERT_TRUE(router.remove_replica(id, Nanos{++now}));
  EXPECT_EQ(router.prefix_counters(id, {7, 7}, Nanos{++now}).code(), Code::stale);
  EXPECT_FALSE(of(add("a")).engine_prefix.known) << "a new tenant has a clean sheet";
}

TEST_F(EnginePrefixTest, EqualsWhatAnEngineReallyDidWhateverRestartsAndMissedScrapes) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    const ReplicaId id = add("r" + std::to_string(round));
    PrefixCounters engine;
    std::int64_t queries = 0, hits = 0;
    ASSERT_TRUE(router.prefix_counters(id, engine, Nanos{++now}));
    for (int step = 0; step < 100; ++step) {
      if (random() % 10 == 0) engine = {};
      const std::int64_t asked = random() % 1'000, found = random() % (static_cast<unsigned>(asked) + 1);
      const PrefixCounters before = engine;
      engine.queries += asked;
      engine.hits += found;
      queries += asked;
      hits += found;
      // A restart is seen when a counter fell; one that was overtaken at once cannot be.
      if (before.queries == 0 && engine.queries >= last.queries && engine.hits >= last.hits) {
        queries -= last.queries;
        hits -= last.hits;
      }
      ASSERT_TRUE(router.prefix_counters(id, engine, Nanos{++now}));
      last = engine;
    }
    const PrefixGains gains = of(id).engine_prefix;
    ASSERT_EQ(gains.gained.queries, queries) << round;
    ASSERT_EQ(gains.gained.hits, hits) << round;
    last = {};
  }
}

TEST_F(EnginePrefixTest, IsPerRankWhereTheEngineCountsSo) {
  const ReplicaId a = add("v", 0), b = add("v", 1);
  const auto text = [](int rank, int queries, int hits) {
    const std::string labels = "{engine=\"" + std::to_string(rank) + "\",model_name=\"m\"} ";
    return "vllm:prefix_cache_queries_total" + labels + std::to_string(queries) + "\nvllm:prefix_cache_hits_total" +
           labels + std::to_string(hits) + "\n";
  };
  const std::vector<RankReplica> replicas{{a, 0, {}}, {b, 1, {}}};
  EXPECT_FALSE(says("warmroute_replica_engine_prefix_hit_ratio"));
  apply(text(0, 10, 0) + text(1, 20, 20), replicas);
  EXPECT_EQ(page().find("warmroute_replica_engine_prefix_hit_ratio{"), std::string::npos) << "unknown is not 0";
  EXPECT_EQ(apply(text(0, 110, 25) + text(1, 20, 20), replicas).shared_counters, 0u);
  EXPECT_TRUE(says(
      R"(warmroute_replica_engine_prefix_hit_ratio{replica="v",dp_rank="0",pool="",scope="replica",unit="tokens"} 0.25)"))
      << page();
  EXPECT_TRUE(says(
      R"(warmroute_replica_engine_prefix_total{replica="v",dp_rank="0",pool="",scope="replica",unit="tokens",result="query"} 100)"));
  EXPECT_TRUE(says(
      R"(warmroute_replica_engine_prefix_total{replica="v",dp_rank="1",pool="",scope="replica",unit="tokens",result="hit"} 0)"));
  EXPECT_EQ(page().find(R"(engine_prefix_hit_ratio{replica="v",dp_rank="1")"), std::string::npos);
}

TEST_F(EnginePrefixTest, IsEveryReplicasOfAServerThatCountsItsRanksTogether) {
  const ReplicaId a = add("s", 0), b = add("s", 1), other = add("other");
  const auto text = [](int prompt, int device, int host) {
    return "sglang:num_running_reqs{dp_rank=\"0\",model_name=\"m\"} 1\n"
           "sglang:num_running_reqs{dp_rank=\"1\",model_name=\"m\"} 2\n"
           "sglang:prompt_tokens_total{model_name=\"m\"} " +
           std::to_string(prompt) + "\nsglang:cached_tokens_total{cache_source=\"device\",model_name=\"m\"} " +
           std::to_string(device) + "\nsglang:cached_tokens_total{cache_source=\"host\",model_name=\"m\"} " +
           std::to_string(host) + "\n";
  };
  const std::vector<RankReplica> replicas{{a, 0, {}}, {b, 1, {}}, {other, 2, "n"}};
  apply(text(100, 10, 0), replicas);
  EXPECT_EQ(apply(text(300, 100, 10), replicas).shared_counters, 2u);
  for (const ReplicaId id : {a, b}) {
    EXPECT_TRUE(of(id).engine_prefix.gained.shared);
    EXPECT_EQ(of(id).engine_prefix.gained.queries, 200);
    EXPECT_EQ(of(id).engine_prefix.gained.hits, 100);
  }
  EXPECT_FALSE(of(other).engine_prefix.known) << "of another model";
  EXPECT_TRUE(says(
      R"(warmroute_replica_engine_prefix_hit_ratio{replica="s",dp_rank="1",pool="",scope="server",unit="tokens"} 0.5)"))
      << page();
}

TEST_F(EnginePrefixTest, IsTheReplicasOwnWhereTheServerHasOneRank) {
  const ReplicaId id = add("s");
  const auto text = [](int prompt, int cached) {
    return "sglang:num_running_reqs{model_name=\"m\"} 1\nsglang:prompt_tokens_total{model_name=\"m\"} " +
           std::to_string(prompt) + "\nsglang:cached_tokens_total{model_name=\"m\"} " + std::to_string(cached) + "\n";
  };
  apply(text(0, 0), {{id, {}, {}}});
  EXPECT_EQ(apply(text(10, 5), {{id, {}, {}}}).shared_counters, 0u);
  EXPECT_FALSE(of(id).engine_prefix.gained.shared);
  EXPECT_EQ(of(id).engine_prefix.gained.hits, 5);
  const ReplicaId blocks = add("t");
  apply("trtllm_kv_cache_reused_blocks_total 9\ntrtllm_kv_cache_missed_blocks_total 3\n", {{blocks, {}, {}}});
  apply("trtllm_kv_cache_reused_blocks_total 12\ntrtllm_kv_cache_missed_blocks_total 4\n", {{blocks, {}, {}}});
  EXPECT_TRUE(says(
      R"(warmroute_replica_engine_prefix_hit_ratio{replica="t",dp_rank="0",pool="",scope="replica",unit="blocks"} 0.75)"))
      << page();
}

TEST_F(EnginePrefixTest, StandsBesideWhatWasMatchedHere) {
  const ReplicaId id = add("a");
  const std::vector<std::uint32_t> prompt(1'600, 7);
  Request request;
  request.token_ids = prompt;
  const auto route = [&] { return router.route(request, Nanos{++now}).ticket; };
  EXPECT_EQ(page().find("warmroute_replica_match_ratio{"), std::string::npos) << "nothing routed is not a ratio of 0";
  const Ticket failed = route();
  router.fail(failed, Outcome::connect_error, Nanos{++now});
  EXPECT_EQ(of(id).input_tokens, 0) << "never prefilled";
  const Ticket cold = route();
  EXPECT_EQ(of(id).input_tokens, 0) << "not yet";
  router.first_token(cold, Nanos{++now});
  router.first_token(cold, Nanos{++now});
  router.finish(cold, {.cached_tokens = 0}, Nanos{++now});
  EXPECT_EQ(of(id).input_tokens, 1'600) << "once";
  EXPECT_EQ(of(id).matched_tokens, 0);
  const Ticket warm = route();
  router.finish(warm, {.cached_tokens = 1'600}, Nanos{++now});  // an answer in one piece: nobody saw a first token
  EXPECT_EQ(of(id).input_tokens, 3'200);
  EXPECT_EQ(of(id).matched_tokens, 1'584) << "all but the last block, which is computed for the first token";
  EXPECT_TRUE(says(R"(warmroute_replica_match_ratio{replica="a",dp_rank="0",pool=""} 0.495)")) << page();
  EXPECT_TRUE(says(R"(warmroute_replica_routed_tokens_total{replica="a",dp_rank="0",pool="",result="matched"} 1584)"));
}

}  // namespace
}  // namespace warmroute
