// The rules of reading request bodies that the case files do not spell out one by one.
#include "warmroute/ingest/request_body.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace warmroute {
namespace {

using namespace std::literals;

std::string canonical(BodyApi api, std::string_view body, const RequestBodyOptions& options = {}) {
  auto result = canonical_prompt(api, body, options);
  EXPECT_TRUE(result.ok()) << result.error().message << "\n" << body;
  return result.ok() ? *result : std::string("error");
}
std::string chat(std::string_view messages, std::string_view members = {}) {
  return R"({"model":"m","messages":[)" + std::string(messages) + "]" + std::string(members) + "}";
}
std::string canonical_chat(std::string_view messages, std::string_view members = {}) {
  return canonical(BodyApi::chat, chat(messages, members));
}

std::vector<BlockHash> blocks_of(BodyApi api, std::string_view body, const RequestBodyOptions& options = {}) {
  RequestBodyParser parser;
  auto parsed = parser.parse(api, body, options);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  if (!parsed.ok()) return {};
  return {parsed->blocks.begin(), parsed->blocks.end()};
}

const std::string kLong(300, 'a');
const std::string kUser = R"({"role":"user","content":"hi"})";

TEST(RequestBody, KnowsTheApiByTheEndOfThePath) {
  EXPECT_EQ(*api_for_path("/v1/chat/completions"), BodyApi::chat);
  EXPECT_EQ(*api_for_path("/team-a/v1/completions?x=1"), BodyApi::completions);
  EXPECT_EQ(*api_for_path("/v1/responses/"), BodyApi::responses);
  EXPECT_EQ(*api_for_path("/v1/embeddings"), BodyApi::embeddings);
  EXPECT_EQ(*api_for_path("/v1/messages?beta=true"), BodyApi::messages);
  for (const auto path : {"", "/", "/v1/models", "/v1/messages/count_tokens", "/v1/threads/t1/messages", "/v1/chat"}) {
    EXPECT_EQ(api_for_path(path).code(), Code::not_found) << path;
  }
}

struct Refusal {
  BodyApi api;
  std::string body;
  Code code;
  std::string_view mentions;
  std::uint64_t offset;
};

TEST(RequestBody, SaysWhatIsWrongWhereAndAtWhichByte) {
  const Refusal refusals[] = {
      {BodyApi::chat, R"({"model":7,"messages":[]})", Code::wrong_type, "model must be a string, but is a number", 9},
      {BodyApi::chat, R"({"messages":[{"role":"user"},{"role":"user","content":5}]})", Code::wrong_type,
       "messages[1].content", 54},
      {BodyApi::chat, R"({"messages":[{"role":"user"},{"content":"x"}]})", Code::missing_field, "messages[1].role", 29},
      {BodyApi::chat, R"({"messages":[{"role":"user","content":[{"type":"text"}]}]})", Code::missing_field,
       "messages[0].content[0].text", 39},
      {BodyApi::chat, R"({"messages":[{"role":"u","tool_calls":[{"id":1,"function":{}}]}]})", Code::wrong_type,
       "messages[0].tool_calls[0].id", 45},
      {BodyApi::chat, R"({"messages":[{"role":"u"}],"max_tokens":-2})", Code::value_out_of_range, "max_tokens", 40},
      {BodyApi::chat, R"({"messages":[{"role":"u"}],"tools":["x"]})", Code::wrong_type, "tools[0]", 36},
      {BodyApi::chat, R"({"messages":[{"role":"u"}],"x":01})", Code::invalid_json, "leading zeros", 32},
      {BodyApi::chat, R"({"messages":[{"role":"u"}],"x":"\ud800"})", Code::invalid_unicode, "surrogate", 32},
      {BodyApi::chat,
       R"({"messages":[{"role":"u"}]})"
       " x",
       Code::invalid_json, "after the JSON document", 28},
      {BodyApi::chat, R"({"messages":[{"role":"u")", Code::invalid_json, "ends in the middle", 24},
      {BodyApi::chat, "{\"messages\":[{\"role\":\"u\xff\"}]}", Code::invalid_utf8, "UTF-8", 23},
      {BodyApi::chat, "  [1]", Code::not_an_object, "not an object", 2},
      {BodyApi::completions, R"({"prompt":[1,2,-3]})", Code::value_out_of_range, "prompt has a token id outside", 15},
      {BodyApi::completions, R"({"prompt":[[1],[2,4294967296]]})", Code::value_out_of_range, "prompt[1]", 18},
      {BodyApi::completions, R"({"prompt":[[1],[]]})", Code::empty_prompt, "prompt[1]", 15},
      {BodyApi::completions, R"({"prompt":["a",1]})", Code::wrong_type, "prompt[1]", 15},
      {BodyApi::completions, R"({"prompt":[1,1.5]})", Code::wrong_type, "fraction", 13},
      {BodyApi::completions, R"({"prompt":[true]})", Code::wrong_type, "prompt", 11},
      {BodyApi::responses, R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})", Code::missing_field,
       "input[0].content[0].image_url", 36},
      {BodyApi::responses, R"({"input":"x","conversation":7})", Code::wrong_type, "conversation", 28},
      {BodyApi::messages, R"({"messages":[{"role":"user"}],"metadata":{"user_id":3}})", Code::wrong_type,
       "metadata.user_id", 52},
      {BodyApi::messages, R"({"messages":[{"role":"user"}],"system":[{"type":"text","text":1}]})", Code::wrong_type,
       "system[0].text", 62},
      {BodyApi::messages, R"({"messages":[{"role":"user","content":[{"type":"image"}]}]})", Code::missing_field,
       "content[0].source", 39},
  };
  RequestBodyParser parser;
  for (const Refusal& refusal : refusals) {
    const auto parsed = parser.parse(refusal.api, refusal.body);
    ASSERT_FALSE(parsed.ok()) << refusal.body;
    EXPECT_EQ(parsed.code(), refusal.code) << refusal.body << "\n" << parsed.error().message;
    EXPECT_NE(parsed.error().message.find(refusal.mentions), std::string::npos) << parsed.error().message << "\n"
                                                                                << refusal.body;
    EXPECT_EQ(parsed.error().offset, refusal.offset) << refusal.body << "\n" << parsed.error().message;
  }
}

