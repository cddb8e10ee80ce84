/// Sends the requests of a scenario at their times and shows how it goes.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "replay/client.hpp"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/trace.hpp"

namespace warmroute::replay {

/// The 50-agents scenario: a closed loop of conversations behind one long shared system prompt.
struct AgentsScenario {
  std::int64_t agents = 50;
  std::int64_t turns = 20;
  std::int64_t system_tokens = 6'144;
  std::int64_t system_prompts = 1;  ///< how many different ones; agents take them in turn
  std::int64_t turn_tokens = 0;     ///< mean of what a turn adds; 0 = the scenario's own: about 640 first, then 1,088
  std::int64_t answer_tokens = 0;   ///< of every answer; 0 = the scenario's own: 64 to 511
  double think_seconds = 0;         ///< mean between answer and next turn; 0 = the scenario's own: 2.5
};

struct RunnerOptions {
  std::string model;
  double time_scale = 1.0;
  std::uint64_t seed = 1;
  std::int64_t replicas = 0;
};

class Runner {
 public:
  Runner(examples::asio::io_context& context, Client& client, const RunnerOptions& options);

  /// Open loop: sends every record at its arrival, whether or not earlier ones are answered. shape: arrivals in real
  /// units of the simulation; they are divided by the time scale.
  void run_trace(const std::vector<trace::TraceRecord>& records);
  /// Closed loop: each agent thinks, asks, waits for the answer, and asks again with all that was said before.
  void run_agents(const AgentsScenario& scenario);

  [[nodiscard]] const std::vector<Exchange>& exchanges() const noexcept { return exchanges_; }
  /// returns: input tokens that one infinite cache would have served in run_agents.
  [[nodiscard]] std::int64_t agents_bound_tokens() const noexcept { return bound_tokens_; }
  [[nodiscard]] double wall_seconds() const noexcept { return wall_seconds_; }

 private:
  examples::Awaitable<void> send_all(const std::vector<trace::TraceRecord>& records);
  examples::Awaitable<void> send_one(const trace::TraceRecord& record, std::size_t index, Clock::time_point due);
  examples::Awaitable<void> run_agent(const AgentsScenario& scenario, std::size_t agent, double start_seconds);
  examples::Awaitable<void> show_progress();
  examples::Awaitable<void> sleep_until(Clock::time_point when);
  void record(Exchange exchange);
  void run(std::size_t expected);
  [[nodiscard]] Clock::duration scaled(double simulated_seconds) const;
  [[nodiscard]] std::string progress_line() const;

  examples::asio::io_context& context_;
  Client& client_;
  RunnerOptions options_;
  std::vector<Exchange> exchanges_;
  Clock::time_point start_;
  std::size_t expected_ = 0;
  std::size_t sent_ = 0;
  std::int64_t bound_tokens_ = 0;
  std::set<std::uint64_t> known_systems_;  // system prompts that were sent
  double wall_seconds_ = 0;
  // For the progress line.
  double ttft_sum_ms_ = 0;
  std::int64_t ok_ = 0;
  std::int64_t input_tokens_ = 0;
  std::int64_t cached_tokens_ = 0;
};

}  // namespace warmroute::replay
