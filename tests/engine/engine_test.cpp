#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "common/toy_tokenizer.hpp"
#include "engine/http_client.hpp"
#include "simdjson.h"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute::examples {
namespace {

/// Follows a path of member names and list indices; -1 when it is not there.
std::int64_t number_in(const std::string& json, const char* pointer) {
  simdjson::dom::parser parser;
  std::int64_t value = 0;
  return parser.parse(json).at_pointer(pointer).get(value) == simdjson::SUCCESS ? value : -1;
}

std::string text_in(const std::string& json, const char* pointer) {
  simdjson::dom::parser parser;
  std::string_view value;
  return parser.parse(json).at_pointer(pointer).get(value) == simdjson::SUCCESS ? std::string(value) : "(absent)";
}

std::string chat(const std::string& content, const std::string& more) {
  return R"({"model":"toy","messages":[{"role":"user","content":")" + content + "\"}]" + more + "}";
}

/// returns: the value of a sample without labels other than the usual ones; -1 when it is not on the page.
double metric(BlockingClient& client, const std::string& name) {
  const std::string page = client.get("/metrics").body;
  const auto at = page.find("\n" + name + "{");
  if (at == std::string::npos) return -1;
  return std::stod(page.substr(page.find("} ", at) + 2));
}

void wait_for_metric(BlockingClient& client, const std::string& name, double value) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (metric(client, name) != value && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(metric(client, name), value) << name;
}

TEST(Engine, AnswersAChatAndSaysWhatItHadCached) {
  RunningEngine engine{test_options()};
  BlockingClient client{engine.port()};
  const std::string body = chat(std::string(400, 'x'), R"(,"max_tokens":3)");  // 8 bytes of frames + 400: 102 tokens
  const Answer cold = client.post("/v1/chat/completions", body);
  ASSERT_EQ(cold.status, 200u) << cold.body;
  EXPECT_EQ(text_in(cold.body, "/object"), "chat.completion");
  EXPECT_EQ(text_in(cold.body, "/choices/0/message/role"), "assistant");
  EXPECT_EQ(toy_tokenize(text_in(cold.body, "/choices/0/message/content")).size(), 3u);
  EXPECT_EQ(text_in(cold.body, "/choices/0/finish_reason"), "length");
  EXPECT_EQ(number_in(cold.body, "/usage/prompt_tokens"), 102);
  EXPECT_EQ(number_in(cold.body, "/usage/completion_tokens"), 3);
  EXPECT_EQ(number_in(cold.body, "/usage/total_tokens"), 105);
  EXPECT_EQ(number_in(cold.body, "/usage/prompt_tokens_details/cached_tokens"), 0);
  const Answer warm = client.post("/v1/chat/completions", body);  // on the same connection
  EXPECT_EQ(number_in(warm.body, "/usage/prompt_tokens_details/cached_tokens"), 96);
  EXPECT_EQ(metric(client, "vllm:prefix_cache_queries_total"), 204);
  EXPECT_EQ(metric(client, "vllm:prefix_cache_hits_total"), 96);
  EXPECT_EQ(metric(client, "vllm:time_to_first_token_seconds_count"), 2);
}

TEST(Engine, StreamsRoleTokensFinishUsageAndDone) {
  RunningEngine engine{test_options()};
  BlockingClient client{engine.port()};
  const Answer answer =
      client.post("/v1/chat/completions",
                  chat("hello", R"(,"max_completion_tokens":4,"stream":true,"stream_options":{"include_usage":true})"));
  ASSERT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.content_type, "text/event-stream; charset=utf-8");
  EXPECT_TRUE(answer.keeps_alive);
  std::vector<std::string> events;
  SseSplitter splitter;
  splitter.feed(answer.body, [&](std::string_view data) { events.emplace_back(data); });
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(text_in(events[0], "/choices/0/delta/role"), "assistant");
  for (std::size_t i = 1; i <= 4; ++i) EXPECT_EQ(text_in(events[i], "/choices/0/delta/content").size(), 4u);
  EXPECT_EQ(text_in(events[5], "/choices/0/finish_reason"), "length");
  EXPECT_EQ(number_in(events[6], "/usage/completion_tokens"), 4);
  EXPECT_EQ(number_in(events[6], "/choices/0/index"), -1);
  EXPECT_EQ(events[7], "[DONE]");
  EXPECT_EQ(client.get("/health").status, 200u);  // the connection goes on behind the stream

  const Answer plain = client.post("/v1/completions", R"({"prompt":"abc","max_tokens":2,"stream":true})");
  EXPECT_EQ(plain.body.find("usage"), std::string::npos);
  EXPECT_NE(plain.body.find("text_completion"), std::string::npos);
}

