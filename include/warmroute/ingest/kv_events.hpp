/// Decodes what engines publish of their KV caches: ZeroMQ frames of vLLM and SGLang into events that a Router takes.
/// Every wire form in use: array and map events, batches of 2, 3 or a map, ids as integers or digests, both replay forms.
/// Tolerant of fields it does not know, strict about the rest: a message is decoded whole or refused whole; inside a sound message a
/// bad event is refused alone. No length on the wire is believed, and a decoder that is warm allocates nothing.
/// What blocks must agree on before they may match (adapter, salt, images) is in their hashes: blocks of other identity never meet.
/// Does not: open sockets, check sequence numbers, keep orphans, or know where a block lies in its prompt.
///
///     auto message = read_kv_frames(KvSocket::subscriber, frames);          // topic, seq, payload
///     auto batch = decoder.decode(message->payload, kv_event_options(policy));
///     for (const KvEvent& e : batch->events) {
///       if (e.use != KvUse::apply) continue;                                // counted, see KvUse
///       if (e.type == KvEventType::stored) router.blocks_stored(id, e.stored_blocks(), now);
///       if (e.type == KvEventType::removed) router.blocks_removed(id, e.tier, e.ids, now);
///       if (e.type == KvEventType::cleared) router.clear_cache(id, now);
///     }
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/cache_events.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// What is wrong with a message or an event. Numbers are fixed and only appended.
enum class KvFault : std::uint8_t {
  none = 0,
  frame_count = 1,  ///< not as many frames as that socket brings, or no delimiter
  seq_length = 2,   ///< the sequence frame has not 8 bytes
  seq_range = 3,    ///< all ones, which is the end of a replay, with a payload
  truncated = 4,
  length_overrun = 5,  ///< a count or length reaches beyond the payload
  trailing_bytes = 6,
  reserved_byte = 7,  ///< 0xc1
  depth = 8,
  too_large = 9,  ///< a limit of KvEventOptions
  bad_type = 10,
  ext_type = 11,  ///< a MessagePack extension where a value is read
  missing_field = 12,
  unknown_event = 13,
  token_range = 14,  ///< a token id below 0 or above 2^32 - 1
  token_count_mismatch = 15,
  bad_block_size = 16,
  self_parent = 17,  ///< a block that follows itself
  duplicate_hash = 18,
};
inline constexpr std::size_t kKvFaultCount = 19;
/// returns: the name as spelled above. lifetime: static.
[[nodiscard]] std::string_view kv_fault_name(KvFault fault) noexcept;

/// Where frames come from.
enum class KvSocket : std::uint8_t {
  subscriber = 0,  ///< [topic, seq, payload]
  dealer = 1,      ///< replay: an empty delimiter, then as `req`
  req = 2,         ///< replay: [seq, payload], or from vLLM 0.26 and SGLang 0.5.22 on [topic, seq, payload]
};

/// One message. lifetime: views into the frames.
struct KvMessage {
  std::string_view topic;  ///< bytes, not checked
  bool has_topic = false;
  bool replay_end = false;  ///< the replay is over; nothing else is set. (It may have had holes all the same.)
  std::uint64_t seq = 0;
  std::string_view payload;
};
/// errors: malformed, value_out_of_range (seq_range). `fault`, if given, says which. alloc: errors only.
Result<KvMessage> read_kv_frames(KvSocket socket, std::span<const std::string_view> frames, KvFault* fault = nullptr);

enum class KvEventType : std::uint8_t { stored = 0, removed = 1, cleared = 2 };

/// What an event is good for. Only `apply` is for the router; the others are counted by the decoder.
enum class KvUse : std::uint8_t {
  apply = 0,
  nothing = 1,          ///< names no block
  placeholder = 2,      ///< stored without token ids: blocks known by these ids are (also) on `tier`
  other_group = 3,      ///< blocks of an attention group that does not hold whole prefixes (sliding window, mamba...)
  unknown_medium = 4,   ///< a medium that is not known
  unnamed_adapter = 5,  ///< of an adapter that has a number and no name (vLLM 0.11): must not match the base model
  partial_block = 6,    ///< fewer tokens than a block
  block_size = 7,       ///< the engine's block size is not the policy's, see KvEventOptions::engine_block_size
  unaligned = 8,  ///< smaller blocks to be joined after a parent that is not known: where ours begin cannot be told
};
inline constexpr std::size_t kKvUseCount = 9;

/// One event. lifetime: all views until the decoder's next call or the payload's end, whichever comes first.
struct KvEvent {
  KvEventType type = KvEventType::stored;
  KvUse use = KvUse::apply;
  Tier tier = Tier::device;
  bool byte_ids = false;         ///< ids came as digests, not as numbers (the engine's other events may have numbers)
  bool eagle = false;            ///< token pairs: blocks are hashed with the token after them
  bool wide_tokens = false;      ///< some token ids have more than 32 bits (SGLang's pad values of images)
  std::uint32_t index = 0;       ///< place in the batch as sent
  std::uint32_t block_size = 0;  ///< units: tokens, as sent
  std::optional<EngineHash> parent;  ///< as sent; where blocks are joined, the one before the first of ours
  std::span<const EngineHash>
      ids;  ///< low 64 bits, as the engine's numbers have them; one per block of the policy's size
  /// shape: what `ids` cover, and one more if `eagle`; empty if `wide_tokens`, and of placeholders
  std::span<const std::uint32_t> token_ids;
  std::span<const BlockHash> blocks;         ///< shape: as ids; only where use is `apply` and the options say `hash`
  std::string_view adapter, cache_salt;      ///< what separates the blocks, wherever on the wire it was
  std::string_view medium, lora_name, salt;  ///< as sent; empty = absent
  std::string_view session_id, locality, ownership, spec_kind;
  std::optional<std::int64_t> lora_id, sliding_window;
  std::optional<std::uint32_t> group_idx;
  std::string_view extra_keys;  ///< MessagePack: one list or nil per block
  std::string_view wire;        ///< the event, MessagePack

