/* The operations of generate.cpp through the C interface: reads them from stdin, prints a line for each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <warmroute.h>

#include "control_c.h"
#include "line.h"
#include "usage_c.h"

enum { MAX_REPLICAS = 4096, MAX_SOURCES = 8 };

static wr_router* router;
static wr_body_parser* parser;
static wr_policy policy;
static wr_replica_id ids[MAX_REPLICAS];
static wr_ring_member members[MAX_REPLICAS];
static size_t replica_count;
static wr_ring* ring;
static wr_kv_source* sources[MAX_SOURCES];
static wr_metrics* metrics;
static line_u64s hashes, tickets;
static line_u32s tokens;

static wr_str str(const char* text) {
  wr_str s;
  s.data = text;
  s.size = strlen(text);
  return s;
}
static char* copy(const char* text) {
  char* out = (char*)malloc(strlen(text) + 1);
  if (out == NULL) line_die("out of memory");
  return strcpy(out, text);
}

static void set_policy(const char* json) {
  wr_policy next;
  wr_status status;
  next.struct_size = sizeof next;
  status = wr_policy_init(&next, NULL);
  if (status == WR_STATUS_OK) status = wr_policy_from_json(str(json), &next, NULL);
  if (status == WR_STATUS_OK) status = wr_router_set_policy(router, &next, NULL);
  if (status == WR_STATUS_OK) {
    policy = next;
    puts("policy ok");
  } else {
    printf("policy %d\n", (int)status);
  }
}

static void add(char* line) {
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_ring_member member = WR_RING_MEMBER_INIT;
  wr_replica_id id;
  wr_status status;
  if (replica_count == MAX_REPLICAS) line_die("too many replicas");
  spec.name = str(line_field(&line));
  spec.pool = str(line_field(&line));
  spec.weight = line_double(&line);
  spec.capacity_tokens = line_int(&line);
  status = wr_router_add_replica(router, &spec, line_int(&line), &id, NULL);
  if (status != WR_STATUS_OK) {
    printf("add error %d\n", (int)status);
    return;
  }
  member.ring_id = str(copy(spec.name.data));
  member.member = (uint32_t)replica_count;
  member.weight = spec.weight;
  members[replica_count] = member;
  ids[replica_count++] = id;
  printf("add %u %u\n", id.slot, id.generation);
}

static wr_replica_id which(char** line) {
  const int64_t n = line_int(line);
  if (n < 0 || (size_t)n >= replica_count) line_die("no such replica");
  return ids[n];
}

static void change(const char* op, char* line) {
  const wr_replica_id id = which(&line);
  wr_status status;
  if (strcmp(op, "remove") == 0) {
    status = wr_router_remove_replica(router, id, line_int(&line), NULL);
  } else if (strcmp(op, "clear") == 0) {
    status = wr_router_clear_cache(router, id, line_int(&line), NULL);
  } else if (strcmp(op, "health") == 0) {
    const uint32_t state = (uint32_t)line_int(&line);
    status = wr_router_set_health(router, id, state, str("test"), line_int(&line), NULL);
  } else {
    const uint32_t kind = (uint32_t)line_int(&line);
    const double value = line_double(&line);
    status = wr_router_signal(router, id, kind, value, line_int(&line), NULL);
  }
  printf("%s %d\n", op, (int)status);
}

static void stored(char* line) {
  const wr_replica_id id = which(&line);
  wr_stored_blocks s = WR_STORED_BLOCKS_INIT;
  uint64_t parent;
  s.tier = (uint32_t)line_int(&line);
  line_hex_list(&line, &hashes);
  if (hashes.size != 0) {
    parent = hashes.data[0];
    s.parent = &parent;
  }
  line_hex_list(&line, &hashes);
  line_runs(&line, &tokens);
  s.ids = hashes.data;
  s.count = hashes.size;
  s.token_ids = tokens.data;
  s.token_count = tokens.size;
  printf("stored %d\n", (int)wr_router_blocks_stored(router, id, &s, line_int(&line), NULL));
}

static void removed(char* line) {
  const wr_replica_id id = which(&line);
  const uint32_t tier = (uint32_t)line_int(&line);
  size_t count = 0;
  wr_status status;
  line_hex_list(&line, &hashes);
  status = wr_router_blocks_removed(router, id, tier, hashes.data, hashes.size, line_int(&line), &count, NULL);
  if (status == WR_STATUS_OK) printf("removed %zu\n", count);
  else printf("removed error %d\n", (int)status);
}

static void engine(char* line) {
  const size_t n = (size_t)line_int(&line);
  wr_kv_source_status s = WR_KV_SOURCE_STATUS_INIT;
  wr_str frames[3] = {WR_STR_INIT, WR_STR_INIT, WR_STR_INIT};
  char number[8];
  uint64_t seq;
  int i;
  if (n >= MAX_SOURCES) line_die("no such engine");
  if (sources[n] == NULL && wr_kv_source_new(router, ids[n], NULL, &sources[n], NULL) != WR_STATUS_OK) {
    line_die("no source");
  }
  seq = (uint64_t)line_int(&line);
  for (i = 0; i < 8; ++i) number[i] = (char)(unsigned char)(seq >> (56 - 8 * i));
  frames[1].data = number;
  frames[1].size = sizeof number;
  frames[2].data = line_bytes(&line, &frames[2].size);
  if (wr_kv_source_live(sources[n], frames, 3, line_int(&line), NULL) != WR_STATUS_OK ||
      wr_kv_source_read_status(sources[n], &s, NULL) != WR_STATUS_OK) {
    line_die("a message was refused");
  }
  printf("engine %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
         (unsigned)s.state, s.next, s.blocks_stored, s.blocks_removed, s.orphan_blocks, s.gaps, s.restarts,
         s.bad_messages);
}

static void page(char* line) {
  wr_metrics_target whose = WR_METRICS_TARGET_INIT;
  wr_metrics_reading reading = WR_METRICS_READING_INIT;
  wr_metrics_applied done = WR_METRICS_APPLIED_INIT;
  int64_t now;
  char* at;
  wr_status status;
  whose.replica = which(&line);
  now = line_int(&line);
  for (at = line; *at != '\0'; ++at) {
    if (*at == '|') *at = '\n';
  }
  status = wr_metrics_parse(metrics, str(line), str(""), &reading, NULL);
  if (status == WR_STATUS_OK) {
    status = wr_router_apply_metrics(router, metrics, &whose, 1, sizeof whose, now, &done, NULL);
  }
  if (status != WR_STATUS_OK) printf("page error %d\n", (int)status);
  else printf("page %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", done.signals, done.refused, done.unmatched_ranks);
}

static void print(const wr_decision* d) {
  uint32_t i;
  printf("route %u %u %u %u ", d->verdict, d->reason, d->replica.slot, d->replica.generation);
  for (i = 0; i < d->fallback_count; ++i) {
    printf("%s%u.%u", i == 0 ? "" : ",", d->fallbacks[i].slot, d->fallbacks[i].generation);
  }
  printf("%s %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
         "\n",
         d->fallback_count == 0 ? "-" : "", d->ticket, d->input_tokens, d->cached_tokens[0], d->cached_tokens[1],
         d->cached_tokens[2], d->shared_tokens, d->best_cached_tokens, d->expected_wait_ns, d->expected_prefill_ns);
}

static void ask(const wr_request* request, int64_t now) {
  wr_decision d = WR_DECISION_INIT;
  if (wr_router_route(router, request, now, &d, NULL) != WR_STATUS_OK) line_die("route failed");
  line_push_u64(&tickets, d.ticket);
  print(&d);
}

static void route(int book, char* line) {
  wr_request r = WR_REQUEST_INIT;
  wr_decision d = WR_DECISION_INIT;
  int64_t now;
  r.model = str(line_field(&line));
  r.session = str(line_field(&line));
  r.tenant = str(line_field(&line));
  r.max_output_tokens = line_int(&line);
  line_runs(&line, &tokens);
  r.token_ids = tokens.data;
  r.token_count = tokens.size;
  now = line_int(&line);
  if (book) {
    ask(&r, now);
    return;
  }
  if (wr_router_peek(router, &r, now, &d, NULL) != WR_STATUS_OK) line_die("peek failed");
  print(&d);
}

static void route_blocks(char* line) {
  wr_request r = WR_REQUEST_INIT;
  r.model = str(line_field(&line));
  r.block_kind = (uint32_t)line_int(&line);
  r.input_tokens = line_int(&line);
  line_hex_list(&line, &hashes);
  r.block_hashes = hashes.data;
  r.block_count = hashes.size;
  ask(&r, line_int(&line));
}

static void body(char* line) {
  const uint32_t api = (uint32_t)line_int(&line);
  const int64_t now = line_int(&line);
  wr_body_options options = WR_BODY_OPTIONS_INIT;
  wr_body parsed = WR_BODY_INIT;
  wr_request request = WR_REQUEST_INIT;
  wr_error err = WR_ERROR_INIT;
  wr_status status;
  if (wr_body_options_for(&policy, &options, &err) != WR_STATUS_OK) line_die("no body options");
  status = wr_body_parser_parse(parser, api, str(line), &options, &parsed, &err);
  if (status == WR_STATUS_OK) {
    if (wr_body_to_request(&parsed, &request, &err) != WR_STATUS_OK) line_die("no request of a body");
    ask(&request, now);
    return;
  }
  line_push_u64(&tickets, 0);
  printf("body error %d %" PRIu64 "\n", (int)status, err.offset);
}

static void release(const char* op, char* line) {
  const int64_t k = line_int(&line);
  wr_ticket ticket;
  wr_status status;
  if (k < 0 || (size_t)k >= tickets.size) line_die("no such request");
  ticket = tickets.data[k];
  if (strcmp(op, "first") == 0) {
    status = wr_router_first_token(router, ticket, line_int(&line));
  } else if (strcmp(op, "finish") == 0) {
    wr_usage usage = WR_USAGE_INIT;
    usage.cached_tokens = line_int(&line);
    usage.output_tokens = line_int(&line);
    status = wr_router_finish(router, ticket, &usage, line_int(&line));
  } else {
    const uint32_t outcome = (uint32_t)line_int(&line);
    status = wr_router_fail(router, ticket, outcome, line_int(&line));
  }
  printf("%s %d\n", op, status == WR_STATUS_OK);
}

static void home(char* line) {
  if (wr_ring_size(ring) != replica_count) {
    wr_ring_free(ring);
    ring = NULL;
    if (wr_ring_new(members, replica_count, sizeof members[0], NULL, &ring, NULL) != WR_STATUS_OK) line_die("no ring");
  }
  line_hex_list(&line, &hashes);
  printf("home %u\n", wr_ring_home(ring, hashes.data[0]));
}

/* As many as C++ counts today: the rest of the room is zero. */
static void join(const uint64_t* counts, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) printf("%s%" PRIu64, i == 0 ? " " : ",", counts[i]);
}
static void stats(void) {
  wr_statistics s;
  s.struct_size = sizeof s;
  if (wr_router_statistics(router, &s, NULL) != WR_STATUS_OK) line_die("no statistics");
  printf("stats");
  join(s.verdicts, WR_VERDICT_NO_PERMITTED_POOL + 1);
  join(s.reasons, WR_REASON_SPILL_SATURATED + 1);
  join(s.outcomes, WR_OUTCOME_LEASE_EXPIRED + 1);
  printf(" %" PRIu64 " %" PRIu64 "\n", s.late_calls, s.tickets_in_flight);
}

