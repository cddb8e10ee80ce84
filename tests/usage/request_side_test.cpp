// What is done to requests and to the way out, and what is assumed before an answer says better.
#include "warmroute/usage/request_side.hpp"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <random>
#include <string>

#include "usage/build_answers.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute {
namespace {

using test::event;

std::string asked(std::string_view body) {
  const auto ask = ask_for_usage(body);
  if (!ask) return "error";
  return spliced(body, ask->splice);
}

TEST(AskForUsage, ChangesStreamsThatDoNotAsk) {
  EXPECT_EQ(asked(R"( {"stream":true})"), R"( {"stream_options":{"include_usage":true},"stream":true})");
  EXPECT_EQ(asked(R"({"stream" : true , "stream_options":null})"),
            R"({"stream" : true , "stream_options":{"include_usage":true}})");
  EXPECT_EQ(asked(R"({"stream_options":{},"stream":true})"),
            R"({"stream_options":{"include_usage":true},"stream":true})");
  EXPECT_EQ(asked(R"({"stream_options":{ "x":[1,"}"]},"stream":true})"),
            R"({"stream_options":{"include_usage":true, "x":[1,"}"]},"stream":true})");
  EXPECT_EQ(asked(R"({"stream_options":{"include_usage":false,"x":1},"stream":true})"),
            R"({"stream_options":{"include_usage":true,"x":1},"stream":true})");
  EXPECT_EQ(asked(R"({"stream_options":{"include_usage":true},"stream_options":{"include_usage":null},"stream":true})"),
            R"({"stream_options":{"include_usage":true},"stream_options":{"include_usage":true},"stream":true})")
      << "of equal names the last counts";
}

TEST(AskForUsage, LeavesTheRestAlone) {
  for (const char* body : {R"({"stream":false})", R"({})", R"({"messages":[{"stream":true}]})", R"({"stream":"true"})",
                           R"({"stream":true,"stream":false})"}) {
    const auto ask = ask_for_usage(body);
    ASSERT_TRUE(ask) << body;
    EXPECT_FALSE(ask->stream) << body;
    EXPECT_TRUE(ask->splice.empty()) << body;
  }
  const auto ask = ask_for_usage(R"({"stre\u0061m":true,"stream_options":{"include_usage":true}})");
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->asked && ask->stream && ask->splice.empty());
  for (const char* bad : {"", "[]", "{", R"({"stream":true)", R"({"stream":true} x)", R"({"stream")", R"({"a":})",
                          R"({"a":[})", R"({"a":"x)", R"({"a":1 "b":2})", R"({"a":1,})"})
    EXPECT_EQ(asked(bad), "error") << bad;
}

TEST(AskForUsage, WhatItMakesIsJsonThatAsks) {
  std::mt19937_64 random(3);
  const char* const members[] = {R"("stream":true)",
                                 R"("stream":false)",
                                 R"("stream_options":null)",
                                 R"("stream_options":{})",
                                 R"("stream_options":{"include_usage":true})",
                                 R"("stream_options":{"include_usage":0,"y":{}})",
                                 R"("messages":[{"content":"\"stream_options\":{"}])",
                                 R"("a":{"stream":true,"b":[[]]})",
                                 R"("n":1.5e3)"};
  simdjson::dom::parser parser;
  for (int round = 0; round < 3'000; ++round) {
    std::string body = "{";
    for (std::size_t i = 0, n = random() % 6; i < n; ++i)
      body += (i == 0 ? "" : random() % 2 == 0 ? ", " : ",") + std::string(members[random() % std::size(members)]);
    body += "}";
    const auto ask = ask_for_usage(body);
    ASSERT_TRUE(ask) << body;
    const std::string made = spliced(body, ask->splice);
    simdjson::dom::object object;
    ASSERT_EQ(parser.parse(made).get(object), simdjson::SUCCESS) << made;
    bool stream = false;
    bool includes = false;
    for (const auto member : object) {
      if (member.key == "stream") stream = simdjson::to_string(member.value) == "true";
      if (member.key != "stream_options") continue;
      simdjson::dom::object options;
      includes = false;
      if (member.value.get(options) != simdjson::SUCCESS) continue;
      for (const auto option : options)
        includes = option.key == "include_usage" ? simdjson::to_string(option.value) == "true" : includes;
    }
    ASSERT_EQ(stream, ask->stream) << body;
    ASSERT_TRUE(includes || !stream) << made;
    ASSERT_TRUE(stream || made == body) << made;
  }
}

