// Decision: what a routing call answered, as a light read-only value.
#include "decision.hpp"

namespace warmroute::python {
namespace {

std::string decision_repr(const Decision& d) {
  std::string out = "<warmroute.Decision ";
  out.append(verdict_name(d.verdict));
  if (!d.routed()) return out + ">";
  out += ": slot " + std::to_string(d.replica.slot) + ", " + std::to_string(d.total_cached().value) + " of " +
         std::to_string(d.input_tokens.value) + " tokens cached, ";
  return out.append(reason_name(d.reason)).append(">");
}

}  // namespace

void bind_decision(py::module_& m) {
  py::class_<Decision>(m, "Decision", "Which replica serves a request, what it holds of it, and why. True when routed.")
      .def_readonly("verdict", &Decision::verdict)
      .def_readonly("reason", &Decision::reason)
      .def_property_readonly("routed", &Decision::routed)
      .def_property_readonly(
          "replica", [](const Decision& d) { return chosen(d); },
          "The replica's int, or minus the verdict's number when not routed.")
      .def_property_readonly(
          "ticket", [](const Decision& d) { return static_cast<std::uint64_t>(d.ticket); },
          "0 from peek and when nothing was routed.")
      .def_property_readonly(
          "fallbacks",
          [](const Decision& d) {
            py::tuple out(d.fallback_count);
            for (std::size_t i = 0; i < d.fallback_count; ++i) out[i] = replica_number(d.fallback_ids[i]);
            return py::typing::Tuple<py::int_, py::ellipsis>(out);
          },
          "What to try next, best first.")
      .def_property_readonly(
          "input_tokens", [](const Decision& d) { return d.input_tokens.value; }, "As given or estimated.")
      .def_property_readonly(
          "cached_tokens", [](const Decision& d) { return d.total_cached().value; }, "Held there, on any tier.")
      .def_property_readonly(
          "cached_tokens_by_tier",
          [](const Decision& d) {
            return std::array{d.cached_tokens[0].value, d.cached_tokens[1].value, d.cached_tokens[2].value,
                              d.cached_tokens[3].value};
          },
          "On the device, then what only host memory, then what only disk, then what only the shared store adds.")
      .def_property_readonly("uncached_tokens", [](const Decision& d) { return d.uncached_tokens().value; })
      .def_property_readonly(
          "best_cached_tokens", [](const Decision& d) { return d.best_cached_tokens.value; },
          "The most that any candidate holds.")
      .def_property_readonly(
          "expected_wait_ns", [](const Decision& d) { return d.expected_wait.value; },
          "Prefill work booked there before this request.")
      .def_property_readonly(
          "expected_prefill_ns", [](const Decision& d) { return d.expected_prefill.value; }, "Of the uncached tokens.")
      .def_property_readonly("expected_ttft_ns", [](const Decision& d) { return d.expected_ttft().value; })
      .def_readonly("split", &Decision::split, "Whether one replica or two serve it, and why.")
      .def_property_readonly(
          "prefill_replica",
          [](const Decision& d) {
            return d.is_pair() ? std::optional<std::uint64_t>(replica_number(d.prefill_replica)) : std::nullopt;
          },
          "Of a pair: the int of the replica where prefill runs.")
      .def_property_readonly(
          "decode_cached_tokens", [](const Decision& d) { return d.decode_cached_tokens.value; },
          "Of a pair: leading tokens that `replica` holds already; the rest is transferred.")
      .def_property_readonly("expected_transfer_ns", [](const Decision& d) { return d.expected_transfer.value; })
      .def_property_readonly(
          "retry_after_ns", [](const Decision& d) { return d.retry_after.value; },
          "For refusing verdicts; 0 = unknown.")
      .def_readonly("class_id", &Decision::class_id)
      .def_readonly("priority", &Decision::priority)
      .def("__bool__", &Decision::routed)
      .def("__repr__", &decision_repr);
  m.def(
      "replica_slot", [](std::uint64_t replica) { return replica_of(replica).slot; }, py::arg("replica"),
      "The dense table index of a replica's int; given again after a removal.");
  m.def(
      "replica_generation", [](std::uint64_t replica) { return replica_of(replica).generation; }, py::arg("replica"),
      "Which tenant of its slot a replica's int names.");
}

}  // namespace warmroute::python
