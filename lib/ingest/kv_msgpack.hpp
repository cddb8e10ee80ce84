// Reads MessagePack in place. No value is copied, no length is believed before it is compared with what is left, and skipping needs
// neither recursion nor memory. After a fault the reader stands where the value began, so that it can be skipped.
// Why not msgpack-c: its unpacker makes an object of 24 bytes of every token, in a zone that it allocates, before anyone sees it. Here
// tokens go from the frame into the array that is hashed. This is on the path that must take 5 M blocks (80 M tokens) a second.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "warmroute/ingest/kv_events.hpp"

namespace warmroute::ingest {

// Faults of the bytes, not of a value: whoever meets one cannot know where the next event begins.
[[nodiscard]] constexpr bool is_structural(KvFault fault) noexcept {
  return fault == KvFault::truncated || fault == KvFault::length_overrun || fault == KvFault::reserved_byte ||
         fault == KvFault::depth || fault == KvFault::too_large;
}

enum class PackKind : std::uint8_t { end, nil, boolean, integer, real, text, bytes, array, map, extension, reserved };

// What a first byte says: how many bytes of number or length follow it, and, for containers and strings, what counts.
struct PackTag {
  PackKind kind;
  std::uint8_t extra;  // bytes after the tag: the number itself, or the length of what follows
};
constexpr PackTag describe_pack_tag(unsigned tag) noexcept {
  if (tag <= 0x7f || tag >= 0xe0) return {PackKind::integer, 0};
  if (tag <= 0x8f) return {PackKind::map, 0};
  if (tag <= 0x9f) return {PackKind::array, 0};
  if (tag <= 0xbf) return {PackKind::text, 0};
  switch (tag) {
    case 0xc0: return {PackKind::nil, 0};
    case 0xc1: return {PackKind::reserved, 0};
    case 0xc2:
    case 0xc3: return {PackKind::boolean, 0};
    case 0xc4:
    case 0xc5:
    case 0xc6: return {PackKind::bytes, static_cast<std::uint8_t>(1u << (tag - 0xc4))};
    case 0xc7:
    case 0xc8:
    case 0xc9: return {PackKind::extension, static_cast<std::uint8_t>(1u << (tag - 0xc7))};
    case 0xca: return {PackKind::real, 4};
    case 0xcb: return {PackKind::real, 8};
    case 0xd9:
    case 0xda:
    case 0xdb: return {PackKind::text, static_cast<std::uint8_t>(1u << (tag - 0xd9))};
    case 0xdc:
    case 0xdd: return {PackKind::array, static_cast<std::uint8_t>(tag == 0xdc ? 2 : 4)};
    case 0xde:
    case 0xdf: return {PackKind::map, static_cast<std::uint8_t>(tag == 0xde ? 2 : 4)};
    default: break;
  }
  if (tag >= 0xcc && tag <= 0xcf) return {PackKind::integer, static_cast<std::uint8_t>(1u << (tag - 0xcc))};
  if (tag >= 0xd0 && tag <= 0xd3) return {PackKind::integer, static_cast<std::uint8_t>(1u << (tag - 0xd0))};
  return {PackKind::extension, 0};  // fixext: 0xd4..0xd8
}

constexpr std::array<PackTag, 256> make_pack_tags() noexcept {
  std::array<PackTag, 256> tags{};
  for (unsigned tag = 0; tag < 256; ++tag) tags[tag] = describe_pack_tag(tag);
  return tags;
}
inline constexpr std::array<PackTag, 256> kPackTags = make_pack_tags();

class PackReader {
 public:
  static constexpr unsigned kMaxDepth = 32;

  PackReader() noexcept = default;
  explicit PackReader(std::string_view bytes) noexcept
      : begin_(reinterpret_cast<const std::uint8_t*>(bytes.data())), at_(begin_), end_(begin_ + bytes.size()) {}

  [[nodiscard]] const std::uint8_t* at() const noexcept { return at_; }
  [[nodiscard]] const std::uint8_t* end() const noexcept { return end_; }
  [[nodiscard]] std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  [[nodiscard]] std::uint64_t offset() const noexcept { return static_cast<std::uint64_t>(at_ - begin_); }
  [[nodiscard]] bool done() const noexcept { return at_ == end_; }
  void move_to(const std::uint8_t* at) noexcept { at_ = at; }
  [[nodiscard]] std::string_view since(const std::uint8_t* from) const noexcept {
    return {reinterpret_cast<const char*>(from), static_cast<std::size_t>(at_ - from)};
  }

  [[nodiscard]] PackKind peek() const noexcept { return done() ? PackKind::end : kPackTags[*at_].kind; }
  // returns: whether there was a nil, which is then behind the reader.
  [[nodiscard]] bool take_nil() noexcept {
    if (done() || *at_ != 0xc0) return false;
    ++at_;
    return true;
  }

  // One value of each kind. returns: none; bad_type or ext_type if it is something else; structural faults.
  KvFault read_array(std::uint32_t& count) noexcept { return read_container(PackKind::array, 0x90, 1, count); }
  KvFault read_map(std::uint32_t& pairs) noexcept { return read_container(PackKind::map, 0x80, 2, pairs); }
  KvFault read_text(std::string_view& text) noexcept {  // not checked for UTF-8
    // Keys and most values are short and lie within the payload; inline, they cost a quarter of an event of one block less.
    if (at_ < end_ && (*at_ & 0xe0) == 0xa0) [[likely]] {
      const std::size_t length = *at_ & 0x1f;
      if (length < left()) [[likely]] {
        text = {reinterpret_cast<const char*>(at_ + 1), length};
        at_ += 1 + length;
        return KvFault::none;
      }
    }
    return read_sized(PackKind::text, text);
  }
  KvFault read_bytes(std::string_view& bytes) noexcept;
  // Any integer: `negative` tells -1 from 2^64 - 1.
  KvFault read_integer(std::uint64_t& bits, bool& negative) noexcept {
    if (at_ < end_ && *at_ < 0x80) {
      bits = *at_++;
      negative = false;
      return KvFault::none;
    }
    return read_long_integer(bits, negative);
  }
  KvFault read_number(double& value) noexcept;
  // One value with everything in it, whatever it is.
  KvFault skip() noexcept;

  [[nodiscard]] static std::uint64_t load_be64(const std::uint8_t* p) noexcept {
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    return word;
  }

 private:
  [[nodiscard]] std::uint64_t number(const std::uint8_t* p, unsigned bytes) const noexcept {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value = value << 8 | p[i];
    return value;
  }
  [[nodiscard]] KvFault unexpected() const noexcept {
    const PackKind kind = peek();
    if (kind == PackKind::end) return KvFault::truncated;
    if (kind == PackKind::reserved) return KvFault::reserved_byte;
    return kind == PackKind::extension ? KvFault::ext_type : KvFault::bad_type;
  }
  KvFault read_container(PackKind kind, std::uint8_t fix, std::uint32_t least_bytes, std::uint32_t& count) noexcept;
  KvFault read_long_integer(std::uint64_t& bits, bool& negative) noexcept;
  KvFault read_sized(PackKind kind, std::string_view& out) noexcept;

  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
};

}  // namespace warmroute::ingest
