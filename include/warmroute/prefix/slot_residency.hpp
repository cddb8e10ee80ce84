/// What we believe a llama.cpp server holds: a model of its slots and of the whole sequences behind them in RAM, fed by our own routing.
/// Nothing is shared there: no blocks, no tree. A new conversation takes over the slot, or the entry in RAM, of a sibling with the same
/// system prompt and cuts its tail; prompts in flight cannot be found by others. A tree of blocks (prefix/residency.hpp) is too hopeful.
/// What a request that comes now could find is written to a PrefixIndex.
/// Invariant: the index holds, for this replica, the union of the prompts that can be found (as far as its byte cap lets it).
/// Does not: read a clock, or lock: its owner serialises calls. Know answers: it is told their length, not their content.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "warmroute/prefix/detail/slot_cache.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

class SlotResidency {
 public:
  /// lifetime: `index` must outlive this. Destruction leaves the index as it is; the owner clears the replica there.
  SlotResidency(PrefixIndex& index, ReplicaId replica, SlotCacheOptions options, Tier tier = Tier::device)
      : index_(&index),
        replica_(replica),
        tier_(tier),
        options_(options),
        cache_(options),
        published_(cache_.slots()) {}
  SlotResidency(const SlotResidency&) = delete;
  SlotResidency& operator=(const SlotResidency&) = delete;

  /// A request was sent: it takes a slot by the server's rules, or waits for one. `key` names it until `finish` or `withdraw`.
  /// shape: `path` is the chain of the prompt's whole blocks, possibly none. units: `tokens` of the whole prompt; thousandths of tokens per
  /// block. returns: tokens it is believed to find; negative: it waits. alloc: one copy of the path. cost: compares the path with each
  /// slot and entry, up to three times.
  std::int64_t arrive(std::uint64_t key, std::span<const BlockHash> path, std::int64_t tokens,
                      std::int64_t tokens_per_block_milli) {
    if (cache_.prompt(key) != nullptr) withdraw(key);
    const std::int64_t found = cache_.arrive(key, Sequence(path, tokens, tokens_per_block_milli));
    publish();
    return found;
  }

  /// The request is over: its slot holds prompt and answer, as `tokens` together. An unknown key is ignored: its prompt came before a
  /// clear, or was never told.
  void finish(std::uint64_t key, std::int64_t tokens) {
    const Sequence* prompt = cache_.prompt(key);
    if (prompt == nullptr) return;
    Sequence now = *prompt;
    now.tokens = std::max(tokens, std::int64_t{1});
    cache_.finish(key, std::move(now));
    publish();
  }

  /// The request failed before it was computed: what its slot held is believed again.
  void withdraw(std::uint64_t key) {
    cache_.withdraw(key);
    publish();
  }

  /// The truth about a running request: it found only the first `keep` blocks of its prompt. What was believed to be there when it started
  /// and would have served it better is cut back. No more was found than believed: nothing follows from that.
  void correct(std::uint64_t key, std::size_t keep) {
    if (!running(key)) return;
    const Sequence path = *cache_.prompt(key);
    cache_.contradict(path.content(), keep, cache_.started(key));
    publish();
  }

  /// returns: whether that request has a slot.
  [[nodiscard]] bool running(std::uint64_t key) const noexcept { return cache_.running(key); }
  /// returns: tokens that a running request is believed to have found; 0 for others.
  [[nodiscard]] std::int64_t found(std::uint64_t key) const noexcept { return running(key) ? cache_.found(key) : 0; }
  [[nodiscard]] bool all_busy() const noexcept { return cache_.all_busy(); }
  [[nodiscard]] std::size_t waiting() const noexcept { return cache_.deferred(); }

  /// Withdraws the requests for whose key `over` says so: their end was never told.
  template <class Over>
  void withdraw_if(Over&& over) {
    keys_.clear();
    cache_.for_each_key([&](std::uint64_t key) {
      if (over(key)) keys_.push_back(key);
    });
    for (const std::uint64_t key : keys_) withdraw(key);
  }

