// Keys, limits, journal and ledger on a request's way, on every way that it can end.
#include "gateway/books_rig.hpp"

#include <mutex>

#include "gateway/credentials.hpp"
#include "gateway/target.hpp"

namespace warmroute::testing {
namespace books_tests {

using examples::http::field;

// 32 tokens in, 16 of them cached, 2 out.
const FakeServer::Script kServed = [](FakeCall& c) { c.answer(200, kUsageAnswer); };
const std::string kUsageEvent =
    R"(data: {"id":"x","model":"m","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":8}}})"
    "\n\n";
constexpr char kPrices[] =
    R"({"m":{"input_cost_per_token":1e-6,"output_cost_per_token":2e-6,"cache_read_input_token_cost":1e-7}})";

std::string ask(const std::string& text, int max_tokens, bool stream = false) {
  std::string body = chat_body(text, stream);
  return body.insert(1, "\"max_tokens\":" + std::to_string(max_tokens) + ",");
}
Answer chat_as(const Rig& rig, const std::string& id, const std::string& body = ask("hello", 5)) {
  return call(rig.port(), "POST", "/v1/chat/completions", body, Books::bearer(id));
}
LimitSpec requests_per_minute(std::int64_t amount) {
  LimitSpec spec;
  spec.name = "rpm";
  spec.amount = amount;
  return spec;
}
LimitSpec monthly_budget(std::int64_t cost_nanos) {
  LimitSpec spec;
  spec.name = "month";
  spec.kind = LimitKind::budget;
  spec.unit = LimitUnit::cost_nanos;
  spec.amount = cost_nanos;
  return spec;
}

examples::http::request<examples::http::string_body> request_of(const char* target, const char* header = nullptr,
                                                                const char* value = "") {
  gateway::ClientRequest request{examples::http::verb::post, target, 11};
  if (header != nullptr) request.set(header, value);
  return request;
}

TEST(GatewayCredentials, AreFoundWhereEachClientPutsThem) {
  std::string scratch;
  EXPECT_EQ(gateway::client_key(request_of("/", "Authorization", "Bearer a-b"), scratch), "a-b");
  EXPECT_EQ(gateway::client_key(request_of("/", "authorization", "bearer  a-b"), scratch), "a-b");
  EXPECT_EQ(gateway::client_key(request_of("/", "X-Api-Key", "k"), scratch), "k");
  EXPECT_EQ(gateway::client_key(request_of("/", "x-goog-api-key", "g"), scratch), "g");
  EXPECT_EQ(gateway::client_key(request_of("/", "api-key", "z"), scratch), "z");
  EXPECT_EQ(gateway::client_key(request_of("/x?alt=sse&key=a%2Db"), scratch), "a-b");
  EXPECT_EQ(gateway::client_key(request_of("/x?monkey=1&key="), scratch), "");
  EXPECT_EQ(gateway::client_key(request_of("/", "Authorization", "Basic abc"), scratch), "");
  EXPECT_EQ(gateway::without_key("/x?key=1&alt=sse"), "/x?alt=sse");
  EXPECT_EQ(gateway::without_key("/x?alt=sse&key=1&y"), "/x?alt=sse&y");
  EXPECT_EQ(gateway::without_key("/x?key=1"), "/x");
}

TEST(GatewayTarget, EveryPathThatGeneratesIsCounted) {
  const auto chat = gateway::target_of(request_of("/v1/chat/completions?x"));
  EXPECT_TRUE(chat.counted && chat.routed && chat.answer == AnswerApi::openai);
  const auto gemini = gateway::target_of(request_of("/v1beta/models/a%3Ab:streamGenerateContent?alt=sse"));
  EXPECT_TRUE(gemini.counted && gemini.routed && gemini.stream && gemini.answer == AnswerApi::gemini);
  EXPECT_EQ(gemini.model, "a:b");
  const auto bedrock = gateway::target_of(request_of("/model/us.m-v1%3A0/converse"));
  EXPECT_TRUE(bedrock.counted && bedrock.routed && !bedrock.stream && bedrock.answer == AnswerApi::bedrock);
  EXPECT_EQ(bedrock.model, "us.m-v1:0");
  const auto messages = gateway::target_of(request_of("/v1/messages"));
  EXPECT_TRUE(messages.counted && messages.answer == AnswerApi::messages);
  EXPECT_TRUE(gateway::target_of(request_of("/completion")).counted) << "no path leads past the books";
  EXPECT_FALSE(gateway::target_of(request_of("/v1/messages/count_tokens")).counted);
  EXPECT_FALSE(gateway::target_of(request_of("/v1/responses/r/cancel")).counted);
  auto get = request_of("/v1/responses/r");
  get.method(examples::http::verb::get);
  EXPECT_FALSE(gateway::target_of(get).counted) << "an answer that is fetched again was counted before";
}

TEST(GatewayBooks, ServeKeysOfTheSnapshotAndNoOthers) {
  std::mutex mutex;
  std::vector<std::string> seen;
  FakeServer server([&](FakeCall& c) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(std::string(c.request[field::authorization]) + "|" + std::string(c.request["x-api-key"]) + "|" +
                      std::string(c.request.target()));
    c.answer(200, kUsageAnswer);
  });
  Books books;
  books.add_key("alice", "blue");
  books.publish();
  ::setenv("WARMROUTE_TEST_UPSTREAM_KEY", "upstream-secret", 1);
  auto config = books.config({server.port()});
  config.usage.upstream_key_env = "WARMROUTE_TEST_UPSTREAM_KEY";
  Rig rig(std::move(config));
  EXPECT_EQ(rig.chat().status, 401u);
  const Answer wrong =
      call(rig.port(), "POST", "/v1/chat/completions", ask("x", 1), "Authorization: Bearer sk-alice-guess\r\n");
  EXPECT_EQ(wrong.status, 401u);
  EXPECT_NE(wrong.body.find("\"code\":\"invalid_api_key\""), std::string::npos) << wrong.body;
  EXPECT_EQ(wrong.body.find("alice"), std::string::npos) << "nobody learns whether such a key exists";
  EXPECT_EQ(chat_as(rig, "bob").status, 401u);
  EXPECT_EQ(call(rig.port(), "GET", "/v1/models").status, 401u);
  EXPECT_EQ(server.calls.load(), 0);

