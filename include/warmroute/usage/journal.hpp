/// The record of what was used that survives a crash: `begin` before a request leaves, `end` with its usage after, in
/// append-only segments of checksummed records. What began and never ended is handed over as incomplete, with its estimate.
/// Invariants: a record is in the kernel before a call returns, so a killed process loses nothing (a lost machine: see
/// JournalSync); every event has an id of its own, for ever; hand-over is at least once, from an acknowledged cursor on;
/// a torn tail is cut, never fatal; nothing is deleted before it is acknowledged.
/// Does not: read a clock, send anything anywhere, hold prompts or answers. One process writes a directory at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/usage.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute {

/// One attempt of one operation: retries and fallbacks are attempts with usage of their own under one operation_id.
/// lifetime: views are the caller's; of what a reader gives, until its next call.
struct UsageEvent {
  std::string_view operation_id{};
  std::uint32_t attempt = 0;
  WallNanos start_time{};
  WallNanos end_time{};  ///< of an end
  std::string_view key_id{};
  std::string_view team_id{};
  std::string_view provider{};   ///< gen_ai.provider.name
  std::string_view operation{};  ///< gen_ai.operation.name: chat, embeddings, ...
  std::string_view request_model{};
  std::string_view response_model{};
  std::string_view response_id{};
  std::string_view replica_id{};
  std::string_view class_id{};
  Usage usage;  ///< of a begin: the estimate
  bool complete = false;
  bool error = false;
  UsageSource source = UsageSource::none;
  UsageAnomalies anomalies;
  std::string_view finish_reason{};
  std::string_view service_tier{};
  std::optional<std::int64_t> cost_picos;  ///< units: 1e-12 USD; nullopt: unknown
  CostSource cost_source = CostSource::unknown;
  std::string_view price_key{};
  std::string_view price_table_version{};
  std::span<const CostLine> bill{};  ///< at most kPriceMeterCount
};

/// Numbers are fixed and only appended.
enum class JournalKind : std::uint8_t {
  begin = 1,
  end = 2,
  incomplete = 3,  ///< written by recovery: it began, and the process ended before it did
  withdrawn = 4,   ///< it never left: nothing is handed over
};

struct JournalRecord {
  JournalKind kind = JournalKind::begin;
  std::uint64_t number = 0;  ///< of the event: the same in begin and end, never used again
  std::string event_id;  ///< unique beyond this journal; consumers drop what they have seen (CloudEvents: source + id)
  UsageEvent event;
};

/// When the disk is asked to write, for machines that lose power. A killed process loses nothing in any case.
enum class JournalSync : std::uint8_t {
  none = 0,     ///< when a segment is full, and at the end
  batched = 1,  ///< after sync_bytes, or in sync()
  each = 2,     ///< before each call returns
};

/// When the disk is full or fails.
enum class JournalFull : std::uint8_t {
  refuse = 0,          ///< begin says io: serve nothing that cannot be billed
  serve_unbilled = 1,  ///< begin gives event 0, and JournalStatistics::unbilled rises: make it loud
};

struct JournalOptions {
  JournalSync sync = JournalSync::batched;
  std::uint64_t sync_bytes = 1'000'000;
  std::uint64_t segment_bytes = 64'000'000;
  std::uint64_t max_bytes = 0;  ///< of all segments; beyond it the disk counts as full. 0: no limit
  JournalFull on_full = JournalFull::refuse;
  std::size_t max_held_ends = 100'000;  ///< ends in memory that the disk did not take
};

/// A place between two records. Orders as the records do.
struct JournalCursor {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;  ///< units: bytes
  friend constexpr auto operator<=>(JournalCursor, JournalCursor) noexcept = default;
};

struct JournalStatistics {
  std::uint64_t begins = 0;
  std::uint64_t ends = 0;
  std::uint64_t recovered = 0;   ///< incomplete ones, when the journal was opened
  std::uint64_t torn_bytes = 0;  ///< cut off a tail, when it was opened
  std::uint64_t damaged = 0;     ///< segments with a bad record before their end
  std::uint64_t unbilled = 0;    ///< gauge of shame: requests let through without a record
  std::uint64_t lost_ends = 0;   ///< ends that neither disk nor memory took; their begins will be incomplete
  std::uint64_t held_ends = 0;   ///< in memory, to be written with the next record
  std::uint64_t open = 0;        ///< began, not ended
  std::uint64_t bytes = 0;       ///< of all segments
  std::uint64_t syncs = 0;
  bool full = false;  ///< the last write failed
};

/// threads: any; appends take turns. cost: bench_journal; one write of 100 to 400 bytes.
class Journal {
 public:
  /// Opens or makes a journal in a directory, cuts a torn tail and writes down what was left open. A cursor behind records
  /// that a machine lost is set back to the end that it left.
  /// errors: io; already_exists: another process has it open; malformed: the directory holds something else.
  static Result<Journal> open(const std::string& directory, const JournalOptions& options = {});
  ~Journal();
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;

  /// Before the request leaves. `estimate.usage` is what becomes of it if nothing more is heard.
  /// returns: the event's number; 0: unbilled. errors: io (refuse); invalid_argument: views of more than 64 KiB together.
  Result<std::uint64_t> begin(const UsageEvent& estimate);
  /// After it. `number` 0 is ignored. errors: stale: it ended before, or never began; io: held in memory (held_ends) or
  /// lost (lost_ends); invalid_argument.
  Status end(std::uint64_t number, const UsageEvent& event);
  /// It never left: nothing is handed over for it. errors: as end.
  Status withdraw(std::uint64_t number);
  /// Asks the disk to write. Tries held ends again. errors: io.
  Status sync();

  /// A consumer has everything before `cursor`: it is never handed over again, and segments that lie before it and hold
  /// nothing open are deleted. Going back is ignored. errors: io.
  Status acknowledge(JournalCursor cursor);
  [[nodiscard]] JournalCursor acknowledged() const;
  [[nodiscard]] JournalStatistics statistics() const;

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Reads a journal, also while it is written. threads: one at a time; any number of readers, in any process.
class JournalReader {
 public:
  /// From a cursor: Journal::acknowledged() for a consumer, {} for everything there is. errors: io, malformed.
  static Result<JournalReader> open(const std::string& directory, JournalCursor from = {});
  ~JournalReader();
  JournalReader(JournalReader&&) noexcept;
  JournalReader& operator=(JournalReader&&) noexcept;

  /// The next end or incomplete; begins and what was withdrawn only if asked for. returns: false: no more, for now. errors: io.
  Result<bool> next(JournalRecord& record, bool begins = false);
  [[nodiscard]] JournalCursor cursor() const noexcept;  ///< behind the last record

 private:
  struct Impl;
  explicit JournalReader(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Appends a record as one line of JSON with OpenTelemetry's names (gen_ai.*) where there are any.
void append_json_line(const JournalRecord& record, std::string& out);
/// The names of the columns of FOCUS rows, and a record's rows: one per line of its bill, CSV (RFC 4180), LF. Without a
/// price one row with empty price and consumption, its tokens in x_ columns.
std::string_view focus_header() noexcept;
void append_focus_rows(const JournalRecord& record, std::string& out);

}  // namespace warmroute
