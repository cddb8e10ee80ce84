/// What the gateway is told: by a JSON file (--config), by flags, or both; flags win. One table of options serves both forms.
/// Every fault is listed at once, so that a broken file is mended in one go.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/classes_config.hpp"
#include "gateway/peers_config.hpp"
#include "gateway/usage_config.hpp"
#include "warmroute/replica/replica.hpp"
#include "warmroute/result.hpp"
#include "warmroute/route/models.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute::gateway {

struct ReplicaConfig {
  ReplicaSpec spec;  ///< name, pool (the model), weight, rank, adapters, capacity, rates
  std::string host;
  std::uint16_t port = 0;
  std::string path;       ///< of its base URL, stands for "/v1"; empty: none
  std::string host_name;  ///< Host header, where it is reached through a proxy; empty: as it is addressed
  std::string key_env;    ///< variable with the key that it is sent; or a file
  std::string key_file;
  std::string key;        ///< read from there; empty: the common one
  bool external = false;  ///< its pool is somebody else's API
  bool ranked = false;    ///< the configuration names its dp_rank, so the model server is told, rank 0 included
  std::string profile;    ///< hardware profile by name; empty = the common one
  std::string events;     ///< where its engine publishes KV events, e.g. "tcp://10.0.0.1:5557"; empty = nowhere
  std::string replay;     ///< where its engine answers for past ones; empty = a gap clears what is known of its cache
  std::string metrics;    ///< URL of its metrics page; empty = /metrics at its address
  std::string loads;      ///< URL, or path at its address, of a second such page, e.g. SGLang's /v1/loads; empty = none
  std::string engine;     ///< whose names are on these pages; empty = the common one
  MeterProfile meter;     ///< facts about its answers that they do not tell
  std::optional<bool> unified;  ///< of an engine with slots; unset: off where their number is given
};

struct Config {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;
  std::int64_t admin_port = -1;  ///< -1: the same port as clients'; 0: any free one
  std::int64_t threads = 1;
  std::string tokenizer = "none";
  std::string model;    ///< of all replicas that name none; empty = they serve every model
  std::string profile;  ///< hardware profile of all replicas that name none; empty = the library's default rates
  double token_us = 0;  ///< instead of a profile: what one more token of a prompt takes, as measured; 0 = the profile
  double step_us = 1'000;  ///< with token_us: the shortest step, which is a decode step
  double time_scale = 1;   ///< how much faster than its profile the hardware runs; simulated model servers do that
  std::chrono::milliseconds poll{0};  ///< between looks at a model server's metrics page; 0: never
  std::string engine;                 ///< of all replicas that name none; empty = found out from the page
  /// Teams share what the model servers share among them, who are told no salt: `salt` or `pool` is for deployments that know.
  Policy policy{.isolation = Isolation::none};
  std::vector<ReplicaConfig> replicas;
  UsageConfig usage;               ///< keys, limits, prices, journal
  std::optional<ModelMap> models;  ///< names that clients use; nothing: they are the replicas' models
  ClassConfig classes;
  PeersConfig peers;  ///< other gateways before the same model servers

  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds first_token_timeout{120'000};  ///< of a stream: from the request sent to the first token
  std::chrono::milliseconds inter_token_timeout{60'000};   ///< of a stream: the longest silence after that
  std::chrono::milliseconds total_timeout{600'000};        ///< of one request, with all its attempts
  std::chrono::milliseconds client_timeout{75'000};        ///< for a client to send its (next) request
  std::chrono::milliseconds shutdown_timeout{30'000};
  std::chrono::milliseconds probe_interval{500};  ///< of a replica that is down; doubles up to ten times that

  std::int64_t max_attempts = 3;
  std::int64_t retry_percent = 10;  ///< of the traffic
  std::int64_t retry_start = 10;    ///< retries that are there from the start
  std::int64_t retry_burst = 100;   ///< retries that can be saved up
  std::int64_t failures_to_down = 3;
  std::int64_t max_body_bytes = std::int64_t{32} << 20;
};

/// Reads a command line (without the program's name) and the file that it names.
/// errors: invalid_argument, every fault named; io when the file cannot be read.
Result<Config> read_config(const std::vector<std::string>& arguments);

/// Reads a configuration file's text over `config`. returns: the faults; empty = none.
std::vector<std::string> read_config_json(std::string_view json, Config& config);

/// returns: the text of --help.
std::string config_help();

}  // namespace warmroute::gateway
