// Digits are gathered into 63 bits with the exponent beside them; what is cut off is only remembered as rounding.
#include "usage/decimal.hpp"

#include <limits>

namespace warmroute::usage {
namespace {

constexpr std::uint64_t kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

struct Decimal {
  bool negative = false;
  std::uint64_t digits = 0;  // the first 18 significant ones
  int exponent = 0;          // value = digits x 10^exponent, plus what follows
  int next_digit = 0;        // the first digit that was cut off
  bool rest = false;         // a digit that is not 0 was cut off
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool read_exponent(const char*& p, const char* end, int& exponent) {
  ++p;
  bool negative = false;
  if (p != end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  if (p == end || !is_digit(*p)) return false;
  int value = 0;
  for (; p != end && is_digit(*p); ++p) value = value < 100'000 ? value * 10 + (*p - '0') : value;
  exponent += negative ? -value : value;
  return true;
}

bool read(std::string_view text, Decimal& d) {
  const char* p = text.data();
  const char* const end = p + text.size();
  if (p != end && *p == '-') {
    d.negative = true;
    ++p;
  }
  if (p == end || !is_digit(*p)) return false;
  if (*p == '0' && end - p > 1 && is_digit(p[1])) return false;
  int kept = 0;
  bool first_cut = true;
  const auto digit = [&](char c, bool fraction) {
    if (kept < 18) {
      d.digits = d.digits * 10 + static_cast<std::uint64_t>(c - '0');
      if (d.digits != 0) kept += 1;
      if (fraction) d.exponent -= 1;
      return;
    }
    if (first_cut) d.next_digit = c - '0';
    first_cut = false;
    d.rest = d.rest || c != '0';
    if (!fraction) d.exponent += 1;
  };
  for (; p != end && is_digit(*p); ++p) digit(*p, false);
  if (p != end && *p == '.') {
    if (++p == end || !is_digit(*p)) return false;
    for (; p != end && is_digit(*p); ++p) digit(*p, true);
  }
  if (p != end && (*p == 'e' || *p == 'E') && !read_exponent(p, end, d.exponent)) return false;
  return p == end;
}

}  // namespace

std::optional<std::int64_t> parse_scaled(std::string_view number, int scale) noexcept {
  Decimal d;
  if (!read(number, d)) return std::nullopt;
  int shift = d.exponent + scale;
  std::uint64_t value = d.digits;
  int last_cut = d.next_digit;
  if (value == 0) return 0;
  for (; shift < 0 && value != 0; ++shift) {
    last_cut = static_cast<int>(value % 10);
    value /= 10;
  }
  if (shift < 0) last_cut = 0;
  for (; shift > 0; --shift) {
    const auto next = static_cast<std::uint64_t>(last_cut);
    last_cut = 0;
    if (value > (kMost - next) / 10) return std::nullopt;
    value = value * 10 + next;
  }
  if (last_cut >= 5) value += 1;
  if (value > kMost) return std::nullopt;
  return d.negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> parse_count(std::string_view number) noexcept {
  // The usual spelling first: up to 18 digits and nothing else.
  if (!number.empty() && number.size() <= 18) {
    std::int64_t value = 0;
    std::size_t i = 0;
    while (i < number.size() && is_digit(number[i])) value = value * 10 + (number[i++] - '0');
    if (i == number.size() && (number[0] != '0' || i == 1)) return value;
  }
  Decimal d;
  if (!read(number, d) || d.rest || (d.negative && d.digits != 0)) return std::nullopt;
  std::uint64_t value = d.digits;
  if (value == 0) return 0;
  for (; d.exponent < 0; ++d.exponent) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  for (; d.exponent > 0; --d.exponent) {
    if (value > kMost / 10) return std::nullopt;
    value *= 10;
  }
  return static_cast<std::int64_t>(value);
}

}  // namespace warmroute::usage
