/// Helpers of the rules: options by name, choices with fair ties, shorthand for work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmroute/trace/routing_rule.hpp"
#include "warmroute/trace/workload.hpp"

namespace warmroute::trace {

/// Reads a rule's options and remembers what was wrong; `done` names every fault, unknown options included.
class RuleOptions {
 public:
  explicit RuleOptions(const RuleSpec& spec) : spec_(&spec), known_(spec.options.size()) {}

  [[nodiscard]] double number(std::string_view name, double fallback, double low, double high);
  [[nodiscard]] std::int64_t count(std::string_view name, std::int64_t fallback, std::int64_t low, std::int64_t high) {
    return static_cast<std::int64_t>(
        number(name, static_cast<double>(fallback), static_cast<double>(low), static_cast<double>(high)));
  }
  [[nodiscard]] std::string word(std::string_view name, std::string_view fallback,
                                 std::vector<std::string_view> allowed);
  [[nodiscard]] Status done() const;

 private:
  const std::string* find(std::string_view name);
  void fault(const std::string& text);
  const RuleSpec* spec_;
  std::vector<bool> known_;
  std::string faults_;
};

/// The least score offered; the k-th of equals takes the place with probability 1/k: uniform, one draw per extra one.
template <class Score>
class Least {
 public:
  explicit Least(SplitMix64& ties) : ties_(&ties) {}
  void offer(std::size_t candidate, const Score& score) {
    if (equals_ == 0 || score < best_) {
      best_ = score;
      at_ = candidate;
      equals_ = 1;
    } else if (!(best_ < score) && ties_->below(++equals_) == 0) {
      at_ = candidate;
    }
  }
  [[nodiscard]] bool any() const noexcept { return equals_ > 0; }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  [[nodiscard]] const Score& best() const noexcept { return best_; }

 private:
  SplitMix64* ties_;
  Score best_{};
  std::size_t at_ = 0;
  std::uint64_t equals_ = 0;
};

using Sights = std::span<const ReplicaSight>;

inline std::int64_t uncached(const RoutedRequest& request, const ReplicaSight& sight) noexcept {
  return request.input_tokens - sight.matched_tokens;
}
/// units: picoseconds.
inline std::int64_t work(const HardwareProfile& hardware, const RoutedRequest& request,
                         const ReplicaSight& sight) noexcept {
  return hardware.prefill_ps(uncached(request, sight), sight.matched_tokens);
}
inline std::size_t fewest_requests(Sights sights, SplitMix64& ties) {
  Least<std::int64_t> least(ties);
  for (std::size_t i = 0; i < sights.size(); ++i) least.offer(i, sights[i].requests);
  return least.at();
}

using RulePtr = std::unique_ptr<RoutingRule>;
// Each file of this folder makes the rules of one kind. returns: null when the name is none of them.
[[nodiscard]] RulePtr make_load_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options);
[[nodiscard]] RulePtr make_ring_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options);
[[nodiscard]] RulePtr make_cache_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options);
[[nodiscard]] RulePtr make_priced_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options);
[[nodiscard]] RulePtr make_oracle_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options);
[[nodiscard]] Result<RulePtr> make_warmroute_rule(const RuleSpec& spec, const RuleSetting& setting,
                                                  const Policy& policy);

}  // namespace warmroute::trace
