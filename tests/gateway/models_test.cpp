// Names that lead to pools: aliases, fall-backs, somebody else's API with its quotas, and classes that may not leave.
#include <mutex>

#include "gateway/books_rig.hpp"
#include "gateway/classes.hpp"
#include "gateway/heads.hpp"
#include "gateway/model_name.hpp"
#include "gateway/ticket_guard.hpp"

namespace warmroute::testing {
namespace models_tests {

using gateway::Config;

/// A model server that remembers what it was asked.
struct Listener {
  explicit Listener(FakeServer::Script answer = [](FakeCall& c) { c.answer(200, kUsageAnswer); })
      : server([this, answer = std::move(answer)](FakeCall& c) {
          {
            const std::lock_guard lock(mutex);
            last = c.request;
          }
          answer(c);
        }) {}
  [[nodiscard]] examples::http::request<examples::http::string_body> asked() {
    const std::lock_guard lock(mutex);
    return last;
  }
  [[nodiscard]] std::string head(std::string_view name) { return std::string(asked()[gateway::their(name)]); }

  std::mutex mutex;
  examples::http::request<examples::http::string_body> last;
  FakeServer server;
};

/// returns: replica r0 in pool "own", r1 in pool "api", which is external, and this map's models, e.g. {"name": "chat", ...}.
Config with_models(const Listener& own, const Listener& api, const std::string& models,
                   const std::string& terms = "\"external\":true", const std::string& classes = "[]") {
  Config config = config_for({own.server.port(), api.server.port()});
  config.replicas[0].spec.pool = "own";
  config.replicas[1].spec.pool = "api";
  config.replicas[1].external = true;
  config.replicas[1].key = "sk-of-the-house";
  auto map = model_map_from_json("{\"models\":[" + models + "],\"pools\":[{\"name\":\"api\"," + terms +
                                 "}],\"classes\":" + classes + "}");
  EXPECT_TRUE(map) << map.error().message;
  config.models = *map;
  return config;
}
const std::string kChat =
    R"({"name":"chat","targets":[{"pool":"own"}],"fallbacks":[{"pool":"api","model":"gpt-\"x\""}]})";
const std::string kOutside = R"({"name":"chat","targets":[{"pool":"api","model":"gpt-x"}]})";

Answer ask(const Rig& rig, std::string_view model = "chat", std::string_view heads = {}) {
  return call(rig.port(), "POST", "/v1/chat/completions", chat_body("hello", false, model), heads);
}

