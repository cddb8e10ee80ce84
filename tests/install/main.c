/* A consumer in C: routes one request. */
#include <warmroute.h>

#include <stdio.h>

int main(void) {
  const uint32_t prompt[4] = {1, 2, 3, 4};
  wr_router_options options = WR_ROUTER_OPTIONS_INIT;
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_request request = WR_REQUEST_INIT;
  wr_decision decision = WR_DECISION_INIT;
  wr_error error = WR_ERROR_INIT;
  wr_router* router = NULL;
  wr_replica_id replica;
  char text[4096];
  size_t size = 0;
  int finished = 0;

  if (wr_abi_version() != WR_ABI_VERSION) return 1;
  if (wr_router_new(&options, &router, &error) != WR_STATUS_OK) return 2;
  spec.name.data = "gpu-0";
  spec.name.size = 5;
  if (wr_router_add_replica(router, &spec, 0, &replica, &error) != WR_STATUS_OK) return 3;
  request.token_ids = prompt;
  request.token_count = 4;
  if (wr_router_route(router, &request, 1, &decision, &error) != WR_STATUS_OK) return 4;
  if (decision.replica.slot != replica.slot || decision.ticket == 0) return 5;
  if (wr_router_explain_text(router, &request, 2, text, sizeof text, &size, &error) != WR_STATUS_OK || size == 0)
    return 6;
  finished = wr_router_finish(router, decision.ticket, NULL, 3) == WR_STATUS_OK;
  wr_router_free(router);
  printf("routed by %s\n", wr_version());
  return finished ? 0 : 7;
}
