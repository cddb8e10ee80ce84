// Snapshots as JSON: every fault is named, and what is written reads back equal.
#include "warmroute/control/snapshot.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "control/support.hpp"

namespace warmroute::snapshot_tests {
namespace {

using control_tests::Folder;
using control_tests::slurp;
using control_tests::spill;

constexpr std::string_view kHex = "0123456789abcdefABCDEF6789abcdef0123456789abcdef0123456789abcdef";

const std::string& example() {
  static const std::string text = R"({
  "format": 1, "generation": 7, "issued_at": "2026-01-31T13:00:00.5+01:00", "max_age_s": 3600.25, "on_expired": "deny_new_keys",
  "keys": [{"public_id": "k1", "key_id": "key one", "team_id": "blue", "version": 3, "digests": [
             {"kind": "hmac_sha256", "pepper_version": 2, "hex": ")" +
                                  std::string(kHex) + R"(", "not_after": "2027-01-31T00:00:00Z"},
             {"kind": "sha256_secret", "hex": ")" +
                                  std::string(kHex) + R"("}]},
           {"key_id": "old", "version": 1, "digests": [{"kind": "sha256_key", "hex": ")" +
                                  std::string(kHex) + R"("}]},
           {"public_id": "gone", "version": "forever", "revoked": true}],
  "teams": [{"team_id": "blue", "name": "The blue ones"}],
  "limits": [{"dimension": "key", "limits": [
                {"name": "rpm", "kind": "rate", "unit": "requests", "amount": 60, "period_s": 0.5, "burst": 5},
                {"name": "at once", "kind": "concurrency", "unit": "requests", "amount": 3, "shadow": true}]},
             {"dimension": "team", "value": "blue", "limits": [
                {"name": "month", "kind": "budget", "unit": "usd", "amount": 250.5, "hard_stop": true, "cached_weight_permille": 100,
                 "window": {"unit": "month", "count": 2, "time_zone": "Europe/Berlin", "anchor": "2026-01-15T06:00:00"}}]},
             {"dimension": "team", "value": "free", "limits": []}],
  "prices": {"file": "/etc/prices.json", "sha256": ")" +
                                  std::string(kHex) + R"(", "overrides": {"m": {"input_cost_per_token": 1e-7}}},
  "aliases": {"fast": "m", "best": "n"}, "policy": {"algorithm": "round_robin"},
  "forced_rollback": {"from": 9, "reason": "wrong prices"}})";
  return text;
}

bool same(const Snapshot& a, const Snapshot& b) { return write_snapshot(a) == write_snapshot(b); }

