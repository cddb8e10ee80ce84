// The figures of an experiment as a table for people and as JSON for programs.
#include <algorithm>
#include <array>
#include <cstdio>

#include "simulate/experiment.hpp"

namespace warmroute::simulate {
namespace {

using Figures = trace::SimulationFigures;

template <class... Args>
std::string print(const char* pattern, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

std::string group_title(const Setup& setup, const Cell& c) {
  std::string title = print("%s, %lld replicas", std::string(setup.base.replica.hardware.name).c_str(),
                            static_cast<long long>(c.fleet.replicas));
  if (setup.kind == Kind::trace) title += c.load > 0 ? print(", load %.2f", c.load) : std::string(", as recorded");
  if (!setup.base.capacities.empty()) {
    title += ", KV tokens";
    for (const std::int64_t tokens : setup.base.capacities) title += print(" %lld", static_cast<long long>(tokens));
  }
  if (c.capacity > 0) title += print(", %lld KV tokens", static_cast<long long>(c.capacity));
  if (c.routers > 1)
    title += print(", %lld routers%s%s", static_cast<long long>(c.routers),
                   setup.base.gateway_ring        ? " (ring)"
                   : setup.base.pin_conversations ? " (pinned)"
                                                  : "",
                   setup.base.share_loads_us == 0 ? ""
                   : setup.base.share_placements  ? ", loads and placements shared"
                                                  : ", loads shared");
  return title + ", view " + std::string(c.view.name) + (c.view.waiting_tokens ? " and waiting tokens" : "");
}

// Fleets whose replicas are not all alike are named behind the rule.
std::string rule_of(const Cell& c) {
  const FleetSpec& f = c.fleet;
  if (f.prefill + f.decode == 0) return c.rule;
  std::string out = c.rule + print("@%lld+%lld", static_cast<long long>(f.prefill), static_cast<long long>(f.decode));
  const std::int64_t rest = f.replicas - f.prefill - f.decode;
  return rest == 0 ? out : out + print("+%lld", static_cast<long long>(rest));
}

std::string row(const Cell& c) {
  const auto mean = [&](auto&& pick) { return c.mean(pick); };
  const auto ttft = [](const Figures& f) { return f.ttft.mean_us / 1e3; };
  std::string out =
      print("%-30s %6.0f %8.0f %6.0f %8.0f %7.2f %7.2f", rule_of(c).c_str(),
            mean([](const Figures& f) { return static_cast<double>(f.completed); }), mean(ttft), c.half_range(ttft),
            mean([](const Figures& f) { return static_cast<double>(f.ttft.p50_us) / 1e3; }),
            mean([](const Figures& f) { return static_cast<double>(f.ttft.p90_us) / 1e6; }),
            mean([](const Figures& f) { return static_cast<double>(f.ttft.p99_us) / 1e6; }));
  out += print(" %6.1f %6.0f %7.2f %7.2f %6.1f", mean([](const Figures& f) { return f.itl.mean_us / 1e3; }),
               mean([](const Figures& f) { return static_cast<double>(f.itl.p99_us) / 1e3; }),
               mean([](const Figures& f) { return f.e2e.mean_us / 1e6; }),
               mean([](const Figures& f) { return static_cast<double>(f.e2e.p99_us) / 1e6; }),
               mean([](const Figures& f) { return f.goodput * 100; }));
  out +=
      print(" %6.3f %5.2f %5.2f %5.2f %5.2f %6.3f %5.2f", mean([](const Figures& f) { return f.hit_ratio; }),
            mean([](const Figures& f) { return f.bound_ratio > 0 ? f.hit_ratio / f.bound_ratio : 0; }),
            mean([](const Figures& f) { return f.busy_imbalance; }),
            mean([](const Figures& f) { return f.prefill_imbalance; }),
            mean([](const Figures& f) { return f.token_imbalance; }),
            mean([](const Figures& f) { return f.spill_ratio; }), mean([](const Figures& f) { return f.duplicates; }));
  out += print(" %6.0f %5.0f %4.0f %5.0f %7.2f",
               mean([](const Figures& f) { return static_cast<double>(f.evictions) / 1e3; }),
               c.sum([](const Figures& f) { return static_cast<double>(f.preemptions); }),
               c.sum([](const Figures& f) { return static_cast<double>(f.rejected + f.unplaced); }),
               c.sum([](const Figures& f) { return static_cast<double>(f.sent_again); }),
               mean([](const Figures& f) { return f.tokens_per_dollar / 1e6; }));
  out +=
      print(" %7.3f %5.1f %6.0f\n", mean([](const Figures& f) { return f.goodput_rate; }), mean([](const Figures& f) {
              return f.completed > 0 ? 100 * static_cast<double>(f.pairs) / static_cast<double>(f.completed) : 0;
            }),
            mean([](const Figures& f) { return f.transfer.mean_us / 1e3; }));
  return out;
}

std::string latency_json(const trace::LatencyFigures& l) {
  return print("{\"mean\":%.3f,\"p50\":%lld,\"p90\":%lld,\"p99\":%lld,\"max\":%lld}", l.mean_us,
               static_cast<long long>(l.p50_us), static_cast<long long>(l.p90_us), static_cast<long long>(l.p99_us),
               static_cast<long long>(l.max_us));
}

/// Of each request, in order of arrival: [arrival us, TTFT us, cached tokens, replica]; -1 where there is none.
std::string requests_json(const Figures& f) {
  std::string out = "[";
  for (const trace::RequestFigures& r : f.per_request) {
    if (r.arrival_us < 0) continue;
    const std::int64_t ttft = r.first_token_us < 0 ? -1 : r.first_token_us - r.arrival_us;
    const std::int64_t replica = r.replica == trace::kNoRequest ? -1 : static_cast<std::int64_t>(r.replica);
    out +=
        print("%s[%lld,%lld,%lld,%lld]", out.size() == 1 ? "" : ",", static_cast<long long>(r.arrival_us),
              static_cast<long long>(ttft), static_cast<long long>(r.cached_tokens), static_cast<long long>(replica));
  }
  return out + "]";
}
std::string run_json(const Figures& f) {
  std::string out = "{\"ttft_us\":" + latency_json(f.ttft) + ",\"itl_us\":" + latency_json(f.itl) +
                    ",\"e2e_us\":" + latency_json(f.e2e);
  const auto count = [&](const char* name, std::int64_t v) {
    out += print(",\"%s\":%lld", name, static_cast<long long>(v));
  };
  const auto real = [&](const char* name, double v) { out += print(",\"%s\":%.9g", name, v); };
  count("requests", f.requests);
  count("completed", f.completed);
  count("rejected", f.rejected);
  count("unplaced", f.unplaced);
  count("sent_again", f.sent_again);
  count("input_tokens", f.input_tokens);
  count("cached_tokens", f.cached_tokens);
  count("output_tokens", f.output_tokens);
  count("evictions", f.evictions);
  count("preemptions", f.preemptions);
  count("booked_at_end", f.booked_at_end);
  count("makespan_us", f.makespan_us);
  count("forwarded", f.forwarded);
  count("shared_bytes", f.shared_bytes);
  count("pairs", f.pairs);
  count("transferred_tokens", f.transferred_tokens);
  real("goodput", f.goodput);
  real("goodput_rate", f.goodput_rate);
  real("hit_ratio", f.hit_ratio);
  real("bound_ratio", f.bound_ratio);
  real("busy_imbalance", f.busy_imbalance);
  real("prefill_imbalance", f.prefill_imbalance);
  real("token_imbalance", f.token_imbalance);
  real("utilisation", f.utilisation);
  real("spill_ratio", f.spill_ratio);
  real("duplicates", f.duplicates);
  real("dollars", f.dollars);
  real("tokens_per_dollar", f.tokens_per_dollar);
  if (!f.per_request.empty()) out += ",\"per_request\":" + requests_json(f);
  return out + "}";
}

}  // namespace

std::string table(const Setup& setup, const std::vector<Cell>& cells) {
  std::string out, before;
  for (const Cell& c : cells) {
    if (const std::string title = group_title(setup, c); title != before) {
      out += (before.empty() ? "" : "\n") + title + "\n";
      out += print("%-30s %6s %8s %6s %8s %7s %7s %6s %6s %7s %7s %6s", "policy", "n", "TTFT ms", "+-", "p50 ms",
                   "p90 s", "p99 s", "ITL ms", "p99 ms", "E2E s", "p99 s", "good%");
      out += print(" %6s %5s %5s %5s %5s %6s %5s %6s %5s %4s %5s %7s %7s %5s %6s\n", "hit", "of", "busy", "pre", "tok",
                   "spill", "dup", "evict", "preem", "rej", "again", "Mtok/$", "good/s", "pair%", "KV ms");
      before = title;
    }
    out += row(c);
  }
  out += print(
      "means of %lld seeds; preem, rej, again are sums. +-: half range of the TTFT mean. of: share of the bound of one "
      "infinite cache.\n"
      "busy, pre, tok: max / mean over replicas of step time, prefill work, tokens in flight. spill: sent where "
      "clearly less was held.\n",
      static_cast<long long>(setup.seeds));
  return out +
         "good: within the limits; good/s: such requests a second and replica. pair: prefill and decode on two "
         "replicas; KV: from the end of that prefill to the KV's arrival.\n";
}

std::string to_json(const Setup& setup, const std::vector<Cell>& cells) {
  std::string out = "{\"profile\":\"" + std::string(setup.base.replica.hardware.name) + "\",\"cells\":[";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& c = cells[i];
    out += i == 0 ? "\n" : ",\n";
    out += "{\"policy\":\"";
    for (const char ch : c.rule) {
      if (ch == '"' || ch == '\\') out += '\\';
      out += ch;
    }
    out += print(
        "\",\"load\":%.9g,\"view\":\"%s\",\"replicas\":%lld,\"prefill_replicas\":%lld,"
        "\"decode_replicas\":%lld,\"capacity_tokens\":%lld,\"routers\":%lld,\"runs\":[",
        c.load, std::string(c.view.name).c_str(), static_cast<long long>(c.fleet.replicas),
        static_cast<long long>(c.fleet.prefill), static_cast<long long>(c.fleet.decode),
        static_cast<long long>(c.capacity), static_cast<long long>(c.routers));
    for (std::size_t s = 0; s < c.runs.size(); ++s) out += (s == 0 ? "" : ",") + run_json(c.runs[s]);
    out += "]}";
  }
  return out + "\n]}\n";
}

}  // namespace warmroute::simulate
