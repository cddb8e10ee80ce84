#include "warmroute/prefix/slot_residency.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace warmroute {
namespace {

using Tokens = std::vector<std::uint32_t>;
using TokenCache = detail::SlotCache<std::uint32_t>;
using TokenSequence = detail::SlotSequence<std::uint32_t>;
constexpr ReplicaId kReplica{0, 1};

TokenSequence sequence(const Tokens& tokens) { return {tokens, static_cast<std::int64_t>(tokens.size())}; }
/// The last token of an answer is never computed.
TokenSequence held_after(Tokens prompt, const Tokens& answer) {
  prompt.insert(prompt.end(), answer.begin(), answer.end() - (answer.empty() ? 0 : 1));
  return sequence(prompt);
}

Tokens tokens_of(const simdjson::dom::element& list) {
  Tokens out;
  for (const auto token : simdjson::dom::array(list)) out.push_back(static_cast<std::uint32_t>(std::uint64_t(token)));
  return out;
}

// ---------------------------------------------------------------- token grain: what a real server reported

class LlamaServer : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    ASSERT_EQ(parser_.load(std::string(WARMROUTE_TEST_DATA) + "/llama_slots.json").get(doc_), simdjson::SUCCESS);
    ASSERT_EQ(doc_["runs"].at(GetParam()).get(run_), simdjson::SUCCESS);
  }
  double setting(const char* name) {
    double value = 0;
    if (run_["settings"][name].get(value) != simdjson::SUCCESS) value = double(doc_["defaults"][name]);
    return value;
  }
  SlotCacheOptions options() {
    SlotCacheOptions o;
    o.slots = static_cast<std::uint32_t>(setting("SLOTS"));
    o.unified = setting("UNIFIED") != 0;
    o.save_idle = setting("IDLE_SAVE") != 0;
    o.ram_bytes = static_cast<std::int64_t>(setting("CACHE_RAM") * 1'048'576);
    o.context_tokens = static_cast<std::int64_t>(setting("CTX_SLOT")) * o.slots;
    o.similarity = static_cast<float>(setting("SIMILARITY"));
    o.bytes_per_token = std::int64_t(doc_["bytes_per_token"]);
    o.bytes_per_sequence = std::int64_t(doc_["bytes_per_state"]);
    return o;
  }
  simdjson::dom::parser parser_;
  simdjson::dom::element doc_, run_;
};

TEST_P(LlamaServer, ReportsAsManyCachedTokensAsTheModelFinds) {
  TokenCache cache(options());
  std::uint64_t key = 0;
  for (const auto request : simdjson::dom::array(doc_["requests"])) {
    const Tokens prompt = tokens_of(request["prompt"]);
    ASSERT_EQ(cache.would_find(sequence(prompt).view()), std::int64_t(run_["cached"].at(key))) << "request " << key;
    ASSERT_EQ(cache.arrive(key, sequence(prompt)), std::int64_t(run_["cached"].at(key))) << "request " << key;
    cache.finish(key, held_after(prompt, tokens_of(request["answer"])));
    ++key;
  }
  ASSERT_EQ(key, 40);
}
INSTANTIATE_TEST_SUITE_P(OfEverySetting, LlamaServer, testing::Range<std::size_t>(0, 6));

// ---------------------------------------------------------------- a naive server beside it, requests in flight included

/// The rules as prose says them, with whole token vectors, copied.
class NaiveServer {
 public:
  explicit NaiveServer(SlotCacheOptions o) : o_(o), held_(o.slots), used_(o.slots, 0), running_(o.slots) {}