  /// returns: whether the first block begins the prompt. SGLang 0.4.10 names a parent there, too: the hash of nothing.
  [[nodiscard]] bool at_root() const noexcept { return !parent || to_integer(*parent) == kHashOfNothing; }
  /// What Router::blocks_stored takes. Only where the options say `hash`.
  [[nodiscard]] StoredBlocks stored_blocks() const noexcept {
    StoredBlocks s;
    s.tier = tier;
    if (!at_root()) s.parent = parent;
    s.ids = ids;
    s.blocks = blocks;
    s.token_ids = token_ids;
    s.adapter = adapter;
    s.cache_salt = cache_salt;
    return s;
  }

 private:
  static constexpr std::uint64_t kHashOfNothing = 5'740'354'900'026'072'187;
  static constexpr std::uint64_t to_integer(EngineHash h) noexcept { return static_cast<std::uint64_t>(h); }
};

struct KvRejected {
  std::uint32_t index = 0;  ///< place in the batch as sent
  KvFault fault = KvFault::none;
  std::uint64_t offset = 0;  ///< units: bytes of the payload
};

/// One payload, decoded. lifetime: as KvEvent.
struct KvBatch {
  double time_s = 0;  ///< the engine's wall clock; not ours
  std::optional<std::uint32_t> dp_rank;
  std::span<const KvEvent> events;       ///< in the order sent
  std::span<const KvRejected> rejected;  ///< the first kMaxRejectedKept of them
  std::uint32_t rejected_count = 0;
};
inline constexpr std::size_t kMaxRejectedKept = 4096;

inline constexpr std::uint32_t kMaxEngineParts = 128;

struct KvEventOptions {
  std::uint32_t block_size = 16;  ///< units: tokens, 1..512: the policy's
  /// units: tokens; 0: as block_size. Known from the engine's metrics or configuration; events of another size are refused
  /// (KvUse::block_size). A multiple of block_size, at most kMaxEngineParts of it: blocks are cut into ours, which get names that follow from
  /// the engine's. A divisor: they are joined to ours, which are called by their last part; the decoder then remembers every block of the
  /// engine, up to a million, in 64 to 128 bytes and its tokens.
  std::uint32_t engine_block_size = 0;
  std::uint64_t hash_seed = kDynamoHashSeed;
  std::string_view isolation_key{};  ///< where the engine serves one tenant alone
  /// Fill in KvEvent::blocks. Without, hash `token_ids` as `eagle` says, and mind `extra_keys`: images are in there, not in the tokens.
  bool hash = true;
  /// Keep events with wide token ids (else they are rejected, token_range). No request has such ids: their blocks match nothing, but the
  /// blocks before them do, and those after them are no orphans.
  bool wide_tokens = false;
  std::size_t max_bytes = std::size_t{16} << 20;  ///< larger payloads are too_large
  std::size_t max_events = std::size_t{1} << 18;  ///< per payload; beyond: too_large
};
/// returns: the options under which blocks are hashed as this policy's router expects.
inline KvEventOptions kv_event_options(const Policy& policy) noexcept {
  KvEventOptions options;
  options.block_size = policy.block_size;
  options.hash_seed = policy.hash_seed;
  return options;
}

/// Since the decoder was made. threads: read them where decode() is called.
struct KvCounters {
  std::uint64_t payloads = 0;
  std::uint64_t refused_payloads = 0;
  std::array<std::uint64_t, kKvUseCount> events{};      ///< by KvUse
  std::array<std::uint64_t, kKvFaultCount> rejected{};  ///< events, by KvFault
  std::uint64_t blocks_stored = 0, blocks_removed = 0;  ///< in events to apply
};

/// Decodes payloads of one publisher, i.e. of one rank: it remembers what kind its attention groups are, and its salted prompts.
/// threads: one at a time. alloc: none once it has seen payloads of the size (scratch above 16 MiB is given back); errors allocate a message.
/// cost: 45 ns per block of 16 tokens in runs, 205 ns for an event of one block, hashes included (bench_kv_events).
class KvEventDecoder {
 public:
  KvEventDecoder();
  ~KvEventDecoder();
  KvEventDecoder(KvEventDecoder&&) noexcept;
  KvEventDecoder& operator=(KvEventDecoder&&) noexcept;

  /// errors, of the payload as a whole: malformed, too_deep, too_large, wrong_type, missing_field; invalid_argument for bad options.
  Result<KvBatch> decode(std::string_view payload, const KvEventOptions& options);
  /// What the last decode() refused the payload for. returns: none if it did not.
  [[nodiscard]] KvFault fault() const noexcept;
  [[nodiscard]] const KvCounters& counters() const noexcept;
  /// The engine restarted: forgets what was remembered of it. Counters stay.
  void reset() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
