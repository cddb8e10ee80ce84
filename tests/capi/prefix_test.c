/* 2 Prefix: block hashes; the index by itself. Golden hashes: tests/data/hash_vectors.jsonl, by line. */
#include "helpers.h"

/* As `tokens_gen` of the vectors: start, start + step, ... modulo mod. */
static void generate(uint32_t* tokens, size_t count, uint32_t start, uint32_t step, uint32_t mod) {
  size_t i;
  for (i = 0; i < count; ++i) tokens[i] = (uint32_t)((start + (uint64_t)i * step) % mod);
}

TEST(HashesTokenBlocksAsDynamoDoes) {
  static const uint64_t blocks[] = {UINT64_C(3469480487184040956), UINT64_C(11275218660146996244)}; /* line 6 */
  static const uint64_t sequence[] = {UINT64_C(3469480487184040956), UINT64_C(7027976490222126096)};
  uint32_t tokens[47];
  uint64_t out[4], chain[2];
  size_t count = 99;
  generate(tokens, 47, 21, 104729, 151936);
  paint(out, sizeof out);
  CHECK_OK(wr_hash_token_blocks(tokens, 47, 16, WR_DYNAMO_HASH_SEED, out, 4, &count, NULL));
  CHECK_EQ(count, 2);
  CHECK(memcmp(out, blocks, sizeof blocks) == 0);
  CHECK(painted(out + 2, 2 * sizeof out[0])); /* the tail of 15 has no hash */
  CHECK_OK(wr_sequence_hashes(out, 2, chain, NULL));
  CHECK(memcmp(chain, sequence, sizeof sequence) == 0);
  CHECK_OK(wr_hash_token_blocks(tokens, 47, 16, WR_DYNAMO_HASH_SEED, out, 1, &count, NULL));
  CHECK_EQ(count, 1);
  CHECK_OK(wr_hash_token_blocks(tokens, 47, 16, WR_DYNAMO_HASH_SEED, NULL, 0, &count, NULL));
  CHECK_EQ(count, 0);
  CHECK_OK(wr_hash_token_blocks(NULL, 0, 16, WR_DYNAMO_HASH_SEED, out, 4, &count, NULL));
  CHECK_EQ(count, 0);
}

TEST(SeedsTellAdaptersSaltsTenantsAndTextApart) {
  static const uint64_t with_both[] = {UINT64_C(16436163075256026839), UINT64_C(14831843044873190083)}; /* line 39 */
  static const uint64_t with_nul[] = {UINT64_C(17547711766231753184), UINT64_C(8763794683422446266)};   /* line 54 */
  wr_hash_space space = WR_HASH_SPACE_INIT;
  uint32_t tokens[32];
  uint64_t seed = 0, out[2], seeds[5];
  size_t count = 0, i, j;
  CHECK_OK(wr_block_seed(&space, &seeds[0], NULL));
  CHECK(seeds[0] == WR_DYNAMO_HASH_SEED);
  space.adapter = text("adapter-7");
  space.cache_salt = text("tenant-eu-3");
  CHECK_OK(wr_block_seed(&space, &seed, NULL));
  generate(tokens, 8, 11, 13, 50000);
  CHECK_OK(wr_hash_token_blocks(tokens, 8, 4, seed, out, 2, &count, NULL));
  CHECK_EQ(count, 2);
  CHECK(memcmp(out, with_both, sizeof out) == 0);
  space.adapter.data = "a\0b"; /* strings have sizes: a NUL is a byte */
  space.adapter.size = 3;
  space.cache_salt.size = 0;
  CHECK_OK(wr_block_seed(&space, &seed, NULL));
  generate(tokens, 32, 11, 13, 50000);
  CHECK_OK(wr_hash_token_blocks(tokens, 32, 16, seed, out, 2, &count, NULL));
  CHECK(memcmp(out, with_nul, sizeof out) == 0);
  for (i = 1; i < 5; ++i) {
    wr_hash_space one = WR_HASH_SPACE_INIT;
    if (i == 1) one.adapter = text("x");
    if (i == 2) one.cache_salt = text("x");
    if (i == 3) one.isolation_key = text("x");
    if (i == 4) one.text = 1;
    CHECK_OK(wr_block_seed(&one, &seeds[i], NULL));
    for (j = 0; j < i; ++j) CHECK(seeds[j] != seeds[i]);
  }
}

