// See answer_event.hpp.
#include "usage/answer_event.hpp"

#include "usage/decimal.hpp"

namespace warmroute::usage {
namespace {

// Without these a usage object says nothing that can be used.
constexpr std::uint64_t kMainCounts =
    mask_of(Field::prompt, Field::completion, Field::input, Field::output, Field::bedrock_input, Field::bedrock_output,
            Field::billed_input, Field::billed_output, Field::gemini_prompt, Field::gemini_candidates);

constexpr std::uint32_t slot_bit(Slot slot) { return 1u << static_cast<unsigned>(slot); }

bool is_element(Node node) {
  switch (node) {
    case Node::choice:
    case Node::candidate:
    case Node::cache_detail:
    case Node::prompt_modality:
    case Node::cached_modality:
    case Node::output_modality: return true;
    default: return false;
  }
}

bool is_usage(Node node) {
  return node == Node::usage || node == Node::gemini_usage || node == Node::metrics || node == Node::cohere_meta;
}

}  // namespace

bool Fields::all_zero() const noexcept {
  bool zero = true;
  each([&](Field, std::int64_t value) { zero = zero && value == 0; });
  return zero;
}

void ShortText::unescape() noexcept {
  const std::string_view raw = view();
  std::size_t out = raw.find('\\');
  if (out == std::string_view::npos) return;
  for (std::size_t i = out; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      data_[out++] = raw[i];
      continue;
    }
    const char c = raw[++i];
    unsigned code = 0;
    std::size_t digits = 0;
    if (c == 'u') {
      for (; digits < 4 && i + 1 + digits < raw.size(); ++digits) {
        const char h = static_cast<char>(raw[i + 1 + digits] | 0x20);
        if (!((h >= '0' && h <= '9') || (h >= 'a' && h <= 'f'))) break;
        code = code * 16 + static_cast<unsigned>(h <= '9' ? h - '0' : h - 'a' + 10);
      }
    }
    if (digits == 4 && code < 0x80) {
      data_[out++] = static_cast<char>(code);
      i += 4;
    } else if (c == 'u') {
      data_[out++] = '\\';
      data_[out++] = c;
    } else {
      data_[out++] = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c;
    }
  }
  size_ = static_cast<std::uint8_t>(out);
}

void AnswerEvent::clear() noexcept {
  said.clear();
  anomalies = {};
  iterations.clear();
  texts_set_ = 0;
  depth_ = 0;
  target_ = &said;
  choice_count_ = 0;
  more_choices_ = has_choices_ = output_ = error_ = stop_ = usage_seen_ = usage_object_ = false;
}

void AnswerEvent::begin_list(Node elements) noexcept {
  if (elements == Node::choice) has_choices_ = true;
  if (elements == Node::iteration) {
    iterations.clear();
    iterations.said = true;
  }
}

void AnswerEvent::begin_object(Node node) noexcept {
  outer_[depth_++] = target_;  // never deeper than the sieve's frames
  if (is_usage(node)) {
    object_.clear();
    target_ = &object_;
    usage_object_ = usage_object_ || node == Node::usage;
  } else if (is_element(node)) {
    element_.clear();
    texts_set_ &= ~(slot_bit(Slot::element_name) | slot_bit(Slot::element_finish));
    target_ = &element_;
  } else if (node == Node::iteration) {
    line_.clear();
    texts_set_ &= ~(slot_bit(Slot::element_name) | slot_bit(Slot::element_model));
    target_ = &line_;
  }
}

void AnswerEvent::end_object(Node node) noexcept {
  target_ = outer_[--depth_];
  switch (node) {
    case Node::usage:
    case Node::gemini_usage:
    case Node::metrics:
    case Node::cohere_meta: return fold_object();
    case Node::choice:
    case Node::candidate: return end_choice();
    case Node::cache_detail: return end_lifetime();
    case Node::iteration: return end_iteration();
    case Node::prompt_modality: return end_modality(Field::in_text, Field::in_audio, Field::in_image, Field::in_video);
    case Node::cached_modality:
      return end_modality(Field::cached_text, Field::cached_audio, Field::cached_image, Field::cached_video);
    case Node::output_modality: return end_modality(Field::out_text, Field::out_audio, Field::out_image, Field::count_);
    default: return;
  }
}

