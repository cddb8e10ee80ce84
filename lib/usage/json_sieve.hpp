// Reads one JSON object as its bytes come, in constant memory: members that the table of names knows go to an
// AnswerEvent, all else is skipped at the speed of looking for quotes and brackets. Where the bytes are cut does not
// matter. Checks as much of JSON's grammar as it needs to know where it is: brackets, strings, names, separators.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "usage/answer_event.hpp"
#include "usage/answer_grammar.hpp"

namespace warmroute::usage {

class EventShape;

/// Receives the text of a string member that holds base64 of another answer, in pieces, escapes included.
class ByteSink {
 public:
  virtual void begin_bytes() noexcept = 0;
  virtual void bytes(std::string_view piece) noexcept = 0;

 protected:
  ~ByteSink() = default;
};

class JsonSieve {
 public:
  explicit JsonSieve(AnswerEvent& event) noexcept : event_(event) {}
  /// Members that hold base64 are skipped unless somebody takes them.
  void give_bytes_to(ByteSink* bytes) noexcept { bytes_ = bytes; }

  /// A new object. Clears the event. `shape`, if any, learns which values were skipped; only for objects that are fed in
  /// one piece.
  void begin(EventShape* shape = nullptr) noexcept;
  /// returns: where it stopped: `end`, or behind the object, or at what is no JSON.
  const char* feed(const char* p, const char* end) noexcept;
  void feed(std::string_view text) noexcept { feed(text.data(), text.data() + text.size()); }

  [[nodiscard]] bool whole() const noexcept { return state_ == State::done; }
  [[nodiscard]] bool failed() const noexcept { return state_ == State::failed; }
  [[nodiscard]] bool too_deep() const noexcept { return too_deep_; }

 private:
  enum class State : std::uint8_t {
    // between things, where spaces may be
    value,       // of member_
    first_name,  // or the end of the object
    name,
    colon,
    first_element,  // or the end of the list
    output_nested,  // at the first byte of an object or list
    after_value,    // a comma, or the end of what it is in
    // inside something
    in_name,  // behind its opening quote
    skip_string,
    text_string,    // into text_
    output_string,  // at its first byte
    byte_string,    // into bytes_
    token,          // a number, true, false, null
    skip_nested,    // inside an object or list nobody asked for
    done,
    failed,
  };
  struct Frame {
    Node node = Node::none;  // of a list: of its elements
    bool list = false;
  };
  static constexpr std::size_t kMostFrames = 12;
  static constexpr std::size_t kLongestToken = 64;
  static constexpr std::uint32_t kMostNesting = 1u << 20;

  const char* structure(const char* p, const char* end) noexcept;
  const char* inside(const char* p, const char* end) noexcept;
  const char* value(const char* p, const char* end) noexcept;
  void enter(Node node, bool list) noexcept;
  void string_value() noexcept;
  const char* begin_name(const char* p, const char* end) noexcept;
  const char* name(const char* p, const char* end) noexcept;
  void name_done(std::string_view name) noexcept;
  const char* skip_string(const char* p, const char* end) noexcept;
  const char* text_string(const char* p, const char* end) noexcept;
  const char* byte_string(const char* p, const char* end) noexcept;
  const char* token(const char* p, const char* end) noexcept;
  void token_done(std::string_view token) noexcept;
  const char* skip_nested(const char* p, const char* end) noexcept;
  const char* after_value(const char* p, const char* end) noexcept;
  void close(char c) noexcept;
  void value_done() noexcept { state_ = depth_ == 0 ? State::done : State::after_value; }
  void fail() noexcept { state_ = State::failed; }

  AnswerEvent& event_;
  ByteSink* bytes_ = nullptr;
  EventShape* shape_ = nullptr;
  State state_ = State::value;
  Member member_{};
  bool escaped_ = false;  // the next byte of the string is escaped
  bool too_deep_ = false;
  bool nested_string_ = false;
  bool name_cut_ = false;  // the name is longer than any that means something
  std::uint8_t depth_ = 0;
  std::uint8_t token_size_ = 0;
  std::uint32_t nesting_ = 0;
  ShortText* text_ = nullptr;
  std::array<Frame, kMostFrames> frames_{};
  std::array<char, kLongestToken> token_{};
  ShortText name_;
};

}  // namespace warmroute::usage
