// Statistics and their Prometheus text.
#include <algorithm>
#include <initializer_list>
#include <string>

#include "router.hpp"
#include "warmroute/observe/prometheus.hpp"
#include "warmroute/route/disaggregate.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

namespace {

template <class Array, std::size_t kSlots>
void copy(const Array& from, std::uint64_t (&to)[kSlots]) noexcept {
  static_assert(std::tuple_size_v<Array> <= kSlots);
  std::copy(from.begin(), from.end(), to);
}

wr_statistics statistics_of(const RouterStatistics& s) noexcept {
  wr_statistics out{};
  out.policy_version = s.policy_version;
  copy(s.verdicts, out.verdicts);
  copy(s.reasons, out.reasons);
  copy(s.outcomes, out.outcomes);
  out.late_calls = s.late_calls;
  out.placements_dropped = s.placements_dropped;
  out.clock_clamped = s.clock_clamped;
  out.scratch_allocated = s.scratch_allocated;
  out.tickets_in_flight = s.tickets_in_flight;
  out.input_tokens = s.input_tokens;
  out.predicted_cached_tokens = s.predicted_cached_tokens;
  out.reported_cached_tokens = s.reported_cached_tokens;
  out.output_tokens = s.output_tokens;
  out.cached_reports = s.cached_reports;
  out.cached_exact = s.cached_exact;
  out.ttft_count = s.observed_ttft.count;
  out.observed_ttft_sum_ns = s.observed_ttft.sum_ns;
  out.predicted_ttft_sum_ns = s.predicted_ttft.sum_ns;
  out.predicted_wait_ns = s.predicted_wait_ns;
  out.predicted_prefill_ns = s.predicted_prefill_ns;
  out.saved_prefill_ns = s.saved_prefill_ns;
  out.event_blocks_stored = s.event_blocks_stored;
  out.event_blocks_removed = s.event_blocks_removed;
  out.event_orphans = s.event_orphans;
  out.event_gaps = s.event_gaps;
  return out;
}

wr_replica_statistics statistics_of(const ReplicaStatistics& r) noexcept {
  wr_replica_statistics out = WR_REPLICA_STATISTICS_INIT;
  out.health = static_cast<std::uint32_t>(r.health);
  out.dp_rank = r.dp_rank;
  out.reported = r.reported;
  out.requests = r.load.requests;
  out.pending_tokens = r.load.pending_tokens;
  out.pending_ns = r.load.pending_ns;
  out.context_tokens = r.load.context_tokens;
  out.decoding = r.load.decoding;
  out.foreign_requests = r.load.foreign_requests;
  out.foreign_waiting = r.load.foreign_waiting;
  out.foreign_tokens = r.load.foreign_tokens;
  out.signals_at_ns = r.load.signals_at.value;
  out.believed_blocks = r.believed_blocks;
  out.capacity_blocks = r.capacity_blocks;
  out.input_tokens = r.input_tokens;
  out.matched_tokens = r.matched_tokens;
  out.held_tokens = r.held_tokens;
  out.slowness = r.slowness;
  out.prefill_share = r.prefill_share;
  out.role = static_cast<std::uint32_t>(r.role);
  if (const PrefixGains& engine = r.engine_prefix; engine.known) {
    out.engine_prefix_queries = engine.gained.queries;
    out.engine_prefix_hits = engine.gained.hits;
    out.engine_prefix_unit = engine.gained.in_blocks ? WR_PREFIX_UNIT_BLOCKS : WR_PREFIX_UNIT_TOKENS;
    out.engine_prefix_shared = engine.gained.shared;
    out.engine_prefix_at_ns = engine.at.value;
  }
  return out;
}

wr_rates rates_of_c(const Rates& r) noexcept {
  return {r.floor_ns, r.token_ps, r.pair_ps, r.context_ps, r.overhead_ns};
}

// Sums and products of such numbers stay far from what a double rounds to no integer.
bool within(std::initializer_list<std::int64_t> numbers, std::int64_t most) noexcept {
  return std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t n) { return n >= 0 && n <= most; });
}
constexpr std::int64_t kMostServed = 1'000'000'000'000'000;
constexpr std::int64_t kMostRate = 100'000'000'000;
constexpr std::int64_t kMostDivided = 65'536;

const wr_served_tokens kServedDefaults = WR_SERVED_TOKENS_INIT;

}  // namespace

extern "C" {

wr_status wr_router_statistics(const wr_router* router, wr_statistics* out, wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    write_all(out, statistics_of(router->router.statistics()));
    return WR_STATUS_OK;
  });
}

