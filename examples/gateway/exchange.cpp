// The routing half of an exchange: what the router is asked, what its verdicts mean, when to try again.
#include "gateway/exchange.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/text.hpp"
#include "gateway/classes.hpp"
#include "gateway/credentials.hpp"
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
      deadline_(std::chrono::steady_clock::now() + worker.shared.config.total_timeout),
      target_(target_of(request)),
      mark_(worker.shared.peers == nullptr ? Mark{} : worker.shared.peers->read_mark(request)),
      account_(worker.shared.books, target_),
      body_(request.body()) {}

Awaitable<void> Exchange::run() {
  Shared& shared = worker_.shared;
  const Gauge in_flight(shared.counters.requests_in_flight);
  client_.begin_exchange(request_, deadline_, [this] { client_left(); });
  shared.retries.request();
  if (shared.stopping) client_.close_after_answer();
  std::string scratch;
  if (shared.peers != nullptr && co_await forwarded()) {
    // It was another gateway's, which asked for the key and did all that follows.
  } else if (auto refusal = account_.identify(client_key(request_, scratch))) {
    co_await refuse(std::move(*refusal));
  } else if (auto wrong = classify()) {
    co_await refuse(std::move(*wrong));
  } else {
    co_await serve();
  }
  if (client_.gone()) shared.counters.client_aborts.fetch_add(1, std::memory_order_relaxed);
  shared.counters.answered(client_.gone() ? kClientGone : client_.status());
}

/// Attempt after attempt, until the client has an answer or there is nothing left to try.
Awaitable<void> Exchange::serve() {
  Shared& shared = worker_.shared;
  Choice choice;
  for (;;) {
    if (auto refusal = choose(choice)) {
      co_await refuse(std::move(*refusal));
      break;
    }
    const auto failure = co_await attempt(choice);
    upstream_.reset();
    if (!failure) break;
    const bool again = failure->retry || (failure->cause && may_retry(*failure->cause));
    account_.end(failure->ending);
    choice.ticket.fail(failure->report.outcome, failure->retry_after);
    shared.fleet.report(*choice.upstream, failure->report);
    if (client_.gone()) break;
    if (!again) {
      Refusal refusal{failure->status, "upstream_error", std::string(failure->code),
                      choice.upstream->name + ": " + failure->report.reason};
      co_await refuse(std::move(refusal));
      break;
    }
  }
}

// ---------------------------------------------------------------- where to

/// Whose word counts is in classes.hpp. returns: 400.
std::optional<Refusal> Exchange::classify() {
  const auto found = class_of(worker_.shared.config.classes, request_, mark_, client_.address(), account_.grant());
  if (!found)
    return Refusal{400, "invalid_request_error", std::string(code_name(found.error().code)), found.error().message};
  class_id_ = *found;
  return std::nullopt;
}

/// Asks the router. A retry reads the body again: that is rarer, and cheaper, than keeping every prompt's blocks while it is
/// in flight. returns: 4xx of a body that cannot be read, and what the books say.
std::optional<Refusal> Exchange::decide(bool book, Choice& choice) {
  Shared& shared = worker_.shared;
  Request request;
  if (target_.body) {
    RequestBodyOptions options = shared.body_options();
    options.tenant = account_.grant().team_id;  // which tenants share what is cached is the policy's to say
    const auto body = worker_.parser.parse(*target_.body, request_.body(), options);
    if (!body) {
      const Error& bad = body.error();
      const std::string where = bad.offset == kNoOffset ? "" : " (byte " + std::to_string(bad.offset) + ")";
      return Refusal{bad.code == Code::too_large ? 413u : 400u, "invalid_request_error",
                     std::string(code_name(bad.code)), bad.message + where};
    }
    request = body->request();
  } else {
    request.tenant = account_.grant().team_id;
    request.prompt_bytes = static_cast<std::int64_t>(request_.body().size());
  }
  add_path(target_, request);
  stream_wanted_ = request.stream;
  if (request.session.empty()) request.session = view(request_["x-session-id"]);
  request.class_id = class_id_;
  asked_model_ = request.model;
  if (auto refusal = enter(request)) return refusal;
  std::vector<ReplicaId> excluded = tried_;
  shared.fleet.append_busy(excluded);
  request.excluded = excluded;
  ask(request, book, choice);
  if (choice.decision.verdict == Verdict::all_excluded && excluded.size() > tried_.size()) {
    request.excluded = tried_;  // everybody is busy: then one of those
    ask(request, book, choice);
  }
  choice.upstream = choice.decision.routed() ? shared.fleet.find(choice.decision.replica) : nullptr;
  if (book && choice.upstream != nullptr && shared.shares != nullptr) shared.shares->placed(choice.decision, request);
  return std::nullopt;
}

void Exchange::ask(const Request& request, bool book, Choice& choice) {
  const Shared& shared = worker_.shared;
  if (!book) {
    choice.decision = shared.router.peek(request, now());
  } else if (shared.models == nullptr) {
    choice.decision = shared.router.route(request, now());
    if (choice.decision.routed()) choice.ticket = TicketGuard(shared.router, choice.decision.ticket);
  } else {
    const ModelDecision decided = shared.models->route(request, now());
    choice.decision = decided.decision;
    choice.model = decided.model;
    if (decided.routed()) choice.ticket = TicketGuard(*shared.models, decided.ticket);
  }
}

