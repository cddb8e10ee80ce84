/* 8 Routing: route, peek, explain, one by one and in batches. */
#include "helpers.h"

enum { kSecond = 1000000000, kTokens = 160 };

static wr_router* shared_router;
static uint32_t tokens[kTokens];

static wr_decision painted_decision(void) {
  wr_decision decision;
  paint(&decision, sizeof decision);
  decision.struct_size = sizeof decision;
  return decision;
}
static int is_untouched(const wr_decision* decision) {
  const wr_decision fresh = painted_decision();
  return memcmp(decision, &fresh, sizeof fresh) == 0;
}

TEST(ARequestGoesWhereItsPromptIsCached) {
  wr_replica_id ids[3];
  wr_router* router = new_fleet(3, ids);
  wr_request request;
  wr_decision first = WR_DECISION_INIT, again = WR_DECISION_INIT, seen = WR_DECISION_INIT;
  count_up(tokens, kTokens, 1);
  request = token_request(tokens, kTokens);
  request.class_id = 7;
  request.priority = -3;
  CHECK_OK(wr_router_route(router, &request, kSecond, &first, NULL));
  CHECK_EQ(first.verdict, WR_VERDICT_ROUTED);
  CHECK_EQ(first.status, WR_STATUS_OK);
  CHECK_EQ(first.reason, WR_REASON_NO_MATCH);
  CHECK(first.ticket != 0);
  CHECK_EQ(first.input_tokens, kTokens);
  CHECK_EQ(first.class_id, 7);
  CHECK_EQ(first.priority, -3);
  CHECK_EQ(first.fallback_count, 2);
  CHECK(first.fallbacks[0].slot != first.replica.slot && first.fallbacks[1].slot != first.replica.slot);
  CHECK_EQ(first.fallbacks[2].slot, WR_NO_SLOT);
  CHECK_EQ(first.prefill_replica.slot, WR_NO_SLOT);
  CHECK(first.expected_prefill_ns > 0);
  CHECK_OK(wr_router_finish(router, first.ticket, NULL, 2 * (int64_t)kSecond));
  CHECK_OK(wr_router_peek(router, &request, 3 * (int64_t)kSecond, &seen, NULL));
  CHECK_OK(wr_router_route(router, &request, 3 * (int64_t)kSecond, &again, NULL));
  CHECK_EQ(again.replica.slot, first.replica.slot);
  CHECK_EQ(again.reason, WR_REASON_BEST_MATCH);
  CHECK_EQ(again.cached_tokens[WR_TIER_DEVICE], 144);
  CHECK_EQ(again.best_cached_tokens, 144);
  CHECK(again.ticket != first.ticket);
  CHECK(seen.ticket == 0); /* peek books nothing, and says the same */
  seen.ticket = again.ticket;
  CHECK(memcmp(&seen, &again, sizeof seen) == 0);
  CHECK_OK(wr_router_fail(router, again.ticket, WR_OUTCOME_CANCELLED, 4 * (int64_t)kSecond));
  wr_router_free(router);
}

TEST(VerdictsSayWhyNobodyWasChosen) {
  wr_router* router = new_router();
  wr_request request = WR_REQUEST_INIT;
  wr_decision d = WR_DECISION_INIT;
  wr_policy policy;
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_str adapter = WR_STR_INIT;
  wr_replica_id id = WR_NO_REPLICA_INIT;
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_NO_POOL);
  CHECK(d.ticket == 0);
  CHECK_EQ(d.replica.slot, WR_NO_SLOT);
  adapter = text("sql");
  spec.name = text("gpu-0");
  spec.pool = text("m");
  spec.adapters = &adapter;
  spec.adapter_count = 1;
  CHECK_OK(wr_router_add_replica(router, &spec, 1, &id, NULL));
  request.model = text("m");
  request.adapter = text("poetry");
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_NO_ADAPTER);
  request.adapter = text("sql");
  request.excluded = &id;
  request.excluded_count = 1;
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ALL_EXCLUDED);
  request.excluded_count = 0;
  request.pinned.slot = 99;
  request.pinned.generation = 1;
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ALL_EXCLUDED);
  request.pinned = id;
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
  CHECK_EQ(d.reason, WR_REASON_PINNED);
  request.pinned.slot = WR_NO_SLOT;
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  CHECK_OK(wr_router_set_health(router, id, WR_HEALTH_DOWN, text("probe"), 1, NULL));
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
  CHECK_EQ(d.reason, WR_REASON_FAIL_OPEN);
  policy.route_when_all_down = 0;
  CHECK_OK(wr_router_set_policy(router, &policy, NULL));
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_NO_REPLICA);
  request.model = text("unknown");
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_NO_POOL);
  wr_router_free(router);
}

