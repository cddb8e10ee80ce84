// Control's file while the gateway serves: broken, missing, older, half written, new; and keys that are revoked.
#include "gateway/books_rig.hpp"

namespace warmroute::testing {
namespace control_feed_tests {

const FakeServer::Script kServed = [](FakeCall& c) { c.answer(200, kUsageAnswer); };

Answer ask_as(const Rig& rig, const std::string& id) {
  return call(rig.port(), "POST", "/v1/chat/completions", chat_body("hello"), Books::bearer(id));
}
double generation(const Rig& rig) { return metric_of(rig.port(), "control_generation"); }
/// returns: how long until the generation is in force; -1: not within five seconds.
std::int64_t ms_until(const Rig& rig, double wanted) {
  const auto begin = std::chrono::steady_clock::now();
  if (!eventually([&] { return generation(rig) == wanted; }, std::chrono::seconds(5))) return -1;
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
}

struct Served : Books {
  Served() {
    add_key("alice", "blue");
    publish();
  }
  FakeServer server{kServed};
};

TEST(GatewayControl, AFileThatIsBrokenMissingHalfWrittenOrOlderChangesNothing) {
  Served books;
  Rig rig(books.config({books.server.port()}));
  EXPECT_EQ(generation(rig), 1);
  const std::string first = books.bytes();
  books.publish();
  EXPECT_GE(ms_until(rig, 2), 0);
  const auto refused = [&] { return metric_of(rig.port(), "control_refused_total"); };
  const auto keeps_serving = [&](const char* what, double more_than) {
    EXPECT_TRUE(eventually([&] { return refused() > more_than; })) << what;
    EXPECT_EQ(ask_as(rig, "alice").status, 200u) << what;
    EXPECT_EQ(ask_as(rig, "bob").status, 401u) << what;
    EXPECT_EQ(generation(rig), 2) << what;
  };
  double before = refused();
  books.write("snapshot", "{]");
  keeps_serving("no snapshot at all", before);
  books.add_key("bob", "blue");
  books.snapshot.generation = 3;
  const std::string third = books.bytes();
  before = refused();
  books.write("snapshot", third.substr(0, third.size() - 20));
  keeps_serving("half of one", before);
  before = refused();
  std::string forged = third;
  forged[forged.find("bob")] = 'r';
  books.write("snapshot", forged);
  keeps_serving("changed after it was signed", before);
  before = refused();
  books.write("snapshot", first);
  keeps_serving("an older one", before);
  std::filesystem::remove(books / "snapshot");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask_as(rig, "alice").status, 200u);
  EXPECT_EQ(generation(rig), 2);
  // The rest of it comes: now it counts, and at once.
  books.write("snapshot", third);
  EXPECT_GE(ms_until(rig, 3), 0);
  EXPECT_EQ(ask_as(rig, "bob").status, 200u);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayControl, ANewOneIsInForceWithinASecondAndHarmsNothingThatIsInFlight) {
  std::atomic<bool> over{false};
  FakeServer slow([&](FakeCall& c) {
    if (c.request.body().find("\"stream\":true") == std::string::npos) return c.answer(200, kUsageAnswer);
    c.begin_stream();
    c.piece(chat_event("a"));
    eventually([&] { return over.load(); });
    c.piece("data: [DONE]\n\n");
    c.end_stream();
  });
  Served books;
  Rig rig(books.config({slow.port()}));
  TestClient client(rig.port());
  client.send("POST", "/v1/chat/completions", chat_body("x", true), Books::bearer("alice"));
  client.read_until("\"a\"");

  std::atomic<bool> done{false};
  std::atomic<int> bad{0}, good{0};
  std::thread load([&] {
    while (!done) (ask_as(rig, "alice").status == 200u ? good : bad) += 1;
  });
  std::int64_t worst = 0;
  for (int i = 0; i < 6; ++i) {
    books.add_key("new" + std::to_string(i), "blue");
    books.publish();
    const auto ms = ms_until(rig, static_cast<double>(books.snapshot.generation));
    ASSERT_GE(ms, 0);
    worst = std::max(worst, ms);
    EXPECT_EQ(ask_as(rig, "new" + std::to_string(i)).status, 200u);
  }
  std::printf("a new snapshot is in force after %lld ms at most\n", static_cast<long long>(worst));
  // Alice's key is gone from the next one: refused from then on, and what is in flight goes on to its end.
  books.snapshot.keys[0].revoked = true;
  books.snapshot.keys[0].version = kRevokedForever;
  done = true;
  load.join();
  books.publish();
  EXPECT_GE(ms_until(rig, static_cast<double>(books.snapshot.generation)), 0);
  EXPECT_EQ(ask_as(rig, "alice").status, 401u);
  EXPECT_EQ(ask_as(rig, "new0").status, 200u);
  over = true;
  EXPECT_NE(client.read_until("[DONE]").find("[DONE]"), std::string::npos);
  EXPECT_EQ(bad.load(), 0);
  EXPECT_GT(good.load(), 0);
  EXPECT_BOOKS_CLOSED(rig);
}

TEST(GatewayControl, TheLastGoodOneServesAfterARestartWithoutTheFile) {
  Served books;
  {
    Rig rig(books.config({books.server.port()}));
    EXPECT_EQ(ask_as(rig, "alice").status, 200u);
  }
  std::filesystem::remove(books / "snapshot");
  Rig rig(books.config({books.server.port()}));
  EXPECT_EQ(generation(rig), 1);
  EXPECT_EQ(ask_as(rig, "alice").status, 200u);
}

TEST(GatewayControl, WithoutAnySnapshotEveryKeyIsToldToComeBack) {
  Books books;
  FakeServer server(kServed);
  Rig rig(books.config({server.port()}));
  const Answer answer = ask_as(rig, "alice");
  EXPECT_EQ(answer.status, 503u) << "not 401: the key may well be good";
  books.add_key("alice", "");
  books.publish();
  EXPECT_TRUE(eventually([&] { return ask_as(rig, "alice").status == 200u; }));
}

TEST(GatewayControl, SetsPolicyLimitsAndPrices) {
  Served books;
  books.snapshot.policy = Policy{};
  books.snapshot.policy->algorithm = Algorithm::least_requests;
  books.snapshot.prices.overrides = R"({"m":{"input_cost_per_token":1e-6,"output_cost_per_token":1e-6}})";
  LimitSpec spec;
  spec.name = "rpm";
  spec.amount = 1;
  books.limit("team", std::nullopt, spec);
  Rig rig(books.config({books.server.port()}));
  EXPECT_EQ(rig.it->router().policy().algorithm, Algorithm::round_robin);
  books.publish();
  EXPECT_GE(ms_until(rig, 2), 0);
  EXPECT_EQ(rig.it->router().policy().algorithm, Algorithm::least_requests);
  EXPECT_EQ(ask_as(rig, "alice").status, 200u);
  EXPECT_EQ(ask_as(rig, "alice").status, 429u);
  EXPECT_DOUBLE_EQ(usage_of(rig.port(), "", "\"total\"", "cost_usd"), 34e-6);
}

}  // namespace control_feed_tests
}  // namespace warmroute::testing
