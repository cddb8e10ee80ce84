/* Every WR_..._INIT, compiled as C99, C11 and C++20 in two units of one program. FUNCTION is the unit's own name. */
#include "warmroute.h"

uint32_t FUNCTION(void);
uint32_t FUNCTION(void) {
  const wr_error error = WR_ERROR_INIT;
  const wr_str none = WR_STR_INIT;
  const wr_replica_id nobody = WR_NO_REPLICA_INIT;
  const wr_hash_space space = WR_HASH_SPACE_INIT;
  const wr_index_options index = WR_INDEX_OPTIONS_INIT;
  const wr_index_statistics statistics = WR_INDEX_STATISTICS_INIT;
  const wr_ring_member member = WR_RING_MEMBER_INIT;
  const wr_ring_options ring = WR_RING_OPTIONS_INIT;
  const wr_load_bound bound = WR_LOAD_BOUND_INIT;
  const wr_bounded_pick pick = WR_BOUNDED_PICK_INIT;
  const wr_router_options router = WR_ROUTER_OPTIONS_INIT;
  const wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  const wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  const wr_cache_import_report report = WR_CACHE_IMPORT_REPORT_INIT;
  const wr_request request = WR_REQUEST_INIT;
  const wr_body_options options = WR_BODY_OPTIONS_INIT;
  const wr_body body = WR_BODY_INIT;
  const wr_decision decision = WR_DECISION_INIT;
  const wr_model_choice choice = WR_MODEL_CHOICE_INIT;
  const wr_usage usage = WR_USAGE_INIT;
  const wr_statistics all = WR_STATISTICS_INIT;
  const wr_replica_statistics replica = WR_REPLICA_STATISTICS_INIT;
  const wr_pool_statistics pool = WR_POOL_STATISTICS_INIT;
  const wr_kv_source_options source = WR_KV_SOURCE_OPTIONS_INIT;
  const wr_kv_source_status status = WR_KV_SOURCE_STATUS_INIT;
  const wr_metrics_reading reading = WR_METRICS_READING_INIT;
  const wr_metrics_rank rank = WR_METRICS_RANK_INIT;
  const wr_metrics_target target = WR_METRICS_TARGET_INIT;
  const wr_metrics_applied applied = WR_METRICS_APPLIED_INIT;
  const wr_prefix_counters counters = WR_PREFIX_COUNTERS_INIT;
  const wr_engine_delta delta = WR_ENGINE_DELTA_INIT;
  const wr_kv_subscriber_options subscriber = WR_KV_SUBSCRIBER_OPTIONS_INIT;
  const wr_kv_endpoint endpoint = WR_KV_ENDPOINT_INIT;
  const wr_kv_endpoint_status line = WR_KV_ENDPOINT_STATUS_INIT;
  const wr_poller_options poller = WR_POLLER_OPTIONS_INIT;
  const wr_poller_target polled = WR_POLLER_TARGET_INIT;
  const wr_poller_status asked = WR_POLLER_STATUS_INIT;
  const wr_meter_options u_meter_options = WR_METER_OPTIONS_INIT;
  const wr_usage_report u_usage_report = WR_USAGE_REPORT_INIT;
  const wr_usage_ask u_usage_ask = WR_USAGE_ASK_INIT;
  const wr_token_estimate u_token_estimate = WR_TOKEN_ESTIMATE_INIT;
  const wr_estimate_options u_estimate_options = WR_ESTIMATE_OPTIONS_INIT;
  const wr_hangup_policy u_hangup_policy = WR_HANGUP_POLICY_INIT;
  const wr_cost u_cost = WR_COST_INIT;
  const wr_self_hosted_price u_self_hosted_price = WR_SELF_HOSTED_PRICE_INIT;
  const wr_price_options u_price_options = WR_PRICE_OPTIONS_INIT;
  const wr_key_digest u_key_digest = WR_KEY_DIGEST_INIT;
  const wr_key_record u_key_record = WR_KEY_RECORD_INIT;
  const wr_key_grant u_key_grant = WR_KEY_GRANT_INIT;
  const wr_keys_options u_keys_options = WR_KEYS_OPTIONS_INIT;
  const wr_keys_statistics u_keys_statistics = WR_KEYS_STATISTICS_INIT;
  const wr_limit_spec u_limit_spec = WR_LIMIT_SPEC_INIT;
  const wr_limit_use u_limit_use = WR_LIMIT_USE_INIT;
  const wr_limit_decision u_limit_decision = WR_LIMIT_DECISION_INIT;
  const wr_limits_options u_limits_options = WR_LIMITS_OPTIONS_INIT;
  const wr_limits_statistics u_limits_statistics = WR_LIMITS_STATISTICS_INIT;
  const wr_usage_event u_usage_event = WR_USAGE_EVENT_INIT;
  const wr_journal_options u_journal_options = WR_JOURNAL_OPTIONS_INIT;
  const wr_journal_cursor u_journal_cursor = WR_JOURNAL_CURSOR_INIT;
  const wr_journal_statistics u_journal_statistics = WR_JOURNAL_STATISTICS_INIT;
  const wr_journal_record u_journal_record = WR_JOURNAL_RECORD_INIT;
  const wr_ledger_options u_ledger_options = WR_LEDGER_OPTIONS_INIT;
  const wr_ledger_row u_ledger_row = WR_LEDGER_ROW_INIT;
  const wr_verifying_key c_verifying_key = WR_VERIFYING_KEY_INIT;
  const wr_snapshot_trust c_snapshot_trust = WR_SNAPSHOT_TRUST_INIT;
  const wr_snapshot_options c_snapshot_options = WR_SNAPSHOT_OPTIONS_INIT;
  const wr_snapshot_facts c_snapshot_facts = WR_SNAPSHOT_FACTS_INIT;
  const wr_snapshot_limits c_snapshot_limits = WR_SNAPSHOT_LIMITS_INIT;
  const wr_applier_options c_applier_options = WR_APPLIER_OPTIONS_INIT;
  const wr_applied c_applied = WR_APPLIED_INIT;
  const wr_control_status c_control_status = WR_CONTROL_STATUS_INIT;
  const wr_file_source_options c_file_source_options = WR_FILE_SOURCE_OPTIONS_INIT;
  const wr_file_source_status c_file_source_status = WR_FILE_SOURCE_STATUS_INIT;
  const wr_handover_options c_handover_options = WR_HANDOVER_OPTIONS_INIT;
  const wr_handover_status c_handover_status = WR_HANDOVER_STATUS_INIT;
  const wr_pair_statistics t_pair_statistics = WR_PAIR_STATISTICS_INIT;
  const wr_learned_rates t_learned_rates = WR_LEARNED_RATES_INIT;
  const wr_served_tokens t_served_tokens = WR_SERVED_TOKENS_INIT;
  const wr_pool_ratio t_pool_ratio = WR_POOL_RATIO_INIT;
  const wr_trace_record t_trace_record = WR_TRACE_RECORD_INIT;
  const wr_trace_options t_trace_options = WR_TRACE_OPTIONS_INIT;
  const wr_decision_log_options t_decision_log_options = WR_DECISION_LOG_OPTIONS_INIT;
  const wr_recording t_recording = WR_RECORDING_INIT;
  const wr_decision_record t_decision_record = WR_DECISION_RECORD_INIT;
  const wr_replay_options t_replay_options = WR_REPLAY_OPTIONS_INIT;
  const wr_replay t_replay = WR_REPLAY_INIT;
  const wr_rates t_rates = WR_RATES_INIT;
  return wr_abi_version() + nobody.generation + (none.data == NULL) + error.struct_size + space.struct_size +
         index.struct_size + statistics.struct_size + member.struct_size + ring.struct_size + bound.struct_size +
         pick.struct_size + router.struct_size + spec.struct_size + stored.struct_size + report.struct_size +
         request.struct_size + options.struct_size + body.struct_size + decision.struct_size + usage.struct_size +
         all.struct_size + replica.struct_size + pool.struct_size + source.struct_size + status.struct_size +
         reading.struct_size + rank.struct_size + target.struct_size + applied.struct_size + counters.struct_size +
         delta.struct_size + subscriber.struct_size + endpoint.struct_size + line.struct_size + poller.struct_size +
         polled.struct_size + asked.struct_size + u_meter_options.struct_size + u_usage_report.struct_size +
         u_usage_ask.struct_size + u_token_estimate.struct_size + u_estimate_options.struct_size + u_cost.struct_size +
         u_hangup_policy.struct_size + u_self_hosted_price.struct_size + u_price_options.struct_size +
         u_key_digest.struct_size + u_key_record.struct_size + u_key_grant.struct_size + u_keys_options.struct_size +
         u_keys_statistics.struct_size + u_limit_spec.struct_size + u_limit_use.struct_size +
         u_limit_decision.struct_size + u_limits_options.struct_size + u_limits_statistics.struct_size +
         u_usage_event.struct_size + u_journal_options.struct_size + (u_journal_cursor.segment != 0) +
         u_journal_statistics.struct_size + u_journal_record.struct_size + u_ledger_options.struct_size +
         u_ledger_row.struct_size + choice.struct_size + c_verifying_key.struct_size + c_snapshot_trust.struct_size +
         c_snapshot_options.struct_size + c_snapshot_facts.struct_size + c_snapshot_limits.struct_size +
         c_applier_options.struct_size + c_applied.struct_size + c_control_status.struct_size +
         c_file_source_options.struct_size + c_file_source_status.struct_size + c_handover_options.struct_size +
         c_handover_status.struct_size + t_pair_statistics.struct_size + t_learned_rates.struct_size +
         t_served_tokens.struct_size + t_pool_ratio.struct_size + t_trace_record.struct_size +
         t_trace_options.struct_size + t_decision_log_options.struct_size + t_recording.struct_size +
         t_decision_record.struct_size + t_replay_options.struct_size + t_replay.struct_size + (t_rates.floor_ns == 0);
}
