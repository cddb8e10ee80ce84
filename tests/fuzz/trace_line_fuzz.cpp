// Any bytes as a line of a trace: no crash, and a record that is taken keeps its promises.
#include <cstdint>
#include <cstdlib>

#include "warmroute/trace/trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warmroute::trace;
  const TraceLimits limits;
  const auto record = parse_mooncake_line({reinterpret_cast<const char*>(data), size}, limits);
  const auto require = [](bool holds) {
    if (!holds) std::abort();
  };
  if (!record) {
    require(!record.error().message.empty());
    return 0;
  }
  require(record->arrival_us >= 0);
  require(record->input_tokens >= 0 && record->input_tokens <= limits.max_tokens);
  require(record->output_tokens >= 0 && record->output_tokens <= limits.max_tokens);
  const auto blocks = static_cast<std::int64_t>(record->blocks.size());
  require(blocks * kMooncakeBlockTokens < record->input_tokens + kMooncakeBlockTokens);
  return 0;
}
