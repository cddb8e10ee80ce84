// One decision per rule on fixed views, worked out on paper. Toy machine: 1 ms per token, blocks of 4 tokens.
#include "warmroute/trace/routing_rule.hpp"

#include <gtest/gtest.h>

#include <set>

#include "trace/recorder.hpp"

namespace warmroute::trace {
namespace {

constexpr std::int64_t kMsPs = 1'000'000'000;

struct State {
  std::int64_t matched, requests, waiting, pending, tokens = 0, used = 0, cached = 0;
};

class Decision {
 public:
  explicit Decision(const std::vector<State>& states) {
    for (std::uint32_t r = 0; r < states.size(); ++r) {
      const State& s = states[r];
      sights_.push_back(
          {r, s.matched, s.requests, s.waiting, s.pending, s.pending * kMsPs, s.tokens, s.used, s.cached});
    }
  }
  /// returns: every replica that the rule chooses under some seed.
  [[nodiscard]] std::set<std::size_t> of(const char* text, const std::vector<std::uint64_t>& blocks = {},
                                         std::int64_t input = 20) const {
    std::set<std::size_t> chosen;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      auto rule = make_rule(*parse_rule(text), setting(seed));
      EXPECT_TRUE(rule) << text;
      for (const ReplicaSight& s : sights_) (*rule)->joined(s.replica, 0);
      SplitMix64 ties{seed};
      chosen.insert((*rule)->choose({0, ~std::uint32_t{0}, input, blocks, 0}, sights_, ties));
    }
    return chosen;
  }
  static RuleSetting setting(std::uint64_t seed) {
    RuleSetting out;
    out.hardware = toy().hardware;
    out.block_tokens = 4;
    out.capacity_blocks = 100;
    out.max_replicas = 4;
    out.distinct_blocks = 100;
    out.seed = seed;
    return out;
  }

