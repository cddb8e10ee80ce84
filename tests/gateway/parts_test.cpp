// The gateway's small parts, each alone.
#include <gtest/gtest.h>

#include "gateway/config.hpp"
#include "gateway/heads.hpp"
#include "gateway/retry_budget.hpp"
#include "warmroute/trace/replica_model.hpp"

namespace warmroute::gateway {
namespace {

TEST(RetryBudget, GivesATenthOfTheTrafficAndWhatItStartedWith) {
  RetryBudget budget(10, 3, 5);
  int taken = 0;
  while (budget.take()) taken += 1;
  EXPECT_EQ(taken, 3);
  for (int i = 0; i < 9; ++i) budget.request();
  EXPECT_FALSE(budget.take());
  budget.request();
  EXPECT_TRUE(budget.take());
  for (int i = 0; i < 1'000; ++i) budget.request();
  EXPECT_EQ(budget.left(), 5);
}

TEST(Heads, SayWhatAStatusMeansForTheReplica) {
  EXPECT_EQ(outcome_of_status(200), Outcome::finished);
  EXPECT_EQ(outcome_of_status(404), Outcome::client_error);
  EXPECT_EQ(outcome_of_status(429), Outcome::backpressure);
  EXPECT_EQ(outcome_of_status(503), Outcome::backpressure);
  EXPECT_EQ(outcome_of_status(500), Outcome::replica_error);
  EXPECT_TRUE(worth_a_retry(504));
  EXPECT_FALSE(worth_a_retry(501));
  EXPECT_FALSE(worth_a_retry(400));
}

TEST(Heads, WhatConcernsOneConnectionIsNotPassedOn) {
  ClientRequest request{examples::http::verb::post, "/x", 11};
  request.set("Connection", "keep-alive, X-Mine");
  request.set("X-Mine", "1");
  request.set("X-Yours", "2");
  request.set("Te", "trailers");
  request.set("Accept-Encoding", "gzip");
  request.set("Expect", "100-continue");
  request.body() = "body";
  const auto out = upstream_request(request, request.body(), "host:1", 3, {});
  EXPECT_EQ(out.count("X-Mine") + out.count("Te") + out.count("Connection") + out.count("Accept-Encoding") +
                out.count("Expect"),
            0u);
  EXPECT_EQ(out["X-Yours"], "2");
  EXPECT_EQ(out["Host"], "host:1");
  EXPECT_EQ(out["Content-Length"], "4");
  EXPECT_EQ(out["x-data-parallel-rank"], "3");
}

// ---------------------------------------------------------------- configuration

TEST(GatewayConfig, ReadsFlagsInBothSpellings) {
  const auto config = read_config({"--replica", "a=10.0.0.1:8000", "--replica=[::1]:9", "--port=0", "--block-size",
                                   "64", "--policy", "bounded_hash", "--model", "m", "--profile", "70b-8xh100",
                                   "--time-scale", "2", "--first_token_timeout_ms", "5"});
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->replicas.size(), 2u);
  EXPECT_EQ(config->replicas[0].spec.name, "a");
  EXPECT_EQ(config->replicas[0].spec.pool, "m");
  EXPECT_EQ(config->replicas[1].spec.name, "[::1]:9");
  EXPECT_EQ(config->replicas[1].host, "::1");
  EXPECT_EQ(config->replicas[1].port, 9);
  EXPECT_EQ(config->policy.algorithm, Algorithm::bounded_hash);
  EXPECT_EQ(config->policy.block_size, 64u);
  EXPECT_EQ(config->first_token_timeout.count(), 5);
  const auto* profile = trace::find_hardware_profile("70b-8xh100");
  EXPECT_EQ(config->replicas[0].spec.rates.floor_ns * 2, profile->floor_ps / 1'000) << "twice as fast as the profile";
  EXPECT_EQ(config->replicas[0].spec.rates.token_ps * 2, profile->per_token_ps);
}

TEST(GatewayConfig, ReadsAFilesObjects) {
  Config config;
  const auto faults = read_config_json(R"({"port": 0, "threads": 2, "total_timeout_ms": 1000,
    "policy": {"algorithm": "cost", "beta": 2},
    "replicas": ["a=h:1,events=tcp://h:5557", {"name": "b", "events": "tcp://h:6", "replay": "tcp://h:7", "address": "h:2", "model": "m", "weight": 2.5, "adapters": ["x"], "dp_rank": 1,
                           "capacity_tokens": 1000, "ring_id": "slot"}]})",
                                       config);
  EXPECT_TRUE(faults.empty()) << faults.front();
  EXPECT_EQ(config.threads, 2);
  EXPECT_EQ(config.policy.beta, 2);
  ASSERT_EQ(config.replicas.size(), 2u);
  EXPECT_EQ(config.replicas[0].spec.name, "a");
  EXPECT_EQ(config.replicas[0].port, 1);
  EXPECT_EQ(config.replicas[0].events, "tcp://h:5557");
  EXPECT_EQ(config.replicas[0].replay, "");
  EXPECT_EQ(config.replicas[1].events, "tcp://h:6");
  EXPECT_EQ(config.replicas[1].replay, "tcp://h:7");
  const ReplicaSpec& b = config.replicas[1].spec;
  EXPECT_EQ(b.weight, 2.5);
  EXPECT_EQ(b.pool, "m");
  EXPECT_EQ(b.dp_rank, 1u);
  EXPECT_EQ(b.ring_id, "slot");
  EXPECT_EQ(b.capacity_tokens, 1000);
  EXPECT_TRUE(b.carries("x"));
  EXPECT_FALSE(b.carries("y"));
}

TEST(GatewayConfig, TakesTheExampleFile) {
  const auto config = read_config({"--config", WARMROUTE_EXAMPLE_CONFIG, "--port", "1"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->port, 1) << "flags win";
  EXPECT_EQ(config->replicas.size(), 3u);
}

TEST(GatewayConfig, TakesTheExampleFileWithKeysAndBooks) {
  const std::string first = WARMROUTE_EXAMPLE_CONFIG;
  const auto config =
      read_config({"--config", first.substr(0, first.rfind(".json")) + "_usage.json", "--trust", "more"});
  ASSERT_TRUE(config) << config.error().message;
  const UsageConfig& usage = config->usage;
  EXPECT_EQ(usage.trust, (std::vector<std::string>{"keys/verifying.pem", "more"}));
  EXPECT_EQ(usage.peppers, (std::vector<std::pair<std::uint32_t, std::string>>{{1, "keys/pepper.1"}}));
  EXPECT_EQ(usage.journal_options.sync, JournalSync::batched);
  EXPECT_EQ(usage.hangup.mode, HangupMode::cut);
  EXPECT_TRUE(usage.asks_for_usage());
}

TEST(GatewayConfig, NamesEveryFaultOfKeysAndBooks) {
  const auto config = read_config({"--replica", "a=h:1", "--control", "s", "--pepper", "one=p", "--usage-file", "u",
                                   "--journal-fsync", "often", "--budget-status", "418", "--on-hangup=wait",
                                   "--upstream-key-env", "WARMROUTE_NO_SUCH_VARIABLE"});
  ASSERT_FALSE(config);
  for (const char* part :
       {"control: needs trust", "--pepper: 'one'", "usage_file: needs journal", "'often' is none of none batched each",
        "'418' is none of 402 403", "'wait' is none of cut drain", "there is no variable 'WARMROUTE_NO_SUCH_VARIABLE'"})
    EXPECT_NE(config.error().message.find(part), std::string::npos) << part << " in " << config.error().message;
}

TEST(GatewayConfig, ReadsWhereAReplicaPublishesItsEvents) {
  const auto config = read_config({"--replica", "a=[::1]:8000,replay=tcp://[::1]:5558,events=tcp://[::1]:5557"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->replicas[0].host, "::1");
  EXPECT_EQ(config->replicas[0].events, "tcp://[::1]:5557");
  EXPECT_EQ(config->replicas[0].replay, "tcp://[::1]:5558");
  for (const auto& [flag, part] :
       {std::pair("a=h:1,replay=tcp://h:2", "replay needs events"),
        std::pair("a=h:1,event=tcp://h:2", "'event=tcp://h:2'"), std::pair("a=h:1,", "''")}) {
    const auto refused = read_config({"--replica", flag});
    ASSERT_FALSE(refused) << flag;
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
}

TEST(GatewayConfig, ReadsWhetherAndWhereMetricsArePolled) {
  const auto config = read_config({"--poll", "--replica", "a=h:1,metrics=http://h:2/m,engine=sglang", "--replica",
                                   "b=h:3,loads=/v1/loads?include=core&format=prometheus"});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->poll, std::chrono::milliseconds(500));
  EXPECT_EQ(config->replicas[0].metrics, "http://h:2/m");
  EXPECT_EQ(config->replicas[0].loads, "");
  EXPECT_EQ(config->replicas[1].loads, "/v1/loads?include=core&format=prometheus");
  EXPECT_EQ(config->replicas[0].engine, "sglang");
  EXPECT_EQ(read_config({"--replica", "b=h:3", "--poll"})->poll, std::chrono::milliseconds(500));
  EXPECT_EQ(read_config({"--replica", "b=h:3", "--poll=100", "--engine", "vllm"})->poll,
            std::chrono::milliseconds(100));
  EXPECT_EQ(read_config({"--replica", "b=h:3", "--poll", "100"})->poll, std::chrono::milliseconds(100));
  EXPECT_EQ(read_config({"--replica", "b=h:3"})->poll, std::chrono::milliseconds(0));
  Config file;
  EXPECT_TRUE(
      read_config_json(
          R"({"poll": 250, "engine": "vllm", "replicas": [{"address": "h:1", "metrics": "h:2", "loads": "h:2/l", "engine": "tgi"}]})",
          file)
          .empty());
  EXPECT_EQ(file.poll, std::chrono::milliseconds(250));
  EXPECT_EQ(file.engine, "vllm");
  EXPECT_EQ(file.replicas[0].metrics, "h:2");
  EXPECT_EQ(file.replicas[0].loads, "h:2/l");
  EXPECT_EQ(file.replicas[0].engine, "tgi");
  const auto refused = read_config({"--replica", "a=h:1,engine=abacus", "--replica", "b=h:1,metrics=h:2", "--replica",
                                    "c=h:4,loads=/l", "--engine", "sundial", "--poll=x"});
  ASSERT_FALSE(refused);
  for (const char* part : {"abacus", "sundial", "vllm sglang", "replica 'b': metrics, loads and engine need poll",
                           "replica 'c': metrics, loads and", "--poll: 'x'"}) {
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << part << " in " << refused.error().message;
  }
}

TEST(GatewayConfig, ReadsHowALlamaServerKeepsItsSlots) {
  const auto config =
      read_config({"--replica", "a=h:1,kind=slots", "--replica", "b=h:2,kind=slots,slots=2,slot_ram_tokens=0",
                   "--replica", "c=h:3,kind=slots,unified=true,slots=8", "--token-us", "500", "--step-us", "4000"});
  ASSERT_TRUE(config) << config.error().message;
  const auto spec = [&](std::size_t i) { return config->replicas[i].spec; };
  EXPECT_EQ(spec(0).cache_kind, CacheKind::slots);
  EXPECT_EQ(spec(0).slots, SlotSpec{}) << "as llama-server without flags";
  EXPECT_EQ(spec(1).slots, (SlotSpec{2, false, 0})) << "--parallel makes separate slots";
  EXPECT_EQ(spec(2).slots, (SlotSpec{8, true, SlotSpec{}.ram_tokens}));
  EXPECT_EQ(spec(0).rates.token_ps, 500'000'000);
  EXPECT_EQ(spec(0).rates.floor_ns, 4'000'000);
  Config file;
  EXPECT_EQ(
      read_config_json(
          R"({"replicas": [{"name": "a", "address": "h:1", "kind": "slots", "slots": 3, "unified": true}]})", file)
          .size(),
      0u);
  EXPECT_EQ(file.replicas[0].spec.slots.count, 3u);
  EXPECT_TRUE(file.replicas[0].spec.slots.unified);
  for (const auto* wrong : {"a=h:1,kind=tree", "a=h:1,slots=0", "a=h:1,slots=257", "a=h:1,unified=2",
                            "a=h:1,slot_ram_tokens=-1", "a=h:1,slot"}) {
    EXPECT_FALSE(read_config({"--replica", wrong})) << wrong;
  }
}

TEST(GatewayConfig, NamesEveryFaultAtOnce) {
  const auto config = read_config(
      {"--port", "70000", "--replica", "a=nowhere:x", "--policy", "dice", "--no-such-flag", "1", "--threads"});
  ASSERT_FALSE(config);
  for (const char* part : {"--port", "--replica", "dice", "no-such-flag", "--threads: its value is missing",
                           "at least one model server"}) {
    EXPECT_NE(config.error().message.find(part), std::string::npos) << part << " in " << config.error().message;
  }
  Config file;
  const auto faults = read_config_json(
      R"({"port": true, "thread": 2, "replicas": [{"name": "a", "weight": "x", "colour": "red"}, 5], "policy": {"beta": -1}})",
      file);
  EXPECT_EQ(faults.size(), 7u);
  EXPECT_EQ(read_config_json("{", file).size(), 1u);
  EXPECT_EQ(read_config({"--config", "/no/such/file"}).code(), Code::io);
}

}  // namespace
}  // namespace warmroute::gateway
