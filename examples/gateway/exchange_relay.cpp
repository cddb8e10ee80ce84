// The answer's way through an exchange: pieces to the client, the books, and clients that leave.
#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "gateway/exchange.hpp"
#include "gateway/heads.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace beast = examples::beast;
namespace http = examples::http;
using examples::error_code;
using examples::into;

namespace {

/// What of an answer's usage the router learns from.
UsageCounts counts_of(const Usage& usage) {
  return {usage.input_tokens.value_or(kUnknown), usage.cached_input_tokens.value_or(kUnknown),
          usage.output_tokens.value_or(kUnknown)};
}

bool is_event_stream(const ResponseHead& head) {
  const auto type = head[http::field::content_type];
  return beast::iequals(type.substr(0, std::min<std::size_t>(type.size(), 17)), "text/event-stream");
}

}  // namespace

/// Passes the answer on, piece by piece as it comes. The head waits for the first piece: a replica that dies in between has sent
/// the client nothing yet, and the request may still go elsewhere.
Awaitable<std::optional<Exchange::Failure>> Exchange::relay(Choice& choice, Parser& parser) {
  const bool good = outcome_of_status(parser.get().result_int()) == Outcome::finished;
  bool first_seen = false;
  bool transferred = kv_parameters_.empty();
  if (good && hides_usage_ && is_event_stream(parser.get())) filter_.emplace();
  for (;;) {
    std::string_view bytes;
    if (!parser.is_done()) {
      const error_code error = co_await read_piece(parser, token_deadline(first_seen), bytes);
      if (error) co_return end_broken(choice, error, first_seen);
    }
    if (good && !transferred && !bytes.empty()) {
      transferred = true;  // it answers, so it has the KV
      (void)worker_.shared.router.transfer_done(choice.decision.ticket, now());
    }
    Account::Fed fed;
    if (good) fed = account_.feed(bytes);
    if (fed.first_token) {
      first_seen = true;
      choice.ticket.first_token();
    }
    if (parser.is_done()) {
      settle(choice, parser);
    } else if (good && account_.ends_in(bytes)) {
      account_.end(Ending::answered);  // the client may have its last byte before we have ours
    }
    co_await pass_on(choice, parser, bytes);
    if (client_.gone() && !reads_on(bytes.size())) co_return cancelled();
    if (parser.is_done()) break;
    if (fed.stop) {
      co_await stop_here(choice);
      co_return std::nullopt;
    }
  }
  co_await client_.end();
  co_return std::nullopt;
}

Awaitable<error_code> Exchange::read_piece(Parser& parser, TimePoint deadline, std::string_view& bytes) {
  const std::shared_ptr<Connection> connection = upstream_;
  error_code error;
  parser.get().body() = {piece_.data(), piece_.size(), true};
  connection->stream.expires_at(deadline);
  co_await http::async_read_some(connection->stream, connection->buffer, parser, into(error));
  bytes = {piece_.data(), piece_.size() - parser.get().body().size};
  co_return error == http::error::need_buffer ? error_code{} : error;
}

/// The head with the first piece, then pieces, less the usage event that the client did not ask for.
Awaitable<void> Exchange::pass_on(Choice& choice, Parser& parser, std::string_view bytes) {
  if (client_.gone()) co_return;
  if (!client_.begun() && (!bytes.empty() || parser.is_done())) {
    if (worker_.shared.stopping) client_.close_after_answer();
    const ResponseHead head = head_for_client(choice, parser);
    co_await client_.begin(head);
  }
  if (!filter_) {
    co_await client_.write(bytes);
    co_return;
  }
  filtered_.clear();
  filter_->feed(bytes, filtered_);
  if (parser.is_done()) {
    filter_->finish(filtered_);
    if (filter_->removed()) account_.counters().usage_hidden.fetch_add(1, std::memory_order_relaxed);
  }
  co_await client_.write(filtered_);
}

/// The answer broke off. returns: the failure, if the client has seen nothing of it.
std::optional<Exchange::Failure> Exchange::end_broken(Choice& choice, const error_code& error, bool first_seen) {
  Failure failure = broken(error, first_seen);
  if (drain_) account_.counters().drains_cut.fetch_add(1, std::memory_order_relaxed);
  if (!client_.begun()) return failure;
  choice.ticket.fail(failure.report.outcome);
  account_.end(failure.ending == Ending::lost ? Ending::cut : failure.ending);
  if (client_.gone()) return std::nullopt;
  // An answer that is merely long says nothing about its replica.
  if (failure.code != "total_timeout") worker_.shared.fleet.report(*choice.upstream, failure.report);
  worker_.shared.counters.answers_cut.fetch_add(1, std::memory_order_relaxed);
  client_.cut();
  return std::nullopt;
}

