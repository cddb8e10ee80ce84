/// The file behind a recorder: what does not fit ends it.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "trace/decision_log/codec.hpp"
#include "warmroute/trace/decision_recorder.hpp"

namespace warmroute::trace::decisions {

class LogFile {
 public:
  LogFile(std::FILE* file, const DecisionLogOptions& options, std::uint64_t log_number)
      : file_(file), options_(options), log_number_(log_number) {}
  ~LogFile() { static_cast<void>(flush()); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  void begin(const RouterOptions& router) { append_head({log_number_, router}, buffer_); }

  void write(DecisionRecord& record) {
    if (statistics_.ended) {
      ++statistics_.unrecorded;
      return;
    }
    content_.clear();
    append_content(record, before_, content_);
    if (content_.size() > options_.max_record_bytes) return end("a record is larger than max_record_bytes");
    if (statistics_.bytes + buffer_.size() + content_.size() + 16 > options_.max_bytes)
      return end("the log has max_bytes");
    before_ = record.now;
    append_framed(content_, log_number_, statistics_.records++, buffer_);
    if (buffer_.size() >= options_.buffer_bytes) static_cast<void>(flush());
  }

  Status flush() {
    if (!buffer_.empty() && file_ != nullptr) {
      const bool written = std::fwrite(buffer_.data(), 1, buffer_.size(), file_.get()) == buffer_.size() &&
                           std::fflush(file_.get()) == 0;
      statistics_.bytes += buffer_.size();
      buffer_.clear();
      if (!written) {
        file_.reset();
        statistics_.ended = true;
        statistics_.reason = std::string("the log cannot be written: ") + std::strerror(errno);
      }
    }
    if (statistics_.ended) return Error{Code::io, "recording has ended: " + statistics_.reason, kNoOffset};
    return {};
  }

  [[nodiscard]] Nanos before() const noexcept { return before_; }
  [[nodiscard]] DecisionLogStatistics statistics() const {
    DecisionLogStatistics out = statistics_;
    out.bytes += buffer_.size();
    return out;
  }

 private:
  struct FileCloser {
    void operator()(std::FILE* open) const noexcept { std::fclose(open); }
  };
  void end(const char* reason) {
    statistics_.ended = true;
    statistics_.reason = reason;
    ++statistics_.unrecorded;
  }

  std::unique_ptr<std::FILE, FileCloser> file_;
  DecisionLogOptions options_;
  std::uint64_t log_number_;
  std::string buffer_, content_;
  Nanos before_{0};
  DecisionLogStatistics statistics_;
};

}  // namespace warmroute::trace::decisions
