// One server prefills, another decodes: the two requests of it, and what becomes of it when one of them fails.
#include <mutex>

#include "gateway/body_edit.hpp"
#include "gateway/books_rig.hpp"

namespace warmroute::testing {
namespace pairs_tests {

using gateway::Config;

const std::string kParameters =
    R"({"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[7,8],"remote_engine_id":"e","remote_host":"h","remote_port":1})";
const FakeServer::Script kPrefills = [](FakeCall& c) {
  c.answer(
      200,
      R"({"choices":[],"usage":{"prompt_tokens":32,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":16}},"kv_transfer_params":)" +
          kParameters + "}");
};

struct Pair {
  explicit Pair(
      FakeServer::Script first, FakeServer::Script second = [](FakeCall& c) { c.answer(200, kUsageAnswer); },
      const std::function<void(Config&)>& change = {})
      : prefill([this, first](FakeCall& c) { keep(c, 0, first); }),
        decode([this, second](FakeCall& c) { keep(c, 1, second); }) {
    Config config = config_for({prefill.port(), decode.port()});
    config.policy.algorithm = Algorithm::cost;
    config.policy.disaggregate = Disaggregate::always;
    config.replicas[0].spec.role = Role::prefill;
    config.replicas[1].spec.role = Role::decode;
    config.failures_to_down = 100;
    config.retry_start = config.retry_percent = 0;
    if (change) change(config);
    rig = std::make_unique<Rig>(config);
  }
  void keep(FakeCall& call, std::size_t which, const FakeServer::Script& script) {
    {
      const std::lock_guard lock(mutex);
      asked[which] = call.request.body();
    }
    script(call);
  }
  [[nodiscard]] std::string body(std::size_t which) {
    const std::lock_guard lock(mutex);
    return asked[which];
  }
  [[nodiscard]] double metric(const char* name) const { return metric_of(rig->port(), std::string("gateway_") + name); }

  std::mutex mutex;
  std::string asked[2];
  FakeServer prefill, decode;
  std::unique_ptr<Rig> rig;
};

TEST(GatewayPairs, PrefillOnOneServerAndDecodeOnAnother) {
  Pair pair(kPrefills);
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":50,"temperature":1e0,"kv_transfer_params":{"remote_host":"evil"}})";
  const Answer answer = call(pair.rig->port(), "POST", "/v1/chat/completions", body);
  EXPECT_EQ(answer.status, 200u) << answer.body;
  EXPECT_EQ(answer.body, kUsageAnswer);
  EXPECT_EQ(answer.head("x-warmroute-replica"), "r1");
  EXPECT_EQ(answer.head("x-warmroute-prefill-replica"), "r0");
  EXPECT_EQ(
      pair.body(0),
      R"({"model":"m","messages":[{"role":"user","content":"hello"}],"temperature":1e0,"stream":false,"max_tokens":1,)"
      R"("kv_transfer_params":{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,)"
      R"("remote_block_ids":null,"remote_host":null,"remote_port":null}})");
  EXPECT_EQ(
      pair.body(1),
      R"({"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":50,"temperature":1e0,"kv_transfer_params":)" +
          kParameters + "}");
  EXPECT_BOOKS_EMPTY(*pair.rig);
  EXPECT_EQ(pair.metric("pairs_total"), 1);
  EXPECT_EQ(pair.rig->statistics().reported_cached_tokens, 16) << "as the one that prefilled says";
}

TEST(GatewayPairs, WhatAClientSaysOfTransfersGoesNowhereHoweverItIsSpelled) {
  Pair pair([](FakeCall& c) { c.answer(500, "{}"); });
  const std::string escaped =
      R"({"kv_transfer_param\u0073":{"remote_host":"evil"},"model":"m","messages":[{"role":"user","content":"\u00e4"}]})";
  for (const char* path : {"/v1/chat/completions", "/v1/messages"}) {
    const Answer answer = call(pair.rig->port(), "POST", path, escaped);
    EXPECT_EQ(answer.status, 200u) << answer.body;
    EXPECT_EQ(pair.body(1), R"({"model":"m","messages":[{"role":"user","content":"\u00e4"}]})");
  }
  const std::string other = "no object: \\u0073";
  call(pair.rig->port(), "POST", "/v1/files", other);
  EXPECT_TRUE(pair.body(0) == other || pair.body(1) == other) << "what is no object passes as it is";
}

TEST(GatewayPairs, FreeTheFirstServerWhenTheSecondAnswers) {
  std::atomic<bool> go_on{false};
  Pair pair(kPrefills, [&](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("first"));
    EXPECT_TRUE(eventually([&] { return go_on.load(); }));
    c.piece("data: [DONE]\n\n");
    c.end_stream();
  });
  TestClient client(pair.rig->port());
  client.send("POST", "/v1/chat/completions", chat_body("x", true));
  client.read_until("first");
  const auto load = [&](std::size_t at) { return pair.rig->statistics().replicas.at(at).load.requests; };
  EXPECT_TRUE(eventually([&] { return load(0) == 0; }));
  EXPECT_EQ(load(1), 1);
  go_on = true;
  EXPECT_NE(client.read_until("0\r\n\r\n").find("[DONE]"), std::string::npos);
  EXPECT_BOOKS_EMPTY(*pair.rig);
}

