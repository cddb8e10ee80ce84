// The published forms of traces, each with its quirks, on vectors made by hand; and slices of the real ones.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "support/scratch.hpp"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/trace.hpp"
#include "warmroute/trace/trace_writer.hpp"

namespace warmroute::trace::forms_test {
namespace {

using Records = std::vector<TraceRecord>;
using Ids = std::vector<std::uint64_t>;

TraceOptions in_form(TraceFormat format) {
  TraceOptions options;
  options.format = format;
  return options;
}

Result<Records> all_of(TraceReader reader) {
  Records records;
  while (true) {
    auto record = reader.next();
    if (!record) return record.error();
    if (!record->has_value()) return records;
    records.push_back(std::move(**record));
  }
}

Result<Records> read_text(std::string_view text, TraceFormat format = TraceFormat::automatic) {
  return all_of(TraceReader::from_text(text, {}, in_form(format), "t"));
}

Error error_of(std::string_view text, TraceFormat format = TraceFormat::automatic) {
  auto read = read_text(text, format);
  return read ? Error{Code::ok, {}, kNoOffset} : read.error();
}

std::string file_text(const std::string& name) {
  std::ifstream file(std::string(WARMROUTE_TEST_DATA "/traces/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t common_blocks(const TraceRecord& a, const TraceRecord& b) {
  std::size_t n = 0;
  while (n < a.blocks.size() && n < b.blocks.size() && a.blocks[n] == b.blocks[n]) ++n;
  return n;
}

TEST(TraceForms, AreToldByTheFirstLine) {
  const struct {
    const char* line;
    std::optional<TraceFormat> format;
  } cases[] = {
      {R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[0]})", TraceFormat::mooncake},
      {R"({"timestamp":0,"input_length":1,"output_length":1})", TraceFormat::mooncake},
      {R"({"chat_id":1,"parent_chat_id":-1,"timestamp":0.5,"input_length":1,"output_length":1})", TraceFormat::qwen},
      {R"({"timestamp":"27","input_length":1,"output_length":1,"hash_ids":{"history":[1]}})", TraceFormat::ragpulse},
      {R"({"id":"a","block_size":64,"requests":[]})", TraceFormat::weka},
      {"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", TraceFormat::burstgpt},
      {"\xEF\xBB\xBFTIMESTAMP,ContextTokens,GeneratedTokens\r", TraceFormat::azure},
      {"TIMESTAMP,NumImages,ContextTokens,GeneratedTokens", TraceFormat::azure},
      {"2023-11-16 18:17:03.9799600,4808,10", std::nullopt},
      {R"({"a":1})", std::nullopt},
      {"{", std::nullopt},
      {"", std::nullopt},
      {"\"", std::nullopt},
  };
  for (const auto& c : cases) EXPECT_EQ(detect_trace_format(c.line), c.format) << c.line;
  for (std::size_t i = 0; i < kTraceFormatNames.size(); ++i)
    EXPECT_EQ(trace_format_from_name(kTraceFormatNames[i]), static_cast<TraceFormat>(i));
  EXPECT_EQ(trace_format_from_name("csv"), std::nullopt);
}

TEST(TraceForms, OneThatIsUnknownEndsTheReadingAndSaysWhatThereIs) {
  auto reader = TraceReader::from_text("\nhello\nworld\n");
  const auto first = reader.next();
  EXPECT_EQ(first.code(), Code::unsupported);
  EXPECT_TRUE(first.error().message.starts_with("trace:2: the first line is of no known form (mooncake, qwen,"))
      << first.error().message;
  EXPECT_NE(first.error().message.find("--format"), std::string::npos);
  const auto second = reader.next();
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->has_value());
}

TEST(Qwen, ReadsSecondsBlocksOfSixteenAndConversations) {
  const auto records = read_text(
      R"({"chat_id":55,"parent_chat_id":-1,"timestamp":0.0,"input_length":40,"output_length":132,"type":"text","turn":1,"hash_ids":[7,8,9]})"
      "\n"
      R"({"chat_id":159,"parent_chat_id":55,"timestamp":61.114,"input_length":49,"output_length":0,"type":"search","turn":2,"hash_ids":[7,8,10,9]})"
      "\n"
      R"({"chat_id":160,"parent_chat_id":159,"timestamp":62,"input_length":16,"output_length":1,"type":"text","turn":3,"hash_ids":[8,7]})"
      "\n"
      R"({"chat_id":200,"parent_chat_id":199,"timestamp":63,"input_length":16,"output_length":1,"type":"text","turn":3,"hash_ids":[8]})"
      "\n");
  ASSERT_TRUE(records.ok()) << records.error().message;
  const Records& r = *records;
  ASSERT_EQ(r.size(), 4u);
  EXPECT_EQ(r[1].arrival_us, 61'114'000);
  EXPECT_EQ(r[0].block_tokens, 16);
  EXPECT_EQ(r[0].request_class, "text");
  EXPECT_EQ(common_blocks(r[0], r[1]), 2u);
  EXPECT_NE(r[0].blocks[2], r[1].blocks[3]);  // the same block 9 behind others is not the same prefix
  EXPECT_EQ(r[2].blocks.size(), 1u);          // more ids than 16 tokens have blocks
  EXPECT_EQ(common_blocks(r[1], r[2]), 0u);
  EXPECT_EQ(r[0].session, r[1].session);
  EXPECT_EQ(r[0].session, r[2].session);  // by the root, over two parents
  EXPECT_NE(r[0].session, r[3].session);
  EXPECT_NE(r[3].session, 0u);
}

TEST(Qwen, RemembersAsManyChatsAsItMay) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text += R"({"chat_id":)" + std::to_string(i) + R"(,"parent_chat_id":)" + std::to_string(i == 99 ? 98 : -1) +
            R"(,"timestamp":1,"input_length":1,"output_length":1})" + "\n";
  }
  text += R"({"chat_id":200,"parent_chat_id":99,"timestamp":1,"input_length":1,"output_length":1})"
          "\n";
  TraceLimits limits;
  limits.max_chats = 8;
  const auto records = all_of(TraceReader::from_text(text, limits));
  ASSERT_TRUE(records.ok());
  EXPECT_EQ((*records)[98].session, (*records)[99].session);
  EXPECT_EQ((*records)[98].session, (*records)[100].session);
}

