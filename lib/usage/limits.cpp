// Scopes are locked in the order of their ids and charged together; reservations lie in shards, each with its own lock and
// its leases in the order of their ends. A shard's lock is taken before a scope's, and never while one is held.
#include "warmroute/usage/limits.hpp"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "usage/limits_tickets.hpp"
#include "warmroute/detail/epoch.hpp"

namespace warmroute {
namespace {

using usage::kNoSlot;
using usage::LimitAnswer;
using usage::LimitCharge;
using usage::LimitRequest;
using usage::LimitScope;
using usage::LimitState;
using usage::Reservation;
using usage::SpinLock;
using usage::TicketShard;
constexpr auto kRelaxed = std::memory_order_relaxed;

Nanos hold_steady(LimitScope& scope, Nanos now) {
  scope.latest_steady = std::max(scope.latest_steady, now.value);
  return Nanos{scope.latest_steady};
}

bool same_window(const CalendarWindow& a, const CalendarWindow& b) {
  return a.unit == b.unit && a.count == b.count && a.anchor_local_seconds == b.anchor_local_seconds &&
         a.time_zone == b.time_zone;
}

// Puts limits in place of those of a scope; what is the same by name, kind, unit and window keeps its counters.
void install_limits(LimitScope& scope, std::vector<std::unique_ptr<LimitState>> fresh) {
  const std::lock_guard lock(scope.lock);
  std::uint32_t index = 0;
  for (auto& next : fresh) {
    for (auto& held : scope.limits) {
      if (!held || held->spec.name != next->spec.name || held->spec.kind != next->spec.kind ||
          held->spec.unit != next->spec.unit || !same_window(held->spec.window, next->spec.window))
        continue;
      if (held->spec.kind == LimitKind::rate) usage::change_rate(*held, *next, Nanos{scope.latest_steady});
      held->spec = next->spec;
      next = std::move(held);
      break;
    }
    next->scope = &scope;
    next->index = index++;
  }
  for (auto& held : scope.limits) {
    if (held) scope.retired.push_back(std::move(held));
  }
  scope.limits = std::move(fresh);
}

Result<std::vector<std::unique_ptr<LimitState>>> make_limits(std::span<const LimitSpec> specs) {
  if (specs.size() > kMaxLimitsPerScope)
    return Error{Code::invalid_argument, "more than 8 limits of a scope", kNoOffset};
  std::vector<std::unique_ptr<LimitState>> all;
  for (const LimitSpec& spec : specs) {
    for (const auto& other : all) {
      if (other->spec.name == spec.name)
        return Error{Code::invalid_argument, "limit \"" + spec.name + "\" is there twice", kNoOffset};
    }
    auto limit = usage::make_limit(spec);
    if (!limit) return limit.error();
    all.push_back(std::move(*limit));
  }
  return all;
}

// How much a denial weighs against another: a budget first, then what never passes, then the longest wait.
int denial_rank(LimitOutcome outcome) {
  switch (outcome) {
    case LimitOutcome::budget_exceeded: return 3;
    case LimitOutcome::larger_than_limit: return 2;
    case LimitOutcome::rate_exceeded:
    case LimitOutcome::too_many_at_once: return 1;
    default: return 0;
  }
}

LimitOutcome denial_of(const LimitState& limit, const LimitAnswer& a) {
  if (limit.spec.kind == LimitKind::budget)
    return a.never && limit.spec.amount > 0 ? LimitOutcome::larger_than_limit : LimitOutcome::budget_exceeded;
  if (limit.spec.kind == LimitKind::concurrency) return LimitOutcome::too_many_at_once;
  return a.never ? LimitOutcome::larger_than_limit : LimitOutcome::rate_exceeded;
}

void note_denial(LimitDecision& d, const LimitState& limit, const LimitAnswer& a, Nanos concurrency_retry) {
  if (limit.spec.shadow) {
    if (!d.shadow_denied) d.shadow_scope = limit.scope->id;
    if (!d.shadow_denied) d.shadow_limit = limit.index;
    d.shadow_denied = true;
    return;
  }
  const LimitOutcome outcome = denial_of(limit, a);
  const Nanos wait = outcome == LimitOutcome::too_many_at_once ? concurrency_retry : a.retry_after;
  const int rank = denial_rank(outcome);
  const int before = denial_rank(d.outcome);
  if (rank < before || (rank == before && rank != 0 && wait <= d.retry_after)) return;
  d.outcome = outcome;
  d.scope = limit.scope->id;
  d.limit = limit.index;
  d.retry_after = rank == 1 ? wait : Nanos{-1};
  d.reset = limit.spec.kind == LimitKind::budget ? a.reset : Nanos{-1};
}

void note_left(LimitDecision& d, const LimitState& limit, UsageTime now) {
  if (limit.spec.shadow || limit.spec.kind == LimitKind::concurrency) return;
  LimitLeft& tightest = d.left[static_cast<std::size_t>(limit.spec.unit)];
  const LimitLeft l = usage::left(limit, Nanos{limit.scope->latest_steady}, now.wall);
  if (tightest.amount < 0 || l.remaining < tightest.remaining) tightest = l;
}

LimitUse merged(const LimitUse& said, const LimitUse& estimate) {
  const auto one = [](const UsageCount& a, const UsageCount& b) { return a ? a : b; };
  LimitUse use{one(said.input_tokens, estimate.input_tokens), said.cached_input_tokens,
               one(said.output_tokens, estimate.output_tokens), one(said.cost_picos, estimate.cost_picos)};
  if (!said.input_tokens) use.cached_input_tokens = one(said.cached_input_tokens, estimate.cached_input_tokens);
  return use;
}

Error stale_ticket() { return Error{Code::stale, "the reservation was settled, released or has expired", kNoOffset}; }

}  // namespace

struct Limits::Impl {
  explicit Impl(const LimitOptions& o)
      : options(o), chunks(std::make_unique<std::atomic<LimitScope*>[]>(usage::kScopeChunks)) {
    options.max_scopes = std::min(options.max_scopes, usage::kScopeChunk * usage::kScopeChunks);
  }
  ~Impl() {
    for (std::size_t i = 0; i < usage::kScopeChunks; ++i) delete[] chunks[i].load(kRelaxed);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  LimitScope* find(ScopeId id) const {
    const auto n = static_cast<std::size_t>(id);
    if (n >= scope_count.load(std::memory_order_acquire)) return nullptr;
    return chunks[n / usage::kScopeChunk].load(std::memory_order_acquire) + n % usage::kScopeChunk;
  }
  LimitDecision reserve(std::span<const ScopeId> scopes, const LimitUse& estimate, UsageTime now);
  bool gather(LimitRequest& q, std::span<const ScopeId> ids) const;
  bool ask_all(LimitRequest& q, LimitDecision& d, const LimitUse& estimate, UsageTime now);
  LimitTicket open(std::span<const LimitCharge> charges, const LimitUse& estimate, UsageTime now);
  // Finds a ticket's reservation. threads: under the shard's lock.
  static Reservation* held(TicketShard& shard, LimitTicket ticket);
  TicketShard& shard_of(LimitTicket t) { return shards[(static_cast<std::uint64_t>(t) >> 58) % usage::kTicketShards]; }
  static std::uint32_t slot_of(LimitTicket t) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(t) >> 32) & 0x03ff'ffff;
  }
  std::size_t expire(TicketShard& shard, UsageTime now, std::size_t most);
  Status end(LimitTicket ticket, const LimitUse* actual, UsageTime now);

