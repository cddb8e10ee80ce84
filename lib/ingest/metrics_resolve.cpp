#include "ingest/metrics_resolve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace warmroute::metrics {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kTooMany = 9'223'372'036'854'775'808.0;  // 2^63

constexpr std::size_t index_of(EngineField field) noexcept { return static_cast<std::size_t>(field); }
constexpr bool is_ratio(EngineField field) noexcept {
  return field == EngineField::kv_usage || field == EngineField::prefix_hit_rate;
}
constexpr bool is_list(EngineField field) noexcept {
  return field == EngineField::lora_running || field == EngineField::lora_waiting;
}

double known_count(double value) noexcept {
  return value >= 0 && value < kTooMany && std::floor(value) == value ? value : kUnknown;
}
// Rounding above 1 is forgiven; a percentage is not guessed.
double known_ratio(double value) noexcept {
  return value >= 0 && value <= 1.05 ? std::min(value, 1.0) + 0.0 : kUnknown;
}

// "None", "16.0" and "1e3" are no counts.
double decimal(std::string_view text) noexcept {
  if (text.empty() || text.size() > 18 || (text.size() > 1 && text[0] == '0')) return kUnknown;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return kUnknown;
    value = value * 10 + (c - '0');
  }
  return static_cast<double>(value);
}

double measure(const EngineMetricRow& row, const Series& series) noexcept {
  if (is_list(row.field)) return 0;
  if (is_ratio(row.field)) {
    if (row.value_label.empty()) return known_ratio(series.value);
    return is_number(series.text) ? known_ratio(number_value(series.text)) : kUnknown;
  }
  return row.value_label.empty() ? known_count(series.value) : decimal(series.text);
}

// A maximum is over what is known; a sum is known if all of it is.
void combine(SeriesCombine how, double value, bool first, double& into) noexcept {
  const bool larger = !std::isnan(value) && !(into >= value);
  if (how == SeriesCombine::sum && !first) into += value;
  else if (first || larger) into = value;
}

}  // namespace

EngineReading Resolver::resolve(const EngineMetricsTable& table, std::uint16_t number, const SeriesStore& store) {
  places_.build(store.owners(), number);
  fold(table, number, store);
  order_histograms(store.series());
  choose(table);
  reserve(store.series());
  const std::span<const Owner> places = places_.places();
  ranks_.assign(places.size(), EngineRank{});
  EngineReading reading;
  for (std::size_t i = 0; i < places.size(); ++i) {
    ranks_[i].dp_rank = places[i].rank;
    ranks_[i].model = text(places[i].model);
    fill(chosen_[i], store.series(), ranks_[i]);
    fill_prefix(table, i, ranks_[i]);
  }
  if (places_.shared()) {
    EngineRank& shared = reading.shared.emplace();
    shared.model = text(places_.shared_model());
    fill(chosen_[places.size()], store.series(), shared);
    fill_prefix(table, places.size(), shared);
  }
  reading.engine = table.engine;
  reading.ranks = ranks_;
  return reading;
}

void Resolver::fold(const EngineMetricsTable& table, std::uint16_t number, const SeriesStore& store) {
  entries_ = table.rows.size() * table.prefixes.size();
  cells_.assign((places_.places().size() + 1) * entries_, Cell{});
  groups_.clear();
  group_index_.clear();
  histogram_index_.clear();
  order_.clear();
  const std::span<const Series> series = store.series();
  cell_of_.resize(series.size());
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (store.owners()[series[i].owner].table != number) continue;
    cell_of_[i] = places_.of(series[i].owner) * entries_ + series[i].entry;
    fold_into(table.rows[series[i].row], series[i], static_cast<std::uint32_t>(i), cell_of_[i]);
  }
  fold_groups();
}

void Resolver::fold_into(const EngineMetricRow& row, const Series& series, std::uint32_t index, std::size_t at) {
  Cell& cell = cells_[at];
  const bool first = !cell.present;
  cell.present = true;
  if (row.field == EngineField::ttft) {
    const std::uint64_t key = mixed(series.part, at);
    if (histogram_index_.find_or_add(key, 0).second) ++cell.histograms;
    if (series.piece == Piece::bucket && histogram_index_.find_or_add(key + 1, 0).second) ++cell.bucketed;
    order_.push_back(index);
    return;
  }
  const double value = measure(row, series);
  if (row.combine == SeriesCombine::newest) {
    if (first) cell.value = kUnknown;
    if (!std::isfinite(series.value) || (cell.series != kNone && series.value < cell.time)) return;
    cell.time = series.value;
    cell.series = index;
    cell.value = value;
  } else if (!row.split_label.empty()) {
    const auto fresh = static_cast<std::uint32_t>(groups_.size());
    const auto [group, added] = group_index_.find_or_add(mixed(series.part, at), fresh);
    if (added) groups_.push_back({at, 0, series.part == 0});
    combine(row.combine, value, added, groups_[group].value);
  } else {
    combine(row.combine, value, first, cell.value);
  }
}

