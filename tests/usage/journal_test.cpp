// The journal: what was acknowledged is there after kill -9, a cut anywhere and a full disk; hand-over, rotation, exports.
#include "warmroute/usage/journal.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace warmroute {
namespace {

namespace fs = std::filesystem;

struct JournalTest : testing::Test {
  JournalTest() {
    std::string name = testing::TempDir() + "/journal-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory = name;
  }
  ~JournalTest() override { fs::remove_all(directory); }
  Journal open(const JournalOptions& options = {}) const {
    auto j = Journal::open(directory, options);
    EXPECT_TRUE(j) << j.error().message;
    return std::move(*j);
  }
  struct Seen {
    JournalKind kind;
    std::uint64_t number;
    std::string id;
    std::string operation;
    UsageCount input;
  };
  std::vector<Seen> read(JournalCursor from = {}, JournalCursor* end = nullptr, bool begins = false) const {
    auto r = JournalReader::open(directory, from);
    EXPECT_TRUE(r) << r.error().message;
    std::vector<Seen> all;
    JournalRecord record;
    for (auto more = r->next(record, begins); more && *more; more = r->next(record, begins)) {
      all.push_back({record.kind, record.number, record.event_id, std::string(record.event.operation_id),
                     record.event.usage.input_tokens});
    }
    if (end != nullptr) *end = r->cursor();
    return all;
  }
  std::vector<fs::path> segments() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.path().extension() == ".wrj") all.push_back(entry.path());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string directory;
};

UsageEvent event(std::string_view operation, std::int64_t input) {
  UsageEvent e;
  e.operation_id = operation;
  e.key_id = "key-1";
  e.request_model = "m";
  e.usage.input_tokens = input;
  return e;
}