TEST(BurstGpt, ReadsBothHeadersAndFailures) {
  const auto two = read_text(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n"
      "45,GPT-4,1087,0,1087,API log\n");
  ASSERT_TRUE(two.ok()) << two.error().message;
  ASSERT_EQ(two->size(), 2u);
  EXPECT_EQ((*two)[0].arrival_us, 5'000'000);
  EXPECT_EQ((*two)[0].model, "ChatGPT");
  EXPECT_EQ((*two)[0].request_class, "Conversation log");
  EXPECT_EQ((*two)[0].session, 0u);
  EXPECT_FALSE((*two)[0].cancelled);
  EXPECT_TRUE((*two)[1].cancelled);  // no answer: it failed
  const auto three = read_text(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n"
      "19440110.0,1722ac82-0a46,43,GPT-4,906,446,1352,Conversation log\r\n"
      "19440161.25,,,\"Chat\"\"G,PT\",36,29,65,Conversation log");
  ASSERT_TRUE(three.ok()) << three.error().message;
  EXPECT_EQ((*three)[0].arrival_us, 19'440'110'000'000);
  EXPECT_NE((*three)[0].session, 0u);
  EXPECT_EQ((*three)[1].session, 0u);
  EXPECT_EQ((*three)[1].model, "Chat\"G,PT");
  EXPECT_EQ((*three)[1].arrival_us, 19'440'161'250'000);
}

