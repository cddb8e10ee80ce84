// See event_shape.hpp. As long as all bytes so far were equal, holes apart, both texts are at the same place of the same
// grammar; so a difference inside a hole is a difference of that value alone.
#include "usage/event_shape.hpp"

#include <algorithm>

namespace warmroute::usage {

bool EventShape::matches(std::string_view event, std::uint64_t revision) const noexcept {
  if (size_ == 0 || revision != revision_) return false;
  const char* const text = text_.data();
  const char* p = event.data();
  const char* const end = p + event.size();
  std::size_t at = 0;  // of text
  std::size_t next_hole = 0;
  for (;;) {
    const std::size_t left = std::min<std::size_t>(size_ - at, static_cast<std::size_t>(end - p));
    const std::size_t same = common_prefix(text + at, p, left);
    at += same;
    p += same;
    if (at == size_ && p == end) return true;
    while (next_hole < hole_count_ && holes_[next_hole].end < at) ++next_hole;
    if (next_hole == hole_count_ || holes_[next_hole].begin > at) return false;
    const Hole& hole = holes_[next_hole++];
    p -= at - hole.begin;  // to the value's beginning: an escape may lie before the difference
    if (hole.string) {
      const char* const begin = p;
      p = find_string_end(p, end);
      if (p == end || (p == begin) != (hole.begin == hole.end)) return false;  // no text may mean no output
    } else {
      const char* const begin = p;
      while (p != end && is_number_byte(*p)) ++p;
      if (p == begin || !(*begin == '-' || (*begin >= '0' && *begin <= '9'))) return false;
    }
    at = hole.end;
  }
}

}  // namespace warmroute::usage
