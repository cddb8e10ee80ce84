/* Two replicas, one conversation: the second turn goes where the first one is cached. */
#include <stdio.h>

#include <warmroute.h>

enum { kFirstTurn = 2000, kPerTurn = 500, kTurns = 3, kSecond = 1000000000 };

static int failed(const wr_error* err) {
  fprintf(stderr, "%s: %s\n", wr_status_text(err->status), err->message);
  return 1;
}

int main(void) {
  static uint32_t prompt[kFirstTurn + kTurns * kPerTurn]; /* token ids */
  const wr_str names[2] = {{"gpu-0", 5}, {"gpu-1", 5}};
  size_t size = kFirstTurn, i;
  int64_t now_ns = kSecond; /* your monotonic clock; the library reads none */
  wr_error err = WR_ERROR_INIT;
  wr_router* router = NULL;
  int turn;

  if (wr_router_new(NULL, &router, &err) != WR_STATUS_OK) return failed(&err);
  for (i = 0; i < 2; ++i) {
    wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
    wr_replica_id id;
    spec.name = names[i];
    if (wr_router_add_replica(router, &spec, now_ns, &id, &err) != WR_STATUS_OK) return failed(&err);
  }

  for (i = 0; i < kFirstTurn; ++i) prompt[i] = (uint32_t)i;
  for (turn = 1; turn <= kTurns; ++turn) {
    wr_request request = WR_REQUEST_INIT;
    wr_decision decision = WR_DECISION_INIT;
    wr_usage usage = WR_USAGE_INIT;
    char name[64];
    size_t needed = 0;

    request.token_ids = prompt;
    request.token_count = size;
    /* Load is booked from here on, until the ticket is finished or failed. */
    if (wr_router_route(router, &request, now_ns, &decision, &err) != WR_STATUS_OK) return failed(&err);
    if (decision.verdict != WR_VERDICT_ROUTED) { /* nobody is up: an outcome, not a failure */
      fprintf(stderr, "%s\n", wr_verdict_name(decision.verdict));
      return 1;
    }
    if (wr_router_replica_name(router, decision.replica, name, sizeof name, &needed, &err) != WR_STATUS_OK)
      return failed(&err);
    printf("turn %d: %zu tokens -> %s, %lld cached (%s), first token expected in %.1f ms\n", turn, size, name,
           (long long)decision.cached_tokens[WR_TIER_DEVICE], wr_reason_name(decision.reason),
           (double)(decision.expected_wait_ns + decision.expected_prefill_ns) / 1e6);

    now_ns += 80000000; /* ... you forward the request ... */
    wr_router_first_token(router, decision.ticket, now_ns);
    now_ns += 3 * (int64_t)kSecond;
    usage.cached_tokens = decision.cached_tokens[WR_TIER_DEVICE]; /* what the answer's `usage` says */
    usage.output_tokens = 200;
    wr_router_finish(router, decision.ticket, &usage, now_ns);

    for (i = 0; i < kPerTurn; ++i) prompt[size++] = 100000 + (uint32_t)i; /* answer and next question */
  }
  wr_router_free(router);
  return 0;
}
