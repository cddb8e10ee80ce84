// Mooncake's form: one JSON object a line, times in milliseconds, one id per 512-token block. Beside the published members those that
// append_mooncake_line writes, and what others add to the form (session_id, delay, priority).
#include <limits>
#include <utility>

#include "trace/forms/form.hpp"
#include "trace/forms/json_fields.hpp"

namespace warmroute::trace {
namespace {

template <class T, class U>
Status keep(Result<T> value, U& out) {
  if (!value) return value.error();
  out = static_cast<U>(*value);
  return {};
}

template <class T, class U>
Status keep(Result<T> value, std::optional<U>& out) {
  if (!value) return value.error();
  out = static_cast<U>(*value);
  return {};
}

Status read_priority(std::string_view key, JsonElement value, TraceRecord& record) {
  std::int64_t priority = 0;
  if (value.get(priority) != simdjson::SUCCESS) return field_error(Code::wrong_type, key, "is no whole number");
  using Limits = std::numeric_limits<std::int32_t>;
  if (priority < Limits::min() || priority > Limits::max())
    return field_error(Code::value_out_of_range, key, "is out of range");
  record.priority = static_cast<std::int32_t>(priority);
  return {};
}

Status read_rare_member(std::string_view key, JsonElement value, const TraceLimits& limits, TraceRecord& record) {
  if (key == "session_id") return keep(json_session(key, value), record.session);
  if (key == "model") return json_text(key, value, record.model);
  if (key == "adapter") return json_text(key, value, record.adapter);
  if (key == "class") return json_text(key, value, record.request_class);
  if (key == "priority") return read_priority(key, value, record);
  if (key == "max_output_length") return keep(json_count(key, value, limits.max_tokens), record.max_output_tokens);
  if (key == "cached_tokens") return keep(json_count(key, value, limits.max_tokens), record.cached_tokens);
  if (key == "ttft_ms") return keep(json_time_us(key, value, 1'000), record.ttft_us);
  if (key == "stream") return keep(json_flag(key, value), record.stream);
  if (key == "cancelled") return keep(json_flag(key, value), record.cancelled);
  if (key == "follows") return keep(json_count(key, value, std::numeric_limits<std::uint32_t>::max()), record.follows);
  if (key == "delay") return keep(json_time_us(key, value, 1'000), record.think_us);
  return {};
}

Status read_member(std::string_view key, JsonElement value, const TraceLimits& limits, TraceRecord& record,
                   SeenFields& seen) {
  if (value.is_null()) return {};
  const auto common = read_common(key, value, limits.max_tokens, 1'000, false, record, seen);
  if (!common) return common.error();
  if (*common) return {};
  if (key == "hash_ids") {
    record.blocks.clear();
    return json_ids(key, value, limits.max_blocks, record.blocks);
  }
  return read_rare_member(key, value, limits, record);
}

class MooncakeForm final : public LineForm {
 public:
  explicit MooncakeForm(const TraceLimits& limits) : limits_(limits) {}

  Result<bool> read(std::string_view line, TraceRecord& record) override {
    auto object = parse_object(parser_, line);
    if (!object) return object.error();
    SeenFields seen;
    for (const simdjson::dom::key_value_pair member : *object) {
      if (auto status = read_member(member.key, member.value, limits_, record, seen); !status) return status.error();
    }
    if (auto complete = seen.complete(); !complete) return complete.error();
    const std::int64_t blocks = (record.input_tokens + kMooncakeBlockTokens - 1) / kMooncakeBlockTokens;
    if (static_cast<std::int64_t>(record.blocks.size()) > blocks)
      return field_error(Code::malformed, "hash_ids", "has more ids than the prompt has blocks of 512 tokens");
    return true;
  }

 private:
  TraceLimits limits_;
  simdjson::dom::parser parser_;
};

}  // namespace

std::unique_ptr<Form> make_mooncake_form(const TraceLimits& limits) { return std::make_unique<MooncakeForm>(limits); }

Result<TraceRecord> parse_mooncake_line(std::string_view line, const TraceLimits& limits) {
  if (line.size() > limits.max_line_bytes) return Error{Code::too_large, "the line is longer than allowed", kNoOffset};
  MooncakeForm form(limits);
  TraceRecord record;
  if (auto read = form.read(line, record); !read) return read.error();
  return record;
}

}  // namespace warmroute::trace
