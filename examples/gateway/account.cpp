// One request's entries, see account.hpp.
#include "gateway/account.hpp"

#include <algorithm>
#include <utility>

namespace warmroute::gateway {

namespace {

constexpr std::size_t kMostNameBytes = 256;  // of a model in the books: clients make up the names

UsageCount known(std::int64_t count) { return count < 0 ? UsageCount{} : UsageCount{count}; }

LimitUse use_of(const Usage& usage, const Cost& cost) {
  return {usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, cost.picos};
}

std::string limit_text(const LimitDecision& decision, Limits& limits) {
  const auto [dimension, value] = limits.name(decision.scope);
  const auto all = limits.limits(decision.scope);
  const std::string name = decision.limit < all.size() ? all[decision.limit].name : std::string("?");
  return "'" + name + "' of this " + dimension;
}

}  // namespace

std::optional<Refusal> Account::identify(std::string_view key) {
  if (!books_.checks_keys()) return std::nullopt;
  if (books_.keys().generation() == 0)
    return Refusal{503, "service_unavailable", "keys_unavailable", "keys cannot be checked now"};
  const KeyVerdict verdict = books_.keys().check(key, usage_now(), grant_);
  books_.counters().keys[static_cast<std::size_t>(verdict) % books_.counters().keys.size()].fetch_add(
      1, std::memory_order_relaxed);
  if (verdict == KeyVerdict::accepted) return std::nullopt;
  if (key_verdict_status(verdict) != 401)
    return Refusal{503, "service_unavailable", "keys_unavailable", "keys cannot be checked now"};
  // Why it is not accepted is for the metrics page alone.
  Refusal refusal{401, "authentication_error", "invalid_api_key", "no valid API key was given"};
  refusal.headers.emplace_back("www-authenticate", "Bearer");
  return refusal;
}

std::optional<Refusal> Account::admit(const Request& request, std::string_view body) {
  if (admitted_ || !books_.counts() || !target_.counted) return std::nullopt;
  admitted_ = true;
  asked_model_ = request.model.substr(0, kMostNameBytes);
  model_ = books_.model_name(request.model);
  stream_ = request.stream;
  prompt_bytes_ = request.prompt_bytes;
  prices_ = books_.prices().get();
  operation_ = books_.next_operation();
  if (request.class_id != 0) class_ = std::to_string(request.class_id);
  tier_ = requested_tier(body).substr(0, kMostNameBytes);
  meter_options_.api = target_.answer;
  meter_options_.requested_tier = tier_;
  const UsageCount output = target_.answer == AnswerApi::embeddings ? UsageCount{0} : known(request.max_output_tokens);
  estimate_ =
      books_.estimator(model_).estimate(std::max<std::int64_t>(0, prompt_bytes_), known(request.input_tokens), output);
  const UsageReport report = estimated();
  const auto scopes = books_.scopes(grant_.key_id, grant_.team_id, model_);
  LimitDecision decision;
  if (scopes) {
    decision = books_.limits().reserve(*scopes, use_of(report.usage, cost_of(report)), usage_now());
  } else {
    decision.outcome = LimitOutcome::no_room;
  }
  auto& outcomes = books_.counters().limits;
  outcomes[static_cast<std::size_t>(decision.outcome) % outcomes.size()].fetch_add(1, std::memory_order_relaxed);
  if (decision.shadow_denied) books_.counters().shadow_denied.fetch_add(1, std::memory_order_relaxed);
  ticket_ = decision.ticket;
  may_stop_ = decision.may_stop;
  headers_ = limit_headers(decision);
  return denied(decision);
}

/// The classes that clients tell apart: 429 heals by itself, 402 (or 403) does not, 400 never passes.
std::optional<Refusal> Account::denied(const LimitDecision& decision) const {
  if (decision.allowed()) return std::nullopt;
  const auto status = static_cast<unsigned>(limit_status(decision.outcome, books_.config().budget_status));
  Refusal refusal{status, "service_unavailable", "limits_unavailable", "limits cannot be checked now", headers_};
  const auto say = [&](const char* type, const char* code, std::string message) {
    refusal.type = type;
    refusal.code = code;
    refusal.message = std::move(message);
  };
  switch (decision.outcome) {
    case LimitOutcome::rate_exceeded:
      say("rate_limit_error", "rate_limit_exceeded",
          "the rate limit " + limit_text(decision, books_.limits()) + " is reached");
      break;
    case LimitOutcome::too_many_at_once:
      say("rate_limit_error", "too_many_requests",
          "too many requests at once: the limit " + limit_text(decision, books_.limits()) + " is reached");
      break;
    case LimitOutcome::budget_exceeded:
      say("insufficient_quota", "insufficient_quota",
          "the budget " + limit_text(decision, books_.limits()) + " is used up, or this request would exceed it");
      break;
    case LimitOutcome::larger_than_limit:
      say("invalid_request_error", "request_too_large",
          "the request alone exceeds the limit " + limit_text(decision, books_.limits()));
      break;
    case LimitOutcome::allowed:
    case LimitOutcome::no_room:
    case LimitOutcome::invalid: break;
  }
  return refusal;
}

Status Account::begin(std::string_view replica, const MeterProfile& profile) {
  meter_options_.profile = profile;
  meter_.reset(meter_options_);
  charged_revision_ = 0;
  if (!admitted_ || open_) return {};
  replica_ = replica;
  began_ = usage_now().wall;
  open_ = true;
  Journal* const journal = books_.journal();
  if (journal == nullptr) return {};
  const UsageReport guess = estimated();
  const Cost cost = cost_of(guess);
  UsageEvent estimate = event();
  estimate.usage = guess.usage;
  estimate.source = UsageSource::estimate;
  estimate.cost_picos = cost.picos;
  estimate.cost_source = cost.source;
  estimate.price_key = cost.price_key;
  const auto number = journal->begin(estimate);
  if (!number) {
    open_ = false;
    books_.counters().journal_refused.fetch_add(1, std::memory_order_relaxed);
    return number.error();
  }
  number_ = *number;
  return {};
}

Account::Fed Account::feed(std::string_view bytes) {
  Fed fed{meter_.feed(bytes), false};
  if (!open_ || !may_stop_ || ticket_ == kNoLimitTicket || !stream_) return fed;
  if (meter_.revision() == charged_revision_) return fed;
  charged_revision_ = meter_.revision();
  UsageReport report = meter_.report();
  (void)estimate_missing(report, {estimate_.input_tokens, report.output_events});
  const LimitProgress progress = books_.limits().progress(ticket_, use_of(report.usage, cost_of(report)), usage_now());
  fed.stop = progress == LimitProgress::stop && !report.complete;
  return fed;
}

/// Only the moment depends on this look at the text, not what is counted: Meter has parsed the same bytes.
bool Account::ends_in(std::string_view bytes) const {
  if (!open_ || !has_last_word()) return false;
  const std::string_view tail = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 256));
  switch (target_.answer) {
    case AnswerApi::openai: return tail.find("[DONE]") != std::string_view::npos;
    case AnswerApi::messages: return tail.find("message_stop") != std::string_view::npos;
    case AnswerApi::responses: return meter_.is_stream();  // its last event is the one with the usage
    default: return false;                                 // their clients wait for the end of the body
  }
}

