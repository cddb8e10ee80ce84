// Which members of answers mean something to the accountant, for all providers at once: a tree of names. Everything
// else in an answer is skipped unread. One table instead of a reader per provider, since compatible servers mix the
// vocabularies freely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warmroute::usage {

/// Objects whose members are looked at. `none`: its members are skipped.
enum class Node : std::uint8_t {
  none,
  root,
  usage,               // OpenAI and compatible, Anthropic, Bedrock, Cohere v2
  prompt_details,      // prompt_tokens_details and its other spellings
  cached_details,      // cached_tokens_details, by modality
  write_details,       // cache_write_tokens_details, by lifetime
  completion_details,  // completion_tokens_details and its other spellings
  cache_creation,
  server_tools,
  billed_units,
  processed,  // Cohere's tokens
  iteration,
  cache_detail,
  gemini_usage,
  prompt_modality,
  cached_modality,
  output_modality,
  timings,
  metrics,       // amazon-bedrock-invocationMetrics
  holder,        // an object that matters for the usage object in it
  quiet_holder,  // likewise, but whose `usage` may be anything else
  choice,
  choice_delta,
  candidate,
  candidate_content,
  part,
  feedback,
  response,
  message,
  delta,
  delta_message,
  delta_content,
  block_delta,
  message_stop,
  cohere_meta,
  tool_usage,
  web_search,
  incomplete,
  tier,
  count_,
};

/// Counts by their place, whatever the provider.
enum class Field : std::uint8_t {
  prompt,
  completion,
  total,
  input,
  output,
  in_cached,
  in_write,
  in_text,
  in_audio,
  in_image,
  in_video,
  cached_text,
  cached_audio,
  cached_image,
  cached_video,
  ttl_5m,
  ttl_30m,
  ttl_1h,
  ttl_12h,
  out_reasoning,
  out_thinking,
  out_text,
  out_audio,
  out_image,
  accepted,
  rejected,
  top_cached,
  num_cached,
  hit,
  top_reasoning,
  cache_read,
  cache_creation,
  web_search,
  web_fetch,
  bedrock_input,
  bedrock_output,
  bedrock_total,
  bedrock_read,
  bedrock_write,
  billed_input,
  billed_output,
  processed_input,
  processed_output,
  gemini_prompt,
  gemini_candidates,
  gemini_thoughts,
  gemini_tool_use,
  gemini_cached,
  gemini_total,
  cache_n,
  prompt_n,
  predicted_n,
  evaluated,
  predicted,
  cost_picos,
  // of one element of a list, never of the answer
  index,
  element_tokens,
  count_,
};
inline constexpr std::size_t kFieldCount = static_cast<std::size_t>(Field::count_);

/// Short texts by their place.
enum class Slot : std::uint8_t {
  type,
  object,
  status,
  id,
  model,
  service_tier,
  finish,
  speed,
  geography,
  block_reason,
  // of one element of a list
  element_finish,
  element_name,  // modality, lifetime, kind of iteration
  element_model,
  count_,
};
inline constexpr std::size_t kSlotCount = static_cast<std::size_t>(Slot::count_);

/// What to do with a member's value. Values of other types than named are skipped.
enum class Take : std::uint8_t {
  skip,
  object,          // an object: look into it
  quiet_object,    // the same, and other types are no fault
  list,            // an array: look into its objects
  count,           // a number, of a Field; other types are a fault
  money,           // USD, exactly
  ticks,           // 1e-10 USD
  text,            // a string, of a Slot
  text_or_object,  // a string, of a Slot, or an object to look into
  output,          // output, if it is not empty
  output_or_object,
  error,  // an error, if it is not null or false
  stop,   // true: the answer is over
  bytes,  // base64 of another answer
};

struct Member {
  Take take = Take::skip;
  Node node = Node::none;  // of `object` and `list`
  std::uint8_t id = 0;     // Field or Slot
};

/// returns: what the member `name` of an object at `node` means; Take::skip for most.
Member find_member(Node node, std::string_view name) noexcept;
/// The longest name that means something; longer ones need not be kept.
inline constexpr std::size_t kLongestName = 40;

}  // namespace warmroute::usage
