#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "warmroute/route/detail/prediction.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

std::vector<std::uint32_t> ids(std::uint32_t first, std::size_t count) {
  std::vector<std::uint32_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}
std::vector<EngineHash> names(std::uint64_t first, std::size_t count) {
  std::vector<EngineHash> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = EngineHash{first + i};
  return out;
}

class RouterEvents : public testing::Test {
 protected:
  void SetUp() override {
    a = *router.add_replica({.name = "a"}, now);
    b = *router.add_replica({.name = "b"}, now);
  }
  std::int64_t cached(ReplicaId id, std::span<const std::uint32_t> tokens, std::string_view adapter = {}) {
    Request r;
    r.token_ids = tokens;
    r.adapter = adapter;
    r.pinned = id;
    return router.peek(r, now).total_cached().value;
  }
  Status store(ReplicaId id, std::span<const std::uint32_t> tokens, std::span<const EngineHash> block_names,
               std::optional<EngineHash> parent = {}) {
    StoredBlocks s;
    s.parent = parent;
    s.ids = block_names;
    s.token_ids = tokens;
    return router.blocks_stored(id, s, now += milliseconds(1));
  }
  Router router;
  Nanos now{0};
  ReplicaId a, b;
};

TEST_F(RouterEvents, StoredBlocksAreMatchedThereAndNowhereElse) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(a, std::span(prompt).first(640), names(1, 40)));
  EXPECT_EQ(cached(a, prompt), 640);
  EXPECT_EQ(cached(b, prompt), 0);
  ASSERT_TRUE(store(a, std::span(prompt).subspan(640, 160), names(41, 10), EngineHash{40}));
  EXPECT_EQ(cached(a, prompt), 800);
}

TEST_F(RouterEvents, LongEventsAreHashedInPiecesLikeShortOnes) {
  const auto prompt = ids(1, 16'001);
  ASSERT_TRUE(store(a, std::span(prompt).first(16'000), names(1, 1'000)));
  EXPECT_EQ(cached(a, prompt), 16'000);
}

TEST_F(RouterEvents, RemovedBlocksEndTheMatchAndComeBackWhenStoredAgain) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(a, std::span(prompt).first(640), names(1, 40)));
  EXPECT_EQ(*router.blocks_removed(a, Tier::device, names(11, 1), now), 1u);
  EXPECT_EQ(*router.blocks_removed(a, Tier::device, names(11, 1), now), 0u);
  EXPECT_EQ(cached(a, prompt), 160);
  ASSERT_TRUE(store(a, std::span(prompt).subspan(160, 16), names(11, 1), EngineHash{10}));
  EXPECT_EQ(cached(a, prompt), 640) << "what lies behind the hole was never removed";
}

TEST_F(RouterEvents, TheFirstEventEndsWhatWasBelieved) {
  const auto prompt = ids(1, 1'000);
  Request r;
  r.token_ids = prompt;
  r.pinned = a;
  router.finish(router.route(r, now).ticket, {.cached_tokens = 0}, now);
  ASSERT_GT(cached(a, prompt), 900);
  ASSERT_TRUE(store(a, ids(50'000, 16), names(1, 1)));
  EXPECT_EQ(cached(a, prompt), 0) << "its engine has not reported that prompt";
  router.finish(router.route(r, now).ticket, {.cached_tokens = 992}, now);
  router.advance(now += seconds(2));
  EXPECT_EQ(cached(a, prompt), 0)
      << "placements bridge the time until events come; feedback does not count beside them";
  const RouterStatistics s = router.statistics();
  EXPECT_TRUE(s.replicas[0].reported);
  EXPECT_FALSE(s.replicas[1].reported);
}

TEST_F(RouterEvents, AClearedCacheStaysReported) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(a, std::span(prompt).first(640), names(1, 40)));
  ASSERT_TRUE(router.clear_cache(a, now));
  EXPECT_EQ(cached(a, prompt), 0);
  Request r;
  r.token_ids = prompt;
  r.pinned = a;
  router.finish(router.route(r, now).ticket, {.cached_tokens = 0}, now);
  router.advance(now += seconds(2));
  EXPECT_EQ(cached(a, prompt), 0);
  ASSERT_TRUE(store(a, std::span(prompt).first(320), names(1, 20)));
  EXPECT_EQ(cached(a, prompt), 320);
}

TEST_F(RouterEvents, ANewReplicaOfTheSameNameIsNotReported) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(a, std::span(prompt).first(640), names(1, 40)));
  ASSERT_TRUE(router.remove_replica(a, now));
  EXPECT_EQ(store(a, std::span(prompt).first(16), names(1, 1)).code(), Code::stale);
  EXPECT_EQ(router.blocks_removed(a, Tier::device, names(1, 1), now).code(), Code::stale);
  const ReplicaId again = *router.add_replica({.name = "a"}, now);
  EXPECT_EQ(cached(again, prompt), 0);
  Request r;
  r.token_ids = prompt;
  r.pinned = again;
  router.finish(router.route(r, now).ticket, {}, now);
  EXPECT_GT(cached(again, prompt), 900) << "its cache is modelled until its engine speaks";
}

