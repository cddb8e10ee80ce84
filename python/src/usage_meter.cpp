// Meter: what an answer used, read from its bytes as they pass.
#include "usage.hpp"

namespace warmroute::python {
namespace {

// Calls take turns; long pieces are read without the GIL.
class PyMeter {
 public:
  PyMeter(MeterOptions options, std::string_view requested_tier)
      : tier_(requested_tier), options_(with_tier(options)), meter_(options_) {}
  PyMeter(const PyMeter&) = delete;
  PyMeter& operator=(const PyMeter&) = delete;

  bool feed(const BytesView& bytes) {
    const Turn turn(mutex_);
    return with_bytes(bytes, [&](std::string_view text) { return meter_.feed(text); });
  }
  void finish() {
    const Turn turn(mutex_);
    meter_.finish();
  }
  void reset() {
    const Turn turn(mutex_);
    meter_.reset(options_);
  }
  template <class Look>
  auto look(Look&& look) {
    const Turn turn(mutex_);
    return look(std::as_const(meter_));
  }

 private:
  MeterOptions with_tier(MeterOptions options) const {
    options.requested_tier = tier_;
    return options;
  }

  std::mutex mutex_;
  std::string tier_;
  MeterOptions options_;
  Meter meter_;
};

Belief belief_of(const std::optional<bool>& value) {
  if (!value) return Belief::by_rule;
  return *value ? Belief::yes : Belief::no;
}

MeterOptions options_of(AnswerApi api, const std::optional<bool>& input_includes_cache,
                        const std::optional<bool>& output_includes_reasoning, bool ignore_total,
                        bool trust_requested_tier) {
  MeterOptions options;
  options.api = api;
  options.profile.input_includes_cache = belief_of(input_includes_cache);
  options.profile.output_includes_reasoning = belief_of(output_includes_reasoning);
  options.profile.ignore_total = ignore_total;
  options.profile.trust_requested_tier = trust_requested_tier;
  return options;
}

std::unique_ptr<PyReport> report_of(PyMeter& self) {
  return self.look([](const Meter& meter) { return std::make_unique<PyReport>(meter.report()); });
}

void bind_readings(py::class_<PyMeter>& c) {
  c.def_property_readonly(
       "usage", [](PyMeter& self) { return self.look([](const Meter& meter) { return meter.report().usage; }); },
       "report().usage")
      .def_property_readonly(
          "complete", [](PyMeter& self) { return self.look([](const Meter& meter) { return meter.complete(); }); },
          "report().complete, for less work.")
      .def_property_readonly(
          "revision", [](PyMeter& self) { return self.look([](const Meter& meter) { return meter.revision(); }); },
          "A number that is another one whenever report() would be, until reset().")
      .def_property_readonly(
          "anomalies",
          [](PyMeter& self) {
            return anomaly_names(self.look([](const Meter& meter) { return meter.report().anomalies; }));
          },
          "report().anomalies")
      .def_property_readonly(
          "first_token_end",
          [](PyMeter& self) { return self.look([](const Meter& meter) { return meter.first_token_end(); }); },
          "How many bytes of the body had come when the first token ended; None: not yet.")
      .def_property_readonly(
          "is_stream", [](PyMeter& self) { return self.look([](const Meter& meter) { return meter.is_stream(); }); },
          "Whether the answer is a stream of events; False before that is known.")
      .def_property_readonly(
          "bytes", [](PyMeter& self) { return self.look([](const Meter& meter) { return meter.bytes(); }); },
          "Fed so far.");
}

constexpr const char* kDoc =
    "Reads what a request used from its answer, while the bytes pass: JSON, server-sent events, JSON arrays, AWS event "
    "streams.\n\n"
    "It looks and changes nothing; where the bytes are cut does not matter; memory is constant. Compressed bodies "
    "cannot "
    "be read.\n"
    "api: automatic tells by the members' names. Of a deployment that is known to differ from the rules:\n"
    "input_includes_cache, output_includes_reasoning (None: by rule), ignore_total, trust_requested_tier.\n"
    "requested_tier: reported where the answer names none.";

}  // namespace

void bind_usage_meter(py::module_& m) {
  py::class_<PyMeter> c(m, "Meter", kDoc);
  c.def(py::init([](EnumArg<AnswerApi> api, const std::optional<bool>& input_includes_cache,
                    const std::optional<bool>& output_includes_reasoning, bool ignore_total, bool trust_requested_tier,
                    std::string_view requested_tier) {
          return std::make_unique<PyMeter>(
              options_of(api, input_includes_cache, output_includes_reasoning, ignore_total, trust_requested_tier),
              requested_tier);
        }),
        py::arg_v("api", EnumArg<AnswerApi>{}, "'automatic'"), py::kw_only(),
        py::arg("input_includes_cache") = std::nullopt, py::arg("output_includes_reasoning") = std::nullopt,
        py::arg("ignore_total") = false, py::arg("trust_requested_tier") = false, py::arg("requested_tier") = "")
      .def("feed", &PyMeter::feed, py::arg("body"),
           "The next bytes of the answer's body, in any pieces, without HTTP's chunk framing.\n\n"
           "returns: True once: when the first token ended in these bytes.")
      .def("finish", &PyMeter::finish, "The body ended, or was cut off. Further bytes are ignored.")
      .def("reset", &PyMeter::reset, "For the next answer, with the same options: cheaper than a new one.")
      .def("report", &report_of, "What is known so far; after finish() the result.");
  bind_readings(c);
  m.def(
      "read_usage",
      [](const BytesView& body, EnumArg<AnswerApi> api, const std::optional<bool>& input_includes_cache,
         const std::optional<bool>& output_includes_reasoning, bool ignore_total, bool trust_requested_tier,
         std::string_view requested_tier) {
        PyMeter meter(
            options_of(api, input_includes_cache, output_includes_reasoning, ignore_total, trust_requested_tier),
            requested_tier);
        meter.feed(body);
        meter.finish();
        return report_of(meter);
      },
      py::arg("body"), py::arg_v("api", EnumArg<AnswerApi>{}, "'automatic'"), py::kw_only(),
      py::arg("input_includes_cache") = std::nullopt, py::arg("output_includes_reasoning") = std::nullopt,
      py::arg("ignore_total") = false, py::arg("trust_requested_tier") = false, py::arg("requested_tier") = "",
      "A whole answer at once; the options are those of Meter.");
}

}  // namespace warmroute::python
