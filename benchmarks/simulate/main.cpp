// warmroute-simulate: what a routing policy does to a whole fleet, in seconds and without one.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include "absl/flags/flag.h"
#include "common/flags.hpp"
#include "simulate/experiment.hpp"
#include "warmroute/route/policy_json.hpp"

ABSL_FLAG(std::string, workload, "trace",
          "trace: open loop from a --trace, or closed loops where it holds conversations (weka); agents: the latter "
          "alone; hot: agents behind one system prompt");
ABSL_FLAG(std::string, trace, "", "a trace of a public form, plain or gzip");
ABSL_FLAG(std::string, format, "automatic",
          "its form: mooncake, qwen, burstgpt, azure, ragpulse, weka; automatic: by its first line");
ABSL_FLAG(std::uint64_t, limit, 0, "take the first n records, or conversations; 0: all");
ABSL_FLAG(std::string, profile, "70b-8xh100", "hardware of the replicas; \"list\" shows all");
ABSL_FLAG(std::string, replicas, "8",
          "one or several fleets: a number, or \"4+4\" that only prefill + only decode, or \"2+2+4\" with unified ones "
          "behind; a policy may name its own, as in pd:always@4+4");
ABSL_FLAG(double, link_gbps, 400, "bandwidth on which a replica sends KV to others, Gbit/s");
ABSL_FLAG(double, transfer_ms, 5, "latency of such a transfer, whatever its size");
ABSL_FLAG(
    std::string, limits, "",
    "ttft_ms,itl_ms: the goodput counts requests within both, the ITL being a request's mean; rules pd: are told");
ABSL_FLAG(std::string, ratio, "",
          "low,high: of a trace, only requests with so many input tokens per output token: 30,1e9 is heavy on prefill");
ABSL_FLAG(std::string, load, "0.7,0.9", "no-cache prefill utilisations; 0: at the trace's own times");
ABSL_FLAG(std::string, policy, "warmroute,least,dynamo,gaie,llmd,lmetric,H,pooled",
          "rules, name:option=value; \"list\" shows all");
ABSL_FLAG(std::string, policy_json, "", "file with the policy that the rule warmroute starts from");
ABSL_FLAG(std::string, view, "perfect", "what routers see; \"list\" shows all");
ABSL_FLAG(double, snapshot_ms, 100, "S: interval of load snapshots");
ABSL_FLAG(double, delay_ms, 50, "D: delay of cache events");
ABSL_FLAG(double, loss, 0, "share of cache events that are lost");
ABSL_FLAG(double, capacity_factor, 1, "believed capacity / true one, for views of own routing");
ABSL_FLAG(std::string, capacities, "", "KV tokens of the replicas in turn, where they differ: 300000,2200000");
ABSL_FLAG(std::string, capacity, "0", "KV tokens of a replica, one or several; 0: the profile's");
ABSL_FLAG(std::string, routers, "1", "routers side by side, one or several numbers; requests are sprayed over them");
ABSL_FLAG(bool, pin, false, "a conversation keeps its router instead");
ABSL_FLAG(bool, ring, false, "a router that gets a request of another's, by the ring of gateways, forwards it there");
ABSL_FLAG(double, forward_ms, 0.5, "from one router to another");
ABSL_FLAG(double, share_ms, 0, "routers tell one another at such intervals what they have in flight; 0: never");
ABSL_FLAG(bool, share_placements, false, "and at the same intervals, what they have sent where");
ABSL_FLAG(bool, waiting_tokens, false, "snapshots of engines also say how many prompt tokens are still to be computed");
ABSL_FLAG(std::string, churn, "",
          "what happens to the fleet: \"60 remove 3, 90 add, 20 flap 1 5, 100 rolling 0-7 10, 30 speed 2 500\"");
ABSL_FLAG(std::int64_t, seeds, 3, "runs of each: seeds break ties of traces, and draw start times of closed loops");
ABSL_FLAG(double, jitter_ms, 0,
          "traces: arrivals come up to so much later, drawn by the seed: the spread of rules without ties");
