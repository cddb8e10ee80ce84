/* The operations of generate_usage.hpp through the C interface. C99, for run_c.c alone. */
#ifndef WARMROUTE_TESTS_SURFACES_USAGE_C_H
#define WARMROUTE_TESTS_SURFACES_USAGE_C_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warmroute.h>

#include "line.h"

enum { USAGE_MAX_SCOPES = 64, USAGE_MAX_SPECS = 16, USAGE_TEXT_BYTES = 4096 };

static wr_meter* usage_meter;
static wr_price_table* usage_prices;
static wr_limits* usage_limits;
static wr_scope usage_scopes[USAGE_MAX_SCOPES];
static size_t usage_scope_count;
static line_u64s usage_tickets;

static wr_str usage_str(const char* text) {
  wr_str s;
  s.data = text;
  s.size = strlen(text);
  return s;
}
static void usage_word(wr_str s) {
  if (s.size == 0) printf(" -");
  else printf(" %.*s", (int)s.size, s.data);
}

static void usage_begin(void) {
  wr_limits_options options = WR_LIMITS_OPTIONS_INIT;
  options.lease_ns = 5000000000;
  if (wr_meter_new(NULL, &usage_meter, NULL) != WR_STATUS_OK ||
      wr_price_table_new(&usage_prices, NULL) != WR_STATUS_OK ||
      wr_limits_new(&options, &usage_limits, NULL) != WR_STATUS_OK) {
    line_die("cannot begin");
  }
}
static void usage_end(void) {
  wr_meter_free(usage_meter);
  wr_price_table_free(usage_prices);
  wr_limits_free(usage_limits);
  free(usage_tickets.data);
}

static wr_usage_report usage_report(void) {
  wr_usage_report r = WR_USAGE_REPORT_INIT;
  if (wr_meter_report(usage_meter, &r, NULL) != WR_STATUS_OK) line_die("no report");
  return r;
}

static void usage_print_counts(const wr_usage_report* r) {
  const int64_t* at = &r->input_tokens;
  for (; at <= &r->reported_cost_picos; ++at) printf("%s%" PRId64, at == &r->input_tokens ? " " : ",", *at);
}

static void usage_op_meter(char* line) {
  wr_meter_options options = WR_METER_OPTIONS_INIT;
  wr_usage_report r;
  size_t cut, size, i;
  const char* profile;
  const char* bytes;
  options.api = (uint32_t)line_int(&line);
  profile = line_field(&line);
  options.input_includes_cache = (uint32_t)(profile[0] - '0');
  options.output_includes_reasoning = (uint32_t)(profile[1] - '0');
  options.ignore_total = profile[2] == '1';
  options.trust_requested_tier = profile[3] == '1';
  options.requested_tier = usage_str("flex");
  cut = (size_t)line_int(&line);
  bytes = line_bytes(&line, &size);
  if (cut == 0) cut = size;
  if (wr_meter_reset(usage_meter, &options, NULL) != WR_STATUS_OK) line_die("no reset");
  for (i = 0; i < size; i += cut) {
    wr_str piece;
    piece.data = bytes + i;
    piece.size = size - i < cut ? size - i : cut;
    if (wr_meter_feed(usage_meter, piece, NULL) != WR_STATUS_OK) line_die("no feed");
  }
  if (wr_meter_finish(usage_meter) != WR_STATUS_OK) line_die("no finish");
  r = usage_report();
  printf("meter %u %u %u %u %" PRId64 " %" PRId64 " %u", (unsigned)r.complete, (unsigned)r.error, (unsigned)r.source,
         (unsigned)r.anomalies, r.output_events, wr_meter_first_token_end(usage_meter),
         (unsigned)wr_meter_is_stream(usage_meter));
  usage_print_counts(&r);
  usage_word(r.finish_reason);
  usage_word(r.service_tier);
  usage_word(r.model);
  usage_word(r.response_id);
  for (i = 0; i < r.other_model_count; ++i) {
    const wr_other_model_usage* o = &r.other_models[i];
    printf("%s%.*s:%" PRId64 ":%" PRId64 ":%" PRId64 ":%" PRId64, i == 0 ? " " : ",", (int)o->model.size, o->model.data,
           o->input_tokens, o->cached_input_tokens, o->cache_write_input_tokens, o->output_tokens);
  }
  puts(r.other_model_count == 0 ? " -" : "");
}

static void usage_op_prices(char* json) {
  wr_price_table* read = NULL;
  char version[64];
  size_t needed = 0;
  const wr_status status = wr_price_table_from_json(usage_str(json), &read, NULL);
  if (status != WR_STATUS_OK) {
    printf("prices error %d\n", (int)status);
    return;
  }
  wr_price_table_free(usage_prices);
  usage_prices = read;
  if (wr_price_table_version(usage_prices, version, sizeof version, &needed, NULL) != WR_STATUS_OK)
    line_die("no version");
  printf("prices %zu %zu %s\n", wr_price_table_size(usage_prices), wr_price_table_skipped_rates(usage_prices), version);
}

