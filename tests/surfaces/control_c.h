/* The operations of generate_control.hpp through the C interface. */
#ifndef WARMROUTE_TESTS_SURFACES_CONTROL_C_H
#define WARMROUTE_TESTS_SURFACES_CONTROL_C_H

#include "usage_c.h"

static wr_keys* control_keys;
static wr_key_lookup* control_lookup;
static wr_price_slot* control_prices;
static wr_applier* control_applier;

/* After usage_begin. */
static void control_begin(void) {
  wr_applier_options options = WR_APPLIER_OPTIONS_INIT;
  wr_snapshot_trust trust = WR_SNAPSHOT_TRUST_INIT;
  wr_verifying_key key = WR_VERIFYING_KEY_INIT;
  wr_signing_key* signer = NULL;
  char seed[WR_SIGNING_SEED_BYTES];
  wr_str bytes;
  memset(seed, 's', sizeof seed);
  bytes.data = seed;
  bytes.size = sizeof seed;
  if (wr_signing_key_from_seed(bytes, usage_str("s"), &signer, NULL) != WR_STATUS_OK ||
      wr_signing_key_public(signer, &key, NULL) != WR_STATUS_OK ||
      wr_keys_new(NULL, &control_keys, NULL) != WR_STATUS_OK ||
      wr_key_lookup_new(&control_lookup, NULL) != WR_STATUS_OK ||
      wr_price_slot_new(&control_prices, NULL) != WR_STATUS_OK) {
    line_die("no control");
  }
  wr_signing_key_free(signer);
  trust.keys = &key;
  trust.key_count = 1;
  options.trust = &trust;
  options.keys = control_keys;
  options.limits = usage_limits;
  options.prices = control_prices;
  if (wr_applier_new(&options, &control_applier, NULL) != WR_STATUS_OK) line_die("no applier");
}
/* Before usage_end. */
static void control_end(void) {
  wr_applier_free(control_applier);
  wr_price_slot_free(control_prices);
  wr_key_lookup_free(control_lookup);
  wr_keys_free(control_keys);
}

static wr_control_status control_status_at(int64_t steady) {
  wr_control_status s = WR_CONTROL_STATUS_INIT;
  if (wr_applier_read_status(control_applier, steady, &s, NULL) != WR_STATUS_OK) line_die("no status");
  return s;
}

static void control_op_control(char* line) {
  const char* const envelope = line_field(&line);
  const int64_t steady = line_int(&line), wall = line_int(&line);
  const size_t head = strlen(envelope), size = strlen(line);
  char* const bytes = (char*)malloc(head + 1 + size);
  wr_control_status s;
  wr_status status;
  wr_str file;
  if (bytes == NULL) line_die("out of memory");
  memcpy(bytes, envelope, head);
  bytes[head] = '\n';
  memcpy(bytes + head + 1, line, size);
  file.data = head == 0 ? bytes + 1 : bytes;
  file.size = head == 0 ? size : head + 1 + size;
  status = wr_applier_apply(control_applier, file, steady, wall, NULL, NULL);
  free(bytes);
  s = control_status_at(steady);
  printf("control %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n",
         (int)status, s.generation, s.top_generation, s.keys, s.revoked, s.refused, s.rollbacks,
         s.generation == 0 ? -1 : s.age_ns);
}

static void control_op_holder(char* line) {
  const wr_str key = usage_str(line_field(&line));
  const int64_t steady = line_int(&line);
  wr_key_grant g = WR_KEY_GRANT_INIT;
  if (wr_keys_check(control_keys, control_lookup, key, steady, line_int(&line), &g, NULL) != WR_STATUS_OK) {
    line_die("no check");
  }
  if (g.verdict != WR_KEY_VERDICT_ACCEPTED) printf("holder %u\n", (unsigned)g.verdict);
  else {
    printf("holder 0 %.*s %.*s %" PRIu64 " %" PRIu64 "\n", (int)g.key_id.size, g.key_id.data, (int)g.team_id.size,
           g.team_id.data, g.version, g.generation);
  }
}

static void control_op_priced(char* line) {
  wr_price_table* table = NULL;
  wr_cost cost = WR_COST_INIT;
  if (wr_price_slot_get(control_prices, &table, NULL) == WR_STATUS_OK) {
    const wr_usage_report report = usage_report();
    if (wr_price_table_cost(table, &report, usage_str(line), NULL, &cost, NULL) != WR_STATUS_OK) line_die("no cost");
    wr_price_table_free(table);
  }
  printf("priced %" PRId64 "\n", cost.picos);
}

/* returns: whether the operation is one of these. */
static int control_run(const char* op, char* line) {
  if (strcmp(op, "control") == 0) control_op_control(line);
  else if (strcmp(op, "confirm") == 0) {
    const int64_t steady = line_int(&line);
    if (wr_applier_confirm(control_applier, steady, line_int(&line), NULL) != WR_STATUS_OK) line_die("not confirmed");
    printf("confirm %" PRId64 "\n", control_status_at(steady).age_ns);
  } else if (strcmp(op, "revoke") == 0) {
    const wr_str id = usage_str(line_field(&line));
    printf("revoke %d\n", (int)wr_applier_revoke(control_applier, id, (uint64_t)line_int(&line), NULL));
  } else if (strcmp(op, "holder") == 0) control_op_holder(line);
  else if (strcmp(op, "priced") == 0) control_op_priced(line);
  else return 0;
  return 1;
}

#endif
