/// Block and sequence hashes: what the prefix index compares instead of tokens or text.
/// Block hashes are bit-compatible with Dynamo's: XXH3-64 over the little-endian u32 tokens of one block, under a seed that
/// carries everything two requests must agree on before they may share KV blocks (adapter, cache salt, tenant, kind of input).
/// Invariant: blocks of different `HashSpace`s never compare equal, but for 64-bit chance; a partial last block has no hash.
/// Does not: tokenize, or chain unless asked (the index needs no chain, see prefix/index.hpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// Dynamo's seed of block hashes, and always the seed of the sequence chain.
inline constexpr std::uint64_t kDynamoHashSeed = 1337;
/// units: bytes of canonical prompt text per block, where no token ids are given.
inline constexpr std::size_t kTextBlockBytes = 64;
inline constexpr std::uint32_t kMaxBlockTokens = 512;

/// What may never match one another. An empty member is absent: it leaves the seed as it is.
struct HashSpace {
  std::uint64_t hash_seed = kDynamoHashSeed;  ///< a deployment's own secret, or Dynamo's
  std::string_view adapter{};
  std::string_view cache_salt{};
  std::string_view isolation_key{};  ///< tenant, from the verified key, never from the body
  bool text = false;                 ///< blocks of text, not of tokens
};

/// returns: the seed of every block hash of that space: the sum (wrapping) of hash_seed, XXH3(adapter, 0), XXH3(cache_salt, 1),
/// XXH3(isolation_key, 2) and, for text, XXH3("text", 0). cost: one XXH3 per member that is there.
[[nodiscard]] inline std::uint64_t block_seed(const HashSpace& space) noexcept {
  std::uint64_t seed = space.hash_seed;
  const auto add = [&seed](std::string_view part, std::uint64_t kind) {
    if (!part.empty()) seed += XXH3_64bits_withSeed(part.data(), part.size(), kind);
  };
  add(space.adapter, 0);
  add(space.cache_salt, 1);
  add(space.isolation_key, 2);
  if (space.text) add("text", 0);
  return seed;
}

namespace detail {

/// XXH3 derives a 192-byte secret from the seed for every input of more than 240 bytes: 30 ns against 6 ns (bench_hash,
/// 64-token blocks). A call over many blocks derives it once.
class LongSecret {
 public:
  LongSecret(std::uint64_t seed, std::size_t block_bytes) noexcept : seed_(seed) {
    if (block_bytes > kMidBytes) XXH3_generateSecret_fromSeed(secret_, seed);
  }
  [[nodiscard]] std::uint64_t hash(const void* data, std::size_t bytes) const noexcept {
    return XXH3_64bits_withSecretandSeed(data, bytes, secret_, sizeof secret_, seed_);
  }
  static constexpr std::size_t kMidBytes = 240;