TEST(Snapshot, EverythingOfADocumentIsRead) {
  const auto s = parse_snapshot(example());
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->generation, 7u);
  EXPECT_EQ(s->issued_at.value, 1'769'860'800'500'000'000);
  EXPECT_EQ(s->max_age, milliseconds(3'600'250));
  EXPECT_EQ(s->on_expired, OnExpired::deny_new_keys);
  ASSERT_EQ(s->keys.size(), 3u);
  EXPECT_EQ(s->keys[0].public_id, "k1");
  EXPECT_EQ(s->keys[0].key_id, "key one");
  EXPECT_EQ(s->keys[0].team_id, "blue");
  EXPECT_EQ(s->keys[0].version, 3u);
  ASSERT_EQ(s->keys[0].digests.size(), 2u);
  EXPECT_EQ(s->keys[0].digests[0].pepper_version, 2u);
  EXPECT_EQ(s->keys[0].digests[0].bytes[0], 0x01);
  EXPECT_EQ(s->keys[0].digests[0].bytes[8], 0xab);
  EXPECT_EQ(s->keys[0].digests[0].not_before.value, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(s->keys[0].digests[0].not_after, wall_seconds(1'801'353'600));
  EXPECT_EQ(s->keys[0].digests[1].kind, KeyDigestKind::sha256_secret);
  EXPECT_EQ(s->keys[1].digests[0].kind, KeyDigestKind::sha256_key);
  EXPECT_TRUE(s->keys[2].revoked);
  EXPECT_EQ(s->keys[2].version, kRevokedForever);
  EXPECT_EQ(s->teams, (std::vector<SnapshotTeam>{{"blue", "The blue ones"}}));
  ASSERT_EQ(s->limits.size(), 3u);
  EXPECT_FALSE(s->limits[0].value);
  EXPECT_EQ(s->limits[0].limits[0].period, milliseconds(500));
  EXPECT_EQ(s->limits[0].limits[0].burst, 5);
  EXPECT_TRUE(s->limits[0].limits[1].shadow);
  const LimitSpec& month = s->limits[1].limits[0];
  EXPECT_EQ(month.amount, 250'500'000'000);
  EXPECT_EQ(month.unit, LimitUnit::cost_nanos);
  EXPECT_EQ(month.cached_weight_permille, 100);
  EXPECT_TRUE(month.hard_stop);
  EXPECT_EQ(month.window.unit, CalendarUnit::month);
  EXPECT_EQ(month.window.count, 2);
  EXPECT_EQ(month.window.time_zone, "Europe/Berlin");
  EXPECT_EQ(month.window.anchor_local_seconds, 1'768'456'800);
  EXPECT_EQ(s->limits[2].value, "free");
  EXPECT_TRUE(s->limits[2].limits.empty());
  EXPECT_EQ(s->prices.file, "/etc/prices.json");
  EXPECT_EQ(s->prices.overrides, R"({"m":{"input_cost_per_token":1e-07}})");
  EXPECT_EQ(s->aliases, (std::vector<std::pair<std::string, std::string>>{{"fast", "m"}, {"best", "n"}}));
  ASSERT_TRUE(s->policy);
  EXPECT_EQ(s->policy->algorithm, Algorithm::round_robin);
  EXPECT_EQ(s->forced_rollback, (ForcedRollback{9, "wrong prices"}));
}

TEST(Snapshot, WhatWasWrittenReadsBackEqual) {
  const auto s = parse_snapshot(example());
  ASSERT_TRUE(s);
  const std::string text = write_snapshot(*s);
  const auto again = parse_snapshot(text);
  ASSERT_TRUE(again) << again.error().message << text;
  EXPECT_EQ(write_snapshot(*again), text);
  EXPECT_EQ(again->keys[0].digests[0].not_after, s->keys[0].digests[0].not_after);
  EXPECT_EQ(again->limits[1].limits[0].window.anchor_local_seconds, s->limits[1].limits[0].window.anchor_local_seconds);
  EXPECT_EQ(again->policy, s->policy);
  EXPECT_EQ(again->prices, s->prices);
  EXPECT_EQ(again->issued_at, s->issued_at);
  EXPECT_EQ(again->max_age, s->max_age);
}

TEST(Snapshot, MembersThatAreAbsentFromAPolicyAreTheBasesOwn) {
  SnapshotOptions options;
  options.base_policy.block_size = 64;
  const auto s = parse_snapshot(example(), options);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->policy->block_size, 64u);
}

// The smallest document, with some text in place of a member or beside it.
std::string with(std::string_view members) {
  return R"({"format":1,"generation":2,"issued_at":"2026-01-31T12:00:00Z")" +
         (members.find("\"keys\"") == std::string_view::npos ? std::string(R"(,"keys":[])") : "") +
         (members.empty() ? "" : ",") + std::string(members) + "}";
}
std::string with_key(std::string_view key) { return with("\"keys\":[" + std::string(key) + "]"); }
std::string with_limit(std::string_view limit) {
  return with(R"("limits":[{"dimension":"key","limits":[)" + std::string(limit) + "]}]");
}
std::string with_digest(std::string_view digest) {
  return with_key(R"({"public_id":"a","version":1,"digests":[)" + std::string(digest) + "]}");
}

TEST(Snapshot, EachFaultIsNamedWithItsPath) {
  const std::string hex = "\"hex\":\"" + std::string(kHex) + "\"";
  const std::string secret = R"({"kind":"sha256_secret",)" + hex + "}";
  const std::string whole = R"({"kind":"sha256_key",)" + hex + "}";
  const std::string key = R"({"public_id":"a","version":1,"digests":[)" + secret + "]}";
  const std::string budget = R"("name":"n","kind":"budget","unit":"requests","amount":1)";
  const std::string rate = R"("name":"n","kind":"rate","unit":"requests","amount":1)";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"generation":1,"issued_at":"2026-01-31T12:00:00Z","keys":[]})", "format is missing"},
      {R"({"format":1,"issued_at":"2026-01-31T12:00:00Z","keys":[]})", "generation is missing"},
      {R"({"format":1,"generation":1,"keys":[]})", "issued_at is missing"},
      {R"({"format":1,"generation":1,"issued_at":"2026-01-31T12:00:00Z"})", "keys is missing"},
      {R"({"format":"1","generation":1,"issued_at":"2026-01-31T12:00:00Z","keys":[]})", "format must be 1"},
      {R"({"format":1,"generation":0,"issued_at":"2026-01-31T12:00:00Z","keys":[]})", "generation must be 1 or more"},
      {R"({"format":1,"generation":-1,"issued_at":"2026-01-31T12:00:00Z","keys":[]})", "generation must be an integer"},
      {R"({"format":1,"generation":1,"issued_at":"yesterday","keys":[]})", "issued_at must be a time"},
      {R"({"format":1,"generation":1,"issued_at":"1500-01-31T12:00:00Z","keys":[]})",
       "issued_at must lie in the years"},
      {with(R"("max_age_s":"x")"), "max_age_s must be a decimal"},
      {with(R"("max_age_s":true)"), "max_age_s must be a number"},
      {with(R"("max_age_s":-1)"), "max_age_s must not be negative"},
      {with(R"("max_age_s":99999999999)"), "max_age_s is too large"},
      {with(R"("max_age_s":1234567890.5)"), "max_age_s has more digits"},
      {with(R"("on_expired":"deny")"), "on_expired must be one of serve deny_new_keys deny_all"},
      {with(R"("on_expired":"deny_all")"), "on_expired needs a max_age_s"},
      {with(R"("revokedd":1)"), "revokedd is not a member of this"},
      {with(R"("max_age_s":1,"max_age_s":2)"), "max_age_s is there twice"},
      {with(R"("keys":{})"), "keys must be an array"},
      {with_key("1"), "keys[0] must be an object"},
      {with_key(R"({"public_id":"a","digests":[)" + secret + "]}"), "keys[0].version is missing"},
      {with_key(R"({"public_id":"a","version":"x","digests":[)" + secret + "]}"), "keys[0].version must be an integer"},
      {with_key(R"({"public_id":"a","version":18446744073709551615,"revoked":true})"), "keys[0].version is written"},
      {with_key(R"({"public_id":"a","version":"forever","digests":[)" + secret + "]}"),
       "\"forever\" is of revoked keys"},
      {with_key(R"({"public_id":"a","version":1,"revoked":"yes"})"), "keys[0].revoked must be true or false"},
      {with_key(R"({"public_id":"a","version":1,"revoked":true,"revoked":false})"), "keys[0].revoked is there twice"},
      {with_key(R"({"public_id":"","version":1,"revoked":true})"), "keys[0].public_id is empty"},
      {with_key(R"({"public_id":"a-b","version":1,"revoked":true})"), "keys[0].public_id contains a dash"},
      {with_key(R"({"public_id":")" + std::string(65, 'x') + R"(","version":1,"revoked":true})"),
       "keys[0].public_id is longer"},
      {with_key(R"({"public_id":"a","version":1})"), "keys[0].digests are missing"},
      {with_key(R"({"version":1,"digests":[)" + whole + "]}"), "keys[0] has neither public_id nor key_id"},
      {with_key(R"({"key_id":"a","version":1,"revoked":true})"), "keys[0] is named neither"},
      {with_key(key + "," + key), "keys[1] is there twice"},
      {with_key(R"({"key_id":"a","version":1,"digests":[)" + whole + R"(]},{"key_id":"b","version":1,"digests":[)" +
                whole + "]}"),
       "keys[1] is there twice"},
      {with_key(R"({"public_id":"a","version":1,"digests":[)" + whole + "]}"), "exclude one another"},
      {with_digest("7"), "keys[0].digests[0] must be an object"},
      {with_digest("{" + hex + "}"), "keys[0].digests[0].kind is missing"},
      {with_digest(R"({"kind":"md5",)" + hex + "}"), "digests[0].kind must be one of hmac_sha256"},
      {with_digest(R"({"kind":"sha256_secret"})"), "digests[0].hex is missing"},
      {with_digest(R"({"kind":"sha256_secret","hex":"12"})"), "digests[0].hex must be 64"},
      {with_digest(R"({"kind":"hmac_sha256",)" + hex + "}"), "digests[0].pepper_version is missing"},
      {with_digest(R"({"kind":"hmac_sha256","pepper_version":4294967296,)" + hex + "}"),
       "pepper_version must be an integer"},
      {with_digest(R"({"kind":"sha256_secret","pepper_version":1,)" + hex + "}"),
       "pepper_version is of hmac_sha256 alone"},
      {with_digest(R"({"kind":"sha256_secret",)" + hex +
                   R"(,"not_after":"2026-01-01T00:00:00Z","not_before":"2026-01-01T00:00:00Z"})"),
       "digests[0].not_after must be later"},
      {with(R"("teams":[{"name":"x"}])"), "teams[0].team_id is missing"},
      {with(R"("teams":[{"team_id":"x"},{"team_id":"x"}])"), "teams[1].team_id is there twice"},
      {with(R"("teams":[{"team_id":"x"}],"keys":[{"public_id":"a","version":1,"team_id":"y","revoked":true}])"),
       "keys[0].team_id is not among the teams"},
      {with(R"("limits":[{"limits":[]}])"), "limits[0].dimension is missing"},
      {with(R"("limits":[{"dimension":"key"}])"), "limits[0].limits is missing"},
      {with(R"("limits":[{"dimension":"key","limits":[]},{"dimension":"key","limits":[]}])"),
       "limits[1] is there twice"},
      {with(R"("limits":[{"dimension":"key","value":7,"limits":[]}])"), "limits[0].value must be a string"},
      {with_limit(R"({"kind":"rate","unit":"requests","amount":1})"), "limits[0].limits[0].name is missing"},
      {with_limit(R"({"name":"n","unit":"requests","amount":1})"), "limits[0].limits[0].kind is missing"},
      {with_limit(R"({"name":"n","kind":"rate","amount":1})"), "limits[0].limits[0].unit is missing"},
      {with_limit(R"({"name":"n","kind":"rate","unit":"requests"})"), "limits[0].limits[0].amount is missing"},
      {with_limit(R"({"name":"n","kind":"quota","unit":"requests","amount":1})"),
       "kind must be one of rate budget concurrency"},
      {with_limit(R"({"name":"n","kind":"rate","unit":"tokens","amount":1})"),
       "unit must be one of requests input_tokens"},
      {with_limit(R"({"name":"n","kind":"rate","unit":"requests","amount":1.5})"), "amount must be an integer"},
      {with_limit(R"({"name":"n","kind":"rate","unit":"requests","amount":0})"), "limits[0].limits[0] limit"},
      {with_limit("{" + rate + R"(,"period_s":0})"), "period"},
      {with_limit("{" + rate + R"(,"window":{"unit":"day"}})"), "window is of kind budget alone"},
      {with_limit("{" + rate + R"(,"hard_stop":true})"), "hard_stop is of kind budget alone"},
      {with_limit("{" + budget + "}"), "limits[0].limits[0].window is missing"},
      {with_limit("{" + budget + R"(,"period_s":1,"window":{"unit":"day"}})"), "period_s is of kind rate alone"},
      {with_limit("{" + budget + R"(,"window":{}})"), "window.unit is missing"},
      {with_limit("{" + budget + R"(,"window":{"unit":"fortnight"}})"), "window.unit must be one of minute"},
      {with_limit("{" + budget + R"(,"window":{"unit":"day","count":0}})"), "window.count must be an integer"},
      {with_limit("{" + budget + R"(,"window":{"unit":"day","time_zone":"Mars/Olympus"}})"),
       "Mars/Olympus is not installed"},
      {with_limit("{" + budget + R"(,"window":{"unit":"day","anchor":"noon"}})"), "window.anchor must be a local time"},
      {with_limit("{" + rate + R"(,"cached_weight_permille":1001})"),
       "cached_weight_permille must be an integer in 0..1000"},
      {with_limit("{" + rate + "},{" + rate + "}"), "limits[0].limits limit \"n\" is there twice"},
      {with(R"("prices":[])"), "prices must be an object"},
      {with(R"("prices":{"file":"x"})"), "prices.sha256 is missing"},
      {with(R"("prices":{"sha256":")" + std::string(kHex) + "\"}"), "prices.file is missing"},
      {with(R"("prices":{"overrides":[]})"), "prices.overrides"},
      {with(R"("prices":{"overrides":{"m":{"input_cost_per_token":-1}}})"),
       "prices.overrides m.input_cost_per_token is no price"},
      {with(R"("aliases":[])"), "aliases must be an object"},
      {with(R"("aliases":{"a":1})"), "aliases.a must be a string"},
      {with(R"("aliases":{"a":"b","a":"c"})"), "aliases.a is there twice"},
      {with(R"("aliases":{"a":"b","b":"a"})"), "aliases.b 'b' leads to itself"},
      {with(R"("policy":{"algorithm":"best"})"), "policy is wrong: algorithm must be one of"},
      {with(R"("policy":null)"), "policy is wrong"},
      {with(R"("forced_rollback":{"from":9})"), "forced_rollback.reason is missing"},
      {with(R"("forced_rollback":{"reason":"x"})"), "forced_rollback.from is missing"},
      {with(R"("forced_rollback":{"from":2,"reason":"x"})"), "forced_rollback.from must be above"},
  };
  ASSERT_TRUE(parse_snapshot(with(""))) << parse_snapshot(with("")).error().message;
  ASSERT_TRUE(parse_snapshot(with_key(key)));
  ASSERT_TRUE(parse_snapshot(with_limit("{" + budget + R"(,"window":{"unit":"day"}})")));
  for (const auto& [text, fault] : cases) {
    const auto s = parse_snapshot(text);
    ASSERT_FALSE(s) << text;
    EXPECT_EQ(s.code(), Code::invalid_argument) << text;
    EXPECT_NE(s.error().message.find(fault), std::string::npos) << text << "\n" << s.error().message << "\n" << fault;
    EXPECT_EQ(s.error().message.substr(0, 10), "snapshot: ");
  }
}

