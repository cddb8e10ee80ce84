// JSON numbers without a double: exact equality (10 = 10.0 = 1e1) and no rounding beyond 2^53.
#include "ingest/json_text.hpp"

#include <algorithm>

namespace warmroute::ingest {

Decimal parse_decimal(std::string_view raw) noexcept {
  Decimal d;
  const char* p = raw.data();
  const char* const end = p + raw.size();
  if (p < end && *p == '-') {
    d.negative = true;
    ++p;
  }
  const char* const integer = p;
  while (p < end && is_digit(*p)) ++p;
  const std::int64_t integer_digits = p - integer;
  std::int64_t place = integer_digits;  // of the digit before the current one
  std::int64_t first_place = 0;
  std::int64_t last_place = 0;
  for (const char* q = integer; q < end && (is_digit(*q) || *q == '.'); ++q, p = q) {
    if (*q == '.') continue;
    --place;
    if (*q == '0') continue;
    if (d.first == nullptr) {
      d.first = q;
      first_place = place;
    }
    d.last = q;
    last_place = place;
  }
  if (d.first != nullptr) d.digits = first_place - last_place + 1;
  std::int64_t exponent = 0;
  if (p < end) {  // at 'e' or 'E'
    ++p;
    const bool down = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    while (p < end && *p == '0') ++p;
    d.huge_exponent = end - p > 15;
    for (; p < end && !d.huge_exponent; ++p) exponent = exponent * 10 + (*p - '0');
    if (down) exponent = -exponent;
  }
  d.exponent = last_place + exponent;
  return d;
}

namespace {
char* put_digits(const char* first, const char* last, char* out) noexcept {
  for (const char* p = first; p <= last; ++p) {
    if (*p != '.') *out++ = *p;
  }
  return out;
}

char* put_unsigned(std::uint64_t n, char* out) noexcept {
  char reversed[20];
  int count = 0;
  do {
    reversed[count++] = static_cast<char>('0' + n % 10);
    n /= 10;
  } while (n != 0);
  while (count > 0) *out++ = reversed[--count];
  return out;
}
}  // namespace

char* write_number(std::string_view raw, char* out) noexcept {
  const Decimal d = parse_decimal(raw);
  if (d.zero()) {
    *out++ = '0';
    return out;
  }
  if (d.huge_exponent) {  // spelled as it came: no other spelling of it is worth recognising
    std::memcpy(out, raw.data(), raw.size());
    return out + raw.size();
  }
  if (d.negative) *out++ = '-';
  char* const digits = out;
  out = put_digits(d.first, d.last, out);
  const std::int64_t point = d.digits + d.exponent;  // digits before the decimal point
  if (d.exponent >= 0 && point <= 21) {
    for (std::int64_t i = 0; i < d.exponent; ++i) *out++ = '0';
  } else if (d.exponent < 0 && point > 0) {
    std::memmove(digits + point + 1, digits + point, static_cast<std::size_t>(-d.exponent));
    digits[point] = '.';
    ++out;
  } else if (d.exponent < 0 && point > -6) {
    const std::int64_t shift = 2 - point;
    std::memmove(digits + shift, digits, static_cast<std::size_t>(d.digits));
    std::memset(digits, '0', static_cast<std::size_t>(shift));
    digits[1] = '.';
    out += shift;
  } else {
    *out++ = 'e';
    if (d.exponent < 0) *out++ = '-';
    out = put_unsigned(static_cast<std::uint64_t>(d.exponent < 0 ? -d.exponent : d.exponent), out);
  }
  return out;
}

Integer parse_integer(std::string_view raw) noexcept {
  Integer result;
  const Decimal d = parse_decimal(raw);
  if (d.zero()) return result;
  result.negative = d.negative;
  if (d.huge_exponent) {
    const bool small = raw.find("e-") != std::string_view::npos || raw.find("E-") != std::string_view::npos;
    result.status = small ? IntegerStatus::fraction : IntegerStatus::overflow;
    return result;
  }
  if (d.exponent < 0) {
    result.status = IntegerStatus::fraction;
    return result;
  }
  if (d.digits + d.exponent > 20) {
    result.status = IntegerStatus::overflow;
    return result;
  }
  char digits[24];
  char* const digits_end = put_digits(d.first, d.last, digits);
  const auto push = [&result](std::uint64_t digit) {
    if (__builtin_mul_overflow(result.magnitude, std::uint64_t{10}, &result.magnitude) ||
        __builtin_add_overflow(result.magnitude, digit, &result.magnitude)) {
      result.status = IntegerStatus::overflow;
    }
  };
  for (const char* p = digits; p < digits_end; ++p) push(static_cast<std::uint64_t>(*p - '0'));
  for (std::int64_t i = 0; i < d.exponent; ++i) push(0);
  return result;
}

}  // namespace warmroute::ingest
