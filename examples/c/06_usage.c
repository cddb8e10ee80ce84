/* What a proxy does around one request so that its books are right: estimate and reserve, write the beginning down, meter the answer on its way
   through, price it, settle, write the end down; then who used how much, read from the journal.
   usage: 06_usage [directory]    of the journal; run twice, the books go on */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <warmroute.h>

static const char kPrices[] =
    "{\"m-large\":{\"input_cost_per_token\":1e-6,\"output_cost_per_token\":4e-6,\"cache_read_input_token_cost\":1e-7}}";
static const char kBody[] =
    "{\"model\":\"m-large\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}";
/* As the model server streams it; its last event but one is there because it was asked for. */
static const char* const kAnswer[] = {
    "data: {\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n",
    "data: {\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"}}]}\n\n",
    "data: "
    "{\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: "
    "{\"id\":\"c-1\",\"model\":\"m-large\",\"choices\":[],\"usage\":{\"prompt_tokens\":1200,\"completion_tokens\":2,"
    "\"total_tokens\":1202,\"prompt_tokens_details\":{\"cached_tokens\":1024}}}\n\n",
    "data: [DONE]\n\n"};
enum { kPieces = sizeof kAnswer / sizeof kAnswer[0] };

typedef struct books {
  wr_price_table* prices;
  wr_limits* limits;
  wr_journal* journal;
  wr_meter* meter;
  wr_usage_chunk_filter* filter;
  wr_token_estimator* estimator;
} books;

static wr_str str(const char* text) {
  wr_str s;
  s.data = text;
  s.size = strlen(text);
  return s;
}
static int64_t clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static int64_t steady_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static int64_t wall_ns(void) { return clock_ns(CLOCK_REALTIME); }

/* Every key has 2,500 input tokens a minute; cached ones count a tenth. */
static wr_status open_books(books* b, const char* directory, wr_error* err) {
  wr_limit_spec tpm = WR_LIMIT_SPEC_INIT;
  wr_status status;
  tpm.name = str("tpm");
  tpm.unit = WR_LIMIT_INPUT_TOKENS;
  tpm.amount = 2500;
  tpm.cached_weight_permille = 100;
  status = wr_price_table_from_json(str(kPrices), &b->prices, err);
  if (status == WR_STATUS_OK) status = wr_limits_new(NULL, &b->limits, err);
  if (status == WR_STATUS_OK) status = wr_limits_set_default(b->limits, str("key"), &tpm, 1, sizeof tpm, err);
  if (status == WR_STATUS_OK) status = wr_journal_open(str(directory), NULL, &b->journal, err);
  if (status == WR_STATUS_OK) status = wr_meter_new(NULL, &b->meter, err);
  if (status == WR_STATUS_OK) status = wr_usage_chunk_filter_new(&b->filter, err);
  if (status == WR_STATUS_OK) status = wr_token_estimator_new(&b->estimator, err);
  return status;
}
static void close_books(books* b) {
  wr_token_estimator_free(b->estimator);
  wr_usage_chunk_filter_free(b->filter);
  wr_meter_free(b->meter);
  wr_journal_free(b->journal);
  wr_limits_free(b->limits);
  wr_price_table_free(b->prices);
}

/* The answer passes: metered, and without the chunk that the client did not ask for. */
static wr_status pass_on(books* b, int pieces, int hide, wr_usage_report* used, wr_error* err) {
  wr_status status = wr_meter_reset(b->meter, NULL, err);
  int i;
  wr_usage_chunk_filter_reset(b->filter);
  for (i = 0; i < pieces && status == WR_STATUS_OK; ++i) {
    wr_str out = str(kAnswer[i]);
    uint32_t first = 0;
    status = wr_meter_feed(b->meter, out, &first);
    if (first) printf("  first token; a router is told: wr_router_first_token\n");
    if (status == WR_STATUS_OK && hide) status = wr_usage_chunk_filter_feed(b->filter, out, &out, err);
    printf("  to the client: %u bytes\n", (unsigned)out.size);
  }
  if (status == WR_STATUS_OK) status = wr_meter_finish(b->meter);
  return status == WR_STATUS_OK ? wr_meter_report(b->meter, used, err) : status;
}

static wr_status print_denial(const wr_limit_decision* d, wr_error* err) {
  char headers[1024];
  size_t needed = 0;
  const wr_status status = wr_limit_headers(d, headers, sizeof headers, &needed, err);
  if (status == WR_STATUS_OK) printf("  HTTP %u\n%s", (unsigned)wr_limit_status(d->outcome, 402), headers);
  return status;
}

