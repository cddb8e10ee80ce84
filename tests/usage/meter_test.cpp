// What single answers say: reported bugs that the case file does not hold, hostile input, deployments' profiles.
#include "warmroute/usage/meter.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "usage/build_answers.hpp"

namespace warmroute {
namespace {

using test::aws_frame;
using test::chat;
using test::counts_of;
using test::event;

/// input/cached/write -> output(reasoning), "-" unknown; "..." when partial.
std::string read(std::string_view body, const MeterOptions& options = {}) {
  Meter meter;
  const std::string all = counts_of(read_usage(meter, body, options));
  Meter piecewise(options);  // never differs
  for (const char c : body) piecewise.feed({&c, 1});
  piecewise.finish();
  EXPECT_EQ(counts_of(piecewise.report()), all);
  return all;
}

UsageAnomalies anomalies_of(std::string_view body) {
  Meter meter;
  return read_usage(meter, body).anomalies;
}

TEST(Meter, ReadsOpenAiShapedBodies) {
  EXPECT_EQ(read(chat(R"("prompt_tokens":3300,"completion_tokens":77,"total_tokens":3377,"prompt_tokens_details":)"
                      R"({"cached_tokens":1024,"cache_write_tokens":2048})")),
            "3300/1024/2048 -> 77");
  EXPECT_EQ(
      read(chat(R"("prompt_tokens":1120,"completion_tokens":40,"total_tokens":1160,"num_cached_tokens":1088,)"
                R"("prompt_token_details":{"cached_tokens":1088},"prompt_tokens_details":{"cached_tokens":1088})")),
      "1120/1088/- -> 40");
  EXPECT_EQ(read(chat(R"("prompt_tokens":1012,"completion_tokens":150,"total_tokens":1443,"prompt_tokens_details":)"
                      R"({"cached_tokens":128},"completion_tokens_details":{"reasoning_tokens":281})")),
            "1012/128/- -> 431(281)");
  EXPECT_EQ(read(R"({"choices":[],"x_groq":{"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}})"),
            "5/-/- -> 2");
}

TEST(Meter, TakesBothDialectsInOneObjectForOne) {
  EXPECT_EQ(read(chat(R"("prompt_tokens":9000,"completion_tokens":100,"total_tokens":9100,"input_tokens":500,)"
                      R"("output_tokens":100,"cache_read_input_tokens":7000,"cache_creation_input_tokens":1500,)"
                      R"("prompt_tokens_details":{"cached_tokens":7000})")),
            "9000/7000/1500 -> 100");
  EXPECT_EQ(read(chat(R"("prompt_tokens":0,"completion_tokens":0,"input_tokens":10,"output_tokens":3,)"
                      R"("cache_read_input_tokens":90)")),
            "100/90/- -> 3");
}

TEST(Meter, DeepSeeksMissesArePlainInput) {
  Meter meter;
  const UsageReport report = read_usage(
      meter,
      chat(
          R"("prompt_tokens":900,"completion_tokens":120,"prompt_cache_hit_tokens":640,"prompt_cache_miss_tokens":260)"));
  EXPECT_EQ(report.usage.uncached_input_tokens(), UsageCount(260));
}

TEST(Meter, AddsCompactionsAndKeepsOtherModelsApart) {
  const std::string usage =
      R"("input_tokens":2000,"cache_creation_input_tokens":0,"cache_read_input_tokens":4000,"output_tokens":700,"iterations":[)"
      R"({"type":"compaction","input_tokens":16100,"output_tokens":300,"cache_read_input_tokens":0,"cache_creation_input_tokens":0},)"
      R"({"type":"message","input_tokens":2000,"output_tokens":700,"cache_read_input_tokens":4000},)"
      R"({"type":"advisor_message","model":"a","input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1},)"
      R"({"type":"advisor_message","model":"a","input_tokens":10,"cache_read_input_tokens":5,"output_tokens":1}])";
  const std::string body = R"({"type":"message","model":"c","stop_reason":"end_turn","usage":{)" + usage + "}}";
  EXPECT_EQ(read(body), "22100/4000/0 -> 1000");
  Meter meter;
  const UsageReport report = read_usage(meter, body);
  EXPECT_EQ(report.usage.context_input_tokens, UsageCount(6000));
  ASSERT_EQ(report.other_models.size(), 1u);
  EXPECT_EQ(report.other_models[0].model, "a");
  EXPECT_EQ(report.other_models[0].input_tokens, UsageCount(30));
  EXPECT_EQ(report.other_models[0].cached_input_tokens, UsageCount(10));
  EXPECT_EQ(report.other_models[0].output_tokens, UsageCount(2));
}

