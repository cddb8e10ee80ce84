// What operators do: look, ask why, change the policy under load, shut down.
#include "gateway/rig.hpp"

namespace warmroute::testing {
namespace {

const FakeServer::Script kGood = [](FakeCall& c) { c.answer(200, kUsageAnswer); };
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(GatewayAdmin, ShowsMetricsReplicasAndHealth) {
  FakeServer server(kGood);
  Rig rig(config_for({server.port()}));
  EXPECT_EQ(rig.chat().status, 200u);
  const std::string page = call(rig.port(), "GET", "/metrics").body;
  EXPECT_TRUE(contains(page, "warmroute_tickets_in_flight 0\n"));
  EXPECT_TRUE(contains(page, "warmroute_gateway_requests_total{code=\"200\"} 1\n")) << page;
  EXPECT_TRUE(contains(page, "warmroute_gateway_retries_total{cause=\"reset\"} 0\n"));
  EXPECT_TRUE(contains(page, "warmroute_gateway_retry_budget 10\n"));
  EXPECT_TRUE(contains(page, "warmroute_gateway_upstream_connections 1\n"));
  EXPECT_TRUE(contains(page, "warmroute_gateway_client_aborts_total 0\n"));
  const std::string replicas = call(rig.port(), "GET", "/replicas").body;
  EXPECT_TRUE(contains(replicas, "\"name\":\"r0\"")) << replicas;
  EXPECT_TRUE(contains(replicas, "\"health\":\"up\""));
  EXPECT_EQ(call(rig.port(), "GET", "/health").status, 200u);
  EXPECT_EQ(call(rig.port(), "POST", "/metrics", "x").status, 405u);
}

TEST(GatewayAdmin, ExplainsADecisionAsTableAndAsJson) {
  FakeServer server(kGood);
  Rig rig(config_for({server.port()}));
  const Answer table = call(rig.port(), "POST", "/explain?api=chat", chat_body("hello"));
  EXPECT_EQ(table.status, 200u);
  EXPECT_TRUE(contains(table.body, "r0")) << table.body;
  const Answer json =
      call(rig.port(), "POST", "/explain?api=completions", R"({"prompt":"x"})", "Accept: application/json\r\n");
  EXPECT_EQ(json.head("content-type"), "application/json");
  EXPECT_EQ(json.body.substr(0, 1), "{");
  EXPECT_EQ(call(rig.port(), "POST", "/explain?api=telepathy", "{}").status, 400u);
  EXPECT_EQ(call(rig.port(), "POST", "/explain", "{").status, 400u);
  EXPECT_EQ(server.calls.load(), 0);
  EXPECT_EQ(rig.statistics().tickets_in_flight, 0u);
}

TEST(GatewayAdmin, ListensOnAPortOfItsOwnWhenToldTo) {
  FakeServer server(kGood);
  auto config = config_for({server.port()});
  config.admin_port = 0;
  Rig rig(std::move(config));
  EXPECT_EQ(call(rig.port(), "GET", "/metrics").status, 404u);
  EXPECT_EQ(call(rig.port(), "GET", "/admin/policy").status, 404u);
  EXPECT_EQ(call(rig.port(), "GET", "/health").status, 200u);
  EXPECT_EQ(call(rig.it->admin_port(), "GET", "/metrics").status, 200u);
  EXPECT_EQ(call(rig.it->admin_port(), "POST", "/v1/chat/completions", chat_body("x")).status, 404u);
  EXPECT_EQ(server.calls.load(), 0);
}

TEST(GatewayAdmin, ChangesOnlyThePolicyMembersThatAreNamed) {
  FakeServer server(kGood);
  auto config = config_for({server.port()});
  config.policy.algorithm = Algorithm::cost;
  config.policy.block_size = 32;
  Rig rig(std::move(config));
  EXPECT_EQ(call(rig.port(), "POST", "/admin/policy", R"({"algorithm":"round_robin"})").status, 200u);
  EXPECT_EQ(rig.it->router().policy().algorithm, Algorithm::round_robin);
  EXPECT_EQ(rig.it->router().policy().block_size, 32u);
  const Answer refused = call(rig.port(), "POST", "/admin/policy", R"({"algorithm":"dice","beta":-1})");
  EXPECT_EQ(refused.status, 400u);
  EXPECT_EQ(rig.it->router().policy().algorithm, Algorithm::round_robin);
  EXPECT_TRUE(contains(call(rig.port(), "GET", "/admin/policy").body, "round_robin"));
}

TEST(GatewayAdmin, SwapsThePolicyUnderLoadWithoutLosingARequest) {
  FakeServer a(kGood), b(kGood), c(kGood);
  auto config = config_for({a.port(), b.port(), c.port()});
  config.threads = 2;
  Rig rig(std::move(config));
  std::atomic<bool> done{false};
  std::atomic<int> good{0}, bad{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&, t] {
      TestClient client(rig.port());
      for (int i = 0; !done; ++i) {
        client.send("POST", "/v1/chat/completions",
                    chat_body("client " + std::to_string(t) + std::string(100, 'x') + std::to_string(i % 7)));
        (client.receive().status == 200 ? good : bad) += 1;
      }
    });
  }
  const char* const names[]{"round_robin", "cost", "bounded_hash", "least_requests"};
  for (int swap = 0; swap < 40; ++swap) {
    const std::string body = "{\"algorithm\":\"" + std::string(names[swap % 4]) + "\"}";
    EXPECT_EQ(call(rig.port(), "POST", "/admin/policy", body).status, 200u);
    const int before = good;
    EXPECT_TRUE(eventually([&] { return good > before + 4; }));
  }
  done = true;
  for (auto& client : clients) client.join();
  EXPECT_EQ(bad.load(), 0);
  EXPECT_GT(good.load(), 160);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayMetrics, GoFromTheServersPagesIntoTheRouter) {
  std::atomic<int> looks{0};
  FakeServer server([&](FakeCall& c) {
    if (c.request.target() != "/metrics") return c.answer(200, kUsageAnswer);
    ++looks;
    std::string page;
    for (const char* rank : {"0", "1"}) {
      const std::string labels = "{engine=\"" + std::string(rank) + "\",model_name=\"m\"} ";
      page += "vllm:num_requests_running" + labels + (rank[0] == '0' ? "5" : "9") + "\nvllm:num_requests_waiting" +
              labels + "2\n";
    }
    c.answer(200, page);
  });
  FakeServer broken([](FakeCall& c) {
    if (c.request.target() == "/metrics") return c.answer(500, "");
    c.answer(200, kUsageAnswer);
  });
  auto config = config_for({server.port(), server.port(), broken.port()});
  for (std::uint32_t rank : {0u, 1u}) {
    config.replicas[rank].spec.name = "dp";
    config.replicas[rank].spec.dp_rank = rank;
    config.replicas[rank].ranked = true;
  }
  config.poll = std::chrono::milliseconds(10);
  Rig rig(std::move(config));
  const auto foreign = [&](std::size_t i) { return rig.statistics().replicas.at(i).load.foreign_requests; };
  EXPECT_TRUE(eventually([&] { return foreign(0) == 7 && foreign(1) == 11; }));
  EXPECT_EQ(foreign(2), 0);
  const std::string good = "{target=\"127.0.0.1:" + std::to_string(server.port()) + "/metrics\"} ";
  const std::string bad = "{target=\"127.0.0.1:" + std::to_string(broken.port()) + "/metrics\"} ";
  EXPECT_TRUE(eventually([&] {
    const std::string page = call(rig.port(), "GET", "/metrics").body;
    return contains(page, "warmroute_gateway_poll_up" + good + "1\n") &&
           contains(page, "warmroute_gateway_poll_up" + bad + "0\n") &&
           contains(page, "warmroute_gateway_poll_age_seconds" + good) &&
           !contains(page, "warmroute_gateway_poll_age_seconds" + bad);
  })) << call(rig.port(), "GET", "/metrics").body;
  // Down until it was asked, too: the second page may be still to come.
  EXPECT_TRUE(eventually([&] { return contains(call(rig.port(), "GET", "/replicas").body, "HTTP status 500"); }));
  const std::string replicas = call(rig.port(), "GET", "/replicas").body;
  EXPECT_TRUE(contains(replicas, "\"engine\":\"vllm\",\"last_error\":\"\",\"up\":1,")) << replicas;
  EXPECT_TRUE(contains(replicas, "\"last_error\":\"HTTP status 500")) << replicas;
  EXPECT_TRUE(contains(replicas, "\"age_seconds\":null")) << replicas;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.chat().status, 200u) << "a page that does not come takes nobody down";
  rig.it->stop();
  const int after = looks;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(looks, after);
}

