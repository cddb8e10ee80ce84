// Ed25519 by OpenSSL, and the envelope of a signed file.
#include "warmroute/control/signature.hpp"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>
#include <span>

#include "text/strict_json.hpp"

namespace warmroute {
namespace control {
namespace {

constexpr std::string_view kBegin = "{\"warmroute_snapshot\":";
constexpr std::string_view kKeyId = ",\"key_id\":\"";
constexpr std::string_view kSignature = "\",\"signature\":\"";
constexpr std::string_view kEnd = "\"}\n";
constexpr std::size_t kSignatureBytes = 64;
constexpr std::size_t kSignatureText = 88;  // in base64
constexpr std::size_t kMaxKeyId = 64;

struct FreeOpenSsl {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
  void operator()(BIO* p) const { BIO_free(p); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeOpenSsl>;
using Context = std::unique_ptr<EVP_MD_CTX, FreeOpenSsl>;
using Bio = std::unique_ptr<BIO, FreeOpenSsl>;

Key private_key(std::span<const std::uint8_t, 32> seed) {
  return Key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
}
Key public_key(std::span<const std::uint8_t, 32> bytes) {
  return Key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, bytes.data(), bytes.size()));
}

Error refused(const char* what) { return Error{Code::internal, std::string(what) + ": OpenSSL refuses", kNoOffset}; }

bool good_key_id(std::string_view id) {
  for (const char c : id) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') return false;
  }
  return !id.empty() && id.size() <= kMaxKeyId;
}

Result<VerifyingKey> named(std::span<const std::uint8_t, 32> bytes, std::string_view key_id) {
  if (!key_id.empty() && !good_key_id(key_id))
    return Error{Code::invalid_argument, "signing key: its key_id is not 1 to 64 of [A-Za-z0-9._-]", kNoOffset};
  VerifyingKey out;
  std::copy(bytes.begin(), bytes.end(), out.public_key.begin());
  out.key_id = key_id;
  if (!key_id.empty()) return out;
  std::array<std::uint8_t, 32> digest{};
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    return refused("signing key");
  out.key_id = "ed25519-" + text::hex_text(std::span(digest).first(8));
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// No callback, or OpenSSL would ask for a pass phrase at the terminal.
int no_pass_phrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

Bio reading(std::string_view text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string{};
}

bool is_ed25519(const Key& key) { return key && EVP_PKEY_id(key.get()) == EVP_PKEY_ED25519; }

std::string base64_of(const std::array<std::uint8_t, kSignatureBytes>& bytes) {
  std::array<std::uint8_t, kSignatureText + 1> text{};
  EVP_EncodeBlock(text.data(), bytes.data(), static_cast<int>(bytes.size()));
  return {reinterpret_cast<const char*>(text.data()), kSignatureText};
}

bool from_base64(std::string_view text, std::array<std::uint8_t, kSignatureBytes>& out) {
  std::array<std::uint8_t, kSignatureText / 4 * 3> bytes{};
  if (text.size() != kSignatureText || EVP_DecodeBlock(bytes.data(), reinterpret_cast<const std::uint8_t*>(text.data()),
                                                       kSignatureText) != static_cast<int>(bytes.size()))
    return false;
  std::copy_n(bytes.begin(), out.size(), out.begin());
  return base64_of(out) == text;  // one spelling: no spaces, no bits left over
}

// What the first line says. `signature` empty: it says that there is none.
struct Envelope {
  std::string_view key_id;
  std::string_view signature;
  std::string_view payload;
};

bool take(std::string_view& text, std::string_view wanted) {
  if (text.substr(0, wanted.size()) != wanted) return false;
  text.remove_prefix(wanted.size());
  return true;
}

Result<Envelope> open_envelope(std::string_view bytes) {
  Envelope out;
  if (!take(bytes, kBegin)) {
    out.payload = bytes;
    return out;
  }
  const Error broken{Code::malformed, "snapshot: its first line is no envelope", 0};
  if (!take(bytes, "1")) {
    const bool later = !bytes.empty() && bytes[0] >= '0' && bytes[0] <= '9';
    return later ? Error{Code::unsupported, "snapshot: an envelope of a later version", 0} : broken;
  }
  if (take(bytes, "}\n")) {
    out.payload = bytes;
    return out;
  }
  if (!take(bytes, kKeyId)) return broken;
  out.key_id = bytes.substr(0, bytes.substr(0, kMaxKeyId + 1).find('"'));
  if (!good_key_id(out.key_id)) return broken;
  bytes.remove_prefix(out.key_id.size());
  if (!take(bytes, kSignature) || bytes.size() < kSignatureText) return broken;
  out.signature = bytes.substr(0, kSignatureText);
  bytes.remove_prefix(kSignatureText);
  if (!take(bytes, kEnd)) return broken;
  out.payload = bytes;
  return out;
}

}  // namespace
}  // namespace control

using control::Bio;
using control::Context;

SigningKey::~SigningKey() { OPENSSL_cleanse(seed_.data(), seed_.size()); }

Result<SigningKey> SigningKey::from_seed(const std::array<std::uint8_t, 32>& seed, std::string_view key_id) {
  const control::Key key = control::private_key(seed);
  std::array<std::uint8_t, 32> bytes{};
  std::size_t size = bytes.size();
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), bytes.data(), &size) != 1 || size != bytes.size())
    return control::refused("signing key");
  auto verifying = control::named(bytes, key_id);
  if (!verifying) return verifying.error();
  SigningKey out;
  out.seed_ = seed;
  out.public_ = std::move(*verifying);
  return out;
}

