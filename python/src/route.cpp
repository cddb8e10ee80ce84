// Router: the calls on a request's path. Single ones keep the GIL, since releasing it costs more than they take, and they
// never wait for a lock; batches and long bodies release it.
#include "router.hpp"
#include "warmroute/route/models.hpp"

namespace warmroute::python {
namespace {

using Flat = py::typing::Tuple<py::int_, py::int_>;
using Numbers = std::optional<std::vector<std::uint64_t>>;

// The keywords of the flat calls as a Request; `tried` keeps the excluded.
struct FlatRequest {
  Request request;
  std::vector<ReplicaId> tried;

  void restrict(const Numbers& excluded, std::optional<std::uint64_t> pinned) {
    if (pinned) request.pinned = replica_of(*pinned);
    if (!excluded) return;
    for (const std::uint64_t number : *excluded) tried.push_back(replica_of(number));
    request.excluded = tried;
  }
};

Flat route_tokens(PyRouter& self, const TokenView& ids, NowArg now_ns, std::string_view model, std::string_view session,
                  std::string_view tenant, std::string_view adapter, std::string_view cache_salt,
                  std::int64_t max_output_tokens, const Numbers& excluded, std::optional<std::uint64_t> pinned) {
  FlatRequest f;
  f.request.model = model;
  f.request.session = session;
  f.request.tenant = tenant;
  f.request.adapter = adapter;
  f.request.cache_salt = cache_salt;
  f.request.token_ids = ids.span();
  f.request.max_output_tokens = max_output_tokens;
  f.restrict(excluded, pinned);
  return flat(self.router.route(f.request, self.at(now_ns)));
}

Flat route_blocks(PyRouter& self, const HashView& blocks, NowArg now_ns, EnumArg<BlockKind> kind,
                  std::int64_t input_tokens, std::int64_t prompt_bytes, std::string_view model,
                  std::string_view session, std::string_view tenant, std::string_view adapter,
                  std::string_view cache_salt, std::int64_t max_output_tokens, const Numbers& excluded,
                  std::optional<std::uint64_t> pinned) {
  FlatRequest f;
  f.request.model = model;
  f.request.session = session;
  f.request.tenant = tenant;
  f.request.adapter = adapter;
  f.request.cache_salt = cache_salt;
  f.request.blocks = as_blocks(blocks.span());
  f.request.block_kind = kind;
  f.request.input_tokens = input_tokens;
  f.request.prompt_bytes = prompt_bytes;
  f.request.max_output_tokens = max_output_tokens;
  f.restrict(excluded, pinned);
  return flat(self.router.route(f.request, self.at(now_ns)));
}

Flat route_body(PyRouter& self, const BytesView& body, NowArg now_ns, EnumArg<BodyApi> api, std::string_view tenant,
                std::string_view adapter, std::string_view session, const Numbers& excluded,
                std::optional<std::uint64_t> pinned) {
  const py::object tokenizer = self.tokenizer;
  const ParserPool::Lease lease(self.parsers);
  const ParsedBody parsed = parse_body(*lease, api, body, self.body_options_now(tenant, adapter), tokenizer);
  FlatRequest f{parsed.request(), {}};
  if (!session.empty()) f.request.session = session;
  f.restrict(excluded, pinned);
  return flat(self.router.route(f.request, self.at(now_ns)));
}

/// Whatever a prompt may be, as a Request that lives for the call of `use`.
template <class Use>
auto with_request(PyRouter& self, const py::object& prompt, EnumArg<BodyApi> api, const py::kwargs& keywords,
                  Use&& use) {
  std::vector<ReplicaId> tried;
  const auto finish = [&](Request request) {
    apply_keywords(request, keywords, tried);
    return use(request);
  };
  if (py::isinstance<PyRequest>(prompt)) return finish(prompt.cast<PyRequest&>().view);
  if (py::isinstance<PyParsedBody>(prompt)) return finish(prompt.cast<PyParsedBody&>().view.request());
  Request request;
  if (py::isinstance<py::array>(prompt)) {
    const auto array = py::reinterpret_borrow<py::array>(prompt);
    if (array.itemsize() == static_cast<py::ssize_t>(sizeof(std::uint64_t))) {
      HashView blocks;
      blocks.take(prompt);
      request.blocks = as_blocks(blocks.span());
      return finish(request);
    }
    TokenView ids;
    ids.take(prompt);
    request.token_ids = ids.span();
    return finish(request);
  }
  BytesView body;
  if (!body.take(prompt)) {
    throw py::type_error(
        "a prompt is a body (bytes, str), a uint32 array of token ids, a uint64 array of block hashes, a "
        "Request or a ParsedBody");
  }
  const auto text = [&](const char* name) {
    return keywords.contains(name) ? keywords[name].cast<std::string_view>() : std::string_view{};
  };
  const py::object tokenizer = self.tokenizer;
  const ParserPool::Lease lease(self.parsers);
  return finish(
      parse_body(*lease, api, body, self.body_options_now(text("tenant"), text("adapter")), tokenizer).request());
}

Decision decide(PyRouter& self, const py::object& prompt, NowArg now_ns, EnumArg<BodyApi> api,
                const py::kwargs& keywords) {
  return with_request(self, prompt, api, keywords,
                      [&](const Request& r) { return self.router.route(r, self.at(now_ns)); });
}

Decision peek(PyRouter& self, const py::object& prompt, NowArg now_ns, EnumArg<BodyApi> api,
              const py::kwargs& keywords) {
  return with_request(self, prompt, api, keywords,
                      [&](const Request& r) { return self.router.peek(r, self.at(now_ns)); });
}

// Allocates, reads the index's statistics under its lock: released.
Explanation explain(PyRouter& self, const py::object& prompt, NowArg now_ns, EnumArg<BodyApi> api,
                    const py::kwargs& keywords) {
  return with_request(self, prompt, api, keywords, [&](const Request& r) {
    const Nanos now = self.at(now_ns);
    return self.released([&] { return self.router.explain(r, now); });
  });
}

std::vector<Decision> route_batch(PyRouter& self, const py::typing::Iterable<PyRequest>& requests, NowArg now_ns) {
  std::vector<py::object> alive;  // another thread may empty the caller's list while the GIL is released
  std::vector<Request> views;
  for (const py::handle item : requests) {
    if (!py::isinstance<PyRequest>(item)) throw py::type_error("route_batch takes Requests");
    views.push_back(item.cast<PyRequest&>().view);
    alive.push_back(py::reinterpret_borrow<py::object>(item));
  }
  const Nanos now = self.at(now_ns);
  std::vector<Decision> decisions(views.size());
  self.released([&] { self.router.route_batch(views, decisions, now); });
  return decisions;
}

using BatchResult = std::tuple<py::array_t<std::int64_t>, py::array_t<std::uint64_t>>;

BatchResult route_tokens_batch(PyRouter& self, const TokenView& ids, const ArrayView<std::int64_t>& ends, NowArg now_ns,
                               std::string_view model, std::string_view tenant, std::string_view adapter,
                               std::string_view cache_salt, std::int64_t max_output_tokens) {
  const auto tokens = ids.span();
  std::vector<Request> requests(ends.size());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::int64_t end = ends.span()[i];
    if (end < begin || end > static_cast<std::int64_t>(tokens.size())) {
      throw py::value_error("ends must rise and stay within ids: ends[" + std::to_string(i) + "] is " +
                            std::to_string(end));
    }
    Request& r = requests[i];
    r.token_ids = tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    r.model = model;
    r.tenant = tenant;
    r.adapter = adapter;
    r.cache_salt = cache_salt;
    r.max_output_tokens = max_output_tokens;
    begin = end;
  }
  const Nanos now = self.at(now_ns);
  py::array_t<std::int64_t> replicas(static_cast<py::ssize_t>(requests.size()));
  py::array_t<std::uint64_t> tickets(static_cast<py::ssize_t>(requests.size()));
  std::int64_t* replica = replicas.mutable_data();
  std::uint64_t* ticket = tickets.mutable_data();
  self.released([&] {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Decision d = self.router.route(requests[i], now);
      replica[i] =
          d.routed() ? static_cast<std::int64_t>(replica_number(d.replica)) : -static_cast<std::int64_t>(d.verdict);
      ticket[i] = static_cast<std::uint64_t>(d.ticket);
    }
  });
  return {replicas, tickets};
}

