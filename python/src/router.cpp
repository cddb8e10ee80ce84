// Router: its making, its membership, its policy. Calls that may wait, so all of them release the GIL.
#include "router.hpp"

#include <limits>

namespace warmroute::python {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

Labels labels_of(const py::dict& labels) {
  Labels out;
  for (const auto& [key, value] : labels) out.emplace_back(key.cast<std::string>(), value.cast<std::string>());
  return out;
}

std::uint64_t add_replica(PyRouter& self, std::string name, NowArg now_ns, std::uint32_t dp_rank, std::string pool,
                          std::string ring_id, EnumArg<Role> role, double weight, bool any_adapter,
                          std::vector<std::string> adapters,
                          const std::optional<py::typing::Dict<py::str, py::str>>& labels,
                          const std::optional<Rates>& rates, std::int64_t capacity_tokens, EnumArg<Health> health,
                          std::string health_reason, EnumArg<CacheKind> cache_kind,
                          const std::optional<SlotSpec>& slots, std::int64_t slow_start_ns, double slow_start_weight) {
  ReplicaSpec spec{.name = std::move(name), .dp_rank = dp_rank, .pool = std::move(pool), .ring_id = std::move(ring_id)};
  spec.role = role;
  spec.weight = weight;
  spec.any_adapter = any_adapter;
  spec.adapters = std::move(adapters);
  if (labels) spec.labels = labels_of(*labels);
  spec.rates = rates.value_or(Rates{});
  spec.capacity_tokens = capacity_tokens;
  spec.health = health;
  spec.health_reason = std::move(health_reason);
  spec.cache_kind = cache_kind;
  spec.slots = slots.value_or(SlotSpec{});
  spec.slow_start = Nanos{slow_start_ns};
  spec.slow_start_weight = slow_start_weight;
  const Nanos now = self.at(now_ns);
  return replica_number(value_of(self.released([&] { return self.router.add_replica(std::move(spec), now); })));
}

template <class T>
void change(T& member, std::optional<T>& value) {
  if (value) member = std::move(*value);
}

void update_replica(PyRouter& self, std::uint64_t replica, NowArg now_ns, std::optional<std::string> ring_id,
                    std::optional<EnumArg<Role>> role, std::optional<double> weight, std::optional<bool> any_adapter,
                    std::optional<std::vector<std::string>> adapters,
                    const std::optional<py::typing::Dict<py::str, py::str>>& labels, std::optional<Rates> rates,
                    std::optional<std::int64_t> capacity_tokens, std::optional<EnumArg<CacheKind>> cache_kind,
                    std::optional<SlotSpec> slots, std::optional<std::int64_t> slow_start_ns,
                    std::optional<double> slow_start_weight) {
  const Nanos now = self.at(now_ns);
  ReplicaSpec spec = value_of(self.router.replica(replica_of(replica)));
  change(spec.ring_id, ring_id);
  if (role) spec.role = *role;
  change(spec.weight, weight);
  change(spec.any_adapter, any_adapter);
  change(spec.adapters, adapters);
  if (labels) spec.labels = labels_of(*labels);
  change(spec.rates, rates);
  change(spec.capacity_tokens, capacity_tokens);
  if (cache_kind) spec.cache_kind = *cache_kind;
  change(spec.slots, slots);
  if (slow_start_ns) spec.slow_start = Nanos{*slow_start_ns};
  change(spec.slow_start_weight, slow_start_weight);
  check(self.released([&] { return self.router.update_replica(replica_of(replica), spec, now); }));
}

std::span<const EngineHash> names_of(const HashView& ids) {
  return {reinterpret_cast<const EngineHash*>(ids.span().data()), ids.size()};
}
void blocks_stored(PyRouter& self, std::uint64_t replica, const HashView& ids, std::optional<std::uint64_t> parent,
                   NowArg now_ns, const std::optional<py::object>& token_ids, const std::optional<py::object>& blocks,
                   EnumArg<Tier> tier, std::string_view adapter, std::string_view cache_salt, std::string_view tenant) {
  if (token_ids.has_value() == blocks.has_value()) throw py::type_error("give either token_ids or blocks");
  TokenView tokens;
  HashView hashes;
  if (token_ids) tokens.take(*token_ids);
  if (blocks) hashes.take(*blocks);
  StoredBlocks stored;
  stored.tier = tier;
  if (parent) stored.parent = EngineHash{*parent};
  stored.ids = names_of(ids);
  stored.blocks = as_blocks(hashes.span());
  stored.token_ids = tokens.span();
  stored.adapter = adapter;
  stored.cache_salt = cache_salt;
  stored.tenant = tenant;
  const Nanos now = self.at(now_ns);
  check(self.released([&] { return self.router.blocks_stored(replica_of(replica), stored, now); }));
}

std::size_t blocks_also_on(PyRouter& self, std::uint64_t replica, EnumArg<Tier> tier, const HashView& ids,
                           NowArg now_ns) {
  const Nanos now = self.at(now_ns);
  return value_of(
      self.released([&] { return self.router.blocks_also_on(replica_of(replica), tier, names_of(ids), now); }));
}
std::size_t blocks_removed(PyRouter& self, std::uint64_t replica, const HashView& ids, NowArg now_ns,
                           EnumArg<Tier> tier) {
  const Nanos now = self.at(now_ns);
  return value_of(
      self.released([&] { return self.router.blocks_removed(replica_of(replica), tier, names_of(ids), now); }));
}

void bind_members(RouterClass& c) {
  const auto no_labels = std::optional<py::typing::Dict<py::str, py::str>>{};
  c.def("add_replica", &add_replica, py::arg("name"), py::arg("now_ns") = std::nullopt, py::kw_only(),
        py::arg("dp_rank") = 0, py::arg("pool") = "", py::arg("ring_id") = "",
        py::arg_v("role", EnumArg<Role>{}, "'unified'"), py::arg("weight") = 1.0, py::arg("any_adapter") = true,
        py::arg("adapters") = std::vector<std::string>{}, py::arg("labels") = no_labels,
        py::arg("rates") = std::optional<Rates>{}, py::arg("capacity_tokens") = 0,
        py::arg_v("health", EnumArg<Health>{}, "'up'"), py::arg("health_reason") = "",
        py::arg_v("cache_kind", EnumArg<CacheKind>{}, "'paged'"), py::arg("slots") = std::optional<SlotSpec>{},
        py::arg("slow_start_ns") = 0, py::arg("slow_start_weight") = ReplicaSpec{}.slow_start_weight,
        "A new replica: (name, dp_rank) is its identity, pool the model it serves ('' serves every model without a "
        "pool).\n\n"
        "adapters: a list is the whole list. capacity_tokens: of its KV cache, 0 = unknown. ring_id: stable slot name, "
        "default\n"
        "the name. cache_kind: 'slots' for llama.cpp's server, with its slots. slow_start_ns: when it comes up its "
        "cost counts\n"
        "1 / slow_start_weight times, falling to once over so long. returns: its int, for every later call. "
        "errors: Error invalid_argument, already_exists, capacity.")
      .def("update_replica", &update_replica, py::arg("replica"), py::arg("now_ns") = std::nullopt, py::kw_only(),
           py::arg("ring_id") = std::nullopt, py::arg("role") = std::nullopt, py::arg("weight") = std::nullopt,
           py::arg("any_adapter") = std::nullopt, py::arg("adapters") = std::nullopt, py::arg("labels") = no_labels,
           py::arg("rates") = std::nullopt, py::arg("capacity_tokens") = std::nullopt,
           py::arg("cache_kind") = std::nullopt, py::arg("slots") = std::nullopt,
           py::arg("slow_start_ns") = std::nullopt, py::arg("slow_start_weight") = std::nullopt,
           "Changes what is given, in place. errors: Error stale, invalid_argument.")
      .def(
          "drain",
          [](PyRouter& self, std::uint64_t replica, std::int64_t until_ns, NowArg now_ns) {
            const Nanos now = self.at(now_ns);
            check(self.released([&] { return self.router.drain(replica_of(replica), Nanos{until_ns}, now); }));
          },
          py::arg("replica"), py::arg("until_ns") = 0, py::arg("now_ns") = std::nullopt,
          "It takes no new requests and finishes what it has until `until_ns` (0 = no end); then `advance` takes it "
          "for "
          "down. errors: Error stale.")
      .def(
          "requests_in_flight",
          [](const PyRouter& self, std::string_view pool) { return self.router.requests_in_flight(pool); },
          py::arg("pool") = "", "On all replicas of exactly that pool.")
      .def(
          "remove_replica",
          [](PyRouter& self, std::uint64_t replica, NowArg now_ns) {
            const Nanos now = self.at(now_ns);
            check(self.released([&] { return self.router.remove_replica(replica_of(replica), now); }));
          },
          py::arg("replica"), py::arg("now_ns") = std::nullopt,
          "It and what is believed of its cache go at once; its tickets stay valid until released. errors: Error "
          "stale.")
      .def(
          "set_health",
          [](PyRouter& self, std::uint64_t replica, EnumArg<Health> health, const std::string& reason, NowArg now_ns) {
            const Nanos now = self.at(now_ns);
            check(self.released([&] { return self.router.set_health(replica_of(replica), health, reason, now); }));
          },
          py::arg("replica"), py::arg("health"), py::arg("reason") = "", py::arg("now_ns") = std::nullopt,
          "down and draining take no new requests; what they hold is kept. errors: Error stale.")
      .def(
          "clear_cache",
          [](PyRouter& self, std::uint64_t replica, NowArg now_ns) {
            const Nanos now = self.at(now_ns);
            check(self.released([&] { return self.router.clear_cache(replica_of(replica), now); }));
          },
          py::arg("replica"), py::arg("now_ns") = std::nullopt,
          "Its engine restarted or dropped its cache. errors: Error stale.")
      .def(
          "signal",
          [](PyRouter& self, std::uint64_t replica, EnumArg<Signal> kind, double value, NowArg now_ns) {
            const Nanos now = self.at(now_ns);
            check(self.released([&] { return self.router.signal(replica_of(replica), kind, value, now); }));
          },
          py::arg("replica"), py::arg("kind"), py::arg("value"), py::arg("now_ns") = std::nullopt,
          "A reading of the engine's metrics. errors: Error stale, invalid_argument (negative, not finite).")
      .def(
          "prefix_counters",
          [](PyRouter& self, std::uint64_t replica, std::int64_t queries, std::int64_t hits, NowArg now_ns,
             bool in_blocks, bool shared) {
            const Nanos now = self.at(now_ns);
            const PrefixCounters read{queries, hits, in_blocks, shared};
            check(self.released([&] { return self.router.prefix_counters(replica_of(replica), read, now); }));
          },
          py::arg("replica"), py::arg("queries"), py::arg("hits"), py::arg("now_ns") = std::nullopt, py::kw_only(),
          py::arg("in_blocks") = false, py::arg("shared") = false,
          "A reading of the engine's prefix-cache counters since its start, for the statistics alone "
          "(engine_prefix).\n\n"
          "in_blocks: blocks are counted, not tokens. shared: of all ranks of its page together. EngineMetrics.apply "
          "and "
          "MetricsPoller\ndo it by themselves. errors: Error stale, invalid_argument.");
}

void bind_events(RouterClass& c) {
  c.def("blocks_stored", &blocks_stored, py::arg("replica"), py::arg("ids"), py::arg("parent") = std::nullopt,
        py::arg("now_ns") = std::nullopt, py::kw_only(), py::arg("token_ids") = std::nullopt,
        py::arg("blocks") = std::nullopt, py::arg_v("tier", EnumArg<Tier>{}, "'device'"), py::arg("adapter") = "",
        py::arg("cache_salt") = "", py::arg("tenant") = "",
        "An engine's event: these blocks are held now. The first one makes the replica a reported one.\n\n"
        "shape: ids uint64[n], the engine's names; parent: its name for the block before (None: block 0); token_ids\n"
        "uint32[n * block_size], or blocks uint64[n]. adapter, cache_salt, tenant: of the request they belong to.\n"
        "errors: Error stale, unsupported (role prefill), invalid_argument (sizes), not_found (parent), capacity.")
      .def("blocks_removed", &blocks_removed, py::arg("replica"), py::arg("ids"), py::arg("now_ns") = std::nullopt,
           py::kw_only(), py::arg_v("tier", EnumArg<Tier>{}, "'device'"),
           "An engine's event: these are gone. shape: ids uint64[n]; unknown ones are skipped. returns: how many were "
           "held.\n\n"
           "errors: Error stale, unsupported.")
      .def("blocks_also_on", &blocks_also_on, py::arg("replica"), py::arg("tier"), py::arg("ids"),
           py::arg("now_ns") = std::nullopt,
           "An engine's event: blocks that it named before are on `tier` (too). shape: ids uint64[n]; unknown ones are "
           "skipped.\n\n"
           "returns: how many are known. errors: Error stale, unsupported.")
      .def(
          "clear_shared_store",
          [](PyRouter& self, std::string_view pool) {
            check(self.released([&] { return self.router.clear_shared_store(pool); }));
          },
          py::arg("pool"),
          "The store that all replicas of that pool share (tier 'shared') is empty: it was wiped or replaced.\n\n"
          "errors: Error not_found.");
}

}  // namespace

