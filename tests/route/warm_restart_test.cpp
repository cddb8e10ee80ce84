// A router that is given what another one believed decides as that one did, and forgets in the same order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <thread>
#include <vector>

#include "route/warm_traffic.hpp"
#include "warmroute/prefix/residency.hpp"
#include "warmroute/route/baselines.hpp"

namespace warmroute {
namespace {

using test::eviction_order;
using test::WarmTraffic;

constexpr Nanos kNoon = seconds(43'200);

void restore_all(const Router& from, Router& to, Nanos then, Nanos now) {
  const auto there = to.replicas();
  for (const auto& row : from.replicas()) {
    const auto same = std::find_if(there.begin(), there.end(), [&](const auto& r) {
      return r.spec.name == row.spec.name && r.spec.dp_rank == row.spec.dp_rank;
    });
    ASSERT_NE(same, there.end());
    const auto cache = from.cached(row.id, then);
    ASSERT_TRUE(cache.ok());
    const auto restored = to.restore_cached(same->id, *cache, now);
    ASSERT_TRUE(restored.ok()) << restored.error().message;
    EXPECT_EQ(restored->offered, cache->tree.blocks.size());
    EXPECT_EQ(restored->added, cache->tree.blocks.size());
  }
}

void expect_same_beliefs(const Router& a, const Router& b, Nanos a_now, Nanos b_now) {
  const auto rows = a.replicas();
  const auto a_stats = a.statistics(), b_stats = b.statistics();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto mine = a.cached(rows[i].id, a_now), others = b.cached(b.replicas()[i].id, b_now);
    ASSERT_EQ(eviction_order(mine->tree), eviction_order(others->tree)) << rows[i].spec.name;
    EXPECT_EQ(a_stats.replicas[i].believed_blocks, b_stats.replicas[i].believed_blocks);
    EXPECT_EQ(a_stats.replicas[i].capacity_blocks, b_stats.replicas[i].capacity_blocks);
  }
  EXPECT_EQ(a_stats.pools[0].memberships, b_stats.pools[0].memberships);
}

TEST(WarmRestart, DecidesAsBefore) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    WarmTraffic traffic(seed);
    Policy policy;
    policy.reuse = Nanos{0};  // how quickly caches were renewed is not kept: a minute tells it anew
    Router old;
    ASSERT_TRUE(old.set_policy(policy));
    test::add_three(old);
    const Nanos end = test::drive(old, traffic, 600, Nanos{0});
    Router fresh;
    ASSERT_TRUE(fresh.set_policy(policy));
    test::add_three(fresh);
    restore_all(old, fresh, end, kNoon);
    expect_same_beliefs(old, fresh, end, kNoon);
    std::int64_t hits = 0;
    for (int i = 0; i < 300; ++i) {
      const auto path = traffic.path();
      Request request;
      request.blocks = path;
      request.block_kind = i % 2 == 0 ? BlockKind::text : BlockKind::tokens;
      const Decision a = old.peek(request, end), b = fresh.peek(request, kNoon);
      ASSERT_EQ(a.replica.slot, b.replica.slot) << i;
      ASSERT_EQ(a.total_cached(), b.total_cached()) << i;
      ASSERT_EQ(a.input_tokens, b.input_tokens) << i;
      const auto why_a = old.explain(request, end), why_b = fresh.explain(request, kNoon);
      ASSERT_EQ(why_a.candidates.size(), why_b.candidates.size());
      for (std::size_t c = 0; c < why_a.candidates.size(); ++c) {
        ASSERT_EQ(why_a.candidates[c].cost.total, why_b.candidates[c].cost.total) << i << " candidate " << c;
        ASSERT_EQ(why_a.candidates[c].cached_tokens, why_b.candidates[c].cached_tokens) << i;
      }
      hits += a.total_cached().value;
    }
    EXPECT_GT(hits, 0);
  }
}

