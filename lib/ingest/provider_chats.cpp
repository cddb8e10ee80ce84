// Gemini's generateContent and Bedrock's Converse, written as the chats that they are: the model's turns are the assistant's,
// texts are texts, and what else a part may be is spelled out in place.
#include "ingest/body_reader.hpp"

namespace warmroute::ingest {
namespace {

NodeIndex inner_member(BodyReader& r, NodeIndex object, std::string_view name) {
  const std::array<std::string_view, 1> names{name};
  std::array<NodeIndex, 1> m{kNoNode};
  r.tape.collect(object, names, m);
  return m[0];
}

// One part or a list of them, which both APIs' servers take. Places to cache at are no prompt.
bool write_provider_parts(BodyReader& r, NodeIndex parts, Parts& out) {
  if (parts == kNoNode) return true;
  if (r.tape.kind(parts) == NodeKind::object) return out.part(parts);
  if (!r.is(parts, NodeKind::array, r.place.inner.empty() ? r.place.top : "", "a list of parts")) return false;
  std::int64_t& index = r.place.inner.empty() ? r.place.item : r.place.part;
  index = 0;
  for (NodeIndex part = JsonTape::first(parts); part != r.tape.end(parts); part = r.tape.after(part), ++index) {
    if (!r.is_object(part, "")) return false;
    if (inner_member(r, part, "cachePoint") != kNoNode) continue;
    if (!out.part(part)) return false;
  }
  return true;
}

// `member`: what holds the parts of one message.
bool write_turn(BodyReader& r, NodeIndex turn, std::string_view member) {
  if (!r.is_object(turn, "")) return false;
  const std::array<std::string_view, 2> names{"role", member};
  std::array<NodeIndex, names.size()> m;
  r.tape.collect(turn, names, m);
  if (!r.is_string(m[0], "role")) return false;
  const bool model = m[0] != kNoNode && r.tape.is(m[0], "model");
  Parts parts(r, m[0] == kNoNode ? Role{kNoNode, "user"} : model ? Role{kNoNode, "assistant"} : Role{m[0]});
  const Place outer = r.place;
  r.place.inner = member;
  if (!write_provider_parts(r, m[1], parts)) return false;
  r.place = outer;
  parts.open();
  return true;
}

bool write_system(BodyReader& r, Slot slot, std::string_view member) {
  const NodeIndex node = r.member(slot);
  if (node == kNoNode) return true;
  r.place = {slot_name(slot), -1, {}, -1, node};
  NodeIndex parts = node;
  if (!member.empty()) {
    if (!r.is_object(node, "")) return false;
    parts = inner_member(r, node, member);
  }
  Parts out(r, Role{kNoNode, "system"});
  if (!write_provider_parts(r, parts, out)) return false;
  r.place = {};
  return true;
}

void write_provider_tools(BodyReader& r, NodeIndex tools) {
  if (tools == kNoNode || r.tape.kind(tools) != NodeKind::array) return;  // the provider says what is wrong with it
  for (NodeIndex tool = JsonTape::first(tools); tool != r.tape.end(tools); tool = r.tape.after(tool)) {
    if (r.tape.kind(tool) != NodeKind::object || inner_member(r, tool, "cachePoint") != kNoNode) continue;
    r.write_opaque(Frame::other_tool, tool);
  }
}

bool write_gemini_turn(BodyReader& r, NodeIndex turn) { return write_turn(r, turn, "parts"); }
bool write_converse_turn(BodyReader& r, NodeIndex turn) { return write_turn(r, turn, "content"); }

}  // namespace

bool read_gemini(BodyReader& r) {
  if (!r.write_head()) return false;
  write_provider_tools(r, r.member(Slot::tools));
  const bool camel = r.member(Slot::system_instruction_camel) != kNoNode;
  if (!write_system(r, camel ? Slot::system_instruction_camel : Slot::system_instruction, "parts")) return false;
  const NodeIndex contents = r.member(Slot::contents);
  if (contents != kNoNode && r.tape.kind(contents) == NodeKind::object) {  // Vertex takes a single one as it is
    r.place = {slot_name(Slot::contents), -1, {}, -1, contents};
    return write_gemini_turn(r, contents);
  }
  return read_message_list(r, write_gemini_turn, Slot::contents);
}

bool read_converse(BodyReader& r) {
  if (!r.write_head()) return false;
  if (const NodeIndex config = r.member(Slot::tool_config); config != kNoNode) {
    if (!r.is_object(config, slot_name(Slot::tool_config))) return false;
    write_provider_tools(r, inner_member(r, config, "tools"));
  }
  if (!write_system(r, Slot::system, {})) return false;
  return read_message_list(r, write_converse_turn);
}

}  // namespace warmroute::ingest
