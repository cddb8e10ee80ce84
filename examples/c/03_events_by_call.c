/* Engines say which blocks they hold (vLLM's and SGLang's KV events): tell the router, and it believes them instead of guessing. */
#include <stdio.h>

#include <warmroute.h>

enum { kTokens = 64, kBlocks = 4, kSecond = 1000000000 };

static int64_t cached_on(wr_router* router, wr_replica_id id, const uint32_t* tokens) {
  wr_request request = WR_REQUEST_INIT;
  wr_decision decision = WR_DECISION_INIT;
  request.token_ids = tokens;
  request.token_count = kTokens;
  request.pinned = id; /* ask about this replica alone; peek books nothing */
  if (wr_router_peek(router, &request, kSecond, &decision, NULL) != WR_STATUS_OK) return -1;
  return decision.cached_tokens[WR_TIER_DEVICE];
}

int main(void) {
  uint32_t tokens[kTokens];
  const uint64_t names[kBlocks] = {9001, 9002, 9003, 9004}; /* the engine's own block hashes: opaque here */
  wr_router* router = NULL;
  wr_replica_spec spec = WR_REPLICA_SPEC_INIT;
  wr_replica_id id;
  wr_stored_blocks stored = WR_STORED_BLOCKS_INIT;
  wr_error err = WR_ERROR_INIT;
  const uint64_t never_seen = 4711;
  int64_t before, after, evicted;
  size_t removed = 0;
  uint32_t i;

  for (i = 0; i < kTokens; ++i) tokens[i] = i;
  spec.name.data = "gpu-0";
  spec.name.size = 5;
  if (wr_router_new(NULL, &router, &err) != WR_STATUS_OK) return 1;
  if (wr_router_add_replica(router, &spec, kSecond, &id, &err) != WR_STATUS_OK) return 1;
  before = cached_on(router, id, tokens);

  /* BlockStored: the first two blocks of the prompt, by their token ids. */
  stored.ids = names;
  stored.count = 2;
  stored.token_ids = tokens;
  stored.token_count = 32; /* count times the policy's block_size, 16 */
  if (wr_router_blocks_stored(router, id, &stored, kSecond, &err) != WR_STATUS_OK) return 1;
  /* The next event goes on from there: it names the block before. */
  stored.parent = &names[1];
  stored.ids = names + 2;
  stored.token_ids = tokens + 32;
  if (wr_router_blocks_stored(router, id, &stored, kSecond, &err) != WR_STATUS_OK) return 1;
  after = cached_on(router, id, tokens);

  /* An event whose parent was never seen (a gap in the stream) stores nothing; the caller replays, or clears the cache. */
  stored.parent = &never_seen;
  if (wr_router_blocks_stored(router, id, &stored, kSecond, &err) != WR_STATUS_NOT_FOUND) return 1;
  printf("a gap: %s\n", err.message);

  /* BlockRemoved: evicted from the middle, so what lies behind is of no use any more. */
  if (wr_router_blocks_removed(router, id, WR_TIER_DEVICE, &names[1], 1, kSecond, &removed, &err) != WR_STATUS_OK)
    return 1;
  evicted = cached_on(router, id, tokens);
  printf("cached tokens of %d: %lld before, %lld after the events, %lld after an eviction\n", kTokens,
         (long long)before, (long long)after, (long long)evicted);

  /* AllBlocksCleared, or the engine restarted. */
  if (wr_router_clear_cache(router, id, kSecond, &err) != WR_STATUS_OK) return 1;
  printf("after a restart: %lld\n", (long long)cached_on(router, id, tokens));
  wr_router_free(router);
  return before == 0 && after == 48 && evicted == 16 ? 0 : 1; /* the last token is always computed: 48, not 64 */
}
