/// Everything of warmroute in one include. `warmroute::core` suffices for prefix, ring, replica and route; what reads or
/// writes a format (ingest, trace, policy and explanations as JSON) needs `warmroute::warmroute` linked, the subscriber of KV events `warmroute::zmq`.
///
///     #include <warmroute/warmroute.hpp>
///     #include <cstdio>
///     #include <vector>
///
///     int main() {
///       warmroute::Router router;
///       warmroute::Nanos now{0};  // of the caller's monotonic clock; nothing in here reads one
///       for (const char* name : {"gpu-0", "gpu-1"}) {
///         if (!router.add_replica({.name = name}, now)) return 1;
///       }
///       std::vector<std::uint32_t> prompt(1'000, 42);  // token ids; bodies with text: ingest/request_body.hpp
///       warmroute::Decision decision;
///       for (int turn = 1; turn <= 2; ++turn) {
///         warmroute::Request request;
///         request.token_ids = prompt;
///         decision = router.route(request, now);  // which replica, what it holds, why; its load is booked
///         std::printf("turn %d: replica %u, %lld of %lld tokens cached\n", turn, decision.replica.slot,
///                     static_cast<long long>(decision.total_cached().value), static_cast<long long>(decision.input_tokens.value));
///         router.first_token(decision.ticket, now += warmroute::milliseconds(80));  // prefill is over
///         router.finish(decision.ticket, {.output_tokens = 200}, now += warmroute::seconds(2));  // load released
///         prompt.resize(prompt.size() + 300, 43);  // the next turn begins with all of this one
///       }
///       return decision.total_cached() >= warmroute::Tokens{900} ? 0 : 1;
///     }
#pragma once

#include "warmroute/control/applier.hpp"
#include "warmroute/control/signature.hpp"
#include "warmroute/control/sink.hpp"
#include "warmroute/control/snapshot.hpp"
#include "warmroute/control/source.hpp"
#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/ingest/kv_events.hpp"
#include "warmroute/ingest/kv_source.hpp"
#include "warmroute/ingest/kv_subscriber.hpp"
#include "warmroute/ingest/metrics_poller.hpp"
#include "warmroute/ingest/request_body.hpp"
#include "warmroute/observe/log.hpp"
#include "warmroute/observe/prometheus.hpp"
#include "warmroute/observe/statistics.hpp"
#include "warmroute/prefix/block_hash.hpp"
#include "warmroute/prefix/cached_tree.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/prefix/residency.hpp"
#include "warmroute/prefix/slot_residency.hpp"
#include "warmroute/replica/fading_sum.hpp"
#include "warmroute/replica/load.hpp"
#include "warmroute/replica/replica.hpp"
#include "warmroute/replica/table.hpp"
#include "warmroute/result.hpp"
#include "warmroute/ring/hash_ring.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/ring/movement.hpp"
#include "warmroute/route/affinity.hpp"
#include "warmroute/route/baselines.hpp"
#include "warmroute/route/cache_events.hpp"
#include "warmroute/route/cache_export.hpp"
#include "warmroute/route/cost.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/disaggregate.hpp"
#include "warmroute/route/explain.hpp"
#include "warmroute/route/gateway_ring.hpp"
#include "warmroute/route/learned.hpp"
#include "warmroute/route/models.hpp"
#include "warmroute/route/peer_load.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/policy_json.hpp"
#include "warmroute/route/replica_cache.hpp"
#include "warmroute/route/request.hpp"
#include "warmroute/route/router.hpp"
#include "warmroute/route/router_calls.hpp"
#include "warmroute/trace/decision_log.hpp"
#include "warmroute/trace/decision_recorder.hpp"
#include "warmroute/trace/replica_model.hpp"
#include "warmroute/trace/sample.hpp"
#include "warmroute/trace/trace.hpp"
#include "warmroute/trace/trace_writer.hpp"
#include "warmroute/types.hpp"
#include "warmroute/usage/journal.hpp"
#include "warmroute/usage/keys.hpp"
#include "warmroute/usage/ledger.hpp"
#include "warmroute/usage/limits.hpp"
#include "warmroute/usage/meter.hpp"
#include "warmroute/usage/price.hpp"
#include "warmroute/usage/request_side.hpp"
#include "warmroute/usage/usage.hpp"
#include "warmroute/usage/wall_time.hpp"