ABSL_FLAG(std::int64_t, threads, 2, "simulations at once");
ABSL_FLAG(double, rate, 0.1, "agents: conversations that start per second");
ABSL_FLAG(double, think_cap_s, 60, "agents: longer pauses are cut to this");
ABSL_FLAG(bool, share_system_prompts, false, "agents: equal tool and system lengths are the same blocks");
ABSL_FLAG(std::uint64_t, repeats, 1, "agents, traces: how often the set is played, each time with blocks of its own");
ABSL_FLAG(std::int64_t, agents, 50, "hot: how many");
ABSL_FLAG(std::int64_t, turns, 20, "hot: turns of each");
ABSL_FLAG(std::int64_t, system_tokens, 6144, "hot: length of the system prompt");
ABSL_FLAG(double, warmup_s, 0, "requests that arrive before do not count");
ABSL_FLAG(double, horizon_s, 0, "arrivals behind it are dropped; 0: none");
ABSL_FLAG(std::int64_t, budget, 8192, "tokens of an engine step at most");
ABSL_FLAG(std::int64_t, max_running, 256, "requests in a step at most");
ABSL_FLAG(double, price, 0, "dollars per replica-hour; 0: the profile's");
ABSL_FLAG(double, slo_s, 2, "the goodput counts requests whose first token came within this");
ABSL_FLAG(bool, per_request, false, "with --json: arrival, TTFT, cached tokens and replica of each request, too");
ABSL_FLAG(double, sample_s, 0, "plot the load per replica at such intervals");
ABSL_FLAG(std::string, svg, "", "write plots into this folder");
ABSL_FLAG(std::string, json, "", "write the figures to this file; \"-\": to standard output instead of the table");

namespace warmroute::simulate {
namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "warmroute-simulate: %s\n", message.c_str());
  return 2;
}

std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> out;
  std::stringstream stream(text);
  for (std::string piece; std::getline(stream, piece, ',');) {
    if (!piece.empty()) out.push_back(piece);
  }
  return out;
}

Result<std::vector<double>> numbers(const char* flag, const std::string& text, double low, double high) {
  std::vector<double> out;
  for (const std::string& piece : pieces(text)) {
    char* end = nullptr;
    out.push_back(std::strtod(piece.c_str(), &end));
    if (*end != '\0' || !(out.back() >= low && out.back() <= high))
      return Error{Code::invalid_argument, std::string("--") + flag + ": \"" + piece + "\" is no number in range",
                   kNoOffset};
  }
  if (out.empty()) return Error{Code::invalid_argument, std::string("--") + flag + " is empty", kNoOffset};
  return out;
}

std::optional<FleetSpec> fleet_of(const std::string& text) {
  std::vector<std::int64_t> parts;
  std::stringstream stream(text);
  for (std::string piece; std::getline(stream, piece, '+');) {
    char* end = nullptr;
    parts.push_back(std::strtoll(piece.c_str(), &end, 10));
    if (piece.empty() || *end != '\0' || parts.back() < 0 || parts.back() > 16'384) return std::nullopt;
  }
  if (parts.empty() || parts.size() > 3) return std::nullopt;
  if (parts.size() == 1) return parts[0] < 1 ? std::nullopt : std::optional(FleetSpec{parts[0], 0, 0});
  if (parts.size() == 2) parts.push_back(0);
  return FleetSpec{parts[0] + parts[1] + parts[2], parts[0], parts[1]};
}

std::vector<std::int64_t> whole(const std::vector<double>& values) {
  std::vector<std::int64_t> out;
  for (const double v : values) out.push_back(static_cast<std::int64_t>(v + 0.5));
  return out;
}

std::int64_t micros(double seconds) { return static_cast<std::int64_t>(seconds * 1e6 + 0.5); }

Status set_hardware(trace::SimulationConfig& config) {
  const auto* hardware = trace::find_hardware_profile(absl::GetFlag(FLAGS_profile));
  if (hardware == nullptr)
    return Error{Code::invalid_argument, "--profile names no known hardware; --profile list shows all", kNoOffset};
  config.replica.hardware = *hardware;
  config.replica.step_token_budget = absl::GetFlag(FLAGS_budget);
  config.replica.max_running = absl::GetFlag(FLAGS_max_running);
  if (const double price = absl::GetFlag(FLAGS_price); price > 0)
    config.replica.hardware.cents_per_hour = static_cast<std::int64_t>(price * 100 + 0.5);
  return {};
}

Status set_policy(trace::SimulationConfig& config) {
  const std::string path = absl::GetFlag(FLAGS_policy_json);
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Code::io, path + ": cannot be read", kNoOffset};
  auto policy = policy_from_json(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!policy) return Error{policy.code(), path + ": " + policy.error().message, kNoOffset};
  config.policy = *policy;
  return {};
}

