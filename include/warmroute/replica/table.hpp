/// The replica table: who is there, how they are, and what each has to do.
/// Rows are an immutable snapshot; books and signals are atomics at fixed addresses. Readers never wait; writers serialise.
/// Invariant: a slot gets a new tenant only when the last request of the old one is off its books and the last reader that saw
/// the old one has left, and then under a new generation. So the removal and the return of a name never mix books, however late a release comes.
/// Does not: talk to replicas, read a clock, know of caches or rings.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "warmroute/detail/epoch.hpp"
#include "warmroute/replica/replica.hpp"

namespace warmroute {

/// One replica as readers see it.
struct ReplicaRow {
  ReplicaId id;
  ReplicaSpec spec;
};

/// `rows` ordered by slot. returns: the row of exactly this id, or nullptr when that replica is gone.
inline const ReplicaRow* find_row(std::span<const ReplicaRow> rows, ReplicaId id) noexcept {
  const auto it = std::lower_bound(rows.begin(), rows.end(), id.slot,
                                   [](const ReplicaRow& row, std::uint32_t slot) { return row.id.slot < slot; });
  return it != rows.end() && it->id == id ? &*it : nullptr;
}

/// All rows at one moment, ordered by slot.
struct ReplicaView {
  std::vector<ReplicaRow> rows;
  std::uint64_t version = 0;  ///< rises with every change

  /// returns: the row of exactly this id, or nullptr when that replica is gone.
  [[nodiscard]] const ReplicaRow* find(ReplicaId id) const noexcept { return find_row(rows, id); }
  [[nodiscard]] const ReplicaRow* find(std::string_view name, std::uint32_t dp_rank = 0) const noexcept {
    for (const auto& row : rows) {
      if (row.spec.dp_rank == dp_rank && row.spec.name == name) return &row;
    }
    return nullptr;
  }
};

class ReplicaTable {
 public:
  /// alloc: two books (64 bytes each) and one set of signals per possible replica, at once.
  ReplicaTable(detail::EpochDomain& domain, std::uint32_t max_replicas)
      : domain_(&domain),
        books_(std::make_unique<LoadBook[]>(max_replicas)),
        cache_books_(std::make_unique<CacheBook[]>(max_replicas)),
        slots_(max_replicas),
        view_(domain, std::make_unique<ReplicaView>()) {}

  /// errors: invalid_argument, already_exists (same name and rank), capacity. threads: any; serialised inside.
  Result<ReplicaId> add(ReplicaSpec spec) {
    if (auto valid = validate(spec); !valid) return valid.error();
    const std::lock_guard lock(mutex_);
    if (view_.latest().find(spec.name, spec.dp_rank) != nullptr) {
      return Error{Code::already_exists,
                   "replica '" + spec.name + "' rank " + std::to_string(spec.dp_rank) +
                       " is in the table already: remove it first, or change it in place",
                   kNoOffset};
    }
    const std::uint32_t slot = free_slot();
    if (slot == kNoReplica.slot) {
      return Error{Code::capacity,
                   "the table holds its " + std::to_string(slots_.size()) +
                       " replicas (removed ones count until their last request is over and readers inside have left): "
                       "raise max_replicas, or try again",
                   kNoOffset};
    }
    Slot& s = slots_[slot];
    s.used = true;
    s.generation += 1;
    s.signals = {};
    s.prefix = {};
    cache_books_[slot].clear();
    books_[slot].foreign_requests.store(0, std::memory_order_relaxed);
    books_[slot].foreign_waiting.store(0, std::memory_order_relaxed);
    books_[slot].foreign_tokens.store(LoadBook::kUntold, std::memory_order_relaxed);
    books_[slot].signals_at.store(0, std::memory_order_relaxed);
    books_[slot].slowness.store(LoadBook::kAsItsKind, std::memory_order_relaxed);
    const ReplicaId id{slot, s.generation};
    change([&](ReplicaView& view) {
      const auto at = std::lower_bound(view.rows.begin(), view.rows.end(), slot,
                                       [](const ReplicaRow& row, std::uint32_t n) { return row.id.slot < n; });
      view.rows.insert(at, ReplicaRow{id, std::move(spec)});
    });
    return id;
  }

