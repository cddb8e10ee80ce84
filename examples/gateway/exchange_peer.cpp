// Another gateway's requests: forwarded once, answered there, and served here after all where it cannot be reached.
#include <algorithm>
#include <utility>

#include "gateway/classes.hpp"
#include "gateway/exchange.hpp"
#include "gateway/peers.hpp"

namespace warmroute::gateway {

namespace http = examples::http;
using examples::error_code;

/// Reads the body for its key alone. What cannot be read is refused here. returns: whose it is; null: it is served here.
const Upstream* Exchange::owner() {
  Shared& shared = worker_.shared;
  mine_ = mark_.believed;
  if (mark_.there || !target_.routed) return nullptr;
  Request request;
  if (target_.body) {
    const auto body = worker_.parser.parse(*target_.body, request_.body(), shared.body_options());
    if (!body) return nullptr;
    request = body->request();
  }
  add_path(target_, request);
  if (request.session.empty()) request.session = view(request_["x-session-id"]);
  stream_wanted_ = request.stream;
  const Upstream* peer = shared.peers->owner(request, shared.router.policy());
  mine_ = peer == nullptr;
  return peer;
}

/// returns: whether the client has its answer, or has gone. Else nothing was sent to it, and the request is served here: without
/// cost where the other gateway could not be reached, since nobody did anything yet; as a retry, which the budget must allow, where
/// it had the request and may have sent it on.
Awaitable<bool> Exchange::forwarded() {
  Shared& shared = worker_.shared;
  const Upstream* peer = owner();
  if (peer == nullptr) co_return false;
  Peers& peers = *shared.peers;
  const auto said = class_by_address(shared.config.classes, request_, mark_, client_.address());
  if (!said) co_return false;  // it is refused here
  const std::string mark = peers.write_mark(*peer, *said);
  const auto request = peer_request(request_, peer->host + ":" + std::to_string(peer->port), mark);
  std::optional<Parser> parser;
  auto failure = co_await send_and_read_head(*peer, request, false, parser);
  if (!failure) failure = co_await relay_peer(*peer, *parser);
  upstream_.reset();
  if (!failure) {
    peers.report(*peer, {});
    peers.counters().forwarded.fetch_add(1, std::memory_order_relaxed);
    co_return true;
  }
  peers.report(*peer, failure->report);
  if (client_.gone()) co_return true;
  if (client_.begun()) {  // half an answer is no answer
    shared.counters.answers_cut.fetch_add(1, std::memory_order_relaxed);
    client_.cut();
    co_return true;
  }
  const auto fall_back = [&](FallBack why) {
    peers.counters().fell_back[static_cast<std::size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  };
  const bool in_time = std::chrono::steady_clock::now() < deadline_;
  if (in_time && failure->report.outcome == Outcome::connect_error) {
    fall_back(FallBack::connect);
    co_return false;
  }
  if (in_time && failure->cause && !shared.stopping) {
    if (shared.retries.take()) {
      shared.counters.retried(*failure->cause);
      fall_back(FallBack::broken);
      co_return false;
    }
    shared.counters.retries_refused.fetch_add(1, std::memory_order_relaxed);
  }
  Refusal refusal{failure->status, "upstream_error", std::string(failure->code),
                  "gateway " + peer->name + ": " + failure->report.reason};
  co_await refuse(std::move(refusal));
  co_return true;
}

/// Piece by piece as it comes, untouched. The head waits for the first piece, as in relay().
Awaitable<std::optional<Exchange::Failure>> Exchange::relay_peer(const Upstream& peer, Parser& parser) {
  for (;;) {
    std::string_view bytes;
    if (!parser.is_done()) {
      const error_code error = co_await read_piece(parser, peer_deadline(), bytes);
      if (error) co_return broken(error, true);
    }
    if (!client_.begun() && (!bytes.empty() || parser.is_done())) {
      if (worker_.shared.stopping) client_.close_after_answer();
      ResponseHead head = relayed_head(parser.get());
      co_await client_.begin(head);
    }
    co_await client_.write(bytes);
    if (client_.gone()) co_return cancelled();
    if (parser.is_done()) break;
  }
  if (parser.keep_alive() && upstream_->buffer.size() == 0 && !upstream_->broken_write)
    worker_.pool.give_back(peer, std::exchange(upstream_, nullptr));
  co_await client_.end();
  co_return std::nullopt;
}

/// The other gateway keeps the timeouts, and says so when one is over; this one is for gateways that say nothing any more.
TimePoint Exchange::peer_deadline() const {
  if (!stream_wanted_) return deadline_;
  const Config& config = worker_.shared.config;
  const auto silence = std::max(config.first_token_timeout, config.inter_token_timeout) + std::chrono::seconds(1);
  return std::min(deadline_, std::chrono::steady_clock::now() + silence);
}

}  // namespace warmroute::gateway
