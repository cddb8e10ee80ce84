/// Releases a ticket on every path. Whoever routes a request holds one of these until the answer is through; leaving the scope
/// in any other way (an error, an exception, a coroutine that is destroyed at shutdown) reports the request as cancelled.
///
/// Invariant: exactly one of finish and fail reaches the router for each ticket.
#pragma once

#include <chrono>
#include <utility>

#include "warmroute/route/models.hpp"
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
  TicketGuard(Router& router, Ticket ticket) : router_(&router), ticket_{ticket} {}
  TicketGuard(ModelRouter& models, const ModelTicket& ticket) : models_(&models), ticket_(ticket) {}
  TicketGuard(TicketGuard&& other) noexcept
      : router_(other.router_),
        models_(other.models_),
        ticket_(std::exchange(other.ticket_, ModelTicket{})),
        first_(other.first_) {}
  TicketGuard& operator=(TicketGuard&& other) noexcept {
    if (this != &other) {
      fail(Outcome::cancelled);
      router_ = other.router_;
      models_ = other.models_;
      ticket_ = std::exchange(other.ticket_, ModelTicket{});
      first_ = other.first_;
    }
    return *this;
  }
  ~TicketGuard() { fail(Outcome::cancelled); }

  /// Calls after the first one do nothing.
  void first_token() {
    if (!open() || std::exchange(first_, true)) return;
    models_ != nullptr ? models_->first_token(ticket_, now()) : router_->first_token(ticket_.ticket, now());
  }
  void finish(const UsageCounts& usage) {
    if (!open()) return;
    const ModelTicket ticket = std::exchange(ticket_, ModelTicket{});
    models_ != nullptr ? models_->finish(ticket, usage, now()) : router_->finish(ticket.ticket, usage, now());
  }
  /// `retry_after`: as the model server said with 429 or 503. A pool with terms is left alone for so long.
  void fail(Outcome outcome, Nanos retry_after = Nanos{0}) {
    if (!open()) return;
    const ModelTicket ticket = std::exchange(ticket_, ModelTicket{});
    models_ != nullptr ? models_->fail(ticket, outcome, now(), retry_after)
                       : router_->fail(ticket.ticket, outcome, now());
  }

 private:
  [[nodiscard]] bool open() const noexcept { return ticket_.ticket != kNoTicket; }

  Router* router_ = nullptr;
  ModelRouter* models_ = nullptr;  // where the ticket is from, if it is not the router's own
  ModelTicket ticket_{};
  bool first_ = false;
};

}  // namespace warmroute::gateway
