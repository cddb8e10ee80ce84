// Prometheus text, line by line: 0.0.4, 1.0.0 with quoted names, OpenMetrics. Nothing is copied but a last line without
// line feed. Every line is checked whole, also those whose metric nobody reads: a page is judged by its malformed
// lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warmroute::metrics {

struct Label {
  std::string_view name;
  std::string_view value;  // as on the page: escapes are not resolved
};

struct Sample {
  std::string_view name;
  std::span<const Label> labels;
  std::string_view number;  // well-formed, see number_value
};

// returns: the number's value; of a size that no double has, an infinity or 0.
double number_value(std::string_view well_formed) noexcept;
// returns: whether all of `text` is a number: decimal with fraction and exponent, or inf, infinity, nan in any case,
// with a sign or not.
bool is_number(std::string_view text) noexcept;
// Appends a label's value with its escapes resolved: \\ \" and \n.
void append_unescaped(std::string_view value, std::string& out);

class TextReader {
 public:
  TextReader(std::size_t max_labels, std::size_t max_line_bytes);

  // `page` must stay as long as views of its samples are used.
  void start(std::string_view page);
  // returns: false at the end of the page or behind "# EOF". lifetime: `labels` until the next call.
  bool next(Sample& sample);

  [[nodiscard]] std::size_t malformed() const noexcept { return malformed_; }
  [[nodiscard]] std::size_t well_formed() const noexcept { return well_formed_; }  // samples, HELP, TYPE, UNIT, EOF
  [[nodiscard]] std::uint64_t first_malformed() const noexcept { return first_malformed_; }  // byte offset

 private:
  enum class Line : std::uint8_t { other, sample, malformed, end };

  Line read_line(Sample& sample);
  Line read_comment(const char* hash);
  bool read_sample(const char* p, Sample& sample);
  const char* read_labels(const char* p, std::size_t first, std::string_view& name);
  bool read_rest(const char* p);
  [[nodiscard]] bool clean(std::string_view line) const noexcept;

  std::vector<Label> labels_;
  std::size_t label_count_ = 0;
  std::size_t max_line_bytes_;

  const char* at_ = nullptr;   // start of the next line
  const char* end_ = nullptr;  // behind the last line feed of what is read now
  std::string_view page_;      // behind a byte order mark
  std::size_t mark_ = 0;       // its bytes
  std::string_view cut_;       // the last line, if it has no line feed
  std::string tail_;           // its copy, with one
  bool dirty_ = false;         // NULs or invalid UTF-8 somewhere: each line is looked at
  std::size_t malformed_ = 0;
  std::size_t well_formed_ = 0;
  std::uint64_t first_malformed_ = 0;
};

}  // namespace warmroute::metrics
