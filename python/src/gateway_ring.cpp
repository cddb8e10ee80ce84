// Several gateways: GatewayRing, whose a request is; Router, what gateways tell one another.
#include <string>
#include <utility>
#include <vector>

#include "router.hpp"
#include "warmroute/route/gateway_ring.hpp"
#include "warmroute/route/peer_load.hpp"
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

void bind_peers(RouterClass& c) {
  c.def(
       "loads",
       [](PyRouter& self, NowArg now_ns) {
         const Nanos now = self.at(now_ns);
         return py::bytes(self.released([&] {
           std::vector<PeerLoad> loads;
           self.router.loads(loads, now);
           std::string text;
           append_peer_loads(loads, text);
           return text;
         }));
       },
       py::arg("now_ns") = std::nullopt,
       "What this router has in flight, for the routers of its peers: a line for each replica with requests, by "
       "name.\n\n"
       "Of no prompt and no client; empty when nothing is in flight. Send it whole, each 20 to 100 ms: the next "
       "message "
       "makes good for\none that is lost.")
      .def(
          "peer_loads",
          [](PyRouter& self, std::uint32_t peer, const BytesView& loads, NowArg now_ns) {
            const auto read = value_of(read_peer_loads(loads.text()));
            const Nanos now = self.at(now_ns);
            return value_of(self.released([&] { return self.router.peer_loads(peer, read, now); }));
          },
          py::arg("peer"), py::arg("loads"), py::arg("now_ns") = std::nullopt,
          "What `loads` of that peer gave, in place of what it said before: counted as this router's own load until "
          "the "
          "next one, or\nfor signals_max_age_ns.\n\n"
          "peer: its number in the GatewayRing, not this router's own. returns: how many lines name a replica that is "
          "here.\n"
          "errors: Error invalid_argument (no such text, with its offset; peer); nothing is taken then.")
      .def(
          "peer_placed",
          [](PyRouter& self, std::uint64_t replica, const PyRequest& request, NowArg now_ns) {
            const Nanos now = self.at(now_ns);
            check(self.released([&] { return self.router.peer_placed(replica_of(replica), request.view, now); }));
          },
          py::arg("replica"), py::arg("request"), py::arg("now_ns") = std::nullopt,
          "A peer sent this request there: its prompt is believed there as if it had been this router's own; nothing "
          "is "
          "booked.\n\n"
          "Token ids or blocks, with equal hash seeds. errors: Error stale, unsupported (a replica that keeps slots).");
}

}  // namespace warmroute::python