  EXPECT_EQ(chat_as(rig, "alice").status, 200u);
  EXPECT_EQ(call(rig.port(), "POST", "/v1/messages?key=" + Books::key_of("alice") + "&beta=true", ask("x", 1)).status,
            200u);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], "Bearer upstream-secret||/v1/chat/completions");
  EXPECT_EQ(seen[1], "|upstream-secret|/v1/messages?beta=true");
  EXPECT_EQ(metric_of(rig.port(), "gateway_keys_total{verdict=\"accepted\"}"), 2);
  EXPECT_EQ(metric_of(rig.port(), "gateway_keys_total{verdict=\"wrong_secret\"}"), 1);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayBooks, SayWhoUsedHowMuchWithCachedTokensApartAndWhatItCost) {
  FakeServer server(kServed);
  Books books;
  books.add_key("alice", "blue");
  books.add_key("bob", "blue");
  books.publish();
  books.write("prices.json", kPrices);
  auto config = books.config({server.port()});
  config.usage.prices = books / "prices.json";
  Rig rig(std::move(config));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chat_as(rig, "alice").status, 200u);
  EXPECT_EQ(chat_as(rig, "bob").status, 200u);
  const auto port = rig.port();
  EXPECT_EQ(usage_of(port, "?by=key", "\"key\":\"alice\"", "attempts"), 3);
  EXPECT_EQ(usage_of(port, "?by=key", "\"key\":\"alice\"", "input_tokens"), 96);
  EXPECT_EQ(usage_of(port, "?by=key", "\"key\":\"alice\"", "cached_input_tokens"), 48);
  EXPECT_EQ(usage_of(port, "?by=key", "\"key\":\"bob\"", "output_tokens"), 2);
  EXPECT_EQ(usage_of(port, "?by=team", "\"team\":\"blue\"", "input_tokens"), 128);
  EXPECT_EQ(usage_of(port, "?by=replica,model", "\"model\":\"m\",\"replica\":\"r0\"", "attempts"), 4);
  // 16 at 1 and 16 at 0.1 and 2 at 2 USD a million; without a cache 16 x 0.9 more.
  EXPECT_DOUBLE_EQ(usage_of(port, "", "\"total\"", "cost_usd"), 4 * 21.6e-6);
  EXPECT_DOUBLE_EQ(usage_of(port, "", "\"total\"", "saved_by_cache_usd"), 4 * 14.4e-6);
  EXPECT_EQ(usage_of(port, "?since=1h", "\"total\"", "attempts"), 4);
  EXPECT_EQ(usage_of(port, "?since=4000000000", "\"total\"", "attempts"), 0);
  EXPECT_EQ(call(port, "GET", "/usage?by=shoe").status, 400u);
  EXPECT_EQ(call(port, "GET", "/usage?since=soon").status, 400u);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayBooks, TellRateLimitsFromBudgetsAndAnnounceWhatIsLeft) {
  FakeServer server(kServed);
  Books books;
  for (const char* id : {"fast", "poor", "small"}) books.add_key(id, "t");
  books.limit("key", "fast", requests_per_minute(2));
  books.limit("key", "poor", monthly_budget(60'000));  // 60 micro-dollars: the first request, not a second one
  LimitSpec tokens = requests_per_minute(10);
  tokens.name = "tpm";
  tokens.unit = LimitUnit::output_tokens;
  books.limit("key", "small", tokens);
  books.snapshot.prices.overrides = kPrices;
  books.publish();
  auto config = books.config({server.port()});
  config.usage.budget_status = 403;
  Rig rig(std::move(config));
  const Answer first = chat_as(rig, "fast");
  EXPECT_EQ(first.status, 200u);
  EXPECT_EQ(first.head("x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(first.head("x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(chat_as(rig, "fast").status, 200u);
  const Answer third = chat_as(rig, "fast");
  EXPECT_EQ(third.status, 429u);
  EXPECT_NE(third.head("retry-after"), "");
  EXPECT_NE(third.body.find("rate_limit_exceeded"), std::string::npos) << third.body;
  EXPECT_NE(third.body.find("'rpm' of this key"), std::string::npos) << third.body;

  EXPECT_EQ(chat_as(rig, "poor").status, 200u);
  const Answer poor = chat_as(rig, "poor");
  EXPECT_EQ(poor.status, 403u);
  EXPECT_NE(poor.body.find("insufficient_quota"), std::string::npos) << poor.body;
  EXPECT_EQ(poor.head("retry-after"), "") << "time alone does not heal it: clients would storm";
  EXPECT_EQ(chat_as(rig, "small", ask("hello", 11)).status, 400u) << "it would never pass";
  EXPECT_EQ(server.calls.load(), 3);
  EXPECT_EQ(metric_of(rig.port(), "gateway_limits_total{outcome=\"rate_exceeded\"}"), 1);
  EXPECT_EQ(metric_of(rig.port(), "gateway_limits_total{outcome=\"budget_exceeded\"}"), 1);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayBooks, AskStreamsForTheirUsageAndKeepThatFromClientsThatDidNot) {
  std::mutex mutex;
  std::vector<std::string> bodies;
  FakeServer server([&](FakeCall& c) {
    {
      const std::lock_guard lock(mutex);
      bodies.push_back(c.request.body());
    }
    c.begin_stream();
    c.piece(chat_event("a"));
    c.piece(chat_event("b"));
    c.piece(kUsageEvent);
    c.piece("data: [DONE]\n\n");
    c.end_stream();
  });
  Books books;
  books.add_key("alice", "");
  books.publish();
  Rig rig(books.config({server.port()}));
  const Answer quiet = chat_as(rig, "alice", ask("x", 5, true));
  EXPECT_EQ(quiet.body, chat_event("a") + chat_event("b") + "data: [DONE]\n\n");
  std::string asking = ask("x", 5, true);
  asking.insert(1, R"("stream_options":{"include_usage":true},)");
  EXPECT_EQ(chat_as(rig, "alice", asking).body, chat_event("a") + chat_event("b") + kUsageEvent + "data: [DONE]\n\n");
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_NE(bodies[0].find("\"include_usage\":true"), std::string::npos) << bodies[0];
  EXPECT_EQ(bodies[1], asking);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "input_tokens"), 80);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "cached_input_tokens"), 16);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "incomplete"), 0);
  EXPECT_EQ(metric_of(rig.port(), "gateway_usage_hidden_total"), 1);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayBooks, ForwardAndReadTheWordsOfEveryApi) {
  FakeServer server([](FakeCall& c) {
    const std::string target(c.request.target());
    if (target.find("generateContent") != std::string::npos)
      return c.answer(
          200,
          R"({"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":)"
          R"({"promptTokenCount":50,"cachedContentTokenCount":20,"candidatesTokenCount":4,"totalTokenCount":54}})");
    if (target.find("/converse") != std::string::npos)
      return c.answer(200,
                      R"({"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"stopReason":"end_turn",)"
                      R"("usage":{"inputTokens":10,"outputTokens":3,"totalTokens":33,"cacheReadInputTokens":20}})");
    c.answer(
        200,
        R"({"type":"message","id":"msg_1","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",)"
        R"("usage":{"input_tokens":7,"cache_read_input_tokens":9,"cache_creation_input_tokens":0,"output_tokens":2}})");
  });
  Books books;
  books.add_key("alice", "");
  books.publish();
  Rig rig(books.config({server.port()}));
  const auto post = [&](const char* target, const std::string& body) {
    return call(rig.port(), "POST", target, body, Books::bearer("alice")).status;
  };
  const std::string contents = R"({"contents":[{"role":"user","parts":[{"text":"hello"}]}]})";
  EXPECT_EQ(post("/v1beta/models/m:generateContent", contents), 200u);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "input_tokens"), 50);
  EXPECT_EQ(post("/model/m/converse", R"({"messages":[{"role":"user","content":[{"text":"hello"}]}]})"), 200u);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "input_tokens"), 80);
  EXPECT_EQ(post("/v1/messages", ask("x", 5)), 200u);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "input_tokens"), 96);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "cached_input_tokens"), 49);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "output_tokens"), 9);
  EXPECT_EQ(post("/v1beta/models/other:generateContent", contents), 404u);
  EXPECT_EQ(post("/v1beta/models/m:generateContent", R"({"contents":[{"parts":7}]})"), 400u);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayBooks, BelieveWhatIsKnownOfAModelServerMoreThanItsApi) {
  // vLLM once put the whole prompt into Anthropic's input_tokens, which has the uncached part alone.
  FakeServer server([](FakeCall& c) {
    c.answer(200, R"({"type":"message","id":"msg_1","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn",)"
                  R"("usage":{"input_tokens":50,"cache_read_input_tokens":40,"output_tokens":2}})");
  });
  Books books;
  books.add_key("alice", "");
  books.publish();
  auto config = books.config({server.port()});
  config.replicas[0].meter.input_includes_cache = Belief::yes;
  Rig rig(std::move(config));
  EXPECT_EQ(call(rig.port(), "POST", "/v1/messages", ask("x", 5), Books::bearer("alice")).status, 200u);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "input_tokens"), 50);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "cached_input_tokens"), 40);
  EXPECT_BOOKS_CLOSED(rig);
}

