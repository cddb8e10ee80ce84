// The file form of the configuration: one JSON object, its scalars through the same table as the flags.
#include <simdjson.h>

#include "gateway/config_options.hpp"
#include "warmroute/route/policy_json.hpp"

namespace warmroute::gateway {
namespace {

/// returns: a scalar as a flag would spell it.
std::string scalar(simdjson::dom::element value) {
  if (value.is_string()) return std::string(value.get_string().value_unsafe());
  return simdjson::minify(value);
}

void read_replica_member(std::string_view key, simdjson::dom::element value, ReplicaConfig& replica, Faults& faults) {
  const auto fault = [&](std::string_view what) {
    faults.push_back("replica '" + replica.spec.name + "': " + std::string(key) + ": " + std::string(what));
  };
  std::string_view string;
  if (key == "adapters") {
    replica.spec.any_adapter = false;
    simdjson::dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return fault("must be a list of names");
    for (const auto item : list) {
      if (item.get(string) != simdjson::SUCCESS) return fault("must be a list of names");
      replica.spec.adapters.emplace_back(string);
    }
    return;
  }
  if (key == "weight") {
    if (value.get(replica.spec.weight) != simdjson::SUCCESS) fault("must be a number");
    return;
  }
  if (key == "capacity_tokens") {
    if (value.get(replica.spec.capacity_tokens) != simdjson::SUCCESS) fault("must be an integer");
    return;
  }
  if (key == "dp_rank") {
    std::uint64_t rank = 0;
    if (value.get(rank) != simdjson::SUCCESS || rank > 65'535) return fault("must be an integer in 0..65535");
    replica.spec.dp_rank = static_cast<std::uint32_t>(rank);
    replica.ranked = true;
    return;
  }
  if (is_replica_option(key)) {
    if (!value.is_string() && !value.is_number() && !value.is_bool())
      return fault("must be a string, a number or a boolean");
    if (const auto wrong = set_replica_option(key, scalar(value), replica); !wrong.empty()) fault(wrong);
    return;
  }
  if (value.get(string) != simdjson::SUCCESS) return fault("must be a string");
  if (key == "name") {
    replica.spec.name = string;
  } else if (key == "address") {
    if (const auto wrong = set_address(string, replica); !wrong.empty()) fault(wrong);
  } else if (key == "model") {
    replica.spec.pool = string;
  } else if (key == "ring_id") {
    replica.spec.ring_id = string;
  } else if (key == "profile") {
    replica.profile = string;
  } else {
    fault("there is no such member");
  }
}

void read_replicas(simdjson::dom::element value, Config& config, Faults& faults) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) {
    faults.emplace_back("replicas: must be a list of \"name=host:port\" or objects");
    return;
  }
  for (const auto item : list) {
    std::string_view string;
    simdjson::dom::object object;
    if (item.get(string) == simdjson::SUCCESS) {
      if (const auto fault = add_replica(config, string); !fault.empty()) faults.push_back("replicas: " + fault);
    } else if (item.get(object) == simdjson::SUCCESS) {
      ReplicaConfig replica;
      if (object["name"].get(string) == simdjson::SUCCESS) replica.spec.name = string;
      for (const auto member : object) read_replica_member(member.key, member.value, replica, faults);
      if (replica.host.empty()) faults.push_back("replica '" + replica.spec.name + "': address is missing");
      if (replica.spec.name.empty()) replica.spec.name = replica.host + ":" + std::to_string(replica.port);
      config.replicas.push_back(std::move(replica));
    } else {
      faults.emplace_back("replicas: must be a list of \"name=host:port\" or objects");
    }
  }
}

void read_option(std::string_view key, const Option* option, simdjson::dom::element value, Config& config,
                 Faults& faults) {
  if (option == nullptr || !option->apply || key == "replica") {
    faults.push_back(std::string(key) + ": there is no such option");
    return;
  }
  const auto apply = [&](simdjson::dom::element one) {
    const bool fine = one.is_string() || one.is_number() || one.is_bool();
    const std::string fault = fine ? option->apply(config, scalar(one)) : "must be a string, a number or a boolean";
    if (!fault.empty()) faults.push_back(std::string(key) + ": " + fault);
  };
  simdjson::dom::array list;
  if (option->many && value.get(list) == simdjson::SUCCESS) {
    for (const auto item : list) apply(item);
  } else {
    apply(value);
  }
}

/// Reads "gateways": {"self": NAME, "members": {NAME: "HOST:PORT", ...}, ...}; other members are the options gateway_*.
void read_gateways(simdjson::dom::element value, Config& config, Faults& faults) {
  simdjson::dom::object section, members;
  if (value.get(section) != simdjson::SUCCESS) {
    faults.emplace_back("gateways: must be an object with self, members and secret_file or secret_env");
    return;
  }
  for (const auto member : section) {
    const std::string path = "gateways." + std::string(member.key);
    if (member.key != "members") {
      const std::string name = "gateway_" + std::string(member.key);
      read_option(path, find_option(name), member.value, config, faults);
    } else if (member.value.get(members) != simdjson::SUCCESS) {
      faults.push_back(path + ": must be an object: each name with its HOST:PORT");
    } else {
      for (const auto one : members) {
        std::string_view address;
        const bool text = one.value.get(address) == simdjson::SUCCESS;
        const std::string fault =
            text ? add_peer(config.peers, std::string(one.key) + "=" + std::string(address)) : "must be HOST:PORT";
        if (!fault.empty()) faults.push_back(path + ": " + fault);
      }
    }
  }
}

void read_member(std::string_view key, simdjson::dom::element value, Config& config, Faults& faults) {
  if (key == "replicas") return read_replicas(value, config, faults);
  if (key == "models" && value.is_object()) return read_models_json(simdjson::minify(value), config, faults);
  if (key == "classes") return read_classes_json(simdjson::minify(value), config, faults);
  if (key == "gateways") return read_gateways(value, config, faults);
  if (key == "policy" && value.is_object()) {
    auto policy = policy_from_json(std::string(simdjson::minify(value)), config.policy);
    if (policy) {
      config.policy = *policy;
    } else {
      faults.push_back(policy.error().message);
    }
    return;
  }
  read_option(key, find_option(key), value, config, faults);
}

}  // namespace

std::vector<std::string> read_config_json(std::string_view json, Config& config) {
  Faults faults;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const auto error = parser.parse(json.data(), json.size()).get(object);
  if (error != simdjson::SUCCESS) return {std::string("not a JSON object: ") + simdjson::error_message(error)};
  for (const auto member : object) read_member(member.key, member.value, config, faults);
  return faults;
}

}  // namespace warmroute::gateway
