// Several gateways before the same model servers: one of them serves a request, wherever it arrives, and it alone books it.
#include <cstdlib>
#include <set>

#include "gateway/books_rig.hpp"
#include "gateway/peer_shares.hpp"
#include "gateway/peers.hpp"
#include "gateway/ticket_guard.hpp"

namespace warmroute::testing {
namespace peers_tests {

using gateway::Config;

const FakeServer::Script kPlain = [](FakeCall& c) { c.answer(200, kUsageAnswer); };

/// returns: a prompt of more than two blocks of text, so that it has a key.
std::string long_text(int number) { return "number " + std::to_string(number) + " " + std::string(300, 'x'); }

Config peer_config(const std::vector<std::uint16_t>& servers, const std::vector<std::uint16_t>& gates,
                   std::size_t self) {
  ::setenv("WARMROUTE_TEST_SECRET", "0123456789abcdef0123456789abcdef", 1);
  Config config = config_for(servers);
  config.port = gates[self];
  config.peers.self = "g" + std::to_string(self);
  config.peers.secret_env = "WARMROUTE_TEST_SECRET";
  config.peers.share = std::chrono::milliseconds(0);
  for (std::size_t i = 0; i < gates.size(); ++i)
    config.peers.members.push_back({"g" + std::to_string(i), "127.0.0.1", gates[i]});
  return config;
}

std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::set<std::uint16_t> ports;
  while (ports.size() < count) ports.insert(free_port());
  return {ports.begin(), ports.end()};
}

struct Gates {
  Gates(const std::vector<std::uint16_t>& servers, std::size_t count,
        const std::function<void(Config&, std::size_t)>& change = {})
      : ports(free_ports(count)) {
    for (std::size_t i = 0; i < count; ++i) {
      Config config = peer_config(servers, ports, i);
      if (change) change(config, i);
      configs.push_back(config);
    }
    for (const auto& config : configs) rigs.push_back(std::make_unique<Rig>(config));
    for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(all_up(i)) << page(i);
  }
  [[nodiscard]] Answer chat(std::size_t at, const std::string& text, bool stream = false,
                            std::string_view heads = {}) const {
    return call(ports[at], "POST", "/v1/chat/completions", chat_body(text, stream), heads);
  }
  [[nodiscard]] std::string page(std::size_t at) const { return call(ports[at], "GET", "/metrics").body; }
  [[nodiscard]] double peer_metric(std::size_t at, const std::string& name) const {
    return metric_of(ports[at], "gateway_peer_" + name);
  }
  [[nodiscard]] bool up(std::size_t at, const std::string& peer) const {
    return peer_metric(at, "up{peer=\"" + peer + "\"}") == 1;
  }
  /// Members that start one after another find those that are not there yet down, and take them up again.
  [[nodiscard]] bool all_up(std::size_t at) const {
    return eventually([&] {
      for (const auto& peer : configs[at].peers.members) {
        if (peer.name != configs[at].peers.self && !up(at, peer.name)) return false;
      }
      return true;
    });
  }
  /// returns: a prompt that is that gateway's.
  [[nodiscard]] std::string text_of(std::size_t owner) const {
    for (int i = 0; i < 200; ++i) {
      if (chat(0, long_text(i)).head("x-warmroute-gateway") == "g" + std::to_string(owner)) return long_text(i);
    }
    ADD_FAILURE() << "no prompt is g" << owner << "'s";
    return {};
  }

