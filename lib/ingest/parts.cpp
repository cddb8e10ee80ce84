// The parts of a message: text in its several names, images by digest, anything else spelled out in place.
#include "ingest/body_reader.hpp"

namespace warmroute::ingest {

void Parts::open() {
  if (!pending_) return;
  pending_ = false;
  if (role_.node == kNoNode) {
    r_.open_message(role_.word);
  } else {
    r_.out.framed_text(Frame::message, role_.node);
  }
}

void Parts::flush() {
  open();
  if (empty_first_) r_.out.frame(Frame::text);
  empty_first_ = false;
  any_ = true;
}

void Parts::next_message() {
  pending_ = true;
  any_ = false;
  empty_first_ = false;
}

void Parts::text(NodeIndex string) {
  if (!any_ && r_.tape.view(string).empty()) {
    any_ = true;
    empty_first_ = true;
    return;
  }
  flush();
  r_.out.framed_text(Frame::text, string);
}

bool Parts::content(NodeIndex node, std::string_view leaf) {
  if (node == kNoNode) return true;
  if (r_.tape.kind(node) == NodeKind::string) {
    text(node);
    return true;
  }
  if (r_.tape.kind(node) != NodeKind::array) return r_.fail_type(node, leaf, "a string, a list of parts or null");
  const Place outer = r_.place;
  const bool top_level = outer.top.empty();
  (top_level ? r_.place.top : r_.place.inner) = leaf;
  std::int64_t& index = top_level ? r_.place.item : r_.place.part;
  index = 0;
  for (NodeIndex child = JsonTape::first(node); child != r_.tape.end(node); child = r_.tape.after(child), ++index) {
    if (!part(child)) return false;
  }
  r_.place = outer;
  return true;
}

bool Parts::part(NodeIndex node) {
  const JsonTape& tape = r_.tape;
  if (tape.kind(node) == NodeKind::string && r_.api() == BodyApi::chat) {  // vLLM takes bare strings
    text(node);
    return true;
  }
  if (!r_.is_object(node, "")) return false;
  r_.place.node = node;
  static constexpr std::array<std::string_view, 9> kNames{"type",   "text",    "image_url", "detail", "uuid",
                                                          "source", "refusal", "thinking",  "file_id"};
  std::array<NodeIndex, kNames.size()> m;
  tape.collect(node, kNames, m);
  const auto [type, text_node, image_url, detail, uuid, source, refusal, thinking, file_id] = m;
  if (!r_.is_string(type, "type")) return false;
  const auto type_is = [this, of = type](std::string_view name) { return r_.tape.is(of, name); };
  const bool untyped_text = type == kNoNode && text_node != kNoNode;
  if (type_is("text") || type_is("input_text") || type_is("output_text") || untyped_text) {
    if (!r_.has_string(text_node, "text")) return false;
    text(text_node);
    return true;
  }
  if (type_is("image_url") || type_is("input_image")) {
    return image(node, image_url, detail, uuid, type_is("input_image") ? file_id : kNoNode, "image_url");
  }
  if (type_is("image") && r_.api() == BodyApi::messages) {
    if (source == kNoNode) return r_.fail_missing("source");
    if (!r_.is_object(source, "source")) return false;
    return anthropic_image(source);
  }
  flush();
  if (type_is("refusal"))
    return r_.has_string(refusal, "refusal") && r_.optional_text(Frame::refusal, refusal, "refusal");
  if (type_is("thinking"))
    return r_.has_string(thinking, "thinking") && r_.optional_text(Frame::reasoning, thinking, "thinking");
  r_.write_opaque(Frame::opaque, node);
  return true;
}

// An image stands as 16 bytes of digest in its place: as text, one photograph would outweigh the whole conversation.
bool Parts::image(NodeIndex part, NodeIndex image, NodeIndex detail, NodeIndex uuid, NodeIndex file_id,
                  std::string_view leaf) {
  const JsonTape& tape = r_.tape;
  NodeIndex url = image;
  if (image != kNoNode && tape.kind(image) == NodeKind::object) {
    static constexpr std::array<std::string_view, 2> kNames{"url", "detail"};
    std::array<NodeIndex, kNames.size()> m;
    tape.collect(image, kNames, m);
    url = m[0];
    if (m[1] != kNoNode) detail = m[1];
    leaf = "image_url.url";
  }
  if (!r_.is_string(url, leaf) || !r_.is_string(detail, "detail") || !r_.is_string(uuid, "uuid") ||
      !r_.is_string(file_id, "file_id")) {
    return false;
  }
  if (url == kNoNode && uuid == kNoNode && file_id == kNoNode) {
    return r_.fail(Code::missing_field, part, leaf, "is missing");
  }
  flush();
  if (url != kNoNode) {
    r_.out.digest(Frame::blob, {r_.tape.view(url)});
  } else if (file_id != kNoNode) {
    r_.out.digest(Frame::blob, {"file_id:", r_.tape.view(file_id)});
  }
  if (!r_.blank(detail) && !tape.is(detail, "auto")) r_.out.framed_text(Frame::detail, detail);  // auto is the default
  return r_.optional_text(Frame::uuid, uuid, "uuid");
}

// Spelled as the URL that the OpenAI APIs would carry, so that the same picture is the same picture.
bool Parts::anthropic_image(NodeIndex source) {
  static constexpr std::array<std::string_view, 5> kNames{"type", "media_type", "data", "url", "file_id"};
  std::array<NodeIndex, kNames.size()> m;
  r_.tape.collect(source, kNames, m);
  const auto [type, media_type, data, url, file_id] = m;
  if (!r_.is_string(type, "source.type") || !r_.is_string(media_type, "source.media_type")) return false;
  const auto type_is = [this, of = type](std::string_view name) { return r_.tape.is(of, name); };
  if (type_is("base64")) {
    if (!r_.has_string(data, "source.data")) return false;
    flush();
    const std::string_view media = media_type == kNoNode ? std::string_view() : r_.tape.view(media_type);
    r_.out.digest(Frame::blob, {"data:", media, ";base64,", r_.tape.view(data)});
  } else if (type_is("url")) {
    if (!r_.has_string(url, "source.url")) return false;
    flush();
    r_.out.digest(Frame::blob, {r_.tape.view(url)});
  } else if (type_is("file")) {
    if (!r_.has_string(file_id, "source.file_id")) return false;
    flush();
    r_.out.digest(Frame::blob, {"file_id:", r_.tape.view(file_id)});
  } else {
    flush();
    r_.write_opaque(Frame::opaque, source);
  }
  return true;
}

}  // namespace warmroute::ingest
