// Many clients against one budget, and what of a key and of a request's wishes reaches the books and the router.
#include "gateway/books_rig.hpp"

#include <cstdio>
#include <random>

namespace warmroute::testing {
namespace budget_tests {

constexpr int kClients = 64;

/// What a request says and what its answer will say. `in`: of the input, told by the server.
std::string body_of(int max_tokens, int used, bool stream) {
  std::string body = chat_body("use " + std::to_string(used) + " of it", stream);
  return body.insert(1, "\"max_tokens\":" + std::to_string(max_tokens) + ",");
}

std::string usage_json(const std::string& used) {
  return R"("usage":{"prompt_tokens":3,"completion_tokens":)" + used + "}";
}

/// Answers with as many tokens as the request's text says, now and then not at all.
void serve(FakeCall& c) {
  const std::string& body = c.request.body();
  const auto at = body.find("use ") + 4;
  const std::string used = body.substr(at, body.find(' ', at) - at);
  if (c.number % 23 == 0) return c.answer(500, "{}");
  if (c.number % 29 == 0) return c.reset();
  if (body.find("\"stream\":true") == std::string::npos)
    return c.answer(200, R"({"choices":[{"message":{"content":"hi"}}],)" + usage_json(used) + "}");
  c.begin_stream();
  c.piece(chat_event("a") + chat_event("b"));
  c.piece(R"(data: {"id":"x","model":"m","choices":[],)" + usage_json(used) + "}\n\ndata: [DONE]\n\n");
  c.end_stream();
}

struct Load {
  std::atomic<int> served{0}, denied{0}, failed{0}, other{0};
  std::atomic<std::int64_t> used{0};  // by what was served
  std::atomic<std::int64_t> over{0};  // beyond the estimates
  std::int64_t worst_over = 0;        // of one request
};

/// 64 clients at once, each with a key of its own, all of one team. `may_exceed`: how far an answer may go beyond its request.
void run(const Rig& rig, int rounds, int may_exceed, Load& load) {
  std::vector<std::thread> clients;
  load.worst_over = may_exceed;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      for (int n = 0; n < rounds; ++n) {
        const int most = 1 + static_cast<int>(random() % 20);
        const int used = 1 + static_cast<int>(random() % static_cast<unsigned>(most + may_exceed));
        const auto status = call(rig.port(), "POST", "/v1/chat/completions", body_of(most, used, random() % 2 == 0),
                                 Books::bearer("k" + std::to_string(i)))
                                .status;
        if (status == 200) {
          load.served += 1;
          load.used += used;
          load.over += std::max(0, used - most);
        } else {
          (status == 402 ? load.denied : status >= 500 ? load.failed : load.other) += 1;
        }
      }
    });
  }
  for (auto& client : clients) client.join();
}

LimitSpec output_budget(std::int64_t amount) {
  LimitSpec spec;
  spec.name = "month";
  spec.kind = LimitKind::budget;
  spec.unit = LimitUnit::output_tokens;
  spec.amount = amount;
  return spec;
}

/// The whole of it: what is left after everybody has gone is exactly what nobody used.
void share_one_budget(std::int64_t amount, int rounds, int may_exceed) {
  FakeServer server(serve);
  Books books;
  for (int i = 0; i < kClients; ++i) books.add_key("k" + std::to_string(i), "blue");
  books.limit("team", "blue", output_budget(amount));
  books.publish();
  auto config = books.config({server.port()});
  config.threads = 4;
  config.max_attempts = 1;
  Rig rig(std::move(config));
  Load load;
  run(rig, rounds, may_exceed, load);
  EXPECT_BOOKS_CLOSED(rig);
  EXPECT_EQ(load.other.load(), 0);
  EXPECT_EQ(load.served + load.denied + load.failed, kClients * rounds);
  EXPECT_GT(load.denied.load(), 0) << "else the budget was not under pressure";
  EXPECT_GT(load.served.load(), kClients);
  // Reservations never exceed it. What is used beyond them is bounded by what was in flight at once.
  EXPECT_LE(load.used.load(), amount + std::min<std::int64_t>(load.over, kClients * load.worst_over));
  EXPECT_EQ(usage_of(rig.port(), "?by=team", "\"team\":\"blue\"", "output_tokens"),
            static_cast<double>(load.used.load()));
  std::printf("%d clients: %d served, %d denied, %d failed; %lld of %lld used, %lld beyond estimates\n", kClients,
              load.served.load(), load.denied.load(), load.failed.load(), static_cast<long long>(load.used),
              static_cast<long long>(amount), static_cast<long long>(load.over));
  const auto left = static_cast<int>(amount - load.used);
  const auto ask_for = [&](int tokens) {
    return call(rig.port(), "POST", "/v1/chat/completions", body_of(tokens, tokens, false), Books::bearer("k0")).status;
  };
  if (left < 0) {
    EXPECT_EQ(ask_for(1), 402u);
    return;
  }
  const unsigned more = ask_for(left + 1);
  EXPECT_TRUE(more == 402 || more == 400) << more;
  for (unsigned status = 500; left > 0 && status >= 500;) {  // the server fails now and then
    status = ask_for(left);
    EXPECT_TRUE(status == 200 || status >= 500) << "a refund was lost: " << left << " tokens are left, " << status;
  }
  EXPECT_EQ(ask_for(1), 402u);
}