TEST(Meter, ReplacesTheSplitByLifetimeAsAWhole) {
  const std::string stream =
      event(
          R"({"type":"message_start","message":{"usage":{"input_tokens":3,"cache_creation_input_tokens":800,)"
          R"("cache_creation":{"ephemeral_5m_input_tokens":800,"ephemeral_1h_input_tokens":0},"output_tokens":1}}})") +
      event(R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":4,)"
            R"("cache_creation_input_tokens":800,"cache_creation":{"ephemeral_1h_input_tokens":800}}})");
  EXPECT_EQ(read(stream), "803/-/800 -> 4");
  Meter meter;
  const Usage usage = read_usage(meter, stream).usage;
  EXPECT_EQ(usage.cache_write_1h_tokens, UsageCount(800));
  EXPECT_EQ(usage.cache_write_5m_tokens.value_or(0), 0);
}

TEST(Meter, CutsASplitThatIsLargerThanTheWrites) {
  Meter meter;
  const UsageReport report = read_usage(
      meter, R"({"type":"message","usage":{"input_tokens":1,"cache_creation_input_tokens":100,"output_tokens":1,)"
             R"("cache_creation":{"ephemeral_5m_input_tokens":60,"ephemeral_1h_input_tokens":90}}})");
  EXPECT_EQ(report.usage.cache_write_5m_tokens, UsageCount(10));
  EXPECT_EQ(report.usage.cache_write_1h_tokens, UsageCount(90));
  EXPECT_TRUE(report.anomalies.has(UsageAnomaly::write_split_exceeds));
}

TEST(Meter, AnUnderReportedSideIsNotGuessed) {
  EXPECT_EQ(read(chat(R"("prompt_tokens":10,"total_tokens":10)")), "10/-/- -> 0") << "the total says it";
  Meter meter;
  const UsageReport report = read_usage(meter, chat(R"("prompt_tokens":10,"total_tokens":25)"));
  EXPECT_EQ(report.usage.output_tokens, std::nullopt);
  EXPECT_EQ(report.usage.unattributed_tokens, UsageCount(15));
  EXPECT_EQ(report.usage.total_tokens(), UsageCount(25));
}

TEST(Meter, ATotalOfAnEarlierEventDoesNotJudgeLaterSides) {
  const std::string stream =
      event(R"({"choices":[{"index":0}],"usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}})") +
      event(R"({"choices":[{"index":0,"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":9}})");
  EXPECT_EQ(read(stream), "10/-/- -> 9");
  EXPECT_TRUE(anomalies_of(stream).empty());
}

TEST(Meter, ZerosBeforeAnythingIsKnownAreUnknown) {
  const std::string zeros = event(
      R"({"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}})");
  EXPECT_EQ(read(zeros), "-/-/- -> - ...");
  EXPECT_EQ(read(zeros + event("[DONE]")), "-/-/- -> - ...");
}