 private:
  std::uint64_t seed_;
  alignas(64) unsigned char secret_[192] = {};
};

/// XXH3 of exactly 16 bytes (two words) under the chain's seed; inlined so that a loop over it is bound by its latency alone.
[[nodiscard]] inline std::uint64_t chain_step(std::uint64_t previous, std::uint64_t block) noexcept {
  std::uint64_t words[2] = {previous, block};
  if constexpr (std::endian::native == std::endian::big) {
    for (auto& w : words) w = XXH_swap64(w);
  }
  return XXH3_64bits_withSeed(words, sizeof words, kDynamoHashSeed);
}

/// Little-endian bytes of `tokens`: the tokens themselves, or a swapped copy in `scratch` (kMaxBlockTokens + 1) on a big-endian host.
[[nodiscard]] inline const void* little_endian(const std::uint32_t* tokens, std::size_t count,
                                               [[maybe_unused]] std::uint32_t* scratch) noexcept {
  if constexpr (std::endian::native == std::endian::big) {
    for (std::size_t i = 0; i < count; ++i) scratch[i] = XXH_swap32(tokens[i]);
    return scratch;
  } else {
    return tokens;
  }
}
inline constexpr std::size_t kSwapScratch = std::endian::native == std::endian::big ? kMaxBlockTokens + 1 : 1;

/// Calls hash_of(i) for every block that is whole: `window` tokens starting every `stride` tokens.
template <class HashOf>
std::size_t for_each_window(std::size_t tokens, std::size_t window, std::size_t stride, std::size_t limit,
                            HashOf&& hash_of) noexcept {
  if (tokens < window) return 0;
  const std::size_t count = std::min((tokens - window) / stride + 1, limit);
  for (std::size_t i = 0; i < count; ++i) hash_of(i);
  return count;
}

template <std::size_t kBlockTokens>
std::size_t hash_fixed_blocks(const std::uint32_t* tokens, std::size_t count, std::uint64_t seed,
                              BlockHash* out) noexcept {
  std::uint32_t scratch[kSwapScratch];
  for (std::size_t i = 0; i < count; ++i) {
    const void* bytes = little_endian(tokens + i * kBlockTokens, kBlockTokens, scratch);
    out[i] = BlockHash{XXH3_64bits_withSeed(bytes, kBlockTokens * sizeof(std::uint32_t), seed)};
  }
  return count;
}

/// One block with multimodal hashes: XXH3 over its token bytes and then the hashes in ascending order. Streaming, so that
/// their number has no limit and nothing is allocated; such blocks are rare.
[[nodiscard]] inline std::uint64_t hash_with_objects(const void* token_bytes, std::size_t bytes,
                                                     std::span<const std::uint64_t> objects,
                                                     std::uint64_t seed) noexcept {
  XXH3_state_t state{};
  XXH3_64bits_reset_withSeed(&state, seed);
  XXH3_64bits_update(&state, token_bytes, bytes);
  const auto append = [&state](std::uint64_t v) {
    if constexpr (std::endian::native == std::endian::big) v = XXH_swap64(v);
    XXH3_64bits_update(&state, &v, sizeof v);
  };
  if (std::is_sorted(objects.begin(), objects.end())) {
    for (const auto v : objects) append(v);
  } else {  // by rank: quadratic, without a copy
    std::size_t done = 0;
    for (std::uint64_t floor = 0; done < objects.size();) {
      std::uint64_t least = ~std::uint64_t{0};
      for (const auto v : objects) least = v >= floor ? std::min(least, v) : least;
      for (const auto v : objects) {
        if (v == least) {
          append(v);
          ++done;
        }
      }
      floor = least + 1;
    }
  }
  return XXH3_64bits_digest(&state);
}

}  // namespace detail

/// Hashes the whole blocks of `block_size` tokens.
/// shape: `tokens[n]`, n >= 0; out[i] is of tokens [i * block_size, (i + 1) * block_size). units: `block_size` in tokens, 1..512
/// (others: nothing is written). returns: blocks written: at most out.size(); a partial tail has no hash. alloc: none. threads: any.
/// cost: about 4 ns per 16-token block.
inline std::size_t hash_token_blocks(std::span<const std::uint32_t> tokens, std::uint32_t block_size,
                                     std::uint64_t seed, std::span<BlockHash> out) noexcept {
  if (block_size == 0 || block_size > kMaxBlockTokens) return 0;
  const std::size_t count = std::min(tokens.size() / block_size, out.size());
  if (block_size == 16) return detail::hash_fixed_blocks<16>(tokens.data(), count, seed, out.data());
  if (block_size == 32) return detail::hash_fixed_blocks<32>(tokens.data(), count, seed, out.data());
  const std::size_t bytes = block_size * sizeof(std::uint32_t);
  const detail::LongSecret secret(seed, bytes);
  std::uint32_t scratch[detail::kSwapScratch];
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = BlockHash{secret.hash(detail::little_endian(tokens.data() + i * block_size, block_size, scratch), bytes)};
  }
  return count;
}

/// As hash_token_blocks, for EAGLE draft models: block i covers block_size + 1 tokens from i * block_size on, so the token after
/// the block must be known.
inline std::size_t hash_eagle_blocks(std::span<const std::uint32_t> tokens, std::uint32_t block_size,
                                     std::uint64_t seed, std::span<BlockHash> out) noexcept {
  if (block_size == 0 || block_size > kMaxBlockTokens) return 0;
  const std::size_t window = std::size_t{block_size} + 1;
  const detail::LongSecret secret(seed, window * sizeof(std::uint32_t));
  std::uint32_t scratch[detail::kSwapScratch];
  return detail::for_each_window(tokens.size(), window, block_size, out.size(), [&](std::size_t i) {
    const void* bytes = detail::little_endian(tokens.data() + i * block_size, window, scratch);
    out[i] = BlockHash{secret.hash(bytes, window * sizeof(std::uint32_t))};
  });
}