void Resolver::fold_groups() {
  for (const Group& group : groups_) {
    if (!group.total) continue;
    cells_[group.cell].value = group.value;
    cells_[group.cell].whole = true;
  }
  for (const Group& group : groups_) {  // a cell starts at 0
    if (!cells_[group.cell].whole) cells_[group.cell].value += group.value;
  }
}

void Resolver::order_histograms(std::span<const Series> series) {
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(cell_of_[a], series[a].piece, series[a].le) < std::tie(cell_of_[b], series[b].piece, series[b].le);
  });
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Cell& cell = cells_[cell_of_[order_[i]]];
    if (cell.order_end == 0) cell.order_begin = static_cast<std::uint32_t>(i);
    cell.order_end = static_cast<std::uint32_t>(i + 1);
  }
}

// The first entry that is present, per place and field.
void Resolver::choose(const EngineMetricsTable& table) {
  Chosen nothing;
  nothing.fill(kNone);
  chosen_.assign(places_.places().size() + 1, nothing);
  for (std::size_t at = 0; at < cells_.size(); ++at) {
    if (!cells_[at].present) continue;
    const EngineMetricRow& row = table.rows[at % entries_ / table.prefixes.size()];
    std::uint32_t& cell = chosen_[at / entries_][index_of(row.field)];
    if (cell == kNone) cell = static_cast<std::uint32_t>(at);
  }
}

void Resolver::reserve(std::span<const Series> series) {
  std::size_t items = 0;
  std::size_t bytes = places_.shared_model().size();
  std::size_t buckets = 0;
  for (const Owner& place : places_.places()) bytes += place.model.size();
  for (const Chosen& chosen : chosen_) {
    for (const EngineField field : {EngineField::lora_running, EngineField::lora_waiting}) {
      const std::uint32_t cell = chosen[index_of(field)];
      if (cell == kNone || cells_[cell].series == kNone) continue;
      const std::string_view raw = series[cells_[cell].series].text;
      items += 1 + static_cast<std::size_t>(std::count(raw.begin(), raw.end(), ','));
      bytes += raw.size();
    }
    const std::uint32_t cell = chosen[index_of(EngineField::ttft)];
    if (cell != kNone) buckets += 1 + cells_[cell].order_end - cells_[cell].order_begin;
  }
  items_.clear();
  texts_.clear();
  buckets_.clear();
  items_.reserve(items);
  texts_.reserve(bytes);
  buckets_.reserve(buckets);
}

std::string_view Resolver::text(std::string_view raw) {
  if (raw.find('\\') == std::string_view::npos) return raw;
  const std::size_t begin = texts_.size();
  append_unescaped(raw, texts_);
  return std::string_view(texts_).substr(begin);
}

std::optional<std::int64_t> Resolver::count(std::uint32_t cell) const {
  if (cell == kNone || !(cells_[cell].value < kTooMany)) return std::nullopt;  // NaN, or a sum that is too large
  return static_cast<std::int64_t>(cells_[cell].value);
}

std::optional<double> Resolver::ratio(std::uint32_t cell) const {
  if (cell == kNone || std::isnan(cells_[cell].value)) return std::nullopt;
  return cells_[cell].value;
}

void Resolver::fill(const Chosen& chosen, std::span<const Series> series, EngineRank& rank) {
  const auto at = [&chosen](EngineField field) { return chosen[index_of(field)]; };
  rank.waiting = count(at(EngineField::waiting));
  rank.running = count(at(EngineField::running));
  rank.waiting_tokens = count(at(EngineField::waiting_tokens));
  rank.kv_usage = ratio(at(EngineField::kv_usage));
  rank.prefix_hit_rate = ratio(at(EngineField::prefix_hit_rate));
  rank.block_tokens = count(at(EngineField::block_tokens));
  rank.block_count = count(at(EngineField::block_count));
  rank.lora_running = list(at(EngineField::lora_running), series);
  rank.lora_waiting = list(at(EngineField::lora_waiting), series);
  rank.lora_max = count(at(EngineField::lora_max));
  if (const std::uint32_t cell = at(EngineField::ttft); cell != kNone) rank.ttft = histogram(cells_[cell], series);
}

