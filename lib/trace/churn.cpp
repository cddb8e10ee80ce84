// Churn as text: what happens to the fleet, and when.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "warmroute/trace/simulator.hpp"

namespace warmroute::trace {
namespace {

using Kind = ChurnEvent::Kind;

std::optional<Kind> kind_of(std::string_view name) {
  constexpr std::pair<std::string_view, Kind> kKinds[]{{"add", Kind::add},         {"remove", Kind::remove},
                                                       {"restart", Kind::restart}, {"drain", Kind::drain},
                                                       {"resume", Kind::resume},   {"speed", Kind::speed}};
  for (const auto& [word, kind] : kKinds) {
    if (word == name) return kind;
  }
  return std::nullopt;
}

/// One event's words; every number is refused unless it is one.
struct Words {
  std::vector<std::string> words;
  [[nodiscard]] std::optional<std::int64_t> micros(std::size_t i) const {
    double seconds = 0;
    if (i >= words.size() || !absl::SimpleAtod(words[i], &seconds) || !(seconds >= 0 && seconds < 1e9)) return {};
    return std::llround(seconds * 1e6);
  }
  [[nodiscard]] std::optional<std::uint32_t> number(std::size_t i) const {
    std::uint32_t value = 0;
    if (i >= words.size() || !absl::SimpleAtoi(words[i], &value)) return {};
    return value;
  }
};

bool add_rolling(const Words& w, std::int64_t at_us, std::vector<ChurnEvent>& out) {
  const auto each_us = w.micros(3);
  std::uint32_t first = 0, last = 0;
  const std::vector<std::string> ends = absl::StrSplit(w.words.size() > 2 ? w.words[2] : "", '-');
  if (!each_us || ends.size() != 2 || !absl::SimpleAtoi(ends[0], &first) || !absl::SimpleAtoi(ends[1], &last) ||
      last < first || last - first > 16'384)
    return false;
  for (std::uint32_t r = first; r <= last; ++r, at_us += *each_us) {
    out.push_back({at_us, Kind::drain, r, 1000});
    out.push_back({at_us + *each_us, Kind::restart, r, 1000});
  }
  return true;
}

bool add_event(const Words& w, std::vector<ChurnEvent>& out) {
  const auto at_us = w.micros(0);
  if (!at_us || w.words.size() < 2) return false;
  const std::string& name = w.words[1];
  if (name == "rolling") return w.words.size() == 4 && add_rolling(w, *at_us, out);
  if (name == "add") {
    out.push_back({*at_us, Kind::add, 0, 1000});
    return w.words.size() == 2;
  }
  const auto replica = w.number(2);
  if (!replica) return false;
  if (name == "flap") {
    const auto for_us = w.micros(3);
    if (!for_us || w.words.size() != 4) return false;
    out.push_back({*at_us, Kind::drain, *replica, 1000});
    out.push_back({*at_us + *for_us, Kind::resume, *replica, 1000});
    return true;
  }
  const auto kind = kind_of(name);
  if (!kind) return false;
  ChurnEvent event{*at_us, *kind, *replica, 1000};
  if (*kind == Kind::speed) {
    const auto value = w.number(3);
    if (!value || *value == 0) return false;
    event.value = *value;
  }
  out.push_back(event);
  return w.words.size() == (*kind == Kind::speed ? 4u : 3u);
}

}  // namespace

Result<std::vector<ChurnEvent>> parse_churn(std::string_view text) {
  std::vector<ChurnEvent> out;
  // Debian's Abseil has a string_view of its own.
  const std::string copy(text);
  for (const auto piece : absl::StrSplit(copy, absl::ByAnyChar(",\n"), absl::SkipWhitespace())) {
    Words w{absl::StrSplit(piece, absl::ByAnyChar(" \t\r"), absl::SkipEmpty())};
    if (!add_event(w, out)) {
      return Error{Code::invalid_argument,
                   "churn: \"" + std::string(piece) +
                       "\" is none of: <s> add; <s> remove|restart|drain|resume <replica>; <s> speed <replica> "
                       "<permille>; <s> flap <replica> <s>; <s> rolling <first>-<last> <s>",
                   kNoOffset};
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const ChurnEvent& a, const ChurnEvent& b) { return a.at_us < b.at_us; });
  return out;
}

}  // namespace warmroute::trace