TEST_F(RouterEvents, AdaptersSaltsAndTenantsAreHashedAsInRequests) {
  const auto prompt = ids(1, 1'000);
  const auto block_names = names(1, 40);
  StoredBlocks s;
  s.ids = block_names;
  s.token_ids = std::span(prompt).first(640);
  s.adapter = "lora-a";
  s.cache_salt = "salt";
  s.tenant = "acme";
  ASSERT_TRUE(router.blocks_stored(a, s, now));
  EXPECT_EQ(cached(a, prompt), 0);
  EXPECT_EQ(cached(a, prompt, "lora-a"), 0);
  Request r;
  r.token_ids = prompt;
  r.adapter = "lora-a";
  r.cache_salt = "salt";
  r.tenant = "acme";
  r.pinned = a;
  EXPECT_EQ(router.peek(r, now).total_cached().value, 640);
}

TEST_F(RouterEvents, SizesThatDoNotFitAreRefusedWithBothNumbers) {
  const auto prompt = ids(1, 100);
  const Status wrong = store(a, prompt, names(1, 6));
  EXPECT_EQ(wrong.code(), Code::invalid_argument);
  EXPECT_NE(wrong.error().message.find("100 token ids"), std::string::npos) << wrong.error().message;
  StoredBlocks s;
  const auto two = names(1, 2);
  const std::vector<BlockHash> three(3);
  s.ids = two;
  s.blocks = three;
  EXPECT_EQ(router.blocks_stored(a, s, now).code(), Code::invalid_argument);
  EXPECT_FALSE(router.statistics().replicas[0].reported) << "a refused event changes nothing";
}

TEST_F(RouterEvents, LowerTiersAreCountedApart) {
  const auto prompt = ids(1, 1'000);
  const auto block_names = names(1, 40);
  StoredBlocks s;
  s.ids = block_names;
  s.token_ids = std::span(prompt).first(640);
  s.tier = Tier::host;
  ASSERT_TRUE(router.blocks_stored(a, s, now));
  ASSERT_TRUE(store(a, std::span(prompt).first(160), names(1, 10)));
  Request r;
  r.token_ids = prompt;
  r.pinned = a;
  const Decision d = router.peek(r, now);
  EXPECT_EQ(d.cached_tokens[0].value, 160);
  EXPECT_EQ(d.cached_tokens[1].value, 480);
}

TEST_F(RouterEvents, BlocksCopiedToAnotherTierAreKnownThereByTheirNamesAlone) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(a, std::span(prompt).first(640), names(1, 40)));
  EXPECT_EQ(*router.blocks_also_on(a, Tier::host, names(1, 30), now), 30u);
  EXPECT_EQ(*router.blocks_also_on(a, Tier::host, names(900, 3), now), 0u);
  EXPECT_EQ(*router.blocks_removed(a, Tier::device, names(11, 30), now), 30u);
  Request r;
  r.token_ids = prompt;
  r.pinned = a;
  const Decision d = router.peek(r, now);
  EXPECT_EQ(d.cached_tokens[0].value, 160);
  EXPECT_EQ(d.cached_tokens[1].value, 320) << "blocks 11 to 30 are left in host memory";
}

