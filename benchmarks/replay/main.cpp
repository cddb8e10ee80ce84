// warmroute-replay: sends a trace, or a crowd of agents, to an OpenAI-compatible server and reports what clients saw.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "common/flags.hpp"
#include "replay/client.hpp"
#include "replay/report.hpp"
#include "replay/runner.hpp"
#include "warmroute/trace/trace.hpp"

ABSL_FLAG(std::string, url, "http://127.0.0.1:8080", "base URL of the server");
ABSL_FLAG(std::string, model, "toy-70b", "model to ask for");
ABSL_FLAG(std::string, scenario, "trace",
          "trace: open loop from --trace; agents: closed loop behind one system prompt");
ABSL_FLAG(std::string, trace, "", "a trace of a public form, plain or gzip");
ABSL_FLAG(std::string, format, "automatic",
          "its form: mooncake, qwen, burstgpt, azure, ragpulse, weka; automatic: by its first line");
ABSL_FLAG(double, conversation_gap, 10, "weka: so many seconds from one conversation's start to the next one's");
ABSL_FLAG(std::uint64_t, limit, 0, "take the first n records; 0: all");
ABSL_FLAG(double, time_scale, 1.0, "simulated seconds per real second, as given to the engines");
ABSL_FLAG(double, load, 0.0,
          "send so fast that prefill without caches would keep the replicas busy this share of the time; "
          "0: at the trace's own times");
ABSL_FLAG(std::string, profile, "70b-8xh100", "hardware of the replicas, for --load");
ABSL_FLAG(std::int64_t, replicas, 4, "number of replicas, for --load and the balance");
ABSL_FLAG(std::int64_t, block_size, 16, "tokens per block of the engines: what counts as near in the foresight");
ABSL_FLAG(std::int64_t, agents, 50, "agents scenario: how many");
ABSL_FLAG(std::int64_t, turns, 20, "agents scenario: turns of each");
ABSL_FLAG(std::int64_t, system_tokens, 6144, "agents scenario: length of the shared system prompt");
ABSL_FLAG(std::int64_t, system_prompts, 1, "agents scenario: different system prompts; agents take them in turn");
ABSL_FLAG(std::int64_t, turn_tokens, 0, "agents scenario: mean of what a turn adds; 0: the scenario's own");
ABSL_FLAG(std::int64_t, answer_tokens, 0, "agents scenario: of every answer; 0: the scenario's own");
ABSL_FLAG(double, think_seconds, 0, "agents scenario: mean between answer and next turn; 0: the scenario's own");
ABSL_FLAG(std::uint64_t, seed, 1, "of prompts and think times; other seeds share no text");
ABSL_FLAG(int, retries, 0, "how often the client itself tries again");
ABSL_FLAG(double, timeout_seconds, 300, "real time until a request is given up");
ABSL_FLAG(double, wait_seconds, 10, "real time to wait for the server to come up");
ABSL_FLAG(std::string, label, "", "name of this run in tables and plots");
ABSL_FLAG(std::string, json, "", "write the figures to this file");
ABSL_FLAG(std::string, svg, "", "write the plot to this file");
ABSL_FLAG(bool, compare, false, "send nothing; put the JSON files given as arguments side by side");

