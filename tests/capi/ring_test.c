/* 3 Ring: consistent hashing with weights and bounded load. */
#include "helpers.h"

/* Members as a caller may keep them: inside something larger. */
typedef struct server {
  char address[24];
  wr_ring_member member;
  uint64_t more;
} server;

static const char* const kNames[] = {"slot-0", "slot-1", "slot-2", "slot-3", "slot-4", "slot-5", "slot-6", "slot-7"};

static void make_members(wr_ring_member* members, uint32_t count) {
  uint32_t i;
  for (i = 0; i < count; ++i) {
    const wr_ring_member init = WR_RING_MEMBER_INIT;
    members[i] = init;
    members[i].member = i;
    members[i].ring_id = text(kNames[i]);
  }
}

static wr_ring* new_ring(uint32_t count) {
  wr_ring_member members[8];
  wr_ring* ring = NULL;
  make_members(members, count);
  CHECK_OK(wr_ring_new(members, count, sizeof members[0], NULL, &ring, NULL));
  return ring;
}

static uint64_t key_of(uint64_t i) { return i * UINT64_C(0x9E3779B97F4A7C15); }

TEST(RingsOfTheSameMembersAreTheSameWhateverOrderAndStride) {
  wr_ring_member members[5];
  server servers[5];
  wr_ring *packed = NULL, *embedded = NULL;
  uint32_t i;
  double fraction = 1;
  memset(servers, 0x5A, sizeof servers);
  make_members(members, 5);
  for (i = 0; i < 5; ++i) servers[i].member = members[4 - i];
  CHECK_OK(wr_ring_new(members, 5, sizeof members[0], NULL, &packed, NULL));
  CHECK_OK(wr_ring_new(&servers[0].member, 5, sizeof servers[0], NULL, &embedded, NULL));
  CHECK_EQ(wr_ring_size(packed), 5);
  CHECK_EQ(wr_ring_size(embedded), 5);
  for (i = 0; i < 1000; ++i) CHECK_EQ(wr_ring_home(packed, key_of(i)), wr_ring_home(embedded, key_of(i)));
  CHECK_OK(wr_ring_movement(packed, embedded, &fraction, NULL));
  CHECK(fraction == 0);
  wr_ring_free(packed);
  wr_ring_free(embedded);
  wr_ring_free(NULL);
}

TEST(TheEmptyRingHasNoHome) {
  wr_ring* ring = NULL;
  uint32_t out[2] = {5, 5};
  size_t count = 9;
  double fraction = -1;
  wr_load_bound bound = WR_LOAD_BOUND_INIT;
  wr_bounded_pick pick = WR_BOUNDED_PICK_INIT;
  CHECK_OK(wr_ring_new(NULL, 0, 0, NULL, &ring, NULL));
  CHECK_EQ(wr_ring_size(ring), 0);
  CHECK_EQ(wr_ring_home(ring, 7), WR_NO_MEMBER);
  CHECK_OK(wr_ring_successors(ring, 7, out, 2, &count, NULL));
  CHECK_EQ(count, 0);
  CHECK_EQ(out[0], 5);
  CHECK_STATUS(wr_ring_share(ring, text("slot-0"), &fraction, NULL), WR_STATUS_NOT_FOUND);
  CHECK_OK(wr_ring_bounded_pick(ring, &bound, 7, 1, NULL, NULL, 0, &pick, NULL));
  CHECK_EQ(pick.member, WR_NO_MEMBER);
  CHECK_EQ(wr_ring_size(NULL), 0);
  CHECK_EQ(wr_ring_home(NULL, 7), WR_NO_MEMBER);
  wr_ring_free(ring);
}

