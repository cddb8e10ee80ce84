/// Nodes of a prefix tree by number, with the writer's notes on each. Chunks of nodes are given back when they are empty.
/// Invariant: a number that is in use, or that readers may still follow, keeps its node's address; `generation` tells the tenants
/// of a number apart and never repeats for one number. Does not: free what a node points to.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "warmroute/prefix/detail/memory.hpp"
#include "warmroute/prefix/detail/node.hpp"

namespace warmroute::detail {

/// A holder whose blocks are not a plain device prefix of the run: lower tiers, or holes. One bit per block and tier; only the
/// writer reads it, look-ups see the cut-offs that follow from it.
struct Ragged {
  Ragged* next = nullptr;
  std::uint32_t slot = 0;
  std::uint32_t words = 0;  ///< per tier
  std::uint32_t held[kTierCount] = {0, 0, 0};
  std::uint32_t reserved = 0;

  [[nodiscard]] std::uint64_t* bits(unsigned tier) noexcept {
    return reinterpret_cast<std::uint64_t*>(this + 1) + tier * words;
  }
  [[nodiscard]] std::size_t all_held() const noexcept { return std::size_t{held[0]} + held[1] + held[2]; }
  [[nodiscard]] static std::size_t bytes(std::size_t words) noexcept { return sizeof(Ragged) + kTierCount * words * 8; }
};

struct NodeInfo {
  static constexpr std::uint8_t kLive = 1, kListed = 2, kMergeable = 4;
  Ragged* ragged = nullptr;
  std::uint32_t parent = 0;
  std::uint32_t used = 0;              ///< the tick of the last store that reached this run's own end part
  std::uint32_t listed = 0;            ///< `used` when it took its place in the list
  std::uint32_t older = 0, newer = 0;  ///< list of nodes with an end part nobody hangs below, by `used`
  std::uint32_t generation = 0;
  std::uint16_t offset = 0;  ///< where in the parent's run it hangs
  std::uint8_t flags = 0;
};

class NodeArena {
 public:
  static constexpr std::uint32_t kChunk = 64;
  static constexpr std::uint32_t kRoot = 0;  ///< number 0 is the tree's root: notes only, no run

  explicit NodeArena(PrefixMemory& memory) : memory_(&memory) { static_cast<void>(add()); }
  NodeArena(const NodeArena&) = delete;
  NodeArena& operator=(const NodeArena&) = delete;
  ~NodeArena() {
    for (Chunk* c : chunks_) {
      if (c != nullptr) destroy(c);
    }
  }

  [[nodiscard]] Node& node(std::uint32_t number) noexcept { return chunks_[number / kChunk]->nodes[number % kChunk]; }
  [[nodiscard]] NodeInfo& info(std::uint32_t number) noexcept {
    return chunks_[number / kChunk]->infos[number % kChunk];
  }
  [[nodiscard]] NodeInfo& info(const Node& node) noexcept { return info(node.number); }
  /// returns: the live node of that number and generation, or null.
  [[nodiscard]] Node* find(std::uint32_t number, std::uint32_t generation) noexcept {
    if (number / kChunk >= chunks_.size() || chunks_[number / kChunk] == nullptr) return nullptr;
    const NodeInfo& i = info(number);
    return (i.flags & NodeInfo::kLive) != 0 && i.generation == generation ? &node(number) : nullptr;
  }

  /// returns: the bytes that the next `add` asks for.
  [[nodiscard]] std::size_t bytes_to_add() const noexcept { return free_ != 0 ? 0 : sizeof(Chunk); }
  [[nodiscard]] Node& add() {
    while (!partial_.empty() && (chunks_[partial_.back()] == nullptr || chunks_[partial_.back()]->free == kNone))
      leave_partial();
    if (partial_.empty()) add_chunk();
    const std::uint32_t at = partial_.back();
    Chunk& chunk = *chunks_[at];
    const std::uint32_t place = chunk.free;
    chunk.free = chunk.infos[place].newer;
    ++chunk.live;
    --free_;
    ++live_;
    Node& node = *new (&chunk.nodes[place]) Node;
    node.number = at * kChunk + place;
    const std::uint32_t generation = chunk.infos[place].generation;
    chunk.infos[place] = NodeInfo{};
    chunk.infos[place].generation = generation;
    chunk.infos[place].flags = NodeInfo::kLive;
    return node;
  }
  /// The node is out of the tree: its number names nothing any more, its address stays for readers until `recycle`.
  void bury(std::uint32_t number) noexcept {
    info(number).flags = 0;
    ++info(number).generation;
    --live_;
  }
  void recycle(std::uint32_t number) {
    const std::uint32_t at = number / kChunk;
    Chunk& chunk = *chunks_[at];
    chunk.infos[number % kChunk].newer = chunk.free;
    chunk.free = number % kChunk;
    ++free_;
    if (--chunk.live == 0) {
      if (free_ > 2 * kChunk) return give_back(at);
      keep_empty(at);
    }
    if (!chunk.partial) {
      chunk.partial = true;
      partial_.push_back(at);
    }
  }

