// The simulated engine's KV events over real sockets, applied by a subscriber: what the router then knows is what the engine holds.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "common/toy_tokenizer.hpp"
#include "engine/http_client.hpp"
#include "engine/publisher.hpp"
#include "simdjson.h"
#include "warmroute/ingest/kv_subscriber.hpp"
#include "warmroute/ingest/request_body.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::examples {
namespace {

/// An engine whose cache has room for 64 blocks of 16 tokens, its publisher, and a router that listens.
class Listening {
 public:
  explicit Listening(EventForm form, double drop_rate = 0, double reorder_rate = 0) {
    PublisherOptions options;
    options.events = options.replay = "tcp://127.0.0.1:0";
    options.topic = "kv@toy";
    options.topic_in_replay = form == EventForm::map;
    options.drop_rate = drop_rate;
    options.reorder_rate = reorder_rate;
    auto opened = Publisher::open(options);
    if (!opened) throw std::runtime_error(opened.error().message);
    publisher_ = std::move(*opened);
    EngineOptions engine = test_options();
    engine.service.capacity_tokens = 64 * 16;
    engine_ = std::make_unique<RunningEngine>(engine, [&](Engine& e) {
      e.report_cache(form, 4711, [this](std::string batch) {
        publisher_->publish(std::move(batch));
        ++published;
      });
    });
    policy_.block_size = 16;
    EXPECT_TRUE(router.set_policy(policy_));
    ReplicaSpec spec;
    spec.name = "r";
    replica_ = *router.add_replica(spec, milliseconds(1));
    subscriber_ = std::make_unique<KvSubscriber>(std::move(*KvSubscriber::start(router)));
    KvEndpoint endpoint;
    endpoint.replica = replica_;
    endpoint.events = publisher_->events();
    endpoint.replay = publisher_->replay();
    endpoint.topic = "kv@";
    endpoint.source.events = kv_event_options(policy_);
    endpoint.source.replay_timeout = seconds(5);  // nothing is lost on the way: a slow machine must not look like it
    EXPECT_TRUE(subscriber_->add(endpoint));
    EXPECT_TRUE(soon([&] { return status().connected; }));
    client = std::make_unique<BlockingClient>(engine_->port());
  }

  /// returns: cached_tokens as the router foresees them.
  std::int64_t foreseen(const std::string& body) {
    RequestBodyOptions options = body_options(policy_);
    options.tokenizer = {nullptr, &toy_encode};
    const auto parsed = parser_.parse(BodyApi::completions, body, options);
    return router.peek(parsed->request(), milliseconds(2)).total_cached().value;
  }
  /// returns: cached_tokens as the engine reports them.
  std::int64_t ask(const std::string& body) {
    const Answer answer = client->post("/v1/completions", body);
    simdjson::dom::parser parser;
    std::int64_t value = 0;
    const auto error = parser.parse(answer.body).at_pointer("/usage/prompt_tokens_details/cached_tokens").get(value);
    return error == simdjson::SUCCESS ? value : -1;
  }
  bool up_to_date() {
    const auto now = status();
    return now.source.state != KvSourceState::replaying && now.source.next == published;
  }
  [[nodiscard]] KvEndpointStatus status() const { return *subscriber_->status(replica_); }
  std::int64_t known_blocks() {
    std::uint64_t sum = 0;
    for (const PoolStatistics& pool : router.statistics().pools) sum += pool.memberships;
    return static_cast<std::int64_t>(sum);
  }
  std::int64_t held_blocks() { return engine_->cached_blocks(); }
  /// The engine dies, and another one is in its place.
  void restart(std::uint64_t seed) {
    engine_->between_steps([&](Engine& engine) {
      publisher_->restart();
      engine.restart(seed);
      published = 0;
      return true;
    });
  }

  template <class Condition>
  static bool soon(Condition&& condition) {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         std::chrono::steady_clock::now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }

  std::atomic<std::uint64_t> published{0};
  Router router;
  std::unique_ptr<BlockingClient> client;

 private:
  Policy policy_;
  ReplicaId replica_;
  RequestBodyParser parser_;
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<RunningEngine> engine_;
  std::unique_ptr<KvSubscriber> subscriber_;
};

/// One of a few dozen prompts that share beginnings, now and then with a salt or an adapter.
std::string some_prompt(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<std::size_t>(random() % n); };
  const std::string text = std::string(16 * 4 * (1 + below(6)), static_cast<char>('a' + below(3))) +
                           std::string(16 * 4 * below(8), static_cast<char>('m' + below(4))) +
                           std::string(below(64), 'z');
  const char* const more[]{"", "", "", R"(,"cache_salt":"pepper")", R"(,"lora_path":"poet")"};
  return "{\"prompt\":\"" + text + "\",\"max_tokens\":2" + more[below(5)] + "}";
}

class EngineEvents : public testing::TestWithParam<EventForm> {};
INSTANTIATE_TEST_SUITE_P(Forms, EngineEvents, testing::Values(EventForm::array, EventForm::map),
                         [](const auto& form) { return form.param == EventForm::array ? "array" : "map"; });

