// tests/data/request_cases.jsonl: each body gives the routing request, or the error, that the file says.
#include <gtest/gtest.h>

#include "request_case_file.hpp"

namespace warmroute {
namespace {

using test::api_of;
using test::body_of;
using test::lines_of;

std::string expected_text(simdjson::dom::object expect, const char* name) {
  std::string_view text;
  return expect[name].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::string_view kind_word(PromptKind kind) {
  switch (kind) {
    case PromptKind::chat: return "chat";
    case PromptKind::text: return "text";
    case PromptKind::tokens: return "tokens";
    case PromptKind::embedding: return "embedding";
  }
  return "?";
}

std::string_view error_word(Code code) {
  return code == Code::value_out_of_range ? std::string_view("out_of_range") : code_name(code);
}

void expect_ids(simdjson::dom::object line, simdjson::dom::object expect, const ParsedBody& parsed) {
  std::vector<std::uint32_t> flat;
  std::vector<std::size_t> ends;
  simdjson::dom::array ids;
  if (simdjson::dom::array pieces; line["token_ids_gen"].get(pieces) == simdjson::SUCCESS) {
    for (const simdjson::dom::object piece : pieces) {
      for (std::uint64_t i = 0, n = piece["times"].get_uint64(); i < n; ++i) {
        for (const std::uint64_t id : piece["ids"].get_array()) flat.push_back(static_cast<std::uint32_t>(id));
      }
    }
    ends.push_back(flat.size());
  } else if (expect["token_ids"].get(ids) == simdjson::SUCCESS) {
    bool nested = false;
    for (const simdjson::dom::element element : ids) {
      if (simdjson::dom::array inner; element.get(inner) == simdjson::SUCCESS) {
        nested = true;
        for (const std::uint64_t id : inner) flat.push_back(static_cast<std::uint32_t>(id));
        ends.push_back(flat.size());
      } else {
        flat.push_back(static_cast<std::uint32_t>(element.get_uint64()));
      }
    }
    if (!nested) ends.push_back(flat.size());
  }
  EXPECT_EQ(std::vector<std::uint32_t>(parsed.all_token_ids.begin(), parsed.all_token_ids.end()), flat);
  EXPECT_EQ(std::vector<std::size_t>(parsed.prompt_ends.begin(), parsed.prompt_ends.end()), ends);
  EXPECT_EQ(parsed.ids_from_body, !flat.empty());
  EXPECT_EQ(parsed.input_tokens, flat.empty() ? kUnknown : static_cast<std::int64_t>(flat.size()));
}

void expect_case(RequestBodyParser& parser, simdjson::dom::object line) {
  const simdjson::dom::object expect = line["expect"].get_object();
  const std::string body = body_of(line, "body");
  const Result<ParsedBody> result = parser.parse(api_of(line["api"].get_string().value()), body);
  if (const std::string error = expected_text(expect, "error"); !error.empty()) {
    EXPECT_EQ(result.ok() ? "ok" : error_word(result.code()), error);
    if (result.ok()) return;
    EXPECT_FALSE(result.error().message.empty());
    EXPECT_LE(result.error().offset, body.size()) << result.error().message;
    return;
  }
  ASSERT_TRUE(result.ok()) << code_name(result.code()) << ": " << result.error().message << " at "
                           << result.error().offset;
  const ParsedBody& parsed = *result;
  EXPECT_EQ(parsed.model, expected_text(expect, "model"));
  EXPECT_EQ(parsed.session, expected_text(expect, "session"));
  EXPECT_EQ(parsed.user, expected_text(expect, "user"));
  EXPECT_EQ(parsed.adapter, expected_text(expect, "adapter"));
  EXPECT_EQ(parsed.cache_salt, expected_text(expect, "cache_salt"));
  EXPECT_EQ(parsed.stream, expect["stream"].get_bool().value());
  EXPECT_EQ(kind_word(parsed.kind), expected_text(expect, "prompt_kind"));
  EXPECT_EQ(parsed.prompt_count, expect["n_prompts"].get_uint64().value());
  std::int64_t limit = 0;
  if (expect["max_output_tokens"].get(limit) == simdjson::SUCCESS) {
    EXPECT_EQ(parsed.max_output_tokens, std::optional(limit));
  } else {
    EXPECT_FALSE(parsed.max_output_tokens.has_value());
  }
  expect_ids(line, expect, parsed);
}

TEST(RequestCases, EveryBodyGivesWhatTheFileSays) {
  simdjson::dom::parser json;
  RequestBodyParser parser;
  const auto lines = lines_of("request_cases.jsonl");
  EXPECT_GE(lines.size(), 157u);
  for (const std::string& line : lines) {
    const simdjson::dom::object object = json.parse(line).get_object();
    SCOPED_TRACE(std::string(object["id"].get_string().value()) + ": " +
                 std::string(object["why"].get_string().value()));
    expect_case(parser, object);
  }
}

}  // namespace
}  // namespace warmroute