  std::vector<std::uint16_t> ports;
  std::vector<Config> configs;
  std::vector<std::unique_ptr<Rig>> rigs;
};

TEST(GatewayPeers, ServeARequestAtItsOwnGatewayWhereverItArrives) {
  std::atomic<int> marks{0};
  FakeServer server([&](FakeCall& c) {
    marks += static_cast<int>(c.request.count("x-warmroute-forwarded"));
    c.answer(200, kUsageAnswer, "x-engine: e\r\n");
  });
  Gates gates({server.port()}, 3);
  std::set<std::string> owners;
  int sent = 0;
  for (int i = 0; i < 12; ++i) {
    std::set<std::string> of_this;
    for (std::size_t at = 0; at < 3; ++at, ++sent) {
      const Answer answer = gates.chat(at, long_text(i));
      EXPECT_EQ(answer.status, 200u);
      EXPECT_EQ(answer.body, kUsageAnswer);
      EXPECT_EQ(answer.head("x-engine"), "e");
      EXPECT_EQ(answer.head("x-warmroute-replica"), "r0");
      of_this.insert(answer.head("x-warmroute-gateway"));
    }
    EXPECT_EQ(of_this.size(), 1u) << "prompt " << i;
    owners.insert(of_this.begin(), of_this.end());
  }
  EXPECT_EQ(owners.size(), 3u);
  EXPECT_EQ(server.calls.load(), sent);
  EXPECT_EQ(marks.load(), 0) << "no model server sees a mark";
  double forwarded = 0, received = 0;
  for (std::size_t at = 0; at < 3; ++at) {
    forwarded += gates.peer_metric(at, "forwarded_total");
    received += gates.peer_metric(at, "received_total");
    EXPECT_EQ(gates.peer_metric(at, "loops_refused_total") + gates.peer_metric(at, "marks_refused_total"), 0);
    EXPECT_BOOKS_EMPTY(*gates.rigs[at]);
  }
  EXPECT_EQ(forwarded, sent / 3 * 2);
  EXPECT_EQ(received, forwarded);
}

TEST(GatewayPeers, ServeWhatHasNoKeyWhereItArrives) {
  FakeServer server(kPlain);
  Gates gates({server.port()}, 2);
  for (std::size_t at = 0; at < 2; ++at) {
    EXPECT_EQ(gates.chat(at, "hi").head("x-warmroute-gateway"), "g" + std::to_string(at));
    EXPECT_EQ(call(gates.ports[at], "GET", "/v1/models").head("x-warmroute-gateway"), "g" + std::to_string(at));
    EXPECT_EQ(call(gates.ports[at], "POST", "/v1/chat/completions", "{").status, 400u);
  }
  const std::string session = "X-Session-Id: s\r\n";
  EXPECT_EQ(gates.chat(0, "hi", false, session).head("x-warmroute-gateway"),
            gates.chat(1, "and then", false, session).head("x-warmroute-gateway"));
}

TEST(GatewayPeers, KeepAShortConversationThatGrowsAtOneForSomeTurns) {
  FakeServer server(kPlain);
  Gates gates({server.port()}, 3);
  std::string text = "begins ", at;
  int moves = -1;
  for (std::size_t turn = 0; turn < 40; ++turn) {
    text.append(100, static_cast<char>('a' + turn % 26));
    const std::string now_at = gates.chat(turn % 3, text).head("x-warmroute-gateway");
    moves += std::exchange(at, now_at) == now_at ? 0 : 1;
  }
  EXPECT_LE(moves, 6) << "at 1, 2, 4, ... 64 blocks of text";
}

TEST(GatewayPeers, RelayStreamsPieceByPiece) {
  std::atomic<int> at{0};
  FakeServer server([&](FakeCall& c) {
    if (c.request.body().find("\"stream\":true") == std::string::npos) return c.answer(200, kUsageAnswer);
    c.begin_stream();
    c.piece(chat_event("first"));
    EXPECT_TRUE(eventually([&] { return at.load() == 1; }));
    c.piece(chat_event("second") + "data: [DONE]\n\n");
    c.end_stream();
  });
  Gates gates({server.port()}, 2);
  const std::string text = gates.text_of(1);
  TestClient client(gates.ports[0]);
  client.send("POST", "/v1/chat/completions", chat_body(text, true));
  const std::string begin = client.read_until("first");
  EXPECT_NE(begin.find("x-warmroute-gateway: g1"), std::string::npos) << begin;
  EXPECT_EQ(gates.rigs[1]->statistics().replicas.at(0).load.decoding, 1);
  at = 1;
  EXPECT_NE(client.read_until("0\r\n\r\n").find(chat_event("second") + "data: [DONE]\n\n"), std::string::npos);
  EXPECT_BOOKS_EMPTY(*gates.rigs[0]);
  EXPECT_BOOKS_EMPTY(*gates.rigs[1]);
}

TEST(GatewayPeers, PassAHangUpOn) {
  std::atomic<bool> closed{false};
  FakeServer server([&](FakeCall& c) {
    if (c.request.body().find("\"stream\":true") == std::string::npos) return c.answer(200, kUsageAnswer);
    c.begin_stream();
    c.piece(chat_event("first"));
    closed = c.closed_by_peer();
  });
  Gates gates({server.port()}, 2);
  const std::string text = gates.text_of(1);
  TestClient client(gates.ports[0]);
  client.send("POST", "/v1/chat/completions", chat_body(text, true));
  client.read_until("first");
  client.close();
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  for (const auto& rig : gates.rigs) {
    EXPECT_TRUE(eventually([&] { return rig->it->counters().client_aborts.load() == 1; }));
    EXPECT_BOOKS_EMPTY(*rig);
  }
  EXPECT_TRUE(gates.up(0, "g1")) << "that says nothing about the other gateway";
}

TEST(GatewayPeers, ServeAnothersRequestsWhileItIsDownAndGiveThemBack) {
  FakeServer server(kPlain);
  Gates gates({server.port()}, 3, [](Config& c, std::size_t) { c.retry_start = c.retry_percent = 0; });
  const std::string text = gates.text_of(2);
  gates.rigs[2].reset();
  std::set<std::string> served_by;
  for (int i = 0; i < 6; ++i) {
    const Answer answer = gates.chat(static_cast<std::size_t>(i % 2), text);
    EXPECT_EQ(answer.status, 200u) << answer.body;
    if (i >= 2) served_by.insert(answer.head("x-warmroute-gateway"));
  }
  EXPECT_EQ(served_by.size(), 1u) << "those that are left agree on who takes its place";
  EXPECT_FALSE(gates.up(0, "g2"));
  EXPECT_GE(gates.peer_metric(0, "rehomed_total"), 1);
  EXPECT_EQ(gates.rigs[0]->retries(), 0u) << "nobody had done anything: not a retry";
  gates.rigs[2] = std::make_unique<Rig>(gates.configs[2]);
  EXPECT_TRUE(gates.all_up(0));
  EXPECT_TRUE(gates.all_up(1));
  for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(gates.chat(at, text).head("x-warmroute-gateway"), "g2");
}

TEST(GatewayPeers, ServeHereWhateverBearsAMarkAndBelieveOnlyMembers) {
  FakeServer server(kPlain);
  Gates gates({server.port()}, 2);
  const std::string text = gates.text_of(1);
  const double before = gates.peer_metric(0, "forwarded_total");
  for (const std::string mark : {"1", "from=g1 to=g0 at=1 mac=00", "", "from=g1 to=g0"}) {
    const Answer answer = gates.chat(0, text, false, "X-Warmroute-Forwarded: " + mark + "\r\n");
    EXPECT_EQ(answer.head("x-warmroute-gateway"), "g0") << mark;
  }
  EXPECT_EQ(gates.peer_metric(0, "marks_refused_total"), 4);
  EXPECT_EQ(gates.peer_metric(0, "forwarded_total"), before);
  EXPECT_EQ(gates.peer_metric(0, "received_total"), 0);
}

TEST(GatewayPeers, ReadTheirMarksAndNobodyElses) {
  examples::asio::io_context io;
  Config one = peer_config({1}, {11, 12}, 0), two = peer_config({1}, {11, 12}, 1);
  const auto a = gateway::Peers::open(one, 1, io), b = gateway::Peers::open(two, 1, io);
  ASSERT_TRUE(a && b);
  gateway::Upstream to_b, to_a;
  to_b.name = "g1";
  to_a.name = "g0";
  const auto read = [&](const std::string& text, int times = 1) {
    gateway::ClientRequest request{examples::http::verb::post, "/", 11};
    for (int i = 0; i < times; ++i) request.insert("x-warmroute-forwarded", text);
    return (*b)->read_mark(request);
  };
  const std::string good = (*a)->write_mark(to_b, 7);
  EXPECT_TRUE(read(good).believed);
  EXPECT_EQ(read(good).class_id, 7u);
  EXPECT_FALSE(read((*a)->write_mark(to_b, {})).class_id);
  EXPECT_FALSE(read((*a)->write_mark(to_a, 7)).believed) << "it is for somebody else";
  EXPECT_FALSE(read(good, 2).believed) << "which one?";
  EXPECT_TRUE(read(good, 2).there);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bent = good;
    bent[i] = bent[i] == '1' ? '2' : '1';
    EXPECT_FALSE(read(bent).believed) << bent;
    EXPECT_FALSE(read(bent).class_id);
  }
  ::setenv("WARMROUTE_TEST_SECRET", "another secret of the members", 1);
  const auto stranger = gateway::Peers::open(one, 1, io);
  ::setenv("WARMROUTE_TEST_SECRET", "short", 1);
  EXPECT_FALSE(gateway::Peers::open(one, 1, io));
  EXPECT_FALSE(read((*stranger)->write_mark(to_b, 7)).believed);
  EXPECT_TRUE(read((*stranger)->write_mark(to_b, 7)).there) << "so it is not forwarded either";
}

