// See answer_stream.hpp.
#include "usage/answer_stream.hpp"

#include <new>

#include "usage/json_scan.hpp"

namespace warmroute::usage {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8, at the start of some streams
constexpr std::string_view kDone = "[DONE]";

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

void AnswerStream::reset(const MeterOptions& options) noexcept {
  answer_.reset(options);
  event_.clear();
  sieve_.give_bytes_to(nullptr);
  lines_.reset();
  framing_ = Framing::unknown;
  finished_ = in_element_ = array_over_ = event_is_json_ = false;
  mark_possible_ = first_in_event_ = frame_is_event_ = true;
  mark_size_ = word_size_ = 0;
  fed_ = piece_begin_ = 0;
  first_end_.reset();
  output_events_ = 0;
  for (EventShape& shape : shapes_) shape.forget();
  last_shape_ = oldest_shape_ = 0;
}

// ---------------------------------------------------------------- framing

/// returns: what of `bytes` belongs to the body proper; the framing is known then, or nothing is left.
std::string_view AnswerStream::detect(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const char c = bytes.front();
    if (mark_possible_ && mark_size_ < kMark.size() && c == kMark[mark_size_]) {
      mark_size_ += 1;
      bytes.remove_prefix(1);
      continue;
    }
    mark_possible_ = false;
    if (is_json_space(c)) {
      bytes.remove_prefix(1);
      continue;
    }
    switch (static_cast<unsigned char>(c)) {
      case '{': begin(Framing::plain); break;
      case '[': begin(Framing::array); break;
      case 0x00: begin(Framing::frames); break;  // the length of a frame, always below 16 MiB
      case 0x1F:                                 // gzip
      case 0x28:                                 // zstd
      case 0x78:                                 // zlib
        answer_.flag(UsageAnomaly::compressed);
        begin(Framing::unreadable);
        break;
      default: begin(Framing::events);
    }
    return bytes;
  }
  return bytes;
}

void AnswerStream::begin(Framing found) noexcept {
  framing_ = found;
  if (found == Framing::plain) sieve_.begin();
  if (found != Framing::frames || make_reader()) return;
  answer_.flag(UsageAnomaly::too_large);
  framing_ = Framing::unreadable;
}

/// returns: whether there is memory for it.
bool AnswerStream::make_reader() noexcept {
  if (reader_ == nullptr) reader_.reset(new (std::nothrow) FrameReader);
  if (reader_ == nullptr) return false;
  reader_->frames.reset();
  reader_->inner.clear();
  sieve_.give_bytes_to(&reader_->inner);
  return true;
}

bool AnswerStream::feed(std::string_view bytes) noexcept {
  if (finished_ || bytes.empty()) return false;
  const bool had_first = first_end_.has_value();
  const std::size_t size = bytes.size();
  if (framing_ == Framing::unknown) bytes = detect(bytes);
  piece_begin_ = fed_ + size - bytes.size();
  fed_ += size;
  if (!bytes.empty()) read(bytes);
  return first_end_.has_value() && !had_first;
}

void AnswerStream::read(std::string_view bytes) noexcept {
  switch (framing_) {
    case Framing::plain:
      output_seen(1);  // all of it was generated before its first byte
      if (sieve_.whole() || sieve_.failed()) return;
      sieve_.feed(bytes);
      if (!sieve_.whole()) return;
      answer_.plain_whole();
      answer_.take(event_);
      return;
    case Framing::events: return lines_.feed(bytes, *this);
    case Framing::array: return read_array(bytes);
    case Framing::frames:
      reader_->frames.feed(bytes, *this);
      if (reader_->frames.bad_crc()) answer_.flag(UsageAnomaly::bad_crc);
      if (reader_->frames.too_large()) answer_.flag(UsageAnomaly::too_large);
      return;
    default: return;
  }
}

/// Gemini without alt=sse: each object of the list is an event.
void AnswerStream::read_array(std::string_view bytes) noexcept {
  const char* p = bytes.data();
  const char* const begin_of_all = p;
  const char* const end = p + bytes.size();
  while (p != end && !array_over_) {
    if (!in_element_) {
      if (*p == '{') {
        in_element_ = true;
        sieve_.begin();
        continue;
      }
      if (*p == ']') array_over_ = true;
      ++p;
      continue;
    }
    p = sieve_.feed(p, end);
    if (sieve_.failed()) {
      answer_.flag(UsageAnomaly::malformed_event);
      array_over_ = true;
    } else if (sieve_.whole()) {
      in_element_ = false;
      if (event_.output()) output_seen(static_cast<std::size_t>(p - begin_of_all));
      commit(event_);
    }
  }
}

// ---------------------------------------------------------------- server-sent events

