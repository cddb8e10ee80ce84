// The case files: pages of real engines, of odd ones, and bodies that are no page.
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ingest/engine_metrics_file.hpp"

namespace warmroute {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// A member that is absent is as null: what few engines tell is not in every file.
bool is_null(object expect, std::string_view name) {
  const auto member = expect[name];
  return member.error() == simdjson::NO_SUCH_FIELD || member.is_null();
}

template <class T>
void expect_number(object expect, std::string_view name, const std::optional<T>& got) {
  if (is_null(expect, name)) {
    EXPECT_FALSE(got.has_value()) << name;
  } else if (!got) {
    ADD_FAILURE() << name << " is unknown";
  } else {
    EXPECT_NEAR(static_cast<double>(*got), expect[name].get_double().value(), 1e-9) << name;
  }
}

void expect_list(object expect, std::string_view name, const std::optional<std::span<const std::string_view>>& got) {
  ASSERT_EQ(got.has_value(), !is_null(expect, name)) << name;
  if (!got) return;
  std::vector<std::string> wanted;
  for (const element item : expect[name].get_array()) wanted.emplace_back(item.get_string().value());
  EXPECT_EQ(std::vector<std::string>(got->begin(), got->end()), wanted) << name;
}

void expect_ttft(object expect, const std::optional<EngineHistogram>& got) {
  ASSERT_EQ(got.has_value(), !is_null(expect, "ttft"));
  if (!got) return;
  const object wanted = expect["ttft"].get_object();
  std::size_t i = 0;
  for (const element pair : wanted["buckets"].get_array()) {
    ASSERT_LT(i, got->buckets.size());
    const element le = pair.at(0);
    if (le.is_string()) {
      EXPECT_EQ(got->buckets[i].le, std::numeric_limits<double>::infinity());
    } else {
      EXPECT_NEAR(got->buckets[i].le, le.get_double().value(), 1e-9);
    }
    EXPECT_NEAR(static_cast<double>(got->buckets[i].count), pair.at(1).get_double().value(), 1e-9) << "le " << i;
    ++i;
  }
  EXPECT_EQ(i, got->buckets.size());
  expect_number(wanted, "sum", got->sum);
  EXPECT_EQ(static_cast<double>(got->count), wanted["count"].get_double().value());
}

void expect_rank(object expect, const EngineRank& got) {
  expect_number(expect, "dp_rank", got.dp_rank);
  std::string_view model;
  if (!is_null(expect, "model")) model = expect["model"].get_string();
  EXPECT_EQ(got.model, model);
  expect_number(expect, "waiting", got.waiting);
  expect_number(expect, "running", got.running);
  expect_number(expect, "waiting_tokens", got.waiting_tokens);
  expect_number(expect, "kv_usage", got.kv_usage);
  expect_number(expect, "prefix_hits", got.prefix_hits);
  expect_number(expect, "prefix_queries", got.prefix_queries);
  PrefixUnit unit = PrefixUnit::unknown;
  if (std::string_view name; expect["prefix_unit"].get(name) == simdjson::SUCCESS) {
    unit = name == "tokens" ? PrefixUnit::tokens : PrefixUnit::blocks;
  }
  EXPECT_EQ(got.prefix_unit, unit);
  expect_number(expect, "block_size", got.block_tokens);
  expect_number(expect, "num_blocks", got.block_count);
  expect_list(expect, "lora_running", got.lora_running);
  expect_list(expect, "lora_waiting", got.lora_waiting);
  expect_number(expect, "lora_max", got.lora_max);
  expect_ttft(expect, got.ttft);
}

void expect_reading(object expect, const EngineReading& got) {
  EXPECT_EQ(got.engine, expect["engine"].get_string().value());
  std::size_t i = 0;
  for (const object rank : expect["ranks"].get_array()) {
    SCOPED_TRACE("rank " + std::to_string(i));
    ASSERT_LT(i, got.ranks.size());
    expect_rank(rank, got.ranks[i++]);
  }
  EXPECT_EQ(i, got.ranks.size());
  ASSERT_EQ(got.shared.has_value(), !is_null(expect, "shared"));
  if (got.shared) expect_rank(expect["shared"].get_object(), *got.shared);
}

void expect_error(std::string_view wanted, const Error& got) {
  const std::map<std::string_view, Code> codes{{"not_prometheus", Code::malformed},
                                               {"no_known_metrics", Code::not_found},
                                               {"ambiguous_engine", Code::invalid_argument}};
  EXPECT_EQ(got.code, codes.at(wanted));
  EXPECT_EQ(got.message.substr(0, wanted.size()), wanted);
  EXPECT_EQ(got.offset != kNoOffset, got.code == Code::malformed);
}

TEST(EngineMetricsCases, ReadAsExpected) {
  EngineMetricsParser reused;
  std::set<std::string> engines;
  for (const std::string& name : test::metrics_cases()) {
    SCOPED_TRACE(name);
    simdjson::dom::parser json;
    const object line = json.parse(test::file_bytes(test::kMetricsCases + name + ".json")).get_object();
    const object expect = line["expect"].get_object();
    const std::string page = test::page_of(line);
    const auto reading = reused.parse(page);
    std::string_view error;
    if (expect["error"].get(error) == simdjson::SUCCESS) {
      ASSERT_FALSE(reading.ok());
      expect_error(error, reading.error());
    } else {
      ASSERT_TRUE(reading.ok()) << reading.error().message;
      EXPECT_EQ(reading->skipped_lines, reused.skipped_lines());
      expect_reading(expect, *reading);
      engines.emplace(reading->engine);
    }
    if (!is_null(expect, "skipped_lines")) {
      EXPECT_EQ(reused.skipped_lines(), expect["skipped_lines"].get_uint64().value());
    }
  }
  EXPECT_EQ(engines, (std::set<std::string>{"llamacpp", "sglang", "triton-trtllm", "trtllm", "vllm"}));
}

TEST(EngineMetricsCases, CountersAfterARestartAreTheIncrease) {
  std::size_t pairs = 0;
  for (const std::string& name : test::metrics_cases()) {
    simdjson::dom::parser json;
    const object line = json.parse(test::file_bytes(test::kMetricsCases + name + ".json")).get_object();
    std::string_view before;
    if (line["after"].get(before) != simdjson::SUCCESS) continue;
    SCOPED_TRACE(name);
    ++pairs;
    EngineMetricsParser parser;
    EngineCounters counters;
    const std::string first = test::page_of(std::string(before));
    const std::string second = test::page_of(line);
    EXPECT_TRUE(counters.update(*parser.parse(first)).empty());
    const auto deltas = counters.update(*parser.parse(second));
    const object expect = line["delta"].get_object();
    ASSERT_EQ(deltas.size(), 1u);
    expect_number(expect, "dp_rank", deltas[0].dp_rank);
    expect_number(expect, "prefix_hits", deltas[0].prefix_hits);
    expect_number(expect, "prefix_queries", deltas[0].prefix_queries);
    EXPECT_EQ(deltas[0].restarted, expect["restarted"].get_bool().value());
  }
  EXPECT_EQ(pairs, 1u);
}

}  // namespace
}  // namespace warmroute
