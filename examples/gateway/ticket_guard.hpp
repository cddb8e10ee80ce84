/// Releases a ticket on every path. Whoever routes a request holds one of these until the answer is through; leaving the scope
/// in any other way (an error, an exception, a coroutine that is destroyed at shutdown) reports the request as cancelled.
///
/// Invariant: exactly one of finish and fail reaches the router for each ticket.
#pragma once

#include <chrono>
#include <utility>

#include "warmroute/route/router.hpp"

namespace warmroute::gateway {

/// The gateway's one clock: the router never reads one, so every call is told the time.
inline Nanos now() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return Nanos{std::chrono::duration_cast<std::chrono::nanoseconds>(since_boot).count()};
}

class TicketGuard {
 public:
  TicketGuard() = default;
  TicketGuard(Router& router, Ticket ticket) : router_(&router), ticket_(ticket) {}
  TicketGuard(TicketGuard&& other) noexcept
      : router_(other.router_), ticket_(std::exchange(other.ticket_, kNoTicket)), first_(other.first_) {}
  TicketGuard& operator=(TicketGuard&& other) noexcept {
    if (this != &other) {
      fail(Outcome::cancelled);
      router_ = other.router_;
      ticket_ = std::exchange(other.ticket_, kNoTicket);
      first_ = other.first_;
    }
    return *this;
  }
  ~TicketGuard() { fail(Outcome::cancelled); }

  /// Calls after the first one do nothing.
  void first_token() {
    if (ticket_ == kNoTicket || std::exchange(first_, true)) return;
    router_->first_token(ticket_, now());
  }
  void finish(const UsageCounts& usage) {
    if (ticket_ != kNoTicket) router_->finish(std::exchange(ticket_, kNoTicket), usage, now());
  }
  void fail(Outcome outcome) {
    if (ticket_ != kNoTicket) router_->fail(std::exchange(ticket_, kNoTicket), outcome, now());
  }

 private:
  Router* router_ = nullptr;
  Ticket ticket_ = kNoTicket;
  bool first_ = false;
};

}  // namespace warmroute::gateway
