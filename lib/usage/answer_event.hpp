// What one JSON object of an answer said: a whole plain answer, or one event of a stream. Filled by JsonSieve; nothing of
// it counts before the object is whole.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "usage/answer_grammar.hpp"
#include "warmroute/usage/usage.hpp"

namespace warmroute::usage {

/// Larger counts are no counts: nobody's sums of a few of them may leave 63 bits.
inline constexpr std::int64_t kMostTokens = 1'000'000'000'000'000'000;

inline std::int64_t sum(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) || result > kMostTokens ? kMostTokens : result;
}

/// Counts by Field, each unknown or a number. Clearing is two words.
class Fields {
 public:
  void clear() noexcept { known_ = invalid_ = 0; }
  void set(Field f, std::int64_t value) noexcept {
    value_[index(f)] = value;
    known_ |= bit(f);
    invalid_ &= ~bit(f);
  }
  void add(Field f, std::int64_t value) noexcept { set(f, sum(or_zero(f), value)); }
  void forget(Field f) noexcept {
    known_ &= ~bit(f);
    invalid_ &= ~bit(f);
  }
  void spoil(Field f) noexcept {
    known_ &= ~bit(f);
    invalid_ |= bit(f);
  }
  [[nodiscard]] bool has(Field f) const noexcept { return (known_ & bit(f)) != 0; }
  [[nodiscard]] bool invalid(Field f) const noexcept { return (invalid_ & bit(f)) != 0; }
  [[nodiscard]] bool any() const noexcept { return known_ != 0; }
  [[nodiscard]] bool any_invalid() const noexcept { return invalid_ != 0; }
  [[nodiscard]] bool any_of(std::uint64_t mask) const noexcept { return (known_ & mask) != 0; }
  [[nodiscard]] bool invalid_of(std::uint64_t mask) const noexcept { return (invalid_ & mask) != 0; }
  [[nodiscard]] bool all_zero() const noexcept;  ///< nothing known is another number than 0
  [[nodiscard]] UsageCount get(Field f) const noexcept { return has(f) ? UsageCount(value_[index(f)]) : std::nullopt; }
  [[nodiscard]] std::int64_t or_zero(Field f) const noexcept { return has(f) ? value_[index(f)] : 0; }
  /// Calls take(Field, value) for everything known.
  template <class Taker>
  void each(Taker take) const noexcept {
    for (std::uint64_t rest = known_; rest != 0; rest &= rest - 1) {
      const int i = __builtin_ctzll(rest);
      take(static_cast<Field>(i), value_[static_cast<std::size_t>(i)]);
    }
  }
  static constexpr std::uint64_t bit(Field f) noexcept { return std::uint64_t{1} << static_cast<unsigned>(f); }

 private:
  static constexpr std::size_t index(Field f) noexcept { return static_cast<std::size_t>(f); }
  static_assert(kFieldCount <= 64);

  std::uint64_t known_ = 0;
  std::uint64_t invalid_ = 0;
  std::array<std::int64_t, kFieldCount> value_;  // meaningful where known
};

template <class... F>
constexpr std::uint64_t mask_of(F... fields) noexcept {
  return (Fields::bit(fields) | ...);
}

/// A text of at most 128 bytes; what is longer is cut.
class ShortText {
 public:
  void clear() noexcept { size_ = 0; }
  void append(std::string_view more) noexcept {
    const std::size_t n = more.size() < kMost - size_ ? more.size() : kMost - size_;
    if (n != 0) std::memcpy(data_.data() + size_, more.data(), n);
    size_ = static_cast<std::uint8_t>(size_ + n);
  }
  void assign(std::string_view value) noexcept {
    clear();
    append(value);
  }
  void unescape() noexcept;  ///< JSON's escapes, of ASCII; others stay as they are
  [[nodiscard]] std::string_view view() const noexcept { return {data_.data(), size_}; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

 private:
  static constexpr std::size_t kMost = 128;
  std::array<char, kMost> data_;
  std::uint8_t size_ = 0;
};

/// One sub-inference on another model, or the sums of several.
struct OtherLine {
  ShortText model;
  UsageCount input, cached, write, output;
};

/// What Anthropic's `iterations` add to the top-level counts. Replaced as a whole.
struct Iterations {
  static constexpr std::size_t kMostLines = 4;
  bool said = false;
  bool compacted = false;
  std::int64_t input = 0, cached = 0, write = 0, output = 0;  // of compactions, each count as Anthropic spells it
  std::uint8_t line_count = 0;
  std::array<OtherLine, kMostLines> lines;

