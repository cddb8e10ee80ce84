/// The JSON of OpenAI's completion objects, whole and streamed, as vLLM spells them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace warmroute::examples {

enum class CompletionKind : std::uint8_t { chat, text, embedding };

/// Whose spelling of the same counts an OpenAI-shaped answer has; see usage_form_from.
enum class UsageForm : std::uint8_t { vllm, openai, sglang, deepseek, mistral, moonshot, llamacpp };
/// returns: nullopt: there is no such name.
[[nodiscard]] std::optional<UsageForm> usage_form_from(std::string_view name);

/// What all events of one answer share.
struct AnswerShape {
  CompletionKind kind = CompletionKind::chat;
  std::string id;  ///< e.g. "chatcmpl-1"
  std::string model;
  std::int64_t created = 0;  ///< units: seconds since 1970
  std::size_t choices = 1;   ///< one per prompt of the body
  bool include_usage = false;
  UsageForm usage_form = UsageForm::vllm;
};

struct AnswerUsage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t cached_tokens = 0;
};

/// returns: the text of so many output tokens.
[[nodiscard]] std::string output_text(std::int64_t tokens);
/// returns: the text of output token `index` (from 1): four bytes, one toy token.
[[nodiscard]] std::string_view output_word(std::int64_t index) noexcept;

/// Writes the events of one streamed answer.
class EventWriter {
 public:
  explicit EventWriter(AnswerShape shape);
  /// The event that opens a chat answer and names the role; nothing for text completions.
  void append_opening(std::string& out) const;
  void append_token(std::string& out, std::int64_t index) const;
  /// finish_reason, then the usage event if it was asked for, then [DONE].
  void append_end(std::string& out, const AnswerUsage& usage) const;

 private:
  void append_choice(std::string& out, std::size_t choice, std::string_view inside) const;
  AnswerShape shape_;
  std::string head_;  // up to the choices
  std::string tail_;  // behind them
};

[[nodiscard]] std::string whole_answer(const AnswerShape& shape, const AnswerUsage& usage, std::int64_t tokens);
[[nodiscard]] std::string embedding_answer(const AnswerShape& shape, const AnswerUsage& usage,
                                           const std::vector<std::uint64_t>& seeds);

}  // namespace warmroute::examples
