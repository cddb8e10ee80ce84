/// An experiment: policies x loads x views x ..., each cell simulated with several seeds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/trace/simulator.hpp"

namespace warmroute::simulate {

enum class Kind { trace, agents, hot };

/// So many replicas, of which some only prefill and some only decode.
struct FleetSpec {
  std::int64_t replicas = 8;
  std::int64_t prefill = 0;
  std::int64_t decode = 0;
};
struct RuleOnFleet {
  std::string rule;
  std::optional<FleetSpec> fleet;  ///< of its own, in place of those of the setup
};

struct Setup {
  Kind kind = Kind::trace;
  std::string trace;
  trace::TraceFormat format = trace::TraceFormat::automatic;  ///< of that file
  std::size_t limit = 0;                                      ///< records, or conversations
  std::int64_t jitter_us = 0;  ///< arrivals of a trace come up to so much later, drawn by the seed
  trace::AgentTraceOptions agents;
  trace::HotPrefixOptions hot;

  trace::SimulationConfig base;          ///< profile, budget, churn, horizon, warm-up, sampling
  double ratio_low = 0, ratio_high = 0;  ///< input per output token of the records that are taken; 0: all
  std::vector<RuleOnFleet> rules;
  std::vector<double> loads;  ///< open loop: no-cache prefill utilisation; 0: at the trace's own times
  std::vector<trace::View> views;
  std::vector<FleetSpec> replicas;
  std::vector<std::int64_t> capacities;  ///< KV tokens of a replica; 0: the profile's
  std::vector<std::int64_t> routers;
  std::int64_t seeds = 3;
  std::int64_t threads = 2;
};

/// One line of the table.
struct Cell {
  std::string rule;
  double load = 0;
  trace::View view;
  FleetSpec fleet;
  std::int64_t capacity = 0;
  std::int64_t routers = 1;
  std::vector<trace::SimulationFigures> runs;  ///< by seed

  using Pick = std::function<double(const trace::SimulationFigures&)>;
  [[nodiscard]] double mean(const Pick& pick) const;
  [[nodiscard]] double sum(const Pick& pick) const;
  [[nodiscard]] double half_range(const Pick& pick) const;
};

/// errors: of the trace, of the first simulation that was refused. Runs `threads` simulations at once; the result does
/// not depend on how many.
[[nodiscard]] Result<std::vector<Cell>> run(const Setup& setup);

[[nodiscard]] std::string table(const Setup& setup, const std::vector<Cell>& cells);
[[nodiscard]] std::string to_json(const Setup& setup, const std::vector<Cell>& cells);

/// TTFT against load, hit ratio against capacity, and load per replica over time, each where there is something to draw.
struct Plot {
  std::string name;
  std::string svg;
};
[[nodiscard]] std::vector<Plot> plots(const std::vector<Cell>& cells);

}  // namespace warmroute::simulate
