/* clang-format off */
/* warmroute: decides, inside your process, which LLM replica serves a request. The C interface.
 *
 *   1 Library      versions, status, errors, strings
 *   2 Prefix       block hashes; the index: which replica holds which leading blocks
 *   3 Ring         consistent hashing with weights and bounded load
 *   4 Policy       every knob
 *   5 Replicas     a router's members, their health, signals and cache events
 *   6 Engines      what engines publish: KV event messages, metrics pages; over your transport, or asked for on a thread
 *   7 Requests     what is asked: token ids, block hashes, or a JSON body
 *   8 Routing      route, peek, explain, tickets; one by one and in batches
 *   9 Observation  statistics, Prometheus text
 *   10 Usage       what requests used and cost, keys, limits, the books: in warmroute_usage.h, which is included at the end
 *   11 Control     signed snapshots of keys, limits, prices and policy; usage handed out: in warmroute_control.h, likewise
 *   12 Traces      traces of requests, logs of decisions that play again: in warmroute_trace.h, likewise
 *
 * Rules that hold everywhere:
 * - Calls that can fail return a wr_status; 0 is success. The optional last argument `err` (NULL is fine) then says what is wrong,
 *   where, and what to do. On failure every other output is as it was and nothing needs to be freed. Nothing is thrown or printed.
 * - A struct begins with `struct_size`; start from its WR_..._INIT. Fields are only ever added at the end: an older caller's shorter
 *   struct is read as if the rest had its INIT value, a newer caller's longer one is refused (unsupported) only if it sets what this library does not know.
 *   Leave `reserved` members 0: some become fields. Of an output, what the library does not know stays as it was; in statistics and policies it becomes 0.
 * - Outcomes that policy foresees ("no replica is up") are verdicts of a wr_decision, not failures.
 * - Times are nanoseconds of one monotonic clock of yours, passed in; the library reads none. It opens no socket and starts no thread, but for
 *   wr_poller and wr_kv_subscriber (6), wr_file_source and wr_handover (11): each has one thread, which calls your clock, or reads the system's
 *   own if you give none.
 * - Strings are (pointer, size), need no terminating NUL, and are read during the call only.
 * - A `const` handle may be used by any number of threads at once; a mutable one by one at a time, unless its call says "threads: any".
 *   `_free` takes NULL, and nothing may use the handle at that time or later.
 * - "Hot" calls wait for no writer. Once warm they allocate for what is new alone: blocks never seen, more requests in flight or longer prompts
 *   than ever before; and to repair what was believed of a cache (fewer cached tokens than predicted, a request that failed before its first token).
 * - Enumerations travel as uint32_t, status as int32_t; numbers are fixed and only appended: tolerate unknown ones.
 */
#ifndef WARMROUTE_H
#define WARMROUTE_H

#include <stddef.h>
#include <stdint.h>

#define WR_VERSION_MAJOR 0
#define WR_VERSION_MINOR 1
#define WR_VERSION_PATCH 0
/** Of the binary interface; the shared library's SOVERSION. Equal numbers fit each other, whatever the release. */
#define WR_ABI_VERSION 1

#if defined(WR_API)
/* chosen by the build */
#elif defined(_WIN32)
#define WR_API __declspec(dllimport)
#elif defined(__GNUC__)
#define WR_API __attribute__((visibility("default")))
#else
#define WR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ==================================================================== 1 Library */

/** 0, or what went wrong. */
typedef int32_t wr_status;
enum {
  WR_STATUS_OK = 0,
  /* the caller's arguments or the state of the object */
  WR_STATUS_INVALID_ARGUMENT = 1,
  WR_STATUS_NOT_FOUND = 2,
  WR_STATUS_ALREADY_EXISTS = 3,
  WR_STATUS_OUT_OF_RANGE = 4,
  WR_STATUS_CAPACITY = 5, /* a configured limit, or your buffer, is too small */
  WR_STATUS_STALE = 6,    /* the id or ticket names something that was removed or released */
  WR_STATUS_UNSUPPORTED = 7,
  WR_STATUS_IO = 8,
  WR_STATUS_INTERNAL = 9,
  WR_STATUS_OUT_OF_MEMORY = 10,
  WR_STATUS_ABI_MISMATCH = 11, /* header and library are not of the same WR_ABI_VERSION */
  /* bytes that came in from outside; wr_error.offset says where */
  WR_STATUS_INVALID_JSON = 20,
  WR_STATUS_INVALID_UTF8 = 21,
  WR_STATUS_INVALID_UNICODE = 22,
  WR_STATUS_TOO_DEEP = 23,
  WR_STATUS_TOO_LARGE = 24,
  WR_STATUS_NOT_AN_OBJECT = 25,
  WR_STATUS_MISSING_FIELD = 26,
  WR_STATUS_WRONG_TYPE = 27,
  WR_STATUS_VALUE_OUT_OF_RANGE = 28,
  WR_STATUS_INVALID_VALUE = 29,
  WR_STATUS_EMPTY_PROMPT = 30,
  WR_STATUS_MALFORMED = 31
};

/** returns: the status' name, e.g. "not_found"; "unknown" for others. lifetime: static. threads: any. since: 0.1.0 */
WR_API const char* wr_status_text(wr_status status);
/** returns: the library's release, e.g. "0.1.0". lifetime: static. threads: any. since: 0.1.0 */
WR_API const char* wr_version(void);
/** returns: WR_ABI_VERSION of the library that is loaded. threads: any. since: 0.1.0 */
WR_API uint32_t wr_abi_version(void);

#define WR_NO_OFFSET UINT64_MAX
#define WR_ERROR_MESSAGE_SIZE 512

/** Detail of one failure, in your memory. Untouched when the call succeeds. */
typedef struct wr_error {
  uint32_t struct_size;
  wr_status status;
  uint64_t offset; /* units: bytes from the start of the input; WR_NO_OFFSET where that does not apply */
  char message[WR_ERROR_MESSAGE_SIZE]; /* UTF-8, NUL-terminated, cut if longer */
} wr_error;
#define WR_ERROR_INIT {sizeof(wr_error), WR_STATUS_OK, WR_NO_OFFSET, {0}}

/** Bytes or UTF-8 of yours. {NULL, 0} is empty. */
typedef struct wr_str {
  const char* data;
  size_t size;
} wr_str;
#define WR_STR_INIT {NULL, 0}

/** One replica as a router numbers it: slots are used again, generations tell their tenants apart. */
typedef struct wr_replica_id {
  uint32_t slot;
  uint32_t generation;
} wr_replica_id;
#define WR_NO_SLOT UINT32_MAX
#define WR_NO_REPLICA_INIT {WR_NO_SLOT, 0}

/** The handle of one routed request; 0 is never issued. */
typedef uint64_t wr_ticket;

/** A count that is not known. */
#define WR_UNKNOWN (-1)

/** Where a block lies: in a replica's memory, or in a store that every replica of its pool can load from. */
enum { WR_TIER_DEVICE = 0, WR_TIER_HOST = 1, WR_TIER_DISK = 2, WR_TIER_SHARED = 3 };

/** units: wr_log levels. */
enum { WR_LOG_DEBUG = 0, WR_LOG_INFO = 1, WR_LOG_WARNING = 2, WR_LOG_ERROR = 3 };
/** Called on any thread that calls into the router, possibly under one of its locks: it must not call back. `message` lives until it returns. */
typedef void (*wr_log_fn)(void* user, uint32_t level, wr_str message);

/** Called on the thread of a wr_poller or wr_kv_subscriber. returns: now, of the clock whose times the router is given. units: ns */
typedef int64_t (*wr_clock_fn)(void* user);

/* Text results: `buf` takes `cap` bytes, `*needed` gets what the whole needs, terminating NUL included. buf NULL asks for the size (OK).
   Too small: WR_STATUS_CAPACITY, `*needed` is set, `buf` is untouched. */

/* ==================================================================== 2 Prefix */

/** Seed of Dynamo's block hashes, and always of the sequence chain. */
#define WR_DYNAMO_HASH_SEED 1337u
/** units: bytes of canonical prompt text per block, where there are no token ids. */
#define WR_TEXT_BLOCK_BYTES 64u
#define WR_MAX_BLOCK_TOKENS 512u

/** What may never match one another; empty members are absent. */
typedef struct wr_hash_space {
  uint32_t struct_size;
  uint32_t text; /* 1: blocks of text; 0: of token ids */
  uint64_t hash_seed;
  wr_str adapter;
  wr_str cache_salt;
  wr_str isolation_key; /* tenant, from the verified key, never from the body */
  uint64_t reserved[4];
} wr_hash_space;
#define WR_HASH_SPACE_INIT \
  {sizeof(wr_hash_space), 0, WR_DYNAMO_HASH_SEED, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, {0, 0, 0, 0}}

/** *seed = the seed of every block hash of that space. errors: invalid_argument. threads: any. since: 0.1.0 */
WR_API wr_status wr_block_seed(const wr_hash_space* space, uint64_t* seed, wr_error* err);

/** Hashes whole blocks of `block_size` tokens (1..512), bit-compatible with Dynamo: XXH3-64 of the little-endian ids. A partial tail has none.
    shape: out[i] is of tokens [i * block_size, (i + 1) * block_size); *count = min(token_count / block_size, cap).
    errors: invalid_argument, out_of_range (block_size). threads: any. alloc: none. cost: about 4 ns per 16 tokens. since: 0.1.0 */
WR_API wr_status wr_hash_token_blocks(const uint32_t* tokens, size_t token_count, uint32_t block_size, uint64_t seed,
                                      uint64_t* out, size_t cap, size_t* count, wr_error* err);
/** The same for EAGLE draft models: each block covers one token more. since: 0.1.0 */
WR_API wr_status wr_hash_eagle_blocks(const uint32_t* tokens, size_t token_count, uint32_t block_size, uint64_t seed,
                                      uint64_t* out, size_t cap, size_t* count, wr_error* err);
/** The same with the hashes of multimodal objects in each block. shape: those of block k are objects[object_ends[k-1] .. object_ends[k]), in any
    order; object_ends[-1] counts as 0; blocks at or beyond `block_count` have none. `eagle`: 0 or 1. errors: also out_of_range (ends fall).
    alloc: 16 bytes per block. since: 0.1.0 */
WR_API wr_status wr_hash_multimodal_blocks(const uint32_t* tokens, size_t token_count, uint32_t block_size, uint64_t seed,
                                           const uint64_t* objects, const size_t* object_ends, size_t block_count,
                                           uint32_t eagle, uint64_t* out, size_t cap, size_t* count, wr_error* err);
/** Hashes whole blocks of WR_TEXT_BLOCK_BYTES of canonical text; `seed` of a space with text = 1. Otherwise as above. since: 0.1.0 */
WR_API wr_status wr_hash_text_blocks(wr_str text, uint64_t seed, uint64_t* out, size_t cap, size_t* count, wr_error* err);
/** Chains block hashes: out[0] = blocks[0], out[i] = XXH3(out[i-1] || blocks[i], 1337). shape: `count` of both. threads: any. since: 0.1.0 */
WR_API wr_status wr_sequence_hashes(const uint64_t* blocks, size_t count, uint64_t* out, wr_error* err);

/** A prefix index of its own, for embedders who want nothing else. A router has its own and fills it by itself. */
typedef struct wr_index wr_index;
/** The answer to one look-up, kept and used again. threads: one at a time. */
typedef struct wr_match wr_match;

typedef struct wr_index_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t max_replicas; /* slots at or above are refused; at most 65,504 */
  uint32_t reserved0;
  uint64_t max_bytes; /* hard cap of the tree, enforced on insert: oldest leaves go first */
  uint64_t reserved[4];
} wr_index_options;
#define WR_INDEX_OPTIONS_INIT {sizeof(wr_index_options), WR_ABI_VERSION, 1024, 0, 1073741824u, {0, 0, 0, 0}}

typedef struct wr_index_statistics {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t blocks;      /* distinct */
  uint64_t memberships; /* (replica, tier, block) triples held */
  uint64_t nodes;
  uint64_t bytes; /* asked from the allocator and not yet given back */
  uint64_t max_bytes;
  uint64_t evicted_memberships;
  uint64_t evicted_blocks;
  uint64_t refused_stores;
  uint64_t clears;
  uint64_t reserved[4];
} wr_index_statistics;
#define WR_INDEX_STATISTICS_INIT {sizeof(wr_index_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0}}

