// The real router under the virtual clock: the same calls that a proxy makes, in the same order.
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "trace/rules/options.hpp"
#include "warmroute/route/policy_json.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::trace {
namespace {

Nanos at(std::int64_t now_us) noexcept { return microseconds(now_us); }

class WarmrouteRule final : public RoutingRule {
 public:
  explicit WarmrouteRule(const RuleSetting& setting) : setting_(setting), router_(options(setting)) {
    ids_.resize(setting.max_replicas);
  }
  /// Declared rates are the profile's times these: F, a, b, k.
  void declare(const std::array<double, 4>& factors) { factors_ = factors; }
  Status set_policy(Policy policy) {
    policy.block_size = static_cast<std::uint32_t>(setting_.block_tokens);
    policy.seed = setting_.seed;
    return router_.set_policy(policy);
  }

  [[nodiscard]] bool reads_sights() const noexcept override { return false; }

  std::size_t choose(const RoutedRequest& request, Sights sights, SplitMix64& ties) override {
    const Request asked = asked_for(request);
    const Decision decision = router_.route(asked, at(request.now_us));
    if (request.index >= tickets_.size())
      tickets_.resize(std::max<std::size_t>(request.index + 1, tickets_.size() * 2), kNoTicket);
    tickets_[request.index] = decision.ticket;
    prefill_ = kNobody;
    std::size_t chosen = kNobody;
    for (std::size_t i = 0; i < sights.size(); ++i) {
      if (!decision.routed()) break;
      if (ids_[sights[i].replica] == decision.replica) chosen = i;
      if (decision.is_pair() && ids_[sights[i].replica] == decision.prefill_replica) prefill_ = i;
    }
    if (chosen != kNobody) return chosen;
    // It had no place (its table of tickets is full): somebody has to take the request all the same.
    prefill_ = kNobody;
    std::size_t first = 0;
    while (first + 1 < sights.size() && role_of(sights[first].replica) == Role::prefill) ++first;
    return first + static_cast<std::size_t>(ties.below(sights.size() - first));
  }
  [[nodiscard]] bool knows_pools() const noexcept override { return true; }
  [[nodiscard]] std::size_t chosen_prefill() const noexcept override { return prefill_; }

  void first_token(const RoutedRequest& request, std::uint32_t) override {
    router_.first_token(tickets_[request.index], at(request.now_us));
  }
  void transferred(const RoutedRequest& request, std::uint32_t) override {
    router_.transfer_done(tickets_[request.index], at(request.now_us));
  }
  void finished(const RoutedRequest& request, std::uint32_t, std::int64_t cached, std::int64_t output) override {
    router_.finish(tickets_[request.index], {request.input_tokens, cached, output}, at(request.now_us));
  }
  void lost(const RoutedRequest& request, std::uint32_t) override {
    router_.fail(tickets_[request.index], Outcome::replica_error, at(request.now_us));
  }

  void block_stored(std::uint32_t replica, std::uint64_t block, std::uint64_t parent, std::int64_t depth,
                    std::int64_t now_us) override {
    const EngineHash name = name_of(block);
    const BlockHash hash = hash_of(block);
    StoredBlocks stored;
    if (depth > 0) stored.parent = name_of(parent);
    stored.ids = {&name, 1};
    stored.blocks = {&hash, 1};
    (void)router_.blocks_stored(ids_[replica], stored, at(now_us));  // an orphan of a lost event is counted inside
  }
  void block_removed(std::uint32_t replica, std::uint64_t block, std::int64_t now_us) override {
    const EngineHash name = name_of(block);
    (void)router_.blocks_removed(ids_[replica], Tier::device, {&name, 1}, at(now_us));
  }
  void load_seen(std::uint32_t replica, const EngineLoad& load, std::int64_t now_us) override {
    const auto tell = [&](Signal kind, double value) { (void)router_.signal(ids_[replica], kind, value, at(now_us)); };
    tell(Signal::running, static_cast<double>(load.running));
    tell(Signal::waiting, static_cast<double>(load.waiting));
    tell(Signal::kv_usage, load.kv_usage);
    if (load.waiting_tokens) tell(Signal::waiting_tokens, static_cast<double>(*load.waiting_tokens));
  }

  void loads(std::vector<PeerLoad>& out, std::int64_t now_us) const override { router_.loads(out, at(now_us)); }
  void peer_loads(std::uint32_t router, std::span<const PeerLoad> loads, std::int64_t now_us) override {
    (void)router_.peer_loads(router, loads, at(now_us));
  }

  void peer_placed(const RoutedRequest& request, std::uint32_t replica) override {
    (void)router_.peer_placed(ids_[replica], asked_for(request), at(request.now_us));
  }

