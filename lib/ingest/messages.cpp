// Anthropic messages, written as the chat that engines turn them into: tool results are messages of role tool, thinking
// is reasoning, tool_use is a tool call. Signatures of thinking blocks are the server's, like ids, and do not count.
#include "ingest/body_reader.hpp"

namespace warmroute::ingest {
namespace {

bool write_tool_result(BodyReader& r, NodeIndex block) {
  static constexpr std::array<std::string_view, 3> kNames{"tool_use_id", "content", "is_error"};
  std::array<NodeIndex, kNames.size()> m;
  r.tape.collect(block, kNames, m);
  r.open_message("tool");
  if (!r.optional_text(Frame::id, m[0], "tool_use_id")) return false;
  if (m[2] != kNoNode && r.tape.kind(m[2]) == NodeKind::true_value) r.out.frame(Frame::failed);
  return Parts(r).content(m[1], "tool_result.content");
}

bool write_block(BodyReader& r, NodeIndex block, Parts& parts, bool& tool_results) {
  if (!r.is_object(block, "")) return false;
  static constexpr std::array<std::string_view, 4> kNames{"type", "id", "name", "input"};
  std::array<NodeIndex, kNames.size()> m;
  r.tape.collect(block, kNames, m);
  if (!r.is_string(m[0], "type")) return false;
  if (r.tape.is(m[0], "tool_result")) {
    tool_results = true;
    parts.next_message();  // text before and after a tool result are messages of their own, as in chat
    return write_tool_result(r, block);
  }
  if (r.tape.is(m[0], "tool_use")) {
    parts.flush();
    return r.write_call(Frame::call, m[1], m[2], m[3], "input");
  }
  return parts.part(block);
}

bool write_anthropic_message(BodyReader& r, NodeIndex message) {
  if (!r.is_object(message, "")) return false;
  static constexpr std::array<std::string_view, 2> kNames{"role", "content"};
  std::array<NodeIndex, kNames.size()> m;
  r.tape.collect(message, kNames, m);
  if (!r.has_string(m[0], "role")) return false;
  Parts parts(r, Role{m[0]});
  bool tool_results = false;
  if (m[1] != kNoNode && r.tape.kind(m[1]) == NodeKind::array) {
    r.place.inner = "content";
    r.place.part = 0;
    for (NodeIndex b = JsonTape::first(m[1]); b != r.tape.end(m[1]); b = r.tape.after(b), ++r.place.part) {
      if (!write_block(r, b, parts, tool_results)) return false;
    }
    r.place.inner = {};
    r.place.part = -1;
  } else if (!parts.content(m[1], "content")) {
    return false;
  }
  if (!tool_results)
    parts.open();  // a message without text is a message; tool results alone are no message of the user
  return true;
}

}  // namespace

bool read_messages(BodyReader& r) {
  if (!r.write_head() || !r.write_tools(Slot::tools)) return false;
  if (!Parts(r, Role{kNoNode, "system"}).content(r.member(Slot::system), "system")) return false;
  return read_message_list(r, write_anthropic_message);
}

}  // namespace warmroute::ingest
