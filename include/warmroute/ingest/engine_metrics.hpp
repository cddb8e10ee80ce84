/// Reads what a model server says of itself (the Prometheus text of its /metrics) into the router's signals, per
/// data-parallel rank. vLLM, SGLang, TensorRT-LLM (trtllm-serve and Triton), TGI and llama.cpp are known; the mapping
/// is a table that is data, and callers may add theirs. Text formats 0.0.4, 1.0.0 (quoted names) and OpenMetrics are
/// read alike.
/// Invariant: what the page does not say, or says as NaN, negative or absurd, is unknown; nothing unknown is ever 0.
/// One bad line costs that line, which is counted; a page that is something else is refused with a code and an offset.
/// Does not: fetch pages, read a clock, ungzip, decode escaped names (U__...); whether the body is whole is the HTTP
/// client's to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

class Router;

/// What a row of a table gives. Numbers are fixed and only appended.
enum class EngineField : std::uint8_t {
  waiting = 0,          ///< gauge, requests
  running = 1,          ///< gauge, requests
  kv_usage = 2,         ///< gauge, 0..1
  prefix_hits = 3,      ///< counter
  prefix_queries = 4,   ///< counter: hits and misses
  prefix_misses = 5,    ///< counter, for engines that do not count queries
  prefix_hit_rate = 6,  ///< gauge, 0..1
  block_tokens = 7,     ///< tokens per KV block
  block_count = 8,      ///< KV blocks
  lora_running = 9,     ///< adapters' names, comma list
  lora_waiting = 10,    ///< the same
  lora_max = 11,        ///< how many at once
  ttft = 12,            ///< histogram, seconds
  waiting_tokens = 13,  ///< gauge, prompt tokens still to compute
};
inline constexpr std::size_t kEngineFieldCount = 14;

/// How several series of one metric and rank become one value.
enum class SeriesCombine : std::uint8_t {
  max = 0,     ///< gauges that several processes report, of which one writes
  sum = 1,     ///< counters and histograms that are split by further labels; unknown as soon as one part is
  newest = 2,  ///< info series whose value is a time; those before it are stale
};
enum class PrefixUnit : std::uint8_t { unknown = 0, tokens = 1, blocks = 2 };

/// One way to get one field.
struct EngineMetricRow {
  EngineField field = EngineField::waiting;
  std::string name{};  ///< sample name behind the table's prefix, with `_total`; without `_bucket`, `_sum`, `_count`
  std::vector<std::pair<std::string, std::string>> where{};  ///< labels (name, value) that a series must have
  std::string value_label{};  ///< the value is this label's text; empty: the sample's number
  SeriesCombine combine = SeriesCombine::max;
  /// Series with other values of this label than `split_total` are parts: not counted when the total is there, else
  /// added.
  std::string split_label{};
  std::string split_total{};
  std::uint8_t pair = 0;  ///< hits belong to the queries (or misses) of the same number; the lowest that is whole wins
  PrefixUnit unit = PrefixUnit::unknown;  ///< of hits
};

/// The metrics of one kind of engine. For each field the first row that a rank has a series of wins, even if its value
/// is unknown.
struct EngineMetricsTable {
  std::string engine;
  std::vector<std::string> prefixes;  ///< spellings of the start of every name, best first, e.g. "vllm:", "vllm_"
  std::string rank_label;             ///< label with the data-parallel rank; empty: there is none
  std::string model_label;            ///< label with the model's name; empty: there is none
  std::vector<EngineMetricRow> rows;
};

/// returns: the tables of vllm, sglang, trtllm, triton-trtllm, tgi, llamacpp. alloc: a copy.
std::vector<EngineMetricsTable> builtin_engine_tables();
/// errors: invalid_argument, all faults at once.
Status validate(const EngineMetricsTable& table);
/// A table from JSON: one object with the members of EngineMetricsTable; rows with those of EngineMetricRow, `field`
/// and the other enums by name, `where` an object of strings; what is absent has the struct's default. Strict, as
/// policies are.
/// errors: invalid_json, not_an_object, too_large (256 KiB), invalid_argument (every fault named).
Result<EngineMetricsTable> engine_table_from_json(std::string_view json);
/// returns: JSON that engine_table_from_json gives the same table for.
std::string engine_table_to_json(const EngineMetricsTable& table);

struct HistogramBucket {
  double le = 0;           ///< units: seconds, upper bound; the last is infinite
  std::int64_t count = 0;  ///< cumulative
};
struct EngineHistogram {
  std::span<const HistogramBucket> buckets;  ///< by le
  std::optional<double> sum;                 ///< units: seconds
  std::int64_t count = 0;
};

/// What the page says of one rank. nullopt: unknown. lifetime: of views, until the parser's next call or end, and the
/// page's.
struct EngineRank {
  std::optional<std::uint32_t> dp_rank;  ///< as labelled; nullopt: no label
  std::string_view model;                ///< empty: no label
  std::optional<std::int64_t> waiting;
  std::optional<std::int64_t> running;
  std::optional<std::int64_t> waiting_tokens;  ///< prompt tokens still to compute: uncached ones of queue and batch
  std::optional<double> kv_usage;
  std::optional<std::int64_t> prefix_hits;     ///< known together with the queries
  std::optional<std::int64_t> prefix_queries;  ///< hits and misses
  PrefixUnit prefix_unit = PrefixUnit::unknown;
  std::optional<double> prefix_hit_rate;  ///< as the engine computes it, over its own window
  std::optional<std::int64_t> block_tokens;
  std::optional<std::int64_t> block_count;
  std::optional<std::span<const std::string_view>> lora_running;  ///< empty: none; nullopt: not said
  std::optional<std::span<const std::string_view>> lora_waiting;
  std::optional<std::int64_t> lora_max;
  std::optional<EngineHistogram> ttft;
};

