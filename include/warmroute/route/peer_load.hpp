/// What several routers before the same replicas tell one another of their books, so that each sees the whole load: engines' metrics count
/// requests that wait, not how long they are. Each sends what Router::loads gives to the others, over whatever connects them, some ten times
/// a second; whoever gets it hands it to Router::peer_loads.
///
/// Invariant: a message is the whole of its sender's books, so one that is lost or comes twice is made good by the next; nothing in it is of
/// a prompt or of a client. Does not: send anything; know who the peers are (route/gateway_ring.hpp has their numbers).
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/result.hpp"
#include "warmroute/types.hpp"

namespace warmroute {

/// One router's requests in flight on one replica. Times are spans, so clocks of different machines do not matter.
struct PeerLoad {
  std::string name;  ///< of the replica, as its spec has it; the same on all routers
  std::uint32_t dp_rank = 0;
  std::int64_t requests = 0;        ///< in flight
  std::int64_t prompts = 0;         ///< of those, without a first token yet
  std::int64_t pending_ns = 0;      ///< prefill time of those prompts' uncached tokens
  std::int64_t context_tokens = 0;  ///< input tokens of the requests in flight
  std::int64_t turn_age_ns = 0;     ///< how long ago a prompt's turn came last: part of pending_ns is done since

  friend bool operator==(const PeerLoad&, const PeerLoad&) = default;

  /// Whether it says anything, and nothing that cannot be: what is not, is passed over wherever loads are written or taken.
  [[nodiscard]] bool sound() const noexcept {
    return requests > 0 && prompts >= 0 && prompts <= requests && pending_ns >= 0 && context_tokens >= 0 &&
           turn_age_ns >= 0 && !name.empty() && name.find('\n') == std::string::npos;
  }
};

inline constexpr std::uint32_t kMaxPeers = 1'024;

/// One line per replica that has requests: rank, the five numbers in their order, and the name, which may hold blanks but no line break.
/// some 50 bytes a replica. alloc: `out` alone.
inline void append_peer_loads(std::span<const PeerLoad> loads, std::string& out) {
  const auto number = [&](std::int64_t value) {
    std::array<char, 24> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out.append(text.data(), end).push_back(' ');
  };
  for (const PeerLoad& l : loads) {
    if (!l.sound()) continue;
    number(l.dp_rank);
    for (const std::int64_t value : {l.requests, l.prompts, l.pending_ns, l.context_tokens, l.turn_age_ns})
      number(value);
    out.append(l.name).push_back('\n');
  }
}

/// The text of append_peer_loads; empty: nothing in flight. errors: invalid_argument with the byte where a line is none, nothing is taken then.
inline Result<std::vector<PeerLoad>> read_peer_loads(std::string_view text) {
  std::vector<PeerLoad> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const auto refuse = [&](const char* why) {
      return Error{Code::invalid_argument, std::string("loads of a peer: ") + why, at};
    };
    if (end == std::string_view::npos) return refuse("the last line has no end");
    std::string_view line = text.substr(at, end - at);
    std::array<std::int64_t, 6> values{};
    for (std::int64_t& value : values) {
      const auto [rest, fault] = std::from_chars(line.data(), line.data() + line.size(), value);
      if (fault != std::errc{} || value < 0 || rest == line.data() + line.size() || *rest != ' ')
        return refuse("a line is six numbers and a name");
      line.remove_prefix(static_cast<std::size_t>(rest - line.data()) + 1);
    }
    if (line.empty() || values[0] > 0xFFFF'FFFF) return refuse("a replica without a name, or of no possible rank");
    out.push_back({std::string(line), static_cast<std::uint32_t>(values[0]), values[1], values[2], values[3], values[4],
                   values[5]});
    at = end + 1;
  }
  return out;
}

}  // namespace warmroute
