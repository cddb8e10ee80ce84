/* 12 Traces: the reader and writer of traces, routers that record, their log and its replay. */
#define _POSIX_C_SOURCE 200809L
#include "helpers.h"

#include <unistd.h>

enum { kSecond = 1000000000 };

static int equals(wr_str got, const char* wanted) {
  return got.size == strlen(wanted) && (got.size == 0 || memcmp(got.data, wanted, got.size) == 0);
}

/* FNV-1a over a line per record with all of its fields: tests/trace/forms_test.cpp and python/tests/test_trace.py make the same of the same files. */
static uint64_t digest_more(uint64_t digest, const char* bytes) {
  for (; *bytes != 0; ++bytes) digest = (digest ^ (unsigned char)*bytes) * 1099511628211u;
  return digest;
}
static uint64_t digest_text(uint64_t digest, wr_str s) {
  char copy[512];
  CHECK(s.size < sizeof copy);
  if (s.size > 0) memcpy(copy, s.data, s.size);
  copy[s.size] = 0;
  return digest_more(digest_more(digest, copy), ",");
}
static uint64_t digest_record(uint64_t digest, const wr_trace_record* r) {
  char line[512];
  size_t i;
  for (i = 0; i < r->block_count; ++i) {
    snprintf(line, sizeof line, "%llu ", (unsigned long long)r->blocks[i]);
    digest = digest_more(digest, line);
  }
  digest = digest_text(digest_text(digest_text(digest, r->model), r->adapter), r->request_class);
  snprintf(line, sizeof line, "%lld,%lld,%lld,%llu,%lld,%lld,%lld,%lld,%d,%d,%u,%u,%lld\n", (long long)r->arrival_us,
           (long long)r->input_tokens, (long long)r->output_tokens, (unsigned long long)r->session,
           (long long)r->block_tokens, (long long)r->max_output_tokens, (long long)r->cached_tokens,
           (long long)r->ttft_us, r->has_priority ? (int)r->priority : -999, (int)r->stream, (unsigned)r->cancelled,
           (unsigned)r->follows, (long long)r->think_us);
  return digest_more(digest, line);
}

static wr_trace_reader* reader_of(const char* content, const wr_trace_options* options) {
  wr_trace_reader* reader = NULL;
  CHECK_OK(wr_trace_from_text(text(content), options, &reader, NULL));
  return reader;
}

TEST(PublishedFormsAreReadAsInCpp) {
  static const struct {
    const char* path;
    uint32_t format;
    uint64_t records, digest;
  } files[] = {
      {WARMROUTE_TEST_DATA "/traces/azure_code_120.csv", WR_TRACE_AZURE, 120, 1376176534401509859u},
      {WARMROUTE_TEST_DATA "/traces/weka_4.jsonl", WR_TRACE_WEKA, 330, 16165924615425173174u},
      {WARMROUTE_TEST_DATA "/traces/ragpulse/0_trace.jsonl", WR_TRACE_RAGPULSE, 80, 14884271213351314556u},
      {WARMROUTE_BENCHMARK_DATA "/mooncake_conversation_1200.jsonl", WR_TRACE_MOONCAKE, 1200, 5968675010914389020u},
  };
  size_t i;
  for (i = 0; i < sizeof files / sizeof files[0]; ++i) {
    wr_trace_reader* reader = NULL;
    wr_trace_record record = WR_TRACE_RECORD_INIT;
    uint64_t digest = 14695981039346656037u, records = 0;
    uint32_t found = 1, format = 77;
    CHECK_OK(wr_trace_detect_file(text(files[i].path), &format, NULL));
    CHECK_EQ(format, files[i].format);
    CHECK_OK(wr_trace_open(text(files[i].path), NULL, &reader, NULL));
    CHECK_EQ(wr_trace_format(reader), WR_TRACE_AUTOMATIC);
    for (;;) {
      CHECK_OK(wr_trace_next(reader, &record, &found, NULL));
      if (!found) break;
      ++records;
      digest = digest_record(digest, &record);
    }
    CHECK_EQ(wr_trace_format(reader), files[i].format);
    CHECK(wr_trace_line(reader) > 0);
    CHECK_EQ(records, files[i].records);
    if (digest != files[i].digest) fprintf(stderr, "%s: %llu\n", files[i].path, (unsigned long long)digest);
    CHECK(digest == files[i].digest);
    wr_trace_free(reader);
  }
  CHECK_EQ(wr_trace_detect(text("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}")), WR_TRACE_MOONCAKE);
  CHECK_EQ(wr_trace_detect(text("hello")), WR_TRACE_AUTOMATIC);
  CHECK_EQ(wr_trace_detect(bad_text()), WR_TRACE_AUTOMATIC);
  CHECK_TEXT(wr_trace_format_name(WR_TRACE_WEKA), "weka");
  CHECK_TEXT(wr_trace_format_name(7), "unknown");
}