  void joined(std::uint32_t replica, std::int64_t now_us) override {
    ReplicaSpec spec;
    spec.name = "replica-" + std::to_string(replica);
    const HardwareProfile& hw = setting_.hardware;
    const auto times = [this](std::int64_t rate, std::size_t which) {
      return static_cast<std::int64_t>(static_cast<double>(rate) * factors_[which]);
    };
    spec.rates = {times(hw.floor_ps / 1'000, 0), times(hw.per_token_ps, 1), times(hw.per_pair_ps, 2),
                  times(hw.per_context_ps, 3), times(hw.overhead_ps / 1'000, 0)};
    spec.role = role_of(replica);
    spec.capacity_tokens = setting_.blocks_of(replica) * setting_.block_tokens;
    const auto id = router_.add_replica(std::move(spec), at(now_us));
    ids_[replica] = id ? *id : kNoReplica;
  }
  void left(std::uint32_t replica, std::int64_t now_us) override {
    (void)router_.remove_replica(ids_[replica], at(now_us));
  }
  void available(std::uint32_t replica, bool yes, std::int64_t now_us) override {
    (void)router_.set_health(ids_[replica], yes ? Health::up : Health::draining, "simulation", at(now_us));
  }

  [[nodiscard]] std::int64_t booked() const override {
    return static_cast<std::int64_t>(router_.statistics().tickets_in_flight);
  }

 private:
  // lifetime: until the next call.
  [[nodiscard]] Request asked_for(const RoutedRequest& request) {
    hashes_.clear();
    for (const std::uint64_t block : request.blocks) hashes_.push_back(hash_of(block));
    session_ = request.conversation == kNoConversation ? std::string() : std::to_string(request.conversation);
    Request asked;
    asked.blocks = hashes_;
    asked.input_tokens = request.input_tokens;
    asked.session = session_;
    return asked;
  }
  [[nodiscard]] Role role_of(std::uint32_t replica) const noexcept {
    if (replica < setting_.prefill_replicas) return Role::prefill;
    return replica < setting_.prefill_replicas + setting_.decode_replicas ? Role::decode : Role::unified;
  }
  static RouterOptions options(const RuleSetting& setting) {
    RouterOptions out;
    out.max_replicas =
        std::max<std::uint32_t>(64, setting.max_replicas * 2);  // those that restart need a slot meanwhile
    return out;
  }
  static EngineHash name_of(std::uint64_t block) noexcept { return EngineHash{block + 1}; }  // 0 names nothing
  [[nodiscard]] BlockHash hash_of(std::uint64_t block) const noexcept {
    return BlockHash{SplitMix64{block ^ setting_.salt}.next()};
  }

  RuleSetting setting_;
  std::array<double, 4> factors_{1, 1, 1, 1};
  Router router_;
  std::vector<ReplicaId> ids_;
  std::vector<Ticket> tickets_;  // by request
  std::vector<BlockHash> hashes_;
  std::string session_;
  std::size_t prefill_ = kNobody;  // of the last choice
};

// The three ways to serve: one replica each, always a pair, or whichever costs less. Limits and link are what an operator declares.
Policy pair_policy(const RuleSpec& spec, const RuleSetting& setting, Policy policy) {
  if (!spec.name.starts_with("pd:")) return policy;
  policy.disaggregate = spec.name == "pd:always"    ? Disaggregate::always
                        : spec.name == "pd:decided" ? Disaggregate::decided
                                                    : Disaggregate::never;
  policy.unified_pairs = true;
  policy.kv_transfer_per_token = Nanos{setting.transfer_token_ps / 1'000};
  policy.kv_transfer_latency = microseconds(setting.transfer_latency_us);
  policy.ttft_limit = microseconds(setting.limit_ttft_us);
  policy.itl_limit = microseconds(setting.limit_itl_us);
  return policy;
}

std::string policy_members(const RuleSpec& spec) {
  std::string json = "{";
  for (const auto& [name, value] : spec.options) {
    if (name == "rates") continue;
    double number = 0;
    const bool plain = absl::SimpleAtod(value, &number) || value == "true" || value == "false";
    json += (json.size() > 1 ? ",\"" : "\"") + name + "\":" + (plain ? value : "\"" + value + "\"");
  }
  return json + "}";
}

// "rates=4" or, each by itself, "rates=4/0.25/1/1".
bool read_factors(const RuleSpec& spec, std::array<double, 4>& factors) {
  for (const auto& [name, value] : spec.options) {
    if (name != "rates") continue;
    const std::vector<std::string> texts = absl::StrSplit(value, '/');
    if (texts.size() != 1 && texts.size() != factors.size()) return false;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      double& factor = factors[i];
      if (!absl::SimpleAtod(texts[texts.size() == 1 ? 0 : i], &factor) || !(factor >= 0.01 && factor <= 100))
        return false;
    }
  }
  return true;
}

}  // namespace

Result<RulePtr> make_warmroute_rule(const RuleSpec& spec, const RuleSetting& setting, const Policy& policy) {
  if (setting.block_tokens > 512)
    return Error{Code::invalid_argument, "rule warmroute: its blocks have at most 512 tokens", kNoOffset};
  if (spec.name.starts_with("pd:") && spec.name != "pd:unified" && spec.name != "pd:always" &&
      spec.name != "pd:decided")
    return Error{Code::invalid_argument, "rule pd: is pd:unified, pd:always or pd:decided", kNoOffset};
  auto changed = policy_from_json(policy_members(spec), pair_policy(spec, setting, policy));
  if (!changed) return Error{Code::invalid_argument, "rule " + spec.name + ": " + changed.error().message, kNoOffset};
  auto rule = std::make_unique<WarmrouteRule>(setting);
  std::array<double, 4> factors{1, 1, 1, 1};
  if (!read_factors(spec, factors))
    return Error{Code::invalid_argument, "rule warmroute: rates must be one factor, or four of F/a/b/k, in 0.01..100",
                 kNoOffset};
  rule->declare(factors);
  if (const Status set = rule->set_policy(*changed); !set) return set.error();
  return RulePtr{std::move(rule)};
}

}  // namespace warmroute::trace
