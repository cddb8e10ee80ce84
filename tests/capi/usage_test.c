/* 10a Meter, 10b Request, 10c Prices. */
#include "helpers.h"

static const char kStream[] =
    "data: {\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n"
    "data: {\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n"
    "data: "
    "{\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    "data: "
    "{\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,"
    "\"total_tokens\":120,\"prompt_tokens_details\":{\"cached_tokens\":60}}}\n\n"
    "data: [DONE]\n\n";
static const char kPrices[] =
    "{\"m-large\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":4e-6,\"cache_read_input_token_cost\":1e-7,"
    "\"input_cost_per_token_flex\":5e-7,\"output_cost_per_token_flex\":2e-6},\"odd\":{\"input_cost_per_token\":"
    "\"much\"}}";

static int equals(wr_str got, const char* wanted) {
  return got.size == strlen(wanted) && (got.size == 0 || memcmp(got.data, wanted, got.size) == 0);
}
static wr_meter* new_meter(void) {
  wr_meter* meter = NULL;
  CHECK_OK(wr_meter_new(NULL, &meter, NULL));
  return meter;
}
static wr_price_table* new_prices(void) {
  wr_price_table* table = NULL;
  CHECK_OK(wr_price_table_from_json(text(kPrices), &table, NULL));
  return table;
}
static wr_usage_report used(int64_t input, int64_t cached, int64_t output) {
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  r.complete = 1;
  r.source = WR_USAGE_SOURCE_PROVIDER;
  r.input_tokens = input;
  r.cached_input_tokens = cached;
  r.output_tokens = output;
  r.model = text("m-large");
  return r;
}

/* ---- 10a */

TEST(AMeterReadsAStreamByteByByteAndSaysWhereTheFirstTokenEnded) {
  wr_meter* meter = new_meter();
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  const size_t first_end = (size_t)(strstr(kStream, "Hi") - kStream);
  size_t i, at = 0;
  uint32_t first = 7;
  const uint64_t nothing = wr_meter_revision(meter);
  CHECK_EQ(wr_meter_first_token_end(meter), WR_UNKNOWN);
  CHECK_EQ(wr_meter_is_stream(meter), 0);
  CHECK_EQ(wr_meter_complete(meter), 0);
  for (i = 0; i < strlen(kStream); ++i) {
    wr_str byte;
    byte.data = kStream + i;
    byte.size = 1;
    CHECK_OK(wr_meter_feed(meter, byte, &first));
    if (first == 1) {
      CHECK_EQ(at, 0);
      at = i;
    } else {
      CHECK_EQ(first, 0);
    }
  }
  CHECK(at > first_end && at < first_end + 20);
  CHECK_EQ(wr_meter_first_token_end(meter), at + 1);
  CHECK_EQ(wr_meter_bytes(meter), strlen(kStream));
  CHECK_EQ(wr_meter_is_stream(meter), 1);
  CHECK_OK(wr_meter_finish(meter));
  CHECK_OK(wr_meter_report(meter, &r, NULL));
  CHECK_EQ(r.complete, 1);
  CHECK_EQ(wr_meter_complete(meter), 1);
  CHECK(wr_meter_revision(meter) != nothing);
  CHECK_EQ(wr_meter_revision(meter), wr_meter_revision(meter));
  CHECK_EQ(wr_meter_complete(NULL), 0);
  CHECK_EQ(wr_meter_revision(NULL), 0);
  CHECK_EQ(r.error, 0);
  CHECK_EQ(r.source, WR_USAGE_SOURCE_PROVIDER);
  CHECK_EQ(r.anomalies, 0);
  CHECK_EQ(r.input_tokens, 100);
  CHECK_EQ(r.cached_input_tokens, 60);
  CHECK_EQ(r.cache_write_input_tokens, WR_UNKNOWN);
  CHECK_EQ(r.output_tokens, 20);
  CHECK_EQ(r.reported_cost_picos, WR_UNKNOWN);
  CHECK(equals(r.model, "m-large") && equals(r.response_id, "c-1") && equals(r.finish_reason, "stop"));
  CHECK(equals(r.service_tier, "") && r.other_models == NULL && r.other_model_count == 0);
  wr_meter_free(meter);
}

