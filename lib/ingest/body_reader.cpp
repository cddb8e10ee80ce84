// What chat, Responses and Messages write alike: tools, calls, the head of the stream, unknown objects.
#include "ingest/body_reader.hpp"

namespace warmroute::ingest {
namespace {

std::string spell(const Place& place, std::string_view leaf) {
  std::string path(place.top);
  if (place.item >= 0) path += "[" + std::to_string(place.item) + "]";
  if (!place.inner.empty()) path += "." + std::string(place.inner);
  if (place.part >= 0) path += "[" + std::to_string(place.part) + "]";
  if (!leaf.empty()) path += (path.empty() ? "" : ".") + std::string(leaf);
  return path;
}

// Anthropic defines cache_control on tools and content blocks; anywhere else a member of that name is content.
constexpr std::array<std::string_view, 1> kCacheControl{"cache_control"};
// Members of a function that have frames of their own; what else it has follows as JSON. Flat tools carry their type
// beside.
constexpr std::array<std::string_view, 5> kFunctionMembers{"name", "description", "parameters", "strict", "type"};
constexpr std::array<std::string_view, 6> kAnthropicMembers{"name",   "description", "input_schema",
                                                            "strict", "type",        "cache_control"};

}  // namespace

bool BodyReader::fail_at(Code code, std::uint64_t offset, std::string_view leaf, std::string_view what) {
  error_ = Error{code, spell(place, leaf) + " " + std::string(what), offset};
  return false;
}

bool BodyReader::fail(Code code, NodeIndex node, std::string_view leaf, std::string_view what) {
  if (node == kNoNode) node = place.node;
  if (node == kNoNode) return fail_at(code, 0, leaf, what);
  const bool quoted = tape.kind(node) == NodeKind::string;
  return fail_at(code, std::uint64_t{tape[node].begin} - (quoted ? 1 : 0), leaf, what);
}

bool BodyReader::fail_type(NodeIndex node, std::string_view leaf, std::string_view wanted) {
  return fail(Code::wrong_type, node, leaf,
              "must be " + std::string(wanted) + ", but is " + std::string(kind_name(tape.kind(node))));
}

bool BodyReader::optional_text(Frame frame, NodeIndex node, std::string_view leaf) {
  if (!is_string(node, leaf)) return false;
  if (!blank(node)) out.framed_text(frame, node);
  return true;
}

void BodyReader::write_opaque(Frame frame, NodeIndex object) {
  JsonStyle style{.sorted_levels = 2, .digest_blobs = true};
  if (api_ == BodyApi::messages) {
    style.skip = kCacheControl.data();
    style.skip_count = kCacheControl.size();
  }
  out.frame(frame);
  out.json(object, style);
}

bool BodyReader::write_tools(Slot slot) {
  const NodeIndex list = member(slot);
  place = {};
  if (!is_list(list, slot_name(slot))) return false;
  if (list == kNoNode) return true;
  place = {slot_name(slot), 0};
  for (NodeIndex tool = JsonTape::first(list); tool != tape.end(list); tool = tape.after(tool), ++place.item) {
    if (!is_object(tool, "")) return false;
    if (slot == Slot::functions) {
      write_function(tool, false);
    } else if (!write_tool(tool)) {
      return false;
    }
  }
  place = {};
  return true;
}

bool BodyReader::write_tool(NodeIndex tool) {
  static constexpr std::array<std::string_view, 3> kNames{"type", "function", "name"};
  std::array<NodeIndex, kNames.size()> m;
  tape.collect(tool, kNames, m);
  const auto [type, function, name] = m;
  if (!is_string(type, "type")) return false;
  const bool says_function = type == kNoNode || tape.is(type, "function");
  if (says_function && function != kNoNode && tape.kind(function) == NodeKind::object) {
    write_function(function, false);
  } else if (function == kNoNode && name != kNoNode &&
             (says_function || (api_ == BodyApi::messages && tape.is(type, "custom")))) {
    write_function(tool, true);
  } else {
    write_opaque(Frame::other_tool, tool);
  }
  return true;
}

// The name comes first: a list in another order differs from its first tool on.
void BodyReader::write_function(NodeIndex function, bool flat) {
  const bool anthropic = flat && api_ == BodyApi::messages;
  const std::array<std::string_view, 4> names{"name", "description", anthropic ? "input_schema" : "parameters",
                                              "strict"};
  std::array<NodeIndex, names.size()> m;
  tape.collect(function, names, m);
  constexpr std::array<Frame, names.size()> kFrames{Frame::tool, Frame::description, Frame::parameters, Frame::strict};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (m[i] == kNoNode) {
      if (i == 0) out.frame(Frame::tool);
      continue;
    }
    out.frame(kFrames[i]);
    if (i < 2 && tape.kind(m[i]) == NodeKind::string) {
      out.text(m[i]);
    } else {
      out.json(m[i]);
    }
  }
  JsonStyle style{.sorted_levels = 1};
  style.skip = anthropic ? kAnthropicMembers.data() : kFunctionMembers.data();
  style.skip_count = anthropic ? kAnthropicMembers.size() : kFunctionMembers.size() - (flat ? 0 : 1);
  if (!out.has_members(function, style)) return;
  out.frame(Frame::other_members);
  out.json(function, style);
}