TEST(Meter, ReadsWhatStreamsOfOtherShapesSay) {
  EXPECT_EQ(read(event(R"({"choices":[],"prompt_filter_results":[{"prompt_index":0}]})") +
                 event(R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]})") +
                 event(R"({"choices":[],"usage":{"prompt_tokens":61,"completion_tokens":9,"total_tokens":70}})")),
            "61/-/- -> 9");
  EXPECT_EQ(
      read(
          event(R"({"is_finished":false,"event_type":"text-generation","text":"hi"})") +
          event(
              R"({"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE","response":{"meta":)"
              R"({"billed_units":{"input_tokens":7,"output_tokens":2},"tokens":{"input_tokens":70,"output_tokens":2}}}})")),
      "7/-/- -> 2");
  EXPECT_EQ(read(event(R"({"content":"a","stop":false,"tokens_predicted":1,"tokens_evaluated":40})") +
                 event(R"({"content":"","stop":true,"tokens_predicted":8,"tokens_evaluated":40,"tokens_cached":47,)"
                       R"("timings":{"cache_n":32,"prompt_n":8,"predicted_n":8}})")),
            "40/32/- -> 8");
  EXPECT_EQ(
      read(event(
          R"({"type":"response.done","response":{"status":"completed","usage":{"total_tokens":30,"input_tokens":20,)"
          R"("output_tokens":10,"input_token_details":{"cached_tokens":5,"audio_tokens":15}}}})")),
      "20/5/- -> 10");
  EXPECT_EQ(read(R"({"id":"r","object":"response","status":"queued","usage":null})"), "-/-/- -> - ...");
}

TEST(Meter, ReadsBedrocksFramesAndTheAnswersInsideThem) {
  const std::string converse =
      aws_frame("contentBlockDelta", R"({"contentBlockIndex":0,"delta":{"text":"hi"},"p":"abc"})") +
      aws_frame("messageStop", R"({"stopReason":"end_turn"})") +
      aws_frame("metadata",
                R"({"usage":{"inputTokens":11,"outputTokens":29,"totalTokens":1064,"cacheReadInputTokens":1024,)"
                R"("cacheWriteInputTokens":0},"metrics":{"latencyMs":4},"p":"ab"})");
  EXPECT_EQ(read(converse), "1035/1024/0 -> 29");
  const std::string claude =
      aws_frame("chunk", test::as_bytes(R"({"type":"message_start","message":{"id":"m/1","usage":{"input_tokens":7,)"
                                        R"("cache_read_input_tokens":100,"output_tokens":1}}})")) +
      aws_frame("chunk",
                test::as_bytes(R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"?>~"}})")) +
      aws_frame("chunk",
                test::as_bytes(
                    R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}})")) +
      aws_frame("chunk",
                test::as_bytes(R"({"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":7,)"
                               R"("outputTokenCount":9,"cacheReadInputTokenCount":100}})"));
  EXPECT_EQ(read(claude), "107/100/- -> 9");
  const std::string other =
      aws_frame("chunk", test::as_bytes(R"({"generation":"x","stop_reason":null})")) +
      aws_frame("chunk", test::as_bytes(R"({"generation":"","stop_reason":"stop","amazon-bedrock-invocationMetrics":)"
                                        R"({"inputTokenCount":20,"outputTokenCount":5}})"));
  EXPECT_EQ(read(other), "20/-/- -> 5");
  Meter meter;
  EXPECT_EQ(read_usage(meter, claude).response_id, "m/1");
  EXPECT_TRUE(meter.first_token_end().has_value());
}

TEST(Meter, AFrameWithAWrongLengthEndsTheReading) {
  std::string frames = aws_frame("metadata", R"({"usage":{"inputTokens":1,"outputTokens":2}})");
  frames[3] = static_cast<char>(frames[3] + 1);
  EXPECT_EQ(read(frames), "-/-/- -> - ...");
  EXPECT_TRUE(anomalies_of(frames).has(UsageAnomaly::bad_crc));
}