TEST(Azure, ReadsWallClockTimesOfAllYears) {
  const auto records = read_text(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2024-02-28 23:59:59.9799600,4808,10\r\n"
      "2024-02-29 00:00:00.0000019,3180,8\r\n"
      "2024-03-01 00:00:00+00:00,1,2\r\n"
      "2024-03-01T02:00:00.5+02:00,3,4\r\n"
      "2024-02-28 23:59:58Z,5,6");
  ASSERT_TRUE(records.ok()) << records.error().message;
  ASSERT_EQ(records->size(), 5u);
  EXPECT_EQ((*records)[0].arrival_us, 0);
  EXPECT_EQ((*records)[0].input_tokens, 4'808);
  EXPECT_EQ((*records)[1].arrival_us, 20'041);  // tenths of microseconds are cut
  EXPECT_EQ((*records)[2].arrival_us, 86'400'000'000 + 20'040);
  EXPECT_EQ((*records)[3].arrival_us, 86'400'000'000 + 520'040);
  EXPECT_EQ((*records)[4].arrival_us, -1'979'960);
  EXPECT_TRUE((*records)[4].blocks.empty());
  const auto images = read_text("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15 00:00:00.5,2,700,3\n");
  ASSERT_TRUE(images.ok());
  EXPECT_EQ((*images)[0].input_tokens, 700);
}

TEST(Azure, StartsAtItsEarliestRecordWhenReadAsAWhole) {
  const std::string path = test::scratch_path("azure.csv");
  std::ofstream(path) << "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01 00:00:05,1,1\n2024-01-01 00:00:03,2,2\n";
  const auto records = read_trace(path);
  ASSERT_TRUE(records.ok());
  EXPECT_EQ((*records)[0].arrival_us, 2'000'000);
  EXPECT_EQ((*records)[1].arrival_us, 0);
  EXPECT_EQ(*detect_trace_format_of_file(path), TraceFormat::azure);
  std::remove(path.c_str());
}

TEST(RagPulse, CutsPiecesIntoBlocksThatStandForAllBefore) {
  const auto records = read_text(
      R"({"timestamp":"27","input_length":96,"output_length":5,"hash_ids":{"sys_prompt":[1,2],"passages_ids":[3],"user_input":[4]},"session_id":"x"})"
      "\n"
      R"({"timestamp":"20.5","input_length":96,"output_length":5,"hash_ids":{"sys_prompt":[1,2],"passages_ids":[9],"user_input":[4]},"session_id":"x"})"
      "\n");
  ASSERT_TRUE(records.ok()) << records.error().message;
  const Records& r = *records;
  EXPECT_EQ(r[0].arrival_us, 27'000'000);
  EXPECT_EQ(r[1].arrival_us, 20'500'000);  // not in order: as it is
  EXPECT_EQ(r[0].session, r[1].session);
  EXPECT_EQ(r[0].blocks.size(), 6u);         // four pieces of 24 tokens
  EXPECT_EQ(common_blocks(r[0], r[1]), 3u);  // two pieces: 48 tokens
  EXPECT_NE(r[0].blocks[5], r[1].blocks[5]);
}

TEST(RagPulse, KnowsTheLengthsThatLieBesideTheTrace) {
  const auto records = read_trace(WARMROUTE_TEST_DATA "/traces/ragpulse/0_trace.jsonl");
  ASSERT_TRUE(records.ok()) << records.error().message;
  ASSERT_EQ(records->size(), 80u);
  // Both begin with the pieces 8302 (512 tokens) and 14332, then 15199 and 15198 differ.
  EXPECT_GE(common_blocks((*records)[0], (*records)[1]), 512u / 16);
  EXPECT_LT(common_blocks((*records)[0], (*records)[1]), (*records)[0].blocks.size());
  EXPECT_EQ(common_blocks((*records)[0], (*records)[4]), 0u);
  for (const TraceRecord& r : *records) EXPECT_LE(r.blocks.size(), static_cast<std::size_t>(r.input_tokens) / 16);
}

constexpr const char* kLongForm =
    R"({"id":"a","models":["m"],"block_size":64,"tool_tokens":64,"system_tokens":64,"requests":[)"
    R"({"t":0.0,"type":"s","model":"m","in":200,"out":10,"hash_ids":[1,2,3,4],"api_time":1.5,"think_time":0.0},)"
    R"({"t":2.0,"type":"subagent","requests":[{"t":2.0,"type":"n","in":130,"out":5,"hash_ids":[50,51,52]},)"
    R"({"t":5.0,"type":"n","in":190,"out":6,"hash_ids":[50,51,60],"think_time":2.5}]},)"
    R"({"t":9.0,"type":"n","model":"n","in":300,"out":20,"hash_ids":[1,2,3,7,8,9,10],"think_time":90.0}]})";

TEST(Weka, GivesAConversationRequestByRequest) {
  const auto records = read_text(std::string(kLongForm) + "\n" + kLongForm + "\n");
  ASSERT_TRUE(records.ok()) << records.error().message;
  const Records& r = *records;
  ASSERT_EQ(r.size(), 8u);
  EXPECT_EQ(r[0].block_tokens, 64);
  EXPECT_EQ(r[0].stream, true);
  EXPECT_EQ(r[1].stream, false);
  EXPECT_EQ(r[0].model, "m");
  EXPECT_EQ(r[3].model, "n");
  EXPECT_EQ(r[3].arrival_us, 9'000'000);
  EXPECT_EQ(r[3].blocks.size(), 5u);  // 300 tokens; further ids are cut
  EXPECT_EQ(common_blocks(r[0], r[3]), 3u);
  EXPECT_EQ(r[0].follows, 0u);
  EXPECT_EQ(r[1].follows, 1u);          // the sub-agent waits for the first request
  EXPECT_EQ(r[1].think_us, 2'000'000);  // no think_time: since the request before
  EXPECT_EQ(r[2].follows, 1u);
  EXPECT_EQ(r[2].think_us, 2'500'000);
  EXPECT_EQ(r[3].follows, 3u);  // and the agent for its own first one
  EXPECT_EQ(r[3].think_us, 90'000'000);
  EXPECT_EQ(r[4].follows, 0u);
  EXPECT_EQ(common_blocks(r[0], r[4]), 0u);  // ids are a conversation's own
}

TEST(Weka, SharesWhatItIsToldToShare) {
  TraceOptions options;
  options.share_system_prompts = true;
  options.conversation_gap_us = 5'000'000;
  const std::string two = std::string(kLongForm) + "\n" + kLongForm + "\n";
  const auto shared = all_of(TraceReader::from_text(two, {}, options));
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(common_blocks((*shared)[0], (*shared)[4]), 2u);  // 128 tokens of tools and system
  EXPECT_EQ(common_blocks((*shared)[0], (*shared)[7]), 2u);
  EXPECT_EQ((*shared)[4].arrival_us, 5'000'000);
  options.block_salt = 1;
  const auto again = all_of(TraceReader::from_text(two, {}, options));
  EXPECT_EQ(common_blocks((*shared)[0], (*again)[0]), 2u);
  const std::string global =
      R"({"id":"b","block_size":64,"hash_id_scope":"global",)" + std::string(kLongForm).substr(10);
  const auto everywhere = read_text(global + "\n" + global);
  ASSERT_TRUE(everywhere.ok()) << everywhere.error().message;
  EXPECT_EQ((*everywhere)[0].blocks, (Ids{1, 2, 3, 4}));
  EXPECT_EQ((*everywhere)[4].blocks, (Ids{1, 2, 3, 4}));
}

TEST(Weka, ReadsTheShortFormAndTheSlice) {
  const auto records = read_text(
      R"({"id":"a","block_size":64,"requests":[[0.0,200,10,1.5,0,[1,4]],{"t":3,"sub":[[0.0,130,5,1,0,[50,2]]]}]})");
  ASSERT_TRUE(records.ok()) << records.error().message;
  EXPECT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].blocks.size(), 4u);
  const auto slice = read_text(file_text("weka_4.jsonl"));
  ASSERT_TRUE(slice.ok()) << slice.error().message;
  EXPECT_GT(slice->size(), 4u);
  for (const TraceRecord& r : *slice) EXPECT_LE(static_cast<std::int64_t>(r.blocks.size()), (r.input_tokens + 63) / 64);
}