Status set_views(Setup& setup) {
  const double loss = absl::GetFlag(FLAGS_loss);
  if (!(loss >= 0 && loss <= 1)) return Error{Code::invalid_argument, "--loss must lie in 0..1", kNoOffset};
  for (const std::string& name : pieces(absl::GetFlag(FLAGS_view))) {
    auto view = trace::find_view(name);
    if (!view)
      return Error{Code::invalid_argument, "there is no view \"" + name + "\"; --view list shows all", kNoOffset};
    view->snapshot_us = micros(absl::GetFlag(FLAGS_snapshot_ms) / 1e3);
    view->event_delay_us = micros(absl::GetFlag(FLAGS_delay_ms) / 1e3);
    view->event_loss_permille = static_cast<std::int64_t>(loss * 1000 + 0.5);
    view->capacity_factor_permille = static_cast<std::int64_t>(absl::GetFlag(FLAGS_capacity_factor) * 1000 + 0.5);
    view->waiting_tokens = absl::GetFlag(FLAGS_waiting_tokens);
    setup.views.push_back(*view);
  }
  return {};
}

Status set_workload(Setup& setup) {
  const std::string kind = absl::GetFlag(FLAGS_workload);
  if (kind != "trace" && kind != "agents" && kind != "hot")
    return Error{Code::invalid_argument, "--workload must be trace, agents or hot", kNoOffset};
  setup.kind = kind == "trace" ? Kind::trace : kind == "agents" ? Kind::agents : Kind::hot;
  setup.trace = absl::GetFlag(FLAGS_trace);
  if (setup.trace.empty() && setup.kind != Kind::hot)
    return Error{Code::invalid_argument,
                 "--trace is missing. The conversation trace is FAST25-release/traces/conversation_trace.jsonl of "
                 "github.com/kvcache-ai/Mooncake",
                 kNoOffset};
  if (setup.kind == Kind::trace) {
    const auto format = trace::trace_format_from_name(absl::GetFlag(FLAGS_format));
    if (!format) return Error{Code::invalid_argument, "--format names no known form; see --help", kNoOffset};
    setup.format = *format;
    if (setup.format == trace::TraceFormat::automatic) {
      const auto detected = trace::detect_trace_format_of_file(setup.trace);
      if (!detected) return detected.error();
      setup.format = *detected;
    }
    if (setup.format == trace::TraceFormat::weka) setup.kind = Kind::agents;
  }
  setup.limit = absl::GetFlag(FLAGS_limit);
  setup.jitter_us = micros(absl::GetFlag(FLAGS_jitter_ms) / 1e3);
  setup.agents.conversations_per_second = absl::GetFlag(FLAGS_rate);
  setup.agents.think_cap_us = micros(absl::GetFlag(FLAGS_think_cap_s));
  setup.agents.share_system_prompts = absl::GetFlag(FLAGS_share_system_prompts);
  setup.agents.repeats = absl::GetFlag(FLAGS_repeats);
  setup.hot.agents = absl::GetFlag(FLAGS_agents);
  setup.hot.turns = absl::GetFlag(FLAGS_turns);
  setup.hot.system_tokens = absl::GetFlag(FLAGS_system_tokens);
  return {};
}