TEST(Snapshot, AllFaultsAreListedUpToALimit) {
  const auto s = parse_snapshot(
      R"({"format":1,"generation":0,"issued_at":1,"keys":[{},{"public_id":2}],"policy":{"beta":"x","gamma":"y"}})");
  ASSERT_FALSE(s);
  for (const char* fault : {"generation must be 1", "issued_at must be a time", "keys[0].version is missing",
                            "keys[1].public_id must be a string", "keys[1].version is missing", "beta", "gamma"})
    EXPECT_NE(s.error().message.find(fault), std::string::npos) << fault << " in " << s.error().message;
  std::string many = "[1";
  for (int i = 1; i < 100; ++i) many += ",1";
  SnapshotOptions options;
  options.max_faults = 10;
  const auto cut = parse_snapshot(with("\"keys\":" + many + "]"), options);
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message.find("keys[3] must"), std::string::npos);
  EXPECT_EQ(cut.error().message.find("keys[99]"), std::string::npos);
  EXPECT_NE(cut.error().message.find("more"), std::string::npos);
}

TEST(Snapshot, SizesDepthAndLaterFormatsAreRefused) {
  SnapshotOptions small;
  small.max_bytes = 10;
  EXPECT_EQ(parse_snapshot(with(""), small).code(), Code::too_large);
  small = {};
  small.max_keys = 1;
  const auto many = parse_snapshot(
      with_key(R"({"public_id":"a","version":1,"revoked":true},{"public_id":"b","version":1,"revoked":true})"), small);
  EXPECT_NE(many.error().message.find("keys are more than 1"), std::string::npos) << many.error().message;
  EXPECT_EQ(parse_snapshot("").code(), Code::invalid_json);
  EXPECT_EQ(parse_snapshot("{").code(), Code::invalid_json);
  EXPECT_EQ(parse_snapshot("[]").code(), Code::not_an_object);
  EXPECT_EQ(parse_snapshot(with("\"keys\":" + std::string(40, '[') + std::string(40, ']'))).code(), Code::too_deep);
  EXPECT_EQ(parse_snapshot(with("\"prices\":{\"overrides\":" + std::string(5'000, '[') + std::string(5'000, ']') + "}"))
                .code(),
            Code::too_deep);
  EXPECT_EQ(parse_snapshot(R"({"format":2,"members":"unknown"})").code(), Code::unsupported);
  EXPECT_EQ(parse_snapshot("{\"format\":1,\"x\":\"\xff\"}").code(), Code::invalid_json);
}

TEST(Snapshot, CutAnywhereItIsRefused) {
  const std::string text = example();
  for (std::size_t n = 0; n < text.size(); ++n) ASSERT_FALSE(parse_snapshot(std::string_view(text).substr(0, n))) << n;
}

struct Random {
  explicit Random(std::uint64_t seed) : engine(seed) {}
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  }
  bool coin() { return number(0, 1) == 1; }
  std::string word(int salt) {
    static const char* const kWords[] = {"a",           "blue", "with \"quotes\"", "\\", "\xc3\xa4",
                                         "line\nbreak", "\x01", "x.y[0]"};
    return kWords[number(0, 7)] + std::to_string(salt);
  }
  std::mt19937_64 engine;
};