namespace {

std::optional<trace::DecisionRecorder> recorder_of(const RouterOptions& options,
                                                   const std::optional<PyRouter::Recording>& recording) {
  if (!recording) return std::nullopt;
  return value_of(trace::DecisionRecorder::open(recording->path, options, recording->options));
}

RouterOptions with_log(RouterOptions options, LogQueue* lines) {
  if (lines != nullptr) options.log = {lines, &LogQueue::write};
  return options;
}

}  // namespace

PyRouter::PyRouter(RouterOptions options, py::object log_callback, py::object tokenizer_callback,
                   py::object clock_callback, const std::optional<Recording>& recording)
    : log(std::move(log_callback)),
      tokenizer(std::move(tokenizer_callback)),
      clock(std::move(clock_callback)),
      recorder(recorder_of(with_log(options, log.is_none() ? nullptr : &lines_), recording)),
      router(recorder ? Router(recorder->calls()) : Router(with_log(options, log.is_none() ? nullptr : &lines_))) {}

void PyRouter::deliver() {
  if (!lines_.waiting()) return;
  const py::object callback = log;
  for (const auto& [level, message] : lines_.take()) {
    if (callback.is_none()) return;
    try {
      unless_ending([&]() -> py::object { return callback(level, message); });
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("warmroute log callback");
    }
  }
}

