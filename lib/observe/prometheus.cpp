// Prometheus text exposition, format 0.0.4.
#include "warmroute/observe/prometheus.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace warmroute {
namespace {

class Page {
 public:
  explicit Page(std::string& out) : out_(out) {}

  void family(std::string_view name, std::string_view type, std::string_view help) {
    out_.append("# HELP ")
        .append(name)
        .append(" ")
        .append(help)
        .append("\n# TYPE ")
        .append(name)
        .append(" ")
        .append(type)
        .append("\n");
    name_ = name;
  }
  Page& sample(std::string_view suffix = {}) {
    out_.append(name_).append(suffix);
    labels_ = 0;
    return *this;
  }
  Page& label(std::string_view key, std::string_view value) {
    out_.append(labels_++ == 0 ? "{" : ",").append(key).append("=\"");
    for (const char c : value) {
      if (c == '\\' || c == '"') out_.append(1, '\\').append(1, c);
      else if (c == '\n') out_ += "\\n";
      else out_ += c;
    }
    out_ += '"';
    return *this;
  }
  void value(double v) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.17g", v);
    finish(text.data());
  }
  void value(std::uint64_t v) { finish(std::to_string(v)); }
  void value(std::int64_t v) { finish(std::to_string(v)); }

 private:
  void finish(std::string_view text) {
    if (labels_ != 0) out_ += '}';
    out_.append(" ").append(text).append("\n");
  }
  std::string& out_;
  std::string_view name_;
  int labels_ = 0;
};

void histogram(Page& page, std::string_view name, std::string_view help, const TtftStatistics& ttft) {
  page.family(name, "histogram", help);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kTtftBucketsMs.size(); ++i) {
    below += ttft.buckets[i];
    std::array<char, 24> bound{};
    std::snprintf(bound.data(), bound.size(), "%g", static_cast<double>(kTtftBucketsMs[i]) / 1e3);
    page.sample("_bucket").label("le", bound.data()).value(below);
  }
  page.sample("_bucket").label("le", "+Inf").value(ttft.count);
  page.sample("_sum").value(static_cast<double>(ttft.sum_ns) / 1e9);
  page.sample("_count").value(ttft.count);
}

template <class Number>
void single(Page& page, std::string_view name, std::string_view type, std::string_view help, Number value) {
  page.family(name, type, help);
  page.sample().value(value);
}

void requests(Page& page, const RouterStatistics& s) {
  page.family("warmroute_decisions_total", "counter", "Routing calls by verdict.");
  for (std::size_t i = 0; i < s.verdicts.size(); ++i) {
    page.sample().label("verdict", verdict_name(static_cast<Verdict>(i))).value(s.verdicts[i]);
  }
  page.family("warmroute_routed_total", "counter", "Routed requests by reason of the choice.");
  for (std::size_t i = 1; i < s.reasons.size(); ++i) {
    page.sample().label("reason", reason_name(static_cast<Reason>(i))).value(s.reasons[i]);
  }
  page.family("warmroute_spills_total", "counter", "Requests that left the best cache holder, by reason.");
  for (std::size_t i = 1; i < s.reasons.size(); ++i) {
    const auto reason = static_cast<Reason>(i);
    if (is_spill(reason)) page.sample().label("reason", reason_name(reason)).value(s.reasons[i]);
  }
  single(page, "warmroute_peers", "gauge", "Other routers that tell what they have in flight.", std::uint64_t{s.peers});
  page.family("warmroute_splits_total", "counter",
              "Routed requests of pools that can form pairs, by one replica or two and why.");
  for (std::size_t i = 0; i < s.splits.size(); ++i) {
    page.sample().label("split", split_name(static_cast<Split>(i))).value(s.splits[i]);
  }
  single(page, "warmroute_kv_transfers_total", "counter", "KV transfers of pairs that were reported as done.",
         s.transfers_done);
  single(page, "warmroute_kv_transfers_timed_out_total", "counter",
         "Prefill replicas freed of KV that nobody fetched in time.", s.transfers_timed_out);
  single(page, "warmroute_kv_transfer_seconds_total", "counter",
         "Time from first tokens to the end of their KV transfers.", static_cast<double>(s.transfer_ns) / 1e9);
  page.family("warmroute_outcomes_total", "counter", "Requests that are over, by outcome.");
  for (std::size_t i = 0; i < s.outcomes.size(); ++i) {
    page.sample().label("outcome", outcome_name(static_cast<Outcome>(i))).value(s.outcomes[i]);
  }
  single(page, "warmroute_tickets_in_flight", "gauge", "Requests routed and not over.", s.tickets_in_flight);
  single(page, "warmroute_late_calls_total", "counter", "Calls with a ticket that was already over.", s.late_calls);
  single(page, "warmroute_placements_dropped_total", "counter", "Placements lost to a full queue.",
         s.placements_dropped);
  single(page, "warmroute_clock_clamped_total", "counter", "Calls whose time went backwards.", s.clock_clamped);
}

