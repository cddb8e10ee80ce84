// Counts times rates. A rate is looked for under its threshold and tier, then without either; a missing cache rate is the
// input's, a missing reasoning or modality rate its side's.
#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "usage/price_entry.hpp"

namespace warmroute::usage {
namespace {

constexpr std::int64_t kMostMillionths = 1'000'000'000;          // a thousandfold, however many multipliers meet
constexpr std::int64_t kMostFemtos = 1'000'000'000'000'000'000;  // 1,000 USD

__extension__ using Wide = unsigned __int128;  // 1e18 tokens at 1,000 USD: 120 bits

class Bill {
 public:
  Bill(const PriceEntry& entry, const PriceQuery& query, Cost& cost) noexcept
      : entry_(entry), query_(query), cost_(cost) {
    const std::int64_t prompt = query.usage.input_tokens.value_or(0);
    choose_band(prompt);
    choose_threshold(prompt);
    for (const Multiplier& multiplier : entry.multipliers) {
      if (multiplier.word.empty() || (multiplier.word != query.speed && multiplier.word != query.geography)) continue;
      millionths_ = std::min(millionths_ * multiplier.millionths / 1'000'000, kMostMillionths);
    }
  }

  bool add_all() noexcept;

 private:
  using RatePointer = const std::int64_t*;

  void choose_band(std::int64_t prompt) noexcept;
  void choose_threshold(std::int64_t prompt) noexcept;
  [[nodiscard]] RatePointer rate(RateKind kind, Lifetime lifetime = Lifetime::base) const noexcept;
  [[nodiscard]] RatePointer model_rate(RateKind kind, Lifetime lifetime) const noexcept;
  [[nodiscard]] RatePointer first_of(std::initializer_list<RatePointer> rates) const noexcept;
  [[nodiscard]] RatePointer cached_rate() const noexcept;
  [[nodiscard]] RatePointer write_rate(Lifetime lifetime) const noexcept;
  void add(PriceMeter meter, std::int64_t quantity, RatePointer rate) noexcept;
  void add_input() noexcept;
  void add_output() noexcept;
  void add_modality(PriceMeter fresh, PriceMeter cached, UsageCount tokens, UsageCount cached_tokens,
                    RatePointer fresh_rate, RatePointer cached_rate) noexcept;
  [[nodiscard]] bool has_tier() const noexcept {
    return std::any_of(entry_.rates.all().begin(), entry_.rates.all().end(),
                       [this](const Rate& rate) { return rate.name.tier == query_.tier; });
  }
  static std::int64_t take(std::int64_t& from, std::int64_t quantity) noexcept {
    const std::int64_t taken = std::clamp<std::int64_t>(quantity, 0, from);
    from -= taken;
    return taken;
  }

