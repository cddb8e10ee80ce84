// warmroute-engine: a simulated model server. It computes nothing, but takes as long as a real one would, holds
// prefixes in a cache of the real size, and says so in its usage and metrics.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "common/asio.hpp"
#include "common/flags.hpp"
#include "engine/engine.hpp"
#include "engine/publisher.hpp"
#include "engine/server.hpp"

ABSL_FLAG(std::string, address, "127.0.0.1", "IP address to listen on");
ABSL_FLAG(std::uint16_t, port, 8000, "port to listen on; 0 takes a free one and prints it");
ABSL_FLAG(std::string, name, "engine", "shown in response ids");
ABSL_FLAG(std::string, model, "toy-70b", "model served; requests for others get 404");
ABSL_FLAG(std::string, profile, "70b-8xh100", "hardware: 8b-a100, 8b-h100, 70b-8xa100, 70b-8xh100");
ABSL_FLAG(std::int64_t, block_size, 16, "tokens per KV block, 1 to 512");
ABSL_FLAG(std::int64_t, capacity_tokens, 0, "KV cache size in tokens; 0 takes the profile's");
ABSL_FLAG(std::int64_t, max_batched_tokens, 8192, "token budget of a step");
ABSL_FLAG(std::int64_t, max_num_seqs, 256, "requests that may run at once");
ABSL_FLAG(double, speed, 1.0, "of the hardware; 0.5 is a machine half as fast");
ABSL_FLAG(double, time_scale, 1.0, "simulated seconds per real second");
ABSL_FLAG(std::int64_t, output_tokens, 128, "length of answers whose request names no limit");
ABSL_FLAG(double, error_rate, 0.0, "share of requests answered with 500");
ABSL_FLAG(double, hang_rate, 0.0, "share of requests never answered");
ABSL_FLAG(std::int64_t, crash_after, 0, "die without a word at request number n; 0: never");
ABSL_FLAG(std::uint64_t, seed, 1, "of the injected failures");
ABSL_FLAG(std::string, events, "", "publish KV events over ZeroMQ here, e.g. tcp://*:5557; port 0 takes a free one");
ABSL_FLAG(std::string, events_replay, "", "answer requests for past KV events here, e.g. tcp://*:5558");
ABSL_FLAG(std::string, events_form, "map", "array: as vLLM sends them up to 0.23; map: as from 0.26 on");
ABSL_FLAG(std::string, events_topic, "", "topic of the KV events");
ABSL_FLAG(double, events_drop, 0.0, "share of batches of KV events that get lost; a replay has them");
ABSL_FLAG(double, events_reorder, 0.0, "share of batches of KV events that are sent behind the next one");
ABSL_FLAG(double, events_restart, 0.0,
          "begin anew every so many seconds, as a new process would: cache and requests lost, numbers from 0");
ABSL_FLAG(std::string, metrics_names, "vllm",
          "whose names /metrics has: vllm, sglang (and its /v1/loads), trtllm, tgi, llamacpp");
ABSL_FLAG(std::string, usage_form, "vllm",
          "whose spelling OpenAI-shaped usage has: vllm, openai, sglang, deepseek, mistral, moonshot, llamacpp; "
          "Responses, Anthropic, Gemini and Bedrock have their own, by the path");
ABSL_FLAG(std::int64_t, drain_seconds, 10, "how long SIGTERM waits for running answers");

