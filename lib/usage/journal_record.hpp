// The bytes of a journal. Private to lib.
//   segment: 8 bytes magic, u32 version, u32 CRC-32 of the rest, 16 bytes journal id, u64 segment number (from 1),
//            u64 the next event's number
//   record:  u32 length of the payload, u32 CRC-32 of length and payload, payload
//   payload: u8 kind, varint event number, fields; integers little-endian, signed varints zigzag
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/usage/journal.hpp"

namespace warmroute::usage {

inline constexpr std::size_t kSegmentHeader = 48;
inline constexpr std::size_t kRecordHeader = 8;
inline constexpr std::size_t kMaxPayload = 80'000;
inline constexpr std::size_t kMaxEventText = 65'536;
using JournalId = std::array<std::uint8_t, 16>;

// A count of Usage with its name in exports, in the order of their bits in a record; only appended.
struct UsageField {
  std::string_view name;
  UsageCount Usage::*count;
};
inline constexpr std::size_t kUsageFieldCount = 29;
extern const std::array<UsageField, kUsageFieldCount> kUsageFields;

std::string segment_path(const std::string& directory, std::uint64_t segment);
std::string segment_header(const JournalId& id, std::uint64_t segment, std::uint64_t next_number);
// returns: the numbers of the segments in a directory, rising. errors: io.
Result<std::vector<std::uint64_t>> list_segments(const std::string& directory);
struct SegmentHead {
  JournalId id{};
  std::uint64_t segment = 0;
  std::uint64_t next_number = 1;
};
bool read_segment_header(std::string_view bytes, SegmentHead& head);

// Appends a whole record. returns: false: too much text.
bool append_record(std::string& out, JournalKind kind, std::uint64_t number, const UsageEvent& event);
// A record once more, of another kind.
void append_record_as(std::string& out, JournalKind kind, std::string_view payload);
// The payload at the beginning of `bytes`; empty: torn, damaged, or not all there.
std::string_view whole_payload(std::string_view bytes);
bool read_head(std::string_view payload, JournalKind& kind, std::uint64_t& number);
// `bill`: storage of what event.bill points at. Views point into the payload.
bool read_payload(std::string_view payload, JournalRecord& record, std::array<CostLine, kPriceMeterCount>& bill);
std::string event_id(const JournalId& id, std::uint64_t number);

}  // namespace warmroute::usage
