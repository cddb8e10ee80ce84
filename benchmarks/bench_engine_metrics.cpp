// From the text of a model server's metrics page to signals per rank. Target: 1 MB in under 2 ms.
// The large page is what vLLM shows with many ranks: about a dozen histograms per rank, of which one is read.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "warmroute/ingest/engine_metrics.hpp"

namespace {

constexpr std::array<std::string_view, 23> kBounds{"0.001", "0.005", "0.01", "0.02",  "0.04",  "0.06",   "0.08", "0.1",
                                                   "0.25",  "0.5",   "0.75", "1.0",   "2.5",   "5.0",    "7.5",  "10.0",
                                                   "20.0",  "40.0",  "80.0", "160.0", "640.0", "2560.0", "+Inf"};
constexpr std::array<std::string_view, 11> kHistograms{
    "time_to_first_token_seconds", "inter_token_latency_seconds",    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds", "request_queue_time_seconds",     "request_prefill_time_seconds",
    "request_decode_time_seconds", "request_inference_time_seconds", "request_prompt_tokens",
    "request_generation_tokens",   "iteration_tokens_total"};
constexpr std::array<std::string_view, 9> kPlain{
    "num_requests_running",       "num_requests_waiting",    "kv_cache_usage_perc",
    "prefix_cache_queries_total", "prefix_cache_hits_total", "num_preemptions_total",
    "prompt_tokens_total",        "generation_tokens_total", "external_prefix_cache_hits_total"};

class VllmPage {
 public:
  explicit VllmPage(int ranks) : ranks_(ranks) {
    for (const std::string_view name : kPlain) family(name, name.ends_with("_total") ? "counter" : "gauge");
    for (const std::string_view name : kHistograms) histogram(name);
    head("cache_config_info", "gauge");
    for (int rank = 0; rank < ranks_; ++rank) {
      text += R"(vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",engine=")" +
              std::to_string(rank) +
              R"(",gpu_memory_utilization="0.9",num_cpu_blocks="None",num_gpu_blocks="27304",)"
              R"(num_gpu_blocks_override="None",sliding_window="None",swap_space="4"} 1.0)"
              "\n";
    }
  }
  std::string text;

 private:
  void head(std::string_view name, std::string_view type) {
    text.append("# HELP vllm:").append(name).append(" Of requests, per engine.\n");
    text.append("# TYPE vllm:").append(name).append(" ").append(type).append("\n");
  }
  void sample(std::string_view name, std::string_view suffix, int rank, std::string_view le, std::uint64_t value) {
    text.append("vllm:").append(name).append(suffix).append("{engine=\"").append(std::to_string(rank)).append("\",");
    if (!le.empty()) text.append("le=\"").append(le).append("\",");
    text.append("model_name=\"harbour-70b-instruct\"} ").append(std::to_string(value)).append(".0\n");
  }
  void family(std::string_view name, std::string_view type) {
    head(name, type);
    const bool share = name.ends_with("_perc");
    for (int rank = 0; rank < ranks_; ++rank) sample(name, "", rank, "", share ? 1 : 1'234'567);
  }
  void histogram(std::string_view name) {
    head(name, "histogram");
    for (int rank = 0; rank < ranks_; ++rank) {
      std::uint64_t below = 0;
      for (const std::string_view le : kBounds) sample(name, "_bucket", rank, le, below += 3'017);
      sample(name, "_count", rank, "", below);
      sample(name, "_sum", rank, "", 4 * below);
    }
  }
  int ranks_;
};

void read_page(benchmark::State& state, const std::string& page) {
  warmroute::EngineMetricsParser parser;
  std::size_t ranks = 0;
  for (auto _ : state) {
    const auto reading = parser.parse(page);
    if (!reading.ok()) return state.SkipWithError(reading.error().message.c_str());
    if (reading->skipped_lines != 0) return state.SkipWithError("lines were skipped");
    ranks = reading->ranks.size();
    benchmark::DoNotOptimize(reading->ranks.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(page.size()) * state.iterations());
  state.counters["ranks"] = static_cast<double>(ranks);
  state.counters["page_bytes"] = static_cast<double>(page.size());
}

void BM_EngineMetricsVllm(benchmark::State& state) {
  read_page(state, VllmPage(static_cast<int>(state.range(0))).text);
}
BENCHMARK(BM_EngineMetricsVllm)->ArgName("ranks")->Arg(1)->Arg(4)->Arg(40)->Unit(benchmark::kMicrosecond);

// The same size of somebody else's metrics, with the few that are read at the end: what skipping costs.
void BM_EngineMetricsForeign(benchmark::State& state) {
  std::string page;
  while (page.size() < 1'000'000) {
    page += R"(http_request_duration_seconds_bucket{handler="/v1/chat/completions",le="0.25",method="POST"} )" +
            std::to_string(page.size()) + ".0\n";
  }
  read_page(state, page + VllmPage(1).text);
}
BENCHMARK(BM_EngineMetricsForeign)->Unit(benchmark::kMicrosecond);

}  // namespace
