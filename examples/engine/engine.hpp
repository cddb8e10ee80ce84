/// The simulated model server behind the HTTP front: trace/replica_model run in real time, one job per request.
///
/// Invariant: simulated time is the wall time since the start times `time_scale`; a step's results appear when its end
/// has come. Everything runs on the io_context's one thread. Does not: know HTTP or JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/asio.hpp"
#include "engine/cache_log.hpp"
#include "engine/metrics.hpp"
#include "engine/responses.hpp"
#include "warmroute/trace/replica_model.hpp"
#include "warmroute/trace/sample.hpp"

namespace warmroute::examples {

struct EngineOptions {
  std::string name = "engine";
  std::string model = "toy-70b";
  trace::ReplicaModelConfig service;
  double time_scale = 1.0;  ///< 5: five simulated seconds pass in one real second
  std::int64_t default_output_tokens = 128;
  double error_rate = 0.0;       ///< share of requests answered with 500
  double hang_rate = 0.0;        ///< share of requests never answered
  std::int64_t crash_after = 0;  ///< the process dies at request number n; 0: never
  std::uint64_t seed = 1;        ///< of the failures
  MetricsNames metrics_names = MetricsNames::vllm;
  UsageForm usage_form = UsageForm::vllm;
};

/// What a request is computed from. `token_ids`, adapter and salt are for the events; nobody else needs them.
struct Prompt {
  std::vector<std::uint64_t> blocks;     ///< sequence hashes of its whole blocks
  std::vector<std::uint32_t> token_ids;  ///< at least those of the whole blocks
  std::string adapter, cache_salt;
};

/// One request inside the engine. The front waits on `changed`, which is cancelled at every change.
struct Job {
  explicit Job(asio::io_context& context) : changed(context, asio::steady_timer::time_point::max()) {}
  [[nodiscard]] bool is_over() const noexcept { return is_finished || is_cancelled; }

  std::uint64_t id = 0;
  Prompt prompt;  ///< where the cache is reported
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t generated = 0;
  bool is_finished = false;
  bool is_cancelled = false;
  std::chrono::steady_clock::time_point submitted_at;
  std::chrono::steady_clock::time_point last_token_at;
  asio::steady_timer changed;
};

/// What the failure flags decide for a request.
enum class Fate : std::uint8_t { serve, fail, hang };

class Engine : private trace::ReplicaSink {
 public:
  Engine(asio::io_context& context, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Counts the request and draws its fate; ends the process when `crash_after` says so.
  [[nodiscard]] Fate draw_fate();
  /// From now on what enters and leaves the cache is handed to `sink`, a batch per step. Before the first request.
  void report_cache(EventForm form, std::uint64_t seed, CacheLog::Sink sink);
  [[nodiscard]] bool reports_cache() const noexcept { return cache_log_.has_value(); }
  /// Queues a prompt, of which the KV of some tokens comes from another engine. returns: null when it can never fit.
  [[nodiscard]] std::shared_ptr<Job> submit(Prompt prompt, std::int64_t input_tokens, std::int64_t output_tokens,
                                            std::int64_t received_tokens = 0);
  /// The client is gone: frees the job's blocks, or its place in the queue. Harmless when the job is over.
  void cancel(const std::shared_ptr<Job>& job);

  /// Forgets every block. returns: false when requests are inside, which hold some; then nothing changed.
  [[nodiscard]] bool clear_cache();

  /// returns: of the running and the waiting requests, the KV usage and the cache's size.
  [[nodiscard]] EngineGauges gauges() const;
  [[nodiscard]] const EngineMetrics& metrics() const noexcept { return metrics_; }
  [[nodiscard]] std::int64_t cached_blocks() const noexcept { return model_.cached_blocks(); }
  [[nodiscard]] std::size_t jobs() const noexcept { return jobs_.size(); }
  [[nodiscard]] std::int64_t max_model_tokens() const noexcept;
  [[nodiscard]] const EngineOptions& options() const noexcept { return options_; }
  /// A new process in the same place: requests and cache are lost, counters begin at 0, blocks get other names by `seed`. No event tells of it.
  void restart(std::uint64_t seed);

  /// returns: the metrics page, in the names that the options say.
  [[nodiscard]] std::string metrics_text();
  /// returns: as EngineMetrics::loads.
  [[nodiscard]] std::string loads_text(bool as_page, std::int64_t unix_seconds);

 private:
  [[nodiscard]] std::int64_t now_us() const;
  void run_until_now();
  void arm_timer();
  void publish_cache();

  void admitted(std::uint64_t id, std::int64_t at_us, std::int64_t cached_tokens, std::int64_t attempt) override;
  void token(std::uint64_t id, std::int64_t at_us, std::int64_t index) override;
  void finished(std::uint64_t id, std::int64_t at_us) override;
  void committed(std::uint64_t block, std::uint64_t parent, std::int64_t depth, std::int64_t at_us) override;
  void evicted(std::uint64_t block, std::int64_t at_us) override;

  EngineOptions options_;
  trace::ReplicaModel model_;
  trace::SplitMix64 random_;
  EngineMetrics metrics_;
  std::chrono::steady_clock::time_point start_;
  asio::io_context& context_;
  asio::steady_timer step_timer_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Job>> jobs_;
  std::optional<CacheLog> cache_log_;
  std::shared_ptr<const Job> committing_;  ///< whose blocks were stored last
  std::uint64_t last_id_ = 0;
  std::int64_t requests_ = 0;
};

}  // namespace warmroute::examples