constexpr auto kNone = std::nullopt;

void bind_flat(RouterClass& c) {
  c.def("route_tokens", &route_tokens, py::arg("ids"), py::arg("now_ns") = kNone, py::kw_only(), py::arg("model") = "",
        py::arg("session") = "", py::arg("tenant") = "", py::arg("adapter") = "", py::arg("cache_salt") = "",
        py::arg("max_output_tokens") = kUnknown, py::arg("excluded") = kNone, py::arg("pinned") = kNone,
        "Picks a replica for a prompt of token ids and books the request there. Keeps the GIL.\n\n"
        "shape: ids uint32[n], C-contiguous, not copied (bytes: raw little-endian). returns: (replica, ticket); "
        "replica < 0:\n"
        "not routed, -replica is the Verdict, ticket 0. errors: TypeError (another dtype, a list).")
      .def("route_blocks", &route_blocks, py::arg("blocks"), py::arg("now_ns") = kNone, py::kw_only(),
           py::arg_v("block_kind", EnumArg<BlockKind>{}, "'tokens'"), py::arg("input_tokens") = kUnknown,
           py::arg("prompt_bytes") = kUnknown, py::arg("model") = "", py::arg("session") = "", py::arg("tenant") = "",
           py::arg("adapter") = "", py::arg("cache_salt") = "", py::arg("max_output_tokens") = kUnknown,
           py::arg("excluded") = kNone, py::arg("pinned") = kNone,
           "As route_tokens, for block hashes under the policy's seed. shape: uint64[n], block 0 first, not copied.\n\n"
           "input_tokens: of the whole body; -1 = from the blocks or the learned bytes per token.")
      .def("route_body", &route_body, py::arg("body"), py::arg("now_ns") = kNone, py::kw_only(),
           py::arg_v("api", EnumArg<BodyApi>{}, "'chat'"), py::arg("tenant") = "", py::arg("adapter") = "",
           py::arg("session") = "", py::arg("excluded") = kNone, py::arg("pinned") = kNone,
           "As route_tokens, for a request body; long ones are read without the GIL. session and adapter beat the "
           "body's.\n\n"
           "errors: as BodyParser.parse, with code and offset.")
      .def(
          "first_token",
          [](PyRouter& self, std::uint64_t ticket, NowArg now_ns) {
            return self.router.first_token(Ticket{ticket}, self.at(now_ns));
          },
          py::arg("ticket"), py::arg("now_ns") = kNone,
          "The first token came: prefill load is released. returns: False for a ticket that is over or had it "
          "(harmless).")
      .def(
          "transfer_done",
          [](PyRouter& self, std::uint64_t ticket, NowArg now_ns) {
            return self.router.transfer_done(Ticket{ticket}, self.at(now_ns));
          },
          py::arg("ticket"), py::arg("now_ns") = kNone,
          "Of a pair: the decode replica has the KV, so that the prefill replica is free of it. returns: False for a "
          "ticket "
          "that is over, fetched already, or no pair (harmless).")
      .def(
          "finish",
          [](PyRouter& self, std::uint64_t ticket, NowArg now_ns, NowArg input_tokens, NowArg cached_tokens,
             NowArg output_tokens) {
            const UsageCounts usage{input_tokens.value_or(kUnknown), cached_tokens.value_or(kUnknown),
                                    output_tokens.value_or(kUnknown)};
            return self.router.finish(Ticket{ticket}, usage, self.at(now_ns));
          },
          py::arg("ticket"), py::arg("now_ns") = kNone, py::kw_only(), py::arg("input_tokens") = kNone,
          py::arg("cached_tokens") = kNone, py::arg("output_tokens") = kNone,
          "The request is over; cached_tokens repairs what is believed of that cache. None = unknown, which is not "
          "zero.\n\n"
          "returns: False for a ticket that is over (harmless).")
      .def(
          "fail",
          [](PyRouter& self, std::uint64_t ticket, EnumArg<Outcome> outcome, NowArg now_ns) {
            return self.router.fail(Ticket{ticket}, outcome, self.at(now_ns));
          },
          py::arg("ticket"), py::arg_v("outcome", EnumArg<Outcome>{Outcome::cancelled}, "'cancelled'"),
          py::arg("now_ns") = kNone,
          "The request is over without a whole answer. returns: False for a ticket that is over (harmless).");
}

}  // namespace

