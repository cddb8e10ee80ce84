/// Answers in the words of each provider's API, usage included: OpenAI chat, completions and Responses, Anthropic Messages,
/// Gemini generateContent, Bedrock Converse. A writer makes one answer, whole or as a stream, always of the same text.
/// And the bodies of Gemini and Bedrock as chat bodies, so that one reader serves all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/responses.hpp"
#include "warmroute/result.hpp"

namespace warmroute::examples {

/// Whose words an answer is in; OpenAI's are told apart further by CompletionKind.
enum class AnswerForm : std::uint8_t { openai, responses, messages, gemini_sse, gemini_array, bedrock };

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  [[nodiscard]] virtual const char* stream_type() const { return "text/event-stream; charset=utf-8"; }
  /// When the first token is there: what the prompt used is known by then.
  virtual void append_opening(std::string& out, const AnswerUsage& usage) = 0;
  /// Output token `index`, from 1. `usage`: so far.
  virtual void append_token(std::string& out, std::int64_t index, const AnswerUsage& usage) = 0;
  virtual void append_end(std::string& out, const AnswerUsage& usage) = 0;
  [[nodiscard]] virtual std::string whole(const AnswerUsage& usage, std::int64_t tokens) = 0;
};
[[nodiscard]] std::unique_ptr<AnswerWriter> make_writer(AnswerForm form, const AnswerShape& shape);
[[nodiscard]] std::unique_ptr<AnswerWriter> make_bedrock_writer(const AnswerShape& shape);

/// A path that names its model: ".../models/MODEL:generateContent", "/model/MODEL/converse".
struct ModelPath {
  AnswerForm form = AnswerForm::gemini_sse;
  std::string model;
  bool stream = false;
};
/// returns: nullopt: it is none. `target` with its query, which says whether Gemini's stream is one of events.
[[nodiscard]] std::optional<ModelPath> read_model_path(std::string_view target);

/// returns: a chat completions body with the same text and limit. errors: invalid_json, missing_field.
[[nodiscard]] Result<std::string> chat_body_of(const ModelPath& path, std::string_view body);

/// One message of application/vnd.amazon.eventstream.
[[nodiscard]] std::string aws_event(std::string_view type, std::string_view payload);

}  // namespace warmroute::examples
