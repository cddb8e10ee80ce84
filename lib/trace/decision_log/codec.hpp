/// A decision log's bytes. Head: magic, version, a random number of this log, the router's sizes, a check. Then records, each its length
/// (LEB128), a check of 4 bytes (XXH3 under the log's number and the record's), and its content; numbers are LEB128, signed ones zigzag,
/// times differences to the call before, hashes 8 bytes little-endian.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "warmroute/trace/decision_log.hpp"

namespace warmroute::trace {

struct DecisionLogHead {
  std::uint64_t log_number = 0;
  RouterOptions options;
};

void append_head(const DecisionLogHead& head, std::string& out);
/// returns: how many bytes it has; 0: they are not all there. errors: malformed, unsupported.
Result<std::size_t> read_head(std::string_view bytes, DecisionLogHead& head);

/// The record's content, without length and check. `before`: the time of the call before.
void append_content(const DecisionRecord& record, Nanos before, std::string& out);
/// errors: malformed.
Status read_content(std::string_view content, Nanos before, DecisionRecord& record);

void append_framed(std::string_view content, std::uint64_t log_number, std::uint64_t record_number, std::string& out);

/// What stands at the start of `bytes`.
enum class Frame : std::uint8_t {
  whole = 0,
  cut = 1,      ///< the bytes end within it
  damaged = 2,  ///< a length that cannot be, or a wrong check
};
struct FrameView {
  Frame state = Frame::cut;
  std::uint64_t length = 0;  ///< of its content, where that is known
  std::size_t bytes = 0;     ///< of the whole frame, where that is known
  std::string_view content;
};
FrameView read_frame(std::string_view bytes, std::uint64_t log_number, std::uint64_t record_number) noexcept;

}  // namespace warmroute::trace
