// The loop: one instant after the other, its phases in the order that simulator.hpp promises.
#include <algorithm>
#include <cassert>
#include <string>

#include "trace/fleet.hpp"

namespace warmroute::trace {

Result<SimulationFigures> simulate(const SimulationConfig& config, const Workload& workload) {
  const auto refuse = [](const char* why) {
    return Error{Code::invalid_argument, std::string("simulation: ") + why, kNoOffset};
  };
  const ReplicaModelConfig& replica = config.replica;
  if (config.replicas < 1 || config.replicas > 16'384) return refuse("between 1 and 16384 replicas");
  if (std::any_of(config.capacities.begin(), config.capacities.end(), [](std::int64_t c) { return c < 1; }))
    return refuse("capacities of replicas must be positive");
  if (config.routers < 1 || config.routers > 1'024) return refuse("between 1 and 1024 routers");
  if (config.forward_us < 0 || config.share_loads_us < 0 ||
      (config.share_loads_us > 0 && config.forward_us >= config.share_loads_us))
    return refuse("forwarding takes no negative time, and what routers tell arrives before they tell more");
  constexpr std::int64_t kMostUs = 1'000'000'000'000;  // 11 days: no time overflows
  if (config.forward_us > kMostUs || config.share_loads_us > kMostUs || config.view.snapshot_us > kMostUs ||
      config.view.event_delay_us < 0 || config.view.event_delay_us > kMostUs || config.view.event_loss_permille < 0 ||
      config.view.event_loss_permille > 1'000)
    return refuse(
        "forwarding, sharing, snapshots and delays of events of at most 10^12 us, and a share of lost events in 0..1");
  if (replica.hardware.floor_ps + replica.hardware.per_token_ps + replica.hardware.overhead_ps <= 0)
    return refuse("a profile whose steps take no time");
  if (workload.block_tokens < 1 || replica.step_token_budget < 1 || replica.max_running < 1 ||
      replica.speed_permille < 1 || config.view.snapshot_us < 1)
    return refuse("block size, step budget, running requests, speed and snapshot interval must be positive");
  if (config.prefill_replicas < 0 || config.decode_replicas < 0 ||
      config.prefill_replicas + config.decode_replicas > config.replicas || config.transfer_token_ps < 0 ||
      config.transfer_latency_us < 0)
    return refuse("the replicas that only prefill or only decode are among all, and transfers take no negative time");
  if (config.prefill_replicas > 0 && config.prefill_replicas == config.replicas)
    return refuse("a fleet that only prefills answers nobody");
  Fleet fleet(config, workload);
  if (const Status ready = fleet.prepare(); !ready) return ready.error();
  return fleet.run();
}

namespace {

std::uint32_t count_joining(const SimulationConfig& config) {
  auto count = static_cast<std::uint32_t>(config.replicas);
  for (const ChurnEvent& e : config.churn) count += e.kind == ChurnEvent::Kind::add ? 1 : 0;
  return count;
}

ReplicaModelConfig model_config(const SimulationConfig& config, const Workload& workload) {
  ReplicaModelConfig out = config.replica;
  out.block_tokens = workload.block_tokens;
  return out;
}

}  // namespace

Fleet::Fleet(const SimulationConfig& config, const Workload& workload)
    : config_(config),
      workload_(workload),
      model_config_(model_config(config, workload)),
      max_replicas_(count_joining(config)),
      depth_(max_replicas_),
      promised_(workload.requests.size()),
      ties_(config.seed),
      losses_(config.seed ^ 0x10C5),
      figures_(config, workload, max_replicas_) {}

Status Fleet::prepare() {
  std::uint32_t known = static_cast<std::uint32_t>(config_.replicas);
  for (const ChurnEvent& e : config_.churn) {
    if (e.kind == ChurnEvent::Kind::add) ++known;
    else if (e.replica >= known || (e.kind == ChurnEvent::Kind::speed && e.value < 1))
      return Error{Code::invalid_argument,
                   "simulation: a churn event names replica " + std::to_string(e.replica) +
                       ", which has not joined, or a speed below 1",
                   kNoOffset};
  }
  if (config_.pooled) {
    pooled_.computed.resize(workload_.distinct_blocks);
    model_config_.remote = &pooled_;
  }
  state_.truth = Holders(workload_.distinct_blocks, max_replicas_);
  const bool late = config_.view.cache == CacheView::events;
  if (late) state_.reported = Holders(workload_.distinct_blocks, max_replicas_);
  state_.snapshot.resize(max_replicas_);
  state_.hits.resize(max_replicas_);
  standing_.assign(max_replicas_, Standing::absent);
  lives_.assign(max_replicas_, 0);
  step_end_.assign(max_replicas_, kNever);
  may_start_.assign(max_replicas_, 0);
  link_free_.assign(max_replicas_, 0);
  pair_lives_.resize(workload_.requests.size());
  for (std::uint32_t r = 0; r < max_replicas_; ++r) {
    ReplicaModelConfig model = model_config_;
    if (!config_.capacities.empty()) model.capacity_tokens = config_.capacities[r % config_.capacities.size()];
    state_.models.emplace_back(model);
    ears_.emplace_back(*this, r);
  }
  if (Status made = make_routers(); !made) return made;
  for (std::uint32_t i = 0; i < workload_.requests.size(); ++i) {
    if (!workload_.requests[i].follows) roots_.push_back(i);
  }
  std::stable_sort(roots_.begin(), roots_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return workload_.requests[a].arrival_us < workload_.requests[b].arrival_us;
  });
  for (std::int64_t r = 0; r < config_.replicas; ++r) join(static_cast<std::uint32_t>(r), 0);
  return {};
}

SimulationFigures Fleet::run() {
  for (std::int64_t now = next_instant(); now != kNever; now = next_instant()) {
    end_steps(now);
    end_transfers(now);
    apply_churn(now);
    take_snapshots(now);
    share_loads(now);
    take_arrivals(now);
    start_steps(now);
  }
  for (const Router& router : routers_) figures_.out.booked_at_end += router.rule->booked();
  figures_.out.unplaced = static_cast<std::int64_t>(parked_.size());
  return figures_.finish(state_, replicas_);
}

// Churn, snapshots and samples go on only as long as there is something to serve.
std::int64_t Fleet::next_instant() const {
  std::int64_t next = kNever;
  for (std::uint32_t r = 0; r < replicas_; ++r) next = std::min(next, step_end_[r]);
  if (next_root_ < roots_.size()) next = std::min(next, workload_.requests[roots_[next_root_]].arrival_us);
  if (!followers_.empty()) next = std::min(next, followers_.top().first);
  if (!transfers_.empty()) next = std::min(next, transfers_.top().first);
  if (next == kNever && parked_.empty()) return kNever;
  if (next_churn_ < config_.churn.size()) next = std::min(next, config_.churn[next_churn_].at_us);
  if (next == kNever) return kNever;
  const bool snapshots = config_.view.load == LoadView::snapshot || config_.view.load == LoadView::snapshot_corrected;
  if (snapshots) next = std::min(next, next_snapshot_us_);
  if (config_.sample_us > 0) next = std::min(next, next_sample_us_);
  if (config_.share_loads_us > 0 && routers_.size() > 1) next = std::min({next, next_sharing_us_, told_at_us_});
  return next;
}

void Fleet::end_steps(std::int64_t now_us) {
  for (std::uint32_t r = 0; r < replicas_; ++r) {
    if (step_end_[r] != now_us) continue;
    figures_.accrue(r, state_.models[r], now_us);
    state_.models[r].advance(now_us, ears_[r]);
    figures_.step_ended(r, state_.models[r], now_us);
    refresh_step(r);
    may_start_[r] = 1;
  }
}

void Fleet::apply_churn(std::int64_t now_us) {
  for (; next_churn_ < config_.churn.size() && config_.churn[next_churn_].at_us <= now_us; ++next_churn_) {
    const ChurnEvent& e = config_.churn[next_churn_];
    if (e.kind == ChurnEvent::Kind::add) {
      join(replicas_, now_us);
      continue;
    }
    if (standing_[e.replica] == Standing::absent) continue;
    switch (e.kind) {
      case ChurnEvent::Kind::remove: die(e.replica, now_us); break;
      case ChurnEvent::Kind::restart:
        die(e.replica, now_us);
        join(e.replica, now_us);
        break;
      case ChurnEvent::Kind::drain: set_standing(e.replica, Standing::draining, now_us); break;
      case ChurnEvent::Kind::resume: set_standing(e.replica, Standing::up, now_us); break;
      case ChurnEvent::Kind::speed: state_.models[e.replica].set_speed(e.value); break;
      case ChurnEvent::Kind::add: break;
    }
  }
}

void Fleet::take_snapshots(std::int64_t now_us) {
  if (config_.sample_us > 0 && next_sample_us_ == now_us) {
    figures_.sample(now_us, state_, replicas_);
    next_sample_us_ += config_.sample_us;
  }
  if (next_snapshot_us_ != now_us) return;
  next_snapshot_us_ += config_.view.snapshot_us;
  if (config_.view.load != LoadView::snapshot && config_.view.load != LoadView::snapshot_corrected) return;
  for (std::uint32_t r = 0; r < replicas_; ++r) state_.snapshot[r] = state_.now(r);
  for (Router& router : routers_) {
    router.view->snapshot_taken();
    tell_loads(*router.rule, now_us);
  }
}

void Fleet::take_arrivals(std::int64_t now_us) {
  while (true) {
    const bool root = next_root_ < roots_.size() && workload_.requests[roots_[next_root_]].arrival_us == now_us;
    const bool follower = !followers_.empty() && followers_.top().first == now_us;
    if (!root && !follower) return;
    std::uint32_t index = 0;
    if (root && (!follower || roots_[next_root_] < followers_.top().second)) {
      index = roots_[next_root_++];
    } else {
      index = followers_.top().second;
      followers_.pop();
    }
    arrive(index, now_us);
  }
}

void Fleet::start_steps(std::int64_t now_us) {
  const auto ranks = static_cast<std::uint32_t>(std::max<std::int64_t>(1, model_config_.hardware.group_ranks));
  for (std::uint32_t r = 0; r < replicas_; ++r) {
    if (may_start_[r] == 0) continue;
    may_start_[r] = 0;
    if (ranks > 1) {
      start_group(r / ranks * ranks, now_us);
      continue;
    }
    figures_.accrue(r, state_.models[r], now_us);
    state_.models[r].start(now_us, ears_[r]);
    refresh_step(r);
  }
}

// Ranks of one engine begin and end their steps together: those that finish early, or have nothing to do, wait.
void Fleet::start_group(std::uint32_t first, std::int64_t now_us) {
  const auto last = std::min(replicas_, first + static_cast<std::uint32_t>(model_config_.hardware.group_ranks));
  for (std::uint32_t r = first; r < last; ++r) {
    if (step_end_[r] != kNever) return;
  }
  std::int64_t end_us = 0;
  for (std::uint32_t r = first; r < last; ++r) {
    figures_.accrue(r, state_.models[r], now_us);
    state_.models[r].start(now_us, ears_[r]);
    end_us = std::max(end_us, state_.models[r].next_event_us().value_or(0));
    may_start_[r] = 0;
  }
  for (std::uint32_t r = first; r < last; ++r) {
    state_.models[r].stretch_step(end_us);
    refresh_step(r);
  }
}

// ---- requests

RoutedRequest Fleet::asked(std::uint32_t index, std::int64_t now_us) const {
  const WorkloadRequest& r = workload_.requests[index];
  return {index, r.conversation, r.input_tokens, workload_.blocks_of(r), now_us};
}

void Fleet::arrive(std::uint32_t index, std::int64_t now_us) {
  FleetFigures::Request& r = figures_.requests[index];
  if (r.arrival_us < 0) {  // else it is sent again
    if (config_.horizon_us > 0 && now_us > config_.horizon_us) return;
    for (std::uint32_t i = 0; i < replicas_; ++i) figures_.accrue(i, state_.models[i], now_us);
    figures_.close_window();
    figures_.arrived(index, now_us);
    r.router = router_of(index);
    if (const std::uint32_t owner = owner_of(index); owner != r.router) {
      r.router = owner;
      ++figures_.out.forwarded;
      if (config_.forward_us > 0) return followers_.push({now_us + config_.forward_us, index});
    }
  }
  route(index, now_us);
}

std::size_t Fleet::ask(Router& router, const RoutedRequest& request) {
  router.view->advance(request.now_us);
  if (router.rule->reads_sights()) {
    router.view->look(state_, request, sights_);
    if (config_.pooled) see_pool(request);
  } else if (config_.view.load == LoadView::now) {
    tell_loads(*router.rule, request.now_us);
  }
  return router.rule->choose(request, sights_, ties_);
}

// What anybody has computed is a hit everywhere.
void Fleet::see_pool(const RoutedRequest& request) {
  const std::int64_t most = (request.input_tokens - 1) / workload_.block_tokens;
  std::int64_t depth = 0;
  for (const std::uint64_t block : request.blocks) {
    if (depth == most || !pooled_.computed[block]) break;
    ++depth;
  }
  for (ReplicaSight& s : sights_) s.matched_tokens = std::max(s.matched_tokens, depth * workload_.block_tokens);
}

void Fleet::route(std::uint32_t index, std::int64_t now_us) {
  sights_.clear();
  for (std::uint32_t r = 0; r < replicas_; ++r) {
    if (standing_[r] == Standing::up) sights_.push_back({.replica = r});
  }
  const auto prefill_only = static_cast<std::uint32_t>(config_.prefill_replicas);
  if (sights_.empty() || sights_.back().replica < prefill_only) {  // in order of replica: nobody answers
    parked_.push_back(index);
    return;
  }
  deliver_news(now_us);
  const RoutedRequest request = asked(index, now_us);
  FleetFigures::Request& figures = figures_.requests[index];
  Router& router = routers_[figures.router];
  const std::size_t chosen = ask(router, request);
  assert(chosen < sights_.size());
  const std::size_t prefill = router.rule->chosen_prefill();
  const bool pair = prefill != RoutingRule::kNobody;
  const ReplicaSight& sight = sights_[pair ? prefill : chosen];  // where the prompt is computed
  figures.replica = sights_[chosen].replica;
  figures.prefill_replica = pair ? sight.replica : kNoRequest;
  if (pair) pair_lives_[index] = {lives_[sight.replica], lives_[figures.replica]};
  ++figures.attempts;
  note_spill(request, sight.replica);
  figures_.accrue(sight.replica, state_.models[sight.replica], now_us);
  if (!state_.models[sight.replica].submit(index, request.blocks, request.input_tokens,
                                           pair ? 1 : workload_.requests[index].output_tokens, now_us)) {
    router.rule->lost(request, sight.replica);
    figures.rejected = true;
    end(index, now_us);
    return;
  }
  ++in_flight_;
  if (config_.share_placements) placed_.push_back({figures.router, index, sight.replica, lives_[sight.replica]});
  if (router.rule->reads_sights()) router.view->routed(request, sight);
  promised_[index] = sight.matched_tokens;
  Load& hits = state_.hits[sight.replica];
  hits.pending_tokens += sight.matched_tokens;
  hits.pending_ps += model_config_.hardware.prefill_ps(sight.matched_tokens, 0);
  may_start_[sight.replica] = 1;
}

// Where others held clearly more, by the truth of now.
void Fleet::note_spill(const RoutedRequest& request, std::uint32_t chosen) {
  const auto limit = static_cast<std::size_t>((request.input_tokens - 1) / workload_.block_tokens);
  match(state_.truth, nullptr, request.blocks, limit, depth_);
  std::int64_t best = 0;
  for (const ReplicaSight& s : sights_) best = std::max(best, depth_[s.replica]);
  const std::int64_t missed = (best - depth_[chosen]) * workload_.block_tokens;
  if (missed >= std::max<std::int64_t>(512, 2 * workload_.block_tokens)) ++figures_.spills;
  ++figures_.routed;
}

void Fleet::end(std::uint32_t index, std::int64_t now_us) {
  figures_.requests[index].end_us = now_us;
  for (std::uint32_t f = workload_.requests[index].first_follower; f != kNoRequest;
       f = workload_.requests[f].next_sibling) {
    followers_.push({now_us + workload_.requests[f].delay_us, f});
  }
}

void Fleet::on_admitted(std::uint32_t index, std::uint32_t replica, std::int64_t, std::int64_t cached,
                        std::int64_t attempt) {
  if (attempt > 0) return;
  figures_.admitted(index, cached);
  const std::int64_t promised = std::exchange(promised_[index], 0);
  state_.hits[replica].pending_tokens -= promised;
  state_.hits[replica].pending_ps -= model_config_.hardware.prefill_ps(promised, 0);
}

// One link per sending replica, first come, first served; what the other one holds already is not sent.
void Fleet::send_kv(std::uint32_t index, std::int64_t now_us) {
  const FleetFigures::Request& r = figures_.requests[index];
  const WorkloadRequest& asked_for = workload_.requests[index];
  const std::int64_t held =
      state_.models[r.replica].match_blocks(workload_.blocks_of(asked_for), asked_for.input_tokens) *
      workload_.block_tokens;
  const std::int64_t tokens = std::max<std::int64_t>(0, asked_for.input_tokens - held);
  constexpr std::int64_t kPicos = 1'000'000;
  std::int64_t& free_ps = link_free_[r.prefill_replica];
  free_ps = std::max(free_ps, now_us * kPicos) + config_.transfer_token_ps * tokens;
  const std::int64_t done_us = (free_ps + kPicos - 1) / kPicos + config_.transfer_latency_us;
  figures_.transferred(index, done_us - now_us, tokens);
  transfers_.push({done_us, index});
}

// Whoever lost its partner meanwhile is sent again.
void Fleet::end_transfers(std::int64_t now_us) {
  for (; !transfers_.empty() && transfers_.top().first == now_us; transfers_.pop()) {
    const std::uint32_t index = transfers_.top().second;
    const FleetFigures::Request& r = figures_.requests[index];
    const Lives then = pair_lives_[index];
    if (lives_[r.prefill_replica] != then.prefill || lives_[r.replica] != then.decode ||
        standing_[r.replica] == Standing::absent || standing_[r.prefill_replica] == Standing::absent) {
      lose(index, r.replica, now_us);
      continue;
    }
    const WorkloadRequest& asked_for = workload_.requests[index];
    figures_.accrue(r.replica, state_.models[r.replica], now_us);
    if (!state_.models[r.replica].submit(index, workload_.blocks_of(asked_for), asked_for.input_tokens,
                                         asked_for.output_tokens, now_us, asked_for.input_tokens - 1)) {
      routers_[r.router].rule->lost(asked(index, now_us), r.replica);
      figures_.requests[index].rejected = true;
      --in_flight_;
      end(index, now_us);
      continue;
    }
    may_start_[r.replica] = 1;
  }
}

void Fleet::lose(std::uint32_t index, std::uint32_t replica, std::int64_t now_us) {
  --in_flight_;
  promised_[index] = 0;
  Router& router = routers_[figures_.requests[index].router];
  router.rule->lost(asked(index, now_us), replica);
  if (router.rule->reads_sights()) router.view->ended(asked(index, now_us), true);
  followers_.push({now_us, index});
}

void Fleet::on_token(std::uint32_t index, std::uint32_t replica, std::int64_t at_us, std::int64_t number) {
  FleetFigures::Request& r = figures_.requests[index];
  if (prefills_only(index, replica)) {  // the one that decodes computes its last token again and answers
    routers_[r.router].rule->first_token(asked(index, at_us), replica);
    return;
  }
  figures_.token(index, at_us, number);
  if (number != 1) return;
  const RoutedRequest request = asked(index, at_us);
  if (r.prefill_replica != kNoRequest) routers_[r.router].rule->transferred(request, r.replica);
  else routers_[r.router].rule->first_token(request, r.replica);
  if (routers_[r.router].rule->reads_sights()) routers_[r.router].view->first_token(request);
}

void Fleet::on_finished(std::uint32_t index, std::uint32_t replica, std::int64_t at_us) {
  if (prefills_only(index, replica)) return send_kv(index, at_us);
  --in_flight_;
  const FleetFigures::Request& r = figures_.requests[index];
  const RoutedRequest request = asked(index, at_us);
  routers_[r.router].rule->finished(request, r.replica, r.cached_tokens, workload_.requests[index].output_tokens);
  if (routers_[r.router].rule->reads_sights()) routers_[r.router].view->ended(request, false);
  end(index, at_us);
}

}  // namespace warmroute::trace
