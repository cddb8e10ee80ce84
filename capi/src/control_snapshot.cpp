// The document of control, read.
#include <memory>
#include <string>
#include <vector>

#include "control.hpp"
#include "policy.hpp"
#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

namespace {

const wr_snapshot_options kSnapshotDefaults = WR_SNAPSHOT_OPTIONS_INIT;
constexpr std::string_view kNoSnapshot = "snapshot is NULL";

wr_snapshot_facts facts_of(const Snapshot& s) noexcept {
  wr_snapshot_facts out = WR_SNAPSHOT_FACTS_INIT;
  out.on_expired = static_cast<std::uint32_t>(s.on_expired);
  out.generation = s.generation;
  out.issued_at_wall_ns = s.issued_at.value;
  out.max_age_ns = s.max_age.value;
  out.keys = s.keys.size();
  out.teams = s.teams.size();
  out.limits = s.limits.size();
  out.aliases = s.aliases.size();
  out.has_policy = s.policy ? 1 : 0;
  if (s.forced_rollback) {
    out.has_forced_rollback = 1;
    out.rollback_from = s.forced_rollback->from;
    out.rollback_reason = str(s.forced_rollback->reason);
  }
  out.price_file = str(s.prices.file);
  out.price_file_sha256 = str(s.prices.file_sha256);
  out.price_overrides = str(s.prices.overrides);
  return out;
}

// Item `index` of a list of the snapshot's.
template <class List>
wr_status item_of(const List& list, std::size_t index, const typename List::value_type*& out, wr_error* err) noexcept {
  if (index >= list.size()) return fail(err, Code::out_of_range, "there are fewer of them");
  out = &list[index];
  return WR_STATUS_OK;
}

}  // namespace

wr_status capi::read_snapshot_options(const wr_snapshot_options* given, const Policy& base, SnapshotOptions& out,
                                      wr_error* err) {
  out.base_policy = base;
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_snapshot_options> in(given, kSnapshotDefaults);
  if (!in) return in.refuse(err, "options of snapshots is NULL");
  out.max_bytes = in->max_bytes;
  out.max_keys = in->max_keys;
  out.max_faults = in->max_faults;
  if (in->base_policy == nullptr) return WR_STATUS_OK;
  const Input<wr_policy> policy(in->base_policy, policy_defaults());
  if (!policy) return policy.refuse(err, "base_policy is NULL");
  out.base_policy = policy_of(*policy);
  return WR_STATUS_OK;
}

