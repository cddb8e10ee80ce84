// Metrics pages of engines.
#include <memory>
#include <string>
#include <vector>

#include "metrics.hpp"
#include "router.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_metrics {
  EngineMetricsParser parser;
  std::string page;       // strings are read during the call only, and the reading has views of it
  EngineReading reading;  // of `page`; empty after a failure
};

struct wr_engine_counters {
  EngineCounters counters;
  std::span<const EngineDelta> deltas;  // of the last update
};

namespace {

constexpr std::size_t kMostPageBytes = EngineMetricsOptions{}.max_bytes;
const wr_metrics_target kTargetDefaults = WR_METRICS_TARGET_INIT;

std::int64_t count_of(const std::optional<std::int64_t>& count) noexcept { return count.value_or(WR_UNKNOWN); }
double number_of(const std::optional<double>& number) noexcept { return number.value_or(WR_UNKNOWN); }

wr_metrics_rank rank_of(const EngineRank& r) noexcept {
  wr_metrics_rank out = WR_METRICS_RANK_INIT;
  out.prefix_unit = static_cast<std::uint32_t>(r.prefix_unit);
  if (r.dp_rank) out.dp_rank = *r.dp_rank;
  out.model = str(r.model);
  out.waiting = count_of(r.waiting);
  out.running = count_of(r.running);
  out.waiting_tokens = count_of(r.waiting_tokens);
  out.kv_usage = number_of(r.kv_usage);
  out.prefix_hits = count_of(r.prefix_hits);
  out.prefix_queries = count_of(r.prefix_queries);
  out.prefix_hit_rate = number_of(r.prefix_hit_rate);
  out.block_tokens = count_of(r.block_tokens);
  out.block_count = count_of(r.block_count);
  out.lora_max = count_of(r.lora_max);
  if (r.ttft) {
    out.ttft_count = r.ttft->count;
    out.ttft_sum_s = number_of(r.ttft->sum);
  }
  return out;
}

}  // namespace

wr_status capi::read_target(const wr_metrics_target* given, RankReplica& out, wr_error* err) noexcept {
  const Input<wr_metrics_target> in(given, kTargetDefaults);
  if (!in) return in.refuse(err, "a target is NULL");
  if (!readable(in->model)) return null_argument(err, "a target's model has a size and no data");
  if (in->dp_rank < WR_UNKNOWN || in->dp_rank > 0xffff'ffff) {
    return fail(err, Code::out_of_range, "a target's dp_rank is neither WR_UNKNOWN nor of 32 bits");
  }
  out.id = id_of(in->replica);
  if (in->dp_rank != WR_UNKNOWN) out.dp_rank = static_cast<std::uint32_t>(in->dp_rank);
  // Of a shorter struct the Input holds a copy, but the string's bytes are the caller's.
  out.model = view(in->model);
  return WR_STATUS_OK;
}

extern "C" {

wr_status wr_metrics_new(wr_metrics** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_metrics>().release();
    return WR_STATUS_OK;
  });
}

void wr_metrics_free(wr_metrics* metrics) { delete metrics; }

wr_status wr_metrics_set_table(wr_metrics* metrics, wr_str json, wr_error* err) {
  if (metrics == nullptr || !readable(json)) return null_argument(err, "metrics is NULL, or json has no data");
  return guard(err, [&] {
    auto table = engine_table_from_json(view(json));
    if (!table) return fail(err, table.error());
    metrics->reading = {};
    return done(metrics->parser.set_table(std::move(*table)), err);
  });
}

