/// The bodies of Router: booking and releasing, feedback, upkeep. Membership is in router_members.hpp.
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
#include "warmroute/route/detail/router_counters.hpp"
#include "warmroute/route/detail/ticket_table.hpp"
#include "warmroute/route/detail/topology.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute::detail {

class RouterCore {
 public:
  explicit RouterCore(RouterOptions options);

  Status set_policy(const Policy& policy);
  Policy policy() const;
  Result<ReplicaId> add_replica(ReplicaSpec spec, Nanos now);
  Status remove_replica(ReplicaId id, Nanos now);
  Status set_health(ReplicaId id, Health health, std::string_view reason, Nanos now);
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

  Decision route(const Request& request, Nanos now);
  Decision peek(const Request& request, Nanos now) const;
  Explanation explain(const Request& request, Nanos now) const;
  bool first_token(Ticket ticket, Nanos now);
  bool finish(Ticket ticket, const UsageCounts& usage, Nanos now);
  bool fail(Ticket ticket, Outcome outcome, Nanos now);
  void advance(Nanos now);
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
  Nanos clamp(Nanos now);
  Nanos clamped(Nanos now) const noexcept;
  Ticket book(const Prepared& p, const Request& r, const Decision& d, const Scratch& scratch, Nanos now);
  static PaceNote pace_note(const Prepared& p, const Candidate& c, const Decision& d) noexcept;
  void release_load(const TicketSlot& slot, TicketPhase was) noexcept;
  void note_match(const TicketSlot& slot) noexcept;
  static void note_apart(PoolState& pool, const LoadBook& book) noexcept;
  void learn(const TicketSlot& slot, const UsageCounts& usage) noexcept;
  void compare_cached(TicketSlot& slot, const UsageCounts& usage, Nanos now);
  void enqueue(PoolState& pool, std::uint32_t ticket_index, std::uint64_t note, Nanos now);
  void drain(PoolState& pool, std::uint32_t limit, Nanos now);
  void place(PoolState& pool, const TicketSlot& slot, Nanos now);
  static bool reports(const PoolState& pool, const TicketSlot& slot) noexcept;
  static bool in_prefill(const TicketSlot& slot) noexcept;
  void note_first_token(TicketSlot& slot, Nanos now);
  void renew_predictions(PoolState& pool, Nanos now);
  void end_predictions(PoolState& pool, Nanos now);
  void contradict(PoolState& pool, ReplicaId id, std::span<const BlockHash> path, std::size_t keep, Nanos now);
  void contradict(PoolState& pool, ReplicaId id, std::span<const EngineHash> removed, Nanos now);
  void foresee_waiting(PoolState& pool, ReplicaId id, Nanos now);
  void withdraw(PoolState& pool, const TicketSlot& slot);
  void move_slots(PoolState& pool, const TicketSlot& slot, std::uint64_t note);
  static void free_slot(SlotResidency& model, const TicketSlot& slot);
  void note_slot_freed(TicketSlot& slot, Outcome outcome, const UsageCounts* usage, TicketPhase was, Nanos now);
  static std::size_t blocks_kept(const TicketSlot& slot) noexcept;
  bool predict(PoolState& pool, const TicketSlot& slot, std::uint64_t note, Nanos now);
  void correct(PoolState& pool, const TicketSlot& slot, std::size_t really, Nanos now);
  ModelledCache* cache_of(PoolState& pool, const TicketSlot& slot) const noexcept;
  static void fit_capacity(ModelledCache& cache);
  void sweep_leases(std::uint32_t tickets, Nanos now);
  bool close(Ticket ticket, Outcome outcome, const UsageCounts* usage, Nanos now);

  PoolState& pool_state(std::string_view name);
  Status rebuild(const Policy& policy);
  void model_cache(ReplicaId id, const ReplicaSpec& spec);
  bool model_slots(PoolState& pool, ReplicaId id, const ReplicaSpec& spec, const Policy& policy);
  void forget_cache(ReplicaId id, const ReplicaSpec& spec, bool gone);
  Result<PoolState*> pool_with_model(ReplicaId id) const;
  Result<PoolState*> reported_pool(const Topology& topology, ReplicaId id);

