# Written by python/tools/stubs.py from the built extension; do not edit.
"""
The compiled part of warmroute; import warmroute instead.
"""
from __future__ import annotations
import collections.abc
import decimal
import enum
import numpy
import numpy.typing
import typing
__all__ = ['Algorithm', 'AnswerApi', 'BlockKind', 'BodyApi', 'BodyParser', 'BoundedPick', 'CacheKind', 'CalendarUnit', 'Code', 'Cost', 'CostLine', 'CostSource', 'DYNAMO_HASH_SEED', 'Decision', 'DecisionCall', 'DecisionLog', 'DecisionRecord', 'Disaggregate', 'EngineCounters', 'EngineMetrics', 'Explanation', 'FileSource', 'GatewayRing', 'Handover', 'HangupDrain', 'HangupMode', 'HashRing', 'Health', 'Isolation', 'Journal', 'JournalFull', 'JournalKind', 'JournalReader', 'JournalSync', 'KeyDigestKind', 'KeyGrant', 'KeySet', 'KeyVerdict', 'KvNoticeKind', 'KvResync', 'KvSocket', 'KvSource', 'KvSourceState', 'KvSubscriber', 'Ledger', 'LimitDecision', 'LimitKind', 'LimitLeft', 'LimitOutcome', 'LimitProgress', 'LimitUnit', 'Limits', 'LogLevel', 'MAX_BLOCK_TOKENS', 'Match', 'Meter', 'MetricsPoller', 'ModelDecision', 'ModelRouter', 'Movement', 'OnExpired', 'OrphanCharge', 'Outcome', 'ParsedBody', 'Policy', 'PrefixIndex', 'PrefixUnit', 'PriceMeter', 'PriceSlot', 'PriceTable', 'PriceTier', 'PromptKind', 'Rates', 'Reason', 'ReplicaSpec', 'Request', 'RingKey', 'RingMember', 'Role', 'Router', 'Signal', 'SigningKey', 'SlotSpec', 'Snapshot', 'SnapshotApplier', 'SpillOrder', 'Split', 'StaleKeys', 'StaleSignals', 'TEXT_BLOCK_BYTES', 'Tier', 'TokenEstimate', 'TokenEstimator', 'TraceFormat', 'TraceReader', 'TraceRecord', 'TraceWriter', 'USAGE_ANOMALIES', 'Usage', 'UsageAsk', 'UsageChunkFilter', 'UsageReport', 'UsageSource', 'Verdict', 'VerifyingKey', 'Workload', 'advise_pool_ratio', 'api_for_path', 'ask_for_usage', 'block_seed', 'builtin_engine_tables', 'canonical_prompt', 'detect_trace_format', 'digest_of_key', 'estimate_missing', 'focus_header', 'hardware_profiles', 'has_zmq', 'hash_eagle_blocks', 'hash_multimodal_blocks', 'hash_text_blocks', 'hash_token_blocks', 'hash_token_blocks_chained', 'movement_between', 'parse_snapshot', 'read_usage', 'record_focus_rows', 'record_json_line', 'replace_file', 'replay_decision_log', 'replica_generation', 'replica_slot', 'requested_tier', 'routing_rules', 'sequence_hashes', 'sign_snapshot', 'simulate_fleet', 'simulation_views', 'usd', 'verify_snapshot']
class Algorithm(enum.IntEnum):
    """
    How a replica is picked. `cost` is the default; the others are baselines and ways out.
    """
    cost = 0
    random = 1
    round_robin = 2
    least_requests = 3
    least_tokens = 4
    power_of_two = 5
    longest_match = 6
    consistent_hash = 7
    bounded_hash = 8
class BlockKind(enum.IntEnum):
    """
    What a block of a prompt is made of.
    """
    tokens = 0
    text = 1
class BodyApi(enum.IntEnum):
    """
    Which wire format a body is in.
    """
    chat = 0
    completions = 1
    responses = 2
    embeddings = 3
    messages = 4
    gemini = 5
    converse = 6
class CacheKind(enum.IntEnum):
    """
    How an engine keeps what it has computed: paged, blocks that requests share (vLLM, SGLang); slots, whole sequences (llama.cpp).
    """
    paged = 0
    slots = 1
class Health(enum.IntEnum):
    """
    up takes requests; draining finishes what it has; down takes nothing. What it holds is kept.
    """
    up = 0
    draining = 1
    down = 2
class Isolation(enum.IntEnum):
    """
    Which tenants may share cached blocks.
    """
    none = 0
    salt = 1
    pool = 2
class KvNoticeKind(enum.IntEnum):
    """
    What happened to a KvSource.
    """
    gap = 0
    replay_complete = 1
    resync = 2
    restart = 3
    cleared = 4
    orphan = 5
    orphan_attached = 6
    orphan_dropped = 7
    bad_event = 8
    bad_message = 9
    block_size = 10
    unknown_block = 11
class KvResync(enum.IntEnum):
    """
    Why a KvSource cleared the cache.
    """
    none = 0
    gap_without_replay = 1
    replay_overrun = 2
    replay_timeout = 3
    too_much_held = 4
    bad_message = 5
class KvSocket(enum.IntEnum):
    """
    Where frames of KV events come from, by ZeroMQ's names.
    """
    subscriber = 0
    dealer = 1
    req = 2
class KvSourceState(enum.IntEnum):
    """
    waiting: no message yet. live: all that came is applied. replaying: a gap is being filled.
    """
    waiting = 0
    live = 1
    replaying = 2
class LogLevel(enum.IntEnum):
    """
    How loud a log line is.
    """
    debug = 0
    info = 1
    warning = 2
    error = 3
class Outcome(enum.IntEnum):
    """
    How a request ended.
    """
    finished = 0
    cancelled = 1
    client_error = 2
    backpressure = 3
    replica_error = 4
    connect_error = 5
    timeout = 6
    lease_expired = 7
class PrefixUnit(enum.IntEnum):
    """
    What an engine's prefix-cache counters count.
    """
    unknown = 0
    tokens = 1
    blocks = 2
class PromptKind(enum.IntEnum):
    """
    What a body's prompt was given as.
    """
    chat = 0
    text = 1
    tokens = 2
    embedding = 3
class Reason(enum.IntEnum):
    """
    Why this replica and not the one that holds most of the prompt.
    """
    none = 0
    best_match = 1
    no_match = 2
    spill_wait = 3
    spill_decode = 4
    spill_hot = 5
    spill_bound = 6
    session = 7
    home = 8
    pinned = 9
    only_candidate = 10
    baseline = 11
    fail_open = 12
    spill_saturated = 13
class RingKey(enum.IntEnum):
    """
    What the ring's key is made of.
    """
    prefix = 0
    session_or_prefix = 1
class Role(enum.IntEnum):
    """
    What a replica computes.
    """
    unified = 0
    prefill = 1
    decode = 2
class Signal(enum.IntEnum):
    """
    What an engine reports about itself.
    """
    running = 0
    waiting = 1
    kv_usage = 2
    block_tokens = 3
    block_count = 4
    prefix_queries = 5
    prefix_hits = 6
    waiting_tokens = 7
class SpillOrder(enum.IntEnum):
    """
    The order in which a walk leaves the ring's home.
    """
    clockwise = 0
    permuted = 1
class Disaggregate(enum.IntEnum):
    """
    Whether prefill and decode of one request may run on different replicas.
    """
    never = 0
    always = 1
    decided = 2
class Split(enum.IntEnum):
    """
    Whether one replica or two serve a request, and why.
    """
    off = 0
    pair = 1
    unified_cheaper = 2
    short_prompt = 3
    no_prefill = 4
    no_decode = 5
class StaleSignals(enum.IntEnum):
    """
    What an engine signal older than signals_max_age_ns means.
    """
    ignore = 0
    exclude = 1
class Tier(enum.IntEnum):
    """
    Where a KV block lies: in a replica's memory, or in a store that all replicas of its pool share.
    """
    device = 0
    host = 1
    disk = 2
    shared = 3
class Verdict(enum.IntEnum):
    """
    The outcome of a routing call; routed is 0.
    """
    routed = 0
    no_replica = 1
    no_pool = 2
    no_adapter = 3
    all_excluded = 4
    saturated = 5
    ticket_table_full = 6
    not_permitted = 7
    no_permitted_pool = 8
class Code(enum.IntEnum):
    """
    What went wrong; Error.code_number. Numbers are fixed and only appended.
    """
    ok = 0
    invalid_argument = 1
    not_found = 2
    already_exists = 3
    out_of_range = 4
    capacity = 5
    stale = 6
    unsupported = 7
    io = 8
    internal = 9
    out_of_memory = 10
    abi_mismatch = 11
    invalid_json = 20
    invalid_utf8 = 21
    invalid_unicode = 22
    too_deep = 23
    too_large = 24
    not_an_object = 25
    missing_field = 26
    wrong_type = 27
    value_out_of_range = 28
    invalid_value = 29
    empty_prompt = 30
    malformed = 31
class Match:
    """
    The answer to one look-up. shape: uint32[slots], one depth per replica slot seen so far; units: leading blocks.

    The arrays are read-only views; the next match into the same object overwrites them.
    """
    def __len__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def best(self) -> int:
        """
        The deepest match of any replica on any tier.
        """
    @property
    def device(self) -> numpy.typing.NDArray[numpy.uint32]:
        """
        Blocks held on the device.
        """
    @property
    def disk(self) -> numpy.typing.NDArray[numpy.uint32]:
        """
        On any tier.
        """
    @property
    def has_lower_tiers(self) -> bool:
        """
        Whether any lower tier was ever stored; if not, the three arrays are equal.
        """
    @property
    def host(self) -> numpy.typing.NDArray[numpy.uint32]:
        """
        On the device or in host memory.
        """
class PrefixIndex:
    """
    Which replica holds which leading blocks of a prompt, for all replicas at once and per tier.

    Replicas are small ints (slots) or the ints of Router.add_replica. Thread-safe under the GIL.
    """
    def __init__(self, *, max_replicas: typing.SupportsIndex = 1024, max_bytes: typing.SupportsIndex = 1073741824) -> None:
        """
        max_bytes: hard cap on the tree, enforced on insert, oldest leaves first.
        """
    def advance(self, max_nodes: typing.SupportsIndex = 256) -> None:
        """
        Gives back memory of cleared replicas, looking at no more than max_nodes runs.
        """
    def clear(self, replica: typing.SupportsIndex) -> None:
        """
        Forgets all that the replica held, in constant time.
        """
    def hold_event(self, replica: typing.SupportsIndex, ids: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, *, tier: Tier | str = 'device') -> int:
        """
        Blocks that the engine calls so are held on `tier`, too (offloaded, say); unknown ones are skipped.

        shape: ids uint64[n]. returns: how many are known.
        """
    def knows(self, replica: typing.SupportsIndex, id: typing.SupportsIndex) -> bool:
        """
        Whether a block is known by that replica's name for it.
        """
    def match(self, path: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, out: Match | None = None) -> Match:
        """
        How many leading blocks of path each replica holds. shape: path uint64[n].

        out: a Match of this index to use again, which allocates nothing; it is returned.
        """
    def remove(self, replica: typing.SupportsIndex, path: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, first: typing.SupportsIndex = 0, *, tier: Tier | str = 'device') -> int:
        """
        Blocks path[first:] are no longer held there. returns: memberships removed.
        """
    def remove_event(self, replica: typing.SupportsIndex, ids: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, *, tier: Tier | str = 'device') -> int:
        """
        As remove, by the engine's names in any order; unknown ones are skipped. returns: memberships removed.
        """
    def statistics(self) -> dict[str, int]:
        """
        Blocks, memberships, nodes, bytes and what was given up for the byte cap.
        """
    def store(self, replica: typing.SupportsIndex, path: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, first: typing.SupportsIndex = 0, *, tier: Tier | str = 'device') -> None:
        """
        Blocks path[first:] are now held by the replica. shape: path uint64[n], the block hashes from block 0.

        errors: Error out_of_range (slot), stale (an older generation), capacity (no room).
        """
    def store_event(self, replica: typing.SupportsIndex, parent: typing.SupportsIndex | None, ids: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, blocks: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, *, tier: Tier | str = 'device') -> None:
        """
        As store, the way engines say it: blocks follow the block that the engine calls parent (None: block 0).

        shape: ids and blocks uint64[n]. errors: as store; invalid_argument (sizes), not_found (parent).
        """
class RingMember:
    """
    One member of a ring: a stable slot name, the caller's number for it, its weight (> 0).
    """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, ring_id: str, member: typing.SupportsIndex, weight: typing.SupportsFloat | typing.SupportsIndex = 1.0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def member(self) -> int:
        ...
    @property
    def ring_id(self) -> str:
        ...
    @property
    def weight(self) -> float:
        ...
class BoundedPick:
    """
    What a bounded look-up chose.
    """
    def __repr__(self) -> str:
        ...
    @property
    def diverted(self) -> bool:
        """
        Not the first eligible member of the key's order.
        """
    @property
    def member(self) -> int | None:
        """
        None: the ring is empty or nobody is eligible.
        """
    @property
    def over_bound(self) -> bool:
        """
        Nobody was below its share: the least loaded for it.
        """
    @property
    def probes(self) -> int:
        """
        Members whose load was read.
        """
class Movement:
    """
    What a change of the ring moves, exactly: no sampling.
    """
    def __repr__(self) -> str:
        ...
    @property
    def flows(self) -> list[tuple[str, str, int]]:
        """
        (from ring_id, to ring_id, keys), sorted; '' stands for nobody.
        """
    @property
    def fraction(self) -> float:
        """
        moved_keys / 2**64.
        """
    @property
    def key_rule_changed(self) -> bool:
        """
        The same request has another key now: all is moved, flows are empty.
        """
    @property
    def moved_keys(self) -> int:
        """
        Of 2**64 keys.
        """
