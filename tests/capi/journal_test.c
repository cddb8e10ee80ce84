/* 10f Journal, 10g Ledger. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <unistd.h>

#include "helpers.h"

static const int64_t kSecond = 1000000000;
static const int64_t kWall = 1800000000000000000;
static char directory[64];

static int equals(wr_str got, const char* wanted) {
  return got.size == strlen(wanted) && (got.size == 0 || memcmp(got.data, wanted, got.size) == 0);
}
static void new_directory(void) {
  strcpy(directory, "capi_journal_XXXXXX");
  CHECK(mkdtemp(directory) != NULL);
}
static void remove_directory(void) {
  char path[512];
  DIR* folder = opendir(directory);
  const struct dirent* entry;
  CHECK(folder != NULL);
  while ((entry = readdir(folder)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    CHECK(snprintf(path, sizeof path, "%s/%s", directory, entry->d_name) < (int)sizeof path);
    CHECK_EQ(unlink(path), 0);
  }
  CHECK_EQ(closedir(folder), 0);
  CHECK_EQ(rmdir(directory), 0);
}
static wr_journal* open_journal(void) {
  wr_journal* journal = NULL;
  CHECK_OK(wr_journal_open(text(directory), NULL, &journal, NULL));
  return journal;
}
static wr_journal_reader* open_reader(void) {
  const wr_journal_cursor all = WR_JOURNAL_CURSOR_INIT;
  wr_journal_reader* reader = NULL;
  CHECK_OK(wr_journal_reader_open(text(directory), all, &reader, NULL));
  return reader;
}

static wr_usage_report report_of(int64_t input, int64_t cached, int64_t output) {
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  r.complete = 1;
  r.source = WR_USAGE_SOURCE_PROVIDER;
  r.anomalies = WR_ANOMALY_TOTAL_MISMATCH;
  r.input_tokens = input;
  r.cached_input_tokens = cached;
  r.output_tokens = output;
  r.cache_write_1h_tokens = 3;
  r.finish_reason = text("stop");
  r.service_tier = text("flex");
  r.model = text("m-large-1");
  r.response_id = text("c-1");
  return r;
}
static wr_cost cost_of(int64_t picos) {
  wr_cost cost = WR_COST_INIT;
  cost.source = WR_COST_SOURCE_TABLE;
  cost.picos = picos;
  cost.price_key = text("m-large");
  cost.line_count = 2;
  cost.lines[0].meter = WR_PRICE_METER_INPUT;
  cost.lines[0].quantity = 40;
  cost.lines[0].rate_femtos = 1000;
  cost.lines[0].cost_picos = 40;
  cost.lines[1].meter = WR_PRICE_METER_OUTPUT;
  cost.lines[1].quantity = 20;
  cost.lines[1].rate_femtos = 500;
  cost.lines[1].cost_picos = 10;
  return cost;
}
static wr_usage_event event_of(const char* key, const wr_usage_report* report, const wr_cost* cost) {
  wr_usage_event e = WR_USAGE_EVENT_INIT;
  e.attempt = 2;
  e.operation_id = text("op-1");
  e.start_wall_ns = kWall;
  e.end_wall_ns = kWall + kSecond;
  e.key_id = text(key);
  e.team_id = text("blue");
  e.provider = text("openai");
  e.operation = text("chat");
  e.request_model = text("m-large");
  e.replica_id = text("gpu-0");
  e.class_id = text("gold");
  e.report = report;
  e.cost = cost;
  e.price_table_version = text("v1");
  return e;
}

TEST(WhatWasWrittenIsReadBackWithEveryMember) {
  wr_journal* journal;
  wr_journal_reader* reader;
  wr_journal_record record = WR_JOURNAL_RECORD_INIT;
  const wr_usage_report used = report_of(100, 60, 20), estimate = report_of(70, WR_UNKNOWN, 30);
  const wr_cost cost = cost_of(50);
  const wr_usage_event end = event_of("abc", &used, &cost);
  wr_usage_event begin = event_of("abc", &estimate, NULL);
  const wr_usage_event* e;
  uint64_t number = 0;
  uint32_t found = 7;
  new_directory();
  journal = open_journal();
  begin.end_wall_ns = 0;
  CHECK_OK(wr_journal_begin(journal, &begin, &number, NULL));
  CHECK(number != 0);
  CHECK_OK(wr_journal_end(journal, number, &end, NULL));
  CHECK_STATUS(wr_journal_end(journal, number, &end, NULL), WR_STATUS_STALE);
  reader = open_reader();
  CHECK_OK(wr_journal_reader_next(reader, 1, &record, &found, NULL));
  CHECK_EQ(found, 1);
  CHECK_EQ(record.kind, WR_JOURNAL_BEGIN);
  CHECK_EQ(record.number, number);
  CHECK_EQ(record.event->report->input_tokens, 70);
  CHECK_EQ(record.event->report->cached_input_tokens, WR_UNKNOWN);
  CHECK_EQ(record.event->cost->picos, WR_UNKNOWN);
  CHECK_OK(wr_journal_reader_next(reader, 1, &record, &found, NULL));
  CHECK_EQ(found, 1);
  CHECK_EQ(record.kind, WR_JOURNAL_END);
  CHECK(record.event_id.size > 0);
  e = record.event;
  CHECK_EQ(e->struct_size, sizeof *e);
  CHECK_EQ(e->attempt, 2);
  CHECK_EQ(e->start_wall_ns, kWall);
  CHECK_EQ(e->end_wall_ns, kWall + kSecond);
  CHECK(equals(e->operation_id, "op-1") && equals(e->key_id, "abc") && equals(e->team_id, "blue"));
  CHECK(equals(e->provider, "openai") && equals(e->operation, "chat") && equals(e->request_model, "m-large"));
  CHECK(equals(e->replica_id, "gpu-0") && equals(e->class_id, "gold") && equals(e->price_table_version, "v1"));
  CHECK_EQ(e->report->complete, 1);
  CHECK_EQ(e->report->error, 0);
  CHECK_EQ(e->report->source, WR_USAGE_SOURCE_PROVIDER);
  CHECK_EQ(e->report->anomalies, WR_ANOMALY_TOTAL_MISMATCH);
  CHECK_EQ(e->report->input_tokens, 100);
  CHECK_EQ(e->report->cached_input_tokens, 60);
  CHECK_EQ(e->report->cache_write_1h_tokens, 3);
  CHECK_EQ(e->report->output_tokens, 20);
  CHECK(equals(e->report->finish_reason, "stop") && equals(e->report->service_tier, "flex"));
  CHECK(equals(e->report->model, "m-large-1") && equals(e->report->response_id, "c-1"));
  CHECK_EQ(e->cost->picos, 50);
  CHECK_EQ(e->cost->source, WR_COST_SOURCE_TABLE);
  CHECK(equals(e->cost->price_key, "m-large"));
  CHECK_EQ(e->cost->line_count, 2);
  CHECK_EQ(e->cost->lines[1].meter, WR_PRICE_METER_OUTPUT);
  CHECK_EQ(e->cost->lines[1].quantity, 20);
  CHECK_EQ(e->cost->lines[1].cost_picos, 10);
  CHECK_OK(wr_journal_reader_next(reader, 1, &record, &found, NULL));
  CHECK_EQ(found, 0);
  CHECK_EQ(record.kind, WR_JOURNAL_END); /* it stays */
  wr_journal_reader_free(reader);
  wr_journal_free(journal);
  remove_directory();
}

