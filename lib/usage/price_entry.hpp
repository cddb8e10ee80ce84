// The rates of one model, as the price file's names say them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/usage/price.hpp"

namespace warmroute::usage {

/// What a rate is for.
enum class RateKind : std::uint8_t {
  input,
  output,
  cache_read,
  cache_write,
  cache_hit,  // an older spelling of cache_read
  reasoning,
  audio_input,
  audio_output,
  cached_audio,
  image_input,
  image_output,
  cached_image,
  video_input,
};
enum class Lifetime : std::uint8_t { base, hour, half_day };

/// One rate's name: <kind>[_above_1hr|_above_12hr][_above_<N>k_tokens][_<tier>].
struct RateName {
  RateKind kind = RateKind::input;
  Lifetime lifetime = Lifetime::base;
  PriceTier tier = PriceTier::standard;
  std::int64_t threshold = 0;  // tokens; 0: none

  friend bool operator==(const RateName&, const RateName&) noexcept = default;
};

/// returns: what the member's name says; nullopt: it is no rate per token.
std::optional<RateName> rate_name(std::string_view member) noexcept;

struct Rate {
  RateName name;
  std::int64_t femtos = 0;
};

/// A few rates: looking through them is as quick as any index.
class Rates {
 public:
  void set(const RateName& name, std::int64_t femtos);
  void remove(const RateName& name);
  [[nodiscard]] const std::int64_t* find(const RateName& name) const noexcept;
  [[nodiscard]] const std::vector<Rate>& all() const noexcept { return rates_; }

 private:
  std::vector<Rate> rates_;
};

/// Rates by the size of the prompt: low < tokens <= high.
struct PriceBand {
  std::int64_t low = 0;
  std::int64_t high = 0;
  Rates rates;
};

struct Multiplier {
  std::string word;  // a speed or a region
  std::int64_t millionths = 1'000'000;
};

struct PriceEntry {
  Rates rates;
  std::vector<PriceBand> bands;  // by low
  Rates off_peak;
  std::vector<Multiplier> multipliers;
  std::optional<std::int64_t> web_search_femtos;
  bool threshold_inclusive = false;
  bool self_hosted = false;
};

/// One model's object of a price file, to be laid over what is known of the model.
struct PricePatch {
  std::string model;
  PriceEntry entry;               // what it sets
  std::vector<RateName> removed;  // rates that are null
  bool sets_bands = false;
  bool sets_off_peak = false;
  bool sets_multipliers = false;
  bool sets_provider = false;
  std::vector<std::string> faults;  // rates that are none
};

/// errors: invalid_json, not_an_object, too_large.
Result<std::vector<PricePatch>> read_price_file(std::string_view json);
void apply(PricePatch&& patch, PriceEntry& entry);

/// Adds the cost of `usage` to `cost` by these rates. returns: false: a side or its rate is unknown.
struct PriceQuery {
  const Usage& usage;
  PriceTier tier = PriceTier::standard;
  bool off_peak = false;
  std::string_view speed;
  std::string_view geography;
};
bool add_cost(const PriceEntry& entry, const PriceQuery& query, Cost& cost) noexcept;

}  // namespace warmroute::usage