// ---------------------------------------------------------------- the way out

std::string filtered(std::string_view stream, std::size_t step, bool* removed = nullptr) {
  UsageChunkFilter filter;
  std::string out;
  for (std::size_t at = 0; at < stream.size(); at += step) filter.feed(stream.substr(at, step), out);
  filter.finish(out);
  if (removed != nullptr) *removed = filter.removed();
  return out;
}

TEST(UsageChunkFilter, TakesOutTheOneChunkHoweverItIsCut) {
  const std::string first = event(R"({"choices":[],"prompt_filter_results":[{}]})") + ": ping\n\n" +
                            event(R"({"choices":[{"index":0,"delta":{"content":"\"usage\":{"}}],"usage":null})") +
                            event(R"({"choices":[{"index":0,"finish_reason":"stop"}],"usage":{"prompt_tokens":1}})") +
                            "event: x\ndata: {\"choices\":[]}\n\n";
  const std::string chunk = R"({"id":"c","choices":[],"usage":{"prompt_tokens":31,"completion_tokens":6}})";
  for (const std::string end : {"\n\n", "\r\n\r\n", "\r\r"}) {
    std::string before = first;
    std::string stream = before + "event: y" + end.substr(0, end.size() / 2) + "data: " + chunk + end + event("[DONE]");
    for (std::size_t step = 1; step <= stream.size(); ++step) {
      bool removed = false;
      ASSERT_EQ(filtered(stream, step, &removed), before + event("[DONE]")) << "step " << step << " end " << end.size();
      ASSERT_TRUE(removed);
    }
    for (std::size_t cut = 1; cut < stream.size(); ++cut) {
      UsageChunkFilter filter;
      std::string out;
      filter.feed(std::string_view(stream).substr(0, cut), out);
      filter.feed(std::string_view(stream).substr(cut), out);
      filter.finish(out);
      ASSERT_EQ(out, before + event("[DONE]")) << cut;
    }
  }
  EXPECT_EQ(filtered(first + "data: " + chunk, 5), first) << "also without its end";
}

TEST(UsageChunkFilter, PassesEverythingElse) {
  const std::string large = event(R"({"choices":[],"x":")" + std::string(40'000, 'x') + R"(","usage":{}})");
  for (const std::string& stream :
       {std::string(R"({"error":{"message":"\n\n"}})"), std::string("\n\n[{}]"), large,
        std::string("data: {\"choices\":[],\"usage\":{"), event(R"({"choices":[],"usage":{}} trailing)"),
        std::string("data\n\ndata:\n\n: x\r\r\n\nfoo: bar\nid: 1\n\n")}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{3}, std::size_t{100'000}}) {
      bool removed = true;
      ASSERT_EQ(filtered(stream, step, &removed), stream);
      ASSERT_FALSE(removed);
    }
  }
}

TEST(UsageChunkFilter, DelaysNoEventThatIsOver) {
  UsageChunkFilter filter;
  std::string out;
  const std::string content = event(R"({"choices":[{"index":0,"delta":{"content":"a"}}]})");
  filter.feed(content, out);
  EXPECT_EQ(out, content);
  out.clear();
  filter.feed(": keep-alive\n\n", out);
  EXPECT_EQ(out, ": keep-alive\n\n");
  out.clear();
  const std::string part = content.substr(0, content.size() - 4);
  filter.feed(part, out);
  EXPECT_EQ(out, part) << "it has a choice already: it cannot be the chunk";
}

// ---------------------------------------------------------------- estimates

