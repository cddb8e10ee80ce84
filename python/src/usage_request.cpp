// Before the answer: asking for usage and hiding that, estimates, clients that hang up.
#include "usage.hpp"

namespace warmroute::python {
namespace {

struct PyAsk {
  bool stream = false;
  bool asked = false;
  bool changed = false;
  py::bytes body;
};

PyAsk ask(const BytesView& body) {
  const UsageAsk found = value_of(ask_for_usage(body.text()));
  const std::string_view text = body.text();
  const bool changed = !found.splice.empty();
  return {found.stream, found.asked, changed,
          changed ? py::bytes(spliced(text, found.splice)) : py::bytes(text.data(), text.size())};
}

class PyFilter {
 public:
  py::bytes feed(const BytesView& bytes) {
    const Turn turn(mutex_);
    std::string out;
    with_bytes(bytes, [&](std::string_view text) { filter_.feed(text, out); });
    return py::bytes(out);
  }
  py::bytes finish() {
    const Turn turn(mutex_);
    std::string out;
    filter_.finish(out);
    return py::bytes(out);
  }
  bool removed() {
    const Turn turn(mutex_);
    return filter_.removed();
  }
  void reset() {
    const Turn turn(mutex_);
    filter_.reset();
  }

 private:
  std::mutex mutex_;
  UsageChunkFilter filter_;
};

void bind_ask(py::module_& m) {
  py::class_<PyAsk>(m, "UsageAsk", "A body that asks for usage, see ask_for_usage.")
      .def_readonly("stream", &PyAsk::stream, "The client wants a stream.")
      .def_readonly("asked", &PyAsk::asked, "The client asked for usage itself: nothing may be hidden.")
      .def_readonly("changed", &PyAsk::changed, "We ask: the usage chunk is to be hidden (UsageChunkFilter).")
      .def_property_readonly(
          "body", [](const PyAsk& self) { return self.body; }, "The body to send.");
  m.def("ask_for_usage", &ask, py::arg("body"),
        "For /v1/chat/completions and /v1/completions only: adds stream_options.include_usage to a body that streams "
        "without.\n\n"
        "Nothing else of it changes. errors: Error invalid_json, not_an_object, with .offset.");
  m.def(
      "requested_tier", [](const BytesView& body) { return std::string(requested_tier(body.text())); }, py::arg("body"),
      "The service tier that a body asks for: service_tier, or Bedrock's serviceTier.type; empty: none.\n\n"
      "For Meter's requested_tier: engines name none in their answers.");
  py::class_<PyFilter>(
      m, "UsageChunkFilter",
      "Takes the usage chunk (`choices` empty) out of a stream of server-sent events; the rest passes "
      "as it came.\n\nFeed the meter before it. An event is held until it cannot be that chunk, 16 KiB "
      "at most.")
      .def(py::init<>())
      .def("feed", &PyFilter::feed, py::arg("body"), "returns: what of the stream so far may go to the client.")
      .def("finish", &PyFilter::finish, "The stream ended. returns: what was held, if it may go.")
      .def("reset", &PyFilter::reset, "For the next stream.")
      .def_property_readonly("removed", &PyFilter::removed, "Whether the chunk came and was taken out.");
}

EstimateOptions estimate_options(std::int64_t max_output_tokens, std::int64_t margin_percent) {
  EstimateOptions options;
  options.max_output_tokens = max_output_tokens;
  options.margin_percent = margin_percent;
  return options;
}

void bind_estimates(py::module_& m) {
  const EstimateOptions d;
  py::class_<TokenEstimate>(m, "TokenEstimate", "What to reserve for a request.")
      .def(py::init([](std::int64_t input_tokens, std::int64_t output_tokens) {
             return TokenEstimate{input_tokens, output_tokens};
           }),
           py::arg("input_tokens"), py::arg("output_tokens"))
      .def_readonly("input_tokens", &TokenEstimate::input_tokens)
      .def_readonly("output_tokens", &TokenEstimate::output_tokens)
      .def_property_readonly("total", &TokenEstimate::total)
      .def_property_readonly(
          "usage",
          [](const TokenEstimate& self) {
            Usage usage;
            usage.input_tokens = self.input_tokens;
            usage.output_tokens = self.output_tokens;
            return usage;
          },
          "The same as Usage, e.g. of a Journal's begin.")
      .def("__repr__", [](const TokenEstimate& self) {
        return "TokenEstimate(input_tokens=" + std::to_string(self.input_tokens) +
               ", output_tokens=" + std::to_string(self.output_tokens) + ")";
      });
  py::class_<TokenEstimator>(m, "TokenEstimator",
                             "Learns how many bytes of a model's prompts make a token. One per model. Thread-safe.")
      .def(py::init([](const std::optional<double>& bytes_per_token) {
             auto self = std::make_unique<TokenEstimator>();
             if (bytes_per_token) self->set_bytes_per_token(*bytes_per_token);
             return self;
           }),
           py::arg("bytes_per_token") = std::nullopt, "bytes_per_token: to begin with, 0.1..64; None: 3.")
      .def("learn", &TokenEstimator::learn, py::arg("prompt_bytes"), py::arg("input_tokens"),
           "A request of so many prompt bytes (ParsedBody.prompt_bytes) was so many tokens. Absurd pairs are ignored.")
      .def(
          "estimate",
          [](const TokenEstimator& self, std::int64_t prompt_bytes, UsageCount known_input_tokens,
             UsageCount requested_output_tokens, std::int64_t max_output_tokens, std::int64_t margin_percent) {
            return self.estimate(prompt_bytes, known_input_tokens, requested_output_tokens,
                                 estimate_options(max_output_tokens, margin_percent));
          },
          py::arg("prompt_bytes"), py::kw_only(), py::arg("known_input_tokens") = std::nullopt,
          py::arg("requested_output_tokens") = std::nullopt, py::arg("max_output_tokens") = d.max_output_tokens,
          py::arg("margin_percent") = d.margin_percent,
          "known_input_tokens: exact, where ids are known. requested_output_tokens: the request's limit, for all its "
          "choices.\n\n"
          "max_output_tokens: where it names none, or a larger one. margin_percent: added to the learned mean.")
      .def_property_readonly("bytes_per_token", &TokenEstimator::bytes_per_token);
  m.def(
      "estimate_missing",
      [](const PyReport& report, const TokenEstimate& estimate) {
        UsageReport filled = report.view;
        estimate_missing(filled, estimate);
        return std::make_unique<PyReport>(filled);
      },
      py::arg("report"), py::arg("estimate"),
      "A report in which an incomplete one's missing counts are estimated, for answers that were cut off: input as "
      "`estimate`\n"
      "has it, output by the events that carried some. What is known stays. source then says `estimate`.");
}

void bind_hangup(py::module_& m) {
  const HangupPolicy d;
  py::class_<HangupDrain>(
      m, "HangupDrain",
      "Follows one upstream after its client left: read on for its usage, or cut it. One thread at a "
      "time.")
      .def(py::init(
               [](EnumArg<HangupMode> mode, std::int64_t max_drain_ns, std::uint64_t max_drain_bytes, NowArg now_ns) {
                 return HangupDrain({mode, Nanos{max_drain_ns}, max_drain_bytes}, steady_time(now_ns));
               }),
           py::arg_v("mode", EnumArg<HangupMode>{HangupMode::drain}, "'drain'"), py::kw_only(),
           py::arg("max_drain_ns") = d.max_drain.value, py::arg("max_drain_bytes") = d.max_drain_bytes,
           py::arg("now_ns") = std::nullopt)
      .def(
          "go_on",
          [](HangupDrain& self, std::uint64_t more_bytes, bool complete, NowArg now_ns) {
            return self.go_on(more_bytes, steady_time(now_ns), complete);
          },
          py::arg("more_bytes") = 0, py::kw_only(), py::arg("complete") = false, py::arg("now_ns") = std::nullopt,
          "more_bytes came since; complete: the meter has the last word. returns: whether to read on.")
      .def_property_readonly(
          "deadline_ns", [](const HangupDrain& self) { return self.deadline().value; },
          "When to cut it if nothing comes.");
}

}  // namespace

void bind_usage_request(py::module_& m) {
  bind_ask(m);
  bind_estimates(m);
  bind_hangup(m);
}

}  // namespace warmroute::python
