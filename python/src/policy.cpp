// Policy: every knob of the router, as keywords and as JSON. Immutable, as in C++: `replace` gives a changed copy.
#include <functional>
#include <string>
#include <vector>

#include "common.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/policy_json.hpp"

namespace warmroute::python {
namespace {

// One knob: its Python name, how it is read and written. Times carry their unit in the name.
struct Knob {
  const char* name;
  py::object (*get)(const Policy&);
  void (*set)(Policy&, py::handle);
};

template <auto Field>
py::object get_plain(const Policy& p) {
  return py::cast(p.*Field);
}
template <auto Field>
void set_plain(Policy& p, py::handle v) {
  using T = std::remove_reference_t<decltype(p.*Field)>;
  if constexpr (std::is_enum_v<T>) p.*Field = enum_of<T>(v);
  else p.*Field = v.cast<T>();
}
template <auto Field>
py::object get_ns(const Policy& p) {
  return py::int_((p.*Field).value);
}
template <auto Field>
void set_ns(Policy& p, py::handle v) {
  p.*Field = Nanos{v.cast<std::int64_t>()};
}
template <auto Field>
constexpr Knob plain(const char* name) {
  return {name, &get_plain<Field>, &set_plain<Field>};
}
template <auto Field>
constexpr Knob ns(const char* name) {
  return {name, &get_ns<Field>, &set_ns<Field>};
}

constexpr std::array kKnobs{
    plain<&Policy::algorithm>("algorithm"),
    plain<&Policy::beta>("beta"),
    plain<&Policy::gamma>("gamma"),
    plain<&Policy::delta>("delta"),
    plain<&Policy::hot>("hot"),
    plain<&Policy::tail>("tail"),
    ns<&Policy::reuse>("reuse_ns"),
    ns<&Policy::session_bonus>("session_bonus_ns"),
    ns<&Policy::host_transfer_per_token>("host_transfer_per_token_ns"),
    ns<&Policy::disk_transfer_per_token>("disk_transfer_per_token_ns"),
    ns<&Policy::shared_transfer_per_token>("shared_transfer_per_token_ns"),
    plain<&Policy::ring_key>("ring_key"),
    plain<&Policy::ring_key_tokens>("ring_key_tokens"),
    plain<&Policy::ring_points>("ring_points"),
    plain<&Policy::ring_seed>("ring_seed"),
    plain<&Policy::routers>("routers"),
    plain<&Policy::bound_factor>("bound_factor"),
    plain<&Policy::block_size>("block_size"),
    plain<&Policy::hash_seed>("hash_seed"),
    plain<&Policy::isolation>("isolation"),
    plain<&Policy::capacity_tokens>("capacity_tokens"),
    ns<&Policy::residency_ttl>("residency_ttl_ns"),
    ns<&Policy::lease>("lease_ns"),
    ns<&Policy::session_ttl>("session_ttl_ns"),
    ns<&Policy::signals_max_age>("signals_max_age_ns"),
    plain<&Policy::stale_signals>("stale_signals"),
    plain<&Policy::route_when_all_down>("route_when_all_down"),
    plain<&Policy::seed>("seed"),
    plain<&Policy::version>("version"),
    plain<&Policy::learn_rates>("learn_rates"),
    ns<&Policy::saturation_wait>("saturation_wait_ns"),
    plain<&Policy::saturation_kv>("saturation_kv"),
    plain<&Policy::shed_priority>("shed_priority"),
    plain<&Policy::disaggregate>("disaggregate"),
    plain<&Policy::unified_pairs>("unified_pairs"),
    plain<&Policy::pair_min_tokens>("pair_min_tokens"),
    ns<&Policy::kv_transfer_per_token>("kv_transfer_per_token_ns"),
    ns<&Policy::kv_transfer_latency>("kv_transfer_latency_ns"),
    ns<&Policy::transfer_timeout>("transfer_timeout_ns"),
    plain<&Policy::decode_keeps_cache>("decode_keeps_cache"),
    plain<&Policy::interference>("interference"),
    ns<&Policy::ttft_limit>("ttft_limit_ns"),
    ns<&Policy::itl_limit>("itl_limit_ns"),
};

Policy changed(Policy policy, const py::kwargs& knobs) {
  for (const auto& [key, value] : knobs) {
    const auto name = key.cast<std::string_view>();
    const Knob* knob = nullptr;
    for (const Knob& k : kKnobs) {
      if (name == k.name) knob = &k;
    }
    if (knob == nullptr) throw py::type_error("Policy has no knob '" + std::string(name) + "'");
    try {
      knob->set(policy, value);
    } catch (const py::cast_error&) {
      throw py::type_error("Policy." + std::string(name) + " does not take " + py::repr(value).cast<std::string>());
    }
  }
  check(validate(policy));
  return policy;
}

py::dict as_dict(const Policy& policy) {
  py::dict out;
  for (const Knob& k : kKnobs) out[k.name] = k.get(policy);
  return out;
}

std::string policy_repr(const Policy& policy) {
  const Policy plain_policy;
  std::string out = "Policy(";
  for (const Knob& k : kKnobs) {
    const py::object value = k.get(policy);
    if (value.equal(k.get(plain_policy))) continue;
    if (out.back() != '(') out += ", ";
    const bool named = py::hasattr(value, "name");
    out.append(k.name).append("=").append(py::repr(named ? py::object(value.attr("name")) : value).cast<std::string>());
  }
  return out + ")";
}

using A = EnumArg<Algorithm>;
using K = EnumArg<RingKey>;
using I = EnumArg<Isolation>;
using S = EnumArg<StaleSignals>;
using D = EnumArg<Disaggregate>;

Policy make_policy(A algorithm, double beta, double gamma, double delta, double hot, double tail, std::int64_t reuse_ns,
                   std::int64_t session_bonus_ns, std::int64_t host_transfer_per_token_ns,
                   std::int64_t disk_transfer_per_token_ns, std::int64_t shared_transfer_per_token_ns, K ring_key,
                   std::int64_t ring_key_tokens, std::uint32_t ring_points, std::uint64_t ring_seed,
                   std::uint32_t routers, double bound_factor, std::uint32_t block_size, std::uint64_t hash_seed,
                   I isolation, std::int64_t capacity_tokens, std::int64_t residency_ttl_ns, std::int64_t lease_ns,
                   std::int64_t session_ttl_ns, std::int64_t signals_max_age_ns, S stale_signals,
                   bool route_when_all_down, std::uint64_t seed, std::uint64_t version, bool learn_rates,
                   std::int64_t saturation_wait_ns, double saturation_kv, std::int32_t shed_priority, D disaggregate,
                   bool unified_pairs, std::int64_t pair_min_tokens, std::int64_t kv_transfer_per_token_ns,
                   std::int64_t kv_transfer_latency_ns, std::int64_t transfer_timeout_ns, bool decode_keeps_cache,
                   double interference, std::int64_t ttft_limit_ns, std::int64_t itl_limit_ns) {
  const Policy policy{.algorithm = algorithm,
                      .beta = beta,
                      .gamma = gamma,
                      .delta = delta,
                      .hot = hot,
                      .tail = tail,
                      .reuse = Nanos{reuse_ns},
                      .session_bonus = Nanos{session_bonus_ns},
                      .host_transfer_per_token = Nanos{host_transfer_per_token_ns},
                      .disk_transfer_per_token = Nanos{disk_transfer_per_token_ns},
                      .shared_transfer_per_token = Nanos{shared_transfer_per_token_ns},
                      .ring_key = ring_key,
                      .ring_key_tokens = ring_key_tokens,
                      .ring_points = ring_points,
                      .ring_seed = ring_seed,
                      .routers = routers,
                      .bound_factor = bound_factor,
                      .block_size = block_size,
                      .hash_seed = hash_seed,
                      .isolation = isolation,
                      .capacity_tokens = capacity_tokens,
                      .residency_ttl = Nanos{residency_ttl_ns},
                      .lease = Nanos{lease_ns},
                      .session_ttl = Nanos{session_ttl_ns},
                      .signals_max_age = Nanos{signals_max_age_ns},
                      .stale_signals = stale_signals,
                      .route_when_all_down = route_when_all_down,
                      .saturation_wait = Nanos{saturation_wait_ns},
                      .saturation_kv = saturation_kv,
                      .shed_priority = shed_priority,
                      .seed = seed,
                      .version = version,
                      .learn_rates = learn_rates,
                      .disaggregate = disaggregate,
                      .unified_pairs = unified_pairs,
                      .pair_min_tokens = pair_min_tokens,
                      .kv_transfer_per_token = Nanos{kv_transfer_per_token_ns},
                      .kv_transfer_latency = Nanos{kv_transfer_latency_ns},
                      .transfer_timeout = Nanos{transfer_timeout_ns},
                      .decode_keeps_cache = decode_keeps_cache,
                      .interference = interference,
                      .ttft_limit = Nanos{ttft_limit_ns},
                      .itl_limit = Nanos{itl_limit_ns}};
  check(validate(policy));
  return policy;
}

constexpr const char* kPolicyDoc =
    "Every knob of a router: an immutable, validated value. Keywords, `replace`, or JSON.\n\n"
    "units: *_ns nanoseconds, *_tokens tokens. Enums by member or by name. Meanings: see each property.\n"
    "errors: Error invalid_argument, every fault in one message.";

void bind_properties(py::class_<Policy>& c) {
  const Policy d;
  const auto enum_default = [](std::string_view name) { return "'" + std::string(name) + "'"; };
  c.def(py::init(&make_policy), py::kw_only(), py::arg_v("algorithm", A{d.algorithm}, enum_default("cost").c_str()),
        py::arg("beta") = d.beta, py::arg("gamma") = d.gamma, py::arg("delta") = d.delta, py::arg("hot") = d.hot,
        py::arg("tail") = d.tail, py::arg("reuse_ns") = d.reuse.value,
        py::arg("session_bonus_ns") = d.session_bonus.value,
        py::arg("host_transfer_per_token_ns") = d.host_transfer_per_token.value,
        py::arg("disk_transfer_per_token_ns") = d.disk_transfer_per_token.value,
        py::arg("shared_transfer_per_token_ns") = d.shared_transfer_per_token.value,
        py::arg_v("ring_key", K{d.ring_key}, "'prefix'"), py::arg("ring_key_tokens") = d.ring_key_tokens,
        py::arg("ring_points") = d.ring_points, py::arg("ring_seed") = d.ring_seed, py::arg("routers") = d.routers,
        py::arg("bound_factor") = d.bound_factor, py::arg("block_size") = d.block_size,
        py::arg("hash_seed") = d.hash_seed, py::arg_v("isolation", I{d.isolation}, "'salt'"),
        py::arg("capacity_tokens") = d.capacity_tokens, py::arg("residency_ttl_ns") = d.residency_ttl.value,
        py::arg("lease_ns") = d.lease.value, py::arg("session_ttl_ns") = d.session_ttl.value,
        py::arg("signals_max_age_ns") = d.signals_max_age.value,
        py::arg_v("stale_signals", S{d.stale_signals}, "'ignore'"),
        py::arg("route_when_all_down") = d.route_when_all_down, py::arg("seed") = d.seed,
        py::arg("version") = d.version, py::arg("learn_rates") = d.learn_rates,
        py::arg("saturation_wait_ns") = d.saturation_wait.value, py::arg("saturation_kv") = d.saturation_kv,
        py::arg("shed_priority") = d.shed_priority, py::arg_v("disaggregate", D{d.disaggregate}, "'never'"),
        py::arg("unified_pairs") = d.unified_pairs, py::arg("pair_min_tokens") = d.pair_min_tokens,
        py::arg("kv_transfer_per_token_ns") = d.kv_transfer_per_token.value,
        py::arg("kv_transfer_latency_ns") = d.kv_transfer_latency.value,
        py::arg("transfer_timeout_ns") = d.transfer_timeout.value, py::arg("decode_keeps_cache") = d.decode_keeps_cache,
        py::arg("interference") = d.interference, py::arg("ttft_limit_ns") = d.ttft_limit.value,
        py::arg("itl_limit_ns") = d.itl_limit.value);
  c.def_readonly("algorithm", &Policy::algorithm, "How a replica is picked.")
      .def_readonly("beta", &Policy::beta, "What a miss costs those who come later, as a multiple of its prefill time.")
      .def_readonly("gamma", &Policy::gamma, "Share of a prefill's time by which it stalls each request running there.")
      .def_readonly("delta", &Policy::delta, "Weight of this request's own decode time.")
      .def_readonly("hot", &Policy::hot, "Strength of the hot-prefix rebate; 0 = off.")
      .def_readonly(
          "tail", &Policy::tail,
          "How much more the wait counts for a prompt as long as the mean, in proportion for others; 0 = equally.")
      .def_property_readonly(
          "reuse_ns", [](const Policy& p) { return p.reuse.value; },
          "Within which a prefix is asked for again: caches that are renewed as quickly lose by what is new; 0 = off.")
      .def_property_readonly(
          "session_bonus_ns", [](const Policy& p) { return p.session_bonus.value; },
          "What the session's last replica is worth.")
      .def_property_readonly(
          "host_transfer_per_token_ns", [](const Policy& p) { return p.host_transfer_per_token.value; },
          "Loading one token's KV from host memory.")
      .def_property_readonly(
          "disk_transfer_per_token_ns", [](const Policy& p) { return p.disk_transfer_per_token.value; }, "From disk.")
      .def_property_readonly(
          "shared_transfer_per_token_ns", [](const Policy& p) { return p.shared_transfer_per_token.value; },
          "From a store that all replicas share.")
      .def_readonly("ring_key", &Policy::ring_key, "What the ring's key is made of.")
      .def_readonly("ring_key_tokens", &Policy::ring_key_tokens, "Depth of the prefix key.")
      .def_readonly("ring_points", &Policy::ring_points, "Points per unit of weight.")
      .def_readonly("ring_seed", &Policy::ring_seed, "Of the point positions.")
      .def_readonly("routers", &Policy::routers, "Routers that send to the same replicas and tell one another nothing.")
      .def_readonly("bound_factor", &Policy::bound_factor,
                    "No replica beyond this many times its fair share of tokens in flight.")
      .def_readonly("block_size", &Policy::block_size, "Tokens per block, 1..512.")
      .def_readonly("hash_seed", &Policy::hash_seed, "Dynamo's; a secret one where prompts come from strangers.")
      .def_readonly("isolation", &Policy::isolation, "What keeps tenants apart.")
      .def_readonly("capacity_tokens", &Policy::capacity_tokens, "Of a replica's KV cache while nothing else is known.")
      .def_property_readonly(
          "residency_ttl_ns", [](const Policy& p) { return p.residency_ttl.value; },
          "Believed blocks expire after so long; 0 = never.")
      .def_property_readonly(
          "lease_ns", [](const Policy& p) { return p.lease.value; },
          "A ticket that is never finished releases its load after so long.")
      .def_property_readonly(
          "session_ttl_ns", [](const Policy& p) { return p.session_ttl.value; }, "How long a session is remembered.")
      .def_property_readonly(
          "signals_max_age_ns", [](const Policy& p) { return p.signals_max_age.value; },
          "When an engine's signals are stale.")
      .def_readonly("stale_signals", &Policy::stale_signals, "What stale signals mean.")
      .def_readonly("route_when_all_down", &Policy::route_when_all_down, "Try a replica all the same when none is up.")
      .def_readonly("seed", &Policy::seed, "Breaks exact ties; equal seeds and calls give equal decisions.")
      .def_readonly("version", &Policy::version, "The operator's number, shown in statistics.")
      .def_readonly("learn_rates", &Policy::learn_rates,
                    "Replicas' rates follow observed times, from the declared ones on.")
      .def_property_readonly(
          "saturation_wait_ns", [](const Policy& p) { return p.saturation_wait.value; },
          "A replica that would make a request wait longer for its first token is saturated; 0 = never.")
      .def_readonly("saturation_kv", &Policy::saturation_kv,
                    "So is one whose engine says that more of its KV cache is in use; 0 = not looked at.")
      .def_readonly("shed_priority", &Policy::shed_priority,
                    "Where all are saturated, requests of at most this priority are refused.")
      .def_readonly("disaggregate", &Policy::disaggregate,
                    "Whether prefill and decode of one request may run on different replicas.")
      .def_readonly("unified_pairs", &Policy::unified_pairs, "Unified replicas take either part of a pair, too.")
      .def_readonly("pair_min_tokens", &Policy::pair_min_tokens, "Decided: no pair while fewer tokens are uncached.")
      .def_property_readonly(
          "kv_transfer_per_token_ns", [](const Policy& p) { return p.kv_transfer_per_token.value; },
          "Bytes of KV per token / bandwidth of the link.")
      .def_property_readonly(
          "kv_transfer_latency_ns", [](const Policy& p) { return p.kv_transfer_latency.value; },
          "Of one transfer, whatever its size.")
      .def_property_readonly(
          "transfer_timeout_ns", [](const Policy& p) { return p.transfer_timeout.value; },
          "A prefill replica whose KV is not fetched after so long is free of it.")
      .def_readonly("decode_keeps_cache", &Policy::decode_keeps_cache,
                    "What was transferred is in the decode replica's prefix cache afterwards.")
      .def_readonly(
          "interference", &Policy::interference,
          "Share of a prefill's time by which it stalls each request running there, where pairs can be formed.")
      .def_property_readonly(
          "ttft_limit_ns", [](const Policy& p) { return p.ttft_limit.value; }, "Objective; 0 = none.")
      .def_property_readonly(
          "itl_limit_ns", [](const Policy& p) { return p.itl_limit.value; }, "Objective; 0 = none.");
}

}  // namespace

void bind_policy(py::module_& m) {
  py::class_<Policy> c(m, "Policy", kPolicyDoc);
  bind_properties(c);
  c.def(
       "replace", [](const Policy& self, const py::kwargs& knobs) { return changed(self, knobs); },
       "A copy with the knobs given as keywords changed. errors: as the constructor.")
      .def(
          "to_dict", [](const Policy& self) { return py::typing::Dict<py::str, py::object>(as_dict(self)); },
          "Every knob by its keyword.")
      .def("to_json", &policy_to_json,
           "One flat JSON object, times in milliseconds; from_json gives the same policy back.")
      .def_static(
          "from_json", [](std::string_view json, const Policy& base) { return value_of(policy_from_json(json, base)); },
          py::arg("json"), py::arg_v("base", Policy{}, "Policy()"),
          "Members that are absent keep the value they have in base. Strict: unknown members are refused.\n\n"
          "errors: Error invalid_json (with offset), not_an_object, too_large, invalid_argument (every fault named).")
      .def(
          "__eq__", [](const Policy& a, const Policy& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const Policy& p) { return py::hash(py::str(policy_to_json(p))); })
      .def("__repr__", &policy_repr)
      .def(py::pickle([](const Policy& p) { return py::make_tuple(policy_to_json(p)); },
                      [](const py::tuple& t) { return value_of(policy_from_json(t[0].cast<std::string>())); }));
}

}  // namespace warmroute::python
