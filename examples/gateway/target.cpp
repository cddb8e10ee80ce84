// Paths, see target.hpp.
#include "gateway/target.hpp"

#include <array>

#include "common/text.hpp"
#include "gateway/heads.hpp"

namespace warmroute::gateway {

namespace http = examples::http;

namespace {

/// Sets what an API says of itself.
void speak(Target& target, AnswerApi answer, std::string_view operation, std::string_view provider) {
  target.answer = answer;
  target.operation = operation;
  target.provider = provider;
}

void speak(Target& target, BodyApi api) {
  target.body = api;
  target.routed = true;
  switch (api) {
    case BodyApi::chat: return speak(target, AnswerApi::openai, "chat", "openai");
    case BodyApi::completions: return speak(target, AnswerApi::openai, "text_completion", "openai");
    case BodyApi::responses: return speak(target, AnswerApi::responses, "chat", "openai");
    case BodyApi::embeddings: return speak(target, AnswerApi::embeddings, "embeddings", "openai");
    case BodyApi::messages: return speak(target, AnswerApi::messages, "chat", "anthropic");
    case BodyApi::gemini: return speak(target, AnswerApi::gemini, "generate_content", "gcp.gemini");
    case BodyApi::converse: return speak(target, AnswerApi::bedrock, "chat", "aws.bedrock");
  }
}

void set_model(std::string_view path, std::string_view model, Target& target) {
  target.model = examples::url_decoded(model);
  target.model_at = static_cast<std::size_t>(model.data() - path.data());
  target.model_size = model.size();
}

/// Reads ".../models/<model>:generateContent" (Gemini, Vertex) and "/model/<model>/converse" (Bedrock).
/// returns: whether it is one of those.
bool read_model_path(std::string_view path, Target& target) {
  const auto last = path.rfind('/');
  if (last == std::string_view::npos) return false;
  const std::string_view word = path.substr(last + 1);
  if (const auto colon = word.rfind(':'); colon != std::string_view::npos) {
    const std::string_view verb = word.substr(colon + 1);
    target.stream = verb == "streamGenerateContent";
    if (!target.stream && verb != "generateContent") return false;
    set_model(path, word.substr(0, colon), target);
    speak(target, BodyApi::gemini);
    return true;
  }
  const std::string_view front = path.substr(0, last);
  const auto at = front.rfind("/model/");
  if (at == std::string_view::npos || front.find('/', at + 7) != std::string_view::npos) return false;
  target.stream = word == "converse-stream" || word == "invoke-with-response-stream";
  if (!target.stream && word != "converse" && word != "invoke") return false;
  set_model(path, front.substr(at + 7), target);
  if (word == "converse" || word == "converse-stream") {
    speak(target, BodyApi::converse);
    return true;
  }
  speak(target, AnswerApi::bedrock, "chat", "aws.bedrock");  // each model's own words: not read
  return target.routed = true;
}

/// Ends of paths that count tokens, ask about what was asked before, or end it.
bool generates_nothing(std::string_view path) {
  constexpr std::array<std::string_view, 7> kEnds{"/tokenize",     "/detokenize",     "/count_tokens", ":countTokens",
                                                  "/count-tokens", "/apply-template", "/cancel"};
  for (const auto end : kEnds) {
    if (path.ends_with(end)) return true;
  }
  return false;
}

}  // namespace

Target target_of(const ClientRequest& request) {
  Target target;
  if (request.method() != http::verb::post) return target;
  std::string_view path = view(request.target());
  path = path.substr(0, path.find_first_of("?#"));
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  target.counted = !generates_nothing(path);
  if (!target.counted) return target;
  if (read_model_path(path, target)) return target;
  target.stream = false;
  if (const auto api = api_for_path(path)) speak(target, *api);
  return target;
}

}  // namespace warmroute::gateway
