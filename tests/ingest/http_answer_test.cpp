// One HTTP answer, however its bytes come.
#include "poll/http_answer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "poll/url.hpp"

namespace warmroute::poll {
namespace {

using State = HttpAnswer::State;

struct Read {
  State state = State::more;
  std::string body, fault;
  bool keeps_alive = false;
  friend bool operator==(const Read&, const Read&) = default;
};

// Feeds pieces of `piece` bytes (0: of random sizes), then the connection's end if the answer is not over.
Read read(std::string_view bytes, std::size_t piece, std::mt19937& random, std::size_t max = 1'000) {
  HttpAnswer answer(max);
  answer.begin();
  State state = State::more;
  while (!bytes.empty() && state == State::more) {
    const std::size_t size = std::min(bytes.size(), piece != 0 ? piece : 1 + random() % 7);
    state = answer.feed(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (state == State::more) state = answer.end();
  return {state, answer.body(), answer.fault(), answer.keeps_alive()};
}

struct Case {
  std::string_view bytes, body;
  bool keeps_alive;
};
const Case kGood[]{
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
    {"HTTP/1.1 200\r\ncontent-length:5\r\n\r\nhello", "hello", true},
    {"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "hello", true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true},
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "hello", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive, x\r\n\r\nhello", "hello", true},
    {"HTTP/1.1 200 OK\r\n\r\nhello", "hello", false},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=\"y\"\r\nlo\r\n0\r\n\r\n", "hello", true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n00A\r\nhello\r\nyou\r\n0\r\nTrailer: x\r\n\r\n",
     "hello\r\nyou", true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello",
     false},
    {"HTTP/1.1 103 Early\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
};

TEST(HttpAnswer, IsReadHoweverItsBytesAreSplit) {
  std::mt19937 random(1);
  for (const Case& c : kGood) {
    const Read expected{State::done, std::string(c.body), "", c.keeps_alive};
    EXPECT_EQ(read(c.bytes, c.bytes.size(), random), expected) << c.bytes;
    EXPECT_EQ(read(c.bytes, 1, random), expected) << c.bytes;
    for (int i = 0; i < 50; ++i) ASSERT_EQ(read(c.bytes, 0, random), expected) << c.bytes;
  }
}

TEST(HttpAnswer, IsNoWholePageWhenTheConnectionEndsBeforeItDoes) {
  std::mt19937 random(1);
  for (const Case& c : kGood) {
    if (!c.keeps_alive) continue;  // those may end with their connection
    for (std::size_t size = 0; size < c.bytes.size(); ++size) {
      const Read cut = read(c.bytes.substr(0, size), c.bytes.size(), random);
      ASSERT_EQ(cut.state, State::failed) << c.bytes.substr(0, size);
      ASSERT_NE(cut.fault.find("ended"), std::string::npos) << cut.fault;
    }
  }
}

TEST(HttpAnswer, SaysWhatIsWrong) {
  const std::string huge(70'000, 'x');
  const std::string long_page = "HTTP/1.1 200 OK\r\n\r\n" + std::string(1'001, 'x');
  const std::string long_head = "HTTP/1.1 200 OK\r\nX: " + huge;
  const std::string endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + [] {
    std::string out;
    for (int i = 0; i < 1'001; ++i) out += "1\r\nx\r\n";
    return out;
  }();
  const std::pair<std::string_view, std::string_view> cases[]{
      {"SSH-2.0-OpenSSH\r\n", "no HTTP/1.1: it begins with 'SSH-2"},
      {"\x16\x03\x01 whatever\r\n", "it begins with '???"},
      {"HTTP/2 200\r\n", "no HTTP/1.1"},
      {"HTTP/1.1 20 OK\r\n", "no HTTP/1.1"},
      {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nxyz", "HTTP status 503 Service Unavailable"},
      {"HTTP/1.1 301 Moved\r\nLocation: /m\r\n\r\n", "HTTP status 301"},
      {"HTTP/1.1 204 No Content\r\n\r\n", "HTTP status 204"},
      {"HTTP/1.1 101 Switching\r\n\r\n", "HTTP status 101"},
      {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "without ':'"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "bad Content-Length"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "bad Content-Length"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", "bad Content-Length"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "1001 bytes, more than 1000"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "unknown transfer coding: gzip, chunked"},
      {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", "compressed (gzip)"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "bad size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\n", "bad size"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "more than 1000 bytes"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n", "longer than it says"},
      {endless, "more than 1000 bytes"},
      {long_page, "more than 1000 bytes"},
      {long_head, "more than 64 KiB"},
  };
  std::mt19937 random(2);
  for (const auto& [bytes, word] : cases) {
    const Read whole = read(bytes, bytes.size(), random);
    EXPECT_EQ(whole.state, State::failed) << bytes.substr(0, 80);
    EXPECT_NE(whole.fault.find(word), std::string::npos) << whole.fault << " for " << bytes.substr(0, 80);
    EXPECT_FALSE(whole.keeps_alive);
    EXPECT_EQ(read(bytes, 1, random).state, State::failed) << bytes.substr(0, 80);
  }
}

TEST(HttpAnswer, StaysWithinItsBoundsWhateverComes) {
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(kGood[random() % std::size(kGood)].bytes);
    for (std::size_t edits = random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % (bytes.size() + 1);
      if (random() % 2 == 0 && at < bytes.size()) bytes[at] = static_cast<char>(random());
      else bytes.insert(at, random() % 2 == 0 ? "\r\n" : std::string(random() % 40, '7'));
    }
    const Read split = read(bytes, 0, random, 20);
    ASSERT_NE(split.state, State::more);
    ASSERT_LE(split.body.size(), 20u);
    ASSERT_EQ(split.fault.empty(), split.state == State::done);
    for (const char c : split.fault) ASSERT_TRUE(c >= 0x20 && c < 0x7F);
  }
}

TEST(HttpAnswer, BytesBehindItAreNoAnswerToTheNextRequest) {
  HttpAnswer answer(100);
  answer.begin();
  EXPECT_EQ(answer.feed("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1"), State::done);
  EXPECT_EQ(answer.body(), "ab");
  EXPECT_FALSE(answer.keeps_alive());
  answer.begin();
  EXPECT_EQ(answer.feed("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc"), State::done);
  EXPECT_EQ(answer.body(), "c");
  EXPECT_TRUE(answer.keeps_alive());
}

TEST(PollUrl, HasItsPartsOrSaysWhatIsWrong) {
  const auto parts = [](std::string_view text) {
    const auto url = parse_url(text);
    return url ? url->host + " " + url->port + " " + url->authority + " " + url->path : url.error().message;
  };
  EXPECT_EQ(parts("10.0.0.1:8000"), "10.0.0.1 8000 10.0.0.1:8000 /metrics");
  EXPECT_EQ(parts("http://gpu-0/prometheus/metrics"), "gpu-0 80 gpu-0 /prometheus/metrics");
  EXPECT_EQ(parts("http://[::1]:8002/m?x=1#y"), "::1 8002 [::1]:8002 /m?x=1");
  EXPECT_EQ(parts("gpu-0?x"), "gpu-0 80 gpu-0 /metrics?x");
  EXPECT_EQ(parts("[fe80::1]"), "fe80::1 80 [fe80::1] /metrics");
  const std::pair<std::string_view, std::string_view> bad[]{
      {"https://a", "only http://"}, {"", "no host"},         {"http://:80", "no host"},   {"a:0", "1 to 65535"},
      {"a:65536", "1 to 65535"},     {"a:80x", "1 to 65535"}, {"a:", "1 to 65535"},        {"::1", "in brackets"},
      {"[::1", "without ']'"},       {"u:p@a", "not sent"},   {"a/\r\nX: y", "printable"}, {"a b", "printable"},
  };
  for (const auto& [text, word] : bad) {
    EXPECT_EQ(parse_url(text).code(), Code::invalid_argument) << text;
    EXPECT_NE(parts(text).find(word), std::string::npos) << parts(text);
  }
}

}  // namespace
}  // namespace warmroute::poll