TEST(RequestBody, HoldsToItsLimitsExactly) {
  RequestBodyParser parser;
  const std::string body = chat(kUser);
  RequestBodyOptions options;
  options.max_bytes = body.size();
  EXPECT_TRUE(parser.parse(BodyApi::chat, body, options).ok());
  options.max_bytes = body.size() - 1;
  EXPECT_EQ(parser.parse(BodyApi::chat, body, options).code(), Code::too_large);

  const auto nested = [](std::size_t depth) {
    return chat(kUser, R"(,"x":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']'));
  };
  EXPECT_TRUE(parser.parse(BodyApi::chat, nested(1024)).ok());
  EXPECT_EQ(parser.parse(BodyApi::chat, nested(1025)).code(), Code::too_deep);
  options = {};
  options.max_depth = 4;
  EXPECT_TRUE(parser.parse(BodyApi::chat, nested(4), options).ok());
  EXPECT_EQ(parser.parse(BodyApi::chat, nested(5), options).code(), Code::too_deep);
  options = {};
  for (const std::uint32_t size : {0u, 513u}) {
    options.block_size = size;
    EXPECT_EQ(parser.parse(BodyApi::chat, body, options).code(), Code::invalid_argument);
  }
}

TEST(RequestBody, ChecksWhatItDoesNotReadAsStrictly) {
  RequestBodyParser parser;
  const std::string_view bad[] = {
      "nan",      "NaN",       "-",           "+1",       "01",         "-01",    ".5",     "1.",        "1e",
      "1e+",      "0x1",       "1_0",         "tru",      "nulll",      "'a'",    "[1,]",   "[,1]",      "[1 2]",
      R"({"a"})", R"({"a":})", R"({"a":1,})", R"({a:1})", R"({"a" 1})", "\"\n\"", "\"\t\"", R"("\u12")", R"("\u12g4")",
      R"("\a")",  "",          "]",           "}",        "[}",         "{]",     "\x01"};
  for (const std::string_view value : bad) {
    for (const char* where : {R"(,"x":)", R"(,"tools":[{"a":)", R"(,"metadata":{"a":[)"}) {
      const std::string_view opened(where);
      const std::string close = opened.find("tools") != opened.npos      ? "}]"
                                : opened.find("metadata") != opened.npos ? "]}"
                                                                         : "";
      if (value.empty() && !close.empty() && close[0] == ']') continue;  // an empty list
      EXPECT_EQ(parser.parse(BodyApi::chat, chat(kUser, where + std::string(value) + close)).code(), Code::invalid_json)
          << where << value;
    }
  }
  for (const std::string_view value :
       {R"("\ud800")", R"("\udc00")", R"("\ud83c\ud83c")", R"("\ud83c\n")", R"({"\ud800":1})"}) {
    EXPECT_EQ(parser.parse(BodyApi::chat, chat(kUser, R"(,"x":)" + std::string(value))).code(), Code::invalid_unicode)
        << value;
  }
  for (const std::string_view value :
       {"-0", "0", "0.0e-0", "1E+400", "-1e-999", "123456789012345678901234567890", R"("\u0000\/")",
        R"("\ud83c\udf0a")", "[ ]", "{ }", R"({"":{"":[]}})", "[[],{},null,true,false]"}) {
    EXPECT_TRUE(parser.parse(BodyApi::chat, chat(kUser, R"(,"x": )" + std::string(value) + " ")).ok()) << value;
  }
}

TEST(RequestBody, TakesTheLastOfRepeatedMembersAtEveryLevel) {
  RequestBodyParser parser;
  const auto parsed =
      parser.parse(BodyApi::chat, chat(kUser, R"(,"user":5,"user":"a","user":"b","cache_salt":"","cache_salt":null)"));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->user, "b");
  EXPECT_EQ(canonical_chat(R"({"content":"x","role":7,"role":"user","content":"hi"})"), canonical_chat(kUser));
  EXPECT_EQ(canonical_chat(R"({"role":"user","content":"x","content":null})"), canonical_chat(R"({"role":"user"})"));
  const auto tool = [](std::string_view parameters) {
    return canonical_chat(kUser, R"(,"tools":[{"type":"function","function":{"name":"f","parameters":)" +
                                     std::string(parameters) + "}}]");
  };
  EXPECT_EQ(tool(R"({"a":1,"b":2,"a":3})"), tool(R"({"a":3,"b":2})"));
  EXPECT_EQ(tool(R"({"a":1,"\u0061":3,"b":2})"), tool(R"({"a":3,"b":2})"));
  std::string many = "{";
  std::string once = "{";
  for (int i = 0; i < 40; ++i) {
    const std::string key = "\"k" + std::to_string(i) + "\":";
    many += key + "0,";
    once += key + std::to_string(i) + (i == 39 ? "}" : ",");
  }
  for (int i = 39; i >= 0; --i) many += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + (i == 0 ? "}" : ",");
  EXPECT_EQ(tool(many), tool(once));
}

