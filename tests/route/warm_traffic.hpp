// Seeded traffic for the tests of warm restarts, and what is compared before and after.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::test {

// A family's prompts share a head; each conversation in it grows; turns branch off at any depth.
class WarmTraffic {
 public:
  explicit WarmTraffic(std::uint64_t seed) : state_(seed << 32) {}
  std::uint64_t next() { return mix(state_++); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  std::vector<BlockHash> path() {
    const std::uint64_t family = below(12), conversation = below(6), version = below(3);
    const std::size_t head = 4 + family, length = head + below(24), fork = head + below(12);
    std::vector<BlockHash> path;
    for (std::size_t b = 0; b < length; ++b) {
      const std::uint64_t owner = b < head ? family : family * 100 + conversation * 10 + (b < fork ? 0 : 1 + version);
      path.push_back(BlockHash{mix(owner << 32 | b)});
    }
    return path;
  }

 private:
  std::uint64_t state_;
};

// Every block that is believed, as the hash of its whole path, in the order in which it would be evicted.
inline std::vector<SequenceHash> eviction_order(const CachedTree& tree) {
  std::vector<SequenceHash> order, chain;
  CachedPaths paths(tree);
  if (!paths.valid()) return order;
  for (std::size_t i = tree.runs.size(); i-- > 0;) {
    const auto path = paths.path(i, tree.runs[i].count);
    chain.resize(path.size());
    sequence_hashes(path, chain);
    order.insert(order.end(), chain.rbegin(), chain.rbegin() + tree.runs[i].count);
  }
  return order;
}

// Three replicas of unlike speed, so that exact ties, which fall by a running number, do not come up.
inline void add_three(Router& router, std::int64_t capacity_tokens = 16 * 600) {
  for (int i = 0; i < 3; ++i) {
    ReplicaSpec spec{.name = i == 2 ? "b" : "a", .dp_rank = i == 1 ? 1u : 0u};
    spec.rates.token_ps = 50'000'000 + 7'000'003 * i;
    spec.rates.floor_ns = 1'000'000 + 100'003 * i;
    spec.capacity_tokens = capacity_tokens;
    if (!router.add_replica(std::move(spec), Nanos{0})) std::abort();
  }
}

// Requests one after the other; some find less cached than was believed.
inline Nanos drive(Router& router, WarmTraffic& traffic, int requests, Nanos now) {
  for (int i = 0; i < requests; ++i) {
    const auto path = traffic.path();
    Request request;
    request.blocks = path;
    request.block_kind = traffic.below(2) == 0 ? BlockKind::tokens : BlockKind::text;
    request.prompt_bytes = static_cast<std::int64_t>(path.size()) * 64;
    const auto rows = router.replicas();
    if (traffic.below(2) == 0) request.pinned = rows[traffic.below(rows.size())].id;
    const Decision d = router.route(request, now += milliseconds(static_cast<std::int64_t>(traffic.below(20))));
    router.first_token(d.ticket, now += milliseconds(3));
    UsageCounts usage{.input_tokens = static_cast<std::int64_t>(path.size()) * 19, .output_tokens = 40};
    usage.cached_tokens = traffic.below(10) == 0 ? d.total_cached().value / 2 : d.total_cached().value;
    router.finish(d.ticket, usage, now += milliseconds(5));
  }
  router.advance(now);
  return now;
}

}  // namespace warmroute::test