TEST(GatewayModels, LeadANameToItsPoolAndThenToItsFallBack) {
  Listener own, api;
  Rig rig(with_models(own, api, kChat));
  EXPECT_EQ(ask(rig).head("x-warmroute-replica"), "r0");
  EXPECT_EQ(own.asked().body(), chat_body("hello", false, "chat")) << "asked for by the client's own name";
  (void)rig.it->router().set_health(rig.it->router().replicas().at(0).id, Health::down, "test", gateway::now());
  EXPECT_EQ(ask(rig).head("x-warmroute-replica"), "r1");
  EXPECT_EQ(api.asked().body(), chat_body("hello", false, "gpt-\\\"x\\\""));
  EXPECT_EQ(ask(rig, "api").status, 200u) << "a pool's name is a model's";
  EXPECT_EQ(api.asked().body(), chat_body("hello", false, "api"));
  const Answer unknown = ask(rig, "no-such");
  EXPECT_EQ(unknown.status, 404u);
  EXPECT_NE(unknown.body.find("model_not_found"), std::string::npos);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayModels, TriesAFallBackWithinOneRequestAndPaysForIt) {
  Listener own([](FakeCall&c) { c.answer(500, "{}"); }), api;
  Config config = with_models(own, api, kChat);
  config.retry_start = 1;
  config.retry_percent = 0;
  config.failures_to_down = 100;
  Rig rig(config);
  EXPECT_EQ(ask(rig).head("x-warmroute-replica"), "r1");
  EXPECT_EQ(rig.retries(), 1u);
  EXPECT_EQ(ask(rig).status, 500u) << "the budget is empty, and what was booked for it is given back";
  EXPECT_EQ(api.server.calls.load(), 1);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayModels, SendsOutsideNothingOfTheClientsButTheRequest) {
  Listener own, api;
  Config config = with_models(own, api, kOutside);
  config.replicas[1].path = "/openai/v1";
  config.replicas[1].host_name = "api.example.com";
  Rig rig(config);
  const Answer answer = ask(rig, "chat",
                            "Authorization: Bearer theirs\r\nx-api-key: theirs\r\nCookie: a=theirs\r\nX-Forwarded-For: "
                            "1.2.3.4\r\nX-Session-Id: theirs\r\nX-Warmroute-Class: 3\r\nOpenAI-Beta: yes\r\n");
  EXPECT_EQ(answer.status, 200u);
  std::string all;
  for (const auto& field : api.asked())
    all += std::string(field.name_string()) + ": " + std::string(field.value()) + "\n";
  EXPECT_EQ(all.find("theirs"), std::string::npos) << all;
  EXPECT_EQ(all.find("1.2.3.4"), std::string::npos) << all;
  EXPECT_EQ(all.find("armroute"), std::string::npos) << all;
  EXPECT_EQ(api.head("authorization"), "Bearer sk-of-the-house");
  EXPECT_EQ(api.head("host"), "api.example.com");
  EXPECT_EQ(api.head("openai-beta"), "yes");
  EXPECT_EQ(api.asked().target(), "/openai/v1/chat/completions");
  const std::string message = R"({"model":"chat","max_tokens":5,"messages":[{"role":"user","content":"x"}]})";
  EXPECT_EQ(call(rig.port(), "POST", "/v1/messages", message).status, 200u);
  EXPECT_EQ(api.head("x-api-key"), "sk-of-the-house") << "as that API has it";
  EXPECT_EQ(call(rig.port(), "GET", "/v1/models").head("x-warmroute-replica"), "r0") << "nothing unrouted leaves";
}

TEST(GatewayModels, KeepsAClassInsideWhateverIsDown) {
  Listener own, api;
  Config config = with_models(own, api, kChat, "\"external\":true", R"([{"class_id":7,"may_leave":false}])");
  config.classes.usual = 7;
  config.classes.trusted_addresses.push_back(*gateway::read_network("127.0.0.0/8"));
  Rig rig(config);
  EXPECT_EQ(ask(rig).head("x-warmroute-replica"), "r0");
  (void)rig.it->router().set_health(rig.it->router().replicas().at(0).id, Health::down, "test", gateway::now());
  EXPECT_EQ(ask(rig).status, 503u) << "one of its own is down: that passes";
  EXPECT_EQ(api.server.calls.load(), 0);
  EXPECT_EQ(ask(rig, "chat", "X-Warmroute-Class: 1\r\n").head("x-warmroute-replica"), "r1")
      << "a trusted caller's word";
  const Answer wrong = ask(rig, "chat", "X-Warmroute-Class: one\r\n");
  EXPECT_EQ(wrong.status, 400u) << wrong.body;
  const Answer forbidden = ask(rig, "api");
  EXPECT_EQ(forbidden.status, 403u);
  EXPECT_NE(forbidden.body.find("\"code\":\"no_permitted_pool\""), std::string::npos) << forbidden.body;
  EXPECT_NE(forbidden.body.find("may not leave"), std::string::npos);
  EXPECT_EQ(api.server.calls.load(), 1);
}

