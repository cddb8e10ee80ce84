// The poller against real sockets on the loopback: servers that are slow, broken, huge, gone, back, or new.
#include "warmroute/ingest/metrics_poller.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ingest/page_server.hpp"

namespace warmroute {
namespace {

using test::PageServer;
using test::soon;
using test::with_length;

std::string vllm_rank(int rank, int running, int waiting, long queries = 0, long hits = 0) {
  const std::string labels = "{engine=\"" + std::to_string(rank) + "\",model_name=\"m\"} ";
  return "vllm:num_requests_running" + labels + std::to_string(running) + "\nvllm:num_requests_waiting" + labels +
         std::to_string(waiting) + "\nvllm:prefix_cache_queries_total" + labels + std::to_string(queries) +
         "\nvllm:prefix_cache_hits_total" + labels + std::to_string(hits) + "\n";
}

const PageServer::Script kGood = [](PageServer::Call& call) { call.write(with_length(vllm_rank(0, 3, 1))); };

MetricsPollerOptions quick() {
  MetricsPollerOptions options;
  options.interval = milliseconds(5);
  options.timeout = seconds(10);
  options.backoff_to = milliseconds(20);
  return options;
}

/// What callbacks and logs said. threads: any.
class Seen {
 public:
  void listen(MetricsPollerOptions& options) {
    options.page = [](void* user, const MetricsPage& page) { static_cast<Seen*>(user)->add(page); };
    options.page_user = this;
    options.log.user = this;
    options.log.write = [](void* user, LogLevel, std::string_view line) {
      auto& self = *static_cast<Seen*>(user);
      const std::lock_guard lock(self.mutex_);
      self.lines_.emplace_back(line);
    };
  }
  [[nodiscard]] int pages(const std::string& target) const {
    const std::lock_guard lock(mutex_);
    const auto it = pages_.find(target);
    return it == pages_.end() ? 0 : it->second.first;
  }
  [[nodiscard]] std::string last(const std::string& target) const {
    const std::lock_guard lock(mutex_);
    const auto it = pages_.find(target);
    return it == pages_.end() ? "" : it->second.second;
  }
  [[nodiscard]] std::string log() const {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (const auto& line : lines_) out += line + "\n";
    return out;
  }

