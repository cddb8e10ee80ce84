// FileSource and Handover: a file that is watched, a journal that is handed over, each on a thread of its own.
#include "control.hpp"
#include "usage_event.hpp"
#include "warmroute/control/sink.hpp"
#include "warmroute/control/source.hpp"

namespace warmroute::python {
namespace {

using BytesCallback = std::optional<py::typing::Callable<py::object(py::bytes)>>;
using SameCallback = std::optional<py::typing::Callable<py::object()>>;
using TimesCallback = std::optional<py::typing::Callable<py::object()>>;
using RecordsCallback = std::optional<py::typing::Callable<py::object(py::typing::List<AnyDict>)>>;

// What Python says to what it was given: an exception is an error, and no accident.
template <class Call>
Status asked(Callbacks& callbacks, const char* who, Call&& call) {
  Status out;
  callbacks.enter(who, [&] {
    try {
      unless_ending([&] { call(); });
    } catch (py::error_already_set& error) {
      out = error_of(error, who);
    }
  });
  return out;
}

// ---- the file

using PySource = Background<FileSourceThread>;

Status give_bytes(void* user, std::string_view bytes, UsageTime now) {
  auto& self = *static_cast<Callbacks*>(user);
  if (self.applier != nullptr) {
    // A callback of the applier's on this thread may not wait for the thread's end either.
    const auto before = self.thread.exchange(std::this_thread::get_id());
    const auto applied = self.applier->apply(bytes, now);
    self.thread.store(before);
    return applied ? Status{} : Status{applied.error()};
  }
  return asked(self, "on_bytes", [&] {
    const py::object callback = self.page;
    if (!callback.is_none()) callback(py::bytes(bytes.data(), bytes.size()));
  });
}

void note_same(void* user, UsageTime now) {
  auto& self = *static_cast<Callbacks*>(user);
  if (self.applier != nullptr) {
    self.applier->confirm(now);
    return;
  }
  self.enter("warmroute on_same callback", [&] {
    const py::object callback = self.same;
    if (!callback.is_none()) callback();
  });
}

// A clock that raises gives the times that it gave last.
UsageTime read_times(void* user) {
  auto& self = *static_cast<Callbacks*>(user);
  self.enter("warmroute clock", [&] {
    const py::object clock = self.clock;
    if (clock.is_none()) {
      self.last_times = usage_time(std::nullopt, std::nullopt);
      return;
    }
    const auto [steady, wall] = clock().cast<std::pair<std::int64_t, std::int64_t>>();
    self.last_times = {Nanos{steady}, WallNanos{wall}};
  });
  return self.last_times;
}

py::dict source_status(const FileSourceStatus& s) {
  py::dict out;
  out["looks"] = s.looks;
  out["reads"] = s.reads;
  out["accepted"] = s.accepted;
  out["refused"] = s.refused;
  out["missing"] = s.missing;
  out["good"] = s.good;
  out["last_error"] = text_of(s.last_error);
  return out;
}

void bind_source(py::module_& m) {
  const FileSourceOptions d;
  py::class_<PySource> c(m, "FileSource", "See warmroute.control.FileSource.",
                         py::custom_type_setup(&setup_gc_of<PySource>));
  c.def(py::init([](const py::object& path, std::optional<PyApplier*> applier, BytesCallback on_bytes,
                    SameCallback on_same, LogCallback log, TimesCallback clock, std::int64_t interval_ns,
                    std::int64_t retry_to_ns, std::size_t max_bytes) {
          PyApplier* const whose = applier.value_or(nullptr);
          if ((whose != nullptr) == on_bytes.has_value()) throw py::value_error("either an applier, or on_bytes");
          auto self = std::make_unique<PySource>(
              whose != nullptr ? py::cast(whose, py::return_value_policy::reference) : py::object(py::none()),
              std::move(log), std::nullopt);
          Callbacks& callbacks = self->callbacks();
          if (whose != nullptr) callbacks.applier = &whose->applier();
          callbacks.page = object_or_none(std::move(on_bytes));
          callbacks.same = object_or_none(std::move(on_same));
          callbacks.clock = object_or_none(std::move(clock));
          FileSourceOptions options;
          options.path = path_of(path);
          options.interval = Nanos{interval_ns};
          options.retry_to = Nanos{retry_to_ns};
          options.max_bytes = max_bytes;
          options.user = &callbacks;
          options.on_bytes = &give_bytes;
          if (whose != nullptr || !callbacks.same.is_none()) options.on_same = &note_same;
          if (!callbacks.log.is_none()) options.log = {&callbacks, &Callbacks::write_log};
          if (!callbacks.clock.is_none()) {
            options.clock = &read_times;
            options.clock_user = &callbacks;
          }
          self->begin([&] { return FileSourceThread::start(std::move(options)); });
          return self;
        }),
        py::arg("path"), py::arg("applier") = std::nullopt, py::kw_only(), py::arg("on_bytes") = std::nullopt,
        py::arg("on_same") = std::nullopt, py::arg("log") = std::nullopt, py::arg("clock") = std::nullopt,
        py::arg("interval_ns") = d.interval.value, py::arg("retry_to_ns") = d.retry_to.value,
        py::arg("max_bytes") = d.max_bytes)
      .def(
          "look_now",
          [](PySource& self) {
            if (self.on_its_thread()) throw std::runtime_error("a callback runs on the thread that look_now waits for");
            self.with([](FileSourceThread& source) { source.look_now(); });
          },
          "Looks at once, and reads whatever the file's time and size say. Not from a callback.")
      .def("close", &PySource::close, "Ends the thread, after a callback that is running. Not from a callback.")
      .def_property_readonly("closed", &PySource::closed, "Whether close was called.")
      .def("_status", [](PySource& self) {
        return AnyDict(source_status(self.with([](FileSourceThread& source) { return source.status(); })));
      });
}

// ---- the journal

// The Python side of a sink.
class PySink final : public UsageSink {
 public:
  explicit PySink(Callbacks& callbacks) noexcept : callbacks_(callbacks) {}
  Status deliver(std::span<const JournalRecord> records) override {
    return asked(callbacks_, "deliver", [&] {
      py::list list;
      for (const JournalRecord& record : records) list.append(record_fields(record));
      const py::object callback = callbacks_.page;
      if (!callback.is_none()) callback(list);
    });
  }

