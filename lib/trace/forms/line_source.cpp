#include "trace/forms/line_source.hpp"

#include <cerrno>
#include <cstring>

namespace warmroute::trace {

Result<gzFile> open_gz(const std::string& path, const char* mode) {
  gzFile file = gzopen(path.c_str(), mode);
  if (file == nullptr) return Error{Code::io, path + ": " + std::strerror(errno), kNoOffset};
  return file;
}

Error LineSource::here(const Error& error) const {
  std::string place = name_;
  place.append(":").append(std::to_string(number_)).append(": ").append(error.message);
  return {error.code, std::move(place), line_offset_};
}

// returns: whether there are unread bytes.
Result<bool> LineSource::fill() {
  if (file_ == nullptr) return false;
  const int got = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* reason = gzerror(file_, &code);
  if (got < 0 || (got == 0 && code != Z_OK && code != Z_STREAM_END)) {  // a cut stream ends with Z_BUF_ERROR
    broken_ = true;
    const std::string what = code == Z_ERRNO ? std::strerror(errno) : reason;
    return here({Code::io, "cannot read on: " + what + "; is the file whole?", kNoOffset});
  }
  text_ = {buffer_.data(), static_cast<std::size_t>(got)};
  begin_ = 0;
  return got > 0;
}

Result<bool> LineSource::next() {
  if (broken_) return false;
  line_.clear();
  ++number_;
  line_offset_ = offset_;
  bool too_long = false;
  while (true) {
    if (begin_ == text_.size()) {
      auto filled = fill();
      if (!filled) return filled.error();
      if (!*filled) break;
    }
    const std::size_t end = unread().find('\n');
    const std::string_view piece = unread().substr(0, end);
    too_long = too_long || line_.size() + piece.size() > max_line_bytes_;
    if (!too_long) line_.append(piece);
    const std::size_t used = piece.size() + (end == std::string_view::npos ? 0 : 1);
    begin_ += used;
    offset_ += used;
    if (end != std::string_view::npos) break;
  }
  if (too_long) {
    return here(
        {Code::too_large, "longer than " + std::to_string(max_line_bytes_) + " bytes (max_line_bytes)", kNoOffset});
  }
  return offset_ != line_offset_;
}

}  // namespace warmroute::trace
