/// The block cache of one replica: reference counts, a leaf-first LRU list of idle blocks, and the count of private
/// blocks. A block whose references are dropped deepest first lands in the list before its parent, so the head is
/// always a leaf.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace warmroute::trace {

class BlockCache {
 public:
  using Node = std::uint32_t;
  static constexpr Node kNone = ~Node{0};

  explicit BlockCache(std::int64_t capacity) : capacity_(capacity) {}

  [[nodiscard]] Node find(std::uint64_t block) const {
    const auto it = by_block_.find(block);
    return it == by_block_.end() ? kNone : it->second;
  }
  [[nodiscard]] bool is_referenced(Node node) const noexcept { return nodes_[node].references > 0; }

  void reference(Node node) noexcept {
    if (nodes_[node].references++ > 0) return;
    unlink(node);
    ++referenced_;
  }
  void release(Node node) noexcept {
    if (--nodes_[node].references > 0) return;
    link_at_tail(node);
    --referenced_;
  }

  /// Turns one private block into a cached one with one reference. `block` is not cached yet.
  Node commit(std::uint64_t block) {
    Node node = free_;
    if (node == kNone) {
      node = static_cast<Node>(nodes_.size());
      nodes_.emplace_back();
    } else {
      free_ = nodes_[node].next;
    }
    nodes_[node] = {block, 1, kNone, kNone};
    by_block_.emplace(block, node);
    --private_;
    ++referenced_;
    return node;
  }

  /// Takes `count` private blocks, evicting idle blocks for them. The caller has seen that `available()` covers it.
  template <class OnEvicted>
  void take_private(std::int64_t count, OnEvicted&& on_evicted) {
    private_ += count;
    while (cached() + private_ > capacity_) on_evicted(evict());
  }
  void free_private(std::int64_t count) noexcept { private_ -= count; }

  void clear() {
    by_block_.clear();
    nodes_.clear();
    free_ = head_ = tail_ = kNone;
    private_ = referenced_ = 0;
  }

  /// returns: blocks that are free or could be made free.
  [[nodiscard]] std::int64_t available() const noexcept { return capacity_ - private_ - referenced_; }
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::int64_t cached() const noexcept { return static_cast<std::int64_t>(by_block_.size()); }
  [[nodiscard]] std::int64_t referenced() const noexcept { return referenced_; }
  [[nodiscard]] std::int64_t private_blocks() const noexcept { return private_; }
  [[nodiscard]] std::int64_t evictions() const noexcept { return evictions_; }

 private:
  struct Entry {
    std::uint64_t block = 0;
    std::uint32_t references = 0;
    Node previous = kNone;
    Node next = kNone;
  };

  std::uint64_t evict() {
    const Node node = head_;
    const std::uint64_t block = nodes_[node].block;
    unlink(node);
    by_block_.erase(block);
    nodes_[node].next = free_;
    free_ = node;
    ++evictions_;
    return block;
  }
  void unlink(Node node) noexcept {
    Entry& entry = nodes_[node];
    (entry.previous == kNone ? head_ : nodes_[entry.previous].next) = entry.next;
    (entry.next == kNone ? tail_ : nodes_[entry.next].previous) = entry.previous;
    entry.previous = entry.next = kNone;
  }
  void link_at_tail(Node node) noexcept {
    nodes_[node].previous = tail_;
    nodes_[node].next = kNone;
    (tail_ == kNone ? head_ : nodes_[tail_].next) = node;
    tail_ = node;
  }

  std::int64_t capacity_;
  absl::flat_hash_map<std::uint64_t, Node> by_block_;
  std::vector<Entry> nodes_;
  Node free_ = kNone;
  Node head_ = kNone;
  Node tail_ = kNone;
  std::int64_t private_ = 0;
  std::int64_t referenced_ = 0;
  std::int64_t evictions_ = 0;
};

}  // namespace warmroute::trace
