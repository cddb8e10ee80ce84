/// Members of a trace's JSON lines: counts, times, block ids, names, with errors that name the member.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simdjson.h"
#include "warmroute/trace/trace.hpp"

namespace warmroute::trace {

using JsonElement = simdjson::dom::element;

[[nodiscard]] Error field_error(Code code, std::string_view field, std::string_view what);

/// A parser's element lives until its next call. errors: invalid_json, not_an_object.
[[nodiscard]] Result<simdjson::dom::object> parse_object(simdjson::dom::parser& parser, std::string_view line);

/// errors: wrong_type, value_out_of_range.
[[nodiscard]] Result<std::int64_t> json_count(std::string_view field, JsonElement value, std::int64_t most);
/// A time in units of `unit_us` microseconds, as a number; as text, too, where `text` says so.
[[nodiscard]] Result<std::int64_t> json_time_us(std::string_view field, JsonElement value, double unit_us,
                                                bool text = false);
/// Appends. errors: wrong_type; value_out_of_range for more than `most`.
[[nodiscard]] Status json_ids(std::string_view field, JsonElement value, std::int64_t most,
                              std::vector<std::uint64_t>& ids);
/// returns: a hash that is never 0, for text or an integer; "#" and 16 hex digits are such a hash as written.
[[nodiscard]] Result<std::uint64_t> json_session(std::string_view field, JsonElement value);
/// errors: wrong_type.
[[nodiscard]] Status json_text(std::string_view field, JsonElement value, std::string& out);
[[nodiscard]] Result<bool> json_flag(std::string_view field, JsonElement value);

/// The three that every form of JSON lines has.
struct SeenFields {
  bool timestamp = false;
  bool input = false;
  bool output = false;
  /// errors: missing_field.
  [[nodiscard]] Status complete() const;
};

/// Those three: `timestamp` in units of `unit_us` microseconds, as text, too, where `text` says so; `input_length`, `output_length`.
/// returns: whether it was one of them.
[[nodiscard]] Result<bool> read_common(std::string_view field, JsonElement value, std::int64_t most_tokens,
                                       double unit_us, bool text, TraceRecord& record, SeenFields& seen);

[[nodiscard]] std::uint64_t session_of(std::string_view text) noexcept;
[[nodiscard]] std::uint64_t session_of(std::uint64_t number) noexcept;

}  // namespace warmroute::trace