// Hits and queries come from one pair of names in one spelling, or not at all.
void Resolver::fill_prefix(const EngineMetricsTable& table, std::size_t place, EngineRank& rank) const {
  const std::size_t spellings = table.prefixes.size();
  const auto cell = [&](std::size_t row, std::size_t spelling) {
    return static_cast<std::uint32_t>(place * entries_ + row * spellings + spelling);
  };
  const EngineMetricRow* best = nullptr;
  for (std::size_t h = 0; h < table.rows.size(); ++h) {
    const EngineMetricRow& hits = table.rows[h];
    if (hits.field != EngineField::prefix_hits || (best != nullptr && best->pair < hits.pair)) continue;
    for (std::size_t o = 0; o < table.rows.size(); ++o) {
      const EngineMetricRow& other = table.rows[o];
      const bool misses = other.field == EngineField::prefix_misses;
      if ((other.field != EngineField::prefix_queries && !misses) || other.pair != hits.pair) continue;
      for (std::size_t s = 0; s < spellings; ++s) {
        if (!cells_[cell(h, s)].present || !cells_[cell(o, s)].present) continue;
        best = &hits;
        const auto hit = count(cell(h, s));
        auto queries = count(cell(o, s));
        if (misses && hit && queries) {
          const double sum = static_cast<double>(*hit) + static_cast<double>(*queries);
          queries = sum < kTooMany ? std::optional(*hit + *queries) : std::nullopt;
        }
        const bool known = hit && queries;
        rank.prefix_hits = known ? hit : std::nullopt;
        rank.prefix_queries = known ? queries : std::nullopt;
        rank.prefix_unit = known ? hits.unit : PrefixUnit::unknown;
        break;
      }
    }
  }
}

std::optional<std::span<const std::string_view>> Resolver::list(std::uint32_t cell, std::span<const Series> series) {
  if (cell == kNone || cells_[cell].series == kNone) return std::nullopt;
  std::string_view names = text(series[cells_[cell].series].text);
  const std::size_t begin = items_.size();
  while (!names.empty()) {  // vLLM joins with a bare comma: blanks belong to names
    const std::size_t comma = std::min(names.find(','), names.size());
    items_.push_back(names.substr(0, comma));
    names.remove_prefix(std::min(comma + 1, names.size()));
  }
  return std::span<const std::string_view>(items_).subspan(begin);
}

// Several histograms (of streamed and other requests, say) add up at the bounds that all of them have.
std::optional<EngineHistogram> Resolver::histogram(const Cell& cell, std::span<const Series> series) {
  struct Tally {
    double value = 0;
    std::uint32_t from = 0;
  } infinite, sum, total;
  const std::size_t begin = buckets_.size();
  std::size_t i = cell.order_begin;
  while (i < cell.order_end && series[order_[i]].piece == Piece::bucket) {
    const double le = series[order_[i]].le;
    Tally bucket;
    for (; i < cell.order_end && series[order_[i]].piece == Piece::bucket && series[order_[i]].le == le; ++i) {
      bucket.value += known_count(series[order_[i]].value);
      ++bucket.from;
    }
    if (!(bucket.value < kTooMany)) return std::nullopt;
    if (le == std::numeric_limits<double>::infinity()) infinite = bucket;
    else if (bucket.from == cell.bucketed) buckets_.push_back({le, static_cast<std::int64_t>(bucket.value)});
  }
  for (; i < cell.order_end; ++i) {
    const Series& piece = series[order_[i]];
    Tally& tally = piece.piece == Piece::sum ? sum : total;
    tally.value += piece.piece == Piece::sum ? piece.value : known_count(piece.value);
    ++tally.from;
  }
  if (total.from != cell.histograms) total = infinite;  // no count: the last bucket has it
  if (infinite.from != cell.histograms) infinite = total;
  if (total.from != cell.histograms || !(total.value < kTooMany)) return std::nullopt;
  buckets_.push_back({std::numeric_limits<double>::infinity(), static_cast<std::int64_t>(infinite.value)});
  EngineHistogram out;
  out.buckets = std::span<const HistogramBucket>(buckets_).subspan(begin);
  if (sum.from == cell.histograms && std::isfinite(sum.value) && sum.value >= 0) out.sum = sum.value + 0.0;
  out.count = static_cast<std::int64_t>(total.value);
  return out;
}

}  // namespace warmroute::metrics
