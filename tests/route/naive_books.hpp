/// What each replica's book should say, by slot and generation, and the comparison with what a router's books do.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "warmroute/route/router.hpp"

namespace warmroute::test {

using NaiveBooks = std::map<std::pair<std::uint32_t, std::uint32_t>, LoadReading>;

inline void expect_books(const Router& router, NaiveBooks& naive, std::size_t open) {
  const RouterStatistics s = router.statistics();
  ASSERT_EQ(s.tickets_in_flight, open);
  for (const auto& r : s.replicas) {
    const LoadReading& l = naive[{r.id.slot, r.id.generation}];
    ASSERT_EQ(r.load.requests, l.requests);
    ASSERT_EQ(r.load.context_tokens, l.context_tokens);
    ASSERT_EQ(r.load.decoding, l.decoding);
    ASSERT_EQ(r.load.pending_tokens, l.pending_tokens);
    ASSERT_EQ(r.load.pending_ns, l.pending_ns);
    ASSERT_GE(r.held_tokens, 0);
    ASSERT_LE(r.held_tokens, l.context_tokens);
  }
}

}  // namespace warmroute::test
