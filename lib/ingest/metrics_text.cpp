// One line feed at the end of what is read, which no rule below steps over, spares the check for the end at every byte.
#include "ingest/metrics_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include <absl/strings/charconv.h>
#include <simdjson.h>

namespace warmroute::metrics {
namespace {

enum Class : std::uint8_t {
  kNameStart = 1,
  kNameRest = 2,
  kLabelStart = 4,
  kLabelRest = 8,
  kDigit = 16,
  kBlank = 32,
  kStringStop = 64,
};

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t c = 0; c < 256; ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    unsigned bits = 0;
    if (letter) bits |= kNameStart | kNameRest | kLabelStart | kLabelRest;
    if (digit) bits |= kNameRest | kLabelRest | kDigit;
    if (c == ':') bits |= kNameStart | kNameRest;
    if (c == ' ' || c == '\t') bits |= kBlank;
    if (c == '"' || c == '\\' || c == '\n') bits |= kStringStop;
    classes[c] = static_cast<std::uint8_t>(bits);
  }
  return classes;
}
constexpr auto kClasses = make_classes();

inline bool is(char c, Class wanted) noexcept { return (kClasses[static_cast<unsigned char>(c)] & wanted) != 0; }
inline const char* skip(const char* p, Class wanted) noexcept {
  while (is(*p, wanted)) ++p;
  return p;
}
inline std::string_view between(const char* begin, const char* end) noexcept {
  return {begin, static_cast<std::size_t>(end - begin)};
}
// One CR before the LF belongs to the line's end.
inline bool at_line_end(const char* p) noexcept { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }

// `p` behind the opening quote. returns: the closing quote, or nullptr.
inline const char* string_end(const char* p) noexcept {
  for (;; p += 2) {
    while (!is(*p, kStringStop)) ++p;
    if (*p == '"') return p;
    if (*p == '\n' || (p[1] != '\\' && p[1] != '"' && p[1] != 'n')) return nullptr;
  }
}

const char* word_end(const char* p) noexcept {
  const auto starts = [p](const char* word) {
    const char* q = p;
    for (; *word != 0; ++word, ++q) {
      if ((*q | 0x20) != *word) return false;
    }
    return true;
  };
  if (starts("infinity")) return p + 8;
  if (starts("inf") || starts("nan")) return p + 3;
  return nullptr;
}

// returns: behind the number that begins at `p`, or nullptr. What follows is not looked at.
inline const char* number_end(const char* p) noexcept {
  if (*p == '-' || *p == '+') ++p;
  const char* const digits = p;
  p = skip(p, kDigit);
  std::ptrdiff_t count = p - digits;
  if (*p == '.') {
    const char* const fraction = ++p;
    p = skip(p, kDigit);
    count += p - fraction;
    if (count == 0) return nullptr;
  } else if (count == 0) {
    return word_end(p);
  }
  if (*p == 'e' || *p == 'E') {
    ++p;
    if (*p == '-' || *p == '+') ++p;
    if (!is(*p, kDigit)) return nullptr;
    p = skip(p, kDigit);
  }
  return p;
}

}  // namespace

bool is_number(std::string_view text) noexcept {
  std::array<char, 64> copy{};  // a sentinel behind it; what is longer is no bound of a bucket
  if (text.size() >= copy.size()) return false;
  std::copy(text.begin(), text.end(), copy.begin());
  return !text.empty() && number_end(copy.data()) == copy.data() + text.size();
}

double number_value(std::string_view text) noexcept {
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  const double sign = negative ? -1.0 : 1.0;
  if ((text.front() | 0x20) == 'i') return sign * std::numeric_limits<double>::infinity();
  if ((text.front() | 0x20) == 'n') return std::numeric_limits<double>::quiet_NaN();
  // Most are small integers, which Python writes with ".0".
  std::uint64_t integer = 0;
  const std::size_t digits = text.ends_with(".0") ? text.size() - 2 : text.size();
  bool plain = digits >= 1 && digits <= 19;  // below 2^64, and rounded to a double once
  for (std::size_t i = 0; plain && i < digits; ++i) {
    plain = is(text[i], kDigit);
    integer = integer * 10 + static_cast<unsigned>(text[i] - '0');
  }
  if (plain) return sign * static_cast<double>(integer);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return sign * value;
  // Too large and too small are one error there; Abseil leaves the nearest value.
  absl::from_chars(text.data(), text.data() + text.size(), value);
  return sign * (std::fabs(value) > 1 ? std::numeric_limits<double>::infinity() : 0.0);
}

void append_unescaped(std::string_view value, std::string& out) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '\\' || i + 1 == value.size()) out += value[i];
    else out += value[++i] == 'n' ? '\n' : value[i];
  }
}

TextReader::TextReader(std::size_t max_labels, std::size_t max_line_bytes)
    : labels_(2 * max_labels), max_line_bytes_(max_line_bytes) {}

void TextReader::start(std::string_view page) {
  mark_ = page.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  page.remove_prefix(mark_);
  page_ = page;
  malformed_ = well_formed_ = 0;
  first_malformed_ = 0;
  dirty_ = !clean(page);
  const std::size_t feed = page.rfind('\n');
  const std::size_t lines = feed == std::string_view::npos ? 0 : feed + 1;
  cut_ = page.substr(lines);
  at_ = page.data();
  end_ = page.data() + lines;
}

bool TextReader::clean(std::string_view line) const noexcept {
  return line.empty() ||
         (std::memchr(line.data(), 0, line.size()) == nullptr && simdjson::validate_utf8(line.data(), line.size()));
}

