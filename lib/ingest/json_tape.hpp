// A whole JSON text, checked strictly in one pass, and an index ("tape") of the members that a reader asked for.
// The tape holds offsets, 16 bytes a node, and the decoded text of strings with escapes. What nobody asked for is
// checked just as strictly but not recorded.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "ingest/byte_buffer.hpp"
#include "warmroute/result.hpp"

namespace warmroute::ingest {

enum class NodeKind : std::uint8_t {
  object,  ///< children: key, value, key, value...
  array,   ///< children: values, where neighbouring numbers make up one node
  string,
  numbers,  ///< one number, or a run of numbers inside an array (so that 16 M ids do not need 16 M nodes)
  true_value,
  false_value,
  null_value,
};
std::string_view kind_name(NodeKind kind) noexcept;

/// A place on the tape.
using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kNoNode = ~NodeIndex{0};

struct Node {
  std::uint32_t begin = 0;  ///< units: bytes of the text; strings without their quotes, containers with their brackets
  std::uint32_t end = 0;    ///< as `begin`; of a decoded string: where its length and text lie in the tape's buffer
  NodeIndex next = 0;       ///< the sibling after this node (and after everything in it)
  NodeKind kind = NodeKind::null_value;
  bool decoded = false;  ///< strings: there were escapes in it
};

class JsonTape {
 public:
  static constexpr std::size_t kMaxSlots = 40;
  /// returns: the slot (below kMaxSlots) of a top-level member that the reader wants, or a negative number. The key is
  /// as in the text, with its escapes if there are any.
  using FindSlot = int (*)(const void* context, std::string_view raw_key, bool escaped);

  /// Checks `text` from `start` on (valid UTF-8, below 4 GiB) and records the wanted members of its top-level object; a
  /// member that comes twice is its last occurrence. errors: invalid_json, invalid_unicode, too_deep, not_an_object,
  /// with the offset.
  /// alloc: none once the tape has grown. lifetime: `text` must outlive every use of the nodes.
  bool build(std::string_view text, std::size_t start, std::uint32_t max_depth, FindSlot find_slot, const void* context,
             Error& error);

  /// returns: the member's value, or kNoNode when it is absent or null.
  [[nodiscard]] NodeIndex member(std::size_t slot) const noexcept { return or_none(members_[slot]); }
  [[nodiscard]] const Node& operator[](NodeIndex i) const noexcept { return nodes_[i]; }
  [[nodiscard]] NodeKind kind(NodeIndex i) const noexcept { return nodes_[i].kind; }
  /// A string's decoded text; of anything else the bytes that spell it.
  [[nodiscard]] std::string_view view(NodeIndex i) const noexcept {
    const Node& node = nodes_[i];
    if (!node.decoded) return text_.substr(node.begin, node.end - node.begin);
    std::uint32_t length = 0;
    std::memcpy(&length, decoded_.data() + node.end, sizeof length);
    return {decoded_.data() + node.end + sizeof length, length};
  }
  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] const ByteBuffer& decoded() const noexcept { return decoded_; }
  /// returns: whether it is there, a string, and that one.
  [[nodiscard]] bool is(NodeIndex i, std::string_view wanted) const noexcept {
    return i != kNoNode && kind(i) == NodeKind::string && view(i) == wanted;
  }
  [[nodiscard]] bool is_null(NodeIndex i) const noexcept { return i == kNoNode || kind(i) == NodeKind::null_value; }
  [[nodiscard]] NodeIndex or_none(NodeIndex i) const noexcept { return is_null(i) ? kNoNode : i; }

  /// Children of a container: for (c = first(i); c != end(i); c = after(c)).
  [[nodiscard]] static NodeIndex first(NodeIndex i) noexcept { return i + 1; }
  [[nodiscard]] NodeIndex end(NodeIndex i) const noexcept { return nodes_[i].next; }
  [[nodiscard]] NodeIndex after(NodeIndex i) const noexcept { return nodes_[i].next; }
  [[nodiscard]] bool empty(NodeIndex i) const noexcept { return first(i) == end(i); }

  /// Values of the named members of an object, kNoNode where absent or null; of a repeated key the last counts.
  template <std::size_t N>
  void collect(NodeIndex object, const std::array<std::string_view, N>& names, std::array<NodeIndex, N>& out) const {
    out.fill(kNoNode);
    for (NodeIndex key = first(object); key != end(object); key = after(after(key))) {
      const std::string_view name = view(key);
      for (std::size_t n = 0; n < N; ++n) {
        if (name == names[n]) {
          out[n] = after(key);
          break;
        }
      }
    }
    for (NodeIndex& value : out) value = or_none(value);
  }

  /// Wipes and forgets the text; gives back memory that one huge body made it take.
  void reset(std::size_t keep_bytes) noexcept;

 private:
  friend class TapeBuilder;
  struct Open {
    NodeIndex node;
    bool object;
  };

  std::string_view text_;
  std::vector<Node> nodes_;
  std::vector<Open> open_;
  ByteBuffer decoded_;  // per string with escapes: its length (u32) and its text
  std::array<NodeIndex, kMaxSlots> members_{};
};

}  // namespace warmroute::ingest
