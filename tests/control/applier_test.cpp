// Snapshots put in force: all or nothing, never back, and again after a restart.
#include "warmroute/control/applier.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "control/support.hpp"

namespace warmroute::applier_tests {
namespace {

using control_tests::at;
using control_tests::dead;
using control_tests::Folder;
using control_tests::live;
using control_tests::signed_bytes;
using control_tests::signer;
using control_tests::slurp;
using control_tests::snapshot_of;
using control_tests::spill;
using control_tests::verdict;

// SHA-256 of kPrices, as sha256sum says.
constexpr std::string_view kPrices = R"({"m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}})";
constexpr std::string_view kPricesSha = "a0b6b570a89d86f5be1f5e153cf6667ff6f0f8d6c2a8e3347c021d9a20301042";

struct Listener final : SnapshotListener {
  Status check(const Snapshot& s) override {
    ++checks;
    return s.policy && s.policy->block_size == 7 ? Status{Error{Code::unsupported, "no blocks of 7", kNoOffset}}
                                                 : Status{};
  }
  void applied(const Snapshot& s) override { generations.push_back(s.generation); }
  void rolled_back(const RollbackRecord& r) override { back.push_back(r); }
  int checks = 0;
  std::vector<std::uint64_t> generations;
  std::vector<RollbackRecord> back;
};

// One process: what it holds is gone with it, but for the folder.
struct Process {
  explicit Process(const std::string& folder = {}, bool allow_unsigned = false) {
    ControlOptions options;
    options.trust = {{signer().public_key()}, allow_unsigned};
    options.directory = folder;
    applier = std::make_unique<SnapshotApplier>(options, ControlTargets{&keys, &limits, &prices, &listener});
  }
  Result<Applied> apply(const Snapshot& s, std::int64_t now = 100) const {
    return applier->apply(signed_bytes(s), at(now));
  }
  [[nodiscard]] ControlStatus status(std::int64_t now = 100) const { return applier->status(seconds(now)); }
  [[nodiscard]] KeyVerdict check(const std::string& id, std::uint64_t version = 1, std::int64_t now = 100) const {
    return verdict(keys, id, version, at(now));
  }
  std::vector<LimitSpec> limits_of(std::string_view dimension, std::string_view value) {
    return limits.limits(*limits.scope(dimension, value));
  }
  KeySet keys;
  Limits limits;
  PriceSlot prices;
  Listener listener;
  std::unique_ptr<SnapshotApplier> applier;
};

LimitSpec rate(std::int64_t amount) {
  LimitSpec l;
  l.name = "rpm";
  l.amount = amount;
  return l;
}

TEST(SnapshotApplier, PutsEverythingInForce) {
  Process p;
  Snapshot s = snapshot_of(5, {live("a"), live("b"), dead("c")});
  s.limits = {{"key", std::nullopt, {rate(10)}}, {"team", "blue", {rate(20)}}};
  s.prices.overrides = R"({"m":{"input_cost_per_token":1e-06,"output_cost_per_token":2e-06}})";
  s.aliases = {{"fast", "m"}};
  s.policy.emplace();
  const auto applied = p.apply(s);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(applied->generation, 5u);
  EXPECT_FALSE(applied->unchanged);
  EXPECT_EQ(applied->signed_by, "test");
  EXPECT_EQ(p.check("a"), KeyVerdict::accepted);
  EXPECT_EQ(p.check("c"), KeyVerdict::revoked);
  EXPECT_EQ(p.limits_of("key", "any").at(0).amount, 10);
  EXPECT_EQ(p.limits_of("team", "blue").at(0).amount, 20);
  EXPECT_TRUE(p.limits_of("team", "red").empty());
  ASSERT_NE(p.prices.get(), nullptr);
  EXPECT_EQ(p.prices.get()->find("fast"), "m");
  EXPECT_EQ(p.listener.generations, std::vector<std::uint64_t>{5});
  const ControlStatus status = p.status(130);
  EXPECT_EQ(status.generation, 5u);
  EXPECT_EQ(status.age, seconds(30));
  EXPECT_EQ(status.keys, 2u);
  EXPECT_EQ(status.revoked, 1u);
  EXPECT_EQ(status.applied, 1u);
  EXPECT_FALSE(status.expired);
}

