// From routing to an engine's event: what is foreseen of replicas that report their caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <vector>

#include "support/sanitized.hpp"
#include "warmroute/route/detail/prediction.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

constexpr std::size_t kBlock = 16;

std::vector<std::uint32_t> prompt_of(std::uint32_t first, std::size_t blocks) {
  std::vector<std::uint32_t> out(blocks * kBlock + 1);  // the last token is always computed
  std::iota(out.begin(), out.end(), first);
  return out;
}

class Prediction : public testing::Test {
 protected:
  void SetUp() override {
    a = *router.add_replica({.name = "a"}, now);
    b = *router.add_replica({.name = "b"}, now);
    ASSERT_TRUE(router.blocks_stored(a, {}, now)) << "an event without blocks: a reports";
  }
  Request request(std::span<const std::uint32_t> tokens, ReplicaId id) const {
    Request r;
    r.token_ids = tokens;
    r.pinned = id;
    return r;
  }
  Ticket route(std::span<const std::uint32_t> tokens, ReplicaId id) {
    return router.route(request(tokens, id), now).ticket;
  }
  std::int64_t cached(std::span<const std::uint32_t> tokens, ReplicaId id) {
    return router.peek(request(tokens, id), now).total_cached().value / static_cast<std::int64_t>(kBlock);
  }
  static std::vector<EngineHash> names(std::size_t blocks) {
    std::vector<EngineHash> out(blocks);
    for (std::size_t i = 0; i < blocks; ++i) out[i] = EngineHash{100 + i};
    return out;
  }
  // a's engine says that it holds the first blocks of the prompt.
  Status store(std::span<const EngineHash> ids, std::span<const std::uint32_t> tokens) {
    StoredBlocks stored;
    stored.ids = ids;
    stored.token_ids = tokens.first(ids.size() * kBlock);
    return router.blocks_stored(a, stored, now);
  }
  void wait(Nanos time) {
    now += time;
    router.advance(now);
  }
  // An event behind a block that nobody knows.
  void lose_events_of(ReplicaId id) {
    const auto unknown = names(2);
    const auto prompt = prompt_of(1, 1);
    StoredBlocks orphan;
    orphan.parent = unknown[0];
    orphan.ids = std::span(unknown).subspan(1);
    orphan.token_ids = std::span(prompt).first(kBlock);
    ASSERT_EQ(router.blocks_stored(id, orphan, now).code(), Code::not_found);
  }
  Router router;
  Nanos now = seconds(1);
  ReplicaId a, b;
};

TEST_F(Prediction, APromptCountsAsHeldFromItsRoutingOn) {
  const auto prompt = prompt_of(1, 40);
  route(prompt, a);
  EXPECT_EQ(cached(prompt, a), 40);
  EXPECT_EQ(cached(prompt, b), 0);
}

