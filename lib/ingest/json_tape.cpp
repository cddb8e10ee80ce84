// The strict JSON check, one pass over the bytes.
// Why not simdjson's On-Demand: it skips what it is not asked for without looking inside (3.0.1 accepts nan, 01 and lone
// surrogates there), so every value would have to be walked and checked again after its structural pass, it needs a padded
// copy of the body, and it names neither depth nor surrogate errors as we have to. Measured in bench_request_body on a
// 32 KiB chat body: see BM_SimdjsonWalk there, which walks all and still checks less, beside BM_RequestBody.
// simdjson does validate the UTF-8 (request_body.cpp): with the right instructions for the CPU that is 1 us of the whole.
#include "ingest/json_tape.hpp"

#include "ingest/json_text.hpp"

namespace warmroute::ingest {

std::string_view kind_name(NodeKind kind) noexcept {
  switch (kind) {
    case NodeKind::object: return "an object";
    case NodeKind::array: return "a list";
    case NodeKind::string: return "a string";
    case NodeKind::numbers: return "a number";
    case NodeKind::true_value: return "true";
    case NodeKind::false_value: return "false";
    case NodeKind::null_value: return "null";
  }
  return "something else";
}

class TapeBuilder {
 public:
  TapeBuilder(JsonTape& tape, std::size_t start, std::uint32_t max_depth, JsonTape::FindSlot find_slot, const void* context, Error& error)
      : tape_(tape), base_(tape.text_.data()), p_(base_ + start), end_(base_ + tape.text_.size()), max_depth_(max_depth),
        find_slot_(find_slot), context_(context), error_(error) {}

  bool run() {
    skip_space();
    if (p_ == end_) return fail(Code::invalid_json, "the body is empty: send a JSON object");
    const bool is_object = *p_ == '{';
    const std::size_t start = offset(p_);
    while (true) {
      bool opened = false;
      if (!value(opened)) return false;
      if (opened) continue;
      bool done = false;
      if (!after_value(done)) return false;
      if (done) break;
    }
    if (is_object) return true;
    p_ = base_ + start;
    return fail(Code::not_an_object, "the body is JSON but not an object: send { \"model\": …, … }");
  }

 private:
  static constexpr NodeIndex kNotRecorded = kNoNode;

  [[nodiscard]] std::size_t offset(const char* p) const noexcept { return static_cast<std::size_t>(p - base_); }

  bool fail(Code code, std::string_view message) {
    error_ = Error{code, std::string(message), offset(p_)};
    return false;
  }
  bool fail_truncated() {
    p_ = end_;
    return fail(Code::invalid_json, "the body ends in the middle of its JSON: send all of it");
  }

  void skip_space() noexcept {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) ++p_;
  }

  NodeIndex push(NodeKind kind, const char* begin, const char* end, bool escaped = false) {
    if (!recording_) return kNotRecorded;
    const auto index = static_cast<NodeIndex>(tape_.nodes_.size());
    tape_.nodes_.push_back({static_cast<std::uint32_t>(offset(begin)), static_cast<std::uint32_t>(offset(end)), index + 1,
                            kind, escaped});
    return index;
  }

  // One value begins at p_. A container is entered (`opened`) up to its first value; anything else is consumed.
  bool value(bool& opened) {
    if (p_ == end_) return fail_truncated();
    switch (*p_) {
      case '{':
      case '[': return open(opened);
      case '"': {
        bool escaped = false;
        const char* const begin = p_ + 1;
        if (!string(escaped)) return false;
        push(NodeKind::string, begin, p_ - 1, escaped);
        return true;
      }
      case 't': return literal("true", NodeKind::true_value);
      case 'f': return literal("false", NodeKind::false_value);
      case 'n': return literal("null", NodeKind::null_value);
      default: break;
    }
    if (*p_ == '-' || is_digit(*p_)) return numbers();
    if (*p_ == 'N' || *p_ == 'I') return fail(Code::invalid_json, "NaN and Infinity are not JSON: leave the member out or send null");
    if (*p_ == '\0') return fail(Code::invalid_json, "a NUL byte where a value is due: the body looks like UTF-16 or UTF-32; send UTF-8");
    return fail(Code::invalid_json, "a value is due here: a string, number, object, list, true, false or null");
  }

