/// What a replica costs at least, as a line in what it has to do: below the formula of route/cost.hpp everywhere, by less than 0.2 % where the
/// replica is as quick as its kind and its cache neither small nor full. One comparison settles most of a large fleet by it, without a division.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "warmroute/route/cost.hpp"

namespace warmroute::detail {

/// What a replica has to do.
struct ReplicaLoad {
  std::int64_t requests = 0;
  std::int64_t pending_ns = 0;
  std::int64_t context_tokens = 0;
};

struct CostLine {
  std::int64_t fixed_ns = 0;      // whatever it has to do; its own decode alone included
  std::int64_t stall_ns = 0;      // what each request that runs there adds
  std::int64_t context_ns = 0;    // what each token of theirs adds to its own decode,
  std::int64_t most_context = 0;  // of so many tokens
  std::int64_t tail = 0;          // what each 1,024 ns of its wait add beside themselves

  [[nodiscard]] std::int64_t at(const ReplicaLoad& load) const noexcept {
    return fixed_ns + load.pending_ns + (std::min(load.pending_ns, Rates::kMaxNs) >> 10) * tail +
           stall_ns * std::min(load.requests, kMaxRequests) + context_ns * std::min(load.context_tokens, most_context);
  }
};

/// The line of replicas that find `held` of the prompt and are not quicker than their kind. Left out is what only adds to the cost: `evict`, `full`
/// and slowness. Every division of the formula rounds down: the line is lower by as much as that can come to.
/// shape: of `held`, the fields in tokens. `whole_prefill_ns` as in cost_of.
inline CostLine cost_line(const CostWeights& w, const CostRequest& q, const Rates& rates, std::int64_t whole_prefill_ns,
                          const CostReplica& held) noexcept {
  const CostTerms idle = cost_of(w, q, rates, whole_prefill_ns, held);
  const std::int64_t output = std::min(q.output_tokens, kMaxOutput);
  const std::int64_t tail = tail_milli(w, q, idle.prefill);
  const std::int64_t rounding = (output / 1'000 + 2) * w.delta + tail + 2;
  const std::int64_t step = std::max(rates.floor_ns, rates.token_ps / 1'000);
  const std::int64_t room = std::max<std::int64_t>(0, kMaxStepNs - step);  // no step counts for longer than kMaxStepNs
  return {.fixed_ns = idle.miss - idle.rebate + idle.transfer + idle.decode - rounding,
          .stall_ns = stall_ns(w, idle.prefill, 1),
          .context_ns = rates.context_ps * output / 1'000 * w.delta / 1'000,
          .most_context = std::min(room / std::max<std::int64_t>(1, rates.context_ps) * 1'000, kMaxContext),
          .tail = tail * 1'024 / 1'000};
}

/// The lines of depths that several replicas hold, such as an instruction that all prompts begin with; for one request and kind of hardware.
template <class Line>
class DeeperLines {
 public:
  void clear() noexcept {
    depths_.fill(0);
    built_ = 0;
  }
  /// returns: the line of who holds so many leading blocks, not 0; nullptr when that is asked for the first time of late: a line costs as much as two
  /// candidates priced in full, so who is alone with a depth is priced. `make()` makes it.
  template <class Make>
  [[nodiscard]] const Line* of(std::uint32_t depth, Make&& make) {
    const std::uint32_t at = depth * 0x9E37'79B1u >> (32 - kBits);
    if (depths_[at] != depth) {
      depths_[at] = depth;
      built_ &= ~(1u << at);
      return nullptr;
    }
    if ((built_ >> at & 1u) == 0) {
      lines_[at] = make();
      built_ |= 1u << at;
    }
    return &lines_[at];
  }

 private:
  static constexpr unsigned kBits = 3;
  std::array<std::uint32_t, 1u << kBits> depths_{};
  std::uint32_t built_ = 0;
  std::array<Line, 1u << kBits> lines_{};
};

}  // namespace warmroute::detail
