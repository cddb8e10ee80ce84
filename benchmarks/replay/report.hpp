/// The figures of one replay, as a table, as JSON, and as a plot of several runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "replay/client.hpp"
#include "warmroute/result.hpp"

namespace warmroute::replay {

struct LatencySummary {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};

/// How well the gateway foresaw `cached_tokens`, over the answers that have both numbers.
struct Foresight {
  std::int64_t requests = 0;
  std::int64_t exact = 0;          ///< equal to the token
  std::int64_t near = 0;           ///< within one block, exact ones included
  std::int64_t too_many = 0;       ///< of the others: fewer were there than expected
  std::int64_t too_few = 0;        ///< of the others: more were there
  std::int64_t off_tokens = 0;     ///< sum of the differences, either way
  std::int64_t cached_tokens = 0;  ///< sum of what was there

  [[nodiscard]] static double percent(std::int64_t part, std::int64_t of) {
    return of > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(of) : 0;
  }
};

struct ReplicaShare {
  std::int64_t requests = 0;
  std::int64_t tokens = 0;    ///< input and output
  std::int64_t uncached = 0;  ///< input tokens computed
};

/// units: milliseconds of simulated time unless the name says `wall`.
struct Report {
  std::string label;
  std::string scenario;
  double time_scale = 1, load = 0, wall_seconds = 0;
  std::int64_t requests = 0, completed = 0, retries = 0;
  std::map<std::string, std::int64_t> errors;  ///< by class
  LatencySummary ttft, ttft_wall, e2e, itl;
  std::vector<double> ttft_percentiles;  ///< shape: [0..100], the curve of the plot
  std::int64_t input_tokens = 0, cached_tokens = 0, output_tokens = 0;
  double hit_ratio = 0, bound_ratio = 0;
  Foresight foresight;
  double late_p99_wall = 0;  ///< how late requests were sent; much of it means that the machine could not follow
  double request_balance = 0, token_balance = 0;  ///< max / mean over replicas; 0: nobody said which replica answered
  std::map<std::string, ReplicaShare> replicas;

  [[nodiscard]] std::int64_t error_count() const;
  [[nodiscard]] double share_of_bound() const { return bound_ratio > 0 ? hit_ratio / bound_ratio : 0; }
};

/// What the run was, for the report.
struct RunFacts {
  std::string label;
  std::string scenario;
  double time_scale = 1;
  double load = 0;
  double wall_seconds = 0;
  double bound_ratio = 0;
  std::int64_t replicas = 0;       ///< that there are; those that got nothing count in the balance
  std::int64_t block_tokens = 16;  ///< what counts as near in the foresight
};

[[nodiscard]] Report summarise(const std::vector<Exchange>& exchanges, const RunFacts& facts);
/// returns: runs side by side, the first one as the yardstick.
[[nodiscard]] std::string table(const std::vector<Report>& reports);
[[nodiscard]] std::string to_json(const Report& report);
[[nodiscard]] Result<Report> from_json_file(const std::string& path);
/// returns: TTFT curves and hit ratios of the runs as one SVG picture.
[[nodiscard]] std::string to_svg(const std::vector<Report>& reports);
[[nodiscard]] Status write_file(const std::string& path, const std::string& text);

}  // namespace warmroute::replay
