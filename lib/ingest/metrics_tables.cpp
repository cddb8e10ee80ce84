// The built-in tables: which metric says what, per engine, newest names first. Versions read: vLLM 0.6 to 0.33, SGLang
// 0.4.10 to 0.5.23, TensorRT-LLM's trtllm-serve and Triton backend, TGI, llama.cpp's server.
#include <array>
#include <string>

#include "ingest/metrics_names.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute {
namespace {

using Field = EngineField;
using Row = EngineMetricRow;

Row gauge(Field field, std::string name) { return {.field = field, .name = std::move(name)}; }
Row counter(Field field, std::string name, std::uint8_t pair, PrefixUnit unit) {
  return {.field = field, .name = std::move(name), .combine = SeriesCombine::sum, .pair = pair, .unit = unit};
}
Row histogram(Field field, std::string name) {
  return {.field = field, .name = std::move(name), .combine = SeriesCombine::sum};
}
Row label_of(Field field, std::string name, std::string label, SeriesCombine combine = SeriesCombine::max) {
  return {.field = field, .name = std::move(name), .value_label = std::move(label), .combine = combine};
}
Row kind_of(Field field, std::string name, std::string label, std::string value) {
  return {.field = field, .name = std::move(name), .where = {{std::move(label), std::move(value)}}};
}
Row split(Row row, std::string label, std::string total) {
  row.split_label = std::move(label);
  row.split_total = std::move(total);
  return row;
}

// vLLM does not tell the tokens that wait (its pull request 38025 would: approximate_uncached_tokens_waiting); a caller's table may.
EngineMetricsTable vllm() {
  constexpr auto kTokens = PrefixUnit::tokens;
  constexpr auto kNewest =
      SeriesCombine::newest;  // every combination of adapters leaves a stale series; the value is its time
  return {"vllm",
          {"vllm:", "vllm_", "ray_vllm_"},  // OpenMetrics of prometheus_client >= 0.23 loses the colon, Ray's agent too
          "engine",
          "model_name",
          {
              gauge(Field::waiting, "num_requests_waiting"),
              gauge(Field::running, "num_requests_running"),
              gauge(Field::kv_usage, "kv_cache_usage_perc"),
              gauge(Field::kv_usage, "gpu_cache_usage_perc"),  // until 0.11; there both
              counter(Field::prefix_hits, "prefix_cache_hits_total", 0, kTokens),
              counter(Field::prefix_queries, "prefix_cache_queries_total", 0, kTokens),
              counter(Field::prefix_hits, "gpu_prefix_cache_hits_total", 1, kTokens),
              counter(Field::prefix_queries, "gpu_prefix_cache_queries_total", 1, kTokens),
              gauge(Field::prefix_hit_rate, "gpu_prefix_cache_hit_rate"),  // 0.6 has no counters; -1 = off
              label_of(Field::block_tokens, "cache_config_info", "block_size"),
              label_of(Field::block_count, "cache_config_info", "num_gpu_blocks"),
              label_of(Field::lora_running, "lora_requests_info", "running_lora_adapters", kNewest),
              label_of(Field::lora_waiting, "lora_requests_info", "waiting_lora_adapters", kNewest),
              label_of(Field::lora_max, "lora_requests_info", "max_lora", kNewest),
              histogram(Field::ttft, "time_to_first_token_seconds"),
          }};
}

// Its /metrics (with --enable-metrics), and its /v1/loads?include=core&format=prometheus (since June 2026, without that option), which names
// what waits otherwise, and tells how many tokens of it are uncached.
EngineMetricsTable sglang() {
  constexpr auto kTokens = PrefixUnit::tokens;
  return {
      "sglang",
      {"sglang:", "sglang_"},
      "dp_rank",
      "model_name",
      {
          // With priority scheduling gauges come once per priority; "" is their total.
          split(gauge(Field::waiting, "num_queue_reqs"), "priority", ""),
          gauge(Field::waiting, "num_waiting_reqs"),
          split(gauge(Field::running, "num_running_reqs"), "priority", ""),
          gauge(Field::waiting_tokens, "num_waiting_uncached_tokens"),
          gauge(Field::kv_usage, "token_usage"),
          // By source of the hit: device, host, storage; or one series "total". Counters have no total over priorities.
          split(counter(Field::prefix_hits, "cached_tokens_total", 0, kTokens), "cache_source", "total"),
          counter(Field::prefix_queries, "prompt_tokens_total", 0, kTokens),
          gauge(Field::prefix_hit_rate, "cache_hit_rate"),
          gauge(Field::block_tokens, "page_size"),
          label_of(Field::block_tokens, "cache_config_info", "page_size"),  // until 0.5.9
          gauge(Field::block_count, "num_pages"),
          label_of(Field::block_count, "cache_config_info", "num_pages"),
          gauge(Field::lora_max, "lora_pool_slots_total"),
          histogram(Field::ttft, "time_to_first_token_seconds"),
      }};
}

EngineMetricsTable trtllm() {
  return {"trtllm",
          {"trtllm_"},
          "",
          "model_name",
          {
              gauge(Field::waiting, "num_requests_waiting"),
              gauge(Field::running, "num_requests_running"),
              gauge(Field::kv_usage, "kv_cache_utilization"),
              counter(Field::prefix_hits, "prompt_cached_tokens_total", 0, PrefixUnit::tokens),
              counter(Field::prefix_queries, "prompt_tokens_total", 0, PrefixUnit::tokens),
              counter(Field::prefix_hits, "kv_cache_reused_blocks_total", 1, PrefixUnit::blocks),
              counter(Field::prefix_misses, "kv_cache_missed_blocks_total", 1, PrefixUnit::blocks),
              gauge(Field::prefix_hit_rate, "kv_cache_hit_rate"),
              gauge(Field::block_tokens, "kv_cache_tokens_per_block"),
              gauge(Field::block_count, "kv_cache_max_blocks"),
              histogram(Field::ttft, "time_to_first_token_seconds"),
          }};
}

EngineMetricsTable triton_trtllm() {
  const auto requests = [](Field field, const char* type) {
    return kind_of(field, "request_metrics", "request_type", type);
  };
  const auto blocks = [](Field field, const char* type) {
    return kind_of(field, "kv_cache_block_metrics", "kv_cache_block_type", type);
  };
  return {"triton-trtllm",
          {"nv_trt_llm_"},
          "",
          "model",
          {
              requests(Field::waiting, "waiting"),
              requests(Field::running, "scheduled"),
              blocks(Field::kv_usage, "fraction"),
              blocks(Field::block_tokens, "tokens_per"),
              blocks(Field::block_count, "max"),
          }};
}

EngineMetricsTable tgi() {
  return {"tgi",
          {"tgi_"},
          "",
          "",
          {
              gauge(Field::waiting, "queue_size"),
              gauge(Field::running, "batch_current_size"),
          }};
}

EngineMetricsTable llamacpp() {
  return {"llamacpp",
          {"llamacpp:"},
          "",
          "",
          {
              gauge(Field::waiting, "requests_deferred"), gauge(Field::running, "requests_processing"),
              gauge(Field::kv_usage, "kv_cache_usage_ratio"),  // gone from newer builds
          }};
}

// Any text can be a quoted name; one that needs escapes is not looked for.
bool metric_name(std::string_view name) {
  return !name.empty() && name.find_first_of("\"\\\n") == std::string_view::npos;
}

class Faults {
 public:
  void add(std::string_view where, std::string_view what) {
    text_.append(text_.empty() ? "" : "; ").append(where).append(" ").append(what);
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

void check_row(const Row& row, const std::string& where, Faults& faults) {
  const bool list = row.field == Field::lora_running || row.field == Field::lora_waiting;
  if (static_cast<std::size_t>(row.field) >= kEngineFieldCount) faults.add(where, "has a field that is none");
  if (row.combine > SeriesCombine::newest) faults.add(where, "has a combine that is none");
  if (row.unit > PrefixUnit::blocks) faults.add(where, "has a unit that is none");
  if (!metric_name(row.name)) faults.add(where, "needs the name of a metric");
  for (const auto& [label, value] : row.where) {
    if (label.empty()) faults.add(where, "has a condition without label");
  }
  if (list && row.value_label.empty())
    faults.add(where, "needs value_label: a list of adapters is the text of a label");
  if (list && row.combine != SeriesCombine::newest)
    faults.add(where, "needs combine newest: lists of adapters do not add up");
  if (row.field == Field::ttft && (!row.value_label.empty() || !row.split_label.empty())) {
    faults.add(where, "is a histogram: value_label and split_label do not apply");
  }
  if (!row.split_label.empty() && row.combine == SeriesCombine::newest) {
    faults.add(where, "cannot add parts of the newest series");
  }
  if (row.field == Field::prefix_hits && row.unit == PrefixUnit::unknown) {
    faults.add(where, "needs a unit: tokens or blocks");
  }
}

// Hits need exactly one of queries and misses under their number, and the other way round.
void check_pairs(const EngineMetricsTable& table, Faults& faults) {
  std::array<std::array<int, 256>, 3> seen{};
  for (const Row& row : table.rows) {
    if (row.field == Field::prefix_hits) ++seen[0][row.pair];
    if (row.field == Field::prefix_queries) ++seen[1][row.pair];
    if (row.field == Field::prefix_misses) ++seen[2][row.pair];
  }
  for (std::size_t pair = 0; pair < 256; ++pair) {
    const int hits = seen[0][pair];
    const int others = seen[1][pair] + seen[2][pair];
    if ((hits == 0 && others == 0) || (hits == 1 && others == 1)) continue;
    faults.add("pair " + std::to_string(pair),
               "needs one row of prefix_hits and one of prefix_queries or prefix_misses");
  }
}

}  // namespace

std::vector<EngineMetricsTable> builtin_engine_tables() {
  return {vllm(), sglang(), trtllm(), triton_trtllm(), tgi(), llamacpp()};
}

Status validate(const EngineMetricsTable& table) {
  Faults faults;
  if (table.engine.empty()) faults.add("engine", "must not be empty");
  if (table.prefixes.empty()) faults.add("prefixes", "must have an entry, if only an empty one");
  if (table.prefixes.size() > metrics::kMaxPrefixes) faults.add("prefixes", "are more than 8");
  if (table.rows.empty()) faults.add("rows", "must have an entry");
  if (table.rows.size() > metrics::kMaxRows) faults.add("rows", "are more than 64");
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    check_row(table.rows[i], "rows[" + std::to_string(i) + "]", faults);
  check_pairs(table, faults);
  if (!faults.text().empty()) return Error{Code::invalid_argument, "engine metrics table: " + faults.text(), kNoOffset};
  return {};
}

}  // namespace warmroute