TEST(Meter, ReadsCountsInEverySpellingAndNothingElse) {
  EXPECT_EQ(read(chat(R"("prompt_tokens":12.0,"completion_tokens":1.2e1)")), "12/-/- -> 12");
  EXPECT_EQ(read(chat(R"("prompt_tokens":12,"completion_tokens":1e400)")), "-/-/- -> - ...");
  for (const char* bad : {"-1", "1.5", "\"7\"", "true", "[7]", "{}", "123456789012345678901234567890", "01"}) {
    const std::string body = chat(R"("prompt_tokens":)" + std::string(bad) + R"(,"completion_tokens":3)");
    EXPECT_EQ(read(body), "-/-/- -> - ...") << bad;
    EXPECT_TRUE(anomalies_of(body).has(UsageAnomaly::invalid_count)) << bad;
  }
  // A detail that is no count is unknown; the rest stands.
  EXPECT_EQ(read(chat(R"("prompt_tokens":12,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":"x"})")),
            "12/-/- -> 3");
  for (const char* bad : {"5", "\"x\"", "[1]", "true"})
    EXPECT_TRUE(anomalies_of(R"({"choices":[],"usage":)" + std::string(bad) + "}").has(UsageAnomaly::invalid_count))
        << bad;
  EXPECT_TRUE(anomalies_of(R"({"metadata":{"usage":"mine"},"usage":{"input_tokens":1,"output_tokens":1}})").empty());
}

TEST(Meter, ALaterBadObjectDoesNotEraseAGoodOne) {
  EXPECT_EQ(
      read(
          event(
              R"({"choices":[{"index":0,"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}})") +
          event(R"({"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":3}})")),
      "5/-/- -> 2");
}

TEST(Meter, KnowsJsonAsWellAsAParser) {
  EXPECT_EQ(
      read("\xEF\xBB\xBF \r\n{ \"\\u0075sage\" : { \"prompt\\u005ftokens\" :\t4 , \"completion_tokens\" : 2 } } "),
      "4/-/- -> 2");
  EXPECT_EQ(
      read(R"({"usage":{"prompt_tokens":1,"completion_tokens":1},"usage":{"prompt_tokens":4,"completion_tokens":2}})"),
      "4/-/- -> 2")
      << "the last of equal names counts";
  EXPECT_EQ(read(R"({"a":[[{"usage":{"prompt_tokens":9}}],"\"usage\":{"],"message":{"content":"\\"},)"
                 R"("usage":{"prompt_tokens":4,"completion_tokens":2}})"),
            "4/-/- -> 2");
  for (const char* bad :
       {R"({"usage":{"prompt_tokens":4,}})", R"({"usage" {"prompt_tokens":4}})", R"({"usage":{"prompt_tokens":4]})",
        R"({usage:{"prompt_tokens":4,"completion_tokens":1}})", R"({"x":nope,"a":@})"}) {
    Meter meter;
    EXPECT_FALSE(read_usage(meter, event(bad) + event(bad)).complete) << bad;
    EXPECT_TRUE(read_usage(meter, event(bad)).anomalies.has(UsageAnomaly::malformed_event)) << bad;
    EXPECT_TRUE(read_usage(meter, bad).anomalies.has(UsageAnomaly::malformed_event)) << bad;
  }
}

TEST(Meter, OneMalformedEventDoesNotStopTheReading) {
  for (const char* bad : {"{\"choices\":[{\"delta\":{\"content\":\"x\"", "not json", "{} {}", "{}}\ndata: [DONE]",
                          "{}\ndata: [DONE]", "[1,2", "\"usage\"", "17"}) {
    const std::string stream =
        event(R"({"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]})") + event(bad) +
        event(R"({"choices":[],"usage":{"prompt_tokens":31,"completion_tokens":6}})") + event("[DONE]");
    EXPECT_EQ(read(stream), "31/-/- -> 6") << bad;
    EXPECT_TRUE(anomalies_of(stream).has(UsageAnomaly::malformed_event)) << bad;
  }
}