TEST(WhatNeverEndedIsHandedOverAsIncompleteAndWhatNeverLeftIsNot) {
  wr_journal* journal;
  wr_journal_reader* reader;
  wr_journal_record record = WR_JOURNAL_RECORD_INIT;
  wr_journal_statistics s = WR_JOURNAL_STATISTICS_INIT;
  wr_journal_cursor cursor = {9, 9}, acknowledged = {9, 9};
  const wr_usage_report estimate = report_of(70, 0, 30);
  const wr_usage_event begin = event_of("abc", &estimate, NULL);
  uint64_t withdrawn = 0, left_open = 0;
  uint32_t found = 0;
  new_directory();
  journal = open_journal();
  CHECK_OK(wr_journal_begin(journal, &begin, &withdrawn, NULL));
  CHECK_OK(wr_journal_begin(journal, &begin, &left_open, NULL));
  CHECK_OK(wr_journal_withdraw(journal, withdrawn, NULL));
  CHECK_STATUS(wr_journal_withdraw(journal, withdrawn, NULL), WR_STATUS_STALE);
  CHECK_OK(wr_journal_sync(journal, NULL));
  CHECK_OK(wr_journal_read_statistics(journal, &s, NULL));
  CHECK_EQ(s.begins, 2);
  CHECK_EQ(s.open, 1);
  CHECK_EQ(s.full, 0);
  CHECK(s.bytes > 0);
  wr_journal_free(journal);
  journal = open_journal();
  CHECK_OK(wr_journal_read_statistics(journal, &s, NULL));
  CHECK_EQ(s.recovered, 1);
  reader = open_reader();
  CHECK_OK(wr_journal_reader_next(reader, 0, &record, &found, NULL));
  CHECK_EQ(found, 1);
  CHECK_EQ(record.kind, WR_JOURNAL_INCOMPLETE);
  CHECK_EQ(record.number, left_open);
  CHECK_EQ(record.event->report->input_tokens, 70);
  CHECK_OK(wr_journal_reader_next(reader, 0, &record, &found, NULL));
  CHECK_EQ(found, 0);
  CHECK_OK(wr_journal_reader_cursor(reader, &cursor, NULL));
  CHECK_OK(wr_journal_acknowledge(journal, cursor, NULL));
  CHECK_OK(wr_journal_acknowledged(journal, &acknowledged, NULL));
  CHECK(acknowledged.segment == cursor.segment && acknowledged.offset == cursor.offset);
  wr_journal_reader_free(reader);
  CHECK_OK(wr_journal_reader_open(text(directory), acknowledged, &reader, NULL));
  CHECK_OK(wr_journal_reader_next(reader, 0, &record, &found, NULL));
  CHECK_EQ(found, 0); /* handed over */
  wr_journal_reader_free(reader);
  wr_journal_free(journal);
  remove_directory();
}

