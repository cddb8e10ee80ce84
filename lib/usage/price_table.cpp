// The table of models by name, and what a name may be called besides. See price.hpp.
#include <cmath>
#include <cstdio>
#include <functional>
#include <unordered_map>
#include <utility>

#include "usage/price_entry.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute {
namespace usage {
namespace {

constexpr int kMostAliases = 8;
constexpr std::size_t kLongestModel = 256;

bool all_digits(std::string_view text) {
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
  }
  return !text.empty();
}

/// "us.anthropic.claude-x" to "anthropic.claude-x"; "models/gemini-x", "openai/gpt-x" to what follows.
bool strip_place(std::string_view& name) {
  for (const std::string_view region : {"us.", "eu.", "apac.", "global.", "us-gov.", "jp.", "au.", "ca.", "models/"}) {
    if (name.substr(0, region.size()) != region) continue;
    name.remove_prefix(region.size());
    return true;
  }
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  name.remove_prefix(slash + 1);
  return true;
}

/// "-2025-08-07", "-20250807", "@20250807", "-latest", "@default"
bool strip_date(std::string_view& name) {
  for (const std::string_view end : {"-latest", "@latest", "@default", ":latest"}) {
    if (name.size() <= end.size() || name.substr(name.size() - end.size()) != end) continue;
    name.remove_suffix(end.size());
    return true;
  }
  if (name.size() > 11) {
    const std::string_view d = name.substr(name.size() - 11);
    if (d[0] == '-' && d[5] == '-' && d[8] == '-' && all_digits(d.substr(1, 4)) && all_digits(d.substr(6, 2)) &&
        all_digits(d.substr(9))) {
      name.remove_suffix(11);
      return true;
    }
  }
  if (name.size() > 9) {
    const std::string_view d = name.substr(name.size() - 9);
    if ((d[0] == '-' || d[0] == '@') && d.substr(1, 2) == "20" && all_digits(d.substr(1))) {
      name.remove_suffix(9);
      return true;
    }
  }
  return false;
}

/// "-v1:0", ":0", "-001"
bool strip_version(std::string_view& name) {
  if (const auto colon = name.rfind(':'); colon != std::string_view::npos && all_digits(name.substr(colon + 1))) {
    name = name.substr(0, colon);
    return true;
  }
  if (const auto dash = name.rfind('-'); dash != std::string_view::npos && dash != 0) {
    const std::string_view end = name.substr(dash + 1);
    if ((end.size() == 3 && all_digits(end)) || (end.size() == 2 && end[0] == 'v' && all_digits(end.substr(1)))) {
      name = name.substr(0, dash);
      return true;
    }
  }
  return false;
}

}  // namespace
}  // namespace usage

using usage::add_cost;
using usage::kLongestModel;
using usage::kMostAliases;
using usage::PriceEntry;
using usage::PricePatch;
using usage::Rate;
using usage::RateKind;
using usage::read_price_file;
using usage::strip_date;
using usage::strip_place;
using usage::strip_version;

struct PriceTable::Impl {
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  template <class T>
  using ByName = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;
  using Models = ByName<PriceEntry>;

  [[nodiscard]] Models::const_iterator find_one(std::string_view model, std::string_view provider) const {
    if (const auto found = models.find(model); found != models.end() || provider.empty()) return found;
    std::array<char, kLongestModel> text;
    if (provider.size() + 1 + model.size() > text.size()) return models.end();
    std::copy(provider.begin(), provider.end(), text.begin());
    text[provider.size()] = '/';
    std::copy(model.begin(), model.end(), text.begin() + static_cast<std::ptrdiff_t>(provider.size()) + 1);
    return models.find(std::string_view{text.data(), provider.size() + 1 + model.size()});
  }

  /// Versions and dates go first, then the place: a price of the same place is nearer than one of the same day.
  [[nodiscard]] Models::const_iterator find_stripped(std::string_view model, std::string_view provider) const {
    do {
      std::string_view name = model;
      do {
        if (const auto found = find_one(name, provider); found != models.end()) return found;
      } while (strip_version(name) || strip_date(name));
    } while (strip_place(model));
    return models.end();
  }

