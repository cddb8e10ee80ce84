/// The table of options that flags and file have in common. Inside the configuration's two .cpp files only.
#pragma once

#include <charconv>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config.hpp"

namespace warmroute::gateway {

using Faults = std::vector<std::string>;

/// One option: `--some-name value`, or "some_name": value in the file. `apply` returns what is wrong with the value; it is not set for
/// --config, which names the file.
struct Option {
  std::string_view name, value, help;
  std::function<std::string(Config&, std::string_view)> apply;
  std::string_view bare{};  ///< what a flag without a value means; empty: it needs one
  bool many = false;        ///< given as often as there are any; in the file, a list
};

/// returns: what is wrong; empty = nothing.
template <class Number>
std::string read_number(std::string_view text, Number low, Number high, Number& out) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) {
    out = value;
    return {};
  }
  return "'" + std::string(text) + "' is no number in " + std::to_string(low) + ".." + std::to_string(high);
}

/// Appends the options of UsageConfig.
void append_usage_options(std::vector<Option>& options);
/// Checks what no single one of those can.
void complete_usage(const UsageConfig& config, Faults& faults);

/// Reads the map of models, and the section of classes, from JSON.
void read_models_json(std::string_view json, Config& config, Faults& faults);
std::string read_models_file(Config& config, std::string_view name);
void read_classes_json(std::string_view json, Config& config, Faults& faults);
/// Reads the replicas' keys; checks that models lead to replicas.
void complete_models(Config& config, Faults& faults);
/// The same of PeersConfig.
void append_peer_options(std::vector<Option>& options);
void complete_peers(PeersConfig& config, Faults& faults);

/// returns: null when there is no such option.
const Option* find_option(std::string_view name);

/// Reads "host:port". returns: what is wrong; empty = nothing.
std::string set_address(std::string_view address, ReplicaConfig& replica);
/// What the text form and the file form of a replica have in common: events, replay, metrics, loads, engine, kind, slots, unified, slot_ram_tokens,
/// input_includes_cache, role, host, key_env, key_file.
bool is_replica_option(std::string_view name);
/// Sets one of those. returns: as set_address.
std::string set_replica_option(std::string_view name, std::string_view value, ReplicaConfig& replica);
/// Reads "name=host:port", or "host:port", which is its own name; ",option=value" may follow. returns: as set_address.
std::string add_replica(Config& config, std::string_view text);

}  // namespace warmroute::gateway
