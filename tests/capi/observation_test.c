/* 9 Observation: statistics and their Prometheus text. */
#include "helpers.h"

enum { kSecond = 1000000000 };
static wr_router* shared_router;
static wr_replica_id shared_id;

static wr_status read_router(void* out) { return wr_router_statistics(shared_router, out, NULL); }
static wr_status read_replica(void* out) { return wr_router_replica_statistics(shared_router, shared_id, out, NULL); }
static wr_status read_pool(void* out) { return wr_router_pool_statistics(shared_router, text(""), out, NULL); }
static wr_status give_page(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_router_prometheus(shared_router, buf, cap, needed, err);
}

TEST(StatisticsAreWrittenToEverySizeThatWasSet) {
  static union {
    uint32_t struct_size;
    unsigned char bytes[2048];
  } init;
  shared_router = new_fleet(1, &shared_id);
  init.struct_size = sizeof(wr_statistics);
  check_output_sizes(&init, sizeof(wr_statistics), 0, read_router);
  init.struct_size = sizeof(wr_replica_statistics);
  check_grown_output_sizes(&init, offsetof(wr_replica_statistics, engine_prefix_unit), sizeof(wr_replica_statistics), 0,
                           read_replica);
  init.struct_size = sizeof(wr_pool_statistics);
  check_output_sizes(&init, sizeof(wr_pool_statistics), 0, read_pool);
  wr_router_free(shared_router);
}

TEST(StatisticsCountWhatHappened) {
  wr_router* router = new_fleet(1, &shared_id);
  uint32_t tokens[64];
  wr_request request, lost = WR_REQUEST_INIT;
  wr_decision d = WR_DECISION_INIT;
  wr_usage usage = WR_USAGE_INIT;
  wr_statistics s;
  wr_replica_statistics r;
  wr_pool_statistics p;
  count_up(tokens, 64, 1);
  request = token_request(tokens, 64);
  lost.pinned.slot = 55;
  lost.pinned.generation = 1;
  paint(&s, sizeof s); /* every field is written, whatever was there */
  paint(&r, sizeof r);
  paint(&p, sizeof p);
  s.struct_size = sizeof s;
  r.struct_size = sizeof r;
  p.struct_size = sizeof p;
  CHECK_OK(wr_router_route(router, &lost, kSecond, &d, NULL));
  CHECK_OK(wr_router_route(router, &request, kSecond, &d, NULL));
  CHECK_OK(wr_router_replica_statistics(router, shared_id, &r, NULL));
  CHECK_EQ(r.requests, 1);
  CHECK_EQ(r.pending_tokens, 64);
  CHECK(r.pending_ns > 0);
  CHECK_EQ(r.health, WR_HEALTH_UP);
  CHECK_EQ(r.dp_rank, 0);
  CHECK_EQ(r.reported, 0);
  CHECK_EQ(r.signals_at_ns, 0);
  usage.input_tokens = 64;
  usage.cached_tokens = 0;
  usage.output_tokens = 3;
  CHECK_OK(wr_router_finish(router, d.ticket, &usage, 2 * (int64_t)kSecond));
  CHECK_STATUS(wr_router_finish(router, d.ticket, &usage, 2 * (int64_t)kSecond), WR_STATUS_STALE);
  CHECK_OK(wr_router_advance(router, 0, NULL)); /* the clock goes back */
  CHECK_OK(wr_router_statistics(router, &s, NULL));
  CHECK_EQ(s.verdicts[WR_VERDICT_ROUTED], 1);
  CHECK_EQ(s.verdicts[WR_VERDICT_ALL_EXCLUDED], 1);
  CHECK_EQ(s.verdicts[WR_VERDICT_SLOTS - 1], 0);
  CHECK_EQ(s.reasons[WR_REASON_ONLY_CANDIDATE], 1);
  CHECK_EQ(s.reasons[WR_REASON_SLOTS - 1], 0);
  CHECK_EQ(s.outcomes[WR_OUTCOME_FINISHED], 1);
  CHECK_EQ(s.late_calls, 1);
  CHECK_EQ(s.clock_clamped, 1);
  CHECK_EQ(s.tickets_in_flight, 0);
  CHECK_EQ(s.input_tokens, 64);
  CHECK_EQ(s.output_tokens, 3);
  CHECK_EQ(s.cached_reports, 1);
  CHECK_EQ(s.cached_exact, 1);
  CHECK_EQ(s.event_blocks_stored, 0);
  CHECK_EQ(s.event_gaps, 0);
  CHECK_EQ(s.reserved[6], 0);
  CHECK_OK(wr_router_pool_statistics(router, text(""), &p, NULL));
  CHECK_EQ(p.blocks, 4);
  CHECK_EQ(p.memberships, 4);
  CHECK(p.bytes > 0 && p.max_bytes == 1073741824);
  CHECK(p.bytes_per_token > 0 && p.output_tokens > 0);
  CHECK_EQ(p.reserved[2], 0);
  CHECK_OK(wr_router_replica_statistics(router, shared_id, &r, NULL));
  CHECK_EQ(r.believed_blocks, 4);
  CHECK_EQ(r.capacity_blocks, 400000 / 16);
  wr_router_free(router);
}

