// A router's making, its members, their health and signals, and what their engines say of their caches.
#include <memory>
#include <string>

#include "policy.hpp"
#include "router.hpp"
#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/route/cache_export.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

namespace {

const wr_replica_spec kSpecDefaults = WR_REPLICA_SPEC_INIT;
constexpr std::string_view kNoRouter = "router is NULL";

bool strings_readable(const wr_replica_spec& s) noexcept {
  if (!readable(s.name) || !readable(s.pool) || !readable(s.ring_id) || !readable(s.health_reason) ||
      !readable(s.adapters, s.adapter_count) || !readable(s.labels, s.label_count)) {
    return false;
  }
  for (std::size_t i = 0; i < s.adapter_count; ++i) {
    if (!readable(s.adapters[i])) return false;
  }
  for (std::size_t i = 0; i < s.label_count; ++i) {
    if (!readable(s.labels[i].key) || !readable(s.labels[i].value)) return false;
  }
  return true;
}

ReplicaSpec spec_of(const wr_replica_spec& s) {
  ReplicaSpec out;
  out.name = view(s.name);
  out.dp_rank = s.dp_rank;
  out.pool = view(s.pool);
  out.ring_id = view(s.ring_id);
  out.role = static_cast<Role>(s.role);
  out.health = static_cast<Health>(s.health);
  out.health_reason = view(s.health_reason);
  out.weight = s.weight;
  out.any_adapter = s.any_adapter != 0;
  for (std::size_t i = 0; i < s.adapter_count; ++i) out.adapters.emplace_back(view(s.adapters[i]));
  for (std::size_t i = 0; i < s.label_count; ++i) {
    out.labels.emplace_back(view(s.labels[i].key), view(s.labels[i].value));
  }
  out.rates = {s.floor_ns, s.token_ps, s.pair_ps, s.context_ps, s.overhead_ns};
  out.capacity_tokens = s.capacity_tokens;
  out.cache_kind = static_cast<CacheKind>(s.cache_kind);
  out.slots = {s.slots, s.slots_unified != 0, s.slot_ram_tokens};
  out.slow_start = milliseconds(s.slow_start_ms);
  if (s.slow_start_permille != 0) out.slow_start_weight = s.slow_start_permille / 1'000.0;
  return out;
}

// A size that was never set, or that of another unit, must not become gigabytes at once, nor wrap when it is rounded up.
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 28;
constexpr std::string_view kOptionRange =
    "max_replicas must lie in 1..16384, max_tickets be at least 1, and session_entries, shared_prefix_entries and "
    "placement_queue at most 2^28";
bool sizes_fit(const wr_router_options& o) noexcept {
  static_assert(kMaxRingMembers == 16'384);
  return o.max_replicas >= 1 && o.max_replicas <= kMaxRingMembers && o.max_tickets >= 1 &&
         o.session_entries <= kMostEntries && o.shared_prefix_entries <= kMostEntries &&
         o.placement_queue <= kMostEntries;
}

// returns: OK, or the refusal of a spec that cannot even be read.
wr_status check_spec(const Input<wr_replica_spec>& in, wr_error* err) noexcept {
  if (!in) return in.refuse(err, "spec is NULL");
  if (!strings_readable(*in)) return null_argument(err, "a string or list of the spec has a size and no data");
  if (in->role > WR_ROLE_DECODE) return fail(err, Code::out_of_range, "role is not one of WR_ROLE_...");
  if (in->health > WR_HEALTH_DOWN) return fail(err, Code::out_of_range, "health is not one of WR_HEALTH_...");
  if (in->cache_kind > WR_CACHE_SLOTS) return fail(err, Code::out_of_range, "cache_kind is not one of WR_CACHE_...");
  return WR_STATUS_OK;
}

}  // namespace

wr_status warmroute::capi::read_router_options(const wr_router_options* given, RouterMaking& out,
                                               wr_error* err) noexcept {
  const wr_router_options defaults = WR_ROUTER_OPTIONS_INIT;
  const Input<wr_router_options> in(given != nullptr ? given : &defaults, defaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  if (!sizes_fit(*in)) return fail(err, Code::invalid_argument, kOptionRange);
  RouterOptions& o = out.options;
  o.max_replicas = in->max_replicas;
  o.max_tickets = in->max_tickets;
  o.index_max_bytes = in->index_max_bytes;
  o.session_entries = in->session_entries;
  o.shared_prefix_entries = in->shared_prefix_entries;
  o.placement_queue = in->placement_queue;
  o.max_path_blocks = in->max_path_blocks;
  out.log = in->log;
  out.log_user = in->log_user;
  return WR_STATUS_OK;
}

extern "C" {

wr_status wr_router_new(const wr_router_options* options, wr_router** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  RouterMaking making;
  if (const wr_status bad = read_router_options(options, making, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    *out = std::make_unique<wr_router>(making.options, making.log, making.log_user).release();
    return WR_STATUS_OK;
  });
}

void wr_router_free(wr_router* router) { delete router; }

wr_status wr_router_set_policy(wr_router* router, const wr_policy* policy, wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  const Input<wr_policy> in(policy, policy_defaults());
  if (!in) return in.refuse(err, "policy is NULL");
  return guard(err, [&] { return done(router->router.set_policy(policy_of(*in)), err); });
}

wr_status wr_router_get_policy(const wr_router* router, wr_policy* out, wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    write_all(out, policy_of(router->router.policy()));
    return WR_STATUS_OK;
  });
}

wr_status wr_router_add_replica(wr_router* router, const wr_replica_spec* spec, int64_t now_ns, wr_replica_id* out,
                                wr_error* err) {
  if (router == nullptr || out == nullptr) return null_argument(err, "router or out is NULL");
  const Input<wr_replica_spec> in(spec, kSpecDefaults);
  if (const wr_status bad = check_spec(in, err); bad != WR_STATUS_OK) return bad;
  return guard(err, [&] {
    const auto added = router->router.add_replica(spec_of(*in), Nanos{now_ns});
    if (!added) return fail(err, added.error());
    *out = id_of(*added);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_remove_replica(wr_router* router, wr_replica_id replica, int64_t now_ns, wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  return guard(err, [&] { return done(router->router.remove_replica(id_of(replica), Nanos{now_ns}), err); });
}

wr_status wr_router_update_replica(wr_router* router, wr_replica_id replica, const wr_replica_spec* spec,
                                   int64_t now_ns, wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  const Input<wr_replica_spec> in(spec, kSpecDefaults);
  if (const wr_status bad = check_spec(in, err); bad != WR_STATUS_OK) return bad;
  return guard(err,
               [&] { return done(router->router.update_replica(id_of(replica), spec_of(*in), Nanos{now_ns}), err); });
}

wr_status wr_router_set_health(wr_router* router, wr_replica_id replica, uint32_t health, wr_str reason, int64_t now_ns,
                               wr_error* err) {
  if (router == nullptr || !readable(reason)) return null_argument(err, "router is NULL, or reason has no data");
  if (health > WR_HEALTH_DOWN) return fail(err, Code::out_of_range, "health is not one of WR_HEALTH_...");
  return guard(err, [&] {
    return done(router->router.set_health(id_of(replica), static_cast<Health>(health), view(reason), Nanos{now_ns}),
                err);
  });
}

wr_status wr_router_drain(wr_router* router, wr_replica_id replica, int64_t until_ns, int64_t now_ns, wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  return guard(err, [&] { return done(router->router.drain(id_of(replica), Nanos{until_ns}, Nanos{now_ns}), err); });
}

int64_t wr_router_requests_in_flight(const wr_router* router, wr_str pool) {
  return router == nullptr || !readable(pool) ? 0 : router->router.requests_in_flight(view(pool));
}

wr_status wr_router_replicas(const wr_router* router, wr_replica_id* out, size_t cap, size_t* count, wr_error* err) {
  if (router == nullptr || count == nullptr) return null_argument(err, "router or count is NULL");
  return guard(err, [&] {
    const auto rows = router->router.replicas();
    *count = rows.size();
    if (out == nullptr) return static_cast<wr_status>(WR_STATUS_OK);
    if (cap < rows.size())
      return fail(err, Code::capacity, "there are more replicas than out has room for; see *count");
    for (std::size_t i = 0; i < rows.size(); ++i) out[i] = id_of(rows[i].id);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_find_replica(const wr_router* router, wr_str name, uint32_t dp_rank, wr_replica_id* out,
                                 wr_error* err) {
  if (router == nullptr || out == nullptr || !readable(name)) {
    return null_argument(err, "router, name or out is NULL");
  }
  return guard(err, [&] {
    const auto found = router->router.find_replica(view(name), dp_rank);
    if (!found) return fail(err, found.error());
    *out = id_of(*found);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_replica_name(const wr_router* router, wr_replica_id replica, char* buf, size_t cap, size_t* needed,
                                 wr_error* err) {
  if (router == nullptr || needed == nullptr) return null_argument(err, "router or needed is NULL");
  return guard(err, [&] {
    const auto spec = router->router.replica(id_of(replica));
    return spec ? give(spec->name, 1, buf, cap, needed, err) : fail(err, spec.error());
  });
}

wr_status wr_router_replica_label(const wr_router* router, wr_replica_id replica, wr_str key, char* buf, size_t cap,
                                  size_t* needed, wr_error* err) {
  if (router == nullptr || needed == nullptr || !readable(key)) {
    return null_argument(err, "router, key or needed is NULL");
  }
  return guard(err, [&] {
    const auto spec = router->router.replica(id_of(replica));
    if (!spec) return fail(err, spec.error());
    for (const auto& [name, value] : spec->labels) {
      if (name == view(key)) return give(value, 1, buf, cap, needed, err);
    }
    return fail(err, Code::not_found, "that replica has no such label");
  });
}

wr_status wr_router_signal(wr_router* router, wr_replica_id replica, uint32_t signal, double value, int64_t now_ns,
                           wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  if (signal >= kSignalCount) return fail(err, Code::out_of_range, "signal is not one of WR_SIGNAL_...");
  return guard(err, [&] {
    return done(router->router.signal(id_of(replica), static_cast<Signal>(signal), value, Nanos{now_ns}), err);
  });
}

wr_status wr_router_prefix_counters(wr_router* router, wr_replica_id replica, const wr_prefix_counters* counters,
                                    int64_t now_ns, wr_error* err) {
  static const wr_prefix_counters defaults = WR_PREFIX_COUNTERS_INIT;
  if (router == nullptr) return null_argument(err, "router is NULL");
  const Input<wr_prefix_counters> in(counters, defaults);
  if (!in) return in.refuse(err, "counters is NULL");
  return guard(err, [&] {
    const PrefixCounters read{in->queries, in->hits, in->in_blocks != 0, in->shared != 0};
    return done(router->router.prefix_counters(id_of(replica), read, Nanos{now_ns}), err);
  });
}

wr_status wr_router_blocks_stored(wr_router* router, wr_replica_id replica, const wr_stored_blocks* stored,
                                  int64_t now_ns, wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  const wr_stored_blocks defaults = WR_STORED_BLOCKS_INIT;
  const Input<wr_stored_blocks> in(stored, defaults);
  if (!in) return in.refuse(err, "stored is NULL");
  if (!readable(in->ids, in->count) || !readable(in->token_ids, in->token_count) || !readable(in->adapter) ||
      !readable(in->cache_salt) || !readable(in->tenant)) {
    return null_argument(err, "ids, token_ids or a string has a size and no data");
  }
  if (in->tier >= kAllTierCount) return fail(err, Code::out_of_range, "tier is not one of WR_TIER_...");
  return guard(err, [&] {
    StoredBlocks s;
    s.tier = static_cast<Tier>(in->tier);
    if (in->parent != nullptr) s.parent = EngineHash{*in->parent};
    s.ids = {reinterpret_cast<const EngineHash*>(in->ids), in->count};
    if (in->blocks != nullptr) s.blocks = block_hashes(in->blocks, in->count);
    s.token_ids = {in->token_ids, in->token_count};
    s.adapter = view(in->adapter);
    s.cache_salt = view(in->cache_salt);
    s.tenant = view(in->tenant);
    return done(router->router.blocks_stored(id_of(replica), s, Nanos{now_ns}), err);
  });
}

wr_status wr_router_clear_shared_store(wr_router* router, wr_str pool, wr_error* err) {
  if (router == nullptr || !readable(pool)) return null_argument(err, "router is NULL, or pool has no data");
  return guard(err, [&] { return done(router->router.clear_shared_store(view(pool)), err); });
}

wr_status wr_router_blocks_removed(wr_router* router, wr_replica_id replica, uint32_t tier, const uint64_t* ids,
                                   size_t count, int64_t now_ns, size_t* removed, wr_error* err) {
  if (router == nullptr || !readable(ids, count)) return null_argument(err, "router or ids is NULL");
  if (tier >= kAllTierCount) return fail(err, Code::out_of_range, "tier is not one of WR_TIER_...");
  return guard(err, [&] {
    const auto gone = router->router.blocks_removed(id_of(replica), static_cast<Tier>(tier),
                                                    {reinterpret_cast<const EngineHash*>(ids), count}, Nanos{now_ns});
    if (!gone) return fail(err, gone.error());
    if (removed != nullptr) *removed = *gone;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_blocks_also_on(wr_router* router, wr_replica_id replica, uint32_t tier, const uint64_t* ids,
                                   size_t count, int64_t now_ns, size_t* known, wr_error* err) {
  if (router == nullptr || !readable(ids, count)) return null_argument(err, "router or ids is NULL");
  if (tier >= kAllTierCount) return fail(err, Code::out_of_range, "tier is not one of WR_TIER_...");
  return guard(err, [&] {
    const auto found = router->router.blocks_also_on(id_of(replica), static_cast<Tier>(tier),
                                                     {reinterpret_cast<const EngineHash*>(ids), count}, Nanos{now_ns});
    if (!found) return fail(err, found.error());
    if (known != nullptr) *known = *found;
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_clear_cache(wr_router* router, wr_replica_id replica, int64_t now_ns, wr_error* err) {
  if (router == nullptr) return null_argument(err, kNoRouter);
  return guard(err, [&] { return done(router->router.clear_cache(id_of(replica), Nanos{now_ns}), err); });
}

wr_status wr_router_export_caches(const wr_router* router, const uint8_t* key, int64_t now_ns, uint8_t* buf, size_t cap,
                                  size_t* needed, wr_error* err) {
  if (router == nullptr || key == nullptr || needed == nullptr) {
    return null_argument(err, "router, key or needed is NULL");
  }
  return guard(err, [&] {
    const auto bytes = export_caches(router->router, CacheExportKey(key, WR_CACHE_KEY_BYTES), Nanos{now_ns});
    if (!bytes) return fail(err, bytes.error());
    return give(*bytes, 0, reinterpret_cast<char*>(buf), cap, needed, err);
  });
}

wr_status wr_router_import_caches(wr_router* router, const uint8_t* bytes, size_t size, const uint8_t* key,
                                  int64_t now_ns, int64_t away_ns, wr_cache_import_report* report, wr_error* err) {
  if (router == nullptr || key == nullptr || !readable(bytes, size)) {
    return null_argument(err, "router, bytes or key is NULL");
  }
  if (report != nullptr && !writable(report)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    CacheImportOptions options;
    options.away = Nanos{away_ns};
    const auto done = import_caches(router->router, {reinterpret_cast<const char*>(bytes), size},
                                    CacheExportKey(key, WR_CACHE_KEY_BYTES), Nanos{now_ns}, options);
    if (!done) return fail(err, done.error());
    if (report != nullptr) {
      write(report, wr_cache_import_report{0,
                                           0,
                                           done->replicas_restored,
                                           done->replicas_unknown,
                                           done->blocks_offered,
                                           done->blocks_restored,
                                           done->rates_restored,
                                           {}});
    }
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

}  // extern "C"
