// Whatever the file, it is refused with a message or priced by: costs are unknown or not negative, and an override of a
// table with itself changes no cost.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "warmroute/usage/price.hpp"

namespace {

void check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  auto table = warmroute::PriceTable::from_json(text);
  if (!table) {
    check(!table.error().message.empty());
    return 0;
  }
  auto same = warmroute::PriceTable::from_json(text);
  const bool overridden = same->override_with(text).ok();
  check(overridden == (table->skipped_rates() == 0));
  warmroute::UsageReport report;
  warmroute::Usage& usage = report.usage;
  usage.input_tokens = 300'000;
  usage.cached_input_tokens = 1'000;
  usage.cache_write_input_tokens = 500;
  usage.cache_write_1h_tokens = 200;
  usage.audio_input_tokens = 50;
  usage.output_tokens = 900;
  usage.reasoning_output_tokens = 100;
  report.speed = "fast";
  for (const std::string_view model : {"m", "a", "gpt-x-2025-01-01", "us.x/m-v1:0"}) {
    for (int tier = 0; tier < 6; ++tier) {
      warmroute::PriceOptions options;
      options.provider = "p";
      options.tier = static_cast<warmroute::PriceTier>(tier);
      options.off_peak = tier == 1;
      const warmroute::Cost cost = table->cost(report, model, options);
      check(cost.picos.value_or(0) >= 0);
      check(cost.picos.has_value() == (cost.source != warmroute::CostSource::unknown));
      check(same->cost(report, model, options).picos == cost.picos);
    }
  }
  return 0;
}
