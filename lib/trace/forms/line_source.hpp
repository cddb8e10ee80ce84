/// Lines of a plain or gzip file, or of memory, each at most so long, with their number and offset.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"

namespace warmroute::trace {

class LineSource {
 public:
  /// lifetime: `text` until the end of this. `name` begins every message.
  LineSource(std::string name, std::string_view text, std::size_t max_line_bytes)
      : name_(std::move(name)), text_(text), max_line_bytes_(max_line_bytes) {}
  /// Takes the file over. `file` null: the text is all there is.
  LineSource(std::string name, gzFile file, std::size_t max_line_bytes)
      : name_(std::move(name)), file_(file), max_line_bytes_(max_line_bytes) {}
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  ~LineSource() {
    if (file_ != nullptr) gzclose(file_);
  }

  /// returns: whether there is another line, in line(), without its end. errors: too_large: that line is skipped; io:
  /// there will be no more.
  Result<bool> next();
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// returns: the error with this line's place before its message.
  [[nodiscard]] Error here(const Error& error) const;

 private:
  Result<bool> fill();
  [[nodiscard]] std::string_view unread() const noexcept { return text_.substr(begin_); }

  std::string name_;
  gzFile file_ = nullptr;
  std::string_view text_;  // of the file: what `buffer_` holds
  std::size_t begin_ = 0;  // of what is unread in it
  std::size_t max_line_bytes_;
  std::string line_;
  std::uint64_t number_ = 0;
  std::uint64_t line_offset_ = 0;
  std::uint64_t offset_ = 0;  // of the next unread byte
  bool broken_ = false;
  std::array<char, 1 << 16> buffer_{};
};

/// errors: io.
Result<gzFile> open_gz(const std::string& path, const char* mode);

}  // namespace warmroute::trace
