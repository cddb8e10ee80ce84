/// What one llama.cpp server holds, as its own rules move it: slots in front of whole sequences in RAM (see prefix/slot_residency.hpp).
/// One algorithm over two grains: token ids, where it is exact, and block hashes, which is what a router knows of a prompt.
/// Invariant: a busy slot is nobody else's to find; a sequence leaves `visible` places only by what left() names.
/// Does not: know time. Requests come in the order in which the server takes them. alloc: a sequence is shared, never copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "warmroute/prefix/detail/compare.hpp"
#include "warmroute/prefix/detail/slot_sequence.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

template <class Element>
class SlotCache {
 public:
  using Sequence = SlotSequence<Element>;
  using View = SlotView<Element>;
  static constexpr std::int64_t kDeferred = -1;
  struct Started {
    std::uint64_t key = 0;
    std::int64_t found = kDeferred;  ///< tokens it need not compute
  };

  explicit SlotCache(SlotCacheOptions options) : options_(options), slots_(std::max<std::uint32_t>(1, options.slots)) {}

  /// A request comes. returns: tokens that it finds; kDeferred: no slot is free, it waits for one in the order of coming.
  std::int64_t arrive(std::uint64_t key, Sequence prompt) {
    begin_call();
    if (busy_ == slots_.size()) {
      deferred_.push_back({key, std::move(prompt)});
      return kDeferred;
    }
    return start(key, std::move(prompt));
  }

  /// The request is over, and its slot holds `now`. returns: the waiting request that got the slot, if any did.
  Started finish(std::uint64_t key, Sequence now) {
    begin_call();
    Slot* slot = slot_of(key);
    if (slot == nullptr) slot = overtaken_by(key);
    if (slot == nullptr) return {};
    slot->holds = std::move(now);
    slot->holds.born = slot->last_used = ++turn_;
    return release(*slot);
  }

  /// The request never got as far as being computed: its slot holds what it held. returns: as finish.
  Started withdraw(std::uint64_t key) {
    begin_call();
    Slot* slot = slot_of(key);
    if (slot == nullptr) {
      std::erase_if(deferred_, [key](const Waiting& w) { return w.key == key; });
      return {};
    }
    slot->holds = slot->before;
    return release(*slot);
  }

  /// Of `path`, no more than `keep` elements were there for a request that started at `turn`: what was believed to be there then and would
  /// have been preferred is cut back.
  void contradict(std::span<const Element> path, std::size_t keep, std::uint64_t turn) {
    begin_call();
    const auto wrong = [&](const Sequence& held, float least) {
      const std::size_t common = common_elements(held.content(), path);
      if (held.born >= turn || common <= keep) return false;
      return static_cast<float>(common) >= least * static_cast<float>(held.known);
    };
    for (Slot& slot : slots_) {
      if (!slot.busy && wrong(slot.holds, 0)) cut(slot.holds, keep);
    }
    for (std::size_t i = 0; i < ram_.size();) {
      if (wrong(ram_[i], kLeastKept)) erase(i);
      else ++i;
    }
  }

  /// returns: tokens that such a request would find if it came now, by the same rules. Where no slot is free it waits: then, what it would
  /// find once those before it have had their turn, each as long as the others. threads: any that may read. alloc: only where it waits.
  [[nodiscard]] std::int64_t would_find(const View& prompt) const {
    if (prompt.tokens <= 0) return 0;
    if (all_busy()) return would_find_later(prompt);
    bool use_ram = true;
    const Slot* slot = most_similar(prompt, use_ram);
    if (slot == nullptr) slot = least_recently_used();
    View held = slot->holds.view();
    if (use_ram) {
      if (const std::size_t best = best_entry(held, prompt, pushed_out(slot->holds)); best != ram_.size())
        held = ram_[best].view();
    }
    return std::min(common(held, prompt), prompt.tokens - 1);
  }

  /// returns: the prompt that runs, or waits, under that key; nullptr: none does.
  [[nodiscard]] const Sequence* prompt(std::uint64_t key) const noexcept {
    if (const Slot* slot = slot_of(key); slot != nullptr) return &slot->holds;
    for (const Waiting& waiting : deferred_) {
      if (waiting.key == key) return &waiting.prompt;
    }
    return nullptr;
  }
  [[nodiscard]] bool running(std::uint64_t key) const noexcept { return slot_of(key) != nullptr; }
  /// Only for a key that is running: what it found, and the turn at which it started.
  [[nodiscard]] std::int64_t found(std::uint64_t key) const noexcept { return slot_of(key)->found; }
  [[nodiscard]] std::uint64_t started(std::uint64_t key) const noexcept { return slot_of(key)->started; }

