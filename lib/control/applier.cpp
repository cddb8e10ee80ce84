// Everything that can fail comes first; then everything is put in, and last of all onto the disk: what is in force must not
// wait for a disk that is full.
#include "warmroute/control/applier.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "control/last_good.hpp"
#include "control/revocations.hpp"
#include "text/strict_json.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute {
namespace control {
namespace {

using Digest = std::array<std::uint8_t, 32>;
constexpr std::size_t kMaxRemembered = 1'000;
constexpr std::size_t kMaxPriceFile = std::size_t{64} << 20;
constexpr Nanos kHeardAtMost = seconds(10);  // between two notes on the disk of when control was heard of

bool sha256(std::string_view bytes, Digest& out) {
  return EVP_Digest(bytes.data(), bytes.size(), out.data(), nullptr, EVP_sha256(), nullptr) == 1;
}

StaleKeys stale_keys(OnExpired on_expired) {
  switch (on_expired) {
    case OnExpired::serve: return StaleKeys::keep_serving;
    case OnExpired::deny_new_keys: return StaleKeys::refuse_new;
    case OnExpired::deny_all: break;
  }
  return StaleKeys::refuse;
}

// Tells whether bytes are those in force, no more: who could make others with the same one could as well leave the file alone.
// SHA-256 of it took a tenth of an apply.
using Fingerprint = std::array<std::uint64_t, 2>;
Fingerprint fingerprint(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

// A snapshot that is fit to be applied: all that could fail has been done.
struct Prepared {
  Snapshot snapshot;
  std::string signed_by;
  Fingerprint print{};
  std::vector<KeyRecord> merged;             // empty: snapshot.keys
  std::shared_ptr<const PriceTable> prices;  // null: they stay
  std::vector<std::pair<ScopeId, const SnapshotLimits*>> scopes;
  [[nodiscard]] std::span<const KeyRecord> keys() const {
    return merged.empty() ? std::span<const KeyRecord>(snapshot.keys) : std::span<const KeyRecord>(merged);
  }
};

Status add_prices(PriceTable& table, const Snapshot& snapshot) {
  if (!snapshot.prices.overrides.empty()) {
    if (Status s = table.override_with(snapshot.prices.overrides); !s) return s;
  }
  for (const auto& [alias, model] : snapshot.aliases) {
    if (Status s = table.set_alias(alias, model); !s) return s;
  }
  return {};
}

Result<PriceTable> price_file(const SnapshotPrices& prices, const std::string& otherwise) {
  const std::string& path = prices.file.empty() ? otherwise : prices.file;
  if (path.empty()) return PriceTable{};
  const auto bytes = read_file(path, kMaxPriceFile);
  if (!bytes) return Error{bytes.code(), "prices.file: " + bytes.error().message, kNoOffset};
  Digest digest{};
  if (!prices.file.empty() && (!sha256(*bytes, digest) || text::hex_text(digest) != prices.file_sha256))
    return Error{Code::invalid_value, "prices.file: " + path + " is not the file whose sha256 the snapshot names",
                 kNoOffset};
  return PriceTable::from_json(*bytes);
}

}  // namespace
}  // namespace control

using control::Prepared;

struct SnapshotApplier::Impl {
  Impl(ControlOptions o, ControlTargets t) : options(without_list(std::move(o))), targets(t), disk(options.directory) {}
  // What a caller reads may not be written by whichever thread applies.
  static ControlOptions without_list(ControlOptions o) {
    o.snapshot.faults = nullptr;
    return o;
  }

  control::LastGood::Kept look_at_folder();
  Result<Prepared> prepare(std::string_view bytes);
  Result<std::shared_ptr<const PriceTable>> prepare_prices(const Snapshot& snapshot);
  Status prepare_scopes(Prepared& p);
  [[nodiscard]] Status judge_generation(const Snapshot& snapshot) const;
  Status put_in(Prepared& p, bool back, Nanos heard_at);
  void put_limits(const Prepared& p);
  void keep(std::string_view bytes, const RollbackRecord* rollback, WallNanos now);
  Status keep_revoked();
  void note_kept(const Status& status);
  [[nodiscard]] std::string why_not_kept() const { return disk.used() && !kept ? state.last_error : std::string{}; }
  void note_heard(Nanos at, bool from_disk);
  Status note_refused(Error error);
  void confirm(UsageTime now);

