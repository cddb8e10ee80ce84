// The two situations that break plain affinity and plain balancing, under the virtual clock, three seeds each.
#include <gtest/gtest.h>

#include <array>
#include <set>

#include "route/fleet.hpp"

namespace warmroute::test {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kSystemTokens = 6'144;

// Agents in a closed loop: one shared system prompt, then each its own growing conversation.
struct Agents {
  struct State {
    std::int64_t turn = 0;
    std::int64_t context = kSystemTokens;
    std::int64_t session = 0;
    std::vector<BlockHash> path;
  };
  Fleet& fleet;
  Random random;
  std::vector<State> agents;
  std::unordered_map<std::uint64_t, std::size_t> owner;
  std::unordered_map<std::uint64_t, std::int64_t> output;
  std::uint64_t next_id = 1;
  std::int64_t horizon_us;

  Agents(Fleet& f, std::uint64_t seed, std::size_t count, std::int64_t horizon)
      : fleet(f), random(seed), agents(count), horizon_us(horizon) {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < count; ++i) {
      at += random.between(0, kSecond / 5);
      turn(i, at);
    }
    fleet.on_finished = [this](const FinishedRequest& f_) {
      const std::size_t i = owner.at(f_.id);
      agents[i].context += output.at(f_.id);
      turn(i, f_.finished_us + random.between(kSecond / 2, 4 * kSecond + kSecond / 2));
    };
  }
  void turn(std::size_t i, std::int64_t at_us) {
    if (at_us > horizon_us) return;
    State& a = agents[i];
    if (a.turn == 20) {
      a = {};
      a.session = random.between(1, 1'000'000'000);
    }
    a.context += a.turn++ == 0 ? random.between(256, 1'023) : random.between(128, 2'047);
    a.path.clear();
    append_blocks(a.path, 42, kSystemTokens, 16);
    append_blocks(a.path, 1'000 + i + static_cast<std::uint64_t>(a.session) * 100, a.context, 16);
    FleetRequest r;
    r.path = a.path;
    r.input_tokens = a.context;
    r.output_tokens = random.between(64, 511);
    owner[next_id] = i;
    output[next_id++] = r.output_tokens;
    fleet.schedule(at_us, std::move(r));
  }
};

struct AgentsResult {
  double hit_ratio;
  double imbalance;
  double ttft_ms;
  std::size_t served;
  std::size_t refused;
};

AgentsResult run_agents(Algorithm algorithm, std::uint64_t seed) {
  Fleet::Options options;
  options.policy.algorithm = algorithm;
  options.policy.seed = seed;
  Fleet fleet(options);
  fleet.warm_up_us = 30 * kSecond;
  const Agents agents(fleet, seed, 50, 150 * kSecond);
  fleet.run(150 * kSecond);
  return {fleet.hit_ratio(), fleet.imbalance(), fleet.mean_ttft_ms(), fleet.finished_requests.size(), fleet.refused};
}

void print(std::string_view name, const AgentsResult& r) {
  std::printf("  %-16.*s hit %.3f  imbalance %.2f  mean TTFT %.0f ms  served %zu\n", static_cast<int>(name.size()),
              name.data(), r.hit_ratio, r.imbalance, r.ttft_ms, r.served);
}

class FiftyAgents : public testing::TestWithParam<std::uint64_t> {};

TEST_P(FiftyAgents, ShareOnePromptWithoutPinningOneReplica) {
  const AgentsResult ours = run_agents(Algorithm::cost, GetParam());
  EXPECT_EQ(ours.refused, 0u);
  EXPECT_LE(ours.imbalance, 1.5);
  double best_hit = ours.hit_ratio;
  for (std::size_t i = 1; i < kAlgorithmNames.size(); ++i) {
    const AgentsResult other = run_agents(static_cast<Algorithm>(i), GetParam());
    best_hit = std::max(best_hit, other.hit_ratio);
    print(kAlgorithmNames[i], other);
  }
  print("cost", ours);
  EXPECT_GE(ours.hit_ratio, 0.9 * best_hit);
}

TEST_P(FiftyAgents, UseASecondHolderAsSoonAsItExists) {
  Fleet::Options options;
  options.policy.seed = GetParam();
  Fleet fleet(options);
  const Agents agents(fleet, GetParam(), 50, 60 * kSecond);
  fleet.run(60 * kSecond);
  auto requests = fleet.finished_requests;
  std::sort(requests.begin(), requests.end(), [](const auto& a, const auto& b) { return a.arrived_us < b.arrived_us; });
  const auto second = std::find_if(requests.begin(), requests.end(),
                                   [&](const auto& r) { return r.replica != requests.front().replica; });
  ASSERT_NE(second, requests.end());
  std::size_t hits = 0;
  std::size_t later = 0;
  for (auto r = second + 1; r != requests.end() && later < 20; ++r) {
    if (r->arrived_us < second->first_token_us) continue;
    ++later;
    if (r->replica == second->replica && r->cached_tokens >= kSystemTokens - 16) ++hits;
  }
  EXPECT_EQ(later, 20u);
  EXPECT_GE(hits, 2u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FiftyAgents, testing::Values(1, 2, 3));

// One conversation of ten turns, growing by 2,000 tokens each, on three replicas that all serve others: two of them busily.
struct TenTurnsRun {
  std::int64_t prefilled = 0;  // tokens of turns 2 to 10 that were computed
  std::int64_t added = 0;      // tokens that these turns added
  std::vector<Explanation> explained;
  std::vector<FinishedRequest> turns;
};

TenTurnsRun run_ten_turns(Algorithm algorithm, std::uint64_t seed) {
  Fleet::Options options;
  options.replicas = 3;
  options.policy.algorithm = algorithm;
  options.policy.seed = seed;
  Fleet fleet(options);
  Random random(seed);
  TenTurnsRun run;
  constexpr std::int64_t kTurnTokens = 2'000;
  constexpr std::uint64_t kFirstTurn = 1'000'000;
  const auto turn = [&](std::int64_t n, std::int64_t at_us) {
    FleetRequest r;
    append_blocks(r.path, 7, n * kTurnTokens, 16);
    r.input_tokens = n * kTurnTokens;
    r.output_tokens = 100;
    r.session = "ten-turns";
    return fleet.schedule(at_us, std::move(r), kFirstTurn + static_cast<std::uint64_t>(n));
  };
  fleet.on_routing = [&](std::uint64_t id, const Request& request, Nanos now) {
    if (id > kFirstTurn) run.explained.push_back(fleet.router.explain(request, now));
  };
  fleet.on_finished = [&](const FinishedRequest& f) {
    if (f.id <= kFirstTurn) return;
    const auto n = static_cast<std::int64_t>(f.id - kFirstTurn);
    run.turns.push_back(f);
    if (n > 1) {
      run.prefilled += f.input_tokens - f.cached_tokens;
      run.added += kTurnTokens;
    }
    if (n < 10) turn(n + 1, f.finished_us + random.between(kSecond / 2, 2 * kSecond));
  };
  turn(1, 5 * kSecond);
  for (std::int64_t at = 10'000; at < 60 * kSecond; at += random.between(100'000, 200'000)) {
    FleetRequest r;
    append_blocks(r.path, random.next(), 3'000, 16);
    r.input_tokens = 3'000;
    r.output_tokens = 150;
    const std::int64_t who = random.between(0, 9);  // 10 % to the first, 45 % to each of its neighbours
    r.pinned = fleet.ids[who == 0 ? 0 : who < 5 ? 1 : 2];
    fleet.schedule(at, std::move(r));
  }
  fleet.run(60 * kSecond);
  return run;
}

class TenTurns : public testing::TestWithParam<std::uint64_t> {};

TEST_P(TenTurns, PrefillOnlyWhatIsNewFromTheSecondTurnOn) {
  const TenTurnsRun run = run_ten_turns(Algorithm::cost, GetParam());
  ASSERT_EQ(run.turns.size(), 10u);
  EXPECT_EQ(run.turns.back().input_tokens, 20'000);
  for (std::size_t i = 1; i < run.turns.size(); ++i) {
    EXPECT_EQ(run.turns[i].replica, run.turns[0].replica);
    EXPECT_LE(run.turns[i].input_tokens - run.turns[i].cached_tokens, 2'000 + 16);
    EXPECT_EQ(run.turns[i].decision.total_cached().value, run.turns[i].cached_tokens);  // predicted is what happened
  }
  const TenTurnsRun plain = run_ten_turns(Algorithm::round_robin, GetParam());
  EXPECT_GT(plain.prefilled, 2 * run.prefilled);
}

TEST_P(TenTurns, AreExplainedInMilliseconds) {
  const TenTurnsRun run = run_ten_turns(Algorithm::cost, GetParam());
  const Rates rates = rates_of(*trace::find_hardware_profile("70b-8xh100"));
  ASSERT_EQ(run.explained.size(), 10u);
  for (std::size_t i = 1; i < run.explained.size(); ++i) {
    const Explanation& e = run.explained[i];
    const std::int64_t input = static_cast<std::int64_t>(i + 1) * 2'000;
    const auto chosen = std::find_if(e.candidates.begin(), e.candidates.end(), [](const auto& c) { return c.chosen; });
    ASSERT_NE(chosen, e.candidates.end());
    const auto prefill = static_cast<double>(rates.prefill_ns(input) - rates.prefill_ns(chosen->cached_tokens[0]));
    EXPECT_NEAR(static_cast<double>(chosen->cost.prefill), prefill, 0.05 * prefill);  // at learned rates
    EXPECT_GT(chosen->cached_tokens[0], input - 2'000 - 17);
    char text[32];
    std::snprintf(text, sizeof text, "to prefill in %.3f ms", static_cast<double>(chosen->cost.prefill) / 1e6);
    EXPECT_NE(to_text(e).find(text), std::string::npos) << to_text(e);
    for (const auto& c : e.candidates) {
      if (c.chosen) continue;
      EXPECT_GT(c.cost.prefill, chosen->cost.prefill);
      EXPECT_FALSE(c.lost_because.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TenTurns, testing::Values(1, 2, 3));

}  // namespace
}  // namespace warmroute::test