/** `options` NULL: the defaults. errors: invalid_argument, abi_mismatch, out_of_memory. since: 0.1.0 */
WR_API wr_status wr_index_new(const wr_index_options* options, wr_index** out, wr_error* err);
/** since: 0.1.0 */
WR_API void wr_index_free(wr_index* index);
/** Blocks [first, count) of the path from block 0 are now held there; those held already included. A newer generation of a slot clears the older.
    errors: out_of_range (slot, tier), stale, capacity (the leading part is kept). threads: any; serialised inside. since: 0.1.0 */
WR_API wr_status wr_index_store(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* path, size_t count,
                                size_t first, wr_error* err);
/** Blocks [first, count) are no longer held; what lies behind stays held, out of reach. `*removed` (NULL is fine): how many were.
    threads: any; serialised inside. since: 0.1.0 */
WR_API wr_status wr_index_remove(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* path,
                                 size_t count, size_t first, size_t* removed, wr_error* err);
/** As engines say it: `blocks` follow the block that the engine calls *parent (NULL: they start at block 0) and are called `ids`. Id 0 names nothing.
    errors: as wr_index_store; not_found (parent). threads: any; serialised inside. since: 0.1.0 */
WR_API wr_status wr_index_store_event(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* parent,
                                      const uint64_t* ids, const uint64_t* blocks, size_t count, wr_error* err);
/** Removes by the engine's names, in any order; unknown names are skipped. threads: any; serialised inside. since: 0.1.0 */
WR_API wr_status wr_index_remove_event(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* ids,
                                       size_t count, size_t* removed, wr_error* err);
/** Blocks that the engine calls so are held on `tier`, too (offloaded, say); their content is not told again. `*known` (NULL is fine): how many of
    the names are known. errors: out_of_range (tier). threads: any; serialised inside. since: 0.2.0 */
WR_API wr_status wr_index_hold_event(wr_index* index, wr_replica_id replica, uint32_t tier, const uint64_t* ids,
                                     size_t count, size_t* known, wr_error* err);
/** Forgets all that the slot held, in constant time. threads: any; serialised inside. since: 0.1.0 */
WR_API wr_status wr_index_clear(wr_index* index, wr_replica_id replica, wr_error* err);
/** Gives memory back, looking at no more than `max_nodes` runs. threads: any; serialised inside. since: 0.1.0 */
WR_API wr_status wr_index_advance(wr_index* index, size_t max_nodes, wr_error* err);
/** errors: invalid_argument. threads: any. since: 0.1.0 */
WR_API wr_status wr_index_read_statistics(const wr_index* index, wr_index_statistics* out, wr_error* err);

/** errors: out_of_memory. since: 0.1.0 */
WR_API wr_status wr_match_new(wr_match** out, wr_error* err);
/** since: 0.1.0 */
WR_API void wr_match_free(wr_match* match);
/** For every replica, how many leading blocks of `path` it holds. Hot. threads: any number, beside writers, each with a match of its own. since: 0.1.0 */
WR_API wr_status wr_index_match(const wr_index* index, const uint64_t* path, size_t count, wr_match* match, wr_error* err);
/** *depths = leading blocks per slot, *slots of them: held on `tier` or a faster one. lifetime: until the match is used again or freed.
    errors: out_of_range (tier). since: 0.1.0 */
WR_API wr_status wr_match_depths(const wr_match* match, uint32_t tier, const uint32_t** depths, size_t* slots,
                                 wr_error* err);

/* ==================================================================== 3 Ring */

/** An immutable consistent-hash ring. threads: const calls from any number of threads. */
typedef struct wr_ring wr_ring;

typedef struct wr_ring_member {
  uint32_t struct_size;
  uint32_t member; /* your number for it, returned by look-ups; unique */
  wr_str ring_id;  /* a stable slot name; unique, not empty */
  double weight;   /* share of the keys, relative to the others; > 0 */
  uint64_t reserved[2];
} wr_ring_member;
#define WR_RING_MEMBER_INIT {sizeof(wr_ring_member), 0, WR_STR_INIT, 1.0, {0, 0}}
#define WR_NO_MEMBER UINT32_MAX

typedef struct wr_ring_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t points_per_unit; /* points of weight 1; shares deviate by 1/sqrt(points) */
  uint32_t max_points;
  uint64_t seed;
  uint64_t key_rule; /* identity of how you make keys; only wr_ring_movement reads it */
  uint64_t reserved[4];
} wr_ring_options;
#define WR_RING_OPTIONS_INIT {sizeof(wr_ring_options), WR_ABI_VERSION, 256, 4194304u, 0, 0, {0, 0, 0, 0}}

/** shape: `stride` bytes from one member to the next, in any order: the ring is the same. count 0 gives the empty ring. `options` NULL: the defaults.
    errors: invalid_argument, already_exists (ring_id or member twice), capacity, abi_mismatch. cost: 6 ms for 1,024 members. since: 0.1.0 */
WR_API wr_status wr_ring_new(const wr_ring_member* members, size_t count, size_t stride, const wr_ring_options* options,
                             wr_ring** out, wr_error* err);
/** since: 0.1.0 */
WR_API void wr_ring_free(wr_ring* ring);
/** A new ring that differs by one member; the old one stays. errors: as wr_ring_new; not_found. cost: under 1 ms at 1,024 members. since: 0.1.0 */
WR_API wr_status wr_ring_with_added(const wr_ring* ring, const wr_ring_member* member, wr_ring** out, wr_error* err);
/** since: 0.1.0 */
WR_API wr_status wr_ring_with_removed(const wr_ring* ring, wr_str ring_id, wr_ring** out, wr_error* err);
/** since: 0.1.0 */
WR_API wr_status wr_ring_with_weight(const wr_ring* ring, wr_str ring_id, double weight, wr_ring** out, wr_error* err);
/** The same slot served by another member: no key moves. since: 0.1.0 */
WR_API wr_status wr_ring_with_member(const wr_ring* ring, wr_str ring_id, uint32_t member, wr_ring** out, wr_error* err);
/** returns: members; 0 for NULL. since: 0.1.0 */
WR_API size_t wr_ring_size(const wr_ring* ring);
/** returns: the member whose point comes first at or after `key` (a uniformly distributed hash); WR_NO_MEMBER on an empty ring or NULL. Hot. since: 0.1.0 */
WR_API uint32_t wr_ring_home(const wr_ring* ring, uint64_t key);
/** out[i] = home of keys[i]; strides in bytes, of any alignment. errors: invalid_argument. Hot. since: 0.1.0 */
WR_API wr_status wr_ring_home_batch(const wr_ring* ring, const uint64_t* keys, size_t count, size_t stride,
                                    uint32_t* out, size_t out_stride, wr_error* err);
/** The first distinct members clockwise from `key`, home first; *count = min(cap, members). Hot. since: 0.1.0 */
WR_API wr_status wr_ring_successors(const wr_ring* ring, uint64_t key, uint32_t* out, size_t cap, size_t* count,
                                    wr_error* err);
/** *fraction = the member's exact part of the key space, 0..1. errors: not_found. cost: O(points). since: 0.1.0 */
WR_API wr_status wr_ring_share(const wr_ring* ring, wr_str ring_id, double* fraction, wr_error* err);
/** *fraction = the exact part of the keys that gets another home when `after` replaces `before`. cost: O(points). since: 0.1.0 */
WR_API wr_status wr_ring_movement(const wr_ring* before, const wr_ring* after, double* fraction, wr_error* err);

enum { WR_SPILL_CLOCKWISE = 0, WR_SPILL_PERMUTED = 1 };
typedef struct wr_load_bound {
  uint32_t struct_size;
  uint32_t order;      /* WR_SPILL_... */
  double factor;       /* times the fair share, 1..1000 */
  uint64_t spill_seed; /* of WR_SPILL_PERMUTED */
  uint32_t max_probes; /* members looked at before the least loaded of these is taken; 0 = all */
  uint32_t reserved0;
  uint64_t reserved[2];
} wr_load_bound;
#define WR_LOAD_BOUND_INIT {sizeof(wr_load_bound), WR_SPILL_CLOCKWISE, 1.5, 0, 0, 0, {0, 0}}

typedef struct wr_bounded_pick {
  uint32_t struct_size;
  uint32_t member; /* WR_NO_MEMBER: the ring is empty or nobody is eligible */
  uint32_t probes;
  uint32_t diverted;   /* 1: not the first eligible member of the key's order */
  uint32_t over_bound; /* 1: nobody passed; the least loaded for its share */
  uint32_t reserved0;
  uint64_t reserved[2];
} wr_bounded_pick;
#define WR_BOUNDED_PICK_INIT {sizeof(wr_bounded_pick), WR_NO_MEMBER, 0, 0, 0, 0, {0, 0}}

/** The first member in the key's order whose load is below its share of factor * (sum of loads + request); a member with no load always passes.
    shape: loads[m] is in flight at member number m, without this request; eligible[m] != 0: may be chosen; eligible NULL: all may.
    errors: out_of_range (a member number at or beyond load_count), invalid_argument. Hot. cost: O(members). since: 0.1.0 */
WR_API wr_status wr_ring_bounded_pick(const wr_ring* ring, const wr_load_bound* bound, uint64_t key, int64_t request,
                                      const int64_t* loads, const uint8_t* eligible, size_t load_count,
                                      wr_bounded_pick* out, wr_error* err);

/* ==================================================================== 4 Policy */

enum {
  WR_ALGORITHM_COST = 0,
  WR_ALGORITHM_RANDOM = 1,
  WR_ALGORITHM_ROUND_ROBIN = 2,
  WR_ALGORITHM_LEAST_REQUESTS = 3,
  WR_ALGORITHM_LEAST_TOKENS = 4,
  WR_ALGORITHM_POWER_OF_TWO = 5,
  WR_ALGORITHM_LONGEST_MATCH = 6,
  WR_ALGORITHM_CONSISTENT_HASH = 7,
  WR_ALGORITHM_BOUNDED_HASH = 8
};
enum { WR_RING_KEY_PREFIX = 0, WR_RING_KEY_SESSION_OR_PREFIX = 1 };
/** Which tenants may share blocks: all; none; none, and a tenant's requests go to the pool "<tenant>/<model>" only. Salts always separate. */
enum { WR_ISOLATION_NONE = 0, WR_ISOLATION_SALT = 1, WR_ISOLATION_POOL = 2 };
enum { WR_STALE_SIGNALS_IGNORE = 0, WR_STALE_SIGNALS_EXCLUDE = 1 };
/** Whether prefill and decode of one request may run on different replicas: never; wherever it can be; where it is expected to cost less. */
enum { WR_DISAGGREGATE_NEVER = 0, WR_DISAGGREGATE_ALWAYS = 1, WR_DISAGGREGATE_DECIDED = 2 };

/** Every knob. Fill it with wr_policy_init, never by hand. */
typedef struct wr_policy {
  uint32_t struct_size;
  uint32_t algorithm;
  double beta;  /* what a miss costs those who come later, as a multiple of its prefill time */
  double gamma; /* share of a prefill's time by which it stalls each request running there */
  double delta; /* weight of this request's own decode time */
  double hot;   /* strength of the hot-prefix rebate; 0 = off */
  int64_t session_bonus_ns;
  int64_t host_transfer_per_token_ns;
  int64_t disk_transfer_per_token_ns;
  uint32_t ring_key;
  uint32_t ring_points;
  int64_t ring_key_tokens;
  uint64_t ring_seed;
  double bound_factor;
  uint32_t block_size; /* tokens, 1..512 */
  uint32_t isolation;
  uint64_t hash_seed;
  int64_t capacity_tokens; /* of a replica's KV cache while neither it nor its spec says otherwise */
  int64_t residency_ttl_ns;
  int64_t lease_ns; /* a ticket that is never finished releases its load after so long */
  int64_t session_ttl_ns;
  int64_t signals_max_age_ns;
  uint32_t stale_signals;
  uint32_t route_when_all_down;
  uint64_t seed; /* breaks exact ties */
  uint64_t version;
  int64_t shared_transfer_per_token_ns; /* loading one token's KV from a store that all replicas share */
  uint32_t learn_rates; /* 1: replicas' rates follow observed times, from the declared ones on; 0: these are the truth */
  uint32_t routers; /* that send to the same replicas and tell one another nothing; above 1 a prompt's ring home is a prior; 0 is taken for 1 */
  /* A replica is saturated when a request would wait longer than this for its first token there, or its engine says that its KV cache is fuller.
     Saturated ones are passed over; where all are, requests of at most shed_priority are refused. since: 0.2.0 */
  int64_t saturation_wait_ns; /* 0 = never */
  double saturation_kv;       /* share of KV blocks in use; 0 = not looked at */
  int64_t shed_priority;      /* what is more urgent queues where it is cheapest */
  uint64_t reserved[3];
  /* Prefill and decode apart. since: 0.2.0 */
  uint32_t disaggregate;            /* WR_DISAGGREGATE_... */
  uint32_t unified_pairs;           /* 1: replicas of role unified take either part of a pair, too */
  int64_t pair_min_tokens;          /* decided: no pair while fewer tokens are uncached */
  int64_t kv_transfer_per_token_ns; /* bytes of KV per token / bandwidth of the link */
  int64_t kv_transfer_latency_ns;   /* of one transfer, whatever its size */
  int64_t transfer_timeout_ns;      /* a prefill replica whose KV is not fetched after so long is free of it */
  uint32_t decode_keeps_cache;      /* 1: what was transferred is in the decode replica's prefix cache afterwards */
  uint32_t reserved0;
  double interference;   /* share of a prefill's time by which it stalls each request running there, where pairs can be formed */
  int64_t ttft_limit_ns; /* objective; 0 = none */
  int64_t itl_limit_ns;  /* objective; 0 = none */
  /* since: 0.2.0 */
  double tail;      /* how much more the wait counts for a prompt as long as the mean, in proportion for others; 0 = equally */
  int64_t reuse_ns; /* within which a prefix is asked for again; caches that are renewed as quickly lose by what is new; 0 = off */
} wr_policy;

