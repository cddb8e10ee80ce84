// Base64 that comes in pieces. Bytes that are none of its alphabet (JSON's backslash before a slash) are passed over.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace warmroute::usage {

class Base64Pieces {
 public:
  void reset() noexcept { bits_ = 0; }

  /// Calls take(std::string_view) with what is decoded.
  template <class Taker>
  void decode(std::string_view text, Taker take) noexcept {
    std::array<char, 256> out;
    std::size_t n = 0;
    for (const char c : text) {
      const int value = value_of(c);
      if (value < 0) continue;
      group_ = (group_ << 6 | static_cast<std::uint32_t>(value)) & 0xFFFFFFu;
      bits_ += 6;
      if (bits_ < 8) continue;
      bits_ -= 8;
      out[n++] = static_cast<char>(static_cast<unsigned char>(group_ >> bits_));
      if (n != out.size()) continue;
      take(std::string_view{out.data(), n});
      n = 0;
    }
    if (n != 0) take(std::string_view{out.data(), n});
  }

 private:
  static int value_of(char c) noexcept {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  }

  std::uint32_t group_ = 0;
  unsigned bits_ = 0;
};

}  // namespace warmroute::usage
