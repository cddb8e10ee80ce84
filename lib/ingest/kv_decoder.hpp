// The decoder's scratch memory and its parts: one event's fields (kv_fields.cpp), what they make together (kv_event.cpp), what separates
// its blocks and their hashes (kv_identity.cpp), and the batch around it (kv_decoder.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "ingest/kv_id_table.hpp"
#include "ingest/kv_msgpack.hpp"
#include "ingest/kv_reblock.hpp"
#include "warmroute/ingest/kv_events.hpp"

namespace warmroute::ingest {

// Memory that grows, is not cleared first, and stays. What is in it is named by position, since growing moves it.
template <class T>
class Scratch {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* data() noexcept { return data_.get(); }
  [[nodiscard]] std::span<T> from(std::size_t begin) noexcept { return {data() + begin, size_ - begin}; }
  void resize_down(std::size_t size) noexcept { size_ = size; }
  // returns: room for `more` values behind those there; `commit` makes them count.
  T* room(std::size_t more) {
    if (size_ + more > capacity_) grow(size_ + more);
    return data() + size_;
  }
  void commit(std::size_t more) noexcept { size_ += more; }
  void push(const T& value) {
    *room(1) = value;
    commit(1);
  }
  // Empty; and without memory if that is more than `keep_bytes`.
  void reset(std::size_t keep_bytes) noexcept {
    size_ = 0;
    if (capacity_ * sizeof(T) > keep_bytes) {
      data_.reset();
      capacity_ = 0;
    }
  }

 private:
  void grow(std::size_t least) {
    const std::size_t capacity = std::max(least, capacity_ * 2 + 64);
    auto data = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy(data_.get(), data_.get() + size_, data.get());
    data_ = std::move(data);
    capacity_ = capacity;
  }

  std::unique_ptr<T[]> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

enum class Field : std::uint8_t {
  type,
  block_hashes,
  parent,
  token_ids,
  block_size,
  lora_id,
  medium,
  lora_name,
  extra_keys,
  group_idx,
  spec_kind,
  sliding_window,
  locality,
  ownership,
  session_id,
  cache_salt,
  unknown,
};
inline constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::unknown);
[[nodiscard]] constexpr std::uint32_t bit(Field field) noexcept { return 1u << static_cast<unsigned>(field); }

// Where the arrays of an event lie in scratch.
struct Places {
  std::size_t ids = 0, ids_count = 0;
  std::size_t tokens = 0, tokens_count = 0;
  std::size_t blocks = 0, blocks_count = 0;
};
struct ScratchSizes {
  std::size_t ids = 0, tokens = 0, blocks = 0;
};

// An event while it is read. Its arrays lie in scratch from these positions on.
struct Draft {
  KvEvent event;
  std::string_view type;
  ScratchSizes start;  // of scratch before this event
  std::size_t ids_begin = 0, tokens_begin = 0, wide_begin = 0, blocks_begin = 0;
  std::size_t ids_count = 0, tokens_count = 0, blocks_count = 0;  // tokens: with the one more of `eagle`
  std::uint64_t block_size = 0;
  std::uint64_t seed = 0;         // of its blocks
  std::uint32_t extra_count = 0;  // entries of extra_keys
  std::uint32_t present = 0;      // bits of fields that have a value
  std::uint32_t faulty = 0;       // bits of fields whose value cannot be read; what that means depends on the type
  struct FieldFault {
    KvFault fault;
    std::uint64_t offset;
  };
  std::array<FieldFault, kFieldCount> faults;

  [[nodiscard]] bool has(Field field) const noexcept { return (present & bit(field)) != 0; }
  void begin(std::uint32_t index, ScratchSizes sizes) noexcept {
    event = KvEvent{};
    event.index = index;
    start = sizes;
    ids_begin = ids_count = tokens_begin = tokens_count = wide_begin = blocks_begin = blocks_count = 0;
    block_size = 0;
    extra_count = present = faulty = 0;
  }
};

enum class GroupKind : std::uint8_t { unseen = 0, whole_prefix, other };

}  // namespace warmroute::ingest

namespace warmroute {

struct KvEventDecoder::Impl {
  using Fault = KvFault;

