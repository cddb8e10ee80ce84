// Any bytes as a metrics page: no crash, and what the parser promises holds.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "warmroute/ingest/engine_metrics.hpp"

namespace {

using namespace warmroute;

void require(bool holds) {
  if (!holds) std::abort();
}

// Every byte that is shown is read.
std::size_t bytes_of(std::string_view text) {
  std::size_t sum = 0;
  for (const char c : text) sum += static_cast<unsigned char>(c);
  return sum;
}

std::size_t check(const EngineRank& rank) {
  std::size_t sum = bytes_of(rank.model);
  require(rank.prefix_hits.has_value() == rank.prefix_queries.has_value());
  require(rank.prefix_hits.has_value() == (rank.prefix_unit != PrefixUnit::unknown));
  require(!rank.dp_rank || *rank.dp_rank <= 65'535);
  for (const auto& count : {rank.waiting, rank.running, rank.prefix_hits, rank.prefix_queries, rank.block_tokens,
                            rank.block_count, rank.lora_max, rank.waiting_tokens}) {
    require(!count || *count >= 0);
  }
  for (const auto& ratio : {rank.kv_usage, rank.prefix_hit_rate}) require(!ratio || (*ratio >= 0 && *ratio <= 1));
  for (const auto& list : {rank.lora_running, rank.lora_waiting}) {
    if (!list) continue;
    for (const std::string_view name : *list) sum += bytes_of(name);
  }
  if (rank.ttft) {
    require(!rank.ttft->buckets.empty() && std::isinf(rank.ttft->buckets.back().le) && rank.ttft->count >= 0);
    for (std::size_t i = 1; i < rank.ttft->buckets.size(); ++i) {
      require(rank.ttft->buckets[i - 1].le < rank.ttft->buckets[i].le && rank.ttft->buckets[i].count >= 0);
    }
  }
  return sum;
}

struct Outcome {
  Code code = Code::ok;
  std::size_t ranks = 0;
  std::size_t skipped = 0;
  std::size_t bytes = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome read(EngineMetricsParser& parser, std::string_view page, EngineCounters& counters) {
  const auto reading = parser.parse(page);
  Outcome out;
  out.code = reading.code();
  out.skipped = parser.skipped_lines();
  if (!reading.ok()) {
    require(!reading.error().message.empty());
    require(reading.error().offset == kNoOffset || reading.error().offset <= page.size());
    return out;
  }
  require(!reading->engine.empty());
  out.ranks = reading->ranks.size();
  for (std::size_t i = 0; i < reading->ranks.size(); ++i) {
    out.bytes += check(reading->ranks[i]);
    if (i == 0) continue;
    const EngineRank& before = reading->ranks[i - 1];
    const EngineRank& here = reading->ranks[i];
    require(before.model < here.model || (before.model == here.model && before.dp_rank < here.dp_rank) ||
            before.model.find_first_of("\\\"\n") != std::string_view::npos ||  // sorted as written on the page
            here.model.find_first_of("\\\"\n") != std::string_view::npos);
  }
  if (reading->shared) out.bytes += check(*reading->shared);
  for (const EngineDelta& delta : counters.update(*reading)) {
    for (const auto& gain : {delta.prefix_hits, delta.prefix_queries, delta.first_tokens}) require(!gain || *gain >= 0);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static EngineMetricsParser reused;
  static EngineMetricsParser small(
      {.max_bytes = 4'096, .max_line_bytes = 200, .max_labels = 4, .max_ranks = 3, .max_series = 9});
  const std::string_view page(reinterpret_cast<const char*>(data), size);
  EngineCounters counters;
  const Outcome first = read(reused, page, counters);
  if (size % 16 == 0) {  // what was read before leaves nothing behind; making a parser takes longer than a page
    EngineMetricsParser fresh;
    require(first == read(fresh, page, counters));
  }
  EngineCounters of_small;
  require(read(small, page, of_small).ranks <= 3);
  if (const auto table = engine_table_from_json(page)) {
    require(validate(*table).ok());
    const std::string json = engine_table_to_json(*table);
    const auto again = engine_table_from_json(json);
    require(again.ok() && engine_table_to_json(*again) == json);
  }
  return 0;
}