/** Fills the defaults. `struct_size` must be set: wr_policy p; p.struct_size = sizeof p; wr_policy_init(&p, NULL). since: 0.1.0 */
WR_API wr_status wr_policy_init(wr_policy* policy, wr_error* err);
/** errors: invalid_argument; the message lists every fault at once. since: 0.1.0 */
WR_API wr_status wr_policy_validate(const wr_policy* policy, wr_error* err);
/** Members that the JSON names are changed in `policy`, the others stay: members as above, times in milliseconds ("lease_ms"), enumerations by name.
    errors: invalid_json, not_an_object, too_large (64 KiB), invalid_argument (every fault named). `policy` is as it was then. since: 0.1.0 */
WR_API wr_status wr_policy_from_json(wr_str json, wr_policy* policy, wr_error* err);
/** Text result. since: 0.1.0 */
WR_API wr_status wr_policy_to_json(const wr_policy* policy, char* buf, size_t cap, size_t* needed, wr_error* err);
/** returns: "cost", "round_robin", ...; "unknown". lifetime: static. since: 0.1.0 */
WR_API const char* wr_algorithm_name(uint32_t algorithm);

/* ==================================================================== 5 Replicas */

typedef struct wr_router wr_router;

/** Sizes that are fixed when the router is made. */
typedef struct wr_router_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t max_replicas; /* at most 16,384 */
  uint32_t max_tickets;  /* requests in flight */
  uint64_t index_max_bytes; /* hard cap per pool */
  uint64_t session_entries;
  uint64_t shared_prefix_entries;
  uint64_t placement_queue;
  uint64_t max_path_blocks; /* of a prompt; what is behind is neither matched nor kept */
  wr_log_fn log;            /* NULL: none */
  void* log_user;           /* handed to `log`; must outlive the router, wr_router_free logs, too */
  uint64_t reserved[4];
} wr_router_options;
#define WR_ROUTER_OPTIONS_INIT                                                                                       \
  {sizeof(wr_router_options), WR_ABI_VERSION, 1024, 65536, 1073741824u, 65536, 131072, 4096, 32768, NULL, NULL, \
   {0, 0, 0, 0}}

/** `options` NULL: the defaults. errors: invalid_argument, abi_mismatch, out_of_memory. since: 0.1.0 */
WR_API wr_status wr_router_new(const wr_router_options* options, wr_router** out, wr_error* err);
/** since: 0.1.0 */
WR_API void wr_router_free(wr_router* router);
/** Swaps the policy for all calls that start afterwards. errors: invalid_argument; the old policy then stays. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_set_policy(wr_router* router, const wr_policy* policy, wr_error* err);
/** The policy in force. `struct_size` of `out` must be set. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_get_policy(const wr_router* router, wr_policy* out, wr_error* err);

enum { WR_ROLE_UNIFIED = 0, WR_ROLE_PREFILL = 1, WR_ROLE_DECODE = 2 };
/** up: takes requests. draining: finishes what it has. down: takes nothing; what it holds is kept. */
enum { WR_HEALTH_UP = 0, WR_HEALTH_DRAINING = 1, WR_HEALTH_DOWN = 2 };

typedef struct wr_label {
  wr_str key;
  wr_str value;
} wr_label;

/** How an engine keeps what it has computed: blocks that requests share (vLLM, SGLang, TensorRT-LLM), or whole sequences in slots (llama.cpp). */
enum { WR_CACHE_PAGED = 0, WR_CACHE_SLOTS = 1 };

/** One engine instance, or one data-parallel rank of it: (name, dp_rank). */
typedef struct wr_replica_spec {
  uint32_t struct_size;
  uint32_t dp_rank;
  wr_str name;    /* name, pool and ring_id: UTF-8 without control characters, at most 1024 bytes */
  wr_str pool;    /* the model it serves; empty serves every model that has no pool of its own */
  wr_str ring_id; /* stable slot name; empty = the name, with "/<dp_rank>" behind it for ranks above 0 */
  uint32_t role;
  uint32_t health;
  wr_str health_reason;
  double weight;              /* share of the ring and of the load bound, (0, 1000] */
  const wr_str* adapters;     /* a list is the whole list, whatever any_adapter says */
  size_t adapter_count;
  const wr_label* labels;
  size_t label_count;
  uint32_t any_adapter;
  uint32_t cache_kind;     /* WR_CACHE_... */
  int64_t capacity_tokens; /* of its KV cache; 0 = unknown until the engine says so (signals) */
  /* how fast its hardware is: a step takes max(floor, token * T) + pair * P + context * C + overhead */
  int64_t floor_ns;
  int64_t token_ps;
  int64_t pair_ps;
  int64_t context_ps;
  int64_t overhead_ns;
  /* of WR_CACHE_SLOTS: --parallel, --kv-unified, and --cache-ram in tokens, of llama.cpp's server */
  uint32_t slots; /* 1..256 */
  uint32_t slots_unified;
  int64_t slot_ram_tokens; /* 0 = no cache in RAM */
  /* when it comes up its cost counts 1000 / slow_start_permille times, falling to once over so long. since: 0.2.0 */
  uint32_t slow_start_ms;       /* 0 = at once */
  uint32_t slow_start_permille; /* 1..1000; 0 is taken for 100 */
  uint64_t reserved[1];
} wr_replica_spec;
/** The rates are of an 8B model on one H100; declare your own hardware. The slots are those of llama-server without flags. */
#define WR_REPLICA_SPEC_INIT                                                                                    \
  {sizeof(wr_replica_spec), 0, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_ROLE_UNIFIED, WR_HEALTH_UP, WR_STR_INIT, 1.0, \
   NULL, 0, NULL, 0, 1, 0, 0, 6700000, 24000000, 1300, 56000, 1000000, 4, 1, 65536, 0, 0, {0}}

/** errors: invalid_argument (every fault named), out_of_range (role, health, cache_kind), already_exists (name and rank), capacity. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_add_replica(wr_router* router, const wr_replica_spec* spec, int64_t now_ns, wr_replica_id* out,
                                       wr_error* err);
/** The replica and what is believed of its cache go at once; its tickets stay valid. errors: stale. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_remove_replica(wr_router* router, wr_replica_id replica, int64_t now_ns, wr_error* err);
/** Changes all but name, dp_rank, pool and health in place: fill the whole spec anew. `health` and `health_reason` are not taken over: they come
    from probes, specs from configuration, and wr_router_set_health alone changes them.
    errors: stale, invalid_argument, out_of_range (role, health, cache_kind). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_update_replica(wr_router* router, wr_replica_id replica, const wr_replica_spec* spec,
                                          int64_t now_ns, wr_error* err);
/** errors: stale, out_of_range (health). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_set_health(wr_router* router, wr_replica_id replica, uint32_t health, wr_str reason,
                                      int64_t now_ns, wr_error* err);
/** It takes no new requests and finishes what it has until `until_ns` (0 = no end); then wr_router_advance takes it for down, and whoever forwards
    should cut what still runs there. errors: stale. threads: any. since: 0.2.0 */
WR_API wr_status wr_router_drain(wr_router* router, wr_replica_id replica, int64_t until_ns, int64_t now_ns, wr_error* err);
/** returns: requests in flight on all replicas of exactly that pool; 0 when there is none. threads: any. Hot. since: 0.2.0 */
WR_API int64_t wr_router_requests_in_flight(const wr_router* router, wr_str pool);
/** The ids in the table, ordered by slot; *count of them. out NULL asks for the count. errors: capacity (*count is set, `out` untouched).
    threads: any. since: 0.1.0 */
WR_API wr_status wr_router_replicas(const wr_router* router, wr_replica_id* out, size_t cap, size_t* count, wr_error* err);
/** errors: not_found. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_find_replica(const wr_router* router, wr_str name, uint32_t dp_rank, wr_replica_id* out,
                                        wr_error* err);
/** Text result: its name. errors: stale, capacity. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_replica_name(const wr_router* router, wr_replica_id replica, char* buf, size_t cap,
                                        size_t* needed, wr_error* err);
/** Text result: the value of one label, e.g. its address. errors: stale, not_found, capacity. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_replica_label(const wr_router* router, wr_replica_id replica, wr_str key, char* buf, size_t cap,
                                         size_t* needed, wr_error* err);

/** What engines report of themselves. */
enum {
  WR_SIGNAL_RUNNING = 0,        /* requests in its batch */
  WR_SIGNAL_WAITING = 1,        /* requests in its queue */
  WR_SIGNAL_KV_USAGE = 2,       /* share of KV blocks in use, 0..1 */
  WR_SIGNAL_BLOCK_TOKENS = 3,   /* tokens per KV block */
  WR_SIGNAL_BLOCK_COUNT = 4,    /* KV blocks in all */
  WR_SIGNAL_PREFIX_QUERIES = 5, /* counter */
  WR_SIGNAL_PREFIX_HITS = 6,    /* counter */
  WR_SIGNAL_WAITING_TOKENS = 7  /* prompt tokens still to compute: uncached ones of its queue, and what is left of those in its batch. since: 0.2.0 */
};
/** errors: stale, invalid_argument (not finite, negative), out_of_range (signal). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_signal(wr_router* router, wr_replica_id replica, uint32_t signal, double value, int64_t now_ns,
                                  wr_error* err);

/** What an engine says of its own prefix cache: counters since its start. */
typedef struct wr_prefix_counters {
  uint32_t struct_size;
  uint32_t in_blocks; /* 1: blocks are counted, not tokens */
  int64_t queries;    /* looked up */
  int64_t hits;       /* of those, found */
  uint32_t shared;    /* 1: of all ranks of its page together; this replica's part cannot be told */
  uint32_t reserved0;
  uint64_t reserved[2];
} wr_prefix_counters;
#define WR_PREFIX_COUNTERS_INIT {sizeof(wr_prefix_counters), 0, 0, 0, 0, 0, {0, 0}}
/** A reading of them, for the statistics alone: the engine's hit ratio stands beside what was matched here. wr_router_apply_metrics and wr_poller
    do it by themselves. errors: stale, invalid_argument (negative, more hits than queries). threads: any. since: 0.2.0 */
WR_API wr_status wr_router_prefix_counters(wr_router* router, wr_replica_id replica, const wr_prefix_counters* counters,
                                           int64_t now_ns, wr_error* err);

/** Consecutive blocks of one prompt that an engine says it stored. The first event makes the replica a *reported* one: what was believed of its
    cache goes, and its own events alone count from then on. */
