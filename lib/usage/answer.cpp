// See answer.hpp.
#include "usage/answer.hpp"

namespace warmroute::usage {
namespace {

constexpr std::uint64_t kOpenAi = mask_of(Field::prompt, Field::completion, Field::input, Field::output, Field::total);
constexpr std::uint64_t kAnthropicCache = mask_of(Field::cache_read, Field::cache_creation);
constexpr std::uint64_t kGemini = mask_of(Field::gemini_prompt, Field::gemini_candidates, Field::gemini_thoughts,
                                          Field::gemini_tool_use, Field::gemini_cached, Field::gemini_total);
constexpr std::uint64_t kBedrock = mask_of(Field::bedrock_input, Field::bedrock_output, Field::bedrock_total,
                                           Field::bedrock_read, Field::bedrock_write);
constexpr std::uint64_t kCohere =
    mask_of(Field::billed_input, Field::billed_output, Field::processed_input, Field::processed_output);
constexpr std::uint64_t kLlamaCpp =
    mask_of(Field::cache_n, Field::prompt_n, Field::predicted_n, Field::evaluated, Field::predicted);

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

}  // namespace

void Answer::reset(const MeterOptions& options) noexcept {
  api_ = options.api;
  profile_ = options.profile;
  dialect_ = Dialect::none;
  revision_ = 0;
  anomalies_ = {};
  counts_.clear();
  iterations_.clear();
  choices_seen_ = {};
  choices_finished_ = {};
  many_choices_ = usage_seen_ = error_ = done_ = over_ = plain_whole_ = pending_ = delta_usage_ = list_ = false;
  requested_tier_.assign(options.requested_tier);
  for (ShortText* text : {&finish_, &tier_, &speed_, &geography_, &model_, &id_}) text->clear();
}

void Answer::set(ShortText& text, std::string_view value) noexcept {
  if (value.empty() || text.view() == value) return;
  text.assign(value);
  revision_ += 1;
}

void Answer::take(const AnswerEvent& event, bool whole) noexcept {
  flag(event.anomalies);
  if (event.text(Slot::object) == "list") set(list_, true);
  take_counts(event);
  if (event.iterations.said) take_iterations(event.iterations);
  set(id_, event.text(Slot::id));
  set(model_, event.text(Slot::model));
  set(tier_, event.text(Slot::service_tier));
  set(speed_, event.text(Slot::speed));
  set(geography_, event.text(Slot::geography));
  if (!whole) return;
  set(finish_, event.text(Slot::finish));
  if (!event.text(Slot::block_reason).empty()) {
    set(finish_, event.text(Slot::block_reason));
    set(over_, true);
  }
  take_choices(event);
  take_type(event);
}

void Answer::take_counts(const AnswerEvent& event) noexcept {
  if (event.usage_seen()) set(usage_seen_, true);
  if (!event.said.any()) return;
  const Dialect dialect = dialect_of(event);
  bool changed = false;
  switch (dialect) {
    case Dialect::openai: changed = replace_openai(counts_, event.said); break;
    case Dialect::anthropic: changed = replace_anthropic(counts_, event.said); break;
    default: changed = replace_counts(counts_, event.said);
  }
  // llama.cpp adds timings to other dialects, InvokeModel its own counts to the model's.
  const bool keeps = dialect_ != Dialect::none && (dialect == Dialect::none || dialect == Dialect::llamacpp ||
                                                   (dialect == Dialect::bedrock && dialect_ == Dialect::anthropic));
  if (!keeps && dialect != dialect_) {
    dialect_ = dialect;
    changed = true;
  }
  if (changed) revision_ += 1;
  if (dialect == Dialect::bedrock && event.usage_seen()) set(over_, true);
}

Dialect Answer::dialect_of(const AnswerEvent& event) const noexcept {
  const Fields& said = event.said;
  if (said.any_of(kGemini)) return Dialect::gemini;
  if (said.any_of(kBedrock)) return Dialect::bedrock;
  if (said.any_of(kCohere)) return Dialect::cohere;
  if (said.or_zero(Field::prompt) > 0 || said.or_zero(Field::completion) > 0) return Dialect::openai;
  const bool sides = said.any_of(kOpenAi);
  const bool cache = said.any_of(kAnthropicCache) && api_ != AnswerApi::openai && api_ != AnswerApi::responses;
  const std::string_view type = event.text(Slot::type);
  const bool message = type == "message" || type == "message_start" || type == "message_delta";
  if ((sides || cache) && (api_ == AnswerApi::messages || message || cache)) return Dialect::anthropic;
  if (sides) return Dialect::openai;
  return said.any_of(kLlamaCpp) ? Dialect::llamacpp : Dialect::none;
}

void Answer::take_iterations(const Iterations& iterations) noexcept {
  iterations_ = iterations;
  revision_ += 1;
  for (std::size_t i = 0; i < iterations_.line_count; ++i) {
    const OtherLine& line = iterations_.lines[i];
    lines_[i] = {line.model.view(), line.input, line.cached, line.write, line.output};
  }
}

void Answer::take_choices(const AnswerEvent& event) noexcept {
  if (event.more_choices()) set(many_choices_, true);
  for (const ChoiceSeen& choice : event.choices()) {
    if (choice.index >= kMostChoices) {
      set(many_choices_, true);
      continue;
    }
    const auto word = static_cast<std::size_t>(choice.index / 64);
    const std::uint64_t bit = std::uint64_t{1} << (choice.index % 64);
    if ((choices_seen_[word] & bit) == 0) revision_ += 1;
    choices_seen_[word] |= bit;
    if (!choice.finished) continue;
    if ((choices_finished_[word] & bit) == 0) revision_ += 1;
    choices_finished_[word] |= bit;
  }
}

void Answer::take_type(const AnswerEvent& event) noexcept {
  const std::string_view type = event.text(Slot::type);
  const std::string_view status = event.text(Slot::status);
  if (event.error() || type == "error" || event.text(Slot::object) == "error" || status == "failed") set(error_, true);
  if (!status.empty()) set(pending_, status == "in_progress" || status == "queued");
  if (event.stop()) set(over_, true);
  if (starts_with(type, "response.")) {
    for (const std::string_view end : {"completed", "incomplete", "failed", "cancelled", "done"}) {
      if (type.substr(9) == end) set(over_, true);
    }
  }
  if (type == "message_delta") {
    if (event.usage_seen()) set(delta_usage_, true);
    if (!event.text(Slot::finish).empty() && delta_usage_) set(over_, true);
  }
  if (type == "message_stop" && delta_usage_) set(over_, true);
  if (type == "message-end" || type == "stream-end") set(over_, true);
}

bool Answer::has_counts() const noexcept {
  const bool timed = counts_.any_of(mask_of(Field::predicted_n, Field::predicted));
  return dialect_ != Dialect::none && (usage_seen_ || timed);
}

bool Answer::complete() const noexcept {
  if (!has_counts()) return false;
  if (plain_whole_) return !pending_;
  if (over_) return true;
  bool any = false;
  bool all = !many_choices_;
  for (std::size_t i = 0; i < choices_seen_.size(); ++i) {
    any = any || choices_seen_[i] != 0;
    all = all && choices_seen_[i] == choices_finished_[i];
  }
  if (any && all) return true;
  return done_ && !error_ && dialect_ != Dialect::anthropic;
}

UsageReport Answer::report() const noexcept {
  UsageReport out;
  out.error = error_;
  out.anomalies = anomalies_;
  out.complete = complete();
  out.finish_reason = finish_.view();
  const bool use_requested = profile_.trust_requested_tier && !requested_tier_.empty();
  out.service_tier = tier_.empty() || use_requested ? requested_tier_.view() : tier_.view();
  out.speed = speed_.view();
  out.inference_geography = geography_.view();
  out.model = model_.view();
  out.response_id = id_.view();
  out.other_models = {lines_.data(), iterations_.line_count};
  const bool embeddings = api_ == AnswerApi::embeddings || (list_ && api_ == AnswerApi::automatic);
  Reading reading{counts_, iterations_, profile_, embeddings};
  switch (dialect_) {
    case Dialect::none: return out;
    case Dialect::openai: out.usage = openai_usage(reading); break;
    case Dialect::anthropic: out.usage = anthropic_usage(reading); break;
    case Dialect::gemini: out.usage = gemini_usage(reading); break;
    case Dialect::bedrock: out.usage = bedrock_usage(reading); break;
    case Dialect::cohere: out.usage = cohere_usage(reading); break;
    case Dialect::llamacpp: out.usage = llamacpp_usage(reading); break;
  }
  out.anomalies.bits |= reading.anomalies.bits;
  out.source = reading.source;
  out.usage.web_search_requests = counts_.get(Field::web_search);
  out.usage.web_fetch_requests = counts_.get(Field::web_fetch);
  out.usage.reported_cost_picos = counts_.get(Field::cost_picos);
  return out;
}

}  // namespace warmroute::usage
