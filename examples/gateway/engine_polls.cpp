// The targets of the poller, and how they are, for /replicas and /metrics.
#include "gateway/engine_polls.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "common/text.hpp"
#include "gateway/ticket_guard.hpp"

namespace warmroute::gateway {
namespace {

std::string poll_seconds(Nanos value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6f", static_cast<double>(value.value) / 1e9);
  return text.data();
}

struct PollFamily {
  std::string_view name, type, help;
  std::string (*value)(const MetricsTargetStatus&);  // empty: not known
};

constexpr std::array kPollFamilies{
    PollFamily{"poll_up", "gauge", "1 when the server's metrics page came the last time.",
               [](const MetricsTargetStatus& s) { return std::to_string(s.up ? 1 : 0); }},
    PollFamily{"polls_total", "counter", "Times its metrics page was asked for.",
               [](const MetricsTargetStatus& s) { return std::to_string(s.scrapes); }},
    PollFamily{"poll_failures_total", "counter", "Of those, without a page that could be read.",
               [](const MetricsTargetStatus& s) { return std::to_string(s.failures); }},
    PollFamily{"poll_age_seconds", "gauge", "Since the last page; absent before the first one.",
               [](const MetricsTargetStatus& s) { return s.age ? poll_seconds(*s.age) : std::string(); }},
    PollFamily{"poll_duration_seconds", "gauge", "How long the last request for it took.",
               [](const MetricsTargetStatus& s) { return poll_seconds(s.last_duration); }},
    PollFamily{"poll_restarts_total", "counter", "Restarts of the engine, seen by counters that fell.",
               [](const MetricsTargetStatus& s) { return std::to_string(s.restarts); }},
    PollFamily{"poll_unmatched_ranks", "gauge", "Ranks of the last page that are no replica's of the configuration.",
               [](const MetricsTargetStatus& s) { return std::to_string(s.unmatched_ranks); }},
};

}  // namespace

std::vector<std::pair<std::string_view, std::string>> polled_urls(const ReplicaConfig& replica) {
  const auto at_its_address = [&](const std::string& path) {
    const bool six = replica.host.find(':') != std::string::npos;
    return (six ? "[" + replica.host + "]" : replica.host) + ":" + std::to_string(replica.port) + path;
  };
  std::vector<std::pair<std::string_view, std::string>> out;
  out.emplace_back("metrics", replica.metrics.empty() ? at_its_address("/metrics") : replica.metrics);
  if (replica.loads.empty()) return out;
  std::string loads = replica.loads.front() == '/' ? at_its_address(replica.loads) : replica.loads;
  if (loads != out[0].second) out.emplace_back("loads", std::move(loads));
  return out;
}

Status EnginePolls::start(Router& router, const Fleet& fleet, const Config& config, LogSink log) {
  if (config.poll.count() == 0) return {};
  std::vector<std::pair<MetricsTarget, std::string>> targets;  // and what and whose they are first
  for (std::size_t i = 0; i < config.replicas.size(); ++i) {
    const ReplicaConfig& replica = config.replicas[i];
    if (replica.external) continue;
    for (const auto& [word, url] : polled_urls(replica)) {
      const auto same = [&wanted = url](const auto& t) { return t.first.url == wanted; };
      auto at = std::find_if(targets.begin(), targets.end(), same);
      if (at == targets.end()) {
        MetricsTarget target;
        target.url = url;
        target.engine = replica.engine.empty() ? config.engine : replica.engine;
        at = targets.insert(targets.end(),
                            {std::move(target), "replica '" + replica.spec.name + "': " + std::string(word)});
      }
      PolledReplica polled;
      polled.id = fleet.at(i).id;
      if (replica.ranked) polled.dp_rank = replica.spec.dp_rank;
      at->first.replicas.push_back(polled);
      if (!replica.events.empty()) at->first.clear_on_restart = false;  // they tell what a new process holds
    }
  }
  MetricsPollerOptions options;
  options.interval = milliseconds(config.poll.count());
  options.clock = [](void*) { return now(); };
  options.log = log;
  auto started = MetricsPoller::start(router, options);
  if (!started) return started.error();
  poller_ = std::make_unique<MetricsPoller>(std::move(*started));
  for (const auto& [target, first] : targets) {
    if (auto added = poller_->add(target); !added)
      return Error{added.error().code, first + ": " + added.error().message, kNoOffset};
  }
  return {};
}

std::vector<MetricsTargetStatus> EnginePolls::statuses() const {
  return poller_ == nullptr ? std::vector<MetricsTargetStatus>{} : poller_->statuses();
}

void append_polls_json(const std::vector<MetricsTargetStatus>& statuses, const ReplicaConfig& replica,
                       std::string& out) {
  const auto urls = polled_urls(replica);
  for (const MetricsTargetStatus& status : statuses) {
    const auto at = std::find_if(urls.begin(), urls.end(), [&](const auto& u) { return u.second == status.url; });
    if (at == urls.end()) continue;
    out.append(",\"").append(at->first).append("\":{\"url\":").append(examples::json_quoted(status.url));
    out.append(",\"engine\":").append(examples::json_quoted(status.engine));
    out.append(",\"last_error\":").append(examples::json_quoted(status.last_error));
    for (const PollFamily& family : kPollFamilies) {
      const std::string value = family.value(status);
      std::string_view name = family.name;
      if (name.starts_with("poll_")) name.remove_prefix(5);
      if (name.ends_with("_total")) name.remove_suffix(6);
      out.append(",\"").append(name).append("\":").append(value.empty() ? "null" : value);
    }
    out.append("}");
  }
}

void append_polls_prometheus(const std::vector<MetricsTargetStatus>& statuses, std::string& out) {
  if (statuses.empty()) return;
  for (const PollFamily& family : kPollFamilies) {
    const std::string name = "warmroute_gateway_" + std::string(family.name);
    out.append("# HELP ").append(name).append(" ").append(family.help).append("\n");
    out.append("# TYPE ").append(name).append(" ").append(family.type).append("\n");
    for (const MetricsTargetStatus& status : statuses) {
      const std::string value = family.value(status);
      if (value.empty()) continue;
      out.append(name).append("{target=").append(examples::json_quoted(status.url)).append("} ");
      out.append(value).append("\n");
    }
  }
}

}  // namespace warmroute::gateway
