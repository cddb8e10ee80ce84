// Statistics as nested dicts and as a Prometheus page; caches out and in.
#include "warmroute/observe/statistics.hpp"

#include "router.hpp"
#include "warmroute/observe/prometheus.hpp"
#include "warmroute/route/cache_export.hpp"
#include "warmroute/route/disaggregate.hpp"

namespace warmroute::python {
namespace {

template <class E, std::size_t N>
py::dict by_name(const std::array<std::uint64_t, N>& counts) {
  static_assert(EnumNames<E>::kNames.size() == N);
  py::dict out;
  for (std::size_t i = 0; i < N; ++i)
    out[py::str(EnumNames<E>::kNames[i].data(), EnumNames<E>::kNames[i].size())] = counts[i];
  return out;
}

py::dict ttft(const TtftStatistics& t) {
  py::dict out;
  out["buckets"] = py::tuple(py::cast(t.buckets));
  out["count"] = t.count;
  out["sum_ns"] = t.sum_ns;
  return out;
}

py::dict rates(const Rates& r) {
  py::dict out;
  out["floor_ns"] = r.floor_ns;
  out["token_ps"] = r.token_ps;
  out["pair_ps"] = r.pair_ps;
  out["context_ps"] = r.context_ps;
  out["overhead_ns"] = r.overhead_ns;
  return out;
}

py::dict replica(const ReplicaStatistics& r) {
  py::dict load;
  load["requests"] = r.load.requests;
  load["pending_tokens"] = r.load.pending_tokens;
  load["pending_ns"] = r.load.pending_ns;
  load["context_tokens"] = r.load.context_tokens;
  load["decoding"] = r.load.decoding;
  load["foreign_requests"] = r.load.foreign_requests;
  load["foreign_waiting"] = r.load.foreign_waiting;
  const std::int64_t tokens = r.load.foreign_tokens;
  load["foreign_tokens"] = tokens == LoadBook::kUntold ? py::object(py::none()) : py::cast(tokens);
  load["signals_at_ns"] = r.load.signals_at.value;
  const PrefixGains& gains = r.engine_prefix;
  py::dict engine;
  engine["queries"] = gains.gained.queries;
  engine["hits"] = gains.gained.hits;
  engine["unit"] = gains.gained.in_blocks ? PrefixUnit::blocks : PrefixUnit::tokens;
  engine["shared"] = gains.gained.shared;
  engine["at_ns"] = gains.at.value;
  py::dict out;
  out["replica"] = replica_number(r.id);
  out["name"] = r.name;
  out["dp_rank"] = r.dp_rank;
  out["pool"] = r.pool;
  out["health"] = r.health;
  out["load"] = load;
  out["believed_blocks"] = r.believed_blocks;
  out["capacity_blocks"] = r.capacity_blocks;
  out["reported"] = r.reported;
  out["input_tokens"] = r.input_tokens;
  out["matched_tokens"] = r.matched_tokens;
  out["held_tokens"] = r.held_tokens;
  out["slowness"] = r.slowness;
  out["role"] = r.role;
  out["prefill_share"] = r.prefill_share;
  out["declared"] = rates(r.declared);
  out["engine_prefix"] = gains.known ? py::object(engine) : py::object(py::none());
  return out;
}

py::dict pool(const PoolStatistics& p) {
  py::dict out;
  out["name"] = p.name;
  out["blocks"] = p.blocks;
  out["memberships"] = p.memberships;
  out["bytes"] = p.bytes;
  out["max_bytes"] = p.max_bytes;
  out["bytes_per_token"] = p.bytes_per_token;
  out["output_tokens"] = p.output_tokens;
  out["shared_blocks"] = p.shared_blocks;
  py::list kinds;
  for (const LearnedRates& kind : p.rates) {
    py::dict entry;
    entry["declared"] = rates(kind.declared);
    entry["used"] = rates(kind.used);
    entry["learned"] = kind.learned;
    entry["samples"] = kind.samples;
    kinds.append(entry);
  }
  out["rates"] = kinds;
  return out;
}

py::dict as_dict(const RouterStatistics& s) {
  py::dict out;
  out["policy_version"] = s.policy_version;
  out["algorithm"] = s.algorithm;
  out["verdicts"] = by_name<Verdict>(s.verdicts);
  out["reasons"] = by_name<Reason>(s.reasons);
  out["outcomes"] = by_name<Outcome>(s.outcomes);
  out["splits"] = by_name<Split>(s.splits);
  out["transfers_done"] = s.transfers_done;
  out["transfers_timed_out"] = s.transfers_timed_out;
  out["transfer_ns"] = s.transfer_ns;
  out["late_calls"] = s.late_calls;
  out["placements_dropped"] = s.placements_dropped;
  out["clock_clamped"] = s.clock_clamped;
  out["scratch_allocated"] = s.scratch_allocated;
  out["tickets_in_flight"] = s.tickets_in_flight;
  out["input_tokens"] = s.input_tokens;
  out["predicted_cached_tokens"] = s.predicted_cached_tokens;
  out["reported_cached_tokens"] = s.reported_cached_tokens;
  out["output_tokens"] = s.output_tokens;
  out["cached_reports"] = s.cached_reports;
  out["cached_exact"] = s.cached_exact;
  out["observed_ttft"] = ttft(s.observed_ttft);
  out["predicted_ttft"] = ttft(s.predicted_ttft);
  out["predicted_wait_ns"] = s.predicted_wait_ns;
  out["predicted_prefill_ns"] = s.predicted_prefill_ns;
  out["saved_prefill_ns"] = s.saved_prefill_ns;
  out["event_blocks_stored"] = s.event_blocks_stored;
  out["event_blocks_removed"] = s.event_blocks_removed;
  out["event_orphans"] = s.event_orphans;
  out["event_gaps"] = s.event_gaps;
  py::list pools;
  for (const PoolStatistics& p : s.pools) pools.append(pool(p));
  py::list replicas;
  for (const ReplicaStatistics& r : s.replicas) replicas.append(replica(r));
  out["pools"] = pools;
  out["replicas"] = replicas;
  return out;
}

CacheExportKey key_of(const py::bytes& key) {
  const std::string_view bytes = key;
  if (bytes.size() != 32)
    throw py::value_error("the key must be 32 random bytes, not " + std::to_string(bytes.size()) +
                          ": secrets.token_bytes(32)");
  return CacheExportKey{reinterpret_cast<const std::uint8_t*>(bytes.data()), 32};
}

}  // namespace

void bind_statistics(RouterClass& c) {
  using Dict = py::typing::Dict<py::str, py::object>;
  c.def("_statistics",
        [](PyRouter& self) { return Dict(as_dict(self.released([&] { return self.router.statistics(); }))); });
  c.def(
      "prometheus",
      [](PyRouter& self) {
        return self.released([&] {
          std::string page;
          append_prometheus(self.router.statistics(), page);
          return page;
        });
      },
      "The statistics as one page of Prometheus' text format, names warmroute_*.");
}

void bind_caches(RouterClass& c) {
  c.def(
      "export_caches",
      [](PyRouter& self, const py::bytes& key, NowArg now_ns) {
        const CacheExportKey secret = key_of(key);
        const Nanos now = self.at(now_ns);
        return py::bytes(value_of(self.released([&] { return export_caches(self.router, secret, now); })));
      },
      py::arg("key"), py::arg("now_ns") = std::nullopt,
      "What is believed of all caches and was learned of their hardware, encrypted under `key` (32 random bytes), for "
      "a "
      "file: a\nrestart begins warm.\n\n"
      "errors: Error internal (no such cipher), ValueError (key).");
  c.def(
      "import_caches",
      [](PyRouter& self, const BytesView& data, const py::bytes& key, NowArg now_ns, std::int64_t away_ns,
         std::size_t max_bytes) {
        const CacheExportKey secret = key_of(key);
        const Nanos now = self.at(now_ns);
        std::string copy;
        std::string_view bytes = data.text();
        if (data.is_mutable()) bytes = copy = bytes;
        const auto report = value_of(self.released([&] {
          return import_caches(self.router, bytes, secret, now, {.away = Nanos{away_ns}, .max_bytes = max_bytes});
        }));
        py::dict out;
        out["replicas_restored"] = report.replicas_restored;
        out["replicas_unknown"] = report.replicas_unknown;
        out["blocks_offered"] = report.blocks_offered;
        out["blocks_restored"] = report.blocks_restored;
        out["rates_restored"] = report.rates_restored;
        return py::typing::Dict<py::str, py::int_>(out);
      },
      py::arg("data"), py::arg("key"), py::arg("now_ns") = std::nullopt, py::kw_only(), py::arg("away_ns") = 0,
      py::arg("max_bytes") = CacheImportOptions{}.max_bytes,
      "Believes an export of replicas that are here by now: add them first. away_ns: how long ago it was made.\n\n"
      "returns: replicas_restored, replicas_unknown, blocks_offered, blocks_restored, rates_restored (kinds of "
      "hardware "
      "that begin\nwith learned rates).\n"
      "errors: Error malformed, unsupported, invalid_argument (another key, block size or hash seed), too_large.");
}

void bind_recording(RouterClass& c) {
  c.def("_recording",
        [](PyRouter& self) -> py::typing::Optional<AnyDict> {
          if (!self.recorder) return py::typing::Optional<AnyDict>(py::none());
          const trace::DecisionLogStatistics s = self.released([&] { return self.recorder->log_statistics(); });
          py::dict out;
          out["records"] = s.records;
          out["bytes"] = s.bytes;
          out["unrecorded"] = s.unrecorded;
          out["ended"] = s.ended;
          out["reason"] = text_of(s.reason);
          return py::typing::Optional<AnyDict>(out);
        })
      .def(
          "flush_recording",
          [](PyRouter& self) {
            if (!self.recorder)
              raise({Code::unsupported, "this router does not record: Router(record=path)", kNoOffset});
            check(self.released([&] { return self.recorder->flush(); }));
          },
          "Hands the decision log's buffer to the operating system. errors: Error unsupported (it does not record), io "
          "(it has ended).");
}

void bind_ratio(py::module_& m) {
  m.def(
      "advise_pool_ratio",
      [](std::array<std::int64_t, 5> served, const Rates& r, std::int64_t itl_ns, std::int64_t replicas) {
        constexpr std::int64_t kMostServed = 1'000'000'000'000'000, kMostRate = 100'000'000'000;
        const auto absurd = [](std::int64_t n, std::int64_t most) { return n < 0 || n > most; };
        bool bad = absurd(itl_ns, kMostRate) || absurd(replicas, 65'536);
        for (const std::int64_t n : served) bad = bad || absurd(n, kMostServed);
        for (const std::int64_t n : {r.floor_ns, r.token_ps, r.pair_ps, r.context_ps, r.overhead_ns})
          bad = bad || absurd(n, kMostRate);
        if (bad) throw py::value_error("a number is negative or absurd");
        const PoolRatio ratio =
            advise_ratio({served[0], served[1], served[2], served[3], served[4]}, r, itl_ns, replicas);
        return std::array<std::int64_t, 4>{ratio.prefill, ratio.decode, ratio.prefill_busy_milli,
                                           ratio.decode_busy_milli};
      },
      py::arg("served"), py::arg("rates"), py::arg("itl_ns"), py::arg("replicas"));
}

}  // namespace warmroute::python