class HashRing:
    """
    An immutable consistent-hash ring. Keys are uniformly distributed 64-bit hashes.

    A member's points depend on (ring_id, seed) alone: changing one moves keys to or from that one only.
    """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, members: collections.abc.Sequence[RingMember] = [], *, seed: typing.SupportsIndex = 0, points_per_unit: typing.SupportsIndex = 256, max_points: typing.SupportsIndex = 4194304, key_rule: typing.SupportsIndex = 0) -> None:
        """
        shape: members in any order. errors: Error invalid_argument, already_exists, capacity; every fault in the message.
        """
    def __len__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def bounded_pick(self, key: typing.SupportsIndex, loads: numpy.typing.NDArray[numpy.int64], request: typing.SupportsIndex = 1, *, factor: typing.SupportsFloat | typing.SupportsIndex = 1.5, eligible: collections.abc.Sequence[bool] | None = None, order: SpillOrder | str = 'clockwise', spill_seed: typing.SupportsIndex = 0, max_probes: typing.SupportsIndex = 0) -> BoundedPick:
        """
        The first member in the key's order whose load is below factor times its fair share.

        shape: loads int64, indexed by member number, in any unit (tokens, requests), without this request; eligible
        likewise. errors: Error invalid_argument (factor not in 1..1000), ValueError (a member without an entry).
        """
    def home(self, key: typing.SupportsIndex) -> int | None:
        """
        The member whose point comes first at or after key; None for an empty ring.
        """
    def homes(self, keys: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview) -> numpy.typing.NDArray[numpy.uint32]:
        """
        home of every key. shape: uint64[n] -> uint32[n]; 2**32-1 for an empty ring. Releases the GIL.
        """
    def movement_to(self, after: HashRing) -> Movement:
        """
        What moves when `after` replaces this ring.
        """
    def shares(self) -> dict[str, int]:
        """
        ring_id -> exact number of the 2**64 keys.
        """
    def successors(self, key: typing.SupportsIndex, count: typing.SupportsIndex) -> list[int]:
        """
        The first distinct members clockwise from key, home first.
        """
    def with_added(self, added: RingMember) -> HashRing:
        """
        A new ring with one member more; only its share moves. errors: Error already_exists, invalid_argument, capacity.
        """
    def with_member(self, ring_id: str, member: typing.SupportsIndex) -> HashRing:
        """
        The same slot served by another member: no key moves.
        """
    def with_removed(self, ring_id: str) -> HashRing:
        """
        A new ring without that member. errors: Error not_found.
        """
    def with_weight(self, ring_id: str, weight: typing.SupportsFloat | typing.SupportsIndex) -> HashRing:
        """
        A new ring with another weight there. errors: Error not_found, invalid_argument.
        """
    @property
    def members(self) -> list[RingMember]:
        """
        In the order of their ring_id's bytes.
        """
    @property
    def memory_bytes(self) -> int:
        ...
    @property
    def points(self) -> int:
        ...
class Policy:
    """
    Every knob of a router: an immutable, validated value. Keywords, `replace`, or JSON.

    units: *_ns nanoseconds, *_tokens tokens. Enums by member or by name. Meanings: see each property.
    errors: Error invalid_argument, every fault in one message.
    """
    @staticmethod
    def from_json(json: str, base: Policy = ...) -> Policy:
        """
        Members that are absent keep the value they have in base. Strict: unknown members are refused.

        errors: Error invalid_json (with offset), not_an_object, too_large, invalid_argument (every fault named).
        """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, *, algorithm: Algorithm | str = 'cost', beta: typing.SupportsFloat | typing.SupportsIndex = 1.0, gamma: typing.SupportsFloat | typing.SupportsIndex = 0.06, delta: typing.SupportsFloat | typing.SupportsIndex = 0.5, hot: typing.SupportsFloat | typing.SupportsIndex = 2.0, tail: typing.SupportsFloat | typing.SupportsIndex = 0.4, reuse_ns: typing.SupportsIndex = 30000000000, session_bonus_ns: typing.SupportsIndex = 20000000, host_transfer_per_token_ns: typing.SupportsIndex = 2000, disk_transfer_per_token_ns: typing.SupportsIndex = 10000, shared_transfer_per_token_ns: typing.SupportsIndex = 20000, ring_key: RingKey | str = 'prefix', ring_key_tokens: typing.SupportsIndex = 1024, ring_points: typing.SupportsIndex = 256, ring_seed: typing.SupportsIndex = 0, routers: typing.SupportsIndex = 1, bound_factor: typing.SupportsFloat | typing.SupportsIndex = 1.5, block_size: typing.SupportsIndex = 16, hash_seed: typing.SupportsIndex = 1337, isolation: Isolation | str = 'salt', capacity_tokens: typing.SupportsIndex = 400000, residency_ttl_ns: typing.SupportsIndex = 0, lease_ns: typing.SupportsIndex = 600000000000, session_ttl_ns: typing.SupportsIndex = 3600000000000, signals_max_age_ns: typing.SupportsIndex = 2000000000, stale_signals: StaleSignals | str = 'ignore', route_when_all_down: bool = True, seed: typing.SupportsIndex = 0, version: typing.SupportsIndex = 0, learn_rates: bool = True, saturation_wait_ns: typing.SupportsIndex = 0, saturation_kv: typing.SupportsFloat | typing.SupportsIndex = 0.0, shed_priority: typing.SupportsIndex = 0, disaggregate: Disaggregate | str = 'never', unified_pairs: bool = False, pair_min_tokens: typing.SupportsIndex = 0, kv_transfer_per_token_ns: typing.SupportsIndex = 2600, kv_transfer_latency_ns: typing.SupportsIndex = 5000000, transfer_timeout_ns: typing.SupportsIndex = 30000000000, decode_keeps_cache: bool = True, interference: typing.SupportsFloat | typing.SupportsIndex = 0.1, ttft_limit_ns: typing.SupportsIndex = 0, itl_limit_ns: typing.SupportsIndex = 0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def replace(self, **kwargs: typing.Any) -> Policy:
        """
        A copy with the knobs given as keywords changed. errors: as the constructor.
        """
    def to_dict(self) -> dict[str, typing.Any]:
        """
        Every knob by its keyword.
        """
    def to_json(self) -> str:
        """
        One flat JSON object, times in milliseconds; from_json gives the same policy back.
        """
    @property
    def algorithm(self) -> Algorithm:
        """
        How a replica is picked.
        """
    @property
    def beta(self) -> float:
        """
        What a miss costs those who come later, as a multiple of its prefill time.
        """
    @property
    def block_size(self) -> int:
        """
        Tokens per block, 1..512.
        """
    @property
    def bound_factor(self) -> float:
        """
        No replica beyond this many times its fair share of tokens in flight.
        """
    @property
    def capacity_tokens(self) -> int:
        """
        Of a replica's KV cache while nothing else is known.
        """
    @property
    def decode_keeps_cache(self) -> bool:
        """
        What was transferred is in the decode replica's prefix cache afterwards.
        """
    @property
    def delta(self) -> float:
        """
        Weight of this request's own decode time.
        """
    @property
    def disaggregate(self) -> Disaggregate:
        """
        Whether prefill and decode of one request may run on different replicas.
        """
    @property
    def disk_transfer_per_token_ns(self) -> int:
        """
        From disk.
        """
    @property
    def gamma(self) -> float:
        """
        Share of a prefill's time by which it stalls each request running there.
        """
    @property
    def hash_seed(self) -> int:
        """
        Dynamo's; a secret one where prompts come from strangers.
        """
    @property
    def host_transfer_per_token_ns(self) -> int:
        """
        Loading one token's KV from host memory.
        """
    @property
    def hot(self) -> float:
        """
        Strength of the hot-prefix rebate; 0 = off.
        """
    @property
    def interference(self) -> float:
        """
        Share of a prefill's time by which it stalls each request running there, where pairs can be formed.
        """
    @property
    def isolation(self) -> Isolation:
        """
        What keeps tenants apart.
        """
    @property
    def itl_limit_ns(self) -> int:
        """
        Objective; 0 = none.
        """
    @property
    def kv_transfer_latency_ns(self) -> int:
        """
        Of one transfer, whatever its size.
        """
    @property
    def kv_transfer_per_token_ns(self) -> int:
        """
        Bytes of KV per token / bandwidth of the link.
        """
    @property
    def learn_rates(self) -> bool:
        """
        Replicas' rates follow observed times, from the declared ones on.
        """
    @property
    def lease_ns(self) -> int:
        """
        A ticket that is never finished releases its load after so long.
        """
    @property
    def pair_min_tokens(self) -> int:
        """
        Decided: no pair while fewer tokens are uncached.
        """
    @property
    def residency_ttl_ns(self) -> int:
        """
        Believed blocks expire after so long; 0 = never.
        """
    @property
    def reuse_ns(self) -> int:
        """
        Within which a prefix is asked for again: caches that are renewed as quickly lose by what is new; 0 = off.
        """
    @property
    def ring_key(self) -> RingKey:
        """
        What the ring's key is made of.
        """
    @property
    def ring_key_tokens(self) -> int:
        """
        Depth of the prefix key.
        """
    @property
    def ring_points(self) -> int:
        """
        Points per unit of weight.
        """
    @property
    def ring_seed(self) -> int:
        """
        Of the point positions.
        """
    @property
    def route_when_all_down(self) -> bool:
        """
        Try a replica all the same when none is up.
        """
    @property
    def routers(self) -> int:
        """
        Routers that send to the same replicas and tell one another nothing.
        """
    @property
    def saturation_kv(self) -> float:
        """
        So is one whose engine says that more of its KV cache is in use; 0 = not looked at.
        """
    @property
    def saturation_wait_ns(self) -> int:
        """
        A replica that would make a request wait longer for its first token is saturated; 0 = never.
        """
    @property
    def seed(self) -> int:
        """
        Breaks exact ties; equal seeds and calls give equal decisions.
        """
    @property
    def session_bonus_ns(self) -> int:
        """
        What the session's last replica is worth.
        """
    @property
    def session_ttl_ns(self) -> int:
        """
        How long a session is remembered.
        """
    @property
    def shared_transfer_per_token_ns(self) -> int:
        """
        From a store that all replicas share.
        """
    @property
    def shed_priority(self) -> int:
        """
        Where all are saturated, requests of at most this priority are refused.
        """
    @property
    def signals_max_age_ns(self) -> int:
        """
        When an engine's signals are stale.
        """
    @property
    def stale_signals(self) -> StaleSignals:
        """
        What stale signals mean.
        """
    @property
    def tail(self) -> float:
        """
        How much more the wait counts for a prompt as long as the mean, in proportion for others; 0 = equally.
        """
    @property
    def transfer_timeout_ns(self) -> int:
        """
        A prefill replica whose KV is not fetched after so long is free of it.
        """
    @property
    def ttft_limit_ns(self) -> int:
        """
        Objective; 0 = none.
        """
    @property
    def unified_pairs(self) -> bool:
        """
        Unified replicas take either part of a pair, too.
        """
    @property
    def version(self) -> int:
        """
        The operator's number, shown in statistics.
        """
class Rates:
    """
    How fast one replica's hardware is. A step takes max(floor, token * T) + pair * P + context * C + overhead.

    units: ns and ps. The defaults are an 8B model on one H100.
    """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, *, floor_ns: typing.SupportsIndex = 6700000, token_ps: typing.SupportsIndex = 24000000, pair_ps: typing.SupportsIndex = 1300, context_ps: typing.SupportsIndex = 56000, overhead_ns: typing.SupportsIndex = 1000000) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def prefill_ns(self, tokens: typing.SupportsIndex) -> int:
        """
        Prefill time of the first `tokens` tokens of a prompt.
        """
    @property
    def context_ps(self) -> int:
        """
        One token of context of a decode.
        """
    @property
    def floor_ns(self) -> int:
        """
        The shortest step.
        """
    @property
    def overhead_ns(self) -> int:
        """
        Of the host, per step.
        """
    @property
    def pair_ps(self) -> int:
        """
        One (new token, earlier token) pair of attention.
        """
    @property
    def token_ps(self) -> int:
        """
        One more token in a step.
        """
class SlotSpec:
    """
    Of a llama.cpp server: its --parallel, --kv-unified, and --cache-ram in tokens (0 = none).

    The defaults are those of llama-server without flags; with --parallel given, unified is off unless asked for.
    """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, count: typing.SupportsIndex = 4, *, unified: bool = True, ram_tokens: typing.SupportsIndex = 65536) -> None:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def count(self) -> int:
        ...
    @property
    def ram_tokens(self) -> int:
        ...
    @property
    def unified(self) -> bool:
        ...
class ReplicaSpec:
    """
    What the router knows of one replica: a copy, made by Router.replica.
    """
    def __repr__(self) -> str:
        ...
    @property
    def adapters(self) -> list[str]:
        ...
    @property
    def any_adapter(self) -> bool:
        ...
    @property
    def cache_kind(self) -> CacheKind:
        ...
    @property
    def capacity_tokens(self) -> int:
        """
        Of its KV cache; 0 = unknown.
        """
    @property
    def dp_rank(self) -> int:
        ...
    @property
    def drain_until_ns(self) -> int:
        """
        Of a draining one: when it is taken for down; 0 = it may take its time.
        """
    @property
    def health(self) -> Health:
        ...
    @property
    def health_reason(self) -> str:
        ...
    @property
    def labels(self) -> dict[str, str]:
        ...
    @property
    def name(self) -> str:
        ...
    @property
    def pool(self) -> str:
        """
        The model it serves; '' serves every model without a pool of its own.
        """
    @property
    def rates(self) -> Rates:
        ...
    @property
    def ring_id(self) -> str:
        """
        Its stable slot name on the ring.
        """
    @property
    def role(self) -> Role:
        ...
    @property
    def slots(self) -> SlotSpec:
        """
        Used where cache_kind is slots.
        """
    @property
    def slow_start_ns(self) -> int:
        ...
    @property
    def slow_start_weight(self) -> float:
        ...
    @property
    def weight(self) -> float:
        ...
class Decision:
    """
    Which replica serves a request, what it holds of it, and why. True when routed.
    """
    def __bool__(self) -> bool:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def best_cached_tokens(self) -> int:
        """
        The most that any candidate holds.
        """
    @property
    def cached_tokens(self) -> int:
        """
        Held there, on any tier.
        """
    @property
    def cached_tokens_by_tier(self) -> typing.Annotated[list[int], "FixedSize(4)"]:
        """
        On the device, then what only host memory, then what only disk, then what only the shared store adds.
        """
    @property
    def class_id(self) -> int:
        ...
    @property
    def decode_cached_tokens(self) -> int:
        """
        Of a pair: leading tokens that `replica` holds already; the rest is transferred.
        """
    @property
    def expected_prefill_ns(self) -> int:
        """
        Of the uncached tokens.
        """
    @property
    def expected_transfer_ns(self) -> int:
        ...
    @property
    def expected_ttft_ns(self) -> int:
        ...
    @property
    def expected_wait_ns(self) -> int:
        """
        Prefill work booked there before this request.
        """
    @property
    def fallbacks(self) -> tuple[int, ...]:
        """
        What to try next, best first.
        """
    @property
    def input_tokens(self) -> int:
        """
        As given or estimated.
        """
    @property
    def prefill_replica(self) -> int | None:
        """
        Of a pair: the int of the replica where prefill runs.
        """
    @property
    def priority(self) -> int:
        ...
    @property
    def reason(self) -> Reason:
        ...
    @property
    def replica(self) -> int:
        """
        The replica's int, or minus the verdict's number when not routed.
        """
    @property
    def retry_after_ns(self) -> int:
        """
        For refusing verdicts; 0 = unknown.
        """
    @property
    def routed(self) -> bool:
        ...
    @property
    def split(self) -> Split:
        """
        Whether one replica or two serve it, and why.
        """
    @property
    def ticket(self) -> int:
        """
        0 from peek and when nothing was routed.
        """
    @property
    def uncached_tokens(self) -> int:
        ...
    @property
    def verdict(self) -> Verdict:
        ...
