// UsageEvent in and out.
#include "usage_event.hpp"

namespace warmroute::python {
namespace {

struct EventText {
  const char* name;
  std::string_view UsageEvent::*text;
};
constexpr std::array kTexts{EventText{"operation_id", &UsageEvent::operation_id},
                            EventText{"key_id", &UsageEvent::key_id},
                            EventText{"team_id", &UsageEvent::team_id},
                            EventText{"provider", &UsageEvent::provider},
                            EventText{"operation", &UsageEvent::operation},
                            EventText{"request_model", &UsageEvent::request_model},
                            EventText{"response_model", &UsageEvent::response_model},
                            EventText{"response_id", &UsageEvent::response_id},
                            EventText{"replica_id", &UsageEvent::replica_id},
                            EventText{"class_id", &UsageEvent::class_id},
                            EventText{"finish_reason", &UsageEvent::finish_reason},
                            EventText{"service_tier", &UsageEvent::service_tier},
                            EventText{"price_table_version", &UsageEvent::price_table_version}};

// The cost of a record that names none is None; else as it was billed.
py::object cost_of(const UsageEvent& e) {
  if (!e.cost_picos && e.cost_source == CostSource::unknown && e.price_key.empty() && e.bill.empty()) return py::none();
  Cost cost;
  cost.picos = e.cost_picos;
  cost.source = e.cost_source;
  cost.price_key = e.price_key;
  for (const CostLine& line : e.bill) {
    if (cost.line_count < cost.lines.size()) cost.lines[cost.line_count++] = line;
  }
  return py::cast(std::make_unique<PyCost>(cost));
}

}  // namespace

EventArg::EventArg(py::handle event) {
  static_assert(kTexts.size() + 1 < std::tuple_size_v<decltype(held_)>);
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    held_[i] = event.attr(kTexts[i].name);
    if (!PyUnicode_Check(held_[i].ptr())) throw py::type_error(std::string(kTexts[i].name) + " is a str");
    view_.*kTexts[i].text = held_[i].cast<std::string_view>();
  }
  view_.attempt = event.attr("attempt").cast<std::uint32_t>();
  view_.start_time = WallNanos{event.attr("start_time_ns").cast<std::int64_t>()};
  view_.end_time = WallNanos{event.attr("end_time_ns").cast<std::int64_t>()};
  view_.usage = event.attr("usage").cast<const Usage&>();
  view_.complete = event.attr("complete").cast<bool>();
  view_.error = event.attr("error").cast<bool>();
  view_.source = enum_of<UsageSource>(event.attr("source"));
  const py::object anomalies = event.attr("anomalies");
  if (py::len(anomalies) != 0) view_.anomalies = anomalies_of(anomalies.cast<std::vector<std::string>>());
  held_.back() = event.attr("cost");
  if (held_.back().is_none()) return;
  const Cost& cost = held_.back().cast<const PyCost&>().view;
  view_.cost_picos = cost.picos;
  view_.cost_source = cost.source;
  view_.price_key = cost.price_key;
  view_.bill = cost.bill();
}

py::dict event_fields(const UsageEvent& e) {
  py::dict out;
  for (const EventText& f : kTexts) out[f.name] = text_of(e.*f.text);
  out["attempt"] = e.attempt;
  out["start_time_ns"] = e.start_time.value;
  out["end_time_ns"] = e.end_time.value;
  out["usage"] = e.usage;
  out["complete"] = e.complete;
  out["error"] = e.error;
  out["source"] = e.source;
  out["anomalies"] = anomaly_names(e.anomalies);
  out["cost"] = cost_of(e);
  return out;
}

py::dict record_fields(const JournalRecord& record) {
  py::dict out;
  out["kind"] = record.kind;
  out["number"] = record.number;
  out["event_id"] = text_of(record.event_id);
  out["event"] = event_fields(record.event);
  return out;
}

std::string path_of(const py::object& path) {
  return py::module_::import("os").attr("fspath")(path).cast<std::string>();
}

}  // namespace warmroute::python
