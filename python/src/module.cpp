// warmroute._core: the module itself, its version, and how errors become exceptions.
#include "common.hpp"

namespace warmroute::python {

void raise(const Error& error) {
  const py::object type = py::module_::import("warmroute._error").attr("Error");
  const py::object offset = error.offset == kNoOffset ? py::object(py::none()) : py::int_(error.offset);
  const py::object instance = unless_ending([&]() -> py::object {
    return type(error.message, std::string(code_name(error.code)), static_cast<std::int32_t>(error.code), offset);
  });
  PyErr_SetObject(type.ptr(), instance.ptr());
  throw py::error_already_set();
}

}  // namespace warmroute::python

// No mod_gil_not_used: not tested on a free-threaded interpreter. No multiple_interpreters: the default refuses subinterpreters,
// as NumPy does.
PYBIND11_MODULE(_core, m) {
  using namespace warmroute::python;
  m.doc() = "The compiled part of warmroute; import warmroute instead.";
  m.attr("__version__") = WARMROUTE_PYTHON_VERSION;
  bind_enums(m);
  bind_hashing(m);
  bind_index(m);
  bind_ring(m);
  bind_policy(m);
  bind_replica(m);
  bind_decision(m);
  bind_request(m);
  bind_gateway_ring(m);
  bind_body(m);
  bind_explain(m);
  bind_router(m);
  bind_models(m);
  bind_events(m);
  bind_subscriber(m);
  bind_metrics(m);
  bind_poller(m);
  bind_usage_enums(m);
  bind_usage_values(m);
  bind_usage_price(m);
  bind_usage_meter(m);
  bind_usage_request(m);
  bind_usage_keys(m);
  bind_usage_limits(m);
  bind_usage_journal(m);
  bind_usage_ledger(m);
  bind_control_snapshot(m);
  bind_control_applier(m);
  bind_control_threads(m);
  bind_trace(m);
  bind_decision_log(m);
  bind_simulate(m);
  bind_ratio(m);
}
