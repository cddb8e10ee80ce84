/// RING(N): picks from a ring of N members of weight 1 with 10^5 keys of 16 to 23 bytes, hashed once, in random order
/// (in sorted order every pick would find the last one's cache lines). The argument is N.
/// Jump hash and a Maglev table are here as baselines only: neither gives ordered successors.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/ring/movement.hpp"

namespace {

using namespace warmroute;

constexpr std::size_t kKeys = 100'000;

std::vector<RingMember> fleet(std::size_t n) {
  std::vector<RingMember> members;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::string id("10.0.");
    id.append(std::to_string(i / 256)).append(".").append(std::to_string(i % 256)).append(":8000");
    members.push_back({std::move(id), i, 1.0});
  }
  return members;
}

const std::vector<std::string>& key_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < kKeys; ++i) {
      std::string text(16 + i % 8, '0');
      for (std::size_t at = text.size(), rest = i; at > 8; rest /= 10) text[--at] = static_cast<char>('0' + rest % 10);
      all.push_back(std::move(text));
    }
    std::shuffle(all.begin(), all.end(), std::mt19937_64(1));
    return all;
  }();
  return texts;
}

const std::vector<std::uint64_t>& keys() {
  static const std::vector<std::uint64_t> hashes = [] {
    std::vector<std::uint64_t> all;
    for (const auto& text : key_texts()) all.push_back(XXH3_64bits(text.data(), text.size()));
    return all;
  }();
  return hashes;
}

HashRing ring_of(benchmark::State& state) {
  return HashRing::build(fleet(static_cast<std::size_t>(state.range(0)))).value();
}

/// Calls `pick(key)` with one key after the other.
template <class Pick>
void for_each_key(benchmark::State& state, Pick pick) {
  const auto& all = keys();
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(pick(all[i]));
    if (++i == kKeys) i = 0;
  }
}

void home(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  for_each_key(state, [&](std::uint64_t key) { return ring.home(key); });
  state.counters["ring_bytes"] = static_cast<double>(ring.memory_bytes());
}

/// Each key depends on the last answer: what one pick costs when nothing overlaps it.
void home_latency(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  const auto& all = keys();
  std::size_t i = 0;
  std::uint64_t last = 0;
  for (auto _ : state) {
    last = ring.home(all[i] ^ (last & 1));
    benchmark::DoNotOptimize(last);
    if (++i == kKeys) i = 0;
  }
}

void home_with_key_hash(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  const auto& texts = key_texts();
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.home(XXH3_64bits(texts[i].data(), texts[i].size())));
    if (++i == kKeys) i = 0;
  }
}

void successors_4(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  std::array<std::uint32_t, 4> out{};
  for_each_key(state, [&](std::uint64_t key) {
    ring.successors(key, out);
    benchmark::ClobberMemory();
    return out[3];
  });
}

void successors_16(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  std::array<std::uint32_t, 16> out{};
  for_each_key(state, [&](std::uint64_t key) {
    const std::size_t n = ring.successors(key, out);
    benchmark::ClobberMemory();
    return out[n - 1];
  });
}