Status set_fleets(Setup& setup) {
  const auto refuse = [](const std::string& text) {
    return Error{Code::invalid_argument,
                 "\"" + text + "\" is no fleet: a number, prefill+decode or prefill+decode+unified", kNoOffset};
  };
  for (const std::string& piece : pieces(absl::GetFlag(FLAGS_replicas))) {
    const auto fleet = fleet_of(piece);
    if (!fleet) return refuse(piece);
    setup.replicas.push_back(*fleet);
  }
  for (const std::string& rule : pieces(absl::GetFlag(FLAGS_policy))) {
    const std::size_t at = rule.find('@');
    std::optional<FleetSpec> own;
    if (at != std::string::npos && !(own = fleet_of(rule.substr(at + 1)))) return refuse(rule.substr(at + 1));
    setup.rules.push_back({rule.substr(0, at), own});
  }
  if (setup.replicas.empty()) return Error{Code::invalid_argument, "--replicas is empty", kNoOffset};
  const double gbps = absl::GetFlag(FLAGS_link_gbps);
  if (!(gbps > 0)) return Error{Code::invalid_argument, "--link_gbps must be positive", kNoOffset};
  setup.base.transfer_latency_us = micros(absl::GetFlag(FLAGS_transfer_ms) / 1e3);
  setup.base.transfer_token_ps = static_cast<std::int64_t>(
      static_cast<double>(setup.base.replica.hardware.kv_bytes_per_token) * 8'000 / gbps + 0.5);
  return {};
}

Status set_limits(Setup& setup) {
  if (const std::string text = absl::GetFlag(FLAGS_limits); !text.empty()) {
    const auto limits = numbers("limits", text, 0, 1e7);
    if (!limits) return limits.error();
    if (limits->size() != 2) return Error{Code::invalid_argument, "--limits must be ttft_ms,itl_ms", kNoOffset};
    setup.base.slo_ttft_us = micros((*limits)[0] / 1e3);
    setup.base.slo_itl_us = micros((*limits)[1] / 1e3);
  }
  if (const std::string text = absl::GetFlag(FLAGS_ratio); !text.empty()) {
    const auto ratio = numbers("ratio", text, 0, 1e12);
    if (!ratio) return ratio.error();
    if (ratio->size() != 2) return Error{Code::invalid_argument, "--ratio must be low,high", kNoOffset};
    setup.ratio_low = (*ratio)[0];
    setup.ratio_high = (*ratio)[1];
  }
  return {};
}

Status set_axes(Setup& setup) {
  const auto loads = numbers("load", setup.kind == Kind::trace ? absl::GetFlag(FLAGS_load) : "0", 0, 1000);
  const auto capacities = numbers("capacity", absl::GetFlag(FLAGS_capacity), 0, 1e12);
  const auto routers = numbers("routers", absl::GetFlag(FLAGS_routers), 1, 1'024);
  for (const auto* list : {&loads, &capacities, &routers}) {
    if (!*list) return list->error();
  }
  if (const std::string text = absl::GetFlag(FLAGS_capacities); !text.empty()) {
    const auto uneven = numbers("capacities", text, 1, 1e12);
    if (!uneven) return uneven.error();
    setup.base.capacities = whole(*uneven);
  }
  setup.loads = *loads;
  setup.capacities = whole(*capacities);
  setup.routers = whole(*routers);
  setup.seeds = absl::GetFlag(FLAGS_seeds);
  setup.threads = absl::GetFlag(FLAGS_threads);
  if (setup.seeds < 1 || setup.threads < 1)
    return Error{Code::invalid_argument, "--seeds and --threads must be at least 1", kNoOffset};
  return {};
}

Result<Setup> setup_from_flags() {
  Setup setup;
  if (auto s = set_hardware(setup.base); !s) return s.error();
  if (auto s = set_policy(setup.base); !s) return s.error();
  if (auto s = set_views(setup); !s) return s.error();
  if (auto s = set_workload(setup); !s) return s.error();
  if (auto s = set_axes(setup); !s) return s.error();
  if (auto s = set_fleets(setup); !s) return s.error();
  auto churn = trace::parse_churn(absl::GetFlag(FLAGS_churn));
  if (!churn) return churn.error();
  setup.base.churn = *churn;
  setup.base.pin_conversations = absl::GetFlag(FLAGS_pin);
  setup.base.gateway_ring = absl::GetFlag(FLAGS_ring);
  setup.base.forward_us = micros(absl::GetFlag(FLAGS_forward_ms) / 1e3);
  setup.base.share_loads_us = micros(absl::GetFlag(FLAGS_share_ms) / 1e3);
  setup.base.share_placements = absl::GetFlag(FLAGS_share_placements);
  setup.base.warm_up_us = micros(absl::GetFlag(FLAGS_warmup_s));
  setup.base.horizon_us = micros(absl::GetFlag(FLAGS_horizon_s));
  setup.base.sample_us = micros(absl::GetFlag(FLAGS_sample_s));
  setup.base.keep_requests = absl::GetFlag(FLAGS_per_request);
  setup.base.slo_ttft_us = micros(absl::GetFlag(FLAGS_slo_s));
  if (auto s = set_limits(setup); !s) return s.error();
  return setup;
}

bool list_asked_for() {
  if (absl::GetFlag(FLAGS_policy) == "list") {
    for (const auto name : trace::routing_rule_names()) std::printf("%s\n", std::string(name).c_str());
    return true;
  }
  if (absl::GetFlag(FLAGS_view) == "list") {
    for (const auto& view : trace::views()) std::printf("%s\n", std::string(view.name).c_str());
    return true;
  }
  if (absl::GetFlag(FLAGS_profile) != "list") return false;
  for (const auto& p : trace::hardware_profiles()) {
    std::printf("%-14s F %5.1f ms, a %.3f ms/token, KV %lld tokens, %.2f $/h, %lld rank(s) in step\n",
                std::string(p.name).c_str(), static_cast<double>(p.floor_ps) / 1e9,
                static_cast<double>(p.per_token_ps) / 1e9, static_cast<long long>(p.kv_tokens),
                static_cast<double>(p.cents_per_hour) / 100, static_cast<long long>(p.group_ranks));
  }
  return true;
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

int main_with_flags() {
  if (list_asked_for()) return 0;
  const auto setup = setup_from_flags();
  if (!setup) return fail(setup.error().message);
  const auto cells = run(*setup);
  if (!cells) return fail(cells.error().message);
  const std::string json = absl::GetFlag(FLAGS_json);
  std::fputs((json == "-" ? to_json(*setup, *cells) : table(*setup, *cells)).c_str(), stdout);
  if (!json.empty() && json != "-" && !write(json, to_json(*setup, *cells))) return fail(json + " cannot be written");
  if (const std::string folder = absl::GetFlag(FLAGS_svg); !folder.empty()) {
    for (const Plot& plot : plots(*cells)) {
      const std::string path = folder + "/" + plot.name;
      if (!write(path, plot.svg)) return fail(path + " cannot be written");
      std::fprintf(stderr, "plot: %s\n", path.c_str());
    }
  }
  return 0;
}

}  // namespace
}  // namespace warmroute::simulate

int main(int argc, char** argv) {
  warmroute::examples::parse_flags_only(
      argc, argv,
      "Simulates a fleet behind routing policies and prints policies x loads x views.\n"
      "  warmroute-simulate --trace conversation_trace.jsonl --profile 70b-8xh100 --replicas 8 --load 0.7,0.9 --policy "
      "warmroute,dynamo\n"
      "  warmroute-simulate --trace conversation_trace.jsonl --limits 3000,40 --ratio 30,1e9 --load 0.5 --policy "
      "pd:unified,pd:always@4+4,pd:decided\n"
      "  warmroute-simulate --workload agents --trace agents.jsonl.gz --rate 0.2 --policy warmroute,H --seeds 10\n"
      "  warmroute-simulate --workload hot --policy warmroute:hot=0,warmroute --view own-approx --routers 1,8");
  return warmroute::simulate::main_with_flags();
}
