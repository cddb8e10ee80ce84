#include "engine/forms.hpp"

#include <utility>

#include "common/text.hpp"

namespace warmroute::examples {
namespace {

std::string number(std::string_view name, std::int64_t value) {
  return "\"" + std::string(name) + "\":" + std::to_string(value);
}

class OpenAiWriter final : public AnswerWriter {
 public:
  explicit OpenAiWriter(AnswerShape shape) : shape_(std::move(shape)), events_(shape_) {}
  void append_opening(std::string& out, const AnswerUsage&) override { events_.append_opening(out); }
  void append_token(std::string& out, std::int64_t index, const AnswerUsage&) override {
    events_.append_token(out, index);
  }
  void append_end(std::string& out, const AnswerUsage& usage) override { events_.append_end(out, usage); }
  std::string whole(const AnswerUsage& usage, std::int64_t tokens) override {
    return whole_answer(shape_, usage, tokens);
  }

 private:
  AnswerShape shape_;
  EventWriter events_;
};

/// The Responses API: every event says its type and number, and the last one has the whole response.
class ResponsesWriter final : public AnswerWriter {
 public:
  explicit ResponsesWriter(AnswerShape shape) : shape_(std::move(shape)) {}
  void append_opening(std::string& out, const AnswerUsage&) override {
    event(out, "response.created", "\"response\":" + response("in_progress", "", nullptr));
    event(out, "response.in_progress", "\"response\":" + response("in_progress", "", nullptr));
    event(out, "response.output_item.added", "\"output_index\":0,\"item\":" + item("in_progress", ""));
    event(out, "response.content_part.added", kPlace + (",\"part\":" + part("")));
  }
  void append_token(std::string& out, std::int64_t index, const AnswerUsage&) override {
    event(out, "response.output_text.delta",
          kPlace + (",\"logprobs\":[],\"delta\":" + json_quoted(output_word(index))));
  }
  void append_end(std::string& out, const AnswerUsage& usage) override {
    const std::string text = output_text(usage.completion_tokens);
    event(out, "response.output_text.done", kPlace + (",\"logprobs\":[],\"text\":" + json_quoted(text)));
    event(out, "response.content_part.done", kPlace + (",\"part\":" + part(text)));
    event(out, "response.output_item.done", "\"output_index\":0,\"item\":" + item("incomplete", text));
    event(out, "response.incomplete", "\"response\":" + response("incomplete", text, &usage));
  }
  std::string whole(const AnswerUsage& usage, std::int64_t tokens) override {
    return response("incomplete", output_text(tokens), &usage);
  }

 private:
  static constexpr const char* kItem = "msg_1";
  const std::string kPlace = R"("item_id":"msg_1","output_index":0,"content_index":0)";

  void event(std::string& out, std::string_view type, const std::string& members) {
    out.append("event: ").append(type).append("\ndata: {\"type\":\"").append(type).append("\",");
    out.append(number("sequence_number", next_++)).append(",").append(members).append("}\n\n");
  }
  static std::string part(const std::string& text) {
    return R"({"type":"output_text","annotations":[],"logprobs":[],"text":)" + json_quoted(text) + "}";
  }
  static std::string item(std::string_view status, const std::string& text) {
    return std::string(R"({"type":"message","role":"assistant","id":")") + kItem + "\",\"status\":\"" +
           std::string(status) + "\",\"content\":[" + (text.empty() ? "" : part(text)) + "]}";
  }
  [[nodiscard]] std::string response(std::string_view status, const std::string& text, const AnswerUsage* usage) const {
    std::string out =
        "{\"id\":" + json_quoted(shape_.id) + ",\"object\":\"response\"," + number("created_at", shape_.created) +
        ",\"status\":\"" + std::string(status) + "\",\"error\":null,\"incomplete_details\":" +
        (usage != nullptr ? R"({"reason":"max_output_tokens"})" : "null") +
        ",\"instructions\":null,\"max_output_tokens\":null,\"model\":" + json_quoted(shape_.model) + ",\"output\":[" +
        (text.empty() ? "" : item(status, text)) +
        R"(],"parallel_tool_calls":true,"previous_response_id":null,"temperature":1.0,"tool_choice":"auto",)"
        R"("tools":[],"top_p":1.0,"truncation":"disabled","metadata":{},"usage":)";
    if (usage == nullptr) return out + "null}";
    return out + "{" + number("input_tokens", usage->prompt_tokens) + ",\"input_tokens_details\":{" +
           number("cached_tokens", usage->cached_tokens) + "}," + number("output_tokens", usage->completion_tokens) +
           ",\"output_tokens_details\":{\"reasoning_tokens\":0}," +
           number("total_tokens", usage->prompt_tokens + usage->completion_tokens) + "}}";
  }

