/* 6 Engines: KV events over a transport of the caller's. Messages: tests/data/kv_event_cases.jsonl, v025-b0 to -b2 (vLLM
   0.25.1): three blocks of one prompt, called 200, 201, 202, each of the tokens 101..116. */
#include "helpers.h"

enum { kSecond = 1000000000, kTokens = 64 };

#define TOPIC "6b7640706f642d61406d2d74657374"
#define STORED_HEAD "9189a474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391"
#define STORED_TAIL                                                                                        \
  "a9746f6b656e5f696473dc001065666768696a6b6c6d6e6f7071727374aa626c6f636b5f73697a6510a76c6f72615f6964c0a6" \
  "6d656469756da3475055a96c6f72615f6e616d65c0a967726f75705f6964780002"
#define PARENT "b1706172656e745f626c6f636b5f68617368"
static const char* const kPayloads[] = {
    "93cb4044000000000000" STORED_HEAD "ccc8" PARENT "c0" STORED_TAIL,
    "93cb4044800000000000" STORED_HEAD "ccc9" PARENT "ccc8" STORED_TAIL,
    "93cb4045000000000000" STORED_HEAD "ccca" PARENT "ccc9" STORED_TAIL,
    "93cb40450000000000009193ac426c6f636b52656d6f76656491cccaa347505500" /* 202 is removed, as vLLM 0.11 says it */
};

/* A message in memory of its own, that ends where its frames do. */
typedef struct message {
  wr_str frames[4];
  size_t count;
} message;

static wr_str bytes_of(const char* hex) {
  wr_str out = WR_STR_INIT;
  size_t i;
  char* data;
  out.size = strlen(hex) / 2;
  data = malloc(out.size + 1);
  CHECK(data != NULL);
  for (i = 0; i < out.size; ++i) {
    unsigned byte = 0;
    CHECK(sscanf(hex + 2 * i, "%2x", &byte) == 1);
    data[i] = (char)byte;
  }
  out.data = data;
  return out;
}
static message frames_of(const char* a, const char* b, const char* c, const char* d) {
  message m;
  const char* all[4];
  memset(&m, 0, sizeof m);
  all[0] = a;
  all[1] = b;
  all[2] = c;
  all[3] = d;
  for (m.count = 0; m.count < 4 && all[m.count] != NULL; ++m.count) m.frames[m.count] = bytes_of(all[m.count]);
  return m;
}
static void drop(message* m) {
  size_t i;
  for (i = 0; i < m->count; ++i) free((void*)(uintptr_t)m->frames[i].data);
}

static void live(wr_kv_source* source, unsigned seq, unsigned payload, int64_t now_ns) {
  char number[17];
  message m;
  sprintf(number, "%016x", seq);
  m = frames_of(TOPIC, number, kPayloads[payload], NULL);
  CHECK_OK(wr_kv_source_live(source, m.frames, m.count, now_ns, NULL));
  drop(&m);
}
static void replayed(wr_kv_source* source, message m, uint32_t socket, int64_t now_ns) {
  CHECK_OK(wr_kv_source_replayed(source, socket, m.frames, m.count, now_ns, NULL));
  drop(&m);
}
static wr_kv_source_status status_of(const wr_kv_source* source) {
  wr_kv_source_status status = WR_KV_SOURCE_STATUS_INIT;
  CHECK_OK(wr_kv_source_read_status(source, &status, NULL));
  return status;
}

/* What the notices said. */
typedef struct note_book {
  size_t count;
  wr_kv_notice notes[16];
} note_book;
static void keep_note(void* user, const wr_kv_notice* notice) {
  note_book* book = user;
  CHECK_EQ(notice->struct_size, sizeof *notice);
  CHECK(book->count < 16);
  book->notes[book->count++] = *notice;
}

/* The three blocks' tokens, and a fourth block that nobody has. */
static void prompt_of(uint32_t* tokens) {
  size_t i;
  for (i = 0; i < kTokens; ++i) tokens[i] = 101 + (uint32_t)(i % 16);
}

static wr_kv_source* new_source(wr_router* router, wr_replica_id id, uint32_t replay, note_book* book) {
  wr_kv_source_options options = WR_KV_SOURCE_OPTIONS_INIT;
  wr_kv_source* source = NULL;
  options.replay = replay;
  if (book != NULL) {
    memset(book, 0, sizeof *book);
    options.notice = keep_note;
    options.notice_user = book;
  }
  CHECK_OK(wr_kv_source_new(router, id, &options, &source, NULL));
  return source;
}