TEST_F(RouterEvents, BlocksBehindAnUnknownParentAreCountedAndNotStored) {
  const auto prompt = ids(1, 1'000);
  EXPECT_EQ(store(a, std::span(prompt).first(48), names(41, 3), EngineHash{40}).code(), Code::not_found);
  EXPECT_EQ(router.statistics().event_orphans, 3u);
  EXPECT_EQ(router.statistics().event_gaps, 1u);
  EXPECT_EQ(router.statistics().event_blocks_stored, 0u);
  EXPECT_EQ(cached(a, prompt), 0);
}

TEST_F(RouterEvents, APrefillReplicaTakesNoEvents) {
  const ReplicaId p = *router.add_replica({.name = "p", .role = Role::prefill}, now);
  EXPECT_EQ(store(p, ids(1, 16), names(1, 1)).code(), Code::unsupported);
}

// Against a naive model: a set of (conversation, block) per replica; blocks of a conversation are named conversation * 1000 + i + 1.
TEST_F(RouterEvents, AgreeWithSetsUnderRandomEventsFailuresAndRequests) {
  constexpr std::size_t kConversations = 12, kBlocks = 30;
  const char* more = std::getenv("WARMROUTE_TEST_ROUNDS");
  const std::size_t rounds = 3'000 * (more != nullptr ? std::strtoul(more, nullptr, 10) : 1);
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::array<ReplicaId, 2> replicas{a, b};
  std::array<std::set<std::size_t>, 2> held;
  const auto prompt_of = [](std::size_t c) { return ids(static_cast<std::uint32_t>(c * 100'000), kBlocks * 16 + 1); };
  ASSERT_TRUE(store(a, {}, {}));
  ASSERT_TRUE(store(b, {}, {}));
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t c = below(kConversations), r = below(2), from = below(kBlocks), n = 1 + below(kBlocks - from);
    const auto prompt = prompt_of(c);
    switch (below(8)) {
      case 0:
      case 1:
      case 2: {  // a store whose parent was stored is taken, in or out of reach
        std::optional<EngineHash> parent;
        if (from > 0) parent = EngineHash{c * 1'000 + from};
        const bool known = from == 0 || held[0].contains(c * 1'000 + from) || held[1].contains(c * 1'000 + from);
        const Status done =
            store(replicas[r], std::span(prompt).subspan(from * 16, n * 16), names(c * 1'000 + from + 1, n), parent);
        ASSERT_TRUE(done || !known) << done.error().message;
        if (done)
          for (std::size_t i = 0; i < n; ++i) held[r].insert(c * 1'000 + from + i + 1);
        break;
      }
      case 3:
      case 4: {
        std::size_t expected = 0;
        for (std::size_t i = 0; i < n; ++i) expected += held[r].erase(c * 1'000 + from + i + 1);
        ASSERT_EQ(*router.blocks_removed(replicas[r], Tier::device, names(c * 1'000 + from + 1, n), now), expected);
        break;
      }
      case 5:
        if (below(20) == 0) {
          ASSERT_TRUE(router.clear_cache(replicas[r], now));
          held[r].clear();
        }
        break;
      default: {
        Request request;
        request.token_ids = prompt;
        const Decision d = router.route(request, now);
        ASSERT_TRUE(d.routed());
        router.finish(d.ticket, {.cached_tokens = static_cast<std::int64_t>(below(500))}, now);
        router.advance(now += detail::kStandInTime);  // what was foreseen is over: what the engines said stays
      }
    }
    for (std::size_t i = 0; i < 2; ++i) {
      std::int64_t depth = 0;
      while (held[i].contains(c * 1'000 + static_cast<std::size_t>(depth) + 1)) ++depth;
      ASSERT_EQ(cached(replicas[i], prompt), depth * 16) << "round " << round << " replica " << i;
    }
  }
}

TEST_F(RouterEvents, ComeFromManyThreadsBesideRequests) {
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 300; ++i) {
        const auto tokens = ids(t * 1'000'000 + i * 1'000, 320);
        const auto block_names = names(t * 1'000'000 + i * 1'000 + 1, 20);
        StoredBlocks s;
        s.ids = block_names;
        s.token_ids = tokens;
        ASSERT_TRUE(router.blocks_stored(t == 0 ? a : b, s, Nanos{i}));
        if (i % 3 != 0) continue;
        ASSERT_EQ(*router.blocks_removed(t == 0 ? a : b, Tier::device, block_names, Nanos{i}), 20u);
      }
    });
  }
  threads.emplace_back([&] {
    for (std::uint32_t i = 0; i < 600; ++i) {
      const auto tokens = ids(i % 2 * 1'000'000 + i / 2 * 1'000, 321);
      Request r;
      r.token_ids = tokens;
      router.finish(router.route(r, Nanos{i}).ticket, {.cached_tokens = 0}, Nanos{i});
    }
  });
  for (auto& t : threads) t.join();
  // What was foreseen is over, a few thousand blocks per call; what no thread took from the queue is foreseen by the first of them only.
  for (int i = 1; i <= 4; ++i) router.advance(seconds(3 * i));
  now = seconds(12);
  for (std::uint32_t t = 0; t < 2; ++t) {
    for (std::uint32_t i = 0; i < 300; ++i) {
      const auto tokens = ids(t * 1'000'000 + i * 1'000, 321);
      EXPECT_EQ(cached(t == 0 ? a : b, tokens), i % 3 == 0 ? 0 : 320);
    }
  }
}

// ---- a store that every replica can load from

class SharedStoreEvents : public RouterEvents {
 protected:
  Status store_shared(ReplicaId by, std::span<const std::uint32_t> tokens, std::span<const EngineHash> block_names,
                      std::optional<EngineHash> parent = {}) {
    StoredBlocks s;
    s.tier = Tier::shared;
    s.parent = parent;
    s.ids = block_names;
    s.token_ids = tokens;
    return router.blocks_stored(by, s, now += milliseconds(1));
  }
  std::array<std::int64_t, kAllTierCount> tiers(ReplicaId id, std::span<const std::uint32_t> tokens) {
    Request r;
    r.token_ids = tokens;
    r.pinned = id;
    const Decision d = router.peek(r, now);
    return {d.cached_tokens[0].value, d.cached_tokens[1].value, d.cached_tokens[2].value, d.cached_tokens[3].value};
  }
  using Tiers = std::array<std::int64_t, kAllTierCount>;
};

TEST_F(SharedStoreEvents, WhatOneReplicaStoresThereEveryReplicaCanLoad) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(a, std::span(prompt).first(320), names(1, 20)));
  ASSERT_TRUE(store_shared(a, std::span(prompt).first(640), names(1, 40)));
  EXPECT_EQ(tiers(a, prompt), (Tiers{320, 0, 0, 320}));
  EXPECT_EQ(tiers(b, prompt), (Tiers{0, 0, 0, 640}));
  EXPECT_EQ(router.statistics().pools[0].shared_blocks, 40u);
}

TEST_F(SharedStoreEvents, LoadingFromItCostsItsOwnTransfer) {
  Policy policy;
  policy.shared_transfer_per_token = Nanos{1'000};
  ASSERT_TRUE(router.set_policy(policy));
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store_shared(a, std::span(prompt).first(640), names(1, 40)));
  Request r;
  r.token_ids = prompt;
  const Explanation e = router.explain(r, now);
  EXPECT_EQ(e.candidates[1].cost.transfer, 640'000);
  const Decision near = router.route(r, now);
  EXPECT_EQ(near.total_cached().value, 640);
}

TEST_F(SharedStoreEvents, AHolderOfItsOwnIsStillPreferred) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(b, std::span(prompt).first(640), names(1, 40)));
  ASSERT_TRUE(store_shared(b, std::span(prompt).first(640), names(1, 40)));
  Request r;
  r.token_ids = prompt;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(router.peek(r, now).replica, b);
}

TEST_F(SharedStoreEvents, WhatOneStoredAnotherMayRemove) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store_shared(a, std::span(prompt).first(640), names(1, 40)));
  EXPECT_EQ(*router.blocks_removed(b, Tier::shared, names(11, 30), now), 30u);
  EXPECT_EQ(tiers(a, prompt), (Tiers{0, 0, 0, 160}));
  EXPECT_EQ(*router.blocks_removed(b, Tier::shared, names(11, 30), now), 0u);
}

TEST_F(SharedStoreEvents, BlocksBelowWhatOnlyTheReplicaHoldsFindTheirPlace) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store(a, std::span(prompt).first(320), names(1, 20)));
  ASSERT_TRUE(store_shared(a, std::span(prompt).subspan(320, 320), names(21, 20), EngineHash{20}));
  EXPECT_EQ(tiers(b, prompt), (Tiers{0, 0, 0, 0})) << "its beginning is not in the store";
  ASSERT_EQ(*router.blocks_also_on(a, Tier::shared, names(1, 20), now), 20u);
  EXPECT_EQ(tiers(b, prompt), (Tiers{0, 0, 0, 640}));
  EXPECT_EQ(store_shared(b, ids(9, 16), names(900, 1), EngineHash{777}).code(), Code::not_found);
}

TEST_F(SharedStoreEvents, ItOutlivesTheReplicaThatFilledItAndEndsWhenItIsCleared) {
  const auto prompt = ids(1, 1'000);
  ASSERT_TRUE(store_shared(a, std::span(prompt).first(640), names(1, 40)));
  ASSERT_TRUE(router.clear_cache(a, now));
  ASSERT_TRUE(router.remove_replica(a, now));
  EXPECT_EQ(tiers(b, prompt), (Tiers{0, 0, 0, 640}));
  EXPECT_EQ(router.clear_shared_store("nobody").code(), Code::not_found);
  ASSERT_TRUE(router.clear_shared_store(""));
  EXPECT_EQ(tiers(b, prompt), (Tiers{0, 0, 0, 0}));
}

TEST_F(SharedStoreEvents, EveryCandidateOfALargeFleetIsPricedWithIt) {
  Router fleet;
  const auto prompt = ids(1, 4'001);
  std::vector<ReplicaId> members;
  for (int i = 0; i < 64; ++i) members.push_back(*fleet.add_replica({.name = "r" + std::to_string(i)}, now));
  StoredBlocks s;
  const auto block_names = names(1, 250);
  s.ids = block_names;
  s.token_ids = std::span(prompt).first(4'000);
  ASSERT_TRUE(fleet.blocks_stored(members[5], s, now));
  s.tier = Tier::shared;
  ASSERT_TRUE(fleet.blocks_stored(members[5], s, now));
  Request r;
  r.token_ids = prompt;
  for (int i = 0; i < 300; ++i) {
    const Explanation all = fleet.explain(r, now);
    std::int64_t least = all.candidates[0].cost.total;
    for (const auto& c : all.candidates) least = std::min(least, c.cost.total);
    const Decision d = fleet.route(r, now);
    const auto chosen =
        std::find_if(all.candidates.begin(), all.candidates.end(), [&](const auto& c) { return c.id == d.replica; });
    ASSERT_EQ(chosen->cost.total, least) << i << ": the cheapest of all was not found";
  }
}

}  // namespace
}  // namespace warmroute
