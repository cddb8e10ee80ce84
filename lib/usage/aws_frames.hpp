// AWS event streams (application/vnd.amazon.eventstream) as their bytes come. A frame's payload is handed on at once, and
// whether its checksum was right when it ends.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace warmroute::usage {

class AwsSink {
 public:
  virtual void frame_begin(bool is_event) noexcept = 0;  ///< false: an exception or error
  virtual void frame_piece(std::string_view payload) noexcept = 0;
  virtual void frame_end(bool intact) noexcept = 0;

 protected:
  ~AwsSink() = default;
};

class AwsFrames {
 public:
  void reset() noexcept { *this = AwsFrames{}; }
  void feed(std::string_view bytes, AwsSink& sink) noexcept;
  /// The lengths cannot be trusted any more: nothing further is read.
  [[nodiscard]] bool lost() const noexcept { return state_ == State::lost; }
  [[nodiscard]] bool bad_crc() const noexcept { return bad_crc_; }
  [[nodiscard]] bool too_large() const noexcept { return too_large_; }
  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }

 private:
  enum class State : std::uint8_t { prelude, headers, payload, checksum, lost };
  static constexpr std::uint32_t kMostFrameBytes = 24u << 20;  // AWS's own limit
  static constexpr std::size_t kMostHeaderBytes = 1'024;       // of which a frame's kind is read

  void prelude_done() noexcept;
  void headers_done(AwsSink& sink) noexcept;
  [[nodiscard]] bool is_event() const noexcept;

  State state_ = State::prelude;
  bool bad_crc_ = false;
  bool too_large_ = false;
  std::uint32_t crc_ = 0;
  std::uint32_t left_ = 12;  // bytes of this state
  std::uint32_t header_bytes_ = 0;
  std::uint32_t payload_bytes_ = 0;
  std::size_t kept_ = 0;
  std::size_t consumed_ = 0;
  std::array<char, kMostHeaderBytes> buffer_{};
};

}  // namespace warmroute::usage