TEST(WhatAnEnginePublishesIsBelieved) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_kv_source* source = NULL;
  wr_kv_source_status status;
  uint32_t tokens[kTokens], wanted = 7;
  uint64_t from = 77;
  prompt_of(tokens);
  CHECK_OK(wr_kv_source_new(router, ids[0], NULL, &source, NULL));
  status = status_of(source);
  CHECK_EQ(status.state, WR_KV_STATE_WAITING);
  live(source, 0, 0, kSecond);
  live(source, 1, 1, kSecond);
  live(source, 2, 2, kSecond + 5);
  CHECK_EQ(cached_on(router, ids[0], tokens, kTokens, WR_TIER_DEVICE), 48);
  CHECK_EQ(cached_on(router, ids[1], tokens, kTokens, WR_TIER_DEVICE), 0);
  live(source, 3, 3, kSecond + 6);
  CHECK_EQ(cached_on(router, ids[0], tokens, kTokens, WR_TIER_DEVICE), 32);
  status = status_of(source);
  CHECK_EQ(status.state, WR_KV_STATE_LIVE);
  CHECK_EQ(status.next, 4);
  CHECK_EQ(status.messages, 4);
  CHECK_EQ(status.last_event_ns, kSecond + 6);
  CHECK_EQ(status.blocks_stored, 3);
  CHECK_EQ(status.blocks_removed, 1);
  CHECK_EQ(status.unknown_removes, 0);
  CHECK_OK(wr_kv_source_wants_replay(source, &wanted, &from, NULL));
  CHECK(wanted == 0 && from == 77);
  wr_kv_source_free(source);
  CHECK_EQ(cached_on(router, ids[0], tokens, kTokens, WR_TIER_DEVICE), 32); /* what it told stays */
  wr_router_free(router);
}

TEST(AGapIsFilledFromTheReplay) {
  uint32_t socket;
  for (socket = WR_KV_DEALER; socket <= WR_KV_REQ; ++socket) {
    const int dealer = socket == WR_KV_DEALER;
    wr_replica_id id;
    wr_router* router = new_fleet(1, &id);
    note_book book;
    wr_kv_source* source = new_source(router, id, 1, &book);
    wr_kv_source_status status;
    uint32_t tokens[kTokens], wanted = 7;
    uint64_t from = 77;
    prompt_of(tokens);
    live(source, 0, 0, kSecond);
    live(source, 2, 2, 2 * (int64_t)kSecond);
    status = status_of(source);
    CHECK_EQ(status.state, WR_KV_STATE_REPLAYING);
    CHECK_EQ(status.unsure_since_ns, 2 * (int64_t)kSecond);
    CHECK_EQ(status.held_bytes, strlen(kPayloads[2]) / 2);
    CHECK_EQ(cached_on(router, id, tokens, kTokens, WR_TIER_DEVICE), 16);
    CHECK_OK(wr_kv_source_wants_replay(source, &wanted, &from, NULL));
    CHECK(wanted == 1 && from == 1);
    CHECK_OK(wr_kv_source_wants_replay(source, &wanted, &from, NULL));
    CHECK(wanted == 0 && from == 1);                                    /* once per attempt */
    CHECK_OK(wr_kv_source_advance(source, 5 * (int64_t)kSecond, NULL)); /* the first attempt found nobody */
    CHECK_OK(wr_kv_source_wants_replay(source, &wanted, &from, NULL));
    CHECK(wanted == 1 && from == 1);
    replayed(source,
             dealer ? frames_of("", "0000000000000001", kPayloads[1], NULL)
                    : frames_of(TOPIC, "0000000000000001", kPayloads[1], NULL),
             socket, 5 * (int64_t)kSecond);
    replayed(source,
             dealer ? frames_of("", TOPIC, "0000000000000002", kPayloads[2])
                    : frames_of("0000000000000002", kPayloads[2], NULL, NULL),
             socket, 5 * (int64_t)kSecond);
    replayed(source,
             dealer ? frames_of("", "ffffffffffffffff", "", NULL) : frames_of("ffffffffffffffff", "", NULL, NULL),
             socket, 5 * (int64_t)kSecond);
    CHECK_EQ(cached_on(router, id, tokens, kTokens, WR_TIER_DEVICE), 48);
    status = status_of(source);
    CHECK_EQ(status.state, WR_KV_STATE_LIVE);
    CHECK_EQ(status.next, 3);
    CHECK_EQ(status.replayed, 2);
    CHECK_EQ(status.gaps, 1);
    CHECK_EQ(status.resyncs, 0);
    CHECK_EQ(status.held_bytes, 0);
    CHECK_EQ(book.count, 2);
    CHECK_EQ(book.notes[0].kind, WR_KV_NOTICE_GAP);
    CHECK(book.notes[0].from == 1 && book.notes[0].to == 1);
    CHECK_EQ(book.notes[1].kind, WR_KV_NOTICE_REPLAY_COMPLETE);
    CHECK(book.notes[1].from == 1 && book.notes[1].to == 2);
    wr_kv_source_free(source);
    wr_router_free(router);
  }
}