namespace warmroute::examples {
namespace {

Result<EngineOptions> options_from_flags() {
  EngineOptions options;
  const auto bad = [](const char* flag, const char* why) {
    return Error{Code::invalid_value, std::string("--") + flag + ": " + why, kNoOffset};
  };
  const auto* hardware = trace::find_hardware_profile(absl::GetFlag(FLAGS_profile));
  if (hardware == nullptr) return bad("profile", "is none of 8b-a100, 8b-h100, 70b-8xa100, 70b-8xh100");
  options.name = absl::GetFlag(FLAGS_name);
  options.model = absl::GetFlag(FLAGS_model);
  options.service.hardware = *hardware;
  options.service.block_tokens = absl::GetFlag(FLAGS_block_size);
  options.service.capacity_tokens = absl::GetFlag(FLAGS_capacity_tokens);
  options.service.step_token_budget = absl::GetFlag(FLAGS_max_batched_tokens);
  options.service.max_running = absl::GetFlag(FLAGS_max_num_seqs);
  options.service.speed_permille = static_cast<std::int64_t>(absl::GetFlag(FLAGS_speed) * 1000.0 + 0.5);
  options.time_scale = absl::GetFlag(FLAGS_time_scale);
  options.default_output_tokens = absl::GetFlag(FLAGS_output_tokens);
  options.error_rate = absl::GetFlag(FLAGS_error_rate);
  options.hang_rate = absl::GetFlag(FLAGS_hang_rate);
  options.crash_after = absl::GetFlag(FLAGS_crash_after);
  options.seed = absl::GetFlag(FLAGS_seed);
  const auto names = metrics_names_from(absl::GetFlag(FLAGS_metrics_names));
  if (!names) return bad("metrics_names", "is none of vllm, sglang, trtllm, tgi, llamacpp");
  options.metrics_names = *names;
  const auto usage_form = usage_form_from(absl::GetFlag(FLAGS_usage_form));
  if (!usage_form) return bad("usage_form", "is none of vllm, openai, sglang, deepseek, mistral, moonshot, llamacpp");
  options.usage_form = *usage_form;
  const double restart = absl::GetFlag(FLAGS_events_restart);
  if (!(restart == 0 || (restart >= 0.001 && restart <= 1e6))) return bad("events_restart", "is not 0.001 to 1000000");
  const auto& service = options.service;
  if (service.block_tokens < 1 || service.block_tokens > 512) return bad("block_size", "is not 1 to 512");
  if (service.capacity_tokens < 0) return bad("capacity_tokens", "is negative");
  if (service.step_token_budget < 1) return bad("max_batched_tokens", "is less than 1");
  if (service.max_running < 1) return bad("max_num_seqs", "is less than 1");
  if (service.speed_permille < 1 || service.speed_permille > 1'000'000) return bad("speed", "is not 0.001 to 1000");
  if (!(options.time_scale >= 0.001 && options.time_scale <= 10'000)) return bad("time_scale", "is not 0.001 to 10000");
  if (options.default_output_tokens < 1) return bad("output_tokens", "is less than 1");
  return options;
}

/// returns: where the engine's cache is reported; null when no flag asks for it. errors: invalid_value, and as Publisher::open.
Result<std::unique_ptr<Publisher>> publisher_from_flags() {
  PublisherOptions options;
  options.events = absl::GetFlag(FLAGS_events);
  options.replay = absl::GetFlag(FLAGS_events_replay);
  options.topic = absl::GetFlag(FLAGS_events_topic);
  options.drop_rate = absl::GetFlag(FLAGS_events_drop);
  options.reorder_rate = absl::GetFlag(FLAGS_events_reorder);
  options.seed = absl::GetFlag(FLAGS_seed);
  const std::string form = absl::GetFlag(FLAGS_events_form);
  options.topic_in_replay = form == "map";
  const auto bad = [](const char* what) { return Error{Code::invalid_value, what, kNoOffset}; };
  if (form != "array" && form != "map") return bad("--events-form is none of array, map");
  if (!(options.drop_rate >= 0 && options.drop_rate <= 1)) return bad("--events-drop is not 0 to 1");
  if (!(options.reorder_rate >= 0 && options.reorder_rate <= 1)) return bad("--events-reorder is not 0 to 1");
  if (options.events.empty()) {
    if (absl::GetFlag(FLAGS_events_restart) != 0) return bad("--events-restart needs --events");
    if (!options.replay.empty()) return bad("--events-replay needs --events");
    return std::unique_ptr<Publisher>();
  }
  auto opened = Publisher::open(options);
  if (!opened) return Error{opened.error().code, "--events: " + opened.error().message, kNoOffset};
  return opened;
}

/// returns: a seed for the ids of blocks; each life of an engine has ids of its own.
std::uint64_t fresh_seed() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

void report_cache(Engine& engine, Publisher& publisher) {
  const auto form = absl::GetFlag(FLAGS_events_form) == "array" ? EventForm::array : EventForm::map;
  engine.report_cache(form, fresh_seed(), [&publisher](std::string batch) { publisher.publish(std::move(batch)); });
  std::printf("events on %s%s%s\n", publisher.events().c_str(), publisher.replay().empty() ? "" : ", replay on ",
              publisher.replay().c_str());
}

/// Restarts the engine again and again. The publisher begins first: what the new engine says is its number 0.
void restart_often(asio::steady_timer& timer, Engine& engine, Publisher& publisher) {
  const std::chrono::duration<double> pause(absl::GetFlag(FLAGS_events_restart));
  timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(pause));
  timer.async_wait([&](error_code error) {
    if (error) return;
    publisher.restart();
    engine.restart(fresh_seed());
    restart_often(timer, engine, publisher);
  });
}

int run() {
  const auto options = options_from_flags();
  if (!options) {
    std::fprintf(stderr, "warmroute-engine: %s\n", options.error().message.c_str());
    return 2;
  }
  const auto publisher = publisher_from_flags();
  if (!publisher) {
    std::fprintf(stderr, "warmroute-engine: %s\n", publisher.error().message.c_str());
    return publisher.code() == Code::io ? 1 : 2;
  }
  asio::io_context context{1};
  Engine engine{context, *options};
  Server server{context, engine};
  const auto port = server.listen(absl::GetFlag(FLAGS_address), absl::GetFlag(FLAGS_port));
  if (!port) {
    std::fprintf(stderr, "warmroute-engine: %s\n", port.error().message.c_str());
    return 1;
  }
  std::printf("warmroute-engine %s: %s on %s:%u, %s, time scale %g\n", options->name.c_str(), options->model.c_str(),
              absl::GetFlag(FLAGS_address).c_str(), unsigned{*port}, absl::GetFlag(FLAGS_profile).c_str(),
              options->time_scale);
  if (*publisher != nullptr) report_cache(engine, **publisher);
  std::fflush(stdout);
  asio::steady_timer restarts{context};
  if (absl::GetFlag(FLAGS_events_restart) > 0) restart_often(restarts, engine, **publisher);

  asio::signal_set signals{context, SIGINT, SIGTERM};
  signals.async_wait([&](error_code error, int) {
    if (error) return;
    server.shut_down(std::chrono::seconds(absl::GetFlag(FLAGS_drain_seconds)));
    signals.async_wait([&](error_code again, int) {  // the second one does not wait
      if (!again) context.stop();
    });
  });
  context.run();
  return 0;
}

}  // namespace
}  // namespace warmroute::examples

int main(int argc, char** argv) {
  warmroute::examples::parse_flags_only(argc, argv,
                                        "Simulated model server: the APIs of OpenAI, Anthropic, Gemini and Bedrock "
                                        "with the timing and prefix cache of a real engine.\n"
                                        "  warmroute-engine --port 8001 --profile 70b-8xh100 --time-scale 5");
  return warmroute::examples::run();
}