TEST_F(JournalTest, EverythingOfAnEventComesBack) {
  UsageEvent e = event("op, \"1\"\n", 1'000);
  e.attempt = 3;
  e.start_time = wall_seconds(1'700'000'000);
  e.end_time = WallNanos{1'700'000'001'500'000'000};
  e.team_id = "=team";
  e.provider = "openai";
  e.operation = "chat";
  e.response_model = "m-2";
  e.response_id = "r";
  e.replica_id = "gpu-0";
  e.class_id = "batch";
  e.usage.cached_input_tokens = 600;
  e.usage.output_tokens = 0;
  e.usage.web_fetch_requests = 2;
  e.usage.reported_cost_picos = -5;
  e.complete = true;
  e.source = UsageSource::provider;
  e.anomalies.add(UsageAnomaly::total_mismatch);
  e.finish_reason = "stop";
  e.service_tier = "flex";
  e.cost_picos = 1'900'000'000;
  e.cost_source = CostSource::table;
  e.price_key = "m";
  e.price_table_version = "v1";
  const CostLine lines[] = {{PriceMeter::input, 400, 2'000'000'000, 800'000'000},
                            {PriceMeter::cached_input, 600, 500'000'000, 300'000'000}};
  e.bill = lines;
  {
    Journal j = open();
    const auto number = j.begin(event("op", 900));
    ASSERT_TRUE(number);
    ASSERT_TRUE(j.end(*number, e));
    EXPECT_EQ(j.end(*number, e).code(), Code::stale);
    EXPECT_TRUE(j.end(0, e));
    UsageEvent large = e;
    const std::string text(70'000, 'x');
    large.response_id = text;
    EXPECT_EQ(j.begin(large).code(), Code::invalid_argument);
  }
  auto reader = JournalReader::open(directory);
  JournalRecord record;
  ASSERT_TRUE(*reader->next(record));
  EXPECT_EQ(record.kind, JournalKind::end);
  const UsageEvent& b = record.event;
  EXPECT_EQ(b.usage, e.usage);
  EXPECT_EQ(b.anomalies, e.anomalies);
  EXPECT_EQ(b.bill.size(), 2u);
  EXPECT_EQ(b.bill[1].cost_picos, 300'000'000);
  std::string json;
  append_json_line(record, json);
  simdjson::dom::parser parser;
  const simdjson::dom::element doc = parser.parse(json);
  EXPECT_EQ(std::string_view(doc["operation_id"]), "op, \"1\"\n");
  EXPECT_EQ(std::string_view(doc["start_time"]), "2023-11-14T22:13:20Z");
  EXPECT_EQ(std::string_view(doc["end_time"]), "2023-11-14T22:13:21.5Z");
  EXPECT_EQ(std::int64_t(doc["gen_ai.usage.input_tokens"]), 1'000);
  EXPECT_EQ(std::int64_t(doc["gen_ai.usage.cache_read.input_tokens"]), 600);
  EXPECT_EQ(std::int64_t(doc["gen_ai.usage.output_tokens"]), 0);
  EXPECT_EQ(doc["gen_ai.usage.reasoning.output_tokens"].error(), simdjson::NO_SUCH_FIELD);
  EXPECT_EQ(std::string_view(doc["anomalies"].at(0)), "total_mismatch");
  EXPECT_EQ(std::int64_t(doc["cost_picos"]), 1'900'000'000);
  EXPECT_EQ(std::string_view(doc["event_id"]), record.event_id);
  std::string rows;
  append_focus_rows(record, rows);
  EXPECT_NE(rows.find("openai,m,input,400,tokens,400,tokens,0.000002,0.0008,USD,"), std::string::npos) << rows;
  EXPECT_NE(rows.find("openai,m,cached_input,600,tokens,600,tokens,0.0000005,0.0003,USD,"), std::string::npos) << rows;
  EXPECT_NE(rows.find("\"op, \"\"1\"\"\n\",3,key-1,\"'=team\",m-2,gpu-0,v1,true,,,,\n"), std::string::npos) << rows;
  record.event.bill = {};
  record.event.cost_picos.reset();
  rows.clear();
  append_focus_rows(record, rows);
  EXPECT_NE(rows.find("openai,m,,,,,,,,USD,"), std::string::npos) << rows;
  EXPECT_NE(rows.find(",true,1000,600,,0\n"), std::string::npos) << rows;
  EXPECT_FALSE(*reader->next(record));
}

TEST_F(JournalTest, WhatBeganAndNeverEndedIsHandedOverOnceWithItsEstimate) {
  std::uint64_t second = 0;
  {
    Journal j = open();
    ASSERT_TRUE(j.end(*j.begin(event("a", 1)), event("a", 11)));
    second = *j.begin(event("b", 2));
    ASSERT_TRUE(j.withdraw(*j.begin(event("c", 3))));
    EXPECT_EQ(j.statistics().open, 1u);
    EXPECT_EQ(Journal::open(directory).code(), Code::already_exists);
  }
  for (int again = 0; again < 3; ++again) {
    Journal j = open();
    EXPECT_EQ(j.statistics().recovered, again == 0 ? 1u : 0u);
    EXPECT_EQ(j.end(second, event("b", 22)).code(), Code::stale);
    const auto all = read();
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].input, 11);
    EXPECT_EQ(all[1].kind, JournalKind::incomplete);
    EXPECT_EQ(all[1].operation, "b");
    EXPECT_EQ(all[1].input, 2);
    EXPECT_EQ(all[1].number, second);
    EXPECT_EQ(all[0].id.substr(0, 33), all[1].id.substr(0, 33));
  }
}

TEST_F(JournalTest, ATailCutAnywhereIsDroppedAndTheRestStays) {
  std::vector<std::uint64_t> ends{48};  // after each record
  {
    Journal j = open();
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t n = *j.begin(event("op", i));
      ends.push_back(j.statistics().bytes);
      ASSERT_TRUE(j.end(n, event("op", i)));
      ends.push_back(j.statistics().bytes);
    }
  }
  const fs::path path = segments().at(0);
  std::string whole;
  {
    std::ifstream in(path, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  ASSERT_EQ(whole.size(), ends.back());
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    for (const bool garbage : {false, true}) {
      if (garbage && cut % 5 != 0) continue;
      std::string bytes = whole.substr(0, cut);
      if (garbage) bytes += std::string(cut < 48 ? 0 : 20, '\x5a');
      std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
      JournalOptions fast;
      fast.sync = JournalSync::none;
      Journal j = open(fast);
      std::size_t records = 0;
      while (records + 1 < ends.size() && ends[records + 1] <= cut) ++records;
      const auto all = read();
      ASSERT_EQ(all.size(), (records + 1) / 2) << cut;  // an odd one is a begin: incomplete
      const std::uint64_t next = *j.begin(event("new", 1));
      ASSERT_EQ(next, all.size() + 1) << cut;  // no number twice
      ASSERT_TRUE(j.end(next, event("new", 77)));
      ASSERT_EQ(read().back().input, 77) << cut;
    }
  }
}

TEST_F(JournalTest, HandOverGoesOnFromTheCursorAndDeletesWhatIsDone) {
  JournalOptions small;
  small.segment_bytes = 300;
  small.sync = JournalSync::none;
  std::vector<std::string> seen;
  std::uint64_t slow = 0;
  {
    Journal j = open(small);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(j.end(*j.begin(event("op", i)), event("op", i)));
    ASSERT_GT(segments().size(), 5u);
    JournalCursor end;
    for (const auto& s : read({}, &end)) seen.push_back(s.id);
    EXPECT_EQ(seen.size(), 20u);
    EXPECT_EQ(j.acknowledge({end.segment + 1, 0}).code(), Code::invalid_argument);
    slow = *j.begin(event("slow", 1));
    ASSERT_TRUE(j.acknowledge(end));
    ASSERT_TRUE(j.acknowledge({1, 48}));  // going back is ignored
    EXPECT_EQ(j.acknowledged(), end);
    EXPECT_LE(segments().size(), 2u);
    for (int i = 20; i < 30; ++i) ASSERT_TRUE(j.end(*j.begin(event("op", i)), event("op", i)));
    EXPECT_GT(segments().size(), 3u);
    for (const auto& s : read(j.acknowledged(), &end)) seen.push_back(s.id);
    ASSERT_TRUE(j.acknowledge(end));
    EXPECT_GT(segments().size(), 3u);  // the slow one's begin holds them
    ASSERT_TRUE(j.end(slow, event("slow", 5)));
  }
  Journal j = open(small);
  EXPECT_EQ(j.statistics().recovered, 0u);
  JournalCursor end;
  for (const auto& s : read(j.acknowledged(), &end)) seen.push_back(s.id);
  ASSERT_TRUE(j.acknowledge(end));
  EXPECT_EQ(segments().size(), 1u);
  EXPECT_EQ(seen.size(), 31u);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 31u);
  EXPECT_EQ(*j.begin(event("next", 1)), 32u);
}

TEST_F(JournalTest, HandOverGoesOnWhenTheMachineLostWhatLayBeforeItsCursor) {
  std::uint64_t lost = 0;
  JournalCursor cursor;
  {
    Journal j = open();
    ASSERT_TRUE(j.end(*j.begin(event("op", 1)), event("op", 1)));
    lost = *j.begin(event("lost", 2));
    read({}, &cursor);  // a begin that is read past lies before the cursor, too
    ASSERT_TRUE(j.acknowledge(cursor));
  }
  fs::resize_file(segments().back(), cursor.offset - 5);
  Journal j = open();
  EXPECT_LT(j.acknowledged(), cursor);
  const std::uint64_t number = *j.begin(event("new", 3));
  EXPECT_GT(number, lost);  // its consumer may have seen that number
  ASSERT_TRUE(j.end(number, event("new", 3)));
  const auto all = read(j.acknowledged(), &cursor);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].operation, "new");
  EXPECT_TRUE(j.acknowledge(cursor));
}

TEST_F(JournalTest, ACursorOfSegmentsThatAreGoneMeansTheNewOnesBeginning) {
  {
    Journal j = open();
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(j.end(*j.begin(event("op", i)), event("op", i)));
    JournalCursor cursor;
    read({}, &cursor);
    ASSERT_TRUE(j.acknowledge(cursor));
  }
  fs::remove(segments().back());
  Journal j = open();
  ASSERT_TRUE(j.end(*j.begin(event("new", 9)), event("new", 9)));
  const auto all = read(j.acknowledged());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].operation, "new");
}