TEST(BrokenLinesAreToldWithTheirNumberAndTheNextOneIsRead) {
  wr_trace_options options = WR_TRACE_OPTIONS_INIT;
  wr_trace_record record = WR_TRACE_RECORD_INIT;
  wr_error err = WR_ERROR_INIT;
  uint32_t found = 9;
  wr_trace_reader* reader;
  options.format = WR_TRACE_MOONCAKE;
  options.max_tokens = 1000;
  options.max_line_bytes = 120;
  reader = reader_of(
      "{\"timestamp\": 1, \"input_length\": 600, \"output_length\": 2, \"hash_ids\": [5, 6]}\n"
      "\n"
      "{\"timestamp\": 1,\n"
      "{\"timestamp\": 1, \"input_length\": 2000, \"output_length\": 2}\n"
      "{\"timestamp\": 1, \"input_length\": 10, \"output_length\": 2, \"padding\": "
      "\"..............................................."
      ".....................................\"}\n"
      "{\"timestamp\": 3, \"input_length\": 7, \"output_length\": 2}\n",
      &options);
  CHECK_OK(wr_trace_next(reader, &record, &found, NULL));
  CHECK_EQ(found, 1);
  CHECK_EQ(record.arrival_us, 1000);
  CHECK_EQ(record.block_count, 2);
  CHECK_EQ(record.blocks[1], 6);
  CHECK_EQ(record.max_output_tokens, WR_UNKNOWN);
  CHECK_EQ(record.stream, WR_UNKNOWN);
  CHECK_EQ(record.has_priority, 0);
  CHECK_STATUS(wr_trace_next(reader, &record, &found, &err), WR_STATUS_INVALID_JSON);
  CHECK(strstr(err.message, ":3: ") != NULL);
  CHECK_EQ(err.offset, 79);
  CHECK_EQ(record.arrival_us, 1000); /* as it was */
  CHECK_STATUS(wr_trace_next(reader, &record, &found, &err), WR_STATUS_VALUE_OUT_OF_RANGE);
  CHECK_STATUS(wr_trace_next(reader, &record, &found, &err), WR_STATUS_TOO_LARGE);
  CHECK_OK(wr_trace_next(reader, &record, &found, NULL));
  CHECK_EQ(record.input_tokens, 7);
  CHECK(record.blocks == NULL && record.block_count == 0);
  CHECK_EQ(wr_trace_line(reader), 6);
  CHECK_OK(wr_trace_next(reader, &record, &found, NULL));
  CHECK_EQ(found, 0);
  wr_trace_free(reader);
}

/* Every member set. */
static wr_trace_record full_record(const uint64_t* blocks) {
  wr_trace_record r = WR_TRACE_RECORD_INIT;
  r.cancelled = 1;
  r.arrival_us = 2500000;
  r.input_tokens = 1000;
  r.output_tokens = 30;
  r.session = 0xFEDCBA9876543210u;
  r.blocks = blocks;
  r.block_count = 2;
  r.model = text("m \"1\"");
  r.adapter = text("lora");
  r.request_class = text("chat");
  r.max_output_tokens = 64;
  r.cached_tokens = 0;
  r.ttft_us = 125000;
  r.priority = -2;
  r.has_priority = 1;
  r.stream = 0;
  r.follows = 1;
  r.think_us = 4000;
  return r;
}

