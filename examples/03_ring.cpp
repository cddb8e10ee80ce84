// A ring by itself: homes, successors, and what moves when a replica leaves, before it leaves.
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include <warmroute/warmroute.hpp>

using namespace warmroute;

int main() {
  std::vector<RingMember> members;
  for (std::uint32_t i = 0; i < 5; ++i) members.push_back({"slot-" + std::to_string(i), i, i == 4 ? 2.0 : 1.0});
  const auto ring = HashRing::build(members);
  if (!ring) {
    std::fprintf(stderr, "%s\n", ring.error().message.c_str());
    return 1;
  }
  for (const char* session : {"alice", "bob", "carol"}) {
    std::array<std::uint32_t, 3> next{};
    const std::size_t count = ring->successors(session_key(session, "", ""), next);
    std::printf("%-6s home slot-%u, then", session, next[0]);
    for (std::size_t i = 1; i < count; ++i) std::printf(" slot-%u", next[i]);
    std::printf("\n");
  }
  const auto smaller = ring->with_removed("slot-2");
  const Movement movement = movement_between(*ring, *smaller);
  std::printf("without slot-2, %.1f %% of the keys move:\n", 100 * movement.moved.fraction());
  for (const auto& flow : movement.flows) {
    std::printf("  %s -> %s %.1f %%\n", flow.from.c_str(), flow.to.c_str(), 100 * flow.span.fraction());
  }
  return 0;
}