TEST(WhatTheEngineFindsInItsCacheStandsBesideWhatWasMatched) {
  wr_router* router = new_fleet(1, &shared_id);
  uint32_t tokens[64];
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  wr_prefix_counters counters = WR_PREFIX_COUNTERS_INIT;
  wr_replica_statistics r = WR_REPLICA_STATISTICS_INIT;
  int i;
  count_up(tokens, 64, 1);
  request = token_request(tokens, 64);
  for (i = 0; i < 2; ++i) {
    CHECK_OK(wr_router_route(router, &request, kSecond, &d, NULL));
    CHECK_OK(wr_router_first_token(router, d.ticket, kSecond));
    CHECK_OK(wr_router_finish(router, d.ticket, NULL, kSecond));
  }
  counters.queries = 1000;
  counters.hits = 400;
  CHECK_OK(wr_router_prefix_counters(router, shared_id, &counters, kSecond, NULL));
  CHECK_OK(wr_router_replica_statistics(router, shared_id, &r, NULL));
  CHECK_EQ(r.input_tokens, 128);
  CHECK_EQ(r.matched_tokens, 48); /* the last token is always computed */
  CHECK_EQ(r.engine_prefix_unit, WR_PREFIX_UNIT_UNKNOWN);
  counters.queries = 1128;
  counters.hits = 450;
  CHECK_OK(wr_router_prefix_counters(router, shared_id, &counters, 2 * (int64_t)kSecond, NULL));
  CHECK_OK(wr_router_replica_statistics(router, shared_id, &r, NULL));
  CHECK_EQ(r.engine_prefix_queries, 128);
  CHECK_EQ(r.engine_prefix_hits, 50);
  CHECK_EQ(r.engine_prefix_unit, WR_PREFIX_UNIT_TOKENS);
  CHECK_EQ(r.engine_prefix_shared, 0);
  CHECK_EQ(r.engine_prefix_at_ns, 2 * (int64_t)kSecond);
  counters.in_blocks = counters.shared = 1; /* another unit: counting begins again */
  CHECK_OK(wr_router_prefix_counters(router, shared_id, &counters, 3 * (int64_t)kSecond, NULL));
  counters.queries += 7;
  CHECK_OK(wr_router_prefix_counters(router, shared_id, &counters, 3 * (int64_t)kSecond, NULL));
  CHECK_OK(wr_router_replica_statistics(router, shared_id, &r, NULL));
  CHECK(r.engine_prefix_unit == WR_PREFIX_UNIT_BLOCKS && r.engine_prefix_shared == 1 && r.engine_prefix_queries == 7);
  counters.hits = counters.queries + 1;
  CHECK_STATUS(wr_router_prefix_counters(router, shared_id, &counters, kSecond, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_prefix_counters(router, shared_id, NULL, kSecond, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_prefix_counters(NULL, shared_id, &counters, kSecond, NULL), WR_STATUS_INVALID_ARGUMENT);
  counters.hits = 0;
  CHECK_OK(wr_router_remove_replica(router, shared_id, kSecond, NULL));
  CHECK_STATUS(wr_router_prefix_counters(router, shared_id, &counters, kSecond, NULL), WR_STATUS_STALE);
  wr_router_free(router);
}

static wr_status count_with(const void* counters) {
  return wr_router_prefix_counters(shared_router, shared_id, counters, kSecond, NULL);
}
TEST(PrefixCountersOfEverySizeGetWhatTheyDeserve) {
  const wr_prefix_counters init = WR_PREFIX_COUNTERS_INIT;
  shared_router = new_fleet(1, &shared_id);
  check_input_sizes(&init, sizeof init, offsetof(wr_prefix_counters, reserved), WR_STATUS_OK, count_with);
  check_input_sizes(&init, sizeof init, offsetof(wr_prefix_counters, reserved0), WR_STATUS_OK, count_with);
  wr_router_free(shared_router);
}

TEST(InitsAreZeroBehindTheirSize) {
  const wr_statistics all = WR_STATISTICS_INIT;
  const wr_replica_statistics replica = WR_REPLICA_STATISTICS_INIT;
  const wr_pool_statistics pool = WR_POOL_STATISTICS_INIT;
  static const char zeros[sizeof all];
  CHECK_EQ(all.struct_size, sizeof all);
  CHECK_EQ(replica.struct_size, sizeof replica);
  CHECK_EQ(pool.struct_size, sizeof pool);
  CHECK(memcmp((const char*)&all + 4, zeros, sizeof all - 4) == 0);
  CHECK(memcmp((const char*)&replica + 4, zeros, sizeof replica - 4) == 0);
  CHECK(memcmp((const char*)&pool + 4, zeros, sizeof pool - 4) == 0);
}

TEST(PrometheusIsOnePageOfTwoCalls) {
  char* page;
  size_t size = 0;
  shared_router = new_router();
  add_named(shared_router, "say \"hi\"", "");
  page = check_two_calls(give_page, &size);
  CHECK_EQ(size, strlen(page) + 1);
  CHECK(strstr(page, "# TYPE warmroute_") != NULL);
  CHECK(strstr(page, "say \\\"hi\\\"") != NULL);
  CHECK(page[size - 2] == '\n');
  free(page);
  wr_router_free(shared_router);
}

TEST(WhatIsNotThereIsToldAndNothingIsTouched) {
  wr_router* router = new_router();
  wr_statistics s;
  wr_replica_statistics r;
  wr_pool_statistics p;
  const wr_replica_id nobody = WR_NO_REPLICA_INIT;
  size_t needed = 77;
  s.struct_size = sizeof s;
  r.struct_size = sizeof r;
  paint(&p, sizeof p);
  p.struct_size = sizeof p;
  CHECK_STATUS(wr_router_statistics(NULL, &s, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_replica_statistics(NULL, nobody, &r, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_replica_statistics(router, nobody, &r, NULL), WR_STATUS_STALE);
  CHECK_STATUS(wr_router_pool_statistics(NULL, text(""), &p, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_pool_statistics(router, bad_text(), &p, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_pool_statistics(router, text(""), &p, NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_router_prometheus(NULL, NULL, 0, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(needed, 77);
  CHECK(painted((char*)&p + 4, sizeof p - 4));
  wr_router_free(router);
}

static wr_status read_pairs(void* out) { return wr_router_pair_statistics(shared_router, out, NULL); }
static wr_status read_learned(void* out) { return wr_router_learned_rates(shared_router, shared_id, out, NULL); }
static wr_status read_served(void* out) { return wr_router_served_tokens(shared_router, out, NULL); }
static wr_status fill_ratio(void* out) {
  const wr_served_tokens served = WR_SERVED_TOKENS_INIT;
  const wr_rates rates = WR_RATES_INIT;
  return wr_advise_ratio(&served, &rates, kSecond, 4, out, NULL);
}
static wr_status try_served(const void* served) {
  const wr_rates rates = WR_RATES_INIT;
  wr_pool_ratio ratio = WR_POOL_RATIO_INIT;
  return wr_advise_ratio(served, &rates, kSecond, 4, &ratio, NULL);
}

/* A prompt that is prefilled on one replica and decoded on another. */
static void serve_pair(wr_router* router, int64_t now_ns) {
  uint32_t tokens[640];
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  wr_usage usage = WR_USAGE_INIT;
  count_up(tokens, 640, (uint32_t)now_ns);
  request = token_request(tokens, 640);
  CHECK_OK(wr_router_route(router, &request, now_ns, &d, NULL));
  CHECK_EQ(d.split, WR_SPLIT_PAIR);
  CHECK_OK(wr_router_first_token(router, d.ticket, now_ns + 20000000));
  CHECK_OK(wr_router_transfer_done(router, d.ticket, now_ns + 25000000));
  usage.input_tokens = 640;
  usage.cached_tokens = 0;
  usage.output_tokens = 100;
  CHECK_OK(wr_router_finish(router, d.ticket, &usage, now_ns + kSecond));
}

TEST(PairsAndWhatWasLearnedAreTold) {
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_pair_statistics pairs = WR_PAIR_STATISTICS_INIT;
  wr_learned_rates learned = WR_LEARNED_RATES_INIT;
  wr_served_tokens served = WR_SERVED_TOKENS_INIT;
  wr_replica_statistics r = WR_REPLICA_STATISTICS_INIT;
  wr_pool_ratio ratio = WR_POOL_RATIO_INIT;
  wr_rates rates = WR_RATES_INIT;
  wr_replica_id prefill, gone = WR_NO_REPLICA_INIT;
  wr_policy policy;
  int i;
  shared_router = new_router();
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.disaggregate = WR_DISAGGREGATE_ALWAYS;
  CHECK_OK(wr_router_set_policy(shared_router, &policy, NULL));
  spec.name = text("p");
  spec.role = WR_ROLE_PREFILL;
  CHECK_OK(wr_router_add_replica(shared_router, &spec, 0, &prefill, NULL));
  spec.name = text("d");
  spec.role = WR_ROLE_DECODE;
  CHECK_OK(wr_router_add_replica(shared_router, &spec, 0, &shared_id, NULL));
  for (i = 0; i < 40; ++i) serve_pair(shared_router, (2 * i + 1) * (int64_t)kSecond);

  CHECK_OK(wr_router_pair_statistics(shared_router, &pairs, NULL));
  CHECK_EQ(pairs.splits[WR_SPLIT_PAIR], 40);
  CHECK_EQ(pairs.transfers_done, 40);
  CHECK_EQ(pairs.transfers_timed_out, 0);
  CHECK_EQ(pairs.transfer_ns, 40 * 5000000LL);
  CHECK_OK(wr_router_replica_statistics(shared_router, prefill, &r, NULL));
  CHECK_EQ(r.role, WR_ROLE_PREFILL);
  CHECK(r.prefill_share > 0 && r.prefill_share < 1);
  CHECK_OK(wr_router_learned_rates(shared_router, prefill, &learned, NULL));
  CHECK_EQ(learned.declared.token_ps, rates.token_ps);
  CHECK(learned.samples >= 40);
  CHECK(learned.output_tokens > 100 && learned.output_tokens < 256); /* from the prior towards what came */
  CHECK(learned.slowness > 0);
  CHECK_EQ(learned.learned == 0, memcmp(&learned.used, &learned.declared, sizeof rates) == 0);
  CHECK_STATUS(wr_router_learned_rates(shared_router, gone, &learned, NULL), WR_STATUS_STALE);

  CHECK_OK(wr_router_served_tokens(shared_router, &served, NULL));
  CHECK_EQ(served.requests, 40);
  CHECK_EQ(served.input_tokens, 40 * 640);
  CHECK_EQ(served.uncached_input_tokens, 40 * 640);
  CHECK_EQ(served.output_tokens, 40 * 100);
  CHECK_EQ(served.seconds, 0);
  CHECK_OK(wr_advise_ratio(&served, &rates, 30000000, 8, &ratio, NULL));
  CHECK_EQ(ratio.prefill + ratio.decode, 0); /* in no time */
  served.seconds = 1;
  CHECK_OK(wr_advise_ratio(&served, &rates, 30000000, 8, &ratio, NULL));
  CHECK_EQ(ratio.prefill + ratio.decode, 8);
  CHECK(ratio.prefill >= 1 && ratio.prefill_busy_permille > 0 && ratio.decode_busy_permille > 0);
  CHECK_STATUS(wr_advise_ratio(NULL, &rates, 1, 8, &ratio, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_advise_ratio(&served, NULL, 1, 8, &ratio, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_advise_ratio(&served, &rates, 1, 8, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_advise_ratio(&served, &rates, -1, 8, &ratio, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_advise_ratio(&served, &rates, 1, 65537, &ratio, NULL), WR_STATUS_OUT_OF_RANGE);
  served.input_tokens = INT64_MAX;
  CHECK_STATUS(wr_advise_ratio(&served, &rates, 1, 8, &ratio, NULL), WR_STATUS_OUT_OF_RANGE);

  pairs = (wr_pair_statistics)WR_PAIR_STATISTICS_INIT;
  learned = (wr_learned_rates)WR_LEARNED_RATES_INIT;
  served = (wr_served_tokens)WR_SERVED_TOKENS_INIT;
  ratio = (wr_pool_ratio)WR_POOL_RATIO_INIT;
  check_output_sizes(&pairs, sizeof pairs, 1, read_pairs);
  check_output_sizes(&learned, sizeof learned, 1, read_learned);
  check_output_sizes(&served, sizeof served, 1, read_served);
  check_output_sizes(&ratio, sizeof ratio, 1, fill_ratio);
  check_input_sizes(&served, sizeof served, offsetof(wr_served_tokens, reserved), WR_STATUS_OK, try_served);
  wr_router_free(shared_router);
  CHECK_STATUS(wr_router_pair_statistics(NULL, &pairs, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_served_tokens(NULL, &served, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_learned_rates(NULL, gone, &learned, NULL), WR_STATUS_INVALID_ARGUMENT);
}

TESTS(CASE(StatisticsAreWrittenToEverySizeThatWasSet), CASE(StatisticsCountWhatHappened),
      CASE(WhatTheEngineFindsInItsCacheStandsBesideWhatWasMatched), CASE(PrefixCountersOfEverySizeGetWhatTheyDeserve),
      CASE(InitsAreZeroBehindTheirSize), CASE(PrometheusIsOnePageOfTwoCalls),
      CASE(WhatIsNotThereIsToldAndNothingIsTouched), CASE(PairsAndWhatWasLearnedAreTold))