void tokens(Page& page, const RouterStatistics& s) {
  single(page, "warmroute_input_tokens_total", "counter", "Input tokens of finished requests.", s.input_tokens);
  single(page, "warmroute_output_tokens_total", "counter", "Output tokens of finished requests.", s.output_tokens);
  page.family("warmroute_cached_tokens_total", "counter",
              "Cached input tokens: as predicted when routing, as reported by engines.");
  page.sample().label("source", "predicted").value(s.predicted_cached_tokens);
  page.sample().label("source", "reported").value(s.reported_cached_tokens);
  page.family("warmroute_cached_predictions_total", "counter",
              "Requests with reported cached tokens, and those predicted to within a block.");
  page.sample().label("result", "reported").value(s.cached_reports);
  page.sample().label("result", "exact").value(s.cached_exact);
}

void times(Page& page, const RouterStatistics& s) {
  histogram(page, "warmroute_ttft_observed_seconds", "From routing to the first token, as reported by the caller.",
            s.observed_ttft);
  histogram(page, "warmroute_ttft_predicted_seconds", "Predicted wait plus prefill of the same requests.",
            s.predicted_ttft);
  page.family("warmroute_ttft_predicted_part_seconds_total", "counter",
              "Predicted TTFT by part; hit is the prefill time that cached tokens saved.");
  page.sample().label("part", "wait").value(static_cast<double>(s.predicted_wait_ns) / 1e9);
  page.sample().label("part", "prefill").value(static_cast<double>(s.predicted_prefill_ns) / 1e9);
  page.sample().label("part", "hit").value(static_cast<double>(s.saved_prefill_ns) / 1e9);
}

void events(Page& page, const RouterStatistics& s) {
  page.family("warmroute_event_blocks_total", "counter", "Blocks in engines' events, by what came of them.");
  page.sample().label("result", "stored").value(s.event_blocks_stored);
  page.sample().label("result", "removed").value(s.event_blocks_removed);
  page.sample().label("result", "orphan").value(s.event_orphans);
  page.family(
      "warmroute_event_gaps_total", "counter",
      "Events behind a block that their replica is not known to hold: others before were lost, or the index was full.");
  page.sample().value(s.event_gaps);
}

void pools(Page& page, const RouterStatistics& s) {
  const auto each = [&](std::string_view name, std::string_view help, auto field) {
    page.family(name, "gauge", help);
    for (const auto& pool : s.pools) page.sample().label("pool", pool.name).value(pool.*field);
  };
  each("warmroute_index_blocks", "Distinct blocks in the prefix index.", &PoolStatistics::blocks);
  each("warmroute_index_memberships", "Blocks held, summed over replicas.", &PoolStatistics::memberships);
  each("warmroute_index_bytes", "Live bytes of the prefix index.", &PoolStatistics::bytes);
  each("warmroute_index_max_bytes", "Its hard cap.", &PoolStatistics::max_bytes);
  each("warmroute_shared_store_blocks", "Blocks in the store that all replicas share, as events say.",
       &PoolStatistics::shared_blocks);
  each("warmroute_bytes_per_token", "Learned canonical bytes per token.", &PoolStatistics::bytes_per_token);
  each("warmroute_expected_output_tokens", "Learned mean output.", &PoolStatistics::output_tokens);
}

