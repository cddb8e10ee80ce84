// warmroute-keys from end to end: what it writes is what a gateway takes.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "control/support.hpp"

namespace warmroute::keys_command {
namespace {

using control_tests::Folder;
using control_tests::slurp;
using control_tests::spill;

struct Outcome {
  int status = -1;
  std::string out;  // and stderr, for those that fail
};

Outcome run(const std::string& arguments, bool with_errors = false) {
  Outcome o;
  std::FILE* const pipe =
      popen((std::string(WARMROUTE_KEYS) + " " + arguments + (with_errors ? " 2>&1" : " 2>/dev/null")).c_str(), "r");
  if (pipe == nullptr) return o;
  std::array<char, 4'096> piece{};
  while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) o.out.append(piece.data(), n);
  const int status = pclose(pipe);
  o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return o;
}

struct KeysCommand : testing::Test {
  KeysCommand() : keys(folder / "keys"), snapshot(keys + "/snapshot") {
    const Outcome made = run("init " + keys, true);
    EXPECT_EQ(made.status, 0) << made.out;
    start();
  }
  // A gateway: its own memory, the files of the command.
  void start() {
    ControlOptions options;
    options.trust.keys = {*parse_verifying_key(slurp(keys + "/verifying.pem"))};
    options.directory = folder / "state";
    set = std::make_unique<KeySet>();
    std::string pepper = slurp(keys + "/pepper.1");
    pepper.pop_back();
    EXPECT_TRUE(set->add_pepper(1, pepper));
    applier = std::make_unique<SnapshotApplier>(options, ControlTargets{set.get(), &limits, nullptr, nullptr});
  }
  void follow() {
    const auto applied = applier->apply(slurp(snapshot), now());
    EXPECT_TRUE(applied) << applied.error().message;
  }
  std::string issue(const std::string& options) {
    const Outcome o = run("issue " + options + " " + snapshot);
    EXPECT_EQ(o.status, 0) << run("issue " + options + " " + snapshot, true).out;
    return o.out.substr(0, o.out.find('\n'));
  }
  static UsageTime now(std::int64_t later = 0) {
    return {seconds(later), wall_seconds(static_cast<std::int64_t>(std::time(nullptr)) + later)};
  }
  KeyVerdict check(const std::string& key, std::int64_t later = 0) { return set->check(key, now(later), grant); }
  static std::string id_of(const std::string& key) { return key.substr(3, 12); }

  const Folder folder;
  const std::string keys, snapshot;
  Limits limits;
  KeyGrant grant;
  std::unique_ptr<KeySet> set;
  std::unique_ptr<SnapshotApplier> applier;
};

TEST_F(KeysCommand, InitMakesSecretsThatOthersCannotRead) {
  namespace fs = std::filesystem;
  for (const char* name : {"signing.pem", "pepper.1", "snapshot"})
    EXPECT_EQ(fs::status(keys + "/" + name).permissions(), fs::perms::owner_read | fs::perms::owner_write) << name;
  const std::string before = slurp(keys + "/signing.pem");
  const Outcome again = run("init " + keys, true);
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.out.find("nothing was changed"), std::string::npos);
  EXPECT_EQ(slurp(keys + "/signing.pem"), before);
  EXPECT_EQ(run("verify " + snapshot).status, 0);
}