 private:
  Callbacks& callbacks_;
};

// The journal stays open until its hand-over has ended.
struct HandoverWorker {
  std::shared_ptr<Journal> journal;
  std::unique_ptr<UsageSink> sink;
  HandoverThread thread;
};
using PyHandover = Background<HandoverWorker>;

py::dict handover_status(const HandoverStatus& s) {
  py::dict out;
  out["delivered"] = s.delivered;
  out["batches"] = s.batches;
  out["failures"] = s.failures;
  out["failures_in_row"] = s.failures_in_row;
  out["drained"] = s.drained;
  out["acknowledged"] = py::make_tuple(s.acknowledged.segment, s.acknowledged.offset);
  out["last_error"] = text_of(s.last_error);
  return out;
}

void bind_handover(py::module_& m) {
  const HandoverOptions d;
  py::class_<PyHandover> c(m, "Handover", "See warmroute.control.Handover.",
                           py::custom_type_setup(&setup_gc_of<PyHandover>));
  c.def(py::init([](const PyJournal& journal, RecordsCallback deliver, const py::object& json_lines, LogCallback log,
                    std::size_t batch, std::int64_t interval_ns, std::int64_t backoff_from_ns,
                    std::int64_t backoff_to_ns) {
          if (deliver.has_value() != json_lines.is_none()) throw py::value_error("either deliver, or json_lines");
          auto self = std::make_unique<PyHandover>(py::none(), std::move(log), std::nullopt);
          Callbacks& callbacks = self->callbacks();
          callbacks.page = object_or_none(std::move(deliver));
          std::unique_ptr<UsageSink> sink = std::make_unique<PySink>(callbacks);
          if (!json_lines.is_none()) sink = std::make_unique<JsonLinesSink>(path_of(json_lines));
          HandoverOptions options{batch, Nanos{interval_ns}, Nanos{backoff_from_ns}, Nanos{backoff_to_ns}, {}};
          if (!callbacks.log.is_none()) options.log = {&callbacks, &Callbacks::write_log};
          auto opened = journal.shared();
          self->begin([&]() -> Result<HandoverWorker> {
            auto started = HandoverThread::start(*opened, journal.directory, *sink, options);
            if (!started) return started.error();
            return HandoverWorker{std::move(opened), std::move(sink), std::move(*started)};
          });
          return self;
        }),
        py::arg("journal"), py::arg("deliver"), py::kw_only(), py::arg("json_lines"), py::arg("log") = std::nullopt,
        py::arg("batch") = d.batch, py::arg("interval_ns") = d.interval.value,
        py::arg("backoff_from_ns") = d.backoff_from.value, py::arg("backoff_to_ns") = d.backoff_to.value)
      .def(
          "drain",
          [](PyHandover& self, std::int64_t timeout_ns) {
            if (self.on_its_thread()) throw std::runtime_error("a callback runs on the thread that drain waits for");
            return self.with([&](HandoverWorker& worker) { return worker.thread.drain(Nanos{timeout_ns}); });
          },
          py::arg("timeout_ns"),
          "Waits until what is in the journal now is acknowledged, at most so long. returns: whether it is.")
      .def("close", &PyHandover::close,
           "Ends the thread after a delivery that is running; what is left is delivered by the next one. Not from a "
           "callback.")
      .def_property_readonly("closed", &PyHandover::closed, "Whether close was called.")
      .def("_status",
           [](PyHandover& self) {
             return AnyDict(handover_status(self.with([](HandoverWorker& worker) { return worker.thread.status(); })));
           })
      .def(
          "prometheus",
          [](PyHandover& self) {
            std::string page;
            append_prometheus(self.with([](HandoverWorker& worker) { return worker.thread.status(); }), page);
            return text_of(page);
          },
          "Families warmroute_handover_*.");
}

}  // namespace

void bind_control_threads(py::module_& m) {
  bind_source(m);
  bind_handover(m);
}

}  // namespace warmroute::python
