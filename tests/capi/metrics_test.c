/* 6 Engines: metrics pages. */
#include "helpers.h"

enum { kSecond = 1000000000 };

/* Two ranks as vLLM 0.33 says them, values made up; the second has no cache yet. */
static const char kPage[] =
    "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
    "# TYPE vllm:num_requests_running gauge\n"
    "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5.0\n"
    "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 7.0\n"
    "# TYPE vllm:num_requests_waiting gauge\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2.0\n"
    "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} -1.0\n"
    "# TYPE vllm:kv_cache_usage_perc gauge\n"
    "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.25\n"
    "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"m\"} NaN\n"
    "# TYPE vllm:prefix_cache_queries counter\n"
    "vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 1000.0\n"
    "# TYPE vllm:prefix_cache_hits counter\n"
    "vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 600.0\n"
    "# TYPE vllm:cache_config_info gauge\n"
    "vllm:cache_config_info{block_size=\"32\",engine=\"0\",num_gpu_blocks=\"1000\"} 1.0\n"
    "# TYPE vllm:time_to_first_token_seconds histogram\n"
    "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\",model_name=\"m\"} 3.0\n"
    "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 4.0\n"
    "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} 4.0\n"
    "vllm:time_to_first_token_seconds_sum{engine=\"0\",model_name=\"m\"} 0.5\n"
    "this line is of no format\n";

static wr_metrics* new_metrics(void) {
  wr_metrics* metrics = NULL;
  CHECK_OK(wr_metrics_new(&metrics, NULL));
  return metrics;
}
static int equals(wr_str got, const char* wanted) {
  return got.size == strlen(wanted) && memcmp(got.data, wanted, got.size) == 0;
}
/* Parses a copy that is gone afterwards: nothing may look at the caller's page later. */
static wr_metrics_reading read_page(wr_metrics* metrics, const char* page) {
  wr_metrics_reading reading = WR_METRICS_READING_INIT;
  const wr_str none = WR_STR_INIT;
  wr_str s;
  char* copy = malloc(strlen(page) + 1);
  CHECK(copy != NULL);
  memcpy(copy, page, strlen(page) + 1);
  s.data = copy;
  s.size = strlen(page);
  CHECK_OK(wr_metrics_parse(metrics, s, none, &reading, NULL));
  memset(copy, 'x', s.size);
  free(copy);
  return reading;
}