 private:
  void add(const MetricsPage& page) {
    const std::lock_guard lock(mutex_);
    auto& [count, body] = pages_[std::string(page.target)];
    ++count;
    body = page.body;
  }
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<int, std::string>> pages_;
  std::vector<std::string> lines_;
};

MetricsPoller started(Result<MetricsPoller> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

ReplicaId replica(Router& router, const std::string& name, std::uint32_t rank = 0) {
  ReplicaSpec spec;
  spec.name = name;
  spec.dp_rank = rank;
  return *router.add_replica(spec, Nanos{1});
}

ReplicaStatistics statistics_of(const Router& router, ReplicaId id) {
  for (const auto& r : router.statistics().replicas) {
    if (r.id == id) return r;
  }
  return {};
}

TEST(MetricsPoller, GivesEachRanksSignalsToItsReplica) {
  Router router;
  const ReplicaId first = replica(router, "a", 0), second = replica(router, "a", 1);
  PageServer server([](PageServer::Call& call) { call.write(with_length(vllm_rank(0, 3, 1) + vllm_rank(1, 7, 2))); });
  MetricsPoller poller = started(MetricsPoller::start(router, quick()));
  ASSERT_TRUE(poller.add({.url = server.url(), .name = "a", .replicas = {{first, 0, {}}, {second, 1, {}}}}));
  EXPECT_TRUE(soon([&] { return statistics_of(router, second).load.foreign_requests == 9; }));
  EXPECT_EQ(statistics_of(router, first).load.foreign_requests, 4);
  EXPECT_EQ(statistics_of(router, first).load.foreign_waiting, 1);
  EXPECT_TRUE(soon([&] { return poller.status("a")->signals >= 8; }));
  const auto status = *poller.status("a");
  EXPECT_TRUE(status.up);
  EXPECT_EQ(status.engine, "vllm");
  EXPECT_EQ(status.url, server.url());
  EXPECT_EQ(status.failures, 0u);
  EXPECT_EQ(status.unmatched_ranks, 0u);
  EXPECT_EQ(status.last_bytes, (vllm_rank(0, 3, 1) + vllm_rank(1, 7, 2)).size());
  ASSERT_TRUE(status.age.has_value());
  EXPECT_GE(*status.age, Nanos{0});
}

TEST(MetricsPoller, SendsAProperRequestAndKeepsItsConnection) {
  std::mutex mutex;
  std::string request;
  PageServer server([&](PageServer::Call& call) {
    const std::lock_guard lock(mutex);
    request = call.request;
    call.write(with_length("x 1\n"));
  });
  Seen seen;
  MetricsPollerOptions options = quick();
  seen.listen(options);
  MetricsPoller poller = started(MetricsPoller::start(options));
  ASSERT_TRUE(poller.add({.url = server.url() + "/some/metrics?x=1", .name = "a"}));
  EXPECT_TRUE(soon([&] { return seen.pages("a") >= 5; }));
  EXPECT_EQ(seen.last("a"), "x 1\n");
  EXPECT_EQ(poller.status("a")->connects, 1u);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(request.substr(0, request.find("\r\n")), "GET /some/metrics?x=1 HTTP/1.1");
  EXPECT_NE(request.find("\r\nHost: 127.0.0.1:" + std::to_string(server.port()) + "\r\n"), std::string::npos);
  EXPECT_EQ(request.find("Connection: close"), std::string::npos);
}

TEST(MetricsPoller, ReadsAPageOfMetricsAndOneOfLoadsForOneReplica) {
  Router router;
  const ReplicaId id = replica(router, "a");
  std::mutex mutex;
  std::set<std::string> lines;
  PageServer server([&](PageServer::Call& call) {
    const std::string line = call.request.substr(0, call.request.find("\r\n"));
    {
      const std::lock_guard lock(mutex);
      lines.insert(line);
    }
    const bool loads = line.find("/v1/loads") != std::string::npos;
    call.write(with_length(loads ? "# TYPE sglang_num_running_reqs gauge\nsglang_num_running_reqs{dp_rank=\"0\"} 3\n"
                                   "sglang_num_waiting_reqs{dp_rank=\"0\"} 2\n"
                                   "sglang_num_waiting_uncached_tokens{dp_rank=\"0\"} 700\n"
                                 : "sglang:token_usage{dp_rank=\"0\"} 0.5\n"));
  });
  MetricsPoller poller = started(MetricsPoller::start(router, quick()));
  ASSERT_TRUE(poller.add({.url = server.url(), .name = "a", .replicas = {{id}}}));
  ASSERT_TRUE(poller.add(
      {.url = server.url() + "/v1/loads?include=core&format=prometheus", .name = "a loads", .replicas = {{id}}}));
  EXPECT_TRUE(soon([&] { return statistics_of(router, id).load.foreign_tokens == 700; }));
  EXPECT_EQ(statistics_of(router, id).load.foreign_requests, 5);
  EXPECT_TRUE(soon([&] { return poller.status("a")->signals >= 1; }));
  EXPECT_EQ(poller.status("a loads")->engine, "sglang");
  EXPECT_EQ(poller.status("a loads")->failures, 0u);
  EXPECT_EQ(poller.status("a")->failures, 0u);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(lines,
            (std::set<std::string>{"GET /metrics HTTP/1.1", "GET /v1/loads?include=core&format=prometheus HTTP/1.1"}));
}

TEST(MetricsPoller, OpensAConnectionPerScrapeWhenToldTo) {
  PageServer server(kGood);
  MetricsPollerOptions options = quick();
  options.keep_alive = false;
  MetricsPoller poller = started(MetricsPoller::start(options));
  ASSERT_TRUE(poller.add({.url = server.url(), .name = "a"}));
  EXPECT_TRUE(soon([&] { return poller.status("a")->scrapes >= 3; }));
  const auto status = *poller.status("a");
  EXPECT_EQ(status.connects, status.scrapes);
  EXPECT_EQ(status.failures, 0u);
}

TEST(MetricsPoller, ReadsChunksAndWhatTheConnectionsEndCloses) {
  PageServer server([](PageServer::Call& call) {
    if (call.number % 2 == 0) {
      call.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nx 1\n\r\n");
      call.write("4\r\ny 2\n\r\n0\r\n\r\n");
    } else {
      call.write("HTTP/1.1 200 OK\r\n\r\nx 1\n");
      call.write("y 2\n");
      call.goes_on = false;
    }
  });
  Seen seen;
  MetricsPollerOptions options = quick();
  seen.listen(options);
  MetricsPoller poller = started(MetricsPoller::start(options));
  ASSERT_TRUE(poller.add({.url = server.url(), .name = "a"}));
  for (int page = 1; page <= 4; ++page) {
    EXPECT_TRUE(soon([&] { return seen.pages("a") >= page; }));
    EXPECT_EQ(seen.last("a"), "x 1\ny 2\n");
  }
  EXPECT_EQ(poller.status("a")->failures, 0u);
}

TEST(MetricsPoller, DoesNotCountAKeptConnectionThatTheServerClosedAsAFailure) {
  PageServer server([](PageServer::Call& call) {
    call.write(with_length("x 1\n"));
    call.goes_on = call.number % 3 != 0;  // says nothing of it in the answer
  });
  MetricsPoller poller = started(MetricsPoller::start(quick()));
  ASSERT_TRUE(poller.add({.url = server.url(), .name = "a"}));
  EXPECT_TRUE(soon([&] { return poller.status("a")->scrapes >= 12; }));
  const auto status = *poller.status("a");
  EXPECT_EQ(status.failures, 0u) << status.last_error;
  EXPECT_GE(status.connects, 3u);
}

TEST(MetricsPoller, SaysWhyAScrapeFailedWhileOtherTargetsGoOn) {
  struct Fault {
    const char* name;
    PageServer::Script script;
    const char* says;
  };
  const std::string long_page(100'001, '#');
  const auto just = [](std::string bytes, bool goes_on = false) {
    return [bytes = std::move(bytes), goes_on](PageServer::Call& call) {
      call.write(bytes);
      call.goes_on = goes_on;
      if (goes_on) call.wait_for_end();
    };
  };
  const Fault faults[]{
      {"garbage", just("220 mail.example ESMTP\r\n"), "no HTTP/1.1: it begins with '220 mail"},
      {"silent", just("", true), "no answer within 200 ms"},
      {"slow head", just("HTTP/1.1 200 OK\r\nContent-", true), "no whole head of an answer within 200 ms"},
      {"slow page", just("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nvllm:", true),
       "no whole page within 200 ms: 5 bytes"},
      {"nothing", just(""), "ended before an answer"},
      {"half a head", just("HTTP/1.1 200 OK\r\nConte"), "ended within the head"},
      {"half a page", just("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nvllm:"), "after 5 of 100 bytes"},
      {"half chunks", just("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nvllm:\r\n"), "within the chunks"},
      {"long", just("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"), "1000000 bytes, more than 100000"},
      {"endless", just("HTTP/1.1 200 OK\r\n\r\n" + long_page, true), "more than 100000 bytes"},
      {"busy", just("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"), "HTTP status 503"},
      {"html", just(with_length("<html><body>hello</body></html>")), "not_prometheus"},
      {"stranger", just(with_length("node_load1 0.3\n")), "no_known_metrics"},
  };
  Router router;
  Seen seen;
  MetricsPollerOptions options = quick();
  options.timeout = milliseconds(200);
  options.max_bytes = 100'000;
  seen.listen(options);
  MetricsPoller poller = started(MetricsPoller::start(router, options));
  std::vector<std::unique_ptr<PageServer>> servers;
  PageServer good(kGood);
  const ReplicaId fine = replica(router, "good");
  ASSERT_TRUE(poller.add({.url = good.url(), .name = "good", .replicas = {{fine, {}, {}}}}));
  for (const Fault& fault : faults) {
    servers.push_back(std::make_unique<PageServer>(fault.script));
    ASSERT_TRUE(
        poller.add({.url = servers.back()->url(), .name = fault.name, .replicas = {{replica(router, fault.name)}}}));
  }
  for (const Fault& fault : faults) {
    EXPECT_TRUE(soon([&] { return poller.status(fault.name)->failures >= 2; })) << fault.name;
    const auto status = *poller.status(fault.name);
    EXPECT_NE(status.last_error.find(fault.says), std::string::npos) << fault.name << ": " << status.last_error;
    EXPECT_FALSE(status.up) << fault.name;
    EXPECT_EQ(status.failures, status.scrapes) << fault.name;
    EXPECT_EQ(status.failures_in_row, status.failures) << fault.name;
    EXPECT_FALSE(status.age.has_value()) << fault.name;
    EXPECT_NE(seen.log().find("metrics of " + std::string(fault.name) + ": "), std::string::npos);
  }
  const int before = good.calls;
  EXPECT_TRUE(soon([&] { return good.calls > before + 5; })) << "others' silence must not hold it up";
  EXPECT_TRUE(soon([&] { return poller.status("good")->up; })) << poller.status("good")->last_error;
  EXPECT_EQ(statistics_of(router, fine).load.foreign_requests, 4);
}

TEST(MetricsPoller, TriesAServerThatRefusesAgainUntilItIsBack) {
  Router router;
  const ReplicaId id = replica(router, "a");
  auto server = std::make_unique<PageServer>(kGood);
  const std::uint16_t port = server->port();
  const std::string url = server->url();
  Seen seen;
  MetricsPollerOptions options = quick();
  seen.listen(options);
  MetricsPoller poller = started(MetricsPoller::start(router, options));
  ASSERT_TRUE(poller.add({.url = url, .name = "a", .replicas = {{id}}}));
  EXPECT_TRUE(soon([&] { return poller.status("a")->up; }));
  server.reset();
  EXPECT_TRUE(soon([&] { return poller.status("a")->failures_in_row >= 3; }));
  EXPECT_NE(poller.status("a")->last_error.find("cannot connect to 127.0.0.1:"), std::string::npos)
      << poller.status("a")->last_error;
  EXPECT_TRUE(poller.status("a")->age.has_value()) << "it succeeded before";
  EXPECT_EQ(statistics_of(router, id).load.foreign_requests, 4) << "an old signal stays, and grows old";
  EXPECT_TRUE(soon([&] {
    server = std::make_unique<PageServer>(kGood, port);
    return server->good();
  }));
  EXPECT_TRUE(soon([&] { return poller.status("a")->up; }));
  EXPECT_EQ(poller.status("a")->failures_in_row, 0u);
  EXPECT_NE(seen.log().find("metrics of a: answers again, after failures: "), std::string::npos) << seen.log();
}

TEST(MetricsPoller, ForgetsTheCacheOfAnEngineWhoseCountersFell) {
  for (const bool clears : {true, false}) {
    Router router;
    const ReplicaId id = replica(router, "a");
    const std::vector<std::uint32_t> prompt(160, 7);
    Request request;
    request.token_ids = prompt;
    const auto ticket = router.route(request, Nanos{2}).ticket;
    router.first_token(ticket, Nanos{3});
    router.finish(ticket, {}, Nanos{4});
    ASSERT_GT(statistics_of(router, id).believed_blocks, 0u);
    std::atomic<long> queries{1'000};
    PageServer server(
        [&](PageServer::Call& call) { call.write(with_length(vllm_rank(0, 0, 0, queries, queries / 2))); });
    MetricsPoller poller = started(MetricsPoller::start(router, quick()));
    ASSERT_TRUE(poller.add({.url = server.url(), .name = "a", .replicas = {{id}}, .clear_on_restart = clears}));
    EXPECT_TRUE(soon([&] { return poller.status("a")->signals > 0; }));
    EXPECT_GT(statistics_of(router, id).believed_blocks, 0u);
    queries = 10;
    EXPECT_TRUE(soon([&] { return poller.status("a")->restarts == 1; }));
    EXPECT_EQ(statistics_of(router, id).believed_blocks == 0, clears);
  }
}

TEST(MetricsPoller, StopsInTheMiddleOfARequest) {
  std::atomic<int> asked{0};
  PageServer server([&](PageServer::Call& call) {
    ++asked;
    call.wait_for_end();
    call.goes_on = false;
  });
  MetricsPollerOptions options = quick();
  options.timeout = seconds(3'600);  // this test would last so long
  std::optional<MetricsPoller> poller = started(MetricsPoller::start(options));
  ASSERT_TRUE(poller->add({.url = server.url(), .name = "a"}));
  ASSERT_TRUE(poller->add({.url = "10.255.255.1:1", .name = "nobody"}));
  EXPECT_TRUE(soon([&] { return asked > 0; }));
  poller.reset();
  EXPECT_EQ(asked, 1);
}

TEST(MetricsPoller, HandsOutNothingOfATargetThatWasRemoved) {
  PageServer server(kGood);
  Seen seen;
  MetricsPollerOptions options = quick();
  options.interval = milliseconds(1);
  seen.listen(options);
  MetricsPoller poller = started(MetricsPoller::start(options));
  ASSERT_TRUE(poller.add({.url = server.url(), .name = "stays"}));
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(poller.add({.url = server.url(), .name = "goes"}));
    const int before = seen.pages("goes");
    ASSERT_TRUE(soon([&] { return seen.pages("goes") > before; }));
    ASSERT_TRUE(poller.remove("goes"));
    const int after = seen.pages("goes");
    const int others = seen.pages("stays");
    ASSERT_TRUE(soon([&] { return seen.pages("stays") > others; }));
    ASSERT_EQ(seen.pages("goes"), after);
  }
  EXPECT_EQ(poller.statuses().size(), 1u);
}

TEST(MetricsPoller, TakesTargetsFromItsCallback) {
  PageServer server(kGood);
  struct Chain {
    MetricsPoller* poller = nullptr;
    std::string url;
    std::atomic<int> links{0};
    std::mutex mutex;
  } chain;
  MetricsPollerOptions options = quick();
  options.page_user = &chain;
  options.page = [](void* user, const MetricsPage& page) {
    auto& self = *static_cast<Chain*>(user);
    const std::lock_guard lock(self.mutex);
    if (self.poller == nullptr) return;
    const int next = ++self.links;
    EXPECT_TRUE(self.poller->remove(page.target));
    EXPECT_TRUE(self.poller->add({.url = self.url, .name = std::to_string(next)}));
  };
  MetricsPoller poller = started(MetricsPoller::start(options));
  {
    const std::lock_guard lock(chain.mutex);
    chain.poller = &poller;
    chain.url = server.url();
    ASSERT_TRUE(poller.add({.url = server.url(), .name = "0"}));
  }
  EXPECT_TRUE(soon([&] { return chain.links >= 5; }));
  const std::lock_guard lock(chain.mutex);
  EXPECT_EQ(poller.statuses().size(), 1u);
  EXPECT_EQ(poller.statuses()[0].name, std::to_string(chain.links));
  chain.poller = nullptr;
}

TEST(MetricsPoller, TakesAndLosesTargetsFromManyThreadsWhileRequestsAreRouted) {
  Router router;
  std::vector<std::unique_ptr<PageServer>> servers;
  std::vector<ReplicaId> ids;
  for (int i = 0; i < 4; ++i) {
    servers.push_back(std::make_unique<PageServer>(kGood));
    ids.push_back(replica(router, "r" + std::to_string(i)));
  }
  MetricsPollerOptions options = quick();
  options.interval = milliseconds(1);
  MetricsPoller poller = started(MetricsPoller::start(router, options));
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> scraped{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; !over || round < 20; ++round) {
        for (std::size_t i = t; i < servers.size(); i += 2) {
          const std::string name = "r" + std::to_string(i);
          EXPECT_TRUE(poller.add({.url = servers[i]->url(), .name = name, .replicas = {{ids[i]}}}));
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(4));
        for (std::size_t i = t; i < servers.size(); i += 2) {
          const auto status = poller.status("r" + std::to_string(i));
          ASSERT_TRUE(status);
          scraped += status->scrapes - status->failures;
          EXPECT_EQ(status->failures, 0u) << status->last_error;
          EXPECT_TRUE(poller.remove(status->name));
        }
      }
    });
  }
  threads.emplace_back([&] {
    while (!over) (void)poller.statuses();
  });
  for (std::int64_t i = 1; scraped < 100 && i < 2'000'000; ++i) {
    const std::vector<std::uint32_t> prompt(64, static_cast<std::uint32_t>(i % 5));
    Request request;
    request.token_ids = prompt;
    const auto decision = router.route(request, milliseconds(i));
    ASSERT_TRUE(decision.routed());
    router.finish(decision.ticket, {.cached_tokens = 0}, milliseconds(i));
  }
  EXPECT_TRUE(soon([&] { return scraped >= 100; }));
  over = true;
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(poller.statuses().empty());
}

TEST(MetricsPoller, FindsHostsByNameAndSaysWhenThereIsNone) {
  PageServer server(kGood);
  MetricsPoller poller = started(MetricsPoller::start(quick()));
  ASSERT_TRUE(poller.add({.url = "localhost:" + std::to_string(server.port()), .name = "a"}));
  const std::string nobody(300, 'x');  // no resolver has to be asked for that
  ASSERT_TRUE(poller.add({.url = nobody, .name = "b"}));
  EXPECT_TRUE(soon([&] { return poller.status("a")->up; })) << poller.status("a")->last_error;
  EXPECT_TRUE(soon([&] { return poller.status("b")->failures > 0; }));
  EXPECT_EQ(poller.status("b")->last_error.find("the name '" + nobody + "' is not found: "), 0u)
      << poller.status("b")->last_error;
}

TEST(MetricsPoller, RefusesBadTargetsAndOptions) {
  MetricsPoller poller = started(MetricsPoller::start(MetricsPollerOptions{}));
  EXPECT_EQ(poller.add({.url = "https://a"}).code(), Code::invalid_argument);
  EXPECT_TRUE(poller.add({.url = "127.0.0.1:1"}));
  EXPECT_EQ(poller.add({.url = "127.0.0.1:1"}).code(), Code::already_exists);
  EXPECT_TRUE(poller.add({.url = "127.0.0.1:1", .name = "another"}));
  EXPECT_EQ(poller.remove("nobody").code(), Code::not_found);
  EXPECT_EQ(poller.status("nobody").code(), Code::not_found);
  EXPECT_TRUE(poller.remove("127.0.0.1:1"));
  EXPECT_EQ(poller.statuses().size(), 1u);
  MetricsPollerOptions bad;
  bad.interval = Nanos{0};
  bad.timeout = Nanos{-1};
  bad.jitter_percent = 100;
  bad.max_bytes = 0;
  const auto refused = MetricsPoller::start(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  for (const char* word : {"interval", "timeout", "jitter_percent", "max_bytes"}) {
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
  }
  bad = {};
  bad.tables.emplace_back();
  EXPECT_EQ(MetricsPoller::start(bad).code(), Code::invalid_argument);
}

TEST(MetricsPoller, ReadsByTablesOfItsUsers) {
  Router router;
  const ReplicaId id = replica(router, "a");
  EngineMetricsTable table;
  table.engine = "ours";
  table.prefixes = {"ours_"};
  table.rows = {{.field = EngineField::running, .name = "busy"}};
  PageServer server([](PageServer::Call& call) { call.write(with_length("ours_busy 6\n" + vllm_rank(0, 3, 1))); });
  MetricsPollerOptions options = quick();
  options.tables = {table};
  MetricsPoller poller = started(MetricsPoller::start(router, options));
  ASSERT_TRUE(poller.add({.url = server.url(), .name = "a", .engine = "ours", .replicas = {{id}}}));
  EXPECT_TRUE(soon([&] { return statistics_of(router, id).load.foreign_requests == 6; }));
}

}  // namespace
}  // namespace warmroute
