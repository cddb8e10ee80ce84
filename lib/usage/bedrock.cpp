// Bedrock: Converse, and what InvokeModel adds to the answers of models that say nothing themselves. Input excludes what
// was read from and written to the cache; the total is unreliable and never used.
#include "usage/answer.hpp"

namespace warmroute::usage {

Usage bedrock_usage(Reading& reading) noexcept {
  const Fields& counts = reading.counts;
  Usage usage;
  usage.input_tokens = counts.get(Field::bedrock_input);
  usage.output_tokens = counts.get(Field::bedrock_output);
  usage.cached_input_tokens = counts.get(Field::bedrock_read);
  usage.cache_write_input_tokens = counts.get(Field::bedrock_write);
  usage.cache_write_5m_tokens = counts.get(Field::ttl_5m);
  usage.cache_write_30m_tokens = counts.get(Field::ttl_30m);
  usage.cache_write_1h_tokens = counts.get(Field::ttl_1h);
  usage.cache_write_12h_tokens = counts.get(Field::ttl_12h);
  fit_write_split(usage, reading.anomalies);
  if (usage.input_tokens && reading.profile.input_includes_cache != Belief::yes) add_cache_to_input(usage);
  return usage;
}

}  // namespace warmroute::usage