TEST(AMeterIsUsedAgainWithWhatIsKnownOfAnotherDeployment) {
  wr_meter* meter = new_meter();
  wr_meter_options options = WR_METER_OPTIONS_INIT;
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  const char* body =
      "{\"type\":\"message\",\"id\":\"m\",\"model\":\"c\",\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":100,"
      "\"cache_read_input_tokens\":40,\"output_tokens\":5}}";
  char tier[] = "priority";
  options.api = WR_ANSWER_MESSAGES;
  CHECK_OK(wr_meter_reset(meter, &options, NULL));
  CHECK_OK(wr_meter_feed(meter, text(body), NULL));
  CHECK_OK(wr_meter_finish(meter));
  CHECK_OK(wr_meter_report(meter, &r, NULL));
  CHECK_EQ(r.input_tokens, 140); /* by rule they stand beside one another */
  CHECK_EQ(wr_meter_is_stream(meter), 0);
  options.input_includes_cache = WR_BELIEF_YES;
  options.requested_tier = text(tier);
  CHECK_OK(wr_meter_reset(meter, &options, NULL));
  memset(tier, 'x', sizeof tier - 1); /* it was copied */
  CHECK_EQ(wr_meter_bytes(meter), 0);
  CHECK_OK(wr_meter_feed(meter, text(body), NULL));
  CHECK_OK(wr_meter_finish(meter));
  CHECK_OK(wr_meter_feed(meter, text(body), NULL)); /* ignored */
  CHECK_OK(wr_meter_report(meter, &r, NULL));
  CHECK_EQ(r.input_tokens, 100);
  CHECK_EQ(r.cached_input_tokens, 40);
  CHECK(equals(r.service_tier, "priority"));
  wr_meter_free(meter);
}

TEST(AMeterTellsOfOtherModels) {
  wr_meter* meter = new_meter();
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  const char* body =
      "{\"type\":\"message\",\"id\":\"m\",\"model\":\"c\",\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":10,"
      "\"output_tokens\":5,\"iterations\":[{\"type\":\"message\",\"input_tokens\":10,\"output_tokens\":5},"
      "{\"type\":\"advisor_message\",\"model\":\"adviser\",\"input_tokens\":823,\"output_tokens\":1612,"
      "\"cache_read_input_tokens\":0,\"cache_creation_input_tokens\":0}]}}";
  CHECK_OK(wr_meter_feed(meter, text(body), NULL));
  CHECK_OK(wr_meter_finish(meter));
  CHECK_OK(wr_meter_report(meter, &r, NULL));
  CHECK_EQ(r.other_model_count, 1);
  CHECK(equals(r.other_models[0].model, "adviser"));
  CHECK_EQ(r.other_models[0].input_tokens, 823);
  CHECK_EQ(r.other_models[0].output_tokens, 1612);
  wr_meter_free(meter);
}

static wr_status try_meter_options(const void* options) {
  wr_meter* meter = NULL;
  const wr_status status = wr_meter_new(options, &meter, NULL);
  wr_meter_free(meter);
  return status;
}
static wr_status fill_report(void* out) {
  static wr_meter* meter;
  wr_status status;
  meter = new_meter();
  status = wr_meter_report(meter, out, NULL);
  wr_meter_free(meter);
  return status;
}
TEST(StructsOfTheMeterMayBeOfOtherSizes) {
  const wr_meter_options options = WR_METER_OPTIONS_INIT;
  const wr_usage_report report = WR_USAGE_REPORT_INIT;
  check_input_sizes(&options, sizeof options, offsetof(wr_meter_options, reserved), WR_STATUS_OK, try_meter_options);
  check_output_sizes(&report, sizeof report, 1, fill_report);
}

