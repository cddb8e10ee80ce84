/// What one replica's requests say of its speed: turns first tokens and ends into samples for its kind (learned_rates.hpp), and keeps by how
/// much this replica is slower than its kind.
///
/// Two equations in the four rates. Prefill: engines take prompts in turn, so from the moment a prompt comes to a replica that prefills
/// nothing until no prompt is left, all tokens and attention pairs in between were computed; long stretches are cut after some prompts.
/// Decode: from a request's first token to its end passed as many steps as it has output tokens, and the prefills of others.
/// Invariant: a stretch in which a request failed, ended without a first token, or was missed teaches nothing.
/// Does not: wait. A call that finds another one at work on the same replica only spoils the stretch.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "warmroute/replica/load.hpp"
#include "warmroute/route/detail/learned_rates.hpp"
#include "warmroute/types.hpp"

namespace warmroute::detail {

/// What a ticket keeps for it, from its routing on.
struct PaceNote {
  RateLearner* learner = nullptr;  // of the replica's kind; null: nothing is to be learned of this request
  std::uint32_t generation = 0;    // of the learner: what it was declared for since is another kind
  bool alone = false;              // no other prompt waited there
  bool beside_decodes = false;     // a step of others was in progress
  std::int64_t transfer_ns = 0;    // loading from lower tiers, as declared
  std::int64_t kilopairs = 0;      // attention pairs of its prefill, in thousands
  // At its first token:
  std::int64_t first_at = 0;
  std::int64_t context = 0;  // tokens that decodes there attend to
  std::int64_t tokens = 0;   // prefilled there in all
  std::int64_t all_kilopairs = 0;
  std::int64_t steps = 0;

  [[nodiscard]] bool learns() const noexcept { return learner != nullptr && learner->generation() == generation; }
};

/// units: thousands of (new token, attended token) pairs, as Rates::prefill_ns counts them.
constexpr std::int64_t kilopairs_of(std::int64_t input_tokens, std::int64_t cached_tokens) noexcept {
  return input_tokens * (input_tokens + 1) / 2'000 - cached_tokens * (cached_tokens + 1) / 2'000;
}

/// Tokens that the decodes of a replica attend to: prompts that wait are in its books, too.
inline std::int64_t decode_context(const LoadBook& book) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::int64_t requests = std::max<std::int64_t>(1, book.requests.load(relaxed));
  const std::int64_t decoding = std::clamp<std::int64_t>(book.decoding.load(relaxed), 0, requests);
  return std::clamp<std::int64_t>(book.context_tokens.load(relaxed), 0, 1'000'000'000) * decoding / requests;
}

/// threads: any.
class ReplicaPace {
 public:
  struct Prompt {
    ReplicaId replica;
    std::int64_t routed_at = 0;
    std::int64_t new_tokens = 0;
  };

  /// A first token came. The book has counted it as decoding already.
  void first_token(const Prompt& prompt, PaceNote& note, LoadBook& book, std::int64_t now) noexcept {
    if (!note.learns()) return;
    const TryLock lock(busy_);
    if (!lock.held()) return missed_.store(true, std::memory_order_relaxed);
    begin_call(prompt.replica, book);
    const Rates rates = note.learner->estimate();
    const bool same_step = between(last_at_, now) < rates.floor_ns / 4;
    note.first_at = now;
    note.context = decode_context(book);
    if (!same_step && open_ && prompts_ >= kPromptsPerStretch) {
      close(note, book, last_at_);
      open(last_at_, false);
    }
    if (!open_) {
      if (note.alone) open(prompt.routed_at, note.beside_decodes);
      else if (follows_) open(last_at_, false);
    }
    count(prompt.new_tokens, note.kilopairs, !same_step);
    transfer_ns_ += note.transfer_ns;
    ++prompts_;
    last_at_ = now;
    follows_ = book.requests.load(std::memory_order_relaxed) > book.decoding.load(std::memory_order_relaxed);
    if (open_ && !follows_) close(note, book, now);
    note.tokens = tokens_;
    note.all_kilopairs = kilopairs_;
    note.steps = steps_;
  }

