// Who a replica is, and how fast its hardware is. Values; the router gives them an id.
#include "warmroute/replica/replica.hpp"
#include "common.hpp"

namespace warmroute::python {
namespace {

std::string replica_repr(const ReplicaSpec& s) {
  std::string out = "<warmroute.ReplicaSpec '" + s.name + "'";
  if (s.dp_rank != 0) out += " rank " + std::to_string(s.dp_rank);
  if (!s.pool.empty()) out += " of pool '" + s.pool + "'";
  return out.append(" ").append(health_name(s.health)).append(">");
}

}  // namespace

void bind_replica(py::module_& m) {
  const Rates d;
  py::class_<Rates>(
      m, "Rates",
      "How fast one replica's hardware is. A step takes max(floor, token * T) + pair * P + context * C + overhead.\n\n"
      "units: ns and ps. The defaults are an 8B model on one H100.")
      .def(py::init([](std::int64_t floor_ns, std::int64_t token_ps, std::int64_t pair_ps, std::int64_t context_ps,
                       std::int64_t overhead_ns) {
             return Rates{floor_ns, token_ps, pair_ps, context_ps, overhead_ns};
           }),
           py::kw_only(), py::arg("floor_ns") = d.floor_ns, py::arg("token_ps") = d.token_ps,
           py::arg("pair_ps") = d.pair_ps, py::arg("context_ps") = d.context_ps, py::arg("overhead_ns") = d.overhead_ns)
      .def_readonly("floor_ns", &Rates::floor_ns, "The shortest step.")
      .def_readonly("token_ps", &Rates::token_ps, "One more token in a step.")
      .def_readonly("pair_ps", &Rates::pair_ps, "One (new token, earlier token) pair of attention.")
      .def_readonly("context_ps", &Rates::context_ps, "One token of context of a decode.")
      .def_readonly("overhead_ns", &Rates::overhead_ns, "Of the host, per step.")
      .def("prefill_ns", &Rates::prefill_ns, py::arg("tokens"),
           "Prefill time of the first `tokens` tokens of a prompt.")
      .def(
          "__eq__", [](const Rates& a, const Rates& b) { return a == b; }, py::is_operator())
      .def("__hash__",
           [](const Rates& r) {
             return py::hash(py::make_tuple(r.floor_ns, r.token_ps, r.pair_ps, r.context_ps, r.overhead_ns));
           })
      .def("__repr__", [](const Rates& r) {
        return "Rates(floor_ns=" + std::to_string(r.floor_ns) + ", token_ps=" + std::to_string(r.token_ps) +
               ", pair_ps=" + std::to_string(r.pair_ps) + ", context_ps=" + std::to_string(r.context_ps) +
               ", overhead_ns=" + std::to_string(r.overhead_ns) + ")";
      });
  const SlotSpec slots;
  py::class_<SlotSpec>(
      m, "SlotSpec",
      "Of a llama.cpp server: its --parallel, --kv-unified, and --cache-ram in tokens (0 = none).\n\n"
      "The defaults are those of llama-server without flags; with --parallel given, unified is off unless asked for.")
      .def(py::init([](std::uint32_t count, bool unified, std::int64_t ram_tokens) {
             return SlotSpec{count, unified, ram_tokens};
           }),
           py::arg("count") = slots.count, py::kw_only(), py::arg("unified") = slots.unified,
           py::arg("ram_tokens") = slots.ram_tokens)
      .def_readonly("count", &SlotSpec::count)
      .def_readonly("unified", &SlotSpec::unified)
      .def_readonly("ram_tokens", &SlotSpec::ram_tokens)
      .def(
          "__eq__", [](const SlotSpec& a, const SlotSpec& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const SlotSpec& s) { return py::hash(py::make_tuple(s.count, s.unified, s.ram_tokens)); })
      .def("__repr__", [](const SlotSpec& s) {
        return "SlotSpec(" + std::to_string(s.count) + ", unified=" + (s.unified ? "True" : "False") +
               ", ram_tokens=" + std::to_string(s.ram_tokens) + ")";
      });
  py::class_<ReplicaSpec>(m, "ReplicaSpec", "What the router knows of one replica: a copy, made by Router.replica.")
      .def_readonly("name", &ReplicaSpec::name)
      .def_readonly("dp_rank", &ReplicaSpec::dp_rank)
      .def_readonly("pool", &ReplicaSpec::pool, "The model it serves; '' serves every model without a pool of its own.")
      .def_property_readonly("ring_id", &ReplicaSpec::ring_name, "Its stable slot name on the ring.")
      .def_readonly("role", &ReplicaSpec::role)
      .def_readonly("weight", &ReplicaSpec::weight)
      .def_readonly("any_adapter", &ReplicaSpec::any_adapter)
      .def_readonly("adapters", &ReplicaSpec::adapters)
      .def_property_readonly("labels",
                             [](const ReplicaSpec& s) {
                               py::dict out;
                               for (const auto& [key, value] : s.labels) out[py::str(key)] = py::str(value);
                               return py::typing::Dict<py::str, py::str>(out);
                             })
      .def_readonly("rates", &ReplicaSpec::rates)
      .def_readonly("capacity_tokens", &ReplicaSpec::capacity_tokens, "Of its KV cache; 0 = unknown.")
      .def_readonly("cache_kind", &ReplicaSpec::cache_kind)
      .def_readonly("slots", &ReplicaSpec::slots, "Used where cache_kind is slots.")
      .def_property_readonly("slow_start_ns", [](const ReplicaSpec& s) { return s.slow_start.value; })
      .def_readonly("slow_start_weight", &ReplicaSpec::slow_start_weight)
      .def_property_readonly(
          "drain_until_ns", [](const ReplicaSpec& s) { return s.drain_until.value; },
          "Of a draining one: when it is taken for down; 0 = it may take its time.")
      .def_readonly("health", &ReplicaSpec::health)
      .def_readonly("health_reason", &ReplicaSpec::health_reason)
      .def("__repr__", &replica_repr);
}

}  // namespace warmroute::python
