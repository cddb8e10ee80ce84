/// What accounting does before the answer: asks OpenAI-shaped streams for their usage and hides that it asked, estimates
/// what a request will use, so that limits can reserve it, and decides what becomes of an upstream whose client is gone.
/// Invariants: a body is changed by one splice and is otherwise the client's to the byte; a stream loses the one event
/// that was asked for here and nothing else; estimates are never negative.
/// Does not: parse prompts (ingest/request_body.hpp), tokenize, hold connections, read a clock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "warmroute/result.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/usage.hpp"

namespace warmroute {

// ---------------------------------------------------------------- asking for usage

/// One change to a body: `removed` bytes at `offset` become `inserted`. None: both are empty.
struct BodySplice {
  std::size_t offset = 0;
  std::size_t removed = 0;
  std::string_view inserted{};  ///< lifetime: static

  [[nodiscard]] bool empty() const noexcept { return removed == 0 && inserted.empty(); }
};

/// What a chat or completions body needs so that its stream ends with usage.
struct UsageAsk {
  bool stream = false;  ///< the client wants a stream
  bool asked = false;   ///< the client asked for usage itself: nothing is changed, nothing may be hidden
  BodySplice splice;    ///< to be made; then the usage chunk is to be hidden (UsageChunkFilter)
};

/// For POST /v1/chat/completions and /v1/completions only; other APIs say their usage unasked, and servers refuse members
/// that they do not know. The body should have been checked before: only its outermost level is looked at.
/// errors: invalid_json, not_an_object, with an offset. alloc: none but for errors. cost: 15 us a MB and less.
Result<UsageAsk> ask_for_usage(std::string_view body);

/// The service tier that a body asks for: `service_tier` (OpenAI, Anthropic), or `serviceTier`'s `type` (Bedrock). Answers name the
/// tier that served, and engines none: MeterOptions::requested_tier. Of a body that was checked, as ask_for_usage.
/// returns: the word; empty: none is asked for, or it is no word. lifetime: of the body.
/// cost: one search for the member's name; where it is found, ask_for_usage's.
std::string_view requested_tier(std::string_view body) noexcept;

/// returns: the body with the splice made.
std::string spliced(std::string_view body, const BodySplice& splice);

/// Takes the usage chunk (`choices` empty, `usage` an object) out of an answer's stream of server-sent events. Feed the
/// meter before it. Everything else passes as it came; an event passes when its end has come, or sooner once it cannot
/// be that chunk any more. threads: one at a time. alloc: `out` grows; an event is held, 16 KiB at most.
class UsageChunkFilter {
 public:
  UsageChunkFilter();
  ~UsageChunkFilter();
  UsageChunkFilter(UsageChunkFilter&&) noexcept;
  UsageChunkFilter& operator=(UsageChunkFilter&&) noexcept;

  /// Appends to `out` what of the stream so far may go to the client. An answer that is no stream of events passes.
  void feed(std::string_view bytes, std::string& out);
  /// The stream ended: what was held, if it may go.
  void finish(std::string& out);
  [[nodiscard]] bool removed() const noexcept;  ///< whether the chunk came and was taken out
  void reset() noexcept;                        ///< for the next stream

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---------------------------------------------------------------- estimates

/// What to reserve for a request. units: tokens.
struct TokenEstimate {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  [[nodiscard]] std::int64_t total() const noexcept { return input_tokens + output_tokens; }
};

struct EstimateOptions {
  /// For the output where the request names no limit, or a larger one: what is reserved is not what is allowed.
  std::int64_t max_output_tokens = 4'096;
  /// Added to the learned mean, in percent: a reservation should rather be too large. Ids that are known are exact.
  std::int64_t margin_percent = 10;
};

/// Learns how many bytes of a model's prompts make a token, from what answers report. One per model or pool.
/// threads: any. alloc: none.
class TokenEstimator {
 public:
  TokenEstimator() noexcept = default;
  TokenEstimator(const TokenEstimator&) = delete;
  TokenEstimator& operator=(const TokenEstimator&) = delete;

  /// A request of so many prompt bytes (ParsedBody::prompt_bytes) was so many input tokens. Absurd pairs are ignored.
  void learn(std::int64_t prompt_bytes, std::int64_t input_tokens) noexcept;
  /// `known_input_tokens`: exact, where ids are known; `requested_output_tokens`: the request's limit, for all of its
  /// choices. nullopt: unknown.
  [[nodiscard]] TokenEstimate estimate(std::int64_t prompt_bytes, UsageCount known_input_tokens = {},
                                       UsageCount requested_output_tokens = {},
                                       const EstimateOptions& options = {}) const noexcept;
  [[nodiscard]] double bytes_per_token() const noexcept;  ///< 3 before anything was learned
  void set_bytes_per_token(double value) noexcept;        ///< e.g. after a restart; 0.1..64, else ignored

 private:
  // Of a mean that forgets: bytes per token in millionths. One word, so that readers see no half of a change.
  std::atomic<std::uint64_t> micro_bytes_{3'000'000};
  std::atomic<std::uint32_t> seen_{0};
};

/// Fills in what an incomplete report does not say, for answers that were cut off: input by the estimate, output by the
/// events that carried some, or by the estimate where there were none. Counts that are known stay, but for an output
/// below the number of events (a placeholder). The source then says `estimate`. returns: whether anything was filled in.
bool estimate_missing(UsageReport& report, const TokenEstimate& estimate) noexcept;

// ---------------------------------------------------------------- clients that hang up

/// What becomes of the upstream. Providers bill a cancelled stream in full or in part and then never say how much; an own
/// replica stops generating, which saves its time.
enum class HangupMode : std::uint8_t {
  cut = 0,    ///< close it at once; what was used is estimated
  drain = 1,  ///< read it to its end, within the limits, for its usage
};

struct HangupPolicy {
  HangupMode mode = HangupMode::cut;
  Nanos max_drain = seconds(60);              ///< after the client left
  std::uint64_t max_drain_bytes = 8'000'000;  ///< likewise
};

/// Follows one upstream after its client left. threads: one at a time.
class HangupDrain {
 public:
  HangupDrain(const HangupPolicy& policy, Nanos now) noexcept : policy_(policy), since_(now) {}

  /// `more_bytes` came since; `complete`: the meter has the last word already. returns: whether to read on; false: cut it.
  [[nodiscard]] bool go_on(std::uint64_t more_bytes, Nanos now, bool complete) noexcept {
    bytes_ += more_bytes;
    if (policy_.mode == HangupMode::cut || complete) return false;
    return bytes_ <= policy_.max_drain_bytes && now < deadline();
  }
  /// When to cut it if nothing comes.
  [[nodiscard]] Nanos deadline() const noexcept {
    return policy_.mode == HangupMode::cut ? since_ : since_ + policy_.max_drain;
  }

 private:
  HangupPolicy policy_;
  Nanos since_;
  std::uint64_t bytes_ = 0;
};

}  // namespace warmroute
