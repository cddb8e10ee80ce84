// The pages of tests/data/metrics_cases: one JSON file a case, its page beside it or generated from pieces.
#pragma once

#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute::test {

inline const std::string kMetricsCases = WARMROUTE_TEST_DATA "/metrics_cases/";

inline std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Names of all cases, sorted, without ".json".
inline std::vector<std::string> metrics_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kMetricsCases)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::string page_of(simdjson::dom::object line) {
  if (std::string_view file; line["file"].get(file) == simdjson::SUCCESS)
    return file_bytes(kMetricsCases + std::string(file));
  std::string page;
  for (const simdjson::dom::object piece : line["prom_gen"].get_array()) {
    if (std::string_view literal; piece["lit"].get(literal) == simdjson::SUCCESS) page += literal;
    std::string_view repeated;
    if (piece["repeat"].get(repeated) != simdjson::SUCCESS) continue;
    for (std::uint64_t i = 0, n = piece["times"].get_uint64(); i < n; ++i) page += repeated;
  }
  return page;
}

inline std::string page_of(const std::string& name) {
  simdjson::dom::parser parser;
  return page_of(parser.parse(file_bytes(kMetricsCases + name + ".json")).get_object());
}

/// Everything a rank says, one member a line, unknown ones as "null": equal texts, equal readings.
inline std::string described(const EngineRank& rank) {
  std::string out = "model " + std::string(rank.model);
  const auto member = [&out](std::string_view name, const auto& value) {
    out.append("\n").append(name).append(" ").append(value ? std::to_string(*value) : "null");
  };
  const auto list = [&out](std::string_view name, const auto& names) {
    out.append("\n").append(name).append(names ? "" : " null");
    if (!names) return;
    for (const std::string_view item : *names) out.append(" [").append(item).append("]");
  };
  member("rank", rank.dp_rank);
  member("waiting", rank.waiting);
  member("running", rank.running);
  member("waiting tokens", rank.waiting_tokens);
  member("usage", rank.kv_usage);
  member("hits", rank.prefix_hits);
  member("queries", rank.prefix_queries);
  out += "\nunit " + std::to_string(static_cast<int>(rank.prefix_unit));
  member("rate", rank.prefix_hit_rate);
  member("block", rank.block_tokens);
  member("blocks", rank.block_count);
  list("lora running", rank.lora_running);
  list("lora waiting", rank.lora_waiting);
  member("lora max", rank.lora_max);
  if (!rank.ttft) return out + "\nttft null";
  for (const HistogramBucket& bucket : rank.ttft->buckets) {
    out += "\nle " + std::to_string(bucket.le) + " " + std::to_string(bucket.count);
  }
  member("sum", rank.ttft->sum);
  return out + "\ncount " + std::to_string(rank.ttft->count);
}

inline std::string described(const EngineReading& reading) {
  std::string out(reading.engine);
  out += " skipped " + std::to_string(reading.skipped_lines);
  for (const EngineRank& rank : reading.ranks) out += "\n-- " + described(rank);
  return reading.shared ? out + "\n-- shared " + described(*reading.shared) : out;
}

}  // namespace warmroute::test
