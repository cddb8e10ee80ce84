"""Statistics as typed, frozen values; `to_dict` gives the nested dict."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ._core import Health, PrefixUnit, Rates, Role, advise_pool_ratio


@dataclasses.dataclass(frozen=True)
class TtftStatistics:
    """A histogram. buckets: counts, not cumulative, of TTFT_BUCKETS_MS and one more for what is above."""

    buckets: tuple[int, ...]
    count: int
    sum_ns: int


@dataclasses.dataclass(frozen=True)
class LoadReading:
    """What one replica has to do: this router's own books, and what the engine said beyond them.

    foreign_tokens: prompt tokens still to compute; None where the engine does not tell.
    """

    requests: int
    pending_tokens: int
    pending_ns: int
    context_tokens: int
    decoding: int
    foreign_requests: int
    foreign_waiting: int
    foreign_tokens: int | None
    signals_at_ns: int


@dataclasses.dataclass(frozen=True)
class PrefixGains:
    """What an engine's own prefix-cache counters gained since the router first saw them, requests of others included.

    hits of queries, in units of `unit`. shared: they are of all ranks of its page together. at_ns: of the last reading.
    """

    queries: int
    hits: int
    unit: PrefixUnit
    shared: bool
    at_ns: int


@dataclasses.dataclass(frozen=True)
class ReplicaStatistics:
    """One replica. reported: its engine sends events, and nothing is believed beside them.

    input_tokens: of requests whose prefill ended there; matched_tokens: of those, believed to be in its cache when they were
    routed. held_tokens: of its KV cache, by prompts in flight; what several of them share counts once. engine_prefix: the
    same as its engine counts it; None until there were two readings. slowness: learned, 2 takes twice as long as replicas of
    equal declared rates. prefill_share: of its time of late, by the work booked there, where pairs can be formed. declared:
    its rates, by the names of Rates; RouterStatistics.learned_rates has what was learned of them.
    """

    replica: int
    name: str
    dp_rank: int
    pool: str
    health: Health
    load: LoadReading
    believed_blocks: int
    capacity_blocks: int
    reported: bool
    input_tokens: int
    matched_tokens: int
    held_tokens: int
    slowness: float
    role: Role
    prefill_share: float
    declared: Mapping[str, int]
    engine_prefix: PrefixGains | None


@dataclasses.dataclass(frozen=True)
class LearnedRates:
    """Replicas of equal declared rates. used: by decisions, by the names of Rates; learned: they are no longer the declared ones.

    samples: observed times.
    """

    declared: Mapping[str, int]
    used: Mapping[str, int]
    learned: bool
    samples: int


@dataclasses.dataclass(frozen=True)
class PoolStatistics:
    """One pool's index. bytes_per_token, output_tokens: learned means. shared_blocks: in the store that all replicas share.

    rates: by kind of hardware.
    """

    name: str
    blocks: int
    memberships: int
    bytes: int
    max_bytes: int
    bytes_per_token: float
    output_tokens: float
    shared_blocks: int
    rates: tuple[LearnedRates, ...]


@dataclasses.dataclass(frozen=True)
class ServedTokens:
    """What was served in a stretch of time. uncached_input_tokens: those that were computed."""

    uncached_input_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    seconds: int = 0


@dataclasses.dataclass(frozen=True)
class PoolRatio:
    """How to divide replicas. Busy: of each of those, the share of the time; above 1 there are too few in all."""

    prefill: int
    decode: int
    prefill_busy: float
    decode_busy: float


@dataclasses.dataclass(frozen=True)
class Recording:
    """A router's decision log. unrecorded: calls behind its end; reason: why it ended."""

    records: int
    bytes: int
    unrecorded: int
    ended: bool
    reason: str


