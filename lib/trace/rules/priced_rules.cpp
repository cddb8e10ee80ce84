// Cost is time: pending work + (1 + beta) x own prefill, with the terms that the router's formula is made of. W and H
// are this rule with the constants of include/warmroute/route/cost.hpp's origin; H adds the hot rebate.
#include <algorithm>

#include "trace/rules/options.hpp"

namespace warmroute::trace {
namespace {

double as_real(std::int64_t v) noexcept { return static_cast<double>(v); }

struct PricedOptions {
  double beta = 1;     ///< delay that a miss puts on those behind
  double gamma = 0;    ///< gi: stall that this prefill puts on each request there
  double delta = 0;    ///< dw: this request's own decode
  double batch = 0;    ///< dx: what its context adds to the decodes there
  double kv = 0;       ///< weight of blocks booked beyond 90 %, as prefill time
  double hot = 0;      ///< rebate of blocks that several in flight miss
  double noise = 0;    ///< estimates are off by up to this share
  double eps = 0;      ///< near ties: share
  double near_ps = 0;  ///< near ties: time
  bool in_tokens = false;
  enum class Tie { random, match, least } tie = Tie::random;
};

class PricedRule final : public RoutingRule {
 public:
  PricedRule(const RuleSetting& setting, const PricedOptions& options)
      : hw_(setting.hardware), options_(options), setting_(setting), noise_(setting.seed ^ 0x1015E) {
    if (options.hot > 0) in_flight_.resize(setting.distinct_blocks);
  }

  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    if (options_.hot > 0) find_shared(request);
    costs_.clear();
    for (const ReplicaSight& s : sights) costs_.push_back(cost(request, s, sights.size()));
    const double bound = limit(*std::min_element(costs_.begin(), costs_.end()));
    Least<std::pair<std::int64_t, std::int64_t>> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      if (costs_[i] > bound) continue;
      std::pair<std::int64_t, std::int64_t> order{0, 0};
      if (options_.tie == PricedOptions::Tie::match) order = {-sights[i].matched_tokens, sights[i].requests};
      if (options_.tie == PricedOptions::Tie::least) order = {sights[i].requests, 0};
      least.offer(i, order);
    }
    for (const std::uint64_t block : counted(request)) ++in_flight_[block];
    return least.at();
  }
  void finished(const RoutedRequest& request, std::uint32_t replica, std::int64_t, std::int64_t output) override {
    output_sum_ += as_real(output);
    output_count_ += 1;
    lost(request, replica);
  }
  void lost(const RoutedRequest& request, std::uint32_t) override {
    for (const std::uint64_t block : counted(request)) --in_flight_[block];
  }

 private:
  struct Shared {
    std::int64_t end_block;
    double requests;  // in flight, that contain it
  };

  [[nodiscard]] std::span<const std::uint64_t> counted(const RoutedRequest& request) const noexcept {
    return options_.hot > 0 ? request.blocks : std::span<const std::uint64_t>{};
  }
  [[nodiscard]] double limit(double best) const noexcept { return best + best * options_.eps + options_.near_ps; }

  // p falls along the chain; several routers that see equal traffic each see a part of it.
  void find_shared(const RoutedRequest& request) {
    shared_.clear();
    std::int64_t before = 0;
    for (std::size_t i = 0; i < request.blocks.size(); ++i) {
      const std::int64_t p = std::int64_t{in_flight_[request.blocks[i]]} * setting_.routers;
      if (p < 2) break;
      if (p == before) {
        ++shared_.back().end_block;
        continue;
      }
      before = p;
      shared_.push_back({static_cast<std::int64_t>(i) + 1, as_real(p)});
    }
  }

  [[nodiscard]] double prefill(std::int64_t cached, std::int64_t input) const noexcept {
    if (options_.in_tokens) return as_real(input - cached);
    return as_real(hw_.prefill_ps(input - cached, cached));
  }
  [[nodiscard]] double rebate(const RoutedRequest& request, const ReplicaSight& s, double replicas) const noexcept {
    double saved = 0;
    std::int64_t from = s.matched_tokens;
    for (const Shared& step : shared_) {
      const std::int64_t to = std::min(step.end_block * setting_.block_tokens, request.input_tokens);
      if (to <= from) continue;
      saved += prefill(from, to) * (1.0 - 1.0 / (1.0 + options_.hot * step.requests / replicas));
      from = to;
    }
    return saved;
  }

