// What an answer said so far: the sum of its events, which are running totals that replace each other and never add up.
// How they replace and what they mean is the dialect's; each has its own file.
#pragma once

#include <array>
#include <cstdint>

#include "usage/answer_event.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute::usage {

enum class Dialect : std::uint8_t { none, openai, anthropic, gemini, bedrock, cohere, llamacpp };

/// What the dialects read from, and where they say what was wrong.
struct Reading {
  const Fields& counts;
  const Iterations& iterations;
  const MeterProfile& profile;
  bool embeddings = false;
  UsageAnomalies anomalies{};
  UsageSource source = UsageSource::provider;
};

// How the counts of a later event replace those of earlier ones. returns: whether anything changed.
bool replace_counts(Fields& counts, const Fields& said) noexcept;     // field by field
bool replace_openai(Fields& counts, const Fields& said) noexcept;     // and a total belongs to its sides
bool replace_anthropic(Fields& counts, const Fields& said) noexcept;  // and a zero replaces no number

// What the counts mean.
Usage openai_usage(Reading& reading) noexcept;
Usage anthropic_usage(Reading& reading) noexcept;
Usage gemini_usage(Reading& reading) noexcept;
Usage bedrock_usage(Reading& reading) noexcept;
Usage cohere_usage(Reading& reading) noexcept;
Usage llamacpp_usage(Reading& reading) noexcept;

/// Input that excludes its cached and written parts becomes inclusive.
inline void add_cache_to_input(Usage& usage) noexcept {
  usage.input_tokens =
      sum(sum(*usage.input_tokens, usage.cached_input_tokens.value_or(0)), usage.cache_write_input_tokens.value_or(0));
}
/// Decides by the total, and by what is possible, whether the sides contain their parts. `usage` has the sides as they
/// were said.
void settle_sides(Usage& usage, UsageCount total, Reading& reading) noexcept;
/// The split by lifetime is never larger than what was written.
void fit_write_split(Usage& usage, UsageAnomalies& anomalies) noexcept;

class Answer {
 public:
  void reset(const MeterOptions& options) noexcept;

  /// `whole`: else the object was cut off, and only its closed usage objects count.
  void take(const AnswerEvent& event, bool whole = true) noexcept;
  void done() noexcept { set(done_, true); }  ///< [DONE]
  void failed() noexcept { set(error_, true); }
  void flag(UsageAnomaly anomaly) noexcept {
    UsageAnomalies one;
    one.add(anomaly);
    flag(one);
  }
  void plain_whole() noexcept { set(plain_whole_, true); }  ///< no stream, and all of it has come

  /// returns: a number that changes whenever what was said changes.
  [[nodiscard]] std::uint64_t revision() const noexcept { return revision_; }
  [[nodiscard]] UsageReport report() const noexcept;
  [[nodiscard]] bool complete() const noexcept;

 private:
  static constexpr std::int64_t kMostChoices = 1'024;
  using ChoiceBits = std::array<std::uint64_t, kMostChoices / 64>;

  void set(bool& flag, bool value) noexcept {
    if (flag != value) revision_ += 1;
    flag = value;
  }
  void set(ShortText& text, std::string_view value) noexcept;
  void flag(UsageAnomalies more) noexcept {
    if ((anomalies_.bits | more.bits) != anomalies_.bits) revision_ += 1;
    anomalies_.bits |= more.bits;
  }
  void take_counts(const AnswerEvent& event) noexcept;
  void take_iterations(const Iterations& iterations) noexcept;
  void take_choices(const AnswerEvent& event) noexcept;
  void take_type(const AnswerEvent& event) noexcept;
  [[nodiscard]] Dialect dialect_of(const AnswerEvent& event) const noexcept;
  [[nodiscard]] bool has_counts() const noexcept;

  AnswerApi api_ = AnswerApi::automatic;
  MeterProfile profile_{};
  Dialect dialect_ = Dialect::none;
  std::uint64_t revision_ = 0;
  UsageAnomalies anomalies_;
  Fields counts_;
  Iterations iterations_;
  std::array<OtherModelUsage, Iterations::kMostLines> lines_{};
  ChoiceBits choices_seen_{};
  ChoiceBits choices_finished_{};
  bool many_choices_ = false;  // more than can be followed
  bool usage_seen_ = false;
  bool error_ = false;
  bool done_ = false;
  bool over_ = false;  // an event said that nothing more will come
  bool plain_whole_ = false;
  bool pending_ = false;      // a plain answer that says it is not over yet
  bool delta_usage_ = false;  // Anthropic's counts at the end, the output's first true one
  bool list_ = false;         // the answer is a list, as of embeddings
  ShortText requested_tier_;
  ShortText finish_;
  ShortText tier_;
  ShortText speed_;
  ShortText geography_;
  ShortText model_;
  ShortText id_;
};

/// The parts of input, cached input and output that answers tell by modality.
inline void read_modalities(Usage& usage, const Fields& counts) noexcept {
  usage.text_input_tokens = counts.get(Field::in_text);
  usage.audio_input_tokens = counts.get(Field::in_audio);
  usage.image_input_tokens = counts.get(Field::in_image);
  usage.video_input_tokens = counts.get(Field::in_video);
  usage.cached_text_input_tokens = counts.get(Field::cached_text);
  usage.cached_audio_input_tokens = counts.get(Field::cached_audio);
  usage.cached_image_input_tokens = counts.get(Field::cached_image);
  usage.cached_video_input_tokens = counts.get(Field::cached_video);
  usage.text_output_tokens = counts.get(Field::out_text);
  usage.audio_output_tokens = counts.get(Field::out_audio);
  usage.image_output_tokens = counts.get(Field::out_image);
}

}  // namespace warmroute::usage
