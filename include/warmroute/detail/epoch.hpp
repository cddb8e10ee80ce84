/// Epoch-based reclamation: readers pin the current epoch, writers free what they unlinked only after
/// every reader that could still see it has left. Readers never wait and write one cache line that they own for the time of the pin.
///
/// Invariant: an object retired with tag t is freed only when no slot holds an epoch <= t.
/// A reader that a scan did not see enters after it: then it sees every unlinking before that scan, whatever memory order
/// its own loads and the writer's stores use (see `enter`). Does not: reclaim on its own; writers call `collect`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace warmroute::detail {

inline constexpr std::size_t kCacheLine = 64;

/// returns: a small number that differs between threads as long as there are few of them.
inline std::uint32_t thread_hint() noexcept {
  static std::atomic<std::uint32_t> next{0};
  thread_local constinit std::uint32_t hint = 0;  // 0: not drawn yet; a constant needs no guard on each use
  if (hint == 0) hint = next.fetch_add(1, std::memory_order_relaxed) | 0x8000'0000u;
  return hint;
}

class EpochDomain {
 public:
  static constexpr std::size_t kSlots = 128;

  /// Holds the epoch pinned while it lives. threads: must be released by code that owns it; may move between threads.
  class Guard {
   public:
    explicit Guard(std::atomic<std::uint64_t>& slot, bool counted) noexcept : slot_(&slot), counted_(counted) {}
    Guard(Guard&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), counted_(other.counted_) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    Guard& operator=(Guard&&) = delete;
    ~Guard() {
      if (slot_ == nullptr) return;
      if (counted_) slot_->fetch_sub(1, std::memory_order_release);
      else slot_->store(0, std::memory_order_release);
    }

   private:
    std::atomic<std::uint64_t>* slot_;
    bool counted_;
  };

  EpochDomain() = default;
  EpochDomain(const EpochDomain&) = delete;
  EpochDomain& operator=(const EpochDomain&) = delete;
  /// threads: no reader may be left.
  ~EpochDomain() {
    for (auto& r : retired_) r.drop(r.object);
  }

  /// threads: any. cost: one uncontended compare-and-swap on the thread's own line while at most kSlots readers are inside;
  /// beyond that a shared counter is used, which holds back all reclamation but never the reader. alloc: none.
  [[nodiscard]] Guard pin() const noexcept {
    const std::uint64_t epoch = epoch_.load(std::memory_order_seq_cst);
    const std::uint32_t start = thread_hint();
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      auto& slot = slots_[(start + i) % kSlots].epoch;
      std::uint64_t free = slot.load(std::memory_order_relaxed);  // a failed exchange would take the holder's line away
      if (free != 0 || !slot.compare_exchange_strong(free, epoch, std::memory_order_seq_cst)) continue;
      enter();
      return Guard{slot, false};
    }
    overflow_.epoch.fetch_add(1, std::memory_order_seq_cst);
    enter();
    return Guard{overflow_.epoch, true};
  }

  /// Hands over an object that no new reader can reach. threads: any writer; a short lock among writers, which readers never take.
  template <class T>
  void retire(T* object) {
    retire(const_cast<std::remove_const_t<T>*>(object), [](void* p) { delete static_cast<T*>(p); });
  }
  void retire(void* object, void (*drop)(void*)) {
    const std::lock_guard lock(writers_);
    retired_.push_back({object, drop, epoch_.fetch_add(1, std::memory_order_seq_cst)});
  }

  /// Frees at most `limit` retired objects whose readers have left. threads: as retire. returns: how many were freed.
  std::size_t collect(std::size_t limit = ~std::size_t{0}) {
    std::vector<Retired> ready;
    {
      const std::lock_guard lock(writers_);
      if (retired_.empty()) return 0;
      const std::uint64_t oldest = oldest_pinned();
      while (ready.size() < limit && !retired_.empty() && retired_.front().tag < oldest) {
        ready.push_back(retired_.front());
        retired_.pop_front();
      }
    }
    for (const Retired& r : ready) r.drop(r.object);  // outside the lock: a destructor may be large
    return ready.size();
  }

  /// returns: the smallest epoch a reader holds; objects tagged below it are free to go. threads: any.
  [[nodiscard]] std::uint64_t oldest_pinned() const noexcept {
    if (overflow_.epoch.load(std::memory_order_seq_cst) != 0) return 0;
    std::uint64_t oldest = ~std::uint64_t{0};
    for (const auto& slot : slots_) {
      const std::uint64_t e = slot.epoch.load(std::memory_order_seq_cst);
      if (e != 0 && e < oldest) oldest = e;
    }
    return oldest;
  }
  /// Starts a new epoch and returns the tag of what was unlinked before it. threads: any.
  std::uint64_t advance() noexcept { return epoch_.fetch_add(1, std::memory_order_seq_cst); }
  [[nodiscard]] std::size_t waiting() const {
    const std::lock_guard lock(writers_);
    return retired_.size();
  }

 private:
  struct alignas(kCacheLine) Slot {
    std::atomic<std::uint64_t> epoch{0};
  };
  struct Retired {
    void* object;
    void (*drop)(void*);
    std::uint64_t tag;
  };
  /// Closes the pin. A scan that missed this slot comes before the slot was taken, and the writer's increment of the epoch
  /// before that scan; so this load reads that increment or a later one and synchronises with it: all that was unlinked
  /// before it is unlinked for this reader. The exchange alone would not order later acquire loads after itself
  /// (arm64 lets them pass its store half). cost: a plain load on x86.
  void enter() const noexcept { static_cast<void>(epoch_.load(std::memory_order_seq_cst)); }

  mutable std::array<Slot, kSlots> slots_{};
  mutable Slot overflow_{};
  alignas(kCacheLine) std::atomic<std::uint64_t> epoch_{1};
  alignas(kCacheLine) mutable std::mutex writers_;  // from here on the writers' own: not on the line that readers load
  std::deque<Retired> retired_;
};

/// One immutable value behind an atomic pointer: readers see the old one or the new one, whole.
template <class T>
class Snapshot {
 public:
  Snapshot(EpochDomain& domain, std::unique_ptr<const T> first) : domain_(&domain), current_(first.release()) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() { delete current_.load(std::memory_order_relaxed); }

  /// lifetime: the reference lives as long as the guard. threads: any.
  [[nodiscard]] const T& read(const EpochDomain::Guard&) const noexcept {
    return *current_.load(std::memory_order_seq_cst);
  }
  /// The current value for the one writer, without a pin. threads: under the lock that serialises publish.
  [[nodiscard]] const T& latest() const noexcept { return *current_.load(std::memory_order_relaxed); }
  /// threads: one writer of this snapshot at a time.
  void publish(std::unique_ptr<const T> next) {
    const T* old = current_.exchange(next.release(), std::memory_order_seq_cst);
    domain_->retire(old);
    domain_->collect();
  }

 private:
  EpochDomain* domain_;
  std::atomic<const T*> current_;
};

}  // namespace warmroute::detail
