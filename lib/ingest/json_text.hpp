// Strings and numbers of JSON text: finding the end of a string, decoding it, comparing it, reading a number exactly.
// Everything here but find_string_special() and copy_to_special() works on text that json_tape.cpp has already found to
// be valid.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warmroute::ingest {

/// Bytes that copy_to_special() may write past the text.
inline constexpr std::size_t kDecodeSlack = 16;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// returns: the first quote, backslash or control byte in [p, end), or `end`. The text may be anything.
inline const char* find_string_special(const char* p, const char* end) noexcept {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i control = _mm_set1_epi8(0x1f);
  while (end - p >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i hits = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                      _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
    const auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(hits));
    if (mask != 0) return p + std::countr_zero(mask);
    p += 16;
  }
#else
  constexpr std::uint64_t kOnes = 0x0101010101010101u;
  constexpr std::uint64_t kHighs = 0x8080808080808080u;
  while (end - p >= 8) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, p, 8);
    const std::uint64_t quote = bytes ^ (kOnes * '"');
    const std::uint64_t backslash = bytes ^ (kOnes * '\\');
    // A byte's high bit is set where the byte is zero (first two terms) or below 0x20; borrows may add false hits,
    // never hide one.
    const std::uint64_t hits =
        ((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash) | ((bytes - kOnes * 0x20) & ~bytes);
    if ((hits & kHighs) != 0) break;
    p += 8;
  }
#endif
  while (p < end && *p != '"' && *p != '\\' && static_cast<unsigned char>(*p) >= 0x20) ++p;
  return p;
}

/// returns: 0..15, or 255 for what is no hexadecimal digit.
constexpr std::uint32_t hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return 255;
}

/// returns: the 16-bit unit of four hexadecimal digits, or a value above 0xffff when one of them is none.
constexpr std::uint32_t hex_unit(const char* p) noexcept {
  std::uint32_t unit = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t digit = hex_digit(p[i]);
    if (digit > 15) return 0x10000;
    unit = (unit << 4) | digit;
  }
  return unit;
}

/// What the escapes of one letter stand for, by that letter; 0 for \u and for what is no escape.
inline constexpr std::array<char, 256> kShortEscapes = [] {
  std::array<char, 256> table{};
  table['"'] = '"';
  table['\\'] = '\\';
  table['/'] = '/';
  table['b'] = '\b';
  table['f'] = '\f';
  table['n'] = '\n';
  table['r'] = '\r';
  table['t'] = '\t';
  return table;
}();
constexpr char short_escape(char letter) noexcept { return kShortEscapes[static_cast<unsigned char>(letter)]; }

/// Decodes one escape at `p` (which is at its backslash) into `out`; both move on. The escape is valid.
inline void decode_escape(const char*& p, char*& out) noexcept {
  const char decoded = short_escape(p[1]);
  p += 2;
  if (decoded != 0) {
    *out++ = decoded;
    return;
  }
  std::uint32_t code = hex_unit(p);
  p += 4;
  if (code >= 0xd800 && code < 0xdc00) {
    code = 0x10000 + ((code - 0xd800) << 10) + (hex_unit(p + 2) - 0xdc00);
    p += 6;
  }
  const auto put = [&out](std::uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

/// Copies bytes from `p` to `out` up to the first quote, backslash or control byte (or `end`); both move on. `out` may
/// be written up to kDecodeSlack bytes further. As find_string_special(), for the pass that decodes while it checks.
inline void copy_to_special(const char*& p, const char* end, char*& out) noexcept {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i control = _mm_set1_epi8(0x1f);
  while (end - p >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
    const __m128i hits = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                      _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
    const auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(hits));
    if (mask != 0) {
      const int plain = std::countr_zero(mask);
      p += plain;
      out += plain;
      return;
    }
    p += 16;
    out += 16;
  }
  while (p < end && *p != '"' && *p != '\\' && static_cast<unsigned char>(*p) >= 0x20) *out++ = *p++;
#else
  const char* const special = find_string_special(p, end);
  std::memcpy(out, p, static_cast<std::size_t>(special - p));
  out += special - p;
  p = special;
#endif
}

/// returns: whether valid string text decodes to `wanted`. alloc: none, whatever the length.
inline bool decodes_to(std::string_view raw, std::string_view wanted) noexcept {
  const char* p = raw.data();
  const char* const end = p + raw.size();
  std::size_t at = 0;
  while (p < end) {
    char unit[4];
    char* out = unit;
    if (*p == '\\') {
      decode_escape(p, out);
    } else {
      *out++ = *p++;
    }
    const auto n = static_cast<std::size_t>(out - unit);
    if (wanted.size() - at < n || std::memcmp(wanted.data() + at, unit, n) != 0) return false;
    at += n;
  }
  return at == wanted.size();
}

/// returns: how many of the eight bytes at `p`, from the first on, are digits; `chunk` gets the bytes. Little-endian
/// hosts only.
inline int leading_digits(const char* p, std::uint64_t& chunk) noexcept {
  std::memcpy(&chunk, p, 8);
  const std::uint64_t value = chunk ^ 0x3030303030303030u;  // 0..9 for digits
  const std::uint64_t others =
      ((value + 0x7676767676767676u) | value) & 0x8080808080808080u;  // carries only run upwards
  return others == 0 ? 8 : std::countr_zero(others) / 8;
}
/// returns: the number that the first `count` (1..8) digits of such a chunk make.
inline std::uint32_t digits_value(std::uint64_t chunk, int count) noexcept {
  std::uint64_t v = (chunk ^ 0x3030303030303030u) << (64 - 8 * count);  // leading zeros, the last digit on top
  v = v * 10 + (v >> 8);
  v = ((v & 0x000000ff000000ffu) * 0x000f424000000064u + ((v >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u) >> 32;
  return static_cast<std::uint32_t>(v);
}

/// A valid JSON number taken apart without rounding: the digits from `first` to `last` (a '.' may lie between; neither
/// end is a zero) times 10^exponent, where `exponent` is the place of the last one. Zero has no digits.
struct Decimal {
  bool negative = false;
  bool huge_exponent = false;  ///< the exponent needs more than 15 digits; `exponent` is meaningless
  const char* first = nullptr;
  const char* last = nullptr;
  std::int64_t digits = 0;
  std::int64_t exponent = 0;

  [[nodiscard]] bool zero() const noexcept { return digits == 0; }
};
Decimal parse_decimal(std::string_view raw) noexcept;

/// Writes the one spelling that equal numbers share (10, 10.0 and 1e1 become 10) to `out`, which has room for
/// raw.size() + kNumberSlack bytes. returns: one past the last byte.
inline constexpr std::size_t kNumberSlack = 32;
char* write_number(std::string_view raw, char* out) noexcept;

enum class IntegerStatus : std::uint8_t { ok, fraction, overflow };
/// A valid JSON number as sign and magnitude. 128.0 and 1.28e2 are integers; nothing goes through a double.
struct Integer {
  IntegerStatus status = IntegerStatus::ok;
  bool negative = false;
  std::uint64_t magnitude = 0;
};
Integer parse_integer(std::string_view raw) noexcept;

}  // namespace warmroute::ingest
