// Random answers: the sieve beside a walk over simdjson's document, and streams that are fed whole beside the same cut
// anywhere. Repeated events make the meter take its short way, cut ones its long way.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "support/counting_new.hpp"
#include "usage/answer_event.hpp"
#include "usage/build_answers.hpp"
#include "usage/json_sieve.hpp"
#include "usage/usage_case_file.hpp"

namespace warmroute {
namespace {

using namespace usage;  // the sieve's own room

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine_); }
  template <class T, std::size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[below(N)];
  }

 private:
  std::mt19937_64 engine_;
};

int rounds(int usual) {
  const char* const factor = std::getenv("WARMROUTE_PROPERTY_ROUNDS");
  return factor == nullptr ? usual : usual * std::atoi(factor);
}

const char* const kNames[] = {"usage",
                              "choices",
                              "delta",
                              "response",
                              "message",
                              "error",
                              "type",
                              "id",
                              "model",
                              "content",
                              "index",
                              "prompt_tokens",
                              "input_tokens",
                              "output_tokens",
                              "total_tokens",
                              "cached_tokens",
                              "iterations",
                              "prompt_tokens_details",
                              "cache_creation",
                              "candidates",
                              "parts",
                              "text",
                              "usageMetadata",
                              "promptTokenCount",
                              "promptTokensDetails",
                              "modality",
                              "tokenCount",
                              "finish_reason",
                              "usages",
                              "x",
                              "",
                              "stop_reason",
                              "timings",
                              "cache_n",
                              "cost",
                              "service_tier",
                              "serviceTier",
                              "metadata"};
const char* const kTexts[] = {
    "",     "a",          "stop", "TEXT",    "compaction",         "advisor_message", "\\\"usage\\\":{",
    "\\\\", "\\u00e9\\n", "}]{[", "message", "response.completed", "priority",        "\xC3\xA9"};
const char* const kTokens[] = {
    "null", "true", "false", "0", "7", "-3", "12.0", "1.5", "1e3", "900719925474099", "99999999999999999999"};

void space(Random& random, std::string& out) {
  if (random.below(8) == 0) out += random.one_of({" ", "\n", "\t ", "\r\n"});
}

void value(Random& random, std::string& out, int depth);

void object(Random& random, std::string& out, int depth) {
  out += '{';
  space(random, out);
  for (std::size_t i = 0, n = random.below(7); i < n; ++i) {
    out += i == 0 ? "\"" : ",\"";
    out += random.one_of(kNames);
    out += '"';
    space(random, out);
    out += ':';
    value(random, out, depth);
  }
  out += '}';
}

void value(Random& random, std::string& out, int depth) {
  space(random, out);
  const std::size_t kind = random.below(depth == 0 ? 4 : 9);
  if (kind < 2) {
    out += '"' + std::string(random.one_of(kTexts)) + '"';
  } else if (kind < 4) {
    out += random.one_of(kTokens);
  } else if (kind < 7) {
    object(random, out, depth - 1);
  } else {
    out += '[';
    for (std::size_t i = 0, n = random.below(4); i < n; ++i) {
      if (i != 0) out += ',';
      value(random, out, depth - 1);
    }
    out += ']';
  }
  space(random, out);
}

// ---------------------------------------------------------------- the naive reader

using Value = simdjson::ondemand::value;

void walk_object(AnswerEvent& event, Node node, simdjson::ondemand::object object);

std::string raw_inside(std::string_view raw) { return std::string(raw.substr(1, raw.rfind('"') - 1)); }

void walk(AnswerEvent& event, Member member, Value v) {
  const auto type = v.type().value();
  const bool object = type == simdjson::ondemand::json_type::object;
  const bool array = type == simdjson::ondemand::json_type::array;
  const bool string = type == simdjson::ondemand::json_type::string;
  const Take take = member.take;
  const bool looks = take == Take::object || take == Take::quiet_object || take == Take::text_or_object ||
                     take == Take::output_or_object;
  if (object && looks) return walk_object(event, member.node, v.get_object());
  if (array && take == Take::list) {
    event.begin_list(member.node);
    for (auto element : v.get_array()) walk(event, {Take::object, member.node, 0}, element.value());
    return;
  }
  const std::string_view raw = v.raw_json_token();
  if (string) {
    const std::string inside = raw_inside(raw);
    if (take == Take::text || take == Take::text_or_object) {
      ShortText& text = event.begin_text(static_cast<Slot>(member.id));
      text.append(inside);
      text.unescape();
    }
    if ((take == Take::output || take == Take::output_or_object) && !inside.empty()) event.output_seen();
    if (take == Take::error) event.error_seen();
    if (take == Take::count || take == Take::object) event.wrong_type(member);
    return;
  }
  if (object || array) {
    if (take == Take::error) event.error_seen();
    if (take == Take::count || (take == Take::object && array)) event.wrong_type(member);
    if (take == Take::output || take == Take::output_or_object) {
      bool empty = false;
      if (object) {
        auto members = v.get_object();
        empty = members.is_empty().value();
      } else {
        auto elements = v.get_array();
        empty = elements.is_empty().value();
      }
      if (!empty) event.output_seen();
    }
    return;
  }
  if (take == Take::skip || take == Take::output || take == Take::output_or_object) return;
  event.scalar(member, raw.substr(0, raw.find_last_not_of(" \t\r\n") + 1));
}

