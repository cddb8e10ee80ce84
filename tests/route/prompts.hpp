// Prompts of token ids that count upwards, and requests of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "warmroute/route/request.hpp"

namespace warmroute::test {

inline std::vector<std::uint32_t> prompt(std::uint32_t first, std::size_t tokens = 4'000) {
  std::vector<std::uint32_t> out(tokens);
  std::iota(out.begin(), out.end(), first);
  return out;
}
/// lifetime: `tokens` is longer.
inline Request request(const std::vector<std::uint32_t>& tokens) {
  Request r;
  r.token_ids = tokens;
  return r;
}

}  // namespace warmroute::test
