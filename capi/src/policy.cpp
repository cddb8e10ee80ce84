// Every knob, as a struct and as JSON.
#include "policy.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "warmroute/route/policy_json.hpp"

namespace warmroute::capi {
namespace {

template <class Enum>
Enum narrowed(std::uint32_t value) noexcept {
  return static_cast<Enum>(std::min<std::uint32_t>(value, 0xFF));
}

}  // namespace

Policy policy_of(const wr_policy& p) noexcept {
  Policy out;
  out.algorithm = narrowed<Algorithm>(p.algorithm);
  out.beta = p.beta;
  out.gamma = p.gamma;
  out.delta = p.delta;
  out.hot = p.hot;
  out.session_bonus = Nanos{p.session_bonus_ns};
  out.host_transfer_per_token = Nanos{p.host_transfer_per_token_ns};
  out.disk_transfer_per_token = Nanos{p.disk_transfer_per_token_ns};
  out.ring_key = narrowed<RingKey>(p.ring_key);
  out.ring_key_tokens = p.ring_key_tokens;
  out.ring_points = p.ring_points;
  out.ring_seed = p.ring_seed;
  out.bound_factor = p.bound_factor;
  out.block_size = p.block_size;
  out.hash_seed = p.hash_seed;
  out.isolation = narrowed<Isolation>(p.isolation);
  out.capacity_tokens = p.capacity_tokens;
  out.residency_ttl = Nanos{p.residency_ttl_ns};
  out.lease = Nanos{p.lease_ns};
  out.session_ttl = Nanos{p.session_ttl_ns};
  out.signals_max_age = Nanos{p.signals_max_age_ns};
  out.stale_signals = narrowed<StaleSignals>(p.stale_signals);
  out.route_when_all_down = p.route_when_all_down != 0;
  out.seed = p.seed;
  out.version = p.version;
  out.shared_transfer_per_token = Nanos{p.shared_transfer_per_token_ns};
  out.learn_rates = p.learn_rates != 0;
  out.routers = std::max<std::uint32_t>(p.routers, 1);
  out.saturation_wait = Nanos{p.saturation_wait_ns};
  out.saturation_kv = p.saturation_kv;
  using Priority = std::numeric_limits<std::int32_t>;
  out.shed_priority =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(p.shed_priority, Priority::min(), Priority::max()));
  out.disaggregate = narrowed<Disaggregate>(p.disaggregate);
  out.unified_pairs = p.unified_pairs != 0;
  out.pair_min_tokens = p.pair_min_tokens;
  out.kv_transfer_per_token = Nanos{p.kv_transfer_per_token_ns};
  out.kv_transfer_latency = Nanos{p.kv_transfer_latency_ns};
  out.transfer_timeout = Nanos{p.transfer_timeout_ns};
  out.decode_keeps_cache = p.decode_keeps_cache != 0;
  out.interference = p.interference;
  out.ttft_limit = Nanos{p.ttft_limit_ns};
  out.itl_limit = Nanos{p.itl_limit_ns};
  out.tail = p.tail;
  out.reuse = Nanos{p.reuse_ns};
  return out;
}

wr_policy policy_of(const Policy& p) noexcept {
  wr_policy out{};
  out.struct_size = sizeof out;
  out.algorithm = static_cast<std::uint32_t>(p.algorithm);
  out.beta = p.beta;
  out.gamma = p.gamma;
  out.delta = p.delta;
  out.hot = p.hot;
  out.session_bonus_ns = p.session_bonus.value;
  out.host_transfer_per_token_ns = p.host_transfer_per_token.value;
  out.disk_transfer_per_token_ns = p.disk_transfer_per_token.value;
  out.ring_key = static_cast<std::uint32_t>(p.ring_key);
  out.ring_points = p.ring_points;
  out.ring_key_tokens = p.ring_key_tokens;
  out.ring_seed = p.ring_seed;
  out.bound_factor = p.bound_factor;
  out.block_size = p.block_size;
  out.isolation = static_cast<std::uint32_t>(p.isolation);
  out.hash_seed = p.hash_seed;
  out.capacity_tokens = p.capacity_tokens;
  out.residency_ttl_ns = p.residency_ttl.value;
  out.lease_ns = p.lease.value;
  out.session_ttl_ns = p.session_ttl.value;
  out.signals_max_age_ns = p.signals_max_age.value;
  out.stale_signals = static_cast<std::uint32_t>(p.stale_signals);
  out.route_when_all_down = p.route_when_all_down;
  out.seed = p.seed;
  out.version = p.version;
  out.shared_transfer_per_token_ns = p.shared_transfer_per_token.value;
  out.learn_rates = p.learn_rates;
  out.routers = p.routers;
  out.saturation_wait_ns = p.saturation_wait.value;
  out.saturation_kv = p.saturation_kv;
  out.shed_priority = p.shed_priority;
  out.disaggregate = static_cast<std::uint32_t>(p.disaggregate);
  out.unified_pairs = p.unified_pairs;
  out.pair_min_tokens = p.pair_min_tokens;
  out.kv_transfer_per_token_ns = p.kv_transfer_per_token.value;
  out.kv_transfer_latency_ns = p.kv_transfer_latency.value;
  out.transfer_timeout_ns = p.transfer_timeout.value;
  out.decode_keeps_cache = p.decode_keeps_cache;
  out.interference = p.interference;
  out.ttft_limit_ns = p.ttft_limit.value;
  out.itl_limit_ns = p.itl_limit.value;
  out.tail = p.tail;
  out.reuse_ns = p.reuse.value;
  return out;
}

const wr_policy& policy_defaults() noexcept {
  static const wr_policy defaults = policy_of(Policy{});
  return defaults;
}

}  // namespace warmroute::capi

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

wr_status wr_policy_init(wr_policy* policy, wr_error* err) {
  if (!writable(policy)) return null_argument(err, "policy is NULL or its struct_size is not set to sizeof(wr_policy)");
  write_all(policy, policy_defaults());
  return WR_STATUS_OK;
}

wr_status wr_policy_validate(const wr_policy* policy, wr_error* err) {
  const Input<wr_policy> in(policy, policy_defaults());
  if (!in) return in.refuse(err, "policy is NULL");
  return guard(err, [&] { return done(validate(policy_of(*in)), err); });
}

wr_status wr_policy_from_json(wr_str json, wr_policy* policy, wr_error* err) {
  if (!readable(json)) return null_argument(err, "json has a size and no data");
  const Input<wr_policy> in(policy, policy_defaults());
  if (!in) return in.refuse(err, "policy is NULL");
  return guard(err, [&] {
    const auto read = policy_from_json(view(json), policy_of(*in));
    if (!read) return fail(err, read.error());
    write(policy, policy_of(*read));
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_policy_to_json(const wr_policy* policy, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (needed == nullptr) return null_argument(err, "needed is NULL");
  const Input<wr_policy> in(policy, policy_defaults());
  if (!in) return in.refuse(err, "policy is NULL");
  return guard(err, [&] {
    const Policy p = policy_of(*in);
    if (const Status valid = validate(p); !valid) return fail(err, valid.error());
    return give(policy_to_json(p), 1, buf, cap, needed, err);
  });
}

}  // extern "C"
