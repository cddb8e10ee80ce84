// The set is an immutable root of 1,024 immutable shards; a change copies the shards it touches and the root. A shard is a
// table of positions and one store of words: about 150 bytes a key.
#include "warmroute/usage/keys.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "usage/keys_shard.hpp"
#include "warmroute/detail/epoch.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute {

namespace {

using usage::KeyEntry;
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
  __builtin_prefetch(reinterpret_cast<const char*>(&entry) + 64);
  __builtin_prefetch(reinterpret_cast<const char*>(&entry) + 128);
#endif
}

const KeyEntry* find_key(const KeyShard* shard, std::uint64_t hash, std::string_view name, bool by_digest) {
  if (shard == nullptr || shard->table.empty()) return nullptr;
  const std::size_t mask = shard->table.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const std::uint64_t cell = shard->table[i];
    if (cell == 0) return nullptr;
    if ((cell >> 32) != (hash >> 32)) continue;
    const KeyEntry& e = shard->at((cell & 0xffff'ffff) - 1);
    fetch_ahead(e);
    if (e.hash == hash && e.by_digest == by_digest && e.name() == name) return &e;
  }
}

// One key on its way into a shard: of a record, or copied from the shard that is replaced.
struct KeyDraft {
  std::uint64_t hash = 0;
  std::string_view name;
  std::string_view key_id;
  std::string_view team_id;
  std::uint64_t version = 0;
  bool revoked = false;
  bool by_digest = false;
  bool seen = false;
  std::span<const KeyDigest> digests;
};

KeyDraft draft_of(const KeyEntry& e) {
  return {e.hash, e.name(), e.key_id(), e.team_id(), e.version, e.revoked, e.by_digest, e.was_seen(), e.digests()};
}

void append_entry(KeyShard& shard, const KeyDraft& d) {
  const KeyEntry e{d.hash,
                   d.version,
                   static_cast<std::uint8_t>(d.name.size()),
                   static_cast<std::uint8_t>(d.key_id.size()),
                   static_cast<std::uint8_t>(d.team_id.size()),
                   static_cast<std::uint8_t>(d.digests.size()),
                   d.revoked,
                   d.by_digest,
                   static_cast<std::uint8_t>(d.seen)};
  const std::size_t word = shard.store.size();
  shard.store.resize(word + e.words());
  char* to = reinterpret_cast<char*>(shard.store.data() + word);
  const auto put = [&to](const void* bytes, std::size_t size) {
    if (size != 0) std::memcpy(to, bytes, size);
    to += size;
  };
  put(&e, sizeof e);
  put(d.digests.data(), d.digests.size_bytes());
  for (const std::string_view text : {d.name, d.key_id, d.team_id}) put(text.data(), text.size());
}

std::shared_ptr<const KeyShard> build_shard(std::span<const KeyDraft> drafts) {
  auto shard = std::make_shared<KeyShard>();
  std::size_t words = 0;
  for (const KeyDraft& d : drafts) {
    words += (sizeof(KeyEntry) + d.digests.size_bytes() + d.name.size() + d.key_id.size() + d.team_id.size() + 7) / 8;
  }
  shard->store.reserve(words);
  shard->count = drafts.size();
  std::size_t size = 4;
  while (size < drafts.size() * 2) size *= 2;
  shard->table.assign(size, 0);
  for (const KeyDraft& d : drafts) {
    std::size_t i = d.hash & (size - 1);
    while (shard->table[i] != 0) i = (i + 1) & (size - 1);
    shard->table[i] = (d.hash >> 32) << 32 | (shard->store.size() + 1);
    append_entry(*shard, d);
    shard->revoked += d.revoked ? 1 : 0;
    shard->by_digest += d.by_digest ? 1 : 0;
  }
  return shard;
}

std::size_t shard_bytes(const KeyShard& s) {
  return sizeof s + (s.table.capacity() + s.store.capacity()) * sizeof(std::uint64_t);
}

void count_shard(KeyRoot& root, const KeyShard& s, bool add) {
  const auto change = [add](std::size_t& sum, std::size_t n) { sum = add ? sum + n : sum - n; };
  change(root.live, s.count - s.revoked);
  change(root.revoked, s.revoked);
  change(root.by_digest, s.by_digest);
  change(root.bytes, shard_bytes(s));
}

Error bad_record(std::size_t index, const char* what) {
  return Error{Code::invalid_argument, "key record " + std::to_string(index) + ": " + what, kNoOffset};
}

// A record's drafts: one by its public id, or one for each digest of the whole key.
Status add_drafts(const KeyRecord& r, std::size_t index, std::vector<KeyDraft>& out) {
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
    out.push_back(
        {name_hash(r.public_id, false), r.public_id, key_id, r.team_id, r.version, r.revoked, false, false, digests});
    return {};
  }
  for (const KeyDigest& d : r.digests) {
    const std::string_view name = as_text(d.bytes);
    out.push_back({name_hash(name, true), name, key_id, r.team_id, r.version, r.revoked, true, false,
                   r.revoked ? std::span<const KeyDigest>{} : std::span<const KeyDigest>{&d, 1}});
  }
  return {};
}

bool same_name(const KeyDraft& a, const KeyDraft& b) {
  return a.hash == b.hash && a.by_digest == b.by_digest && a.name == b.name;
}

