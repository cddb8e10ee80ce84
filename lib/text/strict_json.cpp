#include "text/strict_json.hpp"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include <cmath>
#include <limits>

namespace warmroute::text {

std::string Path::text() const {
  std::string out = up == nullptr ? std::string{} : up->text();
  if (index >= 0) return out + "[" + std::to_string(index) + "]";
  if (!out.empty() && !name.empty()) out += '.';
  return out.append(name);
}

void Faults::add(const Path& at, std::string_view what) {
  if (count_++ >= most_) return;
  list_.push_back({at.text(), std::string(what)});
}

std::string Faults::text() const {
  std::string out;
  for (const Fault& each : list_)
    out.append(out.empty() ? "" : "; ").append(each.path).append(each.path.empty() ? "" : " ").append(each.what);
  return count_ <= most_ ? out : out + "; and " + std::to_string(count_ - most_) + " more";
}

Members::Members(Faults& faults, const Path& at, dom::element value, std::span<const std::string_view> names)
    : faults_(faults), at_(at), names_(names) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) {
    faults_.add(at_, "must be an object");
    return;
  }
  for (const auto field : object) {
    std::size_t i = 0;
    while (i < names_.size() && names_[i] != field.key) ++i;
    if (i == names_.size()) {
      // What a stranger calls a member may be anything, and long.
      faults_.add(path(field.key.substr(0, 64)), "is not a member of this");
    } else if (there_[i]) {
      fault(names_[i], "is there twice");
    } else {
      there_[i] = true;
      values_[i] = field.value;
    }
  }
}

const dom::element* Members::find(std::string_view name) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return there_[i] ? &values_[i] : nullptr;
  }
  return nullptr;
}

const dom::element* Members::need(std::string_view name) {
  const dom::element* const found = find(name);
  if (found == nullptr) fault(name, "is missing");
  return found;
}

void Members::text(std::string_view name, std::string& out, std::size_t most_bytes, bool may_be_empty) {
  const dom::element* const e = find(name);
  if (e == nullptr) return;
  std::string_view value;
  if (e->get(value) != simdjson::SUCCESS) return fault(name, "must be a string");
  if (value.empty() && !may_be_empty) return fault(name, "is empty: leave it out");
  if (value.size() > most_bytes) return fault(name, "is longer than " + std::to_string(most_bytes) + " bytes");
  out = value;
}

void Members::flag(std::string_view name, bool& out) {
  const dom::element* const e = find(name);
  if (e != nullptr && e->get(out) != simdjson::SUCCESS) fault(name, "must be true or false");
}

void Members::integer(std::string_view name, std::int64_t& out, std::int64_t low, std::int64_t high) {
  const dom::element* const e = find(name);
  if (e == nullptr) return;
  std::int64_t value = 0;
  if (e->get(value) == simdjson::SUCCESS && value >= low && value <= high) out = value;
  else fault(name, "must be an integer in " + std::to_string(low) + ".." + std::to_string(high));
}

void Members::unsigned_integer(std::string_view name, std::uint64_t& out) {
  const dom::element* const e = find(name);
  if (e != nullptr && e->get(out) != simdjson::SUCCESS) fault(name, "must be an integer in 0..2^64-1");
}

void Members::billionths(std::string_view name, std::int64_t& out) {
  const dom::element* const e = find(name);
  if (e == nullptr) return;
  constexpr std::int64_t kWhole = 1'000'000'000;
  std::int64_t whole = 0;
  double number = 0;
  std::string_view text;
  if (e->get(whole) == simdjson::SUCCESS) {
    if (!__builtin_mul_overflow(whole, kWhole, &out)) return;
    return fault(name, "is too large");
  }
  if (e->get(text) == simdjson::SUCCESS) {
    const auto value = billionths_of(text);
    if (!value) return fault(name, "must be a decimal number with nine places at most");
    out = *value;
    return;
  }
  if (e->get(number) != simdjson::SUCCESS) return fault(name, "must be a number");
  number *= 1e9;
  if (!(std::fabs(number) < static_cast<double>(kMostExactBillionths)))
    return fault(name, "has more digits than a number keeps: write it as a string");
  out = std::llround(number);
}

