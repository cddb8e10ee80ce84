// Block hashes, and the prefix index by itself.
#include <memory>
#include <vector>

#include "support.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/prefix/index.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_index {
  explicit wr_index(PrefixIndexOptions options) : index(options) {}
  PrefixIndex index;
};
struct wr_match {
  PrefixMatch match;
};

namespace {

constexpr std::string_view kHashArguments =
    "tokens or out is NULL although its size is not 0, or count is NULL: nothing was hashed";

bool hash_arguments_fit(const void* in, std::size_t in_size, const std::uint64_t* out, std::size_t cap,
                        const std::size_t* count) noexcept {
  return (in != nullptr || in_size == 0) && (out != nullptr || cap == 0) && count != nullptr;
}
wr_status refuse_block_size(wr_error* err) noexcept {
  return fail(err, Code::out_of_range, "block_size must lie in 1..512 tokens");
}
bool is_block_size(std::uint32_t size) noexcept { return size >= 1 && size <= kMaxBlockTokens; }

std::span<const EngineHash> engine_hashes(const std::uint64_t* data, std::size_t count) noexcept {
  return {reinterpret_cast<const EngineHash*>(data), count};
}

constexpr std::string_view kPathArguments = "index or path is NULL, or first lies behind the path's end";
wr_status refuse_tier(wr_error* err) noexcept {
  return fail(err, Code::out_of_range, "tier must be WR_TIER_DEVICE, WR_TIER_HOST or WR_TIER_DISK");
}
constexpr std::uint32_t kMaxIndexSlots = 65'504;  // the index would take fewer without a word
bool is_tier(std::uint32_t tier) noexcept { return tier < kTierCount; }

}  // namespace

