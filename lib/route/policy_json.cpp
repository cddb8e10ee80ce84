// A table of members drives reading and writing, so that the two cannot drift apart.
#include "warmroute/route/policy_json.hpp"

#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>

#include <simdjson.h>

namespace warmroute {
namespace {

using simdjson::dom::element;

constexpr std::array<std::string_view, 2> kRingKeyNames{"prefix", "session_or_prefix"};
constexpr std::array<std::string_view, 3> kIsolationNames{"none", "salt", "pool"};
constexpr std::array<std::string_view, 2> kStaleNames{"ignore", "exclude"};
constexpr std::array<std::string_view, 3> kDisaggregateNames{"never", "always", "decided"};

struct Member {
  std::string_view name;
  std::string_view wants;  // for messages
  bool (*read)(Policy&, element);
  void (*write)(const Policy&, std::string&);
};

void append_number(std::string& out, double value) {
  if (std::fabs(value) < 1e15 && value == std::floor(value)) {  // 600000, not 6e+05
    out += std::to_string(static_cast<std::int64_t>(value));
    return;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  for (int digits = 1; digits < 17; ++digits) {  // the shortest form that reads back to the same value
    std::array<char, 32> shorter{};
    std::snprintf(shorter.data(), shorter.size(), "%.*g", digits, value);
    if (std::strtod(shorter.data(), nullptr) == value) {
      out += shorter.data();
      return;
    }
  }
  out += text.data();
}

template <auto Field>
bool read_double(Policy& p, element e) {
  return e.get(p.*Field) == simdjson::SUCCESS;
}
template <auto Field>
void write_double(const Policy& p, std::string& out) {
  append_number(out, p.*Field);
}

template <auto Field>
bool read_integer(Policy& p, element e) {
  using T = std::remove_reference_t<decltype(p.*Field)>;
  if constexpr (std::is_signed_v<T>) {
    std::int64_t v = 0;
    if (e.get(v) != simdjson::SUCCESS || v > std::numeric_limits<T>::max() || v < std::numeric_limits<T>::min())
      return false;
    p.*Field = static_cast<T>(v);
  } else {
    std::uint64_t v = 0;
    if (e.get(v) != simdjson::SUCCESS || v > std::numeric_limits<T>::max()) return false;
    p.*Field = static_cast<T>(v);
  }
  return true;
}
template <auto Field>
void write_integer(const Policy& p, std::string& out) {
  out += std::to_string(p.*Field);
}

// Milliseconds with fractions down to the nanosecond.
template <auto Field>
bool read_ms(Policy& p, element e) {
  double ms = 0;
  if (e.get(ms) != simdjson::SUCCESS || !(std::fabs(ms) < 1e12)) return false;
  p.*Field = Nanos{static_cast<std::int64_t>(std::llround(ms * 1e6))};
  return true;
}
template <auto Field>
void write_ms(const Policy& p, std::string& out) {
  append_number(out, static_cast<double>((p.*Field).value) / 1e6);
}

template <auto Field>
bool read_bool(Policy& p, element e) {
  return e.get(p.*Field) == simdjson::SUCCESS;
}
template <auto Field>
void write_bool(const Policy& p, std::string& out) {
  out += p.*Field ? "true" : "false";
}

template <auto Field, auto& Names>
bool read_enum(Policy& p, element e) {
  std::string_view name;
  if (e.get(name) != simdjson::SUCCESS) return false;
  for (std::size_t i = 0; i < Names.size(); ++i) {
    if (Names[i] != name) continue;
    p.*Field = static_cast<std::remove_reference_t<decltype(p.*Field)>>(i);
    return true;
  }
  return false;
}
template <auto Field, auto& Names>
void write_enum(const Policy& p, std::string& out) {
  out.append("\"").append(Names[static_cast<std::size_t>(p.*Field)]).append("\"");
}

constexpr Member kMembers[]{
    {"algorithm",
     "one of cost, random, round_robin, least_requests, least_tokens, power_of_two, longest_match, consistent_hash, "
     "bounded_hash",
     read_enum<&Policy::algorithm, kAlgorithmNames>, write_enum<&Policy::algorithm, kAlgorithmNames>},
    {"beta", "a number", read_double<&Policy::beta>, write_double<&Policy::beta>},
    {"gamma", "a number", read_double<&Policy::gamma>, write_double<&Policy::gamma>},
    {"delta", "a number", read_double<&Policy::delta>, write_double<&Policy::delta>},
    {"hot", "a number", read_double<&Policy::hot>, write_double<&Policy::hot>},
    {"tail", "a number", read_double<&Policy::tail>, write_double<&Policy::tail>},
    {"reuse_ms", "milliseconds", read_ms<&Policy::reuse>, write_ms<&Policy::reuse>},
    {"session_bonus_ms", "milliseconds", read_ms<&Policy::session_bonus>, write_ms<&Policy::session_bonus>},
    {"host_transfer_per_token_ms", "milliseconds", read_ms<&Policy::host_transfer_per_token>,
     write_ms<&Policy::host_transfer_per_token>},
    {"disk_transfer_per_token_ms", "milliseconds", read_ms<&Policy::disk_transfer_per_token>,
     write_ms<&Policy::disk_transfer_per_token>},
    {"shared_transfer_per_token_ms", "milliseconds", read_ms<&Policy::shared_transfer_per_token>,
     write_ms<&Policy::shared_transfer_per_token>},
    {"learn_rates", "true or false", read_bool<&Policy::learn_rates>, write_bool<&Policy::learn_rates>},
    {"ring_key", "prefix or session_or_prefix", read_enum<&Policy::ring_key, kRingKeyNames>,
     write_enum<&Policy::ring_key, kRingKeyNames>},
    {"ring_key_tokens", "an integer", read_integer<&Policy::ring_key_tokens>, write_integer<&Policy::ring_key_tokens>},
    {"ring_points", "an integer", read_integer<&Policy::ring_points>, write_integer<&Policy::ring_points>},
    {"ring_seed", "an unsigned integer", read_integer<&Policy::ring_seed>, write_integer<&Policy::ring_seed>},
    {"routers", "an integer", read_integer<&Policy::routers>, write_integer<&Policy::routers>},
    {"bound_factor", "a number", read_double<&Policy::bound_factor>, write_double<&Policy::bound_factor>},
    {"block_size", "an integer", read_integer<&Policy::block_size>, write_integer<&Policy::block_size>},
    {"hash_seed", "an unsigned integer", read_integer<&Policy::hash_seed>, write_integer<&Policy::hash_seed>},
    {"isolation", "none, salt or pool", read_enum<&Policy::isolation, kIsolationNames>,
     write_enum<&Policy::isolation, kIsolationNames>},
    {"capacity_tokens", "an integer", read_integer<&Policy::capacity_tokens>, write_integer<&Policy::capacity_tokens>},
    {"residency_ttl_ms", "milliseconds", read_ms<&Policy::residency_ttl>, write_ms<&Policy::residency_ttl>},
    {"lease_ms", "milliseconds", read_ms<&Policy::lease>, write_ms<&Policy::lease>},
    {"session_ttl_ms", "milliseconds", read_ms<&Policy::session_ttl>, write_ms<&Policy::session_ttl>},
    {"signals_max_age_ms", "milliseconds", read_ms<&Policy::signals_max_age>, write_ms<&Policy::signals_max_age>},
    {"stale_signals", "ignore or exclude", read_enum<&Policy::stale_signals, kStaleNames>,
     write_enum<&Policy::stale_signals, kStaleNames>},
    {"route_when_all_down", "true or false", read_bool<&Policy::route_when_all_down>,
     write_bool<&Policy::route_when_all_down>},
    {"saturation_wait_ms", "milliseconds", read_ms<&Policy::saturation_wait>, write_ms<&Policy::saturation_wait>},
    {"saturation_kv", "a number", read_double<&Policy::saturation_kv>, write_double<&Policy::saturation_kv>},
    {"shed_priority", "an integer", read_integer<&Policy::shed_priority>, write_integer<&Policy::shed_priority>},
    {"disaggregate", "never, always or decided", read_enum<&Policy::disaggregate, kDisaggregateNames>,
     write_enum<&Policy::disaggregate, kDisaggregateNames>},
    {"unified_pairs", "true or false", read_bool<&Policy::unified_pairs>, write_bool<&Policy::unified_pairs>},
    {"pair_min_tokens", "an integer", read_integer<&Policy::pair_min_tokens>, write_integer<&Policy::pair_min_tokens>},
    {"kv_transfer_per_token_ms", "milliseconds", read_ms<&Policy::kv_transfer_per_token>,
     write_ms<&Policy::kv_transfer_per_token>},
    {"kv_transfer_latency_ms", "milliseconds", read_ms<&Policy::kv_transfer_latency>,
     write_ms<&Policy::kv_transfer_latency>},
    {"transfer_timeout_ms", "milliseconds", read_ms<&Policy::transfer_timeout>, write_ms<&Policy::transfer_timeout>},
    {"decode_keeps_cache", "true or false", read_bool<&Policy::decode_keeps_cache>,
     write_bool<&Policy::decode_keeps_cache>},
    {"interference", "a number", read_double<&Policy::interference>, write_double<&Policy::interference>},
    {"ttft_limit_ms", "milliseconds", read_ms<&Policy::ttft_limit>, write_ms<&Policy::ttft_limit>},
    {"itl_limit_ms", "milliseconds", read_ms<&Policy::itl_limit>, write_ms<&Policy::itl_limit>},
    {"seed", "an unsigned integer", read_integer<&Policy::seed>, write_integer<&Policy::seed>},
    {"version", "an unsigned integer", read_integer<&Policy::version>, write_integer<&Policy::version>},
};
constexpr std::size_t kMaxBytes = 64 * 1024;

}  // namespace

Result<Policy> policy_from_json(std::string_view json, const Policy& base) {
  if (json.size() > kMaxBytes) return Error{Code::too_large, "policy: more than 64 KiB of JSON", kMaxBytes};
  simdjson::dom::parser parser;
  element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root); error != simdjson::SUCCESS) {
    return Error{Code::invalid_json, std::string("policy: not JSON: ") + simdjson::error_message(error), kNoOffset};
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return Error{Code::not_an_object, "policy: the JSON is not an object", 0};
  Policy policy = base;
  std::string faults;
  const auto fault = [&](std::string_view name, std::string_view text) {
    faults.append(faults.empty() ? "" : "; ").append(name).append(" ").append(text);
  };
  for (const auto field : object) {
    const Member* found = nullptr;
    for (const Member& member : kMembers) {
      if (member.name == field.key) found = &member;
    }
    if (found == nullptr) fault(field.key, "is not a member of a policy");
    else if (!found->read(policy, field.value)) fault(field.key, std::string("must be ").append(found->wants));
  }
  if (const auto valid = validate(policy); !valid) {
    constexpr std::string_view kPrefix = "policy: ";
    faults.append(faults.empty() ? "" : "; ").append(valid.error().message.substr(kPrefix.size()));
  }
  if (!faults.empty()) return Error{Code::invalid_argument, "policy: " + faults, kNoOffset};
  return policy;
}

std::string policy_to_json(const Policy& policy) {
  std::string out = "{";
  for (const Member& member : kMembers) {
    out.append(out.size() == 1 ? "\n  \"" : ",\n  \"").append(member.name).append("\": ");
    member.write(policy, out);
  }
  return out + "\n}\n";
}

}  // namespace warmroute
