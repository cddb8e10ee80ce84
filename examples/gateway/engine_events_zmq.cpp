// The subscriptions themselves, over warmroute::zmq.
#include <utility>

#include "gateway/engine_events.hpp"
#include "gateway/ticket_guard.hpp"

namespace warmroute::gateway {

struct EngineEvents::Impl {
  explicit Impl(KvSubscriber started) : subscriber(std::move(started)) {}
  KvSubscriber subscriber;
};

EngineEvents::EngineEvents() = default;
EngineEvents::~EngineEvents() = default;
void EngineEvents::stop() { impl_.reset(); }

Status EngineEvents::start(Router& router, const Fleet& fleet, const Config& config, LogSink log) {
  KvSubscriberOptions options;
  options.clock = [](void*) { return now(); };
  options.log = log;
  for (std::size_t i = 0; i < config.replicas.size(); ++i) {
    const ReplicaConfig& replica = config.replicas[i];
    if (replica.events.empty()) continue;
    if (impl_ == nullptr) {
      auto started = KvSubscriber::start(router, options);
      if (!started) return started.error();
      impl_ = std::make_unique<Impl>(std::move(*started));
    }
    KvEndpoint endpoint;
    endpoint.replica = fleet.at(i).id;
    endpoint.events = replica.events;
    endpoint.replay = replica.replay;
    endpoint.source.events = kv_event_options(config.policy);
    if (auto added = impl_->subscriber.add(endpoint); !added) {
      return Error{added.error().code, "replica '" + replica.spec.name + "': events: " + added.error().message,
                   kNoOffset};
    }
  }
  return {};
}

std::vector<KvEndpointStatus> EngineEvents::statuses() const {
  return impl_ == nullptr ? std::vector<KvEndpointStatus>{} : impl_->subscriber.statuses();
}

}  // namespace warmroute::gateway