/// Before the first attempt: reserves what the request may use, and asks a stream for its usage.
std::optional<Refusal> Exchange::enter(const Request& request) {
  if (std::exchange(entered_, true)) return std::nullopt;
  if (mark_.there && target_.routed) worker_.shared.peers->received(mark_, request, worker_.shared.router.policy());
  if (auto refusal = account_.admit(request, request_.body())) return refusal;
  const bool can = target_.body == BodyApi::chat || target_.body == BodyApi::completions;
  if (!can || !stream_wanted_ || !worker_.shared.books.config().asks_for_usage()) return std::nullopt;
  const auto ask = ask_for_usage(request_.body());
  if (!ask || ask->asked || ask->splice.empty()) return std::nullopt;
  asking_body_ = spliced(request_.body(), ask->splice);
  body_ = asking_body_;
  hides_usage_ = true;
  return std::nullopt;
}

/// returns: why there is no choice.
std::optional<Refusal> Exchange::choose(Choice& choice) {
  Shared& shared = worker_.shared;
  choice = {};
  if (next_) {
    choice = std::move(*next_);
    next_.reset();
  } else if (target_.routed) {
    if (auto refusal = decide(true, choice)) return refusal;
  } else {
    Request request;
    request.prompt_bytes = static_cast<std::int64_t>(request_.body().size());
    if (auto refusal = enter(request)) return refusal;
    choice.upstream = shared.fleet.any_up(tried_);
  }
  if (choice.upstream == nullptr) return refusal_of(choice.decision);
  return std::nullopt;
}

/// returns: whether a further replica that is up would take the request.
bool Exchange::somebody_else() {
  if (!target_.routed) return worker_.shared.fleet.any_up(tried_) != nullptr;
  // Where several pools are tried in turn, looking is deciding: what comes of it is kept, and is given back if it is not paid.
  const bool keep = worker_.shared.models != nullptr;
  Choice choice;
  if (decide(keep, choice) || !choice.decision.routed() || choice.decision.reason == Reason::fail_open) return false;
  if (keep) next_ = std::move(choice);
  return true;
}

/// Nothing was sent to the client, it is still there, somebody else is, and the budget allows it.
bool Exchange::may_retry(RetryCause cause) {
  const Shared& shared = worker_.shared;
  if (client_.begun() || client_.gone() || shared.stopping) return false;
  if (std::ssize(tried_) >= shared.config.max_attempts || std::chrono::steady_clock::now() >= deadline_) return false;
  if (!somebody_else()) return false;
  if (!shared.retries.take()) {
    shared.counters.retries_refused.fetch_add(1, std::memory_order_relaxed);
    if (next_) next_->ticket.fail(Outcome::connect_error);  // it never got there: quotas take nothing for it
    next_.reset();
    return false;
  }
  shared.counters.retried(cause);
  return true;
}

// ---------------------------------------------------------------- answers of our own

/// A decision without a replica is no error of the gateway: its verdict says what to tell the client.
Refusal Exchange::refusal_of(const Decision& decision) {
  Refusal refusal{503, "service_unavailable", std::string(verdict_name(decision.verdict)),
                  "no replica can take the request now"};
  const auto say = [&](unsigned status, const char* type, const char* message) {
    refusal.status = status;
    refusal.type = type;
    refusal.message = message;
  };
  switch (decision.verdict) {
    case Verdict::no_pool:
      say(404, "invalid_request_error", "no replica serves this model");
      refusal.code = "model_not_found";
      break;
    case Verdict::no_adapter:
      say(404, "invalid_request_error", "no replica that is up carries this adapter");
      refusal.code = "adapter_not_found";
      break;
    case Verdict::not_permitted: say(403, "invalid_request_error", "policy does not permit this request"); break;
    case Verdict::no_permitted_pool:
      say(403, "invalid_request_error",
          "every pool that serves this model is outside, and requests of this class may not leave");
      break;
    case Verdict::saturated: say(429, "rate_limit_error", "all that serves this model is at its limits"); break;
    case Verdict::routed:
    case Verdict::no_replica:
    case Verdict::all_excluded:
    case Verdict::ticket_table_full: break;
  }
  if (refusal.status >= 429) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const auto wait_s = std::clamp<std::int64_t>((decision.retry_after.value + kSecond - 1) / kSecond, 1, 3'600);
    refusal.headers.emplace_back("retry-after", std::to_string(wait_s));
  }
  return refusal;
}

/// What was reserved is free again before the client knows.
Awaitable<void> Exchange::refuse(Refusal refusal) {
  account_.close();
  const std::string body = examples::openai_error(refusal.message, refusal.type, refusal.code);
  co_await client_.send(refusal.status, "application/json", body, refusal.headers);
}

}  // namespace warmroute::gateway
