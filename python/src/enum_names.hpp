// The enums of the library by name, for arguments that may be strings. Where the library has a table, a test compares them.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <string_view>

#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/ingest/kv_source.hpp"
#include "warmroute/ingest/request_body.hpp"
#include "warmroute/observe/log.hpp"
#include "warmroute/observe/statistics.hpp"
#include "warmroute/replica/load.hpp"
#include "warmroute/replica/replica.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/route/decision.hpp"
#include "warmroute/route/policy.hpp"
#include "warmroute/route/request.hpp"

namespace warmroute::python {

template <class E>
struct EnumNames;

/// Numbers are 0, 1, 2, ... in the order of the names. Those of usage/ are in usage_enum_names.hpp.
#define WARMROUTE_ENUM_NAMES(Type, Count, ...)                                                          \
  template <>                                                                                           \
  struct EnumNames<Type> {                                                                              \
    static constexpr const char* kPythonName = #Type;                                                   \
    static constexpr auto kSignature = pybind11::detail::const_name("warmroute._core." #Type " | str"); \
    static constexpr std::array<std::string_view, Count> kNames{__VA_ARGS__};                           \
  }

WARMROUTE_ENUM_NAMES(Algorithm, 9, "cost", "random", "round_robin", "least_requests", "least_tokens", "power_of_two",
                     "longest_match", "consistent_hash", "bounded_hash");
WARMROUTE_ENUM_NAMES(BlockKind, 2, "tokens", "text");
WARMROUTE_ENUM_NAMES(BodyApi, 7, "chat", "completions", "responses", "embeddings", "messages", "gemini", "converse");
WARMROUTE_ENUM_NAMES(CacheKind, 2, "paged", "slots");
WARMROUTE_ENUM_NAMES(Health, 3, "up", "draining", "down");
WARMROUTE_ENUM_NAMES(Isolation, 3, "none", "salt", "pool");
WARMROUTE_ENUM_NAMES(KvNoticeKind, kKvNoticeCount, "gap", "replay_complete", "resync", "restart", "cleared", "orphan",
                     "orphan_attached", "orphan_dropped", "bad_event", "bad_message", "block_size", "unknown_block");
WARMROUTE_ENUM_NAMES(KvResync, 6, "none", "gap_without_replay", "replay_overrun", "replay_timeout", "too_much_held",
                     "bad_message");
WARMROUTE_ENUM_NAMES(KvSocket, 3, "subscriber", "dealer", "req");
WARMROUTE_ENUM_NAMES(KvSourceState, 3, "waiting", "live", "replaying");
WARMROUTE_ENUM_NAMES(LogLevel, 4, "debug", "info", "warning", "error");
WARMROUTE_ENUM_NAMES(Outcome, 8, "finished", "cancelled", "client_error", "backpressure", "replica_error",
                     "connect_error", "timeout", "lease_expired");
WARMROUTE_ENUM_NAMES(PrefixUnit, 3, "unknown", "tokens", "blocks");
WARMROUTE_ENUM_NAMES(PromptKind, 4, "chat", "text", "tokens", "embedding");
WARMROUTE_ENUM_NAMES(Reason, kReasonCount, "none", "best_match", "no_match", "spill_wait", "spill_decode", "spill_hot",
                     "spill_bound", "session", "home", "pinned", "only_candidate", "baseline", "fail_open",
                     "spill_saturated");
WARMROUTE_ENUM_NAMES(RingKey, 2, "prefix", "session_or_prefix");
WARMROUTE_ENUM_NAMES(Role, 3, "unified", "prefill", "decode");
WARMROUTE_ENUM_NAMES(Signal, 8, "running", "waiting", "kv_usage", "block_tokens", "block_count", "prefix_queries",
                     "prefix_hits", "waiting_tokens");
WARMROUTE_ENUM_NAMES(SpillOrder, 2, "clockwise", "permuted");
WARMROUTE_ENUM_NAMES(Disaggregate, 3, "never", "always", "decided");
WARMROUTE_ENUM_NAMES(Split, kSplitCount, "off", "pair", "unified_cheaper", "short_prompt", "no_prefill", "no_decode");
WARMROUTE_ENUM_NAMES(StaleSignals, 2, "ignore", "exclude");
WARMROUTE_ENUM_NAMES(Tier, 4, "device", "host", "disk", "shared");
WARMROUTE_ENUM_NAMES(Verdict, 9, "routed", "no_replica", "no_pool", "no_adapter", "all_excluded", "saturated",
                     "ticket_table_full", "not_permitted", "no_permitted_pool");

}  // namespace warmroute::python
