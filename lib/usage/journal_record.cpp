// Encoding and decoding of journal records.
#include "usage/journal_record.hpp"

#include <dirent.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace warmroute::usage {
namespace {

constexpr char kJournalMagic[] = "WRUSAGEJ";
constexpr std::uint32_t kJournalVersion = 1;

std::uint32_t checksum(std::string_view a, std::string_view b = {}) {
  uLong crc = crc32(0, reinterpret_cast<const Bytef*>(a.data()), static_cast<uInt>(a.size()));
  if (!b.empty()) crc = crc32(crc, reinterpret_cast<const Bytef*>(b.data()), static_cast<uInt>(b.size()));
  return static_cast<std::uint32_t>(crc);
}

void put_fixed(char* to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to[i] = static_cast<char>(value >> (8 * i));
}
std::uint64_t get_fixed(const char* from, int bytes) {
  std::uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) v |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  return v;
}

// Writes into room that was made for the largest record of its text: asking a string for each byte's costs more than the
// bytes.
struct Writer {
  char* to;

  void byte(std::uint64_t v) { *to++ = static_cast<char>(v); }
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) byte(v | 0x80);
    byte(v);
  }
  void sign(std::int64_t v) { varint(static_cast<std::uint64_t>(v) << 1 ^ static_cast<std::uint64_t>(v >> 63)); }
  void text(std::string_view text) {
    varint(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    to += text.size();
  }
};

// Reads what is left; once anything is wrong, everything is 0 and `ok` false.
struct Bytes {
  std::string_view left;
  bool ok = true;

  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left.empty()) break;
      const auto byte = static_cast<unsigned char>(left.front());
      left.remove_prefix(1);
      v |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
    ok = false;
    left = {};
    return 0;
  }
  std::int64_t sign() {
    const std::uint64_t v = varint();
    return static_cast<std::int64_t>(v >> 1 ^ (~(v & 1) + 1));
  }
  std::string_view text() {
    const std::uint64_t n = varint();
    if (n > left.size()) {
      ok = false;
      left = {};
      return {};
    }
    const std::string_view t = left.substr(0, n);
    left.remove_prefix(n);
    return t;
  }
};

constexpr std::string_view UsageEvent::*kTexts[] = {&UsageEvent::operation_id,   &UsageEvent::key_id,
                                                    &UsageEvent::team_id,        &UsageEvent::provider,
                                                    &UsageEvent::operation,      &UsageEvent::request_model,
                                                    &UsageEvent::response_model, &UsageEvent::response_id,
                                                    &UsageEvent::replica_id,     &UsageEvent::class_id,
                                                    &UsageEvent::finish_reason,  &UsageEvent::service_tier,
                                                    &UsageEvent::price_key,      &UsageEvent::price_table_version};

// Numbers of a record, each of 10 bytes at most: its own, the sizes of its texts, counts, the bill's.
constexpr std::size_t kMostNumbers = 16 + std::size(kTexts) + kUsageFieldCount + 4 * kPriceMeterCount;

}  // namespace

const std::array<UsageField, kUsageFieldCount> kUsageFields{{
    {"gen_ai.usage.input_tokens", &Usage::input_tokens},
    {"gen_ai.usage.cache_read.input_tokens", &Usage::cached_input_tokens},
    {"gen_ai.usage.cache_creation.input_tokens", &Usage::cache_write_input_tokens},
    {"gen_ai.usage.output_tokens", &Usage::output_tokens},
    {"gen_ai.usage.reasoning.output_tokens", &Usage::reasoning_output_tokens},
    {"cache_write_5m_tokens", &Usage::cache_write_5m_tokens},
    {"cache_write_30m_tokens", &Usage::cache_write_30m_tokens},
    {"cache_write_1h_tokens", &Usage::cache_write_1h_tokens},
    {"cache_write_12h_tokens", &Usage::cache_write_12h_tokens},
    {"gen_ai.usage.text.input_tokens", &Usage::text_input_tokens},
    {"gen_ai.usage.audio.input_tokens", &Usage::audio_input_tokens},
    {"gen_ai.usage.image.input_tokens", &Usage::image_input_tokens},
    {"gen_ai.usage.video.input_tokens", &Usage::video_input_tokens},
    {"cached_text_input_tokens", &Usage::cached_text_input_tokens},
    {"cached_audio_input_tokens", &Usage::cached_audio_input_tokens},
    {"cached_image_input_tokens", &Usage::cached_image_input_tokens},
    {"cached_video_input_tokens", &Usage::cached_video_input_tokens},
    {"gen_ai.usage.text.output_tokens", &Usage::text_output_tokens},
    {"gen_ai.usage.audio.output_tokens", &Usage::audio_output_tokens},
    {"image_output_tokens", &Usage::image_output_tokens},
    {"tool_use_input_tokens", &Usage::tool_use_input_tokens},
    {"accepted_prediction_tokens", &Usage::accepted_prediction_tokens},
    {"rejected_prediction_tokens", &Usage::rejected_prediction_tokens},
    {"processed_input_tokens", &Usage::processed_input_tokens},
    {"processed_output_tokens", &Usage::processed_output_tokens},
    {"unattributed_tokens", &Usage::unattributed_tokens},
    {"context_input_tokens", &Usage::context_input_tokens},
    {"web_search_requests", &Usage::web_search_requests},
    {"web_fetch_requests", &Usage::web_fetch_requests},
}};  // reported_cost_picos is the last bit: an amount, not a count

