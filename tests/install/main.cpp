// A consumer of the headers: includes everything and routes one request.
#include <warmroute/warmroute.hpp>

#include <cstdio>
#include <vector>

int main() {
  warmroute::Router router;
  if (!router.add_replica({.name = "gpu-0"}, warmroute::Nanos{0})) return 1;
  const std::vector<std::uint32_t> prompt(100, 7);
  warmroute::Request request;
  request.token_ids = prompt;
  const auto decision = router.route(request, warmroute::Nanos{1});
  if (!decision.routed()) return 2;
  std::puts("routed");
  return router.finish(decision.ticket, {}, warmroute::Nanos{3}) ? 0 : 3;
}