TEST(GatewayMetrics, ComeFromASecondPageOfLoads) {
  const std::string kLoads = "/v1/loads?include=core&format=prometheus";
  FakeServer server([&](FakeCall& c) {
    if (c.request.target() == "/metrics") return c.answer(200, "sglang:token_usage{dp_rank=\"0\"} 0.5\n");
    if (c.request.target() != kLoads) return c.answer(200, kUsageAnswer);
    c.answer(200,
             "sglang_num_running_reqs{dp_rank=\"0\"} 3\nsglang_num_waiting_reqs{dp_rank=\"0\"} 2\n"
             "sglang_num_waiting_uncached_tokens{dp_rank=\"0\"} 700\n");
  });
  FakeServer elsewhere([](FakeCall& c) { c.answer(200, "sglang_num_waiting_uncached_tokens 800\n"); });
  FakeServer plain([](FakeCall& c) {
    c.answer(200, c.request.target() == "/metrics" ? "vllm:num_requests_running 1\n" : kUsageAnswer);
  });
  auto config = config_for({server.port(), plain.port()});
  config.poll = std::chrono::milliseconds(10);
  config.replicas[0].loads = kLoads;
  config.replicas[1].loads = "http://127.0.0.1:" + std::to_string(elsewhere.port()) + "/loads";
  Rig rig(std::move(config));
  const auto load = [&](std::size_t i) { return rig.statistics().replicas.at(i).load; };
  EXPECT_TRUE(eventually([&] { return load(0).foreign_tokens == 700 && load(1).foreign_tokens == 800; }));
  EXPECT_TRUE(eventually([&] { return load(0).foreign_requests == 5 && load(1).foreign_requests == 1; }));
  const std::string at = "127.0.0.1:" + std::to_string(server.port());
  EXPECT_TRUE(eventually([&] {
    const std::string page = call(rig.port(), "GET", "/metrics").body;
    return contains(page, "warmroute_gateway_poll_up{target=\"" + at + "/metrics\"} 1\n") &&
           contains(page, "warmroute_gateway_poll_up{target=\"" + at + kLoads + "\"} 1\n") &&
           contains(page, "\nwarmroute_replica_foreign_prompt_tokens{replica=\"r0\",dp_rank=\"0\",pool=\"\"} 700\n");
  })) << call(rig.port(), "GET", "/metrics").body;
  const std::string replicas = call(rig.port(), "GET", "/replicas").body;
  EXPECT_TRUE(contains(replicas, ",\"metrics\":{\"url\":\"" + at + "/metrics\"")) << replicas;
  EXPECT_TRUE(contains(replicas, ",\"loads\":{\"url\":\"" + at + kLoads + "\"")) << replicas;
}

