// Cohere v1 and v2: what is billed is the usage; what the model processed, with its preamble, is kept beside it. Cached
// tokens are of the processed prompt and may exceed the billed one.
#include "usage/answer.hpp"

namespace warmroute::usage {

Usage cohere_usage(Reading& reading) noexcept {
  const Fields& counts = reading.counts;
  Usage usage;
  usage.processed_input_tokens = counts.get(Field::processed_input);
  usage.processed_output_tokens = counts.get(Field::processed_output);
  const bool billed = counts.any_of(mask_of(Field::billed_input, Field::billed_output));
  usage.input_tokens = billed ? counts.get(Field::billed_input) : usage.processed_input_tokens;
  usage.output_tokens = billed ? counts.get(Field::billed_output) : usage.processed_output_tokens;
  usage.cached_input_tokens = counts.get(Field::top_cached);
  return usage;
}

}  // namespace warmroute::usage