TEST(GatewayPeers, NeverLoopThoughTheyDisagree) {
  FakeServer server(kPlain);
  // Each has another ring: the first one knows nothing of the third, the third nothing of the first.
  Gates gates({server.port()}, 3, [](Config& config, std::size_t self) {
    auto& members = config.peers.members;
    if (self != 1) members.erase(members.begin() + (self == 0 ? 2 : 0));
  });
  for (int i = 0; i < 40; ++i) {
    for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(gates.chat(at, long_text(i)).status, 200u);
  }
  EXPECT_EQ(server.calls.load(), 120) << "each is served once";
  double forwarded = 0, received = 0, loops = 0;
  for (std::size_t at = 0; at < 3; ++at) {
    forwarded += gates.peer_metric(at, "forwarded_total");
    received += gates.peer_metric(at, "received_total");
    loops += gates.peer_metric(at, "loops_refused_total");
  }
  EXPECT_EQ(forwarded, received);
  EXPECT_GT(loops, 0);
}

TEST(GatewayPeers, SpendARetryOnlyWhereTheOtherHadTheRequest) {
  FakeServer server(kPlain);
  FakeServer other([](FakeCall& c) { c.reset(); });  // a gateway that dies with the request
  other.set_health("{\"gateway\":\"g1\"}");
  const auto start = [&](std::int64_t retries) {
    Config config = peer_config({server.port()}, {free_port(), other.port()}, 0);
    config.retry_start = retries;
    config.retry_percent = 0;
    config.failures_to_down = 100;
    return std::make_unique<Rig>(config);
  };
  const auto ask = [&](const Rig& rig) {  // until one was the other's
    const int before = other.calls;
    Answer answer;
    for (int i = 0; other.calls == before && i < 100; ++i) answer = rig.chat(long_text(i));
    return answer;
  };
  auto rig = start(1);
  EXPECT_EQ(ask(*rig).status, 200u);
  EXPECT_EQ(rig->retries(), 1u);
  EXPECT_EQ(metric_of(rig->port(), "gateway_peer_fallbacks_total{cause=\"broken\"}"), 1);
  const Answer refused = ask(*rig);
  EXPECT_EQ(refused.status, 502u) << "the budget is empty";
  EXPECT_NE(refused.body.find("gateway g1"), std::string::npos) << refused.body;
  EXPECT_EQ(rig->it->counters().retries_refused.load(), 1u);
  EXPECT_BOOKS_EMPTY(*rig);
}

