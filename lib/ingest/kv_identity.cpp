// What separates an event's blocks (adapter, salt, images), and their hashes.
#include <algorithm>
#include <array>
#include <bit>

#include "ingest/kv_decoder.hpp"

namespace warmroute {

using ingest::PackKind;
using ingest::PackReader;

namespace {

// Seeds of what is no block: far from the seeds of HashSpace, which are of adapter, salt and tenant.
constexpr std::uint64_t kObjectSeed = 0;
constexpr std::uint64_t kOpaqueSeed = 16;

struct ExtraItem {
  enum Kind : std::uint8_t { adapter, salt, object } kind = object;
  std::string_view text;
  std::uint64_t hash = 0;  // of an object
};

std::uint64_t xxh3(std::string_view bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

bool is_digest(std::string_view text) noexcept {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

// An image's identifier as 64 bits: of a hex digest its first 16 digits, as Dynamo has it; names that users give are hashed.
std::uint64_t object_hash(std::string_view id) noexcept {
  if (!is_digest(id)) return xxh3(id, kObjectSeed);
  std::uint64_t value = 0;
  for (const char c : id.substr(0, 16)) {
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

// Lists: ("lora", name, path), ("mm", id, offset), ("cache_salt", salt), ("prompt_embeds", digest) since vLLM 0.31; (id, offset) before.
// The path is not in any request; the offset says where in the block the image lies, which its tokens say as well.
bool read_list_item(PackReader reader, ExtraItem& item) noexcept {
  std::uint32_t count = 0;
  std::string_view tag, first;
  if (reader.read_array(count) != KvFault::none || count < 2 || reader.read_text(tag) != KvFault::none) return false;
  const PackKind second = reader.peek();
  if (count == 2 && second == PackKind::integer) {
    item = {ExtraItem::object, tag, object_hash(tag)};
    return true;
  }
  if (second != PackKind::text || reader.read_text(first) != KvFault::none) return false;
  if (count == 2 && tag == "cache_salt") {
    item = {ExtraItem::salt, first, 0};
  } else if (count == 3 && tag == "lora") {
    item = {ExtraItem::adapter, first, 0};
  } else if (count == 3 && tag == "mm") {
    item = {ExtraItem::object, first, object_hash(first)};
  } else {
    return false;
  }
  return true;
}

// One entry of one block. Bare strings (untagged, up to vLLM 0.30) say by their place what they are: the adapter first, then image
// identifiers up to 0.18, and the salt last, at the prompt's first block only; it may be spelled as the adapter is. A name of an image that is taken for a salt still separates.
struct ItemPlace {
  std::string_view lora_name;
  bool salt_here;  // in the prompt's first block
  bool first, last;
};
ExtraItem read_item(PackReader& reader, const ItemPlace& place) noexcept {
  const std::uint8_t* const start = reader.at();
  ExtraItem item;
  if (std::string_view text; reader.read_text(text) == KvFault::none) {
    if (place.first && !text.empty() && text == place.lora_name) return {ExtraItem::adapter, text, 0};
    if (place.salt_here && place.last && !is_digest(text)) return {ExtraItem::salt, text, 0};
    return {ExtraItem::object, text, object_hash(text)};
  }
  const bool known = read_list_item(reader, item);
  static_cast<void>(reader.skip());  // sound: the field was walked when it was read
  if (!known) item = {ExtraItem::object, {}, xxh3(reader.since(start), kOpaqueSeed)};  // it separates, whatever it is
  return item;
}

std::uint64_t part_name(std::uint64_t id, std::uint64_t part) noexcept {  // splitmix64
  std::uint64_t x = id + (part + 1) * 0x9E37'79B9'7F4A'7C15u;
  x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9u;
  x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBu;
  return x ^ (x >> 31);
}

}  // namespace

void KvEventDecoder::Impl::find_identity() {
  KvEvent& e = draft.event;
  e.adapter = e.lora_name;
  e.cache_salt = e.salt;
  std::uint32_t entries = 0, items = 0;
  PackReader reader(e.extra_keys);
  if (!e.extra_keys.empty() && reader.read_array(entries) == KvFault::none && entries != 0 &&
      reader.read_array(items) == KvFault::none) {
    for (std::uint32_t i = 0; i < items; ++i) {
      const ExtraItem item = read_item(reader, {e.lora_name, e.at_root(), i == 0, i + 1 == items});
      if (item.kind == ExtraItem::salt && e.cache_salt.empty()) e.cache_salt = item.text;
      if (item.kind == ExtraItem::adapter && e.adapter.empty()) e.adapter = item.text;
    }
  }
  draft.seed = block_seed({options.hash_seed, e.adapter, e.cache_salt, options.isolation_key, false});
  const std::span<const EngineHash> own = ids.from(draft.ids_begin).first(draft.ids_count);
  if (!e.cache_salt.empty()) {
    if (e.salt.empty()) trail.put(own, xxh3(e.cache_salt, 1));  // what block_seed adds
  } else if (!trail.empty() && !e.at_root()) {
    const std::uint64_t inherited = trail.find(*e.parent);
    draft.seed += inherited;
    trail.put(own, inherited);
  }
}

// The event's use is known: its hashes, and names where the engine's blocks are cut or joined.
void KvEventDecoder::Impl::finish_blocks() {
  KvEvent& e = draft.event;
  if (e.type == KvEventType::removed && !trail.empty() && e.tier == Tier::device) {
    trail.erase(ids.from(draft.ids_begin).first(draft.ids_count));
  }
  if (e.type == KvEventType::cleared || (e.use != KvUse::apply && e.use != KvUse::placeholder)) return;
  draft.blocks_begin = blocks.size();
  const bool hashed = e.type == KvEventType::stored && e.use == KvUse::apply;
  const std::uint32_t parts = this->parts();
  if (joins()) {
    hashed ? join_blocks() : keep_borders();
  } else if (hashed && options.hash) {
    hash_blocks(parts);
  }
  if (parts > 1) name_parts(parts);
  if (e.use != KvUse::apply) return;
  (e.type == KvEventType::stored ? counters.blocks_stored : counters.blocks_removed) += draft.ids_count;
}

// What the next entry of extra_keys adds to its block, as one number; 0: nothing.
std::uint64_t KvEventDecoder::Impl::objects_of(PackReader& extra_keys, bool first) {
  std::uint32_t items = 0;
  if (extra_keys.read_array(items) != KvFault::none) {
    static_cast<void>(extra_keys.skip());  // nil
    return 0;
  }
  objects.resize_down(0);
  for (std::uint32_t i = 0; i < items; ++i) {
    const ExtraItem item =
        read_item(extra_keys, {draft.event.lora_name, first && draft.event.at_root(), i == 0, i + 1 == items});
    if (item.kind == ExtraItem::object) objects.push(item.hash);
  }
  if (objects.size() <= 1) return objects.size() == 0 ? 0 : *objects.data();
  std::sort(objects.data(), objects.data() + objects.size());
  return xxh3({reinterpret_cast<const char*>(objects.data()), objects.size() * 8}, kOpaqueSeed);
}

// The last part keeps the engine's name, so that children find their parent; the others' names follow from it, so that removals do.
void KvEventDecoder::Impl::name_parts(std::uint32_t parts) {
  const std::size_t count = draft.ids_count;
  EngineHash* const out = ids.room(count * parts);
  const EngineHash* const in = ids.data() + draft.ids_begin;
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<std::uint64_t>(in[i]);
    for (std::uint32_t part = 0; part + 1 < parts; ++part) out[i * parts + part] = EngineHash{part_name(id, part)};
    out[i * parts + parts - 1] = in[i];
  }
  draft.ids_begin = ids.size();
  draft.ids_count = count * parts;
  ids.commit(draft.ids_count);
}

void KvEventDecoder::Impl::hash_blocks(std::uint32_t parts) {
  const KvEvent& e = draft.event;
  draft.blocks_count = draft.ids_count * parts;
  const std::span<BlockHash> out(blocks.room(draft.blocks_count), draft.blocks_count);
  blocks.commit(draft.blocks_count);
  if (e.wide_tokens) {
    hash_wide_blocks(out);
  } else {
    const std::span<const std::uint32_t> run(tokens.data() + draft.tokens_begin, draft.tokens_count);
    if (e.eagle) {
      hash_eagle_blocks(run, options.block_size, draft.seed, out);
    } else {
      hash_token_blocks(run, options.block_size, draft.seed, out);
    }
    if (draft.extra_count != 0) hash_extra_blocks(run, parts, out);
  }
}

// Blocks with images and the like, once more.
void KvEventDecoder::Impl::hash_extra_blocks(std::span<const std::uint32_t> run, std::uint32_t parts,
                                             std::span<BlockHash> out) {
  const KvEvent& e = draft.event;
  PackReader reader(e.extra_keys);
  std::uint32_t entries = 0;
  static_cast<void>(reader.read_array(entries));
  const std::size_t size = options.block_size;
  for (std::size_t i = 0; i < entries && !reader.done(); ++i) {
    std::uint32_t items = 0;
    if (reader.read_array(items) != KvFault::none) {
      static_cast<void>(reader.skip());  // nil
      continue;
    }
    objects.resize_down(0);
    for (std::uint32_t k = 0; k < items; ++k) {
      const ExtraItem item = read_item(reader, {e.lora_name, i == 0 && e.at_root(), k == 0, k + 1 == items});
      if (item.kind == ExtraItem::object) objects.push(item.hash);
    }
    if (objects.size() == 0) continue;
    const std::span<const std::uint64_t> here = objects.from(0);
    std::sort(objects.data(), objects.data() + objects.size());
    for (std::size_t b = i * parts; b < (i + 1) * parts; ++b) {
      hash_multimodal_blocks(run.subspan(b * size, size + (e.eagle ? 1 : 0)), options.block_size, draft.seed,
                             {&here, 1}, e.eagle, out.subspan(b, 1));
    }
  }
}

// A block with ids of more than 32 bits is hashed over 0xff and its ids as 64-bit words, little-endian; so it meets no block of others.
void KvEventDecoder::Impl::hash_wide_blocks(std::span<BlockHash> out) {
  const bool eagle = draft.event.eagle;
  const std::size_t size = options.block_size, window = size + (eagle ? 1 : 0);
  const std::uint64_t* const run = wide.data() + draft.wide_begin;
  std::array<std::uint32_t, kMaxBlockTokens + 1> narrow;
  std::array<unsigned char, 1 + 8 * (kMaxBlockTokens + 1)> bytes;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t* const block = run + i * size;
    if (std::all_of(block, block + window, [](std::uint64_t t) { return t <= 0xffff'ffff; })) {
      std::transform(block, block + window, narrow.begin(),
                     [](std::uint64_t t) { return static_cast<std::uint32_t>(t); });
      const std::span<const std::uint32_t> those(narrow.data(), window);
      eagle ? hash_eagle_blocks(those, options.block_size, draft.seed, out.subspan(i, 1))
            : hash_token_blocks(those, options.block_size, draft.seed, out.subspan(i, 1));
      continue;
    }
    bytes[0] = 0xff;
    for (std::size_t t = 0; t < window; ++t) {
      for (unsigned b = 0; b < 8; ++b) bytes[1 + 8 * t + b] = static_cast<unsigned char>(block[t] >> (8 * b));
    }
    out[i] = BlockHash{XXH3_64bits_withSeed(bytes.data(), 1 + 8 * window, draft.seed)};
  }
}

}  // namespace warmroute
