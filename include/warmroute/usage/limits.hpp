/// How much a client may use: requests, tokens, money and concurrency, per key, team, model or any other label, as rates
/// and as calendar budgets. A request reserves what it may use before it leaves and settles what it used after.
/// Invariants: all limits of all scopes are charged or none; what is not settled is bounded by what was reserved; the truth
/// goes into the window that was charged, and no refund leaks into a later one; a rate stands after a refund as if the truth
/// had been charged from the start; a ticket is settled once, or its lease ends.
/// Does not: read a clock, estimate (usage/request_side.hpp), price (usage/price.hpp), outlive the process, share state
/// between processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/usage.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute {

/// What is counted. Numbers are fixed and only appended.
enum class LimitUnit : std::uint8_t {
  requests = 0,
  input_tokens = 1,
  output_tokens = 2,
  total_tokens = 3,
  cost_nanos = 4,  ///< 1e-9 USD, each request's cost rounded up
};
inline constexpr std::size_t kLimitUnitCount = 5;

/// How it is limited. Numbers are fixed and only appended.
enum class LimitKind : std::uint8_t {
  rate = 0,         ///< GCRA: `amount` per `period` of the steady clock, `burst` at once
  budget = 1,       ///< `amount` per calendar window of the wall clock
  concurrency = 2,  ///< `amount` requests at once
};

enum class CalendarUnit : std::uint8_t { minute = 0, hour = 1, day = 2, week = 3, month = 4, year = 5 };

/// Windows that follow one another without gaps: from `anchor`, each `count` units, in a time zone. Days and longer keep
/// the anchor's time of day through daylight saving; minutes and hours are of equal length.
struct CalendarWindow {
  CalendarUnit unit = CalendarUnit::month;
  std::int32_t count = 1;
  /// Where a window begins. units: seconds since 1970-01-01T00:00:00 on that zone's own clock. 0: midnight of the first
  /// day of a year or month; weeks: Monday.
  std::int64_t anchor_local_seconds = 0;
  std::string time_zone = "UTC";  ///< of the tz database, as installed, or UTC
};

struct LimitSpec {
  std::string name;  ///< of this limit within its scope; counters stay with the name when limits are set anew
  LimitKind kind = LimitKind::rate;
  LimitUnit unit = LimitUnit::requests;
  std::int64_t amount = 0;
  Nanos period = seconds(60);  ///< of a rate
  std::int64_t burst = 0;      ///< of a rate; 0: amount
  CalendarWindow window{};     ///< of a budget
  /// What a cached input token counts, in thousandths of an input token; some providers count 0.
  std::int32_t cached_weight_permille = 1'000;
  bool shadow = false;     ///< counts and reports, never denies
  bool hard_stop = false;  ///< of a budget: progress() stops a stream that is past its reservation when it is gone
};

/// What a request may use or has used. Unknown: 0 in an estimate; in settle(), what was estimated.
struct LimitUse {
  UsageCount input_tokens;  ///< cached ones included
  UsageCount cached_input_tokens;
  UsageCount output_tokens;
  UsageCount cost_picos;  ///< units: 1e-12 USD
};

