/// What a request costs: reads LiteLLM's price file (model_prices_and_context_window.json) from wherever the caller keeps
/// it, takes overrides, aliases and self-hosted models beside it, and turns a usage report into exact integer money.
/// Invariants: money is counted in 1e-12 USD and rates in 1e-15 USD, multiplied in 128 bits and rounded once; an unknown
/// model or an unknown side costs unknown, never 0; a price of 0 is a price; no token is priced twice.
/// Does not: ship prices, read a clock (off-peak hours are the caller's to tell), price per image, second or page, or
/// apply uplifts of a region that only the deployment knows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"
#include "warmroute/usage/usage.hpp"

namespace warmroute {

/// How urgent a request is served, which is priced apart. Numbers are fixed and only appended.
enum class PriceTier : std::uint8_t { standard = 0, priority = 1, flex = 2, batch = 3, balanced = 4, ultrafast = 5 };

/// returns: the price tier of a provider's word for it: "priority", "flex", "batch", "ON_DEMAND_PRIORITY", ...; standard
/// for all others.
PriceTier price_tier_of(std::string_view service_tier) noexcept;

/// What is metered. Numbers are fixed and only appended.
enum class PriceMeter : std::uint8_t {
  input = 0,
  cached_input = 1,
  cache_write = 2,  ///< of the base lifetime (5 or 30 minutes), and what a split by lifetime leaves over
  cache_write_1h = 3,
  cache_write_12h = 4,
  audio_input = 5,
  cached_audio_input = 6,
  image_input = 7,
  cached_image_input = 8,
  video_input = 9,
  output = 10,
  reasoning_output = 11,
  audio_output = 12,
  image_output = 13,
  web_search = 14,   ///< requests
  other_model = 15,  ///< tokens of a sub-inference on another model; its rate is an average
};
inline constexpr std::size_t kPriceMeterCount = 16;
/// returns: the meter's name as spelled above. lifetime: static.
std::string_view price_meter_name(PriceMeter meter) noexcept;

/// One row of a bill.
struct CostLine {
  PriceMeter meter = PriceMeter::input;
  std::int64_t quantity = 0;     ///< units: tokens or requests
  std::int64_t rate_femtos = 0;  ///< units: 1e-15 USD each
  std::int64_t cost_picos = 0;   ///< units: 1e-12 USD, rounded; the sum of the lines may differ by their roundings
};

/// Where a cost is from. Numbers are fixed and only appended.
enum class CostSource : std::uint8_t { unknown = 0, table = 1, self_hosted = 2, reported = 3 };

/// lifetime: `price_key` is the table's.
struct Cost {
  std::optional<std::int64_t> picos;  ///< units: 1e-12 USD; nullopt: unknown
  CostSource source = CostSource::unknown;
  std::string_view price_key;         ///< under which name the price was found
  std::int64_t threshold_tokens = 0;  ///< rates for prompts above so many tokens applied; 0: none
  bool tier_fell_back = false;        ///< the file has no price for the tier: standard rates applied
  bool partial = false;  ///< something reported has no price: tool requests, another model, unattributed tokens
  std::uint8_t line_count = 0;
  std::array<CostLine, kPriceMeterCount> lines{};

  [[nodiscard]] std::span<const CostLine> bill() const noexcept { return {lines.data(), line_count}; }
};

/// A model that is served from own replicas: what an hour of one costs, shared among what it can do in an hour.
struct SelfHostedPrice {
  std::string model;
  std::int64_t replica_hour_picos = 0;  ///< units: 1e-12 USD an hour of one replica, all of its GPUs
  double input_tokens_per_second = 0;   ///< uncached prompt tokens one replica computes, doing nothing else
  double output_tokens_per_second = 0;  ///< tokens one replica generates for all its requests together, likewise
  double cached_tokens_per_second = 0;  ///< prompt tokens taken from the cache; 0: they cost nothing
  double utilization = 1;               ///< share of the hours that work is done in, 0..1: idle hours are paid too
};

struct PriceOptions {
  /// Tried as a prefix of names ("azure" for "azure/gpt-x"); empty: none. lifetime: the call.
  std::string_view provider{};
  bool prefer_reported_cost = false;  ///< a cost that the provider reported wins over the table
  bool off_peak = false;              ///< it is off-peak now: rates of off_peak_pricing apply where there are any
  /// The tier to price by; nullopt: the report's.
  std::optional<PriceTier> tier;
};

/// Prices of many models. threads: any number of readers; changes by one, with none reading.
class PriceTable {
 public:
  PriceTable();
  ~PriceTable();
  PriceTable(PriceTable&&) noexcept;
  PriceTable& operator=(PriceTable&&) noexcept;

  /// errors: invalid_json, not_an_object, too_large (64 MiB). Models with malformed rates lose those rates; see
  /// skipped_rates(). cost: 20 ms for 5,000 models.
  static Result<PriceTable> from_json(std::string_view json);
  /// errors: io, and those of from_json.
  static Result<PriceTable> load(const std::string& path);

  /// Members of the same format replace those of the model, others stay; a rate of null is removed.
  /// errors: invalid_json, not_an_object, too_large; invalid_argument: a rate that is none (named).
  Status override_with(std::string_view json);
  /// `alias` is priced as `model`, which need not be there yet. errors: invalid_argument: empty, or longer chains than 8.
  Status set_alias(std::string_view alias, std::string_view model);
  /// errors: invalid_argument (every fault named). Replaces the model's rates.
  Status set_self_hosted(const SelfHostedPrice& price);

  /// Looks for the name exactly, then with the provider before it, then without region, date and version, then as an
  /// alias. returns: the key found; nullopt: unknown. lifetime: of the view, until the table changes.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view model, std::string_view provider = {}) const;

  /// What the report's usage costs. `model`: the name to price by; empty: the one that answered.
  /// Both sides must be known. The provider's own cost stands in where the table knows no price.
  /// alloc: none. cost: about 0.3 us (bench_meter).
  [[nodiscard]] Cost cost(const UsageReport& report, std::string_view model = {},
                          const PriceOptions& options = {}) const;

  [[nodiscard]] std::size_t size() const noexcept;           ///< models
  [[nodiscard]] std::size_t skipped_rates() const noexcept;  ///< members that should be rates and are none
  /// returns: a digest of everything that was put in, in hexadecimal: the version to write beside a cost.
  [[nodiscard]] std::string version() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
