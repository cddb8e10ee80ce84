/* Two copies of the shared library in one process, beside the program's own libstdc++ and a simdjson and Abseil that are visible to all:
   each has its own code and data, one may be unloaded while the other works, and may come back.
   usage: beside_test <copy one> <copy two> [library that is loaded before, globally]... */
#include <dlfcn.h>

#include "check.h"

/* host.cpp: what a C++ program does with its own libstdc++. returns: 1 if all of it still works. */
int host_cpp_works(void);

/* clang-format off */
#define FUNCTIONS(X) \
  X(wr_version) \
  X(wr_router_new) \
  X(wr_router_free) \
  X(wr_router_add_replica) \
  X(wr_router_route) \
  X(wr_router_first_token) \
  X(wr_router_finish) X(wr_router_explain_json) X(wr_router_prometheus) X(wr_router_statistics) X(wr_body_parser_new) \
      X(wr_body_parser_free) X(wr_body_parser_parse) X(wr_body_to_request) X(wr_policy_from_json) X(wr_policy_init) \
          X(wr_router_export_caches) X(wr_router_import_caches) X(wr_ring_new) X(wr_ring_home) X(wr_ring_free)
/* clang-format on */

/* The functions under their own types: a pointer and a member per name, declared from the header's own declarations. */
typedef struct copy {
  void* handle;
#define MEMBER(name) __typeof__(&(name)) name##_;
  FUNCTIONS(MEMBER)
#undef MEMBER
  wr_router* router;
  int64_t now_ns;
} copy;

static void load(copy* c, const char* path, int scope) {
  memset(c, 0, sizeof *c);
  c->handle = dlopen(path, RTLD_NOW | scope);
  if (c->handle == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(c->handle != NULL);
#define LOOK_UP(name)                                                \
  do {                                                               \
    void* found = dlsym(c->handle, #name);                           \
    CHECK(found != NULL);                                            \
    memcpy(&c->name##_, &found, sizeof found); /* C99 has no cast */ \
  } while (0);
  FUNCTIONS(LOOK_UP)
#undef LOOK_UP
}

static void start(copy* c) {
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id id;
  CHECK(c->wr_router_new_(NULL, &c->router, NULL) == WR_STATUS_OK);
  spec.name.data = "gpu-0";
  spec.name.size = 5;
  CHECK(c->wr_router_add_replica_(c->router, &spec, 1, &id, NULL) == WR_STATUS_OK);
}

/* Something of every part: JSON (simdjson), numbers to text (Abseil), encryption (OpenSSL), errors, the ring, the router. */
static void use(copy* c) {
  static const char json[] =
      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Which way is north, and how do "
      "you know it without a compass at hand?\"}]}";
  wr_str body = {json, sizeof json - 1}, bad = {"{", 1}, knobs = {"{\"beta\": 1.5}", 13};
  wr_body_parser* parser = NULL;
  wr_body read = WR_BODY_INIT;
  wr_request request = WR_REQUEST_INIT;
  wr_decision d = WR_DECISION_INIT;
  wr_error err = WR_ERROR_INIT;
  wr_policy policy;
  wr_ring_member member = WR_RING_MEMBER_INIT;
  wr_ring* ring = NULL;
  static char page[65536];
  static uint8_t cache[65536], key[WR_CACHE_KEY_BYTES];
  size_t needed = 0;
  policy.struct_size = sizeof policy;
  c->now_ns += 1000000000;
  CHECK(c->wr_policy_init_(&policy, NULL) == WR_STATUS_OK);
  CHECK(c->wr_policy_from_json_(knobs, &policy, NULL) == WR_STATUS_OK && policy.beta == 1.5);
  CHECK(c->wr_body_parser_new_(&parser, NULL) == WR_STATUS_OK);
  CHECK(c->wr_body_parser_parse_(parser, WR_API_CHAT, bad, NULL, &read, &err) == WR_STATUS_INVALID_JSON);
  CHECK(c->wr_body_parser_parse_(parser, WR_API_CHAT, body, NULL, &read, NULL) == WR_STATUS_OK);
  CHECK(c->wr_body_to_request_(&read, &request, NULL) == WR_STATUS_OK);
  CHECK(c->wr_router_route_(c->router, &request, c->now_ns, &d, NULL) == WR_STATUS_OK);
  CHECK(d.verdict == WR_VERDICT_ROUTED);
  CHECK(c->wr_router_first_token_(c->router, d.ticket, c->now_ns) == WR_STATUS_OK);
  CHECK(c->wr_router_finish_(c->router, d.ticket, NULL, c->now_ns) == WR_STATUS_OK);
  CHECK(c->wr_router_explain_json_(c->router, &request, c->now_ns, page, sizeof page, &needed, NULL) == WR_STATUS_OK);
  CHECK(c->wr_router_prometheus_(c->router, page, sizeof page, &needed, NULL) == WR_STATUS_OK);
  c->wr_body_parser_free_(parser);
  CHECK(c->wr_router_export_caches_(c->router, key, c->now_ns, cache, sizeof cache, &needed, NULL) == WR_STATUS_OK);
  CHECK(c->wr_router_import_caches_(c->router, cache, needed, key, c->now_ns, 0, NULL, NULL) == WR_STATUS_OK);
  member.ring_id.data = "gpu-0";
  member.ring_id.size = 5;
  CHECK(c->wr_ring_new_(&member, 1, 0, NULL, &ring, NULL) == WR_STATUS_OK);
  CHECK(c->wr_ring_home_(ring, 5) == 0);
  c->wr_ring_free_(ring);
  CHECK(host_cpp_works());
}

static uint64_t routed(copy* c) {
  wr_statistics s;
  s.struct_size = sizeof s;
  CHECK(c->wr_router_statistics_(c->router, &s, NULL) == WR_STATUS_OK);
  return s.verdicts[WR_VERDICT_ROUTED];
}

int main(int argc, char** argv) {
  copy one, two;
  int i;
  CHECK(argc >= 3);
  CHECK(host_cpp_works());
  for (i = 3; i < argc; ++i) {
    void* other = dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL);
    if (other == NULL) fprintf(stderr, "%s\n", dlerror());
    CHECK(other != NULL);
  }
  load(&one, argv[1], RTLD_LOCAL);
  load(&two, argv[2], RTLD_GLOBAL);
  CHECK(one.wr_router_route_ != two.wr_router_route_); /* two copies indeed */
  CHECK(one.wr_version_ != two.wr_version_ && one.wr_version_() != two.wr_version_());
  CHECK_TEXT(one.wr_version_(), two.wr_version_());
  start(&one);
  start(&two);
  for (i = 0; i < 50; ++i) {
    use(&one);
    use(&two);
    use(&two);
  }
  CHECK(routed(&one) == 50 && routed(&two) == 100);
  one.wr_router_free_(one.router);
  CHECK(dlclose(one.handle) == 0);
  CHECK(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL); /* it is gone: nothing in it keeps it loaded */
  for (i = 0; i < 50; ++i) use(&two);
  CHECK(routed(&two) == 150);
  load(&one, argv[1], RTLD_GLOBAL);
  start(&one);
  use(&one);
  use(&two);
  CHECK(routed(&one) == 1 && routed(&two) == 151);
  two.wr_router_free_(two.router);
  one.wr_router_free_(one.router);
  CHECK(dlclose(two.handle) == 0);
  CHECK(dlclose(one.handle) == 0);
  CHECK(host_cpp_works());
  return 0;
}