  [[nodiscard]] Models::const_iterator find(std::string_view model, std::string_view provider) const {
    for (int hop = 0; hop <= kMostAliases; ++hop) {
      if (const auto found = find_stripped(model, provider); found != models.end()) return found;
      const auto alias = aliases.find(model);
      if (alias == aliases.end()) break;
      model = alias->second;
    }
    return models.end();
  }

  void mix(std::string_view bytes) { digest = XXH3_64bits_withSeed(bytes.data(), bytes.size(), digest); }

  Models models;
  ByName<std::string> aliases;
  std::size_t skipped = 0;
  std::uint64_t digest = 0;
};

PriceTable::PriceTable() : impl_(std::make_unique<Impl>()) {}
PriceTable::~PriceTable() = default;
PriceTable::PriceTable(PriceTable&&) noexcept = default;
PriceTable& PriceTable::operator=(PriceTable&&) noexcept = default;

Result<PriceTable> PriceTable::from_json(std::string_view json) {
  auto patches = read_price_file(json);
  if (!patches) return patches.error();
  PriceTable table;
  table.impl_->models.reserve(patches->size());
  for (PricePatch& patch : *patches) {
    table.impl_->skipped += patch.faults.size();
    PriceEntry& entry = table.impl_->models[patch.model];
    apply(std::move(patch), entry);
  }
  table.impl_->mix(json);
  return table;
}

Result<PriceTable> PriceTable::load(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return Error{Code::io, "price file: cannot open '" + path + "'", kNoOffset};
  std::string text;
  std::array<char, 65'536> block;
  std::size_t n = 0;
  constexpr std::size_t kMostRead = std::size_t{65} << 20;  // beyond the limit, which from_json then names
  while (text.size() < kMostRead && (n = std::fread(block.data(), 1, block.size(), file)) != 0)
    text.append(block.data(), n);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) return Error{Code::io, "price file: cannot read '" + path + "'", kNoOffset};
  return from_json(text);
}

Status PriceTable::override_with(std::string_view json) {
  auto patches = read_price_file(json);
  if (!patches) return patches.error();
  std::string faults;
  for (const PricePatch& patch : *patches) {
    for (const std::string& fault : patch.faults)
      faults += (faults.empty() ? "" : "; ") + patch.model + "." + fault + " is no price";
  }
  if (!faults.empty()) return Error{Code::invalid_argument, "price overrides: " + faults, kNoOffset};
  for (PricePatch& patch : *patches) {
    PriceEntry& entry = impl_->models[patch.model];
    apply(std::move(patch), entry);
  }
  impl_->mix(json);
  return {};
}

Status PriceTable::set_alias(std::string_view alias, std::string_view model) {
  if (alias.empty() || model.empty() || alias == model)
    return Error{Code::invalid_argument, "price alias: two different names are wanted", kNoOffset};
  int hops = 1;
  for (auto next = impl_->aliases.find(model); next != impl_->aliases.end(); next = impl_->aliases.find(next->second)) {
    if (++hops > kMostAliases || next->second == alias)
      return Error{Code::invalid_argument,
                   "price alias: '" + std::string(alias) + "' leads to itself, or over more than 8 names", kNoOffset};
  }
  impl_->aliases.insert_or_assign(std::string(alias), std::string(model));
  impl_->mix(alias);
  impl_->mix(model);
  return {};
}

