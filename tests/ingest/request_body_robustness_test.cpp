// Whatever comes in: an answer, the same one every time, and nothing of the prompt left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ingest/request_body_impl.hpp"
#include "request_case_file.hpp"
#include "support/sanitized.hpp"

namespace warmroute {

struct RequestBodyParserPeer {
  /// Is `needle` in any scratch memory that text passes through, used or not?
  static bool holds(const RequestBodyParser& parser, std::string_view needle) {
    const auto in = [needle](const ingest::ByteBuffer& b) {
      return std::string_view(b.data(), b.capacity()).find(needle) != std::string_view::npos;
    };
    const auto& impl = *parser.impl_;
    return in(impl.canonical.buffer()) || in(impl.tape.decoded()) || in(impl.hints);
  }
  static std::size_t scratch_bytes(const RequestBodyParser& parser) {
    return parser.impl_->canonical.buffer().capacity() + parser.impl_->tape.decoded().capacity() +
           parser.impl_->hints.capacity();
  }
};

namespace {

#ifdef NDEBUG
constexpr int kMutations = test::rounds(100'000, 10);
#else
constexpr int kMutations = 10'000;
#endif

bool is_json_error(Code code) {
  return code == Code::invalid_json || code == Code::invalid_utf8 || code == Code::invalid_unicode ||
         code == Code::too_deep;
}

// What only the second opinion refuses: more than 18 digits in a row, or an exponent.
bool has_big_number(std::string_view body) {
  std::size_t digits = 0;
  for (const char c : body) {
    if (digits > 18 || (digits > 0 && (c == 'e' || c == 'E'))) return true;
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
  }
  return false;
}

std::string summary(const Result<ParsedBody>& result) {
  if (!result.ok()) {
    return std::string(code_name(result.code())) + "@" + std::to_string(result.error().offset) + " " +
           result.error().message;
  }
  std::string s;
  for (const std::string_view v : {result->model, result->adapter, result->session, result->user, result->cache_salt})
    s += std::string(v) + "|";
  s += std::to_string(result->stream) + std::to_string(result->max_output_tokens.value_or(-7)) + "|" +
       std::to_string(result->prompt_count) + "|" + std::to_string(result->prompt_bytes) + "|" +
       std::to_string(result->input_tokens);
  for (const BlockHash block : result->blocks) s.append(1, ',').append(std::to_string(to_u64(block)));
  return s;
}

TEST(RequestBodyRobustness, RefusesABodyThatIsCutAnywhere) {
  RequestBodyParser parser;
  for (const test::CaseBody& c : test::all_bodies(2'000)) {
    if (!parser.parse(c.api, c.body).ok()) continue;
    const std::size_t end = c.body.find_last_not_of(" \n\r\t") + 1;
    for (std::size_t cut = 0; cut < end; ++cut) {
      const std::string part(c.body, 0, cut);  // a copy of its own, so that a sanitizer sees reads beyond it
      ASSERT_FALSE(parser.parse(c.api, part).ok()) << c.id << " cut at " << cut;
    }
  }
}

// Small changes of real bodies. simdjson's DOM parser, which checks everything, is the second opinion: it may refuse
// more (numbers beyond 64 bits, 1e999), never less.
TEST(RequestBodyRobustness, AgreesWithAnotherStrictParserAboutMutatedBodies) {
  const auto bodies = test::all_bodies(1'200);
  constexpr std::string_view kBytes = "\"\\{}[]:,0123456789.eE+-tfnu dD8/\x01\x7f\xc3\xa9\xff\n\0";
  std::mt19937_64 random(20'260'729);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  RequestBodyParser parser;
  simdjson::dom::parser other;
  int accepted = 0;
  for (int i = 0; i < kMutations; ++i) {
    const test::CaseBody& c = bodies[below(bodies.size())];
    std::string body = c.body;
    for (std::size_t n = 1 + below(3); n > 0 && !body.empty(); --n) {
      const std::size_t at = below(body.size());
      switch (below(4)) {
        case 0: body[at] = kBytes[below(kBytes.size())]; break;
        case 1: body.erase(at, 1 + below(4)); break;
        case 2: body.insert(at, 1, kBytes[below(kBytes.size())]); break;
        default: body.insert(at, body.substr(below(body.size()), below(12))); break;
      }
    }
    const Result<ParsedBody> result = parser.parse(c.api, body);
    const auto opinion = other.parse(body).error();
    if (result.ok() || !is_json_error(result.code())) {
      ++accepted;
      const bool bom = body.size() >= 3 && body.compare(0, 3, "\xef\xbb\xbf") == 0;
      ASSERT_TRUE(opinion == simdjson::SUCCESS || (opinion == simdjson::NUMBER_ERROR && has_big_number(body)) || bom)
          << c.id << ": " << simdjson::error_message(opinion) << "\n"
          << body;
    } else {
      ASSERT_NE(opinion, simdjson::SUCCESS) << c.id << ": " << result.error().message << "\n" << body;
      ASSERT_LE(result.error().offset, body.size());
    }
  }
  EXPECT_GT(accepted, kMutations / 20);  // the mutations are small enough to reach what lies behind the syntax
}

TEST(RequestBodyRobustness, ReadsABodyTheSameWhateverCameBefore) {
  auto bodies = test::all_bodies(400'000);
  std::mt19937_64 random(7);
  RequestBodyParser reused;
  for (int round = 0; round < 2; ++round) {
    std::shuffle(bodies.begin(), bodies.end(), random);
    for (const test::CaseBody& c : bodies) {
      RequestBodyParser fresh;
      ASSERT_EQ(summary(reused.parse(c.api, c.body)), summary(fresh.parse(c.api, c.body))) << c.id;
    }
  }
}

TEST(RequestBodyRobustness, LeavesNoPromptTextInItsScratch) {
  const std::string secret = "lighthouse-keeper";
  const std::string escaped = R"(lighthouse-keep\u0065r)";
  const auto body = [&](std::string_view text, std::string_view rest) {
    return R"({"model":"m","user":"u","messages":[{"role":"user","content":")" + std::string(text) +
           R"("},{"role":"user","content":")" + std::string(2'000, 'x') + R"(\n)" + std::string(text) +
           R"("}],"tools":[{"function":{"name":"f","parameters":{")" + std::string(text) + R"(":")" +
           std::string(text) + R"("}}}])" + std::string(rest) + "}";
  };
  RequestBodyParser parser;
  for (const std::string& text : {secret, escaped}) {
    for (const std::string_view rest : {R"()", R"(,"chat_template":"lighthouse-keep\u0065r")", R"(,"cache_salt":"")",
                                        R"(,"x":01)", R"(,"documents":[{"a":"lighthouse-keep\u0065r \ud800"}])"}) {
      (void)parser.parse(BodyApi::chat, body(text, rest));
      EXPECT_FALSE(RequestBodyParserPeer::holds(parser, secret)) << text << rest;
      EXPECT_FALSE(RequestBodyParserPeer::holds(parser, "lighthouse-")) << text << rest;
    }
  }
  (void)parser.parse(BodyApi::completions, R"({"prompt":["lighthouse\n-keeper","x lighthouse-keeper\n"],"model":"m"})");
  EXPECT_FALSE(RequestBodyParserPeer::holds(parser, "lighthouse"));
  // The search does find what is kept on purpose.
  (void)parser.parse(BodyApi::chat, R"({"messages":[{"role":"user"}],"user":"lighthouse-keeper"})");
  EXPECT_TRUE(RequestBodyParserPeer::holds(parser, secret));
}

TEST(RequestBodyRobustness, GivesBackWhatOneHugeBodyMadeItTake) {
  RequestBodyParser parser;
  const std::string huge =
      R"({"messages":[{"role":"user","content":"\n)" + std::string(std::size_t{20} << 20, 'a') + R"("}]})";
  ASSERT_TRUE(parser.parse(BodyApi::chat, huge).ok());
  EXPECT_LT(RequestBodyParserPeer::scratch_bytes(parser), std::size_t{1} << 20);
}

}  // namespace
}  // namespace warmroute
