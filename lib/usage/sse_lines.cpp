// See sse_lines.hpp.
#include "usage/sse_lines.hpp"

#include <cstring>

#include "usage/json_scan.hpp"

namespace warmroute::usage {
namespace {

constexpr std::string_view kData = "data";

const char* find_line_end(const char* p, const char* end) noexcept { return find_either<'\n', '\r'>(p, end); }

/// returns: behind the line end at p.
const char* skip_line_end(const char* p, const char* end) noexcept {
  return *p == '\r' && end - p > 1 && p[1] == '\n' ? p + 2 : p + 1;
}

}  // namespace

void SseLines::feed(std::string_view bytes, SseSink& sink) noexcept {
  const char* p = bytes.data();
  const char* const begin = p;
  const char* const end = p + bytes.size();
  while (p != end) {
    if (after_cr_) {
      after_cr_ = false;
      if (*p == '\n') {
        ++p;
        continue;
      }
    }
    consumed_ = static_cast<std::size_t>(p - begin);
    switch (state_) {
      case State::line_start:
        if (const char* const next = fast_event(p, end, sink); next != nullptr) {
          p = next;
          break;
        }
        p = line_start(p, sink);
        break;
      case State::name: p = name(p, end, sink); break;
      case State::after_colon:
        begin_data(sink);
        state_ = State::data;
        if (*p == ' ') ++p;
        break;
      case State::data:
      case State::other: {
        const char* const stop = find_line_end(p, end);
        if (state_ == State::data && stop != p) sink.event_piece({p, static_cast<std::size_t>(stop - p)});
        p = stop;
        if (p != end) end_line(*p++);
        break;
      }
    }
  }
}

/// The usual case: "data: ...", a line end and an empty line, all here. returns: behind it; nullptr: it is something else.
const char* SseLines::fast_event(const char* p, const char* const end, SseSink& sink) noexcept {
  if (has_data_ || end - p < 8 || std::memcmp(p, "data:", 5) != 0) return nullptr;
  const char* const begin = p + (p[5] == ' ' ? 6 : 5);
  const char* stop = find_line_end(begin, end);
  if (stop == begin || end - stop < 2) return nullptr;
  const std::string_view data{begin, static_cast<std::size_t>(stop - begin)};
  stop = skip_line_end(stop, end);
  if (stop == end || (*stop != '\n' && *stop != '\r')) return nullptr;
  after_cr_ = *stop == '\r' && stop + 1 == end;
  consumed_ += static_cast<std::size_t>(stop - p) + 1;
  sink.whole_event(data);
  return skip_line_end(stop, end);
}

const char* SseLines::line_start(const char* p, SseSink& sink) noexcept {
  if (*p == '\n' || *p == '\r') {
    consumed_ += 1;
    after_cr_ = *p == '\r';
    if (has_data_) {
      has_data_ = false;
      sink.event_end();
    } else {
      sink.empty_line();
    }
    return p + 1;
  }
  state_ = State::name;
  name_size_ = 0;
  return p;
}

const char* SseLines::name(const char* p, const char* const end, SseSink& sink) noexcept {
  for (; p != end; ++p) {
    if (name_size_ < kData.size() && *p == kData[name_size_]) {
      name_size_ += 1;
    } else if (name_size_ == kData.size() && *p == ':') {
      state_ = State::after_colon;
      return p + 1;
    } else if (*p == '\n' || *p == '\r') {
      if (name_size_ == kData.size()) begin_data(sink);  // a line of "data" alone is empty data
      end_line(*p);
      return p + 1;
    } else {
      state_ = State::other;
      return p;
    }
  }
  return p;
}

void SseLines::begin_data(SseSink& sink) noexcept {
  if (has_data_) sink.event_piece("\n");
  has_data_ = true;
}

void SseLines::end_line(char c) noexcept {
  after_cr_ = c == '\r';
  state_ = State::line_start;
}

}  // namespace warmroute::usage