TEST(TraceForms, RefuseWhatIsNoRecordAndNameThePlace) {
  using F = TraceFormat;
  const std::string burst = "Timestamp,Model,Request tokens,Response tokens\n",
                    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const auto weka = [](const std::string& turn) { return R"({"block_size":64,"requests":[)" + turn + "]}"; };
  const struct {
    F format;
    std::string text;
    Code code;
    const char* message;
  } cases[] = {
      {F::qwen, R"({"chat_id":"x","timestamp":1,"input_length":1,"output_length":1})", Code::wrong_type,
       "t:1: member \"chat_id\""},
      {F::qwen, R"({"chat_id":-2,"timestamp":1,"input_length":1,"output_length":1})", Code::wrong_type, "chat_id"},
      {F::qwen, R"({"chat_id":1,"timestamp":1,"input_length":1})", Code::missing_field, "output_length"},
      {F::qwen, R"({"chat_id":1,"timestamp":"1","input_length":1,"output_length":1})", Code::wrong_type, "timestamp"},
      {F::qwen, R"([])", Code::not_an_object, "t:1: the line"},
      {F::ragpulse, R"({"timestamp":"1x","input_length":1,"output_length":1})", Code::wrong_type, "timestamp"},
      {F::ragpulse, R"({"timestamp":"1","input_length":1,"output_length":1,"hash_ids":[1]})", Code::wrong_type,
       "--format"},
      {F::ragpulse, R"({"timestamp":"1","input_length":1,"output_length":1,"hash_ids":{"a":[-1]}})", Code::wrong_type,
       "\"a\""},
      {F::burstgpt, "5,ChatGPT,472,18\n", Code::missing_field, "must begin with its header"},
      {F::burstgpt, burst + "5,ChatGPT,472\n", Code::malformed, "t:2: 3 fields where the header has 4"},
      {F::burstgpt, burst + "x,ChatGPT,472,1\n", Code::wrong_type, "column \"Timestamp\": \"x\""},
      {F::burstgpt, burst + "5,ChatGPT,4.5,1\n", Code::value_out_of_range, "Request tokens"},
      {F::burstgpt, burst + "5,ChatGPT,-4,1\n", Code::value_out_of_range, "Request tokens"},
      {F::burstgpt, burst + "5,ChatGPT,,1\n", Code::wrong_type, "Request tokens"},
      {F::burstgpt, burst + "5,\"ChatGPT,4,1\n", Code::malformed, "quote"},
      {F::burstgpt, burst + "5,\"Chat\"GPT,4,1\n", Code::malformed, "quote"},
      {F::burstgpt, burst + "nan,ChatGPT,4,1\n", Code::value_out_of_range, "Timestamp"},
      {F::azure, "TIMESTAMP,ContextTokens\n", Code::missing_field, "GeneratedTokens"},
      {F::azure, azure + "2023-02-29 00:00:00,1,1\n", Code::wrong_type, "no time like"},
      {F::azure, azure + "2023-13-01 00:00:00,1,1\n", Code::wrong_type, "no time like"},
      {F::azure, azure + "2023-01-01 24:00:00,1,1\n", Code::wrong_type, "no time like"},
      {F::azure, azure + "2023-01-01 00:00:00.,1,1\n", Code::wrong_type, "no time like"},
      {F::azure, azure + "2023-01-01 00:00:00 x,1,1\n", Code::wrong_type, "no time like"},
      {F::azure, azure + "2023-01-01,1,1\n", Code::wrong_type, "no time like"},
      {F::weka, "{\n", Code::invalid_json, "on one line"},
      {F::weka, R"({"requests":[]})", Code::missing_field, "block_size"},
      {F::weka, R"({"block_size":0,"requests":[]})", Code::missing_field, "block_size"},
      {F::weka, R"({"block_size":64})", Code::missing_field, "requests"},
      {F::weka, weka("[0,1,1,1,1]"), Code::wrong_type, "[runs]"},
      {F::weka, weka("5"), Code::wrong_type, "neither"},
      {F::weka, weka(R"({"t":0})"), Code::missing_field, "t, in or out"},
      {F::weka, weka(R"({"t":0,"in":-1,"out":1})"), Code::value_out_of_range, "absurd"},
      {F::weka, weka(R"({"t":1e99,"in":1,"out":1})"), Code::value_out_of_range, "absurd time"},
      {F::weka, weka(R"({"t":1,"in":100,"out":1,"hash_ids":["x"]})"), Code::wrong_type, "hash_ids"},
      {F::weka, weka("[0,100,1,1,1,[1,-1]]"), Code::wrong_type, "runs"},
      {F::mooncake, R"({"timestamp":0,"input_length":1,"output_length":1,"priority":9999999999})",
       Code::value_out_of_range, "priority"},
      {F::mooncake, R"({"timestamp":0,"input_length":1,"output_length":1,"stream":1})", Code::wrong_type, "stream"},
      {F::mooncake, R"({"timestamp":0,"input_length":1,"output_length":1,"model":1})", Code::wrong_type, "model"},
  };
  for (const auto& c : cases) {
    const Error error = error_of(c.text, c.format);
    EXPECT_EQ(error.code, c.code) << c.text << " -> " << error.message;
    EXPECT_NE(error.message.find(c.message), std::string::npos) << c.text << " -> " << error.message;
    EXPECT_TRUE(error.message.starts_with("t:")) << error.message;
  }
}

