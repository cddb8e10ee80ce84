/* clang-format off */
/* warmroute: traces of requests, and logs of decisions that play again. Part 12 of the C interface; warmroute.h includes it, its rules hold here.
 *
 *   12a Traces      a streaming reader of the forms in which traces are published (plain or gzip), and a writer of one of them
 *   12b Recording   a router that writes down what it is told and what it decides
 *   12c Log         reading that log, and playing it on a fresh router
 *
 * - Files are read and written here, nowhere else: those that you name. Paths are UTF-8.
 * - A log holds hashes, sessions and tenants under a secret key alone, prompts and labels not at all. Traces are written as you give them.
 */
#ifndef WARMROUTE_TRACE_H
#define WARMROUTE_TRACE_H

#include "warmroute.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==================================================================== 12a Traces */

/** The published forms. */
enum {
  WR_TRACE_AUTOMATIC = 0, /* told by the first line */
  WR_TRACE_MOONCAKE = 1,  /* JSON lines, ms, ids of 512-token blocks; and what wr_trace_writer_write adds */
  WR_TRACE_QWEN = 2,      /* Qwen-Bailian: JSON lines, seconds, ids of 16-token blocks, chats with parents */
  WR_TRACE_BURSTGPT = 3,  /* CSV, seconds, model, session in its third part; no prompts */
  WR_TRACE_AZURE = 4,     /* Azure LLM inference (2023 to 2025): CSV, wall-clock times; no prompts */
  WR_TRACE_RAGPULSE = 5,  /* JSON lines, seconds as text and not in order, ids of pieces of unequal length */
  WR_TRACE_WEKA = 6       /* kv-cache-tester: JSON, a coding agent's conversation a line, with its sub-agents */
};
/** returns: "mooncake", ...; "unknown". lifetime: static. threads: any. since: 0.2.0 */
WR_API const char* wr_trace_format_name(uint32_t format);
/** returns: the form whose first line this can be; WR_TRACE_AUTOMATIC for any other. threads: any. since: 0.2.0 */
WR_API uint32_t wr_trace_detect(wr_str first_line);
/** errors: io; too_large; unsupported: none of the known ones, or an empty file. threads: any. since: 0.2.0 */
WR_API wr_status wr_trace_detect_file(wr_str path, uint32_t* format, wr_error* err);

/** One request. What a trace does not say is as in its INIT. */
typedef struct wr_trace_record {
  uint32_t struct_size;
  uint32_t cancelled;  /* it ended without its whole answer: it failed, or the client went away */
  int64_t arrival_us;  /* since the start of the trace; of conversations (weka): since their own */
  int64_t input_tokens;
  int64_t output_tokens;  /* 0: the trace has no answer for it */
  uint64_t session;       /* hash of the session id; 0: none */
  const uint64_t* blocks; /* an id stands for its block and all before it; the last block may be partial */
  size_t block_count;
  int64_t block_tokens; /* of a block in `blocks` */
  wr_str model;
  wr_str adapter;
  wr_str request_class;      /* what kind of request the trace calls it */
  int64_t max_output_tokens; /* WR_UNKNOWN: not said; so below */
  int64_t cached_tokens;     /* as the engine counted them when it was recorded */
  int64_t ttft_us;           /* time to its first token when it was recorded */
  int32_t priority;
  uint32_t has_priority; /* 0: not said */
  int32_t stream;        /* 1, 0 or WR_UNKNOWN */
  uint32_t follows;      /* it waits for the end of the record that came so many before it; 0: for nobody */
  int64_t think_us;      /* and then so much longer */
  uint64_t reserved[4];
} wr_trace_record;
#define WR_TRACE_RECORD_INIT                                                                                           \
  {sizeof(wr_trace_record), 0, 0, 0, 0, 0, NULL, 0, 512, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_UNKNOWN, WR_UNKNOWN, \
   WR_UNKNOWN, 0, 0, WR_UNKNOWN, 0, 0, {0, 0, 0, 0}}

