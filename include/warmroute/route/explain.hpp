/// Why a decision fell as it did: every candidate with its match, its terms in time, and why it lost.
/// Building one allocates; it is for people and tests, not for the path. Holds names and counts only: no text, ids or hashes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/replica/load.hpp"
#include "warmroute/route/cost.hpp"
#include "warmroute/route/decision.hpp"

namespace warmroute {

struct CandidateExplanation {
  ReplicaId id;
  std::string name;
  std::uint32_t dp_rank = 0;
  bool eligible = true;
  bool chosen = false;
  std::array<std::int64_t, kAllTierCount>
      cached_tokens{};  ///< device; what only host, then disk, then the shared store adds
  LoadReading load;
  CostTerms cost;                 ///< filled for every candidate, whatever the algorithm
  std::string_view lost_because;  ///< static text; empty for the chosen one
};

struct Explanation {
  Decision decision;  ///< what `peek` would answer now
  std::string pool;
  std::string_view algorithm;
  std::size_t blocks = 0;  ///< whole blocks of the prompt
  std::int64_t tokens_per_block_milli = 0;
  std::int64_t shared_requests = 0;  ///< requests in flight that share the start of this prompt
  std::string_view no_match;         ///< static text: why nobody holds any of it; empty when somebody does
  std::vector<CandidateExplanation> candidates;
};

/// returns: a table for people, times in milliseconds. In lib.
std::string to_text(const Explanation& explanation);
/// returns: the same as one JSON object. In lib.
std::string to_json(const Explanation& explanation);

}  // namespace warmroute
