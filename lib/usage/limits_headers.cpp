// What a client is told of limits: status and headers.
#include "warmroute/usage/limits.hpp"

namespace warmroute {
namespace {

// As OpenAI spells it: "12ms" below a second, else "1h2m3s" without fractions, rounded up; a unit below a larger one stays.
std::string header_duration(Nanos time) {
  const std::int64_t ms = time.value <= 0 ? 0 : (time.value - 1) / 1'000'000 + 1;
  if (ms < 1'000) return std::to_string(ms) + "ms";
  const std::int64_t s = (ms + 999) / 1'000;
  std::string out;
  if (s >= 3'600) out += std::to_string(s / 3'600) + "h";
  if (s >= 60) out += std::to_string(s / 60 % 60) + "m";
  return out + std::to_string(s % 60) + "s";
}

}  // namespace

int limit_status(LimitOutcome outcome, int budget_status) noexcept {
  switch (outcome) {
    case LimitOutcome::allowed: return 200;
    case LimitOutcome::rate_exceeded:
    case LimitOutcome::too_many_at_once: return 429;
    case LimitOutcome::budget_exceeded: return budget_status;
    case LimitOutcome::larger_than_limit: return 400;
    case LimitOutcome::no_room: return 503;
    case LimitOutcome::invalid: break;
  }
  return 500;
}

std::vector<std::pair<std::string, std::string>> limit_headers(const LimitDecision& decision) {
  static constexpr std::string_view kUnits[] = {"requests", "input-tokens", "output-tokens", "tokens"};
  std::vector<std::pair<std::string, std::string>> headers;
  for (std::size_t i = 0; i < std::size(kUnits); ++i) {
    const LimitLeft& l = decision.left[i];
    if (l.amount < 0) continue;
    const std::string unit(kUnits[i]);
    headers.emplace_back("x-ratelimit-limit-" + unit, std::to_string(l.amount));
    headers.emplace_back("x-ratelimit-remaining-" + unit, std::to_string(l.remaining));
    headers.emplace_back("x-ratelimit-reset-" + unit, header_duration(l.reset));
  }
  if (decision.retry_after.value >= 0) {
    const std::int64_t s = decision.retry_after.value / 1'000'000'000;
    const bool more = decision.retry_after.value % 1'000'000'000 != 0 || s == 0;
    headers.emplace_back("retry-after", std::to_string(s + (more ? 1 : 0)));
  }
  return headers;
}

}  // namespace warmroute
