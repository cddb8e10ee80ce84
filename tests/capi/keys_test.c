/* 10d Keys, 10e Limits. */
#include "helpers.h"

static const int64_t kSecond = 1000000000;
static const int64_t kWall = 1800000000000000000;
static const char kPepper[] = "a pepper of more than 16 bytes";

static int equals(wr_str got, const char* wanted) {
  return got.size == strlen(wanted) && (got.size == 0 || memcmp(got.data, wanted, got.size) == 0);
}
static wr_keys* new_keys(void) {
  wr_keys* keys = NULL;
  CHECK_OK(wr_keys_new(NULL, &keys, NULL));
  CHECK_OK(wr_keys_add_pepper(keys, 1, text(kPepper), NULL));
  return keys;
}
static wr_key_digest digest_of(const char* key) {
  wr_key_digest digest = WR_KEY_DIGEST_INIT;
  CHECK_OK(wr_key_digest_of(text(key), WR_KEY_DIGEST_HMAC_SHA256, 1, text(kPepper), &digest, NULL));
  return digest;
}
static wr_key_record record_of(const char* id, uint64_t version, const wr_key_digest* digest) {
  wr_key_record r = WR_KEY_RECORD_INIT;
  r.public_id = text(id);
  r.team_id = text("blue");
  r.version = version;
  r.digests = digest;
  r.digest_count = 1;
  return r;
}
static uint32_t verdict_at(wr_keys* keys, const char* key, int64_t steady_ns, int64_t wall_ns) {
  wr_key_lookup* lookup = NULL;
  wr_key_grant grant = WR_KEY_GRANT_INIT;
  CHECK_OK(wr_key_lookup_new(&lookup, NULL));
  CHECK_OK(wr_keys_check(keys, lookup, text(key), steady_ns, wall_ns, &grant, NULL));
  wr_key_lookup_free(lookup);
  return grant.verdict;
}
static uint32_t verdict(wr_keys* keys, const char* key) { return verdict_at(keys, key, kSecond, kWall); }

TEST(AKeyIsAcceptedBySecretAndNamesItsTeam) {
  wr_keys* keys = new_keys();
  wr_key_lookup* lookup = NULL;
  wr_key_grant grant = WR_KEY_GRANT_INIT;
  wr_key_digest digest = digest_of("sk-abc-secretsecretsecret");
  const wr_key_record record = record_of("abc", 3, &digest);
  CHECK_OK(wr_keys_replace(keys, 7, &record, 1, sizeof record, kSecond, NULL));
  CHECK_OK(wr_key_lookup_new(&lookup, NULL));
  CHECK_OK(wr_keys_check(keys, lookup, text("sk-abc-secretsecretsecret"), kSecond, kWall, &grant, NULL));
  CHECK_EQ(grant.verdict, WR_KEY_VERDICT_ACCEPTED);
  CHECK(equals(grant.key_id, "abc") && equals(grant.team_id, "blue"));
  CHECK_EQ(grant.version, 3);
  CHECK_EQ(grant.generation, 7);
  CHECK_EQ(wr_key_verdict_status(grant.verdict), 200);
  CHECK_OK(wr_keys_check(keys, lookup, text("sk-abc-anothersecret"), kSecond, kWall, &grant, NULL));
  CHECK_EQ(grant.verdict, WR_KEY_VERDICT_WRONG_SECRET);
  CHECK(equals(grant.key_id, "") && equals(grant.team_id, "") && grant.version == 0);
  CHECK_EQ(wr_key_verdict_status(grant.verdict), 401);
  CHECK_TEXT(wr_key_verdict_name(grant.verdict), "wrong_secret");
  CHECK_EQ(verdict(keys, "sk-xyz-secretsecretsecret"), WR_KEY_VERDICT_UNKNOWN);
  CHECK_EQ(verdict(keys, ""), WR_KEY_VERDICT_MALFORMED);
  wr_key_lookup_free(lookup);
  wr_keys_free(keys);
}

