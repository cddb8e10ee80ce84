// Finds the bytes that matter to a JSON or line reader, sixteen at a time where the processor's base instruction set
// allows (SSE2), else one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace warmroute::usage {

inline bool is_json_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

#if defined(__SSE2__)
namespace scan {
inline __m128i load(const char* p) noexcept { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline __m128i is(__m128i block, char c) noexcept { return _mm_cmpeq_epi8(block, _mm_set1_epi8(c)); }
inline unsigned bits(__m128i mask) noexcept { return static_cast<unsigned>(_mm_movemask_epi8(mask)); }
}  // namespace scan
#endif

/// returns: the first of `a` or `b` at or behind p; end where there is none.
template <char a, char b>
const char* find_either(const char* p, const char* end) noexcept {
#if defined(__SSE2__)
  for (; end - p >= 16; p += 16) {
    const __m128i block = scan::load(p);
    const unsigned found = scan::bits(_mm_or_si128(scan::is(block, a), scan::is(block, b)));
    if (found != 0) return p + __builtin_ctz(found);
  }
#endif
  while (p != end && *p != a && *p != b) ++p;
  return p;
}

/// returns: the first quote or backslash.
inline const char* find_quote(const char* p, const char* end) noexcept { return find_either<'"', '\\'>(p, end); }

/// returns: the first quote, bracket or brace.
inline const char* find_structure(const char* p, const char* end) noexcept {
#if defined(__SSE2__)
  for (; end - p >= 16; p += 16) {
    const __m128i block = scan::load(p);
    const __m128i folded =
        _mm_or_si128(block, _mm_set1_epi8(0x20));  // '[' to '{' and ']' to '}'; nothing else to those
    const __m128i brackets = _mm_or_si128(scan::is(folded, '{'), scan::is(folded, '}'));
    const unsigned found = scan::bits(_mm_or_si128(brackets, scan::is(block, '"')));
    if (found != 0) return p + __builtin_ctz(found);
  }
#endif
  while (p != end && *p != '"' && *p != '{' && *p != '}' && *p != '[' && *p != ']') ++p;
  return p;
}

/// returns: how many bytes a and b have in common from their start, at most n.
inline std::size_t common_prefix(const char* a, const char* b, std::size_t n) noexcept {
  std::size_t i = 0;
#if defined(__SSE2__)
  for (; n - i >= 16; i += 16) {
    const unsigned equal = scan::bits(_mm_cmpeq_epi8(scan::load(a + i), scan::load(b + i)));
    if (equal != 0xFFFFu) return i + static_cast<std::size_t>(__builtin_ctz(~equal));
  }
#endif
  while (i != n && a[i] == b[i]) ++i;
  return i;
}

/// returns: the closing quote of a string, from somewhere inside it; end where it has none. `escaped`: the byte at p, and then
/// the one at end, belongs to a backslash before it. Text is full of escapes: those of one block cost no further look at it.
inline const char* find_closing_quote(const char* p, const char* end, bool& escaped) noexcept {
  if (p != end && escaped) {
    escaped = false;
    ++p;
  }
#if defined(__SSE2__)
  while (end - p >= 16) {
    const __m128i block = scan::load(p);
    unsigned quotes = scan::bits(scan::is(block, '"'));
    unsigned slashes = scan::bits(scan::is(block, '\\'));
    std::ptrdiff_t step = 16;
    while ((quotes | slashes) != 0) {
      const int at = __builtin_ctz(quotes | slashes);
      if ((quotes >> at & 1) != 0) return p + at;
      quotes &= ~0U << (at + 2);
      slashes &= ~0U << (at + 2);
      step = at == 15 ? 17 : 16;
    }
    if (step > end - p) {
      escaped = true;
      return end;
    }
    p += step;
  }
#endif
  for (; p != end && *p != '"'; ++p) {
    if (*p == '\\' && ++p == end) {
      escaped = true;
      return end;
    }
  }
  return p;
}

/// returns: the closing quote of a string whose inside begins at p; end where it has none.
inline const char* find_string_end(const char* p, const char* end) noexcept {
  bool escaped = false;
  return find_closing_quote(p, end, escaped);
}

inline bool is_number_byte(char c) noexcept {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

}  // namespace warmroute::usage
