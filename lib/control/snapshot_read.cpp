// A snapshot from JSON: read as a whole, judged as a whole.
#include <string>
#include <unordered_set>

#include "control/snapshot_words.hpp"
#include "text/strict_json.hpp"
#include "warmroute/control/snapshot.hpp"
#include "warmroute/detail/xxh3.hpp"
#include "warmroute/route/policy_json.hpp"
#include "warmroute/usage/price.hpp"

namespace warmroute {
namespace control {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxPublicId = 64;
constexpr std::size_t kMaxText = 255;
constexpr std::size_t kMaxKeyDigests = 16;
constexpr std::int64_t kMostInteger = std::numeric_limits<std::int64_t>::max();

constexpr std::array<std::string_view, 12> kTop{"format",     "generation", "issued_at", "max_age_s",
                                                "on_expired", "keys",       "teams",     "limits",
                                                "prices",     "aliases",    "policy",    "forced_rollback"};
constexpr std::array<std::string_view, 6> kKey{"public_id", "key_id", "team_id", "version", "revoked", "digests"};
constexpr std::array<std::string_view, 5> kDigest{"kind", "pepper_version", "hex", "not_before", "not_after"};
constexpr std::array<std::string_view, 2> kTeam{"team_id", "name"};
constexpr std::array<std::string_view, 3> kScope{"dimension", "value", "limits"};
constexpr std::array<std::string_view, 10> kLimit{
    "name", "kind", "unit", "amount", "period_s", "burst", "window", "cached_weight_permille", "shadow", "hard_stop"};
constexpr std::array<std::string_view, 4> kWindow{"unit", "count", "time_zone", "anchor"};
constexpr std::array<std::string_view, 3> kPrices{"file", "sha256", "overrides"};
constexpr std::array<std::string_view, 2> kRollback{"from", "reason"};

// A message of another part, without its own beginning.
std::string_view without(std::string_view message, std::string_view beginning) {
  if (message.substr(0, beginning.size()) == beginning) message.remove_prefix(beginning.size());
  return message;
}

// Names of keys that were seen: ids, and digests of whole keys. Flat, and of views: a set of strings took as long as all else
// that is read of 10^6 keys.
class KeyNames {
 public:
  // Before the first name. lifetime: names stay where they are.
  void reserve(std::size_t names) {
    std::size_t size = 16;
    while (size < names * 2) size *= 2;
    cells_.assign(size, 0);
    names_.reserve(names);
  }
  // returns: false: it was there.
  bool insert(std::string_view name, bool by_digest) {
    if (cells_.size() < (names_.size() + 1) * 2) grow();
    const std::uint64_t hash = hash_of({name, by_digest});
    std::size_t i = hash & (cells_.size() - 1);
    for (; cells_[i] != 0; i = (i + 1) & (cells_.size() - 1)) {
      const auto& [other, of_digest] = names_[(cells_[i] & kPlace) - 1];
      if ((cells_[i] & ~kPlace) == (hash & ~kPlace) && of_digest == by_digest && other == name) return false;
    }
    names_.emplace_back(name, by_digest);
    cells_[i] = (hash & ~kPlace) | names_.size();
    return true;
  }

 private:
  using Name = std::pair<std::string_view, bool>;
  static constexpr std::uint64_t kPlace =
      0xffff'ffff;  // lower half of a cell: the name's place + 1; upper: of its hash
  static std::uint64_t hash_of(const Name& n) {
    return XXH3_64bits_withSeed(n.first.data(), n.first.size(), n.second ? 2 : 1);
  }
  void grow() {
    cells_.assign(std::max<std::size_t>(cells_.size() * 2, 16), 0);
    for (std::size_t n = 0; n < names_.size(); ++n) {
      const std::uint64_t hash = hash_of(names_[n]);
      std::size_t i = hash & (cells_.size() - 1);
      while (cells_[i] != 0) i = (i + 1) & (cells_.size() - 1);
      cells_[i] = (hash & ~kPlace) | (n + 1);
    }
  }

