// A router that knows the next arrivals: how much is lost by not knowing them. A heuristic, not a bound.
#include <algorithm>
#include <limits>

#include "trace/rules/options.hpp"

namespace warmroute::trace {
namespace {

struct OracleOptions {
  std::int64_t look_ahead = 32;
  double beta = 1;   ///< weight of this request's own prefill beyond its TTFT
  double beta2 = 1;  ///< the same in the choices that are played forward
  double gamma = 0;
  double delta = 0;
};

/// For each candidate it plays the next arrivals forward, each to where wait + (1 + b2) x work is least; queues drain
/// with time, and prefixes placed on the way count. The least sum of all their TTFTs wins.
class OracleRule final : public RoutingRule {
 public:
  OracleRule(const RuleSetting& setting, const OracleOptions& options) : setting_(setting), options_(options) {}

  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    look_ahead(request, sights);
    Least<double> least(ties);
    for (std::size_t c = 0; c < sights.size(); ++c) least.offer(c, play(request, sights, c));
    return least.at();
  }
  void finished(const RoutedRequest&, std::uint32_t, std::int64_t, std::int64_t output) override {
    output_sum_ += static_cast<double>(output);
    output_count_ += 1;
  }

 private:
  [[nodiscard]] std::int64_t work_ps(std::int64_t input, std::int64_t cached) const noexcept {
    return setting_.hardware.prefill_ps(input - cached, cached);
  }

  // The next arrivals, what each replica holds of them, and how much of each is a prefix of a later one.
  void look_ahead(const RoutedRequest& request, Sights sights) {
    next_.clear();
    if (setting_.foresight != nullptr)
      setting_.foresight->upcoming(static_cast<std::size_t>(options_.look_ahead), next_);
    const std::size_t n = sights.size();
    held_.assign(next_.size() * n, 0);
    tokens_.resize(setting_.max_replicas);
    for (std::size_t k = 0; k < next_.size(); ++k) {
      setting_.foresight->held(next_[k], tokens_);
      for (std::size_t i = 0; i < n; ++i) held_[k * n + i] = tokens_[sights[i].replica];
    }
    common_.assign((next_.size() + 1) * next_.size(), 0);
    for (std::size_t j = 0; j <= next_.size(); ++j) {
      const auto first = j == 0 ? request.blocks : next_[j - 1].blocks;
      for (std::size_t k = j; k < next_.size(); ++k) common_[j * next_.size() + k] = shared(first, next_[k]);
    }
  }
  [[nodiscard]] std::int64_t shared(std::span<const std::uint64_t> first, const RoutedRequest& later) const noexcept {
    const auto most = std::min({first.size(), later.blocks.size(),
                                static_cast<std::size_t>((later.input_tokens - 1) / setting_.block_tokens)});
    std::size_t depth = 0;
    while (depth < most && first[depth] == later.blocks[depth]) ++depth;
    return static_cast<std::int64_t>(depth) * setting_.block_tokens;
  }

  // `j` counts this request as 0: what it leaves behind serves those after it.
  void place(std::size_t j, std::size_t where, std::size_t n) {
    for (std::size_t k = j; k < next_.size(); ++k) {
      std::int64_t& held = play_held_[k * n + where];
      held = std::max(held, common_[j * next_.size() + k]);
    }
  }

  double play(const RoutedRequest& request, Sights sights, std::size_t candidate) {
    const std::size_t n = sights.size();
    play_held_ = held_;
    wait_.clear();
    for (const ReplicaSight& s : sights) wait_.push_back(s.pending_ps);
    const ReplicaSight& here = sights[candidate];
    const std::int64_t own = work_ps(request.input_tokens, here.matched_tokens);
    double sum = static_cast<double>(wait_[candidate] + own) + terms(here, static_cast<double>(own));
    wait_[candidate] += own;
    place(0, candidate, n);
    std::int64_t now_us = request.now_us;
    for (std::size_t k = 0; k < next_.size(); ++k) {
      const std::int64_t passed_ps = (next_[k].now_us - now_us) * 1'000'000;
      now_us = next_[k].now_us;
      std::size_t best = 0;
      double best_cost = std::numeric_limits<double>::max();
      for (std::size_t i = 0; i < n; ++i) {
        wait_[i] = std::max<std::int64_t>(0, wait_[i] - passed_ps);
        const double cost =
            static_cast<double>(wait_[i]) +
            (1 + options_.beta2) * static_cast<double>(work_ps(next_[k].input_tokens, play_held_[k * n + i]));
        if (cost < best_cost) {
          best_cost = cost;
          best = i;
        }
      }
      const std::int64_t work = work_ps(next_[k].input_tokens, play_held_[k * n + best]);
      sum += static_cast<double>(wait_[best] + work);
      wait_[best] += work;
      place(k + 1, best, n);
    }
    return sum;
  }
  [[nodiscard]] double terms(const ReplicaSight& s, double own) const noexcept {
    const HardwareProfile& hw = setting_.hardware;
    double sum = options_.beta * own + options_.gamma * static_cast<double>(s.requests) * own;
    if (options_.delta > 0) {
      const double step =
          std::max(static_cast<double>(hw.floor_ps), static_cast<double>(hw.per_token_ps * (s.requests + 1))) +
          static_cast<double>(hw.per_context_ps * s.tokens_in_flight);
      sum += options_.delta * (16.0 * 256.0 + output_sum_) / (16.0 + output_count_) * step;
    }
    return sum;
  }

  RuleSetting setting_;
  OracleOptions options_;
  std::vector<RoutedRequest> next_;
  std::vector<std::int64_t> held_, play_held_;  // [arrival][sight]
  std::vector<std::int64_t> common_;            // [earlier, this request first][later]
  std::vector<std::int64_t> tokens_, wait_;
  double output_sum_ = 0, output_count_ = 0;
};

}  // namespace

RulePtr make_oracle_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options) {
  if (spec.name != "oracle") return nullptr;
  OracleOptions o;
  o.look_ahead = options.count("K", 32, 0, 1'000);
  o.beta = options.number("beta", 1, 0, 1e6);
  o.beta2 = options.number("b2", 1, 0, 1e6);
  o.gamma = options.number("gi", 0, 0, 1e6);
  o.delta = options.number("dw", 0, 0, 1e6);
  return std::make_unique<OracleRule>(setting, o);
}

}  // namespace warmroute::trace
