// The endpoints of admin.hpp, one function each.
#include "gateway/admin.hpp"

#include <array>
#include <optional>

#include "common/text.hpp"
#include "gateway/gauges.hpp"
#include "gateway/heads.hpp"
#include "gateway/ticket_guard.hpp"
#include "warmroute/observe/prometheus.hpp"
#include "warmroute/route/explain.hpp"
#include "warmroute/route/policy_json.hpp"

namespace warmroute::gateway {

namespace http = examples::http;
using examples::json_quoted;

namespace {

AdminAnswer error_answer(unsigned status, std::string_view code, std::string_view message) {
  return {status, "application/json", examples::openai_error(message, "invalid_request_error", code)};
}

AdminAnswer bad_input(const Error& error) {
  const std::string where = error.offset == kNoOffset ? "" : " (byte " + std::to_string(error.offset) + ")";
  return error_answer(400, code_name(error.code), error.message + where);
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

std::optional<BodyApi> api_by_name(std::string_view target) {
  const auto at = target.find("api=");
  std::string_view name = at == std::string_view::npos ? "chat" : target.substr(at + 4);
  name = name.substr(0, name.find('&'));
  constexpr std::array<std::string_view, 7> kNames{"chat",     "completions", "responses", "embeddings",
                                                   "messages", "gemini",      "converse"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<BodyApi>(i);
  }
  return std::nullopt;
}

void append_pools(const ModelRouter& models, std::string& out) {
  const auto readings = models.readings();
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    family(out, name, type, help);
    for (const auto& pool : readings) sample(out, name, "pool", pool.name, value(pool));
  };
  each("pool_routed_total", "counter", "Requests that a pool with terms took.", [](const auto& p) { return p.routed; });
  each("pool_over_quota_total", "counter", "Requests that it was over a quota for.",
       [](const auto& p) { return p.over_quota; });
  each("pool_in_flight", "gauge", "Requests that it has now.", [](const auto& p) { return p.in_flight; });
  each("pool_blocked", "gauge", "1 while it asked to be left alone.",
       [](const auto& p) { return p.blocked_until > now() ? 1 : 0; });
}

AdminAnswer metrics(const Shared& shared) {
  AdminAnswer answer{200, "text/plain; version=0.0.4; charset=utf-8"};
  append_prometheus(shared.router.statistics(), answer.body);
  append_prometheus(shared.counters, shared.retries.left(), answer.body);
  append_events_prometheus(shared.events.statuses(), shared.fleet, now(), answer.body);
  append_polls_prometheus(shared.polls.statuses(), answer.body);
  shared.books.append_prometheus(answer.body);
  if (shared.control) shared.control->append_prometheus(answer.body);
  if (shared.peers != nullptr) shared.peers->append_prometheus(answer.body);
  if (shared.shares != nullptr) shared.shares->append_prometheus(answer.body);
  if (shared.models != nullptr) append_pools(*shared.models, answer.body);
  return answer;
}

AdminAnswer explain(Worker& worker, const ClientRequest& request) {
  const auto api = api_by_name(view(request.target()));
  if (!api)
    return error_answer(400, "invalid_value",
                        "api is none of chat, completions, responses, embeddings, messages, gemini, converse");
  const auto body = worker.parser.parse(*api, request.body(), worker.shared.body_options());
  if (!body) return bad_input(body.error());
  const Explanation explanation = worker.shared.router.explain(body->request(), now());
  if (view(request[http::field::accept]).find("application/json") != std::string_view::npos) {
    return {200, "application/json", to_json(explanation)};
  }
  return {200, "text/plain; charset=utf-8", to_text(explanation)};
}

AdminAnswer replicas(const Shared& shared) {
  AdminAnswer answer;
  const RouterStatistics statistics = shared.router.statistics();
  const auto rows = shared.router.replicas();
  const auto subscriptions = shared.events.statuses();
  const auto polls = shared.polls.statuses();
  for (const auto& replica : statistics.replicas) {
    std::string reason;
    for (const auto& row : rows) {
      if (row.id == replica.id) reason = row.spec.health_reason;
    }
    const Upstream* upstream = shared.fleet.find(replica.id);
    answer.body.append(answer.body.empty() ? "[" : ",\n ");
    answer.body.append("{\"name\":" + json_quoted(replica.name) + ",\"model\":" + json_quoted(replica.pool));
    if (upstream != nullptr)
      answer.body.append(",\"address\":" + json_quoted(upstream->host + ":" + std::to_string(upstream->port)));
    answer.body.append(",\"health\":" + json_quoted(health_name(replica.health)) +
                       ",\"reason\":" + json_quoted(reason));
    const auto member = [&](std::string_view name, auto value) {
      answer.body.append(",\"").append(name).append("\":").append(std::to_string(value));
    };
    member("requests", replica.load.requests);
    member("pending_tokens", replica.load.pending_tokens);
    member("decoding", replica.load.decoding);
    member("believed_blocks", replica.believed_blocks);
    member("capacity_blocks", replica.capacity_blocks);
    append_events_json(subscriptions, replica.id, now(), answer.body);
    if (upstream != nullptr) append_polls_json(polls, shared.config.replicas[upstream->number], answer.body);
    answer.body.append("}");
  }
  answer.body.append(answer.body.empty() ? "[]\n" : "]\n");
  return answer;
}

AdminAnswer usage(const Shared& shared, std::string_view target) {
  auto page = shared.books.usage_page(target.substr(std::min(target.find('?'), target.size() - 1) + 1));
  if (!page) return bad_input(page.error());
  return {200, "application/json", std::move(*page)};
}

AdminAnswer policy(const Shared& shared, const ClientRequest& request) {
  if (request.method() == http::verb::post || request.method() == http::verb::put) {
    const auto next = policy_from_json(request.body(), shared.router.policy());
    if (!next) return bad_input(next.error());
    if (const auto set = shared.router.set_policy(*next); !set) return bad_input(set.error());
  }
  return {200, "application/json", policy_to_json(shared.router.policy())};
}

}  // namespace

bool is_admin_path(std::string_view target) {
  const std::string_view path = path_of(target);
  return path == "/health" || path == "/metrics" || path == "/replicas" || path == "/explain" || path == "/usage" ||
         path == "/gateways" || path == "/admin/policy" || path == "/admin/models";
}

AdminAnswer answer_admin(Worker& worker, const ClientRequest& request) {
  const Shared& shared = worker.shared;
  const std::string_view path = path_of(view(request.target()));
  const bool reads = request.method() == http::verb::get || request.method() == http::verb::head;
  const bool writes = request.method() == http::verb::post || request.method() == http::verb::put;
  if (path == "/admin/policy" && (reads || writes)) return policy(shared, request);
  if (path == "/explain" && writes) return explain(worker, request);
  if (path == "/metrics" && reads) return metrics(shared);
  if (path == "/replicas" && reads) return replicas(shared);
  if (path == "/gateways" && reads)
    return {200, "application/json", shared.peers == nullptr ? "[]\n" : shared.peers->to_json()};
  if (path == "/admin/models" && reads)
    return {200, "application/json", shared.models == nullptr ? "[]\n" : to_json(shared.models->readings()) + "\n"};
  if (path == "/usage" && reads) return usage(shared, view(request.target()));
  if (path == "/health" && reads) {
    if (shared.stopping) return {503, "application/json", "{\"status\":\"stopping\"}\n"};
    const auto up = std::to_string(shared.fleet.up_count());
    std::string body =
        "{\"status\":\"ok\",\"replicas_up\":" + up + ",\"replicas\":" + std::to_string(shared.fleet.size());
    if (shared.peers != nullptr) body += ",\"gateway\":" + json_quoted(shared.peers->self());
    return {200, "application/json", body + "}\n"};
  }
  if (is_admin_path(path)) return error_answer(405, "method_not_allowed", "this path does not take that method");
  return error_answer(404, "not_found", "there is no such path here");
}

}  // namespace warmroute::gateway
