// Metrics pages that are asked for on a thread.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics.hpp"
#include "router.hpp"
#include "warmroute/ingest/metrics_poller.hpp"
#include "worker.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_poller {
  WorkerCalls calls;
  wr_poller_page_fn page = nullptr;
  void* page_user = nullptr;
  std::optional<MetricsPoller> poller;  // last: its thread uses the others
};

namespace {

constexpr std::string_view kNoPoller = "poller is NULL";
const wr_poller_options kPollerDefaults = WR_POLLER_OPTIONS_INIT;
const wr_poller_target kPollerTargetDefaults = WR_POLLER_TARGET_INIT;

wr_status read_tables(const wr_poller_options& o, std::vector<EngineMetricsTable>& out, wr_error* err) {
  if (!readable(o.tables, o.table_count)) return null_argument(err, "tables is NULL although there are some");
  for (std::size_t i = 0; i < o.table_count; ++i) {
    if (!readable(o.tables[i])) return null_argument(err, "a table has a size and no data");
    auto table = engine_table_from_json(view(o.tables[i]));
    if (!table) return fail(err, table.error());
    out.push_back(std::move(*table));
  }
  return WR_STATUS_OK;
}

MetricsPollerOptions poller_options_of(const wr_poller_options& o, wr_poller& handle) {
  MetricsPollerOptions out;
  out.interval = Nanos{o.interval_ns};
  out.timeout = Nanos{o.timeout_ns};
  out.backoff_to = Nanos{o.backoff_to_ns};
  out.jitter_percent = o.jitter_percent;
  out.keep_alive = o.keep_alive != 0;
  out.max_bytes = o.max_bytes;
  out.seed = o.seed;
  handle.calls.give(out);
  if (handle.page == nullptr) return out;
  out.page_user = &handle;
  out.page = [](void* self, const MetricsPage& page) {
    const auto& poller = *static_cast<const wr_poller*>(self);
    const wr_poller_page told{sizeof(wr_poller_page), 0, str(page.target), str(page.body), page.at.value,
                              page.took.value,        {}};
    poller.page(poller.page_user, &told);
  };
  return out;
}

wr_status read_poller_target(const wr_poller_target& t, MetricsTarget& out, wr_error* err) {
  if (!readable(t.url) || !readable(t.name) || !readable(t.engine) || !readable(t.replicas, t.replica_count)) {
    return null_argument(err, "url, name, engine or replicas has a size and no data");
  }
  if (!strides_fit<wr_metrics_target>(t.replica_count, t.replica_stride)) {
    return fail(err, Code::invalid_argument,
                "replica_stride is smaller than a wr_metrics_target, or no multiple of its alignment");
  }
  out = {std::string(view(t.url)), std::string(view(t.name)), std::string(view(t.engine)), {}, t.clear_on_restart != 0};
  for (std::size_t i = 0; i < t.replica_count; ++i) {
    RankReplica one;
    if (const wr_status bad = read_target(at(t.replicas, i, t.replica_stride), one, err); bad != WR_STATUS_OK) {
      return bad;
    }
    out.replicas.push_back({one.id, one.dp_rank, std::string(one.model)});
  }
  return WR_STATUS_OK;
}

template <std::size_t kSize>
void copy_text(const std::string& from, char (&to)[kSize]) noexcept {
  to[from.copy(to, kSize - 1)] = '\0';
}

wr_poller_status status_of(const MetricsTargetStatus& s) noexcept {
  wr_poller_status out = WR_POLLER_STATUS_INIT;
  out.up = s.up;
  out.scrapes = s.scrapes;
  out.failures = s.failures;
  out.failures_in_row = s.failures_in_row;
  out.connects = s.connects;
  out.restarts = s.restarts;
  if (s.age) out.age_ns = s.age->value;
  out.last_duration_ns = s.last_duration.value;
  out.last_bytes = s.last_bytes;
  out.skipped_lines = s.skipped_lines;
  out.unmatched_ranks = s.unmatched_ranks;
  out.signals = s.signals;
  copy_text(s.engine, out.engine);
  copy_text(s.last_error, out.last_error);
  return out;
}

}  // namespace

extern "C" {

wr_status wr_poller_new(wr_router* router, const wr_poller_options* options, wr_poller** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  const Input<wr_poller_options> in(options != nullptr ? options : &kPollerDefaults, kPollerDefaults);
  if (!in) return in.refuse(err, "options is NULL");
  if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
  return guard(err, [&] {
    auto handle = std::make_unique<wr_poller>();
    handle->calls = {in->clock, in->clock_user, in->log, in->log_user};
    handle->page = in->page;
    handle->page_user = in->page_user;
    MetricsPollerOptions given = poller_options_of(*in, *handle);
    if (const wr_status bad = read_tables(*in, given.tables, err); bad != WR_STATUS_OK) return bad;
    auto started = router != nullptr ? MetricsPoller::start(router->router, std::move(given))
                                     : MetricsPoller::start(std::move(given));
    if (!started) return fail(err, started.error());
    handle->poller.emplace(std::move(*started));
    *out = handle.release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_poller_free(wr_poller* poller) { delete poller; }

wr_status wr_poller_add(wr_poller* poller, const wr_poller_target* target, wr_error* err) {
  if (poller == nullptr) return null_argument(err, kNoPoller);
  const Input<wr_poller_target> in(target, kPollerTargetDefaults);
  if (!in) return in.refuse(err, "target is NULL");
  return guard(err, [&] {
    MetricsTarget whole;
    if (const wr_status bad = read_poller_target(*in, whole, err); bad != WR_STATUS_OK) return bad;
    return done(poller->poller->add(whole), err);
  });
}

wr_status wr_poller_remove(wr_poller* poller, wr_str name, wr_error* err) {
  if (poller == nullptr || !readable(name)) return null_argument(err, "poller is NULL, or name has no data");
  return guard(err, [&] { return done(poller->poller->remove(view(name)), err); });
}

wr_status wr_poller_read_status(const wr_poller* poller, wr_str name, wr_poller_status* out, wr_error* err) {
  if (poller == nullptr || !readable(name)) return null_argument(err, "poller is NULL, or name has no data");
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const auto s = poller->poller->status(view(name));
    if (!s) return fail(err, s.error());
    write(out, status_of(*s));
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

}  // extern "C"