typedef struct wr_trace_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t format;               /* WR_TRACE_... */
  uint32_t share_system_prompts; /* weka: equal lengths of tools and system are the same blocks */
  int64_t conversation_gap_us;   /* weka: conversation i starts at i times this */
  uint64_t block_salt;           /* weka: gives all blocks but shared ones other ids */
  uint64_t max_line_bytes;       /* limits: what is beyond is refused as a broken record */
  int64_t max_tokens;            /* per count */
  int64_t max_blocks;            /* of one prompt */
  uint64_t max_chats;            /* whose conversation is remembered (qwen); older ones are forgotten */
  uint64_t reserved[4];
} wr_trace_options;
#define WR_TRACE_OPTIONS_INIT \
  {sizeof(wr_trace_options), WR_ABI_VERSION, WR_TRACE_AUTOMATIC, 0, 0, 0, 16777216u, 100000000, 16000000, 1048576u, {0, 0, 0, 0}}

/** Reads a trace record by record, in the file's order; memory is bounded by a line, a record and max_chats. threads: one at a time. */
typedef struct wr_trace_reader wr_trace_reader;
/** `options` NULL: the defaults. ragpulse: where the files of lengths lie beside the trace, pieces are as long as they say. errors: io, invalid_argument,
    out_of_range (format), abi_mismatch. since: 0.2.0 */
