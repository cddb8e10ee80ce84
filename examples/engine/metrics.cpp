#include "engine/metrics.hpp"

#include <array>
#include <cstdio>
#include <iterator>
#include <utility>

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
  out.append(name);
  if (!labels.empty()) out.append("{").append(labels).append("}");
  out.append(" ").append(value).append("\n");
}

std::string joined(std::string_view a, std::string_view b) {
  return std::string(a) + (a.empty() || b.empty() ? "" : ",") + std::string(b);
}

/// A page whose names begin alike and whose series have labels in common.
class Page {
 public:
  Page(std::string_view prefix, std::string labels) : prefix_(prefix), labels_(std::move(labels)) {}

  void gauge(std::string_view name, std::string_view help, double value) {
    one(name, help, "gauge", number(value), {});
  }
  void gauge(std::string_view name, std::string_view help, std::int64_t value) {
    one(name, help, "gauge", std::to_string(value), {});
  }
  void counter(std::string_view name, std::string_view help, std::int64_t value, std::string_view more = {}) {
    one(std::string(name) + "_total", help, "counter", std::to_string(value), more);
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& values, std::string_view more = {}) {
    values.append(out_, prefix_ + std::string(name), help, joined(more, labels_));
  }
  /// A series in a family that is there already, or all of one that is unlike the others.
  void raw(std::string_view text) { out_ += text; }
  std::string take() { return std::move(out_); }

 private:
  void one(std::string_view name, std::string_view help, std::string_view type, const std::string& value,
           std::string_view more) {
    const std::string whole = prefix_ + std::string(name);
    append_header(out_, whole, help, type);
    append_sample(out_, whole, joined(more, labels_), value);
  }
  std::string prefix_, labels_, out_;
};

std::int64_t used_tokens(const EngineGauges& g) {
  return static_cast<std::int64_t>(g.kv_usage * static_cast<double>(g.blocks) + 0.5) * g.block_tokens;
}

std::string vllm_page(const EngineMetrics& m, std::string_view model, const EngineGauges& g) {
  const std::string labels = "engine=\"0\",model_name=" + json_quoted(model);
  Page page("vllm:", labels);
  page.gauge("num_requests_running", "Requests in the running batch.", g.running);
  page.gauge("num_requests_waiting", "Requests in the queue.", g.waiting);
  page.gauge("kv_cache_usage_perc", "KV cache blocks in use, 0 to 1.", g.kv_usage);
  page.raw(
      "# HELP vllm:cache_config_info Block size and count of the KV cache.\n# TYPE vllm:cache_config_info gauge\n"
      "vllm:cache_config_info{block_size=\"" +
      std::to_string(g.block_tokens) +
      "\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\",num_gpu_blocks=\"" +
      std::to_string(g.blocks) + "\"} 1.0\n");
  page.counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", m.prefix_cache_queries);
  page.counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.", m.prefix_cache_hits);
  page.counter("num_preemptions", "Requests sent back to the queue.", g.preemptions);
  page.counter("prompt_tokens", "Prompt tokens of served requests.", m.prompt_tokens);
  page.counter("generation_tokens", "Tokens generated.", m.generation_tokens);
  page.counter("request_success", "Requests that ended, by reason.", m.finished_requests, "finished_reason=\"length\"");
  page.raw("vllm:request_success_total{finished_reason=\"abort\"," + labels + "} " +
           std::to_string(m.aborted_requests) + "\n");
  page.histogram("time_to_first_token_seconds", "From arrival to the first token, in real time.", m.ttft_seconds);
  page.histogram("inter_token_latency_seconds", "Between two tokens of one request, in real time.", m.itl_seconds);
  return page.take();
}

