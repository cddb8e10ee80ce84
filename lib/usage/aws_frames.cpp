// See aws_frames.hpp.
#include "usage/aws_frames.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace warmroute::usage {
namespace {

std::uint32_t big_endian(const char* p) noexcept {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(p[i]);
  return value;
}

std::uint32_t crc_of(std::uint32_t before, std::string_view bytes) noexcept {
  return static_cast<std::uint32_t>(
      ::crc32(before, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

/// returns: bytes of a header's value by its type, without the length in front; -1: unknown type.
int fixed_size(unsigned char type) noexcept {
  switch (type) {
    case 0:
    case 1: return 0;  // true, false
    case 2: return 1;
    case 3: return 2;
    case 4: return 4;
    case 5:
    case 8: return 8;
    case 9: return 16;
    default: return -1;
  }
}

}  // namespace

void AwsFrames::feed(std::string_view bytes, AwsSink& sink) noexcept {
  const std::size_t all = bytes.size();
  while (!bytes.empty() && state_ != State::lost) {
    const std::string_view piece = bytes.substr(0, std::min<std::size_t>(left_, bytes.size()));
    bytes.remove_prefix(piece.size());
    left_ -= static_cast<std::uint32_t>(piece.size());
    consumed_ = all - bytes.size();
    if (state_ != State::checksum) crc_ = crc_of(crc_, piece);
    if (state_ == State::payload) {
      sink.frame_piece(piece);
    } else {
      const std::size_t n = std::min(piece.size(), kMostHeaderBytes - kept_);
      std::memcpy(buffer_.data() + kept_, piece.data(), n);
      kept_ += n;
    }
    if (left_ != 0) continue;
    switch (state_) {
      case State::prelude: prelude_done(); break;
      case State::headers:
      case State::payload: break;
      case State::checksum: {
        const bool intact = big_endian(buffer_.data()) == crc_;
        bad_crc_ = bad_crc_ || !intact;
        sink.frame_end(intact);
        state_ = State::prelude;
        left_ = 12;
        kept_ = 0;
        crc_ = 0;
        continue;
      }
      case State::lost: return;
    }
    // A part of no bytes is over at once.
    if (state_ == State::headers && left_ == 0) headers_done(sink);
    if (state_ == State::payload && left_ == 0) {
      state_ = State::checksum;
      left_ = 4;
      kept_ = 0;
    }
  }
}

void AwsFrames::prelude_done() noexcept {
  const std::uint32_t total = big_endian(buffer_.data());
  header_bytes_ = big_endian(buffer_.data() + 4);
  if (big_endian(buffer_.data() + 8) != crc_of(0, {buffer_.data(), 8})) {
    bad_crc_ = true;
    state_ = State::lost;
    return;
  }
  if (total > kMostFrameBytes || total < 16 || header_bytes_ > total - 16) {
    too_large_ = true;
    state_ = State::lost;
    return;
  }
  payload_bytes_ = total - 16 - header_bytes_;
  state_ = State::headers;
  left_ = header_bytes_;
  kept_ = 0;
}

void AwsFrames::headers_done(AwsSink& sink) noexcept {
  sink.frame_begin(is_event());
  state_ = State::payload;
  left_ = payload_bytes_;
}

/// Headers: u8 name length, name, u8 type, value; strings and bytes with a u16 length before them.
bool AwsFrames::is_event() const noexcept {
  const std::string_view headers{buffer_.data(), kept_};
  std::size_t at = 0;
  while (at < headers.size()) {
    const auto name_size = static_cast<std::size_t>(static_cast<unsigned char>(headers[at]));
    if (headers.size() - at < name_size + 2) return true;
    const std::string_view name = headers.substr(at + 1, name_size);
    const auto type = static_cast<unsigned char>(headers[at + 1 + name_size]);
    at += name_size + 2;
    const int fixed = fixed_size(type);
    std::size_t size = fixed < 0 ? 0 : static_cast<std::size_t>(fixed);
    if (fixed < 0) {
      if ((type != 6 && type != 7) || headers.size() - at < 2) return true;
      size = static_cast<std::size_t>(static_cast<unsigned char>(headers[at]) << 8 |
                                      static_cast<unsigned char>(headers[at + 1]));
      at += 2;
    }
    if (headers.size() - at < size) return true;
    const std::string_view value = headers.substr(at, size);
    at += size;
    if (name == ":message-type") return value == "event";
  }
  return true;
}

}  // namespace warmroute::usage
