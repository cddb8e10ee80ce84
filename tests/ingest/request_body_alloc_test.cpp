// A parser that has seen bodies of the size allocates nothing. A program of its own, since it replaces operator new.
#include <gtest/gtest.h>

#include "support/counting_new.hpp"
#include "warmroute/ingest/request_body.hpp"

namespace warmroute {
namespace {

struct Input {
  BodyApi api;
  std::string body;
};

std::vector<Input> inputs() {
  const std::string text(5'000, 'a');
  std::string ids = "1";
  for (int i = 0; i < 3'000; ++i) ids += ",7";
  std::string schema = R"({"type":"object","properties":{)";
  for (int i = 0; i < 40; ++i)
    schema += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + R"(":{"type":"number","maximum":1e1})";
  schema += "}}";
  return {
      {BodyApi::chat, R"({"model":"m","user":"u","session_id":"s\n","stream":true,"tools":[{"type":"function",)"
                      R"("function":{"name":"f","parameters":)" +
                          schema + R"(}}],"chat_template_kwargs":{"a":1},"messages":[{"role":"system","content":")" +
                          text +
                          R"(\n"},{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url",)"
                          R"("image_url":{"url":"data:)" +
                          text + R"("}}]}]})"},
      {BodyApi::completions, R"({"prompt":[)" + ids + "]}"},
      {BodyApi::completions, R"({"prompt":["a\n","b",")" + text + R"("]})"},
      {BodyApi::embeddings, R"({"input":[[1,2],[3]]})"},
      {BodyApi::responses, R"({"input":[{"role":"user","content":")" + text +
                               R"("},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]})"},
      {BodyApi::messages, R"({"max_tokens":9,"system":"S","messages":[{"role":"user","content":[{"type":"tool_result",)"
                          R"("tool_use_id":"t","content":")" +
                              text + R"("}]}]})"},
  };
}

std::size_t ids_of_bytes(void*, std::string_view prompt, std::uint32_t* out, std::size_t capacity) {
  for (std::size_t i = 0; i < std::min(capacity, prompt.size()); ++i) out[i] = static_cast<unsigned char>(prompt[i]);
  return prompt.size();
}

TEST(RequestBodyAllocations, AreNoneOnceWarm) {
  const std::vector<Input> bodies = inputs();
  RequestBodyOptions tokenized;
  tokenized.tokenizer.encode = ids_of_bytes;
  RequestBodyParser parser;
  for (int round = 0; round < 3; ++round) {
    const std::size_t before = test::allocations();
    for (const Input& input : bodies) {
      for (const RequestBodyOptions& options : {RequestBodyOptions(), tokenized}) {
        if (!parser.parse(input.api, input.body, options).ok()) ADD_FAILURE() << input.body;
      }
    }
    if (round == 0) {
      EXPECT_GT(test::allocations(), before);  // the counter counts
    } else {
      EXPECT_EQ(test::allocations(), before);
    }
  }
}

}  // namespace
}  // namespace warmroute
