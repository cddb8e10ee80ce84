// What goes wrong: every fault of a model server, what the client gets to see of it, and that nothing is left on the books.
#include <sys/socket.h>

#include "gateway/rig.hpp"

namespace warmroute::testing {
namespace {

using gateway::Timeout;

const FakeServer::Script kWell = [](FakeCall& c) { c.answer(200, kUsageAnswer); };

TEST(GatewayFaults, AResetBeforeAnyAnswerIsRetriedElsewhere) {
  FakeServer bad([](FakeCall&c) { c.reset(); }), good(kWell);
  Rig rig(config_for({bad.port(), good.port()}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_GE(bad.calls.load(), 1);
  EXPECT_EQ(rig.it->counters().retries[static_cast<std::size_t>(gateway::RetryCause::reset)].load(),
            static_cast<std::uint64_t>(bad.calls.load()));
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, TraceAndConnectAreRefusedAndTheConnectionGoesOn) {
  FakeServer good(kWell);
  Rig rig(config_for({good.port()}));
  TestClient client(rig.port());
  for (const char* method : {"TRACE", "CONNECT"}) {
    client.send(method, "/v1/chat/completions", "{}");
    EXPECT_EQ(client.receive().status, 405u) << method;
  }
  client.send("POST", "/v1/chat/completions", chat_body("x"));
  EXPECT_EQ(client.receive().status, 200u);
  EXPECT_EQ(good.calls.load(), 1);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, AResetBehindTheHeadIsRetriedWhileNoBodyWasPassedOn) {
  FakeServer bad([](FakeCall& c) {
    c.begin_stream();
    c.reset();
  });
  FakeServer good(kWell);
  Rig rig(config_for({bad.port(), good.port()}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(rig.chat("x", true).status, 200u);
  EXPECT_GE(bad.calls.load(), 1);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, AResetInMidStreamCutsTheAnswerAndIsNotRetried) {
  FakeServer bad([](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("one"));
    eventually([] { return false; }, std::chrono::milliseconds(50));  // so that the piece is not lost with the reset
    c.reset();
  });
  FakeServer good(kWell);
  auto config = config_for({bad.port(), good.port()});
  Rig rig(std::move(config));
  int cut = 0;
  for (int i = 0; i < 2; ++i) {
    const Answer answer = rig.chat("x", true);
    EXPECT_EQ(answer.status, 200u);
    if (!answer.complete) cut += 1;
  }
  EXPECT_EQ(cut, 1);
  EXPECT_EQ(rig.retries(), 0u);
  EXPECT_EQ(rig.it->counters().answers_cut.load(), 1u);
  EXPECT_BOOKS_EMPTY(rig);
  EXPECT_EQ(rig.outcomes(Outcome::replica_error), 1u);
}

TEST(GatewayFaults, AServerErrorIsRetriedElsewhereAndSeveralTakeTheReplicaDown) {
  FakeServer bad([](FakeCall&c) { c.answer(500, "{}"); }), good(kWell);
  auto config = config_for({bad.port(), good.port()});
  config.probe_interval = std::chrono::seconds(60);
  Rig rig(std::move(config));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_EQ(bad.calls.load(), 3);
  EXPECT_EQ(rig.health(0), Health::down);
  EXPECT_EQ(rig.it->router().replicas().at(0).spec.health_reason, "status 500");
  EXPECT_EQ(rig.retries(), 3u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, AnErrorThatNobodyElseCanMendIsPassedThroughWithItsBody) {
  FakeServer bad([](FakeCall& c) { c.answer(500, "{\"error\":\"mine\"}"); });
  Rig rig(config_for({bad.port()}));
  const Answer answer = rig.chat();
  EXPECT_EQ(answer.status, 500u);
  EXPECT_EQ(answer.body, "{\"error\":\"mine\"}");
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, ClientErrorsPassThroughAndSayNothingAboutTheReplica) {
  FakeServer server([](FakeCall&c) { c.answer(c.number % 2 == 0 ? 404 : 422, "no"); }), other(kWell);
  Rig rig(config_for({server.port(), other.port()}));
  int refused = 0;
  for (int i = 0; i < 20; ++i) refused += rig.chat().status >= 400 ? 1 : 0;
  EXPECT_EQ(refused, 10);
  EXPECT_EQ(rig.retries(), 0u);
  EXPECT_EQ(rig.health(0), Health::up);
  EXPECT_EQ(rig.outcomes(Outcome::client_error), 10u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, ABusyReplicaIsPassedOverForAsLongAsItAsksAndStaysUp) {
  FakeServer busy([](FakeCall&c) { c.answer(429, "busy", "Retry-After: 30\r\n"); }), good(kWell);
  Rig rig(config_for({busy.port(), good.port()}));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_EQ(busy.calls.load(), 1);
  EXPECT_EQ(rig.health(0), Health::up);
  EXPECT_EQ(rig.outcomes(Outcome::backpressure), 1u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, WhenAllAreBusyTheClientIsToldSo) {
  const FakeServer::Script busy = [](FakeCall& c) { c.answer(503, "busy", "Retry-After: 7\r\n"); };
  FakeServer a(busy), b(busy);
  Rig rig(config_for({a.port(), b.port()}));
  for (int i = 0; i < 3; ++i) {
    const Answer answer = rig.chat();
    EXPECT_EQ(answer.status, 503u);
    EXPECT_EQ(answer.head("retry-after"), "7");
    EXPECT_EQ(answer.body, "busy");
  }
  EXPECT_EQ(rig.health(0), Health::up);
  EXPECT_EQ(rig.health(1), Health::up);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, ARefusedConnectionTakesTheReplicaDownAndItsReturnTakesItUp) {
  FakeServer good(kWell);
  const auto port = free_port();
  Rig rig(config_for({port, good.port()}));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_EQ(rig.health(0), Health::down);
  EXPECT_EQ(rig.retries(), 1u);
  FakeServer returned(kWell, port);
  EXPECT_TRUE(eventually([&] { return rig.health(0) == Health::up; }));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_EQ(returned.calls.load(), 5);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, ARestartForgetsTheCacheAndAFlapDoesNot) {
  std::atomic<bool> broken{false};
  auto flaky = std::make_unique<FakeServer>([&](FakeCall& c) { broken ? c.answer(500, "{}") : c.answer(200, "{}"); });
  const auto port = flaky->port();
  auto config = config_for({port});
  Rig rig(std::move(config));
  const auto believed = [&] { return rig.statistics().replicas.at(0).believed_blocks; };
  EXPECT_EQ(rig.chat(std::string(2'000, 'x')).status, 200u);
  EXPECT_TRUE(eventually([&] { return believed() > 10; }));
  broken = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.chat("y").status, 500u);
  broken = false;
  EXPECT_TRUE(eventually([&] { return rig.health(0) == Health::up; }));
  EXPECT_GT(believed(), 10u);
  flaky.reset();
  EXPECT_EQ(rig.chat("z").status, 502u);
  EXPECT_EQ(rig.health(0), Health::down);
  FakeServer returned(kWell, port);
  EXPECT_TRUE(eventually([&] { return rig.health(0) == Health::up; }));
  EXPECT_TRUE(eventually([&] { return believed() == 0; })) << believed();
}

TEST(GatewayFaults, AStaleKeptAliveConnectionCostsNoRetry) {
  FakeServer server([](FakeCall& c) {
    if (c.number_on_connection == 1) {
      c.answer(200, kUsageAnswer);
    } else {
      c.close();  // it had decided to close just before the request came
    }
  });
  Rig rig(config_for({server.port()}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_EQ(rig.retries(), 0u);
  EXPECT_EQ(rig.it->counters().upstream_stale.load(), 4u);
  EXPECT_EQ(rig.health(0), Health::up);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, GarbageInsteadOfAnAnswerIsAFailure) {
  FakeServer bad([](FakeCall& c) {
    c.write("SSH-2.0-OpenSSH_9\r\n\r\n");
    c.close();
  });
  Rig rig(config_for({bad.port()}));
  const Answer answer = rig.chat();
  EXPECT_EQ(answer.status, 502u);
  EXPECT_NE(answer.body.find("upstream_reset"), std::string::npos) << answer.body;
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, InterimAnswersAreNotTheAnswerAndNoClientGetsAnothersWords) {
  FakeServer upstream([](FakeCall& c) {
    c.write("HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n");
    eventually([] { return false; }, std::chrono::milliseconds(20));  // so that it is read by itself
    c.answer(200, R"({"for":")" + std::to_string(c.number) + R"("})");
  });
  Rig rig(config_for({upstream.port()}));
  for (int i = 1; i <= 3; ++i) {
    const Answer answer = rig.chat();
    EXPECT_EQ(answer.status, 200u);
    EXPECT_EQ(answer.body, R"({"for":")" + std::to_string(i) + R"("})");
  }
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, AnotherProtocolThatNobodyAskedForIsAFailure) {
  FakeServer odd([](FakeCall&c) { c.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"); }), good(kWell);
  Rig rig(config_for({odd.port(), good.port()}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, RetriesStayWithinTheirBudget) {
  const FakeServer::Script reset = [](FakeCall& c) { c.reset(); };
  FakeServer a(reset), b(reset);
  auto config = config_for({a.port(), b.port()});
  config.retry_start = 2;
  config.retry_percent = 10;
  config.failures_to_down = 1'000;
  Rig rig(std::move(config));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(rig.chat().status, 502u);
  EXPECT_EQ(rig.retries(), 2u + 4u);
  EXPECT_EQ(a.calls + b.calls, 46);
  EXPECT_GE(rig.it->counters().retries_refused.load(), 30u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayFaults, OneRequestIsTriedOnAsManyReplicasAsAllowed) {
  const FakeServer::Script reset = [](FakeCall& c) { c.reset(); };
  FakeServer a(reset), b(reset), c(reset), d(reset);
  auto config = config_for({a.port(), b.port(), c.port(), d.port()});
  config.max_attempts = 3;
  Rig rig(std::move(config));
  EXPECT_EQ(rig.chat().status, 502u);
  EXPECT_EQ(a.calls + b.calls + c.calls + d.calls, 3);
  EXPECT_BOOKS_EMPTY(rig);
}

// ---------------------------------------------------------------- the four timeouts

TEST(GatewayTimeouts, ConnectEndsAnAttemptThatReachesNobody) {
  // A listener that never accepts, with its queue full, lets further connections hang; a queue of length 0 holds one.
  examples::asio::io_context io;
  examples::tcp::acceptor deaf(io);
  deaf.open(examples::tcp::v4());
  deaf.bind({examples::asio::ip::address_v4::loopback(), 0});
  deaf.listen(0);
  const auto port = deaf.local_endpoint().port();
  TestClient first(port);
  FakeServer good(kWell);
  auto config = config_for({port, good.port()});
  config.connect_timeout = std::chrono::milliseconds(100);
  Rig rig(std::move(config));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_GE(rig.timeouts(Timeout::connect), 1u);
  EXPECT_EQ(rig.retries(), rig.timeouts(Timeout::connect));
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayTimeouts, FirstTokenEndsAStreamThatDoesNotBegin) {
  std::atomic<bool> closed{false};
  FakeServer mute([&](FakeCall& c) { closed = c.closed_by_peer(); });
  auto config = config_for({mute.port()});
  config.first_token_timeout = std::chrono::milliseconds(100);
  Rig rig(std::move(config));
  const Answer answer = rig.chat("x", true);
  EXPECT_EQ(answer.status, 504u);
  EXPECT_NE(answer.body.find("first_token_timeout"), std::string::npos) << answer.body;
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_EQ(rig.timeouts(Timeout::first_token), 1u);
  EXPECT_EQ(rig.outcomes(Outcome::timeout), 1u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayTimeouts, FirstTokenIsNotMetByARoleAndComments) {
  FakeServer slow([](FakeCall& c) {
    c.begin_stream();
    c.piece("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n");
    while (!c.closed_by_peer(std::chrono::milliseconds(10))) c.piece(": still here\n\n");
  });
  auto config = config_for({slow.port()});
  config.first_token_timeout = std::chrono::milliseconds(100);
  Rig rig(std::move(config));
  const Answer answer = rig.chat("x", true);
  EXPECT_EQ(answer.status, 200u);
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(rig.timeouts(Timeout::first_token), 1u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayTimeouts, InterTokenEndsAStreamThatFallsSilent) {
  FakeServer silent([](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("one"));
    EXPECT_TRUE(c.closed_by_peer());
  });
  auto config = config_for({silent.port()});
  config.inter_token_timeout = std::chrono::milliseconds(100);
  Rig rig(std::move(config));
  const Answer answer = rig.chat("x", true);
  EXPECT_EQ(answer.status, 200u);
  EXPECT_FALSE(answer.complete);
  EXPECT_EQ(rig.timeouts(Timeout::inter_token), 1u);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayTimeouts, TotalEndsAStreamThatNeverEnds) {
  FakeServer endless([](FakeCall& c) {
    c.begin_stream();
    do c.piece(chat_event("more"));
    while (!c.closed_by_peer(std::chrono::milliseconds(5)));
  });
  auto config = config_for({endless.port()});
  config.total_timeout = std::chrono::milliseconds(200);
  Rig rig(std::move(config));
  EXPECT_FALSE(rig.chat("x", true).complete);
  EXPECT_EQ(rig.timeouts(Timeout::total), 1u);
  EXPECT_EQ(rig.health(0), Health::up);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayTimeouts, TotalEndsAPlainAnswerThatDoesNotCome) {
  FakeServer mute([](FakeCall& c) { c.closed_by_peer(); });
  auto config = config_for({mute.port()});
  config.total_timeout = std::chrono::milliseconds(100);
  config.first_token_timeout = std::chrono::milliseconds(10);  // concerns streams alone
  Rig rig(std::move(config));
  const Answer answer = rig.chat();
  EXPECT_EQ(answer.status, 504u);
  EXPECT_NE(answer.body.find("total_timeout"), std::string::npos) << answer.body;
  EXPECT_BOOKS_EMPTY(rig);
}

// ---------------------------------------------------------------- clients that go away

TEST(GatewayAborts, AClientThatLeavesBeforeTheAnswerCancelsTheUpstreamAtOnce) {
  std::atomic<bool> waiting{false}, closed{false};
  FakeServer mute([&](FakeCall& c) {
    waiting = true;
    closed = c.closed_by_peer();
  });
  Rig rig(config_for({mute.port()}));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x"));
  EXPECT_TRUE(eventually([&] { return waiting.load(); }));
  EXPECT_FALSE(rig.books_are_empty());
  client.close();
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_BOOKS_EMPTY(rig);
  EXPECT_EQ(rig.outcomes(Outcome::cancelled), 1u);
  EXPECT_EQ(rig.it->counters().client_aborts.load(), 1u);
  EXPECT_EQ(rig.it->counters().requests[gateway::kClientGone].load(), 1u);
  EXPECT_EQ(rig.health(0), Health::up);
}

TEST(GatewayAborts, AClientThatLeavesInMidStreamCancelsTheUpstreamAtOnce) {
  std::atomic<bool> closed{false};
  FakeServer silent([&](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("one"));
    closed = c.closed_by_peer();
  });
  Rig rig(config_for({silent.port()}));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x", true));
  client.read_until("one");
  client.close();
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_BOOKS_EMPTY(rig);
  EXPECT_EQ(rig.outcomes(Outcome::cancelled), 1u);
}

TEST(GatewayAborts, AClientThatLeavesWhileTheGatewayConnectsReleasesItsTicket) {
  examples::asio::io_context io;
  examples::tcp::acceptor deaf(io);
  deaf.open(examples::tcp::v4());
  deaf.bind({examples::asio::ip::address_v4::loopback(), 0});
  deaf.listen(0);
  const auto port = deaf.local_endpoint().port();
  TestClient first(port);
  auto config = config_for({port});
  config.connect_timeout = std::chrono::seconds(60);
  Rig rig(std::move(config));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x"));
  EXPECT_TRUE(eventually([&] { return rig.statistics().tickets_in_flight == 1; }));
  client.close();
  EXPECT_BOOKS_EMPTY(rig);
  EXPECT_EQ(rig.outcomes(Outcome::cancelled), 1u);
}

TEST(GatewayAborts, AClientThatReadsNothingIsGivenUpAtTheTotalTimeout) {
  FakeServer flood([](FakeCall& c) {
    c.begin_stream();
    const std::string event = chat_event(std::string(60'000, 'x'));
    while (!c.closed_by_peer(std::chrono::milliseconds(0))) c.piece(event);
  });
  auto config = config_for({flood.port()});
  config.total_timeout = std::chrono::milliseconds(300);
  Rig rig(std::move(config));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x", true));
  EXPECT_TRUE(eventually([&] { return rig.statistics().tickets_in_flight == 1; }));
  EXPECT_BOOKS_EMPTY(rig);
}

}  // namespace
}  // namespace warmroute::testing
