#include "engine/responses.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "common/text.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute::examples {
namespace {

constexpr std::size_t kEmbeddingSize = 8;

std::string usage_json(const AnswerUsage& usage) {
  return "{\"prompt_tokens\":" + std::to_string(usage.prompt_tokens) +
         ",\"total_tokens\":" + std::to_string(usage.prompt_tokens + usage.completion_tokens) +
         ",\"completion_tokens\":" + std::to_string(usage.completion_tokens) +
         ",\"prompt_tokens_details\":{\"cached_tokens\":" + std::to_string(usage.cached_tokens) + "}}";
}

std::string head(const AnswerShape& shape, std::string_view object) {
  return "{\"id\":" + json_quoted(shape.id) + ",\"object\":\"" + std::string(object) +
         "\",\"created\":" + std::to_string(shape.created) + ",\"model\":" + json_quoted(shape.model);
}

std::string output_text(std::int64_t tokens) {
  std::string text;
  for (std::int64_t i = 1; i <= tokens; ++i) text += output_word(i);
  return text;
}

}  // namespace

std::string_view output_word(std::int64_t index) noexcept {
  constexpr std::array<std::string_view, 16> kWords{" all", " and", " are", " can", " few", " for", " its", " may",
                                                    " new", " now", " one", " our", " see", " the", " two", " way"};
  const auto mixed = static_cast<std::uint64_t>(index) * 0x9E3779B97F4A7C15ULL;
  return kWords[mixed >> 60];
}

EventWriter::EventWriter(AnswerShape shape) : shape_(std::move(shape)) {
  const bool is_chat = shape_.kind == CompletionKind::chat;
  head_ = "data: " + head(shape_, is_chat ? "chat.completion.chunk" : "text_completion") + ",\"choices\":[";
  tail_ = shape_.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
}

void EventWriter::append_choice(std::string& out, std::size_t choice, std::string_view inside) const {
  out += head_;
  out += "{\"index\":";
  out += std::to_string(choice);
  out += inside;
  out += '}';
  out += tail_;
}

void EventWriter::append_opening(std::string& out) const {
  if (shape_.kind != CompletionKind::chat) return;
  append_choice(out, 0, R"(,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null)");
}

void EventWriter::append_token(std::string& out, std::int64_t index) const {
  std::string inside = shape_.kind == CompletionKind::chat ? ",\"delta\":{\"content\":\"" : ",\"text\":\"";
  inside += output_word(index);
  inside += shape_.kind == CompletionKind::chat ? "\"},\"logprobs\":null,\"finish_reason\":null"
                                                : "\",\"logprobs\":null,\"finish_reason\":null";
  for (std::size_t choice = 0; choice < shape_.choices; ++choice) append_choice(out, choice, inside);
}

void EventWriter::append_end(std::string& out, const AnswerUsage& usage) const {
  const std::string_view inside = shape_.kind == CompletionKind::chat
                                      ? R"(,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null)"
                                      : R"(,"text":"","logprobs":null,"finish_reason":"length","stop_reason":null)";
  for (std::size_t choice = 0; choice < shape_.choices; ++choice) append_choice(out, choice, inside);
  if (shape_.include_usage) out += head_ + "],\"usage\":" + usage_json(usage) + "}\n\n";
  out += "data: [DONE]\n\n";
}

std::string whole_answer(const AnswerShape& shape, const AnswerUsage& usage, std::int64_t tokens) {
  const bool is_chat = shape.kind == CompletionKind::chat;
  std::string out = head(shape, is_chat ? "chat.completion" : "text_completion") + ",\"choices\":[";
  const std::string text = json_quoted(output_text(tokens));
  for (std::size_t choice = 0; choice < shape.choices; ++choice) {
    if (choice > 0) out += ',';
    out += "{\"index\":" + std::to_string(choice);
    out += is_chat ? ",\"message\":{\"role\":\"assistant\",\"content\":" + text + "}" : ",\"text\":" + text;
    out += R"(,"logprobs":null,"finish_reason":"length","stop_reason":null})";
  }
  return out + "],\"usage\":" + usage_json(usage) + "}";
}

std::string embedding_answer(const AnswerShape& shape, const AnswerUsage& usage,
                             const std::vector<std::uint64_t>& seeds) {
  std::string out = head(shape, "list") + ",\"data\":[";
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"index\":" + std::to_string(i) + ",\"object\":\"embedding\",\"embedding\":[";
    trace::SplitMix64 random{seeds[i]};
    for (std::size_t k = 0; k < kEmbeddingSize; ++k) {
      char number[32];
      std::snprintf(number, sizeof number, "%s%.6f", k > 0 ? "," : "",
                    static_cast<double>(random.next() >> 11) * 0x1.0p-52 - 1.0);
      out += number;
    }
    out += "]}";
  }
  return out + "],\"usage\":" + usage_json(usage) + "}";
}

}  // namespace warmroute::examples