@dataclasses.dataclass(frozen=True)
class RouterStatistics:
    """What a router has done so far. verdicts, reasons, outcomes, splits: counts by name. Times in ns, sums over requests.

    splits: of requests routed in pools that could form pairs of prefill and decode. transfer_ns: sum over transfers_done, from the
    first token on. transfers_timed_out: prefill replicas that were freed without having been asked for the KV.
    """

    policy_version: int
    algorithm: str
    verdicts: Mapping[str, int]
    reasons: Mapping[str, int]
    outcomes: Mapping[str, int]
    splits: Mapping[str, int]
    transfers_done: int
    transfers_timed_out: int
    transfer_ns: int
    late_calls: int
    placements_dropped: int
    clock_clamped: int
    scratch_allocated: int
    tickets_in_flight: int
    input_tokens: int
    predicted_cached_tokens: int
    reported_cached_tokens: int
    output_tokens: int
    cached_reports: int
    cached_exact: int
    observed_ttft: TtftStatistics
    predicted_ttft: TtftStatistics
    predicted_wait_ns: int
    predicted_prefill_ns: int
    saved_prefill_ns: int
    event_blocks_stored: int
    event_blocks_removed: int
    event_orphans: int
    event_gaps: int
    pools: tuple[PoolStatistics, ...]
    replicas: tuple[ReplicaStatistics, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as nested dicts, for JSON or a data frame."""
        return dataclasses.asdict(self)

    def learned_rates(self, replica: int) -> LearnedRates | None:
        """What was learned of the kind of hardware that this replica is of; None: no such replica."""
        for row in self.replicas:
            if row.replica == replica:
                kinds = [kind for pool in self.pools if pool.name == row.pool for kind in pool.rates]
                return next((kind for kind in kinds if kind.declared == row.declared), None)
        return None

    def served_since(self, earlier: RouterStatistics | None, seconds: int) -> ServedTokens:
        """What was served since an earlier reading (None: since the router was made), that many seconds ago."""
        uncached, given, out, requests = self._served()
        before = (0, 0, 0, 0) if earlier is None else earlier._served()
        return ServedTokens(uncached - before[0], given - before[1], out - before[2], requests - before[3], seconds)

    def _served(self) -> tuple[int, int, int, int]:
        given = sum(row.input_tokens for row in self.replicas)
        matched = sum(row.matched_tokens for row in self.replicas)
        return given - matched, given, self.output_tokens, self.outcomes["finished"]


def advise_ratio(served: ServedTokens, rates: Rates, itl_ns: int, replicas: int) -> PoolRatio:
    """How to divide replicas of these rates into those that prefill and those that decode, so that the busier part is least busy.

    itl_ns: the time between tokens that is aimed at. errors: ValueError (a number is negative or absurd).
    """
    prefill, decode, prefill_busy, decode_busy = advise_pool_ratio(dataclasses.astuple(served), rates, itl_ns, replicas)
    return PoolRatio(prefill, decode, prefill_busy / 1000, decode_busy / 1000)


def _replica_from(raw: dict[str, Any]) -> ReplicaStatistics:
    values = dict(raw)
    values["load"] = LoadReading(**raw["load"])
    if raw["engine_prefix"] is not None:
        values["engine_prefix"] = PrefixGains(**raw["engine_prefix"])
    return ReplicaStatistics(**values)


def _pool_from(raw: dict[str, Any]) -> PoolStatistics:
    values = dict(raw)
    values["rates"] = tuple(LearnedRates(**kind) for kind in raw["rates"])
    return PoolStatistics(**values)


def statistics_from(raw: dict[str, Any]) -> RouterStatistics:
    """From the extension's nested dict."""
    values = dict(raw)
    values["observed_ttft"] = TtftStatistics(**raw["observed_ttft"])
    values["predicted_ttft"] = TtftStatistics(**raw["predicted_ttft"])
    values["pools"] = tuple(_pool_from(pool) for pool in raw["pools"])
    values["replicas"] = tuple(_replica_from(replica) for replica in raw["replicas"])
    return RouterStatistics(**values)
