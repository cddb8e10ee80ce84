// Heads and status codes, see heads.hpp.
#include "gateway/heads.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "gateway/credentials.hpp"

namespace warmroute::gateway {

namespace beast = examples::beast;
namespace http = examples::http;

namespace {

/// RFC 9110 section 7.6.1: these concern one connection, as does whatever Connection names.
bool one_connection_only(const http::fields& fields, const http::fields::value_type& field) {
  constexpr std::array kNames{http::field::connection,
                              http::field::keep_alive,
                              http::field::proxy_authenticate,
                              http::field::proxy_authorization,
                              http::field::proxy_connection,
                              http::field::te,
                              http::field::trailer,
                              http::field::transfer_encoding,
                              http::field::upgrade};
  if (std::find(kNames.begin(), kNames.end(), field.name()) != kNames.end()) return true;
  return http::token_list(fields[http::field::connection]).exists(field.name_string());
}

/// returns: whether the next hop gets one of its own, or none.
bool this_hop_only(const http::fields& fields, const http::fields::value_type& field) {
  const auto name = field.name();
  return name == http::field::host || name == http::field::content_length || name == http::field::expect ||
         one_connection_only(fields, field);
}

/// returns: whether it says something of the client, or of this house, that somebody else's server need not know.
bool is_private(const http::fields::value_type& field) {
  const auto name = field.name();
  return name == http::field::cookie || name == http::field::forwarded || name == http::field::via ||
         beast::iequals(field.name_string().substr(0, 11), "x-forwarded") ||
         beast::iequals(field.name_string().substr(0, 11), "x-warmroute") ||
         beast::iequals(field.name_string(), "x-real-ip") || beast::iequals(field.name_string(), "x-session-id");
}

void set_key(UpstreamRequest& request, const UpstreamKey& key) {
  if (key.key.empty()) return;
  const std::string value(key.key);
  if (key.api == AnswerApi::messages) {
    request.set("x-api-key", value);
  } else if (key.api == AnswerApi::gemini) {
    request.set("x-goog-api-key", value);
  } else {
    request.set(http::field::authorization, "Bearer " + value);
  }
}

}  // namespace

UpstreamRequest upstream_request(const ClientRequest& request, std::string_view body, std::string_view host,
                                 std::optional<std::uint32_t> dp_rank, const UpstreamKey& key, const UpstreamWay& way) {
  UpstreamRequest out{request.method(), request.target(), 11};
  if (!way.target.empty()) out.target(way.target);
  if (request.method() == http::verb::unknown) out.method_string(request.method_string());
  for (const auto& field : request) {
    if (this_hop_only(request, field) || field.name() == http::field::accept_encoding ||
        beast::iequals(field.name_string(), "x-data-parallel-rank") ||  // the router chooses the rank, not the client
        beast::iequals(field.name_string(), their(kMarkHeader)) ||
        (key.replaces && is_key_header(view(field.name_string()))) || (way.external && is_private(field))) {
      continue;
    }
    out.insert(field.name(), field.name_string(), field.value());
  }
  out.set(http::field::host, beast::string_view(host.data(), host.size()));
  if (dp_rank) out.set("x-data-parallel-rank", std::to_string(*dp_rank));
  if (key.replaces) {
    out.target(without_key(view(out.target())));
    set_key(out, key);
  }
  out.body() = {body.data(), body.size()};
  out.prepare_payload();
  return out;
}

UpstreamRequest peer_request(const ClientRequest& request, std::string_view host, std::string_view mark) {
  UpstreamRequest out{request.method(), request.target(), 11};
  for (const auto& field : request) {
    if (!this_hop_only(request, field) && !beast::iequals(field.name_string(), their(kMarkHeader)))
      out.insert(field.name(), field.name_string(), field.value());
  }
  out.set(http::field::host, their(host));
  out.set(their(kMarkHeader), their(mark));
  out.body() = {request.body().data(), request.body().size()};
  out.prepare_payload();
  return out;
}

ResponseHead relayed_head(const ResponseHead& head) {
  ResponseHead out;
  out.result(head.result_int());
  out.reason(head.reason());
  for (const auto& field : head) {
    if (!one_connection_only(head, field)) out.insert(field.name(), field.name_string(), field.value());
  }
  return out;
}

ResponseHead client_head(const ResponseHead& head, std::string_view replica, std::int64_t expected_cached_tokens) {
  ResponseHead out = relayed_head(head);
  out.set("x-warmroute-replica", beast::string_view(replica.data(), replica.size()));
  if (expected_cached_tokens >= 0)
    out.set("x-warmroute-expected-cached-tokens", std::to_string(expected_cached_tokens));
  return out;
}

Outcome outcome_of_status(unsigned status) noexcept {
  if (status == 429 || status == 503 || status == 529) return Outcome::backpressure;
  if (status >= 500) return Outcome::replica_error;
  return status >= 400 ? Outcome::client_error : Outcome::finished;
}

bool worth_a_retry(unsigned status) noexcept {
  return status == 500 || status == 502 || status == 504 || outcome_of_status(status) == Outcome::backpressure;
}

Nanos retry_after_of(const ResponseHead& head, Nanos most) noexcept {
  const auto number = [&](std::string_view text) {
    std::int64_t value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size() && value >= 0;
    return whole ? std::min<std::int64_t>(value, 1'000'000'000) : -1;
  };
  Nanos wait = seconds(1);  // where it is a date, or nothing
  if (const auto in_ms = number(view(head["retry-after-ms"])); in_ms >= 0) {
    wait = milliseconds(in_ms);
  } else if (const auto in_s = number(view(head[http::field::retry_after])); in_s >= 0) {
    wait = seconds(in_s);
  }
  return std::min(wait, most);
}

}  // namespace warmroute::gateway