  bool open(bool& opened) {
    const bool object = *p_ == '{';
    if (tape_.open_.size() >= max_depth_) return fail(Code::too_deep, "the JSON is nested too deeply");
    const NodeIndex node = push(object ? NodeKind::object : NodeKind::array, p_, p_);
    tape_.open_.push_back({node, object});
    ++p_;
    skip_space();
    if (p_ < end_ && *p_ == (object ? '}' : ']')) {
      ++p_;
      close();
      return true;
    }
    opened = true;
    return !object || key();
  }

  void close() noexcept {
    const NodeIndex node = tape_.open_.back().node;
    tape_.open_.pop_back();
    if (node == kNotRecorded) return;
    tape_.nodes_[node].end = static_cast<std::uint32_t>(offset(p_));
    tape_.nodes_[node].next = static_cast<NodeIndex>(tape_.nodes_.size());
  }

  // Reads "key" : and leaves p_ at the value.
  bool key() {
    if (p_ == end_) return fail_truncated();
    if (*p_ != '"') return fail(Code::invalid_json, "a member name in double quotes is due here");
    bool escaped = false;
    const char* const begin = p_ + 1;
    if (!string(escaped)) return false;
    const std::string_view raw(begin, static_cast<std::size_t>(p_ - 1 - begin));
    if (tape_.open_.size() == 1) {
      const int slot = find_slot_(context_, raw, escaped);
      recording_ = slot >= 0;
      if (recording_) tape_.members_[static_cast<std::size_t>(slot)] = static_cast<NodeIndex>(tape_.nodes_.size());
    } else {
      push(NodeKind::string, begin, p_ - 1, escaped);
    }
    skip_space();
    if (p_ == end_) return fail_truncated();
    if (*p_ != ':') return fail(Code::invalid_json, "a colon is due after a member name");
    ++p_;
    skip_space();
    return true;
  }

  // A value has ended: containers that end here are closed, then p_ is at the next value or the text is `done`.
  bool after_value(bool& done) {
    while (true) {
      skip_space();
      if (tape_.open_.empty()) {
        done = true;
        return p_ == end_ || fail(Code::invalid_json, "there is text after the JSON document: send one document per request");
      }
      if (p_ == end_) return fail_truncated();
      const bool object = tape_.open_.back().object;
      if (*p_ == ',') {
        ++p_;
        skip_space();
        return !object || key();
      }
      if (*p_ != (object ? '}' : ']')) {
        return fail(Code::invalid_json, object ? "a comma or } is due here" : "a comma or ] is due here");
      }
      ++p_;
      close();
    }
  }

  // p_ is at the opening quote; afterwards behind the closing one.
  bool string(bool& escaped) {
    ++p_;
    while (true) {
      p_ = find_string_special(p_, end_);
      if (p_ == end_) return fail_truncated();
      if (*p_ == '"') {
        ++p_;
        return true;
      }
      if (*p_ != '\\') return fail(Code::invalid_json, "a control character inside a string: escape it");
      escaped = true;
      if (!escape()) return false;
    }
  }