wr_status wr_router_replica_statistics(const wr_router* router, wr_replica_id replica, wr_replica_statistics* out,
                                       wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    for (const ReplicaStatistics& r : router->router.statistics().replicas) {
      if (r.id != id_of(replica)) continue;
      write_all(out, statistics_of(r));
      return static_cast<wr_status>(WR_STATUS_OK);
    }
    return fail(err, Code::stale, "no such replica: it was removed");
  });
}

wr_status wr_router_pool_statistics(const wr_router* router, wr_str pool, wr_pool_statistics* out, wr_error* err) {
  if (router == nullptr || !readable(pool)) return null_argument(err, "router is NULL, or pool has no data");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    for (const PoolStatistics& p : router->router.statistics().pools) {
      if (p.name != view(pool)) continue;
      write_all(out, wr_pool_statistics{0,
                                        0,
                                        p.blocks,
                                        p.memberships,
                                        p.bytes,
                                        p.max_bytes,
                                        p.bytes_per_token,
                                        p.output_tokens,
                                        p.shared_blocks,
                                        {}});
      return static_cast<wr_status>(WR_STATUS_OK);
    }
    return fail(err, Code::not_found, "no replica has ever been in that pool");
  });
}

wr_status wr_router_prometheus(const wr_router* router, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (router == nullptr || needed == nullptr) return null_argument(err, "router or needed is NULL");
  return guard(err, [&] {
    std::string page;
    append_prometheus(router->router.statistics(), page);
    return give(page, 1, buf, cap, needed, err);
  });
}

wr_status wr_router_pair_statistics(const wr_router* router, wr_pair_statistics* out, wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const RouterStatistics s = router->router.statistics();
    wr_pair_statistics told = WR_PAIR_STATISTICS_INIT;
    copy(s.splits, told.splits);
    told.transfers_done = s.transfers_done;
    told.transfers_timed_out = s.transfers_timed_out;
    told.transfer_ns = s.transfer_ns;
    write(out, told);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_learned_rates(const wr_router* router, wr_replica_id replica, wr_learned_rates* out,
                                  wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const RouterStatistics s = router->router.statistics();
    const auto found = std::find_if(s.replicas.begin(), s.replicas.end(),
                                    [&](const ReplicaStatistics& r) { return r.id == id_of(replica); });
    if (found == s.replicas.end()) return fail(err, Code::stale, "no such replica: it was removed");
    wr_learned_rates told = WR_LEARNED_RATES_INIT;
    told.declared = told.used = rates_of_c(found->declared);
    if (const LearnedRates* kind = rates_of(s, *found)) {
      told.learned = kind->learned ? 1 : 0;
      told.used = rates_of_c(kind->used);
      told.samples = kind->samples;
    }
    told.slowness = found->slowness;
    for (const PoolStatistics& pool : s.pools) {
      if (pool.name == found->pool) told.output_tokens = pool.output_tokens;
    }
    write(out, told);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_router_served_tokens(const wr_router* router, wr_served_tokens* out, wr_error* err) {
  if (router == nullptr) return null_argument(err, "router is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const ServedTokens t = served_between({}, router->router.statistics(), 0);
    write(out,
          wr_served_tokens{0, 0, t.uncached_input_tokens, t.input_tokens, t.output_tokens, t.requests, t.seconds, {}});
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_advise_ratio(const wr_served_tokens* served, const wr_rates* rates, int64_t itl_ns, int64_t replicas,
                          wr_pool_ratio* out, wr_error* err) {
  const Input<wr_served_tokens> in(served, kServedDefaults);
  if (!in) return in.refuse(err, "served is NULL");
  if (rates == nullptr) return null_argument(err, "rates is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  if (!within({in->uncached_input_tokens, in->input_tokens, in->output_tokens, in->requests, in->seconds},
              kMostServed) ||
      !within({rates->floor_ns, rates->token_ps, rates->pair_ps, rates->context_ps, rates->overhead_ns, itl_ns},
              kMostRate) ||
      !within({replicas}, kMostDivided)) {
    return fail(err, Code::out_of_range, "a number is negative or absurd");
  }
  const PoolRatio ratio = advise_ratio(
      {in->uncached_input_tokens, in->input_tokens, in->output_tokens, in->requests, in->seconds},
      {rates->floor_ns, rates->token_ps, rates->pair_ps, rates->context_ps, rates->overhead_ns}, itl_ns, replicas);
  write(out, wr_pool_ratio{0, 0, ratio.prefill, ratio.decode, ratio.prefill_busy_milli, ratio.decode_busy_milli, {}});
  return WR_STATUS_OK;
}

}  // extern "C"
