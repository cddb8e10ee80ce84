// From the series of one table to a reading: which rank each belongs to, how several become one, which name wins.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/metrics_series.hpp"
#include "warmroute/ingest/engine_metrics.hpp"

namespace warmroute::metrics {

inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

// Owners to the places of a reading: one per (model, rank), and one behind them for what is nobody's alone.
class Places {
 public:
  void build(std::span<const Owner> owners, std::uint16_t table);

  [[nodiscard]] std::span<const Owner> places() const noexcept { return places_; }
  [[nodiscard]] std::size_t of(std::uint32_t owner) const noexcept {
    return place_of_[owner] == kNone ? places_.size() : place_of_[owner];
  }
  [[nodiscard]] bool shared() const noexcept { return shared_; }
  [[nodiscard]] std::string_view shared_model() const noexcept { return shared_model_; }

 private:
  std::uint32_t add(const Owner& owner);
  void attach(std::uint32_t owner, std::uint32_t place, const Owner& said);
  template <class Fits>
  [[nodiscard]] std::uint32_t only(Fits fits) const;
  void sort();

  std::vector<std::uint32_t> place_of_;  // by owner; kNone: shared, or of another table
  std::vector<Owner> places_;
  std::vector<std::uint32_t> order_;  // scratch of sort()
  std::vector<std::uint32_t> target_;
  std::vector<Owner> sorted_;
  std::string_view shared_model_;
  bool shared_ = false;
  bool mixed_ = false;  // what is shared is of several models
};

class Resolver {
 public:
  // lifetime: of the reading's views, until the next call, and the page's; `engine` is the table's.
  EngineReading resolve(const EngineMetricsTable& table, std::uint16_t number, const SeriesStore& store);

 private:
  // What the series of one entry and place come to. NaN: unknown.
  struct Cell {
    double value = 0;
    double time = 0;                // of the newest
    std::uint32_t series = kNone;   // the newest
    std::uint32_t histograms = 0;   // that are added up here
    std::uint32_t bucketed = 0;     // of those, with buckets
    std::uint32_t order_begin = 0;  // their pieces: order_[begin, end)
    std::uint32_t order_end = 0;
    bool present = false;
    bool whole = false;  // has the total, not parts
  };
  struct Group {  // a part of a row that is split by a label
    std::size_t cell = 0;
    double value = 0;
    bool total = false;
  };
  using Chosen = std::array<std::uint32_t, kEngineFieldCount>;  // cells by field; kNone

  void fold(const EngineMetricsTable& table, std::uint16_t number, const SeriesStore& store);
  void fold_into(const EngineMetricRow& row, const Series& series, std::uint32_t index, std::size_t at);
  void fold_groups();
  void order_histograms(std::span<const Series> series);
  void choose(const EngineMetricsTable& table);
  void reserve(std::span<const Series> series);

  void fill(const Chosen& chosen, std::span<const Series> series, EngineRank& rank);
  void fill_prefix(const EngineMetricsTable& table, std::size_t place, EngineRank& rank) const;
  std::optional<EngineHistogram> histogram(const Cell& cell, std::span<const Series> series);
  std::optional<std::span<const std::string_view>> list(std::uint32_t cell, std::span<const Series> series);
  [[nodiscard]] std::optional<std::int64_t> count(std::uint32_t cell) const;
  [[nodiscard]] std::optional<double> ratio(std::uint32_t cell) const;
  std::string_view text(std::string_view raw);

  Places places_;
  std::size_t entries_ = 0;
  std::vector<Cell> cells_;  // shape: (places + 1) x entries
  std::vector<Group> groups_;
  KeyIndex group_index_;
  KeyIndex histogram_index_;
  std::vector<std::size_t> cell_of_;  // by series
  std::vector<std::uint32_t> order_;  // pieces of histograms, by cell, piece and bound
  std::vector<Chosen> chosen_;        // by place
  std::vector<EngineRank> ranks_;
  std::vector<HistogramBucket> buckets_;  // these three never grow while views of them are out
  std::vector<std::string_view> items_;
  std::string texts_;
};

}  // namespace warmroute::metrics
