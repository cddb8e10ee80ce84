// Mooncake's trace form: one JSON object a line, times in milliseconds, one id per 512-token block.
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "simdjson.h"
#include "warmroute/detail/xxh3.hpp"
#include "warmroute/trace/trace.hpp"

namespace warmroute::trace {
namespace {

namespace dom = simdjson::dom;

constexpr double kMaxTimestampMs = 1e15;  // some 31,000 years: beyond it a value is a broken record, not a time

Error field_error(Code code, std::string_view field, const char* what) {
  return {code, "member \"" + std::string(field) + "\" " + what, kNoOffset};
}

Result<std::int64_t> read_count(std::string_view field, dom::element value, const TraceLimits& limits) {
  std::int64_t count = 0;
  if (const auto error = value.get(count); error != simdjson::SUCCESS) {
    if (!value.is_number()) return field_error(Code::wrong_type, field, "is not a number");
    double real = 0;
    if (value.get(real) != simdjson::SUCCESS || !(std::fabs(real) < 9e15) || real != std::floor(real)) {
      return field_error(Code::value_out_of_range, field, "is not a count of tokens");
    }
    count = static_cast<std::int64_t>(real);
  }
  if (count < 0 || count > limits.max_tokens) return field_error(Code::value_out_of_range, field, "is out of range");
  return count;
}

Result<std::int64_t> read_timestamp_us(std::string_view field, dom::element value) {
  double ms = 0;
  if (value.get(ms) != simdjson::SUCCESS) return field_error(Code::wrong_type, field, "is not a number");
  if (!(ms >= 0 && ms <= kMaxTimestampMs)) return field_error(Code::value_out_of_range, field, "is out of range");
  return static_cast<std::int64_t>(std::llround(ms * 1000));
}

Status read_blocks(std::string_view field, dom::element value, std::vector<std::uint64_t>& blocks) {
  dom::array ids;
  if (value.get(ids) != simdjson::SUCCESS) return field_error(Code::wrong_type, field, "is not a list");
  blocks.clear();
  blocks.reserve(ids.size());
  for (const dom::element element : ids) {
    std::uint64_t id = 0;
    if (element.get(id) != simdjson::SUCCESS)
      return field_error(Code::wrong_type, field, "holds something that is no block id");
    blocks.push_back(id);
  }
  return {};
}

// returns: a hash that is never 0, for a string or an integer.
Result<std::uint64_t> read_session(std::string_view field, dom::element value) {
  std::string_view text;
  std::uint64_t number = 0;
  if (value.get(text) == simdjson::SUCCESS) return XXH3_64bits(text.data(), text.size()) | 1;
  if (value.get(number) == simdjson::SUCCESS) return XXH3_64bits(&number, sizeof number) | 1;
  return field_error(Code::wrong_type, field, "is neither text nor a number");
}

struct Seen {
  bool timestamp = false;
  bool input = false;
  bool output = false;
};

Status read_member(std::string_view key, dom::element value, const TraceLimits& limits, TraceRecord& record,
                   Seen& seen) {
  if (value.is_null()) return {};
  if (key == "timestamp") {
    auto arrival = read_timestamp_us(key, value);
    if (!arrival) return arrival.error();
    record.arrival_us = *arrival;
    seen.timestamp = true;
  } else if (key == "input_length" || key == "output_length") {
    auto count = read_count(key, value, limits);
    if (!count) return count.error();
    const bool is_input = key == "input_length";
    (is_input ? record.input_tokens : record.output_tokens) = *count;
    (is_input ? seen.input : seen.output) = true;
  } else if (key == "hash_ids") {
    return read_blocks(key, value, record.blocks);
  } else if (key == "session_id") {
    auto session = read_session(key, value);
    if (!session) return session.error();
    record.session = *session;
  }
  return {};
}

Result<TraceRecord> parse_line(dom::parser& parser, std::string_view line, const TraceLimits& limits) {
  dom::element document;
  if (const auto error = parser.parse(line.data(), line.size(), true).get(document); error != simdjson::SUCCESS) {
    return Error{Code::invalid_json, simdjson::error_message(error), kNoOffset};
  }
  dom::object object;
  if (document.get(object) != simdjson::SUCCESS)
    return Error{Code::not_an_object, "the line is not a JSON object", kNoOffset};

  TraceRecord record;
  Seen seen;
  for (const dom::key_value_pair member : object) {
    if (auto status = read_member(member.key, member.value, limits, record, seen); !status) return status.error();
  }
  if (!seen.timestamp) return field_error(Code::missing_field, "timestamp", "is missing");
  if (!seen.input) return field_error(Code::missing_field, "input_length", "is missing");
  if (!seen.output) return field_error(Code::missing_field, "output_length", "is missing");
  const std::int64_t blocks = (record.input_tokens + kMooncakeBlockTokens - 1) / kMooncakeBlockTokens;
  if (static_cast<std::int64_t>(record.blocks.size()) > blocks) {
    return field_error(Code::malformed, "hash_ids", "has more ids than the prompt has blocks of 512 tokens");
  }
  return record;
}

}  // namespace

Result<TraceRecord> parse_mooncake_line(std::string_view line, const TraceLimits& limits) {
  if (line.size() > limits.max_line_bytes) return Error{Code::too_large, "the line is longer than allowed", kNoOffset};
  dom::parser parser;
  return parse_line(parser, line, limits);
}

struct TraceReader::State {
  State(gzFile f, const TraceLimits& l) : file(f), limits(l) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { gzclose(file); }

