// How the subscriptions are, for /replicas and /metrics.
#include "gateway/engine_events.hpp"

#include <array>
#include <cstdint>

#include "common/text.hpp"

namespace warmroute::gateway {
namespace {

constexpr std::array<std::string_view, 3> kStates{"waiting", "live", "replaying"};

double seconds_since(Nanos then, Nanos now) {
  return then.value == 0 || then > now ? 0.0 : static_cast<double>(now.value - then.value) / 1e9;
}

std::string in_seconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", value);
  return text.data();
}

double unsure_seconds(const KvSourceStatus& source, Nanos now) {
  return source.state == KvSourceState::replaying ? seconds_since(source.unsure_since, now) : 0.0;
}

struct Family {
  std::string_view name, type, help;
  std::string (*value)(const KvEndpointStatus&, Nanos);
};

constexpr std::array kFamilies{
    Family{"connected", "gauge", "1 while connected to the engine's publisher.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.connected ? 1 : 0); }},
    Family{"connects_total", "counter", "Connections to the publisher, the first one included.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.connects); }},
    Family{"messages_total", "counter", "Messages of the engine's publisher.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.source.messages); }},
    Family{"age_seconds", "gauge", "Since the last message; 0 before the first one.",
           [](const KvEndpointStatus& s, Nanos now) { return in_seconds(seconds_since(s.source.last_event, now)); }},
    Family{"unsure_seconds", "gauge", "Since when a gap is being filled; 0 while there is none.",
           [](const KvEndpointStatus& s, Nanos now) { return in_seconds(unsure_seconds(s.source, now)); }},
    Family{"gaps_total", "counter", "Gaps in the messages' numbers.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.source.gaps); }},
    Family{"replayed_total", "counter", "Messages that came by replay.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.source.replayed); }},
    Family{"resyncs_total", "counter", "Gaps that could not be filled: the replica's entries were cleared.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.source.resyncs); }},
    Family{"restarts_total", "counter", "Restarts of the engine, seen by its numbers.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.source.restarts); }},
    Family{"refused_total", "counter", "Messages and events that could not be read.",
           [](const KvEndpointStatus& s, Nanos) {
             return std::to_string(s.bad_frames + s.source.bad_messages + s.source.bad_events);
           }},
    Family{"orphan_blocks", "gauge", "Blocks that wait for their parent.",
           [](const KvEndpointStatus& s, Nanos) { return std::to_string(s.source.orphan_blocks); }},
};

}  // namespace

void append_events_json(const std::vector<KvEndpointStatus>& statuses, ReplicaId replica, Nanos now, std::string& out) {
  for (const KvEndpointStatus& status : statuses) {
    if (status.replica != replica) continue;
    out.append(",\"events\":{\"state\":")
        .append(examples::json_quoted(kStates[static_cast<std::size_t>(status.source.state) % kStates.size()]));
    out.append(",\"connected\":").append(status.connected ? "true" : "false");
    for (const Family& family : kFamilies) {
      if (family.name == "connected") continue;
      std::string_view name = family.name;
      if (name.ends_with("_total")) name.remove_suffix(6);
      out.append(",\"").append(name).append("\":").append(family.value(status, now));
    }
    out.append("}");
  }
}

void append_events_prometheus(const std::vector<KvEndpointStatus>& statuses, const Fleet& fleet, Nanos now,
                              std::string& out) {
  if (statuses.empty()) return;
  for (const Family& family : kFamilies) {
    const std::string name = "warmroute_gateway_events_" + std::string(family.name);
    out.append("# HELP ").append(name).append(" ").append(family.help).append("\n");
    out.append("# TYPE ").append(name).append(" ").append(family.type).append("\n");
    for (const KvEndpointStatus& status : statuses) {
      const Upstream* upstream = fleet.find(status.replica);
      if (upstream == nullptr) continue;
      out.append(name).append("{replica=").append(examples::json_quoted(upstream->name)).append("} ");
      out.append(family.value(status, now)).append("\n");
    }
  }
}

}  // namespace warmroute::gateway