void walk_object(AnswerEvent& event, Node node, simdjson::ondemand::object object) {
  event.begin_object(node);
  for (auto field : object) {
    const std::string name(field.unescaped_key().value());
    walk(event, find_member(node, name), field.value());
  }
  event.end_object(node);
}

std::string everything(const AnswerEvent& event) {
  std::string out = std::to_string(event.anomalies.bits) + (event.output() ? " output" : "") +
                    (event.error() ? " error" : "") + (event.usage_seen() ? " usage" : "") +
                    (event.stop() ? " stop" : "");
  event.said.each([&](Field field, std::int64_t count) {
    out += " " + std::to_string(static_cast<int>(field)) + "=" + std::to_string(count);
  });
  for (std::size_t slot = 0; slot < kSlotCount; ++slot) out += "|" + std::string(event.text(static_cast<Slot>(slot)));
  for (const ChoiceSeen& choice : event.choices())
    out += " c" + std::to_string(choice.index) + (choice.finished ? "f" : "");
  out += " i" + std::to_string(event.iterations.input) + "," + std::to_string(event.iterations.line_count);
  return out;
}

TEST(MeterProperty, TheSieveReadsWhatAWalkOverTheDocumentReads) {
  Random random(7);
  AnswerEvent by_sieve, by_walk;
  JsonSieve sieve(by_sieve);
  simdjson::ondemand::parser parser;
  for (int round = 0; round < rounds(6'000); ++round) {
    std::string text;
    object(random, text, 6);
    const simdjson::padded_string padded(text);
    simdjson::ondemand::document document = parser.iterate(padded);
    by_walk.clear();
    walk_object(by_walk, Node::root, document.get_object());
    sieve.begin();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = 1 + (random.below(3) == 0 ? random.below(3) : random.below(text.size()));
      sieve.feed(std::string_view(text).substr(at, n));
      at += n;
    }
    ASSERT_TRUE(sieve.whole()) << text;
    ASSERT_EQ(everything(by_sieve), everything(by_walk)) << text;
  }
}

// ---------------------------------------------------------------- streams

std::string random_event(Random& random) {
  const std::string text = random.one_of(kTexts);
  const std::string count = std::to_string(random.below(3));  // few values: the same event comes again after others
  const char* const finish = random.one_of({"null", "null", "null", "\"stop\""});
  switch (random.below(9)) {
    case 0:
    case 1:
    case 2:
      return test::event(R"({"id":"c","model":"m","created":)" + count + R"(,"choices":[{"index":)" +
                         std::to_string(random.below(3)) + R"(,"delta":{"content":")" + text +
                         R"("},"finish_reason":)" + finish + "}]}");
    case 3:
      return test::event(R"({"type":"response.output_text.delta","sequence_number":)" + count + R"(,"delta":")" + text +
                         R"("})");
    case 4:
      return test::event(R"({"choices":[],"usage":{"prompt_tokens":)" + count + R"(,"completion_tokens":4,"x":")" +
                         text + R"("}})");
    case 5:
      return test::event(R"({"type":"message_delta","delta":{"text":")" + text + R"("},"usage":{"output_tokens":)" +
                         count + "}}");
    case 6:
      return test::event(R"({"service_tier":")" + std::string(random.one_of({"a", "b"})) + R"(","x":)" + count + "}");
    case 7:
      return random.one_of({": ping\r\n\r\n", "event: x\n", "data: [DONE]\n\n", "data: {\"a\":\n\n", "\n", "data\n\n"});
    default: {
      std::string out;
      object(random, out, 3);
      for (char& c : out) c = c == '\n' || c == '\r' ? ' ' : c;
      return test::event(out);
    }
  }
}

TEST(MeterProperty, AStreamSaysTheSameWhereverItIsCut) {
  Random random(11);
  Meter whole, cut;
  for (int round = 0; round < rounds(2'000); ++round) {
    std::string stream;
    std::string last;
    for (std::size_t i = 0, n = 1 + random.below(25); i < n; ++i) {
      if (last.empty() || random.below(3) == 0) last = random_event(random);
      stream += last;
    }
    const auto expected = test::as_expected(read_usage(whole, stream));
    const std::int64_t events = whole.report().output_events;
    cut.reset();
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t n = 1 + random.below(random.below(2) == 0 ? 4 : 200);
      cut.feed(std::string_view(stream).substr(at, n));
      at += n;
    }
    cut.finish();
    ASSERT_EQ(test::as_expected(cut.report()), expected) << stream;
    ASSERT_EQ(cut.report().output_events, events) << stream;
    ASSERT_EQ(cut.first_token_end(), whole.first_token_end()) << stream;
    ASSERT_EQ(cut.report().finish_reason, whole.report().finish_reason) << stream;
  }
}

TEST(MeterProperty, NothingIsAllocatedOnceEveryFramingWasSeen) {
  const auto cases = test::usage_cases();
  Meter meter;
  for (const auto& c : cases) {
    if (c.framing == "aws-eventstream") read_usage(meter, c.body);
  }
  const std::size_t before = test::allocations();
  std::int64_t sum = 0;
  for (const auto& c : cases) sum += read_usage(meter, c.body).usage.input_tokens.value_or(0);
  EXPECT_EQ(test::allocations(), before);
  EXPECT_GT(sum, 0);
}

}  // namespace
}  // namespace warmroute