TEST(AGapThatNobodyFillsClearsTheCacheAndOrphansWait) {
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  note_book book;
  wr_kv_source* source = new_source(router, id, 0, &book);
  wr_kv_source_status status;
  uint32_t tokens[kTokens];
  prompt_of(tokens);
  live(source, 0, 0, kSecond);
  live(source, 2, 2, kSecond); /* its parent came with message 1 */
  CHECK_EQ(cached_on(router, id, tokens, kTokens, WR_TIER_DEVICE), 0);
  status = status_of(source);
  CHECK_EQ(status.resyncs, 1);
  CHECK_EQ(status.orphan_blocks, 1);
  CHECK_EQ(book.count, 3);
  CHECK_EQ(book.notes[1].kind, WR_KV_NOTICE_RESYNC);
  CHECK_EQ(book.notes[1].reason, WR_KV_RESYNC_GAP_WITHOUT_REPLAY);
  CHECK_EQ(book.notes[2].kind, WR_KV_NOTICE_ORPHAN);
  CHECK(book.notes[2].block == 202 && book.notes[2].parent == 201);
  CHECK_OK(wr_kv_source_advance(source, 40 * (int64_t)kSecond, NULL));
  CHECK_EQ(status_of(source).orphan_blocks, 0);
  CHECK_EQ(book.notes[3].kind, WR_KV_NOTICE_ORPHAN_DROPPED);
  live(source, 0, 0, 41 * (int64_t)kSecond); /* the engine restarted */
  CHECK_EQ(book.notes[4].kind, WR_KV_NOTICE_RESTART);
  CHECK(book.notes[4].from == 2 && book.notes[4].to == 0);
  CHECK_EQ(status_of(source).restarts, 1);
  CHECK_EQ(cached_on(router, id, tokens, kTokens, WR_TIER_DEVICE), 16);
  CHECK_EQ(book.count, 5);
  wr_kv_source_free(source);
  wr_router_free(router);
}

