/// A published form of traces: turns lines into records. One class per form, each in a file of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "warmroute/trace/trace.hpp"

namespace warmroute::trace {

/// Times beyond are broken records: some 63 years. Up to here a double tells microseconds in milliseconds, and back.
inline constexpr std::int64_t kMostTimeUs = 2'000'000'000'000'000;

class Form {
 public:
  virtual ~Form() = default;
  /// Takes a line; next() gives its records.
  virtual Status take(std::string_view line) = 0;
  /// Fills a fresh record. returns: false when the line is used up. After an error it is, too.
  virtual Result<bool> next(TraceRecord& record) = 0;
};

/// A form of one record a line, or none (a header).
class LineForm : public Form {
 public:
  Status take(std::string_view line) final {
    line_ = line;
    pending_ = true;
    return {};
  }
  Result<bool> next(TraceRecord& record) final {
    if (!pending_) return false;
    pending_ = false;
    return read(line_, record);
  }

 protected:
  /// returns: false for a line that is no record. lifetime: `line` lives as long as the call.
  virtual Result<bool> read(std::string_view line, TraceRecord& record) = 0;

 private:
  std::string_view line_;
  bool pending_ = false;
};

std::unique_ptr<Form> make_mooncake_form(const TraceLimits& limits);
std::unique_ptr<Form> make_qwen_form(const TraceLimits& limits);
std::unique_ptr<Form> make_burstgpt_form(const TraceLimits& limits);
std::unique_ptr<Form> make_azure_form(const TraceLimits& limits);
/// `path`: of the trace, whose neighbours may tell the pieces' lengths; empty: none are looked for.
Result<std::unique_ptr<Form>> make_ragpulse_form(const TraceLimits& limits, const std::string& path);
std::unique_ptr<Form> make_weka_form(const TraceLimits& limits, const TraceOptions& options);

/// returns: an id that stands for `id` and all that `before` stands for.
inline std::uint64_t chained(std::uint64_t before, std::uint64_t id) noexcept {
  std::uint64_t x = (before ^ 0x9E37'79B9'7F4A'7C15ULL) * 0xD6E8'FEB8'6659'FD93ULL + id;
  x = (x ^ (x >> 32)) * 0xD6E8'FEB8'6659'FD93ULL;
  x = (x ^ (x >> 32)) * 0xD6E8'FEB8'6659'FD93ULL;
  return x ^ (x >> 32);
}

}  // namespace warmroute::trace