struct EngineReading {
  std::string_view engine;            ///< the table's name
  std::span<const EngineRank> ranks;  ///< by (model, dp_rank)
  std::optional<EngineRank> shared;   ///< series that name no rank, beside several ranks: nobody can say whose they are
  std::size_t skipped_lines = 0;      ///< malformed, of bad rank, or beyond a limit
};

struct EngineMetricsOptions {
  std::size_t max_bytes = std::size_t{16} << 20;      ///< larger pages are too_large
  std::size_t max_line_bytes = std::size_t{1} << 20;  ///< longer samples are skipped; comments have no limit
  std::size_t max_labels = 128;                       ///< samples with more are skipped
  std::size_t max_ranks = 1024;                       ///< samples of further (model, rank) are skipped
  std::size_t max_series = std::size_t{1} << 16;      ///< known series kept; further ones are skipped
};

/// Reads pages, one after another, in scratch memory that it keeps. threads: one parser per thread; it may serve many
/// targets.
/// alloc: none once it has seen a page of the size; errors allocate their message. cost: 0.75 ms a MB
/// (bench_engine_metrics: 40 ranks of vLLM, 0.9 ms for 1.2 MB).
class EngineMetricsParser {
 public:
  explicit EngineMetricsParser(const EngineMetricsOptions& options = {});  ///< knows the built-in tables
  ~EngineMetricsParser();
  EngineMetricsParser(EngineMetricsParser&&) noexcept;
  EngineMetricsParser& operator=(EngineMetricsParser&&) noexcept;

  /// Adds a table, or replaces the one of the same engine. errors: invalid_argument.
  Status set_table(EngineMetricsTable table);

  /// `engine`: name of the table to read by; empty: the one whose metrics are on the page.
  /// errors: malformed ("not_prometheus": HTML, JSON, compressed); not_found ("no_known_metrics"); invalid_argument
  /// ("ambiguous_engine": metrics of several engines and none named; "unknown_engine": no table of that name);
  /// too_large.
  /// The quoted word begins the message.
  Result<EngineReading> parse(std::string_view page, std::string_view engine = {});
  /// returns: skipped lines of the last page, also if it was refused.
  [[nodiscard]] std::size_t skipped_lines() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What one rank's counters gained since the reading before.
struct EngineDelta {
  std::optional<std::uint32_t> dp_rank;
  std::string_view model;  ///< lifetime: as the reading's
  bool shared = false;     ///< of EngineReading::shared
  /// A counter fell: the engine began anew, and the increase is the new value. Its cache is empty: Router::clear_cache.
  bool restarted = false;
  std::optional<std::int64_t> prefix_hits;  ///< nullopt: unknown now, or not known before
  std::optional<std::int64_t> prefix_queries;
  std::optional<std::int64_t> first_tokens;  ///< of the TTFT histogram
};

/// Remembers one target's counters between two readings. threads: one at a time. alloc: when a rank is new.
class EngineCounters {
 public:
  static constexpr std::size_t kMaxRanks = 4096;  ///< further ones are not followed

  /// returns: one delta for each rank of the reading that was seen before. lifetime: until the next call.
  std::span<const EngineDelta> update(const EngineReading& reading);
  void clear() noexcept { known_.clear(); }

 private:
  struct Known {
    std::optional<std::uint32_t> dp_rank;
    std::string model;
    bool shared = false;
    PrefixUnit unit = PrefixUnit::unknown;
    std::optional<std::int64_t> hits;
    std::optional<std::int64_t> queries;
    std::optional<std::int64_t> first_tokens;
  };
  void follow(const EngineRank& rank, bool shared);

  std::vector<Known> known_;
  std::vector<EngineDelta> deltas_;
};

/// Whose signals a page's rank are.
struct RankReplica {
  ReplicaId id;
  std::optional<std::uint32_t> dp_rank;  ///< nullopt: the only rank of the page, whatever its label
  std::string_view model;                ///< empty: any
};
struct AppliedReading {
  std::size_t signals = 0;          ///< taken by the router
  std::size_t refused = 0;          ///< refused by it, e.g. for a replica that was removed
  std::size_t unmatched_ranks = 0;  ///< of the reading, with no replica or with several
  std::size_t shared_counters = 0;  ///< replicas that got prefix-cache counters which are of their whole page
};

/// Gives each rank's known signals to its replica, as of `now` (of the scrape), and its prefix-cache counters to the
/// statistics. A rank without label is a sole replica's, whatever its dp_rank. `shared` is nobody's, but for its
/// prefix-cache counters: every replica of that model gets them, marked as shared, unless it has its own.
/// threads: any. cost: one Router::signal per known value.
AppliedReading apply_engine_reading(Router& router, const EngineReading& reading, std::span<const RankReplica> replicas,
                                    Nanos now);

}  // namespace warmroute