/// As hash_token_blocks (or hash_eagle_blocks), with the hashes of multimodal objects that lie in each block.
/// shape: `objects[k]` belongs to block k, in any order, duplicates count; fewer than blocks: the rest have none; surplus: ignored.
inline std::size_t hash_multimodal_blocks(std::span<const std::uint32_t> tokens, std::uint32_t block_size,
                                          std::uint64_t seed, std::span<const std::span<const std::uint64_t>> objects,
                                          bool eagle, std::span<BlockHash> out) noexcept {
  const std::size_t count =
      eagle ? hash_eagle_blocks(tokens, block_size, seed, out) : hash_token_blocks(tokens, block_size, seed, out);
  const std::size_t window = std::size_t{block_size} + (eagle ? 1 : 0);
  std::uint32_t scratch[detail::kSwapScratch];
  for (std::size_t i = 0; i < std::min(count, objects.size()); ++i) {
    if (objects[i].empty()) continue;
    const void* bytes = detail::little_endian(tokens.data() + i * block_size, window, scratch);
    out[i] = BlockHash{detail::hash_with_objects(bytes, window * sizeof(std::uint32_t), objects[i], seed)};
  }
  return count;
}

/// Hashes the whole blocks of kTextBlockBytes of canonical prompt text; `seed` from a HashSpace with `text` set.
/// returns, alloc, threads: as hash_token_blocks. cost: about 4 ns per block.
inline std::size_t hash_text_blocks(std::string_view text, std::uint64_t seed, std::span<BlockHash> out) noexcept {
  const std::size_t count = std::min(text.size() / kTextBlockBytes, out.size());
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = BlockHash{XXH3_64bits_withSeed(text.data() + i * kTextBlockBytes, kTextBlockBytes, seed)};
  }
  return count;
}

/// Chains block hashes: out[0] = blocks[0], out[i] = XXH3(out[i-1] || blocks[i], 1337), as Dynamo whatever the space.
/// shape: writes min(blocks.size(), out.size()). alloc: none. threads: any.
inline void sequence_hashes(std::span<const BlockHash> blocks, std::span<SequenceHash> out) noexcept {
  const std::size_t count = std::min(blocks.size(), out.size());
  std::uint64_t previous = 0;
  for (std::size_t i = 0; i < count; ++i) {
    previous = i == 0 ? to_u64(blocks[0]) : detail::chain_step(previous, to_u64(blocks[i]));
    out[i] = SequenceHash{previous};
  }
}

/// hash_token_blocks and sequence_hashes in one pass, for callers that need both: the CPU hashes the next blocks while it waits for the
/// chain, whose steps depend on one another. shape: writes min(whole blocks, blocks.size(), chain.size()) to each. returns: how many.
inline std::size_t hash_token_blocks_chained(std::span<const std::uint32_t> tokens, std::uint32_t block_size,
                                             std::uint64_t seed, std::span<BlockHash> blocks,
                                             std::span<SequenceHash> chain) noexcept {
  if (block_size == 0 || block_size > kMaxBlockTokens) return 0;
  const std::size_t count = std::min({tokens.size() / block_size, blocks.size(), chain.size()});
  if (block_size != 16) {
    hash_token_blocks(tokens, block_size, seed, blocks.first(count));
    sequence_hashes(blocks.first(count), chain);
    return count;
  }
  std::uint32_t scratch[detail::kSwapScratch];
  std::uint64_t previous = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t block =
        XXH3_64bits_withSeed(detail::little_endian(tokens.data() + i * 16, 16, scratch), 64, seed);
    blocks[i] = BlockHash{block};
    previous = i == 0 ? block : detail::chain_step(previous, block);
    chain[i] = SequenceHash{previous};
  }
  return count;
}

}  // namespace warmroute