/// returns: what an attempt that ended so used. An answer that was cut has what was seen of it; where nothing was, a stream had
/// produced nothing yet.
UsageReport Account::settled_report(Ending how) const {
  UsageReport report = meter_.report();
  switch (how) {
    case Ending::answered:  // by a server that does not say what it used
      if (!report.complete && target_.routed) (void)estimate_missing(report, estimate_);
      break;
    case Ending::refused:
      report.usage = {};
      report.usage.input_tokens = report.usage.output_tokens = 0;
      report.complete = report.error = true;
      report.source = UsageSource::estimate;
      break;
    case Ending::lost: report.error = true; break;
    case Ending::cut:
    case Ending::left:
    case Ending::stopped:
      if (how == Ending::cut) report.error = true;
      if (!report.complete)
        (void)estimate_missing(report,
                               {estimate_.input_tokens, stream_ ? report.output_events : estimate_.output_tokens});
      break;
  }
  return report;
}

void Account::end(Ending how) {
  if (!open_) return;
  open_ = false;
  const UsageReport report = settled_report(how);
  const Cost cost = cost_of(report);
  UsageEvent done = event();
  done.end_time = usage_now().wall;
  done.response_model = report.model;
  done.response_id = report.response_id;
  done.usage = report.usage;
  done.complete = report.complete;
  done.error = report.error;
  done.source = report.source;
  done.anomalies = report.anomalies;
  done.finish_reason = report.finish_reason;
  done.service_tier = report.service_tier;
  done.cost_picos = cost.picos;
  done.cost_source = cost.source;
  done.price_key = cost.price_key;
  done.bill = cost.bill();
  const std::string version = prices_ && cost.picos ? prices_->version() : std::string();
  done.price_table_version = version;
  ++attempts_;
  books_.record(std::exchange(number_, 0), done);
  if (how == Ending::refused || how == Ending::lost) return;  // another attempt may follow; else close() releases
  if (ticket_ != kNoLimitTicket)
    (void)books_.limits().settle(std::exchange(ticket_, kNoLimitTicket), use_of(report.usage, cost), usage_now());
  if (how == Ending::answered && report.complete && report.usage.input_tokens && prompt_bytes_ > 0)
    books_.estimator(model_).learn(prompt_bytes_, *report.usage.input_tokens);
}

void Account::close() {
  end(Ending::cut);
  if (ticket_ != kNoLimitTicket) (void)books_.limits().release(std::exchange(ticket_, kNoLimitTicket), usage_now());
}

/// returns: what the request may use, at the price of the tier that it asked for.
UsageReport Account::estimated() const {
  UsageReport report;
  report.usage.input_tokens = estimate_.input_tokens;
  report.usage.output_tokens = estimate_.output_tokens;
  report.service_tier = tier_;
  return report;
}

UsageEvent Account::event() const {
  UsageEvent event;
  event.operation_id = operation_;
  event.attempt = attempts_;
  event.start_time = began_;
  event.key_id = grant_.key_id;
  event.team_id = grant_.team_id;
  event.provider = target_.provider;
  event.operation = target_.operation;
  event.request_model = asked_model_;
  event.replica_id = replica_;
  event.class_id = class_;
  event.service_tier = tier_;
  return event;
}

/// By the model that answered; where its name has no price, by the one that was asked for.
Cost Account::cost_of(const UsageReport& report) const {
  if (!prices_) return {};
  if (!report.model.empty()) {
    const Cost cost = prices_->cost(report);
    if (cost.picos) return cost;
  }
  return prices_->cost(report, model_ == "*" ? std::string_view(asked_model_) : std::string_view(model_));
}

}  // namespace warmroute::gateway
