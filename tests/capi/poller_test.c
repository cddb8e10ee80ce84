/* 6 Engines: pages that are asked for on a thread. The servers are this test's own, on the loopback. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "helpers.h"

enum { kSecond = 1000000000, kPatience = 20000 /* ms */ };

static const char kPage[] =
    "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 5.0\n"
    "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 7.0\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2.0\n"
    "vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"m\"} 1000.0\n"
    "vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 600.0\n";

/* returns: a listening socket on a free port of the loopback, whose url is written. */
static int new_server(char* url, size_t size) {
  struct sockaddr_in address;
  socklen_t length = sizeof address;
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(server >= 0 && bind(server, (struct sockaddr*)&address, sizeof address) == 0 && listen(server, 16) == 0);
  CHECK(getsockname(server, (struct sockaddr*)&address, &length) == 0);
  snprintf(url, size, "http://127.0.0.1:%u", (unsigned)ntohs(address.sin_port));
  return server;
}
/* Answers one request. */
static void serve(int server, const char* page) {
  struct pollfd waits = {-1, POLLIN, 0};
  char request[4096], head[128];
  size_t got = 0;
  int client;
  waits.fd = server;
  CHECK_EQ(poll(&waits, 1, kPatience), 1);
  client = accept(server, NULL, NULL);
  CHECK(client >= 0);
  do {
    const ssize_t n = read(client, request + got, sizeof request - 1 - got);
    CHECK(n > 0);
    got += (size_t)n;
    request[got] = '\0';
  } while (strstr(request, "\r\n\r\n") == NULL);
  CHECK(strncmp(request, "GET /metrics HTTP/1.1\r\n", 23) == 0);
  sprintf(head, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\nConnection: close\r\n\r\n", (unsigned)strlen(page));
  CHECK_EQ(send(client, head, strlen(head), MSG_NOSIGNAL), strlen(head));
  CHECK_EQ(send(client, page, strlen(page), MSG_NOSIGNAL), strlen(page));
  close(client);
}
static void rest(void) {
  const struct timespec moment = {0, 2000000};
  nanosleep(&moment, NULL);
}
static wr_poller_status after(const wr_poller* poller, const char* name, uint64_t scrapes) {
  wr_poller_status status = WR_POLLER_STATUS_INIT;
  int i;
  for (i = 0; i < kPatience / 2; ++i) {
    CHECK_OK(wr_poller_read_status(poller, text(name), &status, NULL));
    if (status.scrapes >= scrapes) break;
    rest();
  }
  CHECK(status.scrapes >= scrapes);
  return status;
}

typedef struct book {
  int64_t now_ns; /* of the caller's clock, which stands still */
  size_t pages, lines;
  char target[64], body[512], line[512];
  int64_t at_ns;
} book;
static void copy(char* to, size_t size, wr_str from) {
  const size_t n = from.size < size ? from.size : size - 1;
  memcpy(to, from.data, n);
  to[n] = '\0';
}
static int64_t clock_of(void* user) { return ((book*)user)->now_ns; }
static void keep_page(void* user, const wr_poller_page* page) {
  book* b = user;
  CHECK_EQ(page->struct_size, sizeof *page);
  ++b->pages;
  copy(b->target, sizeof b->target, page->target);
  copy(b->body, sizeof b->body, page->body);
  b->at_ns = page->at_ns;
}
static void keep_line(void* user, uint32_t level, wr_str message) {
  book* b = user;
  CHECK(level <= WR_LOG_ERROR);
  ++b->lines;
  copy(b->line, sizeof b->line, message);
}
static wr_poller_options options_of(book* b) {
  wr_poller_options options = WR_POLLER_OPTIONS_INIT;
  options.interval_ns = 10000000;
  options.backoff_to_ns = 0;
  options.page = keep_page;
  options.page_user = b;
  options.clock = clock_of;
  options.clock_user = b;
  options.log = keep_line;
  options.log_user = b;
  return options;
}

TEST(PagesBecomeSignalsAsOfTheCallersClock) {
  wr_replica_id ids[2];
  wr_router* router = new_fleet(2, ids);
  wr_poller* poller = NULL;
  wr_poller_target target = WR_POLLER_TARGET_INIT;
  wr_metrics_target replicas[2] = {WR_METRICS_TARGET_INIT, WR_METRICS_TARGET_INIT};
  wr_replica_statistics statistics = WR_REPLICA_STATISTICS_INIT;
  wr_poller_options options;
  wr_poller_status status;
  book b;
  char url[64], name[] = "server";
  const int server = new_server(url, sizeof url);
  size_t i;
  memset(&b, 0, sizeof b);
  b.now_ns = 5 * (int64_t)kSecond;
  options = options_of(&b);
  for (i = 0; i < 2; ++i) {
    replicas[i].replica = ids[1 - i];
    replicas[i].dp_rank = (int64_t)(1 - i);
  }
  CHECK_OK(wr_poller_new(router, &options, &poller, NULL));
  target.url = text(url);
  target.name = text(name);
  target.replicas = replicas;
  target.replica_count = 2;
  CHECK_OK(wr_poller_add(poller, &target, NULL));
  CHECK_STATUS(wr_poller_add(poller, &target, NULL), WR_STATUS_ALREADY_EXISTS);
  memset(url, 'x', sizeof url - 1); /* strings were read during the call only */
  memset(name, 'x', sizeof name - 1);
  memset(replicas, 0xA5, sizeof replicas);
  serve(server, kPage);
  (void)after(poller, "server", 1);
  serve(server, kPage);
  status = after(poller, "server", 2);
  CHECK_EQ(status.failures, 0);
  CHECK_EQ(status.up, 1);
  CHECK(status.age_ns >= 0);
  CHECK_EQ(status.last_bytes, strlen(kPage));
  CHECK(status.signals >= 10 && status.connects >= 2);
  CHECK_TEXT(status.engine, "vllm");
  CHECK_TEXT(status.last_error, "");
  CHECK_OK(wr_router_replica_statistics(router, ids[0], &statistics, NULL));
  CHECK_EQ(statistics.foreign_requests, 7);
  CHECK_EQ(statistics.foreign_waiting, 2);
  CHECK_EQ(statistics.signals_at_ns, 5 * (int64_t)kSecond);
  CHECK_EQ(statistics.engine_prefix_unit, WR_PREFIX_UNIT_TOKENS);
  CHECK_EQ(statistics.engine_prefix_queries, 0);
  CHECK_OK(wr_router_replica_statistics(router, ids[1], &statistics, NULL));
  CHECK_EQ(statistics.foreign_requests, 7);
  CHECK_OK(wr_poller_remove(poller, text("server"), NULL));
  CHECK_STATUS(wr_poller_remove(poller, text("server"), NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_poller_read_status(poller, text("server"), &status, NULL), WR_STATUS_NOT_FOUND);
  wr_poller_free(poller); /* its thread is over: what it wrote may be read */
  CHECK_EQ(b.pages, 2);
  CHECK_TEXT(b.target, "server");
  CHECK_TEXT(b.body, kPage);
  CHECK_EQ(b.at_ns, 5 * (int64_t)kSecond);
  close(server);
  wr_router_free(router);
}

TEST(WithoutARouterPagesGoToTheCallbackAndFailuresAreTold) {
  const wr_str table = {
      "{\"engine\":\"mine\",\"prefixes\":[\"my_\"],\"rows\":[{\"field\":\"running\",\"name\":\"busy\"}]}", 0};
  wr_str tables[1];
  wr_poller* poller = NULL;
  wr_poller_target target = WR_POLLER_TARGET_INIT;
  wr_poller_options options;
  wr_poller_status status = WR_POLLER_STATUS_INIT;
  book b;
  char url[64];
  const int server = new_server(url, sizeof url);
  memset(&b, 0, sizeof b);
  options = options_of(&b);
  tables[0] = text(table.data);
  options.tables = tables;
  options.table_count = 1;
  CHECK_OK(wr_poller_new(NULL, &options, &poller, NULL));
  target.url = text(url);
  CHECK_OK(wr_poller_add(poller, &target, NULL));
  serve(server, "my_busy 3\n");
  (void)after(poller, url, 1);
  close(server); /* gone: the connection is refused from now on */
  do {
    rest();
    CHECK_OK(wr_poller_read_status(poller, text(url), &status, NULL));
  } while (status.failures < 2);
  CHECK_EQ(status.up, 0);
  CHECK(status.failures_in_row >= 2 && status.age_ns >= 0 && strlen(status.last_error) > 0);
  wr_poller_free(poller);
  CHECK_EQ(b.pages, 1);
  CHECK_TEXT(b.body, "my_busy 3\n");
  CHECK_EQ(b.lines, 1); /* the first failure in a row alone */
}

static wr_router* shared_router;
static wr_poller* shared_poller;

static wr_status poller_with(const void* options) {
  wr_poller* poller = NULL;
  const wr_status status = wr_poller_new(shared_router, options, &poller, NULL);
  CHECK((poller != NULL) == (status == WR_STATUS_OK));
  wr_poller_free(poller);
  return status;
}
static wr_status target_with(const void* target) {
  const wr_status status = wr_poller_add(shared_poller, target, NULL);
  if (status == WR_STATUS_OK) CHECK_OK(wr_poller_remove(shared_poller, text("127.0.0.1:9/none"), NULL));
  return status;
}
static wr_status status_into(void* status) { return wr_poller_read_status(shared_poller, text("known"), status, NULL); }

TEST(PollerStructsOfEverySizeGetWhatTheyDeserve) {
  const wr_poller_options options = WR_POLLER_OPTIONS_INIT;
  const wr_poller_status status = WR_POLLER_STATUS_INIT;
  wr_poller_target target = WR_POLLER_TARGET_INIT, bad;
  wr_poller_options wrong;
  wr_metrics_target replica = WR_METRICS_TARGET_INIT;
  wr_str table;
  shared_router = new_fleet(1, &replica.replica);
  CHECK_OK(wr_poller_new(shared_router, NULL, &shared_poller, NULL));
  check_input_sizes(&options, sizeof options, offsetof(wr_poller_options, reserved), WR_STATUS_OK, poller_with);
  target.url = text("127.0.0.1:9/none");
  check_input_sizes(&target, sizeof target, offsetof(wr_poller_target, reserved), WR_STATUS_OK, target_with);
  bad = target;
  bad.name = text("known");
  CHECK_OK(wr_poller_add(shared_poller, &bad, NULL));
  check_output_sizes(&status, sizeof status, 1, status_into);
  bad = target;
  bad.url = text("https://127.0.0.1");
  CHECK_STATUS(target_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = target;
  bad.replicas = &replica;
  bad.replica_count = 1;
  replica.dp_rank = -2;
  CHECK_STATUS(target_with(&bad), WR_STATUS_OUT_OF_RANGE);
  replica.dp_rank = WR_UNKNOWN;
  replica.struct_size = 3;
  CHECK_STATUS(target_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.replica_count = 2;
  bad.replica_stride = 8;
  CHECK_STATUS(target_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad.replicas = NULL;
  CHECK_STATUS(target_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  bad = target;
  bad.engine = bad_text();
  CHECK_STATUS(target_with(&bad), WR_STATUS_INVALID_ARGUMENT);
  wrong = options;
  wrong.abi_version = WR_ABI_VERSION + 1;
  CHECK_STATUS(poller_with(&wrong), WR_STATUS_ABI_MISMATCH);
  wrong = options;
  wrong.interval_ns = 0;
  CHECK_STATUS(poller_with(&wrong), WR_STATUS_INVALID_ARGUMENT);
  wrong = options;
  wrong.table_count = 1;
  CHECK_STATUS(poller_with(&wrong), WR_STATUS_INVALID_ARGUMENT);
  table = text("[]");
  wrong.tables = &table;
  CHECK_STATUS(poller_with(&wrong), WR_STATUS_NOT_AN_OBJECT);
  wr_poller_free(shared_poller);
  wr_router_free(shared_router);
}

TEST(EveryNullOfPollersIsRefused) {
  wr_poller* poller = NULL;
  wr_poller_status status = WR_POLLER_STATUS_INIT;
  const wr_poller_target target = WR_POLLER_TARGET_INIT;
  CHECK_STATUS(wr_poller_new(NULL, NULL, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_poller_new(NULL, NULL, &poller, NULL));
  CHECK_STATUS(wr_poller_add(NULL, &target, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_poller_add(poller, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_poller_add(poller, &target, NULL), WR_STATUS_INVALID_ARGUMENT); /* no url */
  CHECK_STATUS(wr_poller_remove(NULL, text("a"), NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_poller_remove(poller, bad_text(), NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_poller_read_status(NULL, text("a"), &status, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_poller_read_status(poller, bad_text(), &status, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_poller_read_status(poller, text("a"), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  wr_poller_free(poller);
  wr_poller_free(NULL);
}

TESTS(CASE(PagesBecomeSignalsAsOfTheCallersClock), CASE(WithoutARouterPagesGoToTheCallbackAndFailuresAreTold),
      CASE(PollerStructsOfEverySizeGetWhatTheyDeserve), CASE(EveryNullOfPollersIsRefused))