static void usage_op_cost(char* line) {
  wr_price_options options = WR_PRICE_OPTIONS_INIT;
  wr_cost cost = WR_COST_INIT;
  const wr_usage_report report = usage_report();
  const wr_str model = usage_str(line_field(&line));
  const char* flags;
  int64_t tier;
  uint32_t i;
  options.provider = usage_str(line_field(&line));
  tier = line_int(&line);
  if (tier >= 0) options.tier = (uint32_t)tier;
  flags = line_field(&line);
  options.prefer_reported_cost = flags[0] == '1';
  options.off_peak = flags[1] == '1';
  if (wr_price_table_cost(usage_prices, &report, model, &options, &cost, NULL) != WR_STATUS_OK) line_die("no cost");
  printf("cost %" PRId64 " %u", cost.picos, (unsigned)cost.source);
  usage_word(cost.price_key);
  printf(" %" PRId64 " %u %u", cost.threshold_tokens, (unsigned)cost.tier_fell_back, (unsigned)cost.partial);
  for (i = 0; i < cost.line_count; ++i) {
    const wr_cost_line* l = &cost.lines[i];
    printf("%s%u:%" PRId64 ":%" PRId64 ":%" PRId64, i == 0 ? " " : ",", (unsigned)l->meter, l->quantity, l->rate_femtos,
           l->cost_picos);
  }
  puts(cost.line_count == 0 ? " -" : "");
}

static int64_t usage_place(wr_scope scope) {
  size_t i;
  for (i = 0; i < usage_scope_count; ++i) {
    if (usage_scopes[i] == scope) return (int64_t)i;
  }
  return -1;
}
static wr_scope usage_scope_at(int64_t n) {
  if (n < 0 || (size_t)n >= usage_scope_count) line_die("no such scope");
  return usage_scopes[n];
}
static void usage_op_scope(char* line) {
  const wr_str dimension = usage_str(line_field(&line));
  wr_scope scope = WR_NO_SCOPE;
  const wr_status status = wr_limits_scope(usage_limits, dimension, usage_str(line_field(&line)), &scope, NULL);
  if (status == WR_STATUS_OK && usage_place(scope) < 0) {
    if (usage_scope_count == USAGE_MAX_SCOPES) line_die("too many scopes");
    usage_scopes[usage_scope_count++] = scope;
  }
  printf("scope %d\n", (int)status);
}

static size_t usage_specs(char* text, wr_limit_spec* out) {
  size_t count = 0;
  char* one;
  for (one = strtok(text, ","); one != NULL; one = strtok(NULL, ",")) {
    const wr_limit_spec init = WR_LIMIT_SPEC_INIT;
    wr_limit_spec* s = &out[count];
    char* c;
    if (++count > USAGE_MAX_SPECS) line_die("too many limits");
    for (c = one; *c != '\0'; ++c) {
      if (*c == ':') *c = ' ';
    }
    *s = init;
    s->name = usage_str(line_field(&one));
    s->kind = (uint32_t)line_int(&one);
    s->unit = (uint32_t)line_int(&one);
    s->amount = line_int(&one);
    s->period_ns = line_int(&one);
    s->burst = line_int(&one);
    s->calendar_unit = (uint32_t)line_int(&one);
    s->calendar_count = (uint32_t)line_int(&one);
    s->cached_weight_permille = (uint32_t)line_int(&one);
    s->shadow = (uint32_t)line_int(&one);
    s->hard_stop = (uint32_t)line_int(&one);
  }
  return count;
}
static void usage_op_limits(char* line) {
  wr_limit_spec specs[USAGE_MAX_SPECS];
  const wr_scope scope = usage_scope_at(line_int(&line));
  const size_t count = usage_specs(line, specs);
  printf("limits %d\n", (int)wr_limits_set(usage_limits, scope, specs, count, sizeof specs[0], NULL));
}
static void usage_op_default(char* line) {
  wr_limit_spec specs[USAGE_MAX_SPECS];
  const wr_str dimension = usage_str(line_field(&line));
  const size_t count = usage_specs(line, specs);
  printf("default %d\n", (int)wr_limits_set_default(usage_limits, dimension, specs, count, sizeof specs[0], NULL));
}

static wr_limit_use usage_use(char** line) {
  wr_limit_use use = WR_LIMIT_USE_INIT;
  int64_t counts[4];
  if (line_counts(line, counts, 4) != 4) line_die("not four counts");
  use.input_tokens = counts[0];
  use.cached_input_tokens = counts[1];
  use.output_tokens = counts[2];
  use.cost_picos = counts[3];
  return use;
}

/* "name: value\r\n" lines as "name:value,..." */
static void usage_print_headers(char* text) {
  char* one;
  int any = 0;
  for (one = strtok(text, "\r\n"); one != NULL; one = strtok(NULL, "\r\n")) {
    char* value = strstr(one, ": ");
    if (value == NULL) line_die("not a header");
    *value = '\0';
    printf("%s%s:%s", any ? "," : " ", one, value + 2);
    any = 1;
  }
  puts(any ? "" : " -");
}

