/// Who holds which block, over a whole fleet: one bit per replica and dense block id.
/// A match walks the prompt once for all replicas and ends when nobody is left.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace warmroute::trace {

class Holders {
 public:
  Holders() = default;
  Holders(std::uint64_t blocks, std::uint32_t replicas)
      : words_((replicas + 63) / 64), bits_(static_cast<std::size_t>(blocks) * words_) {}

  void set(std::uint32_t replica, std::uint64_t block) noexcept { at(replica, block) |= bit(replica); }
  void clear(std::uint32_t replica, std::uint64_t block) noexcept { at(replica, block) &= ~bit(replica); }
  void forget(std::uint32_t replica) noexcept {
    for (std::size_t i = replica / 64; i < bits_.size(); i += words_) bits_[i] &= ~bit(replica);
  }
  [[nodiscard]] std::size_t words() const noexcept { return words_; }
  [[nodiscard]] const std::uint64_t* of(std::uint64_t block) const noexcept { return bits_.data() + block * words_; }

 private:
  [[nodiscard]] std::uint64_t& at(std::uint32_t replica, std::uint64_t block) noexcept {
    return bits_[static_cast<std::size_t>(block) * words_ + replica / 64];
  }
  static constexpr std::uint64_t bit(std::uint32_t replica) noexcept { return std::uint64_t{1} << (replica % 64); }

  std::size_t words_ = 1;
  std::vector<std::uint64_t> bits_;
};

/// Fills depth[r] with the leading blocks that replica r holds by `a`, or by `b` where that is not null.
inline void match(const Holders& a, const Holders* b, std::span<const std::uint64_t> blocks, std::size_t limit,
                  std::span<std::int64_t> depth) {
  limit = std::min(limit, blocks.size());
  for (std::size_t word = 0; word < a.words(); ++word) {
    std::uint64_t left = ~std::uint64_t{0};
    if ((word + 1) * 64 > depth.size()) left = (std::uint64_t{1} << (depth.size() % 64)) - 1;
    const auto end = [&](std::uint64_t who, std::size_t at) {
      for (; who != 0; who &= who - 1) {
        depth[word * 64 + static_cast<std::size_t>(std::countr_zero(who))] = static_cast<std::int64_t>(at);
      }
    };
    for (std::size_t i = 0; i < limit && left != 0; ++i) {
      std::uint64_t held = a.of(blocks[i])[word];
      if (b != nullptr) held |= b->of(blocks[i])[word];
      end(left & ~held, i);
      left &= held;
    }
    end(left, limit);
  }
}

/// Holders with counts: blocks of requests, each entered and left as often as requests contain it.
class CountedHolders {
 public:
  CountedHolders() = default;
  CountedHolders(std::uint64_t blocks, std::uint32_t replicas) : holders_(blocks, replicas), distinct_(replicas) {}

  void enter(std::uint32_t replica, std::span<const std::uint64_t> blocks) {
    for (const std::uint64_t block : blocks) {
      if (counts_[key(replica, block)]++ > 0) continue;
      holders_.set(replica, block);
      ++distinct_[replica];
    }
  }
  void leave(std::uint32_t replica, std::span<const std::uint64_t> blocks) {
    for (const std::uint64_t block : blocks) {
      const auto it = counts_.find(key(replica, block));
      if (it == counts_.end() || --it->second > 0) continue;
      counts_.erase(it);
      holders_.clear(replica, block);
      --distinct_[replica];
    }
  }
  [[nodiscard]] const Holders& holders() const noexcept { return holders_; }
  [[nodiscard]] std::int64_t distinct(std::uint32_t replica) const noexcept { return distinct_[replica]; }

 private:
  static constexpr std::uint64_t key(std::uint32_t replica, std::uint64_t block) noexcept {
    return block << 16 | replica;
  }
  Holders holders_;
  std::vector<std::int64_t> distinct_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> counts_;
};

}  // namespace warmroute::trace