/// One value of one dimension, e.g. team "blue". Of one Limits object.
enum class ScopeId : std::uint32_t {};
inline constexpr ScopeId kNoScope{0xffff'ffff};
/// The handle of one reservation. Zero is never issued.
enum class LimitTicket : std::uint64_t {};
inline constexpr LimitTicket kNoLimitTicket{0};
inline constexpr std::size_t kMaxScopesPerRequest = 8;
inline constexpr std::size_t kMaxLimitsPerScope = 8;
inline constexpr std::size_t kMaxLimitsPerRequest = 24;  ///< of all its scopes together

/// Numbers are fixed and only appended.
enum class LimitOutcome : std::uint8_t {
  allowed = 0,
  rate_exceeded = 1,      ///< time heals it: retry_after
  too_many_at_once = 2,   ///< likewise; when, nobody knows
  budget_exceeded = 3,    ///< a new window heals it: reset. No retry-after: clients would storm
  larger_than_limit = 4,  ///< the request alone exceeds a limit: it will never pass
  no_room = 5,            ///< too many reservations are open (LimitOptions): ours to mend
  invalid = 6,            ///< a scope that does not exist, too many scopes or limits: the caller's bug
};

/// What is left of the tightest limit of one unit, after this request.
struct LimitLeft {
  std::int64_t amount = -1;  ///< of the limit; -1: there is none
  std::int64_t remaining = 0;
  Nanos reset{};  ///< until all of it is there again
};

struct LimitDecision {
  LimitOutcome outcome = LimitOutcome::allowed;
  LimitTicket ticket = kNoLimitTicket;
  ScopeId scope = kNoScope;    ///< that denied
  std::uint32_t limit = 0;     ///< which of its limits(): the budget, else what takes longest to heal
  Nanos retry_after{-1};       ///< the longest of all that deny; -1: time does not heal it, or a budget denied
  Nanos reset{-1};             ///< of a budget: when its window ends
  bool may_stop = false;       ///< a hard_stop is among its limits: progress() is worth asking
  bool shadow_denied = false;  ///< a limit in shadow mode would have denied
  ScopeId shadow_scope = kNoScope;
  std::uint32_t shadow_limit = 0;
  std::array<LimitLeft, kLimitUnitCount> left{};  ///< by unit; shadows and concurrency left out

  [[nodiscard]] bool allowed() const noexcept { return outcome == LimitOutcome::allowed; }
};

/// returns: 200, 429 (rates, concurrency), `budget_status` (402 or 403) for budgets, 400 (never passes), 503 (no room), 500.
int limit_status(LimitOutcome outcome, int budget_status = 402) noexcept;

/// Headers in OpenAI's manner: x-ratelimit-{limit,remaining,reset}-{requests,tokens,input-tokens,output-tokens}, reset as a
/// duration ("12ms", "6m0s"); retry-after in whole seconds where time heals.
std::vector<std::pair<std::string, std::string>> limit_headers(const LimitDecision& decision);

enum class LimitProgress : std::uint8_t { go_on = 0, stop = 1, stale = 2 };

/// What an orphan's reservation becomes when its lease ends; its place in concurrency limits is freed in any case.
enum class OrphanCharge : std::uint8_t {
  keep = 0,    ///< the estimate stays charged: the provider may well bill it
  refund = 1,  ///< as if it had never left
};

struct LimitOptions {
  Nanos lease = seconds(600);  ///< since reserve, progress or extend
  OrphanCharge orphans = OrphanCharge::keep;
  std::size_t max_scopes = 4'000'000;
  std::size_t max_reservations =
      1'000'000;                         ///< open at once, shared among 64 shards of threads; 1.3 KiB each, as needed
  Nanos concurrency_retry = seconds(1);  ///< what too_many_at_once suggests
};

struct LimitStatistics {
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t shadow_denied = 0;
  std::uint64_t expired = 0;  ///< leases that ended
  std::uint64_t stale = 0;    ///< tickets used again or too late
  std::uint64_t open = 0;     ///< reservations
};

/// threads: any; reserve locks its scopes in one order, shortly. alloc: reserve and settle none, once the tables have grown.
class Limits {
 public:
  explicit Limits(const LimitOptions& options = {});
  ~Limits();
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  /// The scope of a value, made when it is new. Keep the id: finding it costs a lock and a hash. lifetime: of the object.
  /// errors: invalid_argument: an empty dimension; capacity: max_scopes.
  Result<ScopeId> scope(std::string_view dimension, std::string_view value);
  /// Limits of every value of a dimension that has none of its own, present and future. errors: as set_limits.
  Status set_default_limits(std::string_view dimension, std::span<const LimitSpec> limits);
  /// Limits of one scope. errors: invalid_argument (the fault named), not_found. Nothing changes then.
  Status set_limits(ScopeId scope, std::span<const LimitSpec> limits);
  [[nodiscard]] std::vector<LimitSpec> limits(ScopeId scope) const;
  /// returns: dimension and value; empty ones of an unknown scope.
  [[nodiscard]] std::pair<std::string, std::string> name(ScopeId scope) const;
  /// What of a limit is charged now: units used in the window, in flight at once, or not yet drained of a rate.
  /// errors: not_found.
  Result<std::int64_t> used(ScopeId scope, std::string_view limit, UsageTime now) const;

  /// One request and its estimate against all limits of all scopes. Scopes named twice count once.
  /// cost: bench_limits.
  LimitDecision reserve(std::span<const ScopeId> scopes, const LimitUse& estimate, UsageTime now);
  /// What a stream has used so far. Charges what exceeds the reservation to hard_stop budgets, and says whether to stop: a
  /// request may use what it reserved. Renews the lease.
  LimitProgress progress(LimitTicket ticket, const LimitUse& so_far, UsageTime now);
  /// Renews the lease. errors: stale.
  Status extend(LimitTicket ticket, Nanos now);
  /// The truth. Unknown counts stay as estimated. errors: stale: settled, released or expired before; nothing happens.
  Status settle(LimitTicket ticket, const LimitUse& actual, UsageTime now);
  /// The request never left, or nothing is to be paid for it: all is given back, the request too. errors: stale.
  Status release(LimitTicket ticket, UsageTime now);
  /// Ends leases that are over, at most so many. returns: how many. Every call above ends a few by itself.
  std::size_t advance(UsageTime now, std::size_t most = ~std::size_t{0});
  [[nodiscard]] LimitStatistics statistics() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute
