/* 6 Engines: the subscriber of KV events as it is in every build; zmq_test.c has what needs ZeroMQ. */
#include "helpers.h"

TEST(ALibraryWithoutZeroMqSaysSo) {
  wr_router* router = new_router();
  wr_kv_subscriber* subscriber = NULL;
  wr_error err = WR_ERROR_INIT;
  const wr_status status = wr_kv_subscriber_new(router, NULL, &subscriber, &err);
#ifdef WITH_ZMQ
  CHECK(status == WR_STATUS_OK && subscriber != NULL);
#else
  CHECK_STATUS(status, WR_STATUS_UNSUPPORTED);
  CHECK(subscriber == NULL && strstr(err.message, "ZeroMQ") != NULL);
#endif
  wr_kv_subscriber_free(subscriber);
  wr_router_free(router);
}

TEST(EveryNullOfSubscribersIsRefused) {
  wr_router* router = new_router();
  wr_kv_subscriber* subscriber = NULL;
  const wr_kv_endpoint endpoint = WR_KV_ENDPOINT_INIT;
  const wr_replica_id nobody = WR_NO_REPLICA_INIT;
  CHECK_STATUS(wr_kv_subscriber_new(NULL, NULL, &subscriber, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_subscriber_new(router, NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_subscriber_add(NULL, &endpoint, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_subscriber_remove(NULL, nobody, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_kv_subscriber_read_status(NULL, nobody, NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_kv_subscriber_free(NULL);
  wr_router_free(router);
}

TESTS(CASE(ALibraryWithoutZeroMqSaysSo), CASE(EveryNullOfSubscribersIsRefused))
