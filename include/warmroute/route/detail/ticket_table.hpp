/// The tickets in flight: fixed slots in slabs, a lock-free free list, and a state word that lets each step happen once.
/// Invariant: between `acquire` and the one `close` that wins, a slot belongs to its ticket; it is handed out again only when
/// both the caller and the placement queue have let go. Generations tell a late call from a current one.
/// Does not: know what a ticket's load means; the router books and releases it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "warmroute/route/detail/inflight_prefixes.hpp"
#include "warmroute/route/detail/replica_pace.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

struct PoolState;

/// One request in flight. Plain fields belong to whoever holds the phase (see TicketTable).
struct TicketSlot {
  std::atomic<std::uint64_t> state{0};  // generation << 8 | phase
  std::atomic<std::int64_t> lease_until{0};
  std::atomic<std::uint32_t> holders{0};  // the caller, and the placement queue while it refers to `path`
  std::atomic<std::uint32_t> next_free{0};

  std::uint32_t index = 0;  // its place in the table, for ever
  PoolState* pool = nullptr;
  ReplicaId replica;                      // where the prompt is computed
  ReplicaId decode_replica = kNoReplica;  // of a pair; then `replica` holds its KV until it is fetched
  bool prefill_over = false;              // the prefill work at `replica` is released,
  bool fetched = false;                   // and, of a pair, the rest there too
  bool decode_keeps = false;              // of a pair: what is fetched stays in the decode replica's cache
  std::int64_t decode_cached_tokens = 0;  // of a pair, predicted
  std::int64_t prefilled_at = 0;
  std::int64_t transfer_timeout_ns = 0;
  std::int64_t lease_end = 0;  // while a transfer's time-out stands in lease_until
  std::int64_t input_tokens = 0;
  std::int64_t cached_tokens = 0;    // predicted
  std::int64_t shared_tokens = 0;    // leading tokens that another request in flight had too, at routing time
  std::int64_t uncached_tokens = 0;  // booked as pending until the first token
  std::int64_t pending_ns = 0;
  std::int64_t expected_wait_ns = 0;
  std::int64_t prompt_bytes = -1;
  std::int64_t saved_ns = 0;  // prefill time that the predicted hit does not need
  std::int64_t routed_at = 0;
  std::int64_t lease_ns = 0;
  std::uint64_t hash_rule = 0;              // how `path` is hashed, see hash_rule_of
  std::int64_t tokens_per_block_milli = 0;  // tokens per block of `path`, in thousandths
  std::uint32_t hot_count = 0;
  std::array<std::uint32_t, kMaxCheckpoints> hot_entries{};
  bool keeps_slots = false;         // its replica does (CacheKind::slots)
  bool computed = true;             // how it ended, for a replica that keeps slots: its prompt was computed there,
  std::int64_t really_cached = -1;  // and so many tokens of it were found
  std::int64_t held_after = 0;      // tokens of prompt and answer
  PaceNote pace;                    // what is learned of it
  std::vector<BlockHash> path;      // keeps its capacity from ticket to ticket
};

enum class TicketPhase : std::uint8_t { free = 0, filling = 1, prefill = 2, decode = 3, busy = 4 };

class TicketTable {
 public:
  static constexpr std::size_t kSlab = 256;

  explicit TicketTable(std::size_t max_tickets)
      : max_slabs_((max_tickets + kSlab - 1) / kSlab),
        slabs_(std::make_unique<std::atomic<TicketSlot*>[]>(max_slabs_)) {}
  TicketTable(const TicketTable&) = delete;
  TicketTable& operator=(const TicketTable&) = delete;
  ~TicketTable() {
    for (std::size_t i = 0; i < max_slabs_; ++i) delete[] slabs_[i].load(std::memory_order_relaxed);
  }