TEST(GatewayModels, HeedsWhatAnApiAsksFor) {
  std::atomic<int> status{429};
  Listener own, api([&](FakeCall&c) { c.answer(status, "{}", "Retry-After: 900\r\n"); });
  Config config = with_models(own, api, kOutside);
  Rig rig(config);
  const Answer first = ask(rig);
  EXPECT_EQ(first.status, 429u);
  EXPECT_EQ(first.head("retry-after"), "900") << "its own answer, as nobody else can";
  const Answer second = ask(rig);
  EXPECT_EQ(second.status, 429u);
  EXPECT_NE(second.body.find("\"code\":\"saturated\""), std::string::npos) << second.body;
  const int wait = std::atoi(second.head("retry-after").c_str());
  EXPECT_GT(wait, 800);
  EXPECT_LE(wait, 900);
  EXPECT_EQ(api.server.calls.load(), 1) << "it was left alone";
  EXPECT_EQ(metric_of(rig.port(), "gateway_pool_blocked{pool=\"api\"}"), 1);
  EXPECT_NE(call(rig.port(), "GET", "/admin/models").body.find("\"pool\":\"api\""), std::string::npos);
  EXPECT_BOOKS_EMPTY(rig);
}

TEST(GatewayModels, TakesAFallBackOverAQuotaAndSaysWhenThereIsNone) {
  Listener own, api;
  const std::string models = R"({"name":"chat","targets":[{"pool":"api"}],"fallbacks":[{"pool":"own"}]},)"
                             R"({"name":"only","targets":[{"pool":"api"}]})";
  Rig rig(with_models(own, api, models, "\"external\":true,\"requests_per_minute\":1"));
  EXPECT_EQ(ask(rig).head("x-warmroute-replica"), "r1");
  EXPECT_EQ(ask(rig).head("x-warmroute-replica"), "r0") << "a minute's worth is gone";
  const Answer refused = ask(rig, "only");
  EXPECT_EQ(refused.status, 429u);
  EXPECT_GE(std::atoi(refused.head("retry-after").c_str()), 1);
  EXPECT_EQ(metric_of(rig.port(), "gateway_pool_routed_total{pool=\"api\"}"), 1);
  EXPECT_EQ(metric_of(rig.port(), "gateway_pool_over_quota_total{pool=\"api\"}"), 2);
}

TEST(GatewayModels, RewritesTheModelWhereAPathHasIt) {
  Listener own, api;
  Rig rig(with_models(own, api, R"({"name":"chat","targets":[{"pool":"own","model":"a/b c"}]})"));
  EXPECT_EQ(call(rig.port(), "POST", "/v1beta/models/chat:generateContent?alt=sse",
                 R"({"contents":[{"parts":[{"text":"x"}]}]})")
                .status,
            200u);
  EXPECT_EQ(own.asked().target(), "/v1beta/models/a%2Fb%20c:generateContent?alt=sse");
  EXPECT_EQ(
      call(rig.port(), "POST", "/model/ch%61t/converse", R"({"messages":[{"role":"user","content":[{"text":"x"}]}]})")
          .status,
      200u);
  EXPECT_EQ(own.asked().target(), "/model/a%2Fb%20c/converse");
}

