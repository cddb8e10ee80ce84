// Routers before the same replicas that tell one another what they have in flight, and what they have sent where.
#include "warmroute/route/peer_load.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "route/prompts.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::peer_load_tests {
namespace {

using test::prompt;
using test::request;

TEST(PeerLoads, ReadBackAsTheyWereWritten) {
  const std::vector<PeerLoad> loads{{"gpu-0", 0, 3, 2, 1'500'000'000, 40'000, 7'000'000}, {"gpu 1", 5, 1, 0, 0, 12, 0}};
  std::string text;
  append_peer_loads(loads, text);
  EXPECT_EQ(text, "0 3 2 1500000000 40000 7000000 gpu-0\n5 1 0 0 12 0 gpu 1\n");
  const auto read = read_peer_loads(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, loads);
  EXPECT_TRUE(read_peer_loads("")->empty());
}

TEST(PeerLoads, WhatSaysNothingOrCannotBeIsNotWritten) {
  std::string text;
  append_peer_loads(std::vector<PeerLoad>{{"idle", 0, 0, 0, 0, 0, 0},
                                          {"two\nlines", 0, 1, 0, 0, 0, 0},
                                          {"", 0, 1, 0, 0, 0, 0},
                                          {"more prompts than requests", 0, 1, 2, 0, 0, 0},
                                          {"negative", 0, 1, 0, -1, 0, 0}},
                    text);
  EXPECT_EQ(text, "");
}

TEST(PeerLoads, AFaultIsNamedByItsLine) {
  const std::string good = "0 3 2 15 40 7 a\n";
  for (const char* bad : {"0 3 2 15 40 7 a", "0 3 2 15 40 7\n", "0 3 2 15 40 7 \n", "0 3 -2 15 40 7 a\n", "x\n", "\n",
                          "4294967296 3 2 15 40 7 a\n", "0 99999999999999999999 2 15 40 7 a\n"}) {
    const auto read = read_peer_loads(good + bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(read.error().code, Code::invalid_argument);
    EXPECT_EQ(read.error().offset, good.size()) << bad;
  }
}

class Peers : public testing::Test {
 protected:
  Peers() : router_(make()) {}
  std::unique_ptr<Router> make(std::uint64_t seed = 1) {
    auto out = std::make_unique<Router>();
    Policy policy;
    policy.seed = seed;
    EXPECT_TRUE(out->set_policy(policy));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(out->add_replica({.name = "r" + std::to_string(i)}, now));
    return out;
  }
  ReplicaId id(int i) { return *router_->find_replica("r" + std::to_string(i)); }
  Decision peek_at(const Router& router, int i, const std::vector<std::uint32_t>& tokens) {
    Request r = request(tokens);
    r.pinned = *router.find_replica("r" + std::to_string(i));
    return router.peek(r, now);
  }
  static std::vector<PeerLoad> busy(const std::string& name, std::int64_t pending_ms, std::int64_t prompts = 2) {
    return {{name, 0, prompts, prompts, pending_ms * 1'000'000, prompts * 4'000, 0}};
  }
  void tell(std::uint32_t peer, const std::vector<PeerLoad>& loads) {
    ASSERT_TRUE(router_->peer_loads(peer, loads, now));
  }

  Nanos now = seconds(1);
  std::unique_ptr<Router> router_;
  std::vector<std::uint32_t> tokens_ = prompt(1);
};

TEST_F(Peers, TheirPromptsAreWaitedForLikeOnesOwn) {
  tell(3, busy("r0", 900));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(900));
  EXPECT_EQ(peek_at(*router_, 1, tokens_).expected_wait, Nanos{0});
  EXPECT_EQ(router_->peek(request(tokens_), now).replica, id(1));
  tell(4, busy("r1", 3'000));
  EXPECT_EQ(router_->peek(request(tokens_), now).replica, id(0));
}

TEST_F(Peers, TheFirstOfAllPromptsThereIsWorkedOnAsTimePasses) {
  tell(3, busy("r0", 900));
  now = now + milliseconds(100);
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(800));
  now = now + milliseconds(1'000);
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(450))
      << "no more than the mean prompt is counted as done";
}

TEST_F(Peers, AMessageIsAllThatItsSenderHas) {
  tell(3, busy("r0", 900));
  tell(3, busy("r0", 200));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(200));
  tell(5, busy("r0", 50));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(250)) << "another peer's come on top";
  tell(3, {});
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(50));
  tell(5, {});
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, Nanos{0});
}

