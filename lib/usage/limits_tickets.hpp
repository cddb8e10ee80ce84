// Open reservations, and the limits of one request. Private to lib.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "usage/limits_state.hpp"

namespace warmroute::usage {

inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
inline constexpr std::size_t kTicketShards = 64;
inline constexpr std::size_t kScopeChunk = 256;
inline constexpr std::size_t kScopeChunks = 16'384;

struct Reservation {
  std::uint32_t generation = 1;
  bool open = false;
  std::uint8_t count = 0;
  std::uint32_t before = kNoSlot;  // in the order of leases; of a free one, the next free
  std::uint32_t after = kNoSlot;
  std::int64_t lease_end = 0;
  LimitUse estimate;
  std::array<LimitCharge, kMaxLimitsPerRequest> charges;
};

struct alignas(64) TicketShard {
  SpinLock lock;
  std::int64_t latest = 0;
  std::deque<Reservation> slots;
  std::uint32_t free = kNoSlot;
  std::uint32_t oldest = kNoSlot;
  std::uint32_t newest = kNoSlot;
  std::size_t open = 0;
  std::atomic<std::uint64_t> allowed{0};
  std::atomic<std::uint64_t> denied{0};
  std::atomic<std::uint64_t> shadow_denied{0};
  std::atomic<std::uint64_t> expired{0};
  std::atomic<std::uint64_t> stale{0};

  void unlink(std::uint32_t slot) {
    Reservation& r = slots[slot];
    (r.before == kNoSlot ? oldest : slots[r.before].after) = r.after;
    (r.after == kNoSlot ? newest : slots[r.after].before) = r.before;
  }
  void append(std::uint32_t slot) {
    Reservation& r = slots[slot];
    r.before = newest;
    r.after = kNoSlot;
    (newest == kNoSlot ? oldest : slots[newest].after) = slot;
    newest = slot;
  }
  void close(std::uint32_t slot) {
    unlink(slot);
    Reservation& r = slots[slot];
    r.open = false;
    r.generation += r.generation == 0xffff'ffff ? 2 : 1;  // never 0
    r.after = free;
    free = slot;
    --open;
  }
};

// The limits of one request, gathered under the locks of their scopes.
struct LimitRequest {
  std::array<LimitScope*, kMaxScopesPerRequest> scopes;
  std::size_t scope_count = 0;
  std::array<LimitState*, kMaxLimitsPerRequest> limits;
  std::array<std::int64_t, kMaxLimitsPerRequest> amounts;
  std::size_t limit_count = 0;

  void lock() {
    for (std::size_t i = 0; i < scope_count; ++i) scopes[i]->lock.lock();
  }
  void unlock() {
    for (std::size_t i = scope_count; i-- > 0;) scopes[i]->lock.unlock();
  }
};

}  // namespace warmroute::usage
