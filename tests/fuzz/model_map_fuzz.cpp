// Any bytes as a map of models: refused in words, or a map that is valid and that routes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "warmroute/route/models.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warmroute;
  const auto map = model_map_from_json({reinterpret_cast<const char*>(data), size});
  if (!map) {
    if (map.error().message.empty()) std::abort();
    return 0;
  }
  static Router router;
  static const bool added = router.add_replica({.name = "r"}, Nanos{1}).ok();
  if (!added || !validate(*map)) std::abort();
  ModelRouter models(router);
  if (!models.set_map(*map)) std::abort();
  for (const ModelEntry& m : map->models) {
    Request r;
    r.model = m.name;
    const ModelDecision d = models.route(r, Nanos{2});
    if (d.routed() && !models.fail(d.ticket, Outcome::cancelled, Nanos{3})) std::abort();
  }
  return 0;
}
