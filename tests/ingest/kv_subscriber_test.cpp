#include "warmroute/ingest/kv_subscriber.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kv_engine.hpp"
#include "kv_publisher.hpp"

namespace warmroute {
namespace {

using std::chrono::steady_clock;
using test::CacheEngine;

std::string place(const std::string& name) {
  return "ipc:///tmp/warmroute-test-" + std::to_string(::getpid()) + "-" + name;
}

class KvSubscriberTest : public testing::Test {
 protected:
  void SetUp() override {
    policy.block_size = CacheEngine::kBlock;
    ASSERT_TRUE(router.set_policy(policy));
    auto started = KvSubscriber::start(router);
    ASSERT_TRUE(started) << started.error().message;
    subscriber = std::make_unique<KvSubscriber>(std::move(*started));
  }
  KvEndpoint endpoint(ReplicaId id, const std::string& name, bool replay = true) {
    KvEndpoint e;
    e.replica = id;
    e.events = place(name);
    if (replay) e.replay = place(name + "-replay");
    e.source.events = kv_event_options(policy);
    e.source.replay_timeout = milliseconds(300);
    return e;
  }
  template <class Condition>
  bool soon(Condition&& condition) {
    for (const auto end = steady_clock::now() + std::chrono::seconds(20); steady_clock::now() < end;) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }
  bool connected(ReplicaId id) {
    return soon([&] {
      const auto s = subscriber->status(id);
      return s && s->connected;
    });
  }
  bool equals(ReplicaId id, const CacheEngine& engine) {
    for (std::size_t c = 0; c < CacheEngine::kTalks; ++c) {
      const auto tokens = test::narrow(CacheEngine::tokens(c, 0, CacheEngine::kDepth + 1));
      Request r;
      r.token_ids = tokens;
      r.pinned = id;
      if (router.peek(r, Nanos{0}).total_cached().value !=
          static_cast<std::int64_t>(engine.depth(c) * CacheEngine::kBlock)) {
        return false;
      }
    }
    return true;
  }

