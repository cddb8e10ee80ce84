// Bedrock's answers, and what Gemini and Bedrock ask: their paths name the model, their bodies are made chat bodies.
#include <simdjson.h>

#include <array>
#include <utility>

#include "common/text.hpp"
#include "engine/forms.hpp"

namespace warmroute::examples {
namespace {

std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xEDB88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

void append_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFFu);
}

/// Bedrock Converse: usage comes behind the end of the message, input without its cached part.
class BedrockWriter final : public AnswerWriter {
 public:
  explicit BedrockWriter(AnswerShape shape) : shape_(std::move(shape)) {}
  const char* stream_type() const override { return "application/vnd.amazon.eventstream"; }
  void append_opening(std::string& out, const AnswerUsage&) override {
    out += aws_event("messageStart", R"({"p":"abc","role":"assistant"})");
  }
  void append_token(std::string& out, std::int64_t index, const AnswerUsage&) override {
    out += aws_event("contentBlockDelta", R"({"contentBlockIndex":0,"delta":{"text":)" +
                                              json_quoted(output_word(index)) + R"(},"p":"abcdefgh"})");
  }
  void append_end(std::string& out, const AnswerUsage& usage) override {
    out += aws_event("contentBlockStop", R"({"contentBlockIndex":0,"p":"abcd"})");
    out += aws_event("messageStop", R"({"p":"abcdef","stopReason":"max_tokens"})");
    out += aws_event("metadata", "{\"metrics\":{\"latencyMs\":1},\"p\":\"ab\",\"usage\":" + usage_of(usage) + "}");
  }
  std::string whole(const AnswerUsage& usage, std::int64_t tokens) override {
    return R"({"metrics":{"latencyMs":1},"output":{"message":{"role":"assistant","content":[{"text":)" +
           json_quoted(output_text(tokens)) + R"(}]}},"stopReason":"max_tokens","usage":)" + usage_of(usage) + "}";
  }

 private:
  static std::string usage_of(const AnswerUsage& usage) {
    return "{\"inputTokens\":" + std::to_string(usage.prompt_tokens - usage.cached_tokens) +
           ",\"outputTokens\":" + std::to_string(usage.completion_tokens) +
           ",\"totalTokens\":" + std::to_string(usage.prompt_tokens + usage.completion_tokens) +
           ",\"cacheReadInputTokens\":" + std::to_string(usage.cached_tokens) + ",\"cacheWriteInputTokens\":0}";
  }
  AnswerShape shape_;
};

/// Appends the texts of a list of messages as messages of a chat. `list`: "contents" or "messages"; `inside`: "parts" or "content".
bool append_messages(simdjson::dom::element body, const char* list, const char* inside, std::string& out) {
  simdjson::dom::array messages;
  if (body[list].get(messages) != simdjson::SUCCESS) return false;
  for (const auto message : messages) {
    std::string_view role;
    if (message["role"].get(role) != simdjson::SUCCESS) role = "user";
    std::string text;
    simdjson::dom::array parts;
    if (message[inside].get(parts) != simdjson::SUCCESS) return false;
    for (const auto part : parts) {
      std::string_view piece;
      if (part["text"].get(piece) == simdjson::SUCCESS) text += piece;
    }
    out.append(out.back() == '[' ? "" : ",").append("{\"role\":\"");
    out.append(role == "model" || role == "assistant" ? "assistant" : "user");
    out.append("\",\"content\":").append(json_quoted(text)).append("}");
  }
  return true;
}

}  // namespace

std::string aws_event(std::string_view type, std::string_view payload) {
  const std::array<std::pair<std::string_view, std::string_view>, 3> headers{
      {{":event-type", type}, {":content-type", "application/json"}, {":message-type", "event"}}};
  std::string head;
  for (const auto& [name, value] : headers) {
    head += static_cast<char>(name.size());
    head.append(name).append(1, 7);  // a string
    head += static_cast<char>(value.size() >> 8);
    head += static_cast<char>(value.size() & 0xFF);
    head.append(value);
  }
  std::string out;
  append_u32(out, static_cast<std::uint32_t>(12 + head.size() + payload.size() + 4));
  append_u32(out, static_cast<std::uint32_t>(head.size()));
  append_u32(out, crc32(out));
  out.append(head).append(payload);
  append_u32(out, crc32(out));
  return out;
}

std::unique_ptr<AnswerWriter> make_bedrock_writer(const AnswerShape& shape) {
  return std::make_unique<BedrockWriter>(shape);
}

std::optional<ModelPath> read_model_path(std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  const auto last = path.rfind('/');
  if (last == std::string_view::npos) return std::nullopt;
  const std::string_view word = path.substr(last + 1), front = path.substr(0, last);
  ModelPath read;
  if (const auto colon = word.rfind(':'); colon != std::string_view::npos && front.ends_with("/models")) {
    const std::string_view verb = word.substr(colon + 1);
    read.stream = verb == "streamGenerateContent";
    if (!read.stream && verb != "generateContent") return std::nullopt;
    const bool is_sse = target.substr(path.size()).find("alt=sse") != std::string_view::npos;
    read.form = is_sse ? AnswerForm::gemini_sse : AnswerForm::gemini_array;
    read.model = url_decoded(word.substr(0, colon));
    return read;
  }
  read.stream = word == "converse-stream";
  if (!front.starts_with("/model/") || (!read.stream && word != "converse")) return std::nullopt;
  read.form = AnswerForm::bedrock;
  read.model = url_decoded(front.substr(7));
  return read;
}

Result<std::string> chat_body_of(const ModelPath& path, std::string_view body) {
  simdjson::dom::parser parser;
  simdjson::dom::element read;
  if (parser.parse(body.data(), body.size()).get(read) != simdjson::SUCCESS)
    return Error{Code::invalid_json, "the body is no JSON", kNoOffset};
  const bool is_bedrock = path.form == AnswerForm::bedrock;
  std::string out = "{\"model\":" + json_quoted(path.model) + ",\"messages\":[";
  if (!append_messages(read, is_bedrock ? "messages" : "contents", is_bedrock ? "content" : "parts", out))
    return Error{Code::missing_field,
                 is_bedrock ? "messages with content are missing" : "contents with parts are missing", kNoOffset};
  out += "]";
  std::int64_t most = 0;
  if (read[is_bedrock ? "inferenceConfig" : "generationConfig"][is_bedrock ? "maxTokens" : "maxOutputTokens"].get(
          most) == simdjson::SUCCESS)
    out += ",\"max_tokens\":" + std::to_string(most);
  return out + (path.stream ? ",\"stream\":true}" : "}");
}

}  // namespace warmroute::examples