TEST(HashesEagleAndMultimodalBlocksAsDynamoDoes) {
  static const uint64_t eagle[] = {UINT64_C(18293116204810239302), UINT64_C(15659032618206791868),
                                   UINT64_C(1858408156746318153)}; /* line 67 */
  static const uint64_t image[] = {UINT64_C(15207512089340001072), UINT64_C(16777012769546811212),
                                   UINT64_C(483935686894639516)}; /* line 55 */
  static const uint64_t both[] = {UINT64_C(1914873892905420881), UINT64_C(11676873984128492152),
                                  UINT64_C(8175084615354468756)}; /* line 69 */
  const uint64_t object = UINT64_C(3735928559), second = 77;
  const size_t first_block[] = {1}, second_block[] = {0, 1}, none[] = {0, 0, 0, 0, 0}, falling[] = {1, 0};
  uint32_t tokens[49], few[13];
  uint64_t out[8], plain[8];
  size_t count = 0;
  generate(tokens, 49, 3, 5, 32000);
  CHECK_OK(wr_hash_eagle_blocks(tokens, 49, 16, WR_DYNAMO_HASH_SEED, out, 8, &count, NULL));
  CHECK_EQ(count, 3);
  CHECK(memcmp(out, eagle, sizeof eagle) == 0);
  CHECK_OK(wr_hash_eagle_blocks(tokens, 48, 16, WR_DYNAMO_HASH_SEED, out, 8, &count, NULL)); /* line 66 */
  CHECK_EQ(count, 2);
  count_up(few, 13, 1);
  CHECK_OK(
      wr_hash_multimodal_blocks(few, 12, 4, WR_DYNAMO_HASH_SEED, &object, first_block, 1, 0, out, 8, &count, NULL));
  CHECK_EQ(count, 3);
  CHECK(memcmp(out, image, sizeof image) == 0);
  CHECK_OK(
      wr_hash_multimodal_blocks(few, 13, 4, WR_DYNAMO_HASH_SEED, &second, second_block, 2, 1, out, 8, &count, NULL));
  CHECK_EQ(count, 3);
  CHECK(memcmp(out, both, sizeof both) == 0);
  /* No objects at all, and more blocks named than there are. */
  CHECK_OK(wr_hash_token_blocks(few, 12, 4, WR_DYNAMO_HASH_SEED, plain, 8, &count, NULL));
  CHECK_OK(wr_hash_multimodal_blocks(few, 12, 4, WR_DYNAMO_HASH_SEED, NULL, NULL, 0, 0, out, 8, &count, NULL));
  CHECK(memcmp(out, plain, 3 * sizeof out[0]) == 0);
  CHECK_OK(wr_hash_multimodal_blocks(few, 12, 4, WR_DYNAMO_HASH_SEED, NULL, none, 5, 0, out, 8, &count, NULL));
  CHECK(memcmp(out, plain, 3 * sizeof out[0]) == 0);
  paint(out, sizeof out);
  count = 77;
  CHECK_STATUS(wr_hash_multimodal_blocks(few, 12, 4, 0, &object, falling, 2, 0, out, 8, &count, NULL),
               WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_hash_multimodal_blocks(few, 12, 4, 0, NULL, first_block, 1, 0, out, 8, &count, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_multimodal_blocks(few, 12, 4, 0, &object, NULL, 1, 0, out, 8, &count, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_multimodal_blocks(few, 12, 513, 0, &object, first_block, 1, 0, out, 8, &count, NULL),
               WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_hash_multimodal_blocks(NULL, 12, 4, 0, &object, first_block, 1, 0, out, 8, &count, NULL),
               WR_STATUS_INVALID_ARGUMENT);
  CHECK(painted(out, sizeof out));
  CHECK_EQ(count, 77);
}

TEST(HashesWholeBlocksOfText) {
  char prompt[200];
  wr_hash_space space = WR_HASH_SPACE_INIT;
  wr_str s;
  uint64_t seed = 0, out[4], other[4];
  size_t count = 0;
  memset(prompt, 'p', sizeof prompt);
  space.text = 1;
  CHECK_OK(wr_block_seed(&space, &seed, NULL));
  s.data = prompt;
  s.size = sizeof prompt;
  CHECK_OK(wr_hash_text_blocks(s, seed, out, 4, &count, NULL));
  CHECK_EQ(count, 200 / WR_TEXT_BLOCK_BYTES);
  CHECK(out[0] == out[1] && out[1] == out[2]);
  prompt[199] = 'q'; /* in the tail, which has no hash */
  prompt[130] = 'q'; /* in block 2 */
  CHECK_OK(wr_hash_text_blocks(s, seed, other, 4, &count, NULL));
  CHECK(other[0] == out[0] && other[1] == out[1] && other[2] != out[2]);
  CHECK_OK(wr_hash_text_blocks(s, seed, other, 1, &count, NULL));
  CHECK_EQ(count, 1);
  CHECK_STATUS(wr_hash_text_blocks(bad_text(), seed, out, 4, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_text_blocks(s, seed, NULL, 4, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_text_blocks(s, seed, out, 4, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
}

TEST(HashFunctionsRefuseWhatCannotBeReadAndTouchNothing) {
  uint32_t tokens[8] = {0};
  uint64_t out[2], seed = 7;
  size_t count = 77;
  wr_hash_space space = WR_HASH_SPACE_INIT;
  wr_error err = WR_ERROR_INIT;
  paint(out, sizeof out);
  CHECK_STATUS(wr_hash_token_blocks(NULL, 8, 4, 0, out, 2, &count, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK(strlen(err.message) > 0);
  CHECK_STATUS(wr_hash_token_blocks(tokens, 8, 4, 0, NULL, 2, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_token_blocks(tokens, 8, 4, 0, out, 2, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_token_blocks(tokens, 8, 0, 0, out, 2, &count, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_hash_token_blocks(tokens, 8, 513, 0, out, 2, &count, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_hash_token_blocks(tokens, 8, UINT32_MAX, 0, out, 2, &count, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_hash_eagle_blocks(NULL, 8, 4, 0, out, 2, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_eagle_blocks(tokens, 8, 4, 0, out, 2, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_hash_eagle_blocks(tokens, 8, 0, 0, out, 2, &count, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_sequence_hashes(NULL, 2, out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_sequence_hashes(out, 2, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_sequence_hashes(NULL, 0, NULL, NULL));
  CHECK_STATUS(wr_block_seed(NULL, &seed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_block_seed(&space, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  space.isolation_key = bad_text();
  CHECK_STATUS(wr_block_seed(&space, &seed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(painted(out, sizeof out));
  CHECK_EQ(count, 77);
  CHECK_EQ(seed, 7);
}

static wr_status seed_of(const void* space) {
  uint64_t seed = 0;
  return wr_block_seed(space, &seed, NULL);
}

static wr_status index_of(const void* options) {
  wr_index* index = NULL;
  const wr_status status = wr_index_new(options, &index, NULL);
  CHECK((index != NULL) == (status == WR_STATUS_OK));
  wr_index_free(index);
  return status;
}

TEST(HashSpacesAndIndexOptionsOfEverySizeGetWhatTheyDeserve) {
  const wr_hash_space space = WR_HASH_SPACE_INIT;
  const wr_index_options options = WR_INDEX_OPTIONS_INIT;
  check_input_sizes(&space, sizeof space, offsetof(wr_hash_space, reserved), WR_STATUS_OK, seed_of);
  check_input_sizes(&options, sizeof options, offsetof(wr_index_options, reserved), WR_STATUS_OK, index_of);
  check_input_sizes(&options, sizeof options, offsetof(wr_index_options, reserved0), WR_STATUS_OK, index_of);
}

static const wr_replica_id kFirst = {3, 1}, kSecond = {9, 1};

static wr_index* new_index(void) {
  wr_index* index = NULL;
  CHECK_OK(wr_index_new(NULL, &index, NULL));
  return index;
}

/* How many leading blocks a slot holds. */
static uint32_t depth_of(const wr_index* index, const uint64_t* path, size_t count, uint32_t tier, uint32_t slot) {
  wr_match* match = NULL;
  const uint32_t* depths = NULL;
  size_t slots = 0;
  uint32_t depth;
  CHECK_OK(wr_match_new(&match, NULL));
  CHECK_OK(wr_index_match(index, path, count, match, NULL));
  CHECK_OK(wr_match_depths(match, tier, &depths, &slots, NULL));
  depth = slot < slots ? depths[slot] : 0;
  wr_match_free(match);
  return depth;
}

TEST(IndexMatchesLeadingBlocksPerReplicaAndTier) {
  const uint64_t path[] = {11, 22, 33, 44, 55}, fork[] = {11, 22, 77};
  wr_index* index = new_index();
  wr_index_statistics statistics = WR_INDEX_STATISTICS_INIT;
  size_t removed = 99;
  CHECK_OK(wr_index_store(index, kFirst, WR_TIER_DEVICE, path, 5, 0, NULL));
  CHECK_OK(wr_index_store(index, kSecond, WR_TIER_DEVICE, path, 2, 0, NULL));
  CHECK_OK(wr_index_store(index, kSecond, WR_TIER_DISK, path, 4, 2, NULL));
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_DEVICE, 3), 5);
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_DEVICE, 9), 2);
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_HOST, 9), 2);
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_DISK, 9), 4);
  CHECK_EQ(depth_of(index, fork, 3, WR_TIER_DISK, 3), 2);
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_DEVICE, 4), 0);
  CHECK_OK(wr_index_read_statistics(index, &statistics, NULL));
  CHECK_EQ(statistics.blocks, 5);
  CHECK_EQ(statistics.memberships, 5 + 2 + 2);
  CHECK_EQ(statistics.max_bytes, 1073741824);
  CHECK(statistics.bytes > 0 && statistics.nodes > 0);
  CHECK_OK(wr_index_remove(index, kFirst, WR_TIER_DEVICE, path, 5, 3, &removed, NULL));
  CHECK_EQ(removed, 2);
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_DEVICE, 3), 3);
  CHECK_OK(wr_index_remove(index, kFirst, WR_TIER_DEVICE, path, 5, 3, NULL, NULL));
  CHECK_OK(wr_index_clear(index, kFirst, NULL));
  CHECK_OK(wr_index_advance(index, 1000, NULL));
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_DEVICE, 3), 0);
  CHECK_EQ(depth_of(index, path, 5, WR_TIER_DISK, 9), 4);
  CHECK_OK(wr_index_store(index, kFirst, WR_TIER_DEVICE, NULL, 0, 0, NULL));
  wr_index_free(index);
}

TEST(IndexTakesTheEnginesOwnNames) {
  const uint64_t blocks[] = {11, 22, 33}, more[] = {44}, path[] = {11, 22, 33, 44};
  const uint64_t ids[] = {901, 902, 903}, more_ids[] = {904}, unknown = 555;
  const uint64_t gone[] = {904, 12345, 902};
  wr_index* index = new_index();
  size_t removed = 0;
  CHECK_OK(wr_index_store_event(index, kFirst, WR_TIER_DEVICE, NULL, ids, blocks, 3, NULL));
  CHECK_OK(wr_index_store_event(index, kFirst, WR_TIER_DEVICE, &ids[2], more_ids, more, 1, NULL));
  CHECK_EQ(depth_of(index, path, 4, WR_TIER_DEVICE, 3), 4);
  CHECK_STATUS(wr_index_store_event(index, kFirst, WR_TIER_DEVICE, &unknown, more_ids, more, 1, NULL),
               WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_index_remove_event(index, kFirst, WR_TIER_DEVICE, gone, 3, &removed, NULL));
  CHECK_EQ(removed, 2);
  CHECK_EQ(depth_of(index, path, 4, WR_TIER_DEVICE, 3), 1);
  CHECK_OK(wr_index_remove_event(index, kFirst, WR_TIER_DEVICE, gone, 3, NULL, NULL));
  CHECK_OK(wr_index_remove_event(index, kFirst, WR_TIER_DEVICE, NULL, 0, &removed, NULL));
  CHECK_EQ(removed, 0);
  wr_index_free(index);
}

TEST(IndexBelievesThatNamedBlocksAreOnAnotherTierToo) {
  const uint64_t blocks[] = {11, 22, 33}, ids[] = {901, 902, 903}, moved[] = {901, 555, 902};
  wr_index* index = new_index();
  size_t known = 77;
  CHECK_OK(wr_index_store_event(index, kFirst, WR_TIER_DEVICE, NULL, ids, blocks, 3, NULL));
  CHECK_OK(wr_index_hold_event(index, kFirst, WR_TIER_HOST, moved, 3, &known, NULL));
  CHECK_EQ(known, 2);
  CHECK_OK(wr_index_remove_event(index, kFirst, WR_TIER_DEVICE, ids, 3, NULL, NULL));
  CHECK_EQ(depth_of(index, blocks, 3, WR_TIER_DEVICE, 3), 0);
  CHECK_EQ(depth_of(index, blocks, 3, WR_TIER_HOST, 3), 2);
  CHECK_OK(wr_index_hold_event(index, kFirst, WR_TIER_HOST, NULL, 0, NULL, NULL));
  known = 77;
  CHECK_STATUS(wr_index_hold_event(index, kFirst, WR_TIER_SHARED, ids, 3, &known, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_index_hold_event(index, kFirst, 0, NULL, 3, &known, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_hold_event(NULL, kFirst, 0, ids, 3, &known, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(known, 77);
  wr_index_free(index);
}

TEST(IndexRefusesStaleGenerationsSlotsTiersAndHalfArguments) {
  const uint64_t path[] = {11, 22, 33};
  const wr_replica_id newer = {3, 2}, beyond = {1024, 1}, nobody = WR_NO_REPLICA_INIT;
  wr_index* index = new_index();
  size_t removed = 77;
  CHECK_OK(wr_index_store(index, kFirst, WR_TIER_DEVICE, path, 3, 0, NULL));
  CHECK_OK(wr_index_store(index, newer, WR_TIER_DEVICE, path, 1, 0, NULL)); /* clears the older tenant */
  CHECK_EQ(depth_of(index, path, 3, WR_TIER_DEVICE, 3), 1);
  CHECK_STATUS(wr_index_store(index, kFirst, WR_TIER_DEVICE, path, 3, 0, NULL), WR_STATUS_STALE);
  CHECK_STATUS(wr_index_store_event(index, kFirst, WR_TIER_DEVICE, NULL, path, path, 3, NULL), WR_STATUS_STALE);
  CHECK_OK(wr_index_remove(index, kFirst, WR_TIER_DEVICE, path, 3, 0, &removed, NULL));
  CHECK_EQ(removed, 0);
  CHECK_OK(wr_index_clear(index, kFirst, NULL)); /* an older generation clears nothing */
  CHECK_EQ(depth_of(index, path, 3, WR_TIER_DEVICE, 3), 1);
  CHECK_STATUS(wr_index_store(index, beyond, WR_TIER_DEVICE, path, 3, 0, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_index_store(index, nobody, WR_TIER_DEVICE, path, 3, 0, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_OK(wr_index_clear(index, nobody, NULL));
  CHECK_STATUS(wr_index_store(index, newer, 3, path, 3, 0, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_index_store(index, newer, WR_TIER_DEVICE, path, 3, 4, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_store(index, newer, WR_TIER_DEVICE, NULL, 3, 0, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_store(NULL, newer, WR_TIER_DEVICE, path, 3, 0, NULL), WR_STATUS_INVALID_ARGUMENT);
  removed = 77;
  CHECK_STATUS(wr_index_remove(index, newer, 3, path, 3, 0, &removed, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_index_remove(index, newer, 0, path, 3, 4, &removed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_remove(index, newer, 0, NULL, 3, 0, &removed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_remove(NULL, newer, 0, path, 3, 0, &removed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_store_event(index, newer, 3, NULL, path, path, 3, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_index_store_event(index, newer, 0, NULL, NULL, path, 3, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_store_event(index, newer, 0, NULL, path, NULL, 3, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_store_event(NULL, newer, 0, NULL, path, path, 3, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_remove_event(index, newer, 3, path, 3, &removed, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_index_remove_event(index, newer, 0, NULL, 3, &removed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_remove_event(NULL, newer, 0, path, 3, &removed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(removed, 77);
  CHECK_STATUS(wr_index_clear(NULL, newer, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_advance(NULL, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(depth_of(index, path, 3, WR_TIER_DEVICE, 3), 1);
  wr_index_free(index);
}

TEST(IndexOptionsAreChecked) {
  wr_index_options options = WR_INDEX_OPTIONS_INIT;
  wr_index* index = NULL;
  wr_error err = WR_ERROR_INIT;
  const uint64_t path[] = {1, 2, 3};
  const wr_replica_id last = {65503, 1};
  options.max_replicas = 0;
  CHECK_STATUS(wr_index_new(&options, &index, NULL), WR_STATUS_INVALID_ARGUMENT);
  options.max_replicas = 65505;
  CHECK_STATUS(wr_index_new(&options, &index, NULL), WR_STATUS_INVALID_ARGUMENT);
  options.max_replicas = 65504;
  options.abi_version = WR_ABI_VERSION + 1;
  CHECK_STATUS(wr_index_new(&options, &index, &err), WR_STATUS_ABI_MISMATCH);
  CHECK(strstr(err.message, "ABI") != NULL);
  CHECK_STATUS(wr_index_new(&options, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(index == NULL);
  options.abi_version = WR_ABI_VERSION;
  CHECK_OK(wr_index_new(&options, &index, NULL));
  CHECK_OK(wr_index_store(index, last, WR_TIER_DEVICE, path, 3, 0, NULL));
  CHECK_EQ(depth_of(index, path, 3, WR_TIER_DEVICE, 65503), 3);
  wr_index_free(index);
  options.max_replicas = 8;
  options.max_bytes = 0; /* a cap that leaves no room at all */
  CHECK_OK(wr_index_new(&options, &index, NULL));
  CHECK_STATUS(wr_index_store(index, kFirst, WR_TIER_DEVICE, path, 3, 0, &err), WR_STATUS_CAPACITY);
  wr_index_free(index);
  wr_index_free(NULL);
}

TEST(OneMatchServesIndexesOfDifferentSizes) {
  wr_index_options small = WR_INDEX_OPTIONS_INIT;
  wr_index *little = NULL, *large = new_index();
  wr_match* match = NULL;
  const uint64_t path[] = {1, 2, 3};
  const wr_replica_id far = {1000, 1};
  const uint32_t* depths = NULL;
  size_t slots = 0, i, round;
  small.max_replicas = 4;
  CHECK_OK(wr_index_new(&small, &little, NULL));
  CHECK_OK(wr_match_new(&match, NULL));
  CHECK_OK(wr_match_depths(match, WR_TIER_DEVICE, &depths, &slots, NULL)); /* of no look-up yet */
  CHECK_EQ(slots, 0);
  CHECK_OK(wr_index_store(little, kFirst, WR_TIER_HOST, path, 2, 0, NULL));
  CHECK_OK(wr_index_store(large, far, WR_TIER_DEVICE, path, 3, 0, NULL));
  for (round = 0; round < 4; ++round) {
    CHECK_OK(wr_index_match(round % 2 ? little : large, path, 3, match, NULL));
    CHECK_OK(wr_match_depths(match, WR_TIER_DISK, &depths, &slots, NULL));
    for (i = 0; i < slots; ++i) CHECK_EQ(depths[i], round % 2 ? (i == 3 ? 2 : 0) : (i == 1000 ? 3 : 0));
    CHECK_EQ(slots > 1000, round % 2 == 0);
  }
  CHECK_OK(wr_index_match(large, NULL, 0, match, NULL));
  wr_match_free(match);
  wr_match_free(NULL);
  wr_index_free(large);
  wr_index_free(little);
}

static wr_index* shared_index;
static wr_status read_statistics(void* out) { return wr_index_read_statistics(shared_index, out, NULL); }

TEST(MatchesAndStatisticsRefuseNullAndTouchNothing) {
  const uint64_t path[] = {1};
  const uint32_t somewhere = 0;
  const uint32_t* depths = &somewhere;
  size_t slots = 77;
  wr_match* match = NULL;
  const wr_index_statistics statistics = WR_INDEX_STATISTICS_INIT;
  wr_index_statistics out = WR_INDEX_STATISTICS_INIT;
  shared_index = new_index();
  CHECK_OK(wr_match_new(&match, NULL));
  CHECK_STATUS(wr_match_new(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_match(NULL, path, 1, match, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_match(shared_index, NULL, 1, match, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_index_match(shared_index, path, 1, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_match_depths(NULL, 0, &depths, &slots, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_match_depths(match, 0, NULL, &slots, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_match_depths(match, 0, &depths, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_match_depths(match, 3, &depths, &slots, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK(depths == &somewhere);
  CHECK_EQ(slots, 77);
  CHECK_STATUS(wr_index_read_statistics(NULL, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  check_output_sizes(&statistics, sizeof statistics, 1, read_statistics);
  wr_match_free(match);
  wr_index_free(shared_index);
}

TESTS(CASE(HashesTokenBlocksAsDynamoDoes), CASE(SeedsTellAdaptersSaltsTenantsAndTextApart),
      CASE(HashesEagleAndMultimodalBlocksAsDynamoDoes), CASE(HashesWholeBlocksOfText),
      CASE(HashFunctionsRefuseWhatCannotBeReadAndTouchNothing),
      CASE(HashSpacesAndIndexOptionsOfEverySizeGetWhatTheyDeserve), CASE(IndexMatchesLeadingBlocksPerReplicaAndTier),
      CASE(IndexTakesTheEnginesOwnNames), CASE(IndexBelievesThatNamedBlocksAreOnAnotherTierToo),
      CASE(IndexRefusesStaleGenerationsSlotsTiersAndHalfArguments), CASE(IndexOptionsAreChecked),
      CASE(OneMatchServesIndexesOfDifferentSizes), CASE(MatchesAndStatisticsRefuseNullAndTouchNothing))