  // batch (kv_decoder.cpp)
  Fault read_payload(ingest::PackReader& reader, KvBatch& batch);
  Fault read_batch_array(ingest::PackReader& reader, KvBatch& batch);
  Fault read_batch_map(ingest::PackReader& reader, KvBatch& batch);
  Fault read_events(ingest::PackReader& reader);
  void begin(const KvEventOptions& options, std::string_view payload);
  void place_views() noexcept;

  // one event (kv_event.cpp)
  Fault read_event(ingest::PackReader& reader, std::uint32_t index);
  Fault read_array_form(ingest::PackReader& reader, std::uint32_t count);
  Fault read_map_form(ingest::PackReader& reader, std::uint32_t pairs);
  void settle(std::uint64_t offset);
  Fault check(std::uint64_t& offset);
  Fault check_stored();
  Fault check_chain();
  Fault check_chain_by_sorting(std::span<const EngineHash> chain);
  [[nodiscard]] std::uint32_t engine_block_size() const noexcept {
    return options.engine_block_size != 0 ? options.engine_block_size : options.block_size;
  }
  // How many of ours one of the engine's blocks is cut into.
  [[nodiscard]] std::uint32_t parts() const noexcept {
    return engine_block_size() % options.block_size == 0 ? engine_block_size() / options.block_size : 1;
  }
  // Whether several of the engine's blocks make one of ours.
  [[nodiscard]] bool joins() const noexcept {
    return engine_block_size() < options.block_size && options.block_size % engine_block_size() == 0;
  }
  [[nodiscard]] KvUse use_of_stored() noexcept;
  [[nodiscard]] KvUse use_of_blocks() noexcept;
  void reject(KvFault fault, std::uint64_t offset);
  void roll_back() noexcept;

  // its fields (kv_fields.cpp)
  Fault read_field(ingest::Field field, ingest::PackReader& reader);
  Fault read_value(ingest::Field field, ingest::PackReader& reader);
  void forget(ingest::Field field) noexcept;
  Fault read_ids(ingest::PackReader& reader);
  Fault read_tokens(ingest::PackReader& reader);
  Fault read_pairs(ingest::PackReader& reader, std::uint32_t count);
  Fault read_wide_tokens(ingest::PackReader& reader, std::uint32_t count, bool pairs);
  Fault read_salted_tail(ingest::PackReader& reader);

  // identity and hashes (kv_identity.cpp)
  void find_identity();
  void finish_blocks();
  void hash_blocks(std::uint32_t parts);
  void hash_extra_blocks(std::span<const std::uint32_t> run, std::uint32_t parts, std::span<BlockHash> out);
  void hash_wide_blocks(std::span<BlockHash> out);
  void name_parts(std::uint32_t parts);
  [[nodiscard]] std::uint64_t objects_of(ingest::PackReader& extra_keys, bool first);

  // joining smaller blocks (kv_reblock.cpp)
  void join_blocks();
  void hash_joined(std::size_t pages_per_block);
  void keep_borders();

  ingest::Draft draft;
  ingest::Scratch<KvEvent> events;
  ingest::Scratch<ingest::Places> places;
  ingest::Scratch<EngineHash> ids;
  ingest::Scratch<std::uint32_t> tokens;
  ingest::Scratch<std::uint64_t> wide;
  ingest::Scratch<BlockHash> blocks;
  ingest::Scratch<std::uint64_t> objects;          // of one block
  ingest::Scratch<ingest::Reblocker::Page> pages;  // engine blocks that are joined
  ingest::Scratch<std::uint32_t> chain_table;      // finds ids that come twice
  ingest::Scratch<std::uint64_t> sorted;
  ingest::Scratch<KvRejected> rejected;
  std::uint32_t rejected_count = 0;

  KvEventOptions options;
  KvFault last_fault = KvFault::none;
  KvCounters counters;

  // what is remembered of the engine
  std::array<ingest::GroupKind, 64> groups{};
  std::uint32_t largest_block = 0;
  ingest::SaltTrail trail;
  ingest::Reblocker reblocker;  // where the engine's blocks are smaller than ours
};

}  // namespace warmroute
