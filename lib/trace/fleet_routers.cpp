// The routers before the fleet: how each is made, which of them gets a request, and what they tell one another.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trace/fleet.hpp"

namespace warmroute::trace {

Status Fleet::make_routers() {
  const auto spec = parse_rule(config_.rule);
  if (!spec && !config_.own_rule) return spec.error();
  RuleSetting setting;
  setting.hardware = model_config_.hardware;
  setting.block_tokens = workload_.block_tokens;
  setting.capacity_blocks = state_.models[0].capacity_blocks();
  if (!config_.capacities.empty())
    for (const ReplicaModel& model : state_.models) setting.capacities.push_back(model.capacity_blocks());
  setting.step_token_budget = model_config_.step_token_budget;
  setting.max_replicas = max_replicas_;
  setting.distinct_blocks = workload_.distinct_blocks;
  setting.salt = workload_.salt;
  setting.routers = config_.routers;
  setting.engine_events = config_.view.cache != CacheView::own_routing;
  setting.engine_loads = config_.view.load != LoadView::own_tickets;
  setting.foresight = this;
  setting.prefill_replicas = static_cast<std::uint32_t>(config_.prefill_replicas);
  setting.decode_replicas = static_cast<std::uint32_t>(config_.decode_replicas);
  setting.transfer_token_ps = config_.transfer_token_ps;
  setting.transfer_latency_us = config_.transfer_latency_us;
  setting.limit_ttft_us = config_.slo_ttft_us;
  setting.limit_itl_us = config_.slo_itl_us;
  if (config_.gateway_ring) {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < config_.routers; ++i) names.push_back("gateway-" + std::to_string(i));
    auto ring = GatewayRing::build(names, names.front());
    if (!ring) return ring.error();
    ring_.emplace(std::move(*ring));
  }
  for (std::int64_t i = 0; i < config_.routers; ++i) {
    setting.seed = config_.seed + static_cast<std::uint64_t>(i) * 0x9E37;
    Router router;
    router.view = std::make_unique<RouterView>(config_.view, setting, workload_.distinct_blocks);
    if (config_.own_rule) {
      router.rule = config_.own_rule(setting);
    } else {
      auto rule = make_rule(*spec, setting, config_.policy);
      if (!rule) return rule.error();
      router.rule = std::move(*rule);
    }
    if (config_.prefill_replicas + config_.decode_replicas > 0 && !router.rule->knows_pools())
      return Error{Code::invalid_argument,
                   "simulation: the rule " + config_.rule + " knows no replicas that only prefill or only decode",
                   kNoOffset};
    rules_hear_blocks_ = setting.engine_events && !router.rule->reads_sights();
    routers_.push_back(std::move(router));
  }
  return {};
}

std::uint32_t Fleet::router_of(std::uint32_t index) const {
  if (config_.routers == 1) return 0;
  std::uint64_t key = index;
  if (config_.pin_conversations) {
    const WorkloadRequest& r = workload_.requests[index];
    const auto blocks = workload_.blocks_of(r);
    if (r.conversation != kNoConversation) key = r.conversation;
    else if (!blocks.empty()) key = blocks[std::min<std::size_t>(2, blocks.size()) - 1];
  }
  SplitMix64 spray{config_.seed * 0x9E3779B97F4A7C15ULL + key};
  return static_cast<std::uint32_t>(spray.below(static_cast<std::uint64_t>(config_.routers)));
}

// Whose it is by the ring of routers, as the one that got it first works it out.
std::uint32_t Fleet::owner_of(std::uint32_t index) {
  const std::uint32_t first = figures_.requests[index].router;
  if (!ring_) return first;
  const WorkloadRequest& r = workload_.requests[index];
  Request asked_for;
  const std::string session = r.conversation == kNoConversation ? std::string() : std::to_string(r.conversation);
  asked_for.session = session;
  leading_.clear();
  for (const std::uint64_t block : workload_.blocks_of(r))
    leading_.push_back(BlockHash{SplitMix64{block ^ workload_.salt}.next()});
  asked_for.blocks = leading_;
  Policy policy = config_.policy;
  policy.block_size = static_cast<std::uint32_t>(workload_.block_tokens);
  return ring_->owner(ring_->key(asked_for, policy), false).index;
}

// Each says what it has in flight at one instant, and all others hear it as much later as forwarding takes.
void Fleet::share_loads(std::int64_t now_us) {
  if (config_.share_loads_us == 0 || routers_.size() < 2) return;
  if (told_at_us_ == now_us) {
    told_at_us_ = kNever;
    for (std::uint32_t from = 0; from < routers_.size(); ++from) {
      std::string text;
      append_peer_loads(told_[from], text);
      figures_.out.shared_bytes += static_cast<std::int64_t>(text.size() * (routers_.size() - 1));
      for (std::uint32_t to = 0; to < routers_.size(); ++to) {
        if (to != from) routers_[to].rule->peer_loads(from, told_[from], now_us);
      }
    }
    for (const Placement& p : told_placed_) tell_placement(p, now_us);
  }
  if (next_sharing_us_ != now_us) return;
  next_sharing_us_ += config_.share_loads_us;
  told_.resize(routers_.size());
  for (std::uint32_t from = 0; from < routers_.size(); ++from) routers_[from].rule->loads(told_[from], now_us);
  told_at_us_ = now_us + config_.forward_us;
  told_placed_.swap(placed_);
  placed_.clear();
}

// As hashes of blocks of 16 tokens, 8 bytes each.
void Fleet::tell_placement(const Placement& p, std::int64_t now_us) {
  const RoutedRequest request = asked(p.request, now_us);
  const std::int64_t bytes = request.input_tokens / 16 * 8 + 32;
  figures_.out.shared_bytes += bytes * static_cast<std::int64_t>(routers_.size() - 1);
  if (lives_[p.replica] != p.life || standing_[p.replica] == Standing::absent) return;
  for (std::uint32_t to = 0; to < routers_.size(); ++to) {
    if (to != p.router) routers_[to].rule->peer_placed(request, p.replica);
  }
}

}  // namespace warmroute::trace
