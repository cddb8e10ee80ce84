// Whether a sanitizer slows this build down, by GCC's name for it or by clang's: then tests take fewer rounds, since the rules are the same.
#pragma once

namespace warmroute::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// returns: `usual`, or the part of it that a sanitizer's run takes.
template <class Number>
constexpr Number rounds(Number usual, Number part) {
  return kSanitized ? usual / part : usual;
}

}  // namespace warmroute::test
