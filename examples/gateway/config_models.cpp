// Models, external APIs and classes: what the configuration has of them, and what no single member can check.
#include <simdjson.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "gateway/config_options.hpp"

namespace warmroute::gateway {
namespace {

/// Reads {NAME: class, ...}.
void read_class_names(std::string_view path, simdjson::dom::element value,
                      std::map<std::string, std::uint32_t, std::less<>>& out, Faults& faults) {
  simdjson::dom::object names;
  if (value.get(names) != simdjson::SUCCESS) {
    faults.push_back("classes." + std::string(path) + ": must be an object: each name with its class");
    return;
  }
  for (const auto one : names) {
    std::uint64_t id = 0;
    if (one.value.get(id) == simdjson::SUCCESS && id <= 0xffff'ffff) {
      out[std::string(one.key)] = static_cast<std::uint32_t>(id);
    } else {
      faults.push_back("classes." + std::string(path) + "." + std::string(one.key) + ": must be a number");
    }
  }
}

template <class Add>
void read_class_list(std::string_view path, simdjson::dom::element value, Faults& faults, Add add) {
  simdjson::dom::array list;
  bool fine = value.get(list) == simdjson::SUCCESS;
  if (fine) {
    for (const auto item : list) {
      std::string_view text;
      fine = item.get(text) == simdjson::SUCCESS && add(text) && fine;
    }
  }
  if (!fine) faults.push_back("classes." + std::string(path) + ": must be a list of strings of its kind");
}

void read_key(ReplicaConfig& replica, Faults& faults) {
  const auto fault = [&](const std::string& what) { faults.push_back("replica '" + replica.spec.name + "': " + what); };
  if (!replica.key_env.empty() && !replica.key_file.empty()) return fault("one of key_env and key_file is enough");
  if (!replica.key_env.empty()) {
    const char* const value = std::getenv(replica.key_env.c_str());
    if (value == nullptr || *value == '\0') return fault("there is no variable '" + replica.key_env + "'");
    replica.key = value;
  } else if (!replica.key_file.empty()) {
    std::ifstream file(replica.key_file, std::ios::binary);
    replica.key.assign(std::istreambuf_iterator<char>(file), {});
    while (!replica.key.empty() && (replica.key.back() == '\n' || replica.key.back() == '\r')) replica.key.pop_back();
    if (replica.key.empty()) return fault("'" + replica.key_file + "' cannot be read or is empty");
  }
  // It becomes a header's value.
  if (replica.key.find_first_of("\r\n") != std::string::npos) fault("its key is more than one line");
}

}  // namespace

void read_models_json(std::string_view json, Config& config, Faults& faults) {
  auto map = model_map_from_json(json);
  if (map) {
    config.models = std::move(*map);
  } else {
    faults.push_back("models: " + map.error().message);
  }
}

std::string read_models_file(Config& config, std::string_view name) {
  std::ifstream file(std::string(name), std::ios::binary);
  if (!file) return "'" + std::string(name) + "' cannot be read";
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  auto map = model_map_from_json(json);
  if (!map) return map.error().message;
  config.models = std::move(*map);
  return {};
}

void read_classes_json(std::string_view json, Config& config, Faults& faults) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(json.data(), json.size()).get(object) != simdjson::SUCCESS) {
    faults.emplace_back("classes: must be an object");
    return;
  }
  ClassConfig& classes = config.classes;
  for (const auto [key, value] : object) {
    std::uint64_t number = 0;
    std::string_view text;
    if (key == "default") {
      if (value.get(number) != simdjson::SUCCESS || number > 0xffff'ffff)
        faults.emplace_back("classes.default: must be a number");
      classes.usual = static_cast<std::uint32_t>(number);
    } else if (key == "keys" || key == "teams") {
      read_class_names(key, value, key == "keys" ? classes.keys : classes.teams, faults);
    } else if (key == "header") {
      if (value.get(text) != simdjson::SUCCESS || text.empty()) faults.emplace_back("classes.header: must be a name");
      classes.header = text;
    } else if (key == "trusted_keys") {
      read_class_list(key, value, faults, [&](std::string_view id) {
        classes.trusted_keys.emplace_back(id);
        return !id.empty();
      });
    } else if (key == "trusted_addresses") {
      read_class_list(key, value, faults, [&](std::string_view one) {
        const auto network = read_network(one);
        if (network) classes.trusted_addresses.push_back(*network);
        return network.has_value();
      });
    } else {
      faults.push_back("classes." + std::string(key) + ": there is no such member");
    }
  }
}

void complete_models(Config& config, Faults& faults) {
  const auto external = [&](const std::string& pool) {
    return config.models && std::any_of(config.models->pools.begin(), config.models->pools.end(),
                                        [&](const PoolTerms& terms) { return terms.external && terms.name == pool; });
  };
  const auto served = [&](const std::string& pool) {
    return std::any_of(config.replicas.begin(), config.replicas.end(),
                       [&](const ReplicaConfig& replica) { return replica.spec.pool == pool; });
  };
  for (auto& replica : config.replicas) {
    read_key(replica, faults);
    replica.external = external(replica.spec.pool);
  }
  if (!config.models) return;
  for (const auto& model : config.models->models) {
    for (const auto* list : {&model.targets, &model.fallbacks}) {
      for (const auto& target : *list) {
        if (!served(target.pool))
          faults.push_back("models: '" + model.name + "': no replica has the model '" + target.pool +
                           "', which is its pool");
      }
    }
  }
}

}  // namespace warmroute::gateway
