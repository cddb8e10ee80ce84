// Built instead of engine_events_zmq.cpp where ZeroMQ is not.
#include "gateway/engine_events.hpp"

namespace warmroute::gateway {

struct EngineEvents::Impl {};

EngineEvents::EngineEvents() = default;
EngineEvents::~EngineEvents() = default;
void EngineEvents::stop() {}
std::vector<KvEndpointStatus> EngineEvents::statuses() const { return {}; }

Status EngineEvents::start(Router&, const Fleet&, const Config& config, LogSink) {
  for (const auto& replica : config.replicas) {
    if (replica.events.empty()) continue;
    return Error{
        Code::unsupported,
        "replica '" + replica.spec.name + "': events: this build has no ZeroMQ (libzmq and WARMROUTE_WITH_ZMQ=ON)",
        kNoOffset};
  }
  return {};
}

}  // namespace warmroute::gateway