TEST(Meter, AnEventOfManyMegabytesIsReadInConstantMemory) {
  Meter meter;
  meter.feed("event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[\"");
  const std::string block(1 << 16, 'x');
  for (int i = 0; i < 512; ++i) meter.feed(block);
  meter.feed("\"],\"usage\":{\"input_tokens\":5,\"output_tokens\":6}}}\n\n");
  EXPECT_EQ(counts_of(meter.report()), "5/-/- -> 6");
  // Nesting without an end is refused, and the stream goes on.
  meter.reset();
  meter.feed("data: {\"x\":");
  for (int i = 0; i < 64; ++i) meter.feed(std::string(1 << 15, '['));
  meter.feed("\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":6}}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(counts_of(meter.report()), "5/-/- -> 6");
  EXPECT_TRUE(meter.report().anomalies.has(UsageAnomaly::too_large));
}

TEST(Meter, ABodyThatIsCutOffKeepsACountThatWasWhole) {
  const std::string body = chat(R"("prompt_tokens":12,"completion_tokens":345)") + "";
  const std::size_t end_of_usage = body.rfind('}');
  for (std::size_t cut = 0; cut < body.size(); ++cut)
    EXPECT_EQ(read(body.substr(0, cut)), cut >= end_of_usage ? "12/-/- -> 345 ..." : "-/-/- -> - ...") << cut;
}

TEST(Meter, ErrorsComeInManyForms) {
  for (const std::string& body :
       {std::string(R"({"error":{"message":"x"}})"), std::string(R"({"error":"x"})"),
        std::string(R"([{"error":{"code":429}}])"), std::string(R"({"object":"error","message":"x","code":400})"),
        event(R"({"error":{"message":"x"}})"), event(R"({"type":"error","code":"server_error","message":"x"})"),
        aws_frame("", R"({"message":"slow"})")}) {
    Meter meter;
    EXPECT_TRUE(read_usage(meter, body).error) << body;
    EXPECT_FALSE(read_usage(meter, body).complete) << body;
  }
  Meter meter;
  EXPECT_FALSE(read_usage(meter, R"({"error":null,"usage":{"input_tokens":1,"output_tokens":1}})").error);
  for (const char* start : {"\x1F\x8B\x08", "\x28\xB5\x2F\xFD"})
    EXPECT_TRUE(anomalies_of(start).has(UsageAnomaly::compressed));
  EXPECT_EQ(read(""), "-/-/- -> - ...");
  EXPECT_EQ(read("<html>502</html>\n\n"), "-/-/- -> - ...");
}

TEST(Meter, ManyChoicesAreCompleteWhenAllAre) {
  std::string stream;
  for (int i = 0; i < 200; ++i)
    stream += event(R"({"choices":[{"index":)" + std::to_string(i) + R"(,"text":"a","finish_reason":null}]})");
  stream += event(R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":200}})");
  for (int i = 0; i < 199; ++i)
    stream += event(R"({"choices":[{"index":)" + std::to_string(i) + R"(,"text":"","finish_reason":"stop"}]})");
  EXPECT_EQ(read(stream), "3/-/- -> 200 ...");
  stream += event(R"({"choices":[{"index":199,"text":"","finish_reason":"stop"}]})");
  EXPECT_EQ(read(stream), "3/-/- -> 200");
}

TEST(Meter, BelievesADeploymentsProfile) {
  MeterOptions options;
  options.profile.input_includes_cache = Belief::yes;
  const std::string message =
      R"({"type":"message","usage":{"input_tokens":100,"cache_read_input_tokens":80,"output_tokens":5}})";
  EXPECT_EQ(read(message), "180/80/- -> 5");
  EXPECT_EQ(read(message, options), "100/80/- -> 5");
  options.profile.input_includes_cache = Belief::no;
  EXPECT_EQ(
      read(chat(R"("prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":80})"), options),
      "180/80/- -> 5");
  options = {};
  options.profile.output_includes_reasoning = Belief::no;
  const std::string thinking =
      chat(R"("prompt_tokens":10,"completion_tokens":50,"completion_tokens_details":{"reasoning_tokens":20})");
  EXPECT_EQ(read(thinking), "10/-/- -> 50(20)");
  EXPECT_EQ(read(thinking, options), "10/-/- -> 70(20)");
  options = {};
  options.profile.ignore_total = true;
  EXPECT_EQ(read(chat(R"("prompt_tokens":10,"completion_tokens":5,"total_tokens":99)"), options), "10/-/- -> 5");
  options = {};
  options.api = AnswerApi::embeddings;
  EXPECT_EQ(read(R"({"usage":{"prompt_tokens":7}})", options), "7/-/- -> 0");
  options.api = AnswerApi::responses;
  EXPECT_EQ(read(R"({"usage":{"input_tokens":100,"cache_read_input_tokens":80,"output_tokens":5}})", options),
            "100/80/- -> 5");
}

