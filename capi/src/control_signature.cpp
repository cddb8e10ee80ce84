// Who may say what control says.
#include <algorithm>
#include <memory>
#include <string>

#include "control.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_signing_key {
  SigningKey key;
};

namespace {

const wr_verifying_key kVerifyingKeyDefaults = WR_VERIFYING_KEY_INIT;
const wr_snapshot_trust kTrustDefaults = WR_SNAPSHOT_TRUST_INIT;
constexpr std::string_view kNoKey = "key or out is NULL, or a string has a size and no data";

static_assert(WR_PUBLIC_KEY_BYTES == sizeof(VerifyingKey::public_key) && WR_SIGNER_ID_SIZE > 64);

wr_status give_signing_key(Result<SigningKey> made, wr_signing_key** out, wr_error* err) {
  if (!made) return fail(err, made.error());
  *out = std::make_unique<wr_signing_key>(wr_signing_key{std::move(*made)}).release();
  return WR_STATUS_OK;
}

void write_verifying_key(wr_verifying_key* out, const VerifyingKey& key) noexcept {
  wr_verifying_key told = WR_VERIFYING_KEY_INIT;
  std::copy(key.public_key.begin(), key.public_key.end(), told.public_key);
  copy_cut(key.key_id, told.key_id);
  write(out, told);
}

wr_status read_verifying_key(const wr_verifying_key* given, VerifyingKey& out, wr_error* err) {
  const Input<wr_verifying_key> in(given, kVerifyingKeyDefaults);
  if (!in) return in.refuse(err, "a key is NULL");
  const auto* const end = std::find(in->key_id, in->key_id + WR_SIGNER_ID_SIZE, '\0');
  if (end == in->key_id + WR_SIGNER_ID_SIZE || end == in->key_id) {
    return fail(err, Code::invalid_argument, "key_id is empty, or without a NUL");
  }
  out.key_id.assign(in->key_id, end);
  std::copy_n(in->public_key, out.public_key.size(), out.public_key.begin());
  return WR_STATUS_OK;
}

}  // namespace

wr_status capi::read_trust(const wr_snapshot_trust* given, SnapshotTrust& out, wr_error* err) {
  if (given == nullptr) return WR_STATUS_OK;
  const Input<wr_snapshot_trust> in(given, kTrustDefaults);
  if (!in) return in.refuse(err, "trust is NULL");
  if (!readable(in->keys, in->key_count)) return null_argument(err, "keys of trust is NULL although there are some");
  if (!strides_fit<wr_verifying_key>(in->key_count, in->key_stride)) {
    return fail(err, Code::invalid_argument,
                "key_stride is smaller than a wr_verifying_key, or no multiple of its alignment");
  }
  out.allow_unsigned = in->allow_unsigned != 0;
  for (std::size_t i = 0; i < in->key_count; ++i) {
    if (const wr_status bad = read_verifying_key(at(in->keys, i, in->key_stride), out.keys.emplace_back(), err);
        bad != WR_STATUS_OK) {
      return bad;
    }
  }
  return WR_STATUS_OK;
}

extern "C" {

wr_status wr_signing_key_generate(wr_str key_id, wr_signing_key** out, wr_error* err) {
  if (out == nullptr || !readable(key_id)) return null_argument(err, kNoKey);
  return guard(err, [&] { return give_signing_key(generate_signing_key(view(key_id)), out, err); });
}

wr_status wr_signing_key_from_seed(wr_str seed, wr_str key_id, wr_signing_key** out, wr_error* err) {
  if (out == nullptr || !readable(seed) || !readable(key_id)) return null_argument(err, kNoKey);
  std::array<std::uint8_t, WR_SIGNING_SEED_BYTES> bytes{};
  if (seed.size != bytes.size()) return fail(err, Code::invalid_argument, "the seed is not of 32 bytes");
  std::copy_n(seed.data, bytes.size(), reinterpret_cast<char*>(bytes.data()));
  return guard(err, [&] { return give_signing_key(SigningKey::from_seed(bytes, view(key_id)), out, err); });
}

wr_status wr_signing_key_parse(wr_str text, wr_str key_id, wr_signing_key** out, wr_error* err) {
  if (out == nullptr || !readable(text) || !readable(key_id)) return null_argument(err, kNoKey);
  return guard(err, [&] { return give_signing_key(parse_signing_key(view(text), view(key_id)), out, err); });
}

void wr_signing_key_free(wr_signing_key* key) { delete key; }

wr_status wr_signing_key_pem(const wr_signing_key* key, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (key == nullptr || needed == nullptr) return null_argument(err, "key or needed is NULL");
  return guard(err, [&] {
    const auto pem = signing_key_pem(key->key);
    return pem ? give(*pem, 1, buf, cap, needed, err) : fail(err, pem.error());
  });
}

wr_status wr_signing_key_public(const wr_signing_key* key, wr_verifying_key* out, wr_error* err) {
  if (key == nullptr) return null_argument(err, kNoKey);
  if (!writable(out)) return null_argument(err, kBadOutput);
  write_verifying_key(out, key->key.public_key());
  return WR_STATUS_OK;
}

wr_status wr_verifying_key_parse(wr_str text, wr_str key_id, wr_verifying_key* out, wr_error* err) {
  if (!readable(text) || !readable(key_id)) return null_argument(err, kNoKey);
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const auto key = parse_verifying_key(view(text), view(key_id));
    if (!key) return fail(err, key.error());
    write_verifying_key(out, *key);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

wr_status wr_verifying_key_pem(const wr_verifying_key* key, char* buf, size_t cap, size_t* needed, wr_error* err) {
  if (needed == nullptr) return null_argument(err, "needed is NULL");
  return guard(err, [&] {
    VerifyingKey whole;
    if (const wr_status bad = read_verifying_key(key, whole, err); bad != WR_STATUS_OK) return bad;
    const auto pem = verifying_key_pem(whole);
    return pem ? give(*pem, 1, buf, cap, needed, err) : fail(err, pem.error());
  });
}

wr_status wr_snapshot_sign(wr_str payload, const wr_signing_key* key, char* buf, size_t cap, size_t* needed,
                           wr_error* err) {
  if (key == nullptr || needed == nullptr || !readable(payload)) return null_argument(err, kNoKey);
  return guard(err, [&] {
    const auto file = sign_snapshot(view(payload), key->key);
    return file ? give(*file, 0, buf, cap, needed, err) : fail(err, file.error());
  });
}

wr_status wr_snapshot_verify(wr_str bytes, const wr_snapshot_trust* trust, wr_str* payload, char* key_id,
                             wr_error* err) {
  if (payload == nullptr || !readable(bytes)) return null_argument(err, "payload is NULL, or bytes has no data");
  return guard(err, [&] {
    SnapshotTrust whom;
    if (const wr_status bad = read_trust(trust, whom, err); bad != WR_STATUS_OK) return bad;
    const auto inside = verify_snapshot(view(bytes), whom);
    if (!inside) return fail(err, inside.error());
    *payload = str(inside->payload);
    if (key_id != nullptr) key_id[inside->key_id.copy(key_id, WR_SIGNER_ID_SIZE - 1)] = '\0';
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

}  // extern "C"
