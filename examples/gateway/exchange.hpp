/// One request on its way through: read, route, forward, stream back, and try elsewhere while nothing has been sent.
/// This is the heart of the example; what an embedder has to do with the router is all in exchange.cpp.
///
/// Invariant: whatever happens (an abort, a timeout, a reset, a shutdown) the ticket is released exactly once, see TicketGuard.
/// A retry is a further route() that excludes what was tried: load is booked where the request really goes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/client.hpp"
#include "gateway/ticket_guard.hpp"
#include "gateway/worker.hpp"
#include "warmroute/usage/meter.hpp"

namespace warmroute::gateway {

class Exchange {
 public:
  Exchange(Worker& worker, Client& client, const ClientRequest& request);

  /// Answers the request, one way or another.
  Awaitable<void> run();

 private:
  using Parser = examples::http::response_parser<examples::http::buffer_body>;

  /// Where the request goes. Without a replica, `decision` says why; requests that are not routed have no ticket.
  struct Choice {
    const Upstream* upstream = nullptr;
    TicketGuard ticket;
    Decision decision;
  };
  /// An attempt that sent the client nothing, and what to tell it if there is no further one.
  struct Failure {
    Report report;
    unsigned status = 502;
    std::string_view code;
    bool retry = false;  ///< allowed and paid for
  };

  std::optional<Error> choose(Choice& choice);
  std::optional<Error> decide(bool book, Decision& decision);
  bool somebody_else();
  bool may_retry(RetryCause cause);

  Awaitable<std::optional<Failure>> attempt(Choice& choice);
  Awaitable<std::optional<Failure>> send_and_read_head(const Upstream& upstream, std::optional<Parser>& parser);
  Awaitable<examples::error_code> exchange_heads(const Upstream& upstream, std::optional<Parser>& parser);
  Awaitable<std::optional<Failure>> relay(Choice& choice, Parser& parser);
  void settle(Choice& choice, Parser& parser, Meter& meter);

  static Failure cancelled();
  Failure not_connected(const examples::error_code& error);
  Failure broken(const examples::error_code& error, bool first_seen);
  void count_timeout(Failure& failure, Timeout which);
  [[nodiscard]] TimePoint token_deadline(bool first_seen) const;

  Awaitable<void> refuse(const Decision& decision);
  Awaitable<void> send_error(unsigned status, std::string_view type, std::string_view code, const std::string& message,
                             int retry_after_s = 0);

  Worker& worker_;
  Client& client_;
  const ClientRequest& request_;
  const TimePoint deadline_;    // of all attempts together
  std::optional<BodyApi> api_;  // nothing: not routed, any replica will do
  bool stream_wanted_ = false;
  TimePoint sent_at_{};
  std::shared_ptr<Connection> upstream_;  // of the attempt under way
  std::vector<ReplicaId> tried_;
};

}  // namespace warmroute::gateway
