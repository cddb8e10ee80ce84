// Magic and version (8 bytes), salt (32), key check (16), then the body under ChaCha20-Poly1305 and its tag (16). All before the body
// is authenticated with it. Key, nonce and key check come from HMAC-SHA512(key, domain + salt): a fresh key per export, so that no nonce
// can come twice however many there are, and another key is told apart from changed bytes.
#include "warmroute/route/cache_export.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "route/cache_body.hpp"

namespace warmroute {
namespace {

constexpr std::string_view kMagic{"\x89WRCACH", 7};
constexpr unsigned char kVersion = 1;
constexpr std::string_view kDomain = "warmroute cache export 1";
constexpr std::size_t kSaltAt = 8, kSaltBytes = 32, kCheckAt = kSaltAt + kSaltBytes, kCheckBytes = 16;
constexpr std::size_t kHeaderBytes = kCheckAt + kCheckBytes, kTagBytes = 16;
constexpr std::size_t kPiece = std::size_t{1} << 24;  // OpenSSL counts in int

unsigned char* bytes_of(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }
const unsigned char* bytes_of(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }

struct Derived {
  Derived() = default;
  Derived(const Derived&) = delete;
  Derived& operator=(const Derived&) = delete;
  ~Derived() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
  [[nodiscard]] const unsigned char* key() const { return bytes.data(); }
  [[nodiscard]] const unsigned char* nonce() const { return bytes.data() + 32; }
  [[nodiscard]] const unsigned char* check() const { return bytes.data() + 48; }
  std::array<unsigned char, 64> bytes{};
};

bool derive(CacheExportKey key, const unsigned char* salt, Derived& out) {
  std::array<unsigned char, kDomain.size() + kSaltBytes> message{};
  std::copy(kDomain.begin(), kDomain.end(), message.begin());
  std::copy_n(salt, kSaltBytes, message.begin() + kDomain.size());
  unsigned size = 0;
  return HMAC(EVP_sha512(), key.data(), static_cast<int>(key.size()), message.data(), message.size(), out.bytes.data(),
              &size) != nullptr &&
         size == out.bytes.size();
}

// In place over data[0, size), with `header` authenticated; writes or checks the tag behind the data.
// returns: false when the tag does not fit, or OpenSSL refuses.
bool crypt(bool encrypt, const Derived& derived, const unsigned char* header, unsigned char* data, std::size_t size) {
  const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  EVP_CIPHER_CTX* c = context.get();
  int done = 0;
  if (c == nullptr ||
      EVP_CipherInit_ex(c, EVP_chacha20_poly1305(), nullptr, derived.key(), derived.nonce(), encrypt ? 1 : 0) != 1 ||
      EVP_CipherUpdate(c, nullptr, &done, header, static_cast<int>(kHeaderBytes)) != 1) {
    return false;
  }
  for (std::size_t at = 0; at < size; at += kPiece) {
    const auto piece = static_cast<int>(std::min(kPiece, size - at));
    if (EVP_CipherUpdate(c, data + at, &done, data + at, piece) != 1 || done != piece) return false;
  }
  unsigned char* tag = data + size;
  constexpr int kTag = static_cast<int>(kTagBytes);
  std::array<unsigned char, 16> nothing{};
  if (!encrypt && EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, kTag, tag) != 1) return false;
  if (EVP_CipherFinal_ex(c, nothing.data(), &done) != 1 || done != 0) return false;
  return !encrypt || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, kTag, tag) == 1;
}

// returns: the plain body.
Result<std::string> open_sealed(std::string_view bytes, CacheExportKey key) {
  const auto refuse = [](Code code, std::string message, std::uint64_t offset) {
    return Error{code, "cache export: " + std::move(message), offset};
  };
  const std::size_t same = static_cast<std::size_t>(
      std::mismatch(kMagic.begin(), kMagic.begin() + static_cast<std::ptrdiff_t>(std::min(kMagic.size(), bytes.size())),
                    bytes.begin())
          .first -
      kMagic.begin());
  if (same < std::min(kMagic.size(), bytes.size())) return refuse(Code::malformed, "these bytes are none", same);
  if (bytes.size() > kMagic.size() && bytes_of(bytes)[kMagic.size()] != kVersion) {
    return refuse(Code::unsupported,
                  "version " + std::to_string(bytes_of(bytes)[kMagic.size()]) + ", this reads version 1",
                  kMagic.size());
  }
  if (bytes.size() < kHeaderBytes + kTagBytes) return refuse(Code::malformed, "cut short", bytes.size());
  Derived derived;
  if (!derive(key, bytes_of(bytes) + kSaltAt, derived))
    return refuse(Code::internal, "OpenSSL gives no HMAC-SHA512", kNoOffset);
  if (CRYPTO_memcmp(derived.check(), bytes.data() + kCheckAt, kCheckBytes) != 0) {
    return refuse(Code::invalid_argument, "made with another key, or its header was changed", kSaltAt);
  }
  std::string body(bytes.substr(kHeaderBytes));
  const std::size_t size = body.size() - kTagBytes;
  if (!crypt(false, derived, bytes_of(bytes), bytes_of(body), size)) {
    return refuse(Code::malformed, "cut short or changed since it was made", kNoOffset);
  }
  body.resize(size);
  return body;
}

