/// Numbers, texts and hashes as a decision log's bytes (codec.hpp), written and read.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/types.hpp"

namespace warmroute::trace::decisions {

inline void put(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
inline void put_signed(std::string& out, std::int64_t value) {
  put(out, static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
}
inline void put_fixed(std::string& out, std::uint64_t value, std::size_t bytes = 8) {
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}
inline void put_real(std::string& out, double value) { put_fixed(out, std::bit_cast<std::uint64_t>(value)); }
inline void put_text(std::string& out, std::string_view text) {
  put(out, text.size());
  out += text;
}
inline void put_id(std::string& out, ReplicaId id) {
  put(out, id.slot);
  put(out, id.generation);
}
template <class Hash>
void put_hashes(std::string& out, const std::vector<Hash>& hashes) {
  put(out, hashes.size());
  static_assert(sizeof(Hash) == 8);
  if constexpr (std::endian::native == std::endian::little) {
    out.append(reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(Hash));
  } else {
    for (const Hash h : hashes) put_fixed(out, static_cast<std::uint64_t>(h));
  }
}

/// Reads from the front; after a fault everything reads as nothing.
class Source {
 public:
  explicit Source(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return fail();
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      if (shift == 63 && byte > 1) return fail();
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  std::int64_t whole() noexcept {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
  }
  /// A count that can be added to others.
  std::int64_t tokens() noexcept {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    const std::int64_t value = whole();
    return value >= -kMost && value <= kMost ? value : static_cast<std::int64_t>(fail());
  }
  std::uint64_t fixed(std::size_t size = 8) noexcept {
    if (bytes_.size() < size) return fail();
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes_[i])) << (8 * i);
    bytes_.remove_prefix(size);
    return value;
  }
  double real() noexcept { return std::bit_cast<double>(fixed()); }
  bool flag() noexcept { return below(2) != 0; }
  /// An enum's number. `count`: how many there are.
  std::uint64_t below(std::uint64_t count) noexcept {
    const std::uint64_t value = number();
    return value < count ? value : fail();
  }
  std::uint32_t small() noexcept { return static_cast<std::uint32_t>(below(std::uint64_t{1} << 32)); }
  void text(std::string& out) {
    const std::uint64_t size = number();
    if (size > bytes_.size()) {
      fail();
      return;
    }
    out.assign(bytes_.substr(0, static_cast<std::size_t>(size)));
    bytes_.remove_prefix(static_cast<std::size_t>(size));
  }
  ReplicaId id() noexcept {
    ReplicaId id;
    id.slot = small();
    id.generation = small();
    return id;
  }
  /// returns: a count of elements of so many bytes at least that the rest can hold.
  std::size_t count(std::size_t bytes_each) noexcept {
    const std::uint64_t n = number();
    return static_cast<std::size_t>(n <= bytes_.size() / bytes_each ? n : fail());
  }
  template <class Hash>
  void hashes(std::vector<Hash>& out) {
    const std::size_t n = count(8);
    out.resize(n);
    for (Hash& h : out) h = Hash{fixed()};
  }
  [[nodiscard]] bool fine() const noexcept { return fine_; }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size(); }

 private:
  std::uint64_t fail() noexcept {
    fine_ = false;
    bytes_ = {};
    return 0;
  }
  std::string_view bytes_;
  bool fine_ = true;
};

}  // namespace warmroute::trace::decisions