// Kinds are numbered as they came: replicas of equal declared rates.
void rates(Page& page, const RouterStatistics& s) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto&& sample) {
    page.family(name, type, help);
    for (const auto& pool : s.pools) {
      for (std::size_t kind = 0; kind < pool.rates.size(); ++kind) sample(pool, std::to_string(kind), pool.rates[kind]);
    }
  };
  each("warmroute_rate_seconds", "gauge",
       "What a kind of hardware takes for a step at least, and for one more token, a thousand attention pairs, one "
       "token "
       "of context: as declared, and as decisions use it.",
       [&](const PoolStatistics& pool, const std::string& kind, const LearnedRates& r) {
         const auto rate = [&](std::string_view source, std::string_view what, std::int64_t value, double unit) {
           page.sample()
               .label("pool", pool.name)
               .label("kind", kind)
               .label("source", source)
               .label("rate", what)
               .value(static_cast<double>(value) / unit);
         };
         for (const auto& [source, values] : {std::pair{"declared", &r.declared}, std::pair{"used", &r.used}}) {
           rate(source, "step", values->floor_ns, 1e9);
           rate(source, "token", values->token_ps, 1e12);
           rate(source, "kilopair", values->pair_ps, 1e9);
           rate(source, "context_token", values->context_ps, 1e12);
         }
       });
  each("warmroute_rates_learned", "gauge", "1 when decisions use learned rates: they explain the times that are seen.",
       [&](const PoolStatistics& pool, const std::string& kind, const LearnedRates& r) {
         page.sample().label("pool", pool.name).label("kind", kind).value(std::int64_t{r.learned});
       });
  each("warmroute_rate_samples_total", "counter", "Observed times that the rates were learned from.",
       [&](const PoolStatistics& pool, const std::string& kind, const LearnedRates& r) {
         page.sample().label("pool", pool.name).label("kind", kind).value(r.samples);
       });
}

void replicas(Page& page, const RouterStatistics& s) {
  const auto labelled = [&](const ReplicaStatistics& r) -> Page& {
    return page.sample().label("replica", r.name).label("dp_rank", std::to_string(r.dp_rank)).label("pool", r.pool);
  };
  const auto each = [&](std::string_view name, std::string_view help, auto&& get) {
    page.family(name, "gauge", help);
    for (const auto& r : s.replicas) labelled(r).value(get(r));
  };
  each("warmroute_replica_up", "1 up, 0 draining or down.",
       [](const auto& r) { return std::int64_t{r.health == Health::up}; });
  each("warmroute_replica_requests", "Requests in flight.", [](const auto& r) { return r.load.requests; });
  each("warmroute_replica_pending_tokens", "Uncached input tokens before their first token.",
       [](const auto& r) { return r.load.pending_tokens; });
  each("warmroute_replica_pending_seconds", "The same as prefill time.",
       [](const auto& r) { return static_cast<double>(r.load.pending_ns) / 1e9; });
  each("warmroute_replica_context_tokens", "Input tokens in flight.",
       [](const auto& r) { return r.load.context_tokens; });
  each("warmroute_replica_held_tokens",
       "Of its KV cache, by prompts in flight; what several of them share counts once.",
       [](const auto& r) { return r.held_tokens; });
  each("warmroute_replica_foreign_requests", "Requests its engine reported beyond this router's.",
       [](const auto& r) { return r.load.foreign_requests; });
  page.family(
      "warmroute_replica_foreign_prompt_tokens", "gauge",
      "Prompt tokens still to compute that its engine reported beyond this router's; absent where it does not.");
  for (const auto& r : s.replicas) {
    if (r.load.foreign_tokens != LoadBook::kUntold) labelled(r).value(r.load.foreign_tokens);
  }
  each("warmroute_replica_peer_requests", "Requests of other routers, as those told.",
       [](const auto& r) { return r.peer_requests; });
  each("warmroute_replica_peer_pending_seconds", "Prefill time of those of them without a first token.",
       [](const auto& r) { return static_cast<double>(r.peer_pending_ns) / 1e9; });
  each("warmroute_replica_believed_blocks", "Blocks believed to be in its cache.",
       [](const auto& r) { return r.believed_blocks; });
  each("warmroute_replica_reported", "1 when its engine sends cache events.",
       [](const auto& r) { return std::int64_t{r.reported}; });
  each("warmroute_replica_capacity_blocks", "Effective capacity of that model.",
       [](const auto& r) { return r.capacity_blocks; });
  each("warmroute_replica_slowness", "Learned: how much longer it takes than replicas of equal declared rates.",
       [](const auto& r) { return r.slowness; });
}