wr_status wr_metrics_parse(wr_metrics* metrics, wr_str page, wr_str engine, wr_metrics_reading* out, wr_error* err) {
  if (metrics == nullptr || !readable(page) || !readable(engine)) {
    return null_argument(err, "metrics is NULL, or page or engine has no data");
  }
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    metrics->reading = {};
    if (page.size > kMostPageBytes) return fail(err, Code::too_large, "the page has more than 16 MiB");
    metrics->page.assign(page.data != nullptr ? page.data : "", page.size);
    const auto read = metrics->parser.parse(metrics->page, view(engine));
    if (!read) return fail(err, read.error());
    metrics->reading = *read;
    wr_metrics_reading told = WR_METRICS_READING_INIT;
    told.has_shared = read->shared ? 1 : 0;
    told.engine = str(read->engine);
    told.rank_count = read->ranks.size();
    told.skipped_lines = read->skipped_lines;
    write(out, told);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_metrics_read_rank(const wr_metrics* metrics, size_t rank, wr_metrics_rank* out, wr_error* err) {
  if (metrics == nullptr) return null_argument(err, "metrics is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  const EngineReading& reading = metrics->reading;
  if (rank == WR_RANK_SHARED && reading.shared) {
    write(out, rank_of(*reading.shared));
    return WR_STATUS_OK;
  }
  if (rank >= reading.ranks.size()) {
    return fail(err, Code::out_of_range, "the page that was read last has fewer ranks, or no series without one");
  }
  write(out, rank_of(reading.ranks[rank]));
  return WR_STATUS_OK;
}

wr_status wr_router_apply_metrics(wr_router* router, const wr_metrics* metrics, const wr_metrics_target* targets,
                                  size_t count, size_t stride, int64_t now_ns, wr_metrics_applied* applied,
                                  wr_error* err) {
  if (router == nullptr || metrics == nullptr || !readable(targets, count)) {
    return null_argument(err, "router, metrics or targets is NULL");
  }
  if (applied != nullptr && !writable(applied)) return null_argument(err, kBadOutput);
  if (!strides_fit<wr_metrics_target>(count, stride)) {
    return fail(err, Code::invalid_argument,
                "stride is smaller than a wr_metrics_target, or no multiple of its alignment");
  }
  return guard(err, [&] {
    std::vector<RankReplica> replicas(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (const wr_status bad = read_target(at(targets, i, stride), replicas[i], err); bad != WR_STATUS_OK) return bad;
    }
    const AppliedReading done = apply_engine_reading(router->router, metrics->reading, replicas, Nanos{now_ns});
    if (applied != nullptr) {
      write(applied,
            wr_metrics_applied{0, 0, done.signals, done.refused, done.unmatched_ranks, done.shared_counters, {}});
    }
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_engine_counters_new(wr_engine_counters** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_engine_counters>().release();
    return WR_STATUS_OK;
  });
}

void wr_engine_counters_free(wr_engine_counters* counters) { delete counters; }

wr_status wr_engine_counters_update(wr_engine_counters* counters, const wr_metrics* metrics, size_t* count,
                                    wr_error* err) {
  if (counters == nullptr || metrics == nullptr || count == nullptr) {
    return null_argument(err, "counters, metrics or count is NULL");
  }
  return guard(err, [&] {
    counters->deltas = {};
    counters->deltas = counters->counters.update(metrics->reading);
    *count = counters->deltas.size();
    return WR_STATUS_OK;
  });
}

wr_status wr_engine_counters_read(const wr_engine_counters* counters, size_t delta, wr_engine_delta* out,
                                  wr_error* err) {
  if (counters == nullptr) return null_argument(err, "counters is NULL");
  if (!writable(out)) return null_argument(err, kBadOutput);
  if (delta >= counters->deltas.size()) return fail(err, Code::out_of_range, "the last update gave fewer deltas");
  const EngineDelta& d = counters->deltas[delta];
  wr_engine_delta told = WR_ENGINE_DELTA_INIT;
  told.restarted = d.restarted;
  if (d.dp_rank) told.dp_rank = *d.dp_rank;
  told.model = str(d.model);
  told.shared = d.shared;
  told.prefix_hits = count_of(d.prefix_hits);
  told.prefix_queries = count_of(d.prefix_queries);
  told.first_tokens = count_of(d.first_tokens);
  write(out, told);
  return WR_STATUS_OK;
}

wr_status wr_engine_counters_clear(wr_engine_counters* counters, wr_error* err) {
  if (counters == nullptr) return null_argument(err, "counters is NULL");
  counters->counters.clear();
  counters->deltas = {};
  return WR_STATUS_OK;
}

}  // extern "C"
