// Metrics pages of engines: read, given to a router, compared with the page before.
#include "metrics.hpp"

#include <mutex>

#include "arrays.hpp"
#include "events.hpp"

namespace warmroute::python {

std::vector<EngineMetricsTable> tables_of(const std::vector<std::string>& json) {
  std::vector<EngineMetricsTable> out;
  for (const std::string& one : json) out.push_back(value_of(engine_table_from_json(one)));
  return out;
}

namespace {

// A parser and the page that it read last; its views are of that page. Whoever waits for the lock has no GIL.
struct PyMetrics {
  [[nodiscard]] std::unique_lock<std::mutex> locked() {
    const ReleasedGil gil;
    return std::unique_lock(mutex);
  }

  std::mutex mutex;
  EngineMetricsParser parser;
  std::string page;
  EngineReading reading;
};

template <class T>
py::object or_none(const std::optional<T>& value) {
  return value ? py::cast(*value) : py::object(py::none());
}

py::object adapters(const std::optional<std::span<const std::string_view>>& names) {
  if (!names) return py::none();
  py::list out;
  for (const std::string_view name : *names) out.append(text_of(name));
  return py::tuple(out);
}

py::object histogram(const std::optional<EngineHistogram>& h) {
  if (!h) return py::none();
  py::list buckets;
  for (const HistogramBucket& b : h->buckets) buckets.append(py::make_tuple(b.le, b.count));
  py::dict out;
  out["buckets"] = py::tuple(buckets);
  out["sum_s"] = or_none(h->sum);
  out["count"] = h->count;
  return out;
}

py::dict rank_of(const EngineRank& r) {
  py::dict out;
  out["dp_rank"] = or_none(r.dp_rank);
  out["model"] = text_of(r.model);
  out["waiting"] = or_none(r.waiting);
  out["running"] = or_none(r.running);
  out["waiting_tokens"] = or_none(r.waiting_tokens);
  out["kv_usage"] = or_none(r.kv_usage);
  out["prefix_hits"] = or_none(r.prefix_hits);
  out["prefix_queries"] = or_none(r.prefix_queries);
  out["prefix_unit"] = r.prefix_unit;
  out["prefix_hit_rate"] = or_none(r.prefix_hit_rate);
  out["block_tokens"] = or_none(r.block_tokens);
  out["block_count"] = or_none(r.block_count);
  out["lora_running"] = adapters(r.lora_running);
  out["lora_waiting"] = adapters(r.lora_waiting);
  out["lora_max"] = or_none(r.lora_max);
  out["ttft"] = histogram(r.ttft);
  return out;
}

AnyDict read(PyMetrics& self, const BytesView& page, std::string_view engine) {
  const auto lock = self.locked();
  self.reading = {};
  self.page = page.text();
  self.reading = value_of(self.parser.parse(self.page, engine));
  py::list ranks;
  for (const EngineRank& r : self.reading.ranks) ranks.append(rank_of(r));
  py::dict out;
  out["engine"] = text_of(self.reading.engine);
  out["ranks"] = ranks;
  out["shared"] = self.reading.shared ? py::object(rank_of(*self.reading.shared)) : py::object(py::none());
  out["skipped_lines"] = self.reading.skipped_lines;
  return AnyDict(out);
}

AnyDict apply(PyMetrics& self, PyRouter& router, const ReplicaRows& rows, NowArg now_ns) {
  std::vector<RankReplica> replicas;
  for (const auto& [id, dp_rank, model] : rows) replicas.push_back({replica_of(id), dp_rank, model});
  const Nanos now = router.at(now_ns);
  const AppliedReading done = router.released([&] {
    const std::lock_guard lock(self.mutex);
    return apply_engine_reading(router.router, self.reading, replicas, now);
  });
  py::dict out;
  out["signals"] = done.signals;
  out["refused"] = done.refused;
  out["unmatched_ranks"] = done.unmatched_ranks;
  out["shared_counters"] = done.shared_counters;
  return AnyDict(out);
}

py::typing::List<AnyDict> update(EngineCounters& self, PyMetrics& metrics) {
  const auto lock = metrics.locked();
  py::list out;
  for (const EngineDelta& d : self.update(metrics.reading)) {
    py::dict row;
    row["dp_rank"] = or_none(d.dp_rank);
    row["model"] = text_of(d.model);
    row["shared"] = d.shared;
    row["restarted"] = d.restarted;
    row["prefix_hits"] = or_none(d.prefix_hits);
    row["prefix_queries"] = or_none(d.prefix_queries);
    row["first_tokens"] = or_none(d.first_tokens);
    out.append(row);
  }
  return out;
}

}  // namespace

void bind_metrics(py::module_& m) {
  py::class_<PyMetrics>(m, "EngineMetrics", "See warmroute.EngineMetrics.")
      .def(py::init([](const std::vector<std::string>& tables) {
             auto self = std::make_unique<PyMetrics>();
             for (EngineMetricsTable& table : tables_of(tables)) check(self->parser.set_table(std::move(table)));
             return self;
           }),
           py::kw_only(), py::arg("tables") = std::vector<std::string>{})
      .def("_read", &read, py::arg("page"), py::arg("engine"))
      .def("_apply", &apply, py::arg("router"), py::arg("replicas"), py::arg("now_ns"));
  py::class_<EngineCounters>(m, "EngineCounters", "See warmroute.EngineCounters.")
      .def(py::init<>())
      .def("_update", &update, py::arg("metrics"))
      .def("clear", &EngineCounters::clear, "Forgets what was read: the next page is the first.");
  m.def(
      "builtin_engine_tables",
      [] {
        std::vector<std::string> out;
        for (const EngineMetricsTable& table : builtin_engine_tables()) out.push_back(engine_table_to_json(table));
        return out;
      },
      "The tables of metrics' names that are known, as JSON: what a table of your own looks like.");
}

}  // namespace warmroute::python