// ---------------------------------------------------------------- every way to end

TEST(GatewayBooks, AreClosedOnceWhateverHappensUpstream) {
  FakeServer bad([](FakeCall& c) {
    switch (c.number % 4) {
      case 0: return c.reset();
      case 1: return c.answer(500, "{}");
      case 2: return c.answer(429, "{}");
      default: c.begin_stream(); return c.reset();
    }
  });
  FakeServer good(kServed);
  Books books;
  books.add_key("alice", "blue");
  books.publish();
  auto config = books.config({bad.port(), good.port(), free_port()});
  config.failures_to_down = 1'000;
  config.retry_start = 1'000;
  Rig rig(std::move(config));
  int served = 0;
  for (int i = 0; i < 24; ++i) served += chat_as(rig, "alice", ask("x", 5, i % 2 == 0)).status == 200u ? 1 : 0;
  EXPECT_GE(served, 20);
  EXPECT_EQ(chat_as(rig, "alice", "{").status, 400u);
  EXPECT_EQ(chat_as(rig, "alice", R"({"model":"nobody","messages":[{"role":"user","content":"x"}]})").status, 404u);
  EXPECT_BOOKS_CLOSED(rig);
  const auto port = rig.port();
  EXPECT_EQ(usage_of(port, "?by=replica", "\"replica\":\"r1\"", "input_tokens"), 32.0 * good.calls.load());
  EXPECT_EQ(usage_of(port, "?by=replica", "\"replica\":\"r0\"", "attempts"), bad.calls.load());
  EXPECT_EQ(usage_of(port, "?by=replica", "\"replica\":\"r0\"", "errors"), bad.calls.load());
  EXPECT_EQ(usage_of(port, "?by=replica", "\"replica\":\"r0\"", "input_tokens"), 0) << "no client pays for those";
}