// Gauges come from the scheduler, with its ranks; counters and histograms from the process that tokenizes, without.
std::string sglang_page(const EngineMetrics& m, std::string_view model, const EngineGauges& g) {
  const std::string labels = "engine_type=\"unified\",model_name=" + json_quoted(model);
  const std::int64_t tokens = g.blocks * g.block_tokens;
  Page page("sglang:", labels + ",moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"");
  page.gauge("num_running_reqs", "Requests in the running batch.", g.running);
  page.gauge("num_queue_reqs", "Requests in the queue.", g.waiting);
  page.gauge("token_usage", "KV cache in use, 0 to 1.", g.kv_usage);
  page.gauge("num_used_tokens", "Tokens in the KV cache that are in use.", used_tokens(g));
  page.gauge("max_total_num_tokens", "Tokens that the KV cache holds.", tokens);
  page.gauge("page_size", "Tokens in a page of the KV cache.", g.block_tokens);
  page.gauge("num_pages", "Pages of the KV cache.", g.blocks);
  page.gauge("cache_hit_rate", "Prompt tokens found in the prefix cache, 0 to 1.", m.hit_rate());
  Page process("sglang:", labels);
  process.counter("prompt_tokens", "Prompt tokens.", m.prefix_cache_queries, "is_streaming=\"true\"");
  process.counter("cached_tokens", "Prompt tokens found in a cache.", m.prefix_cache_hits, "cache_source=\"device\"");
  process.counter("generation_tokens", "Tokens generated.", m.generation_tokens, "is_streaming=\"true\"");
  process.counter("num_requests", "Requests that ended.", m.finished_requests, "is_streaming=\"true\"");
  process.counter("num_aborted_requests", "Requests whose client went away.", m.aborted_requests);
  process.histogram("time_to_first_token_seconds", "From arrival to the first token, in real time.", m.ttft_seconds,
                    "is_streaming=\"true\"");
  process.histogram("inter_token_latency_seconds", "Between two tokens of one request, in real time.", m.itl_seconds,
                    "is_streaming=\"true\"");
  return page.take() + process.take();
}

/// What /v1/loads says of the only rank.
struct Load {
  std::string_view name;
  std::string value;
};
std::array<Load, 9> loads_of(const EngineMetrics& m, const EngineGauges& g) {
  return {{{"num_running_reqs", std::to_string(g.running)},
           {"num_waiting_reqs", std::to_string(g.waiting)},
           {"num_waiting_uncached_tokens", std::to_string(g.waiting_tokens)},
           {"num_used_tokens", std::to_string(used_tokens(g))},
           {"num_total_tokens", std::to_string(g.held_tokens)},
           {"max_total_num_tokens", std::to_string(g.blocks * g.block_tokens)},
           {"max_running_requests", std::to_string(g.max_running)},
           {"token_usage", number(g.kv_usage)},
           {"cache_hit_rate", number(m.hit_rate())}}};
}

std::string trtllm_page(const EngineMetrics& m, std::string_view model, const EngineGauges& g) {
  Page page("trtllm_", "engine_type=\"trtllm\",model_name=" + json_quoted(model));
  const std::int64_t used = used_tokens(g) / g.block_tokens;
  const std::int64_t reused = m.prefix_cache_hits / g.block_tokens;
  page.gauge("num_requests_running", "Requests in the running batch.", g.running);
  page.gauge("num_requests_waiting", "Requests in the queue.", g.waiting);
  page.gauge("kv_cache_utilization", "KV cache blocks in use, 0 to 1.", g.kv_usage);
  page.gauge("kv_cache_max_blocks", "Blocks of the KV cache.", g.blocks);
  page.gauge("kv_cache_used_blocks", "Of those, in use.", used);
  page.gauge("kv_cache_free_blocks", "Of those, free.", g.blocks - used);
  page.gauge("kv_cache_tokens_per_block", "Tokens in a block.", g.block_tokens);
  page.gauge("kv_cache_hit_rate", "Blocks found in the prefix cache, 0 to 1.", m.hit_rate());
  page.counter("kv_cache_reused_blocks", "Blocks of prompts found in the prefix cache.", reused);
  page.counter("kv_cache_missed_blocks", "Blocks of prompts not found there.",
               m.prefix_cache_queries / g.block_tokens - reused);
  page.counter("prompt_tokens", "Prompt tokens.", m.prefix_cache_queries);
  page.counter("prompt_cached_tokens", "Of those, found in the prefix cache.", m.prefix_cache_hits);
  page.counter("request_success", "Requests that ended.", m.finished_requests, "finished_reason=\"length\"");
  page.histogram("time_to_first_token_seconds", "From arrival to the first token, in real time.", m.ttft_seconds);
  page.histogram("time_per_output_token_seconds", "Between two tokens of one request, in real time.", m.itl_seconds);
  return page.take();
}

std::string tgi_page(const EngineMetrics& m, const EngineGauges& g) {
  Page page("tgi_", {});
  page.gauge("queue_size", "Requests in the queue.", g.waiting);
  page.gauge("batch_current_size", "Requests in the running batch.", g.running);
  page.gauge("batch_current_max_tokens", "Tokens that the running batch may hold.", used_tokens(g));
  page.raw("# HELP tgi_request_success Requests that ended.\n# TYPE tgi_request_success counter\ntgi_request_success " +
           std::to_string(m.finished_requests) + "\n");  // its counters have no _total
  page.histogram("request_mean_time_per_token_duration", "Between two tokens of one request, in real time.",
                 m.itl_seconds);
  return page.take();
}

std::string llamacpp_page(const EngineMetrics& m, const EngineGauges& g) {
  Page page("llamacpp:", {});
  page.counter("prompt_tokens", "Prompt tokens processed.", m.prefix_cache_queries - m.prefix_cache_hits);
  page.counter("tokens_predicted", "Tokens generated.", m.generation_tokens);
  page.gauge("requests_processing", "Requests in slots.", g.running);
  page.gauge("requests_deferred", "Requests that wait for a slot.", g.waiting);
  return page.take();
}

}  // namespace

