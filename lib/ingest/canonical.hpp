// The canonical prompt stream: one spelling for every prompt that engines render alike, whatever API and client it came
// by. The format is told at canonical_prompt() in warmroute/ingest/request_body.hpp. What it must keep to, so that
// equal beginnings of prompts are equal bytes: nothing that depends on what comes later (no lengths, no digest ahead of
// text), no closing frame, and of each message the small members first, then its text, then its calls.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/byte_buffer.hpp"
#include "ingest/json_tape.hpp"

namespace warmroute::ingest {

enum class Frame : char {
  head = 'h',
  tool = 't',
  other_tool = 'T',
  description = 'd',
  parameters = 'p',
  strict = 's',
  other_members = 'x',
  message = 'm',
  name = 'n',
  id = 'i',
  reasoning = 'r',
  reasoning_summary = 'R',
  encrypted = 'e',
  text = 'c',
  refusal = 'f',
  blob = 'b',
  detail = 'q',
  uuid = 'u',
  opaque = 'o',
  call = 'k',
  custom_call = 'K',
  arguments = 'a',
  failed = 'E',
  item = 'I',
};
inline constexpr char kFrameByte = '\xff';  // in no UTF-8 text

/// How a JSON value is spelled out. Order of members counts in the depths that are not sorted.
struct JsonStyle {
  int sorted_levels = 0;      ///< so many outer levels are envelopes: members sorted by name (up to kLargestEnvelope)
  bool digest_blobs = false;  ///< long strings that look like base64 become digests
  const std::string_view* skip = nullptr;  ///< members of the outermost object that are left out
  std::size_t skip_count = 0;
};

class Canonical {
 public:
  explicit Canonical(const JsonTape& tape) : tape_(tape) {}

  void begin(std::size_t expected_bytes, std::uint64_t digest_seed) {
    buffer_.wipe(0);
    buffer_.reserve_more(expected_bytes);
    digest_seed_ = digest_seed;
  }
  [[nodiscard]] std::string_view stream() const noexcept { return buffer_.view(); }
  [[nodiscard]] std::size_t size() const noexcept { return buffer_.size(); }
  void truncate(std::size_t size) noexcept { buffer_.truncate(size); }
  /// Wipes the stream; gives back memory that one huge body made it take.
  void reset(std::size_t keep_bytes) noexcept;
  [[nodiscard]] const ByteBuffer& buffer() const noexcept { return buffer_; }

  void frame(Frame f) {
    buffer_.append(kFrameByte);
    buffer_.append(static_cast<char>(f));
  }
  void bytes(std::string_view b) { buffer_.append(b); }
  /// The decoded text of a string node.
  void text(NodeIndex string);
  void framed_text(Frame f, NodeIndex string) {
    frame(f);
    text(string);
  }
  /// A value as compact JSON: equal values have equal bytes (numbers by value, of repeated keys the last).
  void json(NodeIndex value, const JsonStyle& style = {});
  /// Is there a member that `style` does not skip?
  [[nodiscard]] bool has_members(NodeIndex object, const JsonStyle& style) const noexcept;

  /// `f` and 16 bytes that stand for the pieces one after another.
  void digest(Frame f, std::initializer_list<std::string_view> pieces);
  /// Replaces everything from `start` on by `f` and its digest.
  void digest_tail(Frame f, std::size_t start);

 private:
  struct Member {
    NodeIndex key;
    NodeIndex value;
    std::uint64_t hash;
  };

  void value(NodeIndex node, const JsonStyle& style, int level);
  void object(NodeIndex node, const JsonStyle& style, int level);
  void array(NodeIndex node, const JsonStyle& style, int level);
  void quoted(NodeIndex string, bool digest_blobs);
  void number(std::string_view raw);
  void numbers(NodeIndex run, bool& first);
  [[nodiscard]] bool skipped(NodeIndex key, const JsonStyle& style) const noexcept;
  void drop_repeated(std::size_t from);

  const JsonTape& tape_;
  ByteBuffer buffer_;
  std::vector<Member> members_;  // of the objects that are being written, innermost last
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_hash_;  // of one large object: hash of the key, place
  std::uint64_t digest_seed_ = 0;
};

}  // namespace warmroute::ingest