TEST(FramesThatAreNoneAreRefusedAndBadPayloadsAreTold) {
  static const struct {
    const char* frames[4];
    wr_status status;
  } cases[] = {{{"", "0000000000000000", NULL, NULL}, WR_STATUS_MALFORMED},
               {{"", TOPIC, "0000000000000000", "90"}, WR_STATUS_MALFORMED},
               {{NULL, NULL, NULL, NULL}, WR_STATUS_MALFORMED},
               {{"", "00000000000000", "90", NULL}, WR_STATUS_MALFORMED},
               {{"", "000000000000000000", "90", NULL}, WR_STATUS_MALFORMED},
               {{"", "ffffffffffffffff", "90", NULL}, WR_STATUS_VALUE_OUT_OF_RANGE}};
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  note_book book;
  wr_kv_source* source = new_source(router, id, 0, &book);
  wr_str many[1000], frames[3];
  wr_error err = WR_ERROR_INIT;
  uint32_t tokens[kTokens], fault;
  size_t i;
  message m;
  prompt_of(tokens);
  live(source, 0, 0, kSecond);
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    const char* const* f = cases[i].frames;
    m = frames_of(f[0], f[1], f[2], f[3]);
    CHECK_STATUS(wr_kv_source_live(source, m.frames, m.count, kSecond, &err), cases[i].status);
    CHECK(err.status == cases[i].status && strlen(err.message) > 0);
    drop(&m);
  }
  for (i = 0; i < 1000; ++i) many[i] = text("");
  CHECK_STATUS(wr_kv_source_live(source, many, 1000, kSecond, NULL), WR_STATUS_MALFORMED);
  CHECK_STATUS(wr_kv_source_replayed(source, WR_KV_DEALER, many, 1000, kSecond, NULL), WR_STATUS_MALFORMED);
  CHECK_STATUS(wr_kv_source_replayed(source, WR_KV_REQ, many, 1, kSecond, NULL), WR_STATUS_MALFORMED);
  CHECK_STATUS(wr_kv_source_replayed(source, WR_KV_SUBSCRIBER, many, 3, kSecond, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_kv_source_replayed(source, 256, many, 3, kSecond, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_EQ(status_of(source).messages, 1);
  CHECK_EQ(book.count, 0);
  frames[0] = text("");
  frames[1] = bad_text();
  frames[2] = text("");
  CHECK_STATUS(wr_kv_source_live(source, frames, 3, kSecond, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(cached_on(router, id, tokens, kTokens, WR_TIER_DEVICE), 16);
  m = frames_of(TOPIC, "0000000000000001", "93cb40440000000000009189a4", NULL); /* ends in the middle */
  CHECK_OK(wr_kv_source_live(source, m.frames, m.count, kSecond, NULL));
  drop(&m);
  CHECK_EQ(book.count, 1);
  CHECK_EQ(book.notes[0].kind, WR_KV_NOTICE_BAD_MESSAGE);
  CHECK_EQ(book.notes[0].from, 1);
  CHECK_TEXT(wr_kv_fault_name(book.notes[0].fault), "length_overrun");
  CHECK_EQ(status_of(source).bad_messages, 1);
  CHECK_EQ(cached_on(router, id, tokens, kTokens, WR_TIER_DEVICE), 0);
  CHECK_TEXT(wr_kv_fault_name(0), "none");
  for (fault = 0; fault <= 18; ++fault) CHECK(strcmp(wr_kv_fault_name(fault), "unknown") != 0);
  CHECK_TEXT(wr_kv_fault_name(19), "unknown");
  CHECK_TEXT(wr_kv_fault_name(256), "unknown");
  wr_kv_source_free(source);
  wr_router_free(router);
}

TEST(BlocksAreHashedAsThePolicyAndTheTenantSay) {
  wr_replica_id ids[3];
  wr_router* router = new_fleet(3, ids);
  wr_policy policy;
  wr_kv_source_options options = WR_KV_SOURCE_OPTIONS_INIT;
  wr_kv_source* sources[3] = {NULL, NULL, NULL};
  uint32_t tokens[kTokens];
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  char tenant[] = "acme";
  size_t i;
  note_book book;
  prompt_of(tokens);
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.hash_seed = 4711;
  CHECK_OK(wr_router_set_policy(router, &policy, NULL));
  CHECK_OK(wr_kv_source_new(router, ids[0], NULL, &sources[0], NULL));
  options.block_size = 16;
  options.hash_seed = 4712; /* another deployment's: matches nothing here */
  CHECK_OK(wr_kv_source_new(router, ids[1], &options, &sources[1], NULL));
  options.block_size = 0;
  options.isolation_key = text(tenant);
  CHECK_OK(wr_kv_source_new(router, ids[2], &options, &sources[2], NULL));
  memset(tenant, 'x', sizeof tenant - 1); /* it was read during the call only */
  for (i = 0; i < 3; ++i) live(sources[i], 0, 0, kSecond);
  CHECK_EQ(cached_on(router, ids[0], tokens, kTokens, WR_TIER_DEVICE), 16);
  CHECK_EQ(cached_on(router, ids[1], tokens, kTokens, WR_TIER_DEVICE), 0);
  CHECK_EQ(cached_on(router, ids[2], tokens, kTokens, WR_TIER_DEVICE), 0);
  request = token_request(tokens, kTokens);
  request.tenant = text("acme");
  CHECK_OK(wr_router_peek(router, &request, kSecond, &d, NULL));
  CHECK_EQ(d.replica.slot, ids[2].slot);
  CHECK_EQ(d.cached_tokens[WR_TIER_DEVICE], 16);
  for (i = 0; i < 3; ++i) wr_kv_source_free(sources[i]);
  /* Blocks of 16 where pages of 32 are expected are refused aloud. */
  options = (wr_kv_source_options)WR_KV_SOURCE_OPTIONS_INIT;
  memset(&book, 0, sizeof book);
  options.engine_block_size = 32;
  options.notice = keep_note;
  options.notice_user = &book;
  CHECK_OK(wr_kv_source_new(router, ids[0], &options, &sources[0], NULL));
  live(sources[0], 0, 0, kSecond);
  CHECK_EQ(book.count, 1);
  CHECK_EQ(book.notes[0].kind, WR_KV_NOTICE_BLOCK_SIZE);
  CHECK_EQ(book.notes[0].from, 16);
  wr_kv_source_free(sources[0]);
  wr_router_free(router);
}

static wr_router* shared_router;
static wr_replica_id shared_id;
static wr_kv_source* shared_source;

static wr_status source_with(const void* options) {
  wr_kv_source* source = NULL;
  const wr_status status = wr_kv_source_new(shared_router, shared_id, options, &source, NULL);
  CHECK((source != NULL) == (status == WR_STATUS_OK));
  wr_kv_source_free(source);
  return status;
}
static wr_status status_into(void* status) { return wr_kv_source_read_status(shared_source, status, NULL); }

TEST(SourcesAreMadeOfSoundOptionsOnly) {
  const wr_kv_source_options good = WR_KV_SOURCE_OPTIONS_INIT;
  const wr_kv_source_status status = WR_KV_SOURCE_STATUS_INIT;
  static const uint32_t kPages[][2] = {{24, 0}, {2064, 0}, {5, 0}, {1, 1}, {8, 1}, {32, 1}, {2048, 1}, {0, 1}};
  wr_kv_source_options bad;
  wr_error err = WR_ERROR_INIT;
  wr_kv_source* source = NULL;
  size_t i;
  shared_router = new_fleet(1, &shared_id);
  check_input_sizes(&good, sizeof good, offsetof(wr_kv_source_options, reserved), WR_STATUS_OK, source_with);
  bad = good;
  bad.abi_version = WR_ABI_VERSION + 1;
  CHECK_STATUS(source_with(&bad), WR_STATUS_ABI_MISMATCH);
  bad = good;
  bad.block_size = 513;
  CHECK_STATUS(source_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  for (i = 0; i < sizeof kPages / sizeof kPages[0]; ++i) {
    bad = good;
    bad.engine_block_size = kPages[i][0];
    CHECK_STATUS(source_with(&bad), kPages[i][1] ? WR_STATUS_OK : WR_STATUS_INVALID_ARGUMENT);
  }
  bad = good;
  bad.replay_attempts = 0;
  CHECK_STATUS(source_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = good;
  bad.replay_timeout_ns = -1;
  CHECK_STATUS(source_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = good;
  bad.orphan_age_ns = -1;
  CHECK_STATUS(source_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = good;
  bad.max_message_bytes = (uint64_t)1 << 32;
  CHECK_STATUS(source_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.max_message_bytes = 0;
  CHECK_STATUS(source_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = good;
  bad.isolation_key = bad_text();
  CHECK_STATUS(source_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_kv_source_new(shared_router, shared_id, NULL, &shared_source, NULL));
  check_output_sizes(&status, sizeof status, 1, status_into);
  CHECK_OK(wr_router_remove_replica(shared_router, shared_id, 1, NULL));
  CHECK_STATUS(wr_kv_source_new(shared_router, shared_id, NULL, &source, &err), WR_STATUS_STALE);
  CHECK(source == NULL && strlen(err.message) > 0);
  live(shared_source, 0, 0, 2); /* of nobody any more */
  live(shared_source, 3, 3, 2);
  CHECK_EQ(status_of(shared_source).messages, 2);
  wr_kv_source_free(shared_source);
  wr_router_free(shared_router);
}

TEST(EveryNullOfASourceIsRefused) {
  wr_replica_id id;
  wr_router* router = new_fleet(1, &id);
  wr_kv_source* source = NULL;
  wr_kv_source_status status = WR_KV_SOURCE_STATUS_INIT;
  wr_str frame = WR_STR_INIT;
  uint32_t wanted = 7;
  uint64_t from = 77;
  CHECK_STATUS(wr_kv_source_new(NULL, id, NULL, &source, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_new(router, id, NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(source == NULL);
  CHECK_OK(wr_kv_source_new(router, id, NULL, &source, NULL));
  CHECK_STATUS(wr_kv_source_live(NULL, &frame, 1, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_live(source, NULL, 1, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_live(source, NULL, 0, 1, NULL), WR_STATUS_MALFORMED);
  CHECK_STATUS(wr_kv_source_replayed(NULL, WR_KV_REQ, &frame, 1, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_replayed(source, WR_KV_REQ, NULL, 1, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_wants_replay(NULL, &wanted, &from, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_wants_replay(source, NULL, &from, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_wants_replay(source, &wanted, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_advance(NULL, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_read_status(NULL, &status, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_source_read_status(source, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(wanted == 7 && from == 77);
  wr_kv_source_free(source);
  wr_kv_source_free(NULL);
  wr_router_free(router);
}

TESTS(CASE(WhatAnEnginePublishesIsBelieved), CASE(AGapIsFilledFromTheReplay),
      CASE(AGapThatNobodyFillsClearsTheCacheAndOrphansWait), CASE(FramesThatAreNoneAreRefusedAndBadPayloadsAreTold),
      CASE(BlocksAreHashedAsThePolicyAndTheTenantSay), CASE(SourcesAreMadeOfSoundOptionsOnly),
      CASE(EveryNullOfASourceIsRefused))
