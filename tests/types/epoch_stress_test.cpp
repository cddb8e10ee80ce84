// Readers and writers at once; the sanitizer runs give these tests their teeth.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "warmroute/detail/epoch.hpp"

namespace warmroute::detail {
namespace {

constexpr std::uint64_t kAlive = 0x600d'600d'600d'600du;

/// A value whose parts agree while it lives, and not any more afterwards.
struct Value {
  explicit Value(std::uint64_t n) : number(n), twin(~n) {}
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() { mark = 0; }
  bool whole() const { return mark == kAlive && number == ~twin; }
  std::uint64_t number;
  volatile std::uint64_t mark = kAlive;  // volatile: the write in the destructor is not dropped as dead
  std::uint64_t twin;
};

TEST(SnapshotStress, ReadersSeeWholeValuesInOrderWhileOneWriterPublishes) {
  constexpr std::uint64_t kLast = 20'000;
  EpochDomain domain;
  Snapshot<Value> snapshot(domain, std::make_unique<const Value>(0));
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> backwards{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 3; ++r) {
    readers.emplace_back([&] {
      std::uint64_t seen = 0;
      while (seen < kLast) {
        const auto guard = domain.pin();
        const Value& value = snapshot.read(guard);
        const std::uint64_t number = value.number;
        if (number % 64 == 0) std::this_thread::yield();  // hold on to a value while others are published
        if (!value.whole() || value.number != number) torn.fetch_add(1);
        if (number < seen) backwards.fetch_add(1);
        seen = number;
      }
    });
  }
  for (std::uint64_t n = 1; n <= kLast; ++n) snapshot.publish(std::make_unique<const Value>(n));
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(backwards.load(), 0u);
  domain.collect();
  EXPECT_EQ(domain.waiting(), 0u) << "all readers are gone, so is all they held";
}

TEST(SnapshotStress, SeveralSnapshotsShareOneDomainWithAWriterEach) {
  constexpr std::uint64_t kLast = 5'000;
  EpochDomain domain;
  Snapshot<Value> ring(domain, std::make_unique<const Value>(0));
  Snapshot<Value> policy(domain, std::make_unique<const Value>(0));
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!done.load()) {
        const auto guard = domain.pin();
        if (!ring.read(guard).whole() || !policy.read(guard).whole()) torn.fetch_add(1);
      }
    });
  }
  const auto publish_all = [](Snapshot<Value>& to) {
    for (std::uint64_t n = 1; n <= kLast; ++n) to.publish(std::make_unique<const Value>(n));
  };
  std::thread other_writer([&] { publish_all(policy); });
  publish_all(ring);
  other_writer.join();
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(ring.latest().number, kLast);
  EXPECT_EQ(policy.latest().number, kLast);
}

// A list whose inner pointers are release/acquire only, as in the index: pin alone must order what lies behind them.
TEST(EpochStress, ReadersWalkALinkedListWhileNodesAreUnlinked) {
  struct Node {
    explicit Node(std::uint64_t n, Node* rest) : value(n), next(rest) {}
    Value value;
    std::atomic<Node*> next;
  };
  EpochDomain domain;
  Node* fourth = new Node(4, nullptr);
  Node head(0, new Node(1, new Node(2, new Node(3, fourth))));
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!done.load()) {
        const auto guard = domain.pin();
        for (const Node* node = &head; node != nullptr; node = node->next.load(std::memory_order_acquire)) {
          if (!node->value.whole()) torn.fetch_add(1);
        }
      }
    });
  }
  for (std::uint64_t n = 0; n < 10'000; ++n) {
    // Replace the second or the third node by a new one.
    Node* before = n % 2 == 0 ? &head : head.next.load(std::memory_order_relaxed);
    Node* old = before->next.load(std::memory_order_relaxed);
    before->next.store(new Node(n, old->next.load(std::memory_order_relaxed)), std::memory_order_release);
    domain.retire(old);
    domain.collect(4);
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0u);
  for (Node* node = head.next.load(); node != nullptr;) delete std::exchange(node, node->next.load());
}

TEST(EpochStress, CrowdsLargerThanTheSlotsStaySafe) {
  EpochDomain domain;
  Snapshot<Value> snapshot(domain, std::make_unique<const Value>(0));
  // This thread occupies all slots but two, so that the others collide and overflow.
  std::list<EpochDomain::Guard> crowd;
  for (std::size_t i = 0; i + 2 < EpochDomain::kSlots; ++i) crowd.push_back(domain.pin());
  std::atomic<std::uint64_t> torn{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int r = 0; r < 4; ++r) {
    readers.emplace_back([&] {
      while (!done.load()) {
        const auto guard = domain.pin();
        const Value& value = snapshot.read(guard);
        std::this_thread::yield();
        if (!value.whole()) torn.fetch_add(1);
      }
    });
  }
  for (std::uint64_t n = 1; n <= 3'000; ++n) {
    if (n == 1'500) crowd.clear();
    snapshot.publish(std::make_unique<const Value>(n));
    if (n % 100 == 0) std::this_thread::yield();
  }
  done = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn.load(), 0u);
  domain.collect();
  EXPECT_EQ(domain.waiting(), 0u);
}

TEST(EpochStress, AGuardMayBeReleasedByAnotherThread) {
  EpochDomain domain;
  bool freed = false;
  struct Flag {
    bool* freed;
    ~Flag() { *freed = true; }
  };
  {
    std::list<EpochDomain::Guard> baton;
    std::thread taker([&] { baton.push_back(domain.pin()); });
    taker.join();
    domain.retire(new Flag{&freed});
    EXPECT_EQ(domain.collect(), 0u);
  }
  EXPECT_EQ(domain.collect(), 1u);
  EXPECT_TRUE(freed);
}

}  // namespace
}  // namespace warmroute::detail
