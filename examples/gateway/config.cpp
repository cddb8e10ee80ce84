// The table of options, and the command line.
#include "gateway/config.hpp"

#include <fstream>
#include <iterator>

#include "gateway/config_options.hpp"
#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/trace/replica_model.hpp"

namespace warmroute::gateway {

namespace {

template <class Number, class Low, class High>
auto number(Number Config::*member, Low low, High high) {
  return [=](Config& c, std::string_view v) {
    return read_number<Number>(v, static_cast<Number>(low), static_cast<Number>(high), c.*member);
  };
}

auto text(std::string Config::*member) {
  return [=](Config& c, std::string_view v) {
    c.*member = v;
    return std::string{};
  };
}

auto duration(std::chrono::milliseconds Config::*member) {
  return [=](Config& c, std::string_view v) {
    std::int64_t ms = 0;
    auto fault = read_number<std::int64_t>(v, 1, 86'400'000, ms);
    if (fault.empty()) c.*member = std::chrono::milliseconds(ms);
    return fault;
  };
}

std::string set_algorithm(Config& config, std::string_view name) {
  const auto algorithm = algorithm_from_name(name);
  if (algorithm) {
    config.policy.algorithm = *algorithm;
    return {};
  }
  std::string fault = "'" + std::string(name) + "' is none of";
  for (const auto known : kAlgorithmNames) fault.append(" ").append(known);
  return fault;
}

std::string set_tokenizer(Config& config, std::string_view name) {
  if (name != "toy" && name != "none") return "'" + std::string(name) + "' is none of toy none";
  config.tokenizer = name;
  return {};
}

std::vector<Option> routing_options() {
  return {
      {"config", "FILE", "JSON file with any of these options; flags win", nullptr},
      {"address", "ADDRESS", "IP address to listen on (127.0.0.1)", text(&Config::address)},
      {"port", "PORT", "port of the clients; 0: any free one (8080)", number(&Config::port, 0, 65535)},
      {"admin_port", "PORT", "metrics, explain, replicas and admin listen here alone; 0: any free one",
       number(&Config::admin_port, 0, 65535)},
      {"threads", "N", "threads that serve (1)", number(&Config::threads, 1, 64)},
      {"replica", "[NAME=]HOST:PORT[,OPTION=VALUE...]",
       "a model server, as often as there are any; options: events and replay (tcp://HOST:PORT of its KV events), "
       "metrics (URL), loads (URL or path of a second such page: /v1/loads?include=core&format=prometheus of SGLang), "
       "engine (NAME); of llama.cpp's server kind=slots and, as its command line says, slots, unified, "
       "slot_ram_tokens; "
       "input_includes_cache=true|false where its usage counts cached input otherwise than its API does; "
       "role=prefill|decode where "
       "these are apart; key_env or "
       "key_file with the key it is sent, host its Host header",
       add_replica},
      {"models", "FILE", "names that clients use, where they lead, external APIs and their quotas, as JSON",
       read_models_file},
      {"model", "NAME", "model of the replicas that name none (they serve every model)", text(&Config::model)},
      {"policy", "ALGORITHM", "cost, round_robin, least_requests, ... (cost)", set_algorithm},
      {"block_size", "TOKENS", "tokens per block of the prefix index (16)",
       [](Config& c, std::string_view v) { return read_number<std::uint32_t>(v, 1, 512, c.policy.block_size); }},
      {"profile", "NAME", "hardware profile whose speed is assumed: 8b-a100, 8b-h100, 70b-8xa100, 70b-8xh100",
       text(&Config::profile)},
      {"time_scale", "X", "the hardware runs so many times faster than its profile (1)",
       number(&Config::time_scale, 0.001, 10'000)},
      {"token_us", "US", "instead of a profile: microseconds that one more token of a prompt takes",
       number(&Config::token_us, 0, 100'000)},
      {"step_us", "US", "with token_us: microseconds of one decode step (1000)",
       number(&Config::step_us, 0, 10'000'000)},
      {"capacity_tokens", "N", "KV cache of one replica, where it does not say itself (400000)",
       [](Config& c, std::string_view v) {
         return read_number<std::int64_t>(v, 1, 1'000'000'000'000, c.policy.capacity_tokens);
       }},
      {"poll", "[MS]", "look at the model servers' metrics pages so often (off; without a number: 500)",
       [](Config& c, std::string_view v) {
         std::int64_t ms = 0;
         auto fault = read_number<std::int64_t>(v, 0, 3'600'000, ms);
         if (fault.empty()) c.poll = std::chrono::milliseconds(ms);
         return fault;
       },
       "500"},
      {"engine", "NAME", "whose names are on those pages: vllm, sglang, trtllm, ... (found out)",
       text(&Config::engine)},
      {"tokenizer", "toy|none", "toy: the simulated model server's; none: blocks of text (none)", set_tokenizer},
      {"connect_timeout_ms", "MS", "to reach a replica (2000)", duration(&Config::connect_timeout)},
      {"first_token_timeout_ms", "MS", "until a stream's first token (120000)", duration(&Config::first_token_timeout)},
      {"inter_token_timeout_ms", "MS", "longest silence of a stream (60000)", duration(&Config::inter_token_timeout)},
      {"total_timeout_ms", "MS", "of a request with all its attempts (600000)", duration(&Config::total_timeout)},
      {"client_timeout_ms", "MS", "for a client to send its request (75000)", duration(&Config::client_timeout)},
      {"shutdown_timeout_ms", "MS", "for what is in flight at SIGTERM (30000)", duration(&Config::shutdown_timeout)},
      {"probe_interval_ms", "MS", "between looks at a replica that is down, at first (500)",
       duration(&Config::probe_interval)},
      {"max_attempts", "N", "replicas that one request is sent to at most (3)", number(&Config::max_attempts, 1, 16)},
      {"retry_percent", "N", "retries, in percent of the requests (10)", number(&Config::retry_percent, 0, 100)},
      {"retry_start", "N", "retries that are there from the start (10)", number(&Config::retry_start, 0, 10'000)},
      {"retry_burst", "N", "retries that can be saved up (100)", number(&Config::retry_burst, 0, 10'000)},
      {"failures_to_down", "N", "failures in a row that take a replica down (3)",
       number(&Config::failures_to_down, 1, 1'000)},
      {"max_body_bytes", "N", "largest request body (33554432)",
       number(&Config::max_body_bytes, 1, (std::int64_t{1} << 32) - 1)},
  };
}

const std::vector<Option>& options() {
  static const std::vector<Option> all = [] {
    auto both = routing_options();
    append_usage_options(both);
    append_peer_options(both);
    return both;
  }();
  return all;
}

/// returns: what is wrong with the name of an engine; empty = nothing.
std::string check_engine(std::string_view name) {
  std::string fault = "there is no engine '" + std::string(name) + "' whose metrics are known, but";
  for (const auto& table : builtin_engine_tables()) {
    if (name.empty() || table.engine == name) return {};
    fault.append(" ").append(table.engine);
  }
  return fault;
}

/// Turns names of profiles into rates; checks what no single option can.
void complete(Config& config, Faults& faults) {
  if (config.replicas.empty())
    faults.emplace_back("replica: at least one model server is needed, e.g. --replica gpu-0=127.0.0.1:8000");
  if (auto fault = check_engine(config.engine); !fault.empty()) faults.push_back("engine: " + fault);
  for (auto& replica : config.replicas) {
    if (auto fault = check_engine(replica.engine); !fault.empty())
      faults.push_back("replica '" + replica.spec.name + "': " + fault);
    if (config.poll.count() == 0 && !(replica.metrics.empty() && replica.loads.empty() && replica.engine.empty()))
      faults.push_back("replica '" + replica.spec.name + "': metrics, loads and engine need poll");
    if (replica.spec.pool.empty()) replica.spec.pool = config.model;
    if (replica.events.empty() && !replica.replay.empty())
      faults.push_back("replica '" + replica.spec.name + "': replay needs events");
    const std::string& name = replica.profile.empty() ? config.profile : replica.profile;
    if (!name.empty()) {
      const auto* profile = trace::find_hardware_profile(name);
      if (profile == nullptr) {
        faults.push_back("replica '" + replica.spec.name + "': there is no hardware profile '" + name + "'");
        continue;
      }
      const auto scaled = [&](std::int64_t ps) {
        return static_cast<std::int64_t>(static_cast<double>(ps) / config.time_scale);
      };
      replica.spec.rates = {scaled(profile->floor_ps) / 1'000, scaled(profile->per_token_ps),
                            scaled(profile->per_pair_ps), scaled(profile->per_context_ps),
                            scaled(profile->overhead_ps) / 1'000};
    }
    if (replica.profile.empty() && config.token_us > 0) {
      replica.spec.rates = {static_cast<std::int64_t>(config.step_us * 1e3),
                            static_cast<std::int64_t>(config.token_us * 1e6), 0, 0, 0};
    }
    if (const auto valid = validate(replica.spec); !valid) faults.push_back(valid.error().message);
  }
  if (const auto valid = validate(config.policy); !valid) faults.push_back(valid.error().message);
  complete_usage(config.usage, faults);
  complete_peers(config.peers, faults);
  complete_models(config, faults);
}

}  // namespace

const Option* find_option(std::string_view name) {
  for (const auto& option : options()) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

Result<Config> read_config(const std::vector<std::string>& arguments) {
  Config config;
  Faults faults;
  std::vector<std::pair<const Option*, std::string>> flags;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i].substr(0, arguments[i].find('='));
    const bool dashes = name.rfind("--", 0) == 0;
    if (dashes) name.erase(0, 2);
    for (char& c : name) c = c == '-' ? '_' : c;
    const Option* option = dashes ? find_option(name) : nullptr;
    if (option == nullptr) {
      faults.push_back("'" + arguments[i] + "': there is no such flag, see --help");
    } else if (const auto equals = arguments[i].find('='); equals != std::string::npos) {
      flags.emplace_back(option, arguments[i].substr(equals + 1));
    } else if (!option->bare.empty() && (i + 1 == arguments.size() || arguments[i + 1].starts_with("--"))) {
      flags.emplace_back(option, option->bare);
    } else if (i + 1 < arguments.size()) {
      flags.emplace_back(option, arguments[++i]);
    } else {
      faults.push_back("--" + name + ": its value is missing");
    }
  }
  for (const auto& [option, value] : flags) {
    if (option->apply) continue;
    std::ifstream file(value, std::ios::binary);
    if (!file) return Error{Code::io, "'" + value + "' cannot be read", kNoOffset};
    const std::string json{std::istreambuf_iterator<char>(file), {}};
    for (auto& fault : read_config_json(json, config)) faults.push_back(value + ": " + fault);
  }
  for (const auto& [option, value] : flags) {
    const std::string fault = option->apply ? option->apply(config, value) : std::string{};
    if (!fault.empty()) faults.push_back("--" + std::string(option->name) + ": " + fault);
  }
  complete(config, faults);
  if (faults.empty()) return config;
  std::string message;
  for (const auto& fault : faults) message.append(message.empty() ? "" : "\n").append(fault);
  return Error{Code::invalid_argument, message, kNoOffset};
}

std::string config_help() {
  std::string help =
      "usage: warmroute-gateway --replica [NAME=]HOST:PORT [--replica ...] [options]\n\n"
      "An OpenAI-compatible proxy that sends each request to the model server that answers it soonest.\n\n";
  for (const auto& option : options()) {
    std::string left = "  --" + std::string(option.name) + " " + std::string(option.value);
    for (char& c : left) c = c == '_' ? '-' : c;
    left.resize(std::max<std::size_t>(left.size() + 2, 32), ' ');
    help.append(left).append(option.help).append("\n");
  }
  return help;
}

}  // namespace warmroute::gateway