  [[nodiscard]] double cost(const RoutedRequest& request, const ReplicaSight& s, std::size_t replicas) {
    const double unit = options_.in_tokens ? 1.0 / as_real(hw_.per_token_ps) : 1.0;
    double own = prefill(s.matched_tokens, request.input_tokens);
    double stall = as_real(work(hw_, request, s)) * unit;  // attention included, in either unit
    double wait = options_.in_tokens ? as_real(s.pending_tokens) : as_real(s.pending_ps);
    if (options_.noise > 0) {
      const double off = wobble();
      own *= off;
      stall *= off;
      wait *= wobble();
    }
    double total = wait + (1.0 + options_.beta) * own;
    if (!shared_.empty())
      total -= (1.0 + options_.beta) * rebate(request, s, as_real(static_cast<std::int64_t>(replicas)));
    if (options_.gamma > 0) total += options_.gamma * as_real(s.requests) * stall;
    const double expected = (16.0 * 256.0 + output_sum_) / (16.0 + output_count_);
    if (options_.delta > 0) {
      const double step = std::max(as_real(hw_.floor_ps), as_real(hw_.per_token_ps) * as_real(s.requests + 1)) +
                          as_real(hw_.per_context_ps) * as_real(s.tokens_in_flight);
      total += options_.delta * expected * step * unit;
    }
    if (options_.batch > 0) {
      total += options_.batch * expected * as_real(s.requests) * as_real(hw_.per_context_ps) *
               as_real(request.input_tokens) * unit;
    }
    if (options_.kv > 0) {
      const double needed = as_real(s.used_blocks) + as_real(uncached(request, s)) / as_real(setting_.block_tokens);
      const double beyond = needed - 0.9 * as_real(setting_.blocks_of(s.replica));
      if (beyond > 0) total += options_.kv * beyond * prefill(0, setting_.block_tokens);
    }
    return total;
  }
  double wobble() {
    const double u = as_real(static_cast<std::int64_t>(noise_.next() >> 11)) * 0x1.0p-53;
    return 1.0 - options_.noise + 2.0 * options_.noise * u;
  }

  HardwareProfile hw_;
  PricedOptions options_;
  RuleSetting setting_;
  SplitMix64 noise_;
  std::vector<std::uint32_t> in_flight_;  // requests that contain a block
  std::vector<Shared> shared_;
  std::vector<double> costs_;
  double output_sum_ = 0, output_count_ = 0;
};

}  // namespace

RulePtr make_priced_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options) {
  const bool w = spec.name == "W", h = spec.name == "H";
  if (!w && !h && spec.name != "priced") return nullptr;
  PricedOptions o;
  o.beta = options.number("beta", 1, 0, 1e6);
  o.gamma = options.number("gi", w || h ? 0.1 : 0, 0, 1e6);
  o.delta = options.number("dw", w || h ? 0.5 : 0, 0, 1e6);
  o.batch = options.number("dx", 0, 0, 1e6);
  o.kv = options.number("kv", 0, 0, 1e6);
  o.hot = options.number("hot", h ? 1 : 0, 0, 1e6);
  o.noise = options.number("noise", 0, 0, 1);
  o.eps = options.number("eps", 0, 0, 1e6);
  o.in_tokens = options.word("unit", "time", {"time", "tok"}) == "tok";
  const double near_ms = options.number("delta", 0, 0, 1e9);
  o.near_ps = near_ms * 1e9 / (o.in_tokens ? as_real(std::max<std::int64_t>(1, setting.hardware.per_token_ps)) : 1.0);
  const std::string tie = options.word("tie", "rand", {"rand", "match", "least"});
  o.tie = tie == "match"   ? PricedOptions::Tie::match
          : tie == "least" ? PricedOptions::Tie::least
                           : PricedOptions::Tie::random;
  return std::make_unique<PricedRule>(setting, o);
}

}  // namespace warmroute::trace
