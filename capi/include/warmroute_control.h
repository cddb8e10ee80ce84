/* clang-format off */
/* warmroute: what control says, taken in: keys, limits, prices and policy as one signed document; what was used, handed out. Part 11 of the C
 * interface; warmroute.h includes it, its rules and those of warmroute_usage.h hold here.
 *
 *   11a Signatures   who may say it: Ed25519 over the exact bytes
 *   11b Snapshots    the document: JSON, valid or refused with every fault named
 *   11c Price slot   the price table in force
 *   11d Applier      verifies, builds everything, then puts it in; keeps the last good one and what was revoked on disk
 *   11e File source  watches one path, on a thread of its own
 *   11f Hand-over    a journal's events to a callback or a file, on a thread of its own
 *
 *     wr_applier_options options = WR_APPLIER_OPTIONS_INIT;       // what to fill: options.keys, limits, prices, router
 *     wr_applier_new(&options, &applier, &err);
 *     wr_applier_load_last_good(applier, steady, wall, &found, &err);
 *     wr_file_source_new(applier, &source_options, &source, &err);     // from now on a new file is in force in under a second
 *
 * - Serving never waits for any of this: requests read what is in force, and go on with it when control is broken or silent, for as long as the
 *   snapshot's max_age_s and on_expired say.
 * - wr_file_source and wr_handover have a thread each; wr_applier reads and writes its directory and reads price files.
 */
#ifndef WARMROUTE_CONTROL_H
#define WARMROUTE_CONTROL_H

#include "warmroute_usage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==================================================================== 11a Signatures */

#define WR_PUBLIC_KEY_BYTES 32u
#define WR_SIGNING_SEED_BYTES 32u
#define WR_SIGNER_ID_SIZE 72

/** A public key that may sign. */
typedef struct wr_verifying_key {
  uint32_t struct_size;
  uint32_t reserved0;
  uint8_t public_key[WR_PUBLIC_KEY_BYTES];
  char key_id[WR_SIGNER_ID_SIZE]; /* NUL-terminated: 1 to 64 of [A-Za-z0-9._-] */
  uint64_t reserved[2];
} wr_verifying_key;
#define WR_VERIFYING_KEY_INIT {sizeof(wr_verifying_key), 0, {0}, {0}, {0, 0}}

/** Whom to believe. Several keys: whichever the envelope names, so that a signing key is changed without a gap. */
typedef struct wr_snapshot_trust {
  uint32_t struct_size;
  uint32_t allow_unsigned; /* 1: bytes without a signature pass */
  const wr_verifying_key* keys;
  size_t key_count;
  size_t key_stride; /* bytes from one to the next */
  uint64_t reserved[2];
} wr_snapshot_trust;
#define WR_SNAPSHOT_TRUST_INIT {sizeof(wr_snapshot_trust), 0, NULL, 0, sizeof(wr_verifying_key), {0, 0}}

/** A private key; wiped when it is freed. threads: any for every call but free. */
typedef struct wr_signing_key wr_signing_key;

/** A new one of OpenSSL's random bytes. `key_id` empty, here and below: made of the public key. errors: invalid_argument (key_id), internal (OpenSSL
    refuses). since: 0.2.0 */