  /// Sequences that left RAM, and that came there, in the last call; one may have done both. What slots show is seen by comparing
  /// visible() before and after.
  [[nodiscard]] std::span<const Sequence> left() const noexcept { return left_; }
  [[nodiscard]] std::span<const Sequence> saved() const noexcept { return saved_; }
  [[nodiscard]] std::size_t slots() const noexcept { return slots_.size(); }
  [[nodiscard]] bool all_busy() const noexcept { return busy_ == slots_.size(); }
  [[nodiscard]] std::size_t deferred() const noexcept { return deferred_.size(); }
  [[nodiscard]] std::span<const Sequence> ram() const noexcept { return ram_; }
  /// What a request that comes now could find in that slot: nothing in a busy one, unless all are. Then it waits, and finds what one of
  /// them will hold.
  [[nodiscard]] const Sequence* visible(std::size_t slot) const noexcept {
    const Slot& s = slots_[slot];
    return (s.busy && !all_busy()) || s.holds.empty() ? nullptr : &s.holds;
  }
  template <class Visit>
  void for_each_key(Visit&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.busy) visit(slot.key);
    }
    for (const Waiting& waiting : deferred_) visit(waiting.key);
  }

  [[nodiscard]] std::size_t common_elements(std::span<const Element> a, std::span<const Element> b) const noexcept {
    const std::size_t count = std::min(a.size(), b.size());
    if constexpr (std::is_same_v<Element, BlockHash>) {
      return compare_(a.data(), b.data(), count);
    } else {
      return static_cast<std::size_t>(
          std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin()).first - a.begin());
    }
  }

 private:
  struct Slot {
    Sequence holds, before;
    std::uint64_t key = 0, last_used = 0, started = 0;  // last_used: 0 = never
    std::int64_t found = 0;
    bool busy = false;
  };
  struct Waiting {
    std::uint64_t key;
    Sequence prompt;
  };
  static constexpr float kLeastKept = 0.25F;  // of an entry in RAM, or it is not looked at
  static constexpr float kWellKept = 0.5F;    // of a slot, or it is saved before its tail goes

  /// Tokens that two sequences share. Where all that is known of one begins the other, it is taken for its continuation: a conversation's
  /// next turn holds the last one's rest of a block and its answer.
  [[nodiscard]] std::int64_t common(const View& a, const View& b) const noexcept {
    const std::size_t k = common_elements(a.content, b.content);
    const std::int64_t most = std::min(a.tokens, b.tokens);
    if (k == 0) return 0;
    if (k == std::min(a.content.size(), b.content.size())) return most;
    return std::min(most, static_cast<std::int64_t>(k) * b.tokens_per_element_milli / 1'000);
  }
  // Single precision, as the engine compares: two shares may tie that differ.
  [[nodiscard]] static float share(std::int64_t part, std::int64_t whole) noexcept {
    return static_cast<float>(part) / static_cast<float>(whole);
  }

  void begin_call() noexcept {
    left_.clear();
    saved_.clear();
  }

  // On a copy. A long queue is not played to its end: those behind the first few are as good as unknown.
  [[nodiscard]] std::int64_t would_find_later(const View& prompt) const {
    constexpr std::uint64_t kOurs = ~std::uint64_t{0};
    constexpr std::size_t kMostPlayed = 8;
    SlotCache future = *this;
    if (future.deferred_.size() > kMostPlayed) future.deferred_.resize(kMostPlayed);
    future.deferred_.push_back({kOurs, Sequence(prompt.content, prompt.tokens, prompt.tokens_per_element_milli)});
    while (!future.running(kOurs)) {
      const Slot* first = future.longest_running();
      future.finish(first->key, first->holds);
    }
    return future.found(kOurs);
  }

  std::int64_t start(std::uint64_t key, Sequence prompt) {
    prompt.tokens = std::max<std::int64_t>(1, prompt.tokens);
    bool use_ram = false;
    auto* slot = const_cast<Slot*>(most_similar(prompt.view(), use_ram));
    if (slot == nullptr) slot = const_cast<Slot*>(least_recently_used());
    slot->before = slot->holds;
    if (use_ram && options_.ram_bytes != 0) {
      save(slot->holds);
      load(slot->holds, prompt);
      bound_tokens();
    }
    slot->found =
        std::min(common(slot->holds.view(), prompt.view()), prompt.tokens - 1);  // the last token is always computed
    slot->holds = std::move(prompt);
    slot->key = key;
    slot->busy = true;
    slot->started = ++turn_;
    ++busy_;
    if (options_.save_idle && options_.ram_bytes != 0) save_idle();
    return slot->found;
  }

  /// returns: nullptr where none is similar enough. `use_ram`: the slot would lose much, so RAM is searched for something better.
  const Slot* most_similar(const View& prompt, bool& use_ram) const noexcept {
    const Slot* best = nullptr;
    float best_share = 0;
    for (const Slot& slot : slots_) {
      if (slot.busy || slot.holds.empty()) continue;
      const float similar = similarity(slot, prompt);
      if (similar <= best_share) continue;
      best = &slot;
      best_share = similar;
    }
    use_ram = best == nullptr || loses_much(*best, prompt, best_share);
    return best;
  }
  /// returns: 0 for what is not similar enough.
  [[nodiscard]] float similarity(const Slot& slot, const View& prompt) const noexcept {
    const float similar = share(common(slot.holds.view(), prompt), prompt.tokens);
    return options_.similarity != 0 && similar > options_.similarity ? similar : 0;
  }
  [[nodiscard]] static bool loses_much(const Slot& slot, const View& prompt, float similar) noexcept {
    return similar * static_cast<float>(prompt.tokens) / static_cast<float>(slot.holds.tokens) < kWellKept;
  }
  [[nodiscard]] const Slot* least_recently_used() const noexcept {
    const Slot* best = nullptr;
    for (const Slot& slot : slots_) {  // the last of equals
      if (!slot.busy && (best == nullptr || slot.last_used <= best->last_used)) best = &slot;
    }
    return best;
  }
  [[nodiscard]] const Slot* longest_running() const noexcept {
    const Slot* best = nullptr;
    for (const Slot& slot : slots_) {
      if (slot.busy && (best == nullptr || slot.started < best->started)) best = &slot;
    }
    return best;
  }

  void save_idle() {
    for (Slot& slot : slots_) {
      if (slot.busy || slot.holds.empty()) continue;
      if (save(slot.holds)) bound_tokens();
      if (options_.unified) slot.holds = {};
    }
  }
  bool save(const Sequence& s) {
    if (s.empty()) return false;
    for (const Sequence& entry : ram_) {
      if (common(entry.view(), s.view()) == s.tokens) return false;
    }
    const std::int64_t size = bytes(s);
    if (options_.ram_bytes > 0 && size > options_.ram_bytes) return false;
    for (std::size_t i = 0; i < ram_.size();) {
      if (common(s.view(), ram_[i].view()) == ram_[i].tokens) erase(i);
      else ++i;
    }
    while (options_.ram_bytes > 0 && !ram_.empty() && ram_bytes_ + size > options_.ram_bytes) erase(0);
    ram_.push_back(s);
    saved_.push_back(s);
    ram_bytes_ += size;
    ram_tokens_ += s.tokens;
    return true;
  }
  /// returns: the entry that beats what the slot holds, and every entry before it, in both shares; ram_.size(): none does.
  [[nodiscard]] std::size_t best_entry(const View& slot, const View& prompt, std::size_t first = 0) const noexcept {
    const std::int64_t common_now = common(slot, prompt);
    float kept = slot.tokens == 0 ? -1.0F : share(common_now, slot.tokens), similar = share(common_now, prompt.tokens);
    std::size_t best = ram_.size();
    for (std::size_t i = first; i < ram_.size(); ++i) {
      const std::int64_t shared = common(ram_[i].view(), prompt);
      const float keeps = share(shared, ram_[i].tokens), resembles = share(shared, prompt.tokens);
      if (keeps < kLeastKept || keeps <= kept || resembles <= similar) continue;
      kept = keeps;
      similar = resembles;
      best = i;
    }
    return best;
  }
  /// returns: how many entries, from the oldest on, would go to make room for `s`.
  [[nodiscard]] std::size_t pushed_out(const Sequence& s) const noexcept {
    const std::int64_t size = bytes(s);
    std::int64_t total = ram_bytes_ + size;
    if (options_.ram_bytes <= 0 || s.empty() || size > options_.ram_bytes || total <= options_.ram_bytes) return 0;
    const auto begins = [&](const Sequence& entry) { return common(s.view(), entry.view()) == entry.tokens; };
    for (const Sequence& entry : ram_) {
      if (common(entry.view(), s.view()) == s.tokens) return 0;
      if (begins(entry)) total -= bytes(entry);
    }
    std::size_t gone = 0;
    for (; gone < ram_.size() && total > options_.ram_bytes; ++gone) {
      if (!begins(ram_[gone])) total -= bytes(ram_[gone]);
    }
    return gone;
  }
  // Moved, not copied: an entry that shares but the system prompt is used up.
  void load(Sequence& slot, const Sequence& prompt) {
    const std::size_t best = best_entry(slot.view(), prompt.view());
    if (best == ram_.size()) return;
    slot = ram_[best];
    erase(best);
  }
  void bound_tokens() {
    if (options_.context_tokens <= 0) return;
    const float mean =
        std::max(1.0F, static_cast<float>(ram_bytes_) / static_cast<float>(std::max<std::int64_t>(1, ram_tokens_)));
    const auto fits = static_cast<std::int64_t>(static_cast<float>(options_.ram_bytes) / mean);
    const std::int64_t most =
        options_.ram_bytes > 0 ? std::max(options_.context_tokens, fits) : options_.context_tokens;
    while (!ram_.empty() && ram_tokens_ > most) erase(0);
  }
  void erase(std::size_t entry) {
    ram_bytes_ -= bytes(ram_[entry]);
    ram_tokens_ -= ram_[entry].tokens;
    left_.push_back(std::move(ram_[entry]));
    ram_.erase(ram_.begin() + static_cast<std::ptrdiff_t>(entry));
  }
  static void cut(Sequence& s, std::size_t keep) noexcept {
    s.known = keep;
    s.tokens = static_cast<std::int64_t>(keep) * s.tokens_per_element_milli / 1'000;
    if (s.tokens == 0) s = {};
  }
  [[nodiscard]] std::int64_t bytes(const Sequence& s) const noexcept {
    return s.tokens * options_.bytes_per_token + options_.bytes_per_sequence;
  }

  [[nodiscard]] const Slot* slot_of(std::uint64_t key) const noexcept {
    for (const Slot& slot : slots_) {
      if (slot.busy && slot.key == key) return &slot;
    }
    return nullptr;
  }
  Slot* slot_of(std::uint64_t key) noexcept { return const_cast<Slot*>(std::as_const(*this).slot_of(key)); }
  Started release(Slot& slot) {
    slot.busy = false;
    slot.before = {};
    --busy_;
    if (deferred_.empty()) return {};
    Waiting next = std::move(deferred_.front());
    deferred_.erase(deferred_.begin());
    return {next.key, start(next.key, std::move(next.prompt))};
  }
  /// A request that is believed to wait was served: it came to the server before one that is believed to run. The youngest of those waits.
  Slot* overtaken_by(std::uint64_t key) {
    const auto waiting =
        std::find_if(deferred_.begin(), deferred_.end(), [key](const Waiting& w) { return w.key == key; });
    if (waiting == deferred_.end()) return nullptr;
    Slot* youngest = nullptr;
    for (Slot& slot : slots_) {
      if (slot.busy && (youngest == nullptr || slot.started > youngest->started)) youngest = &slot;
    }
    std::swap(waiting->key, youngest->key);
    std::swap(waiting->prompt, youngest->holds);
    std::rotate(deferred_.begin(), waiting, waiting + 1);
    return youngest;
  }

  SlotCacheOptions options_;
  std::vector<Slot> slots_;
  std::vector<Sequence> ram_;  // oldest first
  std::vector<Waiting> deferred_;
  std::vector<Sequence> left_, saved_;
  std::size_t busy_ = 0;
  std::uint64_t turn_ = 0;
  std::int64_t ram_bytes_ = 0, ram_tokens_ = 0;
  CommonPrefix compare_ = common_prefix_kernel();
};

}  // namespace warmroute::detail