namespace {

struct PyModelRouter {
  explicit PyModelRouter(const py::object& of) : owner(of), router(of.cast<PyRouter*>()), models(router->router) {}
  py::object owner;  // the models' router lives as long as they do
  PyRouter* router;
  ModelRouter models;
};

ModelDecision route_model(PyModelRouter& self, const py::object& prompt, NowArg now_ns, EnumArg<BodyApi> api,
                          const py::kwargs& keywords) {
  return with_request(*self.router, prompt, api, keywords,
                      [&](const Request& r) { return self.models.route(r, self.router->at(now_ns)); });
}

void set_map(PyModelRouter& self, std::string_view json) {
  const auto map = value_of(model_map_from_json(json));
  check(self.router->released([&] { return self.models.set_map(map); }));
}

py::typing::Dict<py::str, py::typing::Dict<py::str, py::int_>> readings(const PyModelRouter& self) {
  py::dict out;
  for (const PoolTermsReading& r : self.models.readings()) {
    py::dict row;
    row["routed"] = r.routed;
    row["over_quota"] = r.over_quota;
    row["in_flight"] = r.in_flight;
    row["blocked_until_ns"] = r.blocked_until.value;
    out[py::str(r.name)] = row;
  }
  return py::typing::Dict<py::str, py::typing::Dict<py::str, py::int_>>(out);
}

}  // namespace

