// Ledger: sums by names and window. Money leaves as one int, which Python has no end of.
#include <algorithm>

#include "usage_event.hpp"
#include "warmroute/usage/ledger.hpp"

namespace warmroute::python {
namespace {

// A ledger, and the prices that it reads. lifetime: keep_alive holds the prices.
struct PyLedger {
  explicit PyLedger(const LedgerOptions& options, PyPrices* table) : prices(table), ledger(options) {}

  template <class Call>
  auto reading_prices(Call&& call) {
    if (prices == nullptr) return call();
    const std::shared_lock lock(prices->mutex);
    return call();
  }

  PyPrices* prices;
  Ledger ledger;
};

constexpr std::array<std::pair<std::string_view, LedgerBy>, 6> kDimensions{{{"key", LedgerBy::key},
                                                                            {"team", LedgerBy::team},
                                                                            {"model", LedgerBy::model},
                                                                            {"replica", LedgerBy::replica},
                                                                            {"class", LedgerBy::class_id},
                                                                            {"window", LedgerBy::window}}};

LedgerBy dimensions_of(const std::optional<std::vector<std::string>>& names) {
  if (!names) return kLedgerByAll;
  LedgerBy out = LedgerBy::none;
  for (const std::string& name : *names) {
    const auto* found =
        std::find_if(kDimensions.begin(), kDimensions.end(), [&](const auto& d) { return d.first == name; });
    if (found == kDimensions.end()) {
      throw py::value_error("'" + name + "' is no dimension: use key, team, model, replica, class, window");
    }
    out = out | found->second;
  }
  return out;
}

py::object picos_of(LedgerMoney money) {
  return py::int_(money.usd) * py::int_(1'000'000'000'000) + py::int_(money.picos);
}

py::dict sums_of(const LedgerSums& s) {
  py::dict out;
  out["attempts"] = s.attempts;
  out["incomplete"] = s.incomplete;
  out["errors"] = s.errors;
  out["unknown_usage"] = s.unknown_usage;
  out["unknown_cost"] = s.unknown_cost;
  out["input_tokens"] = s.input_tokens;
  out["cached_input_tokens"] = s.cached_input_tokens;
  out["cache_write_input_tokens"] = s.cache_write_input_tokens;
  out["output_tokens"] = s.output_tokens;
  out["reasoning_output_tokens"] = s.reasoning_output_tokens;
  out["cache_reported_input_tokens"] = s.cache_reported_input_tokens;
  out["cost_picos"] = picos_of(s.cost);
  out["saved_by_cache_picos"] = picos_of(s.saved_by_cache);
  return out;
}

py::dict row_of(const LedgerRow& row) {
  py::dict out;
  out["key_id"] = text_of(row.key_id);
  out["team_id"] = text_of(row.team_id);
  out["model"] = text_of(row.model);
  out["replica_id"] = text_of(row.replica_id);
  out["class_id"] = text_of(row.class_id);
  out["window_start_ns"] = row.window_start.value;
  out["sums"] = sums_of(row.sums);
  return out;
}

void bind_adding(py::class_<PyLedger>& c) {
  c.def(
       "_add",
       [](PyLedger& self, const py::object& event, bool incomplete) {
         const EventArg arg(event);
         self.reading_prices([&] { self.ledger.add(arg.view(), incomplete); });
       },
       py::arg("event"), py::arg("incomplete"))
      .def(
          "read",
          [](PyLedger& self, PyJournalReader& reader) {
            const Turn turn(reader.mutex);
            return value_of(
                without_gil([&] { return self.reading_prices([&] { return self.ledger.read(reader.reader); }); }));
          },
          py::arg("reader"),
          "All that a JournalReader has left. returns: events. errors: Error io; what came before is added.")
      .def(
          "forget_before",
          [](PyLedger& self, std::int64_t wall_ns) {
            return without_gil([&] { return self.ledger.forget_before(WallNanos{wall_ns}); });
          },
          py::arg("wall_ns"), "Drops windows that ended by then. returns: rows.");
}

}  // namespace

void bind_usage_ledger(py::module_& m) {
  const LedgerOptions d;
  py::class_<PyLedger> c(m, "Ledger", "See warmroute.usage.Ledger.");
  c.def(py::init([](const std::optional<std::vector<std::string>>& by, std::int64_t window_ns, std::size_t max_rows,
                    std::optional<PyPrices*> prices, bool reprice) {
          PyPrices* table = prices.value_or(nullptr);
          if (window_ns <= 0) throw py::value_error("window_ns must be above 0");
          LedgerOptions options;
          options.by = dimensions_of(by);
          options.window = Nanos{window_ns};
          options.max_rows = max_rows;
          options.prices = table != nullptr ? table->table.get() : nullptr;
          options.reprice = reprice;
          return std::make_unique<PyLedger>(options, table);
        }),
        py::kw_only(), py::arg("by"), py::arg("window_ns") = d.window.value, py::arg("max_rows") = d.max_rows,
        py::arg("prices") = std::nullopt, py::arg("reprice") = d.reprice, py::keep_alive<1, 5>());
  bind_adding(c);
  c.def(
       "_snapshot",
       [](PyLedger& self, const std::optional<std::vector<std::string>>& by) {
         const LedgerBy which = dimensions_of(by);
         const std::vector<LedgerRow> rows = without_gil([&] { return self.ledger.snapshot(which); });
         py::list out;
         for (const LedgerRow& row : rows) out.append(row_of(row));
         return py::typing::List<AnyDict>(out);
       },
       py::arg("by"))
      .def("_total", [](PyLedger& self) { return AnyDict(sums_of(without_gil([&] { return self.ledger.total(); }))); })
      .def_property_readonly(
          "overflowed", [](const PyLedger& self) { return self.ledger.overflowed(); },
          "Events beyond max_rows: in the one row without names.")
      .def("__len__", [](const PyLedger& self) { return self.ledger.rows(); });
}

}  // namespace warmroute::python
