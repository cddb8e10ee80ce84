// What an engine's cache does, as its publisher would say it: conversations of 12 blocks, stored from the front and removed from the end.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kv_build.hpp"

namespace warmroute::test {

class CacheEngine {
 public:
  static constexpr std::size_t kBlock = 4, kTalks = 8, kDepth = 12;
  explicit CacheEngine(std::uint32_t seed) : random_(seed) {}

  /// returns: the payload of the next message.
  std::string step() {
    std::vector<std::string> events;
    for (std::size_t i = below(3); i-- > 0;) {
      const std::size_t c = below(kTalks);
      std::size_t& depth = depth_[c];
      if (below(3) != 0 && depth < kDepth) {
        const std::size_t n = 1 + below(kDepth - depth);
        Stored s;
        for (std::size_t b = 0; b < n; ++b) s.ids.push_back(id(c, depth + b));
        if (depth > 0) s.parent = id(c, depth - 1);
        s.tokens = tokens(c, depth, n);
        events.push_back(below(2) == 0 ? s.as_map(below(5)) : s.as_array());
        depth += n;
      } else if (depth > 0) {
        for (std::size_t n = 1 + below(depth); n-- > 0;) events.push_back(removed({id(c, --depth)}));
      }
    }
    return batch(events);
  }
  void restart() {
    ++life_;
    depth_ = {};
  }
  [[nodiscard]] std::size_t depth(std::size_t talk) const { return depth_[talk]; }
  static TokenList tokens(std::size_t talk, std::size_t from, std::size_t count) {
    return count_from(1 + talk * 1'000 + from * kBlock, count * kBlock);
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  [[nodiscard]] std::uint64_t id(std::size_t talk, std::size_t block) const {
    return (life_ + 1) * 1'000'000 + talk * 100 + block + 1;
  }

  std::mt19937 random_;
  std::uint64_t life_ = 0;
  std::array<std::size_t, kTalks> depth_{};
};

}  // namespace warmroute::test
