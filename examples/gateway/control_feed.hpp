/// Brings control's snapshots into the books and the router: the last good one from disk at the start, then whatever the file holds.
/// Invariants: serving never waits for it; a snapshot that is broken, older or half written changes nothing, and is said.
/// threads: any; the file is watched by a thread of FileSourceThread's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gateway/accounting.hpp"
#include "warmroute/control/applier.hpp"
#include "warmroute/control/source.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

class ControlFeed final : private SnapshotListener {
 public:
  /// Looks at the file once before it returns. No snapshot anywhere is no error: keys are refused with 503 until there is one.
  /// errors: invalid_argument, io: of a file with a public key. lifetime: books and router outlive it.
  static Result<std::unique_ptr<ControlFeed>> start(const UsageConfig& config, Accounting& books, Router& router,
                                                    LogSink log);

  [[nodiscard]] ControlStatus status() const { return applier_->status(now()); }
  void append_prometheus(std::string& out) const;

 private:
  ControlFeed(Accounting& books, Router& router, LogSink log) : books_(books), router_(router), log_(log) {}
  Status check(const Snapshot& snapshot) override;
  void applied(const Snapshot& snapshot) override;
  void rolled_back(const RollbackRecord& record) override;

  Accounting& books_;
  Router& router_;
  const LogSink log_;
  std::optional<SnapshotApplier> applier_;
  std::optional<FileSourceThread> source_;  // ends first
};

}  // namespace warmroute::gateway