TEST_F(JournalTest, ADamagedSegmentLosesItsRestAndNoOther) {
  JournalOptions small;
  small.segment_bytes = 400;
  small.sync = JournalSync::none;
  {
    Journal j = open(small);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(j.end(*j.begin(event("op", i)), event("op", i)));
  }
  {
    std::fstream f(segments().at(2), std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(60);
    f.put('\x7f');
  }
  Journal j = open(small);
  EXPECT_EQ(j.statistics().damaged, 1u);
  const auto all = read();
  EXPECT_LT(all.size(), 20u);
  EXPECT_GT(all.size(), 14u);
  EXPECT_EQ(all.back().input.has_value(), true);
}

TEST_F(JournalTest, AFullDiskFollowsThePolicyAndLosesNoEnd) {
  for (const JournalFull policy : {JournalFull::refuse, JournalFull::serve_unbilled}) {
    fs::remove_all(directory);
    JournalOptions options;
    options.on_full = policy;
    options.segment_bytes = 1'000;
    options.max_bytes = 2'000;
    options.max_held_ends = 2;
    Journal j = open(options);
    std::vector<std::uint64_t> numbers;
    for (int i = 0; i < 100; ++i) {
      const auto n = j.begin(event("op", i));
      if (!n || *n == 0) {
        EXPECT_EQ(n.code(), policy == JournalFull::refuse ? Code::io : Code::ok);
        if (!n) {
          EXPECT_NE(n.error().message.find("its max_bytes are reached"), std::string::npos) << n.error().message;
        }
        break;
      }
      numbers.push_back(*n);
    }
    ASSERT_GT(numbers.size(), 5u);
    EXPECT_TRUE(j.statistics().full);
    EXPECT_EQ(j.statistics().unbilled, policy == JournalFull::refuse ? 0u : 1u);
    EXPECT_EQ(j.end(numbers[0], event("op", 500)).code(), Code::io);
    EXPECT_EQ(j.end(numbers[0], event("op", 500)).code(), Code::stale);
    EXPECT_EQ(j.end(numbers[1], event("op", 501)).code(), Code::io);
    EXPECT_EQ(j.end(numbers[2], event("op", 502)).code(), Code::io);
    EXPECT_EQ(j.statistics().held_ends, 2u);
    EXPECT_EQ(j.statistics().lost_ends, 1u);
  }
}

// The real thing: the kernel takes a part of a record and no more.
TEST_F(JournalTest, AWriteCutShortLeavesNoHalfRecord) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    auto j = Journal::open(directory);
    if (!j) _exit(2);
    const std::uint64_t n = *j->begin(event("op", 1));
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = j->statistics().bytes + 10;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (j->end(n, event("op", 2)).ok() || j->begin(event("op", 3)).ok()) _exit(3);
    limit.rlim_cur = before;
    setrlimit(RLIMIT_FSIZE, &limit);
    if (!j->sync()) _exit(4);
    _exit(j->statistics().held_ends == 0 && j->statistics().open == 0 ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const auto all = read();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].input, 2);
  EXPECT_EQ(open().statistics().torn_bytes, 0u);
}