  void clear() noexcept {
    said = compacted = false;
    input = cached = write = output = 0;
    line_count = 0;
  }
};

struct ChoiceSeen {
  std::int64_t index = 0;
  bool finished = false;
};

class AnswerEvent {
 public:
  void clear() noexcept;

  // ---- what JsonSieve calls
  void begin_list(Node elements) noexcept;
  void begin_object(Node node) noexcept;
  void end_object(Node node) noexcept;
  /// `token`: a number, true, false or null.
  void scalar(Member member, std::string_view token) noexcept;
  /// A value of a type that its member does not have, null apart.
  void wrong_type(Member member) noexcept;
  ShortText& begin_text(Slot slot) noexcept {
    ShortText& text = texts_[static_cast<std::size_t>(slot)];
    text.clear();
    texts_set_ |= 1u << static_cast<unsigned>(slot);
    return text;
  }
  void output_seen() noexcept { output_ = true; }
  void error_seen() noexcept { error_ = true; }

  // ---- what was said
  Fields said;
  UsageAnomalies anomalies;
  Iterations iterations;
  [[nodiscard]] std::string_view text(Slot slot) const noexcept {
    const bool set = (texts_set_ >> static_cast<unsigned>(slot) & 1) != 0;
    return set ? texts_[static_cast<std::size_t>(slot)].view() : std::string_view{};
  }
  [[nodiscard]] bool output() const noexcept { return output_; }
  [[nodiscard]] bool error() const noexcept { return error_; }
  [[nodiscard]] bool stop() const noexcept { return stop_; }
  [[nodiscard]] bool usage_seen() const noexcept { return usage_seen_; }      ///< a usage object with counts
  [[nodiscard]] bool usage_object() const noexcept { return usage_object_; }  ///< a usage object, whatever is in it
  [[nodiscard]] bool has_choices() const noexcept { return has_choices_; }    ///< a list of choices, perhaps empty
  [[nodiscard]] std::span<const ChoiceSeen> choices() const noexcept { return {choices_.data(), choice_count_}; }
  [[nodiscard]] bool more_choices() const noexcept { return more_choices_; }  ///< than could be kept

 private:
  static constexpr std::size_t kMostChoices = 16;
  static constexpr std::size_t kMostDepth = 16;

  void fold_object() noexcept;
  void end_choice() noexcept;
  void end_modality(Field text, Field audio, Field image, Field video) noexcept;
  void end_lifetime() noexcept;
  void end_iteration() noexcept;
  OtherLine* line_of(std::string_view model) noexcept;

  Fields object_;   // of the usage object being read
  Fields element_;  // of the list's element being read
  Fields line_;     // of the iteration being read
  std::array<Fields*, kMostDepth> outer_{};
  std::size_t depth_ = 0;
  Fields* target_ = &said;
  std::array<ShortText, kSlotCount> texts_;  // meaningful where set: clearing touches one word, not as many cache lines
  std::uint32_t texts_set_ = 0;
  std::array<ChoiceSeen, kMostChoices> choices_{};
  std::uint8_t choice_count_ = 0;
  bool more_choices_ = false;
  bool has_choices_ = false;
  bool output_ = false;
  bool error_ = false;
  bool stop_ = false;
  bool usage_seen_ = false;
  bool usage_object_ = false;
};

}  // namespace warmroute::usage