class Request:
    """
    One request: identity, prompt and wishes. Made once, routed, peeked at or explained often.

    shape: ids uint32[n], the first prompt's token ids; or blocks uint64[n], its block hashes, block 0 first (they win).
    Arrays are borrowed: do not change them while the Request is in use. units: counts are tokens, -1 = unknown.
    tenant: from the verified caller, never from the body. excluded: replicas a retry has tried. pinned: the only choice.
    exact_pool: model is a pool's name, and the pool '' does not stand in for it.
    """
    def __init__(self, ids: typing.Any = None, blocks: typing.Any = None, *, model: str = '', session: str = '', tenant: str = '', adapter: str = '', cache_salt: str = '', block_kind: BlockKind | str = 'tokens', input_tokens: typing.SupportsIndex = -1, prompt_bytes: typing.SupportsIndex = -1, max_output_tokens: typing.SupportsIndex = -1, class_id: typing.SupportsIndex = 0, priority: typing.SupportsIndex = 0, deadline_ns: typing.SupportsIndex = 0, stream: bool = False, excluded: collections.abc.Sequence[typing.SupportsIndex] | None = None, pinned: typing.SupportsIndex | None = None, exact_pool: bool = False) -> None:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def adapter(self) -> str:
        ...
    @property
    def cache_salt(self) -> str:
        ...
    @property
    def input_tokens(self) -> int:
        ...
    @property
    def max_output_tokens(self) -> int:
        ...
    @property
    def model(self) -> str:
        ...
    @property
    def session(self) -> str:
        ...
    @property
    def tenant(self) -> str:
        ...
class GatewayRing:
    """
    Several gateways, each with a router of its own: whose a request is, so that it is forwarded there, once at most.

    A gateway that is down owns nothing; its keys go to their next one on the ring and come back with it.
    """
    def __init__(self, names: collections.abc.Sequence[str], self_name: str) -> None:
        """
        shape: names in the order that all gateways use; self_name is one of them.

        errors: Error invalid_argument, already_exists (a name), not_found (self_name).
        """
    def __len__(self) -> int:
        ...
    def __repr__(self) -> str:
        ...
    def key(self, request: Request, policy: Policy) -> int:
        """
        What all gateways with this policy make of the request: its session, else its first ring_key_tokens.
        """
    def owner(self, key: typing.SupportsIndex, *, forwarded: bool = False) -> int:
        """
        returns: the index of the gateway that serves the key; of this one if the request was forwarded already.
        """
    def set_up(self, index: typing.SupportsIndex, up: bool) -> None:
        """
        Whether requests may be forwarded there; all are up at first.
        """
    @property
    def index(self) -> int:
        """
        Of this gateway, in `names`.
        """
class ParsedBody:
    """
    One body, read: who asks for which model, and the prompt as block hashes. Keeps no prompt text.
    """
    def __repr__(self) -> str:
        ...
    @property
    def adapter(self) -> str | None:
        """
        lora_path, or the caller's.
        """
    @property
    def all_token_ids(self) -> numpy.typing.NDArray[numpy.uint32]:
        """
        Of all prompts, one after another, if known. shape: uint32[n], read-only.
        """
    @property
    def blocks(self) -> numpy.typing.NDArray[numpy.uint64]:
        """
        Block hashes of the first prompt, whole blocks. shape: uint64[n], read-only.
        """
    @property
    def cache_salt(self) -> str | None:
        ...
    @property
    def ids_from_body(self) -> bool:
        ...
    @property
    def include_usage(self) -> bool:
        ...
    @property
    def input_tokens(self) -> int | None:
        """
        Sum over all prompts; None unless ids are known.
        """
    @property
    def kind(self) -> PromptKind:
        ...
    @property
    def max_output_tokens(self) -> int | None:
        """
        None: no limit named, or -1.
        """
    @property
    def model(self) -> str | None:
        """
        None where the body has none; likewise below.
        """
    @property
    def prompt_bytes(self) -> int:
        """
        Canonical bytes, sum over all prompts.
        """
    @property
    def prompt_count(self) -> int:
        ...
    @property
    def prompt_ends(self) -> numpy.typing.NDArray[numpy.uint64]:
        """
        Prompt i is all_token_ids[prompt_ends[i-1]:prompt_ends[i]].
        """
    @property
    def session(self) -> str | None:
        """
        session_id, else session_params.id, conversation, prompt_cache_key.
        """
    @property
    def stream(self) -> bool:
        ...
    @property
    def tenant(self) -> str | None:
        """
        The caller's.
        """
    @property
    def token_blocks(self) -> bool:
        """
        Blocks are of token ids; else of text.
        """
    @property
    def user(self) -> str | None:
        ...
class BodyParser:
    """
    Reads bodies of OpenAI chat, completions, responses, embeddings, of Anthropic messages, Gemini and Bedrock Converse. Thread-safe.

    tokenizer: called with the canonical prompt (bytes), gives token ids (a uint32 array, or any sequence of ints, slower);
    None: blocks are of text, unless the body has ids. block_size, hash_seed, isolation: as the router's policy has them
    (Router.parse_body takes them from there).
    """
    def __init__(self, tokenizer: collections.abc.Callable[[bytes], typing.Any] | None = None, *, max_bytes: typing.SupportsIndex = 33554432, max_depth: typing.SupportsIndex = 1024, block_size: typing.SupportsIndex = 16, hash_seed: typing.SupportsIndex = 1337, isolation: Isolation | str = 'salt') -> None:
        ...
    def parse(self, body: bytes | bytearray | memoryview | str, api: BodyApi | str = 'chat', *, tenant: str = '', adapter: str = '') -> ParsedBody:
        """
        errors: Error invalid_json, invalid_utf8, invalid_unicode, too_deep, too_large, not_an_object, missing_field,
        wrong_type, value_out_of_range, invalid_value, empty_prompt, each with .offset in bytes; invalid_argument (options);
        and whatever the tokenizer raises. Long bodies are read without the GIL.
        """
class Explanation:
    """
    Why a decision fell as it did: every candidate with its match, its terms in time, and why it lost.

    str() and a notebook show a table; to_dict() and columns() are for programs. No text, ids or hashes in it.
    """
    def __repr__(self) -> str:
        ...
    def __str__(self) -> str:
        ...
    def _repr_html_(self) -> str:
        ...
    def columns(self, eligible_only: bool = True) -> dict[str, numpy.typing.NDArray[numpy.int64]]:
        """
        The candidates as int64 arrays: 'replica' (their ints), *_tokens, requests, *_ns; 'total_ns' is what decides.
        """
    def to_dict(self) -> dict[str, typing.Any]:
        """
        to_json, read.
        """
    def to_json(self) -> str:
        """
        One JSON object, times in milliseconds.
        """
    @property
    def algorithm(self) -> str:
        ...
    @property
    def blocks(self) -> int:
        """
        Whole blocks of the prompt.
        """
    @property
    def decision(self) -> Decision:
        """
        What peek would answer now.
        """
    @property
    def names(self) -> list[str]:
        """
        Of all candidates, in the order of columns(eligible_only=False).
        """
    @property
    def no_match(self) -> str:
        """
        Why nobody holds any of it; '' when somebody does.
        """
    @property
    def pool(self) -> str:
        ...
    @property
    def shared_requests(self) -> int:
        """
        Requests in flight that share the start of this prompt.
        """