/* `pieces` of the answer come; fewer than all: the server went away. */
static wr_status serve(books* b, const char* key, int64_t prompt_bytes, int pieces, wr_error* err) {
  wr_usage_ask ask = WR_USAGE_ASK_INIT;
  wr_estimate_options asked = WR_ESTIMATE_OPTIONS_INIT;
  wr_token_estimate estimate = WR_TOKEN_ESTIMATE_INIT;
  wr_limit_use use = WR_LIMIT_USE_INIT;
  wr_limit_decision decision = WR_LIMIT_DECISION_INIT;
  wr_usage_event event = WR_USAGE_EVENT_INIT;
  wr_usage_report report = WR_USAGE_REPORT_INIT;
  wr_cost cost = WR_COST_INIT;
  wr_scope scope = WR_NO_SCOPE;
  uint64_t number = 0;
  wr_status status;

  /* before: what may be used */
  asked.prompt_bytes = prompt_bytes;
  status =
      wr_ask_for_usage(str(kBody), &ask, err); /* the change is made where the body is sent: wr_ask_for_usage_body */
  if (status == WR_STATUS_OK) status = wr_token_estimator_estimate(b->estimator, &asked, &estimate, err);
  if (status == WR_STATUS_OK) status = wr_limits_scope(b->limits, str("key"), str(key), &scope, err);
  if (status != WR_STATUS_OK) return status;
  printf("%s: estimated %u input tokens\n", key, (unsigned)estimate.input_tokens);
  use.input_tokens = estimate.input_tokens;
  use.output_tokens = estimate.output_tokens;
  status = wr_limits_reserve(b->limits, &scope, 1, &use, steady_ns(), wall_ns(), &decision, err);
  if (status != WR_STATUS_OK) return status;
  if (decision.outcome != WR_LIMIT_ALLOWED) return print_denial(&decision, err);
  report.input_tokens = estimate.input_tokens;
  report.output_tokens = estimate.output_tokens;
  report.source = WR_USAGE_SOURCE_ESTIMATE;
  event.operation_id = str("op-1");
  event.key_id = str(key);
  event.operation = str("chat");
  event.request_model = str("m-large");
  event.start_wall_ns = wall_ns();
  event.report = &report;
  status = wr_journal_begin(b->journal, &event, &number, err);
  if (status != WR_STATUS_OK) { /* it cannot be billed: it does not leave */
    wr_limits_release(b->limits, decision.ticket, steady_ns(), wall_ns());
    return status;
  }

  /* on its way, and after: what was used */
  status = pass_on(b, pieces, (int)ask.change, &report, err);
  if (status == WR_STATUS_OK) status = wr_estimate_missing(&report, &estimate, NULL, err);
  if (status == WR_STATUS_OK) status = wr_price_table_cost(b->prices, &report, str(""), NULL, &cost, err);
  if (status != WR_STATUS_OK) return status; /* the lease ends, the journal says incomplete: nothing is lost */
  if (report.complete) wr_token_estimator_learn(b->estimator, prompt_bytes, report.input_tokens);
  use.input_tokens = report.input_tokens;
  use.cached_input_tokens = report.cached_input_tokens;
  use.output_tokens = report.output_tokens;
  use.cost_picos = cost.picos;
  status = wr_limits_settle(b->limits, decision.ticket, &use, steady_ns(), wall_ns());
  event.end_wall_ns = wall_ns();
  event.cost = &cost;
  if (status == WR_STATUS_OK) status = wr_journal_end(b->journal, number, &event, err);
  printf("  %s: %" PRId64 " input tokens, %" PRId64 " output, ", report.complete ? "complete" : "cut off",
         report.input_tokens, report.output_tokens);
  if (report.cached_input_tokens != WR_UNKNOWN) printf("%" PRId64 " cached, ", report.cached_input_tokens);
  printf("%.6f USD\n", (double)cost.picos * 1e-12);
  return status;
}

static wr_status print_books(const char* directory, wr_error* err) {
  const wr_journal_cursor all = WR_JOURNAL_CURSOR_INIT;
  wr_journal_reader* reader = NULL;
  wr_ledger* ledger = NULL;
  wr_ledger_rows* rows = NULL;
  wr_ledger_row row = WR_LEDGER_ROW_INIT;
  size_t i;
  wr_status status = wr_journal_reader_open(str(directory), all, &reader, err);
  if (status == WR_STATUS_OK) status = wr_ledger_new(NULL, &ledger, err);
  if (status == WR_STATUS_OK) status = wr_ledger_read(ledger, reader, NULL, err);
  if (status == WR_STATUS_OK) status = wr_ledger_snapshot(ledger, WR_LEDGER_BY_KEY | WR_LEDGER_BY_MODEL, &rows, err);
  printf("%-8s %-8s %9s %9s %9s %9s %12s\n", "key", "model", "requests", "cut off", "input", "cached", "USD");
  for (i = 0; status == WR_STATUS_OK && i < wr_ledger_rows_count(rows); ++i) {
    status = wr_ledger_rows_read(rows, i, &row, err);
    printf("%-8.*s %-8.*s %9" PRId64 " %9" PRId64 " %9" PRId64 " %9" PRId64 " %12.6f\n", (int)row.key_id.size,
           row.key_id.data, (int)row.model.size, row.model.data, row.attempts, row.incomplete, row.input_tokens,
           row.cached_input_tokens, (double)row.cost_usd + (double)row.cost_picos * 1e-12);
  }
  wr_ledger_rows_free(rows);
  wr_ledger_free(ledger);
  wr_journal_reader_free(reader);
  return status;
}

int main(int argc, char** argv) {
  const char* directory = argc > 1 ? argv[1] : "06_usage_journal";
  wr_error err = WR_ERROR_INIT;
  books b;
  wr_status status;
  memset(&b, 0, sizeof b);
  status = open_books(&b, directory, &err);
  if (status == WR_STATUS_OK) status = serve(&b, "ada", 4800, kPieces, &err);
  if (status == WR_STATUS_OK) status = serve(&b, "ada", 4800, 2, &err);
  if (status == WR_STATUS_OK) status = serve(&b, "ada", 4800, kPieces, &err); /* too much within a minute */
  if (status == WR_STATUS_OK) status = serve(&b, "bob", 4800, kPieces, &err);
  if (status == WR_STATUS_OK) status = print_books(directory, &err);
  if (status != WR_STATUS_OK) fprintf(stderr, "%s: %s\n", wr_status_text(status), err.message);
  close_books(&b);
  return status != WR_STATUS_OK;
}