/// A budget is gone: the model server stops, and the client is told in the words of its API.
Awaitable<void> Exchange::stop_here(Choice& choice) {
  account_.end(Ending::stopped);
  account_.counters().hard_stops.fetch_add(1, std::memory_order_relaxed);
  choice.ticket.fail(Outcome::cancelled);
  upstream_->close();
  if (!filter_ && !account_.meter().is_stream()) {
    client_.cut();
    co_return;
  }
  std::string event =
      "data: " + examples::openai_error("the budget is used up", "insufficient_quota", "insufficient_quota") + "\n\n";
  if (target_.answer == AnswerApi::messages) {
    event =
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"billing_error\","
        "\"message\":\"the budget is used up\"}}\n\n";
  }
  client_.close_after_answer();
  co_await client_.write(event);
  co_await client_.end();
}

/// The model server's answer is whole. The books are settled before the client has it all and may ask again.
void Exchange::settle(Choice& choice, Parser& parser) {
  const Outcome outcome = outcome_of_status(parser.get().result_int());
  if (outcome == Outcome::finished) {
    account_.body_ended();
    account_.end(Ending::answered);
    UsageCounts counts = counts_of(account_.meter().report().usage);
    if (choice.decision.is_pair())
      counts.cached_tokens = prefill_cached_;  // the other server's word is of what it was sent
    choice.ticket.finish(counts);
  } else {
    account_.end(Ending::refused);
    choice.ticket.fail(outcome,
                       outcome == Outcome::backpressure ? retry_after_of(parser.get(), kMostPoolWait) : Nanos{0});
  }
  drain_timer_.reset();
  if (drain_) account_.counters().drained.fetch_add(1, std::memory_order_relaxed);
  worker_.shared.fleet.report(*choice.upstream, {outcome, false, retry_after_of(parser.get()),
                                                 "status " + std::to_string(parser.get().result_int())});
  if (parser.keep_alive() && upstream_->buffer.size() == 0 && !upstream_->broken_write)
    worker_.pool.give_back(*choice.upstream, std::exchange(upstream_, nullptr));
}

ResponseHead Exchange::head_for_client(const Choice& choice, const Parser& parser) const {
  const std::int64_t expected = choice.decision.routed() ? choice.decision.total_cached().value : -1;
  ResponseHead head = client_head(parser.get(), choice.upstream->name, expected);
  if (!kv_parameters_.empty())
    head.set("x-warmroute-prefill-replica", worker_.shared.fleet.find(choice.decision.prefill_replica)->name);
  for (const auto& [name, value] : account_.headers()) head.set(name, value);
  if (!account_.operation().empty()) head.set("x-warmroute-operation", account_.operation());
  if (filter_) head.erase(http::field::content_length);  // an event less
  if (worker_.shared.peers != nullptr) {
    head.set("x-warmroute-gateway", worker_.shared.peers->self());
    const std::string cookie = mine_ ? worker_.shared.peers->cookie_for(request_) : std::string();
    if (!cookie.empty()) head.insert(http::field::set_cookie, cookie);
  }
  return head;
}

/// A client's key is for its own house: somebody else's server gets the one it gave us, or none.
UpstreamKey Exchange::upstream_key(const Upstream& upstream) const {
  const Accounting& books = worker_.shared.books;
  if (upstream.external || !upstream.key.empty()) return {true, upstream.key, target_.answer};
  const std::string& key = books.upstream_key();
  return {books.checks_keys() || !key.empty(), key, target_.answer};
}

// ---------------------------------------------------------------- clients that leave

/// Called at once. The model server sees it, too, and stops computing; unless its answer is to be read on for what it says it used.
void Exchange::client_left() {
  if (!upstream_) return;
  const Shared& shared = worker_.shared;
  const HangupPolicy& policy = shared.books.config().hangup;
  if (account_.operation().empty() || policy.mode == HangupMode::cut || shared.stopping) return upstream_->close();
  drain_.emplace(policy, now());
  // A read that waits has a deadline of its own; this one ends it. Without the timer the connection may be another request's by now.
  drain_timer_ = std::make_shared<asio::steady_timer>(worker_.io);
  drain_timer_->expires_after(std::chrono::nanoseconds(policy.max_drain.value));
  drain_timer_->async_wait(
      [alive = std::weak_ptr<asio::steady_timer>(drain_timer_), connection = upstream_](error_code error) {
        if (!error && alive.lock()) connection->close();
      });
}

/// returns: whether the answer of a client that left is read on.
bool Exchange::reads_on(std::size_t more_bytes) {
  if (!drain_ || worker_.shared.stopping) return false;
  if (drain_->go_on(more_bytes, now(), account_.has_last_word())) return true;
  if (account_.has_last_word()) return true;  // what is left is a few bytes, and the connection can be kept
  account_.counters().drains_cut.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace warmroute::gateway