  Policy policy;
  Router router;
  std::unique_ptr<KvSubscriber> subscriber;
};

TEST_F(KvSubscriberTest, WhatAnEngineStoresIsMatchedInBothFormsOfTheReplay) {
  for (const bool topic : {false, true}) {
    const std::string name = topic ? "new" : "old";
    const ReplicaId id = *router.add_replica({.name = name}, Nanos{0});
    test::Publisher publisher(place(name), place(name + "-replay"), topic);
    CacheEngine engine(3);
    for (int i = 0; i < 20; ++i) publisher.publish(engine.step());  // before anybody listens
    ASSERT_TRUE(subscriber->add(endpoint(id, name)));
    ASSERT_TRUE(connected(id));
    EXPECT_TRUE(soon([&] {  // the first message that comes shows the gap before it
      publisher.publish(engine.step());
      return equals(id, engine);
    }));
    EXPECT_EQ(subscriber->status(id)->source.resyncs, 0u);
    EXPECT_TRUE(soon([&] { return subscriber->status(id)->source.replayed >= 20; })) << "a status may be a moment old";
  }
}

TEST_F(KvSubscriberTest, ASecondSubscriptionAndABadAddressAreRefused) {
  const ReplicaId id = *router.add_replica({.name = "a"}, Nanos{0});
  ASSERT_TRUE(subscriber->add(endpoint(id, "nobody")));
  EXPECT_EQ(subscriber->add(endpoint(id, "nobody")).code(), Code::already_exists);
  const ReplicaId other = *router.add_replica({.name = "b"}, Nanos{0});
  KvEndpoint bad = endpoint(other, "x");
  bad.events = "gopher://somewhere";
  const Status refused = subscriber->add(bad);
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.error().message.find("gopher://somewhere"), std::string::npos);
  EXPECT_EQ(subscriber->statuses().size(), 1u);
  EXPECT_EQ(subscriber->remove(other).code(), Code::not_found);
  EXPECT_TRUE(subscriber->remove(id));
  EXPECT_EQ(subscriber->status(id).code(), Code::not_found);
}

TEST_F(KvSubscriberTest, MessagesThatAreNoEventsAreCountedAndDoNoHarm) {
  const ReplicaId id = *router.add_replica({.name = "a"}, Nanos{0});
  test::Publisher publisher(place("junk"), place("junk-replay"), true);
  ASSERT_TRUE(subscriber->add(endpoint(id, "junk")));
  ASSERT_TRUE(connected(id));
  CacheEngine engine(5);
  publisher.publish("this is no MessagePack");
  for (int i = 0; i < 10; ++i) publisher.publish(engine.step());
  EXPECT_TRUE(soon([&] { return equals(id, engine); }));
  EXPECT_TRUE(soon([&] { return subscriber->status(id)->source.bad_messages == 1; }));
}

TEST_F(KvSubscriberTest, ASubscriptionThatIsRemovedAppliesNothingMore) {
  const ReplicaId id = *router.add_replica({.name = "a"}, Nanos{0});
  test::Publisher publisher(place("gone"), place("gone-replay"), true);
  ASSERT_TRUE(subscriber->add(endpoint(id, "gone")));
  ASSERT_TRUE(connected(id));
  CacheEngine engine(6);
  std::size_t before = 0;
  EXPECT_TRUE(soon([&] {
    publisher.publish(engine.step());
    return (before = router.statistics().event_blocks_stored) > 0;
  }));
  ASSERT_TRUE(subscriber->remove(id));
  before = router.statistics().event_blocks_stored;
  for (int i = 0; i < 50; ++i) publisher.publish(engine.step());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(router.statistics().event_blocks_stored, before);
}

// Eight engines, one message in a hundred lost, one engine restarted again and again, requests routed all the while. Seconds: 3, or
// WARMROUTE_SOAK_SECONDS. After the last fault every replica's entry equals its engine's cache.
TEST_F(KvSubscriberTest, SoaksWithLossAndRestartsAndEndsWithTheEnginesTrueCaches) {
  const char* asked = std::getenv("WARMROUTE_SOAK_SECONDS");
  const int seconds = asked != nullptr ? std::max(1, std::atoi(asked)) : 3;
  struct Fleet {
    ReplicaId id;
    std::unique_ptr<test::Publisher> publisher;
    std::unique_ptr<CacheEngine> engine;
  };
  std::vector<Fleet> fleet;
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::string name = "soak-" + std::to_string(i);
    fleet.push_back({*router.add_replica({.name = name}, Nanos{0}),
                     std::make_unique<test::Publisher>(place(name), place(name + "-replay"), i % 2 == 0),
                     std::make_unique<CacheEngine>(i + 1)});
    ASSERT_TRUE(subscriber->add(endpoint(fleet.back().id, name)));
  }
  for (const Fleet& f : fleet) ASSERT_TRUE(connected(f.id));
  std::atomic<bool> over{false};
  std::thread routing([&] {
    std::mt19937 random(1);
    for (std::int64_t now = 1; !over; now += 1'000'000) {
      const auto tokens = test::narrow(CacheEngine::tokens(random() % CacheEngine::kTalks, 0, CacheEngine::kDepth + 1));
      Request r;
      r.token_ids = tokens;
      router.finish(router.route(r, Nanos{now}).ticket, {.cached_tokens = 0}, Nanos{now});
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  std::mt19937 random(2);
  const auto start = steady_clock::now();
  auto next_restart = start + std::chrono::milliseconds(seconds * 1'000 / 6);
  std::size_t restarted = 0;
  while (steady_clock::now() - start < std::chrono::seconds(seconds)) {
    for (Fleet& f : fleet) f.publisher->publish(f.engine->step(), random() % 100 == 0);
    if (steady_clock::now() > next_restart) {
      Fleet& f = fleet[restarted++ % fleet.size()];
      f.engine->restart();
      f.publisher->restart();
      next_restart += std::chrono::milliseconds(std::min(10'000, seconds * 1'000 / 6));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (Fleet& f : fleet) {
    EXPECT_TRUE(soon([&] {  // the next message that comes shows what was lost before it
      f.publisher->publish(f.engine->step());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return equals(f.id, *f.engine);
    })) << f.publisher->next();
  }
  over = true;
  routing.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // statuses are at most half as old
  std::uint64_t gaps = 0, restarts = 0, held = 0;
  for (const KvEndpointStatus& s : subscriber->statuses()) {
    gaps += s.source.gaps;
    restarts += s.source.restarts;
    held += s.source.held_bytes + s.source.orphan_blocks;
  }
  EXPECT_GT(gaps, 8u);
  EXPECT_GT(restarts, 0u);
  EXPECT_EQ(held, 0u);
  RecordProperty("gaps", std::to_string(gaps));
  RecordProperty("restarts", std::to_string(restarts));
}

}  // namespace
}  // namespace warmroute
