// The series of one page that a table wants, each once: a repeated series has its last value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/metrics_names.hpp"
#include "ingest/metrics_text.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute::metrics {

// 64-bit hashes to numbers; keys that are equal are the same. clear() is O(1), memory is kept.
class KeyIndex {
 public:
  void clear();
  // returns: the key's number, and whether it is new; then it is `fresh`.
  std::pair<std::uint32_t, bool> find_or_add(std::uint64_t key, std::uint32_t fresh);
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t key) const noexcept;

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t value = 0;
    std::uint32_t round = 0;  // free unless it is the index's
  };
  void grow();

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::uint32_t round_ = 0;
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) noexcept;

// Whose a series is, as its labels say.
struct Owner {
  std::string_view model;  // raw; empty: no label
  std::optional<std::uint32_t> rank;
  std::uint16_t table = 0;

  friend bool operator==(const Owner&, const Owner&) = default;
};

struct Series {
  double value = 0;
  double le = 0;           // of a bucket
  std::uint64_t part = 0;  // which part of a split row (0: the total), or which histogram
  std::string_view text;   // of value_label, raw
  std::uint32_t owner = 0;
  std::uint16_t row = 0;
  std::uint16_t entry = 0;
  Piece piece = Piece::value;
};

class SeriesStore {
 public:
  void start(std::size_t tables, std::optional<std::uint16_t> only_table);
  // returns: false if a row wants the sample but cannot have it: its rank or bound is none, or a limit is reached.
  bool add(std::span<const EngineMetricsTable> tables, std::span<const Rule> rules, const Sample& sample,
           const EngineMetricsOptions& options);

  [[nodiscard]] bool seen(std::size_t table) const noexcept { return seen_[table] != 0; }
  [[nodiscard]] std::span<const Owner> owners() const noexcept { return owners_; }
  [[nodiscard]] std::span<const Series> series() const noexcept { return series_; }

 private:
  bool add_one(const EngineMetricsTable& table, const Rule& rule, const Sample& sample,
               const EngineMetricsOptions& options);
  std::optional<std::uint32_t> owner_of(const Owner& owner, std::size_t limit);

  std::optional<std::uint16_t> only_table_;
  std::vector<std::uint8_t> seen_;
  std::vector<Owner> owners_;
  std::vector<Series> series_;
  KeyIndex owner_index_;
  KeyIndex series_index_;
  std::uint32_t last_owner_ = 0;
};

}  // namespace warmroute::metrics
