// Rules that look at load alone, and the one that looks at the cache alone.
#include "trace/rules/options.hpp"

namespace warmroute::trace {
namespace {

class RandomRule final : public RoutingRule {
 public:
  std::size_t choose(const RoutedRequest&, Sights sights, SplitMix64& ties) override {
    return static_cast<std::size_t>(ties.below(sights.size()));
  }
};

class RoundRobinRule final : public RoutingRule {
 public:
  std::size_t choose(const RoutedRequest&, Sights sights, SplitMix64&) override { return turn_++ % sights.size(); }

 private:
  std::size_t turn_ = 0;
};

/// Fewest requests in flight: Kubernetes services with least-request, NGINX least_conn.
class LeastRequestsRule final : public RoutingRule {
 public:
  std::size_t choose(const RoutedRequest&, Sights sights, SplitMix64& ties) override {
    return fewest_requests(sights, ties);
  }
};

/// Fewest prompt tokens still to be computed.
class LeastPendingRule final : public RoutingRule {
 public:
  std::size_t choose(const RoutedRequest&, Sights sights, SplitMix64& ties) override {
    Least<std::int64_t> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) least.offer(i, sights[i].pending_tokens);
    return least.at();
  }
};

/// Two distinct draws, the one with fewer requests, the first on a tie (Mitzenmacher 2001).
class PowerOfTwoRule final : public RoutingRule {
 public:
  std::size_t choose(const RoutedRequest&, Sights sights, SplitMix64& ties) override {
    const auto first = static_cast<std::size_t>(ties.below(sights.size()));
    if (sights.size() == 1) return first;
    auto second = static_cast<std::size_t>(ties.below(sights.size() - 1));
    if (second >= first) ++second;
    return sights[second].requests < sights[first].requests ? second : first;
  }
};

/// Most cached tokens, then fewest requests.
class LongestMatchRule final : public RoutingRule {
 public:
  std::size_t choose(const RoutedRequest&, Sights sights, SplitMix64& ties) override {
    Least<std::pair<std::int64_t, std::int64_t>> least(ties);
    for (std::size_t i = 0; i < sights.size(); ++i) least.offer(i, {-sights[i].matched_tokens, sights[i].requests});
    return least.at();
  }
};

}  // namespace

RulePtr make_load_rule(const RuleSpec& spec, const RuleSetting&, RuleOptions&) {
  if (spec.name == "random") return std::make_unique<RandomRule>();
  if (spec.name == "rr") return std::make_unique<RoundRobinRule>();
  if (spec.name == "least") return std::make_unique<LeastRequestsRule>();
  if (spec.name == "pending") return std::make_unique<LeastPendingRule>();
  if (spec.name == "p2c") return std::make_unique<PowerOfTwoRule>();
  if (spec.name == "match") return std::make_unique<LongestMatchRule>();
  return nullptr;
}

}  // namespace warmroute::trace
