// The forwarding part of an exchange: connection, heads, and what went wrong with them.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "gateway/body_edit.hpp"
#include "gateway/exchange.hpp"
#include "gateway/heads.hpp"
#include "gateway/model_name.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace beast = examples::beast;
namespace http = examples::http;
using examples::error_code;
using examples::into;

constexpr std::uint32_t kMostHeadBytes = 64 * 1024;  // of an answer's head

/// Sends the request to one replica and, if it answers with anything that the client should see, streams that through.
/// returns: nothing when the client has its answer (or the ticket's end is settled); else what went wrong.
Awaitable<std::optional<Exchange::Failure>> Exchange::attempt(Choice& choice) {
  tried_.push_back(choice.upstream->id);
  kv_parameters_.clear();
  prefill_cached_ = kUnknown;
  if (choice.decision.is_pair()) {
    if (auto failure = co_await prefill(choice)) co_return failure;
  }
  const Upstream& upstream = *choice.upstream;
  const auto request = request_for(choice);
  std::optional<Parser> parser;
  if (auto failure = co_await send_and_read_head(upstream, request, true, parser)) co_return failure;

  const ResponseHead& head = parser->get();
  const Outcome outcome = outcome_of_status(head.result_int());
  if (worth_a_retry(head.result_int())) {
    Failure failure{{outcome, false, retry_after_of(head), "status " + std::to_string(head.result_int())},
                    head.result_int(),
                    "upstream_status"};
    failure.retry = may_retry(outcome == Outcome::backpressure ? RetryCause::backpressure : RetryCause::server_error);
    failure.ending = Ending::refused;
    failure.retry_after = retry_after_of(head, kMostPoolWait);
    if (failure.retry) co_return failure;  // else the client gets to see it, with its body
  }
  co_return co_await relay(choice, *parser);
}

/// In the words of the server that was chosen. lifetime: of this exchange, until the next one.
UpstreamRequest Exchange::request_for(const Choice& choice) {
  const Upstream& upstream = *choice.upstream;
  const bool renamed = !choice.model.empty() && choice.model != asked_model_;
  std::string_view body = body_;
  if (renamed && target_.body && target_.model.empty()) body = own_body_ = with_model(body_, choice.model);
  const bool parted = worker_.shared.router.policy().disaggregate != Disaggregate::never;
  // A name of ASCII letters can be spelled otherwise by escapes of code points alone.
  const auto names = [&](std::string_view text) { return body.find(text) != std::string_view::npos; };
  if (!kv_parameters_.empty() || (parted && (names(kTransferMember) || names("\\u"))))
    body = own_body_ = decode_body(body, kv_parameters_);
  UpstreamWay way;
  way.external = upstream.external;
  way.target =
      upstream_target(view(request_.target()), target_, renamed ? choice.model : std::string_view{}, upstream.path);
  return upstream_request(request_, body, upstream.authority, upstream.dp_rank, upstream_key(upstream), way);
}

/// Over an idle connection if there is one. If that fails before a single byte of an answer, the model server had closed it
/// meanwhile: once more over a fresh one, which is not a retry. Not booked is what another gateway serves.
Awaitable<std::optional<Exchange::Failure>> Exchange::send_and_read_head(const Upstream& upstream,
                                                                         const UpstreamRequest& request, bool booked,
                                                                         std::optional<Parser>& parser) {
  const Shared& shared = worker_.shared;
  upstream_ = worker_.pool.take(upstream);
  for (;;) {
    if (!upstream_) {
      upstream_ = worker_.pool.make();
      const auto connect_deadline =
          std::min(deadline_, std::chrono::steady_clock::now() + shared.config.connect_timeout);
      const error_code error = co_await upstream_->connect(upstream.host, upstream.port, connect_deadline);
      if (error) co_return not_connected(error);
    }
    if (client_.gone()) co_return cancelled();
    // The record comes first: else nothing leaves.
    if (booked && !account_.begin(upstream.name, upstream.meter)) co_return no_journal();
    const error_code error = co_await exchange_heads(request, booked, parser);
    if (!error) co_return std::nullopt;
    const bool stale = upstream_->reused && !parser->got_some() && error != beast::error::timeout && !client_.gone();
    if (!stale) co_return broken(error, false);
    shared.counters.upstream_stale.fetch_add(1, std::memory_order_relaxed);
    upstream_.reset();
  }
}

