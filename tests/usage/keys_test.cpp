// Keys: digests that exist elsewhere, rotation, revocations that nothing brings back, generations, readers beside writers.
#include "warmroute/usage/keys.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace warmroute {
namespace {

constexpr std::string_view kPepper = "a pepper of more than 16 bytes";
constexpr UsageTime kNow{seconds(100), wall_seconds(1'800'000'000)};

std::string secret_of(int n) { return "secretsecretsecretsecret" + std::to_string(n); }

KeyRecord record(const std::string& id, std::uint64_t version, const std::string& secret, std::uint32_t pepper = 1) {
  KeyRecord r;
  r.public_id = id;
  r.team_id = "team-of-" + id;
  r.version = version;
  r.digests.push_back(*key_digest("sk-" + id + "-" + secret, KeyDigestKind::hmac_sha256, pepper, kPepper));
  return r;
}

KeyRecord tombstone(const std::string& id, std::uint64_t version) {
  KeyRecord r;
  r.public_id = id;
  r.version = version;
  r.revoked = true;
  return r;
}

struct Keys : testing::Test {
  Keys() { EXPECT_TRUE(set.add_pepper(1, kPepper)); }
  KeyVerdict check(const std::string& key, UsageTime now = kNow) { return set.check(key, now, grant); }
  KeySet set;
  KeyGrant grant;
};

std::string hex(const KeyDigest& d) {
  std::string out;
  for (const std::uint8_t b : d.bytes) {
    constexpr char kHex[] = "0123456789abcdef";
    out += kHex[b >> 4];
    out += kHex[b & 15];
  }
  return out;
}

TEST_F(Keys, DigestsAreThoseOfTheStandards) {
  // RFC 4231, case 2 has a short key; case 3's is 20 bytes of 0xaa over 50 of 0xdd.
  const std::string message(50, '\xdd');
  EXPECT_EQ(hex(*key_digest("x-" + message, KeyDigestKind::hmac_sha256, 1, std::string(20, '\xaa'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hex(*key_digest("x-abc", KeyDigestKind::sha256_secret)),  // FIPS 180-2, B.1
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(*key_digest("abc", KeyDigestKind::sha256_key)),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(key_digest("abc", KeyDigestKind::sha256_secret).code(), Code::invalid_argument);
  EXPECT_EQ(key_digest("x-abc", KeyDigestKind::hmac_sha256, 1, "short").code(), Code::invalid_argument);
}

TEST_F(Keys, AKeyIsAcceptedByItsSecretAlone) {
  const std::vector<KeyRecord> records{record("alpha", 1, secret_of(1)), record("beta", 1, secret_of(2))};
  ASSERT_TRUE(set.replace(7, records, seconds(90)));
  EXPECT_EQ(check("sk-alpha-" + secret_of(1)), KeyVerdict::accepted);
  EXPECT_EQ(grant.key_id, "alpha");
  EXPECT_EQ(grant.team_id, "team-of-alpha");
  EXPECT_EQ(grant.generation, 7u);
  EXPECT_EQ(check("other-prefix-alpha-" + secret_of(1)), KeyVerdict::accepted);
  EXPECT_EQ(check("alpha-" + secret_of(1)), KeyVerdict::accepted);
  EXPECT_EQ(check("sk-alpha-" + secret_of(2)), KeyVerdict::wrong_secret);
  EXPECT_EQ(check("sk-gamma-" + secret_of(1)), KeyVerdict::unknown);
  for (const char* bad : {"", "-", "nodash", "sk-alpha-", "--", "-x"})
    EXPECT_EQ(check(bad), KeyVerdict::malformed) << bad;
  EXPECT_EQ(check(std::string(5'000, 'a')), KeyVerdict::malformed);
  EXPECT_EQ(set.size(), 2u);
  EXPECT_GT(set.heap_bytes(), 100u);
}

TEST_F(Keys, StoresThatExistAreTaken) {
  KeyRecord whole;
  whole.key_id = "from-litellm";
  whole.digests = {*key_digest("sk-1234-with-dashes", KeyDigestKind::sha256_key)};
  KeyRecord secret;
  secret.public_id = "abcdefabcdef";
  secret.digests = {*key_digest("sk-t0-abcdefabcdef-" + secret_of(1), KeyDigestKind::sha256_secret)};
  ASSERT_TRUE(set.replace(1, std::vector{whole, secret}, seconds(1)));
  EXPECT_EQ(check("sk-1234-with-dashes"), KeyVerdict::accepted);
  EXPECT_EQ(grant.key_id, "from-litellm");
  EXPECT_EQ(check("sk-1234-with-dashez"), KeyVerdict::unknown);
  EXPECT_EQ(check("sk-t0-abcdefabcdef-" + secret_of(1)), KeyVerdict::accepted);
  EXPECT_EQ(check("sk-t0-abcdefabcdef-" + secret_of(2)), KeyVerdict::wrong_secret);
  whole.revoked = true;  // at the same version a revocation wins
  ASSERT_TRUE(set.apply(1, 2, std::vector{whole}, seconds(2)));
  EXPECT_EQ(check("sk-1234-with-dashes"), KeyVerdict::revoked);
}

TEST_F(Keys, RotationOverlapsAndEnds) {
  KeyRecord r = record("alpha", 1, secret_of(1));
  r.digests[0].not_after = wall_seconds(1'000);
  r.digests.push_back(record("alpha", 1, secret_of(2)).digests[0]);
  r.digests[1].not_before = wall_seconds(500);
  ASSERT_TRUE(set.replace(1, std::vector{r}, seconds(1)));
  const auto at = [](std::int64_t s) { return UsageTime{seconds(1), wall_seconds(s)}; };
  const std::string first = "sk-alpha-" + secret_of(1);
  const std::string second = "sk-alpha-" + secret_of(2);
  EXPECT_EQ(check(first, at(499)), KeyVerdict::accepted);
  EXPECT_EQ(check(second, at(499)), KeyVerdict::not_yet_valid);
  EXPECT_EQ(check(second, at(500)), KeyVerdict::accepted);
  EXPECT_EQ(check(first, at(999)), KeyVerdict::accepted);
  EXPECT_EQ(check(first, at(1'000)), KeyVerdict::expired);
  EXPECT_EQ(check("sk-alpha-" + secret_of(3), at(1'000)), KeyVerdict::wrong_secret);
}

TEST_F(Keys, PeppersHaveVersions) {
  const std::string second_pepper = "another pepper, long enough";
  KeyRecord r = record("alpha", 1, secret_of(1));
  r.digests.push_back(*key_digest("alpha-" + secret_of(2), KeyDigestKind::hmac_sha256, 2, second_pepper));
  ASSERT_TRUE(set.replace(1, std::vector{r}, seconds(1)));
  EXPECT_EQ(check("sk-alpha-" + secret_of(1)), KeyVerdict::accepted);
  EXPECT_EQ(check("sk-alpha-" + secret_of(2)), KeyVerdict::no_pepper);
  EXPECT_EQ(key_verdict_status(KeyVerdict::no_pepper), 503);
  ASSERT_TRUE(set.add_pepper(2, second_pepper));
  EXPECT_TRUE(set.add_pepper(2, second_pepper));
  EXPECT_EQ(set.add_pepper(2, kPepper).code(), Code::already_exists);
  EXPECT_EQ(set.add_pepper(3, "short").code(), Code::invalid_argument);
  EXPECT_EQ(check("sk-alpha-" + secret_of(2)), KeyVerdict::accepted);
  EXPECT_EQ(check("sk-alpha-" + secret_of(1)), KeyVerdict::accepted);
}

TEST_F(Keys, NothingOlderBringsARevokedKeyBack) {
  const std::string key = "sk-alpha-" + secret_of(1);
  ASSERT_TRUE(set.replace(1, std::vector{record("alpha", 5, secret_of(1))}, seconds(1)));
  ASSERT_TRUE(set.revoke("alpha", 5));
  EXPECT_EQ(check(key), KeyVerdict::revoked);
  EXPECT_EQ(key_verdict_status(KeyVerdict::revoked), 401);
  ASSERT_TRUE(set.apply(1, 2, std::vector{record("alpha", 5, secret_of(1))}, seconds(2)));
  EXPECT_EQ(check(key), KeyVerdict::revoked);
  ASSERT_TRUE(set.replace(3, std::vector{record("alpha", 5, secret_of(1))}, seconds(3)));
  EXPECT_EQ(check(key), KeyVerdict::revoked);
  ASSERT_TRUE(set.replace(4, {}, seconds(4)));  // a snapshot that does not name it
  EXPECT_EQ(check(key), KeyVerdict::revoked);
  EXPECT_EQ(set.revoked(), 1u);
  ASSERT_TRUE(set.apply(4, 5, std::vector{record("alpha", 6, secret_of(1))}, seconds(5)));
  EXPECT_EQ(check(key), KeyVerdict::accepted);
  ASSERT_TRUE(set.revoke("alpha"));
  ASSERT_TRUE(set.apply(5, 6, std::vector{record("alpha", kRevokedForever, secret_of(1))}, seconds(6)));
  EXPECT_EQ(check(key), KeyVerdict::revoked);
  ASSERT_TRUE(set.revoke("unseen"));  // before the key arrives
  ASSERT_TRUE(set.apply(6, 7, std::vector{record("unseen", 3, secret_of(2))}, seconds(7)));
  EXPECT_EQ(check("sk-unseen-" + secret_of(2)), KeyVerdict::revoked);
}

TEST_F(Keys, GenerationsOnlyRise) {
  const std::vector<KeyRecord> one{record("alpha", 1, secret_of(1))};
  ASSERT_TRUE(set.replace(10, one, seconds(1)));
  EXPECT_EQ(set.replace(10, {}, seconds(2)).code(), Code::stale);
  EXPECT_EQ(set.replace(9, {}, seconds(2)).code(), Code::stale);
  EXPECT_EQ(set.apply(9, 11, one, seconds(2)).code(), Code::stale);
  EXPECT_EQ(set.apply(10, 10, one, seconds(2)).code(), Code::stale);
  EXPECT_EQ(set.confirm(9, seconds(2)).code(), Code::stale);
  EXPECT_EQ(set.age(seconds(3)), seconds(2));
  EXPECT_TRUE(set.confirm(10, seconds(3)));
  EXPECT_EQ(set.age(seconds(3)), seconds(0));
  EXPECT_EQ(set.age(seconds(2)), seconds(0));
  EXPECT_EQ(set.generation(), 10u);
  EXPECT_EQ(set.size(), 1u);
}

TEST_F(Keys, AFaultyRecordChangesNothing) {
  ASSERT_TRUE(set.replace(1, std::vector{record("alpha", 1, secret_of(1))}, seconds(1)));
  const KeyRecord good = record("beta", 1, secret_of(2));
  std::vector<KeyRecord> faulty(7, good);
  faulty[0].public_id = std::string(65, 'x');
  faulty[1].digests.clear();
  faulty[2].public_id.clear();
  faulty[3].digests[0].kind = KeyDigestKind::sha256_key;
  faulty[4].public_id = "with-dash";
  faulty[5].digests.assign(17, good.digests[0]);
  faulty[6].digests[0].kind = static_cast<KeyDigestKind>(9);
  for (const KeyRecord& bad : faulty) {
    EXPECT_EQ(set.apply(1, 2, std::vector{good, bad}, seconds(2)).code(), Code::invalid_argument);
  }
  EXPECT_EQ(set.replace(2, std::vector{good, good}, seconds(2)).code(), Code::invalid_argument);
  EXPECT_EQ(set.generation(), 1u);
  EXPECT_EQ(check("sk-beta-" + secret_of(2)), KeyVerdict::unknown);
  EXPECT_EQ(check("sk-alpha-" + secret_of(1)), KeyVerdict::accepted);
}

TEST(KeySetAge, PolicySaysWhetherASilentControlStopsServing) {
  for (const StaleKeys policy : {StaleKeys::keep_serving, StaleKeys::refuse}) {
    KeySet set({seconds(60), policy});
    ASSERT_TRUE(set.add_pepper(1, kPepper));
    ASSERT_TRUE(set.replace(1, std::vector{record("alpha", 1, secret_of(1))}, seconds(100)));
    KeyGrant grant;
    const std::string key = "sk-alpha-" + secret_of(1);
    EXPECT_EQ(set.check(key, {seconds(160), {}}, grant), KeyVerdict::accepted);
    EXPECT_FALSE(set.stale(seconds(160)));
    EXPECT_TRUE(set.stale(seconds(161)));
    EXPECT_EQ(set.check(key, {seconds(161), {}}, grant),
              policy == StaleKeys::refuse ? KeyVerdict::stale_set : KeyVerdict::accepted);
    ASSERT_TRUE(set.confirm(1, seconds(161)));
    EXPECT_EQ(set.check(key, {seconds(161), {}}, grant), KeyVerdict::accepted);
  }
}

// What the set should hold, as a map.
struct Model {
  struct Key {
    std::uint64_t version = 0;
    bool revoked = false;
    int secret = 0;
  };
  std::map<std::string, Key> keys;

  void offer(const std::string& id, Key key) {
    const auto it = keys.find(id);
    if (it == keys.end()) {
      keys[id] = key;
    } else if (it->second.revoked
                   ? key.version > it->second.version
                   : (key.revoked ? key.version >= it->second.version : key.version > it->second.version)) {
      it->second = key;
    }
  }
  void replace(const std::map<std::string, Key>& all) {
    std::map<std::string, Key> next = all;
    for (const auto& [id, key] : keys) {
      if (!key.revoked) continue;
      const auto it = next.find(id);
      if (it == next.end() || it->second.version <= key.version) next[id] = key;
    }
    keys = std::move(next);
  }
};

TEST_F(Keys, RandomChangesGiveWhatAMapGives) {
  std::mt19937_64 random(11);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Model model;
  std::uint64_t generation = 0;
  for (int step = 0; step < 300; ++step) {
    std::map<std::string, Model::Key> offered;
    std::vector<KeyRecord> records;
    for (std::uint64_t n = 1 + below(6); n > 0; --n) {
      const std::string id = "k" + std::to_string(below(12));
      if (offered.count(id) != 0) continue;
      const Model::Key key{below(40), below(4) == 0, static_cast<int>(below(3))};
      offered[id] = key;
      records.push_back(key.revoked ? tombstone(id, key.version) : record(id, key.version, secret_of(key.secret)));
    }
    if (below(5) == 0) {
      ASSERT_TRUE(set.replace(generation + 1, records, seconds(1)));
      model.replace(offered);
    } else {
      ASSERT_TRUE(set.apply(generation, generation + 1, records, seconds(1)));
      for (const auto& [id, key] : offered) model.offer(id, key);
    }
    ++generation;
    for (int k = 0; k < 12; ++k) {
      const std::string id = "k" + std::to_string(k);
      const int secret = static_cast<int>(below(3));
      const auto it = model.keys.find(id);
      const KeyVerdict expected = it == model.keys.end()        ? KeyVerdict::unknown
                                  : it->second.revoked          ? KeyVerdict::revoked
                                  : it->second.secret == secret ? KeyVerdict::accepted
                                                                : KeyVerdict::wrong_secret;
      ASSERT_EQ(check("sk-" + id + "-" + secret_of(secret)), expected) << "step " << step << " key " << id;
    }
  }
}

TEST_F(Keys, ReadersSeeARevocationAtOnceAndNeverItsUndoing) {
  std::vector<KeyRecord> records;
  for (int i = 0; i < 200; ++i) records.push_back(record("k" + std::to_string(i), 1, secret_of(i)));
  ASSERT_TRUE(set.replace(1, records, seconds(1)));
  std::atomic<int> revoked_up_to{0};
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      KeyGrant mine;
      for (int n = t; !stop.load(); n = (n + 7) % 200) {
        const bool must_be_revoked = n < revoked_up_to.load();
        const KeyVerdict v = set.check("sk-k" + std::to_string(n) + "-" + secret_of(n), kNow, mine);
        if (must_be_revoked ? v != KeyVerdict::revoked : v != KeyVerdict::accepted && v != KeyVerdict::revoked) ++wrong;
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(set.revoke("k" + std::to_string(i), 1));
    revoked_up_to = i + 1;
    if (i % 50 != 0) continue;
    ASSERT_TRUE(set.replace(set.generation() + 1, records, seconds(1)));  // a fill that races
  }
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_EQ(set.revoked(), 200u);
}

}  // namespace
}  // namespace warmroute
