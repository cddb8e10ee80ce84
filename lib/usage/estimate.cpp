// The learned bytes per token, and what it is good for. See request_side.hpp.
#include <algorithm>
#include <cmath>

#include "warmroute/usage/request_side.hpp"

namespace warmroute {
namespace {

constexpr std::int64_t kFewestTokens = 32;  // shorter prompts are mostly template: they say little of the text
constexpr std::uint32_t kMemory = 32;       // requests that the mean remembers
constexpr double kLeast = 0.1, kMost = 64;  // bytes per token; outside, somebody counted something else
constexpr std::int64_t kMostEstimate = 1'000'000'000'000;

}  // namespace

void TokenEstimator::learn(std::int64_t prompt_bytes, std::int64_t input_tokens) noexcept {
  if (input_tokens < kFewestTokens || prompt_bytes <= 0) return;
  const double ratio = static_cast<double>(prompt_bytes) / static_cast<double>(input_tokens);
  if (!(ratio >= kLeast && ratio <= kMost)) return;
  // Two that learn at once may forget one of the pairs; neither leaves half a value.
  const std::uint32_t seen = std::min(seen_.load(std::memory_order_relaxed) + 1, kMemory);
  seen_.store(seen, std::memory_order_relaxed);
  const double before = bytes_per_token();
  const double after = before + (ratio - before) / seen;
  micro_bytes_.store(static_cast<std::uint64_t>(std::llround(after * 1e6)), std::memory_order_relaxed);
}

double TokenEstimator::bytes_per_token() const noexcept {
  return static_cast<double>(micro_bytes_.load(std::memory_order_relaxed)) / 1e6;
}

void TokenEstimator::set_bytes_per_token(double value) noexcept {
  if (!(value >= kLeast && value <= kMost)) return;
  micro_bytes_.store(static_cast<std::uint64_t>(std::llround(value * 1e6)), std::memory_order_relaxed);
}

TokenEstimate TokenEstimator::estimate(std::int64_t prompt_bytes, UsageCount known_input_tokens,
                                       UsageCount requested_output_tokens,
                                       const EstimateOptions& options) const noexcept {
  TokenEstimate out;
  if (known_input_tokens) {
    out.input_tokens = std::max<std::int64_t>(0, *known_input_tokens);
  } else if (prompt_bytes > 0) {
    const double margin = 1 + static_cast<double>(std::max<std::int64_t>(0, options.margin_percent)) / 100;
    const double tokens = std::ceil(static_cast<double>(prompt_bytes) / bytes_per_token() * margin);
    out.input_tokens = static_cast<std::int64_t>(std::min(tokens, static_cast<double>(kMostEstimate)));
  }
  const std::int64_t most = std::max<std::int64_t>(0, options.max_output_tokens);
  out.output_tokens = std::clamp<std::int64_t>(requested_output_tokens.value_or(most), 0, most);
  return out;
}

bool estimate_missing(UsageReport& report, const TokenEstimate& estimate) noexcept {
  if (report.complete) return false;
  Usage& usage = report.usage;
  bool filled = false;
  if (!usage.input_tokens) {
    usage.input_tokens = estimate.input_tokens;
    filled = true;
  }
  const std::int64_t seen = report.output_events;
  if (!usage.output_tokens || *usage.output_tokens < seen) {
    usage.output_tokens = seen > 0 ? seen : estimate.output_tokens;
    filled = true;
  }
  if (filled) report.source = UsageSource::estimate;
  return filled;
}

}  // namespace warmroute
