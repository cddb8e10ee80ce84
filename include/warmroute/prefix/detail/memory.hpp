/// Memory of one prefix index: every byte is counted, and what readers may still see is freed only when they have left.
/// Invariant: `bytes()` is exactly what was asked from the allocator and not yet given back, retired blocks included.
/// Does not: lock (the index's writer lock covers all calls but bytes()), or refuse: the index asks for room before it allocates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "warmroute/detail/epoch.hpp"

namespace warmroute::detail {

class PrefixMemory {
 public:
  PrefixMemory(EpochDomain& domain, std::size_t max_bytes) : domain_(&domain), max_bytes_(max_bytes) {}
  PrefixMemory(const PrefixMemory&) = delete;
  PrefixMemory& operator=(const PrefixMemory&) = delete;
  /// threads: no reader may be left.
  ~PrefixMemory() { drop(retired_.size()); }

  [[nodiscard]] void* allocate(std::size_t bytes) {
    void* p = ::operator new (bytes, std::align_val_t{16});
    count(bytes);
    return p;
  }
  /// For memory that no reader has ever seen.
  void release(void* p, std::size_t bytes) noexcept {
    ::operator delete (p, std::align_val_t{16});
    count(~bytes + 1);
  }
  /// The same, aligned to a cache line.
  [[nodiscard]] void* allocate_line(std::size_t bytes) {
    void* p = ::operator new (bytes, std::align_val_t{kCacheLine});
    count(bytes);
    return p;
  }
  void release_line(void* p, std::size_t bytes) noexcept {
    ::operator delete (p, std::align_val_t{kCacheLine});
    count(~bytes + 1);
  }
  /// For memory that readers may be inside. `node` instead of a block: the number of a node to hand back to `recycle`.
  void retire(void* p, std::size_t bytes) {
    retired_.push_back({p, bytes, kOpen});
    waiting_ += bytes;
  }
  void retire_node(std::uint32_t node) { retired_.push_back({nullptr, node, kOpen}); }

  /// Stamps what was retired since the last call: from here on new readers cannot reach it. Call at the end of every change.
  void close() {
    if (closed_ == retired_.size()) return;
    const std::uint64_t tag = domain_->advance();
    for (; closed_ < retired_.size(); ++closed_) retired_[closed_].tag = tag;
  }

  /// Frees what all readers have left behind; recycle(node) for node numbers. cost: a scan of the domain's reader slots (about
  /// 100 ns), so callers do it for a batch.
  template <class Recycle>
  void collect(Recycle&& recycle) {
    if (first_ == closed_) return;
    const std::uint64_t oldest = domain_->oldest_pinned();
    for (; first_ < closed_ && retired_[first_].tag < oldest; ++first_) {
      const Retired& r = retired_[first_];
      if (r.block == nullptr) {
        recycle(static_cast<std::uint32_t>(r.bytes));
        continue;
      }
      waiting_ -= r.bytes;
      release(r.block, r.bytes);
    }
    if (first_ == retired_.size()) {
      retired_.clear();
      first_ = closed_ = 0;
    } else if (first_ > 1024 && first_ * 2 > retired_.size()) {
      retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(first_));
      closed_ -= first_;
      first_ = 0;
    }
  }

  /// Gives back what the list of retired memory itself took in a busy time.
  void trim_list() {
    if (retired_.empty() && retired_.capacity() > 64) retired_ = decltype(retired_)();
  }

  /// threads: any.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  /// returns: whether that many bytes more may be asked for.
  [[nodiscard]] bool fits(std::size_t more) const noexcept {
    return more <= max_bytes_ && bytes() <= max_bytes_ - more;
  }
  [[nodiscard]] std::size_t max_bytes() const noexcept { return max_bytes_; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept { return waiting_; }
  [[nodiscard]] std::size_t waiting() const noexcept { return retired_.size() - first_; }

 private:
  struct Retired {
    void* block;
    std::size_t bytes;  // or the node's number
    std::uint64_t tag;
  };
  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};

  void count(std::size_t bytes) noexcept {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  void drop(std::size_t end) noexcept {
    for (; first_ < end; ++first_) {
      if (retired_[first_].block != nullptr) release(retired_[first_].block, retired_[first_].bytes);
    }
  }

  EpochDomain* domain_;
  std::size_t max_bytes_;
  std::atomic<std::size_t> bytes_{0};
  std::size_t waiting_ = 0;
  std::vector<Retired> retired_;  // [first_, closed_) have a tag, [closed_, end) wait for close()
  std::size_t first_ = 0, closed_ = 0;
};

}  // namespace warmroute::detail
