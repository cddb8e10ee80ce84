// Random snapshots, roll-backs, revocations and restarts beside a model of three maps.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>

#include "control/support.hpp"

namespace warmroute::applier_property {
namespace {

using control_tests::at;
using control_tests::dead;
using control_tests::Folder;
using control_tests::live;
using control_tests::signed_bytes;
using control_tests::signer;
using control_tests::snapshot_of;
using control_tests::verdict;

constexpr int kIds = 6;
constexpr std::uint64_t kVersions = 6;

struct Model {
  std::uint64_t generation = 0;
  std::uint64_t top = 0;
  std::map<std::string, std::uint64_t> alive;    // in the snapshot in force, to version
  std::map<std::string, std::uint64_t> revoked;  // up to which version, ever
  std::size_t rollbacks = 0;

  void revoke(const std::string& id, std::uint64_t version) { revoked[id] = std::max(revoked[id], version); }
  void put(const Snapshot& s) {
    generation = s.generation;
    top = std::max(top, generation);
    alive.clear();
    for (const KeyRecord& key : s.keys) {
      if (key.revoked) revoke(key.public_id, key.version);
      else alive[key.public_id] = key.version;
    }
  }
  [[nodiscard]] KeyVerdict check(const std::string& id, std::uint64_t version) const {
    const auto tombstone = revoked.find(id);
    const auto key = alive.find(id);
    const bool lives = key != alive.end() && (tombstone == revoked.end() || key->second > tombstone->second);
    if (lives) return key->second == version ? KeyVerdict::accepted : KeyVerdict::wrong_secret;
    return tombstone == revoked.end() ? KeyVerdict::unknown : KeyVerdict::revoked;
  }
};

class Trial {
 public:
  explicit Trial(std::uint64_t seed) : random_(seed) { start(); }

  void step() {
    now_ += number(1, 5);
    switch (number(0, 9)) {
      case 0: start(); break;
      case 1: {
        const std::string id = "k" + std::to_string(number(1, kIds));
        const std::uint64_t version = number(0, 9) == 0 ? kRevokedForever : number(1, kVersions);
        ASSERT_TRUE(applier_->revoke(id, version));
        model_.revoke(id, version);
        break;
      }
      case 2:
      case 3: roll_back(); break;
      default: apply_next(); break;
    }
    compare();
  }

 private:
  std::uint64_t number(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random_);
  }

  void start() {
    applier_.reset();
    keys_ = std::make_unique<KeySet>();
    ControlOptions options;
    options.trust.keys = {signer().public_key()};
    options.directory = folder_.path;
    applier_ = std::make_unique<SnapshotApplier>(options, ControlTargets{keys_.get(), nullptr, nullptr, nullptr});
    const auto loaded = applier_->load_last_good(time());
    ASSERT_TRUE(loaded) << loaded.error().message;
    ASSERT_EQ(*loaded, model_.generation != 0);
  }

  Snapshot random_snapshot(std::uint64_t generation) {
    std::vector<KeyRecord> keys;
    for (int id = 1; id <= kIds; ++id) {
      const std::string name = "k" + std::to_string(id);
      const std::uint64_t what = number(0, 9);
      if (what < 5) keys.push_back(live(name, number(1, kVersions)));
      else if (what < 6) keys.push_back(dead(name, number(1, kVersions)));
    }
    Snapshot s = snapshot_of(generation, std::move(keys));
    s.issued_at = time().wall;
    return s;
  }

  void apply_next() {
    const Snapshot s = random_snapshot(model_.top + number(0, 3) + (number(0, 3) == 0 ? 0 : 1));
    if (s.generation == 0) return;
    const auto applied = applier_->apply(signed_bytes(s), time());
    ASSERT_EQ(applied.ok(), s.generation > model_.top) << (applied ? "" : applied.error().message);
    if (!applied) {
      ASSERT_EQ(applied.code(), Code::stale);
      return;
    }
    model_.put(s);
    old_.push_back(s);
  }

  void roll_back() {
    if (old_.empty()) return;
    Snapshot s = old_[number(0, old_.size() - 1)];
    const std::uint64_t from = number(0, 3) == 0 ? model_.top : model_.generation;
    if (from <= s.generation) return;
    s.forced_rollback = ForcedRollback{from, "because"};
    s.issued_at = time().wall;
    const auto applied = applier_->apply(signed_bytes(s), time());
    ASSERT_EQ(applied.ok(), from == model_.generation) << (applied ? "" : applied.error().message);
    if (!applied) return;
    model_.put(s);
    ++model_.rollbacks;
  }

  void compare() {
    const ControlStatus status = applier_->status(time().steady);
    ASSERT_EQ(status.generation, model_.generation);
    ASSERT_EQ(status.top_generation, model_.top);
    ASSERT_EQ(applier_->rollbacks().size(), model_.rollbacks);
    ASSERT_EQ(keys_->generation(), model_.generation);
    for (int id = 1; id <= kIds; ++id) {
      const std::string name = "k" + std::to_string(id);
      for (std::uint64_t version = 1; version <= kVersions; ++version)
        ASSERT_EQ(verdict(*keys_, name, version, time()), model_.check(name, version)) << name << " " << version;
    }
  }

  [[nodiscard]] UsageTime time() const { return at(static_cast<std::int64_t>(now_)); }

  std::mt19937_64 random_;
  std::uint64_t now_ = 1;
  Folder folder_;
  std::unique_ptr<KeySet> keys_;
  std::unique_ptr<SnapshotApplier> applier_;
  Model model_;
  std::vector<Snapshot> old_;
};

TEST(SnapshotApplierProperty, DoesWhatTheModelDoes) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Trial run(seed);
    for (int i = 0; i < 60; ++i) {
      run.step();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << i;
    }
  }
}

}  // namespace
}  // namespace warmroute::applier_property
