// The routing half of an exchange: what the router is asked, what its verdicts mean, when to try again.
#include "gateway/exchange.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/text.hpp"
#include "gateway/heads.hpp"

namespace warmroute::gateway {

namespace asio = examples::asio;
namespace beast = examples::beast;
namespace http = examples::http;
using examples::error_code;
using examples::into;

Exchange::Exchange(Worker& worker, Client& client, const ClientRequest& request)
    : worker_(worker),
      client_(client),
      request_(request),
      deadline_(std::chrono::steady_clock::now() + worker.shared.config.total_timeout) {
  if (request.method() != http::verb::post) return;
  if (const auto api = api_for_path(view(request.target()))) api_ = *api;
}

Awaitable<void> Exchange::run() {
  Shared& shared = worker_.shared;
  const Gauge in_flight(shared.counters.requests_in_flight);
  client_.begin_exchange(request_, deadline_, [this] {
    if (upstream_) upstream_->close();  // the model server sees it at once and stops computing
  });
  shared.retries.request();
  if (shared.stopping) client_.close_after_answer();
  Choice choice;
  for (;;) {
    if (const auto bad = choose(choice)) {
      const bool too_large = bad->code == Code::too_large;
      std::string message = bad->message;
      if (bad->offset != kNoOffset) message += " (byte " + std::to_string(bad->offset) + ")";
      co_await send_error(too_large ? 413 : 400, "invalid_request_error", code_name(bad->code), message);
      break;
    }
    if (choice.upstream == nullptr) {
      co_await refuse(choice.decision);
      break;
    }
    const auto failure = co_await attempt(choice);
    upstream_.reset();
    if (!failure) break;
    choice.ticket.fail(failure->report.outcome);
    shared.fleet.report(*choice.upstream, failure->report);
    if (client_.gone()) break;
    if (!failure->retry) {
      const std::string message = choice.upstream->name + ": " + failure->report.reason;
      co_await send_error(failure->status, "upstream_error", failure->code, message);
      break;
    }
  }
  if (client_.gone()) shared.counters.client_aborts.fetch_add(1, std::memory_order_relaxed);
  shared.counters.answered(client_.gone() ? kClientGone : client_.status());
}

// ---------------------------------------------------------------- where to

/// Asks the router. A retry reads the body again: that is rarer, and cheaper, than keeping every prompt's blocks while it is
/// in flight. errors: as RequestBodyParser::parse.
std::optional<Error> Exchange::decide(bool book, Decision& decision) {
  Shared& shared = worker_.shared;
  const auto body = worker_.parser.parse(*api_, request_.body(), shared.body_options());
  if (!body) return body.error();
  stream_wanted_ = body->stream;
  Request request = body->request();
  if (request.session.empty()) request.session = view(request_["x-session-id"]);
  std::vector<ReplicaId> excluded = tried_;
  shared.fleet.append_busy(excluded);
  request.excluded = excluded;
  const auto ask = [&] { return book ? shared.router.route(request, now()) : shared.router.peek(request, now()); };
  decision = ask();
  if (decision.verdict == Verdict::all_excluded && excluded.size() > tried_.size()) {
    request.excluded = tried_;  // everybody is busy: then one of those
    decision = ask();
  }
  return std::nullopt;
}

std::optional<Error> Exchange::choose(Choice& choice) {
  Shared& shared = worker_.shared;
  choice = {};
  if (!api_) {
    choice.upstream = shared.fleet.any_up(tried_);
    return std::nullopt;
  }
  if (auto bad = decide(true, choice.decision)) return bad;
  if (!choice.decision.routed()) return std::nullopt;
  choice.ticket = TicketGuard(shared.router, choice.decision.ticket);
  choice.upstream = shared.fleet.find(choice.decision.replica);
  return std::nullopt;
}

/// returns: whether a further replica that is up would take the request.
bool Exchange::somebody_else() {
  if (!api_) return worker_.shared.fleet.any_up(tried_) != nullptr;
  Decision decision;
  return !decide(false, decision) && decision.routed() && decision.reason != Reason::fail_open;
}

/// Nothing was sent to the client, it is still there, somebody else is, and the budget allows it.
bool Exchange::may_retry(RetryCause cause) {
  const Shared& shared = worker_.shared;
  if (client_.begun() || client_.gone() || shared.stopping) return false;
  if (std::ssize(tried_) >= shared.config.max_attempts || std::chrono::steady_clock::now() >= deadline_) return false;
  if (!somebody_else()) return false;
  if (!shared.retries.take()) {
    shared.counters.retries_refused.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  shared.counters.retried(cause);
  return true;
}

// ---------------------------------------------------------------- answers of our own

/// A decision without a replica is no error of the gateway: its verdict says what to tell the client.
Awaitable<void> Exchange::refuse(const Decision& decision) {
  unsigned status = 503;
  std::string_view type = "service_unavailable", code = verdict_name(decision.verdict);
  std::string message = "no replica can take the request now";
  switch (decision.verdict) {
    case Verdict::no_pool: status = 404, code = "model_not_found", message = "no replica serves this model"; break;
    case Verdict::no_adapter:
      status = 404, code = "adapter_not_found", message = "no replica that is up carries this adapter";
      break;
    case Verdict::not_permitted:
    case Verdict::no_permitted_pool: status = 403, message = "policy does not permit this request"; break;
    case Verdict::saturated:
      status = 429, type = "rate_limit_error", message = "all replicas are at their limits";
      break;
    case Verdict::routed:
    case Verdict::no_replica:
    case Verdict::all_excluded:
    case Verdict::ticket_table_full: break;
  }
  if (status < 429) {
    co_await send_error(status, "invalid_request_error", code, message);
  } else {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const auto wait_s = std::clamp<std::int64_t>((decision.retry_after.value + kSecond - 1) / kSecond, 1, 3'600);
    co_await send_error(status, type, code, message, static_cast<int>(wait_s));
  }
}

Awaitable<void> Exchange::send_error(unsigned status, std::string_view type, std::string_view code,
                                     const std::string& message, int retry_after_s) {
  const std::string body = examples::openai_error(message, type, code);
  co_await client_.send(status, "application/json", body, retry_after_s);
}

}  // namespace warmroute::gateway
