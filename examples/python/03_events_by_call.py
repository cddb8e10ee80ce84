"""Engines that publish KV events: hand them to the router, and it routes by what is really held, not by what it believes."""

import numpy

import warmroute

BLOCK = 16
router = warmroute.Router(warmroute.Policy(block_size=BLOCK))
first, second = (router.add_replica(name) for name in ("engine-0", "engine-1"))

prompt = numpy.arange(4 * BLOCK + 5, dtype=numpy.uint32)  # four whole blocks and a tail
names = numpy.array([9001, 9002, 9003, 9004], dtype=numpy.uint64)  # what the engine calls its blocks: opaque to us

# BlockStored of engine-1: the first two blocks of the prompt, then two more behind block 9002.
router.blocks_stored(second, names[:2], token_ids=prompt[: 2 * BLOCK])
router.blocks_stored(second, names[2:], parent=9002, token_ids=prompt[2 * BLOCK : 4 * BLOCK])
decision = router.peek(prompt)
assert decision.replica == second and decision.cached_tokens == 4 * BLOCK
print("after two BlockStored:", router.replica(decision.replica).name, decision.cached_tokens, "tokens")

# Only engine-1 holds it, and only in host memory from the third block on.
router.blocks_stored(second, names[2:], parent=9002, token_ids=prompt[2 * BLOCK : 4 * BLOCK], tier="host")
router.blocks_removed(second, names[2:])
print("offloaded:", router.peek(prompt).cached_tokens_by_tier, "(device, host, disk)")

# BlockRemoved: what lies behind a hole cannot be used.
router.blocks_removed(second, names[1:2])
print("after BlockRemoved:", router.peek(prompt).cached_tokens, "tokens")

# An event whose parent is unknown is refused and counted: the source lost messages, clear it and ask for a replay.
try:
    router.blocks_stored(second, names[3:], parent=4242, token_ids=prompt[:BLOCK])
except warmroute.Error as error:
    print("refused:", error.code)
    router.clear_cache(second)  # AllBlocksCleared does the same
print("cleared:", router.peek(prompt).cached_tokens, "tokens;", router.statistics().event_orphans, "orphan")
