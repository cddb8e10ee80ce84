// Writes the canonical prompt stream: frames, decoded text, JSON values with one spelling, digests of images.
#include "ingest/canonical.hpp"

#include <algorithm>

#include "ingest/json_text.hpp"
#include "warmroute/detail/xxh3.hpp"

namespace warmroute::ingest {
namespace {

constexpr std::size_t kBlobBytes = 128;         // shorter strings are never taken for binary data
constexpr std::size_t kSmallObject = 16;        // members up to which comparing all pairs is quicker than sorting
constexpr std::size_t kLargestEnvelope = 1024;  // what has more members is data; sorting millions by name takes seconds

bool looks_binary(std::string_view text) noexcept {
  if (text.size() < kBlobBytes) return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '{'; });
}

std::string_view bytes_of(const XXH128_canonical_t& hash) noexcept {
  return {reinterpret_cast<const char*>(hash.digest), sizeof hash.digest};
}

}  // namespace

void Canonical::reset(std::size_t keep_bytes) noexcept {
  buffer_.reset(keep_bytes);
  members_.clear();
  if (members_.capacity() * sizeof(Member) > keep_bytes) std::vector<Member>().swap(members_);
  if (by_hash_.capacity() * sizeof(by_hash_[0]) > keep_bytes) decltype(by_hash_)().swap(by_hash_);
}

void Canonical::text(NodeIndex string) { buffer_.append(tape_.view(string)); }

void Canonical::json(NodeIndex node, const JsonStyle& style) { value(node, style, 0); }

// Recursion is bounded by the depth that the tape was built with.
void Canonical::value(NodeIndex node, const JsonStyle& style, int level) {
  switch (tape_.kind(node)) {
    case NodeKind::object: object(node, style, level); return;
    case NodeKind::array: array(node, style, level); return;
    case NodeKind::string: quoted(node, style.digest_blobs); return;
    case NodeKind::numbers: number(tape_.view(node)); return;
    case NodeKind::true_value:
    case NodeKind::false_value:
    case NodeKind::null_value: buffer_.append(tape_.view(node)); return;
  }
}

void Canonical::array(NodeIndex node, const JsonStyle& style, int level) {
  buffer_.append('[');
  bool first = true;
  for (NodeIndex child = JsonTape::first(node); child != tape_.end(node); child = tape_.after(child)) {
    if (tape_.kind(child) == NodeKind::numbers) {
      numbers(child, first);
      continue;
    }
    if (!first) buffer_.append(',');
    first = false;
    value(child, style, level + 1);
  }
  buffer_.append(']');
}

void Canonical::numbers(NodeIndex run, bool& first) {
  std::string_view rest = tape_.view(run);
  while (!rest.empty()) {
    const std::size_t length = std::min(rest.find_first_of(", \n\r\t"), rest.size());
    if (length != 0) {
      if (!first) buffer_.append(',');
      first = false;
      number(rest.substr(0, length));
    }
    rest.remove_prefix(std::min(length + 1, rest.size()));
  }
}

void Canonical::number(std::string_view raw) {
  buffer_.reserve_more(raw.size() + kNumberSlack);
  buffer_.set_end(write_number(raw, buffer_.end()));
}

void Canonical::object(NodeIndex node, const JsonStyle& style, int level) {
  const std::size_t from = members_.size();
  for (NodeIndex key = JsonTape::first(node); key != tape_.end(node); key = tape_.after(tape_.after(key))) {
    if (level == 0 && skipped(key, style)) continue;
    const std::string_view name = tape_.view(key);
    members_.push_back({key, tape_.after(key), XXH3_64bits_withSeed(name.data(), name.size(), digest_seed_)});
  }
  drop_repeated(from);
  if (level < style.sorted_levels && members_.size() - from <= kLargestEnvelope) {
    std::sort(members_.begin() + static_cast<std::ptrdiff_t>(from), members_.end(),
              [this](const Member& a, const Member& b) { return tape_.view(a.key) < tape_.view(b.key); });
  }
  buffer_.append('{');
  const std::size_t count = members_.size();
  for (std::size_t i = from; i < count; ++i) {
    const Member member = members_[i];
    if (i != from) buffer_.append(',');
    quoted(member.key, false);
    buffer_.append(':');
    value(member.value, style, level + 1);
  }
  members_.resize(from);
  buffer_.append('}');
}