typedef struct wr_stored_blocks {
  uint32_t struct_size;
  uint32_t tier;
  const uint64_t* parent;     /* the engine's name of the block before; NULL: they start at block 0 */
  const uint64_t* ids;        /* the engine's names; opaque; 0 names nothing */
  const uint64_t* blocks;     /* their block hashes under the policy's seed, or NULL */
  size_t count;               /* of ids, and of blocks if given */
  const uint32_t* token_ids;  /* used when `blocks` is NULL */
  size_t token_count;         /* count * the policy's block_size */
  wr_str adapter;             /* of the request that they belong to, for hashing token_ids */
  wr_str cache_salt;
  wr_str tenant;
  uint64_t reserved[4];
} wr_stored_blocks;
#define WR_STORED_BLOCKS_INIT \
  {sizeof(wr_stored_blocks), WR_TIER_DEVICE, NULL, NULL, NULL, 0, NULL, 0, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, {0, 0, 0, 0}}

/** errors: stale, unsupported (role prefill), invalid_argument (sizes), not_found (unknown parent: nothing stored, counted), capacity.
    threads: any. since: 0.1.0 */
WR_API wr_status wr_router_blocks_stored(wr_router* router, wr_replica_id replica, const wr_stored_blocks* stored,
                                         int64_t now_ns, wr_error* err);
/** Removed, in any order; unknown names are skipped. `*removed` (NULL is fine): how many were held. errors: stale, unsupported. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_blocks_removed(wr_router* router, wr_replica_id replica, uint32_t tier, const uint64_t* ids,
                                          size_t count, int64_t now_ns, size_t* removed, wr_error* err);
/** Blocks that it named before are on `tier`, too (offloaded, say); their content is not told again. `*known` (NULL is fine): how many of the names
    are known. errors: stale, unsupported (role prefill), out_of_range (tier). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_blocks_also_on(wr_router* router, wr_replica_id replica, uint32_t tier, const uint64_t* ids,
                                          size_t count, int64_t now_ns, size_t* known, wr_error* err);
/** The engine restarted or dropped its cache: what is known of it goes, its load stays. errors: stale. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_clear_cache(wr_router* router, wr_replica_id replica, int64_t now_ns, wr_error* err);
/** The store that all replicas of that pool share is empty (WR_TIER_SHARED). errors: not_found (pool). threads: any. since: 0.2.0 */
WR_API wr_status wr_router_clear_shared_store(wr_router* router, wr_str pool, wr_error* err);

#define WR_CACHE_KEY_BYTES 32u
typedef struct wr_cache_import_report {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t replicas_restored;
  uint64_t replicas_unknown;
  uint64_t blocks_offered;
  uint64_t blocks_restored;
  uint64_t rates_restored; /* kinds of hardware that begin with what was learned of their rates. since: 0.2.0 */
  uint64_t reserved[1];
} wr_cache_import_report;
#define WR_CACHE_IMPORT_REPORT_INIT {sizeof(wr_cache_import_report), 0, 0, 0, 0, 0, 0, {0}}
/** What is believed of all caches, as bytes for a file, encrypted and authenticated under `key` (WR_CACHE_KEY_BYTES random bytes): a router that
    imports them starts warm. Binary result without NUL; each call gives other bytes, of a size that may have grown: retry on capacity.
    errors: capacity, internal. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_export_caches(const wr_router* router, const uint8_t* key, int64_t now_ns, uint8_t* buf,
                                         size_t cap, size_t* needed, wr_error* err);
/** Believes it again, of the replicas that are in the router by now. `away_ns`: how long ago the export was made. `report`: NULL is fine.
    errors: malformed, unsupported (version), invalid_argument (key, block size or hash seed), too_large. Nothing changes then. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_import_caches(wr_router* router, const uint8_t* bytes, size_t size, const uint8_t* key,
                                         int64_t now_ns, int64_t away_ns, wr_cache_import_report* report, wr_error* err);

/* ==================================================================== 6 Engines */

/* wr_kv_source and wr_metrics are for callers who bring the messages themselves; wr_kv_subscriber and wr_poller go and get them. */

/** One publisher of KV events, i.e. one rank of one engine, and the replica whose cache it tells of: numbers are checked, a gap is filled from the
    engine's replay or ends in a cleared cache, a restart clears at once, blocks whose parent is missing wait for it. Events reach the router in
    the order of their numbers, each once. Of vLLM and SGLang, every wire form in use. threads: one at a time, beside any use of the router.
    lifetime: the router must outlive it. */
typedef struct wr_kv_source wr_kv_source;

/** Where frames come from, by ZeroMQ's names. */
enum {
  WR_KV_SUBSCRIBER = 0, /* [topic, seq, payload]: wr_kv_source_live */
  WR_KV_DEALER = 1,     /* replay: an empty delimiter, then as REQ */
  WR_KV_REQ = 2         /* replay: [seq, payload], or [topic, seq, payload] */
};
/** What happened to a source. */
enum {
  WR_KV_NOTICE_GAP = 0,             /* messages from..to did not come */
  WR_KV_NOTICE_REPLAY_COMPLETE = 1, /* from..to are applied, the gap is closed */
  WR_KV_NOTICE_RESYNC = 2,          /* the cache was cleared: from..to are lost for good; `reason` says why */
  WR_KV_NOTICE_RESTART = 3,         /* numbers went back from `from` to `to`: a new engine; the cache was cleared */
  WR_KV_NOTICE_CLEARED = 4,         /* the engine dropped its cache */
  WR_KV_NOTICE_ORPHAN = 5,          /* `block` waits for its `parent` */
  WR_KV_NOTICE_ORPHAN_ATTACHED = 6,
  WR_KV_NOTICE_ORPHAN_DROPPED = 7, /* `from` blocks: too many wait, or too long */
  WR_KV_NOTICE_BAD_EVENT = 8,      /* one event of message `from` was refused: `fault` */
  WR_KV_NOTICE_BAD_MESSAGE = 9,    /* message `from` could not be decoded: `fault`; the cache was cleared */
  WR_KV_NOTICE_BLOCK_SIZE = 10,    /* blocks of `from` tokens where `to` are expected: refused; see engine_block_size */
  WR_KV_NOTICE_UNKNOWN_BLOCK = 11  /* `block` was said to be on another tier, but nobody knows what it is */
};
enum {
  WR_KV_RESYNC_NONE = 0,
  WR_KV_RESYNC_GAP_WITHOUT_REPLAY = 1,
  WR_KV_RESYNC_REPLAY_OVERRUN = 2, /* the engine no longer has them, or never published them */
  WR_KV_RESYNC_REPLAY_TIMEOUT = 3,
  WR_KV_RESYNC_TOO_MUCH_HELD = 4, /* more live messages came meanwhile than max_held_bytes */
  WR_KV_RESYNC_BAD_MESSAGE = 5
};
/** returns: the name of a wr_kv_notice's `fault`, e.g. "truncated"; "unknown". lifetime: static. threads: any. since: 0.1.0 */
WR_API const char* wr_kv_fault_name(uint32_t fault);

typedef struct wr_kv_notice {
  uint32_t struct_size; /* what this library fills; read no further */
  uint32_t kind;        /* WR_KV_NOTICE_... */
  uint32_t reason;      /* WR_KV_RESYNC_... */
  uint32_t fault;       /* 0 = none */
  uint64_t from;
  uint64_t to;
  uint64_t block; /* the engine's names */
  uint64_t parent;
  uint64_t reserved[4];
} wr_kv_notice;
/** Called on the thread that calls into the source; must not call back into that source. `notice` lives until it returns. */
typedef void (*wr_kv_notice_fn)(void* user, const wr_kv_notice* notice);

typedef struct wr_kv_source_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t block_size; /* 0: block size and hash seed of the policy in force. After a policy with others the source must be made anew */
  uint32_t engine_block_size; /* 0: as block_size. Else a multiple of it, at most 128 times (blocks are cut), or a divisor (they are joined) */
  uint64_t hash_seed;         /* where block_size is not 0 */
  wr_str isolation_key;       /* where the engine serves one tenant alone */
  uint32_t replay;            /* 1: the engine answers replay requests */
  uint32_t replay_attempts;   /* replays are lossy: a hole is asked for again, so often in a row; then it is lost for good; at least 1 */
  int64_t replay_timeout_ns;  /* per attempt, from its last message */
  uint64_t max_message_bytes; /* of one payload; larger ones are bad messages; below 2^32 */
  uint64_t max_held_bytes;    /* of live messages that wait for a replay */
  uint64_t max_orphan_blocks;
  int64_t orphan_age_ns;
  wr_kv_notice_fn notice; /* NULL: none */
  void* notice_user;      /* handed to `notice`; must outlive the source */
  uint64_t reserved[6];
} wr_kv_source_options;
#define WR_KV_SOURCE_OPTIONS_INIT                                                                                           \
  {sizeof(wr_kv_source_options), WR_ABI_VERSION, 0, 0, WR_DYNAMO_HASH_SEED, WR_STR_INIT, 0, 3, 2000000000, 16777216u, 16777216u, \
   4096, 30000000000, NULL, NULL, {0, 0, 0, 0, 0, 0}}

enum {
  WR_KV_STATE_WAITING = 0,  /* no message yet */
  WR_KV_STATE_LIVE = 1,     /* every message since the start or the last resync is applied */
  WR_KV_STATE_REPLAYING = 2 /* unsure: a gap is being filled */
};
typedef struct wr_kv_source_status {
  uint32_t struct_size;
  uint32_t state; /* WR_KV_STATE_... */
  uint64_t next;  /* the number that is expected */
  int64_t unsure_since_ns; /* while replaying */
  int64_t last_event_ns;   /* when the last live message came */
  uint64_t messages;
  uint64_t replayed;
  uint64_t duplicates;
  uint64_t gaps;
  uint64_t resyncs;
  uint64_t restarts;
  uint64_t bad_messages;
  uint64_t bad_events;
  uint64_t unknown_removes; /* blocks said to be removed that were not known there */
  uint64_t orphan_blocks;   /* waiting now */
  uint64_t held_bytes;      /* waiting now */
  uint64_t blocks_stored;   /* in events for this router */
  uint64_t blocks_removed;
  uint64_t reserved[8];
} wr_kv_source_status;
#define WR_KV_SOURCE_STATUS_INIT \
  {sizeof(wr_kv_source_status), WR_KV_STATE_WAITING, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 0, 0, 0, 0}}

/** `options` NULL: the defaults. The replica's cache is its events' from the first one on. If it is removed, free the source: further messages are
    read and change nothing. errors: stale, invalid_argument, abi_mismatch, out_of_memory. since: 0.1.0 */
WR_API wr_status wr_kv_source_new(wr_router* router, wr_replica_id replica, const wr_kv_source_options* options,
                                  wr_kv_source** out, wr_error* err);
/** since: 0.1.0 */
WR_API void wr_kv_source_free(wr_kv_source* source);
/** A message from the publisher, in the order in which they came. shape: frames[count] of WR_KV_SUBSCRIBER; what must wait is copied.
    errors: malformed (as many frames, seq of 8 bytes), value_out_of_range (seq): dropped, and missed when the next one comes. A payload that
    cannot be decoded is no failure of the call: the cache is cleared, a notice and bad_messages tell. alloc: while orphans or held messages wait.
    since: 0.1.0 */
WR_API wr_status wr_kv_source_live(wr_kv_source* source, const wr_str* frames, size_t count, int64_t now_ns, wr_error* err);
/** A message from the replay socket, the one that ends the replay included. `socket`: WR_KV_DEALER or WR_KV_REQ. Those that nobody waits for are
    dropped. errors: as live; out_of_range (socket). since: 0.1.0 */
WR_API wr_status wr_kv_source_replayed(wr_kv_source* source, uint32_t socket, const wr_str* frames, size_t count,
                                       int64_t now_ns, wr_error* err);
/** Whether a replay is to be requested now: *wanted = 1 once per attempt, and *from is the number to request from (8 bytes, big-endian, on the
    wire); else *wanted = 0 and *from stays. Ask after live, replayed and advance. errors: invalid_argument. since: 0.1.0 */
WR_API wr_status wr_kv_source_wants_replay(wr_kv_source* source, uint32_t* wanted, uint64_t* from, wr_error* err);
/** Timeouts of replays and orphans. Call it about as often as replay_timeout_ns. since: 0.1.0 */
WR_API wr_status wr_kv_source_advance(wr_kv_source* source, int64_t now_ns, wr_error* err);
/** errors: invalid_argument. since: 0.1.0 */
WR_API wr_status wr_kv_source_read_status(const wr_kv_source* source, wr_kv_source_status* out, wr_error* err);

/** Subscribes to the KV events of many engines over ZeroMQ, on one thread of its own: a wr_kv_source per engine, replays requested where there is an
    endpoint for them. Routing never waits for it. threads: any for every call. lifetime: the router must outlive it. */
