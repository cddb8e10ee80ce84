#include "trace/forms/json_fields.hpp"

#include <charconv>
#include <cmath>

#include "trace/forms/form.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute::trace {

Error field_error(Code code, std::string_view field, std::string_view what) {
  std::string message = "member \"";
  message.append(field).append("\" ").append(what);
  return {code, std::move(message), kNoOffset};
}

Result<simdjson::dom::object> parse_object(simdjson::dom::parser& parser, std::string_view line) {
  JsonElement document;
  if (const auto error = parser.parse(line.data(), line.size(), true).get(document); error != simdjson::SUCCESS)
    return Error{Code::invalid_json, simdjson::error_message(error), kNoOffset};
  simdjson::dom::object object;
  if (document.get(object) != simdjson::SUCCESS)
    return Error{Code::not_an_object, "the line is not a JSON object", kNoOffset};
  return object;
}

Result<std::int64_t> json_count(std::string_view field, JsonElement value, std::int64_t most) {
  std::int64_t count = 0;
  if (value.get(count) != simdjson::SUCCESS) {
    if (!value.is_number()) return field_error(Code::wrong_type, field, "is not a number");
    double real = 0;
    if (value.get(real) != simdjson::SUCCESS || !(std::fabs(real) < 9e15) || real != std::floor(real))
      return field_error(Code::value_out_of_range, field, "is not a count of tokens");
    count = static_cast<std::int64_t>(real);
  }
  if (count < 0 || count > most) return field_error(Code::value_out_of_range, field, "is out of range");
  return count;
}

Result<std::int64_t> json_time_us(std::string_view field, JsonElement value, double unit_us, bool text) {
  double time = 0;
  std::string_view digits;
  if (text && value.get(digits) == simdjson::SUCCESS) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), time);
    if (error != std::errc{} || end != digits.data() + digits.size())
      return field_error(Code::wrong_type, field, "is not a number");
  } else if (value.get(time) != simdjson::SUCCESS) {
    return field_error(Code::wrong_type, field, "is not a number");
  }
  if (!(time >= 0 && time * unit_us <= static_cast<double>(kMostTimeUs)))
    return field_error(Code::value_out_of_range, field, "is out of range");
  return static_cast<std::int64_t>(std::llround(time * unit_us));
}

Status json_ids(std::string_view field, JsonElement value, std::int64_t most, std::vector<std::uint64_t>& ids) {
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return field_error(Code::wrong_type, field, "is not a list");
  ids.reserve(ids.size() + std::min<std::size_t>(array.size(), 1 << 20));  // size() stops counting at 2^24
  for (const JsonElement element : array) {
    std::uint64_t id = 0;
    if (element.get(id) != simdjson::SUCCESS)
      return field_error(Code::wrong_type, field, "holds something that is no block id");
    if (static_cast<std::int64_t>(ids.size()) >= most)
      return field_error(Code::value_out_of_range, field, "holds too many ids");
    ids.push_back(id);
  }
  return {};
}

Result<bool> read_common(std::string_view field, JsonElement value, std::int64_t most_tokens, double unit_us, bool text,
                         TraceRecord& record, SeenFields& seen) {
  if (field == "timestamp") {
    auto time = json_time_us(field, value, unit_us, text);
    if (!time) return time.error();
    record.arrival_us = *time;
    seen.timestamp = true;
    return true;
  }
  const bool is_input = field == "input_length";
  if (!is_input && field != "output_length") return false;
  auto count = json_count(field, value, most_tokens);
  if (!count) return count.error();
  (is_input ? record.input_tokens : record.output_tokens) = *count;
  (is_input ? seen.input : seen.output) = true;
  return true;
}

std::uint64_t session_of(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()) | 1; }
std::uint64_t session_of(std::uint64_t number) noexcept { return XXH3_64bits(&number, sizeof number) | 1; }

Result<std::uint64_t> json_session(std::string_view field, JsonElement value) {
  std::string_view text;
  std::uint64_t number = 0;
  if (value.get(text) == simdjson::SUCCESS) {
    if (text.size() == 17 && text[0] == '#') {
      const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number, 16);
      if (error == std::errc{} && end == text.data() + text.size()) return number;
    }
    return session_of(text);
  }
  if (value.get(number) == simdjson::SUCCESS) return session_of(number);
  return field_error(Code::wrong_type, field, "is neither text nor a number");
}

Status json_text(std::string_view field, JsonElement value, std::string& out) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return field_error(Code::wrong_type, field, "is not text");
  out = text;
  return {};
}

Result<bool> json_flag(std::string_view field, JsonElement value) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) return field_error(Code::wrong_type, field, "is neither true nor false");
  return flag;
}

Status SeenFields::complete() const {
  if (!timestamp) return field_error(Code::missing_field, "timestamp", "is missing");
  if (!input) return field_error(Code::missing_field, "input_length", "is missing");
  if (!output) return field_error(Code::missing_field, "output_length", "is missing");
  return {};
}

}  // namespace warmroute::trace
