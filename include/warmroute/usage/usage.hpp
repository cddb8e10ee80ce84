/// What one request used, in one vocabulary for all providers: counts that are unknown, zero or a number, and how far
/// they can be believed. Everything else in usage/ (prices, limits, the ledger) works on these.
/// Invariants: input is inclusive (input = uncached + cached + cache write), output is inclusive (visible + reasoning);
/// what was not said is std::nullopt and never 0; subsets are never addends.
/// Does not: know where the counts came from on the wire (usage/meter.hpp) or what they cost (usage/price.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace warmroute {

/// A count of one request. nullopt: unknown.
using UsageCount = std::optional<std::int64_t>;

/// units: tokens, unless the name says otherwise. Plain and trivially copyable.
struct Usage {
  UsageCount input_tokens;              ///< all of the prompt: uncached, cached and written to the cache
  UsageCount cached_input_tokens;       ///< of those, read from a cache
  UsageCount cache_write_input_tokens;  ///< of those, written to a cache
  UsageCount output_tokens;             ///< all that was generated, reasoning included
  UsageCount reasoning_output_tokens;   ///< of those, reasoning

  // Parts of the cache writes by lifetime. What they do not cover is of the provider's base lifetime.
  UsageCount cache_write_5m_tokens;
  UsageCount cache_write_30m_tokens;
  UsageCount cache_write_1h_tokens;
  UsageCount cache_write_12h_tokens;

  // Parts by modality, each of its side.
  UsageCount text_input_tokens;
  UsageCount audio_input_tokens;
  UsageCount image_input_tokens;
  UsageCount video_input_tokens;
  UsageCount cached_text_input_tokens;
  UsageCount cached_audio_input_tokens;
  UsageCount cached_image_input_tokens;
  UsageCount cached_video_input_tokens;
  UsageCount text_output_tokens;
  UsageCount audio_output_tokens;
  UsageCount image_output_tokens;

  UsageCount tool_use_input_tokens;       ///< part of input: results of the provider's own tools
  UsageCount accepted_prediction_tokens;  ///< part of output
  UsageCount rejected_prediction_tokens;  ///< part of output: billed, not seen
  UsageCount processed_input_tokens;      ///< beside the billed input: what the model read (Cohere)
  UsageCount processed_output_tokens;
  UsageCount unattributed_tokens;   ///< in the provider's total and in neither side
  UsageCount context_input_tokens;  ///< size of the window at the end, where a compaction ran and is in the input too
  UsageCount web_search_requests;   ///< units: requests
  UsageCount web_fetch_requests;    ///< units: requests
  UsageCount reported_cost_picos;   ///< units: 1e-12 USD, as the provider says

  /// returns: input + output + unattributed; unknown where a side is.
  [[nodiscard]] UsageCount total_tokens() const noexcept {
    if (!input_tokens || (!output_tokens && !unattributed_tokens)) return std::nullopt;
    return *input_tokens + output_tokens.value_or(0) + unattributed_tokens.value_or(0);
  }
  /// returns: input that was neither read from a cache nor written to one; never negative (Cohere's cached tokens are
  /// of the processed prompt and may exceed the billed one).
  [[nodiscard]] UsageCount uncached_input_tokens() const noexcept {
    if (!input_tokens) return std::nullopt;
    return std::max<std::int64_t>(
        0, *input_tokens - cached_input_tokens.value_or(0) - cache_write_input_tokens.value_or(0));
  }

  friend bool operator==(const Usage&, const Usage&) noexcept = default;
};

/// Where the counts are from. Numbers are fixed and only appended.
enum class UsageSource : std::uint8_t {
  none = 0,      ///< nobody said anything
  provider = 1,  ///< a usage object
  timings = 2,   ///< derived from llama.cpp's timings
  estimate = 3,  ///< by whoever called, e.g. usage/request_side.hpp
};

/// What was wrong with an answer, as bits. Numbers are fixed and only appended.
enum class UsageAnomaly : std::uint32_t {
  invalid_count = 1u << 0,             ///< negative, not a whole number or no number at all; it is unknown
  cached_exceeds_input = 1u << 1,      ///< in a dialect where cached is a part of input: taken as standing beside it
  reasoning_exceeds_output = 1u << 2,  ///< likewise, of output
  total_mismatch = 1u << 3,            ///< the total is smaller than its parts; it was ignored
  write_split_exceeds = 1u << 4,       ///< the split by lifetime is larger than the writes; it was cut
  bad_crc = 1u << 5,                   ///< a frame with a wrong checksum; it was not trusted
  malformed_event = 1u << 6,           ///< an event that should be JSON and is not; it was skipped
  too_large = 1u << 7,                 ///< something exceeded a limit of the meter and was skipped
  compressed = 1u << 8,                ///< the body is compressed: nothing can be read
};
/// How many anomalies there are: bits 0 to this, exclusive.
inline constexpr std::size_t kUsageAnomalyCount = 9;

/// A set of anomalies.
struct UsageAnomalies {
  std::uint32_t bits = 0;

  constexpr void add(UsageAnomaly anomaly) noexcept { bits |= static_cast<std::uint32_t>(anomaly); }
  [[nodiscard]] constexpr bool has(UsageAnomaly anomaly) const noexcept {
    return (bits & static_cast<std::uint32_t>(anomaly)) != 0;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return bits == 0; }
  friend constexpr bool operator==(UsageAnomalies, UsageAnomalies) noexcept = default;
};

/// returns: the anomaly's name as spelled above; `bit` counts from 0. lifetime: static.
constexpr std::string_view usage_anomaly_name(std::size_t bit) noexcept {
  constexpr std::string_view kNames[kUsageAnomalyCount] = {"invalid_count",
                                                           "cached_exceeds_input",
                                                           "reasoning_exceeds_output",
                                                           "total_mismatch",
                                                           "write_split_exceeds",
                                                           "bad_crc",
                                                           "malformed_event",
                                                           "too_large",
                                                           "compressed"};
  return bit < kUsageAnomalyCount ? kNames[bit] : std::string_view{"unknown"};
}

/// Tokens that another model than the answering one used for this request: a price line of its own.
struct OtherModelUsage {
  std::string_view model;  ///< empty: not said
  UsageCount input_tokens;
  UsageCount cached_input_tokens;
  UsageCount cache_write_input_tokens;
  UsageCount output_tokens;
};

/// What an answer said. lifetime: views and spans are of whoever gave it, see Meter::report.
struct UsageReport {
  Usage usage;
  /// The counts are the provider's last word. false with counts: partial, e.g. of a stream that was cut.
  bool complete = false;
  bool error = false;  ///< the answer is an error, or holds one
  UsageSource source = UsageSource::none;
  UsageAnomalies anomalies;
  /// Events after which output had begun, the first included; a server that sends a token per event makes this an
  /// estimate of what was generated. 0 for answers that are no streams.
  std::int64_t output_events = 0;
  std::string_view finish_reason;        ///< as the provider spells it; empty: not said
  std::string_view service_tier;         ///< the tier that served, as the provider spells it; empty: not said
  std::string_view speed;                ///< Anthropic's `speed`; empty: not said
  std::string_view inference_geography;  ///< Anthropic's `inference_geo`; empty: not said
  std::string_view model;                ///< the model that answered; empty: not said
  std::string_view response_id;
  std::span<const OtherModelUsage> other_models;
};

}  // namespace warmroute
