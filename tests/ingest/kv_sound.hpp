// What must hold of every decoded batch, whatever the bytes were; for tests and the fuzzer.
#pragma once

#include <string_view>

#include "kv_pack.hpp"
#include "warmroute/ingest/kv_events.hpp"

namespace warmroute::test {

/// What holds of every batch, whatever the bytes were.
inline bool is_sound(const KvBatch& batch, std::string_view payload, const KvEventOptions& options) {
  const auto inside = [&payload](std::string_view view) {
    return view.empty() ||
           (view.data() >= payload.data() && view.data() + view.size() <= payload.data() + payload.size());
  };
  std::size_t ids = 0, tokens = 0;
  for (const KvEvent& e : batch.events) {
    for (const std::string_view view : {e.adapter, e.cache_salt, e.medium, e.lora_name, e.salt, e.session_id,
                                        e.locality, e.ownership, e.spec_kind, e.extra_keys, e.wire}) {
      if (!inside(view)) return false;
    }
    const bool hashed = e.use == KvUse::apply && e.type == KvEventType::stored && options.hash;
    if (e.wire.empty() || (hashed ? e.blocks.size() != e.ids.size() : !e.blocks.empty())) return false;
    if (e.type == KvEventType::cleared && (!e.ids.empty() || e.use != KvUse::apply)) return false;
    if (e.use == KvUse::apply && e.type != KvEventType::cleared && e.ids.empty()) return false;
    if (!e.token_ids.empty() && options.engine_block_size == 0 &&
        e.token_ids.size() != e.ids.size() * e.block_size + (e.eagle ? 1 : 0)) {
      return false;
    }
    ids += e.ids.size();
    tokens += e.token_ids.size();
  }
  for (const KvRejected& r : batch.rejected) {
    if (r.fault == KvFault::none || r.offset >= payload.size()) return false;
  }
  return tokens <= payload.size() && (options.engine_block_size != 0 || ids <= payload.size()) &&
         batch.rejected_count >= batch.rejected.size();
}

/// The same ids, read by the second reader.
inline bool ids_agree(const KvEvent& e) {
  std::string_view view = e.wire;
  const Unpacked wire = unpack(view);
  if (e.type == KvEventType::cleared) return view.empty();
  const Unpacked* ids = wire.field("block_hashes", 1);
  if (!view.empty() || ids == nullptr || ids->kind != Unpacked::list || ids->items.size() != e.ids.size()) return false;
  for (std::size_t i = 0; i < e.ids.size(); ++i) {
    const Unpacked& id = ids->items[i];
    std::uint64_t bits = id.bits;
    if (id.kind == Unpacked::bytes) {
      bits = 0;
      for (const char c : id.s) bits = bits << 8 | static_cast<unsigned char>(c);
    }
    if (bits != static_cast<std::uint64_t>(e.ids[i])) return false;
  }
  return true;
}

}  // namespace warmroute::test