TEST(RingsChangeByOneMemberAndTheOldOneStays) {
  wr_ring *ring = new_ring(4), *more = NULL, *fewer = NULL, *heavy = NULL, *renamed = NULL;
  wr_ring_member fifth = WR_RING_MEMBER_INIT;
  double moved = 0, share = 0, heavy_share = 0;
  uint32_t i;
  fifth.member = 40;
  fifth.ring_id = text("slot-40");
  CHECK_OK(wr_ring_with_added(ring, &fifth, &more, NULL));
  CHECK_OK(wr_ring_movement(ring, more, &moved, NULL));
  CHECK_OK(wr_ring_share(more, text("slot-40"), &share, NULL));
  CHECK(share > 0.1 && share < 0.3);
  CHECK(moved > share - 1e-9 && moved < share + 1e-9); /* only what the new one takes */
  for (i = 0; i < 1000; ++i) {
    const uint32_t before = wr_ring_home(ring, key_of(i)), after = wr_ring_home(more, key_of(i));
    CHECK(after == before || after == 40);
  }
  CHECK_OK(wr_ring_with_removed(more, text("slot-40"), &fewer, NULL));
  CHECK_OK(wr_ring_movement(ring, fewer, &moved, NULL));
  CHECK(moved == 0);
  CHECK_OK(wr_ring_with_weight(ring, text("slot-1"), 3.0, &heavy, NULL));
  CHECK_OK(wr_ring_share(ring, text("slot-1"), &share, NULL));
  CHECK_OK(wr_ring_share(heavy, text("slot-1"), &heavy_share, NULL));
  CHECK(heavy_share > share * 1.5);
  CHECK_OK(wr_ring_with_member(ring, text("slot-1"), 77, &renamed, NULL));
  for (i = 0; i < 1000; ++i) {
    const uint32_t before = wr_ring_home(ring, key_of(i));
    CHECK_EQ(wr_ring_home(renamed, key_of(i)), before == 1 ? 77 : before);
  }
  CHECK_EQ(wr_ring_size(ring), 4);
  wr_ring_free(more);
  wr_ring_free(fewer);
  wr_ring_free(heavy);
  wr_ring_free(renamed);
  CHECK(wr_ring_home(ring, 1) < 4);
  wr_ring_free(ring);
}