// Of a repeated key the first place and the last value remain, as in Python's dict.
void Canonical::drop_repeated(std::size_t from) {
  const std::size_t count = members_.size() - from;
  if (count < 2) return;
  Member* const m = members_.data() + from;
  bool dropped = false;
  const auto merge = [&](std::size_t earlier, std::size_t later) {
    m[earlier].value = m[later].value;
    m[later].key = kNoNode;
    dropped = true;
  };
  if (count <= kSmallObject) {
    for (std::size_t i = 1; i < count; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (m[j].hash != m[i].hash || m[j].key == kNoNode || tape_.view(m[j].key) != tape_.view(m[i].key)) continue;
        merge(j, i);
        break;
      }
    }
  } else {  // sorted by hash; a chance collision of different keys is told apart from the first of its group only
    by_hash_.clear();
    for (std::size_t i = 0; i < count; ++i) by_hash_.emplace_back(m[i].hash, static_cast<std::uint32_t>(i));
    std::sort(by_hash_.begin(), by_hash_.end());
    std::size_t first = by_hash_[0].second;
    for (std::size_t i = 1; i < count; ++i) {
      const std::size_t next = by_hash_[i].second;
      if (m[next].hash == m[first].hash && tape_.view(m[first].key) == tape_.view(m[next].key)) {
        merge(first, next);
      } else if (m[next].hash != m[first].hash) {
        first = next;
      }
    }
  }
  if (!dropped) return;
  members_.erase(std::remove_if(members_.begin() + static_cast<std::ptrdiff_t>(from), members_.end(),
                                [](const Member& member) { return member.key == kNoNode; }),
                 members_.end());
}

bool Canonical::skipped(NodeIndex key, const JsonStyle& style) const noexcept {
  for (std::size_t i = 0; i < style.skip_count; ++i) {
    if (tape_.view(key) == style.skip[i]) return true;
  }
  return false;
}

bool Canonical::has_members(NodeIndex node, const JsonStyle& style) const noexcept {
  for (NodeIndex key = JsonTape::first(node); key != tape_.end(node); key = tape_.after(tape_.after(key))) {
    if (!skipped(key, style)) return true;
  }
  return false;
}

// The text with the fewest escapes that JSON allows.
void Canonical::quoted(NodeIndex string, bool digest_blobs) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::string_view decoded = tape_.view(string);
  buffer_.append('"');
  if (digest_blobs && looks_binary(decoded)) {
    digest(Frame::blob, {decoded});
  } else {
    const char* p = decoded.data();
    const char* const end = p + decoded.size();
    while (true) {
      const char* const special = find_string_special(p, end);
      buffer_.append({p, static_cast<std::size_t>(special - p)});
      if (special == end) break;
      p = special + 1;
      buffer_.append('\\');
      if (*special == '"' || *special == '\\') {
        buffer_.append(*special);
      } else if (const auto short_form = std::string_view("\b\f\n\r\t").find(*special);
                 short_form != std::string_view::npos) {
        buffer_.append("bfnrt"[short_form]);
      } else {
        buffer_.append("u00");
        buffer_.append(kHex[static_cast<std::size_t>(*special) >> 4]);
        buffer_.append(kHex[static_cast<std::size_t>(*special) & 15]);
      }
    }
  }
  buffer_.append('"');
}

void Canonical::digest(Frame f, std::initializer_list<std::string_view> pieces) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);  // reset reads the seed that it finds
  XXH3_128bits_reset_withSeed(&state, digest_seed_);
  for (const std::string_view piece : pieces) XXH3_128bits_update(&state, piece.data(), piece.size());
  XXH128_canonical_t digest_bytes;
  XXH128_canonicalFromHash(&digest_bytes, XXH3_128bits_digest(&state));
  frame(f);
  buffer_.append(bytes_of(digest_bytes));
}

void Canonical::digest_tail(Frame f, std::size_t start) {
  const std::string_view tail = buffer_.from(start);
  XXH128_canonical_t digest_bytes;
  XXH128_canonicalFromHash(&digest_bytes, XXH3_128bits_withSeed(tail.data(), tail.size(), digest_seed_));
  buffer_.truncate(start);
  frame(f);
  buffer_.append(bytes_of(digest_bytes));
}

}  // namespace warmroute::ingest
