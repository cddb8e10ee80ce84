// See keys_shard.hpp.
#include "usage/keys_shard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace warmroute::usage {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// What a key's cell says of its pepper.
unsigned first_pepper(std::span<const KeyDigest> digests) {
  if (digests.empty() || digests.front().kind != KeyDigestKind::hmac_sha256) return KeyCell::kNoPepper;
  return std::min<unsigned>(digests.front().pepper_version, KeyCell::kNoPepper);
}

std::size_t words_of(const KeyDraft& d) noexcept {
  return (sizeof(KeyEntry) + d.digests.size_bytes() + d.name.size() + d.key_id.size() + d.team_id.size() + 7) / 8;
}

std::size_t table_size(std::size_t keys) noexcept {
  std::size_t size = 4;
  while (size < keys * 2) size *= 2;
  return size;
}

KeyDraft draft_of(const KeyEntry& e) {
  return {e.hash, e.name(), e.key_id(), e.team_id(), e.version, e.revoked, e.by_digest, e.was_seen(), e.digests()};
}

void write_entry(std::uint64_t* at, const KeyDraft& d) {
  const KeyEntry e{d.hash,
                   d.version,
                   static_cast<std::uint8_t>(d.name.size()),
                   static_cast<std::uint8_t>(d.key_id.size()),
                   static_cast<std::uint8_t>(d.team_id.size()),
                   static_cast<std::uint8_t>(d.digests.size()),
                   d.revoked,
                   d.by_digest,
                   static_cast<std::uint8_t>(d.seen)};
  char* to = reinterpret_cast<char*>(at);
  const auto put = [&to](const void* bytes, std::size_t size) {
    if (size != 0) std::memcpy(to, bytes, size);
    to += size;
  };
  put(&e, sizeof e);
  put(d.digests.data(), d.digests.size_bytes());
  for (const std::string_view text : {d.name, d.key_id, d.team_id}) put(text.data(), text.size());
}

bool same_name(const KeyDraft& a, const KeyDraft& b) {
  return a.hash == b.hash && a.by_digest == b.by_digest && a.name == b.name;
}

}  // namespace

KeySlab::KeySlab(std::size_t words) {
  const std::size_t bytes = words * sizeof(std::uint64_t);
  if (bytes >= kHugePage) {
    mapped_bytes_ = bytes + kHugePage;  // to begin at a huge page
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) mapped_ = nullptr;
  }
  if (mapped_ == nullptr) {
    small_ = std::make_unique<std::uint64_t[]>(words);
    next_ = small_.get();
    return;
  }
  char* const begin = static_cast<char*>(mapped_);
  const std::size_t skip = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  next_ = reinterpret_cast<std::uint64_t*>(begin + skip);
#ifdef MADV_HUGEPAGE
  static_cast<void>(madvise(next_, bytes, MADV_HUGEPAGE));  // where the system has none, pages are small
#endif
}

KeySlab::~KeySlab() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

std::span<std::uint64_t> KeySlab::take(std::size_t words) noexcept {
  const std::span<std::uint64_t> taken(next_, words);
  next_ += words;
  return taken;
}

void KeySlab::drop(std::span<std::uint64_t> words) const noexcept {
  if (mapped_ == nullptr) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  char* const begin = reinterpret_cast<char*>(words.data());
  const std::size_t skip = (page - reinterpret_cast<std::uintptr_t>(begin) % page) % page;
  if (words.size_bytes() <= skip) return;
  const std::size_t whole = (words.size_bytes() - skip) / page * page;
  if (whole != 0) static_cast<void>(madvise(begin + skip, whole, MADV_DONTNEED));
}

std::size_t KeyShard::words(std::span<const KeyDraft> drafts) noexcept {
  std::size_t words = table_size(drafts.size());
  for (const KeyDraft& d : drafts) words += words_of(d);
  return words;
}

KeyShard::KeyShard(std::shared_ptr<KeySlab> slab, std::span<const KeyDraft> drafts)
    : count(drafts.size()), slab_(std::move(slab)), all_(slab_->take(words(drafts))), table_size_(table_size(count)) {
  const std::size_t mask = table_size_ - 1;
  std::size_t word = 0;
  for (const KeyDraft& d : drafts) {
    std::size_t i = d.hash & mask;
    while (all_[i] != 0) i = (i + 1) & mask;
    all_[i] = KeyCell::make(d.hash, first_pepper(d.digests), word);
    write_entry(all_.data() + table_size_ + word, d);
    word += words_of(d);
    revoked += d.revoked ? 1 : 0;
    by_digest += d.by_digest ? 1 : 0;
  }
}

void KeyRoot::put(std::size_t i, std::shared_ptr<const KeyShard> shard) {
  const auto count = [this](const KeyShard& s, bool add) {
    const auto change = [add](std::size_t& sum, std::size_t n) { sum = add ? sum + n : sum - n; };
    change(live, s.count - s.revoked);
    change(revoked, s.revoked);
    change(by_digest, s.by_digest);
    change(bytes, s.bytes());
  };
  if (shards[i]) count(*shards[i], false);
  shards[i] = std::move(shard);
  count(*shards[i], true);
  places[i] = {shards[i]->table().data(), shards[i]->store().data(), shards[i]->table().size() - 1};
}

bool merge_shard(const KeyShard* old, std::vector<KeyDraft>& fresh, bool full) {
  std::vector<KeyDraft> stays;
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
    for (std::size_t word = 0; word < old->store().size(); word += old->at(word).words()) {
      const KeyEntry& e = old->at(word);
      const KeyDraft held = draft_of(e);
      const std::size_t i = place(held);
      if (table[i] == 0) {
        if (!full || e.revoked) stays.push_back(held);
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
  fresh.insert(fresh.end(), stays.begin(), stays.end());
  return true;
}

}  // namespace warmroute::usage
