#include "trace/fleet_figures.hpp"

#include <algorithm>

#include "warmroute/trace/sample.hpp"

namespace warmroute::trace {

LatencyFigures latency_of(std::vector<std::int64_t>& values) {
  LatencyFigures out;
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  std::int64_t sum = 0;
  for (const std::int64_t v : values) sum += v;
  const std::span<const std::int64_t> sorted = values;
  out.mean_us = static_cast<double>(sum) / static_cast<double>(values.size());
  out.p50_us = percentile(sorted, 500);
  out.p90_us = percentile(sorted, 900);
  out.p99_us = percentile(sorted, 990);
  out.max_us = values.back();
  return out;
}

std::int64_t GapCounter::at_rank(std::int64_t rank) const {
  std::int64_t before = 0;
  for (std::size_t gap = 0; gap < counters_.size(); ++gap) {
    before += counters_[gap];
    if (before >= rank) return static_cast<std::int64_t>(gap);
  }
  return long_[static_cast<std::size_t>(rank - before - 1)];
}

LatencyFigures GapCounter::figures() {
  LatencyFigures out;
  if (count_ == 0) return out;
  std::sort(long_.begin(), long_.end());
  const auto rank = [&](std::int64_t permille) {
    return std::clamp((permille * count_ + 999) / 1000, std::int64_t{1}, count_);
  };
  out.mean_us = static_cast<double>(sum_) / static_cast<double>(count_);
  out.p50_us = at_rank(rank(500));
  out.p90_us = at_rank(rank(900));
  out.p99_us = at_rank(rank(990));
  out.max_us = at_rank(count_);
  return out;
}

double imbalance(const std::vector<double>& per_replica) {
  double sum = 0, most = 0;
  for (const double v : per_replica) {
    sum += v;
    most = std::max(most, v);
  }
  return sum > 0 ? most * static_cast<double>(per_replica.size()) / sum : 1.0;
}

FleetFigures::FleetFigures(const SimulationConfig& config, const Workload& workload, std::uint32_t max_replicas)
    : requests(workload.requests.size()),
      config_(config),
      workload_(workload),
      seen_(workload.distinct_blocks),
      total_(max_replicas),
      window_(max_replicas),
      lives_(max_replicas) {}

void FleetFigures::arrived(std::uint32_t index, std::int64_t now_us) {
  Request& r = requests[index];
  r.arrival_us = now_us;
  r.counts = now_us >= config_.warm_up_us;
  last_arrival_us_ = now_us;
  const WorkloadRequest& asked = workload_.requests[index];
  const std::int64_t matchable = (asked.input_tokens - 1) / workload_.block_tokens;
  bool leading = true;
  std::int64_t depth = 0;
  for (const std::uint64_t block : workload_.blocks_of(asked)) {
    leading = leading && seen_[block];
    if (leading && r.counts && depth < matchable) bound_tokens_ += workload_.block_tokens;
    seen_[block] = true;
    ++depth;
  }
  if (!r.counts) return;
  ++out.requests;
  out.input_tokens += asked.input_tokens;
}

void FleetFigures::accrue(std::uint32_t replica, const ReplicaModel& model, std::int64_t now_us) {
  Life& life = lives_[replica];
  const std::int64_t from = std::max(life.accrued_us, config_.warm_up_us);
  if (now_us > from) {
    const auto span = static_cast<double>(now_us - from);
    if (model.next_event_us().has_value()) total_[replica].busy += span;
    total_[replica].tokens += span * static_cast<double>(model.tokens_in_flight());
  }
  life.accrued_us = std::max(life.accrued_us, now_us);
}

void FleetFigures::step_ended(std::uint32_t replica, const ReplicaModel& model, std::int64_t now_us) {
  Life& life = lives_[replica];
  const std::int64_t work = model.prefill_work_ps();
  if (now_us > config_.warm_up_us) total_[replica].prefill += static_cast<double>(work - life.prefill_ps);
  life.prefill_ps = work;
}

void FleetFigures::joined(std::uint32_t replica, std::int64_t now_us) {
  lives_[replica].joined_us = now_us;
  lives_[replica].accrued_us = now_us;
}
void FleetFigures::left(std::uint32_t replica, const ReplicaModel& model, std::int64_t now_us) {
  accrue(replica, model, now_us);
  lives_[replica].lived_us += now_us - lives_[replica].joined_us;
  lives_[replica].joined_us = -1;
}

void FleetFigures::token(std::uint32_t index, std::int64_t at_us, std::int64_t number) {
  Request& r = requests[index];
  if (number == 1) r.first_token_us = at_us;
  else if (r.counts) gaps_.add(at_us - r.last_token_us);
  r.last_token_us = at_us;
}

void FleetFigures::admitted(std::uint32_t index, std::int64_t cached_tokens) {
  Request& r = requests[index];
  if (r.admitted) return;
  r.admitted = true;
  r.cached_tokens = cached_tokens;
  sampled_hits_ += cached_tokens;
  sampled_input_ += workload_.requests[index].input_tokens;
}

void FleetFigures::sample(std::int64_t at_us, const FleetState& state, std::uint32_t replicas) {
  LoadSample sample;
  sample.at_us = at_us;
  for (std::uint32_t r = 0; r < replicas; ++r) sample.tokens_in_flight.push_back(state.models[r].tokens_in_flight());
  sample.hit_tokens = std::exchange(sampled_hits_, 0);
  sample.input_tokens = std::exchange(sampled_input_, 0);
  out.samples.push_back(std::move(sample));
}

void FleetFigures::count_end(const Request& r, const WorkloadRequest& asked) {
  end_us_ = std::max(end_us_, r.end_us);
  if (!r.counts) return;
  if (r.rejected) {
    ++out.rejected;
    out.input_tokens -= asked.input_tokens;
    return;
  }
  if (r.attempts > 1) out.sent_again += r.attempts - 1;
  if (r.end_us < 0) return;
  ++out.completed;
  out.cached_tokens += r.cached_tokens;
  out.output_tokens += asked.output_tokens;
  ttft_.push_back(r.first_token_us - r.arrival_us);
  e2e_.push_back(r.end_us - r.arrival_us);
  const std::int64_t steps = std::max<std::int64_t>(1, asked.output_tokens - 1);
  const bool fluent = config_.slo_itl_us == 0 || r.end_us - r.first_token_us <= config_.slo_itl_us * steps;
  if (fluent && ttft_.back() <= config_.slo_ttft_us) out.goodput += 1;
  if (r.prefill_replica != kNoRequest) ++out.pairs;
}

void FleetFigures::spread(SimulationFigures& figures, std::uint32_t replicas) const {
  std::vector<double> busy, prefill, tokens;
  double sum = 0;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    busy.push_back(window_[r].busy);
    prefill.push_back(window_[r].prefill);
    tokens.push_back(window_[r].tokens);
    sum += window_[r].busy;
  }
  figures.busy_imbalance = imbalance(busy);
  figures.prefill_imbalance = imbalance(prefill);
  figures.token_imbalance = imbalance(tokens);
  const double span = static_cast<double>(last_arrival_us_ - config_.warm_up_us) * replicas;
  figures.utilisation = span > 0 ? sum / span : 0;
}

