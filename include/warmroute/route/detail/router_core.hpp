/// What a Router is made of, and its decisions. Bodies beside it: router_tickets.hpp books and releases, router_placements.hpp feeds the models
/// of the caches, router_predictions.hpp bridges the time until events come, router_members.hpp has membership and upkeep.
/// Locks: `control_` serialises membership and policy; `PoolState::placing` guards the residency models and is only ever tried on
/// hot calls. Hot calls read one Topology under one epoch guard and write atomics.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "warmroute/route/detail/decide.hpp"
#include "warmroute/route/detail/peer_books.hpp"
#include "warmroute/route/detail/router_counters.hpp"
#include "warmroute/route/detail/ticket_table.hpp"
#include "warmroute/route/detail/topology.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::detail {

// Counts come from other machines' answers: one absurd number must not spoil the sums. No request has 10^9 tokens.
inline UsageCounts within_reason(UsageCounts usage) noexcept {
  for (std::int64_t* count : {&usage.input_tokens, &usage.cached_tokens, &usage.output_tokens}) {
    if (*count < 0 || *count > 1'000'000'000) *count = kUnknown;
  }
  return usage;
}

class RouterCore {
 public:
  explicit RouterCore(RouterOptions options);

  Status set_policy(const Policy& policy);
  Policy policy() const;
  Result<ReplicaId> add_replica(ReplicaSpec spec, Nanos now);
  Status remove_replica(ReplicaId id, Nanos now);
  Status set_health(ReplicaId id, Health health, std::string_view reason, Nanos now);
  Status drain(ReplicaId id, Nanos until, Nanos now);
  Status update_replica(ReplicaId id, const ReplicaSpec& spec, Nanos now);
  Status clear_cache(ReplicaId id, Nanos now);
  Status signal(ReplicaId id, Signal kind, double value, Nanos now);
  Status prefix_counters(ReplicaId id, const PrefixCounters& counters, Nanos now) {
    return table_.prefix_counters(id, counters, clamp(now));
  }
  Status blocks_stored(ReplicaId id, const StoredBlocks& stored, Nanos now);
  Result<std::size_t> blocks_removed(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now);
  Result<std::size_t> blocks_also_on(ReplicaId id, Tier tier, std::span<const EngineHash> ids, Nanos now);
  Status clear_shared_store(std::string_view pool);
  std::vector<ReplicaRow> replicas() const { return table_.copy().rows; }
  Result<ReplicaSpec> replica(ReplicaId id) const;
  Result<ReplicaId> find_replica(std::string_view name, std::uint32_t dp_rank) const;

  Result<ReplicaCache> cached(ReplicaId id, Nanos now) const;
  Result<RestoredCache> restore_cached(ReplicaId id, const ReplicaCache& cache, Nanos now, Nanos away);

  void loads(std::vector<PeerLoad>& out, Nanos now) const;
  Result<std::size_t> peer_loads(std::uint32_t peer, std::span<const PeerLoad> loads, Nanos now);
  Status peer_placed(ReplicaId id, const Request& request, Nanos now);

  std::int64_t requests_in_flight(std::string_view pool) const;
  Decision route(const Request& request, Nanos now);
  Decision peek(const Request& request, Nanos now) const;
  Explanation explain(const Request& request, Nanos now) const;
  bool first_token(Ticket ticket, Nanos now);
  bool transfer_done(Ticket ticket, Nanos now);
  bool finish(Ticket ticket, const UsageCounts& usage, Nanos now);
  bool fail(Ticket ticket, Outcome outcome, Nanos now);
  void advance(Nanos now);
  Result<LearnedPool> learned(std::string_view pool) const;
  Result<RestoredLearned> restore_learned(std::string_view pool, const LearnedPool& learned);
  RouterStatistics statistics() const;

 private:
  // A note in a pool's placement queue: which ticket, and for a correction how many leading blocks the engine really had.
  static constexpr std::uint64_t kCorrection = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kWithdrawal = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kFirstToken = std::uint64_t{1} << 61;
  static constexpr std::uint64_t kSlotFreed = std::uint64_t{1}
                                              << 60;               // of a replica that keeps slots: the request is over
  static constexpr std::int64_t kMostNow = std::int64_t{1} << 61;  // 73 years: with any lease added it still fits
  static constexpr std::uint32_t kDrainPerCall = 64;
  static constexpr std::uint32_t kSweepPerCall = 2;

  const PoolView* pool_of(const Topology& topology, const Request& r) const;
  Prepared begin(Nanos now) const noexcept;
  Nanos clamp(Nanos now);
  Nanos clamped(Nanos now) const noexcept;
  Ticket book(const Prepared& p, const Request& r, const Decision& d, const Scratch& scratch, Nanos now);
  static PaceNote pace_note(const Prepared& p, const Candidate& c, const Decision& d) noexcept;
  static std::int64_t held_by(const TicketSlot& slot) noexcept;
  void book_prompt(const Prepared& p, TicketSlot& slot, Nanos now) noexcept;
  void book_decode(const Prepared& p, TicketSlot& slot, const Decision& d) noexcept;
  void end_prefill(TicketSlot& slot, Nanos now) noexcept;
  void release_prompt(TicketSlot& slot) noexcept;
  void release_load(TicketSlot& slot) noexcept;
  void note_match(const TicketSlot& slot) noexcept;
  static void note_apart(PoolState& pool, const LoadBook& book) noexcept;
  void learn(const TicketSlot& slot, const UsageCounts& usage) noexcept;
  void compare_cached(TicketSlot& slot, const UsageCounts& usage, Nanos now);
  void enqueue(PoolState& pool, std::uint32_t ticket_index, std::uint64_t note, Nanos now);
  void drain(PoolState& pool, std::uint32_t limit, Nanos now);
  void place(PoolState& pool, const TicketSlot& slot, ReplicaId where, Nanos now);
  void place(PoolState& pool, ModelledCache& cache, std::span<const BlockHash> path,
             std::int64_t tokens_per_block_milli, Nanos now);
  void place_transferred(PoolState& pool, const TicketSlot& slot, std::uint64_t note, Nanos now);
  static bool reports(const PoolState& pool, const TicketSlot& slot) noexcept;
  static bool in_prefill(const TicketSlot& slot) noexcept;
  void note_first_token(TicketSlot& slot, Nanos now);
  void renew_predictions(PoolState& pool, Nanos now);
  void end_predictions(PoolState& pool, Nanos now);
  void foresee(PoolState& pool, ReplicaId id, std::span<const BlockHash> path, std::int64_t tokens_per_block_milli,
               Nanos now);
  static void follow_block_tokens(ModelledCache& cache, std::size_t blocks,
                                  std::int64_t tokens_per_block_milli) noexcept;
  void contradict(PoolState& pool, ReplicaId id, std::span<const BlockHash> path, std::size_t keep, Nanos now);
  void contradict(PoolState& pool, ReplicaId id, std::span<const EngineHash> removed, Nanos now);
  void note_gap(PoolState& pool, ReplicaId id, const Topology& topology);
  void foresee_waiting(PoolState& pool, ReplicaId id, std::span<const BlockHash> gone, Nanos now);
  void withdraw(PoolState& pool, const TicketSlot& slot);
  void move_slots(PoolState& pool, const TicketSlot& slot, std::uint64_t note);
  static void free_slot(SlotResidency& model, const TicketSlot& slot);
  void note_slot_freed(TicketSlot& slot, Outcome outcome, const UsageCounts* usage, TicketPhase was, Nanos now);
  static std::size_t blocks_kept(const TicketSlot& slot) noexcept;
  bool predict(PoolState& pool, const TicketSlot& slot, std::uint64_t note, Nanos now);
  void correct(PoolState& pool, const TicketSlot& slot, std::size_t really, Nanos now);
  ModelledCache* cache_of(PoolState& pool, const TicketSlot& slot, ReplicaId where) const noexcept;
  static void note_feedback(ModelledCache& cache, bool shortfall) noexcept;
  void fit_capacity(PoolState& pool, ModelledCache& cache) const;
  static void follow_capacity(ModelledCache& cache) noexcept;
  std::size_t room_in(ModelledCache& cache) const noexcept;
  void sweep_leases(std::uint32_t tickets, Nanos now);
  bool close(Ticket ticket, Outcome outcome, const UsageCounts* usage, Nanos now);

  PoolState& pool_state(std::string_view name);
  Status rebuild(const Policy& policy);
  void ramp_up(PoolView& pool) const;
  void end_drains(Nanos now);
  bool has_model(const ReplicaSpec& spec) const noexcept;
  void model_cache(ReplicaId id, const ReplicaSpec& spec);
  bool model_slots(PoolState& pool, ReplicaId id, const ReplicaSpec& spec, const Policy& policy);
  void forget_cache(ReplicaId id, const ReplicaSpec& spec, bool gone);
  Result<PoolState*> pool_with_model(ReplicaId id) const;
  Result<PoolState*> reported_pool(const Topology& topology, ReplicaId id);

  RouterOptions options_;
  EpochDomain domain_;
  mutable std::mutex control_;
  ReplicaTable table_;
  PeerBooks peers_;
  std::vector<std::unique_ptr<PoolState>> pools_;  // under control_; never removed
  Snapshot<Topology> topology_;
  TicketTable tickets_;
  SessionTable sessions_;
  mutable ScratchPool scratch_;
  RouterCounters counters_;
  std::vector<std::int64_t> up_since_;  // under control_; by slot, ns; of replicas that came up
  std::int64_t next_drain_end_ = 0;     // under control_; ns, 0 = none
  alignas(kCacheLine) std::atomic<std::uint64_t> sequence_{0};
  alignas(kCacheLine) std::atomic<std::int64_t> last_now_{0};
  std::atomic<bool> loads_reported_{false};  // by an engine, ever
  std::atomic<std::uint32_t> sweep_at_{0};
  std::atomic<std::int64_t> in_flight_{0};
};

inline const PoolView* RouterCore::pool_of(const Topology& topology, const Request& r) const {
  const auto named = [&] { return r.exact_pool ? topology.exact_pool(r.model) : topology.find_pool(r.model); };
  if (topology.policy.isolation != Isolation::pool) return named();
  // The model comes from the body: it must not spell a way into a tenant's pool, nor may one tenant's name begin another's.
  if (r.model.find('/') != std::string_view::npos && r.tenant.empty()) return nullptr;
  if (r.tenant.find('/') != std::string_view::npos) return nullptr;
  if (r.tenant.empty()) return named();
  for (const PoolView& pool : topology.pools) {  // "<tenant>/<model>", compared without building the string
    const std::size_t slash = r.tenant.size();
    if (pool.name.size() == slash + 1 + r.model.size() && pool.name.starts_with(r.tenant) && pool.name[slash] == '/' &&
        pool.name.ends_with(r.model)) {
      return &pool;
    }
  }
  return nullptr;
}

// Threads overtake one another by microseconds; only a real step backwards is counted.
inline Nanos RouterCore::clamp(Nanos now) {
  if (now.value < 0 || now.value > kMostNow) {
    bump(counters_.clock_clamped, 1u);
    now.value = last_now_.load(std::memory_order_relaxed);
  }
  std::int64_t last = last_now_.load(std::memory_order_relaxed);
  while (now.value > last && !last_now_.compare_exchange_weak(last, now.value, std::memory_order_relaxed)) {}
  if (now.value >= last) return now;
  if (last - now.value > milliseconds(100).value) bump(counters_.clock_clamped, 1u);
  return Nanos{last};
}

// The time that `clamp` would give, for calls that change nothing: peek and explain answer what route would.
inline Nanos RouterCore::clamped(Nanos now) const noexcept {
  const std::int64_t last = last_now_.load(std::memory_order_relaxed);
  return now.value < last || now.value > kMostNow ? Nanos{last} : now;
}

// What others told of.
inline Prepared RouterCore::begin(Nanos now) const noexcept {
  Prepared p;
  p.peers = peers_.lines(now);
  p.told = p.peers != nullptr || loads_reported_.load(std::memory_order_relaxed);
  return p;
}

inline Decision RouterCore::route(const Request& request, Nanos now) {
  now = clamp(now);
  sweep_leases(kSweepPerCall, now);
  const auto guard = domain_.pin();
  const Topology& topology = topology_.read(guard);
  const PoolView* pool = pool_of(topology, request);
  if (pool != nullptr && pool->state->predicted.over(now)) end_predictions(*pool->state, now);
  ScratchPool::Lease lease(scratch_, counters_.scratch_allocated);
  Scratch& scratch = *lease;
  const std::uint64_t sequence = sequence_.fetch_add(1, std::memory_order_relaxed);
  Prepared p = begin(now);
  Decision d;
  d.verdict = prepare(p, topology, request, now, sequence, sessions_, options_.max_path_blocks, scratch, guard, pool);
  if (d.verdict == Verdict::routed) {
    d = decide(p, request, scratch);
    if (d.routed()) d.ticket = book(p, request, d, scratch, now);
    if (d.routed() && d.ticket == kNoTicket) {
      d = Decision{};
      d.verdict = Verdict::ticket_table_full;
    } else if (d.routed()) {
      bump(counters_.reasons[static_cast<std::size_t>(d.reason)], 1u);
      if (pool->pairs) bump(counters_.splits[static_cast<std::size_t>(d.split)], 1u);
    }
  }
  bump(counters_.verdicts[static_cast<std::size_t>(d.verdict)], 1u);
  return d;
}

inline Decision RouterCore::peek(const Request& request, Nanos now) const {
  now = clamped(now);
  const auto guard = domain_.pin();
  const Topology& topology = topology_.read(guard);
  ScratchPool::Lease lease(scratch_, counters_.scratch_allocated);
  Prepared p = begin(now);
  Decision d;
  d.verdict = prepare(p, topology, request, now, sequence_.load(std::memory_order_relaxed), sessions_,
                      options_.max_path_blocks, *lease, guard, pool_of(topology, request));
  return d.verdict == Verdict::routed ? decide(p, request, *lease) : d;
}

}  // namespace warmroute::detail

#include "warmroute/route/detail/learned_state.hpp"
#include "warmroute/route/detail/router_facade.hpp"
#include "warmroute/route/detail/router_members.hpp"
#include "warmroute/route/detail/router_peers.hpp"
#include "warmroute/route/detail/router_placements.hpp"
#include "warmroute/route/detail/router_predictions.hpp"
#include "warmroute/route/detail/router_tickets.hpp"
