/// Takes snapshots in: verifies, parses and builds everything first, then puts it into a key set, limits, a price slot and
/// a listener. Keeps the last good one on disk, and what was ever revoked beside it.
/// Invariants: a fault anywhere changes nothing; no generation comes twice or goes back, but for a forced roll-back that
/// names the one in force, which is recorded; what was revoked up to some version stays so, through roll-backs and restarts.
/// Does not: start a thread, read a clock, fetch anything (control/source.hpp), stop serving: it has verdicts for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/control/signature.hpp"
#include "warmroute/control/snapshot.hpp"
#include "warmroute/result.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/keys.hpp"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute {

/// The price table in force. A request takes it once and keeps it: costs view their table's names.
/// threads: any; a lock is held for a copy of the pointer alone.
class PriceSlot {
 public:
  [[nodiscard]] std::shared_ptr<const PriceTable> get() const {
    const std::lock_guard lock(mutex_);
    return table_;
  }
  void set(std::shared_ptr<const PriceTable> table) {
    const std::lock_guard lock(mutex_);
    table_.swap(table);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const PriceTable> table_;
};

/// A roll-back that happened.
struct RollbackRecord {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::string reason;
  std::string signed_by;  ///< key_id; empty: unsigned
  WallNanos at{};
};

/// Hears of snapshots. threads: called by whoever applies, one at a time; it must not call the applier.
class SnapshotListener {
 public:
  virtual ~SnapshotListener() = default;
  /// Valid, and nothing has changed yet. An error refuses the whole snapshot.
  virtual Status check(const Snapshot& /*snapshot*/) { return {}; }
  /// In force: keys, limits and prices are in. The routing policy is for the listener to set (Router::set_policy).
  virtual void applied(const Snapshot& /*snapshot*/) {}
  virtual void rolled_back(const RollbackRecord& /*record*/) {}
};

/// What is applied into; whatever is null is left out. lifetime: as long as the applier.
struct ControlTargets {
  KeySet* keys = nullptr;
  Limits* limits = nullptr;
  PriceSlot* prices = nullptr;
  SnapshotListener* listener = nullptr;
};

struct ControlOptions {
  SnapshotTrust trust;
  SnapshotOptions snapshot;
  /// A folder of this process alone, made when absent, for the last good snapshot and what was revoked. Empty: nothing is kept.
  std::string directory;
  std::string price_file;  ///< where a snapshot names none; empty: none
};

struct Applied {
  std::uint64_t generation = 0;
  bool unchanged = false;  ///< the same bytes as those in force: a confirmation
  bool rolled_back = false;
  std::string signed_by;   ///< empty: unsigned
  std::string kept_error;  ///< why the last good snapshot could not be kept; empty: it was
};

struct ControlStatus {
  std::uint64_t generation = 0;      ///< in force; 0: none yet
  std::uint64_t top_generation = 0;  ///< the highest that ever was: what comes next must be above it
  WallNanos issued_at{};
  Nanos age{};           ///< since control was last heard of; the greatest value: never
  Nanos max_age{};       ///< 0: no limit
  bool expired = false;  ///< older than max_age
  OnExpired on_expired = OnExpired::serve;
  bool from_disk = false;     ///< in force is the last good one, and control was not heard of since
  std::size_t keys = 0;       ///< not revoked
  std::size_t revoked = 0;    ///< remembered, in this and former snapshots
  std::uint64_t applied = 0;  ///< since the start, roll-backs included
  std::uint64_t confirmed = 0;
  std::uint64_t refused = 0;
  std::uint64_t rollbacks = 0;
  std::uint64_t keep_failures = 0;  ///< the folder could not be written
  Code last_code = Code::ok;        ///< of the last apply or load
  std::string last_error;           ///< of the last one that failed; stays
};

/// threads: any for every call; changes take turns, status() does not wait for them.
class SnapshotApplier {
 public:
  SnapshotApplier(ControlOptions options, ControlTargets targets);
  ~SnapshotApplier();
  SnapshotApplier(const SnapshotApplier&) = delete;
  SnapshotApplier& operator=(const SnapshotApplier&) = delete;

  /// At the start, before anything else: reads the folder and applies the last good snapshot, verified anew; its age counts
  /// from when control was last heard of. returns: false: there is none. errors: those of apply, of a damaged one: go on
  /// without it, control will send another; what was revoked is known all the same where that file is whole.
  Result<bool> load_last_good(UsageTime now);

  /// errors: those of verify_snapshot and parse_snapshot; stale: not newer than what was, or a roll-back from another
  /// generation; what prices, targets and listener say. Nothing has changed then.
  /// cost: 0.15 s of a core for 10^5 keys, 1.8 s for 10^6 (bench_keys; these need SnapshotOptions::max_bytes of 256 MiB);
  /// readers go on.
  Result<Applied> apply(std::string_view bytes, UsageTime now);

  /// Control was heard of and has nothing new.
  void confirm(UsageTime now);

  /// Revokes at once, beside control, for ever or up to a version; kept on disk. errors: invalid_argument; io: it is in force,
  /// and not on disk.
  Status revoke(std::string_view public_id, std::uint64_t version = kRevokedForever);

  [[nodiscard]] ControlStatus status(Nanos now) const;
  /// All that are remembered, oldest first, across restarts (the last 1,000).
  [[nodiscard]] std::vector<RollbackRecord> rollbacks() const;

  /// For FileSourceOptions: `user` is the applier.
  static Status on_bytes(void* user, std::string_view bytes, UsageTime now);
  static void on_same(void* user, UsageTime now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Appends families `warmroute_control_*`: generation, age, expired, counters. In lib.
void append_prometheus(const ControlStatus& status, std::string& out);

}  // namespace warmroute
