// See json_sieve.hpp. A hand-made machine: simdjson wants whole documents, this one must stop and go on at any byte.
#include "usage/json_sieve.hpp"

#include "usage/event_shape.hpp"
#include "usage/json_scan.hpp"

namespace warmroute::usage {

void JsonSieve::begin(EventShape* shape) noexcept {
  event_.clear();
  shape_ = shape;
  state_ = State::value;
  member_ = {Take::object, Node::root, 0};
  escaped_ = too_deep_ = nested_string_ = name_cut_ = false;
  depth_ = 0;
  token_size_ = 0;
  nesting_ = 0;
}

const char* JsonSieve::feed(const char* p, const char* end) noexcept {
  while (p != end && state_ < State::done) {
    if (state_ <= State::after_value) {
      p = is_json_space(*p) ? p + 1 : structure(p, end);
    } else {
      p = inside(p, end);
    }
  }
  return p;
}

/// Between values, names and separators; p is at no space.
const char* JsonSieve::structure(const char* p, const char* const end) noexcept {
  switch (state_) {
    case State::value: return value(p, end);
    case State::first_element:
      if (*p != ']') return value(p, end);
      close(*p);
      return p + 1;
    case State::output_nested:
      if (*p != ']' && *p != '}') event_.output_seen();
      state_ = State::skip_nested;
      return p;
    case State::first_name:
      if (*p == '}') {
        close(*p);
        return p + 1;
      }
      return begin_name(p, end);
    case State::name: return begin_name(p, end);
    case State::colon:
      if (*p != ':') {
        fail();
        return p;
      }
      state_ = State::value;
      return p + 1;
    default: return after_value(p, end);
  }
}

/// Inside a string, a name, a number, or something to be skipped.
const char* JsonSieve::inside(const char* p, const char* const end) noexcept {
  switch (state_) {
    case State::skip_string: return skip_string(p, end);
    case State::skip_nested: return skip_nested(p, end);
    case State::text_string: return text_string(p, end);
    case State::byte_string: return byte_string(p, end);
    case State::in_name: return name(p, end);
    case State::token: return token(p, end);
    default:  // output_string
      if (*p != '"') event_.output_seen();
      state_ = State::skip_string;
      return p;
  }
}

// ---------------------------------------------------------------- values

const char* JsonSieve::value(const char* p, const char* const end) noexcept {
  const Take take = member_.take;
  const char c = *p;
  if (c == '"') {
    string_value();
    return p + 1;
  }
  if (c == '{' || c == '[') {
    const bool list = c == '[';
    if (take == Take::list && list) {
      event_.begin_list(member_.node);
      enter(member_.node, true);
      return p + 1;
    }
    const bool looks_into = take == Take::object || take == Take::quiet_object || take == Take::text_or_object ||
                            take == Take::output_or_object;
    if (looks_into && !list && member_.node != Node::none) {
      enter(member_.node, false);
      return p + 1;
    }
    if (take == Take::error) event_.error_seen();
    if (take == Take::count || (take == Take::object && list)) event_.wrong_type(member_);
    state_ = take == Take::output || take == Take::output_or_object ? State::output_nested : State::skip_nested;
    nested_string_ = escaped_ = false;
    nesting_ = 1;
    return p + 1;
  }
  token_size_ = 0;
  state_ = State::token;
  return token(p, end);
}

void JsonSieve::enter(Node node, bool list) noexcept {
  if (depth_ == kMostFrames) {  // the table of names is not as deep: cannot happen
    fail();
    return;
  }
  frames_[depth_++] = {node, list};
  if (list) {
    member_ = {Take::object, node, 0};
    state_ = State::first_element;
  } else {
    event_.begin_object(node);
    state_ = State::first_name;
  }
}

void JsonSieve::string_value() noexcept {
  escaped_ = false;
  state_ = State::skip_string;
  switch (member_.take) {
    case Take::text:
    case Take::text_or_object:
      text_ = &event_.begin_text(static_cast<Slot>(member_.id));
      state_ = State::text_string;
      return;
    case Take::output:
    case Take::output_or_object: state_ = State::output_string; return;
    case Take::bytes:
      if (bytes_ == nullptr) return;
      bytes_->begin_bytes();
      state_ = State::byte_string;
      return;
    case Take::error: event_.error_seen(); return;
    case Take::count:
    case Take::object: event_.wrong_type(member_); return;
    default: return;
  }
}

const char* JsonSieve::skip_string(const char* p, const char* const end) noexcept {
  const char* const begin = p;
  p = find_closing_quote(p, end, escaped_);
  if (p == end) return p;
  if (shape_ != nullptr) shape_->string_hole(begin, p);
  value_done();
  return p + 1;
}

const char* JsonSieve::text_string(const char* p, const char* const end) noexcept {
  const char* const begin = p;
  p = find_closing_quote(p, end, escaped_);
  text_->append({begin, static_cast<std::size_t>(p - begin)});
  if (p == end) return p;
  text_->unescape();
  value_done();
  return p + 1;
}

const char* JsonSieve::byte_string(const char* p, const char* const end) noexcept {
  const char* const begin = p;  // base64 has no quotes, so an escaped one is no concern
  p = find_either<'"', '"'>(p, end);
  bytes_->bytes({begin, static_cast<std::size_t>(p - begin)});
  if (p == end) return p;
  value_done();
  return p + 1;
}

const char* JsonSieve::token(const char* p, const char* const end) noexcept {
  const char* const begin = p;
  while (p != end && (is_number_byte(*p) || (*p >= 'a' && *p <= 'z'))) ++p;
  const std::string_view piece{begin, static_cast<std::size_t>(p - begin)};
  if (token_size_ == 0 && p != end) {  // the usual case: all of it is here
    if (shape_ != nullptr && member_.take == Take::skip && !piece.empty() && is_number_byte(*begin))
      shape_->number_hole(begin, p);
    token_done(piece);
    return p;
  }
  for (const char c : piece) {
    if (token_size_ == kLongestToken) break;
    token_[token_size_++] = c;
  }
  if (p != end) token_done({token_.data(), token_size_});
  return p;
}

void JsonSieve::token_done(std::string_view token) noexcept {
  const char c = token.empty() ? '\0' : token.front();
  if (c != '-' && !(c >= '0' && c <= '9') && c != 't' && c != 'f' && c != 'n') return fail();
  if (depth_ == 0) return fail();  // an answer is an object
  value_done();
  if (member_.take == Take::skip || member_.take == Take::output || member_.take == Take::output_or_object) return;
  // Longer than any count: none, wherever it was cut.
  event_.scalar(member_, token.size() >= kLongestToken ? std::string_view{"-"} : token);
}

const char* JsonSieve::skip_nested(const char* p, const char* const end) noexcept {
  while (p != end) {
    if (nested_string_) {
      p = find_closing_quote(p, end, escaped_);
      if (p == end) return p;
      nested_string_ = false;
      ++p;
      continue;
    }
    p = find_structure(p, end);
    if (p == end) return p;
    const char c = *p++;
    if (c == '"') {
      nested_string_ = true;
    } else if (c == '{' || c == '[') {
      if (++nesting_ > kMostNesting) {
        too_deep_ = true;
        fail();
        return p;
      }
    } else if (--nesting_ == 0) {
      value_done();
      return p;
    }
  }
  return p;
}

// ---------------------------------------------------------------- names and separators

const char* JsonSieve::begin_name(const char* p, const char* const end) noexcept {
  if (*p != '"') {
    fail();
    return p;
  }
  name_.clear();
  name_cut_ = escaped_ = false;
  state_ = State::in_name;
  return name(p + 1, end);
}

const char* JsonSieve::name(const char* p, const char* const end) noexcept {
  const char* const begin = p;
  if (!escaped_ && name_.empty()) {  // the usual case: all of it is here
    const char* const quote = find_quote(p, end);
    if (quote != end && *quote == '"') {
      name_done({begin, static_cast<std::size_t>(quote - begin)});
      if (quote + 1 != end && quote[1] == ':') {
        state_ = State::value;
        return quote + 2 != end && !is_json_space(quote[2]) ? value(quote + 2, end) : quote + 2;
      }
      return quote + 1;
    }
  }
  bool has_end = false;
  for (; p != end; ++p) {
    if (escaped_) {
      escaped_ = false;
    } else if (*p == '\\') {
      escaped_ = true;
    } else if (*p == '"') {
      has_end = true;
      break;
    }
  }
  const std::string_view piece{begin, static_cast<std::size_t>(p - begin)};
  name_cut_ = name_cut_ || name_.view().size() + piece.size() > 128;
  name_.append(piece);
  if (!has_end) return p;
  name_.unescape();
  name_done(name_cut_ ? std::string_view{} : name_.view());
  return p + 1;
}

void JsonSieve::name_done(std::string_view name) noexcept {
  member_ = name.size() > kLongestName ? Member{} : find_member(frames_[depth_ - 1u].node, name);
  state_ = State::colon;
}

const char* JsonSieve::after_value(const char* p, const char* const end) noexcept {
  const Frame& frame = frames_[depth_ - 1u];
  if (*p == ',') {
    if (frame.list) {
      member_ = {Take::object, frame.node, 0};
      state_ = State::value;
      return p + 1;
    }
    state_ = State::name;
    return p + 1 != end && p[1] == '"' ? begin_name(p + 1, end) : p + 1;
  }
  close(*p);
  return state_ == State::failed ? p : p + 1;
}

void JsonSieve::close(char c) noexcept {
  const Frame frame = frames_[depth_ - 1u];
  if (c != (frame.list ? ']' : '}')) return fail();
  depth_ -= 1;
  if (!frame.list) event_.end_object(frame.node);
  value_done();
}

}  // namespace warmroute::usage
