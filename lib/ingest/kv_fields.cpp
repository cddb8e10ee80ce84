// The fields of one event: each is read where it stands, whatever the event's type turns out to be.
#include <algorithm>

#include "ingest/kv_decoder.hpp"
#include "simdjson.h"

namespace warmroute {

using ingest::Field;
using ingest::PackKind;
using ingest::PackReader;

namespace {

constexpr std::uint64_t kMaxToken = 0xffff'ffff;

bool is_utf8(std::string_view text) noexcept {
  std::uint64_t all = 0;
  std::size_t i = 0;
  for (std::uint64_t word = 0; i + 8 <= text.size(); i += 8, all |= word) std::memcpy(&word, text.data() + i, 8);
  for (; i < text.size(); ++i) all |= static_cast<unsigned char>(text[i]);
  return (all & 0x8080'8080'8080'8080) == 0 || simdjson::validate_utf8(text.data(), text.size());
}

KvFault read_string(PackReader& reader, std::string_view& out) noexcept {
  std::string_view text;
  if (const KvFault fault = reader.read_text(text); fault != KvFault::none) return fault;
  if (!is_utf8(text)) return KvFault::bad_type;
  out = text;
  return KvFault::none;
}

KvFault read_signed(PackReader& reader, std::optional<std::int64_t>& out) noexcept {
  std::uint64_t bits = 0;
  bool negative = false;
  if (const KvFault fault = reader.read_integer(bits, negative); fault != KvFault::none) return fault;
  if (!negative && bits >> 63 != 0) return KvFault::bad_type;
  out = static_cast<std::int64_t>(bits);
  return KvFault::none;
}

// An engine's hash: an integer's 64 bits, or the last 8 bytes of a digest, big-endian, which is what vLLM sends where it sends numbers.
KvFault read_hash(PackReader& reader, EngineHash& out, bool& as_bytes) noexcept {
  if (reader.peek() != PackKind::bytes) {
    std::uint64_t bits = 0;
    bool negative = false;
    const KvFault fault = reader.read_integer(bits, negative);
    out = EngineHash{bits};
    return fault;
  }
  std::string_view digest;
  if (const KvFault fault = reader.read_bytes(digest); fault != KvFault::none) return fault;
  if (digest.empty()) return KvFault::bad_type;
  if (digest.size() > 8) digest.remove_prefix(digest.size() - 8);
  std::uint64_t bits = 0;
  for (const char c : digest) bits = bits << 8 | static_cast<unsigned char>(c);
  out = EngineHash{bits};
  as_bytes = true;
  return KvFault::none;
}

}  // namespace

KvFault KvEventDecoder::Impl::read_ids(PackReader& reader) {
  std::uint32_t count = 0;
  if (const KvFault fault = reader.read_array(count); fault != KvFault::none) return fault;
  draft.ids_begin = ids.size();
  EngineHash* out = ids.room(count);
  bool as_bytes = false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint8_t* const at = reader.at();
    if (reader.left() >= 9 && (*at == 0xcf || *at == 0xd3)) {
      out[i] = EngineHash{PackReader::load_be64(at + 1)};
      reader.move_to(at + 9);
    } else if (const KvFault fault = read_hash(reader, out[i], as_bytes); fault != KvFault::none) {
      return fault;
    }
  }
  ids.commit(count);
  draft.ids_count = count;
  draft.event.byte_ids = as_bytes;
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::read_tokens(PackReader& reader) {
  const std::uint8_t* const start = reader.at();
  std::uint32_t count = 0;
  if (const KvFault fault = reader.read_array(count); fault != KvFault::none) return fault;
  draft.event.eagle = draft.event.wide_tokens = false;
  draft.tokens_begin = tokens.size();
  const bool pairs = count != 0 && reader.peek() == PackKind::array;
  KvFault fault = KvFault::none;
  if (pairs) {
    fault = read_pairs(reader, count);
  } else {
    // Where the next token is hangs on this one's first byte, so that this chain is what a token costs: a load, an `and`, a shift, an add.
    // No branch on the width: 3 and 5 bytes are about as frequent in a large vocabulary. No table: its load would be in the chain, too.
    std::uint32_t* out = tokens.room(count);
    std::uint32_t* const last = out + count;
    const std::uint8_t* at = reader.at();
    const std::uint8_t* const end = reader.end();
    while (out != last) {
      if (end - at >= 8) [[likely]] {
        const std::uint8_t tag = *at;
        if (static_cast<std::uint8_t>(tag - 0xcc) <= 2) [[likely]] {  // 1, 2 or 4 bytes follow
          const unsigned bytes = 1u << (tag & 3);
          *out++ = static_cast<std::uint32_t>((PackReader::load_be64(at) << 8) >> (64 - 8 * bytes));
          at += 1 + bytes;
          continue;
        }
        if (tag < 0x80) {
          *out++ = tag;
          ++at;
          continue;
        }
      }
      reader.move_to(at);
      std::uint64_t bits = 0;
      bool negative = false;
      fault = reader.read_integer(bits, negative);
      if (fault == KvFault::none && (negative || bits > kMaxToken)) fault = KvFault::token_range;
      if (fault != KvFault::none) break;
      *out++ = static_cast<std::uint32_t>(bits);
      at = reader.at();
    }
    if (fault == KvFault::none) {
      reader.move_to(at);
      tokens.commit(count);
      draft.tokens_count = count;
    }
  }
  if (fault != KvFault::token_range || !options.wide_tokens) return fault;
  reader.move_to(start);
  static_cast<void>(reader.read_array(count));
  return read_wide_tokens(reader, count, pairs);
}

// EAGLE: (t0, t1), (t1, t2)... are the tokens t0, t1, t2...
KvFault KvEventDecoder::Impl::read_pairs(PackReader& reader, std::uint32_t count) {
  std::uint32_t* const out = tokens.room(std::size_t{count} + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t two = 0;
    if (const KvFault fault = reader.read_array(two); fault != KvFault::none) return fault;
    if (two != 2) return KvFault::bad_type;
    for (std::uint32_t k = 0; k < 2; ++k) {
      std::uint64_t bits = 0;
      bool negative = false;
      if (const KvFault fault = reader.read_integer(bits, negative); fault != KvFault::none) return fault;
      if (negative || bits > kMaxToken) return KvFault::token_range;
      const auto token = static_cast<std::uint32_t>(bits);
      if (k == 0 && i != 0 && out[i] != token) return KvFault::bad_type;  // they do not overlap
      out[i + k] = token;
    }
  }
  tokens.commit(std::size_t{count} + 1);
  draft.tokens_count = std::size_t{count} + 1;
  draft.event.eagle = true;
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::read_wide_tokens(PackReader& reader, std::uint32_t count, bool pairs) {
  draft.wide_begin = wide.size();
  std::uint64_t* const out = wide.room(std::size_t{count} + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t two = 1;
    if (pairs) {
      if (const KvFault fault = reader.read_array(two); fault != KvFault::none) return fault;
      if (two != 2) return KvFault::bad_type;
    }
    for (std::uint32_t k = 0; k < two; ++k) {
      std::uint64_t bits = 0;
      bool negative = false;
      if (const KvFault fault = reader.read_integer(bits, negative); fault != KvFault::none) return fault;
      if (negative) return KvFault::token_range;
      if (pairs && k == 0 && i != 0 && out[i] != bits) return KvFault::bad_type;
      out[i + k] = bits;
    }
  }
  draft.tokens_count = std::size_t{count} + (pairs ? 1 : 0);
  wide.commit(draft.tokens_count);
  draft.event.eagle = pairs;
  draft.event.wide_tokens = true;
  return KvFault::none;
}

// SGLang 0.5.18 and 0.5.19: where other arrays have the adapter's name, salted ones have a map.
KvFault KvEventDecoder::Impl::read_salted_tail(PackReader& reader) {
  std::uint32_t pairs = 0;
  if (const KvFault fault = reader.read_map(pairs); fault != KvFault::none) return fault;
  for (; pairs != 0; --pairs) {
    std::string_view key;
    std::string_view* out = nullptr;
    if (reader.peek() == PackKind::text) {
      if (const KvFault fault = reader.read_text(key); fault != KvFault::none) return fault;
      if (key == "cache_salt") out = &draft.event.salt;
      if (key == "session_id") out = &draft.event.session_id;
      if (key == "lora_name") out = &draft.event.lora_name;
    } else if (const KvFault fault = reader.skip(); fault != KvFault::none) {
      return fault;
    }
    if (reader.take_nil()) continue;
    const KvFault fault = out == nullptr ? reader.skip() : read_string(reader, *out);
    if (fault != KvFault::none) return fault;
  }
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::read_value(Field field, PackReader& reader) {
  KvEvent& e = draft.event;
  switch (field) {
    case Field::type: return read_string(reader, draft.type);
    case Field::block_hashes: return read_ids(reader);
    case Field::parent: {
      EngineHash parent{};
      bool as_bytes = false;
      if (const KvFault fault = read_hash(reader, parent, as_bytes); fault != KvFault::none) return fault;
      e.parent = parent;
      return KvFault::none;
    }
    case Field::token_ids: return read_tokens(reader);
    case Field::block_size: {
      bool negative = false;
      if (const KvFault fault = reader.read_integer(draft.block_size, negative); fault != KvFault::none) return fault;
      return negative || draft.block_size > 0xffff'ffff ? KvFault::bad_block_size : KvFault::none;
    }
    case Field::lora_id: return read_signed(reader, e.lora_id);
    case Field::medium: return read_string(reader, e.medium);
    case Field::lora_name:
      return reader.peek() == PackKind::map ? read_salted_tail(reader) : read_string(reader, e.lora_name);
    case Field::extra_keys: {
      const std::uint8_t* const start = reader.at();
      if (const KvFault fault = reader.read_array(draft.extra_count); fault != KvFault::none) return fault;
      for (std::uint32_t i = 0; i < draft.extra_count; ++i) {
        const PackKind kind = reader.peek();
        if (const KvFault fault = reader.skip(); fault != KvFault::none) return fault;
        if (kind != PackKind::array && kind != PackKind::nil) return KvFault::bad_type;
      }
      e.extra_keys = reader.since(start);
      return KvFault::none;
    }
    case Field::group_idx: {
      std::uint64_t bits = 0;
      bool negative = false;
      if (const KvFault fault = reader.read_integer(bits, negative); fault != KvFault::none) return fault;
      if (negative || bits > 0xffff'ffff) return KvFault::bad_type;
      e.group_idx = static_cast<std::uint32_t>(bits);
      return KvFault::none;
    }
    case Field::spec_kind: return read_string(reader, e.spec_kind);
    case Field::sliding_window: return read_signed(reader, e.sliding_window);
    case Field::locality: return read_string(reader, e.locality);
    case Field::ownership: return read_string(reader, e.ownership);
    case Field::session_id: return read_string(reader, e.session_id);
    case Field::cache_salt: return read_string(reader, e.salt);
    case Field::unknown: break;
  }
  return reader.skip();
}

void KvEventDecoder::Impl::forget(Field field) noexcept {
  KvEvent& e = draft.event;
  switch (field) {
    case Field::parent: e.parent.reset(); break;
    case Field::lora_id: e.lora_id.reset(); break;
    case Field::medium: e.medium = {}; break;
    case Field::lora_name: e.lora_name = {}; break;
    case Field::extra_keys: e.extra_keys = {}; break;
    case Field::group_idx: e.group_idx.reset(); break;
    case Field::spec_kind: e.spec_kind = {}; break;
    case Field::sliding_window: e.sliding_window.reset(); break;
    case Field::locality: e.locality = {}; break;
    case Field::ownership: e.ownership = {}; break;
    case Field::session_id: e.session_id = {}; break;
    case Field::cache_salt: e.salt = {}; break;
    default: break;  // must be there, or is written over
  }
}

// returns: structural faults only; others are noted with the field.
KvFault KvEventDecoder::Impl::read_field(Field field, PackReader& reader) {
  if (field == Field::unknown) return reader.skip();
  const std::uint8_t* const start = reader.at();
  const std::uint64_t offset = reader.offset();
  if (draft.has(field)) forget(field);  // a key that comes twice: the last counts
  draft.present &= ~bit(field);
  draft.faulty &= ~bit(field);
  if (reader.take_nil()) return KvFault::none;
  const KvFault fault = read_value(field, reader);
  if (fault == KvFault::none) {
    draft.present |= bit(field);
    return KvFault::none;
  }
  if (ingest::is_structural(fault)) return fault;
  draft.faulty |= bit(field);
  draft.faults[static_cast<std::size_t>(field)] = {fault, offset};
  reader.move_to(start);
  return reader.skip();
}

}  // namespace warmroute
