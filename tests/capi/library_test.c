/* 1 Library: versions, names, errors. */
#include "helpers.h"

TEST(TellsItsVersions) {
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", WR_VERSION_MAJOR, WR_VERSION_MINOR, WR_VERSION_PATCH);
  CHECK_TEXT(wr_version(), version);
  CHECK_EQ(wr_abi_version(), WR_ABI_VERSION);
}

TEST(NamesEveryStatusAndToleratesUnknownOnes) {
  const wr_status known[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  size_t i, j;
  for (i = 0; i < sizeof known / sizeof known[0]; ++i) {
    CHECK(strcmp(wr_status_text(known[i]), "unknown") != 0);
    for (j = 0; j < i; ++j) CHECK(strcmp(wr_status_text(known[i]), wr_status_text(known[j])) != 0);
  }
  CHECK_TEXT(wr_status_text(WR_STATUS_OK), "ok");
  CHECK_TEXT(wr_status_text(WR_STATUS_NOT_FOUND), "not_found");
  CHECK_TEXT(wr_status_text(WR_STATUS_MALFORMED), "malformed");
  CHECK_TEXT(wr_status_text(12), "unknown");
  CHECK_TEXT(wr_status_text(-1), "unknown");
  CHECK_TEXT(wr_status_text(INT32_MIN), "unknown");
  CHECK_TEXT(wr_status_text(INT32_MAX), "unknown");
}

TEST(NamesEnumerationsAndToleratesUnknownOnes) {
  CHECK_TEXT(wr_algorithm_name(WR_ALGORITHM_COST), "cost");
  CHECK_TEXT(wr_algorithm_name(WR_ALGORITHM_BOUNDED_HASH), "bounded_hash");
  CHECK_TEXT(wr_algorithm_name(9), "unknown");
  CHECK_TEXT(wr_algorithm_name(256), "unknown"); /* not the 0 of a byte that wrapped */
  CHECK_TEXT(wr_verdict_name(WR_VERDICT_ROUTED), "routed");
  CHECK_TEXT(wr_verdict_name(WR_VERDICT_NO_PERMITTED_POOL), "no_permitted_pool");
  CHECK_TEXT(wr_verdict_name(9), "unknown");
  CHECK_TEXT(wr_verdict_name(256), "unknown");
  CHECK_TEXT(wr_reason_name(WR_REASON_NONE), "none");
  CHECK_TEXT(wr_reason_name(WR_REASON_FAIL_OPEN), "fail_open");
  CHECK_TEXT(wr_reason_name(WR_REASON_SPILL_SATURATED), "spill_saturated");
  CHECK_TEXT(wr_reason_name(14), "unknown");
  CHECK_TEXT(wr_split_name(WR_SPLIT_NO_DECODE), "no_decode");
  CHECK_TEXT(wr_split_name(6), "unknown");
  CHECK_TEXT(wr_reason_name(UINT32_MAX), "unknown");
  CHECK_TEXT(wr_outcome_name(WR_OUTCOME_FINISHED), "finished");
  CHECK_TEXT(wr_outcome_name(WR_OUTCOME_LEASE_EXPIRED), "lease_expired");
  CHECK_TEXT(wr_outcome_name(8), "unknown");
  CHECK_TEXT(wr_outcome_name(256 + 1), "unknown");
}

TEST(ErrorsSayWhatIsWrongAndSuccessLeavesThemAlone) {
  wr_error err = WR_ERROR_INIT;
  wr_router* router = NULL;
  wr_policy policy;
  CHECK_STATUS(wr_router_new(NULL, NULL, &err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(err.status, WR_STATUS_INVALID_ARGUMENT);
  CHECK(err.offset == WR_NO_OFFSET);
  CHECK(strlen(err.message) > 0);
  CHECK_EQ(err.struct_size, sizeof err);
  paint(&err, sizeof err);
  err.struct_size = sizeof err;
  CHECK_OK(wr_router_new(NULL, &router, &err));
  CHECK(painted((char*)&err + 4, sizeof err - 4));
  wr_router_free(router);
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, &err));
  CHECK(painted((char*)&err + 4, sizeof err - 4));
}

TEST(ErrorsOfAnotherSizeAreLeftAloneOrFilledInPart) {
  struct {
    wr_error err;
    unsigned char tail[32];
  } longer;
  const uint32_t wrong[] = {0, 4, sizeof(wr_error) - 1, 65537, UINT32_MAX};
  size_t i;
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    paint(&longer, sizeof longer);
    longer.err.struct_size = wrong[i];
    CHECK_STATUS(wr_router_new(NULL, NULL, &longer.err), WR_STATUS_INVALID_ARGUMENT);
    CHECK_EQ(longer.err.struct_size, wrong[i]);
    CHECK(painted((char*)&longer + 4, sizeof longer - 4));
  }
  longer.err.struct_size = sizeof longer;
  CHECK_STATUS(wr_router_new(NULL, NULL, &longer.err), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(longer.err.status, WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(longer.err.struct_size, sizeof longer);
  CHECK(painted(longer.tail, sizeof longer.tail));
}

/* The message names the replica: its name decides where the message is cut. */
static void message_about(const char* name, size_t size, wr_error* err) {
  static wr_router* router = NULL;
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id id = WR_NO_REPLICA_INIT;
  router = new_router();
  spec.name.data = name;
  spec.name.size = size;
  CHECK_STATUS(wr_router_add_replica(router, &spec, 1, &id, err), WR_STATUS_INVALID_ARGUMENT);
  wr_router_free(router);
}

TEST(LongMessagesAreCutBetweenCharactersAndEndInNul) {
  static const char* const characters[] = {"a", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
  char name[2048];
  size_t width, lead, i;
  for (width = 1; width <= 4; ++width) {
    for (lead = 0; lead < 4; ++lead) { /* every alignment of the border within a character */
      wr_error err = WR_ERROR_INIT;
      size_t size, at;
      memset(name, 'x', lead);
      for (i = lead; i + width <= sizeof name; i += width) memcpy(name + i, characters[width - 1], width);
      paint(err.message, sizeof err.message);
      message_about(name, i, &err);
      CHECK(memchr(err.message, '\0', sizeof err.message) != NULL);
      size = strlen(err.message);
      CHECK(size < WR_ERROR_MESSAGE_SIZE);
      CHECK(size + 4 > WR_ERROR_MESSAGE_SIZE - 1); /* no more is lost than one character */
      for (at = strlen("replica '") + lead; at < size; at += width) {
        CHECK(memcmp(err.message + at, characters[width - 1], width) == 0);
      }
      CHECK_EQ(at, size);
    }
  }
}

TEST(MessagesOfBytesThatAreNoUtf8AreCutAllTheSame) {
  char name[1000];
  wr_ring_member members[2] = {WR_RING_MEMBER_INIT, WR_RING_MEMBER_INIT};
  wr_ring* ring = NULL;
  wr_error err = WR_ERROR_INIT;
  memset(name, 0x80, sizeof name); /* nothing but continuation bytes: there is no border to go back to */
  members[0].ring_id.data = members[1].ring_id.data = name; /* the ring takes any bytes, and its message names them */
  members[0].ring_id.size = members[1].ring_id.size = sizeof name;
  members[1].member = 1;
  CHECK_STATUS(wr_ring_new(members, 2, sizeof members[0], NULL, &ring, &err), WR_STATUS_ALREADY_EXISTS);
  CHECK(memchr(err.message, '\0', sizeof err.message) != NULL);
  CHECK_EQ(strlen(err.message), WR_ERROR_MESSAGE_SIZE - 1);
  CHECK(strstr(err.message, "\x80\x80\x80\x80") != NULL);
}

TESTS(CASE(TellsItsVersions), CASE(NamesEveryStatusAndToleratesUnknownOnes),
      CASE(NamesEnumerationsAndToleratesUnknownOnes), CASE(ErrorsSayWhatIsWrongAndSuccessLeavesThemAlone),
      CASE(ErrorsOfAnotherSizeAreLeftAloneOrFilledInPart), CASE(LongMessagesAreCutBetweenCharactersAndEndInNul),
      CASE(MessagesOfBytesThatAreNoUtf8AreCutAllTheSame))