  /// Takes the replica out of the view at once; its books stay until its last ticket is released, and its slot until `let_again`,
  /// for an owner that publishes pictures of its own made from the view. errors: stale. threads: as add.
  Status take_out(ReplicaId id) {
    const std::lock_guard lock(mutex_);
    if (view_.latest().find(id) == nullptr) return gone(id);
    change([&](ReplicaView& view) { std::erase_if(view.rows, [&](const ReplicaRow& row) { return row.id == id; }); });
    return {};
  }
  /// No new reader can see the replica any more, wherever it was published: its slot is free once today's readers have left.
  void let_again(ReplicaId id) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[id.slot];
    if (slot.generation != id.generation || view_.latest().find(id) != nullptr) return;
    slot.used = false;
    slot.removed_at = domain_->advance();
  }
  /// take_out and let_again in one, where only the table's own view is read. errors: stale. threads: as add.
  Status remove(ReplicaId id) {
    const Status taken = take_out(id);
    if (taken) let_again(id);
    return taken;
  }

  /// Changes one row in place: health, weight, labels, adapters, rates. Name, rank and pool cannot change.
  /// errors: stale, invalid_argument. threads: as add.
  template <class Edit>
  Status edit(ReplicaId id, Edit&& edit_spec) {
    const std::lock_guard lock(mutex_);
    const ReplicaRow* row = view_.latest().find(id);
    if (row == nullptr) return gone(id);
    ReplicaSpec next = row->spec;
    edit_spec(next);
    if (next.name != row->spec.name || next.dp_rank != row->spec.dp_rank || next.pool != row->spec.pool) {
      return Error{Code::invalid_argument, "name, dp_rank and pool of a replica cannot change: remove and add it",
                   kNoOffset};
    }
    if (auto valid = validate(next); !valid) return valid;
    change([&](ReplicaView& view) { const_cast<ReplicaRow*>(view.find(id))->spec = std::move(next); });
    return {};
  }

  Status set_health(ReplicaId id, Health health, std::string_view reason) {
    return edit(id, [&](ReplicaSpec& spec) {
      spec.health = health;
      spec.health_reason = reason;
      spec.drain_until = Nanos{0};
    });
  }

  /// Takes a reading of the engine. Requests and prompt tokens beyond this router's own are booked as foreign load until the next reading;
  /// either is forgotten when the other comes for longer than `max_age` without it.
  /// errors: stale, invalid_argument (not finite, negative). threads: as add. cost: no snapshot is made.
  Status signal(ReplicaId id, Signal kind, double value, Nanos now, Nanos max_age = seconds(10)) {
    if (!std::isfinite(value) || value < 0) {
      return Error{Code::invalid_argument, "an engine signal must be finite and not negative", kNoOffset};
    }
    const std::lock_guard lock(mutex_);
    if (view_.latest().find(id) == nullptr) return gone(id);
    Slot& s = slots_[id.slot];
    s.signals[static_cast<std::size_t>(kind)] = {value, now, true};
    if (kind == Signal::running || kind == Signal::waiting) book_foreign(id.slot, now, max_age);
    if (kind == Signal::waiting_tokens) book_foreign_tokens(id.slot, now, max_age);
    if (kind == Signal::kv_usage) {
      cache_books_[id.slot].kv_permille.store(static_cast<std::int32_t>(std::min(value, 1.0) * 1'000),
                                              std::memory_order_relaxed);
      cache_books_[id.slot].kv_at.store(now.value, std::memory_order_relaxed);
    }
    return {};
  }
  /// returns: the last reading; `known` is false when there was none. threads: any; takes the writers' lock.
  [[nodiscard]] SignalReading reading(ReplicaId id, Signal kind) const {
    const std::lock_guard lock(mutex_);
    if (id.slot >= slots_.size() || slots_[id.slot].generation != id.generation) return {};
    return slots_[id.slot].signals[static_cast<std::size_t>(kind)];
  }

  /// Takes a reading of the engine's prefix-cache counters.
  /// errors: stale, invalid_argument (negative, more hits than queries). threads: as add.
  Status prefix_counters(ReplicaId id, const PrefixCounters& now_read, Nanos now) {
    if (now_read.hits < 0 || now_read.queries < now_read.hits) {
      return Error{Code::invalid_argument, "prefix-cache counters must have 0 <= hits <= queries", kNoOffset};
    }
    const std::lock_guard lock(mutex_);
    if (view_.latest().find(id) == nullptr) return gone(id);
    slots_[id.slot].prefix.read(now_read, now);
    return {};
  }
  /// returns: what they gained. threads: any; takes the writers' lock.
  [[nodiscard]] PrefixGains prefix_gains(ReplicaId id) const {
    const std::lock_guard lock(mutex_);
    if (id.slot >= slots_.size() || slots_[id.slot].generation != id.generation) return {};
    return slots_[id.slot].prefix.gains();
  }

  /// lifetime: as long as the guard. threads: any.
  [[nodiscard]] const ReplicaView& view(const detail::EpochDomain::Guard& guard) const noexcept {
    return view_.read(guard);
  }
  /// A copy of the rows, for callers without a guard.
  [[nodiscard]] ReplicaView copy() const {
    const auto guard = domain_->pin();
    return view_.read(guard);
  }

  /// lifetime: the table's. threads: any. slot < max_replicas().
  [[nodiscard]] LoadBook& book(std::uint32_t slot) const noexcept { return books_[slot]; }
  [[nodiscard]] CacheBook& cache_book(std::uint32_t slot) const noexcept { return cache_books_[slot]; }
  [[nodiscard]] std::uint32_t max_replicas() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }

