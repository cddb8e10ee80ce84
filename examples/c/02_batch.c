/* Many requests in one call: they lie in the caller's own records, and the strides say how far apart. */
#include <stdio.h>
#include <stdlib.h>

#include <warmroute.h>

/* As a proxy keeps a request. The library sees the two members that are its own. */
typedef struct exchange {
  char path[32];
  wr_request request;
  wr_decision decision;
} exchange;

enum { kReplicas = 4, kExchanges = 64, kTokens = 1024, kSecond = 1000000000 };

int main(void) {
  static uint32_t prompts[8][kTokens]; /* eight different prompts, each asked eight times */
  exchange* all = calloc(kExchanges, sizeof *all);
  wr_router* router = NULL;
  wr_error err = WR_ERROR_INIT;
  int per_replica[kReplicas] = {0};
  wr_status released[kExchanges];
  int i, j;

  if (all == NULL || wr_router_new(NULL, &router, &err) != WR_STATUS_OK) return 1;
  for (i = 0; i < kReplicas; ++i) {
    wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
    wr_replica_id id;
    char name[16];
    spec.name.data = name;
    spec.name.size = (size_t)snprintf(name, sizeof name, "gpu-%d", i);
    if (wr_router_add_replica(router, &spec, kSecond, &id, &err) != WR_STATUS_OK) return 1;
  }
  for (i = 0; i < 8; ++i) {
    for (j = 0; j < kTokens; ++j) prompts[i][j] = (uint32_t)(i * 10000 + j);
  }
  for (i = 0; i < kExchanges; ++i) {
    const wr_request request = WR_REQUEST_INIT;
    const wr_decision decision = WR_DECISION_INIT;
    all[i].request = request; /* always from the INIT: it sets struct_size and the unknown counts */
    all[i].decision = decision;
    all[i].request.token_ids = prompts[i % 8];
    all[i].request.token_count = kTokens;
  }
  all[5].request.block_kind = 99; /* one that is not well-formed does not stop the others */

  if (wr_router_route_batch(router, &all[0].request, kExchanges, sizeof all[0], kSecond, &all[0].decision,
                            sizeof all[0], &err) != WR_STATUS_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  for (i = 0; i < kExchanges; ++i) {
    const wr_decision* d = &all[i].decision;
    if (d->status != WR_STATUS_OK) printf("request %d: %s\n", i, wr_status_text(d->status));
    else if (d->verdict == WR_VERDICT_ROUTED) ++per_replica[d->replica.slot];
  }
  for (i = 0; i < kReplicas; ++i) printf("gpu-%d: %d requests\n", i, per_replica[i]);

  /* All are over; the ticket of the one that was not routed is 0, and told to be stale. */
  wr_router_finish_batch(router, &all[0].decision.ticket, kExchanges, sizeof all[0], NULL, 0, 2 * (int64_t)kSecond,
                         released);
  printf("request 5 is released: %s, request 6: %s\n", wr_status_text(released[5]), wr_status_text(released[6]));
  wr_router_free(router);
  free(all);
  return released[5] == WR_STATUS_STALE && released[6] == WR_STATUS_OK ? 0 : 1;
}