  std::optional<std::size_t> arrive(std::uint64_t key, const Tokens& prompt) {
    if (std::all_of(running_.begin(), running_.end(), [](auto& r) { return r.has_value(); })) {
      queue_.push_back({key, prompt});
      return std::nullopt;
    }
    return begin(key, prompt);
  }
  std::optional<std::pair<std::uint64_t, std::size_t>> finish(std::uint64_t key, const Tokens& now) {
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (running_[i] != key) continue;
      running_[i].reset();
      held_[i] = now;
      used_[i] = ++clock_;
    }
    if (queue_.empty()) return std::nullopt;
    const auto next = queue_.front();
    queue_.pop_front();
    return std::pair{next.first, begin(next.first, next.second)};
  }

 private:
  static std::size_t common(const Tokens& a, const Tokens& b) {
    std::size_t n = 0;
    while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
    return n;
  }
  std::size_t ram_tokens() const {
    std::size_t n = 0;
    for (const Tokens& t : ram_) n += t.size();
    return n;
  }
  void save(const Tokens& t) {
    if (t.empty()) return;
    for (const Tokens& e : ram_) {
      if (common(e, t) == t.size()) return;
    }
    const auto limit = static_cast<std::size_t>(o_.ram_bytes);
    if (t.size() > limit) return;
    std::erase_if(ram_, [&](const Tokens& e) { return common(e, t) == e.size(); });
    while (!ram_.empty() && ram_tokens() + t.size() > limit) ram_.pop_front();
    ram_.push_back(t);
  }
  std::size_t begin(std::uint64_t key, const Tokens& prompt) {
    std::size_t chosen = held_.size(), best = 0;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const std::size_t n = common(held_[i], prompt);
      if (running_[i] || n <= best || n * 10 <= prompt.size()) continue;
      chosen = i;
      best = n;
    }
    const bool similar = chosen != held_.size();
    for (std::size_t i = 0; !similar && i < held_.size(); ++i) {
      if (!running_[i] && (chosen == held_.size() || used_[i] <= used_[chosen])) chosen = i;
    }
    Tokens& slot = held_[chosen];
    if (o_.ram_bytes != 0 && (!similar || best * 2 < slot.size())) {
      save(slot);
      auto winner = ram_.end();
      double keeps = slot.empty() ? -1 : double(common(slot, prompt)) / double(slot.size());
      std::size_t shares = common(slot, prompt);
      for (auto e = ram_.begin(); e != ram_.end(); ++e) {
        const std::size_t n = common(*e, prompt);
        const double kept = double(n) / double(e->size());
        if (kept < 0.25 || kept <= keeps || n <= shares) continue;
        winner = e;
        keeps = kept;
        shares = n;
      }
      if (winner != ram_.end()) {
        slot = *winner;
        ram_.erase(winner);
      }
    }
    const std::size_t found = std::min(common(slot, prompt), prompt.size() - 1);
    running_[chosen] = key;
    for (std::size_t i = 0; o_.save_idle && o_.ram_bytes != 0 && i < held_.size(); ++i) {
      if (running_[i]) continue;
      save(held_[i]);
      if (o_.unified) held_[i].clear();
    }
    return found;
  }

  SlotCacheOptions o_;
  std::vector<Tokens> held_;
  std::vector<std::uint64_t> used_;
  std::vector<std::optional<std::uint64_t>> running_;
  std::deque<Tokens> ram_;
  std::deque<std::pair<std::uint64_t, Tokens>> queue_;
  std::uint64_t clock_ = 0;
};

