// Published rules that weigh caches against load. Each names where its formula comes from; they are made anew from the
// formula, with this simulator's units, not from anybody's code.
#include <algorithm>
#include <cmath>

#include "trace/holders.hpp"
#include "trace/rules/options.hpp"

namespace warmroute::trace {
namespace {

double as_double(std::int64_t v) noexcept { return static_cast<double>(v); }
double matched_share(const RoutedRequest& request, const ReplicaSight& s) noexcept {
  return as_double(s.matched_tokens) / as_double(request.input_tokens);
}

/// SGLang's cache_aware: balance when loads are apart, else the best match beyond a threshold, else the smallest tree;
/// the newer router's last step takes the fewest requests.
class SglangRule final : public RoutingRule {
 public:
  SglangRule(double apart, double factor, double threshold, bool newer)
      : apart_(apart), factor_(factor), threshold_(threshold), newer_(newer) {}
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    std::int64_t most = 0, fewest = sights[0].requests;
    double best = 0;
    for (const ReplicaSight& s : sights) {
      most = std::max(most, s.requests);
      fewest = std::min(fewest, s.requests);
      best = std::max(best, matched_share(request, s));
    }
    if (as_double(most - fewest) > apart_ && as_double(most) > factor_ * as_double(fewest))
      return fewest_requests(sights, ties);
    if (best > threshold_) {
      Least<std::pair<std::int64_t, std::int64_t>> least(ties);
      for (std::size_t i = 0; i < sights.size(); ++i) least.offer(i, {-sights[i].matched_tokens, sights[i].requests});
      return least.at();
    }
    if (newer_) return fewest_requests(sights, ties);
    Least<std::int64_t> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) least.offer(i, sights[i].cached_blocks);
    return least.at();
  }

 private:
  double apart_, factor_, threshold_;
  bool newer_;
};

/// NVIDIA Dynamo's KV router: prefill blocks to come, this request's included, plus the distinct blocks of the requests
/// in flight there if it were added. It keeps the blocks of its own tickets.
class DynamoRule final : public RoutingRule {
 public:
  DynamoRule(const RuleSetting& setting, bool decode)
      : block_tokens_(setting.block_tokens),
        decode_(decode),
        booked_(setting.distinct_blocks, setting.max_replicas),
        partial_(setting.max_replicas),
        depth_(setting.max_replicas) {}
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    const std::int64_t whole = static_cast<std::int64_t>(request.blocks.size());
    const std::int64_t beyond = blocks_beyond(request);
    if (decode_) match(booked_.holders(), nullptr, request.blocks, request.blocks.size(), depth_);
    Least<double> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      const ReplicaSight& s = sights[i];
      double score =
          as_double(std::max<std::int64_t>(0, s.pending_tokens + uncached(request, s))) / as_double(block_tokens_);
      if (decode_)
        score += as_double(booked_.distinct(s.replica) + partial_[s.replica] + whole - depth_[s.replica] + beyond);
      least.offer(i, score);
    }
    const std::uint32_t replica = sights[least.at()].replica;
    booked_.enter(replica, request.blocks);
    partial_[replica] += beyond;
    ++in_flight_;
    return least.at();
  }
  void finished(const RoutedRequest& request, std::uint32_t replica, std::int64_t, std::int64_t) override {
    lost(request, replica);
  }
  void lost(const RoutedRequest& request, std::uint32_t replica) override {
    booked_.leave(replica, request.blocks);
    partial_[replica] -= blocks_beyond(request);
    --in_flight_;
  }
  [[nodiscard]] std::int64_t booked() const override { return in_flight_; }

 private:
  // The last block of a prompt is partial: nobody shares it.
  [[nodiscard]] std::int64_t blocks_beyond(const RoutedRequest& request) const noexcept {
    return (request.input_tokens + block_tokens_ - 1) / block_tokens_ -
           static_cast<std::int64_t>(request.blocks.size());
  }
  std::int64_t block_tokens_;
  bool decode_;
  CountedHolders booked_;
  std::vector<std::int64_t> partial_;
  std::vector<std::int64_t> depth_;
  std::int64_t in_flight_ = 0;
};

/// The Gateway API inference extension's scorers with the chart's weights: prefix 3, queue 2, KV use 2.
class GaieRule final : public RoutingRule {
 public:
  GaieRule(const RuleSetting& setting, double prefix, double queue, double kv)
      : setting_(setting), prefix_(prefix), queue_(queue), kv_(kv) {}
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    std::int64_t most = 0, fewest = sights[0].waiting;
    for (const ReplicaSight& s : sights) {
      most = std::max(most, s.waiting);
      fewest = std::min(fewest, s.waiting);
    }
    Least<double> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      const ReplicaSight& s = sights[i];
      const double queue = most == fewest ? 1.0 : as_double(most - s.waiting) / as_double(most - fewest);
      least.offer(i, -(prefix_ * matched_share(request, s) + queue_ * queue +
                       kv_ * (1.0 - as_double(s.used_blocks) /
                                        as_double(std::max<std::int64_t>(1, setting_.blocks_of(s.replica))))));
    }
    return least.at();
  }

 private:
  RuleSetting setting_;
  double prefix_, queue_, kv_;
};