TEST_F(JournalTest, AKilledProcessLosesNothing) {
  std::set<std::uint64_t> ended;
  std::set<std::uint64_t> begun;
  for (int round = 0; round < 5; ++round) {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      JournalOptions options;
      options.segment_bytes = 4'000;
      options.sync = JournalSync::none;
      auto j = Journal::open(directory, options);
      if (!j) _exit(2);
      for (;;) {  // tells what was acknowledged: a number when it began, its negative when it ended
        const std::int64_t n = static_cast<std::int64_t>(*j->begin(event("op", 1)));
        if (write(pipes[1], &n, sizeof n) != sizeof n) _exit(0);
        if (n % 3 == 0) continue;
        if (!j->end(static_cast<std::uint64_t>(n), event("op", 2))) _exit(3);
        const std::int64_t done = -n;
        if (write(pipes[1], &done, sizeof done) != sizeof done) _exit(0);
      }
    }
    close(pipes[1]);
    std::int64_t n = 0;
    for (int i = 0; i < 200 + 37 * round && ::read(pipes[0], &n, sizeof n) == sizeof n; ++i) {
      if (i == 100 + 37 * round) kill(child, SIGKILL);
      (n > 0 ? begun : ended).insert(static_cast<std::uint64_t>(n > 0 ? n : -n));
    }
    kill(child, SIGKILL);
    while (::read(pipes[0], &n, sizeof n) == sizeof n)
      (n > 0 ? begun : ended).insert(static_cast<std::uint64_t>(n > 0 ? n : -n));
    close(pipes[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
    const Journal recovered = open();
    std::map<std::uint64_t, JournalKind> kinds;
    for (const auto& s : read()) ASSERT_TRUE(kinds.emplace(s.number, s.kind).second) << s.number;
    for (const std::uint64_t b : begun) ASSERT_EQ(kinds.count(b), 1u) << b;
    for (const std::uint64_t e : ended) ASSERT_EQ(kinds.at(e), JournalKind::end) << e;
  }
  EXPECT_GT(ended.size(), 200u);
}

TEST_F(JournalTest, ThreadsAppendWhileAReaderFollows) {
  JournalOptions options;
  options.segment_bytes = 20'000;
  options.sync = JournalSync::batched;
  options.sync_bytes = 5'000;
  Journal j = open(options);
  auto reader = JournalReader::open(directory);
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&j] {
      for (int i = 0; i < 300; ++i) {
        const auto n = j.begin(event("op", i));
        if (!n || !j.end(*n, event("op", i))) std::abort();
      }
    });
  }
  std::set<std::uint64_t> numbers;
  JournalRecord record;
  for (int tries = 0; numbers.size() < 900 && tries < 200'000; ++tries) {
    const auto more = reader->next(record);
    ASSERT_TRUE(more) << more.error().message;
    if (*more) {
      ASSERT_TRUE(numbers.insert(record.number).second);
    } else {
      std::this_thread::yield();
    }
  }
  for (std::thread& w : writers) w.join();
  while (*reader->next(record)) ASSERT_TRUE(numbers.insert(record.number).second);
  EXPECT_EQ(numbers.size(), 900u);
  EXPECT_EQ(j.statistics().open, 0u);
  EXPECT_GT(j.statistics().syncs, 3u);
}

}  // namespace
}  // namespace warmroute