TEST(GatewayPeers, CutAnAnswerThatBreaksOffAndPassOnWhatTheOwnerSays) {
  FakeServer server(kPlain);
  std::atomic<bool> seen{false};
  std::string text;
  FakeServer other([&](FakeCall& c) {
    if (c.number == 1) return c.answer(429, "{\"too\":\"much\"}", "Retry-After: 7\r\n");
    c.begin_stream();
    c.piece(chat_event("half"));
    EXPECT_TRUE(eventually([&] { return seen.load(); }));
    c.reset();
  });
  other.set_health("{\"gateway\":\"g1\"}");
  Config config = peer_config({server.port()}, {free_port(), other.port()}, 0);
  Rig rig(config);
  Answer answer;
  for (int i = 0; other.calls == 0 && i < 100; ++i) answer = rig.chat(text = long_text(i));
  EXPECT_EQ(answer.status, 429u) << "its own word: it has tried what there is";
  EXPECT_EQ(answer.body, "{\"too\":\"much\"}");
  EXPECT_EQ(answer.head("retry-after"), "7");
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body(text, true));
  client.read_until("half");
  seen = true;
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "") << "the connection ends without the end of the body";
  EXPECT_TRUE(eventually([&] { return rig.it->counters().answers_cut.load() == 1; }));
}

TEST(GatewayPeers, AreDownWhenTheySaySoOrAreSomebodyElse) {
  FakeServer server(kPlain), other(kPlain);
  other.set_health("{\"replicas_up\":1,\"gateway\":\"g1\"}");
  Config config = peer_config({server.port()}, {free_port(), other.port()}, 0);
  config.failures_to_down = 100;
  Rig rig(config);
  const auto comes = [&](bool up, std::string_view reason) {
    return eventually([&] {
      const std::string page = call(rig.port(), "GET", "/gateways").body;
      return page.find(up ? "\"self\":false,\"up\":true" : "\"self\":false,\"up\":false") != std::string::npos &&
             page.find(reason) != std::string::npos;
    });
  };
  EXPECT_TRUE(comes(true, "\"reason\":\"\""));
  for (const auto& [health, reason] : {std::pair("", "answers 503"), std::pair("{\"gateway\":\"g7\"}", "somebody else"),
                                       std::pair("{\"replicas_up\":0,\"gateway\":\"g1\"}", "no replica")}) {
    other.set_health(health);
    EXPECT_TRUE(comes(false, reason)) << reason;
    other.set_health("{\"replicas_up\":1,\"gateway\":\"g1\"}");
    EXPECT_TRUE(comes(true, "\"reason\":\"\""));
  }
}