int rounds(int usual) {
  const char* const more = std::getenv("WARMROUTE_TEST_ROUNDS");
  return usual * std::max(1, more == nullptr ? 1 : std::atoi(more));
}

TEST(GatewayBudget, SixtyFourClientsNeverOvershootAndLoseNoRefund) {
  const int n = rounds(12);
  share_one_budget(std::int64_t{kClients} * n * 4, n, 0);
}

TEST(GatewayBudget, SixtyFourClientsOvershootByNoMoreThanTheirAnswersExceededWhatTheyReserved) {
  const int n = rounds(8);
  share_one_budget(std::int64_t{kClients} * n * 4, n, 6);
}

TEST(GatewayBudget, TheTierThatARequestAsksForIsItsPriceWhereTheAnswerNamesNone) {
  FakeServer server([](FakeCall& c) { c.answer(200, kUsageAnswer); });
  Books books;
  for (const char* id : {"plain", "flex", "quoted"}) books.add_key(id, "t");
  books.publish();
  books.write("prices.json", R"({"m":{"input_cost_per_token":1e-6,"output_cost_per_token":2e-6,)"
                             R"("input_cost_per_token_flex":5e-7,"output_cost_per_token_flex":1e-6}})");
  auto config = books.config({server.port()});
  config.usage.prices = books / "prices.json";
  Rig rig(std::move(config));
  const auto ask = [&](const char* id, const std::string& member, const char* text = "hello") {
    return call(rig.port(), "POST", "/v1/chat/completions", chat_body(text).insert(1, member), Books::bearer(id))
        .status;
  };
  EXPECT_EQ(ask("plain", ""), 200u);
  EXPECT_EQ(ask("flex", R"("service_tier":"flex",)"), 200u);
  EXPECT_EQ(ask("quoted", "", R"(say \"service_tier\":\"flex\")"), 200u);
  EXPECT_DOUBLE_EQ(usage_of(rig.port(), "?by=key", "\"key\":\"plain\"", "cost_usd"), 36e-6);
  EXPECT_DOUBLE_EQ(usage_of(rig.port(), "?by=key", "\"key\":\"flex\"", "cost_usd"), 18e-6);
  EXPECT_DOUBLE_EQ(usage_of(rig.port(), "?by=key", "\"key\":\"quoted\"", "cost_usd"), 36e-6);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayBudget, TheTeamOfAKeyIsTheRoutersTenant) {
  FakeServer server([](FakeCall& c) { c.answer(200, kUsageAnswer); });
  Books books;
  books.add_key("alice", "blue");
  books.add_key("bob", "red");
  books.publish();
  auto config = books.config({server.port()});
  config.policy.isolation = Isolation::pool;
  config.replicas[0].spec.pool = "blue/m";
  Rig rig(std::move(config));
  const auto ask = [&](const char* id) {
    return call(rig.port(), "POST", "/v1/chat/completions", chat_body("hello"), Books::bearer(id)).status;
  };
  EXPECT_EQ(ask("alice"), 200u);
  EXPECT_EQ(ask("bob"), 404u) << "that pool is the blue team's";
  EXPECT_EQ(server.calls.load(), 1);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayBudget, PromptsInTheWordsOfEveryApiAreKnownAgain) {
  FakeServer server([](FakeCall& c) { c.answer(200, "{}"); });
  Books books;
  books.add_key("alice", "");
  books.publish();
  Rig rig(books.config({server.port()}));
  const std::string text(4'000, 'x');
  const std::string turn = R"([{"role":"user",%":[{"text":")" + text + R"("}]}])";
  const auto in = [&](const std::string& list, const std::string& parts) {
    std::string body = "{\"" + list + "\":" + turn + "}";
    return body.replace(body.find('%'), 1, "\"" + parts);
  };
  const std::pair<const char*, std::string> requests[]{
      {"/v1/chat/completions", chat_body(text)},
      {"/v1beta/models/m:streamGenerateContent?alt=sse", in("contents", "parts")},
      {"/model/m/converse", in("messages", "content")},
      {"/v1/messages", chat_body(text)},
  };
  for (const auto& [path, body] : requests) {
    const Answer answer = call(rig.port(), "POST", path, body, Books::bearer("alice"));
    ASSERT_EQ(answer.status, 200u) << answer.body;
    const int expected = std::atoi(answer.head("x-warmroute-expected-cached-tokens").c_str());
    if (path == requests[0].first) EXPECT_EQ(expected, 0);
    else EXPECT_GT(expected, 500) << path << ": the prompt is the chat's";
  }
  EXPECT_BOOKS_CLOSED(rig);
}

}  // namespace budget_tests
}  // namespace warmroute::testing