TEST(RequestBody, SpellsEqualNumbersAlikeAndOthersApart) {
  const auto number = [](std::string_view n) {
    return canonical_chat(kUser, R"(,"tools":[{"function":{"name":"f","parameters":{"n":[)" + std::string(n) + "]}}}]");
  };
  const std::vector<std::vector<std::string_view>> equal = {{"10", "10.0", "1e1", "1E+1", "100e-1", "0.1e2"},
                                                            {"0", "-0", "0.0", "0e9"},
                                                            {"3.1", "31e-1", "3.10"},
                                                            {"-2.5", "-25e-1"},
                                                            {"0.001", "1e-3"},
                                                            {"1e30", "10e29"},
                                                            {"9007199254740993"},
                                                            {"9007199254740992"},
                                                            {"1e-30", "10e-31"},
                                                            {"123456789012345678901234567890"},
                                                            {"0.5", "5e-1"},
                                                            {"-0.5"},
                                                            {"31"},
                                                            {"310"},
                                                            {"1,0"},
                                                            {"10,0"}};
  for (std::size_t i = 0; i < equal.size(); ++i) {
    for (const auto spelling : equal[i]) EXPECT_EQ(number(spelling), number(equal[i][0])) << spelling;
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_NE(number(equal[i][0]), number(equal[j][0])) << equal[i][0] << " " << equal[j][0];
  }
}

