// What one replica is told, in its text form.
#include <algorithm>

#include "common/text.hpp"
#include "gateway/config_options.hpp"

namespace warmroute::gateway {

std::string set_address(std::string_view address, ReplicaConfig& replica) {
  const auto url = examples::parse_base_url(address);
  if (!url) return url.error().message;
  replica.path = url->path;
  replica.host = url->host;
  replica.port = url->port;
  return {};
}

std::string set_replica_option(std::string_view name, std::string_view value, ReplicaConfig& replica) {
  if (name == "events") {
    replica.events = value;
  } else if (name == "replay") {
    replica.replay = value;
  } else if (name == "metrics") {
    replica.metrics = value;
  } else if (name == "loads") {
    replica.loads = value;
  } else if (name == "engine") {
    replica.engine = value;
  } else if (name == "role") {
    for (const auto role : {Role::unified, Role::prefill, Role::decode}) {
      if (role_name(role) != value) continue;
      replica.spec.role = role;
      return {};
    }
    return "'" + std::string(value) + "' is none of unified prefill decode";
  } else if (name == "host") {
    replica.host_name = value;
  } else if (name == "key_env") {
    replica.key_env = value;
  } else if (name == "key_file") {
    replica.key_file = value;
  } else if (name == "kind") {
    if (value != "paged" && value != "slots") return "'" + std::string(value) + "' is neither paged nor slots";
    replica.spec.cache_kind = value == "slots" ? CacheKind::slots : CacheKind::paged;
  } else if (name == "slots") {
    auto fault = read_number<std::uint32_t>(value, 1, 256, replica.spec.slots.count);
    if (!replica.unified) replica.spec.slots.unified = false;
    return fault;
  } else if (name == "slot_ram_tokens") {
    return read_number<std::int64_t>(value, 0, 1'000'000'000'000, replica.spec.slots.ram_tokens);
  } else {
    if (value != "0" && value != "1" && value != "true" && value != "false")
      return "'" + std::string(value) + "' is neither true nor false";
    const bool yes = value == "1" || value == "true";
    if (name == "input_includes_cache") {
      replica.meter.input_includes_cache = yes ? Belief::yes : Belief::no;
    } else {
      replica.unified = replica.spec.slots.unified = yes;
    }
  }
  return {};
}

bool is_replica_option(std::string_view name) {
  for (const auto known : {"events", "replay", "metrics", "loads", "engine", "kind", "slots", "unified",
                           "slot_ram_tokens", "input_includes_cache", "role", "host", "key_env", "key_file"}) {
    if (name == known) return true;
  }
  return false;
}

std::string add_replica(Config& config, std::string_view whole) {
  const std::string_view text = whole.substr(0, whole.find(','));
  const auto equals = text.find('=');
  const std::string_view address = equals == std::string_view::npos ? text : text.substr(equals + 1);
  ReplicaConfig replica;
  replica.spec.name = text.substr(0, equals == std::string_view::npos ? text.size() : equals);
  auto fault = set_address(address, replica);
  for (std::string_view rest = whole.substr(text.size()); fault.empty() && !rest.empty();) {
    const std::string_view member = rest.substr(1, rest.find(',', 1) - 1);
    rest.remove_prefix(member.size() + 1);
    const auto sign = std::min(member.find('='), member.size());
    fault = sign < member.size() && is_replica_option(member.substr(0, sign))
                ? set_replica_option(member.substr(0, sign), member.substr(sign + 1), replica)
                : "'" + std::string(member) +
                      "' is none of events= replay= metrics= loads= engine= kind= slots= unified= slot_ram_tokens= "
                      "input_includes_cache= role= host= key_env= key_file=";
  }
  if (fault.empty()) config.replicas.push_back(std::move(replica));
  return fault;
}

}  // namespace warmroute::gateway