TEST(Engine, SharesBlocksBetweenTokenIdsOfTheTokenizeEndpointAndText) {
  RunningEngine engine{test_options()};
  BlockingClient client{engine.port()};
  const std::string prompt(200, 'a');
  const Answer tokens = client.post("/tokenize", "{\"prompt\":\"" + prompt + "\"}");
  ASSERT_EQ(number_in(tokens.body, "/count"), 50);
  client.post("/v1/completions", "{\"prompt\":\"" + prompt + "\",\"max_tokens\":1}");
  const auto begin = tokens.body.find("\"tokens\":") + 9;
  const std::string ids = tokens.body.substr(begin, tokens.body.rfind('}') - begin);
  const Answer warm = client.post("/v1/completions", "{\"prompt\":" + ids + ",\"max_tokens\":1}");
  EXPECT_EQ(number_in(warm.body, "/usage/prompt_tokens"), 50);
  EXPECT_EQ(number_in(warm.body, "/usage/prompt_tokens_details/cached_tokens"), 48);
  EXPECT_EQ(number_in(client.post("/tokenize", chat("abc", "")).body, "/count"), 3);  // 8 bytes of frames, 3 of text
}

TEST(Engine, RefusesInOpenAisShape) {
  RunningEngine engine{test_options()};
  BlockingClient client{engine.port()};
  const struct {
    const char* path;
    std::string body;
    unsigned status;
    const char* code;
  } cases[] = {
      {"/v1/chat/completions", "{\"messages\":", 400, "invalid_json"},
      {"/v1/chat/completions", "{}", 400, "missing_field"},
      {"/v1/chat/completions", R"({"model":"other","messages":[{"role":"user","content":"x"}]})", 404,
       "model_not_found"},
      {"/v1/completions", R"({"prompt":"x","max_tokens":16000})", 400, "context_length_exceeded"},
      {"/v1/nothing", "{}", 404, "not_found"},
  };
  for (const auto& c : cases) {
    const Answer answer = client.post(c.path, c.body);
    EXPECT_EQ(answer.status, c.status) << c.body;
    EXPECT_EQ(text_in(answer.body, "/error/code"), c.code) << answer.body;
    EXPECT_TRUE(answer.keeps_alive);
  }
}

