// Its own program: operator new is counted (support/counting_new.cpp). Hot calls of the C interface allocate nothing once warm.
// The answers agree with what was predicted here: a repair of the cache's model may allocate, as the header says.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "support/counting_new.hpp"
#include "warmroute.h"

namespace {

using warmroute::test::allocations;

// Rounds that warm up, then rounds that are counted.
template <class Round>
std::size_t allocations_of(Round&& round) {
  for (int i = 0; i < 20; ++i) round();
  const std::size_t before = allocations();
  for (int i = 0; i < 20; ++i) round();
  return allocations() - before;
}

wr_str text(const std::string& s) { return {s.data(), s.size()}; }

struct Fleet {
  Fleet() {
    EXPECT_EQ(wr_router_new(nullptr, &router, nullptr), WR_STATUS_OK);
    for (int i = 0; i < 8; ++i) {
      const std::string name = "gpu-" + std::to_string(i);
      wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
      wr_replica_id id = WR_NO_REPLICA_INIT;
      spec.name = text(name);
      EXPECT_EQ(wr_router_add_replica(router, &spec, 1, &id, nullptr), WR_STATUS_OK);
    }
    std::iota(tokens.begin(), tokens.end(), 1u);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      requests[i] = WR_REQUEST_INIT;
      requests[i].token_ids = tokens.data();
      requests[i].token_count = 1'000 * (i + 1);
      requests[i].session = {"conversation", 12};
      decisions[i] = WR_DECISION_INIT;
    }
  }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet() { wr_router_free(router); }