  /// Gives back the one or two empty chunks that `recycle` keeps for the next nodes.
  void trim() {
    for (const std::uint32_t at : empty_) {
      if (at != kNone && chunks_[at] != nullptr && chunks_[at]->live == 0) give_back(at);
    }
    empty_ = {kNone, kNone};
  }

  /// Numbers below this were in use at some time; `chunk_there` says whether a number's chunk is.
  [[nodiscard]] std::uint32_t end() const noexcept { return static_cast<std::uint32_t>(chunks_.size()) * kChunk; }
  [[nodiscard]] bool live(std::uint32_t number) noexcept {
    return number != kRoot && chunks_[number / kChunk] != nullptr && (info(number).flags & NodeInfo::kLive) != 0;
  }
  [[nodiscard]] std::size_t live() const noexcept { return live_ - 1; }  // without the root

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Chunk {
    Node nodes[kChunk];
    NodeInfo infos[kChunk];
    std::uint32_t free = kNone;
    std::uint32_t live = 0;
    bool partial = true;
  };

  void add_chunk() {
    std::uint32_t at = static_cast<std::uint32_t>(chunks_.size());
    if (vacant_.empty()) {
      chunks_.push_back(nullptr);
      first_generation_.push_back(0);
    } else {
      at = vacant_.back();
      vacant_.pop_back();
    }
    Chunk* chunk = new (memory_->allocate_line(sizeof(Chunk))) Chunk;
    assert(reinterpret_cast<std::uintptr_t>(chunk) >> 48 == 0 && "Branches packs addresses of 48 bits");
    for (std::uint32_t i = kChunk; i-- > 0;) {
      chunk->infos[i].generation = first_generation_[at];
      chunk->infos[i].newer = chunk->free;
      chunk->free = i;
    }
    chunks_[at] = chunk;
    partial_.push_back(at);
    free_ += kChunk;
  }
  void give_back(std::uint32_t at) {
    Chunk* chunk = chunks_[at];
    for (const auto& i : chunk->infos)
      first_generation_[at] = i.generation > first_generation_[at] ? i.generation : first_generation_[at];
    ++first_generation_[at];
    destroy(chunk);
    chunks_[at] = nullptr;
    if (std::size_t n = partial_.size(); n != 0 && partial_[n - 1] == at) partial_.pop_back();
    else std::erase(partial_, at);
    vacant_.push_back(at);
    free_ -= kChunk;
  }
  void keep_empty(std::uint32_t at) noexcept {
    for (std::uint32_t& kept : empty_) {
      if (kept != at && kept != kNone && chunks_[kept] != nullptr && chunks_[kept]->live == 0) continue;
      kept = at;
      return;
    }
  }
  void leave_partial() noexcept {
    if (chunks_[partial_.back()] != nullptr) chunks_[partial_.back()]->partial = false;
    partial_.pop_back();
  }
  void destroy(Chunk* chunk) noexcept {
    chunk->~Chunk();
    memory_->release_line(chunk, sizeof(Chunk));
  }

  PrefixMemory* memory_;
  std::vector<Chunk*> chunks_;
  std::vector<std::uint32_t> first_generation_;  // of a chunk's next incarnation
  std::vector<std::uint32_t> partial_, vacant_;
  std::array<std::uint32_t, 2> empty_{kNone, kNone};  // two more would be more than `recycle` keeps
  std::size_t free_ = 0, live_ = 0;
};

}  // namespace warmroute::detail