/// llm-d's affinity with a wait limit: stay with the replicas that hold 80 % of the prompt unless their least wait
/// exceeds the others' by tau; among those left, the least token load.
class LlmdRule final : public RoutingRule {
 public:
  LlmdRule(const RuleSetting& setting, double tau_ms, bool by_requests) : by_requests_(by_requests) {
    const HardwareProfile& hw = setting.hardware;
    const std::int64_t step_ps = std::max(hw.floor_ps, hw.per_token_ps * setting.step_token_budget) +
                                 hw.per_pair_ps * HardwareProfile::pairs(setting.step_token_budget, 0) + hw.overhead_ps;
    tokens_per_ms_ = as_double(setting.step_token_budget) / (as_double(step_ps) / 1e9);
    slack_tokens_ = tau_ms * tokens_per_ms_;
  }
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    std::int64_t least_warm = -1, least_cold = -1;
    for (const ReplicaSight& s : sights) {
      std::int64_t& least = is_warm(request, s) ? least_warm : least_cold;
      if (least < 0 || s.pending_tokens < least) least = s.pending_tokens;
    }
    const bool stay = least_warm >= 0 && (least_cold < 0 || as_double(least_warm - least_cold) <= slack_tokens_);
    Least<std::int64_t> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      const ReplicaSight& s = sights[i];
      if (stay && !is_warm(request, s)) continue;
      constexpr std::int64_t kMostTokens = 4'194'304;
      least.offer(i, by_requests_ ? s.requests : std::min(kMostTokens, s.pending_tokens + uncached(request, s)));
    }
    return least.at();
  }

 private:
  static bool is_warm(const RoutedRequest& request, const ReplicaSight& s) noexcept {
    return s.matched_tokens * 10 >= request.input_tokens * 8;
  }
  bool by_requests_;
  double tokens_per_ms_ = 0, slack_tokens_ = 0;
};

/// AIBrix's prefix-cache router: balance beyond a gap of requests; else the best match among those within mean + sigma.
class AibrixRule final : public RoutingRule {
 public:
  explicit AibrixRule(double gap) : gap_(gap) {}
  std::size_t choose(const RoutedRequest&, Sights sights, SplitMix64& ties) override {
    std::int64_t most = 0, fewest = sights[0].requests, sum = 0, squares = 0;
    for (const ReplicaSight& s : sights) {
      most = std::max(most, s.requests);
      fewest = std::min(fewest, s.requests);
      sum += s.requests;
      squares += s.requests * s.requests;
    }
    if (as_double(most - fewest) > gap_) return fewest_requests(sights, ties);
    const auto n = static_cast<std::int64_t>(sights.size());
    const double mean = as_double(sum) / as_double(n);
    const double sigma = std::sqrt(as_double(n * squares - sum * sum)) / as_double(n);  // correctly rounded everywhere
    Least<std::pair<std::int64_t, std::int64_t>> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      const ReplicaSight& s = sights[i];
      if (s.matched_tokens > 0 && as_double(s.requests) <= mean + sigma)
        least.offer(i, {-s.matched_tokens, s.requests});
    }
    return least.any() ? least.at() : fewest_requests(sights, ties);
  }

 private:
  double gap_;
};

/// LMetric (arXiv 2603.15202): new prefill tokens there, times the batch it would have.
class LmetricRule final : public RoutingRule {
 public:
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    Least<std::int64_t> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) {
      const ReplicaSight& s = sights[i];
      least.offer(i, (s.pending_tokens + uncached(request, s)) * (s.requests + 1));
    }
    return least.at();
  }
};

/// Least estimated TTFT: Mooncake's conductor (FAST'25) without transfers.
class TtftRule final : public RoutingRule {
 public:
  explicit TtftRule(const HardwareProfile& hardware) : hardware_(hardware) {}
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    Least<std::int64_t> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i)
      least.offer(i, sights[i].pending_ps + work(hardware_, request, sights[i]));
    return least.at();
  }

 private:
  HardwareProfile hardware_;
};

}  // namespace

RulePtr make_cache_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options) {
  if (spec.name == "sglang" || spec.name == "sglang2") {
    const double apart = options.number("abs", 64, 0, 1e9);
    const double factor = options.number("rel", 1.5, 0, 1e9);
    return std::make_unique<SglangRule>(apart, factor, options.number("th", 0.3, 0, 1), spec.name == "sglang2");
  }
  if (spec.name == "dynamo") return std::make_unique<DynamoRule>(setting, options.count("decode", 1, 0, 1) != 0);
  if (spec.name == "gaie") {
    const double p = options.number("p", 3, 0, 1e6), q = options.number("q", 2, 0, 1e6);
    return std::make_unique<GaieRule>(setting, p, q, options.number("kvw", 2, 0, 1e6));
  }
  if (spec.name == "llmd") {
    const double tau = options.number("tau", 18'000, 0, 1e9);
    return std::make_unique<LlmdRule>(setting, tau, options.word("by", "tokens", {"tokens", "req"}) == "req");
  }
  if (spec.name == "aibrix") return std::make_unique<AibrixRule>(options.number("gap", 8, 0, 1e9));
  if (spec.name == "lmetric") return std::make_unique<LmetricRule>();
  if (spec.name == "ttft" || spec.name == "mooncake") return std::make_unique<TtftRule>(setting.hardware);
  return nullptr;
}

}  // namespace warmroute::trace