WR_API wr_status wr_trace_open(wr_str path, const wr_trace_options* options, wr_trace_reader** out, wr_error* err);
/** From memory, plain text. lifetime: `text` until the reader is freed. errors: as wr_trace_open. since: 0.2.0 */
WR_API wr_status wr_trace_from_text(wr_str text, const wr_trace_options* options, wr_trace_reader** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_trace_free(wr_trace_reader* reader);
/** The next record; *found = 0 at the end, `out` stays. Blank lines are skipped. lifetime of what it points to: until the reader's next call.
    errors: invalid_json, not_an_object, missing_field, wrong_type, value_out_of_range, malformed, too_large (a line), unsupported (the first line is of no
    known form), io (a cut gzip stream, too). The message is "<file>:<line>: ...", the offset is where that line starts. After an error the next call goes
    on with the next line, except after io and unsupported. since: 0.2.0 */
WR_API wr_status wr_trace_next(wr_trace_reader* reader, wr_trace_record* out, uint32_t* found, wr_error* err);
/** returns: number of the line read last, from 1. since: 0.2.0 */
WR_API uint64_t wr_trace_line(const wr_trace_reader* reader);
/** returns: WR_TRACE_...; automatic until the first line told it. since: 0.2.0 */
WR_API uint32_t wr_trace_format(const wr_trace_reader* reader);

/** Writes the Mooncake form, gzip where the file's name ends in ".gz". What is written reads back as the same records where blocks are of 512 tokens; smaller
    ones that divide 512 are joined. Nothing is made anonymous. threads: one at a time. */
typedef struct wr_trace_writer wr_trace_writer;
/** An existing file is replaced. errors: io. since: 0.2.0 */
WR_API wr_status wr_trace_writer_open(wr_str path, wr_trace_writer** out, wr_error* err);
/** errors: unsupported (block_tokens does not divide 512), value_out_of_range, invalid_utf8: the file goes on without that record; io; invalid_argument after
    a close. since: 0.2.0 */
WR_API wr_status wr_trace_writer_write(wr_trace_writer* writer, const wr_trace_record* record, wr_error* err);
/** Writes what is left; without it a failure at the end stays unseen. errors: io. since: 0.2.0 */
WR_API wr_status wr_trace_writer_close(wr_trace_writer* writer, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_trace_writer_free(wr_trace_writer* writer);
/** Text result: one line as it is written, with its LF. errors: as wr_trace_writer_write. threads: any. since: 0.2.0 */
WR_API wr_status wr_trace_mooncake_line(const wr_trace_record* record, char* buf, size_t cap, size_t* needed, wr_error* err);

/* ==================================================================== 12b Recording */

#define WR_DECISION_LOG_KEY_BYTES 16

typedef struct wr_decision_log_options {
  uint32_t struct_size;
  uint32_t abi_version;
  const uint8_t* key; /* WR_DECISION_LOG_KEY_BYTES random bytes; NULL: drawn, and gone with the router, so that nobody can ever confirm a guess */
  uint64_t max_bytes;    /* of the file; recording ends before it would grow beyond */
  uint64_t buffer_bytes; /* written at once; what a crash may lose */
  uint64_t max_record_bytes;
  uint64_t reserved[4];
} wr_decision_log_options;
#define WR_DECISION_LOG_OPTIONS_INIT \
  {sizeof(wr_decision_log_options), WR_ABI_VERSION, NULL, 1073741824u, 262144u, 67108864u, {0, 0, 0, 0}}

typedef struct wr_recording {
  uint32_t struct_size;
  uint32_t ended; /* 1: the log is full or cannot be written; the router's calls go on */
  uint64_t records;
  uint64_t bytes;
  uint64_t unrecorded; /* calls behind its end */
  char reason[128];    /* why it ended; NUL-terminated */
  uint64_t reserved[2];
} wr_recording;
#define WR_RECORDING_INIT {sizeof(wr_recording), 0, 0, 0, 0, {0}, {0, 0}}

/** A router as any other, that logs every call to a file (which is replaced), also those that a wr_kv_source, wr_poller or wr_models makes on it. Its calls take
    turns, and cost 0.25 us more. Its hashes are the log's, so ring places and ties are other draws than without it, and wr_router_export_caches has no
    caches in it. `options` and `log` NULL: the defaults. errors: as wr_router_new; io; internal (no random bytes). since: 0.2.0 */
WR_API wr_status wr_router_new_recording(const wr_router_options* options, wr_str path, const wr_decision_log_options* log,
                                         wr_router** out, wr_error* err);
/** errors: unsupported (a router that does not record). threads: any. since: 0.2.0 */
WR_API wr_status wr_router_recording(const wr_router* router, wr_recording* out, wr_error* err);
/** Hands what is buffered to the operating system; wr_router_free does so, too. errors: unsupported; io: recording has ended. threads: any. since: 0.2.0 */
WR_API wr_status wr_router_flush_recording(wr_router* router, wr_error* err);

/* ==================================================================== 12c Log */

/** A call of a router. */
enum {
  WR_CALL_SET_POLICY = 1,
  WR_CALL_ADD_REPLICA = 2,
  WR_CALL_REMOVE_REPLICA = 3,
  WR_CALL_SET_HEALTH = 4,
  WR_CALL_UPDATE_REPLICA = 5,
  WR_CALL_CLEAR_CACHE = 6,
  WR_CALL_SIGNAL = 7,
  WR_CALL_PREFIX_COUNTERS = 8,
  WR_CALL_BLOCKS_STORED = 9,
  WR_CALL_BLOCKS_REMOVED = 10,
  WR_CALL_BLOCKS_ALSO_ON = 11,
  WR_CALL_CLEAR_SHARED_STORE = 12,
  WR_CALL_ROUTE = 13,
  WR_CALL_FIRST_TOKEN = 14,
  WR_CALL_FINISH = 15,
  WR_CALL_FAIL = 16,
  WR_CALL_ADVANCE = 17,
  WR_CALL_RESTORE_CACHED = 18,
  WR_CALL_DRAIN = 19,
  WR_CALL_TRANSFER_DONE = 20,
  WR_CALL_RESTORE_LEARNED = 21,
  WR_CALL_PEER_LOADS = 22,
  WR_CALL_PEER_PLACED = 23
};
/** returns: "route", ...; "unknown". lifetime: static. threads: any. since: 0.2.0 */
WR_API const char* wr_call_name(uint32_t call);

/** One call and what came of it. The rest of what it was given is in wr_decision_log_json. */
typedef struct wr_decision_record {
  uint32_t struct_size;
  uint32_t call;           /* WR_CALL_... */
  uint64_t number;         /* from 0 */
  int64_t now_ns;          /* as the caller gave it; of calls without a time that of the call before */
  wr_replica_id replica;   /* whom it is about; of add_replica: what it got */
  wr_ticket ticket;        /* of first_token, transfer_done, finish and fail */
  wr_status status;        /* what the call answered; of those four WR_STATUS_OK */
  uint32_t done;           /* of those four: 1 unless the ticket was over */
  const uint64_t* blocks;  /* of route and blocks_stored, under the log's key */
  size_t block_count;
  const wr_decision* decision; /* of route; NULL otherwise */
  uint64_t reserved[4];
} wr_decision_record;
#define WR_DECISION_RECORD_INIT \
  {sizeof(wr_decision_record), 0, 0, 0, WR_NO_REPLICA_INIT, 0, WR_STATUS_OK, 0, NULL, 0, NULL, {0, 0, 0, 0}}

/** Reads a log record by record, also one that is still written. threads: one at a time. */
typedef struct wr_decision_log wr_decision_log;
/** errors: io; malformed: no decision log, or its head is damaged; unsupported: of another version. since: 0.2.0 */
WR_API wr_status wr_decision_log_open(wr_str path, wr_decision_log** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_decision_log_free(wr_decision_log* log);
/** The next record; *found = 0 at the end, `out` stays. A record that was not written out whole is cut off there. lifetime of what it points to: until the
    log's next call. errors: malformed with its offset (a record that is whole and damaged), too_large, io. Nothing comes behind an error. since: 0.2.0 */
WR_API wr_status wr_decision_log_next(wr_decision_log* log, wr_decision_record* out, uint32_t* found, wr_error* err);
/** Text result: the last record as an object of JSON. `blocks` 0: only how many hashes there are. errors: not_found (none was read). since: 0.2.0 */
WR_API wr_status wr_decision_log_json(const wr_decision_log* log, uint32_t blocks, char* buf, size_t cap, size_t* needed,
                                      wr_error* err);
/** returns: bytes of a record that was not written out whole; known when next found nothing. since: 0.2.0 */
WR_API uint64_t wr_decision_log_torn_bytes(const wr_decision_log* log);

typedef struct wr_replay_options {
  uint32_t struct_size;
  uint32_t abi_version;
  wr_str change;        /* members of a policy's JSON form, put over every policy in the log: what would other knobs have decided? Empty: nothing */
  uint64_t max_records; /* 0: all */
  uint64_t reserved[4];
} wr_replay_options;
#define WR_REPLAY_OPTIONS_INIT {sizeof(wr_replay_options), WR_ABI_VERSION, WR_STR_INIT, 0, {0, 0, 0, 0}}

#define WR_NO_RECORD UINT64_MAX

/** What came of playing a log. It is identical if differing and other_results are 0. */
typedef struct wr_replay {
  uint32_t struct_size;
  uint32_t first_call;    /* WR_CALL_... of first_difference; 0: none */
  uint64_t records;
  uint64_t decisions;
  uint64_t differing;     /* decisions that differ in any member */
  uint64_t other_choices; /* of these, in verdict or replica. Behind the first one the log answers another question */
  uint64_t other_results; /* other calls that ended otherwise */
  uint64_t torn_bytes;
  uint64_t first_difference;   /* number of the record; WR_NO_RECORD: none. Of a decision in any member, or of another call's result */
  uint64_t first_other_choice; /* likewise */
  int64_t other_choice_ns;     /* when that was; both decisions: */
  uint32_t recorded_verdict;
  uint32_t replayed_verdict;
  wr_replica_id recorded_replica;
  wr_replica_id replayed_replica;
  uint64_t reserved[4];
} wr_replay;
#define WR_REPLAY_INIT                                                                                          \
  {sizeof(wr_replay), 0, 0, 0, 0, 0, 0, 0, WR_NO_RECORD, WR_NO_RECORD, 0, 0, 0, WR_NO_REPLICA_INIT, WR_NO_REPLICA_INIT, \
   {0, 0, 0, 0}}

/** Plays a log from its start on a fresh router. `options` NULL: the defaults. errors: as wr_decision_log_open and _next; malformed (a policy in it that cannot
    be read); invalid_json, invalid_argument (`change`). threads: any. since: 0.2.0 */
WR_API wr_status wr_decision_log_replay(wr_str path, const wr_replay_options* options, wr_replay* out, wr_error* err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WARMROUTE_TRACE_H */
