// The forms of CSV: BurstGPT and Azure LLM inference. Columns go by their names, since parts of the sets have more of them than others.
#include <string>
#include <utility>

#include "trace/forms/csv.hpp"
#include "trace/forms/form.hpp"
#include "trace/forms/json_fields.hpp"

namespace warmroute::trace {
namespace {

/// The first line is the header.
class CsvForm : public LineForm {
 public:
  explicit CsvForm(const TraceLimits& limits) : limits_(limits) {}

 protected:
  Result<bool> read(std::string_view line, TraceRecord& record) final {
    if (header_.size() == 0) {
      if (auto read = header_.read(line); !read) return read.error();
      if (auto found = find_columns(); !found) {
        header_ = {};
        return found.error();
      }
      return false;
    }
    if (auto split = fields_.split(line); !split) return split.error();
    if (fields_.size() != header_.size())
      return Error{Code::malformed,
                   std::to_string(fields_.size()) + " fields where the header has " + std::to_string(header_.size()) +
                       "; was the line cut?",
                   kNoOffset};
    if (auto done = read_fields(record); !done) return done.error();
    return true;
  }

  virtual Status find_columns() = 0;
  virtual Status read_fields(TraceRecord& record) = 0;

  Status find(std::string_view name, std::size_t& column) const {
    column = header_.find(name);
    if (column != kNoColumn) return {};
    std::string message = "the header has no column \"";
    message.append(name).append("\"; the file must begin with its header line, or is of another form (--format)");
    return Error{Code::missing_field, std::move(message), kNoOffset};
  }
  [[nodiscard]] std::size_t find(std::string_view name) const noexcept { return header_.find(name); }
  /// returns: "" for a column that is not there.
  [[nodiscard]] std::string_view field(std::size_t column) const noexcept {
    return column == kNoColumn ? std::string_view{} : fields_[column];
  }
  Status count(std::string_view name, std::size_t column, std::int64_t& out) const {
    auto value = csv_count(name, field(column), limits_.max_tokens);
    if (!value) return value.error();
    out = *value;
    return {};
  }

 private:
  TraceLimits limits_;
  CsvHeader header_;
  CsvLine fields_;
};

/// Timestamp (s, whole or not, from the set's first day on), Model, Request tokens, Response tokens, Total tokens, Log Type; the third part
/// has Session ID and Elapsed time before Model. No answer means that the request failed.
class BurstGptForm final : public CsvForm {
 public:
  using CsvForm::CsvForm;

 protected:
  Status find_columns() override {
    model_ = find("Model");
    session_ = find("Session ID");
    type_ = find("Log Type");
    if (auto found = find("Timestamp", time_); !found) return found;
    if (auto found = find("Request tokens", input_); !found) return found;
    return find("Response tokens", output_);
  }

  Status read_fields(TraceRecord& record) override {
    auto time = csv_seconds_us("Timestamp", field(time_));
    if (!time) return time.error();
    record.arrival_us = *time;
    if (auto read = count("Request tokens", input_, record.input_tokens); !read) return read;
    if (auto read = count("Response tokens", output_, record.output_tokens); !read) return read;
    record.cancelled = record.output_tokens == 0;
    record.model = field(model_);
    record.request_class = field(type_);
    if (const std::string_view session = field(session_); !session.empty()) record.session = session_of(session);
    return {};
  }

 private:
  std::size_t time_ = kNoColumn, model_ = kNoColumn, session_ = kNoColumn, type_ = kNoColumn;
  std::size_t input_ = kNoColumn, output_ = kNoColumn;
};

/// TIMESTAMP (wall clock; 7 decimals in 2023, with a zone and sometimes without decimals in 2024), ContextTokens, GeneratedTokens; lines end
/// with CR LF, the last one with nothing. The set of 2025 counts images, too: their tokens are not told, so NumImages is passed over.
class AzureForm final : public CsvForm {
 public:
  using CsvForm::CsvForm;

 protected:
  Status find_columns() override {
    if (auto found = find("TIMESTAMP", time_); !found) return found;
    if (auto found = find("ContextTokens", input_); !found) return found;
    return find("GeneratedTokens", output_);
  }

  Status read_fields(TraceRecord& record) override {
    auto time = csv_wall_time_us("TIMESTAMP", field(time_));
    if (!time) return time.error();
    if (auto read = count("ContextTokens", input_, record.input_tokens); !read) return read;
    if (auto read = count("GeneratedTokens", output_, record.output_tokens); !read) return read;
    if (!start_us_) start_us_ = *time;
    record.arrival_us = *time - *start_us_;
    return {};
  }

 private:
  std::size_t time_ = kNoColumn, input_ = kNoColumn, output_ = kNoColumn;
  std::optional<std::int64_t> start_us_;
};

}  // namespace

std::unique_ptr<Form> make_burstgpt_form(const TraceLimits& limits) { return std::make_unique<BurstGptForm>(limits); }
std::unique_ptr<Form> make_azure_form(const TraceLimits& limits) { return std::make_unique<AzureForm>(limits); }

}  // namespace warmroute::trace
