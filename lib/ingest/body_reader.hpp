// What the readers of one request body share: the checked tape, the canonical stream, and the place for errors.
// One .cpp per API reads its own members and calls the writers below for what the APIs have in common.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ingest/canonical.hpp"
#include "ingest/json_tape.hpp"
#include "warmroute/ingest/request_body.hpp"

namespace warmroute::ingest {

/// Top-level members that routing reads, of all APIs together. body_members.cpp says which API has which.
enum class Slot : std::uint8_t {
  model,
  stream,
  stream_options,
  session_id,
  session_params,
  prompt_cache_key,
  user,
  safety_identifier,
  cache_salt,
  lora_path,
  extra_key,
  messages,
  tools,
  functions,
  max_tokens,
  max_completion_tokens,
  chat_template,
  chat_template_kwargs,
  documents,
  prompt,
  input,
  instructions,
  conversation,
  previous_response_id,
  max_output_tokens,
  system,
  metadata,
  contents,
  system_instruction_camel,
  system_instruction,
  cached_content,
  generation_config_camel,
  generation_config,
  tool_config,
  inference_config,
};
std::string_view slot_name(Slot slot) noexcept;
/// JsonTape::FindSlot of one API; `context` points to a BodyApi.
int find_slot(const void* context, std::string_view raw_key, bool escaped);

/// Where in the body a reader is, for messages like "messages[3].content[0].text: ...".
struct Place {
  std::string_view top{};
  std::int64_t item = -1;
  std::string_view inner{};
  std::int64_t part = -1;
  NodeIndex node = kNoNode;  ///< the object that a missing member is missing from
};

class BodyReader {
 public:
  BodyReader(BodyApi which, const JsonTape& checked, Canonical& canonical, Error& failure)
      : api_(which), tape(checked), out(canonical), error_(failure) {}

  [[nodiscard]] BodyApi api() const noexcept { return api_; }
  [[nodiscard]] NodeIndex member(Slot slot) const noexcept { return tape.member(static_cast<std::size_t>(slot)); }

  /// Records an error at `node` (kNoNode: at the object of `place`). returns: false, so that readers can `return
  /// fail(...)`.
  bool fail(Code code, NodeIndex node, std::string_view leaf, std::string_view what);
  bool fail_at(Code code, std::uint64_t offset, std::string_view leaf, std::string_view what);
  bool fail_missing(std::string_view leaf) { return fail(Code::missing_field, kNoNode, leaf, "is missing"); }
  /// `wanted` completes "must be ...".
  bool fail_type(NodeIndex node, std::string_view leaf, std::string_view wanted);

  /// Checks: absent, or of that kind.
  bool is(NodeIndex node, NodeKind kind, std::string_view leaf, std::string_view wanted) {
    return node == kNoNode || tape.kind(node) == kind || fail_type(node, leaf, wanted);
  }
  bool is_string(NodeIndex node, std::string_view leaf) { return is(node, NodeKind::string, leaf, "a string"); }
  bool is_object(NodeIndex node, std::string_view leaf) { return is(node, NodeKind::object, leaf, "an object"); }
  bool is_list(NodeIndex node, std::string_view leaf) { return is(node, NodeKind::array, leaf, "a list"); }
  bool has_string(NodeIndex node, std::string_view leaf) {
    return node == kNoNode ? fail_missing(leaf) : is_string(node, leaf);
  }
  /// Absent, or a string without a byte (of valid text: begin == end).
  [[nodiscard]] bool blank(NodeIndex string) const noexcept { return string == kNoNode || tape.view(string).empty(); }

  // --- writers that the APIs share
  // -------------------------------------------------------------------------------------

  /// A frame and the text, where the string is there and not empty. errors: wrong_type
  bool optional_text(Frame frame, NodeIndex node, std::string_view leaf);
  void open_message(std::string_view role) {
    out.frame(Frame::message);
    out.bytes(role);
  }
  /// Tools of chat and Messages (wrapped or flat) and Responses (flat) under one spelling; also `functions`.
  bool write_tools(Slot slot);
  /// A tool call; `arguments` is a string (byte for byte) or an object (compact JSON).
  bool write_call(Frame kind, NodeIndex id, NodeIndex name, NodeIndex arguments, std::string_view arguments_name);
  /// Members that change the prompt from its very start: templates, documents, hidden history.
  bool write_head();
  /// Anything that routing does not know, spelled out; envelopes in one order.
  void write_opaque(Frame frame, NodeIndex object);

 private:
  bool write_tool(NodeIndex tool);
  void write_function(NodeIndex function, bool flat);
  bool head_member(Slot slot, NodeKind kind, std::string_view wanted, std::size_t& start);

  BodyApi api_;

 public:
  const JsonTape& tape;
  Canonical& out;
  Place place;

 private:
  Error& error_;
};

/// Who speaks in a message that is not open yet: the text of a node, or a word of ours.
struct Role {
  NodeIndex node = kNoNode;
  std::string_view word{};
};

/// The parts of one message, in order. With a role, the message is opened by its first part, so that none appears for
/// text that is not there; without, the caller has opened it.
class Parts {
 public:
  explicit Parts(BodyReader& reader) : r_(reader) {}
  Parts(BodyReader& reader, Role role) : r_(reader), role_(role), pending_(true) {}

  /// Content as a string, a list of parts, null or nothing. errors: wrong_type, missing_field
  bool content(NodeIndex node, std::string_view leaf);
  bool part(NodeIndex node);
  void text(NodeIndex string);
  /// Opens the message if that is still to be done.
  void open();
  /// open(), and what was held back is written. Called before anything but text is written.
  void flush();
  /// What follows belongs to another message of the same role, opened by its first part.
  void next_message();

 private:
  bool image(NodeIndex part, NodeIndex image, NodeIndex detail, NodeIndex uuid, NodeIndex file_id,
             std::string_view leaf);
  bool anthropic_image(NodeIndex source);

  BodyReader& r_;
  Role role_{};
  bool pending_ = false;
  bool any_ = false;
  bool empty_first_ = false;  // a first text part without text: written only if another part follows ("" = [] = null)
};

/// Calls `write` with every element of `messages`, or of another list. errors: missing_field, wrong_type, empty_prompt, and what `write`
/// refuses
bool read_message_list(BodyReader& reader, bool (*write)(BodyReader&, NodeIndex), Slot list = Slot::messages);

/// The readers: each checks its members and writes the canonical prompt.
bool read_chat(BodyReader& reader);
bool read_responses(BodyReader& reader);
bool read_messages(BodyReader& reader);
bool read_gemini(BodyReader& reader);
bool read_converse(BodyReader& reader);

}  // namespace warmroute::ingest