bool BodyReader::write_call(Frame kind, NodeIndex id, NodeIndex name, NodeIndex arguments,
                            std::string_view arguments_name) {
  if (!is_string(id, "id") || !is_string(name, "name")) return false;
  out.frame(kind);
  if (name != kNoNode) out.text(name);
  if (!blank(id)) out.framed_text(Frame::id, id);
  if (arguments == kNoNode) return true;
  out.frame(Frame::arguments);
  if (tape.kind(arguments) == NodeKind::string) {
    out.text(arguments);
  } else if (tape.kind(arguments) == NodeKind::object) {
    out.json(arguments);
  } else {
    return fail_type(arguments, arguments_name, "a string or an object");
  }
  return true;
}

// Appends `name NUL value NUL` of a member that is there and not empty; the caller replaces all of it by one digest.
bool BodyReader::head_member(Slot slot, NodeKind kind, std::string_view wanted, std::size_t& start) {
  const NodeIndex node = member(slot);
  if (node == kNoNode) return true;
  if (!is(node, kind, slot_name(slot), wanted)) return false;
  if (kind == NodeKind::string ? blank(node) : tape.empty(node)) return true;
  start = std::min(start, out.size());
  out.bytes(slot_name(slot));
  out.bytes({"\0", 1});
  out.json(node, {.sorted_levels = slot == Slot::prompt ? 1 : 0});
  out.bytes({"\0", 1});
  return true;
}

// A digest, since these separate prompts from their first byte on: two long templates with equal beginnings share
// nothing.
bool BodyReader::write_head() {
  place = {};
  std::size_t start = ~std::size_t{0};
  if (!head_member(Slot::chat_template, NodeKind::string, "a string", start) ||
      !head_member(Slot::chat_template_kwargs, NodeKind::object, "an object", start) ||
      !head_member(Slot::documents, NodeKind::array, "a list", start) ||
      !head_member(Slot::cached_content, NodeKind::string, "a string", start) ||
      !head_member(Slot::previous_response_id, NodeKind::string, "a string", start) ||
      (api_ == BodyApi::responses && !head_member(Slot::prompt, NodeKind::object, "an object", start))) {
    return false;
  }
  if (const NodeIndex key = member(Slot::extra_key); key != kNoNode) {
    const bool list = tape.kind(key) == NodeKind::array;
    if (!head_member(Slot::extra_key, list ? NodeKind::array : NodeKind::string, "a string or a list", start))
      return false;
  }
  if (NodeIndex id = member(Slot::conversation); id != kNoNode) {
    if (tape.kind(id) == NodeKind::object) {
      static constexpr std::array<std::string_view, 1> kId{"id"};
      std::array<NodeIndex, 1> m;
      tape.collect(id, kId, m);
      id = m[0];
    }
    if (!is_string(id, slot_name(Slot::conversation))) return false;
    if (!blank(id)) {
      start = std::min(start, out.size());
      out.bytes("conversation");
      out.bytes({"\0", 1});
      out.text(id);
    }
  }
  if (start < out.size()) out.digest_tail(Frame::head, start);
  return true;
}

bool read_message_list(BodyReader& r, bool (*write)(BodyReader&, NodeIndex), Slot list) {
  r.place = {};
  const std::string_view name = slot_name(list);
  const NodeIndex messages = r.member(list);
  if (messages == kNoNode) return r.fail_missing(name);
  if (!r.is_list(messages, name)) return false;
  if (r.tape.empty(messages)) {
    return r.fail(Code::empty_prompt, messages, name, "is an empty list: send at least one message");
  }
  r.place = {name, 0};
  for (NodeIndex m = JsonTape::first(messages); m != r.tape.end(messages); m = r.tape.after(m), ++r.place.item) {
    r.place.node = m;
    if (!write(r, m)) return false;
  }
  r.place = {};
  return true;
}

}  // namespace warmroute::ingest
