// What goes right: bodies and streams pass unchanged, the right replica gets them, and every ticket is settled.
#include "gateway/rig.hpp"

namespace warmroute::testing {
namespace {

const FakeServer::Script kGood = [](FakeCall& c) { c.answer(200, kUsageAnswer); };

TEST(Gateway, ForwardsTheBodyUnchangedAndNamesTheReplica) {
  std::string got, host, target;
  FakeServer server([&](FakeCall& c) {
    got = c.request.body();
    target = std::string(c.request.target());
    host = std::string(c.request[examples::http::field::host]);
    c.answer(200, kUsageAnswer, "x-engine: e\r\n");
  });
  Rig rig(config_for({server.port()}));
  const std::string body =
      "{ \"messages\": [ {\"role\":\"user\",\"content\":\"h\\u00e9llo\"} ],\n \"model\":\"m\", \"unknown\": [1, 2e3] }";
  const Answer answer = call(rig.port(), "POST", "/v1/chat/completions?x=1", body, "Authorization: Bearer k\r\n");
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.body, kUsageAnswer);
  EXPECT_EQ(answer.head("x-engine"), "e");
  EXPECT_EQ(answer.head("x-warmroute-replica"), "r0");
  EXPECT_EQ(got, body);
  EXPECT_EQ(target, "/v1/chat/completions?x=1");
  EXPECT_EQ(host, server.address());
  EXPECT_BOOKS_EMPTY(rig);
  const auto statistics = rig.statistics();
  EXPECT_EQ(statistics.input_tokens, 32);
  EXPECT_EQ(statistics.output_tokens, 2);
  EXPECT_EQ(statistics.reported_cached_tokens, 16);
}

TEST(Gateway, RoutesEveryApiThatHasAPrompt) {
  FakeServer server(kGood);
  Rig rig(config_for({server.port()}));
  const std::string message = R"({"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"}]})";
  EXPECT_EQ(call(rig.port(), "POST", "/v1/completions", R"({"model":"m","prompt":"x"})").status, 200u);
  EXPECT_EQ(call(rig.port(), "POST", "/v1/responses", R"({"model":"m","input":"x"})").status, 200u);
  EXPECT_EQ(call(rig.port(), "POST", "/v1/embeddings", R"({"model":"m","input":"x"})").status, 200u);
  EXPECT_EQ(call(rig.port(), "POST", "/v1/messages", message).status, 200u);
  EXPECT_EQ(rig.statistics().verdicts[static_cast<std::size_t>(Verdict::routed)], 4u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(Gateway, SendsOtherPathsToAnyReplicaThatIsUp) {
  FakeServer server([](FakeCall& c) {
    c.answer(200, std::string(c.request.method_string()) + " " + std::string(c.request.target()));
  });
  Rig rig(config_for({free_port(), server.port()}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(call(rig.port(), "GET", "/v1/models").body, "GET /v1/models");
  EXPECT_EQ(rig.statistics().verdicts[static_cast<std::size_t>(Verdict::routed)], 0u);
}

TEST(Gateway, PassesStreamsByteForByte) {
  std::vector<std::string> pieces;
  std::string whole;
  for (int i = 0; i < 50; ++i) pieces.push_back(chat_event("token " + std::to_string(i)));
  pieces.insert(pieces.begin() + 3, ": a comment\r\n\r\n");
  pieces.push_back(
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":50}}\n\ndata: [DONE]\n\n");
  for (const auto& piece : pieces) whole += piece;
  FakeServer server([&](FakeCall& c) {
    c.begin_stream();
    // Cut where it hurts: events over several chunks, several events in one.
    for (std::size_t at = 0, n = 1; at < whole.size(); at += n, n = n * 3 % 101 + 1) c.piece(whole.substr(at, n));
    c.end_stream();
  });
  Rig rig(config_for({server.port()}));
  const Answer answer = rig.chat("x", true);
  EXPECT_EQ(answer.status, 200u);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(answer.body, whole);
  EXPECT_EQ(answer.head("content-type"), "text/event-stream");
  EXPECT_BOOKS_EMPTY(rig);
  EXPECT_EQ(rig.statistics().observed_ttft.count, 1u);
  EXPECT_EQ(rig.statistics().output_tokens, 50);
}

TEST(Gateway, PassesEachPieceOnAsItComes) {
  std::atomic<bool> go_on{false};
  FakeServer server([&](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("first"));
    EXPECT_TRUE(eventually([&] { return go_on.load(); }));
    c.piece(chat_event("second"));
    c.end_stream();
  });
  Rig rig(config_for({server.port()}));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x", true));
  EXPECT_NE(client.read_until("first").find("first"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return rig.statistics().replicas.at(0).load.decoding == 1; }))
      << "the first token was not reported";
  EXPECT_EQ(rig.statistics().replicas.at(0).load.pending_tokens, 0);
  go_on = true;
  EXPECT_NE(client.read_until("second").find("second"), std::string::npos);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(Gateway, TellsNothingOfAFirstTokenWhileOnlyTheRoleCame) {
  std::atomic<bool> go_on{false};
  FakeServer server([&](FakeCall& c) {
    c.begin_stream();
    c.piece("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n");
    EXPECT_TRUE(eventually([&] { return go_on.load(); }));
    c.piece(chat_event("x"));
    c.end_stream();
  });
  Rig rig(config_for({server.port()}));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x", true));
  client.read_until("assistant");
  EXPECT_EQ(rig.statistics().replicas.at(0).load.decoding, 0);
  EXPECT_EQ(rig.statistics().observed_ttft.count, 0u);
  go_on = true;
  EXPECT_BOOKS_EMPTY(rig);
  EXPECT_EQ(rig.statistics().observed_ttft.count, 1u);
}

TEST(Gateway, ServesManyRequestsOverOneConnectionOnBothSides) {
  FakeServer server(kGood);
  Rig rig(config_for({server.port()}));
  TestClient client(rig.port());
  for (int i = 0; i < 20; ++i) {
    client.send("POST", "/v1/chat/completions", chat_body("x"));
    EXPECT_EQ(client.receive().status, 200u);
  }
  EXPECT_EQ(server.connections.load(), 1);
  EXPECT_EQ(rig.it->counters().upstream_reused.load(), 19u);
}

TEST(Gateway, ServesPipelinedRequestsInOrder) {
  FakeServer server([](FakeCall& c) { c.answer(200, c.request.body()); });
  Rig rig(config_for({server.port()}));
  TestClient client(rig.port());
  for (int i = 0; i < 5; ++i) client.send("POST", "/v1/chat/completions", chat_body("number " + std::to_string(i)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.receive().body, chat_body("number " + std::to_string(i)));
}

TEST(Gateway, PassesAnswersWithoutALengthAndLargeOnes) {
  const std::string large(3'000'000, 'x');
  FakeServer server([&](FakeCall& c) {
    if (c.number == 1) {
      c.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"until\":\"the end\"}");
      c.close();
    } else {
      c.answer(200, "{\"text\":\"" + large + "\",\"usage\":{\"prompt_tokens\":7}}");
    }
  });
  Rig rig(config_for({server.port()}));
  EXPECT_EQ(rig.chat().body, "{\"until\":\"the end\"}");
  EXPECT_EQ(rig.chat().body.size(), large.size() + 39);
  EXPECT_EQ(rig.statistics().input_tokens, 7);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(Gateway, AnswersHeadAndExpectAndHttp10AsTheyAskFor) {
  FakeServer server([](FakeCall& c) { c.answer(200, c.request.method_string() == "HEAD" ? "" : "body"); });
  Rig rig(config_for({server.port()}));
  EXPECT_EQ(call(rig.port(), "HEAD", "/v1/models").status, 200u);
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x"), "Expect: 100-continue\r\n");
  EXPECT_EQ(client.receive().status, 100u);
  EXPECT_EQ(client.receive().status, 200u);
}

TEST(Gateway, RefusesABrokenBodyWithCodeAndOffset) {
  FakeServer server(kGood);
  Rig rig(config_for({server.port()}));
  const Answer broken =
      call(rig.port(), "POST", "/v1/chat/completions", R"({"model":"m","messages":[{"role":"user",]})");
  EXPECT_EQ(broken.status, 400u);
  EXPECT_NE(broken.body.find("\"code\":\"invalid_json\""), std::string::npos) << broken.body;
  EXPECT_NE(broken.body.find("(byte "), std::string::npos) << broken.body;
  const Answer wrong = call(rig.port(), "POST", "/v1/chat/completions", R"({"model":"m","messages":7})");
  EXPECT_EQ(wrong.status, 400u);
  EXPECT_NE(wrong.body.find("\"code\":\"wrong_type\""), std::string::npos) << wrong.body;
  EXPECT_NE(wrong.body.find("messages"), std::string::npos) << wrong.body;
  EXPECT_EQ(server.calls.load(), 0);
}

TEST(Gateway, RefusesWhatIsTooLargeOrNotHttp) {
  FakeServer server(kGood);
  auto config = config_for({server.port()});
  config.max_body_bytes = 1'000;
  Rig rig(std::move(config));
  EXPECT_EQ(rig.chat(std::string(2'000, 'x')).status, 413u);
  EXPECT_EQ(rig.chat(std::string(4'000'000, 'x')).status, 413u);
  EXPECT_EQ(call(rig.port(), "P O S T", "/", {}).status, 400u);
  EXPECT_EQ(rig.chat().status, 200u);
}

TEST(Gateway, AnswersAnUnknownModelWith404AndAKnownOneByItsPool) {
  FakeServer a([](FakeCall&c) { c.answer(200, "a"); }), b([](FakeCall&c) { c.answer(200, "b"); });
  auto config = config_for({a.port(), b.port()});
  config.replicas[0].spec.pool = "model-a";
  config.replicas[1].spec.pool = "model-b";
  Rig rig(std::move(config));
  EXPECT_EQ(call(rig.port(), "POST", "/v1/chat/completions", chat_body("x", false, "model-a")).body, "a");
  EXPECT_EQ(call(rig.port(), "POST", "/v1/chat/completions", chat_body("x", false, "model-b")).body, "b");
  const Answer unknown = call(rig.port(), "POST", "/v1/chat/completions", chat_body("x", false, "model-c"));
  EXPECT_EQ(unknown.status, 404u);
  EXPECT_NE(unknown.body.find("model_not_found"), std::string::npos);
}

TEST(Gateway, SendsAPromptThatGrowsToTheReplicaThatHasItsStart) {
  const FakeServer::Script no_usage = [](FakeCall& c) { c.answer(200, "{}"); };
  FakeServer a(no_usage), b(no_usage);
  auto config = config_for({a.port(), b.port()});
  config.policy.algorithm = Algorithm::cost;
  Rig rig(std::move(config));
  std::string text(4'000, 'a');
  const std::string home = rig.chat(text).head("x-warmroute-replica");
  for (int turn = 0; turn < 10; ++turn) {
    text.append(1'000, static_cast<char>('b' + turn));
    EXPECT_EQ(rig.chat(text).head("x-warmroute-replica"), home);
  }
}

}  // namespace
}  // namespace warmroute::testing
