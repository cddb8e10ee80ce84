// GatewayRing: whose a request is, among several gateways.
#include <string>
#include <utility>
#include <vector>

#include "request.hpp"
#include "warmroute/route/gateway_ring.hpp"
#include "warmroute/route/policy.hpp"

namespace warmroute::python {

void bind_gateway_ring(py::module_& m) {
  py::class_<GatewayRing>(
      m, "GatewayRing",
      "Several gateways, each with a router of its own: whose a request is, so that it is forwarded there, once at "
      "most.\n\n"
      "A gateway that is down owns nothing; its keys go to their next one on the ring and come back with it.")
      .def(py::init([](const std::vector<std::string>& names, std::string_view self_name) {
             return value_of(GatewayRing::build(names, self_name));
           }),
           py::arg("names"), py::arg("self_name"),
           "shape: names in the order that all gateways use; self_name is one of them.\n\n"
           "errors: Error invalid_argument, already_exists (a name), not_found (self_name).")
      .def(
          "key",
          [](const GatewayRing& self, const PyRequest& r, const Policy& policy) { return self.key(r.view, policy); },
          py::arg("request"), py::arg("policy"),
          "What all gateways with this policy make of the request: its session, else its first ring_key_tokens.")
      .def(
          "owner",
          [](const GatewayRing& self, std::uint64_t key, bool forwarded) { return self.owner(key, forwarded).index; },
          py::arg("key"), py::kw_only(), py::arg("forwarded") = false,
          "returns: the index of the gateway that serves the key; of this one if the request was forwarded already.")
      .def("set_up", &GatewayRing::set_up, py::arg("index"), py::arg("up"),
           "Whether requests may be forwarded there; all are up at first.")
      .def_property_readonly("index", &GatewayRing::self, "Of this gateway, in `names`.")
      .def("__len__", &GatewayRing::size)
      .def("__repr__", [](const GatewayRing& self) {
        return "<warmroute.GatewayRing " + std::to_string(self.self()) + " of " + std::to_string(self.size()) + ">";
      });
}

}  // namespace warmroute::python
