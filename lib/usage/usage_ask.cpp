// Finds where a request's body must say stream_options.include_usage. Only names and the extents of values are looked at.
#include <array>
#include <string>

#include "usage/answer_event.hpp"
#include "usage/json_scan.hpp"
#include "warmroute/usage/request_side.hpp"

namespace warmroute {
namespace usage {
namespace {

constexpr std::string_view kMember = R"("stream_options":{"include_usage":true},)";
constexpr std::string_view kObject = R"({"include_usage":true})";
constexpr std::string_view kInside = R"("include_usage":true)";
constexpr std::string_view kInsideFirst = R"("include_usage":true,)";
constexpr std::string_view kTrue = "true";

/// Walks over the members of one object.
class MemberWalk {
 public:
  MemberWalk(std::string_view text, std::size_t at) noexcept
      : begin_(text.data()), end_(begin_ + text.size()), p_(begin_ + at) {}

  /// returns: whether there is an object here.
  bool open() noexcept {
    space();
    if (p_ == end_ || *p_ != '{') return fail();
    ++p_;
    space();
    if (p_ == end_ || *p_ != '}') return true;
    over_ = empty_ = true;
    ++p_;
    space();
    return true;
  }
  /// returns: whether there is a next member; name() and value() are its.
  bool next() noexcept {
    if (over_ || failed_) return false;
    if (p_ == end_ || *p_ != '"') return fail();
    const char* const close = find_string_end(p_ + 1, end_);
    if (close == end_) return fail();
    name_.assign({p_ + 1, static_cast<std::size_t>(close - p_ - 1)});
    name_.unescape();
    p_ = close + 1;
    space();
    if (p_ == end_ || *p_ != ':') return fail();
    ++p_;
    space();
    value_ = p_;
    if (!skip_value()) return fail();
    value_size_ = static_cast<std::size_t>(p_ - value_);
    space();
    if (p_ == end_ || (*p_ != ',' && *p_ != '}')) return fail();
    over_ = *p_++ == '}';
    space();
    return true;
  }

  [[nodiscard]] std::string_view name() const noexcept { return name_.view(); }
  [[nodiscard]] std::string_view value() const noexcept { return {value_, value_size_}; }
  [[nodiscard]] std::size_t value_at() const noexcept { return static_cast<std::size_t>(value_ - begin_); }
  [[nodiscard]] bool empty() const noexcept { return empty_; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] std::size_t at() const noexcept { return static_cast<std::size_t>(p_ - begin_); }

 private:
  bool fail() noexcept {
    failed_ = true;
    return false;
  }
  void space() noexcept {
    while (p_ != end_ && is_json_space(*p_)) ++p_;
  }
  bool skip_value() noexcept {
    if (p_ == end_) return false;
    if (*p_ == '"') {
      p_ = find_string_end(p_ + 1, end_);
      if (p_ == end_) return false;
      ++p_;
      return true;
    }
    if (*p_ == '{' || *p_ == '[') return skip_nested();
    const char* const begin = p_;
    while (p_ != end_ && *p_ != ',' && *p_ != '}' && *p_ != ']' && !is_json_space(*p_)) ++p_;
    return p_ != begin;
  }
  bool skip_nested() noexcept {
    for (std::size_t depth = 0;;) {
      p_ = find_structure(p_, end_);
      if (p_ == end_) return false;
      const char c = *p_++;
      if (c == '"') {
        p_ = find_string_end(p_, end_);
        if (p_ == end_) return false;
        ++p_;
      } else if (c == '{' || c == '[') {
        depth += 1;
      } else if (--depth == 0) {
        return true;
      }
    }
  }

  const char* begin_;
  const char* end_;
  const char* p_;
  const char* value_ = nullptr;
  std::size_t value_size_ = 0;
  ShortText name_;
  bool over_ = false;
  bool empty_ = false;
  bool failed_ = false;
};

/// What is to be done inside stream_options. returns: false: it is no JSON.
bool ask_inside(std::string_view body, std::size_t at, UsageAsk& ask) noexcept {
  MemberWalk walk(body, at);
  if (!walk.open()) return false;
  bool found = false;
  while (walk.next()) {
    if (walk.name() != "include_usage") continue;
    found = true;
    ask.asked = walk.value() == kTrue;
    ask.splice = {walk.value_at(), walk.value().size(), kTrue};
  }
  if (walk.failed()) return false;
  if (!found) ask.splice = {at + 1, 0, walk.empty() ? kInside : kInsideFirst};
  if (ask.asked) ask.splice = {};
  return true;
}

}  // namespace
}  // namespace usage

using usage::ask_inside;
using usage::kMember;
using usage::kObject;
using usage::kTrue;
using usage::MemberWalk;

Result<UsageAsk> ask_for_usage(std::string_view body) {
  const std::size_t mark = body.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;
  MemberWalk walk(body, mark);
  if (!walk.open()) return Error{Code::not_an_object, "body: an object is wanted", walk.at()};
  const std::size_t inside = body.find('{', mark) + 1;
  UsageAsk ask;
  std::string_view options;
  std::size_t options_at = 0;
  while (walk.next()) {
    if (walk.name() == "stream") ask.stream = walk.value() == kTrue;
    if (walk.name() != "stream_options") continue;
    options = walk.value();
    options_at = walk.value_at();
  }
  if (walk.failed() || walk.at() != body.size())
    return Error{Code::invalid_json, "body: not one JSON object", walk.at()};
  if (!ask.stream) return ask;
  if (options.empty()) {
    ask.splice = {inside, 0, kMember};
  } else if (options.front() != '{') {
    ask.splice = {options_at, options.size(), kObject};
  } else if (!ask_inside(body, options_at, ask)) {
    return Error{Code::invalid_json, "body: stream_options is no JSON", options_at};
  }
  return ask;
}

std::string_view requested_tier(std::string_view body) noexcept {
  // Most bodies do not have the member, and few texts speak of it.
  if (body.find("ervice_tier\"") == std::string_view::npos && body.find("erviceTier\"") == std::string_view::npos)
    return {};
  const auto word = [](std::string_view value) -> std::string_view {
    const bool plain = value.size() > 2 && value.front() == '"' && value.find('\\') == std::string_view::npos;
    return plain ? value.substr(1, value.size() - 2) : std::string_view{};
  };
  std::string_view tier;
  MemberWalk walk(body, body.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0);
  if (!walk.open()) return {};
  while (walk.next()) {
    if (walk.name() == "service_tier") tier = word(walk.value());
    if (walk.name() != "serviceTier" || walk.value().front() != '{') continue;
    MemberWalk inner(body, walk.value_at());
    if (!inner.open()) return {};
    while (inner.next()) {
      if (inner.name() == "type") tier = word(inner.value());
    }
  }
  return walk.failed() ? std::string_view{} : tier;
}

std::string spliced(std::string_view body, const BodySplice& splice) {
  std::string out;
  out.reserve(body.size() - splice.removed + splice.inserted.size());
  out.append(body.substr(0, splice.offset)).append(splice.inserted).append(body.substr(splice.offset + splice.removed));
  return out;
}

}  // namespace warmroute