TEST(GatewayModels, CountsByTheNameThatTheClientUsed) {
  Listener own, api;
  Books books;
  books.add_key("a", "team");
  LimitSpec limit;
  limit.name = "rpm";
  limit.amount = 1;
  books.limit("model", "chat", limit);
  books.publish();
  Config config = with_models(own, api, kOutside, "\"external\":true", R"([{"class_id":7,"may_leave":false}])");
  config.usage = books.config({}).usage;
  config.classes.keys["a"] = 0;
  config.classes.teams["team"] = 7;
  Rig rig(config);
  EXPECT_EQ(ask(rig, "chat", Books::bearer("a")).status, 200u);
  EXPECT_EQ(api.head("authorization"), "Bearer sk-of-the-house");
  EXPECT_EQ(ask(rig, "chat", Books::bearer("a")).status, 429u);
  EXPECT_EQ(usage_of(rig.port(), "?by=model", "\"model\":\"chat\"", "input_tokens"), 32)
      << call(rig.port(), "GET", "/usage?by=model").body;
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayClasses, AreAHeadersOnlyFromThoseWhoAreTrusted) {
  gateway::ClassConfig config;
  config.usual = 1;
  config.keys["k"] = 2;
  config.teams["t"] = 3;
  config.trusted_keys = {"boss"};
  config.trusted_addresses = {*gateway::read_network("10.0.0.0/9"), *gateway::read_network("2001:db8::/32")};
  const auto of = [&](const char* from, const char* key, const char* team, const char* header,
                      gateway::Mark mark = {}) -> int {
    gateway::ClientRequest request{examples::http::verb::post, "/", 11};
    if (header != nullptr) request.set("x-warmroute-class", header);
    KeyGrant grant;
    grant.key_id = key;
    grant.team_id = team;
    const auto found = gateway::class_of(config, request, mark, examples::asio::ip::make_address(from), grant);
    return found ? static_cast<int>(*found) : -1;
  };
  EXPECT_EQ(of("1.2.3.4", "", "", nullptr), 1);
  EXPECT_EQ(of("1.2.3.4", "", "", "9"), 1) << "who are you?";
  EXPECT_EQ(of("1.2.3.4", "k", "t", "9"), 2);
  EXPECT_EQ(of("1.2.3.4", "x", "t", "9"), 3);
  EXPECT_EQ(of("1.2.3.4", "boss", "t", "9"), 9);
  EXPECT_EQ(of("1.2.3.4", "boss", "t", nullptr), 3);
  EXPECT_EQ(of("1.2.3.4", "boss", "t", "nine"), -1);
  EXPECT_EQ(of("10.127.0.1", "", "", "9"), 9);
  EXPECT_EQ(of("::ffff:10.127.0.1", "", "", "9"), 9);
  EXPECT_EQ(of("10.128.0.1", "", "", "9"), 1);
  EXPECT_EQ(of("2001:db8:1::1", "", "", "9"), 9);
  EXPECT_EQ(of("2001:db9::1", "", "", "9"), 1);
  EXPECT_EQ(of("10.0.0.1", "", "", "nine"), -1);
  const gateway::Mark forged{true, false, {}}, plain{true, true, {}}, with{true, true, 5};
  EXPECT_EQ(of("10.0.0.1", "", "", "9", forged), 1) << "through another gateway: whose word is it?";
  EXPECT_EQ(of("10.0.0.1", "", "", "9", plain), 1);
  EXPECT_EQ(of("10.0.0.1", "k", "", "9", with), 5) << "that one found it";
  EXPECT_FALSE(gateway::read_network("10.0.0.0/33"));
  EXPECT_FALSE(gateway::read_network("house"));
  EXPECT_FALSE(gateway::read_network("10.0.0.0/"));
}

TEST(GatewayModelName, ChangesTheOutermostModelAndNothingElse) {
  EXPECT_EQ(gateway::with_model(R"( { "a": {"model": "x"}, "model" : "old" , "b": ["model"] } )", "n\"w"),
            R"( { "a": {"model": "x"}, "model" : "n\"w" , "b": ["model"] } )");
  EXPECT_EQ(gateway::with_model(R"({"m\u006fdel":"old","s":"\"model\":\"x\""})", "new"),
            R"({"m\u006fdel":"new","s":"\"model\":\"x\""})");
  EXPECT_EQ(gateway::with_model(R"({"model":"a","x":1,"model":"b"})", "c"), R"({"model":"c","x":1,"model":"c"})");
  EXPECT_EQ(gateway::with_model(R"({"x":1})", "c"), R"({"model":"c","x":1})");
  EXPECT_EQ(gateway::with_model("{ }", "c"), R"({"model":"c" })");
  const gateway::Target none;
  EXPECT_EQ(gateway::upstream_target("/v1/embeddings?x=1", none, "m", "/base/v2"), "/base/v2/embeddings?x=1");
  EXPECT_EQ(gateway::upstream_target("/other", none, "m", "/base/v2"), "/base/v2/other");
  EXPECT_EQ(gateway::upstream_target("/v1/embeddings", none, "m", ""), "/v1/embeddings");
}

