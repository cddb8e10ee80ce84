// A snapshot as JSON. One order of members, one spelling of each value.
#include "control/snapshot_words.hpp"
#include "text/json_escape.hpp"
#include "text/strict_json.hpp"
#include "warmroute/control/snapshot.hpp"
#include "warmroute/route/policy_json.hpp"

namespace warmroute {

std::string_view on_expired_name(OnExpired value) noexcept {
  const auto i = static_cast<std::size_t>(value);
  return i < control::kOnExpiredWords.size() ? control::kOnExpiredWords[i] : std::string_view{"unknown"};
}

namespace control {
namespace {

// One object on one line: {"a": 1, "b": "x"}
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  ObjectWriter& raw(std::string_view name, std::string_view json) {
    out_.append(first_ ? "" : ", ");
    first_ = false;
    text::append_json_string(out_, name);
    out_.append(": ").append(json);
    return *this;
  }
  ObjectWriter& string(std::string_view name, std::string_view value) {
    raw(name, {});
    text::append_json_string(out_, value);
    return *this;
  }
  ObjectWriter& name(std::string_view name) { return raw(name, {}); }
  void end() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

template <class List, class Write>
void write_list(std::string& out, const List& list, std::string_view between, Write&& write) {
  out += '[';
  bool first = true;
  for (const auto& item : list) {
    if (!first) out += ',';
    out += between;
    first = false;
    write(item);
  }
  out += ']';
}

void write_digest(std::string& out, const KeyDigest& d) {
  ObjectWriter o(out);
  o.string("kind", kDigestWords[static_cast<std::size_t>(d.kind)]);
  if (d.kind == KeyDigestKind::hmac_sha256) o.raw("pepper_version", std::to_string(d.pepper_version));
  o.string("hex", text::hex_text(d.bytes));
  const KeyDigest open;
  if (d.not_before != open.not_before) o.string("not_before", text::time_text(d.not_before));
  if (d.not_after != open.not_after) o.string("not_after", text::time_text(d.not_after));
  o.end();
}

void write_key(std::string& out, const KeyRecord& k) {
  ObjectWriter o(out);
  if (!k.public_id.empty()) o.string("public_id", k.public_id);
  if (!k.key_id.empty()) o.string("key_id", k.key_id);
  if (!k.team_id.empty()) o.string("team_id", k.team_id);
  if (k.version == kRevokedForever) o.string("version", "forever");
  else o.raw("version", std::to_string(k.version));
  if (k.revoked) o.raw("revoked", "true");
  if (!k.digests.empty()) {
    o.name("digests");
    write_list(out, k.digests, "", [&](const KeyDigest& d) { write_digest(out, d); });
  }
  o.end();
}

void write_limit(std::string& out, const LimitSpec& l) {
  const auto amount = [&](std::int64_t n) {
    return l.unit == LimitUnit::cost_nanos ? text::billionths_text(n) : std::to_string(n);
  };
  ObjectWriter o(out);
  o.string("name", l.name);
  o.string("kind", kLimitKindWords[static_cast<std::size_t>(l.kind)]);
  o.string("unit", kLimitUnitWords[static_cast<std::size_t>(l.unit)]);
  o.raw("amount", amount(l.amount));
  if (l.kind == LimitKind::rate) {
    o.raw("period_s", text::billionths_text(l.period.value));
    if (l.burst != 0) o.raw("burst", amount(l.burst));
  }
  if (l.kind == LimitKind::budget) {
    o.name("window");
    ObjectWriter w(out);
    w.string("unit", kCalendarWords[static_cast<std::size_t>(l.window.unit)]);
    w.raw("count", std::to_string(l.window.count));
    w.string("time_zone", l.window.time_zone);
    if (l.window.anchor_local_seconds != 0) w.string("anchor", text::local_time_text(l.window.anchor_local_seconds));
    w.end();
    if (l.hard_stop) o.raw("hard_stop", "true");
  }
  if (l.cached_weight_permille != 1'000) o.raw("cached_weight_permille", std::to_string(l.cached_weight_permille));
  if (l.shadow) o.raw("shadow", "true");
  o.end();
}

void write_scope(std::string& out, const SnapshotLimits& s) {
  ObjectWriter o(out);
  o.string("dimension", s.dimension);
  if (s.value) o.string("value", *s.value);
  o.name("limits");
  write_list(out, s.limits, "", [&](const LimitSpec& l) { write_limit(out, l); });
  o.end();
}

void write_prices(std::string& out, const SnapshotPrices& p) {
  ObjectWriter o(out);
  if (!p.file.empty()) o.string("file", p.file).string("sha256", p.file_sha256);
  if (!p.overrides.empty()) o.raw("overrides", p.overrides);
  o.end();
}

std::string write_document(const Snapshot& s) {
  constexpr std::string_view kLine = "\n    ";
  std::string out;
  const auto member = [&](std::string_view name) {
    out.append(out.empty() ? "{\n  " : ",\n  ");
    text::append_json_string(out, name);
    out += ": ";
  };
  const auto raw = [&](std::string_view name, std::string_view json) {
    member(name);
    out += json;
  };
  raw("format", std::to_string(kSnapshotFormat));
  raw("generation", std::to_string(s.generation));
  raw("issued_at", "\"" + text::time_text(s.issued_at) + "\"");
  raw("max_age_s", text::billionths_text(s.max_age.value));
  raw("on_expired", "\"" + std::string(on_expired_name(s.on_expired)) + "\"");
  if (s.forced_rollback) {
    member("forced_rollback");
    ObjectWriter o(out);
    o.raw("from", std::to_string(s.forced_rollback->from)).string("reason", s.forced_rollback->reason).end();
  }
  member("keys");
  write_list(out, s.keys, kLine, [&](const KeyRecord& k) { write_key(out, k); });
  if (!s.teams.empty()) {
    member("teams");
    write_list(out, s.teams, kLine, [&](const SnapshotTeam& t) {
      ObjectWriter o(out);
      o.string("team_id", t.team_id);
      if (!t.name.empty()) o.string("name", t.name);
      o.end();
    });
  }
  if (!s.limits.empty()) {
    member("limits");
    write_list(out, s.limits, kLine, [&](const SnapshotLimits& l) { write_scope(out, l); });
  }
  if (!s.prices.file.empty() || !s.prices.overrides.empty()) {
    member("prices");
    write_prices(out, s.prices);
  }
  if (!s.aliases.empty()) {
    member("aliases");
    ObjectWriter o(out);
    for (const auto& [name, model] : s.aliases) o.string(name, model);
    o.end();
  }
  if (s.policy) {
    std::string policy = policy_to_json(*s.policy);
    policy.pop_back();  // the newline
    raw("policy", policy);
  }
  return out + "\n}\n";
}

}  // namespace
}  // namespace control

std::string write_snapshot(const Snapshot& snapshot) { return control::write_document(snapshot); }

}  // namespace warmroute
