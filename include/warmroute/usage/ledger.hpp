/// Who used how much: sums of events per key, team, model, replica, class and time window, with money, the cache's hit
/// ratio and what caching saved; from events as they end, or read back from a journal, also under other prices.
/// Invariants: every event is in exactly one row; unknown is counted as unknown and never as 0; money is exact; a snapshot
/// holds an event wholly or not at all.
/// Does not: read a clock, keep events, see duplicates (a journal's reader gives each once; see JournalCursor), persist.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/usage/journal.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute {

/// An exact sum of money. Invariant: value = usd + picos x 1e-12, 0 <= picos < 1e12.
struct LedgerMoney {
  std::int64_t usd = 0;
  std::int64_t picos = 0;

  void add(std::int64_t more_picos) noexcept {
    constexpr std::int64_t kUsd = 1'000'000'000'000;
    usd += more_picos / kUsd;
    picos += more_picos % kUsd;
    if (picos < 0) {
      picos += kUsd;
      --usd;
    } else if (picos >= kUsd) {
      picos -= kUsd;
      ++usd;
    }
  }
  void add(LedgerMoney other) noexcept {
    usd += other.usd;
    add(other.picos);
  }
  [[nodiscard]] double value() const noexcept { return static_cast<double>(usd) + static_cast<double>(picos) * 1e-12; }
  friend constexpr auto operator<=>(LedgerMoney, LedgerMoney) noexcept = default;
};

/// units: tokens, unless the name says otherwise. Token sums are of what is known.
struct LedgerSums {
  std::int64_t attempts = 0;
  std::int64_t incomplete = 0;     ///< attempts whose last word was not heard
  std::int64_t errors = 0;         ///< attempts
  std::int64_t unknown_usage = 0;  ///< attempts of which a side is unknown
  std::int64_t unknown_cost = 0;   ///< attempts without a price: `cost` lacks them
  std::int64_t input_tokens = 0;
  std::int64_t cached_input_tokens = 0;
  std::int64_t cache_write_input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t reasoning_output_tokens = 0;
  std::int64_t cache_reported_input_tokens = 0;  ///< input of attempts that said how much was cached
  LedgerMoney cost;
  /// What the same tokens would have cost without a cache, less what they cost (writes may make it negative); of
  /// attempts that the ledger's prices know. Needs LedgerOptions::prices.
  LedgerMoney saved_by_cache;

  /// returns: cached share of the input that could be told, 0..1; nullopt: nothing could.
  [[nodiscard]] std::optional<double> hit_ratio() const noexcept {
    if (cache_reported_input_tokens == 0) return std::nullopt;
    return static_cast<double>(cached_input_tokens) / static_cast<double>(cache_reported_input_tokens);
  }
  void add(const LedgerSums& other) noexcept;
  friend bool operator==(const LedgerSums&, const LedgerSums&) noexcept = default;
};

/// What rows are told apart by. Bits; combine with |.
enum class LedgerBy : std::uint8_t { none = 0, key = 1, team = 2, model = 4, replica = 8, class_id = 16, window = 32 };
constexpr LedgerBy operator|(LedgerBy a, LedgerBy b) noexcept {
  return static_cast<LedgerBy>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
inline constexpr LedgerBy kLedgerByAll{63};

/// Names that were not asked for are empty, the window 0.
struct LedgerRow {
  std::string key_id;
  std::string team_id;
  std::string model;  ///< that answered; where that was not said, that was asked for
  std::string replica_id;
  std::string class_id;
  WallNanos window_start{};
  LedgerSums sums;
};

struct LedgerOptions {
  LedgerBy by = kLedgerByAll;
  Nanos window = seconds(3'600);       ///< windows begin at its multiples since 1970, UTC; by the end of an event
  std::size_t max_rows = 1'000'000;    ///< what comes beyond goes to one row without names: overflowed()
  const PriceTable* prices = nullptr;  ///< for saved_by_cache and reprice. lifetime: of the ledger
  bool reprice = false;                ///< costs are those of `prices`, not the events': what if
};

/// threads: any.
class Ledger {
 public:
  explicit Ledger(const LedgerOptions& options = {});
  ~Ledger();
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;

  /// One event that ended (`incomplete`: recovered or estimated). alloc: for a new row.
  void add(const UsageEvent& event, bool incomplete = false);
  /// All that a reader has left. returns: events. errors: those of JournalReader::next; what came before is added.
  Result<std::uint64_t> read(JournalReader& reader);

  /// Sums by any of the ledger's own dimensions, in the order of their names. Writers wait for a 64th of it at most.
  [[nodiscard]] std::vector<LedgerRow> snapshot(LedgerBy by = kLedgerByAll) const;
  [[nodiscard]] LedgerSums total() const;
  /// Drops windows that ended by `before`. returns: rows.
  std::size_t forget_before(WallNanos before);
  [[nodiscard]] std::size_t rows() const;
  [[nodiscard]] std::uint64_t overflowed() const noexcept;  ///< events in the row without names

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
