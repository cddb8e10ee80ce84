/* 11 Control: signatures, snapshots, the applier, the file source, the hand-over. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

static const int64_t kSecond = 1000000000;
static const int64_t kWall = 1800000000000000000;
static const char kKey[] = "sk-k1-secretsecretsecret";
static char directory[64], file[128], journal_directory[128], kept[128];

static int equals(wr_str got, const char* wanted) {
  return got.size == strlen(wanted) && (got.size == 0 || memcmp(got.data, wanted, got.size) == 0);
}
static int holds(const char* text_, const char* part) { return strstr(text_, part) != NULL; }

static void new_directory(void) {
  strcpy(directory, "capi_control_XXXXXX");
  CHECK(mkdtemp(directory) != NULL);
  snprintf(file, sizeof file, "%s/snapshot", directory);
  snprintf(kept, sizeof kept, "%s/kept", directory);
  snprintf(journal_directory, sizeof journal_directory, "%s/journal", directory);
}
static void remove_folder(const char* folder) {
  char path[512];
  DIR* open = opendir(folder);
  const struct dirent* entry;
  if (open == NULL) return;
  while ((entry = readdir(open)) != NULL) {
    if (entry->d_name[0] == '.') continue;
    CHECK(snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path);
    if (unlink(path) != 0) remove_folder(path);
  }
  CHECK_EQ(closedir(open), 0);
  CHECK_EQ(rmdir(folder), 0);
}
static void spill(const char* path, const char* bytes, size_t size) {
  FILE* out = fopen(path, "wb");
  CHECK(out != NULL);
  CHECK_EQ(fwrite(bytes, 1, size, out), size);
  CHECK_EQ(fclose(out), 0);
}
static void rest(void) {
  const struct timespec moment = {0, 2000000};
  nanosleep(&moment, NULL);
}

/* ---- 11a, 11b */

static wr_signing_key* signer(const char* byte) {
  char seed[WR_SIGNING_SEED_BYTES];
  wr_signing_key* key = NULL;
  const wr_str bytes = {seed, sizeof seed};
  memset(seed, byte[0], sizeof seed);
  CHECK_OK(wr_signing_key_from_seed(bytes, text(byte), &key, NULL));
  return key;
}
/* A snapshot of one key of team "blue"; `extra` are further members. */
static char* payload_of(unsigned generation, unsigned version, int revoked, const char* extra) {
  static const char digits[] = "0123456789abcdef";
  wr_key_digest digest = WR_KEY_DIGEST_INIT;
  char hex[2 * WR_KEY_DIGEST_BYTES + 1];
  char* out = malloc(4096);
  int i;
  CHECK(out != NULL);
  CHECK_OK(wr_key_digest_of(text(kKey), WR_KEY_DIGEST_SHA256_SECRET, 0, text(""), &digest, NULL));
  for (i = 0; i < (int)WR_KEY_DIGEST_BYTES; ++i) {
    hex[2 * i] = digits[digest.bytes[i] >> 4];
    hex[2 * i + 1] = digits[digest.bytes[i] & 15];
  }
  hex[2 * WR_KEY_DIGEST_BYTES] = '\0';
  snprintf(out, 4096,
           "{\"format\": 1, \"generation\": %u, \"issued_at\": \"2027-01-15T%s:%02u:00Z\", \"keys\": [{\"public_id\": "
           "\"k1\", \"key_id\": \"alice\", \"team_id\": \"blue\", \"version\": %u%s%s%s]%s}",
           generation, strstr(extra, "forced_rollback") != NULL ? "09" : "08", generation % 60, version,
           revoked ? ", \"revoked\": true" : ", \"digests\": [{\"kind\": \"sha256_secret\", \"hex\": \"",
           revoked ? "" : hex, revoked ? "}" : "\"}]}", extra);
  return out;
}
static wr_str signed_of(char* payload, const wr_signing_key* key) {
  wr_str out;
  size_t size = 0;
  char* bytes;
  CHECK_OK(wr_snapshot_sign(text(payload), key, NULL, 0, &size, NULL));
  bytes = malloc(size);
  CHECK(bytes != NULL);
  CHECK_OK(wr_snapshot_sign(text(payload), key, bytes, size, &size, NULL));
  free(payload);
  out.data = bytes;
  out.size = size;
  return out;
}
static void free_bytes(wr_str bytes) { free((char*)(uintptr_t)bytes.data); }

static wr_signing_key* told_key;
static wr_verifying_key told_public;
static wr_status private_pem(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_signing_key_pem(told_key, buf, cap, needed, err);
}
static wr_status public_pem(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_verifying_key_pem(&told_public, buf, cap, needed, err);
}
static wr_status signed_hello(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_snapshot_sign(text("hello"), told_key, buf, cap, needed, err);
}

