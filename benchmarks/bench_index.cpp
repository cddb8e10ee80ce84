// The prefix index under the workloads INGEST, QUERY, TREE, CHURN, TEXT, growth and clear. Args as named.
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "prefix_workloads.hpp"
#include "warmroute/prefix/block_hash.hpp"

namespace warmroute {
namespace {

using bench::Path;
using bench::Query;

constexpr std::size_t kPlenty = std::size_t{8} << 30;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
ReplicaId replica(std::size_t slot) { return {static_cast<std::uint32_t>(slot), 1}; }

void report_memory(benchmark::State& state, const PrefixIndex& index) {
  const auto s = index.statistics();
  state.counters["bytes_per_membership"] = static_cast<double>(s.bytes) / static_cast<double>(s.memberships);
  state.counters["bytes_per_block"] = static_cast<double>(s.bytes) / static_cast<double>(s.blocks);
  state.counters["nodes"] = static_cast<double>(s.nodes);
}
void per_block(benchmark::State& state, const char* name, double blocks) {
  state.counters[name] = benchmark::Counter(blocks * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// INGEST by path: an event names the chain from block 0. Args: replicas, blocks per event.
void ingest_by_path(benchmark::State& state) {
  const std::size_t replicas = size(state.range(0)), event = size(state.range(1)), chains = 64;
  std::vector<Path> paths;
  for (std::size_t w = 0; w < replicas; ++w) {
    for (std::size_t c = 0; c < chains; ++c)
      paths.push_back(bench::chain(bench::ingest_family(w, chains, c), bench::kChainBlocks));
  }
  std::unique_ptr<PrefixIndex> index;
  for (auto _ : state) {
    state.PauseTiming();
    index = std::make_unique<PrefixIndex>(PrefixIndexOptions{.max_bytes = kPlenty});
    state.ResumeTiming();
    for (std::size_t c = 0; c < chains; ++c) {
      for (std::size_t at = 0; at < bench::kChainBlocks; at += event) {
        for (std::size_t w = 0; w < replicas; ++w) {
          static_cast<void>(
              index->store(replica(w), Tier::device, std::span(paths[w * chains + c]).first(at + event), at));
        }
      }
    }
  }
  const double blocks = static_cast<double>(replicas * chains * bench::kChainBlocks);
  per_block(state, "ns_per_block", blocks * static_cast<double>(state.iterations()));
  report_memory(state, *index);
}
BENCHMARK(ingest_by_path)
    ->ArgNames({"replicas", "event"})
    ->ArgsProduct({{1, 8, 64}, {1, 16, 64}})
    ->Unit(benchmark::kMillisecond);

// REMOVE by path, leaf to root.
void remove_by_path(benchmark::State& state) {
  const std::size_t replicas = size(state.range(0)), event = size(state.range(1)), chains = 64;
  std::vector<Path> paths;
  for (std::size_t w = 0; w < replicas; ++w) {
    for (std::size_t c = 0; c < chains; ++c)
      paths.push_back(bench::chain(bench::ingest_family(w, chains, c), bench::kChainBlocks));
  }
  PrefixIndex index({.max_bytes = kPlenty});
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t i = 0; i < paths.size(); ++i)
      static_cast<void>(index.store(replica(i / chains), Tier::device, paths[i]));
    state.ResumeTiming();
    for (std::size_t c = 0; c < chains; ++c) {
      for (std::size_t at = bench::kChainBlocks; at != 0; at -= event) {
        for (std::size_t w = 0; w < replicas; ++w) {
          index.remove(replica(w), Tier::device, std::span(paths[w * chains + c]).first(at), at - event);
        }
      }
    }
  }
  per_block(state, "ns_per_block",
            static_cast<double>(paths.size() * bench::kChainBlocks) * static_cast<double>(state.iterations()));
  index.advance();
  state.counters["bytes_after"] = static_cast<double>(index.statistics().bytes);
}
BENCHMARK(remove_by_path)
    ->ArgNames({"replicas", "event"})
    ->ArgsProduct({{8}, {1, 16, 64}})
    ->Unit(benchmark::kMillisecond);

struct EventChains {
  EventChains(std::size_t replicas_, std::size_t chains_) : replicas(replicas_), chains(chains_) {
    for (std::size_t w = 0; w < replicas; ++w) {
      for (std::size_t c = 0; c < chains; ++c) {
        paths.push_back(bench::chain(bench::ingest_family(w, chains, c), bench::kChainBlocks));
        ids.push_back(bench::names(paths.back()));
      }
    }
  }
  void store(PrefixIndex& index, std::size_t event) const {
    for (std::size_t c = 0; c < chains; ++c) {
      for (std::size_t at = 0; at < bench::kChainBlocks; at += event) {
        for (std::size_t w = 0; w < replicas; ++w) {
          const auto& id = ids[w * chains + c];
          static_cast<void>(index.store_event(replica(w), Tier::device, at == 0 ? nullptr : &id[at - 1],
                                              std::span(id).subspan(at, event),
                                              std::span(paths[w * chains + c]).subspan(at, event)));
        }
      }
    }
  }
  void remove(PrefixIndex& index, std::size_t event) const {
    std::vector<EngineHash> leaf_first(event);
    for (std::size_t c = 0; c < chains; ++c) {
      for (std::size_t at = bench::kChainBlocks; at != 0; at -= event) {
        for (std::size_t w = 0; w < replicas; ++w) {
          for (std::size_t i = 0; i < event; ++i) leaf_first[i] = ids[w * chains + c][at - 1 - i];
          index.remove_event(replica(w), Tier::device, leaf_first);
        }
      }
    }
  }
  std::size_t replicas, chains;
  std::vector<Path> paths;
  std::vector<std::vector<EngineHash>> ids;
};

// INGEST by event: parent and blocks by the engine's names. Args: replicas, blocks per event.
void ingest_events(benchmark::State& state) {
  const EventChains world(size(state.range(0)), 64);
  std::unique_ptr<PrefixIndex> index;
  for (auto _ : state) {
    state.PauseTiming();
    index = std::make_unique<PrefixIndex>(PrefixIndexOptions{.max_bytes = kPlenty});
    state.ResumeTiming();
    world.store(*index, size(state.range(1)));
  }
  per_block(state, "ns_per_block",
            static_cast<double>(world.paths.size() * bench::kChainBlocks) * static_cast<double>(state.iterations()));
  report_memory(state, *index);
}
BENCHMARK(ingest_events)
    ->ArgNames({"replicas", "event"})
    ->ArgsProduct({{1, 8, 64}, {1, 16, 64}})
    ->Unit(benchmark::kMillisecond);

// REMOVE by event, leaf to root.
void remove_events(benchmark::State& state) {
  const EventChains world(size(state.range(0)), 64);
  PrefixIndex index({.max_bytes = kPlenty});
  for (auto _ : state) {
    state.PauseTiming();
    world.store(index, 64);
    state.ResumeTiming();
    world.remove(index, size(state.range(1)));
  }
  per_block(state, "ns_per_block",
            static_cast<double>(world.paths.size() * bench::kChainBlocks) * static_cast<double>(state.iterations()));
  index.advance();
  state.counters["bytes_after"] = static_cast<double>(index.statistics().bytes);
  state.counters["memberships_after"] = static_cast<double>(index.statistics().memberships);
}
BENCHMARK(remove_events)
    ->ArgNames({"replicas", "event"})
    ->ArgsProduct({{8}, {1, 16, 64}})
    ->Unit(benchmark::kMillisecond);

// QUERY over ballast. Args: kind (0 full, 1 stagger, 2 branchy, 3 miss), replicas, blocks.
void query(benchmark::State& state) {
  const auto kind = static_cast<Query>(state.range(0));
  PrefixIndex index({.max_replicas = 1'008, .max_bytes = kPlenty});
  bench::ingest(index, 8, 64, 1'000, 64);
  const auto prompts = bench::load_query(index, size(state.range(1)), size(state.range(2)), kind);
  PrefixMatch match;
  bench::Stopwatch watch;
  std::size_t i = 0;
  for (auto _ : state) {
    index.match(prompts[i++ % prompts.size()], match);
    benchmark::DoNotOptimize(match.device().data());
  }
  for (int n = 0; n < 200'000; ++n) watch.time([&] { index.match(prompts[i++ % prompts.size()], match); });
  state.counters["p50_ns"] = watch.percentile(0.5);
  state.counters["p99_ns"] = watch.percentile(0.99);
  state.counters["best"] = match.best();
}
BENCHMARK(query)
    ->ArgNames({"kind", "replicas", "blocks"})
    ->ArgsProduct({{0, 1, 2, 3}, {8, 64}, {64, 625, 4096}})
    ->Args({0, 1'000, 64})
    ->Args({0, 1'000, 625})
    ->Args({1, 1'000, 625});

// TREE: bytes of a bushy tree, look-up of 144 blocks. Args: replicas.
void tree(benchmark::State& state) {
  const std::size_t replicas = size(state.range(0));
  PrefixIndex index({.max_bytes = kPlenty});
  constexpr std::size_t kLevels = 10;
  std::size_t memberships = 0;
  for (std::size_t forest = 0; memberships < 1'050'000; ++forest) {
    for (std::size_t leaf = 0; leaf < (1U << kLevels); ++leaf) {
      Path path = bench::chain(forest << 20, 64);
      for (std::size_t level = 1; level <= kLevels; ++level) {
        for (std::size_t b = 0; b < 8; ++b)
          path.push_back(bench::local(forest << 20 | 1ULL << level | leaf >> (kLevels - level), 64 + level * 8 + b));
      }
      for (std::size_t w = 0; w < replicas; ++w) static_cast<void>(index.store(replica(w), Tier::device, path));
    }
    memberships = index.statistics().memberships;
  }
  PrefixMatch match;
  std::size_t leaf = 0;
  std::vector<Path> prompts;
  for (std::size_t n = 0; n < 64; ++n) {
    leaf = bench::mix(n) % (1U << kLevels);
    Path path = bench::chain(0, 64);
    for (std::size_t level = 1; level <= kLevels; ++level) {
      for (std::size_t b = 0; b < 8; ++b)
        path.push_back(bench::local(1ULL << level | leaf >> (kLevels - level), 64 + level * 8 + b));
    }
    prompts.push_back(path);
  }
  std::size_t i = 0;
  for (auto _ : state) {
    index.match(prompts[i++ % prompts.size()], match);
    benchmark::DoNotOptimize(match.device().data());
  }
  state.counters["best"] = match.best();
  report_memory(state, index);
}
BENCHMARK(tree)->ArgName("replicas")->Arg(1)->Arg(8)->Arg(64);

// CHURN: what 40,000 rounds beside one chain leave behind. Args: whether engines name the blocks.
void churn(benchmark::State& state) {
  constexpr std::uint64_t kRounds = 40'000;
  PrefixIndex index({.max_bytes = kPlenty});
  const bool named = state.range(0) != 0;
  const auto store = [&](std::size_t w, const Path& path, const std::vector<EngineHash>& ids) {
    static_cast<void>(named ? index.store_event(replica(w), Tier::device, nullptr, ids, path)
                            : index.store(replica(w), Tier::device, path));
  };
  const Path base = bench::chain(1, bench::kChainBlocks);
  store(0, base, bench::names(base));
  const double bytes_before = static_cast<double>(index.statistics().bytes);
  PrefixMatch match;
  const auto look = [&] {
    bench::Stopwatch watch(20'000);
    for (int n = 0; n < 20'000; ++n) watch.time([&] { index.match(base, match); });
    return watch.percentile(0.5);
  };
  const double first = look();
  std::uint64_t r = 0;
  double highest = 0;
  for (auto _ : state) {
    for (std::uint64_t end = r + kRounds; r < end; ++r) {
      Path path(base.begin(), base.begin() + 16 + static_cast<std::ptrdiff_t>(37 * r % 1000));
      for (std::size_t b = 0; b < 64; ++b) path.push_back(bench::local(7'000'000 + r, b));
      const std::vector<EngineHash> ids = named ? bench::names(path) : std::vector<EngineHash>{};
      store(1, path, ids);
      named ? index.remove_event(replica(1), Tier::device, ids) : index.remove(replica(1), Tier::device, path);
      if (r % 1024 == 0) highest = std::max(highest, static_cast<double>(index.statistics().bytes));
    }
  }
  index.advance();
  state.counters["bytes_base"] = bytes_before;
  state.counters["bytes_highest"] = highest;
  state.counters["bytes_after"] = static_cast<double>(index.statistics().bytes);
  state.counters["first_ns"] = first;
  state.counters["after_ns"] = look();
}
BENCHMARK(churn)->ArgName("named")->Arg(0)->Arg(1)->Iterations(1)->Unit(benchmark::kMillisecond);

// TEXT: hashing included. Args: replicas, prompts, characters.
void text(benchmark::State& state) {
  const std::size_t replicas = size(state.range(0)), count = size(state.range(1)), length = size(state.range(2));
  PrefixIndex index({.max_bytes = kPlenty});
  std::vector<std::string> prompts;
  const std::uint64_t seed = block_seed({.text = true});
  Path blocks(length / kTextBlockBytes);
  for (std::size_t i = 0; i < count; ++i) {
    std::string& prompt = prompts.emplace_back(length, ' ');
    for (std::size_t k = 0; k < length; ++k) {
      prompt[k] = static_cast<char>('0' + bench::mix((k < length / 2 ? i % 64 : 1'000 + i) << 32 | k) % 64);
    }
    static_cast<void>(index.store(replica((i / 64 + i % 64) % replicas), Tier::device,
                                  std::span(blocks).first(hash_text_blocks(prompt, seed, blocks))));
  }
  PrefixMatch match;
  std::size_t i = 0;
  for (auto _ : state) {
    hash_text_blocks(prompts[i++ % count], seed, blocks);
    index.match(blocks, match);
    benchmark::DoNotOptimize(match.device().data());
  }
  state.counters["bytes_per_char"] =
      static_cast<double>(index.statistics().bytes) / static_cast<double>(count * length);
}
BENCHMARK(text)
    ->ArgNames({"replicas", "prompts", "chars"})
    ->Args({8, 4096, 1'000})
    ->Args({8, 1024, 10'000})
    ->Args({8, 256, 40'000});

// Growth: 64 hot prompts and cold ones among 10^5 to 10^7 blocks. Args: blocks, chain length, hot (1) or cold (0).
void growth(benchmark::State& state) {
  const std::size_t length = size(state.range(1)), chains = size(state.range(0)) / length;
  PrefixIndex index({.max_bytes = kPlenty});
  for (std::size_t c = 0; c < chains; ++c)
    static_cast<void>(index.store(replica(c % 8), Tier::device, bench::chain(c, length)));
  std::vector<Path> prompts;
  const std::size_t asked = state.range(2) != 0 ? 64 : 4'096;
  for (std::size_t n = 0; n < asked; ++n) prompts.push_back(bench::chain(bench::mix(n) % chains, length));
  PrefixMatch match;
  bench::Stopwatch watch;
  std::size_t i = 0;
  for (auto _ : state) watch.time([&] { index.match(prompts[i++ % asked], match); });
  state.counters["p50_ns"] = watch.percentile(0.5);
  state.counters["p99_ns"] = watch.percentile(0.99);
  report_memory(state, index);
}
BENCHMARK(growth)
    ->ArgNames({"blocks", "length", "hot"})
    ->ArgsProduct({{100'000, 1'000'000, 10'000'000}, {64, 625}, {0, 1}})
    ->Iterations(100'000);

// clear of one replica among blocks; what it holds and how long the memory takes to come back. Args: blocks, named.
void clear(benchmark::State& state) {
  const std::size_t chains = size(state.range(0)) / 625;
  const bool named = state.range(1) != 0;
  PrefixIndex index({.max_bytes = kPlenty});
  const double bytes_empty = static_cast<double>(index.statistics().bytes);
  double bytes = 0;
  std::uint32_t generation = 1;
  bench::Stopwatch clears;
  for (auto _ : state) {
    state.PauseTiming();
    for (std::size_t c = 0; c < chains; ++c) {
      const Path path = bench::chain(c, 625);
      static_cast<void>(named ? index.store_event({0, generation}, Tier::device, nullptr, bench::names(path), path)
                              : index.store({0, generation}, Tier::device, path));
    }
    bytes = static_cast<double>(index.statistics().bytes);
    state.ResumeTiming();
    clears.time([&] { index.clear({0, generation}); });
    state.PauseTiming();
    std::size_t calls = 0;
    double longest = 0;
    while (static_cast<double>(index.statistics().bytes) > bytes_empty) {
      const auto begin = std::chrono::steady_clock::now();
      index.advance(256);
      longest = std::max(longest,
                         std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
      ++calls;
    }
    state.counters["advance_calls"] = static_cast<double>(calls);
    state.counters["advance_longest_us"] = longest;
    ++generation;
    state.ResumeTiming();
  }
  state.counters["clear_p50_ns"] = clears.percentile(0.5);
  state.counters["bytes_held"] = bytes;
  state.counters["bytes_after"] = static_cast<double>(index.statistics().bytes);
}
BENCHMARK(clear)->ArgNames({"blocks", "named"})->ArgsProduct({{100'000, 1'000'000}, {0, 1}})->Iterations(10);

// Many conversations under one system prompt: each store adds a branch at the same place. Args: conversations.
void fan_out(benchmark::State& state) {
  PrefixIndex index({.max_bytes = kPlenty});
  Path path = bench::chain(1, 100);
  path.resize(110);
  std::uint64_t family = 0;
  bench::Stopwatch stores;
  for (auto _ : state) {
    for (std::int64_t c = 0; c < state.range(0); ++c) {
      for (std::size_t b = 100; b < path.size(); ++b) path[b] = bench::local(1'000 + family, b);
      ++family;
      stores.time([&] { static_cast<void>(index.store(replica(family % 8), Tier::device, path)); });
    }
  }
  PrefixMatch match;
  bench::Stopwatch watch;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    for (std::size_t b = 100; b < path.size(); ++b) path[b] = bench::local(1'000 + bench::mix(n) % family, b);
    watch.time([&] { index.match(path, match); });
  }
  state.counters["store_p50_ns"] = stores.percentile(0.5);
  state.counters["store_p99.99_ns"] = stores.percentile(0.9999);
  state.counters["match_p50_ns"] = watch.percentile(0.5);
  report_memory(state, index);
}
BENCHMARK(fan_out)->ArgName("conversations")->Arg(10'000)->Arg(1'000'000)->Iterations(1);

// Readers side by side. Args: replicas, blocks; threads by the benchmark.
void readers(benchmark::State& state) {
  static std::unique_ptr<PrefixIndex> index;
  static std::vector<Path> prompts;
  if (state.thread_index() == 0) {
    index = std::make_unique<PrefixIndex>(PrefixIndexOptions{.max_bytes = kPlenty});
    prompts = bench::load_query(*index, size(state.range(0)), size(state.range(1)), Query::full);
  }
  PrefixMatch match;
  std::size_t i = 0;
  for (auto _ : state) {
    index->match(prompts[i++ % prompts.size()], match);
    benchmark::DoNotOptimize(match.device().data());
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(readers)->ArgNames({"replicas", "blocks"})->Args({8, 625})->Threads(1)->Threads(2)->UseRealTime();

// One reader beside one writer at full speed (writer: 0 none, 1 the reader's own chains, 2 others).
void reader_beside_writer(benchmark::State& state) {
  PrefixIndex index({.max_bytes = kPlenty});
  const auto prompts = bench::load_query(index, 8, 625, Query::full);
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (std::uint64_t r = 0; state.range(0) != 0 && !over.load(std::memory_order_relaxed); ++r) {
      Path path = state.range(0) == 1 ? prompts[r % prompts.size()] : bench::chain(20'000'000 + r % 64, 600);
      path.resize(100 + r % 500);
      for (std::size_t b = 0; b < 64; ++b) path.push_back(bench::local(7'000'000 + r, b));
      static_cast<void>(index.store(replica(9), Tier::device, path));
      index.remove(replica(9), Tier::device, path);
    }
  });
  PrefixMatch match;
  bench::Stopwatch watch;
  std::size_t i = 0;
  for (auto _ : state) watch.time([&] { index.match(prompts[i++ % prompts.size()], match); });
  over = true;
  writer.join();
  state.counters["p50_ns"] = watch.percentile(0.5);
  state.counters["p99_ns"] = watch.percentile(0.99);
}
BENCHMARK(reader_beside_writer)->ArgName("writer")->Arg(0)->Arg(1)->Arg(2)->Iterations(400'000);

}  // namespace
}  // namespace warmroute
