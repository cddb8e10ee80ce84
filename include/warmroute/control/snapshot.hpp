/// What control wants, whole: keys, teams, limits, prices, aliases and routing policy in one versioned JSON document.
/// Invariants: a document is valid or refused, every fault named with its path; unknown members are refused, for a misspelt
/// "revoked" would be a key that works; writing is deterministic, and what was written reads back equal.
/// Does not: check signatures (control/signature.hpp), apply anything (control/applier.hpp), read a clock.
///
///     {"format": 1, "generation": 7, "issued_at": "2026-01-31T12:00:00Z", "max_age_s": 3600, "on_expired": "deny_new_keys",
///      "keys": [{"public_id": "k1", "team_id": "blue", "version": 1,
///                "digests": [{"kind": "hmac_sha256", "pepper_version": 1, "hex": "...", "not_after": "2027-01-31T00:00:00Z"}]}],
///      "teams": [{"team_id": "blue", "name": "The blue ones"}],
///      "limits": [{"dimension": "key", "limits": [{"name": "rpm", "kind": "rate", "unit": "requests", "amount": 60, "period_s": 60}]},
///                 {"dimension": "team", "value": "blue", "limits": [{"name": "month", "kind": "budget", "unit": "usd", "amount": 250.5,
///                  "window": {"unit": "month", "count": 1, "time_zone": "Europe/Berlin"}, "hard_stop": true}]}],
///      "prices": {"file": "/etc/prices.json", "sha256": "...", "overrides": {"m": {"input_cost_per_token": 1e-7}}},
///      "aliases": {"fast": "m"}, "policy": {"algorithm": "cost"}, "forced_rollback": {"from": 9, "reason": "wrong prices"}}
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/keys.hpp"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute {

inline constexpr std::uint32_t kSnapshotFormat = 1;

/// What serving does when control has been silent for longer than max_age. Numbers are fixed and only appended.
enum class OnExpired : std::uint8_t {
  serve = 0,
  deny_new_keys = 1,  ///< keys that were accepted since the process began go on; see StaleKeys::refuse_new
  deny_all = 2,
};
/// returns: the name as spelled above. lifetime: static.
std::string_view on_expired_name(OnExpired value) noexcept;

struct SnapshotTeam {
  std::string team_id;
  std::string name;  ///< for people; may be empty
  friend bool operator==(const SnapshotTeam&, const SnapshotTeam&) = default;
};

/// Limits of one scope, or of a dimension's values that have none of their own.
struct SnapshotLimits {
  std::string dimension;             ///< "key", "team", "model" or any other label
  std::optional<std::string> value;  ///< nullopt: the dimension's default
  std::vector<LimitSpec> limits;     ///< none: such a scope is not limited
};

struct SnapshotPrices {
  std::string file;         ///< LiteLLM's price file; empty: none
  std::string file_sha256;  ///< 64 hex digits; with `file`, always: the signature covers what is charged
  std::string overrides;    ///< JSON in the same format without spaces, as minified by parse; empty: none
  friend bool operator==(const SnapshotPrices&, const SnapshotPrices&) = default;
};

/// The one way back to an older generation.
struct ForcedRollback {
  std::uint64_t from = 0;  ///< the generation it ends: it holds for no other
  std::string reason;      ///< goes to the audit; not empty
  friend bool operator==(const ForcedRollback&, const ForcedRollback&) = default;
};

struct Snapshot {
  std::uint64_t generation = 0;  ///< at least 1, rising
  WallNanos issued_at{};
  Nanos max_age{};  ///< 0: no limit
  OnExpired on_expired = OnExpired::serve;
  std::vector<KeyRecord> keys;
  std::vector<SnapshotTeam> teams;     ///< if there are any, every key's team is among them
  std::vector<SnapshotLimits> limits;  ///< no scope and no default twice
  SnapshotPrices prices;
  std::vector<std::pair<std::string, std::string>> aliases;  ///< name to model
  std::optional<Policy> policy;                              ///< nullopt: the policy in force stays
  std::optional<ForcedRollback> forced_rollback;
};

/// One fault of a document.
struct SnapshotFault {
  std::string path;  ///< "keys[3].digests[0].hex"; empty: the document
  std::string what;
};

struct SnapshotOptions {
  std::size_t max_bytes = std::size_t{64} << 20;
  std::size_t max_keys = std::size_t{1} << 21;
  std::size_t max_faults = 64;  ///< that are listed; how many more there are is said
  Policy base_policy{};         ///< members of "policy" that are absent are this one's
  /// Null: none. Else parse_snapshot adds each fault that it lists. Not used by SnapshotApplier.
  std::vector<SnapshotFault>* faults = nullptr;
};

/// Reads a payload, without envelope.
/// errors: too_large, invalid_json, too_deep (32), not_an_object, unsupported (a later format),
/// invalid_argument: "snapshot: keys[3].digests[0].hex: ...; limits[1]...": every fault, up to max_faults.
/// cost: about 1 us a key.
Result<Snapshot> parse_snapshot(std::string_view payload, const SnapshotOptions& options = {});

/// returns: the JSON. Of a valid snapshot: parse_snapshot gives an equal one back. One key, team or scope per line, so that
/// two generations can be compared by `diff`.
std::string write_snapshot(const Snapshot& snapshot);

/// Replaces a file as a whole: written beside it, synced, renamed, and the folder synced; readers see the old or the new one.
/// `mode`: of the file. errors: io; the old file then stays.
Status replace_file(const std::string& path, std::string_view bytes, unsigned mode = 0600);
/// errors: not_found, io, too_large.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

}  // namespace warmroute