TEST(APageSaysWhatItKnowsOfEachRank) {
  wr_metrics* metrics = new_metrics();
  wr_metrics_rank rank = WR_METRICS_RANK_INIT;
  const wr_metrics_reading reading = read_page(metrics, kPage);
  CHECK(equals(reading.engine, "vllm"));
  CHECK_EQ(reading.rank_count, 2);
  CHECK_EQ(reading.skipped_lines, 1);
  CHECK_OK(wr_metrics_read_rank(metrics, 0, &rank, NULL));
  CHECK_EQ(rank.dp_rank, 0);
  CHECK(equals(rank.model, "m"));
  CHECK_EQ(rank.running, 5);
  CHECK_EQ(rank.waiting, 2);
  CHECK(rank.kv_usage == 0.25);
  CHECK_EQ(rank.prefix_queries, 1000);
  CHECK_EQ(rank.prefix_hits, 600);
  CHECK_EQ(rank.prefix_unit, WR_PREFIX_UNIT_TOKENS);
  CHECK(rank.prefix_hit_rate == WR_UNKNOWN);
  CHECK_EQ(rank.waiting_tokens, WR_UNKNOWN); /* vLLM does not tell */
  CHECK_EQ(rank.block_tokens, 32);
  CHECK_EQ(rank.block_count, 1000);
  CHECK_EQ(rank.lora_max, WR_UNKNOWN);
  CHECK_EQ(rank.ttft_count, 4);
  CHECK(rank.ttft_sum_s == 0.5);
  CHECK_OK(wr_metrics_read_rank(metrics, 1, &rank, NULL));
  CHECK_EQ(rank.dp_rank, 1);
  CHECK_EQ(rank.running, 7);
  CHECK_EQ(rank.waiting, WR_UNKNOWN);
  CHECK(rank.kv_usage == WR_UNKNOWN);
  CHECK_EQ(rank.prefix_hits, WR_UNKNOWN);
  CHECK_EQ(rank.prefix_unit, WR_PREFIX_UNIT_UNKNOWN);
  CHECK_EQ(rank.block_tokens, WR_UNKNOWN);
  CHECK_EQ(rank.ttft_count, WR_UNKNOWN);
  CHECK(rank.ttft_sum_s == WR_UNKNOWN);
  rank.running = 77;
  CHECK_STATUS(wr_metrics_read_rank(metrics, 2, &rank, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_EQ(rank.running, 77);
  (void)read_page(metrics, "tgi_queue_size 3\ntgi_batch_current_size 7\n"); /* the same parser reads any engine's */
  CHECK_OK(wr_metrics_read_rank(metrics, 0, &rank, NULL));
  CHECK_EQ(rank.dp_rank, WR_UNKNOWN);
  CHECK_EQ(rank.model.size, 0);
  CHECK_EQ(rank.waiting, 3);
  (void)read_page(metrics,
                  "sglang_num_waiting_reqs{dp_rank=\"0\"} 4\nsglang_num_waiting_uncached_tokens{dp_rank=\"0\"} 900\n");
  CHECK_OK(wr_metrics_read_rank(metrics, 0, &rank, NULL));
  CHECK_EQ(rank.waiting, 4);
  CHECK_EQ(rank.waiting_tokens, 900);
  wr_metrics_free(metrics);
}

/* Targets as a proxy keeps them: in its own records. */
typedef struct backend {
  double weight;
  wr_metrics_target target;
  char name[9];
} backend;

TEST(WhatAPageSaysBecomesTheSignalsOfItsReplicas) {
  wr_replica_id ids[3];
  wr_router* router = new_fleet(3, ids);
  wr_metrics* metrics = new_metrics();
  wr_metrics_applied applied = WR_METRICS_APPLIED_INIT;
  wr_replica_statistics statistics = WR_REPLICA_STATISTICS_INIT;
  const wr_metrics_target init = WR_METRICS_TARGET_INIT;
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  uint32_t tokens[64];
  backend backends[2];
  size_t i;
  memset(backends, 0, sizeof backends);
  for (i = 0; i < 2; ++i) {
    backends[i].target = init;
    backends[i].target.replica = ids[1 - i];
    backends[i].target.dp_rank = (int64_t)(1 - i);
  }
  /* Nothing was read yet: nothing is said. */
  CHECK_OK(
      wr_router_apply_metrics(router, metrics, &backends[0].target, 2, sizeof backends[0], kSecond, &applied, NULL));
  CHECK(applied.signals == 0 && applied.refused == 0 && applied.unmatched_ranks == 0);
  (void)read_page(metrics, kPage);
  CHECK_OK(
      wr_router_apply_metrics(router, metrics, &backends[0].target, 2, sizeof backends[0], kSecond, &applied, NULL));
  CHECK_EQ(applied.signals, 8);
  CHECK_EQ(applied.refused, 0);
  CHECK_EQ(applied.unmatched_ranks, 0);
  CHECK_OK(wr_router_replica_statistics(router, ids[0], &statistics, NULL));
  CHECK_EQ(statistics.foreign_requests, 7);
  CHECK_EQ(statistics.foreign_waiting, 2);
  CHECK_EQ(statistics.foreign_tokens, WR_UNKNOWN);
  CHECK_EQ(statistics.signals_at_ns, kSecond);
  CHECK_OK(wr_router_replica_statistics(router, ids[1], &statistics, NULL));
  CHECK_EQ(statistics.foreign_requests, 7);
  CHECK_EQ(statistics.foreign_waiting, 0);
  CHECK_OK(wr_router_replica_statistics(router, ids[2], &statistics, NULL));
  CHECK_EQ(statistics.signals_at_ns, 0);
  count_up(tokens, 64, 1); /* the size of its cache is heeded from the next placement on */
  request = token_request(tokens, 64);
  request.pinned = ids[0];
  CHECK_OK(wr_router_route(router, &request, kSecond, &d, NULL));
  CHECK_OK(wr_router_finish(router, d.ticket, NULL, kSecond));
  CHECK_OK(wr_router_advance(router, kSecond, NULL));
  CHECK_OK(wr_router_replica_statistics(router, ids[0], &statistics, NULL));
  CHECK_EQ(statistics.capacity_blocks, 32 * 1000 / 16);
  backends[0].target.model = text("another");
  CHECK_OK(
      wr_router_apply_metrics(router, metrics, &backends[0].target, 2, sizeof backends[0], kSecond, &applied, NULL));
  CHECK_EQ(applied.unmatched_ranks, 1);
  CHECK_OK(wr_router_remove_replica(router, ids[0], kSecond, NULL));
  CHECK_OK(wr_router_apply_metrics(router, metrics, &backends[1].target, 1, 0, kSecond, &applied, NULL));
  CHECK_EQ(applied.signals, 0);
  CHECK_EQ(applied.refused, 7);
  CHECK_EQ(applied.unmatched_ranks, 1);
  CHECK_OK(wr_router_apply_metrics(router, metrics, NULL, 0, 0, kSecond, NULL, NULL));
  /* A page without ranks is the sole target's. */
  (void)read_page(metrics, "tgi_queue_size 3\ntgi_batch_current_size 8\n");
  backends[1].target = init;
  backends[1].target.replica = ids[2];
  CHECK_OK(wr_router_apply_metrics(router, metrics, &backends[1].target, 1, 0, 2 * (int64_t)kSecond, NULL, NULL));
  CHECK_OK(wr_router_replica_statistics(router, ids[2], &statistics, NULL));
  CHECK_EQ(statistics.foreign_requests, 11);
  wr_metrics_free(metrics);
  wr_router_free(router);
}

TEST(PagesThatAreNoneLeaveNothingBehind) {
  static const struct {
    const char* page;
    const char* engine;
    wr_status status;
    const char* word;
  } cases[] = {{"<!DOCTYPE html><html>", "", WR_STATUS_MALFORMED, "not_prometheus"},
               {"{\"detail\":\"Not Found\"}", "", WR_STATUS_MALFORMED, "not_prometheus"},
               {"process_cpu_seconds_total 3\n", "", WR_STATUS_NOT_FOUND, "no_known_metrics"},
               {"tgi_queue_size 3\nvllm:num_requests_running 3\n", "", WR_STATUS_INVALID_ARGUMENT, "ambiguous_engine"},
               {kPage, "vlllm", WR_STATUS_INVALID_ARGUMENT, "unknown_engine"}};
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  wr_metrics* metrics = new_metrics();
  wr_metrics_target target = WR_METRICS_TARGET_INIT;
  size_t i;
  target.replica = id;
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    wr_metrics_reading reading;
    wr_metrics_rank rank = WR_METRICS_RANK_INIT;
    wr_metrics_applied applied = WR_METRICS_APPLIED_INIT;
    wr_error err = WR_ERROR_INIT;
    paint(&reading, sizeof reading);
    reading.struct_size = sizeof reading;
    (void)read_page(metrics, kPage);
    CHECK_STATUS(wr_metrics_parse(metrics, text(cases[i].page), text(cases[i].engine), &reading, &err),
                 cases[i].status);
    CHECK(strstr(err.message, cases[i].word) != NULL);
    CHECK(painted((char*)&reading + 4, sizeof reading - 4));
    CHECK_STATUS(wr_metrics_read_rank(metrics, 0, &rank, NULL), WR_STATUS_OUT_OF_RANGE);
    CHECK_OK(wr_router_apply_metrics(router, metrics, &target, 1, 0, kSecond, &applied, NULL));
    CHECK(applied.signals == 0 && applied.unmatched_ranks == 0);
  }
  wr_metrics_free(metrics);
  wr_router_free(router);
}

TEST(PagesBeyondTheLimitAreNotEvenCopied) {
  enum { kTooLarge = (16 << 20) + 1 };
  wr_metrics* metrics = new_metrics();
  wr_metrics_reading reading = WR_METRICS_READING_INIT;
  wr_str page = WR_STR_INIT;
  char* memory = malloc(kTooLarge);
  CHECK(memory != NULL);
  memset(memory, '\n', kTooLarge);
  memcpy(memory, "tgi_queue_size 3", 16);
  page.data = memory;
  page.size = kTooLarge;
  CHECK_STATUS(wr_metrics_parse(metrics, page, text(""), &reading, NULL), WR_STATUS_TOO_LARGE);
  page.size = kTooLarge - 1;
  CHECK_OK(wr_metrics_parse(metrics, page, text(""), &reading, NULL));
  CHECK_EQ(reading.rank_count, 1);
  free(memory);
  wr_metrics_free(metrics);
}

TEST(TablesOfUsersAreDataAndReplaceTheSameEngines) {
  static const char kTable[] =
      "{\"engine\": \"mine\", \"prefixes\": [\"my_\"], \"rank_label\": \"replica\","
      " \"rows\": [{\"field\": \"waiting\", \"name\": \"load\", \"where\": {\"kind\": \"queue\"}}]}";
  static const char kMine[] = "my_load{kind=\"queue\",replica=\"3\"} 9\nmy_load{kind=\"batch\",replica=\"3\"} 1\n";
  wr_metrics* metrics = new_metrics();
  wr_metrics_reading reading = WR_METRICS_READING_INIT;
  wr_metrics_rank rank = WR_METRICS_RANK_INIT;
  wr_error err = WR_ERROR_INIT;
  CHECK_STATUS(wr_metrics_parse(metrics, text(kMine), text(""), &reading, NULL), WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_metrics_set_table(metrics, text(kTable), NULL));
  reading = read_page(metrics, kMine);
  CHECK(equals(reading.engine, "mine"));
  CHECK_OK(wr_metrics_read_rank(metrics, 0, &rank, NULL));
  CHECK_EQ(rank.dp_rank, 3);
  CHECK_EQ(rank.waiting, 9);
  CHECK_STATUS(wr_metrics_set_table(metrics, text("{\"engine\": \"\", \"colour\": 1}"), &err),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "colour") != NULL);
  CHECK_STATUS(wr_metrics_set_table(metrics, text("{"), NULL), WR_STATUS_INVALID_JSON);
  CHECK_STATUS(wr_metrics_set_table(metrics, text("[]"), NULL), WR_STATUS_NOT_AN_OBJECT);
  CHECK_OK(wr_metrics_read_rank(metrics, 0, &rank, NULL)); /* refused ones change nothing */
  CHECK_OK(wr_metrics_set_table(metrics, text(kTable), NULL));
  CHECK_STATUS(wr_metrics_read_rank(metrics, 0, &rank, NULL), WR_STATUS_OUT_OF_RANGE);
  wr_metrics_free(metrics);
}

