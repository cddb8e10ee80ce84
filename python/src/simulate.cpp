// A fleet behind a routing policy under a virtual clock: workloads in, figures out.
#include "warmroute/trace/simulator.hpp"

#include <utility>
#include <vector>

#include "trace.hpp"

namespace warmroute::python {
namespace {

using trace::HardwareProfile;
using trace::LatencyFigures;
using trace::SimulationConfig;
using trace::SimulationFigures;
using trace::TraceRecord;
using trace::Workload;

const HardwareProfile& profile_of(const std::string& name) {
  const HardwareProfile* found = trace::find_hardware_profile(name);
  if (found != nullptr) return *found;
  std::string message = "'" + name + "' is no profile: use one of";
  for (const HardwareProfile& known : trace::hardware_profiles()) message += " " + std::string(known.name);
  throw py::value_error(message);
}

Workload workload_of_records(const py::typing::Iterable<TraceRecord>& records, std::int64_t block_tokens) {
  std::vector<TraceRecord> copies;
  for (const py::handle record : records) copies.push_back(record.cast<const TraceRecord&>());
  return without_gil([&] { return trace::open_loop(std::move(copies), block_tokens); });
}

Workload workload_at_load(const Workload& workload, double load, const std::string& profile, std::int64_t replicas) {
  const HardwareProfile& hardware = profile_of(profile);
  if (!(load > 0 && load <= 1'000)) throw py::value_error("load must lie in (0, 1000]");
  return without_gil([&] {
    Workload out = workload;
    const auto permille = static_cast<std::int64_t>(load * 1'000 + 0.5);
    scale_arrivals(out, speed_permille_for_load(workload, hardware, replicas, permille));
    return out;
  });
}

void bind_workload(py::module_& m) {
  const trace::AgentTraceOptions agents;
  const trace::HotPrefixOptions hot;
  py::class_<Workload>(m, "Workload",
                       "What a simulation serves: requests with their prompts as block ids, and who follows whom.")
      .def_static("open_loop", &workload_of_records, py::arg("records"), py::kw_only(), py::arg("block_tokens") = 0,
                  "Records of a trace at their own times, spread inside equal timestamps. block_tokens 0: the first "
                  "record's.")
      .def_static(
          "agents",
          [](const py::object& path, double conversations_per_second, std::uint64_t seed, std::int64_t think_cap_us,
             bool share_system_prompts, std::size_t limit, std::size_t repeats) {
            const std::string name = path_of(path);
            return value_of(without_gil([&] {
              return trace::read_agent_trace(
                  name, {conversations_per_second, seed, think_cap_us, share_system_prompts, limit, repeats});
            }));
          },
          py::arg("path"), py::kw_only(), py::arg("conversations_per_second") = agents.conversations_per_second,
          py::arg("seed") = agents.seed, py::arg("think_cap_us") = agents.think_cap_us,
          py::arg("share_system_prompts") = agents.share_system_prompts, py::arg("limit") = agents.limit,
          py::arg("repeats") = agents.repeats,
          "Conversations of coding agents (the weka form) as closed loops. errors: Error, as TraceReader.")
      .def_static(
          "hot_prefix",
          [](std::int64_t count, std::int64_t turns, std::int64_t system_tokens, std::int64_t block_tokens,
             std::uint64_t seed) {
            return without_gil([&] { return trace::hot_prefix({count, turns, system_tokens, block_tokens, seed}); });
          },
          py::kw_only(), py::arg("agents") = hot.agents, py::arg("turns") = hot.turns,
          py::arg("system_tokens") = hot.system_tokens, py::arg("block_tokens") = hot.block_tokens,
          py::arg("seed") = hot.seed, "Agents behind one system prompt.")
      .def("at_load", &workload_at_load, py::arg("load"), py::arg("profile"), py::arg("replicas"),
           "The same sped up (or slowed down) so that so many replicas would spend `load` of the time on prefill if "
           "nothing were\ncached; at load 1 all of it. Only arrivals of those that follow nobody move.")
      .def_property_readonly("closed_loop", &Workload::closed_loop)
      .def("__len__", [](const Workload& w) { return w.requests.size(); });
}

py::dict latency_dict(const LatencyFigures& f) {
  py::dict out;
  out["mean_us"] = f.mean_us;
  out["p50_us"] = f.p50_us;
  out["p90_us"] = f.p90_us;
  out["p99_us"] = f.p99_us;
  out["max_us"] = f.max_us;
  return out;
}

py::dict figures_dict(const SimulationFigures& f) {
  py::dict out;
  out["requests"] = f.requests;
  out["completed"] = f.completed;
  out["rejected"] = f.rejected;
  out["sent_again"] = f.sent_again;
  out["unplaced"] = f.unplaced;
  out["ttft"] = latency_dict(f.ttft);
  out["itl"] = latency_dict(f.itl);
  out["e2e"] = latency_dict(f.e2e);
  out["goodput"] = f.goodput;
  out["goodput_rate"] = f.goodput_rate;
  out["pairs"] = f.pairs;
  out["transferred_tokens"] = f.transferred_tokens;
  out["transfer"] = latency_dict(f.transfer);
  out["input_tokens"] = f.input_tokens;
  out["cached_tokens"] = f.cached_tokens;
  out["output_tokens"] = f.output_tokens;
  out["hit_ratio"] = f.hit_ratio;
  out["bound_ratio"] = f.bound_ratio;
  out["busy_imbalance"] = f.busy_imbalance;
  out["prefill_imbalance"] = f.prefill_imbalance;
  out["token_imbalance"] = f.token_imbalance;
  out["utilisation"] = f.utilisation;
  out["spill_ratio"] = f.spill_ratio;
  out["duplicates"] = f.duplicates;
  out["evictions"] = f.evictions;
  out["preemptions"] = f.preemptions;
  out["makespan_us"] = f.makespan_us;
  out["dollars"] = f.dollars;
  out["tokens_per_dollar"] = f.tokens_per_dollar;
  return out;
}

AnyDict simulate_fleet(const Workload& workload, const std::string& profile, std::int64_t replicas, std::string rule,
                       const std::optional<Policy>& policy, std::vector<std::int64_t> capacities,
                       const std::string& view, std::int64_t snapshot_us, std::int64_t event_delay_us,
                       double event_loss, bool waiting_tokens, std::int64_t routers, bool pin_conversations,
                       bool gateway_ring, std::int64_t forward_us, std::int64_t share_loads_us, bool share_placements,
                       std::int64_t prefill_replicas, std::int64_t decode_replicas, std::int64_t transfer_token_ps,
                       std::int64_t transfer_latency_us, const std::string& churn, std::uint64_t seed,
                       std::int64_t warm_up_us, std::int64_t horizon_us, std::int64_t slo_ttft_us,
                       std::int64_t slo_itl_us) {
  SimulationConfig config;
  config.replica.hardware = profile_of(profile);
  config.replicas = replicas;
  config.rule = std::move(rule);
  if (policy) config.policy = *policy;
  const auto known = trace::find_view(view);
  if (!known) {
    std::string message = "'" + view + "' is no view: use one of";
    for (const trace::View& v : trace::views()) message += " " + std::string(v.name);
    throw py::value_error(message);
  }
  if (!(event_loss >= 0 && event_loss <= 1)) throw py::value_error("event_loss must lie in [0, 1]");
  config.capacities = std::move(capacities);
  config.view = *known;
  config.view.snapshot_us = snapshot_us;
  config.view.waiting_tokens = waiting_tokens;
  config.view.event_delay_us = event_delay_us;
  config.view.event_loss_permille = static_cast<std::int64_t>(event_loss * 1'000 + 0.5);
  config.routers = routers;
  config.pin_conversations = pin_conversations;
  config.gateway_ring = gateway_ring;
  config.forward_us = forward_us;
  config.share_loads_us = share_loads_us;
  config.share_placements = share_placements;
  config.prefill_replicas = prefill_replicas;
  config.decode_replicas = decode_replicas;
  config.transfer_token_ps = transfer_token_ps;
  config.transfer_latency_us = transfer_latency_us;
  if (!churn.empty()) config.churn = value_of(trace::parse_churn(churn));
  config.seed = seed;
  config.warm_up_us = warm_up_us;
  config.horizon_us = horizon_us;
  config.slo_ttft_us = slo_ttft_us;
  config.slo_itl_us = slo_itl_us;
  return AnyDict(figures_dict(value_of(without_gil([&] { return trace::simulate(config, workload); }))));
}

}  // namespace

void bind_simulate(py::module_& m) {
  const SimulationConfig d;
  bind_workload(m);
  m.def("simulate_fleet", &simulate_fleet, py::arg("workload"), py::kw_only(), py::arg("profile"),
        py::arg("replicas") = d.replicas, py::arg("rule") = d.rule, py::arg("policy") = std::optional<Policy>{},
        py::arg("capacities") = d.capacities, py::arg("view") = std::string(d.view.name),
        py::arg("snapshot_us") = d.view.snapshot_us, py::arg("event_delay_us") = d.view.event_delay_us,
        py::arg("event_loss") = 0.0, py::arg("waiting_tokens") = d.view.waiting_tokens, py::arg("routers") = d.routers,
        py::arg("pin_conversations") = d.pin_conversations, py::arg("gateway_ring") = d.gateway_ring,
        py::arg("forward_us") = d.forward_us, py::arg("share_loads_us") = d.share_loads_us,
        py::arg("share_placements") = d.share_placements, py::arg("prefill_replicas") = d.prefill_replicas,
        py::arg("decode_replicas") = d.decode_replicas, py::arg("transfer_token_ps") = d.transfer_token_ps,
        py::arg("transfer_latency_us") = d.transfer_latency_us, py::arg("churn") = "", py::arg("seed") = d.seed,
        py::arg("warm_up_us") = d.warm_up_us, py::arg("horizon_us") = d.horizon_us,
        py::arg("slo_ttft_us") = d.slo_ttft_us, py::arg("slo_itl_us") = d.slo_itl_us);
  m.def(
      "hardware_profiles",
      [] {
        std::vector<std::string> names;
        for (const HardwareProfile& profile : trace::hardware_profiles()) names.emplace_back(profile.name);
        return names;
      },
      "The names of the built-in hardware profiles.");
  m.def(
      "routing_rules",
      [] {
        std::vector<std::string> names;
        for (const std::string_view name : trace::routing_rule_names()) names.emplace_back(name);
        return names;
      },
      "The names of the rules that a simulation can route by; options stand behind them: 'chwbl:c=1.25:k=2'.");
  m.def(
      "simulation_views",
      [] {
        std::vector<std::string> names;
        for (const trace::View& view : trace::views()) names.emplace_back(view.name);
        return names;
      },
      "The names of what a rule may know of load and caches.");
}

}  // namespace warmroute::python