TEST(AFullDiskRefusesOrServesUnbilledAsPolicySays) {
  wr_journal_options options = WR_JOURNAL_OPTIONS_INIT;
  wr_journal_statistics s = WR_JOURNAL_STATISTICS_INIT;
  const wr_usage_report estimate = report_of(70, 0, 30);
  const wr_usage_event event = event_of("abc", &estimate, NULL);
  wr_journal* journal = NULL;
  wr_error err = WR_ERROR_INIT;
  uint64_t number = 77;
  new_directory();
  options.max_bytes = 1;
  CHECK_OK(wr_journal_open(text(directory), &options, &journal, NULL));
  CHECK_STATUS(wr_journal_begin(journal, &event, &number, &err), WR_STATUS_IO);
  CHECK_EQ(number, 77);
  wr_journal_free(journal);
  options.on_full = WR_JOURNAL_SERVE_UNBILLED;
  CHECK_OK(wr_journal_open(text(directory), &options, &journal, NULL));
  CHECK_OK(wr_journal_begin(journal, &event, &number, &err));
  CHECK_EQ(number, 0);
  CHECK_OK(wr_journal_end(journal, number, &event, &err));
  CHECK_OK(wr_journal_read_statistics(journal, &s, NULL));
  CHECK_EQ(s.unbilled, 1);
  CHECK_EQ(s.full, 1);
  wr_journal_free(journal);
  remove_directory();
}

