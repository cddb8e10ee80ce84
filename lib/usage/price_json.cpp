// Reads LiteLLM's price file: an object of models, each an object of which the rates and their conditions are taken.
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "usage/price_entry.hpp"

namespace warmroute::usage {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kMostPriceBytes = std::size_t{64} << 20;
constexpr double kMostUsd = 1'000.0;  // USD a token or request: more is no price

enum class Found : std::uint8_t { none, removed, rate };

/// USD to 1e-15 USD. The file's doubles carry noise (1.0000000000000001e-07): rounding takes it away.
bool to_femtos(double usd, std::int64_t& femtos) {
  if (!(usd >= 0) || usd > kMostUsd) return false;
  femtos = static_cast<std::int64_t>(std::llround(usd * 1e15));
  return true;
}

bool read_double(dom::element value, double& out) {
  if (value.is_number()) return value.get(out) == simdjson::SUCCESS;
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS || text.empty()) return false;
  const std::string copy(text);  // "3e-7": hand-written files have such
  char* end = nullptr;
  out = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size();
}

bool read_rate(dom::element value, std::int64_t& femtos) {
  double usd = 0;
  return read_double(value, usd) && to_femtos(usd, femtos);
}

void read_rates(dom::object object, Rates& rates, PricePatch& patch, bool removes) {
  for (const auto member : object) {
    const auto name = rate_name(member.key);
    if (!name) continue;
    std::int64_t femtos = 0;
    if (member.value.is_null()) {
      if (removes) patch.removed.push_back(*name);
    } else if (read_rate(member.value, femtos)) {
      rates.set(*name, femtos);
    } else {
      patch.faults.emplace_back(member.key);
    }
  }
}

void read_bands(dom::array bands, PricePatch& patch) {
  for (const auto item : bands) {
    dom::object object;
    dom::array range;
    PriceBand band;
    double low = 0;
    double high = 0;
    // Searches have bands by the number of results.
    if (item.get(object) == simdjson::SUCCESS && object["range"].error() == simdjson::NO_SUCH_FIELD) continue;
    if (item.get(object) != simdjson::SUCCESS || object["range"].get(range) != simdjson::SUCCESS || range.size() != 2 ||
        !read_double(range.at(0), low) || !read_double(range.at(1), high) || !(low >= 0) || !(high > low) ||
        high > 1e15) {
      patch.faults.emplace_back("tiered_pricing");
      continue;
    }
    band.low = static_cast<std::int64_t>(low);
    band.high = static_cast<std::int64_t>(high);
    read_rates(object, band.rates, patch, false);
    patch.entry.bands.push_back(std::move(band));
  }
  std::sort(patch.entry.bands.begin(), patch.entry.bands.end(),
            [](const PriceBand& a, const PriceBand& b) { return a.low < b.low; });
}

void read_multipliers(dom::object words, PricePatch& patch) {
  for (const auto member : words) {
    double factor = 0;
    if (!read_double(member.value, factor) || !(factor >= 0) || factor > 1'000) continue;  // other facts live here, too
    patch.entry.multipliers.push_back({std::string(member.key), std::llround(factor * 1e6)});
  }
}

void read_search(dom::object sizes, PricePatch& patch) {
  for (const char* size : {"search_context_size_medium", "search_context_size_low", "search_context_size_high"}) {
    dom::element price;
    std::int64_t femtos = 0;
    if (sizes[size].get(price) != simdjson::SUCCESS || !read_rate(price, femtos)) continue;
    patch.entry.web_search_femtos = femtos;
    return;
  }
}

PricePatch read_model(std::string_view model, dom::object object) {
  PricePatch patch;
  patch.model = model;
  read_rates(object, patch.entry.rates, patch, true);
  dom::array list;
  dom::object inner;
  std::string_view provider;
  if (object["tiered_pricing"].get(list) == simdjson::SUCCESS) {
    patch.sets_bands = true;
    read_bands(list, patch);
  }
  if (object["off_peak_pricing"].get(inner) == simdjson::SUCCESS) {
    patch.sets_off_peak = true;
    read_rates(inner, patch.entry.off_peak, patch, false);
  }
  if (object["provider_specific_entry"].get(inner) == simdjson::SUCCESS) {
    patch.sets_multipliers = true;
    read_multipliers(inner, patch);
  }
  if (object["search_context_cost_per_query"].get(inner) == simdjson::SUCCESS) read_search(inner, patch);
  if (object["litellm_provider"].get(provider) == simdjson::SUCCESS) {
    patch.sets_provider = true;
    patch.entry.threshold_inclusive =
        provider == "xai";  // bills the higher rates once the prompt reaches the threshold
  }
  return patch;
}

}  // namespace

Result<std::vector<PricePatch>> read_price_file(std::string_view json) {
  if (json.size() > kMostPriceBytes) return Error{Code::too_large, "price file: larger than 64 MiB", kNoOffset};
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error != simdjson::SUCCESS)
    return Error{Code::invalid_json, std::string("price file: ") + simdjson::error_message(error), kNoOffset};
  dom::object models;
  if (root.get(models) != simdjson::SUCCESS)
    return Error{Code::not_an_object, "price file: an object of models is wanted", kNoOffset};
  std::vector<PricePatch> patches;
  for (const auto model : models) {
    dom::object object;
    if (model.key == "sample_spec" || model.value.get(object) != simdjson::SUCCESS) continue;
    patches.push_back(read_model(model.key, object));
  }
  return patches;
}

void apply(PricePatch&& patch, PriceEntry& entry) {
  for (const RateName& name : patch.removed) entry.rates.remove(name);
  for (const Rate& rate : patch.entry.rates.all()) entry.rates.set(rate.name, rate.femtos);
  if (patch.sets_bands) entry.bands = std::move(patch.entry.bands);
  if (patch.sets_off_peak) entry.off_peak = std::move(patch.entry.off_peak);
  if (patch.sets_multipliers) entry.multipliers = std::move(patch.entry.multipliers);
  if (patch.entry.web_search_femtos) entry.web_search_femtos = patch.entry.web_search_femtos;
  if (patch.sets_provider) entry.threshold_inclusive = patch.entry.threshold_inclusive;
}

void Rates::set(const RateName& name, std::int64_t femtos) {
  for (Rate& rate : rates_) {
    if (rate.name == name) {
      rate.femtos = femtos;
      return;
    }
  }
  rates_.push_back({name, femtos});
}

void Rates::remove(const RateName& name) {
  rates_.erase(std::remove_if(rates_.begin(), rates_.end(), [&](const Rate& rate) { return rate.name == name; }),
               rates_.end());
}

const std::int64_t* Rates::find(const RateName& name) const noexcept {
  for (const Rate& rate : rates_) {
    if (rate.name == name) return &rate.femtos;
  }
  return nullptr;
}

}  // namespace warmroute::usage