TEST(GatewayPeers, TellABalancerByACookieWhoseAClientIs) {
  FakeServer server([](FakeCall& c) { c.answer(200, kUsageAnswer, "Set-Cookie: engine=1\r\n"); });
  Gates gates({server.port()}, 2, [](Config& c, std::size_t) { c.peers.cookie = "pin"; });
  const auto cookie_of = [](const Answer& answer) {
    for (const auto& field : answer.heads) {
      const std::string value(field.value());
      if (field.name() == examples::http::field::set_cookie && value.starts_with("pin=")) return value;
    }
    return std::string();
  };
  for (std::size_t owner = 0; owner < 2; ++owner) {
    const std::string text = gates.text_of(owner);
    const std::string cookie = cookie_of(gates.chat(0, text));
    EXPECT_EQ(cookie, cookie_of(gates.chat(1, text))) << "wherever it came in";
    EXPECT_NE(cookie.find("; Path=/; HttpOnly; SameSite=Lax"), std::string::npos) << cookie;
    const std::string pair = cookie.substr(0, cookie.find(';'));
    const std::string page = call(gates.ports[0], "GET", "/gateways").body;
    EXPECT_NE(page.find("\"cookie\":\"" + pair.substr(4) + "\""), std::string::npos) << page;
    EXPECT_EQ(pair.find("g" + std::to_string(owner)), std::string::npos) << "opaque";
    EXPECT_EQ(cookie_of(gates.chat(1 - owner, text, false, "Cookie: a=b; " + pair + "\r\n")), "") << "it has it";
  }
}

TEST(GatewayPeers, FinishWhatIsForwardedWhenEitherOneEnds) {
  std::atomic<int> at{0};
  FakeServer server([&](FakeCall& c) {
    if (c.request.body().find("\"stream\":true") == std::string::npos) return c.answer(200, kUsageAnswer);
    c.begin_stream();
    c.piece(chat_event("first"));
    EXPECT_TRUE(eventually([&] { return at.load() == 1; }));
    c.piece("data: [DONE]\n\n");
    c.end_stream();
  });
  Gates gates({server.port()}, 2);
  const std::string text = gates.text_of(1);
  TestClient client(gates.ports[0]);
  client.send("POST", "/v1/chat/completions", chat_body(text, true));
  client.read_until("first");
  std::vector<std::thread> ends;
  std::vector<gateway::Farewell> farewells(2);
  for (std::size_t i = 0; i < 2; ++i) ends.emplace_back([&, i] { farewells[i] = gates.rigs[i]->it->stop(); });
  EXPECT_TRUE(eventually([&] { return !TestClient(gates.ports[1]).connected(); })) << "it takes no more";
  at = 1;
  EXPECT_NE(client.read_until("0\r\n\r\n").find("[DONE]"), std::string::npos);
  for (auto& end : ends) end.join();
  for (const auto& farewell : farewells) {
    EXPECT_EQ(farewell.open_at_stop, 1);
    EXPECT_EQ(farewell.cut, 0);
  }
}

TEST(GatewayPeers, BookARequestOnceAndLimitItOnce) {
  FakeServer server(kPlain);
  Books books[3];
  Gates gates({server.port()}, 3, [&](Config& config, std::size_t self) {
    books[self].add_key("a", "team");
    LimitSpec limit;
    limit.name = "rpm";
    limit.amount = 4;
    books[self].limit("key", {}, limit);
    books[self].publish();
    const Config with = books[self].config({});
    config.usage = with.usage;
    for (auto& replica : config.replicas) replica.spec.pool = "m";
  });
  const std::string key = Books::bearer("a"), text = long_text(1);
  int good = 0, limited = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const Answer answer = gates.chat(i % 3, text, false, key);
    (answer.status == 200 ? good : limited) += 1;
    EXPECT_FALSE(answer.head("x-warmroute-gateway").empty() && answer.status == 200);
    if (answer.status != 200) {
      EXPECT_EQ(answer.status, 429u) << answer.body;
    }
  }
  EXPECT_EQ(good, 4) << "one gateway's limit is the conversation's";
  EXPECT_EQ(limited, 2);
  EXPECT_EQ(gates.chat(0, text).status, 401u);
  EXPECT_EQ(gates.chat(1, text, false, "Authorization: Bearer sk-a-forged\r\n").status, 401u);
  EXPECT_EQ(gates.chat(2, text, false, "X-Warmroute-Forwarded: 1\r\n").status, 401u) << "a mark opens no door";
  double begins = 0, accepted = 0, refused = 0, gateways_with_books = 0;
  for (std::size_t at = 0; at < 3; ++at) {
    const double here = metric_of(gates.ports[at], "gateway_journal_begins_total");
    begins += here;
    gateways_with_books += here > 0 ? 1 : 0;
    const std::string all = gates.page(at);
    const auto verdicts = [&](const char* name) {
      return std::max(0.0, number_on(all, std::string("warmroute_gateway_keys_total{verdict=\"") + name + "\"}"));
    };
    accepted += verdicts("accepted");
    refused += verdicts("malformed") + verdicts("wrong_secret");
    EXPECT_BOOKS_CLOSED(*gates.rigs[at]);
  }
  EXPECT_EQ(begins, 4);
  EXPECT_EQ(gateways_with_books, 1);
  EXPECT_EQ(accepted, 6) << "each key is checked once";
  EXPECT_EQ(refused, 3);
}