  LimitOptions options;
  mutable std::shared_mutex registry;  // one that ThreadSanitizer knows: distributions build Abseil without it
  absl::flat_hash_map<std::string, std::uint32_t> ids;
  absl::flat_hash_map<std::string, std::vector<LimitSpec>> defaults;
  std::unique_ptr<std::atomic<LimitScope*>[]> chunks;
  std::atomic<std::size_t> scope_count{0};
  std::array<TicketShard, usage::kTicketShards> shards;
};

// Sorted, so that all lock in one order; each once.
bool Limits::Impl::gather(LimitRequest& q, std::span<const ScopeId> wanted) const {
  if (wanted.size() > kMaxScopesPerRequest) return false;
  std::array<ScopeId, kMaxScopesPerRequest> sorted{};
  std::copy(wanted.begin(), wanted.end(), sorted.begin());
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(wanted.size()));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i != 0 && sorted[i] == sorted[i - 1]) continue;
    LimitScope* const scope = find(sorted[i]);
    if (scope == nullptr) return false;
    q.scopes[q.scope_count++] = scope;
  }
  return true;
}

// returns: whether all fit. threads: under the locks of all scopes.
bool Limits::Impl::ask_all(LimitRequest& q, LimitDecision& d, const LimitUse& estimate, UsageTime now) {
  for (std::size_t i = 0; i < q.scope_count; ++i) {
    LimitScope& scope = *q.scopes[i];
    const Nanos steady = hold_steady(scope, now.steady);
    for (const auto& limit : scope.limits) {
      if (q.limit_count == kMaxLimitsPerRequest) {
        d.outcome = LimitOutcome::invalid;
        return false;
      }
      const std::int64_t amount = usage::counted(limit->spec, estimate);
      q.amounts[q.limit_count] = amount;
      q.limits[q.limit_count++] = limit.get();
      const LimitAnswer a = usage::ask(*limit, amount, steady, now.wall);
      if (!a.fits) note_denial(d, *limit, a, options.concurrency_retry);
    }
  }
  return d.allowed();
}