typedef struct wr_kv_subscriber wr_kv_subscriber;

typedef struct wr_kv_subscriber_options {
  uint32_t struct_size;
  uint32_t abi_version;
  wr_clock_fn clock; /* NULL: the system's monotonic clock */
  void* clock_user;  /* handed to `clock`; must outlive the subscriber */
  wr_log_fn log;     /* called on its thread; NULL: none */
  void* log_user;
  uint64_t max_message_bytes; /* larger ones end the connection; it comes back with a gap */
  uint32_t queue_messages;    /* per engine; beyond, the engine's are lost, which is a gap; at most 2^31 - 1 */
  uint32_t reserved0;
  int64_t reconnect_from_ns; /* pauses between attempts to connect, in whole milliseconds */
  int64_t reconnect_to_ns;
  uint64_t reserved[4];
} wr_kv_subscriber_options;
#define WR_KV_SUBSCRIBER_OPTIONS_INIT \
  {sizeof(wr_kv_subscriber_options), WR_ABI_VERSION, NULL, NULL, NULL, NULL, 16777216u, 100000, 0, 100000000, 5000000000, {0, 0, 0, 0}}

/** Where one publisher, i.e. one data-parallel rank, is found. */
typedef struct wr_kv_endpoint {
  uint32_t struct_size;
  uint32_t reserved0;
  wr_replica_id replica;
  wr_str events; /* e.g. "tcp://10.0.0.1:5557"; rank r of vLLM and SGLang: that port + r */
  wr_str replay; /* e.g. "tcp://10.0.0.1:5558"; empty: gaps clear the replica's cache */
  wr_str topic;  /* prefix of the topics wanted; empty: all */
  const wr_kv_source_options* source; /* NULL: the defaults. `replay` follows from the endpoint; `notice` must be NULL: the log tells */
  uint64_t reserved[4];
} wr_kv_endpoint;
#define WR_KV_ENDPOINT_INIT {sizeof(wr_kv_endpoint), 0, WR_NO_REPLICA_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, NULL, {0, 0, 0, 0}}

typedef struct wr_kv_endpoint_status {
  uint32_t struct_size;
  uint32_t connected;
  uint64_t connects;
  uint64_t bad_frames; /* messages that were no [topic, seq, payload] */
  uint64_t reserved[4];
} wr_kv_endpoint_status;
#define WR_KV_ENDPOINT_STATUS_INIT {sizeof(wr_kv_endpoint_status), 0, 0, 0, {0, 0, 0, 0}}

/** `options` NULL: the defaults. errors: unsupported (the library was built without ZeroMQ), io (no sockets or threads left), invalid_argument,
    abi_mismatch, out_of_memory. since: 0.2.0 */
WR_API wr_status wr_kv_subscriber_new(wr_router* router, const wr_kv_subscriber_options* options, wr_kv_subscriber** out,
                                      wr_error* err);
/** Ends its thread; not from a callback. since: 0.2.0 */
WR_API void wr_kv_subscriber_free(wr_kv_subscriber* subscriber);
/** Begins to listen; an engine that is not there yet is tried again with growing pauses. errors: stale, already_exists (that replica has one),
    invalid_argument (no ZeroMQ endpoint, source options), io. threads: any. since: 0.2.0 */
WR_API wr_status wr_kv_subscriber_add(wr_kv_subscriber* subscriber, const wr_kv_endpoint* endpoint, wr_error* err);
/** Nothing of that replica is applied once this returns. errors: not_found. threads: any. since: 0.2.0 */
WR_API wr_status wr_kv_subscriber_remove(wr_kv_subscriber* subscriber, wr_replica_id replica, wr_error* err);
/** At most a tenth of a second old. `status`, `source`: either may be NULL. errors: not_found. threads: any. since: 0.2.0 */
WR_API wr_status wr_kv_subscriber_read_status(const wr_kv_subscriber* subscriber, wr_replica_id replica,
                                              wr_kv_endpoint_status* status, wr_kv_source_status* source, wr_error* err);

/** Reads metrics pages (Prometheus text 0.0.4, 1.0.0, OpenMetrics) of vLLM, SGLang, TensorRT-LLM, Triton, TGI and llama.cpp, one after another, of any
    number of engines, in scratch memory that it keeps. threads: one page at a time. */
typedef struct wr_metrics wr_metrics;

/** What one page was. lifetime: `engine` until the next parse or the end. */
typedef struct wr_metrics_reading {
  uint32_t struct_size;
  uint32_t has_shared; /* 1: beside several ranks there are series that name none; WR_RANK_SHARED reads them */
  wr_str engine;      /* whose metrics they are: "vllm", "sglang", "trtllm", "triton-trtllm", "tgi", "llamacpp", or of a table of yours */
  size_t rank_count;  /* by (model, rank) */
  size_t skipped_lines; /* malformed, of bad rank, or beyond a limit */
  uint64_t reserved[4];
} wr_metrics_reading;
#define WR_METRICS_READING_INIT {sizeof(wr_metrics_reading), 0, WR_STR_INIT, 0, 0, {0, 0, 0, 0}}

enum { WR_PREFIX_UNIT_UNKNOWN = 0, WR_PREFIX_UNIT_TOKENS = 1, WR_PREFIX_UNIT_BLOCKS = 2 };
/** What a page says of one data-parallel rank. What it does not say, or says as NaN, negative or absurd, is WR_UNKNOWN, the doubles too; never 0. */
typedef struct wr_metrics_rank {
  uint32_t struct_size;
  uint32_t prefix_unit; /* WR_PREFIX_UNIT_..., of hits and queries */
  int64_t dp_rank;      /* as labelled; WR_UNKNOWN: no label */
  wr_str model;         /* empty: no label. lifetime: until the next parse or the end */
  int64_t waiting;
  int64_t running;
  double kv_usage; /* 0..1 */
  int64_t prefix_hits; /* counters since the engine's start */
  int64_t prefix_queries;
  double prefix_hit_rate; /* 0..1, as the engine computes it, over its own window */
  int64_t block_tokens;
  int64_t block_count;
  int64_t lora_max;
  int64_t ttft_count; /* counter: first tokens */
  double ttft_sum_s;
  int64_t waiting_tokens; /* prompt tokens still to compute: uncached ones of queue and batch. since: 0.2.0 */
  uint64_t reserved[7];
} wr_metrics_rank;
#define WR_METRICS_RANK_INIT                                                                                               \
  {sizeof(wr_metrics_rank), WR_PREFIX_UNIT_UNKNOWN, WR_UNKNOWN, WR_STR_INIT, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, \
   WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, {0, 0, 0, 0, 0, 0, 0}}

/** Whose signals a rank's are. */
typedef struct wr_metrics_target {
  uint32_t struct_size;
  uint32_t reserved0;
  wr_replica_id replica;
  int64_t dp_rank; /* WR_UNKNOWN: the only rank of the page, whatever its label */
  wr_str model;    /* empty: any */
  uint64_t reserved[2];
} wr_metrics_target;
#define WR_METRICS_TARGET_INIT {sizeof(wr_metrics_target), 0, WR_NO_REPLICA_INIT, WR_UNKNOWN, WR_STR_INIT, {0, 0}}

typedef struct wr_metrics_applied {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t signals;         /* taken by the router */
  uint64_t refused;         /* by it, e.g. of a replica that was removed */
  uint64_t unmatched_ranks; /* of the page, with no target or with several */
  uint64_t shared_counters; /* targets that got prefix-cache counters which are of their whole page */
  uint64_t reserved[1];
} wr_metrics_applied;
#define WR_METRICS_APPLIED_INIT {sizeof(wr_metrics_applied), 0, 0, 0, 0, 0, {0}}

/** errors: out_of_memory. since: 0.1.0 */
WR_API wr_status wr_metrics_new(wr_metrics** out, wr_error* err);
/** since: 0.1.0 */
WR_API void wr_metrics_free(wr_metrics* metrics);
/** Adds a table of metrics' names, or replaces the one of the same engine; what was read is forgotten. JSON: one object with the members
    of EngineMetricsTable in warmroute/ingest/engine_metrics.hpp. errors: invalid_json, not_an_object, too_large (256 KiB), invalid_argument (every fault named). since: 0.1.0 */
WR_API wr_status wr_metrics_set_table(wr_metrics* metrics, wr_str json, wr_error* err);
/** Reads one page; it is copied. `engine`: which table to read by; empty: the one whose metrics are on the page. errors: malformed (HTML, JSON,
    compressed), not_found (no known metrics), invalid_argument (of several engines and none named; no such table), too_large (16 MiB): the parser
    then holds nothing. alloc: none once it has seen a page of the size. since: 0.1.0 */
WR_API wr_status wr_metrics_parse(wr_metrics* metrics, wr_str page, wr_str engine, wr_metrics_reading* out, wr_error* err);
/** Of wr_metrics_read_rank: what the page says without naming a rank. */
#define WR_RANK_SHARED SIZE_MAX
/** One rank of the page that was read last. errors: out_of_range. since: 0.1.0 */
WR_API wr_status wr_metrics_read_rank(const wr_metrics* metrics, size_t rank, wr_metrics_rank* out, wr_error* err);
/** Gives each rank's known values to its replica as signals, as of `now_ns` (of the scrape). shape: `stride` bytes from one target to the next. A rank
    without label is a sole target's, whatever its dp_rank. `applied`: NULL is fine. What a replica refuses is counted, not a failure.
    errors: invalid_argument, out_of_range (dp_rank). threads: any, of the router. since: 0.1.0 */
WR_API wr_status wr_router_apply_metrics(wr_router* router, const wr_metrics* metrics, const wr_metrics_target* targets,
                                         size_t count, size_t stride, int64_t now_ns, wr_metrics_applied* applied,
                                         wr_error* err);

/** Remembers one server's counters from one page to the next. threads: one at a time. */
typedef struct wr_engine_counters wr_engine_counters;

/** What one rank's counters gained since the page before. WR_UNKNOWN: not known now, or not before. */
typedef struct wr_engine_delta {
  uint32_t struct_size;
  uint32_t restarted; /* 1: a counter fell, the engine began anew and its cache is empty: wr_router_clear_cache */
  int64_t dp_rank;    /* as labelled; WR_UNKNOWN: no label */
  wr_str model;       /* empty: no label. lifetime: until the metrics' next parse or end */
  uint32_t shared;    /* 1: of WR_RANK_SHARED */
  uint32_t reserved0;
  int64_t prefix_hits;
  int64_t prefix_queries;
  int64_t first_tokens;
  uint64_t reserved[4];
} wr_engine_delta;
#define WR_ENGINE_DELTA_INIT \
  {sizeof(wr_engine_delta), 0, WR_UNKNOWN, WR_STR_INIT, 0, 0, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, {0, 0, 0, 0}}

