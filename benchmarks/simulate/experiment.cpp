#include "simulate/experiment.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

namespace warmroute::simulate {
namespace {

using trace::Workload;
using Shared = std::shared_ptr<const Workload>;

/// Reads a file once and gives each cell and seed its workload.
class Workloads {
 public:
  explicit Workloads(const Setup& setup) : setup_(setup) {}

  Status read() {
    if (setup_.kind != Kind::trace) return {};
    trace::TraceOptions reading;
    reading.format = setup_.format;
    auto records = trace::read_trace(setup_.trace, setup_.limit, {}, reading);
    if (!records) return records.error();
    if (setup_.ratio_high > 0) {
      std::erase_if(*records, [&](const trace::TraceRecord& r) {
        const double ratio =
            static_cast<double>(r.input_tokens) / static_cast<double>(std::max<std::int64_t>(1, r.output_tokens));
        return ratio < setup_.ratio_low || ratio >= setup_.ratio_high;
      });
    }
    repeat(*records, setup_.agents.repeats);
    base_ = trace::open_loop(std::move(*records));
    if (base_.requests.empty()) return Error{Code::invalid_argument, setup_.trace + " holds no records", kNoOffset};
    return {};
  }

  // Traces: seeds break ties; closed loops: seeds are those of the start times.
  Result<Shared> get(double load, std::int64_t replicas, std::uint64_t seed) {
    const Key key{setup_.kind == Kind::trace ? load : 0, setup_.kind == Kind::trace ? replicas : 0,
                  setup_.kind == Kind::trace && setup_.jitter_us == 0 ? 0 : seed};
    if (const auto it = made_.find(key); it != made_.end()) return it->second;
    auto workload = make(load, replicas, seed);
    if (!workload) return workload.error();
    return made_[key] = std::make_shared<const Workload>(std::move(*workload));
  }

 private:
  // One after the other, each time with blocks and sessions of its own.
  static void repeat(std::vector<trace::TraceRecord>& records, std::size_t times) {
    const std::size_t once = records.size();
    if (once == 0) return;
    const std::int64_t span = records.back().arrival_us - records.front().arrival_us;
    const std::int64_t period = span + span / static_cast<std::int64_t>(once);
    for (std::size_t k = 1; k < times; ++k) {
      for (std::size_t i = 0; i < once; ++i) {
        trace::TraceRecord r = records[i];
        r.arrival_us += static_cast<std::int64_t>(k) * period;
        if (r.session != 0) r.session ^= std::uint64_t{k} << 48;
        for (std::uint64_t& block : r.blocks) block ^= std::uint64_t{k} << 48;
        records.push_back(std::move(r));
      }
    }
  }

  using Key = std::tuple<double, std::int64_t, std::uint64_t>;

  Result<Workload> make(double load, std::int64_t replicas, std::uint64_t seed) {
    if (setup_.kind == Kind::hot) {
      auto options = setup_.hot;
      options.seed = seed;
      return trace::hot_prefix(options);
    }
    if (setup_.kind == Kind::agents) {
      auto options = setup_.agents;
      options.seed = seed;
      options.limit = setup_.limit;
      return trace::read_agent_trace(setup_.trace, options);
    }
    Workload workload = base_;
    if (load > 0) {
      const auto permille = static_cast<std::int64_t>(load * 1000 + 0.5);
      trace::scale_arrivals(workload,
                            trace::speed_permille_for_load(workload, setup_.base.replica.hardware, replicas, permille));
    }
    if (setup_.jitter_us > 0) {
      trace::SplitMix64 random{seed};
      for (auto& r : workload.requests) r.arrival_us += random.between(0, setup_.jitter_us);
    }
    return workload;
  }

  const Setup& setup_;
  Workload base_;
  std::map<Key, Shared> made_;
};

std::vector<Cell> cells_of(const Setup& setup) {
  std::vector<Cell> cells;
  for (const FleetSpec& fleet : setup.replicas) {
    for (const double load : setup.loads) {
      for (const std::int64_t capacity : setup.capacities) {
        for (const std::int64_t routers : setup.routers) {
          for (const trace::View& view : setup.views) {
            for (const RuleOnFleet& on : setup.rules)
              cells.push_back({on.rule, load, view, on.fleet.value_or(fleet), capacity, routers, {}});
          }
        }
      }
    }
  }
  return cells;
}

struct Job {
  Cell* cell;
  std::size_t seed;
  Shared workload;
};

Result<trace::SimulationFigures> simulate_one(const Setup& setup, const Job& job) {
  trace::SimulationConfig config = setup.base;
  config.replicas = job.cell->fleet.replicas;
  config.prefill_replicas = job.cell->fleet.prefill;
  config.decode_replicas = job.cell->fleet.decode;
  config.replica.capacity_tokens = job.cell->capacity;
  config.rule = job.cell->rule;
  config.view = job.cell->view;
  config.routers = job.cell->routers;
  config.seed = job.seed + 1;
  if (config.rule == "pooled") {  // the bound from above
    config.rule = "ttft";
    config.pooled = true;
  }
  return trace::simulate(config, *job.workload);
}

}  // namespace

double Cell::mean(const Pick& pick) const { return runs.empty() ? 0 : sum(pick) / static_cast<double>(runs.size()); }
double Cell::sum(const Pick& pick) const {
  double total = 0;
  for (const auto& run : runs) total += pick(run);
  return total;
}
double Cell::half_range(const Pick& pick) const {
  if (runs.empty()) return 0;
  double low = pick(runs[0]), high = low;
  for (const auto& run : runs) {
    low = std::min(low, pick(run));
    high = std::max(high, pick(run));
  }
  return (high - low) / 2;
}

Result<std::vector<Cell>> run(const Setup& setup) {
  Workloads workloads(setup);
  if (const Status read = workloads.read(); !read) return read.error();
  std::vector<Cell> cells = cells_of(setup);
  std::vector<Job> jobs;
  for (Cell& cell : cells) {
    cell.runs.resize(static_cast<std::size_t>(setup.seeds));
    for (std::size_t seed = 0; seed < cell.runs.size(); ++seed) {
      auto workload = workloads.get(cell.load, cell.fleet.replicas, seed + 1);
      if (!workload) return workload.error();
      jobs.push_back({&cell, seed, *workload});
    }
  }
  std::atomic<std::size_t> next{0};
  std::mutex failing;
  std::size_t failed_at = jobs.size();
  Error failure;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      auto figures = simulate_one(setup, jobs[i]);
      if (figures) {
        jobs[i].cell->runs[jobs[i].seed] = std::move(*figures);
        continue;
      }
      const std::lock_guard lock(failing);
      if (i < failed_at) {
        failed_at = i;
        failure = figures.error();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::int64_t t = 1; t < setup.threads; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failed_at < jobs.size()) return failure;
  return cells;
}

}  // namespace warmroute::simulate