TEST(RequestBody, ReadsLimitsAsIntegersOfAnySpelling) {
  RequestBodyParser parser;
  const auto limit = [&](std::string_view value) {
    return parser.parse(BodyApi::chat, chat(kUser, R"(,"max_tokens":)" + std::string(value)));
  };
  for (const auto value : {"12", "12.0", "1.2e1", "120e-1"}) EXPECT_EQ(limit(value)->max_output_tokens, 12) << value;
  for (const auto value : {"-1", "-1.0", "-10e-1", "null"})
    EXPECT_EQ(limit(value)->max_output_tokens, std::nullopt) << value;
  for (const auto value : {"0", "-0", "0e5"}) EXPECT_EQ(limit(value)->max_output_tokens, 0) << value;
  for (const auto value : {"1.5", "1e-1", "1e-99999999999999999999", "[]", "{}", "\"1\"", "false"}) {
    EXPECT_EQ(limit(value).code(), Code::wrong_type) << value;
  }
  for (const auto value :
       {"-2", "9223372036854775808", "1e19", "1e99999999999999999999", "-1e2", "-18446744073709551615"}) {
    EXPECT_EQ(limit(value).code(), Code::value_out_of_range) << value;
  }
}

TEST(RequestBody, GivesOnePromptOneStreamThroughChatResponsesAndMessages) {
  const std::string parameters = R"({"type":"object","properties":{"b":{},"a":{"maximum":1e1}}})";
  const std::string chat_body =
      R"({"model":"m","tools":[{"type":"function","function":{"name":"tide","description":"d","parameters":)" +
      parameters +
      R"(}}],"messages":[{"role":"system","content":"S"},{"role":"user","content":[{"type":"text","text":"look"},)"
      R"({"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]},{"role":"assistant",)"
      R"("reasoning_content":"hm",)"
      R"("content":"Wait.","tool_calls":[{"id":"c1","type":"function","function":{"name":"tide",)"
      R"("arguments":"{\"at\":10}"}},)"
      R"({"id":"c2","type":"function","function":{"name":"tide","arguments":"{}"}}]},{"role":"tool",)"
      R"("tool_call_id":"c1","content":"7"},)"
      R"({"role":"tool","tool_call_id":"c2","content":"8"},{"role":"user","content":"and?"}]})";
  const std::string responses_body =
      R"({"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"look"},)"
      R"({"type":"input_image","image_url":"data:image/png;base64,QUJD","detail":"auto"}]},{"type":"reasoning",)"
      R"("id":"rs_1","summary":[],)"
      R"("content":[{"type":"reasoning_text","text":"hm"}]},{"type":"message","role":"assistant","id":"msg_1",)"
      R"("content":)"
      R"([{"type":"output_text","text":"Wait.","annotations":[]}]},{"type":"function_call","call_id":"c1",)"
      R"("name":"tide","arguments":)"
      R"("{\"at\":10}"},{"type":"function_call","call_id":"c2","name":"tide","arguments":"{}"},)"
      R"({"type":"function_call_output",)"
      R"("call_id":"c1","output":"7"},{"type":"function_call_output","call_id":"c2","output":"8"},)"
      R"({"role":"user","content":"and?"}],)"
      R"("instructions":"S","tools":[{"type":"function","name":"tide","description":"d","parameters":)" +
      parameters + "}]}";
  const std::string messages_body =
      R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"look"},)"
      R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},)"
      R"({"role":"assistant","content":)"
      R"([{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"Wait."},)"
      R"({"type":"tool_use","id":"c1","name":)"
      R"("tide","input":{"at": 1.0e1}},{"type":"tool_use","id":"c2","name":"tide","input":{}}]},{"role":"user",)"
      R"("content":)"
      R"([{"type":"tool_result","tool_use_id":"c1","content":"7"},{"type":"tool_result","tool_use_id":"c2",)"
      R"("content":[{"type":"text",)"
      R"("text":"8"}]},{"type":"text","text":"and?"}]}],"system":"S","tools":[{"name":"tide","description":"d",)"
      R"("input_schema":)" +
      parameters + R"(,"cache_control":{"type":"ephemeral"}}]})";
  const std::string expected = canonical(BodyApi::chat, chat_body);
  EXPECT_EQ(canonical(BodyApi::responses, responses_body), expected);
  EXPECT_EQ(canonical(BodyApi::messages, messages_body), expected);
}