TEST(GatewayBooks, AnAnswerThatBreaksOffIsPartialAndNotLost) {
  FakeServer server([](FakeCall& c) {
    c.begin_stream();
    for (int i = 0; i < 7; ++i) c.piece(chat_event("t"));
    eventually([] { return false; }, std::chrono::milliseconds(50));
    c.reset();
  });
  Books books;
  books.add_key("alice", "");
  books.publish();
  Rig rig(books.config({server.port()}));
  EXPECT_FALSE(chat_as(rig, "alice", ask("x", 50, true)).complete);
  EXPECT_BOOKS_CLOSED(rig);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "incomplete"), 1);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "errors"), 1);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "output_tokens"), 7);
  EXPECT_GT(usage_of(rig.port(), "", "\"total\"", "input_tokens"), 0);
}

TEST(GatewayBooks, AClientThatLeavesIsCutOrItsAnswerIsReadToTheEnd) {
  for (const HangupMode mode : {HangupMode::cut, HangupMode::drain}) {
    std::atomic<bool> goes_on{false}, saw_close{false};
    FakeServer server([&](FakeCall& c) {
      c.begin_stream();
      c.piece(chat_event("a"));
      eventually([&] { return goes_on.load(); });
      if (c.closed_by_peer(std::chrono::milliseconds(200))) saw_close = true;
      c.piece(chat_event("b"));
      c.piece(kUsageEvent);
      c.piece("data: [DONE]\n\n");
      c.end_stream();
    });
    Books books;
    books.add_key("alice", "");
    books.publish();
    auto config = books.config({server.port()});
    config.usage.hangup.mode = mode;
    Rig rig(std::move(config));
    TestClient client(rig.port());
    client.send("POST", "/v1/chat/completions", ask("x", 9, true), Books::bearer("alice"));
    client.read_until("\"a\"");
    client.close();
    EXPECT_TRUE(eventually([&] { return mode == HangupMode::drain || rig.outcomes(Outcome::cancelled) == 1; }));
    goes_on = true;
    EXPECT_BOOKS_CLOSED(rig);
    const bool drained = mode == HangupMode::drain;
    EXPECT_TRUE(eventually([&] { return saw_close.load() == !drained; }));
    EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "incomplete"), drained ? 0 : 1);
    EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "errors"), 0);
    EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "output_tokens"), drained ? 3 : 1);
    EXPECT_EQ(metric_of(rig.port(), "gateway_drained_total"), drained ? 1 : 0);
    EXPECT_EQ(rig.it->counters().client_aborts.load(), 1u);
  }
}