  /// It is over, with an answer of so many tokens. Before its load is released.
  void finished(ReplicaId replica, const PaceNote& note, LoadBook& book, std::int64_t output_tokens,
                std::int64_t now) noexcept {
    if (output_tokens <= kFewestSteps || output_tokens > 10'000'000) return;
    const std::int64_t steps = output_tokens - 1;
    if (!note.learns() || note.first_at == 0) return;
    const TryLock lock(busy_);
    if (!lock.held()) return;
    begin_call(replica, book);
    const Rates declared = note.learner->declared();
    const Rates rates = note.learner->estimate();
    const std::int64_t batch = book.decoding.load(std::memory_order_relaxed);
    const std::int64_t alone = std::max<std::int64_t>(0, steps - (steps_ - note.steps));  // without a prefill in them
    RateSample sample;
    sample.kind = RateSample::Kind::decode;
    sample.observed_ns = between(note.first_at, now);
    sample.part_ns = prefill_parts(declared, tokens_ - note.tokens, kilopairs_ - note.all_kilopairs);
    if (rates.token_ps * std::clamp<std::int64_t>(batch, 1, 4'096) / 1'000 > rates.floor_ns) {
      sample.part_ns[RateSample::token] += alone * (declared.token_ps * batch / 1'000);
    } else {
      sample.part_ns[RateSample::floor] += alone * declared.floor_ns;
    }
    sample.part_ns[RateSample::floor] += steps * declared.overhead_ns;
    const std::int64_t context = (note.context + decode_context(book)) / 2;
    sample.part_ns[RateSample::context] = declared.context_ps * context / 1'000 * steps;
    learn(*note.learner, sample, book);
  }

  /// A request left its prefill otherwise: how much of it was computed is not known.
  void broke_off(const PaceNote& note) noexcept {
    if (note.learner != nullptr) missed_.store(true, std::memory_order_relaxed);
  }

  /// returns: by how much it is slower than its kind, units 2^-20; 0: nothing was learned of that replica. threads: the control side alone.
  [[nodiscard]] std::int64_t slowness(ReplicaId replica) const noexcept;
  /// Begins with it, unless it has learned of that replica. returns: whether it does. threads: the control side alone.
  bool begin_with(ReplicaId replica, std::int64_t slowness, LoadBook& book) noexcept;

 private:
  static constexpr std::int64_t kPromptsPerStretch = 4;
  static constexpr std::int64_t kFewestSteps = 16;
  static constexpr int kSharedFor = 32;  // calls
  static constexpr std::int64_t kOne = RateLearner::kOne;
  static constexpr std::int64_t kFine = 1'024;  // steps of slowness_ in one of kOne

  // -1 of a clock that went back or leapt: no sample (RateLearner::observe).
  static std::int64_t between(std::int64_t earlier, std::int64_t later) noexcept {
    std::int64_t passed = 0;
    return __builtin_sub_overflow(later, earlier, &passed) || passed < 0 ? -1 : passed;
  }
  void begin_call(ReplicaId replica, LoadBook& book) noexcept {
    if (replica != replica_) {
      replica_ = replica;
      slowness_ = kOne * kFine;
      open_ = follows_ = false;
      last_at_ = 0;
      book.slowness.store(kOne, std::memory_order_relaxed);
    }
    const std::int64_t foreign = book.foreign_requests.load(std::memory_order_relaxed);
    shared_ = foreign * 8 > book.requests.load(std::memory_order_relaxed) ? kSharedFor : std::max(0, shared_ - 1);
    if (missed_.load(std::memory_order_relaxed)) {
      missed_.store(false, std::memory_order_relaxed);
      open_ = follows_ = false;
    }
  }
  void open(std::int64_t at, bool beside_decodes) noexcept {
    open_ = true;
    beside_decodes_ = beside_decodes;
    opened_at_ = at;
    from_tokens_ = tokens_;
    from_kilopairs_ = kilopairs_;
    from_steps_ = steps_;
    transfer_ns_ = prompts_ = 0;
  }
  void count(std::int64_t tokens, std::int64_t kilopairs, bool step) noexcept {
    tokens_ += tokens;
    kilopairs_ += kilopairs;
    steps_ += step ? 1 : 0;
  }
  static std::array<std::int64_t, RateSample::kParts> prefill_parts(const Rates& declared, std::int64_t tokens,
                                                                    std::int64_t kilopairs) noexcept {
    constexpr std::int64_t most = 4 * Rates::kMaxTokens;
    return {0, declared.token_ps * std::clamp<std::int64_t>(tokens, 0, most) / 1'000,
            declared.pair_ps * std::clamp<std::int64_t>(kilopairs, 0, 100'000'000'000), 0};
  }
  // With a step of others in progress when the first prompt came, it began half such a step later.
  void close(const PaceNote& note, LoadBook& book, std::int64_t at) noexcept {
    open_ = false;
    const Rates declared = note.learner->declared();
    const Rates rates = note.learner->estimate();
    const std::int64_t tokens = tokens_ - from_tokens_;
    const std::int64_t steps = std::max<std::int64_t>(1, steps_ - from_steps_);
    RateSample sample;
    sample.observed_ns = between(opened_at_, at) - transfer_ns_;
    sample.part_ns = prefill_parts(declared, tokens, kilopairs_ - from_kilopairs_);
    std::int64_t floors = 0;
    if (rates.token_ps * (tokens / steps) / 1'000 < rates.floor_ns) {
      sample.part_ns[RateSample::token] = 0;
      floors = steps;
    }
    const std::int64_t halves = 2 * steps + (beside_decodes_ ? 1 : 0);  // of steps
    sample.part_ns[RateSample::floor] =
        (2 * floors + (beside_decodes_ ? 1 : 0)) * declared.floor_ns / 2 + halves * declared.overhead_ns / 2;
    sample.part_ns[RateSample::context] = declared.context_ps * note.context / 1'000 * halves / 2;
    learn(*note.learner, sample, book);
  }
  // A thirty-second of what it was off, and back towards its kind by far less: kind and replica do not drift against one another.
  void learn(RateLearner& learner, const RateSample& sample, LoadBook& book) noexcept {
    if (shared_ > 0) return;
    const std::int64_t off = learner.observe(sample, slowness_ / kFine);
    slowness_ += slowness_ / kOne * off / 32 - (slowness_ - kOne * kFine) / 512;
    slowness_ = std::clamp(slowness_, kOne * kFine / 4, kOne * kFine * 4);
    publish(book);
  }
  void publish(LoadBook& book) const noexcept {
    const std::int64_t slowness = slowness_ / kFine;
    // Between equal replicas ties are drawn; noise must not decide them.
    const std::int64_t used = book.slowness.load(std::memory_order_relaxed);
    const std::int64_t apart = std::abs(slowness - kOne);
    const std::int64_t next = apart > (used == kOne ? kOne / 6 : kOne / 10) ? slowness : kOne;
    if (next != used) book.slowness.store(static_cast<std::int32_t>(next), std::memory_order_relaxed);
  }

  mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::atomic<bool> missed_{false};
  bool open_ = false;     // a stretch is
  bool follows_ = false;  // prompts were left at last_at_
  bool beside_decodes_ = false;
  ReplicaId replica_ = kNoReplica;
  int shared_ =
      0;  // calls to come that teach nothing: its engine tells of other routers' requests, which take time, too
  std::int64_t slowness_ = kOne * kFine;
  std::int64_t last_at_ = 0;  // of the last first token
  std::int64_t opened_at_ = 0;
  std::int64_t tokens_ = 0;  // prefilled in all
  std::int64_t kilopairs_ = 0;
  std::int64_t steps_ = 0;  // that gave a first token, at least
  std::int64_t from_tokens_ = 0;
  std::int64_t from_kilopairs_ = 0;
  std::int64_t from_steps_ = 0;
  std::int64_t transfer_ns_ = 0;
  std::int64_t prompts_ = 0;
};

}  // namespace warmroute::detail