extern "C" {

const char* wr_on_expired_name(uint32_t on_expired) {
  return on_expired <= WR_ON_EXPIRED_DENY_ALL ? on_expired_name(static_cast<OnExpired>(on_expired)).data() : "unknown";
}

wr_status wr_snapshot_parse(wr_str payload, const wr_snapshot_options* options, wr_snapshot** out, wr_error* err) {
  if (out == nullptr || !readable(payload)) return null_argument(err, "out is NULL, or payload has no data");
  return guard(err, [&] {
    SnapshotOptions chosen;
    if (const wr_status bad = read_snapshot_options(options, Policy{}, chosen, err); bad != WR_STATUS_OK) return bad;
    std::vector<SnapshotFault> faults;
    const Input<wr_snapshot_options> in(options != nullptr ? options : &kSnapshotDefaults, kSnapshotDefaults);
    if (in->fault != nullptr) chosen.faults = &faults;
    auto parsed = parse_snapshot(view(payload), chosen);
    for (const SnapshotFault& each : faults) in->fault(in->fault_user, str(each.path), str(each.what));
    if (!parsed) return fail(err, parsed.error());
    *out = std::make_unique<wr_snapshot>(std::move(*parsed)).release();
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

void wr_snapshot_free(wr_snapshot* snapshot) { delete snapshot; }

wr_status wr_snapshot_write(const wr_snapshot* snapshot, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (snapshot == nullptr || needed == nullptr) return null_argument(err, "snapshot or needed is NULL");
  return guard(err, [&] { return give(write_snapshot(snapshot->snapshot), 1, buf, cap, needed, err); });
}

wr_status wr_snapshot_read_facts(const wr_snapshot* snapshot, wr_snapshot_facts* out, wr_error* err) {
  if (snapshot == nullptr) return null_argument(err, kNoSnapshot);
  if (!writable(out)) return null_argument(err, kBadOutput);
  write(out, facts_of(snapshot->snapshot));
  return WR_STATUS_OK;
}

wr_status wr_snapshot_read_key(const wr_snapshot* snapshot, size_t index, wr_key_record* out, wr_error* err) {
  if (snapshot == nullptr) return null_argument(err, kNoSnapshot);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const KeyRecord* key = nullptr;
  if (const wr_status bad = item_of(snapshot->snapshot.keys, index, key, err); bad != WR_STATUS_OK) return bad;
  wr_key_record told = WR_KEY_RECORD_INIT;
  told.revoked = key->revoked ? 1 : 0;
  told.public_id = str(key->public_id);
  told.key_id = str(key->key_id);
  told.team_id = str(key->team_id);
  told.version = key->version;
  told.digest_count = key->digests.size();
  write(out, told);
  return WR_STATUS_OK;
}

wr_status wr_snapshot_read_digest(const wr_snapshot* snapshot, size_t key, size_t index, wr_key_digest* out,
                                  wr_error* err) {
  if (snapshot == nullptr) return null_argument(err, kNoSnapshot);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const KeyRecord* record = nullptr;
  const KeyDigest* digest = nullptr;
  if (const wr_status bad = item_of(snapshot->snapshot.keys, key, record, err); bad != WR_STATUS_OK) return bad;
  if (const wr_status bad = item_of(record->digests, index, digest, err); bad != WR_STATUS_OK) return bad;
  wr_key_digest told = WR_KEY_DIGEST_INIT;
  told.kind = static_cast<std::uint32_t>(digest->kind);
  told.pepper_version = digest->pepper_version;
  std::copy(digest->bytes.begin(), digest->bytes.end(), told.bytes);
  told.not_before_wall_ns = digest->not_before.value;
  told.not_after_wall_ns = digest->not_after.value;
  write(out, told);
  return WR_STATUS_OK;
}

wr_status wr_snapshot_read_team(const wr_snapshot* snapshot, size_t index, wr_str* team_id, wr_str* name,
                                wr_error* err) {
  if (snapshot == nullptr || team_id == nullptr) return null_argument(err, "snapshot or team_id is NULL");
  const SnapshotTeam* team = nullptr;
  if (const wr_status bad = item_of(snapshot->snapshot.teams, index, team, err); bad != WR_STATUS_OK) return bad;
  *team_id = str(team->team_id);
  if (name != nullptr) *name = str(team->name);
  return WR_STATUS_OK;
}

wr_status wr_snapshot_read_limits(const wr_snapshot* snapshot, size_t index, wr_snapshot_limits* out, wr_error* err) {
  if (snapshot == nullptr) return null_argument(err, kNoSnapshot);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const SnapshotLimits* limits = nullptr;
  if (const wr_status bad = item_of(snapshot->snapshot.limits, index, limits, err); bad != WR_STATUS_OK) return bad;
  wr_snapshot_limits told = WR_SNAPSHOT_LIMITS_INIT;
  told.is_default = limits->value ? 0 : 1;
  told.dimension = str(limits->dimension);
  if (limits->value) told.value = str(*limits->value);
  told.limits = limits->limits.size();
  write(out, told);
  return WR_STATUS_OK;
}

wr_status wr_snapshot_read_limit(const wr_snapshot* snapshot, size_t scope, size_t index, wr_limit_spec* out,
                                 wr_error* err) {
  if (snapshot == nullptr) return null_argument(err, kNoSnapshot);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const SnapshotLimits* limits = nullptr;
  const LimitSpec* limit = nullptr;
  if (const wr_status bad = item_of(snapshot->snapshot.limits, scope, limits, err); bad != WR_STATUS_OK) return bad;
  if (const wr_status bad = item_of(limits->limits, index, limit, err); bad != WR_STATUS_OK) return bad;
  write(out, limit_spec_of(*limit));
  return WR_STATUS_OK;
}

wr_status wr_snapshot_read_alias(const wr_snapshot* snapshot, size_t index, wr_str* alias, wr_str* model,
                                 wr_error* err) {
  if (snapshot == nullptr || alias == nullptr || model == nullptr) return null_argument(err, "an argument is NULL");
  const std::pair<std::string, std::string>* pair = nullptr;
  if (const wr_status bad = item_of(snapshot->snapshot.aliases, index, pair, err); bad != WR_STATUS_OK) return bad;
  *alias = str(pair->first);
  *model = str(pair->second);
  return WR_STATUS_OK;
}

wr_status wr_snapshot_read_policy(const wr_snapshot* snapshot, wr_policy* out, wr_error* err) {
  if (snapshot == nullptr) return null_argument(err, kNoSnapshot);
  if (!writable(out)) return null_argument(err, kBadOutput);
  if (!snapshot->snapshot.policy) return fail(err, Code::not_found, "the snapshot has no policy");
  write_all(out, policy_of(*snapshot->snapshot.policy));
  return WR_STATUS_OK;
}

wr_status wr_replace_file(wr_str path, wr_str bytes, uint32_t mode, wr_error* err) {
  if (!readable(path) || !readable(bytes)) return null_argument(err, "path or bytes has a size and no data");
  return guard(err, [&] { return done(replace_file(std::string(view(path)), view(bytes), mode), err); });
}

}  // extern "C"