static wr_journal_reader* shared_reader;
static wr_status json_line(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_journal_reader_json_line(shared_reader, buf, cap, needed, err);
}
static wr_status focus_rows(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_journal_reader_focus_rows(shared_reader, buf, cap, needed, err);
}
TEST(RecordsAreExportedAsJsonLinesAndFocusRows) {
  wr_journal* journal;
  wr_journal_record record = WR_JOURNAL_RECORD_INIT;
  const wr_usage_report used = report_of(100, 60, 20);
  const wr_cost cost = cost_of(50);
  const wr_usage_event event = event_of("abc", &used, &cost);
  uint64_t number = 0;
  uint32_t found = 0;
  size_t size = 0;
  char* got;
  new_directory();
  journal = open_journal();
  CHECK_OK(wr_journal_begin(journal, &event, &number, NULL));
  CHECK_OK(wr_journal_end(journal, number, &event, NULL));
  shared_reader = open_reader();
  CHECK_STATUS(wr_journal_reader_json_line(shared_reader, NULL, 0, &size, NULL), WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_journal_reader_next(shared_reader, 0, &record, &found, NULL));
  CHECK_EQ(found, 1);
  got = check_two_calls(json_line, &size);
  CHECK(strstr(got, "\"gen_ai.usage.input_tokens\":100") != NULL);
  CHECK(strchr(got, '\n') == got + strlen(got) - 1);
  free(got);
  got = check_two_calls(focus_rows, &size);
  CHECK(strchr(got, '\n') != NULL && strchr(strchr(got, '\n') + 1, '\n') == got + strlen(got) - 1); /* two rows */
  free(got);
  CHECK(strstr(wr_focus_header(), "ChargePeriodStart") == wr_focus_header());
  CHECK_OK(wr_journal_reader_next(shared_reader, 0, &record, &found, NULL));
  CHECK_STATUS(wr_journal_reader_focus_rows(shared_reader, NULL, 0, &size, NULL), WR_STATUS_NOT_FOUND);
  wr_journal_reader_free(shared_reader);
  wr_journal_free(journal);
  remove_directory();
}

