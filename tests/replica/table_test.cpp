#include "warmroute/replica/table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <thread>

namespace warmroute {
namespace {

class ReplicaTableTest : public testing::Test {
 protected:
  detail::EpochDomain domain;
  ReplicaTable table{domain, 4};
};

TEST_F(ReplicaTableTest, TellsRanksOfOneNameApart) {
  const auto a = table.add({.name = "gpu", .dp_rank = 0});
  const auto b = table.add({.name = "gpu", .dp_rank = 1});
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  EXPECT_NE(*a, *b);
  EXPECT_EQ(table.add({.name = "gpu", .dp_rank = 1}).code(), Code::already_exists);
  const ReplicaView view = table.copy();
  EXPECT_EQ(view.find("gpu", 1)->id, *b);
  EXPECT_EQ(view.find("gpu", 2), nullptr);
  EXPECT_EQ(view.find(*a)->spec.ring_name(), "gpu");
  EXPECT_EQ(view.find(*b)->spec.ring_name(), "gpu/1");
}

TEST_F(ReplicaTableTest, NamesEveryFaultOfASpec) {
  ReplicaSpec bad{.name = "", .weight = std::nan("")};
  bad.rates.token_ps = -1;
  bad.capacity_tokens = -1;
  const auto r = table.add(bad);
  ASSERT_EQ(r.code(), Code::invalid_argument);
  for (const char* word : {"name", "weight", "rates", "capacity"})
    EXPECT_NE(r.error().message.find(word), std::string::npos);
}

TEST_F(ReplicaTableTest, TakesNamesThatCanBeSaidOnly) {
  for (const std::string name : {"a b/c:d", "\"quoted\" \\", "gr\xC3\xBC\xC3\x9F", "\xC2\xA0",
                                 "\xE6\xA8\xA1\xE5\x9E\x8B", "\xED\x9F\xBF", "\xF0\x9F\xA6\x99", "\xF4\x8F\xBF\xBF"}) {
    const auto added = table.add({.name = name, .pool = name, .ring_id = name});
    ASSERT_TRUE(added) << name;
    ASSERT_TRUE(table.remove(*added));
  }
  const std::string bad[]{"a\nb",
                          std::string("\0", 1),
                          "\x1B[2J",
                          "\x7F",
                          "\xC2\x85",  // control characters, C1 ones too
                          "\x80",
                          "\xC3",
                          "\xE6\xA8",
                          "\xF0\x9F\xA6",
                          "\xC3(",
                          "\xE6\xA8(",  // no character, or half of one
                          "\xC0\xAF",
                          "\xC1\xBF",
                          "\xE0\x80\xAF",
                          "\xF0\x80\x80\xAF",  // longer than need be
                          "\xED\xA0\x80",
                          "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80",
                          "\xFF"};  // surrogate, beyond Unicode
  for (const std::string& text : bad) {
    const auto name = table.add({.name = text});
    ASSERT_EQ(name.code(), Code::invalid_argument) << testing::PrintToString(text);
    EXPECT_EQ(name.error().message, "replica: name, pool and ring_id must be UTF-8 without control characters");
    EXPECT_EQ(table.add({.name = "a", .pool = "m" + text}).code(), Code::invalid_argument);
    EXPECT_EQ(table.add({.name = "a", .ring_id = text + "m"}).code(), Code::invalid_argument);
  }
  EXPECT_TRUE(table.copy().rows.empty());
}

TEST_F(ReplicaTableTest, LetsASlotAgainOnlyWhenItsBooksAreClear) {
  const ReplicaId a = *table.add({.name = "a"});
  table.book(a.slot).requests.fetch_add(1);
  ASSERT_TRUE(table.remove(a));
  const ReplicaId b = *table.add({.name = "a"});
  EXPECT_NE(b.slot, a.slot);
  table.book(a.slot).requests.fetch_sub(1);
  const ReplicaId c = *table.add({.name = "c"});
  EXPECT_EQ(c.slot, a.slot);
  EXPECT_EQ(c.generation, a.generation + 1);
  EXPECT_EQ(table.remove(a).code(), Code::stale);
  EXPECT_EQ(table.set_health(a, Health::down, "x").code(), Code::stale);
  EXPECT_EQ(table.signal(a, Signal::waiting, 1, Nanos{1}).code(), Code::stale);
  EXPECT_FALSE(table.reading(a, Signal::waiting).known);
}

TEST_F(ReplicaTableTest, LetsASlotAgainOnlyWhenNoReaderCanStillBookThere) {
  const ReplicaId a = *table.add({.name = "a"});
  {
    const auto guard = domain.pin();
    ASSERT_TRUE(table.remove(a));
    EXPECT_NE(table.add({.name = "b"})->slot, a.slot);
  }
  EXPECT_EQ(table.add({.name = "c"})->slot, a.slot);
}

TEST_F(ReplicaTableTest, KeepsASlotUntilItsOwnerHasTakenTheReplicaOutOfItsOwnPicturesToo) {
  const ReplicaId a = *table.add({.name = "a"});
  ASSERT_TRUE(table.take_out(a));
  EXPECT_EQ(table.copy().find(a), nullptr);
  EXPECT_NE(table.add({.name = "b"})->slot, a.slot);
  table.let_again(a);
  EXPECT_EQ(table.add({.name = "c"})->slot, a.slot);
}

TEST_F(ReplicaTableTest, HasRoomWhileMoreReadersAreInsideThanThereAreSlotsForThem) {
  std::vector<detail::EpochDomain::Guard> guards;
  for (std::size_t i = 0; i < detail::EpochDomain::kSlots + 1; ++i) guards.push_back(domain.pin());
  EXPECT_TRUE(table.add({.name = "a"}));
}

TEST_F(ReplicaTableTest, CountsRemovedReplicasWithOpenRequestsAsPresent) {
  for (int i = 0; i < 4; ++i) {
    const ReplicaId id = *table.add({.name = std::to_string(i)});
    table.book(id.slot).requests.fetch_add(1);
    ASSERT_TRUE(table.remove(id));
  }
  EXPECT_EQ(table.add({.name = "x"}).code(), Code::capacity);
}

TEST_F(ReplicaTableTest, KeepsEachSignalWithItsAge) {
  const ReplicaId a = *table.add({.name = "a"});
  EXPECT_FALSE(table.reading(a, Signal::kv_usage).known);
  ASSERT_TRUE(table.signal(a, Signal::kv_usage, 0.5, Nanos{10}));
  ASSERT_TRUE(table.signal(a, Signal::waiting, 3, Nanos{20}));
  EXPECT_EQ(table.reading(a, Signal::kv_usage).value, 0.5);
  EXPECT_EQ(table.reading(a, Signal::kv_usage).at, Nanos{10});
  EXPECT_EQ(table.reading(a, Signal::waiting).at, Nanos{20});
  for (const double bad : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(table.signal(a, Signal::waiting, bad, Nanos{30}).code(), Code::invalid_argument);
  }
  EXPECT_EQ(table.reading(a, Signal::waiting).value, 3);
}

TEST_F(ReplicaTableTest, BooksOnlyWhatTheEngineReportsBeyondItsOwnRequests) {
  const ReplicaId a = *table.add({.name = "a"});
  LoadBook& book = table.book(a.slot);
  book.requests.store(5);
  ASSERT_TRUE(table.signal(a, Signal::running, 6, Nanos{1}));
  ASSERT_TRUE(table.signal(a, Signal::waiting, 2, Nanos{1}));
  EXPECT_EQ(read(book).foreign_requests, 3);
  EXPECT_EQ(read(book).foreign_waiting, 2);
  ASSERT_TRUE(table.signal(a, Signal::running, 1, Nanos{2}));
  EXPECT_EQ(read(book).foreign_requests, 0);  // never negative: own books run ahead of the engine's report
}

TEST_F(ReplicaTableTest, BooksPromptTokensBeyondWhatItsOwnPromptsStillHaveToDo) {
  const ReplicaId a = *table.add({.name = "a"});
  LoadBook& book = table.book(a.slot);
  EXPECT_EQ(read(book).foreign_tokens, LoadBook::kUntold);
  ASSERT_TRUE(table.signal(a, Signal::waiting, 2, milliseconds(1)));
  EXPECT_EQ(read(book).foreign_tokens, LoadBook::kUntold) << "counts do not say it";
  book.requests.store(1);
  book.pending_tokens.store(10'000);
  book.pending_ns.store(milliseconds(1'000).value);
  book.prefill_since.store(milliseconds(1'000).value);
  const Nanos now = milliseconds(1'250);  // a quarter of it is done
  ASSERT_TRUE(table.signal(a, Signal::waiting_tokens, 9'000, now));
  EXPECT_EQ(read(book).foreign_tokens, 1'500);
  EXPECT_EQ(read(book).signals_at, now);
  ASSERT_TRUE(table.signal(a, Signal::waiting_tokens, 5'000, now));
  EXPECT_EQ(read(book).foreign_tokens, 0);  // never negative: own books run ahead of the engine's report
  ASSERT_TRUE(table.signal(a, Signal::waiting_tokens, 1e300, now));
  EXPECT_EQ(read(book).foreign_tokens, 1'000'000'000 - 7'500);
}

TEST_F(ReplicaTableTest, ForgetsPromptTokensThatLaterCountsComeWithout) {
  const ReplicaId a = *table.add({.name = "a"});
  const LoadBook& book = table.book(a.slot);
  ASSERT_TRUE(table.signal(a, Signal::waiting_tokens, 700, seconds(10)));
  ASSERT_TRUE(table.signal(a, Signal::running, 1, seconds(12), seconds(2)));
  EXPECT_EQ(read(book).foreign_tokens, 700);
  ASSERT_TRUE(table.signal(a, Signal::running, 1, seconds(12) + Nanos{1}, seconds(2)));
  EXPECT_EQ(read(book).foreign_tokens, LoadBook::kUntold);
}

TEST_F(ReplicaTableTest, ForgetsCountsThatLaterPromptTokensComeWithout) {
  const ReplicaId a = *table.add({.name = "a"});
  const LoadBook& book = table.book(a.slot);
  ASSERT_TRUE(table.signal(a, Signal::running, 3, seconds(10), seconds(2)));
  ASSERT_TRUE(table.signal(a, Signal::waiting, 4, seconds(11), seconds(2)));
  ASSERT_TRUE(table.signal(a, Signal::waiting_tokens, 700, seconds(13), seconds(2)));
  EXPECT_EQ(read(book).foreign_requests, 7);
  EXPECT_EQ(read(book).foreign_waiting, 4);
  ASSERT_TRUE(table.signal(a, Signal::waiting_tokens, 700, seconds(13) + Nanos{1}, seconds(2)));
  EXPECT_EQ(read(book).foreign_requests, 0) << "their page stays away";
  EXPECT_EQ(read(book).foreign_waiting, 0);
  EXPECT_EQ(read(book).foreign_tokens, 700);
}

TEST_F(ReplicaTableTest, TellsOwnPromptTokensApartWhereTheyTakeNoTime) {
  const ReplicaId a = *table.add({.name = "a"});
  LoadBook& book = table.book(a.slot);
  book.requests.store(1);
  book.pending_tokens.store(10'000);
  ASSERT_TRUE(table.signal(a, Signal::waiting_tokens, 10'500, milliseconds(1)));
  EXPECT_EQ(read(book).foreign_tokens, 500);
}

TEST_F(ReplicaTableTest, EditsInPlaceButNeverTheIdentity) {
  const ReplicaId a = *table.add({.name = "a"});
  EXPECT_TRUE(table.edit(a, [](ReplicaSpec& s) { s.weight = 2; }));
  EXPECT_EQ(table.edit(a, [](ReplicaSpec& s) { s.name = "b"; }).code(), Code::invalid_argument);
  EXPECT_EQ(table.edit(a, [](ReplicaSpec& s) { s.weight = 0; }).code(), Code::invalid_argument);
  EXPECT_EQ(table.copy().find(a)->spec.weight, 2);
}

TEST_F(ReplicaTableTest, KnowsWhichAdaptersAReplicaCarries) {
  ReplicaSpec s{.name = "a"};
  EXPECT_TRUE(s.carries("anything"));
  s.any_adapter = false;
  s.adapters = {"sql"};
  EXPECT_TRUE(s.carries(""));
  EXPECT_TRUE(s.carries("sql"));
  EXPECT_FALSE(s.carries("sq"));
}

// Random adds and removes against a map from name to id.
TEST(ReplicaTableProperty, HoldsWhatANaiveMapHolds) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    detail::EpochDomain domain;
    ReplicaTable table(domain, 6);
    std::map<std::string, ReplicaId> naive;
    std::uint64_t state = seed;
    const auto draw = [&](std::uint64_t n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (state >> 33) % n;
    };
    std::map<std::uint32_t, std::uint32_t> newest;
    for (int step = 0; step < 3'000; ++step) {
      const std::string name = std::to_string(draw(8));
      const auto known = naive.find(name);
      if (draw(2) == 0) {
        const auto id = table.add({.name = name});
        if (known != naive.end()) {
          ASSERT_EQ(id.code(), Code::already_exists);
        } else if (naive.size() == 6) {
          ASSERT_EQ(id.code(), Code::capacity);
        } else {
          ASSERT_TRUE(id);
          ASSERT_GT(id->generation, newest[id->slot]);
          newest[id->slot] = id->generation;
          naive[name] = *id;
        }
      } else if (known != naive.end()) {
        ASSERT_TRUE(table.remove(known->second));
        ASSERT_FALSE(table.remove(known->second));
        naive.erase(known);
      }
      const ReplicaView view = table.copy();
      ASSERT_EQ(view.rows.size(), naive.size());
      for (const auto& [n, id] : naive) ASSERT_EQ(view.find(n)->id, id);
    }
  }
}

}  // namespace
}  // namespace warmroute