  const ControlOptions options;
  const ControlTargets targets;
  std::mutex changes;  // what is below, but for `facts`
  control::LastGood disk;
  control::Revocations revocations;
  std::map<std::pair<std::string, std::string>, ScopeId> own_scopes;  // that ever had limits of their own
  std::set<std::string> default_dimensions;
  bool priced = false;  // a table of ours is in the slot
  bool looked = false;  // at the folder
  bool loaded = false;
  control::Fingerprint print{};  // of the bytes in force
  std::string signed_by;
  WallNanos issued_at{};
  bool revoked_to_keep = false;  // the disk does not know them all
  bool kept = false;             // what is in force is on the disk
  WallNanos noted_heard{};       // on the disk

  mutable std::mutex facts;
  ControlStatus state;  // without age and expired
  Nanos heard{};
  std::vector<RollbackRecord> rollbacks;
};

// What is in force is `state.generation`; only changes write it, so it is read here without the lock.
Status SnapshotApplier::Impl::judge_generation(const Snapshot& snapshot) const {
  const std::uint64_t here = loaded ? state.generation : state.top_generation;
  const std::string is = "snapshot: generation " + std::to_string(snapshot.generation);
  if (snapshot.forced_rollback && snapshot.forced_rollback->from == here) {
    // Or an old roll-back could be played once more when that generation comes back.
    if (!loaded || snapshot.issued_at >= issued_at) return {};
    return Error{Code::stale, is + ": the roll-back was issued before what it is to end", kNoOffset};
  }
  if (snapshot.forced_rollback && snapshot.generation <= state.top_generation)
    return Error{Code::stale,
                 is + ": the roll-back is from generation " + std::to_string(snapshot.forced_rollback->from) + ", " +
                     std::to_string(here) + " is in force",
                 kNoOffset};
  // With nothing in force (the last good one was damaged) the highest one itself is welcome.
  if (snapshot.generation > state.top_generation || (!loaded && snapshot.generation == state.top_generation)) return {};
  return Error{Code::stale, is + " is not newer than " + std::to_string(state.top_generation), kNoOffset};
}

Result<std::shared_ptr<const PriceTable>> SnapshotApplier::Impl::prepare_prices(const Snapshot& snapshot) {
  const bool any = !snapshot.prices.file.empty() || !snapshot.prices.overrides.empty() || !snapshot.aliases.empty() ||
                   !options.price_file.empty();
  if (targets.prices == nullptr || (!any && !priced)) return std::shared_ptr<const PriceTable>{};
  auto table = control::price_file(snapshot.prices, options.price_file);
  if (!table) return table.error();
  if (const Status s = control::add_prices(*table, snapshot); !s) return s.error();
  return std::shared_ptr<const PriceTable>(std::make_shared<PriceTable>(std::move(*table)));
}

// Scopes are made here, where a lack of room still refuses the snapshot; without limits they change nothing.
Status SnapshotApplier::Impl::prepare_scopes(Prepared& p) {
  if (targets.limits == nullptr) return {};
  for (const SnapshotLimits& each : p.snapshot.limits) {
    if (!each.value) continue;
    const auto scope = targets.limits->scope(each.dimension, *each.value);
    if (!scope) return scope.error();
    p.scopes.emplace_back(*scope, &each);
  }
  return {};
}

Result<Prepared> SnapshotApplier::Impl::prepare(std::string_view bytes) {
  Prepared p;
  p.print = control::fingerprint(bytes);
  auto verified = verify_snapshot(bytes, options.trust);
  if (!verified) return verified.error();
  auto snapshot = parse_snapshot(verified->payload, options.snapshot);
  if (!snapshot) return snapshot.error();
  p.snapshot = std::move(*snapshot);
  p.signed_by = std::move(verified->key_id);
  return p;
}

Status SnapshotApplier::Impl::put_in(Prepared& p, bool back, Nanos heard_at) {
  auto prices = prepare_prices(p.snapshot);
  if (!prices) return prices.error();
  p.prices = std::move(*prices);
  if (Status s = prepare_scopes(p); !s) return s;
  if (targets.listener != nullptr) {
    if (Status s = targets.listener->check(p.snapshot); !s) return s;
  }
  auto next = revocations;
  const bool more_revoked = next.remember(p.snapshot.keys);
  p.merged = next.merged(p.snapshot.keys);
  const std::uint64_t generation = p.snapshot.generation;
  if (targets.keys != nullptr) {
    Status s = back ? targets.keys->roll_back(targets.keys->generation(), generation, p.keys(), heard_at)
                    : targets.keys->replace(generation, p.keys(), heard_at);
    if (!s) return s;
    targets.keys->set_max_age(p.snapshot.max_age, control::stale_keys(p.snapshot.on_expired));
  }
  // From here on nothing fails.
  revocations = std::move(next);
  revoked_to_keep = revoked_to_keep || more_revoked;
  put_limits(p);
  if (p.prices != nullptr) {
    targets.prices->set(p.prices);
    priced = true;
  }
  loaded = true;
  print = p.print;
  signed_by = p.signed_by;
  issued_at = p.snapshot.issued_at;
  const std::lock_guard lock(facts);
  state.generation = generation;
  state.top_generation = std::max(state.top_generation, generation);
  state.issued_at = issued_at;
  state.max_age = p.snapshot.max_age;
  state.on_expired = p.snapshot.on_expired;
  state.revoked = revocations.size();
  state.keys = static_cast<std::size_t>(
      std::count_if(p.keys().begin(), p.keys().end(), [](const KeyRecord& key) { return !key.revoked; }));
  state.last_code = Code::ok;
  return {};
}

// parse_snapshot has asked Limits itself whether it takes these, so no call fails; a request in between sees some of the old.
void SnapshotApplier::Impl::put_limits(const Prepared& p) {
  if (targets.limits == nullptr) return;
  std::map<std::string, const SnapshotLimits*> defaults;
  for (const SnapshotLimits& each : p.snapshot.limits) {
    if (!each.value) defaults.emplace(each.dimension, &each);
  }
  for (const std::string& dimension : default_dimensions) {
    if (!defaults.contains(dimension)) (void)targets.limits->set_default_limits(dimension, {});
  }
  for (const auto& [dimension, each] : defaults) {
    (void)targets.limits->set_default_limits(dimension, each->limits);
    default_dimensions.insert(dimension);
  }
  std::set<std::pair<std::string, std::string>> named;
  for (const auto& [scope, each] : p.scopes) {
    (void)targets.limits->set_limits(scope, each->limits);
    own_scopes[{each->dimension, *each->value}] = scope;
    named.emplace(each->dimension, *each->value);
  }
  for (const auto& [name, scope] : own_scopes) {  // those that are as all others again
    if (named.contains(name)) continue;
    const auto it = defaults.find(name.first);
    (void)targets.limits->set_limits(scope, it == defaults.end() ? std::span<const LimitSpec>{} : it->second->limits);
  }
}

void SnapshotApplier::Impl::note_kept(const Status& status) {
  if (status) return;
  kept = false;
  const std::lock_guard lock(facts);
  ++state.keep_failures;
  state.last_error = "last good: " + status.error().message;
}

// The snapshot first: what it revokes is in it, should the process end before the next file is written. The note of the
// highest generation last, or a snapshot that was not kept would be refused after a restart.
void SnapshotApplier::Impl::keep(std::string_view bytes, const RollbackRecord* rollback, WallNanos now) {
  if (!disk.used()) return;
  kept = true;
  note_kept(disk.keep_bytes(bytes));
  if (revoked_to_keep) (void)keep_revoked();
  if (rollback != nullptr) note_kept(disk.add_rollback(*rollback));
  if (!kept) return;
  noted_heard = now;
  note_kept(disk.keep_heard({state.top_generation, now}));
}

Status SnapshotApplier::Impl::keep_revoked() {
  auto status = disk.keep_revoked(revocations.records());
  if (status) revoked_to_keep = false;
  note_kept(status);
  return status;
}

void SnapshotApplier::Impl::note_heard(Nanos at, bool from_disk) {
  const std::lock_guard lock(facts);
  heard = at;
  state.from_disk = from_disk;
}

Status SnapshotApplier::Impl::note_refused(Error error) {
  const std::lock_guard lock(facts);
  ++state.refused;
  state.last_code = error.code;
  state.last_error = error.message;
  return error;
}

void SnapshotApplier::Impl::confirm(UsageTime now) {
  if (!loaded) return;
  if (targets.keys != nullptr) (void)targets.keys->confirm(state.generation, now.steady);
  note_heard(now.steady, false);
  {
    const std::lock_guard lock(facts);
    ++state.confirmed;
  }
  const Nanos every =
      state.max_age.value > 0 ? std::min(control::kHeardAtMost, Nanos{state.max_age.value / 8}) : control::kHeardAtMost;
  const std::int64_t since = now.wall.value - noted_heard.value;
  if (!disk.used() || !kept || (since >= 0 && since < every.value)) return;
  noted_heard = now.wall;
  note_kept(disk.keep_heard({state.top_generation, now.wall}));
}

// What was revoked and how high generations were counts even where nobody asks for the last good snapshot: these files are
// written again.
control::LastGood::Kept SnapshotApplier::Impl::look_at_folder() {
  looked = true;
  control::LastGood::Kept found = disk.load(options.snapshot.max_bytes + 4'096);
  revocations.remember(found.revoked);
  const std::lock_guard lock(facts);
  for (const RollbackRecord& r : found.rollbacks) state.top_generation = std::max({state.top_generation, r.from, r.to});
  if (found.heard) state.top_generation = std::max(state.top_generation, found.heard->top);
  rollbacks = std::move(found.rollbacks);
  state.revoked = revocations.size();
  return found;
}

SnapshotApplier::SnapshotApplier(ControlOptions options, ControlTargets targets)
    : impl_(std::make_unique<Impl>(std::move(options), targets)) {}
SnapshotApplier::~SnapshotApplier() = default;

Result<bool> SnapshotApplier::load_last_good(UsageTime now) {
  Impl& me = *impl_;
  const std::lock_guard lock(me.changes);
  if (!me.disk.used()) return false;
  control::LastGood::Kept kept = me.look_at_folder();
  const auto damaged = [&](Error error) {
    error.message = "last good: " + error.message;
    return me.note_refused(std::move(error)).error();
  };
  const Error faults{Code::malformed, kept.faults, kNoOffset};
  if (!kept.bytes) {
    if (kept.faults.empty()) return false;
    return damaged(faults);
  }
  auto prepared = me.prepare(*kept.bytes);
  if (!prepared) return damaged(prepared.error());
  const WallNanos heard = kept.heard ? kept.heard->at : prepared->snapshot.issued_at;
  const Nanos age{std::max<std::int64_t>(0, now.wall.value - heard.value)};
  const Nanos at = now.steady - age;
  if (Status s = me.put_in(*prepared, false, at); !s) return damaged(s.error());
  me.note_heard(at, true);
  me.kept = true;
  me.noted_heard = heard;
  if (const auto& back = prepared->snapshot.forced_rollback) {
    const std::lock_guard facts(me.facts);
    me.state.top_generation = std::max(me.state.top_generation, back->from);
  }
  if (me.targets.listener != nullptr) me.targets.listener->applied(prepared->snapshot);
  if (!kept.faults.empty()) return damaged(faults);
  return true;
}

Result<Applied> SnapshotApplier::apply(std::string_view bytes, UsageTime now) {
  Impl& me = *impl_;
  const std::lock_guard lock(me.changes);
  if (me.disk.used() && !me.looked) (void)me.look_at_folder();
  if (me.loaded && control::fingerprint(bytes) == me.print) {
    me.confirm(now);
    if (me.disk.used() && !me.kept) me.keep(bytes, nullptr, now.wall);
    return Applied{me.state.generation, true, false, me.signed_by, me.why_not_kept()};
  }
  auto prepared = me.prepare(bytes);
  if (!prepared) return me.note_refused(prepared.error()).error();
  const Snapshot& snapshot = prepared->snapshot;
  Applied out{snapshot.generation, false, false, prepared->signed_by, {}};
  if (const Status s = me.judge_generation(snapshot); !s) return me.note_refused(s.error()).error();
  const std::uint64_t before = me.loaded ? me.state.generation : me.state.top_generation;
  out.rolled_back = snapshot.forced_rollback.has_value() && snapshot.generation < before;
  if (const Status s = me.put_in(*prepared, out.rolled_back, now.steady); !s) return me.note_refused(s.error()).error();
  me.note_heard(now.steady, false);
  RollbackRecord record;
  if (out.rolled_back)
    record = {before, snapshot.generation, snapshot.forced_rollback->reason, prepared->signed_by, now.wall};
  {
    const std::lock_guard facts(me.facts);
    ++me.state.applied;
    if (out.rolled_back) {
      ++me.state.rollbacks;
      me.rollbacks.push_back(record);
      if (me.rollbacks.size() > control::kMaxRemembered) me.rollbacks.erase(me.rollbacks.begin());
    }
  }
  if (me.targets.listener != nullptr) {
    me.targets.listener->applied(snapshot);
    if (out.rolled_back) me.targets.listener->rolled_back(record);
  }
  me.keep(bytes, out.rolled_back ? &record : nullptr, now.wall);
  out.kept_error = me.why_not_kept();
  return out;
}

void SnapshotApplier::confirm(UsageTime now) {
  const std::lock_guard lock(impl_->changes);
  impl_->confirm(now);
}

Status SnapshotApplier::revoke(std::string_view public_id, std::uint64_t version) {
  Impl& me = *impl_;
  const std::lock_guard lock(me.changes);
  if (public_id.empty() || public_id.size() > 64 || public_id.find('-') != std::string_view::npos)
    return Error{Code::invalid_argument, "revoke: no public_id: 1 to 64 bytes without a dash", kNoOffset};
  if (me.disk.used() && !me.looked) (void)me.look_at_folder();
  KeyRecord tombstone;
  tombstone.public_id = public_id;
  tombstone.version = version;
  tombstone.revoked = true;
  if (me.targets.keys != nullptr) {
    if (Status s = me.targets.keys->revoke(public_id, version); !s) return s;
  }
  if (me.revocations.remember({&tombstone, 1})) me.revoked_to_keep = true;
  {
    const std::lock_guard facts(me.facts);
    me.state.revoked = me.revocations.size();
    if (me.targets.keys != nullptr) me.state.keys = me.targets.keys->size();
  }
  return me.revoked_to_keep && me.disk.used() ? me.keep_revoked() : Status{};
}

ControlStatus SnapshotApplier::status(Nanos now) const {
  const std::lock_guard lock(impl_->facts);
  ControlStatus out = impl_->state;
  const bool ever = out.generation != 0;
  out.age = ever ? Nanos{std::max<std::int64_t>(0, now.value - impl_->heard.value)}
                 : Nanos{std::numeric_limits<std::int64_t>::max()};
  out.expired = ever && out.max_age.value > 0 && out.age > out.max_age;
  return out;
}

std::vector<RollbackRecord> SnapshotApplier::rollbacks() const {
  const std::lock_guard lock(impl_->facts);
  return impl_->rollbacks;
}

Status SnapshotApplier::on_bytes(void* user, std::string_view bytes, UsageTime now) {
  const auto applied = static_cast<SnapshotApplier*>(user)->apply(bytes, now);
  return applied ? Status{} : Status{applied.error()};
}

void SnapshotApplier::on_same(void* user, UsageTime now) { static_cast<SnapshotApplier*>(user)->confirm(now); }

}  // namespace warmroute