/// returns: what a request that nobody has seen would have to wait at replica r0, as that gateway sees it.
std::int64_t wait_at(const Rig& rig) {
  Request request;
  request.prompt_bytes = 1'000;
  return rig.it->router().peek(request, gateway::now()).expected_wait.value;
}

TEST(GatewayPeersTell, WhatTheyHaveInFlightAndTheOthersCountIt) {
  std::atomic<bool> go{false};
  FakeServer server([&](FakeCall& c) {
    EXPECT_TRUE(eventually([&] { return go.load(); }));
    c.answer(200, kUsageAnswer);
  });
  Gates gates({server.port()}, 3, [](Config& c, std::size_t) {
    c.peers.share = std::chrono::milliseconds(10);
    c.policy.algorithm = Algorithm::cost;
    c.replicas[0].spec.rates.token_ps = 100'000'000'000;  // a prompt that keeps it busy for seconds
  });
  const auto told = [&](std::size_t at, const std::string& from) {
    return gates.peer_metric(at, "loads_requests{peer=\"" + from + "\"}");
  };
  for (std::size_t at : {0u, 2u}) {
    EXPECT_TRUE(eventually([&] { return told(at, "g1") == 0; })) << "it says so, too, that it has nothing";
    EXPECT_EQ(wait_at(*gates.rigs[at]), 0);
  }
  std::thread client([&] {  // a mark, and it is served where it arrives
    EXPECT_EQ(gates.chat(1, long_text(1), false, "X-Warmroute-Forwarded: 1\r\n").status, 200u);
  });
  for (std::size_t at : {0u, 2u}) {
    EXPECT_TRUE(eventually([&] { return told(at, "g1") == 1 && wait_at(*gates.rigs[at]) > 0; })) << gates.page(at);
    EXPECT_EQ(gates.rigs[at]->statistics().replicas[0].load.requests, 0) << "its own book is its own";
  }
  EXPECT_EQ(told(0, "g2"), 0);
  go = true;
  client.join();
  for (std::size_t at : {0u, 2u})
    EXPECT_TRUE(eventually([&] { return told(at, "g1") == 0 && wait_at(*gates.rigs[at]) == 0; }));
  EXPECT_GT(gates.peer_metric(1, "loads_sent_total"), 0);
  EXPECT_GT(gates.peer_metric(0, "loads_taken_total{peer=\"g1\"}"), 0);
  EXPECT_GE(gates.peer_metric(0, "loads_age_seconds{peer=\"g1\"}"), 0);
}

/// A member that the test speaks for: g1 of two.
struct Voice {
  explicit Voice(Config mine) : config(std::move(mine)), it(*gateway::Peers::open(config, 1, io)) {}
  [[nodiscard]] std::string mark(const std::string& to, const std::string& message) const {
    gateway::Upstream there;
    there.name = to;
    return "X-Warmroute-Forwarded: " + it->write_mark(there, {}, message) + "\r\n";
  }
  [[nodiscard]] Answer tell(const Rig& rig, const std::string& body) const {
    return call(rig.port(), "POST", "/peers/loads", body, mark("g0", "/peers/loads " + body));
  }

  const Config config;  // Peers looks into it
  examples::asio::io_context io;
  std::unique_ptr<gateway::Peers> it;
};