/// A few conversations that share system prompts, grow, and fork.
Tokens next_prompt(std::mt19937_64& random, std::vector<Tokens>& talks) {
  Tokens& talk = talks[random() % talks.size()];
  if (talk.empty() || talk.size() > 120 || random() % 6 == 0) {
    talk.assign(10 + random() % 2 * 20, static_cast<std::uint32_t>(random() % 3));  // a system prompt
  } else if (random() % 5 == 0) {
    talk.resize(1 + random() % talk.size());
  }
  for (std::size_t n = 1 + random() % 20; n > 0; --n) talk.push_back(static_cast<std::uint32_t>(10 + random() % 1'000));
  return talk;
}

TEST(SlotCache, AgreesWithANaiveServerWhenRequestsOverlap) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    std::mt19937_64 random(seed);
    SlotCacheOptions o;
    o.slots = 1 + static_cast<std::uint32_t>(seed % 4);
    o.unified = seed % 8 < 4;
    o.save_idle = seed % 3 != 0;
    o.ram_bytes = seed % 5 == 0 ? 0 : 400;
    TokenCache cache(o);
    NaiveServer naive(o);
    std::vector<Tokens> talks(6);
    std::map<std::uint64_t, Tokens> open, waiting;
    for (std::uint64_t key = 1; key <= 400; ++key) {
      if (open.size() + waiting.size() < 6 && (open.empty() || random() % 2 == 0)) {
        const Tokens prompt = next_prompt(random, talks);
        const auto expected = naive.arrive(key, prompt);
        if (expected) {
          ASSERT_EQ(cache.would_find(sequence(prompt).view()), static_cast<std::int64_t>(*expected));
        }
        ASSERT_EQ(cache.arrive(key, sequence(prompt)), expected ? static_cast<std::int64_t>(*expected) : -1)
            << "seed " << seed << ", request " << key;
        (expected ? open : waiting)[key] = prompt;
        continue;
      }
      auto over = std::next(open.begin(), static_cast<std::ptrdiff_t>(random() % open.size()));
      Tokens now = over->second;
      for (std::size_t n = random() % 8; n > 0; --n) now.push_back(static_cast<std::uint32_t>(2'000 + random() % 9));
      const auto next = naive.finish(over->first, now);
      const auto started = cache.finish(over->first, sequence(now));
      open.erase(over);
      ASSERT_EQ(started.found, next ? static_cast<std::int64_t>(next->second) : -1) << "seed " << seed;
      if (!next) continue;
      ASSERT_EQ(started.key, next->first);
      open.insert(waiting.extract(next->first));
    }
  }
}

// ---------------------------------------------------------------- block grain: what a router knows

std::vector<BlockHash> path(std::initializer_list<std::pair<int, int>> parts) {  // (content, blocks)
  std::vector<BlockHash> out;
  for (const auto& [content, blocks] : parts) {
    for (int i = 0; i < blocks; ++i)
      out.push_back(BlockHash{static_cast<std::uint64_t>(content * 1'000 + i + 1) * 0x9E3779B97F4A7C15ULL});
  }
  return out;
}
constexpr std::int64_t kBlock = 16'000;  // thousandths of tokens

struct Model {
  explicit Model(std::uint32_t slots, std::int64_t ram_tokens = 0, bool unified = false)
      : residency(index, kReplica, [&] {
          SlotCacheOptions o;
          o.slots = slots;
          o.unified = unified;
          o.ram_bytes = ram_tokens;
          return o;
        }()) {}
  std::int64_t arrive(std::uint64_t key, const std::vector<BlockHash>& p, std::int64_t rest = 5) {
    return residency.arrive(key, p, static_cast<std::int64_t>(p.size()) * 16 + rest, kBlock);
  }
  std::int64_t serve(std::uint64_t key, const std::vector<BlockHash>& p, std::int64_t answer = 20) {
    const std::int64_t found = arrive(key, p);
    residency.finish(key, static_cast<std::int64_t>(p.size()) * 16 + 5 + answer);
    return found;
  }
  std::uint32_t in_index(const std::vector<BlockHash>& p) {
    PrefixMatch match;
    index.match(p, match);
    return match.slots() == 0 ? 0 : match.device()[0];
  }
  PrefixIndex index;
  SlotResidency residency;
};

TEST(SlotResidency, TakesTheNextTurnForAContinuationThatHoldsTheAnswer) {
  Model m(2);
  EXPECT_EQ(m.serve(1, path({{1, 10}})), 0);
  EXPECT_EQ(m.serve(2, path({{1, 10}, {2, 6}})), 10 * 16 + 5 + 20);
  EXPECT_EQ(m.in_index(path({{1, 10}, {2, 6}})), 16);
}

TEST(SlotResidency, AForkCutsTheSiblingsTail) {
  Model m(1);
  m.serve(1, path({{1, 10}, {2, 4}}));
  EXPECT_EQ(m.serve(2, path({{1, 10}, {3, 4}})), 160);
  EXPECT_EQ(m.in_index(path({{1, 10}, {2, 4}})), 10);
  EXPECT_EQ(m.in_index(path({{1, 10}, {3, 4}})), 14);
}

TEST(SlotResidency, RamSavesTheSiblingOnlyWhereTheForkKeepsLessThanHalf) {
  Model kept(1, 10'000), saved(1, 10'000);
  kept.serve(1, path({{1, 10}, {2, 4}}));
  kept.serve(2, path({{1, 10}, {3, 4}}));
  EXPECT_EQ(kept.in_index(path({{1, 10}, {2, 4}})), 10);
  saved.serve(1, path({{1, 4}, {2, 10}}));
  saved.serve(2, path({{1, 4}, {3, 10}}));
  EXPECT_EQ(saved.in_index(path({{1, 4}, {2, 10}})), 14);
  EXPECT_EQ(saved.residency.saved(), 1u);
}

TEST(SlotResidency, RamGivesUpWhatCameFirst) {
  Model m(1, 500);
  for (int talk = 1; talk <= 4; ++talk) m.serve(static_cast<std::uint64_t>(talk), path({{talk, 10}}));
  EXPECT_EQ(m.in_index(path({{1, 10}})), 0);
  EXPECT_EQ(m.in_index(path({{2, 10}})), 10);
  EXPECT_EQ(m.in_index(path({{4, 10}})), 10);
}

TEST(SlotResidency, APromptInFlightIsNobodyElses) {
  Model m(2);
  m.arrive(1, path({{1, 10}}));
  EXPECT_EQ(m.in_index(path({{1, 10}})), 0);
  EXPECT_EQ(m.arrive(2, path({{1, 10}, {2, 2}})), 0) << "both pay";
  m.residency.finish(1, 200);
  EXPECT_EQ(m.in_index(path({{1, 10}, {2, 2}})), 10);
  m.residency.finish(2, 220);
  EXPECT_EQ(m.in_index(path({{1, 10}, {2, 2}})), 12);
}

TEST(SlotResidency, WhereAllSlotsAreBusyTheNextRequestWaitsAndFindsWhatOneWillHold) {
  Model m(1);
  m.arrive(1, path({{1, 10}}));
  EXPECT_EQ(m.in_index(path({{1, 10}})), 10);
  EXPECT_EQ(m.residency.would_find(path({{1, 10}, {2, 2}}), 197, kBlock), 165);
  EXPECT_LT(m.arrive(2, path({{1, 10}, {2, 2}})), 0);
  EXPECT_EQ(m.residency.waiting(), 1u);
  m.residency.finish(1, 180);
  EXPECT_EQ(m.residency.found(2), 180);
  m.residency.finish(2, 210);
  EXPECT_EQ(m.residency.waiting(), 0u);
}

TEST(SlotResidency, ARequestThatWaitsFindsWhatThoseBeforeItLeave) {
  Model m(1, 10'000);
  m.arrive(1, path({{1, 10}}));
  m.arrive(2, path({{2, 10}}));
  m.arrive(3, path({{1, 10}, {3, 2}}));
  EXPECT_EQ(m.residency.would_find(path({{1, 10}, {3, 2}, {4, 1}}), 213, kBlock), 197);
  EXPECT_EQ(m.residency.would_find(path({{1, 10}, {2, 4}}), 229, kBlock), 160)
      << "the third cut the first's tail, its prefix is there";
  EXPECT_EQ(m.residency.would_find(path({{2, 10}, {4, 1}}), 181, kBlock), 165) << "in RAM by then";
}

TEST(SlotResidency, ARequestThatWasServedWhileItSeemedToWaitHadOvertakenAnother) {
  Model m(1);
  m.arrive(1, path({{1, 10}}));
  m.arrive(2, path({{2, 10}}));
  m.residency.finish(2, 170);
  EXPECT_TRUE(m.residency.running(1)) << "it waited in truth";
  m.residency.finish(1, 170);
  EXPECT_EQ(m.in_index(path({{1, 10}})), 10);
}

TEST(SlotResidency, AFailedRequestLeavesItsSlotAsItWas) {
  Model m(1);
  m.serve(1, path({{1, 10}}));
  m.arrive(2, path({{2, 10}}));
  EXPECT_EQ(m.in_index(path({{1, 10}})), 0);
  m.residency.withdraw(2);
  EXPECT_EQ(m.in_index(path({{1, 10}})), 10);
  EXPECT_EQ(m.in_index(path({{2, 10}})), 0);
}

TEST(SlotResidency, FeedbackCutsWhatWasBelieved) {
  Model m(3);
  m.arrive(1, path({{1, 10}, {2, 5}}));
  m.arrive(2, path({{1, 10}, {3, 5}}));
  m.serve(3, path({{7, 10}}));
  m.residency.finish(1, 250);
  m.residency.finish(2, 250);
  EXPECT_EQ(m.arrive(4, path({{1, 10}, {2, 5}, {4, 1}})), 250);
  m.residency.correct(4, 3);
  EXPECT_EQ(m.in_index(path({{1, 10}, {3, 5}})), 3)
      << "a sibling that would have served as far as block 10 is not there";
  EXPECT_EQ(m.in_index(path({{7, 10}})), 10) << "another prompt's is not contradicted";
  m.residency.finish(4, 270);
  EXPECT_EQ(m.in_index(path({{1, 10}, {2, 5}, {4, 1}})), 16) << "it was computed meanwhile";
}

TEST(SlotResidency, ContradictsOnlyWhatWasThereWhenTheRequestStarted) {
  Model m(3);
  m.serve(1, path({{1, 10}}));
  m.arrive(2, path({{1, 10}, {2, 1}}));
  m.serve(3, path({{1, 10}, {3, 1}}));
  m.residency.correct(2, 0);
  EXPECT_EQ(m.in_index(path({{1, 10}, {3, 1}})), 11);
}

TEST(SlotResidency, ARequestWhoseEndWasNeverToldIsWithdrawn) {
  Model m(1);
  m.arrive(1, path({{1, 10}}));
  m.arrive(2, path({{2, 10}}));
  m.residency.withdraw_if([](std::uint64_t key) { return key == 1; });
  EXPECT_TRUE(m.residency.running(2));
  EXPECT_FALSE(m.residency.running(1));
}

TEST(SlotResidency, HoldsMoreThanARequestFinds) {
  Model m(1, 10'000);
  m.serve(1, path({{1, 4}, {2, 10}}));
  m.serve(2, path({{1, 4}, {3, 10}}));  // the first is in RAM now
  m.serve(3, path({{1, 4}, {3, 1}, {4, 8}}));
  m.serve(4, path({{1, 4}, {3, 1}}));
  const auto again = path({{1, 4}, {2, 10}, {5, 2}});
  EXPECT_EQ(m.residency.held(again), 14u);
  EXPECT_EQ(m.residency.would_find(again, 16 * 16 + 5, kBlock), 64) << "its slot loses little, so RAM is not searched";
  EXPECT_EQ(m.arrive(5, again), 64);
}

TEST(SlotResidency, TheIndexHoldsTheUnionOfWhatCanBeFound) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 random(seed);
    Model m(1 + static_cast<std::uint32_t>(seed % 4), seed % 3 == 0 ? 0 : 800, seed % 2 == 0);
    std::vector<std::vector<BlockHash>> seen;
    std::set<std::uint64_t> open;
    for (std::uint64_t key = 1; key <= 300; ++key) {
      if (open.size() < 6 && (open.empty() || random() % 2 == 0)) {
        auto p = seen.empty() || random() % 3 == 0 ? path({{static_cast<int>(random() % 3), 4}})
                                                   : seen[random() % seen.size()];
        if (random() % 4 == 0) p.resize(random() % (p.size() + 1));
        for (std::size_t n = random() % 6; n > 0; --n) p.push_back(BlockHash{random() | 1});
        if (p.size() > 30) p.resize(2);
        m.arrive(key, p, static_cast<std::int64_t>(random() % 16) + 1);
        seen.push_back(p);
        open.insert(key);
      } else {
        const std::uint64_t over = *std::next(open.begin(), static_cast<std::ptrdiff_t>(random() % open.size()));
        if (random() % 6 == 0) m.residency.correct(over, random() % 4);
        if (random() % 5 == 0) m.residency.withdraw(over);
        else m.residency.finish(over, 100 + static_cast<std::int64_t>(random() % 300));
        open.erase(over);
      }
      ASSERT_EQ(m.index.statistics().memberships, m.residency.blocks()) << "seed " << seed << ", step " << key;
      const auto& p = seen[random() % seen.size()];
      ASSERT_EQ(m.in_index(p), m.residency.held(p));
    }
    m.residency.clear();
    ASSERT_EQ(m.residency.blocks(), 0u);
    m.serve(1, path({{1, 3}}));
    ASSERT_EQ(m.in_index(path({{1, 3}})), 3u);
  }
}

}  // namespace
}  // namespace warmroute
