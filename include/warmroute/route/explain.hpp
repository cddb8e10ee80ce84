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
#include "warmroute/route/disaggregate.hpp"

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

/// The best pair beside the best single replica, in pools that can form pairs.
struct PairExplanation {
  bool possible = false;  ///< there are two replicas for it; else `decision.split` says what is missing
  std::string prefill;    ///< names, "/<dp_rank>" behind them for ranks above 0
  std::string decode;
  std::string unified;
  std::int64_t transferred_tokens = 0;
  PairTerms terms;
  PromptTerms unified_prompt;
  DecodeTerms unified_decode;
  std::int64_t unified_total = 0;
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
  bool pairs = false;  ///< the pool can form pairs
  PairExplanation pair;
};

/// returns: a table for people, times in milliseconds. In lib.
std::string to_text(const Explanation& explanation);
/// returns: the same as one JSON object. In lib.
std::string to_json(const Explanation& explanation);

}  // namespace warmroute
