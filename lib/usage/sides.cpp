// What all dialects share: whether a side contains its parts. Total tokens decide where they can.
#include "usage/answer.hpp"

namespace warmroute::usage {
namespace {

bool set_changed(Fields& counts, Field field, std::int64_t value) {
  const bool changed = counts.get(field) != UsageCount(value);
  counts.set(field, value);
  return changed;
}

/// One side is unknown: the total may still tell that there is nothing on it.
void settle_one_side(Usage& usage, std::int64_t total, UsageAnomalies& anomalies) {
  const std::int64_t gap = total - usage.input_tokens.value_or(0) - usage.output_tokens.value_or(0);
  if (gap < 0) return anomalies.add(UsageAnomaly::total_mismatch);
  if (gap > 0) {
    usage.unattributed_tokens = gap;
  } else if (!usage.output_tokens) {
    usage.output_tokens = 0;
  }
}

/// Parts that are larger than their side cannot be inside it.
void settle_impossible(Usage& usage, const MeterProfile& profile, bool cache_settled, UsageAnomalies& anomalies) {
  const std::int64_t cache = sum(usage.cached_input_tokens.value_or(0), usage.cache_write_input_tokens.value_or(0));
  if (usage.input_tokens && cache > *usage.input_tokens && !cache_settled) {
    anomalies.add(UsageAnomaly::cached_exceeds_input);
    if (profile.input_includes_cache != Belief::yes) add_cache_to_input(usage);
  }
  const std::int64_t reasoning = usage.reasoning_output_tokens.value_or(0);
  if (!usage.output_tokens || reasoning <= *usage.output_tokens) return;
  anomalies.add(UsageAnomaly::reasoning_exceeds_output);
  if (profile.output_includes_reasoning != Belief::yes) usage.output_tokens = sum(*usage.output_tokens, reasoning);
}

}  // namespace

bool replace_counts(Fields& counts, const Fields& said) noexcept {
  bool changed = false;
  said.each([&](Field field, std::int64_t value) { changed = set_changed(counts, field, value) || changed; });
  return changed;
}

void settle_sides(Usage& usage, UsageCount total, Reading& reading) noexcept {
  const MeterProfile& profile = reading.profile;
  if (!usage.input_tokens && !usage.output_tokens) return;
  bool cache_settled = false;
  if (profile.input_includes_cache == Belief::no && usage.input_tokens) {
    add_cache_to_input(usage);
    cache_settled = true;
  }
  const std::int64_t reasoning = usage.reasoning_output_tokens.value_or(0);
  bool reasoning_settled = profile.output_includes_reasoning != Belief::by_rule;
  if (profile.output_includes_reasoning == Belief::no && usage.output_tokens)
    usage.output_tokens = sum(*usage.output_tokens, reasoning);
  if (total && !profile.ignore_total) {
    if (!usage.input_tokens || !usage.output_tokens) {
      settle_one_side(usage, *total, reading.anomalies);
    } else {
      const std::int64_t cache = sum(usage.cached_input_tokens.value_or(0), usage.cache_write_input_tokens.value_or(0));
      std::int64_t gap = *total - *usage.input_tokens - *usage.output_tokens;
      const bool reasoning_outside = gap == reasoning || (gap > reasoning && reasoning > *usage.output_tokens);
      if (gap > 0 && !reasoning_settled && reasoning > 0 && reasoning_outside) {
        usage.output_tokens = sum(*usage.output_tokens, reasoning);
        gap -= reasoning;
      } else if (gap > 0 && gap == cache && !cache_settled) {
        // A deployment that is known to be inclusive counted them twice in its total.
        if (profile.input_includes_cache != Belief::yes) add_cache_to_input(usage);
        cache_settled = true;
        gap = 0;
      }
      if (gap > 0) usage.unattributed_tokens = gap;
      if (gap < 0) reading.anomalies.add(UsageAnomaly::total_mismatch);
    }
  }
  settle_impossible(usage, profile, cache_settled, reading.anomalies);
}

void fit_write_split(Usage& usage, UsageAnomalies& anomalies) noexcept {
  UsageCount* const parts[] = {&usage.cache_write_5m_tokens, &usage.cache_write_30m_tokens,
                               &usage.cache_write_1h_tokens, &usage.cache_write_12h_tokens};
  std::int64_t split = 0;
  bool any = false;
  for (const UsageCount* part : parts) {
    split = sum(split, part->value_or(0));
    any = any || part->has_value();
  }
  if (!any) return;
  if (!usage.cache_write_input_tokens) usage.cache_write_input_tokens = split;
  std::int64_t excess = split - *usage.cache_write_input_tokens;
  if (excess <= 0) return;
  anomalies.add(UsageAnomaly::write_split_exceeds);
  // The shortest lifetime goes first: it is the base one, where an estimate that was never corrected stands.
  for (UsageCount* part : parts) {
    const std::int64_t cut = std::min(excess, part->value_or(0));
    if (part->has_value()) *part = **part - cut;
    excess -= cut;
  }
}

}  // namespace warmroute::usage
