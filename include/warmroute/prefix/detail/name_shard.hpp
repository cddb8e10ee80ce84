/// One shard of the table that finds blocks by their engines' names: lines of eight places, open addressing by line.
/// Invariant: a line is filled from the front, and an entry stands in the first line from its home on that had room: a search ends at the
/// first line that is not full. Does not: know the names; 16 bits of each (the tag) say to which line it belongs, so that a resize reads
/// no more than the lines.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "warmroute/prefix/detail/compare.hpp"
#include "warmroute/prefix/detail/memory.hpp"

namespace warmroute::detail {

/// Asks for a cache line. GCC 12 takes a function of nothing but __builtin_prefetch for one without effect and drops its calls; an asm
/// statement without instructions tells it otherwise.
inline void fetch_line(const void* line) noexcept {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(line, 1);
  asm volatile("" : : "r"(line));
#else
  static_cast<void>(line);
#endif
}

/// Eight places in one cache line; tag 0 is a free one.
struct alignas(64) NameLine {
  static constexpr unsigned kWays = 8;
  std::uint16_t tags[kWays];
  std::uint32_t numbers[kWays];
  std::uint16_t offsets[kWays];

  void set(unsigned way, std::uint16_t tag, std::uint32_t number, std::uint16_t offset) noexcept {
    tags[way] = tag;
    numbers[way] = number;
    offsets[way] = offset;
  }
  [[nodiscard]] bool full() const noexcept { return tags[kWays - 1] != 0; }
  /// returns: how many places are taken.
  [[nodiscard]] unsigned used() const noexcept {
    const unsigned free = equal(0);
    return free == 0 ? kWays : static_cast<unsigned>(std::countr_zero(free));
  }
  /// returns: one bit per way that has that tag.
  [[nodiscard]] unsigned equal(std::uint16_t tag) const noexcept {
#if WARMROUTE_X86_KERNELS
    typedef short Tags __attribute__((vector_size(16), may_alias));
    typedef char Bytes __attribute__((vector_size(16)));
    const Tags same = *reinterpret_cast<const Tags*>(tags) == (Tags{} + static_cast<short>(tag));
    const auto pairs = static_cast<unsigned>(__builtin_ia32_pmovmskb128(reinterpret_cast<Bytes>(same))) & 0x5555U;
    unsigned bits = (pairs | pairs >> 1) & 0x3333U;
    bits = (bits | bits >> 2) & 0x0F0FU;
    return (bits | bits >> 4) & 0xFFU;
#else
    unsigned bits = 0;
    for (unsigned k = 0; k < kWays; ++k) bits |= static_cast<unsigned>(tags[k] == tag) << k;
    return bits;
#endif
  }
};

class NameShard {
 public:
  /// returns: the lines that this many names ask for: a power of two, at most 5 of 8 places taken.
  [[nodiscard]] static std::uint32_t lines_for(std::uint32_t names) noexcept {
    return names == 0 ? 0 : std::bit_ceil((names + kFill - 1) / kFill);
  }
  [[nodiscard]] std::uint32_t used() const noexcept { return used_; }
  [[nodiscard]] std::uint32_t lines() const noexcept { return count_; }
  [[nodiscard]] bool full() const noexcept { return used_ >= count_ * kFill; }
  /// returns: whether one more still goes in, slow as it may be found.
  [[nodiscard]] bool takes_one() const noexcept { return used_ < count_ * (NameLine::kWays - 1); }
  void prefetch(std::uint16_t tag) const noexcept {
    if (count_ != 0) fetch_line(lines_ + home(tag));
  }