TEST(WhatIsWrittenIsReadBack) {
  static const char* const kPaths[] = {"capi_trace_test.jsonl", "capi_trace_test.jsonl.gz"};
  const uint64_t blocks[] = {7, UINT64_MAX};
  const wr_trace_record full = full_record(blocks);
  wr_trace_record first = WR_TRACE_RECORD_INIT, got = WR_TRACE_RECORD_INIT, odd = WR_TRACE_RECORD_INIT;
  size_t i;
  first.input_tokens = 5;
  first.output_tokens = 1;
  odd.input_tokens = 5;
  odd.block_tokens = 7;
  for (i = 0; i < 2; ++i) {
    wr_trace_writer* writer = NULL;
    wr_trace_reader* reader = NULL;
    uint32_t found = 0;
    CHECK_OK(wr_trace_writer_open(text(kPaths[i]), &writer, NULL));
    CHECK_OK(wr_trace_writer_write(writer, &first, NULL));
    CHECK_STATUS(wr_trace_writer_write(writer, &odd, NULL), WR_STATUS_UNSUPPORTED);
    CHECK_OK(wr_trace_writer_write(writer, &full, NULL));
    CHECK_OK(wr_trace_writer_close(writer, NULL));
    CHECK_OK(wr_trace_writer_close(writer, NULL));
    CHECK_STATUS(wr_trace_writer_write(writer, &full, NULL), WR_STATUS_INVALID_ARGUMENT);
    wr_trace_writer_free(writer);
    CHECK_OK(wr_trace_open(text(kPaths[i]), NULL, &reader, NULL));
    CHECK_OK(wr_trace_next(reader, &got, &found, NULL));
    CHECK(digest_record(1, &got) == digest_record(1, &first));
    CHECK_OK(wr_trace_next(reader, &got, &found, NULL));
    CHECK(equals(got.model, "m \"1\"") && equals(got.request_class, "chat"));
    CHECK(digest_record(1, &got) == digest_record(1, &full));
    CHECK_OK(wr_trace_next(reader, &got, &found, NULL));
    CHECK_EQ(found, 0);
    wr_trace_free(reader);
    CHECK_EQ(remove(kPaths[i]), 0);
  }
}

static wr_status give_line(char* buf, size_t cap, size_t* needed, wr_error* err) {
  const uint64_t blocks[] = {7, 8};
  const wr_trace_record record = full_record(blocks);
  return wr_trace_mooncake_line(&record, buf, cap, needed, err);
}
static wr_status try_record(const void* record) {
  size_t needed = 0;
  return wr_trace_mooncake_line(record, NULL, 0, &needed, NULL);
}
static wr_status try_options(const void* options) {
  wr_trace_reader* reader = NULL;
  const wr_status status = wr_trace_from_text(text(""), options, &reader, NULL);
  wr_trace_free(reader);
  return options != NULL ? status : WR_STATUS_INVALID_ARGUMENT; /* NULL is fine here */
}
static wr_status fill_record(void* out) {
  uint32_t found = 0;
  wr_trace_reader* reader = reader_of("{\"timestamp\": 1, \"input_length\": 6, \"output_length\": 2}\n", NULL);
  const wr_status status = wr_trace_next(reader, out, &found, NULL);
  wr_trace_free(reader);
  return status;
}

TEST(StructsOfTracesMayBeOfOtherSizesAndTextIsGivenInTwoCalls) {
  const wr_trace_record record = WR_TRACE_RECORD_INIT;
  const wr_trace_options options = WR_TRACE_OPTIONS_INIT;
  size_t size = 0;
  char* line = check_two_calls(give_line, &size);
  CHECK(strstr(line, "\"priority\":") != NULL);
  CHECK_EQ(line[size - 2], '\n');
  free(line);
  check_input_sizes(&record, sizeof record, offsetof(wr_trace_record, reserved), WR_STATUS_OK, try_record);
  check_input_sizes(&options, sizeof options, offsetof(wr_trace_options, reserved), WR_STATUS_OK, try_options);
  check_output_sizes(&record, sizeof record, 1, fill_record);
}

