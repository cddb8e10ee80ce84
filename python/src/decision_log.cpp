// The log of a router that records: its records, and playing it again.
#include <utility>

#include "decision.hpp"
#include "trace.hpp"

namespace warmroute::python {
namespace {

using trace::DecisionCall;
using trace::DecisionDifference;
using trace::DecisionLogReader;
using trace::DecisionRecord;
using trace::DecisionReplay;

struct PyDecisionLog {
  explicit PyDecisionLog(DecisionLogReader opened) : reader(std::move(opened)) {}
  std::mutex mutex;
  DecisionLogReader reader;
};

DecisionRecord next_decision_record(PyDecisionLog& self) {
  const Turn turn(self.mutex);
  DecisionRecord record;
  const bool more = value_of(without_gil([&] { return self.reader.next(record); }));
  if (!more) throw py::stop_iteration();
  return record;
}

std::string decision_record_json(const DecisionRecord& record, bool blocks) {
  std::string line;
  append_json_line(record, line, blocks);
  return line;
}

// Numbers begin at 1.
void bind_decision_call(py::module_& m) {
  py::native_enum<DecisionCall> bound(m, "DecisionCall", "enum.IntEnum", "A call of Router, as a decision log has it.");
  for (std::size_t i = 1; i < trace::kDecisionCallCount; ++i) {
    const auto call = static_cast<DecisionCall>(i);
    bound.value(std::string(decision_call_name(call)).c_str(), call);
  }
  bound.finalize();
}

void bind_decision_record(py::module_& m) {
  py::class_<DecisionRecord>(
      m, "DecisionRecord",
      "One call of a router that records, and what came of it. What else it was given is in to_json and to_dict.")
      .def_readonly("number", &DecisionRecord::number, "From 0.")
      .def_readonly("call", &DecisionRecord::call)
      .def_property_readonly(
          "now_ns", [](const DecisionRecord& r) { return r.now.value; },
          "As the caller gave it; of calls without a time that of the call before.")
      .def_property_readonly(
          "replica",
          [](const DecisionRecord& r) {
            return r.replica.valid() ? std::optional<std::uint64_t>(replica_number(r.replica)) : std::nullopt;
          },
          "Whom it is about; of add_replica: what it got.")
      .def_property_readonly(
          "ticket", [](const DecisionRecord& r) { return static_cast<std::uint64_t>(r.ticket); },
          "Of first_token, transfer_done, finish and fail; else 0.")
      .def_property_readonly(
          "error",
          [](const DecisionRecord& r) {
            return r.code == Code::ok ? std::optional<std::string>{} : std::string(code_name(r.code));
          },
          "Why it was refused, as Error.code; None: it was not.")
      .def_readonly("done", &DecisionRecord::done, "Of calls with a ticket: False if that was over.")
      .def_property_readonly(
          "decision",
          [](const DecisionRecord& r) {
            return r.call == DecisionCall::route ? std::optional<Decision>(r.decision) : std::nullopt;
          },
          "Of route.")
      .def_property_readonly(
          "blocks",
          [](const py::object& self) {
            const auto& r = self.cast<const DecisionRecord&>();
            return array_view<std::uint64_t>(std::span<const BlockHash>(r.blocks), self);
          },
          "Of route and blocks_stored, under the log's key. Read-only view; shape uint64[n].")
      .def("to_json", &decision_record_json, py::arg("blocks") = false,
           "An object on one line. blocks: all hashes, not only how many.")
      .def(
          "to_dict",
          [](const DecisionRecord& r, bool blocks) {
            return AnyDict(py::module_::import("json").attr("loads")(decision_record_json(r, blocks)));
          },
          py::arg("blocks") = false, "The same as a dict.")
      .def("__repr__", [](const DecisionRecord& r) {
        return "<warmroute.DecisionRecord " + std::to_string(r.number) + ": " +
               std::string(decision_call_name(r.call)) + ">";
      });
}

py::object difference_of(const std::optional<DecisionDifference>& d) {
  if (!d) return py::none();
  py::dict out;
  out["record"] = d->record;
  out["call"] = d->call;
  out["now_ns"] = d->now.value;
  const bool decisions = d->call == DecisionCall::route;
  out["recorded"] = decisions ? py::cast(d->recorded) : py::object(py::none());
  out["replayed"] = decisions ? py::cast(d->replayed) : py::object(py::none());
  return out;
}

AnyDict replay_log(const py::object& path, const std::string& change, std::uint64_t max_records) {
  const std::string name = path_of(path);
  const DecisionReplay r = value_of(without_gil([&]() -> Result<DecisionReplay> {
    auto log = DecisionLogReader::open(name);
    if (!log) return log.error();
    return replay_decisions(*log, {.change = change, .max_records = max_records});
  }));
  py::dict out;
  out["records"] = r.records;
  out["decisions"] = r.decisions;
  out["differing"] = r.differing;
  out["other_choices"] = r.other_choices;
  out["other_results"] = r.other_results;
  out["torn_bytes"] = r.torn_bytes;
  out["first_difference"] = difference_of(r.first_difference);
  out["first_other_choice"] = difference_of(r.first_other_choice);
  return AnyDict(out);
}

}  // namespace

void bind_decision_log(py::module_& m) {
  bind_decision_call(m);
  bind_decision_record(m);
  py::class_<PyDecisionLog>(m, "DecisionLog", "See warmroute.trace.DecisionLog.")
      .def(py::init([](const py::object& path) {
             const std::string name = path_of(path);
             return std::make_unique<PyDecisionLog>(
                 value_of(without_gil([&] { return DecisionLogReader::open(name); })));
           }),
           py::arg("path"))
      .def("__iter__", [](PyDecisionLog& self) -> PyDecisionLog& { return self; })
      .def("__next__", &next_decision_record)
      .def_property_readonly(
          "torn_bytes",
          [](PyDecisionLog& self) {
            const Turn turn(self.mutex);
            return self.reader.torn_bytes();
          },
          "Of a record that was not written out whole; known at the end.");
  m.def("replay_decision_log", &replay_log, py::arg("path"), py::arg("change"), py::arg("max_records"));
}

}  // namespace warmroute::python
