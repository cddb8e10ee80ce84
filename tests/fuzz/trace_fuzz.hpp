/// Any bytes as a trace of one form: no crash, no endless loop, and a record that is taken keeps its promises; of such records every one that
/// the Mooncake form can hold reads back the same.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "warmroute/trace/trace.hpp"
#include "warmroute/trace/trace_writer.hpp"

namespace warmroute::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline void check_record(const trace::TraceRecord& record, const trace::TraceLimits& limits) {
  require(record.input_tokens >= 0 && record.input_tokens <= limits.max_tokens);
  require(record.output_tokens >= 0 && record.output_tokens <= limits.max_tokens);
  require(record.block_tokens >= 1);
  const auto blocks = static_cast<std::int64_t>(record.blocks.size());
  require(blocks <= (record.input_tokens + record.block_tokens - 1) / record.block_tokens);
  std::string line;
  if (!trace::append_mooncake_line(record, line) || record.block_tokens != trace::kMooncakeBlockTokens) return;
  const auto again = trace::parse_mooncake_line(line, limits);
  require(again.ok() && *again == record);
}

inline int read_all(const std::uint8_t* data, std::size_t size, trace::TraceFormat format) {
  trace::TraceLimits limits;
  limits.max_line_bytes = 2'000;
  limits.max_tokens = 1'000'000;
  limits.max_blocks = 10'000;
  limits.max_chats = 8;
  trace::TraceOptions options;
  options.format = format;
  options.share_system_prompts = size % 2 == 0;
  auto reader = trace::TraceReader::from_text({reinterpret_cast<const char*>(data), size}, limits, options);
  trace::TraceRecord record;
  std::uint64_t line = 0;
  while (true) {
    auto given = reader.next(record);
    require(reader.line() >= line);
    line = reader.line();
    if (!given) {
      require(given.error().message.starts_with("trace:") && given.error().offset <= size);
      continue;
    }
    if (!*given) return 0;
    check_record(record, limits);
  }
}

}  // namespace warmroute::fuzz