TEST(Meter, TheServedTierWinsOverTheRequestedOne) {
  MeterOptions options;
  options.requested_tier = "priority";
  const std::string served = R"({"service_tier":"default","usage":{"prompt_tokens":1,"completion_tokens":1}})";
  Meter meter;
  EXPECT_EQ(read_usage(meter, served, options).service_tier, "default");
  EXPECT_EQ(read_usage(meter, chat(R"("prompt_tokens":1,"completion_tokens":1)"), options).service_tier, "priority");
  options.profile.trust_requested_tier = true;
  EXPECT_EQ(read_usage(meter, served, options).service_tier, "priority");
}

TEST(Meter, SeesTheFirstTokenOfEveryApi) {
  const std::string role =
      event(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[]}}]})") +
      event(R"({"type":"message_start","message":{"content":[]}})") + ": ping\r\n\r\n";
  for (const std::string first :
       {R"({"choices":[{"delta":{"content":"a"}}]})", R"({"choices":[{"delta":{"reasoning_content":"a"}}]})",
        R"({"choices":[{"delta":{"tool_calls":[{}]}}]})", R"({"choices":[{"delta":{"content":[{"type":"text"}]}}]})",
        R"({"choices":[{"text":"a"}]})", R"({"type":"response.output_text.delta","delta":"a"})",
        R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}})",
        R"({"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}})",
        R"({"candidates":[{"content":{"parts":[{"text":"a"}]}}]})",
        R"({"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]})",
        R"({"type":"content-delta","delta":{"message":{"content":{"text":"hi"}}}})",
        R"({"content":"a","stop":false})"}) {
    const std::string stream = role + event(first) + event(first);
    for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
      Meter meter;
      std::size_t seen = 0;
      int times = 0;
      for (std::size_t at = 0; at < stream.size(); at += step) {
        if (!meter.feed(std::string_view(stream).substr(at, step))) continue;
        times += 1;
        seen = std::min(stream.size(), at + step);
      }
      EXPECT_EQ(times, 1) << first;
      EXPECT_EQ(meter.first_token_end(), role.size() + event(first).size()) << first;
      EXPECT_GE(seen, *meter.first_token_end());
      EXPECT_LT(seen, *meter.first_token_end() + step);
    }
  }
}

TEST(Meter, AFirstTokenInAnEventWithoutItsEndIsKnownAtTheEnd) {
  const std::string stream = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\nid: 7";
  for (const std::size_t step : {std::size_t{1}, std::size_t{5}, std::size_t{500}}) {
    Meter meter;
    for (std::size_t at = 0; at < stream.size(); at += step)
      EXPECT_FALSE(meter.feed(std::string_view(stream).substr(at, step)));
    EXPECT_EQ(meter.first_token_end(), std::nullopt);
    meter.finish();
    EXPECT_EQ(meter.first_token_end(), stream.size());
  }
}

TEST(Meter, CountsTheEventsThatCarryOutput) {
  std::string stream = event(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})");
  for (int i = 0; i < 20; ++i)
    stream += event(R"({"choices":[{"index":0,"delta":{"content":"w)" + std::to_string(i) + R"("}}]})");
  stream += event(R"({"choices":[{"index":0,"delta":{"content":""}}]})");
  Meter meter;
  EXPECT_EQ(read_usage(meter, stream).output_events, 20);
}

}  // namespace
}  // namespace warmroute
