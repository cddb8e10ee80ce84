/// A bounded queue of 8-byte notes from many threads to whoever holds the placement lock.
/// Preallocated; a full queue refuses, the caller counts that. After D. Vyukov's bounded MPMC queue: one sequence number per cell.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

namespace warmroute::detail {

class PlacementQueue {
 public:
  explicit PlacementQueue(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2 : capacity) - 1), cells_(std::make_unique<Cell[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }
  /// threads: any. returns: false when full.
  bool push(std::uint64_t note) noexcept {
    std::size_t at = tail_.load(std::memory_order_relaxed);
    while (true) {
      Cell& cell = cells_[at & mask_];
      const auto lead = static_cast<std::ptrdiff_t>(cell.turn.load(std::memory_order_acquire) - at);
      if (lead < 0) return false;
      if (lead > 0) {
        at = tail_.load(std::memory_order_relaxed);
      } else if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
        cell.note = note;
        cell.turn.store(at + 1, std::memory_order_release);
        return true;
      }
    }
  }
  /// threads: one at a time. returns: false when empty.
  bool pop(std::uint64_t& note) noexcept {
    Cell& cell = cells_[head_ & mask_];
    if (cell.turn.load(std::memory_order_acquire) != head_ + 1) return false;
    note = cell.note;
    cell.turn.store(head_ + mask_ + 1, std::memory_order_release);
    ++head_;
    return true;
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn{0};
    std::uint64_t note = 0;
  };
  std::size_t mask_;
  std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::size_t head_ = 0;
};

}  // namespace warmroute::detail
