// A consumer: includes everything, routes one request with the headers, and uses the library where it is linked.
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
#ifdef WITH_LIBRARY
  std::puts(warmroute::to_text(router.explain(request, warmroute::Nanos{2})).c_str());
#endif
  return router.finish(decision.ticket, {}, warmroute::Nanos{3}) ? 0 : 3;
}
