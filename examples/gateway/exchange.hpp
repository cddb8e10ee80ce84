/// One request on its way through: read, route, forward, stream back, and try elsewhere while nothing has been sent.
/// This is the heart of the example; what an embedder has to do with the router is all in exchange.cpp. A request that is another
/// gateway's goes there first (exchange_peer.cpp), and all of this is done there.
///
/// Invariant: whatever happens (an abort, a timeout, a reset, a shutdown) the ticket is released exactly once, see TicketGuard, and
/// the books are closed exactly once, see Account.
/// A retry is a further route() that excludes what was tried: load is booked where the request really goes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/account.hpp"
#include "gateway/client.hpp"
#include "gateway/heads.hpp"
#include "gateway/target.hpp"
#include "gateway/ticket_guard.hpp"
#include "gateway/worker.hpp"
#include "warmroute/usage/request_side.hpp"

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
    std::string_view model{};  ///< what to ask it for; empty: what the client asked for
  };
  /// An attempt that sent the client nothing, and what to tell it if there is no further one.
  struct Failure {
    Report report;
    unsigned status = 502;
    std::string_view code;
    std::optional<RetryCause> cause{};  ///< what a retry would be for; nothing: none is worth it
    bool retry = false;                 ///< allowed and paid for
    Nanos retry_after{0};               ///< as it was said
    Ending ending = Ending::lost;       ///< for the books
  };

  Awaitable<void> serve();
  std::optional<Refusal> choose(Choice& choice);
  std::optional<Refusal> classify();
  std::optional<Refusal> decide(bool book, Choice& choice);
  void ask(const Request& request, bool book, Choice& choice);
  std::optional<Refusal> enter(const Request& request);
  bool somebody_else();
  bool may_retry(RetryCause cause);

  Awaitable<std::optional<Failure>> attempt(Choice& choice);
  Awaitable<std::optional<Failure>> send_and_read_head(const Upstream& upstream, const UpstreamRequest& request,
                                                       bool booked, std::optional<Parser>& parser);
  Awaitable<examples::error_code> exchange_heads(const UpstreamRequest& request, bool booked,
                                                 std::optional<Parser>& parser);
  Awaitable<std::optional<Failure>> relay(Choice& choice, Parser& parser);
  Awaitable<examples::error_code> read_piece(Parser& parser, TimePoint deadline, std::string_view& bytes);
  Awaitable<void> pass_on(Choice& choice, Parser& parser, std::string_view bytes);
  std::optional<Failure> end_broken(Choice& choice, const examples::error_code& error, bool first_seen);
  Awaitable<void> stop_here(Choice& choice);
  void settle(Choice& choice, Parser& parser);

  Awaitable<std::optional<Failure>> prefill(Choice& choice);
  Awaitable<std::optional<Failure>> read_prefill(const Upstream& first, Parser& parser, std::string& answer);

  const Upstream* owner();
  Awaitable<bool> forwarded();
  Awaitable<std::optional<Failure>> relay_peer(const Upstream& peer, Parser& parser);
  [[nodiscard]] TimePoint peer_deadline() const;

  void client_left();
  bool reads_on(std::size_t more_bytes);
  [[nodiscard]] UpstreamKey upstream_key(const Upstream& upstream) const;
  UpstreamRequest request_for(const Choice& choice);
  [[nodiscard]] ResponseHead head_for_client(const Choice& choice, const Parser& parser) const;

  Failure cancelled() const;
  static Failure no_journal();
  Failure not_connected(const examples::error_code& error);
  Failure broken(const examples::error_code& error, bool first_seen);
  void count_timeout(Failure& failure, Timeout which);
  [[nodiscard]] TimePoint token_deadline(bool first_seen) const;

  static Refusal refusal_of(const Decision& decision);
  Awaitable<void> refuse(Refusal refusal);

  Worker& worker_;
  Client& client_;
  const ClientRequest& request_;
  const TimePoint deadline_;  // of all attempts together
  const Target target_;
  const Mark mark_;
  Account account_;
  std::string asking_body_;   // the client's, with the wish for usage in it
  std::string_view body_;     // as it is sent
  bool hides_usage_ = false;  // that wish was not the client's
  std::optional<UsageChunkFilter> filter_;
  std::string filtered_;
  std::optional<HangupDrain> drain_;  // the client has left, and its answer is read on
  std::shared_ptr<examples::asio::steady_timer> drain_timer_;
  std::array<char, 16'384> piece_;
  bool entered_ = false;
  bool mine_ = false;  // by the ring of gateways: served here, and not for want of a better one
  bool stream_wanted_ = false;
  TimePoint sent_at_{};
  std::shared_ptr<Connection> upstream_;  // of the attempt under way
  std::vector<ReplicaId> tried_;
  std::optional<Choice> next_;  // booked already, for a retry that is to be paid
  std::uint32_t class_id_ = 0;
  std::string asked_model_;    // by the client
  std::string own_body_;       // in the words of the server that it goes to
  std::string kv_parameters_;  // of a pair whose first half is done: where the KV lies
  std::int64_t prefill_cached_ = kUnknown;
};

}  // namespace warmroute::gateway
