// Whose an API key is.
#include <memory>
#include <string>
#include <vector>

#include "usage.hpp"

using namespace warmroute;        // NOLINT(google-build-using-namespace)
using namespace warmroute::capi;  // NOLINT(google-build-using-namespace)

struct wr_key_lookup {
  KeyGrant grant;
};

namespace {

const wr_keys_options kKeysDefaults = WR_KEYS_OPTIONS_INIT;
const wr_key_record kKeyRecordDefaults = WR_KEY_RECORD_INIT;
const wr_key_digest kKeyDigestDefaults = WR_KEY_DIGEST_INIT;
constexpr std::string_view kNoKeys = "keys is NULL, or a string has a size and no data";

static_assert(WR_KEY_DIGEST_BYTES == sizeof(KeyDigest::bytes));

wr_status read_key_record(const wr_key_record* given, KeyRecord& out, wr_error* err) {
  const Input<wr_key_record> in(given, kKeyRecordDefaults);
  if (!in) return in.refuse(err, "a record is NULL");
  if (!readable(in->public_id) || !readable(in->key_id) || !readable(in->team_id) ||
      !readable(in->digests, in->digest_count)) {
    return null_argument(err, "a string or list of a record has a size and no data");
  }
  if (!strides_fit<wr_key_digest>(in->digest_count, in->digest_stride)) {
    return fail(err, Code::invalid_argument,
                "digest_stride is smaller than a wr_key_digest, or no multiple of its alignment");
  }
  out.public_id = view(in->public_id);
  out.key_id = view(in->key_id);
  out.team_id = view(in->team_id);
  out.version = in->version;
  out.revoked = in->revoked != 0;
  for (std::size_t i = 0; i < in->digest_count; ++i) {
    const Input<wr_key_digest> d(at(in->digests, i, in->digest_stride), kKeyDigestDefaults);
    if (!d) return d.refuse(err, "a digest is NULL");
    if (d->kind > WR_KEY_DIGEST_SHA256_KEY) {
      return fail(err, Code::out_of_range, "a digest's kind is not one of WR_KEY_DIGEST_...");
    }
    KeyDigest& digest = out.digests.emplace_back();
    std::copy_n(d->bytes, digest.bytes.size(), digest.bytes.begin());
    digest.kind = static_cast<KeyDigestKind>(d->kind);
    digest.pepper_version = d->pepper_version;
    digest.not_before = WallNanos{d->not_before_wall_ns};
    digest.not_after = WallNanos{d->not_after_wall_ns};
  }
  return WR_STATUS_OK;
}

template <class Take>
wr_status with_key_records(wr_keys* keys, const wr_key_record* records, std::size_t count, std::size_t stride,
                           wr_error* err, Take&& take) noexcept {
  if (keys == nullptr || !readable(records, count)) return null_argument(err, "keys or records is NULL");
  if (!strides_fit<wr_key_record>(count, stride)) {
    return fail(err, Code::invalid_argument, "stride is smaller than a wr_key_record, or no multiple of its alignment");
  }
  return guard(err, [&] {
    std::vector<KeyRecord> list(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (const wr_status bad = read_key_record(at(records, i, stride), list[i], err); bad != WR_STATUS_OK) return bad;
    }
    return done(take(list), err);
  });
}

}  // namespace