Result<SigningKey> generate_signing_key(std::string_view key_id) {
  std::array<std::uint8_t, 32> seed{};
  std::size_t size = seed.size();
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr), &EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  if (!context || EVP_PKEY_keygen_init(context.get()) != 1 || EVP_PKEY_keygen(context.get(), &made) != 1)
    return control::refused("signing key");
  const control::Key key(made);
  if (EVP_PKEY_get_raw_private_key(key.get(), seed.data(), &size) != 1 || size != seed.size())
    return control::refused("signing key");
  auto out = SigningKey::from_seed(seed, key_id);
  OPENSSL_cleanse(seed.data(), seed.size());
  return out;
}

Result<SigningKey> parse_signing_key(std::string_view text, std::string_view key_id) {
  std::array<std::uint8_t, 32> seed{};
  if (!text::hex_bytes(control::trimmed(text), seed)) {
    const Bio bio = control::reading(text);
    const control::Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, control::no_pass_phrase, nullptr));
    std::size_t size = seed.size();
    if (!control::is_ed25519(key) || EVP_PKEY_get_raw_private_key(key.get(), seed.data(), &size) != 1 ||
        size != seed.size())
      return Error{Code::malformed, "signing key: neither PEM of an Ed25519 private key nor 64 hex digits", 0};
  }
  auto out = SigningKey::from_seed(seed, key_id);
  OPENSSL_cleanse(seed.data(), seed.size());
  return out;
}

Result<VerifyingKey> parse_verifying_key(std::string_view text, std::string_view key_id) {
  std::array<std::uint8_t, 32> bytes{};
  if (!text::hex_bytes(control::trimmed(text), bytes)) {
    const Bio bio = control::reading(text);
    const control::Key key(PEM_read_bio_PUBKEY(bio.get(), nullptr, control::no_pass_phrase, nullptr));
    std::size_t size = bytes.size();
    if (!control::is_ed25519(key) || EVP_PKEY_get_raw_public_key(key.get(), bytes.data(), &size) != 1 ||
        size != bytes.size())
      return Error{Code::malformed, "verifying key: neither PEM of an Ed25519 public key nor 64 hex digits", 0};
  }
  return control::named(bytes, key_id);
}

Result<std::string> signing_key_pem(const SigningKey& key) {
  const control::Key made = control::private_key(key.seed());
  const Bio bio(BIO_new(BIO_s_secmem()));
  if (!made || !bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), made.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return control::refused("signing key");
  return control::text_of(bio.get());
}

Result<std::string> verifying_key_pem(const VerifyingKey& key) {
  const control::Key made = control::public_key(key.public_key);
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!made || !bio || PEM_write_bio_PUBKEY(bio.get(), made.get()) != 1) return control::refused("verifying key");
  return control::text_of(bio.get());
}

Result<std::string> sign_snapshot(std::string_view payload, const SigningKey& key) {
  const control::Key made = control::private_key(key.seed());
  const Context context(EVP_MD_CTX_new());
  std::array<std::uint8_t, control::kSignatureBytes> signature{};
  std::size_t size = signature.size();
  if (!made || !context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, made.get()) != 1 ||
      EVP_DigestSign(context.get(), signature.data(), &size, reinterpret_cast<const std::uint8_t*>(payload.data()),
                     payload.size()) != 1 ||
      size != signature.size())
    return control::refused("sign_snapshot");
  std::string out(control::kBegin);
  out.append("1").append(control::kKeyId).append(key.key_id());
  out.append(control::kSignature).append(control::base64_of(signature)).append(control::kEnd);
  return out.append(payload);
}

Result<VerifiedSnapshot> verify_snapshot(std::string_view bytes, const SnapshotTrust& trust) {
  const auto envelope = control::open_envelope(bytes);
  if (!envelope) return envelope.error();
  if (envelope->signature.empty()) {
    if (trust.allow_unsigned) return VerifiedSnapshot{envelope->payload, {}};
    return Error{Code::invalid_value, "snapshot: it is not signed", 0};
  }
  // A forged signature is refused where unsigned ones pass, too: it says that something is wrong.
  std::array<std::uint8_t, control::kSignatureBytes> signature{};
  if (!control::from_base64(envelope->signature, signature))
    return Error{Code::malformed, "snapshot: its signature is not base64", 0};
  bool known = false;
  for (const VerifyingKey& key : trust.keys) {
    if (key.key_id != envelope->key_id) continue;
    known = true;
    const control::Key made = control::public_key(key.public_key);
    const Context context(EVP_MD_CTX_new());
    if (!made || !context || EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, made.get()) != 1)
      return control::refused("verify_snapshot");
    if (EVP_DigestVerify(context.get(), signature.data(), signature.size(),
                         reinterpret_cast<const std::uint8_t*>(envelope->payload.data()),
                         envelope->payload.size()) == 1)
      return VerifiedSnapshot{envelope->payload, key.key_id};
  }
  if (known) return Error{Code::invalid_value, "snapshot: the signature does not hold", 0};
  return Error{Code::not_found, "snapshot: signed by " + std::string(envelope->key_id) + ", who is not trusted", 0};
}

}  // namespace warmroute
