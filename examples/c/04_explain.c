/* From the body of a request to the reasons of a decision: every candidate, what it holds, what each term costs. */
#include <stdio.h>
#include <stdlib.h>

#include <warmroute.h>

enum { kSecond = 1000000000 };

static const char kBody[] =
    "{\"model\": \"llama\", \"max_tokens\": 100, \"messages\": [{\"role\": \"system\", \"content\": \"You are a "
    "careful "
    "assistant. You answer in whole sentences, and you say where you know it from.\"}, {\"role\": \"user\", "
    "\"content\": "
    "\"Which way is north?\"}]}";

int main(void) {
  const wr_str body = {kBody, sizeof kBody - 1}, path = {"/v1/chat/completions", 20};
  const wr_str names[3] = {{"gpu-0", 5}, {"gpu-1", 5}, {"gpu-2", 5}};
  wr_router* router = NULL;
  wr_body_parser* parser = NULL; /* one per thread; it keeps its memory from body to body */
  wr_body read = WR_BODY_INIT;
  wr_request request = WR_REQUEST_INIT;
  wr_decision decision = WR_DECISION_INIT;
  wr_error err = WR_ERROR_INIT;
  uint32_t api = 0;
  size_t needed = 0, i;
  char* table;

  if (wr_router_new(NULL, &router, &err) != WR_STATUS_OK || wr_body_parser_new(&parser, &err) != WR_STATUS_OK) return 1;
  for (i = 0; i < 3; ++i) {
    wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
    wr_replica_id id;
    spec.name = names[i];
    if (wr_router_add_replica(router, &spec, kSecond, &id, &err) != WR_STATUS_OK) return 1;
  }

  /* No tokenizer: blocks are cut from the canonical text. An error says at which byte the body is wrong. */
  if (wr_api_for_path(path, &api, &err) != WR_STATUS_OK ||
      wr_body_parser_parse(parser, api, body, NULL, &read, &err) != WR_STATUS_OK ||
      wr_body_to_request(&read, &request, &err) != WR_STATUS_OK) {
    fprintf(stderr, "%s at byte %llu\n", err.message, (unsigned long long)err.offset);
    return 1;
  }

  /* Once through, so that somebody holds it and somebody is busy. */
  if (wr_router_route(router, &request, kSecond, &decision, &err) != WR_STATUS_OK) return 1;
  wr_router_first_token(router, decision.ticket, kSecond + 50000000);

  /* Text results take two calls: the size first, then the text. Nothing is booked. */
  if (wr_router_explain_text(router, &request, 2 * (int64_t)kSecond, NULL, 0, &needed, &err) != WR_STATUS_OK) return 1;
  table = malloc(needed);
  if (table == NULL) return 1;
  if (wr_router_explain_text(router, &request, 2 * (int64_t)kSecond, table, needed, &needed, &err) != WR_STATUS_OK)
    return 1;
  printf("%s", table);
  free(table);

  /* wr_router_explain_json gives the same to machines. */
  wr_router_finish(router, decision.ticket, NULL, 3 * (int64_t)kSecond);
  wr_body_parser_free(parser);
  wr_router_free(router);
  return 0;
}