TEST(GatewayPairs, GiveTheSecondServerAllOfItWhenTheFirstFails) {
  const FakeServer::Script failures[] = {[](FakeCall& c) { c.answer(500, "{}"); },
                                         [](FakeCall& c) { c.answer(200, "{\"choices\":[]}"); },
                                         [](FakeCall& c) { c.answer(200, "{\"kv_transfer_params\":null}"); },
                                         [](FakeCall& c) { c.answer(200, "not JSON"); },
                                         [](FakeCall& c) { c.reset(); },
                                         [](FakeCall& c) { c.answer(429, "{}", "Retry-After: 0\r\n"); }};
  for (const auto& failure : failures) {
    Pair pair(failure);
    const Answer answer = pair.rig->chat("hello");
    EXPECT_EQ(answer.status, 200u) << answer.body;
    EXPECT_EQ(answer.head("x-warmroute-replica"), "r1");
    EXPECT_EQ(answer.head("x-warmroute-prefill-replica"), "");
    EXPECT_EQ(pair.body(1), chat_body("hello"));
    EXPECT_EQ(pair.metric("pairs_whole_total"), 1);
    EXPECT_BOOKS_EMPTY(*pair.rig);
  }
}

TEST(GatewayPairs, WithoutAServerThatPrefillsOneServesAll) {
  Pair pair(
      kPrefills, [](FakeCall& c) { c.answer(200, kUsageAnswer); },
      [](Config& config) { config.replicas[0].port = free_port(); });
  EXPECT_EQ(pair.rig->chat("hello").status, 200u);
  EXPECT_EQ(pair.rig->health(0), Health::down) << "nobody listens there";
  EXPECT_EQ(pair.rig->chat("hello").status, 200u);
  EXPECT_EQ(pair.metric("pairs_whole_total"), 1) << "the second was no pair from the start";
  const std::string with = R"({"model":"m","prompt":"x","kv_transfer_params":{"remote_host":"evil"}})";
  EXPECT_EQ(call(pair.rig->port(), "POST", "/v1/completions", with).status, 200u);
  EXPECT_EQ(pair.body(1), R"({"model":"m","prompt":"x"})") << "clients name no hosts to fetch from";
  EXPECT_BOOKS_EMPTY(*pair.rig);
}

TEST(GatewayPairs, ServeApisWithoutSuchParametersWhole) {
  Pair pair(kPrefills);
  const std::string message = R"({"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]})";
  EXPECT_EQ(call(pair.rig->port(), "POST", "/v1/messages", message).status, 200u);
  EXPECT_EQ(pair.prefill.calls.load(), 0);
  EXPECT_EQ(pair.body(1), message);
  EXPECT_BOOKS_EMPTY(*pair.rig);
}

TEST(GatewayPairs, StopTheFirstServerWhenTheClientLeaves) {
  std::atomic<bool> closed{false}, begun{false};
  Pair pair([&](FakeCall& c) {
    begun = true;
    closed = c.closed_by_peer();
  });
  {
    TestClient client(pair.rig->port());
    client.send("POST", "/v1/chat/completions", chat_body("x", true));
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
    client.close();
  }
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_BOOKS_EMPTY(*pair.rig);
  EXPECT_EQ(pair.decode.calls.load(), 0);
}

TEST(GatewayPairs, EndByATimeoutOfTheFirstServer) {
  Pair pair([](FakeCall& c) { c.closed_by_peer(); }, [](FakeCall& c) { c.answer(200, kUsageAnswer); },
            [](Config& config) { config.first_token_timeout = std::chrono::milliseconds(100); });
  EXPECT_EQ(pair.rig->chat("x", true).status, 200u) << "the other one serves it";
  EXPECT_EQ(pair.rig->timeouts(gateway::Timeout::first_token), 1u);
  EXPECT_BOOKS_EMPTY(*pair.rig);
}

TEST(GatewayPairs, AreBookedOnce) {
  Books books;
  books.add_key("a", "team");
  books.publish();
  Pair pair(
      kPrefills, [](FakeCall& c) { c.answer(200, kUsageAnswer); },
      [&](Config& config) {
        config.usage = books.config({}).usage;
        for (auto& replica : config.replicas) replica.spec.pool = "m";
      });
  const Answer answer = call(pair.rig->port(), "POST", "/v1/chat/completions", chat_body("x"), Books::bearer("a"));
  EXPECT_EQ(answer.status, 200u) << answer.body;
  EXPECT_EQ(metric_of(pair.rig->port(), "gateway_journal_begins_total"), 1);
  EXPECT_EQ(usage_of(pair.rig->port(), "?by=replica", "\"replica\":\"r1\"", "output_tokens"), 2);
  EXPECT_BOOKS_CLOSED(*pair.rig);
}

TEST(GatewayBodyEdit, KeepsTheBytesOfWhatItDoesNotTouch) {
  EXPECT_EQ(gateway::decode_body("{ \"a\" : 1.50 ,\n\"kv_transfer_params\":{\"x\":[1,2]}, \"b\":\"}\" }", ""),
            "{\"a\" : 1.50,\"b\":\"}\"}");
  EXPECT_EQ(gateway::decode_body("{}", "{\"p\":1}"), "{\"kv_transfer_params\":{\"p\":1}}");
  EXPECT_EQ(gateway::decode_body(R"({"kv\u005ftransfer_params":1})", ""), "{}");
  EXPECT_EQ(gateway::decode_body(R"({"a":{"kv_transfer_params":1}})", ""), R"({"a":{"kv_transfer_params":1}})");
  const std::string first = gateway::prefill_body(R"({"n":2,"stream":true,"stream_options":{"include_usage":true}})");
  EXPECT_EQ(first.find("stream_options"), std::string::npos);
  EXPECT_EQ(first.find("\"n\""), std::string::npos);
  EXPECT_EQ(gateway::read_prefill_answer("{").parameters, "");
  EXPECT_EQ(gateway::read_prefill_answer(R"({"kv_transfer_params":[1]})").parameters, "");
}

}  // namespace pairs_tests
}  // namespace warmroute::testing
