/// What the parts of a pair cost at least on one replica (detail/cost_line.hpp, of the formulas of route/disaggregate.hpp): its prompts as a line in
/// what it has to do, its decodes exactly. Left out is what only adds: what is lost to the limits by the prompt.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warmroute/route/detail/cost_line.hpp"
#include "warmroute/route/disaggregate.hpp"

namespace warmroute::detail {

struct PairLine {
  std::int64_t prompt_ns = 0;    // whatever the replica has to do
  std::int64_t stall_ns = 0;     // what each request that runs there adds to that
  std::int64_t work_ns = 0;      // of its prefill
  std::int64_t transfer_ns = 0;  // of what it does not hold, to decode it there
};

/// As cost_line. `apart`: some replica is slower than its kind.
inline PairLine pair_line(const PairWeights& w, const CostRequest& q, const Rates& rates, std::int64_t whole_prefill_ns,
                          const CostReplica& held, bool apart) noexcept {
  const CostTerms idle = cost_of(w.cost, q, rates, whole_prefill_ns, held);
  const std::int64_t rounding = apart ? 2 : 0;  // where products are rounded
  return {.prompt_ns = idle.miss - idle.rebate + idle.transfer - rounding,
          .stall_ns = stall_ns(w.cost, idle.prefill, 1),
          .work_ns = idle.prefill,
          .transfer_ns = transfer_ns(w, q.input_tokens, held.cached_tokens)};
}

/// What they cost at least on one replica. A prompt and its decode there: `prompt` and `decode_there`, which waits for that prompt, too, and leaves out
/// what is lost to the limit of the time between tokens, since more prefill may lose less of those who decode there when all of it is lost already.
struct PairLeast {
  std::int64_t prompt = 0, decode = 0, decode_there = 0;
  [[nodiscard]] std::int64_t whole() const noexcept { return prompt + decode_there; }
};
[[gnu::flatten]] inline PairLeast pair_least(const PairLine& line, const PairWeights& w, const CostRequest& q,
                                             const Rates& rates, const CostReplica& r,
                                             const PairReplica& more) noexcept {
  const DecodeTerms decode = decode_terms(w, q, rates, r, more, more.share_milli);
  return {r.pending_ns + line.prompt_ns + line.stall_ns * std::min(r.requests, kMaxRequests),
          r.pending_ns + line.transfer_ns + decode.total, decode.decode};
}

}  // namespace warmroute::detail
