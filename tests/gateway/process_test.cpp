// The real programs: engines that are killed and come back while requests run, and a gateway that is told to end.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "gateway/fake_server.hpp"

#include <gtest/gtest.h>

namespace warmroute::testing {
namespace {

/// A child process whose standard output is read line by line.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], 1);
      ::close(ends[0]);
      ::close(ends[1]);
      std::vector<char*> pointers;
      for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
      pointers.push_back(nullptr);
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ::fdopen(ends[0], "r");
  }
  ~Process() {
    kill(SIGKILL);
    wait();
    std::fclose(out_);
  }
  std::string line() {
    char text[1024] = "";
    return std::fgets(text, sizeof text, out_) == nullptr ? std::string() : std::string(text);
  }
  void kill(int signal) {
    if (!status_) ::kill(pid_, signal);
  }
  int wait() {
    if (!status_) {
      int status = 0;
      ::waitpid(pid_, &status, 0);
      status_ = status;
    }
    return *status_;
  }

 private:
  pid_t pid_ = -1;
  FILE* out_ = nullptr;
  std::optional<int> status_;
};

/// returns: the port in "... on 127.0.0.1:PORT, ...".
std::uint16_t port_in(const std::string& line) {
  const auto at = line.find("127.0.0.1:");
  return at == std::string::npos ? std::uint16_t{0} : static_cast<std::uint16_t>(std::atoi(line.c_str() + at + 10));
}

struct Engine {
  Engine(const std::string& name, std::uint16_t at)
      : process({WARMROUTE_ENGINE, "--name", name, "--port", std::to_string(at), "--time-scale", "4", "--model", "m"}),
        port(port_in(process.line())) {}
  Process process;
  std::uint16_t port;
};

double metric(std::uint16_t port, const std::string& name) {
  const std::string page = "\n" + call(port, "GET", "/metrics").body;
  const auto at = page.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::atof(page.c_str() + at + name.size() + 2);
}

/// Every replica's books, as the gateway shows them.
bool books_are_empty(std::uint16_t port) {
  if (metric(port, "warmroute_tickets_in_flight") != 0) return false;
  std::string rest = call(port, "GET", "/replicas").body;
  for (const char* member : {"\"requests\":", "\"pending_tokens\":", "\"decoding\":"}) {
    for (std::size_t at = 0; (at = rest.find(member, at)) != std::string::npos; at += std::strlen(member)) {
      if (rest[at + std::strlen(member)] != '0') return false;
    }
  }
  return true;
}

struct Tally {
  std::atomic<int> whole{0}, cut{0}, failed{0};
};

