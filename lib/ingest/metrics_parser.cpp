// EngineMetricsParser: one pass over the text into series, then from series to ranks.
#include <algorithm>
#include <string>

#include "ingest/metrics_names.hpp"
#include "ingest/metrics_resolve.hpp"
#include "ingest/metrics_series.hpp"
#include "ingest/metrics_text.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute {

using metrics::Rule;
using metrics::Sample;

struct EngineMetricsParser::Impl {
  explicit Impl(const EngineMetricsOptions& wanted)
      : options(wanted), tables(builtin_engine_tables()), text(wanted.max_labels, wanted.max_line_bytes) {
    names.build(tables);
  }

  void read(std::string_view page);
  [[nodiscard]] Error nothing_known(std::size_t bytes) const;
  [[nodiscard]] Result<std::uint16_t> engine_on_page() const;
  [[nodiscard]] std::string engine_names(bool on_page_only) const;

  EngineMetricsOptions options;
  std::vector<EngineMetricsTable> tables;
  metrics::NameTable names;
  metrics::TextReader text;
  metrics::SeriesStore store;
  metrics::Resolver resolver;
  std::size_t unusable = 0;  // well-formed samples that a row wants and cannot have
};

void EngineMetricsParser::Impl::read(std::string_view page) {
  text.start(page);
  unusable = 0;
  Sample sample;
  std::string_view last_name;
  std::span<const Rule> rules;
  while (text.next(sample)) {
    if (sample.name != last_name) {  // series of one metric follow one another
      last_name = sample.name;
      rules = names.find(last_name);
    }
    if (!rules.empty() && !store.add(tables, rules, sample, options)) ++unusable;
  }
}

std::string EngineMetricsParser::Impl::engine_names(bool on_page_only) const {
  std::string list;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (!on_page_only || store.seen(i)) list.append(list.empty() ? "" : ", ").append(tables[i].engine);
  }
  return list;
}

// A page with more bad lines than good ones is something else: HTML, JSON, compressed bytes.
Error EngineMetricsParser::Impl::nothing_known(std::size_t bytes) const {
  if (text.malformed() > 0 && text.malformed() >= text.well_formed()) {
    return {
        Code::malformed,
        "not_prometheus: the page is not Prometheus text; ask for text/plain, without compression, and check the path",
        std::min<std::uint64_t>(text.first_malformed(), bytes)};
  }
  return {Code::not_found, "no_known_metrics: the page has none of the metrics of " + engine_names(false), kNoOffset};
}

Result<std::uint16_t> EngineMetricsParser::Impl::engine_on_page() const {
  const auto count = static_cast<std::uint16_t>(tables.size());
  std::uint16_t found = count;
  for (std::uint16_t i = 0; i < count; ++i) {
    if (!store.seen(i)) continue;
    if (found != count) {
      return Error{Code::invalid_argument,
                   "ambiguous_engine: the page has metrics of " + engine_names(true) + "; name the engine", kNoOffset};
    }
    found = i;
  }
  return found;
}

EngineMetricsParser::EngineMetricsParser(const EngineMetricsOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
EngineMetricsParser::~EngineMetricsParser() = default;
EngineMetricsParser::EngineMetricsParser(EngineMetricsParser&&) noexcept = default;
EngineMetricsParser& EngineMetricsParser::operator=(EngineMetricsParser&&) noexcept = default;

Status EngineMetricsParser::set_table(EngineMetricsTable table) {
  if (auto valid = validate(table); !valid) return valid;
  auto& tables = impl_->tables;
  const auto same = [&](const EngineMetricsTable& t) { return t.engine == table.engine; };
  const auto at = std::find_if(tables.begin(), tables.end(), same);
  if (at != tables.end()) {
    *at = std::move(table);
  } else {
    if (tables.size() >= metrics::kMaxTables) {
      return Error{Code::capacity, "engine metrics table: there are 64 already", kNoOffset};
    }
    tables.push_back(std::move(table));
  }
  impl_->names.build(tables);
  return {};
}

std::size_t EngineMetricsParser::skipped_lines() const noexcept { return impl_->text.malformed() + impl_->unusable; }

Result<EngineReading> EngineMetricsParser::parse(std::string_view page, std::string_view engine) {
  Impl& impl = *impl_;
  impl.text.start({});  // what is refused below has skipped no lines
  impl.unusable = 0;
  std::optional<std::uint16_t> table;
  if (!engine.empty()) {
    for (std::size_t i = 0; i < impl.tables.size(); ++i) {
      if (impl.tables[i].engine == engine) table = static_cast<std::uint16_t>(i);
    }
    if (!table) {
      return Error{Code::invalid_argument,
                   "unknown_engine: no table of that name; there are " + impl.engine_names(false), kNoOffset};
    }
  }
  if (page.size() > impl.options.max_bytes) {
    return Error{Code::too_large, "the metrics page has more than " + std::to_string(impl.options.max_bytes) + " bytes",
                 impl.options.max_bytes};
  }
  impl.store.start(impl.tables.size(), table);
  impl.read(page);
  if (!table) {
    const auto found = impl.engine_on_page();
    if (!found) return found.error();
    table = *found;
  }
  if (*table == impl.tables.size() || !impl.store.seen(*table)) return impl.nothing_known(page.size());
  EngineReading reading = impl.resolver.resolve(impl.tables[*table], *table, impl.store);
  reading.skipped_lines = skipped_lines();
  return reading;
}

}  // namespace warmroute
