// Rates from observed times: the least squares alone, on samples made of known rates, then a router in front of a small machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "warmroute/route/baselines.hpp"
#include "warmroute/route/detail/learned_rates.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

using detail::RateLearner;
using detail::RateSample;

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed << 32) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(mix(state_++) % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

Rates times(Rates r, double floor, double token, double pair, double context) {
  const auto by = [](std::int64_t v, double f) { return static_cast<std::int64_t>(static_cast<double>(v) * f); };
  return {by(r.floor_ns, floor), by(r.token_ps, token), by(r.pair_ps, pair), by(r.context_ps, context),
          by(r.overhead_ns, floor)};
}

double ratio(std::int64_t learned, std::int64_t real) {
  return static_cast<double>(learned) / static_cast<double>(real);
}

// One prefill or one answer, as `real` takes and as `declared` explains it, 5 % of noise.
struct Work {
  explicit Work(std::uint64_t seed) : draws(seed) {}
  RateSample sample(const Rates& declared, const Rates& real) {
    RateSample out;
    if (draws.between(0, 1) == 0) {
      const std::int64_t tokens = draws.between(500, 30'000);
      out.part_ns = parts(declared, tokens, tokens * tokens / 2'000, 0, 1, 0);
      out.observed_ns = total(parts(real, tokens, tokens * tokens / 2'000, 0, 1, 0));
    } else {
      out.kind = RateSample::Kind::decode;
      const std::int64_t tokens = draws.between(0, 50'000), steps = draws.between(50, 800);
      const std::int64_t context = draws.between(2'000, 400'000);
      out.part_ns = parts(declared, tokens, tokens * 4, steps, steps, context);
      out.observed_ns = total(parts(real, tokens, tokens * 4, steps, steps, context));
    }
    out.observed_ns = out.observed_ns * draws.between(950, 1'050) / 1'000;
    return out;
  }
  static std::array<std::int64_t, 4> parts(const Rates& r, std::int64_t tokens, std::int64_t kilopairs,
                                           std::int64_t floors, std::int64_t steps, std::int64_t context) {
    return {floors * r.floor_ns + steps * r.overhead_ns, r.token_ps * tokens / 1'000, r.pair_ps * kilopairs,
            r.context_ps * context / 1'000 * steps};
  }
  static std::int64_t total(const std::array<std::int64_t, 4>& parts) {
    return parts[0] + parts[1] + parts[2] + parts[3];
  }
  Draws draws;
};

void expect_learned(const RateLearner& learner, const Rates& real, double within) {
  const Rates r = learner.rates();
  EXPECT_TRUE(learner.trusted());
  EXPECT_NEAR(ratio(r.floor_ns, real.floor_ns), 1, within);
  EXPECT_NEAR(ratio(r.token_ps, real.token_ps), 1, within);
  EXPECT_NEAR(ratio(r.pair_ps, real.pair_ps), 1, within);
  EXPECT_NEAR(ratio(r.context_ps, real.context_ps), 1, within);
}

TEST(LearnedRates, FindTheTruthFromFourTimesOffInAnyOfThem) {
  const Rates real;
  const std::vector<std::array<double, 4>> offs{
      {4, 1, 1, 1},       {1, 4, 1, 1},      {1, 1, 4, 1},    {1, 1, 1, 4},    {4, 4, 4, 4},
      {0.25, 1, 1, 1},    {1, 0.25, 1, 1},   {1, 1, 0.25, 1}, {1, 1, 1, 0.25}, {0.25, 0.25, 0.25, 0.25},
      {4, 0.25, 4, 0.25}, {0.25, 4, 0.25, 4}};
  for (const auto& off : offs) {
    SCOPED_TRACE(testing::PrintToString(off));
    RateLearner learner;
    const Rates declared = times(real, off[0], off[1], off[2], off[3]);
    learner.declare(declared);
    Work work(7);
    for (int i = 0; i < 200; ++i) learner.observe(work.sample(declared, real), RateLearner::kOne);
    expect_learned(learner, real, 0.10);
  }
}

TEST(LearnedRates, AreNotMovedByOneAbsurdSampleInTwenty) {
  const Rates real;
  RateLearner learner;
  const Rates declared = times(real, 1, 2, 0.5, 2);
  learner.declare(declared);
  Work work(11);
  for (int i = 0; i < 600; ++i) {
    RateSample s = work.sample(declared, real);
    if (i % 20 == 3) s.observed_ns *= i % 40 == 3 ? 1'000 : 30;
    learner.observe(s, RateLearner::kOne);
  }
  expect_learned(learner, real, 0.10);
  // Nor by what cannot be at all.
  const Rates before = learner.rates();
  const std::int64_t samples = learner.samples();
  RateSample none;
  EXPECT_EQ(learner.observe(none, RateLearner::kOne), 0);
  none.observed_ns = -5;
  EXPECT_EQ(learner.observe(none, RateLearner::kOne), 0);
  none.observed_ns = INT64_MAX;
  none.part_ns = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  EXPECT_EQ(learner.observe(none, RateLearner::kOne), 0);
  none.part_ns = {-1, 5, 5, 5};
  none.observed_ns = 100;
  EXPECT_EQ(learner.observe(none, RateLearner::kOne), 0);
  EXPECT_EQ(learner.samples(), samples);
  EXPECT_EQ(learner.rates(), before);
}

TEST(LearnedRates, FollowHardwareThatChanges) {
  const Rates real;
  RateLearner learner;
  learner.declare(real);
  Work work(13);
  for (int i = 0; i < 1'000; ++i) learner.observe(work.sample(real, real), RateLearner::kOne);
  const Rates half = times(real, 2, 2, 2, 2);
  for (int i = 0; i < 300; ++i) learner.observe(work.sample(real, half), RateLearner::kOne);
  expect_learned(learner, half, 0.15);
}

TEST(LearnedRates, AreNotUsedWhileTheyExplainNothing) {
  const Rates declared;
  RateLearner learner;
  learner.declare(declared);
  Draws draws(17);
  Work work(19);
  for (int i = 0; i < 500; ++i) {
    RateSample s = work.sample(declared, declared);
    s.observed_ns *= draws.between(1, 9);  // somebody else's requests are in there
    learner.observe(s, RateLearner::kOne);
  }
  EXPECT_FALSE(learner.trusted());
  EXPECT_EQ(learner.rates(), declared);
}

TEST(LearnedRates, StayWithinBoundsWhateverComes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Draws draws(seed);
    RateLearner learner;
    const Rates declared{draws.between(0, 10'000'000'000), draws.between(0, 100'000'000'000),
                         draws.between(0, 10'000'000), draws.between(0, 1'000'000'000),
                         draws.between(0, 10'000'000'000)};
    learner.declare(declared);
    for (int i = 0; i < 400; ++i) {
      RateSample s;
      s.kind = draws.between(0, 1) == 0 ? RateSample::Kind::prefill : RateSample::Kind::decode;
      const auto any = [&] { return draws.between(0, std::int64_t{1} << draws.between(0, 40)); };
      s.observed_ns = any();
      for (std::int64_t& part : s.part_ns) part = any();
      learner.observe(s, draws.between(RateLearner::kOne / 4, RateLearner::kOne * 4));
      const Rates r = learner.estimate();
      for (const auto& [learned, from, most] : {std::tuple{r.floor_ns, declared.floor_ns, 10'000'000'000},
                                                {r.token_ps, declared.token_ps, 100'000'000'000},
                                                {r.pair_ps, declared.pair_ps, 10'000'000},
                                                {r.context_ps, declared.context_ps, 1'000'000'000}}) {
        ASSERT_LE(learned, std::min<std::int64_t>(most, from * 64));
        ASSERT_GE(learned, from / 64);
      }
    }
  }
}

// A router and machines that take one prompt after another and give every running request a token per step.
class Fleet {
 public:
  Fleet(std::size_t count, Rates real, Rates declared, Policy policy = {}) {
    EXPECT_TRUE(router.set_policy(policy));
    for (std::size_t i = 0; i < count; ++i) add(declared);
    machines.resize(count);
    for (Machine& m : machines) m.real = real;
  }
  void add(const Rates& declared) {
    ReplicaSpec spec{.name = "r" + std::to_string(ids.size())};
    spec.rates = declared;
    ids.push_back(*router.add_replica(spec, now));
  }

  // One request: it waits for the prompt before it there, is computed, and answers beside nobody.
  enum class End { finish, untold, fail, expire };
  void serve(std::size_t on, std::int64_t tokens, std::int64_t output, End end = End::finish) {
    Request r;
    r.prompt_bytes = -1;
    r.input_tokens = tokens;
    r.pinned = ids[on];
    now += milliseconds(1);
    const Decision d = router.route(r, now);
    ASSERT_EQ(d.replica, ids[on]);
    const Machine& m = machines[on];
    const auto slow = [&](std::int64_t ns) {
      return Nanos{static_cast<std::int64_t>(static_cast<double>(ns) * m.slowness)};
    };
    if (end == End::fail) {
      now += slow(m.real.prefill_ns(tokens)) * 7;
      router.fail(d.ticket, Outcome::replica_error, now);
      return;
    }
    if (end == End::expire) {
      now += seconds(700);
      router.advance(now);
      return;
    }
    now += slow(std::max(m.real.floor_ns, m.real.token_ps * tokens / 1'000) +
                (m.real.prefill_ns(tokens) - m.real.token_ps * tokens / 1'000) + m.real.overhead_ns);
    router.first_token(d.ticket, now);
    now += slow((m.real.floor_ns + m.real.overhead_ns + m.real.context_ps * tokens / 1'000) * (output - 1));
    router.finish(d.ticket, end == End::untold ? UsageCounts{} : UsageCounts{tokens, 0, output}, now);
  }
  void serve_any(int requests, Draws& draws) {
    for (int i = 0; i < requests; ++i) {
      serve(static_cast<std::size_t>(i) % ids.size(), draws.between(200, 20'000), draws.between(20, 400));
    }
  }
  LearnedRates learned(std::size_t kind = 0) { return router.statistics().pools.at(0).rates.at(kind); }
  double slowness(std::size_t on) { return router.statistics().replicas.at(on).slowness; }

  struct Machine {
    Rates real;
    double slowness = 1;
  };
  static constexpr std::uint32_t kMost = 24;
  Router router{{.max_replicas = kMost}};
  std::vector<ReplicaId> ids;
  std::vector<Machine> machines;
  Nanos now{seconds(1)};
};

TEST(LearnedRates, OfARouterComeFromFirstTokensAndEnds) {
  const Rates real;
  Fleet fleet(2, real, times(real, 0.25, 4, 0.25, 4));
  Draws draws(3);
  fleet.serve_any(200, draws);
  const LearnedRates r = fleet.learned();
  EXPECT_TRUE(r.learned);
  EXPECT_NEAR(ratio(r.used.floor_ns, real.floor_ns), 1, 0.10);
  EXPECT_NEAR(ratio(r.used.token_ps, real.token_ps), 1, 0.10);
  EXPECT_NEAR(ratio(r.used.pair_ps, real.pair_ps), 1, 0.10);
  EXPECT_NEAR(ratio(r.used.context_ps, real.context_ps), 1,
              0.35);  // one request's context is a tenth of a step: little to see
  // The next prompt is priced by them.
  Request request;
  request.input_tokens = 10'000;
  EXPECT_NEAR(ratio(fleet.router.peek(request, fleet.now).expected_prefill.value, real.prefill_ns(10'000)), 1, 0.05);
  EXPECT_DOUBLE_EQ(fleet.slowness(0), 1);  // equal replicas are exactly equal: ties are drawn
  EXPECT_DOUBLE_EQ(fleet.slowness(1), 1);
}

TEST(LearnedRates, NeedNoUsage) {
  const Rates real;
  Fleet fleet(1, real, times(real, 4, 4, 4, 4));
  Draws draws(4);
  for (int i = 0; i < 100; ++i) fleet.serve(0, draws.between(200, 20'000), 50, Fleet::End::untold);
  const LearnedRates r = fleet.learned();
  EXPECT_TRUE(r.learned);
  EXPECT_NEAR(ratio(r.used.token_ps, real.token_ps), 1, 0.05);
  EXPECT_LT(r.used.context_ps, 2 * real.context_ps);  // never seen: it follows the scale of the others
}

TEST(LearnedRates, NoticeAReplicaThatBecomesHalfAsQuickAndForgetItLater) {
  const Rates real;
  Fleet fleet(4, real, real);
  Draws draws(5);
  fleet.serve_any(200, draws);
  fleet.machines[2].slowness = 2;
  fleet.serve_any(4 * 10, draws);
  EXPECT_GT(fleet.slowness(2), 1.2);
  fleet.serve_any(4 * 40, draws);
  EXPECT_GT(fleet.slowness(2), 1.7);
  EXPECT_LT(fleet.slowness(2), 2.2);
  for (const std::size_t other : {0u, 1u, 3u}) EXPECT_DOUBLE_EQ(fleet.slowness(other), 1);
  Request request;
  request.input_tokens = 10'000;
  for (const CandidateExplanation& c : fleet.router.explain(request, fleet.now).candidates) {
    EXPECT_NEAR(ratio(c.cost.prefill, real.prefill_ns(10'000)), c.id == fleet.ids[2] ? 2 : 1, 0.3) << c.name;
  }
  fleet.machines[2].slowness = 1;
  fleet.serve_any(4 * 60, draws);
  EXPECT_DOUBLE_EQ(fleet.slowness(2), 1);
  const LearnedRates r = fleet.learned();
  EXPECT_NEAR(ratio(r.used.token_ps, real.token_ps), 1, 0.1);
}

TEST(LearnedRates, LeaveOutNobodyWhoWouldBeCheaperForItsOwnSpeed) {
  const Rates real;
  Fleet fleet(16, real, real);
  Draws draws(6);
  fleet.serve_any(16 * 10, draws);
  for (const std::size_t slow : {1u, 4u, 9u}) fleet.machines[slow].slowness = 2.5;
  for (const std::size_t quick : {7u, 12u}) fleet.machines[quick].slowness = 0.5;
  fleet.serve_any(16 * 60, draws);
  EXPECT_GT(fleet.slowness(4), 1.5);
  EXPECT_LT(fleet.slowness(7), 0.7);
  for (int i = 0; i < 200; ++i) {
    Request r;
    r.input_tokens = draws.between(100, 20'000);
    fleet.now += milliseconds(draws.between(0, 50));
    const Decision d = fleet.router.peek(r, fleet.now);
    std::int64_t least = INT64_MAX, taken = 0;
    for (const CandidateExplanation& c : fleet.router.explain(r, fleet.now).candidates) {
      least = std::min(least, c.cost.total);
      if (c.id == d.replica) taken = c.cost.total;
    }
    ASSERT_EQ(taken, least) << i;
    if (draws.between(0, 2) == 0) r.pinned = fleet.ids[static_cast<std::size_t>(draws.between(0, 15))];
    const Decision routed = fleet.router.route(r, fleet.now);
    if (draws.between(0, 1) == 0) fleet.router.first_token(routed.ticket, fleet.now + milliseconds(20));
  }
}

TEST(LearnedRates, TeachNothingWithoutAnAnswer) {
  const Rates real;
  Fleet fleet(1, real, real);
  for (int i = 0; i < 50; ++i) fleet.serve(0, 5'000, 100, Fleet::End::fail);
  for (int i = 0; i < 5; ++i) fleet.serve(0, 5'000, 100, Fleet::End::expire);
  EXPECT_EQ(fleet.learned().samples, 0u);
  EXPECT_EQ(fleet.learned().used, real);
  // A prompt that failed beside others spoils their stretch, too: two are in prefill, one fails, the other's time says nothing.
  Request r;
  r.input_tokens = 5'000;
  const Decision a = fleet.router.route(r, fleet.now);
  const Decision b = fleet.router.route(r, fleet.now);
  fleet.router.fail(a.ticket, Outcome::timeout, fleet.now + seconds(5));
  fleet.router.first_token(b.ticket, fleet.now + seconds(6));
  fleet.router.finish(b.ticket, {5'000, 0, 2}, fleet.now + seconds(7));  // an answer too short to tell a step from it
  EXPECT_EQ(fleet.learned().samples, 0u);
}

TEST(LearnedRates, TeachNothingWhileTheEngineTellsOfOthersRequests) {
  Fleet fleet(1, {}, {});
  Draws draws(7);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(fleet.router.signal(fleet.ids[0], Signal::running, 5, fleet.now));
    fleet.serve_any(1, draws);
  }
  EXPECT_EQ(fleet.learned().samples, 0u);
}

TEST(LearnedRates, AreDeclaredOnesWhereThePolicySaysSo) {
  Policy policy;
  policy.learn_rates = false;
  const Rates declared = times(Rates{}, 4, 4, 4, 4);
  Fleet fleet(1, {}, declared, policy);
  Draws draws(9);
  fleet.serve_any(100, draws);
  EXPECT_EQ(fleet.learned().samples, 0u);
  Request request;
  request.input_tokens = 10'000;
  EXPECT_EQ(fleet.router.peek(request, fleet.now).expected_prefill.value, declared.prefill_ns(10'000));
}

TEST(LearnedRates, OutliveTheReplicaAndAreOfItsKindAlone) {
  const Rates real;
  Fleet fleet(1, real, times(real, 2, 2, 2, 2));
  Draws draws(13);
  fleet.serve_any(150, draws);
  const Rates learned = fleet.learned().used;
  EXPECT_NEAR(ratio(learned.token_ps, real.token_ps), 1, 0.1);
  ASSERT_TRUE(fleet.router.remove_replica(fleet.ids[0], fleet.now));
  fleet.ids.clear();
  fleet.add(times(real, 2, 2, 2, 2));
  fleet.add(times(real, 3, 3, 3, 3));
  const auto rates = fleet.router.statistics().pools.at(0).rates;
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[0].used, learned);
  EXPECT_EQ(rates[1].samples, 0u);
  EXPECT_EQ(rates[1].used, times(real, 3, 3, 3, 3));
}

TEST(LearnedRates, OfMoreKindsThanThereCanBeReplicasTakeNoMoreRoom) {
  Fleet fleet(1, {}, {});
  for (int i = 1; i <= 100; ++i) {
    ReplicaSpec spec = *fleet.router.replica(fleet.ids[0]);
    spec.rates.token_ps += i;
    ASSERT_TRUE(fleet.router.update_replica(fleet.ids[0], spec, fleet.now));
    Draws draws(static_cast<std::uint64_t>(i));
    fleet.serve_any(3, draws);
  }
  EXPECT_EQ(fleet.router.statistics().pools.at(0).rates.size(), Fleet::kMost);
}

TEST(LearnedRates, AreEqualAfterEqualCalls) {
  std::vector<Rates> learned;
  for (int run = 0; run < 2; ++run) {
    Fleet fleet(2, {}, times(Rates{}, 3, 0.5, 2, 1));
    Draws draws(21);
    fleet.serve_any(150, draws);
    learned.push_back(fleet.learned().used);
  }
  EXPECT_EQ(learned[0], learned[1]);
}

TEST(LearnedRates, GoOnInAnotherRouterAsIfItWereTheSame) {
  Fleet fleet(2, {}, times(Rates{}, 3, 0.5, 2, 1));
  Draws draws(22);
  fleet.serve_any(200, draws);
  fleet.machines[1].slowness = 2;
  fleet.serve_any(60, draws);
  const auto learned = fleet.router.learned("");
  ASSERT_TRUE(learned.ok());
  ASSERT_EQ(learned->kinds.size(), 1u);
  ASSERT_EQ(learned->replicas.size(), 2u);

  Fleet next(2, {}, times(Rates{}, 3, 0.5, 2, 1));
  next.machines[1].slowness = 2;
  next.now = fleet.now;
  const auto restored = next.router.restore_learned("", *learned);
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(restored->kinds, 1u);
  EXPECT_EQ(restored->replicas, 2u);
  EXPECT_EQ(next.learned().used, fleet.learned().used);
  EXPECT_EQ(next.learned().samples, fleet.learned().samples);
  EXPECT_GT(next.slowness(1), 1.2);
  EXPECT_DOUBLE_EQ(next.slowness(1), fleet.slowness(1));
  Draws same(23), again(23);
  fleet.serve_any(60, same);
  next.serve_any(60, again);
  EXPECT_EQ(next.learned().used, fleet.learned().used);
  EXPECT_DOUBLE_EQ(next.slowness(1), fleet.slowness(1));
  EXPECT_EQ(next.router.restore_learned("", *learned)->kinds, 0u) << "it has learned by itself";
}

TEST(LearnedRates, AreNotRestoredWhereNobodyHasThemOrNobodyLearnsThem) {
  Fleet fleet(1, {}, {});
  Draws draws(24);
  fleet.serve_any(50, draws);
  auto learned = *fleet.router.learned("");
  EXPECT_EQ(fleet.router.learned("other").code(), Code::not_found);
  Fleet other(1, {}, times(Rates{}, 2, 2, 2, 2));
  EXPECT_EQ(other.router.restore_learned("other", learned).code(), Code::not_found);
  learned.replicas[0].name = "another";
  const auto restored = other.router.restore_learned("", learned);
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(restored->kinds + restored->replicas, 0u) << "another kind of hardware, another replica";
  for (std::size_t i = 0; i < LearnedKind::kSums; ++i) {
    for (const std::int64_t absurd : {std::int64_t{1} << 62, -(std::int64_t{1} << 62)}) {
      LearnedPool broken = learned;
      broken.kinds[0].sums[i] = absurd;
      EXPECT_EQ(other.router.restore_learned("", broken).code(), Code::invalid_argument) << i;
    }
  }
  learned.kinds.clear();
  learned.replicas[0].slowness = 0;
  EXPECT_EQ(other.router.restore_learned("", learned).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace warmroute
