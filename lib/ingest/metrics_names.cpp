#include "ingest/metrics_names.hpp"

#include <algorithm>
#include <bit>

#include "warmroute/detail/xxh3.hpp"

namespace warmroute::metrics {

void NameTable::add(std::string_view name, Rule rule) {
  rule.name_begin = static_cast<std::uint32_t>(text_.size());
  rule.name_size = static_cast<std::uint32_t>(name.size());
  text_ += name;
  rules_.push_back(rule);
}

void NameTable::build(std::span<const EngineMetricsTable> tables) {
  text_.clear();
  rules_.clear();
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const EngineMetricsTable& table = tables[t];
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      for (std::size_t p = 0; p < table.prefixes.size(); ++p) {
        const std::string whole = table.prefixes[p] + table.rows[r].name;
        Rule rule;
        rule.table = static_cast<std::uint16_t>(t);
        rule.row = static_cast<std::uint16_t>(r);
        rule.entry = static_cast<std::uint16_t>(r * table.prefixes.size() + p);
        if (table.rows[r].field != EngineField::ttft) {
          add(whole, rule);
          continue;
        }
        rule.piece = Piece::bucket;
        add(whole + "_bucket", rule);
        rule.piece = Piece::sum;
        add(whole + "_sum", rule);
        rule.piece = Piece::count;
        add(whole + "_count", rule);
      }
    }
  }
  std::stable_sort(rules_.begin(), rules_.end(), [this](const Rule& a, const Rule& b) { return name(a) < name(b); });
  slots_.assign(std::bit_ceil(4 * rules_.size() + 1), Slot{});
  for (std::size_t i = 0; i < rules_.size();) {
    std::size_t end = i + 1;
    while (end < rules_.size() && name(rules_[end]) == name(rules_[i])) ++end;
    const std::uint64_t hash = XXH3_64bits(name(rules_[i]).data(), rules_[i].name_size);
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].end != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {hash, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(end)};
    i = end;
  }
}

std::span<const Rule> NameTable::find(std::string_view wanted) const noexcept {
  const std::uint64_t hash = XXH3_64bits(wanted.data(), wanted.size());
  for (std::size_t at = hash & (slots_.size() - 1); slots_[at].end != 0; at = (at + 1) & (slots_.size() - 1)) {
    const Slot& slot = slots_[at];
    if (slot.hash == hash && name(rules_[slot.begin]) == wanted) {
      return {rules_.data() + slot.begin, slot.end - slot.begin};
    }
  }
  return {};
}

}  // namespace warmroute::metrics