TEST(TokenEstimator, LearnsTheBytesOfAToken) {
  TokenEstimator estimator;
  EXPECT_EQ(estimator.bytes_per_token(), 3);
  EXPECT_EQ(estimator.estimate(3'000).input_tokens, 1'100);
  for (int i = 0; i < 200; ++i) estimator.learn(4'200, 1'000);
  EXPECT_NEAR(estimator.bytes_per_token(), 4.2, 0.01);
  for (int i = 0; i < 400; ++i) estimator.learn(1'900, 1'000);
  EXPECT_NEAR(estimator.bytes_per_token(), 1.9, 0.01) << "and forgets";
  estimator.learn(1'000'000, 40);
  estimator.learn(4'200, -1);
  estimator.learn(4'200, 5);
  estimator.learn(-1, 100);
  EXPECT_NEAR(estimator.bytes_per_token(), 1.9, 0.01) << "nonsense teaches nothing";
  estimator.set_bytes_per_token(5);
  EXPECT_EQ(estimator.bytes_per_token(), 5);
  estimator.set_bytes_per_token(0);
  EXPECT_EQ(estimator.bytes_per_token(), 5);
}

TEST(TokenEstimator, ReservesWithinItsLimits) {
  const TokenEstimator estimator;
  EstimateOptions options;
  options.max_output_tokens = 500;
  EXPECT_EQ(estimator.estimate(100, 7, 50, options).total(), 57);
  EXPECT_EQ(estimator.estimate(100, 7, 5'000, options).output_tokens, 500);
  EXPECT_EQ(estimator.estimate(100, 7, std::nullopt, options).output_tokens, 500);
  EXPECT_EQ(estimator.estimate(-5, std::nullopt, -7, options).total(), 0);
  EXPECT_GT(estimator.estimate(INT64_MAX).input_tokens, 0);
}

TEST(EstimateMissing, FillsOnlyWhatIsUnknown) {
  Meter meter;
  const TokenEstimate estimate{100, 400};
  UsageReport whole = read_usage(meter, test::chat(R"("prompt_tokens":1,"completion_tokens":1)"));
  EXPECT_FALSE(estimate_missing(whole, estimate));
  UsageReport none = read_usage(meter, "");
  EXPECT_TRUE(estimate_missing(none, estimate));
  EXPECT_EQ(none.usage.total_tokens(), UsageCount(500));
  EXPECT_EQ(none.source, UsageSource::estimate);
  std::string stream = event(R"({"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}})");
  for (int i = 0; i < 5; ++i) stream += event(R"({"type":"content_block_delta","delta":{"text":"a"}})");
  UsageReport cut = read_usage(meter, stream);
  EXPECT_TRUE(estimate_missing(cut, estimate));
  EXPECT_EQ(cut.usage.input_tokens, UsageCount(7));
  EXPECT_EQ(cut.usage.output_tokens, UsageCount(5)) << "what it said at the start was a placeholder";
}

TEST(HangupDrain, ReadsOnWithinItsLimits) {
  HangupPolicy policy;
  EXPECT_FALSE(HangupDrain(policy, seconds(1)).go_on(0, seconds(1), false)) << "cut is the default";
  policy.mode = HangupMode::drain;
  policy.max_drain = seconds(10);
  policy.max_drain_bytes = 100;
  HangupDrain drain(policy, seconds(1));
  EXPECT_TRUE(drain.go_on(60, seconds(2), false));
  EXPECT_FALSE(drain.go_on(10, seconds(2), true)) << "the counts are there";
  EXPECT_TRUE(drain.go_on(30, seconds(10), false));
  EXPECT_FALSE(drain.go_on(0, seconds(11), false));
  EXPECT_FALSE(drain.go_on(1, seconds(2), false));
  EXPECT_EQ(drain.deadline(), seconds(11));
}

TEST(RequestedTier, IsFoundAtTheOutermostLevelOnly) {
  EXPECT_EQ(requested_tier(R"({"model":"m","service_tier":"flex","messages":[]})"), "flex");
  EXPECT_EQ(requested_tier("\xEF\xBB\xBF { \"a\" : [1, {\"service_tier\":\"no\"}] , \"service_tier\" : \"priority\" }"),
            "priority");
  EXPECT_EQ(requested_tier(R"({"messages":[{"content":"\"service_tier\":\"flex\""}],"metadata":{"service_tier":"x"}})"),
            "");
  EXPECT_EQ(requested_tier(R"({"service_tier":"auto","service_tier":"default"})"), "default");
  EXPECT_EQ(requested_tier(R"({"serviceTier":{"type":"priority"},"messages":[]})"), "priority");
  EXPECT_EQ(requested_tier(R"({"serviceTier":{},"x":{"type":"no"}})"), "");
  for (const char* none : {R"({"service_tier":null})", R"({"service_tier":7})", R"({"service_tier":""})",
                           R"({"service_tier":"a\nb"})", R"({"service_tier":"flex")", R"(["service_tier"])", ""})
    EXPECT_EQ(requested_tier(none), "") << none;
}

}  // namespace
}  // namespace warmroute
