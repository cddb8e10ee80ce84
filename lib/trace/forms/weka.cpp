// kv-cache-tester's form: a coding agent's conversation a line, {"id", "block_size", "hash_id_scope", "tool_tokens", "system_tokens",
// "requests": [...]}. A request is an object {"t" s, "type": "s" streamed or "n" not, "model", "in", "out", "hash_ids", "think_time"} or
// the same in short, [t, in, out, api_time, think_time, [first_id, count, ...]]; a sub-agent is {"requests": [...]} ("sub" in short).
// A conversation's requests are given one by one: written out, its ids are far longer than its line.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "trace/forms/form.hpp"
#include "trace/forms/json_fields.hpp"

namespace warmroute::trace {
namespace {

namespace dom = simdjson::dom;

Error broken_turn(Code code, const char* what) { return {code, std::string("a request ") + what, kNoOffset}; }

/// Reads the next of an array's elements. lifetime: the parser's document.
class Turns {
 public:
  Turns() = default;
  explicit Turns(dom::array turns) : at_(turns.begin()), end_(turns.end()) {}
  bool next(JsonElement& turn) {
    if (!at_ || !(*at_ != *end_)) return false;
    turn = **at_;
    ++*at_;
    return true;
  }

 private:
  std::optional<dom::array::iterator> at_, end_;
};

class WekaForm final : public Form {
 public:
  WekaForm(const TraceLimits& limits, const TraceOptions& options) : limits_(limits), options_(options) {}

  Status take(std::string_view line) override {
    turns_ = sub_turns_ = {};
    last_ = last_of_sub_ = kNone;
    local_shared_.clear();
    previous_t_ = 0;
    ++conversation_;
    auto object = parse_object(parser_, line);
    if (!object) {
      if (object.code() != Code::invalid_json) return object.error();
      Error error = object.error();
      return Error{error.code, error.message + "; a conversation must stand on one line (jq -c .)", kNoOffset};
    }
    return read_head(*object);
  }

  Result<bool> next(TraceRecord& record) override {
    auto given = next_turn(record);
    if (!given || !*given) turns_ = sub_turns_ = {};
    return given;
  }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Status read_head(const dom::object& object) {
    dom::array turns;
    std::string_view id, scope;
    if (object["block_size"].get(block_tokens_) != simdjson::SUCCESS || block_tokens_ < 1 ||
        block_tokens_ > limits_.max_tokens)
      return Error{Code::missing_field, "block_size is missing or not positive", kNoOffset};
    if (object["requests"].get(turns) != simdjson::SUCCESS)
      return Error{Code::missing_field, "requests is missing or no array", kNoOffset};
    std::int64_t tools = 0, system = 0;
    if (object["tool_tokens"].get(tools) != simdjson::SUCCESS) tools = 0;
    if (object["system_tokens"].get(system) != simdjson::SUCCESS) system = 0;
    tools = std::clamp<std::int64_t>(tools, 0, limits_.max_tokens);
    system = std::clamp<std::int64_t>(system, 0, limits_.max_tokens);
    session_ = object["id"].get(id) == simdjson::SUCCESS ? session_of(id) : session_of(conversation_);
    model_.clear();
    if (object["model"].get(id) == simdjson::SUCCESS) model_ = id;
    global_ids_ = object["hash_id_scope"].get(scope) == simdjson::SUCCESS && scope == "global";
    shared_ = options_.share_system_prompts && !global_ids_ ? (tools + system) / block_tokens_ : 0;
    system_key_ = chained(static_cast<std::uint64_t>(tools), static_cast<std::uint64_t>(system));
    own_key_ = chained(options_.block_salt, conversation_);
    turns_ = Turns(turns);
    return {};
  }

  Result<bool> next_turn(TraceRecord& record) {
    JsonElement turn;
    while (true) {
      if (sub_turns_.next(turn)) return read_turn(turn, record, last_of_sub_, 0);
      sub_turns_ = {};
      if (!turns_.next(turn)) return false;
      dom::object object;
      dom::array chain;
      const bool is_sub =
          turn.get(object) == simdjson::SUCCESS &&
          (object["requests"].get(chain) == simdjson::SUCCESS || object["sub"].get(chain) == simdjson::SUCCESS);
      if (!is_sub) return read_turn(turn, record, last_, last_ == kNone ? shared_ : 0);
      sub_turns_ = Turns(chain);
      last_of_sub_ = last_;
    }
  }

