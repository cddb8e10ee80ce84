// PriceSlot and SnapshotApplier: what control says, put in.
#include "control.hpp"
#include "router.hpp"

namespace warmroute::python {

Error error_of(py::error_already_set& error, std::string_view who) {
  const auto text = [](py::handle of) { return py::str(of).cast<std::string>(); };
  Error out{Code::invalid_argument, std::string(who) + ": ", kNoOffset};
  try {
    const py::object value = error.value();
    out.message += text(error.type().attr("__name__")) + ": " + text(value);
    if (py::isinstance(value, py::module_::import("warmroute._error").attr("Error")))
      out.code = static_cast<Code>(value.attr("code_number").cast<std::int32_t>());
    if (out.code == Code::ok) out.code = Code::internal;
  } catch (py::error_already_set& again) {
    again.discard_as_unraisable("warmroute control");
    out.message += "an exception that cannot be shown";
  }
  return out;
}

py::dict rollback_fields(const RollbackRecord& record) {
  py::dict out;
  out["from_"] = record.from;
  out["to"] = record.to;
  out["reason"] = text_of(record.reason);
  out["signed_by"] = text_of(record.signed_by);
  out["at_ns"] = record.at.value;
  return out;
}

py::object PyPriceSlot::get() {
  auto table = slot.get();
  if (table == nullptr) return py::none();
  if (shown.is_none() || shown.cast<PyPrices&>().table != table)
    shown = py::cast(std::make_unique<PyPrices>(std::move(table)));
  return shown;
}

void PyPriceSlot::set(PyPrices* table) {
  if (table == nullptr) {
    slot.set(nullptr);
    return;
  }
  const std::unique_lock lock(table->mutex);  // changes hold no GIL
  table->own = nullptr;
  slot.set(table->table);
  shown = py::cast(table, py::return_value_policy::reference);
}

// Which thread is in a callback, so that it is not made to wait for itself.
class PyApplier::Inside {
 public:
  explicit Inside(PyApplier& self) : self_(self) { self_.inside_.store(std::this_thread::get_id()); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { self_.inside_.store({}); }

 private:
  PyApplier& self_;
};

PyApplier::PyApplier(ControlOptions options, Parts parts) : parts_(std::move(parts)) {
  ControlTargets targets;
  if (!parts_.keys.is_none()) targets.keys = parts_.keys.cast<KeySet*>();
  if (!parts_.limits.is_none()) targets.limits = parts_.limits.cast<Limits*>();
  if (!parts_.prices.is_none()) targets.prices = &parts_.prices.cast<PyPriceSlot*>()->slot;
  targets.listener = this;
  applier_.emplace(std::move(options), targets);
}

int PyApplier::traverse(visitproc visit, void* arg) const {
  for (const py::object* part : {&parts_.keys, &parts_.limits, &parts_.prices, &parts_.router, &parts_.check,
                                 &parts_.applied, &parts_.rolled_back}) {
    Py_VISIT(part->ptr());
  }
  return 0;
}

py::object PyApplier::shown(const Snapshot& snapshot) {
  if (copy_ == nullptr) copy_ = std::make_shared<const Snapshot>(snapshot);
  return py::cast(PySnapshot{copy_});
}

Status PyApplier::check(const Snapshot& snapshot) {
  copy_.reset();
  const AcquiredGil gil;
  const Inside inside(*this);
  const py::object callback = parts_.check;
  if (callback.is_none()) return {};
  try {
    unless_ending([&] { callback(shown(snapshot)); });
  } catch (py::error_already_set& error) {
    return error_of(error, "check");
  }
  return {};
}

// The parser has asked `validate`, which is all that a router asks.
void PyApplier::applied(const Snapshot& snapshot) {
  const AcquiredGil gil;
  const Inside inside(*this);
  if (snapshot.policy && !parts_.router.is_none()) {
    auto& router = parts_.router.cast<PyRouter&>();
    try {
      unless_ending([&] { (void)router.released([&] { return router.router.set_policy(*snapshot.policy); }); });
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("warmroute log callback");
    }
  }
  const py::object callback = parts_.applied;
  if (!callback.is_none()) {
    try {
      unless_ending([&] { callback(shown(snapshot)); });
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("warmroute applied callback");
    }
  }
  copy_.reset();
}

void PyApplier::rolled_back(const RollbackRecord& record) {
  const AcquiredGil gil;
  const Inside inside(*this);
  const py::object callback = parts_.rolled_back;
  if (callback.is_none()) return;
  try {
    unless_ending([&] { callback(rollback_fields(record)); });
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("warmroute rolled_back callback");
  }
}

namespace {

using SnapshotCallback = std::optional<py::typing::Callable<py::object(PySnapshot)>>;
using RollbackCallback = std::optional<py::typing::Callable<py::object(AnyDict)>>;

template <class T>
py::object held(T* target) {
  return target == nullptr ? py::object(py::none()) : py::cast(target, py::return_value_policy::reference);
}

py::dict status_of(const ControlStatus& s) {
  py::dict out;
  out["generation"] = s.generation;
  out["top_generation"] = s.top_generation;
  out["issued_at_ns"] = s.issued_at.value;
  const bool ever = s.age.value != std::numeric_limits<std::int64_t>::max();
  out["age_ns"] = ever ? py::object(py::int_(s.age.value)) : py::object(py::none());
  out["max_age_ns"] = s.max_age.value;
  out["expired"] = s.expired;
  out["on_expired"] = s.on_expired;
  out["from_disk"] = s.from_disk;
  out["keys"] = s.keys;
  out["revoked"] = s.revoked;
  out["applied"] = s.applied;
  out["confirmed"] = s.confirmed;
  out["refused"] = s.refused;
  out["rollbacks"] = s.rollbacks;
  out["keep_failures"] = s.keep_failures;
  out["last_code"] = s.last_code;
  out["last_error"] = text_of(s.last_error);
  return out;
}

void bind_slot(py::module_& m) {
  py::class_<PyPriceSlot>(m, "PriceSlot",
                          "The price table in force: control puts a new one in, a request takes it once and keeps it. "
                          "Thread-safe.")
      .def(py::init<>())
      .def(
          "get", [](PyPriceSlot& self) { return py::typing::Optional<PyPrices>(self.get()); },
          "The table; None: there is none yet. It cannot be changed: others have the same one.")
      .def(
          "set", [](PyPriceSlot& self, std::optional<PyPrices*> table) { self.set(table.value_or(nullptr)); },
          py::arg("table"), "From then on the table cannot be changed. None: none.");
}

void bind_applying(py::class_<PyApplier>& c) {
  c.def(
       "load_last_good",
       [](PyApplier& self, NowArg now_ns, NowArg wall_ns) {
         const UsageTime now = usage_time(now_ns, wall_ns);
         return value_of(self.with([&](SnapshotApplier& applier) { return applier.load_last_good(now); }));
       },
       py::kw_only(), py::arg("now_ns") = std::nullopt, py::arg("wall_ns") = std::nullopt,
       "At the start: applies the last good snapshot, verified anew; its age counts from when control was last heard "
       "of.\n\nreturns: False: there is none. errors: those of apply, of a damaged one: go on without it, control will "
       "send another.")
      .def(
          "_apply",
          [](PyApplier& self, const BytesView& bytes, NowArg now_ns, NowArg wall_ns) {
            const UsageTime now = usage_time(now_ns, wall_ns);
            const std::string copy(bytes.is_mutable() ? bytes.text() : std::string_view{});
            const std::string_view text = bytes.is_mutable() ? std::string_view(copy) : bytes.text();
            const Applied applied = value_of(self.with([&](SnapshotApplier& a) { return a.apply(text, now); }));
            py::dict out;
            out["generation"] = applied.generation;
            out["unchanged"] = applied.unchanged;
            out["rolled_back"] = applied.rolled_back;
            out["signed_by"] = text_of(applied.signed_by);
            out["kept_error"] = text_of(applied.kept_error);
            return AnyDict(out);
          },
          py::arg("bytes"), py::arg("now_ns"), py::arg("wall_ns"))
      .def(
          "confirm",
          [](PyApplier& self, NowArg now_ns, NowArg wall_ns) {
            const UsageTime now = usage_time(now_ns, wall_ns);
            self.with([&](SnapshotApplier& applier) { applier.confirm(now); });
          },
          py::kw_only(), py::arg("now_ns") = std::nullopt, py::arg("wall_ns") = std::nullopt,
          "Control was heard of and has nothing new.")
      .def(
          "revoke",
          [](PyApplier& self, const std::string& public_id, std::optional<std::uint64_t> version) {
            check(self.with([&](SnapshotApplier& applier) {
              return applier.revoke(public_id, version.value_or(kRevokedForever));
            }));
          },
          py::arg("public_id"), py::arg("version") = std::nullopt,
          "Revokes at once, beside control: everything up to `version`; None: for ever. Kept on disk.\n\n"
          "errors: Error invalid_argument; io: it is in force, and not on disk.");
}

}  // namespace

void bind_control_applier(py::module_& m) {
  bind_slot(m);
  const SnapshotOptions d;
  py::class_<PyApplier> c(m, "SnapshotApplier", "See warmroute.control.SnapshotApplier.",
                          py::custom_type_setup(&setup_gc_of<PyApplier>));
  c.def(py::init([](const std::vector<VerifyingKey>& trust, bool allow_unsigned, std::string directory,
                    std::string price_file, std::optional<KeySet*> keys, std::optional<Limits*> limits,
                    std::optional<PyPriceSlot*> prices, std::optional<PyRouter*> router, SnapshotCallback check,
                    SnapshotCallback applied, RollbackCallback rolled_back, std::size_t max_bytes, std::size_t max_keys,
                    const std::optional<Policy>& base_policy) {
          ControlOptions options;
          options.trust = {trust, allow_unsigned};
          options.directory = std::move(directory);
          options.price_file = std::move(price_file);
          options.snapshot.max_bytes = max_bytes;
          options.snapshot.max_keys = max_keys;
          PyRouter* const whose = router.value_or(nullptr);
          if (base_policy) options.snapshot.base_policy = *base_policy;
          else if (whose != nullptr) options.snapshot.base_policy = whose->router.policy();
          return std::make_unique<PyApplier>(
              std::move(options),
              PyApplier::Parts{held(keys.value_or(nullptr)), held(limits.value_or(nullptr)),
                               held(prices.value_or(nullptr)), held(whose), object_or_none(std::move(check)),
                               object_or_none(std::move(applied)), object_or_none(std::move(rolled_back))});
        }),
        py::kw_only(), py::arg("trust"), py::arg("allow_unsigned"), py::arg("directory"), py::arg("price_file"),
        py::arg("keys"), py::arg("limits"), py::arg("prices"), py::arg("router"), py::arg("check"), py::arg("applied"),
        py::arg("rolled_back"), py::arg("max_bytes") = d.max_bytes, py::arg("max_keys") = d.max_keys,
        py::arg("base_policy") = std::nullopt);
  bind_applying(c);
  c.def(
       "_status",
       [](PyApplier& self, NowArg now_ns) { return AnyDict(status_of(self.applier().status(steady_time(now_ns)))); },
       py::arg("now_ns"))
      .def("_rollbacks",
           [](PyApplier& self) {
             py::list out;
             for (const RollbackRecord& record : self.applier().rollbacks()) out.append(rollback_fields(record));
             return py::typing::List<AnyDict>(out);
           })
      .def(
          "prometheus",
          [](PyApplier& self, NowArg now_ns) {
            std::string page;
            append_prometheus(self.applier().status(steady_time(now_ns)), page);
            return text_of(page);
          },
          py::arg("now_ns") = std::nullopt, "Families warmroute_control_*: generation, age, expired, counters.");
}

}  // namespace warmroute::python
