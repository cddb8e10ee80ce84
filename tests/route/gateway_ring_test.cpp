#include "warmroute/route/gateway_ring.hpp"
#include "warmroute/route/baselines.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "route/prompts.hpp"

namespace warmroute {
namespace {

const std::vector<std::string> kNames{"gw-0", "gw-1", "gw-2", "gw-3"};

using test::prompt;
using test::request;

TEST(GatewayRing, AllGatewaysAgreeOnTheOwnerOfAKey) {
  std::array<int, 4> owned{};
  std::vector<GatewayRing> rings;
  for (const auto& self : kNames) rings.push_back(std::move(*GatewayRing::build(kNames, self)));
  for (std::uint32_t i = 0; i < 400; ++i) {
    const auto tokens = prompt(i * 10'000);
    const std::uint64_t key = rings[0].key(request(tokens), Policy{});
    int local = 0;
    for (const auto& ring : rings) {
      EXPECT_EQ(ring.key(request(tokens), Policy{}), key);
      const auto owner = ring.owner(key, false);
      EXPECT_EQ(owner.index, rings[0].owner(key, false).index);
      local += owner.local;
    }
    EXPECT_EQ(local, 1) << "exactly one of them serves it";
    ++owned[rings[0].owner(key, false).index];
  }
  for (const int count : owned) EXPECT_GT(count, 50);
}

TEST(GatewayRing, ARequestIsForwardedOnceAtMost) {
  const auto ring = GatewayRing::build(kNames, "gw-2");
  for (std::uint64_t key = 0; key < 1'000; ++key) {
    const auto owner = ring->owner(mix(key), true);
    EXPECT_TRUE(owner.local);
    EXPECT_EQ(owner.index, 2u);
  }
}

TEST(GatewayRing, KeysOfAGatewayThatIsDownGoToTheNextAndComeBack) {
  auto ring = GatewayRing::build(kNames, "gw-0");
  int moved = 0;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    const std::uint64_t key = mix(i);
    const auto before = ring->owner(key, false);
    ring->set_up(1, false);
    const auto during = ring->owner(key, false);
    ring->set_up(1, true);
    EXPECT_EQ(ring->owner(key, false).index, before.index);
    EXPECT_NE(during.index, 1u);
    if (before.index == 1) {
      ++moved;
    } else {
      EXPECT_EQ(during.index, before.index) << "nobody else's keys move";
    }
  }
  EXPECT_GT(moved, 150);
}

TEST(GatewayRing, ServesAllByItselfWhenItIsTheOnlyOneLeft) {
  auto ring = GatewayRing::build(kNames, "gw-3");
  for (std::uint32_t i = 0; i < 3; ++i) ring->set_up(i, false);
  ring->set_up(3, false);  // it does not believe that of itself
  ring->set_up(99, false);
  for (std::uint64_t key = 0; key < 100; ++key) EXPECT_TRUE(ring->owner(mix(key), false).local);
}

TEST(GatewayRing, ASessionStaysWithItsGatewayWhateverItsPromptIs) {
  const auto ring = GatewayRing::build(kNames, "gw-0");
  const auto first = prompt(1), second = prompt(777'777);
  Request a = request(first), b = request(second);
  a.session = b.session = "conversation-7";
  EXPECT_EQ(ring->key(a, Policy{}), ring->key(b, Policy{}));
  b.tenant = "another";
  EXPECT_NE(ring->key(a, Policy{}), ring->key(b, Policy{}));
}

TEST(GatewayRing, TurnsOfOneConversationHaveOneKeyAndTenantsAreApart) {
  const auto ring = GatewayRing::build(kNames, "gw-0");
  const auto turn = prompt(1, 2'000), next = prompt(1, 9'000), other = prompt(5, 2'000);
  EXPECT_EQ(ring->key(request(turn), Policy{}), ring->key(request(next), Policy{}));
  EXPECT_NE(ring->key(request(turn), Policy{}), ring->key(request(other), Policy{}));
  Request tenant = request(turn);
  tenant.tenant = "t";
  EXPECT_NE(ring->key(tenant, Policy{}), ring->key(request(turn), Policy{}));
}

TEST(GatewayRing, AShortConversationThatGrowsMovesAFewTimesOnly) {
  const auto ring = GatewayRing::build(kNames, "gw-0");
  const auto tokens = prompt(1, 1'100);
  const std::vector<BlockHash> blocks(68, BlockHash{7});
  int of_tokens = 0, of_blocks = 0;
  for (std::size_t n = 64; n < 1'100; n += 16) {
    Request before, after;
    before.token_ids = std::span(tokens).first(n - 16);
    after.token_ids = std::span(tokens).first(n);
    of_tokens += ring->key(before, Policy{}) != ring->key(after, Policy{});
    before = after = Request{};
    before.blocks = std::span(blocks).first(n / 16 - 1);
    after.blocks = std::span(blocks).first(n / 16);
    of_blocks += ring->key(before, Policy{}) != ring->key(after, Policy{});
  }
  EXPECT_EQ(of_tokens, 5) << "at 64, 128, 256, 512 and 1,024 tokens";
  EXPECT_EQ(of_blocks, 5);
}

TEST(GatewayRing, ShortAndEmptyPromptsHaveKeysToo) {
  const auto ring = GatewayRing::build(kNames, "gw-0");
  const auto shorter = prompt(1, 3);
  EXPECT_NE(ring->key(request(shorter), Policy{}), ring->key(Request{}, Policy{}));
  const std::vector<BlockHash> blocks{BlockHash{1}};
  Request r;
  r.blocks = blocks;
  EXPECT_NE(ring->key(r, Policy{}), ring->key(Request{}, Policy{}));
}

TEST(GatewayRing, RefusesNamesThatDoNotMakeARing) {
  EXPECT_EQ(GatewayRing::build(kNames, "gw-9").code(), Code::not_found);
  const std::vector<std::string> twice{"a", "a"};
  EXPECT_EQ(GatewayRing::build(twice, "a").code(), Code::already_exists);
}

}  // namespace
}  // namespace warmroute
