// What a set answers, and how it changes; how it lies in memory is in keys_shard.hpp.
#include "warmroute/usage/keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "usage/keys_shard.hpp"
#include "warmroute/detail/epoch.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute {

namespace {

using usage::KeyCell;
using usage::KeyDraft;
using usage::KeyEntry;
using usage::KeyPlace;
using usage::KeyRoot;
using usage::KeyShard;
using usage::kKeyShards;
using usage::Peppers;
using Digest = std::array<std::uint8_t, 32>;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxPresented = 512;
constexpr std::size_t kMaxDigests = 16;

struct KeyParts {
  std::string_view public_id;
  std::string_view secret;
};

KeyParts split_key(std::string_view key) {
  const std::size_t last = key.rfind('-');
  if (last == std::string_view::npos || last == 0) return {};
  const std::size_t before = key.rfind('-', last - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  return {key.substr(begin, last - begin), key.substr(last + 1)};
}

std::string_view as_text(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

std::uint64_t name_hash(std::string_view name, bool by_digest) {
  return XXH3_64bits_withSeed(name.data(), name.size(), by_digest ? 2 : 1);
}
std::size_t shard_of(std::uint64_t hash) { return static_cast<std::size_t>(hash >> 54); }

bool plain_sha256(std::string_view text, Digest& out) {
  return EVP_Digest(text.data(), text.size(), out.data(), nullptr, EVP_sha256(), nullptr) == 1;
}
bool hmac_sha256(std::string_view pepper, std::string_view text, Digest& out) {
  return HMAC(EVP_sha256(), pepper.data(), static_cast<int>(pepper.size()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), nullptr) != nullptr;
}

void fetch_ahead([[maybe_unused]] const KeyEntry& entry) {
#if defined(__GNUC__)
  for (std::ptrdiff_t at = 0; at < 192; at += 64) __builtin_prefetch(reinterpret_cast<const char*>(&entry) + at);
#endif
}

// `ahead`: told of each key that may be the one, by its cell, before that key is looked at.
template <class Ahead>
const KeyEntry* find_key(const KeyPlace& place, std::uint64_t hash, std::string_view name, bool by_digest,
                         const Ahead& ahead) {
  if (place.table == nullptr) return nullptr;
  for (std::size_t i = hash & place.mask;; i = (i + 1) & place.mask) {
    const std::uint64_t cell = place.table[i];
    if (cell == 0) return nullptr;
    if (!KeyCell::may_be(cell, hash)) continue;
    const auto& e = *reinterpret_cast<const KeyEntry*>(place.store + KeyCell::word(cell));
    fetch_ahead(e);
    ahead(cell);
    if (e.hash == hash && e.by_digest == by_digest && e.name() == name) return &e;
  }
}

// A secret under one pepper.
struct KeyedSecret {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t version = kNone;
  Digest bytes{};
};

const std::string* pepper_of(const Peppers& known, std::uint32_t version) {
  const std::string* pepper = nullptr;
  for (const auto& [v, text] : known.list) pepper = v == version ? &text : pepper;
  return pepper;
}

Error bad_record(std::size_t index, const char* what) {
  return Error{Code::invalid_argument, "key record " + std::to_string(index) + ": " + what, kNoOffset};
}

using ShardDrafts = std::vector<std::vector<KeyDraft>>;

// A record's drafts: one by its public id, or one for each digest of the whole key.
Status add_drafts(const KeyRecord& r, std::size_t index, ShardDrafts& out) {
  const std::string_view key_id = r.key_id.empty() ? std::string_view{r.public_id} : std::string_view{r.key_id};
  if (r.public_id.size() > kMaxName || r.key_id.size() > 255 || r.team_id.size() > 255)
    return bad_record(index, "a name is too long (public_id 64, key_id and team_id 255 bytes)");
  if (key_id.empty()) return bad_record(index, "neither public_id nor key_id");
  if (r.public_id.find('-') != std::string::npos) return bad_record(index, "public_id contains a dash");
  if (r.digests.size() > kMaxDigests) return bad_record(index, "more than 16 digests");
  if (!r.revoked && r.digests.empty()) return bad_record(index, "no digest, and not revoked");
  const bool by_digest = r.public_id.empty();
  if (by_digest && r.digests.empty()) return bad_record(index, "revoked without public_id and digest: it names no key");
  for (const KeyDigest& d : r.digests) {
    if (static_cast<std::uint8_t>(d.kind) > static_cast<std::uint8_t>(KeyDigestKind::sha256_key))
      return bad_record(index, "unknown kind of digest");
    if (by_digest != (d.kind == KeyDigestKind::sha256_key))
      return bad_record(index, "digests of whole keys and a public_id exclude one another");
  }
  if (!by_digest) {
    const std::span<const KeyDigest> digests =
        r.revoked ? std::span<const KeyDigest>{} : std::span<const KeyDigest>{r.digests};
    const std::uint64_t hash = name_hash(r.public_id, false);
    out[shard_of(hash)].push_back({hash, r.public_id, key_id, r.team_id, r.version, r.revoked, false, false, digests});
    return {};
  }
  for (const KeyDigest& d : r.digests) {
    const std::string_view name = as_text(d.bytes);
    const std::uint64_t hash = name_hash(name, true);
    out[shard_of(hash)].push_back({hash, name, key_id, r.team_id, r.version, r.revoked, true, false,
                                   r.revoked ? std::span<const KeyDigest>{} : std::span<const KeyDigest>{&d, 1}});
  }
  return {};
}

}  // namespace

std::string_view key_verdict_name(KeyVerdict verdict) noexcept {
  static constexpr std::string_view kNames[] = {"accepted", "malformed", "unknown",   "wrong_secret", "not_yet_valid",
                                                "expired",  "revoked",   "stale_set", "no_pepper",    "no_digest"};
  const auto i = static_cast<std::size_t>(verdict);
  return i < std::size(kNames) ? kNames[i] : std::string_view{"other"};
}

int key_verdict_status(KeyVerdict verdict) noexcept {
  switch (verdict) {
    case KeyVerdict::accepted: return 200;
    case KeyVerdict::stale_set:
    case KeyVerdict::no_pepper:
    case KeyVerdict::no_digest: return 503;
    default: return 401;
  }
}

struct KeySet::Impl {
  explicit Impl(const KeySetOptions& o)
      : max_age(o.max_age.value),
        on_stale(o.on_stale),
        root(epochs, std::make_unique<KeyRoot>()),
        peppers(epochs, std::make_unique<Peppers>()) {}

  Status change(std::uint64_t generation, std::span<const KeyRecord> records, bool full);
  KeyVerdict prove(const KeyEntry& e, std::string_view secret, const Digest* whole_key, WallNanos now,
                   const Peppers& known, KeyedSecret& keyed) const;

  std::atomic<std::int64_t> max_age;
  std::atomic<StaleKeys> on_stale;
  mutable detail::EpochDomain epochs;
  detail::Snapshot<KeyRoot> root;
  detail::Snapshot<Peppers> peppers;
  std::mutex writers;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<std::int64_t> heard{std::numeric_limits<std::int64_t>::min()};
};

Status KeySet::Impl::change(std::uint64_t next_generation, std::span<const KeyRecord> records, bool full) {
  ShardDrafts by_shard(kKeyShards);
  if (records.size() > kKeyShards * 16) {  // shards are of about one size
    const std::size_t each = records.size() / kKeyShards;
    for (std::vector<KeyDraft>& drafts : by_shard) drafts.reserve(each + each / 8);
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (Status s = add_drafts(records[i], i, by_shard); !s) return s;
  }
  const KeyRoot& old = root.latest();
  std::size_t words = 0;
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < kKeyShards; ++i) {
    if (by_shard[i].empty() && (!full || !old.shards[i])) continue;
    if (!usage::merge_shard(old.shards[i].get(), by_shard[i], full))
      return Error{Code::invalid_argument, "key records: a key is named twice", kNoOffset};
    words += KeyShard::words(by_shard[i]);
    changed.push_back(i);
  }
  auto next = std::make_unique<KeyRoot>(old);
  const auto slab = std::make_shared<usage::KeySlab>(words);
  for (const std::size_t i : changed) next->put(i, std::make_shared<const KeyShard>(slab, by_shard[i]));
  next->generation = next_generation;
  root.publish(std::move(next));
  generation.store(next_generation, std::memory_order_release);
  return {};
}

// All digests that are of a known kind are compared, so that the time tells nothing of which one fits.
KeyVerdict KeySet::Impl::prove(const KeyEntry& e, std::string_view secret, const Digest* whole_key, WallNanos now,
                               const Peppers& known, KeyedSecret& keyed) const {
  if (e.revoked) return KeyVerdict::revoked;
  Digest plain{};
  bool have_plain = false;
  bool valid = false, early = false, late = false, no_pepper = false;
  for (const KeyDigest& d : e.digests()) {
    const Digest* mine = whole_key;
    if (d.kind == KeyDigestKind::sha256_secret) {
      if (!have_plain && !plain_sha256(secret, plain)) return KeyVerdict::no_digest;
      have_plain = true;
      mine = &plain;
    } else if (d.kind == KeyDigestKind::hmac_sha256) {
      const std::string* const pepper = pepper_of(known, d.pepper_version);
      if (pepper == nullptr) {
        no_pepper = true;
        continue;
      }
      if (keyed.version != d.pepper_version && !hmac_sha256(*pepper, secret, keyed.bytes)) return KeyVerdict::no_digest;
      keyed.version = d.pepper_version;
      mine = &keyed.bytes;
    }
    const bool same = CRYPTO_memcmp(mine->data(), d.bytes.data(), d.bytes.size()) == 0;
    early = early || (same && now < d.not_before);
    late = late || (same && now >= d.not_after);
    valid = valid || (same && now >= d.not_before && now < d.not_after);
  }
  if (valid) return KeyVerdict::accepted;
  if (early) return KeyVerdict::not_yet_valid;
  if (late) return KeyVerdict::expired;
  return no_pepper ? KeyVerdict::no_pepper : KeyVerdict::wrong_secret;
}

KeySet::KeySet(const KeySetOptions& options) : impl_(std::make_unique<Impl>(options)) {}
KeySet::~KeySet() = default;

Status KeySet::add_pepper(std::uint32_t version, std::string_view pepper) {
  if (pepper.size() < 16 || pepper.size() > 4'096)
    return Error{Code::invalid_argument, "pepper: 16 to 4096 bytes, random", kNoOffset};
  const std::lock_guard lock(impl_->writers);
  auto next = std::make_unique<Peppers>(impl_->peppers.latest());
  for (const auto& [known, text] : next->list) {
    if (known != version) continue;
    if (text == pepper) return {};
    return Error{Code::already_exists, "pepper " + std::to_string(version) + " is there and is another", kNoOffset};
  }
  next->list.emplace_back(version, pepper);
  impl_->peppers.publish(std::move(next));
  return {};
}

Status KeySet::replace(std::uint64_t generation, std::span<const KeyRecord> records, Nanos now) {
  const std::lock_guard lock(impl_->writers);
  if (generation <= impl_->root.latest().generation)
    return Error{Code::stale, "key snapshot " + std::to_string(generation) + " is not newer than what is here",
                 kNoOffset};
  if (Status s = impl_->change(generation, records, true); !s) return s;
  impl_->heard.store(now.value, std::memory_order_release);
  return {};
}

Status KeySet::apply(std::uint64_t base, std::uint64_t generation, std::span<const KeyRecord> changes, Nanos now) {
  const std::lock_guard lock(impl_->writers);
  const std::uint64_t here = impl_->root.latest().generation;
  if (base != here || generation <= here)
    return Error{Code::stale,
                 "key changes from generation " + std::to_string(base) + " do not fit " + std::to_string(here) +
                     ": send a full snapshot",
                 kNoOffset};
  if (Status s = impl_->change(generation, changes, false); !s) return s;
  impl_->heard.store(now.value, std::memory_order_release);
  return {};
}

Status KeySet::confirm(std::uint64_t generation, Nanos now) {
  const std::lock_guard lock(impl_->writers);
  if (generation != impl_->root.latest().generation)
    return Error{Code::stale, "control is at generation " + std::to_string(generation), kNoOffset};
  impl_->heard.store(now.value, std::memory_order_release);
  return {};
}

Status KeySet::roll_back(std::uint64_t from, std::uint64_t generation, std::span<const KeyRecord> records, Nanos now) {
  const std::lock_guard lock(impl_->writers);
  if (from != impl_->root.latest().generation)
    return Error{Code::stale, "keys are not at generation " + std::to_string(from) + ": nothing to roll back",
                 kNoOffset};
  if (Status s = impl_->change(generation, records, true); !s) return s;
  impl_->heard.store(now.value, std::memory_order_release);
  return {};
}

void KeySet::set_max_age(Nanos max_age, StaleKeys on_stale) noexcept {
  impl_->on_stale.store(on_stale, std::memory_order_relaxed);
  impl_->max_age.store(max_age.value, std::memory_order_relaxed);
}

Status KeySet::revoke(std::string_view public_id, std::uint64_t version) {
  const std::lock_guard lock(impl_->writers);
  if (public_id.empty()) return Error{Code::invalid_argument, "revoke: no public_id", kNoOffset};
  KeyRecord tombstone;
  tombstone.public_id = public_id;
  tombstone.version = version;
  tombstone.revoked = true;
  return impl_->change(impl_->root.latest().generation, {&tombstone, 1}, false);
}

KeyVerdict KeySet::check(std::string_view key, UsageTime now, KeyGrant& grant) const {
  if (key.empty() || key.size() > kMaxPresented) return KeyVerdict::malformed;
  const StaleKeys on_stale = impl_->on_stale.load(std::memory_order_relaxed);
  const bool is_stale = stale(now.steady);
  if (is_stale && on_stale == StaleKeys::refuse) return KeyVerdict::stale_set;
  const auto pin = impl_->epochs.pin();
  const KeyRoot& root = impl_->root.read(pin);
  const KeyParts parts = split_key(key);
  const bool shaped = !parts.public_id.empty() && parts.public_id.size() <= kMaxName && !parts.secret.empty();
  const Peppers& peppers = impl_->peppers.read(pin);
  const KeyEntry* found = nullptr;
  KeyedSecret keyed;
  if (shaped) {
    const std::uint64_t hash = name_hash(parts.public_id, false);
    found = find_key(root.places[shard_of(hash)], hash, parts.public_id, false, [&](std::uint64_t cell) {
      const unsigned version = KeyCell::pepper(cell);
      const std::string* const pepper = version == KeyCell::kNoPepper ? nullptr : pepper_of(peppers, version);
      if (pepper != nullptr && hmac_sha256(*pepper, parts.secret, keyed.bytes)) keyed.version = version;
    });
  }
  Digest whole{};
  if (found == nullptr && root.by_digest != 0) {
    if (!plain_sha256(key, whole)) return KeyVerdict::no_digest;
    const std::uint64_t hash = name_hash(as_text(whole), true);
    found = find_key(root.places[shard_of(hash)], hash, as_text(whole), true, [](std::uint64_t) {});
  }
  if (found == nullptr) return shaped || root.by_digest != 0 ? KeyVerdict::unknown : KeyVerdict::malformed;
  const KeyVerdict verdict = impl_->prove(*found, parts.secret, &whole, now.wall, peppers, keyed);
  if (verdict != KeyVerdict::accepted) return verdict;
  if (!found->was_seen()) {
    if (is_stale && on_stale == StaleKeys::refuse_new) return KeyVerdict::stale_set;
    if (!is_stale) found->mark_seen();
  }
  grant.key_id = found->key_id();
  grant.team_id = found->team_id();
  grant.version = found->version;
  grant.generation = root.generation;
  return verdict;
}

std::uint64_t KeySet::generation() const noexcept { return impl_->generation.load(std::memory_order_acquire); }

Nanos KeySet::age(Nanos now) const noexcept {
  const std::int64_t heard = impl_->heard.load(std::memory_order_acquire);
  if (heard == std::numeric_limits<std::int64_t>::min()) return Nanos{std::numeric_limits<std::int64_t>::max()};
  return now.value > heard ? Nanos{now.value - heard} : Nanos{0};
}

bool KeySet::stale(Nanos now) const noexcept {
  const Nanos most{impl_->max_age.load(std::memory_order_relaxed)};
  return most.value > 0 && age(now) > most;
}

std::size_t KeySet::size() const noexcept { return impl_->root.read(impl_->epochs.pin()).live; }
std::size_t KeySet::revoked() const noexcept { return impl_->root.read(impl_->epochs.pin()).revoked; }
std::size_t KeySet::heap_bytes() const noexcept {
  return sizeof(KeyRoot) + impl_->root.read(impl_->epochs.pin()).bytes;
}

Result<KeyDigest> key_digest(std::string_view key, KeyDigestKind kind, std::uint32_t pepper_version,
                             std::string_view pepper) {
  const std::string_view secret = split_key(key).secret;
  if (key.empty() || key.size() > kMaxPresented || (kind != KeyDigestKind::sha256_key && secret.empty()))
    return Error{Code::invalid_argument, "key_digest: no secret in the key", kNoOffset};
  if (kind == KeyDigestKind::hmac_sha256 && pepper.size() < 16)
    return Error{Code::invalid_argument, "key_digest: a pepper has 16 bytes or more", kNoOffset};
  KeyDigest out;
  out.kind = kind;
  out.pepper_version = kind == KeyDigestKind::hmac_sha256 ? pepper_version : 0;
  bool made = false;
  switch (kind) {
    case KeyDigestKind::hmac_sha256: made = hmac_sha256(pepper, secret, out.bytes); break;
    case KeyDigestKind::sha256_secret: made = plain_sha256(secret, out.bytes); break;
    case KeyDigestKind::sha256_key: made = plain_sha256(key, out.bytes); break;
  }
  if (!made) return Error{Code::internal, "key_digest: OpenSSL gives no digest", kNoOffset};
  return out;
}

}  // namespace warmroute
