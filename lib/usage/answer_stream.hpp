// One answer: tells the framing by its first bytes and leads each object of it to a sieve, what that said to the Answer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "usage/answer.hpp"
#include "usage/aws_frames.hpp"
#include "usage/base64_pieces.hpp"
#include "usage/event_shape.hpp"
#include "usage/json_sieve.hpp"
#include "usage/sse_lines.hpp"

namespace warmroute::usage {

enum class Framing : std::uint8_t { unknown, plain, events, array, frames, unreadable };

/// The answer inside a frame of InvokeModel: base64 of one JSON object.
class Inner final : public ByteSink {
 public:
  void clear() noexcept { used_ = false; }
  void begin_bytes() noexcept override {
    used_ = true;
    base64_.reset();
    sieve_.begin();
  }
  void bytes(std::string_view piece) noexcept override {
    base64_.decode(piece, [this](std::string_view decoded) { sieve_.feed(decoded); });
  }
  [[nodiscard]] bool whole() const noexcept { return used_ && sieve_.whole(); }
  [[nodiscard]] const AnswerEvent& event() const noexcept { return event_; }

 private:
  AnswerEvent event_;
  JsonSieve sieve_{event_};
  Base64Pieces base64_;
  bool used_ = false;
};

/// What only AWS event streams need.
struct FrameReader {
  AwsFrames frames;
  Inner inner;
};

class AnswerStream : SseSink, AwsSink {
 public:
  explicit AnswerStream(const MeterOptions& options) noexcept { reset(options); }
  AnswerStream(const AnswerStream&) = delete;
  AnswerStream& operator=(const AnswerStream&) = delete;
  virtual ~AnswerStream() = default;

  void reset(const MeterOptions& options) noexcept;
  /// returns: whether the first token ended in these bytes.
  bool feed(std::string_view bytes) noexcept;
  void finish() noexcept;

  [[nodiscard]] UsageReport report() const noexcept;
  [[nodiscard]] bool complete() const noexcept { return answer_.complete(); }
  // Both only rise.
  [[nodiscard]] std::uint64_t revision() const noexcept {
    return answer_.revision() + static_cast<std::uint64_t>(output_events_);
  }
  [[nodiscard]] std::optional<std::uint64_t> first_token_end() const noexcept { return first_end_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return fed_; }
  [[nodiscard]] Framing framing() const noexcept { return framing_; }

 private:
  void whole_event(std::string_view data) noexcept override;
  void event_piece(std::string_view data) noexcept override;
  void event_end() noexcept override;
  void frame_begin(bool is_event) noexcept override;
  void frame_piece(std::string_view payload) noexcept override;
  void frame_end(bool intact) noexcept override;

  std::string_view detect(std::string_view bytes) noexcept;
  void begin(Framing framing) noexcept;
  bool make_reader() noexcept;
  void read(std::string_view bytes) noexcept;
  void read_array(std::string_view bytes) noexcept;
  bool same_as_before(std::string_view data) noexcept;
  void learn_shape(std::string_view data) noexcept;
  void commit(const AnswerEvent& said) noexcept;
  void output_seen(std::size_t end_in_piece) noexcept;

  Answer answer_;
  AnswerEvent event_;
  JsonSieve sieve_{event_};
  SseLines lines_;
  std::unique_ptr<FrameReader> reader_;  // made with the first such stream: 6 KiB that few answers need
  Framing framing_ = Framing::unknown;
  bool finished_ = false;
  bool mark_possible_ = true;  // the first bytes may be a byte order mark
  bool in_element_ = false;    // of a JSON array
  bool array_over_ = false;
  bool first_in_event_ = true;  // no byte of the event's JSON has come
  bool event_is_json_ = false;  // it began with a brace
  bool frame_is_event_ = true;
  std::uint8_t mark_size_ = 0;
  std::uint8_t word_size_ = 0;
  std::array<char, 16> word_{};  // the start of an event that is not JSON: [DONE]
  std::uint64_t fed_ = 0;
  std::uint64_t piece_begin_ = 0;  // where in the body the bytes begin that are being read
  std::optional<std::uint64_t> first_end_;
  std::int64_t output_events_ = 0;
  // Content events of one stream have one shape, of a few choices or kinds of item a few.
  static constexpr std::size_t kShapes = 4;
  std::array<EventShape, kShapes> shapes_{};
  std::size_t last_shape_ = 0;
  std::size_t oldest_shape_ = 0;
};

}  // namespace warmroute::usage
