// Usage that is handed over: every event, in order, at least once, whatever the sink does.
#include "warmroute/control/sink.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "control/support.hpp"

namespace warmroute::sink_tests {
namespace {

using control_tests::Folder;
using control_tests::slurp;

void write(Journal& journal, const std::string& operation) {
  const std::string key_id = "key of " + operation;
  UsageEvent e;
  e.operation_id = operation;
  e.key_id = key_id;
  e.request_model = "m";
  const auto number = journal.begin(e);
  ASSERT_TRUE(number);
  const CostLine bill[] = {{PriceMeter::input, 4, 5, 20}};
  e.bill = bill;
  e.finish_reason = "stop";
  ASSERT_TRUE(journal.end(*number, e));
}

struct Taker {
  static Status take(void* user, std::span<const JournalRecord> records) {
    auto& me = *static_cast<Taker*>(user);
    const std::lock_guard lock(me.mutex);
    ++me.calls;
    if (me.fail > 0) {
      --me.fail;
      return Error{Code::io, "not now", kNoOffset};
    }
    for (const JournalRecord& r : records) {
      EXPECT_EQ(r.event.key_id, "key of " + std::string(r.event.operation_id));
      EXPECT_EQ(r.event.finish_reason, r.kind == JournalKind::end ? "stop" : "");
      EXPECT_EQ(r.event.bill.size(), r.kind == JournalKind::end ? 1u : 0u);
      me.ids.push_back(r.event_id);
      me.operations.emplace_back(r.event.operation_id);
    }
    me.largest = std::max(me.largest, records.size());
    return {};
  }
  std::mutex mutex;
  int calls = 0;
  int fail = 0;
  std::size_t largest = 0;
  std::vector<std::string> ids, operations;
};

HandoverOptions quick() {
  HandoverOptions o;
  o.batch = 7;
  o.interval = milliseconds(2);
  o.backoff_from = milliseconds(1);
  o.backoff_to = milliseconds(4);
  return o;
}

TEST(Handover, DeliversEverythingInOrderAndAcknowledges) {
  const Folder folder;
  auto journal = Journal::open(folder / "journal");
  ASSERT_TRUE(journal);
  for (int i = 0; i < 20; ++i) write(*journal, std::to_string(i));
  Taker taker;
  CallbackSink sink(&Taker::take, &taker);
  auto handover = HandoverThread::start(*journal, folder / "journal", sink, quick());
  ASSERT_TRUE(handover) << handover.error().message;
  for (int i = 20; i < 50; ++i) write(*journal, std::to_string(i));
  ASSERT_TRUE(handover->drain(seconds(30)));
  const std::lock_guard lock(taker.mutex);
  ASSERT_EQ(taker.operations.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(taker.operations[static_cast<std::size_t>(i)], std::to_string(i));
  EXPECT_LE(taker.largest, 7u);
  EXPECT_EQ(handover->status().delivered, 50u);
  EXPECT_TRUE(handover->status().drained);
  EXPECT_EQ(handover->status().acknowledged, journal->acknowledged());
  auto rest = JournalReader::open(folder / "journal", journal->acknowledged());
  JournalRecord record;
  EXPECT_FALSE(*rest->next(record));
}

TEST(Handover, WhatTheSinkRefusesComesAgain) {
  const Folder folder;
  auto journal = Journal::open(folder / "journal");
  ASSERT_TRUE(journal);
  for (int i = 0; i < 10; ++i) write(*journal, std::to_string(i));
  Taker taker;
  taker.fail = 5;
  CallbackSink sink(&Taker::take, &taker);
  auto handover = HandoverThread::start(*journal, folder / "journal", sink, quick());
  ASSERT_TRUE(handover);
  ASSERT_TRUE(handover->drain(seconds(30)));
  const HandoverStatus status = handover->status();
  EXPECT_EQ(status.failures, 5u);
  EXPECT_EQ(status.failures_in_row, 0u);
  EXPECT_EQ(status.last_error, "not now");
  EXPECT_EQ(status.delivered, 10u);
  std::string page;
  append_prometheus(status, page);
  EXPECT_NE(page.find("\nwarmroute_handover_events_total 10\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\nwarmroute_handover_failures_total 5\n"), std::string::npos) << page;
  const std::lock_guard lock(taker.mutex);
  EXPECT_EQ(taker.operations.size(), 10u);
}

TEST(Handover, ServingNeverWaitsForASinkThatIsStuck) {
  const Folder folder;
  auto journal = Journal::open(folder / "journal");
  ASSERT_TRUE(journal);
  std::mutex stuck;
  std::unique_lock hold(stuck);
  CallbackSink sink(
      [](void* user, std::span<const JournalRecord>) {
        const std::lock_guard wait(*static_cast<std::mutex*>(user));
        return Status{};
      },
      &stuck);
  write(*journal, "first");
  auto handover = HandoverThread::start(*journal, folder / "journal", sink, quick());
  ASSERT_TRUE(handover);
  for (int i = 0; i < 100; ++i) write(*journal, std::to_string(i));  // would hang here
  EXPECT_FALSE(handover->drain(milliseconds(20)));
  EXPECT_EQ(handover->status().delivered, 0u);
  hold.unlock();
  EXPECT_TRUE(handover->drain(seconds(30)));
  EXPECT_EQ(handover->status().delivered, 101u);
}

TEST(Handover, GoesOnWhereTheLastProcessStoppedAndWithWhatItLeftOpen) {
  const Folder folder;
  Taker taker;
  CallbackSink sink(&Taker::take, &taker);
  {
    auto journal = Journal::open(folder / "journal");
    ASSERT_TRUE(journal);
    write(*journal, "one");
    {
      auto handover = HandoverThread::start(*journal, folder / "journal", sink, quick());
      ASSERT_TRUE(handover->drain(seconds(30)));
    }
    write(*journal, "two");
    UsageEvent e;
    e.operation_id = "open";
    e.key_id = "key of open";
    ASSERT_TRUE(journal->begin(e));
  }
  auto journal = Journal::open(folder / "journal");
  ASSERT_TRUE(journal);
  auto handover = HandoverThread::start(*journal, folder / "journal", sink, quick());
  ASSERT_TRUE(handover->drain(seconds(30)));
  const std::lock_guard lock(taker.mutex);
  EXPECT_EQ(taker.operations, (std::vector<std::string>{"one", "two", "open"}));
  std::sort(taker.ids.begin(), taker.ids.end());
  EXPECT_EQ(std::unique(taker.ids.begin(), taker.ids.end()), taker.ids.end());
}

TEST(Handover, SegmentsThatAreDeliveredGo) {
  const Folder folder;
  JournalOptions small;
  small.segment_bytes = 2'000;
  auto journal = Journal::open(folder / "journal", small);
  ASSERT_TRUE(journal);
  for (int i = 0; i < 200; ++i) write(*journal, std::to_string(i));
  const std::uint64_t before = journal->statistics().bytes;
  Taker taker;
  CallbackSink sink(&Taker::take, &taker);
  auto handover = HandoverThread::start(*journal, folder / "journal", sink, quick());
  ASSERT_TRUE(handover->drain(seconds(30)));
  EXPECT_LT(journal->statistics().bytes, before / 4);
  EXPECT_EQ(handover->status().delivered, 200u);
}

TEST(Handover, OptionsThatCannotBeAreAllNamed) {
  const Folder folder;
  auto journal = Journal::open(folder / "journal");
  Taker taker;
  CallbackSink sink(&Taker::take, &taker);
  HandoverOptions bad;
  bad.batch = 0;
  bad.interval = Nanos{0};
  bad.backoff_to = Nanos{0};
  const auto handover = HandoverThread::start(*journal, "", sink, bad);
  ASSERT_EQ(handover.code(), Code::invalid_argument);
  for (const char* fault : {"directory", "batch", "interval", "backoff_from"})
    EXPECT_NE(handover.error().message.find(fault), std::string::npos) << fault;
}

TEST(JsonLinesSink, AppendsALinePerEventAndEndsATornOne) {
  const Folder folder;
  const std::string path = folder / "usage.jsonl";
  control_tests::spill(path, "{\"torn");
  auto journal = Journal::open(folder / "journal");
  ASSERT_TRUE(journal);
  write(*journal, "one");
  write(*journal, "two");
  JsonLinesSink sink(path);
  {
    auto handover = HandoverThread::start(*journal, folder / "journal", sink, quick());
    ASSERT_TRUE(handover->drain(seconds(30)));
  }
  const std::string text = slurp(path);
  EXPECT_EQ(text.substr(0, 8), "{\"torn\n{");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(text.find("\"one\""), std::string::npos);
  JsonLinesSink nowhere(folder / "no/such/file");
  EXPECT_EQ(nowhere.deliver({}).code(), Code::io);
}

}  // namespace
}  // namespace warmroute::sink_tests