void bind_membership(RouterClass& c) {
  bind_members(c);
  bind_events(c);
  c.def(
       "set_policy",
       [](PyRouter& self, const Policy& policy) {
         check(self.released([&] { return self.router.set_policy(policy); }));
       },
       py::arg("policy"), "For all calls that start afterwards; tickets in flight keep what they booked.")
      .def_property_readonly(
          "policy", [](const PyRouter& self) { return self.router.policy(); }, "The policy in force.")
      .def(
          "advance",
          [](PyRouter& self, NowArg now_ns) {
            const Nanos now = self.at(now_ns);
            self.released([&] { self.router.advance(now); });
          },
          py::arg("now_ns") = std::nullopt,
          "Bounded upkeep for idle times: leases, TTLs, queued placements, reclamation.")
      .def(
          "replica",
          [](const PyRouter& self, std::uint64_t replica) {
            return value_of(self.router.replica(replica_of(replica)));
          },
          py::arg("replica"), "What is known of one replica; a copy. errors: Error stale.")
      .def(
          "find_replica",
          [](const PyRouter& self, std::string_view name, std::uint32_t dp_rank) {
            return replica_number(value_of(self.router.find_replica(name, dp_rank)));
          },
          py::arg("name"), py::arg("dp_rank") = 0, "The int of a replica by its name. errors: Error not_found.")
      .def(
          "replicas",
          [](PyRouter& self) {
            const auto rows = self.released([&] { return self.router.replicas(); });
            py::dict out;
            for (const ReplicaRow& row : rows) out[py::int_(replica_number(row.id))] = py::cast(row.spec);
            return py::typing::Dict<py::int_, ReplicaSpec>(out);
          },
          "Every replica by its int; copies.");
}