  /// Calls visit(line, way) for the entries of that tag until it returns true.
  template <class Visit>
  void find(std::uint16_t tag, Visit&& visit) const {
    if (count_ == 0) return;
    for (std::uint32_t at = home(tag);; at = next(at)) {
      const NameLine& line = lines_[at];
      for (unsigned same = line.equal(tag); same != 0; same &= same - 1) {
        if (visit(line, static_cast<unsigned>(std::countr_zero(same)))) return;
      }
      if (!line.full()) return;
    }
  }
  /// returns: whether it is new; false: the very same entry was there.
  bool put(std::uint16_t tag, std::uint32_t number, std::uint16_t offset) noexcept {
    for (std::uint32_t at = home(tag);; at = next(at)) {
      NameLine& line = lines_[at];
      for (unsigned same = line.equal(tag); same != 0; same &= same - 1) {
        const auto way = static_cast<unsigned>(std::countr_zero(same));
        if (line.numbers[way] == number && line.offsets[way] == offset) return false;
      }
      if (line.full()) continue;
      line.set(line.used(), tag, number, offset);
      ++used_;
      return true;
    }
  }
  /// returns: whether it was there.
  bool erase(std::uint16_t tag, std::uint32_t number, std::uint16_t offset) noexcept {
    if (count_ == 0) return false;
    for (std::uint32_t at = home(tag);; at = next(at)) {
      const NameLine& line = lines_[at];
      for (unsigned same = line.equal(tag); same != 0; same &= same - 1) {
        const auto way = static_cast<unsigned>(std::countr_zero(same));
        if (line.numbers[way] != number || line.offsets[way] != offset) continue;
        erase_at(at, way);
        return true;
      }
      if (!line.full()) return false;
    }
  }
  /// Erases those entries of lines [from, to) that keep(line, way) says no to. returns: how many.
  template <class Keep>
  std::uint32_t erase_unless(std::uint32_t from, std::uint32_t to, Keep&& keep) {
    const std::uint32_t before = used_;
    for (std::uint32_t at = from; at < std::min(to, count_); ++at) {
      for (unsigned way = 0; way < NameLine::kWays && lines_[at].tags[way] != 0;) {
        if (keep(lines_[at], way)) ++way;
        else erase_at(at, way);
      }
    }
    return before - used_;
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (std::uint32_t at = 0; at < count_; ++at) {
      for (unsigned way = 0; way < NameLine::kWays && lines_[at].tags[way] != 0; ++way) visit(lines_[at], way);
    }
  }

  /// Moves everything into `lines` lines. shape: a power of two with room for all, or 0 where there is nothing.
  void resize(PrefixMemory& memory, std::uint32_t lines) {
    NameShard fresh;
    fresh.count_ = lines;
    if (lines != 0) {
      fresh.lines_ = static_cast<NameLine*>(memory.allocate_line(bytes(lines)));
      std::memset(static_cast<void*>(fresh.lines_), 0, bytes(lines));
    }
    std::uint8_t few[kFew] =
        {};  // how far each line is filled: asking the line would wait for the tag just written to it
    std::uint8_t* filled = few;
    if (lines > kFew) std::memset(filled = static_cast<std::uint8_t*>(memory.allocate(lines)), 0, lines);
    for_each([&fresh, filled](const NameLine& line, unsigned way) {
      std::uint32_t at = fresh.home(line.tags[way]);
      while (filled[at] == NameLine::kWays) at = fresh.next(at);
      fresh.lines_[at].set(filled[at]++, line.tags[way], line.numbers[way], line.offsets[way]);
    });
    fresh.used_ = used_;
    if (lines > kFew) memory.release(filled, lines);
    if (lines_ != nullptr) memory.release_line(lines_, bytes(count_));
    *this = fresh;
  }
  /// Forgets everything.
  void clear(PrefixMemory& memory) noexcept {
    if (lines_ != nullptr) memory.release_line(lines_, bytes(count_));
    *this = {};
  }
  [[nodiscard]] static std::size_t bytes(std::uint32_t lines) noexcept { return lines * sizeof(NameLine); }

 private:
  static constexpr std::uint32_t kFill = 5, kFew = 512;

  [[nodiscard]] std::uint32_t home(std::uint16_t tag) const noexcept {
    return static_cast<std::uint32_t>((std::uint64_t{tag} * count_) >> 16);
  }
  [[nodiscard]] std::uint32_t next(std::uint32_t line) const noexcept { return (line + 1) & (count_ - 1); }

  /// The last entry of the line takes the hole. Where the line was full, one that went further for want of room comes back.
  void erase_at(std::uint32_t at, unsigned way) noexcept {
    --used_;
    for (;;) {
      NameLine& line = lines_[at];
      const unsigned last = line.used() - 1;
      line.set(way, line.tags[last], line.numbers[last], line.offsets[last]);
      line.set(last, 0, 0, 0);
      if (last != NameLine::kWays - 1) return;
      if (!take_back(line, at, way)) return;
    }
  }
  /// Fills the last way of `line` from the lines behind `at`. returns: whether there was one; (at, way) is where the hole is now.
  bool take_back(NameLine& line, std::uint32_t& at, unsigned& way) const noexcept {
    for (std::uint32_t k = next(at); k != at; k = next(k)) {
      const NameLine& behind = lines_[k];
      for (unsigned w = 0; w < NameLine::kWays && behind.tags[w] != 0; ++w) {
        if (((k - home(behind.tags[w])) & (count_ - 1)) < ((k - at) & (count_ - 1))) continue;
        line.set(NameLine::kWays - 1, behind.tags[w], behind.numbers[w], behind.offsets[w]);
        at = k;
        way = w;
        return true;
      }
      if (!behind.full()) return false;
    }
    return false;
  }

  NameLine* lines_ = nullptr;
  std::uint32_t count_ = 0, used_ = 0;
};

}  // namespace warmroute::detail
