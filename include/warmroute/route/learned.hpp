/// What a pool's requests have taught of its hardware, as a value: Router::learned gives it, Router::restore_learned takes it, and a
/// cache export (route/cache_export.hpp) carries it over a restart, so that a new process does not begin with the declared rates.
/// Invariant: a kind is named by its declared rates, a replica by name and rank; what is not there when it is restored is passed over.
/// Does not: say rates to read or plot; statistics do that (LearnedRates).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "warmroute/replica/load.hpp"

namespace warmroute {

/// One kind of hardware: replicas of equal declared rates.
struct LearnedKind {
  static constexpr std::size_t kSums = 25;

  Rates declared;
  std::int64_t samples = 0;                ///< observed times
  bool trusted = false;                    ///< they explain what was seen: decisions use what was learned
  std::array<std::int64_t, kSums> sums{};  ///< of the samples, as detail/learned_state.hpp orders them
};

/// By how much one replica is slower than its kind.
struct LearnedSlowness {
  std::string name;
  std::uint32_t dp_rank = 0;
  std::int64_t slowness = 0;  ///< units: 2^-20; twice as long is 2^21
};

struct LearnedPool {
  std::vector<LearnedKind> kinds;
  std::vector<LearnedSlowness> replicas;
};

/// What came of one Router::restore_learned.
struct RestoredLearned {
  std::uint64_t kinds = 0;     ///< that begin with what was restored
  std::uint64_t replicas = 0;  ///< likewise
};

}  // namespace warmroute