  AnswerShape shape_;
  std::int64_t next_ = 0;
};

/// Anthropic Messages: input without its cached part, and the output's count in the last but one event.
class MessagesWriter final : public AnswerWriter {
 public:
  explicit MessagesWriter(AnswerShape shape) : shape_(std::move(shape)) {}
  void append_opening(std::string& out, const AnswerUsage& usage) override {
    AnswerUsage first = usage;
    first.completion_tokens = 1;  // a placeholder, as there
    event(out, "message_start", "\"message\":" + message("", "null", first));
    event(out, "content_block_start", R"("index":0,"content_block":{"type":"text","text":""})");
  }
  void append_token(std::string& out, std::int64_t index, const AnswerUsage&) override {
    event(out, "content_block_delta",
          R"("index":0,"delta":{"type":"text_delta","text":)" + json_quoted(output_word(index)) + "}");
  }
  void append_end(std::string& out, const AnswerUsage& usage) override {
    event(out, "content_block_stop", "\"index\":0");
    event(out, "message_delta",
          R"("delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{)" +
              number("output_tokens", usage.completion_tokens) + "}");
    event(out, "message_stop", "");
  }
  std::string whole(const AnswerUsage& usage, std::int64_t tokens) override {
    return message(R"({"type":"text","text":)" + json_quoted(output_text(tokens)) + "}", "\"max_tokens\"", usage);
  }

 private:
  static void event(std::string& out, std::string_view type, const std::string& members) {
    out.append("event: ").append(type).append("\ndata: {\"type\":\"").append(type).append("\"");
    out.append(members.empty() ? "" : ",").append(members).append("}\n\n");
  }
  [[nodiscard]] std::string message(const std::string& content, const char* stop, const AnswerUsage& usage) const {
    return "{\"id\":" + json_quoted(shape_.id) + R"(,"type":"message","role":"assistant","content":[)" + content +
           "],\"model\":" + json_quoted(shape_.model) + ",\"stop_reason\":" + stop +
           ",\"stop_sequence\":null,\"usage\":{" + number("input_tokens", usage.prompt_tokens - usage.cached_tokens) +
           ",\"cache_creation_input_tokens\":0," + number("cache_read_input_tokens", usage.cached_tokens) + "," +
           number("output_tokens", usage.completion_tokens) + "}}";
  }

  AnswerShape shape_;
};

/// Gemini: totals so far in every chunk; a stream is one of events or one JSON array.
class GeminiWriter final : public AnswerWriter {
 public:
  GeminiWriter(AnswerShape shape, bool is_array) : shape_(std::move(shape)), is_array_(is_array) {}
  const char* stream_type() const override {
    return is_array_ ? "application/json; charset=UTF-8" : AnswerWriter::stream_type();
  }
  void append_opening(std::string& out, const AnswerUsage&) override { out += is_array_ ? "[" : ""; }
  void append_token(std::string& out, std::int64_t index, const AnswerUsage& usage) override {
    AnswerUsage so_far = usage;
    so_far.completion_tokens = index;
    chunk(out, index == 1, answer(std::string(output_word(index)), "", so_far));
  }
  void append_end(std::string& out, const AnswerUsage& usage) override {
    chunk(out, false, answer("", R"("finishReason":"MAX_TOKENS",)", usage));
    out += is_array_ ? "]" : "";
  }
  std::string whole(const AnswerUsage& usage, std::int64_t tokens) override {
    return answer(output_text(tokens), R"("finishReason":"MAX_TOKENS",)", usage);
  }

 private:
  void chunk(std::string& out, bool is_first, const std::string& json) const {
    if (is_array_) {
      out.append(is_first ? "" : "\n,\n").append(json);
    } else {
      out.append("data: ").append(json).append("\r\n\r\n");
    }
  }
  [[nodiscard]] std::string answer(const std::string& text, const char* finish, const AnswerUsage& usage) const {
    const std::string cached =
        usage.cached_tokens > 0 ? number("cachedContentTokenCount", usage.cached_tokens) + "," : std::string();
    return std::string("{\"candidates\":[{") + finish + R"("index":0,"content":{"role":"model","parts":[{"text":)" +
           json_quoted(text) + "}]}}],\"usageMetadata\":{" + cached + number("promptTokenCount", usage.prompt_tokens) +
           "," + number("candidatesTokenCount", usage.completion_tokens) + "," +
           number("totalTokenCount", usage.prompt_tokens + usage.completion_tokens) +
           "},\"modelVersion\":" + json_quoted(shape_.model) + ",\"responseId\":" + json_quoted(shape_.id) + "}";
  }

  AnswerShape shape_;
  bool is_array_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_writer(AnswerForm form, const AnswerShape& shape) {
  switch (form) {
    case AnswerForm::openai: break;
    case AnswerForm::responses: return std::make_unique<ResponsesWriter>(shape);
    case AnswerForm::messages: return std::make_unique<MessagesWriter>(shape);
    case AnswerForm::gemini_sse: return std::make_unique<GeminiWriter>(shape, false);
    case AnswerForm::gemini_array: return std::make_unique<GeminiWriter>(shape, true);
    case AnswerForm::bedrock: return make_bedrock_writer(shape);
  }
  return std::make_unique<OpenAiWriter>(shape);
}

}  // namespace warmroute::examples
