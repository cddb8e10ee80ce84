/// The inside of the simulator: replicas, routers, what is in flight, and the order of events.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "trace/fleet_figures.hpp"
#include "trace/router_view.hpp"
#include "warmroute/route/gateway_ring.hpp"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/simulator.hpp"

namespace warmroute::trace {

class Fleet final : private Foresight {
 public:
  Fleet(const SimulationConfig& config, const Workload& workload);
  /// errors: of the rule.
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  [[nodiscard]] Status prepare();
  [[nodiscard]] SimulationFigures run();

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Ear final : ReplicaSink {  // hears one replica
    Ear(Fleet& owner, std::uint32_t number) : fleet(&owner), replica(number) {}
    void admitted(std::uint64_t id, std::int64_t at_us, std::int64_t cached_tokens, std::int64_t attempt) override {
      fleet->on_admitted(static_cast<std::uint32_t>(id), replica, at_us, cached_tokens, attempt);
    }
    void token(std::uint64_t id, std::int64_t at_us, std::int64_t index) override {
      fleet->on_token(static_cast<std::uint32_t>(id), replica, at_us, index);
    }
    void finished(std::uint64_t id, std::int64_t at_us) override {
      fleet->on_finished(static_cast<std::uint32_t>(id), replica, at_us);
    }
    void committed(std::uint64_t block, std::uint64_t parent, std::int64_t depth, std::int64_t at_us) override {
      fleet->on_block({at_us, replica, fleet->lives_[replica], true, block, parent, depth});
    }
    void evicted(std::uint64_t block, std::int64_t at_us) override {
      fleet->on_block({at_us, replica, fleet->lives_[replica], false, block, 0, 0});
    }
    Fleet* fleet;
    std::uint32_t replica;
  };
  struct BlockNews {
    std::int64_t due_us = 0;
    std::uint32_t replica = 0;
    std::uint32_t life = 0;  // of a replica that has died since nothing is heard
    bool stored = false;
    std::uint64_t block = 0;
    std::uint64_t parent = 0;
    std::int64_t depth = 0;
  };
  struct Pooled final : RemoteBlocks {
    [[nodiscard]] bool holds(std::uint64_t block) const override { return computed[block]; }
    std::vector<bool> computed;
  };
  struct Router {
    std::unique_ptr<RouterView> view;
    std::unique_ptr<RoutingRule> rule;
  };
  enum class Standing : std::uint8_t { absent, up, draining };
  struct Placement {
    std::uint32_t router = 0;
    std::uint32_t request = 0;
    std::uint32_t replica = 0;
    std::uint32_t life = 0;  // of one that died since nothing is told
  };

  [[nodiscard]] Status make_routers();
  void upcoming(std::size_t most, std::vector<RoutedRequest>& out) const override;
  void held(const RoutedRequest& request, std::span<std::int64_t> tokens) const override;

  // The phases of an instant, in order.
  [[nodiscard]] std::int64_t next_instant() const;
  void end_steps(std::int64_t now_us);
  void apply_churn(std::int64_t now_us);
  void take_snapshots(std::int64_t now_us);
  void take_arrivals(std::int64_t now_us);
  void start_steps(std::int64_t now_us);
  void start_group(std::uint32_t first, std::int64_t now_us);

  void arrive(std::uint32_t index, std::int64_t now_us);
  void route(std::uint32_t index, std::int64_t now_us);
  [[nodiscard]] std::size_t ask(Router& router, const RoutedRequest& request);
  void see_pool(const RoutedRequest& request);
  void end(std::uint32_t index, std::int64_t now_us);
  void deliver_news(std::int64_t now_us);
  void tell_loads(RoutingRule& rule, std::int64_t now_us);
  void note_spill(const RoutedRequest& request, std::uint32_t chosen);
  [[nodiscard]] std::uint32_t router_of(std::uint32_t index) const;
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t index);
  void share_loads(std::int64_t now_us);
  void tell_placement(const Placement& p, std::int64_t now_us);
  [[nodiscard]] RoutedRequest asked(std::uint32_t index, std::int64_t now_us) const;

  void join(std::uint32_t replica, std::int64_t now_us);
  void die(std::uint32_t replica, std::int64_t now_us);
  void set_standing(std::uint32_t replica, Standing standing, std::int64_t now_us);
  void refresh_step(std::uint32_t replica) {
    step_end_[replica] = state_.models[replica].next_event_us().value_or(kNever);
  }

  void on_admitted(std::uint32_t index, std::uint32_t replica, std::int64_t at_us, std::int64_t cached,
                   std::int64_t attempt);
  void on_token(std::uint32_t index, std::uint32_t replica, std::int64_t at_us, std::int64_t number);
  void on_finished(std::uint32_t index, std::uint32_t replica, std::int64_t at_us);
  [[nodiscard]] bool prefills_only(std::uint32_t index, std::uint32_t replica) const noexcept {
    return figures_.requests[index].prefill_replica == replica;
  }
  void send_kv(std::uint32_t index, std::int64_t now_us);
  void end_transfers(std::int64_t now_us);
  void lose(std::uint32_t index, std::uint32_t replica, std::int64_t now_us);
  void on_block(BlockNews news);

  const SimulationConfig& config_;
  const Workload& workload_;
  ReplicaModelConfig model_config_;
  std::uint32_t replicas_ = 0;  // that have joined so far
  std::uint32_t max_replicas_ = 0;
  FleetState state_;
  Pooled pooled_;
  std::vector<Ear> ears_;
  std::vector<Standing> standing_;
  std::vector<std::uint32_t> lives_;
  std::vector<std::int64_t> step_end_;
  std::vector<std::uint8_t> may_start_;
  std::vector<Router> routers_;
  std::optional<GatewayRing> ring_;
  std::vector<BlockHash> leading_;           // of the prompt whose owner is asked for
  std::vector<std::vector<PeerLoad>> told_;  // by router, on its way to the others
  std::vector<Placement> placed_;            // not told yet
  std::vector<Placement> told_placed_;
  bool rules_hear_blocks_ = false;

  struct Lives {  // of the two replicas of a pair, when it was formed
    std::uint32_t prefill = 0;
    std::uint32_t decode = 0;
  };
  std::vector<Lives> pair_lives_;        // by request; empty without pairs
  std::vector<std::int64_t> link_free_;  // by replica: when it has sent all that waits, in picoseconds
  std::vector<std::uint32_t> roots_;     // in order of arrival
  std::size_t next_root_ = 0;
  using Due = std::pair<std::int64_t, std::uint32_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> followers_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> transfers_;
  std::vector<std::uint32_t> parked_;  // nobody could take them
  std::deque<BlockNews> news_;
  std::size_t next_churn_ = 0;
  std::int64_t next_snapshot_us_ = 0;
  std::int64_t next_sample_us_ = 0;
  std::int64_t next_sharing_us_ = 0;  // routers say what they have in flight
  std::int64_t told_at_us_ = kNever;  // the others have heard it
  std::int64_t in_flight_ = 0;
  std::vector<ReplicaSight> sights_;
  std::vector<std::int64_t> depth_;
  std::vector<std::int64_t> promised_;  // matched tokens at routing, until admission; by request
  SplitMix64 ties_;
  SplitMix64 losses_;
  FleetFigures figures_;
};

}  // namespace warmroute::trace
