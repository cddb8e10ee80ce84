// OpenAI chat completions.
#include "ingest/body_reader.hpp"

namespace warmroute::ingest {
namespace {

bool write_tool_call(BodyReader& r, NodeIndex call) {
  if (!r.is_object(call, "")) return false;
  static constexpr std::array<std::string_view, 4> kNames{"id", "type", "function", "custom"};
  std::array<NodeIndex, kNames.size()> m;
  r.tape.collect(call, kNames, m);
  const bool custom = m[2] == kNoNode && m[3] != kNoNode;
  const NodeIndex body = custom ? m[3] : m[2];
  if (!r.is_object(body, custom ? "custom" : "function")) return false;
  if (body == kNoNode) {
    r.write_opaque(Frame::opaque, call);
    return true;
  }
  const std::array<std::string_view, 2> names{"name", custom ? "input" : "arguments"};
  std::array<NodeIndex, names.size()> f;
  r.tape.collect(body, names, f);
  return r.write_call(custom ? Frame::custom_call : Frame::call, m[0], f[0], f[1], names[1]);
}

bool write_tool_calls(BodyReader& r, NodeIndex calls) {
  if (calls == kNoNode) return true;
  if (!r.is_list(calls, "tool_calls")) return false;
  r.place.inner = "tool_calls";
  r.place.part = 0;
  for (NodeIndex call = JsonTape::first(calls); call != r.tape.end(calls); call = r.tape.after(call), ++r.place.part) {
    if (!write_tool_call(r, call)) return false;
  }
  r.place.inner = {};
  r.place.part = -1;
  return true;
}

bool write_message(BodyReader& r, NodeIndex message) {
  if (!r.is_object(message, "")) return false;
  static constexpr std::array<std::string_view, 10> kNames{
      "role",      "content", "name",          "tool_call_id", "tool_calls", "reasoning_content",
      "reasoning", "refusal", "function_call", "audio"};
  std::array<NodeIndex, kNames.size()> m;
  r.tape.collect(message, kNames, m);
  const auto [role, content, name, tool_call_id, tool_calls, reasoning_content, reasoning, refusal, function_call,
              audio] = m;
  if (!r.has_string(role, "role")) return false;
  r.out.framed_text(Frame::message, role);
  // What comes before the text must not follow it: "text" alone would otherwise be a beginning of "text" with a name.
  if (!r.optional_text(Frame::name, name, "name") || !r.optional_text(Frame::id, tool_call_id, "tool_call_id") ||
      !r.optional_text(Frame::reasoning, reasoning_content, "reasoning_content")) {
    return false;
  }
  if (r.blank(reasoning_content) && reasoning != kNoNode && r.tape.kind(reasoning) == NodeKind::string &&
      !r.blank(reasoning)) {
    r.out.framed_text(Frame::reasoning, reasoning);
  }
  Parts parts(r);
  if (!parts.content(content, "content")) return false;
  if (!r.optional_text(Frame::refusal, refusal, "refusal")) return false;
  if (audio != kNoNode && r.tape.kind(audio) == NodeKind::object) r.write_opaque(Frame::opaque, audio);
  if (function_call != kNoNode && r.tape.kind(function_call) == NodeKind::object) {
    static constexpr std::array<std::string_view, 2> kCallNames{"name", "arguments"};
    std::array<NodeIndex, kCallNames.size()> f;
    r.tape.collect(function_call, kCallNames, f);
    if (!r.write_call(Frame::call, kNoNode, f[0], f[1], "arguments")) return false;
  }
  return write_tool_calls(r, tool_calls);
}

}  // namespace

bool read_chat(BodyReader& r) {
  if (!r.write_head() || !r.write_tools(Slot::tools) || !r.write_tools(Slot::functions)) return false;
  return read_message_list(r, write_message);
}

}  // namespace warmroute::ingest
