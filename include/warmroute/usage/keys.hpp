/// Which client calls: looks up an API key by its public id and proves its secret against digests, from a set that control
/// pushes as full snapshots and changes. A million keys fit in memory; there is no cache that could outlive a revocation.
/// Invariants: only digests are stored (HMAC-SHA-256 under a versioned pepper; SHA-256 for stores that exist), compared in
/// constant time; readers never wait and see one generation whole; older generations are refused; a revocation holds
/// against everything that is not newer than it, full snapshots included.
/// Does not: read a clock, fetch snapshots, check signatures, log; no error or verdict names a key's secret or digest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/wall_time.hpp"

namespace warmroute {

/// What a digest is of. A key is `<anything>-<public id>-<secret>`: the secret is what follows the last dash, the public id
/// lies between the last two; a key with one dash has the public id before it. Numbers are fixed and only appended.
enum class KeyDigestKind : std::uint8_t {
  hmac_sha256 = 0,    ///< of the secret, keyed with a pepper
  sha256_secret = 1,  ///< of the secret, plain: for stores that exist. Good for long random secrets only
  sha256_key = 2,     ///< of the whole key, plain, and the key is found by it: for stores without public ids
};

/// One secret of a key. Several with overlapping windows are a rotation.
struct KeyDigest {
  std::array<std::uint8_t, 32> bytes{};
  KeyDigestKind kind = KeyDigestKind::hmac_sha256;
  std::uint32_t pepper_version = 0;  ///< of hmac_sha256
  WallNanos not_before{std::numeric_limits<std::int64_t>::min()};
  WallNanos not_after{std::numeric_limits<std::int64_t>::max()};  ///< exclusive
};

/// A key as control describes it.
struct KeyRecord {
  std::string public_id;      ///< at most 64 bytes; empty: all digests are sha256_key, and key_id names the key
  std::string key_id;         ///< what the books call it; empty: public_id
  std::string team_id;        ///< may be empty
  std::uint64_t version = 0;  ///< of this record, rising. kRevokedForever with `revoked`: nothing brings it back
  bool revoked = false;       ///< a tombstone: digests are ignored
  std::vector<KeyDigest> digests;
};
inline constexpr std::uint64_t kRevokedForever = std::numeric_limits<std::uint64_t>::max();

/// Numbers are fixed and only appended. What the client may learn is key_verdict_status alone.
enum class KeyVerdict : std::uint8_t {
  accepted = 0,
  malformed = 1,      ///< no key, or none that could be in the set
  unknown = 2,        ///< no such public id or digest
  wrong_secret = 3,   ///< of a key that exists
  not_yet_valid = 4,  ///< the secret is right, its window has not begun
  expired = 5,        ///< the secret is right, its window is over
  revoked = 6,
  stale_set = 7,  ///< control has been silent for longer than max_age, and the policy is to refuse
  no_pepper = 8,  ///< the key's pepper was not added: a fault of the deployment
  no_digest = 9,  ///< OpenSSL refuses (a FIPS policy, no memory): a fault of the deployment
};
/// returns: the verdict's name as spelled above. lifetime: static.
std::string_view key_verdict_name(KeyVerdict verdict) noexcept;
/// returns: 200, 401 (the key), or 503 (our fault: stale set, pepper, digest).
int key_verdict_status(KeyVerdict verdict) noexcept;

/// Whom an accepted key belongs to. Use one again and again: then nothing is allocated.
struct KeyGrant {
  std::string key_id;
  std::string team_id;
  std::uint64_t version = 0;
  std::uint64_t generation = 0;  ///< of the set that said so
};

/// What becomes of requests while the set is stale. Numbers are fixed and only appended.
enum class StaleKeys : std::uint8_t {
  keep_serving = 0,
  refuse = 1,
  /// Keys that this object accepted while it was not stale go on; all others get stale_set. A key is its public id, whatever
  /// its secret; without public ids, a digest. Being changed by snapshots does not make a key new; being gone does.
  refuse_new = 2,
};

struct KeySetOptions {
  Nanos max_age{};  ///< since control was last heard of; 0: no limit
  StaleKeys on_stale = StaleKeys::keep_serving;
};

/// threads: any number of readers, which never wait; writers take turns by themselves.
class KeySet {
 public:
  explicit KeySet(const KeySetOptions& options = {});
  ~KeySet();
  KeySet(const KeySet&) = delete;
  KeySet& operator=(const KeySet&) = delete;

  /// Adds a pepper; it is wiped when the set is destroyed. errors: invalid_argument: shorter than 16 bytes;
  /// already_exists: another pepper of this version.
  Status add_pepper(std::uint32_t version, std::string_view pepper);

  /// A full snapshot: keys that it does not name are gone; revocations stay unless the record is newer than them.
  /// errors: stale: not newer than generation(); invalid_argument (a record is faulty or named twice): nothing changes.
  /// cost: about 1 s for 10^6 keys (bench_keys); readers go on meanwhile.
  Status replace(std::uint64_t generation, std::span<const KeyRecord> records, Nanos now);

  /// Changes of generation `base`. A record that is not newer than what is there is skipped.
  /// errors: stale: `base` is not generation(), so that a full snapshot is needed, or `generation` is not above it;
  /// invalid_argument: nothing changes. cost: copies a 1024th of the set for each record.
  Status apply(std::uint64_t base, std::uint64_t generation, std::span<const KeyRecord> changes, Nanos now);

  /// Control was heard of and `generation` is still its newest. errors: stale: it is not ours.
  Status confirm(std::uint64_t generation, Nanos now);

  /// As replace, to a generation that may be older, or is the same. errors: stale: `from` is not generation(); invalid_argument.
  Status roll_back(std::uint64_t from, std::uint64_t generation, std::span<const KeyRecord> records, Nanos now);

  /// From now on, instead of what the options say. threads: any.
  void set_max_age(Nanos max_age, StaleKeys on_stale) noexcept;

  /// Revokes at once, beside control: everything up to `version`. Also before the key is known. errors: invalid_argument.
  Status revoke(std::string_view public_id, std::uint64_t version = kRevokedForever);

  /// Whose key it is. `grant` is written when accepted. Checks all digests whose secret could be this one, whatever the
  /// first ones gave. alloc: only as `grant` grows. cost: bench_keys; most of it is OpenSSL's digest.
  KeyVerdict check(std::string_view key, UsageTime now, KeyGrant& grant) const;

  [[nodiscard]] std::uint64_t generation() const noexcept;
  [[nodiscard]] Nanos age(Nanos now) const noexcept;   ///< since control was last heard of; never negative
  [[nodiscard]] bool stale(Nanos now) const noexcept;  ///< older than max_age, or nothing came yet
  [[nodiscard]] std::size_t size() const noexcept;     ///< keys that are not revoked
  [[nodiscard]] std::size_t revoked() const noexcept;  ///< tombstones
  [[nodiscard]] std::size_t heap_bytes() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The digest to store for a key, for whoever issues keys. `pepper`: for hmac_sha256.
/// errors: invalid_argument: the key has no secret; internal: OpenSSL refuses.
Result<KeyDigest> key_digest(std::string_view key, KeyDigestKind kind, std::uint32_t pepper_version = 0,
                             std::string_view pepper = {});

}  // namespace warmroute
