/// The parts of the prefix tree that readers see, and how they read them.
///   Node     one line: run, branches, holders, and which clears it has been through
///   Run      the hashes of a node, contiguous; grows at its end in place
///   Branches open-addressing table of a node's children, by (offset in the run, first hash)
///   Holders  who holds how much of the run
/// A child hangs at the offset where its path leaves the parent's run, so a run is never split; a holder is a cut-off: how many
/// leading blocks of this run it holds, per tier cumulated. Whoever holds all of it is a cut-off like any other.
/// Invariant for readers: the writer publishes contents before the pointer or length that shows them, never moves an entry within an
/// array, and retires what it replaced. So each array read is the node as of some moment in the reader's own time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "warmroute/prefix/detail/compare.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

/// Longest run of one node; longer chains go on in a child. Cut-offs are 16 bits wide.
inline constexpr std::uint32_t kMaxRun = 32'768;

struct Run {
  std::atomic<std::uint32_t> length{0};
  std::uint32_t capacity = 0;
  std::uint32_t shown = 0;  ///< writer: positions below were visible to readers once and are never overwritten
  /// Writer: not 0 when the engines' ids of the blocks follow the hashes, id 0 = none known: 1 + how many are known.
  std::uint32_t named = 0;

  [[nodiscard]] const BlockHash* hashes() const noexcept { return reinterpret_cast<const BlockHash*>(this + 1); }
  [[nodiscard]] BlockHash* hashes() noexcept { return reinterpret_cast<BlockHash*>(this + 1); }
  [[nodiscard]] std::uint64_t* ids() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1) + capacity; }
  [[nodiscard]] const std::uint64_t* ids() const noexcept { return const_cast<Run*>(this)->ids(); }
  [[nodiscard]] static std::size_t bytes(std::size_t capacity, bool named) noexcept {
    return sizeof(Run) + capacity * (named ? 16 : 8);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes(capacity, named != 0); }
};

/// Who holds how much. Sparse: words of slot and three cut-offs, 0 = free. Dense: one 16-bit cut-off per slot of a window.
struct Holders {
  std::uint32_t capacity = 0;  ///< words, or slots of the window (a multiple of kLanes)
  std::uint16_t planes = 0;    ///< 0 sparse; 1 dense, all tiers equal; 3 dense, one plane per cumulated tier
  std::uint16_t first = 0;     ///< dense: the window's first slot (a multiple of kLanes)
  std::uint64_t reserved = 0;

  static constexpr std::uint32_t kLanes = 16;
  using Word = std::atomic<std::uint64_t>;
  using Lane = std::atomic<std::uint16_t>;
  [[nodiscard]] Word* words() noexcept { return reinterpret_cast<Word*>(this + 1); }
  [[nodiscard]] const Word* words() const noexcept { return reinterpret_cast<const Word*>(this + 1); }
  [[nodiscard]] Lane* plane(unsigned tier) noexcept {
    return reinterpret_cast<Lane*>(this + 1) + (planes == 1 ? 0 : tier) * capacity;
  }
  [[nodiscard]] const Lane* plane(unsigned tier) const noexcept { return const_cast<Holders*>(this)->plane(tier); }
  [[nodiscard]] static std::size_t bytes(std::size_t capacity, unsigned planes) noexcept {
    return sizeof(Holders) + capacity * (planes == 0 ? sizeof(Word) : planes * sizeof(Lane));
  }
};

/// One holder of one node: how many leading blocks of the run it holds on the device, up to host, up to disk.
struct CutOffs {
  std::uint16_t at[kTierCount] = {0, 0, 0};

  [[nodiscard]] static CutOffs of(std::uint64_t word) noexcept {
    return {{static_cast<std::uint16_t>(word >> 16), static_cast<std::uint16_t>(word >> 32),
             static_cast<std::uint16_t>(word >> 48)}};
  }
  [[nodiscard]] std::uint64_t word(std::uint32_t slot) const noexcept {
    return slot | std::uint64_t{at[0]} << 16 | std::uint64_t{at[1]} << 32 | std::uint64_t{at[2]} << 48;
  }
  [[nodiscard]] bool one_plane() const noexcept { return at[0] == at[1] && at[1] == at[2]; }
  [[nodiscard]] bool none() const noexcept { return at[2] == 0; }  // cumulated: the last is the largest
};