TEST(WhatIsSignedIsBelievedOfThatSignerAlone) {
  wr_verifying_key again = WR_VERIFYING_KEY_INIT, other = WR_VERIFYING_KEY_INIT;
  const wr_verifying_key blank = WR_VERIFYING_KEY_INIT;
  wr_snapshot_trust trust = WR_SNAPSHOT_TRUST_INIT;
  wr_signing_key *copy = NULL, *stranger = NULL;
  wr_error err = WR_ERROR_INIT;
  wr_str payload = WR_STR_INIT, bytes;
  char who[WR_SIGNER_ID_SIZE], *pem, *file_bytes;
  size_t size = 0, i;
  told_key = signer("a");
  told_public = blank;
  CHECK_OK(wr_signing_key_public(told_key, &told_public, NULL));
  CHECK_TEXT(told_public.key_id, "a");
  pem = check_two_calls(private_pem, &size);
  CHECK(holds(pem, "BEGIN PRIVATE KEY"));
  CHECK_OK(wr_signing_key_parse(text(pem), text("a"), &copy, NULL));
  free(pem);
  CHECK_OK(wr_signing_key_public(copy, &again, NULL));
  CHECK(memcmp(&again, &told_public, sizeof again) == 0);
  pem = check_two_calls(public_pem, &size);
  CHECK_OK(wr_verifying_key_parse(text(pem), text("a"), &again, NULL));
  CHECK(memcmp(&again, &told_public, sizeof again) == 0);
  free(pem);

  file_bytes = check_two_calls(signed_hello, &size);
  bytes.data = file_bytes;
  bytes.size = size;
  trust.keys = &told_public;
  trust.key_count = 1;
  CHECK_OK(wr_snapshot_verify(bytes, &trust, &payload, who, NULL));
  CHECK(equals(payload, "hello"));
  CHECK_TEXT(who, "a");
  CHECK_OK(wr_snapshot_verify(bytes, &trust, &payload, NULL, NULL));
  for (i = 0; i < size; ++i) {
    file_bytes[i] ^= 1;
    CHECK(wr_snapshot_verify(bytes, &trust, &payload, who, NULL) != WR_STATUS_OK);
    file_bytes[i] ^= 1;
  }
  CHECK_STATUS(wr_snapshot_verify(bytes, NULL, &payload, who, &err), WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_signing_key_generate(text(""), &stranger, NULL));
  CHECK_OK(wr_signing_key_public(stranger, &other, NULL));
  CHECK(strncmp(other.key_id, "ed25519-", 8) == 0);
  strcpy(other.key_id, "a");
  trust.keys = &other;
  CHECK_STATUS(wr_snapshot_verify(bytes, &trust, &payload, who, &err), WR_STATUS_INVALID_VALUE);
  CHECK_STATUS(wr_snapshot_verify(text("hello"), &trust, &payload, who, &err), WR_STATUS_INVALID_VALUE);
  trust.allow_unsigned = 1;
  CHECK_OK(wr_snapshot_verify(text("hello"), &trust, &payload, who, NULL));
  CHECK_TEXT(who, "");
  trust.keys = NULL;
  CHECK_STATUS(wr_snapshot_verify(bytes, &trust, &payload, who, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_signing_key_parse(text("nonsense"), text(""), &copy, &err), WR_STATUS_MALFORMED);
  CHECK_STATUS(wr_signing_key_generate(text("no spaces"), &copy, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_signing_key_from_seed(text("short"), text(""), &copy, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_verifying_key_parse(text("nonsense"), text(""), &again, &err), WR_STATUS_MALFORMED);
  free(file_bytes);
  wr_signing_key_free(told_key);
  wr_signing_key_free(copy);
  wr_signing_key_free(stranger);
  wr_signing_key_free(NULL);
}

static wr_snapshot* told_snapshot;
static wr_status written(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_snapshot_write(told_snapshot, buf, cap, needed, err);
}
static const char kMore[] =
    ", \"max_age_s\": 60, \"on_expired\": \"deny_new_keys\", \"teams\": [{\"team_id\": \"blue\", \"name\": \"Blue\"}], "
    "\"limits\": [{\"dimension\": \"key\", \"limits\": [{\"name\": \"rpm\", \"kind\": \"rate\", \"unit\": "
    "\"requests\", "
    "\"amount\": 2, \"period_s\": 60}]}, {\"dimension\": \"team\", \"value\": \"blue\", \"limits\": []}], "
    "\"prices\": {\"overrides\": {\"m\": {\"input_cost_per_token\": 1e-6, \"output_cost_per_token\": 2e-6}}}, "
    "\"aliases\": {\"fast\": \"m\"}, \"policy\": {\"beta\": 3}";

TEST(ASnapshotIsReadWhole) {
  wr_snapshot_facts facts = WR_SNAPSHOT_FACTS_INIT;
  wr_key_record key = WR_KEY_RECORD_INIT;
  wr_key_digest digest = WR_KEY_DIGEST_INIT, wanted = WR_KEY_DIGEST_INIT;
  wr_snapshot_limits scope = WR_SNAPSHOT_LIMITS_INIT;
  wr_limit_spec limit = WR_LIMIT_SPEC_INIT;
  wr_policy policy;
  wr_str a = WR_STR_INIT, b = WR_STR_INIT;
  wr_error err = WR_ERROR_INIT;
  char *payload = payload_of(7, 1, 0, kMore), *first, *second;
  size_t size = 0;
  CHECK_OK(wr_snapshot_parse(text(payload), NULL, &told_snapshot, NULL));
  CHECK_OK(wr_snapshot_read_facts(told_snapshot, &facts, NULL));
  CHECK_EQ(facts.generation, 7);
  CHECK_EQ(facts.max_age_ns, 60 * kSecond);
  CHECK_EQ(facts.on_expired, WR_ON_EXPIRED_DENY_NEW_KEYS);
  CHECK_TEXT(wr_on_expired_name(facts.on_expired), "deny_new_keys");
  CHECK_TEXT(wr_on_expired_name(3), "unknown");
  CHECK_EQ(facts.issued_at_wall_ns, kWall + 7 * 60 * kSecond);
  CHECK(facts.keys == 1 && facts.teams == 1 && facts.limits == 2 && facts.aliases == 1 && facts.has_policy == 1);
  CHECK(facts.has_forced_rollback == 0 && facts.price_file.size == 0 && facts.price_overrides.size != 0);
  CHECK_OK(wr_snapshot_read_key(told_snapshot, 0, &key, NULL));
  CHECK(equals(key.public_id, "k1") && equals(key.key_id, "alice") && equals(key.team_id, "blue"));
  CHECK(key.version == 1 && key.revoked == 0 && key.digest_count == 1 && key.digests == NULL);
  CHECK_OK(wr_snapshot_read_digest(told_snapshot, 0, 0, &digest, NULL));
  CHECK_OK(wr_key_digest_of(text(kKey), WR_KEY_DIGEST_SHA256_SECRET, 0, text(""), &wanted, NULL));
  CHECK(memcmp(&digest, &wanted, sizeof digest) == 0);
  CHECK_OK(wr_snapshot_read_team(told_snapshot, 0, &a, &b, NULL));
  CHECK(equals(a, "blue") && equals(b, "Blue"));
  CHECK_OK(wr_snapshot_read_limits(told_snapshot, 0, &scope, NULL));
  CHECK(scope.is_default == 1 && equals(scope.dimension, "key") && scope.limits == 1);
  CHECK_OK(wr_snapshot_read_limits(told_snapshot, 1, &scope, NULL));
  CHECK(scope.is_default == 0 && equals(scope.value, "blue") && scope.limits == 0);
  CHECK_OK(wr_snapshot_read_limit(told_snapshot, 0, 0, &limit, NULL));
  CHECK(equals(limit.name, "rpm") && limit.amount == 2 && limit.period_ns == 60 * kSecond);
  CHECK_OK(wr_snapshot_read_alias(told_snapshot, 0, &a, &b, NULL));
  CHECK(equals(a, "fast") && equals(b, "m"));
  memset(&policy, 0, sizeof policy);
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_snapshot_read_policy(told_snapshot, &policy, NULL));
  CHECK(policy.beta == 3);
  CHECK_STATUS(wr_snapshot_read_key(told_snapshot, 1, &key, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_snapshot_read_digest(told_snapshot, 0, 1, &digest, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_snapshot_read_team(told_snapshot, 1, &a, &b, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_snapshot_read_limits(told_snapshot, 2, &scope, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_snapshot_read_limit(told_snapshot, 1, 0, &limit, &err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_snapshot_read_alias(told_snapshot, 1, &a, &b, &err), WR_STATUS_OUT_OF_RANGE);

  first = check_two_calls(written, &size);
  wr_snapshot_free(told_snapshot);
  CHECK_OK(wr_snapshot_parse(text(first), NULL, &told_snapshot, NULL));
  second = check_two_calls(written, &size);
  CHECK_TEXT(second, first);
  free(first);
  free(second);
  wr_snapshot_free(told_snapshot);
  free(payload);
  payload = payload_of(3, 1, 0, ", \"forced_rollback\": {\"from\": 9, \"reason\": \"wrong prices\"}");
  CHECK_OK(wr_snapshot_parse(text(payload), NULL, &told_snapshot, NULL));
  CHECK_OK(wr_snapshot_read_facts(told_snapshot, &facts, NULL));
  CHECK(facts.has_forced_rollback == 1 && facts.rollback_from == 9 && equals(facts.rollback_reason, "wrong prices"));
  CHECK_STATUS(wr_snapshot_read_policy(told_snapshot, &policy, &err), WR_STATUS_NOT_FOUND);
  wr_snapshot_free(told_snapshot);
  wr_snapshot_free(NULL);
  free(payload);
}

static char faults[1024];
static void note_fault(void* user, wr_str path, wr_str what) {
  CHECK(user == faults && what.size > 0);
  strncat(faults, path.data, path.size);
  strcat(faults, " ");
}
TEST(ABrokenSnapshotIsRefusedWithThePathOfEachFault) {
  static const char kBroken[] =
      "{\"format\": 1, \"generation\": 1, \"issued_at\": \"2027-01-15T08:00:00Z\", \"keys\": [{\"public_id\": \"k1\", "
      "\"version\": 1, \"digests\": [{\"kind\": \"sha256_secret\", \"hex\": \"12\"}]}], \"limits\": [{\"dimension\": "
      "\"key\", \"limits\": [{\"name\": \"x\", \"kind\": \"rate\", \"unit\": \"requests\", \"amount\": -1, "
      "\"period_s\": 60}]}], \"revokd\": true}";
  wr_snapshot_options options = WR_SNAPSHOT_OPTIONS_INIT;
  wr_snapshot* out = NULL;
  wr_error err = WR_ERROR_INIT;
  char* payload = payload_of(1, 1, 0, "");
  size_t i;
  options.fault = note_fault;
  options.fault_user = faults;
  CHECK_STATUS(wr_snapshot_parse(text(kBroken), &options, &out, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(holds(faults, "keys[0].digests[0].hex ") && holds(faults, "limits[0].limits[0]") && holds(faults, "revokd "));
  CHECK(holds(err.message, "keys[0].digests[0].hex"));
  for (i = 0; i < strlen(payload); ++i) { /* half written */
    wr_str part;
    part.data = payload;
    part.size = i;
    CHECK(wr_snapshot_parse(part, NULL, &out, NULL) != WR_STATUS_OK);
  }
  CHECK(out == NULL);
  options.max_bytes = 10;
  CHECK_STATUS(wr_snapshot_parse(text(payload), &options, &out, &err), WR_STATUS_TOO_LARGE);
  CHECK_STATUS(wr_snapshot_parse(text("{"), NULL, &out, &err), WR_STATUS_INVALID_JSON);
  CHECK_STATUS(wr_snapshot_parse(text("[]"), NULL, &out, &err), WR_STATUS_NOT_AN_OBJECT);
  CHECK_STATUS(wr_snapshot_parse(text("{\"format\": 2}"), NULL, &out, &err), WR_STATUS_UNSUPPORTED);
  CHECK_STATUS(wr_snapshot_parse(bad_text(), NULL, &out, &err), WR_STATUS_INVALID_ARGUMENT);
  free(payload);
}

/* ---- 11c, 11d */

static wr_keys* keys;
static wr_limits* limits;
static wr_price_slot* prices;
static wr_router* router;
static wr_applier* applier;
static wr_signing_key* trusted;
static char heard[256];

static wr_status refuse_generation_66(void* user, const wr_snapshot* snapshot, wr_error* err) {
  wr_snapshot_facts facts = WR_SNAPSHOT_FACTS_INIT;
  CHECK(user == heard);
  CHECK_OK(wr_snapshot_read_facts(snapshot, &facts, NULL));
  if (facts.generation != 66) return WR_STATUS_OK;
  strcpy(err->message, "not this one");
  return WR_STATUS_CAPACITY;
}
static void note_applied(void* user, const wr_snapshot* snapshot) {
  wr_snapshot_facts facts = WR_SNAPSHOT_FACTS_INIT;
  wr_control_status status = WR_CONTROL_STATUS_INIT;
  CHECK_OK(wr_snapshot_read_facts(snapshot, &facts, NULL));
  CHECK_OK(wr_applier_read_status(applier, 0, &status, NULL));
  CHECK_EQ(status.generation, facts.generation);
  sprintf((char*)user + strlen(user), "applied %u;", (unsigned)facts.generation);
}
static void note_rollback(void* user, const wr_rollback* r) {
  sprintf((char*)user + strlen(user), "%u to %u by %.*s: %.*s;", (unsigned)r->from, (unsigned)r->to,
          (int)r->signed_by.size, r->signed_by.data, (int)r->reason.size, r->reason.data);
}
static wr_applier* new_applier(void) {
  wr_applier_options options = WR_APPLIER_OPTIONS_INIT;
  wr_snapshot_trust trust = WR_SNAPSHOT_TRUST_INIT;
  wr_verifying_key key = WR_VERIFYING_KEY_INIT;
  wr_applier* out = NULL;
  CHECK_OK(wr_signing_key_public(trusted, &key, NULL));
  trust.keys = &key;
  trust.key_count = 1;
  options.trust = &trust;
  options.directory = text(kept);
  options.keys = keys;
  options.limits = limits;
  options.prices = prices;
  options.router = router;
  options.check = refuse_generation_66;
  options.applied = note_applied;
  options.rolled_back = note_rollback;
  options.user = heard;
  CHECK_OK(wr_applier_new(&options, &out, NULL));
  return out;
}
static void begin_control(void) {
  new_directory();
  trusted = signer("t");
  CHECK_OK(wr_keys_new(NULL, &keys, NULL));
  CHECK_OK(wr_limits_new(NULL, &limits, NULL));
  CHECK_OK(wr_price_slot_new(&prices, NULL));
  router = new_router();
  heard[0] = '\0';
  applier = new_applier();
}
static void end_control(void) {
  wr_applier_free(applier);
  wr_applier_free(NULL);
  wr_router_free(router);
  wr_price_slot_free(prices);
  wr_price_slot_free(NULL);
  wr_limits_free(limits);
  wr_keys_free(keys);
  wr_signing_key_free(trusted);
  remove_folder(directory);
}
static wr_status apply(char* payload, int64_t second, wr_applied* out, wr_error* err) {
  const wr_str bytes = signed_of(payload, trusted);
  const wr_status status = wr_applier_apply(applier, bytes, second * kSecond, kWall + second * kSecond, out, err);
  free_bytes(bytes);
  return status;
}
static uint32_t verdict_at(int64_t second) {
  wr_key_lookup* lookup = NULL;
  wr_key_grant grant = WR_KEY_GRANT_INIT;
  CHECK_OK(wr_key_lookup_new(&lookup, NULL));
  CHECK_OK(wr_keys_check(keys, lookup, text(kKey), second * kSecond, kWall + second * kSecond, &grant, NULL));
  if (grant.verdict == WR_KEY_VERDICT_ACCEPTED) CHECK(equals(grant.team_id, "blue"));
  wr_key_lookup_free(lookup);
  return grant.verdict;
}
static wr_control_status status_at(int64_t second) {
  wr_control_status s = WR_CONTROL_STATUS_INIT;
  CHECK_OK(wr_applier_read_status(applier, second * kSecond, &s, NULL));
  return s;
}
static wr_status gauges(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_applier_prometheus(applier, 5 * kSecond, buf, cap, needed, err);
}

TEST(WhatIsAppliedIsInKeysLimitsPricesAndPolicy) {
  wr_applied applied = WR_APPLIED_INIT;
  wr_price_table *first = NULL, *same = NULL, *next = NULL, *own = NULL;
  wr_limit_decision d = WR_LIMIT_DECISION_INIT;
  wr_usage_report report = WR_USAGE_REPORT_INIT;
  wr_cost cost = WR_COST_INIT;
  wr_policy policy;
  wr_scope scope = 0;
  wr_str key = WR_STR_INIT;
  wr_error err = WR_ERROR_INIT;
  char* page;
  size_t size = 0;
  memset(&policy, 0, sizeof policy);
  policy.struct_size = sizeof policy;
  begin_control();
  CHECK_STATUS(wr_price_slot_get(prices, &first, &err), WR_STATUS_NOT_FOUND);
  CHECK_EQ(verdict_at(1), WR_KEY_VERDICT_UNKNOWN);
  CHECK_EQ(status_at(1).age_ns, INT64_MAX);
  CHECK_OK(apply(payload_of(7, 1, 0, kMore), 1, &applied, &err));
  CHECK(applied.generation == 7 && applied.unchanged == 0 && applied.rolled_back == 0);
  CHECK_TEXT(applied.signed_by, "t");
  CHECK_TEXT(applied.kept_error, "");
  CHECK_TEXT(heard, "applied 7;");
  CHECK_EQ(verdict_at(1), WR_KEY_VERDICT_ACCEPTED);
  CHECK_OK(wr_limits_scope(limits, text("key"), text("alice"), &scope, NULL));
  CHECK_OK(wr_limits_reserve(limits, &scope, 1, NULL, kSecond, kWall, &d, NULL));
  CHECK_EQ(d.left[WR_LIMIT_REQUESTS].amount, 2);
  CHECK_OK(wr_router_get_policy(router, &policy, NULL));
  CHECK(policy.beta == 3);

  /* The same table for everybody, until there is another one; it stays with who has it. */
  CHECK_OK(wr_price_slot_get(prices, &first, NULL));
  CHECK_OK(wr_price_slot_get(prices, &same, NULL));
  CHECK(first == same);
  CHECK_OK(wr_price_table_find(first, text("fast"), text(""), &key, NULL));
  CHECK_STATUS(wr_price_table_set_alias(first, text("x"), text("m"), &err), WR_STATUS_UNSUPPORTED);
  CHECK_STATUS(wr_price_table_override(first, text("{}"), &err), WR_STATUS_UNSUPPORTED);
  report.input_tokens = 1000;
  report.output_tokens = 10;
  CHECK_OK(wr_price_table_cost(first, &report, text("fast"), NULL, &cost, NULL));
  CHECK_EQ(cost.picos, 1020000000);
  CHECK_OK(apply(payload_of(8, 1, 0, ""), 2, NULL, NULL));
  CHECK_OK(wr_price_slot_get(prices, &next, NULL));
  CHECK(next != first);
  CHECK_STATUS(wr_price_table_find(next, text("fast"), text(""), &key, &err), WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_price_table_find(first, text("fast"), text(""), &key, NULL));
  wr_price_table_free(first);
  wr_price_table_free(same);
  wr_price_table_free(next);
  CHECK_OK(wr_price_table_new(&own, NULL));
  CHECK_OK(wr_price_table_set_alias(own, text("x"), text("m"), NULL));
  CHECK_OK(wr_price_slot_set(prices, own, NULL));
  CHECK_STATUS(wr_price_table_set_alias(own, text("y"), text("m"), &err), WR_STATUS_UNSUPPORTED);
  CHECK_OK(wr_price_slot_get(prices, &next, NULL));
  CHECK(next == own);
  wr_price_table_free(next);
  wr_price_table_free(own);
  CHECK_OK(wr_price_slot_set(prices, NULL, NULL));
  CHECK_STATUS(wr_price_slot_get(prices, &next, &err), WR_STATUS_NOT_FOUND);

  page = check_two_calls(gauges, &size);
  CHECK(holds(page, "warmroute_control_generation 8\n") && holds(page, "warmroute_control_age_seconds 3\n"));
  free(page);
  end_control();
}

TEST(WhatIsRefusedChangesNothing) {
  wr_signing_key* stranger = signer("s");
  wr_error err = WR_ERROR_INIT;
  wr_applied applied = WR_APPLIED_INIT;
  char* payload;
  wr_str bytes;
  begin_control();
  CHECK_OK(apply(payload_of(7, 1, 0, ""), 1, NULL, NULL));
  CHECK_STATUS(apply(payload_of(7, 2, 0, ""), 2, NULL, &err), WR_STATUS_STALE);
  CHECK_STATUS(apply(payload_of(6, 2, 0, ""), 2, NULL, &err), WR_STATUS_STALE);
  CHECK_STATUS(apply(payload_of(9, 2, 0, ", \"x\": 1"), 2, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(holds(err.message, "x "));
  CHECK_STATUS(apply(payload_of(66, 2, 1, ""), 2, NULL, &err), WR_STATUS_CAPACITY);
  CHECK(holds(err.message, "not this one"));
  payload = payload_of(9, 2, 1, "");
  CHECK_STATUS(wr_applier_apply(applier, text(payload), 0, kWall, NULL, &err), WR_STATUS_INVALID_VALUE); /* unsigned */
  bytes = signed_of(payload, stranger);
  CHECK_STATUS(wr_applier_apply(applier, bytes, 0, kWall, NULL, &err), WR_STATUS_NOT_FOUND);
  free_bytes(bytes);
  bytes = signed_of(payload_of(9, 2, 1, ""), trusted);
  --bytes.size; /* half written */
  CHECK_STATUS(wr_applier_apply(applier, bytes, 0, kWall, NULL, &err), WR_STATUS_INVALID_VALUE);
  free_bytes(bytes);
  CHECK_EQ(status_at(2).generation, 7);
  CHECK_EQ(status_at(2).refused, 7);
  CHECK_EQ(status_at(2).last_status, WR_STATUS_INVALID_VALUE);
  CHECK(status_at(2).last_error[0] != '\0');
  CHECK_EQ(verdict_at(2), WR_KEY_VERDICT_ACCEPTED);
  CHECK_OK(apply(payload_of(7, 1, 0, ""), 3, &applied, NULL)); /* the same bytes */
  CHECK_EQ(applied.unchanged, 1);
  CHECK_EQ(status_at(3).confirmed, 1);
  CHECK_EQ(status_at(3).age_ns, 0);
  CHECK_OK(wr_applier_confirm(applier, 9 * kSecond, kWall, NULL));
  CHECK_EQ(status_at(10).age_ns, kSecond);
  CHECK_STATUS(wr_applier_confirm(NULL, 0, 0, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_applier_apply(applier, bad_text(), 0, 0, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  wr_signing_key_free(stranger);
  end_control();
}

TEST(ARollBackIsForcedAndRecordedAndTombstonesOutliveItAndARestart) {
  static const char kBack[] = ", \"forced_rollback\": {\"from\": 9, \"reason\": \"wrong prices\"}";
  char again[256] = "";
  uint32_t found = 7;
  size_t count = 0;
  wr_error err = WR_ERROR_INIT;
  wr_applied applied = WR_APPLIED_INIT;
  begin_control();
  CHECK_OK(wr_applier_load_last_good(applier, kSecond, kWall, &found, NULL));
  CHECK_EQ(found, 0);
  CHECK_OK(apply(payload_of(7, 1, 0, ""), 1, NULL, NULL));
  CHECK_OK(apply(payload_of(9, 2, 1, ""), 2, NULL, NULL));
  CHECK_EQ(verdict_at(2), WR_KEY_VERDICT_REVOKED);
  CHECK_OK(apply(payload_of(8, 1, 0, kBack), 3, &applied, &err));
  CHECK_EQ(applied.rolled_back, 1);
  CHECK_EQ(verdict_at(3), WR_KEY_VERDICT_REVOKED);
  CHECK_STATUS(apply(payload_of(6, 1, 0, kBack), 4, NULL, &err), WR_STATUS_STALE);
  CHECK_EQ(status_at(4).top_generation, 9);
  CHECK_EQ(status_at(4).rollbacks, 1);
  CHECK_TEXT(heard, "applied 7;applied 9;applied 8;9 to 8 by t: wrong prices;");

  wr_applier_free(applier); /* a restart */
  wr_keys_free(keys);
  CHECK_OK(wr_keys_new(NULL, &keys, NULL));
  applier = new_applier();
  CHECK_OK(wr_applier_load_last_good(applier, 0, kWall + 60 * kSecond, &found, NULL));
  CHECK_EQ(found, 1);
  CHECK_EQ(status_at(0).generation, 8);
  CHECK_EQ(status_at(0).from_disk, 1);
  CHECK_EQ(status_at(0).age_ns, 57 * kSecond);
  CHECK_EQ(verdict_at(0), WR_KEY_VERDICT_REVOKED);
  CHECK_STATUS(apply(payload_of(9, 1, 0, ""), 61, NULL, &err), WR_STATUS_STALE);
  CHECK_OK(wr_applier_visit_rollbacks(applier, note_rollback, again, &count, NULL));
  CHECK_EQ(count, 1);
  CHECK_TEXT(again, "9 to 8 by t: wrong prices;");
  CHECK_OK(apply(payload_of(10, 3, 0, ""), 62, NULL, NULL)); /* issued anew */
  CHECK_EQ(verdict_at(62), WR_KEY_VERDICT_ACCEPTED);
  CHECK_OK(wr_applier_revoke(applier, text("k1"), WR_REVOKED_FOREVER, NULL));
  CHECK_EQ(verdict_at(62), WR_KEY_VERDICT_REVOKED);
  CHECK_OK(apply(payload_of(11, 99, 0, ""), 63, NULL, NULL));
  CHECK_EQ(verdict_at(63), WR_KEY_VERDICT_REVOKED);
  CHECK_STATUS(wr_applier_revoke(applier, text(""), 1, &err), WR_STATUS_INVALID_ARGUMENT);

  wr_applier_free(applier); /* and a damaged last good one */
  snprintf(again, sizeof again, "%s/last_good", kept);
  spill(again, "{", 1);
  applier = new_applier();
  CHECK(wr_applier_load_last_good(applier, 0, kWall, &found, &err) != WR_STATUS_OK);
  CHECK(holds(err.message, "last good"));
  CHECK_OK(apply(payload_of(12, 100, 0, ""), 64, NULL, NULL));
  CHECK_EQ(verdict_at(64), WR_KEY_VERDICT_REVOKED);
  end_control();
}

TEST(WhatHappensWhenControlIsSilentIsSaidByTheSnapshot) {
  wr_key_lookup* lookup = NULL;
  wr_key_grant grant = WR_KEY_GRANT_INIT;
  begin_control();
  CHECK_OK(apply(payload_of(1, 1, 0, ", \"max_age_s\": 10, \"on_expired\": \"deny_new_keys\""), 1, NULL, NULL));
  CHECK_EQ(status_at(12).expired, 1);
  CHECK_EQ(verdict_at(12), WR_KEY_VERDICT_STALE_SET); /* never accepted before */
  CHECK_EQ(verdict_at(2), WR_KEY_VERDICT_ACCEPTED);
  CHECK_EQ(verdict_at(12), WR_KEY_VERDICT_ACCEPTED);
  CHECK_OK(apply(payload_of(2, 1, 0, ", \"max_age_s\": 10, \"on_expired\": \"deny_all\""), 20, NULL, NULL));
  CHECK_EQ(verdict_at(31), WR_KEY_VERDICT_STALE_SET);
  CHECK_EQ(status_at(31).on_expired, WR_ON_EXPIRED_DENY_ALL);
  CHECK_OK(wr_applier_confirm(applier, 31 * kSecond, kWall, NULL));
  CHECK_EQ(verdict_at(31), WR_KEY_VERDICT_ACCEPTED);
  CHECK_OK(apply(payload_of(3, 1, 0, ", \"max_age_s\": 10, \"on_expired\": \"serve\""), 40, NULL, NULL));
  CHECK_EQ(verdict_at(99), WR_KEY_VERDICT_ACCEPTED);
  CHECK_EQ(status_at(99).expired, 1);
  CHECK_OK(wr_key_lookup_new(&lookup, NULL));
  CHECK_OK(wr_keys_check(keys, lookup, text("sk-k2-x"), 0, kWall, &grant, NULL));
  CHECK_EQ(grant.verdict, WR_KEY_VERDICT_UNKNOWN);
  wr_key_lookup_free(lookup);
  end_control();
}

/* ---- 11e */

static wr_file_source* source;
static volatile int checking;
static void* check_keys(void* argument) {
  wr_key_lookup* lookup = NULL;
  wr_key_grant grant = WR_KEY_GRANT_INIT;
  uint64_t last = 0, turn;
  CHECK_OK(wr_key_lookup_new(&lookup, NULL));
  for (turn = 0; __atomic_load_n(&checking, __ATOMIC_ACQUIRE); ++turn) {
    if (turn % 16 == 0) rest(); /* valgrind lets one thread at a time in */
    CHECK_OK(wr_keys_check(keys, lookup, text(kKey), 0, kWall, &grant, NULL));
    CHECK(grant.verdict == WR_KEY_VERDICT_ACCEPTED || grant.verdict == WR_KEY_VERDICT_REVOKED);
    if (grant.verdict == WR_KEY_VERDICT_ACCEPTED) CHECK(equals(grant.team_id, "blue") && grant.generation >= last);
    if (grant.verdict == WR_KEY_VERDICT_ACCEPTED) last = grant.generation;
  }
  wr_key_lookup_free(lookup);
  return argument;
}
static wr_file_source_status source_status(void) {
  wr_file_source_status s = WR_FILE_SOURCE_STATUS_INIT;
  CHECK_OK(wr_file_source_read_status(source, &s, NULL));
  return s;
}
static void give_time(void* user, int64_t* steady_ns, int64_t* wall_ns) {
  CHECK(user == heard);
  *steady_ns = 5 * kSecond;
  *wall_ns = kWall;
}

TEST(AFileThatIsReplacedIsInForceWhileKeysAreChecked) {
  wr_file_source_options options = WR_FILE_SOURCE_OPTIONS_INIT;
  wr_signing_key* stranger = signer("s");
  pthread_t thread;
  wr_str bytes;
  unsigned generation;
  begin_control();
  options.path = text(file);
  options.interval_ns = 5000000;
  options.clock = give_time;
  options.clock_user = heard;
  CHECK_OK(wr_file_source_new(applier, &options, &source, NULL));
  CHECK_OK(wr_file_source_look_now(source, NULL));
  CHECK_EQ(source_status().missing, 1);
  bytes = signed_of(payload_of(1, 1, 0, ""), trusted);
  CHECK_OK(wr_replace_file(text(file), bytes, 0600, NULL));
  CHECK_OK(wr_file_source_look_now(source, NULL));
  CHECK_EQ(source_status().good, 1);
  free_bytes(bytes);
  checking = 1;
  CHECK_EQ(pthread_create(&thread, NULL, check_keys, NULL), 0);
  for (generation = 2; generation < 10; ++generation) {
    bytes = signed_of(payload_of(generation, 1, 0, ""), trusted);
    spill(file, bytes.data, bytes.size / 2); /* half written, then whole */
    CHECK_OK(wr_file_source_look_now(source, NULL));
    CHECK_EQ(source_status().good, 0);
    CHECK_EQ(status_at(5).generation, generation - 1);
    CHECK_OK(wr_replace_file(text(file), bytes, 0600, NULL));
    while (status_at(5).generation < generation) rest(); /* nobody asks it to look */
    free_bytes(bytes);
  }
  bytes = signed_of(payload_of(90, 9, 1, ""), stranger);
  CHECK_OK(wr_replace_file(text(file), bytes, 0600, NULL));
  CHECK_OK(wr_file_source_look_now(source, NULL));
  CHECK(holds(source_status().last_error, "s"));
  free_bytes(bytes);
  CHECK_EQ(unlink(file), 0);
  CHECK_OK(wr_file_source_look_now(source, NULL));
  CHECK_EQ(source_status().missing, 1);
  CHECK_EQ(status_at(5).generation, 9);
  CHECK_EQ(verdict_at(5), WR_KEY_VERDICT_ACCEPTED);
  bytes = signed_of(payload_of(10, 2, 1, ""), trusted);
  CHECK_OK(wr_replace_file(text(file), bytes, 0600, NULL));
  while (verdict_at(5) != WR_KEY_VERDICT_REVOKED) rest();
  free_bytes(bytes);
  __atomic_store_n(&checking, 0, __ATOMIC_RELEASE);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK_EQ(status_at(5).age_ns, 0);
  wr_file_source_free(source);
  wr_file_source_free(NULL);
  wr_signing_key_free(stranger);
  end_control();
}

static int taken, same;
static wr_status take_bytes(void* user, wr_str bytes, int64_t steady_ns, int64_t wall_ns, wr_error* err) {
  CHECK(user == &taken && steady_ns > 0 && wall_ns > 0);
  if (equals(bytes, "bad")) {
    strcpy(err->message, "this is bad");
    return WR_STATUS_MALFORMED;
  }
  CHECK(equals(bytes, "good"));
  __atomic_store_n(&taken, 1, __ATOMIC_RELEASE);
  return WR_STATUS_OK;
}
static void note_same(void* user, int64_t steady_ns, int64_t wall_ns) {
  CHECK(user == &taken && steady_ns > 0 && wall_ns > 0);
  __atomic_store_n(&same, 1, __ATOMIC_RELEASE);
}
static void note_log(void* user, uint32_t level, wr_str message) {
  CHECK(level <= WR_LOG_ERROR && message.size > 0);
  __atomic_store_n((int*)user, 1, __ATOMIC_RELEASE);
}
TEST(AFileCanBeWatchedForACallback) {
  wr_file_source_options options = WR_FILE_SOURCE_OPTIONS_INIT;
  wr_error err = WR_ERROR_INIT;
  int logged = 0;
  new_directory();
  spill(file, "bad", 3);
  options.path = text(file);
  options.interval_ns = 1000000;
  options.user = &taken;
  CHECK_STATUS(wr_file_source_new(NULL, &options, &source, &err), WR_STATUS_INVALID_ARGUMENT); /* for nobody */
  options.on_bytes = take_bytes;
  options.on_same = note_same;
  options.log = note_log;
  options.log_user = &logged;
  CHECK_OK(wr_file_source_new(NULL, &options, &source, NULL));
  CHECK_OK(wr_file_source_look_now(source, NULL));
  CHECK_TEXT(source_status().last_error, "this is bad");
  CHECK_OK(wr_replace_file(text(file), text("good"), 0644, NULL));
  while (!__atomic_load_n(&taken, __ATOMIC_ACQUIRE) || !__atomic_load_n(&same, __ATOMIC_ACQUIRE)) rest();
  wr_file_source_free(source);
  CHECK(__atomic_load_n(&logged, __ATOMIC_ACQUIRE));
  options.interval_ns = 0;
  options.path = text("");
  CHECK_STATUS(wr_file_source_new(NULL, &options, &source, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(holds(err.message, "path") && holds(err.message, "interval"));
  CHECK_STATUS(wr_file_source_look_now(NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_replace_file(text("no/such/folder/file"), text("x"), 0600, &err), WR_STATUS_IO);
  remove_folder(directory);
}

/* ---- 11f */

static wr_journal* journal;
static wr_handover* handover;
static int refusals = 2, delivered;
static wr_status take_batch(void* user, wr_usage_batch* batch, wr_error* err) {
  wr_journal_record record = WR_JOURNAL_RECORD_INIT;
  char buf[2048];
  size_t i, needed = 0;
  CHECK(user == &delivered);
  if (refusals > 0) {
    --refusals;
    strcpy(err->message, "come again");
    return WR_STATUS_IO;
  }
  for (i = 0; i < wr_usage_batch_count(batch); ++i) {
    CHECK_OK(wr_usage_batch_read(batch, i, &record, NULL));
    CHECK_EQ(record.kind, WR_JOURNAL_END);
    CHECK(equals(record.event->key_id, "alice") && record.event->report->input_tokens == 100 + delivered);
    CHECK_OK(wr_usage_batch_json_line(batch, i, buf, sizeof buf, &needed, NULL));
    CHECK(holds(buf, "alice") && buf[needed - 2] == '\n');
    CHECK_OK(wr_usage_batch_focus_rows(batch, i, buf, sizeof buf, &needed, NULL));
    ++delivered;
  }
  CHECK_STATUS(wr_usage_batch_read(batch, i, &record, err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_usage_batch_json_line(batch, i, NULL, 0, &needed, err), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_usage_batch_focus_rows(batch, i, NULL, 0, &needed, err), WR_STATUS_OUT_OF_RANGE);
  return WR_STATUS_OK;
}
static void add_events(int from, int count) {
  wr_usage_event event = WR_USAGE_EVENT_INIT;
  wr_usage_report report = WR_USAGE_REPORT_INIT;
  uint64_t number = 0;
  event.key_id = text("alice");
  event.report = &report;
  for (; count > 0; --count, ++from) {
    report.input_tokens = 100 + from;
    CHECK_OK(wr_journal_begin(journal, &event, &number, NULL));
    CHECK_OK(wr_journal_end(journal, number, &event, NULL));
  }
}
static wr_status handover_gauges(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_handover_prometheus(handover, buf, cap, needed, err);
}
TEST(AJournalIsHandedOverUntilItIsTaken) {
  wr_handover_options options = WR_HANDOVER_OPTIONS_INIT;
  wr_handover_status s = WR_HANDOVER_STATUS_INIT;
  wr_error err = WR_ERROR_INIT;
  uint32_t drained = 0;
  char line[1024], *page;
  size_t size = 0;
  int lines = 0;
  FILE* in;
  new_directory();
  CHECK_OK(wr_journal_open(text(journal_directory), NULL, &journal, NULL));
  add_events(0, 5);
  options.interval_ns = 1000000;
  options.backoff_from_ns = 1000000;
  options.backoff_to_ns = 2000000;
  CHECK_STATUS(wr_handover_new(journal, &options, &handover, &err), WR_STATUS_INVALID_ARGUMENT); /* to nobody */
  options.deliver = take_batch;
  options.user = &delivered;
  options.batch = 0;
  CHECK_STATUS(wr_handover_new(journal, &options, &handover, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(holds(err.message, "batch"));
  options.batch = 2;
  CHECK_OK(wr_handover_new(journal, &options, &handover, NULL));
  CHECK_OK(wr_handover_drain(handover, 20 * kSecond, &drained, NULL));
  CHECK_EQ(drained, 1);
  CHECK_OK(wr_handover_read_status(handover, &s, NULL));
  CHECK(s.delivered == 5 && s.failures == 2 && s.failures_in_row == 0 && s.acknowledged.segment > 0);
  CHECK_TEXT(s.last_error, "come again");
  CHECK_EQ(delivered, 5);
  page = check_two_calls(handover_gauges, &size);
  CHECK(holds(page, "warmroute_handover_events_total 5\n"));
  free(page);
  wr_handover_free(handover);
  wr_handover_free(NULL);
  CHECK_EQ(wr_usage_batch_count(NULL), 0);

  add_events(5, 3);
  options.deliver = NULL;
  options.json_lines = text(file);
  CHECK_OK(wr_handover_new(journal, &options, &handover, NULL));
  CHECK_OK(wr_handover_drain(handover, 20 * kSecond, &drained, NULL));
  CHECK_EQ(drained, 1);
  wr_handover_free(handover);
  wr_journal_free(journal);
  in = fopen(file, "r");
  CHECK(in != NULL);
  while (fgets(line, sizeof line, in) != NULL) ++lines;
  CHECK_EQ(fclose(in), 0);
  CHECK_EQ(lines, 3);
  remove_folder(directory);
}

/* ---- sizes */

static wr_status try_trust(const void* trust) {
  wr_str payload;
  return wr_snapshot_verify(text("x"), trust, &payload, NULL, NULL);
}
static wr_status try_verifying(const void* key) {
  size_t needed;
  return wr_verifying_key_pem(key, NULL, 0, &needed, NULL);
}
static wr_status fill_verifying(void* out) { return wr_signing_key_public(trusted, out, NULL); }
static wr_status try_snapshot_options(const void* options) {
  char* payload = payload_of(1, 1, 0, "");
  wr_snapshot* snapshot = NULL;
  const wr_status status = wr_snapshot_parse(text(payload), options, &snapshot, NULL);
  wr_snapshot_free(snapshot);
  free(payload);
  return status;
}
static wr_status try_applier_options(const void* options) {
  wr_applier* out = NULL;
  const wr_status status = wr_applier_new(options, &out, NULL);
  wr_applier_free(out);
  return status;
}
static wr_status try_source_options(const void* options) {
  wr_file_source* out = NULL;
  const wr_status status = wr_file_source_new(applier, options, &out, NULL);
  wr_file_source_free(out);
  return status;
}
static wr_status try_handover_options(const void* options) {
  wr_handover* out = NULL;
  const wr_status status = wr_handover_new(journal, options, &out, NULL);
  wr_handover_free(out);
  return status;
}
static wr_status fill_facts(void* out) { return wr_snapshot_read_facts(told_snapshot, out, NULL); }
static wr_status fill_key(void* out) { return wr_snapshot_read_key(told_snapshot, 0, out, NULL); }
static wr_status fill_snapshot_digest(void* out) { return wr_snapshot_read_digest(told_snapshot, 0, 0, out, NULL); }
static wr_status fill_snapshot_limits(void* out) { return wr_snapshot_read_limits(told_snapshot, 0, out, NULL); }
static wr_status fill_snapshot_limit(void* out) { return wr_snapshot_read_limit(told_snapshot, 0, 0, out, NULL); }
static wr_status fill_status(void* out) { return wr_applier_read_status(applier, 0, out, NULL); }
static wr_status fill_applied(void* out) {
  if (out == NULL) return WR_STATUS_INVALID_ARGUMENT; /* else nothing is told, which is fine */
  return apply(payload_of(1, 1, 0, ""), 1, out, NULL);
}
static wr_status fill_source_status(void* out) { return wr_file_source_read_status(source, out, NULL); }
static wr_status fill_handover_status(void* out) { return wr_handover_read_status(handover, out, NULL); }
TEST(StructsOfControlMayBeOfOtherSizes) {
  wr_snapshot_trust trust = WR_SNAPSHOT_TRUST_INIT;
  wr_verifying_key key = WR_VERIFYING_KEY_INIT;
  const wr_snapshot_options options = WR_SNAPSHOT_OPTIONS_INIT;
  const wr_applier_options apply_options = WR_APPLIER_OPTIONS_INIT;
  wr_file_source_options source_options = WR_FILE_SOURCE_OPTIONS_INIT;
  wr_handover_options handover_options = WR_HANDOVER_OPTIONS_INIT;
  const wr_snapshot_facts facts = WR_SNAPSHOT_FACTS_INIT;
  const wr_key_record record = WR_KEY_RECORD_INIT;
  const wr_key_digest digest = WR_KEY_DIGEST_INIT;
  const wr_snapshot_limits scope = WR_SNAPSHOT_LIMITS_INIT;
  const wr_limit_spec limit = WR_LIMIT_SPEC_INIT;
  const wr_control_status status = WR_CONTROL_STATUS_INIT;
  const wr_applied applied = WR_APPLIED_INIT;
  const wr_file_source_status watched = WR_FILE_SOURCE_STATUS_INIT;
  const wr_handover_status handed = WR_HANDOVER_STATUS_INIT;
  char* payload = payload_of(1, 1, 0, kMore);
  begin_control();
  CHECK_OK(wr_signing_key_public(trusted, &key, NULL));
  trust.allow_unsigned = 1;
  check_input_sizes(&trust, sizeof trust, offsetof(wr_snapshot_trust, reserved), WR_STATUS_OK, try_trust);
  check_input_sizes(&key, sizeof key, offsetof(wr_verifying_key, reserved), WR_STATUS_OK, try_verifying);
  check_output_sizes(&key, sizeof key, 1, fill_verifying);
  check_input_sizes(&options, sizeof options, offsetof(wr_snapshot_options, reserved), WR_STATUS_OK,
                    try_snapshot_options);
  check_input_sizes(&apply_options, sizeof apply_options, offsetof(wr_applier_options, reserved), WR_STATUS_OK,
                    try_applier_options);
  source_options.path = text(file);
  check_input_sizes(&source_options, sizeof source_options, offsetof(wr_file_source_options, reserved), WR_STATUS_OK,
                    try_source_options);
  CHECK_OK(wr_file_source_new(applier, &source_options, &source, NULL));
  CHECK_OK(wr_journal_open(text(journal_directory), NULL, &journal, NULL));
  handover_options.json_lines = text(file);
  check_input_sizes(&handover_options, sizeof handover_options, offsetof(wr_handover_options, reserved), WR_STATUS_OK,
                    try_handover_options);
  CHECK_OK(wr_handover_new(journal, &handover_options, &handover, NULL));
  CHECK_OK(wr_snapshot_parse(text(payload), NULL, &told_snapshot, NULL));
  check_output_sizes(&facts, sizeof facts, 1, fill_facts);
  check_output_sizes(&record, sizeof record, 1, fill_key);
  check_output_sizes(&digest, sizeof digest, 1, fill_snapshot_digest);
  check_output_sizes(&scope, sizeof scope, 1, fill_snapshot_limits);
  check_output_sizes(&limit, sizeof limit, 1, fill_snapshot_limit);
  check_output_sizes(&status, sizeof status, 1, fill_status);
  check_output_sizes(&watched, sizeof watched, 1, fill_source_status);
  check_output_sizes(&handed, sizeof handed, 1, fill_handover_status);
  wr_handover_free(handover);
  wr_journal_free(journal);
  wr_file_source_free(source);
  check_output_sizes(&applied, sizeof applied, 1, fill_applied);
  wr_snapshot_free(told_snapshot);
  free(payload);
  end_control();
}

TESTS(CASE(WhatIsSignedIsBelievedOfThatSignerAlone), CASE(ASnapshotIsReadWhole),
      CASE(ABrokenSnapshotIsRefusedWithThePathOfEachFault), CASE(WhatIsAppliedIsInKeysLimitsPricesAndPolicy),
      CASE(WhatIsRefusedChangesNothing), CASE(ARollBackIsForcedAndRecordedAndTombstonesOutliveItAndARestart),
      CASE(WhatHappensWhenControlIsSilentIsSaidByTheSnapshot), CASE(AFileThatIsReplacedIsInForceWhileKeysAreChecked),
      CASE(AFileCanBeWatchedForACallback), CASE(AJournalIsHandedOverUntilItIsTaken),
      CASE(StructsOfControlMayBeOfOtherSizes))