TEST(RequestBody, KeepsEveryTurnABeginningOfTheNextOne) {
  const std::vector<std::string> items = {
      R"({"role":"user","content":"q"})",
      R"({"type":"reasoning","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"zz"})",
      R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"})",
      R"({"type":"function_call_output","call_id":"c","output":"1"})",
      R"({"type":"custom_tool_call","call_id":"d","name":"sql","input":"select"})",
      R"({"type":"custom_tool_call_output","call_id":"d","output":"2"})",
      R"({"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":"tide"}})",
      R"({"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]})",
      R"({"role":"assistant","content":"again"})",
      R"({"role":"user","content":[{"type":"input_file","file_id":"f1"}]})",
      R"({"type":"item_reference","id":"msg_1"})"};
  std::string input;
  std::string previous;
  for (const std::string& item : items) {
    input += (input.empty() ? "" : ",") + item;
    const std::string now = canonical(BodyApi::responses, R"({"input":[)" + input + "]}");
    EXPECT_EQ(now.substr(0, previous.size()), previous) << item;
    EXPECT_GT(now.size(), previous.size()) << item;
    previous = now;
  }
}

TEST(RequestBody, TakesIdsAndStatusOfUnknownItemsForTheServers) {
  const auto item = [](std::string_view members) {
    return canonical(BodyApi::responses, R"({"input":[{"type":"mcp_call")" + std::string(members) + "}]}");
  };
  EXPECT_EQ(item(R"(,"id":"m1","status":"completed","name":"t")"), item(R"(,"name":"t")"));
  EXPECT_EQ(item(R"(,"name":"t","arguments":"{}")"), item(R"(,"arguments":"{}","name":"t")"));
  EXPECT_NE(item(R"(,"name":"t")"), item(R"(,"name":"u")"));
  const auto reference = [](std::string_view id) {
    return canonical(BodyApi::responses, R"({"input":[{"type":"item_reference","id":")" + std::string(id) + R"("}]})");
  };
  EXPECT_NE(reference("msg_1"), reference("msg_2"));
}

TEST(RequestBody, CountsWhatChangesThePromptAndNothingElse) {
  const auto differ = [](std::string_view a, std::string_view b) {
    EXPECT_NE(canonical_chat(a), canonical_chat(b)) << a << "\n" << b;
  };
  const auto same = [](std::string_view a, std::string_view b) {
    EXPECT_EQ(canonical_chat(a), canonical_chat(b)) << a << "\n" << b;
  };
  const auto part = [](std::string_view p) { return R"({"role":"user","content":[)" + std::string(p) + "]}"; };
  differ(R"({"role":"user","content":"a"})", R"({"role":"user","content":"a","name":"n"})");
  differ(R"({"role":"assistant","content":"a"})", R"({"role":"assistant","content":"a","reasoning_content":"r"})");
  differ(R"({"role":"assistant","content":"a"})", R"({"role":"assistant","content":"a","refusal":"r"})");
  differ(part(R"({"type":"text","text":"a"},{"type":"text","text":""})"), part(R"({"type":"text","text":"a"})"));
  differ(part(R"({"type":"text","text":""},{"type":"text","text":"a"})"), part(R"({"type":"text","text":"a"})"));
  differ(part(R"({"type":"new","x":1})"), part(R"({"type":"new","x":2})"));
  differ(part(R"({"type":"image_url","image_url":{"url":"u","detail":"low"}})"),
         part(R"({"type":"image_url","image_url":{"url":"u","detail":"high"}})"));
  same(part(R"({"type":"image_url","image_url":{"url":"u","detail":"auto"}})"),
       part(R"({"image_url":{"url":"\u0075"},"type":"image_url"})"));
  same(part(R"({"type":"file","file":{"file_id":"f","filename":"n"}})"),
       part(R"({"file":{"filename":"n","file_id":"f"},"type":"file"})"));
  same(part(R"({"type":"text","text":"a","cache_control":{"type":"ephemeral"}})"),
       part(R"({"type":"text","text":"a"})"));
  same(part(""), R"({"role":"user","content":null})");
  same(part(R"({"type":"text","text":""})"), R"({"role":"user","content":""})");
  same(R"({"role":"user","content":"a","id":"x","annotations":[1],"weight":0})", R"({"role":"user","content":"a"})");
  same(R"({"role":"assistant","content":"a","tool_calls":[],"function_call":null})",
       R"({"role":"assistant","content":"a"})");
}

