// OpenAI's chat completions, completions, embeddings and Responses, and everybody who speaks like them: Azure, Mistral,
// DeepSeek, xAI, Groq, Moonshot, OpenRouter, vLLM, SGLang, TGI, llama.cpp. Input is inclusive unless the total says
// otherwise. The same count has many spellings, several of which may be in one object, filled with zeros.
#include "usage/answer.hpp"

namespace warmroute::usage {
namespace {

/// returns: the first spelling with a number above 0; else 0 if any spelling is known.
template <class... F>
UsageCount first_of(const Fields& counts, F... spellings) {
  UsageCount found;
  const auto look = [&](Field field) {
    if (found.value_or(0) == 0 && counts.has(field)) found = counts.get(field);
  };
  (look(spellings), ...);
  return found;
}

}  // namespace

bool replace_openai(Fields& counts, const Fields& said) noexcept {
  bool changed = false;
  const bool sides = said.any_of(mask_of(Field::prompt, Field::completion, Field::input, Field::output));
  if (sides && !said.has(Field::total) && counts.has(Field::total)) {
    counts.forget(Field::total);
    changed = true;
  }
  return replace_counts(counts, said) || changed;
}

Usage openai_usage(Reading& reading) noexcept {
  const Fields& counts = reading.counts;
  Usage usage;
  usage.input_tokens = first_of(counts, Field::prompt, Field::input);
  usage.output_tokens = first_of(counts, Field::completion, Field::output);
  usage.cached_input_tokens = first_of(counts, Field::in_cached, Field::hit, Field::top_cached, Field::num_cached,
                                       Field::cache_read, Field::cache_n);
  usage.cache_write_input_tokens = first_of(counts, Field::in_write, Field::cache_creation);
  usage.reasoning_output_tokens = first_of(counts, Field::out_reasoning, Field::top_reasoning, Field::out_thinking);
  usage.cache_write_5m_tokens = counts.get(Field::ttl_5m);
  usage.cache_write_30m_tokens = counts.get(Field::ttl_30m);
  usage.cache_write_1h_tokens = counts.get(Field::ttl_1h);
  usage.cache_write_12h_tokens = counts.get(Field::ttl_12h);
  read_modalities(usage, counts);
  usage.accepted_prediction_tokens = counts.get(Field::accepted);
  usage.rejected_prediction_tokens = counts.get(Field::rejected);
  if (reading.embeddings && !usage.output_tokens) usage.output_tokens = 0;
  fit_write_split(usage, reading.anomalies);
  settle_sides(usage, counts.get(Field::total), reading);
  return usage;
}

}  // namespace warmroute::usage