  Result<bool> read_turn(JsonElement turn, TraceRecord& record, std::uint64_t& behind, std::int64_t shared) {
    record.block_tokens = block_tokens_;
    record.session = session_;
    record.model = model_;
    double t = 0, think = -1;
    dom::array fields;
    const bool in_short = turn.get(fields) == simdjson::SUCCESS;
    auto read = in_short ? read_short(fields, record, t, think, shared) : read_long(turn, record, t, think, shared);
    if (!read) return read.error();
    if (!(t >= 0 && t < 1e9 && think < 1e9)) return broken_turn(Code::value_out_of_range, "has an absurd time");
    record.arrival_us =
        static_cast<std::int64_t>(conversation_ - 1) * options_.conversation_gap_us + std::llround(t * 1e6);
    if (behind != kNone) {
      record.follows = static_cast<std::uint32_t>(std::min<std::uint64_t>(given_ - behind, 0xFFFF'FFFF));
      // Older sets have no think_time: what lies between two requests then includes the first one's own time.
      record.think_us = std::llround(std::max(0.0, think >= 0 || in_short ? think : t - previous_t_) * 1e6);
    }
    previous_t_ = t;
    behind = given_++;
    return true;
  }

  // [t, in, out, api_time, think_time, [first_id, count, ...]]
  Status read_short(const dom::array& fields, TraceRecord& record, double& t, double& think, std::int64_t shared) {
    std::size_t at = 0;
    bool fine = true;
    dom::array runs;
    for (const JsonElement field : fields) {
      switch (at++) {
        case 0: fine = field.get(t) == simdjson::SUCCESS && fine; break;
        case 1: fine = field.get(record.input_tokens) == simdjson::SUCCESS && fine; break;
        case 2: fine = field.get(record.output_tokens) == simdjson::SUCCESS && fine; break;
        case 4: fine = field.get(think) == simdjson::SUCCESS && fine; break;
        case 5: fine = field.get(runs) == simdjson::SUCCESS && fine; break;
        default: break;
      }
    }
    if (!fine || at < 6)
      return broken_turn(Code::wrong_type, "is not [t, input, output, api_time, think_time, [runs]], or a sub-agent");
    if (auto counts = check_counts(record); !counts) return counts;
    const std::int64_t most = most_blocks(record);
    std::int64_t first = -1;
    for (const JsonElement element : runs) {
      std::int64_t number = 0;
      if (element.get(number) != simdjson::SUCCESS || number < 0 || (first >= 0 && number > limits_.max_tokens))
        return broken_turn(Code::wrong_type, "has runs that are not [first_id, count, ...]");
      if (first < 0) {
        first = number;
        continue;
      }
      for (std::int64_t k = 0; k < number && static_cast<std::int64_t>(record.blocks.size()) < most; ++k)
        add_block(record, static_cast<std::uint64_t>(first + k), shared);
      first = -1;
    }
    return {};
  }

  Status read_long(JsonElement turn, TraceRecord& record, double& t, double& think, std::int64_t shared) {
    dom::object object;
    if (turn.get(object) != simdjson::SUCCESS)
      return broken_turn(Code::wrong_type, "is neither an array, an object, nor a sub-agent");
    std::string_view type, model;
    if (object["t"].get(t) != simdjson::SUCCESS || object["in"].get(record.input_tokens) != simdjson::SUCCESS ||
        object["out"].get(record.output_tokens) != simdjson::SUCCESS)
      return broken_turn(Code::missing_field, "has no t, in or out");
    if (object["think_time"].get(think) != simdjson::SUCCESS) think = -1;
    if (object["type"].get(type) == simdjson::SUCCESS && (type == "s" || type == "n")) record.stream = type == "s";
    if (object["model"].get(model) == simdjson::SUCCESS) record.model = model;
    if (auto counts = check_counts(record); !counts) return counts;
    const std::int64_t most = most_blocks(record);
    dom::array ids;
    if (object["hash_ids"].get(ids) != simdjson::SUCCESS) return {};
    for (const JsonElement element : ids) {
      std::uint64_t id = 0;
      if (element.get(id) != simdjson::SUCCESS)
        return broken_turn(Code::wrong_type, "has hash_ids with something that is no block id");
      if (static_cast<std::int64_t>(record.blocks.size()) == most) break;  // the length is what counts
      add_block(record, id, shared);
    }
    return {};
  }

  [[nodiscard]] Status check_counts(const TraceRecord& record) const {
    for (const std::int64_t count : {record.input_tokens, record.output_tokens}) {
      if (count < 0 || count > limits_.max_tokens)
        return broken_turn(Code::value_out_of_range, "has an absurd count of tokens");
    }
    if (record.input_tokens / block_tokens_ > limits_.max_blocks)
      return broken_turn(Code::value_out_of_range, "has more blocks than allowed (max_blocks)");
    return {};
  }
  [[nodiscard]] std::int64_t most_blocks(const TraceRecord& record) const noexcept {
    return (record.input_tokens + block_tokens_ - 1) / block_tokens_;
  }

  void add_block(TraceRecord& record, std::uint64_t local, std::int64_t shared) {
    if (global_ids_) {
      record.blocks.push_back(options_.block_salt == 0 ? local : chained(options_.block_salt, local));
      return;
    }
    const auto at = static_cast<std::int64_t>(record.blocks.size());
    if (at < shared) local_shared_.try_emplace(local, chained(system_key_, static_cast<std::uint64_t>(at)));
    if (!local_shared_.empty()) {
      if (const auto it = local_shared_.find(local); it != local_shared_.end()) {
        record.blocks.push_back(it->second);
        return;
      }
    }
    record.blocks.push_back(chained(own_key_, local));
  }

  TraceLimits limits_;
  TraceOptions options_;
  dom::parser parser_;
  Turns turns_, sub_turns_;
  std::uint64_t given_ = 0;                           // records, of the whole file
  std::uint64_t last_ = kNone, last_of_sub_ = kNone;  // number of the record that the next one waits for
  std::uint64_t conversation_ = 0;                    // from 1
  double previous_t_ = 0;

  // Of this conversation.
  std::int64_t block_tokens_ = 64;
  std::int64_t shared_ = 0;  // blocks of the first request that all with the same system_key_ have in common
  std::uint64_t system_key_ = 0, own_key_ = 0, session_ = 0;
  bool global_ids_ = false;
  std::string model_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> local_shared_;
};

}  // namespace

std::unique_ptr<Form> make_weka_form(const TraceLimits& limits, const TraceOptions& options) {
  return std::make_unique<WekaForm>(limits, options);
}

}  // namespace warmroute::trace