TEST(TracesRefuseWhatTheyCannotTake) {
  wr_trace_reader *reader = NULL, *good;
  wr_trace_writer* writer = NULL;
  wr_trace_options options = WR_TRACE_OPTIONS_INIT;
  wr_trace_record record = WR_TRACE_RECORD_INIT;
  uint32_t found = 0;
  size_t needed = 0;
  CHECK_STATUS(wr_trace_open(text("/nonexistent/trace"), NULL, &reader, NULL), WR_STATUS_IO);
  CHECK_STATUS(wr_trace_open(bad_text(), NULL, &reader, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_trace_open(text("x"), NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_trace_from_text(bad_text(), NULL, &reader, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_trace_detect_file(text("/nonexistent/trace"), &found, NULL), WR_STATUS_IO);
  CHECK_STATUS(wr_trace_detect_file(text("x"), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  options.format = 7;
  CHECK_STATUS(wr_trace_from_text(text(""), &options, &reader, NULL), WR_STATUS_OUT_OF_RANGE);
  options.format = 0;
  options.abi_version = 99;
  CHECK_STATUS(wr_trace_from_text(text(""), &options, &reader, NULL), WR_STATUS_ABI_MISMATCH);
  CHECK(reader == NULL);
  good = reader_of("nobody knows this\n", NULL);
  CHECK_STATUS(wr_trace_next(good, &record, &found, NULL), WR_STATUS_UNSUPPORTED);
  CHECK_STATUS(wr_trace_next(NULL, &record, &found, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_trace_next(good, NULL, &found, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_trace_next(good, &record, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_trace_free(good);
  CHECK_EQ(wr_trace_line(NULL), 0);
  CHECK_EQ(wr_trace_format(NULL), WR_TRACE_AUTOMATIC);
  CHECK_STATUS(wr_trace_writer_open(text("/nonexistent/trace"), &writer, NULL), WR_STATUS_IO);
  CHECK_STATUS(wr_trace_writer_write(NULL, &record, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_trace_writer_close(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_trace_writer_free(NULL);
  wr_trace_free(NULL);
  record.model = bad_text();
  CHECK_STATUS(wr_trace_mooncake_line(&record, NULL, 0, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  record.model = text("\xFF");
  CHECK_STATUS(wr_trace_mooncake_line(&record, NULL, 0, &needed, NULL), WR_STATUS_INVALID_UTF8);
  record = (wr_trace_record)WR_TRACE_RECORD_INIT;
  record.block_count = 3;
  CHECK_STATUS(wr_trace_mooncake_line(&record, NULL, 0, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
}

/* ---- Routers that record */

static const char* log_name(void) { /* tests of this program may run at the same time */
  static char name[64];
  if (name[0] == 0) snprintf(name, sizeof name, "capi_trace_test.%ld.decisions", (long)getpid());
  return name;
}
#define kLog log_name()
enum { kRequests = 60 };

/* Requests of a few prompts that grow, on two replicas, one of which has engine events of its own; through wr_models, too. */
static void serve(wr_router* router) {
  uint32_t tokens[640];
  wr_replica_id ids[2];
  const uint64_t names[] = {91, 92};
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  wr_models* models = NULL;
  int i;
  ids[0] = add_named(router, "gpu-0", "");
  ids[1] = add_named(router, "gpu-1", "");
  count_up(tokens, 640, 3);
  stored.ids = names;
  stored.count = 2;
  stored.token_ids = tokens;
  stored.token_count = 32;
  CHECK_OK(wr_router_blocks_stored(router, ids[1], &stored, kSecond, NULL));
  CHECK_OK(wr_models_new(router, &models, NULL));
  for (i = 0; i < kRequests; ++i) {
    wr_request request = token_request(tokens, 64u + 8u * (size_t)i);
    wr_decision d = WR_DECISION_INIT;
    wr_model_choice choice = WR_MODEL_CHOICE_INIT;
    wr_usage usage = WR_USAGE_INIT;
    const int64_t now = (int64_t)(i + 2) * kSecond;
    request.session = text(i % 2 ? "secret-session" : "other");
    if (i % 3 == 0) CHECK_OK(wr_models_route(models, &request, now, &d, &choice, NULL));
    else CHECK_OK(wr_router_route(router, &request, now, &d, NULL));
    CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
    CHECK_OK(wr_router_first_token(router, d.ticket, now + 1000));
    usage.cached_tokens = 0;
    usage.output_tokens = 20;
    CHECK_OK(wr_router_finish(router, d.ticket, &usage, now + 2000));
  }
  wr_models_free(models);
}

TEST(ARecordedRouterPlaysAgainToTheSameDecisions) {
  const uint8_t key[WR_DECISION_LOG_KEY_BYTES] = {1, 2, 3};
  wr_decision_log_options options = WR_DECISION_LOG_OPTIONS_INIT;
  wr_router* router = NULL;
  wr_recording recording = WR_RECORDING_INIT;
  wr_decision_log* log = NULL;
  wr_decision_record record = WR_DECISION_RECORD_INIT;
  wr_replay replay = WR_REPLAY_INIT;
  wr_replay_options other = WR_REPLAY_OPTIONS_INIT;
  uint64_t counts[32] = {0}, records = 0;
  uint32_t found = 0;
  options.key = key;
  CHECK_OK(wr_router_new_recording(NULL, text(kLog), &options, &router, NULL));
  serve(router);
  CHECK_OK(wr_router_flush_recording(router, NULL));
  CHECK_OK(wr_router_recording(router, &recording, NULL));
  CHECK_EQ(recording.records, 3 + 3 * kRequests);
  CHECK_EQ(recording.ended, 0);
  CHECK(recording.bytes > 1000);
  wr_router_free(router);

  CHECK_OK(wr_decision_log_open(text(kLog), &log, NULL));
  for (;;) {
    CHECK_OK(wr_decision_log_next(log, &record, &found, NULL));
    if (!found) break;
    CHECK(record.call < 32);
    ++counts[record.call];
    CHECK_EQ(record.number, records);
    ++records;
    CHECK_EQ(record.status, WR_STATUS_OK);
    CHECK_EQ(record.decision != NULL, record.call == WR_CALL_ROUTE);
    if (record.call == WR_CALL_ROUTE) {
      CHECK_EQ(record.decision->verdict, WR_VERDICT_ROUTED);
      CHECK(record.block_count >= 4 && record.blocks[0] != 0);
    } else if (record.call == WR_CALL_FINISH) {
      CHECK(record.ticket != 0 && record.done == 1);
    }
  }
  CHECK_EQ(wr_decision_log_torn_bytes(log), 0);
  wr_decision_log_free(log);
  CHECK_EQ(records, recording.records);
  CHECK_EQ(counts[WR_CALL_ADD_REPLICA], 2);
  CHECK_EQ(counts[WR_CALL_BLOCKS_STORED], 1);
  CHECK_EQ(counts[WR_CALL_ROUTE], kRequests);
  CHECK_EQ(counts[WR_CALL_FINISH], kRequests);

  CHECK_OK(wr_decision_log_replay(text(kLog), NULL, &replay, NULL));
  CHECK_EQ(replay.records, records);
  CHECK_EQ(replay.decisions, kRequests);
  CHECK_EQ(replay.differing + replay.other_results + replay.torn_bytes, 0);
  CHECK(replay.first_difference == WR_NO_RECORD && replay.first_other_choice == WR_NO_RECORD);
  other.change = text("{\"algorithm\": \"round_robin\"}");
  CHECK_OK(wr_decision_log_replay(text(kLog), &other, &replay, NULL));
  CHECK(replay.other_choices > 10);
  CHECK(replay.first_other_choice != WR_NO_RECORD && replay.first_difference <= replay.first_other_choice);
  CHECK(replay.recorded_replica.slot != replay.replayed_replica.slot);
  CHECK_EQ(replay.recorded_verdict, WR_VERDICT_ROUTED);
  CHECK_EQ(replay.first_call, WR_CALL_ROUTE);
  CHECK(replay.other_choice_ns >= 2 * (int64_t)kSecond);
  other.change = text("{\"algorythm\": 1}");
  CHECK_STATUS(wr_decision_log_replay(text(kLog), &other, &replay, NULL), WR_STATUS_INVALID_ARGUMENT);
  other.change = text("");
  other.max_records = 5;
  CHECK_OK(wr_decision_log_replay(text(kLog), &other, &replay, NULL));
  CHECK_EQ(replay.records, 5);
  CHECK_EQ(remove(kLog), 0);
}

static wr_decision_log* shared_log;
static wr_status give_json(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_decision_log_json(shared_log, 1, buf, cap, needed, err);
}
static wr_router* shared_router;
static wr_status fill_recording(void* out) { return wr_router_recording(shared_router, out, NULL); }
static wr_status fill_replay(void* out) { return wr_decision_log_replay(text(kLog), NULL, out, NULL); }
static wr_status fill_decision_record(void* out) {
  uint32_t found = 0;
  return wr_decision_log_next(shared_log, out, &found, NULL);
}
static wr_status try_replay_options(const void* options) {
  wr_replay replay = WR_REPLAY_INIT;
  const wr_status status = wr_decision_log_replay(text(kLog), options, &replay, NULL);
  return options != NULL ? status : WR_STATUS_INVALID_ARGUMENT; /* NULL is fine here */
}
static wr_status try_log_options(const void* options) {
  wr_router* router = NULL;
  const wr_status status = wr_router_new_recording(NULL, text("capi_trace_other.decisions"), options, &router, NULL);
  wr_router_free(router);
  remove("capi_trace_other.decisions");
  return options != NULL ? status : WR_STATUS_INVALID_ARGUMENT; /* NULL is fine here */
}

TEST(ALogIsGivenAsJsonAndItsStructsMayBeOfOtherSizes) {
  const wr_recording recording = WR_RECORDING_INIT;
  const wr_replay replay = WR_REPLAY_INIT;
  const wr_decision_record record = WR_DECISION_RECORD_INIT;
  const wr_replay_options replaying = WR_REPLAY_OPTIONS_INIT;
  const wr_decision_log_options logging = WR_DECISION_LOG_OPTIONS_INIT;
  wr_decision_record got = WR_DECISION_RECORD_INIT;
  uint32_t found = 0;
  size_t size = 0;
  char* json;
  CHECK_OK(wr_router_new_recording(NULL, text(kLog), NULL, &shared_router, NULL));
  serve(shared_router);
  check_output_sizes(&recording, sizeof recording, 1, fill_recording);
  CHECK_OK(wr_router_flush_recording(shared_router, NULL));
  CHECK_OK(wr_decision_log_open(text(kLog), &shared_log, NULL));
  CHECK_STATUS(wr_decision_log_json(shared_log, 0, NULL, 0, &size, NULL), WR_STATUS_NOT_FOUND);
  do CHECK_OK(wr_decision_log_next(shared_log, &got, &found, NULL));
  while (got.call != WR_CALL_ROUTE);
  json = check_two_calls(give_json, &size);
  CHECK(strstr(json, "\"call\":\"route\"") != NULL && strstr(json, "\"blocks\":[\"") != NULL);
  CHECK(strstr(json, "secret") == NULL);
  free(json);
  check_output_sizes(&record, sizeof record, 1, fill_decision_record);
  wr_decision_log_free(shared_log);
  check_output_sizes(&replay, sizeof replay, 1, fill_replay);
  check_input_sizes(&replaying, sizeof replaying, offsetof(wr_replay_options, reserved), WR_STATUS_OK,
                    try_replay_options);
  check_input_sizes(&logging, sizeof logging, offsetof(wr_decision_log_options, reserved), WR_STATUS_OK,
                    try_log_options);
  wr_router_free(shared_router);
  CHECK_EQ(remove(kLog), 0);
}

TEST(ARecordingEndsWhenItIsFullAndTheRouterGoesOn) {
  wr_decision_log_options options = WR_DECISION_LOG_OPTIONS_INIT;
  wr_recording recording = WR_RECORDING_INIT;
  wr_router* router = NULL;
  options.max_bytes = 4000;
  CHECK_OK(wr_router_new_recording(NULL, text(kLog), &options, &router, NULL));
  serve(router);
  CHECK_OK(wr_router_recording(router, &recording, NULL));
  CHECK_EQ(recording.ended, 1);
  CHECK_EQ(recording.records + recording.unrecorded, 3 + 3 * kRequests);
  CHECK_TEXT(recording.reason, "the log has max_bytes");
  CHECK_STATUS(wr_router_flush_recording(router, NULL), WR_STATUS_IO);
  wr_router_free(router);
  CHECK_EQ(remove(kLog), 0);
}

TEST(LogsRefuseWhatTheyCannotTake) {
  wr_router *router = NULL, *plain = new_router();
  wr_decision_log* log = NULL;
  wr_decision_log_options options = WR_DECISION_LOG_OPTIONS_INIT;
  wr_router_options sizes = WR_ROUTER_OPTIONS_INIT;
  wr_recording recording = WR_RECORDING_INIT;
  wr_replay replay = WR_REPLAY_INIT;
  wr_decision_record record = WR_DECISION_RECORD_INIT;
  uint32_t found = 0;
  CHECK_STATUS(wr_router_new_recording(NULL, text("/nonexistent/log"), NULL, &router, NULL), WR_STATUS_IO);
  CHECK_STATUS(wr_router_new_recording(NULL, bad_text(), NULL, &router, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_new_recording(NULL, text(kLog), NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  options.abi_version = 99;
  CHECK_STATUS(wr_router_new_recording(NULL, text(kLog), &options, &router, NULL), WR_STATUS_ABI_MISMATCH);
  sizes.max_replicas = 0;
  CHECK_STATUS(wr_router_new_recording(&sizes, text(kLog), NULL, &router, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(router == NULL);
  CHECK_STATUS(wr_router_recording(plain, &recording, NULL), WR_STATUS_UNSUPPORTED);
  CHECK_STATUS(wr_router_recording(NULL, &recording, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_flush_recording(plain, NULL), WR_STATUS_UNSUPPORTED);
  CHECK_STATUS(wr_router_flush_recording(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_router_free(plain);
  CHECK_STATUS(wr_decision_log_open(text("/nonexistent/log"), &log, NULL), WR_STATUS_IO);
  CHECK_STATUS(wr_decision_log_open(text(WARMROUTE_TEST_DATA "/traces/azure_code_120.csv"), &log, NULL),
               WR_STATUS_MALFORMED);
  CHECK_STATUS(wr_decision_log_open(bad_text(), &log, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_decision_log_replay(text("/nonexistent/log"), NULL, &replay, NULL), WR_STATUS_IO);
  CHECK_STATUS(wr_decision_log_next(NULL, &record, &found, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(wr_decision_log_torn_bytes(NULL), 0);
  wr_decision_log_free(NULL);
  CHECK_TEXT(wr_call_name(WR_CALL_RESTORE_LEARNED), "restore_learned");
  CHECK_TEXT(wr_call_name(0), "unknown");
  CHECK_TEXT(wr_call_name(24), "unknown");
}

TESTS(CASE(PublishedFormsAreReadAsInCpp), CASE(BrokenLinesAreToldWithTheirNumberAndTheNextOneIsRead),
      CASE(WhatIsWrittenIsReadBack), CASE(StructsOfTracesMayBeOfOtherSizesAndTextIsGivenInTwoCalls),
      CASE(TracesRefuseWhatTheyCannotTake), CASE(ARecordedRouterPlaysAgainToTheSameDecisions),
      CASE(ALogIsGivenAsJsonAndItsStructsMayBeOfOtherSizes), CASE(ARecordingEndsWhenItIsFullAndTheRouterGoesOn),
      CASE(LogsRefuseWhatTheyCannotTake))