  /// returns: a slot in phase `filling`, or kFull. alloc: a slab of 256 when all known slots are taken.
  static constexpr std::uint32_t kFull = ~std::uint32_t{0};
  std::uint32_t acquire() {
    while (true) {
      std::uint64_t head = free_.load(std::memory_order_acquire);
      while (static_cast<std::uint32_t>(head) != 0) {
        const auto index = static_cast<std::uint32_t>(head) - 1;
        const std::uint64_t next = ((head >> 32) + 1) << 32 | at(index).next_free.load(std::memory_order_relaxed);
        if (free_.compare_exchange_weak(head, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
          TicketSlot& slot = at(index);
          const std::uint64_t generation = (slot.state.load(std::memory_order_relaxed) >> 8) + 1;
          slot.state.store(word(generation, TicketPhase::filling), std::memory_order_relaxed);
          slot.holders.store(1, std::memory_order_relaxed);
          slot.hot_count = 0;
          return index;
        }
      }
      if (!grow()) return kFull;
    }
  }

  /// Makes a filled slot visible to first_token, finish, fail and the lease sweep. returns: its ticket.
  Ticket publish(std::uint32_t index) noexcept {
    TicketSlot& slot = at(index);
    const std::uint64_t generation = slot.state.load(std::memory_order_relaxed) >> 8;
    slot.state.store(word(generation, TicketPhase::prefill), std::memory_order_release);
    return static_cast<Ticket>(((generation & 0xFFFFFFFF) << 32) | (index + 1));
  }

  /// Takes the ticket out of `from_prefill_only ? prefill : prefill or decode` into `busy`. The caller then owns its plain fields
  /// until `set_phase` or `release`. returns: nullptr for a late, double or foreign ticket. Two calls on one ticket at the same
  /// moment wait for one another, for the length of one booking.
  TicketSlot* claim(Ticket ticket, bool from_prefill_only, TicketPhase& was) noexcept {
    const auto raw = static_cast<std::uint64_t>(ticket);
    const auto index = static_cast<std::uint32_t>(raw) - 1;
    if (static_cast<std::uint32_t>(raw) == 0 || index >= count_.load(std::memory_order_acquire)) return nullptr;
    TicketSlot& slot = at(index);
    std::uint64_t state = slot.state.load(std::memory_order_acquire);
    while (((state >> 8) & 0xFFFFFFFF) == (raw >> 32)) {
      const auto phase = static_cast<TicketPhase>(state & 0xFF);
      if (phase == TicketPhase::busy) {
        std::this_thread::yield();
        state = slot.state.load(std::memory_order_acquire);
        continue;
      }
      if (phase != TicketPhase::prefill && (from_prefill_only || phase != TicketPhase::decode)) return nullptr;
      if (slot.state.compare_exchange_weak(state, word(state >> 8, TicketPhase::busy), std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
        was = phase;
        return &slot;
      }
    }
    return nullptr;
  }
  static void set_phase(TicketSlot& slot, TicketPhase phase) noexcept {
    const std::uint64_t generation = slot.state.load(std::memory_order_relaxed) >> 8;
    slot.state.store(word(generation, phase), std::memory_order_release);
  }
  /// One holder lets go; the last one puts the slot back on the free list.
  void release(std::uint32_t index) noexcept {
    TicketSlot& slot = at(index);
    if (slot.holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (slot.path.capacity() > kKeptPath) std::vector<BlockHash>().swap(slot.path);
    push_free(index);
  }

  /// returns: the ticket in this slot if its lease is over, else kNoTicket.
  [[nodiscard]] Ticket expired(std::uint32_t index, Nanos now) const noexcept {
    const TicketSlot& slot = at(index);
    const std::uint64_t state = slot.state.load(std::memory_order_acquire);
    const auto phase = static_cast<TicketPhase>(state & 0xFF);
    if (phase != TicketPhase::prefill && phase != TicketPhase::decode) return kNoTicket;
    if (slot.lease_until.load(std::memory_order_relaxed) > now.value) return kNoTicket;
    return static_cast<Ticket>((((state >> 8) & 0xFFFFFFFF) << 32) | (index + 1));
  }
  /// Slots ever made; index < known() is valid for `at` and `expired`.
  [[nodiscard]] std::uint32_t known() const noexcept { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] TicketSlot& at(std::uint32_t index) const noexcept {
    return slabs_[index / kSlab].load(std::memory_order_acquire)[index % kSlab];
  }

 private:
  static constexpr std::size_t kKeptPath = 16'384;  // 128 KiB of hashes; longer ones are given back
  static constexpr std::uint64_t word(std::uint64_t generation, TicketPhase phase) noexcept {
    return generation << 8 | static_cast<std::uint64_t>(phase);
  }
  void push_free(std::uint32_t index) noexcept {
    std::uint64_t head = free_.load(std::memory_order_relaxed);
    std::uint64_t next = 0;
    do {
      at(index).next_free.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
      next = ((head >> 32) + 1) << 32 | (index + 1);
    } while (!free_.compare_exchange_weak(head, next, std::memory_order_release, std::memory_order_relaxed));
  }
  bool grow() {
    const std::lock_guard lock(growing_);
    if (static_cast<std::uint32_t>(free_.load(std::memory_order_acquire)) != 0)
      return true;  // somebody else grew or released
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (count / kSlab >= max_slabs_) return false;
    auto slab = std::make_unique<TicketSlot[]>(kSlab);
    for (std::uint32_t i = 0; i < kSlab; ++i) slab[i].index = count + i;
    slabs_[count / kSlab].store(slab.release(), std::memory_order_release);
    count_.store(count + static_cast<std::uint32_t>(kSlab), std::memory_order_release);
    for (std::uint32_t i = count + static_cast<std::uint32_t>(kSlab); i-- > count;) push_free(i);
    return true;
  }

  std::size_t max_slabs_;
  std::unique_ptr<std::atomic<TicketSlot*>[]> slabs_;
  std::atomic<std::uint32_t> count_{0};
  alignas(64) std::atomic<std::uint64_t> free_{0};  // tag << 32 | index + 1
  std::mutex growing_;
};

}  // namespace warmroute::detail
