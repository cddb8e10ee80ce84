// Random numbers for formulas: small ones as often as large ones, the same in each run.
#pragma once

#include <cstdint>

#include "warmroute/route/baselines.hpp"

namespace warmroute::test {

class EverySize {
 public:
  /// returns: 0 to `most`.
  std::int64_t operator()(std::int64_t most) noexcept {
    const std::uint64_t n = mix(state_++);
    return static_cast<std::int64_t>(n >> 1 >> n % 50) % (most + 1);
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace warmroute::test