bool TextReader::next(Sample& sample) {
  for (;;) {
    if (at_ == end_) {
      if (cut_.empty()) return false;
      tail_.assign(cut_).push_back('\n');
      cut_ = {};
      at_ = tail_.data();
      end_ = tail_.data() + tail_.size();
    }
    const char* const begin = at_;
    switch (read_line(sample)) {
      case Line::sample: ++well_formed_; return true;
      case Line::other: break;
      case Line::end: cut_ = {}; return false;
      case Line::malformed:
        if (malformed_++ == 0) {
          const bool tail = begin == tail_.data();
          first_malformed_ =
              mark_ + (tail ? page_.size() + 1 - tail_.size() : static_cast<std::size_t>(begin - page_.data()));
        }
        break;
    }
  }
}

TextReader::Line TextReader::read_line(Sample& sample) {
  const char* const begin = at_;
  if (dirty_) {
    const auto* feed = static_cast<const char*>(std::memchr(begin, '\n', static_cast<std::size_t>(end_ - begin)));
    if (!clean(between(begin, feed))) {
      at_ = feed + 1;
      return Line::malformed;
    }
  }
  const char* p = skip(begin, kBlank);
  if (*p == '#') return read_comment(p);
  if (at_line_end(p)) {
    at_ = p + (*p == '\r' ? 2 : 1);
    return Line::other;
  }
  if (read_sample(p, sample)) {
    return static_cast<std::size_t>(at_ - begin) > max_line_bytes_ ? Line::malformed : Line::sample;
  }
  at_ = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end_ - p))) + 1;
  return Line::malformed;
}

TextReader::Line TextReader::read_comment(const char* hash) {
  const auto* feed = static_cast<const char*>(std::memchr(hash, '\n', static_cast<std::size_t>(end_ - hash)));
  at_ = feed + 1;
  std::string_view line = between(hash, feed);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const bool eof = line == "# EOF";
  if (eof || line.starts_with("# HELP ") || line.starts_with("# TYPE ") || line.starts_with("# UNIT ")) ++well_formed_;
  if (!eof) return Line::other;
  at_ = end_;
  return Line::end;
}

// `p` at the first byte that is no blank. Moves to the next line if all of this one is a sample.
bool TextReader::read_sample(const char* p, Sample& sample) {
  std::string_view name;
  label_count_ = 0;
  bool apart = false;  // the number must be apart from a bare name
  if (*p != '{') {
    if (!is(*p, kNameStart)) return false;
    const char* const begin = p;
    p = skip(p + 1, kNameRest);
    name = between(begin, p);
    apart = is(*p, kBlank);
    p = skip(p, kBlank);
  }
  if (*p == '{') {
    p = read_labels(p + 1, 0, name);
    if (p == nullptr || name.empty()) return false;
    p = skip(p, kBlank);
  } else if (!apart) {
    return false;
  }
  const char* const number = p;
  p = number_end(p);
  if (p == nullptr) return false;
  sample.name = name;
  sample.labels = {labels_.data(), label_count_};
  sample.number = between(number, p);
  return read_rest(p);
}

// Behind the value: a timestamp, and in OpenMetrics an exemplar: # {labels} value [timestamp].
bool TextReader::read_rest(const char* p) {
  const auto blanks = [&p] {
    const char* const before = p;
    p = skip(p, kBlank);
    return p != before;
  };
  const auto number = [&p] { return (p = number_end(p)) != nullptr; };
  bool apart = blanks();
  if (!at_line_end(p) && *p != '#') {
    if (!apart || !number()) return false;
    apart = blanks();
  }
  if (*p == '#' && apart) {
    ++p;
    blanks();
    std::string_view no_name;
    if (*p != '{' || (p = read_labels(p + 1, label_count_, no_name)) == nullptr || !no_name.empty()) return false;
    blanks();
    if (!number()) return false;
    apart = blanks();
    if (!at_line_end(p)) {
      if (!apart || !number()) return false;
      blanks();
    }
  }
  if (!at_line_end(p)) return false;
  at_ = p + (*p == '\r' ? 2 : 1);
  return true;
}

// `p` behind the brace. Labels go to labels_[first...]. A quoted name without value is the metric's. returns: behind
// the closing brace, or nullptr.
const char* TextReader::read_labels(const char* p, std::size_t first, std::string_view& name) {
  const std::size_t room = first + labels_.size() / 2;
  std::size_t count = first;
  for (p = skip(p, kBlank); *p != '}';) {
    const char* begin = p;
    const bool quoted = *p == '"';
    std::string_view key;
    if (quoted) {
      p = string_end(++begin);
      if (p == nullptr || p == begin) return nullptr;
      key = between(begin, p++);
    } else {
      if (!is(*p, kLabelStart)) return nullptr;
      p = skip(p + 1, kLabelRest);
      key = between(begin, p);
    }
    p = skip(p, kBlank);
    if (*p == '=') {
      p = skip(p + 1, kBlank);
      if (*p != '"') return nullptr;
      const char* const value = p + 1;
      p = string_end(value);
      if (p == nullptr || count == room) return nullptr;
      for (std::size_t i = first; i < count; ++i) {
        if (labels_[i].name == key) return nullptr;  // given twice
      }
      labels_[count++] = {key, between(value, p)};
      p = skip(p + 1, kBlank);
    } else if (quoted && name.empty()) {
      name = key;
    } else {
      return nullptr;
    }
    if (*p == ',') p = skip(p + 1, kBlank);  // one may stand behind the last label
    else if (*p != '}') return nullptr;
  }
  if (first == 0) label_count_ = count;
  return p + 1;
}

}  // namespace warmroute::metrics