TEST(SnapshotApplier, OlderAndEqualGenerationsAreStale) {
  Process p;
  ASSERT_TRUE(p.apply(snapshot_of(5, {live("a")})));
  EXPECT_EQ(p.apply(snapshot_of(4, {live("b")})).code(), Code::stale);
  EXPECT_EQ(p.apply(snapshot_of(5, {live("b")})).code(), Code::stale);
  EXPECT_EQ(p.check("a"), KeyVerdict::accepted);
  EXPECT_EQ(p.check("b"), KeyVerdict::unknown);
  EXPECT_EQ(p.status().refused, 2u);
  EXPECT_EQ(p.status().last_code, Code::stale);
  // The same bytes once more say that control is there.
  const auto again = p.apply(snapshot_of(5, {live("a")}), 200);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->unchanged);
  EXPECT_EQ(p.status(200).age, seconds(0));
  EXPECT_EQ(p.keys.age(seconds(200)), seconds(0));
  EXPECT_EQ(p.status().applied, 1u);
}

TEST(SnapshotApplier, AFaultAnywhereChangesNothing) {
  const Folder folder;
  spill(folder / "prices.json", kPrices);
  Process p(folder / "state");
  Snapshot good = snapshot_of(5, {live("a")});
  good.limits = {{"key", std::nullopt, {rate(10)}}};
  good.prices.file = folder / "prices.json";
  good.prices.file_sha256 = kPricesSha;
  ASSERT_TRUE(p.apply(good)) << p.status().last_error;
  const auto prices = p.prices.get();
  EXPECT_EQ(prices->find("m"), "m");
  const std::string kept = slurp(folder / "state/last_good");

  Snapshot next = snapshot_of(6, {live("b")});
  next.limits = {{"key", std::nullopt, {rate(11)}}};
  std::vector<std::pair<std::string, Code>> bad;
  bad.emplace_back("", Code::invalid_value);
  bad.emplace_back("garbage", Code::invalid_value);
  bad.emplace_back(write_snapshot(next), Code::invalid_value);
  bad.emplace_back(signed_bytes(next, *generate_signing_key("stranger")), Code::not_found);
  bad.emplace_back(*sign_snapshot("{", signer()), Code::invalid_json);
  bad.emplace_back(*sign_snapshot("{\"format\":1}", signer()), Code::invalid_argument);
  next.prices.file = folder / "none.json";
  next.prices.file_sha256 = kPricesSha;
  bad.emplace_back(signed_bytes(next), Code::not_found);
  next.prices.file = folder / "prices.json";
  next.prices.file_sha256 = std::string(64, '0');
  bad.emplace_back(signed_bytes(next), Code::invalid_value);
  next.prices = {};
  next.policy.emplace();
  next.policy->block_size = 7;  // the listener's doing
  bad.emplace_back(signed_bytes(next), Code::unsupported);
  for (const auto& [bytes, code] : bad) {
    const auto applied = p.applier->apply(bytes, at(150));
    EXPECT_EQ(applied.code(), code) << bytes.substr(0, 200) << (applied ? "" : applied.error().message);
    EXPECT_EQ(p.check("a"), KeyVerdict::accepted);
    EXPECT_EQ(p.check("b"), KeyVerdict::unknown);
    EXPECT_EQ(p.limits_of("key", "any").at(0).amount, 10);
    EXPECT_EQ(p.prices.get(), prices);
    EXPECT_EQ(p.status().generation, 5u);
    EXPECT_EQ(slurp(folder / "state/last_good"), kept);
  }
  EXPECT_EQ(p.status().refused, bad.size());
  EXPECT_EQ(p.listener.generations, std::vector<std::uint64_t>{5});
  next.policy->block_size = 16;
  EXPECT_TRUE(p.apply(next));
  EXPECT_EQ(p.check("a"), KeyVerdict::unknown);
}