std::optional<MetricsNames> metrics_names_from(std::string_view word) noexcept {
  constexpr std::string_view kWords[]{"vllm", "sglang", "trtllm", "tgi", "llamacpp"};
  for (std::size_t i = 0; i < std::size(kWords); ++i) {
    if (kWords[i] == word) return static_cast<MetricsNames>(i);
  }
  return std::nullopt;
}

double EngineMetrics::hit_rate() const noexcept {
  if (prefix_cache_queries == 0) return 0.0;
  return static_cast<double>(prefix_cache_hits) / static_cast<double>(prefix_cache_queries);
}

void Histogram::append(std::string& out, std::string_view name, std::string_view help, std::string_view labels) const {
  append_header(out, name, help, "histogram");
  const std::string bucket = std::string(name) + "_bucket";
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    cumulative += counts_[i];
    const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    append_sample(out, bucket, joined("le=\"" + bound + "\"", labels), std::to_string(cumulative));
  }
  append_sample(out, std::string(name) + "_count", labels, std::to_string(cumulative));
  append_sample(out, std::string(name) + "_sum", labels, number(sum_));
}

std::string EngineMetrics::text(MetricsNames names, std::string_view model, const EngineGauges& gauges) const {
  switch (names) {
    case MetricsNames::sglang: return sglang_page(*this, model, gauges);
    case MetricsNames::trtllm: return trtllm_page(*this, model, gauges);
    case MetricsNames::tgi: return tgi_page(*this, gauges);
    case MetricsNames::llamacpp: return llamacpp_page(*this, gauges);
    case MetricsNames::vllm: break;
  }
  return vllm_page(*this, model, gauges);
}

std::string EngineMetrics::loads(bool as_page, std::int64_t unix_seconds, const EngineGauges& gauges) const {
  std::string out;
  for (const Load& load : loads_of(*this, gauges)) {
    if (as_page) {
      const std::string name = "sglang_" + std::string(load.name);
      out.append("# TYPE ").append(name).append(" gauge\n");
      append_sample(out, name, "dp_rank=\"0\"", load.value);
    } else {
      out.append(",\"").append(load.name).append("\":").append(load.value);
    }
  }
  if (as_page) return out;
  return "{\"timestamp\":" + std::to_string(unix_seconds) +
         ",\"version\":\"warmroute-engine\",\"loads\":[{\"dp_rank\":0" + out + "}]}";
}

}  // namespace warmroute::examples