TEST(GatewayBooks, ADrainEndsAtItsTime) {
  FakeServer server([](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("a"));
    c.closed_by_peer();
  });
  Books books;
  books.add_key("alice", "");
  books.publish();
  auto config = books.config({server.port()});
  config.usage.hangup = {HangupMode::drain, milliseconds(50), 1'000'000};
  Rig rig(std::move(config));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", ask("x", 9, true), Books::bearer("alice"));
  client.read_until("\"a\"");
  client.close();
  EXPECT_BOOKS_CLOSED(rig);
  EXPECT_EQ(metric_of(rig.port(), "gateway_drains_cut_total"), 1);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "incomplete"), 1);
}

TEST(GatewayBooks, ABudgetThatEndsInMidStreamStopsIt) {
  FakeServer server([](FakeCall& c) {
    c.begin_stream();
    for (int i = 0; i < 2'000 && !c.closed_by_peer(std::chrono::milliseconds(1)); ++i) c.piece(chat_event("t"));
  });
  Books books;
  books.add_key("alice", "");
  LimitSpec budget = monthly_budget(400);
  budget.unit = LimitUnit::output_tokens;
  budget.hard_stop = true;
  books.limit("key", "alice", budget);
  books.publish();
  Rig rig(books.config({server.port()}));
  // What the client asks for is less than what the model server gives.
  const Answer answer = chat_as(rig, "alice", ask("x", 100, true));
  EXPECT_TRUE(answer.complete);
  EXPECT_NE(answer.body.find("insufficient_quota"), std::string::npos) << answer.body.substr(answer.body.size() / 2);
  EXPECT_BOOKS_CLOSED(rig);
  EXPECT_EQ(metric_of(rig.port(), "gateway_hard_stops_total"), 1);
  const double used = usage_of(rig.port(), "", "\"total\"", "output_tokens");
  EXPECT_GE(used, 400);
  EXPECT_LE(used, 600) << "what came in one piece with the last allowed token";
  EXPECT_EQ(chat_as(rig, "alice", ask("x", 100, true)).status, 402u);
}

TEST(GatewayBooks, AStopIsToldInTheWordsOfTheApi) {
  FakeServer server([](FakeCall& c) {
    c.begin_stream();
    c.piece(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"usage\":"
        "{\"input_tokens\":9,\"output_tokens\":1}}}\n\n");
    for (int i = 0; i < 2'000 && !c.closed_by_peer(std::chrono::milliseconds(1)); ++i)
      c.piece(
          "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"
          "{\"type\":\"text_delta\",\"text\":\"t\"}}\n\n");
  });
  Books books;
  books.add_key("alice", "");
  LimitSpec budget = monthly_budget(200);
  budget.unit = LimitUnit::output_tokens;
  budget.hard_stop = true;
  books.limit("key", "alice", budget);
  books.publish();
  Rig rig(books.config({server.port()}));
  const Answer answer =
      call(rig.port(), "POST", "/v1/messages", ask("x", 50, true), "x-api-key: " + Books::key_of("alice") + "\r\n");
  EXPECT_TRUE(answer.complete);
  EXPECT_NE(answer.body.find("event: error\n"), std::string::npos);
  EXPECT_NE(answer.body.find("billing_error"), std::string::npos);
  EXPECT_BOOKS_CLOSED(rig);
  EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "input_tokens"), 9);
}