TEST(GatewayPeersTell, AndAreHeardOnlyIfTheyAreMembersAndMakeSense) {
  FakeServer server(kPlain);
  Config config = peer_config({server.port()}, {0, free_port()}, 0);
  config.policy.algorithm = Algorithm::cost;
  Rig rig(config);
  const Voice voice(peer_config({server.port()}, {1, 2}, 1)), self(config);
  const std::string good = "0 3 3 5000000000 300 0 r0\n";
  const auto post = [&](const std::string& body, const std::string& heads) {
    return call(rig.port(), "POST", "/peers/loads", body, heads).status;
  };
  EXPECT_EQ(post(good, ""), 403u);
  EXPECT_EQ(post(good, "X-Warmroute-Forwarded: 1\r\n"), 403u);
  EXPECT_EQ(post(good, voice.mark("g0", "")), 403u) << "of a forwarded request";
  EXPECT_EQ(post(good, voice.mark("g0", "/peers/loads 0 4 3 5000000000 300 0 r0\n")), 403u) << "of another message";
  EXPECT_EQ(post(good, voice.mark("g0", "/peers/placements " + good)), 403u) << "of another path";
  EXPECT_EQ(post(good, voice.mark("g2", "/peers/loads " + good)), 403u) << "for somebody else";
  EXPECT_EQ(post(good, self.mark("g0", "/peers/loads " + good)), 403u) << "from oneself";
  for (const std::string nonsense : {"hello", "1 2 3\n", "0 1 1 1 1 1 r0", "0 -1 1 1 1 1 r0\n", "\n"})
    EXPECT_EQ(voice.tell(rig, nonsense).status, 400u) << nonsense;
  const std::string placement = "0 1 xyz r0\n";
  EXPECT_EQ(call(rig.port(), "POST", "/peers/placements", placement, voice.mark("g0", "/peers/placements " + placement))
                .status,
            400u);
  EXPECT_EQ(voice.tell(rig, std::string(300 * 1024, 'x')).status, 413u);
  EXPECT_EQ(call(rig.port(), "GET", "/peers/loads").status, 405u);
  const auto refused = [&](const std::string& cause) {
    return metric_of(rig.port(), "gateway_peer_loads_refused_total{cause=\"" + cause + "\"}");
  };
  EXPECT_EQ(refused("stranger"), 7);
  EXPECT_EQ(refused("malformed"), 6);
  EXPECT_EQ(refused("too_large"), 1);
  EXPECT_EQ(wait_at(rig), 0) << "nothing of it is believed";
  EXPECT_EQ(rig.chat(long_text(1), false).status, 200u);
  EXPECT_EQ(
      call(rig.port(), "POST", "/v1/chat/completions", chat_body("hi", false), voice.mark("g0", "/peers/loads " + good))
          .status,
      200u);
  EXPECT_EQ(metric_of(rig.port(), "gateway_peer_marks_refused_total"), 1) << "a message's mark is none for a request";
  EXPECT_EQ(server.calls.load(), 2) << "no model server sees a message of the gateways";
}

TEST(GatewayPeersTell, AndAreForgottenWhenTheyFallSilent) {
  FakeServer server(kPlain);
  Config config = peer_config({server.port()}, {0, free_port()}, 0);
  config.policy.algorithm = Algorithm::cost;
  config.policy.signals_max_age = milliseconds(300);
  Rig rig(config);
  const Voice voice(peer_config({server.port()}, {1, 2}, 1));
  // Anything that the replica has not: passed over, and nothing else with it.
  const std::string loads = "0 3 3 5000000000 300 0 r0\n7 1 0 0 1 0 no such\n0 0 0 0 0 0 r0\n";
  const auto requests = [&] { return metric_of(rig.port(), "gateway_peer_loads_requests{peer=\"g1\"}"); };
  bool counted = false;
  EXPECT_TRUE(eventually([&] {  // on a machine that stalls, one message may be old before it is looked at
    EXPECT_EQ(voice.tell(rig, loads).status, 200u);
    return counted = wait_at(rig) > 0;
  }));
  EXPECT_TRUE(eventually([&] { return wait_at(rig) == 0 && requests() == 0; }));
  EXPECT_GT(metric_of(rig.port(), "gateway_peer_loads_age_seconds{peer=\"g1\"}"), 0.2);
  EXPECT_GE(metric_of(rig.port(), "gateway_peer_loads_taken_total{peer=\"g1\"}"), 1);
}

TEST(GatewayPeersTell, WhichPromptsWentWhereAndTheOthersBelieveThemThere) {
  FakeServer one(kPlain), two(kPlain);
  Gates gates({one.port(), two.port()}, 2, [](Config& c, std::size_t) {
    c.peers.share = std::chrono::milliseconds(10);
    c.peers.share_placements = true;
    c.policy.algorithm = Algorithm::cost;
  });
  const auto cached_at = [&](std::size_t at) {
    return call(gates.ports[at], "POST", "/explain?api=chat", chat_body(long_text(1), false),
                "Accept: application/json\r\n")
               .body.find("\"best_cached_tokens\":0,") == std::string::npos;
  };
  EXPECT_FALSE(cached_at(0) || cached_at(1));
  EXPECT_EQ(gates.chat(1, long_text(1), false, "X-Warmroute-Forwarded: 1\r\n").status, 200u);
  EXPECT_TRUE(eventually([&] { return gates.peer_metric(0, "placements_taken_total") == 1 && cached_at(0); }))
      << gates.page(0);
  EXPECT_EQ(gates.peer_metric(1, "placements_sent_total"), 1);
  EXPECT_EQ(gates.peer_metric(1, "placements_dropped_total"), 0);
  EXPECT_EQ(gates.peer_metric(0, "placements_unknown_total"), 0);
  EXPECT_EQ(gates.peer_metric(1, "placements_taken_total"), 0);
}

