#include "trace/router_view.hpp"

#include <algorithm>
#include <array>

namespace warmroute::trace {
namespace {

constexpr std::array<View, 9> kViews{{
    {"perfect", LoadView::now, CacheView::now, true, 100'000, 0, 0, 1000},
    {"perfect-nopred", LoadView::now, CacheView::now, false, 100'000, 0, 0, 1000},
    {"stale", LoadView::snapshot, CacheView::events, false, 100'000, 50'000, 0, 1000},
    {"stale-pred", LoadView::snapshot, CacheView::events, true, 100'000, 50'000, 0, 1000},
    {"stale-fix", LoadView::snapshot_corrected, CacheView::events, true, 100'000, 50'000, 0, 1000},
    {"own-events", LoadView::own_tickets, CacheView::events, true, 100'000, 50'000, 0, 1000},
    {"own-approx", LoadView::own_tickets, CacheView::own_routing, false, 100'000, 50'000, 0, 1000},
    {"stale-approx", LoadView::snapshot, CacheView::own_routing, false, 100'000, 50'000, 0, 1000},
    {"fix-approx", LoadView::snapshot_corrected, CacheView::own_routing, false, 100'000, 50'000, 0, 1000},
}};

}  // namespace

std::vector<View> views() { return {kViews.begin(), kViews.end()}; }

std::optional<View> find_view(std::string_view name) {
  const auto it = std::find_if(kViews.begin(), kViews.end(), [&](const View& v) { return v.name == name; });
  if (it == kViews.end()) return std::nullopt;
  return *it;
}

Load& Load::operator+=(const Load& o) noexcept {
  requests += o.requests;
  waiting += o.waiting;
  pending_tokens += o.pending_tokens;
  pending_ps += o.pending_ps;
  tokens_in_flight += o.tokens_in_flight;
  used_blocks += o.used_blocks;
  cached_blocks += o.cached_blocks;
  return *this;
}
Load& Load::operator-=(const Load& o) noexcept {
  requests -= o.requests;
  waiting -= o.waiting;
  pending_tokens -= o.pending_tokens;
  pending_ps -= o.pending_ps;
  tokens_in_flight -= o.tokens_in_flight;
  used_blocks -= o.used_blocks;
  cached_blocks -= o.cached_blocks;
  return *this;
}

Load FleetState::now(std::uint32_t replica) const noexcept {
  const ReplicaModel& model = models[replica];
  Load load;
  load.waiting = model.waiting();
  load.requests = load.waiting + model.running();
  load.pending_tokens = model.pending_prefill_tokens();
  load.pending_ps = model.pending_prefill_ps();
  load.tokens_in_flight = model.tokens_in_flight();
  load.used_blocks = model.private_blocks() + model.referenced_blocks();
  load.cached_blocks = model.cached_blocks();
  load -= hits[replica];
  return load;
}

void RoutedCache::touch(std::uint32_t replica, std::span<const std::uint64_t> blocks, Holders& holders) {
  path_.clear();
  const auto most = std::min(blocks.size(), static_cast<std::size_t>(std::max<std::int64_t>(0, cache_.capacity())));
  for (const std::uint64_t block : blocks.first(most)) {
    auto node = cache_.find(block);
    if (node != BlockCache::kNone) {
      cache_.reference(node);
    } else {
      cache_.take_private(1, [&](std::uint64_t gone) { holders.clear(replica, gone); });
      node = cache_.commit(block);
      holders.set(replica, block);
    }
    path_.push_back(node);
  }
  for (auto it = path_.rbegin(); it != path_.rend(); ++it) cache_.release(*it);
}

RouterView::RouterView(const View& view, const RuleSetting& setting, std::uint64_t distinct_blocks)
    : view_(view),
      hardware_(setting.hardware),
      block_tokens_(setting.block_tokens),
      own_(setting.max_replicas),
      since_(setting.max_replicas),
      depth_(setting.max_replicas) {
  const std::uint32_t max_replicas = setting.max_replicas;
  if (view.predicts) predicted_ = CountedHolders(distinct_blocks, max_replicas);
  if (view.cache == CacheView::own_routing) {
    routed_ = Holders(distinct_blocks, max_replicas);
    for (std::uint32_t r = 0; r < max_replicas; ++r)
      caches_.emplace_back(setting.blocks_of(r) * view.capacity_factor_permille / 1000);
  }
}

RouterView::Ticket& RouterView::ticket(std::uint32_t request) {
  if (request >= tickets_.size()) tickets_.resize(std::max<std::size_t>(request + 1, tickets_.size() * 2));
  return tickets_[request];
}

void RouterView::advance(std::int64_t now_us) {
  for (; !expiring_.empty() && expiring_.front().due_us <= now_us; expiring_.pop_front()) {
    predicted_.leave(expiring_.front().replica, expiring_.front().blocks);
  }
}

void RouterView::look(const FleetState& fleet, const RoutedRequest& request, std::span<ReplicaSight> sights) {
  const auto limit = static_cast<std::size_t>((request.input_tokens - 1) / block_tokens_);
  switch (view_.cache) {
    case CacheView::now: match(fleet.truth, predicted(), request.blocks, limit, depth_); break;
    case CacheView::events: match(fleet.reported, predicted(), request.blocks, limit, depth_); break;
    case CacheView::own_routing: match(routed_, nullptr, request.blocks, limit, depth_); break;
  }
  for (ReplicaSight& sight : sights) {
    Load load;
    switch (view_.load) {
      case LoadView::now: load = fleet.now(sight.replica); break;
      case LoadView::snapshot: load = fleet.snapshot[sight.replica]; break;
      case LoadView::snapshot_corrected:
        load = fleet.snapshot[sight.replica];
        load += since_[sight.replica];
        break;
      case LoadView::own_tickets:
        load = own_[sight.replica];
        load.cached_blocks = view_.cache == CacheView::own_routing ? caches_[sight.replica].blocks() : load.used_blocks;
        break;
    }
    sight.matched_tokens = depth_[sight.replica] * block_tokens_;
    sight.requests = load.requests;
    sight.waiting = load.waiting;
    sight.pending_tokens = load.pending_tokens;
    sight.pending_ps = load.pending_ps;
    sight.tokens_in_flight = load.tokens_in_flight;
    sight.used_blocks = load.used_blocks;
    sight.cached_blocks = load.cached_blocks;
  }
}

void RouterView::routed(const RoutedRequest& request, const ReplicaSight& sight) {
  Ticket& t = ticket(request.index);
  const std::int64_t uncached = request.input_tokens - sight.matched_tokens;
  t = {};
  t.replica = sight.replica;
  t.prefills = true;
  t.booked.requests = 1;
  t.booked.tokens_in_flight = request.input_tokens;
  t.booked.used_blocks = (request.input_tokens + block_tokens_ - 1) / block_tokens_;
  t.prefill.waiting = 1;
  t.prefill.pending_tokens = uncached;
  t.prefill.pending_ps = hardware_.prefill_ps(uncached, sight.matched_tokens);
  for (auto* loads : {&own_, &since_}) {
    (*loads)[sight.replica] += t.booked;
    (*loads)[sight.replica] += t.prefill;
  }
  if (view_.predicts) {
    predicted_.enter(sight.replica, request.blocks);
    t.predicted = true;
  }
  if (view_.cache == CacheView::own_routing) caches_[sight.replica].touch(sight.replica, request.blocks, routed_);
}

void RouterView::first_token(const RoutedRequest& request) {
  Ticket& t = ticket(request.index);
  if (!t.prefills) return;
  t.prefills = false;
  own_[t.replica] -= t.prefill;
  if (!t.predicted) return;
  t.predicted = false;
  const std::int64_t delay_us = view_.cache == CacheView::events ? view_.event_delay_us : 0;
  expiring_.push_back({request.now_us + delay_us, t.replica, request.index, request.blocks});
}

void RouterView::ended(const RoutedRequest& request, bool lost) {
  Ticket& t = ticket(request.index);
  if (t.replica == kNoRequest) return;
  if (lost && t.predicted) {
    predicted_.leave(t.replica, request.blocks);
    t.predicted = false;
  }
  first_token(request);
  own_[t.replica] -= t.booked;
  t.replica = kNoRequest;
}

void RouterView::snapshot_taken() { std::fill(since_.begin(), since_.end(), Load{}); }

void RouterView::cache_lost(std::uint32_t replica) {
  if (view_.cache != CacheView::own_routing) return;
  caches_[replica].clear();
  routed_.forget(replica);
}

}  // namespace warmroute::trace