TEST(GatewayBooks, AJournalThatTakesNothingRefusesOrServesLoudly) {
  for (const JournalFull policy : {JournalFull::refuse, JournalFull::serve_unbilled}) {
    FakeServer server(kServed);
    Books books;
    books.add_key("alice", "");
    books.publish();
    auto config = books.config({server.port()});
    config.usage.journal_options.on_full = policy;
    config.usage.journal_options.max_bytes = 3'000;
    config.usage.journal_options.segment_bytes = 4'096;
    Rig rig(std::move(config));
    Answer last;
    int served = 0;
    for (int i = 0; i < 40; ++i) {
      last = chat_as(rig, "alice");
      served += last.status == 200u ? 1 : 0;
    }
    EXPECT_GT(served, 2);
    if (policy == JournalFull::refuse) {
      EXPECT_EQ(last.status, 503u);
      EXPECT_NE(last.body.find("journal_unavailable"), std::string::npos) << last.body;
      EXPECT_EQ(server.calls.load(), served) << "what cannot be recorded does not leave";
      EXPECT_GT(metric_of(rig.port(), "gateway_journal_refused_total"), 0);
    } else {
      EXPECT_EQ(served, 40);
      EXPECT_GT(metric_of(rig.port(), "gateway_journal_unbilled_total"), 0);
      EXPECT_EQ(metric_of(rig.port(), "gateway_journal_full"), 1);
    }
    EXPECT_EQ(usage_of(rig.port(), "", "\"total\"", "attempts"), served);
    EXPECT_BOOKS_EMPTY(rig);
  }
}

