/// What a simulation measures, collected as it goes.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/router_view.hpp"
#include "warmroute/trace/simulator.hpp"

namespace warmroute::trace {

/// returns: mean and nearest-rank percentiles. `values` is sorted in place.
[[nodiscard]] LatencyFigures latency_of(std::vector<std::int64_t>& values);

/// Exact percentiles of millions of short times: one counter per microsecond below 2^20, the rest one by one.
class GapCounter {
 public:
  void add(std::int64_t gap_us) {
    ++count_;
    sum_ += gap_us;
    if (gap_us < kCounted) ++counters_[static_cast<std::size_t>(gap_us)];
    else long_.push_back(gap_us);
  }
  [[nodiscard]] LatencyFigures figures();

 private:
  static constexpr std::int64_t kCounted = std::int64_t{1} << 20;
  [[nodiscard]] std::int64_t at_rank(std::int64_t rank) const;
  std::vector<std::uint32_t> counters_ = std::vector<std::uint32_t>(static_cast<std::size_t>(kCounted));
  std::vector<std::int64_t> long_;
  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;
};

/// max / mean; 1 when there is nothing.
[[nodiscard]] double imbalance(const std::vector<double>& per_replica);

class FleetFigures {
 public:
  struct Request : RequestFigures {
    std::int64_t last_token_us = -1;
    bool admitted = false;
    bool counts = false;
    std::uint32_t router = 0;
  };

  FleetFigures(const SimulationConfig& config, const Workload& workload, std::uint32_t max_replicas);

  void arrived(std::uint32_t index, std::int64_t now_us);
  /// Brings the integrals over time of one replica up to `now_us`; before its state changes.
  void accrue(std::uint32_t replica, const ReplicaModel& model, std::int64_t now_us);
  /// Everything accrued by now is what the imbalances are about.
  void close_window() { window_ = total_; }
  void step_ended(std::uint32_t replica, const ReplicaModel& model, std::int64_t now_us);
  void joined(std::uint32_t replica, std::int64_t now_us);
  void left(std::uint32_t replica, const ReplicaModel& model, std::int64_t now_us);
  void token(std::uint32_t index, std::int64_t at_us, std::int64_t number);
  void admitted(std::uint32_t index, std::int64_t cached_tokens);
  void transferred(std::uint32_t index, std::int64_t took_us, std::int64_t tokens) {
    if (!requests[index].counts) return;
    transfers_.push_back(took_us);
    out.transferred_tokens += tokens;
  }
  void sample(std::int64_t at_us, const FleetState& state, std::uint32_t replicas);

  [[nodiscard]] SimulationFigures finish(const FleetState& state, std::uint32_t replicas);

  std::vector<Request> requests;
  std::int64_t spills = 0;
  std::int64_t routed = 0;
  SimulationFigures out;

 private:
  struct Integral {
    double busy = 0, prefill = 0, tokens = 0;
  };
  struct Life {
    std::int64_t accrued_us = 0;
    std::int64_t prefill_ps = 0;  // already counted
    std::int64_t joined_us = -1;
    std::int64_t lived_us = 0;
  };
  void count_end(const Request& request, const WorkloadRequest& asked);
  void spread(SimulationFigures& figures, std::uint32_t replicas) const;
  void duplicates(SimulationFigures& figures, const FleetState& state) const;

  const SimulationConfig& config_;
  const Workload& workload_;
  std::vector<bool> seen_;  // blocks, for the bound
  std::int64_t bound_tokens_ = 0;
  std::vector<Integral> total_, window_;
  std::vector<Life> lives_;
  GapCounter gaps_;
  std::int64_t end_us_ = 0;
  std::int64_t last_arrival_us_ = 0;
  std::int64_t sampled_hits_ = 0, sampled_input_ = 0;
  std::vector<std::int64_t> ttft_, e2e_, transfers_;
};

}  // namespace warmroute::trace