struct Branches;

struct alignas(64) Node {
  static constexpr std::size_t kFew = 4;
  std::atomic<Run*> run{nullptr};
  std::atomic<Branches*> branches{nullptr};
  std::atomic<Holders*> holders{nullptr};  ///< null: `few` are the holders; once set, `few` is not looked at again
  std::atomic<std::uint32_t> clears{0};  ///< replicas cleared after that many clears of the index are not credited here
  std::uint32_t number = 0;              ///< this node's place in the arena
  Holders::Word few[kFew]{};
};
static_assert(sizeof(Node) == 64);

/// Words: 0 free, 1 removed, else node address / 64 (42 bits), offset (16), six bits of the first hash. A table with many children is
/// a directory of kParts smaller ones instead, so that no growth copies more than one of those.
struct Branches {
  std::uint32_t mask = 0;  ///< capacity - 1
  std::uint32_t live = 0;
  std::uint32_t used = 0;        ///< live and removed
  std::uint32_t at_deepest = 0;  ///< children that hang at `deepest`
  std::uint32_t deepest = 0;     ///< largest offset of a child
  std::uint32_t shift = 0;       ///< directory: which bits of the mixed hash name the part; 0: a table of words

  using Word = std::atomic<std::uint64_t>;
  using Table = std::atomic<Branches*>;
  static constexpr std::size_t kParts = 256;
  [[nodiscard]] Table* parts() noexcept { return reinterpret_cast<Table*>(this + 1); }
  [[nodiscard]] const Table& part_of(std::uint64_t mixed) const noexcept {
    return reinterpret_cast<const Table*>(this + 1)[(mixed >> shift) % kParts];
  }
  static constexpr std::uint64_t kFree = 0, kRemoved = 1;
  [[nodiscard]] Word* words() noexcept { return reinterpret_cast<Word*>(this + 1); }
  [[nodiscard]] const Word* words() const noexcept { return reinterpret_cast<const Word*>(this + 1); }
  [[nodiscard]] static std::size_t bytes(std::size_t capacity) noexcept {
    return sizeof(Branches) + capacity * sizeof(Word);
  }

  [[nodiscard]] static std::uint64_t mix(std::uint32_t offset, BlockHash hash) noexcept {
    return (to_u64(hash) ^ offset * 0x9E3779B97F4A7C15ULL) * 0xD6E8FEB86659FD93ULL;
  }
  [[nodiscard]] static std::uint64_t word(const Node* node, std::uint32_t offset, std::uint64_t mixed) noexcept {
    return reinterpret_cast<std::uintptr_t>(node) >> 6 | std::uint64_t{offset} << 42 | (mixed & 63) << 58;
  }
  [[nodiscard]] static Node* node(std::uint64_t word) noexcept {
    return reinterpret_cast<Node*>((word & ((std::uint64_t{1} << 42) - 1)) << 6);  // NOLINT(performance-no-int-to-ptr)
  }
  [[nodiscard]] static std::uint32_t offset(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> 42) & 0xFFFF;
  }

  /// returns: the word of the child and its place (in a table of words), or kFree. Readers and the writer alike.
  [[nodiscard]] std::uint64_t find(std::uint32_t at, BlockHash hash, std::size_t* place = nullptr) const noexcept {
    const std::uint64_t mixed = mix(at, hash);
    const Branches* table = this;
    while (table->shift != 0) {
      table = table->part_of(mixed).load(std::memory_order_acquire);
      if (table == nullptr) return kFree;
    }
    const std::uint64_t key = word(nullptr, at, mixed);
    for (std::uint64_t i = mixed >> 32;; ++i) {
      const std::uint64_t w = table->words()[i & table->mask].load(std::memory_order_acquire);
      if (w == kFree) return kFree;
      if (w == kRemoved || ((w ^ key) >> 42) != 0) continue;
      if (node(w)->run.load(std::memory_order_acquire)->hashes()[0] != hash) continue;
      if (place != nullptr) *place = i & table->mask;
      return w;
    }
  }
};

/// returns: the child that goes on with `hash` at `offset`, or null.
inline Node* find_branch(const Branches* branches, std::uint32_t offset, BlockHash hash) noexcept {
  return branches == nullptr ? nullptr : Branches::node(branches->find(offset, hash));
}

}  // namespace warmroute::detail
