#include "engine/metrics.hpp"

#include <cstdio>

#include "common/text.hpp"

namespace warmroute::examples {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

void append_header(std::string& out, std::string_view name, std::string_view help, std::string_view type) {
  out.append("# HELP ")
      .append(name)
      .append(" ")
      .append(help)
      .append("\n# TYPE ")
      .append(name)
      .append(" ")
      .append(type)
      .append("\n");
}

void append_sample(std::string& out, std::string_view name, std::string_view labels, const std::string& value) {
  out.append(name).append("{").append(labels).append("} ").append(value).append("\n");
}

}  // namespace

void Histogram::append(std::string& out, std::string_view name, std::string_view help, std::string_view labels) const {
  append_header(out, name, help, "histogram");
  const std::string bucket = std::string(name) + "_bucket";
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    cumulative += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    append_sample(out, bucket, "le=\"" + bound + "\"," + std::string(labels), std::to_string(cumulative));
  }
  append_sample(out, std::string(name) + "_count", labels, std::to_string(cumulative));
  append_sample(out, std::string(name) + "_sum", labels, number(sum_));
}

std::string EngineMetrics::text(std::string_view model, const EngineGauges& gauges) const {
  const std::string labels = "engine=\"0\",model_name=" + json_quoted(model);
  std::string out;
  const auto gauge = [&](std::string_view name, std::string_view help, const std::string& value) {
    append_header(out, name, help, "gauge");
    append_sample(out, name, labels, value);
  };
  const auto counter = [&](std::string_view name, std::string_view help, std::int64_t value) {
    append_header(out, name, help, "counter");
    append_sample(out, std::string(name) + "_total", labels, std::to_string(value));
  };
  gauge("vllm:num_requests_running", "Requests in the running batch.", std::to_string(gauges.running));
  gauge("vllm:num_requests_waiting", "Requests in the queue.", std::to_string(gauges.waiting));
  gauge("vllm:kv_cache_usage_perc", "KV cache blocks in use, 0 to 1.", number(gauges.kv_usage));
  append_header(out, "vllm:cache_config_info", "Block size and count of the KV cache.", "gauge");
  append_sample(out, "vllm:cache_config_info",
                "block_size=\"" + std::to_string(gauges.block_tokens) +
                    "\",cache_dtype=\"auto\",enable_prefix_caching=\"True\"," + "engine=\"0\",num_gpu_blocks=\"" +
                    std::to_string(gauges.blocks) + "\"",
                "1.0");
  counter("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", prefix_cache_queries);
  counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", prefix_cache_hits);
  counter("vllm:num_preemptions", "Requests sent back to the queue.", gauges.preemptions);
  counter("vllm:prompt_tokens", "Prompt tokens of served requests.", prompt_tokens);
  counter("vllm:generation_tokens", "Tokens generated.", generation_tokens);
  append_header(out, "vllm:request_success", "Requests that ended, by reason.", "counter");
  append_sample(out, "vllm:request_success_total", "finished_reason=\"length\"," + labels,
                std::to_string(finished_requests));
  append_sample(out, "vllm:request_success_total", "finished_reason=\"abort\"," + labels,
                std::to_string(aborted_requests));
  ttft_seconds.append(out, "vllm:time_to_first_token_seconds", "From arrival to the first token, in real time.",
                      labels);
  itl_seconds.append(out, "vllm:inter_token_latency_seconds", "Between two tokens of one request, in real time.",
                     labels);
  return out;
}

}  // namespace warmroute::examples
