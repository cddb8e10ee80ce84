/* clang-format off */
/* warmroute: who used how much, what it costs and who may use more. Part 10 of the C interface; warmroute.h includes it, its rules hold here.
 *
 *   10a Meter     what a request used, read from the bytes of its answer as they pass
 *   10b Request   asking streams for their usage and hiding it again; estimates; clients that hang up
 *   10c Prices    LiteLLM's price file, overrides, own replicas; exact integer money
 *   10d Keys      API keys as digests alone, revocations that hold
 *   10e Limits    rates, calendar budgets and concurrency over any scopes: reserve, settle
 *   10f Journal   the record that survives a crash, and its reader
 *   10g Ledger    exact sums per key, team, model, replica, class and window
 *
 * - Counts that nobody said are WR_UNKNOWN, never 0. Input contains what was cached and what was written to a cache, output contains reasoning.
 * - Money is in pico-USD (1e-12 USD). Of the two clocks, both yours, `steady_ns` and `now_ns` are of the monotonic one, `wall_ns` and members
 *   that say so are nanoseconds since 1970-01-01T00:00:00Z.
 * - wr_journal writes files in its directory, wr_price_table_load reads one; nothing else here touches the system.
 */
#ifndef WARMROUTE_USAGE_H
#define WARMROUTE_USAGE_H

#include "warmroute.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==================================================================== 10a Meter */

/** Reads one answer piece by piece: JSON, server-sent events, JSON arrays, AWS event streams, of any provider. It changes and delays nothing, its
    memory is constant, and where the bytes were cut makes no difference. Compressed bodies tell nothing. threads: one at a time. */
typedef struct wr_meter wr_meter;

/** Whose vocabulary an answer speaks. Automatic tells by the members' names. */
enum {
  WR_ANSWER_AUTOMATIC = 0,
  WR_ANSWER_OPENAI = 1, /* chat completions, completions, and servers compatible with them */
  WR_ANSWER_RESPONSES = 2,
  WR_ANSWER_EMBEDDINGS = 3,
  WR_ANSWER_MESSAGES = 4, /* Anthropic */
  WR_ANSWER_GEMINI = 5,
  WR_ANSWER_BEDROCK = 6,
  WR_ANSWER_COHERE = 7,
  WR_ANSWER_LLAMACPP = 8 /* native /completion */
};
/** What to believe of a deployment that is known to differ from the rules. */
enum { WR_BELIEF_BY_RULE = 0, WR_BELIEF_YES = 1, WR_BELIEF_NO = 2 };

typedef struct wr_meter_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t api;                       /* WR_ANSWER_... */
  uint32_t input_includes_cache;      /* WR_BELIEF_...: the answer's input count contains cached and written tokens */
  uint32_t output_includes_reasoning; /* WR_BELIEF_... */
  uint32_t ignore_total;              /* 1: the answer's total is wrong or means something else */
  uint32_t trust_requested_tier;      /* 1: the tier that was requested counts, whatever the answer says */
  uint32_t reserved0;
  wr_str requested_tier; /* reported where the answer names none; 128 bytes at most are kept */
  uint64_t reserved[4];
} wr_meter_options;
#define WR_METER_OPTIONS_INIT \
  {sizeof(wr_meter_options), WR_ABI_VERSION, WR_ANSWER_AUTOMATIC, WR_BELIEF_BY_RULE, WR_BELIEF_BY_RULE, 0, 0, 0, WR_STR_INIT, {0, 0, 0, 0}}

/** Where the counts are from. */
enum { WR_USAGE_SOURCE_NONE = 0, WR_USAGE_SOURCE_PROVIDER = 1, WR_USAGE_SOURCE_TIMINGS = 2, WR_USAGE_SOURCE_ESTIMATE = 3 };
/** What was wrong with an answer, as bits. */
enum {
  WR_ANOMALY_INVALID_COUNT = 1,
  WR_ANOMALY_CACHED_EXCEEDS_INPUT = 2,
  WR_ANOMALY_REASONING_EXCEEDS_OUTPUT = 4,
  WR_ANOMALY_TOTAL_MISMATCH = 8,
  WR_ANOMALY_WRITE_SPLIT_EXCEEDS = 16,
  WR_ANOMALY_BAD_CRC = 32,
  WR_ANOMALY_MALFORMED_EVENT = 64,
  WR_ANOMALY_TOO_LARGE = 128,
  WR_ANOMALY_COMPRESSED = 256
};
/** returns: "invalid_count", ... of one bit; "unknown". lifetime: static. threads: any. since: 0.2.0 */
WR_API const char* wr_anomaly_name(uint32_t anomaly);

/** Tokens of another model than the one that answered: a price line of its own. */
typedef struct wr_other_model_usage {
  wr_str model; /* empty: not said */
  int64_t input_tokens;
  int64_t cached_input_tokens;
  int64_t cache_write_input_tokens;
  int64_t output_tokens;
  uint64_t reserved[2];
} wr_other_model_usage;

/** What one request used; or may use, in an estimate. units: tokens, unless the name says otherwise. */
typedef struct wr_usage_report {
  uint32_t struct_size;
  uint32_t complete;  /* 1: the counts are the provider's last word */
  uint32_t error;     /* 1: the answer is an error, or holds one */
  uint32_t source;    /* WR_USAGE_SOURCE_... */
  uint32_t anomalies; /* WR_ANOMALY_... bits */
  uint32_t reserved0;
  int64_t output_events; /* of a stream, after which output had begun: about as many tokens, of servers that send each in one */
  int64_t input_tokens;  /* all of the prompt: uncached, cached and written to the cache */
  int64_t cached_input_tokens;
  int64_t cache_write_input_tokens;
  int64_t output_tokens; /* all that was generated, reasoning included */
  int64_t reasoning_output_tokens;
  int64_t cache_write_5m_tokens; /* parts of the writes by lifetime; the rest is of the provider's base lifetime */
  int64_t cache_write_30m_tokens;
  int64_t cache_write_1h_tokens;
  int64_t cache_write_12h_tokens;
  int64_t text_input_tokens; /* parts by modality, each of its side */
  int64_t audio_input_tokens;
  int64_t image_input_tokens;
  int64_t video_input_tokens;
  int64_t cached_text_input_tokens;
  int64_t cached_audio_input_tokens;
  int64_t cached_image_input_tokens;
  int64_t cached_video_input_tokens;
  int64_t text_output_tokens;
  int64_t audio_output_tokens;
  int64_t image_output_tokens;
  int64_t tool_use_input_tokens;
  int64_t accepted_prediction_tokens;
  int64_t rejected_prediction_tokens;
  int64_t processed_input_tokens; /* beside what is billed: what the model read (Cohere) */
  int64_t processed_output_tokens;
  int64_t unattributed_tokens;  /* in the provider's total and in neither side */
  int64_t context_input_tokens; /* size of the window at the end, where a compaction ran and is in the input, too */
  int64_t web_search_requests;
  int64_t web_fetch_requests;
  int64_t reported_cost_picos; /* as the provider says */
  wr_str finish_reason;        /* this and the next ones as the provider spells them; empty: not said */
  wr_str service_tier;
  wr_str speed;
  wr_str inference_geography;
  wr_str model; /* that answered */
  wr_str response_id;
  const wr_other_model_usage* other_models;
  size_t other_model_count;
  uint64_t reserved[4];
} wr_usage_report;
#define WR_USAGE_REPORT_INIT                                                                                              \
  {sizeof(wr_usage_report), 0, 0, WR_USAGE_SOURCE_NONE, 0, 0, 0,                                                          \
   WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, \
   WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, \
   WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, \
   WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, NULL, 0, {0, 0, 0, 0}}