extern "C" {

wr_status wr_block_seed(const wr_hash_space* space, uint64_t* seed, wr_error* err) {
  const wr_hash_space defaults = WR_HASH_SPACE_INIT;
  const Input<wr_hash_space> in(space, defaults);
  if (!in) return in.refuse(err, "space is NULL");
  if (seed == nullptr || !readable(in->adapter) || !readable(in->cache_salt) || !readable(in->isolation_key)) {
    return null_argument(err, "seed is NULL, or a string has a size and no data");
  }
  *seed = block_seed({in->hash_seed, view(in->adapter), view(in->cache_salt), view(in->isolation_key), in->text != 0});
  return WR_STATUS_OK;
}

wr_status wr_hash_token_blocks(const uint32_t* tokens, size_t token_count, uint32_t block_size, uint64_t seed,
                               uint64_t* out, size_t cap, size_t* count, wr_error* err) {
  if (!hash_arguments_fit(tokens, token_count, out, cap, count)) return null_argument(err, kHashArguments);
  if (!is_block_size(block_size)) return refuse_block_size(err);
  *count = hash_token_blocks({tokens, token_count}, block_size, seed, block_hashes(out, cap));
  return WR_STATUS_OK;
}

wr_status wr_hash_eagle_blocks(const uint32_t* tokens, size_t token_count, uint32_t block_size, uint64_t seed,
                               uint64_t* out, size_t cap, size_t* count, wr_error* err) {
  if (!hash_arguments_fit(tokens, token_count, out, cap, count)) return null_argument(err, kHashArguments);
  if (!is_block_size(block_size)) return refuse_block_size(err);
  *count = hash_eagle_blocks({tokens, token_count}, block_size, seed, block_hashes(out, cap));
  return WR_STATUS_OK;
}

wr_status wr_hash_multimodal_blocks(const uint32_t* tokens, size_t token_count, uint32_t block_size, uint64_t seed,
                                    const uint64_t* objects, const size_t* object_ends, size_t block_count,
                                    uint32_t eagle, uint64_t* out, size_t cap, size_t* count, wr_error* err) {
  if (!hash_arguments_fit(tokens, token_count, out, cap, count)) return null_argument(err, kHashArguments);
  if (!is_block_size(block_size)) return refuse_block_size(err);
  if (!readable(object_ends, block_count) ||
      (block_count != 0 && object_ends[block_count - 1] != 0 && objects == nullptr)) {
    return null_argument(err, "object_ends or objects is NULL although there are some");
  }
  for (std::size_t i = 1; i < block_count; ++i) {
    if (object_ends[i] < object_ends[i - 1]) return fail(err, Code::out_of_range, "object_ends must not fall");
  }
  return guard(err, [&] {
    std::vector<std::span<const std::uint64_t>> of_blocks(block_count);
    for (std::size_t i = 0; i < block_count; ++i) {
      const std::size_t begin = i == 0 ? 0 : object_ends[i - 1];
      if (object_ends[i] != begin) of_blocks[i] = {objects + begin, object_ends[i] - begin};
    }
    *count =
        hash_multimodal_blocks({tokens, token_count}, block_size, seed, of_blocks, eagle != 0, block_hashes(out, cap));
    return WR_STATUS_OK;
  });
}

wr_status wr_hash_text_blocks(wr_str text, uint64_t seed, uint64_t* out, size_t cap, size_t* count, wr_error* err) {
  if (!hash_arguments_fit(text.data, text.size, out, cap, count)) return null_argument(err, kHashArguments);
  *count = hash_text_blocks(view(text), seed, block_hashes(out, cap));
  return WR_STATUS_OK;
}

wr_status wr_sequence_hashes(const uint64_t* blocks, size_t count, uint64_t* out, wr_error* err) {
  if (!readable(blocks, count) || !readable(out, count)) return null_argument(err, "blocks or out is NULL");
  sequence_hashes(block_hashes(blocks, count), {reinterpret_cast<SequenceHash*>(out), count});
  return WR_STATUS_OK;
}

wr_status wr_index_new(const wr_index_options* options, wr_index** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  const wr_index_options defaults = WR_INDEX_OPTIONS_INIT;
  const Input<wr_index_options> in(options != nullptr ? options : &defaults, defaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (in->max_replicas == 0 || in->max_replicas > kMaxIndexSlots) {
    return fail(err, Code::invalid_argument, "max_replicas must lie in 1..65504");
  }
  return guard(err, [&] {
    *out = std::make_unique<wr_index>(PrefixIndexOptions{in->max_replicas, in->max_bytes}).release();
    return WR_STATUS_OK;
  });
}

void wr_index_free(wr_index* index) { delete index; }

wr_status wr_index_store(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* path, size_t count,
                         size_t first, wr_error* err) {
  if (index == nullptr || !readable(path, count) || first > count) return null_argument(err, kPathArguments);
  if (!is_tier(tier)) return refuse_tier(err);
  return guard(err, [&] {
    return done(index->index.store(id_of(replica), static_cast<Tier>(tier), block_hashes(path, count), first), err);
  });
}

wr_status wr_index_remove(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* path, size_t count,
                          size_t first, size_t* removed, wr_error* err) {
  if (index == nullptr || !readable(path, count) || first > count) return null_argument(err, kPathArguments);
  if (!is_tier(tier)) return refuse_tier(err);
  return guard(err, [&] {
    const std::size_t n =
        index->index.remove(id_of(replica), static_cast<Tier>(tier), block_hashes(path, count), first);
    if (removed != nullptr) *removed = n;
    return WR_STATUS_OK;
  });
}

wr_status wr_index_store_event(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* parent,
                               const uint64_t* ids, const uint64_t* blocks, size_t count, wr_error* err) {
  if (index == nullptr || !readable(ids, count) || !readable(blocks, count)) {
    return null_argument(err, "index, ids or blocks is NULL");
  }
  if (!is_tier(tier)) return refuse_tier(err);
  return guard(err, [&] {
    return done(
        index->index.store_event(id_of(replica), static_cast<Tier>(tier), reinterpret_cast<const EngineHash*>(parent),
                                 engine_hashes(ids, count), block_hashes(blocks, count)),
        err);
  });
}

wr_status wr_index_remove_event(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* ids,
                                size_t count, size_t* removed, wr_error* err) {
  if (index == nullptr || !readable(ids, count)) return null_argument(err, "index or ids is NULL");
  if (!is_tier(tier)) return refuse_tier(err);
  return guard(err, [&] {
    const std::size_t n = index->index.remove_event(id_of(replica), static_cast<Tier>(tier), engine_hashes(ids, count));
    if (removed != nullptr) *removed = n;
    return WR_STATUS_OK;
  });
}

wr_status wr_index_hold_event(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* ids, size_t count,
                              size_t* known, wr_error* err) {
  if (index == nullptr || !readable(ids, count)) return null_argument(err, "index or ids is NULL");
  if (!is_tier(tier)) return refuse_tier(err);
  return guard(err, [&] {
    const std::size_t n = index->index.hold_event(id_of(replica), static_cast<Tier>(tier), engine_hashes(ids, count));
    if (known != nullptr) *known = n;
    return WR_STATUS_OK;
  });
}

wr_status wr_index_clear(wr_index* index, wr_replica_id replica, wr_error* err) {
  if (index == nullptr) return null_argument(err, "index is NULL");
  return guard(err, [&] {
    index->index.clear(id_of(replica));
    return WR_STATUS_OK;
  });
}

wr_status wr_index_advance(wr_index* index, size_t max_nodes, wr_error* err) {
  if (index == nullptr) return null_argument(err, "index is NULL");
  return guard(err, [&] {
    index->index.advance(max_nodes);
    return WR_STATUS_OK;
  });
}

wr_status wr_index_read_statistics(const wr_index* index, wr_index_statistics* out, wr_error* err) {
  if (index == nullptr) return null_argument(err, "index is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const PrefixIndexStatistics s = index->index.statistics();
    write(out, wr_index_statistics{0,
                                   0,
                                   s.blocks,
                                   s.memberships,
                                   s.nodes,
                                   s.bytes,
                                   s.max_bytes,
                                   s.evicted_memberships,
                                   s.evicted_blocks,
                                   s.refused_stores,
                                   s.clears,
                                   {}});
    return WR_STATUS_OK;
  });
}

wr_status wr_match_new(wr_match** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_match>().release();
    return WR_STATUS_OK;
  });
}

void wr_match_free(wr_match* match) { delete match; }

wr_status wr_index_match(const wr_index* index, const uint64_t* path, size_t count, wr_match* match, wr_error* err) {
  if (index == nullptr || match == nullptr || !readable(path, count)) {
    return null_argument(err, "index, path or match is NULL");
  }
  return guard(err, [&] {
    index->index.match(block_hashes(path, count), match->match);
    return WR_STATUS_OK;
  });
}

wr_status wr_match_depths(const wr_match* match, uint32_t tier, const uint32_t** depths, size_t* slots, wr_error* err) {
  if (match == nullptr || depths == nullptr || slots == nullptr) {
    return null_argument(err, "match, depths or slots is NULL");
  }
  if (!is_tier(tier)) return refuse_tier(err);
  const auto of = tier == WR_TIER_DEVICE ? match->match.device()
                  : tier == WR_TIER_HOST ? match->match.host()
                                         : match->match.disk();
  *depths = of.data();
  *slots = of.size();
  return WR_STATUS_OK;
}

}  // extern "C"
