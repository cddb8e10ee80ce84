/* Several threads use one router at once: what is booked is released, whoever comes and goes meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "helpers.h"

enum { kThreads = 4, kTokens = 512 };
static wr_router* router;
static uint32_t tokens[kTokens];

static int64_t now_ns(void) {
  struct timespec t;
  CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void come_and_go(unsigned thread, unsigned round, int64_t now) {
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  wr_replica_id id = WR_NO_REPLICA_INIT;
  uint64_t ids[4];
  char name[32];
  size_t removed = 0, i;
  snprintf(name, sizeof name, "guest-%u", thread);
  spec.name = text(name);
  CHECK_OK(wr_router_add_replica(router, &spec, now, &id, NULL));
  for (i = 0; i < 4; ++i) ids[i] = (uint64_t)round * 8 + i + 1;
  stored.ids = ids;
  stored.count = 4;
  stored.token_ids = tokens;
  stored.token_count = 64;
  CHECK_OK(wr_router_blocks_stored(router, id, &stored, now, NULL));
  CHECK_OK(wr_router_signal(router, id, WR_SIGNAL_RUNNING, thread, now, NULL));
  CHECK_OK(wr_router_set_health(router, id, WR_HEALTH_DRAINING, text("leaving"), now, NULL));
  CHECK_OK(wr_router_blocks_removed(router, id, WR_TIER_DEVICE, ids, 2, now, &removed, NULL));
  CHECK_EQ(removed, 2);
  CHECK_OK(wr_router_remove_replica(router, id, now, NULL));
  CHECK_STATUS(wr_router_signal(router, id, WR_SIGNAL_RUNNING, 1, now, NULL), WR_STATUS_STALE);
}

static void* work(void* argument) {
  const unsigned thread = *(const unsigned*)argument;
  const int64_t end = now_ns() + 1000000000;
  unsigned round = 0;
  for (; now_ns() < end; ++round) {
    wr_request request = token_request(tokens, 16 + (round * 16 + thread * 64) % (kTokens - 16));
    wr_decision d[3] = {WR_DECISION_INIT, WR_DECISION_INIT, WR_DECISION_INIT};
    wr_usage usage = WR_USAGE_INIT;
    int64_t now = now_ns();
    int i;
    CHECK_OK(wr_router_peek(router, &request, now, &d[0], NULL));
    for (i = 0; i < 3; ++i) {
      CHECK_OK(wr_router_route(router, &request, now, &d[i], NULL));
      CHECK_EQ(d[i].verdict, WR_VERDICT_ROUTED);
    }
    if (round % 32 == 0) come_and_go(thread, round, now);
    if (round % 64 == 1) {
      size_t needed = 0;
      CHECK_OK(wr_router_prometheus(router, NULL, 0, &needed, NULL));
      CHECK_OK(wr_router_explain_json(router, &request, now, NULL, 0, &needed, NULL));
      CHECK_OK(wr_router_advance(router, now, NULL));
    }
    now = now_ns();
    usage.input_tokens = d[0].input_tokens;
    usage.cached_tokens = d[0].cached_tokens[0];
    CHECK_OK(wr_router_first_token(router, d[0].ticket, now));
    CHECK_OK(wr_router_finish(router, d[0].ticket, &usage, now));
    CHECK_OK(wr_router_fail(router, d[1].ticket, 1 + round % 6, now));
    CHECK_OK(wr_router_finish(router, d[2].ticket, NULL, now));
    CHECK_STATUS(wr_router_finish(router, d[2].ticket, NULL, now), WR_STATUS_STALE);
  }
  CHECK(round > 0);
  return NULL;
}

TEST(BooksAreZeroWhenFourThreadsHaveLeft) {
  pthread_t threads[kThreads];
  unsigned numbers[kThreads], i;
  wr_replica_id ids[3];
  wr_statistics s;
  wr_replica_statistics r;
  uint64_t ended = 0;
  count_up(tokens, kTokens, 1);
  router = new_fleet(3, ids);
  for (i = 0; i < kThreads; ++i) {
    numbers[i] = i;
    CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
  }
  for (i = 0; i < kThreads; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  s.struct_size = sizeof s;
  r.struct_size = sizeof r;
  CHECK_OK(wr_router_statistics(router, &s, NULL));
  CHECK_EQ(s.tickets_in_flight, 0);
  for (i = 0; i < WR_OUTCOME_SLOTS; ++i) ended += s.outcomes[i];
  CHECK_EQ(ended, s.verdicts[WR_VERDICT_ROUTED]);
  CHECK_EQ(s.late_calls, ended / 3);
  for (i = 0; i < 3; ++i) {
    CHECK_OK(wr_router_replica_statistics(router, ids[i], &r, NULL));
    CHECK_EQ(r.requests, 0);
    CHECK_EQ(r.pending_tokens, 0);
    CHECK_EQ(r.pending_ns, 0);
    CHECK_EQ(r.context_tokens, 0);
    CHECK_EQ(r.decoding, 0);
  }
  wr_router_free(router);
}

TESTS(CASE(BooksAreZeroWhenFourThreadsHaveLeft))