// Drafts of a shard beside what it held. `full`: others go, but for tombstones. returns: false: a key is named twice.
bool merge_shard(const KeyShard* old, std::vector<KeyDraft>& fresh, bool full) {
  std::vector<KeyDraft> result;
  result.reserve(fresh.size() + (old == nullptr ? 0 : old->count));
  std::vector<std::uint32_t> table(4, 0);
  while (table.size() < fresh.size() * 2) table.resize(table.size() * 2);
  const std::size_t mask = table.size() - 1;
  const auto place = [&](const KeyDraft& d) {
    std::size_t i = d.hash & mask;
    while (table[i] != 0 && !same_name(fresh[table[i] - 1], d)) i = (i + 1) & mask;
    return i;
  };
  for (std::uint32_t n = 0; n < fresh.size(); ++n) {
    const std::size_t i = place(fresh[n]);
    if (table[i] != 0) return false;
    table[i] = n + 1;
  }
  if (old != nullptr) {
    for (std::size_t word = 0; word < old->store.size(); word += old->at(word).words()) {
      const KeyEntry& e = old->at(word);
      const KeyDraft held = draft_of(e);
      const std::size_t i = place(held);
      if (table[i] == 0) {
        if (!full || e.revoked) result.push_back(held);
        continue;
      }
      KeyDraft& offered = fresh[table[i] - 1];
      offered.seen = held.seen;
      if (e.revoked) {  // a tombstone yields to what is newer only, and never if it is for ever
        const bool newer = offered.version > e.version;
        if (!newer) offered = held;
      } else if (!full) {
        // An older fill, or a revocation of what was issued anew since.
        const bool older = offered.revoked ? offered.version < e.version : offered.version <= e.version;
        if (older) offered = held;
      }
    }
  }
  result.insert(result.end(), fresh.begin(), fresh.end());
  fresh = std::move(result);
  return true;
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
                   const Peppers& known) const;

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
  std::vector<KeyDraft> drafts;
  drafts.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (Status s = add_drafts(records[i], i, drafts); !s) return s;
  }
  std::vector<std::vector<KeyDraft>> by_shard(kKeyShards);
  for (const KeyDraft& d : drafts) by_shard[shard_of(d.hash)].push_back(d);
  const KeyRoot& old = root.latest();
  auto next = std::make_unique<KeyRoot>(old);
  for (std::size_t i = 0; i < kKeyShards; ++i) {
    if (by_shard[i].empty() && (!full || !old.shards[i])) continue;
    if (!merge_shard(old.shards[i].get(), by_shard[i], full))
      return Error{Code::invalid_argument, "key records: a key is named twice", kNoOffset};
    if (old.shards[i]) count_shard(*next, *old.shards[i], false);
    next->shards[i] = build_shard(by_shard[i]);
    count_shard(*next, *next->shards[i], true);
  }
  next->generation = next_generation;
  root.publish(std::move(next));
  generation.store(next_generation, std::memory_order_release);
  return {};
}

// All digests that are of a known kind are compared, so that the time tells nothing of which one fits.
KeyVerdict KeySet::Impl::prove(const KeyEntry& e, std::string_view secret, const Digest* whole_key, WallNanos now,
                               const Peppers& known) const {
  if (e.revoked) return KeyVerdict::revoked;
  Digest plain{};
  bool have_plain = false;
  Digest keyed{};
  std::uint64_t keyed_version = ~std::uint64_t{0};
  bool valid = false, early = false, late = false, no_pepper = false;
  for (const KeyDigest& d : e.digests()) {
    const Digest* mine = whole_key;
    if (d.kind == KeyDigestKind::sha256_secret) {
      if (!have_plain && !plain_sha256(secret, plain)) return KeyVerdict::no_digest;
      have_plain = true;
      mine = &plain;
    } else if (d.kind == KeyDigestKind::hmac_sha256) {
      const std::string* pepper = nullptr;
      for (const auto& [version, text] : known.list) pepper = version == d.pepper_version ? &text : pepper;
      if (pepper == nullptr) {
        no_pepper = true;
        continue;
      }
      if (keyed_version != d.pepper_version && !hmac_sha256(*pepper, secret, keyed)) return KeyVerdict::no_digest;
      keyed_version = d.pepper_version;
      mine = &keyed;
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
  const KeyShard* shard = nullptr;
  const KeyEntry* found = nullptr;
  if (shaped) {
    const std::uint64_t hash = name_hash(parts.public_id, false);
    shard = root.shards[shard_of(hash)].get();
    found = find_key(shard, hash, parts.public_id, false);
  }
  Digest whole{};
  if (found == nullptr && root.by_digest != 0) {
    if (!plain_sha256(key, whole)) return KeyVerdict::no_digest;
    const std::uint64_t hash = name_hash(as_text(whole), true);
    shard = root.shards[shard_of(hash)].get();
    found = find_key(shard, hash, as_text(whole), true);
  }
  if (found == nullptr) return shaped || root.by_digest != 0 ? KeyVerdict::unknown : KeyVerdict::malformed;
  const KeyVerdict verdict = impl_->prove(*found, parts.secret, &whole, now.wall, impl_->peppers.read(pin));
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
