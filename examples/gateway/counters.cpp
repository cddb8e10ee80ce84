// The Prometheus form of the counters.
#include "gateway/counters.hpp"

#include "gateway/gauges.hpp"

namespace warmroute::gateway {

void append_prometheus(const Counters& c, std::int64_t retries_left, std::string& out) {
  family(out, "requests_total", "counter", "Requests by the status code that the client got; 499: it had gone before.");
  for (std::size_t code = 0; code < c.requests.size(); ++code) {
    if (const auto n = c.requests[code].load(); n != 0) sample(out, "requests_total", "code", std::to_string(code), n);
  }
  labelled(out, "retries_total", "cause", "Requests that were sent to a further replica.", c.retries, kRetryCauses);
  labelled(out, "timeouts_total", "timeout", "Requests that ran into one of the four timeouts.", c.timeouts, kTimeouts);
  single(out, "retries_refused_total", "counter", "Retries that the budget did not allow.", c.retries_refused.load());
  single(out, "retry_budget", "gauge", "Retries that could be done at once.", retries_left);
  single(out, "client_aborts_total", "counter", "Clients that went away before their answer was complete.",
         c.client_aborts.load());
  single(out, "answers_cut_total", "counter", "Answers that broke after the first byte had been passed on.",
         c.answers_cut.load());
  single(out, "pairs_total", "counter", "Requests that one server prefilled for another.", c.pairs.load());
  single(out, "pairs_whole_total", "counter", "Requests that were to be, and that one server got whole.",
         c.pairs_whole.load());
  single(out, "upstream_connections", "gauge", "Connections to replicas, in use or kept alive.",
         c.upstream_connections.load());
  single(out, "upstream_opened_total", "counter", "Connections to replicas that were opened.",
         c.upstream_opened.load());
  single(out, "upstream_reused_total", "counter", "Requests that went over a kept-alive connection.",
         c.upstream_reused.load());
  single(out, "upstream_stale_total", "counter", "Kept-alive connections that were found closed.",
         c.upstream_stale.load());
  single(out, "client_connections", "gauge", "Connections of clients.", c.client_connections.load());
  single(out, "requests_in_flight", "gauge", "Requests whose answer is not complete.", c.requests_in_flight.load());
}

}  // namespace warmroute::gateway
