/// What the gateway is told of keys, limits, prices and books. Part of the configuration, see config.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warmroute/usage/journal.hpp"
#include "warmroute/usage/request_side.hpp"

namespace warmroute::gateway {

struct UsageConfig {
  std::string control;             ///< snapshot file with keys, limits, prices; empty: nobody is asked for a key
  std::vector<std::string> trust;  ///< public key files of whoever may sign it
  std::vector<std::pair<std::uint32_t, std::string>> peppers;  ///< version and file
  std::string control_dir;  ///< folder for the last good snapshot; empty: it is not kept
  bool allow_unsigned = false;

  std::string prices;      ///< LiteLLM's price file
  std::string journal;     ///< folder
  std::string usage_file;  ///< JSON lines that the journal is handed over to
  JournalOptions journal_options;
  std::chrono::milliseconds journal_sync{200};  ///< how often `batched` asks the disk
  std::int64_t usage_days = 35;                 ///< what the ledger keeps

  std::optional<bool> include_usage;  ///< unset: where there are books
  HangupPolicy hangup;
  int budget_status = 402;
  std::string upstream_key_env;  ///< variable with the key for the model servers

  /// returns: whether requests are counted at all.
  [[nodiscard]] bool counts() const noexcept { return !control.empty() || !journal.empty() || !prices.empty(); }
  [[nodiscard]] bool asks_for_usage() const noexcept { return include_usage.value_or(counts()); }
};

}  // namespace warmroute::gateway
