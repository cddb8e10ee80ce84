// Prefill on one server, decode on another: the first half of such a request.
#include <utility>

#include "gateway/body_edit.hpp"
#include "gateway/exchange.hpp"
#include "gateway/model_name.hpp"

namespace warmroute::gateway {

using examples::error_code;

constexpr std::size_t kMostPrefillAnswer = std::size_t{16} << 20;

/// Asks the server that prefills, and keeps what it says of where the KV lies. Where it cannot be had (no connection, a status, no
/// parameters, an API that has none), the decode server gets the whole request: it was to have it anyway, so this is no retry.
/// returns: what ends the attempt: a client that left, a journal that takes nothing.
Awaitable<std::optional<Exchange::Failure>> Exchange::prefill(Choice& choice) {
  Shared& shared = worker_.shared;
  const Upstream* const first = shared.fleet.find(choice.decision.prefill_replica);
  const bool known = target_.body == BodyApi::chat || target_.body == BodyApi::completions;
  std::string answer;
  if (first != nullptr && known) {
    const bool renamed = !choice.model.empty() && choice.model != asked_model_;
    const std::string body = prefill_body(renamed ? with_model(request_.body(), choice.model) : request_.body());
    UpstreamWay way;
    way.target = upstream_target(view(request_.target()), target_, {}, first->path);
    const auto request = upstream_request(request_, body, first->authority, first->dp_rank, upstream_key(*first), way);
    // On record before it leaves, under the server that will answer.
    if (!account_.begin(choice.upstream->name, choice.upstream->meter)) co_return no_journal();
    std::optional<Parser> parser;
    auto failure = co_await send_and_read_head(*first, request, true, parser);
    if (!failure) failure = co_await read_prefill(*first, *parser, answer);
    upstream_.reset();
    if (client_.gone()) co_return cancelled();
    shared.fleet.report(*first, failure ? failure->report : Report{});
  }
  auto said = read_prefill_answer(answer);
  kv_parameters_ = std::move(said.parameters);
  prefill_cached_ = said.cached_tokens;
  if (!kv_parameters_.empty()) {
    choice.ticket.first_token();
    shared.counters.pairs.fetch_add(1, std::memory_order_relaxed);
  } else {
    (void)shared.router.transfer_done(choice.decision.ticket, now());  // nothing is fetched from there
    shared.counters.pairs_whole.fetch_add(1, std::memory_order_relaxed);
  }
  co_return std::nullopt;
}

/// Reads a whole answer. returns: its status as a failure, where it is none of success.
Awaitable<std::optional<Exchange::Failure>> Exchange::read_prefill(const Upstream& first, Parser& parser,
                                                                   std::string& answer) {
  const unsigned status = parser.get().result_int();
  while (!parser.is_done()) {
    std::string_view bytes;
    const error_code error = co_await read_piece(parser, token_deadline(false), bytes);
    if (error || answer.size() + bytes.size() > kMostPrefillAnswer) {
      answer.clear();
      co_return broken(error ? error : error_code(examples::asio::error::message_size), false);
    }
    answer.append(bytes);
  }
  const Outcome outcome = outcome_of_status(status);
  std::optional<Failure> failure;
  if (outcome != Outcome::finished) {
    failure.emplace();
    failure->report = {outcome, false, retry_after_of(parser.get()), "status " + std::to_string(status)};
    answer.clear();
  }
  if (parser.keep_alive() && upstream_->buffer.size() == 0 && !upstream_->broken_write)
    worker_.pool.give_back(first, std::exchange(upstream_, nullptr));
  co_return failure;
}

}  // namespace warmroute::gateway