std::string segment_path(const std::string& directory, std::uint64_t segment) {
  char name[40];
  std::snprintf(name, sizeof name, "/usage-%012llu.wrj", static_cast<unsigned long long>(segment));
  return directory + name;
}

Result<std::vector<std::uint64_t>> list_segments(const std::string& directory) {
  DIR* const dir = opendir(directory.c_str());
  if (dir == nullptr) return Error{Code::io, "journal: cannot read " + directory, kNoOffset};
  std::vector<std::uint64_t> found;
  while (const dirent* const entry = readdir(dir)) {
    const std::string_view name = entry->d_name;
    constexpr std::string_view kPrefix = "usage-";
    if (name.substr(0, kPrefix.size()) != kPrefix) continue;
    std::uint64_t n = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), n);
    if (n != 0 && segment_path("", n).substr(1) == name) found.push_back(n);
  }
  closedir(dir);
  std::sort(found.begin(), found.end());
  return found;
}

std::string segment_header(const JournalId& id, std::uint64_t segment, std::uint64_t next_number) {
  std::string h(kSegmentHeader, '\0');
  std::memcpy(h.data(), kJournalMagic, 8);
  put_fixed(h.data() + 8, kJournalVersion, 4);
  std::memcpy(h.data() + 16, id.data(), id.size());
  put_fixed(h.data() + 32, segment, 8);
  put_fixed(h.data() + 40, next_number, 8);
  put_fixed(h.data() + 12, checksum(std::string_view{h}.substr(16)), 4);
  return h;
}

bool read_segment_header(std::string_view bytes, SegmentHead& head) {
  if (bytes.size() < kSegmentHeader || bytes.substr(0, 8) != kJournalMagic) return false;
  if (get_fixed(bytes.data() + 8, 4) != kJournalVersion) return false;
  if (get_fixed(bytes.data() + 12, 4) != checksum(bytes.substr(16, kSegmentHeader - 16))) return false;
  std::memcpy(head.id.data(), bytes.data() + 16, head.id.size());
  head.segment = get_fixed(bytes.data() + 32, 8);
  head.next_number = get_fixed(bytes.data() + 40, 8);
  return true;
}

namespace {
void finish_record(std::string& out, std::size_t start) {
  char* const head = out.data() + start;
  const std::size_t size = out.size() - start - kRecordHeader;
  put_fixed(head, size, 4);
  put_fixed(head + 4, checksum({head, 4}, {head + kRecordHeader, size}), 4);
}
}  // namespace

