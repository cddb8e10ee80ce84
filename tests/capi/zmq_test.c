/* 6 Engines: KV events over ZeroMQ, from publishers of this test's own; only in builds that have it. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>
#include <zmq.h>

#include "helpers.h"

enum { kSecond = 1000000000, kPatience = 20000 /* ms */ };

/* tests/data/kv_event_cases.jsonl, v025-b0: a block of the tokens 101..116, called 200. */
static const unsigned char kStored[] =
    "\x93\xcb\x40\x44\x00\x00\x00\x00\x00\x00\x91\x89\xa4type\xab"
    "BlockStored\xac"
    "block_hashes\x91\xcc\xc8\xb1"
    "parent_block_hash\xc0\xa9token_ids\xdc\x00\x10"
    "efghijklmnopqrst\xaa"
    "block_size\x10\xa7lora_id\xc0\xa6medium\xa3"
    "GPU\xa9lora_name\xc0\xa9group_idx\x00\x02";
enum { kTokens = 17 };

/* An engine that publishes: an XPUB socket, which hears of its subscribers. */
typedef struct publisher {
  void *context, *socket;
  char endpoint[64];
} publisher;
static publisher new_publisher(void) {
  publisher p;
  size_t size = sizeof p.endpoint;
  const int patience = kPatience, none = 0;
  p.context = zmq_ctx_new();
  CHECK(p.context != NULL);
  p.socket = zmq_socket(p.context, ZMQ_XPUB);
  CHECK(p.socket != NULL);
  CHECK(zmq_setsockopt(p.socket, ZMQ_RCVTIMEO, &patience, sizeof patience) == 0);
  CHECK(zmq_setsockopt(p.socket, ZMQ_LINGER, &none, sizeof none) == 0);
  CHECK(zmq_bind(p.socket, "tcp://127.0.0.1:*") == 0);
  CHECK(zmq_getsockopt(p.socket, ZMQ_LAST_ENDPOINT, p.endpoint, &size) == 0);
  return p;
}
static void wait_for_subscriber(publisher* p, const char* topic) {
  unsigned char said[64];
  const int size = zmq_recv(p->socket, said, sizeof said, 0);
  CHECK_EQ(size, 1 + (int)strlen(topic));
  CHECK(said[0] == 1 && memcmp(said + 1, topic, strlen(topic)) == 0);
}
static void publish(publisher* p, const char* topic, unsigned char seq, const void* payload, size_t size) {
  unsigned char number[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  number[7] = seq;
  CHECK(zmq_send(p->socket, topic, strlen(topic), ZMQ_SNDMORE) >= 0);
  CHECK(zmq_send(p->socket, number, sizeof number, ZMQ_SNDMORE) == 8);
  CHECK_EQ(zmq_send(p->socket, payload, size, 0), size);
}
static void end(publisher* p) {
  CHECK(zmq_close(p->socket) == 0);
  CHECK(zmq_ctx_term(p->context) == 0);
}
static wr_kv_source_status after(const wr_kv_subscriber* subscriber, wr_replica_id id, uint64_t messages) {
  const struct timespec moment = {0, 2000000};
  wr_kv_source_status source = WR_KV_SOURCE_STATUS_INIT;
  int i;
  for (i = 0; i < kPatience / 2; ++i) {
    CHECK_OK(wr_kv_subscriber_read_status(subscriber, id, NULL, &source, NULL));
    if (source.messages >= messages) break;
    nanosleep(&moment, NULL);
  }
  CHECK(source.messages >= messages);
  return source;
}

static int64_t clock_of(void* user) { return *(const int64_t*)user; }
static void count_line(void* user, uint32_t level, wr_str message) {
  CHECK(level <= WR_LOG_ERROR && message.size > 0);
  ++*(size_t*)user;
}

TEST(WhatEnginesPublishIsBelievedAsOfTheCallersClock) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  publisher engine = new_publisher();
  wr_kv_subscriber* subscriber = NULL;
  wr_kv_subscriber_options options = WR_KV_SUBSCRIBER_OPTIONS_INIT;
  wr_kv_source_options source_options = WR_KV_SOURCE_OPTIONS_INIT;
  wr_kv_endpoint endpoint = WR_KV_ENDPOINT_INIT;
  wr_kv_endpoint_status status = WR_KV_ENDPOINT_STATUS_INIT;
  wr_kv_source_status source = WR_KV_SOURCE_STATUS_INIT;
  wr_request request;
  wr_decision d = WR_DECISION_INIT;
  const int64_t now = 7 * (int64_t)kSecond;
  int64_t clock = now;
  size_t lines = 0;
  uint32_t tokens[kTokens];
  char tenant[] = "acme";
  count_up(tokens, kTokens, 101);
  options.clock = clock_of;
  options.clock_user = &clock;
  options.log = count_line;
  options.log_user = &lines;
  CHECK_OK(wr_kv_subscriber_new(router, &options, &subscriber, NULL));
  endpoint.replica = ids[1];
  endpoint.events = text(engine.endpoint);
  endpoint.topic = text("kv@");
  source_options.isolation_key = text(tenant);
  endpoint.source = &source_options;
  CHECK_OK(wr_kv_subscriber_add(subscriber, &endpoint, NULL));
  CHECK_STATUS(wr_kv_subscriber_add(subscriber, &endpoint, NULL), WR_STATUS_ALREADY_EXISTS);
  memset(tenant, 'x', sizeof tenant - 1); /* it was read during the call only */
  wait_for_subscriber(&engine, "kv@");
  publish(&engine, "other", 0, "", 0); /* not wanted */
  publish(&engine, "kv@a", 0, kStored, sizeof kStored - 1);
  source = after(subscriber, ids[1], 1);
  CHECK_EQ(source.state, WR_KV_STATE_LIVE);
  CHECK_EQ(source.messages, 1);
  CHECK_EQ(source.blocks_stored, 1);
  CHECK_EQ(source.last_event_ns, now);
  CHECK_OK(wr_kv_subscriber_read_status(subscriber, ids[1], &status, NULL, NULL));
  CHECK_EQ(status.connected, 1);
  CHECK_EQ(status.connects, 1);
  CHECK_EQ(status.bad_frames, 0);
  request = token_request(tokens, kTokens);
  request.tenant = text("acme");
  CHECK_OK(wr_router_peek(router, &request, now, &d, NULL));
  CHECK_EQ(d.replica.slot, ids[1].slot);
  CHECK_EQ(d.cached_tokens[WR_TIER_DEVICE], 16);
  CHECK_OK(wr_kv_subscriber_remove(subscriber, ids[1], NULL));
  CHECK_STATUS(wr_kv_subscriber_remove(subscriber, ids[1], NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_kv_subscriber_read_status(subscriber, ids[1], &status, &source, NULL), WR_STATUS_NOT_FOUND);
  wr_kv_subscriber_free(subscriber);
  CHECK(lines >= 1);
  end(&engine);
  wr_router_free(router);
}

static wr_router* shared_router;
static wr_replica_id shared_id;
static wr_kv_subscriber* shared_subscriber;

static wr_status subscriber_with(const void* options) {
  wr_kv_subscriber* subscriber = NULL;
  const wr_status status = wr_kv_subscriber_new(shared_router, options, &subscriber, NULL);
  CHECK((subscriber != NULL) == (status == WR_STATUS_OK));
  wr_kv_subscriber_free(subscriber);
  return status;
}
static wr_status endpoint_with(const void* endpoint) {
  const wr_status status = wr_kv_subscriber_add(shared_subscriber, endpoint, NULL);
  if (status == WR_STATUS_OK) CHECK_OK(wr_kv_subscriber_remove(shared_subscriber, shared_id, NULL));
  return status;
}
static wr_status source_with(const void* source) {
  wr_kv_endpoint endpoint = WR_KV_ENDPOINT_INIT;
  endpoint.replica = shared_id;
  endpoint.events = text("tcp://127.0.0.1:9");
  endpoint.source = source;
  return endpoint_with(&endpoint);
}
static wr_status status_into(void* status) {
  if (status == NULL) return WR_STATUS_INVALID_ARGUMENT; /* fine in this call, as other tests show */
  return wr_kv_subscriber_read_status(shared_subscriber, shared_id, status, NULL, NULL);
}
static void no_notice(void* user, const wr_kv_notice* notice) {
  (void)user;
  (void)notice;
}

TEST(SubscribersAreMadeOfSoundOptionsOnly) {
  const wr_kv_subscriber_options options = WR_KV_SUBSCRIBER_OPTIONS_INIT;
  const wr_kv_source_options source = WR_KV_SOURCE_OPTIONS_INIT;
  const wr_kv_endpoint_status status = WR_KV_ENDPOINT_STATUS_INIT;
  wr_kv_subscriber_options wrong = WR_KV_SUBSCRIBER_OPTIONS_INIT;
  wr_kv_source_options unsound = WR_KV_SOURCE_OPTIONS_INIT;
  wr_kv_endpoint endpoint = WR_KV_ENDPOINT_INIT, bad;
  shared_router = new_fleet(1, &shared_id);
  CHECK_OK(wr_kv_subscriber_new(shared_router, NULL, &shared_subscriber, NULL));
  check_input_sizes(&options, sizeof options, offsetof(wr_kv_subscriber_options, reserved), WR_STATUS_OK,
                    subscriber_with);
  endpoint.replica = shared_id;
  endpoint.events = text("tcp://127.0.0.1:9");
  check_input_sizes(&endpoint, sizeof endpoint, offsetof(wr_kv_endpoint, reserved), WR_STATUS_OK, endpoint_with);
  check_input_sizes(&source, sizeof source, offsetof(wr_kv_source_options, reserved), WR_STATUS_OK, source_with);
  bad = endpoint;
  bad.events = text("nowhere");
  CHECK_STATUS(endpoint_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.events = bad_text();
  CHECK_STATUS(endpoint_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = endpoint;
  bad.replica.generation += 1;
  CHECK_STATUS(endpoint_with(&bad), WR_STATUS_STALE);
  unsound.notice = no_notice;
  CHECK_STATUS(source_with(&unsound), WR_STATUS_INVALID_ARGUMENT);
  unsound = source;
  unsound.replay_attempts = 0;
  CHECK_STATUS(source_with(&unsound), WR_STATUS_INVALID_ARGUMENT);
  unsound = source;
  unsound.abi_version = WR_ABI_VERSION + 1;
  CHECK_STATUS(source_with(&unsound), WR_STATUS_ABI_MISMATCH);
  wrong.abi_version = WR_ABI_VERSION + 1;
  CHECK_STATUS(subscriber_with(&wrong), WR_STATUS_ABI_MISMATCH);
  wrong = options;
  wrong.queue_messages = UINT32_MAX;
  CHECK_STATUS(subscriber_with(&wrong), WR_STATUS_INVALID_ARGUMENT);
  wrong = options;
  wrong.reconnect_from_ns = -1;
  CHECK_STATUS(subscriber_with(&wrong), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_kv_subscriber_add(shared_subscriber, &endpoint, NULL));
  check_output_sizes(&status, sizeof status, 1, status_into);
  CHECK_OK(wr_kv_subscriber_read_status(shared_subscriber, shared_id, NULL, NULL, NULL));
  wr_kv_subscriber_free(shared_subscriber);
  wr_router_free(shared_router);
}

TESTS(CASE(WhatEnginesPublishIsBelievedAsOfTheCallersClock), CASE(SubscribersAreMadeOfSoundOptionsOnly))
