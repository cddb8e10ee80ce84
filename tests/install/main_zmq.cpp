// A consumer of the subscriber: starts one, and listens to an engine that is not there.
#include <warmroute/ingest/kv_subscriber.hpp>

#include <cstdio>

int main() {
  warmroute::Router router;
  const auto id = router.add_replica({.name = "gpu-0"}, warmroute::Nanos{0});
  auto subscriber = warmroute::KvSubscriber::start(router);
  if (!id || !subscriber) return 1;
  warmroute::KvEndpoint endpoint;
  endpoint.replica = *id;
  endpoint.events = "tcp://127.0.0.1:1";
  if (!subscriber->add(endpoint)) return 2;
  std::puts("routed");
  return subscriber->statuses().size() == 1 ? 0 : 3;
}
