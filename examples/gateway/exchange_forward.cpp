// The forwarding half of an exchange: connection, heads, the stream of the answer, and what went wrong with them.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "gateway/exchange.hpp"
#include "gateway/heads.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace beast = examples::beast;
namespace http = examples::http;
using examples::error_code;
using examples::into;

constexpr std::uint32_t kMostHeadBytes = 64 * 1024;  // of an answer's head

namespace {

/// What of an answer's usage the router learns from.
UsageCounts counts_of(const Usage& usage) {
  return {usage.input_tokens.value_or(kUnknown), usage.cached_input_tokens.value_or(kUnknown),
          usage.output_tokens.value_or(kUnknown)};
}

}  // namespace

/// Sends the request to one replica and, if it answers with anything that the client should see, streams that through.
/// returns: nothing when the client has its answer (or the ticket's end is settled); else what went wrong.
Awaitable<std::optional<Exchange::Failure>> Exchange::attempt(Choice& choice) {
  tried_.push_back(choice.upstream->id);
  std::optional<Parser> parser;
  if (auto failure = co_await send_and_read_head(*choice.upstream, parser)) co_return failure;

  const ResponseHead& head = parser->get();
  const Outcome outcome = outcome_of_status(head.result_int());
  if (worth_a_retry(head.result_int())) {
    Failure failure{{outcome, false, retry_after_of(head), "status " + std::to_string(head.result_int())},
                    head.result_int(),
                    "upstream_status"};
    failure.retry = may_retry(outcome == Outcome::backpressure ? RetryCause::backpressure : RetryCause::server_error);
    if (failure.retry) co_return failure;  // else the client gets to see it, with its body
  }
  co_return co_await relay(choice, *parser);
}

/// Over an idle connection if there is one. If that fails before a single byte of an answer, the model server had closed it
/// meanwhile: once more over a fresh one, which is not a retry.
Awaitable<std::optional<Exchange::Failure>> Exchange::send_and_read_head(const Upstream& upstream,
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
    const error_code error = co_await exchange_heads(upstream, parser);
    if (!error) co_return std::nullopt;
    const bool stale = upstream_->reused && !parser->got_some() && error != beast::error::timeout && !client_.gone();
    if (!stale) co_return broken(error, false);
    shared.counters.upstream_stale.fetch_add(1, std::memory_order_relaxed);
    upstream_.reset();
  }
}

/// Sends the request and reads heads until the final one: 100 Continue and 103 Early Hints come before it and are not for the
/// client. A server may answer (413, say) and close before it has read the whole request: then its answer counts, not the write.
Awaitable<error_code> Exchange::exchange_heads(const Upstream& upstream, std::optional<Parser>& parser) {
  const auto request =
      upstream_request(request_, upstream.host + ":" + std::to_string(upstream.port), upstream.dp_rank);
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
                                              : token_deadline(false));
    co_await http::async_read_header(connection->stream, connection->buffer, *parser, into(error));
    if (error) co_return write_error ? write_error : error;
    const unsigned status = parser->get().result_int();
    if (status >= 200) co_return error_code{};
    if (status == 101) co_return http::error::bad_status;  // nobody asked for another protocol
  }
}

/// Passes the answer on, piece by piece as it comes. The head waits for the first piece: a replica that dies in between has sent
/// the client nothing yet, and the request may still go elsewhere.
Awaitable<std::optional<Exchange::Failure>> Exchange::relay(Choice& choice, Parser& parser) {
  const std::shared_ptr<Connection> connection = upstream_;
  const bool good = outcome_of_status(parser.get().result_int()) == Outcome::finished;
  Meter meter;
  std::array<char, 16'384> piece;
  bool first_seen = false;
  for (;;) {
    std::size_t got = 0;
    if (!parser.is_done()) {
      error_code error;
      parser.get().body() = {piece.data(), piece.size(), true};
      connection->stream.expires_at(token_deadline(first_seen));
      co_await http::async_read_some(connection->stream, connection->buffer, parser, into(error));
      got = piece.size() - parser.get().body().size;
      if (error && error != http::error::need_buffer) {
        Failure failure = broken(error, first_seen);
        if (!client_.begun()) co_return failure;
        choice.ticket.fail(failure.report.outcome);
        if (!client_.gone()) {
          // An answer that is merely long says nothing about its replica.
          if (failure.code != "total_timeout") worker_.shared.fleet.report(*choice.upstream, failure.report);
          worker_.shared.counters.answers_cut.fetch_add(1, std::memory_order_relaxed);
          client_.cut();
        }
        co_return std::nullopt;
      }
    }
    const std::string_view bytes{piece.data(), got};
    if (good && meter.feed(bytes)) {
      first_seen = true;
      choice.ticket.first_token();
    }
    if (parser.is_done()) settle(choice, parser, meter);
    if (!client_.begun() && (got != 0 || parser.is_done())) {
      if (worker_.shared.stopping) client_.close_after_answer();
      const std::int64_t expected = choice.decision.routed() ? choice.decision.total_cached().value : -1;
      const ResponseHead head = client_head(parser.get(), choice.upstream->name, expected);
      co_await client_.begin(head);
    }
    co_await client_.write(bytes);
    if (client_.gone()) co_return cancelled();
    if (parser.is_done()) break;
  }
  co_await client_.end();
  co_return std::nullopt;
}

/// The model server's answer is whole. The books are settled before the client has it all and may ask again.
void Exchange::settle(Choice& choice, Parser& parser, Meter& meter) {
  const Outcome outcome = outcome_of_status(parser.get().result_int());
  if (outcome == Outcome::finished) {
    meter.finish();
    choice.ticket.finish(counts_of(meter.report().usage));
  } else {
    choice.ticket.fail(outcome);
  }
  worker_.shared.fleet.report(*choice.upstream, {outcome, false, retry_after_of(parser.get()),
                                                 "status " + std::to_string(parser.get().result_int())});
  if (parser.keep_alive() && upstream_->buffer.size() == 0 && !upstream_->broken_write)
    worker_.pool.give_back(*choice.upstream, std::exchange(upstream_, nullptr));
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

Exchange::Failure Exchange::cancelled() {
  Failure failure;
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
  failure.retry = may_retry(RetryCause::connect);
  return failure;
}

Exchange::Failure Exchange::broken(const error_code& error, bool first_seen) {
  Failure failure{{Outcome::replica_error, false, Nanos{0}, error.message()}, 502, "upstream_reset"};
  if (client_.gone()) {
    failure.report.outcome = Outcome::cancelled;
  } else if (error == beast::error::timeout) {
    const bool over = std::chrono::steady_clock::now() >= deadline_;
    count_timeout(failure, over ? Timeout::total : first_seen ? Timeout::inter_token : Timeout::first_token);
  } else {
    failure.retry = may_retry(RetryCause::reset);
  }
  return failure;
}

}  // namespace warmroute::gateway
