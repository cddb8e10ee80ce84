// Server-sent events as their bytes come: finds the data of each event and hands it on in pieces, keeps nothing. Line
// ends are LF, CRLF or CR; a CR at the end of one piece and the LF at the start of the next are one end.
#pragma once

#include <cstdint>
#include <string_view>

namespace warmroute::usage {

/// Where the events go.
class SseSink {
 public:
  /// An event with one line of data, all of it here.
  virtual void whole_event(std::string_view data) noexcept = 0;
  /// A piece of the data of an event; lines after the first are preceded by a piece of one LF.
  virtual void event_piece(std::string_view data) noexcept = 0;
  /// The event of the pieces so far is over.
  virtual void event_end() noexcept = 0;
  /// An empty line, and no data since the one before.
  virtual void empty_line() noexcept {}

 protected:
  ~SseSink() = default;
};

class SseLines {
 public:
  void reset() noexcept { *this = SseLines{}; }
  void feed(std::string_view bytes, SseSink& sink) noexcept;
  /// returns: whether an event was begun and not ended.
  [[nodiscard]] bool in_event() const noexcept { return has_data_; }
  /// returns: inside feed, how many bytes of it are consumed when an event ends.
  [[nodiscard]] std::size_t consumed() const noexcept { return consumed_; }

 private:
  enum class State : std::uint8_t { line_start, name, after_colon, data, other };

  const char* fast_event(const char* p, const char* end, SseSink& sink) noexcept;
  const char* line_start(const char* p, SseSink& sink) noexcept;
  const char* name(const char* p, const char* end, SseSink& sink) noexcept;
  void begin_data(SseSink& sink) noexcept;
  void end_line(char c) noexcept;

  State state_ = State::line_start;
  std::uint8_t name_size_ = 0;  // how much of "data" the line began with
  bool after_cr_ = false;       // an LF here belongs to the CR before it
  bool has_data_ = false;
  std::size_t consumed_ = 0;
};

}  // namespace warmroute::usage
