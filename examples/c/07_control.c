/* Both sides of control: an operator signs a snapshot with a key's digest and puts it where a proxy watches; the proxy's keys, limits and policy
   follow, and a later snapshot revokes the key. What the operator does, the command warmroute-keys does, too (examples/keys). */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <warmroute.h>

static const char kSecret[] = "sk-k1-7c0e1f42a95d4b6688d3e2b1a0f94c57"; /* told once to whoever asked for it */
static const char kPepper[] = "a secret of this deployment";
static wr_error err = WR_ERROR_INIT;

static wr_str str(const char* text) {
  wr_str s;
  s.data = text;
  s.size = strlen(text);
  return s;
}
static void must(wr_status status, const char* what) {
  if (status == WR_STATUS_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, wr_status_text(status), err.message);
  exit(1);
}
static int64_t clock_ns(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static void rest(void) {
  const struct timespec moment = {0, 5000000};
  nanosleep(&moment, NULL);
}

/* The operator: one key, issued or revoked; a limit of every key; a knob of the routing policy. */
static void publish(const wr_signing_key* signer, const char* path, unsigned generation, int revoked) {
  wr_key_digest digest = WR_KEY_DIGEST_INIT;
  wr_snapshot* parsed = NULL;
  char document[1024], hex[2 * WR_KEY_DIGEST_BYTES + 1], file[2048];
  wr_str bytes;
  size_t i;
  must(wr_key_digest_of(str(kSecret), WR_KEY_DIGEST_HMAC_SHA256, 1, str(kPepper), &digest, &err), "digest");
  for (i = 0; i < WR_KEY_DIGEST_BYTES; ++i) sprintf(hex + 2 * i, "%02x", digest.bytes[i]);
  snprintf(
      document, sizeof document,
      "{\"format\": 1, \"generation\": %u, \"issued_at\": \"2027-01-15T08:00:00Z\", \"max_age_s\": 3600, "
      "\"on_expired\": \"deny_new_keys\","
      " \"keys\": [{\"public_id\": \"k1\", \"team_id\": \"blue\", \"version\": %u, %s%s%s}],"
      " \"limits\": [{\"dimension\": \"key\", \"limits\": [{\"name\": \"rpm\", \"kind\": \"rate\", \"unit\": "
      "\"requests\", \"amount\": 60,"
      " \"period_s\": 60}]}], \"policy\": {\"beta\": 2}}",
      generation, generation,
      revoked ? "\"revoked\": true" : "\"digests\": [{\"kind\": \"hmac_sha256\", \"pepper_version\": 1, \"hex\": \"",
      revoked ? "" : hex, revoked ? "" : "\"}]");
  must(wr_snapshot_parse(str(document), NULL, &parsed, &err),
       "parse"); /* proxies would refuse a broken one; better to hear it here */
  wr_snapshot_free(parsed);
  bytes.data = file;
  must(wr_snapshot_sign(str(document), signer, file, sizeof file, &bytes.size, &err), "sign");
  must(wr_replace_file(str(path), bytes, 0600, &err), "replace");
}

static void say_applied(void* user, const wr_snapshot* snapshot) {
  wr_snapshot_facts facts = WR_SNAPSHOT_FACTS_INIT;
  (void)user;
  if (wr_snapshot_read_facts(snapshot, &facts, NULL) == WR_STATUS_OK) {
    printf("generation %" PRIu64 " is in force, %" PRIu64 " keys\n", facts.generation, facts.keys);
  }
}
static wr_control_status wait_for(const wr_applier* applier, uint64_t generation, uint64_t refused) {
  wr_control_status s = WR_CONTROL_STATUS_INIT;
  for (;;) {
    must(wr_applier_read_status(applier, clock_ns(CLOCK_MONOTONIC), &s, &err), "status");
    if (s.generation >= generation && s.refused >= refused) return s;
    rest();
  }
}
static const char* verdict_of(const wr_keys* keys) {
  wr_key_lookup* lookup = NULL;
  wr_key_grant grant = WR_KEY_GRANT_INIT;
  must(wr_key_lookup_new(&lookup, &err), "lookup");
  must(wr_keys_check(keys, lookup, str(kSecret), clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_REALTIME), &grant, &err),
       "check");
  wr_key_lookup_free(lookup);
  return wr_key_verdict_name(grant.verdict);
}

int main(void) {
  wr_applier_options options = WR_APPLIER_OPTIONS_INIT;
  wr_router_options router_options = WR_ROUTER_OPTIONS_INIT;
  wr_file_source_options watch = WR_FILE_SOURCE_OPTIONS_INIT;
  wr_snapshot_trust trust = WR_SNAPSHOT_TRUST_INIT;
  wr_verifying_key signer_public = WR_VERIFYING_KEY_INIT;
  wr_signing_key* signer = NULL;
  wr_keys* keys = NULL;
  wr_limits* limits = NULL;
  wr_router* router = NULL;
  wr_applier* applier = NULL;
  wr_file_source* source = NULL;
  wr_control_status status;
  wr_policy policy;
  FILE* broken;
  char path[64];
  snprintf(path, sizeof path, "07_control_%ld.snapshot", (long)getpid());

  must(wr_signing_key_generate(str(""), &signer, &err), "signing key");
  must(wr_signing_key_public(signer, &signer_public, &err), "public key");

  /* The proxy: what requests are judged by, and who fills it. With `directory` the last good snapshot would outlive a restart. */
  must(wr_keys_new(NULL, &keys, &err), "keys");
  must(wr_keys_add_pepper(keys, 1, str(kPepper), &err), "pepper");
  must(wr_limits_new(NULL, &limits, &err), "limits");
  must(wr_router_new(&router_options, &router, &err), "router");
  trust.keys = &signer_public;
  trust.key_count = 1;
  options.trust = &trust;
  options.keys = keys;
  options.limits = limits;
  options.router = router;
  options.applied = say_applied;
  must(wr_applier_new(&options, &applier, &err), "applier");
  watch.path = str(path);
  must(wr_file_source_new(applier, &watch, &source, &err), "source");

  publish(signer, path, 1, 0);
  wait_for(applier, 1, 0);
  memset(&policy, 0, sizeof policy);
  policy.struct_size = sizeof policy;
  must(wr_router_get_policy(router, &policy, &err), "policy");
  printf("the key is %s, beta is %g\n", verdict_of(keys), policy.beta);

  broken = fopen(path, "w"); /* somebody's accident */
  if (broken == NULL || fputs("{\"warmroute_snapshot\":1,", broken) < 0 || fclose(broken) != 0) return 1;
  status = wait_for(applier, 1, 1);
  printf("a broken file: %s; the key is %s still\n", status.last_error, verdict_of(keys));

  publish(signer, path, 2, 1);
  wait_for(applier, 2, 0);
  printf("and then it is %s\n", verdict_of(keys));

  wr_file_source_free(source);
  wr_applier_free(applier);
  wr_router_free(router);
  wr_limits_free(limits);
  wr_keys_free(keys);
  wr_signing_key_free(signer);
  return unlink(path) != 0;
}