/** errors: out_of_memory. since: 0.2.0 */
WR_API wr_status wr_engine_counters_new(wr_engine_counters** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_engine_counters_free(wr_engine_counters* counters);
/** With the page that `metrics` read last: *count deltas, one for each rank that was seen before. alloc: when a rank is new. since: 0.2.0 */
WR_API wr_status wr_engine_counters_update(wr_engine_counters* counters, const wr_metrics* metrics, size_t* count,
                                           wr_error* err);
/** One of them. errors: out_of_range. since: 0.2.0 */
WR_API wr_status wr_engine_counters_read(const wr_engine_counters* counters, size_t delta, wr_engine_delta* out,
                                         wr_error* err);
/** Forgets what was read: the next page is the first. since: 0.2.0 */
WR_API wr_status wr_engine_counters_clear(wr_engine_counters* counters, wr_error* err);

/** Asks model servers for their metrics (GET, HTTP/1.1, unencrypted) again and again, on one thread of its own, and gives a router what they say, or hands
    each page to a callback, or both. Routing never waits for it; one slow, broken or hostile server delays no other one's pages. A failed
    scrape changes no signal: it grows old, which the policy's signals_max_age_ns judges. threads: any for every call. */
typedef struct wr_poller wr_poller;

/** A page that came whole with status 200. */
typedef struct wr_poller_page {
  uint32_t struct_size; /* what this library fills; read no further */
  uint32_t reserved0;
  wr_str target; /* its name */
  wr_str body;
  int64_t at_ns;   /* when it was there */
  int64_t took_ns; /* from the request on */
  uint64_t reserved[4];
} wr_poller_page;
/** Called on the poller's thread, before the page is applied; slow ones delay scrapes. It may add, remove and read statuses. `page` lives until it
    returns. */
typedef void (*wr_poller_page_fn)(void* user, const wr_poller_page* page);

typedef struct wr_poller_options {
  uint32_t struct_size;
  uint32_t abi_version;
  int64_t interval_ns; /* from one scrape of a target to its next; several gateways want 100 ms */
  int64_t timeout_ns;  /* of one scrape: connection, request and the whole answer */
  int64_t backoff_to_ns; /* failures in a row double the pause, up to this (or the interval, if that is longer) */
  uint32_t jitter_percent; /* each pause is drawn from the interval and so much around it */
  uint32_t keep_alive;     /* 1: one connection per target stays open */
  uint64_t max_bytes;      /* longer answers fail */
  uint64_t seed;           /* of the jitter */
  const wr_str* tables;    /* as wr_metrics_set_table takes them */
  size_t table_count;
  wr_poller_page_fn page; /* NULL: none */
  void* page_user;        /* these must outlive the poller */
  wr_clock_fn clock;      /* NULL: the system's monotonic clock */
  void* clock_user;
  wr_log_fn log; /* a target's first failure in a row, and that it answers again; on the poller's thread; NULL: none */
  void* log_user;
  uint64_t reserved[4];
} wr_poller_options;
#define WR_POLLER_OPTIONS_INIT                                                                                      \
  {sizeof(wr_poller_options), WR_ABI_VERSION, 500000000, 2000000000, 5000000000, 10, 1, 16777216u, 1, NULL, 0, NULL, NULL, \
   NULL, NULL, NULL, NULL, {0, 0, 0, 0}}

/** One page, and the replicas that it tells of: one server's data-parallel ranks are one target. */
typedef struct wr_poller_target {
  uint32_t struct_size;
  uint32_t clear_on_restart; /* 1: when the page's counters fall, what is believed of its replicas' caches goes; 0 where KV events come, too */
  wr_str url;    /* "[http://]host[:port][/path]"; an IPv6 address in brackets; without port 80, without path /metrics */
  wr_str name;   /* what it is called in calls and logs; empty: the url */
  wr_str engine; /* the table to read it by; empty: the one whose metrics are on the page */
  const wr_metrics_target* replicas; /* none: nothing is applied, the callback alone gets the pages */
  size_t replica_count;
  size_t replica_stride; /* bytes from one to the next */
  uint64_t reserved[4];
} wr_poller_target;
#define WR_POLLER_TARGET_INIT \
  {sizeof(wr_poller_target), 1, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, NULL, 0, sizeof(wr_metrics_target), {0, 0, 0, 0}}

#define WR_POLLER_ENGINE_SIZE 64
#define WR_POLLER_ERROR_SIZE 256
typedef struct wr_poller_status {
  uint32_t struct_size;
  uint32_t up; /* 1: the last scrape succeeded */
  uint64_t scrapes; /* ended, in either way */
  uint64_t failures;
  uint64_t failures_in_row;
  uint64_t connects;
  uint64_t restarts; /* counters fell */
  int64_t age_ns;    /* since the last success; WR_UNKNOWN: never */
  int64_t last_duration_ns;
  uint64_t last_bytes; /* of the last page; likewise the next two */
  uint64_t skipped_lines;
  uint64_t unmatched_ranks; /* with no replica, or several */
  uint64_t signals;         /* given to the router */
  char engine[WR_POLLER_ENGINE_SIZE];    /* of the last page that was read; NUL-terminated, cut if longer */
  char last_error[WR_POLLER_ERROR_SIZE]; /* of the last failure; stays after a success */
  uint64_t reserved[4];
} wr_poller_status;
#define WR_POLLER_STATUS_INIT {sizeof(wr_poller_status), 0, 0, 0, 0, 0, 0, WR_UNKNOWN, 0, 0, 0, 0, 0, {0}, {0}, {0, 0, 0, 0}}

/** `router` NULL: pages go to the callback alone; else it must outlive the poller. `options` NULL: the defaults. errors: invalid_argument (every fault
    named), invalid_json and the like (tables), io (no thread, no descriptors), abi_mismatch, out_of_memory. since: 0.2.0 */
WR_API wr_status wr_poller_new(wr_router* router, const wr_poller_options* options, wr_poller** out, wr_error* err);
/** Ends its thread, in the middle of scrapes; not from a callback. since: 0.2.0 */
WR_API void wr_poller_free(wr_poller* poller);
/** The first scrape comes within the interval, and within a second. errors: invalid_argument (url), out_of_range (dp_rank), already_exists (name).
    threads: any. since: 0.2.0 */
WR_API wr_status wr_poller_add(wr_poller* poller, const wr_poller_target* target, wr_error* err);
/** Nothing of that target is applied or called back once this returns (called from the callback: after that). errors: not_found.
    threads: any. since: 0.2.0 */
WR_API wr_status wr_poller_remove(wr_poller* poller, wr_str name, wr_error* err);
/** errors: not_found. threads: any. since: 0.2.0 */
WR_API wr_status wr_poller_read_status(const wr_poller* poller, wr_str name, wr_poller_status* out, wr_error* err);

/* ==================================================================== 7 Requests */

enum { WR_BLOCKS_TOKENS = 0, WR_BLOCKS_TEXT = 1 };

/** What is asked. All pointers are read during the call only. */
typedef struct wr_request {
  uint32_t struct_size;
  uint32_t block_kind; /* what block_hashes are of: WR_BLOCKS_... */
  wr_str model;        /* names the pool; empty or unknown names go to the pool "" if there is one */
  wr_str adapter;      /* LoRA adapter; empty = the base model */
  wr_str session;      /* exact key of a conversation; empty = none */
  wr_str tenant;       /* from the verified caller, never from the body; empty = shared */
  wr_str cache_salt;
  const uint32_t* token_ids; /* the prompt's; used when block_count is 0 */
  size_t token_count;
  const uint64_t* block_hashes;
  size_t block_count;
  /* 0 is unknown, too, so that a request of zeros with its struct_size set is a sound one. */
  int64_t input_tokens; /* of all prompts; 0 or WR_UNKNOWN: what token_ids or blocks say, else prompt_bytes by learned bytes per token */
  int64_t prompt_bytes; /* of all canonical prompts; 0 or WR_UNKNOWN */
  int64_t max_output_tokens; /* WR_UNKNOWN: no limit named; 0: no output at all */
  int64_t deadline_ns; /* carried for later policies */
  uint32_t class_id;   /* echoed */
  int32_t priority;
  uint32_t stream;
  uint32_t excluded_count;
  const wr_replica_id* excluded; /* never chosen: what a retry has tried */
  wr_replica_id pinned;          /* only this one may be chosen; generation 0 (no replica has it): none is pinned */
  uint32_t exact_pool;           /* 1: `model` is a pool's name, and the pool "" does not stand in for it. since: 0.2.0 */
  uint32_t reserved0;
  uint64_t reserved[3];
} wr_request;
#define WR_REQUEST_INIT                                                                                               \
  {sizeof(wr_request), WR_BLOCKS_TOKENS, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, NULL, 0, NULL, 0, \
   WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, 0, 0, 0, 0, 0, NULL, WR_NO_REPLICA_INIT, 0, 0, {0, 0, 0}}

/** Wire formats of request bodies. */
enum {
  WR_API_CHAT = 0,        /* POST /v1/chat/completions */
  WR_API_COMPLETIONS = 1, /* POST /v1/completions */
  WR_API_RESPONSES = 2,   /* POST /v1/responses */
  WR_API_EMBEDDINGS = 3,  /* POST /v1/embeddings */
  WR_API_MESSAGES = 4,    /* POST /v1/messages (Anthropic) */
  WR_API_GEMINI = 5,      /* POST .../models/<model>:generateContent, :streamGenerateContent */
  WR_API_CONVERSE = 6     /* POST /model/<model>/converse, /converse-stream (Bedrock) */
};
/** *api = the format whose path `path` ends with. errors: not_found. threads: any. since: 0.1.0 */
WR_API wr_status wr_api_for_path(wr_str path, uint32_t* api, wr_error* err);

/** Turns one canonical prompt into token ids, inside wr_body_parser_parse, on its thread. returns: how many ids the prompt has; if more than
    `cap`, it is called again with room for as many. */
typedef size_t (*wr_tokenizer_fn)(void* user, wr_str canonical_prompt, uint32_t* out, size_t cap);

typedef struct wr_body_options {
  uint32_t struct_size;
  uint32_t max_depth;
  uint64_t max_bytes;
  uint32_t block_size;
  uint32_t isolation;
  uint64_t hash_seed;
  wr_tokenizer_fn tokenizer; /* NULL: without ids in the body, blocks are of text */
  void* tokenizer_user;      /* handed to `tokenizer`; must live until the call that was given these options returns */
  wr_str tenant;  /* from the verified key */
  wr_str adapter; /* yours; beats the body's */
  uint64_t reserved[4];
} wr_body_options;
#define WR_BODY_OPTIONS_INIT \
  {sizeof(wr_body_options), 1024, 33554432u, 16, WR_ISOLATION_SALT, WR_DYNAMO_HASH_SEED, NULL, NULL, WR_STR_INIT, WR_STR_INIT, {0, 0, 0, 0}}
/** Block size, seed and isolation as that policy's router expects; the rest of `options` stays. errors: invalid_argument. since: 0.1.0 */
WR_API wr_status wr_body_options_for(const wr_policy* policy, wr_body_options* options, wr_error* err);

/** Reads bodies one after another in scratch memory that it keeps. threads: one parser per thread. */
typedef struct wr_body_parser wr_body_parser;

enum { WR_PROMPT_CHAT = 0, WR_PROMPT_TEXT = 1, WR_PROMPT_TOKENS = 2, WR_PROMPT_EMBEDDING = 3 };

/** One body, read. lifetime: all views until the parser's next call or end; tenant: yours. */
typedef struct wr_body {
  uint32_t struct_size;
  uint32_t prompt_kind;
  wr_str model;
  wr_str adapter;
  wr_str session;
  wr_str user;
  wr_str cache_salt;
  wr_str tenant;
  uint32_t stream;
  uint32_t include_usage; /* stream_options.include_usage is true */
  int64_t max_output_tokens;
  const uint64_t* block_hashes; /* of the first prompt, whole blocks */
  size_t block_count;
  uint32_t block_kind;
  uint32_t ids_from_body;
  const uint32_t* token_ids; /* of the first prompt, if known */
  size_t token_count;
  size_t prompt_count;
  int64_t input_tokens; /* sum over all prompts, or WR_UNKNOWN */
  size_t prompt_bytes; /* canonical, sum over all prompts; 4 per id where the body gave ids */
  const uint32_t* all_token_ids; /* of all prompts, one after another, if known */
  size_t all_token_count;
  const size_t* prompt_ends; /* shape: prompt i is all_token_ids[prompt_ends[i-1] .. prompt_ends[i]), prompt_count of them; NULL if ids are not known */
  uint64_t reserved[4];
} wr_body;
#define WR_BODY_INIT                                                                                                  \
  {sizeof(wr_body), 0, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, 0, 0, WR_UNKNOWN, NULL, 0, 0, 0, \
   NULL, 0, 0, WR_UNKNOWN, 0, NULL, 0, NULL, {0, 0, 0, 0}}

/** errors: out_of_memory. since: 0.1.0 */
WR_API wr_status wr_body_parser_new(wr_body_parser** out, wr_error* err);
/** since: 0.1.0 */
WR_API void wr_body_parser_free(wr_body_parser* parser);
/** Strict: every byte is checked; keeps no prompt text. `options` NULL: the defaults. errors: the codes from 20 on, with wr_error.offset;
    invalid_argument for bad options. alloc: none once it has seen a body of the size. since: 0.1.0 */
WR_API wr_status wr_body_parser_parse(wr_body_parser* parser, uint32_t api, wr_str body, const wr_body_options* options,
                                      wr_body* out, wr_error* err);
/** What routing takes. lifetime: views into the body's parser. errors: invalid_argument. since: 0.1.0 */
WR_API wr_status wr_body_to_request(const wr_body* body, wr_request* out, wr_error* err);
/** Binary result without NUL: the first prompt's canonical bytes, which blocks are cut from and tokenizers are given. errors: as parse; capacity. since: 0.1.0 */
WR_API wr_status wr_canonical_prompt(uint32_t api, wr_str body, const wr_body_options* options, uint8_t* buf, size_t cap,
                                     size_t* needed, wr_error* err);

/* ==================================================================== 8 Routing */

enum {
  WR_VERDICT_ROUTED = 0,
  WR_VERDICT_NO_REPLICA = 1,        /* the pool exists, but no replica is up */
  WR_VERDICT_NO_POOL = 2,           /* no pool serves this model */
  WR_VERDICT_NO_ADAPTER = 3,        /* no eligible replica carries the adapter */
  WR_VERDICT_ALL_EXCLUDED = 4,      /* `excluded` or `pinned` left nothing */
  WR_VERDICT_SATURATED = 5,         /* every candidate is past the policy's limits: see retry_after_ns */
  WR_VERDICT_TICKET_TABLE_FULL = 6, /* more requests in flight than max_tickets */
  WR_VERDICT_NOT_PERMITTED = 7,     /* reserved */
  WR_VERDICT_NO_PERMITTED_POOL = 8  /* reserved */
};
/** Why this replica and not the one that holds most of the prompt. */
enum {
  WR_REASON_NONE = 0,
  WR_REASON_BEST_MATCH = 1,
  WR_REASON_NO_MATCH = 2,
  WR_REASON_SPILL_WAIT = 3,
  WR_REASON_SPILL_DECODE = 4,
  WR_REASON_SPILL_HOT = 5,
  WR_REASON_SPILL_BOUND = 6,
  WR_REASON_SESSION = 7,
  WR_REASON_HOME = 8,
  WR_REASON_PINNED = 9,
  WR_REASON_ONLY_CANDIDATE = 10,
  WR_REASON_BASELINE = 11,
  WR_REASON_FAIL_OPEN = 12,
  WR_REASON_SPILL_SATURATED = 13 /* since: 0.2.0 */
};
/** Whether one replica or two serve a request, and why. */
enum {
  WR_SPLIT_OFF = 0,             /* policy, algorithm or the request leave no choice */
  WR_SPLIT_PAIR = 1,            /* prefill on prefill_replica, decode on replica */
  WR_SPLIT_UNIFIED_CHEAPER = 2, /* one replica is expected to cost everybody less */
  WR_SPLIT_SHORT_PROMPT = 3,    /* fewer uncached tokens than pair_min_tokens */
  WR_SPLIT_NO_PREFILL = 4,      /* no replica that prefills for others may take it */
  WR_SPLIT_NO_DECODE = 5        /* no other replica that can receive KV may take it */
};
/** returns: "pair", "unified_cheaper", ...; "unknown". lifetime: static. since: 0.2.0 */
WR_API const char* wr_split_name(uint32_t split);
/** returns: "routed", "best_match", ...; "unknown". lifetime: static. since: 0.1.0 */
WR_API const char* wr_verdict_name(uint32_t verdict);
/** since: 0.1.0 */
WR_API const char* wr_reason_name(uint32_t reason);

#define WR_MAX_FALLBACKS 4

typedef struct wr_decision {
  uint32_t struct_size;
  wr_status status; /* of this item in a batch; WR_STATUS_OK otherwise */
  uint32_t verdict;
  uint32_t reason;
  wr_replica_id replica;         /* where to send it */
  wr_replica_id prefill_replica; /* of a pair (split is WR_SPLIT_PAIR): where prefill runs; WR_NO_REPLICA otherwise */
  wr_replica_id fallbacks[WR_MAX_FALLBACKS]; /* what to try next, best first */
  uint32_t fallback_count;
  uint32_t class_id;
  int32_t priority;
  uint32_t reserved0;
  wr_ticket ticket; /* 0 from peek and when nothing was routed */
  int64_t input_tokens;
  int64_t cached_tokens[3]; /* held by `replica`: device, what only host, then only disk holds */
  int64_t best_cached_tokens;
  int64_t expected_wait_ns;
  int64_t expected_prefill_ns;
  int64_t retry_after_ns;
  int64_t shared_tokens; /* what only the store that all replicas share holds beyond cached_tokens */
  int64_t decode_cached_tokens; /* of a pair: leading tokens that `replica` holds already; the rest is transferred. since: 0.2.0 */
  int64_t expected_transfer_ns; /* of a pair. since: 0.2.0 */
  uint32_t split;               /* WR_SPLIT_... since: 0.2.0 */
  uint32_t reserved1;
} wr_decision;
#define WR_DECISION_INIT                                                                                             \
  {sizeof(wr_decision), 0, WR_VERDICT_NO_REPLICA, 0, WR_NO_REPLICA_INIT, WR_NO_REPLICA_INIT,                         \
   {WR_NO_REPLICA_INIT, WR_NO_REPLICA_INIT, WR_NO_REPLICA_INIT, WR_NO_REPLICA_INIT}, 0, 0, 0, 0, 0, 0, {0, 0, 0}, 0, \
   0, 0, 0, 0, 0, 0, 0, 0}

/** Picks a replica and books the request there. Hot. errors: invalid_argument. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_route(wr_router* router, const wr_request* request, int64_t now_ns, wr_decision* out,
                                 wr_error* err);
/** Routes in order, each seeing what the ones before it booked; strides in bytes. An item that fails gets its code in its decision's `status` and
    WR_DECISION_INIT's values in the rest (no replica, ticket 0: a ticket from before cannot be released twice). errors: invalid_argument (arguments of the call, a decision's struct_size: nothing was routed then).
    Hot. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_route_batch(wr_router* router, const wr_request* requests, size_t count, size_t stride,
                                       int64_t now_ns, wr_decision* out, size_t out_stride, wr_error* err);
/** The same decision without booking anything; nothing changes. Hot. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_peek(const wr_router* router, const wr_request* request, int64_t now_ns, wr_decision* out,
                                wr_error* err);
/** since: 0.1.0 */
WR_API wr_status wr_router_peek_batch(const wr_router* router, const wr_request* requests, size_t count, size_t stride,
                                      int64_t now_ns, wr_decision* out, size_t out_stride, wr_error* err);
/** Text result: what peek would answer, and every candidate's terms, as one JSON object (times in it say their unit). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_explain_json(const wr_router* router, const wr_request* request, int64_t now_ns, char* buf,
                                        size_t cap, size_t* needed, wr_error* err);
/** Text result: the same as a table for people, in milliseconds. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_explain_text(const wr_router* router, const wr_request* request, int64_t now_ns, char* buf,
                                        size_t cap, size_t* needed, wr_error* err);

/** Several gateways, each with a router of its own: whose a request is, so that it is forwarded there, once at most. threads: any. */
typedef struct wr_gateway_ring wr_gateway_ring;
/** shape: all gateways by name, in any order that all of them use; `self` is one of them. errors: invalid_argument, already_exists (a name),
    not_found (self). since: 0.2.0 */
WR_API wr_status wr_gateway_ring_new(const wr_str* names, size_t count, wr_str self, wr_gateway_ring** out,
                                     wr_error* err);
/** since: 0.2.0 */
WR_API void wr_gateway_ring_free(wr_gateway_ring* ring);
/** *key: what all gateways with the same policy make of the request: its session, else the first ring_key_tokens of its prompt. errors:
    invalid_argument, out_of_range (as wr_router_route). since: 0.2.0 */
WR_API wr_status wr_gateway_ring_key(const wr_gateway_ring* ring, const wr_request* request, const wr_policy* policy,
                                     uint64_t* key, wr_error* err);
/** returns: the number of the gateway that serves the key: of this one (wr_gateway_ring_self) if `forwarded` is not 0, else of the first on the
    key's way around the ring that is up. since: 0.2.0 */
WR_API uint32_t wr_gateway_ring_owner(const wr_gateway_ring* ring, uint64_t key, uint32_t forwarded);
/** returns: the number of this gateway: its place in `names`. since: 0.2.0 */
WR_API uint32_t wr_gateway_ring_self(const wr_gateway_ring* ring);
/** Whether requests may be forwarded there; all are up at first. A number that nobody has is ignored. since: 0.2.0 */
WR_API void wr_gateway_ring_set_up(wr_gateway_ring* ring, uint32_t gateway, uint32_t up);

/** Text result: what this router has in flight, for the routers of its peers: a line for each replica with requests, by its name. It is of no
    prompt and no client, some 50 bytes a line, empty when nothing is in flight; it may have grown since it was asked for its size: retry on
    capacity. Send it whole, each 20 to 100 ms, without the NUL (needed - 1 bytes): a message that is lost is made good by the next.
    errors: capacity. threads: any. since: 0.2.0 */
WR_API wr_status wr_router_loads(const wr_router* router, int64_t now_ns, char* buf, size_t cap, size_t* needed,
                                 wr_error* err);
/** Such a text of peer number `peer` (below 1024; its number in the gateway ring, not this router's own), in place of what it said before: counted
    as this router's own load until the next one, or for signals_max_age_ns. *known (NULL is fine): how many lines name a replica that is here.
    errors: invalid_argument (not such a text: err says where; peer). Nothing is taken then. threads: any. since: 0.2.0 */
WR_API wr_status wr_router_peer_loads(wr_router* router, uint32_t peer, wr_str loads, int64_t now_ns, size_t* known,
                                      wr_error* err);
/** A peer sent this request to that replica: its prompt (token_ids or block_hashes; equal hash seeds) is believed there as if it had been this
    router's own. Nothing is booked. errors: stale, unsupported (a replica that keeps slots), out_of_range (as wr_router_route). threads: any.
    since: 0.2.0 */
WR_API wr_status wr_router_peer_placed(wr_router* router, wr_replica_id replica, const wr_request* request,
                                       int64_t now_ns, wr_error* err);

/** What a response's `usage` said; WR_UNKNOWN where it did not. */
typedef struct wr_usage {
  uint32_t struct_size;
  uint32_t reserved0;
  int64_t input_tokens;
  int64_t cached_tokens;
  int64_t output_tokens;
  uint64_t reserved[2];
} wr_usage;
#define WR_USAGE_INIT {sizeof(wr_usage), 0, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, {0, 0}}

/** How a request ended, for wr_router_fail. */
enum {
  WR_OUTCOME_FINISHED = 0,
  WR_OUTCOME_CANCELLED = 1,     /* the client went away */
  WR_OUTCOME_CLIENT_ERROR = 2,  /* 4xx */
  WR_OUTCOME_BACKPRESSURE = 3,  /* 429 or 503 */
  WR_OUTCOME_REPLICA_ERROR = 4, /* 5xx, reset, malformed answer */
  WR_OUTCOME_CONNECT_ERROR = 5,
  WR_OUTCOME_TIMEOUT = 6,
  WR_OUTCOME_LEASE_EXPIRED = 7 /* set by the router alone */
};
/** returns: "finished", ...; "unknown". lifetime: static. since: 0.1.0 */
WR_API const char* wr_outcome_name(uint32_t outcome);

/** The first token came: prefill load is released. Hot. errors: stale (the ticket is over, or had its first token: counted, harmless). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_first_token(wr_router* router, wr_ticket ticket, int64_t now_ns);
/** The request is over; cached_tokens repairs what is believed of that cache. `usage` NULL: nothing known. Hot. errors: stale, invalid_argument
    and unsupported (the struct; the ticket is not released). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_finish(wr_router* router, wr_ticket ticket, const wr_usage* usage, int64_t now_ns);
/** The request is over without a whole answer. Hot. errors: stale, out_of_range (outcome; the ticket is not released). threads: any. since: 0.1.0 */
WR_API wr_status wr_router_fail(wr_router* router, wr_ticket ticket, uint32_t outcome, int64_t now_ns);
/** Which pool serves a model name: aliases with weighted targets and ordered fallbacks, pools that are somebody else's API with quotas and
    prices, classes that may never leave for one. In front of a router, whose calls stay usable. since: 0.2.0 */
typedef struct wr_models wr_models;
/** What was chosen beside the replica. The strings live as long as the wr_models. */
typedef struct wr_model_choice {
  uint32_t struct_size;
  uint32_t external;      /* its pool is somebody else's API */
  uint32_t target;        /* which of the name's targets, then fallbacks */
  uint32_t refused;       /* targets before it that could not take it: no replica, saturated, over a quota */
  uint32_t forbidden;     /* targets that its class may not use */
  uint32_t ticket_pool;   /* what its quota was charged; wr_models_finish and wr_models_fail settle it */
  int64_t ticket_tokens;
  wr_str pool;
  wr_str model;           /* what to ask that server for; empty: the client's own name */
  uint64_t reserved[2];
} wr_model_choice;
#define WR_MODEL_CHOICE_INIT {sizeof(wr_model_choice), 0, 0, 0, 0, 0, 0, WR_STR_INIT, WR_STR_INIT, {0, 0}}
/** lifetime: the router's is longer. errors: invalid_argument. since: 0.2.0 */
WR_API wr_status wr_models_new(wr_router* router, wr_models** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_models_free(wr_models* models);
/** {"models": [{"name", "targets": [{"pool", "model", "weight"}], "fallbacks", "choice": "weight" or "cheapest"}], "pools": [{"name", "external",
    "requests_per_minute", "tokens_per_minute", "max_in_flight", "input_price", ...}], "classes": [{"class_id", "may_leave"}]}; prices are USD per
    million tokens. Quotas of pools that stay keep what they were charged. errors: invalid_json, too_large, invalid_argument (every fault with
    its path): nothing changes then. threads: any. since: 0.2.0 */
WR_API wr_status wr_models_set_json(wr_models* models, wr_str json, wr_error* err);
/** As wr_router_route, for the pools that the request's model leads to. Verdicts beyond: no_permitted_pool, saturated (over a quota). Hot.
    errors: as wr_router_route. threads: any. since: 0.2.0 */
WR_API wr_status wr_models_route(wr_models* models, const wr_request* request, int64_t now_ns, wr_decision* out,
                                 wr_model_choice* choice, wr_error* err);
/** Instead of wr_router_finish. errors: as there. since: 0.2.0 */
WR_API wr_status wr_models_finish(wr_models* models, wr_ticket ticket, const wr_model_choice* choice, const wr_usage* usage,
                                  int64_t now_ns);
/** Instead of wr_router_fail; retry_after_ns: as the server said, its pool is left alone for so long. errors: as there. since: 0.2.0 */
WR_API wr_status wr_models_fail(wr_models* models, wr_ticket ticket, const wr_model_choice* choice, uint32_t outcome,
                                int64_t retry_after_ns, int64_t now_ns);
/** Of pools with terms: [{"pool", "routed", "over_quota", "in_flight", "blocked_until_ns"}]. Text result. since: 0.2.0 */
WR_API wr_status wr_models_readings_json(const wr_models* models, char* buf, size_t cap, size_t* needed, wr_error* err);

/** Of a pair: the decode replica has the KV, so that the prefill replica is free of the request. May come before the first token. Hot.
    errors: stale (over, fetched already, or no pair). threads: any. since: 0.2.0 */
WR_API wr_status wr_router_transfer_done(wr_router* router, wr_ticket ticket, int64_t now_ns);
/** Each for `count` tickets, `stride` bytes apart; out[i] (NULL is fine) gets each one's status. errors: invalid_argument. Hot. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_first_token_batch(wr_router* router, const wr_ticket* tickets, size_t count, size_t stride,
                                             int64_t now_ns, wr_status* out);
/** shape: usages[i] belongs to tickets[i]; usages NULL: nothing known of any. since: 0.1.0 */
WR_API wr_status wr_router_finish_batch(wr_router* router, const wr_ticket* tickets, size_t count, size_t stride,
                                        const wr_usage* usages, size_t usage_stride, int64_t now_ns, wr_status* out);
/** since: 0.1.0 */
WR_API wr_status wr_router_fail_batch(wr_router* router, const wr_ticket* tickets, size_t count, size_t stride,
                                      uint32_t outcome, int64_t now_ns, wr_status* out);
/** Bounded upkeep for idle times: leases, times to live, queued placements. Every mutating call does some by itself. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_advance(wr_router* router, int64_t now_ns, wr_error* err);

/* ==================================================================== 9 Observation */

#define WR_VERDICT_SLOTS 16
#define WR_REASON_SLOTS 32
#define WR_OUTCOME_SLOTS 16

/** What a router has done so far. Each number is exact; numbers are not of one moment. */
typedef struct wr_statistics {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t policy_version;
  uint64_t verdicts[WR_VERDICT_SLOTS]; /* by WR_VERDICT_... */
  uint64_t reasons[WR_REASON_SLOTS];   /* of routed requests */
  uint64_t outcomes[WR_OUTCOME_SLOTS];
  uint64_t late_calls; /* with tickets that were over, or never were */
  uint64_t placements_dropped;
  uint64_t clock_clamped;
  uint64_t scratch_allocated;
  uint64_t tickets_in_flight;
  int64_t input_tokens; /* of finished requests whose usage was reported */
  int64_t predicted_cached_tokens;
  int64_t reported_cached_tokens;
  int64_t output_tokens;
  uint64_t cached_reports;
  uint64_t cached_exact; /* of those, predicted to within one block */
  uint64_t ttft_count;
  int64_t observed_ttft_sum_ns;
  int64_t predicted_ttft_sum_ns;
  int64_t predicted_wait_ns;
  int64_t predicted_prefill_ns;
  int64_t saved_prefill_ns;
  uint64_t event_blocks_stored;
  uint64_t event_blocks_removed;
  uint64_t event_orphans;
  uint64_t event_gaps; /* events behind a block that their replica is not known to hold: others were lost, or the index was full.
                          since: 0.2.0 */
  uint64_t reserved[7];
} wr_statistics;
#define WR_STATISTICS_INIT                                                                                        \
  {sizeof(wr_statistics), 0, 0, {0}, {0}, {0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
   0, {0, 0, 0, 0, 0, 0, 0}}

/** One replica's books, its engine's signals and its cache. */
typedef struct wr_replica_statistics {
  uint32_t struct_size;
  uint32_t health;
  uint32_t dp_rank;
  uint32_t reported; /* 1: its engine sends cache events */
  int64_t requests;
  int64_t pending_tokens;
  int64_t pending_ns;
  int64_t context_tokens;
  int64_t decoding;
  int64_t foreign_requests;
  int64_t foreign_waiting;
  int64_t signals_at_ns; /* 0 = never */
  uint64_t believed_blocks;
  uint64_t capacity_blocks;
  int64_t input_tokens;   /* of requests whose prefill ended there */
  int64_t matched_tokens; /* of those, believed to be in its cache when they were routed */
  int64_t engine_prefix_queries; /* the same as its engine counts it, requests of others included, since its first reading */
  int64_t engine_prefix_hits;
  uint32_t engine_prefix_unit;   /* WR_PREFIX_UNIT_..., of both; unknown until there were two readings */
  uint32_t engine_prefix_shared; /* 1: of all ranks of its page together */
  int64_t engine_prefix_at_ns; /* of the last reading */
  double slowness; /* learned: 2 takes twice as long as replicas of equal declared rates */
  double prefill_share; /* of its time of late, by the work booked there; where pairs can be formed. since: 0.2.0 */
  uint32_t role;        /* WR_ROLE_... since: 0.2.0 */
  uint32_t reserved0;
  int64_t held_tokens; /* of its KV cache, by prompts in flight; what several of them share counts once. since: 0.2.0 */
  int64_t foreign_tokens; /* prompt tokens still to compute that its engine told beyond this router's; WR_UNKNOWN: it does not tell. since: 0.2.0 */
} wr_replica_statistics;
#define WR_REPLICA_STATISTICS_INIT \
  {sizeof(wr_replica_statistics), WR_HEALTH_UP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

typedef struct wr_pool_statistics {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t blocks;
  uint64_t memberships;
  uint64_t bytes;
  uint64_t max_bytes;
  double bytes_per_token;
  double output_tokens;
  uint64_t shared_blocks; /* in the store that all replicas share */
  uint64_t reserved[3];
} wr_pool_statistics;
#define WR_POOL_STATISTICS_INIT {sizeof(wr_pool_statistics), 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0}}

/** `struct_size` of `out` must be set. Takes writers' locks for moments. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_statistics(const wr_router* router, wr_statistics* out, wr_error* err);
/** errors: stale. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_replica_statistics(const wr_router* router, wr_replica_id replica, wr_replica_statistics* out,
                                              wr_error* err);
/** errors: not_found. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_pool_statistics(const wr_router* router, wr_str pool, wr_pool_statistics* out, wr_error* err);
/** Text result: one page in Prometheus' exposition format. threads: any. since: 0.1.0 */
WR_API wr_status wr_router_prometheus(const wr_router* router, char* buf, size_t cap, size_t* needed, wr_error* err);

#define WR_SPLIT_SLOTS 16
/** What prefill and decode apart came to; of requests routed in pools that could form pairs. */
typedef struct wr_pair_statistics {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t splits[WR_SPLIT_SLOTS]; /* by WR_SPLIT_... */
  uint64_t transfers_done;
  uint64_t transfers_timed_out; /* their prefill replicas were freed without having been asked for the KV */
  int64_t transfer_ns;          /* sum over those done, from the first token on */
  uint64_t reserved[4];
} wr_pair_statistics;
#define WR_PAIR_STATISTICS_INIT {sizeof(wr_pair_statistics), 0, {0}, 0, 0, 0, {0, 0, 0, 0}}
/** threads: any. since: 0.2.0 */
WR_API wr_status wr_router_pair_statistics(const wr_router* router, wr_pair_statistics* out, wr_error* err);

/** How fast hardware is, as wr_replica_spec declares it. */
typedef struct wr_rates {
  int64_t floor_ns;    /* F: the shortest step */
  int64_t token_ps;    /* a: one more token in a step */
  int64_t pair_ps;     /* b: one (new token, earlier token) pair */
  int64_t context_ps;  /* k: one token of context of a decode */
  int64_t overhead_ns; /* of the host, per step */
} wr_rates;
#define WR_RATES_INIT {6700000, 24000000, 1300, 56000, 1000000}
/** What requests have taught of the kind of hardware that one replica is of: all with its declared rates. */
typedef struct wr_learned_rates {
  uint32_t struct_size;
  uint32_t learned; /* 1: it explains what is seen, and `used` is it */
  wr_rates declared;
  wr_rates used;    /* by decisions: as declared until then */
  uint64_t samples; /* observed times */
  double slowness;      /* of this replica against its kind: 2 takes twice as long */
  double output_tokens; /* mean of the answers of its pool */
  uint64_t reserved[4];
} wr_learned_rates;
#define WR_LEARNED_RATES_INIT {sizeof(wr_learned_rates), 0, WR_RATES_INIT, WR_RATES_INIT, 0, 1.0, 0.0, {0, 0, 0, 0}}
/** Carried over a restart by wr_router_export_caches. errors: stale. threads: any. since: 0.2.0 */
WR_API wr_status wr_router_learned_rates(const wr_router* router, wr_replica_id replica, wr_learned_rates* out,
                                         wr_error* err);

/** What was served in a stretch of time. */
typedef struct wr_served_tokens {
  uint32_t struct_size;
  uint32_t reserved0;
  int64_t uncached_input_tokens; /* computed */
  int64_t input_tokens;
  int64_t output_tokens;
  int64_t requests;
  int64_t seconds; /* yours to set */
  uint64_t reserved[2];
} wr_served_tokens;
#define WR_SERVED_TOKENS_INIT {sizeof(wr_served_tokens), 0, 0, 0, 0, 0, 0, {0, 0}}
/** Since the router was made; `seconds` becomes 0. A stretch is the difference of two readings. threads: any. since: 0.2.0 */
WR_API wr_status wr_router_served_tokens(const wr_router* router, wr_served_tokens* out, wr_error* err);
/** How to divide replicas into those that prefill and those that decode. */
typedef struct wr_pool_ratio {
  uint32_t struct_size;
  uint32_t reserved0;
  int64_t prefill; /* replicas; both 0 where nothing was served, or there are fewer than two */
  int64_t decode;
  int64_t prefill_busy_permille; /* of each of those, of the time; above 1,000: too few replicas in all */
  int64_t decode_busy_permille;
  uint64_t reserved[2];
} wr_pool_ratio;
#define WR_POOL_RATIO_INIT {sizeof(wr_pool_ratio), 0, 0, 0, 0, 0, {0, 0}}
/** *out = how to divide `replicas` (at most 65,536) of these rates so that the busier part is least busy. itl_ns: the time between tokens that is aimed at.
    errors: invalid_argument (served, rates), out_of_range (a number is negative or absurd). threads: any. alloc: none. since: 0.2.0 */
WR_API wr_status wr_advise_ratio(const wr_served_tokens* served, const wr_rates* rates, int64_t itl_ns, int64_t replicas,
                                 wr_pool_ratio* out, wr_error* err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "warmroute_usage.h"
#include "warmroute_control.h"
#include "warmroute_trace.h"

#endif /* WARMROUTE_H */
