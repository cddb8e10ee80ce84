/// Writes traces in the Mooncake form: JSON lines, milliseconds, one id per 512-token block.
///
/// Invariant: what is written reads back as the same records, field by field, where blocks are of 512 tokens; smaller
/// ones that divide 512 are joined, which loses only where inside 512 tokens two prompts part. What the form has no
/// member for is written as members of this library's own, which other readers skip.
/// Does not: make anything anonymous. Ids and session hashes are written as they are.
#pragma once

#include <memory>
#include <string>

#include "warmroute/result.hpp"
#include "warmroute/trace/trace.hpp"

namespace warmroute::trace {

/// Appends one line with its newline: timestamp, input_length, output_length, hash_ids, session_id ("#" and 16 hex
/// digits) and, only where they are known: model, adapter, class, priority, max_output_length, cached_tokens, ttft_ms,
/// stream, cancelled, follows, delay (ms).
/// errors: unsupported: block_tokens does not divide 512; value_out_of_range: an arrival before the start, or more ids
/// than the prompt has blocks; invalid_utf8: a name. Nothing is appended then. threads: any.
[[nodiscard]] Status append_mooncake_line(const TraceRecord& record, std::string& out);

/// Writes a file, gzip where its name ends in ".gz". threads: one at a time.
class TraceWriter {
 public:
  /// errors: io. An existing file is replaced.
  [[nodiscard]] static Result<TraceWriter> open(const std::string& path);
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  /// errors: as append_mooncake_line (the file goes on without that record); io.
  [[nodiscard]] Status write(const TraceRecord& record);
  /// Writes what is left; without it a failure at the end stays unseen. Nothing can be written afterwards. errors: io.
  [[nodiscard]] Status close();

 private:
  struct State;
  explicit TraceWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace warmroute::trace