TEST(TraceForms, ARunOfBlocksIsNoLongerThanItsPrompt) {
  const auto records = read_text(R"({"block_size":1,"requests":[[0,100,1,1,0,[0,100000000]],[0,5,1,1,0,[0,9]]]})");
  ASSERT_TRUE(records.ok());
  EXPECT_EQ((*records)[0].blocks.size(), 100u);
  EXPECT_EQ(error_of(R"({"block_size":1,"requests":[[0,100000000,1,1,0,[0,100000000]]]})").code,
            Code::value_out_of_range);
}

// Cut anywhere, a trace gives what stands before the cut, and of the last line at most an error.
void cut_everywhere(std::string_view text, TraceFormat format, std::size_t whole_records) {
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    auto reader = TraceReader::from_text(text.substr(0, cut), {}, in_form(format));
    std::size_t given = 0, errors = 0;
    while (true) {
      auto record = reader.next();
      if (!record) {
        ++errors;
        continue;
      }
      if (!record->has_value()) break;
      ++given;
    }
    EXPECT_LE(errors, 1u) << cut;
    EXPECT_LE(given, whole_records) << cut;
    if (cut == text.size()) {
      EXPECT_EQ(given, whole_records);
      EXPECT_EQ(errors, 0u);
    }
  }
}

