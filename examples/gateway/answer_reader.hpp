/// Reads an answer as it streams through: when its first token comes, and what its `usage` says. Looks, never holds back.
/// Text is never searched for counts: what a model wrote may look like a usage object. Memory is bounded: of a plain JSON
/// answer only the top-level `usage` is kept, of a stream one event.
/// Does not: change a byte, count tokens itself, price anything.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

/// Picks the value of one top-level member out of a JSON object that comes in pieces.
class TopLevelMember {
 public:
  explicit TopLevelMember(std::string_view key) : key_(key) {}
  void feed(std::string_view bytes);
  /// returns: the value's text, of the last such member; empty when there was none, or it was larger than 16 KiB.
  [[nodiscard]] const std::string& value() const noexcept { return value_; }

 private:
  void feed_one(char c);
  static constexpr std::size_t kMostBytes = 16'384;

  std::string key_;
  std::string name_;  // of the member at depth 1 that is being read
  std::string value_;
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  bool in_name_ = false;  // the next string at depth 1 is a member's name
  bool capturing_ = false;
};

class AnswerReader {
 public:
  /// `stream`: the answer is server-sent events; else one JSON object.
  explicit AnswerReader(bool stream);
  AnswerReader(AnswerReader&&) noexcept;
  ~AnswerReader();

  /// returns: whether the first token was in these bytes: a delta that is not empty, or any first byte of a plain answer.
  bool feed(std::string_view bytes);
  /// The answer is complete. returns: what was said about usage; kUnknown where nothing was.
  UsageCounts finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warmroute::gateway