void AnswerEvent::scalar(Member member, std::string_view token) noexcept {
  const auto field = static_cast<Field>(member.id);
  if (token == "null") {
    if (member.take == Take::count || member.take == Take::money || member.take == Take::ticks) target_->forget(field);
    return;
  }
  switch (member.take) {
    case Take::count: {
      const auto value = parse_count(token);
      if (!value || *value > kMostTokens) return wrong_type(member);
      target_->set(field, *value);
      return;
    }
    case Take::money:
    case Take::ticks: {
      const auto picos = parse_scaled(token, member.take == Take::money ? 12 : 2);
      if (!picos || *picos < 0) return wrong_type(member);
      target_->set(field, *picos);
      return;
    }
    case Take::error: error_ = error_ || token != "false"; return;
    case Take::stop: stop_ = token == "true"; return;
    default: return wrong_type(member);
  }
}

void AnswerEvent::wrong_type(Member member) noexcept {
  const bool number = member.take == Take::count || member.take == Take::money || member.take == Take::ticks;
  const bool usage = member.take == Take::object && is_usage(member.node) && member.node != Node::cohere_meta;
  if (number) {
    target_->spoil(static_cast<Field>(member.id));
    if (static_cast<Field>(member.id) == Field::index) return;
  }
  if (number || usage) anomalies.add(UsageAnomaly::invalid_count);
}

void AnswerEvent::fold_object() noexcept {
  if (object_.invalid_of(kMainCounts)) return;
  if (object_.all_zero()) return;  // a placeholder: servers send zeros before they know
  usage_seen_ = true;
  object_.each([this](Field field, std::int64_t value) { said.set(field, value); });
}

void AnswerEvent::end_choice() noexcept {
  const std::string_view finish = text(Slot::element_finish);
  const bool finished = !finish.empty() && finish != "FINISH_REASON_UNSPECIFIED";
  if (finished) begin_text(Slot::finish).append(finish);
  if (choice_count_ == kMostChoices) {
    more_choices_ = true;
    return;
  }
  choices_[choice_count_++] = {element_.or_zero(Field::index), finished};
}

void AnswerEvent::end_modality(Field text_field, Field audio, Field image, Field video) noexcept {
  const UsageCount tokens = element_.get(Field::element_tokens);
  const std::string_view name = text(Slot::element_name);
  if (!tokens) return;
  if (name == "TEXT") return object_.add(text_field, *tokens);
  if (name == "AUDIO") return object_.add(audio, *tokens);
  if (name == "IMAGE") return object_.add(image, *tokens);
  if (name == "VIDEO" && video != Field::count_) return object_.add(video, *tokens);
}

void AnswerEvent::end_lifetime() noexcept {
  const UsageCount tokens = element_.get(Field::element_tokens);
  const std::string_view name = text(Slot::element_name);
  if (!tokens) return;
  if (name == "5m") return object_.add(Field::ttl_5m, *tokens);
  if (name == "30m") return object_.add(Field::ttl_30m, *tokens);
  if (name == "1h") return object_.add(Field::ttl_1h, *tokens);
  if (name == "12h") return object_.add(Field::ttl_12h, *tokens);
}

void AnswerEvent::end_iteration() noexcept {
  const std::string_view kind = text(Slot::element_name);
  Iterations& all = iterations;
  if (kind == "compaction") {
    all.compacted = true;
    all.input = sum(all.input, line_.or_zero(Field::input));
    all.cached = sum(all.cached, line_.or_zero(Field::cache_read));
    all.write = sum(all.write, line_.or_zero(Field::cache_creation));
    all.output = sum(all.output, line_.or_zero(Field::output));
  }
  if (kind != "advisor_message") return;
  OtherLine* const line = line_of(text(Slot::element_model));
  if (line == nullptr) return anomalies.add(UsageAnomaly::too_large);
  const auto add = [](UsageCount& to, UsageCount more) {
    if (more) to = sum(to.value_or(0), *more);
  };
  add(line->cached, line_.get(Field::cache_read));
  add(line->write, line_.get(Field::cache_creation));
  add(line->output, line_.get(Field::output));
  if (const UsageCount uncached = line_.get(Field::input)) {
    add(line->input, sum(sum(*uncached, line_.or_zero(Field::cache_read)), line_.or_zero(Field::cache_creation)));
  }
}

OtherLine* AnswerEvent::line_of(std::string_view model) noexcept {
  for (std::uint8_t i = 0; i < iterations.line_count; ++i) {
    if (iterations.lines[i].model.view() == model) return &iterations.lines[i];
  }
  if (iterations.line_count == Iterations::kMostLines) return nullptr;
  OtherLine& line = iterations.lines[iterations.line_count++];
  line.model.assign(model);
  line.input = line.cached = line.write = line.output = std::nullopt;
  return &line;
}

}  // namespace warmroute::usage
