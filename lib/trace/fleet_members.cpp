// What engines say of their caches and loads, who is in the fleet, and what is known of the future.
#include <algorithm>

#include "trace/fleet.hpp"

namespace warmroute::trace {

// ---- what engines say

void Fleet::on_block(BlockNews news) {
  if (news.stored) state_.truth.set(news.replica, news.block);
  else state_.truth.clear(news.replica, news.block);
  if (config_.pooled && news.stored) pooled_.computed[news.block] = true;
  const bool late = config_.view.cache == CacheView::events;
  if (!late && !rules_hear_blocks_) return;
  if (late) {
    if (config_.view.event_loss_permille > 0 &&
        losses_.below(1000) < static_cast<std::uint64_t>(config_.view.event_loss_permille))
      return;
    news.due_us += config_.view.event_delay_us;
  }
  news_.push_back(news);
}

void Fleet::deliver_news(std::int64_t now_us) {
  for (; !news_.empty() && news_.front().due_us <= now_us; news_.pop_front()) {
    const BlockNews& n = news_.front();
    if (n.life != lives_[n.replica]) continue;
    if (config_.view.cache == CacheView::events) {
      if (n.stored) state_.reported.set(n.replica, n.block);
      else state_.reported.clear(n.replica, n.block);
    }
    if (!rules_hear_blocks_) continue;
    for (Router& router : routers_) {
      if (n.stored) router.rule->block_stored(n.replica, n.block, n.parent, n.depth, now_us);
      else router.rule->block_removed(n.replica, n.block, now_us);
    }
  }
}

void Fleet::tell_loads(RoutingRule& rule, std::int64_t now_us) {
  if (rule.reads_sights()) return;
  for (std::uint32_t r = 0; r < replicas_; ++r) {
    if (standing_[r] == Standing::absent) continue;
    const ReplicaModel& model = state_.models[r];
    EngineLoad load{model.running(), model.waiting(), model.kv_usage()};
    if (config_.view.waiting_tokens) load.waiting_tokens = model.uncached_prefill_tokens();
    rule.load_seen(r, load, now_us);
  }
}

// ---- who is in the fleet

void Fleet::join(std::uint32_t replica, std::int64_t now_us) {
  replicas_ = std::max(replicas_, replica + 1);
  figures_.joined(replica, now_us);
  standing_[replica] = Standing::draining;
  for (Router& router : routers_) router.rule->joined(replica, now_us);
  set_standing(replica, Standing::up, now_us);
}

void Fleet::set_standing(std::uint32_t replica, Standing standing, std::int64_t now_us) {
  if (standing_[replica] == standing) return;
  standing_[replica] = standing;
  for (Router& router : routers_) router.rule->available(replica, standing == Standing::up, now_us);
  if (standing != Standing::up) return;
  for (const std::uint32_t index : parked_) followers_.push({now_us, index});
  parked_.clear();
}

// Its requests are sent again at this instant; what it said and what is believed of its cache goes.
void Fleet::die(std::uint32_t replica, std::int64_t now_us) {
  figures_.left(replica, state_.models[replica], now_us);
  standing_[replica] = Standing::absent;
  ++lives_[replica];
  state_.truth.forget(replica);
  if (config_.view.cache == CacheView::events) state_.reported.forget(replica);
  state_.hits[replica] = {};
  state_.snapshot[replica] = {};
  for (const std::uint64_t id : state_.models[replica].crash()) {
    lose(static_cast<std::uint32_t>(id), replica, now_us);
  }
  for (Router& router : routers_) {
    router.view->cache_lost(replica);
    router.rule->left(replica, now_us);
  }
  step_end_[replica] = kNever;
}

// ---- the future

void Fleet::upcoming(std::size_t most, std::vector<RoutedRequest>& out) const {
  out.clear();
  const std::size_t last = std::min(roots_.size(), next_root_ + most);
  for (std::size_t i = next_root_; i < last; ++i)
    out.push_back(asked(roots_[i], workload_.requests[roots_[i]].arrival_us));
}

// What is on its way counts: it will be there when they arrive.
void Fleet::held(const RoutedRequest& request, std::span<std::int64_t> tokens) const {
  const auto limit = static_cast<std::size_t>((request.input_tokens - 1) / workload_.block_tokens);
  match(state_.truth, routers_[0].view->predicted(), request.blocks, limit, tokens);
  for (std::int64_t& depth : tokens) depth *= workload_.block_tokens;
}

}  // namespace warmroute::trace
