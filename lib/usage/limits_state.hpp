// What a limit has charged, and the arithmetic of each kind. Under the lock of its scope. Private to lib.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "usage/limits_calendar.hpp"
#include "usage/limits_rate.hpp"
#include "warmroute/usage/limits.hpp"

namespace warmroute::usage {

// Held for tens of nanoseconds: a std::mutex costs twice as much uncontended and sleeps when it is not. Yields to a holder
// that lost its core.
class SpinLock {
 public:
  void lock() noexcept {
    for (int tries = 0; flag_.exchange(true, std::memory_order_acquire);) {
      while (flag_.load(std::memory_order_relaxed)) {
        if (++tries % 64 == 0) std::this_thread::yield();
      }
    }
  }
  void unlock() noexcept { flag_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> flag_{false};
};

struct BudgetCount {
  BudgetWindow window;
  std::int64_t used = 0;
};

struct LimitScope;

struct LimitState {
  LimitSpec spec;
  LimitScope* scope = nullptr;
  std::uint32_t index = 0;
  BudgetCalendar calendar;     // of a budget
  Ticks interval = 0;          // of a rate: what one unit takes to drain
  Ticks burst = 0;             // of a rate: what may be ahead of now
  std::int64_t most = 0;       // of a rate: units that are charged as such and not as "for ever"
  double units_per_tick = 0;   // of a rate, for reports
  unsigned shift = 0;          // of a rate: by so many bits fewer, burst is a 64-bit number
  RateCharges charges;         // of a rate
  BudgetCount current;         // of a budget
  BudgetCount previous;        // of a budget: late settlements, and a wall clock that goes back a little
  std::int64_t in_flight = 0;  // of a concurrency limit
};

// What one reservation charged to one limit. No initialisers: arrays of 24 would be cleared for each request.
struct LimitCharge {
  LimitState* limit;
  std::int64_t amount;  // units
  std::int64_t window;  // of a budget: its start
  std::uint64_t order;  // of a rate: see RateCharges
};

struct alignas(64) LimitScope {
  mutable SpinLock lock;
  bool own_limits = false;
  std::int64_t latest_steady = 0;  // a steady clock that goes back is held
  std::vector<std::unique_ptr<LimitState>> limits;
  std::vector<std::unique_ptr<LimitState>> retired;  // removed; open reservations point at them
  std::string dimension;
  std::string value;
  ScopeId id = kNoScope;
};

// What a limit says to one request.
struct LimitAnswer {
  bool fits = true;
  bool never = false;    // it alone exceeds the limit
  Nanos retry_after{0};  // of a rate
  Nanos reset{0};
};

// The units of `use` that a limit counts; never negative.
std::int64_t counted(const LimitSpec& spec, const LimitUse& use) noexcept;
// errors: invalid_argument, the fault named.
Result<std::unique_ptr<LimitState>> make_limit(const LimitSpec& spec);

// Gives a rate the speed of another one. What is charged stays as many units.
void change_rate(LimitState& limit, const LimitState& next, Nanos steady) noexcept;
// Brings a budget to the window of `now`.
void roll(LimitState& limit, WallNanos now);
// Whether `amount` more fits; changes nothing but the window.
LimitAnswer ask(LimitState& limit, std::int64_t amount, Nanos steady, WallNanos wall);
LimitCharge charge(LimitState& limit, std::int64_t amount, Nanos steady);
// Makes a charge one of `amount`, in the window that was charged.
void recharge(LimitCharge& charge, std::int64_t amount, Nanos steady);
// The request is over: of a concurrency limit a place is free, and of a rate nothing will be given back any more.
void leave(const LimitCharge& charge) noexcept;
// Of a rate: units that have not drained, begun ones as whole.
std::int64_t charged(const LimitState& limit, Nanos steady) noexcept;
LimitLeft left(const LimitState& limit, Nanos steady, WallNanos wall) noexcept;

}  // namespace warmroute::usage