TEST(SeveralDigestsWithWindowsAreARotation) {
  wr_keys* keys = new_keys();
  wr_key_digest digests[2];
  wr_key_record record;
  digests[0] = digest_of("sk-abc-oldoldoldoldold");
  digests[0].not_after_wall_ns = kWall + kSecond;
  digests[1] = digest_of("sk-abc-newnewnewnewnew");
  digests[1].not_before_wall_ns = kWall;
  record = record_of("abc", 1, digests);
  record.digest_count = 2;
  CHECK_OK(wr_keys_replace(keys, 1, &record, 1, sizeof record, kSecond, NULL));
  CHECK_EQ(verdict(keys, "sk-abc-oldoldoldoldold"), WR_KEY_VERDICT_ACCEPTED);
  CHECK_EQ(verdict(keys, "sk-abc-newnewnewnewnew"), WR_KEY_VERDICT_ACCEPTED);
  CHECK_EQ(verdict_at(keys, "sk-abc-newnewnewnewnew", kSecond, kWall - 1), WR_KEY_VERDICT_NOT_YET_VALID);
  CHECK_EQ(verdict_at(keys, "sk-abc-oldoldoldoldold", kSecond, kWall + kSecond), WR_KEY_VERDICT_EXPIRED);
  wr_keys_free(keys);
}

TEST(RevocationsHoldAgainstWhatIsNotNewer) {
  wr_keys* keys = new_keys();
  wr_keys_statistics s = WR_KEYS_STATISTICS_INIT;
  wr_key_digest digest = digest_of("sk-abc-secretsecretsecret");
  wr_key_record record = record_of("abc", 1, &digest), change;
  CHECK_OK(wr_keys_replace(keys, 1, &record, 1, sizeof record, kSecond, NULL));
  CHECK_OK(wr_keys_revoke(keys, text("abc"), 1, NULL));
  CHECK_EQ(verdict(keys, "sk-abc-secretsecretsecret"), WR_KEY_VERDICT_REVOKED);
  CHECK_OK(wr_keys_replace(keys, 2, &record, 1, sizeof record, 2 * kSecond, NULL));
  CHECK_EQ(verdict(keys, "sk-abc-secretsecretsecret"), WR_KEY_VERDICT_REVOKED);
  CHECK_OK(wr_keys_read_statistics(keys, 5 * kSecond, &s, NULL));
  CHECK_EQ(s.generation, 2);
  CHECK_EQ(s.keys, 0);
  CHECK_EQ(s.revoked, 1);
  CHECK_EQ(s.age_ns, 3 * kSecond);
  CHECK_EQ(s.stale, 0);
  CHECK(s.bytes > 0);
  change = record_of("abc", 2, &digest);
  CHECK_STATUS(wr_keys_apply(keys, 1, 3, &change, 1, sizeof change, 2 * kSecond, NULL), WR_STATUS_STALE);
  CHECK_OK(wr_keys_apply(keys, 2, 3, &change, 1, sizeof change, 2 * kSecond, NULL));
  CHECK_EQ(verdict(keys, "sk-abc-secretsecretsecret"), WR_KEY_VERDICT_ACCEPTED);
  CHECK_STATUS(wr_keys_replace(keys, 3, &record, 1, sizeof record, kSecond, NULL), WR_STATUS_STALE);
  CHECK_STATUS(wr_keys_roll_back(keys, 2, 1, &change, 1, sizeof change, kSecond, NULL), WR_STATUS_STALE);
  CHECK_OK(wr_keys_roll_back(keys, 3, 1, &change, 1, sizeof change, 2 * kSecond, NULL));
  CHECK_OK(wr_keys_read_statistics(keys, 5 * kSecond, &s, NULL));
  CHECK_EQ(s.generation, 1);
  CHECK_STATUS(wr_keys_confirm(keys, 9, kSecond, NULL), WR_STATUS_STALE);
  CHECK_OK(wr_keys_confirm(keys, 1, 5 * kSecond, NULL));
  CHECK_OK(wr_keys_read_statistics(keys, 5 * kSecond, &s, NULL));
  CHECK_EQ(s.age_ns, 0);
  CHECK_OK(wr_keys_revoke(keys, text("abc"), WR_REVOKED_FOREVER, NULL));
  CHECK_EQ(verdict(keys, "sk-abc-secretsecretsecret"), WR_KEY_VERDICT_REVOKED);
  wr_keys_free(keys);
}