TEST_F(KeysCommand, AnIssuedKeyIsAcceptedAndShownOnce) {
  const std::string key = issue("--team blue --key-id app --not-after 2099-01-01T00:00:00Z");
  follow();
  EXPECT_EQ(check(key), KeyVerdict::accepted);
  EXPECT_EQ(grant.team_id, "blue");
  EXPECT_EQ(grant.key_id, "app");
  EXPECT_EQ(grant.generation, 2u);
  EXPECT_EQ(check(key + "x"), KeyVerdict::wrong_secret);
  EXPECT_EQ(check(key, 4'000'000'000), KeyVerdict::expired);
  const std::string secret = key.substr(16);
  EXPECT_EQ(slurp(snapshot).find(secret), std::string::npos);
  const Outcome list = run("list " + snapshot, true);
  EXPECT_EQ(list.out.find(secret), std::string::npos);
  for (const char* word : {"generation 2", "app", "blue", "live", "2099-01-01T00:00:00Z"})
    EXPECT_NE(list.out.find(word), std::string::npos) << word << " in " << list.out;
  EXPECT_EQ(run("issue --key-id app " + snapshot, true).status, 1);
}

TEST_F(KeysCommand, LimitsComeWithTheKey) {
  issue(R"(--key-id app --limits '[{"name":"rpm","kind":"rate","unit":"requests","amount":7,"period_s":60}]')");
  follow();
  EXPECT_EQ(limits.limits(*limits.scope("key", "app")).at(0).amount, 7);
  const std::string before = slurp(snapshot);
  const Outcome bad = run("issue --limits '[{\"name\":\"rpm\"}]' " + snapshot, true);
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.out.find("limits[0].limits[0].kind is missing"), std::string::npos) << bad.out;
  EXPECT_EQ(slurp(snapshot), before);
}

TEST_F(KeysCommand, ARotatedKeyHasTwoSecretsForAWhile) {
  const std::string first = issue("");
  const Outcome rotated = run("rotate --overlap 3600 " + id_of(first) + " " + snapshot);
  ASSERT_EQ(rotated.status, 0);
  const std::string second = rotated.out.substr(0, rotated.out.find('\n'));
  follow();
  EXPECT_EQ(id_of(second), id_of(first));
  EXPECT_EQ(check(first), KeyVerdict::accepted);
  EXPECT_EQ(check(second), KeyVerdict::accepted);
  EXPECT_EQ(check(first, 7'200), KeyVerdict::expired);
  EXPECT_EQ(check(second, 7'200), KeyVerdict::accepted);
  ASSERT_EQ(run("rotate --overlap 0 " + id_of(first) + " " + snapshot).status, 0);
  follow();
  EXPECT_EQ(check(first), KeyVerdict::wrong_secret);  // its digest is gone
}

TEST_F(KeysCommand, WhatWasRevokedStaysSoThroughARollback) {
  const std::string key = issue("--key-id app");
  const std::string other = issue("--key-id other");
  follow();
  ASSERT_EQ(run("revoke app " + snapshot).status, 0);
  follow();
  EXPECT_EQ(check(key), KeyVerdict::revoked);
  EXPECT_EQ(check(other), KeyVerdict::accepted);
  EXPECT_EQ(run("revoke app " + snapshot).status, 0);  // once more: nothing to do
  EXPECT_EQ(run("rotate app " + snapshot).status, 1);
  const Outcome back = run("rollback --to 2 --reason 'other was a mistake' " + snapshot, true);
  ASSERT_EQ(back.status, 0) << back.out;
  follow();
  EXPECT_EQ(applier->status(seconds(0)).generation, 2u);
  EXPECT_EQ(applier->rollbacks().at(0).reason, "other was a mistake");
  EXPECT_EQ(check(key), KeyVerdict::revoked);
  EXPECT_EQ(check(other), KeyVerdict::unknown);
  const std::string third = issue("--key-id third");
  follow();  // above all that ever were
  EXPECT_EQ(applier->status(seconds(0)).generation, 5u);
  EXPECT_EQ(check(third), KeyVerdict::accepted);
  // A gateway that never saw any of this.
  std::filesystem::remove_all(folder / "state");
  start();
  follow();
  EXPECT_EQ(check(key), KeyVerdict::revoked);
}

TEST_F(KeysCommand, CommandsAtTheSameTimeLoseNothing) {
  std::vector<std::thread> threads;
  std::vector<std::string> issued(8);
  for (std::size_t i = 0; i < issued.size(); ++i)
    threads.emplace_back([&, i] { issued[i] = issue("--key-id k" + std::to_string(i)); });
  for (std::thread& thread : threads) thread.join();
  follow();
  EXPECT_EQ(applier->status(seconds(0)).generation, 9u);
  for (const std::string& key : issued) EXPECT_EQ(check(key), KeyVerdict::accepted) << key;
}

TEST_F(KeysCommand, FaultsAreSaidAndChangeNothing) {
  issue("--key-id app");
  const std::string before = slurp(snapshot);
  const auto says = [&](const std::string& arguments, int status, const std::string& what) {
    const Outcome o = run(arguments, true);
    EXPECT_EQ(o.status, status) << arguments << o.out;
    EXPECT_NE(o.out.find(what), std::string::npos) << arguments << ": " << o.out;
  };
  says("", 2, "no command");
  says("forge " + snapshot, 2, "'forge' is no command");
  says("issue", 2, "takes 1 argument");
  says("issue --taem x " + snapshot, 2, "no option --taem");
  says("issue " + snapshot + " --team", 2, "wants a value");
  says("issue --not-after tomorrow " + snapshot, 1, "a time like");
  says("issue --not-after 2001-01-01T00:00:00Z " + snapshot, 1, "over already");
  says("issue " + snapshot + ".none", 1, "cannot open");
  says("issue --pepper 2=/none " + snapshot, 1, "/none");
  says("revoke none " + snapshot, 1, "there is no key 'none'");
  says("rollback --to 1 " + snapshot, 1, "--reason");
  says("rollback --to 2 --reason x " + snapshot, 1, "must be below");
  says("rollback --to 0 --reason x " + snapshot, 1, "cannot open");
  says("--help", 0, "rollback --to GENERATION");
  EXPECT_EQ(slurp(snapshot), before);
  spill(snapshot, before + " ");
  says("verify " + snapshot, 1, "the signature does not hold");
  says("issue " + snapshot, 1, "the signature does not hold");
  EXPECT_EQ(slurp(snapshot), before + " ");
}

}  // namespace
}  // namespace warmroute::keys_command