namespace warmroute::replay {
namespace {

int fail(const std::string& message) {
  std::fprintf(stderr, "warmroute-replay: %s\n", message.c_str());
  return 2;
}

int show(const std::vector<Report>& reports) {
  std::fputs(table(reports).c_str(), stdout);
  const std::string svg = absl::GetFlag(FLAGS_svg);
  if (svg.empty()) return 0;
  if (const auto written = write_file(svg, to_svg(reports)); !written) return fail(written.error().message);
  std::printf("plot: %s\n", svg.c_str());
  return 0;
}

int compare(const std::vector<std::string>& files) {
  if (files.empty()) return fail("--compare needs the JSON files of the runs");
  std::vector<Report> reports;
  for (const std::string& file : files) {
    auto report = from_json_file(file);
    if (!report) return fail(report.error().message);
    reports.push_back(std::move(*report));
  }
  return show(reports);
}

/// The trace's records at the times at which they are to be sent.
Result<std::vector<trace::TraceRecord>> schedule() {
  const std::string path = absl::GetFlag(FLAGS_trace);
  if (path.empty()) return Error{Code::invalid_argument, "--trace is missing", kNoOffset};
  trace::TraceOptions reading;
  const auto format = trace::trace_format_from_name(absl::GetFlag(FLAGS_format));
  if (!format) return Error{Code::invalid_argument, "--format names no known form; see --help", kNoOffset};
  reading.format = *format;
  reading.conversation_gap_us = static_cast<std::int64_t>(absl::GetFlag(FLAGS_conversation_gap) * 1e6);
  auto records = trace::read_trace(path, absl::GetFlag(FLAGS_limit), {}, reading);
  if (!records) return records.error();
  if (records->empty()) return Error{Code::invalid_argument, path + " holds no records", kNoOffset};
  trace::spread_arrivals(*records);
  if (const double load = absl::GetFlag(FLAGS_load); load > 0) {
    const auto* hardware = trace::find_hardware_profile(absl::GetFlag(FLAGS_profile));
    if (hardware == nullptr) return Error{Code::invalid_argument, "--profile names no known hardware", kNoOffset};
    trace::scale_arrivals(*records, trace::speed_permille_for_load(*records, *hardware, absl::GetFlag(FLAGS_replicas),
                                                                   static_cast<std::int64_t>(load * 1000 + 0.5)));
  }
  return records;
}

int run() {
  RunnerOptions options;
  options.model = absl::GetFlag(FLAGS_model);
  options.time_scale = absl::GetFlag(FLAGS_time_scale);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.replicas = absl::GetFlag(FLAGS_replicas);
  const std::string scenario = absl::GetFlag(FLAGS_scenario);
  if (!(options.time_scale > 0)) return fail("--time-scale is not positive");
  if (options.replicas < 1) return fail("--replicas is less than 1");
  if (scenario != "trace" && scenario != "agents") return fail("--scenario is neither trace nor agents");
  const auto url = examples::parse_base_url(absl::GetFlag(FLAGS_url));
  if (!url) return fail(url.error().message);

  std::vector<trace::TraceRecord> records;
  if (scenario == "trace") {
    auto scheduled = schedule();
    if (!scheduled) return fail(scheduled.error().message);
    records = std::move(*scheduled);
  }
  examples::asio::io_context context{1};
  const auto to_ms = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  };
  Client client{context, *url, to_ms(absl::GetFlag(FLAGS_timeout_seconds)), absl::GetFlag(FLAGS_retries)};
  if (const auto up = client.wait_until_up(to_ms(absl::GetFlag(FLAGS_wait_seconds))); !up)
    return fail(up.error().message);

  Runner runner{context, client, options};
  RunFacts facts;
  if (scenario == "trace") {
    std::fprintf(
        stderr, "%zu requests over %.0f s (%.0f s in real time)\n", records.size(),
        static_cast<double>(records.back().arrival_us - records.front().arrival_us) / 1e6,
        static_cast<double>(records.back().arrival_us - records.front().arrival_us) / 1e6 / options.time_scale);
    runner.run_trace(records);
    facts.bound_ratio = trace::prefix_bound(records).ratio();
    facts.load = absl::GetFlag(FLAGS_load);
  } else {
    runner.run_agents({absl::GetFlag(FLAGS_agents), absl::GetFlag(FLAGS_turns), absl::GetFlag(FLAGS_system_tokens),
                       absl::GetFlag(FLAGS_system_prompts), absl::GetFlag(FLAGS_turn_tokens),
                       absl::GetFlag(FLAGS_answer_tokens), absl::GetFlag(FLAGS_think_seconds)});
  }
  std::fprintf(stderr, "\n");
  facts.label = absl::GetFlag(FLAGS_label).empty() ? scenario : absl::GetFlag(FLAGS_label);
  facts.scenario = scenario;
  facts.time_scale = options.time_scale;
  facts.replicas = options.replicas;
  facts.block_tokens = absl::GetFlag(FLAGS_block_size);
  facts.wall_seconds = runner.wall_seconds();
  Report report = summarise(runner.exchanges(), facts);
  if (scenario == "agents" && report.input_tokens > 0) {
    report.bound_ratio = static_cast<double>(runner.agents_bound_tokens()) / static_cast<double>(report.input_tokens);
  }
  if (const std::string json = absl::GetFlag(FLAGS_json); !json.empty()) {
    if (const auto written = write_file(json, to_json(report)); !written) return fail(written.error().message);
  }
  const int shown = show({report});
  return shown != 0 ? shown : (report.error_count() > 0 ? 1 : 0);
}

}  // namespace
}  // namespace warmroute::replay

int main(int argc, char** argv) {
  const auto files = warmroute::examples::parse_flags(
      argc, argv,
      "Replays requests against an OpenAI-compatible server; exits with 1 when some were not answered.\n"
      "  warmroute-replay --url http://127.0.0.1:8080 --trace trace.jsonl --load 0.8 --replicas 4 --time-scale 5 "
      "--json run.json\n"
      "  warmroute-replay --scenario agents --agents 50 --turns 5 --json agents.json\n"
      "  warmroute-replay --compare round_robin.json warmroute.json --svg plot.svg");
  if (absl::GetFlag(FLAGS_compare)) return warmroute::replay::compare(files);
  if (!files.empty()) return warmroute::replay::fail("unknown argument \"" + files[0] + "\"; see --help");
  return warmroute::replay::run();
}