static void run(char* line) {
  const char* op = line_field(&line);
  if (strcmp(op, "policy") == 0) set_policy(line);
  else if (strcmp(op, "add") == 0) add(line);
  else if (strcmp(op, "stored") == 0) stored(line);
  else if (strcmp(op, "removed") == 0) removed(line);
  else if (strcmp(op, "engine") == 0) engine(line);
  else if (strcmp(op, "page") == 0) page(line);
  else if (strcmp(op, "route") == 0) route(1, line);
  else if (strcmp(op, "peek") == 0) route(0, line);
  else if (strcmp(op, "routeblocks") == 0) route_blocks(line);
  else if (strcmp(op, "body") == 0) body(line);
  else if (strcmp(op, "home") == 0) home(line);
  else if (strcmp(op, "stats") == 0) stats();
  else if (strcmp(op, "first") == 0 || strcmp(op, "finish") == 0 || strcmp(op, "fail") == 0) release(op, line);
  else if (strcmp(op, "advance") == 0) {
    if (wr_router_advance(router, line_int(&line), NULL) != WR_STATUS_OK) line_die("advance failed");
    puts("advance");
  } else if (!usage_run(op, line) && !control_run(op, line)) {
    change(op, line);
  }
}

int main(void) {
  char* line = (char*)malloc(LINE_MAX_BYTES);
  size_t i;
  policy.struct_size = sizeof policy;
  if (line == NULL || wr_policy_init(&policy, NULL) != WR_STATUS_OK ||
      wr_router_new(NULL, &router, NULL) != WR_STATUS_OK || wr_body_parser_new(&parser, NULL) != WR_STATUS_OK ||
      wr_metrics_new(&metrics, NULL) != WR_STATUS_OK) {
    line_die("cannot begin");
  }
  usage_begin();
  control_begin();
  while (fgets(line, (int)LINE_MAX_BYTES, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    run(line);
  }
  for (i = 0; i < replica_count; ++i) free((char*)members[i].ring_id.data);
  free(hashes.data);
  free(tickets.data);
  free(tokens.data);
  free(line);
  control_end();
  usage_end();
  for (i = 0; i < MAX_SOURCES; ++i) wr_kv_source_free(sources[i]);
  wr_metrics_free(metrics);
  wr_ring_free(ring);
  wr_body_parser_free(parser);
  wr_router_free(router);
  return 0;
}
