/// What one llama.cpp server holds, as its own rules move it: slots in front of whole sequences in RAM (see prefix/slot_residency.hpp).
/// One algorithm over two grains: token ids, where it is exact, and block hashes, which is what a router knows of a prompt.
/// Invariant: a busy slot is nobody else's to find; a sequence leaves `visible` places only by what left() names.
/// Does not: know time. Requests come in the order in which the server takes them. alloc: a sequence is shared, never copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "warmroute/prefix/detail/compare.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// A server's settings, as its command line says them. The defaults are those of `llama-server` without any.
struct SlotCacheOptions {
  std::uint32_t slots = 4;           ///< --parallel
  bool unified = true;               ///< --kv-unified; with --parallel given it is off unless asked for
  bool save_idle = true;             ///< --cache-idle-slots
  std::int64_t ram_bytes = 65'536;   ///< --cache-ram; 0 = no RAM cache, negative = no limit
  std::int64_t bytes_per_token = 1;  ///< of a saved state; 1: `ram_bytes` counts tokens
  std::int64_t bytes_per_sequence = 0;
  std::int64_t context_tokens = 0;  ///< --ctx-size, of all slots: RAM may always hold that many tokens
  float similarity = 0.1F;          ///< --slot-prompt-similarity; 0 = slots are taken in turn
};

namespace detail {

/// Leading elements whose content is known, and the length of the whole in tokens. Behind them lies what nobody told: the part of a block,
/// an answer. In token grain there is no such rest: an element is a token.
template <class Element>
struct SlotSequence {
  std::shared_ptr<const std::vector<Element>> elements;
  std::size_t known = 0;  // of elements
  std::int64_t tokens = 0;
  std::int64_t tokens_per_element_milli = 1'000;
  std::uint64_t born = 0;  // turn at which it was complete

  SlotSequence() = default;
  SlotSequence(std::span<const Element> content, std::int64_t token_count, std::int64_t milli = 1'000)
      : elements(std::make_shared<const std::vector<Element>>(content.begin(), content.end())),
        known(content.size()),
        tokens(token_count),
        tokens_per_element_milli(milli) {}
  [[nodiscard]] std::span<const Element> content() const noexcept {
    return known == 0 ? std::span<const Element>{} : std::span<const Element>{elements->data(), known};
  }
  [[nodiscard]] bool empty() const noexcept { return tokens == 0; }
  [[nodiscard]] bool same_as(const SlotSequence& o) const noexcept {
    return elements == o.elements && known == o.known;
  }
};

template <class Element>
class SlotCache {
 public:
  using Sequence = SlotSequence<Element>;
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
  [[nodiscard]] std::int64_t common(const Sequence& a, const Sequence& b) const noexcept {
    const std::size_t k = common_elements(a.content(), b.content());
    const std::int64_t most = std::min(a.tokens, b.tokens);
    if (k == 0) return 0;
    if (k == std::min(a.known, b.known)) return most;
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

  std::int64_t start(std::uint64_t key, Sequence prompt) {
    prompt.tokens = std::max<std::int64_t>(1, prompt.tokens);
    bool use_ram = false;
    Slot* slot = most_similar(prompt, use_ram);
    if (slot == nullptr) {
      slot = least_recently_used();
      use_ram = true;
    }
    slot->before = slot->holds;
    if (use_ram && options_.ram_bytes != 0) {
      save(slot->holds);
      load(slot->holds, prompt);
      bound_tokens();
    }
    slot->found = std::min(common(slot->holds, prompt), prompt.tokens - 1);  // the last token is always computed
    slot->holds = std::move(prompt);
    slot->key = key;
    slot->busy = true;
    slot->started = ++turn_;
    ++busy_;
    if (options_.save_idle && options_.ram_bytes != 0) save_idle();
    return slot->found;
  }

  Slot* most_similar(const Sequence& prompt, bool& use_ram) {
    Slot* best = nullptr;
    float best_share = 0;
    if (options_.similarity == 0) return nullptr;
    for (Slot& slot : slots_) {
      if (slot.busy || slot.holds.empty()) continue;
      const float similar = share(common(slot.holds, prompt), prompt.tokens);
      if (similar <= best_share || similar <= options_.similarity) continue;
      best = &slot;
      best_share = similar;
    }
    if (best != nullptr)
      use_ram = best_share * static_cast<float>(prompt.tokens) / static_cast<float>(best->holds.tokens) < kWellKept;
    return best;
  }
  Slot* least_recently_used() noexcept {
    Slot* best = nullptr;
    for (Slot& slot : slots_) {  // the last of equals
      if (!slot.busy && (best == nullptr || slot.last_used <= best->last_used)) best = &slot;
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
      if (common(entry, s) == s.tokens) return false;
    }
    const std::int64_t size = bytes(s);
    if (options_.ram_bytes > 0 && size > options_.ram_bytes) return false;
    for (std::size_t i = 0; i < ram_.size();) {
      if (common(s, ram_[i]) == ram_[i].tokens) erase(i);
      else ++i;
    }
    while (options_.ram_bytes > 0 && !ram_.empty() && ram_bytes_ + size > options_.ram_bytes) erase(0);
    ram_.push_back(s);
    saved_.push_back(s);
    ram_bytes_ += size;
    ram_tokens_ += s.tokens;
    return true;
  }
  // Moves the entry into the slot that beats it, and every entry before, in both shares.
  void load(Sequence& slot, const Sequence& prompt) {
    const std::int64_t common_now = common(slot, prompt);
    float kept = slot.empty() ? -1.0F : share(common_now, slot.tokens), similar = share(common_now, prompt.tokens);
    std::size_t best = ram_.size();
    for (std::size_t i = 0; i < ram_.size(); ++i) {
      const std::int64_t shared = common(ram_[i], prompt);
      const float keeps = share(shared, ram_[i].tokens), resembles = share(shared, prompt.tokens);
      if (keeps < kLeastKept || keeps <= kept || resembles <= similar) continue;
      kept = keeps;
      similar = resembles;
      best = i;
    }
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

}  // namespace detail
}  // namespace warmroute
