// The numbers and defaults of the C interface are those of the C++ one.
#include <gtest/gtest.h>

#include <limits>

#include "policy.hpp"
#include "warmroute.h"
#include "warmroute/ingest/engine_metrics.hpp"
#include "warmroute/ingest/kv_source.hpp"
#include "warmroute/ingest/request_body.hpp"
#include "warmroute/prefix/index.hpp"
#include "warmroute/ring/load_bound.hpp"
#include "warmroute/route/cache_export.hpp"
#include "warmroute/route/router.hpp"

namespace warmroute {
namespace {

#define SAME(c_name, cpp_value) static_assert(static_cast<long long>(c_name) == static_cast<long long>(cpp_value))

SAME(WR_STATUS_OK, Code::ok);
SAME(WR_STATUS_INVALID_ARGUMENT, Code::invalid_argument);
SAME(WR_STATUS_NOT_FOUND, Code::not_found);
SAME(WR_STATUS_ALREADY_EXISTS, Code::already_exists);
SAME(WR_STATUS_OUT_OF_RANGE, Code::out_of_range);
SAME(WR_STATUS_CAPACITY, Code::capacity);
SAME(WR_STATUS_STALE, Code::stale);
SAME(WR_STATUS_UNSUPPORTED, Code::unsupported);
SAME(WR_STATUS_IO, Code::io);
SAME(WR_STATUS_INTERNAL, Code::internal);
SAME(WR_STATUS_OUT_OF_MEMORY, Code::out_of_memory);
SAME(WR_STATUS_ABI_MISMATCH, Code::abi_mismatch);
SAME(WR_STATUS_INVALID_JSON, Code::invalid_json);
SAME(WR_STATUS_INVALID_UTF8, Code::invalid_utf8);
SAME(WR_STATUS_INVALID_UNICODE, Code::invalid_unicode);
SAME(WR_STATUS_TOO_DEEP, Code::too_deep);
SAME(WR_STATUS_TOO_LARGE, Code::too_large);
SAME(WR_STATUS_NOT_AN_OBJECT, Code::not_an_object);
SAME(WR_STATUS_MISSING_FIELD, Code::missing_field);
SAME(WR_STATUS_WRONG_TYPE, Code::wrong_type);
SAME(WR_STATUS_VALUE_OUT_OF_RANGE, Code::value_out_of_range);
SAME(WR_STATUS_INVALID_VALUE, Code::invalid_value);
SAME(WR_STATUS_EMPTY_PROMPT, Code::empty_prompt);
SAME(WR_STATUS_MALFORMED, Code::malformed);
static_assert(WR_NO_OFFSET == kNoOffset);

SAME(WR_NO_SLOT, kNoReplica.slot);
SAME(WR_UNKNOWN, kUnknown);
SAME(WR_TIER_DEVICE, Tier::device);
SAME(WR_TIER_HOST, Tier::host);
SAME(WR_TIER_DISK, Tier::disk);
SAME(WR_TIER_SHARED, Tier::shared);
SAME(WR_TIER_DISK + 1, kTierCount);
SAME(WR_LOG_DEBUG, LogLevel::debug);
SAME(WR_LOG_INFO, LogLevel::info);
SAME(WR_LOG_WARNING, LogLevel::warning);
SAME(WR_LOG_ERROR, LogLevel::error);

SAME(WR_DYNAMO_HASH_SEED, kDynamoHashSeed);
SAME(WR_TEXT_BLOCK_BYTES, kTextBlockBytes);
SAME(WR_MAX_BLOCK_TOKENS, kMaxBlockTokens);
SAME(WR_NO_MEMBER, kNoMember);
SAME(WR_SPILL_CLOCKWISE, SpillOrder::clockwise);
SAME(WR_SPILL_PERMUTED, SpillOrder::permuted);

SAME(WR_ALGORITHM_COST, Algorithm::cost);
SAME(WR_ALGORITHM_RANDOM, Algorithm::random);
SAME(WR_ALGORITHM_ROUND_ROBIN, Algorithm::round_robin);
SAME(WR_ALGORITHM_LEAST_REQUESTS, Algorithm::least_requests);
SAME(WR_ALGORITHM_LEAST_TOKENS, Algorithm::least_tokens);
SAME(WR_ALGORITHM_POWER_OF_TWO, Algorithm::power_of_two);
SAME(WR_ALGORITHM_LONGEST_MATCH, Algorithm::longest_match);
SAME(WR_ALGORITHM_CONSISTENT_HASH, Algorithm::consistent_hash);
SAME(WR_ALGORITHM_BOUNDED_HASH, Algorithm::bounded_hash);
SAME(WR_ALGORITHM_BOUNDED_HASH + 1, kAlgorithmNames.size());
SAME(WR_RING_KEY_PREFIX, RingKey::prefix);
SAME(WR_RING_KEY_SESSION_OR_PREFIX, RingKey::session_or_prefix);
SAME(WR_ISOLATION_NONE, Isolation::none);
SAME(WR_ISOLATION_SALT, Isolation::salt);
SAME(WR_ISOLATION_POOL, Isolation::pool);
SAME(WR_STALE_SIGNALS_IGNORE, StaleSignals::ignore);
SAME(WR_STALE_SIGNALS_EXCLUDE, StaleSignals::exclude);

SAME(WR_ROLE_UNIFIED, Role::unified);
SAME(WR_ROLE_PREFILL, Role::prefill);
SAME(WR_ROLE_DECODE, Role::decode);
SAME(WR_CACHE_PAGED, CacheKind::paged);
SAME(WR_CACHE_SLOTS, CacheKind::slots);
SAME(WR_HEALTH_UP, Health::up);
SAME(WR_HEALTH_DRAINING, Health::draining);
SAME(WR_HEALTH_DOWN, Health::down);
SAME(WR_SIGNAL_RUNNING, Signal::running);
SAME(WR_SIGNAL_WAITING, Signal::waiting);
SAME(WR_SIGNAL_KV_USAGE, Signal::kv_usage);
SAME(WR_SIGNAL_BLOCK_TOKENS, Signal::block_tokens);
SAME(WR_SIGNAL_BLOCK_COUNT, Signal::block_count);
SAME(WR_SIGNAL_PREFIX_QUERIES, Signal::prefix_queries);
SAME(WR_SIGNAL_PREFIX_HITS, Signal::prefix_hits);
SAME(WR_SIGNAL_WAITING_TOKENS, Signal::waiting_tokens);
SAME(WR_SIGNAL_WAITING_TOKENS + 1, kSignalCount);
SAME(WR_CACHE_KEY_BYTES, CacheExportKey::extent);

SAME(WR_KV_SUBSCRIBER, KvSocket::subscriber);
SAME(WR_KV_DEALER, KvSocket::dealer);
SAME(WR_KV_REQ, KvSocket::req);
SAME(WR_KV_NOTICE_GAP, KvNoticeKind::gap);
SAME(WR_KV_NOTICE_REPLAY_COMPLETE, KvNoticeKind::replay_complete);
SAME(WR_KV_NOTICE_RESYNC, KvNoticeKind::resync);
SAME(WR_KV_NOTICE_RESTART, KvNoticeKind::restart);
SAME(WR_KV_NOTICE_CLEARED, KvNoticeKind::cleared);
SAME(WR_KV_NOTICE_ORPHAN, KvNoticeKind::orphan);
SAME(WR_KV_NOTICE_ORPHAN_ATTACHED, KvNoticeKind::orphan_attached);
SAME(WR_KV_NOTICE_ORPHAN_DROPPED, KvNoticeKind::orphan_dropped);
SAME(WR_KV_NOTICE_BAD_EVENT, KvNoticeKind::bad_event);
SAME(WR_KV_NOTICE_BAD_MESSAGE, KvNoticeKind::bad_message);
SAME(WR_KV_NOTICE_BLOCK_SIZE, KvNoticeKind::block_size);
SAME(WR_KV_NOTICE_UNKNOWN_BLOCK, KvNoticeKind::unknown_block);
SAME(WR_KV_NOTICE_UNKNOWN_BLOCK + 1, kKvNoticeCount);
SAME(WR_KV_RESYNC_NONE, KvResync::none);
SAME(WR_KV_RESYNC_GAP_WITHOUT_REPLAY, KvResync::gap_without_replay);
SAME(WR_KV_RESYNC_REPLAY_OVERRUN, KvResync::replay_overrun);
SAME(WR_KV_RESYNC_REPLAY_TIMEOUT, KvResync::replay_timeout);
SAME(WR_KV_RESYNC_TOO_MUCH_HELD, KvResync::too_much_held);
SAME(WR_KV_RESYNC_BAD_MESSAGE, KvResync::bad_message);
SAME(WR_KV_STATE_WAITING, KvSourceState::waiting);
SAME(WR_KV_STATE_LIVE, KvSourceState::live);
SAME(WR_KV_STATE_REPLAYING, KvSourceState::replaying);
SAME(WR_PREFIX_UNIT_UNKNOWN, PrefixUnit::unknown);
SAME(WR_PREFIX_UNIT_TOKENS, PrefixUnit::tokens);
SAME(WR_PREFIX_UNIT_BLOCKS, PrefixUnit::blocks);

SAME(WR_BLOCKS_TOKENS, BlockKind::tokens);
SAME(WR_BLOCKS_TEXT, BlockKind::text);
SAME(WR_API_CHAT, BodyApi::chat);
SAME(WR_API_COMPLETIONS, BodyApi::completions);
SAME(WR_API_RESPONSES, BodyApi::responses);
SAME(WR_API_EMBEDDINGS, BodyApi::embeddings);
SAME(WR_API_MESSAGES, BodyApi::messages);
SAME(WR_API_GEMINI, BodyApi::gemini);
SAME(WR_API_CONVERSE, BodyApi::converse);
SAME(WR_PROMPT_CHAT, PromptKind::chat);
SAME(WR_PROMPT_TEXT, PromptKind::text);
SAME(WR_PROMPT_TOKENS, PromptKind::tokens);
SAME(WR_PROMPT_EMBEDDING, PromptKind::embedding);

SAME(WR_VERDICT_ROUTED, Verdict::routed);
SAME(WR_VERDICT_NO_REPLICA, Verdict::no_replica);
SAME(WR_VERDICT_NO_POOL, Verdict::no_pool);
SAME(WR_VERDICT_NO_ADAPTER, Verdict::no_adapter);
SAME(WR_VERDICT_ALL_EXCLUDED, Verdict::all_excluded);
SAME(WR_VERDICT_SATURATED, Verdict::saturated);
SAME(WR_VERDICT_TICKET_TABLE_FULL, Verdict::ticket_table_full);
SAME(WR_VERDICT_NOT_PERMITTED, Verdict::not_permitted);
SAME(WR_VERDICT_NO_PERMITTED_POOL, Verdict::no_permitted_pool);
SAME(WR_REASON_NONE, Reason::none);
SAME(WR_REASON_BEST_MATCH, Reason::best_match);
SAME(WR_REASON_NO_MATCH, Reason::no_match);
SAME(WR_REASON_SPILL_WAIT, Reason::spill_wait);
SAME(WR_REASON_SPILL_DECODE, Reason::spill_decode);
SAME(WR_REASON_SPILL_HOT, Reason::spill_hot);
SAME(WR_REASON_SPILL_BOUND, Reason::spill_bound);
SAME(WR_REASON_SESSION, Reason::session);
SAME(WR_REASON_HOME, Reason::home);
SAME(WR_REASON_PINNED, Reason::pinned);
SAME(WR_REASON_ONLY_CANDIDATE, Reason::only_candidate);
SAME(WR_REASON_BASELINE, Reason::baseline);
SAME(WR_REASON_FAIL_OPEN, Reason::fail_open);
SAME(WR_REASON_SPILL_SATURATED, Reason::spill_saturated);
SAME(WR_REASON_SPILL_SATURATED + 1, kReasonCount);
SAME(WR_MAX_FALLBACKS, kMaxFallbacks);
SAME(WR_SPLIT_OFF, Split::off);
SAME(WR_SPLIT_PAIR, Split::pair);
SAME(WR_SPLIT_UNIFIED_CHEAPER, Split::unified_cheaper);
SAME(WR_SPLIT_SHORT_PROMPT, Split::short_prompt);
SAME(WR_SPLIT_NO_PREFILL, Split::no_prefill);
SAME(WR_SPLIT_NO_DECODE, Split::no_decode);
SAME(WR_SPLIT_NO_DECODE + 1, kSplitCount);
SAME(WR_DISAGGREGATE_NEVER, Disaggregate::never);
SAME(WR_DISAGGREGATE_ALWAYS, Disaggregate::always);
SAME(WR_DISAGGREGATE_DECIDED, Disaggregate::decided);
SAME(WR_OUTCOME_FINISHED, Outcome::finished);
SAME(WR_OUTCOME_CANCELLED, Outcome::cancelled);
SAME(WR_OUTCOME_CLIENT_ERROR, Outcome::client_error);
SAME(WR_OUTCOME_BACKPRESSURE, Outcome::backpressure);
SAME(WR_OUTCOME_REPLICA_ERROR, Outcome::replica_error);
SAME(WR_OUTCOME_CONNECT_ERROR, Outcome::connect_error);
SAME(WR_OUTCOME_TIMEOUT, Outcome::timeout);
SAME(WR_OUTCOME_LEASE_EXPIRED, Outcome::lease_expired);
SAME(WR_OUTCOME_LEASE_EXPIRED + 1, kOutcomeCount);
static_assert(WR_REASON_SLOTS >= kReasonCount && WR_OUTCOME_SLOTS >= kOutcomeCount);

TEST(CValues, HaveTheNamesOfTheCppOnes) {
  for (int i = -300; i < 600; ++i) {
    EXPECT_EQ(wr_status_text(i), code_name(static_cast<Code>(i))) << i;
    const auto value = static_cast<std::uint32_t>(i);
    const bool byte = value <= 255;
    const auto narrow = static_cast<std::uint8_t>(value);
    const auto wanted = [&](std::string_view name) { return byte ? name : std::string_view("unknown"); };
    EXPECT_EQ(wr_algorithm_name(value), wanted(algorithm_name(static_cast<Algorithm>(narrow)))) << i;
    EXPECT_EQ(wr_verdict_name(value), wanted(verdict_name(static_cast<Verdict>(narrow)))) << i;
    EXPECT_EQ(wr_reason_name(value), wanted(reason_name(static_cast<Reason>(narrow)))) << i;
    EXPECT_EQ(wr_outcome_name(value), wanted(outcome_name(static_cast<Outcome>(narrow)))) << i;
  }
  EXPECT_EQ(verdict_name(static_cast<Verdict>(WR_VERDICT_NO_PERMITTED_POOL + 1)), "unknown");  // none is missing in C
}

TEST(CDefaults, OfThePolicyAreThoseOfCpp) {
  wr_policy policy;
  policy.struct_size = sizeof policy;
  ASSERT_EQ(wr_policy_init(&policy, nullptr), WR_STATUS_OK);
  EXPECT_EQ(capi::policy_of(policy), Policy{});
}

TEST(CDefaults, NoMemberOfAPolicyIsLostOnTheWayThereAndBack) {
  Policy p;
  p.algorithm = Algorithm::bounded_hash;
  p.beta = 2.25;
  p.gamma = 3.25;
  p.delta = 4.25;
  p.hot = 5.25;
  p.session_bonus = Nanos{6};
  p.host_transfer_per_token = Nanos{7};
  p.disk_transfer_per_token = Nanos{8};
  p.shared_transfer_per_token = Nanos{81};
  p.learn_rates = false;
  p.routers = 17;
  p.saturation_wait = Nanos{171};
  p.disaggregate = Disaggregate::decided;
  p.unified_pairs = true;
  p.pair_min_tokens = 173;
  p.kv_transfer_per_token = Nanos{174};
  p.kv_transfer_latency = Nanos{175};
  p.transfer_timeout = seconds(176);
  p.decode_keeps_cache = false;
  p.interference = 0.625;
  p.ttft_limit = Nanos{177};
  p.itl_limit = Nanos{178};
  p.tail = 0.875;
  p.reuse = Nanos{179};
  p.saturation_kv = 0.75;
  p.shed_priority = -172;
  p.ring_key = RingKey::session_or_prefix;
  p.ring_key_tokens = 9;
  p.ring_points = 10;
  p.ring_seed = 11;
  p.bound_factor = 12;
  p.block_size = 13;
  p.hash_seed = 14;
  p.isolation = Isolation::pool;
  p.capacity_tokens = 15;
  p.residency_ttl = Nanos{16};
  p.lease = seconds(17);
  p.session_ttl = Nanos{18};
  p.signals_max_age = Nanos{19};
  p.stale_signals = StaleSignals::exclude;
  p.route_when_all_down = false;
  p.seed = 20;
  p.version = 21;
  EXPECT_EQ(capi::policy_of(capi::policy_of(p)), p);
  EXPECT_TRUE(validate(p));
}

TEST(CDefaults, OfRoutersIndexesAndRingsAreThoseOfCpp) {
  const wr_router_options c = WR_ROUTER_OPTIONS_INIT;
  const RouterOptions cpp;
  EXPECT_EQ(c.max_replicas, cpp.max_replicas);
  EXPECT_EQ(c.max_tickets, cpp.max_tickets);
  EXPECT_EQ(c.index_max_bytes, cpp.index_max_bytes);
  EXPECT_EQ(c.session_entries, cpp.session_entries);
  EXPECT_EQ(c.shared_prefix_entries, cpp.shared_prefix_entries);
  EXPECT_EQ(c.placement_queue, cpp.placement_queue);
  EXPECT_EQ(c.max_path_blocks, cpp.max_path_blocks);
  const wr_index_options index = WR_INDEX_OPTIONS_INIT;
  EXPECT_EQ(index.max_replicas, PrefixIndexOptions{}.max_replicas);
  EXPECT_EQ(index.max_bytes, PrefixIndexOptions{}.max_bytes);
  const wr_ring_options ring = WR_RING_OPTIONS_INIT;
  EXPECT_EQ(ring.points_per_unit, RingOptions{}.points_per_unit);
  EXPECT_EQ(ring.max_points, RingOptions{}.max_points);
  EXPECT_EQ(ring.seed, RingOptions{}.seed);
  EXPECT_EQ(ring.key_rule, RingOptions{}.key_rule);
  const wr_ring_member member = WR_RING_MEMBER_INIT;
  EXPECT_EQ(member.weight, RingMember{}.weight);
  const wr_load_bound bound = WR_LOAD_BOUND_INIT;
  EXPECT_EQ(bound.factor, LoadBound{}.factor);
  EXPECT_EQ(bound.order, static_cast<std::uint32_t>(LoadBound{}.order));
  EXPECT_EQ(bound.spill_seed, LoadBound{}.spill_seed);
  EXPECT_EQ(bound.max_probes, LoadBound{}.max_probes);
  const wr_hash_space space = WR_HASH_SPACE_INIT;
  EXPECT_EQ(space.hash_seed, HashSpace{}.hash_seed);
  EXPECT_EQ(space.text != 0, HashSpace{}.text);
}

TEST(CDefaults, OfReplicasAreThoseOfCpp) {
  const wr_replica_spec c = WR_REPLICA_SPEC_INIT;
  const ReplicaSpec cpp;
  EXPECT_EQ(c.dp_rank, cpp.dp_rank);
  EXPECT_EQ(c.role, static_cast<std::uint32_t>(cpp.role));
  EXPECT_EQ(c.health, static_cast<std::uint32_t>(cpp.health));
  EXPECT_EQ(c.weight, cpp.weight);
  EXPECT_EQ(c.any_adapter != 0, cpp.any_adapter);
  EXPECT_EQ(c.capacity_tokens, cpp.capacity_tokens);
  EXPECT_EQ(c.cache_kind, static_cast<std::uint32_t>(cpp.cache_kind));
  EXPECT_EQ((SlotSpec{c.slots, c.slots_unified != 0, c.slot_ram_tokens}), cpp.slots);
  EXPECT_EQ((Rates{c.floor_ns, c.token_ps, c.pair_ps, c.context_ps, c.overhead_ns}), cpp.rates);
  EXPECT_EQ(c.name.size + c.pool.size + c.ring_id.size + c.adapter_count + c.label_count, 0u);
}

TEST(CDefaults, OfSourcesOfEventsAreThoseOfCpp) {
  const wr_kv_source_options c = WR_KV_SOURCE_OPTIONS_INIT;
  const KvSourceOptions cpp;
  EXPECT_EQ(c.block_size, 0u);  // the policy's
  EXPECT_EQ(c.engine_block_size, cpp.events.engine_block_size);
  EXPECT_EQ(c.hash_seed, cpp.events.hash_seed);
  EXPECT_EQ(c.isolation_key.size, cpp.events.isolation_key.size());
  EXPECT_EQ(c.max_message_bytes, cpp.events.max_bytes);
  EXPECT_EQ(c.replay != 0, cpp.replay);
  EXPECT_EQ(c.replay_attempts, cpp.replay_attempts);
  EXPECT_EQ(c.replay_timeout_ns, cpp.replay_timeout.value);
  EXPECT_EQ(c.max_held_bytes, cpp.max_held_bytes);
  EXPECT_EQ(c.max_orphan_blocks, cpp.max_orphan_blocks);
  EXPECT_EQ(c.orphan_age_ns, cpp.orphan_age.value);
}

TEST(CDefaults, OfRequestsBodiesDecisionsAndUsageAreThoseOfCpp) {
  const wr_request c = WR_REQUEST_INIT;
  const Request cpp;
  EXPECT_EQ(c.block_kind, static_cast<std::uint32_t>(cpp.block_kind));
  EXPECT_EQ(c.input_tokens, cpp.input_tokens);
  EXPECT_EQ(c.prompt_bytes, cpp.prompt_bytes);
  EXPECT_EQ(c.max_output_tokens, cpp.max_output_tokens);
  EXPECT_EQ(c.deadline_ns, cpp.deadline.value);
  EXPECT_EQ(c.class_id, cpp.class_id);
  EXPECT_EQ(c.priority, cpp.priority);
  EXPECT_EQ(c.stream != 0, cpp.stream);
  EXPECT_EQ((ReplicaId{c.pinned.slot, c.pinned.generation}), cpp.pinned);
  const wr_body_options body = WR_BODY_OPTIONS_INIT;
  EXPECT_EQ(body.max_bytes, RequestBodyOptions{}.max_bytes);
  EXPECT_EQ(body.max_depth, RequestBodyOptions{}.max_depth);
  EXPECT_EQ(body.block_size, RequestBodyOptions{}.block_size);
  EXPECT_EQ(body.hash_seed, RequestBodyOptions{}.hash_seed);
  EXPECT_EQ(body.isolation, static_cast<std::uint32_t>(RequestBodyOptions{}.isolation));
  const wr_decision d = WR_DECISION_INIT;
  EXPECT_EQ(d.verdict, static_cast<std::uint32_t>(Decision{}.verdict));
  EXPECT_EQ(d.reason, static_cast<std::uint32_t>(Decision{}.reason));
  EXPECT_EQ((ReplicaId{d.replica.slot, d.replica.generation}), Decision{}.replica);
  for (const wr_replica_id& id : d.fallbacks) EXPECT_EQ(id.slot, std::numeric_limits<std::uint32_t>::max());
  const wr_usage usage = WR_USAGE_INIT;
  EXPECT_EQ(usage.input_tokens, UsageCounts{}.input_tokens);
  EXPECT_EQ(usage.cached_tokens, UsageCounts{}.cached_tokens);
  EXPECT_EQ(usage.output_tokens, UsageCounts{}.output_tokens);
  const wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  EXPECT_EQ(stored.tier, static_cast<std::uint32_t>(StoredBlocks{}.tier));
}

}  // namespace
}  // namespace warmroute
