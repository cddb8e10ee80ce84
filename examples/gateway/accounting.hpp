/// The gateway's books, shared by all threads: whose key it is, what may be used, what was used, what it cost. One request's
/// entries are made by Account (account.hpp); control's snapshots come in by ControlFeed (control_feed.hpp).
/// Invariant: what is in the journal is in the ledger, also after a restart; budgets are charged with it again then.
/// Does not: forward anything. Without a configuration of its own it counts nothing and lets everything pass.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/ticket_guard.hpp"
#include "gateway/usage_config.hpp"
#include "warmroute/control/applier.hpp"
#include "warmroute/control/sink.hpp"
#include "warmroute/observe/log.hpp"
#include "warmroute/usage/keys.hpp"
#include "warmroute/usage/ledger.hpp"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/request_side.hpp"

namespace warmroute::gateway {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// A request that is not served, as its client is told.
struct Refusal {
  unsigned status = 503;
  std::string type, code, message;
  Headers headers{};
};

/// The gateway's two clocks.
UsageTime usage_now();

/// What was denied or went wrong. Plain atomics, see Counters.
struct AccountCounters {
  using Count = std::atomic<std::uint64_t>;
  std::array<Count, 11> keys{};   ///< by KeyVerdict
  std::array<Count, 7> limits{};  ///< by LimitOutcome
  Count shadow_denied{0};
  Count hard_stops{0};       ///< streams that were ended because a budget was gone
  Count journal_refused{0};  ///< requests that were not served because the journal took no record
  Count drained{0};          ///< answers read to their end after their client had left
  Count drains_cut{0};       ///< of those, given up
  Count usage_hidden{0};     ///< usage chunks that no client had asked for and none got
};

class Accounting {
 public:
  /// `models`: those of the replicas; `max_request`: the longest a request takes; `log`: lives as long.
  /// Opens the journal, which writes down what was left open. errors: io, and those of the price file and the key files.
  static Result<std::unique_ptr<Accounting>> open(const UsageConfig& config, const std::vector<std::string>& models,
                                                  Nanos max_request, LogSink log);
  ~Accounting();
  Accounting(const Accounting&) = delete;
  Accounting& operator=(const Accounting&) = delete;

  /// Once, when control's limits and prices are in: reads the journal into the ledger, charges the windows of limits with it,
  /// and begins to hand over. errors: io.
  Status begin_serving();

  [[nodiscard]] bool counts() const noexcept { return config_.counts(); }
  [[nodiscard]] bool checks_keys() const noexcept { return !config_.control.empty(); }
  [[nodiscard]] const UsageConfig& config() const noexcept { return config_; }
  /// What the model servers are sent as key; empty: what the client sent, or nothing where keys are checked.
  [[nodiscard]] const std::string& upstream_key() const noexcept { return upstream_key_; }

  /// returns: the name under which limits, estimates and prices know a model; "*" for what nobody has heard of, so that clients
  /// cannot make scopes by inventing names.
  [[nodiscard]] std::string model_name(std::string_view model) const;
  /// Names that control speaks of: those of limits, and aliases.
  void set_control_models(std::set<std::string> models, std::map<std::string, std::string> aliases);
  TokenEstimator& estimator(const std::string& model);
  /// shape: key, team, model; fewer where a name is empty. errors: capacity.
  Result<std::vector<ScopeId>> scopes(std::string_view key, std::string_view team, std::string_view model);
  /// returns: an id that no other operation has, in this process or another.
  std::string next_operation();

  KeySet& keys() noexcept { return keys_; }
  Limits& limits() noexcept { return limits_; }
  PriceSlot& prices() noexcept { return prices_; }
  Ledger& ledger() noexcept { return *ledger_; }
  Journal* journal() noexcept { return journal_ ? &*journal_ : nullptr; }
  AccountCounters& counters() noexcept { return counters_; }
  /// An event that ended. `number`: of the journal, 0: none.
  void record(std::uint64_t number, const UsageEvent& event);

  /// Appends families `warmroute_gateway_*`, and those of control's hand-over.
  void append_prometheus(std::string& out) const;
  /// returns: the JSON of /usage. errors: invalid_value: the query.
  Result<std::string> usage_page(std::string_view query) const;

  /// Ends leases, asks the disk, forgets what is old. Every 100 ms by the gateway; a disk that is slow delays only this.
  void upkeep();
  /// Hands over what there is, at most so long, and asks the disk.
  void close(Nanos patience);

 private:
  Accounting(const UsageConfig& config, Nanos max_request, LogSink log);
  Status read_files();
  Status open_journal();
  void charge_again(const UsageEvent& event, UsageTime present);

  const UsageConfig config_;
  const LogSink log_;
  KeySet keys_;
  Limits limits_;
  PriceSlot prices_;
  std::shared_ptr<const PriceTable> first_prices_;  // the ledger's: what the cache saved is told by these
  std::optional<Journal> journal_;
  std::optional<Ledger> ledger_;
  std::unique_ptr<JsonLinesSink> sink_;
  std::optional<HandoverThread> handover_;
  std::atomic<bool> journal_bad_{false};
  AccountCounters counters_;
  std::string upstream_key_;
  std::string operation_prefix_;
  std::atomic<std::uint64_t> operations_{0};
  Nanos synced_at_{};

  mutable std::mutex mutex_;  // of what follows
  std::set<std::string> models_, control_models_;
  std::map<std::string, std::string> aliases_;
  std::map<std::string, std::unique_ptr<TokenEstimator>> estimators_;
};

}  // namespace warmroute::gateway