class Router:
    """
    Decides which replica serves a request, and books what that causes. Thread-safe.

    Flat calls (route_tokens, route_blocks, route_body) give (replica, ticket): ints; replica is negative when not routed,
    then -replica is the Verdict. now_ns: ns of a monotonic clock; left out, it is clock(), or time.monotonic_ns().
    Errors are for bad input and stale handles; what policy foresees (no replica) is a verdict.
    log: called as log(level, message) after the call that caused it, without any lock held. tokenizer: see BodyParser.
    record: the path of a decision log (warmroute.trace.DecisionLog), which is replaced; every call is in it, hashes and sessions
    under record_key (16 random bytes; None: drawn and gone). Calls then take turns, and exports have no caches.
    """
    def __init__(self, policy: Policy | None = None, *, max_replicas: typing.SupportsIndex = 1024, max_tickets: typing.SupportsIndex = 65536, index_max_bytes: typing.SupportsIndex = 1073741824, session_entries: typing.SupportsIndex = 65536, shared_prefix_entries: typing.SupportsIndex = 131072, placement_queue: typing.SupportsIndex = 4096, max_path_blocks: typing.SupportsIndex = 32768, log: collections.abc.Callable[[LogLevel, str], typing.Any] | None = None, tokenizer: collections.abc.Callable[[bytes], typing.Any] | None = None, clock: collections.abc.Callable[[], int] | None = None, record: typing.Any | None = None, record_key: bytes | None = None, record_max_bytes: typing.SupportsIndex = 1073741824) -> None:
        ...
    def _decide(self, prompt: typing.Any, now_ns: typing.SupportsIndex | None = None, api: BodyApi | str = 'chat', **kwargs: typing.Any) -> Decision:
        """
        route with a Decision; Router.route wraps it.
        """
    def _explain(self, prompt: typing.Any, now_ns: typing.SupportsIndex | None = None, api: BodyApi | str = 'chat', **kwargs: typing.Any) -> Explanation:
        ...
    def _peek(self, prompt: typing.Any, now_ns: typing.SupportsIndex | None = None, api: BodyApi | str = 'chat', **kwargs: typing.Any) -> Decision:
        ...
    def _recording(self) -> dict[str, typing.Any] | None:
        ...
    def _statistics(self) -> dict[str, typing.Any]:
        ...
    def add_replica(self, name: str, now_ns: typing.SupportsIndex | None = None, *, dp_rank: typing.SupportsIndex = 0, pool: str = '', ring_id: str = '', role: Role | str = 'unified', weight: typing.SupportsFloat | typing.SupportsIndex = 1.0, any_adapter: bool = True, adapters: collections.abc.Sequence[str] = [], labels: dict[str, str] | None = None, rates: Rates | None = None, capacity_tokens: typing.SupportsIndex = 0, health: Health | str = 'up', health_reason: str = '', cache_kind: CacheKind | str = 'paged', slots: SlotSpec | None = None, slow_start_ns: typing.SupportsIndex = 0, slow_start_weight: typing.SupportsFloat | typing.SupportsIndex = 0.1) -> int:
        """
        A new replica: (name, dp_rank) is its identity, pool the model it serves ('' serves every model without a pool).

        adapters: a list is the whole list. capacity_tokens: of its KV cache, 0 = unknown. ring_id: stable slot name, default
        the name. cache_kind: 'slots' for llama.cpp's server, with its slots. slow_start_ns: when it comes up its cost counts
        1 / slow_start_weight times, falling to once over so long. returns: its int, for every later call. errors: Error invalid_argument, already_exists, capacity.
        """
    def advance(self, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        Bounded upkeep for idle times: leases, TTLs, queued placements, reclamation.
        """
    def blocks_also_on(self, replica: typing.SupportsIndex, tier: Tier | str, ids: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, now_ns: typing.SupportsIndex | None = None) -> int:
        """
        An engine's event: blocks that it named before are on `tier` (too). shape: ids uint64[n]; unknown ones are skipped.

        returns: how many are known. errors: Error stale, unsupported.
        """
    def blocks_removed(self, replica: typing.SupportsIndex, ids: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, now_ns: typing.SupportsIndex | None = None, *, tier: Tier | str = 'device') -> int:
        """
        An engine's event: these are gone. shape: ids uint64[n]; unknown ones are skipped. returns: how many were held.

        errors: Error stale, unsupported.
        """
    def blocks_stored(self, replica: typing.SupportsIndex, ids: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, parent: typing.SupportsIndex | None = None, now_ns: typing.SupportsIndex | None = None, *, token_ids: typing.Any | None = None, blocks: typing.Any | None = None, tier: Tier | str = 'device', adapter: str = '', cache_salt: str = '', tenant: str = '') -> None:
        """
        An engine's event: these blocks are held now. The first one makes the replica a reported one.

        shape: ids uint64[n], the engine's names; parent: its name for the block before (None: block 0); token_ids
        uint32[n * block_size], or blocks uint64[n]. adapter, cache_salt, tenant: of the request they belong to.
        errors: Error stale, unsupported (role prefill), invalid_argument (sizes), not_found (parent), capacity.
        """
    def clear_cache(self, replica: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        Its engine restarted or dropped its cache. errors: Error stale.
        """
    def clear_shared_store(self, pool: str) -> None:
        """
        The store that all replicas of that pool share (tier 'shared') is empty: it was wiped or replaced.

        errors: Error not_found.
        """
    def drain(self, replica: typing.SupportsIndex, until_ns: typing.SupportsIndex = 0, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        It takes no new requests and finishes what it has until `until_ns` (0 = no end); then `advance` takes it for down. errors: Error stale.
        """
    def export_caches(self, key: bytes, now_ns: typing.SupportsIndex | None = None) -> bytes:
        """
        What is believed of all caches and was learned of their hardware, encrypted under `key` (32 random bytes), for a file: a
        restart begins warm.

        errors: Error internal (no such cipher), ValueError (key).
        """
    def fail(self, ticket: typing.SupportsIndex, outcome: Outcome | str = 'cancelled', now_ns: typing.SupportsIndex | None = None) -> bool:
        """
        The request is over without a whole answer. returns: False for a ticket that is over (harmless).
        """
    def find_replica(self, name: str, dp_rank: typing.SupportsIndex = 0) -> int:
        """
        The int of a replica by its name. errors: Error not_found.
        """
    def finish(self, ticket: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None, *, input_tokens: typing.SupportsIndex | None = None, cached_tokens: typing.SupportsIndex | None = None, output_tokens: typing.SupportsIndex | None = None) -> bool:
        """
        The request is over; cached_tokens repairs what is believed of that cache. None = unknown, which is not zero.

        returns: False for a ticket that is over (harmless).
        """
    def first_token(self, ticket: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None) -> bool:
        """
        The first token came: prefill load is released. returns: False for a ticket that is over or had it (harmless).
        """
    def flush_recording(self) -> None:
        """
        Hands the decision log's buffer to the operating system. errors: Error unsupported (it does not record), io (it has ended).
        """
    def import_caches(self, data: bytes | bytearray | memoryview | str, key: bytes, now_ns: typing.SupportsIndex | None = None, *, away_ns: typing.SupportsIndex = 0, max_bytes: typing.SupportsIndex = 1073741824) -> dict[str, int]:
        """
        Believes an export of replicas that are here by now: add them first. away_ns: how long ago it was made.

        returns: replicas_restored, replicas_unknown, blocks_offered, blocks_restored, rates_restored (kinds of hardware that begin
        with learned rates).
        errors: Error malformed, unsupported, invalid_argument (another key, block size or hash seed), too_large.
        """
    def loads(self, now_ns: typing.SupportsIndex | None = None) -> bytes:
        """
        What this router has in flight, for the routers of its peers: a line for each replica with requests, by name.

        Of no prompt and no client; empty when nothing is in flight. Send it whole, each 20 to 100 ms: the next message makes good for
        one that is lost.
        """
    def parse_body(self, body: bytes | bytearray | memoryview | str, api: BodyApi | str = 'chat', *, tenant: str = '', adapter: str = '') -> ParsedBody:
        """
        Reads a body under the policy's block size, hash seed and isolation; route(parsed) then routes it. errors: as BodyParser.parse.
        """
    def peer_loads(self, peer: typing.SupportsIndex, loads: bytes | bytearray | memoryview | str, now_ns: typing.SupportsIndex | None = None) -> int:
        """
        What `loads` of that peer gave, in place of what it said before: counted as this router's own load until the next one, or
        for signals_max_age_ns.

        peer: its number in the GatewayRing, not this router's own. returns: how many lines name a replica that is here.
        errors: Error invalid_argument (no such text, with its offset; peer); nothing is taken then.
        """
    def peer_placed(self, replica: typing.SupportsIndex, request: Request, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        A peer sent this request there: its prompt is believed there as if it had been this router's own; nothing is booked.

        Token ids or blocks, with equal hash seeds. errors: Error stale, unsupported (a replica that keeps slots).
        """
    def prefix_counters(self, replica: typing.SupportsIndex, queries: typing.SupportsIndex, hits: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None, *, in_blocks: bool = False, shared: bool = False) -> None:
        """
        A reading of the engine's prefix-cache counters since its start, for the statistics alone (engine_prefix).

        in_blocks: blocks are counted, not tokens. shared: of all ranks of its page together. EngineMetrics.apply and MetricsPoller
        do it by themselves. errors: Error stale, invalid_argument.
        """
    def prometheus(self) -> str:
        """
        The statistics as one page of Prometheus' text format, names warmroute_*.
        """
    def remove_replica(self, replica: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        It and what is believed of its cache go at once; its tickets stay valid until released. errors: Error stale.
        """
    def replica(self, replica: typing.SupportsIndex) -> ReplicaSpec:
        """
        What is known of one replica; a copy. errors: Error stale.
        """
    def replicas(self) -> dict[int, ReplicaSpec]:
        """
        Every replica by its int; copies.
        """
    def requests_in_flight(self, pool: str = '') -> int:
        """
        On all replicas of exactly that pool.
        """
    def route_batch(self, requests: collections.abc.Iterable[Request], now_ns: typing.SupportsIndex | None = None) -> list[Decision]:
        """
        Routes Requests in order, each seeing what the ones before it booked. Releases the GIL.
        """
    def route_blocks(self, blocks: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview, now_ns: typing.SupportsIndex | None = None, *, block_kind: BlockKind | str = 'tokens', input_tokens: typing.SupportsIndex = -1, prompt_bytes: typing.SupportsIndex = -1, model: str = '', session: str = '', tenant: str = '', adapter: str = '', cache_salt: str = '', max_output_tokens: typing.SupportsIndex = -1, excluded: collections.abc.Sequence[typing.SupportsIndex] | None = None, pinned: typing.SupportsIndex | None = None) -> tuple[int, int]:
        """
        As route_tokens, for block hashes under the policy's seed. shape: uint64[n], block 0 first, not copied.

        input_tokens: of the whole body; -1 = from the blocks or the learned bytes per token.
        """
    def route_body(self, body: bytes | bytearray | memoryview | str, now_ns: typing.SupportsIndex | None = None, *, api: BodyApi | str = 'chat', tenant: str = '', adapter: str = '', session: str = '', excluded: collections.abc.Sequence[typing.SupportsIndex] | None = None, pinned: typing.SupportsIndex | None = None) -> tuple[int, int]:
        """
        As route_tokens, for a request body; long ones are read without the GIL. session and adapter beat the body's.

        errors: as BodyParser.parse, with code and offset.
        """
    def route_tokens(self, ids: numpy.typing.NDArray[numpy.uint32] | bytes | bytearray | memoryview, now_ns: typing.SupportsIndex | None = None, *, model: str = '', session: str = '', tenant: str = '', adapter: str = '', cache_salt: str = '', max_output_tokens: typing.SupportsIndex = -1, excluded: collections.abc.Sequence[typing.SupportsIndex] | None = None, pinned: typing.SupportsIndex | None = None) -> tuple[int, int]:
        """
        Picks a replica for a prompt of token ids and books the request there. Keeps the GIL.

        shape: ids uint32[n], C-contiguous, not copied (bytes: raw little-endian). returns: (replica, ticket); replica < 0:
        not routed, -replica is the Verdict, ticket 0. errors: TypeError (another dtype, a list).
        """
    def route_tokens_batch(self, ids: numpy.typing.NDArray[numpy.uint32] | bytes | bytearray | memoryview, ends: numpy.typing.NDArray[numpy.int64], now_ns: typing.SupportsIndex | None = None, *, model: str = '', tenant: str = '', adapter: str = '', cache_salt: str = '', max_output_tokens: typing.SupportsIndex = -1) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint64]]:
        """
        route_tokens for many prompts that share one array. Releases the GIL.

        shape: ids uint32[total], ends int64[n]: prompt i is ids[ends[i-1]:ends[i]]. returns: (replicas int64[n], tickets
        uint64[n]), as route_tokens. errors: ValueError (ends falls or leaves ids).
        """
    def set_health(self, replica: typing.SupportsIndex, health: Health | str, reason: str = '', now_ns: typing.SupportsIndex | None = None) -> None:
        """
        down and draining take no new requests; what they hold is kept. errors: Error stale.
        """
    def set_policy(self, policy: Policy) -> None:
        """
        For all calls that start afterwards; tickets in flight keep what they booked.
        """
    def signal(self, replica: typing.SupportsIndex, kind: Signal | str, value: typing.SupportsFloat | typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        A reading of the engine's metrics. errors: Error stale, invalid_argument (negative, not finite).
        """
    def transfer_done(self, ticket: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None) -> bool:
        """
        Of a pair: the decode replica has the KV, so that the prefill replica is free of it. returns: False for a ticket that is over, fetched already, or no pair (harmless).
        """
    def update_replica(self, replica: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None, *, ring_id: str | None = None, role: Role | str | None = None, weight: typing.SupportsFloat | typing.SupportsIndex | None = None, any_adapter: bool | None = None, adapters: collections.abc.Sequence[str] | None = None, labels: dict[str, str] | None = None, rates: Rates | None = None, capacity_tokens: typing.SupportsIndex | None = None, cache_kind: CacheKind | str | None = None, slots: SlotSpec | None = None, slow_start_ns: typing.SupportsIndex | None = None, slow_start_weight: typing.SupportsFloat | typing.SupportsIndex | None = None) -> None:
        """
        Changes what is given, in place. errors: Error stale, invalid_argument.
        """
    @property
    def policy(self) -> Policy:
        """
        The policy in force.
        """
class ModelDecision:
    """
    What a ModelRouter answers: a decision, and what pool and model it is of.
    """
    @property
    def decision(self) -> Decision:
        ...
    @property
    def external(self) -> bool:
        """
        Its pool is somebody else's API.
        """
    @property
    def forbidden(self) -> int:
        """
        Targets that its class may not use.
        """
    @property
    def model(self) -> str:
        """
        What to ask the server for; '' = the client's own name.
        """
    @property
    def pool(self) -> str:
        """
        That took it.
        """
    @property
    def refused(self) -> int:
        """
        Targets before it that could not take it.
        """
    @property
    def routed(self) -> bool:
        ...
    @property
    def target(self) -> int:
        """
        Which of the name's targets, then fallbacks.
        """
class ModelRouter:
    """
    Which pool serves a model name: aliases with weighted targets and ordered fallbacks, external APIs by quota and price,
    classes that may never leave. In front of a Router; end its requests here, so that quotas get the truth.
    """
    def __init__(self, router: typing.Any, map_json: str = '{}') -> None:
        ...
    def fail(self, decision: ModelDecision, outcome: Outcome | str = 'cancelled', now_ns: typing.SupportsIndex | None = None, *, retry_after_ns: typing.SupportsIndex = 0) -> bool:
        """
        As Router.fail. retry_after_ns: as the server said; its pool is left alone for so long.
        """
    def finish(self, decision: ModelDecision, now_ns: typing.SupportsIndex | None = None, *, input_tokens: typing.SupportsIndex | None = None, cached_tokens: typing.SupportsIndex | None = None, output_tokens: typing.SupportsIndex | None = None) -> bool:
        """
        As Router.finish.
        """
    def first_token(self, decision: ModelDecision, now_ns: typing.SupportsIndex | None = None) -> bool:
        ...
    def readings(self) -> dict[str, dict[str, int]]:
        """
        Of pools with terms: routed, over_quota, in_flight, blocked_until_ns.
        """
    def route(self, prompt: typing.Any, now_ns: typing.SupportsIndex | None = None, api: BodyApi | str = 'chat', **kwargs: typing.Any) -> ModelDecision:
        """
        As Router.route, with a ModelDecision. Verdicts beyond: no_permitted_pool, saturated (over a quota).
        """
    def set_map(self, map_json: str) -> None:
        """
        Swaps the map: {"models": [{"name", "targets": [{"pool", "model", "weight"}], "fallbacks", "choice"}],
        "pools": [{"name", "external", "requests_per_minute", "tokens_per_minute", "max_in_flight", "input_price", ...}],
        "classes": [{"class_id", "may_leave"}]}; prices are USD per million tokens.

        errors: Error invalid_json, invalid_argument (every fault with its path); nothing changes then.
        """
class KvSource:
    """
    Keeps a router right about one engine's cache while its events get lost, come twice or begin anew. See warmroute.KvSource.
    """
    def __init__(self, router: Router, replica: typing.SupportsIndex, *, notice: collections.abc.Callable[[dict[str, typing.Any]], typing.Any] | None = None, block_size: typing.SupportsIndex | None = None, engine_block_size: typing.SupportsIndex = 0, hash_seed: typing.SupportsIndex | None = None, isolation_key: str = '', replay: bool = False, replay_attempts: typing.SupportsIndex = 3, replay_timeout_ns: typing.SupportsIndex = 2000000000, max_message_bytes: typing.SupportsIndex = 16777216, max_held_bytes: typing.SupportsIndex = 16777216, max_orphan_blocks: typing.SupportsIndex = 4096, orphan_age_ns: typing.SupportsIndex = 30000000000) -> None:
        ...
    def _status(self) -> dict[str, typing.Any]:
        ...
    def advance(self, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        Timeouts of replays and orphans: call it about once a second.
        """
    def live(self, frames: collections.abc.Iterable[bytes | bytearray | memoryview | str], now_ns: typing.SupportsIndex | None = None) -> None:
        """
        A message from the publisher, in the order in which they came: its frames, [topic, seq, payload].

        errors: Error malformed, value_out_of_range (frames: dropped, and missed when the next one comes). A payload that
        cannot be decoded is no error of the call: the cache is cleared, a notice and bad_messages tell.
        """
    def live_payload(self, seq: typing.SupportsIndex, payload: bytes | bytearray | memoryview | str, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        The same by its number and its payload, where the transport has no frames.
        """
    def replay_ended(self, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        The replay is over, where the transport has no message for that.
        """
    def replayed(self, frames: collections.abc.Iterable[bytes | bytearray | memoryview | str], now_ns: typing.SupportsIndex | None = None, *, socket: KvSocket | str = 'dealer') -> None:
        """
        A message from the replay socket, the one that ends the replay included; those that nobody waits for are dropped.

        socket: 'dealer' has an empty frame first, 'req' has not. errors: as live.
        """
    def replayed_payload(self, seq: typing.SupportsIndex, payload: bytes | bytearray | memoryview | str, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        The same by its number and its payload.
        """
    def wants_replay(self) -> int | None:
        """
        The number to request a replay from (8 bytes, big-endian, on the wire), once per attempt; else None.

        Ask after live, replayed and advance.
        """
    @property
    def replica(self) -> int:
        """
        Whose cache it tells of.
        """
class KvSubscriber:
    """
    See warmroute.KvSubscriber.
    """
    def __init__(self, router: Router, *, log: collections.abc.Callable[[LogLevel, str], typing.Any] | None = None, clock: collections.abc.Callable[[], int] | None = None, max_message_bytes: typing.SupportsIndex = 16777216, queue_messages: typing.SupportsIndex = 100000, reconnect_from_ns: typing.SupportsIndex = 100000000, reconnect_to_ns: typing.SupportsIndex = 5000000000) -> None:
        ...
    def _status(self, arg0: typing.SupportsIndex) -> dict[str, typing.Any]:
        ...
    def _statuses(self) -> list[dict[str, typing.Any]]:
        ...
    def add(self, replica: typing.SupportsIndex, events: str, replay: str = '', *, topic: str = '', block_size: typing.SupportsIndex | None = None, engine_block_size: typing.SupportsIndex = 0, hash_seed: typing.SupportsIndex | None = None, isolation_key: str = '', replay_attempts: typing.SupportsIndex = 3, replay_timeout_ns: typing.SupportsIndex = 2000000000, max_message_bytes: typing.SupportsIndex = 16777216, max_held_bytes: typing.SupportsIndex = 16777216, max_orphan_blocks: typing.SupportsIndex = 4096, orphan_age_ns: typing.SupportsIndex = 30000000000) -> None:
        """
        Listens to one publisher, i.e. one data-parallel rank, from now on; an engine that is not there yet is tried again.

        events: e.g. 'tcp://10.0.0.1:5557' (rank r of vLLM and SGLang: that port + r). replay: e.g. 'tcp://10.0.0.1:5558'; ''
        lets gaps clear the cache. The others: as KvSource has them.
        errors: Error stale, already_exists, invalid_argument (endpoints, options), io.
        """
    def close(self) -> None:
        """
        Ends the thread. Nothing is applied once this returns.
        """
    def remove(self, replica: typing.SupportsIndex) -> None:
        """
        Nothing of that replica is applied once this returns. errors: Error not_found.
        """
    @property
    def closed(self) -> bool:
        """
        Whether close was called.
        """
class EngineMetrics:
    """
    See warmroute.EngineMetrics.
    """
    def __init__(self, *, tables: collections.abc.Sequence[str] = []) -> None:
        ...
    def _apply(self, router: Router, replicas: collections.abc.Sequence[tuple[typing.SupportsIndex, typing.SupportsIndex | None, str]], now_ns: typing.SupportsIndex | None) -> dict[str, typing.Any]:
        ...
    def _read(self, page: bytes | bytearray | memoryview | str, engine: str) -> dict[str, typing.Any]:
        ...
class EngineCounters:
    """
    See warmroute.EngineCounters.
    """
    def __init__(self) -> None:
        ...
    def _update(self, metrics: EngineMetrics) -> list[dict[str, typing.Any]]:
        ...
    def clear(self) -> None:
        """
        Forgets what was read: the next page is the first.
        """
class MetricsPoller:
    """
    See warmroute.MetricsPoller.
    """
    def __init__(self, router: Router | None = None, *, page: collections.abc.Callable[[dict[str, typing.Any]], typing.Any] | None = None, log: collections.abc.Callable[[LogLevel, str], typing.Any] | None = None, clock: collections.abc.Callable[[], int] | None = None, interval_ns: typing.SupportsIndex = 500000000, jitter_percent: typing.SupportsIndex = 10, timeout_ns: typing.SupportsIndex = 2000000000, backoff_to_ns: typing.SupportsIndex = 5000000000, max_bytes: typing.SupportsIndex = 16777216, keep_alive: bool = True, seed: typing.SupportsIndex = 1, tables: collections.abc.Sequence[str] = []) -> None:
        ...
    def _add(self, url: str, replicas: collections.abc.Sequence[tuple[typing.SupportsIndex, typing.SupportsIndex | None, str]], name: str, engine: str, clear_on_restart: bool) -> None:
        ...
    def _status(self, name: str) -> dict[str, typing.Any]:
        ...
    def _statuses(self) -> list[dict[str, typing.Any]]:
        ...
    def close(self) -> None:
        """
        Ends the thread, in the middle of scrapes. Not from a callback.
        """
    def remove(self, name: str) -> None:
        """
        Nothing of that target is applied or called back once this returns (from the callback: after that).

        errors: Error not_found.
        """
    @property
    def closed(self) -> bool:
        """
        Whether close was called.
        """
class AnswerApi(enum.IntEnum):
    """
    Whose vocabulary an answer speaks. automatic tells by its members' names.
    """
    automatic = 0
    openai = 1
    responses = 2
    embeddings = 3
    messages = 4
    gemini = 5
    bedrock = 6
    cohere = 7
    llamacpp = 8
class CalendarUnit(enum.IntEnum):
    """
    What a budget's window is made of.
    """
    minute = 0
    hour = 1
    day = 2
    week = 3
    month = 4
    year = 5
class CostSource(enum.IntEnum):
    """
    Where a cost is from.
    """
    unknown = 0
    table = 1
    self_hosted = 2
    reported = 3
class HangupMode(enum.IntEnum):
    """
    What becomes of an upstream whose client left: cut it, or drain it for its usage.
    """
    cut = 0
    drain = 1
class JournalFull(enum.IntEnum):
    """
    When the disk is full: refuse what cannot be billed, or serve it unbilled.
    """
    refuse = 0
    serve_unbilled = 1
class JournalSync(enum.IntEnum):
    """
    When the disk is asked to write, for machines that lose power.
    """
    none = 0
    batched = 1
    each = 2
class KeyDigestKind(enum.IntEnum):
    """
    What a digest is of: the secret under a pepper, the secret alone, or the whole key.
    """
    hmac_sha256 = 0
    sha256_secret = 1
    sha256_key = 2
class KeyVerdict(enum.IntEnum):
    """
    What a key is. A client may learn KeyGrant.status alone.
    """
    accepted = 0
    malformed = 1
    unknown = 2
    wrong_secret = 3
    not_yet_valid = 4
    expired = 5
    revoked = 6
    stale_set = 7
    no_pepper = 8
    no_digest = 9
class LimitKind(enum.IntEnum):
    """
    A rate (GCRA), a budget per calendar window, or how many at once.
    """
    rate = 0
    budget = 1
    concurrency = 2
class LimitOutcome(enum.IntEnum):
    """
    What became of a reservation; allowed is 0.
    """
    allowed = 0
    rate_exceeded = 1
    too_many_at_once = 2
    budget_exceeded = 3
    larger_than_limit = 4
    no_room = 5
    invalid = 6
class LimitProgress(enum.IntEnum):
    """
    Whether a stream may go on.
    """
    go_on = 0
    stop = 1
    stale = 2
class LimitUnit(enum.IntEnum):
    """
    What a limit counts. cost_nanos: 1e-9 USD.
    """
    requests = 0
    input_tokens = 1
    output_tokens = 2
    total_tokens = 3
    cost_nanos = 4
class OnExpired(enum.IntEnum):
    """
    What serving does when control is silent for longer than max_age. deny_new_keys: keys that were accepted since the process began go on.
    """
    serve = 0
    deny_new_keys = 1
    deny_all = 2
class OrphanCharge(enum.IntEnum):
    """
    What a reservation becomes when its lease ends.
    """
    keep = 0
    refund = 1
class PriceMeter(enum.IntEnum):
    """
    What is metered: the rows of a bill.
    """
    input = 0
    cached_input = 1
    cache_write = 2
    cache_write_1h = 3
    cache_write_12h = 4
    audio_input = 5
    cached_audio_input = 6
    image_input = 7
    cached_image_input = 8
    video_input = 9
    output = 10
    reasoning_output = 11
    audio_output = 12
    image_output = 13
    web_search = 14
    other_model = 15
class PriceTier(enum.IntEnum):
    """
    How urgent a request is served, which is priced apart.
    """
    standard = 0
    priority = 1
    flex = 2
    batch = 3
    balanced = 4
    ultrafast = 5
class StaleKeys(enum.IntEnum):
    """
    What a KeySet does when control is silent for longer than max_age_ns. refuse_new: keys that it has accepted before go on.
    """
    keep_serving = 0
    refuse = 1
    refuse_new = 2
class UsageSource(enum.IntEnum):
    """
    Where counts are from.
    """
    none = 0
    provider = 1
    timings = 2
    estimate = 3
class JournalKind(enum.IntEnum):
    """
    incomplete: it began, and the process ended before it did. withdrawn: it never left.
    """
    begin = 1
    end = 2
    incomplete = 3
    withdrawn = 4
class Usage:
    """
    What one request used, in one vocabulary for all providers: immutable, by keywords.

    units: tokens, unless the name says otherwise. None: unknown, which is never 0. input contains cached and
    written, output contains reasoning; parts are never to be added to their whole.
    """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, *, input_tokens: typing.SupportsIndex | None = None, cached_input_tokens: typing.SupportsIndex | None = None, cache_write_input_tokens: typing.SupportsIndex | None = None, output_tokens: typing.SupportsIndex | None = None, reasoning_output_tokens: typing.SupportsIndex | None = None, cache_write_5m_tokens: typing.SupportsIndex | None = None, cache_write_30m_tokens: typing.SupportsIndex | None = None, cache_write_1h_tokens: typing.SupportsIndex | None = None, cache_write_12h_tokens: typing.SupportsIndex | None = None, text_input_tokens: typing.SupportsIndex | None = None, audio_input_tokens: typing.SupportsIndex | None = None, image_input_tokens: typing.SupportsIndex | None = None, video_input_tokens: typing.SupportsIndex | None = None, cached_text_input_tokens: typing.SupportsIndex | None = None, cached_audio_input_tokens: typing.SupportsIndex | None = None, cached_image_input_tokens: typing.SupportsIndex | None = None, cached_video_input_tokens: typing.SupportsIndex | None = None, text_output_tokens: typing.SupportsIndex | None = None, audio_output_tokens: typing.SupportsIndex | None = None, image_output_tokens: typing.SupportsIndex | None = None, tool_use_input_tokens: typing.SupportsIndex | None = None, accepted_prediction_tokens: typing.SupportsIndex | None = None, rejected_prediction_tokens: typing.SupportsIndex | None = None, processed_input_tokens: typing.SupportsIndex | None = None, processed_output_tokens: typing.SupportsIndex | None = None, unattributed_tokens: typing.SupportsIndex | None = None, context_input_tokens: typing.SupportsIndex | None = None, web_search_requests: typing.SupportsIndex | None = None, web_fetch_requests: typing.SupportsIndex | None = None, reported_cost_picos: typing.SupportsIndex | None = None) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def replace(self, **kwargs: typing.Any) -> Usage:
        """
        A copy with the counts given as keywords changed.
        """
    def to_dict(self) -> dict[str, int]:
        """
        The counts that are known, by their names.
        """
    @property
    def accepted_prediction_tokens(self) -> int | None:
        """
        Part of output.
        """
    @property
    def audio_input_tokens(self) -> int | None:
        ...
    @property
    def audio_output_tokens(self) -> int | None:
        ...
    @property
    def cache_write_12h_tokens(self) -> int | None:
        ...
    @property
    def cache_write_1h_tokens(self) -> int | None:
        ...
    @property
    def cache_write_30m_tokens(self) -> int | None:
        ...
    @property
    def cache_write_5m_tokens(self) -> int | None:
        """
        Part of the writes, by lifetime; and below.
        """
    @property
    def cache_write_input_tokens(self) -> int | None:
        """
        Of those, written to a cache.
        """
    @property
    def cached_audio_input_tokens(self) -> int | None:
        ...
    @property
    def cached_image_input_tokens(self) -> int | None:
        ...
    @property
    def cached_input_tokens(self) -> int | None:
        """
        Of those, read from a cache.
        """
    @property
    def cached_text_input_tokens(self) -> int | None:
        ...
    @property
    def cached_video_input_tokens(self) -> int | None:
        ...
    @property
    def context_input_tokens(self) -> int | None:
        """
        Size of the window at the end, where a compaction ran.
        """
    @property
    def image_input_tokens(self) -> int | None:
        ...
    @property
    def image_output_tokens(self) -> int | None:
        ...
    @property
    def input_tokens(self) -> int | None:
        """
        All of the prompt: uncached, cached and written to the cache.
        """
    @property
    def output_tokens(self) -> int | None:
        """
        All that was generated, reasoning included.
        """
    @property
    def processed_input_tokens(self) -> int | None:
        """
        Beside the billed input: what the model read (Cohere).
        """
    @property
    def processed_output_tokens(self) -> int | None:
        ...
    @property
    def reasoning_output_tokens(self) -> int | None:
        """
        Of those, reasoning.
        """
    @property
    def rejected_prediction_tokens(self) -> int | None:
        """
        Part of output: billed, and not seen.
        """
    @property
    def reported_cost_picos(self) -> int | None:
        """
        1e-12 USD, as the provider says.
        """
    @property
    def text_input_tokens(self) -> int | None:
        """
        Part of its side, by modality; and below.
        """
    @property
    def text_output_tokens(self) -> int | None:
        ...
    @property
    def tool_use_input_tokens(self) -> int | None:
        """
        Part of input: of the provider's own tools.
        """
    @property
    def total_tokens(self) -> int | None:
        """
        input + output + unattributed; None where a side is unknown.
        """
    @property
    def unattributed_tokens(self) -> int | None:
        """
        In the provider's total and in neither side.
        """
    @property
    def uncached_input_tokens(self) -> int | None:
        """
        Input that was neither read from a cache nor written to one.
        """
    @property
    def video_input_tokens(self) -> int | None:
        ...
    @property
    def web_fetch_requests(self) -> int | None:
        """
        Requests.
        """
    @property
    def web_search_requests(self) -> int | None:
        """
        Requests.
        """
class UsageReport:
    """
    What an answer said. complete: the counts are the provider's last word. Text that was not said is ''.
    """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, usage: Usage | None = None, *, complete: bool = False, error: bool = False, source: UsageSource | str = 'none', anomalies: collections.abc.Sequence[str] = [], output_events: typing.SupportsIndex = 0, finish_reason: str = '', service_tier: str = '', speed: str = '', inference_geography: str = '', model: str = '', response_id: str = '') -> None:
        """
        Counts that are known from elsewhere than a Meter.
        """
    def __repr__(self) -> str:
        ...
    @property
    def anomalies(self) -> tuple[str, ...]:
        """
        What was wrong with the answer; names of USAGE_ANOMALIES.
        """
    @property
    def complete(self) -> bool:
        ...
    @property
    def error(self) -> bool:
        """
        The answer is an error, or holds one.
        """
    @property
    def finish_reason(self) -> str:
        ...
    @property
    def inference_geography(self) -> str:
        ...
    @property
    def model(self) -> str:
        ...
    @property
    def other_models(self) -> tuple[tuple[str, Usage], ...]:
        """
        (model, usage) of tokens that another model than the answering one used.
        """
    @property
    def output_events(self) -> int:
        """
        Events of a stream after which output had begun; an estimate of what was generated if it was cut.
        """
    @property
    def response_id(self) -> str:
        ...
    @property
    def service_tier(self) -> str:
        ...
    @property
    def source(self) -> UsageSource:
        ...
    @property
    def speed(self) -> str:
        ...
    @property
    def usage(self) -> Usage:
        ...
class CostLine:
    """
    One row of a bill: quantity (tokens or requests) at rate_femtos (1e-15 USD) each.
    """
    def __repr__(self) -> str:
        ...
    @property
    def cost_picos(self) -> int:
        """
        1e-12 USD, rounded.
        """
    @property
    def meter(self) -> PriceMeter:
        ...
    @property
    def quantity(self) -> int:
        ...
    @property
    def rate_femtos(self) -> int:
        ...
class Cost:
    """
    What a request costs. False where that is unknown, which is never 0; a cost of 0 is true.
    """
    def __bool__(self) -> bool:
        ...
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, picos: typing.SupportsIndex | None, source: CostSource | str = 'table', price_key: str = '') -> None:
        """
        A cost from elsewhere than a PriceTable. picos: 1e-12 USD; None: unknown.
        """
    def __repr__(self) -> str:
        ...
    @property
    def lines(self) -> tuple[CostLine, ...]:
        """
        The bill.
        """
    @property
    def partial(self) -> bool:
        """
        Something reported has no price.
        """
    @property
    def picos(self) -> int | None:
        """
        1e-12 USD; None: unknown.
        """
    @property
    def price_key(self) -> str:
        """
        Under which name the price was found.
        """
    @property
    def source(self) -> CostSource:
        ...
    @property
    def threshold_tokens(self) -> int:
        """
        Rates for prompts above so many tokens applied; 0: none.
        """
    @property
    def tier_fell_back(self) -> bool:
        """
        There is no price for the tier: standard rates applied.
        """
    @property
    def usd(self) -> decimal.Decimal | None:
        """
        The same in USD, exact; None: unknown.
        """
class PriceTable:
    """
    Prices of many models, in the format of LiteLLM's model_prices_and_context_window.json. Thread-safe.

    Money is exact: 1e-12 USD in ints (picos), rates in 1e-15 USD (femtos). None is shipped.
    """
    @staticmethod
    def from_json(prices: bytes | bytearray | memoryview | str | collections.abc.Mapping[str, typing.Any]) -> PriceTable:
        """
        JSON, or the dict of it. errors: Error invalid_json, not_an_object, too_large. Malformed rates are skipped.
        """
    @staticmethod
    def load(path: typing.Any) -> PriceTable:
        """
        From a file. errors: Error io, and those of from_json.
        """
    def __init__(self) -> None:
        ...
    def __len__(self) -> int:
        ...
    @typing.overload
    def cost(self, report: UsageReport, model: str = '', *, provider: str = '', prefer_reported_cost: bool = False, off_peak: bool = False, tier: PriceTier | str | None = None) -> Cost:
        """
        model: the name to price by; '': the one that answered. provider: tried as a prefix of names. tier: None: the report's.

        Unknown where a side of the usage is, or the model; the provider's own cost stands in there.
        """
    @typing.overload
    def cost(self, usage: Usage, model: str = '', *, provider: str = '', prefer_reported_cost: bool = False, off_peak: bool = False, tier: PriceTier | str | None = None) -> Cost:
        """
        Of counts alone.
        """
    def find(self, model: str, provider: str = '') -> str | None:
        """
        The name under which a model's price is found; None: unknown.
        """
    def override_with(self, prices: bytes | bytearray | memoryview | str | collections.abc.Mapping[str, typing.Any]) -> None:
        """
        Members of the same format, as JSON or as a dict, replace those of the model; a rate of null is removed.

        errors: Error invalid_json, not_an_object, too_large; invalid_argument: a rate that is none.
        """
    def set_alias(self, alias: str, model: str) -> None:
        """
        `alias` is priced as `model`, which need not be there yet. errors: Error invalid_argument.
        """
    def set_self_hosted(self, model: str, *, replica_hour_picos: typing.SupportsIndex, input_tokens_per_second: typing.SupportsFloat | typing.SupportsIndex, output_tokens_per_second: typing.SupportsFloat | typing.SupportsIndex, cached_tokens_per_second: typing.SupportsFloat | typing.SupportsIndex = 0.0, utilization: typing.SupportsFloat | typing.SupportsIndex = 1.0) -> None:
        """
        A model that own replicas serve: an hour of one (1e-12 USD), shared among what it could do in an hour.

        Speeds: of one replica doing nothing else. utilization: share of the hours that work is done in, 0..1.
        errors: Error invalid_argument, every fault named.
        """
    @property
    def skipped_rates(self) -> int:
        """
        Members that should be rates and are none.
        """
    @property
    def version(self) -> str:
        """
        A digest of everything that was put in: the version to write beside a cost.
        """
class Meter:
    """
    Reads what a request used from its answer, while the bytes pass: JSON, server-sent events, JSON arrays, AWS event streams.

    It looks and changes nothing; where the bytes are cut does not matter; memory is constant. Compressed bodies cannot be read.
    api: automatic tells by the members' names. Of a deployment that is known to differ from the rules:
    input_includes_cache, output_includes_reasoning (None: by rule), ignore_total, trust_requested_tier.
    requested_tier: reported where the answer names none.
    """
    def __init__(self, api: AnswerApi | str = 'automatic', *, input_includes_cache: bool | None = None, output_includes_reasoning: bool | None = None, ignore_total: bool = False, trust_requested_tier: bool = False, requested_tier: str = '') -> None:
        ...
    def feed(self, body: bytes | bytearray | memoryview | str) -> bool:
        """
        The next bytes of the answer's body, in any pieces, without HTTP's chunk framing.

        returns: True once: when the first token ended in these bytes.
        """
    def finish(self) -> None:
        """
        The body ended, or was cut off. Further bytes are ignored.
        """
    def report(self) -> UsageReport:
        """
        What is known so far; after finish() the result.
        """
    def reset(self) -> None:
        """
        For the next answer, with the same options: cheaper than a new one.
        """
    @property
    def anomalies(self) -> tuple[str, ...]:
        """
        report().anomalies
        """
    @property
    def bytes(self) -> int:
        """
        Fed so far.
        """
    @property
    def complete(self) -> bool:
        """
        report().complete, for less work.
        """
    @property
    def first_token_end(self) -> int | None:
        """
        How many bytes of the body had come when the first token ended; None: not yet.
        """
    @property
    def is_stream(self) -> bool:
        """
        Whether the answer is a stream of events; False before that is known.
        """
    @property
    def revision(self) -> int:
        """
        A number that is another one whenever report() would be, until reset().
        """
    @property
    def usage(self) -> Usage:
        """
        report().usage
        """
class UsageAsk:
    """
    A body that asks for usage, see ask_for_usage.
    """
    @property
    def asked(self) -> bool:
        """
        The client asked for usage itself: nothing may be hidden.
        """
    @property
    def body(self) -> bytes:
        """
        The body to send.
        """
    @property
    def changed(self) -> bool:
        """
        We ask: the usage chunk is to be hidden (UsageChunkFilter).
        """
    @property
    def stream(self) -> bool:
        """
        The client wants a stream.
        """
class UsageChunkFilter:
    """
    Takes the usage chunk (`choices` empty) out of a stream of server-sent events; the rest passes as it came.

    Feed the meter before it. An event is held until it cannot be that chunk, 16 KiB at most.
    """
    def __init__(self) -> None:
        ...
    def feed(self, body: bytes | bytearray | memoryview | str) -> bytes:
        """
        returns: what of the stream so far may go to the client.
        """
    def finish(self) -> bytes:
        """
        The stream ended. returns: what was held, if it may go.
        """
    def reset(self) -> None:
        """
        For the next stream.
        """
    @property
    def removed(self) -> bool:
        """
        Whether the chunk came and was taken out.
        """
class TokenEstimate:
    """
    What to reserve for a request.
    """
    def __init__(self, input_tokens: typing.SupportsIndex, output_tokens: typing.SupportsIndex) -> None:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def input_tokens(self) -> int:
        ...
    @property
    def output_tokens(self) -> int:
        ...
    @property
    def total(self) -> int:
        ...
    @property
    def usage(self) -> Usage:
        """
        The same as Usage, e.g. of a Journal's begin.
        """
class TokenEstimator:
    """
    Learns how many bytes of a model's prompts make a token. One per model. Thread-safe.
    """
    def __init__(self, bytes_per_token: typing.SupportsFloat | typing.SupportsIndex | None = None) -> None:
        """
        bytes_per_token: to begin with, 0.1..64; None: 3.
        """
    def estimate(self, prompt_bytes: typing.SupportsIndex, *, known_input_tokens: typing.SupportsIndex | None = None, requested_output_tokens: typing.SupportsIndex | None = None, max_output_tokens: typing.SupportsIndex = 4096, margin_percent: typing.SupportsIndex = 10) -> TokenEstimate:
        """
        known_input_tokens: exact, where ids are known. requested_output_tokens: the request's limit, for all its choices.

        max_output_tokens: where it names none, or a larger one. margin_percent: added to the learned mean.
        """
    def learn(self, prompt_bytes: typing.SupportsIndex, input_tokens: typing.SupportsIndex) -> None:
        """
        A request of so many prompt bytes (ParsedBody.prompt_bytes) was so many tokens. Absurd pairs are ignored.
        """
    @property
    def bytes_per_token(self) -> float:
        ...
class HangupDrain:
    """
    Follows one upstream after its client left: read on for its usage, or cut it. One thread at a time.
    """
    def __init__(self, mode: HangupMode | str = 'drain', *, max_drain_ns: typing.SupportsIndex = 60000000000, max_drain_bytes: typing.SupportsIndex = 8000000, now_ns: typing.SupportsIndex | None = None) -> None:
        ...
    def go_on(self, more_bytes: typing.SupportsIndex = 0, *, complete: bool = False, now_ns: typing.SupportsIndex | None = None) -> bool:
        """
        more_bytes came since; complete: the meter has the last word. returns: whether to read on.
        """
    @property
    def deadline_ns(self) -> int:
        """
        When to cut it if nothing comes.
        """
class KeyGrant:
    """
    Whom a key belongs to. False where it was not accepted: then there is a verdict only.
    """
    def __bool__(self) -> bool:
        ...
    def __repr__(self) -> str:
        ...
    @property
    def generation(self) -> int:
        """
        Of the set that said so.
        """
    @property
    def key_id(self) -> str:
        """
        What the books call it.
        """
    @property
    def status(self) -> int:
        """
        200, 401 (the key), or 503 (our fault: stale set, pepper, digest).
        """
    @property
    def team_id(self) -> str:
        ...
    @property
    def verdict(self) -> KeyVerdict:
        """
        For our own logs; a client may learn `status` alone.
        """
    @property
    def version(self) -> int:
        ...
class KeySet:
    """
    See warmroute.usage.KeySet.
    """
    def __init__(self, *, max_age_ns: typing.SupportsIndex = 0, on_stale: StaleKeys | str = 'keep_serving') -> None:
        ...
    def __len__(self) -> int:
        """
        Keys that are not revoked.
        """
    def _apply(self, base: typing.SupportsIndex, generation: typing.SupportsIndex, changes: collections.abc.Iterable[typing.Any], now_ns: typing.SupportsIndex | None) -> None:
        ...
    def _replace(self, generation: typing.SupportsIndex, records: collections.abc.Iterable[typing.Any], now_ns: typing.SupportsIndex | None) -> None:
        ...
    def _roll_back(self, from_: typing.SupportsIndex, generation: typing.SupportsIndex, records: collections.abc.Iterable[typing.Any], now_ns: typing.SupportsIndex | None) -> None:
        ...
    def add_pepper(self, version: typing.SupportsIndex, pepper: bytes | bytearray | memoryview | str) -> None:
        """
        It is wiped when the set is destroyed. errors: Error invalid_argument: shorter than 16 bytes; already_exists.
        """
    def age_ns(self, now_ns: typing.SupportsIndex | None = None) -> int:
        """
        Since control was last heard of.
        """
    def check(self, key: bytes | bytearray | memoryview | str, *, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> KeyGrant:
        """
        Whose key it is. now_ns: for the set's age; wall_ns: for validity windows. Never raises for what a client sent.
        """
    def confirm(self, generation: typing.SupportsIndex, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        Control was heard of and `generation` is still its newest. errors: Error stale: it is not ours.
        """
    def revoke(self, public_id: str, version: typing.SupportsIndex | None = None) -> None:
        """
        Revokes at once, beside control: everything up to `version`; None: for ever. Also before the key is known.

        errors: Error invalid_argument.
        """
    def set_max_age(self, max_age_ns: typing.SupportsIndex, on_stale: StaleKeys | str) -> None:
        """
        From now on, instead of what the constructor said.
        """
    def stale(self, now_ns: typing.SupportsIndex | None = None) -> bool:
        """
        Older than max_age_ns, or nothing came yet.
        """
    @property
    def generation(self) -> int:
        ...
    @property
    def heap_bytes(self) -> int:
        ...
    @property
    def revoked(self) -> int:
        """
        Tombstones.
        """
class LimitLeft:
    """
    What is left of the tightest limit of one unit, after this request.
    """
    def __repr__(self) -> str:
        ...
    @property
    def amount(self) -> int:
        """
        Of the limit.
        """
    @property
    def remaining(self) -> int:
        ...
    @property
    def reset_ns(self) -> int:
        """
        Until all of it is there again.
        """
class LimitDecision:
    """
    Whether a request may pass, by all limits of its scopes. True when it may.
    """
    def __bool__(self) -> bool:
        ...
    def __repr__(self) -> str:
        ...
    def status(self, budget_status: typing.SupportsIndex = 402) -> int:
        """
        200, 429 (rates, concurrency), budget_status (402 or 403), 400 (never passes), 503 (no room), 500.
        """
    @property
    def allowed(self) -> bool:
        ...
    @property
    def headers(self) -> dict[str, str]:
        """
        For the client, in OpenAI's manner: x-ratelimit-*, and retry-after where time heals.
        """
    @property
    def left(self) -> dict[str, LimitLeft]:
        """
        By unit, those that are limited; shadows and concurrency left out.
        """
    @property
    def limit(self) -> int:
        """
        Which of that scope's limits.
        """
    @property
    def may_stop(self) -> bool:
        """
        A hard_stop is among its limits: progress() is worth asking.
        """
    @property
    def outcome(self) -> LimitOutcome:
        ...
    @property
    def reset_ns(self) -> int | None:
        """
        Of a budget: until its window ends.
        """
    @property
    def retry_after_ns(self) -> int | None:
        """
        None: time does not heal it, or a budget denied.
        """
    @property
    def scope(self) -> int | None:
        """
        That denied.
        """
    @property
    def shadow_denied(self) -> bool:
        """
        A limit in shadow mode would have denied.
        """
    @property
    def shadow_limit(self) -> int:
        ...
    @property
    def shadow_scope(self) -> int | None:
        ...
    @property
    def ticket(self) -> int:
        """
        0 when not allowed.
        """
class Limits:
    """
    See warmroute.usage.Limits.
    """
    def __init__(self, *, lease_ns: typing.SupportsIndex = 600000000000, orphans: OrphanCharge | str = 'keep', max_scopes: typing.SupportsIndex = 4000000, max_reservations: typing.SupportsIndex = 1000000, concurrency_retry_ns: typing.SupportsIndex = 1000000000) -> None:
        ...
    def _limits(self, scope: typing.SupportsIndex) -> list[dict[str, typing.Any]]:
        ...
    def _set_default_limits(self, dimension: str, limits: collections.abc.Iterable[typing.Any]) -> None:
        ...
    def _set_limits(self, scope: typing.SupportsIndex, limits: collections.abc.Iterable[typing.Any]) -> None:
        ...
    def _statistics(self) -> dict[str, typing.Any]:
        ...
    def advance(self, most: typing.SupportsIndex | None = None, *, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> int:
        """
        Ends leases that are over. returns: how many. Every call above ends a few by itself.
        """
    def decide(self, scopes: collections.abc.Sequence[typing.SupportsIndex], *, input_tokens: typing.SupportsIndex | None = None, cached_input_tokens: typing.SupportsIndex | None = None, output_tokens: typing.SupportsIndex | None = None, cost_picos: typing.SupportsIndex | None = None, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> LimitDecision:
        """
        The flat form of reserve: the decision's ticket is the caller's to settle or release.
        """
    def extend(self, ticket: typing.SupportsIndex, *, now_ns: typing.SupportsIndex | None = None) -> None:
        """
        Renews the lease. errors: Error stale.
        """
    def progress(self, ticket: typing.SupportsIndex, *, input_tokens: typing.SupportsIndex | None = None, cached_input_tokens: typing.SupportsIndex | None = None, output_tokens: typing.SupportsIndex | None = None, cost_picos: typing.SupportsIndex | None = None, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> LimitProgress:
        """
        What a stream has used so far. Says whether to stop (hard_stop budgets), and renews the lease.
        """
    def release(self, ticket: typing.SupportsIndex, *, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> None:
        """
        It never left, or nothing is to be paid for it: all is given back. errors: Error stale.
        """
    def scope(self, dimension: str, value: str) -> int:
        """
        The int of one value of a dimension, e.g. ('team', 'blue'), made when it is new. Keep it.

        errors: Error invalid_argument: an empty dimension; capacity: max_scopes.
        """
    def scope_name(self, scope: typing.SupportsIndex) -> tuple[str, str]:
        """
        (dimension, value); empty ones of an unknown scope.
        """
    def settle(self, ticket: typing.SupportsIndex, *, input_tokens: typing.SupportsIndex | None = None, cached_input_tokens: typing.SupportsIndex | None = None, output_tokens: typing.SupportsIndex | None = None, cost_picos: typing.SupportsIndex | None = None, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> None:
        """
        The truth. None: as estimated. errors: Error stale: settled, released or expired before; nothing happens.
        """
    def used(self, scope: typing.SupportsIndex, limit: str, *, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> int:
        """
        What of a limit is charged now: used in the window, in flight, or not yet drained of a rate. errors: Error not_found.
        """
class Journal:
    """
    See warmroute.usage.Journal.
    """
    def __init__(self, directory: typing.Any, *, sync: JournalSync | str = 'batched', sync_bytes: typing.SupportsIndex = 1000000, segment_bytes: typing.SupportsIndex = 64000000, max_bytes: typing.SupportsIndex = 0, on_full: JournalFull | str = 'refuse', max_held_ends: typing.SupportsIndex = 100000) -> None:
        ...
    def _acknowledge(self, segment: typing.SupportsIndex, offset: typing.SupportsIndex) -> None:
        ...
    def _acknowledged(self) -> tuple[int, int]:
        ...
    def _begin(self, estimate: typing.Any) -> int:
        ...
    def _end(self, number: typing.SupportsIndex, event: typing.Any) -> None:
        ...
    def _statistics(self) -> dict[str, typing.Any]:
        ...
    def close(self) -> None:
        """
        Writes what is held and lets the directory go, once calls that are inside are over.
        """
    def sync(self) -> None:
        """
        Asks the disk to write. Tries held ends again. errors: Error io.
        """
    def withdraw(self, number: typing.SupportsIndex) -> None:
        """
        It never left: nothing is handed over for it. errors: as end.
        """
    @property
    def closed(self) -> bool:
        """
        Whether close was called.
        """
class JournalReader:
    """
    See warmroute.usage.JournalReader.
    """
    def __init__(self, directory: typing.Any, segment: typing.SupportsIndex, offset: typing.SupportsIndex) -> None:
        ...
    def _cursor(self) -> tuple[int, int]:
        ...
    def _next(self, begins: bool) -> dict[str, typing.Any] | None:
        ...
class Ledger:
    """
    See warmroute.usage.Ledger.
    """
    def __init__(self, *, by: collections.abc.Sequence[str] | None, window_ns: typing.SupportsIndex = 3600000000000, max_rows: typing.SupportsIndex = 1000000, prices: PriceTable | None = None, reprice: bool = False) -> None:
        ...
    def __len__(self) -> int:
        ...
    def _add(self, event: typing.Any, incomplete: bool) -> None:
        ...
    def _snapshot(self, by: collections.abc.Sequence[str] | None) -> list[dict[str, typing.Any]]:
        ...
    def _total(self) -> dict[str, typing.Any]:
        ...
    def forget_before(self, wall_ns: typing.SupportsIndex) -> int:
        """
        Drops windows that ended by then. returns: rows.
        """
    def read(self, reader: JournalReader) -> int:
        """
        All that a JournalReader has left. returns: events. errors: Error io; what came before is added.
        """
    @property
    def overflowed(self) -> int:
        """
        Events beyond max_rows: in the one row without names.
        """
class VerifyingKey:
    """
    A public key that may sign snapshots: what a process has to trust.
    """
    @staticmethod
    def parse(text: str, key_id: str = '') -> VerifyingKey:
        """
        PEM, or 64 hex digits. key_id '': made of the key, on both sides alike. errors: Error malformed, invalid_argument.
        """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, key_id: str, public_key: bytes | bytearray | memoryview | str) -> None:
        """
        errors: ValueError: not 32 bytes; Error internal: no such point.
        """
    def __repr__(self) -> str:
        ...
    def pem(self) -> str:
        """
        To publish.
        """
    @property
    def key_id(self) -> str:
        ...
    @property
    def public_key(self) -> bytes:
        """
        32 bytes.
        """
class SigningKey:
    """
    A private Ed25519 key; wiped when it goes. Its repr and errors never show it.
    """
    @staticmethod
    def from_seed(seed: bytes | bytearray | memoryview | str, key_id: str = '') -> SigningKey:
        """
        The 32 bytes of RFC 8032.
        """
    @staticmethod
    def generate(key_id: str = '') -> SigningKey:
        """
        A new one of OpenSSL's random bytes. errors: Error invalid_argument, internal.
        """
    @staticmethod
    def parse(text: str, key_id: str = '') -> SigningKey:
        """
        PEM (PKCS #8, as `openssl genpkey -algorithm ed25519` writes it), or 64 hex digits.

        errors: Error malformed, invalid_argument.
        """
    def __repr__(self) -> str:
        ...
    def pem(self) -> str:
        """
        To keep; whoever has it can sign.
        """
    @property
    def key_id(self) -> str:
        ...
    @property
    def verifying_key(self) -> VerifyingKey:
        ...
class Snapshot:
    """
    See warmroute.control.Snapshot.
    """
    def _aliases(self) -> list[tuple[str, str]]:
        ...
    def _forced_rollback(self) -> tuple[int, str] | None:
        ...
    def _keys(self) -> list[dict[str, typing.Any]]:
        ...
    def _limits(self) -> list[dict[str, typing.Any]]:
        ...
    def _prices(self) -> dict[str, typing.Any]:
        ...
    def _teams(self) -> list[tuple[str, str]]:
        ...
    def json(self) -> str:
        """
        The document; parsed again it is equal, and what is equal is written alike. One key, team or scope per line.
        """
    @property
    def generation(self) -> int:
        ...
    @property
    def issued_at_ns(self) -> int:
        ...
    @property
    def key_count(self) -> int:
        ...
    @property
    def max_age_ns(self) -> int:
        ...
    @property
    def on_expired(self) -> OnExpired:
        ...
    @property
    def policy(self) -> Policy | None:
        ...
class PriceSlot:
    """
    The price table in force: control puts a new one in, a request takes it once and keeps it. Thread-safe.
    """
    def __init__(self) -> None:
        ...
    def get(self) -> PriceTable | None:
        """
        The table; None: there is none yet. It cannot be changed: others have the same one.
        """
    def set(self, table: PriceTable | None) -> None:
        """
        From then on the table cannot be changed. None: none.
        """
class SnapshotApplier:
    """
    See warmroute.control.SnapshotApplier.
    """
    def __init__(self, *, trust: collections.abc.Sequence[VerifyingKey], allow_unsigned: bool, directory: str, price_file: str, keys: KeySet | None, limits: Limits | None, prices: PriceSlot | None, router: Router | None, check: collections.abc.Callable[[Snapshot], typing.Any] | None, applied: collections.abc.Callable[[Snapshot], typing.Any] | None, rolled_back: collections.abc.Callable[[dict[str, typing.Any]], typing.Any] | None, max_bytes: typing.SupportsIndex = 67108864, max_keys: typing.SupportsIndex = 2097152, base_policy: Policy | None = None) -> None:
        ...
    def _apply(self, bytes: bytes | bytearray | memoryview | str, now_ns: typing.SupportsIndex | None, wall_ns: typing.SupportsIndex | None) -> dict[str, typing.Any]:
        ...
    def _rollbacks(self) -> list[dict[str, typing.Any]]:
        ...
    def _status(self, now_ns: typing.SupportsIndex | None) -> dict[str, typing.Any]:
        ...
    def confirm(self, *, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> None:
        """
        Control was heard of and has nothing new.
        """
    def load_last_good(self, *, now_ns: typing.SupportsIndex | None = None, wall_ns: typing.SupportsIndex | None = None) -> bool:
        """
        At the start: applies the last good snapshot, verified anew; its age counts from when control was last heard of.

        returns: False: there is none. errors: those of apply, of a damaged one: go on without it, control will send another.
        """
    def prometheus(self, now_ns: typing.SupportsIndex | None = None) -> str:
        """
        Families warmroute_control_*: generation, age, expired, counters.
        """
    def revoke(self, public_id: str, version: typing.SupportsIndex | None = None) -> None:
        """
        Revokes at once, beside control: everything up to `version`; None: for ever. Kept on disk.

        errors: Error invalid_argument; io: it is in force, and not on disk.
        """
class FileSource:
    """
    See warmroute.control.FileSource.
    """
    def __init__(self, path: typing.Any, applier: SnapshotApplier | None = None, *, on_bytes: collections.abc.Callable[[bytes], typing.Any] | None = None, on_same: collections.abc.Callable[[], typing.Any] | None = None, log: collections.abc.Callable[[LogLevel, str], typing.Any] | None = None, clock: collections.abc.Callable[[], typing.Any] | None = None, interval_ns: typing.SupportsIndex = 100000000, retry_to_ns: typing.SupportsIndex = 5000000000, max_bytes: typing.SupportsIndex = 67108864) -> None:
        ...
    def _status(self) -> dict[str, typing.Any]:
        ...
    def close(self) -> None:
        """
        Ends the thread, after a callback that is running. Not from a callback.
        """
    def look_now(self) -> None:
        """
        Looks at once, and reads whatever the file's time and size say. Not from a callback.
        """
    @property
    def closed(self) -> bool:
        """
        Whether close was called.
        """
class Handover:
    """
    See warmroute.control.Handover.
    """
    def __init__(self, journal: Journal, deliver: collections.abc.Callable[[list[dict[str, typing.Any]]], typing.Any] | None, *, json_lines: typing.Any, log: collections.abc.Callable[[LogLevel, str], typing.Any] | None = None, batch: typing.SupportsIndex = 256, interval_ns: typing.SupportsIndex = 200000000, backoff_from_ns: typing.SupportsIndex = 100000000, backoff_to_ns: typing.SupportsIndex = 30000000000) -> None:
        ...
    def _status(self) -> dict[str, typing.Any]:
        ...
    def close(self) -> None:
        """
        Ends the thread after a delivery that is running; what is left is delivered by the next one. Not from a callback.
        """
    def drain(self, timeout_ns: typing.SupportsIndex) -> bool:
        """
        Waits until what is in the journal now is acknowledged, at most so long. returns: whether it is.
        """
    def prometheus(self) -> str:
        """
        Families warmroute_handover_*.
        """
    @property
    def closed(self) -> bool:
        """
        Whether close was called.
        """
class TraceFormat(enum.IntEnum):
    """
    The published forms of traces. automatic: told by the first line.
    """
    automatic = 0
    mooncake = 1
    qwen = 2
    burstgpt = 3
    azure = 4
    ragpulse = 5
    weka = 6
class TraceRecord:
    """
    One request of a trace. What a trace does not say is None, '' or 0.

    arrival_us: since the start of the trace; of conversations (weka) since their own. blocks: uint64[n], an id stands
    for its block and all before it. follows: it waits for the end of the record that came so many before it, and think_us.
    """
    def __eq__(self, other: object, /) -> bool:
        ...
    def __hash__(self) -> int:
        ...
    def __init__(self, *, arrival_us: typing.SupportsIndex = 0, input_tokens: typing.SupportsIndex = 0, output_tokens: typing.SupportsIndex = 0, session: typing.SupportsIndex = 0, blocks: typing.Any | None = None, block_tokens: typing.SupportsIndex = 512, model: str = '', adapter: str = '', request_class: str = '', priority: typing.SupportsIndex | None = None, max_output_tokens: typing.SupportsIndex | None = None, cached_tokens: typing.SupportsIndex | None = None, ttft_us: typing.SupportsIndex | None = None, stream: bool | None = None, cancelled: bool = False, follows: typing.SupportsIndex = 0, think_us: typing.SupportsIndex = 0) -> None:
        ...
    def __repr__(self) -> str:
        ...
    def mooncake_line(self) -> str:
        """
        The record as one JSON line of the Mooncake form, its line feed included. errors: as TraceWriter.write.
        """
    @property
    def adapter(self) -> str:
        ...
    @property
    def arrival_us(self) -> int:
        ...
    @property
    def block_tokens(self) -> int:
        ...
    @property
    def blocks(self) -> numpy.typing.NDArray[numpy.uint64]:
        """
        Read-only view; shape uint64[n].
        """
    @property
    def cached_tokens(self) -> int | None:
        """
        As the engine counted them when it was recorded.
        """
    @property
    def cancelled(self) -> bool:
        """
        It ended without its whole answer.
        """
    @property
    def follows(self) -> int:
        ...
    @property
    def input_tokens(self) -> int:
        ...
    @property
    def max_output_tokens(self) -> int | None:
        ...
    @property
    def model(self) -> str:
        ...
    @property
    def output_tokens(self) -> int:
        """
        0: the trace has no answer for it.
        """
    @property
    def priority(self) -> int | None:
        ...
    @property
    def request_class(self) -> str:
        ...
    @property
    def session(self) -> int:
        """
        Hash of the session id; 0: none.
        """
    @property
    def stream(self) -> bool | None:
        ...
    @property
    def think_us(self) -> int:
        ...
    @property
    def ttft_us(self) -> int | None:
        """
        Time to its first token when it was recorded.
        """
class TraceReader:
    """
    See warmroute.trace.TraceReader.
    """
    def __init__(self, path: typing.Any | None = None, *, text: bytes | str | None = None, format: TraceFormat | str = 'automatic', conversation_gap_us: typing.SupportsIndex = 0, share_system_prompts: bool = False, block_salt: typing.SupportsIndex = 0, max_line_bytes: typing.SupportsIndex = 16777216, max_tokens: typing.SupportsIndex = 100000000, max_blocks: typing.SupportsIndex = 16000000, max_chats: typing.SupportsIndex = 1048576) -> None:
        ...
    def __iter__(self) -> TraceReader:
        ...
    def __next__(self) -> TraceRecord:
        ...
    @property
    def format(self) -> TraceFormat:
        """
        automatic until the first line told it.
        """
    @property
    def line(self) -> int:
        """
        Number of the line read last, from 1.
        """
class TraceWriter:
    """
    See warmroute.trace.TraceWriter.
    """
    def __init__(self, path: typing.Any) -> None:
        ...
    def close(self) -> None:
        """
        Writes what is left; again does nothing. errors: Error io.
        """
    def write(self, record: TraceRecord) -> None:
        """
        errors: Error unsupported (block_tokens does not divide 512), value_out_of_range, invalid_utf8: the file goes on without
        that record; io. ValueError: closed.
        """
    @property
    def closed(self) -> bool:
        ...
class DecisionCall(enum.IntEnum):
    """
    A call of Router, as a decision log has it.
    """
    set_policy = 1
    add_replica = 2
    remove_replica = 3
    set_health = 4
    update_replica = 5
    clear_cache = 6
    signal = 7
    prefix_counters = 8
    blocks_stored = 9
    blocks_removed = 10
    blocks_also_on = 11
    clear_shared_store = 12
    route = 13
    first_token = 14
    finish = 15
    fail = 16
    advance = 17
    restore_cached = 18
    drain = 19
    transfer_done = 20
    restore_learned = 21
    peer_loads = 22
    peer_placed = 23
class DecisionRecord:
    """
    One call of a router that records, and what came of it. What else it was given is in to_json and to_dict.
    """
    def __repr__(self) -> str:
        ...
    def to_dict(self, blocks: bool = False) -> dict[str, typing.Any]:
        """
        The same as a dict.
        """
    def to_json(self, blocks: bool = False) -> str:
        """
        An object on one line. blocks: all hashes, not only how many.
        """
    @property
    def blocks(self) -> numpy.typing.NDArray[numpy.uint64]:
        """
        Of route and blocks_stored, under the log's key. Read-only view; shape uint64[n].
        """
    @property
    def call(self) -> DecisionCall:
        ...
    @property
    def decision(self) -> Decision | None:
        """
        Of route.
        """
    @property
    def done(self) -> bool:
        """
        Of calls with a ticket: False if that was over.
        """
    @property
    def error(self) -> str | None:
        """
        Why it was refused, as Error.code; None: it was not.
        """
    @property
    def now_ns(self) -> int:
        """
        As the caller gave it; of calls without a time that of the call before.
        """
    @property
    def number(self) -> int:
        """
        From 0.
        """
    @property
    def replica(self) -> int | None:
        """
        Whom it is about; of add_replica: what it got.
        """
    @property
    def ticket(self) -> int:
        """
        Of first_token, transfer_done, finish and fail; else 0.
        """
class DecisionLog:
    """
    See warmroute.trace.DecisionLog.
    """
    def __init__(self, path: typing.Any) -> None:
        ...
    def __iter__(self) -> DecisionLog:
        ...
    def __next__(self) -> DecisionRecord:
        ...
    @property
    def torn_bytes(self) -> int:
        """
        Of a record that was not written out whole; known at the end.
        """
class Workload:
    """
    What a simulation serves: requests with their prompts as block ids, and who follows whom.
    """
    @staticmethod
    def agents(path: typing.Any, *, conversations_per_second: typing.SupportsFloat | typing.SupportsIndex = 0.1, seed: typing.SupportsIndex = 1, think_cap_us: typing.SupportsIndex = 60000000, share_system_prompts: bool = False, limit: typing.SupportsIndex = 0, repeats: typing.SupportsIndex = 1) -> Workload:
        """
        Conversations of coding agents (the weka form) as closed loops. errors: Error, as TraceReader.
        """
    @staticmethod
    def hot_prefix(*, agents: typing.SupportsIndex = 50, turns: typing.SupportsIndex = 20, system_tokens: typing.SupportsIndex = 6144, block_tokens: typing.SupportsIndex = 64, seed: typing.SupportsIndex = 1) -> Workload:
        """
        Agents behind one system prompt.
        """
    @staticmethod
    def open_loop(records: collections.abc.Iterable[TraceRecord], *, block_tokens: typing.SupportsIndex = 0) -> Workload:
        """
        Records of a trace at their own times, spread inside equal timestamps. block_tokens 0: the first record's.
        """
    def __len__(self) -> int:
        ...
    def at_load(self, load: typing.SupportsFloat | typing.SupportsIndex, profile: str, replicas: typing.SupportsIndex) -> Workload:
        """
        The same sped up (or slowed down) so that so many replicas would spend `load` of the time on prefill if nothing were
        cached; at load 1 all of it. Only arrivals of those that follow nobody move.
        """
    @property
    def closed_loop(self) -> bool:
        ...
def advise_pool_ratio(served: typing.Annotated[collections.abc.Sequence[typing.SupportsIndex], "FixedSize(5)"], rates: Rates, itl_ns: typing.SupportsIndex, replicas: typing.SupportsIndex) -> typing.Annotated[list[int], "FixedSize(4)"]:
    ...
def api_for_path(path: str) -> BodyApi:
    """
    The BodyApi whose path `path` ends with, e.g. '/v1/chat/completions'. errors: Error not_found.
    """
def ask_for_usage(body: bytes | bytearray | memoryview | str) -> UsageAsk:
    """
    For /v1/chat/completions and /v1/completions only: adds stream_options.include_usage to a body that streams without.

    Nothing else of it changes. errors: Error invalid_json, not_an_object, with .offset.
    """
def block_seed(hash_seed: typing.SupportsIndex = 1337, *, adapter: str = '', cache_salt: str = '', isolation_key: str = '', text: bool = False) -> int:
    """
    The seed of every block hash of one space: what two requests must agree on before they may share KV blocks.

    Empty strings are absent. isolation_key is the tenant, from the verified key, never from the body.
    """
def builtin_engine_tables() -> list[str]:
    """
    The tables of metrics' names that are known, as JSON: what a table of your own looks like.
    """
def canonical_prompt(body: bytes | bytearray | memoryview | str, api: BodyApi | str = 'chat') -> bytes:
    """
    The first prompt's canonical bytes: what text blocks are cut from and what a tokenizer is given.

    errors: as BodyParser.parse.
    """
def detect_trace_format(path: typing.Any) -> TraceFormat:
    """
    errors: Error io, too_large, unsupported (none of the known forms).
    """
def digest_of_key(key: bytes | bytearray | memoryview | str, kind: KeyDigestKind | str, pepper_version: typing.SupportsIndex, pepper: bytes | bytearray | memoryview | str) -> bytes:
    ...
def estimate_missing(report: UsageReport, estimate: TokenEstimate) -> UsageReport:
    """
    A report in which an incomplete one's missing counts are estimated, for answers that were cut off: input as `estimate`
    has it, output by the events that carried some. What is known stays. source then says `estimate`.
    """
def focus_header() -> str:
    """
    The names of the columns of focus_rows, as one line of CSV.
    """
def hardware_profiles() -> list[str]:
    """
    The names of the built-in hardware profiles.
    """
def hash_eagle_blocks(ids: numpy.typing.NDArray[numpy.uint32] | bytes | bytearray | memoryview, block_size: typing.SupportsIndex = 16, seed: typing.SupportsIndex = 1337) -> numpy.typing.NDArray[numpy.uint64]:
    """
    As hash_token_blocks for EAGLE draft models: block i covers block_size + 1 tokens from i * block_size on.
    """
def hash_multimodal_blocks(ids: numpy.typing.NDArray[numpy.uint32] | bytes | bytearray | memoryview, objects: collections.abc.Sequence[collections.abc.Sequence[typing.SupportsIndex]], block_size: typing.SupportsIndex = 16, seed: typing.SupportsIndex = 1337, eagle: bool = False) -> numpy.typing.NDArray[numpy.uint64]:
    """
    As hash_token_blocks, with the hashes of the multimodal objects that lie in each block.

    shape: objects[k] belongs to block k; fewer than blocks: the rest have none; surplus is ignored.
    """
def hash_text_blocks(text: bytes | bytearray | memoryview | str, seed: typing.SupportsIndex) -> numpy.typing.NDArray[numpy.uint64]:
    """
    Hashes of the whole blocks of TEXT_BLOCK_BYTES bytes of canonical prompt text; seed from block_seed(text=True).
    """
def hash_token_blocks(ids: numpy.typing.NDArray[numpy.uint32] | bytes | bytearray | memoryview, block_size: typing.SupportsIndex = 16, seed: typing.SupportsIndex = 1337) -> numpy.typing.NDArray[numpy.uint64]:
    """
    Hashes of the whole blocks of `block_size` tokens (1..512); a partial tail has none.

    shape: uint64[len(ids) // block_size], block 0 first. Compatible with Dynamo's block hashes.
    errors: Error invalid_argument (block_size), TypeError (ids not a uint32 array).
    """
def hash_token_blocks_chained(ids: numpy.typing.NDArray[numpy.uint32] | bytes | bytearray | memoryview, block_size: typing.SupportsIndex = 16, seed: typing.SupportsIndex = 1337) -> tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint64]]:
    """
    hash_token_blocks and sequence_hashes in one pass: (blocks, chain).
    """
def movement_between(before: HashRing, after: HashRing) -> Movement:
    """
    What moves when `after` replaces `before`.
    """
def parse_snapshot(payload: bytes | bytearray | memoryview | str | collections.abc.Mapping[str, typing.Any], *, max_bytes: typing.SupportsIndex = 67108864, max_keys: typing.SupportsIndex = 2097152, max_faults: typing.SupportsIndex = 64, base_policy: Policy | None = None) -> Snapshot:
    ...
def read_usage(body: bytes | bytearray | memoryview | str, api: AnswerApi | str = 'automatic', *, input_includes_cache: bool | None = None, output_includes_reasoning: bool | None = None, ignore_total: bool = False, trust_requested_tier: bool = False, requested_tier: str = '') -> UsageReport:
    """
    A whole answer at once; the options are those of Meter.
    """
def record_focus_rows(record: typing.Any) -> str:
    ...
def record_json_line(record: typing.Any) -> str:
    ...
def replace_file(path: typing.Any, bytes: bytes | bytearray | memoryview | str, *, mode: typing.SupportsIndex = 384) -> None:
    """
    Replaces a file as a whole: written beside it, synced, renamed; readers see the old or the new one. errors: Error io: the old one stays.
    """
def replay_decision_log(path: typing.Any, change: str, max_records: typing.SupportsIndex) -> dict[str, typing.Any]:
    ...
def replica_generation(replica: typing.SupportsIndex) -> int:
    """
    Which tenant of its slot a replica's int names.
    """
def replica_slot(replica: typing.SupportsIndex) -> int:
    """
    The dense table index of a replica's int; given again after a removal.
    """
def requested_tier(body: bytes | bytearray | memoryview | str) -> str:
    """
    The service tier that a body asks for: service_tier, or Bedrock's serviceTier.type; empty: none.

    For Meter's requested_tier: engines name none in their answers.
    """
def routing_rules() -> list[str]:
    """
    The names of the rules that a simulation can route by; options stand behind them: 'chwbl:c=1.25:k=2'.
    """
def sequence_hashes(blocks: numpy.typing.NDArray[numpy.uint64] | bytes | bytearray | memoryview) -> numpy.typing.NDArray[numpy.uint64]:
    """
    Chains block hashes: element i stands for blocks 0..i. shape: uint64[len(blocks)].
    """
def sign_snapshot(payload: bytes | bytearray | memoryview | str | collections.abc.Mapping[str, typing.Any], key: SigningKey) -> bytes:
    """
    Envelope and payload: what to write to a file. payload: JSON, or the dict of it. errors: Error internal.
    """
def simulate_fleet(workload: Workload, *, profile: str, replicas: typing.SupportsIndex = 8, rule: str = 'warmroute', policy: Policy | None = None, capacities: collections.abc.Sequence[typing.SupportsIndex] = [], view: str = 'perfect', snapshot_us: typing.SupportsIndex = 100000, event_delay_us: typing.SupportsIndex = 50000, event_loss: typing.SupportsFloat | typing.SupportsIndex = 0.0, waiting_tokens: bool = False, routers: typing.SupportsIndex = 1, pin_conversations: bool = False, gateway_ring: bool = False, forward_us: typing.SupportsIndex = 500, share_loads_us: typing.SupportsIndex = 0, share_placements: bool = False, prefill_replicas: typing.SupportsIndex = 0, decode_replicas: typing.SupportsIndex = 0, transfer_token_ps: typing.SupportsIndex = 0, transfer_latency_us: typing.SupportsIndex = 5000, churn: str = '', seed: typing.SupportsIndex = 1, warm_up_us: typing.SupportsIndex = 0, horizon_us: typing.SupportsIndex = 0, slo_ttft_us: typing.SupportsIndex = 2000000, slo_itl_us: typing.SupportsIndex = 0) -> dict[str, typing.Any]:
    ...
def simulation_views() -> list[str]:
    """
    The names of what a rule may know of load and caches.
    """
def usd(picos: int) -> decimal.Decimal:
    """
    An amount of 1e-12 USD as USD, exact.
    """
def verify_snapshot(bytes: bytes | bytearray | memoryview | str, trust: collections.abc.Sequence[VerifyingKey], *, allow_unsigned: bool = False) -> tuple[bytes, str]:
    """
    (payload, who signed it: '' for nobody). Several keys: whichever the envelope names.

    errors: Error malformed, unsupported; not_found: a signer who is not trusted; invalid_value: the signature does not hold, or there must be one.
    """
DYNAMO_HASH_SEED: int = 1337
MAX_BLOCK_TOKENS: int = 512
TEXT_BLOCK_BYTES: int = 64
USAGE_ANOMALIES: tuple[str, ...] = ('invalid_count', 'cached_exceeds_input', 'reasoning_exceeds_output', 'total_mismatch', 'write_split_exceeds', 'bad_crc', 'malformed_event', 'too_large', 'compressed')
__version__: str  # = '0.1.0'
has_zmq: bool