TEST(RequestBody, PutsBinaryDataAsADigestInItsPlace) {
  const auto file = [](char c) {
    return R"({"role":"user","content":[{"type":"text","text":"before"},{"type":"file",)"
           R"("file":{"file_data":"data:application/pdf;base64,)" +
           std::string(100'000, c) + R"("}},{"type":"text","text":"after"}]})";
  };
  const std::string a = canonical_chat(file('A'));
  const std::string b = canonical_chat(file('B'));
  EXPECT_LT(a.size(), 200u);
  const auto shared = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  EXPECT_GE(shared, "before"s.size());
  EXPECT_LT(shared, a.find("after"));
}

TEST(RequestBody, SeparatesTemplatesAndHiddenHistoryFromTheFirstByteOn) {
  const std::string messages = R"({"role":"user","content":")" + kLong + R"("})";
  const std::string plain = canonical_chat(messages);
  std::vector<std::string> streams = {plain};
  for (const std::string_view members :
       {R"(,"chat_template":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1")"sv,
        R"(,"chat_template":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2")"sv,
        R"(,"chat_template_kwargs":{"a":1})"sv, R"(,"documents":[{"text":"a"}])"sv, R"(,"extra_key":"a")"sv}) {
    streams.push_back(canonical_chat(messages, members));
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const auto shared =
          std::mismatch(streams[i].begin(), streams[i].end(), streams[j].begin(), streams[j].end()).first -
          streams[i].begin();
      EXPECT_LT(shared, 18) << i << " " << j;
    }
  }
  EXPECT_EQ(canonical_chat(messages, R"(,"chat_template":"","chat_template_kwargs":{},"documents":[],"extra_key":"")"),
            plain);
}

TEST(RequestBody, HashesTheCanonicalTextUnderTheSpaceOfTheRequest) {
  const std::string body =
      chat(R"({"role":"user","content":")" + kLong + R"("})", R"(,"lora_path":"fr","cache_salt":"s")");
  RequestBodyOptions options;
  options.tenant = "blue";
  options.hash_seed = 99;
  const std::string text = canonical(BodyApi::chat, body, options);
  std::vector<BlockHash> expected(text.size() / kTextBlockBytes);
  hash_text_blocks(
      text, block_seed({.hash_seed = 99, .adapter = "fr", .cache_salt = "s", .isolation_key = "blue", .text = true}),
      expected);
  EXPECT_EQ(blocks_of(BodyApi::chat, body, options), expected);
  options.adapter = "de";
  hash_text_blocks(
      text, block_seed({.hash_seed = 99, .adapter = "de", .cache_salt = "s", .isolation_key = "blue", .text = true}),
      expected);
  EXPECT_EQ(blocks_of(BodyApi::chat, body, options), expected);
  options.isolation = Isolation::none;
  hash_text_blocks(text, block_seed({.hash_seed = 99, .adapter = "de", .cache_salt = "s", .text = true}), expected);
  EXPECT_EQ(blocks_of(BodyApi::chat, body, options), expected);
}

TEST(RequestBody, HashesGivenIdsAsEnginesDo) {
  std::string body = R"({"prompt":[0)";
  std::vector<std::uint32_t> ids = {0};
  for (std::uint32_t i = 1; i < 70; ++i) {
    ids.push_back(i * 61'681'433u);
    body += (i % 7 == 0 ? " ,\n" : ",") + std::to_string(ids.back()) + (i % 11 == 0 ? ".0" : "");
  }
  std::vector<BlockHash> expected(8);
  expected.resize(hash_token_blocks(ids, 8, block_seed({}), expected));
  RequestBodyOptions options;
  options.block_size = 8;
  EXPECT_EQ(blocks_of(BodyApi::completions, body + "]}", options), expected);
  EXPECT_EQ(blocks_of(BodyApi::completions, body + R"(],"extra_key":""})", options), expected);
  EXPECT_NE(blocks_of(BodyApi::completions, body + R"(],"extra_key":"k"})", options)[0], expected[0]);
}

std::size_t ids_of_bytes(void* user, std::string_view prompt, std::uint32_t* out, std::size_t capacity) {
  ++*static_cast<int*>(user);
  for (std::size_t i = 0; i < std::min(capacity, prompt.size()); ++i) out[i] = static_cast<unsigned char>(prompt[i]);
  return prompt.size();
}