TEST(GatewayMetrics, AreNotLookedAtUnlessToldTo) {
  FakeServer server(kGood);
  Rig rig(config_for({server.port()}));
  EXPECT_EQ(rig.chat().status, 200u);
  EXPECT_FALSE(contains(call(rig.port(), "GET", "/metrics").body, "warmroute_gateway_poll"));
  EXPECT_FALSE(contains(call(rig.port(), "GET", "/replicas").body, "\"metrics\""));
  EXPECT_EQ(server.calls.load(), 1);
}

TEST(GatewayMetrics, WithABadAddressKeepTheGatewayFromStarting) {
  auto config = config_for({1});
  config.poll = std::chrono::milliseconds(10);
  config.replicas[0].metrics = "https://somewhere/metrics";
  const auto refused = gateway::Gateway::start(std::move(config));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("replica 'r0': metrics: 'https://somewhere/metrics'"), std::string::npos)
      << refused.error().message;
  auto loads = config_for({1});
  loads.poll = std::chrono::milliseconds(10);
  loads.replicas[0].loads = "https://somewhere/loads";
  const auto other = gateway::Gateway::start(std::move(loads));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("replica 'r0': loads: 'https://somewhere/loads'"), std::string::npos)
      << other.error().message;
}

TEST(GatewayShutdown, FinishesWhatIsInFlightAndTakesNoMore) {
  std::atomic<bool> go_on{false};
  FakeServer server([&](FakeCall& c) {
    c.begin_stream();
    c.piece(chat_event("one"));
    EXPECT_TRUE(eventually([&] { return go_on.load(); }));
    c.piece(chat_event("two"));
    c.end_stream();
  });
  Rig rig(config_for({server.port()}));
  const auto port = rig.port();
  TestClient idle(port), busy(port);
  busy.send("POST", "/v1/chat/completions", chat_body("x", true));
  busy.read_until("one");
  gateway::Farewell farewell;
  std::thread stopper([&] { farewell = rig.it->stop(); });
  EXPECT_TRUE(eventually([&] { return !TestClient(port).connected(); })) << "still takes connections";
  EXPECT_EQ(idle.receive().status, 0u) << "an idle connection is closed at once";
  go_on = true;
  EXPECT_TRUE(contains(busy.read_until("0\r\n\r\n"), "two"));
  stopper.join();
  EXPECT_EQ(farewell.open_at_stop, 1);
  EXPECT_EQ(farewell.cut, 0);
  EXPECT_TRUE(rig.books_are_empty());
}

TEST(GatewayShutdown, CutsAtTheDeadlineWhatDoesNotFinishAndReleasesIt) {
  std::atomic<bool> closed{false};
  FakeServer mute([&](FakeCall& c) { closed = c.closed_by_peer(); });
  auto config = config_for({mute.port()});
  config.shutdown_timeout = std::chrono::milliseconds(100);
  Rig rig(std::move(config));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x"));
  EXPECT_TRUE(eventually([&] { return mute.calls == 1; }));
  const auto farewell = rig.it->stop();
  EXPECT_EQ(farewell.open_at_stop, 1);
  EXPECT_EQ(farewell.cut, 1);
  EXPECT_TRUE(rig.books_are_empty());
  EXPECT_TRUE(eventually([&] { return closed.load(); }));
  EXPECT_FALSE(client.receive().complete);
}

}  // namespace
}  // namespace warmroute::testing
