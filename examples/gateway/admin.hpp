/// What an operator asks the gateway itself: how it is, what it counts, why it decides as it does, and to decide otherwise.
///   GET  /health         200 while it serves, 503 while it shuts down
///   GET  /metrics        Prometheus text: the router's statistics and the gateway's own
///   GET  /replicas       JSON: every replica with its health and its books
///   GET  /gateways       JSON: the other gateways, how they are, and the cookie of each
///   GET  /usage          JSON: who used how much; ?by=key,team,model,replica,window&since=24h
///   POST /explain?api=chat   a request body in, the candidates and what each would cost out; a table, or JSON if it is accepted
///   GET  /admin/models   JSON: the pools with terms, and what became of their quotas
///   GET  /admin/policy   the policy as JSON
///   POST /admin/policy   members to change, e.g. {"algorithm": "round_robin"}; in force for the next request
/// No secrets are shown and none are asked for: bind it where only operators get to, or give it a port of its own.
#pragma once

#include <string>

#include "gateway/client.hpp"
#include "gateway/worker.hpp"

namespace warmroute::gateway {

struct AdminAnswer {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body{};
};

/// returns: whether the path is one of the gateway's own; `target` may have a query.
[[nodiscard]] bool is_admin_path(std::string_view target);

/// returns: the answer to a request for one of those paths.
AdminAnswer answer_admin(Worker& worker, const ClientRequest& request);

}  // namespace warmroute::gateway
