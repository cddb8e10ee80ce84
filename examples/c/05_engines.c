/* What engines say of themselves: metrics pages that you have fetched, or that a thread asks for, and KV events over ZeroMQ.
   usage: 05_engines [http://host:port [tcp://host:5557]]    without arguments: a page that is in this file */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <warmroute.h>

static const char kPage[] =
    "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 30\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 4\n"
    "vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 9000\n"
    "vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 6000\n";

static wr_str str(const char* text) {
  wr_str s;
  s.data = text;
  s.size = strlen(text);
  return s;
}

/* The clock whose times the router is given; the threads of pollers and subscribers call it, too. */
static int64_t now_ns(void* user) {
  struct timespec t;
  (void)user;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static void log_line(void* user, uint32_t level, wr_str message) {
  (void)user;
  fprintf(stderr, "[%u] %.*s\n", (unsigned)level, (int)message.size, message.data);
}

/* A page that you have fetched: read it, and give it to its replica. */
static int by_call(wr_router* router, wr_replica_id id, wr_error* err) {
  wr_metrics* metrics = NULL;
  wr_metrics_reading reading = WR_METRICS_READING_INIT;
  wr_metrics_target target = WR_METRICS_TARGET_INIT; /* the page has one rank: it is this replica's */
  wr_metrics_applied applied = WR_METRICS_APPLIED_INIT;
  wr_status status = wr_metrics_new(&metrics, err);
  target.replica = id;
  if (status == WR_STATUS_OK) status = wr_metrics_parse(metrics, str(kPage), str(""), &reading, err);
  if (status == WR_STATUS_OK) {
    status = wr_router_apply_metrics(router, metrics, &target, 1, sizeof target, now_ns(NULL), &applied, err);
  }
  if (status == WR_STATUS_OK) {
    printf("%.*s: %u signals\n", (int)reading.engine.size, reading.engine.data, (unsigned)applied.signals);
  }
  wr_metrics_free(metrics);
  return status != WR_STATUS_OK;
}

/* A thread that asks, and one that listens; both for three seconds here, for the life of the router in a proxy. */
static int by_threads(wr_router* router, wr_replica_id id, const char* url, const char* events, wr_error* err) {
  const struct timespec pause = {3, 0};
  wr_poller_options options = WR_POLLER_OPTIONS_INIT;
  wr_kv_subscriber_options listening = WR_KV_SUBSCRIBER_OPTIONS_INIT;
  wr_poller_target target = WR_POLLER_TARGET_INIT;
  wr_metrics_target replica = WR_METRICS_TARGET_INIT;
  wr_kv_endpoint endpoint = WR_KV_ENDPOINT_INIT;
  wr_poller_status polled = WR_POLLER_STATUS_INIT;
  wr_kv_source_status heard = WR_KV_SOURCE_STATUS_INIT;
  wr_poller* poller = NULL;
  wr_kv_subscriber* subscriber = NULL;
  wr_status status;
  options.clock = listening.clock = now_ns;
  options.log = listening.log = log_line;
  replica.replica = endpoint.replica = id;
  target.url = str(url);
  target.replicas = &replica;
  target.replica_count = 1;
  target.clear_on_restart = events == NULL; /* events tell of restarts by themselves */
  status = wr_poller_new(router, &options, &poller, err);
  if (status == WR_STATUS_OK) status = wr_poller_add(poller, &target, err);
  if (status == WR_STATUS_OK && events != NULL) {
    endpoint.events = str(events);
    status = wr_kv_subscriber_new(router, &listening, &subscriber, err); /* unsupported in a build without ZeroMQ */
    if (status == WR_STATUS_OK) status = wr_kv_subscriber_add(subscriber, &endpoint, err);
  }
  if (status == WR_STATUS_OK) {
    nanosleep(&pause, NULL);
    status = wr_poller_read_status(poller, str(url), &polled, err);
  }
  if (status == WR_STATUS_OK && subscriber != NULL) {
    status = wr_kv_subscriber_read_status(subscriber, id, NULL, &heard, err);
  }
  if (status == WR_STATUS_OK) {
    printf("%s: up %u, %s, %u signals, %s; %u messages, %u blocks stored\n", url, (unsigned)polled.up, polled.engine,
           (unsigned)polled.signals, polled.last_error, (unsigned)heard.messages, (unsigned)heard.blocks_stored);
  }
  wr_kv_subscriber_free(subscriber); /* both before the router */
  wr_poller_free(poller);
  return status != WR_STATUS_OK;
}

int main(int argc, char** argv) {
  wr_router* router = NULL;
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_statistics statistics = WR_REPLICA_STATISTICS_INIT;
  wr_replica_id id;
  wr_error err = WR_ERROR_INIT;
  int failed = wr_router_new(NULL, &router, &err) != WR_STATUS_OK;
  spec.name = str("gpu-0");
  failed = failed || wr_router_add_replica(router, &spec, now_ns(NULL), &id, &err) != WR_STATUS_OK;
  failed = failed ||
           (argc < 2 ? by_call(router, id, &err) : by_threads(router, id, argv[1], argc > 2 ? argv[2] : NULL, &err));
  failed = failed || wr_router_replica_statistics(router, id, &statistics, &err) != WR_STATUS_OK;
  if (failed) fprintf(stderr, "%s\n", err.message);
  else printf("gpu-0 has %u requests that did not come through here\n", (unsigned)statistics.foreign_requests);
  wr_router_free(router);
  return failed;
}
