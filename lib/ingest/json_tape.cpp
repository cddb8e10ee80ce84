// The strict JSON check, one pass over the bytes.
// Why not simdjson's On-Demand: it skips what it is not asked for without looking inside (3.0.1 accepts nan, 01 and
// lone surrogates there), so every value has to be walked, numbers and skipped strings checked by hand after all,
// members that come in another order (messages before tools) or twice found by going over the text again, and errors of
// ours (too deep, lone surrogate) told apart from its few. Walking everything with it, without any of that, takes 8.1
// us of a 32 KiB chat body (BM_SimdjsonWalk, AVX-512 kernels); this pass checks and records all of it in 6.4 us of the
// 11.5 us that BM_RequestBody needs from bytes to blocks, with SSE2 alone. simdjson validates the UTF-8
// (request_body.cpp): 0.5 us, and hard to beat.
#include "ingest/json_tape.hpp"

#include <bit>

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
  TapeBuilder(JsonTape& tape, std::size_t start, std::uint32_t max_depth, JsonTape::FindSlot find_slot,
              const void* context, Error& error)
      : tape_(tape),
        base_(tape.text_.data()),
        p_(base_ + start),
        end_(base_ + tape.text_.size()),
        max_depth_(max_depth),
        find_slot_(find_slot),
        context_(context),
        error_(error) {}

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
    return fail(Code::not_an_object, "the body is JSON but not an object: send { \"model\": ..., ... }");
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

  NodeIndex push(NodeKind kind, const char* begin, const char* end) {
    if (!recording_) return kNotRecorded;
    const auto index = static_cast<NodeIndex>(tape_.nodes_.size());
    tape_.nodes_.push_back(
        {static_cast<std::uint32_t>(offset(begin)), static_cast<std::uint32_t>(offset(end)), index + 1, kind, false});
    return index;
  }

  // One value begins at p_. A container is entered (`opened`) up to its first value; anything else is consumed.
  bool value(bool& opened) {
    if (p_ == end_) return fail_truncated();
    switch (*p_) {
      case '{':
      case '[': return open(opened);
      case '"': return recording_ ? recorded_string() : string();
      case 't': return literal("true", NodeKind::true_value);
      case 'f': return literal("false", NodeKind::false_value);
      case 'n': return literal("null", NodeKind::null_value);
      default: break;
    }
    if (*p_ == '-' || is_digit(*p_)) return numbers();
    if (*p_ == 'N' || *p_ == 'I')
      return fail(Code::invalid_json, "NaN and Infinity are not JSON: leave the member out or send null");
    if (*p_ == '\0')
      return fail(Code::invalid_json,
                  "a NUL byte where a value is due: the body looks like UTF-16 or UTF-32; send UTF-8");
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
    if (tape_.open_.size() == 1) {
      const char* const begin = p_ + 1;
      if (!string()) return false;
      const std::string_view raw(begin, static_cast<std::size_t>(p_ - 1 - begin));
      const int slot = find_slot_(context_, raw, raw.find('\\') != std::string_view::npos);
      recording_ = slot >= 0;
      if (recording_) tape_.members_[static_cast<std::size_t>(slot)] = static_cast<NodeIndex>(tape_.nodes_.size());
    } else if (!(recording_ ? recorded_string() : string())) {
      return false;
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
        return p_ == end_ ||
               fail(Code::invalid_json, "there is text after the JSON document: send one document per request");
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
  bool string() {
    ++p_;
    while (true) {
      p_ = find_string_special(p_, end_);
      if (p_ == end_) return fail_truncated();
      if (*p_ == '"') break;
      if (*p_ != '\\') return fail_control();
      if (!escape()) return false;
    }
    ++p_;
    return true;
  }

  // As string(), and pushes the node. Text with escapes is decoded by the same pass: an escape costs a mispredicted
  // branch, and paying that twice was a quarter of the whole (32 KiB chat body, a line feed every 60 bytes).
  bool recorded_string() {
    const char* const begin = ++p_;
    p_ = find_string_special(p_, end_);
    if (p_ == end_) return fail_truncated();
    if (*p_ == '"') {
      push(NodeKind::string, begin, p_++);
      return true;
    }
    const NodeIndex node = push(NodeKind::string, begin, begin);
    // build() made room: a decoded string and its length need less than the string, its quotes and what must follow it.
    ByteBuffer& buffer = tape_.decoded_;
    const std::size_t start = buffer.size();
    char* const text = buffer.end() + sizeof(std::uint32_t);
    char* out = text;
    std::memcpy(out, begin, static_cast<std::size_t>(p_ - begin));
    out += p_ - begin;
    const bool decoded = decode_rest(out);
    buffer.set_end(out);  // also what failed is there to be wiped
    if (!decoded) return false;
    ++p_;
    const auto length = static_cast<std::uint32_t>(out - text);
    std::memcpy(text - sizeof length, &length, sizeof length);
    tape_.nodes_[node].end = static_cast<std::uint32_t>(start);
    tape_.nodes_[node].decoded = true;
    return true;
  }

  bool decode_rest(char*& out) {
    while (*p_ != '"') {
      if (*p_ != '\\') return fail_control();
      const char* from = p_;
      if (!escape()) return false;
      decode_escape(from, out);  // inlined, its table look-up is the one that escape() has just made
      copy_to_special(p_, end_, out);
      if (p_ == end_) return fail_truncated();
    }
    return true;
  }

  bool fail_control() { return fail(Code::invalid_json, "a control character inside a string: escape it"); }

  bool escape() {
    if (end_ - p_ < 2) return fail_truncated();
    if (short_escape(p_[1]) != 0) {
      p_ += 2;
      return true;
    }
    if (p_[1] != 'u') return fail(Code::invalid_json, "an escape that JSON does not have");
    if (end_ - p_ < 6) return fail_truncated();
    const std::uint32_t unit = hex_unit(p_ + 2);
    if (unit > 0xffff) return fail(Code::invalid_json, "four hexadecimal digits are due after \\u");
    if (unit < 0xd800 || unit > 0xdfff) {
      p_ += 6;
      return true;
    }
    if (unit >= 0xdc00)
      return fail(Code::invalid_unicode, "a low surrogate without its high one: the text is no Unicode");
    if (end_ - p_ < 7) return fail_truncated();
    if (p_[6] != '\\' || (end_ - p_ > 7 && p_[7] != 'u')) {
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
      if (in_array) skip_plain_integers();
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

  // Over `123,45,` as long as a digit follows: what lists of token ids look like. Everything else is number()'s.
  void skip_plain_integers() noexcept {
    if constexpr (std::endian::native != std::endian::little) return;
    while (end_ - p_ >= 10) {
      std::uint64_t chunk = 0;
      const int count = leading_digits(p_, chunk);
      if (count == 0 || count == 8 || (count > 1 && *p_ == '0') || p_[count] != ',' || !is_digit(p_[count + 1])) return;
      p_ += count + 1;
    }
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
  decoded_.reserve_more(text.size() + kDecodeSlack + sizeof(std::uint32_t));
  return TapeBuilder(*this, start, max_depth, find_slot, context, error).run();
}

void JsonTape::reset(std::size_t keep_bytes) noexcept {
  decoded_.reset(keep_bytes);
  text_ = {};
  nodes_.clear();
  open_.clear();
  members_.fill(kNoNode);
  if (nodes_.capacity() * sizeof(Node) > keep_bytes) std::vector<Node>().swap(nodes_);
}

}  // namespace warmroute::ingest
