// The Prometheus form of the counters.
#include "gateway/counters.hpp"

namespace warmroute::gateway {
namespace {

void family(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out.append("# HELP warmroute_gateway_").append(name).append(" ").append(help);
  out.append("\n# TYPE warmroute_gateway_").append(name).append(" ").append(type).append("\n");
}

template <class Value>
void sample(std::string& out, std::string_view name, std::string_view label, std::string_view label_value,
            Value value) {
  out.append("warmroute_gateway_").append(name);
  if (!label.empty()) out.append("{").append(label).append("=\"").append(label_value).append("\"}");
  out.append(" ").append(std::to_string(value)).append("\n");
}

template <class Value>
void single(std::string& out, std::string_view name, std::string_view type, std::string_view help, Value value) {
  family(out, name, type, help);
  sample(out, name, {}, {}, value);
}

template <class Counts, class Names>
void labelled(std::string& out, std::string_view name, std::string_view label, std::string_view help,
              const Counts& counts, const Names& names) {
  family(out, name, "counter", help);
  for (std::size_t i = 0; i < names.size(); ++i) sample(out, name, label, names[i], counts[i].load());
}

}  // namespace

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