TEST_P(EngineEvents, TellWhatTheCacheHoldsWhileItFillsAndEvicts) {
  Listening engine{GetParam()};
  std::mt19937 random{7};
  std::int64_t hits = 0;
  for (int i = 0; i < 150; ++i) {
    const std::string body = some_prompt(random);
    const std::int64_t foreseen = engine.foreseen(body);
    const std::int64_t reported = engine.ask(body);
    // What an engine that has never spoken holds is guessed from placements, and there were none.
    ASSERT_EQ(foreseen, reported) << "request " << i << ": " << body;
    hits += reported > 0 ? 1 : 0;
    ASSERT_TRUE(Listening::soon([&] { return engine.up_to_date(); }));
    ASSERT_EQ(engine.known_blocks(), engine.held_blocks()) << "after request " << i;
  }
  EXPECT_GT(hits, 50);
  EXPECT_LT(hits, 150);
  const RouterStatistics all = engine.router.statistics();
  EXPECT_GT(all.event_blocks_removed, 100u) << "a cache of 64 blocks must have evicted";
  EXPECT_EQ(all.event_orphans, 0u);
  EXPECT_EQ(all.event_gaps, 0u);
  EXPECT_EQ(engine.status().source.bad_events, 0u);
  EXPECT_EQ(engine.status().source.unknown_removes, 0u);
}

TEST_P(EngineEvents, SurviveTheLossOfATenthOfTheBatches) {
  Listening engine{GetParam(), 0.1};
  std::mt19937 random{11};
  for (int i = 0; i < 200; ++i) EXPECT_GE(engine.ask(some_prompt(random)), 0);
  // A loss at the end is seen when the next batch comes.
  EXPECT_TRUE(Listening::soon([&] {
    if (engine.up_to_date()) return true;
    (void)engine.ask(some_prompt(random));
    return false;
  }));
  EXPECT_GT(engine.status().source.gaps, 0u);
  EXPECT_GT(engine.status().source.replayed, 0u);
  EXPECT_EQ(engine.status().source.resyncs, 0u) << "the ring had every batch";
  EXPECT_EQ(engine.known_blocks(), engine.held_blocks());
}

TEST_P(EngineEvents, EndInTheEnginesCacheThoughNeighboursOvertakeOneAnother) {
  Listening engine{GetParam(), 0, 0.1};
  std::mt19937 random{13};
  for (int i = 0; i < 200; ++i) EXPECT_GE(engine.ask(some_prompt(random)), 0);
  // The last one may wait for another to overtake it.
  EXPECT_TRUE(Listening::soon([&] {
    if (engine.up_to_date() && engine.known_blocks() == engine.held_blocks()) return true;
    (void)engine.ask(some_prompt(random));
    return false;
  }));
  const KvSourceStatus seen = engine.status().source;
  EXPECT_GT(seen.gaps, 0u);
  EXPECT_GT(seen.replayed, 0u);
  EXPECT_EQ(seen.resyncs, 0u) << "the ring had every batch";
}

TEST_P(EngineEvents, TellTheCacheOfANewEngineAfterARestart) {
  Listening engine{GetParam()};
  std::mt19937 random{17};
  for (std::uint64_t life = 1; life <= 4; ++life) {
    for (int i = 0; i < 30; ++i) ASSERT_GE(engine.ask(some_prompt(random)), 0);
    ASSERT_TRUE(Listening::soon([&] { return engine.up_to_date(); })) << life;
    ASSERT_EQ(engine.known_blocks(), engine.held_blocks()) << life;
    ASSERT_GT(engine.held_blocks(), 0);
    engine.restart(1'000 + life);
    ASSERT_EQ(engine.held_blocks(), 0);
  }
  EXPECT_TRUE(Listening::soon([&] {
    if (engine.known_blocks() == engine.held_blocks()) return true;  // nothing is said of it before the next batch
    EXPECT_GE(engine.ask(some_prompt(random)), 0);
    return false;
  }));
  EXPECT_GE(engine.status().source.restarts, 3u);
}

TEST_P(EngineEvents, SayThatTheCacheWasCleared) {
  Listening engine{GetParam()};
  const std::string body = R"({"prompt":")" + std::string(400, 'x') + R"(","max_tokens":2})";
  (void)engine.ask(body);
  ASSERT_TRUE(Listening::soon([&] { return engine.up_to_date() && engine.known_blocks() == 6; }));
  ASSERT_EQ(engine.foreseen(body), 96);
  EXPECT_EQ(engine.client->post("/reset_prefix_cache", "").status, 200u);
  ASSERT_TRUE(Listening::soon([&] { return engine.up_to_date(); }));
  EXPECT_EQ(engine.foreseen(body), 0);
  EXPECT_EQ(engine.ask(body), 0);
}

TEST(EngineEventsPublisher, SaysWhatAddressItCannotBind) {
  PublisherOptions options;
  options.events = "tcp://256.0.0.1:1";
  const auto opened = Publisher::open(options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.code(), Code::io);
  EXPECT_NE(opened.error().message.find("256.0.0.1"), std::string::npos);
}

}  // namespace
}  // namespace warmroute::examples
