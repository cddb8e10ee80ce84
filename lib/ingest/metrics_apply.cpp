// What becomes of a reading: signals of replicas, and what counters gained.
#include <algorithm>
#include <array>
#include <utility>

#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

std::optional<double> as_signal(std::optional<std::int64_t> count) {
  if (!count) return std::nullopt;
  return static_cast<double>(*count);
}

bool is_for(const RankReplica& replica, const EngineRank& rank, bool only_rank, bool only_replica) {
  if (!replica.model.empty() && !rank.model.empty() && replica.model != rank.model) return false;
  if (!replica.dp_rank) return only_rank;
  if (!rank.dp_rank) return only_replica;
  return *replica.dp_rank == *rank.dp_rank;
}

// returns: the one replica whose rank this is; nullptr if there are none or several.
const RankReplica* replica_of(const EngineRank& rank, bool only_rank, std::span<const RankReplica> replicas) {
  // A page without ranks may still have several models: then the model alone says whose each is.
  const auto same_model = [&](const RankReplica& r) {
    return r.model.empty() || rank.model.empty() || r.model == rank.model;
  };
  const bool only_replica = std::count_if(replicas.begin(), replicas.end(), same_model) == 1;
  const RankReplica* found = nullptr;
  for (const RankReplica& replica : replicas) {
    const bool sole = only_rank || (!rank.dp_rank && !replica.model.empty() && !rank.model.empty());
    if (!is_for(replica, rank, sole, only_replica)) continue;
    if (found != nullptr) return nullptr;
    found = &replica;
  }
  return found;
}

std::optional<PrefixCounters> counters_of(const EngineRank& rank, bool shared) {
  if (!rank.prefix_queries || !rank.prefix_hits) return std::nullopt;
  return PrefixCounters{*rank.prefix_queries, *rank.prefix_hits, rank.prefix_unit == PrefixUnit::blocks, shared};
}

// Counters of a whole page (SGLang's are per process) say something of each of its replicas, if not whose part is whose.
void apply_shared(Router& router, const EngineReading& reading, std::span<const RankReplica> replicas, Nanos now,
                  AppliedReading& applied) {
  const auto counters = counters_of(*reading.shared, true);
  if (!counters) return;
  for (const RankReplica& replica : replicas) {
    const std::string_view model = reading.shared->model;
    if (!replica.model.empty() && !model.empty() && replica.model != model) continue;
    const auto its_own = [&](const EngineRank& rank) {
      return counters_of(rank, false) && replica_of(rank, reading.ranks.size() == 1, replicas) == &replica;
    };
    if (std::any_of(reading.ranks.begin(), reading.ranks.end(), its_own)) continue;
    if (router.prefix_counters(replica.id, *counters, now)) ++applied.shared_counters;
    else ++applied.refused;
  }
}

std::optional<std::int64_t> gained(std::optional<std::int64_t> now, std::optional<std::int64_t> before,
                                   bool restarted) {
  if (!now) return std::nullopt;
  if (restarted) return now;
  if (!before) return std::nullopt;
  return *now - *before;
}

bool fell(std::optional<std::int64_t> now, std::optional<std::int64_t> before) {
  return now && before && *now < *before;
}

}  // namespace

AppliedReading apply_engine_reading(Router& router, const EngineReading& reading, std::span<const RankReplica> replicas,
                                    Nanos now) {
  AppliedReading applied;
  for (const EngineRank& rank : reading.ranks) {
    const RankReplica* replica = replica_of(rank, reading.ranks.size() == 1, replicas);
    if (replica == nullptr) {
      ++applied.unmatched_ranks;
      continue;
    }
    const std::array<std::pair<Signal, std::optional<double>>, kSignalCount> signals{{
        {Signal::running, as_signal(rank.running)},
        {Signal::waiting, as_signal(rank.waiting)},
        {Signal::kv_usage, rank.kv_usage},
        {Signal::block_tokens, as_signal(rank.block_tokens)},
        {Signal::block_count, as_signal(rank.block_count)},
        {Signal::prefix_queries, as_signal(rank.prefix_queries)},
        {Signal::prefix_hits, as_signal(rank.prefix_hits)},
        {Signal::waiting_tokens, as_signal(rank.waiting_tokens)},
    }};
    for (const auto& [signal, value] : signals) {
      if (!value) continue;
      if (router.signal(replica->id, signal, *value, now)) ++applied.signals;
      else ++applied.refused;
    }
    if (const auto counters = counters_of(rank, false)) (void)router.prefix_counters(replica->id, *counters, now);
  }
  if (reading.shared) apply_shared(router, reading, replicas, now, applied);
  return applied;
}

std::span<const EngineDelta> EngineCounters::update(const EngineReading& reading) {
  deltas_.clear();
  for (const EngineRank& rank : reading.ranks) follow(rank, false);
  if (reading.shared) follow(*reading.shared, true);
  return deltas_;
}

void EngineCounters::follow(const EngineRank& rank, bool shared) {
  std::optional<std::int64_t> first_tokens;
  if (rank.ttft) first_tokens = rank.ttft->count;
  const auto same = [&](const Known& k) {
    return k.shared == shared && k.dp_rank == rank.dp_rank && k.model == rank.model;
  };
  auto known = std::find_if(known_.begin(), known_.end(), same);
  if (known == known_.end()) {
    if (known_.size() >= kMaxRanks) return;
    known_.push_back({rank.dp_rank, std::string(rank.model), shared, rank.prefix_unit, rank.prefix_hits,
                      rank.prefix_queries, first_tokens});
    deltas_.reserve(known_.capacity());
    return;
  }
  EngineDelta delta;
  delta.dp_rank = rank.dp_rank;
  delta.model = rank.model;
  delta.shared = shared;
  if (rank.prefix_hits && rank.prefix_unit != known->unit) {  // counters of another name, which some engines show later
    known->unit = rank.prefix_unit;
    known->hits.reset();
    known->queries.reset();
  }
  delta.restarted = fell(rank.prefix_hits, known->hits) || fell(rank.prefix_queries, known->queries) ||
                    fell(first_tokens, known->first_tokens);
  delta.prefix_hits = gained(rank.prefix_hits, known->hits, delta.restarted);
  delta.prefix_queries = gained(rank.prefix_queries, known->queries, delta.restarted);
  delta.first_tokens = gained(first_tokens, known->first_tokens, delta.restarted);
  // What this reading does not say stays as it was last said; an engine that began anew has said nothing yet.
  const auto keep = [&](auto& last, const auto& now) {
    if (now || delta.restarted) last = now;
  };
  keep(known->hits, rank.prefix_hits);
  keep(known->queries, rank.prefix_queries);
  keep(known->first_tokens, first_tokens);
  deltas_.push_back(delta);
}

}  // namespace warmroute
