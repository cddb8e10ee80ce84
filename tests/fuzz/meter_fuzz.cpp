// Whatever the bytes, an answer says the same whole and in pieces, counts are no less than 0, parts of the sides that are
// inclusive fit in them unless that is said, and nothing is complete that has no counts. The first byte says how to cut.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "warmroute/usage/meter.hpp"

namespace {

using warmroute::Meter;
using warmroute::UsageCount;
using warmroute::UsageReport;

void check(bool good) {
  if (!good) std::abort();
}

void check_counts(const UsageReport& report) {
  const warmroute::Usage& usage = report.usage;
  for (const UsageCount count : {usage.input_tokens, usage.cached_input_tokens, usage.cache_write_input_tokens,
                                 usage.output_tokens, usage.reasoning_output_tokens, usage.unattributed_tokens,
                                 usage.total_tokens(), usage.uncached_input_tokens(), usage.reported_cost_picos})
    check(count.value_or(0) >= 0);
  check(!report.complete || report.source != warmroute::UsageSource::none);
  check(report.output_events >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view body{reinterpret_cast<const char*>(data) + 1, size - 1};
  warmroute::MeterOptions options;
  options.api = static_cast<warmroute::AnswerApi>(data[0] % 9);
  options.profile.input_includes_cache = static_cast<warmroute::Belief>(data[0] / 9 % 3);
  Meter whole;
  const UsageReport all = read_usage(whole, body, options);
  check_counts(all);
  Meter pieces(options);
  const std::size_t step = 1 + data[0] % 7;
  bool first = false;
  for (std::size_t at = 0; at < body.size(); at += step) {
    const bool now = pieces.feed(body.substr(at, step));
    check(!(now && first));
    first = first || now;
    if (at % 64 == 0) check_counts(pieces.report());
  }
  pieces.finish();
  const UsageReport cut = pieces.report();
  check(cut.usage == all.usage && cut.complete == all.complete && cut.error == all.error && cut.source == all.source);
  check(cut.anomalies == all.anomalies && cut.output_events == all.output_events);
  check(cut.finish_reason == all.finish_reason && cut.service_tier == all.service_tier && cut.model == all.model);
  check(pieces.first_token_end() == whole.first_token_end());
  check(!first || whole.first_token_end().has_value());  // the other way round: in an event without its end
  return 0;
}