static void usage_op_reserve(char* line) {
  wr_limit_decision d = WR_LIMIT_DECISION_INIT;
  wr_limit_use use;
  int64_t numbers[16], steady;
  wr_scope scopes[16];
  char headers[USAGE_TEXT_BYTES];
  size_t needed, i;
  const size_t count = line_counts(&line, numbers, 16);
  for (i = 0; i < count; ++i) scopes[i] = usage_scope_at(numbers[i]);
  use = usage_use(&line);
  steady = line_int(&line);
  if (wr_limits_reserve(usage_limits, scopes, count, &use, steady, line_int(&line), &d, NULL) != WR_STATUS_OK) {
    line_die("no decision");
  }
  line_push_u64(&usage_tickets, d.ticket);
  printf("reserve %u %" PRId64 " %u %" PRId64 " %" PRId64 " %u %" PRId64 " %u", (unsigned)d.outcome,
         usage_place(d.scope), (unsigned)d.limit, d.retry_after_ns, d.reset_ns, (unsigned)d.shadow_denied,
         usage_place(d.shadow_scope), (unsigned)d.shadow_limit);
  for (i = 0; i <= WR_LIMIT_COST_NANOS; ++i) {
    printf("%s%" PRId64 ":%" PRId64 ":%" PRId64, i == 0 ? " " : ",", d.left[i].amount, d.left[i].remaining,
           d.left[i].reset_ns);
  }
  if (wr_limit_headers(&d, headers, sizeof headers, &needed, NULL) != WR_STATUS_OK) line_die("no headers");
  usage_print_headers(headers);
}

static void usage_op_change(const char* op, char* line) {
  const int64_t k = line_int(&line);
  const int with_use = strcmp(op, "progress") == 0 || strcmp(op, "settle") == 0;
  wr_limit_use use = WR_LIMIT_USE_INIT;
  wr_limit_ticket ticket;
  int64_t steady;
  int done;
  if (k < 0 || (size_t)k >= usage_tickets.size) line_die("no such reservation");
  ticket = usage_tickets.data[k];
  if (with_use) use = usage_use(&line);
  steady = line_int(&line);
  if (strcmp(op, "progress") == 0) {
    uint32_t stop = 0;
    done = (int)wr_limits_progress(usage_limits, ticket, &use, steady, line_int(&line), &stop);
    done = done == WR_STATUS_STALE ? 2 : (int)stop;
  } else if (with_use) {
    done = (int)wr_limits_settle(usage_limits, ticket, &use, steady, line_int(&line));
  } else if (strcmp(op, "release") == 0) {
    done = (int)wr_limits_release(usage_limits, ticket, steady, line_int(&line));
  } else {
    done = (int)wr_limits_extend(usage_limits, ticket, steady);
  }
  printf("%s %d\n", op, done);
}

static void usage_op_expire(char* line) {
  const int64_t steady = line_int(&line);
  size_t ended = 0;
  if (wr_limits_advance(usage_limits, SIZE_MAX, steady, line_int(&line), &ended, NULL) != WR_STATUS_OK) {
    line_die("no advance");
  }
  printf("expire %zu\n", ended);
}

static void usage_op_used(char* line) {
  const wr_scope scope = usage_scope_at(line_int(&line));
  const wr_str name = usage_str(line_field(&line));
  const int64_t steady = line_int(&line);
  int64_t amount = 0;
  const wr_status status = wr_limits_used(usage_limits, scope, name, steady, line_int(&line), &amount, NULL);
  if (status == WR_STATUS_OK) printf("used %" PRId64 "\n", amount);
  else printf("used error %d\n", (int)status);
}

/* returns: whether the operation is one of these. */
static int usage_run(const char* op, char* line) {
  if (strcmp(op, "meter") == 0) usage_op_meter(line);
  else if (strcmp(op, "prices") == 0) usage_op_prices(line);
  else if (strcmp(op, "override") == 0) {
    printf("override %d\n", (int)wr_price_table_override(usage_prices, usage_str(line), NULL));
  } else if (strcmp(op, "alias") == 0) {
    const wr_str alias = usage_str(line_field(&line));
    printf("alias %d\n", (int)wr_price_table_set_alias(usage_prices, alias, usage_str(line_field(&line)), NULL));
  } else if (strcmp(op, "cost") == 0) usage_op_cost(line);
  else if (strcmp(op, "scope") == 0) usage_op_scope(line);
  else if (strcmp(op, "limits") == 0) usage_op_limits(line);
  else if (strcmp(op, "default") == 0) usage_op_default(line);
  else if (strcmp(op, "reserve") == 0) usage_op_reserve(line);
  else if (strcmp(op, "progress") == 0 || strcmp(op, "settle") == 0 || strcmp(op, "release") == 0 ||
           strcmp(op, "extend") == 0) {
    usage_op_change(op, line);
  } else if (strcmp(op, "expire") == 0) usage_op_expire(line);
  else if (strcmp(op, "used") == 0) usage_op_used(line);
  else return 0;
  return 1;
}

#endif
