// Every form of an answer, whole and streamed, read back by the meter that knows the providers'.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/http_client.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute::examples {
namespace forms_tests {

struct Api {
  const char* name;
  AnswerApi api;
  const char* target;  // of a stream and of none
  const char* stream_target;
  const char* body;
  const char* stream_body;
};

// The same text everywhere: what one API has cached the others find.
const std::string kText(400, 'x');

std::string with_text(std::string body) {
  const auto at = body.find("TEXT");
  return body.replace(at, 4, kText);
}

const std::vector<Api>& apis() {
  static const std::vector<Api> all{
      {"chat", AnswerApi::openai, "/v1/chat/completions", "/v1/chat/completions",
       R"({"model":"toy","max_tokens":5,"messages":[{"role":"user","content":"TEXT"}]})",
       R"({"model":"toy","max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"TEXT"}]})"},
      {"completions", AnswerApi::openai, "/v1/completions", "/v1/completions",
       R"({"model":"toy","max_tokens":5,"prompt":"TEXT"})",
       R"({"model":"toy","max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"prompt":"TEXT"})"},
      {"responses", AnswerApi::responses, "/v1/responses", "/v1/responses",
       R"({"model":"toy","max_output_tokens":5,"input":"TEXT"})",
       R"({"model":"toy","max_output_tokens":5,"stream":true,"input":"TEXT"})"},
      {"messages", AnswerApi::messages, "/v1/messages", "/v1/messages",
       R"({"model":"toy","max_tokens":5,"messages":[{"role":"user","content":"TEXT"}]})",
       R"({"model":"toy","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"TEXT"}]})"},
      {"gemini", AnswerApi::gemini, "/v1beta/models/toy:generateContent",
       "/v1beta/models/toy:streamGenerateContent?alt=sse",
       R"({"contents":[{"parts":[{"text":"TEXT"}]}],"generationConfig":{"maxOutputTokens":5}})",
       R"({"contents":[{"parts":[{"text":"TEXT"}]}],"generationConfig":{"maxOutputTokens":5}})"},
      {"gemini array", AnswerApi::gemini, "/v1/models/toy:generateContent", "/v1/models/toy:streamGenerateContent",
       R"({"contents":[{"role":"user","parts":[{"text":"TEXT"}]}],"generationConfig":{"maxOutputTokens":5}})",
       R"({"contents":[{"role":"user","parts":[{"text":"TEXT"}]}],"generationConfig":{"maxOutputTokens":5}})"},
      {"bedrock", AnswerApi::bedrock, "/model/toy/converse", "/model/toy/converse-stream",
       R"({"messages":[{"role":"user","content":[{"text":"TEXT"}]}],"inferenceConfig":{"maxTokens":5}})",
       R"({"messages":[{"role":"user","content":[{"text":"TEXT"}]}],"inferenceConfig":{"maxTokens":5}})"},
  };
  return all;
}

void expect_usage(const Answer& answer, AnswerApi api, std::int64_t input, std::int64_t cached, const char* what) {
  ASSERT_EQ(answer.status, 200u) << what << ": " << answer.body;
  for (const AnswerApi told : {api, AnswerApi::automatic}) {
    Meter meter;
    MeterOptions options;
    options.api = told;
    const UsageReport report = read_usage(meter, answer.body, options);
    EXPECT_TRUE(report.complete) << what << ": " << answer.body;
    EXPECT_EQ(report.usage.input_tokens, input) << what << ": " << answer.body;
    EXPECT_EQ(report.usage.cached_input_tokens.value_or(0), cached) << what << ": " << answer.body;
    EXPECT_EQ(report.usage.output_tokens, 5) << what;
    EXPECT_TRUE(report.anomalies.empty()) << what;
    EXPECT_FALSE(report.response_id.empty() && api != AnswerApi::bedrock) << what;
  }
}

TEST(EngineForms, SayTheSameInEveryProvidersWords) {
  for (const Api& api : apis()) {
    RunningEngine engine{test_options()};
    BlockingClient client{engine.port()};
    const std::int64_t input = std::string(api.name) == "completions" ? 100 : 102;
    expect_usage(client.post(api.target, with_text(api.body)), api.api, input, 0, api.name);
    expect_usage(client.post(api.target, with_text(api.body)), api.api, input, 96, api.name);
    const Answer stream = client.post(api.stream_target, with_text(api.stream_body));
    expect_usage(stream, api.api, input, 96, api.name);
    Meter meter;
    (void)read_usage(meter, stream.body);
    EXPECT_TRUE(meter.is_stream()) << api.name;
  }
}

TEST(EngineForms, SpellOpenAisCountsAsEachServerDoes) {
  for (const char* name : {"vllm", "openai", "sglang", "deepseek", "mistral", "moonshot", "llamacpp"}) {
    EngineOptions options = test_options();
    options.usage_form = *usage_form_from(name);
    RunningEngine engine{options};
    BlockingClient client{engine.port()};
    const Api& chat = apis()[0];
    expect_usage(client.post(chat.target, with_text(chat.body)), chat.api, 102, 0, name);
    expect_usage(client.post(chat.target, with_text(chat.body)), chat.api, 102, 96, name);
    expect_usage(client.post(chat.target, with_text(chat.stream_body)), chat.api, 102, 96, name);
  }
  EXPECT_FALSE(usage_form_from("abacus"));
}

TEST(EngineForms, RefuseWhatTheyCannotRead) {
  RunningEngine engine{test_options()};
  BlockingClient client{engine.port()};
  EXPECT_EQ(client.post("/v1beta/models/toy:generateContent", "{").status, 400u);
  EXPECT_EQ(client.post("/v1beta/models/toy:generateContent", "{}").status, 400u);
  EXPECT_EQ(client.post("/v1beta/models/other:generateContent", R"({"contents":[{"parts":[{"text":"x"}]}]})").status,
            404u);
  EXPECT_EQ(client.post("/v1beta/models/toy:countTokens", "{}").status, 404u);
  EXPECT_EQ(client.post("/model/toy/converse", R"({"messages":[{"role":"user"}]})").status, 400u);
}

}  // namespace forms_tests
}  // namespace warmroute::examples
