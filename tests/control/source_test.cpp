// A file that is followed: whatever happens to it, the last good bytes stay, and new ones come soon.
#include "warmroute/control/source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "control/support.hpp"

namespace warmroute::source_tests {
namespace {

using control_tests::at;
using control_tests::Folder;
using control_tests::live;
using control_tests::signed_bytes;
using control_tests::signer;
using control_tests::snapshot_of;
using control_tests::spill;

// Waits for what must come; a test that waits in vain fails, however slow the machine.
template <class Condition>
bool comes(Condition&& condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// Takes what begins with "good".
struct Consumer {
  static Status bytes(void* user, std::string_view text, UsageTime now) {
    auto& me = *static_cast<Consumer*>(user);
    const std::lock_guard lock(me.mutex);
    me.offered.emplace_back(text);
    me.when = now;
    if (text.substr(0, 4) != "good") return Error{Code::malformed, "bad: " + std::string(text), 0};
    me.taken.emplace_back(text);
    return {};
  }
  static void same(void* user, UsageTime) { ++static_cast<Consumer*>(user)->confirmations; }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex);
    return taken;
  }
  std::size_t offers() {
    const std::lock_guard lock(mutex);
    return offered.size();
  }
  FileSourceOptions options(const std::string& path) {
    FileSourceOptions o;
    o.path = path;
    o.interval = milliseconds(2);
    o.on_bytes = &bytes;
    o.on_same = &same;
    o.user = this;
    o.clock = [](void*) { return at(77); };
    return o;
  }
  std::mutex mutex;
  std::vector<std::string> offered, taken;
  UsageTime when{};
  std::atomic<int> confirmations{0};
};

TEST(FileSource, HandsOverWhatIsThereAndWhatReplacesIt) {
  const Folder folder;
  const std::string path = folder / "file";
  Consumer consumer;
  auto source = FileSourceThread::start(consumer.options(path));
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_TRUE(comes([&] { return source->status().missing; }));
  EXPECT_EQ(consumer.offers(), 0u);
  ASSERT_TRUE(replace_file(path, "good one"));
  EXPECT_TRUE(comes([&] { return consumer.all().size() == 1; }));
  EXPECT_EQ(consumer.when.steady, at(77).steady);
  const int confirmed = consumer.confirmations;
  EXPECT_TRUE(comes([&] { return consumer.confirmations > confirmed + 3; }));
  ASSERT_TRUE(replace_file(path, "good two"));
  EXPECT_TRUE(comes([&] { return consumer.all().size() == 2; }));
  EXPECT_EQ(consumer.all()[1], "good two");
  ASSERT_TRUE(replace_file(path, "good two"));  // another file, the same bytes
  source->look_now();
  EXPECT_EQ(consumer.offers(), 2u);
  EXPECT_TRUE(source->status().good);
  EXPECT_EQ(source->status().accepted, 2u);
  std::filesystem::remove(path);
  EXPECT_TRUE(comes([&] { return source->status().missing; }));
  EXPECT_FALSE(source->status().good);
  source->look_now();
  const int gone = consumer.confirmations;
  source->look_now();
  EXPECT_EQ(consumer.confirmations, gone);  // nobody is there
  ASSERT_TRUE(replace_file(path, "good two"));
  EXPECT_TRUE(comes([&] { return consumer.confirmations > gone; }));
  EXPECT_EQ(consumer.offers(), 2u);
}

TEST(FileSource, ARefusedFileIsTriedAgainAndConfirmsNothing) {
  const Folder folder;
  const std::string path = folder / "file";
  spill(path, "good one");
  Consumer consumer;
  auto source = FileSourceThread::start(consumer.options(path));
  ASSERT_TRUE(source);
  source->look_now();
  ASSERT_EQ(consumer.all().size(), 1u);
  spill(path, "half");  // in place, by somebody who does not rename
  EXPECT_TRUE(comes([&] { return source->status().refused > 1; }));
  EXPECT_FALSE(source->status().good);
  EXPECT_EQ(source->status().last_error, "bad: half");
  source->look_now();
  const int confirmed = consumer.confirmations;
  source->look_now();
  EXPECT_EQ(consumer.confirmations, confirmed);
  spill(path, "good, the whole of it");
  EXPECT_TRUE(comes([&] { return consumer.all().size() == 2; }));
  EXPECT_TRUE(comes([&] { return source->status().good; }));
  spill(path, "bad");
  EXPECT_TRUE(comes([&] { return source->status().last_error == "bad: bad"; }));
  spill(path, "good, the whole of it");  // what is in force: nothing to hand over
  EXPECT_TRUE(comes([&] { return source->status().good; }));
  EXPECT_EQ(consumer.all().size(), 2u);
}

TEST(FileSource, AFileThatIsTooLargeOrAFolderIsRefused) {
  const Folder folder;
  Consumer consumer;
  auto options = consumer.options(folder.path);
  options.max_bytes = 4;
  auto source = FileSourceThread::start(options);
  ASSERT_TRUE(source);
  EXPECT_TRUE(comes([&] { return source->status().refused > 0; }));
  options.path = folder / "file";
  spill(options.path, "good one");
  auto other = FileSourceThread::start(options);
  ASSERT_TRUE(other);
  other->look_now();
  EXPECT_NE(other->status().last_error.find("more than 4 bytes"), std::string::npos);
  EXPECT_EQ(consumer.offers(), 0u);
}

TEST(FileSource, OptionsThatCannotBeAreAllNamed) {
  FileSourceOptions options;
  options.interval = Nanos{0};
  options.retry_to = Nanos{-1};
  const auto source = FileSourceThread::start(options);
  ASSERT_EQ(source.code(), Code::invalid_argument);
  for (const char* fault : {"path", "interval", "retry_to", "on_bytes"})
    EXPECT_NE(source.error().message.find(fault), std::string::npos) << fault;
}

TEST(FileSource, StopsWhileItIsAsked) {
  const Folder folder;
  spill(folder / "file", "good");
  for (int i = 0; i < 20; ++i) {
    Consumer consumer;
    auto source = FileSourceThread::start(consumer.options(folder / "file"));
    ASSERT_TRUE(source);
    FileSourceThread moved = std::move(*source);
    if (i % 2 == 0) moved.look_now();
  }
}

TEST(FileSource, FeedsAnApplierWhileOthersServe) {
  const Folder folder;
  const std::string path = folder / "snapshot";
  KeySet keys;
  ControlOptions control;
  control.trust.keys = {signer().public_key()};
  control.directory = folder / "state";
  SnapshotApplier applier(control, {&keys, nullptr, nullptr, nullptr});
  FileSourceOptions options;
  options.path = path;
  options.interval = milliseconds(2);
  options.on_bytes = &SnapshotApplier::on_bytes;
  options.on_same = &SnapshotApplier::on_same;
  options.user = &applier;
  options.clock = [](void*) { return at(50); };
  ASSERT_TRUE(applier.load_last_good(at(1)));
  auto source = FileSourceThread::start(options);
  ASSERT_TRUE(source);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stop) {
      const KeyVerdict v = control_tests::verdict(keys, "a", 1, at(60));
      if (v != KeyVerdict::accepted && v != KeyVerdict::unknown && v != KeyVerdict::malformed) ++wrong;
      (void)applier.status(seconds(60));
    }
  });
  for (std::uint64_t generation = 1; generation <= 8; ++generation) {
    ASSERT_TRUE(replace_file(path, signed_bytes(snapshot_of(generation, {live("a")}))));
    EXPECT_TRUE(comes([&] { return applier.status(seconds(60)).generation == generation; }));
    spill(path, "half of a snaps");
    EXPECT_TRUE(comes([&] { return applier.status(seconds(60)).refused >= generation; }));
    EXPECT_EQ(applier.status(seconds(60)).generation, generation);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace warmroute::source_tests
