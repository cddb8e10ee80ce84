#include "warmroute/trace/trace.hpp"
#include "support/scratch.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace warmroute::trace {
namespace {

using Ids = std::vector<std::uint64_t>;

/// A file that is gone when the test ends.
class TempFile {
 public:
  explicit TempFile(const std::string& name) : path_(test::scratch_path(name)) {}
  ~TempFile() { std::remove(path_.c_str()); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  void write(std::string_view text) const {
    std::ofstream(path_, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  void write_gz(std::string_view text) const {
    gzFile file = gzopen(path_.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }

 private:
  std::string path_;
};

TEST(Mooncake, ReadsOneRecord) {
  const auto record = parse_mooncake_line(
      R"({"timestamp":3001, "input_length":1025, "output_length":7, "x":{}, "hash_ids":[0,18446744073709551615,5]})");
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->arrival_us, 3'001'000);
  EXPECT_EQ(record->input_tokens, 1025);
  EXPECT_EQ(record->output_tokens, 7);
  EXPECT_EQ(record->blocks, (Ids{0, ~std::uint64_t{0}, 5}));
  EXPECT_EQ(record->session, 0u);
}

TEST(Mooncake, ReadsFractionalTimesAndSessions) {
  const auto a = parse_mooncake_line(R"({"timestamp":1.5,"input_length":10.0,"output_length":0,"session_id":"s"})");
  const auto b =
      parse_mooncake_line(R"({"timestamp":0,"input_length":1,"output_length":1,"session_id":17,"hash_ids":null})");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(a->arrival_us, 1'500);
  EXPECT_EQ(a->input_tokens, 10);
  EXPECT_NE(a->session, 0u);
  EXPECT_NE(b->session, a->session);
}

TEST(Mooncake, RefusesWhatIsNotARecord) {
  const struct {
    const char* line;
    Code code;
  } cases[] = {
      {"", Code::invalid_json},
      {"{", Code::invalid_json},
      {"{} x", Code::invalid_json},
      {"\"\xff\"", Code::invalid_json},
      {"[1]", Code::not_an_object},
      {"{}", Code::missing_field},
      {R"({"timestamp":0,"input_length":1})", Code::missing_field},
      {R"({"timestamp":0,"input_length":1,"output_length":null})", Code::missing_field},
      {R"({"timestamp":"0","input_length":1,"output_length":1})", Code::wrong_type},
      {R"({"timestamp":-1,"input_length":1,"output_length":1})", Code::value_out_of_range},
      {R"({"timestamp":1e300,"input_length":1,"output_length":1})", Code::value_out_of_range},
      {R"({"timestamp":0,"input_length":-1,"output_length":1})", Code::value_out_of_range},
      {R"({"timestamp":0,"input_length":1.5,"output_length":1})", Code::value_out_of_range},
      {R"({"timestamp":0,"input_length":18446744073709551615,"output_length":1})", Code::value_out_of_range},
      {R"({"timestamp":0,"input_length":true,"output_length":1})", Code::wrong_type},
      {R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":5})", Code::wrong_type},
      {R"({"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[-1]})", Code::wrong_type},
      {R"({"timestamp":0,"input_length":1,"output_length":1,"session_id":[]})", Code::wrong_type},
      {R"({"timestamp":0,"input_length":512,"output_length":1,"hash_ids":[1,2]})", Code::malformed},
  };
  for (const auto& c : cases) EXPECT_EQ(parse_mooncake_line(c.line).code(), c.code) << c.line;
}

constexpr const char* kThreeLines =
    "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n"
    "\r\n"
    "{\"timestamp\":1,\"input_length\":2,\"output_length\":\"x\"}\n"
    "{\"timestamp\":2,\"input_length\":3,\"output_length\":1}";  // no newline at the end

TEST(TraceReader, NamesTheLineAndGoesOnBehindIt) {
  const TempFile file{"lines.jsonl"};
  file.write(kThreeLines);
  auto reader = TraceReader::open(file.path());
  ASSERT_TRUE(reader.ok());
  auto first = reader->next();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->input_tokens, 1);
  const auto second = reader->next();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::wrong_type);
  EXPECT_EQ(second.error().message, file.path() + ":3: member \"output_length\" is not a number");
  EXPECT_EQ(second.error().offset,
            std::string("{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\n\r\n").size());
  auto third = reader->next();
  ASSERT_TRUE(third.ok());
  EXPECT_EQ((*third)->input_tokens, 3);
  EXPECT_EQ(reader->line(), 4u);
  const auto end = reader->next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
  EXPECT_EQ(read_mooncake_trace(file.path()).code(), Code::wrong_type);
  EXPECT_EQ(read_mooncake_trace(file.path(), 1)->size(), 1u);
}

TEST(TraceReader, LimitsTheLengthOfALine) {
  const TempFile file{"long.jsonl"};
  std::string text(200'000, 'x');
  text += '\n';
  text += kThreeLines;
  file.write(text);
  TraceLimits limits;
  limits.max_line_bytes = 100'000;
  auto reader = TraceReader::open(file.path(), limits);
  ASSERT_TRUE(reader.ok());
  const auto first = reader->next();
  EXPECT_EQ(first.code(), Code::too_large);
  EXPECT_EQ(first.error().message, file.path() + ":1: longer than 100000 bytes (max_line_bytes)");
  auto second = reader->next();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ((*second)->input_tokens, 1);
}

TEST(TraceReader, ReadsGzipAndSaysWhenItIsCut) {
  const TempFile plain{"slice.jsonl.gz"}, cut{"cut.jsonl.gz"};
  std::ifstream source(WARMROUTE_BENCHMARK_DATA "/mooncake_conversation_1200.jsonl", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(source), {}};
  plain.write_gz(text);
  const auto records = read_mooncake_trace(plain.path());
  ASSERT_TRUE(records.ok());
  EXPECT_EQ(records->size(), 1'200u);

  std::ifstream packed(plain.path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(packed), {}};
  cut.write(std::string_view(bytes).substr(0, bytes.size() / 2));
  const auto broken = read_mooncake_trace(cut.path());
  EXPECT_EQ(broken.code(), Code::io);
  EXPECT_NE(broken.error().message.find(".gz:"), std::string::npos);
}

TEST(TraceReader, SaysWhenThereIsNoFile) {
  const auto reader = TraceReader::open("/nonexistent/trace.jsonl");
  EXPECT_EQ(reader.code(), Code::io);
  EXPECT_NE(reader.error().message.find("/nonexistent/trace.jsonl"), std::string::npos);
}

std::vector<TraceRecord> at(std::initializer_list<std::int64_t> arrivals_us) {
  std::vector<TraceRecord> records;
  for (const std::int64_t t : arrivals_us) {
    TraceRecord record;
    record.arrival_us = t;
    record.input_tokens = static_cast<std::int64_t>(records.size());  // to tell them apart
    records.push_back(record);
  }
  return records;
}

std::vector<std::int64_t> arrivals(const std::vector<TraceRecord>& records) {
  std::vector<std::int64_t> result;
  for (const auto& record : records) result.push_back(record.arrival_us);
  return result;
}

TEST(Schedule, SpreadsArrivalsInsideAQuantisedStep) {
  // 3 records over the 10 us until the next step, then 2 over 7, and the last group uses the gap before it.
  auto records = at({0, 0, 0, 10, 10, 17, 17, 17});
  spread_arrivals(records);
  EXPECT_EQ(arrivals(records), (std::vector<std::int64_t>{0, 3, 6, 10, 13, 17, 19, 21}));
  auto single = at({5, 5});
  spread_arrivals(single);
  EXPECT_EQ(arrivals(single), (std::vector<std::int64_t>{5, 5}));
  auto unsorted = at({10, 0, 10});
  spread_arrivals(unsorted);
  EXPECT_EQ(arrivals(unsorted), (std::vector<std::int64_t>{0, 10, 15}));
  EXPECT_EQ(unsorted[1].input_tokens, 0);
  EXPECT_EQ(unsorted[2].input_tokens, 2);
}

TEST(Schedule, ComputesTheSpeedOfALoad) {
  HardwareProfile hardware;
  hardware.per_token_ps = 1'000'000;  // 1 us a token
  auto records = at({0, 1'000'000});
  for (auto& record : records) record.input_tokens = 50'000;  // 0.1 s of work in 1 s
  EXPECT_EQ(speed_permille_for_load(records, hardware, 1, 1000), 10'000);
  EXPECT_EQ(speed_permille_for_load(records, hardware, 4, 800), 32'000);
  hardware.per_pair_ps = 1'000;  // 50,000 * 50,001 / 2 pairs at 1 ns: 1.250025 s each
  EXPECT_EQ(speed_permille_for_load(records, hardware, 1, 1000), 385);  // 1 / 2.60005 = 0.38461
  EXPECT_EQ(speed_permille_for_load(std::span<const TraceRecord>{}, hardware, 1, 1000), 1000);
  scale_arrivals(records, 32'000);
  EXPECT_EQ(records[1].arrival_us, 31'250);
}

TEST(Schedule, BoundsTheHitRatioByOneInfiniteCache) {
  auto records = at({0, 0, 0});
  records[0].blocks = {1, 2, 3};
  records[0].input_tokens = 1'300;  // two whole blocks
  records[1].blocks = {1, 2, 3};
  records[1].input_tokens = 1'024;  // the last token of block 2 is never a hit
  records[2].blocks = {9, 2, 1};
  records[2].input_tokens = 1'536;  // nothing leading
  const PrefixBound bound = prefix_bound(records);
  EXPECT_EQ(bound.hit_tokens, 512);
  EXPECT_EQ(bound.input_tokens, 3'860);
  EXPECT_EQ(bound.distinct_blocks, 3);
}

TEST(Schedule, KnowsTheFiguresOfTheShippedSlice) {
  auto records = read_mooncake_trace(WARMROUTE_BENCHMARK_DATA "/mooncake_conversation_1200.jsonl");
  ASSERT_TRUE(records.ok());
  spread_arrivals(*records);
  const PrefixBound bound = prefix_bound(*records);
  EXPECT_EQ(bound.input_tokens, 16'848'754);
  EXPECT_EQ(bound.hit_tokens, 3'901'440);
  EXPECT_EQ(bound.distinct_blocks, 24'672);
  EXPECT_EQ(records->back().arrival_us, 413'249'000);
  EXPECT_EQ(speed_permille_for_load(*records, *find_hardware_profile("70b-8xh100"), 4, 800), 1367);
}

}  // namespace
}  // namespace warmroute::trace
