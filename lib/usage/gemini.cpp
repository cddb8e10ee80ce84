// Gemini and Vertex generateContent. Cached input is inside the prompt; tool results and thoughts stand beside theirs, the
// latter not for every model: the total tells.
#include "usage/answer.hpp"

namespace warmroute::usage {

Usage gemini_usage(Reading& reading) noexcept {
  const Fields& counts = reading.counts;
  Usage usage;
  const UsageCount tool_use = counts.get(Field::gemini_tool_use);
  const UsageCount thoughts = counts.get(Field::gemini_thoughts);
  const UsageCount candidates = counts.get(Field::gemini_candidates);
  const UsageCount total = counts.get(Field::gemini_total);
  if (const UsageCount prompt = counts.get(Field::gemini_prompt))
    usage.input_tokens = sum(*prompt, tool_use.value_or(0));
  if (candidates || thoughts) usage.output_tokens = sum(candidates.value_or(0), thoughts.value_or(0));
  usage.cached_input_tokens = counts.get(Field::gemini_cached);
  usage.reasoning_output_tokens = thoughts;
  usage.tool_use_input_tokens = tool_use;
  read_modalities(usage, counts);
  const Belief inside = reading.profile.output_includes_reasoning;
  if (candidates && thoughts && inside != Belief::no) {
    const bool total_says_so = total && !reading.profile.ignore_total && usage.input_tokens && *thoughts > 0 &&
                               *thoughts <= *candidates && *total == *usage.input_tokens + *candidates;
    if (inside == Belief::yes || total_says_so) usage.output_tokens = *candidates;
  }
  // Settled above; what follows must not add the thoughts once more.
  MeterProfile profile = reading.profile;
  profile.output_includes_reasoning = Belief::yes;
  Reading rest{counts, reading.iterations, profile};
  settle_sides(usage, total, rest);
  reading.anomalies.bits |= rest.anomalies.bits;
  return usage;
}

}  // namespace warmroute::usage