  std::vector<Name> names_;
  std::vector<std::uint64_t> cells_;
};

class SnapshotReader {
 public:
  SnapshotReader(text::Faults& faults, const SnapshotOptions& options) : faults_(faults), options_(options) {}
  void read(simdjson::dom::element root, Snapshot& out);

 private:
  void read_key(const text::Path& at, simdjson::dom::element e, KeyRecord& out);
  void check_key(const text::Path& at, const KeyRecord& key);
  bool read_digest(const text::Path& at, simdjson::dom::element e, KeyDigest& out);
  void read_teams(text::Members& top, Snapshot& out);
  void read_scope(const text::Path& at, simdjson::dom::element e, SnapshotLimits& out);
  bool read_limit(const text::Path& at, simdjson::dom::element e, LimitSpec& out);
  void read_window(const text::Path& at, simdjson::dom::element e, CalendarWindow& out);
  void read_prices(text::Members& top, SnapshotPrices& out);
  void read_aliases(text::Members& top, Snapshot& out);
  void read_policy(text::Members& top, Snapshot& out);
  void read_rollback(text::Members& top, Snapshot& out);

  text::Faults& faults_;
  const SnapshotOptions& options_;
  Limits probe_;    // judges limits by what the real ones say
  KeyNames names_;  // views into `out`, whose keys do not move
  std::unordered_set<std::string> scopes_, teams_;
};

void SnapshotReader::read(simdjson::dom::element root, Snapshot& out) {
  const text::Path at;
  text::Members top(faults_, at, root, kTop);
  top.need("format");
  top.need("generation");
  top.need("issued_at");
  top.need("keys");  // a document without any says so: []
  top.unsigned_integer("generation", out.generation);
  if (top.find("generation") != nullptr && out.generation == 0) top.fault("generation", "must be 1 or more");
  top.time("issued_at", out.issued_at);
  top.billionths("max_age_s", out.max_age.value);
  if (out.max_age.value < 0) top.fault("max_age_s", "must not be negative");
  top.choice("on_expired", kOnExpiredWords, out.on_expired);
  if (out.on_expired != OnExpired::serve && out.max_age.value == 0)
    top.fault("on_expired", "needs a max_age_s, or it never comes to it");
  read_rollback(top, out);
  read_teams(top, out);
  if (const auto keys = top.array("keys")) {
    const text::Path list = top.path("keys");
    std::ptrdiff_t n = 0;
    std::size_t count = 0;  // size() of an array is right up to 2^24 alone
    for (auto it = keys->begin(); it != keys->end(); ++it) ++count;
    count = std::min(count, options_.max_keys);
    out.keys.reserve(count);
    names_.reserve(count);
    for (const simdjson::dom::element e : *keys) {
      if (out.keys.size() == options_.max_keys) {
        top.fault("keys", "are more than " + std::to_string(options_.max_keys));
        break;
      }
      read_key({&list, {}, n++}, e, out.keys.emplace_back());
    }
  }
  if (const auto limits = top.array("limits")) {
    const text::Path list = top.path("limits");
    std::ptrdiff_t n = 0;
    for (const simdjson::dom::element e : *limits) read_scope({&list, {}, n++}, e, out.limits.emplace_back());
  }
  read_prices(top, out.prices);
  read_aliases(top, out);
  read_policy(top, out);
}

void SnapshotReader::read_key(const text::Path& at, simdjson::dom::element e, KeyRecord& out) {
  const std::size_t before = faults_.count();
  text::Members m(faults_, at, e, kKey);
  m.text("public_id", out.public_id, kMaxPublicId);
  m.text("key_id", out.key_id, kMaxText);
  m.text("team_id", out.team_id, kMaxText);
  m.flag("revoked", out.revoked);
  std::string_view word;
  const simdjson::dom::element* const version = m.need("version");
  if (version != nullptr && version->get(word) == simdjson::SUCCESS && word == "forever") {
    out.version = kRevokedForever;
    if (!out.revoked) m.fault("version", "\"forever\" is of revoked keys");
  } else {
    m.unsigned_integer("version", out.version);
    if (out.version == kRevokedForever) m.fault("version", "is written \"forever\"");
  }
  if (const auto digests = m.array("digests")) {
    const text::Path list = m.path("digests");
    std::ptrdiff_t n = 0;
    for (const simdjson::dom::element each : *digests) {
      if (out.digests.size() == kMaxKeyDigests) {
        m.fault("digests", "are more than 16");
        break;
      }
      read_digest({&list, {}, n++}, each, out.digests.emplace_back());
    }
  }
  if (faults_.count() == before) check_key(at, out);
}

// What KeySet would say, and what it does not: that a key's team exists.
void SnapshotReader::check_key(const text::Path& at, const KeyRecord& key) {
  const bool by_digest = key.public_id.empty();
  if (key.public_id.find('-') != std::string::npos) faults_.add({&at, "public_id"}, "contains a dash");
  if (by_digest && key.key_id.empty()) faults_.add(at, "has neither public_id nor key_id");
  if (key.digests.empty() && !key.revoked) faults_.add({&at, "digests"}, "are missing, and the key is not revoked");
  if (key.digests.empty() && by_digest) faults_.add(at, "is named neither by public_id nor by a digest");
  if (!teams_.empty() && !key.team_id.empty() && !teams_.contains(key.team_id))
    faults_.add({&at, "team_id"}, "is not among the teams");
  std::size_t n = 0;
  for (const KeyDigest& d : key.digests) {
    if (by_digest != (d.kind == KeyDigestKind::sha256_key))
      faults_.add({&at, "digests"}, "of whole keys and a public_id exclude one another");
    if (by_digest && !names_.insert({reinterpret_cast<const char*>(d.bytes.data()), d.bytes.size()}, true)) ++n;
  }
  if (!by_digest && !names_.insert(key.public_id, false)) ++n;
  if (n != 0) faults_.add(at, "is there twice");
}

bool SnapshotReader::read_digest(const text::Path& at, simdjson::dom::element e, KeyDigest& out) {
  const std::size_t before = faults_.count();
  text::Members m(faults_, at, e, kDigest);
  m.need("kind");
  m.choice("kind", kDigestWords, out.kind);
  m.hex32("hex", out.bytes);
  std::int64_t pepper = 0;
  m.integer("pepper_version", pepper, 0, std::numeric_limits<std::uint32_t>::max());
  out.pepper_version = static_cast<std::uint32_t>(pepper);
  if (out.kind == KeyDigestKind::hmac_sha256) m.need("pepper_version");
  else if (m.find("pepper_version") != nullptr) m.fault("pepper_version", "is of hmac_sha256 alone");
  m.time("not_before", out.not_before);
  m.time("not_after", out.not_after);
  if (out.not_after <= out.not_before) m.fault("not_after", "must be later than not_before");
  return faults_.count() == before;
}

void SnapshotReader::read_teams(text::Members& top, Snapshot& out) {
  const auto teams = top.array("teams");
  if (!teams) return;
  const text::Path list = top.path("teams");
  std::ptrdiff_t n = 0;
  for (const simdjson::dom::element e : *teams) {
    const text::Path at{&list, {}, n++};
    SnapshotTeam& team = out.teams.emplace_back();
    text::Members m(faults_, at, e, kTeam);
    m.need("team_id");
    m.text("team_id", team.team_id, kMaxText);
    m.text("name", team.name, kMaxText);
    if (!teams_.insert(team.team_id).second) m.fault("team_id", "is there twice");
  }
}

void SnapshotReader::read_scope(const text::Path& at, simdjson::dom::element e, SnapshotLimits& out) {
  text::Members m(faults_, at, e, kScope);
  m.need("dimension");
  m.need("limits");
  m.text("dimension", out.dimension, kMaxText);
  if (m.find("value") != nullptr) m.text("value", out.value.emplace(), kMaxText);
  // Lengths before the names: no two pairs are spelled alike.
  const std::string scope = std::to_string(out.dimension.size()) + (out.value ? "v" : "d") + out.dimension +
                            out.value.value_or(std::string{});
  if (!out.dimension.empty() && !scopes_.insert(scope).second) faults_.add(at, "is there twice");
  const auto limits = m.array("limits");
  if (!limits) return;
  const std::size_t before = faults_.count();
  const text::Path list = m.path("limits");
  std::ptrdiff_t n = 0;
  for (const simdjson::dom::element each : *limits) {
    LimitSpec spec;
    const text::Path here{&list, {}, n++};
    if (!read_limit(here, each, spec)) continue;
    if (const Status s = probe_.set_default_limits("probe", {&spec, 1}); !s) faults_.add(here, s.error().message);
    out.limits.push_back(std::move(spec));
  }
  if (faults_.count() != before) return;
  if (const Status s = probe_.set_default_limits("probe", out.limits); !s) m.fault("limits", s.error().message);
}

bool SnapshotReader::read_limit(const text::Path& at, simdjson::dom::element e, LimitSpec& out) {
  const std::size_t before = faults_.count();
  text::Members m(faults_, at, e, kLimit);
  for (const std::string_view name : {"name", "kind", "unit", "amount"}) m.need(name);
  m.text("name", out.name, kMaxText);
  if (!m.choice("kind", kLimitKindWords, out.kind) || !m.choice("unit", kLimitUnitWords, out.unit)) return false;
  const auto amount = [&](std::string_view name, std::int64_t& value) {
    if (out.unit == LimitUnit::cost_nanos) m.billionths(name, value);
    else m.integer(name, value, 0, kMostInteger);
  };
  amount("amount", out.amount);
  const auto of_kind = [&](LimitKind kind, std::string_view name) {
    if (m.find(name) != nullptr && out.kind != kind)
      m.fault(name, "is of kind " + std::string(kLimitKindWords[static_cast<std::size_t>(kind)]) + " alone");
  };
  of_kind(LimitKind::rate, "period_s");
  of_kind(LimitKind::rate, "burst");
  of_kind(LimitKind::budget, "window");
  of_kind(LimitKind::budget, "hard_stop");
  m.billionths("period_s", out.period.value);
  amount("burst", out.burst);
  if (out.kind == LimitKind::budget) {
    if (const simdjson::dom::element* const window = m.need("window"))
      read_window(m.path("window"), *window, out.window);
  }
  std::int64_t weight = out.cached_weight_permille;
  m.integer("cached_weight_permille", weight, 0, 1'000);
  out.cached_weight_permille = static_cast<std::int32_t>(weight);
  m.flag("shadow", out.shadow);
  m.flag("hard_stop", out.hard_stop);
  return faults_.count() == before;
}

void SnapshotReader::read_window(const text::Path& at, simdjson::dom::element e, CalendarWindow& out) {
  text::Members m(faults_, at, e, kWindow);
  m.need("unit");
  m.choice("unit", kCalendarWords, out.unit);
  std::int64_t count = out.count;
  m.integer("count", count, 1, 100'000);
  out.count = static_cast<std::int32_t>(count);
  m.text("time_zone", out.time_zone, kMaxText);
  m.local_time("anchor", out.anchor_local_seconds);
}

void SnapshotReader::read_prices(text::Members& top, SnapshotPrices& out) {
  const simdjson::dom::element* const e = top.find("prices");
  if (e == nullptr) return;
  const text::Path at = top.path("prices");
  text::Members m(faults_, at, *e, kPrices);
  m.text("file", out.file, 4'096);
  if (m.find("file") != nullptr || m.find("sha256") != nullptr) {
    m.need("file");
    std::array<std::uint8_t, 32> digest{};
    m.hex32("sha256", digest);
    out.file_sha256 = text::hex_text(digest);
  }
  if (const simdjson::dom::element* const overrides = m.find("overrides")) {
    out.overrides = simdjson::minify(*overrides);
    PriceTable probe;
    if (const Status s = probe.override_with(out.overrides); !s)
      m.fault("overrides", without(without(s.error().message, "price overrides: "), "price file: "));
  }
}

void SnapshotReader::read_aliases(text::Members& top, Snapshot& out) {
  const simdjson::dom::element* const e = top.find("aliases");
  if (e == nullptr) return;
  simdjson::dom::object object;
  if (e->get(object) != simdjson::SUCCESS) return top.fault("aliases", "must be an object");
  const text::Path at = top.path("aliases");
  std::unordered_set<std::string> seen;
  PriceTable probe;
  for (const auto field : object) {
    std::string_view model;
    const text::Path here{&at, field.key.substr(0, kMaxText)};
    if (field.value.get(model) != simdjson::SUCCESS) {
      faults_.add(here, "must be a string");
    } else if (field.key.size() > kMaxText || model.size() > kMaxText) {
      faults_.add(here, "is longer than 255 bytes");
    } else if (!seen.emplace(field.key).second) {
      faults_.add(here, "is there twice");
    } else if (const Status s = probe.set_alias(field.key, model); !s) {
      faults_.add(here, without(s.error().message, "price alias: "));
    }
    out.aliases.emplace_back(field.key, model);
  }
}

void SnapshotReader::read_policy(text::Members& top, Snapshot& out) {
  const simdjson::dom::element* const e = top.find("policy");
  if (e == nullptr) return;
  auto policy = policy_from_json(simdjson::minify(*e), options_.base_policy);
  if (policy) out.policy = *policy;
  else top.fault("policy", "is wrong: " + std::string(without(policy.error().message, "policy: ")));
}

void SnapshotReader::read_rollback(text::Members& top, Snapshot& out) {
  const simdjson::dom::element* const e = top.find("forced_rollback");
  if (e == nullptr) return;
  const text::Path at = top.path("forced_rollback");
  ForcedRollback& rollback = out.forced_rollback.emplace();
  text::Members m(faults_, at, *e, kRollback);
  m.need("from");
  m.need("reason");
  m.unsigned_integer("from", rollback.from);
  m.text("reason", rollback.reason, 1'024);
  if (m.find("from") != nullptr && rollback.from <= out.generation)
    m.fault("from", "must be above the document's generation: that is what going back means");
}

}  // namespace
}  // namespace control

Result<Snapshot> parse_snapshot(std::string_view payload, const SnapshotOptions& options) {
  if (payload.size() > options.max_bytes)
    return Error{Code::too_large, "snapshot: more than " + std::to_string(options.max_bytes) + " bytes",
                 options.max_bytes};
  simdjson::dom::parser parser;
  if (parser.allocate(payload.size(), control::kMaxDepth) != simdjson::SUCCESS)
    return Error{Code::internal, "snapshot: no memory to read it", kNoOffset};
  simdjson::dom::element root;
  if (const auto error = parser.parse(payload.data(), payload.size()).get(root); error != simdjson::SUCCESS) {
    const bool deep = error == simdjson::DEPTH_ERROR;
    return Error{deep ? Code::too_deep : Code::invalid_json,
                 std::string("snapshot: not JSON: ") + simdjson::error_message(error), kNoOffset};
  }
  simdjson::dom::object object;
  if (root.get(object) != simdjson::SUCCESS) return Error{Code::not_an_object, "snapshot: not an object", 0};
  // First of all: whoever reads a later format wrongly would list faults that are none.
  std::uint64_t format = 0;
  if (object["format"].get(format) == simdjson::SUCCESS && format != kSnapshotFormat)
    return Error{Code::unsupported,
                 "snapshot: format " + std::to_string(format) + ", this reads " + std::to_string(kSnapshotFormat),
                 kNoOffset};
  text::Faults faults(options.max_faults);
  Snapshot snapshot;
  control::SnapshotReader(faults, options).read(root, snapshot);
  if (format != kSnapshotFormat && object["format"].error() == simdjson::SUCCESS)
    faults.add(text::Path{nullptr, "format"}, "must be 1");
  if (faults.empty()) return snapshot;
  if (options.faults != nullptr) {
    for (const text::Fault& each : faults.list()) options.faults->push_back({each.path, each.what});
  }
  return Error{Code::invalid_argument, "snapshot: " + faults.text(), kNoOffset};
}

}  // namespace warmroute
