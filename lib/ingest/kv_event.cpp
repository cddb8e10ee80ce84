// One event: its fields in either form, what they must be together, and what the event is good for.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ingest/kv_decoder.hpp"

namespace warmroute {

using ingest::Draft;
using ingest::Field;
using ingest::GroupKind;
using ingest::PackKind;
using ingest::PackReader;

namespace {

// Whether the text, of that length already, is `name`. The length is a constant, so that no call is left of it: every event has nine keys.
template <std::size_t N>
bool is(std::string_view text, const char (&name)[N]) noexcept {
  return std::memcmp(text.data(), name, N - 1) == 0;
}

Field field_named(std::string_view key) noexcept {
  switch (key.size()) {
    case 4: return is(key, "type") ? Field::type : Field::unknown;
    case 6: return is(key, "medium") ? Field::medium : Field::unknown;
    case 7: return is(key, "lora_id") ? Field::lora_id : Field::unknown;
    case 8: return is(key, "locality") ? Field::locality : Field::unknown;
    case 9:
      if (is(key, "token_ids")) return Field::token_ids;
      if (is(key, "lora_name")) return Field::lora_name;
      if (is(key, "group_idx")) return Field::group_idx;
      return is(key, "ownership") ? Field::ownership : Field::unknown;
    case 10:
      if (is(key, "block_size")) return Field::block_size;
      if (is(key, "extra_keys")) return Field::extra_keys;
      if (is(key, "cache_salt")) return Field::cache_salt;
      return is(key, "session_id") ? Field::session_id : Field::unknown;
    case 12: return is(key, "block_hashes") ? Field::block_hashes : Field::unknown;
    case 17: return is(key, "parent_block_hash") ? Field::parent : Field::unknown;
    case 18: return is(key, "kv_cache_spec_kind") ? Field::spec_kind : Field::unknown;
    case 28: return is(key, "kv_cache_spec_sliding_window") ? Field::sliding_window : Field::unknown;
    default: return Field::unknown;
  }
}

constexpr std::array kStoredFields = {Field::block_hashes, Field::parent,    Field::token_ids,     Field::block_size,
                                      Field::lora_id,      Field::medium,    Field::lora_name,     Field::extra_keys,
                                      Field::group_idx,    Field::spec_kind, Field::sliding_window};
constexpr std::array kRemovedFields = {Field::block_hashes, Field::medium, Field::group_idx};
constexpr std::uint32_t kRemovedBits = bit(Field::block_hashes) | bit(Field::medium) | bit(Field::group_idx) |
                                       bit(Field::locality) | bit(Field::ownership);

std::optional<KvEventType> type_named(std::string_view name) noexcept {
  if (name.size() == 11 && is(name, "BlockStored")) return KvEventType::stored;
  if (name.size() == 12 && is(name, "BlockRemoved")) return KvEventType::removed;
  if (name.size() == 16 && is(name, "AllBlocksCleared")) return KvEventType::cleared;
  return std::nullopt;
}

// Whether blocks of that attention group hold a prompt's whole prefix, so that finding one means that all before it count.
GroupKind group_kind(std::string_view spec_kind) noexcept {
  return spec_kind == "full_attention" || spec_kind == "mla_attention" || spec_kind == "sink_full_attention"
             ? GroupKind::whole_prefix
             : GroupKind::other;
}

struct Place {
  bool known = false;
  Tier tier = Tier::device;
};
// STORAGE and OBJ are shared unless they say that they are local; FS (vLLM 0.26) only if it says that it is not. Lower-case "cpu" is what
// vLLM's Mooncake connector writes: a store of all replicas, of which nothing is ever said to be removed.
Place place_of(std::string_view medium, std::string_view locality) noexcept {
  if (medium.empty() || (medium.size() == 3 && is(medium, "GPU"))) return {true, Tier::device};
  if (medium == "CPU" || medium == "CPU_PINNED") return {true, Tier::host};
  if (medium == "DISK") return {true, Tier::disk};
  if (medium == "FS") return {true, locality == "REMOTE" ? Tier::shared : Tier::disk};
  if (medium == "STORAGE" || medium == "OBJ") return {true, locality == "LOCAL" ? Tier::disk : Tier::shared};
  if (medium == "EXTERNAL" || medium == "cpu") return {true, Tier::shared};
  return {};
}

}  // namespace

void KvEventDecoder::Impl::reject(KvFault why, std::uint64_t offset) {
  roll_back();
  ++rejected_count;
  ++counters.rejected[static_cast<std::size_t>(why)];
  if (rejected.size() < kMaxRejectedKept) rejected.push({draft.event.index, why, offset});
}

void KvEventDecoder::Impl::roll_back() noexcept {
  ids.resize_down(std::min(ids.size(), draft.start.ids));
  tokens.resize_down(std::min(tokens.size(), draft.start.tokens));
  blocks.resize_down(std::min(blocks.size(), draft.start.blocks));
  wide.resize_down(0);
}

// returns: structural faults only.
KvFault KvEventDecoder::Impl::read_event(PackReader& reader, std::uint32_t index) {
  const std::uint8_t* const start = reader.at();
  const std::uint64_t offset = reader.offset();
  draft.begin(index, {ids.size(), tokens.size(), blocks.size()});
  std::uint32_t count = 0;
  KvFault bad = KvFault::none;
  switch (reader.peek()) {
    case PackKind::array:
      if (bad = reader.read_array(count); bad == KvFault::none) bad = read_array_form(reader, count);
      break;
    case PackKind::map:
      if (bad = reader.read_map(count); bad == KvFault::none) bad = read_map_form(reader, count);
      break;
    default:
      if (bad = reader.skip(); bad != KvFault::none) return bad;
      reject(KvFault::bad_type, offset);
      return KvFault::none;
  }
  if (bad != KvFault::none) return bad;
  draft.event.wire = reader.since(start);
  settle(offset);
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::read_array_form(PackReader& reader, std::uint32_t count) {
  if (count == 0) return KvFault::none;
  if (const KvFault bad = read_field(Field::type, reader); bad != KvFault::none) return bad;
  const auto type = draft.has(Field::type) ? type_named(draft.type) : std::nullopt;
  std::span<const Field> fields;
  if (type == KvEventType::stored) fields = kStoredFields;
  if (type == KvEventType::removed) fields = kRemovedFields;
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    const KvFault bad = i < fields.size() ? read_field(fields[i], reader) : reader.skip();
    if (bad != KvFault::none) return bad;
  }
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::read_map_form(PackReader& reader, std::uint32_t pairs) {
  for (; pairs != 0; --pairs) {
    std::string_view key;
    KvFault bad = reader.peek() == PackKind::text ? reader.read_text(key) : reader.skip();
    if (bad == KvFault::none) bad = read_field(field_named(key), reader);
    if (bad != KvFault::none) return bad;
  }
  return KvFault::none;
}

// The event is read; into the batch with it, or among the rejected.
void KvEventDecoder::Impl::settle(std::uint64_t offset) {
  if (const KvFault why = check(offset); why != KvFault::none) return reject(why, offset);
  KvEvent& e = draft.event;
  e.block_size = static_cast<std::uint32_t>(draft.block_size);
  if (e.type == KvEventType::stored) {
    find_identity();
    e.use = use_of_stored();
    largest_block = std::max(largest_block, e.block_size);
  } else if (e.type == KvEventType::removed) {
    e.use = use_of_blocks();
  } else {
    trail.clear();
    reblocker.clear();
  }
  finish_blocks();
  ++counters.events[static_cast<std::size_t>(e.use)];
  places.push({draft.ids_begin, draft.ids_count, draft.tokens_begin, e.wide_tokens ? 0 : draft.tokens_count,
               draft.blocks_begin, draft.blocks_count});
  events.push(e);
  wide.resize_down(0);
}

KvFault KvEventDecoder::Impl::check(std::uint64_t& offset) {
  const auto fault_at = [&](std::uint32_t fields) {
    KvFault first = KvFault::none;
    for (std::size_t f = 0; f < ingest::kFieldCount; ++f) {
      if ((fields >> f & 1) == 0 || (first != KvFault::none && draft.faults[f].offset > offset)) continue;
      first = draft.faults[f].fault;
      offset = draft.faults[f].offset;
    }
    return first;
  };
  if ((draft.faulty & bit(Field::type)) != 0) return fault_at(bit(Field::type));
  if (!draft.has(Field::type)) return KvFault::missing_field;
  const auto type = type_named(draft.type);
  if (!type) return KvFault::unknown_event;
  draft.event.type = *type;
  if (*type == KvEventType::cleared) return KvFault::none;
  if (const auto faulty = *type == KvEventType::removed ? draft.faulty & kRemovedBits : draft.faulty; faulty != 0) {
    return fault_at(faulty);
  }
  if (!draft.has(Field::block_hashes)) return KvFault::missing_field;
  constexpr std::size_t kMostCut = std::size_t{1} << 23;  // an id may take one byte on the wire, and 128 names here
  if (parts() > 1 && ids.size() + draft.ids_count * parts() > kMostCut) return KvFault::too_large;
  if (*type == KvEventType::removed) {
    draft.tokens_count = 0;
    return KvFault::none;
  }
  if (!draft.has(Field::token_ids) || !draft.has(Field::block_size)) return KvFault::missing_field;
  return check_stored();
}

KvFault KvEventDecoder::Impl::check_stored() {
  if (draft.tokens_count != 0) {
    if (draft.block_size == 0) return KvFault::bad_block_size;
    const std::uint64_t given = draft.tokens_count - (draft.event.eagle ? 1 : 0);
    if (given != draft.ids_count * draft.block_size) return KvFault::token_count_mismatch;  // both below 2^32
  }
  if (draft.has(Field::extra_keys) && draft.extra_count != 0 && draft.extra_count != draft.ids_count) {
    return KvFault::bad_type;
  }
  // No engine sends both; the hashes of such blocks would have to hold both.
  if (draft.event.wide_tokens && draft.extra_count != 0) return KvFault::token_range;
  return check_chain();
}

// No block may come twice in a chain, nor follow itself.
KvFault KvEventDecoder::Impl::check_chain() {
  constexpr std::size_t kFew = 8;
  constexpr std::size_t kMostProbes = 64;
  const std::span<const EngineHash> chain = ids.from(draft.ids_begin).first(draft.ids_count);
  const auto& parent = draft.event.parent;
  if (parent && std::find(chain.begin(), chain.end(), *parent) != chain.end()) return KvFault::self_parent;
  if (chain.size() <= kFew) {
    for (std::size_t i = 1; i < chain.size(); ++i) {
      if (std::find(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(i), chain[i]) !=
          chain.begin() + static_cast<std::ptrdiff_t>(i)) {
        return KvFault::duplicate_hash;
      }
    }
    return KvFault::none;
  }
  const auto width = static_cast<unsigned>(std::bit_width(chain.size()) + 1);  // at most half full
  const std::size_t mask = (std::size_t{1} << width) - 1;
  chain_table.resize_down(0);
  std::uint32_t* const table = chain_table.room(mask + 1);
  std::fill_n(table, mask + 1, 0u);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    std::size_t at = (static_cast<std::uint64_t>(chain[i]) * 0x9E37'79B9'7F4A'7C15u) >> (64 - width);
    std::size_t probes = 0;
    for (; table[at] != 0; at = (at + 1) & mask) {
      if (chain[table[at] - 1] == chain[i]) return KvFault::duplicate_hash;
      if (++probes == kMostProbes) return check_chain_by_sorting(chain);  // ids made to collide cost no more than this
    }
    table[at] = static_cast<std::uint32_t>(i + 1);
  }
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::check_chain_by_sorting(std::span<const EngineHash> chain) {
  sorted.resize_down(0);
  std::uint64_t* const begin = sorted.room(chain.size());
  std::transform(chain.begin(), chain.end(), begin, [](EngineHash h) { return static_cast<std::uint64_t>(h); });
  std::sort(begin, begin + chain.size());
  return std::adjacent_find(begin, begin + chain.size()) == begin + chain.size() ? KvFault::none
                                                                                 : KvFault::duplicate_hash;
}

// What holds for stored and removed alike.
KvUse KvEventDecoder::Impl::use_of_blocks() noexcept {
  KvEvent& e = draft.event;
  const std::size_t group = e.group_idx.value_or(0);
  GroupKind kind = GroupKind::unseen;
  if (!e.spec_kind.empty()) {
    kind = group_kind(e.spec_kind);
    if (group < groups.size()) groups[group] = kind;
  } else if (group < groups.size()) {
    kind = groups[group];  // removals name the group only
  }
  const Place place = place_of(e.medium, e.locality);
  e.tier = place.tier;
  if (draft.ids_count == 0) return KvUse::nothing;
  // Before kinds were sent (vLLM 0.20, 0.21), and from engines that send none: only the first group.
  if (kind == GroupKind::other || (kind == GroupKind::unseen && group != 0)) return KvUse::other_group;
  if (!place.known) return KvUse::unknown_medium;
  return KvUse::apply;
}

KvUse KvEventDecoder::Impl::use_of_stored() noexcept {
  const KvEvent& e = draft.event;
  if (const KvUse use = use_of_blocks(); use != KvUse::apply) return use;
  if (draft.tokens_count == 0) return KvUse::placeholder;
  if (e.lora_id.value_or(0) != 0 && e.adapter.empty()) return KvUse::unnamed_adapter;
  const std::uint32_t expected = engine_block_size();
  if (e.block_size < expected && draft.ids_count == 1 && largest_block >= expected) return KvUse::partial_block;
  if (e.block_size != expected || (expected % options.block_size != 0 && !joins())) return KvUse::block_size;
  if (joins() && e.wide_tokens) return KvUse::block_size;
  return KvUse::apply;
}

}  // namespace warmroute