  /// Forgets everything, requests in flight included, and clears the replica in the index (all its tiers), in constant time there.
  void clear() {
    cache_ = detail::SlotCache<BlockHash>(options_);
    std::fill(published_.begin(), published_.end(), Sequence{});
    index_->clear(replica_);
  }

  /// returns: distinct blocks that can be found. cost: compares every sequence with those before it.
  [[nodiscard]] std::size_t blocks() const {
    std::size_t total = 0;
    std::vector<std::span<const BlockHash>> seen;
    for_each_visible([&](const Sequence& s) {
      std::size_t known = 0;
      for (const auto earlier : seen) known = std::max(known, cache_.common_elements(earlier, s.content()));
      total += s.known - known;
      seen.push_back(s.content());
    });
    return total;
  }
  /// returns: tokens that a request with this prompt would find if it came now: by the server's rules, which hide much of what it holds. In
  /// tokens, since the last turn's rest of a block and its answer are taken for part of what continues them.
  [[nodiscard]] std::int64_t would_find(std::span<const BlockHash> path, std::int64_t tokens,
                                        std::int64_t tokens_per_block_milli) const {
    return cache_.would_find({path, tokens, tokens_per_block_milli});
  }
  /// The model as it is now, for readers beside later changes. cost: two words for each sequence; content is shared.
  [[nodiscard]] detail::SlotCache<BlockHash> copy() const { return cache_; }

  /// returns: leading blocks of `path` that some sequence holds.
  [[nodiscard]] std::size_t held(std::span<const BlockHash> path) const {
    std::size_t most = 0;
    for_each_visible([&](const Sequence& s) { most = std::max(most, cache_.common_elements(s.content(), path)); });
    return most;
  }
  /// returns: whole sequences in RAM.
  [[nodiscard]] std::size_t saved() const noexcept { return cache_.ram().size(); }
  [[nodiscard]] ReplicaId replica() const noexcept { return replica_; }
  [[nodiscard]] const SlotCacheOptions& options() const noexcept { return options_; }

 private:
  using Sequence = detail::SlotSequence<BlockHash>;

  template <class Visit>
  void for_each_visible(Visit&& visit) const {
    for (std::size_t i = 0; i < cache_.slots(); ++i) {
      if (const Sequence* s = cache_.visible(i); s != nullptr) visit(*s);
    }
    for (const Sequence& s : cache_.ram()) visit(s);
  }

  /// Brings the index up to date: what left takes those of its blocks along that nobody else holds, what came is stored.
  void publish() {
    gone_.assign(cache_.left().begin(), cache_.left().end());
    came_.assign(cache_.saved().begin(), cache_.saved().end());  // of a slot that nobody could see, perhaps
    for (std::size_t i = 0; i < published_.size(); ++i) {
      const Sequence* now = cache_.visible(i);
      if (now != nullptr ? published_[i].same_as(*now) : published_[i].empty()) continue;
      if (published_[i].known != 0) gone_.push_back(std::move(published_[i]));
      published_[i] = now != nullptr ? *now : Sequence{};
      if (now != nullptr) came_.push_back(*now);
    }
    for (const Sequence& s : came_) {
      if (s.known != 0) (void)index_->store(replica_, tier_, s.content());
    }
    for (const Sequence& s : gone_) {
      const std::size_t keep = held(s.content());
      if (keep < s.known) index_->remove(replica_, tier_, s.content(), keep);
    }
  }

  PrefixIndex* index_;
  ReplicaId replica_;
  Tier tier_;
  SlotCacheOptions options_;
  detail::SlotCache<BlockHash> cache_;
  std::vector<Sequence> published_;    // by slot
  std::vector<Sequence> gone_, came_;  // working memory of publish
  std::vector<std::uint64_t> keys_;
};

}  // namespace warmroute