void Members::time(std::string_view name, WallNanos& out) {
  const dom::element* const e = find(name);
  if (e == nullptr) return;
  std::string_view text;
  absl::Time time;
  std::string why;
  // absl takes spaces and "infinite-past", too.
  if (e->get(text) != simdjson::SUCCESS || text.empty() || text.size() > 40 || text[0] < '0' || text[0] > '9' ||
      text.find(' ') != std::string_view::npos || !absl::ParseTime(absl::RFC3339_full, std::string(text), &time, &why))
    return fault(name, "must be a time like \"2026-01-31T12:00:00Z\"");
  const std::int64_t nanos = absl::ToUnixNanos(time);
  if (absl::FromUnixNanos(nanos) != time || nanos == std::numeric_limits<std::int64_t>::max())
    return fault(name, "must lie in the years 1678 to 2261 and have nine places at most");
  out = WallNanos{nanos};
}

void Members::local_time(std::string_view name, std::int64_t& out) {
  const dom::element* const e = find(name);
  if (e == nullptr) return;
  std::string_view text;
  absl::CivilSecond civil;
  if (e->get(text) != simdjson::SUCCESS || text.size() > 40 || !absl::ParseCivilTime(std::string(text), &civil))
    return fault(name, "must be a local time like \"2026-01-31T00:00:00\"");
  out = civil - absl::CivilSecond(1970);
}

void Members::hex32(std::string_view name, std::array<std::uint8_t, 32>& out) {
  const dom::element* const e = need(name);
  if (e == nullptr) return;
  std::string_view text;
  if (e->get(text) != simdjson::SUCCESS || !hex_bytes(text, out)) fault(name, "must be 64 hexadecimal digits");
}

bool Members::choose(std::string_view name, std::span<const std::string_view> words, std::size_t& index) {
  const dom::element* const e = find(name);
  if (e == nullptr) return false;
  std::string_view text;
  const bool is_text = e->get(text) == simdjson::SUCCESS;
  for (std::size_t i = 0; is_text && i < words.size(); ++i) {
    if (words[i] != text) continue;
    index = i;
    return true;
  }
  std::string wanted = "must be one of";
  for (const std::string_view word : words) wanted.append(" ").append(word);
  fault(name, wanted);
  return false;
}

std::optional<dom::array> Members::array(std::string_view name) {
  const dom::element* const e = find(name);
  dom::array out;
  if (e == nullptr) return std::nullopt;
  if (e->get(out) == simdjson::SUCCESS) return out;
  fault(name, "must be an array");
  return std::nullopt;
}

std::string billionths_text(std::int64_t value) {
  const bool negative = value < 0;
  std::string text =
      std::to_string(negative ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value));
  if (text.size() <= 9) text.insert(0, 10 - text.size(), '0');
  text.insert(text.size() - 9, 1, '.');
  while (text.back() == '0') text.pop_back();
  const bool whole = text.back() == '.';
  if (whole) text.pop_back();
  if (negative) text.insert(0, 1, '-');
  const bool exact = whole || (value < kMostExactBillionths && value > -kMostExactBillionths);
  return exact ? text : "\"" + text + "\"";
}

std::optional<std::int64_t> billionths_of(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  std::int64_t value = 0;
  int places = -1;
  bool digit = false;
  const auto push = [&](int d) {
    return !__builtin_mul_overflow(value, std::int64_t{10}, &value) &&
           !__builtin_sub_overflow(value, std::int64_t{d}, &value);
  };
  for (const char c : text) {  // below zero, where there is one more
    if (c == '.' && places < 0 && digit) {
      places = 0;
      continue;
    }
    if (c < '0' || c > '9' || places == 9 || !push(c - '0')) return std::nullopt;
    digit = true;
    places += places >= 0 ? 1 : 0;
  }
  if (!digit || places == 0) return std::nullopt;
  for (int i = std::max(places, 0); i < 9; ++i) {
    if (!push(0)) return std::nullopt;
  }
  if (negative) return value;
  if (value == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return -value;
}

std::string time_text(WallNanos time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", absl::FromUnixNanos(time.value), absl::UTCTimeZone());
}

std::string local_time_text(std::int64_t seconds) { return absl::FormatCivilTime(absl::CivilSecond(1970) + seconds); }

std::string hex_text(std::span<const std::uint8_t> bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) out.append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
  return out;
}

bool hex_bytes(std::string_view text, std::span<std::uint8_t> out) {
  if (text.size() != out.size() * 2) return false;
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return true;
}

}  // namespace warmroute::text
