/* 7 Requests: what is read from a JSON body. */
#include "helpers.h"

static const char kChat[] =
    "{\"model\": \"m\", \"stream\": true, \"stream_options\": {\"include_usage\": true}, \"max_tokens\": 50, "
    "\"user\": \"u-1\", \"messages\": [{\"role\": \"system\", \"content\": \"You are a careful assistant who answers "
    "in whole sentences and names the sources.\"}, {\"role\": \"user\", \"content\": \"Which way is north?\"}]}";

static wr_body_parser* new_parser(void) {
  wr_body_parser* parser = NULL;
  CHECK_OK(wr_body_parser_new(&parser, NULL));
  return parser;
}

static int equals(wr_str s, const char* wanted) {
  return s.size == strlen(wanted) && (s.size == 0 || memcmp(s.data, wanted, s.size) == 0);
}

TEST(PathsNameTheFormat) {
  static const struct {
    const char* path;
    uint32_t api;
  } cases[] = {{"/v1/chat/completions", WR_API_CHAT},
               {"/v1/completions", WR_API_COMPLETIONS},
               {"/v1/responses", WR_API_RESPONSES},
               {"/v1/embeddings", WR_API_EMBEDDINGS},
               {"/team-a/v1/messages?beta=true", WR_API_MESSAGES},
               {"/v1beta/models/g:streamGenerateContent?alt=sse", WR_API_GEMINI},
               {"/model/m/converse", WR_API_CONVERSE}};
  uint32_t api = 77;
  size_t i;
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    CHECK_OK(wr_api_for_path(text(cases[i].path), &api, NULL));
    CHECK_EQ(api, cases[i].api);
  }
  api = 77;
  CHECK_STATUS(wr_api_for_path(text("/v1/models"), &api, NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_api_for_path(text(""), &api, NULL), WR_STATUS_NOT_FOUND);
  CHECK_STATUS(wr_api_for_path(bad_text(), &api, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_api_for_path(text("/v1/responses"), NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(api, 77);
}

TEST(AChatIsReadAndBecomesARequest) {
  wr_body_parser* parser = new_parser();
  wr_body body = WR_BODY_INIT;
  wr_request request = WR_REQUEST_INIT;
  CHECK_OK(wr_body_parser_parse(parser, WR_API_CHAT, text(kChat), NULL, &body, NULL));
  CHECK(equals(body.model, "m") && equals(body.user, "u-1") && equals(body.session, ""));
  CHECK_EQ(body.prompt_kind, WR_PROMPT_CHAT);
  CHECK_EQ(body.stream, 1);
  CHECK_EQ(body.include_usage, 1);
  CHECK_EQ(body.max_output_tokens, 50);
  CHECK_EQ(body.prompt_count, 1);
  CHECK_EQ(body.block_kind, WR_BLOCKS_TEXT);
  CHECK_EQ(body.block_count, body.prompt_bytes / WR_TEXT_BLOCK_BYTES);
  CHECK(body.block_count > 0 && body.block_hashes != NULL);
  CHECK_EQ(body.input_tokens, WR_UNKNOWN);
  CHECK_EQ(body.token_count, 0);
  CHECK_OK(wr_body_to_request(&body, &request, NULL));
  CHECK(equals(request.model, "m"));
  CHECK_EQ(request.struct_size, sizeof request);
  CHECK_EQ(request.stream, 1);
  CHECK_EQ(request.max_output_tokens, 50);
  CHECK_EQ(request.block_kind, WR_BLOCKS_TEXT);
  CHECK(request.block_hashes == body.block_hashes && request.block_count == body.block_count);
  CHECK_EQ(request.prompt_bytes, body.prompt_bytes);
  CHECK_EQ(request.pinned.slot, WR_NO_SLOT);
  wr_body_parser_free(parser);
  wr_body_parser_free(NULL);
}

TEST(IdsInTheBodyAreTokenBlocks) {
  wr_body_parser* parser = new_parser();
  wr_body body = WR_BODY_INIT;
  wr_request request = WR_REQUEST_INIT;
  uint64_t hashes[2];
  size_t count = 0;
  CHECK_OK(wr_body_parser_parse(parser, WR_API_COMPLETIONS,
                                text("{\"model\":\"m\",\"prompt\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}"), NULL,
                                &body, NULL));
  CHECK_EQ(body.prompt_kind, WR_PROMPT_TOKENS);
  CHECK_EQ(body.block_kind, WR_BLOCKS_TOKENS);
  CHECK_EQ(body.ids_from_body, 1);
  CHECK_EQ(body.token_count, 17);
  CHECK_EQ(body.token_ids[16], 17);
  CHECK_EQ(body.input_tokens, 17);
  CHECK_EQ(body.block_count, 1);
  CHECK_OK(wr_hash_token_blocks(body.token_ids, body.token_count, 16, WR_DYNAMO_HASH_SEED, hashes, 2, &count, NULL));
  CHECK(body.block_hashes[0] == hashes[0]);
  CHECK_OK(wr_body_to_request(&body, &request, NULL));
  CHECK_EQ(request.prompt_bytes, WR_UNKNOWN);
  wr_body_parser_free(parser);
}

/* A tokenizer of one id per byte; `asked` is how often, `cap` the first room it was given. */
typedef struct toy {
  size_t asked;
  size_t first_cap;
  size_t never_enough;
} toy;
static size_t encode(void* user, wr_str prompt, uint32_t* out, size_t cap) {
  toy* t = user;
  size_t i;
  if (t->asked++ == 0) t->first_cap = cap;
  if (t->never_enough) return cap + 1;
  for (i = 0; i < prompt.size && i < cap; ++i) out[i] = (unsigned char)prompt.data[i];
  return prompt.size;
}

TEST(ATokenizerGivesIdsAndMayAskForMoreRoom) {
  enum { kLong = 100000 };
  wr_body_parser* parser = new_parser();
  wr_body body = WR_BODY_INIT;
  wr_body_options options = WR_BODY_OPTIONS_INIT;
  toy t = {0, 0, 0};
  char* json = malloc(kLong + 64);
  wr_str s;
  int n;
  CHECK(json != NULL);
  n = sprintf(json, "{\"model\":\"m\",\"prompt\":\"");
  memset(json + n, 'p', kLong);
  memcpy(json + n + kLong, "\"}", 2);
  s.data = json;
  s.size = (size_t)n + kLong + 2;
  options.tokenizer = encode;
  options.tokenizer_user = &t;
  CHECK_OK(wr_body_parser_parse(parser, WR_API_COMPLETIONS, s, &options, &body, NULL));
  CHECK(t.first_cap < kLong ? t.asked == 2 : t.asked == 1);
  CHECK_EQ(body.token_count, kLong);
  CHECK_EQ(body.input_tokens, kLong);
  CHECK_EQ(body.block_kind, WR_BLOCKS_TOKENS);
  CHECK_EQ(body.block_count, kLong / 16);
  CHECK_EQ(body.ids_from_body, 0);
  t.never_enough = 1;
  CHECK_STATUS(wr_body_parser_parse(parser, WR_API_COMPLETIONS, s, &options, &body, NULL), WR_STATUS_INTERNAL);
  CHECK_EQ(body.token_count, kLong); /* untouched */
  free(json);
  wr_body_parser_free(parser);
}

static size_t encode_eightfold(void* user, wr_str prompt, uint32_t* out, size_t cap) {
  size_t* seen = user;
  const size_t count = prompt.size * 8;
  size_t i;
  ++seen[0];
  seen[1] = count;
  for (i = 0; i < count && i < cap; ++i) out[i] = (uint32_t)i;
  return count;
}

TEST(ATokenizerIsAskedAgainWhenItsRoomWasTooSmall) {
  /* Eight ids per byte are more than any first room. */
  wr_body_parser* parser = new_parser();
  wr_body body = WR_BODY_INIT;
  wr_body_options options = WR_BODY_OPTIONS_INIT;
  size_t seen[2] = {0, 0};
  options.tokenizer = encode_eightfold;
  options.tokenizer_user = seen;
  CHECK_OK(wr_body_parser_parse(parser, WR_API_CHAT, text(kChat), &options, &body, NULL));
  CHECK_EQ(seen[0], 2);
  CHECK_EQ(body.token_count, seen[1]);
  CHECK_EQ(body.token_ids[body.token_count - 1], body.token_count - 1);
  wr_body_parser_free(parser);
}

TEST(AllPromptsOfABodyCanBeToldApart) {
  wr_body_parser* parser = new_parser();
  wr_body body = WR_BODY_INIT;
  wr_body_options options = WR_BODY_OPTIONS_INIT;
  toy t = {0, 0, 0};
  CHECK_OK(
      wr_body_parser_parse(parser, WR_API_COMPLETIONS, text("{\"prompt\":[[5,6,7],[8],[9,10]]}"), NULL, &body, NULL));
  CHECK_EQ(body.prompt_count, 3);
  CHECK_EQ(body.token_count, 3);
  CHECK_EQ(body.all_token_count, 6);
  CHECK(body.all_token_ids == body.token_ids);
  CHECK(body.all_token_ids[3] == 8 && body.all_token_ids[5] == 10);
  CHECK(body.prompt_ends[0] == 3 && body.prompt_ends[1] == 4 && body.prompt_ends[2] == 6);
  CHECK_OK(wr_body_parser_parse(parser, WR_API_CHAT, text(kChat), NULL, &body, NULL));
  CHECK(body.all_token_ids == NULL && body.all_token_count == 0 && body.prompt_ends == NULL);
  options.tokenizer = encode;
  options.tokenizer_user = &t;
  CHECK_OK(wr_body_parser_parse(parser, WR_API_COMPLETIONS, text("{\"prompt\":[\"ab\",\"\",\"c\"]}"), &options, &body,
                                NULL));
  CHECK_EQ(body.prompt_count, 3);
  CHECK_EQ(body.all_token_count, 3);
  CHECK(body.prompt_ends[0] == 2 && body.prompt_ends[1] == 2 && body.prompt_ends[2] == 3);
  CHECK_EQ(body.all_token_ids[2], 'c');
  CHECK_OK(wr_body_parser_parse(parser, WR_API_CHAT, text(kChat), &options, &body, NULL));
  CHECK_EQ(body.prompt_count, 1);
  CHECK_EQ(body.prompt_ends[0], body.all_token_count);
  CHECK_EQ(body.all_token_count, body.token_count);
  wr_body_parser_free(parser);
}

TEST(BadBodiesSayWhereAndTouchNothing) {
  static const struct {
    const char* json;
    wr_status status;
    uint64_t offset; /* UINT64_MAX - 1: any */
  } cases[] = {{"{\"model\": \"m\", \"messages\": [", WR_STATUS_INVALID_JSON, UINT64_MAX - 1},
               {"[]", WR_STATUS_NOT_AN_OBJECT, UINT64_MAX - 1},
               {"{\"model\": \"m\"}", WR_STATUS_MISSING_FIELD, UINT64_MAX - 1},
               {"{\"model\": 5, \"messages\": []}", WR_STATUS_WRONG_TYPE, 10},
               {"{\"model\": \"m\", \"messages\": []}", WR_STATUS_EMPTY_PROMPT, UINT64_MAX - 1},
               {"{\"model\": \"\xFF\"}", WR_STATUS_INVALID_UTF8, 11}};
  wr_body_parser* parser = new_parser();
  wr_body body, before;
  wr_body_options options = WR_BODY_OPTIONS_INIT;
  size_t i;
  paint(&body, sizeof body);
  body.struct_size = sizeof body;
  before = body;
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    wr_error err = WR_ERROR_INIT;
    CHECK_STATUS(wr_body_parser_parse(parser, WR_API_CHAT, text(cases[i].json), NULL, &body, &err), cases[i].status);
    CHECK_EQ(err.status, cases[i].status);
    CHECK(strlen(err.message) > 0);
    CHECK(err.offset <= strlen(cases[i].json));
    if (cases[i].offset != UINT64_MAX - 1) CHECK_EQ(err.offset, cases[i].offset);
  }
  CHECK_STATUS(wr_body_parser_parse(parser, 7, text(kChat), NULL, &body, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_body_parser_parse(parser, 256, text(kChat), NULL, &body, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_body_parser_parse(NULL, 0, text(kChat), NULL, &body, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_body_parser_parse(parser, 0, bad_text(), NULL, &body, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_body_parser_parse(parser, 0, text(""), NULL, &body, NULL), WR_STATUS_INVALID_JSON);
  options.max_bytes = 20;
  CHECK_STATUS(wr_body_parser_parse(parser, 0, text(kChat), &options, &body, NULL), WR_STATUS_TOO_LARGE);
  options.max_bytes = 1000;
  options.max_depth = 2;
  CHECK_STATUS(wr_body_parser_parse(parser, 0, text(kChat), &options, &body, NULL), WR_STATUS_TOO_DEEP);
  options.max_depth = 64;
  options.block_size = 0;
  CHECK_STATUS(wr_body_parser_parse(parser, 0, text(kChat), &options, &body, NULL), WR_STATUS_INVALID_ARGUMENT);
  options.block_size = 16;
  options.isolation = 3;
  CHECK_STATUS(wr_body_parser_parse(parser, 0, text(kChat), &options, &body, NULL), WR_STATUS_OUT_OF_RANGE);
  options.isolation = 0;
  options.tenant = bad_text();
  CHECK_STATUS(wr_body_parser_parse(parser, 0, text(kChat), &options, &body, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK(memcmp(&body, &before, sizeof body) == 0);
  CHECK_STATUS(wr_body_parser_new(NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_OK(wr_body_parser_parse(parser, 0, text(kChat), NULL, &body, NULL)); /* and the parser goes on */
  wr_body_parser_free(parser);
}

static wr_body_parser* shared_parser;
static wr_body shared_body;
static wr_status parse_with(const void* options) {
  wr_body body = WR_BODY_INIT;
  return wr_body_parser_parse(shared_parser, WR_API_CHAT, text(kChat), options, &body, NULL);
}
static wr_status parse_into(void* body) {
  return wr_body_parser_parse(shared_parser, WR_API_CHAT, text(kChat), NULL, body, NULL);
}
static wr_status request_from(const void* body) {
  wr_request request = WR_REQUEST_INIT;
  return wr_body_to_request(body, &request, NULL);
}
static wr_status request_into(void* request) { return wr_body_to_request(&shared_body, request, NULL); }
static wr_status canonical_with(const void* options) {
  size_t needed = 0;
  return wr_canonical_prompt(WR_API_CHAT, text(kChat), options, NULL, 0, &needed, NULL);
}
static wr_policy shared_policy;
static wr_status options_for(void* options) { return wr_body_options_for(&shared_policy, options, NULL); }
static wr_status options_of(const void* policy) {
  wr_body_options options = WR_BODY_OPTIONS_INIT;
  return wr_body_options_for(policy, &options, NULL);
}

TEST(BodyStructsOfEverySizeGetWhatTheyDeserve) {
  const wr_body_options options = WR_BODY_OPTIONS_INIT;
  const wr_body body = WR_BODY_INIT;
  const wr_request request = WR_REQUEST_INIT;
  shared_parser = new_parser();
  shared_body = body;
  shared_policy.struct_size = sizeof shared_policy;
  CHECK_OK(wr_policy_init(&shared_policy, NULL));
  check_input_sizes(&options, sizeof options, offsetof(wr_body_options, reserved), WR_STATUS_OK, parse_with);
  check_input_sizes(&options, sizeof options, offsetof(wr_body_options, reserved), WR_STATUS_OK, canonical_with);
  check_input_sizes(&body, sizeof body, offsetof(wr_body, reserved), WR_STATUS_OK, request_from);
  check_grown_input_sizes(&shared_policy, offsetof(wr_policy, disaggregate), sizeof shared_policy,
                          offsetof(wr_policy, reserved), WR_STATUS_OK, options_of);
  check_output_sizes(&body, sizeof body, 1, parse_into);
  check_output_sizes(&request, sizeof request, 1, request_into);
  check_output_sizes(&options, sizeof options, 1, options_for);
  wr_body_parser_free(shared_parser);
}

TEST(OptionsFollowThePolicyAndKeepTheRest) {
  wr_body_options options = WR_BODY_OPTIONS_INIT;
  wr_policy policy;
  policy.struct_size = sizeof policy;
  CHECK_OK(wr_policy_init(&policy, NULL));
  policy.block_size = 64;
  policy.hash_seed = 5;
  policy.isolation = WR_ISOLATION_NONE;
  options.max_depth = 9;
  options.tenant = text("t");
  CHECK_OK(wr_body_options_for(&policy, &options, NULL));
  CHECK_EQ(options.block_size, 64);
  CHECK_EQ(options.hash_seed, 5);
  CHECK_EQ(options.isolation, WR_ISOLATION_NONE);
  CHECK_EQ(options.max_depth, 9);
  CHECK(equals(options.tenant, "t"));
  CHECK_STATUS(wr_body_options_for(NULL, &options, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_body_options_for(&policy, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  policy.isolation = 9;
  CHECK_STATUS(wr_body_options_for(&policy, &options, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(options.isolation, WR_ISOLATION_NONE);
}

static wr_status give_prompt(char* buf, size_t cap, size_t* needed, wr_error* err) {
  return wr_canonical_prompt(WR_API_COMPLETIONS, text("{\"model\":\"m\",\"prompt\":\"gr\\u00fc\\u00df dich\"}"), NULL,
                             (uint8_t*)buf, cap, needed, err);
}

TEST(TheCanonicalPromptIsWhatBlocksAreCutFrom) {
  static const char prompt[] = "gr\xC3\xBC\xC3\x9F dich";
  size_t size = 0, needed = 77;
  char* got = check_two_calls(give_prompt, &size);
  CHECK_EQ(size, sizeof prompt - 1); /* bytes, no NUL */
  CHECK(memcmp(got, prompt, size) == 0);
  free(got);
  CHECK_STATUS(wr_canonical_prompt(7, text(kChat), NULL, NULL, 0, &needed, NULL), WR_STATUS_OUT_OF_RANGE);
  CHECK_STATUS(wr_canonical_prompt(0, bad_text(), NULL, NULL, 0, &needed, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(wr_canonical_prompt(0, text("{"), NULL, NULL, 0, &needed, NULL), WR_STATUS_INVALID_JSON);
  CHECK_STATUS(wr_canonical_prompt(0, text(kChat), NULL, NULL, 0, NULL, NULL), WR_STATUS_INVALID_ARGUMENT);
  CHECK_EQ(needed, 77);
}

TESTS(CASE(PathsNameTheFormat), CASE(AChatIsReadAndBecomesARequest), CASE(IdsInTheBodyAreTokenBlocks),
      CASE(ATokenizerGivesIdsAndMayAskForMoreRoom), CASE(ATokenizerIsAskedAgainWhenItsRoomWasTooSmall),
      CASE(AllPromptsOfABodyCanBeToldApart), CASE(BadBodiesSayWhereAndTouchNothing),
      CASE(BodyStructsOfEverySizeGetWhatTheyDeserve), CASE(OptionsFollowThePolicyAndKeepTheRest),
      CASE(TheCanonicalPromptIsWhatBlocksAreCutFrom))