/// Sends the request and reads heads until the final one: 100 Continue and 103 Early Hints come before it and are not for the
/// client. A server may answer (413, say) and close before it has read the whole request: then its answer counts, not the write.
Awaitable<error_code> Exchange::exchange_heads(const UpstreamRequest& request, bool booked,
                                               std::optional<Parser>& parser) {
  const std::shared_ptr<Connection> connection = upstream_;
  error_code error;
  connection->stream.expires_at(deadline_);
  co_await http::async_write(connection->stream, request, into(error));
  const error_code write_error = error;
  connection->broken_write = bool(write_error);
  sent_at_ = std::chrono::steady_clock::now();
  for (;;) {
    parser.emplace();
    parser->body_limit(std::numeric_limits<std::uint64_t>::max());
    parser->header_limit(kMostHeadBytes);
    if (write_error == beast::error::timeout) co_return write_error;
    if (request_.method() == http::verb::head) parser->skip(true);
    connection->stream.expires_at(write_error ? std::min(deadline_, sent_at_ + std::chrono::seconds(1))
                                  : booked    ? token_deadline(false)
                                              : peer_deadline());
    co_await http::async_read_header(connection->stream, connection->buffer, *parser, into(error));
    if (error) co_return write_error ? write_error : error;
    const unsigned status = parser->get().result_int();
    if (status >= 200) co_return error_code{};
    if (status == 101) co_return http::error::bad_status;  // nobody asked for another protocol
  }
}

// ---------------------------------------------------------------- what went wrong

/// A stream owes its first token by one time and each next one by another; a plain answer comes whole, by the end of all.
TimePoint Exchange::token_deadline(bool first_seen) const {
  const Config& config = worker_.shared.config;
  if (!stream_wanted_) return deadline_;
  const TimePoint due = first_seen ? std::chrono::steady_clock::now() + config.inter_token_timeout
                                   : sent_at_ + config.first_token_timeout;
  return std::min(deadline_, due);
}

void Exchange::count_timeout(Failure& failure, Timeout which) {
  worker_.shared.counters.timed_out(which);
  failure.report.outcome = Outcome::timeout;
  failure.report.reason = std::string(kTimeouts[static_cast<std::size_t>(which)]) + " timeout";
  constexpr std::array<std::string_view, 4> kCodes{"connect_timeout", "first_token_timeout", "inter_token_timeout",
                                                   "total_timeout"};
  failure.code = kCodes[static_cast<std::size_t>(which)];
  failure.status = 504;
}

Exchange::Failure Exchange::no_journal() {
  return {{Outcome::cancelled, false, Nanos{0}, "the journal takes no records"}, 503, "journal_unavailable"};
}

Exchange::Failure Exchange::cancelled() const {
  Failure failure;
  failure.ending = Ending::left;
  failure.report.outcome = Outcome::cancelled;
  failure.status = kClientGone;
  return failure;
}

Exchange::Failure Exchange::not_connected(const error_code& error) {
  Failure failure{{Outcome::connect_error, error == asio::error::connection_refused, Nanos{0}, error.message()},
                  502,
                  "connect_error"};
  if (client_.gone()) {
    failure.report.outcome = Outcome::cancelled;
    return failure;
  }
  if (error == beast::error::timeout) {
    count_timeout(failure, std::chrono::steady_clock::now() < deadline_ ? Timeout::connect : Timeout::total);
    failure.report.outcome = Outcome::connect_error;
  }
  failure.cause = RetryCause::connect;
  return failure;
}

Exchange::Failure Exchange::broken(const error_code& error, bool first_seen) {
  Failure failure{{Outcome::replica_error, false, Nanos{0}, error.message()}, 502, "upstream_reset"};
  if (client_.gone()) {
    failure.report.outcome = Outcome::cancelled;
    failure.ending = Ending::left;
  } else if (error == beast::error::timeout) {
    const bool over = std::chrono::steady_clock::now() >= deadline_;
    count_timeout(failure, over ? Timeout::total : first_seen ? Timeout::inter_token : Timeout::first_token);
  } else {
    failure.cause = RetryCause::reset;
  }
  return failure;
}

}  // namespace warmroute::gateway
