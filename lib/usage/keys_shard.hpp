// How a set of keys lies in memory: an immutable root of 1,024 immutable shards; a change copies the shards it touches and the
// root. A shard is a table of positions and one store of words: about 140 bytes a key. All shards of one change lie in one
// slab, of huge pages where it is large. Private to lib.
#pragma once

#include <openssl/crypto.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "warmroute/usage/keys.hpp"

namespace warmroute::usage {

inline constexpr std::size_t kKeyShards = 1'024;

// The head of one key in a shard's store; its digests follow, then lookup name, key_id and team_id, padded to 8 bytes.
// All of a key lies together: of a million keys nothing is in a cache, and two lines side by side cost one wait.
struct KeyEntry {
  std::uint64_t hash = 0;
  std::uint64_t version = 0;
  std::uint8_t name_size = 0;
  std::uint8_t key_size = 0;
  std::uint8_t team_size = 0;
  std::uint8_t digest_count = 0;
  bool revoked = false;
  bool by_digest = false;  // the lookup name is a digest of the whole key
  // Was accepted while the set was fresh. The one byte that readers write, through atomic_ref. A mark made while a change
  // copies the shard may be lost: it comes again with the key's next request.
  std::uint8_t seen = 0;

  bool was_seen() const {
    return std::atomic_ref<std::uint8_t>(const_cast<KeyEntry*>(this)->seen).load(std::memory_order_relaxed);
  }
  void mark_seen() const {
    std::atomic_ref<std::uint8_t>(const_cast<KeyEntry*>(this)->seen).store(1, std::memory_order_relaxed);
  }

  std::span<const KeyDigest> digests() const {
    return {reinterpret_cast<const KeyDigest*>(this + 1), std::size_t{digest_count}};
  }
  std::string_view name() const { return {text(), name_size}; }
  std::string_view key_id() const { return {text() + name_size, key_size}; }
  std::string_view team_id() const { return {text() + name_size + key_size, team_size}; }
  std::size_t words() const {
    return (sizeof *this + digest_count * sizeof(KeyDigest) + name_size + key_size + team_size + 7) / 8;
  }
  const char* text() const { return reinterpret_cast<const char*>(this + 1) + digest_count * sizeof(KeyDigest); }
};
static_assert(std::is_trivially_copyable_v<KeyEntry> && std::is_trivially_copyable_v<KeyDigest>);
static_assert(sizeof(KeyEntry) % 8 == 0 && sizeof(KeyDigest) % 8 == 0);

// A cell of a shard's table: 28 bits of the hash, which pepper the key's first digest wants, and where the key is.
// With the pepper at hand the digest is computed while the key's own lines are on their way: of a million keys that is one
// wait for memory less, the longer one.
struct KeyCell {
  static constexpr unsigned kNoPepper = 15;  // another kind of digest, or a version above 14
  static std::uint64_t make(std::uint64_t hash, unsigned pepper, std::size_t word) {
    return (hash >> 36) << 36 | std::uint64_t{pepper} << 32 | (word + 1);
  }
  static bool may_be(std::uint64_t cell, std::uint64_t hash) { return cell >> 36 == hash >> 36; }
  static unsigned pepper(std::uint64_t cell) { return static_cast<unsigned>(cell >> 32) & 15; }
  static std::size_t word(std::uint64_t cell) { return static_cast<std::size_t>(cell & 0xffff'ffff) - 1; }
};

// Memory of the shards of one change. Of a million keys the look-up is what memory makes of it: with pages of 4 KiB each line
// that is not in a cache costs a walk through the page tables beside it, in a virtual machine through two.
class KeySlab {
 public:
  explicit KeySlab(std::size_t words);
  KeySlab(const KeySlab&) = delete;
  KeySlab& operator=(const KeySlab&) = delete;
  ~KeySlab();

  // The next words, zero. Together no more than there are.
  std::span<std::uint64_t> take(std::size_t words) noexcept;
  // Nobody reads these any more: the system gets their pages.
  void drop(std::span<std::uint64_t> words) const noexcept;

 private:
  std::unique_ptr<std::uint64_t[]> small_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::uint64_t* next_ = nullptr;
};

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

class KeyShard {
 public:
  // The words that a shard of these needs.
  static std::size_t words(std::span<const KeyDraft> drafts) noexcept;
  KeyShard(std::shared_ptr<KeySlab> slab, std::span<const KeyDraft> drafts);
  KeyShard(const KeyShard&) = delete;
  KeyShard& operator=(const KeyShard&) = delete;
  ~KeyShard() { slab_->drop(all_); }

  // Open addressing in a power of two, at most half full; 0: nothing there.
  [[nodiscard]] std::span<const std::uint64_t> table() const noexcept { return all_.first(table_size_); }
  [[nodiscard]] std::span<const std::uint64_t> store() const noexcept { return all_.subspan(table_size_); }
  [[nodiscard]] const KeyEntry& at(std::size_t word) const noexcept {
    return *reinterpret_cast<const KeyEntry*>(store().data() + word);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return sizeof *this + all_.size_bytes(); }

  std::size_t count = 0;
  std::size_t revoked = 0;
  std::size_t by_digest = 0;

 private:
  std::shared_ptr<KeySlab> slab_;
  std::span<std::uint64_t> all_;
  std::size_t table_size_ = 0;
};

// Drafts of a shard beside what it held. `full`: others go, but for tombstones. returns: false: a key is named twice.
bool merge_shard(const KeyShard* old, std::vector<KeyDraft>& fresh, bool full);

// What a look-up needs of a shard, side by side.
struct KeyPlace {
  const std::uint64_t* table = nullptr;  // nullptr: no keys
  const std::uint64_t* store = nullptr;
  std::size_t mask = 0;
};

struct KeyRoot {
  std::uint64_t generation = 0;
  std::size_t live = 0;
  std::size_t revoked = 0;
  std::size_t by_digest = 0;
  std::size_t bytes = 0;
  std::array<KeyPlace, kKeyShards> places;
  std::array<std::shared_ptr<const KeyShard>, kKeyShards> shards;

  void put(std::size_t i, std::shared_ptr<const KeyShard> shard);
};

struct Peppers {
  std::vector<std::pair<std::uint32_t, std::string>> list;

  Peppers() = default;
  Peppers(const Peppers&) = default;
  Peppers& operator=(const Peppers&) = delete;
  ~Peppers() {
    for (auto& [version, pepper] : list) OPENSSL_cleanse(pepper.data(), pepper.size());
  }
};

}  // namespace warmroute::usage
