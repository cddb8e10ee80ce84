// The ledger: sums beside a plain map, exact money, unknown that stays unknown, other prices, journals read back, threads.
#include "warmroute/usage/ledger.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace warmroute {
namespace {

constexpr std::int64_t kHour = 3'600;
constexpr std::int64_t kMicroUsd = 1'000'000;  // picos

UsageEvent used(std::string_view key, std::int64_t input, UsageCount cached, std::int64_t output,
                std::int64_t at_second) {
  UsageEvent e;
  e.key_id = key;
  e.response_model = "m";
  e.end_time = wall_seconds(at_second);
  e.usage.input_tokens = input;
  e.usage.cached_input_tokens = cached;
  e.usage.output_tokens = output;
  e.complete = true;
  return e;
}

PriceTable prices(const char* input, const char* cached, const char* output) {
  auto table = PriceTable::from_json(std::string(R"({"m":{"input_cost_per_token":)") + input +
                                     R"(,"cache_read_input_token_cost":)" + cached + R"(,"output_cost_per_token":)" +
                                     output + "}}");
  EXPECT_TRUE(table);
  return std::move(*table);
}

TEST(Ledger, MoneyIsExactBeyond64BitsOfPicos) {
  LedgerMoney m;
  for (int i = 0; i < 20; ++i) m.add(999'999'999'999'999'999);
  EXPECT_EQ(m.usd, 19'999'999);
  EXPECT_EQ(m.picos, 999'999'999'980);
  m.add(-21);
  EXPECT_EQ(m.picos, 999'999'999'959);
  LedgerMoney n;
  n.add(-1);
  EXPECT_EQ(n.usd, -1);
  EXPECT_EQ(n.picos, 999'999'999'999);
  n.add(LedgerMoney{0, 1});
  EXPECT_EQ(n, LedgerMoney{});
}

TEST(Ledger, UnknownIsCountedAsUnknown) {
  Ledger ledger;
  UsageEvent e = used("a", 1'000, {}, 10, 5);
  ledger.add(e);
  e.usage.cached_input_tokens = 0;
  e.cost_picos = 7;
  ledger.add(e);
  e.usage.output_tokens.reset();
  e.complete = false;
  ledger.add(e);
  e.complete = true;
  e.error = true;
  ledger.add(e, true);
  const LedgerSums s = ledger.total();
  EXPECT_EQ(s.attempts, 4);
  EXPECT_EQ(s.unknown_cost, 1);
  EXPECT_EQ(s.unknown_usage, 2);
  EXPECT_EQ(s.incomplete, 2);
  EXPECT_EQ(s.errors, 1);
  EXPECT_EQ(s.input_tokens, 4'000);
  EXPECT_EQ(s.cache_reported_input_tokens, 3'000);
  EXPECT_EQ(s.hit_ratio(), 0.0);
  EXPECT_EQ(s.cost, (LedgerMoney{0, 21}));
  EXPECT_EQ(LedgerSums{}.hit_ratio(), std::nullopt);
}

TEST(Ledger, SaysWhatTheCacheSavedAndWhatOtherPricesWouldCost) {
  const PriceTable mine = prices("2e-6", "0.5e-6", "8e-6");
  const PriceTable other = prices("4e-6", "4e-6", "1e-6");
  LedgerOptions options;
  options.prices = &mine;
  Ledger ledger(options);
  options.prices = &other;
  options.reprice = true;
  Ledger what_if(options);
  UsageEvent e = used("a", 1'000, 600, 100, 5);
  e.cost_picos = 1'900 * kMicroUsd;
  e.price_key = "a name that the other table does not know";
  UsageEvent unknown = used("a", 1'000, 600, 100, 5);
  unknown.response_model = "no such model";
  unknown.cost_picos = 5;
  for (Ledger* l : {&ledger, &what_if}) {
    l->add(e);
    l->add(unknown);
  }
  EXPECT_EQ(ledger.total().cost, (LedgerMoney{0, 1'900 * kMicroUsd + 5}));
  EXPECT_EQ(ledger.total().saved_by_cache, (LedgerMoney{0, 900 * kMicroUsd}));
  EXPECT_EQ(ledger.total().unknown_cost, 0);
  EXPECT_EQ(what_if.total().cost, (LedgerMoney{0, 4'100 * kMicroUsd}));
  EXPECT_EQ(what_if.total().saved_by_cache, LedgerMoney{});
  EXPECT_EQ(what_if.total().unknown_cost, 1);
  EXPECT_EQ(*ledger.total().hit_ratio(), 0.6);
}

TEST(Ledger, RandomEventsSumUpAsInAMap) {
  std::mt19937 random(3);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random()) % n; };
  Ledger ledger;
  std::map<std::vector<std::string>, LedgerSums> model;
  const std::string names[] = {"", "a", "b", "ab", std::string("a\0b", 3)};
  for (int i = 0; i < 3'000; ++i) {
    const std::string& key = names[static_cast<std::size_t>(below(5))];
    const std::string& team = names[static_cast<std::size_t>(below(5))];
    const std::string& replica = names[static_cast<std::size_t>(below(5))];
    const std::int64_t second = below(20'000) - 10'000;
    UsageEvent e = used(key, below(1'000), below(500), below(300), second);
    e.team_id = team;
    e.replica_id = replica;
    e.cost_picos = below(1'000'000);
    ledger.add(e);
    const std::int64_t window = second - (second % kHour + kHour) % kHour;
    LedgerSums one;
    one.attempts = 1;
    one.input_tokens = one.cache_reported_input_tokens = *e.usage.input_tokens;
    one.cached_input_tokens = *e.usage.cached_input_tokens;
    one.output_tokens = *e.usage.output_tokens;
    one.cost.add(*e.cost_picos);
    model[{key, team, replica, std::to_string(window)}].add(one);
  }
  const std::vector<LedgerRow> all = ledger.snapshot();
  ASSERT_EQ(all.size(), model.size());
  EXPECT_EQ(ledger.rows(), model.size());
  for (const LedgerRow& row : all) {
    const std::vector<std::string> key{row.key_id, row.team_id, row.replica_id,
                                       std::to_string(row.window_start.value / 1'000'000'000)};
    ASSERT_EQ(model.count(key), 1u);
    EXPECT_EQ(row.sums, model[key]);
  }
  std::map<std::string, LedgerSums> by_team;
  for (const auto& [key, sums] : model) by_team[key[1]].add(sums);
  const std::vector<LedgerRow> teams = ledger.snapshot(LedgerBy::team);
  ASSERT_EQ(teams.size(), by_team.size());
  for (const LedgerRow& row : teams) EXPECT_EQ(row.sums, by_team[row.team_id]);
}

TEST(Ledger, RowsBeyondTheCapShareOneAndOldWindowsGo) {
  LedgerOptions options;
  options.max_rows = 3;
  Ledger ledger(options);
  for (int i = 0; i < 10; ++i) ledger.add(used("k" + std::to_string(i % 5), 10, 0, 1, kHour + 5));
  EXPECT_EQ(ledger.rows(), 3u);
  EXPECT_EQ(ledger.overflowed(), 4u);
  EXPECT_EQ(ledger.snapshot().size(), 4u);
  EXPECT_EQ(ledger.total().input_tokens, 100);
  EXPECT_EQ(ledger.forget_before(wall_seconds(2 * kHour - 1)), 0u);
  EXPECT_EQ(ledger.forget_before(wall_seconds(2 * kHour)), 3u);
  EXPECT_EQ(ledger.rows(), 0u);
  EXPECT_EQ(ledger.total().attempts, 4);
}

TEST(Ledger, ReadsBackFromAJournal) {
  std::string directory = testing::TempDir() + "/ledger-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  Ledger live;
  {
    auto journal = Journal::open(directory);
    ASSERT_TRUE(journal);
    for (int i = 0; i < 50; ++i) {
      const std::string key = "k" + std::to_string(i % 3);  // the event only looks at it
      const UsageEvent e = used(key, 100 + i, i, 5, i * 1'000);
      ASSERT_TRUE(journal->end(*journal->begin(e), e));
      live.add(e);
    }
    UsageEvent open = used("k0", 7, {}, 3, 60'000);
    ASSERT_TRUE(journal->begin(open));
    live.add(open, true);
  }
  ASSERT_TRUE(Journal::open(directory));  // recovers
  auto reader = JournalReader::open(directory);
  Ledger again;
  EXPECT_EQ(*again.read(*reader), 51u);
  EXPECT_EQ(*again.read(*reader), 0u);
  EXPECT_EQ(again.total(), live.total());
  EXPECT_EQ(again.snapshot().size(), live.snapshot().size());
  EXPECT_EQ(again.total().incomplete, 1);
  std::filesystem::remove_all(directory);
}

TEST(Ledger, SnapshotsWhileThreadsWriteHoldWholeEvents) {
  Ledger ledger;
  std::atomic<int> running{3};
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < 3'000; ++i) ledger.add(used("k" + std::to_string((i + t) % 7), 10, 10, 1, i));
      --running;
    });
  }
  std::int64_t last = 0;
  while (running.load() != 0) {
    const LedgerSums s = ledger.total();
    ASSERT_EQ(s.input_tokens, s.attempts * 10);
    ASSERT_EQ(s.cached_input_tokens, s.attempts * 10);
    ASSERT_GE(s.attempts, last);
    last = s.attempts;
  }
  for (std::thread& w : writers) w.join();
  EXPECT_EQ(ledger.total().attempts, 9'000);
}

}  // namespace
}  // namespace warmroute
