// Limits: reserve, progress, settle. Reservations with a `with` block are warmroute/_usage_limits.py's.
#include "usage.hpp"

namespace warmroute::python {
namespace {

// Calls on a request's way keep the GIL: they lock shortly, and nothing in there waits for it.
LimitUse use_of(UsageCount input_tokens, UsageCount cached_input_tokens, UsageCount output_tokens,
                UsageCount cost_picos) {
  return {input_tokens, cached_input_tokens, output_tokens, cost_picos};
}

CalendarWindow window_of(py::handle source) {
  CalendarWindow out;
  out.unit = enum_of<CalendarUnit>(source.attr("unit"));
  out.count = source.attr("count").cast<std::int32_t>();
  out.anchor_local_seconds = source.attr("anchor_local_seconds").cast<std::int64_t>();
  out.time_zone = source.attr("time_zone").cast<std::string>();
  return out;
}

std::vector<LimitSpec> specs_of(const py::typing::Iterable<py::object>& specs) {
  std::vector<LimitSpec> out;
  for (const py::handle source : specs) {
    LimitSpec& s = out.emplace_back();
    s.name = source.attr("name").cast<std::string>();
    s.kind = enum_of<LimitKind>(source.attr("kind"));
    s.unit = enum_of<LimitUnit>(source.attr("unit"));
    s.amount = source.attr("amount").cast<std::int64_t>();
    s.period = Nanos{source.attr("period_ns").cast<std::int64_t>()};
    s.burst = source.attr("burst").cast<std::int64_t>();
    s.window = window_of(source.attr("window"));
    s.cached_weight_permille = source.attr("cached_weight_permille").cast<std::int32_t>();
    s.shadow = source.attr("shadow").cast<bool>();
    s.hard_stop = source.attr("hard_stop").cast<bool>();
  }
  return out;
}

std::optional<std::uint32_t> scope_number(ScopeId scope) {
  if (scope == kNoScope) return std::nullopt;
  return static_cast<std::uint32_t>(scope);
}
std::optional<std::int64_t> known_time(Nanos time) {
  if (time.value < 0) return std::nullopt;
  return time.value;
}

LimitDecision reserve(Limits& self, const std::vector<std::uint32_t>& scopes, UsageCount input_tokens,
                      UsageCount cached_input_tokens, UsageCount output_tokens, UsageCount cost_picos, NowArg now_ns,
                      NowArg wall_ns) {
  std::vector<ScopeId> ids;
  for (const std::uint32_t scope : scopes) ids.push_back(ScopeId{scope});
  return self.reserve(ids, use_of(input_tokens, cached_input_tokens, output_tokens, cost_picos),
                      usage_time(now_ns, wall_ns));
}

void bind_decision_of_limits(py::module_& m) {
  py::class_<LimitLeft>(m, "LimitLeft", "What is left of the tightest limit of one unit, after this request.")
      .def_readonly("amount", &LimitLeft::amount, "Of the limit.")
      .def_readonly("remaining", &LimitLeft::remaining)
      .def_property_readonly(
          "reset_ns", [](const LimitLeft& l) { return l.reset.value; }, "Until all of it is there again.")
      .def("__repr__", [](const LimitLeft& l) {
        return "<warmroute.usage.LimitLeft " + std::to_string(l.remaining) + " of " + std::to_string(l.amount) + ">";
      });
  py::class_<LimitDecision>(m, "LimitDecision",
                            "Whether a request may pass, by all limits of its scopes. True when it may.")
      .def_readonly("outcome", &LimitDecision::outcome)
      .def_property_readonly("allowed", &LimitDecision::allowed)
      .def_property_readonly(
          "ticket", [](const LimitDecision& d) { return static_cast<std::uint64_t>(d.ticket); }, "0 when not allowed.")
      .def_property_readonly(
          "scope", [](const LimitDecision& d) { return scope_number(d.scope); }, "That denied.")
      .def_readonly("limit", &LimitDecision::limit, "Which of that scope's limits.")
      .def_property_readonly(
          "retry_after_ns", [](const LimitDecision& d) { return known_time(d.retry_after); },
          "None: time does not heal it, or a budget denied.")
      .def_property_readonly(
          "reset_ns", [](const LimitDecision& d) { return known_time(d.reset); }, "Of a budget: until its window ends.")
      .def_readonly("may_stop", &LimitDecision::may_stop,
                    "A hard_stop is among its limits: progress() is worth asking.")
      .def_readonly("shadow_denied", &LimitDecision::shadow_denied, "A limit in shadow mode would have denied.")
      .def_property_readonly("shadow_scope", [](const LimitDecision& d) { return scope_number(d.shadow_scope); })
      .def_readonly("shadow_limit", &LimitDecision::shadow_limit)
      .def_property_readonly(
          "left",
          [](const LimitDecision& d) {
            py::dict out;
            for (std::size_t i = 0; i < kLimitUnitCount; ++i) {
              if (d.left[i].amount >= 0) out[text_of(EnumNames<LimitUnit>::kNames[i])] = d.left[i];
            }
            return py::typing::Dict<py::str, LimitLeft>(out);
          },
          "By unit, those that are limited; shadows and concurrency left out.")
      .def_property_readonly(
          "headers",
          [](const LimitDecision& d) {
            py::dict out;
            for (const auto& [name, value] : limit_headers(d)) out[text_of(name)] = text_of(value);
            return py::typing::Dict<py::str, py::str>(out);
          },
          "For the client, in OpenAI's manner: x-ratelimit-*, and retry-after where time heals.")
      .def(
          "status", [](const LimitDecision& d, int budget_status) { return limit_status(d.outcome, budget_status); },
          py::arg("budget_status") = 402,
          "200, 429 (rates, concurrency), budget_status (402 or 403), 400 (never passes), 503 (no room), 500.")
      .def("__bool__", &LimitDecision::allowed)
      .def("__repr__", [](const LimitDecision& d) {
        return "<warmroute.usage.LimitDecision " +
               std::string(EnumNames<LimitOutcome>::kNames[static_cast<std::size_t>(d.outcome)]) + ">";
      });
}

void bind_scopes(py::class_<Limits>& c) {
  c.def(
       "scope",
       [](Limits& self, std::string_view dimension, std::string_view value) {
         return static_cast<std::uint32_t>(value_of(self.scope(dimension, value)));
       },
       py::arg("dimension"), py::arg("value"),
       "The int of one value of a dimension, e.g. ('team', 'blue'), made when it is new. Keep it.\n\n"
       "errors: Error invalid_argument: an empty dimension; capacity: max_scopes.")
      .def(
          "scope_name", [](const Limits& self, std::uint32_t scope) { return self.name(ScopeId{scope}); },
          py::arg("scope"), "(dimension, value); empty ones of an unknown scope.")
      .def(
          "_set_default_limits",
          [](Limits& self, std::string_view dimension, const py::typing::Iterable<py::object>& limits) {
            const auto specs = specs_of(limits);
            check(without_gil([&] { return self.set_default_limits(dimension, specs); }));
          },
          py::arg("dimension"), py::arg("limits"))
      .def(
          "_set_limits",
          [](Limits& self, std::uint32_t scope, const py::typing::Iterable<py::object>& limits) {
            const auto specs = specs_of(limits);
            check(without_gil([&] { return self.set_limits(ScopeId{scope}, specs); }));
          },
          py::arg("scope"), py::arg("limits"))
      .def(
          "_limits", [](const Limits& self, std::uint32_t scope) { return spec_dicts(self.limits(ScopeId{scope})); },
          py::arg("scope"))
      .def(
          "used",
          [](const Limits& self, std::uint32_t scope, std::string_view limit, NowArg now_ns, NowArg wall_ns) {
            return value_of(self.used(ScopeId{scope}, limit, usage_time(now_ns, wall_ns)));
          },
          py::arg("scope"), py::arg("limit"), py::kw_only(), py::arg("now_ns") = std::nullopt,
          py::arg("wall_ns") = std::nullopt,
          "What of a limit is charged now: used in the window, in flight, or not yet drained of a rate. errors: Error "
          "not_found.");
}

template <class Call>
void def_use(py::class_<Limits>& c, const char* name, Call&& call, const char* doc) {
  c.def(
      name,
      [call](Limits& self, std::uint64_t ticket, UsageCount input_tokens, UsageCount cached_input_tokens,
             UsageCount output_tokens, UsageCount cost_picos, NowArg now_ns, NowArg wall_ns) {
        return call(self, LimitTicket{ticket}, use_of(input_tokens, cached_input_tokens, output_tokens, cost_picos),
                    usage_time(now_ns, wall_ns));
      },
      py::arg("ticket"), py::kw_only(), py::arg("input_tokens") = std::nullopt,
      py::arg("cached_input_tokens") = std::nullopt, py::arg("output_tokens") = std::nullopt,
      py::arg("cost_picos") = std::nullopt, py::arg("now_ns") = std::nullopt, py::arg("wall_ns") = std::nullopt, doc);
}

void bind_reservations(py::class_<Limits>& c) {
  c.def("decide", &reserve, py::arg("scopes"), py::kw_only(), py::arg("input_tokens") = std::nullopt,
        py::arg("cached_input_tokens") = std::nullopt, py::arg("output_tokens") = std::nullopt,
        py::arg("cost_picos") = std::nullopt, py::arg("now_ns") = std::nullopt, py::arg("wall_ns") = std::nullopt,
        "The flat form of reserve: the decision's ticket is the caller's to settle or release.");
  def_use(
      c, "progress",
      [](Limits& self, LimitTicket ticket, const LimitUse& use, UsageTime now) {
        return self.progress(ticket, use, now);
      },
      "What a stream has used so far. Says whether to stop (hard_stop budgets), and renews the lease.");
  def_use(
      c, "settle",
      [](Limits& self, LimitTicket ticket, const LimitUse& use, UsageTime now) {
        check(self.settle(ticket, use, now));
      },
      "The truth. None: as estimated. errors: Error stale: settled, released or expired before; nothing happens.");
  c.def(
       "release",
       [](Limits& self, std::uint64_t ticket, NowArg now_ns, NowArg wall_ns) {
         check(self.release(LimitTicket{ticket}, usage_time(now_ns, wall_ns)));
       },
       py::arg("ticket"), py::kw_only(), py::arg("now_ns") = std::nullopt, py::arg("wall_ns") = std::nullopt,
       "It never left, or nothing is to be paid for it: all is given back. errors: Error stale.")
      .def(
          "extend",
          [](Limits& self, std::uint64_t ticket, NowArg now_ns) {
            check(self.extend(LimitTicket{ticket}, steady_time(now_ns)));
          },
          py::arg("ticket"), py::kw_only(), py::arg("now_ns") = std::nullopt, "Renews the lease. errors: Error stale.")
      .def(
          "advance",
          [](Limits& self, std::optional<std::size_t> most, NowArg now_ns, NowArg wall_ns) {
            const UsageTime now = usage_time(now_ns, wall_ns);
            return without_gil([&] { return self.advance(now, most.value_or(~std::size_t{0})); });
          },
          py::arg("most") = std::nullopt, py::kw_only(), py::arg("now_ns") = std::nullopt,
          py::arg("wall_ns") = std::nullopt,
          "Ends leases that are over. returns: how many. Every call above ends a few by itself.")
      .def("_statistics", [](const Limits& self) {
        const LimitStatistics s = self.statistics();
        py::dict out;
        out["allowed"] = s.allowed;
        out["denied"] = s.denied;
        out["shadow_denied"] = s.shadow_denied;
        out["expired"] = s.expired;
        out["stale"] = s.stale;
        out["open"] = s.open;
        return AnyDict(out);
      });
}

}  // namespace

py::typing::List<AnyDict> spec_dicts(const std::vector<LimitSpec>& specs) {
  py::list out;
  for (const LimitSpec& s : specs) {
    py::dict window;
    window["unit"] = s.window.unit;
    window["count"] = s.window.count;
    window["anchor_local_seconds"] = s.window.anchor_local_seconds;
    window["time_zone"] = text_of(s.window.time_zone);
    py::dict row;
    row["name"] = text_of(s.name);
    row["kind"] = s.kind;
    row["unit"] = s.unit;
    row["amount"] = s.amount;
    row["period_ns"] = s.period.value;
    row["burst"] = s.burst;
    row["window"] = window;
    row["cached_weight_permille"] = s.cached_weight_permille;
    row["shadow"] = s.shadow;
    row["hard_stop"] = s.hard_stop;
    out.append(row);
  }
  return py::typing::List<AnyDict>(out);
}

void bind_usage_limits(py::module_& m) {
  bind_decision_of_limits(m);
  const LimitOptions d;
  py::class_<Limits> c(m, "Limits", "See warmroute.usage.Limits.");
  c.def(py::init([](std::int64_t lease_ns, EnumArg<OrphanCharge> orphans, std::size_t max_scopes,
                    std::size_t max_reservations, std::int64_t concurrency_retry_ns) {
          LimitOptions options;
          options.lease = Nanos{lease_ns};
          options.orphans = orphans;
          options.max_scopes = max_scopes;
          options.max_reservations = max_reservations;
          options.concurrency_retry = Nanos{concurrency_retry_ns};
          return std::make_unique<Limits>(options);
        }),
        py::kw_only(), py::arg("lease_ns") = d.lease.value,
        py::arg_v("orphans", EnumArg<OrphanCharge>{d.orphans}, "'keep'"), py::arg("max_scopes") = d.max_scopes,
        py::arg("max_reservations") = d.max_reservations, py::arg("concurrency_retry_ns") = d.concurrency_retry.value);
  bind_scopes(c);
  bind_reservations(c);
}

}  // namespace warmroute::python
