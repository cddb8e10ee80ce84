/* 4 Policy: every knob, as a struct and as JSON. */
#include "helpers.h"

static wr_policy defaults(void) {
  wr_policy policy;
  paint(&policy, sizeof policy);
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  return policy;
}

static wr_status init_into(void* policy) { return wr_policy_init(policy, NULL); }
static wr_status validate_it(const void* policy) { return wr_policy_validate(policy, NULL); }

TEST(PoliciesStartFromTheDefaultsAndThoseAreValid) {
  wr_policy policy = defaults();
  const uint32_t size = sizeof policy;
  unsigned char room[sizeof(wr_policy) * 2];
  CHECK_EQ(policy.struct_size, sizeof policy);
  CHECK_EQ(policy.algorithm, WR_ALGORITHM_COST);
  CHECK_EQ(policy.block_size, 16);
  CHECK_EQ(policy.isolation, WR_ISOLATION_SALT);
  CHECK(policy.hash_seed == WR_DYNAMO_HASH_SEED);
  CHECK_OK(wr_policy_validate(&policy, NULL));
  CHECK_OK(wr_policy_validate(&policy, NULL));
  /* What a newer header has behind it becomes 0, or the next call would take it for a wish. */
  memset(room, 0, sizeof room);
  memcpy(room, &size, sizeof size);
  check_grown_output_sizes(room, offsetof(wr_policy, disaggregate), sizeof policy, 0, init_into);
  check_grown_input_sizes(&policy, offsetof(wr_policy, disaggregate), sizeof policy, offsetof(wr_policy, reserved),
                          WR_STATUS_OK, validate_it);
  CHECK_STATUS(wr_policy_validate(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
}

TEST(ValidationNamesEveryFaultAtOnce) {
  wr_policy policy = defaults();
  wr_error err = WR_ERROR_INIT;
  policy.beta = -1;
  policy.block_size = 0;
  policy.isolation = 3;
  policy.algorithm = 256; /* not the 0 of a byte that wrapped */
  CHECK_STATUS(wr_policy_validate(&policy, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "beta") && strstr(err.message, "block_size"));
  CHECK(strstr(err.message, "isolation") && strstr(err.message, "algorithm"));
}

TEST(EveryEnumerationOutOfRangeIsRefused) {
  size_t i;
  const uint32_t bad[] = {9, 255, 256, 257, UINT32_MAX};
  for (i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
    wr_policy policy = defaults();
    policy.algorithm = bad[i];
    CHECK_STATUS(wr_policy_validate(&policy, NULL), WR_STATUS_INVALID_ARGUMENT);
    policy = defaults();
    policy.ring_key = bad[i];
    CHECK_STATUS(wr_policy_validate(&policy, NULL), WR_STATUS_INVALID_ARGUMENT);
    policy = defaults();
    policy.isolation = bad[i];
    CHECK_STATUS(wr_policy_validate(&policy, NULL), WR_STATUS_INVALID_ARGUMENT);
    policy = defaults();
    policy.stale_signals = bad[i];
    CHECK_STATUS(wr_policy_validate(&policy, NULL), WR_STATUS_INVALID_ARGUMENT);
  }
}

TEST(JsonChangesWhatItNamesAndTheRestStays) {
  wr_policy policy = defaults(), before;
  policy.gamma = 0.75;
  before = policy;
  CHECK_OK(wr_policy_from_json(
      text("{\"algorithm\": \"bounded_hash\", \"lease_ms\": 2500, \"route_when_all_down\": false}"), &policy, NULL));
  CHECK_EQ(policy.algorithm, WR_ALGORITHM_BOUNDED_HASH);
  CHECK_EQ(policy.lease_ns, 2500000000LL);
  CHECK_EQ(policy.route_when_all_down, 0);
  CHECK(policy.gamma == 0.75);
  before.algorithm = policy.algorithm;
  before.lease_ns = policy.lease_ns;
  before.route_when_all_down = 0;
  CHECK(memcmp(&before, &policy, sizeof policy) == 0);
}

static wr_policy shared_policy;
static wr_status give_json(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_policy_to_json(&shared_policy, buf, cap, needed, err);
}

TEST(JsonGoesThereAndBack) {
  wr_policy back = defaults();
  char* json;
  size_t size = 0;
  shared_policy = defaults();
  shared_policy.algorithm = WR_ALGORITHM_CONSISTENT_HASH;
  shared_policy.beta = 1.25;
  shared_policy.hot = 0;
  shared_policy.session_bonus_ns = 1500000;
  shared_policy.ring_key = WR_RING_KEY_SESSION_OR_PREFIX;
  shared_policy.ring_points = 77;
  shared_policy.ring_seed = UINT64_MAX;
  shared_policy.bound_factor = 2;
  shared_policy.block_size = 64;
  shared_policy.hash_seed = 99;
  shared_policy.isolation = WR_ISOLATION_POOL;
  shared_policy.stale_signals = WR_STALE_SIGNALS_EXCLUDE;
  shared_policy.route_when_all_down = 0;
  shared_policy.version = UINT64_MAX;
  json = check_two_calls(give_json, &size);
  CHECK_EQ(strlen(json) + 1, size);
  CHECK_OK(wr_policy_from_json(text(json), &back, NULL));
  CHECK(memcmp(&back, &shared_policy, sizeof back) == 0);
  free(json);
}

TEST(BadJsonLeavesThePolicyAlone) {
  static const struct {
    const char* json;
    wr_status status;
  } cases[] = {{"", WR_STATUS_INVALID_JSON},
               {"{\"beta\": ", WR_STATUS_INVALID_JSON},
               {"[1]", WR_STATUS_NOT_AN_OBJECT},
               {"{\"beta\": \"much\"}", WR_STATUS_INVALID_ARGUMENT},
               {"{\"no_such_knob\": 1}", WR_STATUS_INVALID_ARGUMENT},
               {"{\"beta\": 2, \"block_size\": 4096}", WR_STATUS_INVALID_ARGUMENT}};
  wr_policy policy = defaults(), before = defaults();
  wr_error err = WR_ERROR_INIT;
  size_t i, needed = 77;
  char* large = calloc(1, 70000);
  wr_str s;
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    CHECK_STATUS(wr_policy_from_json(text(cases[i].json), &policy, &err), cases[i].status);
    CHECK(strlen(err.message) > 0);
  }
  CHECK(large != NULL);
  memset(large, ' ', 70000);
  s.data = large;
  s.size = 70000;
  CHECK_STATUS(wr_policy_from_json(s, &policy, NULL), WR_STATUS_TOO_LARGE);
  free(large);
  CHECK_STATUS(wr_policy_from_json(bad_text(), &policy, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_policy_from_json(text("{}"), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(memcmp(&policy, &before, sizeof policy) == 0);
  policy.block_size = 0;
  CHECK_STATUS(wr_policy_to_json(&policy, NULL, 0, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_policy_to_json(NULL, NULL, 0, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_policy_to_json(&before, NULL, 0, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(needed, 77);
}

static wr_status to_json_it(const void* policy) {
  size_t needed = 0;
  return wr_policy_to_json(policy, NULL, 0, &needed, NULL);
}
static wr_router* shared_router;
static wr_status set_it(const void* policy) { return wr_router_set_policy(shared_router, policy, NULL); }
static wr_status get_it(void* policy) { return wr_router_get_policy(shared_router, policy, NULL); }

TEST(RoutersSwapPoliciesAndKeepTheOldOneOnAFault) {
  wr_policy policy = defaults(), got = defaults();
  wr_error err = WR_ERROR_INIT;
  shared_router = new_router();
  policy.version = 5;
  policy.algorithm = WR_ALGORITHM_ROUND_ROBIN;
  CHECK_OK(wr_router_set_policy(shared_router, &policy, NULL));
  CHECK_OK(wr_router_get_policy(shared_router, &got, NULL));
  CHECK(memcmp(&policy, &got, sizeof got) == 0);
  policy.beta = -1;
  policy.version = 6;
  CHECK_STATUS(wr_router_set_policy(shared_router, &policy, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "beta") != NULL);
  CHECK_OK(wr_router_get_policy(shared_router, &got, NULL));
  CHECK_EQ(got.version, 5);
  CHECK_STATUS(wr_router_set_policy(NULL, &got, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_set_policy(shared_router, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_get_policy(NULL, &got, NULL), WR_STATUS_INVALID_ARGUMENT);
  check_grown_input_sizes(&got, offsetof(wr_policy, disaggregate), sizeof got, offsetof(wr_policy, reserved),
                          WR_STATUS_OK, set_it);
  check_grown_input_sizes(&got, offsetof(wr_policy, disaggregate), sizeof got, offsetof(wr_policy, reserved),
                          WR_STATUS_OK, to_json_it);
  check_grown_output_sizes(&got, offsetof(wr_policy, disaggregate), sizeof got, 0, get_it);
  wr_router_free(shared_router);
}

TESTS(CASE(PoliciesStartFromTheDefaultsAndThoseAreValid), CASE(ValidationNamesEveryFaultAtOnce),
      CASE(EveryEnumerationOutOfRangeIsRefused), CASE(JsonChangesWhatItNamesAndTheRestStays),
      CASE(JsonGoesThereAndBack), CASE(BadJsonLeavesThePolicyAlone), CASE(RoutersSwapPoliciesAndKeepTheOldOneOnAFault))