  bool escape() {
    if (end_ - p_ < 2) return fail_truncated();
    switch (p_[1]) {
      case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't': p_ += 2; return true;
      case 'u': break;
      default: return fail(Code::invalid_json, "an escape that JSON does not have");
    }
    if (end_ - p_ < 6) return fail_truncated();
    const std::uint32_t unit = hex_unit(p_ + 2);
    if (unit > 0xffff) return fail(Code::invalid_json, "four hexadecimal digits are due after \\u");
    if (unit < 0xd800 || unit > 0xdfff) {
      p_ += 6;
      return true;
    }
    if (unit >= 0xdc00) return fail(Code::invalid_unicode, "a low surrogate without its high one: the text is no Unicode");
    if (end_ - p_ < 8) return fail_truncated();
    if (p_[6] != '\\' || p_[7] != 'u') {
      return fail(Code::invalid_unicode, "a high surrogate without its low one: the text is no Unicode");
    }
    if (end_ - p_ < 12) return fail_truncated();
    const std::uint32_t low = hex_unit(p_ + 8);
    if (low > 0xffff) return fail(Code::invalid_json, "four hexadecimal digits are due after \\u");
    if (low < 0xdc00 || low > 0xdfff) {
      return fail(Code::invalid_unicode, "a high surrogate without its low one: the text is no Unicode");
    }
    p_ += 12;
    return true;
  }

  bool literal(std::string_view word, NodeKind kind) {
    const auto left = static_cast<std::size_t>(end_ - p_);
    if (std::string_view(p_, left).substr(0, word.size()) != word) {
      if (word.substr(0, left) == std::string_view(p_, left)) return fail_truncated();
      return fail(Code::invalid_json, "a value is due here: only true, false and null are written without quotes");
    }
    push(kind, p_, p_ + word.size());
    p_ += word.size();
    return true;
  }

  // One number; inside a list all numbers that follow one another.
  bool numbers() {
    const char* const begin = p_;
    const bool in_array = !tape_.open_.empty() && !tape_.open_.back().object;
    const char* last = p_;
    while (true) {
      if (!number()) return false;
      last = p_;
      if (!in_array) break;
      skip_space();
      if (p_ == end_ || *p_ != ',') break;
      const char* const comma = p_++;
      skip_space();
      if (p_ == end_ || !(*p_ == '-' || is_digit(*p_))) {
        p_ = comma;
        break;
      }
    }
    push(NodeKind::numbers, begin, last);
    return true;
  }

  bool digits() {
    if (p_ == end_) return fail_truncated();
    if (!is_digit(*p_)) return fail(Code::invalid_json, "a digit is due in this number");
    while (p_ < end_ && is_digit(*p_)) ++p_;
    return true;
  }

  bool number() {
    if (*p_ == '-') ++p_;
    if (p_ < end_ && *p_ == '0') {
      ++p_;
      if (p_ < end_ && is_digit(*p_)) return fail(Code::invalid_json, "a number must not have leading zeros");
    } else if (!digits()) {
      return false;
    }
    if (p_ < end_ && *p_ == '.') {
      ++p_;
      if (!digits()) return false;
    }
    if (p_ < end_ && (*p_ == 'e' || *p_ == 'E')) {
      ++p_;
      if (p_ < end_ && (*p_ == '-' || *p_ == '+')) ++p_;
      if (!digits()) return false;
    }
    return true;
  }

  JsonTape& tape_;
  const char* const base_;
  const char* p_;
  const char* const end_;
  const std::size_t max_depth_;
  const JsonTape::FindSlot find_slot_;
  const void* const context_;
  Error& error_;
  bool recording_ = false;
};

bool JsonTape::build(std::string_view text, std::size_t start, std::uint32_t max_depth, FindSlot find_slot,
                     const void* context, Error& error) {
  text_ = text;
  nodes_.clear();
  open_.clear();
  members_.fill(kNoNode);
  return TapeBuilder(*this, start, max_depth, find_slot, context, error).run();
}

bool JsonTape::equals(NodeIndex i, std::string_view wanted) const noexcept {
  return string_equals(raw(i), nodes_[i].escaped, wanted);
}

void JsonTape::reset(std::size_t keep_bytes) noexcept {
  text_ = {};
  nodes_.clear();
  open_.clear();
  members_.fill(kNoNode);
  if (nodes_.capacity() * sizeof(Node) > keep_bytes) std::vector<Node>().swap(nodes_);
}

}  // namespace warmroute::ingest
