#include "trace/forms/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trace/forms/form.hpp"

namespace warmroute::trace {
namespace {

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

Error column_error(Code code, std::string_view column, std::string_view field, std::string_view what) {
  std::string message = "column \"";
  message.append(column).append("\": \"").append(field.substr(0, 40)).append("\" ").append(what);
  return {code, std::move(message), kNoOffset};
}

template <class T>
bool whole_number(std::string_view text, T& out) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Takes so many digits from the front, or none. returns: the number, -1 where there are none.
int take_digits(std::string_view& text, std::size_t count) noexcept {
  int value = 0;
  if (text.size() < count) return -1;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) noexcept {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// Days since 1970-01-01 in the Gregorian calendar; years begin in March, so that the leap day is their last.
std::int64_t days_since_epoch(int year, int month, int day) noexcept {
  const int y = month <= 2 ? year - 1 : year;
  const int from_march = (month + 9) % 12;
  const int era = y / 400, of_era = y % 400;
  const int of_year = (153 * from_march + 2) / 5 + day - 1;
  return std::int64_t{era} * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

int days_in(int year, int month) noexcept {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/// ".9799600" as microseconds.
int take_fraction_us(std::string_view& text) noexcept {
  if (!take(text, ".")) return 0;
  int value = 0, scale = 100'000;
  bool any = false;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1)) {
    value += (text[0] - '0') * scale;
    scale /= 10;
    any = true;
  }
  return any ? value : -1;
}

/// returns: false for what is no zone.
bool take_zone_s(std::string_view& text, std::int64_t& out) noexcept {
  out = 0;
  if (take(text, "Zz") || text.empty()) return true;
  const bool west = text[0] == '-';
  if (!take(text, "+-")) return false;
  const int hours = take_digits(text, 2);
  static_cast<void>(take(text, ":"));
  const int minutes = text.empty() ? 0 : take_digits(text, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return false;
  out = (hours * 3'600 + minutes * 60) * (west ? -1 : 1);
  return true;
}

}  // namespace

Status CsvLine::quoted(std::string_view& rest) {
  std::string text;
  rest.remove_prefix(1);
  while (true) {
    const std::size_t quote = rest.find('"');
    if (quote == std::string_view::npos)
      return Error{Code::malformed, "a quote is not closed; a field must not hold a line break", kNoOffset};
    text.append(rest.substr(0, quote));
    rest.remove_prefix(quote + 1);
    if (rest.empty() || rest.front() != '"') break;
    text += '"';
    rest.remove_prefix(1);
  }
  if (!rest.empty() && rest.front() != ',') return Error{Code::malformed, "text behind a closed quote", kNoOffset};
  unquoted_.push_back(std::move(text));
  fields_.emplace_back();  // filled when no string moves any more
  return {};
}

Status CsvLine::split(std::string_view line) {
  fields_.clear();
  unquoted_.clear();
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.ends_with('\r')) line.remove_suffix(1);
  std::vector<std::size_t> places;
  while (true) {
    if (line.starts_with('"')) {
      places.push_back(fields_.size());
      if (auto done = quoted(line); !done) return done;
    } else {
      const std::size_t comma = std::min(line.find(','), line.size());
      fields_.push_back(trimmed(line.substr(0, comma)));
      line.remove_prefix(comma);
    }
    if (line.empty()) break;
    line.remove_prefix(1);  // the comma
  }
  for (std::size_t i = 0; i < places.size(); ++i) fields_[places[i]] = unquoted_[i];
  return {};
}

Status CsvHeader::read(std::string_view line) {
  CsvLine fields;
  if (auto split = fields.split(line); !split) return split;
  names_.clear();
  for (std::size_t i = 0; i < fields.size(); ++i) names_.emplace_back(fields[i]);
  return {};
}

std::size_t CsvHeader::find(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (same_name(names_[i], name)) return i;
  }
  return kNoColumn;
}

Result<std::int64_t> csv_count(std::string_view column, std::string_view field, std::int64_t most) {
  std::int64_t count = 0;
  if (!whole_number(field, count)) {
    double real = 0;
    if (!whole_number(field, real)) return column_error(Code::wrong_type, column, field, "is not a number");
    if (!(std::fabs(real) < 9e15) || real != std::floor(real))
      return column_error(Code::value_out_of_range, column, field, "is not a count of tokens");
    count = static_cast<std::int64_t>(real);
  }
  if (count < 0 || count > most) return column_error(Code::value_out_of_range, column, field, "is out of range");
  return count;
}

Result<std::int64_t> csv_seconds_us(std::string_view column, std::string_view field) {
  double seconds = 0;
  if (!whole_number(field, seconds)) return column_error(Code::wrong_type, column, field, "is not a number of seconds");
  if (!(seconds >= 0 && seconds * 1e6 <= static_cast<double>(kMostTimeUs)))
    return column_error(Code::value_out_of_range, column, field, "is out of range");
  return static_cast<std::int64_t>(std::llround(seconds * 1e6));
}

Result<std::int64_t> csv_wall_time_us(std::string_view column, std::string_view field) {
  std::string_view text = field;
  const int year = take_digits(text, 4);
  bool fine = take(text, "-");
  const int month = take_digits(text, 2);
  fine = take(text, "-") && fine;
  const int day = take_digits(text, 2);
  fine = take(text, " Tt") && fine;
  const int hour = take_digits(text, 2);
  fine = take(text, ":") && fine;
  const int minute = take_digits(text, 2);
  fine = take(text, ":") && fine;
  const int second = take_digits(text, 2);
  const int fraction = take_fraction_us(text);
  std::int64_t zone_s = 0;
  fine = take_zone_s(text, zone_s) && text.empty() && fine;
  if (!fine || year < 1970 || month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour < 0 ||
      hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 || fraction < 0)
    return column_error(Code::wrong_type, column, field, "is no time like \"2023-11-16 18:17:03.9799600\"");
  const std::int64_t seconds =
      days_since_epoch(year, month, day) * 86'400 + hour * 3'600 + minute * 60 + second - zone_s;
  return seconds * 1'000'000 + fraction;
}

}  // namespace warmroute::trace
