#include "helpers.h"

int run_cases(const test_case* cases, size_t count, int argc, char** argv) {
  size_t i, ran = 0;
  for (i = 0; i < count; ++i) {
    if (argc > 1 && strcmp(argv[1], cases[i].name) != 0) continue;
    cases[i].run();
    ++ran;
  }
  if (ran == 0) fprintf(stderr, "no test of that name\n");
  return ran == 0;
}

void check_status(wr_status got, wr_status wanted, const char* call, const char* file, int line) {
  if (got == wanted) return;
  fprintf(stderr, "%s:%d: error: %s: got %s, wanted %s\n", file, line, call, wr_status_text(got),
          wr_status_text(wanted));
  exit(1);
}

enum { kPaint = 0xA5, kTail = 64, kMost = 4096 };

wr_str text(const char* s) {
  wr_str out;
  out.data = s;
  out.size = strlen(s);
  return out;
}

wr_str bad_text(void) {
  wr_str out = WR_STR_INIT;
  out.size = 3;
  return out;
}

void paint(void* memory, size_t size) { memset(memory, kPaint, size); }

int painted(const void* memory, size_t size) {
  const unsigned char* bytes = memory;
  size_t i;
  for (i = 0; i < size; ++i) {
    if (bytes[i] != kPaint) return 0;
  }
  return 1;
}

wr_router* new_router(void) {
  wr_router* router = NULL;
  CHECK_OK(wr_router_new(NULL, &router, NULL));
  return router;
}

wr_replica_id add_named(wr_router* router, const char* name, const char* pool) {
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id id = WR_NO_REPLICA_INIT;
  spec.name = text(name);
  spec.pool = text(pool);
  CHECK_OK(wr_router_add_replica(router, &spec, 1, &id, NULL));
  return id;
}

wr_router* new_fleet(uint32_t count, wr_replica_id* ids) {
  wr_router* router = new_router();
  uint32_t i;
  for (i = 0; i < count; ++i) {
    char name[32];
    wr_replica_id id;
    snprintf(name, sizeof name, "gpu-%u", (unsigned)i);
    id = add_named(router, name, "");
    if (ids != NULL) ids[i] = id;
  }
  return router;
}

void count_up(uint32_t* tokens, size_t count, uint32_t start) {
  size_t i;
  for (i = 0; i < count; ++i) tokens[i] = start + (uint32_t)i;
}

wr_request token_request(const uint32_t* tokens, size_t count) {
  wr_request request = WR_REQUEST_INIT;
  request.token_ids = tokens;
  request.token_count = count;
  return request;
}

int64_t cached_on(wr_router* router, wr_replica_id id, const uint32_t* tokens, size_t count, uint32_t tier) {
  wr_request request = token_request(tokens, count);
  wr_decision decision = WR_DECISION_INIT;
  request.pinned = id;
  CHECK_OK(wr_router_peek(router, &request, 1000000000, &decision, NULL));
  CHECK_EQ(decision.verdict, WR_VERDICT_ROUTED);
  return decision.cached_tokens[tier];
}

/* Room for a struct and what a newer header might put behind it, aligned for any of them. */
typedef union room {
  uint32_t struct_size;
  uint64_t words[kMost / 8];
  unsigned char bytes[kMost];
} room;

static const uint32_t kWrongSizes[] = {0, 1, 4, 65537, UINT32_MAX};
enum { kWrongCount = sizeof kWrongSizes / sizeof kWrongSizes[0] };

void check_input_sizes(const void* init, size_t size, size_t reserved_offset, wr_status good, sized_call call) {
  check_grown_input_sizes(init, size, size, reserved_offset, good, call);
}