TEST(RequestBody, AsksTheTokenizerForEveryPromptAndAgainWithRoom) {
  int calls = 0;
  RequestBodyOptions options;
  options.tokenizer = {&calls, ids_of_bytes};
  RequestBodyParser parser;
  const auto parsed = parser.parse(BodyApi::completions, R"({"prompt":[")" + kLong + R"(","bc",""]})", options);
  ASSERT_TRUE(parsed.ok());
  EXPECT_GE(calls, 4);  // the first prompt needs more room than its guess
  EXPECT_EQ(parsed->prompt_count, 3u);
  EXPECT_TRUE(parsed->token_blocks);
  EXPECT_FALSE(parsed->ids_from_body);
  EXPECT_EQ(parsed->kind, PromptKind::text);
  EXPECT_EQ(parsed->input_tokens, 302);
  EXPECT_EQ(parsed->prompt_bytes, 302u);
  EXPECT_EQ(parsed->token_ids.size(), 300u);
  EXPECT_EQ(std::vector<std::size_t>(parsed->prompt_ends.begin(), parsed->prompt_ends.end()),
            (std::vector<std::size_t>{300, 302, 302}));
  EXPECT_EQ(parsed->blocks.size(), 300u / 16);
  const std::string chat_body = chat(kUser);
  EXPECT_EQ(parser.parse(BodyApi::chat, chat_body, options)->input_tokens,
            static_cast<std::int64_t>(canonical(BodyApi::chat, chat_body).size()));
}

TEST(RequestBody, RefusesATokenizerThatNeverHasRoomEnough) {
  RequestBodyOptions options;
  options.tokenizer.encode = [](void*, std::string_view, std::uint32_t*, std::size_t capacity) { return capacity + 1; };
  RequestBodyParser parser;
  EXPECT_EQ(parser.parse(BodyApi::chat, chat(kUser), options).code(), Code::internal);
}

TEST(RequestBody, MatchesOnTheFirstPromptAndCountsAllOfThem) {
  RequestBodyParser parser;
  const auto parsed = parser.parse(BodyApi::completions, R"({"prompt":["","b","cd"]})");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->prompt_count, 3u);
  EXPECT_EQ(parsed->prompt_bytes, 3u);
  EXPECT_TRUE(parsed->blocks.empty());
  const std::string one = R"({"prompt":")" + kLong + R"("})";
  EXPECT_EQ(blocks_of(BodyApi::completions, R"({"prompt":[")" + kLong + R"(","other"]})"),
            blocks_of(BodyApi::completions, one));
  EXPECT_EQ(canonical(BodyApi::completions, one), kLong);
}

TEST(RequestBody, FillsTheRoutersRequest) {
  RequestBodyParser parser;
  RequestBodyOptions options;
  options.tenant = "blue";
  const auto parsed =
      parser.parse(BodyApi::chat,
                   chat(R"({"role":"user","content":")" + kLong + R"("})",
                        R"(,"stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"session_id":"s",)"
                        R"("lora_path":"fr","cache_salt":"x")"),
                   options);
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->include_usage);
  const Request request = parsed->request();
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.session, "s");
  EXPECT_EQ(request.adapter, "fr");
  EXPECT_EQ(request.cache_salt, "x");
  EXPECT_EQ(request.tenant, "blue");
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.max_output_tokens, 7);
  EXPECT_EQ(request.input_tokens, kUnknown);
  EXPECT_EQ(request.prompt_bytes, static_cast<std::int64_t>(parsed->prompt_bytes));
  EXPECT_EQ(request.block_kind, BlockKind::text);
  EXPECT_EQ(request.blocks.size(), parsed->prompt_bytes / kTextBlockBytes);
  const auto ids = parser.parse(BodyApi::completions, R"({"prompt":[[1,2,3],[4]]})");
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->request().input_tokens, 4);
  EXPECT_EQ(ids->request().token_ids.size(), 3u);
  EXPECT_EQ(ids->request().prompt_bytes, kUnknown);
  EXPECT_EQ(ids->request().max_output_tokens, kUnknown);
}

}  // namespace
}  // namespace warmroute