  // returns: whether there is another line in `line` (without its end).
  Result<bool> read_line();
  Result<bool> fill();

  gzFile file;
  TraceLimits limits;
  dom::parser parser;
  std::array<char, 1 << 16> buffer{};
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string line;
  std::uint64_t line_number = 0;
  std::uint64_t line_offset = 0;  // where `line` starts
  std::uint64_t offset = 0;       // of the next unread byte
  bool broken = false;
};

// returns: whether the buffer holds bytes.
Result<bool> TraceReader::State::fill() {
  const int got = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()));
  int code = Z_OK;
  const char* reason = gzerror(file, &code);
  if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END)) {  // a cut stream ends with Z_BUF_ERROR
    broken = true;
    const std::string what = code == Z_ERRNO ? std::strerror(errno) : reason;
    return Error{Code::io, "line " + std::to_string(line_number) + ": cannot read on: " + what, offset};
  }
  begin = 0;
  end = static_cast<std::size_t>(got);
  return got > 0;
}

Result<bool> TraceReader::State::read_line() {
  line.clear();
  ++line_number;
  line_offset = offset;
  bool too_long = false;
  while (true) {
    if (begin == end) {
      auto filled = fill();
      if (!filled) return filled.error();
      if (!*filled) break;
    }
    const char* from = buffer.data() + begin;
    const auto* newline = static_cast<const char*>(std::memchr(from, '\n', end - begin));
    const std::size_t length = newline == nullptr ? end - begin : static_cast<std::size_t>(newline - from);
    too_long = too_long || line.size() + length > limits.max_line_bytes;
    if (!too_long) line.append(from, length);
    const std::size_t used = length + (newline == nullptr ? 0 : 1);
    begin += used;
    offset += used;
    if (newline != nullptr) break;
  }
  if (too_long) {
    return Error{
        Code::too_large,
        "line " + std::to_string(line_number) + ": longer than " + std::to_string(limits.max_line_bytes) + " bytes",
        line_offset};
  }
  return offset != line_offset;
}

TraceReader::TraceReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::open(const std::string& path, const TraceLimits& limits) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return Error{Code::io, path + ": " + std::strerror(errno), kNoOffset};
  return TraceReader{std::make_unique<State>(file, limits)};
}

Result<std::optional<TraceRecord>> TraceReader::next() {
  State& s = *state_;
  if (s.broken) return std::optional<TraceRecord>{};
  while (true) {
    auto more = s.read_line();
    if (!more) return more.error();
    if (!*more) return std::optional<TraceRecord>{};
    if (s.line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto record = parse_line(s.parser, s.line, s.limits);
    if (!record) {
      Error error = record.error();
      error.message = "line " + std::to_string(s.line_number) + ": " + error.message;
      error.offset = s.line_offset;
      return error;
    }
    return std::optional<TraceRecord>{std::move(*record)};
  }
}

std::uint64_t TraceReader::line() const noexcept { return state_->line_number; }

Result<std::vector<TraceRecord>> read_mooncake_trace(const std::string& path, std::size_t limit,
                                                     const TraceLimits& limits) {
  auto reader = TraceReader::open(path, limits);
  if (!reader) return reader.error();
  std::vector<TraceRecord> records;
  while (limit == 0 || records.size() < limit) {
    auto record = reader->next();
    if (!record) {
      Error error = record.error();
      error.message = path + ": " + error.message;
      return error;
    }
    if (!record->has_value()) break;
    records.push_back(std::move(**record));
  }
  return records;
}

}  // namespace warmroute::trace
