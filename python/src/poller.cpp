// MetricsPoller: asks model servers for their pages, on a thread of its own.
#include "background.hpp"
#include "events.hpp"
#include "metrics.hpp"
#include "warmroute/ingest/metrics_poller.hpp"

namespace warmroute::python {
namespace {

using PyPoller = Background<MetricsPoller>;
using PageCallback = std::optional<py::typing::Callable<py::object(AnyDict)>>;

void give_page(void* user, const MetricsPage& page) {
  auto& self = *static_cast<Callbacks*>(user);
  self.enter("warmroute page callback", [&] {
    const py::object callback = self.page;
    if (callback.is_none()) return;
    py::dict out;
    out["target"] = text_of(page.target);
    out["body"] = py::bytes(page.body.data(), page.body.size());
    out["at_ns"] = page.at.value;
    out["took_ns"] = page.took.value;
    callback(out);
  });
}

py::dict status_of(const MetricsTargetStatus& s) {
  py::dict out;
  out["name"] = text_of(s.name);
  out["url"] = text_of(s.url);
  out["engine"] = text_of(s.engine);
  out["up"] = s.up;
  out["scrapes"] = s.scrapes;
  out["failures"] = s.failures;
  out["failures_in_row"] = s.failures_in_row;
  out["connects"] = s.connects;
  out["restarts"] = s.restarts;
  out["last_error"] = text_of(s.last_error);
  out["age_ns"] = s.age ? py::object(py::int_(s.age->value)) : py::object(py::none());
  out["last_duration_ns"] = s.last_duration.value;
  out["last_bytes"] = s.last_bytes;
  out["skipped_lines"] = s.skipped_lines;
  out["unmatched_ranks"] = s.unmatched_ranks;
  out["signals"] = s.signals;
  return out;
}

MetricsPollerOptions with_callbacks(PyPoller& self, MetricsPollerOptions options) {
  Callbacks& callbacks = self.callbacks();
  if (!callbacks.log.is_none()) options.log = {&callbacks, &Callbacks::write_log};
  if (!callbacks.page.is_none()) {
    options.page = &give_page;
    options.page_user = &callbacks;
  }
  if (!callbacks.clock.is_none()) {
    options.clock = &Callbacks::read_clock;
    options.clock_user = &callbacks;
  }
  return options;
}

void bind_start(py::class_<PyPoller>& c) {
  const MetricsPollerOptions d;
  c.def(py::init([](std::optional<PyRouter*> router, PageCallback page, LogCallback log, ClockCallback clock,
                    std::int64_t interval_ns, std::uint32_t jitter_percent, std::int64_t timeout_ns,
                    std::int64_t backoff_to_ns, std::size_t max_bytes, bool keep_alive, std::uint64_t seed,
                    const std::vector<std::string>& tables) {
          PyRouter* whose = router.value_or(nullptr);
          auto self = std::make_unique<PyPoller>(whose != nullptr ? object_of(*whose) : py::object(py::none()),
                                                 std::move(log), std::move(clock));
          self->callbacks().page = object_or_none(std::move(page));
          MetricsPollerOptions options;
          options.interval = Nanos{interval_ns};
          options.jitter_percent = jitter_percent;
          options.timeout = Nanos{timeout_ns};
          options.backoff_to = Nanos{backoff_to_ns};
          options.max_bytes = max_bytes;
          options.keep_alive = keep_alive;
          options.seed = seed;
          options.tables = tables_of(tables);
          options = with_callbacks(*self, std::move(options));
          self->begin([&] {
            return whose != nullptr ? MetricsPoller::start(whose->router, std::move(options))
                                    : MetricsPoller::start(std::move(options));
          });
          return self;
        }),
        py::arg("router") = std::nullopt, py::kw_only(), py::arg("page") = std::nullopt, py::arg("log") = std::nullopt,
        py::arg("clock") = std::nullopt, py::arg("interval_ns") = d.interval.value,
        py::arg("jitter_percent") = d.jitter_percent, py::arg("timeout_ns") = d.timeout.value,
        py::arg("backoff_to_ns") = d.backoff_to.value, py::arg("max_bytes") = d.max_bytes,
        py::arg("keep_alive") = d.keep_alive, py::arg("seed") = d.seed, py::arg("tables") = std::vector<std::string>{});
}

}  // namespace

void bind_poller(py::module_& m) {
  py::class_<PyPoller> c(m, "MetricsPoller", "See warmroute.MetricsPoller.",
                         py::custom_type_setup(&setup_gc_of<PyPoller>));
  bind_start(c);
  c.def(
       "_add",
       [](PyPoller& self, std::string url, const ReplicaRows& rows, std::string name, std::string engine,
          bool clear_on_restart) {
         MetricsTarget target{std::move(url), std::move(name), std::move(engine), {}, clear_on_restart};
         for (const auto& [id, dp_rank, model] : rows) target.replicas.push_back({replica_of(id), dp_rank, model});
         check(self.with([&](MetricsPoller& poller) { return poller.add(target); }));
       },
       py::arg("url"), py::arg("replicas"), py::arg("name"), py::arg("engine"), py::arg("clear_on_restart"))
      .def(
          "remove",
          [](PyPoller& self, std::string_view name) {
            check(self.with([&](MetricsPoller& poller) { return poller.remove(name); }));
          },
          py::arg("name"),
          "Nothing of that target is applied or called back once this returns (from the callback: after that).\n\n"
          "errors: Error not_found.")
      .def("close", &PyPoller::close, "Ends the thread, in the middle of scrapes. Not from a callback.")
      .def_property_readonly("closed", &PyPoller::closed, "Whether close was called.")
      .def(
          "_status",
          [](PyPoller& self, std::string_view name) {
            return AnyDict(status_of(value_of(self.with([&](MetricsPoller& poller) { return poller.status(name); }))));
          },
          py::arg("name"))
      .def("_statuses", [](PyPoller& self) {
        py::list out;
        for (const auto& s : self.with([](MetricsPoller& poller) { return poller.statuses(); })) {
          out.append(status_of(s));
        }
        return py::typing::List<AnyDict>(out);
      });
}

}  // namespace warmroute::python