Status PriceTable::set_self_hosted(const SelfHostedPrice& price) {
  std::string faults;
  const auto check = [&](bool good, const char* what) {
    if (!good) faults += std::string(faults.empty() ? "" : "; ") + what;
  };
  check(!price.model.empty(), "model is empty");
  check(price.replica_hour_picos >= 0, "replica_hour_picos is negative");
  check(price.input_tokens_per_second > 0 && std::isfinite(price.input_tokens_per_second),
        "input_tokens_per_second is not above 0");
  check(price.output_tokens_per_second > 0 && std::isfinite(price.output_tokens_per_second),
        "output_tokens_per_second is not above 0");
  check(price.cached_tokens_per_second >= 0 && std::isfinite(price.cached_tokens_per_second),
        "cached_tokens_per_second is negative");
  check(price.utilization > 0 && price.utilization <= 1, "utilization is not in (0, 1]");
  const double second = static_cast<double>(price.replica_hour_picos) * 1'000 / 3'600 / price.utilization;
  const auto rate = [&](double per_second) { return second / per_second; };
  constexpr double kMostEach = 1e18;
  check(!faults.empty() ||
            (rate(price.input_tokens_per_second) < kMostEach && rate(price.output_tokens_per_second) < kMostEach &&
             (price.cached_tokens_per_second == 0 || rate(price.cached_tokens_per_second) < kMostEach)),
        "a token costs more than 1,000 USD");
  if (!faults.empty()) return Error{Code::invalid_argument, "self-hosted price: " + faults, kNoOffset};
  PriceEntry entry;
  entry.self_hosted = true;
  entry.rates.set({.kind = RateKind::input}, std::llround(rate(price.input_tokens_per_second)));
  entry.rates.set({.kind = RateKind::output}, std::llround(rate(price.output_tokens_per_second)));
  const bool free = price.cached_tokens_per_second == 0;
  entry.rates.set({.kind = RateKind::cache_read}, free ? 0 : std::llround(rate(price.cached_tokens_per_second)));
  impl_->mix(price.model);
  for (const Rate& each : entry.rates.all())
    impl_->mix({reinterpret_cast<const char*>(&each.femtos), sizeof each.femtos});
  impl_->models.insert_or_assign(price.model, std::move(entry));
  return {};
}

std::optional<std::string_view> PriceTable::find(std::string_view model, std::string_view provider) const {
  const auto found = impl_->find(model, provider);
  if (found == impl_->models.end()) return std::nullopt;
  return std::string_view{found->first};
}

Cost PriceTable::cost(const UsageReport& report, std::string_view model, const PriceOptions& options) const {
  Cost cost;
  const auto reported = [&] {
    cost.picos = report.usage.reported_cost_picos;
    cost.source = cost.picos ? CostSource::reported : CostSource::unknown;
    return cost;
  };
  if (options.prefer_reported_cost && report.usage.reported_cost_picos) return reported();
  const auto found = impl_->find(model.empty() ? report.model : model, options.provider);
  if (found == impl_->models.end()) return reported();
  cost.price_key = found->first;
  const PriceTier tier = options.tier.value_or(price_tier_of(report.service_tier));
  if (!add_cost(found->second, {report.usage, tier, options.off_peak, report.speed, report.inference_geography},
                cost)) {
    cost = Cost{};
    cost.price_key = found->first;
    return reported();
  }
  cost.source = found->second.self_hosted ? CostSource::self_hosted : CostSource::table;
  for (const OtherModelUsage& other : report.other_models) {
    Usage usage;
    usage.input_tokens = other.input_tokens;
    usage.cached_input_tokens = other.cached_input_tokens;
    usage.cache_write_input_tokens = other.cache_write_input_tokens;
    usage.output_tokens = other.output_tokens;
    const auto entry = impl_->find(other.model, options.provider);
    Cost line;
    if (entry == impl_->models.end() ||
        !add_cost(entry->second, {usage, tier, options.off_peak, report.speed, report.inference_geography}, line)) {
      cost.partial = true;
      continue;
    }
    std::int64_t total = 0;
    if (__builtin_add_overflow(*cost.picos, *line.picos, &total)) {
      cost.partial = true;
      continue;
    }
    cost.picos = total;
    if (cost.line_count == cost.lines.size()) continue;
    const std::int64_t tokens = *usage.input_tokens + *usage.output_tokens;
    const double average = tokens == 0 ? 0 : static_cast<double>(*line.picos) * 1e3 / static_cast<double>(tokens);
    cost.lines[cost.line_count++] = {PriceMeter::other_model, tokens, std::llround(average), *line.picos};
  }
  return cost;
}

std::size_t PriceTable::size() const noexcept { return impl_->models.size(); }
std::size_t PriceTable::skipped_rates() const noexcept { return impl_->skipped; }

std::string PriceTable::version() const {
  std::array<char, 17> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(impl_->digest));
  return text.data();
}

}  // namespace warmroute