/** `options` NULL: the defaults. errors: invalid_argument, out_of_range (api, beliefs), abi_mismatch, out_of_memory. alloc: 13 KiB, and 7 KiB at the
    first AWS event stream. since: 0.2.0 */
WR_API wr_status wr_meter_new(const wr_meter_options* options, wr_meter** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_meter_free(wr_meter* meter);
/** For the next answer; cheaper than a new one. errors: as wr_meter_new. Hot. alloc: none. since: 0.2.0 */
WR_API wr_status wr_meter_reset(wr_meter* meter, const wr_meter_options* options, wr_error* err);
/** The next bytes of the body, without HTTP's chunk framing. *first_token (NULL is fine) = 1 once: when the first token ended in them; else 0. Of an answer
    that is no stream all tokens were made before its first byte. errors: invalid_argument. Hot. alloc: none. since: 0.2.0 */
WR_API wr_status wr_meter_feed(wr_meter* meter, wr_str bytes, uint32_t* first_token);
/** The body ended, or was cut off; further bytes are ignored. errors: invalid_argument. Hot. alloc: none. since: 0.2.0 */
WR_API wr_status wr_meter_finish(wr_meter* meter);
/** What is known so far; after wr_meter_finish the result. lifetime: of strings and lists, until the meter's next call. Hot. alloc: none. since: 0.2.0 */
WR_API wr_status wr_meter_report(wr_meter* meter, wr_usage_report* out, wr_error* err);
/** returns: 1 if the report is complete; less work than the report. since: 0.2.0 */
WR_API uint32_t wr_meter_complete(const wr_meter* meter);
/** returns: a number that is another one whenever the report would be, until wr_meter_reset. Hot. since: 0.2.0 */
WR_API uint64_t wr_meter_revision(const wr_meter* meter);
/** returns: how many bytes of the body had come when the first token ended; WR_UNKNOWN: not yet, or NULL. since: 0.2.0 */
WR_API int64_t wr_meter_first_token_end(const wr_meter* meter);
/** returns: bytes fed so far. since: 0.2.0 */
WR_API uint64_t wr_meter_bytes(const wr_meter* meter);
/** returns: 1 if the answer is a stream of events; 0 if not, and before that is known. since: 0.2.0 */
WR_API uint32_t wr_meter_is_stream(const wr_meter* meter);

/* ==================================================================== 10b Request */

/** What a chat or completions body needs so that its stream ends with usage: `removed` bytes at `offset` become `inserted`. */
typedef struct wr_usage_ask {
  uint32_t struct_size;
  uint32_t stream; /* 1: the client wants a stream */
  uint32_t asked;  /* 1: the client asked for usage itself: nothing is changed, nothing may be hidden */
  uint32_t change; /* 1: the change is to be made, and the usage chunk to be hidden (wr_usage_chunk_filter) */
  uint64_t offset;
  uint64_t removed;
  wr_str inserted; /* lifetime: static */
  uint64_t reserved[2];
} wr_usage_ask;
#define WR_USAGE_ASK_INIT {sizeof(wr_usage_ask), 0, 0, 0, 0, 0, WR_STR_INIT, {0, 0}}

/** For /v1/chat/completions and /v1/completions alone: other APIs say their usage unasked. Only the body's outermost level is looked at.
    errors: invalid_json, not_an_object (with an offset), invalid_argument. threads: any. alloc: none. since: 0.2.0 */
WR_API wr_status wr_ask_for_usage(wr_str body, wr_usage_ask* out, wr_error* err);
/** Binary result without NUL: the body with the change made. errors: out_of_range (the change is of another body), capacity. threads: any. since: 0.2.0 */
WR_API wr_status wr_ask_for_usage_body(wr_str body, const wr_usage_ask* ask, char* buf, size_t cap, size_t* needed,
                                       wr_error* err);

/** *out = the service tier that a body asks for (service_tier, or Bedrock's serviceTier.type); empty: none. For requested_tier of
    wr_meter_options. lifetime: of body. errors: invalid_argument. threads: any. alloc: none. since: 0.2.0 */
WR_API wr_status wr_requested_tier(wr_str body, wr_str* out, wr_error* err);

/** Takes the usage chunk that was asked for here out of an answer's stream of events. Feed the meter before it. threads: one at a time. */
typedef struct wr_usage_chunk_filter wr_usage_chunk_filter;
/** errors: out_of_memory. since: 0.2.0 */
WR_API wr_status wr_usage_chunk_filter_new(wr_usage_chunk_filter** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_usage_chunk_filter_free(wr_usage_chunk_filter* filter);
/** *out = what may go to the client now; all else passes as it came, an answer that is no stream of events whole. lifetime: until the filter's next call.
    Hot. alloc: as pieces grow; 16 KiB of an event are held at most. since: 0.2.0 */
WR_API wr_status wr_usage_chunk_filter_feed(wr_usage_chunk_filter* filter, wr_str bytes, wr_str* out, wr_error* err);
/** The stream ended: *out = what was held, if it may go. lifetime: as feed. since: 0.2.0 */
WR_API wr_status wr_usage_chunk_filter_finish(wr_usage_chunk_filter* filter, wr_str* out, wr_error* err);
/** returns: 1 if the chunk came and was taken out. since: 0.2.0 */
WR_API uint32_t wr_usage_chunk_filter_removed(const wr_usage_chunk_filter* filter);
/** For the next stream. since: 0.2.0 */
WR_API void wr_usage_chunk_filter_reset(wr_usage_chunk_filter* filter);

/** Learns how many bytes of a model's prompts make a token. One per model or pool. threads: any for every call but free. */
typedef struct wr_token_estimator wr_token_estimator;

typedef struct wr_token_estimate {
  uint32_t struct_size;
  uint32_t reserved0;
  int64_t input_tokens;
  int64_t output_tokens;
  uint64_t reserved[2];
} wr_token_estimate;
#define WR_TOKEN_ESTIMATE_INIT {sizeof(wr_token_estimate), 0, 0, 0, {0, 0}}

typedef struct wr_estimate_options {
  uint32_t struct_size;
  uint32_t reserved0;
  int64_t prompt_bytes;            /* of wr_request or wr_body */
  int64_t input_tokens;            /* exact, where ids are known; WR_UNKNOWN: learned from prompt_bytes */
  int64_t requested_output_tokens; /* the request's limit, for all of its choices; WR_UNKNOWN: none */
  int64_t max_output_tokens;       /* reserved at most, and where the request names no limit */
  int64_t margin_percent;          /* added to the learned mean */
  uint64_t reserved[2];
} wr_estimate_options;
#define WR_ESTIMATE_OPTIONS_INIT {sizeof(wr_estimate_options), 0, 0, WR_UNKNOWN, WR_UNKNOWN, 4096, 10, {0, 0}}

/** errors: out_of_memory. since: 0.2.0 */
WR_API wr_status wr_token_estimator_new(wr_token_estimator** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_token_estimator_free(wr_token_estimator* estimator);
/** A request of so many prompt bytes was so many input tokens; absurd pairs are ignored. Hot. alloc: none. threads: any. since: 0.2.0 */
WR_API wr_status wr_token_estimator_learn(wr_token_estimator* estimator, int64_t prompt_bytes, int64_t input_tokens);
/** Hot. alloc: none. threads: any. since: 0.2.0 */
WR_API wr_status wr_token_estimator_estimate(const wr_token_estimator* estimator, const wr_estimate_options* options,
                                             wr_token_estimate* out, wr_error* err);
/** returns: the learned mean; 3 before anything was learned. threads: any. since: 0.2.0 */
WR_API double wr_token_estimator_bytes_per_token(const wr_token_estimator* estimator);
/** E.g. after a restart; outside 0.1..64 it is ignored. threads: any. since: 0.2.0 */
WR_API void wr_token_estimator_set_bytes_per_token(wr_token_estimator* estimator, double bytes_per_token);
/** Fills in what a report that is not complete does not say: input by the estimate, output by output_events, or by the estimate if there were none.
    The source then says estimate. *filled (NULL is fine) = 1 if anything was. threads: any. since: 0.2.0 */
WR_API wr_status wr_estimate_missing(wr_usage_report* report, const wr_token_estimate* estimate, uint32_t* filled,
                                     wr_error* err);

/** What becomes of the upstream of a client that hung up: closed at once, and estimated; or read to its end, within limits, for its usage. */
enum { WR_HANGUP_CUT = 0, WR_HANGUP_DRAIN = 1 };
typedef struct wr_hangup_policy {
  uint32_t struct_size;
  uint32_t mode; /* WR_HANGUP_... */
  int64_t max_drain_ns; /* after the client left */
  uint64_t max_drain_bytes;
  uint64_t reserved[2];
} wr_hangup_policy;
#define WR_HANGUP_POLICY_INIT {sizeof(wr_hangup_policy), WR_HANGUP_CUT, 60000000000, 8000000, {0, 0}}
/** *read_on = 1: read on; 0: cut it. `bytes` came since the client left at `left_ns`; `complete`: the meter has the last word. *deadline_ns (NULL is fine):
    when to cut it if nothing comes. errors: out_of_range (mode), invalid_argument. threads: any. alloc: none. since: 0.2.0 */
WR_API wr_status wr_hangup_read_on(const wr_hangup_policy* policy, int64_t left_ns, uint64_t bytes, uint32_t complete,
                                   int64_t now_ns, uint32_t* read_on, int64_t* deadline_ns, wr_error* err);

/* ==================================================================== 10c Prices */

/** Prices of many models. threads: any number of readers; changes by one, with none reading. */
typedef struct wr_price_table wr_price_table;

/** How urgent a request is served, which is priced apart. */
enum {
  WR_PRICE_TIER_STANDARD = 0,
  WR_PRICE_TIER_PRIORITY = 1,
  WR_PRICE_TIER_FLEX = 2,
  WR_PRICE_TIER_BATCH = 3,
  WR_PRICE_TIER_BALANCED = 4,
  WR_PRICE_TIER_ULTRAFAST = 5
};
/** Of wr_price_options: the tier that the report names. */
#define WR_PRICE_TIER_REPORTED UINT32_MAX
/** What is metered. */
enum {
  WR_PRICE_METER_INPUT = 0,
  WR_PRICE_METER_CACHED_INPUT = 1,
  WR_PRICE_METER_CACHE_WRITE = 2,
  WR_PRICE_METER_CACHE_WRITE_1H = 3,
  WR_PRICE_METER_CACHE_WRITE_12H = 4,
  WR_PRICE_METER_AUDIO_INPUT = 5,
  WR_PRICE_METER_CACHED_AUDIO_INPUT = 6,
  WR_PRICE_METER_IMAGE_INPUT = 7,
  WR_PRICE_METER_CACHED_IMAGE_INPUT = 8,
  WR_PRICE_METER_VIDEO_INPUT = 9,
  WR_PRICE_METER_OUTPUT = 10,
  WR_PRICE_METER_REASONING_OUTPUT = 11,
  WR_PRICE_METER_AUDIO_OUTPUT = 12,
  WR_PRICE_METER_IMAGE_OUTPUT = 13,
  WR_PRICE_METER_WEB_SEARCH = 14, /* requests */
  WR_PRICE_METER_OTHER_MODEL = 15 /* tokens on another model; its rate is an average */
};
/** Where a cost is from. */
enum { WR_COST_SOURCE_UNKNOWN = 0, WR_COST_SOURCE_TABLE = 1, WR_COST_SOURCE_SELF_HOSTED = 2, WR_COST_SOURCE_REPORTED = 3 };
/** returns: WR_PRICE_TIER_... of a provider's word: "priority", "flex", "batch", ...; standard for all others. threads: any. since: 0.2.0 */
WR_API uint32_t wr_price_tier_of(wr_str service_tier);
/** returns: "input", "cached_input", ...; "unknown". lifetime: static. since: 0.2.0 */
WR_API const char* wr_price_meter_name(uint32_t meter);

/** One row of a bill. The sum of the rows may differ from the cost by their roundings. */
typedef struct wr_cost_line {
  uint32_t meter; /* WR_PRICE_METER_... */
  uint32_t reserved0;
  int64_t quantity;
  int64_t rate_femtos; /* units: 1e-15 USD each */
  int64_t cost_picos;
} wr_cost_line;
#define WR_COST_LINE_SLOTS 24

typedef struct wr_cost {
  uint32_t struct_size;
  uint32_t source; /* WR_COST_SOURCE_... */
  int64_t picos;   /* WR_UNKNOWN: not 0 */
  wr_str price_key; /* the name under which the price was found */
  int64_t threshold_tokens; /* rates for prompts above so many tokens applied; 0: none */
  uint32_t tier_fell_back;  /* 1: the file has no price for the tier, standard rates applied */
  uint32_t partial;         /* 1: something reported has no price: tool requests, another model, unattributed tokens */
  uint32_t line_count;
  uint32_t reserved0;
  wr_cost_line lines[WR_COST_LINE_SLOTS];
  uint64_t reserved[4];
} wr_cost;
#define WR_COST_INIT \
  {sizeof(wr_cost), WR_COST_SOURCE_UNKNOWN, WR_UNKNOWN, WR_STR_INIT, 0, 0, 0, 0, 0, {{0, 0, 0, 0, 0}}, {0, 0, 0, 0}}

/** A model served from own replicas: what an hour of one costs, shared among what it can do in an hour. */
typedef struct wr_self_hosted_price {
  uint32_t struct_size;
  uint32_t reserved0;
  wr_str model;
  int64_t replica_hour_picos; /* one replica, all of its GPUs */
  double input_tokens_per_second; /* uncached prompt tokens, doing nothing else */
  double output_tokens_per_second; /* of all its requests together, likewise */
  double cached_tokens_per_second; /* prompt tokens from the cache; 0: they cost nothing */
  double utilization;              /* share of the hours in which work is done, 0..1 */
  uint64_t reserved[2];
} wr_self_hosted_price;
#define WR_SELF_HOSTED_PRICE_INIT {sizeof(wr_self_hosted_price), 0, WR_STR_INIT, 0, 0, 0, 0, 1, {0, 0}}

typedef struct wr_price_options {
  uint32_t struct_size;
  uint32_t tier; /* WR_PRICE_TIER_... */
  wr_str provider; /* tried as a prefix of names */
  uint32_t prefer_reported_cost; /* 1: a cost that the provider reported wins */
  uint32_t off_peak;             /* 1: it is off-peak now */
  uint64_t reserved[2];
} wr_price_options;
#define WR_PRICE_OPTIONS_INIT {sizeof(wr_price_options), WR_PRICE_TIER_REPORTED, WR_STR_INIT, 0, 0, {0, 0}}

/** A table without models, for overrides and own replicas. errors: out_of_memory. since: 0.2.0 */
WR_API wr_status wr_price_table_new(wr_price_table** out, wr_error* err);
/** Of LiteLLM's format. Malformed rates are left out, and counted. errors: invalid_json, not_an_object, too_large (64 MiB). cost: 20 ms for 5,000
    models. since: 0.2.0 */
WR_API wr_status wr_price_table_from_json(wr_str json, wr_price_table** out, wr_error* err);
/** The same from a file. errors: also io. since: 0.2.0 */
WR_API wr_status wr_price_table_load(wr_str path, wr_price_table** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_price_table_free(wr_price_table* table);
/** Members of the same format replace those of their models, others stay; a rate of null is removed. errors: as from_json; invalid_argument (a rate
    that is none, named). Nothing changes then. since: 0.2.0 */
WR_API wr_status wr_price_table_override(wr_price_table* table, wr_str json, wr_error* err);
/** `alias` is priced as `model`, which need not be there yet. errors: invalid_argument (empty, or a chain longer than 8). since: 0.2.0 */
WR_API wr_status wr_price_table_set_alias(wr_price_table* table, wr_str alias, wr_str model, wr_error* err);
/** Replaces the model's rates. errors: invalid_argument (every fault named). since: 0.2.0 */
WR_API wr_status wr_price_table_set_self_hosted(wr_price_table* table, const wr_self_hosted_price* price, wr_error* err);
/** *key = the name found: exactly, else with the provider before it, else without region, date and version, else as an alias. lifetime: until the table
    changes. errors: not_found. since: 0.2.0 */
WR_API wr_status wr_price_table_find(const wr_price_table* table, wr_str model, wr_str provider, wr_str* key, wr_error* err);
/** What the report's usage costs. `model`: the name to price by; empty: the one that answered. An unknown model or side costs unknown: picos of
    WR_UNKNOWN, status OK. `options` NULL: the defaults. lifetime: of price_key, until the table changes. Hot. alloc: none. since: 0.2.0 */
WR_API wr_status wr_price_table_cost(const wr_price_table* table, const wr_usage_report* report, wr_str model,
                                     const wr_price_options* options, wr_cost* out, wr_error* err);
/** returns: models; 0 for NULL. since: 0.2.0 */
WR_API size_t wr_price_table_size(const wr_price_table* table);
/** returns: members that should be rates and are none. since: 0.2.0 */
WR_API size_t wr_price_table_skipped_rates(const wr_price_table* table);
/** Text result: a digest of all that was put in, the version to write beside a cost. since: 0.2.0 */
WR_API wr_status wr_price_table_version(const wr_price_table* table, char* buf, size_t cap, size_t* needed, wr_error* err);

/* ==================================================================== 10d Keys */

/** Whose an API key is: a set of digests that control pushes as full snapshots and changes. threads: any; readers never wait. */
typedef struct wr_keys wr_keys;
/** Room for one answer, kept and used again. threads: one at a time. */
typedef struct wr_key_lookup wr_key_lookup;

/** What a digest is of. A key is <anything>-<public id>-<secret>. */
enum {
  WR_KEY_DIGEST_HMAC_SHA256 = 0,   /* of the secret, keyed with a pepper */
  WR_KEY_DIGEST_SHA256_SECRET = 1, /* of the secret, plain */
  WR_KEY_DIGEST_SHA256_KEY = 2     /* of the whole key, plain; the key is found by it */
};
#define WR_KEY_DIGEST_BYTES 32u
/** One secret of a key. Several with overlapping windows are a rotation. */
typedef struct wr_key_digest {
  uint32_t struct_size;
  uint32_t kind; /* WR_KEY_DIGEST_... */
  uint32_t pepper_version;
  uint32_t reserved0;
  uint8_t bytes[WR_KEY_DIGEST_BYTES];
  int64_t not_before_wall_ns;
  int64_t not_after_wall_ns; /* exclusive */
  uint64_t reserved[2];
} wr_key_digest;
#define WR_KEY_DIGEST_INIT {sizeof(wr_key_digest), WR_KEY_DIGEST_HMAC_SHA256, 0, 0, {0}, INT64_MIN, INT64_MAX, {0, 0}}

#define WR_REVOKED_FOREVER UINT64_MAX
/** A key as control describes it. */
typedef struct wr_key_record {
  uint32_t struct_size;
  uint32_t revoked; /* 1: a tombstone, digests are ignored */
  wr_str public_id; /* at most 64 bytes; empty: all digests are of WR_KEY_DIGEST_SHA256_KEY, and key_id names the key */
  wr_str key_id;    /* what the books call it; empty: public_id */
  wr_str team_id;
  uint64_t version; /* of this record, rising; WR_REVOKED_FOREVER with `revoked`: nothing brings it back */
  const wr_key_digest* digests;
  size_t digest_count;
  size_t digest_stride; /* bytes from one to the next */
  uint64_t reserved[2];
} wr_key_record;
#define WR_KEY_RECORD_INIT {sizeof(wr_key_record), 0, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, 0, NULL, 0, sizeof(wr_key_digest), {0, 0}}

/** What the client may learn of it is wr_key_verdict_status alone. */
enum {
  WR_KEY_VERDICT_ACCEPTED = 0,
  WR_KEY_VERDICT_MALFORMED = 1,
  WR_KEY_VERDICT_UNKNOWN = 2,
  WR_KEY_VERDICT_WRONG_SECRET = 3,
  WR_KEY_VERDICT_NOT_YET_VALID = 4,
  WR_KEY_VERDICT_EXPIRED = 5,
  WR_KEY_VERDICT_REVOKED = 6,
  WR_KEY_VERDICT_STALE_SET = 7, /* control is silent for longer than max_age_ns, and the policy is to refuse */
  WR_KEY_VERDICT_NO_PEPPER = 8, /* a fault of the deployment */
  WR_KEY_VERDICT_NO_DIGEST = 9  /* OpenSSL refuses: a fault of the deployment */
};
/** returns: "accepted", ...; "unknown". lifetime: static. since: 0.2.0 */
WR_API const char* wr_key_verdict_name(uint32_t verdict);
/** returns: HTTP's 200, 401 (the key), or 503 (our fault). since: 0.2.0 */
WR_API uint32_t wr_key_verdict_status(uint32_t verdict);

/** Whom an accepted key belongs to. lifetime: of strings, until the lookup is used again or freed. */
typedef struct wr_key_grant {
  uint32_t struct_size;
  uint32_t verdict; /* WR_KEY_VERDICT_...; all else is empty unless accepted */
  wr_str key_id;
  wr_str team_id;
  uint64_t version;
  uint64_t generation; /* of the set that said so */
  uint64_t reserved[2];
} wr_key_grant;
#define WR_KEY_GRANT_INIT {sizeof(wr_key_grant), WR_KEY_VERDICT_MALFORMED, WR_STR_INIT, WR_STR_INIT, 0, 0, {0, 0}}

/** What becomes of requests while the set is stale; refuse_new: keys that were accepted while it was not go on. */
enum { WR_STALE_KEYS_KEEP_SERVING = 0, WR_STALE_KEYS_REFUSE = 1, WR_STALE_KEYS_REFUSE_NEW = 2 };
typedef struct wr_keys_options {
  uint32_t struct_size;
  uint32_t abi_version;
  int64_t max_age_ns; /* since control was last heard of; 0: no limit */
  uint32_t on_stale;  /* WR_STALE_KEYS_... */
  uint32_t reserved0;
  uint64_t reserved[2];
} wr_keys_options;
#define WR_KEYS_OPTIONS_INIT {sizeof(wr_keys_options), WR_ABI_VERSION, 0, WR_STALE_KEYS_KEEP_SERVING, 0, {0, 0}}

typedef struct wr_keys_statistics {
  uint32_t struct_size;
  uint32_t stale; /* 1: control is silent for longer than max_age_ns */
  uint64_t generation;
  int64_t age_ns; /* since control was last heard of; INT64_MAX: never */
  uint64_t keys;  /* that are not revoked */
  uint64_t revoked;
  uint64_t bytes;
  uint64_t reserved[4];
} wr_keys_statistics;
#define WR_KEYS_STATISTICS_INIT {sizeof(wr_keys_statistics), 0, 0, 0, 0, 0, 0, {0, 0, 0, 0}}

/** `options` NULL: the defaults. errors: invalid_argument, out_of_range (on_stale), abi_mismatch, out_of_memory. since: 0.2.0 */
WR_API wr_status wr_keys_new(const wr_keys_options* options, wr_keys** out, wr_error* err);
/** Wipes the peppers. since: 0.2.0 */
WR_API void wr_keys_free(wr_keys* keys);
/** errors: invalid_argument (shorter than 16 bytes), already_exists (another pepper of this version). threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_add_pepper(wr_keys* keys, uint32_t version, wr_str pepper, wr_error* err);
/** A full snapshot: keys that it does not name are gone; revocations stay unless the record is newer. shape: `stride` bytes from one record to the next.
    errors: stale (not newer than the generation), invalid_argument (a record is faulty or named twice): nothing changes. cost: 1 s for 10^6 keys.
    threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_replace(wr_keys* keys, uint64_t generation, const wr_key_record* records, size_t count,
                                 size_t stride, int64_t now_ns, wr_error* err);
/** Changes of generation `base`; a record that is not newer than what is there is skipped. errors: stale (`base` is not the generation: a full
    snapshot is needed; or `generation` is not above it), invalid_argument: nothing changes. threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_apply(wr_keys* keys, uint64_t base, uint64_t generation, const wr_key_record* changes,
                               size_t count, size_t stride, int64_t now_ns, wr_error* err);
/** Control was heard of, and `generation` is still its newest. errors: stale (it is not ours). threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_confirm(wr_keys* keys, uint64_t generation, int64_t now_ns, wr_error* err);
/** As wr_keys_replace, to a generation that may be older, or is the same. errors: stale (`from` is not the generation), invalid_argument: nothing
    changes. threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_roll_back(wr_keys* keys, uint64_t from, uint64_t generation, const wr_key_record* records,
                                   size_t count, size_t stride, int64_t now_ns, wr_error* err);
/** From now on, instead of what the options say. errors: out_of_range (on_stale), invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_set_max_age(wr_keys* keys, int64_t max_age_ns, uint32_t on_stale, wr_error* err);
/** Revokes at once, beside control, everything up to `version`; also before the key is known. errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_revoke(wr_keys* keys, wr_str public_id, uint64_t version, wr_error* err);
/** errors: out_of_memory. since: 0.2.0 */
WR_API wr_status wr_key_lookup_new(wr_key_lookup** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_key_lookup_free(wr_key_lookup* lookup);
/** Whose key it is; a refusal is a verdict, not a failure. No error or verdict shows a secret. Hot. alloc: none once warm. threads: any number, each
    with a lookup of its own. since: 0.2.0 */
WR_API wr_status wr_keys_check(const wr_keys* keys, wr_key_lookup* lookup, wr_str key, int64_t steady_ns, int64_t wall_ns,
                               wr_key_grant* out, wr_error* err);
/** errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_keys_read_statistics(const wr_keys* keys, int64_t now_ns, wr_keys_statistics* out, wr_error* err);
/** The digest to store for a key, for whoever issues keys; `pepper` of hmac_sha256. Validity is that of WR_KEY_DIGEST_INIT.
    errors: invalid_argument (the key has no secret), out_of_range (kind), internal (OpenSSL refuses). threads: any. since: 0.2.0 */
WR_API wr_status wr_key_digest_of(wr_str key, uint32_t kind, uint32_t pepper_version, wr_str pepper, wr_key_digest* out,
                                  wr_error* err);

/* ==================================================================== 10e Limits */

/** Limits of any scopes. threads: any for every call but free. */
typedef struct wr_limits wr_limits;
/** One value of one dimension, e.g. team "blue"; of one wr_limits. */
typedef uint32_t wr_scope;
#define WR_NO_SCOPE UINT32_MAX
/** The handle of one reservation; 0 is never issued. */
typedef uint64_t wr_limit_ticket;

enum {
  WR_LIMIT_REQUESTS = 0,
  WR_LIMIT_INPUT_TOKENS = 1,
  WR_LIMIT_OUTPUT_TOKENS = 2,
  WR_LIMIT_TOTAL_TOKENS = 3,
  WR_LIMIT_COST_NANOS = 4 /* 1e-9 USD, each request's cost rounded up */
};
enum {
  WR_LIMIT_RATE = 0,       /* `amount` per `period_ns` of the steady clock, `burst` at once */
  WR_LIMIT_BUDGET = 1,     /* `amount` per calendar window of the wall clock */
  WR_LIMIT_CONCURRENCY = 2 /* `amount` requests at once */
};
enum {
  WR_CALENDAR_MINUTE = 0,
  WR_CALENDAR_HOUR = 1,
  WR_CALENDAR_DAY = 2,
  WR_CALENDAR_WEEK = 3,
  WR_CALENDAR_MONTH = 4,
  WR_CALENDAR_YEAR = 5
};

typedef struct wr_limit_spec {
  uint32_t struct_size;
  uint32_t kind; /* WR_LIMIT_RATE, ... */
  wr_str name;   /* of this limit within its scope; counters stay with the name when limits are set anew */
  uint32_t unit; /* WR_LIMIT_REQUESTS, ... */
  uint32_t calendar_unit; /* of a budget: windows of `calendar_count` times WR_CALENDAR_... */
  int64_t amount;
  int64_t period_ns; /* of a rate */
  int64_t burst;     /* of a rate; 0: amount */
  int64_t anchor_local_seconds; /* where a window begins: seconds since 1970-01-01T00:00:00 on the zone's own clock */
  wr_str time_zone; /* of the tz database as installed; empty: UTC */
  uint32_t calendar_count;
  uint32_t cached_weight_permille; /* what a cached input token counts, in thousandths */
  uint32_t shadow;    /* 1: counts and reports, never denies */
  uint32_t hard_stop; /* 1: of a budget: wr_limits_progress stops a stream that is past its reservation when it is gone */
  uint64_t reserved[4];
} wr_limit_spec;
#define WR_LIMIT_SPEC_INIT                                                                                                    \
  {sizeof(wr_limit_spec), WR_LIMIT_RATE, WR_STR_INIT, WR_LIMIT_REQUESTS, WR_CALENDAR_MONTH, 0, 60000000000, 0, 0, WR_STR_INIT, \
   1, 1000, 0, 0, {0, 0, 0, 0}}

/** What a request may use or has used. Unknown: 0 in an estimate; in settle, what was estimated. */
typedef struct wr_limit_use {
  uint32_t struct_size;
  uint32_t reserved0;
  int64_t input_tokens; /* cached ones included */
  int64_t cached_input_tokens;
  int64_t output_tokens;
  int64_t cost_picos;
  uint64_t reserved[2];
} wr_limit_use;
#define WR_LIMIT_USE_INIT {sizeof(wr_limit_use), 0, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, WR_UNKNOWN, {0, 0}}

enum {
  WR_LIMIT_ALLOWED = 0,
  WR_LIMIT_RATE_EXCEEDED = 1,     /* time heals it: retry_after_ns */
  WR_LIMIT_TOO_MANY_AT_ONCE = 2,  /* likewise; when, nobody knows */
  WR_LIMIT_BUDGET_EXCEEDED = 3,   /* a new window heals it: reset_ns */
  WR_LIMIT_LARGER_THAN_LIMIT = 4, /* the request alone exceeds a limit: it will never pass */
  WR_LIMIT_NO_ROOM = 5,           /* too many reservations are open */
  WR_LIMIT_INVALID = 6            /* a scope that does not exist, too many scopes or limits */
};
/** What is left of the tightest limit of one unit, after this request. */
typedef struct wr_limit_left {
  int64_t amount; /* of the limit; -1: there is none */
  int64_t remaining;
  int64_t reset_ns; /* until all of it is there again */
} wr_limit_left;
#define WR_LIMIT_UNIT_SLOTS 8

typedef struct wr_limit_decision {
  uint32_t struct_size;
  uint32_t outcome; /* WR_LIMIT_ALLOWED, ... */
  wr_limit_ticket ticket; /* 0 unless allowed */
  wr_scope scope; /* that denied; WR_NO_SCOPE: none */
  uint32_t limit; /* which of its limits, as wr_limits_name numbers them */
  int64_t retry_after_ns; /* -1: time does not heal it, or a budget denied */
  int64_t reset_ns;       /* of a budget: until its window ends; -1: none denied */
  uint32_t shadow_denied; /* 1: a limit in shadow mode would have denied */
  wr_scope shadow_scope;
  uint32_t shadow_limit;
  uint32_t may_stop; /* 1: a hard_stop is among its limits: wr_limits_progress is worth asking */
  wr_limit_left left[WR_LIMIT_UNIT_SLOTS]; /* by unit; shadows and concurrency left out */
  uint64_t reserved[4];
} wr_limit_decision;
#define WR_LIMIT_DECISION_INIT                                                                                     \
  {sizeof(wr_limit_decision), WR_LIMIT_INVALID, 0, WR_NO_SCOPE, 0, -1, -1, 0, WR_NO_SCOPE, 0, 0,                   \
   {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}, {0, 0, 0, 0}}

enum { WR_ORPHANS_KEEP = 0, WR_ORPHANS_REFUND = 1 };
typedef struct wr_limits_options {
  uint32_t struct_size;
  uint32_t abi_version;
  int64_t lease_ns; /* since reserve, progress or extend */
  uint32_t orphans; /* WR_ORPHANS_...: what an orphan's reservation becomes when its lease ends */
  uint32_t reserved0;
  uint64_t max_scopes;
  uint64_t max_reservations;    /* open at once */
  int64_t concurrency_retry_ns; /* what too_many_at_once suggests */
  uint64_t reserved[4];
} wr_limits_options;
#define WR_LIMITS_OPTIONS_INIT \
  {sizeof(wr_limits_options), WR_ABI_VERSION, 600000000000, WR_ORPHANS_KEEP, 0, 4000000, 1000000, 1000000000, {0, 0, 0, 0}}

typedef struct wr_limits_statistics {
  uint32_t struct_size;
  uint32_t reserved0;
  uint64_t allowed;
  uint64_t denied;
  uint64_t shadow_denied;
  uint64_t expired; /* leases that ended */
  uint64_t stale;   /* tickets used again or too late */
  uint64_t open;    /* reservations */
  uint64_t reserved[4];
} wr_limits_statistics;
#define WR_LIMITS_STATISTICS_INIT {sizeof(wr_limits_statistics), 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0}}

/** `options` NULL: the defaults. errors: invalid_argument, out_of_range (orphans), abi_mismatch, out_of_memory. since: 0.2.0 */
WR_API wr_status wr_limits_new(const wr_limits_options* options, wr_limits** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_limits_free(wr_limits* limits);
/** *out = the scope of a value, made when it is new. Keep it: finding it costs a lock and a hash. errors: invalid_argument (an empty dimension), capacity
    (max_scopes). threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_scope(wr_limits* limits, wr_str dimension, wr_str value, wr_scope* out, wr_error* err);
/** Limits of every value of a dimension that has none of its own, present and future. shape: `stride` bytes from one to the next, at most 8.
    errors: as wr_limits_set. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_set_default(wr_limits* limits, wr_str dimension, const wr_limit_spec* specs, size_t count,
                                       size_t stride, wr_error* err);
/** Limits of one scope. errors: invalid_argument (the fault named), out_of_range (kind, units), not_found (scope). Nothing changes then. threads: any.
    since: 0.2.0 */
WR_API wr_status wr_limits_set(wr_limits* limits, wr_scope scope, const wr_limit_spec* specs, size_t count, size_t stride,
                               wr_error* err);
/** Text result: the name of one limit of a scope, as decisions number them. errors: not_found. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_name(const wr_limits* limits, wr_scope scope, uint32_t limit, char* buf, size_t cap,
                                size_t* needed, wr_error* err);
/** Text results: what the scope is of. errors: not_found. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_scope_dimension(const wr_limits* limits, wr_scope scope, char* buf, size_t cap, size_t* needed,
                                           wr_error* err);
/** since: 0.2.0 */
WR_API wr_status wr_limits_scope_value(const wr_limits* limits, wr_scope scope, char* buf, size_t cap, size_t* needed,
                                       wr_error* err);
/** *used = what of the limit of that name is charged now: units used in the window, in flight at once, or not yet drained of a rate.
    errors: not_found. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_used(const wr_limits* limits, wr_scope scope, wr_str name, int64_t steady_ns, int64_t wall_ns,
                                int64_t* used, wr_error* err);
/** One request and its estimate against all limits of all scopes: all are charged or none. shape: at most 8 scopes with 24 limits together; those named
    twice count once. `estimate` NULL: one request of nothing. A denial is an outcome, not a failure. Hot. alloc: none once warm. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_reserve(wr_limits* limits, const wr_scope* scopes, size_t count, const wr_limit_use* estimate,
                                   int64_t steady_ns, int64_t wall_ns, wr_limit_decision* out, wr_error* err);
/** What a stream has used so far; *stop = 1: it is past its reservation and a hard_stop budget is gone, cut it. Renews the lease. errors: stale,
    invalid_argument, unsupported (the struct). Hot. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_progress(wr_limits* limits, wr_limit_ticket ticket, const wr_limit_use* so_far, int64_t steady_ns,
                                    int64_t wall_ns, uint32_t* stop);
/** Renews the lease. errors: stale. Hot. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_extend(wr_limits* limits, wr_limit_ticket ticket, int64_t now_ns);
/** The truth, charged to the windows that the reservation was. `actual` NULL: all as estimated. errors: stale (settled, released or expired before: nothing
    happens), invalid_argument, unsupported (the struct). Hot. alloc: none. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_settle(wr_limits* limits, wr_limit_ticket ticket, const wr_limit_use* actual, int64_t steady_ns,
                                  int64_t wall_ns);
/** The request never left, or nothing is to be paid: all is given back, the request too. errors: stale. Hot. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_release(wr_limits* limits, wr_limit_ticket ticket, int64_t steady_ns, int64_t wall_ns);
/** Ends leases that are over, at most so many; *ended (NULL is fine) of them. Every call above ends a few by itself. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_advance(wr_limits* limits, size_t most, int64_t steady_ns, int64_t wall_ns, size_t* ended,
                                   wr_error* err);
/** errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_limits_read_statistics(const wr_limits* limits, wr_limits_statistics* out, wr_error* err);
/** returns: HTTP's 200, 429, `budget_status` (402 or 403), 400 (never passes), 503 (no room), 500. threads: any. since: 0.2.0 */
WR_API uint32_t wr_limit_status(uint32_t outcome, uint32_t budget_status);
/** Text result: "name: value\r\n" for each header that clients know: x-ratelimit-{limit,remaining,reset}-{requests,tokens,input-tokens,output-tokens} and
    retry-after. threads: any. since: 0.2.0 */
WR_API wr_status wr_limit_headers(const wr_limit_decision* decision, char* buf, size_t cap, size_t* needed, wr_error* err);

/* ==================================================================== 10f Journal */

/** `begin` before a request leaves and `end` after, in append-only segments of checksummed records. threads: any for every call but free. */
typedef struct wr_journal wr_journal;
/** Reads a journal, also while it is written. threads: one at a time; any number of readers, in any process. */
typedef struct wr_journal_reader wr_journal_reader;

/** One attempt of one operation: retries are attempts under one operation_id. */
typedef struct wr_usage_event {
  uint32_t struct_size;
  uint32_t attempt;
  wr_str operation_id;
  int64_t start_wall_ns;
  int64_t end_wall_ns; /* of an end */
  wr_str key_id;
  wr_str team_id;
  wr_str provider;  /* gen_ai.provider.name */
  wr_str operation; /* gen_ai.operation.name: chat, embeddings, ... */
  wr_str request_model;
  wr_str replica_id;
  wr_str class_id;
  const wr_usage_report* report; /* of a begin the estimate; NULL: nothing known. Not kept: output_events, speed, inference_geography, other_models */
  const wr_cost* cost;           /* NULL: unknown */
  wr_str price_table_version;
  uint64_t reserved[4];
} wr_usage_event;
#define WR_USAGE_EVENT_INIT                                                                                                  \
  {sizeof(wr_usage_event), 0, WR_STR_INIT, 0, 0, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, \
   WR_STR_INIT, NULL, NULL, WR_STR_INIT, {0, 0, 0, 0}}

enum {
  WR_JOURNAL_BEGIN = 1,
  WR_JOURNAL_END = 2,
  WR_JOURNAL_INCOMPLETE = 3, /* written by recovery: it began, and the process ended before it did */
  WR_JOURNAL_WITHDRAWN = 4   /* it never left */
};
/** When the disk is asked to write. A killed process loses nothing in any case. */
enum {
  WR_JOURNAL_SYNC_NONE = 0,    /* when a segment is full, and at the end */
  WR_JOURNAL_SYNC_BATCHED = 1, /* after sync_bytes, or in wr_journal_sync */
  WR_JOURNAL_SYNC_EACH = 2     /* before each call returns */
};
/** When the disk is full or fails. */
enum {
  WR_JOURNAL_REFUSE = 0,        /* begin says io: serve nothing that cannot be billed */
  WR_JOURNAL_SERVE_UNBILLED = 1 /* begin gives event 0, and `unbilled` rises */
};

typedef struct wr_journal_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t sync;    /* WR_JOURNAL_SYNC_... */
  uint32_t on_full; /* WR_JOURNAL_REFUSE, ... */
  uint64_t sync_bytes;
  uint64_t segment_bytes;
  uint64_t max_bytes;     /* of all segments; beyond it the disk counts as full. 0: no limit */
  uint64_t max_held_ends; /* ends in memory that the disk did not take */
  uint64_t reserved[4];
} wr_journal_options;
#define WR_JOURNAL_OPTIONS_INIT \
  {sizeof(wr_journal_options), WR_ABI_VERSION, WR_JOURNAL_SYNC_BATCHED, WR_JOURNAL_REFUSE, 1000000, 64000000, 0, 100000, {0, 0, 0, 0}}

/** A place between two records. */
typedef struct wr_journal_cursor {
  uint64_t segment;
  uint64_t offset; /* units: bytes */
} wr_journal_cursor;
/** All that there is. */
#define WR_JOURNAL_CURSOR_INIT {0, 0}

typedef struct wr_journal_statistics {
  uint32_t struct_size;
  uint32_t full; /* 1: the last write failed */
  uint64_t begins;
  uint64_t ends;
  uint64_t recovered;  /* incomplete ones, when the journal was opened */
  uint64_t torn_bytes; /* cut off a tail, when it was opened */
  uint64_t damaged;    /* segments with a bad record before their end */
  uint64_t unbilled;   /* requests let through without a record */
  uint64_t lost_ends;  /* that neither disk nor memory took */
  uint64_t held_ends;  /* in memory, to be written with the next record */
  uint64_t open;       /* began, not ended */
  uint64_t bytes;      /* of all segments */
  uint64_t syncs;
  uint64_t reserved[4];
} wr_journal_statistics;
#define WR_JOURNAL_STATISTICS_INIT {sizeof(wr_journal_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0}}

/** lifetime: of all that it points to, until its reader's next call. */
typedef struct wr_journal_record {
  uint32_t struct_size;
  uint32_t kind;   /* WR_JOURNAL_BEGIN, ... */
  uint64_t number; /* of the event: the same in begin and end, never used again */
  wr_str event_id; /* unique beyond this journal; consumers drop what they have seen */
  const wr_usage_event* event;
  uint64_t reserved[2];
} wr_journal_record;
#define WR_JOURNAL_RECORD_INIT {sizeof(wr_journal_record), 0, 0, WR_STR_INIT, NULL, {0, 0}}

/** Opens or makes a journal in a directory, cuts a torn tail and writes down what was left open. `options` NULL: the defaults. errors: io, already_exists
    (another process has it open), malformed (the directory holds something else), invalid_argument, out_of_range, abi_mismatch. since: 0.2.0 */
WR_API wr_status wr_journal_open(wr_str directory, const wr_journal_options* options, wr_journal** out, wr_error* err);
/** Syncs, too. since: 0.2.0 */
WR_API void wr_journal_free(wr_journal* journal);
/** Before the request leaves. *number = the event's; 0: unbilled. errors: io (refuse), invalid_argument (strings of more than 64 KiB together), out_of_range.
    Hot. threads: any. since: 0.2.0 */
WR_API wr_status wr_journal_begin(wr_journal* journal, const wr_usage_event* estimate, uint64_t* number, wr_error* err);
/** After it. `number` 0 is ignored. errors: stale (it ended before, or never began), io (held in memory, or lost: statistics), invalid_argument, out_of_range.
    Hot. threads: any. since: 0.2.0 */
WR_API wr_status wr_journal_end(wr_journal* journal, uint64_t number, const wr_usage_event* event, wr_error* err);
/** It never left: nothing is handed over for it. errors: as end. threads: any. since: 0.2.0 */
WR_API wr_status wr_journal_withdraw(wr_journal* journal, uint64_t number, wr_error* err);
/** Asks the disk to write; tries held ends again. errors: io. threads: any. since: 0.2.0 */
WR_API wr_status wr_journal_sync(wr_journal* journal, wr_error* err);
/** A consumer has everything before `cursor`: segments that lie before it and hold nothing open are deleted. Going back is ignored. errors: io.
    threads: any. since: 0.2.0 */
WR_API wr_status wr_journal_acknowledge(wr_journal* journal, wr_journal_cursor cursor, wr_error* err);
/** errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_journal_acknowledged(const wr_journal* journal, wr_journal_cursor* out, wr_error* err);
/** errors: invalid_argument. threads: any. since: 0.2.0 */
WR_API wr_status wr_journal_read_statistics(const wr_journal* journal, wr_journal_statistics* out, wr_error* err);

/** From a cursor: what was acknowledged for a consumer, {0, 0} for everything. errors: io, malformed. since: 0.2.0 */
WR_API wr_status wr_journal_reader_open(wr_str directory, wr_journal_cursor from, wr_journal_reader** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_journal_reader_free(wr_journal_reader* reader);
/** The next end or incomplete; `begins` 1: begins and what was withdrawn, too. *found = 0: no more for now, `out` stays. errors: io. since: 0.2.0 */
WR_API wr_status wr_journal_reader_next(wr_journal_reader* reader, uint32_t begins, wr_journal_record* out, uint32_t* found,
                                        wr_error* err);
/** *out = the place behind the last record, to be acknowledged. since: 0.2.0 */
WR_API wr_status wr_journal_reader_cursor(const wr_journal_reader* reader, wr_journal_cursor* out, wr_error* err);
/** Text result: the last record as one line of JSON, with OpenTelemetry's names (gen_ai.*) where there are any, and LF. errors: not_found (none was read).
    since: 0.2.0 */
WR_API wr_status wr_journal_reader_json_line(const wr_journal_reader* reader, char* buf, size_t cap, size_t* needed,
                                             wr_error* err);
/** Text result: the last record as FOCUS rows (CSV, LF), one per line of its bill; one without a price. errors: not_found. since: 0.2.0 */
WR_API wr_status wr_journal_reader_focus_rows(const wr_journal_reader* reader, char* buf, size_t cap, size_t* needed,
                                              wr_error* err);
/** returns: the names of their columns, with LF. lifetime: static. since: 0.2.0 */
WR_API const char* wr_focus_header(void);

/* ==================================================================== 10g Ledger */

/** Sums of events; each is in exactly one row. threads: any for every call but free. */
typedef struct wr_ledger wr_ledger;
/** Rows of one moment. threads: any. */
typedef struct wr_ledger_rows wr_ledger_rows;

/** What rows are told apart by, as bits. */
enum {
  WR_LEDGER_BY_NONE = 0,
  WR_LEDGER_BY_KEY = 1,
  WR_LEDGER_BY_TEAM = 2,
  WR_LEDGER_BY_MODEL = 4,
  WR_LEDGER_BY_REPLICA = 8,
  WR_LEDGER_BY_CLASS = 16,
  WR_LEDGER_BY_WINDOW = 32,
  WR_LEDGER_BY_ALL = 63
};

typedef struct wr_ledger_options {
  uint32_t struct_size;
  uint32_t abi_version;
  uint32_t by;      /* WR_LEDGER_BY_... bits */
  uint32_t reprice; /* 1: costs are those of `prices`, not the events': what if */
  int64_t window_ns; /* windows begin at its multiples since 1970, by the end of an event */
  uint64_t max_rows; /* what comes beyond goes to one row without names */
  const wr_price_table* prices; /* for saved_* and reprice; must outlive the ledger, and not change; NULL: none */
  uint64_t reserved[4];
} wr_ledger_options;
#define WR_LEDGER_OPTIONS_INIT \
  {sizeof(wr_ledger_options), WR_ABI_VERSION, WR_LEDGER_BY_ALL, 0, 3600000000000, 1000000, NULL, {0, 0, 0, 0}}

/** Names that were not asked for are empty, the window 0. Token sums are of what is known. Money is usd + picos * 1e-12, 0 <= picos < 1e12. */
typedef struct wr_ledger_row {
  uint32_t struct_size;
  uint32_t reserved0;
  wr_str key_id;
  wr_str team_id;
  wr_str model; /* that answered; where that was not said, that was asked for */
  wr_str replica_id;
  wr_str class_id;
  int64_t window_start_wall_ns;
  int64_t attempts;
  int64_t incomplete;    /* attempts whose last word was not heard */
  int64_t errors;        /* attempts */
  int64_t unknown_usage; /* attempts of which a side is unknown */
  int64_t unknown_cost;  /* attempts without a price: the cost lacks them */
  int64_t input_tokens;
  int64_t cached_input_tokens;
  int64_t cache_write_input_tokens;
  int64_t output_tokens;
  int64_t reasoning_output_tokens;
  int64_t cache_reported_input_tokens; /* input of attempts that said how much was cached: the hit ratio's denominator */
  int64_t cost_usd;
  int64_t cost_picos;
  int64_t saved_usd; /* by the cache: what the same tokens would have cost without one, less what they cost; may be negative */
  int64_t saved_picos;
  uint64_t reserved[4];
} wr_ledger_row;
#define WR_LEDGER_ROW_INIT                                                                                        \
  {sizeof(wr_ledger_row), 0, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, WR_STR_INIT, 0, 0, 0, 0, 0, 0, 0, \
   0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0}}

/** `options` NULL: the defaults. errors: invalid_argument, out_of_range (by, window_ns), abi_mismatch, out_of_memory. since: 0.2.0 */
WR_API wr_status wr_ledger_new(const wr_ledger_options* options, wr_ledger** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_ledger_free(wr_ledger* ledger);
/** One event that ended; `incomplete` 1: recovered or estimated. Hot. alloc: for a new row. threads: any. since: 0.2.0 */
WR_API wr_status wr_ledger_add(wr_ledger* ledger, const wr_usage_event* event, uint32_t incomplete, wr_error* err);
/** All that the reader has left; *events (NULL is fine) of them. errors: as wr_journal_reader_next; what came before is added. threads: any. since: 0.2.0 */
WR_API wr_status wr_ledger_read(wr_ledger* ledger, wr_journal_reader* reader, uint64_t* events, wr_error* err);
/** Sums by any of the ledger's own dimensions, in the order of their names. *out is to be freed. errors: out_of_range (by), out_of_memory. threads: any.
    since: 0.2.0 */
WR_API wr_status wr_ledger_snapshot(const wr_ledger* ledger, uint32_t by, wr_ledger_rows** out, wr_error* err);
/** since: 0.2.0 */
WR_API void wr_ledger_rows_free(wr_ledger_rows* rows);
/** returns: rows; 0 for NULL. since: 0.2.0 */
WR_API size_t wr_ledger_rows_count(const wr_ledger_rows* rows);
/** lifetime: of strings, until the rows are freed. errors: out_of_range (row). since: 0.2.0 */
WR_API wr_status wr_ledger_rows_read(const wr_ledger_rows* rows, size_t row, wr_ledger_row* out, wr_error* err);
/** All of it as one row. threads: any. since: 0.2.0 */
WR_API wr_status wr_ledger_total(const wr_ledger* ledger, wr_ledger_row* out, wr_error* err);
/** Drops windows that ended by then; *rows (NULL is fine) of them. threads: any. since: 0.2.0 */
WR_API wr_status wr_ledger_forget_before(wr_ledger* ledger, int64_t wall_ns, size_t* rows, wr_error* err);
/** returns: rows held. threads: any. since: 0.2.0 */
WR_API size_t wr_ledger_size(const wr_ledger* ledger);
/** returns: events in the row without names. threads: any. since: 0.2.0 */
WR_API uint64_t wr_ledger_overflowed(const wr_ledger* ledger);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WARMROUTE_USAGE_H */