void bind_models(py::module_& m) {
  py::class_<ModelDecision>(m, "ModelDecision",
                            "What a ModelRouter answers: a decision, and what pool and model it is of.")
      .def_readonly("decision", &ModelDecision::decision)
      .def_property_readonly("routed", &ModelDecision::routed)
      .def_readonly("pool", &ModelDecision::pool, "That took it.")
      .def_readonly("model", &ModelDecision::model, "What to ask the server for; '' = the client's own name.")
      .def_readonly("external", &ModelDecision::external, "Its pool is somebody else's API.")
      .def_readonly("target", &ModelDecision::target, "Which of the name's targets, then fallbacks.")
      .def_readonly("refused", &ModelDecision::refused, "Targets before it that could not take it.")
      .def_readonly("forbidden", &ModelDecision::forbidden, "Targets that its class may not use.");
  py::class_<PyModelRouter>(
      m, "ModelRouter",
      "Which pool serves a model name: aliases with weighted targets and ordered fallbacks, external APIs by quota and "
      "price,\n"
      "classes that may never leave. In front of a Router; end its requests here, so that quotas get the truth.")
      .def(py::init([](const py::object& router, std::string_view json) {
             if (!py::isinstance<PyRouter>(router)) throw py::type_error("ModelRouter takes a Router");
             auto made = std::make_unique<PyModelRouter>(router);
             set_map(*made, json);
             return made;
           }),
           py::arg("router"), py::arg("map_json") = "{}")
      .def("set_map", &set_map, py::arg("map_json"),
           "Swaps the map: {\"models\": [{\"name\", \"targets\": [{\"pool\", \"model\", \"weight\"}], \"fallbacks\", "
           "\"choice\"}],\n"
           "\"pools\": [{\"name\", \"external\", \"requests_per_minute\", \"tokens_per_minute\", \"max_in_flight\", "
           "\"input_price\", ...}],\n"
           "\"classes\": [{\"class_id\", \"may_leave\"}]}; prices are USD per million tokens.\n\n"
           "errors: Error invalid_json, invalid_argument (every fault with its path); nothing changes then.")
      .def("route", &route_model, py::keep_alive<0, 1>(), py::arg("prompt"), py::arg("now_ns") = kNone,
           py::arg_v("api", EnumArg<BodyApi>{}, "'chat'"),
           "As Router.route, with a ModelDecision. Verdicts beyond: no_permitted_pool, saturated (over a quota).")
      .def(
          "first_token",
          [](PyModelRouter& self, const ModelDecision& d, NowArg now_ns) {
            return self.models.first_token(d.ticket, self.router->at(now_ns));
          },
          py::arg("decision"), py::arg("now_ns") = kNone)
      .def(
          "finish",
          [](PyModelRouter& self, const ModelDecision& d, NowArg now_ns, NowArg input_tokens, NowArg cached_tokens,
             NowArg output_tokens) {
            const UsageCounts usage{input_tokens.value_or(kUnknown), cached_tokens.value_or(kUnknown),
                                    output_tokens.value_or(kUnknown)};
            return self.models.finish(d.ticket, usage, self.router->at(now_ns));
          },
          py::arg("decision"), py::arg("now_ns") = kNone, py::kw_only(), py::arg("input_tokens") = kNone,
          py::arg("cached_tokens") = kNone, py::arg("output_tokens") = kNone, "As Router.finish.")
      .def(
          "fail",
          [](PyModelRouter& self, const ModelDecision& d, EnumArg<Outcome> outcome, NowArg now_ns,
             std::int64_t retry_after_ns) {
            return self.models.fail(d.ticket, outcome, self.router->at(now_ns), Nanos{retry_after_ns});
          },
          py::arg("decision"), py::arg_v("outcome", EnumArg<Outcome>{Outcome::cancelled}, "'cancelled'"),
          py::arg("now_ns") = kNone, py::kw_only(), py::arg("retry_after_ns") = 0,
          "As Router.fail. retry_after_ns: as the server said; its pool is left alone for so long.")
      .def("readings", &readings, "Of pools with terms: routed, over_quota, in_flight, blocked_until_ns.");
}