  wr_router* router = nullptr;
  std::vector<std::uint32_t> tokens = std::vector<std::uint32_t>(10'000);
  std::array<wr_request, 8> requests;
  std::array<wr_decision, 8> decisions;
  std::int64_t now_ns = 2;
};

TEST(CAllocation, IsZeroOnRouteAndTickets) {
  Fleet f;
  bool fine = true;
  EXPECT_EQ(allocations_of([&] {
              for (const wr_request& request : f.requests) {
                wr_decision d = WR_DECISION_INIT;
                wr_usage usage = WR_USAGE_INIT;
                fine &= wr_router_peek(f.router, &request, ++f.now_ns, &d, nullptr) == WR_STATUS_OK;
                fine &= wr_router_route(f.router, &request, ++f.now_ns, &d, nullptr) == WR_STATUS_OK;
                fine &= wr_router_first_token(f.router, d.ticket, ++f.now_ns) == WR_STATUS_OK;
                usage.cached_tokens = d.cached_tokens[0];
                usage.output_tokens = 50;
                fine &= wr_router_finish(f.router, d.ticket, &usage, ++f.now_ns) == WR_STATUS_OK;
                fine &= wr_router_finish(f.router, d.ticket, &usage, ++f.now_ns) == WR_STATUS_STALE;
                fine &= wr_router_route(f.router, &request, ++f.now_ns, &d, nullptr) == WR_STATUS_OK;
                fine &= wr_router_fail(f.router, d.ticket, WR_OUTCOME_CANCELLED, ++f.now_ns) == WR_STATUS_OK;
              }
            }),
            0u);
  EXPECT_TRUE(fine);
}

TEST(CAllocation, IsZeroOnBatches) {
  Fleet f;
  bool fine = true;
  EXPECT_EQ(allocations_of([&] {
              constexpr std::size_t kIn = sizeof(wr_request), kOut = sizeof(wr_decision);
              const std::size_t n = f.requests.size();
              fine &= wr_router_peek_batch(f.router, f.requests.data(), n, kIn, ++f.now_ns, f.decisions.data(), kOut,
                                           nullptr) == WR_STATUS_OK;
              fine &= wr_router_route_batch(f.router, f.requests.data(), n, kIn, ++f.now_ns, f.decisions.data(), kOut,
                                            nullptr) == WR_STATUS_OK;
              const wr_ticket* tickets = &f.decisions[0].ticket;
              std::array<wr_status, 8> out{};
              fine &= wr_router_first_token_batch(f.router, tickets, n, kOut, ++f.now_ns, out.data()) == WR_STATUS_OK;
              fine &= wr_router_finish_batch(f.router, tickets, n / 2, kOut, nullptr, 0, ++f.now_ns, out.data()) ==
                      WR_STATUS_OK;
              fine &= wr_router_fail_batch(f.router, tickets, n, kOut, WR_OUTCOME_TIMEOUT, ++f.now_ns, out.data()) ==
                      WR_STATUS_OK;
              fine &= out[0] == WR_STATUS_STALE && out[7] == WR_STATUS_OK;
            }),
            0u);
  EXPECT_TRUE(fine);
}

TEST(CAllocation, IsZeroOnTheRing) {
  std::array<std::string, 8> names;
  std::array<wr_ring_member, 8> members;
  for (std::uint32_t i = 0; i < 8; ++i) {
    names[i] = "slot-" + std::to_string(i);
    members[i] = WR_RING_MEMBER_INIT;
    members[i].member = i;
    members[i].ring_id = text(names[i]);
  }
  wr_ring* ring = nullptr;
  ASSERT_EQ(wr_ring_new(members.data(), 8, sizeof(wr_ring_member), nullptr, &ring, nullptr), WR_STATUS_OK);
  std::uint64_t key = 1;
  bool fine = true;
  EXPECT_EQ(allocations_of([&] {
              std::array<std::uint32_t, 8> out{};
              std::array<std::int64_t, 8> loads{9, 9, 0, 9, 9, 9, 0, 9};
              std::array<std::uint64_t, 4> keys{key, key + 1, key + 2, key + 3};
              std::size_t count = 0;
              wr_bounded_pick pick = WR_BOUNDED_PICK_INIT;
              const wr_load_bound bound = WR_LOAD_BOUND_INIT;
              key *= 0x9E3779B97F4A7C15u;
              fine &= wr_ring_home(ring, key) < 8;
              fine &= wr_ring_home_batch(ring, keys.data(), 4, 8, out.data(), 4, nullptr) == WR_STATUS_OK;
              fine &= wr_ring_successors(ring, key, out.data(), 8, &count, nullptr) == WR_STATUS_OK;
              fine &=
                  wr_ring_bounded_pick(ring, &bound, key, 3, loads.data(), nullptr, 8, &pick, nullptr) == WR_STATUS_OK;
            }),
            0u);
  EXPECT_TRUE(fine);
  wr_ring_free(ring);
}

TEST(CAllocation, IsZeroOnHashesAndMatches) {
  wr_index* index = nullptr;
  wr_match* match = nullptr;
  ASSERT_EQ(wr_index_new(nullptr, &index, nullptr), WR_STATUS_OK);
  ASSERT_EQ(wr_match_new(&match, nullptr), WR_STATUS_OK);
  std::vector<std::uint32_t> tokens(4'096, 7);
  std::vector<std::uint64_t> path(256), chain(256);
  std::size_t count = 0;
  bool fine = true;
  ASSERT_EQ(wr_hash_token_blocks(tokens.data(), tokens.size(), 16, 1337, path.data(), 256, &count, nullptr),
            WR_STATUS_OK);
  ASSERT_EQ(wr_index_store(index, {1, 1}, WR_TIER_HOST, path.data(), 256, 0, nullptr), WR_STATUS_OK);
  EXPECT_EQ(
      allocations_of([&] {
        const wr_hash_space space = WR_HASH_SPACE_INIT;
        std::uint64_t seed = 0;
        const std::uint32_t* depths = nullptr;
        std::size_t slots = 0;
        fine &= wr_block_seed(&space, &seed, nullptr) == WR_STATUS_OK;
        fine &= wr_hash_token_blocks(tokens.data(), 4'096, 16, seed, path.data(), 256, &count, nullptr) == WR_STATUS_OK;
        fine &=
            wr_hash_eagle_blocks(tokens.data(), 4'096, 64, seed, chain.data(), 256, &count, nullptr) == WR_STATUS_OK;
        fine &= wr_hash_text_blocks({"text", 4}, seed, chain.data(), 256, &count, nullptr) == WR_STATUS_OK;
        fine &= wr_sequence_hashes(path.data(), 256, chain.data(), nullptr) == WR_STATUS_OK;
        fine &= wr_index_match(index, path.data(), 256, match, nullptr) == WR_STATUS_OK;
        fine &= wr_match_depths(match, WR_TIER_DISK, &depths, &slots, nullptr) == WR_STATUS_OK && depths[1] == 256;
      }),
      0u);
  EXPECT_TRUE(fine);
  wr_match_free(match);
  wr_index_free(index);
}

TEST(CAllocation, IsZeroOnBodiesOfAKnownSizeAndOnRefusals) {
  Fleet f;
  wr_body_parser* parser = nullptr;
  ASSERT_EQ(wr_body_parser_new(&parser, nullptr), WR_STATUS_OK);
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":")" + std::string(2'000, 'p') + R"("}]})";
  bool fine = true;
  EXPECT_EQ(allocations_of([&] {
              wr_body read = WR_BODY_INIT;
              wr_request request = WR_REQUEST_INIT;
              wr_decision d = WR_DECISION_INIT;
              fine &= wr_body_parser_parse(parser, WR_API_CHAT, text(body), nullptr, &read, nullptr) == WR_STATUS_OK;
              fine &= wr_body_to_request(&read, &request, nullptr) == WR_STATUS_OK;
              fine &= wr_router_peek(f.router, &request, ++f.now_ns, &d, nullptr) == WR_STATUS_OK;
              request.struct_size = 0;
              wr_error err = WR_ERROR_INIT;
              fine &= wr_router_route(f.router, &request, ++f.now_ns, &d, &err) == WR_STATUS_INVALID_ARGUMENT;
            }),
            0u);
  EXPECT_TRUE(fine);
  wr_body_parser_free(parser);
}

}  // namespace
