/* 8 Routing, its second half: what becomes of a ticket. */
#include "helpers.h"

enum { kSecond = 1000000000, kTokens = 160 };
static uint32_t tokens[kTokens];

static wr_ticket routed(wr_router* router, int64_t now_ns) {
  wr_request request = token_request(tokens, kTokens);
  wr_decision d = WR_DECISION_INIT;
  CHECK_OK(wr_router_route(router, &request, now_ns, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
  return d.ticket;
}
static wr_statistics statistics_of(wr_router* router) {
  wr_statistics s;
  s.struct_size = sizeof s;
  CHECK_OK(wr_router_statistics(router, &s, NULL));
  return s;
}
static wr_replica_statistics books_of(wr_router* router, wr_replica_id id) {
  wr_replica_statistics s;
  s.struct_size = sizeof s;
  CHECK_OK(wr_router_replica_statistics(router, id, &s, NULL));
  return s;
}
static void books_are_zero(wr_router* router, wr_replica_id id) {
  const wr_replica_statistics s = books_of(router, id);
  CHECK_EQ(s.requests, 0);
  CHECK_EQ(s.pending_tokens, 0);
  CHECK_EQ(s.pending_ns, 0);
  CHECK_EQ(s.context_tokens, 0);
  CHECK_EQ(s.decoding, 0);
}

TEST(ATicketBooksAndReleasesOnce) {
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  wr_usage usage = WR_USAGE_INIT;
  wr_ticket ticket;
  wr_statistics s;
  count_up(tokens, kTokens, 1);
  ticket = routed(router, kSecond);
  CHECK_EQ(books_of(router, id).requests, 1);
  CHECK_EQ(books_of(router, id).pending_tokens, kTokens);
  CHECK_EQ(books_of(router, id).context_tokens, kTokens);
  CHECK_OK(wr_router_first_token(router, ticket, kSecond + 1000));
  CHECK_EQ(books_of(router, id).pending_tokens, 0);
  CHECK_EQ(books_of(router, id).decoding, 1);
  CHECK_STATUS(wr_router_first_token(router, ticket, kSecond + 1000), WR_STATUS_STALE); /* it had its first token */
  usage.input_tokens = kTokens;
  usage.cached_tokens = 0;
  usage.output_tokens = 20;
  CHECK_OK(wr_router_finish(router, ticket, &usage, kSecond + 2000));
  books_are_zero(router, id);
  CHECK_STATUS(wr_router_finish(router, ticket, &usage, kSecond + 2000), WR_STATUS_STALE);
  CHECK_STATUS(wr_router_finish(router, ticket, NULL, kSecond + 2000), WR_STATUS_STALE);
  CHECK_STATUS(wr_router_fail(router, ticket, WR_OUTCOME_TIMEOUT, kSecond + 2000), WR_STATUS_STALE);
  CHECK_STATUS(wr_router_first_token(router, ticket, kSecond + 2000), WR_STATUS_STALE);
  books_are_zero(router, id);
  s = statistics_of(router);
  CHECK_EQ(s.late_calls, 5);
  CHECK_EQ(s.outcomes[WR_OUTCOME_FINISHED], 1);
  CHECK_EQ(s.input_tokens, kTokens);
  CHECK_EQ(s.output_tokens, 20);
  CHECK_EQ(s.ttft_count, 1);
  CHECK_EQ(s.observed_ttft_sum_ns, 1000);
  wr_router_free(router);
}

TEST(EveryOutcomeThatACallerMayNameReleases) {
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  uint32_t outcome;
  wr_ticket ticket;
  wr_statistics s;
  for (outcome = WR_OUTCOME_CANCELLED; outcome <= WR_OUTCOME_TIMEOUT; ++outcome) {
    ticket = routed(router, kSecond);
    if (outcome % 2) CHECK_OK(wr_router_first_token(router, ticket, kSecond));
    CHECK_OK(wr_router_fail(router, ticket, outcome, kSecond));
    books_are_zero(router, id);
  }
  s = statistics_of(router);
  for (outcome = WR_OUTCOME_CANCELLED; outcome <= WR_OUTCOME_TIMEOUT; ++outcome) CHECK_EQ(s.outcomes[outcome], 1);
  ticket = routed(router, kSecond);
  CHECK_STATUS(wr_router_fail(router, ticket, WR_OUTCOME_FINISHED, kSecond), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_router_fail(router, ticket, WR_OUTCOME_LEASE_EXPIRED, kSecond), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_router_fail(router, ticket, 8, kSecond), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_router_fail(router, ticket, 256 + 1, kSecond), WR_STATUS_OUT_OF_RANGE);
  CHECK_EQ(books_of(router, id).requests, 1); /* not released by any of these */
  CHECK_OK(wr_router_fail(router, ticket, WR_OUTCOME_TIMEOUT, kSecond));
  wr_router_free(router);
}

TEST(TicketsThatNeverWereAreStale) {
  wr_replica_id id;
  wr_router *router = new_fleet(1, &id), *other = new_fleet(1, NULL);
  const wr_ticket mine = routed(router, kSecond);
  const wr_ticket foreign[] = {0, 1, UINT64_MAX, mine + 1, mine + (UINT64_C(1) << 32), (wr_ticket)UINT32_MAX << 32};
  size_t i;
  for (i = 0; i < sizeof foreign / sizeof foreign[0]; ++i) {
    if (foreign[i] == mine) continue;
    CHECK_STATUS(wr_router_first_token(router, foreign[i], kSecond), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_finish(router, foreign[i], NULL, kSecond), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_fail(router, foreign[i], WR_OUTCOME_TIMEOUT, kSecond), WR_STATUS_STALE);
  }
  CHECK_STATUS(wr_router_finish(other, mine, NULL, kSecond), WR_STATUS_STALE); /* of another router, which has none */
  CHECK_EQ(books_of(router, id).requests, 1);
  CHECK_STATUS(wr_router_first_token(NULL, mine, kSecond), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_finish(NULL, mine, NULL, kSecond), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_fail(NULL, mine, WR_OUTCOME_TIMEOUT, kSecond), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_advance(NULL, kSecond, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_router_finish(router, mine, NULL, kSecond));
  wr_router_free(router);
  wr_router_free(other);
}

TEST(TicketsOutliveTheirReplica) {
  wr_replica_id ids[2], again;
  wr_router* router = new_fleet(2, ids);
  wr_request request = token_request(tokens, kTokens);
  wr_decision d = WR_DECISION_INIT;
  request.pinned = ids[0];
  CHECK_OK(wr_router_route(router, &request, kSecond, &d, NULL));
  CHECK_OK(wr_router_remove_replica(router, ids[0], kSecond, NULL));
  again = add_named(router, "gpu-0", "");
  books_are_zero(router, again);
  CHECK_OK(wr_router_first_token(router, d.ticket, kSecond));
  CHECK_OK(wr_router_finish(router, d.ticket, NULL, kSecond));
  CHECK_STATUS(wr_router_finish(router, d.ticket, NULL, kSecond), WR_STATUS_STALE);
  books_are_zero(router, again);
  books_are_zero(router, ids[1]);
  CHECK_EQ(statistics_of(router).tickets_in_flight, 0);
  wr_router_free(router);
}

TEST(LeasesEndForgottenTickets) {
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  wr_policy policy;
  wr_ticket ticket;
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.lease_ns = kSecond;
  CHECK_OK(wr_router_set_policy(router, &policy, NULL));
  ticket = routed(router, kSecond);
  CHECK_OK(wr_router_advance(router, kSecond + kSecond / 2, NULL));
  CHECK_EQ(books_of(router, id).requests, 1);
  CHECK_OK(wr_router_advance(router, 3 * (int64_t)kSecond, NULL));
  books_are_zero(router, id);
  CHECK_STATUS(wr_router_finish(router, ticket, NULL, 3 * (int64_t)kSecond), WR_STATUS_STALE);
  CHECK_EQ(statistics_of(router).outcomes[WR_OUTCOME_LEASE_EXPIRED], 1);
  wr_router_free(router);
}

static wr_router* shared_router;
/* With a ticket of its own each time: a refusal does not release it. */
static wr_status finish_with(const void* usage) {
  const wr_ticket ticket = routed(shared_router, kSecond);
  const wr_status status = wr_router_finish(shared_router, ticket, usage, kSecond);
  CHECK_STATUS(wr_router_fail(shared_router, ticket, WR_OUTCOME_CANCELLED, kSecond),
               status == WR_STATUS_OK ? WR_STATUS_STALE : WR_STATUS_OK);
  return status;
}

TEST(UsageOfEverySizeGetsWhatItDeserves) {
  const wr_usage usage = WR_USAGE_INIT;
  wr_replica_id id;
  shared_router = new_fleet(1, &id);
  check_input_sizes(&usage, sizeof usage, offsetof(wr_usage, reserved), WR_STATUS_OK, finish_with);
  check_input_sizes(&usage, sizeof usage, offsetof(wr_usage, reserved0), WR_STATUS_OK, finish_with);
  books_are_zero(shared_router, id);
  wr_router_free(shared_router);
}

typedef struct exchange {
  uint64_t guard;
  wr_ticket ticket;
  wr_usage usage;
  char more[8];
} exchange;

TEST(BatchesTellEachTicketItsStatus) {
  enum { kItems = 6 };
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  exchange items[kItems];
  wr_ticket packed[kItems];
  wr_status out[kItems + 1];
  int i;
  for (i = 0; i < kItems; ++i) {
    const wr_usage usage = WR_USAGE_INIT;
    items[i].ticket = i == 2 ? 0 : routed(router, kSecond);
    items[i].usage = usage;
    items[i].usage.output_tokens = 10;
  }
  items[4].usage.struct_size = 0;
  paint(out, sizeof out);
  CHECK_OK(wr_router_first_token_batch(router, &items[0].ticket, kItems, sizeof items[0], kSecond, out));
  for (i = 0; i < kItems; ++i) CHECK_STATUS(out[i], i == 2 ? WR_STATUS_STALE : WR_STATUS_OK);
  CHECK(painted(&out[kItems], sizeof out[0]));
  CHECK_OK(wr_router_finish_batch(router, &items[0].ticket, kItems, sizeof items[0], &items[0].usage, sizeof items[0],
                                  kSecond, out));
  for (i = 0; i < kItems; ++i) {
    CHECK_STATUS(out[i], i == 2 ? WR_STATUS_STALE : i == 4 ? WR_STATUS_INVALID_ARGUMENT : WR_STATUS_OK);
  }
  CHECK_EQ(statistics_of(router).output_tokens, 40);
  CHECK_EQ(books_of(router, id).requests, 1); /* the one whose usage could not be read */
  CHECK_OK(wr_router_fail_batch(router, &items[0].ticket, kItems, sizeof items[0], WR_OUTCOME_CANCELLED, kSecond, out));
  for (i = 0; i < kItems; ++i) CHECK_STATUS(out[i], i == 4 ? WR_STATUS_OK : WR_STATUS_STALE);
  books_are_zero(router, id);
  /* packed, without statuses and usages */
  for (i = 0; i < kItems; ++i) packed[i] = routed(router, kSecond);
  CHECK_OK(wr_router_first_token_batch(router, packed, 3, sizeof packed[0], kSecond, NULL));
  CHECK_OK(wr_router_finish_batch(router, packed, 3, sizeof packed[0], NULL, 0, kSecond, NULL));
  CHECK_OK(wr_router_fail_batch(router, packed + 3, 3, sizeof packed[0], WR_OUTCOME_TIMEOUT, kSecond, NULL));
  books_are_zero(router, id);
  wr_router_free(router);
}

TEST(BatchesThatDoNotFitReleaseNothing) {
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  wr_ticket t[2];
  wr_usage usages[2] = {WR_USAGE_INIT, WR_USAGE_INIT};
  wr_status out[2];
  t[0] = routed(router, kSecond);
  t[1] = routed(router, kSecond);
  paint(out, sizeof out);
  CHECK_OK(wr_router_first_token_batch(router, NULL, 0, 0, 1, NULL));
  CHECK_OK(wr_router_finish_batch(router, NULL, 0, 0, NULL, 0, 1, NULL));
  CHECK_OK(wr_router_fail_batch(router, NULL, 0, 0, WR_OUTCOME_TIMEOUT, 1, NULL));
  CHECK_STATUS(wr_router_first_token_batch(NULL, t, 2, 8, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_first_token_batch(router, NULL, 2, 8, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_first_token_batch(router, t, 2, 1, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_first_token_batch(router, t, 2, 12, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_finish_batch(NULL, t, 2, 8, usages, sizeof usages[0], 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_finish_batch(router, NULL, 2, 8, usages, sizeof usages[0], 1, out),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_finish_batch(router, t, 2, 0, usages, sizeof usages[0], 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_finish_batch(router, t, 2, 8, usages, 8, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_fail_batch(NULL, t, 2, 8, WR_OUTCOME_TIMEOUT, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_fail_batch(router, NULL, 2, 8, WR_OUTCOME_TIMEOUT, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_fail_batch(router, t, 2, 4, WR_OUTCOME_TIMEOUT, 1, out), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_fail_batch(router, t, 2, 8, WR_OUTCOME_FINISHED, 1, out), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_router_fail_batch(router, t, 2, 8, 256 + 1, 1, out), WR_STATUS_OUT_OF_RANGE);
  CHECK(painted(out, sizeof out));
  CHECK_EQ(books_of(router, id).requests, 2);
  wr_router_free(router); /* with tickets in flight */
}

TESTS(CASE(ATicketBooksAndReleasesOnce), CASE(EveryOutcomeThatACallerMayNameReleases),
      CASE(TicketsThatNeverWereAreStale), CASE(TicketsOutliveTheirReplica), CASE(LeasesEndForgottenTickets),
      CASE(UsageOfEverySizeGetsWhatItDeserves), CASE(BatchesTellEachTicketItsStatus),
      CASE(BatchesThatDoNotFitReleaseNothing))
