"""Routes LLM requests to model-server replicas by KV-cache match and load, inside your process.

    import numpy, warmroute

    router = warmroute.Router()
    for name in ("gpu-0", "gpu-1"):
        router.add_replica(name)
    prompt = numpy.full(1_000, 42, dtype=numpy.uint32)   # token ids; or a request body as bytes
    for turn in (1, 2):
        with router.route(prompt) as ticket:             # which replica, what it holds, why; its load is booked
            print(turn, router.replica(ticket.replica).name, ticket.decision.cached_tokens)
            ticket.first_token()                         # prefill is over
            ticket.usage(output_tokens=200)              # told at the end of the block, where load is released

Times are `now_ns`, of a monotonic clock; left out, they are time.monotonic_ns(). Names are those of C++, flattened.
"""

from __future__ import annotations

from . import _interpreter as _interpreter  # first: importing the extension in a subinterpreter could hang

# isort: split
from ._core import (
    DYNAMO_HASH_SEED,
    MAX_BLOCK_TOKENS,
    TEXT_BLOCK_BYTES,
    Algorithm,
    BlockKind,
    BodyApi,
    BodyParser,
    BoundedPick,
    CacheKind,
    Code,
    Decision,
    Explanation,
    HashRing,
    Health,
    Isolation,
    LogLevel,
    Match,
    Movement,
    Outcome,
    ParsedBody,
    Policy,
    PrefixIndex,
    PromptKind,
    Rates,
    Reason,
    ReplicaSpec,
    Request,
    RingKey,
    RingMember,
    Role,
    Signal,
    SlotSpec,
    SpillOrder,
    StaleSignals,
    Tier,
    Verdict,
    __version__,
    api_for_path,
    block_seed,
    canonical_prompt,
    hash_eagle_blocks,
    hash_multimodal_blocks,
    hash_text_blocks,
    hash_token_blocks,
    hash_token_blocks_chained,
    movement_between,
    replica_generation,
    replica_slot,
    sequence_hashes,
)
from ._error import Error
from ._router import Columns, CostTerm, Prompt, RequestKeywords, Router
from ._statistics import LoadReading, PoolStatistics, ReplicaStatistics, RouterStatistics, TtftStatistics
from ._ticket import Ticket, outcome_of

__all__ = [
    "DYNAMO_HASH_SEED",
    "MAX_BLOCK_TOKENS",
    "TEXT_BLOCK_BYTES",
    "Algorithm",
    "BlockKind",
    "BodyApi",
    "BodyParser",
    "BoundedPick",
    "CacheKind",
    "Code",
    "Columns",
    "CostTerm",
    "Decision",
    "Error",
    "Explanation",
    "HashRing",
    "Health",
    "Isolation",
    "LoadReading",
    "LogLevel",
    "Match",
    "Movement",
    "Outcome",
    "ParsedBody",
    "Policy",
    "PoolStatistics",
    "PrefixIndex",
    "Prompt",
    "PromptKind",
    "Rates",
    "Reason",
    "ReplicaSpec",
    "ReplicaStatistics",
    "Request",
    "RequestKeywords",
    "RingKey",
    "RingMember",
    "Role",
    "Router",
    "RouterStatistics",
    "Signal",
    "SlotSpec",
    "SpillOrder",
    "StaleSignals",
    "Ticket",
    "Tier",
    "TtftStatistics",
    "Verdict",
    "__version__",
    "api_for_path",
    "block_seed",
    "canonical_prompt",
    "hash_eagle_blocks",
    "hash_multimodal_blocks",
    "hash_text_blocks",
    "hash_token_blocks",
    "hash_token_blocks_chained",
    "movement_between",
    "outcome_of",
    "replica_generation",
    "replica_slot",
    "sequence_hashes",
]