TEST(ChangesThatCannotBeAreRefusedAndNothingIsMade) {
  wr_ring* ring = new_ring(4);
  wr_ring* const untouched = (wr_ring*)(void*)&ring;
  wr_ring* out = untouched;
  wr_ring_member member = WR_RING_MEMBER_INIT;
  wr_error err = WR_ERROR_INIT;
  member.member = 9;
  member.ring_id = text("slot-2");
  CHECK_STATUS(wr_ring_with_added(ring, &member, &out, &err), WR_STATUS_ALREADY_EXISTS);
  CHECK(strstr(err.message, "slot-2") != NULL);
  member.ring_id = text("slot-9");
  member.member = 2;
  CHECK_STATUS(wr_ring_with_added(ring, &member, &out, NULL), WR_STATUS_ALREADY_EXISTS);
  member.member = WR_NO_MEMBER;
  CHECK_STATUS(wr_ring_with_added(ring, &member, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  member.member = 9;
  member.weight = 0;
  CHECK_STATUS(wr_ring_with_added(ring, &member, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  member.weight = 1;
  member.ring_id = bad_text();
  CHECK_STATUS(wr_ring_with_added(ring, &member, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  member.ring_id.size = 0;
  CHECK_STATUS(wr_ring_with_added(ring, &member, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_added(ring, NULL, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  member.ring_id = text("slot-9");
  CHECK_STATUS(wr_ring_with_added(NULL, &member, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_added(ring, &member, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_removed(ring, text("nobody"), &out, NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_ring_with_removed(ring, bad_text(), &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_removed(NULL, text("slot-1"), &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_removed(ring, text("slot-1"), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_weight(ring, text("nobody"), 2, &out, NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_ring_with_weight(ring, text("slot-1"), -1, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_weight(NULL, text("slot-1"), 2, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_weight(ring, text("slot-1"), 2, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_member(ring, text("nobody"), 5, &out, NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_ring_with_member(ring, text("slot-1"), 2, &out, NULL), WR_STATUS_ALREADY_EXISTS);
  CHECK_STATUS(wr_ring_with_member(ring, text("slot-1"), WR_NO_MEMBER, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_member(NULL, text("slot-1"), 5, &out, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_with_member(ring, text("slot-1"), 5, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(out == untouched);
  wr_ring_free(ring);
}

TEST(MembersAndOptionsAreChecked) {
  wr_ring_member members[3];
  wr_ring_options options = WR_RING_OPTIONS_INIT;
  wr_ring* ring = NULL;
  wr_error err = WR_ERROR_INIT;
  make_members(members, 3);
  members[2].ring_id = members[0].ring_id;
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], NULL, &ring, &err), WR_STATUS_ALREADY_EXISTS);
  CHECK(strstr(err.message, "slot-0") != NULL);
  make_members(members, 3);
  members[2].member = 0;
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], NULL, &ring, NULL), WR_STATUS_ALREADY_EXISTS);
  make_members(members, 3);
  members[1].struct_size = 0;
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], NULL, &ring, NULL), WR_STATUS_INVALID_ARGUMENT);
  make_members(members, 3);
  members[1].ring_id = bad_text();
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], NULL, &ring, NULL), WR_STATUS_INVALID_ARGUMENT);
  make_members(members, 3);
  CHECK_STATUS(wr_ring_new(NULL, 3, sizeof members[0], NULL, &ring, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_new(members, 3, 0, NULL, &ring, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_new(members, 3, 1, NULL, &ring, NULL), WR_STATUS_INVALID_ARGUMENT); /* items, not bytes */
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0] + 4, NULL, &ring, NULL), WR_STATUS_INVALID_ARGUMENT);
  options.abi_version = 0;
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], &options, &ring, NULL), WR_STATUS_ABI_MISMATCH);
  options.abi_version = WR_ABI_VERSION;
  options.points_per_unit = 0;
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], &options, &ring, NULL), WR_STATUS_INVALID_ARGUMENT);
  options.points_per_unit = 256;
  options.max_points = 10;
  CHECK_STATUS(wr_ring_new(members, 3, sizeof members[0], &options, &ring, NULL), WR_STATUS_CAPACITY);
  CHECK(ring == NULL);
  CHECK_OK(wr_ring_new(members, 1, 0, NULL, &ring, NULL)); /* one item has no stride */
  wr_ring_free(ring);
}

static wr_status ring_with_options(const void* options) {
  wr_ring* ring = NULL;
  const wr_status status = wr_ring_new(NULL, 0, 0, options, &ring, NULL);
  wr_ring_free(ring);
  return status;
}
static wr_status ring_of_member(const void* member) {
  wr_ring* ring = NULL;
  const wr_status status = wr_ring_new(member, 1, 0, NULL, &ring, NULL);
  wr_ring_free(ring);
  return status;
}
static wr_ring* shared_ring;
static wr_status added_member(const void* member) {
  wr_ring* ring = NULL;
  const wr_status status = wr_ring_with_added(shared_ring, member, &ring, NULL);
  wr_ring_free(ring);
  return status;
}
static const int64_t kIdle[8] = {0, 0, 0, 0, 0, 0, 0, 0};
static wr_status pick_with_bound(const void* bound) {
  wr_bounded_pick pick = WR_BOUNDED_PICK_INIT;
  return wr_ring_bounded_pick(shared_ring, bound, 1, 1, kIdle, NULL, 8, &pick, NULL);
}
static wr_status pick_into(void* pick) {
  return wr_ring_bounded_pick(shared_ring, NULL, 1, 1, kIdle, NULL, 8, pick, NULL);
}

TEST(RingStructsOfEverySizeGetWhatTheyDeserve) {
  const wr_ring_options options = WR_RING_OPTIONS_INIT;
  wr_ring_member member = WR_RING_MEMBER_INIT;
  const wr_load_bound bound = WR_LOAD_BOUND_INIT;
  const wr_bounded_pick pick = WR_BOUNDED_PICK_INIT;
  shared_ring = new_ring(4);
  member.member = 99;
  member.ring_id = text("slot-99");
  check_input_sizes(&options, sizeof options, offsetof(wr_ring_options, reserved), WR_STATUS_OK, ring_with_options);
  check_input_sizes(&member, sizeof member, offsetof(wr_ring_member, reserved), WR_STATUS_OK, ring_of_member);
  check_input_sizes(&member, sizeof member, offsetof(wr_ring_member, reserved), WR_STATUS_OK, added_member);
  check_input_sizes(&bound, sizeof bound, offsetof(wr_load_bound, reserved0), WR_STATUS_OK, pick_with_bound);
  check_output_sizes(&pick, sizeof pick, 1, pick_into);
  wr_ring_free(shared_ring);
}

TEST(SuccessorsAreDistinctAndBeginAtHome) {
  wr_ring* ring = new_ring(6);
  uint32_t out[8], i, j;
  size_t count = 0;
  uint64_t k;
  for (k = 0; k < 200; ++k) {
    paint(out, sizeof out);
    CHECK_OK(wr_ring_successors(ring, key_of(k), out, 8, &count, NULL));
    CHECK_EQ(count, 6);
    CHECK_EQ(out[0], wr_ring_home(ring, key_of(k)));
    for (i = 0; i < 6; ++i) {
      CHECK(out[i] < 6);
      for (j = 0; j < i; ++j) CHECK(out[i] != out[j]);
    }
    CHECK(painted(out + 6, 2 * sizeof out[0]));
  }
  CHECK_OK(wr_ring_successors(ring, 1, out, 2, &count, NULL));
  CHECK_EQ(count, 2);
  CHECK_OK(wr_ring_successors(ring, 1, NULL, 0, &count, NULL));
  CHECK_EQ(count, 0);
  count = 77;
  CHECK_STATUS(wr_ring_successors(ring, 1, NULL, 2, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_successors(NULL, 1, out, 2, &count, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_successors(ring, 1, out, 2, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(count, 77);
  wr_ring_free(ring);
}

TEST(BatchesOfHomesTakeAnyStride) {
  wr_ring* ring = new_ring(6);
  struct {
    uint64_t key;
    uint32_t home;
    uint32_t guard;
  } rows[50];
  unsigned char packed[50 * 9], homes[50 * 5];
  uint64_t keys[50];
  uint32_t out[50], home, i;
  for (i = 0; i < 50; ++i) {
    keys[i] = rows[i].key = key_of(i);
    rows[i].guard = 0xABCD;
    memcpy(packed + 1 + i * 9 - 1, &keys[i], sizeof keys[i]); /* at odd addresses, most of them */
  }
  CHECK_OK(wr_ring_home_batch(ring, keys, 50, sizeof keys[0], out, sizeof out[0], NULL));
  CHECK_OK(wr_ring_home_batch(ring, &rows[0].key, 50, sizeof rows[0], &rows[0].home, sizeof rows[0], NULL));
  CHECK_OK(wr_ring_home_batch(ring, (const uint64_t*)(const void*)packed, 50, 9, (uint32_t*)(void*)homes, 5, NULL));
  for (i = 0; i < 50; ++i) {
    CHECK_EQ(out[i], wr_ring_home(ring, keys[i]));
    CHECK_EQ(rows[i].home, out[i]);
    CHECK_EQ(rows[i].guard, 0xABCD);
    memcpy(&home, homes + i * 5, sizeof home);
    CHECK_EQ(home, out[i]);
  }
  CHECK_OK(wr_ring_home_batch(ring, NULL, 0, 0, NULL, 0, NULL));
  paint(out, sizeof out);
  CHECK_STATUS(wr_ring_home_batch(NULL, keys, 50, 8, out, 4, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_home_batch(ring, NULL, 50, 8, out, 4, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_home_batch(ring, keys, 50, 8, NULL, 4, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_home_batch(ring, keys, 50, 1, out, 4, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_home_batch(ring, keys, 50, 8, out, 1, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(painted(out, sizeof out));
  wr_ring_free(ring);
}

TEST(SharesAddUpAndMovementRefusesNull) {
  wr_ring* ring = new_ring(5);
  double sum = 0, fraction = -1;
  uint32_t i;
  for (i = 0; i < 5; ++i) {
    CHECK_OK(wr_ring_share(ring, text(kNames[i]), &fraction, NULL));
    sum += fraction;
  }
  CHECK(sum > 1 - 1e-9 && sum < 1 + 1e-9);
  fraction = -1;
  CHECK_STATUS(wr_ring_share(ring, text("nobody"), &fraction, NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_ring_share(ring, bad_text(), &fraction, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_share(NULL, text("slot-0"), &fraction, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_share(ring, text("slot-0"), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_movement(NULL, ring, &fraction, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_movement(ring, NULL, &fraction, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_movement(ring, ring, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(fraction == -1);
  wr_ring_free(ring);
}

TEST(BoundedPicksLeaveTheLoadedAndTheIneligible) {
  wr_ring* ring = new_ring(4);
  wr_load_bound bound = WR_LOAD_BOUND_INIT;
  wr_bounded_pick pick = WR_BOUNDED_PICK_INIT;
  int64_t loads[4] = {0, 0, 0, 0};
  uint8_t eligible[4] = {1, 1, 1, 1};
  uint32_t order[4], home;
  size_t count = 0;
  uint64_t k;
  for (k = 0; k < 100; ++k) {
    const uint64_t key = key_of(k);
    CHECK_OK(wr_ring_successors(ring, key, order, 4, &count, NULL));
    home = order[0];
    CHECK_OK(wr_ring_bounded_pick(ring, &bound, key, 10, loads, eligible, 4, &pick, NULL));
    CHECK_EQ(pick.member, home);
    CHECK_EQ(pick.diverted, 0);
    loads[home] = 1000;
    CHECK_OK(wr_ring_bounded_pick(ring, NULL, key, 10, loads, NULL, 4, &pick, NULL)); /* defaults; all eligible */
    CHECK_EQ(pick.member, order[1]);
    CHECK_EQ(pick.diverted, 1);
    CHECK_EQ(pick.over_bound, 0);
    loads[home] = 0;
    eligible[home] = 0;
    CHECK_OK(wr_ring_bounded_pick(ring, &bound, key, 10, loads, eligible, 4, &pick, NULL));
    CHECK_EQ(pick.member, order[1]);
    CHECK_EQ(pick.diverted, 0); /* the first that is eligible */
    eligible[home] = 1;
  }
  memset(eligible, 0, sizeof eligible);
  CHECK_OK(wr_ring_bounded_pick(ring, &bound, 1, 10, loads, eligible, 4, &pick, NULL));
  CHECK_EQ(pick.member, WR_NO_MEMBER);
  bound.order = WR_SPILL_PERMUTED;
  bound.spill_seed = 5;
  bound.max_probes = 1;
  loads[0] = loads[1] = loads[2] = loads[3] = INT64_MAX; /* sums must not wrap */
  CHECK_OK(wr_ring_bounded_pick(ring, &bound, 1, INT64_MAX, loads, NULL, 4, &pick, NULL));
  CHECK(pick.member < 4);
  CHECK_EQ(pick.probes, 1);
  loads[0] = INT64_MIN;
  CHECK_OK(wr_ring_bounded_pick(ring, &bound, 1, INT64_MIN, loads, NULL, 4, &pick, NULL));
  wr_ring_free(ring);
}

TEST(BoundedPicksRefuseWhatDoesNotFitAndTouchNothing) {
  wr_ring* ring = new_ring(4);
  wr_load_bound bound = WR_LOAD_BOUND_INIT;
  wr_bounded_pick pick = WR_BOUNDED_PICK_INIT, before = WR_BOUNDED_PICK_INIT;
  wr_error err = WR_ERROR_INIT;
  const double bad_factors[] = {0.99, 1000.5, -1.0, 0.0};
  size_t i;
  double zero = 0;
  CHECK_STATUS(wr_ring_bounded_pick(ring, &bound, 1, 1, kIdle, NULL, 3, &pick, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_ring_bounded_pick(ring, &bound, 1, 1, NULL, NULL, 4, &pick, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_ring_bounded_pick(ring, &bound, 1, 1, NULL, NULL, 0, &pick, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_ring_bounded_pick(NULL, &bound, 1, 1, kIdle, NULL, 4, &pick, NULL), WR_STATUS_INVALID_ARGUMENT);
  bound.order = 2;
  CHECK_STATUS(wr_ring_bounded_pick(ring, &bound, 1, 1, kIdle, NULL, 4, &pick, NULL), WR_STATUS_OUT_OF_RANGE);
  bound.order = 0;
  for (i = 0; i < sizeof bad_factors / sizeof bad_factors[0]; ++i) {
    bound.factor = bad_factors[i];
    CHECK_STATUS(wr_ring_bounded_pick(ring, &bound, 1, 1, kIdle, NULL, 4, &pick, &err), WR_STATUS_INVALID_ARGUMENT);
    CHECK(strstr(err.message, "factor") != NULL);
  }
  bound.factor = zero / zero;
  CHECK_STATUS(wr_ring_bounded_pick(ring, &bound, 1, 1, kIdle, NULL, 4, &pick, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(memcmp(&pick, &before, sizeof pick) == 0);
  wr_ring_free(ring);
}

TESTS(CASE(RingsOfTheSameMembersAreTheSameWhateverOrderAndStride), CASE(TheEmptyRingHasNoHome),
      CASE(RingsChangeByOneMemberAndTheOldOneStays), CASE(ChangesThatCannotBeAreRefusedAndNothingIsMade),
      CASE(MembersAndOptionsAreChecked), CASE(RingStructsOfEverySizeGetWhatTheyDeserve),
      CASE(SuccessorsAreDistinctAndBeginAtHome), CASE(BatchesOfHomesTakeAnyStride),
      CASE(SharesAddUpAndMovementRefusesNull), CASE(BoundedPicksLeaveTheLoadedAndTheIneligible),
      CASE(BoundedPicksRefuseWhatDoesNotFitAndTouchNothing))
