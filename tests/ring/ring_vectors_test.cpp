/// The golden vectors: placement, successors, shares and movements must come out the same on every platform.
#include <gtest/gtest.h>
#include <simdjson.h>

#include "ring/naive_ring.hpp"
#include "warmroute/ring/movement.hpp"

namespace warmroute {
namespace {

using namespace test;
using simdjson::dom::element;

std::string text(element e) { return std::string(std::string_view(e)); }
std::uint64_t number(element e) { return std::stoull(text(e)); }

Members members_of(element list) {
  Members members;
  for (const element m : list)
    members.push_back({text(m["ring_id"]), static_cast<std::uint32_t>(members.size()), double(m["weight"])});
  return members;
}

class RingVectors : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(parser_.load(std::string(WARMROUTE_TEST_DATA) + "/ring_vectors.json").get(root_));
  }
  simdjson::dom::parser parser_;
  element root_;
};

TEST_F(RingVectors, PlaceEveryFleetAndAnswerEveryLookup) {
  std::size_t lookups = 0;
  for (const element fleet : root_["fleets"]) {
    const Members members = members_of(fleet["replicas"]);
    const HashRing ring = ring_of(members, {.seed = std::uint64_t(fleet["seed"])});
    SCOPED_TRACE(text(fleet["fleet"]));
    EXPECT_EQ(ring.points(), std::uint64_t(fleet["points"]));
    EXPECT_EQ(ring.point_hash(0), number(fleet["first_point"]));
    EXPECT_EQ(ring.point_hash(ring.points() - 1), number(fleet["last_point"]));
    std::vector<std::string> last_keys;
    for (const element lookup : fleet["lookups"]) {
      std::vector<std::string> expected, got;
      for (const element id : lookup["successors"]) expected.push_back(text(id));
      for (const std::uint32_t m : successors(ring, number(lookup["key"]), expected.size()))
        got.push_back(members[m].ring_id);
      EXPECT_EQ(got, expected) << "key " << text(lookup["key"]);
      EXPECT_EQ(members[ring.home(number(lookup["key"]))].ring_id, expected.front());
      last_keys.push_back(text(lookup["key"]));
      ++lookups;
    }
    for (std::size_t i = 0; i < 20; ++i) {
      const std::string key = slot("key-", i);
      EXPECT_EQ(last_keys[last_keys.size() - 20 + i], std::to_string(XXH3_64bits(key.data(), key.size())));
    }
  }
  EXPECT_EQ(lookups, 8U * 27U);
}

TEST_F(RingVectors, MeasureEveryShare) {
  std::size_t shares = 0;
  for (const element fleet : root_["fleets"]) {
    if (fleet["arc_share"].is_null()) continue;
    const HashRing ring = ring_of(members_of(fleet["replicas"]), {.seed = std::uint64_t(fleet["seed"])});
    const auto spans = ring.shares();
    for (const auto [id, span] : simdjson::dom::object(fleet["arc_share"])) {
      EXPECT_EQ(spans[ring.find(id)].decimal(), text(span)) << text(fleet["fleet"]) << " " << id;
      ++shares;
    }
  }
  EXPECT_GT(shares, 30U);
}

TEST_F(RingVectors, MeasureEveryMovement) {
  std::size_t movements = 0;
  for (const element expected : root_["movements"]) {
    SCOPED_TRACE(text(expected["name"]));
    const Movement got =
        movement_between(ring_of(members_of(expected["before"])), ring_of(members_of(expected["after"])));
    EXPECT_EQ(got.moved.decimal(), text(expected["moved_of_2^64"]));
    EXPECT_EQ(got.fraction(), double(expected["fraction"]));
    ++movements;
    if (expected["flows"].is_null()) continue;
    std::vector<std::string> wanted, flows;
    for (const element f : expected["flows"])
      wanted.push_back(text(f["from"]) + " > " + text(f["to"]) + " " + text(f["length"]));
    for (const KeyFlow& f : got.flows) flows.push_back(f.from + " > " + f.to + " " + f.span.decimal());
    EXPECT_EQ(flows, wanted);
  }
  EXPECT_EQ(movements, 4U);
}

}  // namespace
}  // namespace warmroute
