// Anthropic Messages, from Anthropic, Bedrock's InvokeModel, vLLM, SGLang and llama.cpp. Uncached, read and written input
// stand side by side and are added up; a stream's start is an estimate that later events correct in both directions.
#include "usage/answer.hpp"

namespace warmroute::usage {

bool replace_anthropic(Fields& counts, const Fields& said) noexcept {
  constexpr std::uint64_t kSplit = mask_of(Field::ttl_5m, Field::ttl_1h);
  bool changed = false;
  if (said.any_of(kSplit)) {  // one object: a part that is not in the later one is gone
    for (const Field part : {Field::ttl_5m, Field::ttl_1h}) {
      changed = changed || counts.get(part) != said.get(part);
      counts.forget(part);
      if (const UsageCount value = said.get(part)) counts.set(part, *value);
    }
  }
  said.each([&](Field field, std::int64_t value) {
    const UsageCount before = counts.get(field);
    if ((Fields::bit(field) & kSplit) != 0 || before == UsageCount(value)) return;
    if (value == 0 && before.has_value()) return;  // relays end with zeros for what they said at the start
    counts.set(field, value);
    changed = true;
  });
  return changed;
}

Usage anthropic_usage(Reading& reading) noexcept {
  const Fields& counts = reading.counts;
  Usage usage;
  usage.input_tokens = counts.get(Field::input);
  usage.cached_input_tokens = counts.get(Field::cache_read);
  usage.cache_write_input_tokens = counts.get(Field::cache_creation);
  usage.output_tokens = counts.get(Field::output);
  usage.reasoning_output_tokens =
      counts.has(Field::out_thinking) ? counts.get(Field::out_thinking) : counts.get(Field::out_reasoning);
  usage.cache_write_5m_tokens = counts.get(Field::ttl_5m);
  usage.cache_write_1h_tokens = counts.get(Field::ttl_1h);
  fit_write_split(usage, reading.anomalies);
  if (usage.input_tokens && reading.profile.input_includes_cache != Belief::yes) {
    // Anthropic says no total; a compatible server that does may show that its input is inclusive already.
    const UsageCount total = reading.profile.ignore_total ? std::nullopt : counts.get(Field::total);
    const bool inclusive = reading.profile.input_includes_cache == Belief::by_rule && total && usage.output_tokens &&
                           *total == *usage.input_tokens + *usage.output_tokens;
    if (!inclusive) add_cache_to_input(usage);
  }
  const Iterations& more = reading.iterations;
  if (more.compacted) {  // billed, and left out of the counts above
    usage.context_input_tokens = usage.input_tokens;
    const auto add = [](UsageCount& to, std::int64_t tokens) {
      if (to || tokens != 0) to = sum(to.value_or(0), tokens);
    };
    if (usage.input_tokens) add(usage.input_tokens, sum(sum(more.input, more.cached), more.write));
    add(usage.cached_input_tokens, more.cached);
    add(usage.cache_write_input_tokens, more.write);
    if (usage.output_tokens) add(usage.output_tokens, more.output);
  }
  return usage;
}

}  // namespace warmroute::usage