std::string first_lines(const std::string& text, int lines) {
  std::size_t end = 0;
  while (lines-- > 0) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

TEST(TraceForms, AreReadUpToWhereverTheyAreCut) {
  cut_everywhere(first_lines(file_text("azure_code_120.csv"), 6), TraceFormat::azure, 5);
  cut_everywhere("Timestamp,Model,Request tokens,Response tokens\n5,\"a\"\"b\",1,2\n6,c,3,4\n", TraceFormat::burstgpt,
                 2);
  cut_everywhere(kLongForm, TraceFormat::weka, 4);
  cut_everywhere(first_lines(file_text("ragpulse/0_trace.jsonl"), 2), TraceFormat::ragpulse, 2);
  cut_everywhere(
      R"({"chat_id":1,"parent_chat_id":-1,"timestamp":0.5,"input_length":1,"output_length":1,"hash_ids":[1]})",
      TraceFormat::qwen, 1);
}

TEST(Slices, AreReadPlainAndPacked) {
  const std::string plain = WARMROUTE_TEST_DATA "/traces/azure_code_120.csv";
  const std::string packed = test::scratch_path("azure.csv.gz");
  const std::string text = file_text("azure_code_120.csv");
  gzFile file = gzopen(packed.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  const auto a = read_trace(plain), b = read_trace(packed);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->size(), 120u);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ((*a)[0].input_tokens, 4'808);
  EXPECT_EQ((*a)[1].arrival_us, 52'000);
  std::remove(packed.c_str());
}

TraceRecord any_record(SplitMix64& random) {
  TraceRecord r;
  r.arrival_us = random.between(0, 1'000'000'000'000);
  r.input_tokens = random.between(0, 5'000);
  r.output_tokens = random.between(0, 900);
  if (random.below(2) != 0) r.session = random.next() | 1;
  const auto blocks = random.between(0, (r.input_tokens + 511) / 512);
  for (std::int64_t i = 0; i < blocks; ++i) r.blocks.push_back(random.next());
  const auto sometimes = [&] { return random.below(3) == 0; };
  if (sometimes()) r.model = "m\"odel\\ \xC3\xA9";
  if (sometimes()) r.adapter = "lora-1";
  if (sometimes()) r.request_class = "chat";
  if (sometimes()) r.priority = static_cast<std::int32_t>(random.between(-2'147'483'648, 2'147'483'647));
  if (sometimes()) r.max_output_tokens = random.between(0, 100'000);
  if (sometimes()) r.cached_tokens = random.between(0, 5'000);
  if (sometimes()) r.ttft_us = random.between(0, 10'000'000);
  if (sometimes()) r.stream = random.below(2) != 0;
  r.cancelled = sometimes();
  if (sometimes()) r.follows = static_cast<std::uint32_t>(random.below(1'000));
  if (sometimes()) r.think_us = random.between(0, 10'000'000);
  return r;
}

TEST(TraceWriter, WhatItWritesReadsBackTheSame) {
  for (const char* name : {"warmroute_written.jsonl", "warmroute_written.jsonl.gz"}) {
    SCOPED_TRACE(name);
    const std::string path = test::scratch_path(name);
    SplitMix64 random{7};
    Records written;
    auto writer = TraceWriter::open(path);
    ASSERT_TRUE(writer.ok());
    for (int i = 0; i < 500; ++i) {
      written.push_back(any_record(random));
      ASSERT_TRUE(writer->write(written.back()).ok());
    }
    ASSERT_TRUE(writer->close().ok());
    EXPECT_EQ(writer->write(written.back()).code(), Code::io);
    const auto read = read_trace(path);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(*read, written);
    std::remove(path.c_str());
  }
}

TEST(TraceWriter, WritesThePublishedSliceAsItIs) {
  const auto slice = read_mooncake_trace(WARMROUTE_BENCHMARK_DATA "/mooncake_conversation_1200.jsonl", 100);
  ASSERT_TRUE(slice.ok());
  std::string text;
  for (const TraceRecord& r : *slice) ASSERT_TRUE(append_mooncake_line(r, text).ok());
  EXPECT_TRUE(text.starts_with(R"({"timestamp":0,"input_length":6758,"output_length":500,"hash_ids":[0,1,2,)"));
  EXPECT_EQ(text.find("session_id"), std::string::npos);
  EXPECT_EQ(*read_text(text), *slice);
}

TEST(TraceWriter, JoinsSmallerBlocks) {
  TraceRecord r;
  r.block_tokens = 128;
  r.input_tokens = 900;
  r.blocks = {1, 2, 3, 4, 5, 6, 7, 8};
  std::string line;
  ASSERT_TRUE(append_mooncake_line(r, line).ok());
  EXPECT_EQ(parse_mooncake_line(line)->blocks, (Ids{4, 8}));
  r.blocks.resize(6);
  line.clear();
  ASSERT_TRUE(append_mooncake_line(r, line).ok());
  EXPECT_EQ(parse_mooncake_line(line)->blocks, (Ids{4, 6}));
}

TEST(TraceWriter, RefusesWhatTheFormCannotHold) {
  std::string line = "before";
  TraceRecord r;
  r.block_tokens = 100;
  EXPECT_EQ(append_mooncake_line(r, line).code(), Code::unsupported);
  r = {};
  r.arrival_us = -1;
  EXPECT_EQ(append_mooncake_line(r, line).code(), Code::value_out_of_range);
  r = {};
  r.blocks = {1};
  EXPECT_EQ(append_mooncake_line(r, line).code(), Code::value_out_of_range);
  r = {};
  r.model = "\xff";
  EXPECT_EQ(append_mooncake_line(r, line).code(), Code::invalid_utf8);
  EXPECT_EQ(line, "before");
  EXPECT_EQ(TraceWriter::open("/nonexistent/x.jsonl").code(), Code::io);
}

// FNV-1a over a line per record with all of its fields: tests/capi/trace_test.c and python/tests/test_trace.py make the same of the same files.
std::uint64_t digest_of(const Records& records) {
  std::uint64_t digest = 14695981039346656037U;
  const auto more = [&](const std::string& text) {
    for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211U;
  };
  for (const TraceRecord& r : records) {
    std::string line;
    for (const std::uint64_t block : r.blocks) line += std::to_string(block) + ' ';
    for (const std::string* text : {&r.model, &r.adapter, &r.request_class}) line += *text + ',';
    line += std::to_string(r.arrival_us) + ',' + std::to_string(r.input_tokens) + ',' +
            std::to_string(r.output_tokens) + ',' + std::to_string(r.session) + ',' + std::to_string(r.block_tokens) +
            ',';
    for (const auto& known : {r.max_output_tokens, r.cached_tokens, r.ttft_us})
      line += std::to_string(known.value_or(-1)) + ',';
    line += std::to_string(r.priority.value_or(-999)) + ',' + (r.stream ? std::to_string(*r.stream ? 1 : 0) : "-1") +
            ',' + std::to_string(r.cancelled ? 1 : 0) + ',' + std::to_string(r.follows) + ',' +
            std::to_string(r.think_us) + '\n';
    more(line);
  }
  return digest;
}

TEST(TraceFiles, GiveTheRecordsThatCAndPythonGetToo) {
  const struct {
    std::string path;
    std::size_t records;
    std::uint64_t digest;
  } files[] = {
      {WARMROUTE_TEST_DATA "/traces/azure_code_120.csv", 120, 1376176534401509859U},
      {WARMROUTE_TEST_DATA "/traces/weka_4.jsonl", 330, 16165924615425173174U},
      {WARMROUTE_TEST_DATA "/traces/ragpulse/0_trace.jsonl", 80, 14884271213351314556U},
      {WARMROUTE_BENCHMARK_DATA "/mooncake_conversation_1200.jsonl", 1'200, 5968675010914389020U},
  };
  for (const auto& file : files) {
    const auto records = all_of(std::move(*TraceReader::open(file.path)));
    ASSERT_TRUE(records.ok()) << records.error().message;
    EXPECT_EQ(records->size(), file.records) << file.path;
    EXPECT_EQ(digest_of(*records), file.digest) << file.path;
  }
}

}  // namespace
}  // namespace warmroute::trace::forms_test