void bind_routing(RouterClass& c) {
  bind_flat(c);
  const auto api = [] { return py::arg_v("api", EnumArg<BodyApi>{}, "'chat'"); };
  c.def("_decide", &decide, py::arg("prompt"), py::arg("now_ns") = kNone, api(),
        "route with a Decision; Router.route wraps it.")
      .def("_peek", &peek, py::arg("prompt"), py::arg("now_ns") = kNone, api())
      .def("_explain", &explain, py::arg("prompt"), py::arg("now_ns") = kNone, api())
      .def(
          "parse_body",
          [](PyRouter& self, const BytesView& body, EnumArg<BodyApi> which, std::string_view tenant,
             std::string_view adapter) {
            const py::object tokenizer = self.tokenizer;
            const ParserPool::Lease lease(self.parsers);
            return std::make_unique<PyParsedBody>(
                parse_body(*lease, which, body, self.body_options_now(tenant, adapter), tokenizer));
          },
          py::arg("body"), api(), py::kw_only(), py::arg("tenant") = "", py::arg("adapter") = "",
          "Reads a body under the policy's block size, hash seed and isolation; route(parsed) then routes it. errors: "
          "as BodyParser.parse.")
      .def("route_batch", &route_batch, py::arg("requests"), py::arg("now_ns") = kNone,
           "Routes Requests in order, each seeing what the ones before it booked. Releases the GIL.")
      .def("route_tokens_batch", &route_tokens_batch, py::arg("ids"), py::arg("ends"), py::arg("now_ns") = kNone,
           py::kw_only(), py::arg("model") = "", py::arg("tenant") = "", py::arg("adapter") = "",
           py::arg("cache_salt") = "", py::arg("max_output_tokens") = kUnknown,
           "route_tokens for many prompts that share one array. Releases the GIL.\n\n"
           "shape: ids uint32[total], ends int64[n]: prompt i is ids[ends[i-1]:ends[i]]. returns: (replicas int64[n], "
           "tickets\n"
           "uint64[n]), as route_tokens. errors: ValueError (ends falls or leaves ids).");
}

}  // namespace warmroute::python
