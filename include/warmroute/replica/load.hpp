/// What a replica has to do: this process's own books, and what the engine last said of itself.
/// Own books are exact and immediate (every ticket is in them); engine signals are late, each with its own age.
/// Invariant: every booked amount is released exactly once, by the ticket that booked it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "warmroute/replica/fading_sum.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// How fast one replica's hardware is. A step of the engine takes max(floor, token * T) + pair * P + context * C + overhead
/// for T tokens, P (new token, earlier token) pairs of causal attention and C attended tokens of decodes.
/// units: nanoseconds and picoseconds. Integers, so that equal inputs give equal decisions everywhere.
struct Rates {                           // the defaults are an 8B model on one H100; declare your own hardware
  std::int64_t floor_ns = 6'700'000;     ///< F: the shortest step
  std::int64_t token_ps = 24'000'000;    ///< a: one more token in a step
  std::int64_t pair_ps = 1'300;          ///< b: one (new token, earlier token) pair
  std::int64_t context_ps = 56'000;      ///< k: one token of context of a decode
  std::int64_t overhead_ns = 1'000'000;  ///< o: of the host, per step

  friend bool operator==(const Rates&, const Rates&) noexcept = default;

  /// Prefill time of the first `tokens` tokens of a prompt: a*x + b*x(x+1)/2.
  /// The time of the tokens behind a match m is prefill_ns(in) - prefill_ns(m): attention pairs are exact, independent of chunking.
  /// Tokens and result are clipped at kMaxTokens and kMaxNs, so that no product of the cost formula overflows.
  [[nodiscard]] constexpr std::int64_t prefill_ns(std::int64_t tokens) const noexcept {
    const std::int64_t x = tokens < 0 ? 0 : tokens > kMaxTokens ? kMaxTokens : tokens;
    const std::int64_t ns = (token_ps * x) / 1'000 + pair_ps * (x * (x + 1) / 2 / 1'000);
    return ns < kMaxNs ? ns : kMaxNs;
  }
  static constexpr std::int64_t kMaxTokens = 16'000'000;
  static constexpr std::int64_t kMaxNs = 10'000'000'000'000;  // 10^4 s
};

/// Signals an engine reports about itself. Numbers are fixed and only appended.
enum class Signal : std::uint8_t {
  running = 0,         ///< requests in its batch
  waiting = 1,         ///< requests in its queue
  kv_usage = 2,        ///< share of KV blocks that running requests hold, 0..1
  block_tokens = 3,    ///< tokens per KV block
  block_count = 4,     ///< KV blocks in all
  prefix_queries = 5,  ///< counter: tokens (or blocks) looked up in its prefix cache
  prefix_hits = 6,     ///< counter: of those, found
  waiting_tokens =
      7,  ///< prompt tokens still to compute: uncached ones of its queue, and what is left of those in its batch
};
inline constexpr std::size_t kSignalCount = 8;

/// One signal's last value and when it was taken.
struct SignalReading {
  double value = 0;
  Nanos at{0};
  bool known = false;
};

/// What an engine's prefix cache has been asked for since the engine's start, as one page says it.
struct PrefixCounters {
  std::int64_t queries = 0;  ///< tokens (or blocks) looked up
  std::int64_t hits = 0;     ///< of those, found
  bool in_blocks = false;    ///< the engine counts blocks, not tokens
  bool shared = false;  ///< it counts all data-parallel ranks of its page together: this replica's part cannot be told
};

/// What those counters gained since the router first saw them; an engine's restart loses nothing of it.
struct PrefixGains {
  PrefixCounters gained;
  bool known = false;  ///< there were two readings; with one alone nothing can be said of the time between
  Nanos at{0};         ///< of the last reading
};

/// Follows one replica's counters. One that fell is an engine that began anew: all it counts is new. Counting begins with the first
/// reading, and again with one in another unit. threads: one at a time.
class PrefixBook {
 public:
  void read(const PrefixCounters& now_read, Nanos now) noexcept {
    PrefixCounters& sum = gains_.gained;
    if (!seen_ || last_.in_blocks != now_read.in_blocks || last_.shared != now_read.shared) {
      gains_ = {};
      sum.in_blocks = now_read.in_blocks;
      sum.shared = now_read.shared;
    } else {
      const bool anew = now_read.queries < last_.queries || now_read.hits < last_.hits;
      sum.queries += now_read.queries - (anew ? 0 : last_.queries);
      sum.hits += now_read.hits - (anew ? 0 : last_.hits);
      gains_.known = true;
    }
    gains_.at = now;
    last_ = now_read;
    seen_ = true;
  }
  [[nodiscard]] const PrefixGains& gains() const noexcept { return gains_; }

 private:
  PrefixCounters last_;
  PrefixGains gains_;
  bool seen_ = false;
};

/// What one replica's KV cache is asked for and what fills it. Atomics of one cache line: read where a replica is priced in full.
/// threads: any.
struct alignas(64) CacheBook {
  std::atomic<std::int64_t> input_tokens{0};     ///< of the requests whose prefill ended there
  std::atomic<std::int64_t> matched_tokens{0};   ///< of those, what was matched when they were routed
  std::atomic<std::int64_t> kv_at{0};            ///< ns; when the engine last said how full its cache is; 0 = never
  std::atomic<std::int32_t> kv_permille{0};      ///< share of KV blocks in use
  std::atomic<std::int64_t> held_tokens{0};      ///< of prompts in flight; what several of them share counts once
  std::atomic<std::int64_t> capacity_tokens{0};  ///< as the engine or the spec says; 0 = unknown
  FadingSum turnover;  ///< millionths of the capacity, computed anew of late: it came in, and pushed others out