WR_API wr_status wr_signing_key_generate(wr_str key_id, wr_signing_key** out, wr_error* err);
/** `seed`: the WR_SIGNING_SEED_BYTES bytes of RFC 8032. errors: as above. since: 0.2.0 */
WR_API wr_status wr_signing_key_from_seed(wr_str seed, wr_str key_id, wr_signing_key** out, wr_error* err);
/** Reads PEM (PKCS #8, as `openssl genpkey -algorithm ed25519` writes it) or 64 hex digits. errors: malformed, invalid_argument (key_id). since: 0.2.0 */
WR_API wr_status wr_signing_key_parse(wr_str text, wr_str key_id, wr_signing_key** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_signing_key_free(wr_signing_key* key);
/** Text result: PEM. Whoever has it can sign. errors: internal. since: 0.2.0 */
WR_API wr_status wr_signing_key_pem(const wr_signing_key* key, char* buf, size_t cap, size_t* needed, wr_error* err);
/** *out = what others need to believe it. errors: invalid_argument. since: 0.2.0 */
WR_API wr_status wr_signing_key_public(const wr_signing_key* key, wr_verifying_key* out, wr_error* err);
/** Reads PEM (SubjectPublicKeyInfo) or 64 hex digits. errors: malformed, invalid_argument (key_id). threads: any. since: 0.2.0 */
WR_API wr_status wr_verifying_key_parse(wr_str text, wr_str key_id, wr_verifying_key* out, wr_error* err);
/** Text result: PEM. errors: invalid_argument, internal. threads: any. since: 0.2.0 */
WR_API wr_status wr_verifying_key_pem(const wr_verifying_key* key, char* buf, size_t cap, size_t* needed, wr_error* err);

/** Binary result without NUL: envelope and payload, what to write to a file. errors: internal. threads: any. since: 0.2.0 */
WR_API wr_status wr_snapshot_sign(wr_str payload, const wr_signing_key* key, char* buf, size_t cap, size_t* needed,
                                  wr_error* err);
/** *payload = what is inside, a part of `bytes`; `key_id` (NULL is fine) = who signed, WR_SIGNER_ID_SIZE bytes, empty: nobody. errors: malformed (no envelope
    of this form), unsupported (of a later version), not_found (a signer who is not trusted), invalid_value (the signature does not hold, or there must
    be one). threads: any. since: 0.2.0 */
WR_API wr_status wr_snapshot_verify(wr_str bytes, const wr_snapshot_trust* trust, wr_str* payload, char* key_id,
                                    wr_error* err);

/* ==================================================================== 11b Snapshots */

/** What control wants, whole. It is written as JSON, by whatever language (include/warmroute/control/snapshot.hpp shows every member); read here.
    threads: any for every call but free. */
typedef struct wr_snapshot wr_snapshot;

/** What serving does when control has been silent for longer than max_age. */
enum {
  WR_ON_EXPIRED_SERVE = 0,
  WR_ON_EXPIRED_DENY_NEW_KEYS = 1, /* keys that were accepted since the process began go on */
  WR_ON_EXPIRED_DENY_ALL = 2
};
/** returns: "serve", ...; "unknown". lifetime: static. threads: any. since: 0.2.0 */
WR_API const char* wr_on_expired_name(uint32_t on_expired);

/** One fault of a document: where ("keys[3].digests[0].hex"; empty: the document), and what is wrong there. Both live until it returns. */
typedef void (*wr_snapshot_fault_fn)(void* user, wr_str path, wr_str what);

typedef struct wr_snapshot_options {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t max_bytes;
  uint64_t max_keys;
  uint64_t max_faults; /* that are listed; how many more there are is said */
  const wr_policy* base_policy; /* members of "policy" that are absent are this one's; NULL: the router's that is applied into, or the defaults */
  wr_snapshot_fault_fn fault;   /* each fault of wr_snapshot_parse, beside `err`, which is cut at its size; NULL: none */
  void* fault_user;
  uint64_t reserved[4];
} wr_snapshot_options;
#define WR_SNAPSHOT_OPTIONS_INIT {sizeof(wr_snapshot_options), 0, 67108864, 2097152, 64, NULL, NULL, NULL, {0, 0, 0, 0}}

/** lifetime: of strings, here and below, until the snapshot is freed. */
typedef struct wr_snapshot_facts {
  uint32_t struct_size;
  uint32_t on_expired; /* WR_ON_EXPIRED_... */
  uint64_t generation;
  int64_t issued_at_wall_ns;
  int64_t max_age_ns; /* 0: no limit */
  uint64_t keys;
  uint64_t teams;
  uint64_t limits; /* scopes and defaults */
  uint64_t aliases;
  uint32_t has_policy;
  uint32_t has_forced_rollback;
  uint64_t rollback_from;
  wr_str rollback_reason;
  wr_str price_file;
  wr_str price_file_sha256;
  wr_str price_overrides; /* JSON */
  uint64_t reserved[4];
} wr_snapshot_facts;
#define WR_SNAPSHOT_FACTS_INIT                                                                                                \
  {sizeof(wr_snapshot_facts), WR_ON_EXPIRED_SERVE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, \
   {0, 0, 0, 0}}

/** Limits of one scope, or of a dimension's values that have none of their own. */
typedef struct wr_snapshot_limits {
  uint32_t struct_size;
  uint32_t is_default; /* 1: of the dimension; `value` is empty */
  wr_str dimension;
  wr_str value;
  uint64_t limits;
  uint64_t reserved[2];
} wr_snapshot_limits;
#define WR_SNAPSHOT_LIMITS_INIT {sizeof(wr_snapshot_limits), 0, WR_STR_INIT, WR_STR_INIT, 0, {0, 0}}

/** Reads a payload, without envelope. `options` NULL: the defaults. errors: too_large, invalid_json, too_deep, not_an_object, unsupported (a later
    format), invalid_argument (every fault named with its path), out_of_memory. threads: any. cost: about 1 us a key. since: 0.2.0 */
WR_API wr_status wr_snapshot_parse(wr_str payload, const wr_snapshot_options* options, wr_snapshot** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_snapshot_free(wr_snapshot* snapshot);
/** Text result: the JSON; parsed again it is equal, and what is equal is written alike. One key, team or scope per line. since: 0.2.0 */
WR_API wr_status wr_snapshot_write(const wr_snapshot* snapshot, char* buf, size_t cap, size_t* needed, wr_error* err);
/** errors: invalid_argument. since: 0.2.0 */
WR_API wr_status wr_snapshot_read_facts(const wr_snapshot* snapshot, wr_snapshot_facts* out, wr_error* err);
/** `digests` of it stays NULL: wr_snapshot_read_digest has them. errors, here and below: out_of_range (index). since: 0.2.0 */
WR_API wr_status wr_snapshot_read_key(const wr_snapshot* snapshot, size_t index, wr_key_record* out, wr_error* err);
/** Of the key's `digest_count` digests. since: 0.2.0 */
WR_API wr_status wr_snapshot_read_digest(const wr_snapshot* snapshot, size_t key, size_t index, wr_key_digest* out,
                                         wr_error* err);
/** `name` (NULL is fine): for people; may be empty. since: 0.2.0 */
WR_API wr_status wr_snapshot_read_team(const wr_snapshot* snapshot, size_t index, wr_str* team_id, wr_str* name,
                                       wr_error* err);
/** since: 0.2.0 */
WR_API wr_status wr_snapshot_read_limits(const wr_snapshot* snapshot, size_t index, wr_snapshot_limits* out,
                                         wr_error* err);
/** One of a scope's limits. since: 0.2.0 */
WR_API wr_status wr_snapshot_read_limit(const wr_snapshot* snapshot, size_t scope, size_t index, wr_limit_spec* out,
                                        wr_error* err);
/** since: 0.2.0 */
WR_API wr_status wr_snapshot_read_alias(const wr_snapshot* snapshot, size_t index, wr_str* alias, wr_str* model,
                                        wr_error* err);
/** errors: not_found (the policy in force stays). since: 0.2.0 */
WR_API wr_status wr_snapshot_read_policy(const wr_snapshot* snapshot, wr_policy* out, wr_error* err);
/** Replaces a file as a whole, as files that a wr_file_source watches should be: written beside it, synced, renamed, the folder synced; readers see the old
    or the new one. `mode`: of the file, e.g. 0600. errors: io; the old file then stays. threads: any. since: 0.2.0 */
WR_API wr_status wr_replace_file(wr_str path, wr_str bytes, uint32_t mode, wr_error* err);

/* ==================================================================== 11c Price slot */

/** The price table in force: control puts a new one in, a request takes it once and keeps it. threads: any for every call but free. */
typedef struct wr_price_slot wr_price_slot;
/** errors: out_of_memory. since: 0.2.0 */
WR_API wr_status wr_price_slot_new(wr_price_slot** out, wr_error* err);
/** Tables that were taken out of it stay. since: 0.2.0 */
WR_API void wr_price_slot_free(wr_price_slot* slot);
/** *out = the table, to be given back by wr_price_table_free; calls that would change it refuse (unsupported): others have the same one.
    errors: not_found (there is none yet). Hot. alloc: none, but for the first after a change. since: 0.2.0 */
WR_API wr_status wr_price_slot_get(wr_price_slot* slot, wr_price_table** out, wr_error* err);
/** Takes `table` over, which the caller frees as before; from then on calls that would change it refuse. NULL: none. since: 0.2.0 */
WR_API wr_status wr_price_slot_set(wr_price_slot* slot, wr_price_table* table, wr_error* err);

/* ==================================================================== 11d Applier */

/** Takes snapshots in. A fault anywhere changes nothing; no generation comes twice or goes back, but for a forced roll-back that names the one in force,
    which is recorded; what was revoked stays so, through roll-backs and restarts. threads: any for every call but free; changes take turns. */
typedef struct wr_applier wr_applier;

/** A roll-back that happened. lifetime: until the callback that it is given to returns. */
typedef struct wr_rollback {
  uint32_t struct_size; /* what this library fills; read no further */
  uint32_t reserved0;
  uint64_t from;
  uint64_t to;
  wr_str reason;
  wr_str signed_by; /* key_id; empty: unsigned */
  int64_t at_wall_ns;
  uint64_t reserved[2];
} wr_rollback;

/* These are called by whoever applies, one at a time. They must not call the applier, but for wr_applier_read_status. */
/** The snapshot is valid, and nothing has changed yet. Another status than 0 refuses the whole; `err` takes why. */
typedef wr_status (*wr_snapshot_check_fn)(void* user, const wr_snapshot* snapshot, wr_error* err);
/** It is in force. */
typedef void (*wr_snapshot_applied_fn)(void* user, const wr_snapshot* snapshot);
typedef void (*wr_rollback_fn)(void* user, const wr_rollback* record);

typedef struct wr_applier_options {
  uint32_t struct_size;
  uint32_t abi_version;
  const wr_snapshot_trust* trust;      /* NULL: nobody */
  const wr_snapshot_options* snapshot; /* NULL: the defaults; its `fault` is not called here */
  wr_str directory;  /* of this process alone, made when absent, for the last good snapshot and what was revoked; empty: nothing is kept */
  wr_str price_file; /* where a snapshot names none; empty: none */
  wr_keys* keys;     /* what is applied into, each NULL: left out; they must outlive the applier */
  wr_limits* limits;
  wr_price_slot* prices;
  wr_router* router; /* its policy, where a snapshot has one */
  wr_snapshot_check_fn check; /* NULL: none; likewise the next two */
  wr_snapshot_applied_fn applied;
  wr_rollback_fn rolled_back;
  void* user;
  uint64_t reserved[4];
} wr_applier_options;
#define WR_APPLIER_OPTIONS_INIT                                                                                          \
  {sizeof(wr_applier_options), WR_ABI_VERSION, NULL, NULL, WR_STR_INIT, WR_STR_INIT, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
   {0, 0, 0, 0}}

#define WR_CONTROL_ERROR_SIZE 512
typedef struct wr_applied {
  uint32_t struct_size;
  uint32_t unchanged; /* 1: the same bytes as those in force: a confirmation */
  uint64_t generation;
  uint32_t rolled_back;
  uint32_t reserved0;
  char signed_by[WR_SIGNER_ID_SIZE];      /* empty: unsigned */
  char kept_error[WR_CONTROL_ERROR_SIZE]; /* why the last good snapshot could not be kept; empty: it was */
  uint64_t reserved[2];
} wr_applied;
#define WR_APPLIED_INIT {sizeof(wr_applied), 0, 0, 0, 0, {0}, {0}, {0, 0}}

typedef struct wr_control_status {
  uint32_t struct_size;
  uint32_t on_expired; /* WR_ON_EXPIRED_... */
  uint64_t generation;     /* in force; 0: none yet */
  uint64_t top_generation; /* the highest that ever was: what comes next must be above it */
  int64_t issued_at_wall_ns;
  int64_t age_ns;     /* since control was last heard of; INT64_MAX: never */
  int64_t max_age_ns; /* 0: no limit */
  uint32_t expired;   /* 1: older than max_age_ns */
  uint32_t from_disk; /* 1: in force is the last good one, and control was not heard of since */
  uint64_t keys;      /* not revoked */
  uint64_t revoked;   /* remembered, in this and former snapshots */
  uint64_t applied;   /* since the start, roll-backs included */
  uint64_t confirmed;
  uint64_t refused;
  uint64_t rollbacks;
  uint64_t keep_failures; /* the directory could not be written */
  wr_status last_status;  /* of the last apply or load */
  uint32_t reserved0;
  char last_error[WR_CONTROL_ERROR_SIZE]; /* of the last one that failed; stays; cut if longer */
  uint64_t reserved[4];
} wr_control_status;
#define WR_CONTROL_STATUS_INIT \
  {sizeof(wr_control_status), WR_ON_EXPIRED_SERVE, 0, 0, 0, INT64_MAX, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, WR_STATUS_OK, 0, {0}, {0, 0, 0, 0}}

/** errors: invalid_argument, abi_mismatch, out_of_memory. Touches no file. since: 0.2.0 */
WR_API wr_status wr_applier_new(const wr_applier_options* options, wr_applier** out, wr_error* err);
/** After every wr_file_source that fills it. since: 0.2.0 */
WR_API void wr_applier_free(wr_applier* applier);
/** At the start: applies the last good snapshot, verified anew; its age counts from when control was last heard of. *found (NULL is fine) = 0: there is none.
    errors: those of wr_applier_apply, of a damaged one: go on without it, control will send another. threads: any. since: 0.2.0 */
WR_API wr_status wr_applier_load_last_good(wr_applier* applier, int64_t steady_ns, int64_t wall_ns, uint32_t* found,
                                           wr_error* err);
/** Envelope and payload. `out` NULL is fine. errors: those of wr_snapshot_verify and wr_snapshot_parse; stale (not newer than what was, or a roll-back from
    another generation); what prices, limits and `check` say. Nothing has changed then. threads: any. cost: 0.15 s of a core for 10^5 keys, 1.8 s for 10^6; readers go on.
    since: 0.2.0 */
WR_API wr_status wr_applier_apply(wr_applier* applier, wr_str bytes, int64_t steady_ns, int64_t wall_ns, wr_applied* out,
                                  wr_error* err);
/** Control was heard of and has nothing new. errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_applier_confirm(wr_applier* applier, int64_t steady_ns, int64_t wall_ns, wr_error* err);
/** Revokes at once, beside control, everything up to `version`; kept on disk. errors: invalid_argument; io (it is in force, and not on disk).
    threads: any. since: 0.2.0 */
WR_API wr_status wr_applier_revoke(wr_applier* applier, wr_str public_id, uint64_t version, wr_error* err);
/** Waits for no change. errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_applier_read_status(const wr_applier* applier, int64_t now_ns, wr_control_status* out, wr_error* err);
/** Calls `visit` for each roll-back that is remembered, oldest first, across restarts (the last 1,000); *count (NULL is fine) of them. `visit` may be NULL.
    threads: any. since: 0.2.0 */
WR_API wr_status wr_applier_visit_rollbacks(const wr_applier* applier, wr_rollback_fn visit, void* user, size_t* count,
                                            wr_error* err);
/** Text result: families warmroute_control_*: generation, age, expired, counters. threads: any. since: 0.2.0 */
WR_API wr_status wr_applier_prometheus(const wr_applier* applier, int64_t now_ns, char* buf, size_t cap, size_t* needed,
                                       wr_error* err);

/* ==================================================================== 11e File source */

/** Looks at a path ten times a second, on its own thread, and hands its bytes over when they are others. A missing, half-written or refused file is said and
    tried again, and what was handed over before stays in force. threads: any for every call but free. */
typedef struct wr_file_source wr_file_source;

/** Called on the thread of a wr_file_source. Writes both clocks' times. units: ns */
typedef void (*wr_usage_clock_fn)(void* user, int64_t* steady_ns, int64_t* wall_ns);
/** The file's bytes. Another status than 0: refused, tried again; `err` takes why. */
typedef wr_status (*wr_file_bytes_fn)(void* user, wr_str bytes, int64_t steady_ns, int64_t wall_ns, wr_error* err);
/** The file is still what was accepted last: control is there. */
typedef void (*wr_file_same_fn)(void* user, int64_t steady_ns, int64_t wall_ns);

typedef struct wr_file_source_options {
  uint32_t struct_size;
  uint32_t abi_version;
  wr_str path;
  int64_t interval_ns; /* between two looks: 1 ms to 1 min */
  int64_t retry_to_ns; /* an unchanged file that was refused is handed over again, ever later, up to this */
  uint64_t max_bytes;
  wr_file_bytes_fn on_bytes; /* instead of an applier; must be NULL with one; likewise on_same */
  wr_file_same_fn on_same;   /* NULL: none */
  void* user;
  wr_usage_clock_fn clock; /* NULL: the system's monotonic and real-time clocks */
  void* clock_user;
  wr_log_fn log; /* when the file is refused or missing, and when it is accepted again; on the source's thread; NULL: none */
  void* log_user;
  uint64_t reserved[4];
} wr_file_source_options;
#define WR_FILE_SOURCE_OPTIONS_INIT                                                                                           \
  {sizeof(wr_file_source_options), WR_ABI_VERSION, WR_STR_INIT, 100000000, 5000000000, 67108864, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
   {0, 0, 0, 0}}

typedef struct wr_file_source_status {
  uint32_t struct_size;
  uint32_t missing; /* 1: at the last look */
  uint32_t good;    /* 1: at the last look, the file was what had been accepted */
  uint32_t reserved0;
  uint64_t looks;
  uint64_t reads;    /* of the whole file */
  uint64_t accepted; /* times that it was taken */
  uint64_t refused;  /* times that taking or reading it failed */
  char last_error[WR_CONTROL_ERROR_SIZE]; /* of the last failure; stays; cut if longer */
  uint64_t reserved[2];
} wr_file_source_status;
#define WR_FILE_SOURCE_STATUS_INIT {sizeof(wr_file_source_status), 0, 0, 0, 0, 0, 0, 0, {0}, {0, 0}}

/** `applier`: filled with what the file says, and confirmed while it stays; it must outlive the source; NULL: on_bytes is called instead. Does not wait
    for the file. errors: invalid_argument (every fault named), abi_mismatch, io (no thread). since: 0.2.0 */
WR_API wr_status wr_file_source_new(wr_applier* applier, const wr_file_source_options* options, wr_file_source** out,
                                    wr_error* err);
/** Ends the thread, after a callback that is running; not from a callback. since: 0.2.0 */
WR_API void wr_file_source_free(wr_file_source* source);
/** Looks at once, and reads whatever the file's time and size say. returns when that is done; not from a callback. threads: any. since: 0.2.0 */
WR_API wr_status wr_file_source_look_now(wr_file_source* source, wr_error* err);
/** errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_file_source_read_status(const wr_file_source* source, wr_file_source_status* out, wr_error* err);

/* ==================================================================== 11f Hand-over */

/** Reads a journal from its acknowledged place on, hands batches over, and acknowledges what was taken: at least once, in order, across restarts; consumers
    drop event ids that they have seen. threads: any for every call but free. */
typedef struct wr_handover wr_handover;
/** What one call of wr_deliver_fn hands over: ends, and what recovery found incomplete. lifetime: until that returns. threads: one at a time. */
typedef struct wr_usage_batch wr_usage_batch;

/** Called on the hand-over's thread. 0: all of them were taken; else the same ones come again, later, and `err` takes why. */
typedef wr_status (*wr_deliver_fn)(void* user, wr_usage_batch* batch, wr_error* err);

/** returns: records; 0 for NULL. since: 0.2.0 */
WR_API size_t wr_usage_batch_count(const wr_usage_batch* batch);
/** lifetime: of what it points to, until the batch's next read. errors: out_of_range (index). since: 0.2.0 */
WR_API wr_status wr_usage_batch_read(wr_usage_batch* batch, size_t index, wr_journal_record* out, wr_error* err);
/** Text results of one record, as wr_journal_reader_json_line and wr_journal_reader_focus_rows give them. errors: out_of_range (index). since: 0.2.0 */
WR_API wr_status wr_usage_batch_json_line(const wr_usage_batch* batch, size_t index, char* buf, size_t cap, size_t* needed,
                                          wr_error* err);
/** since: 0.2.0 */
WR_API wr_status wr_usage_batch_focus_rows(const wr_usage_batch* batch, size_t index, char* buf, size_t cap, size_t* needed,
                                           wr_error* err);

typedef struct wr_handover_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint64_t batch;      /* events at most, 1 to 65,536 */
  int64_t interval_ns; /* between looks at a journal that has nothing new: 1 ms to 1 min */
  int64_t backoff_from_ns;
  int64_t backoff_to_ns; /* failures in a row double the pause up to this */
  wr_str json_lines; /* a file to append to, a line of JSON per event, on the disk before it counts as taken; empty: `deliver` is called */
  wr_deliver_fn deliver; /* NULL with json_lines */
  void* user;
  wr_log_fn log; /* the first failure in a row, and that it goes on; on the hand-over's thread; NULL: none */
  void* log_user;
  uint64_t reserved[4];
} wr_handover_options;
#define WR_HANDOVER_OPTIONS_INIT                                                                                            \
  {sizeof(wr_handover_options), WR_ABI_VERSION, 256, 200000000, 100000000, 30000000000, WR_STR_INIT, NULL, NULL, NULL, NULL, \
   {0, 0, 0, 0}}

typedef struct wr_handover_status {
  uint32_t struct_size;
  uint32_t drained; /* 1: at the last look nothing was left */
  uint64_t delivered; /* events that were taken, since the start */
  uint64_t batches;
  uint64_t failures; /* of taking, of the journal or of the acknowledgement */
  uint64_t failures_in_row;
  wr_journal_cursor acknowledged;
  char last_error[WR_CONTROL_ERROR_SIZE]; /* of the last failure; stays; cut if longer */
  uint64_t reserved[2];
} wr_handover_status;
#define WR_HANDOVER_STATUS_INIT {sizeof(wr_handover_status), 0, 0, 0, 0, 0, WR_JOURNAL_CURSOR_INIT, {0}, {0, 0}}

/** lifetime: the journal must outlive it. errors: invalid_argument (every fault named), abi_mismatch, io (no thread). since: 0.2.0 */
WR_API wr_status wr_handover_new(wr_journal* journal, const wr_handover_options* options, wr_handover** out, wr_error* err);
/** Ends the thread after a delivery that is running; what is left is delivered by the next one. Not from a callback. since: 0.2.0 */
WR_API void wr_handover_free(wr_handover* handover);
/** Waits until what is in the journal now is acknowledged, at most so long; *drained (NULL is fine) = 1 if it is. threads: any. since: 0.2.0 */
WR_API wr_status wr_handover_drain(wr_handover* handover, int64_t timeout_ns, uint32_t* drained, wr_error* err);
/** errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_handover_read_status(const wr_handover* handover, wr_handover_status* out, wr_error* err);
/** Text result: families warmroute_handover_*. threads: any. since: 0.2.0 */
WR_API wr_status wr_handover_prometheus(const wr_handover* handover, char* buf, size_t cap, size_t* needed, wr_error* err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WARMROUTE_CONTROL_H */