/// `every`: each every-th member is full; 0: nobody.
void bounded(benchmark::State& state, std::uint32_t every, SpillOrder order) {
  const HashRing ring = ring_of(state);
  std::vector<std::int64_t> loads(ring.size(), 20'000);
  for (std::size_t i = 0; every != 0 && i < loads.size(); i += every) loads[i] = 60'000;
  const std::int64_t total = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  const LoadBound bound{.order = order};
  std::uint64_t probes = 0, diverted = 0;
  for_each_key(state, [&](std::uint64_t key) {
    const auto pick = bounded_pick(ring, key, bound, 7'000, total, [&](std::uint32_t m) { return loads[m]; });
    probes += pick.probes;
    diverted += pick.diverted;
    return pick.member;
  });
  state.counters["probes"] = benchmark::Counter(static_cast<double>(probes), benchmark::Counter::kAvgIterations);
  state.counters["diverted"] = benchmark::Counter(static_cast<double>(diverted), benchmark::Counter::kAvgIterations);
}
void bounded_nobody_full(benchmark::State& state) { bounded(state, 0, SpillOrder::clockwise); }
void bounded_fifth_full(benchmark::State& state) { bounded(state, 5, SpillOrder::clockwise); }
void bounded_fifth_full_permuted(benchmark::State& state) { bounded(state, 5, SpillOrder::permuted); }

void build(benchmark::State& state) {
  const auto members = fleet(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(HashRing::build(members)->size());
}

void add_one(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  for (auto _ : state) benchmark::DoNotOptimize(ring.with_added({"10.0.2.x", 1'000'000, 1.0})->size());
}

void remove_one(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  const std::string id = ring.members()[ring.size() / 2].ring_id;
  for (auto _ : state) benchmark::DoNotOptimize(ring.with_removed(id)->size());
}

void reweight_one(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  const std::string id = ring.members()[ring.size() / 2].ring_id;
  for (auto _ : state) benchmark::DoNotOptimize(ring.with_weight(id, 0.5)->size());
}

void movement_of_a_removal(benchmark::State& state) {
  const HashRing ring = ring_of(state);
  const HashRing less = ring.with_removed(ring.members()[ring.size() / 2].ring_id).value();
  for (auto _ : state) benchmark::DoNotOptimize(movement_between(ring, less).fraction());
}

void baseline_jump(benchmark::State& state) {
  const auto n = state.range(0);
  for_each_key(state, [&](std::uint64_t key) {
    std::int64_t bucket = -1;
    for (std::int64_t next = 0; next < n;) {
      bucket = next;
      key = key * 2862933555777941757U + 1;
      next =
          static_cast<std::int64_t>(static_cast<double>(bucket + 1) * (0x1p31 / static_cast<double>((key >> 33) + 1)));
    }
    return bucket;
  });
}

void baseline_maglev(benchmark::State& state) {
  constexpr std::uint64_t kSize = 65'537;
  const auto members = fleet(static_cast<std::size_t>(state.range(0)));
  std::vector<std::uint32_t> table(kSize, kNoMember);
  std::vector<std::uint64_t> at, step;
  for (const auto& m : members) {
    at.push_back(XXH3_64bits_withSeed(m.ring_id.data(), m.ring_id.size(), 1) % kSize);
    step.push_back(XXH3_64bits_withSeed(m.ring_id.data(), m.ring_id.size(), 2) % (kSize - 1) + 1);
  }
  for (std::size_t filled = 0, i = 0; filled < kSize; i = (i + 1) % members.size(), ++filled) {
    while (table[at[i]] != kNoMember) at[i] = (at[i] + step[i]) % kSize;
    table[at[i]] = members[i].member;
  }
  for_each_key(state, [&](std::uint64_t key) { return table[key % kSize]; });
}

#define RING_SIZES Arg(8)->Arg(64)->Arg(1024)->Arg(4096)
BENCHMARK(home)->RING_SIZES;
BENCHMARK(home_latency)->RING_SIZES;
BENCHMARK(home_with_key_hash)->RING_SIZES;
BENCHMARK(successors_4)->RING_SIZES;
BENCHMARK(successors_16)->RING_SIZES;
BENCHMARK(bounded_nobody_full)->RING_SIZES;
BENCHMARK(bounded_fifth_full)->RING_SIZES;
BENCHMARK(bounded_fifth_full_permuted)->RING_SIZES;
BENCHMARK(build)->RING_SIZES->Unit(benchmark::kMillisecond);
BENCHMARK(add_one)->RING_SIZES->Unit(benchmark::kMillisecond);
BENCHMARK(remove_one)->RING_SIZES->Unit(benchmark::kMillisecond);
BENCHMARK(reweight_one)->RING_SIZES->Unit(benchmark::kMillisecond);
BENCHMARK(movement_of_a_removal)->RING_SIZES->Unit(benchmark::kMillisecond);
BENCHMARK(baseline_jump)->RING_SIZES;
BENCHMARK(baseline_maglev)->RING_SIZES;

}  // namespace
