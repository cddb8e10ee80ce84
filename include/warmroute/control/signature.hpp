/// Who may say what control says: Ed25519 signatures over the exact bytes of a snapshot. A signed file is one line of
/// envelope, `{"warmroute_snapshot":1,"key_id":"...","signature":"<base64>"}`, a newline, and the payload.
/// Invariants: nothing of a payload is read before its signature holds; one signature has one spelling, so that no byte of a
/// file can be changed; unsigned bytes are taken only where that is said.
/// Does not: parse the payload (control/snapshot.hpp), read files, keep a list of signatures that were withdrawn. The
/// cryptography is OpenSSL's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/result.hpp"

namespace warmroute {

/// A public key that may sign. `key_id`: 1 to 64 of [A-Za-z0-9._-].
struct VerifyingKey {
  std::string key_id;
  std::array<std::uint8_t, 32> public_key{};

  friend bool operator==(const VerifyingKey&, const VerifyingKey&) = default;
};

/// Whom we believe. Several keys: whichever the envelope names, which is how a signing key is changed without a gap.
struct SnapshotTrust {
  std::vector<VerifyingKey> keys;
  bool allow_unsigned = false;  ///< bytes without an envelope, or with one that has no signature, pass
};

/// A private key. Wiped when it goes; never written by anything but signing_key_pem.
class SigningKey {
 public:
  SigningKey() = default;
  /// `seed`: the 32 bytes of RFC 8032. errors: internal: OpenSSL refuses; invalid_argument: key_id.
  static Result<SigningKey> from_seed(const std::array<std::uint8_t, 32>& seed, std::string_view key_id = {});
  ~SigningKey();
  SigningKey(const SigningKey&) = default;
  SigningKey(SigningKey&&) noexcept = default;
  SigningKey& operator=(const SigningKey&) = default;
  SigningKey& operator=(SigningKey&&) noexcept = default;

  [[nodiscard]] const std::string& key_id() const noexcept { return public_.key_id; }
  [[nodiscard]] const VerifyingKey& public_key() const noexcept { return public_; }
  [[nodiscard]] const std::array<std::uint8_t, 32>& seed() const noexcept { return seed_; }

 private:
  std::array<std::uint8_t, 32> seed_{};
  VerifyingKey public_;
};

/// A new one of OpenSSL's random bytes. `key_id` empty: made of the public key ("ed25519-" and 16 hex digits).
Result<SigningKey> generate_signing_key(std::string_view key_id = {});

/// Reads PEM (PKCS #8, as `openssl genpkey -algorithm ed25519` writes it) or 64 hex digits. `key_id` empty: as above, so that
/// both sides come to the same one. errors: malformed, invalid_argument (key_id). Messages never hold the key.
Result<SigningKey> parse_signing_key(std::string_view text, std::string_view key_id = {});
/// Reads PEM (SubjectPublicKeyInfo) or 64 hex digits. errors: as above.
Result<VerifyingKey> parse_verifying_key(std::string_view text, std::string_view key_id = {});
/// errors: internal: OpenSSL refuses.
Result<std::string> signing_key_pem(const SigningKey& key);
Result<std::string> verifying_key_pem(const VerifyingKey& key);

/// returns: envelope and payload: what to write to a file. errors: internal: OpenSSL refuses.
Result<std::string> sign_snapshot(std::string_view payload, const SigningKey& key);

/// What is inside. lifetime: `payload` of the bytes.
struct VerifiedSnapshot {
  std::string_view payload;
  std::string key_id;  ///< who signed; empty: nobody
};
/// errors: malformed (no envelope of this form), unsupported (of a later version), not_found (a signer that is not trusted),
/// invalid_value (the signature does not hold, or there must be one).
Result<VerifiedSnapshot> verify_snapshot(std::string_view bytes, const SnapshotTrust& trust);

}  // namespace warmroute