void check_grown_input_sizes(const void* init, size_t first, size_t size, size_t reserved_offset, wr_status good,
                             sized_call call) {
  room r;
  size_t i;
  CHECK(size + kTail <= sizeof r.bytes);
  memset(&r, 0, sizeof r);
  memcpy(&r, init, size);
  CHECK_EQ(r.struct_size, size);
  CHECK_STATUS(call(&r), good);
  for (i = 0; i < kWrongCount; ++i) {
    r.struct_size = kWrongSizes[i];
    CHECK_STATUS(call(&r), WR_STATUS_INVALID_ARGUMENT);
  }
  r.struct_size = (uint32_t)first - 8;
  CHECK_STATUS(call(&r), WR_STATUS_INVALID_ARGUMENT);
  r.struct_size = (uint32_t)first - 1;
  CHECK_STATUS(call(&r), WR_STATUS_INVALID_ARGUMENT);
  r.struct_size = (uint32_t)first;
  CHECK_STATUS(call(&r), good);
  r.struct_size = (uint32_t)size + kTail;
  CHECK_STATUS(call(&r), good);
  r.bytes[size + kTail - 1] = 1;
  CHECK_STATUS(call(&r), WR_STATUS_UNSUPPORTED);
  r.struct_size = (uint32_t)size + kTail - 1; /* now it lies behind the end */
  CHECK_STATUS(call(&r), good);
  r.bytes[reserved_offset] = 1;
  CHECK_STATUS(call(&r), WR_STATUS_UNSUPPORTED);
  r.struct_size = (uint32_t)size;
  CHECK_STATUS(call(&r), WR_STATUS_UNSUPPORTED);
  r.bytes[reserved_offset] = 0;
  CHECK_STATUS(call(&r), good);
}

void check_output_sizes(const void* init, size_t size, int keeps_tail, filling_call call) {
  check_grown_output_sizes(init, size, size, keeps_tail, call);
}

void check_grown_output_sizes(const void* init, size_t first, size_t size, int keeps_tail, filling_call call) {
  room r, before;
  size_t i;
  CHECK(size + kTail <= sizeof r.bytes);
  CHECK_STATUS(call(NULL), WR_STATUS_INVALID_ARGUMENT);
  memset(&r, kPaint, sizeof r);
  memcpy(&r, init, size);
  for (i = 0; i <= kWrongCount; ++i) {
    r.struct_size = i < kWrongCount ? kWrongSizes[i] : (uint32_t)first - 1;
    before = r;
    CHECK_STATUS(call(&r), WR_STATUS_INVALID_ARGUMENT);
    CHECK(memcmp(&before, &r, sizeof r) == 0);
  }
  memset(&r, kPaint, sizeof r); /* an old caller */
  r.struct_size = (uint32_t)first;
  CHECK_OK(call(&r));
  CHECK_EQ(r.struct_size, first);
  CHECK(painted(r.bytes + first, sizeof r.bytes - first));
  memcpy(&r, init, size);
  r.struct_size = (uint32_t)size;
  CHECK_OK(call(&r));
  CHECK_EQ(r.struct_size, size);
  CHECK(painted(r.bytes + size, sizeof r.bytes - size));
  r.struct_size = (uint32_t)size + kTail;
  CHECK_OK(call(&r));
  CHECK_EQ(r.struct_size, size + kTail); /* it stays the caller's */
  for (i = size; i < size + kTail; ++i) CHECK_EQ(r.bytes[i], keeps_tail ? kPaint : 0);
  CHECK(painted(r.bytes + size + kTail, sizeof r.bytes - size - kTail));
}

char* check_two_calls(giving_call call, size_t* size) {
  size_t needed = 0, again = 0;
  wr_error err = WR_ERROR_INIT;
  char* buf;
  CHECK_STATUS(call(NULL, 0, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(call(NULL, 0, &needed, &err));
  CHECK(needed > 0);
  buf = malloc(needed + kTail);
  CHECK(buf != NULL);
  paint(buf, needed + kTail);
  CHECK_STATUS(call(buf, needed - 1, &again, &err), WR_STATUS_CAPACITY);
  CHECK_EQ(again, needed);
  CHECK_EQ(err.status, WR_STATUS_CAPACITY);
  CHECK(strlen(err.message) > 0);
  CHECK_STATUS(call(buf, 0, &again, NULL), WR_STATUS_CAPACITY);
  CHECK(painted(buf, needed + kTail));
  again = 0;
  CHECK_OK(call(buf, needed, &again, NULL));
  CHECK_EQ(again, needed);
  CHECK(painted(buf + needed, kTail));
  *size = needed;
  return buf;
}
