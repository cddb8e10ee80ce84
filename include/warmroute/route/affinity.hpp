/// Session affinity: which replica a conversation was sent to last. A bonus in the cost, never a pin: load can overcome it.
/// A fixed table of 8-byte pairs, oldest entry of a set goes first; nothing grows with the number of sessions.
/// Sessions are keyed by a 64-bit hash over pool, tenant and the exact session string ("session-1" is not "session-12").
/// threads: any; readers and writers never wait. A torn pair (two writers of one entry at once) is detected and reads as a miss.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <string_view>

#include "warmroute/detail/xxh3.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// returns: the session's key; 0 for no session.
inline std::uint64_t session_key(std::string_view session, std::string_view tenant, std::string_view pool) noexcept {
  if (session.empty()) return 0;
  const std::uint64_t scope = XXH3_64bits_withSeed(tenant.data(), tenant.size(), XXH3_64bits(pool.data(), pool.size()));
  const std::uint64_t key = XXH3_64bits_withSeed(session.data(), session.size(), scope);
  return key == 0 ? 1 : key;
}

class SessionTable {
 public:
  /// alloc: 16 bytes per entry, once; `entries` is rounded up to a power of two, at least 8.
  explicit SessionTable(std::size_t entries = 1u << 16)
      : mask_(std::bit_ceil(entries < kWays ? kWays : entries) - 1), table_(std::make_unique<Entry[]>(mask_ + 1)) {}

  /// returns: where the session was last sent, or kNoReplica. `key` 0 finds nothing.
  [[nodiscard]] ReplicaId find(std::uint64_t key, Nanos now, Nanos ttl) const noexcept {
    if (key == 0) return kNoReplica;
    const std::size_t base = set_of(key);
    for (std::size_t way = 0; way < kWays; ++way) {
      const Entry& e = table_[base + way];
      const std::uint64_t value = e.value.load(std::memory_order_acquire);
      if (value == 0 || e.check.load(std::memory_order_acquire) != (key ^ value)) continue;
      if (age_seconds(value, now) > ttl.value / kSecond) return kNoReplica;
      return {static_cast<std::uint32_t>(value >> 48), static_cast<std::uint32_t>((value >> 32) & 0xFFFF)};
    }
    return kNoReplica;
  }
  /// Remembers slot (16 bits) and the low 16 bits of the generation; callers compare them with `same_replica`.
  void remember(std::uint64_t key, ReplicaId replica, Nanos now) noexcept {
    if (key == 0 || replica.slot > 0xFFFF) return;
    const std::size_t base = set_of(key);
    std::size_t victim = base;
    std::int64_t oldest_age = -1;
    for (std::size_t way = 0; way < kWays; ++way) {
      const std::uint64_t value = table_[base + way].value.load(std::memory_order_relaxed);
      if (value == 0 || table_[base + way].check.load(std::memory_order_relaxed) == (key ^ value)) {
        victim = base + way;
        break;
      }
      const std::int64_t age = age_seconds(value, now);
      if (age > oldest_age) {
        oldest_age = age;
        victim = base + way;
      }
    }
    const std::uint64_t value =
        (std::uint64_t{replica.slot} << 48) | (std::uint64_t{replica.generation & 0xFFFF} << 32) | seconds_of(now);
    table_[victim].value.store(value, std::memory_order_release);
    table_[victim].check.store(key ^ value, std::memory_order_release);
  }
  static constexpr bool same_replica(ReplicaId remembered, ReplicaId candidate) noexcept {
    return remembered.slot == candidate.slot && remembered.generation == (candidate.generation & 0xFFFF);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> value{
        0};  // slot 16 | generation 16 | seconds 32; generations start at 1, so 0 is "empty"
    std::atomic<std::uint64_t> check{0};  // key ^ value
  };
  static constexpr std::size_t kWays = 4;
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static std::uint32_t seconds_of(Nanos t) noexcept { return static_cast<std::uint32_t>(t.value / kSecond); }
  // Another thread's entry may be a moment younger than this thread's now.
  static std::int64_t age_seconds(std::uint64_t value, Nanos now) noexcept {
    const auto age = static_cast<std::int32_t>(seconds_of(now) - static_cast<std::uint32_t>(value));
    return age < 0 ? 0 : age;
  }
  [[nodiscard]] std::size_t set_of(std::uint64_t key) const noexcept { return (key & mask_) & ~(kWays - 1); }

  std::size_t mask_;
  std::unique_ptr<Entry[]> table_;
};

}  // namespace warmroute
