/// What the router is asked: one request's identity, prompt and wishes, as views into the caller's memory.
/// The prompt comes in one of two forms: token ids (the router hashes them) or block hashes that
/// were prepared by prefix/block_hash.hpp or ingest/request_body.hpp. Prompt text never reaches the router.
/// lifetime: every view must live until the call returns; nothing is kept but hashes and counts.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "warmroute/types.hpp"

namespace warmroute {

/// What a block of the prompt is made of. Blocks of different kinds never match.
enum class BlockKind : std::uint8_t {
  tokens = 0,  ///< a fixed run of token ids, the pool's block size
  text = 1,    ///< kTextBlockBytes of the canonical prompt
};

/// A count that the caller does not know.
inline constexpr std::int64_t kUnknown = -1;

struct Request {
  std::string_view model;       ///< names the pool; empty or unknown names go to the pool named "" if there is one
  std::string_view adapter;     ///< LoRA adapter; empty = the base model. Replicas that do not carry it are passed over
  std::string_view session;     ///< exact key of a conversation; empty = none
  std::string_view tenant;      ///< isolation key from the verified caller, never from the body; empty = shared
  std::string_view cache_salt;  ///< as the body carries it; empty = none

  std::span<const std::uint32_t> token_ids;  ///< the first prompt's ids; used when `blocks` is empty
  std::span<const BlockHash> blocks;         ///< the first prompt's block hashes, block 0 first
  BlockKind block_kind = BlockKind::tokens;  ///< what `blocks` holds

  std::int64_t input_tokens =
      kUnknown;  ///< sum over all prompts of the body; unknown or 0: ids, else learned bytes per token
  std::int64_t prompt_bytes = kUnknown;  ///< canonical bytes, sum over all prompts; feeds the bytes-per-token estimate
  std::int64_t max_output_tokens = kUnknown;

  std::uint32_t class_id = 0;  ///< operator's label, echoed into decision and statistics
  std::int32_t priority = 0;   ///< larger is more urgent; carried for later policies
  Nanos deadline{0};           ///< absolute, caller's clock; 0 = none; carried for later policies
  bool stream = false;

  std::span<const ReplicaId> excluded;  ///< never chosen: what a retry has already tried
  ReplicaId pinned = kNoReplica;        ///< only this one may be chosen
  bool exact_pool = false;              ///< `model` is a pool's name: the pool named "" does not stand in for it
};

}  // namespace warmroute