TEST(WarmRestart, ForgetsInTheSameOrderAfterwards) {
  WarmTraffic traffic(7);
  Router old;
  test::add_three(old);
  Nanos a_now = test::drive(old, traffic, 500, Nanos{0}), b_now = kNoon;
  Router fresh;
  test::add_three(fresh);
  restore_all(old, fresh, a_now, b_now);
  for (int i = 0; i < 120; ++i) {
    std::vector<BlockHash> path = i % 3 == 0 ? traffic.path() : std::vector<BlockHash>{};
    for (std::size_t b = path.size(); b < 20; ++b)
      path.push_back(BlockHash{mix(0xF0000000u + static_cast<unsigned>(i) * 100u + b)});
    for (const auto& row : old.replicas()) {
      Request request;
      request.blocks = path;
      request.pinned = row.id;
      old.fail(old.route(request, a_now += milliseconds(1)).ticket, Outcome::cancelled, a_now);
      fresh.fail(fresh.route(request, b_now += milliseconds(1)).ticket, Outcome::cancelled, b_now);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same_beliefs(old, fresh, a_now, b_now)) << i;
  }
}

TEST(WarmRestart, ASmallerCacheKeepsWhatWouldHaveBeenKept) {
  WarmTraffic traffic(11);
  Router old, fresh;
  test::add_three(old);
  test::add_three(fresh, 16 * 200);
  const Nanos end = test::drive(old, traffic, 500, Nanos{0});
  for (const auto& row : old.replicas()) {
    const auto cache = old.cached(row.id, end);
    const auto restored = fresh.restore_cached(row.id, *cache, kNoon);
    ASSERT_TRUE(restored.ok());
    auto all = eviction_order(cache->tree);
    const auto capacity = static_cast<std::size_t>(fresh.statistics().replicas[row.id.slot].capacity_blocks);
    EXPECT_NEAR(static_cast<double>(capacity), static_cast<double>(cache->capacity_blocks) / 3, 1.0);
    ASSERT_GT(all.size(), capacity);
    EXPECT_EQ(restored->added, capacity);
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(capacity));
    EXPECT_EQ(eviction_order(fresh.cached(row.id, kNoon)->tree), all);
  }
}

