#include "engine/responses.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "common/text.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute::examples {
namespace {

constexpr std::size_t kEmbeddingSize = 8;

constexpr std::array<std::string_view, 7> kUsageForms{"vllm",    "openai",   "sglang",  "deepseek",
                                                      "mistral", "moonshot", "llamacpp"};

/// How many tokens were cached, as each of them says it. llama.cpp's server does so in its timings alone.
std::string cached_json(const AnswerUsage& usage, UsageForm form) {
  const std::string cached = std::to_string(usage.cached_tokens);
  const std::string details = ",\"prompt_tokens_details\":{\"cached_tokens\":" + cached + "}";
  switch (form) {
    case UsageForm::vllm: return details;
    case UsageForm::openai:
      return ",\"prompt_tokens_details\":{\"cached_tokens\":" + cached + ",\"audio_tokens\":0}" +
             R"(,"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,)"
             R"("rejected_prediction_tokens":0})";
    case UsageForm::sglang: return usage.cached_tokens == 0 ? ",\"prompt_tokens_details\":null" : details;
    case UsageForm::deepseek:
      return ",\"prompt_cache_hit_tokens\":" + cached +
             ",\"prompt_cache_miss_tokens\":" + std::to_string(usage.prompt_tokens - usage.cached_tokens);
    case UsageForm::mistral: return ",\"num_cached_tokens\":" + cached + details;
    case UsageForm::moonshot: return ",\"cached_tokens\":" + cached;
    case UsageForm::llamacpp: break;
  }
  return "";
}

std::string usage_json(const AnswerUsage& usage, UsageForm form) {
  return "{\"prompt_tokens\":" + std::to_string(usage.prompt_tokens) +
         ",\"total_tokens\":" + std::to_string(usage.prompt_tokens + usage.completion_tokens) +
         ",\"completion_tokens\":" + std::to_string(usage.completion_tokens) + cached_json(usage, form) + "}";
}

std::string timings_json(const AnswerUsage& usage) {
  return ",\"timings\":{\"cache_n\":" + std::to_string(usage.cached_tokens) +
         ",\"prompt_n\":" + std::to_string(usage.prompt_tokens - usage.cached_tokens) +
         ",\"predicted_n\":" + std::to_string(usage.completion_tokens) + "}";
}

std::string head(const AnswerShape& shape, std::string_view object) {
  return "{\"id\":" + json_quoted(shape.id) + ",\"object\":\"" + std::string(object) +
         "\",\"created\":" + std::to_string(shape.created) + ",\"model\":" + json_quoted(shape.model);
}

}  // namespace

std::optional<UsageForm> usage_form_from(std::string_view name) {
  for (std::size_t i = 0; i < kUsageForms.size(); ++i) {
    if (kUsageForms[i] == name) return static_cast<UsageForm>(i);
  }
  return std::nullopt;
}

std::string output_text(std::int64_t tokens) {
  std::string text;
  for (std::int64_t i = 1; i <= tokens; ++i) text += output_word(i);
  return text;
}

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

// Moonshot's usage is in the last choice, llama.cpp's timings in the last chunk, whether asked for or not.
void EventWriter::append_end(std::string& out, const AnswerUsage& usage) const {
  std::string inside = shape_.kind == CompletionKind::chat
                           ? R"(,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null)"
                           : R"(,"text":"","logprobs":null,"finish_reason":"length","stop_reason":null)";
  const std::string counts = usage_json(usage, shape_.usage_form);
  const bool is_in_choice = shape_.usage_form == UsageForm::moonshot;
  if (is_in_choice) inside += ",\"usage\":" + counts;
  for (std::size_t choice = 0; choice < shape_.choices; ++choice) append_choice(out, choice, inside);
  const std::string timings = shape_.usage_form == UsageForm::llamacpp ? timings_json(usage) : std::string();
  if (shape_.include_usage && !is_in_choice) {
    out += head_ + "],\"usage\":" + counts + timings + "}\n\n";
  } else if (!timings.empty()) {
    out.insert(out.size() - tail_.size() + 1, timings);  // behind the choices of the last event
  }
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
  const std::string timings = shape.usage_form == UsageForm::llamacpp ? timings_json(usage) : std::string();
  return out + "],\"usage\":" + usage_json(usage, shape.usage_form) + timings + "}";
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
  return out + "],\"usage\":" + usage_json(usage, shape.usage_form) + "}";
}

}  // namespace warmroute::examples