TEST(Engine, FreesTheWorkOfClientsThatHangUp) {
  EngineOptions options = test_options(1'000);  // 1 ms a token
  options.service.max_running = 1;
  RunningEngine engine{options};
  BlockingClient watcher{engine.port()}, running{engine.port()}, queued{engine.port()}, streaming{engine.port()};
  running.send(http::verb::post, "/v1/completions", R"({"prompt":"x","max_tokens":10000})");
  wait_for_metric(watcher, "vllm:num_requests_running", 1);
  queued.send(http::verb::post, "/v1/completions", R"({"prompt":"y","max_tokens":10000})");
  wait_for_metric(watcher, "vllm:num_requests_waiting", 1);
  streaming.send(http::verb::post, "/v1/completions", R"({"prompt":"z","max_tokens":10000,"stream":true})");
  wait_for_metric(watcher, "vllm:num_requests_waiting", 2);
  queued.hang_up();
  wait_for_metric(watcher, "vllm:num_requests_waiting", 1);
  running.hang_up();
  wait_for_metric(watcher, "vllm:num_requests_waiting", 0);  // the stream's turn
  EXPECT_EQ(metric(watcher, "vllm:num_requests_running"), 1);
  streaming.hang_up();
  wait_for_metric(watcher, "vllm:num_requests_running", 0);
  EXPECT_EQ(metric(watcher, "vllm:kv_cache_usage_perc"), 0);
}

TEST(Engine, FailsAndHangsAtTheRatesAskedFor) {
  EngineOptions options = test_options();
  options.error_rate = 1;
  RunningEngine failing{options};
  BlockingClient client{failing.port()};
  const Answer answer = client.post("/v1/completions", R"({"prompt":"x","max_tokens":1})");
  EXPECT_EQ(answer.status, 500u);
  EXPECT_EQ(text_in(answer.body, "/error/type"), "server_error");

  options.error_rate = 0;
  options.hang_rate = 1;
  RunningEngine hanging{options};
  BlockingClient patient{hanging.port()}, other{hanging.port()};
  patient.send(http::verb::post, "/v1/completions", R"({"prompt":"x","max_tokens":1})");
  EXPECT_EQ(other.get("/health").status, 200u);
  EXPECT_EQ(metric(other, "vllm:num_requests_running"), 0);
}

TEST(EngineDeathTest, DiesAtTheRequestThatItWasToldToDieAt) {
  EngineOptions options = test_options();
  options.crash_after = 3;
  asio::io_context context;
  Engine engine{context, options};
  EXPECT_EQ(engine.draw_fate(), Fate::serve);
  EXPECT_EQ(engine.draw_fate(), Fate::serve);
  EXPECT_EXIT((void)engine.draw_fate(), ::testing::ExitedWithCode(1), "");
}

TEST(Engine, LetsRunningAnswersEndBeforeItStops) {
  RunningEngine engine{test_options(1'000)};
  BlockingClient client{engine.port()}, watcher{engine.port()};
  client.send(http::verb::post, "/v1/completions", R"({"prompt":"x","max_tokens":1500})");
  wait_for_metric(watcher, "vllm:num_requests_running", 1);
  engine.shut_down(std::chrono::seconds(10));
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(number_in(answer.body, "/usage/completion_tokens"), 1500);
  EXPECT_FALSE(answer.keeps_alive);
  engine.join();
}

TEST(Engine, EndsAnOldClientsStreamByClosing) {
  RunningEngine engine{test_options()};
  BlockingClient client{engine.port()};
  client.send(http::verb::post, "/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})", 10);
  const Answer answer = client.read();
  EXPECT_EQ(answer.status, 200u);
  EXPECT_FALSE(answer.keeps_alive);
  EXPECT_NE(answer.body.find("data: [DONE]"), std::string::npos);
}

/// What a page of those names should say; nothing where the real engine's says nothing.
struct NamesCase {
  MetricsNames names;
  const char *engine, *path;
  bool has_cache;
};

class EnginePages : public testing::TestWithParam<NamesCase> {};
INSTANTIATE_TEST_SUITE_P(Names, EnginePages,
                         testing::Values(NamesCase{MetricsNames::vllm, "vllm", "/metrics", true},
                                         NamesCase{MetricsNames::sglang, "sglang", "/metrics", true},
                                         NamesCase{MetricsNames::trtllm, "trtllm", "/prometheus/metrics", true},
                                         NamesCase{MetricsNames::tgi, "tgi", "/metrics", false},
                                         NamesCase{MetricsNames::llamacpp, "llamacpp", "/metrics", false}),
                         [](const auto& names) { return std::string(names.param.engine); });

TEST_P(EnginePages, SayInTheNamesOfARealEngineHowThisOneIs) {
  const NamesCase& c = GetParam();
  EngineOptions options = test_options(200);
  options.metrics_names = c.names;
  options.service.max_running = 2;
  RunningEngine engine{options};
  BlockingClient client{engine.port()};
  const std::string prompt(400, 'x');
  for (int i = 0; i < 2; ++i) (void)client.post("/v1/chat/completions", chat(prompt, R"(,"max_tokens":2)"));
  std::vector<std::unique_ptr<BlockingClient>> busy;
  for (int i = 0; i < 5; ++i) {
    busy.push_back(std::make_unique<BlockingClient>(engine.port()));
    busy.back()->send(http::verb::post, "/v1/chat/completions", chat(prompt, R"(,"max_tokens":7000,"stream":true)"));
  }
  struct State {
    EngineGauges gauges;
    std::int64_t queries, hits;
    bool operator==(const State& o) const {
      return gauges.running == o.gauges.running && gauges.waiting == o.gauges.waiting &&
             gauges.kv_usage == o.gauges.kv_usage && queries == o.queries && hits == o.hits;
    }
  };
  const auto state = [&] {
    return engine.between_steps([](Engine& e) {
      return State{e.gauges(), e.metrics().prefix_cache_queries, e.metrics().prefix_cache_hits};
    });
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string page;
  State seen{};
  for (bool same = false; !same && std::chrono::steady_clock::now() < deadline;) {
    seen = state();  // the page is of the same moment if nothing has changed when it is there
    page = client.get(c.path).body;
    same = seen.gauges.running == 2 && seen.gauges.waiting == 3 && state() == seen;
  }
  ASSERT_EQ(seen.gauges.waiting, 3);
  EngineMetricsParser parser;
  const auto reading = parser.parse(page);
  ASSERT_TRUE(reading) << reading.error().message << page;
  EXPECT_EQ(reading->engine, c.engine);
  EXPECT_EQ(reading->skipped_lines, 0u) << page;
  EXPECT_FALSE(reading->shared.has_value());
  ASSERT_EQ(reading->ranks.size(), 1u);
  const EngineRank& rank = reading->ranks[0];
  EXPECT_EQ(rank.running, seen.gauges.running);
  EXPECT_EQ(rank.waiting, seen.gauges.waiting);
  EXPECT_EQ(rank.kv_usage.has_value(), c.has_cache);
  EXPECT_EQ(rank.prefix_queries.has_value(), c.has_cache);
  EXPECT_EQ(rank.ttft.has_value(), c.has_cache);
  EXPECT_EQ(rank.model, c.has_cache ? "toy" : "");
  if (!c.has_cache) return;
  EXPECT_NEAR(*rank.kv_usage, seen.gauges.kv_usage, 1e-9);
  EXPECT_EQ(rank.prefix_queries, seen.queries);
  EXPECT_EQ(rank.prefix_hits, seen.hits);
  EXPECT_GT(seen.hits, 0);
  EXPECT_EQ(rank.prefix_unit, PrefixUnit::tokens);
  EXPECT_EQ(rank.block_tokens, 16);
  EXPECT_EQ(rank.block_count, seen.gauges.blocks);
  EXPECT_GE(rank.ttft->count, 2);
  EXPECT_TRUE(rank.ttft->sum.has_value());
}

TEST(Engine, TellsItsLoadsAsSglangDoes) {
  EngineOptions options = test_options(200);
  options.metrics_names = MetricsNames::sglang;
  options.service.max_running = 1;
  RunningEngine engine{options};
  BlockingClient client{engine.port()};
  const std::string known(400, 'x');
  (void)client.post("/v1/chat/completions", chat(known, R"(,"max_tokens":2)"));
  std::vector<std::unique_ptr<BlockingClient>> busy;
  const auto ask = [&](const std::string& prompt) {
    busy.push_back(std::make_unique<BlockingClient>(engine.port()));
    busy.back()->send(http::verb::post, "/v1/chat/completions", chat(prompt, R"(,"max_tokens":14000,"stream":true)"));
  };
  ask(std::string(400, 'y'));
  const auto running = [&] { return engine.between_steps([](Engine& e) { return e.gauges().running; }); };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (running() == 0 && std::chrono::steady_clock::now() < deadline) {}
  ask(known);
  ask(std::string(800, 'z'));
  // Its own prompt is computed; of the 102 tokens that are known 96 are cached, of the 202 others none.
  const std::string target = "/v1/loads?include=core&format=prometheus";
  std::string page;
  EngineMetricsParser parser;
  for (bool there = false; !there && std::chrono::steady_clock::now() < deadline;) {
    page = client.get(target).body;
    const auto reading = parser.parse(page);
    ASSERT_TRUE(reading) << reading.error().message << page;
    ASSERT_EQ(reading->ranks.size(), 1u);
    there = reading->ranks[0].waiting == 2 && reading->ranks[0].waiting_tokens == 208;
  }
  const auto reading = parser.parse(page);
  EXPECT_EQ(reading->engine, "sglang");
  EXPECT_EQ(reading->skipped_lines, 0u);
  EXPECT_EQ(reading->ranks[0].dp_rank, 0u);
  EXPECT_EQ(reading->ranks[0].running, 1);
  EXPECT_EQ(reading->ranks[0].waiting, 2);
  EXPECT_EQ(reading->ranks[0].waiting_tokens, 208) << page;
  EXPECT_TRUE(reading->ranks[0].kv_usage.has_value());
  const Answer json = client.get("/v1/loads");
  EXPECT_EQ(json.content_type, "application/json");
  EXPECT_GT(number_in(json.body, "/timestamp"), 0) << json.body;
  EXPECT_EQ(number_in(json.body, "/loads/0/dp_rank"), 0);
  EXPECT_EQ(number_in(json.body, "/loads/0/num_waiting_uncached_tokens"), 208);
  EXPECT_EQ(number_in(json.body, "/loads/0/max_running_requests"), 1);
}

TEST(Engine, HasNoLoadsUnderOtherNames) {
  RunningEngine engine{test_options()};
  BlockingClient client{engine.port()};
  EXPECT_EQ(client.get("/v1/loads").status, 404u);
}

TEST(EnginePageNames, AreTheseAlone) {
  EXPECT_EQ(metrics_names_from("tgi"), MetricsNames::tgi);
  EXPECT_FALSE(metrics_names_from("TGI"));
  EXPECT_FALSE(metrics_names_from(""));
}

TEST(Engine, BeginsAnewWithoutRequestsCacheAndCounts) {
  RunningEngine engine{test_options(200)};
  BlockingClient client{engine.port()}, busy{engine.port()};
  const std::string body = chat(std::string(400, 'x'), R"(,"max_tokens":2)");
  EXPECT_EQ(client.post("/v1/chat/completions", body).status, 200u);
  busy.send(http::verb::post, "/v1/chat/completions", chat("y", R"(,"max_tokens":7000)"));
  wait_for_metric(client, "vllm:num_requests_running", 1);
  engine.between_steps([](Engine& e) {
    e.restart(5);
    return true;
  });
  EXPECT_EQ(busy.read().status, 0u) << "its connection ends without an answer";
  EXPECT_EQ(metric(client, "vllm:num_requests_running"), 0);
  EXPECT_EQ(metric(client, "vllm:prefix_cache_queries_total"), 0);
  EXPECT_EQ(engine.cached_blocks(), 0);
  const Answer again = client.post("/v1/chat/completions", body);
  EXPECT_EQ(number_in(again.body, "/usage/prompt_tokens_details/cached_tokens"), 0);
}

}  // namespace
}  // namespace warmroute::examples