const ReplicaRow* find(const std::vector<ReplicaRow>& rows, const NamedReplicaCache& named) {
  for (const ReplicaRow& row : rows) {
    if (row.spec.dp_rank == named.dp_rank && row.spec.name == named.name && row.spec.pool == named.pool) return &row;
  }
  return nullptr;
}

// What was learned of each pool's hardware.
void append_pools(std::string& out, const Router& router) {
  std::set<std::string> names;
  for (ReplicaRow& row : router.replicas()) names.insert(std::move(row.spec.pool));
  std::string pools;
  std::uint64_t count = 0;
  for (const std::string& name : names) {
    const auto learned = router.learned(name);
    if (!learned || (learned->kinds.empty() && learned->replicas.empty())) continue;
    append_learned(pools, name, *learned);
    ++count;
  }
  append_pool_count(out, count);
  out += pools;
}

}  // namespace

Result<std::string> export_caches(const Router& router, CacheExportKey key, Nanos now) {
  std::string replicas;
  std::uint64_t count = 0;
  const Policy policy = router.policy();
  const std::uint32_t digest = hash_seed_digest(policy.hash_seed);
  for (const ReplicaRow& row : router.replicas()) {
    const auto cache = router.cached(row.id, now);
    // gone meanwhile, no model, or hashed by a policy that came meanwhile: nothing to keep of it
    if (!cache || cache->block_size != policy.block_size || cache->seed_digest != digest) continue;
    append_replica_cache(replicas, row.spec.pool, row.spec.name, row.spec.dp_rank, *cache);
    ++count;
  }
  std::string out(kMagic);
  out.push_back(static_cast<char>(kVersion));
  out.resize(kHeaderBytes);
  Derived derived;
  if (RAND_bytes(bytes_of(out) + kSaltAt, static_cast<int>(kSaltBytes)) != 1 ||
      !derive(key, bytes_of(out) + kSaltAt, derived)) {
    return Error{Code::internal, "cache export: OpenSSL gives no random bytes or no HMAC-SHA512", kNoOffset};
  }
  std::copy_n(derived.check(), kCheckBytes, bytes_of(out) + kCheckAt);
  out.reserve(kHeaderBytes + replicas.size() + replicas.size() / 8 + 8'192);
  append_body_header(out, policy.block_size, digest, count);
  out += replicas;
  append_pools(out, router);
  std::string().swap(replicas);
  pad_body(out, kHeaderBytes);
  const std::size_t size = out.size() - kHeaderBytes;
  out.resize(out.size() + kTagBytes);
  if (!crypt(true, derived, bytes_of(out), bytes_of(out) + kHeaderBytes, size)) {
    return Error{Code::internal, "cache export: OpenSSL gives no ChaCha20-Poly1305", kNoOffset};
  }
  return out;
}

Result<CacheImportReport> import_caches(Router& router, std::string_view bytes, CacheExportKey key, Nanos now,
                                        const CacheImportOptions& options) {
  if (bytes.size() > options.max_bytes) {
    return Error{
        Code::too_large,
        "cache export: " + std::to_string(bytes.size()) + " bytes, at most " + std::to_string(options.max_bytes),
        options.max_bytes};
  }
  auto plain = open_sealed(bytes, key);
  if (!plain) return plain.error();
  auto body = read_cache_body(*plain);
  if (!body) return Error{body.code(), body.error().message + " (offset within the body)", body.error().offset};
  std::string().swap(*plain);
  const Policy policy = router.policy();
  if (body->block_size != policy.block_size || body->seed_digest != hash_seed_digest(policy.hash_seed)) {
    return Error{Code::invalid_argument,
                 body->block_size != policy.block_size
                     ? "cache export: its blocks hold " + std::to_string(body->block_size) + " tokens, the policy's " +
                           std::to_string(policy.block_size)
                     : std::string("cache export: made under another hash_seed than the policy's"),
                 kNoOffset};
  }
  CacheImportReport report;
  const std::vector<ReplicaRow> rows = router.replicas();
  for (NamedReplicaCache& replica : body->replicas) {
    report.blocks_offered += replica.cache.tree.blocks.size();
    const ReplicaRow* row = find(rows, replica);
    const auto restored = row == nullptr ? Result<RestoredCache>(Error{Code::not_found, {}, kNoOffset})
                                         : router.restore_cached(row->id, replica.cache, now, options.away);
    // no such replica, without a model, or removed this moment; a policy that comes this moment empties every cache anyway
    if (!restored) {
      ++report.replicas_unknown;
      continue;
    }
    ++report.replicas_restored;
    report.blocks_restored += restored->added;
    replica.cache.tree = {};
  }
  for (const NamedLearned& pool : body->learned) {  // of a pool that is not here, nothing is to be learned
    const auto restored = router.restore_learned(pool.pool, pool.learned);
    report.rates_restored += restored ? restored->kinds : 0;
  }
  return report;
}

}  // namespace warmroute
