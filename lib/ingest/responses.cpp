// OpenAI Responses, written as the chat that engines turn its items into. One turn of the model comes as several items
// (reasoning, message, calls); they are joined to one assistant message, each item adding to its end.
#include "ingest/body_reader.hpp"

namespace warmroute::ingest {
namespace {

// How far the assistant message that the stream ends with has come. An item that would have to go further up starts a
// new one.
enum class Turn : std::uint8_t { none, reasoning, text, calls };

class Items {
 public:
  explicit Items(BodyReader& reader) : r_(reader) {}

  bool write(NodeIndex item) {
    if (!r_.is_object(item, "")) return false;
    static constexpr std::array<std::string_view, 2> kNames{"type", "role"};
    std::array<NodeIndex, kNames.size()> m;
    r_.tape.collect(item, kNames, m);
    const auto [type, role] = m;
    if (!r_.is_string(type, "type")) return false;
    const auto type_is = [this, node = type](std::string_view name) { return r_.tape.is(node, name); };
    if (type == kNoNode || type_is("message")) return message(item, role);
    if (type_is("reasoning")) return reasoning(item);
    if (type_is("function_call")) return call(item, Frame::call, "arguments");
    if (type_is("custom_tool_call")) return call(item, Frame::custom_call, "input");
    if (type_is("function_call_output") || type_is("custom_tool_call_output")) return call_output(item);
    opaque(item, type_is("item_reference"));
    return true;
  }

 private:
  void join(Turn at_most, Turn becomes) {
    if (turn_ == Turn::none || turn_ > at_most) r_.open_message("assistant");
    turn_ = becomes;
  }

  bool message(NodeIndex item, NodeIndex role) {
    static constexpr std::array<std::string_view, 1> kNames{"content"};
    std::array<NodeIndex, kNames.size()> m;
    r_.tape.collect(item, kNames, m);
    if (!r_.has_string(role, "role")) return false;
    if (r_.tape.is(role, "assistant")) {
      join(Turn::reasoning, Turn::text);
    } else {
      r_.out.framed_text(Frame::message, role);
      turn_ = Turn::none;
    }
    return Parts(r_).content(m[0], "content");
  }

  bool reasoning(NodeIndex item) {
    static constexpr std::array<std::string_view, 3> kNames{"content", "summary", "encrypted_content"};
    std::array<NodeIndex, kNames.size()> m;
    r_.tape.collect(item, kNames, m);
    join(Turn::none, Turn::reasoning);
    if (!texts(m[0], "content", Frame::reasoning) || !texts(m[1], "summary", Frame::reasoning_summary)) return false;
    if (!r_.is_string(m[2], "encrypted_content")) return false;
    if (!r_.blank(m[2])) r_.out.digest(Frame::encrypted, {r_.tape.view(m[2])});
    return true;
  }

  bool texts(NodeIndex list, std::string_view leaf, Frame frame) {
    if (!r_.is_list(list, leaf)) return false;
    if (list == kNoNode) return true;
    for (NodeIndex part = JsonTape::first(list); part != r_.tape.end(list); part = r_.tape.after(part)) {
      if (!r_.is_object(part, leaf)) return false;
      static constexpr std::array<std::string_view, 1> kNames{"text"};
      std::array<NodeIndex, kNames.size()> m;
      r_.tape.collect(part, kNames, m);
      if (!r_.optional_text(frame, m[0], leaf)) return false;
    }
    return true;
  }

  bool call(NodeIndex item, Frame frame, std::string_view arguments_name) {
    const std::array<std::string_view, 3> names{"call_id", "name", arguments_name};
    std::array<NodeIndex, names.size()> m;
    r_.tape.collect(item, names, m);
    join(Turn::calls, Turn::calls);
    return r_.write_call(frame, m[0], m[1], m[2], arguments_name);
  }

  bool call_output(NodeIndex item) {
    static constexpr std::array<std::string_view, 2> kNames{"call_id", "output"};
    std::array<NodeIndex, kNames.size()> m;
    r_.tape.collect(item, kNames, m);
    r_.open_message("tool");
    turn_ = Turn::none;
    if (!r_.optional_text(Frame::id, m[0], "call_id")) return false;
    return Parts(r_).content(m[1], "output");
  }

  // Ids and status are the server's; only a reference is nothing but its id.
  void opaque(NodeIndex item, bool reference) {
    static constexpr std::array<std::string_view, 2> kServers{"status", "id"};
    JsonStyle style{.sorted_levels = 2, .digest_blobs = true};
    style.skip = kServers.data();
    style.skip_count = reference ? 1 : 2;
    r_.out.frame(Frame::item);
    r_.out.json(item, style);
    turn_ = Turn::none;
  }

  BodyReader& r_;
  Turn turn_ = Turn::none;
};

// Is there a prompt template that may stand in for the input? errors: wrong_type
bool names_template(BodyReader& r, bool& named) {
  const NodeIndex prompt = r.member(Slot::prompt);
  if (prompt == kNoNode) return true;
  static constexpr std::array<std::string_view, 1> kNames{"id"};
  std::array<NodeIndex, kNames.size()> m;
  r.tape.collect(prompt, kNames, m);
  if (!r.is_string(m[0], "prompt.id")) return false;
  named = !r.blank(m[0]);
  return true;
}

}  // namespace

bool read_responses(BodyReader& r) {
  if (!r.write_head() || !r.write_tools(Slot::tools)) return false;
  const NodeIndex instructions = r.member(Slot::instructions);
  if (!r.is_string(instructions, "instructions")) return false;
  if (!r.blank(instructions)) {  // the same bytes as a leading system message
    r.open_message("system");
    r.out.framed_text(Frame::text, instructions);
  }
  bool named = false;
  if (!names_template(r, named)) return false;
  const NodeIndex input = r.member(Slot::input);
  if (input == kNoNode) return named || r.fail_missing("input");
  if (r.tape.kind(input) == NodeKind::string) {
    r.open_message("user");
    Parts(r).text(input);
    return true;
  }
  if (r.tape.kind(input) != NodeKind::array) return r.fail_type(input, "input", "a string or a list of items");
  if (r.tape.empty(input)) {
    return named || r.fail(Code::empty_prompt, input, "input", "is an empty list: send at least one item");
  }
  r.place = {"input", 0};
  Items items(r);
  for (NodeIndex item = JsonTape::first(input); item != r.tape.end(input); item = r.tape.after(item), ++r.place.item) {
    r.place.node = item;
    if (!items.write(item)) return false;
  }
  r.place = {};
  return true;
}

}  // namespace warmroute::ingest
