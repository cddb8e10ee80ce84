/// Lines of CSV (RFC 4180, fields without line breaks) and columns by their names in the header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"

namespace warmroute::trace {

/// A line's fields. lifetime: of the line, and until the next split.
class CsvLine {
 public:
  /// A byte order mark and the end of line are taken off. errors: malformed: a quote that is not closed, or text behind
  /// one.
  Status split(std::string_view line);
  [[nodiscard]] std::size_t size() const noexcept { return fields_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept { return fields_[i]; }

 private:
  Status quoted(std::string_view& rest);
  std::vector<std::string_view> fields_;
  std::vector<std::string> unquoted_;  // of fields that hold doubled quotes
};

inline constexpr std::size_t kNoColumn = ~std::size_t{0};

/// Where each name stands in the header; upper and lower case are the same.
class CsvHeader {
 public:
  Status read(std::string_view line);
  /// returns: kNoColumn where there is no such column.
  [[nodiscard]] std::size_t find(std::string_view name) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

 private:
  std::vector<std::string> names_;
};

/// errors: wrong_type, value_out_of_range; the message names the column.
[[nodiscard]] Result<std::int64_t> csv_count(std::string_view column, std::string_view field, std::int64_t most);
/// returns: seconds as microseconds.
[[nodiscard]] Result<std::int64_t> csv_seconds_us(std::string_view column, std::string_view field);
/// "2023-11-16 18:17:03.9799600", with "T" or a space, any number of decimals or none, and a zone ("+00:00", "Z") or
/// none. returns: microseconds since 1970, cut, not rounded.
[[nodiscard]] Result<std::int64_t> csv_wall_time_us(std::string_view column, std::string_view field);

}  // namespace warmroute::trace