// ---------------------------------------------------------------- from one process to the next

TEST(GatewayBooks, TheNextProcessKnowsWhatWasUsedAndOfWhichBudget) {
  FakeServer server(kServed);
  Books books;
  books.add_key("alice", "blue");
  LimitSpec budget = monthly_budget(100);
  budget.unit = LimitUnit::input_tokens;
  books.limit("team", "blue", budget);
  books.publish();
  std::string before;
  {
    Rig rig(books.config({server.port()}));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(chat_as(rig, "alice").status, 200u);
    before = call(rig.port(), "GET", "/usage?by=key,team,model,replica,window").body;
  }
  Rig rig(books.config({server.port()}));
  EXPECT_EQ(call(rig.port(), "GET", "/usage?by=key,team,model,replica,window").body, before);
  EXPECT_EQ(chat_as(rig, "alice").status, 200u) << "36 of 100 are left";
  EXPECT_EQ(chat_as(rig, "alice").status, 402u) << "4 of 100 are left";
}

TEST(GatewayBooks, AnEndOfTheGatewayEndsWhatIsOpenInTheJournal) {
  std::atomic<bool> over{false};
  FakeServer server([&](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("a"));
    eventually([&] { return over.load(); });
  });
  Books books;
  books.add_key("alice", "");
  books.publish();
  {
    auto config = books.config({server.port()});
    config.shutdown_timeout = std::chrono::milliseconds(50);
    config.usage.usage_file = books / "usage.jsonl";
    Rig rig(std::move(config));
    TestClient client(rig.port());
    client.send("POST", "/v1/chat/completions", ask("x", 9, true), Books::bearer("alice"));
    client.read_until("\"a\"");
    EXPECT_EQ(rig.it->stop().cut, 1);
    over = true;
  }
  auto reader = JournalReader::open(books / "journal");
  ASSERT_TRUE(reader);
  JournalRecord record;
  ASSERT_TRUE(*reader->next(record));
  EXPECT_EQ(record.kind, JournalKind::end) << "it was ended, not found open by the next process";
  EXPECT_FALSE(record.event.complete);
  EXPECT_EQ(record.event.key_id, "alice");
  EXPECT_FALSE(*reader->next(record));
  std::ifstream lines(books / "usage.jsonl");
  std::string line;
  EXPECT_TRUE(std::getline(lines, line)) << "and was handed over";
  EXPECT_NE(line.find("\"key_id\":\"alice\""), std::string::npos) << line;
}

}  // namespace books_tests
}  // namespace warmroute::testing
