/// What an engine says of its cache, block by block, as the caller's own transport delivers it: Router::blocks_stored, blocks_removed.
/// From its first event on a replica is *reported*: what was believed of its cache goes, its own events alone count, and neither
/// placements nor `cached_tokens` change anything there. Router::clear_cache says that it lost its cache; it stays reported.
/// Does not: decode wire formats, check sequence numbers, or ask for a replay: a caller who lost messages calls clear_cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "warmroute/prefix/index.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// Consecutive blocks of one prompt that are now held. lifetime: every view until the call returns.
struct StoredBlocks {
  Tier tier = Tier::device;           ///< shared: in a store that every replica of the pool can load from
  std::optional<EngineHash> parent;   ///< the block before the first of these; none: they start at block 0
  std::span<const EngineHash> ids;    ///< the engine's names for them; opaque; 0 names nothing
  std::span<const BlockHash> blocks;  ///< shape: as ids. Hashes under the policy's seed, where the caller has them
  std::span<const std::uint32_t> token_ids;  ///< used when `blocks` is empty. shape: ids.size() * policy.block_size

  // Of the request that the blocks belong to, for hashing `token_ids`. They must be as in its Request.
  std::string_view adapter;
  std::string_view cache_salt;
  std::string_view tenant;
};

}  // namespace warmroute
