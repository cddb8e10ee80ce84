// A fleet of modelled replicas behind a real Router under a virtual clock: what the scenario tests run.
// Events at one instant: step ends, then arrivals in the order they were scheduled, then step starts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/router.hpp"
#include "warmroute/trace/replica_model.hpp"

namespace warmroute::test {

// The same fixed generator everywhere, so that a seed means the same run on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mix(state_++); }
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

inline Rates rates_of(const trace::HardwareProfile& p) {
  return {p.floor_ps / 1'000, p.per_token_ps, p.per_pair_ps, p.per_context_ps, p.overhead_ps / 1'000};
}

struct FleetRequest {
  std::vector<BlockHash> path;
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 1;
  std::string session{};
  ReplicaId pinned = kNoReplica;
};

struct FinishedRequest {
  std::uint64_t id = 0;
  ReplicaId replica;
  Decision decision;
  std::int64_t arrived_us = 0;
  std::int64_t first_token_us = 0;
  std::int64_t finished_us = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t input_tokens = 0;
};

class Fleet : private trace::ReplicaSink {
 public:
  struct Options {
    std::size_t replicas = 8;
    std::string profile = "70b-8xh100";
    std::int64_t block_tokens = 16;
    Policy policy{};
  };

  explicit Fleet(Options options) : options_(options) {
    const trace::HardwareProfile& hardware = *trace::find_hardware_profile(options.profile);
    options_.policy.block_size = static_cast<std::uint32_t>(options.block_tokens);
    if (!router.set_policy(options_.policy)) std::abort();
    trace::ReplicaModelConfig config;
    config.hardware = hardware;
    config.block_tokens = options.block_tokens;
    for (std::size_t i = 0; i < options.replicas; ++i) {
      ReplicaSpec spec{.name = "replica-" + std::to_string(i)};
      spec.rates = rates_of(hardware);
      spec.capacity_tokens = hardware.kv_tokens;
      ids.push_back(*router.add_replica(std::move(spec), Nanos{0}));
      models.emplace_back(config);
      token_integral.push_back(0);
    }
  }

  // `id` 0: numbered from 1 in order of scheduling.
  void schedule(std::int64_t at_us, FleetRequest request, std::uint64_t id = 0) {
    arrivals_.push({at_us, id != 0 ? id : next_id_++, std::move(request)});
  }

  // Runs until `until_us`, or until nothing is left to do.
  void run(std::int64_t until_us) {
    while (true) {
      std::int64_t next = arrivals_.empty() ? until_us : std::min(until_us, arrivals_.top().at_us);
      for (const auto& model : models) {
        if (const auto end = model.next_event_us()) next = std::min(next, *end);
      }
      integrate(next);
      now_us = next;
      if (next >= until_us) return;
      for (auto& model : models) model.advance(now_us, *this);
      while (!arrivals_.empty() && arrivals_.top().at_us <= now_us) {
        Arrival arrival = arrivals_.top();
        arrivals_.pop();
        arrive(std::move(arrival));
      }
      for (auto& model : models) model.start(now_us, *this);
      if (arrivals_.empty() &&
          std::none_of(models.begin(), models.end(), [](auto& m) { return m.next_event_us().has_value(); }))
        return;
    }
  }

  [[nodiscard]] double hit_ratio() const {
    std::int64_t hit = 0;
    std::int64_t input = 0;
    for (const auto& f : finished_requests) {
      if (f.arrived_us < warm_up_us) continue;
      hit += f.cached_tokens;
      input += f.input_tokens;
    }
    return input == 0 ? 0 : static_cast<double>(hit) / static_cast<double>(input);
  }
  [[nodiscard]] double mean_ttft_ms() const {
    double sum = 0;
    std::size_t n = 0;
    for (const auto& f : finished_requests) {
      if (f.arrived_us < warm_up_us) continue;
      sum += static_cast<double>(f.first_token_us - f.arrived_us) / 1e3;
      ++n;
    }
    return n == 0 ? 0 : sum / static_cast<double>(n);
  }
  // Largest over mean of the replicas' time integrals of tokens in flight, after the warm-up.
  [[nodiscard]] double imbalance() const {
    double sum = 0;
    double most = 0;
    for (const double v : token_integral) {
      sum += v;
      most = std::max(most, v);
    }
    return sum == 0 ? 1 : most * static_cast<double>(token_integral.size()) / sum;
  }