TEST_F(Prediction, EndsTwoSecondsAfterTheFirstToken) {
  const auto prompt = prompt_of(1, 40);
  const Ticket ticket = route(prompt, a);
  wait(milliseconds(700));
  ASSERT_TRUE(router.first_token(ticket, now));
  wait(milliseconds(1'999));
  EXPECT_EQ(cached(prompt, a), 40);
  wait(milliseconds(1));
  EXPECT_EQ(cached(prompt, a), 0);
}

TEST_F(Prediction, LastsAsLongAsTheFirstTokenIsAwaited) {
  const auto prompt = prompt_of(1, 40);
  const Ticket ticket = route(prompt, a);
  for (int i = 0; i < 300; ++i) {
    wait(milliseconds(100));
    ASSERT_EQ(cached(prompt, a), 40) << i;
  }
  ASSERT_TRUE(router.first_token(ticket, now));
  wait(milliseconds(1'900));
  EXPECT_EQ(cached(prompt, a), 40);
  wait(milliseconds(100));
  EXPECT_EQ(cached(prompt, a), 0);
}

TEST_F(Prediction, IsForgottenBeforeTheFirstDecisionAfterAnIdleTime) {
  const auto prompt = prompt_of(1, 40);
  const Ticket ticket = route(prompt, a);
  ASSERT_TRUE(router.first_token(ticket, now));
  now += seconds(60);  // nobody calls advance
  const Decision d = router.route(request(prompt, a), now);
  EXPECT_EQ(d.total_cached().value, 0);
}

TEST_F(Prediction, EventsOutliveIt) {
  const auto prompt = prompt_of(1, 40);
  const Ticket ticket = route(prompt, a);
  ASSERT_TRUE(router.first_token(ticket, now));
  const auto ids = names(30);
  wait(milliseconds(50));
  ASSERT_TRUE(store(ids, prompt));
  EXPECT_EQ(cached(prompt, a), 40) << "ten of them are still foreseen";
  wait(seconds(2));
  EXPECT_EQ(cached(prompt, a), 30) << "the engine said so of these";
}

TEST_F(Prediction, EndsWhenTheEngineRemovesTheBlocksAfterTheFirstToken) {
  const auto prompt = prompt_of(1, 40);
  const Ticket ticket = route(prompt, a);
  ASSERT_TRUE(router.first_token(ticket, now));
  const auto ids = names(40);
  ASSERT_TRUE(store(ids, prompt));
  ASSERT_EQ(*router.blocks_removed(a, Tier::device, std::span(ids).subspan(25), now), 15u);
  EXPECT_EQ(cached(prompt, a), 25);
}

TEST_F(Prediction, OutlivesTheRemovalOfBlocksThatAWaitingPromptWillBringBack) {
  const auto prompt = prompt_of(1, 40);
  const auto ids = names(40);
  ASSERT_TRUE(store(ids, prompt));
  route(prompt, a);
  ASSERT_EQ(*router.blocks_removed(a, Tier::device, std::span(ids).subspan(10), now), 30u);
  EXPECT_EQ(cached(prompt, a), 40);
}

TEST_F(Prediction, EndsWithTheEnginesCache) {
  const auto prompt = prompt_of(1, 40);
  route(prompt, a);
  ASSERT_TRUE(router.clear_cache(a, now));
  EXPECT_EQ(cached(prompt, a), 0);
}

TEST_F(Prediction, EndsWithTheReplica) {
  const auto prompt = prompt_of(1, 40);
  const Ticket ticket = route(prompt, a);
  ASSERT_TRUE(router.remove_replica(a, now));
  a = *router.add_replica({.name = "a"}, now);
  ASSERT_TRUE(router.blocks_stored(a, {}, now));
  EXPECT_EQ(cached(prompt, a), 0);
  EXPECT_TRUE(router.first_token(ticket, now));
  EXPECT_EQ(cached(prompt, a), 0) << "its successor never saw that prompt";
}

TEST_F(Prediction, IsTakenBackWhenTheRequestFailsBeforeItsFirstToken) {
  const auto first = prompt_of(1, 20);
  auto second = prompt_of(1, 40);
  const Ticket one = route(first, a);
  ASSERT_TRUE(router.first_token(one, now));
  const Ticket two = route(second, a);
  EXPECT_EQ(cached(second, a), 40);
  ASSERT_TRUE(router.fail(two, Outcome::connect_error, now));
  EXPECT_EQ(cached(second, a), 20);
}

TEST_F(Prediction, IsCorrectedByFewerCachedTokensThanForeseen) {
  const auto prompt = prompt_of(1, 40);
  const Ticket one = route(prompt, a);
  ASSERT_TRUE(router.first_token(one, now));
  ASSERT_TRUE(router.finish(one, {.input_tokens = 641, .cached_tokens = 0, .output_tokens = 5}, now));
  const Ticket two = route(prompt, a);
  ASSERT_TRUE(router.first_token(two, now));
  ASSERT_TRUE(router.finish(two, {.input_tokens = 641, .cached_tokens = 160, .output_tokens = 5}, now));
  EXPECT_EQ(cached(prompt, a), 10) << "640 were foreseen: the engine had lost all but ten blocks";
}

TEST_F(Prediction, StandsInForEventsThatWereLost) {
  const auto prompt = prompt_of(1, 40);
  const Ticket ticket = route(prompt, a);
  ASSERT_TRUE(router.first_token(ticket, now));
  const auto ids = names(40);
  ASSERT_TRUE(store(std::span(ids).first(10), prompt));
  StoredBlocks behind;  // block 10 never came
  behind.parent = ids[10];
  behind.ids = std::span(ids).subspan(11);
  behind.token_ids = std::span(prompt).subspan(11 * kBlock, behind.ids.size() * kBlock);
  EXPECT_EQ(router.blocks_stored(a, behind, now).code(), Code::not_found);
  EXPECT_EQ(router.statistics().event_gaps, 1u);
  wait(seconds(3'000));
  EXPECT_EQ(cached(prompt, a), 40);
  wait(seconds(600));
  EXPECT_EQ(cached(prompt, a), 10) << "an hour without a sign of losses";
}

TEST_F(Prediction, StandsInWhereAnotherReplicaKnowsTheBlockThatWasLost) {
  const auto prompt = prompt_of(1, 40);
  const auto ids = names(40);
  StoredBlocks all;
  all.ids = ids;
  all.token_ids = std::span(prompt).first(40 * kBlock);
  ASSERT_TRUE(router.blocks_stored(b, all, now));
  const Ticket ticket = route(prompt, a);
  ASSERT_TRUE(router.first_token(ticket, now));
  ASSERT_TRUE(store(std::span(ids).first(10), prompt));
  StoredBlocks behind;
  behind.parent = ids[10];
  behind.ids = std::span(ids).subspan(11, 20);
  behind.token_ids = std::span(prompt).subspan(11 * kBlock, 20 * kBlock);
  ASSERT_TRUE(router.blocks_stored(a, behind, now));
  EXPECT_EQ(router.statistics().event_gaps, 1u);
  wait(seconds(10));
  EXPECT_EQ(cached(prompt, a), 40);
  ASSERT_EQ(*router.blocks_removed(a, Tier::device, std::span(ids).subspan(20, 1), now), 1u);
  EXPECT_EQ(cached(prompt, a), 20) << "what the engine removes ends it as ever";
}

TEST_F(Prediction, StandingInIsCorrectedByCachedTokensAndHasThePromptThatWasComputedSince) {
  const auto ids = names(40);
  const auto prompt = prompt_of(1, 40);
  const auto compute = [&](std::span<const std::uint32_t> tokens, UsageCounts usage) {
    const Ticket ticket = route(tokens, a);
    wait(seconds(3));
    return router.first_token(ticket, now) && router.finish(ticket, usage, now);
  };
  ASSERT_TRUE(compute(prompt, {}));
  StoredBlocks behind;
  behind.parent = ids[5];
  behind.ids = std::span(ids).subspan(6, 1);
  behind.token_ids = std::span(prompt).subspan(6 * kBlock, kBlock);
  ASSERT_EQ(router.blocks_stored(a, behind, now).code(), Code::not_found);
  auto other = prompt_of(1, 40);  // 30 blocks in common
  std::iota(other.begin() + 30 * kBlock, other.end(), 900'000u);
  ASSERT_TRUE(compute(other, {}));
  EXPECT_EQ(cached(prompt, a), 40);
  ASSERT_TRUE(compute(prompt, {static_cast<std::int64_t>(prompt.size()), 20 * kBlock, 1}));
  wait(seconds(5));
  EXPECT_EQ(cached(prompt, a), 40) << "computed since";
  EXPECT_EQ(cached(other, a), 30) << "its own blocks were behind what is gone";
}

TEST_F(Prediction, StandingInHoldsNoMoreThanTheReplicasCapacity) {
  const ReplicaId small = *router.add_replica({.name = "small", .capacity_tokens = 64 * kBlock}, now);
  lose_events_of(small);
  const auto first = prompt_of(100'000, 40), second = prompt_of(200'000, 40);
  ASSERT_TRUE(router.first_token(route(first, small), now));
  const Ticket ticket = route(second, small);
  wait(seconds(10));
  EXPECT_EQ(cached(first, small), 40) << "the second one waits: it has pushed nothing out yet";
  ASSERT_TRUE(router.first_token(ticket, now));
  wait(seconds(10));
  EXPECT_EQ(cached(second, small), 40);
  EXPECT_EQ(cached(first, small), 24) << "its tail went first";
}

TEST_F(Prediction, StandingInIsBoundedWhoeverPlacesThere) {
  Policy policy;
  policy.disaggregate = Disaggregate::always;
  ASSERT_TRUE(router.set_policy(policy));
  const ReplicaId prefill = *router.add_replica({.name = "p", .role = Role::prefill}, now);
  const ReplicaId decode =
      *router.add_replica({.name = "d", .role = Role::decode, .capacity_tokens = 64 * kBlock}, now);
  const ReplicaId told = *router.add_replica({.name = "told", .capacity_tokens = 64 * kBlock}, now);
  ASSERT_TRUE(router.set_health(a, Health::down, "test", now));
  ASSERT_TRUE(router.set_health(b, Health::down, "test", now));
  lose_events_of(decode);
  lose_events_of(told);
  for (std::uint32_t i = 0; i < 20; ++i) {
    const auto prompt = prompt_of(1'000 * (i + 1), 40);
    ASSERT_TRUE(router.peer_placed(told, request(prompt, told), now));
    Request r;
    r.token_ids = prompt;
    r.excluded = {&told, 1};
    const Decision d = router.route(r, now);
    ASSERT_EQ(d.replica, decode);
    ASSERT_EQ(d.prefill_replica, prefill);
    ASSERT_TRUE(router.first_token(d.ticket, now));
    ASSERT_TRUE(router.transfer_done(d.ticket, now));
    ASSERT_TRUE(router.finish(d.ticket, {}, now));
    wait(seconds(5));
  }
  ASSERT_TRUE(router.set_policy({}));
  for (const ReplicaId id : {decode, told}) {
    std::int64_t found = 0;
    for (std::uint32_t i = 0; i < 20; ++i) {
      const auto prompt = prompt_of(1'000 * (i + 1), 40);
      ReplicaSpec spec = *router.replica(id);
      spec.role = Role::unified;
      ASSERT_TRUE(router.update_replica(id, spec, now));
      found += cached(prompt, id);
    }
    EXPECT_EQ(found, 64);
  }
}

TEST_F(Prediction, IsForgottenByAnIdleRouterThatOnlyAdvances) {
  const auto prompt = prompt_of(1, 40);
  ASSERT_TRUE(router.first_token(route(prompt, a), now));
  wait(milliseconds(1'900));
  now += milliseconds(1'900);
  EXPECT_EQ(router.route(request(prompt, a), now).total_cached().value, 0);
}

TEST_F(Prediction, StandingInLivesNoShorterThanAPredictionAndAsLongAsThePolicySays) {
  Policy policy;
  policy.residency_ttl = milliseconds(300);
  ASSERT_TRUE(router.set_policy(policy));
  lose_events_of(a);
  const auto prompt = prompt_of(1'000, 40);
  const Ticket ticket = route(prompt, a);
  for (int i = 0; i < 50; ++i) {
    wait(milliseconds(100));
    ASSERT_EQ(cached(prompt, a), 40) << i;
  }
  policy.residency_ttl = seconds(60);
  ASSERT_TRUE(router.set_policy(policy));
  ASSERT_TRUE(router.first_token(ticket, now));
  wait(seconds(59));
  EXPECT_EQ(cached(prompt, a), 40);
  wait(seconds(2));
  EXPECT_EQ(cached(prompt, a), 0);
}

TEST_F(Prediction, StandingInFollowsACapacityThatChanges) {
  lose_events_of(a);
  for (std::uint32_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(router.first_token(route(prompt_of(1'000 * (i + 1), 40), a), now));
    wait(seconds(1));
  }
  EXPECT_EQ(cached(prompt_of(1'000, 40), a), 40);
  ASSERT_TRUE(router.update_replica(a, {.name = "a", .capacity_tokens = 64 * kBlock}, now));
  wait(seconds(1));
  EXPECT_EQ(cached(prompt_of(1'000, 40), a), 0);
  EXPECT_EQ(cached(prompt_of(10'000, 40), a), 40);
}

TEST_F(Prediction, ComesBackWithTheRoleOfItsReplica) {
  const auto prompt = prompt_of(1, 40);
  ASSERT_TRUE(router.update_replica(a, {.name = "a", .role = Role::prefill}, now));
  ASSERT_TRUE(router.update_replica(a, {.name = "a"}, now));
  ASSERT_TRUE(router.blocks_stored(a, {}, now));
  route(prompt, a);
  wait(milliseconds(1'500));
  EXPECT_EQ(cached(prompt, a), 40);
  EXPECT_TRUE(router.statistics().replicas[0].reported);
}

TEST(PredictionTickets, AreGivenBackWithinASecondWhateverBecameOfThem) {
  Router router(RouterOptions{.max_tickets = 256});
  Nanos now = seconds(1);
  const ReplicaId a = *router.add_replica({.name = "a"}, now);
  ASSERT_TRUE(router.blocks_stored(a, {}, now));
  const auto prompt = prompt_of(1, 40);
  Request r;
  r.token_ids = prompt;
  for (int round = 0; round < 3'000; ++round) {  // 50 per second: more than 256 in six
    const Ticket ticket = router.route(r, now).ticket;
    ASSERT_NE(ticket, kNoTicket) << round;
    if (round % 3 == 2) {
      ASSERT_TRUE(router.first_token(ticket, now));
    }
    if (round % 3 == 0) {
      ASSERT_TRUE(router.fail(ticket, Outcome::cancelled, now));
    }
    if (round % 3 != 0) {
      ASSERT_TRUE(router.finish(ticket, {}, now));
    }
    now += milliseconds(20);
  }
}

// ---- beside a naive model

struct NaiveEntry {
  std::vector<int> path;
  std::size_t length = 0;
  bool waiting = true;
  Nanos until{0};
};

std::size_t common(std::span<const int> x, std::span<const int> y) {
  return static_cast<std::size_t>(std::mismatch(x.begin(), x.end(), y.begin(), y.end()).first - x.begin());
}

class NaivePredictions {
 public:
  std::size_t held(std::span<const int> path, Nanos now) const {
    std::size_t most = 0;
    for (const NaiveEntry& e : entries) {
      if (e.waiting || now < e.until || stands_in)
        most = std::max(most, common(std::span(e.path).first(e.length), path));
    }
    return most;
  }
  void contradict(std::span<const int> path, std::size_t keep) {
    for (NaiveEntry& e : entries) {
      if (!e.waiting && common(std::span(e.path).first(e.length), path) > keep) e.length = keep;
    }
  }
  // Events were lost: what is not over yet stays.
  void stand_in(Nanos now) {
    if (stands_in) return;
    for (NaiveEntry& e : entries) {
      if (!e.waiting && e.until <= now) e.length = 0;
    }
    stands_in = true;
  }
  std::vector<NaiveEntry> entries;
  bool stands_in = false;
};

// Prompts of a small tree: each block is one of three, told apart by what came before.
std::vector<int> random_path(std::mt19937& random) {
  std::vector<int> path(1 + random() % 8);
  for (int& step : path) step = static_cast<int>(random() % 3);
  return path;
}
std::vector<std::uint32_t> tokens_of(std::span<const int> path) {
  std::vector<std::uint32_t> out;
  for (const int step : path) out.insert(out.end(), kBlock, static_cast<std::uint32_t>(step + 7));
  out.push_back(99);
  return out;
}
EngineHash name_of(std::span<const int> path) {
  std::uint64_t name = 1;
  for (const int step : path) name = name * 4 + static_cast<std::uint64_t>(step) + 1;
  return EngineHash{name};
}

class PredictionBesideANaiveModel : public testing::TestWithParam<unsigned> {};

TEST_P(PredictionBesideANaiveModel, AgreesUnderRandomRequestsEventsAndLosses) {
  std::mt19937 random(GetParam());
  Router router;
  Nanos now = seconds(1);
  const ReplicaId a = *router.add_replica({.name = "a"}, now);
  const ReplicaId b = *router.add_replica({.name = "b"}, now);
  ASSERT_TRUE(router.blocks_stored(a, {}, now));
  NaivePredictions naive;
  std::set<std::vector<int>> reported, reported_by_b;
  struct Flight {
    Ticket ticket;
    std::size_t entry;
    Nanos routed;
  };
  std::vector<Flight> flights;
  const auto held = [&](std::span<const int> path) {
    std::size_t depth = 0;
    while (depth < path.size() && reported.contains({path.begin(), path.begin() + static_cast<long>(depth) + 1}))
      ++depth;
    return std::max(depth, naive.held(path, now));
  };
  const auto ask = [&](std::span<const int> path) {
    const auto tokens = tokens_of(path);
    Request r;
    r.token_ids = tokens;
    r.pinned = a;
    return static_cast<std::size_t>(router.peek(r, now).total_cached().value) / kBlock;
  };
  for (int step = 0; step < test::rounds(3'000, 6); ++step) {
    now += milliseconds(static_cast<std::int64_t>(random() % 40));
    router.advance(now);
    // no ticket waits long enough to be renewed: then its last touch is its routing
    for (std::size_t i = 0; i < flights.size(); ++i) {
      if (now - flights[i].routed < milliseconds(800)) continue;
      ASSERT_TRUE(router.first_token(flights[i].ticket, now));
      naive.entries[flights[i].entry].waiting = false;
      naive.entries[flights[i].entry].until = now + seconds(2);
      flights.erase(flights.begin() + static_cast<long>(i--));
    }
    if (flights.empty() &&
        random() % 40 == 0) {  // so long without a sign of lost events that nothing stands in for them any more
      router.advance(now += detail::kStandInTime);
      naive.stands_in = false;
    }
    const auto path = random_path(random);
    switch (random() % 5) {
      case 0:
      case 1: {
        const auto tokens = tokens_of(path);
        Request r;
        r.token_ids = tokens;
        r.pinned = a;
        const Decision d = router.route(r, now);
        ASSERT_EQ(static_cast<std::size_t>(d.total_cached().value) / kBlock, held(path)) << step;
        flights.push_back({d.ticket, naive.entries.size(), now});
        naive.entries.push_back({path, path.size(), true, {}});
        break;
      }
      case 2: {  // the engine stores a path below what it holds; the first of these events may get lost
        std::size_t depth = 0;
        while (depth < path.size() && reported.contains({path.begin(), path.begin() + static_cast<long>(depth) + 1}))
          ++depth;
        if (depth == path.size()) break;
        const bool lost = depth + 1 < path.size() && random() % 16 == 0;
        const auto store = [&](ReplicaId id, std::size_t from, std::set<std::vector<int>>& told) {
          const auto tokens = tokens_of(path);
          StoredBlocks s;
          std::vector<EngineHash> ids;
          for (std::size_t i = from; i < path.size(); ++i) ids.push_back(name_of(std::span(path).first(i + 1)));
          if (from != 0) s.parent = name_of(std::span(path).first(from));
          s.ids = ids;
          s.token_ids = std::span(tokens).subspan(from * kBlock, ids.size() * kBlock);
          const Status done = router.blocks_stored(id, s, now);
          if (!done) return done.code();
          for (std::size_t i = from; i < path.size(); ++i)
            told.insert({path.begin(), path.begin() + static_cast<long>(i) + 1});
          return Code::ok;
        };
        if (lost && random() % 2 == 0) {
          ASSERT_EQ(store(b, 0, reported_by_b), Code::ok);
        }
        if (lost) naive.stand_in(now);
        const bool known = !lost || reported_by_b.contains({path.begin(), path.begin() + static_cast<long>(depth) + 1});
        ASSERT_EQ(store(a, depth + lost, reported), known ? Code::ok : Code::not_found) << step;
        break;
      }
      case 3: {  // and removes a leaf
        std::vector<std::vector<int>> leaves;
        for (const auto& p : reported) {
          const bool inner = std::any_of(reported.begin(), reported.end(), [&](const auto& q) {
            return q.size() > p.size() && std::equal(p.begin(), p.end(), q.begin());
          });
          if (!inner) leaves.push_back(p);
        }
        if (leaves.empty()) break;
        const auto leaf = leaves[random() % leaves.size()];
        const EngineHash id = name_of(leaf);
        ASSERT_EQ(*router.blocks_removed(a, Tier::device, {&id, 1}, now), 1u);
        reported.erase(leaf);
        naive.contradict(leaf, leaf.size() - 1);
        break;
      }
      default: {
        if (flights.empty()) break;
        const std::size_t i = random() % flights.size();
        ASSERT_TRUE(router.first_token(flights[i].ticket, now));
        naive.entries[flights[i].entry].waiting = false;
        naive.entries[flights[i].entry].until = now + seconds(2);
        flights.erase(flights.begin() + static_cast<long>(i));
      }
    }
    for (int i = 0; i < 4; ++i) {
      const auto probe = random_path(random);
      ASSERT_EQ(ask(probe), held(probe)) << "step " << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PredictionBesideANaiveModel, testing::Range(0u, 6u));

}  // namespace
}  // namespace warmroute