TEST(SnapshotApplier, UnsignedSnapshotsPassOnlyWhereThatIsSaid) {
  Process p({}, true);
  const auto applied = p.applier->apply(write_snapshot(snapshot_of(1, {live("a")})), at(1));
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->signed_by, "");
}

TEST(SnapshotApplier, LimitsThatAreNoLongerNamedAreAsAllOthers) {
  Process p;
  Snapshot s = snapshot_of(1, {});
  s.limits = {{"team", std::nullopt, {rate(1)}}, {"team", "blue", {rate(2)}}, {"model", std::nullopt, {rate(3)}}};
  ASSERT_TRUE(p.apply(s));
  EXPECT_EQ(p.limits_of("team", "blue").at(0).amount, 2);
  s = snapshot_of(2, {});
  s.limits = {{"team", std::nullopt, {rate(4)}}};
  ASSERT_TRUE(p.apply(s));
  EXPECT_EQ(p.limits_of("team", "blue").at(0).amount, 4);
  EXPECT_TRUE(p.limits_of("model", "m").empty());
  s = snapshot_of(3, {});
  s.limits = {{"team", std::nullopt, {rate(5)}}};
  ASSERT_TRUE(p.apply(s));
  EXPECT_EQ(p.limits_of("team", "blue").at(0).amount, 5);
  ASSERT_TRUE(p.apply(snapshot_of(4, {})));
  EXPECT_TRUE(p.limits_of("team", "blue").empty());
  EXPECT_TRUE(p.limits_of("team", "red").empty());
}

TEST(SnapshotApplier, PricesThatAreNoLongerNamedAreUnknown) {
  Process p;
  Snapshot s = snapshot_of(1, {});
  s.prices.overrides = R"({"m":{"input_cost_per_token":1e-06}})";
  ASSERT_TRUE(p.apply(s));
  EXPECT_EQ(p.prices.get()->size(), 1u);
  ASSERT_TRUE(p.apply(snapshot_of(2, {})));
  EXPECT_EQ(p.prices.get()->size(), 0u);
}

