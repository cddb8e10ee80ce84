// What engine, gateway and replay share: base URLs, JSON strings, event streams, the toy tokenizer.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/text.hpp"
#include "common/toy_tokenizer.hpp"

namespace warmroute::examples {
namespace {

TEST(BaseUrl, ReadsHostPortAndPath) {
  const auto full = parse_base_url("http://127.0.0.1:8080/api/");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->host, "127.0.0.1");
  EXPECT_EQ(full->port, 8080);
  EXPECT_EQ(full->path, "/api");
  const auto bare = parse_base_url("engine-3:9000");
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare->host, "engine-3");
  EXPECT_EQ(bare->port, 9000);
  const auto v6 = parse_base_url("http://[::1]:81");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 81);
  EXPECT_EQ(parse_base_url("localhost")->port, 80);
  for (const char* bad : {"https://x", "", "http://", "x:0", "x:65536", "x:", "x:8a", "[::1]8"}) {
    EXPECT_EQ(parse_base_url(bad).code(), Code::invalid_value) << bad;
  }
}

TEST(Json, EscapesWhatAStringMayNotHold) {
  EXPECT_EQ(json_quoted("a\"b\\c\n\x01z\xc3\xa4"), "\"a\\\"b\\\\c\\u000a\\u0001z\xc3\xa4\"");
}

TEST(SseSplitter, FindsDataLinesHoweverTheyAreCut) {
  const std::string stream = "data: one\n\n: comment\nevent: x\r\ndata:two\r\n\r\ndata: \ndata: [DONE]\n\ndata: cut";
  const std::vector<std::string> expected{"one", "two", "", "[DONE]"};
  for (std::size_t chunk = 1; chunk <= stream.size(); ++chunk) {
    SseSplitter splitter;
    std::vector<std::string> seen;
    for (std::size_t at = 0; at < stream.size(); at += chunk) {
      splitter.feed(std::string_view(stream).substr(at, chunk),
                    [&](std::string_view data) { seen.emplace_back(data); });
    }
    ASSERT_EQ(seen, expected) << "chunks of " << chunk;
  }
}

TEST(ToyTokenizer, MakesOneTokenOfFourBytesAndOneOfTheRest) {
  EXPECT_TRUE(toy_tokenize("").empty());
  const auto tokens = toy_tokenize("abcdefghi");
  ASSERT_EQ(tokens.size(), 3u);
  for (const auto token : tokens) EXPECT_LT(token, kToyVocabulary);
  EXPECT_EQ(tokens[0], toy_tokenize("abcd")[0]);
  EXPECT_EQ(tokens[1], toy_tokenize("abcdefgh-")[1]);
  EXPECT_NE(toy_token("i"), toy_token(std::string_view("i\0", 2)));
  EXPECT_NE(tokens[0], tokens[1]);
}

}  // namespace
}  // namespace warmroute::examples
