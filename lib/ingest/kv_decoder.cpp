// The batch around the events, and the decoder's outside.
#include "ingest/kv_decoder.hpp"

#include <string>
#include <utility>

namespace warmroute {

using ingest::PackKind;
using ingest::PackReader;

namespace {

constexpr std::size_t kKeepBytes = std::size_t{16} << 20;  // of each scratch

Code code_of(KvFault fault) noexcept {
  switch (fault) {
    case KvFault::none: return Code::ok;
    case KvFault::depth: return Code::too_deep;
    case KvFault::too_large: return Code::too_large;
    case KvFault::bad_type:
    case KvFault::ext_type: return Code::wrong_type;
    case KvFault::missing_field: return Code::missing_field;
    case KvFault::seq_range: return Code::value_out_of_range;
    default: return Code::malformed;
  }
}

constexpr std::array<std::string_view, kKvFaultCount> kFaultNames = {
    "none",           "frame_count",    "seq_length",     "seq_range",
    "truncated",      "length_overrun", "trailing_bytes", "reserved_byte",
    "depth",          "too_large",      "bad_type",       "ext_type",
    "missing_field",  "unknown_event",  "token_range",    "token_count_mismatch",
    "bad_block_size", "self_parent",    "duplicate_hash"};

constexpr std::array<std::string_view, kKvFaultCount> kFaultTexts = {
    "nothing is wrong",
    "not as many frames as this socket brings, or no empty delimiter before them",
    "the sequence frame has not 8 bytes",
    "the sequence number of a replay's end comes with a payload",
    "the payload ends inside a value",
    "a count or length reaches beyond the payload",
    "bytes follow the batch",
    "byte 0xc1, which MessagePack does not use",
    "values are nested too deeply",
    "the payload is larger, or has more events, than the options allow",
    "a value is not of the type that belongs there",
    "a MessagePack extension where a value belongs",
    "the batch lacks its time or its events",
    "",
    "",
    "",
    "",
    "",
    ""};

Error error_of(KvFault fault, std::uint64_t offset) {
  const auto i = static_cast<std::size_t>(fault);
  std::string message(kFaultNames[i]);
  message += ": ";
  message += kFaultTexts[i];
  return {code_of(fault), std::move(message), offset};
}

KvFault read_rank(PackReader& reader, std::optional<std::uint32_t>& rank) noexcept {
  if (reader.take_nil()) return KvFault::none;
  std::uint64_t bits = 0;
  bool negative = false;
  const std::uint8_t* const start = reader.at();
  if (const KvFault fault = reader.read_integer(bits, negative); fault != KvFault::none) return fault;
  if (negative || bits > 0xffff'ffff) {
    reader.move_to(start);
    return KvFault::bad_type;
  }
  rank = static_cast<std::uint32_t>(bits);
  return KvFault::none;
}

}  // namespace

std::string_view kv_fault_name(KvFault fault) noexcept {
  const auto i = static_cast<std::size_t>(fault);
  return i < kFaultNames.size() ? kFaultNames[i] : "unknown";
}

Result<KvMessage> read_kv_frames(KvSocket socket, std::span<const std::string_view> frames, KvFault* fault) {
  KvMessage message;
  const auto fail = [&](KvFault why) -> Error {
    if (fault != nullptr) *fault = why;
    return error_of(why, kNoOffset);
  };
  if (fault != nullptr) *fault = KvFault::none;
  if (socket == KvSocket::dealer) {
    if (frames.empty() || !frames.front().empty()) return fail(KvFault::frame_count);
    frames = frames.subspan(1);
  }
  const bool topicless = socket != KvSocket::subscriber && frames.size() == 2;
  if (frames.size() != 3 && !topicless) return fail(KvFault::frame_count);
  if (!topicless) {
    message.topic = frames.front();
    message.has_topic = true;
    frames = frames.subspan(1);
  }
  if (frames[0].size() != 8) return fail(KvFault::seq_length);
  message.seq = PackReader::load_be64(reinterpret_cast<const std::uint8_t*>(frames[0].data()));
  message.payload = frames[1];
  if (message.seq == ~std::uint64_t{0}) {
    if (socket == KvSocket::subscriber || !message.payload.empty()) return fail(KvFault::seq_range);
    message.replay_end = true;
  }
  return message;
}

void KvEventDecoder::Impl::begin(const KvEventOptions& wanted, std::string_view payload) {
  options = wanted;
  last_fault = KvFault::none;
  // Memory that one huge payload made it take goes with the next one, since what was given out then lies in it.
  const std::size_t keep = payload.size() * 8 > kKeepBytes ? ~std::size_t{0} : kKeepBytes;
  events.reset(keep);
  places.reset(keep);
  ids.reset(keep);
  tokens.reset(keep);
  wide.reset(keep);
  blocks.reset(keep);
  objects.reset(keep);
  chain_table.reset(keep);
  sorted.reset(keep);
  pages.reset(keep);
  rejected.reset(keep);
  rejected_count = 0;
}

// Scratch does not move any more.
void KvEventDecoder::Impl::place_views() noexcept {
  for (std::size_t i = 0; i < events.size(); ++i) {
    KvEvent& e = events.data()[i];
    const ingest::Places& p = places.data()[i];
    if (p.ids_count != 0) e.ids = {ids.data() + p.ids, p.ids_count};
    if (p.tokens_count != 0) e.token_ids = {tokens.data() + p.tokens, p.tokens_count};
    if (p.blocks_count != 0) e.blocks = {blocks.data() + p.blocks, p.blocks_count};
  }
}

KvFault KvEventDecoder::Impl::read_events(PackReader& reader) {
  events.resize_down(0);
  places.resize_down(0);
  rejected.resize_down(0);
  rejected_count = 0;
  std::uint32_t count = 0;
  if (const KvFault bad = reader.read_array(count); bad != KvFault::none) return bad;
  if (count > options.max_events) return KvFault::too_large;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (const KvFault bad = read_event(reader, i); bad != KvFault::none) return bad;
  }
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::read_batch_array(PackReader& reader, KvBatch& batch) {
  std::uint32_t count = 0;
  if (const KvFault bad = reader.read_array(count); bad != KvFault::none) return bad;
  if (count < 2) return KvFault::missing_field;
  if (const KvFault bad = reader.read_number(batch.time_s); bad != KvFault::none) return bad;
  if (const KvFault bad = read_events(reader); bad != KvFault::none) return bad;
  for (std::uint32_t i = 2; i < count; ++i) {
    const KvFault bad = i == 2 ? read_rank(reader, batch.dp_rank) : reader.skip();
    if (bad != KvFault::none) return bad;
  }
  return KvFault::none;
}

KvFault KvEventDecoder::Impl::read_batch_map(PackReader& reader, KvBatch& batch) {
  std::uint32_t pairs = 0;
  if (const KvFault bad = reader.read_map(pairs); bad != KvFault::none) return bad;
  bool has_time = false, has_events = false;
  for (; pairs != 0; --pairs) {
    std::string_view key;
    KvFault bad = reader.peek() == PackKind::text ? reader.read_text(key) : reader.skip();
    if (bad != KvFault::none) return bad;
    if (key == "ts") {
      has_time = true;
      bad = reader.read_number(batch.time_s);
    } else if (key == "events") {
      has_events = true;
      bad = read_events(reader);
    } else if (key == "data_parallel_rank" || key == "attn_dp_rank") {
      bad = read_rank(reader, batch.dp_rank);
    } else {
      bad = reader.skip();
    }
    if (bad != KvFault::none) return bad;
  }
  return has_time && has_events ? KvFault::none : KvFault::missing_field;
}

KvFault KvEventDecoder::Impl::read_payload(PackReader& reader, KvBatch& batch) {
  const KvFault bad = reader.peek() == PackKind::map ? read_batch_map(reader, batch) : read_batch_array(reader, batch);
  if (bad != KvFault::none) return bad;
  return reader.done() ? KvFault::none : KvFault::trailing_bytes;
}

KvEventDecoder::KvEventDecoder() : impl_(std::make_unique<Impl>()) {}
KvEventDecoder::~KvEventDecoder() = default;
KvEventDecoder::KvEventDecoder(KvEventDecoder&&) noexcept = default;
KvEventDecoder& KvEventDecoder::operator=(KvEventDecoder&&) noexcept = default;

Result<KvBatch> KvEventDecoder::decode(std::string_view payload, const KvEventOptions& options) {
  Impl& self = *impl_;
  if (options.block_size == 0 || options.block_size > kMaxBlockTokens || options.max_bytes > 0xffff'ffff) {
    return Error{Code::invalid_argument, "block_size must be 1 to 512 tokens, max_bytes below 4 GiB", kNoOffset};
  }
  if (options.engine_block_size / options.block_size > kMaxEngineParts) {
    return Error{Code::invalid_argument, "engine_block_size must be at most 128 times block_size", kNoOffset};
  }
  self.begin(options, payload);
  ++self.counters.payloads;
  KvBatch batch;
  PackReader reader(payload);
  KvFault bad = payload.size() > options.max_bytes ? KvFault::too_large : self.read_payload(reader, batch);
  std::uint64_t offset = reader.offset();
  if (bad != KvFault::none && !ingest::is_structural(bad) && bad != KvFault::trailing_bytes) {
    // Bytes that are no MessagePack say more than a batch that is not as it should be.
    PackReader whole(payload);
    if (const KvFault structural = whole.skip(); structural != KvFault::none) {
      bad = structural;
      offset = 0;
    }
  }
  self.last_fault = bad;
  if (bad != KvFault::none) {
    ++self.counters.refused_payloads;
    return error_of(bad, offset);
  }
  self.place_views();
  batch.events = self.events.from(0);
  batch.rejected = self.rejected.from(0);
  batch.rejected_count = self.rejected_count;
  return batch;
}

KvFault KvEventDecoder::fault() const noexcept { return impl_->last_fault; }
const KvCounters& KvEventDecoder::counters() const noexcept { return impl_->counters; }

void KvEventDecoder::reset() noexcept {
  impl_->groups.fill(ingest::GroupKind::unseen);
  impl_->largest_block = 0;
  impl_->trail.clear();
  impl_->reblocker.clear();
}

}  // namespace warmroute