bool append_record(std::string& out, JournalKind kind, std::uint64_t number, const UsageEvent& e) {
  std::size_t text = 0;
  for (const auto field : kTexts) text += (e.*field).size();
  if (text > kMaxEventText || e.bill.size() > kPriceMeterCount) return false;
  const std::size_t start = out.size();
  out.resize(start + kRecordHeader + kMostNumbers * 10 + text);
  Writer w{out.data() + start + kRecordHeader};
  w.byte(static_cast<std::uint8_t>(kind));
  w.varint(number);
  w.varint(e.attempt);
  w.sign(e.start_time.value);
  w.sign(e.end_time.value);
  w.varint((e.complete ? 1u : 0u) | (e.error ? 2u : 0u) | (e.cost_picos ? 4u : 0u));
  w.varint(static_cast<std::uint64_t>(e.source));
  w.varint(e.anomalies.bits);
  w.varint(static_cast<std::uint64_t>(e.cost_source));
  if (e.cost_picos) w.sign(*e.cost_picos);
  for (const auto field : kTexts) w.text(e.*field);
  std::uint64_t known = e.usage.reported_cost_picos ? std::uint64_t{1} << kUsageFieldCount : 0;
  for (std::size_t i = 0; i < kUsageFieldCount; ++i)
    known |= static_cast<std::uint64_t>((e.usage.*kUsageFields[i].count).has_value()) << i;
  w.varint(known);
  for (const UsageField& field : kUsageFields) {
    if (e.usage.*field.count) w.sign(*(e.usage.*field.count));
  }
  if (e.usage.reported_cost_picos) w.sign(*e.usage.reported_cost_picos);
  w.varint(e.bill.size());
  for (const CostLine& line : e.bill) {
    w.varint(static_cast<std::uint64_t>(line.meter));
    w.sign(line.quantity);
    w.sign(line.rate_femtos);
    w.sign(line.cost_picos);
  }
  out.resize(static_cast<std::size_t>(w.to - out.data()));
  finish_record(out, start);
  return true;
}

void append_record_as(std::string& out, JournalKind kind, std::string_view payload) {
  const std::size_t start = out.size();
  out.append(kRecordHeader, '\0').append(payload);
  out[start + kRecordHeader] = static_cast<char>(kind);
  finish_record(out, start);
}

std::string_view whole_payload(std::string_view bytes) {
  if (bytes.size() < kRecordHeader) return {};
  const std::uint64_t size = get_fixed(bytes.data(), 4);
  if (size == 0 || size > kMaxPayload || bytes.size() - kRecordHeader < size) return {};
  const std::string_view payload = bytes.substr(kRecordHeader, size);
  return get_fixed(bytes.data() + 4, 4) == checksum(bytes.substr(0, 4), payload) ? payload : std::string_view{};
}

bool read_head(std::string_view payload, JournalKind& kind, std::uint64_t& number) {
  if (payload.empty()) return false;
  kind = static_cast<JournalKind>(payload.front());
  Bytes in{payload.substr(1)};
  number = in.varint();
  return in.ok;
}

bool read_payload(std::string_view payload, JournalRecord& record, std::array<CostLine, kPriceMeterCount>& bill) {
  if (!read_head(payload, record.kind, record.number)) return false;
  Bytes in{payload.substr(1)};
  in.varint();
  UsageEvent e;
  e.attempt = static_cast<std::uint32_t>(in.varint());
  e.start_time = WallNanos{in.sign()};
  e.end_time = WallNanos{in.sign()};
  const std::uint64_t flags = in.varint();
  e.complete = (flags & 1) != 0;
  e.error = (flags & 2) != 0;
  e.source = static_cast<UsageSource>(in.varint());
  e.anomalies.bits = static_cast<std::uint32_t>(in.varint());
  e.cost_source = static_cast<CostSource>(in.varint());
  if ((flags & 4) != 0) e.cost_picos = in.sign();
  for (const auto field : kTexts) e.*field = in.text();
  const std::uint64_t known = in.varint();
  for (std::size_t i = 0; i < kUsageFieldCount; ++i) {
    if ((known >> i & 1) != 0) e.usage.*kUsageFields[i].count = in.sign();
  }
  if ((known >> kUsageFieldCount & 1) != 0) e.usage.reported_cost_picos = in.sign();
  const std::uint64_t lines = in.varint();
  if (lines > bill.size()) return false;
  for (std::size_t i = 0; i < lines; ++i) {
    bill[i].meter = static_cast<PriceMeter>(in.varint());
    bill[i].quantity = in.sign();
    bill[i].rate_femtos = in.sign();
    bill[i].cost_picos = in.sign();
  }
  e.bill = std::span{bill}.first(lines);
  record.event = e;
  return in.ok;
}

std::string event_id(const JournalId& id, std::uint64_t number) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t b : id) {
    out += kHex[b >> 4];
    out += kHex[b & 15];
  }
  return out + "-" + std::to_string(number);
}

}  // namespace warmroute::usage