TEST(ASetThatIsTooOldRefusesIfPolicySaysSo) {
  wr_keys* keys = NULL;
  wr_keys_options options = WR_KEYS_OPTIONS_INIT;
  wr_keys_statistics s = WR_KEYS_STATISTICS_INIT;
  wr_key_digest digest = digest_of("sk-abc-secretsecretsecret");
  const wr_key_record record = record_of("abc", 1, &digest);
  options.max_age_ns = kSecond;
  options.on_stale = WR_STALE_KEYS_REFUSE;
  CHECK_OK(wr_keys_new(&options, &keys, NULL));
  CHECK_OK(wr_keys_replace(keys, 1, &record, 1, sizeof record, kSecond, NULL));
  CHECK_EQ(verdict_at(keys, "sk-abc-secretsecretsecret", kSecond, kWall), WR_KEY_VERDICT_NO_PEPPER);
  CHECK_OK(wr_keys_add_pepper(keys, 1, text(kPepper), NULL));
  CHECK_EQ(verdict_at(keys, "sk-abc-secretsecretsecret", 2 * kSecond, kWall), WR_KEY_VERDICT_ACCEPTED);
  CHECK_EQ(verdict_at(keys, "sk-abc-secretsecretsecret", 3 * kSecond, kWall), WR_KEY_VERDICT_STALE_SET);
  CHECK_OK(wr_keys_read_statistics(keys, 3 * kSecond, &s, NULL));
  CHECK_EQ(s.stale, 1);
  CHECK_EQ(wr_key_verdict_status(WR_KEY_VERDICT_STALE_SET), 503);
  CHECK_OK(wr_keys_set_max_age(keys, 0, WR_STALE_KEYS_KEEP_SERVING, NULL));
  CHECK_EQ(verdict_at(keys, "sk-abc-secretsecretsecret", 3 * kSecond, kWall), WR_KEY_VERDICT_ACCEPTED);
  CHECK_STATUS(wr_keys_set_max_age(keys, 0, WR_STALE_KEYS_REFUSE_NEW + 1, NULL), WR_STATUS_OUT_OF_RANGE);
  wr_keys_free(keys);
}