  Router router;
  std::vector<ReplicaId> ids;
  std::vector<trace::ReplicaModel> models;
  std::vector<double> token_integral;
  std::vector<FinishedRequest> finished_requests;
  std::function<void(const FinishedRequest&)> on_finished;
  std::function<void(std::uint64_t, const Request&, Nanos)> on_routing;
  std::int64_t warm_up_us = 0;
  std::int64_t now_us = 0;
  std::size_t refused = 0;

 private:
  struct Arrival {
    std::int64_t at_us;
    std::uint64_t id;
    FleetRequest request;
    friend bool operator<(const Arrival& a, const Arrival& b) {
      return a.at_us != b.at_us ? a.at_us > b.at_us : a.id > b.id;
    }
  };
  struct InFlight {
    FinishedRequest record;
    std::int64_t output_tokens = 0;
  };

  void integrate(std::int64_t until_us) {
    const std::int64_t from = std::max(now_us, warm_up_us);
    if (until_us <= from) return;
    for (std::size_t i = 0; i < models.size(); ++i) {
      token_integral[i] += static_cast<double>(models[i].tokens_in_flight()) * static_cast<double>(until_us - from);
    }
  }

  void arrive(Arrival arrival) {
    const FleetRequest& r = arrival.request;
    Request request;
    request.blocks = r.path;
    request.input_tokens = r.input_tokens;
    request.session = r.session;
    request.pinned = r.pinned;
    if (on_routing) on_routing(arrival.id, request, microseconds(now_us));
    const Decision d = router.route(request, microseconds(now_us));
    if (!d.routed()) {
      ++refused;
      return;
    }
    sequence_.resize(r.path.size());
    std::vector<SequenceHash> chain(r.path.size());
    sequence_hashes(r.path, chain);
    for (std::size_t i = 0; i < chain.size(); ++i) sequence_[i] = to_u64(chain[i]);
    InFlight in_flight;
    in_flight.record = {arrival.id, d.replica, d, now_us, 0, 0, 0, r.input_tokens};
    in_flight.output_tokens = r.output_tokens;
    if (!models[d.replica.slot].submit(arrival.id, sequence_, r.input_tokens, r.output_tokens, now_us)) {
      router.fail(d.ticket, Outcome::client_error, microseconds(now_us));
      ++refused;
      return;
    }
    in_flight_.emplace(arrival.id, in_flight);
  }

  void admitted(std::uint64_t id, std::int64_t, std::int64_t cached, std::int64_t attempt) override {
    if (attempt == 0) in_flight_.at(id).record.cached_tokens = cached;
  }
  void token(std::uint64_t id, std::int64_t at_us, std::int64_t index) override {
    if (index != 1) return;
    InFlight& f = in_flight_.at(id);
    f.record.first_token_us = at_us;
    router.first_token(f.record.decision.ticket, microseconds(at_us));
  }
  void finished(std::uint64_t id, std::int64_t at_us) override {
    InFlight f = in_flight_.at(id);
    in_flight_.erase(id);
    f.record.finished_us = at_us;
    router.finish(f.record.decision.ticket, {f.record.input_tokens, f.record.cached_tokens, f.output_tokens},
                  microseconds(at_us));
    finished_requests.push_back(f.record);
    if (on_finished) on_finished(f.record);
  }

  Options options_;
  std::priority_queue<Arrival> arrivals_;
  std::unordered_map<std::uint64_t, InFlight> in_flight_;
  std::vector<std::uint64_t> sequence_;
  std::uint64_t next_id_ = 1;
};

// Appends `tokens` worth of blocks that only (owner, version) has.
inline void append_blocks(std::vector<BlockHash>& path, std::uint64_t owner, std::int64_t upto_tokens,
                          std::int64_t block_tokens) {
  while (static_cast<std::int64_t>(path.size() + 1) * block_tokens <= upto_tokens) {
    path.push_back(BlockHash{mix(owner * 0x1000003 + path.size())});
  }
}

}  // namespace warmroute::test
