/* 5 Replicas, the second half: what engines say of their caches; export and import. */
#include "helpers.h"

enum { kSecond = 1000000000 };

static wr_router* shared_router;
static wr_replica_id shared_id;

TEST(EventsByTokensAndByHashesSayTheSame) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  uint32_t tokens[64];
  uint64_t names[4] = {901, 902, 903, 904}, blocks[4], more = 905;
  size_t count = 0, removed = 0;
  wr_replica_statistics statistics;
  statistics.struct_size = sizeof statistics;
  count_up(tokens, 64, 1);
  CHECK_OK(wr_hash_token_blocks(tokens, 64, 16, WR_DYNAMO_HASH_SEED, blocks, 4, &count, NULL));
  stored.ids = names;
  stored.count = 2;
  stored.token_ids = tokens;
  stored.token_count = 32;
  CHECK_OK(wr_router_blocks_stored(router, ids[0], &stored, 1, NULL));
  stored.parent = &names[1];
  stored.ids = names + 2;
  stored.blocks = blocks + 2;
  stored.token_ids = NULL;
  stored.token_count = 0;
  CHECK_OK(wr_router_blocks_stored(router, ids[0], &stored, 1, NULL));
  CHECK_EQ(cached_on(router, ids[0], tokens, 64, 0), 48); /* the last token is always computed */
  stored.parent = NULL;
  stored.ids = names;
  stored.blocks = blocks;
  stored.count = 3;
  stored.tier = WR_TIER_HOST;
  CHECK_OK(wr_router_blocks_stored(router, ids[1], &stored, 1, NULL));
  CHECK_EQ(cached_on(router, ids[1], tokens, 64, WR_TIER_HOST), 48);
  CHECK_OK(wr_router_replica_statistics(router, ids[0], &statistics, NULL));
  CHECK_EQ(statistics.reported, 1);
  CHECK_OK(wr_router_blocks_removed(router, ids[0], WR_TIER_DEVICE, names + 1, 1, 2, &removed, NULL));
  CHECK_EQ(removed, 1);
  CHECK_EQ(cached_on(router, ids[0], tokens, 64, 0), 16);
  CHECK_OK(wr_router_blocks_removed(router, ids[0], WR_TIER_DEVICE, &more, 1, 2, NULL, NULL));
  CHECK_OK(wr_router_clear_cache(router, ids[0], 3, NULL));
  CHECK_EQ(cached_on(router, ids[0], tokens, 64, 0), 0);
  wr_router_free(router);
}

