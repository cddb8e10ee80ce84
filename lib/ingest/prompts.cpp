// OpenAI completions and embeddings: what a prompt may be.
#include "ingest/prompts.hpp"

#include <bit>
#include <limits>

#include "ingest/json_text.hpp"

namespace warmroute::ingest {

std::uint32_t* TokenIds::room(std::size_t count) {
  if (ids_.size() - count_ < count) ids_.resize(std::max(count_ + count, ids_.size() + ids_.size() / 2));
  return ids_.data() + count_;
}

void TokenIds::reset(std::size_t keep_bytes) noexcept {
  clear();
  if (ids_.size() * sizeof(std::uint32_t) > keep_bytes) std::vector<std::uint32_t>().swap(ids_);
  if (ends_.capacity() * sizeof(std::size_t) > keep_bytes) std::vector<std::size_t>().swap(ends_);
}

namespace {

bool fail_number(BodyReader& r, Code code, const char* at, std::string_view what) {
  return r.fail_at(code, static_cast<std::size_t>(at - r.tape.text().data()), "", what);
}

// One id in any spelling of an integer. errors: wrong_type (a fraction), value_out_of_range
bool slow_id(BodyReader& r, std::string_view raw, std::uint32_t& id) {
  const Integer n = parse_integer(raw);
  if (n.status == IntegerStatus::fraction)
    return fail_number(r, Code::wrong_type, raw.data(), "must be token ids, but has a fraction");
  if (n.negative || n.status == IntegerStatus::overflow || n.magnitude > std::numeric_limits<std::uint32_t>::max()) {
    return fail_number(r, Code::value_out_of_range, raw.data(), "has a token id outside 0..4294967295");
  }
  id = static_cast<std::uint32_t>(n.magnitude);
  return true;
}

// A run of numbers, separated by commas and blanks, known to be valid JSON.
bool read_ids(BodyReader& r, NodeIndex run, TokenIds& ids) {
  const std::string_view raw = r.tape.view(run);
  const char* p = raw.data();
  const char* const end = p + raw.size();
  ids.room(raw.size() / 2 + 1);  // a digit and a comma each, at least
  std::size_t count = 0;
  std::uint32_t* const out = ids.room(0);
  while (p < end) {
    if constexpr (std::endian::native == std::endian::little) {
      while (end - p >= 8) {
        std::uint64_t chunk = 0;
        const int digits = leading_digits(p, chunk);
        if (digits == 0 || digits == 8 || p[digits] != ',') break;
        out[count++] = digits_value(chunk, digits);
        p += digits + 1;
      }
    }
    const char* const begin = p;
    std::uint64_t value = 0;
    while (p < end && is_digit(*p) && p - begin < 10) value = value * 10 + static_cast<std::uint64_t>(*p++ - '0');
    const bool plain = p != begin && (p == end || *p == ',');
    if (plain && value <= std::numeric_limits<std::uint32_t>::max()) {
      out[count++] = static_cast<std::uint32_t>(value);
    } else {
      while (p < end && std::string_view(", \n\r\t").find(*p) == std::string_view::npos) ++p;
      if (p != begin) {
        if (!slow_id(r, {begin, static_cast<std::size_t>(p - begin)}, out[count])) return false;
        ++count;
      }
    }
    while (p < end && std::string_view(", \n\r\t").find(*p) != std::string_view::npos) ++p;
  }
  ids.take(count);
  ids.end_prompt();
  return true;
}

constexpr std::string_view kWanted = "a string, a list of strings, a list of token ids or a list of such lists";

bool read_id_lists(BodyReader& r, NodeIndex list, std::string_view name, TokenIds& ids, Prompts& prompts) {
  r.place = {name, 0};
  for (NodeIndex inner = JsonTape::first(list); inner != r.tape.end(list);
       inner = r.tape.after(inner), ++r.place.item) {
    if (!r.is(inner, NodeKind::array, "", "a list of token ids like the first one")) return false;
    if (r.tape.empty(inner))
      return r.fail(Code::empty_prompt, inner, "", "is an empty list: send at least one token id");
    const NodeIndex run = JsonTape::first(inner);
    if (r.tape.kind(run) != NodeKind::numbers) return r.fail_type(run, "", "token ids");
    if (r.tape.after(run) != r.tape.end(inner)) return r.fail_type(r.tape.after(run), "", "token ids throughout");
    if (!read_ids(r, run, ids)) return false;
    ++prompts.count;
  }
  prompts.ids = true;
  r.place = {};
  return true;
}

}  // namespace

bool read_prompts(BodyReader& r, Slot slot, TokenIds& ids, Prompts& prompts) {
  r.place = {};
  const std::string_view name = slot_name(slot);
  const NodeIndex node = r.member(slot);
  if (node == kNoNode) return r.fail_missing(name);
  if (r.tape.kind(node) == NodeKind::string) {
    prompts.single = node;
    prompts.count = 1;
    return true;
  }
  if (r.tape.kind(node) != NodeKind::array) return r.fail_type(node, name, kWanted);
  if (r.tape.empty(node)) return r.fail(Code::empty_prompt, node, name, "is an empty list: send at least one prompt");
  const NodeIndex first = JsonTape::first(node);
  switch (r.tape.kind(first)) {
    case NodeKind::numbers:
      if (r.tape.after(first) != r.tape.end(node))
        return r.fail_type(r.tape.after(first), name, "token ids throughout");
      r.place = {name, -1};
      prompts.ids = true;
      prompts.count = 1;
      return read_ids(r, first, ids);
    case NodeKind::array: return read_id_lists(r, node, name, ids, prompts);
    case NodeKind::string:
      r.place = {name, 0};
      for (NodeIndex text = first; text != r.tape.end(node); text = r.tape.after(text), ++r.place.item) {
        if (!r.is(text, NodeKind::string, "", "a string like the first one")) return false;
        ++prompts.count;
      }
      prompts.list = node;
      r.place = {};
      return true;
    default: return r.fail_type(first, name, kWanted);
  }
}

}  // namespace warmroute::ingest