template <class Sample>
void each_replica(Page& page, const RouterStatistics& s, std::string_view name, std::string_view type,
                  std::string_view help, Sample&& sample) {
  page.family(name, type, help);
  for (const ReplicaStatistics& r : s.replicas) sample(r);
}

// Ours beside the engine's own: what routing believed of the caches, and what came of it.
void hit_ratios(Page& page, const RouterStatistics& s) {
  const auto labelled = [&](const ReplicaStatistics& r) -> Page& {
    return page.sample().label("replica", r.name).label("dp_rank", std::to_string(r.dp_rank)).label("pool", r.pool);
  };
  const auto of_engine = [&](const ReplicaStatistics& r) -> Page& {
    const PrefixCounters& c = r.engine_prefix.gained;
    return labelled(r).label("scope", c.shared ? "server" : "replica").label("unit", c.in_blocks ? "blocks" : "tokens");
  };
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  each_replica(page, s, "warmroute_replica_routed_tokens_total", "counter",
               "Input tokens of requests whose prefill ended there, and those matched with its cache when routed.",
               [&](const ReplicaStatistics& r) {
                 labelled(r).label("result", "input").value(r.input_tokens);
                 labelled(r).label("result", "matched").value(r.matched_tokens);
               });
  each_replica(page, s, "warmroute_replica_match_ratio", "gauge",
               "Of those input tokens, the share that was matched; absent while there are none.",
               [&](const ReplicaStatistics& r) {
                 if (r.input_tokens > 0) labelled(r).value(share(r.matched_tokens, r.input_tokens));
               });
  each_replica(page, s, "warmroute_replica_engine_prefix_total", "counter",
               "What its engine looked up in its prefix cache and what it found, since this router reads its metrics. "
               "scope=\"server\": counted for all ranks of one server together, and shown at each of them.",
               [&](const ReplicaStatistics& r) {
                 if (!r.engine_prefix.known) return;
                 of_engine(r).label("result", "query").value(r.engine_prefix.gained.queries);
                 of_engine(r).label("result", "hit").value(r.engine_prefix.gained.hits);
               });
  each_replica(page, s, "warmroute_replica_engine_prefix_hit_ratio", "gauge",
               "Of what its engine looked up, the share found, requests of others included; absent while unknown.",
               [&](const ReplicaStatistics& r) {
                 const PrefixCounters& c = r.engine_prefix.gained;
                 if (r.engine_prefix.known && c.queries > 0) of_engine(r).value(share(c.hits, c.queries));
               });
}

}  // namespace

void append_prometheus(const RouterStatistics& statistics, std::string& out) {
  Page page(out);
  page.family("warmroute_policy_info", "gauge", "The policy in force.");
  page.sample()
      .label("algorithm", statistics.algorithm)
      .label("version", std::to_string(statistics.policy_version))
      .value(std::int64_t{1});
  requests(page, statistics);
  tokens(page, statistics);
  times(page, statistics);
  events(page, statistics);
  pools(page, statistics);
  rates(page, statistics);
  replicas(page, statistics);
  hit_ratios(page, statistics);
}

}  // namespace warmroute