TEST(MoreRequestsThanTicketsAreTold) {
  wr_router_options options = WR_ROUTER_OPTIONS_INIT;
  wr_router* router = NULL;
  wr_request request = WR_REQUEST_INIT;
  wr_decision d = WR_DECISION_INIT;
  wr_ticket last = 0;
  int i;
  options.max_tickets = 256;
  CHECK_OK(wr_router_new(&options, &router, NULL));
  add_named(router, "gpu-0", "");
  for (i = 0; i < 256; ++i) {
    CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
    CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
    last = d.ticket;
  }
  CHECK_OK(wr_router_route(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_TICKET_TABLE_FULL);
  CHECK(d.ticket == 0);
  CHECK_OK(wr_router_finish(router, last, NULL, 2));
  CHECK_OK(wr_router_route(router, &request, 2, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
  wr_router_free(router);
}

static wr_status route_it(const void* request) {
  wr_decision d = WR_DECISION_INIT;
  return wr_router_route(shared_router, request, 1, &d, NULL);
}
static wr_status peek_it(const void* request) {
  wr_decision d = WR_DECISION_INIT;
  return wr_router_peek(shared_router, request, 1, &d, NULL);
}
static wr_status explain_it(const void* request) {
  size_t needed = 0;
  return wr_router_explain_json(shared_router, request, 1, NULL, 0, &needed, NULL);
}
static wr_status item_status(const void* request) {
  wr_decision d = WR_DECISION_INIT;
  CHECK_OK(wr_router_peek_batch(shared_router, request, 1, 0, 1, &d, 0, NULL));
  return d.status;
}
static wr_status route_into(void* decision) {
  const wr_request request = WR_REQUEST_INIT;
  return wr_router_route(shared_router, &request, 1, decision, NULL);
}
static wr_status peek_into(void* decision) {
  const wr_request request = WR_REQUEST_INIT;
  return wr_router_peek(shared_router, &request, 1, decision, NULL);
}
static wr_status batch_into(void* decision) {
  const wr_request request = WR_REQUEST_INIT;
  return wr_router_route_batch(shared_router, &request, 1, 0, 1, decision, 0, NULL);
}

TEST(RequestsAndDecisionsOfEverySizeGetWhatTheyDeserve) {
  const wr_request request = WR_REQUEST_INIT;
  const wr_decision decision = WR_DECISION_INIT;
  shared_router = new_fleet(2, NULL);
  check_input_sizes(&request, sizeof request, offsetof(wr_request, reserved), WR_STATUS_OK, route_it);
  check_input_sizes(&request, sizeof request, offsetof(wr_request, reserved) + 23, WR_STATUS_OK, peek_it);
  check_input_sizes(&request, sizeof request, offsetof(wr_request, reserved), WR_STATUS_OK, explain_it);
  check_input_sizes(&request, sizeof request, offsetof(wr_request, reserved), WR_STATUS_OK, item_status);
  check_output_sizes(&decision, sizeof decision, 1, route_into);
  check_output_sizes(&decision, sizeof decision, 1, peek_into);
  check_output_sizes(&decision, sizeof decision, 1, batch_into);
  wr_router_free(shared_router);
}

/* Every request that cannot be read, by number; the status that it deserves. */
static wr_status unreadable(wr_request* r, int which) {
  const wr_request init = WR_REQUEST_INIT;
  *r = init;
  switch (which) {
    case 0: r->model = bad_text(); break;
    case 1: r->adapter = bad_text(); break;
    case 2: r->session = bad_text(); break;
    case 3: r->tenant = bad_text(); break;
    case 4: r->cache_salt = bad_text(); break;
    case 5: r->token_count = 5; break;
    case 6: r->block_count = 5; break;
    case 7: r->excluded_count = 5; break;
    case 8: r->struct_size = 0; break;
    case 9: r->reserved[2] = 1; return WR_STATUS_UNSUPPORTED;
    case 10: r->block_kind = 2; return WR_STATUS_OUT_OF_RANGE;
    default: r->block_kind = 256; return WR_STATUS_OUT_OF_RANGE;
  }
  return WR_STATUS_INVALID_ARGUMENT;
}
enum { kUnreadable = 12 };

TEST(RequestsThatCannotBeReadAreRefusedAndNothingIsTouched) {
  wr_router* router = new_fleet(2, NULL);
  wr_request request, good = WR_REQUEST_INIT;
  wr_decision d = painted_decision();
  wr_statistics statistics;
  char buf[32];
  size_t needed = 77;
  int i;
  paint(buf, sizeof buf);
  for (i = 0; i < kUnreadable; ++i) {
    const wr_status wanted = unreadable(&request, i);
    wr_error err = WR_ERROR_INIT;
    CHECK_STATUS(wr_router_route(router, &request, 1, &d, &err), wanted);
    CHECK_EQ(err.status, wanted);
    CHECK(strlen(err.message) > 0);
    CHECK_STATUS(wr_router_peek(router, &request, 1, &d, NULL), wanted);
    CHECK_STATUS(wr_router_explain_json(router, &request, 1, buf, sizeof buf, &needed, NULL), wanted);
    CHECK_STATUS(wr_router_explain_text(router, &request, 1, buf, sizeof buf, &needed, NULL), wanted);
  }
  CHECK_STATUS(wr_router_route(NULL, &good, 1, &d, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route(router, NULL, 1, &d, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route(router, &good, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peek(NULL, &good, 1, &d, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peek(router, NULL, 1, &d, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peek(router, &good, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_explain_json(NULL, &good, 1, buf, sizeof buf, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_explain_json(router, NULL, 1, buf, sizeof buf, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_explain_text(NULL, &good, 1, buf, sizeof buf, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_explain_text(router, &good, 1, buf, sizeof buf, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(is_untouched(&d));
  CHECK(painted(buf, sizeof buf));
  CHECK_EQ(needed, 77);
  statistics.struct_size = sizeof statistics;
  CHECK_OK(wr_router_statistics(router, &statistics, NULL));
  CHECK_EQ(statistics.tickets_in_flight, 0);
  for (i = 0; i < WR_VERDICT_SLOTS; ++i) CHECK_EQ(statistics.verdicts[i], 0);
  wr_router_free(router);
}

/* Requests and decisions as a proxy keeps them: in its own records. */
typedef struct exchange {
  char path[20];
  wr_request request;
  double started;
  wr_decision decision;
  uint32_t guard;
} exchange;

TEST(BatchesStrideOverLargerRecordsAndTellEachItemItsStatus) {
  enum { kItems = 24 };
  wr_router *router = new_fleet(3, NULL), *twin = new_fleet(3, NULL);
  exchange* items = calloc(kItems, sizeof *items);
  wr_statistics statistics;
  int i, good = 0;
  CHECK(items != NULL);
  count_up(tokens, kTokens, 1);
  for (i = 0; i < kItems; ++i) {
    items[i].request = token_request(tokens, (size_t)(i % 7 + 1) * 16);
    if (i % 2) (void)unreadable(&items[i].request, i / 2);
    items[i].decision = painted_decision();
    items[i].guard = 0xABCD;
  }
  CHECK_OK(wr_router_route_batch(router, &items[0].request, kItems, sizeof items[0], kSecond, &items[0].decision,
                                 sizeof items[0], NULL));
  for (i = 0; i < kItems; ++i) {
    CHECK_EQ(items[i].guard, 0xABCD);
    CHECK_EQ(items[i].decision.struct_size, sizeof(wr_decision));
    if (i % 2) {
      wr_decision none = WR_DECISION_INIT;
      wr_request scratch;
      none.status = unreadable(&scratch, i / 2);
      CHECK(memcmp(&none, &items[i].decision, sizeof none) == 0); /* its status, and no ticket of another request */
    } else {
      wr_decision alone = WR_DECISION_INIT;
      CHECK_OK(wr_router_route(twin, &items[i].request, kSecond, &alone, NULL)); /* the same, one by one */
      CHECK(memcmp(&alone, &items[i].decision, sizeof alone) == 0);
      ++good;
    }
  }
  statistics.struct_size = sizeof statistics;
  CHECK_OK(wr_router_statistics(router, &statistics, NULL));
  CHECK_EQ(statistics.tickets_in_flight, good);
  for (i = 0; i < kItems; ++i) items[i].decision = painted_decision();
  CHECK_OK(wr_router_peek_batch(router, &items[0].request, kItems, sizeof items[0], kSecond, &items[0].decision,
                                sizeof items[0], NULL));
  for (i = 0; i < kItems; i += 2) {
    CHECK_EQ(items[i].decision.status, WR_STATUS_OK);
    CHECK_EQ(items[i].decision.verdict, WR_VERDICT_ROUTED);
    CHECK(items[i].decision.ticket == 0);
    CHECK_EQ(items[i + 1].decision.status, unreadable(&items[i + 1].request, i / 2));
  }
  free(items);
  wr_router_free(router);
  wr_router_free(twin);
}

TEST(AnItemThatFailsLeavesNoTicketOfBeforeToBeReleasedTwice) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  wr_ticket ticket;
  count_up(tokens, kTokens, 1);
  request = token_request(tokens, kTokens);
  CHECK_OK(wr_router_route_batch(router, &request, 1, 0, kSecond, &d, 0, NULL));
  ticket = d.ticket;
  CHECK(ticket != 0);
  request.block_kind = 9;
  CHECK_OK(wr_router_route_batch(router, &request, 1, 0, kSecond, &d, 0, NULL));
  CHECK_EQ(d.status, WR_STATUS_OUT_OF_RANGE);
  CHECK_EQ(d.verdict, WR_VERDICT_NO_REPLICA);
  CHECK(d.ticket == 0 && d.replica.slot == WR_NO_SLOT && d.fallback_count == 0);
  CHECK_EQ(d.fallbacks[0].slot, WR_NO_SLOT);
  CHECK_OK(wr_router_finish(router, ticket, NULL, 2 * (int64_t)kSecond));
  CHECK_STATUS(wr_router_finish(router, d.ticket, NULL, 2 * (int64_t)kSecond), WR_STATUS_STALE);
  wr_router_free(router);
}

TEST(ARequestOfZerosWithItsSizeIsASoundOne) {
  enum { kBlocks = 10 };
  wr_router *router = new_fleet(2, NULL), *twin = new_fleet(2, NULL);
  wr_request zeros, init = WR_REQUEST_INIT;
  wr_decision d = WR_DECISION_INIT, wanted = WR_DECISION_INIT;
  uint64_t blocks[kBlocks];
  size_t i;
  memset(&zeros, 0, sizeof zeros);
  zeros.struct_size = sizeof zeros;
  for (i = 0; i < kBlocks; ++i) blocks[i] = 77 + i;
  count_up(tokens, kTokens, 1);
  for (i = 0; i < 5; ++i) { /* nothing, ids, blocks of tokens, blocks of text, bytes alone */
    wr_request* both[2];
    size_t k;
    both[0] = &zeros;
    both[1] = &init;
    for (k = 0; k < 2; ++k) {
      both[k]->token_ids = i == 1 ? tokens : NULL;
      both[k]->token_count = i == 1 ? kTokens : 0;
      both[k]->block_hashes = i == 2 || i == 3 ? blocks : NULL;
      both[k]->block_count = i == 2 || i == 3 ? kBlocks : 0;
      both[k]->block_kind = i == 3 ? WR_BLOCKS_TEXT : WR_BLOCKS_TOKENS;
      if (i == 4) both[k]->prompt_bytes = 4000;
    }
    CHECK_OK(wr_router_route(router, &zeros, kSecond, &d, NULL));
    CHECK_OK(wr_router_route(twin, &init, kSecond, &wanted, NULL));
    CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
    CHECK(memcmp(&d, &wanted, sizeof d) == 0);
    CHECK((d.input_tokens > 0) == (i > 0));
    if (i == 1) CHECK_EQ(d.input_tokens, kTokens);
    if (i == 2) CHECK_EQ(d.input_tokens, kBlocks * 16);
  }
  zeros.pinned.slot = 99; /* generation 0: nobody */
  CHECK_OK(wr_router_route(router, &zeros, kSecond, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
  zeros.pinned.generation = 1;
  CHECK_OK(wr_router_route(router, &zeros, kSecond, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ALL_EXCLUDED);
  wr_router_free(router);
  wr_router_free(twin);
}

TEST(BatchesOfOneRequestMayRepeatItOnlyWithAStride) {
  wr_router* router = new_fleet(2, NULL);
  wr_request requests[3] = {WR_REQUEST_INIT, WR_REQUEST_INIT, WR_REQUEST_INIT};
  wr_decision out[3];
  wr_error err = WR_ERROR_INIT;
  size_t i;
  for (i = 0; i < 3; ++i) out[i] = painted_decision();
  CHECK_OK(wr_router_route_batch(router, NULL, 0, 0, 1, NULL, 0, NULL));
  CHECK_OK(wr_router_peek_batch(router, NULL, 0, 0, 1, NULL, 0, NULL));
  CHECK_STATUS(wr_router_route_batch(NULL, requests, 3, sizeof requests[0], 1, out, sizeof out[0], NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route_batch(router, NULL, 3, sizeof requests[0], 1, out, sizeof out[0], NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route_batch(router, requests, 3, sizeof requests[0], 1, NULL, sizeof out[0], NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route_batch(router, requests, 3, 0, 1, out, sizeof out[0], &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "stride") != NULL);
  CHECK_STATUS(wr_router_route_batch(router, requests, 3, 1, 1, out, sizeof out[0], NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route_batch(router, requests, 2, sizeof requests[0] + 4, 1, out, sizeof out[0], NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route_batch(router, requests, 3, sizeof requests[0], 1, out, 0, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_route_batch(router, requests, 3, sizeof requests[0], 1, out, sizeof out[0] - 8, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peek_batch(NULL, requests, 3, sizeof requests[0], 1, out, sizeof out[0], NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peek_batch(router, requests, 3, sizeof requests[0], 1, out, 4, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  for (i = 0; i < 3; ++i) CHECK(is_untouched(&out[i]));
  out[2].struct_size = 0; /* nothing is routed, not even the two before it */
  CHECK_STATUS(wr_router_route_batch(router, requests, 3, sizeof requests[0], 1, out, sizeof out[0], &err),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "decision 2") != NULL);
  CHECK(err.offset == WR_NO_OFFSET);
  CHECK(is_untouched(&out[0]) && is_untouched(&out[1]));
  wr_router_free(router);
}

static wr_request shared_request;
static wr_status give_json(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_router_explain_json(shared_router, &shared_request, 5, buf, cap, needed, err);
}
static wr_status give_text(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_router_explain_text(shared_router, &shared_request, 5, buf, cap, needed, err);
}

TEST(ExplanationsNameEveryCandidateAndChangeNothing) {
  char* got;
  size_t size = 0;
  wr_statistics statistics;
  count_up(tokens, kTokens, 1);
  shared_router = new_fleet(2, NULL);
  add_named(shared_router, "quote \" and \\ slash", "");
  shared_request = token_request(tokens, kTokens);
  got = check_two_calls(give_json, &size);
  CHECK_EQ(size, strlen(got) + 1);
  CHECK(got[0] == '{' && strchr(got, '\n') == NULL);
  CHECK(strstr(got, "\"gpu-0\"") && strstr(got, "\"gpu-1\"") && strstr(got, "quote \\\" and \\\\ slash"));
  free(got);
  got = check_two_calls(give_text, &size);
  CHECK(strstr(got, "gpu-0") && strstr(got, "gpu-1"));
  free(got);
  statistics.struct_size = sizeof statistics;
  CHECK_OK(wr_router_statistics(shared_router, &statistics, NULL));
  CHECK_EQ(statistics.tickets_in_flight, 0);
  CHECK_EQ(statistics.verdicts[WR_VERDICT_ROUTED], 0);
  wr_router_free(shared_router);
}

TEST(PrefillAndDecodeMayRunApartAndEachPartIsReleasedOnce) {
  wr_router* router = new_router();
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id prefill, decode;
  wr_policy policy;
  wr_request request = token_request(tokens, kTokens);
  wr_decision d = WR_DECISION_INIT;
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.disaggregate = WR_DISAGGREGATE_ALWAYS;
  CHECK_OK(wr_router_set_policy(router, &policy, NULL));
  spec.name = text("p");
  spec.role = WR_ROLE_PREFILL;
  CHECK_OK(wr_router_add_replica(router, &spec, 1, &prefill, NULL));
  spec.name = text("d");
  spec.role = WR_ROLE_DECODE;
  CHECK_OK(wr_router_add_replica(router, &spec, 1, &decode, NULL));
  CHECK_OK(wr_router_route(router, &request, 2, &d, NULL));
  CHECK_EQ(d.split, WR_SPLIT_PAIR);
  CHECK_EQ(d.replica.slot, decode.slot);
  CHECK_EQ(d.prefill_replica.slot, prefill.slot);
  CHECK(d.expected_transfer_ns > 0);
  CHECK_EQ(d.decode_cached_tokens, 0);
  CHECK_OK(wr_router_first_token(router, d.ticket, 3));
  CHECK_OK(wr_router_transfer_done(router, d.ticket, 4));
  CHECK_STATUS(wr_router_transfer_done(router, d.ticket, 4), WR_STATUS_STALE);
  CHECK_STATUS(wr_router_transfer_done(NULL, d.ticket, 4), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_router_finish(router, d.ticket, NULL, 5));
  CHECK_EQ(wr_router_requests_in_flight(router, text("")), 0);
  wr_router_free(router);
}

TEST(NoNumberOfACallerOverflows) {
  static const int64_t extremes[] = {INT64_MIN, INT64_MIN + 1, -2, -1, 0, 1, INT64_MAX - 1, INT64_MAX};
  enum { kExtremes = sizeof extremes / sizeof extremes[0] };
  wr_replica_id ids[3];
  wr_router* router = new_fleet(3, ids);
  uint32_t algorithm;
  int i, j;
  for (algorithm = WR_ALGORITHM_COST; algorithm <= WR_ALGORITHM_BOUNDED_HASH; ++algorithm) {
    wr_policy policy;
    policy.struct_size = sizeof policy;
    CHECK_OK(wr_policy_init(&policy, NULL));
    policy.algorithm = algorithm;
    policy.stale_signals = algorithm % 2 ? WR_STALE_SIGNALS_EXCLUDE : WR_STALE_SIGNALS_IGNORE;
    CHECK_OK(wr_router_set_policy(router, &policy, NULL));
    for (i = 0; i < kExtremes; ++i) {
      for (j = 0; j < kExtremes; ++j) {
        wr_request request = token_request(tokens, kTokens);
        wr_decision d = WR_DECISION_INIT, seen = WR_DECISION_INIT;
        wr_usage usage = WR_USAGE_INIT;
        size_t needed = 0;
        CHECK_OK(wr_router_signal(router, ids[j % 3], WR_SIGNAL_RUNNING, j % 2 ? 1e300 : 1, extremes[j], NULL));
        CHECK_OK(wr_router_signal(router, ids[i % 3], WR_SIGNAL_WAITING, i % 2 ? 1e300 : 1, extremes[j], NULL));
        request.session = text("s");
        request.input_tokens = extremes[i];
        request.prompt_bytes = extremes[j];
        request.max_output_tokens = extremes[(i + j) % kExtremes];
        request.deadline_ns = extremes[j];
        CHECK_OK(wr_router_peek(router, &request, extremes[j], &seen, NULL));
        CHECK_OK(wr_router_explain_json(router, &request, extremes[j], NULL, 0, &needed, NULL));
        CHECK_OK(wr_router_route(router, &request, extremes[j], &d, NULL));
        CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
        CHECK_OK(wr_router_first_token(router, d.ticket, extremes[i]));
        usage.input_tokens = extremes[j];
        usage.cached_tokens = extremes[(i + j) % kExtremes];
        usage.output_tokens = extremes[i];
        CHECK_OK(wr_router_finish(router, d.ticket, &usage, extremes[j]));
      }
      CHECK_OK(wr_router_advance(router, extremes[i], NULL));
    }
  }
  wr_router_free(router);
}

TEST(GatewaysAgreeOnWhoseARequestIsAndForwardItOnce) {
  const char* const texts[3] = {"gw-0", "gw-1", "gw-2"};
  wr_str names[3];
  wr_gateway_ring* rings[3];
  wr_policy policy;
  wr_request request;
  uint32_t i, first, owned[3] = {0, 0, 0};
  uint64_t key = 0, same = 0;
  wr_error err = WR_ERROR_INIT;
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  for (i = 0; i < 3; ++i) names[i] = text(texts[i]);
  for (i = 0; i < 3; ++i) {
    CHECK_OK(wr_gateway_ring_new(names, 3, names[i], &rings[i], NULL));
    CHECK_EQ(wr_gateway_ring_self(rings[i]), i);
  }
  for (first = 1; first < 200; ++first) {
    uint32_t owner;
    count_up(tokens, kTokens, first * 1000);
    request = token_request(tokens, kTokens);
    CHECK_OK(wr_gateway_ring_key(rings[0], &request, &policy, &key, NULL));
    CHECK_OK(wr_gateway_ring_key(rings[1], &request, &policy, &same, NULL));
    CHECK(key == same);
    owner = wr_gateway_ring_owner(rings[0], key, 0);
    CHECK(owner < 3 && owner == wr_gateway_ring_owner(rings[2], key, 0));
    CHECK_EQ(wr_gateway_ring_owner(rings[1], key, 1), 1);
    ++owned[owner];
    wr_gateway_ring_set_up(rings[0], owner, 0);
    CHECK(owner == 0 || wr_gateway_ring_owner(rings[0], key, 0) != owner);
    wr_gateway_ring_set_up(rings[0], owner, 1);
  }
  CHECK(owned[0] > 20 && owned[1] > 20 && owned[2] > 20);
  CHECK_STATUS(wr_gateway_ring_new(names, 2, names[2], &rings[0], &err), WR_STATUS_NOT_FOUND);
  CHECK(strstr(err.message, "gw-2") != NULL);
  CHECK_STATUS(wr_gateway_ring_key(rings[1], NULL, &policy, &key, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_gateway_ring_key(rings[1], &request, NULL, &key, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(wr_gateway_ring_owner(NULL, 1, 0), 0xFFFFFFFFu);
  wr_gateway_ring_set_up(NULL, 0, 1);
  for (i = 0; i < 3; ++i) wr_gateway_ring_free(rings[i]);
  wr_gateway_ring_free(NULL);
}

static wr_router* telling_router;
static wr_status tell_loads(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_router_loads(telling_router, 1000, buf, cap, needed, err);
}

TEST(RoutersTellOneAnotherWhatTheyHaveInFlightAndWhatTheySentWhere) {
  wr_replica_id here[2], there[2];
  wr_router *first = new_fleet(2, here), *second = new_fleet(2, there);
  wr_decision d = WR_DECISION_INIT, told = WR_DECISION_INIT;
  wr_error err = WR_ERROR_INIT;
  wr_replica_id gone;
  wr_request request;
  wr_str said;
  size_t size = 0, known = 77;
  char* loads;
  count_up(tokens, kTokens, 1);
  request = token_request(tokens, kTokens);
  telling_router = first;
  loads = check_two_calls(tell_loads, &size);
  CHECK_EQ(size, 1); /* nothing in flight: an empty text */
  free(loads);
  request.pinned = here[0];
  CHECK_OK(wr_router_route(first, &request, 1000, &d, NULL));
  loads = check_two_calls(tell_loads, &size);
  CHECK(strstr(loads, "gpu-0\n") != NULL && strstr(loads, "gpu-1") == NULL);
  said.data = loads;
  said.size = size - 1;
  CHECK_OK(wr_router_peer_loads(second, 3, said, 5000, &known, &err));
  CHECK_EQ(known, 1);
  CHECK_OK(wr_router_peer_loads(second, 3, said, 5000, NULL, NULL)); /* the same again is no more */
  request.pinned = there[0];
  CHECK_OK(wr_router_peek(second, &request, 5000, &told, NULL));
  CHECK(told.expected_wait_ns > 0);
  CHECK_OK(wr_router_peek(second, &request, 5000 + INT64_C(3600000000000), &told, NULL));
  CHECK_EQ(told.expected_wait_ns, 0); /* who falls silent has nothing */
  CHECK_OK(wr_router_peer_loads(second, 3, text(""), 5000, &known, NULL));
  CHECK_EQ(known, 0);
  CHECK_OK(wr_router_peek(second, &request, 5000, &told, NULL));
  CHECK_EQ(told.expected_wait_ns, 0);
  known = 77;
  CHECK_STATUS(wr_router_peer_loads(second, 3, text("1 2 three\n"), 5000, &known, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(err.status, WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "six numbers") != NULL);
  CHECK_STATUS(wr_router_peer_loads(second, 1024, said, 5000, &known, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peer_loads(second, 3, bad_text(), 5000, &known, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peer_loads(NULL, 3, said, 5000, &known, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(known, 77);
  CHECK_STATUS(wr_router_loads(NULL, 0, NULL, 0, &known, NULL), WR_STATUS_INVALID_ARGUMENT);

  CHECK_EQ(cached_on(second, there[0], tokens, kTokens, WR_TIER_DEVICE), 0);
  CHECK_OK(wr_router_peer_placed(second, there[0], &request, 6000, &err));
  CHECK(cached_on(second, there[0], tokens, kTokens, WR_TIER_DEVICE) > 0);
  CHECK_EQ(cached_on(second, there[1], tokens, kTokens, WR_TIER_DEVICE), 0);
  CHECK_STATUS(wr_router_peer_placed(second, there[0], NULL, 6000, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_peer_placed(NULL, there[0], &request, 6000, NULL), WR_STATUS_INVALID_ARGUMENT);
  gone = there[1];
  CHECK_OK(wr_router_remove_replica(second, there[1], 7000, NULL));
  CHECK_STATUS(wr_router_peer_placed(second, gone, &request, 7000, &err), WR_STATUS_STALE);
  free(loads);
  wr_router_free(first);
  wr_router_free(second);
}

TESTS(CASE(ARequestGoesWhereItsPromptIsCached), CASE(VerdictsSayWhyNobodyWasChosen),
      CASE(MoreRequestsThanTicketsAreTold), CASE(RequestsAndDecisionsOfEverySizeGetWhatTheyDeserve),
      CASE(RequestsThatCannotBeReadAreRefusedAndNothingIsTouched),
      CASE(BatchesStrideOverLargerRecordsAndTellEachItemItsStatus),
      CASE(AnItemThatFailsLeavesNoTicketOfBeforeToBeReleasedTwice), CASE(ARequestOfZerosWithItsSizeIsASoundOne),
      CASE(BatchesOfOneRequestMayRepeatItOnlyWithAStride), CASE(ExplanationsNameEveryCandidateAndChangeNothing),
      CASE(PrefillAndDecodeMayRunApartAndEachPartIsReleasedOnce), CASE(NoNumberOfACallerOverflows),
      CASE(GatewaysAgreeOnWhoseARequestIsAndForwardItOnce),
      CASE(RoutersTellOneAnotherWhatTheyHaveInFlightAndWhatTheySentWhere))