extern "C" {

const char* wr_key_verdict_name(uint32_t verdict) {
  return verdict <= WR_KEY_VERDICT_NO_DIGEST ? key_verdict_name(static_cast<KeyVerdict>(verdict)).data() : "unknown";
}
uint32_t wr_key_verdict_status(uint32_t verdict) {
  return verdict <= WR_KEY_VERDICT_NO_DIGEST
             ? static_cast<std::uint32_t>(key_verdict_status(static_cast<KeyVerdict>(verdict)))
             : 503;
}

wr_status wr_keys_new(const wr_keys_options* options, wr_keys** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  KeySetOptions chosen;
  if (options != nullptr) {
    const Input<wr_keys_options> in(options, kKeysDefaults);
    if (!in) return in.refuse(err, "options is NULL");
    if (!abi_fits(in->abi_version)) return refuse_abi(err, in->abi_version);
    if (in->on_stale > WR_STALE_KEYS_REFUSE_NEW) {
      return fail(err, Code::out_of_range, "on_stale is not one of WR_STALE_KEYS_...");
    }
    chosen.max_age = Nanos{in->max_age_ns};
    chosen.on_stale = static_cast<StaleKeys>(in->on_stale);
  }
  return guard(err, [&] {
    *out = std::make_unique<wr_keys>(chosen).release();
    return WR_STATUS_OK;
  });
}

void wr_keys_free(wr_keys* keys) { delete keys; }

wr_status wr_keys_add_pepper(wr_keys* keys, uint32_t version, wr_str pepper, wr_error* err) {
  if (keys == nullptr || !readable(pepper)) return null_argument(err, kNoKeys);
  return guard(err, [&] { return done(keys->set.add_pepper(version, view(pepper)), err); });
}

wr_status wr_keys_replace(wr_keys* keys, uint64_t generation, const wr_key_record* records, size_t count, size_t stride,
                          int64_t now_ns, wr_error* err) {
  return with_key_records(keys, records, count, stride, err, [&](const std::vector<KeyRecord>& list) {
    return keys->set.replace(generation, list, Nanos{now_ns});
  });
}

wr_status wr_keys_apply(wr_keys* keys, uint64_t base, uint64_t generation, const wr_key_record* changes, size_t count,
                        size_t stride, int64_t now_ns, wr_error* err) {
  return with_key_records(keys, changes, count, stride, err, [&](const std::vector<KeyRecord>& list) {
    return keys->set.apply(base, generation, list, Nanos{now_ns});
  });
}

wr_status wr_keys_confirm(wr_keys* keys, uint64_t generation, int64_t now_ns, wr_error* err) {
  if (keys == nullptr) return null_argument(err, kNoKeys);
  return guard(err, [&] { return done(keys->set.confirm(generation, Nanos{now_ns}), err); });
}

wr_status wr_keys_roll_back(wr_keys* keys, uint64_t from, uint64_t generation, const wr_key_record* records,
                            size_t count, size_t stride, int64_t now_ns, wr_error* err) {
  return with_key_records(keys, records, count, stride, err, [&](const std::vector<KeyRecord>& list) {
    return keys->set.roll_back(from, generation, list, Nanos{now_ns});
  });
}

wr_status wr_keys_set_max_age(wr_keys* keys, int64_t max_age_ns, uint32_t on_stale, wr_error* err) {
  if (keys == nullptr) return null_argument(err, kNoKeys);
  if (on_stale > WR_STALE_KEYS_REFUSE_NEW) {
    return fail(err, Code::out_of_range, "on_stale is not one of WR_STALE_KEYS_...");
  }
  keys->set.set_max_age(Nanos{max_age_ns}, static_cast<StaleKeys>(on_stale));
  return WR_STATUS_OK;
}

wr_status wr_keys_revoke(wr_keys* keys, wr_str public_id, uint64_t version, wr_error* err) {
  if (keys == nullptr || !readable(public_id)) return null_argument(err, kNoKeys);
  return guard(err, [&] { return done(keys->set.revoke(view(public_id), version), err); });
}

wr_status wr_key_lookup_new(wr_key_lookup** out, wr_error* err) {
  if (out == nullptr) return null_argument(err, "out is NULL");
  return guard(err, [&] {
    *out = std::make_unique<wr_key_lookup>().release();
    return WR_STATUS_OK;
  });
}

void wr_key_lookup_free(wr_key_lookup* lookup) { delete lookup; }

wr_status wr_keys_check(const wr_keys* keys, wr_key_lookup* lookup, wr_str key, int64_t steady_ns, int64_t wall_ns,
                        wr_key_grant* out, wr_error* err) {
  if (keys == nullptr || lookup == nullptr || !readable(key)) {
    return null_argument(err, "keys or lookup is NULL, or key has a size and no data");
  }
  if (!writable(out)) return null_argument(err, kBadOutput);
  return guard(err, [&] {
    const KeyVerdict verdict = keys->set.check(view(key), {Nanos{steady_ns}, WallNanos{wall_ns}}, lookup->grant);
    wr_key_grant told = WR_KEY_GRANT_INIT;
    told.verdict = static_cast<std::uint32_t>(verdict);
    if (verdict == KeyVerdict::accepted) {
      told.key_id = str(lookup->grant.key_id);
      told.team_id = str(lookup->grant.team_id);
      told.version = lookup->grant.version;
      told.generation = lookup->grant.generation;
    }
    write(out, told);
    return WR_STATUS_OK;
  });
}

wr_status wr_keys_read_statistics(const wr_keys* keys, int64_t now_ns, wr_keys_statistics* out, wr_error* err) {
  if (keys == nullptr) return null_argument(err, kNoKeys);
  if (!writable(out)) return null_argument(err, kBadOutput);
  const KeySet& set = keys->set;
  write(out, wr_keys_statistics{0,
                                set.stale(Nanos{now_ns}) ? 1u : 0u,
                                set.generation(),
                                set.age(Nanos{now_ns}).value,
                                set.size(),
                                set.revoked(),
                                set.heap_bytes(),
                                {}});
  return WR_STATUS_OK;
}

wr_status wr_key_digest_of(wr_str key, uint32_t kind, uint32_t pepper_version, wr_str pepper, wr_key_digest* out,
                           wr_error* err) {
  if (!readable(key) || !readable(pepper)) return null_argument(err, "key or pepper has a size and no data");
  if (!writable(out)) return null_argument(err, kBadOutput);
  if (kind > WR_KEY_DIGEST_SHA256_KEY) return fail(err, Code::out_of_range, "kind is not one of WR_KEY_DIGEST_...");
  return guard(err, [&] {
    const auto digest = key_digest(view(key), static_cast<KeyDigestKind>(kind), pepper_version, view(pepper));
    if (!digest) return fail(err, digest.error());
    wr_key_digest told = WR_KEY_DIGEST_INIT;
    told.kind = kind;
    told.pepper_version = digest->pepper_version;
    std::copy_n(digest->bytes.begin(), digest->bytes.size(), told.bytes);
    write(out, told);
    return static_cast<wr_status>(WR_STATUS_OK);
  });
}

}  // extern "C"
