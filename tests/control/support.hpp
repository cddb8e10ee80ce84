// What the tests of control share: folders that go, keys of known secrets, snapshots of few words.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "warmroute/control/applier.hpp"

namespace warmroute::control_tests {

struct Folder {
  // In memory where that can be had: thousands of fsyncs on a busy disk take a minute.
  Folder() : path((access("/dev/shm", W_OK) == 0 ? std::string("/dev/shm") : testing::TempDir()) + "/control-XXXXXX") {
    EXPECT_NE(mkdtemp(path.data()), nullptr);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string operator/(std::string_view name) const { return path + "/" + std::string(name); }
  std::string path;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void spill(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

inline std::string key_text(const std::string& id, std::uint64_t version = 1) {
  return "sk-" + id + "-secret" + std::to_string(version);
}

// Every version of a key has a secret of its own. Plain SHA-256: these tests are not about peppers.
inline KeyRecord live(const std::string& id, std::uint64_t version = 1) {
  KeyRecord r;
  r.public_id = id;
  r.version = version;
  r.digests.push_back(*key_digest(key_text(id, version), KeyDigestKind::sha256_secret));
  return r;
}
inline KeyRecord dead(const std::string& id, std::uint64_t version = kRevokedForever) {
  KeyRecord r;
  r.public_id = id;
  r.version = version;
  r.revoked = true;
  return r;
}

inline Snapshot snapshot_of(std::uint64_t generation, std::vector<KeyRecord> keys) {
  Snapshot s;
  s.generation = generation;
  s.issued_at = wall_seconds(1'800'000'000 + static_cast<std::int64_t>(generation));
  s.keys = std::move(keys);
  return s;
}

inline const SigningKey& signer() {
  static const SigningKey key = *SigningKey::from_seed({1, 2, 3}, "test");
  return key;
}
inline std::string signed_bytes(const Snapshot& s, const SigningKey& key = signer()) {
  return *sign_snapshot(write_snapshot(s), key);
}

inline UsageTime at(std::int64_t s) { return {seconds(s), wall_seconds(1'800'000'000 + s)}; }

inline KeyVerdict verdict(const KeySet& set, const std::string& id, std::uint64_t version, UsageTime now) {
  KeyGrant grant;
  return set.check(key_text(id, version), now, grant);
}

}  // namespace warmroute::control_tests