TEST(GatewayPeersTell, PlacementsAsLinesOfText) {
  const gateway::Placement placement{"with a blank", 7, BlockKind::text, {BlockHash{1}, BlockHash{0xFEDCBA9876543210}}};
  std::string text;
  gateway::append_placement(placement, text);
  EXPECT_EQ(text, "7 1 0000000000000001fedcba9876543210 with a blank\n");
  const auto read = gateway::read_placements(text + text);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->back().replica, placement.replica);
  EXPECT_EQ(read->back().dp_rank, 7u);
  EXPECT_EQ(read->back().kind, BlockKind::text);
  EXPECT_EQ(read->back().blocks, placement.blocks);
  EXPECT_TRUE(gateway::read_placements("")->empty());
  for (const std::string bad : {"x", "7 1 0000000000000001 r", "7 1 0000000000000001\n", "7 2 0000000000000001 r\n",
                                "7 1 000000000000001 r\n", "7 1  r\n", "-7 1 0000000000000001 r\n", "\n"}) {
    const auto refused = gateway::read_placements(text + bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().offset, text.size()) << bad;
  }
}

TEST(GatewayPeersTell, TheOthersThoughOneOfThemHangs) {
  std::atomic<bool> over{false};
  std::atomic<int> hangs{0};
  FakeServer server(kPlain);
  FakeServer slow([&](FakeCall& c) {
    hangs += 1;
    EXPECT_TRUE(eventually([&] { return over.load(); }));
    c.answer(200, "");
  });
  slow.set_health("{\"replicas_up\":1,\"gateway\":\"g1\"}");
  auto ports = free_ports(3);
  ports[1] = slow.port();
  std::vector<std::unique_ptr<Rig>> rigs(3);
  for (std::size_t i : {0u, 2u}) {
    Config config = peer_config({server.port()}, ports, i);
    config.peers.share = std::chrono::milliseconds(10);
    config.connect_timeout = std::chrono::seconds(30);
    rigs[i] = std::make_unique<Rig>(config);
  }
  EXPECT_TRUE(eventually([&] { return hangs.load() == 2; }));
  const auto taken = [&] { return metric_of(ports[2], "gateway_peer_loads_taken_total{peer=\"g0\"}"); };
  const double before = taken();
  EXPECT_TRUE(eventually([&] { return taken() >= before + 10; }));
  EXPECT_EQ(hangs.load(), 2) << "nothing is sent to it meanwhile";
  over = true;
}

TEST(GatewayPeersConfig, IsASectionOrFlags) {
  Config file;
  const auto faults = gateway::read_config_json(
      R"({"gateways": {"self": "a", "members": {"a": "h:1", "b": "[::1]:2"}, "secret_file": "f", "cookie": "c", "share_ms": 40,
                       "share_placements": true}})",
      file);
  EXPECT_TRUE(faults.empty()) << faults.front();
  ASSERT_EQ(file.peers.members.size(), 2u);
  EXPECT_EQ(file.peers.members[1].host, "::1");
  EXPECT_EQ(file.peers.members[1].port, 2);
  EXPECT_EQ(file.peers.share.count(), 40);
  EXPECT_TRUE(file.peers.share_placements);
  EXPECT_EQ(file.peers.self + file.peers.secret_file + file.peers.cookie, "afc");
  const auto flags = gateway::read_config({"--replica", "r=h:1", "--gateway", "a=h:1", "--gateway=b=h:2",
                                           "--gateway-self", "b", "--gateway-secret-file", "f"});
  ASSERT_TRUE(flags) << flags.error().message;
  EXPECT_EQ(flags->peers.self, "b");
  const auto refused = gateway::read_config({"--replica", "r=h:1", "--gateway", "a=h:1", "--gateway", "b c=h:2",
                                             "--gateway", "d", "--gateway-self", "z", "--gateway-cookie", "a b",
                                             "--gateway-secret-env", "NO_SUCH_VAR", "--gateway-share-ms", "-1"});
  ASSERT_FALSE(refused);
  for (const char* part : {"letters, digits", "'d' is not NAME", "self must be one", "no variable 'NO_SUCH_VAR'",
                           "a cookie's name", "'-1' is no number"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << part << " in " << refused.error().message;
  EXPECT_EQ(gateway::read_config_json(R"({"gateways": {"members": {"a": 1}, "colour": "red"}})", file).size(), 2u);
  EXPECT_EQ(gateway::read_config_json(R"({"gateways": ["a"]})", file).size(), 1u);
}

}  // namespace peers_tests
}  // namespace warmroute::testing
