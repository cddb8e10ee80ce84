/* 5 Replicas: members, health, signals, log. */
#include "helpers.h"

enum { kSecond = 1000000000 };
static const wr_replica_id kNobody = WR_NO_REPLICA_INIT;

static wr_router* shared_router;
static wr_replica_id shared_id;

static wr_status router_with(const void* options) {
  wr_router* router = NULL;
  const wr_status status = wr_router_new(options, &router, NULL);
  CHECK((router != NULL) == (status == WR_STATUS_OK));
  wr_router_free(router);
  return status;
}

TEST(RoutersAreMadeOfSoundSizesOnly) {
  wr_router_options options = WR_ROUTER_OPTIONS_INIT, bad;
  wr_router* router = NULL;
  wr_error err = WR_ERROR_INIT;
  options.max_replicas = 4;
  options.session_entries = options.shared_prefix_entries = options.placement_queue = 0; /* the least that works */
  check_input_sizes(&options, sizeof options, offsetof(wr_router_options, reserved), WR_STATUS_OK, router_with);
  bad = options;
  bad.abi_version = WR_ABI_VERSION + 1;
  CHECK_STATUS(wr_router_new(&bad, &router, &err), WR_STATUS_ABI_MISMATCH);
  CHECK(strstr(err.message, "ABI") != NULL);
  bad = options;
  bad.max_replicas = 0;
  CHECK_STATUS(router_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.max_replicas = 16385;
  CHECK_STATUS(router_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = options;
  bad.max_tickets = 0;
  CHECK_STATUS(router_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = options;
  bad.session_entries = UINT64_MAX; /* a -1: rounded up to a power of two this is no size at all */
  CHECK_STATUS(router_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = options;
  bad.shared_prefix_entries = UINT64_MAX;
  CHECK_STATUS(router_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = options;
  bad.placement_queue = UINT64_MAX;
  CHECK_STATUS(router_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_new(&options, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(router == NULL);
  wr_router_free(NULL);
}

TEST(AReplicaIsAddedFoundNamedAndRemoved) {
  wr_router* router = new_router();
  wr_label labels[2];
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id id = WR_NO_REPLICA_INIT, found = WR_NO_REPLICA_INIT, rank = WR_NO_REPLICA_INIT, list[4];
  size_t count = 0, needed = 0;
  char buf[64];
  labels[0].key = text("address");
  labels[0].value = text("10.0.0.1:8000");
  labels[1].key = text("zone");
  labels[1].value.data = NULL; /* an empty value is a value */
  labels[1].value.size = 0;
  spec.name = text("gpu-0");
  spec.labels = labels;
  spec.label_count = 2;
  CHECK_OK(wr_router_add_replica(router, &spec, kSecond, &id, NULL));
  spec.dp_rank = 3;
  CHECK_OK(wr_router_add_replica(router, &spec, kSecond, &rank, NULL));
  CHECK(id.slot != rank.slot);
  CHECK_STATUS(wr_router_add_replica(router, &spec, kSecond, &found, NULL), WR_STATUS_ALREADY_EXISTS);
  CHECK_OK(wr_router_find_replica(router, text("gpu-0"), 0, &found, NULL));
  CHECK(found.slot == id.slot && found.generation == id.generation);
  CHECK_OK(wr_router_find_replica(router, text("gpu-0"), 3, &found, NULL));
  CHECK(found.slot == rank.slot);
  CHECK_OK(wr_router_replicas(router, NULL, 0, &count, NULL));
  CHECK_EQ(count, 2);
  paint(list, sizeof list);
  count = 0;
  CHECK_STATUS(wr_router_replicas(router, list, 1, &count, NULL), WR_STATUS_CAPACITY);
  CHECK_EQ(count, 2);
  CHECK(painted(list, sizeof list));
  CHECK_OK(wr_router_replicas(router, list, 4, &count, NULL));
  CHECK_EQ(count, 2);
  CHECK(list[0].slot < list[1].slot);
  CHECK(painted(list + 2, 2 * sizeof list[0]));
  CHECK_OK(wr_router_replica_name(router, id, buf, sizeof buf, &needed, NULL));
  CHECK_TEXT(buf, "gpu-0");
  CHECK_EQ(needed, 6);
  CHECK_OK(wr_router_replica_label(router, id, text("address"), buf, sizeof buf, &needed, NULL));
  CHECK_TEXT(buf, "10.0.0.1:8000");
  CHECK_OK(wr_router_replica_label(router, id, text("zone"), buf, sizeof buf, &needed, NULL));
  CHECK_TEXT(buf, "");
  CHECK_EQ(needed, 1);
  CHECK_STATUS(wr_router_replica_label(router, id, text("rack"), buf, sizeof buf, &needed, NULL), WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_router_remove_replica(router, id, 2 * kSecond, NULL));
  CHECK_STATUS(wr_router_remove_replica(router, id, 2 * kSecond, NULL), WR_STATUS_STALE);
  CHECK_STATUS(wr_router_find_replica(router, text("gpu-0"), 0, &found, NULL), WR_STATUS_NOT_FOUND);
  wr_router_free(router);
}

static wr_status give_name(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_router_replica_name(shared_router, shared_id, buf, cap, needed, err);
}
static wr_status give_label(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_router_replica_label(shared_router, shared_id, text("zone"), buf, cap, needed, err);
}

TEST(NamesAndLabelsTakeTwoCalls) {
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_label label;
  char* got;
  size_t size = 0;
  label.key = text("zone");
  label.value = text("eu-3");
  spec.name = text("a rather longer name");
  spec.labels = &label;
  spec.label_count = 1;
  shared_router = new_router();
  CHECK_OK(wr_router_add_replica(shared_router, &spec, 1, &shared_id, NULL));
  got = check_two_calls(give_name, &size);
  CHECK_TEXT(got, "a rather longer name");
  CHECK_EQ(size, strlen(got) + 1);
  free(got);
  got = check_two_calls(give_label, &size);
  CHECK_TEXT(got, "eu-3");
  free(got);
  wr_router_free(shared_router);
}

static wr_status add_spec(const void* spec) {
  wr_replica_id id = WR_NO_REPLICA_INIT;
  const wr_status status = wr_router_add_replica(shared_router, spec, 1, &id, NULL);
  if (status == WR_STATUS_OK) CHECK_OK(wr_router_remove_replica(shared_router, id, 1, NULL));
  return status;
}
static wr_status update_spec(const void* spec) {
  return wr_router_update_replica(shared_router, shared_id, spec, 1, NULL);
}

TEST(AReplicaThatKeepsSlotsLosesASiblingsTail) {
  wr_router* router = new_router();
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id id = WR_NO_REPLICA_INIT;
  wr_request request = WR_REQUEST_INIT;
  wr_decision decision = WR_DECISION_INIT;
  uint32_t prompt[320];
  uint32_t i, turn;
  spec.name = text("llama");
  spec.cache_kind = WR_CACHE_SLOTS;
  spec.slots = 1;
  spec.slots_unified = 0;
  spec.slot_ram_tokens = 0;
  CHECK_OK(wr_router_add_replica(router, &spec, 1, &id, NULL));
  request.token_ids = prompt;
  request.token_count = 320;
  for (turn = 0; turn < 3; ++turn) {
    for (i = 0; i < 320; ++i) prompt[i] = i < 160 ? i : i + 1000 * (turn % 2 + 1);
    CHECK_OK(wr_router_route(router, &request, 1, &decision, NULL));
    CHECK_EQ(decision.cached_tokens[0], turn == 0 ? 0 : 160);
    wr_router_finish(router, decision.ticket, NULL, 1);
  }
  wr_router_free(router);
}

TEST(SpecsAreRefusedForWhateverIsWrongWithThem) {
  wr_replica_spec good = WR_REPLICA_SPEC_INIT, spec;
  wr_str adapters[2];
  wr_label label;
  wr_error err = WR_ERROR_INIT;
  wr_replica_id id = {7, 7};
  shared_router = new_router();
  good.name = text("gpu-0");
  CHECK_OK(wr_router_add_replica(shared_router, &good, 1, &shared_id, NULL));
  check_input_sizes(&good, sizeof good, offsetof(wr_replica_spec, reserved), WR_STATUS_OK, update_spec);
  check_input_sizes(&good, sizeof good, offsetof(wr_replica_spec, reserved), WR_STATUS_ALREADY_EXISTS, add_spec);
  good.name = text("gpu-1");
  check_input_sizes(&good, sizeof good, offsetof(wr_replica_spec, reserved), WR_STATUS_OK, add_spec);
  spec = good;
  spec.name.size = 0;
  spec.weight = -1;
  CHECK_STATUS(wr_router_add_replica(shared_router, &spec, 1, &id, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "name") && strstr(err.message, "weight"));
  spec = good;
  spec.role = 3;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_OUT_OF_RANGE);
  spec.role = 256; /* not the 0 of a byte that wrapped */
  CHECK_STATUS(add_spec(&spec), WR_STATUS_OUT_OF_RANGE);
  spec = good;
  spec.health = 3;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_OUT_OF_RANGE);
  spec = good;
  spec.cache_kind = 2;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_OUT_OF_RANGE);
  spec.cache_kind = WR_CACHE_PAGED;
  spec.slots = 0; /* as a header without slots leaves it */
  CHECK_STATUS(add_spec(&spec), WR_STATUS_OK);
  spec.cache_kind = WR_CACHE_SLOTS;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec.slots = 2;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_OK);
  spec.slot_ram_tokens = -1;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.capacity_tokens = -5;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.token_ps = -5;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.name = text("gpu\n1"); /* names go into logs, JSON and labels */
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec.name = text("gpu-\xC3");
  CHECK_STATUS(wr_router_add_replica(shared_router, &spec, 1, &id, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "UTF-8") && strchr(err.message, '\xC3') == NULL);
  spec = good;
  spec.pool = text("m\x7F");
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.ring_id = text("\xED\xA0\x80");
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(update_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.pool = text("mod\xC3\xA8le \"7B\"");
  CHECK_OK(add_spec(&spec));
  spec = good;
  spec.name = bad_text();
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.pool = bad_text();
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.ring_id = bad_text();
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.health_reason = bad_text();
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.adapter_count = 2;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  adapters[0] = text("a");
  adapters[1] = bad_text();
  spec.adapters = adapters;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  spec = good;
  spec.label_count = 1;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  label.key = text("k");
  label.value = bad_text();
  spec.labels = &label;
  CHECK_STATUS(add_spec(&spec), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_add_replica(NULL, &good, 1, &id, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_add_replica(shared_router, NULL, 1, &id, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_add_replica(shared_router, &good, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(id.slot == 7 && id.generation == 7);
  wr_router_free(shared_router);
}

TEST(TheTableHoldsNoMoreThanItsReplicas) {
  wr_router_options options = WR_ROUTER_OPTIONS_INIT;
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_router* router = NULL;
  wr_replica_id id = WR_NO_REPLICA_INIT;
  options.max_replicas = 1;
  CHECK_OK(wr_router_new(&options, &router, NULL));
  add_named(router, "gpu-0", "");
  spec.name = text("gpu-1");
  CHECK_STATUS(wr_router_add_replica(router, &spec, 1, &id, NULL), WR_STATUS_CAPACITY);
  CHECK_EQ(id.slot, WR_NO_SLOT);
  wr_router_free(router);
}

TEST(HandlesOfRemovedReplicasAreStaleEverywhere) {
  wr_router* router = new_router();
  const wr_replica_id old = add_named(router, "gpu-0", "");
  wr_replica_id now, ids[3];
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  wr_replica_statistics statistics, before;
  const uint64_t block = 5;
  size_t needed = 77, removed = 77, i;
  char buf[8];
  CHECK_OK(wr_router_remove_replica(router, old, 2, NULL));
  now = add_named(router, "gpu-0", "");
  CHECK_EQ(now.slot, old.slot); /* the slot is let again; the generation tells them apart */
  CHECK(now.generation != old.generation);
  spec.name = text("gpu-0");
  stored.ids = stored.blocks = &block;
  stored.count = 1;
  ids[0] = old;
  ids[1] = kNobody;
  ids[2].slot = 1024; /* just beyond the table */
  ids[2].generation = 1;
  paint(buf, sizeof buf);
  paint(&statistics, sizeof statistics);
  statistics.struct_size = sizeof statistics;
  before = statistics;
  for (i = 0; i < 3; ++i) {
    CHECK_STATUS(wr_router_remove_replica(router, ids[i], 3, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_update_replica(router, ids[i], &spec, 3, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_set_health(router, ids[i], WR_HEALTH_DOWN, text("x"), 3, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_signal(router, ids[i], WR_SIGNAL_RUNNING, 1, 3, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_signal(router, ids[i], WR_SIGNAL_BLOCK_COUNT, 1, 3, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_blocks_stored(router, ids[i], &stored, 3, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_blocks_removed(router, ids[i], 0, &block, 1, 3, &removed, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_clear_cache(router, ids[i], 3, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_replica_name(router, ids[i], buf, sizeof buf, &needed, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_replica_label(router, ids[i], text("k"), buf, sizeof buf, &needed, NULL), WR_STATUS_STALE);
    CHECK_STATUS(wr_router_replica_statistics(router, ids[i], &statistics, NULL), WR_STATUS_STALE);
  }
  CHECK(painted(buf, sizeof buf));
  CHECK(memcmp(&before, &statistics, sizeof before) == 0);
  CHECK_EQ(needed, 77);
  CHECK_EQ(removed, 77);
  CHECK_OK(wr_router_replica_name(router, now, buf, sizeof buf, &needed, NULL));
  wr_router_free(router);
}

TEST(EveryNullIsRefused) {
  wr_router* r = new_router();
  const wr_replica_id id = add_named(r, "gpu-0", "");
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  wr_replica_id out = {7, 7};
  size_t n = 77;
  char buf[16];
  spec.name = text("gpu-0");
  CHECK_STATUS(wr_router_remove_replica(NULL, id, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_update_replica(NULL, id, &spec, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_update_replica(r, id, NULL, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_set_health(NULL, id, 0, text(""), 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_set_health(r, id, 0, bad_text(), 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_set_health(r, id, 3, text(""), 1, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_router_replicas(NULL, &out, 1, &n, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_replicas(r, &out, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_find_replica(NULL, text("gpu-0"), 0, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_find_replica(r, bad_text(), 0, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_find_replica(r, text("gpu-0"), 0, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_replica_name(NULL, id, buf, sizeof buf, &n, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_replica_label(NULL, id, text("k"), buf, sizeof buf, &n, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_replica_label(r, id, bad_text(), buf, sizeof buf, &n, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_signal(NULL, id, 0, 1, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_blocks_stored(NULL, id, &stored, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_blocks_stored(r, id, NULL, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_blocks_removed(NULL, id, 0, NULL, 0, 1, &n, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_blocks_removed(r, id, 0, NULL, 1, 1, &n, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_blocks_removed(r, id, 4, NULL, 0, 1, &n, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_router_clear_cache(NULL, id, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(out.slot == 7 && out.generation == 7);
  CHECK_EQ(n, 77);
  wr_router_free(r);
}

TEST(SignalsAreChecked) {
  wr_router* router = new_router();
  const wr_replica_id id = add_named(router, "gpu-0", "");
  double zero = 0;
  uint32_t s;
  wr_replica_statistics statistics;
  for (s = WR_SIGNAL_RUNNING; s <= WR_SIGNAL_WAITING_TOKENS; ++s) {
    CHECK_OK(wr_router_signal(router, id, s, 0, 1, NULL));
    CHECK_OK(wr_router_signal(router, id, s, 1e300, 1, NULL));
    CHECK_STATUS(wr_router_signal(router, id, s, -1, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
    CHECK_STATUS(wr_router_signal(router, id, s, zero / zero, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
    CHECK_STATUS(wr_router_signal(router, id, s, 1 / zero, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  }
  CHECK_STATUS(wr_router_signal(router, id, 8, 1, 1, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_router_signal(router, id, 256, 1, 1, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_OK(wr_router_signal(router, id, WR_SIGNAL_RUNNING, 5, kSecond, NULL));
  CHECK_OK(wr_router_signal(router, id, WR_SIGNAL_WAITING, 2, kSecond, NULL));
  statistics.struct_size = sizeof statistics;
  CHECK_OK(wr_router_replica_statistics(router, id, &statistics, NULL));
  CHECK_EQ(statistics.foreign_requests, 7);
  CHECK_EQ(statistics.foreign_waiting, 2);
  CHECK_EQ(statistics.signals_at_ns, kSecond);
  CHECK_OK(wr_router_signal(router, id, WR_SIGNAL_WAITING_TOKENS, 4096, kSecond, NULL));
  CHECK_OK(wr_router_replica_statistics(router, id, &statistics, NULL));
  CHECK_EQ(statistics.foreign_tokens, 4096);
  wr_router_free(router);
}

TEST(UpdatesFillTheWholeSpecAnewAndKeepTheHealth) {
  wr_router* router = new_router();
  const wr_replica_id id = add_named(router, "gpu-0", "m");
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_statistics statistics;
  statistics.struct_size = sizeof statistics;
  CHECK_OK(wr_router_set_health(router, id, WR_HEALTH_DOWN, text("probe failed"), 1, NULL));
  CHECK_OK(wr_router_replica_statistics(router, id, &statistics, NULL));
  CHECK_EQ(statistics.health, WR_HEALTH_DOWN);
  spec.name = text("gpu-0");
  spec.pool = text("m");
  spec.health = WR_HEALTH_DRAINING;
  spec.weight = 2;
  CHECK_OK(wr_router_update_replica(router, id, &spec, 1, NULL));
  CHECK_OK(wr_router_replica_statistics(router, id, &statistics, NULL));
  CHECK_EQ(statistics.health, WR_HEALTH_DOWN); /* probes say so, not the configuration */
  spec.pool = text("other");
  CHECK_STATUS(wr_router_update_replica(router, id, &spec, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  spec.pool = text("m");
  spec.name = text("gpu-1");
  CHECK_STATUS(wr_router_update_replica(router, id, &spec, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_router_free(router);
}

/* What the log said, in a caller's own memory. */
typedef struct log_book {
  size_t lines;
  uint32_t levels[8];
  char last[256];
} log_book;
static void keep_line(void* user, uint32_t level, wr_str message) {
  log_book* book = user;
  CHECK(message.size < sizeof book->last);
  memcpy(book->last, message.data, message.size);
  book->last[message.size] = '\0';
  if (level < 8) ++book->levels[level];
  ++book->lines;
}

TEST(TheLogTellsOfMembersPoliciesAndHealth) {
  wr_router_options options = WR_ROUTER_OPTIONS_INIT;
  wr_router* router = NULL;
  wr_policy policy;
  log_book book;
  wr_replica_id id;
  memset(&book, 0, sizeof book);
  options.log = keep_line;
  options.log_user = &book;
  CHECK_OK(wr_router_new(&options, &router, NULL));
  id = add_named(router, "gpu-0", "");
  CHECK_EQ(book.lines, 1);
  CHECK_TEXT(book.last, "replica gpu-0 added");
  CHECK_OK(wr_router_set_health(router, id, WR_HEALTH_DOWN, text("probe failed"), 1, NULL));
  CHECK_TEXT(book.last, "replica gpu-0 is down: probe failed");
  CHECK_EQ(book.levels[WR_LOG_WARNING], 1);
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.version = 12;
  CHECK_OK(wr_router_set_policy(router, &policy, NULL));
  CHECK(strstr(book.last, "policy 12") != NULL);
  CHECK_EQ(book.levels[WR_LOG_INFO], 2);
  CHECK_OK(wr_router_remove_replica(router, id, 1, NULL));
  CHECK_TEXT(book.last, "replica gpu-0 removed");
  wr_router_free(router);
}

TESTS(CASE(RoutersAreMadeOfSoundSizesOnly), CASE(AReplicaIsAddedFoundNamedAndRemoved), CASE(NamesAndLabelsTakeTwoCalls),
      CASE(AReplicaThatKeepsSlotsLosesASiblingsTail), CASE(SpecsAreRefusedForWhateverIsWrongWithThem),
      CASE(TheTableHoldsNoMoreThanItsReplicas), CASE(HandlesOfRemovedReplicasAreStaleEverywhere),
      CASE(EveryNullIsRefused), CASE(SignalsAreChecked), CASE(UpdatesFillTheWholeSpecAnewAndKeepTheHealth),
      CASE(TheLogTellsOfMembersPoliciesAndHealth))
