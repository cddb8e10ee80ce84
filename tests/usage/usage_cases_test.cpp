// Answers of every provider: read whole, byte by byte, in two pieces cut at every position, and cut off there.
#include <gtest/gtest.h>

#include "usage/usage_case_file.hpp"

namespace warmroute {
namespace {

using test::as_expected;
using test::UsageCase;

class UsageCases : public ::testing::Test {
 protected:
  static const std::vector<UsageCase>& cases() {
    static const std::vector<UsageCase> all = test::usage_cases();
    return all;
  }
};

TEST_F(UsageCases, AreReadWhole) {
  ASSERT_GT(cases().size(), 100u);
  for (const UsageCase& c : cases()) {
    Meter meter;
    EXPECT_EQ(as_expected(read_usage(meter, c.body, options_of(c))), c.expect) << c.id;
    EXPECT_EQ(meter.is_stream(), c.framing != "json") << c.id;
  }
}

TEST_F(UsageCases, AreReadByteByByte) {
  for (const UsageCase& c : cases()) {
    Meter meter(options_of(c));
    int first_tokens = 0;
    for (const char byte : c.body) first_tokens += meter.feed({&byte, 1}) ? 1 : 0;
    meter.finish();
    EXPECT_EQ(as_expected(meter.report()), c.expect) << c.id;
    EXPECT_LE(first_tokens, 1) << c.id;
    EXPECT_EQ(first_tokens == 1, meter.first_token_end().has_value()) << c.id;
  }
}

TEST_F(UsageCases, DoNotDependOnWhereTheyAreCut) {
  Meter meter;
  for (const UsageCase& c : cases()) {
    const UsageReport all = read_usage(meter, c.body, options_of(c));
    const auto first = meter.first_token_end();
    const auto events = all.output_events;
    const std::string finish(all.finish_reason), model(all.model), id(all.response_id);
    for (std::size_t cut = 1; cut < c.body.size(); ++cut) {
      meter.reset(options_of(c));
      const bool before = meter.feed(std::string_view(c.body).substr(0, cut));
      meter.feed(std::string_view(c.body).substr(cut));
      meter.finish();
      const UsageReport report = meter.report();
      ASSERT_EQ(as_expected(report), c.expect) << c.id << " at " << cut;
      ASSERT_EQ(meter.first_token_end(), first) << c.id << " at " << cut;
      ASSERT_EQ(before, first && *first <= cut) << c.id << " at " << cut;
      ASSERT_EQ(report.output_events, events) << c.id << " at " << cut;
      ASSERT_EQ(report.finish_reason, finish);
      ASSERT_EQ(report.model, model);
      ASSERT_EQ(report.response_id, id);
    }
  }
}

/// returns: how many bytes of an event stream are whole events, counted the naive way.
std::size_t whole_events(std::string_view body) {
  std::size_t whole = 0;
  bool blank = true;  // the line so far
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\n' && body[i] != '\r') {
      blank = false;
      continue;
    }
    if (blank) whole = i + 1;
    blank = true;
    if (body[i] == '\r' && i + 1 < body.size() && body[i + 1] == '\n') ++i;
  }
  return whole;
}

bool is_whole_json(std::string_view event) {
  std::string data;
  for (std::size_t at = 0; at < event.size();) {
    const std::size_t end = std::min(event.find_first_of("\r\n", at), event.size());
    std::string_view line = event.substr(at, end - at);
    at = end + 1;
    if (line.substr(0, 5) != "data:") continue;
    data += (data.empty() ? "" : "\n") + std::string(line.substr(5));
  }
  static simdjson::dom::parser parser;
  simdjson::dom::object object;
  return parser.parse(data).get(object) == simdjson::SUCCESS;
}

TEST_F(UsageCases, ThatAreCutOffKeepWhatTheirWholeEventsSaid) {
  Meter meter;
  Meter of_whole_events;
  for (const UsageCase& c : cases()) {
    if (c.framing != "sse") continue;
    for (std::size_t cut = 0; cut < c.body.size(); ++cut) {
      const std::string_view part = std::string_view(c.body).substr(0, cut);
      const auto got = as_expected(read_usage(meter, part, options_of(c)));
      const std::size_t whole = whole_events(part);
      if (is_whole_json(part.substr(whole))) {
        ASSERT_EQ(got, as_expected(read_usage(of_whole_events, std::string(part) + "\n\n", options_of(c))));
      } else if (part.substr(whole).find("[DONE]") == std::string_view::npos) {
        ASSERT_EQ(got, as_expected(read_usage(of_whole_events, part.substr(0, whole), options_of(c))))
            << c.id << " at " << cut;
      }
    }
  }
}

TEST_F(UsageCases, ThatAreCutOffAreOnlyCompleteWithTheirLastCounts) {
  Meter meter;
  for (const UsageCase& c : cases()) {
    const UsageReport all = read_usage(meter, c.body, options_of(c));
    const Usage last = all.usage;
    for (std::size_t cut = 0; cut < c.body.size(); ++cut) {
      const UsageReport report = read_usage(meter, std::string_view(c.body).substr(0, cut), options_of(c));
      if (!report.complete) continue;
      // Usage may ride on the last chunk but one, and be said in more detail by the last.
      ASSERT_EQ(report.usage.input_tokens, last.input_tokens) << c.id << " at " << cut;
      ASSERT_EQ(report.usage.output_tokens, last.output_tokens) << c.id << " at " << cut;
    }
  }
}

// Whoever follows a stream asks for the report only when there is a new one.
TEST_F(UsageCases, HaveTheSameReportAsLongAsTheirRevisionIs) {
  for (const UsageCase& c : cases()) {
    Meter meter(options_of(c));
    std::uint64_t revision = meter.revision();
    UsageReport before = meter.report();
    const auto look = [&](std::size_t at) {
      const UsageReport now = meter.report();
      ASSERT_EQ(meter.complete(), now.complete) << c.id << " at " << at;
      if (meter.revision() == revision) {
        ASSERT_TRUE(now.usage == before.usage && now.complete == before.complete && now.error == before.error &&
                    now.anomalies == before.anomalies && now.source == before.source &&
                    now.output_events == before.output_events)
            << c.id << " at " << at;
        ASSERT_EQ(now.service_tier, before.service_tier) << c.id << " at " << at;
      }
      ASSERT_GE(meter.revision(), revision);
      revision = meter.revision();
      before = now;
    };
    for (std::size_t i = 0; i < c.body.size(); ++i) {
      meter.feed(std::string_view(c.body).substr(i, 1));
      ASSERT_NO_FATAL_FAILURE(look(i));
    }
    meter.finish();
    ASSERT_NO_FATAL_FAILURE(look(c.body.size()));
  }
}

}  // namespace
}  // namespace warmroute
