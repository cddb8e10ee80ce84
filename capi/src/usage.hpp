/// What the parts of accounting share: reports, costs and events, there and back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support.hpp"
#include "warmroute/usage/journal.hpp"
#include "warmroute/usage/keys.hpp"
#include "warmroute/usage/ledger.hpp"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/usage.hpp"

/// One table for all who took it out of a slot: the last one frees it.
struct wr_price_table {
  explicit wr_price_table(std::shared_ptr<warmroute::PriceTable> mine) noexcept : table(mine), own(mine.get()) {}
  explicit wr_price_table(std::shared_ptr<const warmroute::PriceTable> of_slot) noexcept : table(std::move(of_slot)) {}
  wr_price_table(const wr_price_table&) = delete;
  wr_price_table& operator=(const wr_price_table&) = delete;

  std::shared_ptr<const warmroute::PriceTable> table;
  warmroute::PriceTable* own = nullptr;  // null: of a slot, or was put into one
  std::atomic<std::size_t> holders{1};
};

struct wr_keys {
  explicit wr_keys(const warmroute::KeySetOptions& options) : set(options) {}
  warmroute::KeySet set;
};

struct wr_limits {
  explicit wr_limits(const warmroute::LimitOptions& options) : limits(options) {}
  warmroute::Limits limits;
};

struct wr_journal {
  warmroute::Journal journal;
  std::string directory;
};

struct wr_journal_reader {
  warmroute::JournalReader reader;
  bool read = false;  // whether `record` is one
  warmroute::JournalRecord record;
  // The record as C sees it.
  wr_usage_event event = WR_USAGE_EVENT_INIT;
  wr_usage_report report = WR_USAGE_REPORT_INIT;
  wr_cost cost = WR_COST_INIT;
};

namespace warmroute::capi {

/// One holder less.
void let_go(wr_price_table* table) noexcept;

inline UsageCount count_in(std::int64_t count) noexcept {
  return count == WR_UNKNOWN ? UsageCount{} : UsageCount{count};
}
inline std::int64_t count_out(const UsageCount& count) noexcept { return count.value_or(WR_UNKNOWN); }

/// Between the counts of a C report and a Usage, one way or the other.
void read_counts(const wr_usage_report& r, Usage& out) noexcept;
void fill_counts(wr_usage_report& out, const Usage& usage) noexcept;
/// Everything but struct_size, reserved and other_models.
void fill_report(wr_usage_report& out, const UsageReport& r) noexcept;

/// As many other models as a meter tells of.
inline constexpr std::size_t kMostOtherModels = 16;
using OtherModels = std::array<OtherModelUsage, kMostOtherModels>;

/// returns: OK, or why a report cannot be read. lifetime: `out` has views of the caller's strings, and of `others`.
wr_status read_report(const wr_usage_report* given, UsageReport& out, OtherModels& others, wr_error* err) noexcept;

/// An event of the caller's, its bill in memory of its own.
struct EventInput {
  UsageEvent event;
  std::array<CostLine, kPriceMeterCount> bill{};

  EventInput() = default;
  EventInput(const EventInput&) = delete;
  EventInput& operator=(const EventInput&) = delete;
  /// returns: OK, or why it cannot be read. lifetime: `event` has views of the caller's strings, and of `bill`.
  wr_status read(const wr_usage_event* given, wr_error* err) noexcept;
};

/// Everything but struct_size and reserved.
void fill_cost(wr_cost& out, const Cost& cost) noexcept;
/// A record's event as C sees it; `report` and `cost` are filled and linked to it.
void fill_event(const UsageEvent& event, wr_usage_event& out, wr_usage_report& report, wr_cost& cost) noexcept;

/// A limit as C sees it. lifetime: of strings, as the limit's.
wr_limit_spec limit_spec_of(const LimitSpec& spec) noexcept;

}  // namespace warmroute::capi