TEST(AMeterRefusesWhatItCannotTake) {
  wr_meter* meter = new_meter();
  wr_meter* none = NULL;
  wr_meter_options options = WR_METER_OPTIONS_INIT;
  wr_error err = WR_ERROR_INIT;
  uint32_t first = 7;
  wr_usage_report report = WR_USAGE_REPORT_INIT;
  CHECK_STATUS(wr_meter_new(NULL, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  options.api = WR_ANSWER_LLAMACPP + 1;
  CHECK_STATUS(wr_meter_new(&options, &none, &err), WR_STATUS_OUT_OF_RANGE);
  options.api = 0;
  options.output_includes_reasoning = WR_BELIEF_NO + 1;
  CHECK_STATUS(wr_meter_reset(meter, &options, &err), WR_STATUS_OUT_OF_RANGE);
  options.output_includes_reasoning = 0;
  options.requested_tier = bad_text();
  CHECK_STATUS(wr_meter_new(&options, &none, &err), WR_STATUS_INVALID_ARGUMENT);
  options.requested_tier = text("");
  options.abi_version = WR_ABI_VERSION + 1;
  CHECK_STATUS(wr_meter_new(&options, &none, &err), WR_STATUS_ABI_MISMATCH);
  CHECK(none == NULL && err.status == WR_STATUS_ABI_MISMATCH);
  CHECK_STATUS(wr_meter_feed(NULL, text(""), &first), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_meter_feed(meter, bad_text(), &first), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(first, 7);
  CHECK_STATUS(wr_meter_finish(NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_meter_reset(NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_meter_report(NULL, &report, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(wr_meter_first_token_end(NULL), WR_UNKNOWN);
  CHECK_EQ(wr_meter_bytes(NULL) + wr_meter_is_stream(NULL), 0);
  CHECK_TEXT(wr_anomaly_name(WR_ANOMALY_BAD_CRC), "bad_crc");
  wr_meter_free(meter);
  wr_meter_free(NULL);
}

/* ---- 10b */

static const char kAsking[] = "{\"model\":\"m\",\"stream\":true,\"messages\":[]}";
static wr_status spliced_body(char* buf, size_t cap, size_t* needed, wr_error* err) {
  wr_usage_ask ask = WR_USAGE_ASK_INIT;
  CHECK_OK(wr_ask_for_usage(text(kAsking), &ask, NULL));
  return wr_ask_for_usage_body(text(kAsking), &ask, buf, cap, needed, err);
}
TEST(AStreamIsAskedForItsUsageAndTheClientsOwnWishStays) {
  wr_usage_ask ask = WR_USAGE_ASK_INIT;
  wr_error err = WR_ERROR_INIT;
  size_t size = 0;
  char* body = check_two_calls(spliced_body, &size);
  CHECK(size > strlen(kAsking) && body[size - 1] == '}');
  body[size - 1] = '\0';
  CHECK(strstr(body, "\"stream_options\":{\"include_usage\":true}") != NULL);
  CHECK(strstr(body, "\"model\":\"m\",\"stream\":true,\"messages\":[]") != NULL);
  free(body);
  CHECK_OK(wr_ask_for_usage(text(kAsking), &ask, NULL));
  CHECK(ask.stream == 1 && ask.asked == 0 && ask.change == 1 && ask.inserted.size > 0);
  CHECK_OK(wr_ask_for_usage(text("{\"stream\":true,\"stream_options\":{\"include_usage\":true}}"), &ask, NULL));
  CHECK(ask.stream == 1 && ask.asked == 1 && ask.change == 0);
  CHECK_OK(wr_ask_for_usage(text("{\"prompt\":\"x\"}"), &ask, NULL));
  CHECK(ask.stream == 0 && ask.change == 0);
  CHECK_STATUS(wr_ask_for_usage(text("[1]"), &ask, &err), WR_STATUS_NOT_AN_OBJECT);
  CHECK_STATUS(wr_ask_for_usage(text("{\"stream\":tr"), &ask, &err), WR_STATUS_INVALID_JSON);
  CHECK(err.offset != WR_NO_OFFSET);
  CHECK_STATUS(wr_ask_for_usage(bad_text(), &ask, &err), WR_STATUS_INVALID_ARGUMENT);
  wr_str tier = WR_STR_INIT;
  CHECK_OK(wr_requested_tier(text("{\"service_tier\":\"flex\"}"), &tier, NULL));
  CHECK(tier.size == 4 && memcmp(tier.data, "flex", 4) == 0);
  CHECK_OK(wr_requested_tier(text(kAsking), &tier, NULL));
  CHECK(tier.size == 0);
  CHECK_STATUS(wr_requested_tier(bad_text(), &tier, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_requested_tier(text("{}"), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  ask.offset = 10;
  CHECK_STATUS(wr_ask_for_usage_body(text("{}"), &ask, NULL, 0, &size, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_ask_for_usage_body(text("{}"), NULL, NULL, 0, &size, &err), WR_STATUS_INVALID_ARGUMENT);
}

static void append(char* to, wr_str from) {
  const size_t at = strlen(to);
  if (from.size > 0) memcpy(to + at, from.data, from.size);
  to[at + from.size] = '\0';
}
TEST(TheChunkThatWasAskedForIsTakenOutAndNothingElse) {
  wr_usage_chunk_filter* filter = NULL;
  wr_str out = WR_STR_INIT;
  char got[sizeof kStream] = "", wanted[sizeof kStream] = "";
  const char* chunk = strstr(kStream, "data: {\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[]");
  size_t i;
  wr_str part;
  int round;
  part.data = kStream;
  part.size = (size_t)(chunk - kStream);
  append(wanted, part);
  append(wanted, text("data: [DONE]\n\n"));
  CHECK_OK(wr_usage_chunk_filter_new(&filter, NULL));
  for (round = 0; round < 2; ++round) {
    got[0] = '\0';
    CHECK_EQ(wr_usage_chunk_filter_removed(filter), 0);
    for (i = 0; i < strlen(kStream); i += 7) {
      part.data = kStream + i;
      part.size = strlen(kStream) - i < 7 ? strlen(kStream) - i : 7;
      CHECK_OK(wr_usage_chunk_filter_feed(filter, part, &out, NULL));
      append(got, out);
    }
    CHECK_OK(wr_usage_chunk_filter_finish(filter, &out, NULL));
    append(got, out);
    CHECK_TEXT(got, wanted);
    CHECK_EQ(wr_usage_chunk_filter_removed(filter), 1);
    wr_usage_chunk_filter_reset(filter);
  }
  CHECK_STATUS(wr_usage_chunk_filter_new(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_usage_chunk_filter_feed(filter, bad_text(), &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_usage_chunk_filter_feed(filter, text(""), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_usage_chunk_filter_finish(NULL, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(wr_usage_chunk_filter_removed(NULL), 0);
  wr_usage_chunk_filter_reset(NULL);
  wr_usage_chunk_filter_free(filter);
  wr_usage_chunk_filter_free(NULL);
}

TEST(EstimatesFollowWhatWasLearned) {
  wr_token_estimator* estimator = NULL;
  wr_estimate_options options = WR_ESTIMATE_OPTIONS_INIT;
  wr_token_estimate estimate = WR_TOKEN_ESTIMATE_INIT;
  CHECK_OK(wr_token_estimator_new(&estimator, NULL));
  CHECK(wr_token_estimator_bytes_per_token(estimator) == 3.0);
  CHECK_OK(wr_token_estimator_learn(estimator, 4000, 1000));
  CHECK(wr_token_estimator_bytes_per_token(estimator) == 4.0);
  options.prompt_bytes = 8000;
  CHECK_OK(wr_token_estimator_estimate(estimator, &options, &estimate, NULL));
  CHECK_EQ(estimate.input_tokens, 2200); /* and a tenth */
  CHECK_EQ(estimate.output_tokens, 4096);
  options.input_tokens = 5;
  options.requested_output_tokens = 50;
  CHECK_OK(wr_token_estimator_estimate(estimator, &options, &estimate, NULL));
  CHECK_EQ(estimate.input_tokens, 5);
  CHECK_EQ(estimate.output_tokens, 50);
  wr_token_estimator_set_bytes_per_token(estimator, 2.0);
  CHECK(wr_token_estimator_bytes_per_token(estimator) == 2.0);
  CHECK_STATUS(wr_token_estimator_learn(NULL, 1, 1), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_token_estimator_estimate(estimator, NULL, &estimate, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_token_estimator_estimate(estimator, &options, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_token_estimator_new(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_token_estimator_set_bytes_per_token(NULL, 2.0);
  CHECK(wr_token_estimator_bytes_per_token(NULL) == 0.0);
  wr_token_estimator_free(estimator);
  wr_token_estimator_free(NULL);
}

TEST(WhatACutAnswerDidNotSayIsEstimated) {
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  wr_token_estimate estimate = WR_TOKEN_ESTIMATE_INIT;
  uint32_t filled = 7;
  estimate.input_tokens = 70;
  estimate.output_tokens = 30;
  r.output_events = 12;
  r.model = text("m");
  CHECK_OK(wr_estimate_missing(&r, &estimate, &filled, NULL));
  CHECK_EQ(filled, 1);
  CHECK_EQ(r.input_tokens, 70);
  CHECK_EQ(r.output_tokens, 12); /* what came */
  CHECK_EQ(r.source, WR_USAGE_SOURCE_ESTIMATE);
  CHECK(equals(r.model, "m"));
  r = used(1, 0, 2);
  CHECK_OK(wr_estimate_missing(&r, &estimate, &filled, NULL));
  CHECK_EQ(filled, 0);
  CHECK_EQ(r.input_tokens, 1);
  CHECK_STATUS(wr_estimate_missing(NULL, &estimate, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_estimate_missing(&r, NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  r.source = WR_USAGE_SOURCE_ESTIMATE + 1;
  CHECK_STATUS(wr_estimate_missing(&r, &estimate, NULL, NULL), WR_STATUS_OUT_OF_RANGE);
}

static wr_status try_hangup_policy(const void* policy) {
  uint32_t read_on = 0;
  return wr_hangup_read_on(policy, 0, 0, 0, 0, &read_on, NULL, NULL);
}
TEST(AClientThatHungUpIsReadToItsEndWithinLimits) {
  wr_hangup_policy policy = WR_HANGUP_POLICY_INIT;
  uint32_t read_on = 7;
  int64_t deadline = 0;
  check_input_sizes(&policy, sizeof policy, offsetof(wr_hangup_policy, reserved), WR_STATUS_OK, try_hangup_policy);
  CHECK_OK(wr_hangup_read_on(&policy, 5, 0, 0, 5, &read_on, &deadline, NULL));
  CHECK(read_on == 0 && deadline == 5);
  policy.mode = WR_HANGUP_DRAIN;
  policy.max_drain_ns = 10;
  policy.max_drain_bytes = 100;
  CHECK_OK(wr_hangup_read_on(&policy, 5, 100, 0, 14, &read_on, &deadline, NULL));
  CHECK(read_on == 1 && deadline == 15);
  CHECK_OK(wr_hangup_read_on(&policy, 5, 101, 0, 14, &read_on, NULL, NULL));
  CHECK_EQ(read_on, 0);
  CHECK_OK(wr_hangup_read_on(&policy, 5, 0, 0, 15, &read_on, NULL, NULL));
  CHECK_EQ(read_on, 0);
  CHECK_OK(wr_hangup_read_on(&policy, 5, 0, 1, 6, &read_on, NULL, NULL)); /* the last word is there */
  CHECK_EQ(read_on, 0);
  policy.mode = WR_HANGUP_DRAIN + 1;
  CHECK_STATUS(wr_hangup_read_on(&policy, 5, 0, 0, 6, &read_on, NULL, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_hangup_read_on(NULL, 5, 0, 0, 6, &read_on, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
}

static wr_status try_estimate_options(const void* options) {
  wr_token_estimator* estimator = NULL;
  wr_token_estimate out = WR_TOKEN_ESTIMATE_INIT;
  wr_status status;
  CHECK_OK(wr_token_estimator_new(&estimator, NULL));
  status = wr_token_estimator_estimate(estimator, options, &out, NULL);
  wr_token_estimator_free(estimator);
  return status;
}
static wr_status fill_estimate(void* out) {
  const wr_estimate_options options = WR_ESTIMATE_OPTIONS_INIT;
  wr_token_estimator* estimator = NULL;
  wr_status status;
  CHECK_OK(wr_token_estimator_new(&estimator, NULL));
  status = wr_token_estimator_estimate(estimator, &options, out, NULL);
  wr_token_estimator_free(estimator);
  return status;
}
static wr_status fill_ask(void* out) { return wr_ask_for_usage(text(kAsking), out, NULL); }
static wr_status try_ask(const void* ask) {
  size_t needed = 0;
  return wr_ask_for_usage_body(text(kAsking), ask, NULL, 0, &needed, NULL);
}
static wr_status try_token_estimate(const void* estimate) {
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  return wr_estimate_missing(&r, estimate, NULL, NULL);
}
TEST(StructsOfTheRequestSideMayBeOfOtherSizes) {
  const wr_estimate_options options = WR_ESTIMATE_OPTIONS_INIT;
  const wr_token_estimate estimate = WR_TOKEN_ESTIMATE_INIT;
  const wr_usage_ask ask = WR_USAGE_ASK_INIT;
  check_input_sizes(&options, sizeof options, offsetof(wr_estimate_options, reserved), WR_STATUS_OK,
                    try_estimate_options);
  check_input_sizes(&estimate, sizeof estimate, offsetof(wr_token_estimate, reserved), WR_STATUS_OK,
                    try_token_estimate);
  check_output_sizes(&estimate, sizeof estimate, 1, fill_estimate);
  check_input_sizes(&ask, sizeof ask, offsetof(wr_usage_ask, reserved), WR_STATUS_OK, try_ask);
  check_output_sizes(&ask, sizeof ask, 1, fill_ask);
}

/* ---- 10c */

TEST(ATableSaysWhatARequestCost) {
  wr_price_table* table = new_prices();
  wr_price_options options = WR_PRICE_OPTIONS_INIT;
  wr_usage_report r = used(100, 60, 20);
  wr_cost cost = WR_COST_INIT;
  CHECK_EQ(wr_price_table_size(table), 2);
  CHECK_EQ(wr_price_table_skipped_rates(table), 1);
  CHECK_OK(wr_price_table_cost(table, &r, text(""), NULL, &cost, NULL));
  CHECK_EQ(cost.picos, 40 * 1000000 + 60 * 100000 + 20 * 4000000);
  CHECK_EQ(cost.source, WR_COST_SOURCE_TABLE);
  CHECK(equals(cost.price_key, "m-large"));
  CHECK_EQ(cost.line_count, 3);
  CHECK_EQ(cost.lines[0].meter, WR_PRICE_METER_INPUT);
  CHECK_EQ(cost.lines[0].quantity, 40);
  CHECK_EQ(cost.lines[0].rate_femtos, 1000000000);
  CHECK_EQ(cost.lines[0].cost_picos, 40000000);
  CHECK_TEXT(wr_price_meter_name(cost.lines[1].meter), "cached_input");
  options.tier = wr_price_tier_of(text("flex"));
  CHECK_EQ(options.tier, WR_PRICE_TIER_FLEX);
  r.cached_input_tokens = 0;
  CHECK_OK(wr_price_table_cost(table, &r, text(""), &options, &cost, NULL));
  CHECK_EQ(cost.picos, 100 * 500000 + 20 * 2000000);
  r.service_tier = text("flex");
  options.tier = WR_PRICE_TIER_REPORTED;
  CHECK_OK(wr_price_table_cost(table, &r, text(""), &options, &cost, NULL));
  CHECK_EQ(cost.picos, 100 * 500000 + 20 * 2000000);
  r.reported_cost_picos = 12;
  options.prefer_reported_cost = 1;
  CHECK_OK(wr_price_table_cost(table, &r, text(""), &options, &cost, NULL));
  CHECK_EQ(cost.picos, 12);
  CHECK_EQ(cost.source, WR_COST_SOURCE_REPORTED);
  wr_price_table_free(table);
}

TEST(WhatIsUnknownCostsUnknownAndNotNothing) {
  wr_price_table* table = new_prices();
  wr_usage_report r = used(100, 0, WR_UNKNOWN);
  wr_cost cost = WR_COST_INIT;
  CHECK_OK(wr_price_table_cost(table, &r, text(""), NULL, &cost, NULL));
  CHECK_EQ(cost.picos, WR_UNKNOWN);
  CHECK_EQ(cost.source, WR_COST_SOURCE_UNKNOWN);
  r.output_tokens = 1;
  CHECK_OK(wr_price_table_cost(table, &r, text("nobody"), NULL, &cost, NULL));
  CHECK_EQ(cost.picos, WR_UNKNOWN);
  CHECK_EQ(cost.line_count, 0);
  wr_price_table_free(table);
}

TEST(OverridesAliasesAndOwnReplicasHaveTheirPrices) {
  wr_price_table* table = NULL;
  wr_self_hosted_price own = WR_SELF_HOSTED_PRICE_INIT;
  wr_usage_report r = used(100, 0, 10);
  wr_cost cost = WR_COST_INIT;
  wr_str key = WR_STR_INIT;
  wr_error err = WR_ERROR_INIT;
  CHECK_OK(wr_price_table_new(&table, NULL));
  CHECK_EQ(wr_price_table_size(table), 0);
  CHECK_OK(wr_price_table_override(table, text("{\"p/a\":{\"input_cost_per_token\":2e-6,\"output_cost_per_token\":0}}"),
                                   NULL));
  CHECK_OK(wr_price_table_set_alias(table, text("b"), text("p/a"), NULL));
  CHECK_OK(wr_price_table_cost(table, &r, text("b"), NULL, &cost, NULL));
  CHECK_EQ(cost.picos, 200000000);
  CHECK_OK(wr_price_table_find(table, text("a"), text("p"), &key, NULL));
  CHECK(equals(key, "p/a"));
  CHECK_STATUS(wr_price_table_find(table, text("zzz"), text(""), &key, &err), WR_STATUS_NOT_FOUND);
  CHECK(equals(key, "p/a"));
  own.model = text("own");
  own.replica_hour_picos = 3600000000000; /* 3.6 USD an hour are 0.001 USD a second */
  own.input_tokens_per_second = 1000;
  own.output_tokens_per_second = 100;
  own.utilization = 0.5;
  CHECK_OK(wr_price_table_set_self_hosted(table, &own, NULL));
  CHECK_OK(wr_price_table_cost(table, &r, text("own"), NULL, &cost, NULL));
  CHECK_EQ(cost.picos, 2 * (100 * 1000000 + 10 * 10000000));
  CHECK_EQ(cost.source, WR_COST_SOURCE_SELF_HOSTED);
  own.utilization = 2;
  CHECK_STATUS(wr_price_table_set_self_hosted(table, &own, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_price_table_override(table, text("{\"a\":{\"input_cost_per_token\":\"x\"}}"), &err),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_price_table_override(table, text("nothing"), &err), WR_STATUS_INVALID_JSON);
  CHECK_STATUS(wr_price_table_set_alias(table, text(""), text("a"), &err), WR_STATUS_INVALID_ARGUMENT);
  wr_price_table_free(table);
}

static wr_status table_version(char* buf, size_t cap, size_t* needed, wr_error* err) {
  wr_price_table* table = new_prices();
  const wr_status status = wr_price_table_version(table, buf, cap, needed, err);
  wr_price_table_free(table);
  return status;
}
TEST(ATableComesFromAFileAndHasAVersion) {
  wr_price_table* table = NULL;
  wr_error err = WR_ERROR_INIT;
  size_t size = 0;
  char* version = check_two_calls(table_version, &size);
  char again[64] = "";
  const char* path = "capi_usage_test_prices.json";
  FILE* file = fopen(path, "wb");
  CHECK(file != NULL);
  CHECK_EQ(fwrite(kPrices, 1, strlen(kPrices), file), strlen(kPrices));
  CHECK_EQ(fclose(file), 0);
  CHECK_OK(wr_price_table_load(text(path), &table, NULL));
  CHECK_EQ(remove(path), 0);
  CHECK_OK(wr_price_table_version(table, again, sizeof again, &size, NULL));
  CHECK_TEXT(again, version);
  free(version);
  wr_price_table_free(table);
  table = NULL;
  CHECK_STATUS(wr_price_table_load(text("no/such/file.json"), &table, &err), WR_STATUS_IO);
  CHECK_STATUS(wr_price_table_from_json(text("[]"), &table, &err), WR_STATUS_NOT_AN_OBJECT);
  CHECK_STATUS(wr_price_table_from_json(bad_text(), &table, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_price_table_new(NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(table == NULL);
}

TEST(PricesRefuseWhatTheyCannotTake) {
  wr_price_table* table = new_prices();
  wr_price_options options = WR_PRICE_OPTIONS_INIT;
  wr_usage_report r = used(1, 0, 1);
  wr_cost cost = WR_COST_INIT;
  wr_other_model_usage others[17];
  wr_error err = WR_ERROR_INIT;
  memset(others, 0, sizeof others);
  options.tier = WR_PRICE_TIER_ULTRAFAST + 1;
  CHECK_STATUS(wr_price_table_cost(table, &r, text(""), &options, &cost, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_price_table_cost(table, NULL, text(""), NULL, &cost, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_price_table_cost(NULL, &r, text(""), NULL, &cost, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_price_table_cost(table, &r, bad_text(), NULL, &cost, &err), WR_STATUS_INVALID_ARGUMENT);
  r.other_models = others;
  r.other_model_count = 17;
  CHECK_STATUS(wr_price_table_cost(table, &r, text(""), NULL, &cost, &err), WR_STATUS_OUT_OF_RANGE);
  r.other_model_count = 1;
  others[0].model = bad_text();
  CHECK_STATUS(wr_price_table_cost(table, &r, text(""), NULL, &cost, &err), WR_STATUS_INVALID_ARGUMENT);
  r.other_model_count = 0;
  r.model = bad_text();
  CHECK_STATUS(wr_price_table_cost(table, &r, text(""), NULL, &cost, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(cost.picos, WR_UNKNOWN);
  CHECK_EQ(wr_price_tier_of(bad_text()), WR_PRICE_TIER_STANDARD);
  CHECK_EQ(wr_price_table_size(NULL) + wr_price_table_skipped_rates(NULL), 0);
  wr_price_table_free(table);
  wr_price_table_free(NULL);
}

static wr_price_table* shared_table;
static wr_status try_price_options(const void* options) {
  const wr_usage_report r = used(1, 0, 1);
  wr_cost cost = WR_COST_INIT;
  return wr_price_table_cost(shared_table, &r, text(""), options, &cost, NULL);
}
static wr_status try_report(const void* report) {
  wr_cost cost = WR_COST_INIT;
  return wr_price_table_cost(shared_table, report, text(""), NULL, &cost, NULL);
}
static wr_status fill_cost(void* out) {
  const wr_usage_report r = used(1, 0, 1);
  return wr_price_table_cost(shared_table, &r, text(""), NULL, out, NULL);
}
static wr_status try_own_price(const void* price) { return wr_price_table_set_self_hosted(shared_table, price, NULL); }
TEST(StructsOfPricesMayBeOfOtherSizes) {
  const wr_price_options options = WR_PRICE_OPTIONS_INIT;
  const wr_usage_report report = used(1, 0, 1);
  const wr_cost cost = WR_COST_INIT;
  wr_self_hosted_price own = WR_SELF_HOSTED_PRICE_INIT;
  own.model = text("own");
  own.replica_hour_picos = 1;
  own.input_tokens_per_second = own.output_tokens_per_second = 1;
  shared_table = new_prices();
  check_input_sizes(&options, sizeof options, offsetof(wr_price_options, reserved), WR_STATUS_OK, try_price_options);
  check_input_sizes(&report, sizeof report, offsetof(wr_usage_report, reserved), WR_STATUS_OK, try_report);
  check_output_sizes(&cost, sizeof cost, 1, fill_cost);
  check_input_sizes(&own, sizeof own, offsetof(wr_self_hosted_price, reserved), WR_STATUS_OK, try_own_price);
  wr_price_table_free(shared_table);
}

TESTS(CASE(AMeterReadsAStreamByteByByteAndSaysWhereTheFirstTokenEnded),
      CASE(AMeterIsUsedAgainWithWhatIsKnownOfAnotherDeployment), CASE(AMeterTellsOfOtherModels),
      CASE(StructsOfTheMeterMayBeOfOtherSizes), CASE(AMeterRefusesWhatItCannotTake),
      CASE(AStreamIsAskedForItsUsageAndTheClientsOwnWishStays), CASE(TheChunkThatWasAskedForIsTakenOutAndNothingElse),
      CASE(EstimatesFollowWhatWasLearned), CASE(WhatACutAnswerDidNotSayIsEstimated),
      CASE(AClientThatHungUpIsReadToItsEndWithinLimits), CASE(StructsOfTheRequestSideMayBeOfOtherSizes),
      CASE(ATableSaysWhatARequestCost), CASE(WhatIsUnknownCostsUnknownAndNotNothing),
      CASE(OverridesAliasesAndOwnReplicasHaveTheirPrices), CASE(ATableComesFromAFileAndHasAVersion),
      CASE(PricesRefuseWhatTheyCannotTake), CASE(StructsOfPricesMayBeOfOtherSizes))
