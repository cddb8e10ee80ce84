// The tables, compiled: from a sample's name to the rows that want it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute::metrics {

inline constexpr std::size_t kMaxPrefixes = 8;
inline constexpr std::size_t kMaxRows = 64;
inline constexpr std::size_t kMaxTables = 64;

enum class Piece : std::uint8_t { value = 0, bucket = 1, sum = 2, count = 3 };

// One name of one row.
struct Rule {
  std::uint32_t name_begin = 0;  // in NameTable's text
  std::uint32_t name_size = 0;
  std::uint16_t table = 0;
  std::uint16_t row = 0;
  std::uint16_t entry = 0;  // row * prefixes + prefix: the lower, the better
  Piece piece = Piece::value;
};

// Open addressing over all names of all tables. A look-up is one hash of the name and, as a rule, one comparison.
class NameTable {
 public:
  void build(std::span<const EngineMetricsTable> tables);
  // returns: the rules of that name, empty if there are none. cost: XXH3 of the name.
  [[nodiscard]] std::span<const Rule> find(std::string_view name) const noexcept;

 private:
  [[nodiscard]] std::string_view name(const Rule& rule) const noexcept {
    return std::string_view(text_).substr(rule.name_begin, rule.name_size);
  }
  void add(std::string_view name, Rule rule);

  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t begin = 0;  // rules_[begin, end) have one name
    std::uint32_t end = 0;    // 0: free
  };
  std::string text_;
  std::vector<Rule> rules_;
  std::vector<Slot> slots_;
};

}  // namespace warmroute::metrics