TEST(WarmRestart, WhatWasUsedSinceIsYounger) {
  PrefixIndex index;
  Residency model(index, {0, 1}, Tier::device, {.capacity_blocks = 200});
  Residency reference(index, {1, 1}, Tier::device, {.capacity_blocks = 200});
  WarmTraffic traffic(5);
  CachedTree earlier;
  for (int i = 0; i < 200; ++i) reference.insert(traffic.path(), Nanos{i});
  reference.copy(earlier);
  for (int i = 0; i < 4; ++i) {
    const auto path = traffic.path();
    model.insert(path, Nanos{1'000 + i});
    reference.insert(path, Nanos{1'000 + i});
  }
  CachedPaths paths(earlier);
  ASSERT_TRUE(paths.valid());
  model.restore(earlier, paths, Nanos{5'000}, Nanos{0});
  CachedTree a, b;
  model.copy(a);
  reference.copy(b);
  EXPECT_EQ(eviction_order(a), eviction_order(b));
  EXPECT_TRUE(CachedPaths(a).valid());
  model.insert(std::vector<BlockHash>{BlockHash{1}}, Nanos{2'000});
  EXPECT_LE(a.runs.front().last_use, Nanos{2'000});
}

TEST(WarmRestart, APlacementThatComesLateIsStillTheYoungest) {
  PrefixIndex index;
  Residency model(index, {0, 1});
  CachedTree earlier{{{kNoParentRun, 0, 2, Nanos{0}}}, {BlockHash{1}, BlockHash{2}}};
  CachedPaths paths(earlier);
  model.restore(earlier, paths, Nanos{500}, Nanos{0});
  model.insert(std::vector<BlockHash>{BlockHash{3}}, Nanos{499});  // routed before the restore, placed after it
  CachedTree copy;
  model.copy(copy);
  EXPECT_TRUE(CachedPaths(copy).valid());
  EXPECT_EQ(copy.blocks.front(), BlockHash{3});
}

TEST(WarmRestart, TheCopyIsWhatIsHeldBlockByBlock) {
  for (const std::size_t capacity : {std::size_t{0}, std::size_t{120}}) {
    PrefixIndex index;
    Residency model(index, {0, 1}, Tier::device, {.capacity_blocks = capacity});
    WarmTraffic traffic(13 + capacity);
    struct Last {
      int turn;
      std::size_t depth;
      std::vector<BlockHash> path;
    };
    std::map<SequenceHash, Last> naive;  // every block ever inserted, by its whole path
    for (int turn = 0; turn < 400; ++turn) {
      const auto path = traffic.path();
      std::vector<SequenceHash> chain(path.size());
      sequence_hashes(path, chain);
      model.insert(path, Nanos{turn});
      for (std::size_t b = 0; b < path.size(); ++b) {
        naive[chain[b]] = {turn, b,
                           std::vector<BlockHash>(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(b + 1))};
      }
      if (turn % 17 == 0) model.truncate(path, path.size() / 2);
      if (turn % 20 != 0) continue;
      std::vector<std::pair<SequenceHash, Last>> held;
      for (const auto& entry : naive) {
        if (model.held(entry.second.path) == entry.second.path.size()) held.push_back(entry);
      }
      std::sort(held.begin(), held.end(), [](const auto& x, const auto& y) {
        return x.second.turn != y.second.turn ? x.second.turn < y.second.turn : x.second.depth > y.second.depth;
      });
      CachedTree tree;
      model.copy(tree);
      const auto order = eviction_order(tree);
      ASSERT_EQ(order.size(), model.blocks());
      ASSERT_EQ(order.size(), held.size());
      for (const std::size_t most :
           {std::size_t{0}, std::size_t{1}, order.size() / 2, order.size(), order.size() + 1}) {
        CachedTree newest = tree;
        newest.keep_newest(most);
        ASSERT_TRUE(CachedPaths(newest).valid());
        const auto kept = static_cast<std::ptrdiff_t>(std::min(most, order.size()));
        ASSERT_EQ(eviction_order(newest), std::vector<SequenceHash>(order.end() - kept, order.end())) << most;
      }
      for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], held[i].first) << turn << " at " << i;
    }
  }
}

TEST(WarmRestart, BlocksAgeWhileTheProxyIsAway) {
  Policy policy;
  policy.residency_ttl = seconds(60);
  Router old, fresh;
  ASSERT_TRUE(old.set_policy(policy).ok());
  ASSERT_TRUE(fresh.set_policy(policy).ok());
  const auto id = *old.add_replica({.name = "a"}, Nanos{0});
  ASSERT_EQ(*fresh.add_replica({.name = "a"}, Nanos{0}), id);
  const std::vector<BlockHash> early{BlockHash{1}, BlockHash{2}}, late{BlockHash{3}};
  const auto place = [&](const std::vector<BlockHash>& path, Nanos now) {
    Request request;
    request.blocks = path;
    old.fail(old.route(request, now).ticket, Outcome::cancelled, now);
  };
  place(early, seconds(100));
  place(late, seconds(130));
  const auto cache = old.cached(id, seconds(140));
  ASSERT_TRUE(fresh.restore_cached(id, *cache, seconds(5), seconds(15)).ok());  // ages: 55 s and 25 s
  const auto believed = [&] { return fresh.statistics().replicas[0].believed_blocks; };
  fresh.advance(seconds(9));
  EXPECT_EQ(believed(), 3u);
  fresh.advance(seconds(10));
  EXPECT_EQ(believed(), 1u);
  fresh.advance(seconds(40));
  EXPECT_EQ(believed(), 0u);
}

TEST(WarmRestart, RequestsGoOnWhileCachesAreCopiedAndRestored) {
  Router router;
  test::add_three(router);
  std::atomic<bool> stop{false};
  std::atomic<int> busy{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      WarmTraffic traffic(t + 50);
      test::drive(router, traffic, 10, Nanos{0});
      ++busy;
      for (Nanos now{0}; !stop.load(); now += milliseconds(1)) test::drive(router, traffic, 10, now);
    });
  }
  while (busy.load() < 2) std::this_thread::yield();
  for (int round = 0; round < 60; ++round) {
    for (const auto& row : router.replicas()) {
      const auto cache = router.cached(row.id, Nanos{0});
      EXPECT_TRUE(cache.ok());
      EXPECT_TRUE(CachedPaths(cache->tree).valid());
      EXPECT_LE(cache->tree.blocks.size(), cache->capacity_blocks);
      if (round % 10 == 5) {
        EXPECT_TRUE(router.clear_cache(row.id, Nanos{0}).ok());
      }
      EXPECT_TRUE(router.restore_cached(row.id, *cache, Nanos{0}).ok());
    }
    std::this_thread::yield();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  router.advance(Nanos{0});
  const auto statistics = router.statistics();
  std::uint64_t believed = 0;
  for (const auto& replica : statistics.replicas) believed += replica.believed_blocks;
  EXPECT_EQ(statistics.pools[0].memberships, believed);  // model and index still say the same
  EXPECT_GT(believed, 0u);
}

TEST(WarmRestart, RefusesWhatCannotMatchOrIsNoTree) {
  Router router;
  const auto id = *router.add_replica({.name = "a"}, Nanos{0});
  const auto prefill = *router.add_replica({.name = "p", .role = Role::prefill}, Nanos{0});
  ReplicaCache good = *router.cached(id, Nanos{0});
  good.tree.runs = {{kNoParentRun, 0, 2, Nanos{0}}, {0, 1, 1, Nanos{-5}}};
  good.tree.blocks = {BlockHash{1}, BlockHash{2}, BlockHash{3}};
  const auto refused = [&](auto&& spoil, Code code = Code::invalid_argument) {
    ReplicaCache bad = good;
    spoil(bad);
    const auto result = router.restore_cached(id, bad, Nanos{0});
    EXPECT_EQ(result.code(), code);
    EXPECT_EQ(router.statistics().replicas[0].believed_blocks, 0u);
    EXPECT_EQ(router.statistics().pools[0].memberships, 0u);
    return result.ok() ? std::string() : result.error().message;
  };
  EXPECT_NE(refused([](auto& c) { c.block_size = 32; }).find("32"), std::string::npos);
  EXPECT_NE(refused([](auto& c) { c.seed_digest ^= 1; }).find("hash_seed"), std::string::npos);
  refused([](auto& c) { c.tree.runs[1].parent = 1; });
  refused([](auto& c) { c.tree.runs[1].parent_end = 0; });
  refused([](auto& c) { c.tree.runs[1].parent_end = 3; });
  refused([](auto& c) { c.tree.runs[0].parent_end = 1; });
  refused([](auto& c) { c.tree.runs[1].count = 0; });
  refused([](auto& c) { c.tree.runs[1].count = 2; });
  refused([](auto& c) { c.tree.runs[1].last_use = Nanos{1}; });
  refused([](auto& c) { c.tree.blocks.push_back(BlockHash{4}); });
  refused([](auto& c) { c.tree.blocks.pop_back(); });
  refused([](auto& c) { c.taken_at = Nanos{std::numeric_limits<std::int64_t>::max()}; });
  refused([](auto& c) { c.tree.runs[1].last_use = Nanos{std::numeric_limits<std::int64_t>::min()}; });
  EXPECT_EQ(router.restore_cached(prefill, good, Nanos{0}).code(), Code::unsupported);
  EXPECT_EQ(router.cached(prefill, Nanos{0}).code(), Code::unsupported);
  EXPECT_EQ(router.cached(ReplicaId{7, 1}, Nanos{0}).code(), Code::stale);
  ASSERT_TRUE(router.restore_cached(id, good, Nanos{0}).ok());
  EXPECT_EQ(router.statistics().replicas[0].believed_blocks, 3u);
  ASSERT_TRUE(router.remove_replica(id, Nanos{0}).ok());
  EXPECT_EQ(router.restore_cached(id, good, Nanos{0}).code(), Code::stale);
}

}  // namespace
}  // namespace warmroute
