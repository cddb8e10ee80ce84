// Which form a file is of, and its records one by one.
#include <algorithm>
#include <utility>

#include "simdjson.h"
#include "trace/forms/csv.hpp"
#include "trace/forms/form.hpp"
#include "trace/forms/line_source.hpp"

namespace warmroute::trace {
namespace {

bool blank(std::string_view line) noexcept { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

std::optional<TraceFormat> detect_json(std::string_view line) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(line.data(), line.size(), true).get(object) != simdjson::SUCCESS) return std::nullopt;
  const auto has = [&](std::string_view name) { return object[name].error() == simdjson::SUCCESS; };
  if (has("requests")) return TraceFormat::weka;
  if (!has("timestamp") || !has("input_length")) return std::nullopt;
  if (has("chat_id") || has("parent_chat_id")) return TraceFormat::qwen;
  if (object["hash_ids"].is_object() || object["timestamp"].is_string()) return TraceFormat::ragpulse;
  return TraceFormat::mooncake;
}

Error unknown_form() {
  std::string names;
  for (std::size_t i = 1; i < kTraceFormatNames.size(); ++i)
    names.append(i == 1 ? "" : ", ").append(kTraceFormatNames[i]);
  return {Code::unsupported,
          "the first line is of no known form (" + names +
              "); a CSV file must begin with its header, JSON must stand "
              "one record a line; name the form if it is one of these (--format)",
          kNoOffset};
}

Result<std::unique_ptr<Form>> make_form(TraceFormat format, const TraceLimits& limits, const TraceOptions& options,
                                        const std::string& path) {
  switch (format) {
    case TraceFormat::qwen: return make_qwen_form(limits);
    case TraceFormat::burstgpt: return make_burstgpt_form(limits);
    case TraceFormat::azure: return make_azure_form(limits);
    case TraceFormat::ragpulse: return make_ragpulse_form(limits, path);
    case TraceFormat::weka: return make_weka_form(limits, options);
    case TraceFormat::mooncake:
    case TraceFormat::automatic: break;
  }
  return make_mooncake_form(limits);
}

}  // namespace

std::optional<TraceFormat> detect_trace_format(std::string_view first_line) {
  if (first_line.starts_with("\xEF\xBB\xBF")) first_line.remove_prefix(3);
  const std::size_t start = first_line.find_first_not_of(" \t");
  if (start != std::string_view::npos && first_line[start] == '{') return detect_json(first_line);
  CsvHeader header;
  if (!header.read(first_line)) return std::nullopt;
  if (header.find("ContextTokens") != kNoColumn) return TraceFormat::azure;
  if (header.find("Request tokens") != kNoColumn) return TraceFormat::burstgpt;
  return std::nullopt;
}

struct TraceReader::State {
  State(std::string path_, std::string_view text, gzFile file, const TraceLimits& l, const TraceOptions& o)
      : path(std::move(path_)),
        source(file == nullptr ? std::make_unique<LineSource>(path, text, l.max_line_bytes)
                               : std::make_unique<LineSource>(path, file, l.max_line_bytes)),
        from_file(file != nullptr),
        limits(l),
        options(o),
        format(o.format) {}

  // The first line that is not blank. errors: unsupported, and what the form's own files have.
  Status begin() {
    if (format == TraceFormat::automatic) {
      const auto detected = detect_trace_format(source->line());
      if (!detected) return over(source->here(unknown_form()));
      format = *detected;
    }
    auto made = make_form(format, limits, options, from_file ? path : std::string{});
    if (!made) return over(made.error());
    form = std::move(*made);
    return {};
  }
  Error over(Error error) {
    ended = true;
    return error;
  }

  std::string path;
  std::unique_ptr<LineSource> source;
  bool from_file;
  TraceLimits limits;
  TraceOptions options;
  TraceFormat format;
  std::unique_ptr<Form> form;
  std::uint64_t line = 0;
  bool in_line = false;  // the form may have more of this line
  bool ended = false;
};

TraceReader::TraceReader(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::open(const std::string& path, const TraceLimits& limits, const TraceOptions& options) {
  auto file = open_gz(path, "rb");
  if (!file) return file.error();
  return TraceReader{std::make_unique<State>(path, std::string_view{}, *file, limits, options)};
}

TraceReader TraceReader::from_text(std::string_view text, const TraceLimits& limits, const TraceOptions& options,
                                   std::string name) {
  return TraceReader{std::make_unique<State>(std::move(name), text, nullptr, limits, options)};
}

Result<std::optional<TraceRecord>> TraceReader::next() {
  TraceRecord record;
  auto given = next(record);
  if (!given) return given.error();
  return *given ? std::optional<TraceRecord>{std::move(record)} : std::nullopt;
}

Result<bool> TraceReader::next(TraceRecord& record) {
  State& s = *state_;
  while (!s.ended) {
    if (s.in_line) {
      std::vector<std::uint64_t> memory = std::move(record.blocks);
      memory.clear();
      record = TraceRecord{};
      record.blocks = std::move(memory);
      auto given = s.form->next(record);
      s.in_line = given && *given;
      if (!given) return s.source->here(given.error());
      if (*given) return true;
    }
    auto more = s.source->next();
    if (!more) return more.error();
    if (!*more) break;
    s.line = s.source->number();
    if (blank(s.source->line())) continue;
    if (s.form == nullptr) {
      if (auto begun = s.begin(); !begun) return begun.error();
    }
    if (auto taken = s.form->take(s.source->line()); !taken) return s.source->here(taken.error());
    s.in_line = true;
  }
  s.ended = true;
  return false;
}

std::uint64_t TraceReader::line() const noexcept { return state_->line; }
TraceFormat TraceReader::format() const noexcept { return state_->format; }

Result<TraceFormat> detect_trace_format_of_file(const std::string& path) {
  auto file = open_gz(path, "rb");
  if (!file) return file.error();
  LineSource source(path, *file, TraceLimits{}.max_line_bytes);
  while (true) {
    auto more = source.next();
    if (!more) return more.error();
    if (!*more) return Error{Code::unsupported, path + ": the file is empty", kNoOffset};
    if (blank(source.line())) continue;
    const auto format = detect_trace_format(source.line());
    if (!format) return source.here(unknown_form());
    return *format;
  }
}

Result<std::vector<TraceRecord>> read_trace(const std::string& path, std::size_t limit, const TraceLimits& limits,
                                            const TraceOptions& options) {
  auto reader = TraceReader::open(path, limits, options);
  if (!reader) return reader.error();
  std::vector<TraceRecord> records;
  while (limit == 0 || records.size() < limit) {
    auto record = reader->next();
    if (!record) return record.error();
    if (!record->has_value()) break;
    records.push_back(std::move(**record));
  }
  if (reader->format() == TraceFormat::azure || reader->format() == TraceFormat::burstgpt) {
    std::int64_t first = records.empty() ? 0 : records.front().arrival_us;
    for (const TraceRecord& record : records) first = std::min(first, record.arrival_us);
    for (TraceRecord& record : records) record.arrival_us -= first;
  }
  return records;
}

Result<std::vector<TraceRecord>> read_mooncake_trace(const std::string& path, std::size_t limit,
                                                     const TraceLimits& limits) {
  TraceOptions options;
  options.format = TraceFormat::mooncake;
  return read_trace(path, limit, limits, options);
}

}  // namespace warmroute::trace
