#include "warmroute/route/cost.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "support/every_size.hpp"
#include "warmroute/route/affinity.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/detail/cost_line.hpp"
#include "warmroute/route/detail/inflight_prefixes.hpp"
#include "warmroute/route/detail/placement_queue.hpp"

namespace warmroute {
namespace {

constexpr Rates kRates{12'000'000, 42'000'000, 800, 17'000, 1'000'000};  // 70b on eight H100

TEST(Rates, PriceAttentionExactlyHoweverAPromptIsCut) {
  // a*u + b*(u*m + u(u+1)/2) = T(in) - T(m)
  const std::int64_t in = 10'000;
  const std::int64_t m = 6'000;
  const std::int64_t u = in - m;
  const double expected = 42'000.0 * u + 0.8 * (static_cast<double>(u) * m + u * (u + 1) / 2.0);
  EXPECT_NEAR(static_cast<double>(kRates.prefill_ns(in) - kRates.prefill_ns(m)), expected, 2'000);
  EXPECT_EQ(kRates.prefill_ns(0), 0);
  EXPECT_EQ(kRates.prefill_ns(-5), 0);
}

TEST(Rates, NeverOverflow) {
  Rates r{10'000'000'000, 100'000'000'000, 10'000'000, 1'000'000'000, 0};
  EXPECT_EQ(r.prefill_ns(std::numeric_limits<std::int64_t>::max()), Rates::kMaxNs);
  CostWeights w;
  w.one_plus_beta = 101'000;
  w.gamma = 100'000;
  w.delta = 100'000;
  w.hot = 100'000;
  w.tail = 10'000;
  w.reuse = 1'440'000;
  w.kv = kKvWeight;
  const std::array<SharedStep, 1> shared{{{Rates::kMaxTokens, 65'535}}};
  CostRequest q{Rates::kMaxTokens, std::numeric_limits<std::int64_t>::max(), 1, shared};
  CostReplica huge;
  huge.requests = std::numeric_limits<std::int64_t>::max();
  huge.context_tokens = std::numeric_limits<std::int64_t>::max();
  huge.pending_ns = 65'536 * Rates::kMaxNs;
  huge.held_tokens = 1'000'000'000'000;
  huge.capacity_tokens = 1;
  huge.turnover_milli = std::numeric_limits<std::int64_t>::max();
  q.tail_scale = tail_scale_of(w, 1);
  const CostTerms t = cost_of(w, q, r, huge);
  EXPECT_GT(t.miss, 0);
  EXPECT_GT(t.stall, 0);
  EXPECT_GT(t.decode, 0);
  EXPECT_GE(t.rebate, 0);
  EXPECT_GT(t.tail, 0);
  EXPECT_GT(t.evict, 0);
  EXPECT_GT(t.full, 0);
  EXPECT_GT(t.total, 0);
  EXPECT_LE(t.rebate, t.miss);
  huge.slowness = 4 * LoadBook::kAsItsKind;
  EXPECT_GT(cost_of(w, q, r, huge).total, t.total);
}

// The formula by hand: 4,000 uncached of 10,000 tokens, two requests running there with 8,000 tokens, 50 ms of work waiting.
TEST(Cost, IsTheSumOfItsTermsByHand) {
  const CostWeights w{2'000, 200, 500, 1'000, 20'000'000, 2'000, 10'000};
  CostRequest q;
  q.input_tokens = 10'000;
  q.output_tokens = 256;
  q.replicas = 8;
  CostReplica r;
  r.cached_tokens = 6'000;
  r.host_tokens = 1'000;
  r.disk_tokens = 500;
  r.requests = 2;
  r.pending_ns = 50'000'000;
  r.context_tokens = 8'000;
  r.session_here = true;
  const CostTerms t = cost_of(w, q, kRates, r);
  const std::int64_t prefill = kRates.prefill_ns(10'000) - kRates.prefill_ns(6'000);
  EXPECT_EQ(t.wait, 50'000'000);
  EXPECT_EQ(t.prefill, prefill);
  EXPECT_EQ(t.miss, 2 * prefill);
  EXPECT_EQ(t.stall, prefill / 1'000 * 200 * 2);
  EXPECT_EQ(t.decode,
            (std::int64_t{12'000'000} + 17 * 8'000) * 256 / 1'000 * 500);  // 3 tokens a step stay below the floor
  EXPECT_EQ(t.transfer, 1'000 * 2'000 + 500 * 10'000);
  EXPECT_EQ(t.session, 20'000'000);
  EXPECT_EQ(t.rebate, 0);
  EXPECT_EQ(t.total, t.wait + t.miss + t.stall + t.decode + t.transfer - t.session);
}

TEST(Cost, RebatesOnlyWhatSeveralRequestsInFlightMiss) {
  CostWeights w;
  const std::array<SharedStep, 2> shared{{{4'096, 8}, {6'144, 2}}};
  CostRequest q{10'000, 0, 8, shared};
  CostReplica cold;
  const CostTerms none = cost_of(w, {10'000, 0, 8, {}}, kRates, cold);
  const CostTerms some = cost_of(w, q, kRates, cold);
  // 8 of 8: half of the first stretch; 2 of 8: a fifth of the second.
  const double expected = 2.0 * (static_cast<double>(kRates.prefill_ns(4'096)) * 0.5 +
                                 static_cast<double>(kRates.prefill_ns(6'144) - kRates.prefill_ns(4'096)) * 0.2);
  EXPECT_NEAR(static_cast<double>(some.rebate), expected, 1e5);
  EXPECT_EQ(some.total, none.total - some.rebate);
  CostReplica holder;
  holder.cached_tokens = 6'144;
  EXPECT_EQ(cost_of(w, q, kRates, holder).rebate, 0);
}

// Random rates, weights, prompts and loads, up to the bounds of each.
TEST(CostLine, IsNeverAboveTheFormulaAndCloseBelowIt) {
  test::EverySize draw;
  double furthest = 0;
  for (int i = 0; i < 50'000; ++i) {
    const bool usual = i % 2 == 0;  // by the policy's own weights, of a fleet that could be
    CostWeights w = CostWeights::from(Policy{});
    if (!usual)
      w = {1'000 + draw(100'000), draw(100'000), draw(100'000), draw(100'000),  0, draw(1'000), draw(1'000),
           draw(1'000),           draw(10'000),  draw(100'000), draw(kKvWeight)};
    const Rates rates =
        usual ? Rates{} : Rates{draw(10'000'000'000), draw(100'000'000'000), draw(10'000'000), draw(1'000'000'000), 0};
    const std::array<SharedStep, 1> shared{{{draw(20'000), 2 + draw(1'000)}}};
    CostRequest q{1 + draw(usual ? 50'000 : Rates::kMaxTokens), draw(usual ? 1'000 : kMaxOutput), 1 + draw(100)};
    if (draw(1) == 0) q.shared = shared;
    q.tail_scale = tail_scale_of(w, draw(1'000'000'000));
    CostReplica r;
    r.cached_tokens = draw(1) == 0 ? 0 : draw(q.input_tokens);
    r.host_tokens = draw(r.cached_tokens);
    const std::int64_t whole = rates.prefill_ns(q.input_tokens);
    const detail::CostLine line = detail::cost_line(w, q, rates, whole, r);
    const detail::ReplicaLoad load{draw(usual ? 200 : 100'000), draw(usual ? 10'000'000'000 : 65'536 * Rates::kMaxNs),
                                   draw(usual ? 1'000'000 : 10 * kMaxContext)};
    r.requests = load.requests;
    r.pending_ns = load.pending_ns;
    r.context_tokens = load.context_tokens;
    const std::int64_t exact = cost_of(w, q, rates, whole, r).total;
    ASSERT_LE(line.at(load), exact) << i;
    if (usual) furthest = std::max(furthest, static_cast<double>(exact - line.at(load)) / static_cast<double>(exact));
    r.capacity_tokens = 1 + draw(1'000'000);  // what it leaves out only adds
    r.held_tokens = draw(1'000'000);
    r.turnover_milli = draw(10'000);
    r.slowness += static_cast<std::int32_t>(draw(3'072));
    ASSERT_LE(line.at(load), cost_of(w, q, rates, whole, r).total) << i;
  }
  EXPECT_LT(furthest, 0.002);
}

TEST(InflightPrefixes, CountAtCheckpointsThatFallAlongTheChain) {
  detail::InflightPrefixes table(1'024);
  std::vector<BlockHash> a;
  std::vector<BlockHash> b;
  for (std::uint64_t i = 0; i < 100; ++i) {
    a.push_back(BlockHash{i});
    b.push_back(BlockHash{i < 40 ? i : i + 1'000});
  }
  const auto enter = [&](const std::vector<BlockHash>& path) {
    std::vector<std::uint32_t> entries;
    bool others = false;
    for (detail::InflightPrefixes::Cursor c; c.next(path);) entries.push_back(table.enter(c.hash, others));
    return entries;
  };
  const auto counts = [&](const std::vector<BlockHash>& path) {
    std::vector<std::pair<std::size_t, std::int64_t>> out;
    for (detail::InflightPrefixes::Cursor c; c.next(path);) out.emplace_back(c.depth, table.count(c.hash));
    return out;
  };
  const auto ea = enter(a);
  const auto eb = enter(b);
  for (const auto& [depth, count] : counts(a)) EXPECT_EQ(count, depth <= 40 ? 2 : 1) << depth;
  for (const auto e : ea) table.leave(e);
  for (const auto& [depth, count] : counts(a)) EXPECT_EQ(count, depth <= 40 ? 1 : 0) << depth;
  for (const auto e : eb) table.leave(e);
  for (const auto& [depth, count] : counts(b)) EXPECT_EQ(count, 0) << depth;
}

TEST(InflightPrefixes, HaveFewCheckpointsForLongPrompts) {
  std::size_t depth = 0;
  std::size_t count = 0;
  while ((depth = detail::next_checkpoint(depth)) <= (std::size_t{1} << 17)) ++count;
  EXPECT_LE(count, detail::kMaxCheckpoints);
  EXPECT_EQ(detail::next_checkpoint(320), 384u);  // 6,144 tokens of 16 per block lie on a checkpoint
}

TEST(InflightPrefixes, NeverLoseACountWhenTheTableIsCrowded) {
  detail::InflightPrefixes table(16);
  std::vector<std::uint32_t> entries;
  bool others = false;
  for (std::uint64_t i = 0; i < 200; ++i) entries.push_back(table.enter(mix(i), others));
  for (const auto e : entries) table.leave(e);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(table.count(mix(i)), 0);
}

TEST(PlacementQueue, RefusesWhenFullAndKeepsOrder) {
  detail::PlacementQueue queue(8);
  for (int lap = 0; lap < 5; ++lap) {
    for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(queue.push(i));
    EXPECT_FALSE(queue.push(99));
    std::uint64_t note = 0;
    for (std::uint64_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(queue.pop(note));
      EXPECT_EQ(note, i);
    }
    EXPECT_FALSE(queue.pop(note));
  }
}

TEST(SessionTable, ForgetsTheOldestOfASetAndWhatIsPastItsTime) {
  SessionTable table(8);
  const ReplicaId a{3, 1};
  table.remember(session_key("one", "", ""), a, seconds(10));
  EXPECT_TRUE(SessionTable::same_replica(table.find(session_key("one", "", ""), seconds(11), seconds(5)), a));
  EXPECT_FALSE(table.find(session_key("one", "", ""), seconds(16), seconds(5)).valid());
  EXPECT_FALSE(table.find(session_key("one", "tenant", ""), seconds(11), seconds(5)).valid());
  EXPECT_FALSE(table.find(session_key("on", "", "e"), seconds(11), seconds(5)).valid());
  EXPECT_FALSE(table.find(0, seconds(11), seconds(5)).valid());
  for (int i = 0; i < 100; ++i) table.remember(session_key(std::to_string(i), "", ""), a, seconds(20 + i));
  EXPECT_FALSE(table.find(session_key("0", "", ""), seconds(120), seconds(1'000)).valid());
  EXPECT_TRUE(table.find(session_key("99", "", ""), seconds(120), seconds(1'000)).valid());
}

TEST(Baselines, RankAsTheirDefinitionsSay) {
  BaselineView v;
  v.eligible = 4;
  v.turn = 6;
  for (std::uint32_t i = 0; i < 4; ++i) {
    v.ordinal = i;
    EXPECT_EQ(round_robin_rank(v).first, (i + 4 - 6 % 4) % 4);
  }
  v.requests = 7;
  v.pending_tokens = 9;
  v.cached_tokens = 11;
  EXPECT_EQ(least_requests_rank(v).first, 7);
  EXPECT_EQ(least_tokens_rank(v).first, 9);
  EXPECT_EQ(longest_match_rank(v).first, -11);
  EXPECT_EQ(longest_match_rank(v).second, 7);
  for (std::uint64_t draw = 0; draw < 200; ++draw) {  // exactly two distinct candidates are drawn
    int drawn = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      v.draw = mix(draw);
      v.ordinal = i;
      drawn += power_of_two_rank(v).first == 0 ? 1 : 0;
    }
    EXPECT_EQ(drawn, 2);
  }
}

}  // namespace
}  // namespace warmroute