KeyRecord random_key(Random& r, int n) {
  KeyRecord k;
  const bool by_digest = r.number(0, 3) == 0;
  if (!by_digest) k.public_id = "id" + std::to_string(n);
  if (by_digest || r.coin()) k.key_id = r.word(n);
  if (r.coin()) k.team_id = "team" + std::to_string(r.number(0, 2));
  k.revoked = r.number(0, 3) == 0;
  k.version = k.revoked && r.coin() ? kRevokedForever
                                    : static_cast<std::uint64_t>(r.number(0, std::numeric_limits<std::int64_t>::max()));
  const std::int64_t digests = r.number(by_digest || !k.revoked ? 1 : 0, 3);
  for (std::int64_t i = 0; i < digests; ++i) {
    KeyDigest& d = k.digests.emplace_back();
    d.kind = by_digest ? KeyDigestKind::sha256_key : static_cast<KeyDigestKind>(r.number(0, 1));
    if (d.kind == KeyDigestKind::hmac_sha256) d.pepper_version = static_cast<std::uint32_t>(r.number(0, 0xffff'ffff));
    for (auto& byte : d.bytes) byte = static_cast<std::uint8_t>(r.number(0, 255));
    if (r.coin()) d.not_before = WallNanos{r.number(-9'000'000'000'000'000'000, 1'000'000'000'000'000'000)};
    if (r.coin()) d.not_after = WallNanos{r.number(1'000'000'000'000'000'001, 9'000'000'000'000'000'000)};
  }
  return k;
}

LimitSpec random_limit(Random& r, int n) {
  LimitSpec l;
  l.name = r.word(n);
  l.kind = static_cast<LimitKind>(r.number(0, 2));
  l.unit = l.kind == LimitKind::concurrency ? LimitUnit::requests : static_cast<LimitUnit>(r.number(0, 4));
  l.amount = r.coin() ? r.number(1, 1'000) : r.number(1, std::int64_t{1} << 60);
  if (l.kind == LimitKind::rate) {
    l.period = Nanos{r.number(1'000'000, 31'000'000'000'000'000)};
    if (r.coin()) l.burst = l.amount;
  }
  if (l.kind == LimitKind::budget) {
    l.window = {static_cast<CalendarUnit>(r.number(0, 5)), static_cast<std::int32_t>(r.number(1, 100'000)),
                r.coin() ? 0 : r.number(-100'000'000'000, 100'000'000'000), r.coin() ? "UTC" : "Europe/Berlin"};
    l.hard_stop = r.coin();
  }
  if (r.coin()) l.cached_weight_permille = static_cast<std::int32_t>(r.number(0, 1'000));
  l.shadow = r.coin();
  return l;
}

Snapshot random_snapshot(Random& r) {
  Snapshot s;
  s.generation = static_cast<std::uint64_t>(r.number(1, std::numeric_limits<std::int64_t>::max()));
  s.issued_at = WallNanos{r.number(-9'000'000'000'000'000'000, 9'000'000'000'000'000'000)};
  if (r.coin()) s.max_age = Nanos{r.coin() ? r.number(1, 1'000'000'000'000) : r.number(1, 9'000'000'000'000'000'000)};
  if (s.max_age.value != 0) s.on_expired = static_cast<OnExpired>(r.number(0, 2));
  for (int i = static_cast<int>(r.number(0, 6)); i > 0; --i) s.keys.push_back(random_key(r, i));
  if (r.coin()) s.teams = {{"team0", ""}, {"team1", r.word(1)}, {"team2", r.word(2)}};
  for (int i = static_cast<int>(r.number(0, 3)); i > 0; --i) {
    SnapshotLimits& scope = s.limits.emplace_back();
    scope.dimension = r.word(i);
    if (r.coin()) scope.value = r.word(0);
    for (int n = static_cast<int>(r.number(0, 3)); n > 0; --n) scope.limits.push_back(random_limit(r, n));
  }
  if (r.coin())
    s.prices = {r.word(0), std::string(64, "0123456789abcdef"[r.number(0, 15)]),
                r.coin() ? "" : R"({"m":{"output_cost_per_token":2e-06}})"};
  if (r.coin()) s.aliases = {{r.word(0), "m"}, {r.word(10), "n"}};
  if (r.coin()) {
    s.policy.emplace();
    s.policy->algorithm = static_cast<Algorithm>(r.number(0, 8));
    s.policy->beta = static_cast<double>(r.number(0, 1'000)) / 7'000;
    s.policy->lease = Nanos{r.number(1'000'000'000, 100'000'000'000)};
  }
  if (r.coin())
    s.forced_rollback = ForcedRollback{s.generation + static_cast<std::uint64_t>(r.number(1, 5)), r.word(3)};
  return s;
}

bool same_keys(const std::vector<KeyRecord>& a, const std::vector<KeyRecord>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const KeyRecord& x, const KeyRecord& y) {
    return x.public_id == y.public_id && x.key_id == y.key_id && x.team_id == y.team_id && x.version == y.version &&
           x.revoked == y.revoked &&
           std::equal(x.digests.begin(), x.digests.end(), y.digests.begin(), y.digests.end(),
                      [](const KeyDigest& c, const KeyDigest& d) {
                        return c.bytes == d.bytes && c.kind == d.kind && c.pepper_version == d.pepper_version &&
                               c.not_before == d.not_before && c.not_after == d.not_after;
                      });
  });
}

bool same_limits(const std::vector<SnapshotLimits>& a, const std::vector<SnapshotLimits>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SnapshotLimits& x, const SnapshotLimits& y) {
    return x.dimension == y.dimension && x.value == y.value &&
           std::equal(x.limits.begin(), x.limits.end(), y.limits.begin(), y.limits.end(),
                      [](const LimitSpec& c, const LimitSpec& d) {
                        return c.name == d.name && c.kind == d.kind && c.unit == d.unit && c.amount == d.amount &&
                               c.period == d.period && c.burst == d.burst && c.window.unit == d.window.unit &&
                               c.window.count == d.window.count && c.window.time_zone == d.window.time_zone &&
                               c.window.anchor_local_seconds == d.window.anchor_local_seconds &&
                               c.cached_weight_permille == d.cached_weight_permille && c.shadow == d.shadow &&
                               c.hard_stop == d.hard_stop;
                      });
  });
}

TEST(Snapshot, RandomOnesReadBackEqual) {
  Random r(20'260'131);
  for (int round = 0; round < 1'000; ++round) {
    const Snapshot s = random_snapshot(r);
    const std::string text = write_snapshot(s);
    const auto back = parse_snapshot(text);
    ASSERT_TRUE(back) << back.error().message << "\n" << text;
    ASSERT_EQ(write_snapshot(*back), text);
    ASSERT_TRUE(same(s, *back));
    ASSERT_EQ(back->generation, s.generation);
    ASSERT_EQ(back->issued_at, s.issued_at) << text;
    ASSERT_EQ(back->max_age, s.max_age) << text;
    ASSERT_EQ(back->on_expired, s.on_expired);
    ASSERT_TRUE(same_keys(s.keys, back->keys)) << text;
    ASSERT_TRUE(same_limits(s.limits, back->limits)) << text;
    ASSERT_EQ(back->teams, s.teams);
    ASSERT_EQ(back->prices, s.prices);
    ASSERT_EQ(back->aliases, s.aliases);
    ASSERT_EQ(back->policy, s.policy);
    ASSERT_EQ(back->forced_rollback, s.forced_rollback);
  }
}

TEST(SnapshotFile, IsReplacedAsAWholeOrNotAtAll) {
  const Folder folder;
  const std::string path = folder / "file";
  ASSERT_TRUE(replace_file(path, "one"));
  EXPECT_EQ(*read_file(path, 10), "one");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  ASSERT_TRUE(replace_file(path, std::string(300'000, 'x'), 0644));
  EXPECT_EQ(read_file(path, 300'000)->size(), 300'000u);
  EXPECT_EQ(read_file(path, 299'999).code(), Code::too_large);
  EXPECT_EQ(read_file(folder / "none", 10).code(), Code::not_found);
  EXPECT_EQ(replace_file(folder / "no/such/folder", "x").code(), Code::io);
  // A folder stands where the file should be: the rename fails, and nothing is left beside it.
  std::filesystem::create_directory(folder / "taken");
  spill(folder / "taken/inside", "x");
  EXPECT_EQ(replace_file(folder / "taken", "x").code(), Code::io);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path), {}), 2);
  EXPECT_EQ(slurp(folder / "taken/inside"), "x");
}

}  // namespace
}  // namespace warmroute::snapshot_tests
