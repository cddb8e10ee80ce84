/// Counters of the simulated engine, and their page in the names and label conventions of one of five real ones. What an engine does not say,
/// its page does not say either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warmroute::examples {

/// A Prometheus histogram over fixed upper bounds.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}

  void observe(double value) {
    std::size_t i = 0;
    while (i < bounds_.size() && value > bounds_[i]) ++i;
    ++counts_[i];
    sum_ += value;
  }
  /// Appends the family with cumulative buckets. shape: `labels` as `a="b",c="d"`.
  void append(std::string& out, std::string_view name, std::string_view help, std::string_view labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0.0;
};

/// Whose names the page has.
enum class MetricsNames : std::uint8_t { vllm = 0, sglang = 1, trtllm = 2, tgi = 3, llamacpp = 4 };
/// shape: as spelled above. returns: nothing for other words.
std::optional<MetricsNames> metrics_names_from(std::string_view word) noexcept;

/// What the page says about the moment at which it is asked for.
struct EngineGauges {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  double kv_usage = 0.0;
  std::int64_t block_tokens = 0;
  std::int64_t blocks = 0;
  std::int64_t preemptions = 0;
  std::int64_t waiting_tokens = 0;  ///< prompt tokens still to compute, what is cached of the queue's left out
  std::int64_t held_tokens = 0;     ///< of the requests inside
  std::int64_t max_running = 0;
};

struct EngineMetrics {
  std::int64_t prompt_tokens = 0;
  std::int64_t generation_tokens = 0;
  std::int64_t prefix_cache_queries = 0;  ///< units: tokens
  std::int64_t prefix_cache_hits = 0;     ///< units: tokens
  std::int64_t finished_requests = 0;
  std::int64_t aborted_requests = 0;
  Histogram ttft_seconds{{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                          1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0}};
  Histogram itl_seconds{
      {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0}};

  [[nodiscard]] double hit_rate() const noexcept;  ///< 0 before the first look
  [[nodiscard]] std::string text(MetricsNames names, std::string_view model, const EngineGauges& gauges) const;
  /// returns: what SGLang answers to /v1/loads?include=core, as JSON or as a page of Prometheus text.
  [[nodiscard]] std::string loads(bool as_page, std::int64_t unix_seconds, const EngineGauges& gauges) const;
};

}  // namespace warmroute::examples