  RouterOptions options_;
  EpochDomain domain_;
  mutable std::mutex control_;
  ReplicaTable table_;
  std::vector<std::unique_ptr<PoolState>> pools_;  // under control_; never removed
  Snapshot<Topology> topology_;
  TicketTable tickets_;
  SessionTable sessions_;
  mutable ScratchPool scratch_;
  RouterCounters counters_;
  alignas(kCacheLine) std::atomic<std::uint64_t> sequence_{0};
  alignas(kCacheLine) std::atomic<std::int64_t> last_now_{0};
  std::atomic<std::uint32_t> sweep_at_{0};
  std::atomic<std::int64_t> in_flight_{0};
};

inline const PoolView* RouterCore::pool_of(const Topology& topology, const Request& r) const {
  if (topology.policy.isolation != Isolation::pool) return topology.find_pool(r.model);
  // The model comes from the body: it must not spell a way into a tenant's pool, nor may one tenant's name begin another's.
  if (r.model.find('/') != std::string_view::npos && r.tenant.empty()) return nullptr;
  if (r.tenant.find('/') != std::string_view::npos) return nullptr;
  if (r.tenant.empty()) return topology.find_pool(r.model);
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
  Prepared p;
  Decision d;
  d.verdict = prepare(p, topology, request, now, sequence, sessions_, options_.max_path_blocks, scratch, guard, pool);
  if (d.verdict == Verdict::routed) {
    d = decide(p, request, scratch);
    d.ticket = book(p, request, d, scratch, now);
    if (d.ticket == kNoTicket) {
      d = Decision{};
      d.verdict = Verdict::ticket_table_full;
    } else {
      bump(counters_.reasons[static_cast<std::size_t>(d.reason)], 1u);
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
  Prepared p;
  Decision d;
  d.verdict = prepare(p, topology, request, now, sequence_.load(std::memory_order_relaxed), sessions_,
                      options_.max_path_blocks, *lease, guard, pool_of(topology, request));
  return d.verdict == Verdict::routed ? decide(p, request, *lease) : d;
}

// Fills a ticket, books its load, remembers the session, and hands the placement on. The guard of the caller is still held, so
// the slot of the replica cannot get a new tenant meanwhile.
inline Ticket RouterCore::book(const Prepared& p, const Request& r, const Decision& d, const Scratch& scratch,
                               Nanos now) {
  const std::uint32_t index = tickets_.acquire();
  if (index == TicketTable::kFull) return kNoTicket;
  TicketSlot& slot = tickets_.at(index);
  PoolState& pool = *p.pool->state;
  slot.pool = &pool;
  slot.replica = d.replica;
  slot.input_tokens = p.input_tokens;
  slot.cached_tokens = d.total_cached().value;
  slot.uncached_tokens = p.input_tokens - slot.cached_tokens;
  slot.pending_ns = d.expected_prefill.value;
  slot.expected_wait_ns = d.expected_wait.value;
  const Candidate& chosen = p.pool->candidates[p.pool->by_slot[d.replica.slot]];
  slot.keeps_slots = chosen.spec->cache_kind == CacheKind::slots;
  const std::int64_t slowness = p.apart ? chosen.book->slowness.load(std::memory_order_relaxed) : LoadBook::kAsItsKind;
  slot.saved_ns =
      std::max<std::int64_t>(0, slowed(scratch.whole_prefill_ns[chosen.hardware], slowness) - d.expected_prefill.value);
  slot.pace = pace_note(p, chosen, d);
  slot.prompt_bytes = r.prompt_bytes;
  slot.routed_at = now.value;
  slot.lease_ns = p.topology->policy.lease.value;
  slot.hash_rule = hash_rule_of(p.topology->policy);
  slot.tokens_per_block_milli = p.tokens_per_block_milli;
  slot.path.assign(p.path.begin(), p.path.end());

  LoadBook& book = table_.book(d.replica.slot);
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::int64_t there = book.requests.fetch_add(1, relaxed);
  const std::int64_t decoding = book.decoding.load(relaxed);
  slot.pace.alone = there == decoding;
  slot.pace.beside_decodes = decoding > 0;
  if (there == decoding) book.prefill_since.store(now.value, relaxed);  // no prompt before this one
  book.pending_tokens.fetch_add(slot.uncached_tokens, relaxed);
  book.pending_ns.fetch_add(slot.pending_ns, relaxed);
  book.context_tokens.fetch_add(slot.input_tokens, relaxed);
  in_flight_.fetch_add(1, relaxed);
  pool.input_tokens.add(slot.input_tokens * 1'000);
  pool.prefill_ns.add(slot.pending_ns);
  pool.turn.fetch_add(1, relaxed);
  slot.shared_tokens = 0;
  InflightPrefixes::Cursor cursor;
  while (slot.hot_count < kMaxCheckpoints && cursor.next(p.path)) {
    bool others = false;
    slot.hot_entries[slot.hot_count++] = pool.hot.enter(cursor.hash, others);
    if (others) slot.shared_tokens = p.tokens_of(static_cast<std::uint32_t>(cursor.depth));
  }
  sessions_.remember(p.session, d.replica, now);
  if (p.prior_milli != 0) pool.forks.note(p.path, p.known_blocks, fork_from(p));

  slot.lease_until.store(now.value + slot.lease_ns, relaxed);
  const bool placed = !slot.path.empty() || slot.keeps_slots;  // the shortest prompt takes a slot, too
  if (placed) slot.holders.store(2, relaxed);                  // the queue is the second
  const Ticket ticket = tickets_.publish(index);
  if (placed) enqueue(pool, index, index, now);
  return ticket;
}

inline PaceNote RouterCore::pace_note(const Prepared& p, const Candidate& c, const Decision& d) noexcept {
  PaceNote note;
  if (!p.topology->policy.learn_rates) return note;
  note.learner = p.pool->learners[c.hardware];
  note.generation = note.learner->generation();
  note.kilopairs = kilopairs_of(p.input_tokens, d.total_cached().value);
  const CostWeights& w = p.topology->weights;
  const auto tokens = [&](Tier tier) { return d.cached_tokens[static_cast<std::size_t>(tier)].value; };
  note.transfer_ns = tokens(Tier::host) * w.host_transfer_ns + tokens(Tier::disk) * w.disk_transfer_ns +
                     tokens(Tier::shared) * w.shared_transfer_ns;
  return note;
}

inline void RouterCore::enqueue(PoolState& pool, std::uint32_t ticket_index, std::uint64_t note, Nanos now) {
  if (!pool.queue.push(note)) {
    bump(counters_.placements_dropped, 1u);
    tickets_.release(ticket_index);
  }
  drain(pool, kDrainPerCall, now);
}

inline void RouterCore::drain(PoolState& pool, std::uint32_t limit, Nanos now) {
  const std::unique_lock lock(pool.placing, std::try_to_lock);
  if (!lock.owns_lock()) return;  // whoever holds it, or the next caller, takes the rest
  std::uint64_t note = 0;
  for (std::uint32_t i = 0; i < limit && pool.queue.pop(note); ++i) {
    const auto index = static_cast<std::uint32_t>(note);
    const TicketSlot& slot = tickets_.at(index);
    if (reports(pool, slot)) {
      if (predict(pool, slot, note, now)) continue;  // the ticket is held until its first token
    } else if (slot.keeps_slots) {
      move_slots(pool, slot, note);
    } else if ((note & kWithdrawal) != 0) {
      withdraw(pool, slot);
    } else if ((note & kCorrection) != 0) {
      correct(pool, slot, static_cast<std::size_t>((note & ~kCorrection) >> 32), now);
    } else if ((note & kFirstToken) == 0) {
      place(pool, slot, now);
    }
    tickets_.release(index);
  }
  renew_predictions(pool, now);
}

inline bool RouterCore::reports(const PoolState& pool, const TicketSlot& slot) noexcept {
  return pool.caches[slot.replica.slot].reported_generation.load(std::memory_order_acquire) == slot.replica.generation;
}
inline bool RouterCore::in_prefill(const TicketSlot& slot) noexcept {
  const auto phase = static_cast<TicketPhase>(slot.state.load(std::memory_order_acquire) & 0xFF);
  return phase == TicketPhase::prefill;
}

// The same notes for a replica whose engine reports: what they say of its cache is foreseen, not believed (prediction.hpp).
// returns: whether the ticket is kept, to be foreseen again while its first token is still to come.
inline bool RouterCore::predict(PoolState& pool, const TicketSlot& slot, std::uint64_t note, Nanos now) {
  if (slot.hash_rule != pool.caches[slot.replica.slot].hash_rule) return false;
  if ((note & kWithdrawal) != 0) {
    contradict(pool, slot.replica, slot.path, blocks_kept(slot), now);
  } else if ((note & kCorrection) != 0) {
    const auto really = static_cast<std::size_t>((note & ~kCorrection) >> 32);
    const auto believed = static_cast<std::size_t>(slot.cached_tokens * 1'000 / slot.tokens_per_block_milli);
    if (really < believed) contradict(pool, slot.replica, slot.path, really, now);
  } else {
    pool.predicted.foresee(slot.replica, slot.path, now);
    if ((note & kFirstToken) == 0 && in_prefill(slot)) {
      pool.predicted.wait(slot.index, now);
      return true;
    }
  }
  return false;
}

// What is not there is not foreseen any more, but for prompts whose first token is still to come: they bring it back.
inline void RouterCore::contradict(PoolState& pool, ReplicaId id, std::span<const BlockHash> path, std::size_t keep,
                                   Nanos now) {
  if (pool.predicted.contradict(id, path, keep)) foresee_waiting(pool, id, now);
}
inline void RouterCore::foresee_waiting(PoolState& pool, ReplicaId id, Nanos now) {
  pool.predicted.for_each_waiting([&](std::uint32_t ticket) {
    const TicketSlot& slot = tickets_.at(ticket);
    if (slot.replica == id && in_prefill(slot)) pool.predicted.foresee(id, slot.path, now);
  });
}

// The caller owns the ticket. Its prompt is computed now: foreseen from here on for as long as events may take.
inline void RouterCore::note_first_token(TicketSlot& slot, Nanos now) {
  if (slot.path.empty() || !reports(*slot.pool, slot)) return;
  slot.holders.fetch_add(1, std::memory_order_relaxed);
  enqueue(*slot.pool, slot.index, kFirstToken | slot.index, now);
}

// Nothing was foreseen for as long as predictions live: a router that was idle forgets them before it decides.
inline void RouterCore::end_predictions(PoolState& pool, Nanos now) {
  const std::unique_lock lock(pool.placing, std::try_to_lock);
  if (!lock.owns_lock()) return;
  renew_predictions(pool, now);
  pool.predicted.advance(now);
}

// Under `placing`. Prompts that wait for their first token longer than a prediction lives, a few per call.
inline void RouterCore::renew_predictions(PoolState& pool, Nanos now) {
  for (std::uint32_t i = 0; i < kDrainPerCall; ++i) {
    const auto* due = pool.predicted.due(now);
    if (due == nullptr) break;
    const std::uint32_t index = due->ticket;
    const TicketSlot& slot = tickets_.at(index);
    pool.predicted.pop();
    if (in_prefill(slot) && reports(pool, slot)) {
      pool.predicted.foresee(slot.replica, slot.path, now);
      pool.predicted.wait(index, now);
    } else {
      tickets_.release(index);
    }
  }
  pool.predicted.advance_one(now);
}

// nullptr: that replica is gone, its engine reports its cache by itself, or its blocks are hashed by another rule since: what the
// ticket holds can never match again.
inline ModelledCache* RouterCore::cache_of(PoolState& pool, const TicketSlot& slot) const noexcept {
  ModelledCache& cache = pool.caches[slot.replica.slot];
  const bool same = cache.id == slot.replica && cache.residency != nullptr && cache.hash_rule == slot.hash_rule;
  return same && !cache.reported() ? &cache : nullptr;
}

inline void RouterCore::place(PoolState& pool, const TicketSlot& slot, Nanos now) {
  ModelledCache* cache = cache_of(pool, slot);
  if (cache == nullptr) return;
  if (cache->tokens_per_block_milli == 0) cache->tokens_per_block_milli = slot.tokens_per_block_milli;
  fit_capacity(*cache);
  Residency& model = *cache->residency;
  const std::uint64_t before = model.blocks() + model.evicted();
  model.insert(slot.path, now);
  // Text and token blocks hold different numbers of tokens: the mean of what came in is followed, not what is only touched.
  const auto added = static_cast<std::int64_t>(model.blocks() + model.evicted() - before);
  const auto quarter = static_cast<std::int64_t>(model.capacity() / 4 + 1);
  cache->tokens_per_block_milli +=
      (slot.tokens_per_block_milli - cache->tokens_per_block_milli) * added / (added + quarter);
}

// The engine had only `really` leading blocks of what was believed: what lies behind is gone there, siblings included. Since then it has
// computed the prompt, so its own path is back. A shortfall also says that the cache is smaller than declared: trust shrinks by
// 1/32 down to a quarter, and comes back by 1/512 per request that was predicted well.
inline void RouterCore::correct(PoolState& pool, const TicketSlot& slot, std::size_t really, Nanos now) {
  ModelledCache* cache = cache_of(pool, slot);
  if (cache == nullptr) return;
  const auto believed = static_cast<std::size_t>(slot.cached_tokens * 1'000 / slot.tokens_per_block_milli);
  if (really < believed) {
    cache->trust_milli = std::max<std::int64_t>(250, cache->trust_milli - cache->trust_milli / 32);
    cache->residency->truncate(slot.path, really);
  } else {
    cache->trust_milli = std::min<std::int64_t>(1'000, cache->trust_milli + 2);
  }
  fit_capacity(*cache);
  if (really < believed) cache->residency->insert(slot.path, now);
}

// The request failed before its first token: what it would have added was never computed. What others in flight share stays.
inline void RouterCore::withdraw(PoolState& pool, const TicketSlot& slot) {
  ModelledCache* cache = cache_of(pool, slot);
  if (cache == nullptr) return;
  const std::size_t blocks = blocks_kept(slot);
  if (blocks < slot.path.size()) cache->residency->truncate(slot.path, blocks);
}

inline std::size_t RouterCore::blocks_kept(const TicketSlot& slot) noexcept {
  const std::int64_t kept = std::max(slot.cached_tokens, slot.shared_tokens);
  return static_cast<std::size_t>((kept * 1'000 + slot.tokens_per_block_milli - 1) / slot.tokens_per_block_milli);
}

// Capacity in blocks of the kinds that this replica sees. Only steps of 3 % change anything.
inline void RouterCore::fit_capacity(ModelledCache& cache) {
  if (cache.tokens_per_block_milli == 0) return;
  const auto have = static_cast<std::int64_t>(cache.residency->capacity());
  const std::int64_t tokens = cache.capacity_tokens * cache.trust_milli / 1'000;
  const std::int64_t want = std::max<std::int64_t>(1, tokens * 1'000 / cache.tokens_per_block_milli);
  if (want > have + have / 32 || want + want / 32 < have) cache.residency->set_capacity(static_cast<std::size_t>(want));
}

inline bool RouterCore::first_token(Ticket ticket, Nanos now) {
  now = clamp(now);
  TicketPhase was{};
  TicketSlot* slot = tickets_.claim(ticket, true, was);
  if (slot == nullptr) {
    bump(counters_.late_calls, 1u);
    return false;
  }
  LoadBook& book = table_.book(slot->replica.slot);
  book.pending_tokens.fetch_sub(slot->uncached_tokens, std::memory_order_relaxed);
  book.pending_ns.fetch_sub(slot->pending_ns, std::memory_order_relaxed);
  book.decoding.fetch_add(1, std::memory_order_relaxed);
  book.prefill_since.store(now.value, std::memory_order_relaxed);  // the next one's turn
  const ReplicaPace::Prompt prompt{slot->replica, slot->routed_at, slot->uncached_tokens};
  slot->pool->paces[slot->replica.slot].first_token(prompt, slot->pace, book, now.value);
  note_apart(*slot->pool, book);
  note_match(*slot);
  counters_.observed_ttft.observe(std::max<std::int64_t>(0, now.value - slot->routed_at));
  counters_.predicted_ttft.observe(slot->expected_wait_ns + slot->pending_ns);
  bump(counters_.predicted_wait_ns, slot->expected_wait_ns);
  bump(counters_.predicted_prefill_ns, slot->pending_ns);
  bump(counters_.saved_prefill_ns, slot->saved_ns);
  slot->lease_until.store(now.value + slot->lease_ns, std::memory_order_relaxed);
  note_first_token(*slot, now);
  TicketTable::set_phase(*slot, TicketPhase::decode);
  return true;
}

// Written once: what every decision reads should not change hands for nothing.
inline void RouterCore::note_apart(PoolState& pool, const LoadBook& book) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (book.slowness.load(relaxed) != LoadBook::kAsItsKind && !pool.apart.load(relaxed)) pool.apart.store(true, relaxed);
}

// Once per request, when its prefill is over, as engines count theirs. Before the load is released: the slot keeps its tenant until then.
inline void RouterCore::note_match(const TicketSlot& slot) noexcept {
  MatchBook& book = table_.matches(slot.replica.slot);
  bump(book.input_tokens, slot.input_tokens);
  bump(book.matched_tokens, slot.cached_tokens);
}

inline void RouterCore::release_load(const TicketSlot& slot, TicketPhase was) noexcept {
  LoadBook& book = table_.book(slot.replica.slot);
  constexpr auto relaxed = std::memory_order_relaxed;
  if (was == TicketPhase::prefill) {
    book.pending_tokens.fetch_sub(slot.uncached_tokens, relaxed);
    book.pending_ns.fetch_sub(slot.pending_ns, relaxed);
    book.prefill_since.store(last_now_.load(relaxed), relaxed);  // whose turn it was is not known
  } else {
    book.decoding.fetch_sub(1, relaxed);
  }
  book.context_tokens.fetch_sub(slot.input_tokens, relaxed);
  for (std::uint32_t i = 0; i < slot.hot_count; ++i) slot.pool->hot.leave(slot.hot_entries[i]);
  in_flight_.fetch_sub(1, relaxed);
  book.requests.fetch_sub(1, std::memory_order_release);  // last: a book with no requests may get a new tenant
}

// Failures after which a prompt without a first token is in no cache. A client that went away says nothing either way.
inline bool never_computed(Outcome outcome) noexcept {
  return outcome == Outcome::connect_error || outcome == Outcome::backpressure || outcome == Outcome::client_error ||
         outcome == Outcome::replica_error;
}

// Counts come from other machines' answers: one absurd number must not spoil the sums. No request has 10^9 tokens.
inline UsageCounts within_reason(UsageCounts usage) noexcept {
  for (std::int64_t* count : {&usage.input_tokens, &usage.cached_tokens, &usage.output_tokens}) {
    if (*count < 0 || *count > 1'000'000'000) *count = kUnknown;
  }
  return usage;
}

inline void RouterCore::learn(const TicketSlot& slot, const UsageCounts& usage) noexcept {
  if (usage.output_tokens >= 0) {
    slot.pool->output_tokens.add(std::min<std::int64_t>(usage.output_tokens, 10'000'000) * 1'000);
    bump(counters_.output_tokens, usage.output_tokens);
  }
  if (usage.input_tokens < 0) return;
  bump(counters_.input_tokens, usage.input_tokens);
  bump(counters_.predicted_cached_tokens, slot.cached_tokens);
  if (slot.prompt_bytes > 0 && usage.input_tokens > 0) {
    const std::int64_t milli = std::min<std::int64_t>(slot.prompt_bytes, 1'000'000'000) * 1'000 / usage.input_tokens;
    slot.pool->bytes_per_token_milli.add(std::clamp<std::int64_t>(milli, 250, 64'000) * 1'000);
  }
}

// `cached_tokens` tells the truth about one request on one replica. Unknown repairs nothing.
inline void RouterCore::compare_cached(TicketSlot& slot, const UsageCounts& usage, Nanos now) {
  if (usage.cached_tokens < 0) return;
  bump(counters_.reported_cached_tokens, usage.cached_tokens);
  bump(counters_.cached_reports, 1u);
  const std::int64_t block = std::max<std::int64_t>(1, slot.tokens_per_block_milli / 1'000);
  const std::int64_t off = slot.cached_tokens - usage.cached_tokens;
  if (off <= block && off >= -block) bump(counters_.cached_exact, 1u);
  if (slot.path.empty() || slot.keeps_slots) return;
  // What another request was still computing at that moment may have come too late to be a hit: that is no eviction.
  if (off > block && usage.cached_tokens < slot.shared_tokens) return;
  // One block of slack: engines round differently, and text blocks are estimates.
  const auto blocks = static_cast<std::uint64_t>(std::min<std::int64_t>(usage.cached_tokens, slot.input_tokens)) *
                      1'000 / static_cast<std::uint64_t>(slot.tokens_per_block_milli);
  const std::uint64_t really = std::min<std::uint64_t>(blocks + (off > block ? 0 : 1), slot.path.size());
  slot.holders.fetch_add(1, std::memory_order_relaxed);
  enqueue(*slot.pool, slot.index, kCorrection | really << 32 | slot.index, now);
}

inline bool RouterCore::close(Ticket ticket, Outcome outcome, const UsageCounts* usage, Nanos now) {
  TicketPhase was{};
  TicketSlot* slot = tickets_.claim(ticket, false, was);
  if (slot == nullptr) {
    bump(counters_.late_calls, 1u);
    return false;
  }
  if (outcome == Outcome::lease_expired && slot->lease_until.load(std::memory_order_relaxed) > now.value) {
    TicketTable::set_phase(*slot, was);  // renewed between the look and the claim
    return false;
  }
  if (usage != nullptr && was == TicketPhase::prefill) note_match(*slot);
  ReplicaPace& pace = slot->pool->paces[slot->replica.slot];
  if (was == TicketPhase::prefill) {
    pace.broke_off(slot->pace);
  } else if (usage != nullptr) {
    LoadBook& book = table_.book(slot->replica.slot);
    pace.finished(slot->replica, slot->pace, book, usage->output_tokens, now.value);
    note_apart(*slot->pool, book);
  }
  release_load(*slot, was);
  bump(counters_.outcomes[static_cast<std::size_t>(outcome) % kOutcomeCount], 1u);
  if (usage != nullptr) {
    const UsageCounts counts = within_reason(*usage);
    learn(*slot, counts);
    if (was == TicketPhase::prefill) note_first_token(*slot, now);  // a caller who tells of no first tokens
    compare_cached(*slot, counts, now);
  }
  if (slot->keeps_slots) {
    note_slot_freed(*slot, outcome, usage, was, now);
  } else if (usage == nullptr && was == TicketPhase::prefill && never_computed(outcome) && !slot->path.empty()) {
    slot->holders.fetch_add(1, std::memory_order_relaxed);
    enqueue(*slot->pool, slot->index, kWithdrawal | slot->index, now);
  }
  TicketTable::set_phase(*slot, TicketPhase::free);
  tickets_.release(slot->index);
  return true;
}

inline bool RouterCore::finish(Ticket ticket, const UsageCounts& usage, Nanos now) {
  now = clamp(now);
  const bool done = close(ticket, Outcome::finished, &usage, now);
  sweep_leases(kSweepPerCall, now);
  return done;
}

inline bool RouterCore::fail(Ticket ticket, Outcome outcome, Nanos now) {
  now = clamp(now);
  const bool done = close(ticket, outcome, nullptr, now);
  sweep_leases(kSweepPerCall, now);
  return done;
}

// A few tickets per call, in turn: a lease that ended is found after at most known/2 calls, or at the next `advance`.
inline void RouterCore::sweep_leases(std::uint32_t tickets, Nanos now) {
  const std::uint32_t known = tickets_.known();
  if (known == 0) return;
  const std::uint32_t count = std::min(tickets, known);
  const std::uint32_t start = sweep_at_.fetch_add(count, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Ticket over = tickets_.expired((start + i) % known, now);
    if (over != kNoTicket) close(over, Outcome::lease_expired, nullptr, now);
  }
}

}  // namespace warmroute::detail

#include "warmroute/route/detail/router_members.hpp"