TEST(BlocksMayBeOnASecondTierWithoutBeingToldAgain) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  const uint64_t names[5] = {901, 902, 903, 904, 905};
  uint32_t tokens[64];
  size_t known = 77;
  count_up(tokens, 64, 1);
  stored.ids = names;
  stored.count = 4;
  stored.token_ids = tokens;
  stored.token_count = 64;
  CHECK_OK(wr_router_blocks_stored(router, ids[0], &stored, 1, NULL));
  CHECK_OK(wr_router_blocks_also_on(router, ids[0], WR_TIER_HOST, names, 5, 2, &known, NULL));
  CHECK_EQ(known, 4); /* the fifth was never named */
  CHECK_OK(wr_router_blocks_removed(router, ids[0], WR_TIER_DEVICE, names + 1, 3, 3, NULL, NULL));
  CHECK_EQ(cached_on(router, ids[0], tokens, 64, WR_TIER_DEVICE), 16);
  CHECK_EQ(cached_on(router, ids[0], tokens, 64, WR_TIER_HOST), 32);
  CHECK_OK(wr_router_blocks_also_on(router, ids[0], WR_TIER_DISK, NULL, 0, 4, NULL, NULL));
  known = 77;
  CHECK_STATUS(wr_router_blocks_also_on(NULL, ids[0], 0, names, 1, 4, &known, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_blocks_also_on(router, ids[0], 0, NULL, 1, 4, &known, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_blocks_also_on(router, ids[0], 4, names, 1, 4, &known, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_OK(wr_router_remove_replica(router, ids[0], 5, NULL));
  CHECK_STATUS(wr_router_blocks_also_on(router, ids[0], 0, names, 1, 6, &known, NULL), WR_STATUS_STALE);
  CHECK_EQ(known, 77);
  wr_router_free(router);
}

static wr_status store_it(const void* stored) {
  return wr_router_blocks_stored(shared_router, shared_id, stored, 1, NULL);
}

TEST(EventsThatDoNotAddUpStoreNothing) {
  wr_stored_blocks good = WR_STORED_BLOCKS_INIT, bad;
  const uint64_t names[2] = {1, 2}, blocks[2] = {11, 12}, unknown = 999;
  uint32_t tokens[32];
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id prefill = WR_NO_REPLICA_INIT;
  wr_error err = WR_ERROR_INIT;
  wr_pool_statistics pool;
  size_t removed = 77;
  pool.struct_size = sizeof pool;
  shared_router = new_fleet(1, &shared_id);
  count_up(tokens, 32, 1);
  bad = good;
  bad.ids = names;
  bad.count = 2;
  CHECK_STATUS(store_it(&bad), WR_STATUS_INVALID_ARGUMENT); /* neither hashes nor tokens */
  bad.token_ids = tokens;
  bad.token_count = 31;
  CHECK_STATUS(wr_router_blocks_stored(shared_router, shared_id, &bad, 1, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(strstr(err.message, "block_size") != NULL);
  bad.token_count = 16;
  CHECK_STATUS(store_it(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.token_ids = NULL;
  CHECK_STATUS(store_it(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.token_count = 0;
  bad.blocks = blocks;
  bad.ids = NULL;
  CHECK_STATUS(store_it(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.ids = names;
  bad.tier = 4;
  CHECK_STATUS(store_it(&bad), WR_STATUS_OUT_OF_RANGE);
  bad.tier = 256;
  CHECK_STATUS(store_it(&bad), WR_STATUS_OUT_OF_RANGE);
  bad.tier = 0;
  bad.adapter = bad_text();
  CHECK_STATUS(store_it(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.adapter.size = 0;
  bad.parent = &unknown;
  CHECK_STATUS(store_it(&bad), WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_router_pool_statistics(shared_router, text(""), &pool, NULL));
  CHECK_EQ(pool.blocks, 0);
  good.ids = names;
  good.blocks = blocks;
  good.count = 2;
  check_input_sizes(&good, sizeof good, offsetof(wr_stored_blocks, reserved), WR_STATUS_OK, store_it);
  good.count = 0;
  CHECK_OK(store_it(&good));
  spec.name = text("prefill");
  spec.role = WR_ROLE_PREFILL;
  CHECK_OK(wr_router_add_replica(shared_router, &spec, 1, &prefill, NULL));
  good.count = 2;
  CHECK_STATUS(wr_router_blocks_stored(shared_router, prefill, &good, 1, NULL), WR_STATUS_UNSUPPORTED);
  CHECK_STATUS(wr_router_blocks_removed(shared_router, prefill, 0, names, 2, 1, &removed, NULL), WR_STATUS_UNSUPPORTED);
  CHECK_EQ(removed, 77);
  wr_router_free(shared_router);
}

static const uint8_t kKey[WR_CACHE_KEY_BYTES] = {1, 2, 3, 4, 5};

static wr_router* warmed(const uint32_t* tokens, size_t count) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_request request = token_request(tokens, count);
  wr_decision decision = WR_DECISION_INIT;
  request.pinned = ids[1];
  CHECK_OK(wr_router_route(router, &request, kSecond, &decision, NULL));
  CHECK_OK(wr_router_finish(router, decision.ticket, NULL, 2 * (int64_t)kSecond));
  CHECK_OK(wr_router_advance(router, 2 * (int64_t)kSecond, NULL));
  return router;
}

static wr_status import_into(void* report) {
  uint8_t* bytes;
  size_t size = 0;
  wr_status status;
  CHECK_OK(wr_router_export_caches(shared_router, kKey, kSecond, NULL, 0, &size, NULL));
  size += 4096;
  bytes = malloc(size);
  CHECK(bytes != NULL);
  CHECK_OK(wr_router_export_caches(shared_router, kKey, kSecond, bytes, size, &size, NULL));
  status = wr_router_import_caches(shared_router, bytes, size, kKey, kSecond, 0, report, NULL);
  free(bytes);
  return report != NULL ? status : WR_STATUS_INVALID_ARGUMENT; /* NULL is fine here */
}

TEST(CachesGoThroughAFileToTheNextRouter) {
  uint32_t tokens[160];
  wr_router *first, *second = new_fleet(2, NULL);
  wr_cache_import_report report = WR_CACHE_IMPORT_REPORT_INIT;
  wr_replica_id id = WR_NO_REPLICA_INIT;
  wr_policy policy;
  uint8_t* bytes;
  size_t size = 0, used = 0;
  count_up(tokens, 160, 1);
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.residency_ttl_ns = 3600 * (int64_t)kSecond; /* so that `away_ns` matters */
  CHECK_OK(wr_router_set_policy(second, &policy, NULL));
  first = warmed(tokens, 160);
  CHECK_OK(wr_router_export_caches(first, kKey, kSecond, NULL, 0, &size, NULL));
  bytes = malloc(size + 4096);
  CHECK(bytes != NULL);
  paint(bytes, size + 4096);
  CHECK_STATUS(wr_router_export_caches(first, kKey, kSecond, bytes, 8, &used, NULL), WR_STATUS_CAPACITY);
  CHECK(used > 8);
  CHECK(painted(bytes, size + 4096));
  CHECK_OK(wr_router_export_caches(first, kKey, kSecond, bytes, size + 4096, &used, NULL));
  CHECK_OK(wr_router_import_caches(second, bytes, used, kKey, kSecond, 0, &report, NULL));
  CHECK_EQ(report.replicas_restored, 2);
  CHECK_EQ(report.replicas_unknown, 0);
  CHECK_EQ(report.blocks_offered, 10);
  CHECK_EQ(report.blocks_restored, 10);
  CHECK_OK(wr_router_find_replica(second, text("gpu-1"), 0, &id, NULL));
  CHECK_EQ(cached_on(second, id, tokens, 160, 0), 144);
  CHECK_OK(
      wr_router_import_caches(second, bytes, used, kKey, kSecond, INT64_MAX, NULL, NULL)); /* report NULL is fine */
  CHECK_OK(wr_router_import_caches(second, bytes, used, kKey, INT64_MIN, INT64_MAX, NULL, NULL));
  CHECK_OK(wr_router_import_caches(second, bytes, used, kKey, INT64_MAX, INT64_MIN, NULL, NULL));
  CHECK_OK(wr_router_export_caches(second, kKey, INT64_MIN, NULL, 0, &used, NULL));
  CHECK_OK(wr_router_export_caches(second, kKey, INT64_MAX, NULL, 0, &used, NULL));
  free(bytes);
  wr_router_free(first);
  wr_router_free(second);
}

TEST(ExportsOfOthersAndBrokenOnesChangeNothing) {
  uint32_t tokens[160];
  wr_router *first, *second = new_fleet(2, NULL);
  wr_cache_import_report report = WR_CACHE_IMPORT_REPORT_INIT;
  wr_cache_import_report untouched = WR_CACHE_IMPORT_REPORT_INIT;
  wr_pool_statistics pool;
  uint8_t other_key[WR_CACHE_KEY_BYTES] = {9}, bytes[65536];
  size_t size = 77, i;
  pool.struct_size = sizeof pool;
  count_up(tokens, 160, 1);
  first = warmed(tokens, 160);
  CHECK_STATUS(wr_router_export_caches(NULL, kKey, kSecond, bytes, sizeof bytes, &size, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_export_caches(first, NULL, kSecond, bytes, sizeof bytes, &size, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_export_caches(first, kKey, kSecond, bytes, sizeof bytes, NULL, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(size, 77);
  CHECK_OK(wr_router_export_caches(first, kKey, kSecond, bytes, sizeof bytes, &size, NULL));
  CHECK_STATUS(wr_router_import_caches(NULL, bytes, size, kKey, 1, 0, &report, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_import_caches(second, NULL, size, kKey, 1, 0, &report, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_import_caches(second, bytes, size, NULL, 1, 0, &report, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_import_caches(second, bytes, size, other_key, 1, 0, &report, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_import_caches(second, NULL, 0, kKey, 1, 0, &report, NULL), WR_STATUS_MALFORMED);
  for (i = 0; i < size; i += size / 7) {
    CHECK_STATUS(wr_router_import_caches(second, bytes, i, kKey, 1, 0, &report, NULL), WR_STATUS_MALFORMED);
  }
  bytes[size / 2] ^= 1;
  CHECK_STATUS(wr_router_import_caches(second, bytes, size, kKey, 1, 0, &report, NULL), WR_STATUS_MALFORMED);
  CHECK(memcmp(&report, &untouched, sizeof report) == 0);
  CHECK_OK(wr_router_pool_statistics(second, text(""), &pool, NULL));
  CHECK_EQ(pool.blocks, 0);
  shared_router = first;
  check_output_sizes(&untouched, sizeof untouched, 1, import_into);
  wr_router_free(first);
  wr_router_free(second);
}

TEST(AStoreThatAllReplicasShareIsAllOfThePoolsUntilItIsCleared) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  wr_pool_statistics pool = WR_POOL_STATISTICS_INIT;
  const uint64_t names[] = {900, 901};
  uint32_t tokens[33];
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  count_up(tokens, 33, 1);
  stored.tier = WR_TIER_SHARED;
  stored.ids = names;
  stored.count = 2;
  stored.token_ids = tokens;
  stored.token_count = 32;
  CHECK_OK(wr_router_blocks_stored(router, ids[0], &stored, 1, NULL));
  request = token_request(tokens, 33);
  request.pinned = ids[1]; /* the other one can load them, too */
  CHECK_OK(wr_router_peek(router, &request, 1, &d, NULL));
  CHECK_EQ(d.cached_tokens[WR_TIER_DEVICE], 0);
  CHECK_EQ(d.shared_tokens, 32);
  CHECK_OK(wr_router_pool_statistics(router, text(""), &pool, NULL));
  CHECK_EQ(pool.shared_blocks, 2);
  CHECK_OK(wr_router_clear_shared_store(router, text(""), NULL));
  CHECK_OK(wr_router_peek(router, &request, 1, &d, NULL));
  CHECK_EQ(d.shared_tokens, 0);
  CHECK_STATUS(wr_router_clear_shared_store(router, text("no such pool"), NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_router_clear_shared_store(router, bad_text(), NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_router_clear_shared_store(NULL, text(""), NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_router_free(router);
}

TESTS(CASE(AStoreThatAllReplicasShareIsAllOfThePoolsUntilItIsCleared), CASE(EventsByTokensAndByHashesSayTheSame),
      CASE(BlocksMayBeOnASecondTierWithoutBeingToldAgain), CASE(EventsThatDoNotAddUpStoreNothing),
      CASE(CachesGoThroughAFileToTheNextRouter), CASE(ExportsOfOthersAndBrokenOnesChangeNothing))