LimitTicket Limits::Impl::open(std::span<const LimitCharge> charges, const LimitUse& estimate, UsageTime now) {
  const std::size_t index = detail::thread_hint() % usage::kTicketShards;
  TicketShard& shard = shards[index];
  const std::lock_guard lock(shard.lock);
  expire(shard, now, 2);
  std::uint32_t slot = shard.free;
  if (slot == kNoSlot) {
    if (shard.slots.size() >= std::max<std::size_t>(options.max_reservations / usage::kTicketShards, 1) ||
        shard.slots.size() > 0x03ff'fffe)
      return kNoLimitTicket;
    slot = static_cast<std::uint32_t>(shard.slots.size());
    shard.slots.emplace_back();
  } else {
    shard.free = shard.slots[slot].after;
  }
  Reservation& r = shard.slots[slot];
  r.open = true;
  r.count = static_cast<std::uint8_t>(charges.size());
  r.lease_end = shard.latest + options.lease.value;
  r.estimate = estimate;
  std::copy(charges.begin(), charges.end(), r.charges.begin());
  shard.append(slot);
  ++shard.open;
  shard.allowed.store(shard.allowed.load(kRelaxed) + 1, kRelaxed);  // under the lock
  return LimitTicket{static_cast<std::uint64_t>(index) << 58 | static_cast<std::uint64_t>(slot) << 32 | r.generation};
}

Reservation* Limits::Impl::held(TicketShard& shard, LimitTicket ticket) {
  const std::uint32_t slot = slot_of(ticket);
  if (ticket != kNoLimitTicket && slot < shard.slots.size()) {
    Reservation& r = shard.slots[slot];
    if (r.open && r.generation == static_cast<std::uint32_t>(static_cast<std::uint64_t>(ticket))) return &r;
  }
  shard.stale.fetch_add(1, kRelaxed);
  return nullptr;
}

// threads: under the shard's lock.
std::size_t Limits::Impl::expire(TicketShard& shard, UsageTime now, std::size_t most) {
  shard.latest = std::max(shard.latest, now.steady.value);
  std::size_t ended = 0;
  while (ended < most && shard.oldest != kNoSlot && shard.slots[shard.oldest].lease_end <= shard.latest) {
    const std::uint32_t slot = shard.oldest;
    Reservation& r = shard.slots[slot];
    for (std::size_t i = 0; i < r.count; ++i) {
      LimitCharge& c = r.charges[i];
      const std::lock_guard lock(c.limit->scope->lock);
      if (options.orphans == OrphanCharge::refund) usage::recharge(c, 0, hold_steady(*c.limit->scope, now.steady));
      usage::leave(c);
    }
    shard.close(slot);
    ++ended;
  }
  if (ended != 0) shard.expired.fetch_add(ended, kRelaxed);
  return ended;
}

// `actual`: nullptr gives all back.
Status Limits::Impl::end(LimitTicket ticket, const LimitUse* actual, UsageTime now) {
  TicketShard& shard = shard_of(ticket);
  const std::lock_guard lock(shard.lock);
  Reservation* const r = held(shard, ticket);
  if (r == nullptr) return stale_ticket();
  const LimitUse use = actual == nullptr ? LimitUse{} : merged(*actual, r->estimate);
  for (std::size_t i = 0; i < r->count;) {
    LimitScope& scope = *r->charges[i].limit->scope;
    const std::lock_guard scope_lock(scope.lock);
    const Nanos steady = hold_steady(scope, now.steady);
    for (; i < r->count && r->charges[i].limit->scope == &scope; ++i) {
      LimitCharge& c = r->charges[i];
      usage::recharge(c, actual == nullptr ? 0 : usage::counted(c.limit->spec, use), steady);
      usage::leave(c);
    }
  }
  shard.close(slot_of(ticket));
  expire(shard, now, 2);
  return {};
}

Limits::Limits(const LimitOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Limits::~Limits() = default;

Result<ScopeId> Limits::scope(std::string_view dimension, std::string_view value) {
  if (dimension.empty()) return Error{Code::invalid_argument, "scope: no dimension", kNoOffset};
  std::string key(dimension);
  key.append(1, '\0').append(value);
  {
    const std::shared_lock lock(impl_->registry);
    if (const auto it = impl_->ids.find(key); it != impl_->ids.end()) return ScopeId{it->second};
  }
  const std::unique_lock lock(impl_->registry);
  if (const auto it = impl_->ids.find(key); it != impl_->ids.end()) return ScopeId{it->second};
  const std::size_t n = impl_->scope_count.load(kRelaxed);
  if (n >= impl_->options.max_scopes)
    return Error{Code::capacity, "scope: LimitOptions::max_scopes is reached", kNoOffset};
  auto& chunk = impl_->chunks[n / usage::kScopeChunk];
  if (chunk.load(kRelaxed) == nullptr) chunk.store(new LimitScope[usage::kScopeChunk], std::memory_order_release);
  LimitScope& made = chunk.load(kRelaxed)[n % usage::kScopeChunk];
  made.id = ScopeId{static_cast<std::uint32_t>(n)};
  made.dimension = dimension;
  made.value = value;
  if (const auto it = impl_->defaults.find(made.dimension); it != impl_->defaults.end()) {
    auto fresh = make_limits(it->second);
    if (fresh) install_limits(made, std::move(*fresh));
  }
  impl_->ids.emplace(std::move(key), static_cast<std::uint32_t>(n));
  impl_->scope_count.store(n + 1, std::memory_order_release);
  return made.id;
}

Status Limits::set_default_limits(std::string_view dimension, std::span<const LimitSpec> limits) {
  if (dimension.empty()) return Error{Code::invalid_argument, "no dimension", kNoOffset};
  if (auto valid = make_limits(limits); !valid) return valid.error();
  const std::unique_lock lock(impl_->registry);
  impl_->defaults[std::string(dimension)].assign(limits.begin(), limits.end());
  for (std::size_t n = 0; n < impl_->scope_count.load(kRelaxed); ++n) {
    LimitScope& scope = *impl_->find(ScopeId{static_cast<std::uint32_t>(n)});
    if (scope.dimension != dimension || scope.own_limits) continue;
    if (auto fresh = make_limits(limits); fresh) install_limits(scope, std::move(*fresh));
  }
  return {};
}

Status Limits::set_limits(ScopeId id, std::span<const LimitSpec> limits) {
  auto fresh = make_limits(limits);
  if (!fresh) return fresh.error();
  const std::unique_lock lock(impl_->registry);
  LimitScope* const scope = impl_->find(id);
  if (scope == nullptr) return Error{Code::not_found, "set_limits: no such scope", kNoOffset};
  scope->own_limits = true;
  install_limits(*scope, std::move(*fresh));
  return {};
}

std::vector<LimitSpec> Limits::limits(ScopeId id) const {
  std::vector<LimitSpec> specs;
  const LimitScope* const scope = impl_->find(id);
  if (scope == nullptr) return specs;
  const std::lock_guard lock(scope->lock);
  for (const auto& limit : scope->limits) specs.push_back(limit->spec);
  return specs;
}

std::pair<std::string, std::string> Limits::name(ScopeId id) const {
  const LimitScope* const scope = impl_->find(id);
  return scope == nullptr ? std::pair<std::string, std::string>{} : std::pair{scope->dimension, scope->value};
}

Result<std::int64_t> Limits::used(ScopeId id, std::string_view name, UsageTime now) const {
  LimitScope* const scope = impl_->find(id);
  if (scope == nullptr) return Error{Code::not_found, "used: no such scope", kNoOffset};
  const std::lock_guard lock(scope->lock);
  for (const auto& limit : scope->limits) {
    if (limit->spec.name != name) continue;
    if (limit->spec.kind == LimitKind::concurrency) return limit->in_flight;
    if (limit->spec.kind == LimitKind::rate) return usage::charged(*limit, hold_steady(*scope, now.steady));
    usage::roll(*limit, now.wall);
    return limit->current.used;
  }
  return Error{Code::not_found, "used: no such limit", kNoOffset};
}

LimitDecision Limits::Impl::reserve(std::span<const ScopeId> scopes, const LimitUse& estimate, UsageTime now) {
  LimitDecision d;
  LimitRequest q;
  if (!gather(q, scopes)) {
    d.outcome = LimitOutcome::invalid;
    return d;
  }
  std::array<LimitCharge, kMaxLimitsPerRequest> charges;
  {
    const std::lock_guard lock(q);
    const bool fits = ask_all(q, d, estimate, now);
    for (std::size_t i = 0; i < q.limit_count; ++i) {
      LimitState& limit = *q.limits[i];
      if (fits) charges[i] = usage::charge(limit, q.amounts[i], Nanos{limit.scope->latest_steady});
      d.may_stop = d.may_stop || limit.spec.hard_stop;
      note_left(d, limit, now);
    }
    if (!fits) return d;
  }
  d.ticket = open(std::span{charges}.first(q.limit_count), estimate, now);
  if (d.ticket != kNoLimitTicket) return d;
  const std::lock_guard lock(q);
  for (std::size_t i = 0; i < q.limit_count; ++i) {
    usage::recharge(charges[i], 0, Nanos{charges[i].limit->scope->latest_steady});
    usage::leave(charges[i]);
  }
  d.outcome = LimitOutcome::no_room;
  return d;
}

LimitDecision Limits::reserve(std::span<const ScopeId> scopes, const LimitUse& estimate, UsageTime now) {
  LimitDecision d = impl_->reserve(scopes, estimate, now);
  // Places whose holders' leases are over are free, even if no other call has noticed yet.
  const bool may_be_orphans = d.outcome == LimitOutcome::too_many_at_once || d.outcome == LimitOutcome::no_room ||
                              (!d.allowed() && impl_->options.orphans == OrphanCharge::refund);
  if (may_be_orphans && advance(now) != 0) d = impl_->reserve(scopes, estimate, now);
  TicketShard& mine = impl_->shards[detail::thread_hint() % usage::kTicketShards];
  if (d.shadow_denied) mine.shadow_denied.fetch_add(1, kRelaxed);
  if (!d.allowed()) mine.denied.fetch_add(1, kRelaxed);
  return d;
}

LimitProgress Limits::progress(LimitTicket ticket, const LimitUse& so_far, UsageTime now) {
  TicketShard& shard = impl_->shard_of(ticket);
  const std::lock_guard lock(shard.lock);
  Reservation* const r = Impl::held(shard, ticket);
  if (r == nullptr) return LimitProgress::stale;
  bool stop = false;
  for (std::size_t i = 0; i < r->count; ++i) {
    LimitCharge& c = r->charges[i];
    if (!c.limit->spec.hard_stop) continue;
    const std::int64_t amount = usage::counted(c.limit->spec, so_far);
    if (amount <= c.amount) continue;
    const std::lock_guard scope_lock(c.limit->scope->lock);
    usage::recharge(c, amount, now.steady);
    stop = stop || (!c.limit->spec.shadow && c.window == c.limit->current.window.start &&
                    c.limit->current.used > c.limit->spec.amount);
  }
  shard.latest = std::max(shard.latest, now.steady.value);
  shard.unlink(Impl::slot_of(ticket));
  r->lease_end = shard.latest + impl_->options.lease.value;
  shard.append(Impl::slot_of(ticket));
  return stop ? LimitProgress::stop : LimitProgress::go_on;
}

Status Limits::extend(LimitTicket ticket, Nanos now) {
  return progress(ticket, {}, {now, {}}) == LimitProgress::stale ? Status{stale_ticket()} : Status{};
}

Status Limits::settle(LimitTicket ticket, const LimitUse& actual, UsageTime now) {
  return impl_->end(ticket, &actual, now);
}
Status Limits::release(LimitTicket ticket, UsageTime now) { return impl_->end(ticket, nullptr, now); }

std::size_t Limits::advance(UsageTime now, std::size_t most) {
  std::size_t ended = 0;
  for (TicketShard& shard : impl_->shards) {
    if (ended >= most) break;
    const std::lock_guard lock(shard.lock);
    ended += impl_->expire(shard, now, most - ended);
  }
  return ended;
}

LimitStatistics Limits::statistics() const noexcept {
  LimitStatistics s;
  for (TicketShard& shard : impl_->shards) {
    s.allowed += shard.allowed.load(kRelaxed);
    s.denied += shard.denied.load(kRelaxed);
    s.shadow_denied += shard.shadow_denied.load(kRelaxed);
    s.expired += shard.expired.load(kRelaxed);
    s.stale += shard.stale.load(kRelaxed);
    const std::lock_guard lock(shard.lock);
    s.open += shard.open;
  }
  return s;
}

}  // namespace warmroute
