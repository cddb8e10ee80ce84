// PriceTable and Cost: exact integer money out of usage.
#include "usage.hpp"

namespace warmroute::python {
namespace {

using Shared = std::shared_lock<std::shared_mutex>;

template <class Call>
Status change(PyPrices& self, Call&& call) {
  const ReleasedGil gil;
  const std::unique_lock lock(self.mutex);
  if (self.own == nullptr) return Error{Code::unsupported, "the table is in a slot: others price by it", kNoOffset};
  return call(*self.own);
}

std::unique_ptr<PyPrices> owned(Result<PriceTable>&& table) {
  return std::make_unique<PyPrices>(std::make_shared<PriceTable>(value_of(std::move(table))));
}

PriceOptions options_of(std::string_view provider, bool prefer_reported_cost, bool off_peak,
                        const std::optional<EnumArg<PriceTier>>& tier) {
  PriceOptions options;
  options.provider = provider;
  options.prefer_reported_cost = prefer_reported_cost;
  options.off_peak = off_peak;
  if (tier) options.tier = tier->value;
  return options;
}

std::unique_ptr<PyCost> cost_of_report(const PyPrices& self, const PyReport& report, std::string_view model,
                                       std::string_view provider, bool prefer_reported_cost, bool off_peak,
                                       const std::optional<EnumArg<PriceTier>>& tier) {
  const Shared lock(self.mutex);
  return std::make_unique<PyCost>(
      self.table->cost(report.view, model, options_of(provider, prefer_reported_cost, off_peak, tier)));
}

std::unique_ptr<PyCost> cost_of_usage(const PyPrices& self, const Usage& usage, std::string_view model,
                                      std::string_view provider, bool prefer_reported_cost, bool off_peak,
                                      const std::optional<EnumArg<PriceTier>>& tier) {
  UsageReport report;
  report.usage = usage;
  const Shared lock(self.mutex);
  return std::make_unique<PyCost>(
      self.table->cost(report, model, options_of(provider, prefer_reported_cost, off_peak, tier)));
}

std::string cost_repr(const PyCost& self) {
  const Cost& c = self.view;
  if (!c.picos) return "<warmroute.usage.Cost unknown>";
  return "<warmroute.usage.Cost " + py::str(usd_of(py::int_(*c.picos))).cast<std::string>() + " USD, " +
         std::string(EnumNames<CostSource>::kNames[static_cast<std::size_t>(c.source)]) + ">";
}

bool same_bill(const Cost& a, const Cost& b) {
  return std::ranges::equal(a.bill(), b.bill(), [](const CostLine& x, const CostLine& y) {
    return x.meter == y.meter && x.quantity == y.quantity && x.rate_femtos == y.rate_femtos &&
           x.cost_picos == y.cost_picos;
  });
}

void bind_cost(py::module_& m) {
  py::class_<CostLine>(m, "CostLine",
                       "One row of a bill: quantity (tokens or requests) at rate_femtos (1e-15 USD) each.")
      .def_readonly("meter", &CostLine::meter)
      .def_readonly("quantity", &CostLine::quantity)
      .def_readonly("rate_femtos", &CostLine::rate_femtos)
      .def_readonly("cost_picos", &CostLine::cost_picos, "1e-12 USD, rounded.")
      .def("__repr__", [](const CostLine& l) {
        return "<warmroute.usage.CostLine " + std::string(price_meter_name(l.meter)) + ": " +
               std::to_string(l.quantity) + " x " + std::to_string(l.rate_femtos) + "e-15 USD>";
      });
  py::class_<PyCost>(m, "Cost",
                     "What a request costs. False where that is unknown, which is never 0; a cost of 0 is true.")
      .def(py::init([](std::optional<std::int64_t> picos, EnumArg<CostSource> source, std::string_view price_key) {
             Cost cost;
             cost.picos = picos;
             cost.source = source;
             cost.price_key = price_key;
             return std::make_unique<PyCost>(cost);
           }),
           py::arg("picos"), py::arg_v("source", EnumArg<CostSource>{CostSource::table}, "'table'"),
           py::arg("price_key") = "", "A cost from elsewhere than a PriceTable. picos: 1e-12 USD; None: unknown.")
      .def_property_readonly(
          "picos", [](const PyCost& self) { return self.view.picos; }, "1e-12 USD; None: unknown.")
      .def_property_readonly(
          "usd",
          [](const PyCost& self) -> std::optional<DecimalObject> {
            if (!self.view.picos) return std::nullopt;
            return usd_of(py::int_(*self.view.picos));
          },
          "The same in USD, exact; None: unknown.")
      .def_property_readonly("source", [](const PyCost& self) { return self.view.source; })
      .def_property_readonly(
          "price_key", [](const PyCost& self) { return text_of(self.price_key); },
          "Under which name the price was found.")
      .def_property_readonly(
          "threshold_tokens", [](const PyCost& self) { return self.view.threshold_tokens; },
          "Rates for prompts above so many tokens applied; 0: none.")
      .def_property_readonly(
          "tier_fell_back", [](const PyCost& self) { return self.view.tier_fell_back; },
          "There is no price for the tier: standard rates applied.")
      .def_property_readonly(
          "partial", [](const PyCost& self) { return self.view.partial; }, "Something reported has no price.")
      .def_property_readonly(
          "lines",
          [](const PyCost& self) {
            py::list out;
            for (const CostLine& line : self.view.bill()) out.append(line);
            return py::typing::Tuple<CostLine, py::ellipsis>(py::tuple(out));
          },
          "The bill.")
      .def("__bool__", [](const PyCost& self) { return self.view.picos.has_value(); })
      .def(
          "__eq__",
          [](const PyCost& a, const PyCost& b) {
            return a.view.picos == b.view.picos && a.view.source == b.view.source && a.price_key == b.price_key &&
                   a.view.threshold_tokens == b.view.threshold_tokens &&
                   a.view.tier_fell_back == b.view.tier_fell_back && a.view.partial == b.view.partial &&
                   same_bill(a.view, b.view);
          },
          py::is_operator())
      .def("__hash__", [](const PyCost& self) { return py::hash(py::make_tuple(self.view.picos, self.price_key)); })
      .def("__repr__", &cost_repr);
}

void bind_changes(py::class_<PyPrices>& c) {
  c.def(
       "override_with",
       [](PyPrices& self, const JsonText& json) {
         check(change(self, [&](PriceTable& table) { return table.override_with(json.text()); }));
       },
       py::arg("prices"),
       "Members of the same format, as JSON or as a dict, replace those of the model; a rate of null is removed.\n\n"
       "errors: Error invalid_json, not_an_object, too_large; invalid_argument: a rate that is none.")
      .def(
          "set_alias",
          [](PyPrices& self, std::string_view alias, std::string_view model) {
            check(change(self, [&](PriceTable& table) { return table.set_alias(alias, model); }));
          },
          py::arg("alias"), py::arg("model"),
          "`alias` is priced as `model`, which need not be there yet. errors: Error invalid_argument.")
      .def(
          "set_self_hosted",
          [](PyPrices& self, std::string model, std::int64_t replica_hour_picos, double input_tokens_per_second,
             double output_tokens_per_second, double cached_tokens_per_second, double utilization) {
            const SelfHostedPrice price{std::move(model),         replica_hour_picos,       input_tokens_per_second,
                                        output_tokens_per_second, cached_tokens_per_second, utilization};
            check(change(self, [&](PriceTable& table) { return table.set_self_hosted(price); }));
          },
          py::arg("model"), py::kw_only(), py::arg("replica_hour_picos"), py::arg("input_tokens_per_second"),
          py::arg("output_tokens_per_second"), py::arg("cached_tokens_per_second") = 0.0, py::arg("utilization") = 1.0,
          "A model that own replicas serve: an hour of one (1e-12 USD), shared among what it could do in an hour.\n\n"
          "Speeds: of one replica doing nothing else. utilization: share of the hours that work is done in, 0..1.\n"
          "errors: Error invalid_argument, every fault named.");
}

template <class Cost>
void bind_costs(py::class_<PyPrices>& c, Cost cost, const char* what, const char* doc) {
  c.def("cost", cost, py::arg(what), py::arg("model") = "", py::kw_only(), py::arg("provider") = "",
        py::arg("prefer_reported_cost") = false, py::arg("off_peak") = false, py::arg("tier") = std::nullopt, doc);
}

}  // namespace

void bind_usage_price(py::module_& m) {
  bind_cost(m);
  py::class_<PyPrices> c(m, "PriceTable",
                         "Prices of many models, in the format of LiteLLM's model_prices_and_context_window.json. "
                         "Thread-safe.\n\n"
                         "Money is exact: 1e-12 USD in ints (picos), rates in 1e-15 USD (femtos). None is shipped.");
  c.def(py::init<>())
      .def_static(
          "from_json",
          [](const JsonText& json) { return owned(without_gil([&] { return PriceTable::from_json(json.text()); })); },
          py::arg("prices"),
          "JSON, or the dict of it. errors: Error invalid_json, not_an_object, too_large. Malformed rates are skipped.")
      .def_static(
          "load",
          [](const py::object& path) {
            const auto name = py::module_::import("os").attr("fspath")(path).cast<std::string>();
            return owned(without_gil([&] { return PriceTable::load(name); }));
          },
          py::arg("path"), "From a file. errors: Error io, and those of from_json.");
  bind_changes(c);
  bind_costs(
      c, &cost_of_report, "report",
      "model: the name to price by; '': the one that answered. provider: tried as a prefix of names. tier: None: "
      "the report's.\n\n"
      "Unknown where a side of the usage is, or the model; the provider's own cost stands in there.");
  bind_costs(c, &cost_of_usage, "usage", "Of counts alone.");
  c.def(
       "find",
       [](const PyPrices& self, std::string_view model, std::string_view provider) -> py::typing::Optional<py::str> {
         const Shared lock(self.mutex);
         const auto key = self.table->find(model, provider);
         return key ? py::object(text_of(*key)) : py::object(py::none());
       },
       py::arg("model"), py::arg("provider") = "", "The name under which a model's price is found; None: unknown.")
      .def_property_readonly(
          "skipped_rates",
          [](const PyPrices& self) {
            const Shared lock(self.mutex);
            return self.table->skipped_rates();
          },
          "Members that should be rates and are none.")
      .def_property_readonly(
          "version",
          [](const PyPrices& self) {
            const Shared lock(self.mutex);
            return self.table->version();
          },
          "A digest of everything that was put in: the version to write beside a cost.")
      .def("__len__", [](const PyPrices& self) {
        const Shared lock(self.mutex);
        return self.table->size();
      });
}

}  // namespace warmroute::python