void send_requests(std::uint16_t port, int client, const std::atomic<bool>& done, Tally& tally) {
  for (int i = 0; !done; ++i) {
    const std::string text =
        "session " + std::to_string(client) + std::string(static_cast<std::size_t>(400 + 40 * i % 2'000), 'x');
    const bool stream = i % 2 == 0;
    std::string body = chat_body(text, stream);
    body.insert(1, "\"max_tokens\":20,");
    const Answer answer = call(port, "POST", "/v1/chat/completions", body);
    const bool whole = answer.complete && (!stream || answer.body.find("[DONE]") != std::string::npos);
    if (answer.status != 200) std::fprintf(stderr, "status %u: %s\n", answer.status, answer.body.c_str());
    (answer.status != 200 ? tally.failed : whole ? tally.whole : tally.cut) += 1;
  }
}

TEST(GatewayProcess, KillingAndRestartingAnEngineShowsNoClientAnErrorThatARetryCouldAvoid) {
  Engine one("one", 0), three("three", 0);
  auto two = std::make_unique<Engine>("two", std::uint16_t{0});
  const auto port_of_two = two->port;
  Process gateway({WARMROUTE_GATEWAY,
                   "--port",
                   "0",
                   "--threads",
                   "2",
                   "--tokenizer",
                   "toy",
                   "--time-scale",
                   "4",
                   "--profile",
                   "70b-8xh100",
                   "--probe-interval-ms",
                   "50",
                   "--retry-start",
                   "100",
                   "--replica",
                   "one=127.0.0.1:" + std::to_string(one.port),
                   "--replica",
                   "two=127.0.0.1:" + std::to_string(port_of_two),
                   "--replica",
                   "three=127.0.0.1:" + std::to_string(three.port)});
  const auto port = port_in(gateway.line());
  ASSERT_NE(port, 0);

  std::atomic<bool> done{false};
  Tally tally;
  std::vector<std::thread> clients;
  for (int i = 0; i < 12; ++i) clients.emplace_back([&, i] { send_requests(port, i, done, tally); });
  const auto more = [&](int n) {
    const int before = tally.whole;
    return eventually([&] { return tally.whole > before + n; }, std::chrono::seconds(30));
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(more(40));
    two.reset();  // SIGKILL: its connections are reset, its port refuses
    EXPECT_TRUE(more(40));
    two = std::make_unique<Engine>("two", port_of_two);
    ASSERT_EQ(two->port, port_of_two);
    EXPECT_TRUE(
        eventually([&] { return call(port, "GET", "/health").body.find("\"replicas_up\":3") != std::string::npos; }));
  }
  EXPECT_TRUE(more(40));
  done = true;
  for (auto& client : clients) client.join();

  EXPECT_EQ(tally.failed.load(), 0);
  EXPECT_LE(tally.cut.load(), 3 * 12) << "only streams that were under way on the killed engine may be cut";
  EXPECT_EQ(metric(port, "warmroute_gateway_retries_refused_total"), 0);
  EXPECT_TRUE(eventually([&] { return books_are_empty(port); })) << call(port, "GET", "/replicas").body;
  std::printf("whole %d, cut %d, failed %d, retries %g + %g\n", tally.whole.load(), tally.cut.load(),
              tally.failed.load(), metric(port, "warmroute_gateway_retries_total{cause=\"connect\"}"),
              metric(port, "warmroute_gateway_retries_total{cause=\"reset\"}"));
  gateway.kill(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
}

TEST(GatewayProcess, AnAbortedClientFreesTheEnginesWork) {
  Engine engine("one", 0);
  Process gateway({WARMROUTE_GATEWAY, "--port", "0", "--replica", "one=127.0.0.1:" + std::to_string(engine.port)});
  const auto port = port_in(gateway.line());
  TestClient client(port);
  std::string body = chat_body("hello", true);
  body.insert(1, "\"max_tokens\":100000,");
  client.send("POST", "/v1/chat/completions", body);
  client.read_until("data:");
  const auto running = [&] {
    const std::string page = call(engine.port, "GET", "/metrics").body;
    const auto at = page.find("\nvllm:num_requests_running{");
    return at == std::string::npos ? -1.0 : std::atof(page.c_str() + page.find('}', at) + 1);
  };
  EXPECT_TRUE(eventually([&] { return running() == 1; }));
  client.close();
  EXPECT_TRUE(eventually([&] { return running() == 0; }));
  EXPECT_TRUE(eventually([&] { return books_are_empty(port); }));
}

TEST(GatewayProcess, EndsOnSigtermWithAWordAboutWhatWasOpen) {
  Engine engine("one", 0);
  Process gateway({WARMROUTE_GATEWAY, "--port", "0", "--replica", "one=127.0.0.1:" + std::to_string(engine.port),
                   "--shutdown-timeout-ms", "10000"});
  const auto port = port_in(gateway.line());
  TestClient client(port);
  std::string body = chat_body("hello", true);
  body.insert(1, "\"max_tokens\":400,");
  client.send("POST", "/v1/chat/completions", body);
  client.read_until("data:");
  gateway.kill(SIGTERM);
  EXPECT_EQ(gateway.line(), "stopping: 1 requests in flight\n");
  EXPECT_NE(client.read_until("[DONE]").find("[DONE]"), std::string::npos) << "what is in flight is finished";
  EXPECT_EQ(gateway.line(), "stopped: 1 requests were open, 0 of them cut at the deadline\n");
  EXPECT_EQ(gateway.wait(), 0);
}

/// What the gateway foresaw and what the engine then reported; -1: not said.
struct Cached {
  std::int64_t foreseen = -1, reported = -1;
  std::string replica, gateway;
  unsigned status = 0;
};
Cached ask(std::uint16_t port, const std::string& text) {
  std::string body = chat_body(text);
  body.insert(1, "\"max_tokens\":2,");
  const Answer answer = call(port, "POST", "/v1/chat/completions", body);
  Cached cached;
  cached.status = answer.status;
  cached.replica = answer.head("x-warmroute-replica");
  cached.gateway = answer.head("x-warmroute-gateway");
  const std::string head = answer.head("x-warmroute-expected-cached-tokens");
  if (!head.empty()) cached.foreseen = std::atoll(head.c_str());
  constexpr std::string_view kMember = "\"cached_tokens\":";
  const auto at = answer.body.find(kMember);
  if (at != std::string::npos) cached.reported = std::atoll(answer.body.c_str() + at + kMember.size());
  return cached;
}

/// Gateways before the same three engines, as an operator starts them.
struct Several {
  explicit Several(std::size_t count) : ports(count) {
    for (const char* name : {"one", "two", "three"})
      engines.push_back(std::make_unique<Engine>(name, std::uint16_t{0}));
    ::setenv("WARMROUTE_TEST_SECRET", "0123456789abcdef0123456789abcdef", 1);
    for (auto& port : ports) port = free_port();
    processes.resize(count);
    for (std::size_t i = 0; i < count; ++i) start(i);
    for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(sees(i, count - 1)) << i;
  }
  void start(std::size_t which) {
    std::vector<std::string> words{WARMROUTE_GATEWAY, "--port", std::to_string(ports[which]), "--tokenizer", "toy",
                                   "--time-scale",    "4",      "--probe-interval-ms",        "50"};
    for (const auto& engine : engines) words.push_back("--replica=127.0.0.1:" + std::to_string(engine->port));
    for (std::size_t i = 0; i < ports.size() && ports.size() > 1; ++i)
      words.push_back("--gateway=g" + std::to_string(i) + "=127.0.0.1:" + std::to_string(ports[i]));
    if (ports.size() > 1) {
      words.push_back("--gateway-self=g" + std::to_string(which));
      words.emplace_back("--gateway-secret-env=WARMROUTE_TEST_SECRET");
    }
    processes[which] = std::make_unique<Process>(words);
    EXPECT_NE(port_in(processes[which]->line()), 0);
  }
  /// returns: whether that gateway finds so many others up.
  [[nodiscard]] bool sees(std::size_t which, std::size_t others) const {
    return eventually([&] {
      double up = 0;
      for (std::size_t i = 0; i < ports.size(); ++i)
        up += std::max(0.0, metric(ports[which], "warmroute_gateway_peer_up{peer=\"g" + std::to_string(i) + "\"}"));
      return up == static_cast<double>(others);
    });
  }

  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::uint16_t> ports;
  std::vector<std::unique_ptr<Process>> processes;
};

/// Conversations of five turns, one turn after another, each to another gateway. returns: the cached tokens that the engines reported.
std::int64_t converse(const Several& gates) {
  std::int64_t cached = 0;
  for (int session = 0; session < 9; ++session) {
    std::string text = "session " + std::to_string(session) + std::string(4'200, 'z'), replica;
    for (std::size_t turn = 0; turn < 5; ++turn) {
      text.append(700, static_cast<char>('a' + turn));
      const auto at = (static_cast<std::size_t>(session) + turn) % gates.ports.size();
      const Cached answer = ask(gates.ports[at], text);
      EXPECT_EQ(answer.status, 200u);
      EXPECT_EQ(answer.foreseen, answer.reported);
      EXPECT_TRUE(replica.empty() || replica == answer.replica) << "session " << session << ", turn " << turn;
      replica = answer.replica;
      cached += answer.reported;
    }
  }
  return cached;
}

TEST(GatewayProcess, ThreeGatewaysKeepConversationsWhereTheyAreAsOneDoes) {
  std::int64_t by_one = 0;
  {
    const Several one(1);
    by_one = converse(one);
  }
  Several gates(3);
  EXPECT_GT(by_one, 0);
  EXPECT_EQ(converse(gates), by_one);
  double forwarded = 0;
  for (const auto port : gates.ports) forwarded += metric(port, "warmroute_gateway_peer_forwarded_total");
  EXPECT_GE(forwarded, 27) << "of five turns three or four arrive elsewhere";

  // Clients of the two others see nothing of the third one's death.
  const std::string text = "to be found" + std::string(800, 'x');
  const std::string owner = ask(gates.ports[0], text).gateway;
  const auto dead = static_cast<std::size_t>(owner.at(1) - '0');
  const std::size_t left = (dead + 1) % 3, other = (dead + 2) % 3;
  std::atomic<bool> done{false};
  Tally tally;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&, i] { send_requests(gates.ports[i % 2 == 0 ? left : other], i, done, tally); });
  const auto more = [&](int n) {
    const int before = tally.whole;
    return eventually([&] { return tally.whole > before + n; }, std::chrono::seconds(30));
  };
  EXPECT_TRUE(more(10));
  gates.processes[dead]->kill(SIGKILL);
  gates.processes[dead]->wait();
  EXPECT_TRUE(gates.sees(left, 1) && gates.sees(other, 1));
  EXPECT_EQ(ask(gates.ports[left], text).gateway, ask(gates.ports[other], text).gateway);
  EXPECT_TRUE(more(10));
  gates.start(dead);
  EXPECT_TRUE(gates.sees(left, 2) && gates.sees(other, 2));
  EXPECT_EQ(ask(gates.ports[left], text).gateway, owner);
  EXPECT_TRUE(more(10));
  done = true;
  for (auto& client : clients) client.join();
  EXPECT_EQ(tally.failed.load(), 0);
  EXPECT_LE(tally.cut.load(), 4) << "only what was under way through it";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(eventually([&] { return books_are_empty(gates.ports[i]); }));
    gates.processes[i]->kill(SIGTERM);
    EXPECT_EQ(gates.processes[i]->wait(), 0);
  }
}

TEST(GatewayProcess, PrefillsOnOneEngineAndDecodesOnAnother) {
  Engine first("first", 0), second("second", 0);
  const std::string config = ::testing::TempDir() + "pairs-" + std::to_string(::getpid()) + ".json";
  std::ofstream(config) << R"({"policy": {"algorithm": "cost", "disaggregate": "always"}})";
  Process gateway({WARMROUTE_GATEWAY, "--port", "0", "--tokenizer", "toy", "--time-scale", "4", "--config", config,
                   "--replica=p=127.0.0.1:" + std::to_string(first.port) + ",role=prefill",
                   "--replica=d=127.0.0.1:" + std::to_string(second.port) + ",role=decode"});
  const auto port = port_in(gateway.line());
  ASSERT_NE(port, 0);
  const std::string text(6'400, 'a');
  Cached answer = ask(port, text);
  EXPECT_EQ(answer.status, 200u);
  EXPECT_EQ(answer.replica, "d");
  EXPECT_EQ(answer.foreseen, 0);
  EXPECT_GE(answer.reported, 1'599) << "nothing was left to prefill there";
  EXPECT_EQ(ask(first.port, text).reported, 1'600) << "the other one computed it";
  EXPECT_EQ(ask(port, text).foreseen, 1'600);
  EXPECT_EQ(metric(port, "warmroute_gateway_pairs_total"), 2);
  EXPECT_EQ(std::remove(config.c_str()), 0);
  EXPECT_TRUE(eventually([&] { return books_are_empty(port); }));
  gateway.kill(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
}

#ifdef WARMROUTE_HAS_EVENTS
/// An engine that publishes its KV events; the line after the first one says where.
struct ReportingEngine {
  ReportingEngine(std::uint16_t at, const std::string& events_at, const std::string& replay_at)
      : process({WARMROUTE_ENGINE, "--port", std::to_string(at), "--time-scale", "4", "--model", "m", "--events",
                 events_at, "--events-replay", replay_at}),
        port(port_in(process.line())) {
    const std::string line = process.line();  // "events on tcp://..., replay on tcp://..."
    const auto comma = line.find(", replay on ");
    if (line.rfind("events on ", 0) != 0 || comma == std::string::npos) return;
    events = line.substr(10, comma - 10);
    replay = line.substr(comma + 12, line.find('\n') - comma - 12);
  }
  Process process;
  std::uint16_t port;
  std::string events, replay;
};

TEST(GatewayProcess, LearnsFromEventsWhatAnEngineHoldsAndThatItWasRestarted) {
  auto engine = std::make_unique<ReportingEngine>(std::uint16_t{0}, "tcp://127.0.0.1:0", "tcp://127.0.0.1:0");
  ASSERT_FALSE(engine->replay.empty());
  Process gateway(
      {WARMROUTE_GATEWAY, "--port", "0", "--tokenizer", "toy", "--replica",
       "one=127.0.0.1:" + std::to_string(engine->port) + ",events=" + engine->events + ",replay=" + engine->replay});
  const auto port = port_in(gateway.line());
  const auto says = [&](std::string_view what) {
    return eventually([&] { return call(port, "GET", "/replicas").body.find(what) != std::string::npos; });
  };
  ASSERT_TRUE(says("\"connected\":true")) << call(port, "GET", "/replicas").body;
  const std::string ours(640, 'a'), theirs(960, 'b');

  (void)ask(port, ours);
  ASSERT_TRUE(says("\"state\":\"live\""));
  // Another client's prompt, which never came through this gateway.
  EXPECT_EQ(ask(engine->port, theirs).reported, 0);
  for (const auto& [text, tokens] : {std::pair(ours, 160), std::pair(theirs, 240)}) {
    EXPECT_TRUE(eventually([&, before = &text, held = tokens] { return ask(port, *before).foreseen == held; }));
    const Cached cached = ask(port, text);
    EXPECT_EQ(cached.foreseen, tokens);
    EXPECT_EQ(cached.reported, tokens);
  }

  const auto old_port = engine->port;
  const std::string events = engine->events, replay = engine->replay;
  engine.reset();  // SIGKILL
  engine = std::make_unique<ReportingEngine>(old_port, events, replay);
  ASSERT_EQ(engine->port, old_port);
  // The gateway has not noticed, and it is the new engine's first word that tells it. A word that is spoken before the gateway is
  // connected again is a gap, and is asked for.
  EXPECT_TRUE(says("\"connects\":2"));
  EXPECT_EQ(ask(old_port, theirs).reported, 0);
  char other = 'c';  // in case that word came before the publisher knew its subscriber
  ASSERT_TRUE(eventually([&] {
    if (call(port, "GET", "/replicas").body.find("\"restarts\":1") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (other < 'f') (void)ask(old_port, std::string(200, other++));
    return false;
  })) << call(port, "GET", "/replicas").body;
  Cached cached = ask(port, ours);
  EXPECT_EQ(cached.foreseen, 0) << "what the old one held is gone";
  EXPECT_EQ(cached.reported, 0);
  cached = ask(port, theirs);
  EXPECT_EQ(cached.foreseen, 240) << "what the new one was asked by others is known";
  EXPECT_EQ(cached.reported, 240);
  EXPECT_EQ(metric(port, "warmroute_gateway_events_connected{replica=\"one\"}"), 1);
  EXPECT_EQ(metric(port, "warmroute_gateway_events_restarts_total{replica=\"one\"}"), 1);
  gateway.kill(SIGTERM);
  EXPECT_EQ(gateway.wait(), 0);
}
#endif

TEST(GatewayProcess, RefusesABadCommandLineWithEveryFault) {
  Process gateway({WARMROUTE_GATEWAY, "--port", "x"});
  EXPECT_EQ(WEXITSTATUS(gateway.wait()), 2);
  Process help({WARMROUTE_GATEWAY, "--help"});
  EXPECT_NE(help.line().find("usage: warmroute-gateway"), std::string::npos);
  EXPECT_EQ(help.wait(), 0);
}

}  // namespace
}  // namespace warmroute::testing
