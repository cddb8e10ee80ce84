// The prefix workloads, deterministic and the same for every contender: families of chains, prompts, and a stopwatch for percentiles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/prefix/index.hpp"

namespace warmroute::bench {

inline std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}
inline BlockHash local(std::uint64_t family, std::uint64_t position) { return BlockHash{mix(family << 32 | position)}; }

using Path = std::vector<BlockHash>;
inline Path chain(std::uint64_t family, std::size_t length) {
  Path path(length);
  for (std::size_t p = 0; p < length; ++p) path[p] = local(family, p);
  return path;
}

inline constexpr std::size_t kChainBlocks = 1024;

/// What engines call the blocks: the chained hash.
inline std::vector<EngineHash> names(const Path& path) {
  std::vector<SequenceHash> chain(path.size());
  sequence_hashes(path, chain);
  std::vector<EngineHash> ids(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) ids[i] = EngineHash{to_u64(chain[i])};
  return ids;
}

/// INGEST: even chains are shared by all replicas, odd ones are each replica's own.
inline std::uint64_t ingest_family(std::size_t replica, std::size_t chains, std::size_t c) {
  return c % 2 == 0 ? c : 1'000'000 + replica * chains + c;
}
inline void ingest(PrefixIndex& index, std::size_t replicas, std::size_t chains, std::uint32_t first_slot,
                   std::size_t event_blocks) {
  std::vector<Path> paths;
  for (std::size_t w = 0; w < replicas; ++w) {
    for (std::size_t c = 0; c < chains; ++c) paths.push_back(chain(ingest_family(w, chains, c), kChainBlocks));
  }
  for (std::size_t c = 0; c < chains; ++c) {
    for (std::size_t at = 0; at < kChainBlocks; at += event_blocks) {
      for (std::size_t w = 0; w < replicas; ++w) {
        static_cast<void>(index.store({first_slot + static_cast<std::uint32_t>(w), 1}, Tier::device,
                                      std::span(paths[w * chains + c]).first(at + event_blocks), at));
      }
    }
  }
}

enum class Query : std::int64_t { full, stagger, branchy, miss };

/// QUERY: the prompts asked for; the index holds them as `kind` says.
inline std::vector<Path> load_query(PrefixIndex& index, std::size_t replicas, std::size_t length, Query kind) {
  const std::size_t prompts = length >= 4096 ? 16 : length >= 625 ? 64 : 256;
  std::vector<Path> paths;
  for (std::size_t i = 0; i < prompts; ++i) {
    paths.push_back(chain(5'000'000 + i, length));
    if (kind == Query::miss) continue;
    for (std::size_t w = 0; w < replicas; ++w) {
      const std::size_t end = kind == Query::full ? length : length * (w + 1) / replicas;
      for (std::size_t at = 0; at < end; at += 64) {
        static_cast<void>(index.store({static_cast<std::uint32_t>(w), 1}, Tier::device,
                                      std::span(paths[i]).first(std::min(at + 64, end)), at));
      }
    }
    if (kind != Query::branchy) continue;
    for (std::size_t turn = 0, at = 64; at < length; ++turn, at += 64) {
      const std::size_t w = replicas - 1 - turn % std::max<std::size_t>(replicas / 2, 1);
      if (length * (w + 1) / replicas < at) continue;
      Path branch(paths[i].begin(), paths[i].begin() + static_cast<std::ptrdiff_t>(at));
      for (std::size_t b = 0; b < 8; ++b) branch.push_back(local(9'000'000 + i * 1'000 + turn, b));
      static_cast<void>(index.store({static_cast<std::uint32_t>(w), 1}, Tier::device, branch, at));
    }
  }
  return paths;
}

/// Percentiles of single calls. The clock's own cost is measured and taken off.
class Stopwatch {
 public:
  explicit Stopwatch(std::size_t reserve = 1 << 20) {
    samples_.reserve(reserve);
    std::vector<double> idle;
    for (int i = 0; i < 10'000; ++i) {
      const auto a = Clock::now();
      idle.push_back(nanoseconds(Clock::now() - a));
    }
    own_ = percentile_of(idle, 0.5);
  }
  template <class Call>
  void time(Call&& call) {
    const auto a = Clock::now();
    call();
    const double ns = nanoseconds(Clock::now() - a) - own_;
    if (samples_.size() < samples_.capacity()) samples_.push_back(std::max(ns, 0.0));
  }
  double percentile(double p) { return percentile_of(samples_, p); }

 private:
  using Clock = std::chrono::steady_clock;
  static double nanoseconds(Clock::duration d) { return std::chrono::duration<double, std::nano>(d).count(); }
  static double percentile_of(std::vector<double>& v, double p) {
    if (v.empty()) return 0;
    const auto at = v.begin() + static_cast<std::ptrdiff_t>(p * static_cast<double>(v.size() - 1));
    std::nth_element(v.begin(), at, v.end());
    return *at;
  }
  std::vector<double> samples_;
  double own_ = 0;
};

}  // namespace warmroute::bench