 private:
  std::vector<ReplicaSight> sights_;
};

using Chosen = std::set<std::size_t>;

TEST(RoutingRule, LooksAtLoadAlone) {
  const Decision d({{0, 3, 0, 10}, {0, 1, 0, 30}, {0, 2, 0, 5}});
  EXPECT_EQ(d.of("least"), (Chosen{1}));
  EXPECT_EQ(d.of("pending"), (Chosen{2}));
  EXPECT_EQ(d.of("random"), (Chosen{0, 1, 2}));
  EXPECT_EQ(d.of("rr"), (Chosen{0}));
  EXPECT_EQ(d.of("p2c"), (Chosen{1, 2}));  // the worst of three never wins
}

TEST(RoutingRule, BreaksExactTiesAtRandom) {
  const Decision d({{0, 1, 0, 10}, {0, 1, 0, 10}, {0, 1, 0, 10}, {0, 2, 0, 10}});
  EXPECT_EQ(d.of("least"), (Chosen{0, 1, 2}));
  EXPECT_EQ(d.of("ttft"), (Chosen{0, 1, 2, 3}));
}

TEST(RoutingRule, TakesTheLongestMatchThenTheFewestRequests) {
  EXPECT_EQ(Decision({{8, 9, 0, 0}, {8, 4, 0, 0}, {4, 0, 0, 0}}).of("match"), (Chosen{1}));
}

TEST(RoutingRule, BalancesOrMatchesAsSglang) {
  // 80 - 2 > 64 and 80 > 1.5 * 2: the least loaded, whatever it holds.
  EXPECT_EQ(Decision({{16, 80, 0, 0}, {0, 2, 0, 0}}).of("sglang"), (Chosen{1}));
  // In balance, 16 of 20 tokens > 0.3: the match. 4 of 20 is not: the smallest tree, or the fewest requests.
  EXPECT_EQ(Decision({{16, 60, 0, 0}, {0, 2, 0, 0}}).of("sglang"), (Chosen{0}));
  const Decision little({{4, 5, 0, 0, 0, 0, 10}, {0, 6, 0, 0, 0, 0, 3}});
  EXPECT_EQ(little.of("sglang"), (Chosen{1}));
  EXPECT_EQ(little.of("sglang2"), (Chosen{0}));
}

TEST(RoutingRule, CountsBlocksAsDynamo) {
  // (pending + 20 - m) / 4, and the 5 blocks of the prompt on either: 0: (8 + 4) / 4 = 3; 1: 20 / 4 = 5; 2: (6 + 8) / 4 = 3.5.
  const Decision d({{16, 9, 0, 8}, {0, 0, 0, 0}, {12, 1, 0, 6}});
  EXPECT_EQ(d.of("dynamo", {1, 2, 3, 4, 5}), (Chosen{0}));
  // In flight on 0: the same prompt once: adding it again there adds no block. (0 + 20)/4 + 5 against (0 + 20)/4 + 5: a tie;
  // without that sharing 0 would cost 10 blocks.
  auto rule = *make_rule(*parse_rule("dynamo"), Decision::setting(1));
  const std::vector<std::uint64_t> blocks{1, 2, 3, 4, 5};
  SplitMix64 ties{1};
  const std::vector<ReplicaSight> first{{.replica = 0}};
  const std::vector<ReplicaSight> both{{.replica = 0}, {.replica = 1}};
  EXPECT_EQ(rule->choose({0, 0, 20, blocks, 0}, first, ties), 0u);
  const std::vector<std::uint64_t> others{1, 2, 9, 8, 7};  // 3 new blocks there: 8 against 5
  EXPECT_EQ(rule->choose({1, 0, 20, others, 0}, both, ties), 1u);
  EXPECT_EQ(rule->booked(), 2);
  rule->finished({0, 0, 20, blocks, 0}, 0, 0, 1);
  rule->lost({1, 0, 20, others, 0}, 1);
  EXPECT_EQ(rule->booked(), 0);
}

TEST(RoutingRule, AddsScoresAsGaie) {
  // 0: 3 * 0.8 + 2 * 0 + 2 * 0.5 = 3.4; 1: 0 + 2 * 1 + 2 * 1 = 4; without KV weight 2.4 against 2.
  const Decision d({{16, 9, 5, 0, 0, 50}, {0, 1, 0, 0, 0, 0}});
  EXPECT_EQ(d.of("gaie"), (Chosen{1}));
  EXPECT_EQ(d.of("gaie:kvw=0"), (Chosen{0}));
}

TEST(RoutingRule, LeavesTheWarmOnlyAfterAWaitAsLlmd) {
  // One token per ms: 16 of 20 are warm. 0 waits 30 ms longer than the least cold one.
  const Decision d({{16, 3, 0, 40}, {0, 1, 0, 10}, {4, 9, 0, 12}});
  EXPECT_EQ(d.of("llmd:tau=30"), (Chosen{0}));
  EXPECT_EQ(d.of("llmd:tau=29"), (Chosen{2}));  // 40 + 4, 10 + 20, 12 + 16
  EXPECT_EQ(d.of("llmd:tau=29:by=req"), (Chosen{1}));
}

TEST(RoutingRule, StaysWithinOneSigmaAsAibrix) {
  // Mean 4, sigma sqrt((16 + 0 + 16) / 3) = 3.27: up to 7.27. 8 is beyond: the next best match.
  const Decision d({{16, 8, 0, 0}, {8, 4, 0, 0}, {0, 0, 0, 0}});
  EXPECT_EQ(d.of("aibrix"), (Chosen{1}));
  EXPECT_EQ(d.of("aibrix:gap=7"), (Chosen{2}));  // 8 - 0 > 7
  EXPECT_EQ(Decision({{0, 3, 0, 0}, {0, 2, 0, 0}}).of("aibrix"), (Chosen{1}));
}

TEST(RoutingRule, MultipliesTokensAndBatchAsLmetric) {
  // (30 + 4) * 2 = 68 against (10 + 20) * 3 = 90 and (0 + 20) * 4 = 80.
  EXPECT_EQ(Decision({{16, 1, 0, 30}, {0, 2, 0, 10}, {0, 3, 0, 0}}).of("lmetric"), (Chosen{0}));
}

TEST(RoutingRule, PricesAMissForThoseBehind) {
  // TTFT: 16 + 4 = 20 against 0 + 19: 1. With beta 1: 16 + 8 against 38: 0.
  const Decision d({{16, 0, 0, 16}, {1, 0, 0, 0}});
  EXPECT_EQ(d.of("ttft"), (Chosen{1}));
  EXPECT_EQ(d.of("priced:beta=0"), (Chosen{1}));
  EXPECT_EQ(d.of("priced:beta=1"), (Chosen{0}));
  EXPECT_EQ(d.of("priced:beta=0:unit=tok"), (Chosen{1}));
  // Near ties: 20 and 19 are within 10 %, or 1 ms.
  EXPECT_EQ(d.of("priced:beta=0:eps=0.1"), (Chosen{0, 1}));
  EXPECT_EQ(d.of("priced:beta=0:delta=1"), (Chosen{0, 1}));
  EXPECT_EQ(d.of("priced:beta=0:eps=0.1:tie=match"), (Chosen{0}));
}

TEST(RoutingRule, PricesTheStallAndTheOwnDecode) {
  // Beta 0: 4 + gi * 10 * 4 against 20 + 0: gi 0.3: 16; 0.5: 24.
  const Decision d({{16, 10, 0, 0}, {0, 0, 0, 0}});
  EXPECT_EQ(d.of("priced:beta=0:gi=0.3"), (Chosen{0}));
  EXPECT_EQ(d.of("priced:beta=0:gi=0.5"), (Chosen{1}));
  // 256 tokens at a step of 11 ms against 1 ms: dw 0.001: 4 + 2.8 against 20 + 0.26; 0.01: 4 + 28 against 22.6.
  EXPECT_EQ(d.of("priced:beta=0:dw=0.001"), (Chosen{0}));
  EXPECT_EQ(d.of("priced:beta=0:dw=0.01"), (Chosen{1}));
}

TEST(RoutingRule, RebatesAPrefixThatSeveralInFlightMiss) {
  // Replica 0 holds 16 of 20 tokens and has 10 ms of work; 1 holds nothing. 10 + 8 = 18 against 40 (beta 1). With four others
  // in flight that contain the four blocks, N = 2, a copy is charged 1 / (1 + 4 / 2): 40 - 2 * 16 * 2/3 = 18.7; five: 17.1.
  const std::vector<std::uint64_t> blocks{1, 2, 3, 4};
  const std::vector<ReplicaSight> sights{{.replica = 0, .matched_tokens = 16, .pending_ps = 10 * kMsPs},
                                         {.replica = 1}};
  for (const std::uint32_t others : {4u, 5u}) {
    auto rule = *make_rule(*parse_rule("priced:beta=1:hot=1"), Decision::setting(1));
    SplitMix64 ties{1};
    const std::vector<ReplicaSight> there{{.replica = 0}};
    for (std::uint32_t i = 0; i < others; ++i) rule->choose({i, 0, 20, blocks, 0}, there, ties);
    EXPECT_EQ(rule->choose({9, 0, 20, blocks, 0}, sights, ties), others == 4 ? 0u : 1u);
  }
}

TEST(RoutingRule, KeepsAKeysHomeAndSpillsAlongTheRing) {
  const Decision idle({{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}});
  const std::vector<std::uint64_t> blocks{7, 8, 9};
  const Chosen home = idle.of("hash:k=2", blocks);
  ASSERT_EQ(home.size(), 1u);
  EXPECT_EQ(idle.of("hash:k=2", {7, 8, 30}), home);  // the key is block 2's id
  EXPECT_EQ(idle.of("session", blocks), home);       // no conversation: the same key
  EXPECT_EQ(idle.of("chwbl:c=1.25:k=2", blocks), home);
  std::vector<State> busy(3, State{0, 0, 0, 0});
  busy[*home.begin()].requests = 2;  // 2 > 1.25 * 3 / 3
  const Chosen next = Decision(busy).of("chwbl:c=1.25:k=2", blocks);
  ASSERT_EQ(next.size(), 1u);
  EXPECT_NE(next, home);
  Chosen homes;
  for (std::uint64_t key = 0; key < 40; ++key) homes.merge(idle.of("hash:k=1", {key}));
  EXPECT_EQ(homes.size(), 3u);
}

TEST(RoutingRule, StaysWithinTheTwoCandidatesOfDualmap) {
  std::vector<State> states(4, State{0, 0, 0, 0});
  std::vector<std::uint64_t> blocks{0, 0, 42};
  Chosen pair;
  while (pair.size() < 2 && blocks[1] < 40) {  // a key whose two homes differ
    ++blocks[1];
    pair = Decision(states).of("dualmap", blocks);
  }
  ASSERT_EQ(pair.size(), 2u);
  const std::size_t a = *pair.begin(), b = *pair.rbegin();
  states[a].matched = 8;
  states[a].pending = 4'987;  // + 12 own is within 5 s; one more is not
  EXPECT_EQ(Decision(states).of("dualmap", blocks), (Chosen{a}));
  states[a].pending = 4'989;
  EXPECT_EQ(Decision(states).of("dualmap", blocks), (Chosen{b}));
}

TEST(RoutingRule, ReadsItsSpelling) {
  const auto spec = parse_rule("chwbl:c=1.25:key=session");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->name, "chwbl");
  ASSERT_EQ(spec->options.size(), 2u);
  EXPECT_EQ(spec->options[1].second, "session");
  for (const char* text : {"", ":c=1", "c=1", "hash:k", "hash:=2", "hash:"}) EXPECT_FALSE(parse_rule(text)) << text;
  for (const std::string_view name : routing_rule_names()) {
    EXPECT_TRUE(make_rule({std::string(name), {}}, Decision::setting(1))) << name;
  }
}

}  // namespace
}  // namespace warmroute::trace