TEST_F(Peers, WhoFallsSilentHasNothingInFlight) {
  tell(3, busy("r0", 9'000));
  now = now + milliseconds(1'000);
  tell(4, busy("r1", 100));
  now = now + milliseconds(1'001);
  tell(4, busy("r1", 100));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, Nanos{0});
  EXPECT_EQ(peek_at(*router_, 1, tokens_).expected_wait, milliseconds(100));
  RouterStatistics s = router_->statistics();
  EXPECT_EQ(s.peers, 1u);
  EXPECT_EQ(s.replicas[0].peer_requests, 0);
  EXPECT_EQ(s.replicas[1].peer_requests, 2);
  EXPECT_EQ(s.replicas[1].peer_pending_ns, 100'000'000);
  now = now + milliseconds(2'001);
  router_->advance(now);
  s = router_->statistics();
  EXPECT_EQ(s.peers, 0u);
  EXPECT_EQ(s.replicas[1].peer_requests, 0);
  EXPECT_EQ(peek_at(*router_, 1, tokens_).expected_wait, Nanos{0}) << "without another message, too";
}

TEST_F(Peers, EnginesCountsThenTellOfTheRestAlone) {
  const auto book = [&] {  // one request of this router's own, so that it knows how long a prompt is
    const auto own = prompt(900'000);
    Request r = request(own);
    r.pinned = id(1);
    return router_->route(r, now);
  };
  ASSERT_TRUE(router_->signal(id(1), Signal::running, 0, now));
  const Decision own = book();
  ASSERT_TRUE(router_->signal(id(0), Signal::waiting, 2, now));
  const Nanos guessed = peek_at(*router_, 0, tokens_).expected_wait;
  EXPECT_GT(guessed, Nanos{0});
  tell(3, busy("r0", 900));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(900)) << "the two that wait are the peer's";
  ASSERT_TRUE(router_->signal(id(0), Signal::waiting, 3, now));
  EXPECT_GT(peek_at(*router_, 0, tokens_).expected_wait, milliseconds(900)) << "one more is nobody's who tells";
  router_->finish(own.ticket, {}, now);
}

TEST_F(Peers, OfPromptTokensThatAnEngineTellsTheirsAreNotCountedTwice) {
  ASSERT_TRUE(router_->signal(id(0), Signal::waiting_tokens, 50'000, now));
  const Nanos told = peek_at(*router_, 0, tokens_).expected_wait;
  EXPECT_GT(told, milliseconds(1'000));
  tell(3, busy("r0", 400));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, told) << "a part of them is the peer's";
  tell(3, busy("r0", 60'000));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, seconds(60)) << "its prompts came since";
}

TEST_F(Peers, ARouterSeesWhatAnotherOneSeesOfItself) {
  const auto other = make(2);
  for (std::uint32_t i = 0; i < 6; ++i) {
    const auto tokens = prompt(i * 10'000, 1'000 + 700 * i);
    const Decision d = other->route(request(tokens), now);
    if (i % 3 == 0) other->first_token(d.ticket, now);
    now = now + milliseconds(7);
  }
  std::vector<PeerLoad> loads;
  other->loads(loads, now);
  ASSERT_EQ(loads.size(), 2u);
  std::string text;
  append_peer_loads(loads, text);
  const auto known = router_->peer_loads(0, *read_peer_loads(text), now);
  EXPECT_EQ(*known, 2u);
  now = now + milliseconds(3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(peek_at(*router_, i, tokens_).expected_wait, peek_at(*other, i, tokens_).expected_wait) << i;
    EXPECT_GT(peek_at(*router_, i, tokens_).expected_wait, Nanos{0}) << i;
  }
  const Explanation here = router_->explain(request(tokens_), now), there = other->explain(request(tokens_), now);
  for (std::size_t i = 0; i < 2; ++i) {
    const CostTerms &a = here.candidates[i].cost, &b = there.candidates[i].cost;
    EXPECT_EQ(a.total - a.tail, b.total - b.tail) << i << ", but for the tail, which is by the prompts of each router";
    EXPECT_EQ(here.candidates[i].cost.stall, there.candidates[i].cost.stall) << i;
  }
}

TEST_F(Peers, WhatIsUnknownOrCannotBeIsPassedOver) {
  std::vector<PeerLoad> loads = busy("r0", 100);
  loads.push_back(busy("elsewhere", 100)[0]);
  loads.push_back({"r1", 0, 1, 2, 5, 5, 5});
  loads.push_back({"r1", 7, 1, 1, 5, 5, 5});
  EXPECT_EQ(*router_->peer_loads(0, loads, now), 1u);
  EXPECT_EQ(router_->peer_loads(kMaxPeers, loads, now).code(), Code::invalid_argument);
  const std::int64_t absurd = std::int64_t{1} << 62;
  for (std::uint32_t peer = 0; peer < 64; ++peer)
    tell(peer, {{"r0", 0, absurd, absurd, absurd, absurd, absurd}, {"r1", 0, absurd, absurd, absurd, absurd, 0}});
  EXPECT_TRUE(router_->peek(request(tokens_), now).routed());
  EXPECT_GT(peek_at(*router_, 0, tokens_).expected_wait, Nanos{0});
}

TEST_F(Peers, AReplicaThatLeavesTakesWhatWasSaidOfItAlong) {
  tell(3, busy("r0", 900));
  ASSERT_TRUE(router_->remove_replica(id(0), now));
  const auto back = router_->add_replica({.name = "r0"}, now);
  ASSERT_TRUE(back);
  EXPECT_EQ(peek_at(*router_, 0, tokens_).expected_wait, Nanos{0});
}

TEST_F(Peers, WhatTheySentSomewhereIsBelievedThere) {
  Request r = request(tokens_);
  r.session = "chat-1";
  ASSERT_TRUE(router_->peer_placed(id(1), r, now));
  const Decision d = router_->peek(r, now);
  EXPECT_EQ(d.replica, id(1));
  EXPECT_EQ(d.total_cached().value, 3'984) << "all whole blocks but what holds the last token";
  EXPECT_EQ(router_->statistics().tickets_in_flight, 0u) << "nothing is booked";
  EXPECT_EQ(peek_at(*router_, 1, tokens_).expected_wait, Nanos{0});
  ASSERT_TRUE(router_->remove_replica(id(0), now));
  EXPECT_EQ(router_->peer_placed(ReplicaId{0, 1}, r, now).code(), Code::stale);
}

TEST_F(Peers, WhatTheySentToAReplicaThatReportsIsForeseenForAWhile) {
  ASSERT_TRUE(router_->blocks_stored(id(0), {}, now));
  ASSERT_TRUE(router_->peer_placed(id(0), request(tokens_), now));
  EXPECT_EQ(peek_at(*router_, 0, tokens_).total_cached().value, 3'984);
  now = now + milliseconds(2'100);
  router_->advance(now);
  EXPECT_EQ(peek_at(*router_, 0, tokens_).total_cached().value, 0) << "its events would have said so";
}

TEST_F(Peers, ReplicasThatKeepSlotsAreModelledByTheirOwnRouterAlone) {
  ReplicaSpec spec{.name = "slots"};
  spec.cache_kind = CacheKind::slots;
  const auto slots = router_->add_replica(spec, now);
  ASSERT_TRUE(slots);
  EXPECT_EQ(router_->peer_placed(*slots, request(tokens_), now).code(), Code::unsupported);
}

TEST_F(Peers, MessagesComeWhileOthersRoute) {
  std::atomic<bool> over{false};
  std::thread teller([&] {
    std::vector<PeerLoad> loads;
    for (int i = 0; i < 300; ++i) {
      router_->loads(loads, seconds(2));
      EXPECT_TRUE(
          router_->peer_loads(static_cast<std::uint32_t>(i % 3), busy("r" + std::to_string(i % 2), i), seconds(2)));
      EXPECT_TRUE(router_->peer_placed(id(i % 2), request(tokens_), seconds(2)));
    }
    over = true;
  });
  std::size_t routed = 0;
  for (std::uint32_t i = 0; !over || i < 100; ++i) {
    const auto tokens = prompt(i * 50, 500);
    const Decision d = router_->route(request(tokens), seconds(2));
    routed += d.routed() ? 1 : 0;
    router_->first_token(d.ticket, seconds(2));
    router_->finish(d.ticket, {}, seconds(2));
  }
  teller.join();
  EXPECT_GE(routed, 100u);
  EXPECT_EQ(router_->statistics().tickets_in_flight, 0u);
}

}  // namespace
}  // namespace warmroute::peer_load_tests
