/// SipHash-2-4 (Aumasson, Bernstein 2012): what may leave the process under a secret key. One key per kind of value, all from one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "warmroute/trace/decision_recorder.hpp"

namespace warmroute::trace {

class SipKey {
 public:
  SipKey() = default;
  SipKey(std::uint64_t k0, std::uint64_t k1) noexcept : k0_(k0), k1_(k1) {}
  explicit SipKey(const DecisionLogKey& key) noexcept : k0_(word(key.data(), 8)), k1_(word(key.data() + 8, 8)) {}

  [[nodiscard]] std::uint64_t of(std::string_view bytes) const noexcept {
    Sip s(k0_, k1_);
    const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
    std::size_t left = bytes.size();
    for (; left >= 8; left -= 8, data += 8) s.take(word(data, 8));
    return s.end(word(data, left) | static_cast<std::uint64_t>(bytes.size()) << 56);
  }
  /// As of the number's eight bytes, the least first.
  [[nodiscard]] std::uint64_t of(std::uint64_t number) const noexcept {
    Sip s(k0_, k1_);
    s.take(number);
    return s.end(std::uint64_t{8} << 56);
  }
  /// A key for values of one kind.
  [[nodiscard]] SipKey derive(std::string_view kind) const {
    return {of(std::string(kind) + "0"), of(std::string(kind) + "1")};
  }

 private:
  static std::uint64_t word(const unsigned char* data, std::size_t bytes) noexcept {
    std::uint64_t w = 0;
    for (std::size_t i = 0; i < bytes; ++i) w |= static_cast<std::uint64_t>(data[i]) << (8 * i);
    return w;
  }
  struct Sip {
    Sip(std::uint64_t k0, std::uint64_t k1) noexcept
        : a(k0 ^ 0x736F'6D65'7073'6575U),
          b(k1 ^ 0x646F'7261'6E64'6F6DU),
          c(k0 ^ 0x6C79'6765'6E65'7261U),
          d(k1 ^ 0x7465'6462'7974'6573U) {}
    static std::uint64_t turn(std::uint64_t x, int by) noexcept { return x << by | x >> (64 - by); }
    void round() noexcept {
      a += b, c += d;
      b = turn(b, 13) ^ a, d = turn(d, 16) ^ c;
      a = turn(a, 32);
      c += b, a += d;
      b = turn(b, 17) ^ c, d = turn(d, 21) ^ a;
      c = turn(c, 32);
    }
    void take(std::uint64_t m) noexcept {
      d ^= m;
      round();
      round();
      a ^= m;
    }
    std::uint64_t end(std::uint64_t last) noexcept {
      take(last);
      c ^= 0xFF;
      for (int i = 0; i < 4; ++i) round();
      return a ^ b ^ c ^ d;
    }
    std::uint64_t a, b, c, d;
  };

  std::uint64_t k0_ = 0, k1_ = 0;
};

}  // namespace warmroute::trace