namespace {

int traverse_router(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!py::detail::is_holder_constructed(self)) return 0;
  const auto& router = py::cast<PyRouter&>(py::handle(self));
  Py_VISIT(router.log.ptr());
  Py_VISIT(router.tokenizer.ptr());
  Py_VISIT(router.clock.ptr());
  return 0;
}
int clear_router(PyObject* self) {
  if (!py::detail::is_holder_constructed(self)) return 0;
  auto& router = py::cast<PyRouter&>(py::handle(self));
  router.log = router.tokenizer = router.clock = py::none();
  return 0;
}
// A callback that closes over its router is a cycle like any other.
void setup_router_gc(PyHeapTypeObject* heap) {
  heap->ht_type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  heap->ht_type.tp_traverse = &traverse_router;
  heap->ht_type.tp_clear = &clear_router;
}

constexpr const char* kRouterDoc =
    "Decides which replica serves a request, and books what that causes. Thread-safe.\n\n"
    "Flat calls (route_tokens, route_blocks, route_body) give (replica, ticket): ints; replica is negative when not "
    "routed,\n"
    "then -replica is the Verdict. now_ns: ns of a monotonic clock; left out, it is clock(), or time.monotonic_ns().\n"
    "Errors are for bad input and stale handles; what policy foresees (no replica) is a verdict.\n"
    "log: called as log(level, message) after the call that caused it, without any lock held. tokenizer: see "
    "BodyParser.\n"
    "record: the path of a decision log (warmroute.trace.DecisionLog), which is replaced; every call is in it, hashes "
    "and sessions\n"
    "under record_key (16 random bytes; None: drawn and gone). Calls then take turns, and exports have no caches.";