TEST(KeysRefuseWhatTheyCannotTake) {
  wr_keys* keys = new_keys();
  wr_keys* none = NULL;
  wr_key_lookup* lookup = NULL;
  wr_keys_options options = WR_KEYS_OPTIONS_INIT;
  wr_key_grant grant = WR_KEY_GRANT_INIT;
  wr_key_digest digest = digest_of("sk-abc-secretsecretsecret");
  wr_key_record record = record_of("abc", 1, &digest);
  wr_keys_statistics s = WR_KEYS_STATISTICS_INIT;
  wr_error err = WR_ERROR_INIT;
  CHECK_OK(wr_key_lookup_new(&lookup, NULL));
  options.on_stale = 3;
  CHECK_STATUS(wr_keys_new(&options, &none, &err), WR_STATUS_OUT_OF_RANGE);
  options.on_stale = 0;
  options.abi_version = 77;
  CHECK_STATUS(wr_keys_new(&options, &none, &err), WR_STATUS_ABI_MISMATCH);
  CHECK_STATUS(wr_keys_new(NULL, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_key_lookup_new(NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_keys_add_pepper(keys, 2, text("short"), &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_keys_add_pepper(keys, 1, text("another pepper of 16 bytes"), &err), WR_STATUS_ALREADY_EXISTS);
  CHECK_STATUS(wr_keys_replace(keys, 1, NULL, 1, sizeof record, 0, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_keys_replace(keys, 1, &record, 2, 8, 0, &err), WR_STATUS_INVALID_ARGUMENT);
  digest.kind = 3;
  CHECK_STATUS(wr_keys_replace(keys, 1, &record, 1, sizeof record, 0, &err), WR_STATUS_OUT_OF_RANGE);
  digest.kind = 0;
  record.digest_count = 2;
  record.digest_stride = 3;
  CHECK_STATUS(wr_keys_replace(keys, 1, &record, 1, sizeof record, 0, &err), WR_STATUS_INVALID_ARGUMENT);
  record = record_of("abc", 1, &digest);
  record.public_id = text("");
  CHECK_STATUS(wr_keys_replace(keys, 1, &record, 1, sizeof record, 0, &err), WR_STATUS_INVALID_ARGUMENT);
  record.team_id = bad_text();
  CHECK_STATUS(wr_keys_replace(keys, 1, &record, 1, sizeof record, 0, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_keys_read_statistics(keys, 0, &s, NULL));
  CHECK_EQ(s.generation, 0);
  CHECK_EQ(s.age_ns, INT64_MAX);
  CHECK_EQ(s.stale, 0); /* no limit */
  CHECK_STATUS(wr_keys_check(keys, NULL, text("x"), 0, 0, &grant, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_keys_check(keys, lookup, bad_text(), 0, 0, &grant, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_keys_revoke(keys, text(""), 1, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_key_digest_of(text("nodash"), 0, 1, text(kPepper), &digest, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_key_digest_of(text("a-b"), 3, 1, text(kPepper), &digest, &err), WR_STATUS_OUT_OF_RANGE);
  wr_key_lookup_free(lookup);
  wr_key_lookup_free(NULL);
  wr_keys_free(keys);
  wr_keys_free(NULL);
}

static wr_keys* shared_keys;
static wr_status try_keys_options(const void* options) {
  wr_keys* keys = NULL;
  const wr_status status = wr_keys_new(options, &keys, NULL);
  wr_keys_free(keys);
  return status;
}
static wr_status try_key_record(const void* record) {
  static uint64_t generation;
  return wr_keys_replace(shared_keys, ++generation, record, 1, sizeof(wr_key_record), 0, NULL);
}
static wr_status try_digest(const void* digest) {
  const wr_key_record record = record_of("abc", 1, digest);
  return try_key_record(&record);
}
static wr_status fill_grant(void* out) {
  wr_key_lookup* lookup = NULL;
  wr_status status;
  CHECK_OK(wr_key_lookup_new(&lookup, NULL));
  status = wr_keys_check(shared_keys, lookup, text("a-b-c"), 0, 0, out, NULL);
  wr_key_lookup_free(lookup);
  return status;
}
static wr_status fill_keys_statistics(void* out) { return wr_keys_read_statistics(shared_keys, 0, out, NULL); }
static wr_status fill_digest(void* out) {
  return wr_key_digest_of(text("a-b-cccccccc"), WR_KEY_DIGEST_SHA256_SECRET, 0, text(""), out, NULL);
}
TEST(StructsOfKeysMayBeOfOtherSizes) {
  const wr_keys_options options = WR_KEYS_OPTIONS_INIT;
  const wr_key_digest digest = digest_of("sk-abc-secretsecretsecret");
  const wr_key_record record = record_of("abc", 1, &digest);
  const wr_key_grant grant = WR_KEY_GRANT_INIT;
  const wr_keys_statistics statistics = WR_KEYS_STATISTICS_INIT;
  shared_keys = new_keys();
  check_input_sizes(&options, sizeof options, offsetof(wr_keys_options, reserved), WR_STATUS_OK, try_keys_options);
  check_input_sizes(&record, sizeof record, offsetof(wr_key_record, reserved), WR_STATUS_OK, try_key_record);
  check_input_sizes(&digest, sizeof digest, offsetof(wr_key_digest, reserved), WR_STATUS_OK, try_digest);
  check_output_sizes(&grant, sizeof grant, 1, fill_grant);
  check_output_sizes(&statistics, sizeof statistics, 1, fill_keys_statistics);
  check_output_sizes(&digest, sizeof digest, 1, fill_digest);
  wr_keys_free(shared_keys);
}

/* ---- 10e */

static wr_limits* limits;
static wr_scope key_scope, team_scope;

static wr_limit_spec spec_of(const char* name, uint32_t kind, uint32_t unit, int64_t amount) {
  wr_limit_spec s = WR_LIMIT_SPEC_INIT;
  s.name = text(name);
  s.kind = kind;
  s.unit = unit;
  s.amount = amount;
  return s;
}
/* A key of 3 requests a minute in a team of 100 output tokens a month. */
static void begin_limits(void) {
  const wr_limit_spec rpm = spec_of("rpm", WR_LIMIT_RATE, WR_LIMIT_REQUESTS, 3);
  wr_limit_spec month = spec_of("month", WR_LIMIT_BUDGET, WR_LIMIT_OUTPUT_TOKENS, 100);
  month.hard_stop = 1;
  CHECK_OK(wr_limits_new(NULL, &limits, NULL));
  CHECK_OK(wr_limits_set_default(limits, text("key"), &rpm, 1, sizeof rpm, NULL));
  CHECK_OK(wr_limits_scope(limits, text("key"), text("abc"), &key_scope, NULL));
  CHECK_OK(wr_limits_scope(limits, text("team"), text("blue"), &team_scope, NULL));
  CHECK_OK(wr_limits_set(limits, team_scope, &month, 1, sizeof month, NULL));
}
static wr_limit_decision reserve(int64_t output, int64_t steady_ns) {
  wr_limit_decision d = WR_LIMIT_DECISION_INIT;
  wr_limit_use use = WR_LIMIT_USE_INIT;
  wr_scope scopes[2];
  scopes[0] = key_scope;
  scopes[1] = team_scope;
  use.output_tokens = output;
  CHECK_OK(wr_limits_reserve(limits, scopes, 2, &use, steady_ns, kWall, &d, NULL));
  return d;
}
static int64_t charged(wr_scope scope, const char* name) {
  int64_t amount = -1;
  CHECK_OK(wr_limits_used(limits, scope, text(name), kSecond, kWall, &amount, NULL));
  return amount;
}

TEST(ARequestReservesAndSettlesWhatItUsed) {
  wr_limit_decision d;
  wr_limit_use actual = WR_LIMIT_USE_INIT;
  wr_limits_statistics s = WR_LIMITS_STATISTICS_INIT;
  begin_limits();
  d = reserve(60, kSecond);
  CHECK_EQ(d.outcome, WR_LIMIT_ALLOWED);
  CHECK(d.ticket != 0);
  CHECK_EQ(d.may_stop, 1); /* the month's */
  CHECK_EQ(d.scope, WR_NO_SCOPE);
  CHECK_EQ(d.left[WR_LIMIT_REQUESTS].amount, 3);
  CHECK_EQ(d.left[WR_LIMIT_REQUESTS].remaining, 2);
  CHECK_EQ(d.left[WR_LIMIT_OUTPUT_TOKENS].remaining, 40);
  CHECK_EQ(d.left[WR_LIMIT_INPUT_TOKENS].amount, -1);
  CHECK_EQ(charged(team_scope, "month"), 60);
  actual.output_tokens = 25;
  CHECK_OK(wr_limits_settle(limits, d.ticket, &actual, kSecond, kWall));
  CHECK_EQ(charged(team_scope, "month"), 25);
  CHECK_STATUS(wr_limits_settle(limits, d.ticket, &actual, kSecond, kWall), WR_STATUS_STALE);
  d = reserve(10, kSecond);
  CHECK_OK(wr_limits_settle(limits, d.ticket, NULL, kSecond, kWall)); /* as estimated */
  CHECK_EQ(charged(team_scope, "month"), 35);
  d = reserve(10, kSecond);
  CHECK_OK(wr_limits_extend(limits, d.ticket, kSecond));
  CHECK_OK(wr_limits_release(limits, d.ticket, kSecond, kWall));
  CHECK_STATUS(wr_limits_extend(limits, d.ticket, kSecond), WR_STATUS_STALE);
  CHECK_STATUS(wr_limits_release(limits, d.ticket, kSecond, kWall), WR_STATUS_STALE);
  CHECK_EQ(charged(team_scope, "month"), 35);
  CHECK_OK(wr_limits_read_statistics(limits, &s, NULL));
  CHECK_EQ(s.allowed, 3);
  CHECK_EQ(s.stale, 3);
  CHECK_EQ(s.open, 0);
  wr_limits_free(limits);
}

static wr_limit_decision denied;
static wr_status headers_of_denied(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_limit_headers(&denied, buf, cap, needed, err);
}
static wr_status name_of_denied(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_limits_name(limits, denied.scope, denied.limit, buf, cap, needed, err);
}
static wr_status dimension_of_denied(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_limits_scope_dimension(limits, denied.scope, buf, cap, needed, err);
}
static wr_status value_of_denied(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_limits_scope_value(limits, denied.scope, buf, cap, needed, err);
}
static void check_text_result(giving_call call, const char* wanted) {
  size_t size = 0;
  char* got = check_two_calls(call, &size);
  CHECK_TEXT(got, wanted);
  CHECK_EQ(size, strlen(wanted) + 1);
  free(got);
}
TEST(ADenialNamesTheLimitAndWhatHealsIt) {
  int i;
  begin_limits();
  for (i = 0; i < 3; ++i) CHECK_EQ(reserve(1, kSecond).outcome, WR_LIMIT_ALLOWED);
  denied = reserve(1, kSecond);
  CHECK_EQ(denied.outcome, WR_LIMIT_RATE_EXCEEDED);
  CHECK_EQ(denied.ticket, 0);
  CHECK_EQ(denied.scope, key_scope);
  CHECK_EQ(denied.retry_after_ns, 20 * kSecond);
  CHECK_EQ(wr_limit_status(denied.outcome, 402), 429);
  check_text_result(name_of_denied, "rpm");
  check_text_result(dimension_of_denied, "key");
  check_text_result(value_of_denied, "abc");
  check_text_result(headers_of_denied,
                    "x-ratelimit-limit-requests: 3\r\nx-ratelimit-remaining-requests: 0\r\n"
                    "x-ratelimit-reset-requests: 1m0s\r\nx-ratelimit-limit-output-tokens: 100\r\n"
                    "x-ratelimit-remaining-output-tokens: 97\r\nx-ratelimit-reset-output-tokens: "
                    "400h0m0s\r\nretry-after: 20\r\n");
  denied = reserve(98, 100 * kSecond);
  CHECK_EQ(denied.outcome, WR_LIMIT_BUDGET_EXCEEDED);
  CHECK_EQ(denied.scope, team_scope);
  CHECK_EQ(denied.retry_after_ns, -1);
  CHECK(denied.reset_ns > 0);
  CHECK_EQ(wr_limit_status(denied.outcome, 402), 402);
  CHECK_EQ(reserve(101, 100 * kSecond).outcome, WR_LIMIT_LARGER_THAN_LIMIT);
  wr_limits_free(limits);
}

TEST(AStreamIsStoppedWhenAHardBudgetIsGone) {
  wr_limit_decision d, other;
  wr_limit_use so_far = WR_LIMIT_USE_INIT;
  uint32_t stop = 7;
  begin_limits();
  d = reserve(50, kSecond);
  other = reserve(40, kSecond);
  CHECK(other.ticket != 0);
  so_far.output_tokens = 50;
  CHECK_OK(wr_limits_progress(limits, d.ticket, &so_far, kSecond, kWall, &stop));
  CHECK_EQ(stop, 0);
  so_far.output_tokens = 70;
  CHECK_OK(wr_limits_progress(limits, d.ticket, &so_far, kSecond, kWall, &stop));
  CHECK_EQ(stop, 1);
  CHECK_OK(wr_limits_settle(limits, d.ticket, &so_far, kSecond, kWall));
  stop = 7;
  CHECK_STATUS(wr_limits_progress(limits, d.ticket, &so_far, kSecond, kWall, &stop), WR_STATUS_STALE);
  CHECK_EQ(stop, 7);
  CHECK_STATUS(wr_limits_progress(limits, d.ticket, NULL, kSecond, kWall, &stop), WR_STATUS_INVALID_ARGUMENT);
  wr_limits_free(limits);
}

TEST(LeasesThatEndFreeTheirPlaces) {
  const wr_limit_spec at_once = spec_of("at-once", WR_LIMIT_CONCURRENCY, WR_LIMIT_REQUESTS, 1);
  wr_limits_options options = WR_LIMITS_OPTIONS_INIT;
  wr_limits_statistics s = WR_LIMITS_STATISTICS_INIT;
  wr_limit_decision d = WR_LIMIT_DECISION_INIT;
  wr_scope scope = 0;
  size_t ended = 7;
  options.lease_ns = kSecond;
  options.orphans = WR_ORPHANS_REFUND;
  CHECK_OK(wr_limits_new(&options, &limits, NULL));
  CHECK_OK(wr_limits_scope(limits, text("key"), text("abc"), &scope, NULL));
  CHECK_OK(wr_limits_set(limits, scope, &at_once, 1, sizeof at_once, NULL));
  CHECK_OK(wr_limits_reserve(limits, &scope, 1, NULL, kSecond, kWall, &d, NULL));
  CHECK_EQ(d.outcome, WR_LIMIT_ALLOWED);
  CHECK_OK(wr_limits_reserve(limits, &scope, 1, NULL, kSecond, kWall, &d, NULL));
  CHECK_EQ(d.outcome, WR_LIMIT_TOO_MANY_AT_ONCE);
  CHECK_OK(wr_limits_advance(limits, SIZE_MAX, 3 * kSecond, kWall, &ended, NULL));
  CHECK_EQ(ended, 1);
  CHECK_OK(wr_limits_reserve(limits, &scope, 1, NULL, 3 * kSecond, kWall, &d, NULL));
  CHECK_EQ(d.outcome, WR_LIMIT_ALLOWED);
  CHECK_OK(wr_limits_read_statistics(limits, &s, NULL));
  CHECK_EQ(s.expired, 1);
  CHECK_EQ(s.denied, 1);
  CHECK_EQ(s.open, 1);
  wr_limits_free(limits);
}

TEST(LimitsRefuseWhatTheyCannotTake) {
  wr_limits* none = NULL;
  wr_limits_options options = WR_LIMITS_OPTIONS_INIT;
  wr_limit_spec specs[9];
  wr_limit_decision d = WR_LIMIT_DECISION_INIT;
  wr_scope scope = 77;
  wr_error err = WR_ERROR_INIT;
  int64_t amount = -7;
  size_t i, needed;
  begin_limits();
  for (i = 0; i < 9; ++i) specs[i] = spec_of("same", WR_LIMIT_RATE, WR_LIMIT_REQUESTS, 1);
  options.orphans = 2;
  CHECK_STATUS(wr_limits_new(&options, &none, &err), WR_STATUS_OUT_OF_RANGE);
  options.orphans = 0;
  options.abi_version = 0;
  CHECK_STATUS(wr_limits_new(&options, &none, &err), WR_STATUS_ABI_MISMATCH);
  CHECK_STATUS(wr_limits_new(NULL, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_limits_scope(limits, text(""), text("x"), &scope, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(scope, 77);
  CHECK_STATUS(wr_limits_set(limits, 12345, specs, 1, sizeof specs[0], &err), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_limits_set(limits, key_scope, specs, 2, sizeof specs[0], &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_limits_set(limits, key_scope, specs, 9, sizeof specs[0], &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_limits_set(limits, key_scope, specs, 2, 8, &err), WR_STATUS_INVALID_ARGUMENT);
  specs[0].kind = 3;
  CHECK_STATUS(wr_limits_set_default(limits, text("key"), specs, 1, sizeof specs[0], &err), WR_STATUS_OUT_OF_RANGE);
  specs[0] = spec_of("zone", WR_LIMIT_BUDGET, WR_LIMIT_REQUESTS, 1);
  specs[0].time_zone = text("Nowhere/At_All");
  CHECK_STATUS(wr_limits_set(limits, key_scope, specs, 1, sizeof specs[0], &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_limits_used(limits, key_scope, text("none"), 0, 0, &amount, &err), WR_STATUS_NOT_FOUND);
  CHECK_EQ(amount, -7);
  CHECK_STATUS(wr_limits_name(limits, key_scope, 1, NULL, 0, &needed, &err), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_limits_scope_value(limits, 12345, NULL, 0, &needed, &err), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_limits_reserve(limits, NULL, 1, NULL, 0, 0, &d, &err), WR_STATUS_INVALID_ARGUMENT);
  scope = 12345;
  CHECK_OK(wr_limits_reserve(limits, &scope, 1, NULL, 0, 0, &d, &err)); /* a verdict */
  CHECK_EQ(d.outcome, WR_LIMIT_INVALID);
  CHECK_EQ(wr_limit_status(d.outcome, 402), 500);
  CHECK_STATUS(wr_limits_settle(NULL, 1, NULL, 0, 0), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_limits_settle(limits, 0, NULL, 0, 0), WR_STATUS_STALE);
  CHECK_STATUS(wr_limit_headers(NULL, NULL, 0, &needed, &err), WR_STATUS_INVALID_ARGUMENT);
  wr_limits_free(limits);
  wr_limits_free(NULL);
}

static wr_status try_limits_options(const void* options) {
  wr_limits* made = NULL;
  const wr_status status = wr_limits_new(options, &made, NULL);
  wr_limits_free(made);
  return status;
}
static wr_status try_spec(const void* spec) {
  return wr_limits_set(limits, key_scope, spec, 1, sizeof(wr_limit_spec), NULL);
}
static wr_status try_use(const void* use) {
  wr_limit_decision d = WR_LIMIT_DECISION_INIT;
  wr_limit_use estimate = WR_LIMIT_USE_INIT;
  wr_status status;
  CHECK_OK(wr_limits_reserve(limits, &team_scope, 1, &estimate, 0, 0, &d, NULL));
  status = wr_limits_settle(limits, d.ticket, use, 0, 0);
  if (status != WR_STATUS_OK) CHECK_OK(wr_limits_release(limits, d.ticket, 0, 0)); /* it was not settled */
  return status;
}
static wr_status fill_decision(void* out) { return wr_limits_reserve(limits, &team_scope, 1, NULL, 0, 0, out, NULL); }
static wr_status try_decision(const void* decision) {
  size_t needed;
  return wr_limit_headers(decision, NULL, 0, &needed, NULL);
}
static wr_status fill_limits_statistics(void* out) { return wr_limits_read_statistics(limits, out, NULL); }
TEST(StructsOfLimitsMayBeOfOtherSizes) {
  const wr_limits_options options = WR_LIMITS_OPTIONS_INIT;
  const wr_limit_spec spec = spec_of("rpm", WR_LIMIT_RATE, WR_LIMIT_REQUESTS, 5);
  const wr_limit_use use = WR_LIMIT_USE_INIT;
  const wr_limit_decision decision = WR_LIMIT_DECISION_INIT;
  const wr_limits_statistics statistics = WR_LIMITS_STATISTICS_INIT;
  begin_limits();
  check_input_sizes(&options, sizeof options, offsetof(wr_limits_options, reserved), WR_STATUS_OK, try_limits_options);
  check_input_sizes(&spec, sizeof spec, offsetof(wr_limit_spec, reserved), WR_STATUS_OK, try_spec);
  check_input_sizes(&use, sizeof use, offsetof(wr_limit_use, reserved), WR_STATUS_OK, try_use);
  check_output_sizes(&decision, sizeof decision, 1, fill_decision);
  check_input_sizes(&decision, sizeof decision, offsetof(wr_limit_decision, reserved), WR_STATUS_OK, try_decision);
  check_output_sizes(&statistics, sizeof statistics, 1, fill_limits_statistics);
  wr_limits_free(limits);
}

TESTS(CASE(AKeyIsAcceptedBySecretAndNamesItsTeam), CASE(SeveralDigestsWithWindowsAreARotation),
      CASE(RevocationsHoldAgainstWhatIsNotNewer), CASE(ASetThatIsTooOldRefusesIfPolicySaysSo),
      CASE(KeysRefuseWhatTheyCannotTake), CASE(StructsOfKeysMayBeOfOtherSizes),
      CASE(ARequestReservesAndSettlesWhatItUsed), CASE(ADenialNamesTheLimitAndWhatHealsIt),
      CASE(AStreamIsStoppedWhenAHardBudgetIsGone), CASE(LeasesThatEndFreeTheirPlaces),
      CASE(LimitsRefuseWhatTheyCannotTake), CASE(StructsOfLimitsMayBeOfOtherSizes))