 private:
  struct Slot {
    bool used = false;
    std::uint32_t generation = 0;
    std::uint64_t removed_at = 0;  // epoch tag: readers of it or of earlier epochs may still book requests here
    std::array<SignalReading, kSignalCount> signals{};
    PrefixBook prefix;
  };

  static Error gone(ReplicaId id) {
    return {Code::stale,
            "replica " + std::to_string(id.slot) + " generation " + std::to_string(id.generation) +
                " is not in the table: it was removed, or replaced under the same name",
            kNoOffset};
  }
  [[nodiscard]] std::uint32_t free_slot() const noexcept {
    const std::uint64_t oldest = domain_->oldest_pinned();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].used || (slots_[i].removed_at != 0 && slots_[i].removed_at >= oldest)) continue;
      if (books_[i].requests.load(std::memory_order_acquire) == 0) return i;
    }
    return kNoReplica.slot;
  }
  template <class Change>
  void change(Change&& apply) {
    auto next = std::make_unique<ReplicaView>(view_.latest());
    apply(*next);
    ++next->version;
    view_.publish(std::move(next));
  }
  [[nodiscard]] std::int64_t told(std::uint32_t slot, Signal kind, double most) const noexcept {
    return static_cast<std::int64_t>(std::min(slots_[slot].signals[static_cast<std::size_t>(kind)].value, most));
  }
  [[nodiscard]] bool recent(std::uint32_t slot, Signal kind, Nanos now, Nanos max_age) const noexcept {
    const SignalReading& reading = slots_[slot].signals[static_cast<std::size_t>(kind)];
    return reading.known && now - reading.at <= max_age;
  }
  // What the engine counts beyond this router's own requests: other routers' work, or direct traffic.
  void book_foreign(std::uint32_t slot, Nanos now, Nanos max_age) noexcept {
    constexpr double kMost = 1e6;  // no engine holds a million requests; beyond that it is a broken page
    const std::int64_t running = told(slot, Signal::running, kMost);
    const std::int64_t waiting = told(slot, Signal::waiting, kMost);
    LoadBook& book = books_[slot];
    const std::int64_t own = book.requests.load(std::memory_order_relaxed);
    const std::int64_t foreign = std::max<std::int64_t>(0, running + waiting - own);
    book.foreign_requests.store(static_cast<std::int32_t>(foreign), std::memory_order_relaxed);
    book.foreign_waiting.store(static_cast<std::int32_t>(std::min(foreign, waiting)), std::memory_order_relaxed);
    if (!recent(slot, Signal::waiting_tokens, now, max_age))
      book.foreign_tokens.store(LoadBook::kUntold, std::memory_order_relaxed);
    book.signals_at.store(now.value, std::memory_order_relaxed);
  }
  // Of the prompt tokens that it has to compute, those that are not of this router's requests.
  void book_foreign_tokens(std::uint32_t slot, Nanos now, Nanos max_age) noexcept {
    LoadBook& book = books_[slot];
    const std::int64_t foreign = told(slot, Signal::waiting_tokens, 1e9) - book.pending_tokens_at(now.value);
    book.foreign_tokens.store(static_cast<std::int32_t>(std::max<std::int64_t>(0, foreign)), std::memory_order_relaxed);
    if (!recent(slot, Signal::running, now, max_age) && !recent(slot, Signal::waiting, now, max_age)) {
      book.foreign_requests.store(0, std::memory_order_relaxed);
      book.foreign_waiting.store(0, std::memory_order_relaxed);
    }
    book.signals_at.store(now.value, std::memory_order_relaxed);
  }

  detail::EpochDomain* domain_;
  mutable std::mutex mutex_;
  std::unique_ptr<LoadBook[]> books_;
  std::unique_ptr<CacheBook[]> cache_books_;
  std::vector<Slot> slots_;
  detail::Snapshot<ReplicaView> view_;
};

}  // namespace warmroute