std::optional<PyRouter::Recording> recording_of(const std::optional<py::object>& path,
                                                const std::optional<py::bytes>& key, std::uint64_t max_bytes) {
  if (!path) return std::nullopt;
  PyRouter::Recording out;
  out.path = py::module_::import("os").attr("fspath")(*path).cast<std::string>();
  out.options.max_bytes = max_bytes;
  if (key) {
    const std::string_view bytes = *key;
    auto& to = out.options.key.emplace();
    if (bytes.size() != to.size()) throw py::value_error("record_key must be 16 random bytes: secrets.token_bytes(16)");
    std::copy(bytes.begin(), bytes.end(), to.begin());
  }
  return out;
}

}  // namespace

void bind_router(py::module_& m) {
  const RouterOptions d;
  RouterClass c(m, "Router", kRouterDoc, py::custom_type_setup(&setup_router_gc));
  c.def(py::init([](const std::optional<Policy>& policy, std::uint32_t max_replicas, std::uint32_t max_tickets,
                    std::size_t index_max_bytes, std::size_t session_entries, std::size_t shared_prefix_entries,
                    std::size_t placement_queue, std::size_t max_path_blocks, LogCallback log,
                    TokenizerCallback tokenizer, ClockCallback clock, const std::optional<py::object>& record,
                    const std::optional<py::bytes>& record_key, std::uint64_t record_max_bytes) {
          RouterOptions options;
          options.max_replicas = max_replicas;
          options.max_tickets = max_tickets;
          options.index_max_bytes = index_max_bytes;
          options.session_entries = session_entries;
          options.shared_prefix_entries = shared_prefix_entries;
          options.placement_queue = placement_queue;
          options.max_path_blocks = max_path_blocks;
          auto self = std::make_unique<PyRouter>(options, object_or_none(std::move(log)),
                                                 object_or_none(std::move(tokenizer)), object_or_none(std::move(clock)),
                                                 recording_of(record, record_key, record_max_bytes));
          if (policy) check(self->released([&] { return self->router.set_policy(*policy); }));
          return self;
        }),
        py::arg("policy") = std::optional<Policy>{}, py::kw_only(), py::arg("max_replicas") = d.max_replicas,
        py::arg("max_tickets") = d.max_tickets, py::arg("index_max_bytes") = d.index_max_bytes,
        py::arg("session_entries") = d.session_entries, py::arg("shared_prefix_entries") = d.shared_prefix_entries,
        py::arg("placement_queue") = d.placement_queue, py::arg("max_path_blocks") = d.max_path_blocks,
        py::arg("log") = std::nullopt, py::arg("tokenizer") = std::nullopt, py::arg("clock") = std::nullopt,
        py::arg("record") = std::optional<py::object>{}, py::arg("record_key") = std::optional<py::bytes>{},
        py::arg("record_max_bytes") = trace::DecisionLogOptions{}.max_bytes);
  bind_membership(c);
  bind_routing(c);
  bind_statistics(c);
  bind_caches(c);
  bind_recording(c);
  bind_peers(c);
}

}  // namespace warmroute::python