void AnswerStream::whole_event(std::string_view data) noexcept {
  if (same_as_before(data)) return;
  if (data.front() != '{') {
    event_piece(data);
    return event_end();
  }
  // Before the first token every text matters: it may be the one.
  EventShape* const shape = first_end_ ? &shapes_[oldest_shape_] : nullptr;
  if (shape != nullptr) shape->begin(data);
  sieve_.begin(shape);
  const char* const end = data.data() + data.size();
  const char* p = sieve_.feed(data.data(), end);
  if (!sieve_.whole() || !trim({p, static_cast<std::size_t>(end - p)}).empty())
    return answer_.flag(sieve_.too_deep() ? UsageAnomaly::too_large : UsageAnomaly::malformed_event);
  if (event_.output()) output_seen(lines_.consumed());
  commit(event_);
  // Counts that are in every event are other ones in each.
  if (shape != nullptr && !event_.usage_seen()) learn_shape(data);
}

bool AnswerStream::same_as_before(std::string_view data) noexcept {
  for (std::size_t i = 0; i < kShapes; ++i) {
    const std::size_t at = (last_shape_ + i) % kShapes;
    if (!shapes_[at].matches(data, answer_.revision())) continue;
    last_shape_ = at;
    if (shapes_[at].output()) output_events_ += 1;
    return true;
  }
  return false;
}

void AnswerStream::learn_shape(std::string_view data) noexcept {
  shapes_[oldest_shape_].learn(data, answer_.revision(), event_.output());
  last_shape_ = oldest_shape_;
  oldest_shape_ = (oldest_shape_ + 1) % kShapes;
}

void AnswerStream::event_piece(std::string_view data) noexcept {
  if (first_in_event_) {
    while (!data.empty() && is_json_space(data.front())) data.remove_prefix(1);
    if (data.empty()) return;
    first_in_event_ = false;
    word_size_ = 0;
    event_is_json_ = data.front() == '{';
    if (event_is_json_) sieve_.begin();
  }
  if (event_is_json_) {
    const char* const end = data.data() + data.size();
    const char* p = sieve_.feed(data.data(), end);
    if (sieve_.whole() && !trim({p, static_cast<std::size_t>(end - p)}).empty()) {
      event_is_json_ = false;  // something follows the object: it is none, and no other word either
      word_[0] = '?';
      word_size_ = 1;
    }
    return;
  }
  for (const char c : data) {
    if (word_size_ < word_.size()) word_[word_size_++] = c;
  }
}

void AnswerStream::event_end() noexcept {
  if (first_in_event_) return;  // no data
  first_in_event_ = true;
  if (!event_is_json_) {
    if (trim({word_.data(), word_size_}) == kDone) return answer_.done();
    return answer_.flag(UsageAnomaly::malformed_event);
  }
  if (!sieve_.whole()) return answer_.flag(sieve_.too_deep() ? UsageAnomaly::too_large : UsageAnomaly::malformed_event);
  if (event_.output()) output_seen(lines_.consumed());
  commit(event_);
}

void AnswerStream::commit(const AnswerEvent& said) noexcept {
  if (said.output()) output_events_ += 1;
  answer_.take(said);
}

void AnswerStream::output_seen(std::size_t end_in_piece) noexcept {
  if (!first_end_) first_end_ = piece_begin_ + end_in_piece;
}

// ---------------------------------------------------------------- AWS event streams

void AnswerStream::frame_begin(bool is_event) noexcept {
  frame_is_event_ = is_event;
  reader_->inner.clear();
  sieve_.begin();
}

void AnswerStream::frame_piece(std::string_view payload) noexcept { sieve_.feed(payload); }

void AnswerStream::frame_end(bool intact) noexcept {
  if (!intact) return;
  if (!frame_is_event_) return answer_.failed();
  if (!sieve_.whole()) return;  // an empty payload, or none of JSON: nothing was said
  const Inner& inner = reader_->inner;
  if (event_.output() || (inner.whole() && inner.event().output())) output_seen(reader_->frames.consumed());
  commit(event_);
  if (inner.whole()) commit(inner.event());
}

UsageReport AnswerStream::report() const noexcept {
  UsageReport report = answer_.report();
  report.output_events = output_events_;
  return report;
}

// ---------------------------------------------------------------- end

void AnswerStream::finish() noexcept {
  if (finished_) return;
  finished_ = true;
  if (framing_ == Framing::plain && !sieve_.whole()) {
    answer_.take(event_, false);
    if (sieve_.failed()) answer_.flag(sieve_.too_deep() ? UsageAnomaly::too_large : UsageAnomaly::malformed_event);
  } else if (framing_ == Framing::events && !first_in_event_) {
    // Browsers drop an event without its empty line. It may hold the only counts, so it is taken if it is whole.
    piece_begin_ = fed_ - lines_.consumed();  // it ends with the body
    if (!event_is_json_ || sieve_.whole()) {
      if (event_is_json_ || trim({word_.data(), word_size_}) == kDone) event_end();
    }
  }
}

}  // namespace warmroute::usage
