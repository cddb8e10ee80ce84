// See answer_reader.hpp; the parsing of events is simdjson's.
#include "gateway/answer_reader.hpp"

#include <simdjson.h>

#include <utility>

namespace warmroute::gateway {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMostEventBytes = std::size_t{1} << 20;  // larger events are passed on unread

constexpr std::int64_t kMostTokens = 1'000'000'000;  // of one request: more is a broken answer, and unknown

void take_count(dom::object object, std::string_view name, std::int64_t& count) {
  std::int64_t value = 0;
  // A zero does not erase what was said before: Anthropic repeats the counts of the prompt as 0 at the end of a stream.
  if (object[name].get(value) == simdjson::SUCCESS && value >= 0 && value <= kMostTokens &&
      (value > 0 || count == kUnknown)) {
    count = value;
  }
}

void take_cached(dom::object usage, std::string_view details, std::int64_t& cached) {
  dom::object object;
  if (usage[details].get(object) == simdjson::SUCCESS) take_count(object, "cached_tokens", cached);
}

/// OpenAI's two spellings include cached tokens in the input; Anthropic's counts stand side by side.
struct UsageReader {
  UsageCounts counts;
  std::int64_t uncached = kUnknown, cache_read = kUnknown, cache_write = kUnknown;

  void read(dom::object usage) {
    take_count(usage, "prompt_tokens", counts.input_tokens);
    take_count(usage, "completion_tokens", counts.output_tokens);
    take_count(usage, "output_tokens", counts.output_tokens);
    take_cached(usage, "prompt_tokens_details", counts.cached_tokens);
    take_cached(usage, "input_tokens_details", counts.cached_tokens);
    take_count(usage, "input_tokens", uncached);
    take_count(usage, "cache_read_input_tokens", cache_read);
    take_count(usage, "cache_creation_input_tokens", cache_write);
  }
  [[nodiscard]] UsageCounts result() const {
    UsageCounts all = counts;
    if (cache_read != kUnknown) all.cached_tokens = cache_read;
    if (uncached != kUnknown)
      all.input_tokens = uncached + std::max<std::int64_t>(0, cache_read) + std::max<std::int64_t>(0, cache_write);
    return all;
  }
};

bool non_empty(dom::object object, std::string_view name) {
  std::string_view text;
  dom::array list;
  if (object[name].get(text) == simdjson::SUCCESS) return !text.empty();
  return object[name].get(list) == simdjson::SUCCESS && list.size() != 0;
}

/// returns: whether an event of any of the APIs carries output.
bool has_output(dom::object event) {
  dom::array choices;
  if (event["choices"].get(choices) == simdjson::SUCCESS) {
    for (const auto item : choices) {
      dom::object choice, delta;
      if (item.get(choice) != simdjson::SUCCESS) continue;
      if (non_empty(choice, "text")) return true;
      if (choice["delta"].get(delta) != simdjson::SUCCESS) continue;
      for (const auto name : {"content", "reasoning_content", "reasoning", "refusal", "tool_calls"}) {
        if (non_empty(delta, name)) return true;
      }
    }
    return false;
  }
  std::string_view type;
  if (event["type"].get(type) != simdjson::SUCCESS) return false;
  if (type == "content_block_delta") return true;                                                   // Messages
  return type.size() > 6 && type.substr(type.size() - 6) == ".delta" && non_empty(event, "delta");  // Responses
}

}  // namespace

void TopLevelMember::feed(std::string_view bytes) {
  for (const char c : bytes) feed_one(c);
}

void TopLevelMember::feed_one(char c) {
  if (capturing_ && !(depth_ == 1 && !in_string_ && (c == ',' || c == '}'))) {
    if (value_.size() < kMostBytes) value_ += c;
  }
  if (in_string_) {
    if (in_name_ && (c != '"' || escaped_) && name_.size() <= key_.size()) name_ += c;
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = in_name_ = false;
    }
    return;
  }
  switch (c) {
    case '"':
      in_string_ = true;
      in_name_ = depth_ == 1 && !capturing_ && name_.empty();
      break;
    case '{':
    case '[': depth_ += 1; break;
    case '}':
    case ']':
      depth_ -= 1;
      if (depth_ == 0) capturing_ = false;
      break;
    case ':':
      if (depth_ == 1 && !capturing_ && name_ == key_) {
        capturing_ = true;
        value_.clear();
      } else if (depth_ == 1 && name_.empty()) {
        name_ = " ";  // a member without a name: its value is none
      }
      break;
    case ',':
      if (depth_ == 1) {
        capturing_ = false;
        name_.clear();
      }
      break;
    default: break;
  }
}

struct AnswerReader::Impl {
  explicit Impl(bool is_stream) : stream(is_stream) {}

  void line(std::string_view text) {
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.empty()) return event();
    if (text.substr(0, 5) != "data:") return;
    text.remove_prefix(5);
    if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    if (!data.empty()) data += '\n';
    append(data, text);
  }

  void append(std::string& to, std::string_view bytes) {
    if (to.size() + bytes.size() > kMostEventBytes) too_large = true;
    if (!too_large) to += bytes;
  }

  void event() {
    // After the first token only what may hold counts is worth a parse; the parse decides whether it does.
    if (!too_large && !data.empty() && (!first || data.find("\"usage\"") != std::string::npos)) parse();
    data.clear();
    too_large = false;
  }

  void parse() {
    dom::object object, inner;
    if (parser.parse(data).get(object) != simdjson::SUCCESS) return;  // [DONE], or not ours to judge
    first = first || has_output(object);
    dom::object found;
    if (object["usage"].get(found) == simdjson::SUCCESS) usage.read(found);
    for (const auto name : {"response", "message"}) {  // Responses; Messages
      if (object[name].get(inner) == simdjson::SUCCESS && inner["usage"].get(found) == simdjson::SUCCESS)
        usage.read(found);
    }
  }

  const bool stream;
  bool first = false;
  bool too_large = false;
  std::string pending;  // a line whose end has not come
  std::string data;     // of the event
  TopLevelMember plain{"usage"};
  dom::parser parser;
  UsageReader usage;
};

AnswerReader::AnswerReader(bool stream) : impl_(std::make_unique<Impl>(stream)) {}
AnswerReader::AnswerReader(AnswerReader&&) noexcept = default;
AnswerReader::~AnswerReader() = default;

bool AnswerReader::feed(std::string_view bytes) {
  Impl& it = *impl_;
  const bool had_first = it.first;
  if (!it.stream) {
    it.plain.feed(bytes);
    it.first = it.first || !bytes.empty();
    return it.first && !had_first;
  }
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    it.append(it.pending, bytes.substr(0, end));
    if (end == std::string_view::npos) break;
    it.line(it.pending);
    it.pending.clear();
    bytes.remove_prefix(end + 1);
  }
  return it.first && !had_first;
}

UsageCounts AnswerReader::finish() {
  Impl& it = *impl_;
  if (it.stream) {
    it.line(it.pending);  // a stream may end without its last line's end
    it.event();
  } else if (dom::object object; it.parser.parse(it.plain.value()).get(object) == simdjson::SUCCESS) {
    it.usage.read(object);
  }
  return it.usage.result();
}

}  // namespace warmroute::gateway
