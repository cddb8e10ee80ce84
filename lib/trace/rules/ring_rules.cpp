// Rules that hash: one home, a bounded walk, two candidates.
#include <array>

#include "trace/rules/options.hpp"
#include "warmroute/ring/hash_ring.hpp"

namespace warmroute::trace {
namespace {

constexpr std::uint64_t mixed(std::uint64_t key) noexcept { return SplitMix64{key}.next(); }

/// A ring of 256 points per replica, made anew when the fleet changes.
class FleetRing {
 public:
  explicit FleetRing(std::uint64_t seed) : seed_(seed) {}
  void joined(std::uint32_t replica) {
    members_.push_back({"replica-" + std::to_string(replica), replica, 1.0});
    stale_ = true;
  }
  void left(std::uint32_t replica) {
    std::erase_if(members_, [&](const RingMember& m) { return m.member == replica; });
    stale_ = true;
  }
  /// Calls `accept` with the index into `sights` of one distinct successor after the other until it says true.
  template <class Accept>
  void walk(std::uint64_t key, Sights sights, Accept&& accept) {
    if (stale_) {
      auto built = HashRing::build(members_, {.seed = seed_, .points_per_unit = 256});
      if (built) ring_ = std::move(*built);
      stale_ = false;
    }
    RingWalk successors(ring_, mixed(key));
    for (std::uint32_t r = successors.next(); r != kNoMember; r = successors.next()) {
      for (std::size_t i = 0; i < sights.size(); ++i) {
        if (sights[i].replica == r && accept(i)) return;
      }
    }
  }
  [[nodiscard]] std::size_t home(std::uint64_t key, Sights sights) {
    std::size_t at = 0;
    walk(key, sights, [&](std::size_t i) {
      at = i;
      return true;
    });
    return at;
  }

 private:
  std::uint64_t seed_;
  std::vector<RingMember> members_;
  HashRing ring_;
  bool stale_ = true;
};

/// The id of block number min(k, whole blocks): all before it is in it. A prompt of no whole block is its own key.
std::uint64_t prefix_key(const RoutedRequest& request, std::int64_t k) {
  if (request.blocks.empty()) return mixed(request.index) | 1ULL << 63;
  return request.blocks[std::min(request.blocks.size(), static_cast<std::size_t>(k)) - 1];
}
std::uint64_t session_key(const RoutedRequest& request) {
  if (request.conversation == kNoConversation) return prefix_key(request, 2);
  return request.conversation | 1ULL << 62;
}

/// Sticky by a prefix of k blocks, or by session: consistent hashing as in Envoy's ring hash and KubeAI without bound.
class HashRule final : public RoutingRule {
 public:
  HashRule(std::int64_t k, bool by_session) : k_(k), by_session_(by_session) {}
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64&) override {
    return ring_.home(by_session_ ? session_key(request) : prefix_key(request, k_), sights);
  }
  void joined(std::uint32_t replica, std::int64_t) override { ring_.joined(replica); }
  void left(std::uint32_t replica, std::int64_t) override { ring_.left(replica); }

 private:
  std::int64_t k_;
  bool by_session_;
  FleetRing ring_{0};
};

/// Consistent hashing with bounded loads (Mirrokni et al., arXiv 1608.01350; KubeAI's PrefixHash, c = 1.25): the first
/// distinct successor with q <= c * (total + 1) / n.
class BoundedHashRule final : public RoutingRule {
 public:
  BoundedHashRule(double c, std::int64_t k, bool by_session) : c_(c), k_(k), by_session_(by_session) {}
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64&) override {
    std::int64_t total = 0;
    for (const ReplicaSight& s : sights) total += s.requests;
    const double bound = c_ * static_cast<double>(total + 1) / static_cast<double>(sights.size());
    std::size_t at = sights.size();
    const std::uint64_t key = by_session_ ? session_key(request) : prefix_key(request, k_);
    ring_.walk(key, sights, [&](std::size_t i) {
      if (static_cast<double>(sights[i].requests) > bound) return false;
      at = i;
      return true;
    });
    return at < sights.size() ? at : ring_.home(key, sights);
  }
  void joined(std::uint32_t replica, std::int64_t) override { ring_.joined(replica); }
  void left(std::uint32_t replica, std::int64_t) override { ring_.left(replica); }

 private:
  double c_;
  std::int64_t k_;
  bool by_session_;
  FleetRing ring_{0};
};

/// Two hashes, two candidates (DualMap, arXiv 2602.06502, without its migration): the one with the larger match unless
/// its wait and this prefill exceed the objective; then the one with less pending work.
class DualMapRule final : public RoutingRule {
 public:
  DualMapRule(const HardwareProfile& hardware, std::int64_t k, double slo_ms)
      : hardware_(hardware), k_(k), slo_ps_(slo_ms * 1e9) {}
  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    const std::uint64_t key = prefix_key(request, k_);
    const std::array<std::size_t, 2> pair{rings_[0].home(key, sights), rings_[1].home(key, sights)};
    Least<std::pair<std::int64_t, std::int64_t>> warmer(ties);
    for (const std::size_t i : pair) {
      warmer.offer(i, {-sights[i].matched_tokens, sights[i].pending_ps + work(hardware_, request, sights[i])});
    }
    if (static_cast<double>(warmer.best().second) <= slo_ps_) return warmer.at();
    return sights[pair[1]].pending_ps < sights[pair[0]].pending_ps ? pair[1] : pair[0];
  }
  void joined(std::uint32_t replica, std::int64_t) override {
    for (FleetRing& ring : rings_) ring.joined(replica);
  }
  void left(std::uint32_t replica, std::int64_t) override {
    for (FleetRing& ring : rings_) ring.left(replica);
  }

 private:
  HardwareProfile hardware_;
  std::int64_t k_;
  double slo_ps_;
  std::array<FleetRing, 2> rings_{FleetRing{1}, FleetRing{2}};
};

}  // namespace

RulePtr make_ring_rule(const RuleSpec& spec, const RuleSetting& setting, RuleOptions& options) {
  const auto depth = [&](std::int64_t fallback) { return options.count("k", fallback, 1, 100'000); };
  if (spec.name == "hash") return std::make_unique<HashRule>(depth(2), false);
  if (spec.name == "session") return std::make_unique<HashRule>(2, true);
  if (spec.name == "chwbl") {
    const double c = options.number("c", 1.25, 1, 1e6);
    const std::int64_t k = depth(2);
    return std::make_unique<BoundedHashRule>(c, k, options.word("key", "prefix", {"prefix", "session"}) == "session");
  }
  if (spec.name == "dualmap") {
    const std::int64_t k = depth(2);
    return std::make_unique<DualMapRule>(setting.hardware, k, options.number("slo", 5000, 0, 1e9));
  }
  return nullptr;
}

}  // namespace warmroute::trace