  const PriceEntry& entry_;
  const PriceQuery& query_;
  Cost& cost_;
  const PriceBand* band_ = nullptr;
  std::int64_t threshold_ = 0;
  std::int64_t millionths_ = 1'000'000;
  bool unpriced_ = false;
  Wide femtos_ = 0;
  std::int64_t uncached_ = 0;
  std::int64_t cached_ = 0;
};

/// The whole request has the rates of the band that its prompt falls in; above all, of the last.
void Bill::choose_band(std::int64_t prompt) noexcept {
  for (const PriceBand& band : entry_.bands) {
    if (band.rates.find({}) == nullptr) continue;  // without a rate for input it is no price
    band_ = &band;
    if (prompt <= band.high) break;
  }
  if (band_ != nullptr) cost_.threshold_tokens = band_->low;
}

void Bill::choose_threshold(std::int64_t prompt) noexcept {
  if (band_ != nullptr) return;
  for (const Rate& rate : entry_.rates.all()) {
    const RateName& name = rate.name;
    if (name.kind != RateKind::input || name.threshold <= threshold_) continue;
    if (name.tier != PriceTier::standard && name.tier != query_.tier) continue;
    const bool above = prompt > name.threshold || (entry_.threshold_inclusive && prompt == name.threshold);
    if (above) threshold_ = name.threshold;
  }
  cost_.threshold_tokens = threshold_;
}

Bill::RatePointer Bill::model_rate(RateKind kind, Lifetime lifetime) const noexcept {
  RateName name{kind, lifetime, query_.tier, threshold_};
  if (const auto found = entry_.rates.find(name)) return found;
  name.tier = PriceTier::standard;
  if (threshold_ != 0) {
    if (const auto found = entry_.rates.find(name)) return found;
    name.threshold = 0;
    name.tier = query_.tier;
    if (const auto found = entry_.rates.find(name)) return found;
    name.tier = PriceTier::standard;
  }
  return entry_.rates.find(name);
}

Bill::RatePointer Bill::rate(RateKind kind, Lifetime lifetime) const noexcept {
  const RateName plain{kind, lifetime, PriceTier::standard, 0};
  if (query_.off_peak) {
    if (const auto found = entry_.off_peak.find(plain)) return found;
  }
  if (band_ == nullptr) return model_rate(kind, lifetime);
  // A band names all its rates, but for an output that is the same in all.
  const auto found = band_->rates.find(plain);
  return found == nullptr && kind == RateKind::output ? model_rate(kind, lifetime) : found;
}

Bill::RatePointer Bill::first_of(std::initializer_list<RatePointer> rates) const noexcept {
  for (const RatePointer rate : rates) {
    if (rate != nullptr) return rate;
  }
  return nullptr;
}

Bill::RatePointer Bill::cached_rate() const noexcept {
  return first_of({rate(RateKind::cache_read), rate(RateKind::cache_hit), rate(RateKind::input)});
}

Bill::RatePointer Bill::write_rate(Lifetime lifetime) const noexcept {
  const RatePointer base = first_of({rate(RateKind::cache_write), rate(RateKind::input)});
  if (lifetime == Lifetime::base) return base;
  const RatePointer hour = first_of({rate(RateKind::cache_write, Lifetime::hour), base});
  return lifetime == Lifetime::hour ? hour : first_of({rate(RateKind::cache_write, Lifetime::half_day), hour});
}

void Bill::add(PriceMeter meter, std::int64_t quantity, RatePointer rate) noexcept {
  if (quantity == 0) return;
  if (rate == nullptr) {
    unpriced_ = true;
    return;
  }
  std::int64_t each = *rate;
  if (millionths_ != 1'000'000 && meter != PriceMeter::web_search)
    each = static_cast<std::int64_t>(
        std::min<Wide>((static_cast<Wide>(each) * static_cast<Wide>(millionths_) + 500'000) / 1'000'000, kMostFemtos));
  const Wide line = static_cast<Wide>(quantity) * static_cast<Wide>(each);
  femtos_ += line;
  if (cost_.line_count == cost_.lines.size()) return;
  cost_.lines[cost_.line_count++] = {meter, quantity, each, static_cast<std::int64_t>((line + 500) / 1'000)};
}

/// Parts of a modality are taken from the uncached tokens, but for what is said or must be cached.
void Bill::add_modality(PriceMeter fresh, PriceMeter cached, UsageCount tokens, UsageCount cached_tokens,
                        RatePointer fresh_rate, RatePointer cached_rate) noexcept {
  if (!tokens || (fresh_rate == nullptr && cached_rate == nullptr)) return;
  const std::int64_t said_cached = std::min(cached_tokens.value_or(0), *tokens);
  const std::int64_t uncached = take(uncached_, *tokens - said_cached);
  const std::int64_t rest = take(cached_, *tokens - uncached);
  add(fresh, uncached, first_of({fresh_rate, rate(RateKind::input)}));
  add(cached, rest, first_of({cached_rate, Bill::cached_rate()}));
}

void Bill::add_input() noexcept {
  const Usage& usage = query_.usage;
  uncached_ = *usage.input_tokens;
  cached_ = take(uncached_, usage.cached_input_tokens.value_or(0));
  std::int64_t written = take(uncached_, usage.cache_write_input_tokens.value_or(0));
  const std::int64_t hour = take(written, usage.cache_write_1h_tokens.value_or(0));
  const std::int64_t half_day = take(written, usage.cache_write_12h_tokens.value_or(0));
  add_modality(PriceMeter::audio_input, PriceMeter::cached_audio_input, usage.audio_input_tokens,
               usage.cached_audio_input_tokens, rate(RateKind::audio_input), rate(RateKind::cached_audio));
  add_modality(PriceMeter::image_input, PriceMeter::cached_image_input, usage.image_input_tokens,
               usage.cached_image_input_tokens, rate(RateKind::image_input), rate(RateKind::cached_image));
  if (const RatePointer video = rate(RateKind::video_input)) {
    const std::int64_t fresh = usage.video_input_tokens.value_or(0) - usage.cached_video_input_tokens.value_or(0);
    add(PriceMeter::video_input, take(uncached_, fresh), video);
  }
  add(PriceMeter::input, uncached_, rate(RateKind::input));
  add(PriceMeter::cached_input, cached_, cached_rate());
  add(PriceMeter::cache_write, written, write_rate(Lifetime::base));
  add(PriceMeter::cache_write_1h, hour, write_rate(Lifetime::hour));
  add(PriceMeter::cache_write_12h, half_day, write_rate(Lifetime::half_day));
}

void Bill::add_output() noexcept {
  const Usage& usage = query_.usage;
  std::int64_t rest = *usage.output_tokens;
  const auto part = [&](PriceMeter meter, UsageCount tokens, RatePointer rate) {
    if (rate != nullptr) add(meter, take(rest, tokens.value_or(0)), rate);
  };
  part(PriceMeter::reasoning_output, usage.reasoning_output_tokens, rate(RateKind::reasoning));
  part(PriceMeter::audio_output, usage.audio_output_tokens, rate(RateKind::audio_output));
  part(PriceMeter::image_output, usage.image_output_tokens, rate(RateKind::image_output));
  // Models that generate images have no rate for text.
  add(PriceMeter::output, rest, first_of({rate(RateKind::output), rate(RateKind::image_output)}));
}

bool Bill::add_all() noexcept {
  const Usage& usage = query_.usage;
  if (!usage.input_tokens || !usage.output_tokens) return false;
  add_input();
  add_output();
  if (unpriced_) return false;
  if (usage.web_search_requests.value_or(0) > 0) {
    const RatePointer search = entry_.web_search_femtos ? &*entry_.web_search_femtos : nullptr;
    if (search == nullptr) cost_.partial = true;
    if (search != nullptr) add(PriceMeter::web_search, *usage.web_search_requests, search);
  }
  if (usage.unattributed_tokens.value_or(0) > 0) cost_.partial = true;
  if (query_.tier != PriceTier::standard && (band_ != nullptr || !has_tier())) cost_.tier_fell_back = true;
  const Wide picos = (femtos_ + 500) / 1'000 + static_cast<Wide>(cost_.picos.value_or(0));
  if (picos > static_cast<Wide>(INT64_MAX)) return false;
  cost_.picos = static_cast<std::int64_t>(picos);
  return true;
}

}  // namespace

bool add_cost(const PriceEntry& entry, const PriceQuery& query, Cost& cost) noexcept {
  return Bill(entry, query, cost).add_all();
}

}  // namespace warmroute::usage