TEST(GatewayModelName, ReadsHowLongAServerWantsToBeLeftAlone) {
  gateway::ResponseHead head;
  EXPECT_EQ(gateway::retry_after_of(head), seconds(1));
  head.set("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT");
  EXPECT_EQ(gateway::retry_after_of(head), seconds(1));
  head.set("retry-after", "90");
  EXPECT_EQ(gateway::retry_after_of(head), seconds(30));
  EXPECT_EQ(gateway::retry_after_of(head, seconds(3'600)), seconds(90));
  head.set("retry-after-ms", "250");
  EXPECT_EQ(gateway::retry_after_of(head), milliseconds(250));
  head.set("retry-after-ms", "-5");
  EXPECT_EQ(gateway::retry_after_of(head, seconds(100)), seconds(90));
}

TEST(GatewayModelsConfig, NamesEveryFault) {
  ::setenv("WARMROUTE_TEST_KEY", "sk-test", 1);
  Config config;
  const auto faults = gateway::read_config_json(R"({
    "replicas": ["own=h:1", {"name": "api", "address": "http://proxy:8443/openai/v1", "host": "api.example.com",
                             "key_env": "WARMROUTE_TEST_KEY", "model": "api"}],
    "models": {"models": [{"name": "chat", "targets": [{"pool": "api", "model": "x"}]}],
               "pools": [{"name": "api", "external": true}], "classes": [{"class_id": 7, "may_leave": false}]},
    "classes": {"default": 7, "keys": {"a": 1}, "teams": {"t": 2}, "header": "x-class", "trusted_keys": ["boss"],
                "trusted_addresses": ["127.0.0.1", "fd00::/8"]}})",
                                                config);
  EXPECT_TRUE(faults.empty()) << faults.front();
  EXPECT_EQ(config.classes.usual, 7u);
  EXPECT_EQ(config.classes.keys.at("a"), 1u);
  EXPECT_EQ(config.classes.trusted_addresses.size(), 2u);
  EXPECT_EQ(config.replicas[1].path, "/openai/v1");
  EXPECT_EQ(config.replicas[1].host_name, "api.example.com");
  ASSERT_TRUE(config.models);
  EXPECT_EQ(config.models->pools.size(), 1u);
  EXPECT_EQ(gateway::read_config_json(
                R"({"classes": {"default": -1, "keys": {"a": "b"}, "teams": 1, "trusted_addresses": ["x"], "colour": 1},
                    "models": {"models": [{"name": "x"}]}})",
                config)
                .size(),
            6u);
  const auto refused = gateway::read_config({"--replica", "a=h:1,key_env=NO_SUCH_VAR", "--models", "/no/such/file"});
  ASSERT_FALSE(refused);
  for (const char* part : {"no variable 'NO_SUCH_VAR'", "'/no/such/file' cannot be read"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << part << " in " << refused.error().message;
  const std::string first = WARMROUTE_EXAMPLE_CONFIG, stem = first.substr(0, first.rfind(".json"));
  ::setenv("API_KEY", "sk-test", 1);
  const auto example = gateway::read_config({"--config", stem + "_models.json"});
  ASSERT_TRUE(example) << example.error().message;
  EXPECT_TRUE(example->replicas.back().external);
  EXPECT_EQ(example->replicas.back().key, "sk-test");
  const auto peers = gateway::read_config({"--config", stem + "_peers.json", "--gateway-self", "gw-0"});
  ASSERT_TRUE(peers) << peers.error().message;
  EXPECT_EQ(peers->peers.members.size(), 3u);
}

}  // namespace models_tests
}  // namespace warmroute::testing
