// The table of names, and a perfect enough hash over (object, name) made at compile time.
#include "usage/answer_grammar.hpp"

#include <array>

namespace warmroute::usage {
namespace {

struct Row {
  Node parent;
  std::string_view name;
  Member member;
};

constexpr Member count(Field field) { return {Take::count, Node::none, static_cast<std::uint8_t>(field)}; }
constexpr Member text(Slot slot) { return {Take::text, Node::none, static_cast<std::uint8_t>(slot)}; }
constexpr Member object(Node node) { return {Take::object, node, 0}; }
constexpr Member list(Node node) { return {Take::list, node, 0}; }
constexpr Member kOutput{Take::output, Node::none, 0};
constexpr Member kError{Take::error, Node::none, 0};

constexpr Row kRows[] = {
    {Node::root, "usage", object(Node::usage)},
    {Node::root, "usageMetadata", object(Node::gemini_usage)},
    {Node::root, "timings", object(Node::timings)},
    {Node::root, "x_groq", object(Node::holder)},
    {Node::root, "error", kError},
    {Node::root, "type", text(Slot::type)},
    {Node::root, "event_type", text(Slot::type)},  // Cohere v1
    {Node::root, "object", text(Slot::object)},
    {Node::root, "status", text(Slot::status)},
    {Node::root, "id", text(Slot::id)},
    {Node::root, "responseId", text(Slot::id)},
    {Node::root, "response_id", text(Slot::id)},
    {Node::root, "model", text(Slot::model)},
    {Node::root, "modelVersion", text(Slot::model)},
    {Node::root, "service_tier", text(Slot::service_tier)},
    {Node::root, "serviceTier", {Take::text_or_object, Node::tier, static_cast<std::uint8_t>(Slot::service_tier)}},
    {Node::root, "stop_reason", text(Slot::finish)},
    {Node::root, "stopReason", text(Slot::finish)},
    {Node::root, "finish_reason", text(Slot::finish)},
    {Node::root, "choices", list(Node::choice)},
    {Node::root, "candidates", list(Node::candidate)},
    {Node::root, "promptFeedback", object(Node::feedback)},
    {Node::root, "response", object(Node::response)},
    {Node::root, "message", object(Node::message)},
    {Node::root, "delta", {Take::output_or_object, Node::delta, 0}},
    {Node::root, "metadata", object(Node::quiet_holder)},
    {Node::root, "meta", object(Node::cohere_meta)},
    {Node::root, "tool_usage", object(Node::tool_usage)},
    {Node::root, "incomplete_details", object(Node::incomplete)},
    {Node::root, "contentBlockDelta", object(Node::block_delta)},
    {Node::root, "messageStop", object(Node::message_stop)},
    {Node::root, "amazon-bedrock-invocationMetrics", object(Node::metrics)},
    {Node::root, "tokens_evaluated", count(Field::evaluated)},
    {Node::root, "tokens_predicted", count(Field::predicted)},
    {Node::root, "stop", {Take::stop, Node::none, 0}},
    {Node::root, "content", kOutput},
    {Node::root, "text", kOutput},
    {Node::root, "bytes", {Take::bytes, Node::none, 0}},

    {Node::usage, "prompt_tokens", count(Field::prompt)},
    {Node::usage, "completion_tokens", count(Field::completion)},
    {Node::usage, "total_tokens", count(Field::total)},
    {Node::usage, "input_tokens", count(Field::input)},
    {Node::usage, "output_tokens", count(Field::output)},
    {Node::usage, "prompt_tokens_details", object(Node::prompt_details)},
    {Node::usage, "prompt_token_details", object(Node::prompt_details)},  // Mistral
    {Node::usage, "input_tokens_details", object(Node::prompt_details)},
    {Node::usage, "input_token_details", object(Node::prompt_details)},  // Realtime
    {Node::usage, "completion_tokens_details", object(Node::completion_details)},
    {Node::usage, "output_tokens_details", object(Node::completion_details)},
    {Node::usage, "output_token_details", object(Node::completion_details)},
    {Node::usage, "cached_tokens", count(Field::top_cached)},        // Moonshot, Cohere v2
    {Node::usage, "num_cached_tokens", count(Field::num_cached)},    // Mistral
    {Node::usage, "prompt_cache_hit_tokens", count(Field::hit)},     // DeepSeek
    {Node::usage, "reasoning_tokens", count(Field::top_reasoning)},  // SGLang
    {Node::usage, "cache_read_input_tokens", count(Field::cache_read)},
    {Node::usage, "cache_creation_input_tokens", count(Field::cache_creation)},
    {Node::usage, "cache_creation", object(Node::cache_creation)},
    {Node::usage, "server_tool_use", object(Node::server_tools)},
    {Node::usage, "iterations", list(Node::iteration)},
    {Node::usage, "service_tier", text(Slot::service_tier)},
    {Node::usage, "speed", text(Slot::speed)},
    {Node::usage, "inference_geo", text(Slot::geography)},
    {Node::usage, "cost", {Take::money, Node::none, static_cast<std::uint8_t>(Field::cost_picos)}},
    {Node::usage, "cost_in_usd_ticks", {Take::ticks, Node::none, static_cast<std::uint8_t>(Field::cost_picos)}},
    {Node::usage, "inputTokens", count(Field::bedrock_input)},
    {Node::usage, "outputTokens", count(Field::bedrock_output)},
    {Node::usage, "totalTokens", count(Field::bedrock_total)},
    {Node::usage, "cacheReadInputTokens", count(Field::bedrock_read)},
    {Node::usage, "cacheReadInputTokenCount", count(Field::bedrock_read)},
    {Node::usage, "cacheWriteInputTokens", count(Field::bedrock_write)},
    {Node::usage, "cacheWriteInputTokenCount", count(Field::bedrock_write)},
    {Node::usage, "cacheDetails", list(Node::cache_detail)},
    {Node::usage, "billed_units", object(Node::billed_units)},
    {Node::usage, "tokens", object(Node::processed)},

    {Node::prompt_details, "cached_tokens", count(Field::in_cached)},
    {Node::prompt_details, "cache_write_tokens", count(Field::in_write)},
    {Node::prompt_details, "cache_write_tokens_details", object(Node::write_details)},
    {Node::prompt_details, "cached_tokens_details", object(Node::cached_details)},
    {Node::prompt_details, "text_tokens", count(Field::in_text)},
    {Node::prompt_details, "audio_tokens", count(Field::in_audio)},
    {Node::prompt_details, "image_tokens", count(Field::in_image)},
    {Node::prompt_details, "video_tokens", count(Field::in_video)},
    {Node::cached_details, "text_tokens", count(Field::cached_text)},
    {Node::cached_details, "audio_tokens", count(Field::cached_audio)},
    {Node::cached_details, "image_tokens", count(Field::cached_image)},
    {Node::write_details, "ttl_5m_tokens", count(Field::ttl_5m)},
    {Node::write_details, "ttl_30m_tokens", count(Field::ttl_30m)},
    {Node::write_details, "ttl_1h_tokens", count(Field::ttl_1h)},
    {Node::write_details, "ttl_12h_tokens", count(Field::ttl_12h)},
    {Node::completion_details, "reasoning_tokens", count(Field::out_reasoning)},
    {Node::completion_details, "thinking_tokens", count(Field::out_thinking)},
    {Node::completion_details, "text_tokens", count(Field::out_text)},
    {Node::completion_details, "audio_tokens", count(Field::out_audio)},
    {Node::completion_details, "image_tokens", count(Field::out_image)},
    {Node::completion_details, "accepted_prediction_tokens", count(Field::accepted)},
    {Node::completion_details, "rejected_prediction_tokens", count(Field::rejected)},
    {Node::cache_creation, "ephemeral_5m_input_tokens", count(Field::ttl_5m)},
    {Node::cache_creation, "ephemeral_1h_input_tokens", count(Field::ttl_1h)},
    {Node::server_tools, "web_search_requests", count(Field::web_search)},
    {Node::server_tools, "web_fetch_requests", count(Field::web_fetch)},
    {Node::billed_units, "input_tokens", count(Field::billed_input)},
    {Node::billed_units, "output_tokens", count(Field::billed_output)},
    {Node::processed, "input_tokens", count(Field::processed_input)},
    {Node::processed, "output_tokens", count(Field::processed_output)},
    {Node::iteration, "type", text(Slot::element_name)},
    {Node::iteration, "model", text(Slot::element_model)},
    {Node::iteration, "input_tokens", count(Field::input)},
    {Node::iteration, "output_tokens", count(Field::output)},
    {Node::iteration, "cache_read_input_tokens", count(Field::cache_read)},
    {Node::iteration, "cache_creation_input_tokens", count(Field::cache_creation)},
    {Node::cache_detail, "ttl", text(Slot::element_name)},
    {Node::cache_detail, "inputTokens", count(Field::element_tokens)},

    {Node::gemini_usage, "promptTokenCount", count(Field::gemini_prompt)},
    {Node::gemini_usage, "candidatesTokenCount", count(Field::gemini_candidates)},
    {Node::gemini_usage, "responseTokenCount", count(Field::gemini_candidates)},  // Live
    {Node::gemini_usage, "thoughtsTokenCount", count(Field::gemini_thoughts)},
    {Node::gemini_usage, "toolUsePromptTokenCount", count(Field::gemini_tool_use)},
    {Node::gemini_usage, "cachedContentTokenCount", count(Field::gemini_cached)},
    {Node::gemini_usage, "totalTokenCount", count(Field::gemini_total)},
    {Node::gemini_usage, "promptTokensDetails", list(Node::prompt_modality)},
    {Node::gemini_usage, "cacheTokensDetails", list(Node::cached_modality)},
    {Node::gemini_usage, "candidatesTokensDetails", list(Node::output_modality)},
    {Node::gemini_usage, "responseTokensDetails", list(Node::output_modality)},
    {Node::gemini_usage, "trafficType", text(Slot::service_tier)},
    {Node::gemini_usage, "serviceTier", text(Slot::service_tier)},
    {Node::prompt_modality, "modality", text(Slot::element_name)},
    {Node::prompt_modality, "tokenCount", count(Field::element_tokens)},
    {Node::cached_modality, "modality", text(Slot::element_name)},
    {Node::cached_modality, "tokenCount", count(Field::element_tokens)},
    {Node::output_modality, "modality", text(Slot::element_name)},
    {Node::output_modality, "tokenCount", count(Field::element_tokens)},

    {Node::timings, "cache_n", count(Field::cache_n)},
    {Node::timings, "prompt_n", count(Field::prompt_n)},
    {Node::timings, "predicted_n", count(Field::predicted_n)},
    {Node::metrics, "inputTokenCount", count(Field::bedrock_input)},
    {Node::metrics, "outputTokenCount", count(Field::bedrock_output)},
    {Node::metrics, "cacheReadInputTokenCount", count(Field::bedrock_read)},
    {Node::metrics, "cacheWriteInputTokenCount", count(Field::bedrock_write)},

    {Node::holder, "usage", object(Node::usage)},
    {Node::quiet_holder, "usage", {Take::quiet_object, Node::usage, 0}},
    {Node::choice, "index", count(Field::index)},
    {Node::choice, "finish_reason", text(Slot::element_finish)},
    {Node::choice, "usage", object(Node::usage)},  // Moonshot
    {Node::choice, "text", kOutput},
    {Node::choice, "delta", object(Node::choice_delta)},
    {Node::choice_delta, "content", kOutput},
    {Node::choice_delta, "reasoning_content", kOutput},
    {Node::choice_delta, "reasoning", kOutput},
    {Node::choice_delta, "reasoning_details", kOutput},
    {Node::choice_delta, "refusal", kOutput},
    {Node::choice_delta, "tool_calls", kOutput},
    {Node::choice_delta, "function_call", kOutput},
    {Node::choice_delta, "audio", kOutput},
    {Node::candidate, "index", count(Field::index)},
    {Node::candidate, "finishReason", text(Slot::element_finish)},
    {Node::candidate, "content", object(Node::candidate_content)},
    {Node::candidate_content, "parts", list(Node::part)},
    {Node::part, "text", kOutput},
    {Node::part, "functionCall", kOutput},
    {Node::part, "inlineData", kOutput},
    {Node::part, "executableCode", kOutput},
    {Node::feedback, "blockReason", text(Slot::block_reason)},

    {Node::response, "usage", object(Node::usage)},
    {Node::response, "status", text(Slot::status)},
    {Node::response, "error", kError},
    {Node::response, "id", text(Slot::id)},
    {Node::response, "model", text(Slot::model)},
    {Node::response, "service_tier", text(Slot::service_tier)},
    {Node::response, "meta", object(Node::cohere_meta)},
    {Node::response, "finish_reason", text(Slot::finish)},
    {Node::response, "tool_usage", object(Node::tool_usage)},
    {Node::response, "incomplete_details", object(Node::incomplete)},
    {Node::message, "usage", object(Node::usage)},
    {Node::message, "id", text(Slot::id)},
    {Node::message, "model", text(Slot::model)},
    {Node::delta, "stop_reason", text(Slot::finish)},
    {Node::delta, "finish_reason", text(Slot::finish)},
    {Node::delta, "usage", object(Node::usage)},
    {Node::delta, "text", kOutput},
    {Node::delta, "partial_json", kOutput},
    {Node::delta, "thinking", kOutput},
    {Node::delta, "toolUse", kOutput},
    {Node::delta, "reasoningContent", kOutput},
    {Node::delta, "message", object(Node::delta_message)},
    {Node::delta_message, "content", {Take::output_or_object, Node::delta_content, 0}},
    {Node::delta_message, "tool_plan", kOutput},
    {Node::delta_message, "tool_calls", kOutput},
    {Node::delta_content, "text", kOutput},
    {Node::delta_content, "thinking", kOutput},
    {Node::block_delta, "delta", {Take::output_or_object, Node::delta, 0}},
    {Node::message_stop, "stopReason", text(Slot::finish)},
    {Node::cohere_meta, "billed_units", object(Node::billed_units)},
    {Node::cohere_meta, "tokens", object(Node::processed)},
    {Node::cohere_meta, "cached_tokens", count(Field::top_cached)},
    {Node::tool_usage, "web_search", object(Node::web_search)},
    {Node::web_search, "num_requests", count(Field::web_search)},
    {Node::incomplete, "reason", text(Slot::finish)},
    {Node::tier, "type", text(Slot::service_tier)},
};
constexpr std::size_t kRowCount = sizeof kRows / sizeof kRows[0];
static_assert(kRowCount < 255);

constexpr std::size_t kSlots = 1024;

constexpr std::size_t hash(Node node, std::string_view name) {
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(name[i])); };
  const std::size_t n = name.size();
  return (static_cast<std::size_t>(node) * 151 + n * 67 + byte(0) * 29 + byte(n / 2) * 13 + byte(n - 1) * 7) % kSlots;
}

/// Row + 1 per slot; 0 is empty. Linear probing.
constexpr std::array<std::uint8_t, kSlots> make_index() {
  std::array<std::uint8_t, kSlots> index{};
  for (std::size_t row = 0; row < kRowCount; ++row) {
    std::size_t at = hash(kRows[row].parent, kRows[row].name);
    while (index[at] != 0) at = (at + 1) % kSlots;
    index[at] = static_cast<std::uint8_t>(row + 1);
  }
  return index;
}
constexpr auto kIndex = make_index();

constexpr bool names_fit() {
  for (const Row& row : kRows) {
    if (row.name.size() > kLongestName) return false;
  }
  return true;
}
static_assert(names_fit());

}  // namespace

Member find_member(Node node, std::string_view name) noexcept {
  if (name.empty()) return {};
  for (std::size_t at = hash(node, name); kIndex[at] != 0; at = (at + 1) % kSlots) {
    const Row& row = kRows[kIndex[at] - 1u];
    if (row.parent == node && row.name == name) return row.member;
  }
  return {};
}

}  // namespace warmroute::usage
