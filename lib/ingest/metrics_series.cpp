#include "ingest/metrics_series.hpp"

#include <bit>
#include <cmath>

#include "warmroute/detail/xxh3.hpp"

namespace warmroute::metrics {
namespace {

std::uint64_t hash_of(std::string_view text) noexcept { return XXH3_64bits(text.data(), text.size()); }

// returns: the label's value; empty if there is no such label, which Prometheus takes for the same.
std::string_view value_of(std::span<const Label> labels, std::string_view name) noexcept {
  if (name.empty()) return {};
  for (const Label& label : labels) {
    if (label.name == name) return label.value;
  }
  return {};
}

bool has_all(std::span<const Label> labels, const EngineMetricRow& row) noexcept {
  for (const auto& [name, value] : row.where) {
    if (value_of(labels, name) != value) return false;
  }
  return true;
}

// Plain decimal, no leading zeros, at most 65535. returns: false if the text is something else.
bool read_rank(std::string_view text, std::optional<std::uint32_t>& rank) noexcept {
  if (text.empty()) return true;
  if (text.size() > 5 || (text.size() > 1 && text[0] == '0')) return false;
  std::uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  rank = value;
  return value <= 65'535;
}

// Which series this is among those of its metric: the order of labels does not matter, nor do empty ones.
std::uint64_t identity(std::span<const Label> labels, bool without_le) noexcept {
  std::uint64_t sum = 0;
  for (const Label& label : labels) {
    if (label.value.empty() || (without_le && label.name == "le")) continue;
    sum += mixed(hash_of(label.name), hash_of(label.value));
  }
  return sum;
}

}  // namespace

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept {
  a = (a ^ (b * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  a ^= a >> 32;
  a *= 0x94d049bb133111ebu;
  return a ^ (a >> 29);
}

void KeyIndex::clear() {
  used_ = 0;
  if (++round_ == 0) {  // after 2^32 pages: old marks could be taken for new ones
    slots_.assign(slots_.size(), Slot{});
    round_ = 1;
  }
}

void KeyIndex::grow() {
  std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.round != round_) continue;
    std::size_t at = slot.key & (slots_.size() - 1);
    while (slots_[at].round == round_) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

std::pair<std::uint32_t, bool> KeyIndex::find_or_add(std::uint64_t key, std::uint32_t fresh) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  std::size_t at = key & (slots_.size() - 1);
  for (; slots_[at].round == round_; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].key == key) return {slots_[at].value, false};
  }
  slots_[at] = {key, fresh, round_};
  ++used_;
  return {fresh, true};
}

std::optional<std::uint32_t> KeyIndex::find(std::uint64_t key) const noexcept {
  if (slots_.empty()) return std::nullopt;
  for (std::size_t at = key & (slots_.size() - 1); slots_[at].round == round_; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].key == key) return slots_[at].value;
  }
  return std::nullopt;
}

void SeriesStore::start(std::size_t tables, std::optional<std::uint16_t> only_table) {
  only_table_ = only_table;
  seen_.assign(tables, 0);
  owners_.clear();
  series_.clear();
  owner_index_.clear();
  series_index_.clear();
  last_owner_ = 0;
}

std::optional<std::uint32_t> SeriesStore::owner_of(const Owner& owner, std::size_t limit) {
  if (last_owner_ < owners_.size() && owners_[last_owner_] == owner) return last_owner_;
  const std::uint64_t rank = owner.rank ? *owner.rank + std::uint64_t{1} : 0;
  const std::uint64_t key = mixed(hash_of(owner.model), rank << 16 | owner.table);
  if (owners_.size() >= limit) return owner_index_.find(key);  // those that are known go on
  const auto [number, added] = owner_index_.find_or_add(key, static_cast<std::uint32_t>(owners_.size()));
  if (added) owners_.push_back(owner);
  return last_owner_ = number;
}

bool SeriesStore::add(std::span<const EngineMetricsTable> tables, std::span<const Rule> rules, const Sample& sample,
                      const EngineMetricsOptions& options) {
  bool taken = true;
  for (const Rule& rule : rules) {
    if (only_table_ && *only_table_ != rule.table) continue;
    if (!has_all(sample.labels, tables[rule.table].rows[rule.row])) continue;
    seen_[rule.table] = 1;
    taken = add_one(tables[rule.table], rule, sample, options) && taken;
  }
  return taken;
}

bool SeriesStore::add_one(const EngineMetricsTable& table, const Rule& rule, const Sample& sample,
                          const EngineMetricsOptions& options) {
  const EngineMetricRow& row = table.rows[rule.row];
  Owner owner{value_of(sample.labels, table.model_label), std::nullopt, rule.table};
  if (!read_rank(value_of(sample.labels, table.rank_label), owner.rank)) return false;
  Series series;
  series.row = rule.row;
  series.entry = rule.entry;
  series.piece = rule.piece;
  std::uint64_t key = identity(sample.labels, rule.piece == Piece::bucket);
  if (row.field == EngineField::ttft) series.part = key;
  if (rule.piece == Piece::bucket) {
    const std::string_view bound = value_of(sample.labels, "le");
    if (!is_number(bound)) return false;
    series.le = number_value(bound) + 0.0;  // -0 is 0
    if (std::isnan(series.le)) return false;
    key = mixed(key, std::bit_cast<std::uint64_t>(series.le));  // "1" and "1.0" are one bound
  }
  if (!row.value_label.empty()) {
    series.text = value_of(sample.labels, row.value_label);
    bool there = false;
    for (const Label& label : sample.labels) there = there || label.name == row.value_label;
    if (!there) return true;  // says nothing of this field
  }
  if (!row.split_label.empty()) {
    const std::string_view part = value_of(sample.labels, row.split_label);
    series.part = part.empty() || part == row.split_total ? 0 : hash_of(part) | 1;
  }
  key = mixed(
      key, std::uint64_t{rule.table} << 32 | std::uint64_t{rule.entry} << 8 | static_cast<std::uint64_t>(rule.piece));
  if (series_.size() >= options.max_series && !series_index_.find(key)) return false;
  const auto number = owner_of(owner, options.max_ranks);
  if (!number) return false;
  series.owner = *number;
  series.value = number_value(sample.number);
  const auto [at, added] = series_index_.find_or_add(key, static_cast<std::uint32_t>(series_.size()));
  if (added) series_.push_back(series);
  else series_[at] = series;
  return true;
}

}  // namespace warmroute::metrics
