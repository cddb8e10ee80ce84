/* Names, pools, quotas and classes in front of a router, through C. */
#include "helpers.h"

static const char kMap[] =
    "{\"models\": [{\"name\": \"chat\", \"targets\": [{\"pool\": \"70b\", \"model\": \"llama\"}],"
    "\"fallbacks\": [{\"pool\": \"api\", \"model\": \"gpt-x\"}]}, {\"name\": \"cloud\", \"targets\": [{\"pool\": "
    "\"api\"}]}],"
    "\"pools\": [{\"name\": \"api\", \"external\": true, \"requests_per_minute\": 2}],"
    "\"classes\": [{\"class_id\": 7, \"may_leave\": false}]}";

static wr_models* models_of(wr_router* router) {
  wr_models* models = NULL;
  CHECK_OK(wr_models_new(router, &models, NULL));
  CHECK_OK(wr_models_set_json(models, text(kMap), NULL));
  return models;
}

static wr_request ask(const char* model, const uint32_t* tokens) {
  wr_request request = token_request(tokens, 64);
  request.model = text(model);
  return request;
}

TEST(AnAliasLeadsToItsPoolAndAFallbackTakesOverWhenItIsDown) {
  uint32_t tokens[64];
  wr_router* router = new_router();
  wr_models* models = models_of(router);
  const wr_replica_id gpu = add_named(router, "gpu", "70b"), api = add_named(router, "api", "api");
  wr_decision d = WR_DECISION_INIT;
  wr_model_choice choice = WR_MODEL_CHOICE_INIT;
  wr_policy policy;
  wr_request request;
  count_up(tokens, 64, 1);
  request = ask("chat", tokens);
  CHECK_OK(wr_models_route(models, &request, 1, &d, &choice, NULL));
  CHECK_EQ(d.replica.slot, gpu.slot);
  CHECK(choice.pool.size == 3 && memcmp(choice.pool.data, "70b", 3) == 0);
  CHECK(choice.model.size == 5 && memcmp(choice.model.data, "llama", 5) == 0);
  CHECK_EQ(choice.external, 0);
  CHECK_EQ(wr_router_requests_in_flight(router, text("70b")), 1);
  CHECK_OK(wr_models_finish(models, d.ticket, &choice, NULL, 2));
  CHECK_STATUS(wr_models_finish(models, d.ticket, &choice, NULL, 2), WR_STATUS_STALE);
  CHECK_EQ(wr_router_requests_in_flight(router, text("70b")), 0);
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.route_when_all_down = 0;
  CHECK_OK(wr_router_set_policy(router, &policy, NULL));
  CHECK_OK(wr_router_drain(router, gpu, 100, 3, NULL));
  CHECK_OK(wr_models_route(models, &request, 4, &d, &choice, NULL));
  CHECK_EQ(d.replica.slot, api.slot);
  CHECK_EQ(choice.external, 1);
  CHECK_EQ(choice.target, 1);
  CHECK_EQ(choice.refused, 1);
  CHECK_STATUS(wr_models_fail(models, d.ticket, &choice, WR_OUTCOME_FINISHED, 0, 5), WR_STATUS_OUT_OF_RANGE);
  CHECK_OK(wr_models_fail(models, d.ticket, &choice, WR_OUTCOME_BACKPRESSURE, 1000, 5));
  CHECK_OK(wr_models_route(models, &request, 6, &d, &choice, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_SATURATED);
  CHECK_EQ(d.retry_after_ns, 999);
  request.class_id = 7;
  CHECK_OK(wr_models_route(models, &request, 7, &d, &choice, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_NO_REPLICA);
  CHECK_EQ(choice.forbidden, 1);
  request.model = text("cloud");
  CHECK_OK(wr_models_route(models, &request, 7, &d, &choice, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_NO_PERMITTED_POOL);
  wr_models_free(models);
  wr_router_free(router);
}

TEST(AnExactPoolHasNoStandIn) {
  uint32_t tokens[64];
  wr_router* router = new_router();
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  count_up(tokens, 64, 1);
  add_named(router, "any", "");
  request = ask("70b", tokens);
  CHECK_OK(wr_router_peek(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_ROUTED);
  request.exact_pool = 1;
  CHECK_OK(wr_router_peek(router, &request, 1, &d, NULL));
  CHECK_EQ(d.verdict, WR_VERDICT_NO_POOL);
  wr_router_free(router);
}

static wr_models* shared_models;
static wr_status readings(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_models_readings_json(shared_models, buf, cap, needed, err);
}
static wr_status choose(void* choice) {
  uint32_t tokens[64];
  wr_decision d = WR_DECISION_INIT;
  wr_request request;
  count_up(tokens, 64, 1);
  request = ask("cloud", tokens);
  return wr_models_route(shared_models, &request, 1, &d, (wr_model_choice*)choice, NULL);
}
static wr_status settle(const void* choice) {
  return wr_models_finish(shared_models, 0, (const wr_model_choice*)choice, NULL, 1);
}

TEST(AChoiceMayBeOfAnotherReleaseAndReadingsAreGivenInTwoCalls) {
  const wr_model_choice init = WR_MODEL_CHOICE_INIT;
  wr_router* router = new_router();
  char* json;
  size_t size;
  add_named(router, "api", "api");
  shared_models = models_of(router);
  check_output_sizes(&init, sizeof init, 1, choose);
  check_input_sizes(&init, sizeof init, offsetof(wr_model_choice, reserved), WR_STATUS_STALE, settle);
  json = check_two_calls(readings, &size);
  CHECK(strstr(json, "{\"pool\":\"api\",\"routed\":2,\"over_quota\":") != NULL);
  free(json);
  wr_models_free(shared_models);
  wr_router_free(router);
}

TEST(WhatIsMissingOrFaultyIsRefused) {
  wr_router* router = new_router();
  wr_models* models = models_of(router);
  wr_error error = WR_ERROR_INIT;
  wr_decision d = WR_DECISION_INIT;
  wr_model_choice choice = WR_MODEL_CHOICE_INIT;
  const wr_request request = WR_REQUEST_INIT;
  size_t needed;
  CHECK_STATUS(wr_models_new(NULL, &models, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_new(router, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_set_json(models, bad_text(), NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_set_json(models, text("{"), NULL), WR_STATUS_INVALID_JSON);
  CHECK_STATUS(wr_models_set_json(models, text("{\"models\": [{\"name\": \"x\"}]}"), &error),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(error.message, "model 'x' has no targets") != NULL);
  CHECK_STATUS(wr_models_route(NULL, &request, 1, &d, &choice, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_route(models, NULL, 1, &d, &choice, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_route(models, &request, 1, NULL, &choice, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_route(models, &request, 1, &d, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_finish(NULL, 1, &choice, NULL, 1), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_finish(models, 1, NULL, NULL, 1), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_fail(NULL, 1, &choice, WR_OUTCOME_TIMEOUT, 0, 1), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_models_readings_json(NULL, NULL, 0, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(wr_router_requests_in_flight(NULL, text("x")), 0);
  CHECK_STATUS(wr_router_drain(NULL, add_named(router, "r", ""), 0, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_models_free(NULL);
  wr_models_free(models);
  wr_router_free(router);
}

TESTS(CASE(AnAliasLeadsToItsPoolAndAFallbackTakesOverWhenItIsDown),
      CASE(AChoiceMayBeOfAnotherReleaseAndReadingsAreGivenInTwoCalls), CASE(WhatIsMissingOrFaultyIsRefused),
      CASE(AnExactPoolHasNoStandIn))