static wr_router* shared_router;
TEST(CountersAreComparedWithThoseOfThePageBefore) {
  static const char kNext[] =
      "vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 1300.0\n"
      "vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 620.0\n"
      "vllm:num_requests_running{engine=\"2\",model_name=\"m\"} 1.0\n"
      "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 9.0\n"
      "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"m\"} 9.0\n";
  wr_metrics* metrics = new_metrics();
  wr_engine_counters* counters = NULL;
  wr_engine_delta delta = WR_ENGINE_DELTA_INIT;
  size_t count = 77;
  CHECK_OK(wr_engine_counters_new(&counters, NULL));
  (void)read_page(metrics, kPage);
  CHECK_OK(wr_engine_counters_update(counters, metrics, &count, NULL));
  CHECK_EQ(count, 0);
  CHECK_STATUS(wr_engine_counters_read(counters, 0, &delta, NULL), WR_STATUS_OUT_OF_RANGE);
  (void)read_page(metrics, kNext);
  CHECK_OK(wr_engine_counters_update(counters, metrics, &count, NULL));
  CHECK_EQ(count, 1); /* rank 2 is new */
  CHECK_OK(wr_engine_counters_read(counters, 0, &delta, NULL));
  CHECK_EQ(delta.dp_rank, 0);
  CHECK(equals(delta.model, "m"));
  CHECK(delta.restarted == 0 && delta.shared == 0);
  CHECK_EQ(delta.prefix_queries, 300);
  CHECK_EQ(delta.prefix_hits, 20);
  CHECK_EQ(delta.first_tokens, 5);
  (void)read_page(metrics, kPage); /* counters fell: what they say is new */
  CHECK_OK(wr_engine_counters_update(counters, metrics, &count, NULL));
  CHECK_OK(wr_engine_counters_read(counters, 0, &delta, NULL));
  CHECK_EQ(delta.restarted, 1);
  CHECK_EQ(delta.prefix_queries, 1000);
  CHECK_OK(wr_engine_counters_clear(counters, NULL));
  CHECK_STATUS(wr_engine_counters_read(counters, 0, &delta, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_OK(wr_engine_counters_update(counters, metrics, &count, NULL));
  CHECK_EQ(count, 0);
  count = 77;
  CHECK_STATUS(wr_engine_counters_new(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_engine_counters_update(NULL, metrics, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_engine_counters_update(counters, NULL, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_engine_counters_update(counters, metrics, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_engine_counters_read(NULL, 0, &delta, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_engine_counters_clear(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(count, 77);
  wr_engine_counters_free(counters);
  wr_engine_counters_free(NULL);
  wr_metrics_free(metrics);
}

TEST(SeriesWithoutARankAreReadApartAndTheirCountersAreEverybodys) {
  static const char kShared[] =
      "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5.0\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 7.0\n"
      "vllm:prefix_cache_queries_total{model_name=\"m\"} 1000.0\n"
      "vllm:prefix_cache_hits_total{model_name=\"m\"} 600.0\n";
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_metrics* metrics = new_metrics();
  wr_metrics_rank rank = WR_METRICS_RANK_INIT;
  wr_metrics_target targets[2] = {WR_METRICS_TARGET_INIT, WR_METRICS_TARGET_INIT};
  wr_metrics_applied applied = WR_METRICS_APPLIED_INIT;
  CHECK_EQ(read_page(metrics, kPage).has_shared, 0);
  CHECK_STATUS(wr_metrics_read_rank(metrics, WR_RANK_SHARED, &rank, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_EQ(read_page(metrics, kShared).has_shared, 1);
  CHECK_OK(wr_metrics_read_rank(metrics, WR_RANK_SHARED, &rank, NULL));
  CHECK_EQ(rank.dp_rank, WR_UNKNOWN);
  CHECK_EQ(rank.prefix_hits, 600);
  targets[0].replica = ids[0];
  targets[0].dp_rank = 0;
  targets[1].replica = ids[1];
  targets[1].dp_rank = 1;
  CHECK_OK(wr_router_apply_metrics(router, metrics, targets, 2, sizeof targets[0], kSecond, &applied, NULL));
  CHECK_EQ(applied.signals, 2);
  CHECK_EQ(applied.shared_counters, 2);
  wr_metrics_free(metrics);
  wr_router_free(router);
}

static wr_metrics* shared_metrics;
static wr_engine_counters* shared_counters;
static wr_status delta_into(void* delta) { return wr_engine_counters_read(shared_counters, 0, delta, NULL); }

static wr_status page_into(void* reading) {
  return wr_metrics_parse(shared_metrics, text(kPage), text("vllm"), reading, NULL);
}
static wr_status rank_into(void* rank) { return wr_metrics_read_rank(shared_metrics, 0, rank, NULL); }
static wr_status applied_into(void* applied) {
  if (applied == NULL) return WR_STATUS_INVALID_ARGUMENT; /* fine in this call, as other tests show */
  return wr_router_apply_metrics(shared_router, shared_metrics, NULL, 0, 0, 1, applied, NULL);
}
static wr_status target_of(const void* target) {
  return wr_router_apply_metrics(shared_router, shared_metrics, target, 1, 0, 1, NULL, NULL);
}

TEST(MetricsStructsOfEverySizeGetWhatTheyDeserve) {
  const wr_metrics_reading reading = WR_METRICS_READING_INIT;
  const wr_metrics_rank rank = WR_METRICS_RANK_INIT;
  const wr_metrics_applied applied = WR_METRICS_APPLIED_INIT;
  const wr_engine_delta delta = WR_ENGINE_DELTA_INIT;
  wr_metrics_target target = WR_METRICS_TARGET_INIT, bad;
  wr_replica_id id;
  size_t count = 0;
  shared_router = new_fleet(1, &id);
  shared_metrics = new_metrics();
  target.replica = id;
  check_output_sizes(&reading, sizeof reading, 1, page_into);
  check_output_sizes(&rank, sizeof rank, 1, rank_into);
  check_output_sizes(&applied, sizeof applied, 1, applied_into);
  CHECK_OK(wr_engine_counters_new(&shared_counters, NULL));
  CHECK_OK(wr_engine_counters_update(shared_counters, shared_metrics, &count, NULL));
  CHECK_OK(wr_engine_counters_update(shared_counters, shared_metrics, &count, NULL));
  check_output_sizes(&delta, sizeof delta, 1, delta_into);
  wr_engine_counters_free(shared_counters);
  check_input_sizes(&target, sizeof target, offsetof(wr_metrics_target, reserved), WR_STATUS_OK, target_of);
  check_input_sizes(&target, sizeof target, offsetof(wr_metrics_target, reserved0), WR_STATUS_OK, target_of);
  bad = target;
  bad.dp_rank = -2;
  CHECK_STATUS(target_of(&bad), WR_STATUS_OUT_OF_RANGE);
  bad.dp_rank = (int64_t)1 << 32;
  CHECK_STATUS(target_of(&bad), WR_STATUS_OUT_OF_RANGE);
  bad = target;
  bad.model = bad_text();
  CHECK_STATUS(target_of(&bad), WR_STATUS_INVALID_ARGUMENT);
  wr_metrics_free(shared_metrics);
  wr_router_free(shared_router);
}

TEST(EveryNullOfMetricsIsRefused) {
  wr_router* router = new_fleet(1, NULL);
  wr_metrics* metrics = new_metrics();
  wr_metrics_reading reading = WR_METRICS_READING_INIT;
  wr_metrics_rank rank = WR_METRICS_RANK_INIT;
  wr_metrics_target targets[2] = {WR_METRICS_TARGET_INIT, WR_METRICS_TARGET_INIT};
  CHECK_STATUS(wr_metrics_new(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_set_table(NULL, text("{}"), NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_set_table(metrics, bad_text(), NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_parse(NULL, text(kPage), text(""), &reading, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_parse(metrics, bad_text(), text(""), &reading, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_parse(metrics, text(kPage), bad_text(), &reading, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_parse(metrics, text(kPage), text(""), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_read_rank(NULL, 0, &rank, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_metrics_read_rank(metrics, 0, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_apply_metrics(NULL, metrics, targets, 1, 0, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_apply_metrics(router, NULL, targets, 1, 0, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_apply_metrics(router, metrics, NULL, 1, 0, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_apply_metrics(router, metrics, targets, 2, 8, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(reading.rank_count, 0);
  wr_metrics_free(metrics);
  wr_metrics_free(NULL);
  wr_router_free(router);
}

TESTS(CASE(APageSaysWhatItKnowsOfEachRank), CASE(WhatAPageSaysBecomesTheSignalsOfItsReplicas),
      CASE(PagesThatAreNoneLeaveNothingBehind), CASE(PagesBeyondTheLimitAreNotEvenCopied),
      CASE(TablesOfUsersAreDataAndReplaceTheSameEngines), CASE(CountersAreComparedWithThoseOfThePageBefore),
      CASE(SeriesWithoutARankAreReadApartAndTheirCountersAreEverybodys),
      CASE(MetricsStructsOfEverySizeGetWhatTheyDeserve), CASE(EveryNullOfMetricsIsRefused))
