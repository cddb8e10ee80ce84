// Usage and UsageReport: what a request used, as immutable values; what is not known is None and never 0.
#include <utility>

#include "usage.hpp"

namespace warmroute::python {
namespace {

struct CountField {
  const char* name;
  UsageCount Usage::*count;
  const char* doc;
};
constexpr std::array kCounts{
    CountField{"input_tokens", &Usage::input_tokens, "All of the prompt: uncached, cached and written to the cache."},
    CountField{"cached_input_tokens", &Usage::cached_input_tokens, "Of those, read from a cache."},
    CountField{"cache_write_input_tokens", &Usage::cache_write_input_tokens, "Of those, written to a cache."},
    CountField{"output_tokens", &Usage::output_tokens, "All that was generated, reasoning included."},
    CountField{"reasoning_output_tokens", &Usage::reasoning_output_tokens, "Of those, reasoning."},
    CountField{"cache_write_5m_tokens", &Usage::cache_write_5m_tokens, "Part of the writes, by lifetime; and below."},
    CountField{"cache_write_30m_tokens", &Usage::cache_write_30m_tokens, ""},
    CountField{"cache_write_1h_tokens", &Usage::cache_write_1h_tokens, ""},
    CountField{"cache_write_12h_tokens", &Usage::cache_write_12h_tokens, ""},
    CountField{"text_input_tokens", &Usage::text_input_tokens, "Part of its side, by modality; and below."},
    CountField{"audio_input_tokens", &Usage::audio_input_tokens, ""},
    CountField{"image_input_tokens", &Usage::image_input_tokens, ""},
    CountField{"video_input_tokens", &Usage::video_input_tokens, ""},
    CountField{"cached_text_input_tokens", &Usage::cached_text_input_tokens, ""},
    CountField{"cached_audio_input_tokens", &Usage::cached_audio_input_tokens, ""},
    CountField{"cached_image_input_tokens", &Usage::cached_image_input_tokens, ""},
    CountField{"cached_video_input_tokens", &Usage::cached_video_input_tokens, ""},
    CountField{"text_output_tokens", &Usage::text_output_tokens, ""},
    CountField{"audio_output_tokens", &Usage::audio_output_tokens, ""},
    CountField{"image_output_tokens", &Usage::image_output_tokens, ""},
    CountField{"tool_use_input_tokens", &Usage::tool_use_input_tokens, "Part of input: of the provider's own tools."},
    CountField{"accepted_prediction_tokens", &Usage::accepted_prediction_tokens, "Part of output."},
    CountField{"rejected_prediction_tokens", &Usage::rejected_prediction_tokens,
               "Part of output: billed, and not seen."},
    CountField{"processed_input_tokens", &Usage::processed_input_tokens,
               "Beside the billed input: what the model read (Cohere)."},
    CountField{"processed_output_tokens", &Usage::processed_output_tokens, ""},
    CountField{"unattributed_tokens", &Usage::unattributed_tokens, "In the provider's total and in neither side."},
    CountField{"context_input_tokens", &Usage::context_input_tokens,
               "Size of the window at the end, where a compaction ran."},
    CountField{"web_search_requests", &Usage::web_search_requests, "Requests."},
    CountField{"web_fetch_requests", &Usage::web_fetch_requests, "Requests."},
    CountField{"reported_cost_picos", &Usage::reported_cost_picos, "1e-12 USD, as the provider says."},
};

template <std::size_t>
using Count = UsageCount;

template <std::size_t... I>
void bind_usage_init(py::class_<Usage>& c, std::index_sequence<I...>) {
  c.def(py::init([](Count<I>... counts) {
          Usage usage;
          ((usage.*kCounts[I].count = counts), ...);
          return usage;
        }),
        py::kw_only(), (py::arg(kCounts[I].name) = std::nullopt)...);
}

py::dict known_counts(const Usage& usage) {
  py::dict out;
  for (const CountField& f : kCounts) {
    if (usage.*f.count) out[f.name] = *(usage.*f.count);
  }
  return out;
}

Usage changed(Usage usage, const py::kwargs& counts) {
  for (const auto& [key, value] : counts) {
    const auto name = key.cast<std::string_view>();
    const CountField* field = nullptr;
    for (const CountField& f : kCounts) {
      if (name == f.name) field = &f;
    }
    if (field == nullptr) throw py::type_error("Usage has no count '" + std::string(name) + "'");
    if (!value.is_none() && !PyLong_Check(value.ptr())) {
      throw py::type_error("Usage." + std::string(name) + " is an int or None");
    }
    usage.*field->count = value.is_none() ? UsageCount{} : value.cast<std::int64_t>();
  }
  return usage;
}

std::string usage_repr(const Usage& usage) {
  std::string out = "Usage(";
  for (const CountField& f : kCounts) {
    if (!(usage.*f.count)) continue;
    out += (out.back() == '(' ? "" : ", ") + std::string(f.name) + "=" + std::to_string(*(usage.*f.count));
  }
  return out + ")";
}

void bind_counts(py::module_& m) {
  py::class_<Usage> c(m, "Usage",
                      "What one request used, in one vocabulary for all providers: immutable, by keywords.\n\n"
                      "units: tokens, unless the name says otherwise. None: unknown, which is never 0. input contains "
                      "cached and\nwritten, output contains reasoning; parts are never to be added to their whole.");
  bind_usage_init(c, std::make_index_sequence<kCounts.size()>{});
  for (const CountField& f : kCounts) {
    c.def_property_readonly(
        f.name, [count = f.count](const Usage& usage) { return usage.*count; }, f.doc);
  }
  c.def_property_readonly("total_tokens", &Usage::total_tokens,
                          "input + output + unattributed; None where a side is unknown.")
      .def_property_readonly("uncached_input_tokens", &Usage::uncached_input_tokens,
                             "Input that was neither read from a cache nor written to one.")
      .def("replace", &changed, "A copy with the counts given as keywords changed.")
      .def(
          "to_dict", [](const Usage& usage) { return py::typing::Dict<py::str, py::int_>(known_counts(usage)); },
          "The counts that are known, by their names.")
      .def(
          "__eq__", [](const Usage& a, const Usage& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const Usage& usage) { return py::hash(py::str(usage_repr(usage))); })
      .def("__repr__", &usage_repr)
      .def(py::pickle([](const Usage& usage) { return py::make_tuple(known_counts(usage)); },
                      [](const py::tuple& state) { return changed({}, state[0].cast<py::kwargs>()); }));
}

struct TextField {
  const char* name;
  std::string_view UsageReport::*text;
};
constexpr std::array kTexts{TextField{"finish_reason", &UsageReport::finish_reason},
                            TextField{"service_tier", &UsageReport::service_tier},
                            TextField{"speed", &UsageReport::speed},
                            TextField{"inference_geography", &UsageReport::inference_geography},
                            TextField{"model", &UsageReport::model},
                            TextField{"response_id", &UsageReport::response_id}};

using UsageArg = std::optional<Usage>;

std::unique_ptr<PyReport> make_report(const UsageArg& usage, bool complete, bool error, EnumArg<UsageSource> source,
                                      const std::vector<std::string>& anomalies, std::int64_t output_events,
                                      std::string_view finish_reason, std::string_view service_tier,
                                      std::string_view speed, std::string_view inference_geography,
                                      std::string_view model, std::string_view response_id) {
  UsageReport report;
  report.usage = usage.value_or(Usage{});
  report.complete = complete;
  report.error = error;
  report.source = source;
  report.anomalies = anomalies_of(anomalies);
  report.output_events = output_events;
  report.finish_reason = finish_reason;
  report.service_tier = service_tier;
  report.speed = speed;
  report.inference_geography = inference_geography;
  report.model = model;
  report.response_id = response_id;
  return std::make_unique<PyReport>(report);
}

// (model, usage): a model's line as Usage has the counts.
py::tuple other_models(const PyReport& self) {
  py::list out;
  for (const OtherModelUsage& o : self.others) {
    Usage usage;
    usage.input_tokens = o.input_tokens;
    usage.cached_input_tokens = o.cached_input_tokens;
    usage.cache_write_input_tokens = o.cache_write_input_tokens;
    usage.output_tokens = o.output_tokens;
    out.append(py::make_tuple(text_of(o.model), usage));
  }
  return py::tuple(out);
}

std::string report_repr(const PyReport& self) {
  std::string out = "<warmroute.usage.UsageReport";
  if (!self.view.model.empty()) out += " of " + std::string(self.view.model);
  return out + (self.view.complete ? ", complete: " : ", partial: ") + usage_repr(self.view.usage) + ">";
}

}  // namespace

AnomalyNames anomaly_names(UsageAnomalies anomalies) {
  py::list out;
  for (std::size_t bit = 0; bit < kUsageAnomalyCount; ++bit) {
    if ((anomalies.bits >> bit & 1) != 0) out.append(text_of(usage_anomaly_name(bit)));
  }
  return AnomalyNames(py::tuple(out));
}

UsageAnomalies anomalies_of(const std::vector<std::string>& names) {
  UsageAnomalies out;
  for (const std::string& name : names) {
    std::size_t bit = 0;
    while (bit < kUsageAnomalyCount && usage_anomaly_name(bit) != name) ++bit;
    if (bit == kUsageAnomalyCount) throw py::value_error("'" + name + "' is no anomaly: see USAGE_ANOMALIES");
    out.bits |= 1u << bit;
  }
  return out;
}

PyReport::PyReport(const UsageReport& report) : view(report) {
  for (std::size_t i = 0; i < texts.size(); ++i) view.*kTexts[i].text = texts[i] = report.*kTexts[i].text;
  others.assign(report.other_models.begin(), report.other_models.end());
  other_names.reserve(others.size());
  for (OtherModelUsage& o : others) o.model = other_names.emplace_back(o.model);
  view.other_models = others;
}

DecimalObject usd_of(const py::int_& picos) {
  const py::object decimal = py::module_::import("decimal").attr("Decimal");
  return py::reinterpret_borrow<DecimalObject>(decimal(py::str(picos) + py::str("E-12")));
}

void bind_usage_values(py::module_& m) {
  bind_counts(m);
  py::class_<PyReport> c(m, "UsageReport",
                         "What an answer said. complete: the counts are the provider's last word. Text that was not "
                         "said is ''.");
  c.def(py::init(&make_report), py::arg("usage") = UsageArg{}, py::kw_only(), py::arg("complete") = false,
        py::arg("error") = false, py::arg_v("source", EnumArg<UsageSource>{}, "'none'"),
        py::arg("anomalies") = std::vector<std::string>{}, py::arg("output_events") = 0, py::arg("finish_reason") = "",
        py::arg("service_tier") = "", py::arg("speed") = "", py::arg("inference_geography") = "", py::arg("model") = "",
        py::arg("response_id") = "", "Counts that are known from elsewhere than a Meter.")
      .def_property_readonly("usage", [](const PyReport& self) { return self.view.usage; })
      .def_property_readonly("complete", [](const PyReport& self) { return self.view.complete; })
      .def_property_readonly(
          "error", [](const PyReport& self) { return self.view.error; }, "The answer is an error, or holds one.")
      .def_property_readonly("source", [](const PyReport& self) { return self.view.source; })
      .def_property_readonly(
          "anomalies", [](const PyReport& self) { return anomaly_names(self.view.anomalies); },
          "What was wrong with the answer; names of USAGE_ANOMALIES.")
      .def_property_readonly(
          "output_events", [](const PyReport& self) { return self.view.output_events; },
          "Events of a stream after which output had begun; an estimate of what was generated if it was cut.")
      .def_property_readonly(
          "other_models",
          [](const PyReport& self) {
            using Row = py::typing::Tuple<py::str, Usage>;
            return py::typing::Tuple<Row, py::ellipsis>(other_models(self));
          },
          "(model, usage) of tokens that another model than the answering one used.")
      .def(
          "__eq__",
          [](const PyReport& a, const PyReport& b) {
            return a.view.usage == b.view.usage && a.view.complete == b.view.complete && a.view.error == b.view.error &&
                   a.view.source == b.view.source && a.view.anomalies == b.view.anomalies &&
                   a.view.output_events == b.view.output_events && a.texts == b.texts &&
                   other_models(a).equal(other_models(b));
          },
          py::is_operator())
      .def("__hash__", [](const PyReport& self) { return py::hash(py::str(report_repr(self))); })
      .def("__repr__", &report_repr);
  for (const TextField& f : kTexts) {
    c.def_property_readonly(f.name, [text = f.text](const PyReport& self) { return text_of(self.view.*text); });
  }
  m.attr("USAGE_ANOMALIES") = anomaly_names({(1u << kUsageAnomalyCount) - 1});
  m.def("usd", &usd_of, py::arg("picos"), "An amount of 1e-12 USD as USD, exact.");
}

}  // namespace warmroute::python