  /// How much of the capacity prompts will have filled anew: `tokens` more.
  void fill(std::int64_t tokens, std::int64_t now_ns) noexcept {
    const std::int64_t capacity = capacity_tokens.load(std::memory_order_relaxed);
    if (capacity > 0) turnover.add(std::min(tokens, kMostTokens) * 1'000'000 / capacity, now_ns);
  }
  /// Of a new tenant nothing is known; what is in flight there is the books' own.
  void clear() noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    input_tokens.store(0, relaxed);
    matched_tokens.store(0, relaxed);
    kv_at.store(0, relaxed);
    capacity_tokens.store(0, relaxed);
    turnover.clear();
  }

 private:
  static constexpr std::int64_t kMostTokens = 1'000'000'000'000;
};
static_assert(sizeof(CacheBook) == 64);

/// Prefill work that is still to do, ns, of `pending` booked for `prompts` prompts. Engines take prompts in turn, so the first of them has been
/// worked on since the last first token (`since`); how much of it is done is not known until its own: no more than the mean of them is counted.
/// The division that this takes is made only where that limits: each replica is read for each decision.
inline std::int64_t still_pending(std::int64_t pending, std::int64_t prompts, std::int64_t since,
                                  std::int64_t now) noexcept {
  const std::int64_t worked = prompts > 0 ? std::max<std::int64_t>(0, now - since) : 0;
  std::int64_t of_all = 0;
  if (!__builtin_mul_overflow(worked, prompts, &of_all) && of_all <= pending) [[likely]]
    return pending - worked;
  return pending - pending / prompts;
}

/// One replica's books. Atomics of one cache line: scoring reads exactly this line per replica.
/// threads: any. Own dispatches since an engine's snapshot are always in here.
struct alignas(64) LoadBook {
  static constexpr std::int32_t kAsItsKind = 1'024;
  static constexpr std::int32_t kUntold = -1;

  std::atomic<std::int32_t> requests{0};        ///< in flight
  std::atomic<std::int32_t> decoding{0};        ///< of those, with first token out
  std::atomic<std::int64_t> pending_tokens{0};  ///< uncached input tokens whose first token has not come
  std::atomic<std::int64_t> pending_ns{0};      ///< the same as prefill time at the replica's rates
  std::atomic<std::int64_t> context_tokens{0};  ///< input tokens of the requests in flight
  std::atomic<std::int32_t> slowness{
      kAsItsKind};  ///< learned, against replicas of equal rates; 2 * kAsItsKind: half as quick
  std::atomic<std::int32_t> foreign_requests{0};  ///< what the engine reported beyond this router's own, at signal time
  std::atomic<std::int32_t> foreign_waiting{0};   ///< of those, in its queue
  std::atomic<std::int32_t> foreign_tokens{
      kUntold};  ///< prompt tokens that it reported beyond this router's own; kUntold where it reports none
  std::atomic<std::int64_t> signals_at{0};  ///< ns; 0 = never
  std::atomic<std::int64_t> prefill_since{
      0};  ///< ns; when a prompt's turn came last: at a first token, or when one came to nobody before it

  /// returns: still_pending of what is booked here.
  [[nodiscard]] std::int64_t pending_at(std::int64_t now) const noexcept {
    constexpr auto relaxed = std::memory_order_relaxed;
    const std::int64_t prompts = requests.load(relaxed) - decoding.load(relaxed);
    return still_pending(pending_ns.load(relaxed), prompts, prefill_since.load(relaxed), now);
  }
  /// returns: of pending_tokens, the same part as pending_at is of pending_ns; all of them where they take no time.
  [[nodiscard]] std::int64_t pending_tokens_at(std::int64_t now) const noexcept {
    const std::int64_t tokens = pending_tokens.load(std::memory_order_relaxed);
    const std::int64_t whole = pending_ns.load(std::memory_order_relaxed);
    if (whole <= 0) return tokens;
    const double part = static_cast<double>(pending_at(now)) / static_cast<double>(whole);
    return static_cast<std::int64_t>(static_cast<double>(tokens) * std::min(1.0, part));
  }
};
static_assert(sizeof(LoadBook) == 64);

/// A copy of one book, for statistics and explanations.
struct LoadReading {
  std::int64_t requests = 0;
  std::int64_t pending_tokens = 0;
  std::int64_t pending_ns = 0;
  std::int64_t context_tokens = 0;
  std::int64_t decoding = 0;
  std::int64_t foreign_requests = 0;
  std::int64_t foreign_waiting = 0;
  std::int64_t foreign_tokens = LoadBook::kUntold;
  Nanos signals_at{0};
};

inline LoadReading read(const LoadBook& book) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  return {book.requests.load(relaxed),        book.pending_tokens.load(relaxed), book.pending_ns.load(relaxed),
          book.context_tokens.load(relaxed),  book.decoding.load(relaxed),       book.foreign_requests.load(relaxed),
          book.foreign_waiting.load(relaxed), book.foreign_tokens.load(relaxed), Nanos{book.signals_at.load(relaxed)}};
}

}  // namespace warmroute
