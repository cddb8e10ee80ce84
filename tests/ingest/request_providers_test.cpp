// Gemini's and Bedrock's bodies are the chats that they are.
#include <gtest/gtest.h>

#include <string>

#include "warmroute/ingest/request_body.hpp"

namespace warmroute {
namespace request_providers_tests {

std::string canonical(BodyApi api, const std::string& body) {
  const auto text = canonical_prompt(api, body);
  EXPECT_TRUE(text.ok()) << body << ": " << text.error().message;
  return text ? *text : std::string();
}
Code code_of(BodyApi api, const std::string& body) {
  RequestBodyParser parser;
  return parser.parse(api, body).code();
}

const std::string kChat =
    R"({"model":"m","messages":[{"role":"system","content":[{"type":"text","text":"Be brief."}]},)"
    R"({"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},)"
    R"({"role":"assistant","content":"three"},{"role":"user","content":"four"}]})";

TEST(RequestProviders, GeminisContentsAreTheSameChat) {
  const std::string contents = R"("contents":[{"role":"user","parts":[{"text":"one"},{"text":"two"}]},)"
                               R"({"role":"model","parts":[{"text":"three"}]},{"parts":{"text":"four"}}])";
  EXPECT_EQ(canonical(BodyApi::gemini, R"({"systemInstruction":{"parts":[{"text":"Be brief."}]},)" + contents + "}"),
            canonical(BodyApi::chat, kChat));
  EXPECT_EQ(canonical(BodyApi::gemini, "{" + contents + R"(,"system_instruction":{"parts":{"text":"Be brief."}}})"),
            canonical(BodyApi::chat, kChat));
  EXPECT_EQ(canonical(BodyApi::gemini, R"({"contents":{"role":"user","parts":{"text":"one"}}})"),
            canonical(BodyApi::chat, R"({"messages":[{"role":"user","content":"one"}]})"));
  // What stands before the texts separates from the first byte on.
  EXPECT_NE(canonical(BodyApi::gemini, R"({"cachedContent":"cachedContents/1",)" + contents + "}").substr(0, 2),
            canonical(BodyApi::gemini, "{" + contents + "}").substr(0, 2));
  EXPECT_NE(canonical(BodyApi::gemini, R"({"tools":[{"functionDeclarations":[{"name":"f"}]}],)" + contents + "}"),
            canonical(BodyApi::gemini, "{" + contents + "}"));
}

TEST(RequestProviders, ConversesContentIsTheSameChat) {
  EXPECT_EQ(
      canonical(BodyApi::converse,
                R"({"system":[{"text":"Be brief."},{"cachePoint":{"type":"default"}}],"messages":[)"
                R"({"role":"user","content":[{"text":"one"},{"cachePoint":{"type":"default"}},{"text":"two"}]},)"
                R"({"role":"assistant","content":[{"text":"three"}]},{"role":"user","content":[{"text":"four"}]}],)"
                R"("toolConfig":{"tools":[{"cachePoint":{"type":"default"}}]}})"),
      canonical(BodyApi::chat, kChat));
}

TEST(RequestProviders, OtherPartsKeepTheirPlaces) {
  const auto gemini = [](const std::string& part) {
    return canonical(BodyApi::gemini, R"({"contents":[{"role":"user","parts":[{"text":"a"},)" + part + "]}]}");
  };
  EXPECT_NE(gemini(R"({"inlineData":{"mimeType":"image/png","data":"AAAA"}})"),
            gemini(R"({"inlineData":{"mimeType":"image/png","data":"AAAB"}})"));
  const auto converse = [](const std::string& block) {
    return canonical(BodyApi::converse, R"({"messages":[{"role":"user","content":[{"text":"a"},)" + block + "]}]}");
  };
  EXPECT_NE(converse(R"({"toolResult":{"toolUseId":"1","content":[{"text":"x"}]}})"),
            converse(R"({"toolResult":{"toolUseId":"1","content":[{"text":"y"}]}})"));
}

TEST(RequestProviders, TheirLimitsAreFoundWhereTheyStand) {
  RequestBodyParser parser;
  const auto most = [&](BodyApi api, const std::string& body) {
    const auto parsed = parser.parse(api, body);
    return parsed ? parsed->max_output_tokens.value_or(-2) : -3;
  };
  const std::string contents = R"("contents":[{"parts":[{"text":"x"}]}])";
  EXPECT_EQ(most(BodyApi::gemini, "{" + contents + R"(,"generationConfig":{"maxOutputTokens":7}})"), 7);
  EXPECT_EQ(most(BodyApi::gemini, "{" + contents + R"(,"generation_config":{"max_output_tokens":8}})"), 8);
  EXPECT_EQ(most(BodyApi::gemini, "{" + contents + R"(,"generationConfig":{},"max_tokens":9})"), -2);
  const std::string messages = R"("messages":[{"role":"user","content":[{"text":"x"}]}])";
  EXPECT_EQ(most(BodyApi::converse, "{" + messages + R"(,"inferenceConfig":{"maxTokens":10}})"), 10);
  EXPECT_EQ(most(BodyApi::converse, "{" + messages + R"(,"inferenceConfig":{"maxOutputTokens":10}})"), -2);
}

TEST(RequestProviders, FaultsAreNamed) {
  EXPECT_EQ(code_of(BodyApi::gemini, "{}"), Code::missing_field);
  EXPECT_EQ(code_of(BodyApi::gemini, R"({"contents":[]})"), Code::empty_prompt);
  EXPECT_EQ(code_of(BodyApi::gemini, R"({"contents":["x"]})"), Code::wrong_type);
  EXPECT_EQ(code_of(BodyApi::gemini, R"({"contents":[{"parts":7}]})"), Code::wrong_type);
  EXPECT_EQ(code_of(BodyApi::gemini, R"({"contents":[{"parts":[{"text":7}]}]})"), Code::wrong_type);
  EXPECT_EQ(code_of(BodyApi::gemini, R"({"contents":[{"role":1,"parts":[]}]})"), Code::wrong_type);
  EXPECT_EQ(code_of(BodyApi::gemini, R"({"contents":[{"parts":[]}],"systemInstruction":"x"})"), Code::wrong_type);
  EXPECT_EQ(code_of(BodyApi::gemini, R"({"contents":[{"parts":[]}],"generationConfig":{"maxOutputTokens":1.5}})"),
            Code::wrong_type);
  EXPECT_EQ(code_of(BodyApi::converse, R"({"messages":[{"role":"user","content":"x"}]})"), Code::wrong_type);
  EXPECT_EQ(code_of(BodyApi::converse, R"({"messages":[{"role":"user","content":[{"text":"x"}]}],"system":"x"})"),
            Code::wrong_type);
  RequestBodyParser parser;
  const auto bad =
      parser.parse(BodyApi::converse, R"({"messages":[{"role":"user","content":[{"text":"x"},{"text":5}]}]})");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("messages[0].content[1].text"), std::string::npos) << bad.error().message;
}

}  // namespace request_providers_tests
}  // namespace warmroute
