// llama.cpp without a usage object: its native /completion, and the timings it sends in any case. tokens_cached is the
// fill of the cache after the run and says nothing about hits.
#include "usage/answer.hpp"

namespace warmroute::usage {

Usage llamacpp_usage(Reading& reading) noexcept {
  const Fields& counts = reading.counts;
  Usage usage;
  usage.cached_input_tokens = counts.get(Field::cache_n);
  usage.input_tokens = counts.get(Field::evaluated);
  usage.output_tokens = counts.get(Field::predicted);
  if (!usage.output_tokens) {
    reading.source = UsageSource::timings;
    usage.output_tokens = counts.get(Field::predicted_n);
  }
  // prompt_n is what was computed: without the hits it is no input count.
  if (!usage.input_tokens && counts.has(Field::cache_n) && counts.has(Field::prompt_n))
    usage.input_tokens = sum(counts.or_zero(Field::cache_n), counts.or_zero(Field::prompt_n));
  return usage;
}

}  // namespace warmroute::usage
