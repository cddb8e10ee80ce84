// How a set of keys lies in memory: an immutable root of 1,024 immutable shards; a change copies the shards it touches and the
// root. A shard is a table of positions and one store of words: about 140 bytes a key. Private to lib.
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

struct KeyShard {
  // Open addressing: the upper half of the hash, position in the store + 1 in the lower one; a power of two, at most half
  // full.
  std::vector<std::uint64_t> table;
  std::vector<std::uint64_t> store;
  std::size_t count = 0;
  std::size_t revoked = 0;
  std::size_t by_digest = 0;

  const KeyEntry& at(std::size_t word) const { return *reinterpret_cast<const KeyEntry*>(store.data() + word); }
};

struct KeyRoot {
  std::uint64_t generation = 0;
  std::size_t live = 0;
  std::size_t revoked = 0;
  std::size_t by_digest = 0;
  std::size_t bytes = 0;
  std::array<std::shared_ptr<const KeyShard>, kKeyShards> shards;
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
