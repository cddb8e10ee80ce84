// Whatever the bytes, a payload of an engine's events is refused with a fault and a place, or what is given out lies within it, has the
// shapes promised, and can be stored; hashing or not changes nothing else, and neither does what the decoder saw before but for salts and groups.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ingest/kv_sound.hpp"
#include "warmroute/ingest/kv_events.hpp"
#include "warmroute/prefix/index.hpp"

namespace {

using namespace warmroute;

void require(bool holds) {
  if (!holds) std::abort();
}

// The first byte: bits 0 and 1 the block sizes (alike, ours larger, the engine's larger), bit 2 wide token ids.
KvEventOptions options_of(std::uint8_t byte) {
  KvEventOptions options;
  options.block_size = (byte & 1) != 0 ? 4 : 16;
  if ((byte & 2) != 0) options.engine_block_size = (byte & 1) != 0 ? 16 : 2;
  options.wide_tokens = (byte & 4) != 0;
  return options;
}

void apply(const KvBatch& batch) {
  static PrefixIndex index({.max_replicas = 2, .max_bytes = std::size_t{4} << 20});
  const ReplicaId replica{0, 1};
  for (const KvEvent& e : batch.events) {
    if (e.use != KvUse::apply) continue;
    const StoredBlocks s = e.stored_blocks();
    if (e.type == KvEventType::stored) {
      const auto status = index.store_event(replica, s.tier, s.parent ? &*s.parent : nullptr, s.ids, s.blocks);
      const bool own = s.tier != Tier::shared;  // a store of all is no tier of one replica
      require(own ? status.ok() || status.code() == Code::not_found || status.code() == Code::capacity
                  : status.code() == Code::out_of_range || status.code() == Code::not_found);
    } else if (e.type == KvEventType::removed) {
      index.remove_event(replica, e.tier, e.ids);
    } else {
      index.clear(replica);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view payload(reinterpret_cast<const char*>(data) + 1, size - 1);
  KvEventOptions options = options_of(data[0]);
  static KvEventDecoder reused;
  const auto batch = reused.decode(payload, options);
  require(batch.ok() == (reused.fault() == KvFault::none));
  options.hash = false;
  KvEventDecoder fresh;
  if (options.engine_block_size != 0) reused.reset();  // what is joined depends on what came before
  const auto again = fresh.decode(payload, options);
  require(again.ok() == batch.ok() && fresh.fault() == reused.fault());
  if (!batch.ok()) {
    require(!batch.error().message.empty() && batch.error().offset <= payload.size());
    return 0;
  }
  require(test::is_sound(*again, payload, options));
  options.hash = true;
  require(test::is_sound(*batch, payload, options));
  require(again->events.size() == batch->events.size() && again->rejected_count == batch->rejected_count);
  for (const KvEvent& e : batch->events) require(options.engine_block_size != 0 || test::ids_agree(e));
  apply(*batch);
  return 0;
}