TEST(SnapshotApplier, BackItGoesOnlyFromTheGenerationThatIsNamed) {
  const Folder folder;
  Process p(folder.path);
  ASSERT_TRUE(p.apply(snapshot_of(5, {live("a")})));
  ASSERT_TRUE(p.apply(snapshot_of(9, {live("b")})));
  Snapshot back = snapshot_of(5, {live("a")});
  back.issued_at = wall_seconds(1'800'000'100);
  back.forced_rollback = ForcedRollback{8, "wrong one"};
  EXPECT_EQ(p.apply(back).code(), Code::stale);
  back.forced_rollback = ForcedRollback{9, "wrong keys"};
  Snapshot early = back;
  early.issued_at = wall_seconds(1'800'000'008);  // before the ninth
  EXPECT_EQ(p.apply(early).code(), Code::stale);
  const auto applied = p.apply(back, 123);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_TRUE(applied->rolled_back);
  EXPECT_EQ(p.check("a"), KeyVerdict::accepted);
  EXPECT_EQ(p.check("b"), KeyVerdict::unknown);
  EXPECT_EQ(p.status().generation, 5u);
  EXPECT_EQ(p.status().top_generation, 9u);
  ASSERT_EQ(p.applier->rollbacks().size(), 1u);
  const RollbackRecord record = p.applier->rollbacks()[0];
  EXPECT_EQ(record.from, 9u);
  EXPECT_EQ(record.to, 5u);
  EXPECT_EQ(record.reason, "wrong keys");
  EXPECT_EQ(record.signed_by, "test");
  EXPECT_EQ(record.at, at(123).wall);
  ASSERT_EQ(p.listener.back.size(), 1u);
  // What was rolled back from does not come back by itself, nor does anything below it.
  for (const std::uint64_t generation : {6u, 8u, 9u})
    EXPECT_EQ(p.apply(snapshot_of(generation, {live("b")})).code(), Code::stale);
  Snapshot tenth = snapshot_of(10, {live("c")});
  tenth.issued_at = wall_seconds(1'800'000'200);
  EXPECT_TRUE(p.apply(tenth));
  EXPECT_EQ(p.apply(back).code(), Code::stale);  // played once more
  const std::string audit = slurp(folder / "rollbacks");
  EXPECT_NE(audit.find("\"reason\": \"wrong keys\""), std::string::npos) << audit;
}

TEST(SnapshotApplier, RevocationsOutliveRollbacksAndRestarts) {
  const Folder folder;
  {
    Process p(folder.path);
    ASSERT_TRUE(p.apply(snapshot_of(1, {live("a", 1), live("b", 1), live("c", 1)})));
    ASSERT_TRUE(p.apply(snapshot_of(2, {dead("a", 1), live("b", 1), live("c", 1)})));
    ASSERT_TRUE(p.apply(snapshot_of(3, {live("a", 2), live("b", 1), live("c", 1)})));  // issued anew
    EXPECT_EQ(p.check("a", 2), KeyVerdict::accepted);
    ASSERT_TRUE(p.applier->revoke("b"));
    EXPECT_EQ(p.check("b"), KeyVerdict::revoked);
    Snapshot back = snapshot_of(1, {live("a", 1), live("b", 1), live("c", 1)});
    back.issued_at = wall_seconds(1'800'000'100);
    back.forced_rollback = ForcedRollback{3, "r"};
    ASSERT_TRUE(p.apply(back));
    EXPECT_EQ(p.check("a", 1), KeyVerdict::revoked);  // although version 2 had been in between
    EXPECT_EQ(p.check("b"), KeyVerdict::revoked);
    EXPECT_EQ(p.check("c"), KeyVerdict::accepted);
  }
  Process p(folder.path);
  ASSERT_TRUE(*p.applier->load_last_good(at(200)));
  EXPECT_EQ(p.check("a", 1), KeyVerdict::revoked);
  EXPECT_EQ(p.check("b"), KeyVerdict::revoked);
  EXPECT_EQ(p.check("c"), KeyVerdict::accepted);
  EXPECT_EQ(p.status().generation, 1u);
  EXPECT_EQ(p.status().top_generation, 3u);
  EXPECT_EQ(p.applier->rollbacks().size(), 1u);
  EXPECT_EQ(p.apply(snapshot_of(3, {live("a", 1)})).code(), Code::stale);
  EXPECT_TRUE(p.apply(snapshot_of(4, {live("a", 3), live("b", 7)})));
  EXPECT_EQ(p.check("a", 3), KeyVerdict::accepted);
  EXPECT_EQ(p.check("b", 7), KeyVerdict::revoked);
}

TEST(SnapshotApplier, ARevokedDigestOfAWholeKeyStaysRevoked) {
  KeyRecord two;
  two.key_id = "two";
  two.version = 1;
  two.digests = {*key_digest("first", KeyDigestKind::sha256_key), *key_digest("second", KeyDigestKind::sha256_key)};
  KeyRecord one = two;
  one.revoked = true;
  one.digests.pop_back();
  Process p;
  KeyGrant grant;
  ASSERT_TRUE(p.apply(snapshot_of(1, {two})));
  EXPECT_EQ(p.keys.check("first", at(1), grant), KeyVerdict::accepted);
  ASSERT_TRUE(p.apply(snapshot_of(2, {one})));
  EXPECT_EQ(p.keys.check("first", at(1), grant), KeyVerdict::revoked);
  ASSERT_TRUE(p.apply(snapshot_of(3, {two})));
  EXPECT_EQ(p.keys.check("first", at(1), grant), KeyVerdict::revoked);
  EXPECT_EQ(p.keys.check("second", at(1), grant), KeyVerdict::accepted);
}

TEST(SnapshotApplier, TheLastGoodOneServesAfterARestartAndItsAgeGoesOn) {
  const Folder folder;
  Snapshot s = snapshot_of(4, {live("a")});
  s.max_age = seconds(60);
  s.on_expired = OnExpired::deny_all;
  const std::string bytes = signed_bytes(s);
  {
    Process p(folder / "new/");
    EXPECT_EQ(p.applier->load_last_good(at(1)).value(), false);
    ASSERT_TRUE(p.applier->apply(bytes, at(100))) << p.status().last_error;
    EXPECT_EQ(p.status().keep_failures, 0u);
  }
  EXPECT_EQ(slurp(folder / "new/last_good"), bytes);
  Process p(folder / "new/");
  // The machine was started anew: its steady clock began again, the wall clock went on by 50 s.
  const UsageTime start{seconds(3), at(150).wall};
  ASSERT_TRUE(p.applier->load_last_good(start).value());
  EXPECT_TRUE(p.status(3).from_disk);
  EXPECT_EQ(p.status(3).age, seconds(50));
  EXPECT_EQ(verdict(p.keys, "a", 1, start), KeyVerdict::accepted);
  EXPECT_FALSE(p.status(13).expired);
  EXPECT_TRUE(p.status(14).expired);
  EXPECT_EQ(verdict(p.keys, "a", 1, {seconds(14), at(161).wall}), KeyVerdict::stale_set);
  EXPECT_EQ(p.listener.generations, std::vector<std::uint64_t>{4});
  p.applier->confirm({seconds(20), at(170).wall});
  EXPECT_FALSE(p.status(20).from_disk);
  EXPECT_EQ(p.status(25).age, seconds(5));
  EXPECT_EQ(verdict(p.keys, "a", 1, {seconds(25), at(175).wall}), KeyVerdict::accepted);
  {
    Process later(folder / "new/");
    ASSERT_TRUE(later.applier->load_last_good({seconds(1), at(180).wall}).value());
    EXPECT_EQ(later.status(1).age, seconds(10));  // since it was confirmed
  }
}

TEST(SnapshotApplier, DenyingNewKeysSparesThoseThatWereSeen) {
  Process p;
  Snapshot s = snapshot_of(1, {live("old"), live("new")});
  s.max_age = seconds(10);
  s.on_expired = OnExpired::deny_new_keys;
  ASSERT_TRUE(p.apply(s, 100));
  EXPECT_EQ(p.check("old", 1, 105), KeyVerdict::accepted);
  EXPECT_EQ(p.check("new", 2, 105), KeyVerdict::wrong_secret);  // was not accepted
  EXPECT_EQ(p.check("old", 1, 111), KeyVerdict::accepted);
  EXPECT_EQ(p.check("new", 1, 111), KeyVerdict::stale_set);
  EXPECT_EQ(p.check("none", 1, 111), KeyVerdict::unknown);
  p.applier->confirm(at(112));
  EXPECT_EQ(p.check("new", 1, 113), KeyVerdict::accepted);
  EXPECT_EQ(p.check("new", 1, 130), KeyVerdict::accepted);
  // A key that a snapshot changed is the same key; one that was gone in between is new.
  s = snapshot_of(2, {live("old", 2)});
  s.max_age = seconds(10);
  s.on_expired = OnExpired::deny_new_keys;
  ASSERT_TRUE(p.apply(s, 200));
  s = snapshot_of(3, {live("old", 2), live("new", 2)});
  s.max_age = seconds(10);
  s.on_expired = OnExpired::deny_new_keys;
  ASSERT_TRUE(p.apply(s, 201));
  EXPECT_EQ(p.check("old", 2, 220), KeyVerdict::accepted);
  EXPECT_EQ(p.check("new", 2, 220), KeyVerdict::stale_set);
  s.generation = 4;
  s.on_expired = OnExpired::serve;
  ASSERT_TRUE(p.apply(s, 201));
  EXPECT_EQ(p.check("new", 2, 220), KeyVerdict::accepted);
}

TEST(SnapshotApplier, ADamagedFolderIsSaidAndNotFatal) {
  const Folder folder;
  {
    Process p(folder.path);
    ASSERT_TRUE(p.apply(snapshot_of(3, {live("a"), dead("z", 4)})));
  }
  const std::string good = slurp(folder / "last_good");
  for (std::size_t n = 0; n < good.size(); n += 7) {
    spill(folder / "last_good", good.substr(0, n));
    Process p(folder.path);
    const auto loaded = p.applier->load_last_good(at(1));
    ASSERT_FALSE(loaded) << n;
    EXPECT_EQ(loaded.error().message.substr(0, 9), "last good");
    EXPECT_EQ(p.status().generation, 0u);
    EXPECT_EQ(p.status().revoked, 1u);
    EXPECT_EQ(p.check("a"), KeyVerdict::unknown);
    // Generation 3 is welcome, since nothing is in force; what is older is not.
    EXPECT_EQ(p.apply(snapshot_of(2, {live("a")})).code(), Code::stale);
  }
  {
    Process p(folder.path);
    ASSERT_FALSE(p.applier->load_last_good(at(1)));
    ASSERT_TRUE(p.apply(snapshot_of(3, {live("a"), live("z", 4)})));
    EXPECT_EQ(p.check("z", 4), KeyVerdict::revoked);
  }
  // The list of what was revoked: every byte counts.
  const std::string revoked = slurp(folder / "revoked");
  ASSERT_FALSE(revoked.empty());
  for (std::size_t i = 0; i < revoked.size(); i += 3) {
    std::string other = revoked;
    other[i] ^= 1;
    spill(folder / "revoked", other);
    Process p(folder.path);
    const auto loaded = p.applier->load_last_good(at(1));
    ASSERT_FALSE(loaded) << i;
    EXPECT_NE(loaded.error().message.find("revoked"), std::string::npos);
    EXPECT_EQ(p.check("a"), KeyVerdict::accepted);  // it serves all the same
  }
  spill(folder / "revoked", revoked);
  for (const char* heard : {"", "x", "3", "3 4", "99999999999999999999999 4\n"}) {
    spill(folder / "heard", heard);
    Process p(folder.path);
    EXPECT_FALSE(p.applier->load_last_good(at(500))) << heard;
    EXPECT_EQ(p.check("a"), KeyVerdict::accepted);
    EXPECT_EQ(p.status(500).age, seconds(497));  // since it was issued: nothing better is known
  }
}

TEST(SnapshotApplier, ForgetsNothingWhereNobodyAsksForTheLastGoodOne) {
  const Folder folder;
  {
    Process p(folder.path);
    ASSERT_TRUE(p.apply(snapshot_of(5, {live("a"), dead("b", 3)})));
  }
  Process p(folder.path);
  EXPECT_EQ(p.apply(snapshot_of(4, {live("b")})).code(), Code::stale);
  ASSERT_TRUE(p.apply(snapshot_of(6, {live("b", 3), dead("c", 1)})));
  EXPECT_EQ(p.check("b", 3), KeyVerdict::revoked);
  Process again(folder.path);
  ASSERT_TRUE(again.applier->load_last_good(at(1)));
  EXPECT_EQ(again.check("b", 3), KeyVerdict::revoked);
  EXPECT_EQ(again.check("c"), KeyVerdict::revoked);
}

TEST(SnapshotApplier, ALastGoodOneIsVerifiedAnew) {
  const Folder folder;
  {
    Process p(folder.path);
    ASSERT_TRUE(p.apply(snapshot_of(3, {live("a")})));
  }
  spill(folder / "last_good", signed_bytes(snapshot_of(3, {live("evil")}), *generate_signing_key("test")));
  Process p(folder.path);
  EXPECT_EQ(p.applier->load_last_good(at(1)).code(), Code::invalid_value);
  EXPECT_EQ(p.check("evil"), KeyVerdict::unknown);
}

// A process that ends between any two of its steps leaves one of these folders.
TEST(SnapshotApplier, WhateverAKilledProcessLeftIsAGoodStart) {
  const Folder folder;
  const std::string state = folder / "state";
  std::vector<std::string> bytes;
  {
    Process p(state);
    ASSERT_TRUE(p.apply(snapshot_of(1, {live("a"), live("b")})));
    std::filesystem::copy(state, folder / "one");
    ASSERT_TRUE(p.apply(snapshot_of(2, {live("a"), dead("b", 1)})));
  }
  std::vector<std::string> order = {"last_good", "revoked", "heard"};  // as they are written
  for (std::size_t n = 0; n <= order.size(); ++n) {
    for (const bool half : {false, true}) {
      const std::string left = folder / ("left" + std::to_string(n) + (half ? "half" : ""));
      std::filesystem::copy(folder / "one", left);
      for (std::size_t i = 0; i < n; ++i)
        std::filesystem::copy_file(state + "/" + order[i], left + "/" + order[i],
                                   std::filesystem::copy_options::overwrite_existing);
      if (half && n < order.size())
        spill(left + "/" + order[n] + ".new.4711", slurp(state + "/" + order[n]).substr(0, 9));
      Process p(left);
      const auto loaded = p.applier->load_last_good(at(10));
      ASSERT_TRUE(loaded) << loaded.error().message;
      ASSERT_TRUE(*loaded);
      EXPECT_EQ(p.status().generation, n == 0 ? 1u : 2u);
      EXPECT_EQ(p.check("b"), n == 0 ? KeyVerdict::accepted : KeyVerdict::revoked);
      EXPECT_FALSE(std::filesystem::exists(left + "/" + "last_good.new.4711"));
      // The next snapshot forgets b, and a process after it does not.
      ASSERT_TRUE(p.apply(snapshot_of(3, {live("a")})));
      ASSERT_TRUE(p.apply(snapshot_of(4, {live("a"), live("b")})));
      Process after(left);
      ASSERT_TRUE(after.applier->load_last_good(at(20)));
      EXPECT_EQ(after.check("b"), n == 0 ? KeyVerdict::accepted : KeyVerdict::revoked);
    }
  }
}

TEST(SnapshotApplier, ServesWhenItsFolderCannotBeWritten) {
  const Folder folder;
  spill(folder / "file", "");
  Process p(folder / "file");  // no folder
  EXPECT_FALSE(p.applier->load_last_good(at(1)));
  const auto applied = p.apply(snapshot_of(1, {live("a")}));
  ASSERT_TRUE(applied);
  EXPECT_NE(applied->kept_error, "");
  EXPECT_EQ(p.check("a"), KeyVerdict::accepted);
  EXPECT_GT(p.status().keep_failures, 0u);
  EXPECT_EQ(p.applier->revoke("a").code(), Code::io);
  EXPECT_EQ(p.check("a"), KeyVerdict::revoked);
  EXPECT_EQ(p.applier->revoke("").code(), Code::invalid_argument);
}

TEST(SnapshotApplier, SaysInGaugesWhatIsInForce) {
  Process p;
  std::string page;
  append_prometheus(p.status(), page);
  EXPECT_NE(page.find("\nwarmroute_control_generation 0\n"), std::string::npos) << page;
  EXPECT_NE(page.find("\nwarmroute_control_age_seconds +Inf\n"), std::string::npos) << page;
  Snapshot s = snapshot_of(7, {live("a")});
  s.max_age = seconds(60);
  ASSERT_TRUE(p.apply(s));
  EXPECT_FALSE(p.apply(snapshot_of(6, {})));
  page.clear();
  append_prometheus(p.status(161), page);
  for (const char* line :
       {"warmroute_control_generation 7", "warmroute_control_age_seconds 61", "warmroute_control_max_age_seconds 60",
        "warmroute_control_expired{on_expired=\"serve\"} 1", "warmroute_control_applied_total 1",
        "warmroute_control_refused_total 1", "warmroute_control_failing{code=\"stale\"} 1", "warmroute_control_keys 1"})
    EXPECT_NE(page.find("\n" + std::string(line) + "\n"), std::string::npos) << line << " in\n" << page;
}

}  // namespace
}  // namespace warmroute::applier_tests