TEST(AJournalRefusesWhatItCannotTake) {
  const wr_journal_cursor all = WR_JOURNAL_CURSOR_INIT;
  wr_journal_options options = WR_JOURNAL_OPTIONS_INIT;
  wr_usage_report report = report_of(1, 0, 1);
  wr_cost cost = cost_of(1);
  wr_usage_event event = event_of("abc", &report, &cost);
  wr_journal* journal;
  wr_journal* second = NULL;
  wr_journal_reader* reader = NULL;
  wr_error err = WR_ERROR_INIT;
  uint64_t number = 77;
  char* large = malloc(70000);
  CHECK(large != NULL);
  memset(large, 'k', 70000);
  new_directory();
  journal = open_journal();
  CHECK_STATUS(wr_journal_open(text(directory), NULL, &second, &err), WR_STATUS_ALREADY_EXISTS);
  CHECK_STATUS(wr_journal_open(bad_text(), NULL, &second, &err), WR_STATUS_INVALID_ARGUMENT);
  options.sync = 3;
  CHECK_STATUS(wr_journal_open(text(directory), &options, &second, &err), WR_STATUS_OUT_OF_RANGE);
  options.sync = 0;
  options.abi_version = 5;
  CHECK_STATUS(wr_journal_open(text(directory), &options, &second, &err), WR_STATUS_ABI_MISMATCH);
  CHECK_STATUS(wr_journal_begin(journal, NULL, &number, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_journal_begin(journal, &event, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  cost.line_count = 17;
  CHECK_STATUS(wr_journal_begin(journal, &event, &number, &err), WR_STATUS_OUT_OF_RANGE);
  cost.line_count = 1;
  cost.lines[0].meter = 16;
  CHECK_STATUS(wr_journal_begin(journal, &event, &number, &err), WR_STATUS_OUT_OF_RANGE);
  cost.line_count = 0;
  cost.source = 4;
  CHECK_STATUS(wr_journal_begin(journal, &event, &number, &err), WR_STATUS_OUT_OF_RANGE);
  event.cost = NULL;
  report.source = 4;
  CHECK_STATUS(wr_journal_begin(journal, &event, &number, &err), WR_STATUS_OUT_OF_RANGE);
  event.report = NULL;
  event.key_id = bad_text();
  CHECK_STATUS(wr_journal_begin(journal, &event, &number, &err), WR_STATUS_INVALID_ARGUMENT);
  event.key_id.data = large;
  event.key_id.size = 70000;
  CHECK_STATUS(wr_journal_begin(journal, &event, &number, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(number, 77);
  CHECK_STATUS(wr_journal_end(journal, 12345, &event, &err), WR_STATUS_STALE);
  CHECK_STATUS(wr_journal_sync(NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_journal_acknowledge(NULL, all, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_journal_acknowledged(journal, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_journal_reader_open(text("no/such/folder"), all, &reader, &err), WR_STATUS_IO);
  CHECK_STATUS(wr_journal_reader_cursor(NULL, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(reader == NULL && second == NULL);
  wr_journal_free(journal);
  wr_journal_free(NULL);
  wr_journal_reader_free(NULL);
  remove_directory();
  free(large);
}

static wr_journal* shared_journal;
static wr_status try_journal_options(const void* options) {
  wr_journal* journal = NULL;
  const wr_status status = wr_journal_open(text(directory), options, &journal, NULL);
  wr_journal_free(journal);
  return status;
}
static wr_status try_event(const void* event) {
  uint64_t number = 0;
  return wr_journal_begin(shared_journal, event, &number, NULL);
}
static wr_status try_cost(const void* cost) {
  const wr_usage_event event = event_of("abc", NULL, cost);
  return try_event(&event);
}
static wr_status fill_record(void* out) {
  uint32_t found = 0;
  wr_journal_reader* reader = open_reader();
  const wr_status status = wr_journal_reader_next(reader, 1, out, &found, NULL);
  wr_journal_reader_free(reader);
  return status;
}
static wr_status fill_journal_statistics(void* out) { return wr_journal_read_statistics(shared_journal, out, NULL); }
TEST(StructsOfJournalsMayBeOfOtherSizes) {
  const wr_journal_options options = WR_JOURNAL_OPTIONS_INIT;
  const wr_usage_event event = event_of("abc", NULL, NULL);
  const wr_cost cost = cost_of(1);
  const wr_journal_record record = WR_JOURNAL_RECORD_INIT;
  const wr_journal_statistics statistics = WR_JOURNAL_STATISTICS_INIT;
  new_directory();
  check_input_sizes(&options, sizeof options, offsetof(wr_journal_options, reserved), WR_STATUS_OK,
                    try_journal_options);
  shared_journal = open_journal();
  check_input_sizes(&event, sizeof event, offsetof(wr_usage_event, reserved), WR_STATUS_OK, try_event);
  check_input_sizes(&cost, sizeof cost, offsetof(wr_cost, reserved), WR_STATUS_OK, try_cost);
  check_output_sizes(&record, sizeof record, 1, fill_record);
  check_output_sizes(&statistics, sizeof statistics, 1, fill_journal_statistics);
  wr_journal_free(shared_journal);
  remove_directory();
}

/* ---- 10g */

static wr_ledger* new_ledger(void) {
  wr_ledger* ledger = NULL;
  CHECK_OK(wr_ledger_new(NULL, &ledger, NULL));
  return ledger;
}
static void add(wr_ledger* ledger, const char* key, int64_t cached, int64_t picos, int64_t end_wall_ns) {
  const wr_usage_report used = report_of(100, cached, 20);
  const wr_cost cost = cost_of(picos);
  wr_usage_event event = event_of(key, &used, picos == WR_UNKNOWN ? NULL : &cost);
  event.end_wall_ns = end_wall_ns;
  CHECK_OK(wr_ledger_add(ledger, &event, 0, NULL));
}

TEST(EveryEventIsInOneRowAndTheSumsAreExact) {
  wr_ledger* ledger = new_ledger();
  wr_ledger_rows* rows = NULL;
  wr_ledger_row row = WR_LEDGER_ROW_INIT;
  const int64_t hour = 3600 * kSecond;
  size_t dropped = 7;
  add(ledger, "a", 60, 999999999999, kWall);
  add(ledger, "a", 0, 2, kWall);
  add(ledger, "a", WR_UNKNOWN, WR_UNKNOWN, kWall + hour);
  add(ledger, "b", 10, 5, kWall);
  CHECK_EQ(wr_ledger_size(ledger), 3);
  CHECK_EQ(wr_ledger_overflowed(ledger), 0);
  CHECK_OK(wr_ledger_snapshot(ledger, WR_LEDGER_BY_KEY, &rows, NULL));
  CHECK_EQ(wr_ledger_rows_count(rows), 2);
  CHECK_OK(wr_ledger_rows_read(rows, 0, &row, NULL));
  CHECK(equals(row.key_id, "a") && equals(row.team_id, "") && equals(row.model, ""));
  CHECK_EQ(row.window_start_wall_ns, 0);
  CHECK_EQ(row.attempts, 3);
  CHECK_EQ(row.incomplete, 0);
  CHECK_EQ(row.errors, 0);
  CHECK_EQ(row.unknown_usage, 0);
  CHECK_EQ(row.unknown_cost, 1);
  CHECK_EQ(row.input_tokens, 300);
  CHECK_EQ(row.cached_input_tokens, 60);
  CHECK_EQ(row.cache_reported_input_tokens, 200);
  CHECK_EQ(row.output_tokens, 60);
  CHECK_EQ(row.cost_usd, 1);
  CHECK_EQ(row.cost_picos, 1);
  CHECK_STATUS(wr_ledger_rows_read(rows, 2, &row, NULL), WR_STATUS_OUT_OF_RANGE);
  wr_ledger_rows_free(rows);
  CHECK_OK(wr_ledger_snapshot(ledger, WR_LEDGER_BY_ALL, &rows, NULL));
  CHECK_EQ(wr_ledger_rows_count(rows), 3);
  CHECK_OK(wr_ledger_rows_read(rows, 0, &row, NULL));
  CHECK(equals(row.team_id, "blue") && equals(row.model, "m-large-1") && equals(row.replica_id, "gpu-0"));
  CHECK(equals(row.class_id, "gold"));
  CHECK_EQ(row.window_start_wall_ns, kWall / hour * hour);
  wr_ledger_rows_free(rows);
  CHECK_OK(wr_ledger_total(ledger, &row, NULL));
  CHECK(equals(row.key_id, ""));
  CHECK_EQ(row.attempts, 4);
  CHECK_EQ(row.cost_picos, 6);
  CHECK_OK(wr_ledger_forget_before(ledger, kWall / hour * hour + hour, &dropped, NULL));
  CHECK_EQ(dropped, 2);
  CHECK_EQ(wr_ledger_size(ledger), 1);
  wr_ledger_free(ledger);
}

TEST(ALedgerReadsAJournalAlsoUnderOtherPrices) {
  const char* prices =
      "{\"m-large-1\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":1e-6,\"cache_read_input_token_cost\":0}"
      "}";
  wr_journal* journal;
  wr_price_table* table = NULL;
  wr_ledger_options options = WR_LEDGER_OPTIONS_INIT;
  wr_ledger* ledger = NULL;
  wr_ledger_row row = WR_LEDGER_ROW_INIT;
  const wr_usage_report used = report_of(100, 60, 20);
  const wr_cost cost = cost_of(50);
  const wr_usage_event event = event_of("abc", &used, &cost);
  uint64_t number = 0, events = 0;
  int round;
  new_directory();
  journal = open_journal();
  CHECK_OK(wr_journal_begin(journal, &event, &number, NULL));
  CHECK_OK(wr_journal_end(journal, number, &event, NULL));
  CHECK_OK(wr_journal_begin(journal, &event, &number, NULL)); /* open: not there yet */
  CHECK_OK(wr_price_table_from_json(text(prices), &table, NULL));
  options.prices = table;
  for (round = 0; round < 2; ++round) {
    options.reprice = (uint32_t)round;
    shared_reader = open_reader();
    CHECK_OK(wr_ledger_new(&options, &ledger, NULL));
    CHECK_OK(wr_ledger_read(ledger, shared_reader, &events, NULL));
    CHECK_EQ(events, 1);
    CHECK_OK(wr_ledger_total(ledger, &row, NULL));
    CHECK_EQ(row.attempts, 1);
    CHECK_EQ(row.cost_picos, round == 0 ? 50 : 60 * 1000000);
    CHECK_EQ(row.saved_picos, 60 * 1000000);
    wr_ledger_free(ledger);
    wr_journal_reader_free(shared_reader);
  }
  wr_price_table_free(table);
  wr_journal_free(journal);
  remove_directory();
}

TEST(ALedgerRefusesWhatItCannotTake) {
  wr_ledger_options options = WR_LEDGER_OPTIONS_INIT;
  wr_ledger* ledger = new_ledger();
  wr_ledger* none = NULL;
  wr_ledger_rows* rows = NULL;
  wr_ledger_row row = WR_LEDGER_ROW_INIT;
  wr_error err = WR_ERROR_INIT;
  options.by = 64;
  CHECK_STATUS(wr_ledger_new(&options, &none, &err), WR_STATUS_OUT_OF_RANGE);
  options.by = WR_LEDGER_BY_KEY;
  options.window_ns = 0;
  CHECK_STATUS(wr_ledger_new(&options, &none, &err), WR_STATUS_OUT_OF_RANGE);
  options.window_ns = 1;
  options.reprice = 1;
  CHECK_STATUS(wr_ledger_new(&options, &none, &err), WR_STATUS_INVALID_ARGUMENT);
  options.reprice = 0;
  options.abi_version = 2;
  CHECK_STATUS(wr_ledger_new(&options, &none, &err), WR_STATUS_ABI_MISMATCH);
  CHECK_STATUS(wr_ledger_add(ledger, NULL, 0, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ledger_read(ledger, NULL, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ledger_snapshot(ledger, 64, &rows, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_ledger_total(NULL, &row, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ledger_forget_before(NULL, 0, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(wr_ledger_size(NULL) + wr_ledger_overflowed(NULL) + wr_ledger_rows_count(NULL), 0);
  CHECK(none == NULL && rows == NULL);
  wr_ledger_rows_free(NULL);
  wr_ledger_free(ledger);
  wr_ledger_free(NULL);
}

static wr_ledger* shared_ledger;
static wr_status try_ledger_options(const void* options) {
  wr_ledger* ledger = NULL;
  const wr_status status = wr_ledger_new(options, &ledger, NULL);
  wr_ledger_free(ledger);
  return status;
}
static wr_status fill_row(void* out) { return wr_ledger_total(shared_ledger, out, NULL); }
TEST(StructsOfLedgersMayBeOfOtherSizes) {
  const wr_ledger_options options = WR_LEDGER_OPTIONS_INIT;
  const wr_ledger_row row = WR_LEDGER_ROW_INIT;
  check_input_sizes(&options, sizeof options, offsetof(wr_ledger_options, reserved), WR_STATUS_OK, try_ledger_options);
  shared_ledger = new_ledger();
  check_output_sizes(&row, sizeof row, 1, fill_row);
  wr_ledger_free(shared_ledger);
}

TESTS(CASE(WhatWasWrittenIsReadBackWithEveryMember), CASE(WhatNeverEndedIsHandedOverAsIncompleteAndWhatNeverLeftIsNot),
      CASE(AFullDiskRefusesOrServesUnbilledAsPolicySays), CASE(RecordsAreExportedAsJsonLinesAndFocusRows),
      CASE(AJournalRefusesWhatItCannotTake), CASE(StructsOfJournalsMayBeOfOtherSizes),
      CASE(EveryEventIsInOneRowAndTheSumsAreExact), CASE(ALedgerReadsAJournalAlsoUnderOtherPrices),
      CASE(ALedgerRefusesWhatItCannotTake), CASE(StructsOfLedgersMayBeOfOtherSizes))
