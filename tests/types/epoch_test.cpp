// EpochDomain and Snapshot in one thread, where every outcome is exact.
#include "warmroute/detail/epoch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <list>
#include <memory>
#include <random>
#include <utility>

namespace warmroute::detail {
namespace {

/// Tells when it is destroyed.
struct Probe {
  explicit Probe(bool& flag) : freed(&flag) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() { *freed = true; }
  bool* freed;
};

TEST(EpochDomain, FreesAtOnceWhenNobodyReads) {
  EpochDomain domain;
  bool freed = false;
  domain.retire(new Probe(freed));
  EXPECT_FALSE(freed) << "retire never frees by itself";
  EXPECT_EQ(domain.waiting(), 1u);
  EXPECT_EQ(domain.collect(), 1u);
  EXPECT_TRUE(freed);
  EXPECT_EQ(domain.waiting(), 0u);
  EXPECT_EQ(domain.collect(), 0u);
}

TEST(EpochDomain, KeepsWhatAnEarlierReaderMaySee) {
  EpochDomain domain;
  bool freed = false;
  {
    const auto guard = domain.pin();
    domain.retire(new Probe(freed));
    EXPECT_EQ(domain.collect(), 0u);
    EXPECT_FALSE(freed);
  }
  EXPECT_EQ(domain.collect(), 1u);
  EXPECT_TRUE(freed);
}

TEST(EpochDomain, DoesNotWaitForReadersThatCameLater) {
  EpochDomain domain;
  bool freed = false;
  domain.retire(new Probe(freed));
  const auto late = domain.pin();
  EXPECT_EQ(domain.collect(), 1u);
  EXPECT_TRUE(freed);
}

TEST(EpochDomain, AnInnerGuardOfTheSameThreadDoesNotReleaseTheOuterOne) {
  EpochDomain domain;
  bool freed = false;
  auto outer = std::make_unique<EpochDomain::Guard>(domain.pin());
  { const auto inner = domain.pin(); }
  domain.retire(new Probe(freed));
  { const auto inner = domain.pin(); }
  EXPECT_EQ(domain.collect(), 0u);
  outer.reset();
  EXPECT_EQ(domain.collect(), 1u);
  EXPECT_TRUE(freed);
}

TEST(EpochDomain, AMovedGuardReleasesOnce) {
  bool freed = false, later = false;  // written to by the domain's end
  EpochDomain domain;
  {
    auto first = domain.pin();
    domain.retire(new Probe(freed));
    {
      const EpochDomain::Guard second(std::move(first));
      EXPECT_EQ(domain.collect(), 0u) << "the new owner still holds it";
    }
    EXPECT_EQ(domain.collect(), 1u) << "the empty one holds nothing";
  }
  const auto guard = domain.pin();
  domain.retire(new Probe(later));
  EXPECT_EQ(domain.collect(), 0u) << "the second destructor must not have released somebody else's slot";
  EXPECT_FALSE(later);
}

TEST(EpochDomain, FreesNoMoreThanItIsAskedTo) {
  EpochDomain domain;
  bool freed[5] = {};
  for (bool& flag : freed) domain.retire(new Probe(flag));
  EXPECT_EQ(domain.collect(2), 2u);
  EXPECT_TRUE(freed[0] && freed[1]) << "oldest first";
  EXPECT_FALSE(freed[2]);
  EXPECT_EQ(domain.waiting(), 3u);
  EXPECT_EQ(domain.collect(0), 0u);
  EXPECT_EQ(domain.collect(), 3u);
}

TEST(EpochDomain, FreesTheRestWithItself) {
  bool freed = false;
  {
    EpochDomain domain;
    domain.retire(new Probe(freed));
  }
  EXPECT_TRUE(freed);
}

TEST(EpochDomain, HandsOverToTheGivenFunction) {
  EpochDomain domain;
  int object = 0;
  domain.retire(&object, [](void* p) { ++*static_cast<int*>(p); });
  domain.collect();
  EXPECT_EQ(object, 1);
}

TEST(EpochDomain, TakesMoreReadersThanItHasSlots) {
  bool freed = false, later = false;  // written to by the domain's end
  EpochDomain domain;
  std::list<EpochDomain::Guard> readers;
  for (std::size_t i = 0; i < EpochDomain::kSlots + 20; ++i) readers.push_back(domain.pin());
  domain.retire(new Probe(freed));
  EXPECT_EQ(domain.collect(), 0u);

  // The twenty that found no slot hold back everything, those with a slot what they can see.
  while (readers.size() > 20) readers.pop_front();
  EXPECT_EQ(domain.collect(), 0u);
  while (readers.size() > 1) readers.pop_front();
  EXPECT_EQ(domain.collect(), 0u) << "one uncounted reader is enough to crash";
  readers.clear();
  EXPECT_EQ(domain.collect(), 1u);
  EXPECT_TRUE(freed);

  // The slots are usable again.
  for (std::size_t i = 0; i < EpochDomain::kSlots; ++i) readers.push_back(domain.pin());
  domain.retire(new Probe(later));
  const auto after = domain.pin();  // in the overflow, although it cannot see the object
  readers.clear();
  EXPECT_EQ(domain.collect(), 0u);
  EXPECT_FALSE(later);
}

TEST(EpochDomain, TagsOfAdvanceOrderAgainstReaders) {
  EpochDomain domain;
  const std::uint64_t before = domain.advance();
  EXPECT_LT(before, domain.oldest_pinned()) << "nobody reads: free to go";
  const auto guard = domain.pin();
  EXPECT_LT(before, domain.oldest_pinned()) << "the reader came later";
  const std::uint64_t during = domain.advance();
  EXPECT_FALSE(during < domain.oldest_pinned());
}

/// The rule itself: an object goes exactly when no reader is left that entered before it was retired.
TEST(EpochDomain, AgreesWithANaiveModelUnderRandomOperations) {
  struct Reader {
    EpochDomain::Guard guard;
    std::size_t retired_before;  // objects 0..n-1 were gone when it entered
  };
  const char* const rounds_text = std::getenv("WARMROUTE_TEST_ROUNDS");
  const int rounds = 5 * (rounds_text != nullptr ? std::max(1, std::atoi(rounds_text)) : 1);
  for (int seed = 1; seed <= rounds; ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::list<bool> freed;  // outlives the domain, which frees the rest
    EpochDomain domain;
    std::list<Reader> readers;
    for (int step = 0; step < 4'000; ++step) {
      const auto dice = random() % 10;
      if (dice < 4 && readers.size() < 100) {
        readers.push_back({domain.pin(), freed.size()});
      } else if (dice < 7 && !readers.empty()) {
        readers.erase(std::next(readers.begin(), static_cast<std::ptrdiff_t>(random() % readers.size())));
      } else if (dice < 9) {
        domain.retire(new Probe(freed.emplace_back(false)));
      } else {
        domain.collect();
        std::size_t free_to_go = freed.size();
        for (const auto& reader : readers) free_to_go = std::min(free_to_go, reader.retired_before);
        std::size_t index = 0;
        for (const bool gone : freed) {
          ASSERT_EQ(gone, index < free_to_go) << "object " << index << ", seed " << seed << ", step " << step;
          ++index;
        }
        ASSERT_EQ(domain.waiting(), freed.size() - free_to_go);
      }
    }
  }
}

TEST(Snapshot, ReadersKeepTheValueTheyFound) {
  EpochDomain domain;
  bool first_freed = false;
  bool second_freed = false;
  {
    Snapshot<Probe> snapshot(domain, std::make_unique<const Probe>(first_freed));
    {
      const auto guard = domain.pin();
      const Probe& old = snapshot.read(guard);
      snapshot.publish(std::make_unique<const Probe>(second_freed));
      EXPECT_FALSE(first_freed);
      EXPECT_EQ(old.freed, &first_freed);
      EXPECT_EQ(snapshot.read(guard).freed, &second_freed) << "the next read sees the new value";
      EXPECT_EQ(snapshot.latest().freed, &second_freed);
    }
    domain.collect();
    EXPECT_TRUE(first_freed);
    EXPECT_FALSE(second_freed);
  }
  EXPECT_TRUE(second_freed) << "the current value goes with the snapshot";
}

}  // namespace
}  // namespace warmroute::detail
