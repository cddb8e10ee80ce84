/// What a router believes of one replica's cache, as a value: Router::cached gives it, Router::restore_cached takes it.
/// With it comes what was learned beside: how far the declared capacity is trusted, and the pool's means that turn bytes into tokens.
/// Does not: leave the process as it is. Its hashes are not keyed; route/cache_export.hpp encrypts it.
#pragma once

#include <array>
#include <cstdint>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/prefix/cached_tree.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// A mean in thousandths, and how many values it stands for.
struct LearnedMean {
  std::int64_t milli = 0;
  std::int64_t count = 0;
};

struct ReplicaCache {
  std::uint32_t block_size = 0;   ///< tokens per block, of the policy in force
  std::uint32_t seed_digest = 0;  ///< hash_seed_digest of that policy
  Nanos taken_at{};               ///< on the clock of `tree`: ages count from here

  std::int64_t capacity_tokens = 0;         ///< as declared by engine, spec or policy
  std::uint64_t capacity_blocks = 0;        ///< what that came to in blocks, feedback included
  std::int64_t trust_milli = 1'000;         ///< 250..1000
  std::int64_t tokens_per_block_milli = 0;  ///< mean of what was placed there, in thousandths; 0 = nothing yet
  LearnedMean bytes_per_token{};            ///< of the pool; in thousandths of thousandths
  LearnedMean output_tokens{};              ///< of the pool
  CachedTree tree;
};

/// What came of one Router::restore_cached. units: blocks.
struct RestoredCache {
  std::uint64_t offered = 0;  ///< in the tree that was given
  std::uint64_t added = 0;    ///< by so many more is believed to be there now; the rest was known or did not fit
};

/// returns: enough of a digest to tell that two policies hash alike, too little to find a secret seed: 2^32 seeds share each value.
inline std::uint32_t hash_seed_digest(std::uint64_t hash_seed) noexcept {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(hash_seed >> (8 * i));
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(bytes.data(), bytes.size(), 0x7761726D) >> 32);
}

}  // namespace warmroute
