// The names of rates in the price file, and of tiers in answers.
#include "usage/price_entry.hpp"

namespace warmroute {

PriceTier price_tier_of(std::string_view service_tier) noexcept {
  struct Word {
    std::string_view word;
    PriceTier tier;
  };
  static constexpr Word kWords[] = {{"priority", PriceTier::priority},  {"fast", PriceTier::priority},
                                    {"flex", PriceTier::flex},          {"batch", PriceTier::batch},
                                    {"batches", PriceTier::batch},      {"balanced", PriceTier::balanced},
                                    {"ultrafast", PriceTier::ultrafast}};
  std::string_view end = service_tier;  // ON_DEMAND_PRIORITY
  if (const auto bar = end.rfind('_'); bar != std::string_view::npos && service_tier.substr(0, 9) == "ON_DEMAND")
    end.remove_prefix(bar + 1);
  for (const Word& word : kWords) {
    if (word.word.size() != end.size()) continue;
    bool same = true;
    for (std::size_t i = 0; i < end.size(); ++i) {
      const char c = end[i] >= 'A' && end[i] <= 'Z' ? static_cast<char>(end[i] - 'A' + 'a') : end[i];
      same = same && c == word.word[i];
    }
    if (same) return word.tier;
  }
  return PriceTier::standard;
}

std::string_view price_meter_name(PriceMeter meter) noexcept {
  static constexpr std::string_view kNames[kPriceMeterCount] = {
      "input",       "cached_input",       "cache_write",  "cache_write_1h",     "cache_write_12h",
      "audio_input", "cached_audio_input", "image_input",  "cached_image_input", "video_input",
      "output",      "reasoning_output",   "audio_output", "image_output",       "web_search",
      "other_model"};
  const auto i = static_cast<std::size_t>(meter);
  return i < kPriceMeterCount ? kNames[i] : std::string_view{"unknown"};
}

namespace usage {
namespace {

bool strip_end(std::string_view& text, std::string_view end) {
  if (text.size() < end.size() || text.substr(text.size() - end.size()) != end) return false;
  text.remove_suffix(end.size());
  return true;
}

bool strip_tier(std::string_view& text, PriceTier& tier) {
  struct Word {
    std::string_view end;
    PriceTier tier;
  };
  static constexpr Word kEnds[] = {{"_priority", PriceTier::priority},
                                   {"_flex", PriceTier::flex},
                                   {"_batches", PriceTier::batch},
                                   {"_balanced", PriceTier::balanced},
                                   {"_ultrafast", PriceTier::ultrafast}};
  for (const Word& word : kEnds) {
    if (!strip_end(text, word.end)) continue;
    tier = word.tier;
    return true;
  }
  return false;
}

/// "_above_200k_tokens", "_above_128_tokens"
bool strip_threshold(std::string_view& text, std::int64_t& threshold) {
  constexpr std::string_view kAbove = "_above_";
  std::string_view rest = text;
  if (!strip_end(rest, "_tokens")) return false;
  const bool thousands = strip_end(rest, "k");
  std::int64_t value = 0;
  std::int64_t place = thousands ? 1'000 : 1;
  std::size_t digits = 0;
  for (; !rest.empty() && rest.back() >= '0' && rest.back() <= '9' && digits < 9; rest.remove_suffix(1), ++digits) {
    value += (rest.back() - '0') * place;
    place *= 10;
  }
  if (digits == 0 || value == 0 || !strip_end(rest, kAbove)) return false;
  text = rest;
  threshold = value;
  return true;
}

bool strip_lifetime(std::string_view& text, Lifetime& lifetime) {
  if (strip_end(text, "_above_1hr")) {
    lifetime = Lifetime::hour;
    return true;
  }
  if (!strip_end(text, "_above_12hr")) return false;
  lifetime = Lifetime::half_day;
  return true;
}

}  // namespace

std::optional<RateName> rate_name(std::string_view member) noexcept {
  struct Word {
    std::string_view word;
    RateKind kind;
  };
  static constexpr Word kWords[] = {{"input_cost_per_token", RateKind::input},
                                    {"output_cost_per_token", RateKind::output},
                                    {"cache_read_input_token_cost", RateKind::cache_read},
                                    {"cache_creation_input_token_cost", RateKind::cache_write},
                                    {"input_cost_per_token_cache_hit", RateKind::cache_hit},
                                    {"output_cost_per_reasoning_token", RateKind::reasoning},
                                    {"input_cost_per_audio_token", RateKind::audio_input},
                                    {"output_cost_per_audio_token", RateKind::audio_output},
                                    {"cache_read_input_audio_token_cost", RateKind::cached_audio},
                                    {"input_cost_per_audio_token_cache_hit", RateKind::cached_audio},
                                    {"input_cost_per_image_token", RateKind::image_input},
                                    {"output_cost_per_image_token", RateKind::image_output},
                                    {"cache_read_input_image_token_cost", RateKind::cached_image},
                                    {"input_cost_per_video_token", RateKind::video_input}};
  RateName name;
  while (strip_tier(member, name.tier) || strip_threshold(member, name.threshold) ||
         strip_lifetime(member, name.lifetime)) {}
  for (const Word& word : kWords) {
    if (member != word.word) continue;
    name.kind = word.kind;
    return name;
  }
  return std::nullopt;
}

}  // namespace usage
}  // namespace warmroute