void FleetFigures::duplicates(SimulationFigures& figures, const FleetState& state) const {
  std::int64_t copies = 0, distinct = 0;
  for (std::uint64_t block = 0; block < workload_.distinct_blocks; ++block) {
    std::int64_t held = 0;
    for (std::size_t word = 0; word < state.truth.words(); ++word) held += std::popcount(state.truth.of(block)[word]);
    copies += held;
    distinct += held > 0 ? 1 : 0;
  }
  figures.duplicates = distinct > 0 ? static_cast<double>(copies) / static_cast<double>(distinct) : 0;
}

SimulationFigures FleetFigures::finish(const FleetState& state, std::uint32_t replicas) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].arrival_us >= 0) count_end(requests[i], workload_.requests[i]);
  }
  out.ttft = latency_of(ttft_);
  out.e2e = latency_of(e2e_);
  out.itl = gaps_.figures();
  const auto share = [](auto part, auto of) {
    return of > 0 ? static_cast<double>(part) / static_cast<double>(of) : 0.0;
  };
  out.transfer = latency_of(transfers_);
  const std::int64_t span_us = last_arrival_us_ - config_.warm_up_us;
  if (span_us > 0) out.goodput_rate = out.goodput / (static_cast<double>(span_us) / 1e6) / replicas;
  out.goodput = share(out.goodput, out.requests);
  out.hit_ratio = share(out.cached_tokens, out.input_tokens);
  out.bound_ratio = share(bound_tokens_, out.input_tokens);
  out.spill_ratio = share(spills, routed);
  out.makespan_us = end_us_;
  spread(out, replicas);
  duplicates(out, state);
  std::int64_t alive_us = 0;
  for (std::uint32_t r = 0; r < replicas; ++r) {
    out.evictions += state.models[r].evictions();
    out.preemptions += state.models[r].preemptions();
    alive_us += lives_[r].lived_us;
    if (lives_[r].joined_us >= 0) alive_us += std::max<std::int64_t>(0, end_us_ - lives_[r].joined_us);
  }
  out.dollars =
      static_cast<double>(alive_us) / 3.6e9 * static_cast<double>(config_.replica.hardware.cents_per_hour) / 100;
  if (out.dollars > 0) out.tokens_per_dollar = static_cast<double>(out.input_tokens + out.output_tokens) / out.dollars;
  if (config_.keep_requests) out.per_request.assign(requests.begin(), requests.end());
  return std::move(out);
}

}  // namespace warmroute::trace
