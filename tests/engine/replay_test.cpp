#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "common/toy_tokenizer.hpp"
#include "engine/http_client.hpp"
#include "replay/client.hpp"
#include "replay/report.hpp"
#include "replay/runner.hpp"
#include "replay/workload.hpp"
#include "support/scratch.hpp"

namespace warmroute::replay {
namespace {

trace::TraceRecord record(std::int64_t arrival_us, std::int64_t input, std::int64_t output,
                          std::vector<std::uint64_t> blocks) {
  trace::TraceRecord r;
  r.arrival_us = arrival_us;
  r.input_tokens = input;
  r.output_tokens = output;
  r.blocks = std::move(blocks);
  return r;
}

std::size_t common_prefix(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return i;
}

TEST(Workload, SharesTextExactlyWhereTheTraceSharesBlocks) {
  const std::string a = trace_prompt(record(0, 1'500, 1, {1, 2, 3}), 0, 1);
  const std::string b =
      trace_prompt(record(0, 1'100, 1, {1, 2, 3}), 1, 1);  // the last block is partial, so it is unique
  const std::string c = trace_prompt(record(0, 1'500, 1, {1, 9, 3}), 2, 1);
  EXPECT_EQ(a.size(), 6'000u);
  EXPECT_EQ(b.size(), 4'400u);
  EXPECT_EQ(examples::toy_tokenize(a).size(), 1'500u);
  EXPECT_GE(common_prefix(a, b), 4'096u);
  EXPECT_LT(common_prefix(a, b), 4'096u + 16);
  EXPECT_GE(common_prefix(a, c), 2'048u);
  EXPECT_LT(common_prefix(a, c), 2'048u + 16);
  EXPECT_LT(common_prefix(a, trace_prompt(record(0, 1'500, 1, {1, 2, 3}), 0, 2)), 16u);  // another salt
  EXPECT_EQ(a, trace_prompt(record(0, 1'500, 1, {1, 2, 3}), 0, 1));
  EXPECT_EQ(a.find_first_not_of("abcdefghijklmnopqrstuvwxyz "), std::string::npos);
}

TEST(Report, SummarisesExchangesAndSurvivesItsJson) {
  std::vector<Exchange> exchanges;
  const auto start = Clock::now();
  for (int i = 1; i <= 10; ++i) {
    Exchange x;
    x.due = start;
    x.first_token = start + std::chrono::milliseconds(10 * i);
    x.end = start + std::chrono::milliseconds(100 * i);
    x.gaps_us = {1'000, 3'000};
    x.tokens = 3;
    x.prompt_tokens = 100;
    x.cached_tokens = i == 1 ? 0 : 50;
    if (i < 10) x.expected_cached_tokens = i <= 3 ? x.cached_tokens : i == 4 ? 34 : i == 5 ? 66 : i == 6 ? 0 : 67;
    x.replica = i <= 6 ? "a" : "b";
    exchanges.push_back(x);
  }
  exchanges.emplace_back();
  exchanges.back().error = "http 503";
  exchanges.back().attempts = 2;
  const Report report = summarise(exchanges, {"run \"1\"", "trace", 5.0, 0.8, 12.5, 0.9, 4});
  EXPECT_DOUBLE_EQ(report.ttft_wall.mean, 55.0);
  EXPECT_DOUBLE_EQ(report.ttft.mean, 275.0);
  EXPECT_DOUBLE_EQ(report.ttft.p50, 250.0);
  EXPECT_DOUBLE_EQ(report.ttft.p90, 450.0);
  EXPECT_DOUBLE_EQ(report.ttft.p99, 500.0);
  EXPECT_DOUBLE_EQ(report.e2e.mean, 2'750.0);
  EXPECT_DOUBLE_EQ(report.itl.mean, 10.0);
  EXPECT_DOUBLE_EQ(report.hit_ratio, 0.45);
  EXPECT_DOUBLE_EQ(report.share_of_bound(), 0.5);
  EXPECT_DOUBLE_EQ(report.request_balance, 6.0 / 2.5);  // two of the four replicas got nothing
  EXPECT_EQ(report.error_count(), 1);
  EXPECT_EQ(report.retries, 1);
  EXPECT_EQ(report.foresight.requests, 9) << "of one answer nobody had foreseen anything";
  EXPECT_EQ(report.foresight.exact, 3);
  EXPECT_EQ(report.foresight.near, 5) << "a block more and a block fewer are near";
  EXPECT_EQ(report.foresight.too_many, 3);
  EXPECT_EQ(report.foresight.too_few, 1);
  EXPECT_EQ(report.foresight.off_tokens, 2 * 16 + 50 + 3 * 17);
  EXPECT_EQ(report.foresight.cached_tokens, 8 * 50);

  const std::string path = test::scratch_path("report.json");
  ASSERT_TRUE(write_file(path, to_json(report)).ok());
  const auto again = from_json_file(path);
  std::remove(path.c_str());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(table({*again}), table({report}));
  EXPECT_EQ(to_svg({*again}), to_svg({report}));
  EXPECT_EQ(again->label, "run \"1\"");
  EXPECT_EQ(from_json_file("/nonexistent.json").code(), Code::io);
}

TEST(Replay, SendsATraceAndReportsWhatTheEngineHadCached) {
  examples::RunningEngine engine{examples::test_options()};
  examples::asio::io_context context{1};
  Client client{context, {"127.0.0.1", engine.port(), ""}, std::chrono::seconds(20), 0};
  ASSERT_TRUE(client.wait_until_up(std::chrono::seconds(5)).ok());
  Runner runner{context, client, {"toy", 1.0, 1, 1}};
  std::vector<trace::TraceRecord> records;
  for (std::int64_t i = 0; i < 10; ++i)
    records.push_back(record(i * 30'000, 600, 5, {7, static_cast<std::uint64_t>(100 + i)}));
  runner.run_trace(records);
  const Report report = summarise(runner.exchanges(),
                                  {"x", "trace", 1, 0, runner.wall_seconds(), trace::prefix_bound(records).ratio(), 1});
  EXPECT_EQ(report.completed, 10);
  EXPECT_EQ(report.error_count(), 0);
  EXPECT_EQ(report.output_tokens, 50);
  EXPECT_EQ(report.input_tokens, 10 * 602);  // 8 bytes of chat frames are two tokens
  // Block 7 is shared; a machine that stalls may send several requests before the first has computed it.
  EXPECT_GT(report.cached_tokens, 0);
  EXPECT_LE(report.cached_tokens, 9 * 512);
  EXPECT_EQ(report.cached_tokens % 512, 0);
  EXPECT_GE(runner.wall_seconds(), 0.27);
}

TEST(Replay, RunsAgentsToTheEndOfTheirTurns) {
  examples::EngineOptions options = examples::test_options(1);
  options.service.capacity_tokens = 100'000;
  examples::RunningEngine engine{options};
  examples::asio::io_context context{1};
  Client client{context, {"127.0.0.1", engine.port(), ""}, std::chrono::seconds(20), 0};
  ASSERT_TRUE(client.wait_until_up(std::chrono::seconds(5)).ok());
  Runner runner{context, client, {"toy", 50.0, 1, 1}};
  runner.run_agents({4, 3, 1'000});
  ASSERT_EQ(runner.exchanges().size(), 12u);
  std::int64_t cached = 0;
  for (const Exchange& x : runner.exchanges()) {
    EXPECT_EQ(x.error, "");
    cached += x.cached_tokens;
  }
  EXPECT_GT(cached, runner.agents_bound_tokens() / 2);
  EXPECT_LE(cached, runner.agents_bound_tokens());
}

TEST(Replay, AgentsMayHaveSeveralSystemPromptsAndShortTurns) {
  examples::EngineOptions options = examples::test_options(1);
  options.service.capacity_tokens = 100'000;
  examples::RunningEngine engine{options};
  examples::asio::io_context context{1};
  Client client{context, {"127.0.0.1", engine.port(), ""}, std::chrono::seconds(20), 0};
  ASSERT_TRUE(client.wait_until_up(std::chrono::seconds(5)).ok());
  Runner runner{context, client, {"toy", 50.0, 1, 1}};
  AgentsScenario scenario{4, 2, 400};
  scenario.system_prompts = 2;
  scenario.turn_tokens = 100;
  scenario.answer_tokens = 5;
  scenario.think_seconds = 0.1;
  runner.run_agents(scenario);
  ASSERT_EQ(runner.exchanges().size(), 8u);
  std::int64_t prompts = 0;
  for (const Exchange& x : runner.exchanges()) {
    EXPECT_EQ(x.error, "");
    EXPECT_EQ(x.tokens, 5);
    EXPECT_GE(x.prompt_tokens, 400 + 50);
    EXPECT_LE(x.prompt_tokens, 400 + 2 * 150 + 100) << "two turns at most, an answer, and what the chat template adds";
    prompts += x.prompt_tokens;
  }
  EXPECT_LE(runner.agents_bound_tokens(), prompts - 2 * 400) << "two agents are the first behind their system prompt";
}

TEST(Replay, CountsFailuresByKind) {
  examples::EngineOptions options = examples::test_options();
  options.error_rate = 1;
  examples::RunningEngine engine{options};
  examples::asio::io_context context{1};
  Client client{context, {"127.0.0.1", engine.port(), ""}, std::chrono::seconds(20), 2};
  ASSERT_TRUE(client.wait_until_up(std::chrono::seconds(5)).ok());
  Runner runner{context, client, {"toy", 1.0, 1, 1}};
  runner.run_trace({record(0, 10, 1, {}), record(0, 10, 1, {})});
  const Report report = summarise(runner.exchanges(), {"x", "trace", 1, 0, 0, 0, 1});
  EXPECT_EQ(report.errors.at("http 500"), 2);
  EXPECT_EQ(report.retries, 4);
}

}  // namespace
}  // namespace warmroute::replay
